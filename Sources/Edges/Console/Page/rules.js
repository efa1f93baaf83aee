// The members of a room's policy as fields of a form. Types, ranges and descriptions are those of the server's own description
// (/openapi.json), so that members that the server gets later have a field, too; the texts for people are here.

import { make } from "./elements.js";

const GROUPS = [
    ["Who may join", {
        maxParticipants: "Maximum participants", countsHidden: "Hidden participants count", countsPublishOnly: "Publish-only participants count",
        waitingRoom: "Waiting room", requireEncryption: "Require end-to-end encryption", duplicateIdentity: "A second session of an identity",
        lockRight: "Who may lock the room",
    }],
    ["What may be published", {
        maxPublishers: "Maximum publishers", publishSources: "Sources", moderatorSources: "Sources for moderators only", audioOnly: "Audio only",
        allowSimulcast: "Simulcast", maxVideoBitrate: "Maximum bitrate of a video", maxUplinkBitrate: "Maximum video bitrate of a participant",
    }],
    ["What is received", {
        maxVideoSubscriptions: "Maximum videos at once", maxDownlinkBitrate: "Maximum video bitrate to a participant",
        bandwidthMode: "How bandwidth is shared", shortage: "A video that does not fit", oversendBitrate: "Bitrate above the estimate",
        minPlayoutDelayMilliseconds: "Shortest playout delay", maxPlayoutDelayMilliseconds: "Longest playout delay", subscribeRules: "Subscribe rules",
    }],
    ["Speakers", {
        maxMicrophones: "Maximum microphones at once", microphoneThreshold: "Microphone threshold (dBov)", alwaysHeard: "Always heard", speakerThreshold: "Speaker threshold (dBov)", maxSpeakers: "Maximum speakers listed",
    }],
    ["Recording", {
        recording: "When it is recorded", recordingSources: "Sources recorded", recordingParticipants: "Participants recorded", recordingFiles: "Files",
        recordingSegmentSeconds: "Longest file", recordingSegmentMegabytes: "Largest file", recordingFileName: "Names of files",
    }],
    ["Codecs", {
        videoCodecs: "Video codecs", audioCodecs: "Audio codecs", h264Profiles: "H.264 profiles", vp9Profiles: "VP9 profiles", av1Profiles: "AV1 profiles",
    }],
    ["How long it lasts", {
        maxDurationSeconds: "Maximum duration of the room", maxStaySeconds: "Maximum stay of a participant", endStayWithToken: "A stay ends with its token",
        emptyTimeoutSeconds: "Close when nobody joins for", departureTimeoutSeconds: "Close after the last one left",
    }],
    ["Other", { topology: "Topology" }],
];
/** Used instead of descriptions that contain names of the API and of the server's settings. */
const NOTES = {
    maxParticipants: "Whoever comes then is refused. Not set: as many as the server’s settings permit.",
    countsHidden: "Whether they count towards the maximum of participants.",
    countsPublishOnly: "Whether participants that only send count towards the maximum of participants.",
    maxVideoBitrate: "Of each video that a participant sends. Not set: the server’s default.",
    maxUplinkBitrate: "Of all video that a participant sends. Not set: the server’s default.",
    maxDownlinkBitrate: "Of all video that is sent to a participant. Not set: the server’s default.",
    maxVideoSubscriptions: "Sent to a participant; the selection changes without renegotiation. With 0, no video is offered. Not set: the server’s default.",
    bandwidthMode: "Among the videos sent to a participant, whose own choice takes precedence. Not set: Collaboration.",
    shortage: "What happens to a video whose lowest layer does not fit. Not set: it is sent, up to 60 kbit/s above the estimate.",
    microphoneThreshold: "Where the number of microphones is limited: only one that is at least as loud as this takes the place of a quieter one, so that the noise of silent ones does not make them take turns (RFC 6464).",
    emptyTimeoutSeconds: "The room is closed when nobody has joined it for this long.",
    departureTimeoutSeconds: "The room is closed this long after its last participant left.",
    waitingRoom: "Participants other than moderators wait until an operator or a moderator lets them in.",
    requireEncryption: "Only participants that encrypt their media end to end may join; WHIP and WHEP cannot.",
    duplicateIdentity: "When somebody joins with the identity of a member.",
    lockRight: "Operators always may.",
    oversendBitrate: "Only where a video that does not fit is sent above the estimate.",
    topology: "Can only change while nobody is in the room.",
    videoCodecs: "From each connection's next negotiation on. None checked: all.",
    audioCodecs: "From each connection's next negotiation on. None checked: all.",
    recording: "A recording that somebody ends is not started again before these rules change.",
    recordingParticipants: "One sid or identity per line. None: everybody.",
    recordingFiles: "Of recordings that begin from now on. Not set: the server’s default.",
    recordingSegmentSeconds: "The next file begins with the next keyframe. Not set: the server’s default.",
    recordingSegmentMegabytes: "The next file begins with the next keyframe. Not set: the server’s default.",
    recordingFileName: "Letters, digits, _, -, . and {room}, {recording}, {participant}, {track}, {source}, {time}, {segment}, without .mp4.",
    alwaysHeard: "One identity per line. Their microphones are sent however quiet they are.",
};
const WORDS = {
    tracks: "One per track", participant: "One per participant", room: "One for everything", manual: "When somebody starts it", fromStart: "From the first track",
    routed: "The server forwards", peerToPeer: "Peer to peer", replace: "Ends the older one", refuse: "Is refused", allow: "Joins beside the older one",
    operators: "Operators", moderators: "Operators and moderators", members: "Everybody in the room", pause: "Is paused", oversend: "Is sent above the estimate",
    grid: "Grid", collaboration: "Collaboration", presentation: "Presentation", microphone: "Microphone", camera: "Camera", screen: "Screen",
    screenAudio: "Screen audio", opus: "Opus", red: "RED", otherAudio: "Other audio", vp8: "VP8", vp9: "VP9", h264: "H.264", av1: "AV1",
};
/** Lists that, being absent or empty, permit everything. */
const EMPTY_MEANS_ALL = new Set(["videoCodecs", "audioCodecs", "h264Profiles", "vp9Profiles", "av1Profiles"]);

