// Playbacks into a room: their position, whether they are paused, and their controls.

import { path } from "./api.js";
import { make, position } from "./elements.js";

/** A file whose keyframes are farther apart deserves a warning: a person who joins sees nothing until the next one. */
const LONG_WAIT_MILLISECONDS = 10_000;
/** A playback follows a change within milliseconds; the answer to an earlier request has the former position. */
const SETTLES_MILLISECONDS = 1_000;

export class PlaybackList {
    constructor(operators, list) {
        Object.assign(this, { operators, list, items: new Map(), looks: 0 });
    }

    get isEmpty() { return this.items.size === 0; }

    /** Shows what is played into `room`; null: nothing. */
    async look(room) {
        const look = ++this.looks;
        const { playbacks } = room ? await this.operators.api.call("GET", path(room, "playbacks")).catch(() => ({ playbacks: [] })) : { playbacks: [] };
        if (look !== this.looks) return;
        for (const [sid, item] of this.items) {
            if (playbacks.some((one) => one.sid === sid)) continue;
            item.element.remove();
            this.items.delete(sid);
        }
        for (const playback of playbacks) {
            if (!this.items.has(playback.sid)) this.items.set(playback.sid, new Item(this.operators, this.list));
            this.items.get(playback.sid).update(playback);
        }
    }
}

class Item {
    constructor(operators, list) {
        Object.assign(this, { operators, element: make("li"), title: make("b"), time: make("output"), warning: make("small"), settled: 0 });
        this.slider = Object.assign(make("input"), { type: "range", min: 0, step: 1000 });
        this.pause = make("button", "button small");
        this.stop = make("button", "button small danger", "Stop");
        this.loop = Object.assign(make("input"), { type: "checkbox" });
        this.time.setAttribute("aria-live", "off"); // The slider reports it to assistive technology.
        const label = make("label", "check");
        label.append(this.loop, "Loop");
        this.slider.setAttribute("aria-label", "Position");
        this.slider.oninput = () => {
            this.isHeld = true;
            this.showTime(Number(this.slider.value));
        };
        // Brought back to where it was, or given up, it has changed nothing: no "change" follows.
        for (const type of ["pointerup", "pointercancel", "keyup", "blur"]) this.slider.addEventListener(type, () => { this.isHeld = false; });
        this.slider.onchange = () => this.change({ positionMilliseconds: Number(this.slider.value) });
        this.pause.onclick = () => this.change({ paused: this.playback.state === "playing" });
        this.loop.onchange = () => this.change({ loop: this.loop.checked });
        this.stop.onclick = () => operators.act(() => operators.api.call("DELETE", this.path));
        this.element.append(this.title, this.slider, this.time, this.pause, label, this.stop, this.warning);
        list.append(this.element);
    }

    get path() { return `/v1/playbacks/${encodeURIComponent(this.playback.sid)}`; }

    change(body) {
        this.isHeld = false;
        this.settled = performance.now() + SETTLES_MILLISECONDS;
        return this.operators.act(async () => {
            await this.operators.api.call("PATCH", this.path, { body });
            this.show({ ...this.playback, ...body, state: "paused" in body ? (body.paused ? "paused" : "playing") : this.playback.state });
        });
    }

    update(playback) {
        if (this.isHeld || performance.now() < this.settled) return;
        this.show(playback);
    }

    show(playback) {
        this.playback = playback;
        const isPaused = playback.state === "paused";
        this.title.textContent = `${playback.identity}${isPaused ? " (paused)" : ""}`;
        this.title.title = [playback.recording, playback.file].filter(Boolean).join(" ");
        this.slider.max = playback.durationMilliseconds;
        this.slider.value = playback.positionMilliseconds;
        this.showTime(playback.positionMilliseconds);
        this.pause.textContent = isPaused ? "Go on" : "Pause";
        this.loop.checked = playback.loop;
        const wait = Math.max(0, ...playback.tracks.map((track) => track.longestKeyframeIntervalMilliseconds ?? 0));
        this.warning.hidden = wait <= LONG_WAIT_MILLISECONDS;
        this.warning.textContent = `Viewers who join may see nothing for ${Math.round(wait / 1000)} s: the file has few keyframes.`;
        for (const [control, action] of [[this.pause, this.pause.textContent], [this.stop, "Stop"], [this.slider, "Position of"]]) {
            control.setAttribute("aria-label", `${action} ${playback.identity}`);
        }
    }

    showTime(milliseconds) {
        const text = `${position(milliseconds)} / ${position(this.playback.durationMilliseconds)}`;
        this.time.textContent = text;
        this.slider.setAttribute("aria-valuetext", text);
    }
}
