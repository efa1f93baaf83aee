// A stay in a room: the session, who is here, what one sends and receives. It survives lost sockets and restarts of the server.

import { openScreen } from "./capture.js";
import { DataChannels } from "./channels.js";
import { ENDINGS, MartletError, left, lost } from "./errors.js";
import { FILE_TOPIC, FileExchange, MAX_FILE_BYTES } from "./files.js";
import { LocalPublication } from "./participants.js";
import { People } from "./people.js";
import { Publishing } from "./publishing.js";
import { Receiving } from "./receiving.js";
import { Signal } from "./signal.js";

/** What the module itself makes of the options; the rest are the fields of `join`. */
const OWN_OPTIONS = ["codec", "red", "simulcast", "speaker", "playAudio", "maxFileBytes"];

/** Refusals of an offer that another try may not meet. */
const PASSING = new Set(["media_unavailable", "overloaded", "rate_limited", "too_many_requests"]);

/**
 * @typedef {object} RoomOptions the fields of `join` (Protocol.md, section 3), and:
 * @property {string} [room] the room's name; needed only where the token names none
 * @property {string} [name] what others see, where the token has none
 * @property {string} [metadata]
 * @property {string} [password] of a room that asks for one
 * @property {boolean} [autoSubscribe] receive all tracks; true unless said otherwise
 * @property {boolean} [audioOnly]
 * @property {boolean} [speakers] send the events `speakers`; true unless said otherwise
 * @property {"full" | "publishOnly"} [profile]
 * @property {string} [codec] of video: "VP8", "H264", "VP9" or "AV1"; the browser's choice unless said otherwise
 * @property {boolean} [simulcast] send a camera in three sizes; true unless said otherwise
 * @property {boolean} [red] send audio with redundancy (RFC 2198)
 * @property {boolean} [playAudio] play the others' audio; true unless said otherwise
 * @property {string} [speaker] the id of the loudspeaker
 * @property {number} [maxFileBytes] larger files are declined; 100 MB unless said otherwise
 *
 * @typedef {object} PublishOptions
 * @property {"microphone" | "camera" | "screen" | "screenAudio"} [source] `microphone` or `camera` unless said otherwise
 * @property {string} [name]
 * @property {"motion" | "detail" | "text"} [hint] what to preserve when bandwidth is short
 * @property {"low" | "standard" | "high"} [priority]
 * @property {string} [codec] in place of the room's option, as `simulcast` and `red`
 * @property {boolean} [simulcast]
 * @property {boolean} [red]
 *
 * @typedef {import("./participants.js").Participant} Participant
 *
 * @typedef {object} Message
 * @property {string} [text]
 * @property {Uint8Array} [bytes] in place of `text`
 * @property {string} [topic]
 * @property {Participant} [participant] the sender; absent where the application's server sent it, or somebody who cannot be seen
 * @property {string} [identity] the sender's
 */

/**
 * A room. Its events (`room.on(type, listener)`, or `addEventListener` with the same in `event.detail`) are listed on the page /examples; every event of Protocol.md,
 * section 7, that is not listed there comes under its own name with its own fields.
 */
export class Room extends EventTarget {
    /**
     * Nothing happens before `connect`, so that listeners can be added first.
     * @param {string} url the server's address, "" for the one that served the page
     * @param {string | (() => string | Promise<string>)} token an access token, or a function that gets one within 15 s; it is called before each reconnect
     * @param {RoomOptions} [options]
     */
    constructor(url, token, options = {}) {
        super();
        Object.assign(this, { url, token, options });
        /** The server's description of the room (Protocol.md, section 3, "Values"). */ this.info = null;
        /** @type {"new" | "connecting" | "connected" | "reconnecting" | "closed"} */ this.state = "new";
        /** What one sends, by its track. @type {Map<MediaStreamTrack, LocalPublication>} */ this.publications = new Map();
        this.speaker = options.speaker ?? "";
        this.people = new People({
            fire: (type, detail) => this.fire(type, detail), onChange: () => this.receiving?.showAll(), onLeft: (sid) => this.files.left(sid),
        });
        this.files = new FileExchange({
            send: (content, to) => this.send(content, to), onFile: (file) => this.fire("file", { file, participant: this.participants.get(file.from) }),
            limit: () => options.maxFileBytes ?? MAX_FILE_BYTES, prepare: () => this.prepareForFiles(),
        });
    }

