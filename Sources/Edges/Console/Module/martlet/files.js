// Files over messages (Protocol.md, section 11, "Files"): offered to members, sent in chunks to those who accept, no faster than the slowest of them
// reads, and sent again from the place where one of them lost something.

import { MartletError } from "./errors.js";

/** The topic of everything about files. */
export const FILE_TOPIC = "martlet.file";
/** Bytes of a file in one message: with its base64 and header it fits in a message over a WebSocket, too (64 KiB). */
export const CHUNK_BYTES = 32 * 1024;
/** Bytes before a chunk's content: the file's id (16) and the chunk's place (8). */
export const HEADER_BYTES = 24;
/** The most bytes in flight: half of what the server holds for a slow receiver before it closes its channel (Protocol.md, section 10). */
const WINDOW_BYTES = 512 * 1024;
/** A receiver reports after so many bytes: a quarter of the window, so that reports never delay the sender. */
const REPORT_BYTES = 128 * 1024;
/** Milliseconds after which a receiver reports with the next chunk: at 131 kbit/s, the share of messages next to media, so many bytes take eight seconds. */
const REPORT_AFTER = 2_000;
/** Milliseconds for the first member to accept, and then for the others. */
const ACCEPT_WITHIN = 13_000;
const OTHERS_WITHIN = 3_000;
/** Milliseconds without progress after which a chunk counts as lost, and after which a receiver is abandoned. */
const LOST_AFTER = 5_000;
const GIVE_UP_AFTER = 30_000;
/** Milliseconds without a chunk after which a receiver abandons the sender: twice as long as the sender may wait for another receiver. */
const SENDER_WITHIN = 60_000;
/** Offers that may still be accepted: far more than a person reads at a time. For older ones it is not noticed when their sender leaves. */
const MAX_OFFERS = 100;
/** The largest file that a receiver accepts by default: it keeps the file in memory. */
export const MAX_FILE_BYTES = 100 * 1024 * 1024;

/** One chunk as it is sent: id, place, content. @param {Uint8Array} id @param {number} offset @param {Uint8Array} content */
export function chunkOf(id, offset, content) {
    const chunk = new Uint8Array(HEADER_BYTES + content.length);
    chunk.set(id);
    new DataView(chunk.buffer).setBigUint64(16, BigInt(offset));
    chunk.set(content, HEADER_BYTES);
    return chunk;
}

/** The parts of a chunk; null if it is none. @param {Uint8Array} chunk */
export function readChunk(chunk) {
    if (chunk.length <= HEADER_BYTES) return null;
    const view = new DataView(chunk.buffer, chunk.byteOffset);
    return { id: hex(chunk.subarray(0, 16)), offset: Number(view.getBigUint64(16)), content: chunk.subarray(HEADER_BYTES) };
}

/** What has arrived of one file, in order: a chunk that has arrived already, or that follows a gap, is ignored. */
export class Assembly {
    /** @param {number} size of the file in bytes */
    constructor(size) {
        this.size = size;
        this.bytes = 0;
        this.parts = [];
    }

    /** Whether the chunk was the next one. @param {number} offset @param {Uint8Array} content */
    add(offset, content) {
        if (offset !== this.bytes || offset + content.length > this.size) return false;
        this.parts.push(content.slice());
        this.bytes += content.length;
        return true;
    }

    get isComplete() { return this.bytes === this.size; }
}

/** A file that a member offers. Accept it while the event `file` is handled, or within 10 s of it. */
export class IncomingFile {
    constructor(exchange, from, { file, name, type, size }) {
        this.exchange = exchange;
        /** @type {string} */ this.id = file;
        /** The sender's name for it: text to show, not a path to write to. @type {string} */ this.name = name;
        /** Its media type according to its sender; may be empty. @type {string} */ this.type = type;
        /** In bytes. @type {number} */ this.size = size;
        /** The sid of its sender. @type {string} */ this.from = from;
        this.assembly = new Assembly(size);
        this.reported = 0;
    }

