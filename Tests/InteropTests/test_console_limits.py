"""Limits in the console page: of one's own video, of what tiles ask for, of tracks and subscriptions."""
import asyncio

import pytest

from support.chromium import SAME_SIZE, SPARING, chromium, one_stream, open_room, until, wait_for_video

# What the browser reports of its encoders and of what they are given (30 frames a second), as the test sets it: nothing makes a machine slow by the same amount twice.
REPORTED = """(() => {
    window.reported = null;
    const getStats = RTCPeerConnection.prototype.getStats;
    RTCPeerConnection.prototype.getStats = async function (...selector) {
        const reports = await getStats.apply(this, selector);
        if (!window.reported) return reports;
        const found = new Map(), told = { "outbound-rtp": window.reported, "media-source": () => ({ framesPerSecond: 30 }) };
        reports.forEach((one, id) => found.set(id, one.kind === "video" && told[one.type] ? { ...one, ...told[one.type](one) } : one));
        return found;
    };
})()"""
OWN = "document.querySelector('.tile.own .why')"
# Browsers say why (Chromium), or only how long encoding takes and how many frames leave.
SLOW = {
    "said": "(one) => ({ qualityLimitationReason: 'cpu', frameHeight: one.frameHeight / 2, framesPerSecond: 11 })",
    "measured": """(() => {
        const frames = new Map();
        return (one) => {
            const count = (frames.get(one.id) ?? 0) + 11;
            frames.set(one.id, count);
            return { qualityLimitationReason: undefined, framesPerSecond: 11, framesEncoded: count, totalEncodeTime: count * 0.09 };
        };
    })()""",
}


def test_a_video_whose_size_the_server_does_not_know_has_none_on_its_tile(server):
    """It is encrypted end to end, or has only begun: nothing of it is 0 lines high."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(server.url)
            layers = "[{ height: 0, framesPerSecond: 30 }, { height: 0, framesPerSecond: 0 }, { height: 360, framesPerSecond: 14.9 }, null]"
            assert await page.evaluate(f"""import("/console/grid.js").then(({{ Tile }}) => {layers}.map((layer) => {{
                const tile = new Tile({{ key: "", name: "ada" }});
                tile.setWhy({{ layer, text: "so it is", reason: "best" }}, 0);
                return tile.why.textContent;
            }}))""") == [f"{shown} · no limit known · so it is" for shown in ("video 30 fps", "video", "360p 15 fps", "not sent")]

    asyncio.run(run())


@pytest.mark.parametrize("how", [pytest.param("said", marks=pytest.mark.at_night), "measured"])
def test_4_10_an_overloaded_machine_is_shown_on_its_own_tile(server, how):
    """The page says that the machine is the limit and not the network, and what that costs; the notice disappears when the overload is over."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "slow", "ada", simulcast=0, script=REPORTED)
            bob = await open_room(browser, server, "slow", "bob", send="nothing")
            await wait_for_video(bob, frames=60)
            await ada.evaluate("void (window.reported = () => ({ qualityLimitationReason: 'none' }))")
            await until(ada, f"{OWN}.textContent === ''")
            await ada.evaluate(f"void (window.reported = {SLOW[how]})")
            await until(ada, f"/^This machine limits your video · .*11 of 30 fps · encoding takes \\d+ ms per frame$/.test({OWN}.textContent)")
            assert await ada.evaluate(f"{OWN}.checkVisibility() && {OWN}.dataset.reason") == "cpu"
            print(f"figures: {await ada.evaluate(f'{OWN}.textContent')}")
            await ada.evaluate("void (window.reported = () => ({ qualityLimitationReason: 'bandwidth', framesPerSecond: 11 }))")
            await until(ada, f"/^The network limits your video · /.test({OWN}.textContent)")
            await ada.evaluate("void (window.reported = () => ({ qualityLimitationReason: 'none' }))")
            await until(ada, f"{OWN}.textContent === ''")
            assert not ada.problems

    asyncio.run(run())


def test_4_10_a_small_tile_of_a_scalable_stream_requests_its_size_too(server):
    """VP9 with its layers in one stream: as with simulcast, from the first decision on no more is sent than the smallest layer that fills the tile."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "inside", "ada", send="camera", codec="VP9", script=f"{one_stream('L3T3_KEY')};{SAME_SIZE}")
            bob = await open_room(browser, server, "inside", "bob", send="nothing", size=(700, 420))
            await wait_for_video(bob)
            await until(bob, "martlet.received().then((all) => all.some((one) => one.frameHeight === 360 && one.framesDecoded > 40))")
            assert not ada.problems and not bob.problems
            shown = await bob.evaluate("Math.max(...[...document.querySelectorAll('.tile video')].map((one) => one.clientHeight)) * devicePixelRatio")
            return shown, server.api("GET", "/v1/rooms/inside/participants/bob/decisions")[1]["decisions"]

    shown, decisions = asyncio.run(run())
    layers = [(one["layer"]["spatial"], one["layer"]["height"]) for one in decisions if one.get("layer")]
    print(f"figures: layers decided for a tile of {shown} lines: {layers}")
    # Chosen, and not one that grew: where the encoder leaves its largest layer out for a moment, the others count as larger ones of a smaller video.
    chosen = [height for (before, _), (spatial, height) in zip([(None, 0), *layers], layers) if spatial != before]
    # The next smaller layer has half of its height.
    assert chosen and max(chosen) / 2 < shown < 360 and layers[-1][1] / 2 < shown


def test_4_10_tiles_request_their_size_before_the_publisher_encodes(server):
    """A waiting participant requests the size as soon as a video is announced: ahead of the server's offer, and so of the media."""
    log = """(() => {
        window.messages = [];
        const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (text) {
            if (!this.isLogged) this.addEventListener("message", ({ data }) => window.messages.push("got " + JSON.parse(data).type));
            this.isLogged = true;
            window.messages.push("sent " + JSON.parse(text).type);
            return send.call(this, text);
        };
    })()"""

    async def run():
        async with chromium() as browser:
            bob = await open_room(browser, server, "early", "bob", send="nothing", size=(700, 420), script=log)
            await bob.evaluate("window.messages.length = 0")
            await open_room(browser, server, "early", "ada", send="camera")
            await wait_for_video(bob)
            messages = [one for one in await bob.evaluate("window.messages") if one in ("got trackPublished", "got offer", "sent view")]
            print(f"figures: {messages[:6]}")
            assert messages.index("sent view") < messages.index("got offer"), messages

    asyncio.run(run())