    /** The others, by sid. @type {Map<string, Participant>} */ get participants() { return this.people.others; }
    /** Oneself; null before the first join. @type {Participant | null} */ get localParticipant() { return this.people.local; }
    /** What the server calls the room; "" before the first join. @type {string} */ get name() { return this.info?.name ?? ""; }

    /**
     * Joins, once, however often it is called. Rejects with the server's code where it refuses, such as `password_required`, and with `left` where the room was left before.
     * @returns {Promise<Room>}
     */
    connect() {
        if (this.state === "closed" && !this.signal) return Promise.reject(left());
        // Another session of the same identity would end this one, and the room with it.
        if (this.state === "new" || this.state === "closed") this.entrance = this.begin();
        return this.entrance;
    }

    begin() {
        this.isSilent = false;
        const fields = Object.fromEntries(Object.entries(this.options).filter(([name]) => !OWN_OPTIONS.includes(name)));
        return new Promise((resolve, reject) => {
            this.settled = { resolve: () => resolve(this), reject };
            this.signal = new Signal({
                url: this.url, token: this.token, join: { speakers: true, ...fields },
                onJoined: (reply, iceServers) => this.enter(reply, iceServers),
                onGuest: () => this.fire("waitingForApproval", {}),
                onICEServers: (servers) => this.renewICEServers(servers),
                onEvent: (event) => this.handle(event),
                onState: (state, cause) => this.setState(state, cause),
                onSuspended: (seconds) => this.fire("suspended", { seconds }),
                onEnd: (problem) => this.end(problem),
            });
            // Whoever heard that it begins may have left.
            if (this.state === "closed") this.signal.leave();
        });
    }

    /**
     * Adds a listener, which gets the event's detail.
     * @param {string} type
     * @param {(detail: any) => void} listener
     * @returns {() => void} takes it away
     */
    on(type, listener) {
        const wrapped = (event) => listener(event.detail);
        this.addEventListener(type, wrapped);
        return () => this.removeEventListener(type, wrapped);
    }

    /** After `closed` there are no events: a listener may leave while something else is being reported. */
    fire(type, detail) {
        if (!this.isSilent) this.dispatchEvent(new CustomEvent(type, { detail }));
    }

    /** What went wrong beside an action of the app's; a lost connection says so itself, and the end of the stay, too. */
    complain(error) {
        if (error.code !== "lost" && error.code !== "left") this.fire("problem", { error });
    }

    /** Sends any request of Protocol.md; resolves with its reply. @param {string} type @param {object} [fields] @returns {Promise<any>} */
    request(type, fields) { return this.signal ? this.signal.request(type, fields) : Promise.reject(this.absence); }

    // MARK: The session

    /** A session, the first or a fresh one: everything of an older one is void, but what one publishes. */
    enter(reply, iceServers) {
        this.drop(lost());
        if (this.state === "closed") return; // A listener has left, here as below.
        this.configuration = { iceServers, bundlePolicy: "max-bundle" };
        this.info = reply.room;
        this.channels = new DataChannels({ signal: this.signal, onMessage: (message) => this.receive(message) });
        this.receiving = new Receiving({
            signal: this.signal, configuration: this.configuration, onProblem: (problem) => this.complain(problem),
            speaker: () => (this.options.playAudio === false ? null : this.speaker),
            onTracks: (tracks) => this.people.place(tracks),
            onSilenced: () => this.fire("audioBlocked", {}),
        });
        const isFresh = !this.settled;
        this.people.start(this, reply);
        this.fire("joined", { reply, isFresh });
        this.people.introduce();
        if (this.state === "closed") return;
        this.startPublishing();
        this.settled?.resolve();
        this.settled = null;
        if (this.publications.size) this.sendAll();
    }

    setState(state, cause) {
        const name = state === "connecting" && this.localParticipant ? "reconnecting" : state;
        if (name === "failed") return;
        this.state = name;
        this.fire("stateChanged", { state: name, cause });
    }

