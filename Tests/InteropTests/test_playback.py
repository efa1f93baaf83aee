"""Files and recordings that are played into a room, seen by a real browser."""
import asyncio
import os
import struct
import subprocess

import imageio_ffmpeg
import pytest

from conftest import running
from support.chromium import chromium, open_room, stands_still, until, wait_for_video
from support.waiting import PATIENCE_S, until_true
from support.tokens import admin_token, token
from test_recording import decodes_from_each_sync_point, ffmpeg, finished, gstreamer
from test_recording import recording as show_recording

RECEIVED = """(async () => {
    const all = {};
    (await martlet.room.sub.getStats()).forEach((one) => { if (one.type === "inbound-rtp") all[one.kind] = one; });
    return all;
})()"""


def make(path, *options):
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-v", "error", "-y", *options, str(path)], check=True, timeout=90)


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full(kind, *numbers):
    return box(kind, bytes(4), b"".join(struct.pack(">I", number) for number in numbers))


def vp8_movie(path, rate, size, seconds):
    """VP8 in MP4, which ffmpeg does not write: the frames of an IVF file behind tables of our own, the index at the end."""
    ivf = path.with_suffix(".ivf")
    make(ivf, *video(rate, size, seconds), "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "300k", "-g", "24", "-pix_fmt", "yuv420p")
    data, frames, offset = ivf.read_bytes(), [], 32
    while offset < len(data):
        length = struct.unpack_from("<I", data, offset)[0]
        frames.append(data[offset + 12:offset + 12 + length])
        offset += 12 + length
    width, height = (int(number) for number in size.split("x"))
    entry = box(b"vp08", bytes(7), b"\1", bytes(16), struct.pack(">HH", width, height), bytes(50),
                box(b"vpcC", bytes([1, 0, 0, 0, 0, 10, 0x82, 2, 2, 2, 0, 0])))
    keys = [number + 1 for number, frame in enumerate(frames) if not frame[0] & 1]
    start = box(b"ftyp", b"isom", bytes(4))
    tables = box(b"stbl", box(b"stsd", bytes(4), struct.pack(">I", 1), entry), full(b"stts", 1, len(frames), 1), full(b"stss", len(keys), *keys),
                 full(b"stsc", 1, 1, len(frames), 1), full(b"stsz", 0, len(frames), *map(len, frames)), full(b"stco", 1, len(start) + 8))
    header = full(b"mdhd", 0, 0, rate, len(frames), 0)
    media = box(b"mdia", header, box(b"hdlr", bytes(8), b"vide", bytes(13)), box(b"minf", tables))
    movie = box(b"moov", full(b"mvhd", 0, 0, rate, len(frames), *[0] * 20), box(b"trak", full(b"tkhd", 0, 0, 1, *[0] * 17), media))
    path.write_bytes(start + box(b"mdat", *frames) + movie)


def video(rate, size, seconds):
    return ["-f", "lavfi", "-i", f"testsrc=size={size}:rate={rate}:duration={seconds}"]


SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=4"]
H264 = ["-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-crf", "36", "-g", "60", "-pix_fmt", "yuv420p"]


@pytest.fixture
def films(tmp_path):
    folder = tmp_path / "films"
    (folder / "new").mkdir(parents=True)
    with running(extra=f"playback:\n  directory: {folder}\nrecording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n") as server:
        server.films, server.secret = folder, tmp_path / "secret.mp4"
        yield server


def start(server, room, **request):
    status, found = server.api("POST", f"/v1/rooms/{room}/playbacks", request)
    assert status == 201, found
    return found


def show(server, playback):
    status, found = server.api("GET", f"/v1/playbacks/{playback['sid']}")
    assert status == 200, found
    return found


def change(server, playback, **patch):
    assert server.api("PATCH", f"/v1/playbacks/{playback['sid']}", patch)[0] == 204


async def shown(server, playback, condition, timeout_s=PATIENCE_S):
    """Waits until the API shows a playback as `condition` wants it."""
    for _ in range(timeout_s * 10):
        if condition(found := show(server, playback)):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


async def counts(page):
    """Frames that arrived whole, and decoded, and packets of audio, once nothing more comes."""
    async def look():
        got = await page.evaluate(RECEIVED)
        return tuple(got.get("video", {}).get(name, 0) for name in ("framesReceived", "framesDecoded")), got.get("audio", {}).get("packetsReceived", 0)
    return await stands_still(look)


async def begun(server, page, room, **request):
    """A playback that waits at its beginning until the page, the only viewer, is to be sent its tracks, and then goes on: every frame has a viewer."""
    playback = start(server, room, paused=True, **request)

    def is_awaited():
        all_of_them = server.api("GET", f"/v1/rooms/{room}/subscriptions")[1]["subscriptions"]
        return sum(one["publisher"] == playback["participant"] and one["state"] == "active" for one in all_of_them) == len(playback["tracks"])

    await until_true(is_awaited, PATIENCE_S, "the page answers for all tracks of the playback")
    # The page's own side of it.
    await until(page, "martlet.room.sub?.connectionState === 'connected'")
    await page.wait_for_timeout(500)
    change(server, playback, paused=False)
    return playback


@pytest.mark.judging
def test_A17_E3_a_file_of_60_frames_per_second_at_1080p_arrives_frame_for_frame(films):
    """H.264 and Opus: paused, continued, looped, sought, and ended; as many frames in the browser as the server says that it sent."""
    server = films
    make(server.films / "new/film.mp4", *video(60, "1920x1080", 4), *SOUND, *H264, "-c:a", "libopus", "-ac", "2", "-movflags", "+faststart")

    async def play():
        async with chromium() as browser:
            bob = await open_room(browser, server, "cinema", "bob", send="nothing")
            playback = await begun(server, bob, "cinema", file="new/film.mp4", identity="film", name="The film", loop=True)
            assert playback["state"] == "paused" and 3900 < playback["durationMilliseconds"] < 4100, playback
            await wait_for_video(bob, frames=90)
            change(server, playback, paused=True)
            paused = await shown(server, playback, lambda found: found["state"] == "paused")
            first, sound = await counts(bob)
            sent = {track["kind"]: track["samplesSent"] for track in show(server, playback)["tracks"]}
            print(f"figures: 1080p60: {sent['video']} frames sent, {first[0]} arrived, {first[1]} decoded; {sent['audio']} packets of audio, {sound} arrived;"
                  f" {paused['packetsLate']} packets late")
            assert first[0] == sent["video"] and sound == sent["audio"]
            def tracks():
                return server.api("GET", "/v1/rooms/cinema/tracks")[1]["tracks"]

            # Silence is noticed after a while without packets.
            await until_true(lambda: all(track["silent"] for track in tracks()), PATIENCE_S, "both tracks are silent")
            assert len(tracks()) == 2 and not any(track["muted"] for track in tracks()), tracks()
            change(server, playback, positionMilliseconds=3500, paused=False, loop=False)
            status, found = server.api("GET", "/v1/rooms/cinema/playbacks")
            assert status == 200 and [one["sid"] for one in found["playbacks"]] == [playback["sid"]]
            for _ in range(100):
                if not server.api("GET", "/v1/rooms/cinema/playbacks")[1]["playbacks"]:
                    break
                await asyncio.sleep(0.1)
            await until(bob, "!document.body.textContent.includes('The film')")
            assert not bob.problems

    asyncio.run(play())
    events = [event for event in server.api("GET", "/v1/rooms/cinema/events?after=0", headers={"Accept": "application/json"})[1]["events"]
              if event["type"].startswith("playback")]
    assert [(event["type"], event.get("reason")) for event in events] == [("playbackStarted", None), ("playbackEnded", "finished")]
    metrics = server.get_private("/metrics")[1]
    assert "martlet_playbacks 0" in metrics


def test_E15_each_sync_point_of_a_recorded_file_is_one_from_which_a_decoder_starts(films, tmp_path):
    """Films of real encoders with a keyframe each second are played into rooms and recorded: a decoder starts at each, and two readers find every frame."""
    server = films
    make(server.films / "h264.mp4", *video(24, "320x240", 5), *H264, "-g", "24")
    vp8_movie(server.films / "vp8.mp4", 24, "320x240", 5)

    async def record():
        begun = {}
        for codec in ("h264", "vp8"):
            assert server.api("POST", "/v1/rooms", {"name": codec})[0] == 201
            playback = start(server, codec, file=f"{codec}.mp4", paused=True)
            status, one = server.api("POST", f"/v1/rooms/{codec}/recordings", {})
            assert status == 201, one
            change(server, playback, paused=False)
            begun[codec] = one["sid"]
        for codec, sid in begun.items():
            await until_true(lambda: not server.api("GET", f"/v1/rooms/{codec}/playbacks")[1]["playbacks"], PATIENCE_S, "the film ends")
            assert server.api("DELETE", f"/v1/recordings/{sid}")[0] == 204
        return [await finished(server, sid) for sid in begun.values()]

    for found in asyncio.run(record()):
        (file,) = [file for track in found["tracks"] for file in track["files"]]
        path = tmp_path / "recordings" / found["roomSid"] / found["sid"] / file["name"]
        points, (frames, _, errors) = decodes_from_each_sync_point(path), ffmpeg(path)
        print(f"figures: {file['codec']}: {file['samples']} frames, decodes from each of {points} sync points")
        assert points >= 4 and frames == file["samples"] == gstreamer(path)["buffers"] and not errors


def encode(path, codec):
    encoder = {"VP9": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"],
               "AV1": ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8"]}[codec]
    make(path, *video(24, "640x360", 2), *encoder, "-b:v", "300k", "-g", "24", "-pix_fmt", "yuv420p")


@pytest.mark.judging
@pytest.mark.at_night
def test_A17_films_of_24_frames_per_second_are_played_in_their_codec(films):
    """VP8, VP9 and AV1, one after the other into one room: as many frames decoded as sent. By day test_webm.py shows the same codecs and rate, of WebM."""
    server = films
    codecs = ("VP8", "VP9", "AV1")
    vp8_movie(server.films / "VP8.mp4", 24, "640x360", 2)
    for codec in codecs[1:]:
        encode(server.films / f"{codec}.mp4", codec)

    async def play():
        async with chromium() as browser:
            for codec in codecs:
                bob = await open_room(browser, server, codec, "bob", send="nothing")
                playback = await begun(server, bob, codec, file=f"{codec}.mp4", identity="film", loop=True)
                assert [track["codec"] for track in playback["tracks"]] == [codec.lower()]
                await wait_for_video(bob, frames=55)
                change(server, playback, paused=True)
                got, _ = await counts(bob)
                sent = show(server, playback)["tracks"][0]["samplesSent"]
                print(f"figures: {codec} at 24 frames/s: {sent} sent, {got[0]} arrived, {got[1]} decoded")
                assert got[0] == got[1] == sent
                assert server.api("DELETE", f"/v1/playbacks/{playback['sid']}")[0] == 204
                assert server.api("GET", f"/v1/playbacks/{playback['sid']}")[0] == 404
                await bob.close()

    asyncio.run(play())


def test_a_recording_is_played_back(films):
    """What Chromium sent as VP8 and Opus comes back from the recorder's files."""
    server = films

    async def record():
        async with chromium() as browser:
            ada = await open_room(browser, server, "lecture", "ada", codec="VP8")
            bob = await open_room(browser, server, "lecture", "bob", send="nothing")
            await wait_for_video(bob)
            recording = server.api("POST", "/v1/rooms/lecture/recordings", {"participant": "ada"})[1]
            # A video's file begins with a keyframe, which a busy browser sends late.
            await until_true(lambda: sum(bool(track["files"]) for track in show_recording(server, recording["sid"])["tracks"]) == 2,
                             PATIENCE_S, "both tracks have a file")
            await asyncio.sleep(3)
            assert server.api("POST", "/v1/rooms/lecture/playbacks", {"recording": recording["sid"]})[0] == 409
            assert server.api("DELETE", f"/v1/recordings/{recording['sid']}")[0] == 204
            found = await finished(server, recording["sid"])
            await ada.close()
            # In a loop: whoever is sent no video for want of bandwidth goes on with the file's next keyframe, which is its first.
            playback = await begun(server, bob, "lecture", recording=recording["sid"], identity="yesterday", loop=True)
            assert {track["codec"] for track in playback["tracks"]} == {"vp8", "opus"}, found
            await wait_for_video(bob, frames=30)
            assert server.api("DELETE", f"/v1/playbacks/{playback['sid']}")[0] == 204

    asyncio.run(record())


def test_what_cannot_be_played_is_refused_with_its_reason(films):
    server = films
    make(server.films / "film.mp4", *video(15, "320x180", 1), *SOUND, *H264, "-c:a", "libopus", "-shortest")
    make(server.films / "aac.mp4", *video(15, "320x180", 1), *SOUND, *H264, "-c:a", "aac", "-shortest")
    make(server.films / "reordered.mp4", *video(15, "320x180", 1), "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p")
    (server.films / "text.mp4").write_text("no movie at all")
    server.secret.write_bytes((server.films / "film.mp4").read_bytes())
    (server.films / "link.mp4").symlink_to(server.secret)
    (server.films / "way").symlink_to(server.secret.parent)
    os.mkfifo(server.films / "pipe.mp4")
    assert server.api("POST", "/v1/rooms", {"name": "cinema"})[0] == 201
    assert server.api("POST", "/v1/rooms", {"name": "talk", "policy": {"videoCodecs": ["vp8"]}})[0] == 201

    def refused(room, **request):
        status, found = server.api("POST", f"/v1/rooms/{room}/playbacks", request)
        return status, found["code"], found.get("detail", "")

    for name in ("../secret.mp4", "/etc/passwd", "link.mp4", "way/secret.mp4", "pipe.mp4", "new", "none.mp4", "./film.mp4", "http://127.0.0.1/a.mp4",
                 str(server.secret)):
        assert refused("cinema", file=name)[:2] == (404, "file_not_found"), name
    for name, word in (("aac.mp4", "mp4a"), ("reordered.mp4", "reordered_frames"), ("text.mp4", "not_a_movie")):
        status, code, detail = refused("cinema", file=name)
        assert (status, code) == (409, "not_playable") and word in detail, detail
    status, code, detail = refused("talk", file="film.mp4")
    assert (status, code) == (409, "codec_not_allowed") and "h264" in detail.lower(), detail
    assert refused("nowhere", file="film.mp4")[:2] == (404, "room_not_found")
    assert refused("cinema", recording="RC_none")[:2] == (404, "recording_not_found")
    assert refused("cinema")[:2] == (400, "invalid_request")
    assert refused("cinema", file="film.mp4", positionMilliseconds=-1)[:2] == (400, "invalid_request")
    first = start(server, "cinema", file="film.mp4", paused=True)
    assert refused("cinema", file="film.mp4")[:2] == (409, "identity_taken")
    assert server.request("POST", "/v1/rooms/cinema/playbacks", {"file": "film.mp4"}, {"Authorization": f"Bearer {token('eve', 'cinema')}"})[0] == 403
    assert server.request("GET", f"/v1/playbacks/{first['sid']}", None, {"Authorization": f"Bearer {token('eve', 'cinema')}"})[0] == 403
    assert server.request("DELETE", f"/v1/playbacks/{first['sid']}", None, {"Authorization": f"Bearer {admin_token()}"})[0] == 204
    # Removed by an operator, it ends, too.
    again = start(server, "cinema", file="film.mp4", loop=True)
    assert server.api("DELETE", "/v1/rooms/cinema/participants/player")[0] in (200, 204)
    assert server.api("GET", f"/v1/playbacks/{again['sid']}")[0] == 404
