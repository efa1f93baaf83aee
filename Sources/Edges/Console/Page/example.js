// A room in 40 lines: everybody who runs this sees, hears and reads the others.
import { Room, openDevices } from "/martlet.js"; // from elsewhere: "https://martlet.example/martlet.js"

const server = ""; // from elsewhere: "https://martlet.example"
const identity = `guest-${Math.random().toString(36).slice(2, 8)}`;
const place = document.querySelector("#example") ?? document.body;

// A development server hands out tokens to its own pages. In production, your backend signs them.
async function token() {
    const body = JSON.stringify({ room: "example", identity, name: identity });
    const reply = await fetch(`${server}/dev/token`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (!reply.ok) throw new Error("This server hands out no tokens: start it with --dev, or fetch one from your backend here.");
    return (await reply.json()).token;
}

function say(text) {
    place.append(Object.assign(document.createElement("p"), { textContent: text, dir: "auto" })); // names and messages may be written from the right
}

const room = new Room(server, token);
room.on("stateChanged", ({ state }) => say(`${room.name} ${state}`)); // after "reconnecting" all goes on by itself
room.on("closed", ({ error }) => say(error ? error.message : "You left."));
room.on("participantJoined", ({ participant }) => say(`${participant.name} is here.`));
room.on("participantLeft", ({ participant }) => say(`${participant.name} left.`));
room.on("trackSubscribed", ({ publication }) => {
    if (publication.kind === "video") place.append(publication.attach()); // audio is played by itself
});
room.on("audioBlocked", () => addEventListener("click", () => room.startAudio(), { once: true }));
room.on("data", ({ topic, text, participant }) => topic === "chat" && say(`${participant?.name ?? "The server"}: ${text}`));
addEventListener("pagehide", () => room.leave());

await room.connect();
for (const publication of await room.publishAll(await openDevices())) {
    if (publication.kind === "video") place.append(publication.attach());
}

const field = Object.assign(document.createElement("input"), { placeholder: "Say something", dir: "auto" });
field.onchange = () => room.send(field.value, { topic: "chat" }).then(() => { field.value = ""; });
place.append(field);
