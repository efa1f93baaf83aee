"""/martlet.js, the module for web apps: two browsers that use nothing else, and the examples of its page."""
import asyncio
import hashlib
import json
import time

from support.chromium import chromium, until
from support.firefox import firefox
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S

# An app: joins, publishes a drawn video, keeps what it gets. It is a page of the server only so that it has an origin.
APP = r"""
window.app = {
    got: [], files: [], events: [],
    async join(url, token, name, options) {
        const { Room } = await import("/martlet.js");
        const room = this.room = new Room(url, token, options);
        room.on("data", ({ bytes, ...rest }) => this.got.push({ ...rest, participant: rest.participant?.identity, bytes: bytes && [...bytes] }));
        room.on("stateChanged", ({ state }) => this.events.push(state));
        room.on("trackSubscribed", ({ publication }) => { if (publication.kind === "video") document.body.append(publication.attach()); });
        room.on("file", async ({ file, participant }) => {
            const digest = await crypto.subtle.digest("SHA-256", await (await file.accept()).arrayBuffer());
            this.files.push({ name: file.name, size: file.size, from: participant.identity, digest: hex(new Uint8Array(digest)) });
        });
        await room.connect();
        const pen = Object.assign(document.createElement("canvas"), { width: 320, height: 180 }).getContext("2d");
        let n = 0;
        setInterval(() => { pen.fillStyle = `hsl(${n++ * 7} 80% 50%)`; pen.fillRect(0, 0, 320, 180); }, 66);
        const publication = await room.publish(pen.canvas.captureStream(15).getVideoTracks()[0], { name: "drawing" });
        return publication.sid;
    },
    // Frames decoded and packets lost of the others' videos.
    async video() {
        const sum = { frames: 0, lost: 0 };
        (await this.room.receiving.connection?.getStats())?.forEach((one) => {
            if (one.type === "inbound-rtp" && one.kind === "video") { sum.frames += one.framesDecoded; sum.lost += one.packetsLost; }
        });
        return sum;
    },
    async sendFile(size, seed) {
        const content = Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8) + seed) & 255);
        let last = 0, isSteady = true;
        const done = await this.room.sendFile(new File([content], "../\u202Egnp.data"), { onProgress: (bytes) => { isSteady &&= bytes >= last; last = bytes; } });
        return { ...done, isSteady };
    },
};
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
0
"""
# A room that was left takes nothing more, and leaves no camera on.
AFTER_THE_END = """(async () => {
    const { room } = app, pen = document.createElement("canvas").getContext("2d"), [track] = pen.canvas.captureStream(1).getTracks();
    const publication = [...room.publications.values()][0], code = (work) => work.then(() => "", (problem) => problem.code);
    return [await code(room.request("ping")), await code(room.send("late")), await code(publication.switchDevice("")), await code(room.publish(track)), track.readyState];
})()"""
FILE_BYTES = 5_000_000


def digest(size, seed):
    return hashlib.sha256(bytes((i * 31 + (i >> 8) + seed) & 255 for i in range(size))).hexdigest()


class Page:
    """One face for a page of Chromium and one of Firefox."""

    def __init__(self, page):
        self.page = page

    async def run(self, expression):
        return await self.page.evaluate(expression)

    async def wait(self, expression, timeout_s=PATIENCE_S):
        if hasattr(self.page, "wait_for"):
            await self.page.wait_for(expression, timeout_s)
        else:
            await until(self.page, expression, timeout_s)


async def members(browser, fox, server, room):
    ada = await browser.new_page(bypass_csp=True)
    ada.problems = []
    ada.on("pageerror", lambda error: ada.problems.append(str(error)))
    await ada.goto(server.url + "/examples")
    await ada.evaluate(APP)
    await fox.open(server.url + "/examples")
    await fox.run(APP)
    pages = Page(ada), Page(fox)
    for page, name, url in zip(pages, ("ada", "fox"), (server.url.replace("http", "ws", 1), "")):
        sid = await page.run(f"app.join({url!r}, {token(name, room)!r}, {name!r}, {{ room: {room!r} }})")
        assert sid.startswith("TR_"), sid
    return pages


async def data_of_each_kind(ada, fox, socket):
    await ada.wait("app.room.channels.open.get('reliable')?.readyState === 'open' && app.room.channels.open.get('lossy')?.readyState === 'open'")
    await fox.wait("app.room.channels.open.get('lossy')?.readyState === 'open'")
    for page, other, name in ((ada, fox, "ada"), (fox, ada, "fox")):
        await page.run("app.room.send('Grüße 👋', { topic: 'chat' })")
        await page.run("app.room.send(new Uint8Array([1, 2, 255]), { topic: 'bytes', to: [...app.room.participants.values()].map((one) => one.identity) })")
        for topic, content in (("chat", "m.text === 'Grüße 👋'"), ("bytes", "m.bytes?.join() === '1,2,255'")):
            await other.wait(f"app.got.some((m) => m.topic === '{topic}' && m.participant === '{name}' && {content})")
        # Nothing repeats it, and what waits for 100 ms is dropped: on a busy machine it may need another try.
        lossy, deadline = f"app.got.some((m) => m.topic === 'lossy' && m.participant === '{name}' && m.bytes?.join() === '1,2')", time.monotonic() + PATIENCE_S
        while not await other.run(lossy):
            assert time.monotonic() < deadline, f"nothing lossy of {name} arrives"
            await page.run("app.room.send(new Uint16Array([513]), { topic: 'lossy', reliable: false })")
            await asyncio.sleep(0.5)
    # A member without a peer connection sends and receives by its socket.
    await socket.wait_for("data", topic="chat", identity="ada")
    reply, _ = await socket.request("data", topic="socket", bytes="AQID")
    assert reply["type"] == "ok"
    await fox.wait("app.got.some((m) => m.topic === 'socket' && m.bytes.join() === '1,2,3')")
    too_long = await ada.run("app.room.send('x'.repeat(300000)).then(() => '', ({ name, code }) => `${name} ${code}`)")
    assert too_long == "MartletError too_large"


def test_two_browsers_that_use_only_the_module_exchange_video_data_and_files_and_resume(development_server):
    """Video, every kind of message, and a file of 5 MB each way whose digests agree; a killed socket is resumed while video goes on without loss."""
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox_browser, signal(server, token("ws", "module"), room="module") as socket:
            ada, fox = await members(browser, fox_browser, server, "module")
            for page in (ada, fox):
                await page.wait("app.video().then(({ frames }) => frames > 15)")
                assert await page.run("[...document.querySelectorAll('article ~ video, body > video')].length") == 1
            await data_of_each_kind(ada, fox, socket)

            started = asyncio.get_running_loop().time()
            # The socket's member cannot answer: whoever does is sent the file.
            for page, seed in ((ada, 1), (fox, 2)):
                await page.run(f"void (app.sent = app.sendFile({FILE_BYTES}, {seed}))")
            for page, seed, name in ((ada, 2, "fox"), (fox, 1, "ada")):
                await page.wait("app.files.length === 1", 40)
                assert await page.run("app.files[0]") == {"name": ".._gnp.data", "size": FILE_BYTES, "from": name, "digest": digest(FILE_BYTES, seed)}
                assert await page.run("app.sent") == {"receivers": 1, "isSteady": True}
            print(f"figures: {FILE_BYTES} bytes each way in {asyncio.get_running_loop().time() - started:.1f} s")

            for page in (ada, fox):
                session, before = await page.run("app.room.signal.session"), await page.run("app.video()")
                await page.run("app.kept = app.room.receiving.connection, app.room.signal.socket.close(), 0")
                await page.wait("app.events.slice(-2).join() === 'reconnecting,connected'")
                await page.wait(f"app.video().then(({{ frames }}) => frames > {before['frames']} + 15)")
                assert await page.run("app.room.signal.session") == session and await page.run("app.kept === app.room.receiving.connection")
                assert (await page.run("app.video()"))["lost"] <= before["lost"]
            # What is received again after an outage is shown where it was.
            received = "[...app.room.participants.values()].flatMap((one) => one.tracks).filter(({ kind, track }) => kind === 'video' && track).length"
            await ada.run("app.room.request('audioOnly', { enabled: true })")
            await ada.wait(f"{received} === 0")
            await ada.run("app.room.request('audioOnly', { enabled: false })")
            await ada.wait(f"{received} === 1")
            assert await ada.run("document.querySelectorAll('body > video').length") == 1
            await ada.run("app.room.leave()")
            await fox.wait("app.room.participants.size === 1 && document.querySelectorAll('body > video').length === 0")
            assert await ada.run(AFTER_THE_END) == ["left", "left", "left", "left", "ended"]
            assert not ada.page.problems

    asyncio.run(run())


