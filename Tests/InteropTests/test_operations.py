"""What operators do: commands, health, metrics, an end that calls survive, and a server that is not open by mistake."""
import asyncio
import contextlib
import os
import pathlib
import re
import signal as signal_module
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import aiohttp
import pytest

from conftest import running
from support.bare import BarePeer, offer
from support.server import BINARY, ROOT, Server
from support.signalling import signal
from support.tokens import KEY, SECRET, admin_token, token
from support.waiting import PATIENCE_S, until_true


def own_address():
    """An address of this machine that is not loopback; none on a machine without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def whip(server, identity, room="ops"):
    headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token(identity, room)}"}
    return server.request("POST", f"/whip/{room}", offer(), headers)


async def text_until_closed(session):
    """Everything that comes until the server closes the socket."""
    await asyncio.wait_for(session._reader, 15)
    return [event for _, event in session.events]


def test_K2_participants_are_notified_and_the_process_exits_cleanly():
    server = Server().start()

    async def run():
        async with signal(server, token("ada", "ops")) as ada:
            whip(server, "encoder")
            await ada.wait_for("participantJoined")
            server.process.terminate()
            events = await text_until_closed(ada)
            assert events[-1]["type"] == "ended" and events[-1]["reason"] == "server_shutdown"
            assert ada._socket.close_code == 1001

    asyncio.run(run())
    # Not stop(): its second signal means "at once", which the server obeys.
    assert server.process.wait(PATIENCE_S) == 0
    server.stop()


def test_K2_a_draining_server_is_live_but_not_ready_and_lets_calls_end():
    server = Server(extra="sessions: {drain: 100}\n").start()

    async def run():
        async with signal(server, token("ada", "ops")) as ada:
            assert server.get_private("/readyz")[0] == 200
            server.process.terminate()
            await until_true(lambda: server.get_private("/readyz")[0] == 503, PATIENCE_S, "it drains")
            assert server.get_private("/healthz")[0] == 200
            _, migrate = await ada.wait_for("migrate")
            assert server.metric("martlet_draining") == 1 and server.metric("martlet_ready") == 0
            status, headers, text = whip(server, "late", "elsewhere")
            assert status == 503 and '"draining"' in text and int(headers["Retry-After"]) > 0
            assert (await ada.request("ping"))[0]["type"] == "pong", "the call goes on"
            deadline = migrate["deadline"] / 1000
            assert 90 - PATIENCE_S < deadline - time.time() <= 100
            async with signal(server, token("bob", "ops")) as bob:
                assert bob.joined["migrate"]["deadline"] / 1000 == deadline, "a room that is here is still served"
                await bob.request("leave")
            await ada.request("leave")

    asyncio.run(run())
    assert server.process.wait(PATIENCE_S) == 0, "nobody is left to wait for"
    server.stop()


def test_K2_a_drain_that_nobody_ends_is_over_at_its_deadline_and_the_process_exits_cleanly():
    server = Server(extra="sessions: {drain: 6}\n").start()

    async def run():
        async with signal(server, token("ada", "ops")) as ada:
            server.process.terminate()
            deadline = (await ada.wait_for("migrate"))[1]["deadline"] / 1000
            assert ada.of("ended") == [], "the call goes on until then"
            ended = (await ada.wait_for("ended"))[1]
            assert ended["reason"] == "server_shutdown" and time.time() > deadline - 0.1, (ended, deadline - time.time())
            await text_until_closed(ada)
            assert ada._socket.close_code == 1001

    asyncio.run(run())
    assert server.process.wait(10) == 0, server.log()
    server.stop()


def test_K2_a_second_SIGTERM_ends_a_server_that_drains_at_once():
    server = Server(extra="sessions: {drain: 600}\n").start()

    async def run():
        async with signal(server, token("ada", "ops")) as ada:
            server.process.terminate()
            await ada.wait_for("migrate")
            assert server.get_private("/healthz")[0] == 200, "somebody is here, so it serves"
            server.process.terminate()
            # The drain would last for ten minutes.
            assert await asyncio.to_thread(server.process.wait, 10) == -signal_module.SIGTERM, server.log()

    asyncio.run(run())
    server.stop()


def test_K2_a_SIGTERM_while_the_server_starts_ends_it():
    """It asks a STUN server that does not answer, which takes seconds, and listens nowhere yet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.settimeout(20)
        server = Server(media={"announced_addresses": "discover", "stun_server": f"127.0.0.1:{silent.getsockname()[1]}"})
        begun = threading.Thread(target=lambda: pytest.raises(RuntimeError, server.start))
        begun.start()
        silent.recv(2048)
        asyncio.run(until_true(lambda: server.process, PATIENCE_S, "the other thread knows the process that it has started"))
        server.process.terminate()
        assert server.process.wait(10) == -signal_module.SIGTERM and "ready" not in server.log()
        begun.join()
    server.stop()


