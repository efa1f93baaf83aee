"""A browser whose network begins to block UDP in a call goes on over TCP; when it permits UDP again, the next join uses it. Part of `make nightly`; needs network namespaces.

    make interop ONLY=nightly_paths.py
"""
import asyncio
import time

from support.chromium import EXECUTABLE, REMOTES, chromium, open_room, until, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.tokens import token
from test_tcp import block_udp, permit_udp

DECODED = "martlet.received().then((all) => all.filter((one) => one.kind === 'video').reduce((sum, one) => sum + one.framesDecoded, 0))"


STATES = "[martlet.room.pub, martlet.room.sub].map((peer) => peer && `${peer.connectionState} ${peer.iceConnectionState}`)"


async def goes_over(page, place, seconds):
    """How long it takes until every connection of the page uses the transport and port of `place`."""
    started = time.monotonic()
    while set(remotes := await page.evaluate(REMOTES)) != {place} or len(remotes) != 2:
        assert time.monotonic() - started < seconds, f"{remotes} and not {place} after {seconds} s: {await page.evaluate(STATES)}"
        await asyncio.sleep(0.1)
    return time.monotonic() - started


async def frames_go_on(page, count=20, seconds=20):
    """So many more frames are decoded; a connection that was made anew counts from 0."""
    seen, last, end = 0, await page.evaluate(DECODED), time.monotonic() + seconds
    while seen < count:
        now = await page.evaluate(DECODED)
        seen, last = seen + max(0, now - last), now
        assert time.monotonic() < end, f"{seen} frames in {seconds} s"
        await asyncio.sleep(0.1)


def test_F9_a_call_goes_on_over_TCP_where_UDP_is_blocked_in_the_middle_of_it_and_the_next_join_uses_UDP_again():
    """Both of the page's connections, in both directions: what bob decodes of ada shows that she is sent on, too."""
    with Lab("mpath", 2) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()

        async def run():
            places = [f"{transport} {SERVER_ADDRESS}:{server.udp}" for transport in ("udp", "tcp")]
            async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as one, chromium(executable=lab.wrapper(2, EXECUTABLE)) as two:
                ada = await open_room(one, server, "path", "ada", codec="VP8", token=token("ada", "path"))
                bob = await open_room(two, server, "path", "bob", codec="VP8", token=token("bob", "path"))
                await wait_for_video(ada)
                await wait_for_video(bob)
                await goes_over(ada, places[0], 5)
                block_udp(lab.client(1))
                took = await goes_over(ada, places[1], 90)
                await frames_go_on(ada)
                await frames_go_on(bob)
                assert await ada.evaluate("Boolean(martlet.joined)") and ada.problems == []
                # What is connected over TCP stays so: it works.
                permit_udp(lab.client(1))
                await ada.click("#leave")
                await ada.click("#join-button")
                await until(ada, "Boolean(martlet.joined)")
                await goes_over(ada, places[0], 20)
                await frames_go_on(ada)
                await frames_go_on(bob)
                assert set(await bob.evaluate(REMOTES)) == {places[0]}, "the other one stayed where it was"
                assert bob.problems == []
                print(f"figures: over TCP {took:.1f} s after UDP was blocked")

        try:
            asyncio.run(run())
        finally:
            assert server.stop() == 0