# A session whose server ends or forgets it in several ways; each socket does what its line of the script says. Returns what was sent, and how it ended.
# The wait for a token is short; after the end no timer may run that comes again.
SESSIONS = """import("/martlet.js").then(async ({ Room, Signal }) => {
    const { setTimeout, setInterval, clearInterval } = window, real = { WebSocket, fetch, setTimeout, setInterval, clearInterval }, running = new Set();
    window.setTimeout = (work, milliseconds) => setTimeout(work, milliseconds === 15_000 ? 300 : milliseconds);
    window.setInterval = (...given) => { running.add(setInterval(...given)); return [...running].at(-1); };
    window.clearInterval = (timer) => { running.delete(timer); clearInterval(timer); };
    const run = async (scripts, until, pingIntervalSeconds = 60, token = "") => {
        const sent = [];
        let end = "", count = 0, signal;
        window.WebSocket = class {
            static OPEN = 1;
            readyState = 1;
            constructor() {
                this.answers = scripts[Math.min(count++, scripts.length - 1)];
                if (this.answers) setTimeout(() => this.give({ type: "hello", pingIntervalSeconds, resumeWindowSeconds: 30 }));
                else setTimeout(() => this.onclose?.({ code: 1006 }));
            }
            give(message) { this.onmessage?.({ data: JSON.stringify(message) }); }
            close() { this.readyState = 3; }
            send(text) {
                const { id, type } = JSON.parse(text), answer = this.answers?.[type], code = typeof answer === "string" ? answer : answer?.refuse;
                sent.push(type);
                if (type === "ping") setTimeout(() => this.give({ type: "pong", id }));
                else if (code) this.give({ type: "error", id, code, message: "", retryAfter: 30 });
                else if (!answer?.isLost) this.give({ type: type === "join" ? "joined" : "resumed", id, session: "SE_1", seq: 0 });
                if (answer?.close) setTimeout(() => this.onclose?.({ code: answer.close }));
            }
        };
        signal = new Signal({
            url: "", token, join: {}, onJoined() {}, onGuest() {}, onICEServers() {}, onState() {}, onSuspended() {}, onEvent() {},
            onEnd: ({ code }) => { end = code; },
        });
        for (let turn = 0; turn < 200 && !end && sent.filter((type) => type === until[0]).length < until[1]; turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
        const code = end && await signal.request("ping").catch((problem) => problem.code);
        if (end) left += running.size;
        signal.leave();
        return [sent.filter((type) => type !== "leave").join(), end, code, count];
    };
    let asked = 0, left = 0;
    let isAway = false, isFull = false, isProxyFull = false, tokens = 0;
    window.fetch = async () => {
        if (isAway) throw new Error("nobody there");
        if (isFull) return new Response('{"code":"overloaded","detail":"full"}', { status: 503 });
        if (isProxyFull) return new Response('{"message":"no healthy upstream"}', { status: 503 });
        return new Response("{}", { status: 426 });
    };
    const found = {
        noWebSocket: await run([null], ["", 1]),
        tooSlow: await run([{ join: { close: 4006 } }, {}], ["join", 2]),
        lost: await run([{ join: { close: 1005 } }, {}], ["resume", 1]),
        former: await run([{ join: { close: 1006 } }, { resume: "grants_changed" }, { join: "identity_taken" }, {}], ["join", 3]),
        unavailable: await run([{ join: { close: 1006 } }, { resume: "session_not_found" }, { join: "media_unavailable" }, {}], ["join", 3]),
        guest: await run([{ join: { refuse: "approval_required", close: 4001 } }, {}], ["join", 2]),
        notJoined: await run([{ join: { close: 4001 } }], ["", 1]),
        // The page stood still when its next socket had just opened: the server waited for it in vain.
        asleep: await run([{ join: { close: 1006 } }, { resume: { isLost: true, close: 4001 } }, {}], ["resume", 2]),
        // It slept for longer than the server waits: nobody has its identity meanwhile, or another device.
        silent: await run([{ join: { close: 4007 } }, { resume: "session_not_found" }, {}], ["join", 2]),
        replaced: await run([{ join: { close: 4007 } }, { resume: { isLost: true, close: 4004 } }], ["", 1]),
        pings: await run([{}], ["ping", 3], 0.05),
        noToken: await run([{ join: { close: 1006 } }, {}], ["resume", 1], 60, () => (++asked === 2 ? new Promise(() => {}) : "")),
        slowToken: await run([{}], ["join", 1], 60, () => new Promise((resolve) => { setTimeout(resolve, 600, ""); })),
        noFunction: await run([{}], ["join", 1], 60, () => { throw Object.assign(new Error(), { code: "own" }); }),
        noAddress: await run([{}], ["join", 1], 60, { toString() { throw Object.assign(new Error(), { code: "own" }); } }),
    };
    // A person who never logs in: the page waits until it leaves.
    const room = new Room("", () => new Promise(() => {})), entering = room.connect().then(() => "", ({ code }) => code);
    await new Promise((resolve) => { setTimeout(resolve, 600); });
    found.neverToken = [room.state];
    room.leave();
    found.neverToken.push(await entering, room.state);
    isProxyFull = true;
    found.proxyFull = await run([null, null, null, {}], ["join", 1]);
    isFull = true;
    found.full = await run([null], ["", 1]);
    found.fullLater = await run([{ join: { close: 1006 } }, null, null, null, {}], ["resume", 1]);
    isAway = true;
    // A machine slept while somebody waited to be let in: its network is back later than the page.
    found.patient = await run([{ join: { refuse: "approval_required", close: 1006 } }, null, { join: "draining" }, {}], ["join", 3], 60, () => {
        if (++tokens === 2) throw new Error("no network");
        return "";
    });
    found.away = await run([null], ["join", 1]);
    Object.assign(found, { asked, left, running: running.size });
    Object.assign(window, real);
    return found;
})"""

# 200 requests at once, of which a server answers ten before its socket is lost, and then the others: how many of them it has at a time, and whether all came in their order. Then
# 20 of 60 kB each: how many of them it has at first, how many wait beside a message that may be lost, and how many it has in the end.
MANY = """Promise.all([import("/martlet/signal.js"), import("/martlet/channels.js")]).then(async ([{ Signal }, { DataChannels }]) => {
    const { WebSocket } = window, sockets = [];
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 1;
        asked = [];
        constructor() { sockets.push(this); setTimeout(() => this.give({ type: "hello", pingIntervalSeconds: 60, resumeWindowSeconds: 30 })); }
        give(message) { this.onmessage?.({ data: JSON.stringify(message) }); }
        close() { this.readyState = 3; }
        send(text) {
            const { id, type, track } = JSON.parse(text);
            if (type === "view") this.asked.push({ id, track });
            else this.give({ type: type === "join" ? "joined" : "resumed", id, session: "SE_1", seq: 0 });
        }
        answer(index) { this.give({ type: "ok", id: this.asked[index].id }); }
    };
    const until = async (isTrue) => { for (let turn = 0; turn < 400 && !isTrue(); turn++) await new Promise((resolve) => { setTimeout(resolve, 20); }); };
    const signal = new Signal({ url: "", token: "", join: {}, onJoined() {}, onICEServers() {}, onState() {}, onSuspended() {}, onEvent() {}, onEnd() {} });
    await until(() => signal.isOpen);
    const owner = {}, work = Array.from({ length: 200 }, (_, track) => signal.request("view", { track }, track < 100 ? owner : null).then(() => "ok", ({ code }) => code));
    const [first] = sockets, found = [first.asked.length];
    for (let n = 0; n < 10; n++) first.answer(n);
    found.push(first.asked.length);
    first.readyState = 3;
    first.onclose({ code: 1006 });
    await until(() => sockets.length === 2 && signal.isOpen);
    const second = sockets[1];
    found.push(second.asked.length, second.asked[0].track);
    // Of those of a connection that has ended nobody waits for an answer.
    signal.cancel(owner);
    found.push(second.asked.length);
    for (let n = 0; n < second.asked.length; n++) second.answer(n);
    const ends = await Promise.all(work), tracks = second.asked.map(({ track }) => track);
    found.push(tracks.every((track, index) => !index || track > tracks[index - 1]), ends.filter((end) => end === "ok").length);
    second.asked.length = 0;
    const long = Array.from({ length: 20 }, () => signal.request("view", { text: "x".repeat(60_000) }));
    await new DataChannels({ signal, onMessage() {} }).send("late", { reliable: false });
    found.push(second.asked.length, signal.waiting.size);
    for (let n = 0; n < second.asked.length; n++) second.answer(n);
    await Promise.all(long);
    found.push(second.asked.length);
    signal.leave();
    window.WebSocket = WebSocket;
    return found;
})"""


# An app prefers something of each of 1,000 videos at once, and of the first and the last something else a little later. The server carries out 100 requests at once, and as many
# again after a while; where it has refused more than 100 in a row, it closes the socket for good. Then its session ends while views wait. Of how many videos the server knows the
# newest preference, why the stay ended before, whether one more message that may be lost waited behind them, and how many views were sent
# in the next session.
REFUSED_VIEWS = """Promise.all([import("/martlet/signal.js"), import("/martlet/channels.js"), import("/martlet/receiving.js")]).then(async ([{ Signal }, { DataChannels }, { Receiving }]) => {
    const { WebSocket } = window, kept = new Map(), pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
    let left = 100, refused = 0, asked = 0, sockets = 0, end = "", isOver = false;
    const refill = setInterval(() => { if (!isOver) left = 100; }, 40);
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 1;
        constructor() { sockets += 1; setTimeout(() => this.give({ type: "hello", pingIntervalSeconds: 60, resumeWindowSeconds: 30 })); }
        give(message) { this.onmessage?.({ data: JSON.stringify(message) }); }
        close() { this.readyState = 3; }
        send(text) {
            const { id, type, track, ...preferences } = JSON.parse(text);
            if (type === "join") return this.give({ type: "joined", id, session: "SE_1", seq: 0 });
            if (type !== "view") return;
            asked += 1;
            const isTaken = left > 0;
            left -= 1;
            refused = isTaken ? 0 : refused + 1;
            if (refused > 100) return this.onclose?.({ code: 1008 });
            if (isTaken) kept.set(track, JSON.stringify(preferences));
            Promise.resolve().then(() => this.give(isTaken ? { type: "ok", id } : { type: "error", id, code: "too_many_requests", message: "", retryAfter: 0.1 }));
        }
    };
    const signal = new Signal({ url: "", token: "", join: {}, onJoined() {}, onICEServers() {}, onState() {}, onSuspended() {}, onEvent() {}, onEnd: ({ code }) => { end = code; } });
    while (!signal.isOpen) await pause(10);
    const receiving = new Receiving({ signal, speaker: () => null, onTracks() {}, onProblem() {} }), tracks = Array.from({ length: 1000 }, (_, n) => `TR_${n}`);
    for (const track of tracks) receiving.view(track, { height: 180 });
    await pause(20);
    for (const track of [tracks[0], tracks.at(-1)]) receiving.view(track, { hidden: true });
    await new DataChannels({ signal, onMessage() {} }).send("late", { reliable: false });
    const isLost = [...signal.waiting.values()].every(({ message }) => message.type === "view");
    const expected = (track) => (receiving.views.get(track) === kept.get(track) ? 1 : 0), sum = () => tracks.reduce((total, track) => total + expected(track), 0);
    for (let turn = 0; turn < 400 && !end && sum() < 1000; turn++) await pause(20);
    const found = [sum(), kept.get(tracks[0]), kept.get(tracks.at(-1)), end, isLost];
    isOver = true;
    left = 0;
    for (const track of tracks.slice(0, 10)) receiving.view(track, { height: 360 });
    await pause(20); // They are refused, and wait.
    // The server forgets the session.
    signal.startOver();
    receiving.end();
    asked = 0;
    while (sockets < 2 || !signal.isOpen) await pause(10);
    await pause(200);
    signal.leave();
    clearInterval(refill);
    window.WebSocket = WebSocket;
    return [...found, asked];
})"""


