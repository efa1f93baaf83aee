// Errors, with codes that a program can distinguish.

/**
 * The codes of martlet.v1 (Protocol.md, section 9), those of a session's end (section 7, `ended`), and the module's own:
 *
 * - `lost`: the connection to the server was lost before the answer, or a move to another room ended it; what was published is published again automatically.
 * - `unreachable`: the server does not answer.
 * - `no_websocket`: the server answers, but no WebSocket reaches it.
 * - `left`, `moved`: the room was left or has ended, or one was moved to another, before the work was done.
 * - `resumed_elsewhere`: another window resumed the session, and continues it.
 * - `closed`: the server closed the socket for good with a close code that has no other name, such as 1008 (section 9); the message contains the number.
 * - `no_devices`: the page may not use cameras, microphones or a screen: it is not served over HTTPS, or a person or the operating system denied it.
 * - `file_not_accepted`, `file_cancelled`, `file_incomplete`: section 11, "Files".
 *
 * @typedef {string} MartletErrorCode
 */

/** An error of this module: `code` for programs, `message` for people. */
export class MartletError extends Error {
    /**
     * @param {MartletErrorCode} code
     * @param {string} message
     * @param {{ retryAfter?: number, pointer?: string, expected?: string, found?: string }} [details] further fields of the server's reply:
     *     `retryAfter` in seconds, `pointer` to the field that was wrong
     */
    constructor(code, message, details = {}) {
        super(message);
        this.name = "MartletError";
        /** @type {MartletErrorCode} */
        this.code = code;
        /** Seconds after which another try makes sense. @type {number | undefined} */
        this.retryAfter = details.retryAfter;
        /** The field of the request that was wrong, as a JSON Pointer. @type {string | undefined} */
        this.pointer = details.pointer;
    }

    /** The error that a reply of the server carries. @param {any} reply */
    static of(reply) { return new MartletError(reply.code, reply.message, reply); }
}

/** Refusals of a request that came too soon after others: the server accepts the same one later. */
export const TOO_SOON = new Set(["too_many_requests", "rate_limited"]);

/** A lost connection, for requests that got no reply. */
export function lost() { return new MartletError("lost", "The connection to the server was lost."); }

/** The stay is over: nothing more is sent. */
export function left() { return new MartletError("left", "The room was left."); }

/** Why a session ended for good, for a person. After any other end, the socket's close code says how to continue. */
export const ENDINGS = {
    removed: "You were removed from the room.",
    duplicate_identity: "You joined this room from another window.",
    room_deleted: "The room was closed.",
    room_duration_reached: "The room has reached its longest duration.",
    stay_duration_reached: "You have reached the longest stay that this room allows.",
    token_expired: "Your access has expired.",
    token_revoked: "Your access was withdrawn.",
    policy_changed: "The room's rules were changed: it has no more room for you.",
};
