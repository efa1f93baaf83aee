"""An app that somebody wrote after reading the page /examples: another origin, a tile for each person, mute, chat, a file. Run by name and at night."""
import asyncio
import json

from aiohttp import web

from support.chromium import chromium, until
from support.tokens import token

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Seminar</title>
<style>figure.speaking { outline: 3px solid green } figure.muted figcaption::after { content: " (muted)" }</style>
<main id="tiles"></main><ul id="chat"></ul><p id="state"></p>
<script type="module">
const query = new URLSearchParams(location.search), server = query.get("server");
const { Room } = await import(server + "/martlet.js");
const tiles = document.querySelector("#tiles"), chat = document.querySelector("#chat");
const room = window.room = new Room(server, () => query.get("token"), { codec: "VP8" });
function tileOf({ identity, name }) {
    let tile = [...tiles.children].find(({ dataset }) => dataset.identity === identity);
    if (!tile) {
        tile = tiles.appendChild(document.createElement("figure"));
        tile.dataset.identity = identity;
        tile.append(Object.assign(document.createElement("figcaption"), { textContent: name || identity }));
    }
    return tile;
}
const showMute = ({ publication, participant }) => {
    if (publication.source === "microphone") tileOf(participant).classList.toggle("muted", publication.muted);
};
room.on("participantJoined", ({ participant }) => tileOf(participant));
room.on("participantLeft", ({ participant }) => tileOf(participant).remove());
room.on("trackSubscribed", ({ publication, participant }) => publication.kind === "video" && tileOf(participant).prepend(publication.attach()));
room.on("trackPublished", showMute);
room.on("trackUpdated", showMute);
room.on("stateChanged", ({ state }) => { document.querySelector("#state").textContent = state; });
room.on("data", ({ topic, text, participant }) => {
    if (topic === "chat") chat.append(Object.assign(document.createElement("li"), { textContent: `${participant.name}: ${text}` }));
});
room.on("file", async ({ file }) => { window.got = await (await file.accept()).text(); });
await room.connect();
const pen = Object.assign(document.createElement("canvas"), { width: 320, height: 180 }).getContext("2d");
let n = 0;
setInterval(() => { pen.fillStyle = `hsl(${n++ * 7} 80% 50%)`; pen.fillRect(0, 0, 320, 180); }, 66);
const camera = window.camera = await room.publish(pen.canvas.captureStream(15).getVideoTracks()[0], { name: "drawing" });
tileOf(room.localParticipant).prepend(camera.attach());
const sound = new AudioContext(), tone = sound.createOscillator(), out = sound.createMediaStreamDestination();
tone.connect(out);
tone.start();
window.microphone = await room.publish(out.stream.getAudioTracks()[0]);
</script></html>"""

VIDEO = "[...document.querySelectorAll('figure')].find(({ dataset }) => dataset.identity === %s)?.querySelector('video')"


def test_an_app_written_after_the_page_of_examples_runs_on_another_origin(server):
    async def run():
        async def page(_):
            return web.Response(text=PAGE, content_type="text/html")

        app = web.Application()
        app.router.add_get("/", page)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with chromium() as browser:
            pages = {}
            for name in ("ada", "bob"):
                pages[name] = await browser.new_page()
                await pages[name].goto(f"{address}/?server={server.url}&token={token(name, 'seminar')}")
            ada, bob = pages["ada"], pages["bob"]
            for one, other in ((ada, "bob"), (bob, "ada")):
                await until(one, f"({VIDEO % json.dumps(other)})?.getVideoPlaybackQuality().totalVideoFrames > 20", 30)
                assert await one.evaluate("document.querySelectorAll('figure').length") == 2
                assert await one.evaluate("document.querySelector('#state').textContent") == "connected"
            await ada.evaluate("microphone.setMuted(true)")
            await until(bob, "!!document.querySelector('figure.muted')")
            await ada.evaluate("microphone.setMuted(false)")
            await until(bob, "!document.querySelector('figure.muted')")
            await bob.evaluate("room.send('Hello <b>all</b>', { topic: 'chat' })")
            await until(ada, "document.querySelector('#chat').textContent.endsWith(': Hello <b>all</b>')")
            await ada.evaluate("room.sendFile(new File(['a,b\\n1,2'], 'table.csv')).then(() => 0)")
            await until(bob, "window.got === 'a,b\\n1,2'")
            await ada.evaluate("camera.unpublish().then(() => 0)")
            await until(bob, f"!({VIDEO % json.dumps('ada')})")
            await ada.evaluate("room.leave()")
            await until(bob, "document.querySelectorAll('figure').length === 1")
        await runner.cleanup()

    asyncio.run(run())
