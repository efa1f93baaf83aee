"""People meet through the console page, each in a real browser."""
import asyncio
import json

import pytest

from support.chromium import SAME_SIZE, chromium, open_room, received, room_address, stands_still, until, wait_for_video
from support.firefox import firefox

HEARS = "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0))"
SEES = "martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.framesDecoded > 15))"


#: Who leaves is gone sooner than who lost the socket, who is waited for for 30 s (`sessions.resume_window`).
GONE_S = 25


async def moving_pixels(page):
    """The remote picture is not black, and it moves."""
    await until(page, "Object.values(martlet.pixels()).some(Boolean)")
    first = json.dumps(await page.evaluate("JSON.stringify(martlet.pixels())"))
    await until(page, f"JSON.stringify(martlet.pixels()) !== {first}")


async def packets_of_video(page):
    return sum(r["packetsReceived"] for r in await received(page) if r["kind"] == "video")


def test_two_chromium_pages_receive_each_other(server):
    """Decoded frames, moving pixels, audio energy; and a normal call leaves no warning in the log."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "lobby", "ada")
            bob = await open_room(browser, server, "lobby", "bob")
            for page in (ada, bob):
                await wait_for_video(page)
                await until(page, HEARS)
                await moving_pixels(page)
            # The server notified both of the first packet of each track.
            await until(bob, "martlet.room.started.size === 2")
            assert not ada.problems and not bob.problems

    start = len(server.log())
    asyncio.run(run())
    call = server.log()[start:]
    assert "participant joined" in call and " warning " not in call
    assert "connection moved" not in call, "settling on a candidate is no move"


@pytest.mark.parametrize("codec", [pytest.param("VP8", marks=pytest.mark.at_night), "H264", "VP9", "AV1"])
def test_each_video_codec_goes_from_chromium_to_chromium(server, codec):
    async def run():
        async with chromium() as browser:
            await open_room(browser, server, codec, "ada", codec=codec)
            bob = await open_room(browser, server, codec, "bob", send="nothing")
            stats = await wait_for_video(bob)
            assert stats[0]["codec"] == f"video/{codec}"
            await moving_pixels(bob)

    asyncio.run(run())


def test_firefox_and_chromium_receive_each_other(development_server):
    """On a development server: Firefox reaches no ICE-lite server on loopback, so it needs another address of the machine."""
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox:
            ada = await open_room(browser, server, "mixed", "ada", codec="VP8")
            await fox.open(room_address(server, "mixed", "fox", send="camera"))
            await wait_for_video(ada)
            await until(ada, HEARS)
            await moving_pixels(ada)
            await fox.wait_for(SEES)
            await fox.wait_for(HEARS)
            await fox.wait_for("Object.values(martlet.pixels()).some(Boolean)")

    asyncio.run(run())


def test_a_screen_is_a_resource_of_its_own(server):
    """C13: screen share beside the camera; removing it leaves the camera."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "share", "ada", send="camera")
            bob = await open_room(browser, server, "share", "bob", send="nothing")
            await wait_for_video(bob, count=1)
            await ada.click("#share-screen")
            await wait_for_video(bob, count=2, frames=2)
            await until(bob, "document.querySelector('#stage .tile.screen:not(.waiting)') !== null")
            status, person = server.api("GET", "/v1/rooms/share/participants/ada")
            assert status == 200
            assert {track["source"] for track in person["tracks"]} >= {"camera", "microphone", "screen"}
            assert person["resources"] == {"audio": True, "video": True, "screen": True}

            await ada.click("#share-screen")
            await until(bob, "document.querySelectorAll('.tile video').length === 1")
            _, person = server.api("GET", "/v1/rooms/share/participants/ada")
            assert person["resources"] == {"audio": True, "video": True, "screen": False}
            await moving_pixels(bob)

    asyncio.run(run())


def test_muting_stops_the_packets_and_is_signalled(server):
    """C6, D13: the mute flag is visible to others and no packet of the track is forwarded."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "mute", "ada")
            bob = await open_room(browser, server, "mute", "bob", send="nothing")
            await wait_for_video(bob)
            await ada.click("#mute-video")
            await bob.wait_for_selector(".tile.video-muted")
            before = await stands_still(lambda: packets_of_video(bob))
            await ada.click("#mute-video")
            await until(bob, "document.querySelector('.tile.video-muted') === null")
            await until(bob, f"martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.packetsReceived > {before} + 20))")
            await moving_pixels(bob)

    asyncio.run(run())


def test_each_simulcast_layer_is_sent_on_request(server):
    """Three sizes are received and the one that the subscriber requests is forwarded; a paused one is not.

    When the largest is affordable depends on the bandwidth estimate, which is cautious on a busy machine.
    """
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "layers", "ada", send="camera", script=SAME_SIZE)
            bob = await open_room(browser, server, "layers", "bob", send="nothing")
            await wait_for_video(bob)
            # For a small tile alone nobody would want the largest layer, and a publisher that is slow to reach it would never send it.
            await bob.select_option(".tile .layer", "best")
            await until(ada, "martlet.sent().then((all) => all.some((r) => r.frameHeight === 720 && r.framesPerSecond > 0))")
            for choice, height in (("0", 180), ("1", 360), ("best", 720)):
                await bob.select_option(".tile .layer", choice)
                await until(bob, f"martlet.received().then((all) => all.some((r) => r.frameHeight === {height}))")
                await moving_pixels(bob)
            await bob.select_option(".tile .layer", "paused")
            await stands_still(lambda: packets_of_video(bob))
            await bob.select_option(".tile .layer", "1")
            await until(bob, "martlet.received().then((all) => all.some((r) => r.frameHeight === 360))")
            await moving_pixels(bob)

    asyncio.run(run())


def test_speakers_are_marked(server):
    """The generated tone comes and goes like speech; a muted microphone never counts as speaking."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "talk", "ada")
            bob = await open_room(browser, server, "talk", "bob", send="nothing")
            for page in (ada, bob):
                await until(page, "document.querySelector('.tile.speaking') !== null")
            await ada.click("#mute-audio")
            await until(bob, "document.querySelector('.tile .name.muted') !== null")
            await until(bob, "document.querySelector('.tile.speaking') === null")
            await asyncio.sleep(2)
            assert await bob.evaluate("document.querySelector('.tile.speaking') === null")

    asyncio.run(run())


@pytest.mark.at_night
def test_leaving_and_rejoining(server):
    """D14: the last participant is notified at once; the one that rejoins receives and is received."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "again", "ada")
            bob = await open_room(browser, server, "again", "bob")
            await wait_for_video(bob)
            await ada.click("#leave")
            await until(bob, "document.querySelectorAll('.tile:not(.own)').length === 0", GONE_S)
            assert await bob.is_visible("#alone")
            assert await ada.is_visible("#join")
            await ada.click("#join-button")
            await wait_for_video(bob)
            await wait_for_video(ada)
            assert not await bob.is_visible("#alone")
            # The click on "Leave" ends the tone that the page makes, and does not try to start it.
            assert ada.problems == [] and bob.problems == []
            # A closed tab is gone at once, not after the time that a lost socket is given.
            await ada.close()
            await until(bob, "document.querySelectorAll('.tile:not(.own)').length === 0", GONE_S)

    asyncio.run(run())
