// The control API (/openapi.json) as the operators' tab calls it.

import { developmentToken } from "./tokens.js";

/** A longer read is abandoned: a server that does not answer at all would look healthy. Changes may take longer. */
const PATIENCE_MS = 15_000;

export class ControlAPI {
    /** `token`: a pasted access token, or a development server's. `onTokenNeeded()`: there is none, or it does not permit the call. */
    constructor(onTokenNeeded) { Object.assign(this, { onTokenNeeded, token: null, refusal: null }); }

    async accessToken() {
        if (this.token) return this.token;
        const issued = await developmentToken({ identity: "operator", roomList: true, roomAdmin: true, roomCreate: true }).catch((problem) => {
            if (this.token) return null; // Somebody gave one meanwhile.
            if (problem.code !== "token_needed") throw problem;
            this.onTokenNeeded();
            // Why the pasted token is not valid is more useful than that one is needed.
            throw this.refusal ?? problem;
        });
        return this.token ||= issued;
    }

    /** The answer's JSON; null if it has none. */
    async call(method, path, options) { return (await this.exchange(method, path, options)).value; }

    /**
     * The answer's JSON and its entity tag. `body` is sent as JSON, to an existing resource as a merge patch; `match` is the tag that must be the current one.
     */
    async exchange(method, path, { body, match } = {}) {
        const token = await this.accessToken();
        const headers = { Authorization: `Bearer ${token}`, Accept: "application/json" };
        if (body !== undefined) headers["Content-Type"] = method === "POST" ? "application/json" : "application/merge-patch+json";
        if (match) headers["If-Match"] = match;
        const signal = method === "GET" ? AbortSignal.timeout(PATIENCE_MS) : undefined;
        const silent = () => { throw Object.assign(new Error("The server does not answer."), { status: 0 }); };
        const reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal }).catch(silent);
        if (reply.ok) return { value: reply.status === 204 ? null : await reply.json().catch(silent), tag: reply.headers.get("ETag") };
        const { detail, code, pointer } = await reply.json().catch(() => ({}));
        const problem = Object.assign(new Error(detail ?? `The server answered ${reply.status}.`), { status: reply.status, code, pointer });
        // A call with another token says nothing about the current one.
        if (token !== this.token) throw problem;
        if (reply.status === 401) {
            Object.assign(this, { token: null, refusal: problem });
            // Some screens load only once, so a missing token is reported now.
            this.accessToken().catch(() => {});
        }
        if (code === "token_not_permitted") this.onTokenNeeded();
        throw problem;
    }
}

/** The path of a room; `parts` are ids below it. */
export function path(room, ...parts) { return ["/v1/rooms", ...[room, ...parts].map(encodeURIComponent)].join("/"); }
