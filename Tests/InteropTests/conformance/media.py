"""A peer connection of the suite's own, by aiortc: what it sends is made here, what it receives counts where it is decoded."""
import asyncio
import time

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from support.aiortc_client import MovingPicture, Tone, on_host


class Peer:
    """One peer connection; descriptions go in and out as text."""

    def __init__(self, host):
        self.host, self.connection = host, RTCPeerConnection(RTCConfiguration(iceServers=[]))
        #: Frames that were decoded, by the `mid` on which they came.
        self.frames, self.messages, self.channels, self._tasks = {}, [], {}, []
        self.connection.on("track", self._received)
        self.connection.on("datachannel", self._opened)

    def _received(self, track):
        mid = next(one.mid for one in self.connection.getTransceivers() if one.receiver.track is track)
        self._tasks.append(asyncio.ensure_future(self._decode(mid, track)))

    async def _decode(self, mid, track):
        while True:
            await track.recv()
            self.frames[mid] = self.frames.get(mid, 0) + 1

    def _opened(self, channel):
        channel.on("message", self.messages.append)

    def channel(self, label, **options):
        channel = self.connection.createDataChannel(label, **options)
        self._opened(channel)
        self.channels[label] = channel
        return channel

    async def offer(self, *tracks):
        """The description of an offer that sends `tracks`."""
        for track in tracks:
            self.connection.addTrack(track)
        with on_host(self.host):
            await self.connection.setLocalDescription(await self.connection.createOffer())
        return self.connection.localDescription.sdp

    async def accept(self, answer):
        await self.connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def answer(self, offer):
        """The description that answers the server's offer. A later one waits until the connection is up: what aiortc learns of while it connects, it never
        receives."""
        if self.connection.remoteDescription:
            await self.connected()
        await self.connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        with on_host(self.host):
            await self.connection.setLocalDescription(await self.connection.createAnswer())
        return self.connection.localDescription.sdp

    async def until(self, condition, what, seconds=10):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"not after {seconds} s: {what}; the connection is {self.connection.connectionState}")
            await asyncio.sleep(0.02)

    async def connected(self):
        await self.until(lambda: self.connection.connectionState == "connected", "connected")

    async def decodes(self, kinds):
        """Waits until ten frames were decoded of so many sections."""
        await self.until(lambda: sum(count >= 10 for count in self.frames.values()) >= kinds, f"frames of {kinds} tracks, not {self.frames}")

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await self.connection.close()


def camera():
    return MovingPicture(320, 180)


def microphone():
    return Tone()
