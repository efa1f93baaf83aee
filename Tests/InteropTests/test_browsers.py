"""Two people meet through the console page, each in a real browser."""
import asyncio

from support.chromium import chromium, open_room, received, until, wait_for_video
from support.firefox import firefox


async def two_chromium_pages(server, **options):
    async with chromium() as browser:
        ada = await open_room(browser, server, "lobby", "ada", **options)
        bob = await open_room(browser, server, "lobby", "bob", **options)
        for page in (ada, bob):
            await wait_for_video(page)
            await until(page, "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0))")
        await until(ada, "Object.values(martlet.pixels()).some(Boolean)")
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
