"""Recordings of what browsers send besides VP8 and H.264, each read by ffmpeg, by GStreamer and by Chromium's video element; and the console's player in Firefox. Run by name and at night."""
import asyncio
import subprocess

import pytest

from support.chromium import chromium, one_stream, open_room, until, wait_for_video
from support.firefox import firefox
from test_console_recordings import VIDEO, archive, operator, record  # noqa: F401
from test_recording import decodes_from_each_sync_point, ffmpeg, finished, gstreamer, path_of, recording_server  # noqa: F401

#: Opus with discontinuous transmission, which a receiver has to ask for.
DTX = """(() => {
    const set = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
        const opus = /a=rtpmap:(\\d+) opus/i.exec(sdp)?.[1];
        return set.call(this, { type, sdp: opus ? sdp.replaceAll(`a=fmtp:${opus} `, `a=fmtp:${opus} usedtx=1;`) : sdp });
    };
})()"""
AUDIO_SENT = """(async () => {
    const reports = [...(await martlet.room.pub.getStats()).values()];
    const one = reports.find((report) => report.type === "outbound-rtp" && report.kind === "audio");
    return [one.packetsSent, one.bytesSent, reports.find((report) => report.id === one.codecId)?.sdpFmtpLine ?? ""];
})()"""


async def recorded(server, browser, seconds, script=None, midway=None, **options):
    """(the recording, what `options` sent of audio meanwhile) of a call of one who sends and one who watches; `midway` runs in the sender's page in the second third."""
    ada = await open_room(browser, server, "lecture", "ada", script=script, **options)
    bob = await open_room(browser, server, "lecture", "bob", send="nothing")
    await wait_for_video(bob)
    _, begun = server.api("POST", "/v1/rooms/lecture/recordings", {})
    before = await ada.evaluate(AUDIO_SENT)
    await asyncio.sleep(seconds / 3)
    if midway:
        await ada.evaluate(midway)
    await asyncio.sleep(seconds * 2 / 3)
    after = await ada.evaluate(AUDIO_SENT)
    assert server.api("DELETE", f"/v1/recordings/{begun['sid']}")[0] == 204
    assert not ada.problems and not bob.problems
    return await finished(server, begun["sid"]), (after[0] - before[0], after[1] - before[1], after[2])


async def watched(browser, server, found, file):
    """(frames, width, seconds) as Chromium's video element shows the whole file, over a link."""
    status, link = server.api("POST", f"/v1/recordings/{found['sid']}/links", {"file": file["name"]})
    assert status == 201, link
    page = await browser.new_page(bypass_csp=True)
    await page.goto(f"{server.url}/reference")
    await page.evaluate("""(url) => {
        const video = document.createElement("video");
        [video.id, video.muted, video.src] = ["recording-video", true, url];
        document.body.prepend(video);
        video.play();
    }""", link["url"])
    await until(page, f"{VIDEO}.ended || {VIDEO}.error", 30)
    shown = await page.evaluate(f"[{VIDEO}.error?.message ?? '', {VIDEO}.getVideoPlaybackQuality().totalVideoFrames, {VIDEO}.videoWidth, {VIDEO}.duration]")
    await page.close()
    assert not shown[0], shown
    return shown[1:]


def sizes_shown(path):
    """{(width, height)} of a film's frames as ffmpeg's decoder gives them."""
    done = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=width,height", "-of", "csv=p=0", str(path)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return {tuple(int(one) for one in line.split(",")[:2]) for line in done.stdout.split()}


