// The banner across the room while the server cannot be reached: what happened, for how long, and that it is over.

const element = (id) => document.getElementById(id);
/** Descriptions of the causes that `Signal` gives. */
const CAUSES = {
    offline: "This computer has no network connection.",
    stopping: "The server is shutting down or restarting.",
    unreachable: "The server does not answer.",
    silent: "The server stopped answering.",
    closed: "The connection to the server was closed.",
};
/** Milliseconds: a socket that is replaced within this time is not reported. */
const PATIENCE = 1_000;
/** Milliseconds for which a person can read that it is over. */
const READING = 8_000;

export class Outage {
    constructor() {
        this.since = null; // when the connection was lost, on performance.now()
        this.suspended = 0; // seconds for which the page did not run
    }

    /** The connection to the server is lost; `cause` is a key of CAUSES. Called again when more is known. */
    lost(cause) {
        this.cause = cause;
        if (this.since === null) {
            this.since = performance.now();
            this.timer = setInterval(() => this.show(), 250);
        }
        this.show();
    }

    /** The page did not run for so many seconds: the machine slept, or the browser was stopped. */
    suspendedFor(seconds) {
        this.suspended += seconds;
        if (this.since === null) this.report(`This page was suspended for ${words(this.suspended)}.`);
        else this.show();
    }

    /** Connected again, or for the first time. */
    over() {
        if (this.since === null) return;
        const seconds = (performance.now() - this.since) / 1000;
        const wasShown = this.stop();
        if (this.suspended) this.report(`This page was suspended for ${words(this.suspended)}.`);
        else if (wasShown) this.report(`The connection was lost for ${words(seconds)}.`);
        this.suspended = 0;
    }

    /** The stay ended: there is nothing to show. */
    clear() {
        this.stop();
        clearTimeout(this.reading);
        this.suspended = 0;
        element("outage").hidden = true;
    }

    /** Whether anything had been shown. */
    stop() {
        clearInterval(this.timer);
        this.since = null;
        const wasShown = !element("outage").hidden && element("outage").dataset.state === "lost";
        if (wasShown) element("outage").hidden = true;
        return wasShown;
    }

    show() {
        const waited = performance.now() - this.since;
        if (waited < PATIENCE && !this.suspended) return;
        const cause = this.suspended ? `This page was suspended for ${words(this.suspended)}.`
            : CAUSES[navigator.onLine ? this.cause : "offline"];
        this.display("lost", "Connection lost", `${cause} Reconnecting…`);
        element("outage-time").textContent = words(waited / 1000);
    }

    report(text) {
        this.display("back", "Connected", text);
        element("outage-time").textContent = "";
        clearTimeout(this.reading);
        this.reading = setTimeout(() => {
            if (this.since !== null) return;
            element("outage").hidden = true;
            this.suspended = 0;
        }, READING);
    }

    /** Only what differs is written: assistive technology reads out each change. */
    display(state, title, text) {
        const band = element("outage");
        band.hidden = false;
        band.dataset.state = state;
        for (const [id, words] of [["outage-title", title], ["outage-text", text]]) {
            if (element(id).textContent !== words) element(id).textContent = words;
        }
    }
}

function words(seconds) {
    const whole = Math.max(1, Math.round(seconds));
    return whole < 120 ? `${whole} s` : `${Math.round(whole / 60)} min`;
}