/** [[group, [Field]]] of `properties`, the schema's members of a policy. */
export function fieldsOf(properties) {
    const groups = GROUPS.map(([title, names]) => [title, Object.entries(names).filter(([name]) => name in properties)]);
    const known = new Set(groups.flatMap(([, names]) => names.map(([name]) => name)));
    const others = Object.keys(properties).filter((name) => !known.has(name)).map((name) => [name, titleOf(name)]);
    groups.at(-1)[1].push(...others);
    return groups.map(([title, names]) => [title, names.map(([name, words]) => fieldOf(name, words, properties[name]))]);
}

/** "maxOtherThings" as "Max other things": a member that this page has no words for. */
function titleOf(name) {
    const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    return words[0].toUpperCase() + words.slice(1);
}

function fieldOf(name, title, schema) {
    const types = [schema.type].flat();
    if (types.includes("boolean")) return new Choice(name, title, schema, [[true, "Yes"], [false, "No"]]);
    if (schema.enum) return new Choice(name, title, schema, schema.enum.filter((one) => one !== null).map((one) => [one, word(one)]));
    if (types.includes("integer") || types.includes("number")) return new Figure(name, title, schema);
    if (schema.items?.enum) return new Checks(name, title, schema, schema.items.enum);
    if (schema.items?.type === "integer") {
        const { minimum, maximum } = schema.items;
        return new Checks(name, title, schema, Array.from({ length: maximum - minimum + 1 }, (_, index) => minimum + index));
    }
    if (types.includes("string")) return new Line(name, title, schema);
    if (name === "alwaysHeard" || name === "recordingParticipants") return new Lines(name, title, schema);
    return new Document(name, title, schema);
}

function word(value) { return WORDS[value] ?? (typeof value === "number" ? `Profile ${value}` : value); }

