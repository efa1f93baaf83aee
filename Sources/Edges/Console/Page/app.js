// The page: a form that joins, the controls of a stay, the operators' tab. `?room=…&name=…&send=…&join=1` fills the form and
// joins at once; `token=…` uses that token instead of asking the development server for one.

import { Call } from "./call.js";
import { Chat, MAX_FILE_BYTES } from "./chat.js";
import { DeviceChooser, chosen } from "./devices.js";
import { openMedia, openScreen } from "./media.js";
import { problemOfPerson, problemOfRoom } from "./names.js";
import { Outage } from "./outage.js";
import { ask } from "./dialog.js";
import { element, moment, say } from "./elements.js";
import { showGuests } from "./guests.js";
import { Operators } from "./operators.js";
import { readPlace } from "./places.js";
import { receivedStatistics, sentStatistics } from "./statistics.js";
import { developmentToken, newIdentity } from "./tokens.js";

const parameters = new URLSearchParams(location.search);
const STATES = { idle: "Not connected", connecting: "Connecting…", connected: "Connected", failed: "Disconnected" };
const CONTROLS = { audio: "Microphone", video: "Camera" };
const FIELDS = { "room-name": "room", "your-name": "name", sending: "send", codec: "codec", token: "token" };
let room = null;
let media = null;
let identity = null;
/** Questions of the call go with it. */
let questions = new AbortController();
const outage = new Outage();
const chat = new Chat(() => room);

for (const [id, parameter] of Object.entries(FIELDS)) {
    if (parameters.has(parameter)) element(id).value = parameters.get(parameter);
}
if (parameters.get("simulcast") === "0") element("simulcast").checked = false;
if (element("token").value) element("token-field").hidden = false;

// MARK: Joining and leaving

element("join").addEventListener("submit", (event) => {
    event.preventDefault();
    join();
});

async function join() {
    element("join-problem").textContent = "";
    const name = element("your-name").value.trim();
    const roomName = element("room-name").value.trim();
    if (!areNames(roomName, name)) return;
    element("join-button").disabled = true;
    element("join-button").textContent = "Joining…";
    try {
        // Safari asks for a screen only during the click, not after the server has answered.
        if (element("sending").value === "screen") media = await openMedia("screen", name);
        identity ??= newIdentity(name);
        const token = element("token").value.trim() || await developmentToken({ room: roomName, identity, name });
        media ??= await takePreview() ?? await openMedia(element("sending").value, name, chosen);
        dropPreview(); // One that was begun meanwhile.
        room = new Call({
            token, media, codec: element("codec").value, simulcast: element("simulcast").checked, red: parameters.get("red") === "1",
            join: { room: roomName, name, maxFileBytes: MAX_FILE_BYTES, ...(element("password").value && { password: element("password").value }) },
            onEntered: showRoom,
            onLock: showLock,
            onMessagesAllowed: (isAllowed) => chat.allow(isAllowed),
            onPermissions: () => chat.render(),
            onRecording: showRecording,
            onState: showState,
            onSuspended: (seconds) => outage.suspendedFor(seconds),
            onPeople: (count) => { element("people-count").querySelector("b").textContent = count; },
            onMuted: showMuted,
            onUnmuteRequested: askToUnmute,
            onSharingEnded: showSharing,
            onCapture: showCapture,
            onNews: (lines) => say("news", ...lines.flatMap((line, index) => (index ? [" · ", ...line] : line))),
            onHand: showHand,
            onGuest: showThatOneWaits,
            onDrain: showDrain,
            onGuests: (guests) => showGuests(guests, room),
            onMessage: (message) => chat.received(message),
            onMessageRefused: (refusal) => chat.refused(refusal),
            onFile: (offer) => chat.offered(offer),
            onSilenced: waitForClick,
            onWaiting: showWaiting,
            onProblem: complain,
            onEnd: showForm,
        });
    } catch (problem) {
        if (problem.code === "token_needed") {
            element("token-field").hidden = false;
            element("token").focus();
        }
        showForm(problem);
    }
}

/** Whether both names can be used; the first one that cannot is reported and focused. */
function areNames(roomName, name) {
    const problems = [[element("room-name"), problemOfRoom(roomName)], [element("your-name"), problemOfPerson(name)]];
    for (const [field, problem] of problems) field.setAttribute("aria-invalid", String(Boolean(problem)));
    const [field, problem] = problems.find(([, text]) => text) ?? [];
    if (!field) return true;
    showForm(new Error(problem));
    field.focus();
    return false;
}

