"""LiveKit's JavaScript SDK 2.9.8 in the situations of a call: codecs and the backup codec, operators, reconnections. Run by name and at night.

livekit.md lists all scenarios.
"""
import asyncio
import contextlib
import json

import pytest

from nightly_livekit_js import page_of
from support import livekit_sdk
from support.chromium import chromium, until
from support.firefox import firefox
from support.livekit_js import ChromiumPage, FirefoxPage, join
from support.livekit_sdk import BLUE, GREEN, RED, Client
from support.server import Server
from support.tokens import token
from test_livekit_js import shows
# Firefox reaches a server at loopback only beside another address, as a development server has.
#: Names of the codecs in which a page decodes somebody's video, and sends its own.
RECEIVED = """(async () => { const codecs = new Map(), used = []; const stats = await lk.drawn.get(%s).track.receiver.getStats();
    stats.forEach((one) => { if (one.type === 'codec') codecs.set(one.id, one.mimeType); });
    stats.forEach((one) => { if (one.type === 'inbound-rtp') used.push(codecs.get(one.codecId)); }); return used.join(); })()"""
SENT = """(async () => { const codecs = new Map(), used = new Set(); let n = 0;
    for (const one of lk.room.engine.pcManager.publisher.getTransceivers()) {
        if (!one.sender.track || one.sender.track.kind !== 'video') continue;
        const stats = await one.sender.getStats();
        stats.forEach((stat) => { if (stat.type === 'codec') codecs.set(stat.id, stat.mimeType); });
        stats.forEach((stat) => { if (stat.type === 'outbound-rtp' && stat.active && stat.framesSent > 0) used.add(codecs.get(stat.codecId)); });
    }
    return [...used].sort().join(); })()"""


@pytest.mark.parametrize("first", ["h264", "vp9"])
def test_who_cannot_play_the_first_codec_gets_the_backup_codec_and_nobody_else_does(development_server, first):
    """With the policy to send both, ada sends H.264 or VP9, and VP8 only while somebody is there who needs it: Firefox here has no H.264, and a page without VP9 lacks that."""
    server = development_server

    async def run():
        async with chromium() as browser, contextlib.AsyncExitStack() as stack:
            ada, carl = await ChromiumPage.open(browser, server), await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360, {{ videoCodec: '{first}', backupCodec: {{ codec: 'vp8' }}, backupCodecPolicy: 1 }})")
            await join(carl, server, token("carl", "r"))
            await until(carl, shows("ada", RED))
            assert (await carl.evaluate(RECEIVED % "'ada'")).lower() == f"video/{first}"
            assert (await ada.evaluate(SENT)).lower() == f"video/{first}", "nobody needs the backup codec"

            if first == "h264":
                bob = await FirefoxPage.open(await stack.enter_async_context(firefox()), server)
            else:
                bob = await ChromiumPage.open(browser, server)
                await bob.evaluate(WITHOUT_VP9)
            await join(bob, server, token("bob", "r"))
            await until(bob, shows("ada", RED))
            if first != "h264":
                assert (await bob.evaluate(RECEIVED % "'ada'")).lower() == "video/vp8"
            await until(ada, SENT + f".then((all) => all.toLowerCase() === ['video/{first}', 'video/vp8'].sort().join())")
            seen = await carl.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await until(carl, shows("ada", RED, seen + 20))
            assert (await carl.evaluate(RECEIVED % "'ada'")).lower() == f"video/{first}", "who plays the first keeps it"

            # Mute and unmute reach the one who has the backup codec as well.
            await ada.evaluate("lk.own.mute().then(() => 0)")
            await until(bob, "lk.events.includes('trackMuted')")
            await asyncio.sleep(1)
            still = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await asyncio.sleep(1)
            assert await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)") - still <= 1
            await ada.evaluate("lk.own.unmute().then(() => 0)")
            await until(bob, shows("ada", RED, still + 10))

            # With bob the demand ends: the publisher stops the encoding.
            await bob.evaluate("lk.room.disconnect().then(() => 0)")
            await until(ada, "[...lk.own.track.simulcastCodecs.values()].every(({ sender }) => sender.getParameters().encodings.every((one) => !one.active))")
            seen = await carl.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await until(carl, shows("ada", RED, seen + 20))

    asyncio.run(run())


#: A browser without the codec.
WITHOUT_VP9 = """(() => {
    const real = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function (description) {
        const sdp = description.sdp?.replace(/ VP9\\/90000/g, ' NONE/90000');
        return real.call(this, { type: description.type, sdp });
    };
})(), 0"""


