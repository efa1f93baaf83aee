"""Recordings of what real encoders send in the odd cases, each read by ffmpeg and by GStreamer: x264 and libvpx, in films that are played into a room and in aiortc. Run by name and at night."""
import asyncio
import fractions
import json
import pathlib
import subprocess

import av
import imageio_ffmpeg
import pytest
from aiortc import rtp
from aiortc.codecs import h264, vpx

from support.aiortc_client import Client, MovingPicture, Tone
from support.chromium import chromium, open_room, until, wait_for_video
from support.tokens import token
from support.waiting import PATIENCE_S, until_true
from test_h264 import Camera, publish, sets_once, size  # noqa: F401
from test_playback import films, make, start, change, video  # noqa: F401
from test_recording import ffmpeg, finished, gstreamer, movie_times, path_of, recording, recording_server  # noqa: F401

SLICE, IDR, SPS, PPS = 1, 5, 7, 8


def probed(path):
    """What ffprobe says of a file's video."""
    done = subprocess.run(["/usr/bin/ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "stream=profile,level,width,height,avg_frame_rate", "-of", "json", str(path)],
                          capture_output=True, text=True, timeout=60, check=True)
    (stream,) = json.loads(done.stdout)["streams"]
    return stream


def length(path):
    """A file's duration in seconds, by its own times. A decoder guesses how long the last frame lasts: for a camera with eight frames per second ffmpeg was 0.1 s short."""
    done = subprocess.run(["/usr/bin/ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def units(path):
    """The types of the NAL units of each frame of a file as ffmpeg takes it apart, without the sets that it puts before keyframes."""
    done = subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path), "-map", "0:v", "-c", "copy", "-bsf:v", "h264_mp4toannexb,h264_metadata=aud=insert",
                           "-f", "h264", "-"], capture_output=True, timeout=60, check=True)
    frames = done.stdout.split(b"\0\0\0\1\x09")[1:]
    kinds = [[part[0] & 0x1F for part in frame.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]] for frame in frames]
    return [[kind for kind in frame if kind in (SLICE, IDR)] for frame in kinds]


async def begun(server, room):
    status, found = await asyncio.to_thread(server.api, "POST", f"/v1/rooms/{room}/recordings", {})
    assert status == 201, found
    return found["sid"]


async def ended(server, sid):
    assert (await asyncio.to_thread(server.api, "DELETE", f"/v1/recordings/{sid}"))[0] == 204
    return await finished(server, sid)


async def film_recorded(server, name, room, seconds):
    """The recording of a film that is played into an empty room from its first frame to its last."""
    assert server.api("POST", "/v1/rooms", {"name": room})[0] == 201
    playback = start(server, room, file=name, paused=True)
    sid = await begun(server, room)
    change(server, playback, paused=False)
    await until_true(lambda: not server.api("GET", f"/v1/rooms/{room}/playbacks")[1]["playbacks"], seconds + 15, "the film ends")
    return await ended(server, sid)


