// What the browser itself measures, reduced to what a person (and a test) wants to know.

/** One entry an incoming stream: kind, codec, size, frames, loss, energy. */
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
        nackCount: report.nackCount ?? 0,
        pliCount: report.pliCount ?? 0,
        jitter: report.jitter ?? 0,
        totalAudioEnergy: report.totalAudioEnergy ?? 0,
    }));
}

/** One entry an outgoing layer. */
export async function sentStatistics(connection) {
    if (!connection) return [];
    const reports = await connection.getStats();
    return ofType(reports, "outbound-rtp").map((report) => ({
        kind: report.kind,
        mid: report.mid,
        rid: report.rid ?? "",
        codec: reports.get(report.codecId)?.mimeType ?? "",
        bytesSent: report.bytesSent ?? 0,
        packetsSent: report.packetsSent ?? 0,
        framesPerSecond: report.framesPerSecond ?? 0,
        frameWidth: report.frameWidth ?? 0,
        frameHeight: report.frameHeight ?? 0,
        pliCount: report.pliCount ?? 0,
        limitedBy: report.qualityLimitationReason ?? "none",
    }));
}

function ofType(reports, type) {
    const found = [];
    reports.forEach((report) => { if (report.type === type) found.push(report); });
    return found;
}

/** Remembers byte counts between calls and turns statistics into "1280×720" and "30 fps · 1.2 Mbit/s". */
export class Figures {
    constructor() { this.before = new Map(); }

    received(one) {
        const kilobits = this.kilobits(`in ${one.mid}`, one.bytesReceived);
        if (!one.frameWidth || kilobits === null) return {};
        return {
            ...describe(one, kilobits),
            details: `${one.codec.replace("video/", "")} · ${one.packetsLost} packets lost · ${one.nackCount} NACKs · `
                + `${one.freezeCount} freezes · jitter ${Math.round(one.jitter * 1000)} ms`,
        };
    }

    /** All layers of one's own picture together: the largest one's size, the sum of their rates. */
    sent(layers) {
        const live = layers.filter((layer) => layer.framesPerSecond > 0);
        const kilobits = this.kilobits("out", layers.reduce((sum, layer) => sum + layer.bytesSent, 0));
        if (!live.length || kilobits === null) return {};
        const largest = live.reduce((a, b) => (b.frameHeight > a.frameHeight ? b : a));
        const { size, more } = describe(largest, kilobits);
        return { size, more: live.length > 1 ? `${more} in ${live.length} sizes` : more, details: `${largest.codec.replace("video/", "")} · limited by: ${largest.limitedBy}` };
    }

    /** Since the last call; null at the first, and where the count began anew. */
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
