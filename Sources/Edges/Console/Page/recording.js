// One recording: its files to watch and to download, the gaps in them, and its playback into a room.

import { path } from "./api.js";
import { bytes, count, dayAndClock, definitions, duration, element, make, newTable, position, say, setOptions } from "./elements.js";
import { JobList, madeOf, titleOfJob } from "./jobs.js";
import { PlaybackList } from "./playbacks.js";
import { RecordingPlayer } from "./player.js";
import { endRecording, filesOf, lengthOf, listed, offerRooms, pathOf, scopeOf, sizeOf, stateOf, whoOf } from "./recordings.js";

/** More gaps than these do not help a reader; the rest is counted. */
const GAPS = 100;
const PANELS = ["recording-body", "recording-make", "recording-play"];
const REASONS = { loss: "lost on the way", overload: "the disk was too slow", disk: "the disk refused it", format: "its format was being changed" };

export class RecordingPage {
    constructor(operators) {
        Object.assign(this, { operators, api: operators.api, name: "recording", looks: 0 });
        this.player = new RecordingPlayer((file) => this.link(file));
        this.playbacks = new PlaybackList(operators, element("recording-playbacks"));
        this.jobs = new JobList(operators, () => this.sid);
        element("recording-end").onclick = () => operators.act(() => this.end());
        element("recording-play-room").onchange = () => this.look();
        element("recording-play-form").onsubmit = (event) => {
            event.preventDefault();
            operators.act(() => this.play());
        };
    }

    async show({ recording }) {
        if (recording !== this.sid) this.leave();
        this.sid = recording;
        element("recording-title").textContent = "Recording";
        await this.look();
    }

    /** A recording that is not shown is not audible either. */
    leave() {
        this.player.close();
        this.sid = null;
        this.recording = null;
        for (const id of PANELS) element(id).hidden = true;
        this.jobs.clear();
        for (const id of ["recording-facts", "recording-files", "recording-gaps"]) element(id).replaceChildren();
        this.shown = "";
    }

    async look() {
        const look = ++this.looks;
        const { sid } = this;
        if (!sid) return;
        try {
            const recording = await this.api.call("GET", pathOf(sid));
            const wanted = [recording.room, this.operators.chosen];
            const isAny = await offerRooms(this.api, element("recording-play-room"), element("recording-play-none"), wanted, () => sid === this.sid);
            if (look !== this.looks || sid !== this.sid) return;
            this.render(recording, isAny);
            element("recording-problem").textContent = "";
            await this.playbacks.look(isAny ? element("recording-play-room").value : null);
        } catch (problem) {
            if (look !== this.looks) return;
            say("recording-problem", problem.message);
            if (problem.status === 404) for (const id of PANELS) element(id).hidden = true;
        }
    }

    async end() {
        if (!this.recording) return;
        const wasRunning = this.recording.state === "recording";
        if (await endRecording(this.api, this.recording) && !wasRunning) location.hash = "#/recordings";
    }

    async link(file) { return this.api.call("POST", pathOf(this.sid, "links"), { body: { file } }); }

    /** The link's answer has the file's name; the browser keeps the file without showing the page another one. */
    async download(file) {
        const { url } = await this.link(file.name);
        Object.assign(document.createElement("a"), { href: url, download: file.name }).click();
    }

    async play() {
        const file = element("recording-play-file").value;
        await this.api.call("POST", path(element("recording-play-room").value, "playbacks"), {
            body: {
                recording: this.sid, ...(file && { file }), identity: element("recording-play-identity").value.trim(),
                name: `Recording of ${this.recording.room}`, loop: element("recording-play-loop").checked,
            },
        });
    }

    render(recording, isAny) {
        this.recording = recording;
        const isRunning = recording.state === "recording";
        const files = filesOf(recording).sort(byPlace);
        const finished = files.filter((file) => file.durationMilliseconds !== undefined);
        for (const id of ["recording-body", "recording-play"]) element(id).hidden = false;
        element("recording-title").textContent = `Recording of ${recording.room}`;
        element("recording-facts").replaceChildren(definitions(this.facts(recording)));
        element("recording-end").textContent = isRunning ? "Stop recording" : "Delete recording";
        element("recording-end").classList.toggle("danger", !isRunning);
        const offered = choices(recording, finished);
        setOptions(element("recording-play-file"), offered, { isAnyGood: true });
        element("recording-play-button").disabled = !isAny || isRunning || !offered.length;
        // The rows have buttons: they stay until there is something else to say.
        this.jobs.render(recording, finished.filter((file) => file.tracks.some((track) => track.kind === "video")).map((file) => [file.name, `${titleOf(file)} (${file.name})`]));
        const made = madeOf(recording);
        const shown = JSON.stringify([recording.tracks, recording.joined, recording.uploads, made.map((file) => file.name)]);
        if (shown === this.shown) return;
        this.shown = shown;
        this.renderFiles([...made, ...files]);
        this.renderGaps(recording);
    }

