"""aiortc as a phone-like WHIP publisher and as a WHEP player, with taps on what really arrives.

    python aiortc_client.py publish URL TOKEN [HOST]   publishes from an address until it is killed; prints "connected" when it is
    python aiortc_client.py watch URL TOKEN HOST       plays until it is killed; prints five times a second how many frames it decoded
"""
import asyncio
import contextlib
import contextvars
import fractions
import json
import socket
import sys
import time
from collections import Counter, defaultdict

import aioice.ice
import aiohttp
import numpy
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcdtlstransport import SRTP_PROFILES
from av import AudioFrame, VideoFrame

if __package__:
    from .waiting import PATIENCE_S
else:  # It runs as a program.
    from waiting import PATIENCE_S

# aioice leaves loopback out; these tests live on it.
_hosts = contextvars.ContextVar("hosts", default=["127.0.0.1"])
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: _hosts.get()


@contextlib.contextmanager
def on_host(host):
    """Candidates that are gathered within are of this address."""
    previous = _hosts.set([host])
    try:
        yield
    finally:
        _hosts.reset(previous)


#: What Linux holds for a socket by itself, 208 kB, is two seconds of a small video: a test that got no processor for longer would lose packets that the
#: server has sent.
BUFFER_BYTES = 4 << 20
SO_RCVBUFFORCE = 33  # socket(7): beyond net.core.rmem_max, for root.


def hold_more(receiver):
    """A larger buffer for packets that nobody has read yet."""
    for option in (SO_RCVBUFFORCE, socket.SO_RCVBUF):
        with contextlib.suppress(PermissionError):
            return receiver.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)


CM_ONLY = [profile for profile in SRTP_PROFILES if profile.openssl_profile == b"SRTP_AES128_CM_SHA1_80"]


class MovingPicture(VideoStreamTrack):
    """15 frames a second whose left 64 columns are always the same colour, so that a viewer can check it."""

    RED = (200, 40, 40)
    BLUE = (40, 40, 200)

    def __init__(self, width=640, height=360, colour=RED):
        super().__init__()
        self._width, self._height, self._count, self._colour = width, height, 0, colour
        self.enabled = asyncio.Event()
        self.enabled.set()

    async def recv(self):
        await asyncio.sleep(1 / 15)
        await self.enabled.wait()
        picture = numpy.zeros((self._height, self._width, 3), numpy.uint8)
        picture[:, :, 1] = (numpy.arange(self._width) + 4 * self._count) % 256
        picture[:, :64] = self._colour
        frame = VideoFrame.from_ndarray(picture, format="rgb24")
        frame.pts, frame.time_base = self._count * 6000, fractions.Fraction(1, 90000)
        self._count += 1
        return frame


