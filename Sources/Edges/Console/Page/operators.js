// The operators' tab: the node, its rooms and the members of one, read from the control API (/openapi.json) while it is shown. Whatever has
// a button stays in place from one look to the next, so that the keyboard's focus stays and no click is lost.

import { ask } from "./dialog.js";
import { EventList } from "./events.js";
import { isAddressable } from "./names.js";
import { developmentToken } from "./tokens.js";
import { rate } from "./statistics.js";

const INTERVAL = 2_000;
const element = (id) => document.getElementById(id);

export class Operators {
    constructor() {
        this.rows = new Map(); // participant sid -> MemberRow
        this.buttons = new Map(); // room name -> RoomButton
        this.nodeValues = new Map(); // title -> element
        this.looks = 0;
        this.events = new EventList(element("events"), () => this.accessToken());
        element("close-room").onclick = () => this.closeRoom(this.chosen);
        element("lock-room").onclick = () => this.act(() => this.call(this.isLocked ? "DELETE" : "PUT", path(this.chosen, "lock")));
    }

    setVisible(visible, token) {
        clearInterval(this.timer);
        if (!visible) return this.events.follow(null);
        this.token = token;
        this.refresh();
        this.timer = setInterval(() => this.refresh(), INTERVAL);
    }

    closeRoom(room) {
        const question = { title: `Close the room “${room}”?`, text: "All participants are disconnected.", action: "Close room" };
        return this.act(async () => { if (await ask(question)) await this.call("DELETE", path(room)); });
    }

    removeMember(room, { sid, name }) {
        const question = { title: `Remove ${name}?`, text: `${name} is disconnected from the room “${room}”.`, action: "Remove" };
        return this.act(async () => { if (await ask(question)) await this.call("DELETE", path(room, "participants", sid)); });
    }

    async accessToken() {
        return this.token ||= await developmentToken({ identity: "operator", roomList: true, roomAdmin: true, roomCreate: true });
    }

    async call(method, path) {
        const reply = await fetch(path, { method, headers: { Authorization: `Bearer ${await this.accessToken()}` } });
        if (reply.ok) return reply.status === 204 ? null : reply.json();
        const problem = await reply.json().catch(() => ({}));
        if (reply.status === 401) this.token = null;
        throw Object.assign(new Error(problem.detail ?? `The server answered ${reply.status}.`), { status: reply.status });
    }

    /** Runs an operator's action, then shows what has become of it. */
    async act(action) {
        try {
            await action();
            await this.refresh();
        } catch (problem) {
            this.complain(problem);
        }
    }

    complain(problem) { element("operators-problem").textContent = problem?.message ?? ""; }

    async refresh() {
        const look = ++this.looks;
        try {
            const [node, { rooms }] = await Promise.all([this.call("GET", "/v1/node"), this.call("GET", "/v1/rooms")]);
            if (look !== this.looks) return;
            this.showNode(node);
            this.showRooms(rooms);
            await this.showMembers(look);
            this.complain(null);
        } catch (problem) {
            if (look === this.looks) this.showNothing(problem instanceof TypeError ? new Error("The server does not answer.") : problem);
        }
    }

    /** What was shown is no longer known to be so. */
    showNothing(problem) {
        this.complain(problem);
        this.before = null;
        for (const value of this.nodeValues.values()) value.textContent = "–";
        element("operators").classList.add("stale");
    }

    showNode(node) {
        const sum = (field) => node.workers.reduce((total, worker) => total + worker[field], 0);
        const now = { at: performance.now(), in: sum("packetsReceived"), out: sum("packetsSent") };
        const perSecond = (field) => (this.before && now.at > this.before.at
            ? Math.max(0, Math.round(((now[field] - this.before[field]) * 1000) / (now.at - this.before.at))).toLocaleString("en") : "–");
        const figures = {
            Rooms: node.rooms, Members: node.participants, Connections: node.connections,
            "Packets received per second": perSecond("in"), "Packets sent per second": perSecond("out"), "Uptime": duration(node.uptimeSeconds),
        };
        this.before = now;
        for (const [title, value] of Object.entries(figures)) this.nodeValue(title).textContent = value;
        element("operators").classList.remove("stale");
    }

