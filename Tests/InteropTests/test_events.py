"""What happens in rooms is reported: as server-sent events, and to webhooks whose receivers and whose server die."""
import asyncio
import base64
import hashlib
import hmac
import json
import socket
import statistics
import threading
import time
import urllib.request

import aiohttp
import jwt
import pytest

from conftest import running
from support.bare import offer
from support.receiver import Receiver
from support.signalling import signal
from support.tokens import KEY, SECRET, admin_token, token
from support.waiting import PATIENCE_S
from test_bad_input import call

HOOK_SECRET = "a secret of this webhook"


def until(condition, what, timeout_s=PATIENCE_S):
    """Waits for what other threads bring."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        time.sleep(0.01)


class Stream:
    """A reader of server-sent events in a thread of its own."""

    def __init__(self, server, path, last=None):
        headers = {"Authorization": f"Bearer {admin_token()}", "Accept": "text/event-stream"}
        if last:
            headers["Last-Event-ID"] = last
        self.reply = urllib.request.urlopen(urllib.request.Request(server.url + path, headers=headers), timeout=60)
        assert self.reply.headers["Content-Type"] == "text/event-stream"
        self.events = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        fields = {}
        try:
            for raw in self.reply:
                line = raw.decode().rstrip("\n")
                if line:
                    name, _, value = line.partition(":")
                    fields[name] = value.strip()
                elif "data" in fields:
                    self.events.append((fields.get("id"), fields["event"], json.loads(fields["data"]), time.monotonic()))
                    fields = {}
        except (OSError, ValueError):
            pass

    def close(self):
        # The socket, not the file: another thread reads from it.
        self.reply.fp.raw._sock.shutdown(2)
        self.thread.join(5)

    def types(self):
        return [type for _, type, _, _ in self.events]


def make_and_end(server, name):
    assert server.api("POST", "/v1/rooms", {"name": name})[0] == 201
    assert server.api("PUT", f"/v1/rooms/{name}/lock", {})[0] == 200
    assert server.api("DELETE", f"/v1/rooms/{name}")[0] in (200, 204)


def test_I4_a_stream_goes_on_where_the_last_one_ended():
    with running() as server:
        first = Stream(server, "/v1/rooms/talk/events")
        make_and_end(server, "talk")
        make_and_end(server, "other")
        until(lambda: len(first.events) == 3, "three events")
        assert first.types() == ["roomStarted", "lockChanged", "roomEnded"]
        assert [event["sequence"] for _, _, event, _ in first.events] == [1, 2, 3]
        last = first.events[0][0]
        first.close()
        make_and_end(server, "talk")
        second = Stream(server, "/v1/rooms/talk/events", last)
        until(lambda: len(second.events) == 5, "five events")
        assert second.types() == ["lockChanged", "roomEnded", "roomStarted", "lockChanged", "roomEnded"]
        assert [event["room"] for _, _, event, _ in second.events] == ["talk"] * 5
        every = Stream(server, "/v1/events?after=0")
        until(lambda: len(every.events) == 9, "nine events")
        headers = {"Authorization": f"Bearer {admin_token()}", "Accept": "application/json"}
        page = json.loads(server.request("GET", "/v1/events?after=0&limit=4", None, headers)[2])
        assert [event["id"] for event in page["events"]] == [id for id, *_ in every.events[:4]]
        foreign = Stream(server, "/v1/events", "zzz-7")
        until(lambda: foreign.events, "an event")
        assert foreign.types()[0] == "eventsMissed", "the id is of another server's life"
        # A server that stops ends its streams.
        stream = every
    stream.thread.join(PATIENCE_S)
    assert not stream.thread.is_alive()


def test_I4_a_web_socket_brings_what_the_stream_brings_and_goes_on_where_the_last_one_ended():
    """Also a past that is larger than what the server would queue for a socket; and who may not see it is refused before the upgrade."""

    async def follow(server, path, count, access=None):
        headers = {"Authorization": f"Bearer {access or admin_token()}"}
        async with aiohttp.ClientSession() as http, http.ws_connect(
                server.url.replace("http", "ws", 1) + path, protocols=["martlet.events.v1"], headers=headers) as socket:
            assert socket.protocol == "martlet.events.v1"
            begin = time.monotonic()
            if not count:
                await asyncio.to_thread(make_and_end, server, "live")
                count = 3
            return [json.loads((await socket.receive(PATIENCE_S)).data) for _ in range(count)], time.monotonic() - begin

    with running() as server:
        for index in range(800):
            make_and_end(server, f"room-{index}")
        page, after = [], "0"
        while len(page) < 2400:
            headers = {"Authorization": f"Bearer {admin_token()}", "Accept": "application/json"}
            found = json.loads(server.request("GET", f"/v1/events?after={after}&limit=1000", None, headers)[2])
            page, after = page + found["events"], found["next"]
        past, took = asyncio.run(follow(server, "/v1/events?after=0", 2400))
        print(f"figures: 2,400 past events in {took:.2f} s")
        assert past == page
        rest, _ = asyncio.run(follow(server, f"/v1/events?after={past[2000]['id']}", 399))
        assert rest == page[2001:]
        one, _ = asyncio.run(follow(server, "/v1/rooms/room-7/events?after=0", 3))
        assert [event["type"] for event in one] == ["roomStarted", "lockChanged", "roomEnded"]
        live, _ = asyncio.run(follow(server, "/v1/rooms/live/events", 0))
        assert [event["sequence"] for event in live] == [1, 2, 3]
        missed, _ = asyncio.run(follow(server, "/v1/events?after=zzz-7", 1))
        assert missed == [{"type": "eventsMissed"}]
        for path, access, status in [("/v1/events", token("m", "talk", roomAdmin=True), 403), ("/v1/events?after=x", None, 400),
                                     ("/v1/rooms/talk/events", token("m", "talk"), 403)]:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                asyncio.run(follow(server, path, 1, access))
            assert refused.value.status == status, path


def test_I4_every_event_arrives_in_order_although_the_receiver_and_the_server_are_killed(tmp_path):
    """The receiver is away for 30 s; the server is killed in between. Doubles are recognised by their ids; nothing is missing."""
    receiver = Receiver()
    storage = f"storage:\n  path: {tmp_path / 'martlet.db'}\nwebhooks:\n  allow_private: true\n"
    with running(extra=storage) as server:
        hook = {"url": receiver.url, "secret": HOOK_SECRET}
        assert server.api("PUT", "/v1/webhooks/billing", hook)[0] == 201
        status, shown = server.api("GET", "/v1/webhooks/billing")
        assert status == 200 and HOOK_SECRET not in json.dumps(shown)
        begun = time.monotonic()
        make_and_end(server, "before")
        until(lambda: len(receiver.events) == 3, "three posts")
        print(f"figures: the first events arrived {receiver.requests[2][0] - begun:.3f} s after their cause")
        receiver.kill()
        killed = time.monotonic()
        for number in range(5):
            make_and_end(server, f"away{number}")
        until(lambda: server.api("GET", "/v1/webhooks/billing")[1]["state"] == "failing", "failing")
        # A call is answered when its events are in the database: nothing is waited for.
        make_and_end(server, "last")
        server.kill()
        server.start()
        assert server.api("GET", "/v1/webhooks/billing")[1]["queued"] == 18
        make_and_end(server, "after")
        time.sleep(max(0, killed + 30 - time.monotonic()))
        receiver.revive()
        back = time.monotonic()
        # The server stopped trying often: it comes back within its longest wait.
        until(lambda: len({event["id"] for event in receiver.events}) == 24, "all 24 events", 75)
        print(f"figures: all 24 events were there {time.monotonic() - back:.1f} s after the receiver was")
        ids = [event["id"] for event in receiver.events]
        print(f"figures: {len(ids) - len(set(ids))} doubles")
        for room in ["before", *(f"away{number}" for number in range(5)), "last", "after"]:
            mine = [event for event in receiver.events if event["room"] == room]
            distinct = list(dict.fromkeys(event["sequence"] for event in mine))
            assert distinct == [1, 2, 3], (room, distinct)
        for _, headers, body in receiver.requests:
            parts = dict(part.split("=", 1) for part in headers["Martlet-Signature"].split(","))
            signed = parts["t"].encode() + b"." + body
            assert parts["v1"] == hmac.new(HOOK_SECRET.encode(), signed, hashlib.sha256).hexdigest()
            assert headers["Martlet-Event-Id"] == json.loads(body)["id"]
        until(lambda: server.api("GET", "/v1/webhooks/billing")[1]["state"] == "active", "active")
        assert HOOK_SECRET not in server.log()
        assert server.api("DELETE", "/v1/webhooks/billing")[0] == 204
        assert server.api("GET", "/v1/webhooks")[1] == {"webhooks": []}
    receiver.kill()


def test_I4_receivers_that_never_answer_cost_a_call_no_packet_and_lose_no_event():
    """Eight receivers take connections and say nothing, while 300 events happen beside a call: all wait, in a queue for each."""
    hooks, rooms = 8, 100

    async def run(server):
        deaf = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{deaf.sockets[0].getsockname()[1]}/hook"
        async with deaf:
            async with call(server):
                for number in range(hooks):
                    hook = {"url": url, "secret": HOOK_SECRET, "rooms": [f"busy-{one}" for one in range(rooms)]}
                    assert (await asyncio.to_thread(server.api, "PUT", f"/v1/webhooks/deaf-{number}", hook))[0] == 201
                begun = time.monotonic()
                for number in range(rooms):
                    await asyncio.to_thread(make_and_end, server, f"busy-{number}")
                spent = time.monotonic() - begun
            for number in range(hooks):
                shown = (await asyncio.to_thread(server.api, "GET", f"/v1/webhooks/deaf-{number}"))[1]
                assert (shown["queued"], shown["delivered"], shown["lost"]) == (3 * rooms, 0, 0), shown
            print(f"figures: {3 * rooms} calls of the API in {spent:.1f} s beside {hooks} receivers that never answer")

    with running(extra="webhooks:\n  allow_private: true\n") as server:
        asyncio.run(run(server))


def test_webhooks_signed_by_an_api_key_carry_a_token_that_a_foreign_library_verifies():
    receiver = Receiver()
    with running(extra="webhooks:\n  allow_private: true\n") as server:
        assert server.api("PUT", "/v1/webhooks/lk", {"url": receiver.url, "key": KEY, "events": ["roomEnded"]})[0] == 201
        make_and_end(server, "keyed")
        until(lambda: receiver.requests, "a post")
        _, headers, body = receiver.requests[0]
        claims = jwt.decode(headers["Authorization"], SECRET, algorithms=["HS256"])
        assert claims["iss"] == KEY and claims["sha256"] == base64.b64encode(hashlib.sha256(body).digest()).decode()
        assert [event["type"] for event in receiver.events] == ["roomEnded"]
    receiver.kill()


def test_webhooks_to_private_receivers_are_refused_unless_they_are_allowed():
    receiver = Receiver()
    with running() as server:
        for url in [receiver.url, "http://localhost:1/", "http://[::1]/", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd"]:
            status, problem = server.api("PUT", "/v1/webhooks/inside", {"url": url, "secret": HOOK_SECRET})
            assert (status, problem["code"]) == ((400, "invalid_request") if url.startswith("file") else (403, "private_address")), url
        # What only shows when it is resolved: the machine's own name, and other ways to write 127.0.0.1.
        for host in [socket.gethostname(), "0x7f000001", "2130706433", "127.1"]:
            hook = {"url": f"http://{host}:{receiver.port}/hook", "secret": HOOK_SECRET}
            assert server.api("PUT", "/v1/webhooks/named", hook)[0] in (200, 201)
            make_and_end(server, "probe")
            until(lambda: "allow_private" in server.api("GET", "/v1/webhooks/named")[1].get("lastError", ""), host)
        assert receiver.requests == []
    receiver.kill()


@pytest.mark.judging
def test_B16_a_muted_track_is_reported_to_webhooks_and_streams():
    """The medians of five: one alone would be the machine's."""
    receiver = Receiver()

    async def run(server, stream):
        waits = []
        async with signal(server, token("ada", "show"), room="show") as ada:
            for number in range(5):
                ada.events.clear()
                headers = {"Authorization": f"Bearer {token(f'cam-{number}', 'show')}", "Content-Type": "application/sdp"}
                assert server.request("POST", "/whip/show", offer(), headers)[0] == 201
                track = (await ada.wait_for("trackPublished"))[1]["track"]["sid"]

                def is_mute(event):
                    return event["type"] == "trackMuted" and event["track"]["sid"] == track

                begun = time.monotonic()
                assert server.api("POST", f"/v1/rooms/show/tracks/{track}/mute", {"muted": True})[0] == 200
                until(lambda: any(is_mute(event) for _, _, event, _ in stream.events), "the event")
                until(lambda: any(is_mute(event) for event in receiver.events), "the post")
                at = next(when for _, _, event, when in stream.events if is_mute(event))
                posted, event = next((when, event) for when, event in ((when, json.loads(body)) for when, _, body in receiver.requests) if is_mute(event))
                waits.append((at - begun, posted - begun))
                assert event["identity"] == f"cam-{number}" and event["track"]["muted"] is True
        print("figures: " + ", ".join(f"stream after {at * 1000:.0f} ms, webhook after {posted * 1000:.0f} ms" for at, posted in waits))
        assert all(statistics.median(one) < 0.3 for one in zip(*waits)), waits

    with running(extra="webhooks:\n  allow_private: true\n") as server:
        assert server.api("PUT", "/v1/webhooks/all", {"url": receiver.url, "secret": HOOK_SECRET})[0] == 201
        stream = Stream(server, "/v1/rooms/show/events")
        asyncio.run(run(server, stream))
    receiver.kill()