def test_K2_an_operator_drains_the_server_and_takes_it_back():
    async def run(server):
        async with signal(server, token("ada", "ops")) as ada:
            status, node = server.api("POST", "/v1/node/drain", {"seconds": 600})
            assert (status, node["isDraining"]) == (200, True) and server.get_private("/readyz")[0] == 503
            assert whip(server, "late", "elsewhere")[0] == 503 and whip(server, "cam")[0] == 201
            status, node = server.api("DELETE", "/v1/node/drain")
            assert (status, node["isDraining"]) == (200, False) and server.get_private("/readyz")[0] == 200
            assert whip(server, "late", "elsewhere")[0] == 201
            await until_true(lambda: len(ada.of("migrate")) == 2, PATIENCE_S, "both notices")
            first, second = (event for _, event in ada.of("migrate"))
            assert 600 - PATIENCE_S < first["deadline"] / 1000 - time.time() <= 600 and second["cancelled"] is True
            server.api("POST", "/v1/node/drain", {"seconds": 1})
            await asyncio.sleep(1.5)
            # The process is the operator's to end: nothing ends by itself.
            assert (await ada.request("ping"))[0]["type"] == "pong" and server.get_private("/readyz")[0] == 503

    with running() as server:
        asyncio.run(run(server))


def test_the_control_api_is_on_the_private_listener_alone_where_that_is_configured(monkeypatch):
    """With its event streams; clients still learn their ICE servers on the public one."""
    monkeypatch.setenv("MARTLET_HTTP_CONTROL_API", "private")

    async def first_event(server, port):
        headers = {"Authorization": f"Bearer {admin_token()}"}
        async with aiohttp.ClientSession() as http, http.ws_connect(
                f"ws://{server.host}:{port}/v1/events?after=0", protocols=["martlet.events.v1"], headers=headers) as socket:
            return (await socket.receive_json(timeout=PATIENCE_S))["type"]

    with running() as server:
        private = f"http://{server.host}:{server.private}"
        headers = {"Authorization": f"Bearer {admin_token()}"}
        assert server.request("PUT", "/v1/rooms/lesson", {}, headers, base=private)[0] == 201
        assert server.request("GET", "/openapi.json", base=private)[0] == 200
        assert asyncio.run(first_event(server, server.private)) == "roomStarted"
        for path in ("/v1/rooms", "/v1/rooms/lesson", "/v1/node", "/openapi.json"):
            assert server.request("GET", path, None, headers)[0] == 404, path
        lister = {"Authorization": f"Bearer {token('backend', '', roomList=True, roomAdmin=True)}"}
        twirp = "/twirp/livekit.RoomService/ListRooms"
        assert server.request("POST", twirp, {}, lister)[0] == 404
        assert server.request("POST", twirp, {}, lister, base=private)[0] == 200
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            asyncio.run(first_event(server, server.http))
        assert refused.value.status == 404
        ada = {"Authorization": f"Bearer {token('ada', 'lesson')}"}
        assert server.request("GET", "/v1/ice-servers", None, ada)[0] == 200
        assert whip(server, "ada", room="lesson")[0] == 201


