// The page: a form that joins, controls of the stay, the operators' tab. `?room=…&name=…&send=…&join=1` fills the form and
// joins at once; `token=…` uses that token instead of asking the development server for one.

import { Room } from "./room.js";
import { generatedStream } from "./generated.js";
import { receivedStatistics } from "./statistics.js";
import { Operators } from "./operators.js";
import { developmentToken } from "./tokens.js";

const element = (id) => document.getElementById(id);
const parameters = new URLSearchParams(location.search);
let room = null;
let media = null;

for (const [id, parameter] of [["room-name", "room"], ["your-name", "name"], ["sending", "send"], ["codec", "codec"], ["token", "token"]]) {
    if (parameters.has(parameter)) element(id).value = parameters.get(parameter);
}
if (parameters.get("simulcast") === "0") element("simulcast").checked = false;

element("join").addEventListener("submit", (event) => {
    event.preventDefault();
    join();
});
element("leave").addEventListener("click", () => {
    room?.leave();
    showForm();
});
for (const kind of ["audio", "video"]) {
    element(`mute-${kind}`).addEventListener("click", () => act(() => room.setMuted(kind, !room.muted[kind])));
}
element("share-screen").addEventListener("click", () => act(async () => {
    const sharing = await room.toggleScreen(captureScreen);
    element("share-screen").textContent = sharing ? "Stop sharing" : "Share screen";
}));

async function join() {
    element("join-problem").textContent = "";
    element("join-button").disabled = true;
    try {
        const name = element("your-name").value.trim();
        const roomName = element("room-name").value.trim();
        const token = element("token").value.trim() || await developmentToken({ room: roomName, identity: name });
        media = await openMedia(element("sending").value, name);
        room = new Room({
            token, stream: media?.stream, codec: element("codec").value, simulcast: element("simulcast").checked,
            join: { room: roomName, name, speakers: true },
            onState: showState,
            onEnd: (problem) => { showForm(); element("join-problem").textContent = problem.message; },
        });
        room.onMuted = showMuted;
        for (const kind of ["audio", "video"]) showMuted(kind, false);
        element("join").hidden = true;
        element("room").hidden = false;
    } catch (problem) {
        media?.stop();
        if (problem.code === "token_needed") element("token-field").hidden = false;
        element("join-problem").textContent = problem.message;
    } finally {
        element("join-button").disabled = false;
    }
}

async function openMedia(kind, name) {
    if (kind === "nothing") return null;
    if (kind === "generated") return generatedStream({ name });
    if (kind === "screen") return stoppable(Object.assign(await captureScreen(), { isScreen: true }));
    try {
        return stoppable(await navigator.mediaDevices.getUserMedia({
            audio: { echoCancellation: true, noiseSuppression: true },
            video: { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } },
        }));
    } catch (problem) {
        if (problem.name === "NotFoundError") return generatedStream({ name });
        throw new Error(`The camera cannot be used: ${problem.message}. Choose a generated picture instead.`);
    }
}

function stoppable(stream) {
    return { stream, stop: () => stream.getTracks().forEach((track) => track.stop()) };
}

async function captureScreen() {
    // A machine without a screen (a test) shares a generated picture.
    if (parameters.get("send") === "generated") return generatedStream({ name: "screen", width: 1280, height: 720, framesPerSecond: 10, audio: false }).stream;
    return navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 15 } }, audio: true });
}

/** Runs a user's action and shows what went wrong with it. */
async function act(action) {
    element("room-problem").textContent = "";
    try {
        await action();
    } catch (problem) {
        element("room-problem").textContent = problem.message;
    }
}

function showForm() {
    media?.stop();
    room = media = null;
    element("room").hidden = true;
    element("join").hidden = false;
    element("share-screen").textContent = "Share screen";
    showState("idle");
}

function showState(state) {
    element("status").dataset.state = state;
    element("status").textContent = { idle: "not connected", connecting: "connecting…", connected: "connected", failed: "disconnected" }[state];
}

function showMuted(kind, muted) {
    element(`mute-${kind}`).setAttribute("aria-pressed", String(!muted));
}

// Tabs.
const operators = new Operators();
for (const tab of ["room", "operators"]) {
    element(`tab-${tab}`).addEventListener("click", () => {
        for (const other of ["room", "operators"]) {
            element(`tab-${other}`).setAttribute("aria-selected", String(other === tab));
            element(`view-${other}`).hidden = other !== tab;
        }
        operators.setVisible(tab === "operators", element("token").value.trim());
    });
}

// What tests and curious people read in the browser's own console.
window.martlet = {
    get joined() { return room?.joined ?? false; },
    get room() { return room; },
    received: () => receivedStatistics(room?.sub),
    /** A few pixels of each remote video, as one string a tile: black pictures are empty strings. */
    pixels: () => Object.fromEntries([...document.querySelectorAll(".tile:not(.own) video")].map((video, index) => {
        const pen = new OffscreenCanvas(32, 18).getContext("2d");
        pen.drawImage(video, 0, 0, 32, 18);
        const bytes = pen.getImageData(0, 0, 32, 18).data.filter((_, position) => position % 4 !== 3);
        return [index, bytes.some((byte) => byte > 24) ? bytes.join() : ""];
    })),
};

if (parameters.get("join") === "1") join();
