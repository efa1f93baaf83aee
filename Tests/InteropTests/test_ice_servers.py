"""ICE servers with credentials reach browsers in a form that they accept."""
import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import socket
import subprocess
import time

import aiohttp
import aiortc
import pytest

from conftest import running
from support.bare import offer
from support.chromium import SPARING, chromium, open_room, until, wait_for_video
from support.server import Server, free_ports
from support.tokens import token
from support.waiting import PATIENCE_S

TURN = """
ice_servers:
  - urls: ["turn:127.0.0.1:9", "turns:127.0.0.1:9?transport=tcp"]
    username: martlet
    credential: secret
"""


def test_a_browser_joins_and_publishes_with_a_turn_server_configured():
    """The constructor of RTCPeerConnection in Chromium throws for a TURN server without credentials."""
    server = Server(extra=TURN).start()

    async def run():
        async with chromium() as browser:
            keep = "const Kept = RTCPeerConnection; window.kept = [];" \
                   "window.RTCPeerConnection = class extends Kept { constructor(c) { super(c); window.kept.push(this); } };"
            page = await open_room(browser, server, "relayed", "Ada", script=keep)
            await until(page, "window.kept.some((peer) => peer.connectionState === 'connected')")
            servers = await page.evaluate("window.kept[0].getConfiguration().iceServers")
            assert [(one["urls"], one["username"], one["credential"]) for one in servers] == [
                (["turn:127.0.0.1:9", "turns:127.0.0.1:9?transport=tcp"], "martlet", "secret")]
            assert not page.problems

    try:
        asyncio.run(run())
    finally:
        assert server.stop() == 0


SECRET = "north-south-east-west"


@contextlib.contextmanager
def coturn(tmp_path, tls=False):
    """A TURN server on loopback that knows the secret; its port. With `tls` it speaks nothing else, under a certificate of its own making."""
    port = free_ports(1)[0]
    log = tmp_path / "turn.log"
    command = ["turnserver", "-n", "--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1", "--no-dtls", "--no-cli",
               "--realm", "martlet", "--use-auth-secret", "--static-auth-secret", SECRET, "--allow-loopback-peers", "--log-file", log, "--simple-log", "--verbose",
               "--pidfile", tmp_path / "turn.pid", "--userdb", tmp_path / "turn.db", "--min-port", "45000", "--max-port", "45999"]
    if tls:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", tmp_path / "turn.key", "-out", tmp_path / "turn.crt"], check=True, capture_output=True, timeout=20)
        command += ["--no-udp", "--no-tcp", "--tls-listening-port", str(port), "--cert", tmp_path / "turn.crt", "--pkey", tmp_path / "turn.key"]
    else:
        command += ["--listening-port", str(port), "--no-tls"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < end and process.poll() is None, log.read_text() if log.exists() else "no log"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)


RELAY_ONLY = "const Kept = RTCPeerConnection; window.kept = [];" \
             "window.RTCPeerConnection = class extends Kept { constructor(c) { super({ ...c, iceTransportPolicy: 'relay' }); window.kept.push(this); } };"
CANDIDATE = """Promise.all(window.kept.map(async (peer) => {
    const reports = await peer.getStats();
    const pair = reports.get([...reports.values()].find((one) => one.type === 'transport')?.selectedCandidatePairId);
    const local = pair && reports.get(pair.localCandidateId);
    return local ? `${local.candidateType} ${local.relayProtocol}` : '';
}))"""


def test_F10_a_browser_that_may_only_relay_plays_through_coturn_over_TLS(tmp_path):
    """What a network needs that looks into port 443. The certificate is self-signed, which the browser is set to accept."""

    async def run(server):
        async with chromium("--ignore-certificate-errors") as browser:
            await open_room(browser, server, "tls", "ada", token=token("ada", "tls"), script=RELAY_ONLY)
            bob = await open_room(browser, server, "tls", "bob", token=token("bob", "tls"), send="nothing", script=RELAY_ONLY)
            await wait_for_video(bob)
            used = [one for one in await bob.evaluate(CANDIDATE) if one]
            assert used and set(used) == {"relay tls"}, used

    with coturn(tmp_path, tls=True) as port:
        with running(extra=f'ice_servers:\n  - urls: ["turns:127.0.0.1:{port}?transport=tcp"]\n    secret: {SECRET}\n') as server:
            asyncio.run(run(server))


@pytest.mark.parametrize("transport", ["udp", pytest.param("tcp", marks=pytest.mark.at_night)])
def test_C11_F10_a_browser_that_may_only_relay_publishes_and_plays_through_coturn(tmp_path, transport):
    """The credentials come from the shared secret, and new ones arrive on the socket before they expire; these know nothing of the transport, so they are
    waited for once."""

    async def run(server):
        async with chromium() as browser:
            # They are there for three quarters of a minute, and nobody looks at their video after its first frames.
            ada = await open_room(browser, server, "far", "ada", token=token("ada", "far"), script=RELAY_ONLY + SPARING)
            bob = await open_room(browser, server, "far", "bob", token=token("bob", "far"), send="nothing", script=RELAY_ONLY)
            await wait_for_video(bob)
            for page in (ada, bob):
                used = [one for one in await page.evaluate(CANDIDATE) if one]
                assert used and set(used) == {f"relay {transport}"}, used
                before = (await page.evaluate("window.kept[0].getConfiguration().iceServers"))[0]
                expiry = int(before["username"].split(":")[0])
                assert 0 < expiry - time.time() <= 60 and "ada" not in before["username"]
                assert before["credential"] == base64.b64encode(hmac.new(SECRET.encode(), before["username"].encode(), hashlib.sha1).digest()).decode()
            # After three quarters of a minute there are new ones.
            if transport == "udp":
                await until(ada, f"Number(window.kept[0].getConfiguration().iceServers[0].username.split(':')[0]) > {expiry}", 60)
            assert ada.problems == [] and bob.problems == []

    with coturn(tmp_path) as port:
        extra = f'ice_credentials_lifetime: 60\nice_servers:\n  - urls: ["turn:127.0.0.1:{port}?transport={transport}"]\n    secret: {SECRET}\n'
        with running(extra=extra) as server:
            asyncio.run(run(server))


