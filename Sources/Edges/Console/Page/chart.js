// Charts over time in SVG, drawn at their size in pixels, so that lines and words have the same size on every screen.

import { day, make } from "./elements.js";

const LEFT = 54, RIGHT = 10, TOP = 6, BOTTOM = 18;
/** Seconds between two marks of the time axis, of which the first one with room for its labels is used. */
const STEPS = [5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400];
const MARK_WIDTH = 84, DAY_MS = 86_400_000;
const LANE_HEIGHT = 24, LANE_TITLE = 18;
/** Words would not fit into a narrower span. */
const LETTER_WIDTH = 7.5;
const TITLE_LETTER_WIDTH = 7;

function draw(tag, attributes, ...content) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
    one.append(...content);
    return one;
}

/** What all charts are: a title, a figure for the chosen moment, a time axis, and a line at that moment. */
class Chart {
    /** `keys` say in words what the colours mean: { kind: words }. */
    constructor(title, height, keys = {}) {
        Object.assign(this, { title, height, window: { from: 0, to: 1 } });
        this.element = make("figure", "chart");
        this.figure = make("output");
        // It changes with time: a screen reader must not read every figure.
        this.figure.setAttribute("aria-live", "off");
        const caption = make("figcaption");
        caption.append(make("b", "", title), ...Object.entries(keys).map(([kind, words]) => make("span", `key ${kind}`, words)), this.figure);
        this.svg = draw("svg", { role: "img", "aria-label": title });
        this.element.append(caption, this.svg);
        this.line = draw("line", { class: "cursor" });
        new ResizeObserver(() => { if (this.svg.clientWidth !== this.width) this.redraw(); }).observe(this.svg);
        const pick = ({ clientX }) => this.onPick?.(this.timeAt(clientX - this.svg.getBoundingClientRect().left));
        this.svg.addEventListener("pointerdown", (event) => {
            this.svg.setPointerCapture(event.pointerId);
            pick(event);
        });
        this.svg.addEventListener("pointermove", (event) => { if (event.buttons) pick(event); });
    }

    x(at) { return LEFT + ((at - this.window.from) / (this.window.to - this.window.from)) * (this.width - LEFT - RIGHT); }

    timeAt(x) {
        const share = (x - LEFT) / (this.width - LEFT - RIGHT);
        return Math.round(this.window.from + Math.min(1, Math.max(0, share)) * (this.window.to - this.window.from));
    }

    redraw() {
        this.width = this.svg.clientWidth;
        if (this.width < LEFT + RIGHT + 20) return;
        this.svg.style.height = `${this.height}px`;
        this.svg.replaceChildren(...this.timeAxis(), ...this.content(), this.line);
        this.setCursor(this.cursor);
    }

    setCursor(at) {
        this.cursor = at;
        const isShown = at !== undefined && at >= this.window.from && at <= this.window.to;
        this.line.classList.toggle("out", !isShown);
        if (!isShown || !this.width) return;
        for (const [name, value] of Object.entries({ x1: this.x(at), x2: this.x(at), y1: TOP, y2: this.height - BOTTOM })) this.line.setAttribute(name, value);
    }

    timeAxis() {
        const { from, to } = this.window;
        const most = Math.max(1, Math.floor((this.width - LEFT - RIGHT) / MARK_WIDTH));
        const step = 1000 * (STEPS.find((one) => (to - from) / 1000 / one <= most) ?? STEPS.at(-1));
        // Marks are at full minutes of this computer's clock.
        const shift = new Date(from).getTimezoneOffset() * 60_000;
        const parts = [];
        for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) {
            const x = this.x(at);
            const options = step < 60_000 ? {} : { hour: "2-digit", minute: "2-digit" };
            const anchor = x > this.width - 40 ? "end" : x < LEFT + 30 ? "start" : "middle";
            parts.push(draw("line", { class: "grid", x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM }));
            const words = (at - shift) % DAY_MS ? new Date(at).toLocaleTimeString(undefined, options) : day(at);
            parts.push(draw("text", { x, y: this.height - 4, "text-anchor": anchor }, words));
        }
        return parts;
    }
}

/** Lines and bands over time. */
export class LineChart extends Chart {
    /** `format(value)` gives the words of the axis; it reaches at least up to `least`. */
    constructor(title, { height = 104, least, most = Infinity, format, keys }) {
        super(title, height, keys);
        Object.assign(this, { least, most, format, lines: [], bands: [] });
    }

