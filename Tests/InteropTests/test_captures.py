"""The reports on captured packets in Tests/Vectors/golden, which our own parsers wrote, against decoders of others."""
import contextlib
import json
import pathlib
import subprocess

import av
import pytest
from support.captures import NAMES, low_overhead, packets, report, temporal_units

DECODE = pathlib.Path(__file__).parent / "support/gst_decode.py"
CODECS = {"vp8": "VP8", "vp9": "VP9", "h264": "H264"}


def decoded(codec, payload_type, sent):
    """How many frames GStreamer decodes of these packets, and in which sizes."""
    done = subprocess.run(["/usr/bin/python3", DECODE, codec, str(payload_type)], input="\n".join(one.hex() for one in sent),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def streams(name):
    """(codec, payload type, packets) -> (complete frames, sizes), of the video streams of a report."""
    return {(one.codec, one.payload_type, one.facts["packets"]): (one.facts["pictures"], one.sizes) for one in report(name)[0] if one.sizes}


@pytest.mark.parametrize("name", [name for name in NAMES if "av1" not in name])
def test_GStreamer_decodes_as_many_frames_of_as_many_sizes_as_are_reported(name):
    """Each stream alone; the last frame may be cut off, and nothing ahead of the first keyframe is decodable."""
    reported, seen = streams(name), 0
    for (payload_type, _), sent in packets(name).items():
        wanted = next((value for key, value in reported.items() if key[1:] == (payload_type, len(sent))), None)
        if wanted is None:
            continue
        codec = next(CODECS[key[0]] for key in reported if key[1] == payload_type)
        found = decoded(codec, payload_type, sent)
        print(f"figures: {name}: {codec} {found} of {wanted}")
        assert wanted[0] - 1 <= found["frames"] <= wanted[0]
        # Of layers inside one stream a decoder shows the highest.
        assert set(found["sizes"]) <= set(wanted[1]) and wanted[1][-1] in found["sizes"]
        seen += 1
    assert seen == len(reported) > 0


@pytest.mark.parametrize("name", [name for name in NAMES if "av1" in name])
def test_dav1d_decodes_as_many_frames_as_are_reported(name):
    """One frame per timestamp, however many spatial layers it has."""
    ((_, payload_type, count), (images, sizes)), = streams(name).items()
    sent = next(one for (kind, _), one in packets(name).items() if kind == payload_type and len(one) == count)
    decoder, frames, seen = av.CodecContext.create("libdav1d", "r"), 0, set()
    for _, obus in temporal_units(sent):
        for frame in decoder.decode(av.Packet(low_overhead(obus))):
            frames += 1
            seen.add(f"{frame.width}x{frame.height}")
    # The capture ends within a frame.
    with contextlib.suppress(av.error.InvalidDataError):
        frames += len(decoder.decode(None))
    print(f"figures: {name}: {frames} frames of {images}, {seen}")
    assert images - 1 <= frames <= images
    # A frame that lacks its highest layer is shown in the size of the one below.
    assert sizes[-1] in seen


@pytest.mark.parametrize("name", [name for name in NAMES if "chromium" in name and "sim3" in name])
def test_the_sizes_in_layers_allocations_are_those_that_GStreamer_decodes(name):
    """Of Chromium's streams, in the order in which its offer names them, which is that of an allocation (video-layers-allocation00)."""
    sizes, sent = {}, list(packets(name).items())
    for stream in report(name)[0]:
        rid = next((one.removeprefix("rtp-stream-id ") for one in stream.names if one.startswith("rtp-stream-id ")), None)
        if rid is None:
            continue
        (own,) = [one for (kind, _), one in sent if kind == stream.payload_type and len(one) == stream.facts["packets"]]
        (sizes[rid],) = decoded(CODECS[stream.codec], stream.payload_type, own)["sizes"]
    order = [sizes[rid] for rid in "qhf" if rid in sizes]
    allocated = {key for stream in report(name)[0] for key in stream.counts("allocations of ")}
    print(f"figures: {sizes}, {allocated}")
    # Sizes are not in every allocation.
    named = {one for one in allocated if "0x0" not in one}
    assert named <= {f"{' '.join(order[:count])} in {count} streams" for count in range(1, len(order) + 1)}
    assert any(one.endswith(f" in {len(order)} streams") for one in named)
