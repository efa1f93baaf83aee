// Tiles: one for each shown video, and one with a face of initials for a participant without video. Screens stand on the
// stage, everything else in the grid.

import { hueOf } from "./hue.js";
import { rate } from "./statistics.js";

const floor = document.getElementById("floor");
const stage = document.getElementById("stage");
const grid = document.getElementById("grid");
/** Pixels between tiles, as in room.css. */
const GAP = 12;

export class Tile {
    /**
     * `source` is "camera", "screen" or "person" (no video); `onView({ size, priority, pinned, hidden })`: a person chose how to see it;
     * `choice`: what they chose before.
     */
    constructor({ key, name, own = false, source = "camera", isMirrored = false, choice, onView }) {
        this.element = make("div", `tile ${source}${own ? " own" : ""}${isMirrored ? " mirrored" : ""}`);
        this.element.dataset.key = key;
        this.isOwn = own;
        this.face = make("div", "face");
        // A long name is cut at its end, which is on the left in some scripts.
        this.label = Object.assign(make("b"), { dir: "auto" });
        this.name = make("span", "name");
        this.name.innerHTML = '<svg role="img" aria-label="muted"><use href="#icon-microphone"/></svg>';
        this.hand = make("span", "hand");
        this.hand.innerHTML = '<svg role="img" aria-label="hand raised"><use href="#icon-hand"/></svg>';
        this.hand.hidden = true;
        this.name.append(this.hand, this.label);
        this.figures = make("span", "figures");
        this.quality = make("span", "quality");
        this.quality.append(...Array.from({ length: 5 }, () => make("i")));
        this.quality.hidden = true;
        this.corner = make("div", "corner");
        if (source !== "person") this.corner.append(...this.screenControls());
        if (onView) this.corner.append(...viewControls(choice, (chosen) => { this.mark(chosen); onView(chosen); }));
        this.setName(name);
        this.mark(choice ?? {});
        this.corner.append(this.quality);
        const caption = make("div", "caption");
        this.why = make("span", "why");
        caption.append(this.name, this.figures, this.why);
        this.still = make("p", "still");
        this.element.append(this.face, this.still, caption, this.corner);
        this.setOnStage(source === "screen");
    }

    /** Large on the stage, or in the grid, where the own tile is the first. */
    setOnStage(isOnStage) {
        this.isOnStage = isOnStage;
        const area = isOnStage ? stage : grid;
        if (this.element.parentElement === area) return;
        // A node that is moved loses the full screen, and the focus within it.
        if (this.element.contains(document.fullscreenElement)) {
            const later = () => { if (this.element.isConnected) this.setOnStage(this.isOnStage); };
            return document.addEventListener("fullscreenchange", later, { once: true });
        }
        const focused = this.element.contains(document.activeElement) ? document.activeElement : null;
        if (this.isOwn) area.prepend(this.element);
        else area.append(this.element);
        // A moved video stops in some browsers until it is played again.
        this.video?.play().catch(() => {});
        focused?.focus();
        arrange();
    }

    /** Full screen, and a separate window above all others if the browser supports that. */
    screenControls() {
        const full = button("full", (name) => `Show ${name}’s video on the full screen`);
        full.onclick = () => (document.fullscreenElement ? document.exitFullscreen() : this.element.requestFullscreen());
        if (!document.fullscreenEnabled) full.hidden = true;
        const float = button("float", (name) => `Show ${name}’s video in a window of its own`);
        float.hidden = !document.pictureInPictureEnabled;
        float.onclick = () => {
            const isFloating = document.pictureInPictureElement === this.video;
            return (isFloating ? document.exitPictureInPicture() : this.video?.requestPictureInPicture())?.catch((problem) => console.warn(problem.message));
        };
        return [float, full];
    }

    setHand(isRaised) { this.hand.hidden = !isRaised; }

    mark({ hidden = false, pinned = false }) {
        this.element.classList.toggle("not-shown", hidden);
        this.element.classList.toggle("pinned", pinned);
    }

    /** Shows a video track; a face of initials until its first frame. */
    show(track, onFirstFrame) {
        if (this.video?.srcObject.getVideoTracks()[0] === track) return;
        this.video ??= this.makeVideo();
        this.video.srcObject = new MediaStream([track]);
        this.video.play().catch(() => {});
        this.element.classList.add("waiting");
        const shown = () => {
            this.element.classList.remove("waiting");
            onFirstFrame?.();
        };
        if (this.video.requestVideoFrameCallback) this.video.requestVideoFrameCallback(shown);
        else this.video.onloadeddata = shown;
    }

    makeVideo() {
        const video = Object.assign(make("video"), { muted: true, playsInline: true });
        this.face.after(video);
        return video;
    }

    /** Pixels of the screen that the video fills. */
    get pixelHeight() { return Math.round(this.element.clientHeight * devicePixelRatio); }

    /** A name may change during a call: everything that names the tile's owner follows. */
    setName(name) {
        if (name === this.shownName) return;
        this.shownName = name;
        this.label.textContent = this.isOwn ? `${name} (you)` : name;
        this.face.textContent = initials(name);
        this.face.style.setProperty("--hue", hueOf(name));
        for (const control of this.corner.querySelectorAll(".choice")) {
            control.title = titles.get(control)(name);
            control.setAttribute("aria-label", control.title);
        }
    }

    setAudioMuted(muted) {
        this.name.classList.toggle("muted", muted);
        if (muted) this.setSpeaking(false);
    }

