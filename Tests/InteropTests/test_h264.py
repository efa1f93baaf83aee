"""H.264 whose parameter sets come once, and change: decoded by ffmpeg's decoder (aiortc), encoded by x264."""
import asyncio
from collections import Counter

import pytest
from aiortc.codecs import h264

from support.aiortc_client import Client, MovingPicture
from support.tokens import token
from support.waiting import PATIENCE_S, until_true

SPS, PPS, IDR = 7, 8, 5


@pytest.fixture
def sets_once(monkeypatch):
    """x264 repeats its parameter sets before each IDR; here they leave only when they are others than the last. Counts what leaves, by type of NAL unit."""
    split, last, left = h264.H264Encoder._split_bitstream, {}, Counter()

    def once(data):
        for unit in split(data):
            kind = unit[0] & 0x1F
            if kind in (SPS, PPS) and last.get(kind) == unit:
                continue
            if kind == SPS:
                # A picture parameter set belongs to its sequence parameter set, and leaves with it.
                last.pop(PPS, None)
            last[kind] = unit
            left[kind] += 1
            yield unit

    monkeypatch.setattr(h264.H264Encoder, "_split_bitstream", staticmethod(once))
    return left


class Camera(MovingPicture):
    """Its size may change while it films."""

    def resize(self, width, height):
        self._width, self._height = width, height

    @property
    def filmed(self):
        return self._count


async def publish(server, room, camera):
    assert server.api("POST", "/v1/rooms", {"name": room, "policy": {"videoCodecs": ["h264"]}})[0] == 201
    sender = await Client().publish(f"{server.url}/whip/{room}", token("phone", room), camera)
    await sender.connected()
    return sender


async def player(server, room, name):
    return await Client().play(f"{server.url}/whep/{room}/phone", token(name, room))


async def size(client, height):
    """Waits until the decoder puts out frames of this height."""
    await until_true(lambda: "video" in client.last and client.last["video"].height == height, PATIENCE_S, f"a frame of {height} lines")


def test_E5_a_late_subscriber_decodes_an_encoder_that_sent_its_parameter_sets_once(server, sets_once):
    async def run():
        sender = await publish(server, "once", Camera(640, 360))
        first = await player(server, "once", "first")
        await first.wait_for_frames(video=15)
        await asyncio.sleep(1)
        before = sets_once[IDR]
        late = await player(server, "once", "late")
        await late.wait_for_frames(video=15)
        await late.wait_for_colour(MovingPicture.RED)
        frames = first.frames["video"]
        await first.wait_for_frames(video=frames + 15)
        print(f"figures: NAL units left by type {dict(sets_once)}; decoded {first.frames['video']} frames, by the late one {late.frames['video']}")
        assert (sets_once[SPS], sets_once[PPS]) == (1, 1), "the encoder sent them once"
        assert sets_once[IDR] > before, "the late one needed a keyframe"
        for client in (first, late, sender):
            await client.close()

    asyncio.run(run())


@pytest.mark.judging
def test_E6_decoding_continues_when_the_parameter_sets_change(server, sets_once):
    """640 by 360, 320 by 180, and back: the subscriber decodes each size, and so does one that joins in between."""
    async def run():
        camera = Camera(640, 360)
        sender = await publish(server, "resized", camera)
        live = await player(server, "resized", "live")
        await size(live, 360)
        took = []
        for width, height in ((320, 180), (640, 360)):
            filmed = camera.filmed
            camera.resize(width, height)
            await size(live, height)
            # In frames of the camera: where this process gets no processor none is filmed, and none decoded.
            took.append(camera.filmed - filmed)
            late = await player(server, "resized", f"late{height}")
            await size(late, height)
            await late.wait_for_colour(MovingPicture.RED)
            await late.close()
        frames = live.frames["video"]
        await live.wait_for_frames(video=frames + 15)
        await live.wait_for_colour(MovingPicture.RED)
        print(f"figures: each new size decoded while {took} frames were filmed; "
              f"NAL units left by type {dict(sets_once)}, {live.tap.missing()} packets missing")
        assert sets_once[SPS] == 3 and max(took) < 30, "within two seconds of fifteen frames each"
        assert live.tap.missing() == 0
        for client in (live, sender):
            await client.close()

    asyncio.run(run())