@pytest.mark.parametrize("profile, level, size, slices", [("baseline", "3.0", "640x360", 4), ("main", "3.1", "640x360", 1), ("high", "3.1", "1600x900", 1)])
def test_E2_E7_E17_a_film_of_x264_is_recorded_with_its_frames_slices_profile_and_level(films, tmp_path, profile, level, size, slices):  # noqa: F811
    """Played into a room and recorded there: two readers find each frame of the film, all slices of a frame in one sample, and the film's profile and level; 1600 by 900 is more than level 3.1
    permits, and is flagged."""
    films.recordings = tmp_path / "recordings"
    make(films.films / "film.mp4", *video(24, size, 4), "-c:v", "libx264", "-preset", "ultrafast", "-profile:v", profile, "-level", level, "-bf", "0", "-g", "48", "-pix_fmt", "yuv420p",
         "-x264-params", f"slices={slices}:cabac={int(profile != 'baseline')}:8x8dct={int(profile == 'high')}")
    found = asyncio.run(film_recorded(films, "film.mp4", "cinema", 4))
    (track,) = found["tracks"]
    (file,) = track["files"]
    path = path_of(films, found, file)
    film, recorded, read, packets = probed(films.films / "film.mp4"), probed(path), gstreamer(path), gstreamer(path, "--packets")
    frames, _, errors = ffmpeg(path)
    kinds = units(path)
    print(f"figures: film {film}, recorded {recorded}; {frames} frames, GStreamer {packets['caps'].partition('codec_data')[0]}{packets['caps'].rpartition('profile')[2]}, "
          f"slices per sample {sorted({len(one) for one in kinds})}; level exceeded: {track.get('levelExceeded')}")
    assert not errors and "fault" not in track and track["gapCount"] == 0
    assert frames == file["samples"] == read["buffers"] == packets["buffers"] == 4 * 24 and read["rises"]
    assert profile in recorded["profile"].lower(), "x264 made another one"
    assert (recorded["profile"], recorded["level"]) == (film["profile"], film["level"]) and recorded["level"] == int(level.replace(".", ""))
    assert f"level=(string){level.removesuffix('.0')}" in packets["caps"]
    assert {len(one) for one in kinds} == {slices} and len(kinds) == frames and all(len(set(one)) == 1 for one in kinds)
    assert track.get("levelExceeded", False) == (size == "1600x900")


def test_E4_E5_E6_who_joins_late_begins_with_the_sets_in_force_and_a_keyframe_in_two_decoders(server, sets_once):  # noqa: F811
    """x264 sends its parameter sets once, and new ones in the middle of the call. Whoever joins then, aiortc (ffmpeg's decoder) and a page in Chromium, sees the size that is sent now; the first packet is
    one of sets, and no number is missing after it."""
    async def call():
        camera = Camera(640, 360)
        sender = await publish(server, "once", camera)
        async with chromium() as browser:
            early = await open_room(browser, server, "once", "early", send="nothing")
            await wait_for_video(early)
            for width, height in ((640, 360), (320, 180)):
                camera.resize(width, height)
                late = await Client().play(f"{server.url}/whep/once/phone", token(f"tv{height}", "once"))
                await size(late, height)
                page = await open_room(browser, server, "once", f"late{height}", send="nothing")
                await wait_for_video(page)
                for one in (early, page):
                    await until(one, f"martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.frameHeight === {height}))")
                (first,) = late.tap.first.values()
                packet = rtp.RtpPacket.parse(first)
                kinds = [packet.payload[0] & 0x1F] if packet.payload[0] & 0x1F != 24 else aggregated(packet.payload)
                print(f"figures: {height} lines: the first packet has NAL units of the types {kinds}; {late.tap.missing()} missing; sent so far {dict(sets_once)}")
                assert kinds[0] == SPS and PPS in kinds and late.tap.missing() == 0
                await late.close()
                assert not page.problems
                await page.close()
            assert not early.problems
        await sender.close()

    asyncio.run(call())
    assert sets_once[SPS] == 2, "once for each size"


def aggregated(payload):
    """The types of the NAL units in a STAP-A (RFC 6184, section 5.7.1)."""
    kinds, place = [], 1
    while place + 2 < len(payload):
        kinds.append(payload[place + 2] & 0x1F)
        place += 2 + int.from_bytes(payload[place:place + 2])
    return kinds


@pytest.fixture
def reordering_x264(monkeypatch):
    """aiortc's x264 with two B frames between any others. Their times leave with them, in the order in which the encoder puts them out."""
    def encode(self, frame, force_keyframe=False):
        if self.codec is None:
            self.codec = av.CodecContext.create("libx264", "w")
            self.codec.width, self.codec.height, self.codec.bit_rate, self.codec.pix_fmt = frame.width, frame.height, 800_000, "yuv420p"
            self.codec.framerate, self.codec.time_base = fractions.Fraction(15, 1), fractions.Fraction(1, 90_000)
            self.codec.options = {"bf": "2", "preset": "ultrafast", "forced-idr": "1", "x264-params": "bframes=2:b-adapt=0:rc-lookahead=0:sync-lookahead=0:threads=1"}
            self.codec.profile = "Main"
        frame.pict_type = av.video.frame.PictureType.I if force_keyframe else av.video.frame.PictureType.NONE
        packets = list(self.codec.encode(frame))
        if not packets:
            return [], frame.pts
        return self._packetize([unit for packet in packets for unit in self._split_bitstream(bytes(packet))]), packets[0].pts

    monkeypatch.setattr(h264.H264Encoder, "encode", encode)