@pytest.mark.parametrize("codec, mode", [("VP9", None), ("VP9", "L3T3_KEY"), ("VP9", "L3T3"), ("AV1", None), ("AV1", "L3T3"), ("AV1", "L3T3_KEY")])
def test_scalable_video_is_recorded_so_that_every_reader_shows_it(recording_server, codec, mode):
    """One frame per sample, of the largest size, in each reader; ffmpeg decodes from each sync point."""
    server = recording_server

    async def call():
        async with chromium() as browser:
            found, _ = await recorded(server, browser, 8, script=one_stream(mode) if mode else None, codec=codec)
            (track,) = [one for one in found["tracks"] if one["kind"] == "video"]
            assert "fault" not in track and track["gapCount"] == 0 and track["files"], track
            return found, [(file, await watched(browser, server, found, file)) for file in track["files"]]

    found, files = asyncio.run(call())
    for file, (frames, width, seconds) in files:
        path = path_of(server, found, file)
        decoded, _, errors = ffmpeg(path)
        read = gstreamer(path)
        print(f"figures: {codec} {mode}: {file['samples']} samples of {file['width']}x{file['height']}, ffmpeg {decoded}, GStreamer {read}, Chromium {frames} of {width} in {seconds} s")
        assert not errors, errors
        assert read["buffers"] == decoded == file["samples"]
        assert width == file["width"] and frames >= 0.9 * file["samples"] and abs(seconds - file["durationMilliseconds"] / 1000) < 0.1
        print(f"figures: decodes from each of {decodes_from_each_sync_point(path)} sync points")
    assert sum(file["durationMilliseconds"] for file, _ in files) > 5_000
    assert files[-1][0]["width"] == 1280, "the camera's whole size"


#: Bandwidth for a camera of 320 by 180 for some seconds, and then for its whole size again.
NARROW = """(async () => {
    const [sender] = martlet.room.pub.getSenders().filter((sender) => sender.track?.kind === "video");
    const limit = (bitrate) => {
        const parameters = sender.getParameters();
        parameters.encodings.forEach((one) => { one.maxBitrate = bitrate; });
        return sender.setParameters(parameters);
    };
    await limit(150_000);
    setTimeout(() => limit(2_000_000), 5_000);
})()"""


@pytest.mark.parametrize("codec", ["VP9", "AV1"])
def test_scalable_video_whose_largest_layer_pauses_is_shown_whole_by_every_reader(recording_server, codec):
    """The browser leaves its larger layers out while it has no bandwidth for them: the frames of that time are smaller, and none is left out."""
    server = recording_server

    async def call():
        async with chromium() as browser:
            found, _ = await recorded(server, browser, 15, script=one_stream("L3T3_KEY"), midway=NARROW, codec=codec)
            (track,) = [one for one in found["tracks"] if one["kind"] == "video"]
            assert "fault" not in track and track["gapCount"] == 0 and track["files"], track
            return found, [(file, await watched(browser, server, found, file)) for file in track["files"]]

    found, files = asyncio.run(call())
    sizes = set()
    for file, (frames, _, seconds) in files:
        path = path_of(server, found, file)
        decoded, _, errors = ffmpeg(path)
        read = gstreamer(path)
        sizes |= sizes_shown(path)
        print(f"figures: {codec}: {file['samples']} samples, ffmpeg {decoded}, GStreamer {read['buffers']}, Chromium {frames} in {seconds} s")
        assert not errors, errors
        assert read["buffers"] == decoded == file["samples"] and frames >= 0.9 * file["samples"]
        print(f"figures: decodes from each of {decodes_from_each_sync_point(path)} sync points")
    print(f"figures: {codec}: sizes {sorted(sizes)}")
    assert len(sizes) > 1 and max(sizes) == (1280, 720), "the largest layer was there, and was not"


