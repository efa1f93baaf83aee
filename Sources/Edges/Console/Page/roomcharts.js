// A room over the last quarter of an hour: how many are in it, what it sends and receives, what is lost. The past comes from the history of those who are in
// it and from the room's events; from then on every look adds to it.

import { path } from "./api.js";
import { LineChart } from "./chart.js";
import { element } from "./elements.js";
import { rate } from "./statistics.js";

const SPAN_MS = 15 * 60_000, LEAST_SPAN_MS = 2 * 60_000;
/** The server samples every 5 s. */
const BUCKET_MS = 5_000;
/** Looks are two seconds apart; nothing joins points with a longer gap. */
const GAP_MS = 12_000;
/** So many histories are asked for when a room is opened; of a larger room the charts begin now. */
const MOST_HISTORIES = 25;

const axisRate = (value) => (value >= 1_000_000 ? `${+(value / 1_000_000).toFixed(1)} M` : `${Math.round(value / 1000)} k`);
const percent = (value) => `${+(value * 100).toFixed(1)} %`;

export class RoomCharts {
    constructor(api) {
        this.api = api;
        this.charts = {
            members: new LineChart("Members", { height: 72, least: 4, format: (value) => (Number.isInteger(value) ? `${value}` : "") }),
            rates: new LineChart("Bit rate", { least: 100_000, format: axisRate, keys: { own: "from members", other: "to members" } }),
            loss: new LineChart("Packets lost, on the worst connection", { height: 72, least: 0.05, most: 1, format: percent }),
        };
        element("room-charts").append(...Object.values(this.charts).map((chart) => chart.element));
    }

    /** Begins anew with this room. */
    follow(room) {
        if (room === this.room) return;
        Object.assign(this, { room, points: [], changes: [], noted: 0, needsPast: true });
    }

    /** An event of the room's stream; the past ones come first, and again where the stream is read anew. */
    note({ type, at, sequence }) {
        if (sequence <= this.noted) return;
        this.noted = sequence;
        if (type === "participantJoined") this.changes.push({ at, by: 1 });
        if (type === "participantLeft") this.changes.push({ at, by: -1 });
    }

    /** Adds what is so now: the members, and the room's statistics. */
    async look(members, statistics) {
        const room = this.room;
        if (this.needsPast && members.length) {
            this.needsPast = false;
            const past = members.length <= MOST_HISTORIES ? await this.past(members) : [];
            if (room !== this.room) return;
            this.points = past;
        }
        const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);
        const people = statistics?.participants ?? [];
        this.points.push({
            at: Date.now(),
            from: sum(people, ({ tracks }) => sum(tracks, ({ layers }) => sum(layers, (layer) => (layer.isActive ? layer.bitrate : 0)))),
            to: sum(people, ({ subscriptions }) => sum(subscriptions, ({ bitrate }) => bitrate)),
            loss: Math.max(0, ...people.flatMap(({ connections }) => connections.map(({ downlinkLoss }) => downlinkLoss ?? 0))),
        });
        this.render(members.length);
    }

    /** The histories of all who are here, added up. */
    async past(members) {
        const histories = await Promise.all(members.map(({ sid }) => this.api.call("GET", path(this.room, "participants", sid, "history")).catch(() => ({ samples: [] }))));
        const buckets = new Map();
        for (const { at, uplink, downlink, loss } of histories.flatMap(({ samples }) => samples)) {
            const key = Math.floor(at / BUCKET_MS) * BUCKET_MS;
            const bucket = buckets.get(key) ?? { at: key, from: 0, to: 0, loss: 0 };
            Object.assign(bucket, { from: bucket.from + uplink, to: bucket.to + downlink, loss: Math.max(bucket.loss, loss) });
            buckets.set(key, bucket);
        }
        return [...buckets.values()].sort((a, b) => a.at - b.at);
    }

    render(members) {
        const now = Date.now();
        const isRecent = ({ at }) => at >= now - SPAN_MS;
        this.points = this.points.filter(isRecent);
        this.changes = this.changes.filter(isRecent);
        // A room that is young fills the charts, too.
        const first = Math.min(now - LEAST_SPAN_MS, ...[...this.points, ...this.changes].map(({ at }) => at));
        const window = { from: first, to: now };
        const last = this.points.at(-1);
        const { members: count, rates, loss } = this.charts;
        count.update(window, { lines: [{ kind: "own", points: steps(this.changes, members, window) }] });
        rates.update(window, { lines: [{ kind: "own", points: joined(this.points, "from") }, { kind: "other", points: joined(this.points, "to") }] });
        loss.update(window, { lines: [{ kind: "bad", points: joined(this.points, "loss") }] });
        count.figure.textContent = `${members}`;
        rates.figure.textContent = last ? `${rate(last.from / 1000)} from, ${rate(last.to / 1000)} to members` : "–";
        loss.figure.textContent = last ? percent(last.loss) : "–";
    }
}

/** How many there were, told backwards from how many there are: what happened before the first event that is kept is not needed for that. */
function steps(changes, members, { from, to }) {
    const points = [[to, members]];
    let count = members;
    for (const { at, by } of [...changes].sort((a, b) => b.at - a.at)) {
        points.push([at, count], [at, count - by]);
        count -= by;
    }
    points.push([from, Math.max(0, count)]);
    return points.reverse();
}

/** Points of a line, with gaps where nothing was measured. */
function joined(points, field) {
    return points.flatMap((one, index) => {
        const before = points[index - 1];
        return before && one.at - before.at > GAP_MS ? [[before.at + 1, undefined], [one.at, one[field]]] : [[one.at, one[field]]];
    });
}
