// The operators' tab: the node, its rooms and the members of one, read from the control API (/openapi.json) while it is shown, and the
// screens that lead on from there. Whatever has a button stays in place between updates, so that the keyboard's focus is kept and
// no click is lost.

import { ControlAPI, path } from "./api.js";
import { ask } from "./dialog.js";
import { duration, element, make, say } from "./elements.js";
import { EventList } from "./events.js";
import { MemberPage } from "./member.js";
import { MemberRow } from "./members.js";
import { isAddressable } from "./names.js";
import { placeOf, readPlace } from "./places.js";
import { PlaybackList } from "./playbacks.js";
import { PolicyEditor } from "./policy.js";
import { RecordingPage } from "./recording.js";
import { RecordingList } from "./recordings.js";
import { RoomCharts } from "./roomcharts.js";
import { SessionList, SessionPage } from "./sessions.js";

const INTERVAL = 2_000;
/** How long after the last letter the search for rooms begins. */
const TYPED_MS = 200;
/** Rooms that are listed at a time: further ones are found by the beginning of their names. */
const ROOMS = 200;

export class Operators {
    constructor() {
        this.api = new ControlAPI(() => { element("operators-token").hidden = false; });
        element("operators-token").onsubmit = (event) => {
            event.preventDefault();
            this.takeToken(element("operators-token-text").value.trim());
        };
        this.rows = new Map(); // participant sid -> MemberRow
        this.buttons = new Map(); // room name -> RoomButton
        this.nodeValues = new Map(); // title -> element
        this.looks = 0;
        this.problems = { look: null, action: null };
        this.charts = new RoomCharts(this.api);
        this.events = new EventList(element("events"), () => this.api.accessToken(), (event) => this.charts.note(event));
        this.playbacks = new PlaybackList(this, element("playbacks"));
        const screens = [PolicyEditor, MemberPage, RecordingList, RecordingPage, SessionList, SessionPage].map((Screen) => new Screen(this));
        this.screens = Object.fromEntries(screens.map((screen) => [screen.name, screen]));
        element("rooms-prefix").oninput = () => {
            clearTimeout(this.typing);
            this.typing = setTimeout(() => this.refresh(), TYPED_MS);
        };
        element("close-room").onclick = () => this.closeRoom(this.chosen);
        element("lock-room").onclick = () => this.act(() => this.api.call(this.isLocked ? "DELETE" : "PUT", path(this.chosen, "lock")));
        element("show-recordings").onclick = () => { location.hash = placeOf(["recordings"], { room: this.chosen }); };
        element("edit-policy").onclick = () => { location.hash = placeOf(["rooms", this.chosen, "policy"]); };
    }

    /** The token that the whole page uses from now on. Text typed on a screen is kept. */
    takeToken(token) {
        if (!token) return;
        element("token").value = token;
        // If it does not permit joining a room, a person needs to see and replace it there.
        element("token-field").hidden = false;
        element("operators-token-text").value = "";
        Object.assign(this.api, { token, refusal: null });
        this.open(readPlace(location.hash) ?? { screen: "overview" });
        // The field that had the focus is hidden now.
        (document.querySelector(`[data-screen="${this.screen}"] h2[tabindex]`) ?? element("tab-operators")).focus();
    }

    setVisible(visible, token) {
        clearInterval(this.timer);
        if (!visible) {
            this.looks += 1; // Pending requests no longer show or follow anything.
            this.screens.recording.leave();
            return this.events.follow(null);
        }
        this.api.token = token;
        this.open(readPlace(location.hash) ?? { screen: "overview" });
        this.timer = setInterval(() => this.lookAgain(), INTERVAL);
    }

    /** Shows the screen of a place; `overview` is this object's own. */
    open(place) {
        const isOther = place.screen !== this.screen;
        this.screen = place.screen;
        for (const name of ["overview", ...Object.keys(this.screens)]) {
            for (const part of document.querySelectorAll(`[data-screen="${name}"]`)) part.hidden = name !== place.screen;
        }
        for (const item of document.querySelectorAll("#operators-nav a[href^='#']")) {
            item.setAttribute("aria-current", item.hash === partOf(place.screen) ? "page" : "false");
        }
        this.complain(null);
        this.failed(null);
        element("operators-token").hidden = true;
        if (isOther && place.screen !== "recording") this.screens.recording.leave();
        if (place.screen === "overview") {
            if (place.room) this.follow(place.room);
            this.refresh();
            if (isOther) this.focusOpener();
        } else {
            this.events.follow(null);
            this.opener = document.activeElement?.id || document.activeElement?.hash;
            this.screens[place.screen].show(place);
            // A screen begins with its title for screen readers; back in the overview, the focus is where it was.
            if (isOther) document.querySelector(`[data-screen="${place.screen}"] h2`).focus();
        }
    }