function leave() {
    room?.leave();
    showForm();
}

element("leave").addEventListener("click", leave);
// A closed tab leaves, so that the others do not see a ghost until the time for a lost socket is over.
addEventListener("pagehide", leave);

element("join-cancel").addEventListener("click", () => {
    leave();
    element("join-button").focus(); // What had the focus is gone.
});

/** Entered for the first time, or afresh: the page shows the server's name of the room. */
function showRoom({ name }) {
    const isFromForm = !element("join").hidden;
    element("join").hidden = true;
    showWait(false);
    element("room").hidden = false;
    element("room-title").textContent = name;
    if (isFromForm) element("room-title").focus(); // What had the focus is gone.
    element("room-name").value = name;
    document.title = `${name} · Martlet`;
    const address = new URL(location.href);
    address.searchParams.set("room", name);
    history.replaceState(null, "", address);
    for (const kind of ["audio", "video"]) {
        showMuted(kind, room.muted[kind]);
        element(`mute-${kind}`).disabled = !media?.sources.some(({ track, source }) => track.kind === kind && !source.startsWith("screen"));
    }
    element("share-screen").hidden = !navigator.mediaDevices?.getDisplayMedia && element("sending").value !== "generated";
    showSharing();
    showHand(Boolean(room.hand));
    showView();
    complain("");
}

/** Who may join: people in the room should know why others do not come. */
function showLock(lock) {
    say("lock", { password: "Locked with a password", closed: "Locked" }[lock] ?? "");
}

/** Shows everybody that the room is recorded, and on hover what. */
function showRecording(recordings) {
    const isAll = recordings.some(({ participant, track, sources, participants }) => !participant && !track && !sources && !participants);
    say("recording", recordings.length === 0 ? "" : isAll ? "Recording" : "Recording in part");
    element("recording").title = recordings.map(({ participant, track, sources, participants, startedAt, byPolicy }) => [
        track ? "One track" : sources ? sources.join(", ") : "All tracks", participant ? "of one participant" : participants ? `of ${participants.join(", ")}` : "",
        `since ${moment(startedAt)}`, byPolicy ? "by the room's rules" : "",
    ].filter(Boolean).join(" ")).join("\n");
}

/** The server is about to end, or (null) no longer is. */
function showDrain(notice) {
    const end = notice?.deadline ? `, at ${moment(notice.deadline)} at the latest` : "";
    element("drain").textContent = notice ? `This server is about to be restarted${end}.` : "";
}

/** An operator captures this participant's packets, or (null) no longer does. */
function showCapture(notice) {
    element("capture").textContent = notice
        ? `An operator captures your connection to find a fault (${notice.payload ? "with the audio and video that you send and receive" : "no audio and no video"}), until ${moment(notice.until)}.` : "";
}

/** Nobody has let this person in yet: the form says so, and asks again by itself. */
function showThatOneWaits() {
    element("join-button").textContent = "Waiting…";
    showWait(true);
    // The server was restarted, and a person who was in the room waits to be let in again.
    if (element("join").hidden) complain(element("join-wait").textContent);
}

/** A person who waits may stop waiting: the camera is on meanwhile. */
function showWait(isWaiting) {
    for (const id of ["join-wait", "join-cancel"]) element(id).hidden = !isWaiting;
}

/** The form again, with what ended the stay if a person should know. */
function showForm(problem) {
    const isFromRoom = element("join").hidden;
    media?.stop();
    if (["password_required", "password_wrong"].includes(problem?.code)) {
        element("password-field").hidden = false;
        element("password").value = "";
    }
    if (element("devices").open) element("devices").close();
    questions.abort();
    questions = new AbortController();
    chat.clear();
    room = media = null;
    document.title = "Martlet";
    element("join-problem").textContent = problem?.message ?? "";
    outage.clear();
    showWait(false);
    element("join-button").disabled = false;
    element("join-button").textContent = "Join";
    element("room").hidden = true;
    element("join").hidden = false;
    if (problem?.code?.startsWith("password_")) element("password").focus();
    else if (isFromRoom) element("join-title").focus(); // What had the focus is gone.
    showState("idle");
}

