"""Jobs on recordings of browsers' calls: each layout, files of tracks and joined ones, and a call beside a job. Run by name and at night."""
import asyncio
import json
import os
import subprocess

import numpy
import pytest

from conftest import running
from support.chromium import chromium, open_room, until, wait_for_video
from nightly_readers import watched
from test_console_recordings import VIDEO, operator, record
from test_jobs import FFMPEG, begin, children, ended, folder_of, frame, record as record_films, serving, streams, summary, tones, until_true
from test_playback import RECEIVED
from test_recording import finished, gstreamer


@pytest.fixture
def archive(tmp_path):
    with serving(tmp_path) as server:
        server.folder_of_files = tmp_path
        yield server


async def recorded(server, browser, files, seconds):
    """A call of two who send, recorded."""
    for name in ("ada", "bob"):
        page = await open_room(browser, server, "lecture", name)
        await wait_for_video(page) if name == "bob" else None
    status, begun = server.api("POST", "/v1/rooms/lecture/recordings", {"files": files})
    assert status == 201, begun
    await asyncio.sleep(seconds)
    assert server.api("DELETE", f"/v1/recordings/{begun['sid']}")[0] == 204
    if files == "tracks":
        await finished(server, begun["sid"])
    else:
        await asyncio.to_thread(until_true, lambda: all(one["state"] == "ready" for one in summary(server, begun["sid"]).get("joined") or [{"state": ""}]), 20)
    return summary(server, begun["sid"])


@pytest.mark.parametrize("files", ["tracks", "participant", "room"])
def test_a_call_of_browsers_is_composed_in_each_layout_whatever_its_files(archive, files):
    server = archive

    async def call():
        async with chromium() as browser:
            return await recorded(server, browser, files, 8)

    found = asyncio.run(call())
    for layout in ("grid", "speaker", "presentation"):
        done = ended(server, begin(server, found, kind="composition", layout=layout, width=640, height=360, bitrate=500_000), 100)
        assert done["state"] == "finished", (layout, done)
        path = folder_of(server, found) / done["file"]["name"]
        kinds = sorted(one["codec_type"] for one in streams(path)["streams"])
        seconds = done["file"]["durationMilliseconds"] / 1000
        # Both halves, or the large one and the strip, show something; one small tile fills a sixth of the strip.
        image = frame(path, seconds / 2)
        shown = [image[:, :320].mean(), image[:, 320:].mean()] if layout != "speaker" else [image[:280].mean(), numpy.percentile(image[300:], 95)]
        print(f"figures: {files} {layout}: {seconds} s made in {done['endedAt'] - done['startedAt']} ms, mean brightness {[round(float(one)) for one in shown]}")
        assert kinds == ["audio", "video"] and seconds > 7 and min(shown) > 10, (layout, shown)


def test_E18_what_jobs_make_is_shown_by_gstreamer_and_by_chromium_to_its_end(archive):
    server = archive
    found = record_films(server, 6, late=2)
    name = next(file["name"] for track in found["tracks"] if track["kind"] == "video" for file in track["files"])
    made = [ended(server, begin(server, found, **request)) for request in (
        {"kind": "composition", "layout": "grid", "width": 640, "height": 360, "bitrate": 600_000}, {"kind": "transcode", "file": name, "codec": "h264", "bitrate": 300_000})]
    assert [one["state"] for one in made] == ["finished", "finished"], made

    async def show():
        async with chromium() as browser:
            return [await watched(browser, server, found, one["file"]) for one in made]

    for done, (frames, width, seconds) in zip(made, asyncio.run(show())):
        path = folder_of(server, found) / done["file"]["name"]
        (video,) = [one for one in streams(path)["streams"] if one["codec_type"] == "video"]
        read = gstreamer(path, "--pad", "video_0")
        print(f"figures: {done['kind']}: ffprobe {video['nb_frames']} frames of {video['width']}, GStreamer {read['buffers']}, Chromium {frames} of {width} in {seconds:.2f} s")
        assert read["buffers"] == int(video["nb_frames"]) and read["rises"] and width == video["width"]
        # Frames that Chromium shows too late on a busy machine it does not count.
        assert frames >= 0.9 * read["buffers"] and abs(seconds - done["file"]["durationMilliseconds"] / 1000) < 0.1


