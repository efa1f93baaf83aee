// A stay in a room: the session, the participants, what is sent and received. It survives lost sockets and restarts of the server.

import { listDevices } from "./capture.js";
import { DataChannels } from "./channels.js";
import { ENDINGS, MartletError, left, lost } from "./errors.js";
import { FILE_TOPIC, FileExchange, MAX_FILE_BYTES } from "./files.js";
import { People } from "./people.js";
import { LocalPublications } from "./publications.js";
import { Receiving, start } from "./receiving.js";
import { Signal } from "./signal.js";

/** The options that the module itself uses; the others are fields of `join`. */
const OWN_OPTIONS = ["codec", "red", "simulcast", "speaker", "playAudio", "maxFileBytes"];

/**
 * @typedef {object} RoomOptions the fields of `join` (Protocol.md, section 3), and:
 * @property {string} [room] the room's name; needed only if the token names none
 * @property {string} [name] the name that others see, if the token has none
 * @property {string} [metadata]
 * @property {string} [password] of a room that requires one
 * @property {boolean} [autoSubscribe] receive all tracks; true by default
 * @property {boolean} [audioOnly]
 * @property {boolean} [speakers] send the events `speakers`; true by default
 * @property {"full" | "publishOnly"} [profile]
 * @property {string} [codec] of video: "VP8", "H264", "VP9" or "AV1"; by default the browser's choice
 * @property {boolean} [simulcast] send a camera in three sizes; true by default
 * @property {boolean} [red] send audio with redundancy (RFC 2198)
 * @property {boolean} [playAudio] play the others' audio; true by default
 * @property {string} [speaker] the id of the loudspeaker
 * @property {number} [maxFileBytes] larger files are declined; 100 MB by default
 *
 * @typedef {object} PublishOptions
 * @property {"microphone" | "camera" | "screen" | "screenAudio"} [source] `microphone` or `camera` by default
 * @property {string} [name]
 * @property {"motion" | "detail" | "text"} [hint] what to preserve when bandwidth is short
 * @property {"low" | "standard" | "high"} [priority]
 * @property {string} [codec] overrides the room's option, as do `simulcast` and `red`
 * @property {boolean} [simulcast]
 * @property {boolean} [red]
 *
 * @typedef {import("./participants.js").LocalPublication} LocalPublication
 * @typedef {import("./participants.js").Participant} Participant
 *
 * @typedef {object} Message
 * @property {string} [text]
 * @property {Uint8Array} [bytes] instead of `text`
 * @property {string} [topic]
 * @property {Participant} [participant] the sender; absent if the application's server or a hidden participant sent it
 * @property {string} [identity] the sender's
 */

/**
 * A room. Its events (`room.on(type, listener)`, or `addEventListener` with the same in `event.detail`) are listed on the page /examples; every event of
 * Protocol.md, section 7, that is not listed there is fired under its own name with its own fields.
 */
export class Room extends EventTarget {
    /**
     * Nothing happens before `connect`, so that listeners can be added first.
     * @param {string} url the server's address, "" for the one that served the page
     * @param {string | (() => string | Promise<string>)} token an access token, or a function that gets one; it is called before each reconnect and before a
     *     token expires, and then has 15 s
     * @param {RoomOptions} [options]
     */
    constructor(url, token, options = {}) {
        super();
        Object.assign(this, { url, token, options });
        /** The server's description of the room (Protocol.md, section 3, "Values"). */ this.info = null;
        /** @type {"new" | "connecting" | "connected" | "reconnecting" | "closed"} */ this.state = "new";
        this.speaker = options.speaker ?? ""; // as chosen
        this.isSpeakerGone = false;
        this.devicesChanged = () => this.followSpeaker().catch((problem) => this.complain(problem));
        this.seen = () => { if (!document.hidden) this.playAll(() => this.fire("audioBlocked", {}), false); };
        this.own = new LocalPublications({
            fire: (type, detail) => this.fire(type, detail), complain: (problem) => this.complain(problem), isOver: () => this.state === "closed",
            defaults: () => ({ ...this.options, simulcast: this.options.simulcast ?? true }),
            onConnection: (connection) => this.channels.openOn(connection), onClosed: () => this.channels.reset(),
        });
        this.people = new People({
            fire: (type, detail) => this.fire(type, detail), onChange: () => this.receiving?.showAll(), onLeft: (sid) => this.files.left(sid),
        });
        this.files = new FileExchange({
            send: (content, to) => this.send(content, to), onFile: (file) => this.fire("file", { file, participant: this.participants.get(file.from) }),
            limit: () => options.maxFileBytes ?? MAX_FILE_BYTES, prepare: () => this.prepareForFiles(),
        });
    }

