// One stay in a room, as the page shows it: what is sent and received, and who is here. The stay itself is the module's (martlet.js).

import { Room, openOther } from "/martlet.js";
import { chosen } from "./devices.js";
import { handIn } from "./hands.js";
import { Roster } from "./roster.js";
import { Tile } from "./grid.js";
import { SendLimits } from "./limits.js";
import { Figures, receivedStatistics, sentStatistics } from "./statistics.js";

/** Names of the local tracks by their source, for people. */
const SOURCES = { camera: "camera", microphone: "microphone", screen: "screen", screenAudio: "screen's audio" };
/** The source of each kind, if nothing is shared. */
const DEVICES = { audio: "microphone", video: "camera" };
/** Seconds between reports of what people see. */
const REPORT_EVERY = 10;
/** In these states, until there is a new connection, nothing is sent. */
const BROKEN = new Set(["disconnected", "failed", "closed"]);

export class Call {
    /**
     * `media` is what `openMedia` gave, or null. Handlers: onEntered(room), onLock(lock), onRecording(recordings), onState(state, cause), onSuspended(seconds),
     * onPeople(count), onMuted(kind, muted, byOther), onUnmuteRequested(kind), onSharingEnded(), onSilenced(), onWaiting(count, limit), onCapture(notice or
     * null), onNews(lines), onHand(isRaised), onGuest(), onGuests(guests), onDrain(notice or null), onMessage(message), onMessageRefused({ topic, message }),
     * onFile({ file, participant }), onProblem(text), onEnd(problem).
     */
    constructor({ token, join, media, codec, red, simulcast, ...handlers }) {
        Object.assign(this, { media, handlers });
        this.startedAt = performance.now();
        this.firstFrames = new Map(); // track sid -> milliseconds since the stay began
        this.started = new Set(); // sids of tracks of which the server has sent the first packet
        this.figures = new Figures();
        this.limits = new SendLimits();
        this.received = []; // what the browser last measured
        this.sinceReport = 0; // seconds
        this.reported = ""; // what was last reported to the server
        this.muted = { audio: false, video: false };
        this.opening = {}; // kind -> the search for a device to replace a missing one
        this.replacing = {}; // kind -> its last change of devices
        this.roster = new Roster({
            onView: () => this.tellViews(),
            onChange: () => {
                handlers.onPeople(this.roster.count);
                handlers.onNews(this.roster.news);
            },
        });
        this.room = new Room("", token, { ...join, codec, red, simulcast, speaker: chosen.speaker });
        this.roster.people = this.room.participants;
        this.listen();
        this.timer = setInterval(() => this.refresh().catch((problem) => console.warn(problem.message)), 1000);
        this.room.connect().catch(() => {}); // `closed` says why.
        if (media?.source === "screen") this.keepScreen(media, () => handlers.onSharingEnded());
        if (media) this.room.publishAll(media.sources, media.stream).catch((problem) => this.complain(problem));
        if (media?.isFromDevices) for (const { track } of media.sources) this.watch(track);
    }

    get joined() { return this.room.state === "connected"; }
    get self() { return this.room.localParticipant; }
    get signal() { return this.room.signal; }
    get publishing() { return this.room.publishing; }
    get receiving() { return this.room.receiving; }
    get pub() { return this.publishing?.connection ?? null; }
    get sub() { return this.receiving?.connection ?? null; }

    // Reports a failure outside of a person's actions; a lost connection and the end of the stay are shown elsewhere.
    complain(problem) {
        if (problem.code !== "lost" && problem.code !== "left") this.handlers.onProblem(problem.message);
    }

