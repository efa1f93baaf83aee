// What one sends: a camera and microphone, a screen, or a test pattern and tone that the page generates.

import { generatedStream } from "./generated.js";

/**
 * Opens what the form's "What you send" names; null for nothing. The result: `stream`; `sources`, each track with what it is;
 * `videoTrack`, if any; its `source`; `isMirrored`; `stop()`.
 */
export async function openMedia(kind, name) {
    switch (kind) {
    case "nothing": return null;
    case "generated": return camera(generatedStream({ name }));
    case "screen": return openScreen(kind);
    case "microphone": return camera(await devices({ video: false }));
    default: return openCamera(name);
    }
}

/** A screen; a machine that shows a generated camera (a test) shares a generated screen. */
export async function openScreen(kind) {
    const stream = kind === "generated"
        ? generatedStream({ name: "Slides", width: 1280, height: 720, framesPerSecond: 10, audio: false })
        : await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 15 } }, audio: true });
    for (const track of stream.getVideoTracks()) track.contentHint = "detail";
    return opened(stream, { audio: "screenAudio", video: "screen" });
}

async function openCamera(name) {
    try {
        const found = camera(await devices({ video: { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } } }));
        return Object.assign(found, { isMirrored: true });
    } catch (problem) {
        if (problem.name === "NotFoundError") return camera(generatedStream({ name }));
        throw problem;
    }
}

async function devices(constraints) {
    if (!navigator.mediaDevices) throw new Error("Browsers allow access to the camera only over HTTPS or on the same machine.");
    try {
        return await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true }, ...constraints });
    } catch (problem) {
        if (problem.name === "NotFoundError") throw problem;
        const reason = problem.name === "NotAllowedError" ? "permission was denied" : problem.message;
        throw new Error(`Cannot use the camera or microphone: ${reason}. The test pattern works without them.`);
    }
}

function camera(stream) { return opened(stream, { audio: "microphone", video: "camera" }); }

function opened(stream, names) {
    return {
        stream,
        sources: stream.getTracks().map((track) => ({ track, source: names[track.kind] })),
        videoTrack: stream.getVideoTracks()[0],
        source: names.video,
        stop: () => stream.getTracks().forEach((track) => track.stop()),
    };
}
