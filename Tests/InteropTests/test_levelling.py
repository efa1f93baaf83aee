"""Packets that the server padded to one length (media.level_sizes): browsers must decode them as if they were not."""
import asyncio

import pytest

from conftest import running
from support.chromium import chromium, open_room, received, until, wait_for_video, room_address
from support.firefox import firefox

HEARS = "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0))"
SEES = "martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.framesDecoded > 90))"
PADDED = "martlet_packets_padded_total"


async def enough_padding(server, wanted=10, timeout_s=90):
    """A frame that breaks does so with the first padded packet, so ten prove as much as thirty. On an idle machine one a second is padded, of which thirty once took
    more than 30 s; on a busy one dozens are."""
    for _ in range(timeout_s * 5):
        if server.metric(PADDED) >= wanted:
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"only {server.metric(PADDED)} packets were padded")


@pytest.mark.judging
@pytest.mark.parametrize("codec", ["VP8", *(pytest.param(codec, marks=pytest.mark.at_night) for codec in ("H264", "VP9"))])
def test_chromium_decodes_padded_packets(server, codec):
    """Not AV1: the page's video takes so few packets that hardly any is padded, so this would prove nothing."""
    async def run():
        async with chromium() as browser:
            await open_room(browser, server, codec, "ada", codec=codec)
            bob = await open_room(browser, server, codec, "bob", send="nothing")
            # For one viewer alone the server does not wait for the rest of a picture, and what leaves one by one is not padded.
            await open_room(browser, server, codec, "cy", send="nothing")
            await wait_for_video(bob)
            await enough_padding(server)
            before = (await wait_for_video(bob))[0]["framesDecoded"]
            stats = (await wait_for_video(bob, frames=before + 60))[0]
            assert stats["codec"] == f"video/{codec}"
            assert stats["packetsLost"] == 0
            assert (await received(bob)) and not bob.problems
            await until(bob, HEARS)

    asyncio.run(run())


@pytest.mark.at_night
@pytest.mark.parametrize("codec", ["VP8", "VP9"])
def test_firefox_decodes_padded_packets(development_server, codec):
    """Not H.264: Debian's Firefox downloads its decoder from the internet."""
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox:
            await open_room(browser, server, "padded", "ada", codec=codec)
            await open_room(browser, server, "padded", "bob", send="nothing")
            await fox.open(room_address(server, "padded", "fox", send="nothing"))
            await fox.wait_for(SEES, 40)
            await enough_padding(server)
            await fox.wait_for(SEES.replace("90", "240"), 40)
            await fox.wait_for(HEARS)

    asyncio.run(run())


def test_levelling_can_be_switched_off():
    async def run(server):
        async with chromium() as browser:
            await open_room(browser, server, "plain", "ada")
            bob = await open_room(browser, server, "plain", "bob", send="nothing")
            await wait_for_video(bob, frames=60)
            assert server.metric(PADDED) == 0

    with running(media={"level_sizes": "false"}) as server:
        asyncio.run(run(server))
