// Which camera, microphone and loudspeaker are used: chosen before one joins, and changed during the call.

import { listDevices, openOther } from "/martlet.js";

const KINDS = { camera: "cameras", microphone: "microphones", speaker: "speakers" };
const TITLES = { camera: "Camera", microphone: "Microphone", speaker: "Loudspeaker" };
/** Browsers without `setSinkId` play on the system's loudspeaker. */
const CAN_CHOOSE_SPEAKER = "setSinkId" in HTMLMediaElement.prototype;

/** A person's choices, as long as the page is open: device ids by kind. */
export const chosen = { camera: "", microphone: "", speaker: "" };

export class DeviceChooser {
    /**
     * Fills `container` with menus and a meter. `media()` is what is sent, or null; `onReplace(old, track)` sends another device's track instead of
     * one; `onSpeaker(id)`; `onProblem(text)`.
     */
    constructor(container, { media, onReplace, onSpeaker, onProblem }) {
        Object.assign(this, { media, onReplace, onSpeaker, onProblem });
        this.work = {}; // kind -> its last change
        this.menus = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, this.menu(kind)]));
        this.meter = new Meter();
        container.replaceChildren(this.menus.camera.label, this.menus.microphone.label, this.meter.element, this.menus.speaker.label);
        this.isOpen = false;
        this.changed = () => this.refresh();
    }

    menu(kind) {
        const label = document.createElement("label"), select = document.createElement("select");
        label.append(TITLES[kind], " ", select);
        select.dataset.kind = kind;
        select.onchange = () => this.choose(kind, select.value);
        return { label, select };
    }

    /** Follows the devices that are there, and the microphone's level, until `close`. */
    async open() {
        this.isOpen = true;
        navigator.mediaDevices?.addEventListener("devicechange", this.changed);
        await this.refresh();
    }

    close() {
        this.isOpen = false;
        navigator.mediaDevices?.removeEventListener("devicechange", this.changed);
        this.meter.follow(null);
    }

    async refresh() {
        const devices = await listDevices();
        if (!this.isOpen) return; // A device may be replaced after the menus are closed: nobody would end the meter.
        const media = this.media();
        for (const [kind, { label, select }] of Object.entries(this.menus)) {
            const found = devices[KINDS[kind]];
            const track = media?.isFromDevices && trackOf(media, kind);
            label.hidden = kind === "speaker" ? !CAN_CHOOSE_SPEAKER || !found.length : !track;
            select.replaceChildren(...found.map((one, index) => new Option(one.label || `${TITLES[kind]} ${index + 1}`, one.deviceId)));
            const used = track ? track.getSettings().deviceId : chosen[kind];
            if (found.some(({ deviceId }) => deviceId === used)) select.value = used;
        }
        this.meter.follow(media && trackOf(media, "microphone"));
    }

    /** Changes of one kind follow each other: each replaces the device that the previous one has opened. */
    choose(kind, id) { this.work[kind] = (this.work[kind] ?? Promise.resolve()).then(() => this.change(kind, id)).catch((problem) => console.warn(problem.message)); }

    /** When nothing that was chosen is still being opened. */
    async settled() { await Promise.all(Object.values(this.work)); }

    async change(kind, id) {
        const before = chosen[kind];
        chosen[kind] = id;
        try {
            if (kind === "speaker") await this.onSpeaker(id);
            else await this.replace(kind, id);
        } catch (problem) {
            chosen[kind] = before;
            this.onProblem(problem.message);
        }
        await this.refresh();
    }

    async replace(kind, id) {
        const media = this.media(), old = media && trackOf(media, kind);
        if (!old) return;
        const take = async (track) => {
            // If the call ended meanwhile, or another device replaced the old one, this one is not used, and is stopped.
            if (this.media() !== media || trackOf(media, kind) !== old) return track.stop();
            await this.onReplace(old, track);
            old.stop();
        };
        await take(await openOther(old, id, take));
    }
}

function trackOf(media, kind) { return media.sources.find(({ source }) => source === kind)?.track; }

/** The level of a microphone, ten times per second. */
class Meter {
    constructor() {
        this.element = Object.assign(document.createElement("meter"), { min: 0, max: 1, value: 0, hidden: true });
        this.element.setAttribute("aria-label", "Level of the microphone");
    }

    /** Measures this track, or null: nothing. */
    follow(track) {
        if (track === this.track) return;
        clearInterval(this.timer);
        this.context?.close();
        this.track = track || null;
        this.context = null;
        this.element.hidden = !track;
        this.element.value = 0;
        if (!track) return;
        this.context = new AudioContext();
        const analyser = new AnalyserNode(this.context, { fftSize: 2048 });
        this.context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
        const samples = new Float32Array(analyser.fftSize);
        this.timer = setInterval(() => {
            analyser.getFloatTimeDomainData(samples);
            const power = samples.reduce((sum, one) => sum + one * one, 0) / samples.length;
            // From −60 dBFS, where a room is quiet, to 0.
            this.element.value = track.enabled ? Math.max(0, 1 + Math.log10(power + 1e-9) / 6) : 0;
        }, 100);
    }
}
