// Who is in the room and what they publish.

import { openOther } from "./capture.js";
import { left } from "./errors.js";
import { start } from "./receiving.js";

/**
 * @typedef {object} View a subscriber's preferences for one track (Protocol.md, section 5, `view`); an absent field has its default
 * @property {number} [height] the smallest layer that is at least this tall, in pixels
 * @property {string} [rid] one simulcast layer
 * @property {number} [spatial] one spatial layer; 0 is the lowest
 * @property {number} [framesPerSecond] the highest frame rate that is useful, 0.1 to 240
 * @property {"low" | "standard" | "high"} [priority]
 * @property {boolean} [pinned] before all other videos
 * @property {boolean} [hidden] not on screen: nothing is sent
 * @property {boolean} [paused] stopped, whether on screen or not
 */

/** A person or program in the room. */
export class Participant {
    constructor(info, isLocal) {
        /** Whether it is this client itself. @type {boolean} */ this.isLocal = isLocal;
        /** By the sid of the track; empty for this client itself (see `Room.publications`). @type {Map<string, Publication>} */ this.publications = new Map();
        /** Whether it speaks now, if the room was joined with `speakers`. @type {boolean} */ this.isSpeaking = false;
        /** Its network quality, 0 (lost) to 5 (excellent); null before it is known. @type {number | null} */ this.quality = null;
        this.update(info);
    }

    update(info) {
        /** The server's whole description (Protocol.md, section 3, "Values"). */ this.info = info;
        if (info.quality !== undefined) this.quality = info.quality;
    }

    /** Changes with each join. @returns {string} */ get sid() { return this.info.sid; }
    /** The identity in its token. @returns {string} */ get identity() { return this.info.identity; }
    /** May be empty. It comes from others: show it only as text. @returns {string} */ get name() { return this.info.name; }
    /** @returns {string} */ get metadata() { return this.info.metadata; }
    /** @returns {any} */ get permissions() { return this.info.permissions; }
    /** All that it publishes; empty for this client itself (see `Room.publications`). @returns {Publication[]} */
    get tracks() { return [...this.publications.values()]; }
}

/** What an element shows: the publication that was attached to it last. @type {WeakMap<HTMLMediaElement, Showable>} */
const shownIn = new WeakMap();

/**
 * Elements that were paused while the page was visible, by a person or the app: browsers pause those of a page in the background.
 * @type {WeakSet<HTMLMediaElement>}
 */
const halted = new WeakSet();

function notePause({ target, type }) {
    if (type === "play") halted.delete(target);
    else if (!document.hidden) halted.add(target);
}

/** A track that can be shown in elements. */
class Showable {
    constructor(track) {
        /** The track that is sent or received; null while nothing is received. @type {MediaStreamTrack | null} */ this.track = track;
        this.elements = new Map(); // element -> whether it was made here
    }

    /**
     * Shows a video in an element: in the given one, or in one that is made here, the same at each call. The element also shows what is received later: an app
     * that appends it at each `trackSubscribed` moves it. `detach` and the end of the publication remove an element that was made here from the page.
     * An element shows one publication: attaching another one replaces it.
     * (The audio of others is played without this, unless the room has `playAudio: false`.)
     * @param {HTMLMediaElement} [element]
     * @returns {HTMLMediaElement}
     */
    attach(element) {
        const shown = element ?? this.ownElement() ?? document.createElement(this.kind);
        if (shown instanceof HTMLVideoElement) Object.assign(shown, { muted: true, playsInline: true });
        if (shownIn.get(shown) !== this) shownIn.get(shown)?.elements.delete(shown);
        shownIn.set(shown, this);
        for (const type of ["pause", "play"]) shown.addEventListener(type, notePause);
        if (!this.elements.has(shown)) this.elements.set(shown, !element);
        this.play(shown);
        return shown;
    }

    ownElement() { return [...this.elements].find(([, isMade]) => isMade)?.[0]; }

    play(element) {
        const [track] = element.srcObject?.getTracks?.() ?? [];
        // Another stream of the same track would only make it blink.
        if (track !== (this.track ?? undefined)) element.srcObject = this.track && new MediaStream([this.track]);
        if (this.track) start(element, () => this.silenced());
    }

    silenced() {}

    /**
     * Detaches it from an element, or from all, and removes those that were made here from the page. An element that an app discards continues to play what is
     * attached to it.
     * @param {HTMLMediaElement} [element]
     */
    detach(element) {
        for (const [shown, isMade] of this.elements) {
            if (element && shown !== element) continue;
            this.elements.delete(shown);
            shownIn.delete(shown);
            for (const type of ["pause", "play"]) shown.removeEventListener(type, notePause);
            halted.delete(shown);
            shown.srcObject = null;
            if (isMade) shown.remove();
        }
    }

    /** Elements that do not play; unless `isAll`, without those that a person or the app has paused. @param {boolean} isAll */
    paused(isAll) { return this.track ? [...this.elements.keys()].filter((one) => one.paused && (isAll || !halted.has(one))) : []; }

