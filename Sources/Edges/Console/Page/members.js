// A room's members in the operators' tab, one row each: what they send and receive now.

import { path } from "./api.js";
import { duration, link, make } from "./elements.js";
import { placeOf } from "./places.js";
import { rate } from "./statistics.js";

export class MemberRow {
    constructor(body, operators, room) {
        Object.assign(this, { operators, room });
        this.element = body.insertRow();
        this.cells = Array.from({ length: 4 }, () => this.element.insertCell());
        this.lines = new Map(); // track sid -> { element, text, button }
        const remove = make("button", "button small danger", "Remove");
        remove.onclick = () => operators.removeMember(room, this);
        this.element.insertCell().append(remove);
        this.who = link("", "who", "");
        this.since = make("div", "dim");
        this.cells[0].append(this.who, this.since);
    }

    update(member, figures) {
        this.sid = member.sid;
        const since = duration((Date.now() - member.joinedAt) / 1000);
        const name = this.name = member.name || member.identity;
        this.who.textContent = name;
        this.who.href = placeOf(["rooms", this.room, "participants", member.sid]);
        this.since.textContent = `${name === member.identity ? "" : `${member.identity} · `}for ${since}`;
        this.showTracks(figures?.tracks ?? []);
        this.cells[2].replaceChildren(...received(figures?.subscriptions ?? []));
        this.cells[3].replaceChildren(...[...(figures?.connections ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1)).map((one) => make("div", "", describeConnection(one))));
    }

    showTracks(tracks) {
        for (const [sid, line] of this.lines) {
            if (tracks.some((track) => track.sid === sid)) continue;
            line.element.remove();
            this.lines.delete(sid);
        }
        for (const track of tracks) {
            const line = this.lines.get(track.sid) ?? this.addLine(track.sid);
            line.source.textContent = track.source;
            line.text.textContent = describeTrack(track);
            line.button.disabled = track.muted;
            line.button.textContent = track.muted ? "Muted" : "Mute";
        }
    }

    addLine(sid) {
        const { operators, room } = this;
        const line = { element: make("div", "line"), source: make("span", "source"), text: make("span", "dim"), button: make("button", "button small") };
        line.button.onclick = () => operators.act(() => operators.api.call("POST", path(room, "tracks", sid, "mute")));
        line.element.append(line.source, line.text, line.button);
        this.cells[1].append(line.element);
        this.lines.set(sid, line);
        return line;
    }
}

/** "vp8 · 1280×720 · 30 fps · 1.2 Mbit/s in 3 layers" */
function describeTrack(track) {
    const layers = track.layers.filter((layer) => layer.isActive);
    const largest = layers.reduce((best, layer) => (layer.height > (best?.height ?? 0) ? layer : best), null);
    const words = [track.codec ?? "–"];
    if (track.muted || track.silent) return [...words, track.muted ? "muted" : "paused"].join(" · ");
    if (largest) words.push(`${largest.width}×${largest.height}`, `${Math.round(largest.framesPerSecond)} fps`);
    const sum = rate(layers.reduce((total, layer) => total + layer.bitrate, 0) / 1000);
    words.push(layers.length > 1 ? `${sum} in ${layers.length} layers` : sum);
    return words.join(" · ");
}

function received(subscriptions) {
    if (!subscriptions.length) return [make("span", "dim", "–")];
    const paused = subscriptions.filter((one) => one.paused).length;
    const sum = subscriptions.reduce((total, one) => total + one.bitrate, 0) / 1000;
    const tracks = subscriptions.length === 1 ? "1 track" : `${subscriptions.length} tracks`;
    return [make("div", "", `${tracks}${paused ? `, ${paused} paused` : ""}`), make("div", "dim", rate(sum))];
}

function describeConnection({ id, isConnected, roundTripMilliseconds }) {
    if (!isConnected) return `${id}: connecting`;
    return roundTripMilliseconds === undefined ? id : `${id}: ${roundTripMilliseconds.toFixed(1)} ms`;
}
