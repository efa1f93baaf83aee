// Martlet for web apps: rooms with audio, video, data and files over martlet.v1. No dependency, no build step; types are in JSDoc.
//
//     import { connect, openDevices } from "https://martlet.example/martlet.js";
//     const room = await connect("https://martlet.example", token);
//     room.on("trackSubscribed", ({ publication }) => document.body.append(publication.attach()));
//     await room.publishAll(await openDevices());
//
// Copy this file and the folder martlet/ next to it, or import it from the server. The page /examples of every server explains it.

import { Room } from "./martlet/room.js";

export { Room };
export { MartletError } from "./martlet/errors.js";
export { listDevices, openDevices, openOther, openScreen, screenOf } from "./martlet/capture.js";
export { LocalPublication, Participant, Publication } from "./martlet/participants.js";
export { IncomingFile, MAX_FILE_BYTES } from "./martlet/files.js";
export { Signal } from "./martlet/signal.js";

/**
 * Joins a room. Rejects with a `MartletError`, whose `code` says why (Protocol.md, section 9).
 *
 * What happens while the room is joined (who is there, what they publish) is in the room when this resolves. To listen from the first event on, make a `Room`,
 * add listeners, and call its `connect`.
 * @param {string} url the server's address, "" for the one that served the page
 * @param {string | (() => string | Promise<string>)} token an access token, or a function that gets one; it is called before each reconnect and before a token
 *     expires, and then has 15 s
 * @param {import("./martlet/room.js").RoomOptions} [options]
 * @returns {Promise<Room>}
 */
export function connect(url, token, options) { return new Room(url, token, options).connect(); }
