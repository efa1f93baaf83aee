// The page /check: whether a call would work from here. It tests signalling, then every path that media can take, with a video that the server sends back.

import { MartletError, Signal } from "/martlet.js";
import { generatedStream } from "./generated.js";
import { Loopback, within } from "./loopback.js";
import { rate } from "./statistics.js";
import { developmentToken, newIdentity } from "./tokens.js";

const element = (id) => document.getElementById(id);

/** Above these a call is hard to follow: loss that repair and redundancy no longer hide, and twice ITU-T G.114's upper bound of the one-way delay. */
const HIGH_LOSS = 0.05, HIGH_ROUND_TRIP = 800;
/** The rate of the smallest of a camera's three layers, in bit/s: below it, no useful video gets through. */
const LOW_BITRATE = 150_000;

/** Milliseconds in which both participants join. */
const SIGNALLING_PATIENCE = 10_000;

/** `relays`: through a TURN server, over whatever transport it is reached. */
const WAYS = [
    { name: "udp", title: "UDP", transport: "udp", relays: false },
    { name: "tcp", title: "TCP", transport: "tcp", relays: false },
    { name: "turn", title: "TURN relay", transport: "udp", relays: true },
];
const FAILURES = {
    udp: "UDP does not reach the server. A firewall between this device and the server probably blocks it.",
    tcp: "Media over TCP does not reach the server.",
    turn: "No TURN server passes media on to the server.",
};

class Step {
    constructor(name, title) {
        Object.assign(this, { name, title, state: "waiting", text: "Not tried yet" });
        this.element = document.createElement("li");
        this.element.dataset.name = name;
        this.outcome = Object.assign(document.createElement("span"), { className: "outcome" });
        this.figures = Object.assign(document.createElement("span"), { className: "figures" });
        this.element.append(Object.assign(document.createElement("b"), { textContent: title }), this.outcome, this.figures);
        element("check-steps").append(this.element);
        this.set("waiting", this.text);
    }

    /** `state` is "waiting", "running", "good", "poor", "bad" or "absent". */
    set(state, text, figures = "") {
        Object.assign(this, { state, text, details: figures });
        this.element.dataset.state = state;
        this.outcome.textContent = text;
        this.figures.textContent = figures;
    }
}

class Check {
    constructor() {
        element("check-steps").replaceChildren();
        this.signalling = new Step("signalling", "Signalling");
        this.ways = WAYS.map((way) => ({ way, step: new Step(way.name, way.title) }));
        this.stream = generatedStream({ name: "Check", width: 1280, height: 720, audio: false });
    }

    get steps() { return [this.signalling, ...this.ways.map(({ step }) => step)]; }

    async run(token) {
        show(element("check-sent"), this.stream.getVideoTracks()[0]);
        try {
            await this.connect(await begin(token));
            for (const { way, step } of this.ways) await this.attempt(way, step);
        } finally {
            this.end();
        }
        return this.verdict();
    }

    /** Joins as both participants. */
    async connect(check) {
        this.signalling.set("running", "Connecting…");
        this.iceServers = check.iceServers;
        const startedAt = performance.now();
        try {
            const joins = [this.join(check.room, check.senderToken, () => {}), this.join(check.room, check.receiverToken, (event) => this.take(event))];
            // A proxy that does not pass WebSockets may not answer at all.
            [this.sender, this.receiver] = await within(SIGNALLING_PATIENCE, Promise.all(joins), `there is no answer within ${SIGNALLING_PATIENCE / 1000} s.`);
            const joinedAfter = performance.now() - startedAt;
            await this.sender.request("ping");
            const roundTrip = performance.now() - startedAt - joinedAfter;
            this.isJoined = true;
            this.signalling.set("good", "Works.", `joined in ${milliseconds(joinedAfter)} · round trip ${milliseconds(roundTrip)}`);
        } catch (problem) {
            this.signalling.set("bad", `The WebSocket connection does not work: ${problem.message}`);
            throw problem;
        }
    }

    join(room, token, onEvent) {
        return new Promise((resolve, reject) => {
            const signal = new Signal({
                token, join: { room }, onJoined: () => resolve(signal), onGuest() {}, onICEServers() {}, onEvent, onSuspended() {},
                onState: (state) => { if (state === "connecting" && this.isJoined) this.interruption ??= new Error("The connection to the server was lost."); },
                onEnd: (problem) => {
                    this.interruption = problem;
                    reject(problem);
                },
            });
            this.signals = [...(this.signals ?? []), signal];
        });
    }

    take(event) { if (event.type === "offer") this.loopback?.take(event); }

    async attempt(way, step) {
        if (way.relays && !this.iceServers.some(({ urls }) => urls.some((url) => /^turns?:/.test(url)))) {
            return step.set("absent", "Not offered: this server names no TURN servers.");
        }
        step.set("running", "Trying…");
        const { sender, receiver, iceServers, stream } = this;
        this.loopback = new Loopback({
            sender, receiver, way, iceServers, stream, onReturned: (track) => show(element("check-returned"), track),
        });
        try {
            const figures = await this.loopback.run();
            if (!figures) return step.set("absent", `Not offered: this server takes no media over ${way.title}.`);
            step.measured = figures;
            const faults = faultsOf(figures);
            step.set(faults.length ? "poor" : "good", faults.length ? `Works, but ${faults.join(" and ")}.` : "Works: the video came back.", inWords(figures, way));
        } catch (problem) {
            // This says nothing about the network's firewalls.
            const cause = this.interruption ?? (problem instanceof MartletError ? problem : null);
            if (cause) throw new Error(`The check was interrupted. ${cause.message}`);
            step.set("bad", problem.message === "no video came back" ? "There is a connection, but the video does not come back." : FAILURES[way.name]);
        } finally {
            this.loopback = null;
        }
    }