def test_E8_frames_out_of_order_reach_the_viewer_as_they_are_and_end_the_recording_with_its_reason(recording_server, reordering_x264):  # noqa: F811
    """B frames of x264: every packet reaches the viewer, with times that go back; what was recorded until then is whole for both readers."""
    server = recording_server

    async def call():
        assert server.api("POST", "/v1/rooms", {"name": "films", "policy": {"videoCodecs": ["h264"]}})[0] == 201
        sender = await Client().publish(f"{server.url}/whip/films", token("phone", "films"), MovingPicture(320, 180))
        await sender.connected()
        viewer = await Client().play(f"{server.url}/whep/films/phone", token("viewer", "films"))
        await viewer.wait_for_frames(video=15)
        sid = await begun(server, "films")
        await until_true(lambda: "fault" in (recording(server, sid)["tracks"] or [{}])[0], 15, "the recording of the track has ended")
        frames = viewer.frames["video"]
        await viewer.wait_for_frames(video=frames + 30)
        missing, (times,) = viewer.tap.missing(), [list(one) for one in viewer.tap.stamps.values()]
        found = await ended(server, sid)
        for client in (viewer, sender):
            await client.close()
        return found, missing, times

    found, missing, times = asyncio.run(call())
    (track,) = found["tracks"]
    back = sum(b < a for a, b in zip(times, times[1:]))
    print(f"figures: {len(times)} frames reached the viewer, {back} of them with a time before the last one's, {missing} packets missing; {track['fault']} after {track['framesWritten']} frames")
    assert track["files"] and track["fault"] == "reordering_unsupported" and missing == 0 and back > len(times) / 4
    for file in track["files"]:
        frames, _, errors = ffmpeg(path_of(server, found, file))
        read = gstreamer(path_of(server, found, file))
        # The first few frames are there, in their files' order of decoding, before a recorder knows that it is another one: a decoder puts out their times in the wrong order, no more.
        assert all("monotonically" in error for error in errors) and frames == file["samples"] == read["buffers"], errors


@pytest.fixture
def stumbling_libvpx(monkeypatch):
    """aiortc's libvpx, each tenth of whose frames has the time of the one before it, and each twenty-fifth an earlier one. Counts them."""
    encode, count = vpx.Vp8Encoder.encode, [0, 0]

    def stumble(self, frame, force_keyframe=False):
        payloads, timestamp = encode(self, frame, force_keyframe)
        count[0] += 1
        back = 9_000 if count[0] % 25 == 0 else 6_000 if count[0] % 10 == 0 else 0
        count[1] += back > 0
        return payloads, max(0, timestamp - back)

    monkeypatch.setattr(vpx.Vp8Encoder, "encode", stumble)
    return count


def test_E9_times_that_repeat_and_go_back_become_times_that_rise_in_the_file(recording_server, stumbling_libvpx):  # noqa: F811
    """Of libvpx: no frame is lost by its time, and for both readers each one is later than the one before it."""
    server = recording_server

    async def call():
        sender = await Client().publish(f"{server.url}/whip/talk", token("phone", "talk"), MovingPicture(320, 180))
        await sender.connected()
        viewer = await Client().play(f"{server.url}/whep/talk/phone", token("viewer", "talk"))
        await viewer.wait_for_frames(video=15)
        sid = await begun(server, "talk")
        await until_true(lambda: (recording(server, sid)["tracks"] or [{"framesWritten": 0}])[0]["framesWritten"] >= 110, PATIENCE_S, "110 frames are recorded")
        found = await ended(server, sid)
        for client in (viewer, sender):
            await client.close()
        return found

    found = asyncio.run(call())
    (track,) = found["tracks"]
    (file,) = track["files"]
    path = path_of(server, found, file)
    frames, seconds, errors = ffmpeg(path)
    read = gstreamer(path)
    ((_, times),) = movie_times(path)
    print(f"figures: {stumbling_libvpx[1]} of {stumbling_libvpx[0]} frames with a time that does not rise; {frames} in the file, {seconds} s, GStreamer {read['buffers']}")
    assert not errors and "fault" not in track and track["gapCount"] == 0 and track["framesLost"] == 0
    assert frames == file["samples"] == read["buffers"] == len(times) > 90 and stumbling_libvpx[1] > 10
    assert read["rises"] and all(a < b for a, b in zip(times, times[1:])) and abs(seconds - frames / 15) < 0.5


