// The result of a policy's dry run, in words.

import { count, moment } from "./elements.js";

/** More are counted and not listed. */
const LISTED = 50;
const SOURCES = { microphone: "microphone", camera: "camera", screen: "screen", screenAudio: "screen audio" };

/** Whether something of a participant ends, which cannot be undone. */
export function isLost({ leaves, endedTracks }) { return leaves || endedTracks.length > 0; }

/** Lines for people. `members` are the room's participants, for their names and tracks. */
export function wordsOf({ participants, participantsBeyondLimit, publishersBeyondLimit }, members) {
    const tracks = new Map(members.flatMap((member) => member.tracks.map((track) => [track.sid, track])));
    const names = new Map(members.map((member) => [member.sid, member.name || member.identity]));
    const lines = participants.slice(0, LISTED).map((one) => `${names.get(one.sid) ?? one.identity} ${effects(one, tracks).join("; ")}.`);
    if (participants.length > LISTED) lines.push(`… and ${count(participants.length - LISTED, "other participant")}.`);
    lines.unshift(participants.length ? `${count(participants.length, "participant")} in the room ${participants.length === 1 ? "is" : "are"} affected:`
        : "Nobody who is in the room is affected.");
    if (participantsBeyondLimit) lines.push(`${count(participantsBeyondLimit, "participant")} whom the policy would not let in any more would stay.`);
    if (publishersBeyondLimit) lines.push(`${count(publishersBeyondLimit, "publisher")} beyond the maximum would stay.`);
    return lines;
}

function effects({ leaves, changesEnd, endsAt, endedTracks, cappedTracks, endedSubscriptions, newSubscriptions, endedRecordings, newRecordings, changesBandwidth }, tracks) {
    if (leaves) return ["is disconnected"];
    const sources = (sids) => sids.map((sid) => SOURCES[tracks.get(sid)?.source] ?? "track").join(" and ");
    const parts = [];
    if (changesEnd) parts.push(endsAt ? `is disconnected at ${moment(endsAt)}` : "may stay as long as the room is there");
    if (endedTracks.length) parts.push(`no longer sends the ${sources(endedTracks)}`);
    if (cappedTracks.length) parts.push(`sends the ${sources(cappedTracks)} with another maximum bitrate`);
    if (endedSubscriptions.length) parts.push(`no longer receives ${count(endedSubscriptions.length, "track")}`);
    if (newSubscriptions.length) parts.push(`receives ${count(newSubscriptions.length, "more track")}`);
    if (endedRecordings.length) parts.push(`is no longer recorded with the ${sources(endedRecordings)}`);
    if (newRecordings.length) parts.push(`is recorded with the ${sources(newRecordings)}`);
    if (changesBandwidth) parts.push("gets its videos by other bandwidth rules");
    return parts;
}