    /** The page's reactions to the room's events. */
    listen() {
        const { room, roster, handlers } = this;
        const listeners = {
            joined: ({ reply }) => {
                handlers.onCapture(null); // Not so after a move: a capture goes on.
                this.enter(reply);
            },
            stateChanged: ({ state, cause }) => handlers.onState(state === "reconnecting" ? "connecting" : state, cause),
            moved: (event) => {
                this.enter(event);
                handlers.onProblem(`You were moved to the room ${event.room.name}.`);
            },
            suspended: ({ seconds }) => handlers.onSuspended(seconds),
            waitingForApproval: () => handlers.onGuest(),
            closed: ({ error }) => {
                this.close();
                if (error) handlers.onEnd(error);
            },
            problem: ({ error }) => this.complain(error),
            participantJoined: ({ participant }) => this.arrange(participant),
            participantUpdated: ({ participant }) => (participant.isLocal ? this.changed(participant) : this.arrange(participant)),
            participantLeft: ({ participant }) => roster.remove(participant),
            trackPublished: ({ participant }) => this.arrange(participant),
            trackUpdated: ({ participant }) => this.arrange(participant),
            trackUnpublished: ({ publication, participant }) => roster.removeTrack(participant, publication),
            trackSubscribed: ({ publication }) => this.show(publication),
            room: ({ room: { lock, recordings = [], allowMessages = true } }) => {
                handlers.onMessagesAllowed(allowMessages);
                handlers.onRecording(recordings);
                handlers.onLock(lock);
            },
            offer: () => this.tellViews(), // Before the answer, so that nothing larger than the tiles is sent at the beginning.
            subscriptionStarted: ({ track }) => this.started.add(track),
            speakers: ({ speakers }) => this.markSpeakers(speakers),
            quality: ({ participants }) => this.markQuality(participants),
            publicationDenied: ({ source }) => {
                handlers.onProblem(`You may not send your ${SOURCES[source]} in this room.`);
                this.notSent(source);
            },
            publicationRefused: (event) => this.refused(event),
            subscriptionsWaiting: ({ waiting, limit }) => handlers.onWaiting(waiting, limit),
            trackMutedByOther: ({ publication }) => this.mutedByOther(publication),
            unmuteRequested: ({ publication }) => publication.source.startsWith("screen") || handlers.onUnmuteRequested(publication.kind),
            migrate: (event) => handlers.onDrain(event.cancelled ? null : event),
            capture: (event) => handlers.onCapture(event.active ? event : null),
            waitingRoom: ({ guests }) => handlers.onGuests(guests),
            audioBlocked: () => handlers.onSilenced(),
            data: (message) => handlers.onMessage(message),
            dataRefused: (refusal) => handlers.onMessageRefused(refusal),
            file: (offer) => handlers.onFile(offer),
        };
        for (const [type, listener] of Object.entries(listeners)) room.on(type, listener);
    }

    /** An event as the server sends it: tests send their own. */
    handle(event) { this.room.handle(event); }

    /** A fresh session, or another room: everything of the previous one is void. */
    enter({ room, participant, guests = [], migrate = null }) {
        const { handlers } = this;
        this.reported = "";
        this.metadata = participant.metadata;
        handlers.onEntered(room);
        handlers.onMessagesAllowed(room.allowMessages ?? true);
        handlers.onLock(room.lock);
        handlers.onRecording(room.recordings ?? []);
        handlers.onWaiting(0);
        handlers.onGuests(guests);
        handlers.onDrain(migrate);
        handlers.onPeople(this.roster.count);
        this.showOwn();
        // A fresh session begins without it; the place in the order stays.
        if (this.hand) this.raiseHand(true, this.hand).catch((problem) => this.complain(problem));
    }

    /** The own tile, with what is sent now. */
    showOwn() {
        const { media, self } = this;
        this.ownTile?.remove();
        this.ownTile = new Tile({
            key: "own", own: true, name: self.name || self.identity, isMirrored: media?.isMirrored,
            source: media?.videoTrack ? media.source : "person",
        });
        this.ownTile.setAudioMuted(this.muted.audio);
        this.ownTile.setVideoMuted(this.muted.video);
        if (self.quality !== null) this.ownTile.setQuality(self.quality);
        if (media?.videoTrack) this.ownTile.show(media.videoTrack);
    }

    /** The own participant, as others see it: an operator may have changed that. */
    changed({ name, identity, metadata }) {
        this.metadata = metadata;
        this.ownTile?.setName(name || identity);
        this.handlers.onPermissions();
    }

    /** A participant's tiles, and the requested sizes: before a publisher encodes a size that nobody sees. */
    arrange(participant) {
        this.roster.arrange(participant);
        for (const publication of participant.tracks) if (publication.track) this.show(publication);
        this.tellViews();
    }

    show({ sid, kind, track }) {
        if (kind === "video") this.roster.tile(sid)?.show(track, () => this.noteFirstFrame(sid));
    }

