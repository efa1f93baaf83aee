#!/usr/bin/env python3
"""Writes seeds for the fuzz targets out of the captures and offers in Tests/Vectors: seeds.py VECTORS OUTPUT."""
import pathlib
import re
import sys

MOST = 200  # seeds a target: libFuzzer runs all of them before it begins
vectors, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
CODECS = ["vp8", "vp9", "h264", "av1", "opus", "red"]  # order of PayloadCodec
counts = {}


def seed(target, data):
    number = counts.get(target, 0)
    if number < MOST:
        counts[target] = number + 1
        folder = output / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed{number:03}").write_bytes(data)


def parts(packet):
    """Marker, payload type, extension elements and payload of an RTP packet."""
    offset, elements = 12 + 4 * (packet[0] & 15), {}
    if packet[0] & 0x10:
        words = int.from_bytes(packet[offset + 2 : offset + 4], "big")
        two = packet[offset] == 0x10
        at, end = offset + 4, offset + 4 + 4 * words
        while at < end:
            if packet[at] == 0:
                at += 1
                continue
            number, size, head = (packet[at], packet[at + 1], 2) if two else (packet[at] >> 4, (packet[at] & 15) + 1, 1)
            elements[number] = packet[at + head : at + head + size]
            at += head + size
        offset = end
    stop = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
    return packet[1] & 0x80, packet[1] & 0x7F, elements, packet[offset:stop]


for capture in sorted((vectors / "rtp").glob("*.rtphex")):
    offer = capture.with_suffix(".offer.sdp").read_text()
    seed("SDPFuzz", offer.encode())
    names = {int(p): n.lower() for p, n in re.findall(r"a=rtpmap:(\d+) ([^/]+)/", offer)}
    found = re.search(r"a=extmap:(\d+)\S* \S*dependency-descriptor", offer)
    descriptors = b""
    for index, line in enumerate(capture.read_text().splitlines()):
        _, kind, text = line.split()
        packet = bytes.fromhex(text)
        if kind == "rtcp":
            seed("RTCPFuzz", packet)
            continue
        marker, payload_type, elements, payload = parts(packet)
        if found and int(found[1]) in elements and names.get(payload_type) in CODECS:
            value = elements[int(found[1])]
            descriptors += bytes([len(value)]) + value
        if index % 29 < 3:
            seed("RTPFuzz", packet)
            if payload and names.get(payload_type) in CODECS:
                seed("PayloadFuzz", bytes([marker | CODECS.index(names[payload_type])]) + payload)
    if descriptors:
        seed("DependencyDescriptorFuzz", descriptors[:4000])
for offer in sorted(vectors.glob("sdp/**/*.sdp")):
    seed("SDPFuzz", offer.read_bytes())
