"""Rooms with policy `peerToPeer`: the server relays what members say to each other, and carries no media."""
import asyncio

from support.bare import offer
from support.chromium import chromium, until
from support.signalling import signal
from support.tokens import token

# One member of a mesh call, from Protocol.md section 5: who comes later offers, everything goes through `relay`.
MEMBER = r"""
window.mesh = {
    peers: {}, frames: {},
    async join(url, room) {
        const socket = new WebSocket(`${url}&room=${room}`, "martlet.v1");
        const pen = Object.assign(document.createElement("canvas"), { width: 160, height: 120 }).getContext("2d");
        let n = 0;
        setInterval(() => { pen.fillStyle = `hsl(${n++ * 7} 80% 50%)`; pen.fillRect(0, 0, 160, 120); }, 66);
        this.stream = pen.canvas.captureStream(15);
        const send = (to, message) => socket.send(JSON.stringify({ type: "relay", to, payload: JSON.stringify(message) }));
        const peer = (sid) => {
            const connection = this.peers[sid] = new RTCPeerConnection();
            for (const track of this.stream.getTracks()) connection.addTrack(track, this.stream);
            connection.onicecandidate = ({ candidate }) => send(sid, { candidate });
            return connection;
        };
        socket.onmessage = async ({ data }) => {
            const message = JSON.parse(data);
            if (message.type === "hello") socket.send(JSON.stringify({ type: "join", id: 1 }));
            if (message.type === "joined") {
                this.topology = message.room.topology;
                for (const other of message.participants) {
                    const connection = peer(other.sid);
                    await connection.setLocalDescription();
                    send(other.sid, { description: connection.localDescription });
                }
                this.joined = true;
            }
            if (message.type === "participantLeft") { this.peers[message.participant]?.close(); delete this.peers[message.participant]; }
            if (message.type !== "relay") return;
            const { description, candidate } = JSON.parse(message.payload);
            const connection = this.peers[message.from] ?? peer(message.from);
            if (description) {
                await connection.setRemoteDescription(description);
                if (description.type === "offer") {
                    await connection.setLocalDescription();
                    send(message.from, { description: connection.localDescription });
                }
            } else if (candidate) {
                await connection.addIceCandidate(candidate);
            }
        };
        this.leave = () => socket.send(JSON.stringify({ type: "leave" }));
    },
    async decoded() {
        let least = Infinity;
        for (const connection of Object.values(this.peers)) {
            let frames = 0;
            (await connection.getStats()).forEach((one) => { if (one.type === "inbound-rtp") frames += one.framesDecoded ?? 0; });
            least = Math.min(least, frames);
        }
        return least;
    },
};
"""


def test_three_browsers_call_each_other_through_relayed_messages(server):
    assert server.api("POST", "/v1/rooms", {"name": "mesh", "policy": {"topology": "peerToPeer"}})[0] == 201

    async def run():
        async with chromium() as browser:
            pages = {}
            for name in ("ada", "bob", "eve"):
                page = pages[name] = await browser.new_page(bypass_csp=True)
                await page.goto(server.url + "/")
                await page.evaluate(MEMBER)
                url = f"{server.url.replace('http', 'ws', 1)}/v1/signal?access_token={token(name)}"
                await page.evaluate("([url, room]) => mesh.join(url, room)", [url, "mesh"])
                await until(page, "mesh.joined")
            for page in pages.values():
                assert await page.evaluate("mesh.topology") == "peerToPeer"
                await until(page, "Object.keys(mesh.peers).length === 2 && mesh.decoded().then((n) => n >= 10)")
            await pages["eve"].evaluate("mesh.leave()")
            await until(pages["ada"], "Object.keys(mesh.peers).length === 1")
            assert server.metric("martlet_connections") == 0 and server.metric("martlet_packets_forwarded_total") == 0

    asyncio.run(run())


def test_relay_reaches_one_participant_within_its_limits_and_only_in_mesh_rooms(server):
    server.api("POST", "/v1/rooms", {"name": "mesh", "policy": {"topology": "peerToPeer"}})

    async def run():
        async with signal(server, token("ada", "mesh")) as ada, signal(server, token("bob", "mesh")) as bob, \
                signal(server, token("eve", "mesh")) as eve, signal(server, token("mute", "mesh", canPublishData=False)) as mute:
            sid = bob.joined["participant"]["sid"]
            for to in (sid, "bob"):
                assert (await ada.request("relay", to=to, payload=f"for {to}"))[0]["type"] == "ok"
                _, event = await bob.wait_for("relay", payload=f"for {to}")
                assert event["from"] == ada.joined["participant"]["sid"] and event["identity"] == "ada"
            assert not eve.of("relay")
            for fields, code in [({"to": "nobody", "payload": ""}, "participant_not_found"), ({"to": "ada", "payload": ""}, "participant_not_found"),
                                 ({"to": sid, "payload": "x" * 65_537}, "too_large"), ({"to": sid}, "malformed_message")]:
                assert (await ada.request("relay", **fields))[0]["code"] == code
            assert (await mute.request("relay", to=sid, payload=""))[0]["code"] == "permission_denied"
            assert (await ada.request("offer", connection="pub", sdp=offer()))[0]["code"] == "not_routed"
        async with signal(server, token("ada", "routed")) as ada, signal(server, token("bob", "routed")):
            assert (await ada.request("relay", to="bob", payload=""))[0]["code"] == "relay_not_allowed"

    asyncio.run(run())
