// Recordings: all of them or those of one room, newest first; they are started, ended and deleted here. A row keeps its place and its buttons
// between updates.

import { path } from "./api.js";
import { ask } from "./dialog.js";
import { bytes, count, dayAndClock, duration, element, link, make, newTable, say, setOptions } from "./elements.js";
import { isAddressable } from "./names.js";
import { placeOf } from "./places.js";

const PAGE = 50;
/** The most that the server returns in one answer. */
const MOST = 1_000;

/** The path of a recording; `parts` are below it. */
export function pathOf(sid, ...parts) { return ["/v1/recordings", encodeURIComponent(sid), ...parts].join("/"); }

/** The files of a recording that can be watched, joined ones first: `{ name, start, length, size, codec…, tracks }`. */
export function filesOf({ tracks, joined = [], uploads = [] }) {
    const removed = new Set(uploads.filter((one) => one.isRemoved).map((one) => one.name));
    const ready = joined.filter((one) => one.state === "ready").map((file) => ({
        ...file, tracks: tracks.filter((track) => track.files.some((one) => one.joined === file.name)),
    }));
    const own = tracks.flatMap((track) => track.files.filter((file) => !file.joined).map((file) => ({ ...file, tracks: [track] })));
    return [...ready, ...own].filter((file) => !removed.has(file.name));
}

export const whoOf = ({ tracks }) => [...new Set(tracks.map((track) => track.identity))];

