"""Jobs on recordings: two real tracks are recorded, composed and compressed anew by Debian's ffmpeg, and what comes out is decoded."""
import fractions
import json
import os
import pathlib
import signal
import subprocess
import time

import numpy
import pytest

from conftest import running
from support.tokens import admin_token, token
from support.waiting import PATIENCE_S
from test_command_line import martlet
from test_playback import start

FFMPEG, FFPROBE = "/usr/bin/ffmpeg", "/usr/bin/ffprobe"
H264 = ["-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-b:v", "900k", "-g", "30", "-pix_fmt", "yuv420p"]
#: What each publisher shows and plays: a colour with noise, and a tone.
SIDES = {"ada": ("red", 440), "bob": ("blue", 1000)}
#: How long each of them plays. Bob comes two seconds after ada, on a machine that stalls later, and both are to be there together for a while.
SECONDS = 6


def until_true(condition, timeout_s):
    """Waits for what a job does, in steps that cost the server little."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout_s, f"not within {timeout_s} s"
        time.sleep(0.1)


def film(path, colour, tone, seconds):
    """A file that can be played into a room: a colour with noise in it, as cameras have, and a tone."""
    subprocess.run([FFMPEG, "-v", "error", "-y", "-f", "lavfi", "-i", f"color={colour}:s=640x360:r=30:d={seconds},noise=alls=25:allf=t",
                    "-f", "lavfi", "-i", f"sine=frequency={tone}:sample_rate=48000:duration={seconds},volume=4", *H264, "-c:a", "libopus", "-b:a", "48k", str(path)],
                   check=True, timeout=60)


def serving(folder, **options):
    return running(extra=f"playback:\n  directory: {folder}\nrecording:\n  directory: {folder}/recordings\n  reserve: 0\n", **options)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A server with one recording, in which bob comes two seconds after ada, for all tests of this file."""
    folder = tmp_path_factory.mktemp("archive")
    with serving(folder) as server:
        server.folder_of_files = folder
        server.recording = record(server, SECONDS, late=2)
        yield server


def record(server, seconds, late):
    """A recording of ada, and of bob who comes `late` seconds later; both until the end. Its summary."""
    folder = server.folder_of_files
    for name, (colour, tone) in SIDES.items():
        film(folder / f"{name}.mp4", colour, tone, seconds)
    assert server.api("POST", "/v1/rooms", {"name": "studio"})[0] == 201
    status, begun = server.api("POST", "/v1/rooms/studio/recordings", {})
    assert status == 201, begun
    start(server, "studio", file="ada.mp4", identity="ada")
    time.sleep(late)
    start(server, "studio", file="bob.mp4", identity="bob")
    until_true(lambda: server.api("GET", "/v1/rooms/studio/participants")[1]["participants"] == [], 60)
    assert server.api("DELETE", f"/v1/recordings/{begun['sid']}")[0] == 204
    until_true(lambda: all(file.get("index") == "front" for file in files_of(summary(server, begun["sid"])))
               and summary(server, begun["sid"])["state"] == "ready", PATIENCE_S)
    return summary(server, begun["sid"])


def summary(server, sid):
    return server.api("GET", f"/v1/recordings/{sid}")[1]


def files_of(found):
    return [file for track in found["tracks"] for file in track["files"]]


def folder_of(server, found):
    return server.folder_of_files / "recordings" / found["roomSid"] / found["sid"]


def begin(server, found, **request):
    status, job = server.api("POST", f"/v1/recordings/{found['sid']}/jobs", request)
    assert status == 201, job
    return job


def ended(server, job, seconds=110):
    """At idle priority a job may get next to nothing of a busy machine."""
    until_true(lambda: server.api("GET", f"/v1/jobs/{job['sid']}")[1]["state"] not in ("queued", "running"), seconds)
    return server.api("GET", f"/v1/jobs/{job['sid']}")[1]


def children(server):
    """The processes that the server has begun."""
    found = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(server.process.pid)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in found.splitlines() if "ffmpeg" in line]


