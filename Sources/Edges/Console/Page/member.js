// One participant over time: what the network carried, what was lost, and which layer of each video was sent and why. It answers an
// operator's question afterwards: why was it blurry at 14:02?

import { path } from "./api.js";
import { LaneChart, LineChart } from "./chart.js";
import { clock, day, dayAndClock, duration, element, link, make, moment, say } from "./elements.js";
import { describe } from "./events.js";
import { explain, forgottenBefore, kindOf, layerOf, lookAt, percent, rangeOf, videosOf } from "./moment.js";
import { placeOf } from "./places.js";
import { rate } from "./statistics.js";

/** The server adds a sample every 5 s: every third update of the tab finds one. */
const LOOKS = 3;
/** Samples that are further apart are not joined by a line: nothing was measured between them. */
const GAP_MS = 12_000;
const ESTIMATE_MS = 20_000;
/** Attempts to load what the server keeps of a stay, which it stores a moment after the stay's end. */
const PAST_LOOKS = 3;
const NOT_SHOWN = new Set(["dominantSpeakerChanged"]);
const axisRate = (value) => (value >= 1_000_000 ? `${+(value / 1_000_000).toFixed(1)} M` : `${Math.round(value / 1000)} k`);

export class MemberPage {
    constructor({ api }) {
        Object.assign(this, { api, name: "member", looks: 0, run: 0 });
        this.charts = {
            quality: new LineChart("Network quality, 0 to 5", { height: 72, least: 5, most: 5, format: (value) => `${value}` }),
            layers: new LaneChart("Videos received", { full: "all there was to get", less: "less", nothing: "nothing", off: "off" }),
            downlink: new LineChart("Received", { least: 100_000, format: axisRate, keys: { own: "received", estimate: "what the network was estimated to carry" } }),
            uplink: new LineChart("Sent", { least: 100_000, format: axisRate }),
            loss: new LineChart("Packets lost", { height: 84, least: 0.05, most: 1, format: (value) => `${+(value * 100).toFixed(1)} %` }),
            roundTrip: new LineChart("Round trip", { height: 84, least: 100, format: (value) => `${value} ms` }),
        };
        for (const chart of Object.values(this.charts)) {
            chart.onPick = (at) => this.choose(Math.min(at, this.end));
            element("member-charts").append(chart.element);
        }
        element("member-moment").oninput = ({ target }) => this.choose(Math.min(Number(target.value) * 1000, this.end));
        element("member-time").onchange = () => this.chooseTime();
        element("member-span").onchange = () => this.render();
        element("member-now").onclick = () => this.choose(null);
    }

    show({ room, participant, at }) {
        const isSame = room === this.room && participant === this.participant;
        Object.assign(this, { room, participant, at });
        element("member-back").href = placeOf(["rooms", room]);
        if (!isSame) this.clear();
        this.looks = -1;
        if (isSame && this.detail) this.render();
        return this.look();
    }

    clear() {
        Object.assign(this, { detail: null, data: { samples: [], decisions: [], estimates: [], events: [] }, tracks: new Map(), names: new Map() });
        Object.assign(this, { cursor: "0", hasLeft: false, pastLooks: 0, window: null, answer: null });
        element("member-title").textContent = "Participant";
        element("member-facts").textContent = "";
        element("member-problem").replaceChildren();
        element("member-body").hidden = true;
        element("member").classList.remove("stale");
    }

    async look() {
        this.looks = (this.looks + 1) % LOOKS;
        if (this.looks || this.hasLeft && this.pastLooks >= PAST_LOOKS) return;
        const run = ++this.run;
        const own = (kind) => this.api.call("GET", path(this.room, "participants", this.participant, ...kind));
        try {
            const [detail, { samples }, { decisions, estimates }] = await Promise.all([own([]), own(["history"]), own(["decisions"])]);
            if (run !== this.run) return;
            Object.assign(this, { detail, hasLeft: false, pastLooks: 0 });
            Object.assign(this.data, { samples, decisions, estimates });
            await this.readNames(run);
            if (run !== this.run) return;
            element("member-problem").replaceChildren();
            element("member").classList.remove("stale");
            element("member-body").hidden = false;
            this.render();
        } catch (problem) {
            if (run === this.run && problem.status === 404) await this.readPast(run);
            else if (run === this.run) this.complain(problem);
        }
    }

