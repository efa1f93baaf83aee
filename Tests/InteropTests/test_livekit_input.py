"""Bad input on LiveKit's signalling sockets while a call is up: the socket closes with a code, and nobody else notices."""
import asyncio
import contextlib
import pathlib
import random
import re
import time

import aiohttp
from conftest import running
from livekit.protocol import rtc as signals
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S, until_true
from test_bad_input import SEED, bare_socket, call, close_code, frame

BINARY = 2


@contextlib.asynccontextmanager
async def member(http, server, identity):
    """A socket of LiveKit's first signalling version (`/rtc`), past its join."""
    url = f"{server.url.replace('http', 'ws', 1)}/rtc"
    query = {"access_token": token(identity, "call"), "protocol": "15", "auto_subscribe": "0"}
    async with http.ws_connect(url, params=query) as ws:
        assert signals.SignalResponse.FromString(await ws.receive_bytes(timeout=PATIENCE_S)).WhichOneof("message") == "join"
        yield ws


async def answers(ws, number):
    """Whether the socket answers a ping, past what it says beside; the code with which it was closed otherwise."""
    await ws.send_bytes(signals.SignalRequest(ping_req=signals.Ping(timestamp=number)).SerializeToString())
    while True:
        message = await ws.receive(timeout=PATIENCE_S)
        if message.type is not aiohttp.WSMsgType.BINARY:
            return ws.close_code
        response = signals.SignalResponse.FromString(message.data)
        if response.WhichOneof("message") == "pong_resp" and response.pong_resp.last_ping_timestamp == number:
            return True


def requests():
    """One of each kind, as clients send them."""
    track = signals.AddTrackRequest(cid="c", name="camera", type=1, source=1, width=640, height=360)
    yield signals.SignalRequest(add_track=track)
    yield signals.SignalRequest(subscription=signals.UpdateSubscription(track_sids=["TR_1", "TR_2"], subscribe=True))
    yield signals.SignalRequest(track_setting=signals.UpdateTrackSettings(track_sids=["TR_1"], width=320, height=180))
    yield signals.SignalRequest(offer=signals.SessionDescription(type="offer", sdp="v=0\r\n", id=1))
    yield signals.SignalRequest(trickle=signals.TrickleRequest(candidateInit='{"candidate":"candidate:1 1 udp 1 127.0.0.1 9 typ host"}'))
    yield signals.SignalRequest(update_metadata=signals.UpdateParticipantMetadata(name="n", attributes={"a": "b"}, request_id=3))
    yield signals.SignalRequest(subscription_permission=signals.SubscriptionPermission(
        track_permissions=[signals.TrackPermission(participant_identity="x", track_sids=["TR_1"])]))


def test_changed_frames_are_skipped_or_close_their_socket(server):
    """100 requests with bytes changed, cut or doubled: each socket goes on, or is closed as `not a SignalRequest`; a call loses nothing."""
    async def run():
        dice, kinds, closed = random.Random(SEED), [one.SerializeToString() for one in requests()], 0
        async with call(server), aiohttp.ClientSession() as http:
            for number in range(100):
                async with member(http, server, f"m{number}") as ws:
                    data = bytearray(dice.choice(kinds))
                    for _ in range(dice.randint(1, 3)):
                        data[dice.randrange(len(data))] = dice.randrange(256)
                    await ws.send_bytes(bytes(data[:dice.randint(1, len(data))] if dice.random() < 0.3 else data * dice.randint(1, 2)))
                    state = await answers(ws, number + 1)
                    # 1000: a changed request that was `leave`, or an offer that cannot be answered.
                    assert state in (True, 1007, 1000), state
                    closed += state is not True
            async with member(http, server, "text") as ws:
                await ws.send_str("{}")
                assert await answers(ws, 1) == 1003
            async with member(http, server, "large") as ws:
                await ws.send_bytes(bytes(560 * 1024 + 1))
                assert await answers(ws, 1) == 1009
        assert 0 < closed < 100, "neither all nor none of them are good frames"
        print(f"figures: seed {SEED}, {closed} of 100 sockets closed")

    asyncio.run(run())


def test_floods_of_signals_close_their_socket_and_long_lists_count_as_many(server):
    """100,000 pings at once, and 1,000 frames of 300 track ids each: 1008; the others in the room are served meanwhile."""
    async def run():
        async with call(server), aiohttp.ClientSession() as http, member(http, server, "good") as good, \
                signal(server, token("page", "call"), room="call") as page:
            query = f"/rtc?access_token={token('evil', 'call')}&protocol=15&auto_subscribe=0"
            ping = signals.SignalRequest(ping_req=signals.Ping(timestamp=1)).SerializeToString()
            ids = [f"{number:x}" for number in range(300)]
            listed = signals.SignalRequest(track_setting=signals.UpdateTrackSettings(track_sids=ids)).SerializeToString()
            for what, data in (("pings", frame(ping, opcode=BINARY) * 100_000), ("lists", frame(listed, opcode=BINARY) * 1_000)):
                reader, writer = await bare_socket(server, path=query, protocol=None)
                started = time.monotonic()
                writer.write(data)
                code = asyncio.create_task(close_code(reader))
                served = 0
                while not code.done():
                    served += 1
                    assert await answers(good, served) is True
                    await page.request("ping")
                    await asyncio.sleep(0.02)
                assert await code == 1008, what
                print(f"figures: {what}: closed after {time.monotonic() - started:.2f} s, others served {served} times meanwhile")
                writer.close()
            assert await answers(good, 1_000) is True

    asyncio.run(run())


def test_a_socket_that_falls_silent_ends_its_session():
    """A client that vanishes without a FIN, and sends no ping any more: its session is detached and ends, as on martlet.v1."""
    async def run(server):
        _, writer = await bare_socket(server, path=f"/rtc?access_token={token('gone', 'call')}&protocol=15", protocol=None)

        def left():
            # A second session in the room would have to ping as often, on a machine that may keep it waiting.
            return [one for one in server.api("GET", "/v1/events?after=0", headers={"Accept": "application/json"})[1]["events"] if one["type"] == "participantLeft"]

        await until_true(left, PATIENCE_S, "the session of the silent socket ends")
        assert [(one["identity"], one["reason"]) for one in left()] == [("gone", "timeout")], left()
        writer.close()

    with running(extra="sessions: {keep_alive: 3, resume_window: 1}\n") as server:
        asyncio.run(run(server))


def test_the_page_of_scenarios_lists_every_test_with_the_real_sdks():
    """And no test that does not exist."""
    folder = pathlib.Path(__file__).parent
    listed = set(re.findall(r"`(\w+\.py)::(test_\w+)`", (folder / "livekit.md").read_text()))
    found = {(file.name, name) for file in folder.glob("*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}
    assert listed <= found, listed - found
    files = [file.name for file in folder.glob("nightly_livekit*.py")] + ["test_livekit.py", "test_livekit_js.py", "test_livekit_egress.py"]
    assert {(file, name) for file, name in found if file in files} <= listed
