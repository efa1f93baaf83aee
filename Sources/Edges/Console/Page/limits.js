// What keeps the own video from being as large or as fast as it could be: this machine's encoder, or the network.

/** Checks in a row, one per second, after which a limit is shown: an encoder is slow at the start, and a path's estimate begins low. */
const LASTS = { cpu: 2, bandwidth: 6 };
/** The share of its time that an encoder may be busy before it is the limit, if the browser does not report the reason. */
const BUSY = 0.9;

export class SendLimits {
    constructor() {
        this.before = new Map(); // rid -> { frames, seconds }
        this.seen = { reason: "", times: 0 };
    }

    /**
     * `sent` are the layers of one video (`sentStatistics`), `encodings` those of its sender: a layer that nobody demands is no limit. The
     * result: `reason`, "cpu", "bandwidth" or "", and the same in words.
     */
    look(sent, encodings) {
        const active = encodings.filter((one) => one.active !== false);
        const layers = sent.filter(({ rid }) => active.some((one) => (one.rid ?? "") === rid));
        const milliseconds = this.encodeMilliseconds(layers);
        const reason = layers.length ? reasonOf(layers, milliseconds) : "";
        this.seen = { reason, times: reason === this.seen.reason ? this.seen.times + 1 : 1 };
        if (!reason || this.seen.times < LASTS[reason]) return { reason: "", text: "" };
        const height = Math.round(layers[0].sourceHeight / Math.min(...active.map((one) => one.scaleResolutionDownBy ?? 1)));
        const moving = layers.filter((layer) => layer.framesPerSecond > 0);
        const sentHeight = Math.max(0, ...moving.map((layer) => layer.frameHeight));
        const rate = Math.round(Math.max(0, ...moving.map((layer) => layer.framesPerSecond)));
        const parts = [reason === "cpu" ? "This machine limits your video" : "The network limits your video"];
        if (sentHeight < height) parts.push(`${sentHeight}p instead of ${height}p`);
        if (rate < Math.round(layers[0].sourceFramesPerSecond)) parts.push(`${rate} of ${Math.round(layers[0].sourceFramesPerSecond)} fps`);
        if (reason === "cpu" && milliseconds) parts.push(`encoding takes ${Math.round(milliseconds)} ms per frame`);
        return { reason, text: parts.join(" · ") };
    }

    /** How long all layers of a frame took to encode since the last look; 0 if unknown. */
    encodeMilliseconds(layers) {
        let sum = 0;
        for (const { rid, framesEncoded, encodeSeconds } of layers) {
            const before = this.before.get(rid);
            this.before.set(rid, { framesEncoded, encodeSeconds });
            if (before && framesEncoded > before.framesEncoded) sum += ((encodeSeconds - before.encodeSeconds) * 1000) / (framesEncoded - before.framesEncoded);
        }
        return sum;
    }
}

function reasonOf(layers, milliseconds) {
    const reasons = new Set(layers.map((layer) => layer.limitedBy));
    if (reasons.has("cpu")) return "cpu";
    if (reasons.has("bandwidth")) return "bandwidth";
    // The browser reports no reason: frames are missing, and the encoder is busy all the time.
    const rate = Math.max(0, ...layers.map((layer) => layer.framesPerSecond));
    const isShort = rate > 0 && rate < 0.8 * layers[0].sourceFramesPerSecond;
    return reasons.has("") && isShort && milliseconds * rate > BUSY * 1000 ? "cpu" : "";
}
