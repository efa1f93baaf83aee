// The operators' tab: rooms and their members, read from the control API every two seconds while it is shown.

import { developmentToken } from "./tokens.js";

const INTERVAL = 2_000;

export class Operators {
    constructor() {
        this.rooms = document.getElementById("rooms");
        this.members = document.getElementById("members");
        this.title = document.getElementById("members-title");
    }

    setVisible(visible, token) {
        clearInterval(this.timer);
        if (!visible) return;
        this.token = token;
        this.refresh();
        this.timer = setInterval(() => this.refresh(), INTERVAL);
    }

    async refresh() {
        try {
            const { rooms } = await this.call("GET", "/v1/rooms");
            this.showRooms(rooms);
            if (this.chosen && rooms.some((room) => room.name === this.chosen)) await this.showMembers();
            else this.members.textContent = rooms.length ? "Choose a room." : "Nobody is here.";
        } catch (problem) {
            this.members.textContent = problem.message;
        }
    }

    async call(method, path) {
        this.token ||= await developmentToken({ identity: "operator", roomList: true, roomAdmin: true, roomCreate: true });
        const reply = await fetch(path, { method, headers: { Authorization: `Bearer ${this.token}` } });
        if (reply.status === 401) this.token = null;
        if (!reply.ok) throw new Error((await reply.json()).detail ?? `The server answered ${reply.status}.`);
        return reply.status === 204 ? null : reply.json();
    }

    showRooms(rooms) {
        this.rooms.replaceChildren(...rooms.map((room) => {
            const button = document.createElement("button");
            button.setAttribute("aria-current", String(room.name === this.chosen));
            button.append(room.name, Object.assign(document.createElement("span"), { className: "count", textContent: room.participants }));
            button.onclick = () => { this.chosen = room.name; this.refresh(); };
            const item = document.createElement("li");
            item.append(button);
            return item;
        }));
    }

    async showMembers() {
        const path = `/v1/rooms/${encodeURIComponent(this.chosen)}`;
        const { participants } = await this.call("GET", `${path}/stats`);
        this.title.textContent = `Members of ${this.chosen}`;
        const table = document.createElement("table");
        table.innerHTML = "<thead><tr><th>Member</th><th>Sends</th><th>Receives</th><th></th></tr></thead>";
        const body = table.createTBody();
        for (const member of participants) {
            const row = body.insertRow();
            row.insertCell().textContent = member.identity;
            row.insertCell().append(lines(member.tracks.map(describeTrack)));
            row.insertCell().append(lines(describeReceived(member.subscriptions)));
            row.insertCell().append(this.button("Remove", () => this.call("DELETE", `${path}/participants/${encodeURIComponent(member.identity)}`)));
        }
        this.members.replaceChildren(table);
    }

    button(text, action) {
        const button = Object.assign(document.createElement("button"), { className: "button danger", textContent: text });
        button.onclick = async () => {
            button.disabled = true;
            try { await action(); } finally { this.refresh(); }
        };
        return button;
    }
}

function lines(texts) {
    const box = document.createElement("div");
    for (const text of texts.length ? texts : ["–"]) {
        box.append(Object.assign(document.createElement("div"), { textContent: text, className: text === "–" ? "dim" : "" }));
    }
    return box;
}

function describeTrack(track) {
    const layers = track.layers.filter((layer) => layer.isActive);
    const kilobits = layers.reduce((sum, layer) => sum + layer.bitrate, 0) / 1000;
    const largest = layers.reduce((best, layer) => (layer.height > (best?.height ?? 0) ? layer : best), null);
    const size = largest ? ` ${largest.width}×${largest.height}, ${Math.round(largest.framesPerSecond)} fps` : "";
    const state = track.muted ? " muted" : track.silent ? " paused" : ` ${Math.round(kilobits)} kbit/s`;
    return `${track.source} (${track.codec ?? "–"})${size}${state}${layers.length > 1 ? `, ${layers.length} layers` : ""}`;
}

function describeReceived(subscriptions) {
    const kilobits = subscriptions.reduce((sum, one) => sum + one.bitrate, 0) / 1000;
    const paused = subscriptions.filter((one) => one.paused).length;
    return subscriptions.length ? [`${subscriptions.length} tracks, ${Math.round(kilobits)} kbit/s${paused ? `, ${paused} paused` : ""}`] : [];
}
