"""A call of browsers for CALL_MINUTES (10), recorded: simulcast, mutes, rotations and a lossy link; what was recorded is decoded from its first frame to its last. Run by name and at night.

    CALL_MINUTES=2 TEST_SECONDS=600 .venv/bin/python -m pytest Tests/InteropTests/nightly_ten_minutes.py -q -s
"""
import asyncio
import os
import re
import statistics
import subprocess

import numpy
import pytest
from support.chromium import EXECUTABLE, chromium, open_room, until, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from test_extensions import TURNED_CAMERA
from test_recording import ffmpeg, finished, path_of

FFMPEG = "/usr/bin/ffmpeg"
MINUTES = int(os.environ.get("CALL_MINUTES", 10))
#: What happens in each minute, at its seconds. The first and the last ten seconds of each are quiet: there audio and video are compared.
MICROPHONE_OFF, CAMERA_OFF, TURN, LOSSY = (14, 18), (20, 24), 27, (30, 46)
LOSS_PERCENT = 3

#: A camera and a microphone that clap: every two seconds the picture is white and a tone sounds for a fifth of a second, both by the clock of the audio.
CLAPPER = """(async () => {
    const context = new AudioContext(), tone = new OscillatorNode(context, { frequency: 1000 }), gain = new GainNode(context, { gain: 0 });
    const target = new MediaStreamAudioDestinationNode(context);
    tone.connect(gain).connect(target);
    tone.start();
    const began = context.currentTime + 1;
    for (let clap = 0; clap < SECONDS / 2; clap++) {
        gain.gain.setValueAtTime(0.5, began + 2 * clap);
        gain.gain.setValueAtTime(0, began + 2 * clap + 0.2);
    }
    const generator = new MediaStreamTrackGenerator({ kind: "video" });
    const writer = generator.writable.getWriter(), canvas = new OffscreenCanvas(1280, 720), pen = canvas.getContext("2d");
    let count = 0;
    setInterval(() => {
        const phase = context.currentTime - began;
        pen.fillStyle = phase > 0 && phase % 2 < 0.2 ? "#ffffff" : "#203040";
        pen.fillRect(0, 0, 1280, 720);
        pen.fillStyle = "#808080";
        pen.fillRect(10 * (count++ % 120), 340, 80, 80);
        writer.write(new VideoFrame(canvas, { timestamp: performance.now() * 1000 }));
    }, 33);
    const [microphone] = target.stream.getAudioTracks();
    window.senders = { video: generator, audio: microphone };
    await martlet.room.publishing.add(
        [{ track: microphone, source: "microphone" }, { track: generator, source: "camera" }], new MediaStream([microphone, generator]));
})()"""
MUTE = "([kind, muted]) => { senders[kind].enabled = !muted; return martlet.room.publishing.announceMutes(); }"


@pytest.fixture
def call(tmp_path):
    """A server with recordings, one client whose link may lose packets and one whose link does not."""
    with Lab("mten", 2, "both", "delay", 20) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server, extra=f"recording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n").start()
        server.recordings = tmp_path / "recordings"
        yield lab, server
        log = server.log()
        assert server.stop() == 0 and " error " not in log.lower(), log