    /** How many bytes have arrived. */
    get bytes() { return this.assembly.bytes; }

    /**
     * Receives the file into memory, once, however often it is called. Rejects with `file_cancelled`, or with `file_incomplete`, for example if nothing arrives
     * for 60 s.
     * @param {{ onProgress?: (bytes: number, size: number) => void }} [options]
     * @returns {Promise<Blob>}
     */
    accept({ onProgress } = {}) {
        this.exchange.offers.delete(this);
        if (this.problem) return Promise.reject(this.problem);
        if (onProgress) this.onProgress = onProgress;
        return this.accepted ??= new Promise((resolve, reject) => {
            // A chunk may arrive before the first report, which waits for data channels.
            Object.assign(this, { resolve, reject, reportedAt: performance.now() });
            this.exchange.receiving.set(this.id, this);
            this.awaitChunk();
            this.exchange.prepare().catch(() => {}).then(() => {
                if (this.exchange.receiving.get(this.id) !== this) return;
                this.report();
                if (this.assembly.isComplete) this.finish();
            });
        });
    }

    /** Declines the file, or cancels its transfer. @param {string} [reason] a word for the sender's program */
    decline(reason = "declined") {
        this.refuse(reason, new MartletError("file_cancelled", `The file “${this.name}” was declined.`));
    }

    refuse(reason, problem) {
        this.exchange.notify({ file: this.id, state: "declined", reason }, [this.from]);
        this.fail(problem);
    }

    /**
     * A sender may stay in the room but send nothing more. The last seconds begin only once the page runs, so that after a suspension it first reads what has
     * arrived.
     */
    awaitChunk() {
        clearTimeout(this.waiting);
        const giveUp = () => {
            this.refuse("declined", new MartletError("file_incomplete", `“${this.name}” ended before it was complete: its sender sends nothing more.`));
        };
        this.waiting = setTimeout(() => { this.waiting = setTimeout(giveUp, LOST_AFTER); }, SENDER_WITHIN - LOST_AFTER);
    }

    take(offset, content) {
        this.awaitChunk(); // Also for one that is sent again: another receiver lost it.
        // A chunk that does not fit follows a lost one, or was sent again: the reported position tells the sender which.
        if (!this.assembly.add(offset, content)) return;
        this.onProgress?.(this.bytes, this.size);
        const isDue = this.bytes - this.reported >= REPORT_BYTES || performance.now() - this.reportedAt >= REPORT_AFTER;
        if (this.assembly.isComplete || isDue) this.report();
        if (this.assembly.isComplete) this.finish();
    }

    report() {
        this.reported = this.bytes;
        this.reportedAt = performance.now();
        this.exchange.notify({ file: this.id, state: "received", bytes: this.bytes }, [this.from]);
    }

    finish() {
        clearTimeout(this.waiting);
        this.exchange.receiving.delete(this.id);
        // A page that shows an unknown sender's file would run it: scripts in HTML or SVG that the page opens count as its own. An app that
        // wants to show a file makes a Blob of a type that it trusts.
        this.resolve(new Blob(this.assembly.parts, { type: this.type }));
    }

    fail(problem) {
        clearTimeout(this.waiting);
        this.problem = problem; // For whoever accepts it later.
        this.exchange.offers.delete(this);
        if (this.exchange.receiving.get(this.id) === this) this.exchange.receiving.delete(this.id);
        this.reject?.(problem);
    }
}

class OutgoingFile {
    constructor(exchange, blob, { name, onProgress, acceptWithin = ACCEPT_WITHIN }, expected) {
        Object.assign(this, { exchange, blob, onProgress, acceptWithin });
        this.name = name ?? blob.name ?? "file";
        this.key = crypto.getRandomValues(new Uint8Array(16));
        this.id = hex(this.key);
        this.expected = new Set(expected); // sids that have not answered
        this.receivers = new Map(); // sid -> { bytes, at, isOverdue }
        this.declined = [];
        this.isOpen = true; // more may accept
        this.wake = () => {};
    }

