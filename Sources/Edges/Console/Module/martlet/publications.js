// The local publications: tracks that outlive the connection and the session on which they are sent.

import { openScreen } from "./capture.js";
import { MartletError, left } from "./errors.js";
import { LocalPublication } from "./participants.js";
import { Publishing } from "./publishing.js";

/** Refusals of an offer after which another try may succeed. */
const PASSING = new Set(["media_unavailable", "overloaded", "rate_limited", "too_many_requests"]);

/**
 * All local publications, and the `Publishing` of the current session.
 *
 * @typedef {import("./room.js").PublishOptions} PublishOptions
 */
export class LocalPublications {
    /**
     * `fire(type, detail)` notifies the app; `complain(problem)`: something failed that was not an action of the app; `isOver()`: whether the room was left or
     * has ended; `defaults()`, `onConnection(connection)` and `onClosed()` are those of `Publishing`.
     */
    constructor({ fire, complain, isOver, defaults, onConnection, onClosed }) {
        Object.assign(this, { fire, complain, isOver, defaults, onConnection, onClosed });
        this.byTrack = new Map(); // MediaStreamTrack -> LocalPublication
        this.captured = new Set(); // the tracks that `shareScreen` has opened, which nobody else would stop
        this.publishing = null; // without a session
        this.offeringLater = null; // the `publishing` that is about to offer once more
    }

    // MARK: The session

    /** A session has begun: what was published before is sent on it. */
    start(signal, configuration) {
        const { onConnection, onClosed } = this;
        this.publishing = new Publishing({
            signal, configuration, defaults: this.defaults(), onConnection, onClosed,
            onDenied: (source, track) => this.denied({ source, track }),
        });
        this.sendAll();
    }

    /** The server abandoned the connection: everything is sent on another one. */
    restart() {
        const { signal, configuration } = this.publishing;
        this.publishing.close();
        this.start(signal, configuration);
    }

    /** The session, whose connection is closed, is over: what is published waits for the next one. */
    stop() { this.publishing = null; }

    /** The stay is over. */
    end() {
        for (const track of this.captured) {
            this.byTrack.delete(track);
            this.release(track);
        }
    }

    /** Sends everything on a new connection, with one offer for what belongs together. */
    async sendAll() {
        const { publishing } = this;
        for (const stream of new Set([...this.byTrack.values()].map((one) => one.stream))) {
            await this.sendTogether([...this.byTrack.values()].filter((one) => one.stream === stream), stream, publishing);
        }
    }

    /** If it fails, the others continue: it is tried again while the server has no room for it, and otherwise no longer published. */
    async sendTogether(publications, stream, publishing) {
        const own = publications.filter((one) => one.isCurrent);
        if (!own.length || publishing !== this.publishing) return;
        try {
            await publishing.add(own.map(({ track, source, options }) => ({ track, source, ...options })), stream);
        } catch (problem) {
            // The next connection or session begins with it.
            if (problem.code === "lost" || publishing !== this.publishing) return;
            if (PASSING.has(problem.code)) {
                setTimeout(() => this.sendTogether(own, stream, publishing), Math.max(1, problem.retryAfter ?? 0) * 1000);
                return;
            }
            for (const one of own.filter(({ isCurrent }) => isCurrent)) this.denied(one);
            this.complain(problem);
        }
    }

    denied({ source, track }) {
        this.byTrack.delete(track);
        this.release(track);
        this.fire("publicationDenied", { source, track });
    }

    /** A track that is no longer sent is no longer captured either, if the module opened it. */
    release(track) { if (this.captured.delete(track)) track.stop(); }

    // MARK: What the app does; `Room` documents it

    async publish(track, options = {}) {
        const [publication] = await this.publishAll([{ track, source: track.kind === "audio" ? "microphone" : "camera", ...options }]);
        if (!publication) throw new MartletError("permission_denied", `The ${options.source ?? track.kind} may not be published in this room.`);
        return publication;
    }

