// One stay in a room: the session, what one sends and receives, and who is here.

import { Signal } from "./signal.js";
import { Publishing } from "./publishing.js";
import { Receiving } from "./receiving.js";
import { chosen } from "./devices.js";
import { handIn } from "./hands.js";
import { Roster } from "./roster.js";
import { Tile } from "./grid.js";
import { SendLimits } from "./limits.js";
import { Figures, receivedStatistics, sentStatistics } from "./statistics.js";

/** Why a session ended for good, for a person. After any other end the socket's close says how to go on. */
const ENDINGS = {
    removed: "You were removed from the room.",
    duplicate_identity: "You joined this room from another window.",
    room_deleted: "The room was closed.",
    room_duration_reached: "The room has reached its longest duration.",
    stay_duration_reached: "You have reached the longest stay that this room allows.",
    token_expired: "Your access has expired.",
    policy_changed: "The room's rules were changed: it has no more room for you.",
};
/** One's own tracks by their source, for a person. */
const SOURCES = { camera: "camera", microphone: "microphone", screen: "screen", screenAudio: "screen's audio" };
/** Seconds between reports of what people see. */
const REPORT_EVERY = 10;
/** Between these states and a new connection nothing is sent. */
const BROKEN = new Set(["disconnected", "failed", "closed"]);

export class Room {
    /**
     * `media` is what `openMedia` gave, or null. Handlers: onEntered(room), onLock(lock), onRecording(recordings), onState(state, cause), onSuspended(seconds), onPeople(count),
     * onMuted(kind, muted, byOther), onUnmuteRequested(kind), onSilenced(), onWaiting(count, limit), onCapture(notice or null), onNews(lines), onHand(isRaised), onGuest(), onGuests(guests), onDrain(notice or null), onProblem(text),
     * onEnd(problem).
     */
    constructor({ token, join, media, codec, red, simulcast, ...handlers }) {
        Object.assign(this, { media, options: { codec, red, simulcast }, handlers });
        this.startedAt = performance.now();
        this.firstFrames = new Map(); // track sid -> milliseconds since the stay began
        this.started = new Set(); // sids of tracks of which the server has sent the first packet
        this.figures = new Figures();
        this.limits = new SendLimits();
        this.received = []; // what the browser last measured
        this.sinceReport = 0; // seconds
        this.reported = ""; // what the server was last told
        this.muted = { audio: false, video: false };
        this.joined = false;
        this.roster = new Roster({
            onView: () => this.tellViews(),
            onChange: () => {
                this.receiving?.showAll();
                handlers.onPeople(this.roster.count);
                handlers.onNews(this.roster.news);
            },
        });
        this.signal = new Signal({
            token, join,
            onJoined: (reply, hello) => this.enter(reply, hello).catch((problem) => this.complain(problem)),
            onGuest: handlers.onGuest,
            onICEServers: (servers) => this.renewICEServers(servers),
            onEvent: (event) => this.handle(event),
            onState: (state, cause) => this.setState(state, cause),
            onSuspended: handlers.onSuspended,
            onEnd: (problem) => { this.close(); handlers.onEnd(problem); },
        });
        this.timer = setInterval(() => this.refresh().catch((problem) => console.warn(problem.message)), 1000);
    }

    setState(state, cause) {
        this.joined = state === "connected" && Boolean(this.self);
        this.handlers.onState(state, cause);
    }

    // What went wrong beside an action of the person's; a lost connection says so itself.
    complain(problem) {
        if (problem.code !== "lost") this.handlers.onProblem(problem.message);
    }

    /** A fresh session: everything of an older one is void. */
    async enter(reply, hello) {
        this.drop();
        this.configuration = { iceServers: hello.iceServers, bundlePolicy: "max-bundle" };
        this.self = reply.participant;
        this.metadata = reply.participant.metadata;
        this.joined = true;
        this.handlers.onEntered(reply.room);
        this.handlers.onLock(reply.room.lock);
        this.handlers.onRecording(reply.room.recordings ?? []);
        this.handlers.onWaiting(0);
        this.handlers.onGuests(reply.guests ?? []);
        this.handlers.onDrain(reply.migrate ?? null);
        this.handlers.onCapture(null);
        this.receiving = new Receiving({
            signal: this.signal, configuration: this.configuration, onSilenced: this.handlers.onSilenced,
            onProblem: (problem) => this.complain(problem),
            speaker: () => chosen.speaker,
            show: (sid, track) => this.roster.tile(sid)?.show(track, () => this.noteFirstFrame(sid)),
        });
        for (const person of reply.participants) this.roster.add(person);
        this.handlers.onPeople(this.roster.count);
        await this.publish();
    }

