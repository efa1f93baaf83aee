"""WebM and Matroska: files of ffmpeg, GStreamer and a browser's MediaRecorder are played into a room, and a recording is copied to WebM."""
import asyncio
import base64
import json
import subprocess
import urllib.request

import pytest

from nightly_readers import watched
from support.chromium import chromium, open_room, stands_still
from support.waiting import PATIENCE_S, until_true
from test_jobs import FFPROBE, begin, ended
from test_playback import H264, change, films, make, show, start, video  # noqa: F401
from test_recording import finished, path_of


SIZE, RATE, SECONDS = "320x180", 24, 2
SOUND = ["-f", "lavfi", "-i", f"sine=frequency=440:sample_rate=48000:duration={SECONDS}"]
OPUS = ["-c:a", "libopus", "-b:a", "32k"]
#: By the file's name: how ffmpeg makes it. A keyframe each second; one as a live encoder writes it, without sizes and without an index.
ENCODERS = {
    "vp8.webm": ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
    "vp9.webm": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0", "-live", "1"],
    "av1.webm": ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8"],
    "h264.mkv": H264,
}
#: Makes a file of VP8 and Opus with GStreamer's muxer.
GSTREAMER = f"""
import sys, gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
width, height = "{SIZE}".split("x")
line = Gst.parse_launch(
    f"videotestsrc num-buffers={RATE * SECONDS} ! video/x-raw,width={{width}},height={{height}},framerate={RATE}/1 ! vp8enc deadline=1 keyframe-max-dist={RATE}"
    f" target-bitrate=100000 ! mux. audiotestsrc num-buffers={50 * SECONDS} samplesperbuffer=960 ! audio/x-raw,rate=48000,channels=2 ! opusenc bitrate=32000 ! mux."
    f" webmmux name=mux ! filesink location={{sys.argv[1]}}")
line.set_state(Gst.State.PLAYING)
message = line.get_bus().timed_pop_filtered(30 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
line.set_state(Gst.State.NULL)
sys.exit(0 if message and message.type == Gst.MessageType.EOS else f"no file: {{message and message.parse_error()}}")
"""
#: What a page records of a canvas and a tone in a second and a half, in base64. Chromium makes Opus packets of 60 ms, of which the first is too long for RTP.
MEDIA_RECORDER = """async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 180 }), brush = canvas.getContext("2d");
    const painting = setInterval(() => { brush.fillStyle = `hsl(${performance.now() / 5 % 360} 80% 50%)`; brush.fillRect(0, 0, 320, 180); }, 40);
    const audio = new AudioContext(), tone = audio.createOscillator(), end = audio.createMediaStreamDestination();
    tone.connect(end);
    tone.start();
    const recorder = new MediaRecorder(new MediaStream([...canvas.captureStream(25).getTracks(), ...end.stream.getTracks()]),
        { mimeType: "video/webm;codecs=vp8,opus", videoBitsPerSecond: 100_000 });
    const parts = [], stopped = new Promise((done) => { recorder.onstop = done; });
    recorder.ondataavailable = ({ data }) => parts.push(data);
    recorder.start(500);
    setTimeout(() => recorder.stop(), 1500);
    await stopped;
    clearInterval(painting);
    await audio.close();
    return btoa(Array.from(new Uint8Array(await new Blob(parts).arrayBuffer()), (byte) => String.fromCharCode(byte)).join(""));
}"""
#: [codec, frames that arrived, frames decoded] of each video, and the packets of all audio.
RECEIVED = """(async () => {
    const reports = [...(await martlet.room.sub.getStats()).values()], all = reports.filter((one) => one.type === "inbound-rtp");
    const codec = (one) => reports.find((report) => report.id === one.codecId)?.mimeType.split("/")[1].toLowerCase() ?? "";
    return [all.filter((one) => one.kind === "video").map((one) => [codec(one), one.framesReceived ?? 0, one.framesDecoded ?? 0]),
        all.filter((one) => one.kind === "audio").reduce((sum, one) => sum + one.packetsReceived, 0)];
})()"""


async def encode(folder, *names):
    """Makes these films, all at once."""
    await asyncio.gather(*(asyncio.to_thread(
        make, folder / name, *video(RATE, SIZE, SECONDS), *SOUND, *ENCODERS[name], "-b:v", "100k", "-g", str(RATE), "-pix_fmt", "yuv420p", *OPUS)
        for name in names))


async def multiplex(path):
    """GStreamer's file."""
    await asyncio.to_thread(subprocess.run, ["/usr/bin/python3", "-c", GSTREAMER, str(path)], check=True, timeout=40)


