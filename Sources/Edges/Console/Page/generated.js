// A picture and a tone made by the page itself, for machines without a camera and for tests: a moving disc on a slow
// gradient, the name, a clock that counts frames, and a soft tone that comes and goes like speech.

export function generatedStream({ name = "", width = 1280, height = 720, framesPerSecond = 30, audio = true, video = true }) {
    const stream = new MediaStream();
    const stops = [];
    if (video) {
        const picture = movingPicture(name, width, height, framesPerSecond);
        stream.addTrack(picture.track);
        stops.push(picture.stop);
    }
    if (audio) {
        const sound = speechLikeTone(name);
        stream.addTrack(sound.track);
        stops.push(sound.stop);
    }
    return { stream, stop: () => stops.forEach((stop) => stop()) };
}

function movingPicture(name, width, height, framesPerSecond) {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const pen = canvas.getContext("2d", { alpha: false });
    const hue = hashOf(name) % 360;
    let frame = 0;
    const draw = () => {
        const t = frame / framesPerSecond;
        const fill = pen.createLinearGradient(0, 0, width, height);
        fill.addColorStop(0, `hsl(${hue + 20 * Math.sin(t / 3)} 45% 26%)`);
        fill.addColorStop(1, `hsl(${hue + 60} 50% 14%)`);
        pen.fillStyle = fill;
        pen.fillRect(0, 0, width, height);
        pen.fillStyle = `hsl(${hue + 180} 70% 62%)`;
        pen.beginPath();
        pen.arc(width * (0.5 + 0.34 * Math.sin(t * 1.3)), height * (0.45 + 0.24 * Math.cos(t * 1.9)), height * 0.13, 0, 2 * Math.PI);
        pen.fill();
        pen.fillStyle = "#fffd";
        pen.font = `600 ${Math.round(height / 9)}px system-ui, sans-serif`;
        pen.textAlign = "center";
        pen.fillText(name, width / 2, height * 0.5);
        pen.font = `${Math.round(height / 18)}px ui-monospace, monospace`;
        pen.fillText(`${t.toFixed(1)} s`, width / 2, height * 0.62);
        frame += 1;
    };
    draw();
    const timer = setInterval(draw, 1000 / framesPerSecond);
    const track = canvas.captureStream(framesPerSecond).getVideoTracks()[0];
    return { track, stop: () => { clearInterval(timer); track.stop(); } };
}

function speechLikeTone(name) {
    const context = new AudioContext();
    const tone = new OscillatorNode(context, { frequency: 220 + (hashOf(name) % 8) * 40 });
    const loudness = new GainNode(context, { gain: 0.15 });
    // Slow swelling: about one "sentence" in four seconds.
    const swell = new OscillatorNode(context, { frequency: 0.25 });
    const depth = new GainNode(context, { gain: 0.12 });
    const out = new MediaStreamAudioDestinationNode(context);
    swell.connect(depth).connect(loudness.gain);
    tone.connect(loudness).connect(out);
    tone.start();
    swell.start();
    const track = out.stream.getAudioTracks()[0];
    return { track, stop: () => { track.stop(); context.close(); } };
}

function hashOf(text) {
    let h = 7;
    for (const c of text) h = (h * 31 + c.codePointAt(0)) >>> 0;
    return h;
}