    setTrack(track) {
        this.track = track;
        for (const element of this.elements.keys()) this.play(element);
    }
}

/** A track that another participant publishes. */
export class Publication extends Showable {
    constructor(room, participant, info) {
        super(null);
        this.room = room;
        /** @type {Participant} */ this.participant = participant;
        /** The server's description (Protocol.md, section 3, "Values"). */ this.info = info;
    }

    /** @returns {string} */ get sid() { return this.info.sid; }
    /** @returns {"audio" | "video"} */ get kind() { return this.info.kind; }
    /** @returns {"microphone" | "camera" | "screen" | "screenAudio" | "unknown"} */ get source() { return this.info.source; }
    /** @returns {string} */ get name() { return this.info.name; }
    /** @returns {boolean} */ get muted() { return this.info.muted; }
    /** @returns {number | undefined} */ get width() { return this.info.width; }
    /** @returns {number | undefined} */ get height() { return this.info.height; }

    silenced() { this.room.fire("audioBlocked", {}); }

    /** Sets all preferences for it: absent ones have their defaults. Repetitions are not sent. @param {View} view */
    view(view = {}) { this.room.receiving?.view(this.sid, view); }

    /** Receives it: needed only without `autoSubscribe`. @param {View} [view] */
    async subscribe(view = {}) {
        if (!this.room.receiving) throw this.room.absence;
        await this.room.receiving.subscribe(this.sid, view);
    }

    /** Stops receiving it. */
    async unsubscribe() { await this.room.request("unsubscribe", { track: this.sid }); }

    /** Requests a keyframe from its publisher; rarely useful, because the server does so by itself. */
    async requestKeyframe() { await this.room.request("keyframe", { track: this.sid }); }
}

/** A local track. It outlives a fresh join, and a move to a room of another media worker: then it is published again, under another sid. */
export class LocalPublication extends Showable {
    constructor(owner, { track, source, ...options }, stream) {
        super(track);
        Object.assign(this, { owner, options, stream });
        this.work = Promise.resolve();
        /** @type {"microphone" | "camera" | "screen" | "screenAudio"} */ this.source = source;
    }

    /** null until the server has answered. @returns {string | null} */ get sid() { return this.owner.publishing?.sidOf(this.track) ?? null; }
    /** @returns {"audio" | "video"} */ get kind() { return this.track.kind === "audio" ? "audio" : "video"; }
    /** @returns {boolean} */ get muted() { return !this.track.enabled; }

    /**
     * Stops or resumes sending at once, and notifies the others. If the server accepts that only later (`rate_limited`), this rejects, and it is announced
     * again automatically. A camera continues to capture: its light stays on.
     * @param {boolean} muted
     */
    async setMuted(muted) {
        this.track.enabled = !muted;
        await this.owner.publishing?.announceMutes();
    }

    /**
     * Switches to another camera or microphone, without negotiation; muted as before. Rejects with `left` if it opens only after this was unpublished or the
     * room ended. If the other one does not open, the old device continues, possibly with another track (`openOther`).
     * @param {string} deviceId
     * @returns {Promise<MediaStreamTrack>}
     */
    switchDevice(deviceId) {
        return this.inTurn(async () => {
            if (!this.isCurrent) throw left();
            const old = this.track;
            const track = await openOther(old, deviceId, (same) => this.exchangeDevice(same));
            await this.exchangeDevice(track);
            old.stop();
            return track;
        });
    }

    /** Uses the track of a device. If it cannot be used, it is stopped here, because nobody would stop it later. */
    async exchangeDevice(track) {
        try {
            if (!await this.exchange(track)) throw left();
        } catch (problem) {
            track.stop();
            throw problem;
        }
    }

    /**
     * Sends another track of the same kind in the same section, without negotiation, muted as before. The old one is not stopped.
     * @param {MediaStreamTrack} track
     */
    async replaceTrack(track) { await this.inTurn(() => this.exchange(track)); }

    /** One change after the other: each replaces the track of the one before. */
    inTurn(change) {
        const result = this.work.then(change);
        this.work = result.catch(() => {});
        return result;
    }

    /** Whether the room sends it, or will when it is connected again. */
    get isCurrent() { return this.owner.holds(this); }

    /** Resolves with whether the new track was accepted: not after it was unpublished. */
    async exchange(track) {
        const old = this.track;
        track.enabled = old.enabled;
        let publishing;
        // If the connection ends meanwhile, the next one has begun with the old track.
        while (publishing !== this.owner.publishing) {
            publishing = this.owner.publishing;
            await publishing?.replace(old, track).catch((problem) => { if (problem.code !== "lost") throw problem; });
        }
        if (!this.isCurrent) return false;
        track.enabled = old.enabled; // It may have been muted meanwhile.
        this.setTrack(track);
        this.owner.replaced(old, this);
        return true;
    }

    /** Stops sending and capturing. */
    async unpublish() { await this.owner.unpublish([this]); }
}