    noteFirstFrame(sid) {
        if (!this.firstFrames.has(sid)) this.firstFrames.set(sid, performance.now() - this.startedAt);
    }

    markSpeakers(speakers) {
        this.roster.markSpeakers(new Set(speakers.map(({ participant }) => participant.sid)));
        this.ownTile?.setSpeaking(this.self.isSpeaking);
    }

    markQuality(participants) {
        for (const { participant, quality } of participants) {
            if (participant.isLocal) this.ownTile?.setQuality(quality);
            else this.roster.markQuality(participant);
        }
    }

    // MARK: Sending

    /** Switches to another camera or microphone, and keeps its mute state. Changes of one kind follow each other: a track that opens too late is stopped. */
    replaceDevice(old, track) {
        const { kind } = track, result = (this.replacing[kind] ?? Promise.resolve()).then(() => this.replaceNow(old, track));
        this.replacing[kind] = result.catch(() => {});
        return result;
    }

    /** Whether this device is still used, in a stay that continues. */
    has(track) { return this.room.state !== "closed" && Boolean(this.media?.sources.some((one) => one.track === track)); }

    async replaceNow(old, track) {
        if (!this.has(old)) return track.stop();
        track.enabled = old.enabled;
        await this.room.publications.get(old)?.replaceTrack(track).catch((problem) => { track.stop(); throw problem; });
        if (!this.has(old)) return track.stop();
        this.media.replace(old, track);
        this.watch(track);
        if (track.kind === "video") this.ownTile?.show(track);
    }

    /** Notices that a camera or microphone is unplugged, or that a person withdraws it from the page; between the form and the call, too. */
    watch(track) {
        const lost = () => this.deviceLost(track).catch((problem) => this.complain(problem));
        if (track.readyState === "ended") lost();
        else track.onended = lost;
    }

    /** Replaces a missing camera or microphone by another one. If there is none, everybody sees that it is off, and turning it on searches again. */
    async deviceLost(old) {
        const problem = await this.replaceGone(old).catch((failure) => failure);
        if (this.room.state === "closed") return;
        if (problem) await this.setMuted(old.kind, true);
        this.handlers.onProblem(`Your ${DEVICES[old.kind]} was disconnected. ${problem?.message ?? "Another one is used now."}`);
    }

    /** A call while another one is being opened waits for that one. */
    replaceGone(old) {
        return this.opening[old.kind] ??= this.openAnother(old).finally(() => { this.opening[old.kind] = null; });
    }

    async openAnother(old) {
        const track = await openOther(old).catch((problem) => {
            throw problem.name === "NotFoundError" ? new Error(`There is no ${DEVICES[old.kind]}: connect one and turn it on.`) : problem;
        });
        // If the person left meanwhile, or chose another device, it is stopped.
        if (!this.has(old)) track.stop();
        else await this.replaceDevice(old, track);
    }

    /** Raises or lowers the own hand, visible to all, in the participant's metadata; the token's own metadata is kept. */
    async raiseHand(isRaised, at = Date.now()) {
        const hand = isRaised ? at : null, metadata = handIn(this.metadata, hand);
        if (metadata === null) throw new Error("Your access token's metadata is no JSON object, so it has no place for a raised hand.");
        await this.signal.request("metadata", { metadata });
        Object.assign(this, { metadata, hand });
        this.ownTile?.setHand(isRaised);
        this.handlers.onHand(isRaised);
    }

    /** Shares a screen in addition to the camera; `onEnded` reports its end, including by the browser's own button. */
    async share(screen, onEnded) {
        this.keepScreen(screen, onEnded);
        try {
            await this.room.publishAll(screen.sources, screen.stream);
        } catch (problem) {
            if (this.screen === screen) this.screen = null;
            screen.stop();
            throw problem;
        }
    }

    /** A screen is sent until the person ends it, in the page or by the browser's own button, or the room no longer accepts it. */
    keepScreen(screen, onEnded) {
        this.screen = Object.assign(screen, { onEnded });
        for (const { track } of screen.sources) track.onended = () => { if (this.screen === screen) this.endScreen(); };
    }

    endScreen() {
        const { onEnded } = this.screen;
        this.stopSharing().catch((problem) => this.complain(problem));
        onEnded();
    }

