// A client of martlet.v1 (Sources/Edges/Signalling/Protocol.md): requests with replies, events in order, resume after a
// dropped socket, a fresh join if the server has forgotten the session.

import { MartletError, left, lost } from "./errors.js";

/**
 * Close codes after which the session may continue, and after which a new one may be made (the table in Protocol.md, section 9). A page that slept reads 4007
 * when another device may already have its identity: a join would end that session, a resume does not.
 */
const RESUMABLE = new Set([1005, 1006, 1013, 4007]);
const FRESH = new Set([1001, 4006, 4008]);
/** Refusals of a rejoin after which another try may succeed. */
const TEMPORARY = new Set(["draining", "overloaded", "rate_limited", "media_unavailable"]);
/** The server's close code if nobody joins in time, for example because a page slept while it waited to be let in, or just when its next socket had opened. */
const NOT_JOINED = 4001;
/** Requests by which a session begins or continues; they are valid for one socket. */
const ENTERING = new Set(["join", "resume", "ping"]);
/**
 * Requests that have no reply yet, and their bytes: the server closes a socket of which 256 requests, or 1 MiB, wait to be carried out, as when an app requests
 * a size for each of many videos. Further ones wait here.
 */
const MOST_UNANSWERED = 64;
const MOST_UNANSWERED_BYTES = 524_288;
/** The refusal of a request beyond 200 per second, or 400 at once (Protocol.md, section 10): the server has not carried out any part of a refused one. */
const TOO_MANY = "too_many_requests";
/** Texts for people if a close code is the only explanation; usually the event `ended` has come before. */
const LAST_WORDS = {
    4002: "This session was continued in another window.",
    4003: "You were removed from the room.",
    4004: "You joined this room from another window.",
    4005: "The room was closed.",
};
/** The same for programs: the reasons that `ended` gives, and a code of the module (`errors.js`). */
const LAST_CODES = { 4002: "resumed_elsewhere", 4003: "removed", 4004: "duplicate_identity", 4005: "room_deleted" };
/** Milliseconds between two tries to reach an unreachable server: 200, 400, … */
const LONGEST_WAIT = 2_000;
/**
 * Seconds without a message after which the server is asked for one, and after which a socket is given up that seems open or is still
 * opening: if nothing ends a connection, TCP itself would wait for minutes. They are counted in turns of a timer, so that time in
 * which the page did not run does not count as the server's silence.
 */
const ASK_AFTER = 2;
const GIVE_UP_AFTER = 5;
/**
 * The maximum of that time, which doubles with each socket on which the server has begun to send: a browser delivers a message only when it is complete, and on
 * a slow path the description of a large room takes longer than GIVE_UP_AFTER. If the socket were given up each time, it would be sent anew for ever.
 */
const LONGEST_SILENCE = 40;
/** Milliseconds between two turns of the timer that show that the page did not run: the machine slept, or the browser was stopped. */
const SUSPENDED = 5_000;
/**
 * The server's own answers to a plain GET: no WebSocket reaches it, or it accepts no further one; and how many of one kind in a row end the attempt to join. A
 * 404 may come from a proxy whose server restarts.
 */
const NO_WEBSOCKET = 426;
const FULL = 503;
const UNPASSED_TRIES = 3;
/** Seconds, after the time for which the server keeps a lost session, in which this client's former session may still have its identity. */
const FORMER_SESSION = 5;
/** Seconds within which the app's function must return a token during a stay: longer than any working backend takes. */
const TOKEN_WITHIN = 15;
/**
 * Milliseconds before a token's expiry at which the app's function is asked for another one: as long as four tries of TOKEN_WITHIN, or half of a shorter
 * validity.
 */
const RENEW_BEFORE = 60_000;
/** The most bytes of a request before the server has announced its limit (Protocol.md, section 10). */
const MOST_BYTES = 262_144;
/** Seconds that a farewell without an open socket may take. */
const FAREWELL = 5;

