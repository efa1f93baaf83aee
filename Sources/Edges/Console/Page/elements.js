// What the operators' screens share: elements and figures in words.

export const element = (id) => document.getElementById(id);

export function make(tag, className = "", text = "") {
    return Object.assign(document.createElement(tag), { className, textContent: text });
}

export function link(href, className, text) { return Object.assign(make("a", className, text), { href }); }

/** "45 s", "12 min", "3 h 5 min" */
export function duration(seconds) {
    const minutes = Math.floor(seconds / 60);
    if (minutes < 1) return `${Math.max(0, Math.floor(seconds))} s`;
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "310 kB", "1.2 MB" */
export function bytes(count) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0, value = count;
    for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
    return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const clock = (at) => new Date(at).toLocaleTimeString();

/** "2 tracks", "1 track" */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