    focusOpener() {
        const opener = this.opener?.startsWith("#") ? [...document.links].find((one) => one.hash === this.opener) : this.opener && element(this.opener);
        opener?.focus();
        this.opener = null;
    }

    /** One update at a time: a slow server's answers are shown when they arrive, and a failed update is not hidden by the next one. */
    async lookAgain() {
        if (this.isLooking) return;
        this.isLooking = true;
        try {
            await this.look();
        } finally {
            this.isLooking = false;
        }
    }

    look() { return this.screen === "overview" ? this.refresh() : this.screens[this.screen].look(); }

    closeRoom(room) {
        const question = { title: `Close the room “${room}”?`, text: "All participants are disconnected.", action: "Close room" };
        return this.act(async () => { if (await ask(question)) await this.api.call("DELETE", path(room)); });
    }

    removeMember(room, { sid, name }) {
        const question = { title: `Remove ${name}?`, text: `${name} is disconnected from the room “${room}”.`, action: "Remove" };
        return this.act(async () => { if (await ask(question)) await this.api.call("DELETE", path(room, "participants", sid)); });
    }

    /** Runs an operator's action, then shows its result. */
    async act(action) {
        this.failed(null);
        try {
            await action();
            await this.look();
        } catch (problem) {
            this.failed(problem);
        }
    }

    /** An action's error stays until the next action, because the updates every few seconds do not know of it. */
    failed(action) { this.showProblems({ action }); }

    /** Shows an update's error, or (null) that one succeeded. */
    complain(look) { this.showProblems({ look }); }

    showProblems(changes) {
        Object.assign(this.problems, changes);
        const texts = Object.values(this.problems).filter(Boolean).map(({ message }) => message);
        say("operators-problem", [...new Set(texts)].join(" "));
    }

    async refresh() {
        const look = ++this.looks;
        const isCurrent = () => look === this.looks && this.screen === "overview";
        try {
            const [node, found] = await Promise.all([this.api.call("GET", "/v1/node"), this.findRooms()]);
            if (!isCurrent()) return;
            this.showNode(node);
            this.showHint(found);
            this.showRooms(found.rooms);
            await this.showMembers(isCurrent);
            this.complain(null);
        } catch (problem) {
            if (isCurrent()) this.showNothing(problem);
        }
    }

