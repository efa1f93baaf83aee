// Raised hands: milliseconds since 1970 as `hand` in a participant's metadata, which everybody in the room is told of (Protocol.md, `metadata`).

/** When a hand was raised; null: it is not. Metadata that is no JSON object has none, nor has what a stranger wrote there that is no time: not every value has a number. */
export function handOf(metadata) {
    const { hand } = parsed(metadata) ?? {};
    return ["number", "string", "boolean"].includes(typeof hand) ? Number(hand) || null : null;
}

/** The metadata with a hand raised at that time, or (null) lowered; null where it has no place for one. */
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
