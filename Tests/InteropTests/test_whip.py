"""Encoders publish over WHIP, players play over WHEP, browsers watch."""
import asyncio
import pathlib
import subprocess

import imageio_ffmpeg
import pytest
from support.aiortc_client import Client, MovingPicture, Tone
from support.chromium import chromium, open_room, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.tokens import token

GST_CLIENT = pathlib.Path(__file__).parent / "support/gst_client.py"


def test_aiortc_publishes_and_plays(server):
    async def run():
        sender = await Client().publish(f"{server.url}/whip/studio", token("phone", "studio"), MovingPicture(), Tone())
        await sender.connected()
        player = await Client().play(f"{server.url}/whep/studio/phone", token("tv", "studio"))
        await player.wait_for_frames(video=20, audio=50)
        red = player.last["video"].to_ndarray(format="rgb24")[100:200, 8:40].reshape(-1, 3).mean(axis=0)
        assert abs(red - MovingPicture.RED).max() < 40, red
        assert await player.delete() in (200, 204)
        assert await sender.delete() in (200, 204)
        await player.close()
        await sender.close()

    asyncio.run(run())


def test_follow_mode_plays_the_dominant_speaker_without_renegotiation(server):
    async def run():
        player = await Client().play(f"{server.url}/whep/stage", token("tv", "stage"))
        first = await Client().publish(f"{server.url}/whip/stage", token("ada", "stage"), MovingPicture(), Tone())
        await first.connected()
        await player.wait_for_frames(video=20, audio=20, timeout_s=25)
        await first.delete()
        await first.close()
        seen = player.frames["video"]
        second = await Client().publish(f"{server.url}/whip/stage", token("bob", "stage"), MovingPicture(), Tone())
        await second.connected()
        await player.wait_for_frames(video=seen + 30, timeout_s=25)
        await second.close()
        await player.close()

    asyncio.run(run())


def test_chromium_publishes_and_aiortc_plays(server):
    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "down", "ada", codec="VP8", simulcast=0)
            player = await Client().play(f"{server.url}/whep/down/ada", token("tv", "down"))
            await player.wait_for_frames(video=20, audio=50)
            await player.close()

    asyncio.run(run())


@pytest.mark.parametrize("flags", [[], ["-whip_flags", "dtls_active"]], ids=["server-is-dtls-client", "server-is-dtls-server"])
def test_ffmpeg_publishes_and_chromium_plays(server, flags):
    async def run():
        command = [
            imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-loglevel", "warning", "-re",
            "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=15", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000",
            "-t", "40", "-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "30",
            "-pix_fmt", "yuv420p", "-b:v", "800k", "-c:a", "libopus", "-ar", "48000", "-ac", "2",
            "-f", "whip", *flags, "-authorization", token("encoder", "tv"), f"{server.url}/whip/tv",
        ]
        encoder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            async with chromium() as browser:
                bob = await open_room(browser, server, "tv", "bob", send="nothing")
                stats = await wait_for_video(bob, timeout_s=25)
                assert "h264" in stats[0]["codec"].lower()
        finally:
            encoder.terminate()
            encoder.wait(10)

    asyncio.run(run())


@pytest.fixture(scope="module")
def lab():
    # GStreamer's libnice has no loopback candidate, so server and client each get an address of their own.
    with Lab("mgst", 2) as lab:
        yield lab


@pytest.mark.parametrize("codec", ["H264", "VP8"])
def test_gstreamer_publishes_and_chromium_plays(lab, codec):
    async def run(server):
        sender = subprocess.Popen(gst(lab, 1, "publish", f"{server.url}/whip/gst", token("gst", "gst"), codec, 30))
        try:
            async with chromium(executable=lab.wrapper(2, "/usr/lib/chromium/chromium")) as browser:
                bob = await open_room(browser, server, "gst", "bob", send="nothing", token=token("bob", "gst"))
                stats = await wait_for_video(bob, timeout_s=25)
                assert codec.lower() in stats[0]["codec"].lower()
        finally:
            sender.terminate()
            sender.wait(10)

    with_server(lab, run)


@pytest.mark.parametrize("codec", ["H264", "VP8"])
def test_chromium_publishes_and_gstreamer_plays(lab, codec):
    async def run(server):
        async with chromium(executable=lab.wrapper(2, "/usr/lib/chromium/chromium")) as browser:
            await open_room(browser, server, "gst", "ada", codec=codec, token=token("ada", "gst"), simulcast=0)
            player = await asyncio.create_subprocess_exec(
                *gst(lab, 1, "play", f"{server.url}/whep/gst/ada", token("tv", "gst"), codec, 10), stdout=asyncio.subprocess.PIPE)
            out, _ = await asyncio.wait_for(player.communicate(), 30)
            counts = __import__("json").loads(out.splitlines()[-1])
            assert counts["video"] > 50 and counts["audio"] > 100, counts

    with_server(lab, run)


def gst(lab, client, *arguments):
    return ["ip", "netns", "exec", lab.client(client), "/usr/bin/python3", str(GST_CLIENT), *map(str, arguments)]


def with_server(lab, run):
    server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
    try:
        asyncio.run(run(server))
    finally:
        server.stop()