    facts(recording) {
        const parts = { tracks: "One file per track", participant: "One file per participant", room: "One file for everything" };
        return {
            State: stateOf(recording), Who: listed(whoOf(recording)) || "Nobody yet", "What was to be recorded": scopeOf(recording),
            Begun: dayAndClock(recording.startedAt),
            ...(recording.endedAt && { Ended: dayAndClock(recording.endedAt) }),
            Length: duration(lengthOf(recording)), Size: bytes(sizeOf(recording)), Files: parts[recording.files ?? "tracks"],
        };
    }

    renderFiles(files) {
        if (!files.length) return element("recording-files").replaceChildren(make("p", "dim", "There is none here."));
        // Drawing a row anew must not lose the focus.
        const focused = document.activeElement?.dataset.key;
        const body = newTable(element("recording-files"), ["File", "Contents", "Begins at", "Length", "Size", ""]);
        for (const file of files) this.addFile(body, file, files);
        if (focused) [...body.querySelectorAll("button")].find((one) => one.dataset.key === focused)?.focus();
    }

    addFile(body, file, files) {
        const row = body.insertRow();
        const cell = (title, ...content) => {
            const one = row.insertCell();
            one.dataset.title = title;
            one.append(...content);
        };
        const isFinished = file.durationMilliseconds !== undefined;
        cell("File", make("div", "who", file.name), make("div", "dim", titleOf(file)));
        cell("Contents", contentsOf(file));
        cell("Begins at", position(file.startMilliseconds ?? 0));
        cell("Length", isFinished ? position(file.durationMilliseconds) : "grows");
        cell("Size", file.bytes === undefined ? "–" : bytes(file.bytes));
        const button = (text, action) => {
            const one = make("button", "button small", text);
            one.disabled = !isFinished;
            one.setAttribute("aria-label", `${text} ${file.name}`);
            one.dataset.key = `${text} ${file.name}`;
            one.onclick = () => this.operators.act(action);
            return one;
        };
        cell("", button("Watch", () => this.player.watch(file, titleOf(file), audioFilesOf(file, files))), " ", button("Download", () => this.download(file)));
    }

    renderGaps({ tracks }) {
        const list = element("recording-gaps");
        const lines = tracks.flatMap((track) => [
            ...(track.fault ? [[-1, `${nameOf(track)} is not recorded (${track.fault}).`]] : []),
            ...track.gaps.map((gap) => [gap.atMilliseconds, `${position(gap.atMilliseconds)} · ${nameOf(track)} · ${(gap.milliseconds / 1000).toFixed(1)} s, `
                + `${count(gap.frames, "frame")}, ${count(gap.packets, "packet")}: ${REASONS[gap.reason] ?? gap.reason}`]),
        ]).sort((a, b) => a[0] - b[0]);
        const all = tracks.reduce((sum, track) => sum + track.gapCount + (track.fault ? 1 : 0), 0);
        list.replaceChildren(...lines.slice(0, GAPS).map(([, text]) => make("li", "", text)));
        if (!all) list.append(make("li", "dim", "Nothing."));
        if (all > GAPS) list.append(make("li", "dim", `And ${all - GAPS} more.`));
    }
}

/** Files that began within one second began together: video comes first. */
function byPlace(a, b) {
    const [first, second] = [a, b].map((file) => [Math.floor((file.startMilliseconds ?? 0) / 1000), file.codec && file.tracks[0].kind === "audio" ? 1 : 0]);
    return first[0] - second[0] || first[1] - second[1];
}

const nameOf = ({ identity, source }) => `${identity}: ${source}`;

/** "ada: camera", "ada, bob" */
const titleOf = ({ tracks, job }) => (job ? titleOfJob(job) : tracks.length === 1 ? nameOf(tracks[0]) : listed(whoOf({ tracks })));

/** "h264, 1280×720" */
function contentsOf({ codec, width, height, rotation, tracks, job }) {
    if (job) return [job.codec, job.width ? `${job.width}×${job.height}` : ""].filter(Boolean).join(", ");
    if (!codec) return tracks.map((track) => track.files[0]?.codec).filter(Boolean).join(", ");
    return `${codec}${width ? `, ${width}×${height}` : ""}${rotation ? `, turned by ${rotation}°` : ""}`;
}

/** The audio that belongs to a file with only video: of the same participant, from the camera's microphone or the screen's own. */
function audioFilesOf({ tracks: [track] = [], codec, kind = track?.kind }, files) {
    if (!codec || kind !== "video") return [];
    const source = track.source.startsWith("screen") ? /^screen.+/ : /^microphone$/;
    return files.filter((one) => one.codec && one.durationMilliseconds !== undefined && one.tracks[0].kind === "audio"
        && one.tracks[0].participant === track.participant && source.test(one.tracks[0].source));
}

/** What can be played: everything at once if there is one participant with one file of each kind, otherwise each file. */
function choices(recording, files) {
    const kinds = files.map((file) => file.tracks[0]?.kind);
    const isOne = whoOf(recording).length === 1 && new Set(kinds).size === kinds.length && !files.some((file) => !file.codec);
    const single = files.map((file) => [file.name, `${titleOf(file)} (${file.name})`]);
    return isOne && files.length > 1 ? [["", "All tracks together"], ...single] : single;
}