export class Signal {
    /**
     * `url` is the server's address (http, https, ws or wss); `join` is the join request's fields; `token` the access token, or a function that returns one, or
     * a promise of one: it is called before each socket and before a token expires, so that a stay may outlast its first token. Before the first join it may
     * take any time, as while a person logs in; later, a token that does not come within 15 s counts as a server that does not answer.
     * Handlers: onJoined(reply, iceServers), onGuest() while nobody has let this client in, onICEServers(servers) with new credentials, onEvent(event),
     * onState("connecting" | "connected" | "failed", cause), onSuspended(seconds), onEnd(problem). `cause` is why a connection was lost: "stopping", "silent",
     * "closed" or "unreachable".
     */
    constructor({ url, token, join, onJoined, onGuest, onICEServers, onEvent, onState, onSuspended, onEnd }) {
        Object.assign(this, { url, token, join, onJoined, onGuest, onICEServers, onEvent, onState, onSuspended, onEnd });
        this.nextID = 1;
        this.waiting = new Map(); // id -> { message, its length in bytes, owner, socket on which it was sent, resolve, reject }
        this.session = null;
        this.room = undefined; // its name
        this.sequence = 0;
        this.entered = false;
        this.over = false;
        this.tries = 0;
        this.longest = MOST_BYTES; // of a request
        this.isFull = false; // requests wait for the replies to earlier ones, or until the server takes more
        this.holding = null; // a timer, until which they wait for that
        this.patience = GIVE_UP_AFTER; // with a socket on which the server has begun to speak
        this.unpassed = 0; // answers of NO_WEBSOCKET in a row, or of FULL: which, `unpassedAs` says
        this.isGuest = false; // waits to be let in
        this.isRenewing = false; // another token was asked for, because the last one had expired
        this.held = ""; // the token that the server uses
        this.ahead = 0; // milliseconds by which the server's clock is ahead of this machine's
        this.renewAt = Infinity; // on the clock: when another token is due
        this.formerUntil = 0; // on the clock: until then a session that could not be resumed may still be known to the server
        this.ranAt = Date.now();
        this.timer = setInterval(() => this.turn(), 1000);
        this.online = () => this.retry();
        addEventListener("online", this.online);
        this.connect(); // Last: it may end at once.
    }

    /** The address of the socket; with `isPlain`, the one at which a GET answers why it was refused. */
    address(isPlain) {
        const address = new URL(this.url || "/", location.href);
        address.protocol = (/^(https|wss):$/.test(address.protocol) ? "https" : "http").replace("http", isPlain ? "http" : "ws");
        address.pathname = `${address.pathname.replace(/\/$/, "")}/v1/signal`;
        address.search = new URLSearchParams({ access_token: this.used }).toString();
        address.hash = "";
        return address;
    }

    /** Whether to wait for an unreachable server: yes during a stay, and while this client waits to be let in. */
    get persists() { return this.entered || this.isGuest; }

    connect() {
        clearTimeout(this.retrying);
        clearTimeout(this.holding);
        this.retrying = this.socket = this.holding = null;
        this.greeted = this.isOpen = false;
        this.quiet = this.sinceAsked = 0;
        this.onState("connecting", this.cause);
        if (!this.over) this.open(); // A listener may have left.
    }

    async open() {
        try {
            const token = typeof this.token === "function" ? await this.newToken() : this.token;
            if (this.over) return;
            this.used = token;
            this.socket = new WebSocket(this.address(), "martlet.v1");
            this.socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
            this.socket.onclose = ({ code }) => this.closed(code);
        } catch (problem) {
            if (!this.persists) return this.end(problem);
            if (this.over) return;
            console.warn("Cannot connect again yet:", problem.message);
            this.lost("unreachable", { unanswered: true });
        }
    }