    /** Waits for an answer, a report or a cancellation; resolves with whether one arrived within so many milliseconds. */
    changed(within) {
        return new Promise((resolve) => {
            const timer = setTimeout(() => resolve(false), Math.max(within, 0));
            this.wake = () => { clearTimeout(timer); resolve(true); };
        });
    }

    async run(to) {
        await this.exchange.notify({ file: this.id, state: "offered", name: this.name, type: this.blob.type, size: this.blob.size }, to);
        await this.collect();
        if (!this.receivers.size) throw this.refusal();
        await this.sendChunks();
        const complete = [...this.receivers.values()].filter(({ bytes }) => bytes === this.blob.size).length;
        if (!complete) throw new MartletError("file_incomplete", `Nobody received all of “${this.name}”.`);
        return { receivers: complete };
    }

    async collect() {
        let end = performance.now() + this.acceptWithin;
        while (this.expected.size && performance.now() < end && !this.problem) {
            await this.changed(end - performance.now());
            if (this.receivers.size) end = Math.min(end, performance.now() + OTHERS_WITHIN);
        }
        this.isOpen = false;
        if (this.problem) throw this.problem;
    }

    refusal() {
        if (this.declined.includes("too_large")) return new MartletError("too_large", `“${this.name}” is larger than the others accept.`);
        return new MartletError("file_not_accepted", `Nobody accepted “${this.name}”.`);
    }

    async sendChunks() {
        const { size } = this.blob;
        let position = 0;
        while (true) {
            if (this.problem) throw this.problem;
            const active = [...this.receivers].filter(([, { bytes }]) => bytes < size);
            if (!active.length) return;
            const slowest = Math.min(...active.map(([, { bytes }]) => bytes));
            this.onProgress?.(slowest, size);
            position = Math.max(position, slowest); // What was considered lost may have arrived after all.
            if (position < size && position - slowest < WINDOW_BYTES) {
                const content = new Uint8Array(await this.blob.slice(position, position + CHUNK_BYTES).arrayBuffer());
                await this.exchange.send(chunkOf(this.key, position, content), { topic: FILE_TOPIC, to: active.map(([sid]) => sid) });
                position += content.length;
            } else if (!await this.changed(LOST_AFTER)) {
                position = slowest;
                this.giveUpOverdue(active);
            }
        }
    }

    /** Abandons receivers that have made no progress. If the page itself was suspended, their reports are read before the next check. */
    giveUpOverdue(receivers) {
        for (const [sid, one] of receivers) {
            const idle = performance.now() - one.at;
            if (idle > GIVE_UP_AFTER && one.isOverdue) this.giveUp(sid);
            one.isOverdue = idle > GIVE_UP_AFTER - LOST_AFTER;
        }
    }

    /** A receiver has so many bytes: 0 if it has just accepted. */
    reported(sid, bytes) {
        this.expected.delete(sid);
        const known = this.receivers.get(sid);
        if (known) Object.assign(known, bytes > known.bytes ? { bytes, at: performance.now(), isOverdue: false } : {});
        else if (this.isOpen) this.receivers.set(sid, { bytes: 0, at: performance.now() });
        else this.exchange.notify({ file: this.id, state: "cancelled" }, [sid]);
        this.wake();
    }

    /** Abandons a receiver that makes no progress, and notifies it that nothing more will arrive, because it may be waiting. */
    giveUp(sid) {
        this.receivers.delete(sid);
        this.exchange.notify({ file: this.id, state: "cancelled" }, [sid]);
    }

    without(sid, reason) {
        if (reason && this.expected.has(sid)) this.declined.push(reason);
        this.expected.delete(sid);
        this.receivers.delete(sid);
        this.wake();
    }

    cancel(problem) {
        this.problem = problem;
        this.wake();
    }
}

