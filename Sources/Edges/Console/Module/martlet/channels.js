// Messages of the application (Protocol.md, sections 5 and 11): over data channels if there are any, otherwise over the WebSocket.

import { MartletError, TOO_SOON } from "./errors.js";

/** The channels by their labels, which decide how the server forwards their messages. */
const CHANNELS = { reliable: {}, lossy: { ordered: false, maxRetransmits: 0 } };
/** Bytes that may wait in a channel before `send` waits: enough to keep it busy, and not long for a short message to wait behind. */
const BUFFERED = 128 * 1024;
/**
 * Bytes that may wait in the channel of messages that may be lost, as many as the server lets wait for a receiver (Protocol.md, section 10): anything after
 * them would be too late.
 */
const LOSSY_BUFFERED = 256 * 1024;
/** What a description without `a=max-message-size` means (RFC 8841, section 6.1). */
const DEFAULT_MESSAGE_BYTES = 65_536;
/** Milliseconds for a negotiated channel to open: ICE and DTLS take a few round trips. Until then messages are sent over the WebSocket. */
const OPEN_WITHIN = 2_000;
/** Milliseconds before a channel that the server closed, because this side read too slowly, is opened again. */
const REOPEN_AFTER = 1_000;

export class DataChannels {
    /** `onMessage({ from, identity, topic, text or bytes })`: `bytes` is an Uint8Array. */
    constructor({ signal, onMessage }) {
        Object.assign(this, { signal, onMessage });
        this.open = new Map(); // label -> RTCDataChannel, from its making on
        this.connection = null;
        this.work = Promise.resolve();
    }

    /** Makes both channels on a connection, before its first offer. */
    openOn(connection) {
        this.reset();
        this.connection = connection;
        for (const label of Object.keys(CHANNELS)) this.make(label);
    }

    /** The connection was closed on this side, for which browsers fire no event on the channels: senders that wait for room continue. */
    reset() {
        for (const channel of this.open.values()) channel.dispatchEvent(new Event("close"));
        this.open.clear();
        this.connection = null;
    }

    /** Resolves when the reliable channel is open, or will not be soon. */
    whenOpen() {
        const channel = this.open.get("reliable");
        if (channel?.readyState !== "connecting") return Promise.resolve();
        return new Promise((resolve) => {
            for (const type of ["open", "close"]) channel.addEventListener(type, resolve, { once: true });
            setTimeout(resolve, OPEN_WITHIN);
        });
    }

    make(label) {
        const channel = this.connection.createDataChannel(label, CHANNELS[label]);
        channel.binaryType = "arraybuffer";
        channel.bufferedAmountLowThreshold = BUFFERED / 2;
        channel.onmessage = ({ data }) => this.receive(data);
        this.open.set(label, channel);
    }

    /** The server closed a channel; its messages arrive over the WebSocket until there is another. */
    closedByServer({ label }) {
        const { connection } = this;
        setTimeout(() => {
            if (connection && connection === this.connection && connection.signalingState !== "closed" && label in CHANNELS) this.make(label);
        }, REOPEN_AFTER);
    }

    receive(data) {
        if (typeof data === "string") return this.onMessage(JSON.parse(data));
        const length = new DataView(data).getUint16(0);
        const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 2, length)));
        return this.onMessage({ ...header, bytes: new Uint8Array(data, 2 + length) });
    }

    /** The event `data` of the WebSocket. */
    receiveEvent({ from, identity, topic, text, bytes }) {
        this.onMessage({ from, identity, topic, ...(bytes === undefined ? { text } : { bytes: decoded(bytes) }) });
    }

    /** Sends a string, or bytes (an ArrayBuffer or a view of one). Resolves when the next message may be sent: on a channel there is no reply. */
    send(content, { topic, to, reliable = true } = {}) {
        const header = { ...(topic && { topic }), ...(to && { to }) };
        if (!reliable) return this.sendNow(content, header, "lossy");
        // One after the other, so that their order stays while a channel's buffer is full.
        const result = this.work.then(() => this.sendNow(content, header, "reliable"));
        this.work = result.catch(() => {});
        return result;
    }

    async sendNow(content, header, label) {
        const channel = [label, "reliable"].map((one) => this.open.get(one)).find((one) => one?.readyState === "open");
        if (!channel) return this.sendBySocket(content, { ...header, reliable: label === "reliable" });
        const message = typeof content === "string" ? JSON.stringify({ ...header, text: content }) : framed(header, bytesOf(content));
        const size = typeof message === "string" ? new TextEncoder().encode(message).length : message.byteLength;
        const limit = this.connection.sctp?.maxMessageSize ?? DEFAULT_MESSAGE_BYTES;
        if (size > limit) throw new MartletError("too_large", `The message has ${size} bytes; on this connection, ${limit} are permitted.`);
        // While a link stalls, a browser would keep everything, and send it when it is no longer useful.
        if (label === "lossy" && channel.bufferedAmount > LOSSY_BUFFERED) return;
        channel.send(message);
        if (label === "reliable" && channel.bufferedAmount > BUFFERED) await drained(channel);
    }

    async sendBySocket(content, fields) {
        // It may be lost, so it waits neither for another socket nor behind requests that wait for replies.
        if (!fields.reliable && (this.signal.isOpen === false || this.signal.isFull)) return;
        const body = typeof content === "string" ? { text: content } : { bytes: encoded(bytesOf(content)) };
        while (true) {
            try {
                // A request without a reply is sent again after a resume: its number shows the server what it has already delivered. The number is that of the
                // request, which grows from session to session: a message that waits may be sent on a later one.
                await this.signal.request("data", { ...fields, ...body, sequence: this.signal.nextID });
                return;
            } catch (problem) {
                if (!TOO_SOON.has(problem.code) || !fields.reliable) throw problem;
                await new Promise((resolve) => { setTimeout(resolve, (problem.retryAfter ?? 1) * 1000); });
            }
        }
    }
}

/** A closed channel accepts no more either: the next message is sent another way. */
function drained(channel) {
    return new Promise((resolve) => {
        channel.addEventListener("bufferedamountlow", resolve, { once: true });
        channel.addEventListener("close", resolve, { once: true });
    });
}

/** A binary message: the length of its header in two bytes (big-endian), the header, the content. */
function framed(header, content) {
    const head = new TextEncoder().encode(JSON.stringify(header));
    const frame = new Uint8Array(2 + head.length + content.length);
    new DataView(frame.buffer).setUint16(0, head.length);
    frame.set(head, 2);
    frame.set(content, 2 + head.length);
    return frame;
}

function bytesOf(content) {
    return ArrayBuffer.isView(content) ? new Uint8Array(content.buffer, content.byteOffset, content.byteLength) : new Uint8Array(content);
}

function encoded(bytes) {
    let text = "";
    // Pieces: an argument list has a limit.
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
}

function decoded(text) { return Uint8Array.from(atob(text), (character) => character.charCodeAt(0)); }