    /** @param {({ track: MediaStreamTrack } & PublishOptions)[]} sources @param {MediaStream} [stream] @returns {Promise<LocalPublication[]>} */
    async publishAll(sources, stream = new MediaStream(sources.map(({ track }) => track))) {
        if (this.isOver()) return this.tooLate(sources);
        const made = sources.map((one) => new LocalPublication(this, one, stream));
        for (const one of made) this.byTrack.set(one.track, one);
        let failure = null;
        await this.publishing?.add(sources, stream).catch((problem) => { failure = problem; });
        // Another room may use them by now: the application stops what it opened.
        if (this.isOver()) throw left();
        // Lost meanwhile: the next session publishes it.
        if (failure && failure.code !== "lost") {
            for (const one of made) this.byTrack.delete(one.track);
            throw failure;
        }
        return made.filter((one) => this.byTrack.get(one.track) === one);
    }

    /** The room ended before these were published. */
    tooLate(sources) {
        for (const { track } of sources) {
            this.byTrack.delete(track);
            track.stop();
        }
        throw left();
    }

    async shareScreen(options) {
        if (this.isOver()) throw left();
        const sources = await openScreen(options);
        let made = [];
        // From now on, because a person may end it while it is being published.
        const end = () => this.unpublish(made).catch(this.complain);
        for (const { track } of sources) {
            this.captured.add(track);
            track.addEventListener("ended", end);
        }
        try {
            made = await this.publishAll(sources);
        } finally {
            for (const { track } of sources) if (!made.some((one) => one.track === track)) this.release(track);
        }
        if (!made.some(({ track }) => track.readyState === "ended")) return made;
        await this.unpublish(made);
        return [];
    }

    async unpublish(publications) {
        const tracks = publications.map(({ track }) => track).filter((track) => this.byTrack.delete(track));
        for (const one of publications) {
            this.captured.delete(one.track);
            one.track.stop();
            one.detach();
        }
        try {
            if (tracks.length) await this.publishing?.remove(tracks);
        } catch (problem) {
            if (problem.code !== "lost") throw problem; // The next session does not know them.
        }
    }

    // MARK: What a publication asks

    /** Whether the room sends it, or will when it is connected again. */
    holds(publication) { return !this.isOver() && this.byTrack.get(publication.track) === publication; }

    /** A publication has another track. */
    replaced(old, publication) {
        if (this.byTrack.delete(old)) this.byTrack.set(publication.track, publication);
    }

    // MARK: Events of the server

    /**
     * The server publishes nothing on a section. What is no longer permitted is no longer sent: the next offer would bring it back under another source. What
     * came too fast is offered again.
     */
    refused(event) {
        const publication = this.onSection(event);
        this.fire(event.type, { ...event, publication });
        if (publication && event.code === "rate_limited") this.offerLater();
        if (!publication || event.code !== "permission_denied" || !this.byTrack.delete(publication.track)) return;
        this.release(publication.track);
        this.publishing?.remove([publication.track]).catch(this.complain); // A listener may have left.
    }

    /** Makes another offer of everything, in so many seconds: with it the server accepts what it refused only for a while. */
    offerLater(seconds = 1) {
        const { publishing } = this;
        if (!publishing || this.offeringLater === publishing) return; // A listener may have left.
        this.offeringLater = publishing;
        setTimeout(() => {
            if (this.offeringLater === publishing) this.offeringLater = null;
            // The next connection or session offers everything.
            if (publishing !== this.publishing) return;
            publishing.offer().catch((problem) => {
                if (PASSING.has(problem.code)) this.offerLater(problem.retryAfter);
                else if (problem.code !== "lost") this.complain(problem);
            });
        }, Math.max(1, seconds) * 1000);
    }

    onSection({ connection, mid }) {
        return connection === "pub" ? this.byTrack.get(this.publishing?.onSection(mid)) ?? null : null;
    }

    /**
     * Somebody receives a local track for the first time; a moderator or operator muted it, or requests to unmute it, which only the person on this side does.
     */
    async concerns(event) {
        const { publishing } = this;
        // The sid of a track that was just published is known only when the server's answer has been applied.
        if (!publishing.find(event.track)) await publishing.work;
        const publication = this.byTrack.get(publishing.find(event.track));
        if (!publication) return;
        const reported = event.type === "trackMutedByOther" ? publication.setMuted(true) : null;
        this.fire(event.type, { ...event, publication });
        await reported;
    }
}