const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/** One member. `base` is the value in force; absent if there is none. */
class Field {
    constructor(name, title, schema) {
        Object.assign(this, { name, title, schema });
        this.element = make("div", "field");
        this.problem = make("p", "fault");
        this.problem.id = `policy-${name}-fault`;
    }

    assemble(control) {
        // The server's description is that of the API, whose bitrates are in bits per second; the form has its own unit, and calls what is absent "not set".
        const note = NOTES[this.name] ?? (this.schema.description ?? "").replaceAll("`", "").replace(", in bits per second", "").replace("Absent:", "Not set:");
        this.note = make("p", "note", note);
        this.note.id = `policy-${this.name}-note`;
        this.control = control;
        control.id = `policy-${this.name}`;
        control.setAttribute("aria-describedby", `${this.note.id} ${this.problem.id}`);
        this.element.append(...this.parts(control), this.note, this.problem);
        this.show(undefined);
    }

    parts(control) {
        const label = make("label", "", this.title);
        if (this.unit) label.append(make("span", "unit", ` (${this.unit})`));
        label.append(control);
        return [label];
    }

    /**
     * Sets the value in force; the control shows it unless a person changed it (`keep`). Unfinished input is no change yet: half of a JSON document, a line
     * that was begun. For the same policy nothing is shown anew, so that such input stays.
     */
    setBase(base, keep = false) {
        const isUntouched = this.change === undefined && !this.fault, isNew = !isSame(base, this.base);
        this.base = base;
        // If the person's value is in force now, there is no longer a change.
        if (!keep || isNew && !this.fault && (isUntouched || this.change === undefined)) this.show(base);
        this.element.classList.toggle("changed", this.change !== undefined);
    }

    /** Its value in a merge patch; undefined: not in it; null: back to the preset or the server's default. */
    get change() {
        const value = this.value;
        if (isSame(value, this.base) || value === undefined) return undefined;
        return value;
    }

    complain(text) {
        this.problem.textContent = text;
        this.control.setAttribute("aria-invalid", String(Boolean(text)));
    }

    /** Why the value cannot be sent; "" if it can. */
    get fault() { return this.control.validationMessage ?? ""; }

    /** A value of it in words. */
    words(value) {
        if (value === null) return "default";
        return value === undefined ? "not set" : this.describe(value);
    }

    describe(value) { return Array.isArray(value) ? value.map(word).join(", ") || "none" : word(value); }
}

class Figure extends Field {
    constructor(name, title, schema) {
        super(name, title, schema);
        this.scale = name.endsWith("Bitrate") ? 1000 : 1;
        this.unit = { Bitrate: "kbit/s", Seconds: "seconds", Milliseconds: "ms", Megabytes: "MB" }[/Bitrate$|Seconds$|Milliseconds$|Megabytes$/.exec(name)?.[0]];
        const input = Object.assign(make("input"), { type: "number", inputMode: "decimal", step: this.scale === 1 ? "1" : "any" });
        if (schema.minimum !== undefined) input.min = schema.minimum / this.scale;
        if (schema.maximum !== undefined) input.max = schema.maximum / this.scale;
        this.assemble(input);
    }

    show(value) {
        this.control.value = value === undefined ? "" : value / this.scale;
        this.control.placeholder = value === undefined ? "Not set" : "Default";
    }

    get value() {
        if (this.control.value === "") return this.control.validity.badInput ? undefined : this.base === undefined ? undefined : null;
        return Math.round(Number(this.control.value) * this.scale);
    }

    describe(value) { return this.unit ? `${value / this.scale} ${this.unit}` : String(value); }
}

class Line extends Field {
    constructor(name, title, schema) {
        super(name, title, schema);
        const input = Object.assign(make("input"), { autocomplete: "off", spellcheck: false });
        if (schema.maxLength) input.maxLength = schema.maxLength;
        if (schema.pattern) input.pattern = schema.pattern;
        this.assemble(input);
    }

    show(value) {
        this.control.value = value ?? "";
        this.control.placeholder = value === undefined ? "Not set" : "Default";
    }

    get value() { return this.control.value.trim() || (this.base === undefined ? undefined : null); }
}