    /** New credentials of the TURN servers: for the next connection, and for an ICE restart of those that are open. */
    renewICEServers(iceServers) {
        Object.assign(this.configuration, { iceServers });
        for (const connection of [this.pub, this.sub]) connection?.setConfiguration(this.configuration);
    }

    noteFirstFrame(sid) {
        if (!this.firstFrames.has(sid)) this.firstFrames.set(sid, performance.now() - this.startedAt);
    }

    handle(event) {
        switch (event.type) {
        case "participantJoined":
        case "participantUpdated":
            if (event.participant.sid !== this.self.sid) this.roster.add(event.participant);
            return this.tellViews();
        case "participantLeft": return this.roster.remove(event.participant);
        case "trackPublished":
        case "trackUpdated":
            this.roster.setTrack(event.track);
            return this.tellViews(); // Before its publisher encodes a size that nobody looks at.
        case "trackUnpublished": return this.roster.removeTrack(event.participant, event.track);
        case "room":
            this.handlers.onRecording(event.room.recordings ?? []);
            return this.handlers.onLock(event.room.lock);
        case "offer":
            this.tellViews(); // Ahead of the answer: nothing larger than the tiles is sent to begin with.
            return this.receiving.take(event);
        case "subscriptionStarted": return this.started.add(event.track);
        case "speakers": return this.markSpeakers(event.speakers);
        case "quality": return this.markQuality(event.participants);
        case "layerDemand": return this.publishing?.demandChanged(event.track, event.layers);
        case "connection": return this.connectionChanged(event);
        case "publicationRefused": return this.refused(event);
        case "subscriptionsWaiting": return this.handlers.onWaiting(event.waiting, event.limit);
        case "trackMutedByOther": return this.mutedByOther(event.track);
        case "migrate": return this.handlers.onDrain(event.cancelled ? null : event);
        case "capture": return this.handlers.onCapture(event.active ? event : null);
        case "unmuteRequested": return this.unmuteRequested(event.track);
        case "waitingRoom": return this.handlers.onGuests(event.guests);
        case "ended": return this.ended(event);
        }
    }

    markSpeakers(speakers) {
        const speaking = new Set(speakers.map((one) => one.participant));
        this.roster.markSpeakers(speaking);
        this.ownTile?.setSpeaking(speaking.has(this.self.sid));
    }

    markQuality(participants) {
        this.roster.markQuality(participants);
        const own = participants.find((one) => one.participant === this.self.sid);
        if (own) this.ownTile?.setQuality(own.quality);
    }

    // MARK: Sending

    async publish() {
        const { self, media } = this;
        this.ownTile = new Tile({
            key: "own", own: true, name: self.name || self.identity, isMirrored: media?.isMirrored,
            source: media?.videoTrack ? media.source : "person",
        });
        this.ownTile.setAudioMuted(this.muted.audio);
        this.ownTile.setVideoMuted(this.muted.video);
        if (media?.videoTrack) this.ownTile.show(media.videoTrack);
        if (this.hand) this.raiseHand(true).catch((problem) => this.complain(problem)); // A fresh session begins without it.
        this.publishing = new Publishing({
            signal: this.signal, configuration: this.configuration, ...this.options,
            onDenied: (source) => this.handlers.onProblem(`You may not send your ${SOURCES[source]} in this room.`),
        });
        if (media) await this.publishing.add(media.sources, media.stream);
        if (this.screen) await this.publishing.add(this.screen.sources, this.screen.stream);
    }

    /** Another camera or microphone; whether it is muted stays. */
    async replaceDevice(old, track) {
        track.enabled = old.enabled;
        await this.publishing?.replace(old, track);
        this.media.replace(old, track);
        if (track.kind === "video") this.ownTile?.show(track);
    }