@pytest.mark.parametrize("form", ["dtx", "red"])
def test_opus_with_pauses_and_redundant_audio_lasts_as_long_as_it_did_in_every_reader(recording_server, form):
    """The page's tone comes and goes: with DTX there are pauses without packets, which are filled; of RED the blocks are undone."""
    server = recording_server
    if form == "red":
        server.api("POST", "/v1/rooms", {"name": "lecture", "policy": {"audioCodecs": ["red", "opus"]}})

    async def call():
        async with chromium() as browser:
            found, sent = await recorded(server, browser, 12, script=DTX if form == "dtx" else None, codec="VP8", **({"red": 1} if form == "red" else {}))
            (track,) = [one for one in found["tracks"] if one["kind"] == "audio"]
            (file,) = track["files"]
            return found, track, file, sent, await watched(browser, server, found, file)

    found, track, file, sent, (_, _, seconds) = asyncio.run(call())
    path = path_of(server, found, file)
    _, decoded, errors = ffmpeg(path)
    read = gstreamer(path)
    wanted = file["durationMilliseconds"] / 1000
    print(f"figures: {form}: {sent} sent, {file['samples']} samples, {wanted} s; ffmpeg {decoded} s, GStreamer {read}, Chromium {seconds} s; {track['gapCount']} gaps")
    assert not errors, errors
    assert "fault" not in track and track["gapCount"] == 0 and file["codec"] == "opus"
    assert abs(decoded - wanted) < 0.1 and abs(read["end"] - wanted) < 0.2 and abs(seconds - wanted) < 0.1 and abs(wanted - 12) < 1
    if form == "dtx":
        # Of the tone's pauses in 12 s some 43 packets are not sent (two runs); the sender's count and the file end some packets apart.
        assert "usedtx=1" in sent[2] and file["samples"] - sent[0] > 20, "there were pauses, and they are filled"
    else:
        assert sent[1] / sent[0] > 60, "packets carry another one"


def test_a_video_is_watched_with_its_participants_audio_and_goes_on_when_its_link_expires(archive):  # noqa: F811
    """In Firefox, by keyboard, from files of single tracks: the audio is where the video is, and a link that is over is made anew at the same place."""
    server = archive

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "den", "ada", codec="H264")
            page = await operator(browser, server, "#/recordings?room=den")
            await record(page, server, "den", files="tracks", seconds=8)
            place = await page.evaluate("location.hash")
        async with firefox() as fox:
            await fox.open(f"{server.url}/{place}", size=(360, 740))
            await fox.wait_for("document.querySelectorAll('#recording-files button').length >= 4")
            assert await fox.evaluate("Math.max(...[...document.querySelectorAll('main, main *')].map((one) => one.getBoundingClientRect().right))") <= 360
            # The player's audio is on no page: it is found where it is made, and links last two seconds.
            await fox.run("""
                const fetched = window.fetch;
                window.links = [];
                window.fetch = (url, options) => {
                    if (!String(url).endsWith("/links")) return fetched(url, options);
                    const body = JSON.stringify({ ...JSON.parse(options.body), seconds: 2 });
                    window.links.push(body);
                    return fetched(url, { ...options, body });
                };
                const play = HTMLMediaElement.prototype.play;
                HTMLMediaElement.prototype.play = function () {
                    if (this instanceof HTMLAudioElement) window.audio = this;
                    return play.call(this);
                };
                [...document.querySelectorAll('#recording-files tr')].find((one) => one.textContent.includes('camera')).querySelector('button').focus();
                document.activeElement.click();""")
            await fox.wait_for(f"{VIDEO}.currentTime > 1 && !window.audio?.paused")
            apart = await fox.evaluate(f"Math.abs(window.audio.currentTime - {VIDEO}.currentTime)")
            print(f"figures: audio and video are {apart:.2f} s apart in their files, {await fox.evaluate('window.links.length')} links")
            assert apart < 0.6, "a video begins up to a few hundred milliseconds before or after its audio"
            assert await fox.evaluate(f"document.activeElement === {VIDEO}")
            # Over: whatever the browser had not fetched is refused; what is opened anew is good.
            await asyncio.sleep(2.5)
            await fox.run(f"{VIDEO}.src = {VIDEO}.src; {VIDEO}.load();")
            await fox.wait_for(f"{VIDEO}.readyState >= 2 && !{VIDEO}.error && window.links.length >= 3")
            assert await fox.evaluate("document.getElementById('recording-video-problem').textContent") == ""
            await fox.run("document.getElementById('recording-audio').click()")
            await fox.wait_for("window.audio.muted")
            await fox.run("document.getElementById('recording-close').click()")
            await fox.wait_for("document.getElementById('recording-player').hidden && window.audio.paused")

    asyncio.run(run())