    /** New credentials of the TURN servers: for the next connection, and for an ICE restart of those that are open. */
    renewICEServers(iceServers) {
        if (!this.configuration) return; // Nobody has let one in yet: the join brings the newest.
        Object.assign(this.configuration, { iceServers });
        for (const owner of [this.publishing, this.receiving]) owner?.connection?.setConfiguration(this.configuration);
    }

    drop(problem) {
        this.files.stop(problem);
        this.publishing?.close();
        this.receiving?.reset();
        this.publishing = this.receiving = null;
        this.people.clear(problem.code);
    }

    end(error) {
        this.state = "closed";
        this.drop(error ?? left());
        this.settled?.reject(error);
        this.settled = null;
        // A listener may begin anew, and hears of that.
        this.isSilent = true;
        this.dispatchEvent(new CustomEvent("closed", { detail: { error } }));
    }

    /** Leaves: the others see it at once. What was captured is stopped by whoever opened it. */
    leave() {
        if (this.state === "closed") return;
        const error = left();
        this.files.stop(error);
        this.signal?.leave();
        this.settled?.reject(error);
        this.settled = null;
        this.end(null);
    }

    // MARK: Events of the server

    handle(event) {
        if (this.people.handle(event)) return;
        switch (event.type) {
        case "room": this.info = event.room; break;
        case "moved": return this.moved(event);
        case "layerDemand": this.publishing?.demandChanged(event.track, event.layers); break;
        case "connection": this.connectionChanged(event); break;
        case "publicationRefused": return this.refused(event);
        case "subscriptionEnded": this.receiving.forgetView(event.track); break;
        // `trackSubscribed` is the event of what one receives oneself.
        case "trackSubscribed": return this.concernsOwn({ ...event, type: "localTrackSubscribed" });
        case "trackMutedByOther":
        case "unmuteRequested": return this.concernsOwn(event).catch((problem) => this.complain(problem));
        case "data": return this.channels.receiveEvent(event);
        case "dataChannelClosed": this.channels.closedByServer(event); break;
        }
        this.fire(event.type, event);
        if (event.type === "ended") this.ended(event);
        // Listeners come first: what they prefer to see is told ahead of the answer.
        if (event.type === "offer") this.receiving?.take(event);
    }

    /** The server publishes nothing on a section. What is no longer permitted is not sent any more: the next offer would bring it back under another source. */
    refused(event) {
        const publication = this.onSection(event);
        this.fire(event.type, { ...event, publication });
        if (!publication || event.code !== "permission_denied" || !this.publications.delete(publication.track)) return;
        this.publishing.remove([publication.track]).catch((problem) => this.complain(problem));
    }

    /** An operator moved one to another room: the others are other people. Connections and what one publishes go on, or `connectionChanged` follows. */
    moved(event) {
        this.files.stop(new MartletError("moved", "You were moved to another room."));
        this.receiving.forget();
        this.people.clear("moved");
        if (this.state === "closed") return; // A listener has left.
        this.info = event.room;
        this.people.start(this, event);
        this.fire("moved", event);
        this.people.introduce();
    }

    ended({ reason, message }) {
        if (reason in ENDINGS) this.signal.end(new MartletError(reason, message ? `${ENDINGS[reason]} ${message}` : ENDINGS[reason]));
    }

    // MARK: Sending

    startPublishing() {
        this.publishing = new Publishing({
            signal: this.signal, configuration: this.configuration, defaults: { ...this.options, simulcast: this.options.simulcast ?? true },
            onConnection: (connection) => this.channels.openOn(connection),
            onClosed: () => this.channels.reset(),
            onDenied: (source, track) => {
                this.publications.delete(track);
                this.fire("publicationDenied", { source, track });
            },
        });
    }

    /** Why nothing is sent without a session. */
    get absence() { return this.state === "closed" ? left() : new MartletError("not_joined", "Not connected to the room yet."); }

