"""Publishers and players of the matrix: plain clients, each in a network namespace, with their standard offers and nothing added."""
import asyncio
import contextlib
import json
import pathlib
import sys

import imageio_ffmpeg
from support.chromium import EXECUTABLE, chromium
from support.firefox import firefox
from support.tokens import token

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
PLAIN = pathlib.Path(__file__).with_name("plain.js").read_text()
ROOM = "matrix"
SIZE = {"width": 1280, "height": 720, "framesPerSecond": 15}
SIMULCAST = [{"rid": "q", "scaleResolutionDownBy": 4, "maxBitrate": 150_000}, {"rid": "h", "scaleResolutionDownBy": 2, "maxBitrate": 500_000},
             {"rid": "f", "maxBitrate": 1_500_000}]


class Page:
    """A page of a browser that runs plain.js."""

    def __init__(self, evaluate):
        self.evaluate = evaluate

    async def call(self, name, *arguments):
        return await self.evaluate(f"plain.{name}({', '.join(json.dumps(one) for one in arguments)})")


@contextlib.asynccontextmanager
async def chromium_page(lab, number, server):
    async with chromium(executable=lab.wrapper(number, EXECUTABLE)) as browser:
        page = await browser.new_page(bypass_csp=True)
        await page.goto(server.url + "/")
        await page.evaluate(PLAIN)
        yield Page(page.evaluate)


@contextlib.asynccontextmanager
async def firefox_page(lab, number, server):
    async with firefox(lab.client(number)) as browser:
        await browser.open(server.url + "/")
        await browser.run(PLAIN)
        yield Page(browser.evaluate)


@contextlib.asynccontextmanager
async def process(*command, stdout=asyncio.subprocess.DEVNULL):
    one = await asyncio.create_subprocess_exec(*map(str, command), stdout=stdout, stderr=asyncio.subprocess.DEVNULL)
    try:
        yield one
    finally:
        if one.returncode is None:
            one.terminate()
            try:
                await asyncio.wait_for(one.wait(), 5)
            except TimeoutError:
                one.kill()
                await one.wait()


# Publishers: who they are, what they send, and how they leave their larger layers out.


class BrowserPublisher:
    def __init__(self, browser, codec, mode=None, bitrate=1_500_000):
        self.browser, self.codec, self.mode = browser, codec, mode
        self.layers = 3 if mode == "simulcast" else int(mode[1]) if mode else 1
        # Without a mode Chromium sends these codecs as one stream with spatial layers.
        inside = {"scalabilityMode": "L1T3"} if codec in ("VP9", "AV1") else {}
        self.encodings = [{**one, **inside} for one in SIMULCAST] if mode == "simulcast" else [{"maxBitrate": bitrate, **({"scalabilityMode": mode} if mode else {})}]
        self.is_thinned = mode == "L1T3"
        # What the smaller layers take, with something to spare: a link of this rate makes a switch.
        self.narrow = 550 if self.is_thinned else 350
        self.height = SIZE["height"]

    @contextlib.asynccontextmanager
    async def publish(self, lab, server):
        async with (chromium_page if self.browser == "Chromium" else firefox_page)(lab, 1, server) as page:
            result = await page.call("publish", f"{server.url}/whip/{ROOM}", token("publisher", ROOM),
                                     {"codec": self.codec, "encodings": self.encodings, **SIZE})
            assert result == "created", result
            self.page = page
            await self._all_layers()
            yield

    async def _all_layers(self):
        """Encoders begin their layers one by one, as their estimate grows."""
        before = []
        for _ in range(30):
            await asyncio.sleep(1)
            now = [one.get("frames") or 0 for one in await self.page.call("sent")]
            full = (max([one.get("height") or 0 for one in await self.page.call("sent")], default=0)) == SIZE["height"]
            if full and before and len(now) == len(before) and all(b > a for a, b in zip(before, now)):
                return
            before = now
        raise AssertionError(f"not all layers after 30 s: {await self.page.call('sent')}")

    async def leave_out(self, are_out):
        """Stops the larger layers, or sends them again."""
        if self.mode == "simulcast":
            await self.page.call("sendLayers", 1 if are_out else 3)
        else:
            await self.page.call("limit", 150_000 if are_out else self.encodings[0]["maxBitrate"])


