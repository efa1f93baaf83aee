// One stay in a room: a connection that publishes ("pub", we offer), one that receives ("sub", the server offers), and
// the roster that says whose track is whose.

import { Signal } from "./signal.js";
import { Figures, receivedStatistics } from "./statistics.js";
import { Tile } from "./grid.js";

/** Three sizes, smallest first, as most clients name them. */
const SIMULCAST = [
    { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
    { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000 },
    { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 2_000_000 },
];

export class Room {
    constructor({ token, join, stream, codec, simulcast, onState, onEnd }) {
        Object.assign(this, { stream, codec, simulcast, onEnd, onStateChanged: onState });
        this.people = new Map();
        this.shown = new Map(); // mid of "sub" -> track sid
        this.tiles = new Map(); // track sid or participant sid -> Tile
        this.sounds = new Map(); // mid -> audio element
        this.figures = new Figures();
        this.joined = false;
        this.muted = { audio: false, video: false };
        this.signal = new Signal({
            token, join,
            onJoined: (reply, hello) => this.enter(reply, hello),
            onEvent: (event) => this.handle(event),
            onState: (state) => this.setState(state),
            onEnd: (problem) => { this.close(); onEnd(problem); },
        });
        this.timer = setInterval(() => this.refresh(), 1000);
    }

    setState(state) {
        this.joined = state === "connected" && Boolean(this.self);
        this.onStateChanged(state);
    }

    // A fresh session: everything of an older one is void.
    async enter(reply, hello) {
        this.drop();
        this.configuration = { iceServers: hello.iceServers, bundlePolicy: "max-bundle" };
        this.self = reply.participant;
        for (const person of reply.participants) this.add(person);
        if (this.stream) {
            const picture = this.stream.getVideoTracks()[0];
            this.ownTile = new Tile({ key: "own", name: `${this.self.name || this.self.identity} (you)`, own: true, source: picture?.label.startsWith("screen") ? "screen" : "camera" });
            if (picture) this.ownTile.show(picture);
            await this.publish();
        }
        this.joined = true;
    }

    handle(event) {
        switch (event.type) {
        case "participantJoined":
        case "participantUpdated": return this.add(event.participant);
        case "participantLeft": return this.remove(event.participant);
        case "trackPublished":
        case "trackUpdated": return this.setTrack(event.track);
        case "trackUnpublished": return this.removeTrack(event.participant, event.track);
        case "offer": return this.enqueue(() => this.receiveOffer(event));
        case "speakers": return this.markSpeakers(event.speakers);
        case "connection": return this.connectionChanged(event);
        case "trackMutedByOther": return this.setMuted(this.kindOfOwn(event.track), true);
        case "ended": return this.ended(event.reason);
        }
    }

    // MARK: Sending

    async publish() {
        const connection = this.pub = new RTCPeerConnection(this.configuration);
        const announced = [];
        for (const track of this.stream.getTracks()) announced.push(this.addSender(connection, track, this.sourceOf(track)));
        await this.signal.request("announce", { tracks: announced });
        await this.offer();
    }

    sourceOf(track) {
        const isScreen = this.stream.isScreen === true;
        if (track.kind === "audio") return isScreen ? "screenAudio" : "microphone";
        return isScreen ? "screen" : "camera";
    }

    addSender(connection, track, source) {
        const layered = track.kind === "video" && this.simulcast && source === "camera";
        const transceiver = connection.addTransceiver(track, {
            direction: "sendonly", streams: [this.stream],
            ...(layered ? { sendEncodings: SIMULCAST.map((encoding) => ({ ...encoding })) } : {}),
        });
        if (track.kind === "video" && this.codec) preferCodec(transceiver, this.codec);
        const { width, height } = track.kind === "video" ? track.getSettings() : {};
        return { track: track.id, source, muted: this.muted[track.kind], width, height };
    }

    /** Offers on "pub"; one exchange at a time. */
    offer(options) {
        return this.enqueue(async () => {
            const connection = this.pub;
            await connection.setLocalDescription(await connection.createOffer(options));
            const answer = await this.signal.request("offer", { connection: "pub", sdp: connection.localDescription.sdp });
            if (connection.signalingState !== "have-local-offer") return;
            await connection.setRemoteDescription({ type: "answer", sdp: answer.sdp });
            this.ownTracks = answer.tracks;
        });
    }

    /** Shares the screen beside the camera, or stops sharing. */
    async toggleScreen(capture) {
        if (this.screen) {
            const { sender, track } = this.screen;
            this.screen = null;
            track.stop();
            this.pub.removeTrack(sender);
            await this.offer();
            return false;
        }
        const picture = await capture();
        const track = picture.getVideoTracks()[0];
        track.contentHint = "detail";
        this.pub ??= new RTCPeerConnection(this.configuration);
        await this.signal.request("announce", { tracks: [this.addSender(this.pub, track, "screen")] });
        const sender = this.pub.getSenders().find((one) => one.track === track);
        this.screen = { sender, track };
        track.onended = () => this.screen && this.toggleScreen();
        await this.offer();
        return true;
    }

    async setMuted(kind, muted) {
        this.muted[kind] = muted;
        for (const transceiver of this.pub?.getTransceivers() ?? []) {
            const track = transceiver.sender.track;
            if (track?.kind !== kind || track === this.screen?.track) continue;
            track.enabled = !muted;
            const sid = this.ownTracks?.[transceiver.mid];
            if (sid) await this.signal.request("mute", { track: sid, muted });
        }
        this.onMuted?.(kind, muted);
    }

    kindOfOwn(sid) {
        const mid = Object.keys(this.ownTracks ?? {}).find((key) => this.ownTracks[key] === sid);
        return this.pub.getTransceivers().find((one) => one.mid === mid)?.sender.track?.kind ?? "audio";
    }

    // MARK: Receiving

    async receiveOffer({ sdp, tracks }) {
        const connection = this.sub ??= this.receiver();
        await connection.setRemoteDescription({ type: "offer", sdp });
        await connection.setLocalDescription();
        await this.signal.request("answer", { connection: "sub", sdp: connection.localDescription.sdp });
        this.shown = new Map(Object.entries(tracks));
        this.showAll();
    }

    receiver() {
        const connection = new RTCPeerConnection(this.configuration);
        connection.ontrack = () => this.showAll();
        return connection;
    }

    /** Puts every received track where it belongs; harmless to call at any time. */
    showAll() {
        for (const transceiver of this.sub?.getTransceivers() ?? []) {
            const sid = this.shown.get(transceiver.mid);
            const track = transceiver.receiver.track;
            const live = sid && ["recvonly", "sendrecv"].includes(transceiver.currentDirection ?? transceiver.direction);
            if (track.kind === "audio") this.play(transceiver.mid, live ? track : null);
            else if (live) this.tiles.get(sid)?.show(track);
        }
    }

    play(mid, track) {
        let sound = this.sounds.get(mid);
        if (!track) {
            sound?.remove();
            this.sounds.delete(mid);
        } else if (!sound) {
            sound = Object.assign(document.createElement("audio"), { autoplay: true, srcObject: new MediaStream([track]) });
            document.body.append(sound);
            this.sounds.set(mid, sound);
        }
    }

    // MARK: Roster

    add(person) {
        if (person.sid === this.self.sid) return;
        const known = this.people.get(person.sid);
        this.people.set(person.sid, person);
        for (const track of known?.tracks ?? []) {
            if (!person.tracks.some((one) => one.sid === track.sid)) this.dropTile(track.sid);
        }
        this.arrangeTiles(person);
    }

    remove(sid) {
        const person = this.people.get(sid);
        this.people.delete(sid);
        for (const key of [sid, ...(person?.tracks ?? []).map((track) => track.sid)]) this.dropTile(key);
    }

    setTrack(track) {
        const person = this.people.get(track.participant);
        if (!person) return;
        person.tracks = [...person.tracks.filter((one) => one.sid !== track.sid), track];
        this.arrangeTiles(person);
    }

    removeTrack(participant, sid) {
        const person = this.people.get(participant);
        if (!person) return;
        person.tracks = person.tracks.filter((one) => one.sid !== sid);
        this.dropTile(sid);
        this.arrangeTiles(person);
    }

    /** A tile for each video, and one for the person while there is no camera. */
    arrangeTiles(person) {
        const name = person.name || person.identity;
        const videos = person.tracks.filter((track) => track.kind === "video");
        for (const track of videos) {
            const label = track.source === "screen" ? `${name}'s screen` : name;
            this.tileFor(track.sid, label, track.source).setVideoMuted(track.muted);
        }
        if (videos.some((track) => track.source !== "screen")) this.dropTile(person.sid);
        else this.tileFor(person.sid, name, "person");
        const silent = person.tracks.filter((track) => track.kind === "audio").every((track) => track.muted);
        for (const tile of this.tilesOf(person)) tile.setAudioMuted(silent);
        this.showAll();
    }

    tileFor(key, name, source) {
        if (!this.tiles.has(key)) this.tiles.set(key, new Tile({ key, name, source }));
        return this.tiles.get(key);
    }

    dropTile(key) {
        this.tiles.get(key)?.remove();
        this.tiles.delete(key);
    }

    tilesOf(person) {
        return [person.sid, ...person.tracks.map((track) => track.sid)].map((key) => this.tiles.get(key)).filter(Boolean);
    }

    markSpeakers(speakers) {
        const speaking = new Set(speakers.map((one) => one.participant));
        for (const person of this.people.values()) {
            for (const tile of this.tilesOf(person)) tile.setSpeaking(speaking.has(person.sid));
        }
        this.ownTile?.setSpeaking(speaking.has(this.self.sid));
    }

    // MARK: Life

    connectionChanged({ connection, state }) {
        if (state === "ended" && connection === "pub" && this.pub) {
            this.pub.close();
            this.pub = null;
            if (this.stream) this.publish();
        } else if (state === "ended" && connection === "sub") {
            this.sub?.close();
            this.sub = null;
        }
    }

    /** Runs exchanges of one stay one after the other. */
    enqueue(work) {
        const result = (this.queue ?? Promise.resolve()).then(work);
        this.queue = result.catch((problem) => console.warn("exchange failed:", problem.message));
        return result;
    }

    async refresh() {
        const statistics = await receivedStatistics(this.sub);
        for (const one of statistics.filter((each) => each.kind === "video")) {
            this.tiles.get(this.shown.get(one.mid))?.setFigures(this.figures.describe(one));
        }
    }

    ended(reason) {
        if (reason === "server_shutdown") return;
        this.signal.end(new Error({
            removed: "You were removed from the room.",
            duplicate_identity: "You joined this room from another window.",
            room_deleted: "The room was closed.",
        }[reason] ?? `The session ended: ${reason}.`));
    }

    drop() {
        this.pub?.close();
        this.sub?.close();
        this.pub = this.sub = this.queue = null;
        for (const tile of this.tiles.values()) tile.remove();
        this.ownTile?.remove();
        this.ownTile = null;
        for (const sound of this.sounds.values()) sound.remove();
        for (const map of [this.people, this.shown, this.tiles, this.sounds]) map.clear();
        this.joined = false;
    }

    close() {
        clearInterval(this.timer);
        this.screen?.track.stop();
        this.drop();
    }

    leave() {
        this.signal.leave();
        this.close();
    }
}

/** Puts one codec (with its retransmission) first; VP9 in its everyday profile only. */
function preferCodec(transceiver, name) {
    const all = RTCRtpSender.getCapabilities("video").codecs;
    const wanted = all.filter((codec) => codec.mimeType.toLowerCase() === `video/${name.toLowerCase()}`
        && !/profile-id=[1-9]/.test(codec.sdpFmtpLine ?? ""));
    const rtx = all.filter((codec) => codec.mimeType === "video/rtx");
    if (wanted.length) transceiver.setCodecPreferences([...wanted, ...rtx]);
}
