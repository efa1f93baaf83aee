"""LiveKit's JavaScript SDK: layers, mute, a killed socket, adaptive stream, dynacast, permissions and stream states. Run by name and at night: a minute that `make test` has not left."""
import asyncio
import contextlib
import json

import pytest

from support.chromium import EXECUTABLE, chromium, until
from support.firefox import firefox
from support.livekit_js import ChromiumPage, FirefoxPage, join
from support.livekit_sdk import GREEN, RED
from support.tokens import token
from support.wire import Wire
from test_livekit_js import shows


@contextlib.asynccontextmanager
async def page_of(kind, server, lab=None, number=0):
    """A page with the SDK, in client `number`'s network of a lab where one is given."""
    if kind == "chromium":
        async with chromium(**({"executable": lab.wrapper(number, EXECUTABLE)} if lab else {})) as browser:
            yield await ChromiumPage.open(browser, server)
    else:
        async with firefox(lab.client(number) if lab else None) as browser:
            yield await FirefoxPage.open(browser, server)


async def meet(server, red, green):
    """Two pages join as ada and bob, publish in red and in green, and see each other."""
    await join(red, server, token("ada", "r"))
    await join(green, server, token("bob", "r"))
    await red.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360)")
    await green.evaluate(f"lk.publish({json.dumps(GREEN)}, 640, 360)")
    await until(green, shows("ada", RED))
    await until(red, shows("bob", GREEN))


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_a_page_chooses_layers_mutes_and_resumes_its_killed_socket_while_media_goes_on(development_server, kind):
    server = development_server

    async def run():
        async with Wire(server.http) as wire, page_of(kind, server) as bob, chromium() as browser:
            ada = await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 1280, 720)")
            await bob.evaluate(f"lk.join({json.dumps(wire.url)}, {json.dumps(token('bob', 'r'))}, {{}})")
            await until(bob, shows("ada", RED))
            # VideoQuality: 0 low, 1 medium, 2 high.
            for quality, width in ((0, 320), (2, 1280), (1, 640)):
                await bob.evaluate(f"lk.drawn.get('ada').publication.setVideoQuality({quality})")
                await until(bob, f"lk.sees('ada').then(({{ size }}) => size[0] === {width})")

            await ada.evaluate("lk.own.mute().then(() => 0)")
            await until(bob, "lk.events.includes('trackMuted')")
            await asyncio.sleep(0.5)
            still = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await asyncio.sleep(0.5)
            assert await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)") - still <= 1
            await ada.evaluate("lk.own.unmute().then(() => 0)")
            await until(bob, shows("ada", RED, still + 10))

            before = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            wire.cut()
            await until(bob, "lk.events.includes('signalReconnecting') || lk.events.includes('reconnecting')")
            await until(bob, "lk.room.state === 'connected'")
            await until(bob, shows("ada", RED, before + 10))
            assert "disconnected" not in json.loads(await bob.evaluate("JSON.stringify(lk.events)"))
            # And what comes later.
            await bob.evaluate(f"lk.publish({json.dumps(GREEN)}, 640, 360)")
            await until(ada, shows("bob", GREEN))

    asyncio.run(run())


@pytest.mark.parametrize("publisher, viewer", [("chromium", "chromium"), ("chromium", "firefox"), ("firefox", "chromium")])
def test_an_adaptive_stream_page_gets_the_size_that_it_shows_and_a_hidden_video_is_paused(development_server, publisher, viewer):
    server = development_server

    async def run():
        async with page_of(publisher, server) as ada, page_of(viewer, server) as bob:
            await join(ada, server, token("ada", "r"), {"dynacast": True})
            await join(bob, server, token("bob", "r"), {"adaptiveStream": True})
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 1280, 720)")
            await until(bob, "lk.drawn.has('ada')")
            style = "lk.drawn.get('ada').element.style.cssText = "
            for shown, width in (("width:300px;height:170px", 320), ("width:1200px;height:675px", 1280)):
                await bob.evaluate(f"{style}'{shown}', 0")
                await until(bob, f"lk.sees('ada').then(({{ size }}) => size[0] === {width})")
            # Dynacast: with nobody who wants more, the publisher stops its larger layers.
            await bob.evaluate(f"{style}'width:300px;height:170px', 0")
            await until(bob, "lk.sees('ada').then(({ size }) => size[0] === 320)")
            await until(ada, "lk.own.track.sender.getParameters().encodings.map((one) => one.active).join() === 'true,false,false'", 30)
            await bob.evaluate(f"{style}'display:none', 0")
            await asyncio.sleep(1.5)
            still = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await asyncio.sleep(1)
            assert await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)") - still <= 1
            await bob.evaluate(f"{style}'width:1200px;height:675px', 0")
            await until(bob, "lk.sees('ada').then(({ size }) => size[0] === 1280)", 30)

    asyncio.run(run())


def test_a_page_learns_what_it_may_see_and_why_a_video_stands(server):
    """A fresh token comes after the join. A publisher withdraws the permission to its video and grants it again; a bandwidth into which no layer fits holds it, and more lets it go on."""
    async def run():
        async with chromium() as browser:
            ada, bob = await ChromiumPage.open(browser, server), await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            first = token("bob", "r")
            await join(bob, server, first)
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360)")
            await until(bob, shows("ada", RED))
            await until(bob, f"lk.room.engine.token !== {json.dumps(first)}")

            await ada.evaluate("lk.room.localParticipant.setTrackSubscriptionPermissions(false, []), 0")
            await until(bob, "lk.events.includes('permission not_allowed')")
            # The SDK takes the receiver from a track that has ended.
            await until(bob, "!lk.drawn.get('ada').track.receiver")
            await bob.evaluate("lk.drawn.clear(), 0")
            await ada.evaluate("lk.room.localParticipant.setTrackSubscriptionPermissions(true), 0")
            await until(bob, "lk.events.some((one) => one.startsWith('permission ') && one !== 'permission not_allowed')")
            await until(bob, "lk.drawn.has('ada')")
            await until(bob, shows("ada", RED))

            assert "stream paused" not in await bob.evaluate("lk.events")
            for bitrate, word in ((20_000, "paused"), (None, "active")):
                status, _ = await asyncio.to_thread(server.api, "PATCH", "/v1/rooms/r/policy", {"maxDownlinkBitrate": bitrate})
                assert status == 200
                await until(bob, f"lk.events.at(-1) === 'stream {word}'", 30)
            before = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await until(bob, shows("ada", RED, before + 10))

    asyncio.run(run())