@pytest.mark.parametrize("policy", ["", ", backupCodecPolicy: 2"], ids=["prefer-regression", "regression"])
def test_everybody_gets_the_backup_codec_once_somebody_needs_it_and_the_first_is_not_sent_any_more(server, policy):
    """The SDK's default policy, and the one that insists on it. Once nobody is there, the next one gets the first codec again."""
    async def run():
        async with chromium() as browser:
            ada, bob, carl, dora = [await ChromiumPage.open(browser, server) for _ in range(4)]
            await join(ada, server, token("ada", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360, {{ videoCodec: 'vp9', backupCodec: {{ codec: 'vp8' }}{policy} }})")
            await join(carl, server, token("carl", "r"))
            await until(carl, shows("ada", RED))
            assert (await carl.evaluate(RECEIVED % "'ada'")).lower() == "video/vp9"
            await bob.evaluate(WITHOUT_VP9)
            await join(bob, server, token("bob", "r"))
            await until(bob, shows("ada", RED))
            await until(ada, SENT + ".then((all) => all.toLowerCase() === 'video/vp8')")
            seen = await carl.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await until(carl, shows("ada", RED, seen + 20))
            assert (await carl.evaluate(RECEIVED % "'ada'")).lower() == "video/vp8"
            for page in (bob, carl):
                await page.evaluate("lk.room.disconnect().then(() => 0)")
            await join(dora, server, token("dora", "r"))
            await until(dora, shows("ada", RED))
            assert (await dora.evaluate(RECEIVED % "'ada'")).lower() == "video/vp9"
            await until(ada, SENT + ".then((all) => all.toLowerCase() === 'video/vp9')")

    asyncio.run(run())


@pytest.mark.parametrize("codec", ["vp8", "h264", "vp9", "av1"])
def test_a_page_sends_the_codec_that_it_chose_and_another_page_decodes_it(server, codec):
    async def run():
        async with chromium() as browser:
            ada, bob = await ChromiumPage.open(browser, server), await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            await join(bob, server, token("bob", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360, {{ videoCodec: '{codec}', backupCodec: false }})")
            await until(bob, shows("ada", RED, 20))
            assert (await bob.evaluate(RECEIVED % "'ada'")).lower() == f"video/{codec}"

    asyncio.run(run())


@pytest.mark.parametrize("codec", ["vp9", "av1"])
def test_a_page_chooses_the_layers_of_a_video_that_has_them_in_one_stream(server, codec):
    """L3T3_KEY, the SDK's own choice for these codecs: smaller layers come at once, larger ones with a keyframe, and each decodes."""
    async def run():
        async with chromium() as browser:
            ada, bob = await ChromiumPage.open(browser, server), await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            await join(bob, server, token("bob", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 1280, 720, {{ videoCodec: '{codec}', backupCodec: false }})")
            await until(bob, shows("ada", RED))
            for quality, width in ((0, 320), (2, 1280), (1, 640), (2, 1280)):
                await bob.evaluate(f"lk.drawn.get('ada').publication.setVideoQuality({quality})")
                await until(bob, f"lk.sees('ada').then(({{ size }}) => size[0] === {width})")
                seen = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
                await until(bob, shows("ada", RED, seen + 10))
            assert (await bob.evaluate(RECEIVED % "'ada'")).lower() == f"video/{codec}"

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_an_operator_sends_to_a_page_mutes_it_cannot_unmute_it_and_removes_it(development_server, kind):
    server = development_server

    async def twirp(call, /, **body):
        status, _, text = await asyncio.to_thread(
            server.request, "POST", f"/twirp/livekit.RoomService/{call}", {"room": "r", **body},
            {"Authorization": f"Bearer {token('ada', 'r', roomAdmin=True)}"})
        assert status == 200, text
        return json.loads(text)

    async def run():
        async with page_of(kind, server) as ada, chromium() as browser:
            bob = await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            await join(bob, server, token("bob", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(GREEN)}, 640, 360)")
            await until(bob, shows("ada", GREEN))
            await ada.evaluate("lk.room.localParticipant.publishData(new Uint8Array([1]), { reliable: true, topic: 'open' }).then(() => 0)")

            await twirp("SendData", data="AAEC", kind=0, topic="server", destination_identities=["ada"])
            await until(ada, "lk.data.some(({ topic, size }) => topic === 'server' && size === 3)")
            assert not await bob.evaluate("lk.data.some(({ topic }) => topic === 'server')")
            answer = await twirp("PerformRpc", destination_identity="ada", method="double", payload="21")
            assert answer["payload"] == "42"

            sid = (await twirp("GetParticipant", identity="ada"))["tracks"][0]["sid"]
            await twirp("MutePublishedTrack", identity="ada", track_sid=sid, muted=True)
            await until(bob, "lk.events.includes('trackMuted')")
            await until(ada, "lk.own.isMuted")
            status, _ = await asyncio.to_thread(server.api, "POST", f"/v1/rooms/r/tracks/{sid}/unmute-request")
            assert status == 503
            await asyncio.sleep(1)
            assert await ada.evaluate("lk.own.isMuted") and not await bob.evaluate("lk.events.includes('trackUnmuted')")
            await ada.evaluate("lk.own.unmute().then(() => 0)")
            await until(bob, "lk.events.includes('trackUnmuted')")
            seen = await bob.evaluate("lk.sees('ada').then(({ frames }) => frames)")
            await until(bob, shows("ada", GREEN, seen + 10))

            await twirp("RemoveParticipant", identity="ada")
            await until(ada, "lk.events.includes('disconnected')")
            await until(bob, "lk.events.includes('participantDisconnected')")

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_a_page_sees_again_after_the_server_was_killed_and_started_again(kind):
    async def run():
        server = Server(development=True).start()
        try:
            async with page_of(kind, server) as bob, chromium() as browser:
                ada = await ChromiumPage.open(browser, server)
                for page, name, colour in ((ada, "ada", RED), (bob, "bob", BLUE)):
                    await join(page, server, token(name, "r"))
                    await page.evaluate(f"lk.publish({json.dumps(colour)}, 640, 360)")
                await until(bob, shows("ada", RED))
                await until(ada, shows("bob", BLUE))
                for page in (ada, bob):
                    await page.evaluate("lk.drawn.clear(), 0")
                await asyncio.to_thread(server.kill)
                await asyncio.sleep(1)
                await asyncio.to_thread(server.start)
                await until(bob, shows("ada", RED), 60)
                await until(ada, shows("bob", BLUE), 60)
        finally:
            server.stop()

    asyncio.run(run())


async def second_ada(url):
    ada = await Client(url, "ada").connect()
    await ada.publish_video(BLUE, size=(640, 360))
    await livekit_sdk.until(lambda: ada.seen("data_received"), "the end is announced", 60)
    await ada.close()


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_others_learn_that_a_closed_page_left_and_that_a_second_client_took_its_place(development_server, kind):
    server = development_server

    async def run():
        async with chromium() as browser:
            bob = await ChromiumPage.open(browser, server)
            await join(bob, server, token("bob", "r"))
            async with page_of(kind, server) as eve:
                await join(eve, server, token("eve", "r"))
                await eve.evaluate(f"lk.publish({json.dumps(GREEN)}, 640, 360)")
                await until(bob, shows("eve", GREEN))
                if kind == "chromium":
                    await eve.close()
            await until(bob, "lk.events.includes('participantDisconnected')", 60)

            ada = await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "r"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360)")
            await until(bob, shows("ada", RED))
            await bob.evaluate("lk.drawn.clear(), 0")
            taking = asyncio.create_task(asyncio.to_thread(livekit_sdk.run, second_ada, server.url, seconds=100))
            await until(ada, "lk.events.includes('disconnected')")
            await until(bob, shows("ada", BLUE))
            await bob.evaluate("lk.room.localParticipant.publishData(new Uint8Array([1]), { reliable: true }).then(() => 0)")
            await taking

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_two_pages_exchange_reliable_lossy_and_directed_data_and_texts(development_server, kind):
    server = development_server

    async def run():
        async with page_of(kind, server) as ada, chromium() as browser:
            bob, carl = await ChromiumPage.open(browser, server), await ChromiumPage.open(browser, server)
            for page, name in ((ada, "ada"), (bob, "bob"), (carl, "carl")):
                await join(page, server, token(name, "r"))
            await until(ada, "lk.room.remoteParticipants.size === 2")
            me = "lk.room.localParticipant"
            for topic, reliable, size, names in (("reliable", "true", 10_000, ""), ("lossy", "false", 1_000, ""), ("one", "true", 100, ", destinationIdentities: ['bob']")):
                await ada.evaluate(f"{me}.publishData(new Uint8Array({size}).fill(3), {{ reliable: {reliable}, topic: '{topic}'{names} }}).then(() => 0)")
                await until(bob, f"lk.data.some((one) => one.topic === '{topic}' && one.size === {size} && one.sum === {size * 3 % 65521} && one.from === 'ada')")
            assert not await carl.evaluate("lk.data.some((one) => one.topic === 'one')")
            await bob.evaluate(f"{me}.sendText('Grüße '.repeat(5000), {{ topic: 'notes' }}).then(() => 0)")
            for page in (ada, carl):
                await until(page, "lk.texts.some(({ identity, text }) => identity === 'bob' && text.length === 30000)")
            assert await ada.evaluate(f"{me}.performRpc({{ destinationIdentity: 'bob', method: 'double', payload: '4' }})") == "8"

    asyncio.run(run())
