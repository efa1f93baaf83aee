// The tiles of a room: one for each shown video, and one with an initial for a participant without video.

const grid = document.getElementById("grid");

export class Tile {
    constructor({ key, name, own = false, source = "camera" }) {
        this.element = document.createElement("div");
        this.element.className = `tile ${source}${own ? " own" : ""}`;
        this.element.dataset.key = key;
        this.initial = Object.assign(document.createElement("div"), { className: "initial", textContent: (name[0] ?? "?").toUpperCase() });
        const caption = Object.assign(document.createElement("div"), { className: "caption" });
        this.name = Object.assign(document.createElement("span"), { className: "name", textContent: name });
        this.figures = Object.assign(document.createElement("span"), { className: "figures" });
        caption.append(this.name, this.figures);
        this.element.append(this.initial, caption);
        grid.append(this.element);
        arrange();
    }

    /** Shows a video track; null takes the picture away. */
    show(track) {
        if (!track) {
            this.video?.remove();
            this.video = null;
            return;
        }
        if (!this.video) {
            this.video = Object.assign(document.createElement("video"), { autoplay: true, muted: true, playsInline: true });
            this.initial.after(this.video);
        }
        if (this.video.srcObject?.getVideoTracks()[0] !== track) this.video.srcObject = new MediaStream([track]);
    }

    setAudioMuted(muted) { this.name.classList.toggle("muted", muted); }

    setVideoMuted(muted) {
        this.element.classList.toggle("video-muted", muted);
        if (this.video) this.video.style.visibility = muted ? "hidden" : "";
    }

    setSpeaking(speaking) { this.element.classList.toggle("speaking", speaking); }

    setFigures(text) { this.figures.textContent = text; }

    remove() {
        this.element.remove();
        arrange();
    }
}

/** As many columns as give the tiles, at 16:9, the largest size. */
function arrange() {
    const count = grid.childElementCount;
    const { width, height } = grid.getBoundingClientRect();
    let best = 1;
    let bestArea = 0;
    for (let columns = 1; columns <= count; columns++) {
        const cellWidth = width / columns;
        const cellHeight = height / Math.ceil(count / columns);
        const shown = Math.min(cellWidth, (cellHeight * 16) / 9);
        if (shown > bestArea) {
            bestArea = shown;
            best = columns;
        }
    }
    grid.style.setProperty("--columns", best);
}

addEventListener("resize", arrange);
