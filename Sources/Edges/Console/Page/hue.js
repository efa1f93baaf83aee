/** A participant's colour, in degrees. */
export function hueOf(name) {
    let hash = 7;
    for (const character of name) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
    return hash % 360;
}