    /** The token from the app's function, which may wait for an answer that never comes, or for a person; only the first join waits for a person. */
    async newToken() {
        if (!this.entered) return this.token();
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error(`No access token was given within ${TOKEN_WITHIN} s.`)), TOKEN_WITHIN * 1000);
        });
        try {
            return await Promise.race([this.token(), late]);
        } finally {
            clearTimeout(timer);
        }
    }

    /**
     * Sends a request, again after a resume; resolves with its reply, rejects with an Error that has the reply's code. `owner` identifies the connection
     * that it is about: see `cancel`.
     */
    request(type, fields = {}, owner = null) {
        if (this.over) return Promise.reject(left());
        const message = { type, id: this.nextID++, ...fields };
        const { length } = new TextEncoder().encode(JSON.stringify(message));
        // The server would close the socket for good.
        if (length > this.longest) return Promise.reject(new MartletError("too_large", `The request has ${length} bytes; ${this.longest} are permitted.`));
        return new Promise((resolve, reject) => {
            this.waiting.set(message.id, { message, length, owner, socket: null, resolve, reject });
            if (ENTERING.has(type)) this.send(message);
            else this.sendWaiting();
        });
    }

    /**
     * Sends what was not sent on this socket. Until the session continues, all requests wait their turn, so that the server gets them in the order in which
     * they were made.
     */
    sendWaiting() {
        if (!this.isOpen || this.holding) return;
        let unanswered = 0, bytes = 0;
        this.isFull = true;
        for (const one of this.waiting.values()) {
            if (ENTERING.has(one.message.type)) continue;
            unanswered += 1;
            bytes += one.length;
            if (unanswered > MOST_UNANSWERED || (unanswered > 1 && bytes > MOST_UNANSWERED_BYTES)) return;
            if (one.socket === this.socket) continue;
            one.socket = this.socket;
            this.send(one.message);
        }
        this.isFull = false;
    }

    /**
     * The server has refused a request because there were too many: following ones would be refused, too, and if that continued, the server would close the
     * socket for good.
     */
    hold(seconds) {
        clearTimeout(this.holding);
        this.isFull = true;
        this.holding = setTimeout(() => {
            this.holding = null;
            this.sendWaiting();
        }, seconds * 1000);
    }

    /**
     * A connection ended: its requests are not sent again, because the next connection has the same name, and nobody needs their replies. They reject with
     * `lost`.
     */
    cancel(owner) {
        for (const [id, { owner: one, reject }] of this.waiting) {
            if (one !== owner) continue;
            this.waiting.delete(id);
            reject(lost());
        }
        this.sendWaiting();
    }

    send(message) {
        if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    }

    /** Once a second: keeps the session alive, and notices a server that is silent and a page that did not run. */
    turn() {
        this.noticeSuspension();
        this.renewWhenDue();
        if (this.retrying || !this.socket || this.socket.readyState > WebSocket.OPEN) return;
        this.quiet += 1;
        this.sinceAsked += 1;
        if (this.quiet >= (this.greeted ? this.patience : GIVE_UP_AFTER)) {
            if (this.greeted) this.patience = Math.min(2 * this.patience, LONGEST_SILENCE);
            return this.abandon(this.greeted ? "silent" : "unreachable", { unanswered: true });
        }
        if (this.quiet === ASK_AFTER || this.sinceAsked >= this.pingInterval) this.ping();
    }

    ping() {
        this.sinceAsked = 0;
        this.send({ type: "ping", id: this.nextID++ });
    }

    /**
     * Plans the next keep-alive, if nothing else is sent before. A browser runs the timers of a hidden page only once a minute if a timer started them, as each
     * turn of an interval is: a message of the server starts this one.
     */
    pingLater() {
        clearTimeout(this.pinging);
        this.pinging = setTimeout(() => {
            this.noticeSuspension();
            this.renewWhenDue();
            this.ping();
        }, this.pingInterval * 1000);
    }

    /** Called whenever the page runs: checks whether it did not run for a while. A hidden page may run only when it pings. */
    noticeSuspension() {
        const elapsed = Date.now() - this.ranAt;
        this.ranAt += elapsed;
        if (elapsed <= SUSPENDED + (document.hidden ? (this.pingInterval ?? 0) * 1000 : 0)) return;
        this.onSuspended(elapsed / 1000);
        // What the server sent meanwhile is about to be read.
        this.quiet = 0;
        this.sinceAsked = Infinity;
    }

    /** Asks for another token in time: a room's policy may end stays with their tokens. */
    renewWhenDue() { if (Date.now() >= this.renewAt) this.renew(() => this.newToken()); }

    /** Sends the token that `given` returns to the server; if that fails, another one is requested a little later. */
    async renew(given) {
        this.renewAt = Infinity; // One after the other.
        try {
            const token = await given();
            if (token !== this.held) await this.request("token", { token });
            this.held = token;
        } catch (problem) {
            if (!this.over && problem.code !== "lost") console.warn("Cannot renew the access token yet:", problem.message);
        }
        const left = endOf(this.held) - this.ahead - Date.now();
        if (typeof this.token === "function" && left > 0) this.renewAt = Date.now() + Math.max(left - RENEW_BEFORE, left / 2);
    }

    /** Gives the socket up without waiting for the server to close it as well, which it may never do. */
    abandon(cause, options) {
        this.socket.onmessage = this.socket.onclose = null;
        this.socket.close();
        return this.lost(cause, options);
    }

    receive(message) {
        if (this.over) return; // Read before it closes; nobody listens.
        this.noticeSuspension();
        if (this.over) return; // Whoever heard that has left.
        this.quiet = 0;
        const waiting = this.waiting.get(message.id);
        if (waiting) {
            this.waiting.delete(message.id);
            if (message.code === TOO_MANY) this.hold(message.retryAfter ?? 1);
            this.sendWaiting();
            if (message.type !== "error") waiting.resolve(message);
            // The server has ended the connection; the event that reports it may come after this reply.
            else if (waiting.owner && message.code === "connection_not_found") waiting.reject(lost());
            else waiting.reject(MartletError.of(message));
        } else if (message.type === "hello") {
            this.greeted = true;
            this.unpassed = 0;
            this.pingInterval = message.pingIntervalSeconds;
            this.resumeWindow = message.resumeWindowSeconds;
            this.longest = message.maxMessageBytes ?? MOST_BYTES;
            this.pingLater();
            this.enter(message);
        } else if (message.type === "pong") {
            this.patience = GIVE_UP_AFTER; // Everything that the server sent before it has arrived.
            this.pingLater();
        } else if (message.type === "iceServers") {
            this.iceServers = message.iceServers;
            this.onICEServers(message.iceServers);
        } else if (message.seq > this.sequence) {
            this.sequence = message.seq;
            this.onEvent(message);
        }
    }

    /** Resumes the session that was lost, or joins. */
    async enter({ iceServers }) {
        this.iceServers = iceServers;
        try {
            if (this.session) {
                await this.request("resume", { session: this.session, seq: this.sequence, room: this.room });
                this.onICEServers(iceServers); // Those of the last socket expire.
                // Missed events arrive now. They may have ended connections (`cancel`), so requests about one wait for a round trip.
                if ([...this.waiting.values()].some(({ owner }) => owner)) await this.request("ping");
            } else {
                const reply = await this.joinOrWait();
                this.session = reply.session;
                this.room = reply.room?.name;
                this.sequence = reply.seq;
                this.entered = true;
                this.held = this.used;
                if (reply.participant) this.ahead = reply.participant.joinedAt - Date.now();
                this.isRenewing = this.isGuest = false;
                this.onJoined(reply, this.iceServers);
                if (this.over) return; // Whoever heard that has left.
            }
            this.isOpen = true;
            // All requests of the module may be repeated (Protocol.md, section 8).
            this.sendWaiting();
            this.tries = 0;
            this.cause = undefined;
            this.renew(() => this.used); // The server uses it from now on, even if it expires earlier than the previous one.
            this.onState("connected");
        } catch (problem) {
            if (this.over || problem.code === "lost") return;
            if (this.session) this.outlive();
            else if (this.persists && (TEMPORARY.has(problem.code) || this.isOwnFormer(problem))) this.abandon("closed");
            // It expired while nobody let this client in: the function is asked for another one, once.
            else if (problem.code === "token_expired" && typeof this.token === "function" && !this.isRenewing) {
                this.isRenewing = true;
                this.abandon("closed");
            } else this.end(problem);
        }
    }

    /** The server no longer resumes the session. If it does not know that the session is over, it keeps it, and its identity, for a while. */
    outlive() {
        this.formerUntil = Date.now() + (this.resumeWindow + FORMER_SESSION) * 1000;
        this.startOver();
    }

    /** Whether this client's own former session has the identity, if a room refuses a second session of it. */
    isOwnFormer({ code }) { return code === "identity_taken" && Date.now() < this.formerUntil; }

    /** Joins; with a waiting room, the join is repeated until somebody there decides. */
    async joinOrWait() {
        const { socket } = this;
        while (true) {
            try {
                return await this.request("join", this.join);
            } catch (problem) {
                if (problem.code !== "approval_required") throw problem;
                this.isRenewing = false;
                this.isGuest = true;
                this.onGuest();
                await new Promise((resolve) => { setTimeout(resolve, problem.retryAfter * 1000); });
                if (this.over || this.socket !== socket || socket.readyState !== WebSocket.OPEN) throw lost();
            }
        }
    }

    /** The server no longer knows the session: the next socket joins afresh. */
    startOver() {
        this.forget();
        this.abandon("closed");
    }

    /** Ends the session; its requests get no reply and reject with `problem`. */
    forget(problem = lost()) {
        this.session = null;
        this.sequence = 0;
        for (const { reject } of this.waiting.values()) reject(problem);
        this.waiting.clear();
    }

    closed(code) {
        if (this.over) return;
        if (code === NOT_JOINED && this.persists && !this.isOpen) return this.lost("closed");
        if (FRESH.has(code)) this.forget();
        if (!FRESH.has(code) && !RESUMABLE.has(code)) {
            return this.end(new MartletError(LAST_CODES[code] ?? "closed", LAST_WORDS[code] ?? `The server ended the session (${code}).`));
        }
        return this.lost(code === 1001 ? "stopping" : this.greeted ? "closed" : "unreachable");
    }

    /** The socket can no longer be used: opens another one, unless the server answers that it would refuse that one, too. */
    async lost(cause, { unanswered = false } = {}) {
        for (const [id, { message, reject }] of this.waiting) {
            if (!ENTERING.has(message.type)) continue;
            this.waiting.delete(id);
            reject(lost());
        }
        // The first cause is what a person needs to know: later tries only find an unreachable server. A socket that merely closed is less informative than
        // that.
        if (!this.cause || this.cause === "closed") this.cause = cause;
        this.onState("connecting", this.cause);
        const refusal = this.greeted || (unanswered && this.persists) ? null : await this.refusal();
        if (this.over) return;
        if (refusal) return this.end(refusal);
        this.retrying = setTimeout(() => this.retry(), Math.min(LONGEST_WAIT, 200 * 2 ** this.tries++));
    }

    /** Tries now rather than when the next try is due. */
    retry() {
        if (this.retrying && !this.over) this.connect();
    }

    /** Why the server accepts no socket: browsers hide the answer to an upgrade, but a plain GET gets the same one. */
    async refusal() {
        try {
            const reply = await fetch(this.address(true), { signal: AbortSignal.timeout(GIVE_UP_AFTER * 1000) });
            const { status } = reply, isUnpassed = status === NO_WEBSOCKET || status === FULL;
            this.unpassed = !isUnpassed ? 0 : status === this.unpassedAs ? this.unpassed + 1 : 1;
            this.unpassedAs = status;
            const isFutile = this.unpassed >= UNPASSED_TRIES;
            if (isFutile && status === NO_WEBSOCKET && !this.entered) {
                return new MartletError("no_websocket", "The server answers, but no WebSocket reaches it: a proxy in between does not pass it on.");
            }
            if (status === 401 || status === 403) return await refusalOf(reply);
            // An answer without a problem document is a proxy's, whose server may come back.
            if (isFutile && status === FULL && !this.persists) return await refusalOf(reply).catch(() => null);
            return null;
        } catch {
            return this.persists ? null : new MartletError("unreachable", "The server does not answer.");
        }
    }

    end(problem) {
        if (this.over) return;
        this.finish();
        this.forget(left());
        this.socket?.close();
        this.onState("failed");
        this.onEnd(problem);
    }

    finish() {
        this.over = true;
        clearInterval(this.timer);
        clearTimeout(this.retrying);
        clearTimeout(this.pinging);
        clearTimeout(this.holding);
        removeEventListener("online", this.online);
    }

    leave() {
        const { session, sequence } = this;
        this.finish();
        // Before the server's `hello` nothing was resumed yet. Requests are carried out in order, so the leave may follow a resume without a reply.
        const isThere = this.greeted && this.socket?.readyState === WebSocket.OPEN;
        if (isThere) this.send({ type: "leave", id: this.nextID++ });
        this.forget(left());
        this.socket?.close(1000);
        if (session && !isThere) this.sayFarewell(session, sequence).catch(() => {});
    }

    /** The server keeps a session whose socket was lost, and the others see it: one more socket ends it. If that fails, it ends by itself after a while. */
    async sayFarewell(session, sequence) {
        const deadline = Date.now() + FAREWELL * 1000;
        this.used = typeof this.token === "function" ? await this.token() : this.token;
        if (Date.now() >= deadline) return;
        const socket = new WebSocket(this.address(), "martlet.v1");
        const send = (message) => socket.send(JSON.stringify({ ...message, id: this.nextID++ }));
        const closing = setTimeout(() => socket.close(), deadline - Date.now());
        socket.onclose = () => clearTimeout(closing);
        socket.onmessage = ({ data }) => {
            const { type } = JSON.parse(data);
            if (type === "hello") send({ type: "resume", session, seq: sequence });
            else if (type === "resumed") send({ type: "leave" });
            else if (type === "ok" || type === "error") socket.close(1000);
        };
    }
}

/** When an access token ends, in milliseconds since 1970; NaN if it does not say. */
function endOf(token) {
    try {
        return JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).exp * 1000;
    } catch {
        return NaN;
    }
}

/** The content of a problem document. */
async function refusalOf(reply) {
    const { code, detail } = await reply.json();
    if (typeof code !== "string") throw new Error("This is no document of the server's, but a proxy's.");
    return new MartletError(code, detail, { retryAfter: Number(reply.headers.get("Retry-After")) || undefined });
}