    /** Everything of one's own, on a new connection: one offer for what belongs together. */
    async sendAll() {
        const { publishing } = this;
        for (const stream of new Set([...this.publications.values()].map((one) => one.stream))) {
            await this.sendTogether([...this.publications.values()].filter((one) => one.stream === stream), stream, publishing);
        }
    }

    /** Whatever becomes of it, the others go on: it is tried again while the server has no room for it, and else it is published no more. */
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
            for (const { track, source } of own.filter((one) => one.isCurrent)) {
                this.publications.delete(track);
                this.fire("publicationDenied", { source, track });
            }
            this.complain(problem);
        }
    }

    /**
     * Publishes a track. Rejects with `permission_denied` where the token or the room does not permit its source, with `left` where the room has ended: see `publishAll`.
     * @param {MediaStreamTrack} track
     * @param {PublishOptions} [options]
     * @returns {Promise<LocalPublication>}
     */
    async publish(track, options = {}) {
        const [publication] = await this.publishAll([{ track, source: track.kind === "audio" ? "microphone" : "camera", ...options }]);
        if (!publication) throw new MartletError("permission_denied", `The ${options.source ?? track.kind} may not be published in this room.`);
        return publication;
    }

    /**
     * Publishes what `openDevices` or `openScreen` gave, with one negotiation. What is not permitted is left out, and reported by `publicationDenied`. Rejects with `left`
     * where the room has ended, and stops the tracks then: a person may answer the browser's question after they left, and nobody else would turn the camera off.
     * @param {({ track: MediaStreamTrack } & PublishOptions)[]} sources
     * @param {MediaStream} [stream] what belongs together is played in step
     * @returns {Promise<LocalPublication[]>}
     */
    async publishAll(sources, stream = new MediaStream(sources.map(({ track }) => track))) {
        if (this.state === "closed") return this.tooLate(sources);
        const made = sources.map((one) => new LocalPublication(this, one, stream));
        for (const one of made) this.publications.set(one.track, one);
        let failure = null;
        await this.publishing?.add(sources, stream).catch((problem) => { failure = problem; });
        // They may be another room's by now: what the application opened is its own to stop.
        if (this.state === "closed") throw left();
        // Lost meanwhile: the next session publishes it.
        if (failure && failure.code !== "lost") {
            for (const one of made) this.publications.delete(one.track);
            throw failure;
        }
        return made.filter((one) => this.publications.get(one.track) === one);
    }

    /** The room ended before these were published. */
    tooLate(sources) {
        for (const { track } of sources) {
            this.publications.delete(track);
            track.stop();
        }
        throw left();
    }

    /**
     * Shares a screen, which the person chooses, until they end it by the browser's own button or `unpublish` is called.
     * @param {Parameters<typeof openScreen>[0]} [options]
     * @returns {Promise<LocalPublication[]>} its video, and its audio where there is some; none where the person has ended it already
     */
    async shareScreen(options) {
        if (this.state === "closed") throw left();
        const sources = await openScreen(options);
        let made = [];
        // From now on: a person may end it while it is being published.
        const end = () => this.unpublish(made).catch((problem) => this.complain(problem));
        for (const { track } of sources) track.addEventListener("ended", end);
        try {
            made = await this.publishAll(sources);
        } finally {
            // What is not sent is not captured either.
            for (const { track } of sources) if (!made.some((one) => one.track === track)) track.stop();
        }
        if (!made.some(({ track }) => track.readyState === "ended")) return made;
        await this.unpublish(made);
        return [];
    }

    /** Stops sending and capturing these, with one negotiation. @param {LocalPublication[]} publications */
    async unpublish(publications) {
        const tracks = publications.map(({ track }) => track).filter((track) => this.publications.delete(track));
        for (const one of publications) {
            one.track.stop();
            one.detach();
        }
        try {
            if (tracks.length) await this.publishing?.remove(tracks);
        } catch (problem) {
            if (problem.code !== "lost") throw problem; // The next session does not know them.
        }
    }

    /** A publication has another track. */
    replaced(old, publication) {
        if (this.publications.delete(old)) this.publications.set(publication.track, publication);
    }

    onSection({ connection, mid }) {
        return connection === "pub" ? this.publications.get(this.publishing?.onSection(mid)) ?? null : null;
    }

    /** Somebody receives one's track for the first time; a moderator or operator muted it, or asks for it to be unmuted: that only this side's person does. */
    async concernsOwn(event) {
        const { publishing } = this;
        // A track that was just published is known by its sid only when the server's answer was applied.
        if (!publishing.find(event.track)) await publishing.work;
        const publication = this.publications.get(publishing.find(event.track));
        if (!publication) return;
        const told = event.type === "trackMutedByOther" ? publication.setMuted(true) : null;
        this.fire(event.type, { ...event, publication });
        await told;
    }

    /** The server gave a connection up: what was on it starts again on a new one. */
    connectionChanged({ connection, state }) {
        if (state !== "closed") return;
        if (connection === "sub") this.receiving.reset();
        if (connection !== "pub" || !this.publishing?.connection) return;
        this.publishing.close();
        this.startPublishing();
        if (this.publications.size) this.sendAll();
        else this.openDataChannels().catch((problem) => this.complain(problem));
    }

    // MARK: Audio

    /** Plays the others on this loudspeaker; "" is the system's. @param {string} deviceId */
    async setSpeaker(deviceId) {
        this.speaker = deviceId;
        await this.receiving?.changeSpeaker();
    }

    /** To be called in a click after the event `audioBlocked`: browsers play no audio before a person has done something in the page. */
    startAudio() { this.receiving?.unsilence(); }

    // MARK: Data

    /** Messages of everybody come through here, from a channel or the socket. */
    receive(message) {
        if (message.topic === FILE_TOPIC) return this.files.receive(message);
        const { from, ...fields } = message;
        return this.fire("data", { ...fields, participant: this.participants.get(from) });
    }

    /**
     * Sends a message to everybody, or to those named. Over a data channel where one is open (it is, once something was published or `openDataChannels` was called), over
     * the WebSocket otherwise. Resolves when the next may be sent: a message that the server refuses on a channel is reported by the event `dataRefused`.
     * @param {string | ArrayBuffer | ArrayBufferView} content text or bytes, up to 254 KB (64 KB to members without a peer connection)
     * @param {{ topic?: string, to?: string[], reliable?: boolean }} [options] `to`: sids or identities; `reliable: false`: may be lost, and waits for nothing
     * @returns {Promise<void>}
     */
    send(content, options) {
        return this.publishing ? this.channels.send(content, options) : Promise.reject(this.absence);
    }

    /** Opens data channels without publishing anything. Resolves when they are negotiated. */
    async openDataChannels() {
        const { publishing } = this;
        if (!publishing) throw this.absence;
        const isMade = Boolean(publishing.connection);
        await publishing.open();
        await (isMade ? publishing.work : publishing.offer()); // Its first offer may be under way.
    }

    // Messages on channels leave the media that one receives what it needs; those on the WebSocket, which come where no channel is open, cannot.
    async prepareForFiles() {
        // A room without media of the server's, whose members connect to each other, has none: the file goes over the WebSocket.
        if (this.localParticipant?.permissions.canPublishData) await this.openDataChannels().catch(() => {});
        await this.channels?.whenOpen();
    }

    /**
     * Sends a file to everybody, or to those named, who accept it by the event `file`. Resolves when all of them have all of it.
     * @param {Blob} file
     * @param {{ to?: string[], name?: string, onProgress?: (bytes: number, size: number) => void, signal?: AbortSignal, acceptWithin?: number }} [options] `onProgress`:
     *     what the slowest receiver has; `acceptWithin`: milliseconds, 13,000 unless said otherwise
     * @returns {Promise<{ receivers: number }>} how many have it
     */
    async sendFile(file, options = {}) {
        const { to } = options;
        await this.prepareForFiles();
        if (!this.publishing) throw this.absence;
        const expected = [...this.participants.values()].filter((one) => one.info.profile !== "publishOnly" && (!to || to.includes(one.sid) || to.includes(one.identity)));
        if (!expected.length) throw new MartletError("participant_not_found", "There is nobody to send the file to.");
        return this.files.sendFile(file, options, expected.map(({ sid }) => sid));
    }
}
