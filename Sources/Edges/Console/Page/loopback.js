// Tests one path through the network: a video goes to the server on one connection and comes back on another, both over this path only.

/** Milliseconds for two connections and the first frame. A browser gives up on ICE after some 15 s; a person who waits for a call, sooner. */
const PATIENCE = 10_000;
/** Milliseconds over which figures are taken, after the first frame. */
const MEASURED = 4_000;

/** Keeps of a description only the candidates of a transport, "udp" or "tcp". */
export function onlyCandidates(sdp, transport) {
    return sdp.split("\r\n").filter((line) => {
        const candidate = /^a=candidate:\S+ \d+ (\S+) /.exec(line);
        return !candidate || candidate[1].toLowerCase() === transport;
    }).join("\r\n");
}

const hasCandidates = (sdp) => /^a=candidate:/m.test(sdp);

export class Loopback {
    /**
     * `sender` and `receiver` are the two participants' Signals. `way`: its `name`; `transport`, of the server's candidates that are used; `relays`,
     * whether only TURN servers are used. `onReturned(track)`: the video comes back.
     */
    constructor({ sender, receiver, way, iceServers, stream, onReturned }) {
        Object.assign(this, { sender, receiver, way, stream, onReturned });
        this.connectionName = `pub-${way.name}`;
        this.configuration = {
            bundlePolicy: "max-bundle", iceServers: way.relays ? iceServers : [], iceTransportPolicy: way.relays ? "relay" : "all",
        };
        this.work = Promise.resolve();
    }

    /** The figures of this path; null if the server does not offer it. Throws if there is no connection, or no video comes back. */
    async run() {
        const startedAt = performance.now();
        try {
            if (!await within(PATIENCE, this.publish(), "no connection")) return null;
            await within(PATIENCE, this.whenConnected(this.pub), "no connection");
            const connectedAfter = performance.now() - startedAt;
            await within(PATIENCE, this.whenReturned(), "no video came back");
            const before = await this.look();
            await wait(MEASURED);
            return { connectedAfter, ...figures(before, await this.look()) };
        } finally {
            await this.close();
        }
    }

    async publish() {
        this.pub = new RTCPeerConnection(this.configuration);
        this.pub.addTransceiver(this.stream.getVideoTracks()[0], { direction: "sendonly", streams: [this.stream] });
        await this.pub.setLocalDescription();
        const { sdp } = await this.sender.request("offer", { connection: this.connectionName, sdp: this.pub.localDescription.sdp });
        const kept = onlyCandidates(sdp, this.way.transport);
        if (!hasCandidates(kept)) return false;
        await this.pub.setRemoteDescription({ type: "answer", sdp: kept });
        return true;
    }

    /** Answers the server's offer of the video that comes back. */
    take({ connection, sdp }) {
        this.work = this.work.then(async () => {
            if (this.isClosed) return;
            this.sub ??= this.connect();
            await this.sub.setRemoteDescription({ type: "offer", sdp: onlyCandidates(sdp, this.way.transport) });
            await this.sub.setLocalDescription();
            await this.receiver.request("answer", { connection, sdp: this.sub.localDescription.sdp });
        }).catch((problem) => this.isClosed || console.warn(problem.message));
    }

    connect() {
        const connection = new RTCPeerConnection(this.configuration);
        connection.ontrack = ({ track }) => this.onReturned(track);
        return connection;
    }

    async whenConnected(connection) {
        while (connection.connectionState !== "connected") {
            if (["failed", "closed"].includes(connection.connectionState)) throw new Error("no connection");
            await wait(20);
        }
    }

    async whenReturned() {
        while (!this.isClosed && !((await inbound(this.sub))?.framesDecoded > 0)) await wait(50);
    }

    async look() {
        const [sent, received] = await Promise.all([this.pub.getStats(), this.sub.getStats()]);
        const outbound = find(sent, "outbound-rtp");
        const pair = find(sent, "candidate-pair", (one) => one.nominated && one.state === "succeeded");
        return {
            at: performance.now(), outbound, remote: find(sent, "remote-inbound-rtp"), pair, local: pair && sent.get(pair.localCandidateId),
            inbound: find(received, "inbound-rtp"),
        };
    }

    async close() {
        this.isClosed = true;
        this.pub?.close();
        this.sub?.close();
        const end = async () => {
            await this.sender.request("bye", { connection: this.connectionName }).catch(() => {});
            await this.receiver.request("bye", { connection: "sub" }).catch(() => {});
        };
        // An unreachable server does not answer.
        await within(PATIENCE, end(), "no answer").catch(() => {});
    }
}

/** What changed between two measurements. Shares are from 0 to 1; what a browser does not report is absent. */
function figures(before, after) {
    const seconds = (after.at - before.at) / 1000;
    const since = (kind, field) => (after[kind]?.[field] ?? 0) - (before[kind]?.[field] ?? 0);
    const lost = since("inbound", "packetsLost"), received = since("inbound", "packetsReceived");
    const lostUp = since("remote", "packetsLost"), sent = since("outbound", "packetsSent");
    const roundTrip = after.remote?.roundTripTime ?? after.pair?.currentRoundTripTime;
    return {
        sentBitrate: (since("outbound", "bytesSent") * 8) / seconds,
        returnedBitrate: (since("inbound", "bytesReceived") * 8) / seconds,
        sentLoss: share(lostUp, sent), returnedLoss: share(lost, received + lost),
        roundTripMilliseconds: roundTrip === undefined ? undefined : roundTrip * 1000,
        width: after.inbound.frameWidth, height: after.inbound.frameHeight,
        framesPerSecond: since("inbound", "framesDecoded") / seconds,
        availableBitrate: after.pair?.availableOutgoingBitrate, limitation: after.outbound?.qualityLimitationReason,
        // How a TURN server is reached; otherwise how the server is.
        protocol: after.local?.relayProtocol ?? after.local?.protocol,
    };
}

function share(part, whole) { return whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0; }

function find(reports, type, isMeant = () => true) {
    return [...reports.values()].find((one) => one.type === type && isMeant(one));
}

async function inbound(connection) { return connection && find(await connection.getStats(), "inbound-rtp"); }

const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** The result of `work`, or an error with `words` after a timeout. Work that polls ends by itself when its connection closes. */
export async function within(milliseconds, work, words) {
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(words)), milliseconds); });
    try {
        return await Promise.race([work, late]);
    } finally {
        clearTimeout(timer);
    }
}
