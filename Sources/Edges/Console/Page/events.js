// The events of one room as they happen, newest first: the room's event stream, read with fetch because EventSource cannot send a token.

import { moment } from "./elements.js";

const MOST = 200;
const AGAIN_MS = 2_000;

export class EventList {
    /** Shows lines in `list`; `token()` gives an access token, `onEvent(event)` is called for each. */
    constructor(list, token, onEvent = () => {}) { Object.assign(this, { list, token, onEvent, room: null, last: "0", names: new Map() }); }

    /** Follows `room`, from the first event that the server still has; null: follows none. */
    follow(room) {
        if (room === this.room) return;
        this.stop();
        this.room = room;
        this.last = "0";
        this.list.replaceChildren();
        if (room) this.run(this.reader = new AbortController());
    }

    stop() {
        this.reader?.abort();
        this.room = this.reader = null;
    }

    /** Reads until it is stopped, over connections that end. */
    async run(reader) {
        while (!reader.signal.aborted) {
            try {
                await this.read(reader.signal);
            } catch {
                // The tab shows already that the server does not answer; missed events arrive with the next connection.
            }
            await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
    }

    async read(signal) {
        const headers = { Accept: "text/event-stream", "Last-Event-ID": this.last, Authorization: `Bearer ${await this.token()}` };
        const reply = await fetch(`/v1/rooms/${encodeURIComponent(this.room)}/events`, { headers, signal });
        if (!reply.ok) return;
        const decoder = new TextDecoder();
        let text = "";
        for (const bytes = reply.body.getReader(); ;) {
            const { done, value } = await bytes.read();
            if (done || signal.aborted) return;
            text += decoder.decode(value, { stream: true });
            const blocks = text.split("\n\n");
            text = blocks.pop();
            for (const block of blocks) this.take(block);
        }
    }

    take(block) {
        const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s).slice(0, 2)));
        if (fields.id) this.last = fields.id;
        if (fields.event === "eventsMissed") return this.add(null, "Older events are no longer kept.");
        // The stream begins with an id without data.
        if (!fields.id || !fields.data) return;
        const event = JSON.parse(fields.data);
        this.onEvent(event);
        if (event.info) this.names.set(event.participant, event.info.name || event.identity);
        const words = describe(event, this.names.get(event.participant) ?? event.identity ?? event.participant);
        if (words) this.add(event.at, words);
    }

    /** `at`: null if it is not known. */
    add(at, words) {
        const line = document.createElement("li");
        const time = document.createElement("time");
        if (at !== null) Object.assign(time, { dateTime: new Date(at).toISOString(), textContent: moment(at) });
        line.append(time, words);
        // Events of today may be of another day now.
        const today = new Date().toDateString();
        if (today !== this.today) for (const one of this.list.querySelectorAll("time[datetime]")) one.textContent = moment(one.dateTime);
        this.today = today;
        this.list.prepend(line);
        while (this.list.childElementCount > MOST) this.list.lastElementChild.remove();
    }
}

/** An event in words; nothing for changes that happen all the time in a healthy room. */
export function describe(event, who) {
    switch (event.type) {
        case "roomStarted": return "The room was opened.";
        case "roomEnded": return "The room was closed.";
        case "participantJoined": return `${who} joined.`;
        case "participantUpdated": return `${who} has another name or other metadata.`;
        case "participantLeft": return `${who} left (${event.reason})${event.hasConnected ? "" : ", and never connected"}.`;
        case "trackPublished": return `${who} publishes a ${event.track.source} track.`;
        case "trackUnpublished": return `${who} no longer publishes the ${event.track.source} track.`;
        case "trackMuted": return `${who} muted the ${event.track.source} track, or was muted.`;
        case "trackUnmuted": return `${who} unmuted the ${event.track.source} track.`;
        case "connectionChanged": return event.state === "closed" && event.reason ? `A connection of ${who} closed (${event.reason}).` : null;
        case "iceFailed": return `${who} cannot be reached: the client offered ${event.clientCandidates}, the server ${event.serverCandidates}.`;
        case "noCommonCodec": return `${who} and a publisher have no common codec.`;
        case "lockChanged": return event.lock === "open" ? "The room was unlocked." : "The room was locked.";
        case "recordingStarted": return "A recording was started.";
        case "recordingStopped": return "A recording was stopped.";
        case "recordingGap": return `A recording misses ${event.milliseconds} ms (${event.reason}).`;
        case "recordingReady": return "The files of a recording are ready.";
        case "recordingFailed": return event.recordedTrack ? `A track cannot be recorded (${event.reason}).` : `A recording has no files (${event.reason}).`;
        case "jobStarted": return "A file is being made of a recording.";
        case "jobFinished": return "A file was made of a recording.";
        case "jobFailed": return `No file was made of a recording (${event.reason}).`;
        case "playbackStarted": return `${who} is a file that is played.`;
        case "playbackEnded": return `The file ${who} is no longer played (${event.reason}).`;
        case "policyChanged": return `The room's policy was changed${event.by ? `, by ${event.by}` : ""}.`;
        case "publicationRefused": return `${who} could not publish (${event.code}).`;
        case "banStarted": return `${event.identity} is banned until ${moment(event.until)}.`;
        case "banEnded": return `${event.identity} is no longer banned.`;
        case "permissionsChanged": return `The permissions of ${who} were changed.`;
        case "captureStarted": return `The packets of ${who} are captured (${event.payload ? "with audio and video" : "headers only"}), by ${event.by}.`;
        case "captureEnded": return `The capture of ${who}’s packets ended.`;
        case "guestWaiting": return `${event.name || event.identity} waits to be let in.`;
        case "guestDecided": return `${event.identity} was ${event.letIn ? "let in" : "turned away"}.`;
        case "joinRefused": return `${who} could not join (${event.code}).`;
        default: return null;
    }
}
