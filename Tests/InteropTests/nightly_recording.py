"""What takes minutes of recording: files of several tracks, and a disk that stands still beside a call that does not. Run by name and at night; the disk needs root and a loop device."""
import asyncio
import re
import time

import pytest

from conftest import running
from support.chromium import chromium, open_room, wait_for_video
from support.disks import frozen, own_disk
from support.waiting import until_true
from test_playback import H264, RECEIVED, change, make, show, start
from test_recording import (  # noqa: F401
    boxes, decodes_from_each_sync_point, ffmpeg, finished, gstreamer, movie_times, path_of, plays_before_it_is_whole, recording, recording_server)

FROZEN_S = 10


@pytest.fixture
def disk(tmp_path):
    """A file system of its own that can be frozen."""
    place = tmp_path / "disk"
    with own_disk(place, "512M"):
        yield place


def test_E13_a_disk_that_is_frozen_for_ten_seconds_costs_the_recording_a_gap_and_the_call_nothing(tmp_path, disk):
    """A film of 6 Mbit/s in 60 frames per second is watched and recorded, with 4 MB for what waits. The viewer gets each frame that was sent, frozen or not; the recording
    goes on with a keyframe, says what is missing, and decodes in both readers."""
    films = tmp_path / "films"
    films.mkdir()
    make(films / "film.mp4", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=60:duration=20", "-vf", "noise=alls=12:allf=t", *H264[:-6], "-g", "60", "-pix_fmt", "yuv420p",
         "-b:v", "6M", "-maxrate", "6M", "-bufsize", "1M")
    with running(extra=f"playback:\n  directory: {films}\nrecording:\n  directory: {disk}/recordings\n  reserve: 0\n  buffer: 4\n") as server:
        async def watch():
            async with chromium() as browser:
                bob = await open_room(browser, server, "cinema", "bob", send="nothing")
                playback = start(server, "cinema", file="film.mp4", paused=True)
                await until_true(lambda: any(one["state"] == "active" for one in server.api("GET", "/v1/rooms/cinema/subscriptions")[1]["subscriptions"]),
                                 15, "the page answers for the film")
                await bob.wait_for_timeout(500)
                _, begun = server.api("POST", "/v1/rooms/cinema/recordings", {})
                change(server, playback, paused=False)
                await wait_for_video(bob, frames=60)

                async def arrived():
                    sent = {track["kind"]: track["samplesSent"] for track in show(server, playback)["tracks"]}["video"]
                    got = (await bob.evaluate(RECEIVED))["video"]
                    return sent, got["framesReceived"], got["packetsLost"], got["jitter"]

                async def second():
                    before = await arrived()
                    await asyncio.sleep(1)
                    after = await arrived()
                    return after[1] - before[1], after[3]

                free = [await second() for _ in range(3)]
                with frozen(disk):
                    stalled = [await second() for _ in range(FROZEN_S)]
                later = [await second() for _ in range(2)]
                change(server, playback, paused=True)
                await asyncio.sleep(1)
                sent, got, lost, _ = await arrived()
                print(f"figures: frames per second before {[one[0] for one in free]}, frozen {[one[0] for one in stalled]}, later {[one[0] for one in later]}; "
                      f"jitter in ms {[round(1000 * one[1], 1) for one in free + stalled + later]}; {sent} frames sent, {got} arrived, {lost} packets lost")
                assert got == sent and lost == 0
                assert server.api("DELETE", f"/v1/recordings/{begun['sid']}")[0] == 204
                return await finished(server, begun["sid"], 30)

        found = asyncio.run(watch())
        (track,) = found["tracks"]
        print(f"figures: gaps {[(gap['reason'], gap['milliseconds'], gap['packets']) for gap in track['gaps']]}")
        assert any(gap["reason"] == "overload" and 1_000 < gap["milliseconds"] < 1_000 * (FROZEN_S + 3) for gap in track["gaps"])
        frames = 0
        for file in track["files"]:
            path = disk / "recordings" / found["roomSid"] / found["sid"] / file["name"]
            read, _, errors = ffmpeg(path)
            assert not errors and read == file["samples"] == gstreamer(path)["buffers"]
            frames += read
        metrics = server.get_private("/metrics")[1]
        gaps = re.search(r"(?m)^martlet_recording_gaps_total (\S+)", metrics)[1]
        print(f"figures: {frames} frames recorded, {gaps} gaps")
        assert int(gaps) == track["gapCount"]