    /** The participant has left: the server keeps what the charts show for as long as the summary of the stay. */
    async readPast(run) {
        this.hasLeft = true;
        this.pastLooks += 1;
        try {
            const stay = await this.pastStay();
            const history = stay && await this.api.call("GET", this.pathOfStay(stay.session, "/history"));
            if (run !== this.run) return;
            if (stay) {
                this.pastLooks = PAST_LOOKS;
                this.detail = { sid: stay.session, name: stay.name, identity: stay.identity, joinedAt: stay.joinedAt, leftAt: stay.leftAt };
                Object.assign(this.data, history);
                // All subscriptions are over; videos are distinguished by their tracks.
                for (const decision of this.data.decisions) decision.subscription ??= decision.track;
                // Names are optional: the room may have ended, too.
                await this.readNames(run).catch(() => {});
                if (run !== this.run) return;
                element("member-body").hidden = false;
            }
            this.sayGone(stay?.session ?? this.participant, Boolean(stay));
        } catch {
            if (run === this.run) this.sayGone(this.detail?.sid ?? this.participant, false);
        }
    }

    /** The summary of the stay that this page is about, or of the last one of that identity. */
    async pastStay() {
        const sid = this.detail?.sid ?? this.participant;
        try {
            return await this.api.call("GET", this.pathOfStay(sid));
        } catch (problem) {
            if (problem.status !== 404 || this.detail) throw problem;
        }
        const query = new URLSearchParams({ room: this.room, identity: this.participant, limit: 1 });
        return (await this.api.call("GET", `/v1/sessions?${query}`)).sessions[0];
    }

    /** In this room: a participant who was moved has a stay in each, all with one sid. */
    pathOfStay(sid, part = "") { return `/v1/sessions/${encodeURIComponent(sid)}${part}?${new URLSearchParams({ room: this.room })}`; }

    /** The room's events give names to participants and tracks, those that have left included, and show what happened around a moment. */
    async readNames(run) {
        for (let isLast = false; !isLast;) {
            const { events, next } = await this.api.call("GET", `${path(this.room, "events")}?after=${this.cursor}&limit=1000`);
            if (run !== this.run) return;
            this.cursor = next;
            isLast = events.length < 1000;
            for (const event of events) this.note(event);
        }
        if (this.data.decisions.every(({ track }) => !track || this.tracks.has(track))) return;
        // Published before the first event that is still kept.
        const { participants } = await this.api.call("GET", path(this.room));
        for (const member of participants) {
            this.names.set(member.sid, member.name || member.identity);
            for (const track of member.tracks) this.tracks.set(track.sid, track);
        }
    }

    note(event) {
        if (event.info) this.names.set(event.participant, event.info.name || event.identity);
        if (event.track) this.tracks.set(event.track.sid, event.track);
        const isOwn = event.participant === this.detail.sid;
        if ((isOwn || event.type === "policyChanged") && !NOT_SHOWN.has(event.type)) this.data.events.push(event);
    }

    complain(problem) {
        say("member-problem", problem.message);
        element("member").classList.add("stale");
    }

    sayGone(sid, isKept) {
        const charts = isKept ? " The charts end where it left; they are kept like the summary." : " The charts end here; they are kept as long as this page is open.";
        element("member-problem").replaceChildren("This participant is no longer in the room. ", link(placeOf(["sessions", sid], { room: this.room }), "", "The summary of the stay"),
            this.detail ? `.${charts}` : ".");
        if (this.detail) this.render();
    }

    // MARK: The chosen moment

    /** null: the newest, always. */
    choose(at) {
        this.at = at;
        history.replaceState(null, "", placeOf(["rooms", this.room, "participants", this.participant], { at: at ?? undefined }));
        this.render();
    }

