// What was known of a participant at one moment, and why its videos were not better: history, decisions and estimates read together.

import { rate } from "./statistics.js";

/** The server samples every 5 s; a moment belongs to the sample that ends it, unless none is near. */
const SAMPLE_MS = 5_000;
const ESTIMATE_MS = 20_000;
/** As many decisions as the server has seen every 5 s and keeps (SeenDecisions): with fewer, it has some of every time. */
const KEPT_DECISIONS = 720;
/** What is near enough to a moment to be related to it. */
const AROUND_MS = 30_000;
/** From these on, loss and delay are noticeable, whatever the layer. */
const MUCH_LOSS = 0.03, LONG_ROUND_TRIP = 400;

/** How a decision compares with what is possible: everything, less, or nothing. */
const KINDS = {
    best: "full", asPreferred: "full", bandwidth: "less", capped: "less", settling: "less", yieldsToScreen: "less", oversent: "less",
    shortage: "nothing", tooManyVideos: "nothing", paused: "off", hidden: "off", notSent: "off",
};
const BY_NETWORK = new Set(["bandwidth", "settling", "yieldsToScreen", "oversent", "shortage"]);

export const kindOf = ({ reason }) => KINDS[reason] ?? "less";

/** "360p · 15 fps · 310 kbit/s", or that nothing is sent. */
export function layerOf({ layer }) {
    if (!layer) return "nothing";
    const parts = [layer.height ? `${layer.height}p` : "video"];
    if (layer.framesPerSecond) parts.push(`${Math.round(layer.framesPerSecond)} fps`);
    return [...parts, rate(layer.bitrate / 1000)].join(" · ");
}

/** The decisions about each video that is still subscribed to, oldest first: [[subscription, [decision]]]; `ended` are those of videos that are not. */
export function videosOf(decisions) {
    const videos = new Map();
    for (const one of decisions) {
        if (!one.subscription) continue;
        if (!videos.has(one.subscription)) videos.set(one.subscription, []);
        videos.get(one.subscription).push(one);
    }
    return { videos: [...videos], ended: decisions.filter((one) => !one.subscription) };
}

/** Before this, decisions are no longer kept; null if all are. */
export function forgottenBefore(decisions) { return decisions.length < KEPT_DECISIONS ? null : decisions[0].at; }

/** What is known of the moment `at`. */
export function lookAt(at, { samples, decisions, estimates, events }) {
    const nearest = samples.reduce((best, one) => (Math.abs(one.at - at) < Math.abs((best?.at ?? Infinity) - at) ? one : best), null);
    const { videos, ended } = videosOf(decisions);
    return {
        sample: nearest && Math.abs(nearest.at - at) <= 1.5 * SAMPLE_MS ? nearest : null,
        estimate: estimates.findLast((one) => one.at <= at && at < one.at + ESTIMATE_MS + SAMPLE_MS) ?? null,
        videos: videos.map(([subscription, all]) => [subscription, all.findLast((one) => one.at <= at)]).filter(([, one]) => one),
        ended: ended.filter((one) => Math.abs(one.at - at) <= AROUND_MS),
        events: events.filter((one) => Math.abs(one.at - at) <= AROUND_MS),
    };
}

/** Sentences that answer why the videos were no better. `who` is the participant's name, `publisherOf(decision)` that of a video. */
export function explain({ sample, estimate, videos }, who, publisherOf) {
    const sentences = [];
    const decided = videos.map(([, decision]) => decision);
    const short = decided.filter((one) => BY_NETWORK.has(one.reason));
    if (short.length) {
        const carried = estimate ? `: an estimated ${rangeOf(estimate)}` : "";
        sentences.push(`The network to ${who} carried less than the videos needed${carried}.`);
    }
    if (decided.some((one) => one.reason === "capped")) sentences.push(`A limit of the room's policy, of the access token or of ${who}'s own settings held the videos down.`);
    if (decided.some((one) => one.reason === "tooManyVideos")) sentences.push(`More videos were subscribed to than may be sent to ${who} at once.`);
    if (sample?.loss >= MUCH_LOSS) sentences.push(`${percent(sample.loss)} of the packets were lost: videos may have frozen, whatever their layer.`);
    if (sample?.roundTripMilliseconds >= LONG_ROUND_TRIP) sentences.push(`The round trip took ${sample.roundTripMilliseconds} ms: what was lost came again late.`);
    const whole = decided.filter((one) => one.reason === "best");
    if (whole.length && !sentences.length) {
        const names = new Intl.ListFormat("en").format(new Set(whole.map(publisherOf)));
        sentences.push(`${who} received all that ${names} sent. If that was blurry, the cause lies on the publisher's side.`);
    }
    if (decided.some((one) => one.reason === "asPreferred")) sentences.push(`${who}'s own client asked for a smaller video than there was: its window or tile was small.`);
    if (sentences.length) return sentences;
    if (!sample && !decided.length) return ["Nothing is known of this moment."];
    return [decided.length ? "The network limited none of the videos." : "No decision about a video is known of this moment."];
}

export const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;

/** "310 kbit/s", "300 kbit/s to 1.2 Mbit/s" */
export function rangeOf({ min, max }) {
    const [low, high] = [rate(min / 1000), rate(max / 1000)];
    return low === high ? low : `${low} to ${high}`;
}