# So many more microphones, as the page would publish them.
MORE = """(async (count) => {
    const voice = martlet.room.media.sources.find(({ source }) => source === "microphone").track;
    const tracks = Array.from({ length: count }, () => voice.clone());
    await martlet.room.publishing.add(tracks.map((track) => ({ track, source: "microphone" })), new MediaStream(tracks));
})"""
PROBLEM = "document.querySelector('#room-problem').textContent"
HEARD = "martlet.received().then((all) => all.filter((one) => one.kind === 'audio' && one.packetsReceived > 10).length)"


@pytest.mark.at_night
def test_3_32_tracks_of_a_participant_arrive_and_a_33rd_is_refused_with_a_reason(server):
    """Each of the 32 reaches a subscriber. A screen beyond them is not captured in vain: the page says why it is not shared, and shares it later."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "many", "ada", simulcast=0)
            bob = await open_room(browser, server, "many", "bob", send="nothing")
            await wait_for_video(bob)
            await ada.evaluate(f"({MORE})(30)")
            _, person = server.api("GET", "/v1/rooms/many/participants/ada")
            assert len(person["tracks"]) == 32
            await until(bob, f"{HEARD}.then((count) => count === 31)", 40)
            assert await ada.evaluate(PROBLEM) == ""
            await ada.click("#share-screen")
            await until(ada, f"{PROBLEM} === 'The others do not receive your screen: you have reached the limit of published tracks.'")
            await until(ada, "document.querySelector('#share-screen').textContent.trim() === 'Share screen' && martlet.room.screen === null")
            assert len(server.api("GET", "/v1/rooms/many/participants/ada")[1]["tracks"]) == 32
            await ada.evaluate("""martlet.room.publishing.remove([...martlet.room.publishing.sent].slice(-1).map(([track]) => track))""")
            await ada.click("#share-screen")
            await wait_for_video(bob, count=2, frames=2)
            assert await ada.evaluate(PROBLEM) == "" and not ada.problems and not bob.problems

    asyncio.run(run())


def test_3_waiting_tracks_are_counted_beside_the_room_name(server):
    """The event as the server sends it (Protocol.md); test_limits.py has the server's side."""
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "waiting", "ada", send="nothing")
            shown = "document.querySelector('#waiting').textContent"
            for waiting, text in [
                (62, "62 tracks of other participants are not received yet: a participant receives at most 250 tracks."),
                (1, "1 track of other participants is not received yet: a participant receives at most 250 tracks."), (0, ""),
            ]:
                await page.evaluate(f"martlet.room.handle({{ type: 'subscriptionsWaiting', seq: 17, limit: 250, waiting: {waiting} }})")
                assert await page.evaluate(shown) == text

    asyncio.run(run())


def test_what_the_room_refused_is_not_sent_with_what_it_takes_later(server):
    """One publisher is permitted. The second one's camera is refused; when there is a place, its screen is published, and nothing else with it."""
    async def run():
        assert server.api("POST", "/v1/rooms", {"name": "single", "policy": {"maxPublishers": 1}})[0] == 201
        async with chromium() as browser:
            ada = await open_room(browser, server, "single", "ada")
            await until(ada, "martlet.sent().then((all) => all.length > 0)")
            bob = await open_room(browser, server, "single", "bob", script=SPARING)
            await until(bob, "document.querySelector('#room-problem').textContent !== ''")
            # The reason may be reported before the page has taken its sections out.
            await until(bob, "martlet.room.publishing.sent.size === 0")
            await ada.click("#leave")
            await until(bob, "martlet.room.participants?.size === 0 || martlet.room.roster.count === 1")
            await bob.click("#share-screen")
            await until(bob, "martlet.sent().then((all) => all.some((one) => one.kind === 'video' && one.packetsSent > 0))")
            (member,) = server.api("GET", "/v1/rooms/single/participants")[1]["participants"]
            assert [track["source"] for track in member["tracks"]] == ["screen"], member
            assert not bob.problems

    asyncio.run(run())


def test_whoever_is_recorded_sees_it_on_a_phone_held_sideways(server):
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "sideways", "ada", send="nothing", size=(844, 390))
            assert not await ada.is_visible("#recording") and not await ada.is_visible("#room-title")
            # In one step: the next event of the room says that nothing is recorded.
            shown = await ada.evaluate("""(() => {
                const [recording, title] = ["recording", "room-title"].map((id) => document.getElementById(id));
                recording.textContent = "Recording";
                return [recording, title].map((one) => one.getBoundingClientRect().width > 0);
            })()""")
            assert shown == [True, False]

    asyncio.run(run())
