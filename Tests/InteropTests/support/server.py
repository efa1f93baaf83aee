"""Starts the release build of Martlet on ports of its own and stops it by its process id."""
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from .network import inside
from .tokens import KEY, SECRET, admin_token
from .waiting import PATIENCE_S

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Where the programs under test are built.
BUILD = pathlib.Path(os.environ.get("PROGRAM_FOLDER", ROOT / ".build/release"))
BINARY = BUILD / "martlet"
# What is exported in the shell that runs the tests, for example MARTLET_NO_SKIPS, configures no server: its test alone does.
for _name in [name for name in os.environ if name.startswith("MARTLET_")]:
    del os.environ[_name]


#: Below Linux's ephemeral ports, and a range for each of three test processes at most: no other program takes a port before its server does.
_FIRST_PORT = 20_000 + 4_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + 4_000))


def free_ports(count):
    """Consecutive ports that are free now, for TCP and UDP."""
    ports = []
    while len(ports) < count:
        port = next(_PORTS)
        if ports and port != ports[-1] + 1:
            ports = []
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as one:
                    one.bind(("127.0.0.1", port))
            ports.append(port)
        except OSError:
            ports = []
    return ports


class Server:
    """One Martlet. `namespace` runs it inside a network namespace at `host`."""

    def __init__(self, host="127.0.0.1", namespace=None, workers=1, extra="", media=None, development=False, nofile=None):
        """`extra` is YAML at the top level; `media` holds settings of that section, for example {"bind": "::1"}.
        `development` starts it as `martlet serve --dev`, whose page makes tokens by itself. `nofile` is the hard limit on its descriptors."""
        self.host, self.namespace, self.workers, self.extra = host, namespace, workers, extra
        self.media, self.development, self.nofile = media or {}, development, nofile
        self.http, self.private, self.udp = free_ports(2 + max(workers, 1))[:3]
        self.folder = tempfile.TemporaryDirectory(prefix="martlet-")
        self.log_path = pathlib.Path(self.folder.name) / "log"
        self.process = None

    @property
    def url(self):
        return f"http://{self.host}:{self.http}"

    def start(self):
        config = pathlib.Path(self.folder.name) / "martlet.yaml"
        config.write_text(
            f"http:\n  bind: {self.host}\n  port: {self.http}\n"
            f"private:\n  bind: {self.host}\n  port: {self.private}\n"
            "media:\n" + "".join(f"  {key}: {value}\n" for key, value in self._media().items())
            + ("insecure: true\n" if self.host != "127.0.0.1" else "")
            + f"keys:\n  {KEY}: {SECRET}\n" + self.extra)
        command = [str(BINARY), "serve", "--config", str(config), *(["--dev"] if self.development else [])]
        if self.nofile:
            command = ["prlimit", f"--nofile={self.nofile}:{self.nofile}", *command]
        if self.namespace:
            command = ["ip", "netns", "exec", self.namespace, *command]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(self.log_path, "ab"))
        try:
            self._wait_until_ready()
        except BaseException:
            # Nobody else can end it.
            if self.process.poll() is None:
                self.kill()
            raise
        return self

    def _media(self):
        settings = {"bind": self.host, "udp_port": self.udp, "workers": self.workers, **self.media}
        return {key: value for key, value in settings.items() if value is not None}

    def _wait_until_ready(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"martlet ended with {self.process.returncode}: {self.log()[-2000:]}")
            try:
                if self.get_private("/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"martlet is not ready after {PATIENCE_S} s: {self.log()[-2000:]}")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("martlet did not end within 15 s of SIGTERM")
        code = self.process.returncode if self.process else None
        self.folder.cleanup()
        return code

    def terminate(self):
        """Ends it in order; `start` starts it again."""
        self.process.terminate()
        assert self.process.wait(15) == 0, self.log()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def discard(self):
        """Ends it at once where it still runs, and removes its files."""
        if self.process and self.process.poll() is None:
            self.kill()
        self.folder.cleanup()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def request(self, method, path, body=None, headers=None, base=None):
        """(status, headers, text) of one HTTP request; errors of the server are answers, not exceptions."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request((base or self.url) + path, data=data, method=method, headers=headers or {})
        if body is not None and not isinstance(body, str):
            request.add_header("Content-Type", "application/json")
        try:
            with self._open(request) as reply:
                return reply.status, reply.headers, reply.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode(errors="replace")

    def _open(self, request):
        with inside(self.namespace):
            return self._open_here(request)

    @staticmethod
    def _open_here(request):
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20)

    def get_private(self, path):
        status, _, text = self.request("GET", path, base=f"http://{self.host}:{self.private}")
        return status, text

    def api(self, method, path, body=None, headers=None):
        """One call of the control API as an operator: (status, parsed JSON)."""
        status, _, text = self.request(method, path, body, {"Authorization": f"Bearer {admin_token()}", **(headers or {})})
        return status, json.loads(text) if text else None

    def metric(self, name):
        """The sum of a metric's samples."""
        total, found = 0.0, False
        for line in self.get_private("/metrics")[1].splitlines():
            if line.startswith(name) and line[len(name)] in " {":
                total, found = total + float(line.rsplit(" ", 1)[1]), True
        assert found, f"no metric {name}"
        return total

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def rss_bytes(self):
        return self._status_bytes("VmRSS")

    def anonymous_bytes(self):
        """What the process holds without the pages of its program and libraries, which come in as they are first used and stay."""
        return self._status_bytes("RssAnon")

    def _status_bytes(self, name):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")
