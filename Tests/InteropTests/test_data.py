"""Messages over data channels and WebSockets, between real clients."""
import asyncio
import json

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from support.aiortc_client import MovingPicture  # lets aioice use loopback, too
from support.chromium import chromium, until
from support.firefox import firefox
from support.raw_page import SCRIPT, raw_member
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S, until_true

# Opens the two channels of Protocol.md section 11, keeps what arrives, and sends content that its receiver can check.
DATA = r"""
Object.assign(raw, {
    got: [], channels: {},
    content: (size) => Uint8Array.from({ length: size }, (_, i) => (i * 7 + size) & 255),
    async openData(labels = { reliable: {}, lossy: { ordered: false, maxRetransmits: 0 } }) {
        this.pub ??= new RTCPeerConnection();
        const opened = Object.entries(labels).map(([label, options]) => this.openChannel(label, options));
        if (this.pub.signalingState === "stable" && !this.offered) {
            this.offered = true;
            const answer = await this.offer("pub", this.pub);
            if (answer.type !== "answer") throw new Error(JSON.stringify(answer));
        }
        await Promise.all(opened);
        return this.pub.sctp.maxMessageSize;
    },
    openChannel(label, options) {
        const channel = this.channels[label] = this.pub.createDataChannel(label, options);
        channel.binaryType = "arraybuffer";
        channel.onmessage = ({ data }) => this.got.push(this.read(label, data));
        channel.onclose = () => { channel.ended = true; };
        return new Promise((resolve) => { channel.onopen = resolve; });
    },
    read(label, data) {
        if (typeof data === "string") return { label, ...JSON.parse(data) };
        const length = new DataView(data).getUint16(0), size = data.byteLength - 2 - length;
        const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 2, length)));
        const content = new Uint8Array(data, 2 + length), wanted = this.content(size);
        return { label, ...header, size, intact: content.every((byte, i) => byte === wanted[i]) };
    },
    sendBinary(label, topic, size, to) {
        const header = new TextEncoder().encode(JSON.stringify({ topic, to }));
        const frame = new Uint8Array(2 + header.length + size);
        new DataView(frame.buffer).setUint16(0, header.length);
        frame.set(header, 2);
        frame.set(this.content(size), 2 + header.length);
        this.channels[label].send(frame);
    },
});
0
"""
SIZES = [1, 1_130, 1_200, 16_384, 65_000]


def content(size):
    return bytes((i * 7 + size) & 255 for i in range(size))


def binary(topic, size):
    header = json.dumps({"topic": topic}).encode()
    return len(header).to_bytes(2, "big") + header + content(size)


class Aiortc:
    """A member that has data channels by aiortc, and nothing else."""

    def __init__(self, session):
        self.session, self.got, self.pc = session, [], RTCPeerConnection(RTCConfiguration(iceServers=[]))

    async def open(self):
        self.channel = self.pc.createDataChannel("reliable")
        opened = asyncio.get_running_loop().create_future()
        self.channel.on("open", lambda: opened.set_result(True))
        self.channel.on("message", self.got.append)
        await self.pc.setLocalDescription(await self.pc.createOffer())
        answer, _ = await self.session.request("offer", connection="pub", sdp=self.pc.localDescription.sdp)
        assert answer["type"] == "answer", answer
        await self.pc.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
        await asyncio.wait_for(opened, PATIENCE_S)

    def binary(self):
        for data in self.got:
            if isinstance(data, bytes):
                length = int.from_bytes(data[:2], "big")
                yield json.loads(data[2:2 + length]), data[2 + length:]


async def plain_session(server, path, name, *, video):
    """A WHIP or WHEP session with a data section; its channel, what arrives on it, and its connection."""
    pc, got = RTCPeerConnection(RTCConfiguration(iceServers=[])), asyncio.Queue()
    channel = pc.createDataChannel("reliable")
    opened = asyncio.get_running_loop().create_future()
    channel.on("open", lambda: opened.set_result(True))
    channel.on("message", got.put_nowait)
    if video:
        pc.addTrack(MovingPicture())
    else:
        pc.addTransceiver("video", direction="recvonly")
    await pc.setLocalDescription(await pc.createOffer())
    headers = {"Authorization": f"Bearer {token(name, 'plain')}", "Content-Type": "application/sdp"}
    status, _, text = await asyncio.to_thread(server.request, "POST", path, pc.localDescription.sdp, headers)
    assert status == 201, text
    await pc.setRemoteDescription(RTCSessionDescription(text, "answer"))
    await asyncio.wait_for(opened, PATIENCE_S)
    return channel, got, pc