@pytest.mark.judging
def test_webm_and_matroska_of_four_writers_are_played_frame_for_frame_and_sought_in(films):  # noqa: F811
    """VP8, VP9, AV1 and H.264 with Opus, all at once in one room: as many frames decoded as sent, from a finished file as from one without sizes and index."""
    server = films

    async def play():
        async with chromium() as browser:
            bob = await open_room(browser, server, "cinema", "bob", send="nothing")
            recorded, *_ = await asyncio.gather(bob.evaluate(MEDIA_RECORDER), encode(server.films, *ENCODERS), multiplex(server.films / "gstreamer.webm"))
            (server.films / "browser.webm").write_bytes(base64.b64decode(recorded))
            names = [*ENCODERS, "gstreamer.webm", "browser.webm"]
            playbacks = {name: start(server, "cinema", file=name, identity=name, paused=True, loop=True) for name in names}
            for name, playback in playbacks.items():
                assert sorted(track["kind"] for track in playback["tracks"]) == ["audio", "video"], playback
                assert name == "browser.webm" or abs(playback["durationMilliseconds"] - 1000 * SECONDS) < 120, playback

            def are_awaited():
                all_of_them = server.api("GET", "/v1/rooms/cinema/subscriptions")[1]["subscriptions"]
                return sum(one["state"] == "active" for one in all_of_them) == 2 * len(names)

            await until_true(are_awaited, PATIENCE_S, "the page answers for all tracks of all playbacks")
            await bob.wait_for_timeout(500)
            for playback in playbacks.values():
                change(server, playback, paused=False)

            def have_begun_again():
                tracks = [track for playback in playbacks.values() for track in show(server, playback)["tracks"]]
                return all(track["kind"] == "audio" or track["samplesSent"] > RATE * SECONDS for track in tracks)

            await until_true(have_begun_again, PATIENCE_S, "each film begins again at its end")
            for playback in playbacks.values():
                change(server, playback, paused=True)
            videos, audio = await stands_still(lambda: bob.evaluate(RECEIVED))
            sources = {name: show(server, playback)["tracks"] for name, playback in playbacks.items()}
            broken = {name: (track["codec"], track["samplesBroken"]) for name, found in sources.items() for track in found if track["samplesBroken"]}
            tracks = [track for found in sources.values() for track in found]
            sent = sorted((track["codec"], track["samplesSent"]) for track in tracks if track["kind"] == "video")
            (recorder,) = [track for track in sources["browser.webm"] if track["kind"] == "audio"]
            print(f"figures: sent {sent}; arrived and decoded {sorted(videos)}; audio {audio}, of {recorder['samplesSent']} of the browser's {recorder['packetsSent']}")
            assert not broken
            assert sorted((codec, arrived) for codec, arrived, _ in videos) == sent
            assert all(decoded == arrived for _, arrived, decoded in videos)
            assert audio == sum(track["packetsSent"] for track in tracks if track["kind"] == "audio")
            # To the keyframe before, index or not.
            for name in ENCODERS:
                change(server, playbacks[name], positionMilliseconds=1900)
                await until_true(lambda: abs(show(server, playbacks[name])["positionMilliseconds"] - 1000) < 60, PATIENCE_S, f"{name} is sought in")
            assert not bob.problems

    asyncio.run(play())


def test_a_webm_file_of_aac_or_with_frames_out_of_order_is_refused_with_its_reason(films):  # noqa: F811
    server = films
    make(server.films / "aac.mkv", *video(15, SIZE, 1), *SOUND, *H264, "-c:a", "aac", "-shortest")
    make(server.films / "reordered.mkv", *video(15, SIZE, 1), "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p")
    (server.films / "short.webm").write_bytes(bytes.fromhex("1a45dfa3"))
    assert server.api("POST", "/v1/rooms", {"name": "cinema"})[0] == 201
    for name, word in (("aac.mkv", "A_AAC"), ("reordered.mkv", "reordered_frames"), ("short.webm", "not_a_movie")):
        status, found = server.api("POST", "/v1/rooms/cinema/playbacks", {"file": name})
        assert (status, found["code"]) == (409, "not_playable") and word in found["detail"], found


