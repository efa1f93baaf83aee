// The connection "sub", on which only the server offers, and the playback of its audio.

import { TOO_SOON, lost } from "./errors.js";

/** How often in a row another "sub" is requested after a failed exchange, and the seconds before the first time, which double. */
const MOST_RENEWALS = 3;
const RENEW_AFTER = 1;
const RENEWAL = { connection: "sub", keepSubscriptions: true };

/** Plays an element; `onSilenced()` if the browser requires a click first. The click is requested for audio, not for video. */
export function start(element, onSilenced) {
    element.play().catch((problem) => { if (problem.name === "NotAllowedError" && !element.muted) onSilenced(); });
}

export class Receiving {
    /**
     * `speaker()` is the id of the loudspeaker to play on, or "", or null: audio is not played here. `onTracks(tracks)` is called with everything that is
     * received, a Map of sid to MediaStreamTrack, whenever it may have changed; `onSilenced` when the browser requires a click first.
     */
    constructor({ signal, configuration, speaker, onTracks, onSilenced, onProblem }) {
        Object.assign(this, { signal, configuration, speaker, onTracks, onSilenced, onProblem });
        this.tracks = new Map(); // mid -> track sid
        this.audioElements = new Map(); // mid -> audio element
        this.views = new Map(); // track sid -> the view that the server uses, if that is certain
        this.failures = 0; // exchanges in a row
        this.begin();
    }

    /** A closed connection no longer answers calls: callers continue when `ended` rejects. */
    begin() {
        this.ended = new Promise((_, reject) => { this.fail = reject; });
        this.ended.catch(() => {});
        this.work = Promise.resolve();
    }

    /** Answers the server's offer; `tracks` says which track each section shows. */
    take({ sdp, tracks }) {
        const { ended } = this;
        const exchange = async () => {
            if (ended !== this.ended) return; // It waited for its turn, and its connection was closed meanwhile.
            const connection = this.connection ??= this.connect();
            await connection.setRemoteDescription({ type: "offer", sdp });
            if (connection !== this.connection) return;
            await connection.setLocalDescription();
            if (connection !== this.connection) return;
            await this.signal.request("answer", { connection: "sub", sdp: connection.localDescription.sdp }, connection).catch((problem) => {
                // It was sent again because its first reply was lost with a socket: the server has accepted it.
                if (problem.code !== "unexpected_answer") throw problem;
            });
            if (connection !== this.connection) return;
            this.failures = 0;
            clearTimeout(this.renewing);
            this.tracks = new Map(Object.entries(tracks));
            this.showAll();
        };
        this.work = Promise.race([this.work.then(exchange), ended]).catch((problem) => this.failed(problem, ended));
    }

    /** The server makes no other offer before it has an answer to this one: another "sub" is made, with everything that is received. */
    failed(problem, ended) {
        if (problem.code === "lost" || ended !== this.ended) return;
        this.onProblem(problem);
        if (problem.code === "left" || this.failures >= MOST_RENEWALS) return;
        const wait = Math.max(RENEW_AFTER, problem.retryAfter ?? 0) * 2 ** this.failures++;
        clearTimeout(this.renewing);
        this.renewing = setTimeout(() => {
            this.signal.request("bye", RENEWAL, this.connection).catch((failure) => this.failed(failure, ended));
        }, wait * 1000);
    }

    connect() {
        const connection = new RTCPeerConnection(this.configuration);
        connection.ontrack = () => this.showAll();
        connection.oniceconnectionstatechange = () => {
            // The server then makes another "sub" for what waits.
            if (connection.iceConnectionState !== "failed" || connection !== this.connection) return;
            this.signal.request("bye", RENEWAL, connection).catch(() => {});
        };
        return connection;
    }

    /** Finds what is received on which section; harmless to call at any time. */
    showAll() {
        const live = new Map(), heard = new Set();
        for (const transceiver of this.connection?.getTransceivers() ?? []) {
            const sid = this.tracks.get(transceiver.mid);
            const track = transceiver.receiver.track;
            const isLive = sid && ["recvonly", "sendrecv"].includes(transceiver.currentDirection ?? transceiver.direction);
            if (!isLive) continue;
            live.set(sid, track);
            if (track.kind !== "audio") continue;
            heard.add(transceiver.mid);
            this.play(transceiver.mid, track);
        }
        // Also those of sections that the server has rejected, for which browsers keep no transceiver.
        for (const mid of [...this.audioElements.keys()]) if (!heard.has(mid)) this.play(mid, null);
        this.onTracks(live);
    }

    play(mid, track) {
        const audio = this.audioElements.get(mid);
        if (!track) {
            audio?.remove();
            this.audioElements.delete(mid);
        } else if (!audio && this.speaker() !== null) {
            const made = Object.assign(document.createElement("audio"), { srcObject: new MediaStream([track]) });
            document.body.append(made);
            // Some browsers support only one loudspeaker, and lack this function.
            if (this.speaker()) made.setSinkId?.(this.speaker()).catch(this.onProblem);
            this.audioElements.set(mid, made);
            start(made, this.onSilenced);
        }
    }

    /** Plays everything on the chosen loudspeaker. */
    async changeSpeaker() { await Promise.all([...this.audioElements.values()].map((audio) => audio.setSinkId(this.speaker()))); }

    /** Sends all preferences for a track, the fields of `view`; {} is the default. Repetitions are not sent. */
    view(sid, preferences) {
        const text = JSON.stringify(preferences);
        if (text === this.views.get(sid)) return;
        this.views.set(sid, text);
        this.sendView(sid, text);
    }

    /** Repeats it until the server accepts it, as when an app sets preferences for hundreds of videos at once, or until this track's preferences change. */
    async sendView(sid, text) {
        while (this.views.get(sid) === text) {
            try {
                return await this.signal.request("view", { track: sid, ...JSON.parse(text) });
            } catch (problem) {
                if (!TOO_SOON.has(problem.code)) return this.forgetViewOf(sid, text);
                await new Promise((resolve) => { setTimeout(resolve, (problem.retryAfter ?? 1) * 1000); });
            }
        }
    }

    /** Receives a track, with all preferences for it. */
    async subscribe(sid, preferences) {
        const text = JSON.stringify(preferences);
        // If it is received already, the server keeps the earlier preferences if all of these are defaults.
        if (this.views.has(sid)) this.views.delete(sid);
        else this.views.set(sid, text);
        try {
            await this.signal.request("subscribe", { track: sid, ...preferences });
        } catch (problem) {
            this.forgetViewOf(sid, text);
            throw problem;
        }
    }

    /** Whatever view the server uses, the next one is not a repetition of one that it refused. */
    forgetViewOf(sid, text) {
        if (this.views.get(sid) === text) this.views.delete(sid);
    }

    /** A track is no longer received: if it is received again, the server begins with its defaults. */
    forgetView(sid) { this.views.delete(sid); }

    /** All received tracks end; the connection stays for later ones. */
    forget() {
        this.tracks.clear();
        this.views.clear();
        this.showAll();
    }

    /** The session is over, and its sids are no longer valid. */
    end() {
        this.views.clear();
        this.reset();
    }

    /** The connection ended; another may come. The server keeps the preferences for a track (`views`) until its subscription ends. */
    reset() {
        const { connection } = this;
        clearTimeout(this.renewing);
        connection?.close();
        this.connection = null;
        this.fail(lost());
        this.begin();
        if (connection) this.signal.cancel(connection);
        this.tracks.clear();
        for (const mid of [...this.audioElements.keys()]) this.play(mid, null);
        this.onTracks(new Map());
    }
}
