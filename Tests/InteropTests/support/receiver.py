import http.server
import json
import threading
import time

from .server import free_ports


class Receiver:
    """An HTTP server that keeps what is posted to it; `kill` closes its port, `revive` opens the same one again, which no other program
    has taken meanwhile: it is none of those that the system gives to whoever asks for any."""

    def __init__(self):
        self.requests, self.port, self.http = [], free_ports(1)[0], None
        self.revive()

    def revive(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((time.monotonic(), dict(self.headers), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def kill(self):
        self.http.shutdown()
        self.http.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def events(self):
        return [json.loads(body) for _, _, body in self.requests]