    /** What is shown may no longer be true. */
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
            "Packets received per second": perSecond("in"), "Packets sent per second": perSecond("out"), Uptime: duration(node.uptimeSeconds),
        };
        this.before = now;
        say("operators-drain", noticesOf(node).join(" "));
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

    /** The first rooms by name of those that are looked for, and the chosen one whatever its name. `isPart`: there are others. */
    async findRooms() {
        const prefix = element("rooms-prefix").value;
        const { rooms, next } = await this.api.call("GET", `/v1/rooms?limit=${ROOMS}&prefix=${encodeURIComponent(prefix)}`);
        const found = { rooms, prefix, isPart: Boolean(next), isEmpty: !rooms.length };
        if ((next || prefix) && isAddressable(this.chosen) && !rooms.some(({ name }) => name === this.chosen)) {
            const chosen = await this.api.call("GET", path(this.chosen)).catch((problem) => { if (problem.status !== 404) throw problem; });
            if (chosen) rooms.push(chosen.room);
        }
        return found;
    }

    showHint({ prefix, isPart, isEmpty }) {
        // A person who is typing can continue.
        element("rooms-find").hidden = !isPart && !prefix && document.activeElement !== element("rooms-prefix");
        element("no-room").hidden = !isPart && !isEmpty;
        say("no-room", isPart ? `These are the first ${ROOMS} by name.` : prefix ? "No open room’s name begins so." : "No room is open.");
    }

    /** In the order of their names, which never moves an existing button. */
    showRooms(rooms) {
        const known = new Map(rooms.map((room) => [room.name, room]));
        const names = [...known.keys()].sort();
        // Another room replaces one that is not open, and a click that was meant for the former has to be repeated.
        const isReplaced = this.chosen !== undefined && !known.has(this.chosen);
        if (isReplaced) this.absent = this.chosen;
        else if (known.has(this.absent)) this.absent = null;
        if (!known.has(this.chosen)) this.chosen = names.find(isAddressable) ?? names[0];
        for (const [name, button] of this.buttons) {
            if (known.has(name)) continue;
            button.element.remove();
            this.buttons.delete(name);
        }
        let place = element("rooms").firstElementChild;
        for (const name of names) {
            const button = this.buttons.get(name) ?? new RoomButton(name, () => this.choose(name));
            this.buttons.set(name, button);
            button.update(known.get(name), name === this.chosen);
            if (button.element === place) place = place.nextElementSibling;
            else element("rooms").insertBefore(button.element, place);
        }
        for (const id of ["close-room", "lock-room", "edit-policy", "show-recordings"]) element(id).hidden = !isAddressable(this.chosen);
        this.isLocked = (known.get(this.chosen)?.lock ?? "open") !== "open";
        element("lock-room").textContent = this.isLocked ? "Unlock room" : "Lock room";
        element("lock-room").disabled = isReplaced;
        const followed = isAddressable(this.chosen) ? this.chosen : null;
        element("events-panel").hidden = !followed;
        // Before the events, from which the charts get the past.
        this.charts.follow(followed);
        this.events.follow(followed);
        element("members-title").textContent = rooms.length ? `Members of ${this.chosen}` : "Members";
    }

    /** The state of its lock, and with it the button's action, is known with the next update. */
    follow(name) {
        if (name !== this.chosen) element("lock-room").disabled = true;
        Object.assign(this, { chosen: name, absent: null });
    }

    choose(name) {
        this.follow(name);
        history.replaceState(null, "", placeOf(["rooms", name]));
        this.refresh();
    }

    /** Names come from the room, figures from its statistics. A room that cannot be shown does not affect the others. */
    async showMembers(isCurrent) {
        const room = this.chosen;
        let detail = null, statistics = null, problem = "";
        if (isAddressable(room)) {
            try {
                [detail, statistics] = await Promise.all([this.api.call("GET", path(room)), this.api.call("GET", path(room, "stats"))]);
            } catch (failure) {
                if (failure.status !== 404) throw failure;
                problem = "This room was closed.";
            }
        } else if (room) {
            problem = `The name “${room}” cannot be part of a URL, so this room cannot be shown or closed here.`;
        }
        if (!isCurrent()) return;
        if (this.absent) problem = `The room “${this.absent}” is not open. ${problem}`.trim();
        say("members-problem", problem);
        const members = detail?.participants ?? [];
        const figures = new Map((statistics?.participants ?? []).map((one) => [one.sid, one]));
        // A participant who was moved keeps the sid, but a row acts on the room for which it was made.
        for (const [sid, row] of this.rows) {
            if (row.room === room && members.some((member) => member.sid === sid)) continue;
            row.element.remove();
            this.rows.delete(sid);
        }
        const body = this.table();
        for (const member of members) {
            if (!this.rows.has(member.sid)) this.rows.set(member.sid, new MemberRow(body, this, room));
            this.rows.get(member.sid).update(member, figures.get(member.sid));
        }
        element("members").firstElementChild.hidden = !members.length;
        element("room-charts").hidden = !detail;
        await this.playbacks.look(detail && room);
        element("playbacks-panel").hidden = this.playbacks.isEmpty;
        // Another room may be shown by now, whose charts these figures are not.
        if (detail && isCurrent()) await this.charts.look(members, statistics);
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

/** Problems of the node that its figures do not show. */
function noticesOf({ isDraining, workers }) {
    const drains = "This server drains: it makes no new rooms. If it is shutting down, it ends with its last call or when its grace period is over; a drain that an operator began ends nothing by itself.";
    const hanging = workers.filter((one) => one.hangs).map((one) => one.index);
    const [who, whose] = hanging.length === 1 ? [`Media worker ${hanging[0]} does not respond`, "its"] : [`Media workers ${hanging.join(", ")} do not respond`, "their"];
    return [isDraining && drains, hanging.length && `${who}: ${whose} calls stand still, and ${whose} figures are the last known ones.`].filter(Boolean);
}

/** The part of the operators' tab in which a screen is. */
function partOf(screen) { return ["#/sessions", "#/recordings"].find((part) => part.startsWith(`#/${screen}`)) ?? "#/rooms"; }

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
