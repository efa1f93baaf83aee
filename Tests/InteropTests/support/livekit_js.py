"""LiveKit's JavaScript SDK in a page. The wheel of the Python SDK has it, bundled into a small app for notebooks; here the app's last statement, which starts
the app, gives the page the SDK's `Room` instead."""
import functools
import json
import pathlib
import re

#: Draws, publishes and watches, with nothing but the SDK's `Room`.
PAGE = r"""
window.lk = {
    events: [], data: [], texts: [], drawn: new Map(),
    async join(url, token, options) {
        const room = this.room = new LiveKitRoom(options);
        for (const type of ["reconnected", "signalReconnecting", "reconnecting", "disconnected", "trackMuted", "trackUnmuted", "participantDisconnected"]) {
            room.on(type, () => this.events.push(type));
        }
        room.on("trackSubscribed", (track, publication, participant) => {
            const element = track.attach();
            document.body.append(element);
            if (track.kind === "video") this.drawn.set(participant.identity, { element, track, publication });
        });
        // LiveKit's words: paused and active; whether one may subscribe.
        room.on("trackStreamStateChanged", (publication, state) => this.events.push(`stream ${state}`));
        room.on("trackSubscriptionPermissionChanged", (publication, status) => this.events.push(`permission ${status}`));
        room.on("dataReceived", (payload, participant, kind, topic) => {
            this.data.push({ from: participant?.identity, topic, kind, size: payload.length, sum: payload.reduce((a, b) => (a + b) % 65521, 0) });
        });
        room.registerTextStreamHandler("notes", async (reader, { identity }) => this.texts.push({ identity, text: await reader.readAll() }));
        room.registerRpcMethod("double", async ({ payload }) => String(2 * Number(payload)));
        await room.connect(url, token);
    },
    async publish(colour, width, height, options = {}) {
        const canvas = Object.assign(document.createElement("canvas"), { width, height });
        const pen = canvas.getContext("2d");
        let n = 0;
        setInterval(() => {
            pen.fillStyle = `rgb(${colour})`;
            pen.fillRect(0, 0, width, height);
            pen.fillStyle = `hsl(${n * 7} 80% 50%)`;
            pen.fillRect(n++ * 8 % width, 0, 24, height);
        }, 66);
        const track = canvas.captureStream(15).getVideoTracks()[0];
        this.own = await this.room.localParticipant.publishTrack(track, { source: "camera", name: "camera", ...options });
    },
    async tone() {
        const context = new AudioContext();
        const tone = context.createOscillator();
        const out = context.createMediaStreamDestination();
        tone.connect(out);
        tone.start();
        await this.room.localParticipant.publishTrack(out.stream.getAudioTracks()[0], { source: "microphone", name: "microphone" });
    },
    // Frames decoded of somebody's video, its size, and the mean colour of what is drawn.
    async sees(identity) {
        const seen = this.drawn.get(identity);
        const found = { frames: 0, size: [0, 0], colour: [0, 0, 0] };
        if (!seen) return found;
        (await seen.track.receiver.getStats()).forEach((one) => { if (one.type === "inbound-rtp") found.frames = Math.max(found.frames, one.framesDecoded ?? 0); });
        const { element } = seen;
        found.size = [element.videoWidth, element.videoHeight];
        const pen = Object.assign(document.createElement("canvas"), { width: 16, height: 9 }).getContext("2d");
        pen.drawImage(element, 0, 0, 16, 9);
        const pixels = pen.getImageData(0, 0, 16, 9).data;
        for (let i = 0; i < 3; i++) found.colour[i] = pixels.filter((_, place) => place % 4 === i).reduce((a, b) => a + b, 0) / 144;
        return found;
    },
    async shows(identity, colour, frames = 10) {
        const seen = await this.sees(identity);
        return seen.frames >= frames && colour.every((value, i) => Math.abs(value - seen.colour[i]) < 50);
    },
    async packets(identity) {
        const track = [...this.room.remoteParticipants.get(identity)?.trackPublications.values() ?? []].find((one) => one.kind === "audio")?.track;
        let count = 0;
        (await track?.receiver.getStats())?.forEach((one) => { if (one.type === "inbound-rtp") count += one.packetsReceived; });
        return count;
    },
};
"""


@functools.cache
def sdk():
    """The SDK's code as a script that sets `LiveKitRoom`, and the version that it names."""
    import livekit.rtc
    page = (pathlib.Path(livekit.rtc.__file__).parent / "resources/jupyter-html/index.html").read_text()
    begin = page.index('<script type="module" crossorigin>') + len('<script type="module" crossorigin>')
    code = page[begin:page.index("</script>", begin)]
    # The class that says this is `Room`.
    room = re.findall(r"class (\w+) extends [\w.]+\{", code[:code.index("already connected to room")])[-1]
    start = code.rindex(";", 0, code.rindex(".createRoot(document.getElementById(\"root\"))"))
    version = re.search(r'="(2\.\d+\.\d+)";const \w+=\w+,\w+=\d+;', code).group(1)
    return f"(() => {{{code[:start]};window.LiveKitRoom = {room};}})();", version


class ChromiumPage:
    """The SDK in a tab of Chromium."""

    def __init__(self, page):
        self.evaluate, self.close = page.evaluate, page.close

    @classmethod
    async def open(cls, browser, server):
        page = await browser.new_page(bypass_csp=True)
        await page.goto(server.url + "/")
        await page.add_script_tag(content=sdk()[0])
        await page.evaluate(PAGE + "0")
        return cls(page)


class FirefoxPage:
    """The SDK in Firefox's tab."""

    def __init__(self, fox):
        self.evaluate = fox.evaluate

    @classmethod
    async def open(cls, fox, server):
        await fox.open(server.url + "/")
        await fox.run(sdk()[0])
        await fox.run(PAGE)
        return cls(fox)


async def join(page, server, token, options=None):
    await page.evaluate(f"lk.join({json.dumps(server.url)}, {json.dumps(token)}, {json.dumps(options or {})})")
    return page