def test_E14_what_is_lost_is_listed_where_both_readers_find_it_missing(recording_server):  # noqa: F811
    """For 1.5 s nothing of a phone's video and audio gets through, and nothing of it is sent again: the API and the file beside the recording name the packets and the time; in
    the video's file nothing is shown for as long, the audio's lasts as long as it did."""
    server, lost = recording_server, {"video": [], "audio": []}

    async def call():
        sender = await Client().publish(f"{server.url}/whip/talk", token("phone", "talk"), MovingPicture(640, 360), Tone())
        await sender.connected()
        viewer = await Client().play(f"{server.url}/whep/talk/phone", token("viewer", "talk"))
        await viewer.wait_for_frames(video=15, audio=50)
        sid = await begun(server, "talk")
        await asyncio.sleep(4)
        send, kinds = sender.dtls._send_rtp, {one.sender._ssrc: one.kind for one in sender.peer.getTransceivers()}

        async def cut(data):
            kind = kinds.get(int.from_bytes(data[8:12]))
            if data[1] in range(192, 224):
                await send(data)
            elif kind:
                lost[kind].append(int.from_bytes(data[2:4]))

        async def never(_):
            pass

        for one in sender.peer.getTransceivers():
            one.sender._retransmit = never
        sender.dtls._send_rtp = cut
        # A second and a half of the phone's own time, however long this process takes for it.
        await until_true(lambda: len(lost["audio"]) >= 75, PATIENCE_S, "a second and a half is lost")
        sender.dtls._send_rtp = send
        await asyncio.sleep(4)
        found = await ended(server, sid)
        for client in (viewer, sender):
            await client.close()
        return found

    found = asyncio.run(call())
    aside = next(server.recordings.rglob("recording.json"))
    for track in found["tracks"]:
        kind, (file,), gaps = track["kind"], track["files"], track["gaps"]
        path = path_of(server, found, file)
        frames, seconds, errors = ffmpeg(path)
        read, times = gstreamer(path), movie_times(path)[0][1]
        print(f"figures: {kind}: {len(lost[kind])} packets lost from {lost[kind][0]} to {lost[kind][-1]}; {gaps}; {track['framesLost']} frames lost; "
              f"{file['durationMilliseconds']} ms, ffmpeg {seconds} s, GStreamer {read['buffers']} to {read['end']:.2f}, longest {read['longest']}")
        assert not errors and "fault" not in track and gaps[0]["reason"] == "loss"
        # As many packets as were lost are listed, by the recorder's own count.
        assert sum(gap["lastSequence"] - gap["firstSequence"] + 1 for gap in gaps) == sum(gap["packets"] for gap in gaps) == len(lost[kind])
        whole = sum(gap["milliseconds"] for gap in gaps) / 1000
        assert 1.3 < whole < 3 and abs(seconds - file["durationMilliseconds"] / 1000) < 0.1 and read["rises"]
        if kind == "video":
            begin, end = max(zip(times, times[1:]), key=lambda pair: pair[1] - pair[0])
            at = gaps[0]["atMilliseconds"] / 1000 - file["startMilliseconds"] / 1000
            print(f"figures: ffmpeg shows nothing from {begin:.2f} to {end:.2f} s; listed at {at:.2f} s of the file")
            assert abs(track["framesLost"] - 15 * whole) < 4 and frames == file["samples"] == read["buffers"]
            assert abs(read["longest"][0] - begin) < 0.02 and abs(read["longest"][1] - end) < 0.02
            assert abs(end - begin - whole) < 0.2 and abs(at - begin) < 0.3
        else:
            assert seconds > 6 and abs(read["end"] - seconds) < 0.1
    assert '"loss"' in aside.read_text()


