"""Recordings of real browsers' calls, through the server, read by ffmpeg and by GStreamer."""
import asyncio
import json
import pathlib
import random
import re
import subprocess
import tempfile
import time
import urllib.request

import imageio_ffmpeg
import pytest

from conftest import running
from support.aiortc_client import Client, MovingPicture, Tone
from support.chromium import chromium, open_room, until, wait_for_video
from support.server import BUILD
from support.tokens import admin_token, token
from support.waiting import PATIENCE_S, until_true
from test_events import Stream

BENCH = BUILD / "bench"
GST_READ = pathlib.Path(__file__).parent / "support/gst_read.py"


@pytest.fixture
def recording_server(tmp_path):
    with running(extra=f"recording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n") as server:
        server.recordings = tmp_path / "recordings"
        yield server


def ffmpeg(path, timeout_s=60):
    """(frames or audio packets decoded, seconds, errors) of a file; ffmpeg stops at nothing, but reports."""
    done = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-v", "info", "-i", str(path),
                           # In the file's own time base: in one of whole frames two that are closer than that would have one time.
                           "-fps_mode", "passthrough", "-enc_time_base:v", "demux", "-f", "null", "-"],
                          capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr
    frames = re.findall(r"frame=\s*(\d+)", done.stderr)
    seconds = [float(h) * 3600 + float(m) * 60 + float(s) for h, m, s in re.findall(r"time=(\d+):(\d+):([\d.]+)", done.stderr)]
    errors = [line for line in done.stderr.splitlines() if re.search(r"error|corrupt|invalid|non.?monoton", line, re.I)]
    return int(frames[-1]) if frames else 0, seconds[-1], errors


