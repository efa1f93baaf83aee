"""LiveKit's own Python SDK (libwebrtc inside) as a client, judged by the frames that it decodes.

The SDK's core ends its process where a server breaks an obligation, so scenarios run in a process of their own.
"""
import asyncio
import contextlib
import multiprocessing
import time

import numpy

from .tokens import token
from .waiting import PATIENCE_S

RED, GREEN, BLUE = (220, 30, 30), (30, 200, 30), (30, 30, 220)


def _child(pipe, scenario, args, seconds):
    async def bounded():
        # Where time is over, the traceback shows what the scenario waited for.
        return await asyncio.wait_for(scenario(*args), seconds)

    try:
        pipe.send(("ok", asyncio.run(bounded())))
    except BaseException as error:  # noqa: BLE001: reported to the parent, which fails
        import traceback
        pipe.send(("failed", f"{error!r}\n{traceback.format_exc()}"))


def run(scenario, *args, seconds=100):
    """What `scenario(*args)`, a coroutine function, returns in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, scenario, args, seconds))
    process.start()
    theirs.close()
    try:
        assert ours.poll(seconds + 10), f"the scenario took more than {seconds} s, and its process answers no more"
        try:
            state, result = ours.recv()
        except EOFError:
            process.join(5)
            raise AssertionError(f"the SDK ended its process: {process.exitcode}") from None
        assert state == "ok", result
        return result
    finally:
        process.kill()
        process.join()


async def until(condition, what, seconds=PATIENCE_S):
    """Waits until `condition()` is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not after {seconds} s: {what}"
        await asyncio.sleep(0.02)


class Eye:
    """Decodes a received video: sizes and mean colours of its newest frames, from each eighth pixel of each eighth row."""

    def __init__(self, rtc, track):
        self.frames, self.size, self.colour, self.track = 0, None, None, track
        self.stream = rtc.VideoStream(track, format=rtc.VideoBufferType.RGBA)
        self.task = asyncio.create_task(self._run())

    async def _run(self):
        async for event in self.stream:
            frame = event.frame
            self.frames += 1
            self.size = (frame.width, frame.height)
            pixels = numpy.frombuffer(frame.data, dtype=numpy.uint8).reshape(frame.height, frame.width, 4)
            self.colour = tuple(int(value) for value in pixels[::8, ::8, :3].reshape(-1, 3).mean(axis=0))

    def shows(self, colour):
        return self.colour is not None and all(abs(a - b) < 40 for a, b in zip(self.colour, colour))

    async def more(self, count=10, seconds=PATIENCE_S):
        """Waits for so many further frames."""
        wanted = self.frames + count
        await until(lambda: self.frames >= wanted, f"{count} more frames", seconds)


class Ear:
    """Decodes a received audio track: how loud it is."""

    def __init__(self, rtc, track):
        self.frames, self.level = 0, 0
        self.stream = rtc.AudioStream(track)
        self.task = asyncio.create_task(self._run())

    async def _run(self):
        async for event in self.stream:
            self.frames += 1
            samples = numpy.frombuffer(event.frame.data, dtype=numpy.int16)
            self.level = int(numpy.abs(samples.astype(numpy.int32)).mean())


