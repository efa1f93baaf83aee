// A client of martlet.v1 (Sources/Edges/Signalling/Protocol.md): requests with replies, events in order, resume after a
// dropped socket.

/** Close codes after which the session may go on or a new one may be made (Protocol.md, section 9). */
const RESUMABLE = new Set([1005, 1006, 4006]);
const FRESH = new Set([1001, 4007, 4008]);
const LONGEST_WAIT = 2_000;

export class Signal {
    /**
     * `join` is the join request's fields; `token` the access token.
     * Handlers: onJoined(reply), onEvent(event), onState("connecting" | "connected" | "failed"), onEnd(problem).
     */
    constructor({ token, join, onJoined, onEvent, onState, onEnd }) {
        Object.assign(this, { token, join, onJoined, onEvent, onState, onEnd });
        this.nextID = 1;
        this.waiting = new Map();
        this.session = null;
        this.sequence = 0;
        this.over = false;
        this.tries = 0;
        this.connect();
    }

    connect() {
        this.onState("connecting");
        const address = new URL("/v1/signal", location.href);
        address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
        address.searchParams.set("access_token", this.token);
        this.socket = new WebSocket(address, "martlet.v1");
        this.socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
        this.socket.onclose = ({ code }) => this.closed(code);
    }

    /** Sends a request; resolves with its reply, rejects with an Error that has the reply's code. */
    request(type, fields = {}) {
        const id = this.nextID++;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject });
            this.send({ type, id, ...fields });
        });
    }

    send(message) {
        if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    }

    async receive(message) {
        const waiting = this.waiting.get(message.id);
        if (waiting) {
            this.waiting.delete(message.id);
            if (message.type === "error") waiting.reject(Object.assign(new Error(message.message), { code: message.code }));
            else waiting.resolve(message);
        } else if (message.type === "hello") {
            clearInterval(this.pings);
            this.pings = setInterval(() => this.send({ type: "ping" }), message.pingIntervalSeconds * 1000);
            await this.enter(message);
        } else if (message.seq > this.sequence) {
            this.sequence = message.seq;
            this.onEvent(message);
        }
    }

    /** Resumes the session that was lost, or joins. */
    async enter(hello) {
        try {
            if (this.session) {
                await this.request("resume", { session: this.session, seq: this.sequence });
            } else {
                const reply = await this.request("join", this.join);
                this.session = reply.session;
                this.sequence = reply.seq;
                this.onJoined(reply, hello);
            }
            this.tries = 0;
            this.onState("connected");
        } catch (problem) {
            if (this.session) this.startOver();
            else this.end(problem);
        }
    }

    startOver() {
        this.session = null;
        this.sequence = 0;
        this.socket.close();
    }

    closed(code) {
        clearInterval(this.pings);
        for (const { reject } of this.waiting.values()) reject(new Error("The connection to the server was lost."));
        this.waiting.clear();
        if (this.over) return;
        if (FRESH.has(code)) this.session = null;
        if (!FRESH.has(code) && !RESUMABLE.has(code)) return this.end(new Error(`The server ended the session (${code}).`));
        this.onState("connecting");
        setTimeout(() => this.over || this.connect(), Math.min(LONGEST_WAIT, 200 * 2 ** this.tries++));
    }

    end(problem) {
        this.over = true;
        this.socket.close();
        this.onState("failed");
        this.onEnd(problem);
    }

    leave() {
        this.over = true;
        this.send({ type: "leave", id: this.nextID++ });
        this.socket.close(1000);
    }
}
