// The player of recorded files in the page: the browser's own, over a link that is renewed when it expires. A video in a separate file is played with its
// participant's audio, at the matching position.

import { element } from "./elements.js";

/** Beyond this the audio is moved: a smaller difference is not noticed, and each move is audible. */
const APART_SECONDS = 0.1;

/** New links for a video that does not continue. */
const RENEWALS = 2;

export class RecordingPlayer {
    /** `link(name)` makes a link to a file. */
    constructor(link) {
        Object.assign(this, { link, video: element("recording-video"), run: 0 });
        this.audio = new Audio();
        this.audio.preload = "auto";
        element("recording-close").onclick = () => this.close();
        // The browser's own controls offer no volume for a video without audio.
        element("recording-audio").onchange = () => this.follow();
        this.video.onerror = () => this.renew();
        this.video.addEventListener("playing", () => { this.renewals = 0; });
        for (const event of ["timeupdate", "play", "playing", "pause", "waiting", "seeked", "ratechange", "ended"]) {
            this.video.addEventListener(event, () => this.follow());
        }
    }

    async watch(file, title, audioFiles) {
        const run = ++this.run;
        this.clear();
        Object.assign(this, { file, audioFiles, renewals: 0 });
        element("recording-player").hidden = false;
        element("recording-playing").textContent = title;
        element("recording-audio-field").hidden = !audioFiles.length;
        await this.open(run, 0);
        if (run !== this.run) return;
        this.video.focus();
        element("recording-player").scrollIntoView({ block: "nearest" });
    }

    close() {
        this.run += 1;
        this.clear();
        this.file = null;
        element("recording-player").hidden = true;
    }

    clear() {
        for (const media of [this.video, this.audio]) {
            media.pause();
            media.removeAttribute("src");
            media.load();
        }
        this.heard = null;
        element("recording-video-problem").textContent = "";
    }

    async open(run, at, isPaused = false) {
        const { url, expiresAt } = await this.link(this.file.name);
        if (run !== this.run) return;
        this.expiresAt = expiresAt;
        this.video.src = url;
        if (at) this.video.currentTime = at;
        // A browser that forbids autoplay shows its button.
        if (!isPaused) this.video.play().catch(() => {});
    }

    /** The link may expire in the middle of a long film: a new one continues there. */
    async renew() {
        if (!this.file || !this.video.getAttribute("src")) return;
        // This clock may differ from the server's, so this is only a hint; a file that does not play over a new link is not requested again.
        const mayBeOver = Date.now() >= this.expiresAt || this.video.error?.code === MediaError.MEDIA_ERR_NETWORK;
        if (mayBeOver && this.renewals < RENEWALS) {
            this.renewals += 1;
            await this.open(this.run, this.video.currentTime, this.video.paused).catch((problem) => this.complain(problem.message));
            return;
        }
        const cannot = this.video.error?.code === MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED || this.video.error?.code === MediaError.MEDIA_ERR_DECODE;
        this.complain(cannot ? "This browser cannot play this file. Download it and open it with another player." : "The file cannot be read.");
    }

    complain(text) { element("recording-video-problem").textContent = text; }

    /** Keeps the audio at the video's position and rate, and paused when the video is. */
    async follow() {
        if (!this.file || !this.audioFiles.length) return;
        const { video, audio } = this;
        const file = this.audioFiles.find((one) => isWithin(this.placeIn(one), one));
        if (file !== this.heard) await this.hear(file);
        if (file !== this.heard || !file) return;
        [audio.muted, audio.playbackRate] = [!element("recording-audio").checked, video.playbackRate];
        if (Math.abs(audio.currentTime - this.placeIn(file)) > APART_SECONDS) audio.currentTime = this.placeIn(file);
        if (video.paused || video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA) audio.pause();
        else if (audio.paused) audio.play().catch(() => {});
    }

    /** Seconds into `file` at this moment of the video: by the publisher's clock if both files have it. */
    placeIn(file) {
        const apart = this.file.senderMicroseconds !== undefined && file.senderMicroseconds !== undefined
            ? (this.file.senderMicroseconds - file.senderMicroseconds) / 1e6 : (this.file.startMilliseconds - file.startMilliseconds) / 1000;
        return this.video.currentTime + apart;
    }

    async hear(file) {
        this.heard = file;
        this.audio.pause();
        if (!file) return;
        const { run } = this;
        const link = await this.link(file.name).catch(() => null);
        if (run !== this.run || file !== this.heard || !link) return;
        this.audio.src = link.url;
        // Over: the next look at the video finds none, and requests another.
        this.audio.onerror = () => { if (Date.now() >= link.expiresAt) this.heard = null; };
    }
}

const isWithin = (seconds, { durationMilliseconds }) => seconds >= 0 && seconds * 1000 < durationMilliseconds;
