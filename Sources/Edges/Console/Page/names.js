// What names may be. The server has the last word (Protocol.md, "Names"); the page says the same before it asks for a token.

/** The longest name, in Unicode code points. */
const LONGEST = 256;
/** Control characters, line separators and bidirectional controls: they change how the text around them reads. */
const REFUSED = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/** What is wrong with a room's name; "" if nothing is. */
export function problemOfRoom(name) {
    return problem(name, "The room name")
        || (isAddressable(name) ? "" : `The room name “${name}” cannot be used, because it cannot be part of a URL. Choose another one.`);
}

/** What is wrong with a person's name; "" if nothing is. */
export function problemOfPerson(name) { return problem(name, "Your name"); }

function problem(name, subject) {
    const length = [...name].length;
    if (!name.trim()) return `${subject} is empty.`;
    if (length > LONGEST) return `${subject} has ${length} characters. At most ${LONGEST} are allowed.`;
    const refused = REFUSED.exec(name)?.[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return refused ? `${subject} contains an invisible character (U+${refused}) that is not allowed. Type the name instead of pasting it.` : "";
}

/** Whether a path can name it: URLs drop "." and ".." segments, percent-encoded or not. */
export function isAddressable(name) { return Boolean(name) && name !== "." && name !== ".."; }