    /** A time of day is that of the last day, because an hour is kept. */
    chooseTime() {
        const [hours, minutes, seconds = 0] = element("member-time").value.split(":").map(Number);
        if (!Number.isInteger(hours)) return;
        const at = new Date(this.end);
        at.setHours(hours, minutes, seconds, 0);
        if (at.getTime() > this.end + 60_000) at.setDate(at.getDate() - 1);
        this.choose(Math.min(at.getTime(), this.end));
    }

    get end() { return this.data.samples.at(-1)?.at ?? Date.now(); }

    /** The shown span ends now, or has the chosen moment inside; a moment inside moves nothing. */
    findWindow() {
        const span = Number(element("member-span").value) * 1000;
        const { from, to } = this.window ?? {};
        if (this.at !== null && this.at >= from && this.at <= to && to - from === span) return;
        const end = this.at === null || this.at > this.end - span ? this.end : this.at + span / 2;
        this.window = { from: end - span, to: end };
    }

    // MARK: What is shown

    render() {
        const { detail, data } = this;
        if (!detail) return;
        const name = detail.name || detail.identity;
        const at = this.at ?? this.end;
        element("member-title").textContent = name;
        element("member-facts").textContent = `${name === detail.identity ? "" : `${detail.identity} · `}in ${this.room} ${this.stayInWords()}`;
        this.findWindow();
        this.renderControls(at);
        const found = lookAt(at, data);
        this.renderCharts(found, at);
        this.renderAnswer(found, at, name);
    }

    /** The time of the participant's stay, which may still continue. */
    stayInWords() {
        const { joinedAt, leftAt } = this.detail;
        if (!this.hasLeft) return `since ${moment(joinedAt)}`;
        if (!leftAt) return `from ${dayAndClock(joinedAt)} until it left`;
        return `from ${dayAndClock(joinedAt)} to ${day(leftAt) === day(joinedAt) ? clock(leftAt) : dayAndClock(leftAt)}`;
    }

    renderControls(at) {
        element("member-now").setAttribute("aria-pressed", String(this.at === null));
        // A stay that is over cannot be followed.
        element("member-now").textContent = this.hasLeft ? "Show the end" : "Follow live";
        const slider = element("member-moment");
        // It spans what the charts span.
        Object.assign(slider, { min: Math.floor(this.window.from / 1000), max: Math.ceil(this.window.to / 1000) });
        slider.value = Math.round(at / 1000);
        slider.setAttribute("aria-valuetext", moment(at));
        const time = element("member-time");
        const date = new Date(at);
        const two = (number) => String(number).padStart(2, "0");
        // A newer moment does not overwrite what a person is typing there.
        if (document.activeElement !== time) time.value = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
    }

    renderCharts({ sample, estimate, videos }, at) {
        const { samples, estimates } = this.data;
        const { window, charts } = this;
        const line = (kind, field) => ({ kind, points: withGaps(samples, field) });
        const spans = estimates.map((one, index) => ({ from: one.at, to: Math.min(one.at + ESTIMATE_MS, estimates[index + 1]?.at ?? Infinity), ...bounds(one) }));
        charts.quality.update(window, { lines: [line("quality", "quality")] });
        charts.downlink.update(window, { lines: [line("own", "downlink")], bands: [{ kind: "estimate", spans }] });
        charts.uplink.update(window, { lines: [line("own", "uplink")] });
        charts.loss.update(window, { lines: [line("bad", "loss")] });
        charts.roundTrip.update(window, { lines: [line("own", "roundTripMilliseconds")] });
        charts.layers.update(window, this.lanes(), forgottenBefore(this.data.decisions) ?? this.detail.joinedAt);
        const figures = {
            quality: sample && `${sample.quality}`, downlink: sample && `${rate(sample.downlink / 1000)}${estimate ? ` of an estimated ${rangeOf(estimate)}` : ""}`,
            uplink: sample && rate(sample.uplink / 1000), loss: sample && percent(sample.loss),
            roundTrip: sample?.roundTripMilliseconds !== undefined && sample && `${sample.roundTripMilliseconds} ms`,
            layers: videos.map(([, decision]) => layerOf(decision).split(" · ")[0]).join(", "),
        };
        for (const [name, chart] of Object.entries(charts)) {
            chart.figure.textContent = figures[name] || "–";
            chart.setCursor(at);
        }
    }

