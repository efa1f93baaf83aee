"""Two people meet through the console page, each in a real browser."""
import asyncio

from support.chromium import chromium, open_room, received, wait_for_video
from support.firefox import firefox


async def two_chromium_pages(server, **options):
    async with chromium() as browser:
        ada = await open_room(browser, server, "lobby", "ada", **options)
        bob = await open_room(browser, server, "lobby", "bob", **options)
        for page in (ada, bob):
            await wait_for_video(page)
            await page.wait_for_function("async () => (await martlet.received()).some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0)")
        first = await ada.evaluate("martlet.pixels()")
        await asyncio.sleep(0.5)
        second = await ada.evaluate("martlet.pixels()")
        assert any(first.values()), "the remote picture is not black"
        assert first != second, "the remote picture moves"
        assert not ada.problems and not bob.problems
        return await received(ada)


def test_two_chromium_pages_see_and_hear_each_other(server):
    """Issue 2 section 6: decoded frames, moving pixels, audio energy."""
    asyncio.run(two_chromium_pages(server))


def test_each_video_codec_goes_from_chromium_to_chromium(server):
    async def run():
        async with chromium() as browser:
            for codec in ("VP8", "H264", "VP9", "AV1"):
                ada = await open_room(browser, server, codec, "ada", codec=codec)
                bob = await open_room(browser, server, codec, "bob", send="nothing")
                stats = await wait_for_video(bob)
                assert codec.lower() in stats[0]["codec"].lower()
                await ada.close()
                await bob.close()

    asyncio.run(run())


def test_firefox_and_chromium_see_each_other(server):
    async def run():
        async with chromium() as browser, firefox() as fox:
            ada = await open_room(browser, server, "mixed", "ada", codec="VP8")
            await fox.open(f"{server.url}/?room=mixed&name=fox&send=generated&join=1")
            await wait_for_video(ada, timeout_s=30)
            await fox.wait_for("martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.framesDecoded > 15))", 30)

    asyncio.run(run())


def test_a_screen_is_a_resource_of_its_own(server):
    """C13: screen share beside the camera; removing it leaves the camera."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "share", "ada")
            bob = await open_room(browser, server, "share", "bob", send="nothing")
            await wait_for_video(bob, count=1)
            await ada.click("#share-screen")
            await wait_for_video(bob, count=2, frames=2)
            status, room = server.api("GET", "/v1/rooms/share/participants/ada")
            assert status == 200
            assert {t["source"] for t in room["tracks"]} >= {"camera", "microphone", "screen"}
            await ada.click("#share-screen")
            await bob.wait_for_function("async () => document.querySelectorAll('.tile video').length === 1")
            before = (await received(bob))[0]
            await asyncio.sleep(1)
            assert [r for r in await received(bob) if r["kind"] == "video"][0]["framesDecoded"] > 0, before

    asyncio.run(run())


def test_muting_stops_the_packets_and_is_told(server):
    """C6, D13: the mute flag is visible to others and no packet of the track is forwarded."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "mute", "ada")
            bob = await open_room(browser, server, "mute", "bob", send="nothing")
            await wait_for_video(bob)
            await ada.click("#mute-video")
            await bob.wait_for_selector(".tile.video-muted", timeout=3000)
            await asyncio.sleep(0.3)
            before = [r["packetsReceived"] for r in await received(bob) if r["kind"] == "video"]
            await asyncio.sleep(1)
            assert [r["packetsReceived"] for r in await received(bob) if r["kind"] == "video"] == before
            await ada.click("#mute-video")
            await bob.wait_for_function(f"async () => (await martlet.received()).some((r) => r.kind === 'video' && r.packetsReceived > {before[0]} + 20)")

    asyncio.run(run())


def test_leaving_and_coming_back(server):
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "again", "ada")
            bob = await open_room(browser, server, "again", "bob")
            await wait_for_video(bob)
            await ada.click("#leave")
            await bob.wait_for_function("() => document.querySelectorAll('.tile:not(.own)').length === 0", timeout=3000)
            await ada.click("#join-button")
            await wait_for_video(bob)
            await wait_for_video(ada)

    asyncio.run(run())