class Tone(MediaStreamTrack):
    """A tone that rises and falls like syllables; `amplitude` may change while it plays, 0 is silence."""

    kind = "audio"

    def __init__(self, amplitude=8000):
        super().__init__()
        self._samples, self._began, self.amplitude = 0, None, amplitude

    async def recv(self):
        self._began = self._began or time.monotonic()
        await asyncio.sleep(max(0, self._began + self._samples / 48000 - time.monotonic()))
        t = (self._samples + numpy.arange(960)) / 48000
        syllables = 0.55 + 0.45 * numpy.sin(2 * numpy.pi * 4 * t)
        wave = (self.amplitude * syllables * numpy.sin(2 * numpy.pi * 440 * t)).astype(numpy.int16).reshape(1, -1)
        frame = AudioFrame.from_ndarray(wave, format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48000, self._samples, fractions.Fraction(1, 48000)
        self._samples += 960
        return frame


class Tap:
    """Every datagram of one transport as it comes in: kinds and bytes as on the wire, RTP and RTCP in the clear."""

    def __init__(self, dtls):
        self.datagrams, self.bytes = Counter(), Counter()
        self.rtp = defaultdict(list)  # SSRC -> (arrival, extended sequence number, bytes of payload and header)
        self.first = {}  # SSRC -> the first packet of it
        self.stamps = defaultdict(list)  # SSRC -> the times of its frames, in the order in which they came
        self.rtcp = []
        self.latest, self.beside = {}, []  # SSRC -> time of the latest RTP packet; that for each of `rtcp` when it came
        receive, on_rtp, on_rtcp = dtls.transport._recv, dtls._handle_rtp_data, dtls._handle_rtcp_data

        async def tapped_receive():
            data = await receive()
            first = data[0]
            media = "rtcp" if 192 <= data[1] <= 223 else "rtp"
            kind = media if 128 <= first <= 191 else "dtls" if 20 <= first <= 63 else "other"
            self.datagrams[kind] += 1
            self.bytes[kind] += len(data)
            return data

        async def tapped_rtp(data, arrival_time_ms):
            ssrc, sequence = int.from_bytes(data[8:12]), int.from_bytes(data[2:4])
            seen = self.rtp[ssrc]
            self.first.setdefault(ssrc, data)
            if seen:
                last = seen[-1][1]
                sequence = last + (sequence - last + 0x8000) % 0x10000 - 0x8000
            seen.append((time.monotonic(), sequence, len(data)))
            stamp = int.from_bytes(data[4:8])
            if stamp != self.latest.get(ssrc):
                self.stamps[ssrc].append(stamp)
            self.latest[ssrc] = stamp
            await on_rtp(data, arrival_time_ms=arrival_time_ms)

        async def tapped_rtcp(data):
            self.rtcp.append(data)
            self.beside.append(dict(self.latest))
            await on_rtcp(data)

        dtls.transport._recv, dtls._handle_rtp_data, dtls._handle_rtcp_data = tapped_receive, tapped_rtp, tapped_rtcp

    def missing(self):
        """Sequence numbers that never came, over all streams."""
        return sum(max(n) - min(n) + 1 - len(n) for n in ({s for _, s, _ in seen} for seen in self.rtp.values() if seen))

    def packets(self):
        return sum(len(seen) for seen in self.rtp.values())

    def longest_silence(self, since, ssrc=None, still=None):
        """The longest time without any RTP packet, or without one of `ssrc`, after `since`, in seconds; `still` (Standstills) does not count."""
        streams = self.rtp.values() if ssrc is None else [self.rtp[ssrc]]
        times = sorted([since] + [at for seen in streams for at, _, _ in seen if at > since] + [time.monotonic()])
        return max(b - a - (still.within(a, b) if still else 0) for a, b in zip(times, times[1:]))


class Client:
    """One WHIP or WHEP session. `mangle` edits the offer on its way out."""

    def __init__(self, host="127.0.0.1", mangle=lambda sdp: sdp, srtp_profiles=None):
        self.peer, self.location, self.etag = RTCPeerConnection(RTCConfiguration(iceServers=[])), None, None
        self.host, self.mangle, self._srtp_profiles = host, mangle, srtp_profiles
        self.frames = {"audio": 0, "video": 0}
        self.last = {}
        self._tasks = []
        self.peer.on("track", lambda track: self._tasks.append(asyncio.ensure_future(self._consume(track))))

    async def publish(self, url, token, *tracks, headers=None):
        for track in tracks:
            self.peer.addTrack(track)
        await self._exchange(url, token, headers)
        return self

    async def play(self, url, token):
        for kind in ("audio", "video"):
            self.peer.addTransceiver(kind, direction="recvonly")
        await self._exchange(url, token)
        return self

    async def _exchange(self, url, token, more=None):
        with on_host(self.host):
            await self.peer.setLocalDescription(await self.peer.createOffer())
        self._token, self.offer = token, self.mangle(self.peer.localDescription.sdp)
        headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token}", **(more or {})}
        async with aiohttp.ClientSession() as session:
            async with session.post(url, data=self.offer, headers=headers) as reply:
                self.answer = await reply.text()
                assert reply.status == 201, (reply.status, self.answer)
                self.location = str(reply.url.join(type(reply.url)(reply.headers["Location"])))
                self.etag = reply.headers.get("ETag")
        await self.peer.setRemoteDescription(RTCSessionDescription(self.answer, "answer"))
        for protocol in self.dtls.transport._connection._protocols:
            hold_more(protocol.transport.get_extra_info("socket"))
        if self._srtp_profiles:
            self.dtls._srtp_profiles = self._srtp_profiles
        self.tap = Tap(self.dtls)

    @property
    def dtls(self):
        return self.peer.getTransceivers()[0].sender.transport

    async def connected(self, timeout_s=PATIENCE_S):
        for _ in range(int(timeout_s / 0.05)):
            if self.peer.connectionState == "connected":
                return
            assert self.peer.connectionState != "failed"
            await asyncio.sleep(0.05)
        raise TimeoutError(self.peer.connectionState)

    async def send_raw(self, datagram):
        """Bytes as they are, from the socket and to the address of the call."""
        await self.dtls.transport._send(datagram)

    async def _consume(self, track):
        while True:
            frame = await track.recv()
            self.frames[track.kind] += 1
            self.last[track.kind] = frame

    async def wait_for_frames(self, timeout_s=PATIENCE_S, **wanted):
        for _ in range(int(timeout_s / 0.1)):
            if all(self.frames[kind] >= count for kind, count in wanted.items()):
                return
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{self.frames} of {wanted}")

    async def wait_for_colour(self, colour, timeout_s=PATIENCE_S):
        """Waits until the left edge of the decoded picture has `colour`; how long it took."""
        started = time.monotonic()
        while time.monotonic() - started < timeout_s:
            if "video" in self.last and abs(self.colour() - colour).max() < 40:
                return time.monotonic() - started
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{self.colour() if 'video' in self.last else 'no picture'} instead of {colour}")

    def colour(self):
        return self.last["video"].to_ndarray(format="rgb24")[100:200, 8:40].reshape(-1, 3).mean(axis=0)

    async def delete(self):
        async with aiohttp.ClientSession() as session:
            async with session.delete(self.location, headers={"Authorization": f"Bearer {self._token}"}) as reply:
                return reply.status

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await self.peer.close()


async def _publish_until_killed(url, token, host="127.0.0.1"):
    client = await Client(host).publish(url, token, MovingPicture(320, 180), Tone())
    await client.connected()
    print("connected", flush=True)
    await asyncio.sleep(3600)


async def _watch_until_killed(url, token, host):
    client = await Client(host).play(url, token)
    while True:
        await asyncio.sleep(0.2)
        height = client.last["video"].height if "video" in client.last else 0
        print(json.dumps({**client.frames, "height": height}), flush=True)


if __name__ == "__main__":
    asyncio.run({"publish": _publish_until_killed, "watch": _watch_until_killed}[sys.argv[1]](*sys.argv[2:]))