class ProcessPublisher:
    """A publisher without layers, in a process of its own."""
    layers, is_thinned, narrow, height = 1, False, None, 0

    def __init__(self, codec, command):
        self.codec, self.command = codec, command

    @contextlib.asynccontextmanager
    async def publish(self, lab, server):
        command = self.command(f"{server.url}/whip/{ROOM}", token("publisher", ROOM))
        async with process("ip", "netns", "exec", lab.client(1), *command) as one:
            for _ in range(100):
                await asyncio.sleep(0.1)
                status, body = server.api("GET", f"/v1/rooms/{ROOM}/tracks")
                if status == 200 and any(track["kind"] == "video" for track in body["tracks"]):
                    break
                assert one.returncode is None, "the publisher ended"
            await asyncio.sleep(2)
            yield


def gstreamer(codec):
    return ProcessPublisher(codec, lambda url, bearer: ["/usr/bin/python3", SUPPORT / "gst_client.py", "publish", url, bearer, codec, 600])


def ffmpeg():
    # A keyframe every 2 s: it is asked for them and cannot make any.
    return ProcessPublisher("H264", lambda url, bearer: [
        imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=15",
        "-t", "600", "-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "30",
        "-pix_fmt", "yuv420p", "-b:v", "600k", "-an", "-f", "whip", "-authorization", bearer, url])


def aiortc():
    return ProcessPublisher("VP8", lambda url, bearer: [sys.executable, SUPPORT / "aiortc_client.py", "publish", url, bearer, "10.77.1.2"])


PUBLISHERS = {
    "Chromium VP8 x3": BrowserPublisher("Chromium", "VP8", "simulcast"),
    "Chromium VP9 x3": BrowserPublisher("Chromium", "VP9", "simulcast"),
    "Chromium AV1 x3": BrowserPublisher("Chromium", "AV1", "simulcast"),
    "Chromium VP9 L3T3_KEY": BrowserPublisher("Chromium", "VP9", "L3T3_KEY"),
    "Chromium VP9 L3T3": BrowserPublisher("Chromium", "VP9", "L3T3"),
    "Chromium AV1 L3T3": BrowserPublisher("Chromium", "AV1", "L3T3"),
    "Chromium AV1 L1T3": BrowserPublisher("Chromium", "AV1", "L1T3", 900_000),
    "Chromium H264 x3": BrowserPublisher("Chromium", "H264", "simulcast"),
    "Firefox VP8 x3": BrowserPublisher("Firefox", "VP8", "simulcast"),
    "Firefox AV1": BrowserPublisher("Firefox", "AV1"),
    "GStreamer VP8": gstreamer("VP8"),
    "GStreamer H264": gstreamer("H264"),
    "ffmpeg H264": ffmpeg(),
    "aiortc VP8": aiortc(),
}

# Players: what they decode, and whether they report what their link carries.


class BrowserPlayer:
    reports_bandwidth = True

    def __init__(self, open_page, codecs):
        self.open_page, self.codecs = open_page, codecs

    @contextlib.asynccontextmanager
    async def play(self, lab, server, identity):
        async with self.open_page(lab, 2, server) as page:
            result = await page.call("play", f"{server.url}/whep/{ROOM}/publisher", token(identity, ROOM))
            assert result == "created", result
            yield lambda: page.call("received")


class ProcessPlayer:
    def __init__(self, codecs, command, reports_bandwidth):
        self.codecs, self.command, self.reports_bandwidth = codecs, command, reports_bandwidth

    @contextlib.asynccontextmanager
    async def play(self, lab, server, identity):
        command = self.command(f"{server.url}/whep/{ROOM}/publisher", token(identity, ROOM))
        async with process("ip", "netns", "exec", lab.client(2), *command, stdout=asyncio.subprocess.PIPE) as one:
            latest = {"video": 0, "height": 0}

            async def read():
                async for line in one.stdout:
                    with contextlib.suppress(ValueError):
                        latest.update(json.loads(line))

            reader = asyncio.create_task(read())

            async def received():
                return {"frames": latest["video"], "height": latest["height"]}

            try:
                yield received
            finally:
                reader.cancel()


PLAYERS = {
    "Chromium": BrowserPlayer(chromium_page, {"VP8", "VP9", "AV1", "H264"}),
    "Firefox": BrowserPlayer(firefox_page, {"VP8", "VP9", "AV1"}),
    # webrtcbin 1.22 has neither transport-wide feedback nor REMB.
    "GStreamer": ProcessPlayer({"VP8", "VP9", "H264"}, lambda url, bearer: [
        "/usr/bin/python3", SUPPORT / "gst_client.py", "watch", url, bearer, "any", 120], False),
    "aiortc": ProcessPlayer({"VP8", "H264"}, lambda url, bearer: [
        sys.executable, SUPPORT / "aiortc_client.py", "watch", url, bearer, "10.77.2.2"], True),
}