def read_bytes(server):
    """What the server has read from files and sockets so far."""
    return int(dict(line.split(": ") for line in pathlib.Path(f"/proc/{server.process.pid}/io").read_text().splitlines())["rchar"])


def test_E12_a_film_is_read_as_fast_as_it_is_played_beside_a_live_camera_and_both_recordings_are_whole(films, tmp_path):  # noqa: F811
    """A file gives whatever is asked of it at once. Of a film of some 8 Mbit/s the server has read at most what it has sent, a mebibyte that waits, and what all else takes; a browser's camera beside it loses nothing."""
    server = films
    server.recordings = tmp_path / "recordings"
    make(server.films / "film.mp4", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30:duration=12", "-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-preset", "ultrafast",
         "-profile:v", "baseline", "-g", "60", "-pix_fmt", "yuv420p", "-b:v", "8M", "-maxrate", "8M", "-bufsize", "2M")
    size = (server.films / "film.mp4").stat().st_size

    async def call():
        async with chromium() as browser:
            ada = await open_room(browser, server, "cinema", "ada", codec="VP8")
            bob = await open_room(browser, server, "cinema", "bob", send="nothing")
            await wait_for_video(bob)
            sid = await begun(server, "cinema")
            await asyncio.sleep(3)
            # What a second takes without the film: the camera's packets, the questions of this test.
            before = read_bytes(server)
            await asyncio.sleep(2)
            beside = (read_bytes(server) - before) / 2
            playback = start(server, "cinema", file="film.mp4", paused=True)
            opened, loop = read_bytes(server), asyncio.get_running_loop()
            change(server, playback, paused=False)
            since, waits, played = loop.time(), [], 0
            while played < 300:
                await asyncio.sleep(1)
                # What is sent between the two looks lowers the figure.
                taken, elapsed = read_bytes(server), loop.time() - since
                status, shown = server.api("GET", f"/v1/playbacks/{playback['sid']}")
                if status == 404:
                    break
                played = shown["tracks"][0]["samplesSent"]
                waits.append(taken - opened - 1.5 * beside * elapsed - size * played / 360)
            await until_true(lambda: not server.api("GET", "/v1/rooms/cinema/playbacks")[1]["playbacks"], 15, "the film ends")
            took = loop.time() - since
            found = await ended(server, sid)
            assert not ada.problems and not bob.problems
            return found, waits, took

    found, waits, took = asyncio.run(call())
    print(f"figures: a film of {size} bytes was played in {took:.1f} s; read ahead of what was sent, at most: {max(waits):.0f} bytes")
    # A mebibyte of packets, and as much again for a keyframe, and for rates that vary.
    assert max(waits) < 3 * 1_048_576 < size / 3 and 11 < took < 20
    tracks = {(track["identity"], track["kind"]): track for track in found["tracks"]}
    assert set(tracks) == {("ada", "audio"), ("ada", "video"), ("player", "video")}
    for (identity, kind), track in tracks.items():
        assert "fault" not in track and track["gapCount"] == 0, track
        for file in track["files"]:
            path = path_of(server, found, file)
            frames, _, errors = ffmpeg(path)
            read, seconds = gstreamer(path), length(path)
            print(f"figures: {identity} {kind}: {file['samples']} samples, {file['durationMilliseconds']} ms; ffmpeg {frames} frames, ffprobe {seconds} s, GStreamer {read['buffers']}")
            assert not errors and read["rises"] and abs(seconds - file["durationMilliseconds"] / 1000) < 0.01
            assert kind == "audio" or frames == file["samples"] == read["buffers"]
        if identity == "player":
            assert sum(file["samples"] for file in track["files"]) == 360