    nodeValue(title) {
        if (!this.nodeValues.has(title)) {
            const box = make("div"), value = make("dd");
            box.append(make("dt", "", title), value);
            element("node").append(box);
            this.nodeValues.set(title, value);
        }
        return this.nodeValues.get(title);
    }

    /** In the order of their names, which never moves a button that is there. */
    showRooms(rooms) {
        const known = new Map(rooms.map((room) => [room.name, room]));
        const names = [...known.keys()].sort();
        if (!known.has(this.chosen)) this.chosen = names.find(isAddressable) ?? names[0];
        for (const [name, button] of this.buttons) {
            if (known.has(name)) continue;
            button.element.remove();
            this.buttons.delete(name);
        }
        let place = element("rooms").firstElementChild;
        for (const name of names) {
            const button = this.buttons.get(name) ?? new RoomButton(name, () => { this.chosen = name; this.refresh(); });
            this.buttons.set(name, button);
            button.update(known.get(name), name === this.chosen);
            if (button.element === place) place = place.nextElementSibling;
            else element("rooms").insertBefore(button.element, place);
        }
        element("no-room").hidden = rooms.length > 0;
        for (const id of ["close-room", "lock-room"]) element(id).hidden = !isAddressable(this.chosen);
        this.isLocked = (known.get(this.chosen)?.lock ?? "open") !== "open";
        element("lock-room").textContent = this.isLocked ? "Unlock room" : "Lock room";
        const followed = isAddressable(this.chosen) ? this.chosen : null;
        element("events-panel").hidden = !followed;
        this.events.follow(followed);
        element("members-title").textContent = rooms.length ? `Members of ${this.chosen}` : "Members";
    }

    /** Names come from the room, figures from its statistics. A room that cannot be shown keeps nobody from the others. */
    async showMembers(look) {
        const room = this.chosen;
        let detail = null, statistics = null, problem = "";
        if (isAddressable(room)) {
            try {
                [detail, statistics] = await Promise.all([this.call("GET", path(room)), this.call("GET", path(room, "stats"))]);
            } catch (failure) {
                if (failure.status !== 404) throw failure;
                problem = "This room was closed.";
            }
        } else if (room) {
            problem = `The name “${room}” cannot be part of a URL, so this room cannot be shown or closed here.`;
        }
        if (look !== this.looks) return;
        element("members-problem").textContent = problem;
        const members = detail?.participants ?? [];
        const figures = new Map((statistics?.participants ?? []).map((one) => [one.sid, one]));
        for (const [sid, row] of this.rows) {
            if (members.some((member) => member.sid === sid)) continue;
            row.element.remove();
            this.rows.delete(sid);
        }
        const body = this.table();
        for (const member of members) {
            if (!this.rows.has(member.sid)) this.rows.set(member.sid, new MemberRow(body, this, room));
            this.rows.get(member.sid).update(member, figures.get(member.sid));
        }
        element("members").firstElementChild.hidden = !members.length;
    }

    table() {
        const old = element("members").querySelector("tbody");
        if (old) return old;
        const table = make("table");
        const head = table.createTHead().insertRow();
        for (const title of ["Member", "Sends", "Receives", "Connections", ""]) head.append(make("th", "", title));
        element("members").replaceChildren(table);
        return table.createTBody();
    }
}

/** Where a room lives; `parts` are ids below it. */
function path(room, ...parts) { return ["/v1/rooms", ...[room, ...parts].map(encodeURIComponent)].join("/"); }

class RoomButton {
    constructor(name, onChoose) {
        this.element = make("li");
        this.button = make("button");
        this.count = make("span", "count");
        this.button.title = name;
        this.button.append(make("span", "name", name), this.count);
        this.button.onclick = onChoose;
        this.element.append(this.button);
    }