class Choice extends Field {
    constructor(name, title, schema, options) {
        super(name, title, schema);
        this.options = new Map(options);
        this.assemble(make("select"));
    }

    show(value) {
        const none = value === undefined ? "Not set" : "Back to the default";
        const options = [...this.options].map(([key, text]) => new Option(text, JSON.stringify(key)));
        this.control.replaceChildren(...options, new Option(none, ""));
        this.control.value = value === undefined ? "" : JSON.stringify(value);
    }

    get value() { return this.control.value ? JSON.parse(this.control.value) : this.base === undefined ? undefined : null; }
    describe(value) { return this.options.get(value) ?? String(value); }
}

/** A small set. The elements in force keep their order; added ones follow. */
class Checks extends Field {
    constructor(name, title, schema, items) {
        super(name, title, schema);
        this.items = items;
        this.boxes = new Map(items.map((item) => [item, Object.assign(make("input"), { type: "checkbox" })]));
        this.reset = Object.assign(make("input"), { type: "checkbox" });
        this.reset.onchange = () => { for (const box of this.boxes.values()) box.disabled = this.reset.checked; };
        this.assemble(make("fieldset"));
    }

    parts(fieldset) {
        fieldset.append(make("legend", "", this.title));
        this.resetLabel = make("label", "check dim");
        this.resetLabel.append(this.reset, "Back to the default");
        for (const [item, box] of this.boxes) {
            const label = make("label", "check");
            label.append(box, word(item));
            fieldset.append(label);
        }
        fieldset.append(this.resetLabel);
        return [fieldset];
    }

    /** For an absent or empty list, everything that it permits is checked. */
    show(value) {
        const isAll = value === undefined ? this.name !== "moderatorSources" : !value.length && EMPTY_MEANS_ALL.has(this.name);
        for (const [item, box] of this.boxes) Object.assign(box, { checked: isAll || Boolean(value?.includes(item)), disabled: false });
        this.reset.checked = false;
        this.resetLabel.hidden = value === undefined;
        this.shown = this.checked;
    }

    get checked() {
        const order = [...(this.base ?? []).filter((item) => this.boxes.has(item)), ...this.items];
        return [...new Set(order)].filter((item) => this.boxes.get(item).checked);
    }

    get value() {
        if (this.reset.checked) return null;
        const checked = this.checked;
        if (isSame([...checked].sort(), [...this.shown].sort())) return this.base;
        return checked.length === this.items.length && EMPTY_MEANS_ALL.has(this.name) ? [] : checked;
    }

    describe(value) { return value.length || !EMPTY_MEANS_ALL.has(this.name) ? super.describe(value) : "all"; }
}

class Lines extends Field {
    constructor(name, title, schema) {
        super(name, title, schema);
        this.assemble(Object.assign(make("textarea"), { rows: 2, spellcheck: false }));
    }

    show(value) { this.control.value = (value ?? []).join("\n"); }

    get value() {
        const lines = this.control.value.split("\n").map((line) => line.trim()).filter(Boolean);
        // An empty list of participants would differ from no list: clearing it falls back to the default.
        if (!lines.length && this.name === "recordingParticipants") return this.base === undefined ? undefined : null;
        return lines.length || this.base?.length ? lines : this.base;
    }

    describe(value) { return value.join(", ") || "none"; }
}

/** A member that has no form of its own: as JSON. */
class Document extends Field {
    constructor(name, title, schema) {
        super(name, title, schema);
        this.unit = "JSON";
        this.assemble(Object.assign(make("textarea"), { rows: 3, spellcheck: false }));
    }

    show(value) { this.control.value = value === undefined ? "" : JSON.stringify(value, null, 1); }

    get value() {
        if (!this.control.value.trim()) return this.base === undefined ? undefined : null;
        try {
            return JSON.parse(this.control.value);
        } catch {
            return undefined;
        }
    }

    get fault() {
        try {
            if (this.control.value.trim()) JSON.parse(this.control.value);
            return "";
        } catch (problem) {
            return `This is not JSON: ${problem.message}`;
        }
    }

    describe(value) { return JSON.stringify(value); }
}
