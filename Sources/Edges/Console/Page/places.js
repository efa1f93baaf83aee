// The current place in the operators' tab, in the address after "#": a screen can be bookmarked, sent to somebody, and left with "Back".

/** The parts of a path and its query, as in an address: placeOf(["rooms", "kitchen", "policy"]). */
export function placeOf(parts, query = {}) {
    const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    return `#/${parts.map(encodeURIComponent).join("/")}${entries.length ? `?${new URLSearchParams(entries)}` : ""}`;
}

/** What an address's fragment names; null if it names no place of the operators' tab. */
export function readPlace(fragment) {
    if (!fragment.startsWith("#/")) return null;
    const [path, query = ""] = fragment.slice(2).split(/\?(.*)/s);
    let parts;
    try {
        parts = path.split("/").map(decodeURIComponent);
    } catch {
        return { screen: "overview" };  // An address that somebody mistyped.
    }
    const [first, name, kind, id] = parts;
    if (first === "rooms" && kind === "policy") return { screen: "policy", room: name };
    if (first === "rooms" && kind === "participants" && id) return { screen: "member", room: name, participant: id, at: time(query) };
    if (first === "recordings" && name) return { screen: "recording", recording: name };
    if (first === "recordings") return { ...Object.fromEntries(new URLSearchParams(query)), screen: "recordings" };
    if (first === "sessions" && name) return { screen: "session", session: name, room: new URLSearchParams(query).get("room") ?? undefined };
    if (first === "sessions") return { ...Object.fromEntries(new URLSearchParams(query)), screen: "sessions" };
    return { screen: "overview", room: name };
}

function time(query) {
    const at = Number(new URLSearchParams(query).get("at"));
    return Number.isSafeInteger(at) && at > 0 ? at : null;
}
