// What is sent: a camera and microphone, a screen, or a test pattern and tone that the page generates.

import { openDevices, openScreen as openRealScreen, screenOf } from "/martlet.js";
import { generatedStream } from "./generated.js";

/**
 * Opens what the form's "What you send" names; null for nothing. `chosen` are ids of devices, "" for the browser's choice. The result: `stream`;
 * `sources`, each track with its source; `videoTrack`, if any; its `source`; `isMirrored`; `isFromDevices`, whether others can be chosen;
 * `replace(old, track)`; `stop()`.
 */
export async function openMedia(kind, name, chosen = { camera: "", microphone: "" }) {
    const microphone = chosen.microphone || true;
    switch (kind) {
    case "nothing": return null;
    case "generated": return camera(name);
    case "screen": return openScreen(kind);
    case "microphone": return opened(await devices({ camera: false, microphone }), "camera", { isFromDevices: true });
    default: return openCamera(name, { camera: chosen.camera || true, microphone });
    }
}

/** A screen; a machine that shows a generated camera (a test) shares a generated screen. */
export async function openScreen(kind) {
    if (kind !== "generated") return opened(await openRealScreen(), "screen");
    return opened(screenOf(generatedStream({ name: "Slides", width: 1280, height: 720, framesPerSecond: 10, audio: false })), "screen");
}

/** If there is only one of both, that one; a machine with neither shows a test pattern. */
async function openCamera(name, what) {
    for (const one of [what, { ...what, camera: false }, { ...what, microphone: false }]) {
        try {
            return opened(await devices(one), "camera", { isMirrored: true, isFromDevices: true });
        } catch (problem) {
            if (problem.name !== "NotFoundError") throw problem;
        }
    }
    return camera(name);
}

async function devices(what) {
    try {
        return await openDevices(what);
    } catch (problem) {
        if (problem.code === "no_devices") problem.message += " The test pattern works without them.";
        throw problem;
    }
}

function camera(name) {
    const names = { audio: "microphone", video: "camera" };
    return opened(generatedStream({ name }).getTracks().map((track) => ({ track, source: names[track.kind] })), "camera");
}

function opened(sources, source, facts = {}) {
    const stream = new MediaStream(sources.map(({ track }) => track));
    return {
        stream, sources, source,
        get videoTrack() { return stream.getVideoTracks()[0]; },
        replace(old, track) {
            stream.removeTrack(old);
            stream.addTrack(track);
            sources.find((one) => one.track === old).track = track;
        },
        stop: () => sources.forEach(({ track }) => track.stop()),
        ...facts,
    };
}
