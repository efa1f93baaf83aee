"""The reports on captured packets in Tests/Vectors/golden, which our own parsers wrote, against decoders of others."""
import collections
import contextlib
import io
import json
import pathlib
import re
import subprocess

import av
import pytest

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "Vectors"
DECODE = pathlib.Path(__file__).parent / "support/gst_decode.py"
CODECS = {"vp8": "VP8", "vp9": "VP9", "h264": "H264"}


def streams(name):
    """(codec, payload type, packets) -> (complete pictures, sizes), of the video streams of a report."""
    text = (VECTORS / f"golden/{name}.txt").read_text()
    found = {}
    for part in re.split(r"^stream \d+: ", text, flags=re.MULTILINE)[1:]:
        codec, payload_type = re.match(r"(\w+) \((\d+)\)", part).groups()
        packets, pictures = re.search(r"packets (\d+), .*pictures (\d+)", part).groups()
        if sizes := re.search(r"sizes: (.*)", part):
            found[codec, int(payload_type), int(packets)] = (int(pictures), sizes[1].split())
    return found


def packets(name):
    """RTP packets of a capture by payload type and SSRC, padding alone left out."""
    found = collections.defaultdict(list)
    for line in (VECTORS / f"rtp/{name}.rtphex").read_text().splitlines():
        _, kind, text = line.split()
        if kind == "rtp":
            packet = bytes.fromhex(text)
            found[packet[1] & 0x7F, packet[8:12]].append(packet)
    return found


def payload(packet):
    """Behind the header (RFC 3550 section 5.1), its contributing sources and its extension; without padding."""
    begin = 12 + 4 * (packet[0] & 0xF)
    if packet[0] & 0x10:
        begin += 4 + 4 * int.from_bytes(packet[begin + 2:begin + 4])
    return packet[begin:len(packet) - packet[-1] if packet[0] & 0x20 else len(packet)]


NAMES = sorted(path.stem for path in (VECTORS / "golden").glob("*.txt"))


@pytest.mark.parametrize("name", [name for name in NAMES if "av1" not in name])
def test_GStreamer_decodes_as_many_frames_of_as_many_sizes_as_are_reported(name):
    """Each stream alone; the last frame may be cut off, and nothing ahead of the first keyframe is decodable."""
    reported, seen = streams(name), 0
    for (payload_type, _), sent in packets(name).items():
        wanted = next((value for key, value in reported.items() if key[1:] == (payload_type, len(sent))), None)
        if wanted is None:
            continue
        codec = next(CODECS[key[0]] for key in reported if key[1] == payload_type)
        done = subprocess.run(["/usr/bin/python3", DECODE, codec, str(payload_type)], input="\n".join(one.hex() for one in sent),
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-2000:]
        decoded = json.loads(done.stdout)
        print(f"figures: {name}: {codec} {decoded} of {wanted}")
        assert wanted[0] - 1 <= decoded["frames"] <= wanted[0]
        # Of layers inside one stream a decoder shows the highest.
        assert set(decoded["sizes"]) <= set(wanted[1]) and wanted[1][-1] in decoded["sizes"]
        seen += 1
    assert seen == len(reported) > 0


def length(data, at):
    """A LEB128 number and where it ends (AV1 section 4.10.5)."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def leb128(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def units(sent):
    """Temporal units of an AV1 stream as a decoder takes them, put together from the payload format's elements (section 4.4)."""
    open_unit, stamp = [], None
    for packet in sent:
        data = payload(packet)
        if not data:
            continue
        if packet[4:8] != stamp and open_unit:
            yield open_unit
            open_unit = []
        stamp = packet[4:8]
        continues, count, at = data[0] & 0x80, data[0] >> 4 & 3, 1
        index = 0
        while at < len(data):
            index += 1
            size, at = (len(data) - at, at) if index == count else length(data, at)
            element, at = data[at:at + size], at + size
            if continues and index == 1 and open_unit:
                open_unit[-1] += element
            else:
                open_unit.append(element)
    if open_unit:
        yield open_unit


@pytest.mark.parametrize("name", [name for name in NAMES if "av1" in name])
def test_dav1d_decodes_as_many_frames_as_are_reported(name):
    """One frame per timestamp, however many spatial layers it has."""
    ((_, payload_type, count), (pictures, sizes)), = streams(name).items()
    sent = next(one for (kind, _), one in packets(name).items() if kind == payload_type and len(one) == count)
    decoder, frames, seen = av.CodecContext.create("libdav1d", "r"), 0, set()
    for unit in units(sent):
        data = io.BytesIO()
        data.write(b"\x12\x00")
        for obu in unit:
            head = 2 if obu[0] & 4 else 1
            data.write(bytes([obu[0] | 2]) + obu[1:head] + leb128(len(obu) - head) + obu[head:])
        for frame in decoder.decode(av.Packet(data.getvalue())):
            frames += 1
            seen.add(f"{frame.width}x{frame.height}")
    # The capture ends amid a picture.
    with contextlib.suppress(av.error.InvalidDataError):
        frames += len(decoder.decode(None))
    print(f"figures: {name}: {frames} frames of {pictures}, {seen}")
    assert pictures - 1 <= frames <= pictures
    # A picture that lacks its highest layer is shown in the size of the one below.
    assert sizes[-1] in seen
