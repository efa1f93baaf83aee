// What one sends: a camera and microphone, a screen, or a test pattern and tone that the page generates.

import { generatedStream } from "./generated.js";

const VIDEO = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
const AUDIO = { echoCancellation: true, noiseSuppression: true };

/**
 * Opens what the form's "What you send" names; null for nothing. `chosen` are ids of devices, "" for the browser's choice. The result: `stream`;
 * `sources`, each track with what it is; `videoTrack`, if any; its `source`; `isMirrored`; `isFromDevices`, whether others can be chosen;
 * `replace(old, track)`; `stop()`.
 */
export async function openMedia(kind, name, chosen = { camera: "", microphone: "" }) {
    switch (kind) {
    case "nothing": return null;
    case "generated": return camera(generatedStream({ name }));
    case "screen": return openScreen(kind);
    case "microphone": return Object.assign(camera(await devices({ video: false, ...audio(chosen.microphone) })), { isFromDevices: true });
    default: return openCamera(name, chosen);
    }
}

/** The track of another "camera" or "microphone". */
export async function openDevice(kind, id) {
    const wanted = { deviceId: { exact: id } };
    const stream = await devices(kind === "camera" ? { audio: false, video: { ...VIDEO, ...wanted } } : { audio: { ...AUDIO, ...wanted }, video: false });
    return stream.getTracks()[0];
}

function audio(id) { return { audio: { ...AUDIO, ...(id && { deviceId: { ideal: id } }) } }; }

/** A screen; a machine that shows a generated camera (a test) shares a generated screen. */
export async function openScreen(kind) {
    const stream = kind === "generated"
        ? generatedStream({ name: "Slides", width: 1280, height: 720, framesPerSecond: 10, audio: false })
        : await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 15 } }, audio: true });
    for (const track of stream.getVideoTracks()) track.contentHint = "detail";
    return opened(stream, { audio: "screenAudio", video: "screen" });
}

async function openCamera(name, chosen) {
    try {
        const video = { ...VIDEO, ...(chosen.camera && { deviceId: { ideal: chosen.camera } }) };
        return Object.assign(camera(await devices({ video, ...audio(chosen.microphone) })), { isMirrored: true, isFromDevices: true });
    } catch (problem) {
        if (problem.name === "NotFoundError") return camera(generatedStream({ name }));
        throw problem;
    }
}

async function devices(constraints) {
    if (!navigator.mediaDevices) throw new Error("Browsers allow access to the camera only over HTTPS or on the same machine.");
    try {
        return await navigator.mediaDevices.getUserMedia(constraints);
    } catch (problem) {
        if (["NotFoundError", "NotReadableError"].includes(problem.name)) throw problem;
        const reason = problem.name === "NotAllowedError" ? "permission was denied" : problem.message;
        throw new Error(`Cannot use the camera or microphone: ${reason}. The test pattern works without them.`);
    }
}

function camera(stream) { return opened(stream, { audio: "microphone", video: "camera" }); }

function opened(stream, names) {
    return {
        stream,
        sources: stream.getTracks().map((track) => ({ track, source: names[track.kind] })),
        get videoTrack() { return stream.getVideoTracks()[0]; },
        source: names.video,
        replace(old, track) {
            stream.removeTrack(old);
            stream.addTrack(track);
            this.sources.find((one) => one.track === old).track = track;
        },
        stop: () => stream.getTracks().forEach((track) => track.stop()),
    };
}
