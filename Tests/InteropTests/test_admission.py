"""A server that is at its limit: joins are refused with a time to come back, and calls that are up lose nothing."""
import asyncio
import contextlib
import itertools
import json
import pathlib
import sys
import time

import aiohttp
import pytest

from conftest import running
from support.aiortc_client import Client, MovingPicture, Tone
from support.bare import offer
from support.server import Server
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S, standstills, until_true

pytestmark = pytest.mark.judging

FLOOD = pathlib.Path(__file__).parent / "support/flood.py"


def publish(server, identity, room):
    headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token(identity, room)}"}
    return server.request("POST", f"/whip/{room}", offer(), headers)


@contextlib.asynccontextmanager
async def flooded(server):
    """Datagrams of unknown sources meanwhile, however long a slow machine takes for what is asked under them."""
    flood = await asyncio.create_subprocess_exec(
        sys.executable, FLOOD, server.host, str(server.udp), "garbage", "50000", "100", stdout=asyncio.subprocess.DEVNULL)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            flood.terminate()
        await flood.wait()


def test_K3_a_server_that_is_busy_refuses_joins_and_keeps_its_calls():
    """Datagrams of unknown sources keep the media thread busy beyond a limit that is set low."""
    async def run(server):
        sender = await Client().publish(f"{server.url}/whip/calm", token("phone", "calm"), MovingPicture(320, 180), Tone())
        await sender.connected()
        player = await Client().play(f"{server.url}/whep/calm/phone", token("tv", "calm"))
        await player.wait_for_frames(video=10)
        # The time of a turn counts that in which the thread had no processor: the join of the player may have looked like a load.
        await until_true(lambda: server.metric("martlet_load") < 1, PATIENCE_S, "an idle server")
        async with signal(server, token("ada", "calm")), standstills() as still:
            await until_true(lambda: server.metric("martlet_load") < 1, PATIENCE_S, "an idle server")
            started, missing = time.monotonic(), player.tap.missing()
            async with flooded(server):
                # Each another one: who is in may join anew.
                names = (f"cam-{number}" for number in itertools.count())
                await until_true(lambda: publish(server, next(names), "new")[0] == 503, PATIENCE_S, "the refusal of one more")
                full = time.monotonic() - started
                for room in ("calm", "new", "newer"):
                    status, headers, text = publish(server, "late", room)
                    assert (status, json.loads(text)["code"], headers["Retry-After"]) == (503, "overloaded", "10"), (status, text)
                    assert "(cpu)" in json.loads(text)["detail"]
                try:
                    async with signal(server, token("bob", "calm")):
                        raise AssertionError("bob came in")
                except AssertionError as refused:
                    assert "'code': 'overloaded'" in str(refused) and "'retryAfter': 10" in str(refused), refused
                # LiveKit's clients in browsers cannot read the status of the refused socket, and ask for the reason.
                access = f"access_token={token('bob', 'calm')}"
                async with aiohttp.ClientSession() as http:
                    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                        await http.ws_connect(f"{server.url}/rtc?{access}")
                asked, headers, text = server.request("GET", f"/rtc/validate?{access}")
                assert refused.value.status == asked == 503 and refused.value.headers["Retry-After"] == headers["Retry-After"] == "10" and "(cpu)" in text, text
                assert server.metric("martlet_load") == 1 and server.metric("martlet_ready") == 1, "not ready would end the calls that are up"
                async with signal(server, token("ada", "calm")):
                    pass
                # For so long at least the call has to bear it.
                await asyncio.sleep(max(0, started + 9 - time.monotonic()))
            await until_true(lambda: publish(server, "late", "calm")[0] == 201, PATIENCE_S, "the admission after the flood")
            # While this process waits for the server's answers it reads no packets.
            silences = [player.tap.longest_silence(started, ssrc, still) for ssrc in player.tap.rtp]
            print(f"figures: refused {full:.1f} s after the flood began, admitted {time.monotonic() - started:.1f} s after; "
                  f"call: {player.tap.missing() - missing} missing, silences of {[round(one * 1000) for one in silences]} ms")
            assert player.tap.missing() == missing and max(silences) < 2
        for client in (player, sender):
            await client.close()

    # By its processor alone: 100 % of drops is no limit.
    with running(extra="admission: {max_cpu: 5, max_socket_drops: 100}\n") as server:
        asyncio.run(run(server))


def test_K3_bandwidth_and_open_files_have_limits_of_their_own():
    async def run(server):
        sender = await Client().publish(f"{server.url}/whip/calm", token("phone", "calm"), MovingPicture(), Tone())
        await sender.connected()
        # All at once: what two of them are sent may be close to the limit.
        players = await asyncio.gather(*(Client().play(f"{server.url}/whep/calm/phone", token(f"tv-{number}", "calm")) for number in range(3)))
        for player in players:
            await player.wait_for_frames(video=10)
        missing = [player.tap.missing() for player in players]
        started = time.monotonic()
        await until_true(lambda: 'martlet_load_share{resource="bandwidth"} 1\n' in server.get_private("/metrics")[1], PATIENCE_S, "three players' bandwidth")
        status, headers, text = publish(server, "late", "calm")
        assert (status, headers["Retry-After"]) == (503, "10") and "(bandwidth)" in json.loads(text)["detail"], text
        print(f"figures: {8 * server.metric('martlet_bandwidth_out_bytes_per_second'):,.0f} bit/s, refused {time.monotonic() - started:.1f} s after the video began")
        played = [player.frames["video"] for player in players]
        for player, frames in zip(players, played):
            await player.wait_for_frames(video=frames + 10)
        assert [player.tap.missing() for player in players] == missing, "calls that are up lose nothing"
        for client in (*players, sender):
            await client.close()

    with running(extra="admission: {max_bandwidth_out: 1000000}\n") as server:
        asyncio.run(run(server))
    # 1 % of 1,000 files is less than any server has open.
    server = Server(extra="admission: {max_open_files: 1, max_bandwidth_out: 1000000}\n", nofile=1_000).start()
    asyncio.run(until_true(lambda: server.metric("martlet_load") == 1, PATIENCE_S, "a sample"))
    status, _, text = publish(server, "cam", "new")
    assert status == 503 and "(open_files)" in json.loads(text)["detail"]
    page = server.get_private("/metrics")[1]
    assert 'martlet_load_share{resource="bandwidth"} 0' in page and 'martlet_overload_refusals_total{resource="open_files"} 1' in page
    assert server.stop() == 0
