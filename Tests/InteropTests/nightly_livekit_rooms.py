"""LiveKit's JavaScript SDK 2.9.8 in rooms of twenty, over networks that go away, and with permissions that change. Run by name and at night.

livekit.md lists all scenarios.
"""
import asyncio
import json

import pytest

from nightly_livekit_js import meet, page_of
from support.chromium import chromium, until
from support.livekit_js import ChromiumPage, join
from support.livekit_sdk import BLUE, GREEN, RED
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.tokens import token
from test_livekit_js import shows

ME = "lk.room.localParticipant"
#: Sets `lk.refused` to the reason, or to false where the video is published.
TRY_TO_PUBLISH = "lk.refused = null, lk.publish([0, 0, 0], 320, 180).then(() => { lk.refused = false; }, (problem) => { lk.refused = problem.message; }), 0"


def test_twenty_pages_see_three_speakers(server):
    """Each decodes the videos of all who send, in their colours, and knows nineteen others."""
    async def run():
        async with chromium() as browser:
            pages = [await ChromiumPage.open(browser, server) for _ in range(20)]
            await asyncio.gather(*(join(page, server, token(f"p{number}", "crowd")) for number, page in enumerate(pages)))
            speakers = {"p0": RED, "p1": GREEN, "p2": BLUE}
            for page, colour in zip(pages, speakers.values()):
                await page.evaluate(f"lk.publish({json.dumps(colour)}, 320, 180, {{ simulcast: false }})")
            for number, page in enumerate(pages):
                for speaker, colour in speakers.items():
                    if speaker != f"p{number}":
                        await until(page, shows(speaker, colour))
                await until(page, "lk.room.remoteParticipants.size === 19")

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
@pytest.mark.parametrize("seconds", [4, 12])
def test_media_and_data_of_a_page_go_on_after_a_network_that_was_away(kind, seconds):
    """For 4 s, after which media comes back by itself, and for 12 s."""
    async def run(lab, server):
        async with page_of("chromium", server, lab, 1) as ada, page_of(kind, server, lab, 2) as bob:
            await meet(server, ada, bob)
            with lab.cut(2):
                await asyncio.sleep(seconds)
                before = [await page.evaluate(f"lk.sees('{other}').then(({{ frames }}) => frames)") for page, other in ((ada, "bob"), (bob, "ada"))]
            # Joined anew, a track begins to count its frames from nothing.
            for page, other, colour, seen in ((ada, "bob", GREEN, before[0]), (bob, "ada", RED, before[1])):
                await until(page, f"lk.sees('{other}').then(({{ frames }}) => frames !== {seen})", 60)
                now = await page.evaluate(f"lk.sees('{other}').then(({{ frames }}) => frames)")
                await until(page, shows(other, colour, now + 10), 60)
            # The SDK may be joining anew while the old connection shows frames already; until it is done it refuses data.
            await until(bob, f"{ME}.publishData(new Uint8Array([1]), {{ reliable: true, topic: 'after' }}).then(() => true, () => false)")
            await until(ada, "lk.data.some((one) => one.topic === 'after' && one.from === 'bob')")
            assert not await bob.evaluate("lk.events.includes('disconnected')")

    with Lab("mljs", 2, "both", "delay", 10) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
        try:
            asyncio.run(run(lab, server))
        finally:
            server.stop()


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_permissions_of_a_page_change_during_a_call(development_server, kind):
    """To publish, to send data and to subscribe: what is taken away ends and is refused with its reason, what is given back goes on."""
    server = development_server

    async def permit(**permissions):
        status, body = await asyncio.to_thread(server.api, "PATCH", "/v1/rooms/r/participants/bob", {"permissions": permissions})
        assert status == 200, body

    async def run():
        async with page_of(kind, server) as bob, chromium() as browser:
            ada = await ChromiumPage.open(browser, server)
            await meet(server, ada, bob)

            await permit(canPublish=False)
            await until(ada, "lk.room.remoteParticipants.get('bob').trackPublications.size === 0")
            await until(bob, f"{ME}.permissions.canPublish === false")
            await bob.evaluate(TRY_TO_PUBLISH)
            await until(bob, "lk.refused !== null")
            assert "permission" in await bob.evaluate("lk.refused")
            await permit(canPublish=True)
            await until(bob, f"{ME}.permissions.canPublish === true")
            await ada.evaluate("lk.drawn.clear(), 0")
            await bob.evaluate(f"lk.publish({json.dumps(BLUE)}, 640, 360)")
            await until(ada, shows("bob", BLUE))

            await permit(canPublishData=False)
            await until(bob, f"{ME}.permissions.canPublishData === false")
            await bob.evaluate(f"{ME}.publishData(new Uint8Array([1]), {{ reliable: true, topic: 'no' }}).then(() => 0)")
            await permit(canPublishData=True)
            await until(bob, f"{ME}.permissions.canPublishData === true")
            await bob.evaluate(f"{ME}.publishData(new Uint8Array([1]), {{ reliable: true, topic: 'yes' }}).then(() => 0)")
            await until(ada, "lk.data.some((one) => one.topic === 'yes')")
            assert not await ada.evaluate("lk.data.some((one) => one.topic === 'no')")

            await permit(canSubscribe=False)
            # The SDK takes the receiver from a track that has ended.
            await until(bob, "!lk.drawn.get('ada').track.receiver")
            await bob.evaluate("lk.drawn.clear(), 0")
            await permit(canSubscribe=True)
            await until(bob, "lk.drawn.has('ada')")
            await until(bob, shows("ada", RED))

    asyncio.run(run())
