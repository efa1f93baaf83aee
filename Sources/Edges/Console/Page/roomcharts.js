// A room over the last quarter of an hour: how many are in it, what it sends and receives, what is lost. The past comes from the room's history and events, and
// for loss from the histories of its participants; from then on every update adds to it.

import { path } from "./api.js";
import { LineChart } from "./chart.js";
import { element } from "./elements.js";
import { rate } from "./statistics.js";

const SPAN_MS = 15 * 60_000, LEAST_SPAN_MS = 2 * 60_000;
/** The server samples every 5 s. */
const BUCKET_MS = 5_000;
/** Updates are two seconds apart; nothing joins points with a longer gap. */
const GAP_MS = 12_000;
/** How many histories of members are requested when a room is opened; for a larger room the chart of lost packets begins now. */
const MOST_HISTORIES = 25;

/** One lost packet of only a few is not a rate. */
const LEAST_PACKETS = 20;

const axisRate = (value) => (value >= 1_000_000 ? `${+(value / 1_000_000).toFixed(1)} M` : `${Math.round(value / 1000)} k`);
const percent = (value) => `${+(value * 100).toFixed(1)} %`;

/** What is lost of the packets to and from each participant, as the server measures it for the histories. */
export class Losses {
    constructor() { this.counted = new Map(); } // what the look before counted

    /** The worst share in a room's statistics. */
    look(people) {
        const { counted: before } = this;
        const now = this.counted = new Map();
        const shares = people.flatMap(({ sid, connections, tracks, subscriptions }) => {
            // The last reported loss stays in the statistics while nothing is sent.
            const down = connections.map(({ id, rtpPacketsSent, downlinkLoss }) => {
                now.set(`${sid} ${id}`, rtpPacketsSent);
                return before.get(`${sid} ${id}`) === rtpPacketsSent ? 0 : downlinkLoss ?? 0;
            });
            // Receiver reports are about single streams: they count if a client sends no better feedback.
            const isEstimated = connections.some(({ estimate }) => estimate !== undefined);
            const reported = isEstimated ? [] : subscriptions.map(({ bitrate, fractionLost }) => (bitrate ? fractionLost ?? 0 : 0));
            const up = tracks.map(({ sid: track, layers }) => {
                const [lost, received] = ["packetsLost", "packetsReceived"].map((field) => layers.reduce((total, layer) => total + layer[field], 0));
                now.set(track, { lost, received });
                const last = before.get(track);
                const gone = lost - last?.lost, all = gone + received - last?.received;
                return gone > 0 && received >= last.received && all > LEAST_PACKETS ? gone / all : 0;
            });
            return [...down, ...reported, ...up];
        });
        return shares.reduce((worst, share) => Math.max(worst, share), 0);
    }
}

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
        Object.assign(this, { room, points: [], changes: [], noted: new Map(), losses: new Losses(), needsPast: true });
    }

    /**
     * An event of the room's stream; the past ones come first, and again if the stream is read anew. The stream belongs to a name, and begins
     * with former rooms of it: each has its own `roomSid` and numbers its events from 1.
     */
    note({ type, at, roomSid, sequence }) {
        if (sequence <= (this.noted.get(roomSid) ?? 0)) return;
        this.noted.set(roomSid, sequence);
        if (type === "participantJoined") this.changes.push({ at, by: 1 });
        if (type === "participantLeft") this.changes.push({ at, by: -1 });
    }

    /** Adds the current values: the members, and the room's statistics. */
    async look(members, statistics) {
        const room = this.room;
        if (this.needsPast && members.length) {
            this.needsPast = false;
            const past = await this.past(members);
            if (room !== this.room) return;
            this.points = past;
        }
        const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);
        const people = statistics?.participants ?? [];
        this.points.push({
            at: Date.now(),
            from: sum(people, ({ tracks }) => sum(tracks, ({ layers }) => sum(layers, (layer) => (layer.isActive ? layer.bitrate : 0)))),
            to: sum(people, ({ subscriptions }) => sum(subscriptions, ({ bitrate }) => bitrate)),
            loss: this.losses.look(people),
        });
        this.render(members.length);
    }

    /** Loads the room's history, and for loss those of all participants. */
    async past(members) {
        const samples = async (...parts) => (await this.api.call("GET", path(this.room, ...parts, "history")).catch(() => ({ samples: [] }))).samples;
        const asked = members.length <= MOST_HISTORIES ? members : [];
        const [rooms, ...histories] = await Promise.all([samples(), ...asked.map(({ sid }) => samples("participants", sid))]);
        const worst = new Map();
        for (const { at, loss } of histories.flat()) worst.set(bucket(at), Math.max(worst.get(bucket(at)) ?? 0, loss));
        // A sample of the server takes a moment, in which the next bucket may begin.
        const lossAt = (at) => worst.get(bucket(at)) ?? worst.get(bucket(at) - 1) ?? worst.get(bucket(at) + 1);
        return rooms.map(({ at, uplink, downlink }) => ({ at, from: uplink, to: downlink, loss: lossAt(at) }));
    }

    render(members) {
        const now = Date.now();
        const isRecent = ({ at }) => at >= now - SPAN_MS;
        this.points = this.points.filter(isRecent);
        this.changes = this.changes.filter(isRecent);
        // A young room fills the charts, too.
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

/** How many there were, counted backwards from how many there are, so that events before the first kept one are not needed. */
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

/** What was measured in the same look has mostly the same number. */
function bucket(at) { return Math.floor(at / BUCKET_MS); }

/** Points of a line, with gaps where nothing was measured. */
function joined(points, field) {
    return points.flatMap((one, index) => {
        const before = points[index - 1];
        return before && one.at - before.at > GAP_MS ? [[before.at + 1, undefined], [one.at, one[field]]] : [[one.at, one[field]]];
    });
}