def test_event_streams_on_the_private_listener_leave_room_for_probes_and_calls(monkeypatch):
    """More of them than a private listener without the control API has connections."""
    monkeypatch.setenv("MARTLET_HTTP_CONTROL_API", "private")
    request = f"GET /v1/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: Bearer {admin_token()}\r\n\r\n"
    with running() as server, contextlib.ExitStack() as held:
        for number in range(20):
            stream = held.enter_context(socket.create_connection((server.host, server.private), PATIENCE_S))
            stream.sendall(request.encode())
            assert stream.recv(4096).startswith(b"HTTP/1.1 200 "), number
        for path in ("/healthz", "/readyz", "/metrics"):
            assert server.get_private(path)[0] == 200, path
        headers = {"Authorization": f"Bearer {admin_token()}"}
        assert server.request("GET", "/v1/rooms", None, headers, base=f"http://{server.host}:{server.private}")[0] == 200


def test_K4_prometheus_accepts_the_metrics(server):
    peer = BarePeer(server, "ops", "encoder")
    peer.check()
    assert server.api("GET", "/v1/rooms/none")[0] == 404
    status, page = server.get_private("/metrics")
    assert status == 200
    installed = ROOT / ".build/tools/promtool"
    promtool = installed if installed.exists() else "promtool"
    checked = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    families = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE ")}
    for name in ["rooms", "participants", "tracks", "subscriptions", "connections", "joins_total", "refusals_total",
                 "worker_peers", "worker_busy_seconds_total", "packets_received_total", "bytes_received_total", "packets_sent_total",
                 "packets_forwarded_total", "packets_dropped_total", "nacks_sent_total", "keyframe_requests_sent_total",
                 "http_responses_total", "http_connections", "websockets"]:
        assert f"martlet_{name}" in families, name
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"} <= families
    assert server.metric("martlet_rooms") == 1 and server.metric("martlet_packets_received_total") >= 1
    for secret in ["encoder", '"ops"', "127.0.0.1"]:
        assert secret not in page, "no names of rooms or people, no addresses"
    peer.close()


def test_C16_without_tls_or_a_proxy_other_machines_are_refused(monkeypatch):
    address = own_address()
    if not address:
        pytest.skip("this machine has no address but loopback")
    monkeypatch.setenv("MARTLET_HTTP_BIND", "0.0.0.0")
    with running() as server:
        assert "only clients on this machine are served" in server.log()
        assert server.request("GET", "/")[0] == 200
        for path in ["/", "/openapi.json", "/v1/rooms", "/v1/signal"]:
            status, _, text = server.request("GET", path, base=f"http://{address}:{server.http}")
            assert status == 403 and '"loopback_only"' in text, (path, status)
    monkeypatch.setenv("MARTLET_TRUSTED_PROXY", "true")
    with running() as server:
        assert server.request("GET", "/", base=f"http://{address}:{server.http}")[0] == 200


def martlet(*arguments, environment=None):
    done = subprocess.run([str(BINARY), *arguments], capture_output=True, text=True, timeout=20, env=environment)
    return done.returncode, done.stdout, done.stderr