    /** The others, by sid. @type {Map<string, Participant>} */ get participants() { return this.people.others; }
    /** This client itself; null before the first join. @type {Participant | null} */ get localParticipant() { return this.people.local; }
    /**
     * The local publications, by their tracks. They stay here after the end, when nothing sends them, except a screen of `shareScreen`: the next `connect`
     * publishes them again.
     * @type {Map<MediaStreamTrack, LocalPublication>}
     */
    get publications() { return this.own.byTrack; }
    /** The connection on which they are sent; null without a session. */ get publishing() { return this.own.publishing; }
    /** The server's name of the room; "" before the first join. @type {string} */ get name() { return this.info?.name ?? ""; }

    /**
     * Joins, once, however often it is called. Rejects with the server's code if it refuses, such as `password_required`, and with `left` if the room was left
     * before.
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
        navigator.mediaDevices?.addEventListener("devicechange", this.devicesChanged);
        // Safari pauses what a page in the background plays, and nobody would start it again.
        document.addEventListener("visibilitychange", this.seen);
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
            // A listener of this event may have left.
            if (this.state === "closed") this.signal.leave();
        });
    }

    /**
     * Adds a listener, which gets the event's detail.
     * @param {string} type
     * @param {(detail: any) => void} listener
     * @returns {() => void} removes the listener
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

    /** Reports a failure outside of the app's own calls; a lost connection and the end of the stay have their own events. */
    complain(error) {
        if (error.code !== "lost" && error.code !== "left") this.fire("problem", { error });
    }

    /** Sends any request of Protocol.md; resolves with its reply. @param {string} type @param {object} [fields] @returns {Promise<any>} */
    request(type, fields) { return this.signal ? this.signal.request(type, fields) : Promise.reject(this.absence); }

    /** Why nothing is sent without a session. */
    get absence() { return this.state === "closed" ? left() : new MartletError("not_joined", "Not connected to the room yet."); }

    // MARK: The session

    /** A session, the first or a fresh one: everything of an older one is void, except local publications. */
    enter(reply, iceServers) {
        this.drop(lost());
        if (this.state === "closed") return; // A listener has left, here as below.
        this.configuration = { iceServers, bundlePolicy: "max-bundle" };
        this.info = reply.room;
        this.channels = new DataChannels({ signal: this.signal, onMessage: (message) => this.receive(message) });
        this.receiving = new Receiving({
            signal: this.signal, configuration: this.configuration, onProblem: (problem) => this.complain(problem),
            speaker: () => (this.options.playAudio === false ? null : this.isSpeakerGone ? "" : this.speaker),
            onTracks: (tracks) => this.people.place(tracks),
            onSilenced: () => this.fire("audioBlocked", {}),
        });
        const isFresh = !this.settled;
        this.people.start(this, reply);
        this.fire("joined", { reply, isFresh });
        this.people.introduce();
        if (this.state === "closed") return;
        this.settled?.resolve();
        this.settled = null;
        this.own.start(this.signal, this.configuration);
    }