    setVideoMuted(muted) { this.element.classList.toggle("video-muted", muted); }
    setSpeaking(speaking) { this.element.classList.toggle("speaking", speaking); }

    /** `size` is always shown, `more` if there is room. */
    setFigures({ size = "", more = "", details = "" }) {
        this.figures.replaceChildren(size, make("span", "more", size && more ? ` · ${more}` : more));
        this.element.title = details;
    }

    /** Shows across the video that it is frozen; "" while it is not. */
    setStill(text) {
        this.element.classList.toggle("stands-still", Boolean(text));
        this.still.textContent = text;
        if (text) this.setFigures({});
    }

    /** What keeps the own video from being larger: { reason, text } of SendLimits. */
    setLimit({ reason, text }) {
        this.why.textContent = this.why.title = text;
        this.why.dataset.reason = reason;
    }

    /** The layer that is shown, and why not more, as the server explains it (`allocation` of martlet.v1). */
    setWhy({ layer, text, reason }, estimate) {
        // The server does not know the size of a video that is encrypted end to end, or has only just begun.
        const size = layer?.height ? `${layer.height}p` : "video", pace = layer?.framesPerSecond ? ` ${Math.round(layer.framesPerSecond)} fps` : "";
        const shown = layer ? `${size}${pace}` : "not sent";
        const path = estimate ? `estimate ${rate(estimate / 1000)}` : "no limit known";
        this.why.textContent = this.why.title = `${shown} · ${path} · ${text}`;
        this.why.dataset.reason = reason;
    }

    /** 0 (lost) to 5 (excellent). */
    setQuality(quality) {
        this.quality.hidden = false;
        this.quality.dataset.quality = quality;
        this.quality.title = `Network: ${quality} of 5`;
        [...this.quality.children].forEach((bar, index) => bar.classList.toggle("on", index < quality));
    }

    remove() {
        this.element.remove();
        arrange();
    }
}

/** What a person may choose for a tile; "fit" depends on the tile's size; no priority means the publisher's. */
const SIZES = [["fit", "Fit"], ["best", "Best"], ["1", "Medium"], ["0", "Low"], ["paused", "Paused"]];
const PRIORITIES = [["", "Auto"], ["high", "High"], ["standard", "Standard"], ["low", "Low"]];

/** The names of the controls, by the name on the tile. */
const titles = new WeakMap();

function viewControls(choice, onView) {
    const size = menu("layer", (name) => `Size of ${name}’s video`, SIZES, choice?.size);
    const priority = menu("priority", (name) => `Priority of ${name}’s video`, PRIORITIES, choice?.priority);
    const pin = toggle("pin", (name) => `Pin ${name}’s video: it goes before all others when bandwidth is short`, choice?.pinned);
    const hide = toggle("hide", (name) => `Hide ${name}’s video: nothing is sent`, choice?.hidden);
    const isOn = (button) => button.getAttribute("aria-pressed") === "true";
    const change = () => onView({ size: size.value, priority: priority.value, pinned: isOn(pin), hidden: isOn(hide) });
    size.onchange = priority.onchange = change;
    for (const button of [pin, hide]) {
        button.onclick = () => { button.setAttribute("aria-pressed", String(!isOn(button))); change(); };
    }
    return [pin, hide, priority, size];
}

function menu(name, title, options, chosen = options[0][0]) {
    const made = make("select", `choice ${name}`);
    titles.set(made, title);
    for (const [key, text] of options) made.append(new Option(text, key));
    made.value = chosen;
    return made;
}

function toggle(name, title, isOn = false) {
    const made = button(name, title);
    made.setAttribute("aria-pressed", String(isOn));
    return made;
}

function button(name, title) {
    const made = make("button", `choice ${name}`);
    made.innerHTML = `<svg><use href="#icon-${name}"/></svg>`;
    titles.set(made, title);
    return made;
}

/** Gives the tiles, at 16:9, the largest width at which all fit. */
function arrange() {
    floor.classList.toggle("alone", floor.querySelectorAll(".tile:not(.own)").length === 0);
    for (const area of [stage, grid]) {
        const count = area.childElementCount;
        if (!count) continue;
        const { width, height } = area.getBoundingClientRect();
        let best = 0;
        for (let columns = 1; columns <= count; columns++) {
            const rows = Math.ceil(count / columns);
            const room = { width: (width - GAP * (columns - 1)) / columns, height: (height - GAP * (rows - 1)) / rows };
            best = Math.max(best, Math.min(room.width, (room.height * 16) / 9));
        }
        area.style.setProperty("--tile-width", `${Math.floor(best)}px`);
    }
}

new ResizeObserver(arrange).observe(floor);

/** Safari pauses the videos of a page in the background, and plays none before a click when it saves power; Firefox pauses one whose window a person pauses. */
function playAll() {
    if (document.hidden) return;
    for (const video of floor.querySelectorAll("video")) if (video.paused) video.play().catch(() => {});
}

for (const type of ["visibilitychange", "click"]) document.addEventListener(type, playAll);

function make(tag, className = "", text = "") {
    return Object.assign(document.createElement(tag), { className, textContent: text });
}

function initials(name) {
    // By code points, so that no emoji is cut in half.
    const words = name.split(/\s+/).filter(Boolean).map((word) => [...word]);
    return ((words[0]?.[0] ?? "?") + (words.length > 1 ? words.at(-1)[0] : "")).toUpperCase();
}