def test_commands_report_what_where_and_what_to_do(server, tmp_path):
    assert martlet("version")[:2] == (0, f"martlet {server.api('GET', '/v1/node')[1]['server'].split('/')[1]}\n")
    good = tmp_path / "good.yaml"
    good.write_text(f"keys: {{app: {'k' * 32}}}\n")
    status, text, warnings = martlet("check-config", str(good))
    assert (status, text) == (0, f"{good}: valid\n")
    assert warnings.startswith("martlet: warning: only clients on this machine are served") and warnings.count("\n") == 1, warnings
    bad = tmp_path / "bad.yaml"
    bad.write_text("http:\n  port: 99999\nroms: {default: a}\nkeys: {app: short}\n")
    status, _, text = martlet("check-config", str(bad))
    assert status == 1
    lines = text.splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == [
        f"{bad}:2: http.port: '99999' is not valid; expected 0 to 65535",
        f"{bad}:3: there is no setting 'roms'; did you mean 'rooms'?",
        f"{bad}:4: keys.app: the secret has 5 bytes; HS256 needs 32: 'openssl rand -hex 32' generates one"], text
    assert martlet("serve", "--config", str(bad))[::2] == (1, text), "serve says the same, and nothing has started"
    status, text, errors = martlet("token", "--help")
    assert (status, errors) == (0, "") and text.startswith("usage: martlet token")
    taken = tmp_path / "taken.yaml"
    taken.write_text(f"http: {{bind: 127.0.0.1, port: {server.http}}}\nprivate: {{port: 0}}\n"
                     f"media: {{bind: 127.0.0.1, udp_port: 0, workers: 1}}\nkeys: {{app: {'k' * 32}}}\n")
    status, _, text = martlet("serve", "--config", str(taken))
    assert status == 1 and f"127.0.0.1:{server.http}" in text and "http.port" in text, text
    taken.write_text(f"http: {{bind: 127.0.0.1, port: 0}}\nprivate: {{port: 0}}\n"
                     f"media: {{bind: 127.0.0.1, udp_port: {server.udp}, workers: 1}}\nkeys: {{app: {'k' * 32}}}\n")
    status, _, text = martlet("serve", "--config", str(taken))
    assert status == 1 and f"UDP port {server.udp}" in text and "media.udp_port" in text, text
    status, _, text = martlet("dance")
    assert status == 2 and "usage:" in text


def test_minted_tokens_join(server):
    path = pathlib.Path(server.folder.name) / "martlet.yaml"
    status, minted, _ = martlet("token", "--config", str(path), "--identity", "ada", "--room", "lobby")
    assert status == 0

    async def run():
        async with aiohttp.ClientSession() as http:
            url = f"{server.url.replace('http', 'ws', 1)}/v1/signal?access_token={minted.strip()}"
            async with http.ws_connect(url, protocols=["martlet.v1"]) as socket:
                await socket.receive_json()
                await socket.send_json({"type": "join", "id": 1})
                joined = await socket.receive_json()
                assert joined["room"]["name"] == "lobby" and joined["participant"]["identity"] == "ada"

    asyncio.run(run())
    status, minted, _ = martlet("token", "--config", str(path), "--admin")
    assert server.request("GET", "/v1/rooms", headers={"Authorization": f"Bearer {minted.strip()}"})[0] == 200


# Reload


def hang_up(server, lines):
    """SIGHUP, and the log that follows when a line of it has one of `lines`."""
    before = len(server.log())
    server.process.send_signal(signal_module.SIGHUP)
    asyncio.run(until_true(lambda: any(one in server.log()[before:] for one in lines), PATIENCE_S, f"one of {lines} in the log"))
    return server.log()[before:]


def test_a_reload_changes_keys_limits_and_log_level_and_calls_go_on():
    server = Server().start()
    path = pathlib.Path(server.folder.name) / "martlet.yaml"
    first = path.read_text()

    async def run():
        async with signal(server, token("ada", "ops")) as ada:
            path.write_text(first.replace(f"  {KEY}: {SECRET}", f"  second: {SECRET}") + "log: {level: debug}\nrooms: {max_participants: 1}\n")
            log = await asyncio.to_thread(hang_up, server, ["was reloaded"])
            assert f"changed=rooms.max_participants, log.level, keys.{KEY}, keys.second" in log.replace('"', ""), log
            assert (await ada.request("ping"))[0]["type"] == "pong", "who is in stays"
            assert whip(server, "cam")[0] == 401, "the old key is not known any more"

    asyncio.run(run())
    status, minted, _ = martlet("token", "--config", str(path), "--identity", "a", "--room", "one")
    headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {minted.strip()}"}
    assert server.request("POST", "/whip/one", offer(), headers)[0] == 201
    status, minted, _ = martlet("token", "--config", str(path), "--identity", "b", "--room", "one")
    headers["Authorization"] = f"Bearer {minted.strip()}"
    assert server.request("POST", "/whip/one", offer(), headers)[0] == 409, "one may be in a room now"
    # A fault changes nothing, whatever else is right; what cannot change is named.
    good = path.read_text()
    path.write_text(good.replace("max_participants: 1", "max_participants: none"))
    log = hang_up(server, ["was not reloaded"])
    line = path.read_text().splitlines().index("rooms: {max_participants: none}") + 1
    assert f"{path}:{line}: rooms.max_participants: 'none' is not valid" in log, log
    assert server.request("POST", "/whip/one", offer(), headers)[0] == 409
    path.write_text(good.replace(f"port: {server.http}", "port: 1"))
    log = hang_up(server, ["was reloaded"])
    assert "http.port: has changed and is read at start only; restart the server for it" in log, log
    assert server.stop() == 0