    setState(state, cause) {
        const name = state === "connecting" && !this.settled ? "reconnecting" : state;
        if (name === "failed") return;
        this.state = name;
        this.fire("stateChanged", { state: name, cause });
    }

    /** New credentials of the TURN servers: for the next connection, and for an ICE restart of those that are open. */
    renewICEServers(iceServers) {
        if (!this.configuration) return; // Nobody has let this client in yet: the join brings the newest.
        Object.assign(this.configuration, { iceServers });
        for (const owner of [this.publishing, this.receiving]) owner?.connection?.setConfiguration(this.configuration);
    }

    drop(problem) {
        this.files.stop(problem);
        this.publishing?.close();
        this.receiving?.end();
        this.receiving = null;
        this.own.stop();
        this.people.clear(problem.code);
    }

    end(error) {
        this.state = "closed";
        navigator.mediaDevices?.removeEventListener("devicechange", this.devicesChanged);
        document.removeEventListener("visibilitychange", this.seen);
        this.drop(error ?? left());
        this.own.end();
        this.settled?.reject(error);
        this.settled = null;
        // A listener may connect anew, and is then notified again.
        this.isSilent = true;
        this.dispatchEvent(new CustomEvent("closed", { detail: { error } }));
    }

    /** Leaves: the others see it at once. Captured tracks are stopped by their opener: by the app, or, for a screen of `shareScreen`, here. */
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
        case "publicationRefused": return this.own.refused(event);
        case "subscriptionEnded": this.receiving.forgetView(event.track); break;
        // `trackSubscribed` is the event of tracks that this client receives.
        case "trackSubscribed": return this.own.concerns({ ...event, type: "localTrackSubscribed" });
        case "trackMutedByOther":
        case "unmuteRequested": return this.own.concerns(event).catch((problem) => this.complain(problem));
        case "data": return this.channels.receiveEvent(event);
        case "dataChannelClosed": this.channels.closedByServer(event); break;
        }
        this.fire(event.type, event);
        if (event.type === "ended") this.ended(event);
        // Listeners come first, so that their preferences are sent before the answer.
        if (event.type === "offer") this.receiving?.take(event);
    }

    /** The server abandoned a connection: its tracks start again on a new one. */
    connectionChanged({ connection, state }) {
        if (state !== "closed") return;
        if (connection === "sub") this.receiving.reset();
        if (connection !== "pub" || !this.publishing?.connection) return;
        this.own.restart();
        if (!this.publications.size) this.openDataChannels().catch((problem) => this.complain(problem));
    }

    /** An operator moved this client to another room, with other people. Connections and local publications continue, or `connectionChanged` follows. */
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

    // MARK: What one publishes

    /**
     * Publishes a track. Rejects with `permission_denied` if the token or the room does not permit its source, and with `left` if the room has ended: see
     * `publishAll`.
     * @param {MediaStreamTrack} track
     * @param {PublishOptions} [options]
     * @returns {Promise<LocalPublication>}
     */
    publish(track, options) { return this.own.publish(track, options); }

    /**
     * Publishes what `openDevices` or `openScreen` returned, with one negotiation. What is not permitted is omitted, and reported by `publicationDenied`.
     * Rejects with `left` if the room has ended, and then stops the tracks: a person may answer the browser's question after they left, and nobody else would
     * turn the camera off.
     * @param {({ track: MediaStreamTrack } & PublishOptions)[]} sources
     * @param {MediaStream} [stream] tracks of one stream are played in sync
     * @returns {Promise<LocalPublication[]>}
     */
    publishAll(sources, stream) { return this.own.publishAll(sources, stream); }

    /**
     * Shares a screen, which the person chooses, until they end it by the browser's own button, `unpublish` is called, or the room ends or no longer accepts
     * it.
     * @param {Parameters<typeof import("./capture.js").openScreen>[0]} [options]
     * @returns {Promise<LocalPublication[]>} its video, and its audio if there is any; none if the person has ended it already
     */
    shareScreen(options) { return this.own.shareScreen(options); }

    /** Stops sending and capturing these, with one negotiation. @param {LocalPublication[]} publications @returns {Promise<void>} */
    unpublish(publications) { return this.own.unpublish(publications); }

    // MARK: Audio

    /**
     * Plays the others on this loudspeaker, and on the system's, which is "", while it is unplugged. Rejects if the browser refuses, for example without a
     * permission; the former one is then kept.
     * @param {string} deviceId
     */
    async setSpeaker(deviceId) {
        const { speaker, isSpeakerGone } = this;
        Object.assign(this, { speaker: deviceId, isSpeakerGone: false });
        try {
            await this.receiving?.changeSpeaker();
        } catch (problem) {
            // Later participants would be played on it in vain.
            if (this.speaker === deviceId) Object.assign(this, { speaker, isSpeakerGone });
            throw problem;
        }
    }

    /** Browsers continue to play on a loudspeaker that was unplugged, such as a headset whose battery is empty, and nobody hears it. */
    async followSpeaker() {
        const { speaker } = this, { speakers } = await listDevices();
        // A page that may not list loudspeakers cannot know about this one.
        const isGone = Boolean(speaker) && speakers.length > 0 && !speakers.some(({ deviceId }) => deviceId === speaker);
        if (speaker !== this.speaker || isGone === this.isSpeakerGone) return;
        this.isSpeakerGone = isGone;
        await this.receiving?.changeSpeaker();
    }

    /**
     * To be called in a click handler after the event `audioBlocked`: browsers play no audio before a person has interacted with the page, and no video when
     * they save power. Also plays everything that is attached.
     */
    startAudio() { this.playAll(() => {}, true); }

    /** Plays what the browser has not played or has paused; with `isAll` also what a person or the app has paused. */
    playAll(onSilenced, isAll) {
        const audio = [...this.receiving?.audioElements.values() ?? []].filter(({ paused }) => paused);
        const shown = [...[...this.participants.values()].flatMap(({ tracks }) => tracks), ...this.publications.values()];
        for (const one of [...audio, ...shown.flatMap((publication) => publication.paused(isAll))]) start(one, onSilenced);
    }

    // MARK: Data

    /** Receives everybody's messages, from a channel or the socket. */
    receive(message) {
        if (message.topic === FILE_TOPIC) return this.files.receive(message);
        const { from, ...fields } = message;
        return this.fire("data", { ...fields, participant: this.participants.get(from) });
    }

    /**
     * Sends a message to everybody, or to those named. Uses a data channel if one is open (it is, once something was published or `openDataChannels` was
     * called), otherwise the WebSocket. Resolves when the next message may be sent: a message that the server refuses on a channel is reported by the event
     * `dataRefused`.
     * @param {string | ArrayBuffer | ArrayBufferView} content text or bytes, up to 254 KB (64 KB to members without a peer connection)
     * @param {{ topic?: string, to?: string[], reliable?: boolean }} [options] `to`: sids or identities; `reliable: false`: it may be lost, and waits for
     *     nothing
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

    // Messages on channels leave enough bandwidth to received media; those on the WebSocket, which are used if no channel is open, cannot.
    async prepareForFiles() {
        // A room whose members connect to each other rather than to the server has no channels: the file is sent over the WebSocket.
        if (this.localParticipant?.permissions.canPublishData) await this.openDataChannels().catch(() => {});
        await this.channels?.whenOpen();
    }

    /**
     * Sends a file to everybody, or to those named, who accept it by the event `file`. Resolves when all of them have the whole file.
     * @param {Blob} file
     * @param {{ to?: string[], name?: string, onProgress?: (bytes: number, size: number) => void, signal?: AbortSignal, acceptWithin?: number }} [options]
     *     `onProgress`: what the slowest receiver has; `acceptWithin`: milliseconds, 13,000 by default
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