function showState(state, cause) {
    const isLost = state === "connecting" && Boolean(room?.self);
    element("status").dataset.state = state;
    element("status").textContent = isLost ? "Reconnecting…" : STATES[state];
    // Quality, speakers and reasons come from the server: they are hidden until it answers again.
    element("floor").classList.toggle("lost", isLost);
    if (isLost) outage.lost(cause);
    else if (state === "connected") outage.over();
}

// MARK: Devices

let previewed = null;
/** Counts the previews: a camera that opens after its preview is over is not used, and is stopped. */
let previews = 0;
const preview = new DeviceChooser(element("preview-devices"), {
    media: () => previewed, onSpeaker() {}, onProblem: (text) => { element("join-problem").textContent = text; },
    onReplace: (old, track) => {
        previewed.replace(old, track);
        showPreview();
    },
});
const devices = new DeviceChooser(element("devices-menus"), {
    media: () => media, onSpeaker: (id) => room?.room.setSpeaker(id), onProblem: complain,
    onReplace: (old, track) => room.replaceDevice(old, track),
});

element("preview-start").addEventListener("click", async () => {
    const run = ++previews;
    element("join-problem").textContent = "";
    element("preview-start").disabled = true;
    try {
        const opened = await openMedia(element("sending").value, element("your-name").value, chosen);
        if (run !== previews) return opened?.stop();
        previewed = opened;
        showPreview();
        await preview.open();
    } catch (problem) {
        if (run === previews) element("join-problem").textContent = problem.message;
    }
    if (run === previews) element("preview-start").disabled = false;
});

function showPreview() {
    element("preview").hidden = false;
    element("preview-start").hidden = true;
    element("preview-video").hidden = !previewed.videoTrack;
    element("preview-video").srcObject = previewed.stream;
    element("preview-video").play().catch(() => {});
}

/** What is previewed, to be sent now, with the device that was chosen last; null if there is no preview. */
async function takePreview() {
    await preview.settled();
    const taken = previewed;
    endPreview();
    return taken;
}

function dropPreview() {
    previewed?.stop();
    endPreview();
}

/** What was previewed is sent now, or something else is. */
function endPreview() {
    previews += 1;
    previewed = null;
    preview.close();
    element("preview-start").disabled = false;
    element("preview-video").srcObject = null;
    element("preview").hidden = true;
    element("preview-start").hidden = !["camera", "microphone"].includes(element("sending").value);
}

element("sending").addEventListener("change", dropPreview);
endPreview();

element("devices-open").addEventListener("click", async () => {
    await devices.open();
    element("devices-none").hidden = Boolean(element("devices-menus").querySelector("label:not([hidden])"));
    element("devices").showModal();
});
element("devices").addEventListener("close", () => devices.close());

// MARK: Controls

for (const kind of ["audio", "video"]) {
    element(`mute-${kind}`).addEventListener("click", () => act(() => room.setMuted(kind, !room.muted[kind])));
}

function showMuted(kind, muted, byOther = false) {
    const button = element(`mute-${kind}`);
    button.setAttribute("aria-pressed", String(!muted));
    button.title = muted ? `${CONTROLS[kind]} is off` : `${CONTROLS[kind]} is on`;
    if (byOther) complain(`A moderator or operator turned off your ${CONTROLS[kind].toLowerCase()}.`);
}

async function askToUnmute(kind) {
    if (!room.muted[kind]) return;
    const name = CONTROLS[kind].toLowerCase();
    const isWanted = await ask({
        title: `Turn on your ${name}?`, text: "A moderator or operator asks you to.", action: `Turn on ${name}`, isHarmless: true,
        signal: questions.signal,
    });
    if (isWanted) act(() => room.setMuted(kind, false));
}

let isChoosing = false;
element("share-screen").addEventListener("click", () => act(async () => {
    if (isChoosing) return; // The browser would ask for another one, and of two screens the first could not be ended here.
    const call = room;
    const work = call.screen ? call.stopSharing() : call.share(await chooseScreen(), showSharing);
    showSharing();
    await work.finally(showSharing);
}));

async function chooseScreen() {
    isChoosing = true;
    try {
        return await openScreen(element("sending").value);
    } finally {
        isChoosing = false;
    }
}

element("raise-hand").addEventListener("click", () => act(() => room.raiseHand(!room.hand)));

