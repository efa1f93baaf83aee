"""What the reports in Tests/Vectors/golden, which our own parsers wrote, say of header extensions, RTCP, payload descriptors, layers and references, against other
readers of the same packets: tshark, aiortc, the specification's tables written out in support/dependencies.py, and decoders."""
import collections
import hashlib
import re

import av
import pytest
from aiortc.sdp import SessionDescription
from support.captures import NAMES, VECTORS, captured, low_overhead, packets, payload, report, temporal_units, tshark, write_pcap
from support.dependencies import coded, frames, vp9_layers

DESCRIPTOR = "dependency-descriptor-rtp-header-extension"
#: Extensions whose values a report lists.
NAMED = {"mid", "rtp-stream-id", "repaired-rtp-stream-id"}


def extensions(name):
    """Payload type -> id -> short name of a header extension, as aiortc reads a capture's offer."""
    offer = SessionDescription.parse((VECTORS / f"rtp/{name}.offer.sdp").read_text())
    return {codec.payloadType: {one.id: [part for part in re.split("[/:#]", one.uri) if part][-1] for one in section.rtp.headerExtensions}
            for section in offer.media for codec in section.rtp.codecs}


@pytest.mark.parametrize("name", NAMES)
def test_header_extensions_are_reported_as_tshark_reads_the_packets(name, tmp_path):
    """Of each SSRC in the order in which it began: packets, gaps, how often each extension and the two-byte form, which mid and rid."""
    known, sent = extensions(name), [packet for _, kind, packet in captured(name) if kind == "rtp"]
    rows = tshark(write_pcap(name, tmp_path / "packets.pcap"), "rtp", "rtp.ssrc", "rtp.p_type", "rtp.seq", "rtp.ext.profile",
                  "rtp.ext.rfc5285.id", "rtp.ext.rfc5285.data")
    assert len(rows) == len(sent)
    read = {}
    # What is dissected behind the header may have payload types of its own.
    for (ssrc,), (kind, *_), (number,), form, ids, data in rows:
        one = read.setdefault(ssrc, {"payload type": int(kind), "numbers": [], "names": [], "counts": collections.Counter()})
        one["numbers"].append(int(number))
        if form and int(form[0], 0) != 0xBEDE:
            one["counts"]["(two-byte form)"] += 1
        assert len(ids) == len(data)
        for place, value in zip(ids, data):
            extension = known[int(kind)][int(place)]
            one["counts"][extension] += 1
            word = f"{extension} {bytes.fromhex(value.replace(':', '')).decode()}" if extension in NAMED else None
            if word and word not in one["names"]:
                one["names"].append(word)
    reported, _ = report(name)
    assert len(reported) == len(read)
    for stream, one in zip(reported, read.values()):
        assert (stream.payload_type, stream.names) == (one["payload type"], one["names"])
        assert stream.counts("extension ") == one["counts"]
        numbers = [(number - one["numbers"][0] + 0x8000) % 0x10000 for number in one["numbers"]]
        assert stream.facts["packets"] == len(numbers) and stream.facts["not seen"] == max(numbers) - min(numbers) + 1 - len(numbers)
    print(f"figures: {name}: {len(rows)} packets, {sum(sum(one['counts'].values()) for one in read.values())} extensions")


@pytest.mark.parametrize("name", NAMES)
def test_RTCP_is_reported_as_tshark_reads_it(name, tmp_path):
    """Sender reports and their blocks, items of source descriptions, goodbyes: nothing else is in these captures."""
    counts = collections.Counter()
    for kinds, blocks, sources, items in tshark(write_pcap(name, tmp_path / "packets.pcap"), "rtcp", "rtcp.pt", "rtcp.rc", "rtcp.sc", "rtcp.sdes.type"):
        assert set(kinds) <= {"200", "202", "203"}
        counts.update(f"sender report with {one} blocks" for one in blocks)
        # 0 ends the items of a source.
        counts.update(f"sdes item type {one}" for one in items if one != "0")
        described = [kind for kind in kinds if kind != "200"]
        assert len(described) == len(sources) and len(blocks) == kinds.count("200")
        counts.update(f"bye of {count}" for kind, count in zip(described, sources) if kind == "203")
    assert report(name)[1] == counts


@pytest.mark.parametrize("name", [name for name in NAMES if "vp8" in name])
def test_VP8_payload_descriptors_are_reported_as_tshark_reads_them(name, tmp_path):
    """Where frames and keyframes begin, picture ids and TL0PICIDX, which packets nothing refers to, and the sizes in keyframes."""
    reported = [one for one in report(name)[0] if one.codec == "vp8"]
    kinds = {one.payload_type for one in reported}
    rows = tshark(write_pcap(name, tmp_path / "packets.pcap"), "vp8", "rtp.ssrc", "vp8.pld.s", "vp8.pld.partid", "vp8.pld.n", "vp8.pld.pictureid",
                  "vp8.pld.tl0picidx", "vp8.keyframe.width", "vp8.keyframe.height", decode=[f"rtp.pt=={kind},vp8" for kind in kinds])
    read = {}
    for (ssrc,), (begins,), (partition,), (unneeded,), picture, base, width, height in rows:
        counts, sizes = read.setdefault(ssrc, (collections.Counter(), []))
        found = {"frames started": begins in ("1", "True") and partition == "0", "keyframes started": bool(width),
                 "discardable": unneeded in ("1", "True"), "picture ids": bool(picture), "tl0 indices": bool(base)}
        counts["packets"] += 1
        counts.update(key for key, value in found.items() if value)
        if width and (not sizes or sizes[-1] != f"{width[0]}x{height[0]}"):
            sizes.append(f"{width[0]}x{height[0]}")
    assert len(read) == len(reported) > 0
    for stream, (counts, sizes) in zip(reported, read.values()):
        keys = ("packets", "frames started", "keyframes started", "discardable", "picture ids", "tl0 indices")
        assert [stream.facts.get(key, 0) for key in keys] == [counts[key] for key in keys]
        assert stream.sizes == sizes


