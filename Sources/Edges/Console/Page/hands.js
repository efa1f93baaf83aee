// Raised hands: milliseconds since 1970 as `hand` in a participant's metadata, which is announced to everybody in the room (Protocol.md, `metadata`).

/** When a hand was raised; null: it is not. Metadata that is no JSON object has none, and neither has a value from another client that is no time. */
export function handOf(metadata) {
    const { hand } = parsed(metadata) ?? {};
    return ["number", "string", "boolean"].includes(typeof hand) ? Number(hand) || null : null;
}

/** The metadata with a hand raised at that time, or (null) lowered; null if the metadata has no place for one. */
export function handIn(metadata, hand) {
    const members = parsed(metadata);
    if (!members) return null;
    const { hand: _, ...others } = members;
    return hand === null && !Object.keys(others).length ? "" : JSON.stringify({ ...others, ...(hand !== null && { hand }) });
}

function parsed(metadata) {
    if (!metadata) return {};
    try {
        const value = JSON.parse(metadata);
        return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
    } catch {
        return null;
    }
}