    lanes() {
        const { videos, ended } = videosOf(this.data.decisions);
        const rows = videos.map(([, decisions]) => ({
            title: this.titleOf(decisions.at(-1)),
            spans: decisions.map((one, index) => span(one, decisions[index + 1]?.at ?? this.end)),
        }));
        // It is not known when those ended, only what was decided when.
        if (ended.length) rows.push({ title: "Videos that have ended", spans: ended.map((one) => span(one, one.at)) });
        return rows;
    }

    titleOf({ track }) {
        const found = this.tracks.get(track);
        return found ? `${this.names.get(found.participant) ?? found.identity}, ${found.source}` : "a video that has ended";
    }

    publisherOf({ track }) {
        const found = this.tracks.get(track);
        return found ? this.names.get(found.participant) ?? found.identity : "its publisher";
    }

    renderAnswer(found, at, name) {
        const box = element("member-answer");
        const parts = [make("p", "when", moment(at)), ...explain(found, name, (one) => this.publisherOf(one)).map((text) => make("p", "", text))];
        if (found.videos.length) parts.push(make("h4", "", "Videos"), list(found.videos.map(([, decision]) => this.video(decision, at))));
        if (found.ended.length) parts.push(make("h4", "", "Videos that have ended"), list(found.ended.map((one) => item(`${clock(one.at)}: ${layerOf(one)}. ${sentence(one.text)}`))));
        if (at < (forgottenBefore(this.data.decisions) ?? 0)) {
            parts.push(make("p", "dim", `Decisions about videos are kept since ${clock(this.data.decisions[0].at)}; the charts go further back.`));
        }
        if (this.data.samples.length && at < this.data.samples[0].at - GAP_MS) {
            parts.push(make("p", "dim", `The history begins at ${clock(this.data.samples[0].at)}: the last hour, or the stay if it is shorter.`));
        }
        const events = found.events.map((event) => [event, words(event, name)]).filter(([, text]) => text);
        if (events.length) parts.push(make("h4", "", "Within half a minute"), list(events.map(([event, text]) => item(`${clock(event.at)} ${text}`))));
        // Unchanged words stay, so that a link keeps its focus and a screen reader does not repeat them.
        const key = parts.map((one) => one.outerHTML).join();
        if (this.answer === key) return;
        this.answer = key;
        const focus = box.contains(document.activeElement) ? document.activeElement.hash : null;
        box.replaceChildren(...parts);
        if (focus) [...box.querySelectorAll("a")].find((one) => one.hash === focus)?.focus();
    }

    video(decision, at) {
        const line = make("li", kindOf(decision));
        const track = this.tracks.get(decision.track);
        const title = this.titleOf(decision);
        const place = track && placeOf(["rooms", this.room, "participants", track.participant], { at });
        line.append(place ? link(place, "", title) : make("b", "", title), make("span", "layer", layerOf(decision)));
        line.append(make("span", "", `${sentence(decision.text)} Since ${clock(decision.at)}, ${duration((at - decision.at) / 1000)} before.`));
        return line;
    }
}

const bounds = ({ min, max }) => ({ min, max });
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const item = (text) => make("li", "", text);

function list(items) {
    const one = make("ul", "moments");
    one.append(...items);
    return one;
}

function span(decision, to) {
    return { from: decision.at, to, kind: kindOf(decision), text: layerOf(decision).split(" · ")[0], note: `${sentence(decision.text)} Since ${clock(decision.at)}.` };
}

/** An event about the participant itself; its quality is in a chart, but events show the moment. */
function words(event, name) {
    return event.type === "qualityChanged" ? `The network quality of ${name} became ${event.quality} of 5.` : describe(event, name);
}

function withGaps(samples, field) {
    const points = [];
    for (const [index, sample] of samples.entries()) {
        if (index && sample.at - samples[index - 1].at > GAP_MS) points.push([samples[index - 1].at + 1, undefined]);
        points.push([sample.at, sample[field]]);
    }
    return points;
}