    /** What the results mean for a call. */
    verdict() {
        const [udp, ...others] = this.ways.map(({ step }) => step);
        if (udp.state === "good") return { state: "good", text: "Calls will work well from here." };
        if (udp.state === "poor") return { state: "poor", text: `Calls will work from here, but ${faultsOf(udp.measured).join(" and ")}.` };
        const other = others.find(({ state }) => state === "good") ?? others.find(({ state }) => state === "poor");
        if (!other) return { state: "bad", text: "Calls will not work from here: no media reaches the server. Ask whoever runs this network to permit UDP to it." };
        return { state: "poor", text: `Calls will work from here by ${other.title}, because UDP does not reach the server. Expect delays when the network is busy.` };
    }

    end() {
        for (const track of this.stream.getTracks()) track.stop();
        for (const signal of this.signals ?? []) if (!signal.over) signal.leave();
    }

    /** For the person who is asked for help. */
    report(verdict) {
        const lines = this.steps.map(({ title, text, details }) => `${title}: ${text}${details ? ` (${details})` : ""}`);
        return [verdict.text, ...lines, `${location.host}, ${new Date().toISOString()}`, navigator.userAgent].join("\n");
    }
}

/** A room for a check, from the control API. */
async function begin(token) {
    const reply = await fetch("/v1/checks", { method: "POST", headers: { Authorization: `Bearer ${token}` } })
        .catch(() => { throw new Error("The server does not answer."); });
    if (reply.ok) return reply.json();
    const { detail, code } = await reply.json().catch(() => ({}));
    throw Object.assign(new Error(detail ?? `The server answered ${reply.status}.`), { code });
}

/** What is wrong with a path that works. */
export function faultsOf({ sentLoss, returnedLoss, roundTripMilliseconds, sentBitrate, returnedBitrate, limitation }) {
    const loss = Math.max(sentLoss, returnedLoss);
    // A busy machine's encoder sends little by itself, which says nothing about the network. A browser that gives no reason, such as Firefox, may have adapted
    // to the network.
    const isNarrow = returnedBitrate < LOW_BITRATE && (returnedBitrate < 0.8 * sentBitrate || !["none", "cpu"].includes(limitation));
    return [
        loss >= HIGH_LOSS && `${percent(loss)} of the packets are lost`,
        roundTripMilliseconds >= HIGH_ROUND_TRIP && `packets take ${milliseconds(roundTripMilliseconds)} there and back`,
        isNarrow && `only ${rate(returnedBitrate / 1000)} come through`,
    ].filter(Boolean);
}

function inWords(one, way) {
    return [
        `connected in ${milliseconds(one.connectedAfter)}${way.relays && one.protocol ? ` by ${one.protocol.toUpperCase()}` : ""}`,
        one.roundTripMilliseconds !== undefined && `round trip ${milliseconds(one.roundTripMilliseconds)}`,
        `${one.width}×${one.height}, ${Math.round(one.framesPerSecond)} fps`,
        `${rate(one.sentBitrate / 1000)} sent, ${rate(one.returnedBitrate / 1000)} received back`,
        `lost ${percent(one.sentLoss)} sent, ${percent(one.returnedLoss)} received`,
        one.availableBitrate && `the browser estimates ${rate(one.availableBitrate / 1000)} for sending`,
    ].filter(Boolean).join(" · ");
}

const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const percent = (share) => `${(share * 100).toFixed(1)} %`;

function show(video, track) {
    video.srcObject = new MediaStream([track]);
    video.play().catch(() => {});
}

async function start() {
    const button = element("check-start");
    element("check-problem").textContent = "";
    button.disabled = true;
    button.textContent = "Checking…";
    let check = null;
    try {
        const token = element("check-token").value.trim() || await developmentToken({ identity: newIdentity("check") });
        element("check-result").hidden = false;
        element("check-copy").hidden = true;
        element("check-videos").hidden = false;
        setVerdict({ state: "running", text: "Checking…" });
        check = new Check();
        finish(check, await check.run(token));
    } catch (problem) {
        if (problem.code === "token_needed" || problem.code?.startsWith("token_")) {
            element("check-token-field").hidden = false;
            element("check-token").focus();
        }
        element("check-problem").textContent = problem.message;
        if (check?.signalling.state === "bad") finish(check, { state: "bad", text: "Calls will not work from here: the server cannot be reached by WebSocket." });
        else element("check-result").hidden = true;
    }
    button.disabled = false;
    button.textContent = "Check again";
}

function finish(check, verdict) {
    setVerdict(verdict);
    element("check-videos").hidden = true;
    const report = check.report(verdict);
    window.martletCheck = { verdict, report, steps: check.steps.map(({ name, state, text, measured }) => ({ name, state, text, measured })) };
    element("check-copy").hidden = !navigator.clipboard;
    element("check-copy").onclick = async () => {
        await navigator.clipboard.writeText(report);
        element("check-copy").textContent = "Copied";
        setTimeout(() => { element("check-copy").textContent = "Copy the report"; }, 1500);
    };
}

function setVerdict({ state, text }) {
    element("check-verdict").dataset.state = state;
    element("check-verdict").textContent = text;
}

element("check-start").onclick = start;
const parameters = new URLSearchParams(location.search);
if (parameters.has("token")) element("check-token").value = parameters.get("token");
if (parameters.get("start") === "1") start();
