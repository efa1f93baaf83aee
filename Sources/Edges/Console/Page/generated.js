// A picture and a tone made by the page itself, for machines without a camera and for tests: a disc that moves over a slow
// gradient, the name, the time, and a soft tone that comes and goes like speech.

import { hueOf } from "./grid.js";

/** A stream whose tracks end all their machinery when they are stopped. */
export function generatedStream({ name = "", width = 1280, height = 720, framesPerSecond = 30, audio = true }) {
    const tracks = [movingPicture(name, width, height, framesPerSecond)];
    if (audio) tracks.push(speechLikeTone(name));
    return new MediaStream(tracks);
}

function movingPicture(name, width, height, framesPerSecond) {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const pen = canvas.getContext("2d", { alpha: false });
    const hue = hueOf(name);
    let frame = 0;
    const draw = () => {
        const t = frame / framesPerSecond;
        const fill = pen.createLinearGradient(0, 0, width, height);
        fill.addColorStop(0, `hsl(${hue + 20 * Math.sin(t / 3)} 42% 30%)`);
        fill.addColorStop(1, `hsl(${hue + 50} 46% 15%)`);
        pen.fillStyle = fill;
        pen.fillRect(0, 0, width, height);
        pen.fillStyle = `hsl(${hue + 165} 58% 66%)`;
        pen.beginPath();
        pen.arc(width * (0.5 + 0.34 * Math.sin(t * 1.3)), height * (0.46 + 0.25 * Math.cos(t * 1.9)), height * 0.11, 0, 2 * Math.PI);
        pen.fill();
        pen.fillStyle = "#fffe";
        pen.textAlign = "center";
        pen.font = `650 ${Math.round(height / 8)}px system-ui, sans-serif`;
        pen.fillText(name, width / 2, height * 0.5, width * 0.9);
        pen.fillStyle = "#fffa";
        pen.font = `${Math.round(height / 19)}px ui-monospace, monospace`;
        pen.fillText(`${t.toFixed(1)} s`, width / 2, height * 0.61);
        frame += 1;
    };
    draw();
    const timer = setInterval(draw, 1000 / framesPerSecond);
    return onStop(canvas.captureStream(framesPerSecond).getVideoTracks()[0], () => clearInterval(timer));
}

function speechLikeTone(name) {
    const context = new AudioContext();
    const tone = new OscillatorNode(context, { frequency: 220 + (hueOf(name) % 8) * 40 });
    // "Sentences" of a few seconds and as long a silence, at a pace of one's own: people take turns.
    const pace = new OscillatorNode(context, { frequency: 0.1 + (hueOf(name) % 11) / 100 });
    const sentences = new WaveShaperNode(context, { curve: [0, 0, 0, 0.2, 0.2, 0.2] });
    const loudness = new GainNode(context, { gain: 0 });
    const out = new MediaStreamAudioDestinationNode(context);
    pace.connect(sentences).connect(loudness.gain);
    tone.connect(loudness).connect(out);
    tone.start();
    pace.start();
    // Without a click some browsers start no sound; the first one in the page will do.
    document.addEventListener("click", () => context.resume(), { once: true });
    return onStop(out.stream.getAudioTracks()[0], () => context.close());
}

function onStop(track, action) {
    const stop = track.stop.bind(track);
    track.stop = () => {
        if (track.readyState === "live") action();
        stop();
    };
    return track;
}
