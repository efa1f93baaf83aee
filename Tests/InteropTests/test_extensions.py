"""What rides beside the payload reaches browsers: how a picture is turned, and audio that carries itself twice."""
import asyncio

from support.aiortc_client import Client
from support.chromium import chromium, open_room, room_address, until, wait_for_video
from support.firefox import firefox
from support.tokens import token
from support.waiting import PATIENCE_S

# A camera whose frames carry a rotation: the left upper quarter is red, the rest blue. `turn(degrees)` turns it.
TURNED_CAMERA = """(async () => {
    const generator = new MediaStreamTrackGenerator({ kind: "video" });
    const writer = generator.writable.getWriter();
    const canvas = new OffscreenCanvas(640, 360);
    const pen = canvas.getContext("2d");
    let rotation = 0;
    let count = 0;
    window.turn = (degrees) => { rotation = degrees; };
    setInterval(() => {
        pen.fillStyle = "#0000ff";
        pen.fillRect(0, 0, 640, 360);
        pen.fillStyle = "#ff0000";
        pen.fillRect(0, 0, 320, 180);
        pen.fillStyle = "#ffffff";
        pen.fillRect(300 + 10 * (count++ % 20), 340, 10, 10);
        writer.write(new VideoFrame(canvas, { timestamp: performance.now() * 1000, rotation }));
    }, 66);
    await martlet.room.publishing.add([{ track: generator, source: "camera" }], new MediaStream([generator]));
})()"""

# Which quarter of the remote picture is red, and whether it stands upright.
SEEN = """(() => {
    const video = document.querySelector(".tile:not(.own) video");
    if (!video?.videoWidth) return "";
    const pen = new OffscreenCanvas(2, 2).getContext("2d");
    pen.drawImage(video, 0, 0, 2, 2);
    const data = pen.getImageData(0, 0, 2, 2).data;
    const red = [0, 1, 2, 3].filter((quarter) => data[4 * quarter] > 120 && data[4 * quarter + 2] < 120);
    const shape = video.videoWidth > video.videoHeight ? "wide" : "tall";
    return shape + " " + red.map((quarter) => ["left upper", "right upper", "left lower", "right lower"][quarter]).join();
})()"""


def test_rotated_video_arrives_rotated(server):
    """B6, D12: urn:3gpp:video-orientation is negotiated with both sides, and each value reaches the subscriber's browser."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "turn", "ada", send="nothing", simulcast=0)
            bob = await open_room(browser, server, "turn", "bob", send="nothing")
            await ada.evaluate(TURNED_CAMERA)
            await wait_for_video(bob, frames=5)
            for page, connection in ((ada, "pub"), (bob, "sub")):
                for side in ("localDescription", "remoteDescription"):
                    assert "urn:3gpp:video-orientation" in await page.evaluate(f"martlet.room.{connection}.{side}.sdp")
            for degrees, picture in {0: "wide left upper", 90: "tall right upper", 180: "wide right lower", 270: "tall left lower"}.items():
                await ada.evaluate(f"turn({degrees})")
                await until(bob, f"{SEEN} === {picture!r}")
            def reported(name):
                _, statistics = server.api("GET", "/v1/rooms/turn/stats")
                viewer = next(one for one in statistics["participants"] if one["identity"] == name)
                return [one["orientationNotNegotiated"] for one in viewer["subscriptions"] if one["kind"] == "video"]

            # aiortc knows no such extension.
            player = await Client().play(f"{server.url}/whep/turn/ada", token("plain", "turn"))
            await player.wait_for_frames(video=5)
            assert "video-orientation" not in player.offer
            assert (reported("bob"), reported("plain")) == ([False], [True])
            await player.close()

    asyncio.run(run())


# The generated tone falls silent every few seconds, and a packet of silence is a fifth of another one: here it goes on.
STEADY_TONE = """(() => {
    const Shaper = WaveShaperNode;
    window.WaveShaperNode = class extends Shaper {
        constructor(context) { super(context, { curve: [0.2, 0.2, 0.2] }); }
    };
})()"""


async def audio_packet_bytes(page, packets=150):
    """Bytes of one received audio packet on average, over so many packets."""
    async def audio():
        return next(r for r in await page.evaluate("martlet.received()") if r["kind"] == "audio")

    before = after = await audio()
    while after["packetsReceived"] < before["packetsReceived"] + packets:
        await asyncio.sleep(0.2)
        after = await audio()
    return (after["bytesReceived"] - before["bytesReceived"]) / (after["packetsReceived"] - before["packetsReceived"])


def test_redundant_audio_passes_and_is_stripped_for_clients_without_RED(development_server):
    """G7: Chromium sends Opus in RED (RFC 2198); Chromium receives both copies, Firefox (which has no RED) plain Opus."""
    server = development_server
    server.api("POST", "/v1/rooms", {"name": "red", "policy": {"audioCodecs": ["red", "opus"]}})

    async def run():
        async with chromium() as browser, firefox() as fox:
            ada = await open_room(browser, server, "red", "ada", red=1, script=STEADY_TONE)
            bob = await open_room(browser, server, "red", "bob", send="nothing")
            await fox.open(room_address(server, "red", "fox", send="nothing"))
            hears = "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0.001))"
            await until(bob, hears)
            await fox.wait_for(hears, PATIENCE_S)
            _, person = server.api("GET", "/v1/rooms/red/participants/ada")
            assert [t["codec"] for t in person["tracks"] if t["kind"] == "audio"] == ["red"]

            for r in await fox.evaluate("martlet.received()"):
                assert r["kind"] != "audio" or r["codec"] == "audio/opus"
            twice, once = await asyncio.gather(audio_packet_bytes(bob), audio_packet_bytes(fox))
            print(f"figures: bytes of an audio packet {twice:.0f} with RED, {once:.0f} without")
            assert twice > 1.5 * once
            assert not ada.problems and not bob.problems

    asyncio.run(run())
