// A client of martlet.v1 (Sources/Edges/Signalling/Protocol.md): requests with replies, events in order, resume after a
// dropped socket, a fresh join where the server has forgotten the session.

/** Close codes after which the session may go on, and after which a new one may be made (Protocol.md, section 9). */
const RESUMABLE = new Set([1005, 1006, 1013, 4006]);
const FRESH = new Set([1001, 4007, 4008]);
/** Refusals of a rejoin that another try may not meet. */
const TEMPORARY = new Set(["draining", "overloaded", "rate_limited"]);
/** What a person reads where a close code is the last word; usually the event `ended` has said it before. */
const LAST_WORDS = {
    4002: "This session went on in another window.",
    4003: "You were removed from the room.",
    4004: "You joined this room from another window.",
    4005: "The room was closed.",
};
/** Milliseconds between two tries to reach a server that is away: 200, 400, … */
const LONGEST_WAIT = 2_000;

export class Signal {
    /**
     * `join` is the join request's fields; `token` the access token.
     * Handlers: onJoined(reply, hello), onEvent(event), onState("connecting" | "connected" | "failed"), onEnd(problem).
     */
    constructor({ token, join, onJoined, onEvent, onState, onEnd }) {
        Object.assign(this, { token, join, onJoined, onEvent, onState, onEnd });
        this.nextID = 1;
        this.waiting = new Map(); // id -> { message, resolve, reject }
        this.session = null;
        this.sequence = 0;
        this.entered = false;
        this.over = false;
        this.tries = 0;
        this.connect();
    }

    address(scheme) {
        const address = new URL("/v1/signal", location.href);
        if (scheme) address.protocol = address.protocol.replace("http", scheme);
        address.searchParams.set("access_token", this.token);
        return address;
    }

    connect() {
        this.onState("connecting");
        this.greeted = false;
        this.socket = new WebSocket(this.address("ws"), "martlet.v1");
        this.socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
        this.socket.onclose = ({ code }) => this.closed(code);
    }

    /** Sends a request, again after a resume; resolves with its reply, rejects with an Error that has the reply's code. */
    request(type, fields = {}) {
        const message = { type, id: this.nextID++, ...fields };
        return new Promise((resolve, reject) => {
            this.waiting.set(message.id, { message, resolve, reject });
            this.send(message);
        });
    }

    send(message) {
        if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    }

    receive(message) {
        const waiting = this.waiting.get(message.id);
        if (waiting) {
            this.waiting.delete(message.id);
            if (message.type === "error") waiting.reject(Object.assign(new Error(message.message), { code: message.code }));
            else waiting.resolve(message);
        } else if (message.type === "hello") {
            this.greeted = true;
            clearInterval(this.pings);
            this.pings = setInterval(() => this.send({ type: "ping" }), message.pingIntervalSeconds * 1000);
            this.enter(message);
        } else if (message.seq > this.sequence) {
            this.sequence = message.seq;
            this.onEvent(message);
        }
    }

    /** Resumes the session that was lost, or joins. */
    async enter(hello) {
        const unanswered = [...this.waiting.values()].map(({ message }) => message);
        try {
            if (this.session) {
                await this.request("resume", { session: this.session, seq: this.sequence });
                // All requests are harmless twice (Protocol.md, section 8).
                for (const message of unanswered) this.send(message);
            } else {
                const reply = await this.request("join", this.join);
                this.session = reply.session;
                this.sequence = reply.seq;
                this.entered = true;
                this.onJoined(reply, hello);
            }
            this.tries = 0;
            this.onState("connected");
        } catch (problem) {
            if (this.over || problem.code === "lost") return;
            if (this.session) this.startOver();
            else if (this.entered && TEMPORARY.has(problem.code)) this.socket.close();
            else this.end(problem);
        }
    }

    /** The server knows the session no more: the next socket joins afresh. */
    startOver() {
        this.forget();
        this.socket.close();
    }

    forget() {
        this.session = null;
        this.sequence = 0;
        for (const { reject } of this.waiting.values()) reject(lost());
        this.waiting.clear();
    }

    async closed(code) {
        clearInterval(this.pings);
        for (const [id, { message, reject }] of this.waiting) {
            if (message.type !== "join" && message.type !== "resume") continue;
            this.waiting.delete(id);
            reject(lost());
        }
        if (this.over) return;
        if (FRESH.has(code)) this.forget();
        if (!FRESH.has(code) && !RESUMABLE.has(code)) {
            return this.end(new Error(LAST_WORDS[code] ?? `The server ended the session (${code}).`));
        }
        this.onState("connecting");
        const refusal = this.greeted ? null : await this.refusal();
        if (this.over) return;
        if (refusal) return this.end(refusal);
        setTimeout(() => this.over || this.connect(), Math.min(LONGEST_WAIT, 200 * 2 ** this.tries++));
    }

    /** Why the server takes no socket: browsers hide the answer to an upgrade, but a plain GET gets the same one. */
    async refusal() {
        try {
            const reply = await fetch(this.address());
            if (reply.status !== 401 && reply.status !== 403) return null;
            const { detail, code } = await reply.json();
            return Object.assign(new Error(detail), { code });
        } catch {
            // Nobody there. To a stay that has begun it may come back.
            return this.entered ? null : new Error("The server does not answer.");
        }
    }

    end(problem) {
        if (this.over) return;
        this.over = true;
        this.forget();
        this.socket.close();
        this.onState("failed");
        this.onEnd(problem);
    }

    leave() {
        this.over = true;
        this.send({ type: "leave", id: this.nextID++ });
        this.forget();
        this.socket.close(1000);
    }
}

function lost() {
    return Object.assign(new Error("The connection to the server was lost."), { code: "lost" });
}
