"""aiortc as a phone-like WHIP publisher and as a WHEP player."""
import asyncio
import fractions

import aioice.ice
import aiohttp
import numpy
from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import MediaStreamTrack
from av import AudioFrame, VideoFrame

# aioice leaves loopback out; these tests live on it.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]


class MovingPicture(VideoStreamTrack):
    """15 frames a second whose left 64 columns are always the same red, so that a viewer can check the colour."""

    RED = (200, 40, 40)

    def __init__(self, width=640, height=360):
        super().__init__()
        self._width, self._height, self._count = width, height, 0
        self.enabled = asyncio.Event()
        self.enabled.set()

    async def recv(self):
        await asyncio.sleep(1 / 15)
        await self.enabled.wait()
        picture = numpy.zeros((self._height, self._width, 3), numpy.uint8)
        picture[:, :, 1] = (numpy.arange(self._width) + 4 * self._count) % 256
        picture[:, :64] = self.RED
        frame = VideoFrame.from_ndarray(picture, format="rgb24")
        frame.pts, frame.time_base = self._count * 6000, fractions.Fraction(1, 90000)
        self._count += 1
        return frame


class Tone(MediaStreamTrack):
    kind = "audio"

    def __init__(self):
        super().__init__()
        self._samples = 0

    async def recv(self):
        await asyncio.sleep(0.02)
        t = (self._samples + numpy.arange(960)) / 48000
        wave = (8000 * numpy.sin(2 * numpy.pi * 440 * t)).astype(numpy.int16).reshape(1, -1)
        frame = AudioFrame.from_ndarray(wave, format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48000, self._samples, fractions.Fraction(1, 48000)
        self._samples += 960
        return frame


class Client:
    """One WHIP or WHEP session."""

    def __init__(self):
        self.peer, self.location, self.etag = RTCPeerConnection(), None, None
        self.frames = {"audio": 0, "video": 0}
        self.last = {}
        self._tasks = []
        self.peer.on("track", lambda track: self._tasks.append(asyncio.ensure_future(self._consume(track))))

    async def publish(self, url, token, *tracks):
        for track in tracks:
            self.peer.addTrack(track)
        await self._exchange(url, token)
        return self

    async def play(self, url, token):
        for kind in ("audio", "video"):
            self.peer.addTransceiver(kind, direction="recvonly")
        await self._exchange(url, token)
        return self

    async def _exchange(self, url, token):
        await self.peer.setLocalDescription(await self.peer.createOffer())
        headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as session:
            async with session.post(url, data=self.peer.localDescription.sdp, headers=headers) as reply:
                text = await reply.text()
                assert reply.status == 201, (reply.status, text)
                self.location = str(reply.url.join(type(reply.url)(reply.headers["Location"])))
                self.etag = reply.headers.get("ETag")
        self._token = token
        await self.peer.setRemoteDescription(RTCSessionDescription(text, "answer"))

    async def connected(self, timeout_s=10):
        for _ in range(int(timeout_s / 0.05)):
            if self.peer.connectionState == "connected":
                return
            assert self.peer.connectionState != "failed"
            await asyncio.sleep(0.05)
        raise TimeoutError(self.peer.connectionState)

    async def _consume(self, track):
        while True:
            frame = await track.recv()
            self.frames[track.kind] += 1
            self.last[track.kind] = frame

    async def wait_for_frames(self, timeout_s=15, **wanted):
        for _ in range(int(timeout_s / 0.1)):
            if all(self.frames[kind] >= count for kind, count in wanted.items()):
                return
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{self.frames} of {wanted}")

    async def delete(self):
        async with aiohttp.ClientSession() as session:
            async with session.delete(self.location, headers={"Authorization": f"Bearer {self._token}"}) as reply:
                return reply.status

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await self.peer.close()