def described(name):
    """(stream of the report, its frames, how many structures it had) of the streams whose packets have dependency descriptors."""
    streams, known = report(name)[0], extensions(name)
    for (kind, _), sent in packets(name).items():
        number = next((number for number, extension in known[kind].items() if extension == DESCRIPTOR), None)
        stream = next(one for one in streams if one.payload_type == kind and one.facts["packets"] == len(sent))
        if number is not None and stream.codec != "rtx":
            yield stream, *frames(sent, number)


def joined_freely(frame, later):
    """Whether its temporal layer may be joined here: neither it nor a later frame up to its layer needs an earlier frame of its layer."""
    return frame.temporal == 0 or not any(
        reference.temporal == frame.temporal and reference.timestamp < frame.timestamp
        for one in later if one.temporal <= frame.temporal for reference in one.references)


#: Chromium and Firefox send descriptors of streams with several layers, or with simulcast.
LAYERED = ["whip_chromium_av1_l3t3", "whip_chromium_h264_sim3", "whip_chromium_vp8_sim3", "whip_chromium_vp9_l3t3key", "whip_chromium_vp9_sim3",
           "whip_firefox_vp8_sim3"]


@pytest.mark.parametrize("name", LAYERED)
def test_layers_and_references_are_reported_as_the_descriptors_and_the_payloads_say(name):
    """Frames of each layer, keyframes, where a layer may be joined, what nothing refers to; layers also as VP9's payload and AV1's OBUs name them."""
    seen = 0
    for stream, found, structures in described(name):
        layers = collections.Counter(f"S{one.spatial} T{one.temporal}" for one in found)
        assert stream.counts("frames S") == {key.removeprefix("S"): value for key, value in layers.items()}
        assert stream.facts["descriptors with structure"] == structures
        assert stream.facts["frames started"] == len(found)
        assert stream.facts["keyframes started"] == sum(not one.references for one in found)
        assert stream.facts["spatial layers started"] == sum(one.joins for one in found)
        if stream.codec in ("av1", "h264"):
            assert stream.facts.get("discardable", 0) == sum(len(one.packets) for one in found if one.is_discardable)
        needed = {id(reference) for one in found for reference in one.references}
        assert not any(one.is_discardable and id(one) in needed for one in found), "what may be discarded is referred to"
        assert stream.facts["switching points"] == sum(joined_freely(one, found[index:]) for index, one in enumerate(found))
        if stream.codec == "vp9":
            for one in found:
                assert {vp9_layers(payload(packet))[:2] for packet in one.packets} == {(one.spatial, one.temporal)}
        if stream.codec == "av1":
            # Frame headers, alone or with their tiles, name the layers in their extension (AV1 section 5.3.3).
            named = collections.Counter(
                f"S{obu[1] >> 3 & 3} T{obu[1] >> 5}" for _, obus in temporal_units([packet for one in found for packet in one.packets]) for obu in obus
                if obu[0] >> 3 & 15 in (3, 6) and obu[0] & 4)
            assert named == layers
        seen += 1
    assert seen == sum("descriptors with structure" in one.facts for one in report(name)[0]) > 0


DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9", "av1": "libdav1d"}


def units(kept, codec):
    """(time, bytes) as a decoder takes them; the time of AV1 is that of its lowest layer."""
    if codec == "av1":
        return [(4 * time, low_overhead(obus)) for time, obus in temporal_units([packet for one in kept for packet in one.packets])]
    return [(4 * one.timestamp + one.spatial, coded(one, codec)) for one in kept]


def decoded(kept, codec):
    """The size and the digest of each image by its time."""
    decoder, found = av.CodecContext.create(DECODERS[codec], "r"), {}

    def keep(images):
        for image in images:
            found[image.pts] = (image.width, image.height, hashlib.sha256(image.to_ndarray().tobytes()).hexdigest())

    for time, data in units(kept, codec):
        packet = av.Packet(data)
        packet.pts = time
        keep(decoder.decode(packet))
    keep(decoder.decode(None))
    return found


@pytest.mark.parametrize("name", [name for name in LAYERED if "h264" not in name])
def test_frames_decode_bit_for_bit_without_those_that_they_do_not_need(name):
    """Without all frames that nothing refers to; of VP9 and AV1 also each temporal layer without those above it, and single frames from their references alone."""
    compared = alone = 0
    for stream, found, _ in described(name):
        codec, whole = stream.codec, [one for one in found if one.is_whole]
        images = decoded(whole, codec)
        if codec == "vp8":
            subsets = [[one for one in whole if not one.is_discardable]]
        else:
            subsets = [[one for one in whole if one.temporal <= highest] for highest in range(max(one.temporal for one in whole))]
        for kept in subsets:
            times = {time for time, _ in units(kept, codec)}
            assert decoded(kept, codec) == {time: image for time, image in images.items() if time in times}
            compared += len(times)
        # The highest frame of a time, which is the one that a decoder of AV1 shows.
        shown = [one for one, after in zip(whole, [*whole[1:], None]) if after is None or after.timestamp != one.timestamp]
        for one in shown[::12] if codec != "vp8" else []:
            needed = one.ancestors()
            time = 4 * one.timestamp + (0 if codec == "av1" else one.spatial)
            assert decoded([frame for frame in whole if frame.number in needed], codec)[time] == images[time], f"frame {one.number}"
            alone += 1
    print(f"figures: {name}: {compared} images are the same, {alone} from their references alone")
    assert compared > 0