def gstreamer(path, *options):
    done = subprocess.run(["/usr/bin/python3", str(GST_READ), str(path), *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def recording(server, sid):
    status, found = server.api("GET", f"/v1/recordings/{sid}")
    assert status == 200, found
    return found


def arrived(server, room, identity):
    """Packets that the server has received from somebody, by kind."""
    tracks = server.api("GET", f"/v1/rooms/{room}/participants/{identity}/stats")[1]["tracks"]
    return {track["kind"]: sum(layer["packetsReceived"] for layer in track["layers"]) for track in tracks}


async def finished(server, sid, timeout_s=PATIENCE_S):
    """The recording once it has ended and the indexes of its files lie in front."""
    deadline = time.monotonic() + timeout_s
    while (found := recording(server, sid))["state"] == "recording" or any(
            file.get("index") == "pending" for track in found["tracks"] for file in track["files"]):
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.2)
    return found


def boxes(path):
    """The types of a file's outermost boxes, in order."""
    data, place, found = path.read_bytes(), 0, []
    while place < len(data):
        size, kind = int.from_bytes(data[place:place + 4]), data[place + 4:place + 8].decode()
        found.append(kind)
        place += size if size != 1 else int.from_bytes(data[place + 8:place + 16])
    return found


def part(server, found, name, byte_range):
    """(status, headers, bytes) of a part of a recording's file."""
    request = urllib.request.Request(f"{server.url}/v1/recordings/{found['sid']}/file?name={name}",
                                     headers={"Authorization": f"Bearer {admin_token()}", "Range": byte_range})
    with urllib.request.urlopen(request) as reply:
        return reply.status, reply.headers, reply.read()


async def plays_before_it_is_whole(browser, server, found, file, whole=False):
    """Chromium shows the first frame of a file of which it was given the first half (or all, where it is `whole`), and then plays to the end."""
    page = await browser.new_page(bypass_csp=True)
    await page.goto(f"{server.url}/reference")
    size, asked = file["bytes"], []
    shown = asyncio.Event()
    if whole:
        shown.set()

    async def give(route):
        first = int(re.match(r"bytes=(\d+)-", route.request.headers["range"])[1])
        asked.append(first)
        if first > 0:
            await shown.wait()
        last = size // 2 - 1 if not shown.is_set() else size - 1
        status, headers, data = await asyncio.to_thread(part, server, found, file["name"], f"bytes={first}-{last}")
        assert status == 206
        await route.fulfill(status=206, body=data, headers={
            name: headers[name] for name in ("Content-Type", "Accept-Ranges", "Content-Range", "ETag")})

    await page.route("**/a.mp4", give)
    await page.evaluate("""() => {
        const video = document.createElement("video");
        [video.id, video.muted, video.playbackRate, video.src] = ["recorded", true, 4, "/a.mp4"];
        document.body.prepend(video);
        video.play();
    }""")
    await until(page, "document.getElementById('recorded').readyState >= 2")
    assert whole or asked[0] == 0 and all(first <= size // 2 for first in asked), asked
    shown.set()
    await until(page, "document.getElementById('recorded').ended")
    assert await page.evaluate("document.getElementById('recorded').getVideoPlaybackQuality().totalVideoFrames") > 0
    print(f"figures: the first frame came with {size // 2} of {size} bytes; asked for from {asked}")


def path_of(server, found, file):
    return server.recordings / found["roomSid"] / found["sid"] / file["name"]


@pytest.mark.judging
@pytest.mark.parametrize("codec", ["VP8", pytest.param("H264", marks=pytest.mark.at_night)])
def test_E1_E2_a_call_is_recorded_as_it_was_sent_and_read_by_ffmpeg_and_gstreamer(recording_server, codec):
    """Simulcast, one viewer, a recording of everything; members are notified; every stored frame decodes in both readers, and audio and video are aligned."""
    server = recording_server

    async def call():
        async with chromium() as browser:
            ada = await open_room(browser, server, "lecture", "ada", codec=codec)
            bob = await open_room(browser, server, "lecture", "bob", send="nothing")
            await wait_for_video(bob)
            status, begun = server.api("POST", "/v1/rooms/lecture/recordings", {})
            assert status == 201 and begun["state"] == "recording", begun
            await until(bob, "document.getElementById('recording').textContent === 'Recording'")
            assert server.api("POST", "/v1/rooms/lecture/recordings", {})[0] == 409
            await asyncio.sleep(8)
            # Where the browser has just made no frames for a while, the last one is old: the recording ends with a fresh one, beside audio that always flows.
            video = arrived(server, "lecture", "ada")["video"]
            await until_true(lambda: arrived(server, "lecture", "ada")["video"] > video, PATIENCE_S, "video goes on")
            assert server.api("DELETE", f"/v1/recordings/{begun['sid']}")[0] == 204
            await until(bob, "document.getElementById('recording').textContent === ''")
            assert not ada.problems and not bob.problems
            found = await finished(server, begun["sid"])
            # Of H.264 there are several; half of a short one is not one frame.
            video = max((file for track in found["tracks"] if track["kind"] == "video" for file in track["files"]), key=lambda file: file["bytes"])
            await plays_before_it_is_whole(browser, server, found, video)
            return found

    found = asyncio.run(call())
    assert found["state"] == "ready" and found["ended"] == "stopped"
    kinds = {track["kind"]: track for track in found["tracks"]}
    assert set(kinds) == {"audio", "video"}
    for kind, track in kinds.items():
        assert "fault" not in track and track["gapCount"] == 0, track
        for file in track["files"]:
            path = path_of(server, found, file)
            assert file["index"] == "front" and boxes(path) == ["ftyp", "moov", "mdat"] and path.stat().st_size == file["bytes"]
            frames, seconds, errors = ffmpeg(path)
            read = gstreamer(path)
            assert not errors, errors
            print(f"figures: {codec} {kind} {file['samples']} samples, ffmpeg {frames} frames {seconds} s, GStreamer {read}")
            if kind == "video":
                print(f"figures: {codec}: decodes from each of {decodes_from_each_sync_point(path)} sync points")
                assert file["codec"] == codec.lower() and frames == file["samples"] == read["buffers"]
            assert abs(seconds - file["durationMilliseconds"] / 1000) < 0.1
        assert sum(file["durationMilliseconds"] for file in track["files"]) > 6_000
    # By the publisher's clock audio and video end together, when the recording does. They need not begin together: a video begins with its last keyframe,
    # which may be some hundred milliseconds old.
    audio, video = kinds["audio"]["files"], kinds["video"]["files"]
    begin = (video[0]["senderMicroseconds"] - audio[0]["senderMicroseconds"]) / 1000
    apart = begin + sum(file["durationMilliseconds"] for file in video) - sum(file["durationMilliseconds"] for file in audio)
    print(f"figures: by the sender's clock the video begins {begin} ms and ends {apart:.0f} ms after the audio")
    # The last frame may be as old as the time between two, which on a busy machine, whose encoder leaves frames out, is more than 33 ms.
    interval = sum(file["durationMilliseconds"] for file in video) / sum(file["samples"] for file in video)
    assert abs(apart) < 33 + 2 * max(interval, 33), interval
    # Download, a part of it, and what is not there.
    name = video[0]["name"]
    status, headers, data = part(server, found, name, "bytes=4-7")
    assert status == 206 and data == b"ftyp" and headers["ETag"]
    for other in ("..%2f..%2fmartlet.yaml", "recording.json", "%2e%2e"):
        assert server.request("GET", f"/v1/recordings/{found['sid']}/file?name={other}", None, {"Authorization": f"Bearer {admin_token()}"})[0] == 404
    assert server.request("GET", f"/v1/recordings/{found['sid']}", None, {"Authorization": f"Bearer {token('bob', 'lecture')}"})[0] == 403
    assert server.api("DELETE", f"/v1/recordings/{found['sid']}")[0] == 204
    assert not list(server.recordings.rglob("*.mp4"))


def sync_points(path):
    """Seconds at which a decoder may start, by the first video's index: the time of each entry of stss."""
    data = path.read_bytes()

    def boxes_in(start, end):
        while start < end:
            size = int.from_bytes(data[start:start + 4])
            size = size if size != 1 else int.from_bytes(data[start + 8:start + 16])
            yield data[start + 4:start + 8], start + 8, start + size
            start += size

    def inner(box, *kinds):
        for kind in kinds:
            box = next((found[1:] for found in boxes_in(*box) if found[0] == kind), None)
            if not box:
                return None
        return box

    def numbers(box, each):
        count = int.from_bytes(data[box[0] + 4:box[0] + 8])
        return [[int.from_bytes(data[place + 4 * one:place + 4 * one + 4]) for one in range(each)]
                for place in range(box[0] + 8, box[0] + 8 + 4 * each * count, 4 * each)]

    movie = inner((0, len(data)), b"moov")
    for kind, *track in boxes_in(*movie):
        tables = kind == b"trak" and inner(track, b"mdia", b"minf", b"stbl")
        if not tables or not inner(track, b"mdia", b"minf", b"vmhd"):
            continue
        header = inner(track, b"mdia", b"mdhd")
        rate = int.from_bytes(data[header[0] + 20:header[0] + 24])
        times, now = [], 0
        for count, duration in numbers(inner(tables, b"stts"), 2):
            for _ in range(count):
                times.append(now / rate)
                now += duration
        syncs = inner(tables, b"stss")
        edits = inner(track, b"edts", b"elst")
        movie_header = inner(movie, b"mvhd")
        delay = int.from_bytes(data[edits[0] + 8:edits[0] + 16]) / int.from_bytes(data[movie_header[0] + 20:movie_header[0] + 24]) if edits else 0
        return [times[sample - 1] + delay for (sample,) in numbers(syncs, 1)] if syncs else [time + delay for time in times]
    raise AssertionError(f"{path} has no video")


def decodes_from_each_sync_point(path):
    """How many there are: a real decoder that starts there shows that frame first, without an error."""
    points = sync_points(path)
    for point in points:
        done = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-v", "error", "-noaccurate_seek", "-ss", f"{point + 0.001:.6f}", "-copyts",
                               "-i", str(path), "-map", "0:v:0", "-frames:v", "2", "-enc_time_base:v", "demux", "-fps_mode", "passthrough", "-f", "framecrc", "-"],
                              capture_output=True, text=True, timeout=60)
        unit = [int(a) / int(b) for a, b in re.findall(r"#tb 0: (\d+)/(\d+)", done.stdout)][0]
        first = next(int(line.split(",")[2]) * unit for line in done.stdout.splitlines() if not line.startswith("#"))
        assert done.returncode == 0 and not done.stderr and abs(first - point) < 0.002, (point, first, done.stderr)
    return len(points)