    update({ participants }, isChosen) {
        this.count.textContent = participants;
        this.button.setAttribute("aria-current", String(isChosen));
    }
}

class MemberRow {
    constructor(body, operators, room) {
        Object.assign(this, { operators, room });
        this.element = body.insertRow();
        this.cells = Array.from({ length: 4 }, () => this.element.insertCell());
        this.lines = new Map(); // track sid -> { element, text, button }
        const remove = make("button", "button small danger", "Remove");
        remove.onclick = () => operators.removeMember(room, this);
        this.element.insertCell().append(remove);
    }

    update(member, figures) {
        this.sid = member.sid;
        const since = duration((Date.now() - member.joinedAt) / 1000);
        const name = this.name = member.name || member.identity;
        this.cells[0].replaceChildren(make("div", "who", name), make("div", "dim", `${name === member.identity ? "" : `${member.identity} · `}for ${since}`));
        this.showTracks(figures?.tracks ?? []);
        this.cells[2].replaceChildren(...received(figures?.subscriptions ?? []));
        this.cells[3].replaceChildren(...(figures?.connections ?? []).map((one) => make("div", "", describeConnection(one))));
    }

    showTracks(tracks) {
        for (const [sid, line] of this.lines) {
            if (tracks.some((track) => track.sid === sid)) continue;
            line.element.remove();
            this.lines.delete(sid);
        }
        for (const track of tracks) {
            const line = this.lines.get(track.sid) ?? this.addLine(track.sid);
            line.source.textContent = track.source;
            line.text.textContent = describeTrack(track);
            line.button.disabled = track.muted;
            line.button.textContent = track.muted ? "Muted" : "Mute";
        }
    }

    addLine(sid) {
        const { operators, room } = this;
        const line = { element: make("div", "line"), source: make("span", "source"), text: make("span", "dim"), button: make("button", "button small") };
        line.button.onclick = () => operators.act(() => operators.call("POST", path(room, "tracks", sid, "mute")));
        line.element.append(line.source, line.text, line.button);
        this.cells[1].append(line.element);
        this.lines.set(sid, line);
        return line;
    }
}

/** "vp8 · 1280×720 · 30 fps · 1.2 Mbit/s in 3 layers" */
function describeTrack(track) {
    const layers = track.layers.filter((layer) => layer.isActive);
    const largest = layers.reduce((best, layer) => (layer.height > (best?.height ?? 0) ? layer : best), null);
    const words = [track.codec ?? "–"];
    if (track.muted || track.silent) return [...words, track.muted ? "muted" : "paused"].join(" · ");
    if (largest) words.push(`${largest.width}×${largest.height}`, `${Math.round(largest.framesPerSecond)} fps`);
    const sum = rate(layers.reduce((total, layer) => total + layer.bitrate, 0) / 1000);
    words.push(layers.length > 1 ? `${sum} in ${layers.length} layers` : sum);
    return words.join(" · ");
}

function received(subscriptions) {
    if (!subscriptions.length) return [make("span", "dim", "–")];
    const paused = subscriptions.filter((one) => one.paused).length;
    const sum = subscriptions.reduce((total, one) => total + one.bitrate, 0) / 1000;
    const tracks = subscriptions.length === 1 ? "1 track" : `${subscriptions.length} tracks`;
    return [make("div", "", `${tracks}${paused ? `, ${paused} paused` : ""}`), make("div", "dim", rate(sum))];
}

function describeConnection({ id, isConnected, roundTripMilliseconds }) {
    if (!isConnected) return `${id}: connecting`;
    return roundTripMilliseconds === undefined ? id : `${id}: ${roundTripMilliseconds.toFixed(1)} ms`;
}

/** "45 s", "12 min", "3 h 5 min" */
function duration(seconds) {
    const minutes = Math.floor(seconds / 60);
    if (minutes < 1) return `${Math.max(0, Math.floor(seconds))} s`;
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function make(tag, className = "", text = "") {
    return Object.assign(document.createElement(tag), { className, textContent: text });
}