def test_a_call_beside_a_job_loses_nothing(archive):
    server = archive

    async def call():
        async with chromium() as browser:
            found = await recorded(server, browser, "tracks", 3)
            viewer = await open_room(browser, server, "lecture", "eve", send="nothing")
            await wait_for_video(viewer)
            job = begin(server, found, kind="composition", width=1920, height=1080, frameRate=60, bitrate=8_000_000)
            await asyncio.to_thread(until_true, lambda: children(server), 10)
            before = await viewer.evaluate(RECEIVED)
            await asyncio.sleep(5)
            busy = server.api("GET", f"/v1/jobs/{job['sid']}")[1]
            after = await viewer.evaluate(RECEIVED)
            server.api("DELETE", f"/v1/jobs/{job['sid']}")
            return busy, before, after

    busy, before, after = asyncio.run(call())
    for kind in ("audio", "video"):
        packets, lost = (after[kind][name] - before[kind][name] for name in ("packetsReceived", "packetsLost"))
        print(f"figures: {kind}: {packets} packets in 5 s, {lost} lost, jitter {after[kind]['jitter'] * 1000:.1f} ms; the job was {busy['state']} at {busy['progress']:.2f}")
        assert packets > 100 and lost == 0


def test_a_person_makes_one_video_of_a_recording_watches_it_and_deletes_it(tmp_path):
    with serving(tmp_path, development=True) as server:
        server.recordings = tmp_path / "recordings"

        async def run():
            async with chromium() as browser:
                await open_room(browser, server, "den", "ada")
                await open_room(browser, server, "den", "bob")
                page = await operator(browser, server, "#/recordings?room=den")
                await record(page, server, "den", "tracks")
                await page.select_option("#recording-compose-size", "640x360")
                await page.get_by_role("button", name="Make one video").click()
                state = "document.querySelector('#recording-jobs .dim')?.textContent ?? ''"
                await until(page, f"{state}.startsWith('ready')", 30)
                await page.locator("[aria-label^='Watch JB_']").click()
                await until(page, f"{VIDEO}.currentTime > 1 && {VIDEO}.videoWidth === 640")
                # A large one takes its time: it is cancelled while it is made.
                await page.select_option("#recording-compose-size", "1920x1080")
                await page.get_by_role("button", name="Make one video").click()
                await page.get_by_role("button", name="Cancel").click()
                await until(page, f"{state} === 'cancelled'")
                await page.locator("[aria-label^='Delete One video']").click()
                await until(page, "!document.querySelector(\"[aria-label^='Watch JB_']\")")
                assert not page.problems and not list(server.recordings.rglob("JB_*")), page.problems

        asyncio.run(run())


def test_a_composition_mixes_a_thousand_files_of_audio(archive):
    """As of a call in which a thousand people spoke: ada and bob as they were, and all others nearly silent."""
    server = archive
    found = record_films(server, 6, late=0)
    folder = folder_of(server, found)
    server.terminate()
    sidecar = json.loads((folder / "recording.json").read_text())
    ada = next(track for track in sidecar["tracks"] if (track["identity"], track["kind"]) == ("ada", "audio"))
    quiet = folder / "TR_quiet.000.mp4"
    subprocess.run([FFMPEG, "-v", "error", "-i", str(folder / ada["files"][0]["name"]), "-af", "volume=0.0001", "-c:a", "libopus", str(quiet)], check=True)
    for number in range(1000):
        name = f"TR_{number}.000.mp4"
        os.link(quiet, folder / name)
        sidecar["tracks"].append({**ada, "sid": f"TR_{number}", "files": [{**ada["files"][0], "name": name, "bytes": quiet.stat().st_size}]})
    (folder / "recording.json").write_text(json.dumps(sidecar))
    server.start()
    done = ended(server, begin(server, found, kind="composition", width=320, height=180, bitrate=200_000), 100)
    assert done["state"] == "finished", done
    path = folder / done["file"]["name"]
    print(f"figures: 1,002 files of audio mixed in {done['endedAt'] - done['startedAt']} ms; {done['file']['durationMilliseconds']} ms")
    assert tones(path, 3) == {440, 1000} and abs(done["file"]["durationMilliseconds"] - 6_000) < 700
    assert [one.name for one in folder.glob(f"{done['sid']}*")] == [path.name]


def test_a_job_that_takes_longer_than_it_may_fails_and_its_process_ends(tmp_path):
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    with running(extra=f"playback:\n  directory: {tmp_path}\nrecording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n  ffmpeg: {program}\n  job_time: 60\n") as server:
        server.folder_of_files = tmp_path
        found = record_films(server, 3, late=0)
        done = ended(server, begin(server, found, kind="composition"), 90)
        assert (done["state"], done["fault"]) == ("failed", "time_limit"), done
        assert 60_000 <= done["endedAt"] - done["startedAt"] < 65_000
        assert not subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.process.pid)], capture_output=True, text=True).stdout.strip()