class Client:
    """One participant. `single`: one peer connection (`/rtc/v1`), else two (`/rtc`)."""

    def __init__(self, server, identity, room="r", *, single=True, **grants):
        from livekit import rtc
        self.rtc, self.server, self.identity, self.single = rtc, server, identity, single
        self.token = token(identity, room, **grants)
        self.room = rtc.Room()
        self.eyes, self.ears, self.events, self.tasks = {}, {}, [], []
        self.room.on("track_subscribed", self._subscribed)
        for name in ("track_unsubscribed", "track_muted", "track_unmuted", "participant_disconnected", "disconnected",
                     "reconnecting", "reconnected", "local_track_subscribed", "participant_attributes_changed",
                     "participant_metadata_changed", "participant_name_changed", "active_speakers_changed",
                     "room_metadata_changed", "track_unpublished", "data_received", "connection_quality_changed",
                     "participant_permissions_changed", "token_refreshed",
                     "transcription_received", "sip_dtmf_received", "data_track_published", "data_track_unpublished"):
            self.room.on(name, lambda *values, name=name: self.events.append((name, values)))

    def _subscribed(self, track, publication, participant):
        key = (participant.identity, publication.name)
        if track.kind == self.rtc.TrackKind.KIND_VIDEO:
            self.eyes[key] = Eye(self.rtc, track)
        else:
            self.ears[key] = Ear(self.rtc, track)

    async def connect(self, **options):
        await self.room.connect(self.server, self.token, self.rtc.RoomOptions(single_peer_connection=self.single, **options))
        return self

    def seen(self, name):
        return [values for event, values in self.events if event == name]

    async def publish_video(self, colour=RED, size=(1280, 720), name="camera", fps=15, **options):
        source = self.rtc.VideoSource(*size)
        track = self.rtc.LocalVideoTrack.create_video_track(name, source)
        options = {"source": self.rtc.TrackSource.SOURCE_CAMERA, **options}
        pixels = numpy.zeros((size[1], size[0], 4), dtype=numpy.uint8)
        pixels[:, :, :3], pixels[:, :, 3] = colour, 255
        # Something moves, so that there is something to encode.
        strip = numpy.random.default_rng(1).integers(0, 255, (size[1], 64, 3), dtype=numpy.uint8)

        async def feed():
            count = 0
            while True:
                x = (count * 8) % (size[0] - 64)
                picture = pixels.copy()
                picture[:, x:x + 64, :3] = strip
                source.capture_frame(self.rtc.VideoFrame(*size, self.rtc.VideoBufferType.RGBA, picture.tobytes()))
                count += 1
                await asyncio.sleep(1 / fps)

        self.tasks.append(asyncio.create_task(feed()))
        return await self._publish(track, options)

    async def publish_audio(self, name="microphone", **options):
        source = self.rtc.AudioSource(48000, 1)
        track = self.rtc.LocalAudioTrack.create_audio_track(name, source)
        options = {"source": self.rtc.TrackSource.SOURCE_MICROPHONE, **options}
        wave = (8000 * numpy.sin(numpy.arange(480) * 2 * numpy.pi * 400 / 48000)).astype(numpy.int16).tobytes()

        async def feed():
            while True:
                await source.capture_frame(self.rtc.AudioFrame(wave, 48000, 1, 480))

        self.tasks.append(asyncio.create_task(feed()))
        return await self._publish(track, options)

    async def _publish(self, track, options):
        """Publishes and waits until something of the track is sent. An SDK that is to negotiate again while it waits for an answer waits forever
        (livekit/rust-sdks #1252; measured with 1.2.1: one of 30 who published two tracks at once never offered the second one)."""
        publication = await self.room.local_participant.publish_track(track, self.rtc.TrackPublishOptions(**options))

        async def sent():
            while not any(one.outbound_rtp.sent.bytes_sent for one in await track.get_stats() if one.WhichOneof("stats") == "outbound_rtp"):
                await asyncio.sleep(0.02)

        await asyncio.wait_for(sent(), PATIENCE_S)
        return publication

    async def sees(self, identity, colour=RED, name="camera", seconds=PATIENCE_S):
        """Waits until it decodes another's video of the right colour."""
        key = (identity, name)
        await until(lambda: key in self.eyes and self.eyes[key].shows(colour), f"{self.identity} sees {key}", seconds)
        return self.eyes[key]

    async def decodes(self, identity, colour=RED, count=10, name="camera"):
        """Waits for so many further frames of another's video. Where the SDK is given the track anew meanwhile, as after a reconnect, those of the new one count."""
        key, eye = (identity, name), await self.sees(identity, colour, name)
        before = eye.frames

        def further():
            current = self.eyes[key]
            return (current.frames - before if current is eye else current.frames) if current.shows(colour) else 0

        try:
            await until(lambda: further() >= count, f"{self.identity} decodes {count} more frames of {key}")
        except AssertionError as error:
            stats = await asyncio.wait_for(self.eyes[key].track.get_stats(), PATIENCE_S)
            raise AssertionError(f"{error}; {further()} were decoded, of {'one' if self.eyes[key] is eye else 'another'} track; events: "
                                 f"{[event for event, _ in self.events]}; {stats}") from error

    def eye_of(self, identity):
        """What it decodes of another's video, whatever that is called."""
        return next((eye for (who, _), eye in self.eyes.items() if who == identity), None)

    async def hears(self, identity, name="microphone", seconds=PATIENCE_S):
        key = (identity, name)
        await until(lambda: key in self.ears and self.ears[key].level > 500, f"{self.identity} hears {key}", seconds)
        return self.ears[key]

    async def close(self):
        for task in self.tasks:
            task.cancel()
        with contextlib.suppress(Exception):
            await self.room.disconnect()


async def greet(*clients):
    """Until each has heard another: what is sent before somebody's channels are open does not reach it."""
    async def heard():
        while not all(client.seen("data_received") for client in clients):
            for client in clients:
                await client.room.local_participant.publish_data(b"hello", topic="first")
            await asyncio.sleep(0.5)
    await asyncio.wait_for(heard(), PATIENCE_S)
