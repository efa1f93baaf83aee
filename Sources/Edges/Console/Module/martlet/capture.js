// Cameras, microphones, loudspeakers and screens of this machine.

import { MartletError } from "./errors.js";

const VIDEO = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
const AUDIO = { echoCancellation: true, noiseSuppression: true };
/** Text and slides are read: few frames, each of them sharp. */
const SCREEN = { frameRate: { max: 15 } };
/** The machine's audio is shared without what this page plays: the others would hear themselves. Browsers that cannot exclude it ignore this. */
const SCREEN_AUDIO = { restrictOwnAudio: true };
/** Why a device does not open, by the name of the browser's error, or by the constraint that it cannot meet, for which Chromium gives no message. */
const REASONS = { NotAllowedError: "permission was denied", deviceId: "the chosen device is no longer there" };
const KINDS = { videoinput: "cameras", audioinput: "microphones", audiooutput: "speakers" };

/**
 * A track with its source.
 * @typedef {object} Source
 * @property {MediaStreamTrack} track
 * @property {"camera" | "microphone" | "screen" | "screenAudio"} source
 */

/**
 * The available devices. Browsers give them labels once a camera or microphone was opened.
 * @returns {Promise<{ cameras: MediaDeviceInfo[], microphones: MediaDeviceInfo[], speakers: MediaDeviceInfo[] }>}
 */
export async function listDevices() {
    const found = { cameras: [], microphones: [], speakers: [] };
    for (const one of await navigator.mediaDevices?.enumerateDevices() ?? []) if (one.deviceId) found[KINDS[one.kind]].push(one);
    return found;
}

/**
 * Opens a camera, a microphone, or both: `true` for the browser's choice, an id for a preferred one, or constraints. Rejects with `no_devices` if a person or
 * the browser forbids it, and with the browser's own `NotFoundError` if there is none.
 * @param {{ camera?: boolean | string | MediaTrackConstraints, microphone?: boolean | string | MediaTrackConstraints }} [what] both by default
 * @returns {Promise<Source[]>}
 */
export async function openDevices({ camera = true, microphone = true } = {}) {
    const constraints = { video: constraintsOf(camera, VIDEO), audio: constraintsOf(microphone, AUDIO) };
    return sourcesOf(await ask("getUserMedia", constraints), { audio: "microphone", video: "camera" });
}

/**
 * Opens a screen, a window or a tab, which the person chooses; with its audio if the browser supports that. Rejects with the browser's `NotAllowedError` if the
 * person chose none, and with `no_devices` if the browser or the operating system forbids it.
 * @param {{ audio?: boolean, video?: MediaTrackConstraints }} [options]
 * @returns {Promise<Source[]>}
 */
export async function openScreen({ audio = true, video = SCREEN } = {}) {
    if (!navigator.mediaDevices?.getDisplayMedia) throw unavailable("This browser cannot share a screen, or only over HTTPS.");
    try {
        return screenOf(await navigator.mediaDevices.getDisplayMedia({ video, audio: audio && SCREEN_AUDIO }));
    } catch (problem) {
        // Chromium's words, as on macOS before a person has permitted it in the settings. A person who chose a screen would see nothing happen.
        if (problem.name === "NotAllowedError" && problem.message.includes("by system")) {
            throw unavailable("The operating system does not let this browser record the screen. Permit it in the system’s settings.");
        }
        throw problem;
    }
}

/** The sources of a stream that shows a screen, of any origin. @param {MediaStream} stream @returns {Source[]} */
export function screenOf(stream) {
    for (const track of stream.getVideoTracks()) track.contentHint = "detail";
    return sourcesOf(stream, { audio: "screenAudio", video: "screen" });
}

/**
 * The track of another camera or microphone, muted if the old one is, and opened with the same constraints; if it cannot meet them, as close to them as
 * possible. The old one continues until it is stopped; on a machine that opens only one camera at a time, it is stopped here.
 * If the other one does not open even then, for example while another program uses it, this rejects, and the old device is opened again for `putBack`. Without
 * `putBack`, or if that fails, the old track gets the event `ended`.
 * @param {MediaStreamTrack} old
 * @param {string} [deviceId] without it the browser's choice, as after one was unplugged
 * @param {(track: MediaStreamTrack) => any} [putBack] puts another track of the old device in place of the old track
 * @returns {Promise<MediaStreamTrack>}
 */
export async function openOther(old, deviceId, putBack) {
    try {
        return await openLike(old, deviceId);
    } catch (problem) {
        if (problem.name !== "NotReadableError") throw problem;
        const wasLive = old.readyState === "live", former = old.getSettings().deviceId;
        old.stop();
        try {
            return await openLike(old, deviceId);
        } catch (failure) {
            if (wasLive) await reopen(old, former, putBack);
            throw failure;
        }
    }
}

/** A track of a device, of the old one's kind, with all constraints of the old one except the device. */
async function openLike(old, deviceId) {
    const { deviceId: _, groupId: __, facingMode, ...asked } = old.getConstraints();
    const which = deviceId ? { deviceId: { exact: deviceId } } : facingMode && { facingMode };
    const wanted = { ...(old.kind === "video" ? VIDEO : AUDIO), ...asked, ...which };
    const open = (constraints) => ask("getUserMedia", { [old.kind]: constraints });
    const [track] = (await open(wanted).catch((problem) => {
        if (problem.cause?.name !== "OverconstrainedError") throw problem;
        return open({ ...softened(wanted), ...(deviceId && which) });
    })).getTracks();
    track.enabled = old.enabled;
    return track;
}

/** The required constraints of a device as preferences: another device may not have that size or rate, and a call continues with another size. */
function softened(constraints) {
    return Object.fromEntries(Object.entries(constraints).map(([name, value]) => {
        const ideal = value?.ideal ?? value?.exact ?? value?.max ?? value?.min;
        return [name, ideal === undefined ? value : { ideal }];
    }));
}

/** Opens the old device again if its track was stopped in vain. Browsers fire no event for a track that a page stops, so it would seem to be live. */
async function reopen(old, deviceId, putBack) {
    try {
        if (!deviceId || !putBack) throw unavailable("The device cannot be opened again.");
        await putBack(await openLike(old, deviceId));
    } catch (problem) {
        if (problem.code !== "left") old.dispatchEvent(new Event("ended"));
    }
}

function constraintsOf(what, usual) {
    if (!what) return false;
    if (typeof what === "string") return { ...usual, deviceId: { ideal: what } };
    return what === true ? usual : { ...usual, ...what };
}

async function ask(method, constraints) {
    if (!navigator.mediaDevices) throw unavailable("Browsers allow access to the camera only over HTTPS or on the same machine.");
    try {
        return await navigator.mediaDevices[method](constraints);
    } catch (problem) {
        if (["NotFoundError", "NotReadableError"].includes(problem.name)) throw problem;
        const reason = REASONS[problem.constraint || problem.name] ?? (problem.message || `no device has the ${problem.constraint || "properties"} asked for`);
        throw Object.assign(unavailable(`Cannot use the camera or microphone: ${reason}.`), { cause: problem });
    }
}

function unavailable(text) { return new MartletError("no_devices", text); }

function sourcesOf(stream, names) { return stream.getTracks().map((track) => ({ track, source: names[track.kind] })); }