def test_C14_a_client_that_never_connects_is_reported_with_its_candidates():
    """C14: nothing ever arrives from the client's two addresses (192.0.2.0/24 is for documentation, RFC 5737); the event counts both sides' candidates."""
    candidates = ["1 1 udp 2122260223 192.0.2.10 50000 typ host", "2 1 udp 1686052607 192.0.2.20 50001 typ srflx raddr 192.0.2.10 rport 50000"]
    with running() as server:
        stream = Stream(server, "/v1/rooms/lost/events")
        headers = {"Authorization": f"Bearer {token('cam', 'lost')}", "Content-Type": "application/sdp"}
        assert server.request("POST", "/whip/lost", offer(candidates=candidates), headers)[0] == 201
        until(lambda: "participantLeft" in stream.types(), "the end of the stay", 60)
        failed = next(event for _, type, event, _ in stream.events if type == "iceFailed")
        left = next(event for _, type, event, _ in stream.events if type == "participantLeft")
        assert failed["clientCandidates"] == "1 host, 1 reflexive" and failed["serverCandidates"] == "1 host, 1 TCP", failed
        assert left["identity"] == "cam" and left["hasConnected"] is False and left["reason"] == "connection_lost"
        assert [event["sequence"] for _, _, event, _ in stream.events] == list(range(1, len(stream.events) + 1))
