// The connection "pub", on which only this side offers. Each track has a section; sections of ended tracks are reused.

import { TOO_SOON, lost } from "./errors.js";

/** Three sizes, smallest first, as most clients name them. */
const SIMULCAST = [
    { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
    { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000 },
    { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 2_000_000 },
];

/**
 * The same sizes inside one stream. Of three encodings in these codecs, Chromium sends only the first, the smallest (measured with 156). Firefox ignores the
 * mode, and sends only the full size.
 */
const SCALABLE = [{ scalabilityMode: "L3T3_KEY", maxBitrate: 2_000_000 }];
const SCALABLE_CODECS = ["vp9", "av1"];

export class Publishing {
    /**
     * `defaults` of what is sent: `codec`, a video codec's name or "", `red` for redundant audio, `simulcast` for three sizes of a camera (in VP9 and AV1
     * inside one stream). `onConnection(connection)` is called with each new connection before its first offer, `onDenied(source, track)` for a track that may
     * not be sent, `onClosed()` after `close`.
     */
    constructor({ signal, configuration, defaults = {}, onConnection, onDenied, onClosed }) {
        Object.assign(this, { signal, configuration, defaults, onConnection, onDenied, onClosed });
        // MediaStreamTrack -> { source, transceiver, announced, ... }, the same object for another track in its place, and on the next connection.
        // announced: whether it was announced as muted, once it was announced
        this.sent = new Map();
        this.sids = {}; // mid -> track sid
        this.demand = new Map(); // track sid -> its layers, and whether each is to be sent
        this.work = Promise.resolve();
        // A closed connection no longer answers calls: callers continue when this rejects, or, if another connection replaces it, when `discarded` resolves.
        this.ended = new Promise((_, reject) => { this.fail = reject; });
        this.ended.catch(() => {});
        this.begin();
    }

    begin() { this.discarded = new Promise((resolve) => { this.discard = resolve; }); }

    /** Begins to send tracks; `sources` says what each is: [{ track, source, name, hint, priority, codec, red, simulcast }]. */
    async add(sources, stream) {
        await this.open();
        await this.offer({}, sources.map(({ track, source, ...options }) => this.attach(track, { source, stream, options })));
    }

    /** The connection, made if there is none yet; if that fails, the next caller tries again. */
    open() {
        return this.opening ??= this.connect().catch((problem) => {
            this.connection?.close();
            this.connection = this.opening = null;
            throw problem;
        });
    }

    /** Gives a track its section of the next offer. */
    attach(track, entry) {
        const { source, stream, options } = entry;
        const { codec, red, simulcast } = { ...this.defaults, ...options };
        const layered = track.kind === "video" && simulcast && source === "camera";
        const transceiver = this.connection.addTransceiver(track, {
            direction: "sendonly", streams: [stream],
            ...(layered ? { sendEncodings: layersIn(codec).map((encoding) => ({ ...encoding })) } : {}),
        });
        if (track.kind === "video") preferVideo(transceiver, codec);
        else if (red) preferRedundantAudio(transceiver);
        this.sent.set(track, Object.assign(entry, { transceiver, announced: undefined }));
        return entry;
    }

    /** Stops sending tracks; the others continue. */
    async remove(tracks) {
        await this.opening;
        for (const track of tracks) {
            const transceiver = this.sent.get(track)?.transceiver;
            this.sent.delete(track);
            // Stopped, not merely without a track: only then does the next one use its section again.
            if (transceiver && this.connection) transceiver.stop();
        }
        await this.offer();
    }

    /** Sends another device's track in place of one, without negotiation. */
    async replace(old, track) {
        let connection, entry;
        do {
            await this.opening; // Only then has a track its section.
            entry = this.sent.get(old);
            if (!entry) return;
            connection = this.connection;
            const change = entry.transceiver.sender.replaceTrack(track).catch((problem) => { if (connection === this.connection) throw problem; });
            await Promise.race([this.ended, this.discarded, change]);
        } while (connection !== this.connection); // The next one has begun with the old track.
        if (this.sent.get(old) !== entry) return; // It was removed meanwhile.
        this.sent.delete(old);
        this.sent.set(track, entry);
    }

    async connect() {
        const connection = this.connection = new RTCPeerConnection(this.configuration);
        connection.oniceconnectionstatechange = () => {
            if (connection.iceConnectionState === "failed") this.offer({ iceRestart: true }).catch(() => {});
        };
        // The section of the data channels becomes the first, and stays. Chromium closes the transport of all when the first section ends
        // (measured with 156), as the section of a track does when the track is no longer sent.
        this.onConnection(connection);
        await Promise.race([connection.setLocalDescription(), this.ended]);
    }

    /**
     * One exchange; exchanges follow one after the other. `added` are the entries of `sent` for which it is made: if it fails, no later one may send them
     * unasked.
     */
    offer(options = {}, added = []) {
        const exchange = () => this.negotiate(options).catch(async (problem) => {
            if (problem.code !== "lost") await this.takeOut(added);
            throw problem;
        });
        const result = Promise.race([this.work.then(exchange), this.ended]);
        this.work = result.catch(() => {});
        return result;
    }

    async negotiate(options) {
        let connection = this.connection;
        if (!connection) return;
        await connection.setLocalDescription(await connection.createOffer(options));
        // The new offer may be the first with tracks that were added meanwhile, which may be denied, too: no section is sent that was not announced. Each turn
        // removes tracks, so there are at most as many turns as tracks.
        for (let denied = await this.announce(); denied.length; denied = await this.announce()) {
            for (const entry of denied) if (this.trackOf(entry)) this.onDenied?.(entry.source, this.trackOf(entry));
            await this.takeOut(denied);
            connection = this.connection;
            if (!connection || !this.sent.size) return;
            await connection.setLocalDescription(await connection.createOffer(options));
        }
        const answer = await this.signal.request("offer", { connection: "pub", sdp: connection.localDescription.sdp }, this)
            .catch((problem) => this.displace(connection, problem));
        if (connection.signalingState !== "have-local-offer") return;
        await connection.setRemoteDescription({ type: "answer", sdp: answer.sdp });
        this.sids = answer.tracks;
        // The room accepts no track of its kind, as a room without video.
        for (const [track, { source, transceiver }] of this.sent) {
            if (transceiver.currentDirection !== "stopped") continue;
            this.sent.delete(track);
            this.onDenied?.(source, track);
        }
        // The server has the tracks: failures from here on remove none of them.
        for (const sid of this.demand.keys()) await this.follow(sid).catch(cannotFollow);
        // Reports mute states that changed while the server answered.
        await this.announceMutes().catch((problem) => console.warn("The server does not know what is muted:", problem.message));
    }

    /**
     * The server has a connection of this name that does not fit a first offer: it made it from an offer of the former connection, which was in flight when a
     * move ended that one. It ends here; the server reports `pub` as closed, and the next one is made then, as after every end.
     */
    async displace(connection, problem) {
        if (problem.code !== "invalid_sdp" || connection.currentRemoteDescription) throw problem;
        await this.signal.request("bye", { connection: "pub" }).catch(() => { throw problem; });
        return await this.ended;
    }

    /**
     * Announces the new tracks by their sections, because Firefox uses another name than `track.id` in its description. Returns the tracks that may
     * not be sent because of their source.
     */
    async announce() {
        const denied = [];
        for (const [track, entry] of this.sent) {
            if (entry.announced !== undefined || !entry.transceiver.mid) continue;
            entry.announced = !track.enabled;
            // For a screen or a canvas that has shown no frame yet, Firefox reports 0.
            const { width, height } = track.kind === "video" ? track.getSettings() : {}, isSized = width > 0 && height > 0;
            const announcement = {
                track: entry.transceiver.mid, source: entry.source, muted: !track.enabled, ...(isSized && { width, height }),
                hint: entry.options.hint ?? hintOf(track), name: entry.options.name, priority: entry.options.priority,
            };
            try {
                await this.signal.request("announce", { tracks: [announcement] }, this);
            } catch (problem) {
                if (problem.code !== "permission_denied") throw problem;
                denied.push(entry);
            }
        }
        return denied;
    }

    /** Removes entries from an offer that has no answer; the others may get other sections, and are announced anew. */
    async takeOut(entries) {
        const { connection } = this;
        if (!connection) return;
        const isFirst = !connection.currentRemoteDescription;
        if (!isFirst && connection.signalingState === "have-local-offer") await connection.setLocalDescription({ type: "rollback" });
        for (const entry of entries) {
            // Unless it was removed meanwhile. On a closed connection nothing has to be stopped.
            if (this.sent.delete(this.trackOf(entry)) && !isFirst) entry.transceiver.stop();
        }
        if (isFirst) return await this.beginAnew(connection);
        for (const entry of this.sent.values()) {
            if (!(entry.transceiver.mid in this.sids)) entry.announced = undefined;
        }
    }

    /** Chromium now and then never begins ICE after the rollback of a first offer (measured: 1 page of 12); a new connection does. */
    async beginAnew(connection) {
        connection.close();
        this.connection = this.opening = null;
        this.discard();
        this.begin();
        if (!this.sent.size) return;
        await this.open();
        for (const [track, entry] of [...this.sent]) this.attach(track, entry);
    }

    /** The demand of all subscribers for the layers of a track changed: [{ rid, spatial, active }]. */
    demandChanged(sid, layers) {
        this.demand.set(sid, layers);
        this.work = this.work.then(() => this.follow(sid)).catch(cannotFollow);
    }

    /** Stops layers without demand, and starts those for which there is demand again. */
    async follow(sid) {
        const found = [...this.sent.values()].find(({ transceiver }) => this.sids[transceiver.mid] === sid);
        if (!found) return;
        const { sender } = found.transceiver;
        const parameters = sender.getParameters();
        let changes = false;
        const layers = this.demand.get(sid);
        if (layers.some(({ spatial }) => spatial !== undefined)) {
            found.whole ??= { ...parameters.encodings[0] };
            changes = shrink(parameters.encodings[0], found.whole, layers);
        } else {
            for (const encoding of parameters.encodings) {
                const layer = layers.find(({ rid }) => rid === encoding.rid);
                changes ||= layer && layer.active !== encoding.active;
                if (layer) encoding.active = layer.active;
            }
        }
        if (changes) await sender.setParameters(parameters);
    }

    /**
     * Reports each track that was muted or unmuted since it was announced. If the server accepts that only later, it is reported again: a person who unmuted
     * would otherwise speak to nobody.
     */
    async announceMutes() {
        for (const [track, entry] of this.sent) {
            const sid = this.sids[entry.transceiver.mid];
            const before = entry.announced, muted = !track.enabled;
            if (!sid || before === muted) continue;
            entry.announced = muted;
            await this.signal.request("mute", { track: sid, muted }, this).catch((problem) => {
                if (problem.code === "track_not_found") return; // The server has ended it meanwhile.
                if (entry.announced === muted) entry.announced = before; // The next call says it again.
                if (TOO_SOON.has(problem.code)) this.announceMutesLater(problem.retryAfter);
                throw problem;
            });
        }
    }

    announceMutesLater(seconds = 1) {
        clearTimeout(this.muteTimer);
        this.muteTimer = setTimeout(() => { if (this.connection) this.announceMutes().catch(() => {}); }, seconds * 1000);
    }

    /** The local track that is published as `sid`. */
    find(sid) { return [...this.sent].find(([, { transceiver }]) => this.sids[transceiver.mid] === sid)?.[0] ?? null; }

    /** The track that is sent for an entry of `sent` now. */
    trackOf(entry) { return [...this.sent].find(([, one]) => one === entry)?.[0]; }

    /** The sid of a published track; null before the server's answer. */
    sidOf(track) { return this.sids[this.sent.get(track)?.transceiver.mid] ?? null; }

    /** The track that is sent on a section. */
    onSection(mid) { return [...this.sent].find(([, { transceiver }]) => transceiver.mid === mid)?.[0] ?? null; }

    close() {
        this.connection?.close();
        this.connection = null;
        this.fail(lost());
        this.signal.cancel(this);
        this.onClosed?.();
    }
}

/** The content hint that an app has set on a video. Audio has other hints, such as "speech", which mean nothing to the server. */
function hintOf(track) { return (track.kind === "video" && track.contentHint) || undefined; }

function cannotFollow(problem) { console.warn("Cannot change the layers that are sent:", problem.message); }

/** Omits the highest spatial layers inside a stream from its `whole` encoding; returns whether that changes anything. */
function shrink(encoding, whole, layers) {
    const mode = /^[LS](\d)(T\d)(.*)$/.exec(whole.scalabilityMode ?? "");
    const demanded = layers.filter((layer) => layer.active).length;
    const all = mode ? Number(mode[1]) : layers.length;
    const count = Math.min(Math.max(demanded, 1), all);
    const active = demanded > 0;
    const before = [encoding.active, encoding.scalabilityMode].join();
    encoding.active = active;
    if (mode && active) {
        encoding.scalabilityMode = count === 1 ? `L1${mode[2]}` : `${whole.scalabilityMode[0]}${count}${mode[2]}${mode[3]}`;
        encoding.scaleResolutionDownBy = (whole.scaleResolutionDownBy ?? 1) * 2 ** (all - count);
        // Otherwise the remaining layers would get the whole bit rate.
        if (whole.maxBitrate) encoding.maxBitrate = Math.round(whole.maxBitrate / 4 ** (all - count));
    }
    return before !== [encoding.active, encoding.scalabilityMode].join();
}

/** A camera's encodings in a codec that was chosen; "" leaves the choice to the browser. */
function layersIn(codec) {
    return SCALABLE_CODECS.includes(codec?.toLowerCase()) && formsOf(codec).length ? SCALABLE : SIMULCAST;
}

/**
 * The forms of a codec that the browser can send; VP9 only in its usual profile. They are named as the browser receives them: it accepts no others as
 * preferences (webrtc-pc, `setCodecPreferences`), and Chromium sends H.264 of other levels than it receives on macOS and Android.
 */
function formsOf(name) {
    const isOne = ({ mimeType, sdpFmtpLine }) => mimeType.toLowerCase() === `video/${name.toLowerCase()}` && !/profile-id=[1-9]/.test(sdpFmtpLine ?? "");
    return RTCRtpSender.getCapabilities("video").codecs.some(isOne) ? RTCRtpReceiver.getCapabilities("video").codecs.filter(isOne) : [];
}

/** Puts one codec (with its retransmission) first. */
function preferVideo(transceiver, name) {
    if (!name) return;
    const all = RTCRtpReceiver.getCapabilities("video").codecs;
    const wanted = formsOf(name);
    const rtx = all.filter((codec) => codec.mimeType === "video/rtx");
    if (wanted.length) transceiver.setCodecPreferences([...wanted, ...rtx]);
}

/** Opus in RED (RFC 2198): each packet also carries the previous one. */
function preferRedundantAudio(transceiver) {
    const all = RTCRtpReceiver.getCapabilities("audio").codecs;
    const wanted = ["audio/red", "audio/opus"].flatMap((type) => all.filter((codec) => codec.mimeType === type));
    transceiver.setCodecPreferences(wanted);
}
