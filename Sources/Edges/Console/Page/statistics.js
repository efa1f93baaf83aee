// What the browser itself measures, reduced to what a person (and a test) wants to know.

/** One entry an incoming stream: kind, codec, size, frames, loss, energy. */
export async function receivedStatistics(connection) {
    if (!connection) return [];
    const reports = await connection.getStats();
    const all = [];
    reports.forEach((report) => {
        if (report.type !== "inbound-rtp") return;
        all.push({
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
        });
    });
    return all;
}

/** Remembers byte counts between calls and turns them into "1280×720 · 30 fps · 812 kbit/s". */
export class Figures {
    constructor() { this.before = new Map(); }

    describe(statistics, now = performance.now()) {
        const previous = this.before.get(statistics.mid);
        this.before.set(statistics.mid, { bytes: statistics.bytesReceived, at: now });
        if (!previous || !statistics.frameWidth) return "";
        const kilobits = Math.round(((statistics.bytesReceived - previous.bytes) * 8) / (now - previous.at));
        return `${statistics.frameWidth}×${statistics.frameHeight} · ${Math.round(statistics.framesPerSecond)} fps · ${kilobits} kbit/s`;
    }
}