    /** Raises or lowers one's hand, for all to see, in one's metadata; a token's own metadata stays beside it. */
    async raiseHand(isRaised) {
        const metadata = handIn(this.metadata, isRaised ? Date.now() : null);
        if (metadata === null) throw new Error("Your access token's metadata is no JSON object, so it has no place for a raised hand.");
        await this.signal.request("metadata", { metadata });
        Object.assign(this, { metadata, hand: isRaised });
        this.ownTile?.setHand(isRaised);
        this.handlers.onHand(isRaised);
    }

    /** Shares a screen beside the camera; its end, by the browser's own button too, is told by `onEnded`. */
    async share(screen, onEnded) {
        this.screen = Object.assign(screen, { onEnded });
        for (const { track } of screen.sources) track.onended = () => { this.stopSharing().catch((problem) => this.complain(problem)); onEnded(); };
        try {
            await this.publishing?.add(screen.sources, screen.stream);
        } catch (problem) {
            if (problem.code === "lost") return; // The next session publishes it.
            this.screen = null;
            screen.stop();
            throw problem;
        }
    }

    async stopSharing() {
        const screen = this.screen;
        this.screen = null;
        screen?.stop();
        if (screen) await this.publishing?.remove(screen.sources.map(({ track }) => track));
    }

    /** The server takes no more tracks of one participant; a screen that nobody would see is not captured either. */
    refused({ connection, mid, code }) {
        if (connection !== "pub") return;
        const source = this.publishing?.sourceOf(mid);
        const why = code === "permission_denied" ? "it is no longer permitted in this room." : "you have reached the limit of published tracks.";
        this.handlers.onProblem(`The others do not receive your ${SOURCES[source] ?? "track"}: ${why}`);
        if (source !== "screen" || !this.screen) return;
        const { onEnded } = this.screen;
        this.stopSharing().catch((problem) => this.complain(problem));
        onEnded();
    }

    async setMuted(kind, muted, byOther = false) {
        this.muted[kind] = muted;
        this.handlers.onMuted(kind, muted, byOther);
        if (kind === "audio") this.ownTile?.setAudioMuted(muted);
        else this.ownTile?.setVideoMuted(muted);
        // At once, whether or not the server can be told: the next session announces the track as it is.
        for (const { track, source } of this.media?.sources ?? []) {
            if (track.kind === kind && !source.startsWith("screen")) track.enabled = !muted;
        }
        await this.publishing?.tellMuted();
    }

    async mutedByOther(sid) {
        const own = await this.ownTrack(sid);
        if (!own || own.source.startsWith("screen")) return;
        this.setMuted(own.kind, true, true).catch((problem) => this.complain(problem));
    }

    /** A moderator or operator would like to hear or see somebody: only that person turns anything on. */
    async unmuteRequested(sid) {
        const own = await this.ownTrack(sid);
        if (own && !own.source.startsWith("screen")) this.handlers.onUnmuteRequested(own.kind);
    }

    /** What is sent as `sid`. A track that was just published is known by it only when the server's answer was taken. */
    async ownTrack(sid) {
        const publishing = this.publishing;
        if (!publishing.find(sid)) await publishing.work;
        return publishing.find(sid);
    }

    // MARK: Receiving

    /** Asks of each video for what its tile can show and no more, unless a person chose otherwise. */
    tellViews() {
        if (!this.receiving || !this.self.permissions.canSubscribe) return;
        for (const { track, tile, choice } of this.roster.videos()) {
            if (!tile) continue;
            const { size = "fit", priority, pinned, hidden } = choice;
            this.receiving.view(track.sid, {
                ...layer(size, tile, track), ...(priority && { priority }), ...(pinned && { pinned }), ...(hidden && { hidden }),
            });
        }
    }

    /** Says on each tile what is shown there, and why not more. */
    async explain() {
        const { videos, estimate } = await this.signal.request("allocation");
        for (const video of videos) this.roster.tile(video.track)?.setWhy(video, estimate);
    }