    async stopSharing() {
        const screen = this.screen;
        this.screen = null;
        screen?.stop();
        if (screen && screen === this.media) {
            this.media = null; // Joined with it: nothing else is sent.
            if (this.ownTile) this.showOwn();
            this.ownTile?.setHand(Boolean(this.hand));
        }
        if (screen) await this.room.unpublish(screen.sources.map(({ track }) => this.room.publications.get(track)).filter(Boolean));
    }

    /** The server accepts no more tracks from this participant; a screen that nobody would see is no longer captured either. */
    refused({ connection, publication, code }) {
        if (connection !== "pub") return;
        const why = {
            permission_denied: "it is no longer permitted in this room.", rate_limited: "too much is published at once. It is tried again.",
        }[code] ?? "you have reached the limit of published tracks.";
        this.handlers.onProblem(`The others do not receive your ${SOURCES[publication?.source] ?? "track"}: ${why}`);
        if (publication && code !== "rate_limited" && (code === "permission_denied" || publication.source === "screen")) this.notSent(publication.source);
    }

    /** What is not sent is shown as off, and a screen is not captured either. */
    notSent(source) {
        if (source === "screen" && this.screen) this.endScreen();
        else if (!source.startsWith("screen")) this.setMuted(source === "camera" ? "video" : "audio", true).catch((problem) => this.complain(problem));
    }

    async setMuted(kind, muted, byOther = false) {
        const own = (this.media?.sources ?? []).filter(({ track, source }) => track.kind === kind && !source.startsWith("screen"));
        const gone = !muted && this.media?.isFromDevices && own.find(({ track }) => track.readyState === "ended");
        if (gone) await this.replaceGone(gone.track);
        this.muted[kind] = muted;
        this.handlers.onMuted(kind, muted, byOther);
        if (kind === "audio") this.ownTile?.setAudioMuted(muted);
        else this.ownTile?.setVideoMuted(muted);
        // At once, whether or not the server can be reached: the next session announces the track as it is.
        for (const { track } of own) track.enabled = !muted;
        // The room may now permit what it refused before.
        const refused = muted || !this.joined ? [] : own.filter(({ track }) => !this.room.publications.has(track));
        if (refused.length) {
            await this.room.publishAll(refused, this.media.stream).catch(async (problem) => {
                await this.setMuted(kind, true);
                throw problem;
            });
        }
        await this.publishing?.announceMutes();
    }

    mutedByOther({ kind, source }) {
        if (!source.startsWith("screen")) this.setMuted(kind, true, true).catch((problem) => this.complain(problem));
        else this.handlers.onProblem(`A moderator or operator turned off your ${SOURCES[source]}. To go on, stop sharing and share it again.`);
    }

    // MARK: Receiving

    /** Requests of each video what its tile can show and no more, unless a person chose otherwise. */
    tellViews() {
        if (!this.receiving || !this.self.permissions.canSubscribe) return;
        for (const { track, tile, choice } of this.roster.videos()) {
            if (!tile) continue;
            const { size = "fit", priority, pinned, hidden } = choice;
            track.view({
                ...layer(size, tile, track), ...(priority && { priority }), ...(pinned && { pinned }), ...(hidden && { hidden }),
            });
        }
    }

    /** Shows on each tile which layer it has, and why not more. */
    async explain() {
        const { videos, estimate } = await this.signal.request("allocation");
        for (const video of videos) this.roster.tile(video.track)?.setWhy(video, estimate);
    }

    /** Once per second, with or without a server: the browser's own measurements are valid, and a frozen video must be shown as such. */
    async refresh() {
        const [received, sent] = await Promise.all([receivedStatistics(this.sub), sentStatistics(this.pub)]);
        this.received = received;
        this.showReceived(received.filter((one) => one.kind === "video"));
        this.showSent(sent.filter((one) => one.kind === "video" && one.mid === this.ownMid));
        if (!this.joined) return;
        this.tellViews();
        this.sinceReport += 1;
        if (this.sinceReport >= REPORT_EVERY) this.report();
        if (this.sub) await this.explain().catch((problem) => ["lost", "left"].includes(problem.code) || console.warn(problem.message));
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

    // MARK: Life

    close() {
        clearInterval(this.timer);
        this.screen?.stop();
        this.ownTile?.remove();
    }

    /** Reports freezes of played videos, if they have changed since the last report. */
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
        this.room.leave();
    }
}

/** The request to the server for a chosen size. */
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