def test_many_requests_at_once_are_sent_as_earlier_ones_are_answered_and_views_that_came_too_fast_again(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(MANY) == [64, 74, 64, 10, 128, True, 110, 8, 20, 20]
            hidden = '{"hidden":true}'
            assert await page.evaluate(REFUSED_VIEWS) == [1000, hidden, hidden, "", True, 0]

    asyncio.run(run())


# A server of which nothing comes after its replies, twice, as where the next message is long and the path slow; and once more after it has answered a ping. How many
# seconds the client waits each time.
SLOW_PATH = """import("/martlet/signal.js").then(async ({ Signal }) => {
    const { WebSocket } = window, sockets = [], waited = [];
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 1;
        constructor() { sockets.push(this); setTimeout(() => this.give({ type: "hello", pingIntervalSeconds: 60, resumeWindowSeconds: 30 })); }
        give(message) { this.onmessage?.({ data: JSON.stringify(message) }); }
        close() { this.readyState = 3; }
        send(text) {
            const { id, type } = JSON.parse(text);
            if (type === "join") this.give({ type: "joined", id, session: "SE_1", seq: 0 });
            if (type === "resume") this.give({ type: "resumed", id });
        }
    };
    const signal = new Signal({ url: "", token: "", join: {}, onJoined() {}, onICEServers() {}, onState() {}, onSuspended() {}, onEvent() {}, onEnd() {} });
    clearInterval(signal.timer);
    for (const answers of [false, false, true]) {
        const count = waited.push(0);
        for (let turn = 0; turn < 200 && !(sockets.length === count && signal.isOpen); turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
        if (answers) sockets.at(-1).give({ type: "pong" });
        while (sockets.at(-1).readyState === 1 && waited[count - 1] < 100) {
            waited[count - 1] += 1;
            signal.turn();
        }
    }
    signal.leave();
    window.WebSocket = WebSocket;
    return waited;
})"""

# A stay of an hour with tokens that are good for ten minutes, on a machine whose clock is an hour behind the server's: of the app's function, which fails once, and a string. The
# socket is lost once. Which tokens the server was sent in what second, how often the function was asked, and what the page reports.
RENEWALS = """import("/martlet/signal.js").then(async ({ Signal }) => {
    const { WebSocket } = window, { now } = Date, { warn } = console, AHEAD = 3_600_000, began = now(), reported = [], pause = () => new Promise((resolve) => { setTimeout(resolve); });
    let clock = began, socket, sent = [], asked = 0;
    const second = () => (clock - began) / 1000, give = (number) => `.${btoa(JSON.stringify({ exp: (clock + AHEAD) / 1000 + 600, number, name: "\u00fc?~" })).replace(/[+]/g, "-").replace(/[/]/g, "_")}.`;
    Date.now = () => clock;
    console.warn = (...words) => reported.push(words.join(" "));
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 1;
        constructor() { socket = this; setTimeout(() => this.give({ type: "hello", pingIntervalSeconds: 60, resumeWindowSeconds: 30 })); }
        give(message) { this.onmessage?.({ data: JSON.stringify(message) }); }
        close() { this.readyState = 3; }
        send(text) {
            const { id, type, token } = JSON.parse(text);
            if (type === "token") sent.push([second(), JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).number]);
            const replies = { join: { type: "joined", session: "SE_1", seq: 0, participant: { joinedAt: clock + AHEAD } }, resume: { type: "resumed" }, ping: { type: "pong" }, token: { type: "ok" } };
            this.give({ ...replies[type], id });
        }
    };
    const run = async (token, seconds) => {
        const signal = new Signal({ url: "", token, join: {}, onJoined() {}, onICEServers() {}, onState() {}, onSuspended() {}, onEvent() {}, onEnd() {} });
        clearInterval(signal.timer);
        const isOpen = async () => { for (let turn = 0; turn < 400 && !signal.isOpen; turn++) await new Promise((resolve) => { setTimeout(resolve, 20); }); };
        await isOpen();
        const end = second() + seconds;
        while (second() < end) {
            clock += 1000;
            signal.turn();
            await pause();
            if (second() === 1200) {
                socket.readyState = 3;
                socket.onclose({ code: 1006 });
                signal.isOpen = false;
                await isOpen();
                await pause();
            }
        }
        signal.leave();
    };
    await run(() => {
        if (++asked === 2) throw new Error("no backend");
        return give(asked);
    }, 1800);
    const found = [sent, asked, reported];
    sent = [];
    await run(give(0), 600);
    Object.assign(window, { WebSocket });
    Object.assign(Date, { now });
    Object.assign(console, { warn });
    return [...found, sent];
})"""


def test_a_token_is_renewed_before_it_ends_where_a_function_gives_tokens_and_after_a_resume(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(RENEWALS) == [[[570, 3], [1110, 4], [1200, 5], [1740, 6]], 6, ["Cannot renew the access token yet: no backend"], []]

    asyncio.run(run())


# Two cameras that may not be sent, of which the second is added while the first one's announcement is under way.
DENIED = """import("/martlet/publishing.js").then(async ({ Publishing }) => {
    const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
    const asked = [], denied = [];
    const signal = {
        cancel() {},
        async request(type, { tracks, sdp }) {
            asked.push(type);
            await pause(50);
            if (type === "announce") throw Object.assign(new Error(), { code: "permission_denied" });
            asked.push(sdp.match(/m=video/g)?.length ?? 0);
            throw Object.assign(new Error(), { code: "lost" });
        },
    };
    const publishing = new Publishing({ signal, configuration: {}, onConnection: (connection) => connection.createDataChannel("reliable"), onDenied: (source) => denied.push(source) });
    const track = () => document.createElement("canvas").getContext("2d").canvas.captureStream(1).getVideoTracks()[0];
    const tracks = [track(), track()];
    const stream = new MediaStream();
    const first = publishing.add([{ track: tracks[0], source: "camera" }], stream);
    while (!asked.length) await pause(5);
    const second = publishing.add([{ track: tracks[1], source: "screen" }], stream);
    await Promise.allSettled([first, second]);
    publishing.close();
    return [denied, asked.filter((one) => one !== "announce" && one !== "offer").every((videos) => videos === 0), publishing.sent.size];
})"""


# A camera that may not be sent, and a screen; the first connection is taken out because of the camera. Both get another track meanwhile: the camera's is there before the
# refusal, and of the screen's the browser says nothing any more. One connection before could not be made.
REPLACED = """import("/martlet/publishing.js").then(async ({ Publishing }) => {
    const { RTCPeerConnection } = window, { prototype } = RTCRtpSender, { replaceTrack } = prototype;
    const track = () => document.createElement("canvas").getContext("2d").canvas.captureStream(1).getVideoTracks()[0];
    const [camera, otherCamera, screen, otherScreen] = [track(), track(), track(), track()];
    const denied = [], changing = [], far = new RTCPeerConnection();
    let begun = 0, made = 0;
    prototype.replaceTrack = function (...given) { return ++begun === 2 ? new Promise(() => {}) : replaceTrack.apply(this, given); };
    window.RTCPeerConnection = class extends RTCPeerConnection {
        constructor(...given) {
            if (!made++) throw new Error("too many");
            super(...given);
        }
    };
    const signal = {
        cancel() {},
        async request(type, { tracks, sdp }) {
            if (type === "announce" && tracks[0].source === "camera" && !changing.length) {
                changing.push(publishing.replace(camera, otherCamera));
                await changing[0];
                changing.push(publishing.replace(screen, otherScreen));
                for (let turn = 0; turn < 100 && begun < 2; turn++) await null;
            }
            if (type === "announce" && tracks[0].source === "camera") throw Object.assign(new Error(), { code: "permission_denied" });
            if (type !== "offer") return {};
            await far.setRemoteDescription({ type: "offer", sdp });
            await far.setLocalDescription();
            return { sdp: far.localDescription.sdp, tracks: { [[...publishing.sent.values()][0].transceiver.mid]: "TR_1" } };
        },
    };
    const publishing = new Publishing({ signal, configuration: {}, onConnection: (connection) => connection.createDataChannel("reliable"), onDenied: (source) => denied.push(source) });
    const sources = [{ track: camera, source: "camera" }, { track: screen, source: "screen" }];
    const failed = await publishing.add(sources, new MediaStream()).then(() => "", ({ message }) => message);
    await publishing.add(sources, new MediaStream());
    const ends = await Promise.race([Promise.allSettled(changing), new Promise((resolve) => { setTimeout(resolve, 20_000, []); })]);
    const sections = publishing.connection.getTransceivers().map(({ sender }) => [otherCamera, camera, otherScreen, screen].indexOf(sender.track));
    const found = [failed, ends.map(({ status }) => status).join(), denied, [...publishing.sent.keys()].map((one) => [screen, otherScreen].indexOf(one)), sections];
    publishing.close();
    far.close();
    prototype.replaceTrack = replaceTrack;
    window.RTCPeerConnection = RTCPeerConnection;
    return found;
})"""


# A camera that is muted while the server answers its offer. The server refuses the first `mute`, and the browser other layers. Then it is unmuted, which the server takes only a little
# later.
MUTED = """import("/martlet/publishing.js").then(async ({ Publishing }) => {
    const track = document.createElement("canvas").getContext("2d").canvas.captureStream(1).getVideoTracks()[0];
    const far = new RTCPeerConnection(), asked = [];
    let isBusy = false;
    const signal = {
        cancel() {},
        async request(type, { sdp, muted }) {
            if (type === "mute") asked.push(muted);
            if (type === "mute" && (asked.length === 1 || isBusy)) throw Object.assign(new Error("too many"), { code: "rate_limited", retryAfter: isBusy ? 0.05 : 60 });
            if (type !== "offer") return {};
            await far.setRemoteDescription({ type: "offer", sdp });
            await far.setLocalDescription();
            track.enabled = false;
            return { sdp: far.localDescription.sdp, tracks: { [[...publishing.sent.values()][0].transceiver.mid]: "TR_1" } };
        },
    };
    const publishing = new Publishing({ signal, configuration: {}, onConnection: (connection) => connection.createDataChannel("reliable") });
    publishing.demand.set("TR_1", []);
    publishing.follow = async () => { throw new Error("InvalidModificationError"); };
    const added = await publishing.add([{ track, source: "camera" }], new MediaStream()).then(() => "added", (problem) => problem.message);
    const kept = publishing.find("TR_1") === track;
    for (let turn = 0; turn < 2; turn++) await publishing.announceMutes();
    track.enabled = isBusy = true;
    const refused = await publishing.announceMutes().catch(({ code }) => code);
    isBusy = false;
    for (let turn = 0; turn < 200 && asked.length < 4; turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
    publishing.close();
    far.close();
    return [added, kept, refused, asked];
})"""

# What is announced of a microphone whose app calls it speech, and of a screen that has shown no frame.
ANNOUNCED = """import("/martlet/publishing.js").then(async ({ Publishing }) => {
    const announced = [], context = new AudioContext();
    const [microphone] = new MediaStreamAudioDestinationNode(context).stream.getTracks();
    const [screen] = document.createElement("canvas").getContext("2d").canvas.captureStream(1).getTracks();
    microphone.contentHint = "speech";
    screen.contentHint = "text";
    screen.getSettings = () => ({ width: 0, height: 0 });
    const signal = {
        cancel() {},
        async request(type, { tracks }) {
            if (type !== "announce") throw Object.assign(new Error(), { code: "lost" });
            announced.push(tracks[0]);
        },
    };
    const publishing = new Publishing({ signal, configuration: {}, onConnection: (connection) => connection.createDataChannel("reliable") });
    await publishing.add([{ track: microphone, source: "microphone" }, { track: screen, source: "screen" }], new MediaStream()).catch(() => {});
    publishing.close();
    await context.close();
    return announced.map(({ source, hint = "", width = "", height = "" }) => [source, hint, width, height]);
})"""

# A codec is chosen that the browser sends in another form than it receives it, as Chromium does with H.264 on some machines. The offer's first codec of video.
CHOSEN_CODEC = """import("/martlet/publishing.js").then(async ({ Publishing }) => {
    const { getCapabilities } = RTCRtpSender, track = document.createElement("canvas").getContext("2d").canvas.captureStream(1).getVideoTracks()[0];
    RTCRtpSender.getCapabilities = (kind) => ({
        codecs: getCapabilities.call(RTCRtpSender, kind).codecs.map((one) => (one.mimeType === "video/VP9" ? { ...one, sdpFmtpLine: "profile-id=0;level=9" } : one)),
    });
    let first = "";
    const signal = {
        cancel() {},
        async request(type, { sdp }) {
            if (type !== "offer") return {};
            const [, number] = /m=video \\S+ \\S+ (\\d+)/.exec(sdp);
            first = new RegExp(`a=rtpmap:${number} (\\\\w+)`).exec(sdp)[1];
            throw Object.assign(new Error(), { code: "lost" });
        },
    };
    const publishing = new Publishing({ signal, configuration: {}, onConnection: (connection) => connection.createDataChannel("reliable") });
    const problem = await publishing.add([{ track, source: "screen", codec: "VP9" }], new MediaStream()).catch(({ code }) => String(code));
    publishing.close();
    RTCRtpSender.getCapabilities = getCapabilities;
    return [problem, first];
})"""

# Of three streams that a fresh session sends again, the server refuses the first for good, and the second for a while. Then it publishes nothing of two, for a while.
SENT_AGAIN = """import("/martlet/publications.js").then(async ({ LocalPublications }) => {
    const asked = [], denied = [], problems = [];
    const own = new LocalPublications({ isOver: () => false, fire: (type, { source }) => denied.push(type, source), complain: ({ code }) => problems.push(code) });
    for (const name of ["bad", "busy", "good"]) await own.publishAll([{ track: { kind: "video" }, source: name }], { name });
    own.publishing = {
        async add([{ source }], stream) {
            asked.push(source === stream.name ? source : "another's");
            if (source === "bad") throw Object.assign(new Error(), { code: "invalid_sdp" });
            if (asked.length === 2) throw Object.assign(new Error(), { code: "media_unavailable", retryAfter: 0 });
        },
    };
    await own.sendAll();
    const first = asked.join();
    for (let turn = 0; turn < 200 && asked.length < 4; turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
    const found = [first, asked.slice(3), denied, problems, [...own.byTrack.values()].map(({ source }) => source)];
    // Two came too fast, and so does the next offer.
    const [track] = own.byTrack.keys();
    let offers = 0;
    Object.assign(own.publishing, { onSection: () => track, async offer() { if (++offers === 1) throw Object.assign(new Error(), { code: "rate_limited", retryAfter: 1 }); } });
    own.fire = () => {};
    for (const mid of ["1", "2"]) own.refused({ type: "publicationRefused", connection: "pub", mid, code: "rate_limited" });
    for (let turn = 0; turn < 200 && offers < 2; turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
    found.push(offers);
    // Whoever hears of a refusal may leave.
    own.fire = () => own.stop();
    own.refused({ type: "publicationRefused", connection: "pub", mid: "1", code: "permission_denied" });
    return [...found, own.byTrack.size];
})"""


def test_a_client_resumes_joins_afresh_or_ends_as_the_protocol_says_and_sends_nothing_that_was_denied(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            lines = []
            page.on("console", lambda line: lines.append(line.text))
            await page.goto(development_server.url + "/examples")
            found = await page.evaluate(SESSIONS)
            assert found["noWebSocket"] == ["", "no_websocket", "left", 3], found
            # JSON without a code is a proxy's.
            assert found["proxyFull"] == ["join", "", "", 4], found
            # Whoever has been in waits for a server that is full.
            assert found["full"] == ["", "overloaded", "left", 3] and found["fullLater"] == ["join,resume", "", "", 5], found
            assert found["tooSlow"] == ["join,join", "", "", 2] and found["lost"] == ["join,resume", "", "", 2], found
            assert found["former"] == ["join,resume,join,join", "", "", 4], found
            assert found["unavailable"] == ["join,resume,join,join", "", "", 4], found
            assert found["guest"] == ["join,join", "", "", 2] and found["notJoined"] == ["join", "closed", "left", 1], found
            assert found["asleep"] == ["join,resume,resume", "", "", 3] and found["silent"] == ["join,resume,join", "", "", 3], found
            assert found["replaced"] == ["join,resume", "duplicate_identity", "left", 2], found
            # On a machine that stands still one more may be sent before the page looks.
            assert found["pings"][0].startswith("join,ping,ping,ping") and found["pings"][1:] == ["", "", 1], found
            assert found["patient"] == ["join,join,join", "", "", 4] and found["away"] == ["", "unreachable", "left", 1], found
            # Of three tokens that an app is asked for, the second never comes.
            assert found["noToken"] == ["join,resume", "", "", 2] and found["asked"] == 3, found
            assert [line for line in lines if "again" in line] == [f"Cannot connect again yet: {why}" for why in ("No access token was given within 15 s.", "no network")], lines
            # The limit is for a stay that goes on: before it begins, a person may log in.
            assert found["slowToken"] == ["join", "", "", 1] and found["neverToken"] == ["connecting", "left", "closed"], found
            # What ends before there is a socket ends as everything else does.
            assert found["noFunction"] == found["noAddress"] == ["", "own", "left", 0] and found["left"] == found["running"] == 0, found
            assert await page.evaluate(DENIED) == [["camera", "screen"], True, 0]
            assert await page.evaluate(SLOW_PATH) == [5, 10, 5]

    asyncio.run(run())


def test_what_fails_beside_a_publication_takes_no_other_one_away(development_server):
    """A mute or layers after the answer; one stream of several after a reconnect."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(CHOSEN_CODEC) == ["lost", "VP9"]
            assert await page.evaluate(ANNOUNCED) == [["microphone", "", "", ""], ["screen", "text", "", ""]]
            assert await page.evaluate(MUTED) == ["added", True, "rate_limited", [True, True, False, False]]
            assert await page.evaluate(REPLACED) == ["too many", "fulfilled,fulfilled", ["camera"], [1], [2]]
            assert await page.evaluate(SENT_AGAIN) == ["bad,busy,good", ["busy"], ["publicationDenied", "bad"], ["invalid_sdp"], ["busy", "good"], 2, 1]

    asyncio.run(run())


# Three members: `watch` receives, the others send only.
RECEIVING = r"""
window.members = {
    async join(tokens) {
        const { Room } = await import("/martlet.js");
        for (const [name, token] of Object.entries(tokens)) {
            const room = this[name] = new Room("", token, { autoSubscribe: name === "watch" });
            room.problems = [];
            room.on("problem", ({ error }) => room.problems.push(error.message));
            await room.connect();
        }
    },
    draw() {
        const pen = Object.assign(document.createElement("canvas"), { width: 320, height: 180 }).getContext("2d");
        let n = 0;
        setInterval(() => { pen.fillStyle = `hsl(${n++ * 7} 80% 50%)`; pen.fillRect(0, 0, 320, 180); }, 66);
        return pen.canvas.captureStream(15).getVideoTracks()[0];
    },
    of(identity) { return [...this.watch.participants.values()].find((one) => one.identity === identity)?.tracks[0]; },
    async frames(identity) {
        const track = this.of(identity)?.track;
        let frames = 0;
        if (track) (await this.watch.receiving.connection?.getStats(track))?.forEach((one) => { if (one.type === "inbound-rtp") frames += one.framesDecoded; });
        return frames;
    },
};
0
"""
# The browser takes one offer not, after the first ones.
FAIL_ONCE = """(() => {
    const prototype = RTCPeerConnection.prototype, real = prototype.setRemoteDescription;
    prototype.setRemoteDescription = function (description) {
        if (description.type !== "offer") return real.call(this, description);
        prototype.setRemoteDescription = real;
        return Promise.reject(new DOMException("The offer cannot be read.", "OperationError"));
    };
})()"""
ANOTHER_SUB = "members.watch.receiving.connection && members.watch.receiving.connection !== members.former"
# An answer whose `ok` was lost with the socket, and one that the server refuses for good. Of each: answers, renewals, what is shown, problems.
ANSWERS = """import("/martlet/receiving.js").then(async ({ Receiving }) => {
    const { RTCPeerConnection, setTimeout: later } = window, waits = [];
    let running = 0;
    const soon = (work) => {
        running += 1;
        later(() => { work(); running -= 1; });
    };
    window.RTCPeerConnection = class {
        async setRemoteDescription({ sdp }) { this.localDescription = { sdp }; }
        async setLocalDescription() {}
        getTransceivers() { return []; }
        close() {}
    };
    window.setTimeout = (work, milliseconds) => { waits.push(milliseconds); soon(work); };
    const run = async (code) => {
        const asked = [], problems = [];
        const signal = {
            cancel() {},
            async request(type) {
                asked.push(type);
                if (type === "answer") throw Object.assign(new Error(code), { code, retryAfter: 2 });
                // The server makes another one.
                soon(() => { receiving.reset(); receiving.take({ sdp: "", tracks: { 0: "TR_1" } }); });
            },
        };
        const receiving = new Receiving({ signal, speaker: () => null, onTracks() {}, onProblem: ({ message }) => problems.push(message) });
        receiving.take({ sdp: "", tracks: { 0: "TR_1" } });
        // All that does not wait for a timer is done before the page's next task.
        do await new Promise((resolve) => { later(resolve); }); while (running);
        return [asked.join(), [...receiving.tracks.values()].join(), problems.length];
    };
    const found = [await run("unexpected_answer"), await run("too_many_requests"), waits];
    Object.assign(window, { RTCPeerConnection, setTimeout: later });
    return found;
})"""

# What is asked of one track, and of one that the server refuses. What was sent.
VIEWS = """import("/martlet/receiving.js").then(async ({ Receiving }) => {
    const sent = [];
    const signal = {
        cancel() {},
        async request(type, { track, ...preferences }) {
            sent.push([type, preferences]);
            if (track === "TR_2") throw new Error("subscription_not_found");
        },
    };
    const receiving = new Receiving({ signal, speaker: () => null, onTracks() {}, onProblem() {} });
    await receiving.subscribe("TR_1", { height: 180 });
    for (const preferences of [{ height: 180 }, { height: 360 }, { height: 360 }]) receiving.view("TR_1", preferences);
    // It is received already, and the server goes by the height.
    await receiving.subscribe("TR_1", { hidden: false });
    receiving.view("TR_1", { hidden: false });
    receiving.forgetView("TR_1");
    await receiving.subscribe("TR_1", { hidden: true });
    receiving.view("TR_1", {});
    const refused = await receiving.subscribe("TR_2", { height: 180 }).then(() => "", ({ message }) => message);
    receiving.view("TR_2", { height: 180 });
    return [sent, refused];
})"""

# A loudspeaker was chosen, in a browser that has no choice. What was sent, and whether it plays.
LOUDSPEAKER = """import("/martlet/receiving.js").then(async ({ Receiving }) => {
    const { prototype } = HTMLMediaElement, { setSinkId } = prototype, asked = [], problems = [], far = new RTCPeerConnection();
    delete prototype.setSinkId;
    const signal = { cancel() {}, async request(type, { sdp }) { asked.push(type); if (sdp) await far.setRemoteDescription({ type: "answer", sdp }); } };
    const receiving = new Receiving({ signal, speaker: () => "chosen", onTracks() {}, onSilenced() {}, onProblem: ({ message }) => problems.push(message) });
    far.addTransceiver("audio", { direction: "sendonly" });
    await far.setLocalDescription();
    receiving.take({ sdp: far.localDescription.sdp, tracks: { 0: "TR_1" } });
    await receiving.work;
    const found = [asked, problems, receiving.audioElements.size];
    receiving.reset();
    far.close();
    prototype.setSinkId = setSinkId;
    return found;
})"""

# A headset that was chosen is switched off and on again, and off after the end. Where the others are played after each change.
HEADSET = """import("/martlet.js").then(async ({ Room }) => {
    const devices = navigator.mediaDevices, played = [], pause = () => new Promise((resolve) => { setTimeout(resolve, 50); });
    let ids = [];
    devices.enumerateDevices = async () => ids.map((deviceId) => ({ kind: "audiooutput", deviceId }));
    const room = new Room("", () => new Promise(() => {}), { speaker: "headset" });
    room.connect().catch(() => {});
    room.enter({ room: {}, participant: { tracks: [] }, participants: [] }, []);
    room.receiving.audioElements.set("0", { setSinkId: async (id) => { played.push(id); }, remove() {} });
    const change = async (...now) => {
        ids = now;
        devices.dispatchEvent(new Event("devicechange"));
        await pause();
    };
    await change("default", "headset");
    await change("default");
    await change("default", "screen");
    await change("default", "headset");
    await change();
    room.leave();
    await change("default");
    delete devices.enumerateDevices;
    return played;
})"""

# Of two sections with audio the server ends the one by rejecting it, in the offer that ends it: the browser has no transceiver of it any more. What is in the page.
REJECTED = """import("/martlet/receiving.js").then(async ({ Receiving }) => {
    const context = new AudioContext(), [track] = new MediaStreamAudioDestinationNode(context).stream.getTracks();
    const receiving = new Receiving({ signal: { cancel() {} }, speaker: () => "", onTracks() {}, onSilenced() {}, onProblem() {} });
    let mids = ["0", "1"];
    receiving.connection = { close() {}, getTransceivers: () => mids.map((mid) => ({ mid, receiver: { track }, currentDirection: "recvonly" })) };
    receiving.tracks = new Map([["0", "TR_1"], ["1", "TR_2"]]);
    const count = () => [receiving.audioElements.size, document.querySelectorAll("body > audio").length];
    receiving.showAll();
    const before = count();
    mids = ["1"];
    receiving.tracks.delete("0");
    receiving.showAll();
    const found = [before, count(), [...receiving.audioElements.keys()]];
    receiving.reset();
    await context.close();
    return [...found, count()];
})"""


def test_what_is_received_comes_on_another_connection_after_a_failed_exchange_and_what_was_hidden_when_it_is_wanted(development_server):
    """The server keeps what it was asked for of each track when "sub" is renewed, so {} is news to it."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(ANSWERS) == [["answer", "TR_1", 0], [",".join(["answer,bye"] * 3 + ["answer"]), "", 4], [2000, 4000, 8000]]
            assert await page.evaluate(LOUDSPEAKER) == [["answer"], [], 1]
            assert await page.evaluate(HEADSET) == ["", "headset"]
            assert await page.evaluate(REJECTED) == [[2, 2], [1, 1], ["1"], [0, 0]]
            await page.evaluate(RECEIVING)
            await page.evaluate(f"members.join({json.dumps({name: token(name, 'renewed') for name in ('watch', 'ada', 'bob')})})")
            await page.evaluate("members.ada.publish(members.draw()).then(() => 0)")
            await until(page, "members.frames('ada').then((frames) => frames > 5)")
            await page.evaluate("""(async () => {
                members.former = members.watch.receiving.connection;
                members.of("ada").view({ hidden: true });
                await members.watch.request("bye", { connection: "sub", keepSubscriptions: true });
            })()""")
            await until(page, ANOTHER_SUB)
            await page.evaluate("members.of('ada').view({})")
            await until(page, "members.frames('ada').then((frames) => frames > 5)")

            await page.evaluate("members.former = members.watch.receiving.connection, 0")
            await page.evaluate(FAIL_ONCE)
            await page.evaluate("members.bob.publish(members.draw()).then(() => 0)")
            await until(page, "members.watch.problems.includes('The offer cannot be read.')")
            await until(page, ANOTHER_SUB)
            for name in ("ada", "bob"):
                await until(page, f"members.frames('{name}').then((frames) => frames > 5)")
            await page.evaluate("for (const name of ['watch', 'ada', 'bob']) members[name].leave()")

    asyncio.run(run())


# The reply to a message over the WebSocket is lost with that: it is sent again after the resume. What the other one gets is in `members.got`.
REPLY_LOST = """(async () => {
    const { watch, ada } = members, { socket } = watch.signal, { onmessage } = socket;
    members.got = [];
    ada.on("data", ({ text }) => members.got.push(text));
    socket.onmessage = (event) => (JSON.parse(event.data).type === "ok" ? socket.close() : onmessage(event));
    await watch.send("once");
    await watch.send("then");
    return watch.signal.socket !== socket;
})()"""

# A message waits, because the server takes no more for a while, when a fresh session begins, on which it is sent; and the next one on that. What the server delivers, which
# takes a number that is not above the last of a session's for a repetition.
NUMBERS = """import("/martlet/channels.js").then(async ({ DataChannels }) => {
    const got = [];
    let last = 0, isBusy = false;
    const signal = {
        isOpen: true,
        nextID: 1,
        async request(type, { text, sequence }) {
            this.nextID += 1;
            if (isBusy) throw Object.assign(new Error(), { code: "rate_limited", retryAfter: 0.05 });
            if (sequence > last) got.push(text);
            last = Math.max(last, sequence);
        },
    };
    const former = new DataChannels({ signal });
    for (const text of ["one", "two"]) await former.send(text);
    isBusy = true;
    const late = former.send("late");
    await new Promise((resolve) => { setTimeout(resolve, 10); });
    isBusy = false;
    last = 0;
    const channels = new DataChannels({ signal });
    await late;
    await channels.send("next");
    return got;
})"""


def test_a_message_whose_reply_was_lost_with_the_socket_is_delivered_once(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            await page.evaluate(RECEIVING)
            await page.evaluate(f"members.join({json.dumps({name: token(name, 'twice') for name in ('watch', 'ada')})})")
            assert await page.evaluate(REPLY_LOST)
            await until(page, "members.got.at(-1) === 'then'")
            assert await page.evaluate("members.got") == ["once", "then"]
            assert await page.evaluate(NUMBERS) == ["one", "two", "late", "next"]
            await page.evaluate("for (const name of ['watch', 'ada']) members[name].leave()")

    asyncio.run(run())


def test_what_is_subscribed_to_by_hand_with_a_view_is_shown_when_another_view_is_asked_for(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(VIEWS) == [[
                ["subscribe", {"height": 180}], ["view", {"height": 360}], ["subscribe", {"hidden": False}], ["view", {"hidden": False}],
                ["subscribe", {"hidden": True}], ["view", {}], ["subscribe", {"height": 180}], ["view", {"height": 180}]], "subscription_not_found"]
            await page.evaluate(RECEIVING)
            await page.evaluate(f"members.join({json.dumps({name: token(name, 'by-hand') for name in ('watch', 'ada')})})")
            await page.evaluate("members.ada.publish(members.draw()).then(() => 0)")
            await until(page, "members.frames('ada').then((frames) => frames > 5)")
            # The event that the first subscription has ended may come after the second one was made.
            await page.evaluate("(async () => { const publication = members.of('ada'); await publication.unsubscribe(); await publication.subscribe({ hidden: true }); })()")
            before = await page.evaluate("members.frames('ada')")
            await page.evaluate("members.of('ada').view({})")
            await until(page, f"members.frames('ada').then((frames) => frames > {before} + 5)")
            await page.evaluate("for (const name of ['watch', 'ada']) members[name].leave()")

    asyncio.run(run())


# What elements show: one that is attached twice, two of which one is thrown away, one that two publications share, and one that was made here.
ELEMENTS = """() => import("/martlet.js").then(({ Publication }) => {
    const draw = () => document.createElement("canvas").getContext("2d").canvas.captureStream(1).getTracks()[0];
    const [large, small] = [1, 2].map(() => document.createElement("video")), shown = (element) => element.srcObject?.getTracks()[0] ?? null;
    const [ada, bob] = ["TR_1", "TR_2"].map((sid) => new Publication({}, {}, { sid, kind: "video" }));
    for (const one of [ada, bob]) one.setTrack(draw());
    const found = {};
    ada.attach(large);
    const stream = large.srcObject;
    found.isSteady = ada.attach(large).srcObject === stream;
    ada.attach(small);
    ada.detach(small);
    ada.setTrack(draw());
    found.isGone = shown(small) === null && shown(large) === ada.track;
    bob.attach(large);
    ada.setTrack(draw());
    ada.detach();
    found.isTheLast = shown(large) === bob.track;
    const made = ada.attach();
    document.body.append(made);
    ada.detach(made);
    found.isTakenOut = !made.isConnected && shown(made) === null && ada.attach() !== made;
    for (const one of [ada, bob]) one.detach();
    found.isOver = shown(large) === null;
    return found;
})"""


def test_an_element_shows_what_was_attached_to_it_last_until_it_is_detached_alone_or_with_all(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(ELEMENTS) == {"isSteady": True, "isGone": True, "isTheLast": True, "isTakenOut": True, "isOver": True}

    asyncio.run(run())


# Somebody's audio that an app attaches itself and a video, which the browser plays only after a click, and pauses while the page is in the background. A person pauses the video
# while they see it, and plays it again. Whether each is paused, and whether anything is played after one's stay has ended.
PLAYED = """(token) => import("/martlet.js").then(async ({ Room }) => {
    const room = new Room("", token, { playAudio: false }), { play } = HTMLMediaElement.prototype, blocked = [];
    room.on("audioBlocked", () => blocked.push("audioBlocked"));
    await room.connect();
    const tracks = ["audio", "video"].map((kind) => ({ sid: `TR_${kind}`, participant: "PA_bob", kind }));
    room.people.add({ sid: "PA_bob", identity: "bob", name: "", tracks });
    const [audio, video] = room.participants.get("PA_bob").tracks;
    audio.setTrack(new AudioContext().createMediaStreamDestination().stream.getTracks()[0]);
    video.setTrack(document.createElement("canvas").getContext("2d").canvas.captureStream(1).getTracks()[0]);
    HTMLMediaElement.prototype.play = () => Promise.reject(new DOMException("", "NotAllowedError"));
    const elements = [audio.attach(), video.attach()], paused = () => elements.map((one) => one.paused).join();
    await new Promise((resolve) => { setTimeout(resolve); });
    const found = [blocked.join(), paused()];
    HTMLMediaElement.prototype.play = play;
    room.startAudio();
    found.push(paused());
    let isHidden = false;
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    const pause = (one) => new Promise((resolve) => {
        one.addEventListener("pause", resolve, { once: true });
        one.pause();
    });
    const look = (change) => {
        isHidden = change;
        document.dispatchEvent(new Event("visibilitychange"));
    };
    look(true);
    await Promise.all(elements.map(pause));
    look(false);
    found.push(paused());
    await pause(elements[1]);
    look(true);
    await pause(elements[0]);
    look(false);
    found.push(paused());
    room.startAudio();
    found.push(paused());
    await new Promise((resolve) => { setTimeout(resolve, 50); });
    look(true);
    await pause(elements[1]);
    look(false);
    found.push(paused());
    delete document.hidden;
    room.leave();
    let isPlayed = false;
    room.playAll = () => { isPlayed = true; };
    document.dispatchEvent(new Event("visibilitychange"));
    return [...found, isPlayed];
})"""


def test_what_the_browser_does_not_play_by_itself_is_played_after_a_click_and_when_the_page_is_seen_again_but_not_what_a_person_paused(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(PLAYED, token("ada", "played")) == [
                "audioBlocked", "true,true", "false,false", "false,false", "false,true", "false,false", "false,false", False]

    asyncio.run(run())


# A microphone for music and a camera of one's own size, each replaced: by the browser's choice, and by a device that is gone.
REPLACEMENTS = """() => import("/martlet.js").then(async ({ openDevices, openOther }) => {
    const asked = { microphone: { echoCancellation: false, noiseSuppression: false }, camera: { width: { ideal: 640 }, facingMode: "user" } };
    const [audio, video] = (await openDevices(asked)).map(({ track }) => track).sort((a, b) => a.kind.localeCompare(b.kind));
    const others = [await openOther(audio), await openOther(video), await openOther(video, video.getSettings().deviceId)];
    // Browsers may give a preference back without its "ideal".
    const of = (track, ...names) => names.map((name) => { const asked = track.getConstraints()[name]; return String(asked?.ideal ?? asked ?? ""); }).join();
    const found = { audio: of(others[0], "echoCancellation", "noiseSuppression"), videos: others.slice(1).map((one) => of(one, "width", "height", "facingMode")) };
    for (const one of [...others, audio, video]) one.stop();
    return { ...found, ...await openOther(audio, "gone").catch(({ code, message }) => ({ code, message })) };
})"""


# A camera of which an app requires a size, a rate and a side is unplugged, and so is one that only one program may use at a time. The other one has another size, no side, and is busy
# until the first one was stopped. What it is opened with, and whether a device that is gone is still reported.
REQUIRED = """() => import("/martlet.js").then(async ({ openDevices, openOther }) => {
    const devices = navigator.mediaDevices, open = devices.getUserMedia.bind(devices), asked = [];
    const required = { width: { exact: 640 }, height: { min: 360, ideal: 480 }, frameRate: { max: 15 }, facingMode: { exact: "user" } };
    const old = (await open({ video: true })).getVideoTracks()[0], { deviceId } = old.getSettings();
    old.getConstraints = () => required;
    let isBusy = false;
    devices.getUserMedia = async ({ video, audio }) => {
        if (isBusy && old.readyState === "live") throw new DOMException("", "NotReadableError");
        if (video.deviceId?.exact === "gone") throw new OverconstrainedError("deviceId");
        if (video.width.exact) throw new OverconstrainedError("width");
        asked.push([JSON.stringify({ ...video, deviceId: undefined }), video.deviceId?.exact === deviceId, Boolean(audio)]);
        return open({ video: true });
    };
    const gone = await openOther(old, "gone").catch(({ message }) => message), others = [await openOther(old)];
    isBusy = true;
    others.push(await openOther(old, deviceId, () => asked.push("put back")));
    delete devices.getUserMedia;
    const states = others.map(({ readyState }) => readyState);
    for (const one of [...others, old]) one.stop();
    return [asked, states, gone];
})"""


def test_another_device_gets_the_constraints_of_the_one_before_or_what_is_near_to_them_and_a_missing_one_is_reported(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(REPLACEMENTS) == {
                "audio": "false,false", "videos": ["640,720,user", "640,720,"],
                "code": "no_devices", "message": "Cannot use the camera or microphone: the chosen device is no longer there."}
            near = '{"width":{"ideal":640},"height":{"ideal":480},"frameRate":{"ideal":15}'
            assert await page.evaluate(REQUIRED) == [
                [[near + ',"facingMode":{"ideal":"user"}}', False, False], [near + "}", True, False]], ["live", "live"],
                "Cannot use the camera or microphone: the chosen device is no longer there."]

    asyncio.run(run())


# Ten messages of 64 KB of each kind, on a link that stands still: how many wait, and for how many the sender does.
STANDSTILL = """() => import("/martlet/channels.js").then(async ({ DataChannels }) => {
    const channels = new DataChannels({ signal: {}, onMessage() {} }), found = {};
    channels.connection = { sctp: { maxMessageSize: 262_144 } };
    for (const label of ["lossy", "reliable"]) {
        const channel = Object.assign(new EventTarget(), { readyState: "open", bufferedAmount: 0, count: 0 });
        channel.send = ({ byteLength }) => { channel.bufferedAmount += byteLength; channel.count += 1; };
        channels.open.set(label, channel);
        let done = 0;
        for (let n = 0; n < 10; n++) channels.send(new Uint8Array(65_536), { reliable: label === "reliable" }).then(() => { done += 1; });
        await new Promise((resolve) => { setTimeout(resolve); });
        found[label] = [channel.count, done];
    }
    return found;
})"""


def test_what_may_be_lost_is_not_kept_for_later_while_a_link_stands_still(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            # A message beyond 128 KiB makes the sender of reliable ones wait; of those that may be lost no more than 256 KiB and one message wait.
            assert await page.evaluate(STANDSTILL) == {"lossy": [4, 10], "reliable": [2, 1]}

    asyncio.run(run())


# A loudspeaker that the browser refuses, for those who are heard and for those who come; and the states of a stay after another one.
STAYS = """(token) => import("/martlet.js").then(async ({ Room }) => {
    const room = new Room("", token), states = [];
    room.on("stateChanged", ({ state }) => states.push(state));
    await room.connect();
    room.receiving.audioElements.set("heard", { setSinkId: (id) => (id ? Promise.reject(new DOMException("", "NotFoundError")) : Promise.resolve()), remove() {} });
    const refusal = await room.setSpeaker("gone").catch(({ name }) => name), speaker = room.receiving.speaker();
    room.leave();
    await room.connect();
    room.signal.startOver();
    for (let turn = 0; turn < 400 && states.length < 6; turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
    room.leave();
    return { refusal, speaker, states: [...new Set(states.map((one, index) => `${index < 2 ? 1 : 2} ${one}`))] };
})"""


def test_a_loudspeaker_that_is_refused_is_not_chosen_and_a_second_stay_begins_as_the_first(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(STAYS, token("ada", "stays")) == {
                "refusal": "NotFoundError", "speaker": "", "states": ["1 connecting", "1 connected", "2 connecting", "2 connected", "2 reconnecting"]}

    asyncio.run(run())


# A member without a data channel sends a message that fits no frame, and a request that is too long, then one that fits.
TOO_LONG = """(token) => import("/martlet.js").then(async ({ connect }) => {
    const room = await connect("", token), code = (work) => work.then(() => "", (problem) => problem.code);
    const found = [await code(room.send(new Uint8Array(500_000))), await code(room.request("metadata", { metadata: "x".repeat(600_000) }))];
    found.push(await code(room.request("metadata", { metadata: "short" })), room.state);
    room.leave();
    return found;
})"""


def test_whoever_sends_more_than_a_frame_takes_is_refused_and_stays_in_the_room(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(TOO_LONG, token("ada", "too-long", canPublishData=True)) == ["too_large", "too_large", "", "connected"]

    asyncio.run(run())


def test_the_audio_of_a_shared_screen_is_asked_for_without_what_the_page_plays_itself(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate("""() => import("/martlet.js").then(async ({ openScreen }) => {
                const asked = [];
                navigator.mediaDevices.getDisplayMedia = async ({ audio }) => { asked.push(audio); return new MediaStream(); };
                for (const options of [undefined, { audio: true }, { audio: false }]) await openScreen(options);
                return asked;
            })""") == [{"restrictOwnAudio": True}, {"restrictOwnAudio": True}, False]

    asyncio.run(run())


# A screen that is shared by `shareScreen` and no longer permitted, at a rejoin and in the room, one that is shared until the person leaves, and a camera that the app has opened. Which
# of them are captured still, and what is still published.
SHARED = """() => import("/martlet.js").then(async ({ Room }) => {
    const draw = () => document.createElement("canvas").getContext("2d").canvas.captureStream(1), devices = navigator.mediaDevices;
    devices.getDisplayMedia = async () => draw();
    const room = new Room("", () => new Promise(() => {})), [camera] = draw().getTracks();
    room.connect().catch(() => {});
    await room.publish(camera);
    const [denied] = await room.shareScreen();
    room.own.denied(denied);
    const [refused] = await room.shareScreen();
    room.own.onSection = () => refused;
    room.own.refused({ type: "publicationRefused", code: "rate_limited" });
    const isPatient = refused.track.readyState === "live";
    room.own.refused({ type: "publicationRefused", code: "permission_denied" });
    const [shared] = await room.shareScreen();
    room.leave();
    delete devices.getDisplayMedia;
    const found = [isPatient, ...[denied, refused, shared].map(({ track }) => track.readyState), camera.readyState, [...room.publications.keys()].map((one) => one === camera)];
    camera.stop();
    return found;
})"""


def test_a_shared_screen_is_captured_no_longer_than_the_room_takes_it(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(SHARED) == [True, "ended", "ended", "ended", "live", [True]]

    asyncio.run(run())


# One of two members leaves while its socket is away, and while it waits for a reply. What that rejects with, why the other sees it go, and after how many seconds.
GOODBYE = """(tokens) => import("/martlet.js").then(async ({ connect }) => {
    const [ada, bob] = await Promise.all(tokens.map((one) => connect("", one)));
    while (!bob.participants.size) await new Promise((resolve) => { setTimeout(resolve, 20); });
    const gone = new Promise((resolve) => { bob.on("participantLeft", ({ reason }) => resolve(reason)); });
    const began = performance.now();
    ada.signal.socket.close();
    const reply = ada.request("snapshot").then(() => "", ({ code }) => code);
    ada.leave();
    const found = [ada.state, await reply, await gone, (performance.now() - began) / 1000];
    bob.leave();
    return found;
})"""

# A member leaves as soon as it hears of an event, of each in turn; another one is there and publishes. Of each: how `connect` ended, the state, what was heard after
# `closed`, and whether sockets, connections or timers that come again are left.
LISTENERS = """(tokens) => import("/martlet.js").then(async ({ Room }) => {
    const { WebSocket, RTCPeerConnection, setInterval, clearInterval } = window, problems = [];
    const draw = () => document.createElement("canvas").getContext("2d").canvas.captureStream(5).getTracks()[0];
    addEventListener("error", ({ message }) => problems.push(message));
    addEventListener("unhandledrejection", ({ reason }) => problems.push(String(reason)));
    let sockets = [], connections = [], timers = new Set();
    window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); sockets.push(this); } };
    // However often a page asks, it is one session.
    const bob = new Room("", tokens.bob), joined = await Promise.all([bob.connect(), bob.connect()]);
    const isOnce = joined.every((one) => one === bob) && await bob.connect() === bob && sockets.length === 1;
    void bob.openDataChannels();
    await bob.openDataChannels();
    const isNegotiated = bob.publishing.connection.currentRemoteDescription !== null;
    // Whoever hears that it is over may begin anew.
    const again = new Promise((resolve) => {
        const forget = bob.on("closed", () => { forget(); resolve(bob.connect()); });
    });
    let isHeard = false;
    bob.on("joined", () => { isHeard = true; });
    bob.leave();
    await again;
    sockets = [];
    await bob.publishAll([{ track: draw(), source: "camera" }, { track: draw(), source: "screen" }]);
    window.RTCPeerConnection = class extends RTCPeerConnection { constructor(...given) { super(...given); connections.push(this); } };
    window.setInterval = (...given) => { const timer = setInterval(...given); timers.add(timer); return timer; };
    window.clearInterval = (timer) => { timers.delete(timer); clearInterval(timer); };
    const found = {};
    for (const type of ["", "stateChanged", "joined", "participantJoined", "trackPublished", "offer", "trackSubscribed", "participantLeft", "suspended", "connection"]) {
        const room = new Room("", tokens.ada), late = [], heard = room.dispatchEvent;
        let isOver = false;
        room.dispatchEvent = (event) => {
            if (isOver) late.push(event.type);
            isOver ||= event.type === "closed";
            return heard.call(room, event);
        };
        if (type) room.on(type, () => room.leave());
        else room.leave();
        if (type === "connection") room.on("offer", () => room.request("bye", { connection: "sub" }).catch(() => {}));
        const code = await room.connect().then(() => "", (problem) => problem.code);
        // A fresh session, a page that slept, and a connection that the server gives up.
        if (type === "participantLeft") room.signal.startOver();
        if (type === "suspended") room.signal.ranAt -= 60_000;
        const isDone = () => isOver && sockets.every(({ readyState }) => readyState === 3) && connections.every(({ signalingState }) => signalingState === "closed");
        for (let turn = 0; turn < 400 && !isDone(); turn++) await new Promise((resolve) => { setTimeout(resolve, 20); });
        const seen = [code, room.state, late.join(), isDone(), timers.size, room.participants.size, room.publishing].join(" ");
        (found[seen] ??= []).push(type);
        if (room.state !== "closed") room.leave();
        [sockets, connections, timers] = [[], [], new Set()];
    }
    bob.leave();
    Object.assign(window, { WebSocket, RTCPeerConnection, setInterval, clearInterval });
    const early = await new Room("", "").request("ping").catch(({ code }) => code);
    return { found, problems, isOnce, isHeard, isNegotiated, early };
})"""


def test_a_room_that_is_left_by_a_listener_stays_left_and_is_silent(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            found = await page.evaluate(LISTENERS, {name: token(name, "listeners") for name in ("ada", "bob")})
            assert found == {"problems": [], "isOnce": True, "isHeard": True, "isNegotiated": True, "early": "not_joined", "found": {
                "left closed  true 0 0 ": ["", "stateChanged", "joined", "participantJoined", "trackPublished"],
                " closed  true 0 0 ": ["offer", "trackSubscribed", "participantLeft", "suspended", "connection"]}}, found

    asyncio.run(run())


def test_whoever_leaves_while_its_socket_is_away_leaves_for_the_others_at_once(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            *found, seconds = await page.evaluate(GOODBYE, [token(name, "goodbye") for name in ("ada", "bob")])
            assert found == ["closed", "left", "left"] and seconds < 10, (found, seconds)

    asyncio.run(run())


def test_chunks_of_a_file_are_read_as_they_were_written_and_put_together_in_order(development_server):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            found = await page.evaluate("""import("/martlet/files.js").then(({ Assembly, chunkOf, readChunk }) => {
                const id = Uint8Array.from({ length: 16 }, (_, i) => i), content = new Uint8Array([7, 8, 9]);
                const { offset, ...rest } = readChunk(chunkOf(id, 2 ** 40 + 3, content));
                const file = new Assembly(5);
                // The next, one after a gap, the same again, one that is too long, the last.
                const taken = [[0, 3], [4, 1], [0, 3], [3, 3], [3, 2]].map(([at, length]) => file.add(at, new Uint8Array(length)));
                return { offset, id: rest.id, content: [...rest.content], short: readChunk(new Uint8Array(24)), taken, isComplete: file.isComplete, empty: new Assembly(0).isComplete };
            })""")
            assert found == {"offset": 2**40 + 3, "id": "000102030405060708090a0b0c0d0e0f", "content": [7, 8, 9], "short": None,
                             "taken": [True, False, False, False, True], "isComplete": True, "empty": True}

    asyncio.run(run())


# Time is that of the next timer, once all that waits for none is done: on a busy machine real timers were late, and chunks were taken for lost. `settled(work)` lets it
# pass until `work` is over, `pass` for so many milliseconds, or until no timer is left, `sleep` while the page stands still; `later` is the page's own, by which no such time passes.
STILL_TIME = """
    const { setTimeout: later, clearTimeout } = window;
    const clock = (() => {
        const timers = new Map();
        let time = 0, count = 0, turns = 0;
        window.setTimeout = (work, milliseconds = 0) => {
            timers.set(count += 1, { at: time + milliseconds, work });
            return count;
        };
        window.clearTimeout = (timer) => { timers.delete(timer); };
        performance.now = () => time;
        const turn = async (isEnough) => {
            await new Promise((resolve) => { later(resolve); });
            const [next] = [...timers].sort(([, one], [, other]) => one.at - other.at);
            if (!next || isEnough(next[1].at) || ++turns > 10_000) return false;
            timers.delete(next[0]);
            time = Math.max(time, next[1].at);
            next[1].work();
            return true;
        };
        return {
            async settled(work) {
                let isOver = false;
                work.catch(() => {}).then(() => { isOver = true; });
                while (await turn(() => isOver));
                return work;
            },
            async pass(milliseconds = Infinity) {
                const end = time + milliseconds;
                while (await turn((at) => at > end));
                if (end < Infinity) time = end;
            },
            sleep(milliseconds) { time += milliseconds; },
            end() {
                Object.assign(window, { setTimeout: later, clearTimeout });
                delete performance.now;
            },
        };
    })();
"""


# Members of a room without a server: C loses its fourth chunk once, D accepts small files only.
TRANSFERS = """import("/martlet/files.js").then(async ({ FileExchange, chunkOf, FILE_TOPIC }) => {""" + STILL_TIME + """
    const members = {}, ends = [];
    let chunks = 0;
    const add = (sid, limit, onFile) => {
        const send = async (content, { topic, to }) => {
            await null;
            for (const [other, exchange] of Object.entries(members)) {
                if (other === sid || (to && !to.includes(other))) continue;
                if (typeof content !== "string" && other === "C" && ++chunks === 4) continue;
                exchange.receive({ from: sid, topic, ...(typeof content === "string" ? { text: content } : { bytes: content }) });
            }
        };
        members[sid] = new FileExchange({ send, onFile, limit: () => limit, prepare: async () => {} });
    };
    // A person may press twice.
    const keep = (file) => file.accept() === file.accept() && file.accept().then((blob) => blob.arrayBuffer(), ({ code }) => code).then((end) => ends.push(end));
    add("A", 0, () => {});
    for (const sid of "BC") add(sid, 10_000_000, keep);
    add("D", 10, keep);
    const content = crypto.getRandomValues(new Uint8Array(60_000)), whole = Uint8Array.from({ length: 20 * content.length }, (_, at) => content[at % content.length]);
    // A real file would be read in real time.
    const file = { name: "many", type: "", size: whole.length, slice: (from, to) => ({ arrayBuffer: async () => whole.slice(from, to).buffer }) };
    const codeOf = (work) => work.then(() => "", (problem) => problem.code), code = (work) => clock.settled(codeOf(work));
    const isWhole = (end) => end instanceof ArrayBuffer && new Uint8Array(end).every((byte, at) => byte === whole[at]) && end.byteLength === whole.length;
    const sending = members.A.sendFile(file, {}, ["B", "C", "D"]);
    await clock.pass(0);
    const [id] = members.B.receiving.keys();
    const forged = Uint8Array.from(id.match(/../g), (digits) => parseInt(digits, 16));
    members.B.receive({ from: "E", topic: FILE_TOPIC, bytes: chunkOf(forged, 0, new Uint8Array(9)) });
    members.B.receive({ from: "E", topic: FILE_TOPIC, text: JSON.stringify({ file: id, state: "cancelled" }) });
    // What arrived is a real Blob, and read a moment later.
    const ended = async (count) => {
        while (ends.length < count) await new Promise((resolve) => later(resolve, 10));
        return ends.splice(0);
    };
    const found = { sent: await clock.settled(sending), whole: (await ended(2)).map(isWhole), chunks };
    found.tooLarge = await code(members.A.sendFile(file, { to: ["D"] }, ["D"]));
    found.silent = await code(members.A.sendFile(file, { to: ["E"], acceptWithin: 50 }, ["E"]));
    const stop = new AbortController();
    const cancelled = members.A.sendFile(file, { to: ["B"], signal: stop.signal, onProgress: () => stop.abort() }, ["B"]);
    found.cancelled = [await code(cancelled), (await ended(1)).join()];
    const left = members.A.sendFile(file, { to: ["B"], onProgress: (bytes) => { if (bytes) { members.B.left("A"); members.A.left("B"); } } }, ["B"]);
    found.left = [await code(left), (await ended(1)).join()];
    let late;
    add("F", 10_000_000, (file) => { late = file; });
    const unanswered = codeOf(members.A.sendFile(file, { to: ["F"], acceptWithin: 50 }, ["F"]));
    while (!late) await null;
    // An offer of somebody else with the same id, which was sent to everybody.
    members.F.receive({ from: "E", topic: FILE_TOPIC, text: JSON.stringify({ file: late.id, state: "offered", name: "", type: "", size: 1 }) });
    found.forged = late.from;
    members.F.left("A");
    found.late = [await code(late.accept()), await clock.settled(unanswered), members.F.offers.size];
    // A sender that stays and stops: for 75 s the same chunk comes again and again, then nothing.
    const heard = [];
    members.G = { receive: ({ text }) => heard.push(JSON.parse(text).state) };
    members.B.receive({ from: "G", topic: FILE_TOPIC, text: JSON.stringify({ file: "0".repeat(32), state: "offered", name: "", type: "", size: 9 }) });
    for (let turn = 0; turn < 5; turn++) {
        members.B.receive({ from: "G", topic: FILE_TOPIC, bytes: chunkOf(new Uint8Array(16), 0, new Uint8Array(3)) });
        await clock.pass(15_000);
    }
    found.stalled = [members.B.receiving.size];
    await clock.pass();
    found.stalled.push((await ended(1)).join(), members.B.receiving.size, heard.join());
    members.B.receive({ from: "E", topic: FILE_TOPIC, text: "no JSON" });
    members.B.receive({ from: "E", topic: FILE_TOPIC, text: '{"file":"x","state":"offered","size":-1}' });
    clock.end();
    return found;
})"""


# A file for two of whom one has 120 kbit/s, and whose messages are otherwise neither lost nor late: a chunk takes 2.2 s, 128 KiB nearly nine.
NARROW = """import("/martlet/files.js").then(async ({ FileExchange }) => {""" + STILL_TIME + """
    const members = {}, ends = {}, size = 700_000;
    let chunks = 0, free = 0, sent = null;
    const add = (sid, onFile) => {
        const send = async (content, { topic, to }) => {
            const isChunk = typeof content !== "string", now = performance.now();
            for (const other of Object.keys(members)) {
                if (other === sid || (to && !to.includes(other))) continue;
                const isNarrow = isChunk && other === "C";
                if (isNarrow) chunks += 1;
                free = Math.max(free, now) + (isNarrow ? content.length / 15 : 0);
                setTimeout(() => members[other].receive({ from: sid, topic, ...(isChunk ? { bytes: content } : { text: content }) }), isNarrow ? free - now : 30);
            }
        };
        members[sid] = new FileExchange({ send, onFile, limit: () => 10_000_000, prepare: async () => {} });
    };
    add("A", () => {});
    for (const sid of "BC") add(sid, (file) => file.accept().then((blob) => { ends[sid] = blob.size; }, ({ code }) => { ends[sid] = code; }));
    // A real file would be read in real time.
    const file = { name: "many", type: "", size, slice: (from, to) => ({ arrayBuffer: async () => new ArrayBuffer(Math.min(to, size) - from) }) };
    members.A.sendFile(file, {}, ["B", "C"]).then((all) => { sent = all; }, ({ code }) => { sent = code; });
    await clock.pass();
    clock.end();
    return { sent, ends, chunks };
})"""


def test_a_file_reaches_a_receiver_on_a_narrow_link_and_nothing_is_sent_twice(development_server):
    """What has not come yet is not lost: chunks that were sent again took the place of those that the receiver still lacked, until it was given up."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(NARROW) == {"sent": {"receivers": 2}, "ends": {"B": 700_000, "C": 700_000}, "chunks": 22}

    asyncio.run(run())


# A sender and a receiver whose machine sleeps for longer than either waits for the other: its timers run before what came meanwhile is read. And a receiver that says nothing.
SLEPT = """import("/martlet/files.js").then(async ({ FileExchange, chunkOf }) => {""" + STILL_TIME + """
    const size = 600_000, heard = [];
    let taken;
    const exchange = new FileExchange({
        send: async (content) => { if (typeof content === "string") heard.push(JSON.parse(content).state); },
        onFile: (file) => { taken = file.accept().then((blob) => blob.size, ({ code }) => code); }, limit: () => size, prepare: async () => {},
    });
    const file = { name: "many", type: "", size, slice: (from, to) => ({ arrayBuffer: async () => new ArrayBuffer(Math.min(to, size) - from) }) };
    const begin = async () => {
        const sending = exchange.sendFile(file, { to: ["B"] }, ["B"]).then((all) => all.receivers, ({ code }) => code);
        await clock.pass(0);
        const [id] = exchange.sending.keys();
        return [sending, (bytes) => exchange.receive({ from: "B", text: JSON.stringify({ file: id, state: "received", bytes }) })];
    };
    const [sending, report] = await begin();
    report(0);
    await clock.pass(1_000);
    clock.sleep(60_000);
    await clock.pass(0);
    report(524_288);
    await clock.pass(1_000);
    report(size);
    const found = [await clock.settled(sending)];
    const [silent, accept] = await begin();
    accept(0);
    found.push(await clock.settled(silent), heard.splice(0).join());
    const chunk = (offset) => exchange.receive({ from: "G", bytes: chunkOf(new Uint8Array(16), offset, new Uint8Array(3)) });
    exchange.receive({ from: "G", text: JSON.stringify({ file: "0".repeat(32), state: "offered", name: "", type: "", size: 6 }) });
    await clock.pass(0);
    chunk(0);
    clock.sleep(70_000);
    await clock.pass(0);
    chunk(3);
    found.push(await clock.settled(taken), heard.join());
    clock.end();
    return found;
})"""


def test_a_file_goes_on_where_the_machine_slept(development_server):
    """Both sides give up only after the page has read what came while it stood still."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            assert await page.evaluate(SLEPT) == [1, "file_incomplete", "offered,offered,cancelled,cancelled", 6, "received,received"]

    asyncio.run(run())


# Two members of a room whose members connect to each other, and a screen that a person ends while it is being published.
PEERS = """(tokens) => import("/martlet.js").then(async ({ connect }) => {
    const [ada, bob] = await Promise.all(tokens.map((one) => connect("", one)));
    const got = new Promise((resolve) => { bob.on("file", ({ file }) => resolve(file.accept().then((blob) => blob.text()))); });
    const sent = await ada.sendFile(new File(["text"], "small.txt"));
    const screen = document.createElement("canvas").getContext("2d").canvas.captureStream(1), [track] = screen.getTracks();
    navigator.mediaDevices.getDisplayMedia = async () => screen;
    ada.publishing.add = async () => { track.stop(); track.dispatchEvent(new Event("ended")); };
    const found = [sent, await got, await ada.shareScreen(), ada.publications.size];
    for (const one of [ada, bob]) one.leave();
    return found;
})"""


def test_a_file_reaches_all_who_accept_it_and_whoever_loses_a_chunk(development_server):
    """Loss is repaired, chunks of other senders change nothing, and each way to end has its code. Where the server has no data channels, it goes over the WebSocket."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(development_server.url + "/examples")
            found = await page.evaluate(TRANSFERS)
            assert found["sent"] == {"receivers": 2} and found["whole"] == [True, True], found
            assert found["chunks"] > 1_200_000 / 32_768 + 1, "chunks were sent again"
            assert found["tooLarge"] == "too_large" and found["silent"] == "file_not_accepted", found
            assert development_server.api("POST", "/v1/rooms", {"name": "peers", "policy": {"topology": "peerToPeer"}})[0] == 201
            assert await page.evaluate(PEERS, [token(name, "peers") for name in ("ada", "bob")]) == [{"receivers": 1}, "text", [], 0]
            assert found["forged"] == "A", found
            assert found["stalled"] == [1, "file_incomplete", 0, "received,declined"], found
            assert found["late"] == ["file_incomplete", "file_not_accepted", 0], found
            assert found["cancelled"] == ["file_cancelled", "file_cancelled"] and found["left"] == ["file_incomplete", "file_incomplete"], found

    asyncio.run(run())


def test_the_example_of_40_lines_works_as_it_stands_on_the_page_and_so_do_the_others(development_server):
    """Copied from the page into an empty page, and run by the page's own button; then every other example, in their order."""
    server = development_server

    async def run():
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1100, "height": 900}, bypass_csp=True)
            problems = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await page.goto(server.url + "/examples")
            await until(page, "document.querySelector('#example-code').textContent !== ''")
            code = await page.evaluate("document.querySelector('#example-code').textContent")
            assert len(code.splitlines()) <= 40
            copy = await browser.new_page(bypass_csp=True)
            copy.on("pageerror", lambda error: problems.append(str(error)))
            await copy.goto(server.url + "/examples")
            # Not while the page's own script is under way.
            await until(copy, "document.querySelector('#example-code').textContent !== ''")
            await copy.evaluate("document.body.replaceChildren()")
            await copy.add_script_tag(content=code, type="module")
            await page.click("#example-run")
            moves = "[...document.querySelectorAll('video')].filter((one) => one.getVideoPlaybackQuality().totalVideoFrames > 15).length === 2"
            for one in (page, copy):
                await until(one, moves)
            await copy.fill("input", "Good morning")
            await copy.press("input", "Enter")
            await until(page, "/guest-.*: Good morning/.test(document.querySelector('#example').textContent)")
            # The others have a `room`, and a screen that needs no person.
            await page.evaluate(f"""import("/martlet.js").then(async ({{ connect }}) => {{
                window.room = await connect("", {json.dumps(token("reader", "example"))});
                const screen = document.createElement("canvas");
                screen.getContext("2d");
                navigator.mediaDevices.getDisplayMedia = async () => screen.captureStream(1);
            }})""")
            count = await page.evaluate("document.querySelectorAll('pre.snippet').length")
            for index in range(count):
                done = await page.evaluate(f"""(async () => {{
                    const text = document.querySelectorAll("pre.snippet")[{index}].textContent.replace(/import (\\{{[^}}]*\\}}) from ("[^"]*")/g, "const $1 = await import($2)");
                    await new Function(`return (async () => {{ ${{text}}\n}})()`)();
                }})().then(() => "", (problem) => String(problem.stack))""")
                assert done == "", (index, done)
            assert count >= 9 and not problems, problems

    asyncio.run(run())
