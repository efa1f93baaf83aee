// The browser's own measurements, reduced to what a person (and a test) needs to know.

/** One entry per incoming stream: kind, codec, size, frames, loss, energy. */
export async function receivedStatistics(connection) {
    if (!connection) return [];
    const reports = await connection.getStats();
    return ofType(reports, "inbound-rtp").map((report) => ({
        kind: report.kind,
        mid: report.mid,
        codec: reports.get(report.codecId)?.mimeType ?? "",
        bytesReceived: report.bytesReceived ?? 0,
        packetsReceived: report.packetsReceived ?? 0,
        packetsLost: report.packetsLost ?? 0,
        framesDecoded: report.framesDecoded ?? 0,
        framesDropped: report.framesDropped ?? 0,
        framesPerSecond: report.framesPerSecond ?? 0,
        frameWidth: report.frameWidth ?? 0,
        frameHeight: report.frameHeight ?? 0,
        freezeCount: report.freezeCount ?? 0,
        totalFreezesDuration: report.totalFreezesDuration ?? null,
        nackCount: report.nackCount ?? 0,
        pliCount: report.pliCount ?? 0,
        jitter: report.jitter ?? 0,
        totalAudioEnergy: report.totalAudioEnergy ?? 0,
        // What a player had to make up, where there was something to play.
        concealedSamples: (report.concealedSamples ?? 0) - (report.silentConcealedSamples ?? 0),
        totalSamplesReceived: report.totalSamplesReceived ?? 0,
    }));
}

/** One entry per outgoing layer. */
export async function sentStatistics(connection) {
    if (!connection) return [];
    const reports = await connection.getStats();
    return ofType(reports, "outbound-rtp").map((report) => ({
        ...source(reports.get(report.mediaSourceId)),
        kind: report.kind,
        mid: report.mid,
        rid: report.rid ?? "",
        codec: reports.get(report.codecId)?.mimeType ?? "",
        bytesSent: report.bytesSent ?? 0,
        packetsSent: report.packetsSent ?? 0,
        framesPerSecond: report.framesPerSecond ?? 0,
        framesEncoded: report.framesEncoded ?? 0,
        encodeSeconds: report.totalEncodeTime ?? 0,
        frameWidth: report.frameWidth ?? 0,
        frameHeight: report.frameHeight ?? 0,
        pliCount: report.pliCount ?? 0,
        limitedBy: report.qualityLimitationReason ?? "",
    }));
}

/** The captured media, before any encoder. */
function source(report) { return { sourceHeight: report?.height ?? 0, sourceFramesPerSecond: report?.framesPerSecond ?? 0 }; }

function ofType(reports, type) {
    const found = [];
    reports.forEach((report) => { if (report.type === type) found.push(report); });
    return found;
}

/** Seconds without a new frame after which a video counts as frozen; a screen on which nothing moves may have none for longer. */
const STILL_AFTER = { camera: 3, screen: 10 };

/** Remembers counts between calls and turns statistics into "1280×720" and "30 fps · 1.2 Mbit/s", or into the time without frames. */
export class Figures {
    constructor() {
        this.before = new Map();
        this.progress = new Map(); // track sid -> { frames, since }
    }

    /** Whole seconds for which a video that should move has had no new frame, 0 if that need not be shown. */
    still(sid, frames, { isExpected, source }) {
        const now = performance.now();
        const last = this.progress.get(sid);
        if (!isExpected || !last || last.frames !== frames) {
            this.progress.set(sid, { frames, since: now });
            return 0;
        }
        const seconds = (now - last.since) / 1000;
        return seconds >= (STILL_AFTER[source] ?? STILL_AFTER.camera) ? Math.floor(seconds) : 0;
    }

    received(one) {
        const kilobits = this.kilobits(`in ${one.mid}`, one.bytesReceived);
        if (!one.frameWidth || kilobits === null) return {};
        return {
            ...describe(one, kilobits),
            details: `${one.codec.replace("video/", "")} · ${one.packetsLost} packets lost · ${one.nackCount} NACKs · `
                + `${one.freezeCount} freezes · jitter ${Math.round(one.jitter * 1000)} ms`,
        };
    }

    /** All layers of the own video together: the largest one's size, the sum of their rates. */
    sent(layers) {
        const live = layers.filter((layer) => layer.framesPerSecond > 0);
        const kilobits = this.kilobits("out", layers.reduce((sum, layer) => sum + layer.bytesSent, 0));
        if (!live.length || kilobits === null) return {};
        const largest = live.reduce((a, b) => (b.frameHeight > a.frameHeight ? b : a));
        const { size, more } = describe(largest, kilobits);
        return { size, more: live.length > 1 ? `${more} in ${live.length} sizes` : more, details: largest.codec.replace("video/", "") };
    }

    /** Since the last call; null at the first, and if the count began anew. */
    kilobits(key, bytes) {
        const now = performance.now();
        const previous = this.before.get(key);
        this.before.set(key, { bytes, now });
        return previous && bytes >= previous.bytes ? ((bytes - previous.bytes) * 8) / (now - previous.now) : null;
    }
}

function describe({ frameWidth, frameHeight, framesPerSecond }, kilobits) {
    return { size: `${frameWidth}×${frameHeight}`, more: `${Math.round(framesPerSecond)} fps · ${rate(kilobits)}` };
}

/** "812 kbit/s", "1.2 Mbit/s" */
export function rate(kilobits) {
    return kilobits < 1000 ? `${Math.round(kilobits)} kbit/s` : `${(kilobits / 1000).toFixed(1)} Mbit/s`;
}