def test_whip_and_whep_sessions_with_a_data_section_exchange_messages(server):
    async def run():
        encoder, told, sending = await plain_session(server, "/whip/plain", "cam", video=True)
        player, heard, playing = await plain_session(server, "/whep/plain", "tv", video=False)
        async with signal(server, token("ada", "plain"), room="plain") as ada:
            encoder.send(json.dumps({"topic": "score", "text": "1:0"}))
            assert json.loads(await asyncio.wait_for(heard.get(), PATIENCE_S)) == {
                "from": (await ada.wait_for("data", topic="score"))[1]["from"], "identity": "cam", "topic": "score", "text": "1:0"}
            player.send(json.dumps({"topic": "vote", "text": "yes"}))
            message = json.loads(await asyncio.wait_for(told.get(), PATIENCE_S))
            assert (message["identity"], message["text"]) == ("tv", "yes"), message
            assert server.api("POST", "/v1/rooms/plain/messages", {"topic": "end", "text": "thanks"})[0] < 300
            for queue in (told, heard):
                assert json.loads(await asyncio.wait_for(queue.get(), PATIENCE_S))["text"] == "thanks"
        await asyncio.gather(sending.close(), playing.close())

    asyncio.run(run())


async def has(page, expression, timeout_s=PATIENCE_S):
    await until(page, expression, timeout_s)


def test_chromium_firefox_and_aiortc_exchange_messages_of_all_sizes(development_server):
    """Each sends 1 byte to 65 kB to the two others, and a text that they and a member without data channels receive."""
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox, signal(server, token("ws", "data"), room="data") as socket, \
                signal(server, token("py", "data"), room="data") as session:
            ada = await raw_member(browser, server, "data", "ada")
            await fox.open(server.url + "/")
            await fox.run(SCRIPT)
            url = f"{server.url.replace('http', 'ws', 1)}/v1/signal?access_token={token('fox', 'data')}"
            await fox.evaluate(f"raw.join({json.dumps(url)}, {{ room: 'data' }})")
            await fox.run(DATA)
            await ada.evaluate(DATA)
            python = Aiortc(session)
            await python.open()
            sizes = await asyncio.gather(ada.evaluate("raw.openData()"), fox.evaluate("raw.openData()"))
            assert sizes == [260_096, 260_096]
            for size in SIZES:
                await ada.evaluate(f"raw.sendBinary('reliable', 'ada', {size})")
                await fox.run(f"raw.sendBinary('reliable', 'fox', {size})")
                python.channel.send(binary("py", size))
            await ada.evaluate("raw.channels.reliable.send(JSON.stringify({ topic: 'chat', text: 'Grüße 👋' }))")
            for page_wait, other in ((lambda e: until(ada, e), "fox"), (lambda e: fox.wait_for(e, PATIENCE_S), "ada")):
                for sender in (other, "py"):
                    wanted = json.dumps(SIZES)
                    await page_wait(f"JSON.stringify(raw.got.filter((m) => m.topic === '{sender}' && m.intact && m.identity === '{sender}')"
                                    f".map((m) => m.size)) === JSON.stringify({wanted})")
            await fox.wait_for("raw.got.some((m) => m.text === 'Grüße 👋' && m.identity === 'ada')")

            def arrived(sender):
                return [len(data) for header, data in python.binary() if header["identity"] == sender and data == content(len(data))]

            for sender in ("ada", "fox"):
                await until_true(lambda: arrived(sender) == SIZES, PATIENCE_S, f"all messages of {sender} reach aiortc")
            _, event = await socket.wait_for("data", topic="chat")
            assert event["text"] == "Grüße 👋" and event["identity"] == "ada"
            await python.pc.close()

    asyncio.run(run())