function showHand(isRaised) {
    element("raise-hand").dataset.on = isRaised;
    element("raise-hand").lastElementChild.textContent = isRaised ? "Lower hand" : "Raise hand";
}

element("change-view").addEventListener("click", () => {
    room.roster.setSpeakerView(!room.roster.isSpeakerView);
    showView();
});

function showView() { element("change-view").lastElementChild.textContent = room?.roster.isSpeakerView ? "Grid view" : "Speaker view"; }

function showSharing() {
    const isSharing = Boolean(room?.screen);
    element("share-screen").dataset.on = isSharing;
    element("share-screen").lastElementChild.textContent = isSharing ? "Stop sharing" : "Share screen";
}

element("copy-link").addEventListener("click", () => act(async () => {
    const link = new URL(location.pathname, location.href);
    link.searchParams.set("room", element("room-title").textContent);
    if (!navigator.clipboard) return complain(`Browsers allow copying only over HTTPS. The link: ${link}`);
    await navigator.clipboard.writeText(link);
    const label = element("copy-link").lastElementChild;
    label.textContent = "Copied";
    setTimeout(() => { label.textContent = "Copy link"; }, 1500);
}));

/** Browsers play no audio before a person has interacted with the page. */
function waitForClick() {
    complain("Click anywhere to hear the others.");
    document.addEventListener("click", () => {
        room?.room.startAudio();
        complain("");
    }, { once: true });
}

/** The server has reported that this many tracks of others wait. */
function showWaiting(count, limit) {
    const tracks = count === 1 ? "1 track of other participants is" : `${count} tracks of other participants are`;
    say("waiting", count ? `${tracks} not received yet: a participant receives at most ${limit} tracks.` : "");
}

/** Runs a person's action and shows what went wrong with it. */
async function act(action) {
    complain("");
    try {
        await action();
    } catch (problem) {
        // A person changed their mind; or the connection was lost or the stay ended, which is reported already, and their choice is announced afresh.
        if (problem.name !== "NotAllowedError" && problem.code !== "lost" && problem.code !== "left") complain(problem.message);
    }
}

function complain(text) { say("room-problem", text); }

// MARK: Tabs

const TABS = ["room", "operators"];
const operators = new Operators();
for (const tab of TABS) {
    element(`tab-${tab}`).addEventListener("click", () => turnTo(tab));
    element(`tab-${tab}`).addEventListener("keydown", ({ key }) => {
        if (key !== "ArrowLeft" && key !== "ArrowRight") return;
        turnTo(TABS.find((other) => other !== tab));
        document.querySelector("[role=tab][aria-selected=true]").focus();
    });
}

let lastPlace = "#/rooms";

/** The operators' tab opens where it was left. The address follows, so that a reload and "Back" lead to what was shown. */
function turnTo(tab) {
    if (readPlace(location.hash)) lastPlace = location.hash;
    history.pushState(null, "", tab === "operators" ? lastPlace : location.pathname + location.search);
    showPlace();
}

function showPlace() { choose(readPlace(location.hash) ? "operators" : "room"); }

function choose(tab) {
    for (const other of TABS) {
        element(`tab-${other}`).setAttribute("aria-selected", String(other === tab));
        element(`tab-${other}`).tabIndex = other === tab ? 0 : -1;
        element(`view-${other}`).hidden = other !== tab;
    }
    operators.setVisible(tab === "operators", element("token").value.trim());
}

addEventListener("popstate", showPlace);
if (readPlace(location.hash)) showPlace();

// For tests, and for curious people in the browser's own console.
window.martlet = {
    get joined() { return room?.joined ?? false; },
    get room() { return room; },
    received: () => receivedStatistics(room?.sub),
    sent: () => sentStatistics(room?.pub),
    /** A few pixels of each remote video, as one string per tile: black videos are empty strings. */
    pixels: () => Object.fromEntries([...document.querySelectorAll(".tile:not(.own) video")].map((video, index) => {
        const pen = new OffscreenCanvas(32, 18).getContext("2d");
        pen.drawImage(video, 0, 0, 32, 18);
        const bytes = pen.getImageData(0, 0, 32, 18).data.filter((_, position) => position % 4 !== 3);
        return [index, bytes.some((byte) => byte > 24) ? bytes.join() : ""];
    })),
};

if (parameters.get("join") === "1") join();