def test_C11_D7_credentials_are_served_by_the_API_and_in_links_for_the_tokens_key_and_room_and_refused_by_coturn_when_they_expire(tmp_path):
    async def relayed(server, port):
        """Whether aiortc gets a relayed address with these credentials."""
        gatherer = aiortc.RTCIceGatherer([aiortc.RTCIceServer(urls=server["urls"][0], username=server["username"], credential=server["credential"])])
        try:
            await asyncio.wait_for(gatherer.gather(), PATIENCE_S)
        except Exception as refusal:  # noqa: BLE001: aioice has one exception for all answers of a TURN server.
            assert "401" in str(refusal), repr(refusal)
            return False
        return any(candidate.type == "relay" for candidate in gatherer.getLocalCandidates())

    with coturn(tmp_path) as port:
        turn = f"turn:127.0.0.1:{port}?transport=udp"
        other = "0123456789abcdef0123456789abcdef"
        paged, page = "stun:127.0.0.1:9", {"Origin": "https://a.example"}
        # The first line goes on with the keys that every server of the tests has.
        extra = f'  app: {other}\nice_servers:\n  - urls: ["{turn}"]\n    secret: {SECRET}\n    rooms: ["far-*"]\n  - stun:127.0.0.1:{port}\n' \
                f'  - urls: ["{paged}"]\n    origins: ["{page["Origin"]}"]\n    keys: [app]\n'
        with running(extra=extra) as server:
            def servers(access, query=""):
                status, _, text = server.request("GET", f"/v1/ice-servers{query}", headers={"Authorization": f"Bearer {access}"})
                return status, json.loads(text)

            status, told = servers(token("ada", "far-1"))
            assert status == 200 and told["lifetimeSeconds"] == 3600 and [one["urls"] for one in told["iceServers"]] == [[turn], [f"stun:127.0.0.1:{port}"]]
            assert [one["urls"] for one in servers(token("ada", "near"))[1]["iceServers"]] == [[f"stun:127.0.0.1:{port}"]]
            assert servers(token("ada", "near"), "?room=far-1") == (403, {**servers(token("ada", "near"), "?room=far-1")[1], "code": "room_mismatch"})
            assert servers(token("ada", "far-1", roomJoin=False))[0] == 403
            assert servers(token("ada", "far-1", lifetime_s=-120)) == (401, {**servers(token("ada", "far-1", lifetime_s=-120))[1], "code": "token_expired"})

            def links(path, sdp, access, **headers):
                status, headers, _ = server.request("POST", path, sdp, {"Authorization": f"Bearer {access}", "Content-Type": "application/sdp", **headers})
                assert status == 201, (path, status)
                return headers.get_all("Link")

            async def hello(access, **headers):
                async with aiohttp.ClientSession() as http, http.ws_connect(
                        f"{server.url}/v1/signal", protocols=["martlet.v1"], headers={"Authorization": f"Bearer {access}", **headers}) as socket:
                    return json.dumps((await socket.receive_json())["iceServers"])

            publishes, plays = offer(), offer().replace("sendonly", "recvonly")
            for path, sdp in ("/whip/far-1", publishes), ("/whep/far-1/cam", plays):
                found = links(path, sdp, token("cam" if sdp == publishes else "tv", "far-1"))
                assert any(turn in link and 'rel="ice-server"' in link and "credential=" in link for link in found), found
            # To the pages of an origin, with tokens of a key.
            for access, headers, expected in [
                    (token("eve", "far-1", key="app", secret=other), page, True), (token("eve", "far-1", key="app", secret=other), {}, False),
                    (token("eve", "far-1", key="app", secret=other), {"Origin": "https://b.example"}, False), (token("eve", "far-1"), page, False)]:
                status, _, text = server.request("GET", "/v1/ice-servers", headers={"Authorization": f"Bearer {access}", **headers})
                found = [text, asyncio.run(hello(access, **headers)), str(links("/whep/far-1/cam", plays, access, **headers)), str(links("/whip/far-1", publishes, access, **headers))]
                assert status == 200 and [paged in one for one in found] == [expected] * 4, (headers, found)
            good = told["iceServers"][0]
            assert asyncio.run(relayed(good, port))
            # The server makes none that expire so soon (ice_credentials_lifetime is a minute at least), but just these.
            def expiring(seconds):
                name = f"{int(time.time()) + seconds}:{good['username'].split(':')[1]}"
                return {**good, "username": name, "credential": base64.b64encode(hmac.new(SECRET.encode(), name.encode(), hashlib.sha1).digest()).decode()}

            assert asyncio.run(relayed(expiring(30), port)), "good until then"
            assert not asyncio.run(relayed(expiring(-2), port)), "and refused afterwards"
