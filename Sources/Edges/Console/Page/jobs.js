// Files made from a finished recording: one video of everybody, a file of another bit rate, or a WebM copy. Shows the progress of each job, and cancels it.

import { bytes, element, make, setOptions } from "./elements.js";

const STATES = { queued: "waits for its turn", running: "is being made", finished: "ready", failed: "failed", cancelled: "cancelled" };
const LAYOUTS = { grid: "grid", speaker: "active speaker large", presentation: "shared screen large" };

/** The files that jobs have made, to watch and to download. */
export function madeOf({ jobs = [], uploads = [] }) {
    const removed = new Set(uploads.filter((one) => one.isRemoved).map((one) => one.name));
    return jobs.filter((job) => job.file && !removed.has(job.file.name)).map((job) => ({ ...job.file, tracks: [], job }));
}

/** "One video, active speaker large" */
export function titleOfJob({ kind, layout, source, bitrate }) {
    if (kind === "copy") return `${source} as WebM`;
    return kind === "composition" ? `One video, ${LAYOUTS[layout]}` : `${source} with ${Math.round(bitrate / 1000)} kbit/s`;
}

export class JobList {
    /** `sid` gives the recording that is shown. */
    constructor(operators, sid) {
        Object.assign(this, { operators, api: operators.api, items: new Map(), sid });
        element("recording-compose-form").onsubmit = (event) => {
            event.preventDefault();
            operators.act(() => this.compose());
        };
        element("recording-transcode-form").onsubmit = (event) => {
            event.preventDefault();
            operators.act(() => this.transcode());
        };
        element("recording-copy-button").onclick = () => operators.act(() => this.copy());
    }

    clear() {
        element("recording-jobs").replaceChildren();
        this.items.clear();
    }

    start(body) { return this.api.call("POST", `/v1/recordings/${encodeURIComponent(this.sid())}/jobs`, { body }); }

    compose() {
        const [width, height] = element("recording-compose-size").value.split("x").map(Number);
        return this.start({
            kind: "composition", layout: element("recording-compose-layout").value, width, height,
            bitrate: Math.round(Number(element("recording-compose-rate").value) * 1000),
        });
    }

    transcode() {
        return this.start({
            kind: "transcode", file: element("recording-transcode-file").value,
            bitrate: Math.round(Number(element("recording-transcode-rate").value) * 1000),
        });
    }

    copy() { return this.start({ kind: "copy", file: element("recording-transcode-file").value }); }

    /** Shows the jobs of a recording, the newest first, and offers `videos` (names with descriptions) to be transcoded or copied. */
    render({ state, jobs = [] }, videos) {
        element("recording-make").hidden = state !== "ready";
        setOptions(element("recording-transcode-file"), videos, { isAnyGood: true });
        for (const name of ["transcode", "copy"]) element(`recording-${name}-button`).disabled = !videos.length;
        const shown = new Set(jobs.map((job) => job.sid));
        for (const [sid, item] of this.items) {
            if (shown.has(sid)) continue;
            item.element.remove();
            this.items.delete(sid);
        }
        for (const job of jobs) {
            if (!this.items.has(job.sid)) this.items.set(job.sid, new Item(this.operators, element("recording-jobs")));
            this.items.get(job.sid).show(job);
        }
    }
}

class Item {
    constructor(operators, list) {
        Object.assign(this, { element: make("li"), title: make("b"), state: make("span", "dim") });
        this.bar = Object.assign(make("progress"), { max: 1 });
        this.button = make("button", "button small");
        // The expected state is sent: a job may have ended since the last update.
        this.button.onclick = () => operators.act(() => operators.api.call("DELETE",
            `/v1/jobs/${encodeURIComponent(this.job.sid)}?state=${this.isOpen ? "open" : "ended"}`));
        this.element.append(this.title, this.bar, this.state, this.button);
        list.prepend(this.element);
    }

    get isOpen() { return ["queued", "running"].includes(this.job.state); }

    show(job) {
        this.job = job;
        const title = titleOfJob(job);
        this.title.textContent = title;
        this.bar.value = job.progress;
        this.bar.hidden = job.state !== "running";
        this.bar.setAttribute("aria-label", `Progress of ${title}`);
        const more = job.state === "running" ? ` (${Math.floor(job.progress * 100)} %)` : job.fault && job.state === "failed" ? ` (${job.fault})`
            : job.file ? ` (${bytes(job.file.bytes)})` : "";
        this.state.textContent = STATES[job.state] + more;
        this.button.textContent = this.isOpen ? "Cancel" : job.file ? "Delete" : "Remove";
        this.button.setAttribute("aria-label", `${this.button.textContent} ${title}`);
    }
}
