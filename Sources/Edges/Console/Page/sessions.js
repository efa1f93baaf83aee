// Past sessions: who was in which room, for how long, how well it went and why it ended.

import { placeOf } from "./places.js";
import { bytes, dayAndClock, definitions, duration, element, link, make, moment, newTable } from "./elements.js";
import { lanes } from "./chart.js";

const PAGE = 50;
const REASONS = {
    left: "Left", moved: "Moved to another room", removed: "Removed by an operator or moderator", duplicate_identity: "Joined again elsewhere", timeout: "Keep-alive timed out",
    connection_lost: "Connection lost", too_slow: "Did not read its events", room_deleted: "The room was closed",
    room_duration_reached: "The room reached its maximum duration", stay_duration_reached: "Reached the maximum stay", token_expired: "The access token expired", token_revoked: "The access token was revoked",
    policy_changed: "The policy was changed", server_shutdown: "The server stopped",
};

/** The steps of a join, in the order in which they are usually reached. */
const STEPS = {
    offer: "Descriptions exchanged", ice: "First ICE check", dtls: "DTLS up", received: "First packet from it", receivedKeyframe: "First keyframe from it",
    sent: "First packet to it", sentVideo: "First video to it",
};

const reasonOf = ({ reason }) => REASONS[reason] ?? reason;

export class SessionList {
    constructor({ api }) {
        Object.assign(this, { api, name: "sessions", run: 0 });
        element("sessions-filter").onsubmit = (event) => {
            event.preventDefault();
            const place = placeOf(["sessions"], { room: element("sessions-room").value.trim(), identity: element("sessions-identity").value.trim() });
            // Repeating a search refreshes it.
            if (location.hash === place) this.load();
            else location.hash = place;
        };
        element("sessions-more").onclick = () => this.load(this.next);
    }

    show({ room = "", identity = "" }) {
        this.filter = { room, identity };
        element("sessions-room").value = room;
        element("sessions-identity").value = identity;
        return this.load();
    }

    /** The list does not update by itself, so that rows do not move under a person's pointer; "Search" loads it again. */
    look() {}

    async load(before) {
        const run = ++this.run;
        const query = new URLSearchParams(Object.entries({ ...this.filter, before, limit: PAGE }).filter(([, value]) => value));
        try {
            const { sessions, next } = await this.api.call("GET", `/v1/sessions?${query}`);
            if (run !== this.run) return;
            this.next = next;
            const body = this.table(!before);
            const first = body.rows.length;
            for (const session of sessions) addRow(body, session);
            element("sessions-problem").textContent = "";
            element("sessions-none").textContent = body.rows.length ? "" : "No past session is kept that matches.";
            element("sessions-list").hidden = !body.rows.length;
            element("sessions-more").hidden = !next;
            if (before) body.rows[first]?.querySelector("a").focus();
        } catch (problem) {
            if (run === this.run) element("sessions-problem").textContent = problem.message;
        }
    }

    table(isNew) {
        const old = element("sessions-list").querySelector("tbody");
        return old && !isNew ? old : newTable(element("sessions-list"), ["Who", "Room", "Left", "Duration", "Quality", "Ended"]);
    }
}

function addRow(body, session) {
    const row = body.insertRow();
    const cell = (title, ...content) => {
        const one = row.insertCell();
        one.dataset.title = title;
        one.append(...content);
    };
    cell("Who", link(placeOf(["sessions", session.session], { room: session.room }), "who", session.name || session.identity));
    cell("Room", session.room);
    cell("Left", dayAndClock(session.leftAt));
    cell("Duration", duration(session.durationSeconds));
    cell("Quality", qualityOf(session));
    cell("Ended", reasonOf(session));
}

function qualityOf({ averageQuality, worstQuality }) {
    return averageQuality === undefined ? "not measured" : `${averageQuality.toFixed(1)} of 5, at worst ${worstQuality}`;
}

export class SessionPage {
    constructor({ api }) { Object.assign(this, { api, name: "session" }); }

    /** `room`: a participant who was moved has a stay in each room, all with one sid. */
    async show({ session, room }) {
        const run = this.run = {};
        element("session-title").textContent = "Past session";
        element("session-body").replaceChildren();
        try {
            const query = room === undefined ? "" : `?${new URLSearchParams({ room })}`;
            const summary = await this.api.call("GET", `/v1/sessions/${encodeURIComponent(session)}${query}`);
            if (run !== this.run) return;
            element("session-problem").textContent = "";
            this.render(summary);
        } catch (problem) {
            if (run === this.run) element("session-problem").textContent = problem.message;
        }
    }

    /** A past stay does not change. */
    look() {}

    render(one) {
        const who = one.name || one.identity;
        element("session-title").textContent = `${who} in ${one.room}`;
        const facts = {
            Identity: one.identity, Joined: dayAndClock(one.joinedAt), Left: dayAndClock(one.leftAt),
            Duration: duration(one.durationSeconds), "Why it ended": reasonOf(one), "Network quality": qualityOf(one),
            "Time to connect": one.connectedAfterMilliseconds === undefined ? "never connected" : `${one.connectedAfterMilliseconds} ms`,
            [`Sent by ${who}`]: bytes(one.bytesReceived), [`Sent to ${who}`]: bytes(one.bytesSent),
            Client: one.client ?? "not known",
            "Freezes seen": one.freezeCount === undefined ? "not reported" : `${one.freezeCount}, ${one.freezeSeconds.toFixed(1)} s together`,
            Profile: { full: "Sends and receives", publishOnly: "Only sends", viewer: "Only receives" }[one.profile] ?? one.profile,
        };
        const reached = one.reachedAfterMilliseconds ?? {};
        const steps = Object.keys(STEPS).filter((step) => step in reached).map((step) => [STEPS[step], `after ${reached[step]} ms`]);
        const parts = [definitions(facts)];
        if (steps.length) parts.push(make("h3", "", "Steps of the join"), definitions(Object.fromEntries(steps)));
        element("session-body").replaceChildren(...parts, make("h3", "", "What was sent, and when"), this.tracks(one));
        const charts = link(placeOf(["rooms", one.room, "participants", one.session]), "", "Its network and videos over time");
        element("session-body").append(make("p"));
        element("session-body").lastChild.append(charts);
        const others = link(placeOf(["sessions"], { identity: one.identity }), "", `All past sessions of ${one.identity}`);
        element("session-body").append(others);
    }

    tracks(one) {
        if (!one.tracks.length) return make("p", "dim", "Nothing.");
        const rows = one.tracks.map((track) => ({
            title: `${track.source}${track.codec ? ` (${track.codec})` : ""}`,
            spans: [{
                from: track.publishedAt, to: track.unpublishedAt, kind: "full", text: duration((track.unpublishedAt - track.publishedAt) / 1000),
                note: `${moment(track.publishedAt)} to ${moment(track.unpublishedAt)}`,
            }],
        }));
        return lanes("What was sent, and when", rows, { from: one.joinedAt, to: Math.max(one.leftAt, one.joinedAt + 1_000) }).element;
    }
}