/** All files that are sent and received. */
export class FileExchange {
    /**
     * `send(content, options)` sends a message; `onFile(file)`: one is offered; `limit()`: bytes of the largest file that is accepted; `prepare()` opens data
     * channels.
     */
    constructor({ send, onFile, limit, prepare }) {
        Object.assign(this, { send, onFile, limit, prepare });
        this.sending = new Map(); // id -> OutgoingFile
        this.receiving = new Map(); // id -> IncomingFile
        this.offers = new Set(); // offers that are neither accepted nor declined, oldest first
    }

    notify(message, to) {
        const sent = this.send(JSON.stringify(message), { topic: FILE_TOPIC, to });
        sent.catch(() => {}); // A member who has left needs no report; the sender waits for the answer to its offer.
        return sent;
    }

    /** Sends a file to `to`, or to everybody; `expected`: sids of those who may accept. */
    async sendFile(blob, { to, signal, ...options }, expected) {
        const file = new OutgoingFile(this, blob, options, expected);
        const abort = () => file.cancel(new MartletError("file_cancelled", `“${file.name}” was cancelled.`));
        if (signal?.aborted) abort();
        signal?.addEventListener("abort", abort);
        this.sending.set(file.id, file);
        try {
            return await file.run(to);
        } catch (problem) {
            this.notify({ file: file.id, state: "cancelled" }, to);
            throw problem;
        } finally {
            signal?.removeEventListener("abort", abort);
            this.sending.delete(file.id);
        }
    }

    /** A message of FILE_TOPIC. Nothing in it is trusted: anybody in the room may have sent it. */
    receive({ from, text, bytes }) {
        if (bytes) {
            const chunk = readChunk(bytes);
            const file = chunk && this.receiving.get(chunk.id);
            if (file?.from === from) file.take(chunk.offset, chunk.content);
            return;
        }
        let message;
        try { message = JSON.parse(text); } catch { return; }
        if (typeof message?.file !== "string" || !from) return;
        const incoming = this.receiving.get(message.file);
        if (message.state === "offered" && !incoming) this.offered(from, message);
        else if (message.state === "cancelled" && incoming?.from === from) {
            incoming.fail(new MartletError("file_cancelled", `“${incoming.name}” was cancelled.`));
        } else if (message.state === "received" && Number.isSafeInteger(message.bytes)) {
            const outgoing = this.sending.get(message.file);
            if (outgoing) outgoing.reported(from, message.bytes);
            // Accepted after it was cancelled. A receiver that has the whole file ignores this message.
            else this.notify({ file: message.file, state: "cancelled" }, [from]);
        } else if (message.state === "declined") this.sending.get(message.file)?.without(from, String(message.reason ?? "declined"));
    }

    offered(from, { file, name, type, size }) {
        if (!/^[0-9a-f]{32}$/.test(file) || !Number.isSafeInteger(size) || size < 0) return;
        // A second file with the same id is from somebody else, and would replace the first.
        if ([...this.offers].some((one) => one.id === file)) return;
        const offer = new IncomingFile(this, from, { file, name: shown(String(name ?? "")), type: String(type ?? ""), size });
        if (size > this.limit()) return offer.decline("too_large");
        this.offers.add(offer);
        if (this.offers.size > MAX_OFFERS) this.offers.delete(this.offers.values().next().value);
        this.onFile(offer);
    }

    /** A member has left: what it sent will not be complete, and nothing is sent to it. */
    left(sid) {
        for (const file of [...this.receiving.values(), ...this.offers]) {
            if (file.from === sid) file.fail(new MartletError("file_incomplete", `“${file.name}” ended before it was complete: its sender has left.`));
        }
        for (const file of this.sending.values()) file.without(sid);
    }

    /** The session ended: its sids are no longer valid. */
    stop(problem) {
        for (const file of [...this.receiving.values(), ...this.offers]) file.fail(problem);
        for (const file of this.sending.values()) file.cancel(problem);
    }
}

/**
 * A name without characters that hide its end or make it a path: controls, bidirectional controls, path separators; at most 200 characters, without losing the
 * end.
 */
function shown(name) {
    const text = name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "").replace(/[/\\]/g, "_");
    return [...text].slice(-200).join("") || "file";
}

function hex(bytes) { return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""); }