def checked_movie(server, found, file):
    """A joined file, whole and in order for ffmpeg and GStreamer: (the movie's tracks as movie_times has them, frames of its first video)."""
    path = path_of(server, found, file)
    assert boxes(path) == ["ftyp", "moov", "mdat"] and path.stat().st_size == file["bytes"]
    frames, _, errors = ffmpeg(path)
    assert not errors, errors
    tracks = movie_times(path)
    for _, times in tracks:
        assert all(a < b for a, b in zip(times, times[1:]))
    video = next(times for kind, times in tracks if kind == "video")
    read = gstreamer(path, "--pad", "video_0")
    print(f"figures: {file['name']} {file['durationMilliseconds']} ms, tracks {[(kind, len(times), round(times[0], 3)) for kind, times in tracks]}, "
          f"ffmpeg {frames} frames, GStreamer {read}")
    # With several videos ffmpeg seeks by the sync points of one of them.
    if [kind for kind, _ in tracks].count("video") == 1:
        print(f"figures: decodes from each of {decodes_from_each_sync_point(path)} sync points")
    assert read["buffers"] == len(video) and abs(read["start"] - video[0]) < 0.02
    return tracks


async def joined(server, sid):
    deadline = time.monotonic() + 20
    while (found := recording(server, sid))["state"] == "recording" or any(file["state"] == "pending" for file in found.get("joined", [])):
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.2)
    assert all(file["state"] == "ready" for file in found["joined"]), found["joined"]
    return found


def test_tracks_of_a_participant_or_of_a_room_become_one_file_in_which_they_are_together(recording_server):
    """H.264 with the parameter sets of a real simulcast sender that change, by participant; VP8 by room, where one joins three seconds late."""
    server = recording_server

    async def call():
        async with chromium() as browser:
            ada = await open_room(browser, server, "talk", "ada", codec="H264")
            await open_room(browser, server, "class", "eve", codec="VP8")
            for room, identity in (("talk", "bob"), ("class", "viewer")):
                await wait_for_video(await open_room(browser, server, room, identity, send="nothing"))
            sids = {}
            for room, files, name in (("talk", "participant", "{room}-{participant}"), ("class", "room", "{room}")):
                status, begun = server.api("POST", f"/v1/rooms/{room}/recordings", {"files": files, "fileName": name})
                assert status == 201 and begun["files"] == files, begun
                sids[room] = begun["sid"]
            await asyncio.sleep(3)
            await open_room(browser, server, "class", "late", codec="VP8")
            await asyncio.sleep(6)
            assert not ada.problems
            for sid in sids.values():
                assert server.api("DELETE", f"/v1/recordings/{sid}")[0] == 204
            found = [await joined(server, sids[room]) for room in ("talk", "class")]
            for one in found:
                # Of several videos Chromium wants to have each before it shows one.
                await plays_before_it_is_whole(browser, server, one, one["joined"][0], whole=one["files"] == "room")
            return found

    talk, lesson = asyncio.run(call())
    (file,) = talk["joined"]
    assert file["name"] == "talk-ada.mp4" and file["identity"] == "ada"
    tracks = checked_movie(server, talk, file)
    assert [kind for kind, _ in tracks] == ["video", "audio"]
    sources = {track["kind"]: track["files"] for track in talk["tracks"]}
    assert len(tracks[0][1]) == sum(one["samples"] for one in sources["video"]) and all(one["joined"] == file["name"] for one in sources["video"])
    # As the publisher's clock has it, from the first frame to the last.
    wanted = (sources["video"][0]["senderMicroseconds"] - sources["audio"][0]["senderMicroseconds"]) / 1e6
    begin = tracks[0][1][0] - tracks[1][1][0]
    end = tracks[0][1][-1] - tracks[1][1][-1]
    print(f"figures: {len(sources['video'])} files of video; it begins {begin * 1000:.0f} ms after the audio, by the sender's clock {wanted * 1000:.0f}; the end {end * 1000:.0f}")
    assert abs(begin - wanted) < 0.02 and abs(end) < 0.15
    (file,) = lesson["joined"]
    assert file["name"] == "class.mp4" and "identity" not in file
    tracks = checked_movie(server, lesson, file)
    assert sorted(kind for kind, _ in tracks) == ["audio", "audio", "video", "video"]
    late = [times[0] for _, times in tracks if times[0] > 2]
    arrived = [one["files"][0]["startMilliseconds"] for one in lesson["tracks"] if one["identity"] == "late" and one["kind"] == "audio"]
    assert len(late) == 2 and abs(max(times[0] for kind, times in tracks if kind == "audio") * 1000 - (arrived[0] - file["startMilliseconds"])) < 30, (arrived, late)
    assert {one.name for one in (server.recordings / lesson["roomSid"] / lesson["sid"]).glob("*.mp4")} == {"class.mp4"}