async def minute(number, lab, ada, carol):
    """What happens in one minute."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def at(second):
        await asyncio.sleep(max(0, began + second - loop.time()))

    for kind, (first, last) in (("audio", MICROPHONE_OFF), ("video", CAMERA_OFF)):
        await at(first)
        await ada.evaluate(MUTE, [kind, True])
        await at(last)
        await ada.evaluate(MUTE, [kind, False])
    await at(TURN)
    await carol.evaluate(f"turn({90 * (number + 1) % 360})")
    await at(LOSSY[0])
    lab.set(1, f"both loss {LOSS_PERCENT}")
    await at(LOSSY[1])
    lab.set(1, "both loss 0")
    await at(60)


def flashes(path):
    """When the picture becomes white, in seconds of the file."""
    done = subprocess.run([FFMPEG, "-v", "error", "-i", str(path), "-vf", "scale=16:16,signalstats,metadata=print:key=lavfi.signalstats.YAVG:file=-",
                           "-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 and not done.stderr, done.stderr
    times = [float(one) for one in re.findall(r"pts_time:(\S+)", done.stdout)]
    bright = [float(one) > 150 for one in re.findall(r"YAVG=(\S+)", done.stdout)]
    assert len(times) == len(bright)
    return [time for time, before, now in zip(times[1:], bright, bright[1:]) if now and not before]


def beeps(path):
    """When the tone begins to sound, in seconds of the file."""
    done = subprocess.run([FFMPEG, "-v", "error", "-i", str(path), "-af", "aresample=8000:async=1:first_pts=0", "-ac", "1", "-f", "s16le", "-"],
                          capture_output=True, timeout=900)
    assert done.returncode == 0 and not done.stderr, done.stderr
    samples = numpy.frombuffer(done.stdout, dtype=numpy.int16).astype(float) / 32768
    steps = numpy.abs(samples[:len(samples) // 40 * 40]).reshape(-1, 40).max(axis=1)
    loud = steps > 0.1
    # 5 ms each; a tone begins after half a second without one.
    return [0.005 * step for step in range(100, len(loud)) if loud[step] and not loud[step - 100:step].any()]


def on_senders_clock(server, found, track, moments):
    """Moments of each of a track's files, by its publisher's clock."""
    return [file["senderMicroseconds"] / 1e6 + moment for file in track["files"] for moment in moments(path_of(server, found, file))]


def offsets(video, audio):
    """By how much each flash is later than its beep, in milliseconds, with the moment of the beep."""
    pairs = [(beep, min(video, key=lambda flash: abs(flash - beep)) - beep) for beep in audio]
    return [(beep, 1000 * apart) for beep, apart in pairs if abs(apart) < 0.5]


def test_a_call_of_many_minutes_is_recorded_from_start_to_end(call):
    lab, server = call

    async def meet():
        async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as far, chromium(executable=lab.wrapper(2, EXECUTABLE)) as near:
            ada = await open_room(far, server, "talk", "ada", send="nothing")
            carol = await open_room(near, server, "talk", "carol", send="nothing", simulcast=0)
            bob = await open_room(near, server, "talk", "bob", send="nothing")
            await ada.evaluate(CLAPPER.replace("SECONDS", str(60 * MINUTES + 120)))
            await carol.evaluate(TURNED_CAMERA)
            await wait_for_video(bob, count=2)
            status, begun = server.api("POST", "/v1/rooms/talk/recordings", {})
            assert status == 201, begun
            for number in range(MINUTES):
                await minute(number, lab, ada, carol)
            assert server.api("DELETE", f"/v1/recordings/{begun['sid']}")[0] == 204
            found = await finished(server, begun["sid"], 120)
            for page in (ada, bob, carol):
                assert not page.problems, page.problems
            await watched(near, server, found)
            return found

    found = asyncio.run(meet())
    tracks = {(track["identity"], track["kind"]): track for track in found["tracks"]}
    assert set(tracks) == {("ada", "audio"), ("ada", "video"), ("carol", "video")}
    for (identity, kind), track in tracks.items():
        assert "fault" not in track, track
        for file in track["files"]:
            frames, seconds, errors = ffmpeg(path_of(server, found, file), timeout_s=900)
            assert not errors, errors
            assert kind == "audio" or frames == file["samples"]
            assert abs(seconds - file["durationMilliseconds"] / 1000) < 0.1, file
        length = (track["files"][-1]["senderMicroseconds"] - track["files"][0]["senderMicroseconds"]) / 1e6 + track["files"][-1]["durationMilliseconds"] / 1000
        missing = sum(gap["milliseconds"] for gap in track["gaps"])
        print(f"figures: {identity} {kind}: {len(track['files'])} files, {length:.1f} s, {track['framesWritten']} frames, {track['framesLost']} lost, "
              f"{track['gapCount']} gaps of {missing} ms together, {sum(file['bytes'] for file in track['files'])} bytes")
        assert abs(length - 60 * MINUTES) < 2, length
        assert missing < 0.02 * 60_000 * MINUTES
    # A file has one rotation; in each minute it is another one.
    turns = [file["rotation"] for file in tracks["carol", "video"]["files"]]
    print(f"figures: rotations {turns}")
    assert turns == [90 * number % 360 for number in range(MINUTES + 1)]
    apart = offsets(on_senders_clock(server, found, tracks["ada", "video"], flashes), on_senders_clock(server, found, tracks["ada", "audio"], beeps))
    start, end = apart[0][0], apart[-1][0]
    # Of a minute each: a picture comes up to 66 ms after its clap, and five claps in a row differ by as much (seen: from -27 to 45 ms).
    first = [one for moment, one in apart if moment < start + 60]
    last = [one for moment, one in apart if moment > end - 60]
    print(f"figures: {len(apart)} claps; video after audio in the first minute {statistics.mean(first):.0f} ms {[round(one) for one in first]}, "
          f"in the last {statistics.mean(last):.0f} ms {[round(one) for one in last]}, over {end - start:.0f} s")
    # The page makes its tone a moment ahead of what it shows.
    assert len(first) >= 15 and len(last) >= 15 and abs(statistics.mean(first)) < 120
    assert abs(statistics.mean(last) - statistics.mean(first)) < 40


async def watched(browser, server, found):
    """Chromium's player shows each video from its first frame to its last, eight times as fast."""
    page = await browser.new_page(bypass_csp=True)
    await page.goto(f"{server.url}/reference")
    for track in found["tracks"]:
        for file in track["files"] if track["kind"] == "video" else []:
            status, link = server.api("POST", f"/v1/recordings/{found['sid']}/links", {"file": file["name"]})
            assert status == 201, link
            await page.evaluate("""(url) => {
                document.getElementById("watched")?.remove();
                const video = document.createElement("video");
                [video.id, video.muted, video.src, video.playbackRate] = ["watched", true, url, 8];
                document.body.prepend(video);
                return video.play();
            }""", link["url"])
            await until(page, "document.getElementById('watched').ended || document.getElementById('watched').error !== null", file["durationMilliseconds"] / 4000 + 30)
            assert await page.evaluate("document.getElementById('watched').error === null"), file
            assert abs(await page.evaluate("document.getElementById('watched').currentTime") - file["durationMilliseconds"] / 1000) < 0.1