    /** Once a second, with or without a server: what a browser measures is true, and what stands still has to be said. */
    async refresh() {
        const [received, sent] = await Promise.all([receivedStatistics(this.sub), sentStatistics(this.pub)]);
        this.received = received;
        this.showReceived(received.filter((one) => one.kind === "video"));
        this.showSent(sent.filter((one) => one.kind === "video" && one.mid === this.ownMid));
        if (!this.joined) return;
        this.tellViews();
        this.sinceReport += 1;
        if (this.sinceReport >= REPORT_EVERY) this.report();
        if (this.sub) await this.explain().catch((problem) => problem.code === "lost" || console.warn(problem.message));
    }

    showReceived(received) {
        const bySID = new Map(received.map((one) => [this.receiving?.tracks.get(one.mid), one]));
        for (const { track, tile, choice } of this.roster.videos()) {
            const one = bySID.get(track.sid);
            if (one) tile?.setFigures(this.figures.received(one));
            const isExpected = !track.muted && !choice.hidden && choice.size !== "paused";
            const seconds = this.figures.still(track.sid, one?.framesDecoded ?? 0, { isExpected, source: track.source });
            tile?.setStill(seconds ? `No frames for ${seconds} s` : "");
        }
    }

    showSent(sent) {
        if (!this.media?.videoTrack || !this.ownTile) return;
        const isBroken = BROKEN.has(this.pub?.connectionState);
        const figures = this.figures.sent(sent), limit = this.limits.look(sent, this.ownSender?.getParameters().encodings ?? []);
        const isReported = this.joined && !isBroken && !this.muted.video;
        this.ownTile.setFigures(isReported ? figures : {});
        this.ownTile.setLimit(isReported ? limit : { reason: "", text: "" });
        this.ownTile.setStill(isBroken ? "Not sent" : "");
    }

    get ownMid() { return this.publishing?.sent.get(this.media?.videoTrack)?.transceiver.mid; }
    get ownSender() { return this.publishing?.sent.get(this.media?.videoTrack)?.transceiver.sender; }
    get pub() { return this.publishing?.connection ?? null; }
    get sub() { return this.receiving?.connection ?? null; }

    // MARK: Life

    /** The server gave a connection up: what was on it starts again on a new one. */
    connectionChanged({ connection, state }) {
        if (state !== "closed") return;
        if (connection === "sub") return this.receiving.reset();
        if (connection !== "pub" || !this.pub) return;
        this.publishing.close();
        this.ownTile?.remove();
        this.publish().catch((problem) => this.complain(problem));
    }

    ended({ reason, message }) {
        if (reason in ENDINGS) this.signal.end(new Error(message ? `${ENDINGS[reason]} ${message}` : ENDINGS[reason]));
    }

    drop() {
        this.publishing?.close();
        this.receiving?.reset();
        this.publishing = this.receiving = null;
        this.roster.clear();
        this.ownTile?.remove();
        this.ownTile = null;
        this.joined = false;
        this.reported = "";
    }

    close() {
        clearInterval(this.timer);
        this.screen?.stop();
        this.drop();
    }

    /** Reports freezes of what is played, where they have changed since the last report. */
    report() {
        this.sinceReport = 0;
        const tracks = this.received.map((one) => ({ ...one, track: this.receiving?.tracks.get(one.mid) }))
            .filter((one) => one.kind === "video" && one.track && one.totalFreezesDuration !== null)
            .map(({ track, freezeCount, totalFreezesDuration }) => ({ track, freezeCount, totalFreezesDuration }));
        const text = JSON.stringify(tracks);
        if (!tracks.length || text === this.reported) return;
        this.reported = text;
        this.signal.request("report", { tracks }).catch(() => { this.reported = ""; });
    }

    leave() {
        if (this.joined) this.report();
        this.signal.leave();
        this.close();
    }
}

/** What is asked of the server for a chosen size. */
function layer(size, tile, track) {
    switch (size) {
    case "fit": return fitting(tile.pixelHeight, track.height);
    case "best": return {};
    case "paused": return { paused: true };
    default: return { spatial: Number(size) };
    }
}

/** The preference for a tile of so many pixels: rounded up, so that a window that grows a little changes nothing. */
function fitting(pixels, height) {
    const wanted = [180, 360, 540, 720, 1080].find((step) => step >= pixels);
    return wanted && wanted < (height ?? 0) ? { height: wanted } : {};
}
