// Who is in the room and which tracks are received: the events about participants and tracks, applied in order.

import { Participant, Publication } from "./participants.js";

export class People {
    /** `fire(type, detail)` notifies the app; `onChange()`: received tracks may now be known; `onLeft(sid)`. */
    constructor({ fire, onChange, onLeft }) {
        Object.assign(this, { fire, onChange, onLeft });
        this.others = new Map(); // sid -> Participant
        this.local = null; // oneself
    }

    /** Everybody in a fresh session. */
    start(room, { participant, participants }) {
        this.room = room;
        this.local = new Participant(participant, true);
        for (const info of participants) this.add(info);
    }

    /** For the app, everybody has left: a fresh session knows them by other sids. */
    clear(reason) {
        for (const sid of [...this.others.keys()]) this.removed({ participant: sid, reason });
    }

    /** Reports everybody who was in the room already. */
    introduce() {
        for (const participant of this.others.values()) this.present(participant);
    }

    present(participant) {
        this.fire("participantJoined", { participant });
        for (const publication of participant.tracks) this.fire("trackPublished", { publication, participant });
    }

    /** Applies an event about people or tracks; returns whether it was one. */
    handle(event) {
        switch (event.type) {
        case "participantJoined":
        case "participantUpdated": this.updated(event.participant); return true;
        case "participantLeft": this.removed(event); return true;
        case "trackPublished":
        case "trackUpdated": this.trackChanged(event.track); return true;
        case "trackUnpublished": this.trackRemoved(event); return true;
        case "speakers": this.speaking(event.speakers); return true;
        case "dominantSpeaker": this.fire(event.type, { participant: this.find(event.participant) }); return true;
        case "quality": this.qualityChanged(event.participants); return true;
        }
        return false;
    }

    /** A participant, this client's own included. */
    find(sid) { return sid === this.local?.sid ? this.local : this.others.get(sid); }

    add(info) {
        const known = this.others.get(info.sid);
        const participant = known ?? new Participant(info, false);
        participant.update(info);
        this.others.set(info.sid, participant);
        for (const publication of participant.tracks) if (!info.tracks.some(({ sid }) => sid === publication.sid)) this.withdraw(publication);
        for (const track of info.tracks) this.describe(participant, track);
        return { participant, isNew: !known };
    }

    /** Stores the server's description of a track; returns whether the track is new. */
    describe(participant, info) {
        const known = participant.publications.get(info.sid);
        if (known) known.info = info;
        else participant.publications.set(info.sid, new Publication(this.room, participant, info));
        return { publication: participant.publications.get(info.sid), isNew: !known };
    }

    updated(info) {
        if (info.sid === this.local.sid) {
            this.local.update(info);
            return this.fire("participantUpdated", { participant: this.local });
        }
        const { participant, isNew } = this.add(info);
        if (isNew) this.present(participant);
        else this.fire("participantUpdated", { participant });
        this.onChange();
    }

    removed({ participant: sid, reason }) {
        const participant = this.others.get(sid);
        if (!participant) return;
        for (const publication of participant.tracks) this.withdraw(publication);
        this.others.delete(sid);
        this.onLeft(sid);
        this.fire("participantLeft", { participant, reason });
    }

    trackChanged(info) {
        const participant = this.others.get(info.participant);
        if (!participant) return;
        const { publication, isNew } = this.describe(participant, info);
        this.fire(isNew ? "trackPublished" : "trackUpdated", { publication, participant });
        if (isNew) this.onChange();
    }

    trackRemoved({ participant, track }) {
        const publication = this.others.get(participant)?.publications.get(track);
        if (publication) this.withdraw(publication);
    }

    withdraw(publication) {
        const { participant } = publication;
        this.lose(publication);
        participant.publications.delete(publication.sid);
        publication.detach();
        this.fire("trackUnpublished", { publication, participant });
    }

    /** What is received now: a Map of the sid of a track to the MediaStreamTrack. */
    place(tracks) {
        for (const participant of this.others.values()) {
            for (const publication of participant.tracks) {
                const track = tracks.get(publication.sid) ?? null;
                if (publication.track === track) continue;
                this.lose(publication);
                if (!track) continue;
                publication.setTrack(track);
                this.fire("trackSubscribed", { track, publication, participant });
            }
        }
    }

    lose(publication) {
        const { track, participant } = publication;
        if (!track) return;
        publication.setTrack(null);
        this.fire("trackUnsubscribed", { track, publication, participant });
    }

    speaking(speakers) {
        const all = speakers.map((one) => ({ ...one, participant: this.find(one.participant) })).filter((one) => one.participant);
        for (const one of [this.local, ...this.others.values()]) one.isSpeaking = all.some(({ participant }) => participant === one);
        this.fire("speakers", { speakers: all });
    }

    qualityChanged(all) {
        const known = all.map(({ participant, quality }) => ({ participant: this.find(participant), quality })).filter((one) => one.participant);
        for (const { participant, quality } of known) participant.quality = quality;
        this.fire("quality", { participants: known });
    }
}