def test_a_reload_changes_the_relays_that_clients_get_where_webhooks_may_go_and_how_many_checks_and_calls_there_may_be():
    server = Server(extra="ice_servers: [stun:127.0.0.1:9]\n").start()
    path = pathlib.Path(server.folder.name) / "martlet.yaml"
    first = path.read_text()
    hook = {"url": "http://127.0.0.1:9/hook", "secret": "0123456789abcdef0123456789abcdef"}

    def replace(extra, *changed):
        path.write_text(first.replace("ice_servers: [stun:127.0.0.1:9]\n", extra).replace("http:\n", "http:\n  api_calls_per_second: 2\n" if extra else "http:\n"))
        log = hang_up(server, ["was reloaded", "was not reloaded"]).replace('"', "")
        assert f"changed={', '.join(changed)}\n" in log, log

    def check():
        return server.request("POST", "/v1/checks", headers={"Authorization": f"Bearer {token('ada', 'ops')}"})[0]

    async def run():
        async with signal(server, token("ada", "ops")) as ada:
            assert server.api("PUT", "/v1/webhooks/inside", hook)[0] == 403
            assert check() == 201
            await asyncio.to_thread(
                replace, "ice_servers: [{urls: 'turn:127.0.0.1:9', secret: north-south-east-west}]\nwebhooks: {allow_private: true}\nrooms: {max_checks: 0}\n",
                "http.api_calls_per_second", "ice_servers", "rooms.max_checks", "webhooks.allow_private")
            told = (await ada.wait_for("iceServers"))[1]["iceServers"]
            assert [one["urls"] for one in told] == [["turn:127.0.0.1:9"]] and told[0]["credential"], "connected clients are notified"
            assert server.api("PUT", "/v1/webhooks/inside", hook)[0] in (200, 201)
            assert check() == 403
            assert 429 in [server.api("GET", "/v1/rooms")[0] for _ in range(30)], "two calls a second are fewer than thirty at once"

    asyncio.run(run())
    assert server.stop() == 0


def test_K2_a_SIGTERM_as_soon_as_a_server_is_ready_ends_it():
    """Twenty times: no signal is lost between the word "ready" and the first turn of the thread that reads signals."""
    def start(server):
        with contextlib.suppress(RuntimeError):  # It ends before `start` has seen it ready.
            server.start()

    for _ in range(20):
        server = Server()
        begun = threading.Thread(target=start, args=[server])
        begun.start()
        end = time.monotonic() + PATIENCE_S
        # The other thread may learn later than its child's log what process that is.
        while not server.log_path.exists() or "info martlet: ready" not in server.log() or not server.process:
            assert time.monotonic() < end, "it is not ready"
        server.process.terminate()
        # One that has not begun to wait for signals ends by the signal, or with the status that shells have for that.
        assert server.process.wait(10) in (0, -signal_module.SIGTERM, 128 + signal_module.SIGTERM), server.log()
        begun.join()
        server.stop()


def test_a_server_that_ends_while_it_posts_to_a_webhook_ends_with_status_0():
    """Libraries must not be taken down under the thread that posts: without `Martlet.end`, about every tenth end was a segmentation fault."""
    hook = {"url": "https://127.0.0.1:9/hook", "secret": "0123456789abcdef0123456789abcdef"}
    for _ in range(30):
        server = Server(extra="webhooks: {allow_private: true}\n").start()
        assert whip(server, "cam")[0] == 201
        assert server.api("PUT", "/v1/webhooks/inside", hook)[0] == 201
        assert server.stop() == 0, "the first event for the webhook is that the publisher left"