def movie_times(path):
    """Of each track in a file: (kind, [seconds at which its packets are shown]), as ffmpeg reads it."""
    done = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-v", "error", "-i", str(path), "-map", "0", "-c", "copy", "-copyts",
                           "-f", "framecrc", "-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    units = {int(track): int(a) / int(b) for track, a, b in re.findall(r"#tb (\d+): (\d+)/(\d+)", done.stdout)}
    kinds = dict(re.findall(r"#media_type (\d+): (\w+)", done.stdout))
    lines = [line.split(",") for line in done.stdout.splitlines() if not line.startswith("#")]
    return [(kinds[str(track)], [int(line[2]) * unit for line in lines if int(line[0]) == track]) for track, unit in sorted(units.items())]


def packets(path):
    """(video packets, seconds) of a file, read but not decoded: the bench's frames are no pictures."""
    done = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-i", str(path), "-c", "copy", "-f", "null", "-"],
                          capture_output=True, text=True, timeout=60)
    frames = re.findall(r"frame=\s*(\d+)", done.stderr)
    return (int(frames[-1]) if frames else 0), done.stderr


@pytest.fixture
def memory_disk():
    """A folder in memory: after a kill the kernel still writes to the disk what a process had written, so the disk is not what is tested, and twenty
    writers at a time may wait for it longer than they live."""
    with tempfile.TemporaryDirectory(prefix="martlet-", dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


@pytest.mark.judging  # Twenty writers share the processors; with browsers beside them one lacked 2.3 s.
def test_E16_a_hundred_writers_killed_at_random_leave_files_that_lack_at_most_two_seconds(memory_disk):
    """Twenty processes at a time, each killed 1.5 to 3 s after its start; every file is read as it was left."""
    random.seed(16)
    worst = 0
    for turn in range(5):
        writers = []
        for number in range(20):
            folder = memory_disk / f"{turn}-{number}"
            process = subprocess.Popen([BENCH, "record", str(folder), "1"], stdout=subprocess.PIPE)
            process.stdout.readline()
            writers.append((folder, process, time.monotonic(), random.uniform(1.5, 3)))
        lived, looked, calm = {}, time.monotonic(), 0
        while len(lived) < len(writers):
            # Where this process got no processor, the writers got none: they are given time to go on.
            now = time.monotonic()
            calm, looked = now + 0.5 if now - looked > 0.1 else calm, now
            for folder, process, started, life in writers:
                if folder not in lived and now >= calm and time.monotonic() - started >= life:
                    process.kill()
                    lived[folder] = time.monotonic() - started
            time.sleep(0.005)
        for folder, process, _, _ in writers:
            process.wait()
            (path,) = folder.rglob("*.mp4")
            count, output = packets(path)
            worst = max(worst, lived[folder] - count / 30)
            assert count and lived[folder] - count / 30 <= 2, output
    print(f"figures: at most {worst:.2f} s missing after 100 kills")


def test_E16_a_killed_server_leaves_files_that_play_and_finishes_them_at_its_next_start(tmp_path):
    """kill -9 in the middle of a call: both readers play what was on the disk before anybody repairs it, at most 2 s are missing."""
    with running(extra=f"recording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n") as server:
        server.recordings = tmp_path / "recordings"

        async def call():
            async with chromium() as browser:
                await open_room(browser, server, "lecture", "ada")
                viewer = await open_room(browser, server, "lecture", "bob", send="nothing")
                await wait_for_video(viewer)
                _, begun = server.api("POST", "/v1/rooms/lecture/recordings", {})
                # A file begins with its first keyframe, which a busy browser sends late; what is judged is what is missing at the end.
                await until_true(lambda: sum(bool(track["files"]) for track in recording(server, begun["sid"])["tracks"]) == 2, PATIENCE_S, "both tracks have a file")
                before = arrived(server, "lecture", "ada")
                # Six seconds by the packets of 20 ms that came: a busy machine's microphone may be late.
                await until_true(lambda: arrived(server, "lecture", "ada")["audio"] - before["audio"] >= 300, PATIENCE_S, "six seconds of audio arrive")
                video = arrived(server, "lecture", "ada")["video"]
                await until_true(lambda: arrived(server, "lecture", "ada")["video"] > video, PATIENCE_S, "video goes on")
                server.kill()
                return begun["sid"]

        sid = asyncio.run(call())
        for path in server.recordings.rglob("*.mp4"):
            _, seconds, errors = ffmpeg(path)
            print(f"figures: {seconds} s play before the repair, of at least 6 s")
            assert seconds > 4 and not errors, errors
            assert gstreamer(path, "--packets")["end"] > 3.8
        server.start()
        found = asyncio.run(finished(server, sid))
        assert found["state"] == "ready" and found["ended"] == "crash"
        events = server.api("GET", "/v1/events?after=0&type=recordingReady", headers={"Accept": "application/json"})[1]["events"]
        assert [one["recording"] for one in events] == [sid], "its backend learns that the files are ready"
        for track in found["tracks"]:
            for file in track["files"]:
                assert file["durationMilliseconds"] > 4_000 and file["index"] == "front"
                # Audio reports are five seconds apart: one may not have come.
                assert track["kind"] == "audio" or file["senderMicroseconds"]
                repaired = path_of(server, found, file)
                assert ffmpeg(repaired)[1] > 4 and gstreamer(repaired)["end"] > 3.8


def test_a_server_that_is_stopped_announces_that_its_recordings_are_ready(recording_server):
    """Whoever waits for the files learns of them before the stream of events ends: nobody announces it later."""
    server = recording_server

    async def call():
        sender = await Client().publish(f"{server.url}/whip/lecture", token("ada", "lecture"), MovingPicture(320, 180), Tone())
        await sender.connected()
        events = Stream(server, "/v1/rooms/lecture/events?after=0")
        _, begun = server.api("POST", "/v1/rooms/lecture/recordings", {})
        await until_true(lambda: sum(bool(track["files"]) for track in recording(server, begun["sid"])["tracks"]) == 2, PATIENCE_S, "both tracks have a file")
        await asyncio.to_thread(server.terminate)
        events.thread.join(PATIENCE_S)
        assert not events.thread.is_alive(), "the stream has ended"
        # A gap may be reported, too, where this machine lost a packet.
        ends = ("recordingStarted", "recordingStopped", "recordingReady", "recordingFailed")
        assert [one for one in events.types() if one in ends] == list(ends[:3]), events.types()
        (folder,) = server.recordings.glob("RM_*/RC_*")
        assert len(list(folder.glob("*.mp4"))) == 2
        await sender.close()

    asyncio.run(call())


def test_a_room_whose_preset_demands_it_is_recorded_from_its_first_track(recording_server):
    """A preset for cameras only: the viewer sees the mark, a dry run lists what an edit would do, and the edit starts and stops at once."""
    server = recording_server

    def kinds(found):
        return sorted(track["source"] for track in found["tracks"])

    async def call():
        assert server.api("PUT", "/v1/presets/court", {"recording": "fromStart", "recordingSources": ["camera"]})[0] == 201
        assert server.api("POST", "/v1/rooms", {"name": "court", "preset": "court"})[0] == 201
        async with chromium() as browser:
            await open_room(browser, server, "court", "ada")
            bob = await open_room(browser, server, "court", "bob", send="nothing")
            await until(bob, "document.getElementById('recording').textContent === 'Recording in part'")
            assert (await bob.get_attribute("#recording", "title")).startswith("camera since ")
            (begun,) = server.api("GET", "/v1/rooms/court/recordings")[1]["recordings"]
            assert begun["byPolicy"] and begun["sources"] == ["camera"]
            impact = server.api("PATCH", "/v1/rooms/court/policy?dryRun=true", {"recordingSources": ["microphone"]})[1]
            assert [(len(one["newRecordings"]), len(one["endedRecordings"])) for one in impact["participants"] if one["identity"] == "ada"] == [(1, 1)]

            async def written(count):
                await until_true(lambda: sum(bool(track["files"]) for track in recording(server, begun["sid"])["tracks"]) == count, PATIENCE_S, f"{count} tracks have a file")

            await written(1)
            assert kinds(recording(server, begun["sid"])) == ["camera"]
            for count, sources in enumerate((["microphone"], ["camera", "microphone"]), 2):
                assert server.api("PATCH", "/v1/rooms/court/policy", {"recordingSources": sources})[0] == 200
                await written(count)
            assert kinds(recording(server, begun["sid"])) == ["camera", "camera", "microphone"]
            assert server.api("PATCH", "/v1/rooms/court/policy", {"recording": "manual"})[0] == 200
            # When the edit is answered the recording has stopped, however long the machine takes for that.
            page = server.api("GET", "/v1/rooms/court/events?after=0", headers={"Accept": "application/json"})[1]
            moments = {event["type"]: event["at"] for event in page["events"]}
            print(f"figures: the recording stopped {moments['recordingStopped'] - moments['policyChanged']} ms after the edit")
            assert moments["recordingStopped"] >= moments["policyChanged"]
            await until(bob, "document.getElementById('recording').textContent === ''")
            return await finished(server, begun["sid"])

    found = asyncio.run(call())
    names = [file["name"] for track in found["tracks"] for file in track["files"]]
    assert found["state"] == "ready" and len(names) == len(set(names)) == 3, found
    for track in found["tracks"]:
        assert "fault" not in track and not ffmpeg(path_of(server, found, track["files"][0]))[2]
