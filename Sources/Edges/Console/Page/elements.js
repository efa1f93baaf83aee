// Shared by the screens: elements, and figures in words.

export const element = (id) => document.getElementById(id);

export function make(tag, className = "", text = "") {
    return Object.assign(document.createElement(tag), { className, textContent: text });
}

/**
 * Writes only what differs: assistive technology reads out each change of an element with a role such as "status". `parts` are texts, and elements for names
 * (`nameInText`).
 */
export function say(id, ...parts) {
    if (element(id).textContent !== parts.map((part) => part.textContent ?? part).join("")) element(id).replaceChildren(...parts.filter(Boolean));
}

/** A person's name within a sentence of the page: in some scripts it is written from the right, and without this so would be what surrounds it. */
export function nameInText(name) { return make("bdi", "", name); }

export function link(href, className, text) { return Object.assign(make("a", className, text), { href }); }

/**
 * Whether a key goes to an input method, like Enter and Escape that end a composition: Safari ends the composition before that key, and then only the key's
 * code shows it.
 */
export const isComposed = ({ isComposing, keyCode }) => isComposing || keyCode === 229;

/** "45 s", "12 min", "3 h 5 min" */
export function duration(seconds) {
    const minutes = Math.floor(seconds / 60);
    if (minutes < 1) return `${Math.max(0, Math.floor(seconds))} s`;
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "1:05", "1:02:03": a position in a film. */
export function position(milliseconds) {
    const seconds = Math.max(0, Math.floor(milliseconds / 1000));
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    return (parts[0] ? parts : parts.slice(1)).map((part, index) => (index ? String(part).padStart(2, "0") : part)).join(":");
}

/** "310 kB", "1.2 MB" */
export function bytes(count) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0, value = count;
    for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
    return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** "24 Nov", of another year with that. */
export function day(at) {
    const date = new Date(at), isOfThisYear = date.getFullYear() === new Date().getFullYear();
    return date.toLocaleDateString(undefined, { day: "numeric", month: "short", ...(!isOfThisYear && { year: "numeric" }) });
}

const chosenAnew = ({ target }) => target.setCustomValidity("");

/**
 * A select's options, `[value, text]` each: they change only if they differ, so that a person can go on choosing. If the chosen option was removed, no other one
 * replaces it unnoticed: nothing is chosen, and the form cannot be sent before a person chooses, unless any other will do (`isAnyGood`).
 */
export function setOptions(select, options, { isAnyGood = false } = {}) {
    const key = JSON.stringify(options);
    if (select.dataset.options !== key) {
        const before = select.selectedOptions[0]?.value, { wasOffered } = select.dataset;
        select.dataset.options = key;
        if (options.length) select.dataset.wasOffered = "true"; // Even if all options are gone for a while.
        select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
        const index = options.findIndex(([value]) => value === before);
        if (index >= 0 || wasOffered && !isAnyGood) select.selectedIndex = index;
        select.addEventListener("change", chosenAnew);
    }
    select.setCustomValidity(options.length && select.selectedIndex < 0 ? "What was chosen is no longer there. Choose again." : "");
}

/** Facts with their titles. */
export function definitions(values) {
    const list = make("dl", "facts");
    for (const [title, value] of Object.entries(values)) {
        const box = make("div");
        box.append(make("dt", "", title), make("dd", "", value));
        list.append(box);
    }
    return list;
}

/** An empty table in `place`, for rows whose cells have the titles as `data-title`. */
export function newTable(place, titles) {
    const table = make("table", "listing");
    const head = table.createTHead().insertRow();
    for (const title of titles) head.append(make("th", "", title));
    place.replaceChildren(table);
    return table.createTBody();
}

export const clock = (at) => new Date(at).toLocaleTimeString();

/** "24 Nov, 14:02:03" */
export const dayAndClock = (at) => `${day(at)}, ${clock(at)}`;

/** "14:02:03" of today, else with the day. */
export const moment = (at) => (isToday(at) ? clock(at) : dayAndClock(at));

const isToday = (at) => new Date(at).toDateString() === new Date().toDateString();

/** "2 tracks", "1 track" */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
