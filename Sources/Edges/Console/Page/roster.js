// Who is here and what they show: a tile for each video, and one for the person while there is no camera.

import { nameInText } from "./elements.js";
import { Tile } from "./grid.js";
import { handOf } from "./hands.js";

export class Roster {
    /** `onView()`: a person chose how to see a track; `onChange`: tiles or people were added or removed. */
    constructor({ onView, onChange }) {
        Object.assign(this, { onView, onChange });
        this.people = new Map(); // sid -> Participant of the module, which keeps them
        this.tiles = new Map(); // sid of a track or of a person -> Tile
        // What a person chose for a video: { size, priority, pinned, hidden }, by its participant and source. Sids change when
        // somebody rejoins; the choices for them stay.
        this.choices = new Map();
        this.isSpeakerView = false;
        this.lastSpeaker = null; // sid of a person
    }

    /** Everybody, ourselves included. */
    get count() { return this.people.size + 1; }

    /** News for people who look elsewhere: who shares a screen, whose hand is raised, the first one first. Each is a list of texts and names. */
    get news() {
        const people = [...this.people.values()];
        const names = (list) => list.flatMap((person, index) => [...(index ? [", "] : []), nameInText(person.name || person.identity)]);
        const sharing = people.filter(({ tracks }) => tracks.some(({ source }) => source === "screen"));
        const hands = people.filter(({ metadata }) => handOf(metadata)).sort((a, b) => handOf(a.metadata) - handOf(b.metadata));
        return [sharing.length && [...names(sharing), " shares a screen"], hands.length && ["Raised hands: ", ...names(hands)]].filter(Boolean);
    }

    /** Shows the speaker large, or everybody in the same size. */
    setSpeakerView(isOn) {
        this.isSpeakerView = isOn;
        this.feature();
    }

    /** The stage shows screens and pinned videos; in the speaker view, if there is neither, whoever spoke last. */
    feature() {
        const isPinned = (person) => person.tracks.some((track) => this.choices.get(choiceKey(person, track))?.pinned);
        const people = [...this.people.values()];
        const isTaken = people.some((person) => isPinned(person) || person.tracks.some(({ source }) => source === "screen"));
        const speaker = this.isSpeakerView && !isTaken ? this.people.get(this.lastSpeaker) ?? people[0] : null;
        for (const person of people) {
            this.tiles.get(person.sid)?.setOnStage(person === speaker);
            for (const track of person.tracks) {
                const isChosen = this.choices.get(choiceKey(person, track))?.pinned || person === speaker;
                this.tiles.get(track.sid)?.setOnStage(track.source === "screen" || Boolean(isChosen));
            }
        }
    }

    tile(sid) { return this.tiles.get(sid); }

    /** All video tracks of others, with their tiles and what a person chose for them. */
    *videos() {
        for (const person of this.people.values()) {
            for (const track of person.tracks) {
                if (track.kind === "video") yield { track, tile: this.tiles.get(track.sid), choice: this.choices.get(choiceKey(person, track)) ?? {} };
            }
        }
    }

    remove(person) {
        this.drop(person.sid);
        this.feature();
        this.onChange();
    }

    removeTrack(person, track) {
        this.drop(track.sid);
        if (this.people.has(person.sid)) this.arrange(person);
    }

    /** A participant or a track was added or changed. */
    arrange(person) {
        const name = person.name || person.identity;
        const videos = person.tracks.filter((track) => track.kind === "video");
        for (const track of videos) {
            const isScreen = track.source === "screen";
            const tile = this.seat(track.sid, isScreen ? `${name}’s screen` : name, isScreen ? "screen" : "camera", choiceKey(person, track));
            tile.setVideoMuted(track.muted);
        }
        if (videos.some((track) => track.source !== "screen")) this.drop(person.sid);
        else this.seat(person.sid, name, "person");
        const audio = person.tracks.filter((track) => track.kind === "audio" && track.source !== "screenAudio");
        for (const tile of this.tilesOf(person)) {
            tile.setAudioMuted(audio.length > 0 && audio.every((track) => track.muted));
            tile.setHand(Boolean(handOf(person.metadata)) && !tile.element.classList.contains("screen"));
            // Only changes are events: a tile that is made later shows what is known.
            if (person.quality !== null) tile.setQuality(person.quality);
        }
        this.feature();
        this.onChange();
    }

    seat(sid, name, source, key) {
        const onView = key && ((choice) => { this.choices.set(key, choice); this.feature(); this.onView(); });
        if (!this.tiles.has(sid)) this.tiles.set(sid, new Tile({ key: sid, name, source, choice: this.choices.get(key), onView }));
        const tile = this.tiles.get(sid);
        tile.setName(name);
        return tile;
    }

    drop(sid) {
        this.tiles.get(sid)?.remove();
        this.tiles.delete(sid);
    }

    tilesOf(person) {
        return [person.sid, ...person.tracks.map((track) => track.sid)].map((sid) => this.tiles.get(sid)).filter(Boolean);
    }

    /** Marks the speakers: a set of participant sids. */
    markSpeakers(speaking) {
        const [loudest] = [...speaking].filter((sid) => this.people.has(sid));
        if (loudest && loudest !== this.lastSpeaker) {
            this.lastSpeaker = loudest;
            this.feature();
        }
        for (const person of this.people.values()) {
            for (const tile of this.tilesOf(person)) tile.setSpeaking(speaking.has(person.sid) && !tile.element.classList.contains("screen"));
        }
    }

    markQuality(person) {
        for (const tile of this.tilesOf(person)) tile.setQuality(person.quality);
    }
}

function choiceKey(person, track) { return JSON.stringify([person.identity, track.source]); }