def packets(path):
    """By kind of stream: its codec, and the bytes of its packets, in order."""
    done = subprocess.run([FFPROBE, "-v", "error", "-show_entries", "stream=index,codec_type,codec_name:packet=stream_index,size,pts_time:format=format_name",
                           "-of", "json", str(path)], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return told["format"]["format_name"], {
        one["codec_type"]: (one["codec_name"], [(int(packet["size"]), float(packet["pts_time"])) for packet in told["packets"] if packet["stream_index"] == one["index"]])
        for one in told["streams"]}


def test_a_recording_is_copied_to_webm_packet_for_packet_and_h264_is_refused(films):  # noqa: F811
    """What was recorded as MP4 of VP8 and Opus is WebM with the same packets at the same times, for ffprobe and for Chromium."""
    server = films
    server.recordings = server.films.parent / "recordings"

    async def copy():
        await encode(server.films, "vp8.webm", "h264.mkv")
        recordings = []
        for name in ("vp8.webm", "h264.mkv"):
            assert server.api("POST", "/v1/rooms", {"name": name})[0] == 201
            playback = start(server, name, file=name, paused=True)
            status, begun = server.api("POST", f"/v1/rooms/{name}/recordings", {"files": "participant"})
            assert status == 201, begun
            change(server, playback, paused=False)
            recordings.append(begun["sid"])
        # Chromium starts while the films are played.
        async with chromium() as browser:
            for name, sid in zip(("vp8.webm", "h264.mkv"), recordings):
                await until_true(lambda: not server.api("GET", f"/v1/rooms/{name}/playbacks")[1]["playbacks"], PATIENCE_S, "the film ends")
                assert server.api("DELETE", f"/v1/recordings/{sid}")[0] == 204
            vp8, h264 = [await finished(server, sid) for sid in recordings]

            def joined(found):
                return [one for one in server.api("GET", f"/v1/recordings/{found['sid']}")[1]["joined"] if one["state"] == "ready"]

            await until_true(lambda: joined(vp8) and joined(h264), PATIENCE_S, "the tracks are joined")
            (source,), (other,) = joined(vp8), joined(h264)
            status, problem = server.api("POST", f"/v1/recordings/{h264['sid']}/jobs", {"kind": "copy", "file": other["name"]})
            assert (status, problem["code"]) == (409, "not_playable") and "codec_not_in_container" in problem["detail"], problem
            job = await asyncio.to_thread(lambda: ended(server, begin(server, vp8, kind="copy", file=source["name"], container="webm")))
            assert job["state"] == "finished" and job["file"]["name"] == f"{job['sid']}.webm" and "codec" not in job, job
            assert abs(job["file"]["durationMilliseconds"] - source["durationMilliseconds"]) < 60, (job, source)
            was, made = (packets(path_of(server, vp8, file)) for file in (source, job["file"]))
            print(f"figures: {source['bytes']} bytes of MP4, {job['file']['bytes']} of WebM, made in {job['endedAt'] - job['startedAt']} ms")
            assert made[0] == "matroska,webm" and {kind: codec for kind, (codec, _) in made[1].items()} == {"video": "vp8", "audio": "opus"}
            for kind in ("video", "audio"):
                (_, before), (_, after) = was[1][kind], made[1][kind]
                assert [size for size, _ in after] == [size for size, _ in before]
                # Rounded to milliseconds, and later by Opus's delay.
                assert max(abs(b - a) for (_, a), (_, b) in zip(before, after)) < 0.01
            # Its index stands before its media: a player seeks at once.
            data = path_of(server, vp8, job["file"]).read_bytes()
            assert 0 < data.find(bytes.fromhex("1c53bb6b"), 60) < data.find(bytes.fromhex("1f43b675"), 60)
            _, link = server.api("POST", f"/v1/recordings/{vp8['sid']}/links", {"file": job["file"]["name"]})
            with urllib.request.urlopen(f"{server.url}{link['url']}", timeout=10) as answer:
                assert answer.headers["Content-Type"] == "video/webm" and answer.read() == data
            # And it is played into a room like every other file.
            assert server.api("POST", "/v1/rooms", {"name": "again"})[0] == 201
            playback = start(server, "again", recording=vp8["sid"], file=job["file"]["name"], paused=True)
            assert {track["codec"] for track in playback["tracks"]} == {"vp8", "opus"}, playback
            assert abs(playback["durationMilliseconds"] - source["durationMilliseconds"]) < 60, (playback, source)
            frames, width, seconds = await watched(browser, server, vp8, job["file"])
            print(f"figures: Chromium shows {frames} of {len(made[1]['video'][1])} frames, {width} wide, {seconds} s")
            assert width == 320 and frames >= 0.9 * len(made[1]["video"][1]) and abs(seconds - source["durationMilliseconds"] / 1000) < 0.1

    asyncio.run(copy())