    /** `lines` are [{ kind, points: [[at, value]] }], an absent value is a gap; `bands` [{ kind, spans: [{ from, to, min, max }] }]. */
    update(window, { lines, bands = [] }) {
        Object.assign(this, { window, lines, bands });
        this.redraw();
    }

    content() {
        const { from, to } = this.window;
        const isShown = ([at]) => at >= from && at <= to;
        const values = this.lines.flatMap(({ points }) => points.filter(isShown).map(([, value]) => value ?? 0));
        const heights = this.bands.flatMap(({ spans }) => spans.filter((one) => one.to >= from && one.from <= to).map((one) => one.max));
        this.top = roundUp(Math.min(this.most, Math.max(this.least, ...values, ...heights)));
        return [
            ...[0, 0.5, 1].flatMap((share) => this.level(share * this.top)),
            ...this.bands.flatMap(({ kind, spans }) => spans.map((span) => this.band(kind, span))),
            ...this.lines.map(({ kind, points }) => this.path(kind, points)),
        ];
    }

    y(value) { return TOP + (1 - Math.min(value, this.top) / this.top) * (this.height - TOP - BOTTOM); }

    level(value) {
        const y = this.y(value);
        return [
            draw("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }),
            draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.format(value)),
        ];
    }

    band(kind, { from, to, min, max }) {
        const left = Math.max(LEFT, this.x(from)), right = Math.min(this.width - RIGHT, this.x(to));
        const height = Math.max(2, this.y(min) - this.y(max));
        return draw("rect", { class: `band ${kind}`, x: left, width: Math.max(0, right - left), y: this.y(max), height });
    }

    path(kind, points) {
        let text = "", isOpen = false;
        for (const [at, value] of points) {
            const isDrawn = value !== undefined && at >= this.window.from && at <= this.window.to;
            // A point without neighbours is a dot.
            if (isDrawn) text += isOpen ? `L${this.x(at).toFixed(1)} ${this.y(value).toFixed(1)}` : `M${this.x(at).toFixed(1)} ${this.y(value).toFixed(1)}h.01`;
            isOpen = isDrawn;
        }
        return draw("path", { class: `line ${kind}`, d: text });
    }
}

/** The next of 1, 2, 5, 10, 20, 50 … */
function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value * 0.999);
}

/** One lane per item, with its states over time. */
export class LaneChart extends Chart {
    constructor(title, keys) {
        super(title, TOP + BOTTOM, keys);
        this.rows = [];
    }

    /** `rows` are [{ title, spans: [{ from, to, kind, text, note }] }]; `unknownBefore` is when what is known begins. */
    update(window, rows, unknownBefore = window.from) {
        Object.assign(this, { window, rows, unknownBefore, height: TOP + BOTTOM + rows.length * (LANE_HEIGHT + LANE_TITLE) });
        this.redraw();
    }

    content() {
        const parts = [];
        const end = this.width - RIGHT;
        const unknown = Math.min(end, this.x(this.unknownBefore));
        const most = Math.floor((end - LEFT) / TITLE_LETTER_WIDTH);
        if (unknown > LEFT) parts.push(draw("rect", { class: "unknown", x: LEFT, width: unknown - LEFT, y: TOP, height: this.height - TOP - BOTTOM }));
        for (const [index, { title, spans }] of this.rows.entries()) {
            const top = TOP + index * (LANE_HEIGHT + LANE_TITLE);
            parts.push(draw("text", { class: "title", x: LEFT, y: top + 12 }, title.length > most ? `${title.slice(0, most - 1)}…` : title));
            for (const span of spans) {
                const left = Math.max(LEFT, this.x(span.from)), right = Math.min(end, this.x(span.to));
                if (right < LEFT || left > end) continue;
                const width = Math.max(2, right - left);
                parts.push(draw("rect", { class: `span ${span.kind}`, x: left, width, y: top + LANE_TITLE, height: LANE_HEIGHT - 4, rx: Math.min(3, width / 2) },
                    draw("title", {}, `${title}: ${span.text}. ${span.note}`)));
                if (span.text.length * LETTER_WIDTH + 8 < width) {
                    parts.push(draw("text", { class: `words ${span.kind}`, x: left + 6, y: top + LANE_TITLE + 14 }, span.text));
                }
            }
        }
        return parts;
    }
}

/** Lanes that do not change. */
export function lanes(title, rows, window) {
    const chart = new LaneChart(title);
    chart.update(window, rows);
    return chart;
}
