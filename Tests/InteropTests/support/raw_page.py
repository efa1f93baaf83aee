"""A page that speaks martlet.v1 by hand."""
from .tokens import token

# A client of Protocol.md without the console's code.
SCRIPT = r"""
window.raw = {
    events: [], waiting: {}, last: 0,
    join(url, fields) {
        this.socket = new WebSocket(url, "martlet.v1");
        return new Promise((resolve) => {
            this.socket.onmessage = ({ data }) => {
                const message = JSON.parse(data);
                if (message.type === "hello") {
                    this.request("join", fields).then(resolve);
                    // As section 6 asks: a session that says nothing for three times as long ends, and on a slow machine a test takes longer.
                    setInterval(() => this.request("ping"), message.pingIntervalSeconds * 1000);
                } else if (message.id) { this.waiting[message.id]?.(message); delete this.waiting[message.id]; }
                else { this.events.push(message); this.onEvent?.(message); }
            };
        });
    },
    request(type, fields = {}) {
        const id = ++this.last;
        this.socket.send(JSON.stringify({ type, id, ...fields }));
        return new Promise((resolve) => { this.waiting[id] = resolve; });
    },
    // Answers what the server offers from now on, and what it has offered already.
    receive() {
        let work = Promise.resolve();
        this.onEvent = ({ type, sdp }) => {
            if (type === "offer") work = work.then(async () => {
                this.sub ??= new RTCPeerConnection();
                await this.sub.setRemoteDescription({ type, sdp });
                await this.sub.setLocalDescription();
                this.answered = await this.request("answer", { connection: "sub", sdp: this.sub.localDescription.sdp });
            });
        };
        this.events.forEach(this.onEvent);
    },
    picture() {
        const pen = Object.assign(document.createElement("canvas"), { width: 320, height: 180 }).getContext("2d");
        let n = 0;
        setInterval(() => { pen.fillStyle = `hsl(${n++ * 7} 80% 50%)`; pen.fillRect(0, 0, 320, 180); }, 66);
        return pen.canvas.captureStream(15).getVideoTracks()[0];
    },
    tone() {
        const context = new AudioContext();
        const tone = context.createOscillator();
        const out = context.createMediaStreamDestination();
        tone.connect(out);
        tone.start();
        return out.stream.getAudioTracks()[0];
    },
    async offer(name, connection) {
        await connection.setLocalDescription();
        const answer = await this.request("offer", { connection: name, sdp: connection.localDescription.sdp });
        if (answer.type === "answer") await connection.setRemoteDescription({ type: "answer", sdp: answer.sdp });
        return answer;
    },
    async frames(connection, kind) {
        let count = 0;
        (await connection.getStats()).forEach((one) => {
            if (one.type === "inbound-rtp" && one.kind === kind) count += kind === "video" ? one.framesDecoded ?? 0 : one.packetsReceived;
        });
        return count;
    },
};
"""


async def raw_page(browser, server):
    page = await browser.new_page(bypass_csp=True)
    await page.goto(server.url + "/")
    await page.evaluate(SCRIPT)
    return page


async def raw_member(browser, server, room, name, **join):
    return await raw_join(await raw_page(browser, server), server, room, name, **join)


async def raw_join(page, server, room, name, **join):
    url = f"{server.url.replace('http', 'ws', 1)}/v1/signal?access_token={token(name, room)}"
    reply = await page.evaluate("([url, fields]) => raw.join(url, fields)", [url, join])
    assert reply["type"] == "joined", reply
    return page