def test_messages_reach_named_receivers_by_socket_channel_and_api(server):
    """Who has only a WebSocket sends and receives too; refusals have a reason."""
    async def run():
        async with chromium() as browser, signal(server, token("bob", "named"), room="named") as bob, \
                signal(server, token("mute", "named", canPublishData=False), room="named") as mute:
            ada = await raw_member(browser, server, "named", "ada")
            await ada.evaluate(DATA)
            await ada.evaluate("raw.openData()")
            # To one by name: the other does not get it.
            await ada.evaluate("raw.channels.lossy.send(JSON.stringify({ topic: 'one', to: ['bob'], text: 'x' }))")
            await bob.wait_for("data", topic="one", identity="ada")
            reply, _ = await bob.request("data", topic="back", to=["ada"], text="y")
            assert reply["type"] == "ok", reply
            await has(ada, "raw.got.some((m) => m.topic === 'back' && m.text === 'y' && m.label === 'reliable')")
            reply, _ = await mute.request("data", topic="no", text="z")
            assert reply["code"] == "permission_denied" and "canPublishData" in reply["message"]
            # Refused on a channel: an event says why.
            await ada.evaluate("raw.channels.reliable.send(JSON.stringify({ topic: 'gone', to: ['nobody'], text: 'x' }))")
            await has(ada, "raw.events.some((e) => e.type === 'dataRefused' && e.code === 'participant_not_found' && e.topic === 'gone')")
            await ada.evaluate("raw.channels.reliable.send('no JSON')")
            await has(ada, "raw.events.some((e) => e.type === 'dataRefused' && e.code === 'invalid_request')")
            # From the API, to all.
            headers = {"Authorization": f"Bearer {token('operator', 'named', roomAdmin=True)}", "Content-Type": "application/json"}
            status, _, _ = server.request("POST", "/v1/rooms/named/messages", json.dumps({"topic": "api", "text": "all"}), headers)
            assert status == 204
            await has(ada, "raw.got.some((m) => m.topic === 'api' && m.identity === undefined)")
            for session in (bob, mute):
                await session.wait_for("data", topic="api", text="all")
            assert not mute.of("data", topic="one")

    asyncio.run(run())


def test_A16_channels_close_and_open_again_and_messages_go_on_while_video_is_stopped(server):
    """Media goes on beside the channels, and messages while the app's capture is suspended (A16, B19)."""
    async def run():
        async with chromium() as browser:
            pages = [await raw_member(browser, server, "again", name) for name in ("ada", "bob")]
            for page in pages:
                await page.evaluate(DATA)
                await page.evaluate("raw.receive()")
                await page.evaluate("raw.pub = new RTCPeerConnection(), raw.pub.addTrack(raw.picture()), 0")
                await page.evaluate("raw.openData()")
            ada, bob = pages
            await has(bob, "raw.sub && raw.frames(raw.sub, 'video').then((n) => n > 10)")
            for round in range(5):
                await ada.evaluate("raw.channels.reliable.close()")
                await has(ada, "raw.channels.reliable.ended")
                await ada.evaluate("raw.openChannel('reliable', {})")
                await ada.evaluate(f"raw.channels.reliable.send(JSON.stringify({{ topic: 'r{round}', text: 'x' }}))")
                await has(bob, f"raw.got.some((m) => m.topic === 'r{round}')")
                await bob.evaluate(f"raw.sendBinary('reliable', 'b{round}', 30000)")
                await has(ada, f"raw.got.some((m) => m.topic === 'b{round}' && m.intact)")
            frames = await bob.evaluate("raw.frames(raw.sub, 'video')")
            await has(bob, f"raw.frames(raw.sub, 'video').then((n) => n > {frames} + 15)")
            await ada.evaluate("raw.pub.getSenders()[0].replaceTrack(null)")
            await has(bob, "raw.events.some((e) => e.type === 'trackUpdated' && e.track.silent)")
            await ada.evaluate("raw.channels.reliable.send(JSON.stringify({ topic: 'silent', text: 'x' }))")
            await has(bob, "raw.got.some((m) => m.topic === 'silent')")
            # No reconnect: the message came over the channel that was open before, and for bob neither ada nor her track has left.
            assert not await bob.evaluate("raw.events.some((e) => e.type === 'participantLeft' || e.type === 'trackUnpublished')")

    asyncio.run(run())