def test_a_renewed_certificate_is_shown_to_new_connections_and_open_ones_go_on(tmp_path):
    def certificate(name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                        "-keyout", tmp_path / "key.pem", "-out", tmp_path / "certificate.pem"], check=True, capture_output=True)

    def shown(context=ssl._create_unverified_context()):
        with socket.create_connection((server.host, server.http)) as plain, context.wrap_socket(plain) as secure:
            return secure.getpeercert(binary_form=True)

    certificate("one")
    extra = f"http.tls.certificate: {tmp_path}/certificate.pem\nhttp.tls.key: {tmp_path}/key.pem\n"
    server = Server(extra=extra).start()
    first = shown()
    with socket.create_connection((server.host, server.http)) as plain, ssl._create_unverified_context().wrap_socket(plain) as open_one:
        certificate("two")
        hang_up(server, ["was reloaded"])
        assert shown() != first
        open_one.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")
        assert open_one.recv(100).startswith(b"HTTP/1.1 200 ")
    second = shown()
    (tmp_path / "key.pem").write_text("nothing")
    assert "holds no private key" in hang_up(server, ["was not reloaded"])
    assert shown() == second
    assert server.stop() == 0


def test_the_configuration_in_force_is_shown_with_where_it_is_from(server):
    path = pathlib.Path(server.folder.name) / "martlet.yaml"
    status, text, _ = martlet("config", "show", "--config", str(path), environment={"MARTLET_LOG_LEVEL": "error"})
    lines = [re.sub(" +", " ", line) for line in text.splitlines()]
    assert status == 0 and SECRET not in text and f"keys.{KEY}: *** # {path}:" in "\n".join(lines)
    assert f"http.port: {server.http} # {path}:3" in lines and "log.level: error # MARTLET_LOG_LEVEL" in lines
    assert "media.gather_microseconds: 1000 # default" in lines


def test_a_secret_that_every_user_can_read_is_refused(tmp_path):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "martlet.yaml"
        path.write_text(f"log: {{level: info}}\nkeys: {{app: {'k' * 32}}}\n")
        path.chmod(0o644)
        status, _, text = martlet("serve", "--config", str(path))
        assert status == 1 and f"{path}:2: a secret is in a file that every user" in text and f"chmod o-rwx {path}" in text, text
        path.chmod(0o640)
        assert martlet("check-config", str(path))[0] == 0


def test_no_token_is_in_the_log_whether_it_is_good_and_however_it_is_brought():
    """At the level that writes most: in headers and queries, of WHIP, WebSockets, LiveKit's ways in, and the API."""
    with running(extra="log:\n  level: debug\n") as server:
        good, other, wrong = token("ada", "ops"), token("bob", "elsewhere"), token("eve", "ops", secret="x" * 32)
        admin = admin_token()

        async def join(access):
            async with aiohttp.ClientSession() as session:
                for address in (f"/v1/signal?access_token={access}", f"/rtc?access_token={access}&auto_subscribe=1"):
                    try:
                        async with session.ws_connect(server.url + address, protocols=["martlet.v1"], timeout=aiohttp.ClientWSTimeout(ws_close=2)) as socket:
                            await asyncio.wait_for(socket.receive(), 5)
                    except (aiohttp.ClientError, asyncio.TimeoutError):
                        pass

        for access in (good, other, wrong):
            headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {access}"}
            server.request("POST", "/whip/ops", offer(), headers)
            server.request("GET", f"/v1/rooms?access_token={access}")
            server.request("GET", f"/rtc/validate?access_token={access}")
            server.request("POST", "/twirp/livekit.RoomService/ListRooms", {}, {"Authorization": f"Bearer {access}", "Content-Type": "application/json"})
            asyncio.run(join(access))
        assert server.request("GET", "/v1/rooms", headers={"Authorization": f"Bearer {admin}"})[0] == 200
        log = server.log()
        assert "participant joined" in log, "the log is the one that is meant"
        for access in (good, other, wrong, admin):
            header, claims, signature = access.split(".")
            assert claims not in log and signature not in log
        assert SECRET not in log