def streams(path):
    done = subprocess.run([FFPROBE, "-v", "error", "-show_streams", "-show_format", "-of", "json", str(path)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def frame(path, at, width=640, height=360):
    """The frame that is shown `at` seconds, as RGB."""
    data = subprocess.run([FFMPEG, "-v", "error", "-ss", f"{at:.3f}", "-i", str(path), "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          capture_output=True, check=True).stdout
    return numpy.frombuffer(data, dtype=numpy.uint8).reshape(height, width, 3)


def colour(image, x, y):
    """Of a place in the frame, 0 to 1 of each: red, blue or black."""
    red, _, blue = image[y - 10:y + 10, x - 10:x + 10].reshape(-1, 3).mean(axis=0)
    return "black" if max(red, blue) < 60 else "red" if red > blue else "blue"


def tones(path, at, seconds=0.5):
    """Which of the publishers' tones are heard in the half second from `at` on."""
    data = subprocess.run([FFMPEG, "-v", "error", "-ss", f"{at:.3f}", "-t", f"{seconds}", "-i", str(path), "-ac", "1", "-ar", "16000", "-f", "f32le", "-"],
                          capture_output=True, check=True).stdout
    samples = numpy.frombuffer(data, dtype=numpy.float32)
    power = numpy.abs(numpy.fft.rfft(samples * numpy.hanning(len(samples))))
    hertz = numpy.fft.rfftfreq(len(samples), 1 / 16000)
    level = {tone: power[numpy.abs(hertz - tone) < 15].max() for _, tone in SIDES.values()}
    return {tone for tone, one in level.items() if one > 0.05 * max(level.values()) and one > 1}


def test_E18_a_composition_shows_each_publisher_in_its_place_at_its_time_and_mixes_their_audio(archive):
    server = archive
    found = server.recording
    starts = {track["identity"]: min(file["startMilliseconds"] for file in track["files"]) / 1000 for track in found["tracks"] if track["kind"] == "video"}
    job = begin(server, found, kind="composition", layout="grid", width=640, height=360, frameRate=30, bitrate=600_000)
    assert job["state"] == "queued" and job["layout"] == "grid"
    done = ended(server, job)
    assert done["state"] == "finished" and done["progress"] == 1, done
    path = folder_of(server, found) / done["file"]["name"]
    told = streams(path)
    kinds = {one["codec_type"]: one for one in told["streams"]}
    video = kinds["video"]
    assert (video["codec_name"], video["width"], video["height"]) == ("h264", 640, 360)
    # ffprobe divides the frames by a length in whole milliseconds.
    assert abs(fractions.Fraction(video["avg_frame_rate"]) - 30) < 0.1, video["avg_frame_rate"]
    assert kinds["audio"]["codec_name"] == "aac"
    late = starts["bob"] - starts["ada"]
    end = done["file"]["durationMilliseconds"] / 1000
    print(f"figures: bob came {late:.2f} s after ada; the file has {end:.2f} s, {done['file']['bytes']} bytes, made in {done['endedAt'] - done['startedAt']} ms")
    assert abs(end - (SECONDS + late)) < 0.7 and path.stat().st_size == done["file"]["bytes"]
    # Alone ada fills the frame; then each has a half. Both are looked at in the middle of their time, however late bob was.
    middle, middle_of_both = late / 2, (late + SECONDS) / 2
    alone, both = frame(path, middle), frame(path, middle_of_both)
    assert [colour(alone, x, 180) for x in (160, 480)] == ["red", "red"]
    assert [colour(both, x, 180) for x in (160, 480)] == ["red", "blue"]
    assert colour(both, 160, 20) == "black"
    last = frame(path, end - 1)
    assert [colour(last, x, 180) for x in (160, 480)] == ["blue", "blue"]
    assert tones(path, middle - 0.25) == {440} and tones(path, middle_of_both - 0.25) == {440, 1000} and tones(path, end - 1) == {1000}
    # Nothing but the file is left, it is the recording's like the others, and it is announced.
    assert [one.name for one in path.parent.glob("JB_*")] == [path.name]
    status, link = server.api("POST", f"/v1/recordings/{found['sid']}/links", {"file": path.name})
    assert status == 201, link
    assert done in summary(server, found["sid"])["jobs"]

    def events():
        found = server.api("GET", "/v1/events?after=0&limit=1000", headers={"Accept": "application/json"})[1]["events"]
        return [one["type"] for one in found if one.get("job") == job["sid"]]

    # An event comes after the state that it is about.
    until_true(lambda: len(events()) >= 2, PATIENCE_S)
    assert events() == ["jobStarted", "jobFinished"]
    assert server.request("GET", f"/v1/jobs/{job['sid']}", None, {"Authorization": f"Bearer {token('eve', 'studio')}"})[0] == 403
    assert server.api("DELETE", f"/v1/jobs/{job['sid']}?state=ended")[0] == 204 and not path.exists()


@pytest.mark.parametrize("rate", [300_000, 800_000])
def test_E18_two_passes_reach_the_wanted_rate_within_five_percent(archive, rate):
    server = archive
    found = server.recording
    (name,) = [file["name"] for track in found["tracks"] if track["kind"] == "video" and track["identity"] == "ada" for file in track["files"]]
    done = ended(server, begin(server, found, kind="transcode", file=name, codec="h264", bitrate=rate))
    assert done["state"] == "finished", done
    path = folder_of(server, found) / done["file"]["name"]
    packets = subprocess.run([FFPROBE, "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=size,duration_time", "-of", "json", str(path)],
                             capture_output=True, text=True, check=True).stdout
    packets = json.loads(packets)["packets"]
    measured = sum(int(one["size"]) for one in packets) * 8 / sum(float(one["duration_time"]) for one in packets)
    print(f"figures: {rate / 1000:.0f} kbit/s wanted, {measured / 1000:.1f} measured by ffprobe ({100 * measured / rate - 100:+.1f} %), {done['file']['videoBitrate'] / 1000:.1f} reported")
    assert abs(measured / rate - 1) < 0.05 and abs(measured / done["file"]["videoBitrate"] - 1) < 0.02
    assert frame(path, 2).shape == (360, 640, 3) and colour(frame(path, 2), 320, 180) == "red"


def test_a_job_is_cancelled_and_a_killed_server_leaves_no_process_and_no_half_file(archive):
    server = archive
    found = server.recording
    long = {"kind": "composition", "width": 3840, "height": 2160, "frameRate": 60, "bitrate": 20_000_000}
    # Cancelled: its process ends, and so does what it has written. Another one waits meanwhile, and is cancelled at once.
    job, other = begin(server, found, **long), begin(server, found, **long)
    until_true(lambda: children(server), PATIENCE_S)
    (process,) = children(server)
    status = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    # Nice value, and policy SCHED_IDLE.
    assert status[16] == "19" and status[38] == "5"
    assert server.api("DELETE", f"/v1/jobs/{other['sid']}")[0] == 204
    assert server.api("GET", f"/v1/jobs/{other['sid']}")[1]["state"] == "cancelled"
    assert server.api("DELETE", f"/v1/jobs/{job['sid']}?state=ended")[1]["code"] == "conflict"
    assert server.api("DELETE", f"/v1/jobs/{job['sid']}?state=open")[0] == 204
    # At idle priority a process also ends when nobody else wants the machine.
    assert ended(server, job, PATIENCE_S)["state"] == "cancelled"
    until_true(lambda: not pathlib.Path(f"/proc/{process}").exists() and not list(folder_of(server, found).glob(f"{job['sid']}*")), PATIENCE_S)
    # The server is killed: so is the process; the next one begins again, without what was half done.
    job = begin(server, found, **{**long, "width": 640, "height": 360, "frameRate": 15, "bitrate": 500_000})
    until_true(lambda: children(server), PATIENCE_S)
    (process,) = children(server)
    # It stays half done until the server is killed, however fast the machine is.
    os.kill(process, signal.SIGSTOP)
    server.kill()
    until_true(lambda: not pathlib.Path(f"/proc/{process}").exists(), PATIENCE_S)
    server.start()
    done = ended(server, job)
    assert done["state"] == "finished" and done["tries"] == 2, done
    assert [one.name for one in folder_of(server, found).glob(f"{job['sid']}*")] == [done["file"]["name"]]
    streams(folder_of(server, found) / done["file"]["name"])


def test_jobs_are_created_listed_cancelled_and_deleted_on_the_command_line(archive):
    server, sid = archive, archive.recording["sid"]
    made = martlet(server, "jobs", "create", sid, "composition", "layout=grid", "width=320", "height=180", "bitrate=200000")
    job = made.split()[1]
    assert made == f"job {job} was created\n"
    assert ended(server, {"sid": job})["state"] == "finished"
    long = json.loads(martlet(server, "jobs", "create", sid, "composition", "width=3840", "height=2160", "frameRate=60", "bitrate=20000000", "--json"))["sid"]
    assert martlet(server, "jobs", "cancel", long) == f"job {long} was cancelled\n"
    assert ended(server, {"sid": long}, PATIENCE_S)["state"] == "cancelled"
    heading, *rows = martlet(server, "jobs").splitlines()
    assert heading.split() == ["JOB", "RECORDING", "KIND", "STATE", "DONE", "CREATED", "RESULT"]
    found = {row.split()[0]: row.split() for row in rows}
    assert found[job][1:5] == [sid, "composition", "finished", "100%"] and found[job][-1] == f"{job}.mp4"
    assert found[long][3] == found[long][-1] == "cancelled"
    listed = json.loads(martlet(server, "jobs", "list", "--recording", sid, "--json"))["jobs"]
    assert [one["sid"] for one in listed[-2:]] == [job, long], "the oldest first"
    assert martlet(server, "jobs", "--recording", "RC_none").splitlines() == [" ".join(heading.split()).replace(" ", "  ")]
    assert json.loads(martlet(server, "jobs", "show", job))["layout"] == "grid"
    assert "conflict" in martlet(server, "jobs", "cancel", job, status=1)
    for one in (job, long):
        assert martlet(server, "jobs", "delete", one) == f"job {one} was deleted with its file\n"
    assert "job_not_found" in martlet(server, "jobs", "show", job, status=1)
    assert "colour" in martlet(server, "jobs", "create", sid, "composition", "colour=red", status=1)
    video = next(file["name"] for file in files_of(server.recording) if file["codec"] == "h264")
    assert "codec_not_in_container" in martlet(server, "jobs", "create", sid, "copy", f"file={video}", "container=webm", status=1)
    assert "missing KIND" in martlet(server, "jobs", "create", sid, status=2)
    assert "did you mean 'cancel'" in martlet(server, "jobs", "cancle", job, status=2)


def test_without_room_beyond_the_reserve_a_job_fails_and_a_recording_is_refused(archive):
    archive.terminate()
    # A hundred terabytes.
    with running(extra=f"recording:\n  directory: {archive.folder_of_files}/recordings\n  reserve: 100000000\n") as server:
        done = ended(server, begin(server, archive.recording, kind="composition"))
        assert (done["state"], done["fault"]) == ("failed", "disk_full") and "file" not in done, done

        def events():
            found = json.loads(server.request("GET", "/v1/events?after=0", None, {"Authorization": f"Bearer {admin_token()}", "Accept": "application/json"})[2])["events"]
            return [(one["type"], one.get("reason")) for one in found if one.get("job") == done["sid"]]

        until_true(lambda: len(events()) >= 2, PATIENCE_S)
        assert events() == [("jobStarted", None), ("jobFailed", "disk_full")]
        assert server.api("POST", "/v1/rooms", {"name": "studio"})[0] == 201
        assert server.api("POST", "/v1/rooms/studio/recordings", {})[1]["code"] == "disk_full"
        assert server.api("DELETE", f"/v1/jobs/{done['sid']}?state=ended")[0] == 204
    archive.start()


def test_a_server_without_ffmpeg_says_so_at_its_start_and_when_it_is_asked(tmp_path, archive):
    # The recording of the other server, which is not there any more.
    archive.terminate()
    with running(extra=f"recording:\n  directory: {archive.folder_of_files}/recordings\n  ffmpeg: /no/such/ffmpeg\n") as server:
        assert "there is no such program; install ffmpeg" in server.log()
        status, problem = server.api("POST", f"/v1/recordings/{archive.recording['sid']}/jobs", {"kind": "composition"})
        assert (status, problem["code"]) == (503, "not_available"), problem
    archive.start()