/** "ada, bob", "ada, bob and 5 others" */
export function listed(names) {
    return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} others` : names.join(", ");
}

/** What was requested, in words. */
export function scopeOf({ participant, track, sources, participants, byPolicy, tracks }) {
    const named = tracks.find((one) => one.sid === track || one.participant === participant);
    const parts = [track ? "one track" : participant ? `only ${named?.identity ?? participant}` : participants ? `only ${listed(participants)}` : "everything"];
    if (sources) parts.push(sources.join(", "));
    if (byPolicy) parts.push("by the room’s policy");
    return parts.join(" · ");
}

/** Its progress, and what is wrong with it. */
export function stateOf(recording) {
    const files = recording.tracks.flatMap((track) => track.files);
    const isUnfinished = files.some((file) => file.index === "pending") || (recording.joined ?? []).some((file) => file.state === "pending");
    const parts = [
        recording.state === "recording" ? "Recording" : recording.state === "empty" ? "Nothing was recorded" : isUnfinished ? "Finishing its files" : "Ready",
    ];
    if (recording.ended === "crash") parts.push("cut off when the server ended");
    const gaps = recording.tracks.reduce((sum, track) => sum + track.gapCount, 0);
    if (gaps) parts.push(count(gaps, "gap"));
    const faults = recording.tracks.filter((track) => track.fault).length;
    if (faults) parts.push(`${count(faults, "track")} not recorded`);
    const waiting = (recording.uploads ?? []).filter((one) => one.state === "pending" && one.failures);
    if (waiting.length) parts.push(`${count(waiting.length, "file")} not uploaded yet (${waiting[0].fault ?? "the storage does not take it"})`);
    return parts.join(" · ");
}

export const lengthOf = ({ startedAt, endedAt }) => ((endedAt ?? Date.now()) - startedAt) / 1000;
export const sizeOf = (recording) => filesOf(recording).reduce((sum, file) => sum + (file.bytes ?? 0), 0);

/** Ends a running recording; asks before it deletes one that has ended. Resolves with whether it was done. */
export async function endRecording(api, recording) {
    const question = {
        title: "Delete this recording?", action: "Delete",
        text: `The recording of “${recording.room}” from ${dayAndClock(recording.startedAt)} is deleted with all of its files.`,
    };
    const isRunning = recording.state === "recording";
    if (!isRunning && !await ask(question)) return false;
    // It may have ended since the last update: a click that was meant to stop it must not delete it.
    await api.call("DELETE", `${pathOf(recording.sid)}?state=${isRunning ? "recording" : "ended"}`);
    return true;
}

/**
 * A select of open rooms: the first by name, all that are `wanted`, and the chosen one. `note` says if there are more, or none. Resolves with whether
 * there is any; nothing is shown if `isCurrent` says that something else is shown by now.
 */
export async function offerRooms(api, select, note, wanted, isCurrent) {
    const kept = new Set([...wanted, select.value].filter(isAddressable));
    const { rooms, next } = await api.call("GET", `/v1/rooms?limit=${MOST}`);
    const names = new Set(rooms.map((room) => room.name).filter(isAddressable));
    for (const name of next ? kept : []) {
        if (names.has(name)) continue;
        // Of all names with this prefix, it is the first.
        const found = await api.call("GET", `/v1/rooms?limit=1&prefix=${encodeURIComponent(name)}`);
        if (found.rooms[0]?.name === name) names.add(name);
    }
    if (!isCurrent()) return false;
    setOptions(select, [...names].sort().map((name) => [name, name]));
    note.hidden = names.size > 0 && !next;
    note.textContent = next ? `These are the first ${MOST.toLocaleString("en")} rooms by name. For another one, choose it under “Rooms” first.` : "No room is open.";
    return names.size > 0;
}

export class RecordingList {
    constructor(operators) {
        Object.assign(this, { operators, api: operators.api, name: "recordings", rows: new Map(), shown: PAGE, looks: 0 });
        element("recordings-filter").onsubmit = (event) => {
            event.preventDefault();
            const place = placeOf(["recordings"], { room: element("recordings-room").value.trim() });
            if (location.hash === place) this.look();
            else location.hash = place;
        };
        element("recordings-start").onsubmit = (event) => {
            event.preventDefault();
            operators.act(() => this.start());
        };
        element("recordings-start-room").onchange = () => this.look();
        element("recordings-more").onclick = async () => {
            const first = this.shown;
            this.shown += PAGE;
            await this.look();
            element("recordings-list").querySelectorAll("tbody tr")[first]?.querySelector("a").focus();
        };
    }

    async show({ room = "" }) {
        Object.assign(this, { room, shown: PAGE });
        element("recordings-room").value = room;
        await this.look();
        // A person who looks at a room's recordings probably wants to record that room.
        const rooms = element("recordings-start-room");
        if (room && [...rooms.options].some((one) => one.value === room) && rooms.value !== room) {
            rooms.value = room;
            await this.look();
        }
    }

    async look() {
        const look = ++this.looks;
        try {
            const [recordings] = await Promise.all([this.newest(this.shown + 1), this.offer()]);
            if (look !== this.looks) return;
            this.render(recordings);
            this.operators.complain(null);
        } catch (problem) {
            if (look === this.looks) this.operators.complain(problem);
        }
    }

    /** The newest recordings of all rooms or of one: at most `count`. */
    async newest(count) {
        const place = this.room && isAddressable(this.room) ? path(this.room, "recordings") : "/v1/recordings";
        const found = [];
        for (let after = ""; after !== undefined && found.length < count;) {
            const query = new URLSearchParams({ limit: Math.min(count - found.length, MOST), ...(after && { after }) });
            const { recordings, next } = await this.api.call("GET", `${place}?${query}`);
            found.push(...recordings);
            after = next;
        }
        return found;
    }

    /** What can be recorded: a room, somebody in it, or one of their tracks. */
    async offer() {
        const select = element("recordings-start-room"), { room: shown } = this;
        const isCurrent = () => shown === this.room;
        const isAny = await offerRooms(this.api, select, element("recordings-start-none"), [shown, this.operators.chosen], isCurrent);
        if (!isCurrent()) return;
        element("recordings-start-button").disabled = !isAny;
        const room = select.value;
        const tracks = room ? await this.api.call("GET", path(room, "tracks")).then((found) => found.tracks, () => []) : [];
        const people = new Map(tracks.map((track) => [track.participant, track.identity]));
        setOptions(element("recordings-start-what"), [
            ["", "Everything in the room"],
            ...[...people].map(([sid, identity]) => [`participant ${sid}`, `Only ${identity}`]),
            ...tracks.map((track) => [`track ${track.sid}`, `Only ${track.identity}: ${track.source}`]),
        ]);
    }

    async start() {
        const [kind, sid] = element("recordings-start-what").value.split(" ");
        const files = element("recordings-start-files").value;
        const body = { ...(kind && { [kind]: sid }), ...(files && { files }) };
        await this.api.call("POST", path(element("recordings-start-room").value, "recordings"), { body });
    }

    render(recordings) {
        const known = new Set(recordings.slice(0, this.shown).map((one) => one.sid));
        for (const [sid, row] of this.rows) {
            if (known.has(sid)) continue;
            row.element.remove();
            this.rows.delete(sid);
        }
        this.body ??= newTable(element("recordings-list"), ["What", "Room", "Begun", "Length", "Size", "State", ""]);
        let place = this.body.firstElementChild;
        for (const recording of recordings.slice(0, this.shown)) {
            const row = this.rows.get(recording.sid) ?? new Row(this.operators);
            this.rows.set(recording.sid, row);
            row.update(recording);
            if (row.element === place) place = place.nextElementSibling;
            else this.body.insertBefore(row.element, place);
        }
        say("recordings-none", recordings.length ? "" : this.room ? `There is no recording of “${this.room}”.` : "There is no recording.");
        element("recordings-list").hidden = !recordings.length;
        element("recordings-more").hidden = recordings.length <= this.shown;
    }
}

class Row {
    constructor(operators) {
        this.element = make("tr");
        this.cells = ["What", "Room", "Begun", "Length", "Size", "State", ""].map((title) => {
            const cell = this.element.insertCell();
            cell.dataset.title = title;
            return cell;
        });
        this.who = link("", "who", "");
        this.scope = make("div", "dim");
        this.end = make("button", "button small");
        this.end.onclick = () => operators.act(() => endRecording(operators.api, this.recording));
        this.cells[0].append(this.who, this.scope);
        this.cells[6].append(this.end);
    }

    update(recording) {
        this.recording = recording;
        const isRunning = recording.state === "recording";
        this.who.textContent = listed(whoOf(recording)) || "Nobody yet";
        this.who.href = placeOf(["recordings", recording.sid]);
        this.scope.textContent = scopeOf(recording);
        const texts = [recording.room, dayAndClock(recording.startedAt), duration(lengthOf(recording)), bytes(sizeOf(recording)), stateOf(recording)];
        texts.forEach((text, index) => { this.cells[index + 1].textContent = text; });
        this.cells[5].classList.toggle("recording", isRunning);
        this.end.textContent = isRunning ? "Stop" : "Delete";
        this.end.classList.toggle("danger", !isRunning);
    }
}
