"""Session descriptions that the server writes, and what it reads in those of others, against two other parsers: aiortc's and GStreamer's.

The server's answers and readings are the golden files of `SDPTests`, which compare them with what the code writes and reads today.
"""
import asyncio
import json
import pathlib
import re
import subprocess

import pytest
from aiortc.sdp import GroupDescription, H264Profile, SessionDescription, parse_h264_profile_level_id
from support.signalling import signal
from support.tokens import token

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "Vectors/sdp"
READER = pathlib.Path(__file__).parent / "support/gst_sdp.py"
#: Recorded offers with a golden answer, and recorded answers with a golden report.
OFFERS = sorted(path.name.removesuffix(".answer.sdp") for path in (FOLDER / "golden").glob("*.answer.sdp"))
ANSWERS = sorted(path.name.removesuffix(".facts.txt") for path in (FOLDER / "golden").glob("*.facts.txt"))

#: What is forwarded, by the kind of a section.
CODECS = {"audio": {"opus", "red"}, "video": {"vp8", "vp9", "h264", "av1"}}
#: Parameters that change what a format means.
MEANING = ("apt", "packetization-mode", "profile-id", "profile")
#: Without these a server cannot tell streams apart, or estimate a path.
NEEDED = ("sdes:mid", "sdes:rtp-stream-id", "sdes:repaired-rtp-stream-id", "transport-wide-cc-extensions-01")
#: The transport that `SDPTests` gives its server.
FINGERPRINT = ":".join(f"{8 * index:02X}" for index in range(32))
CANDIDATES = [(1, "udp", "192.0.2.1", 7900, "host"), (1, "udp", "2001:db8::1", 7900, "host")]


def text(name):
    return (FOLDER / f"{name}.sdp").read_bytes().decode()


def aiortc(description):
    """What aiortc reads. It cannot read an encrypted extension (RFC 6904), whose line has a third word."""
    return SessionDescription.parse(re.sub(r"a=extmap:\S+ urn:ietf:params:rtp-hdrext:encrypt .*\r?\n", "", description))


def gstreamer(*descriptions):
    """The sections that GStreamer reads in each."""
    done = subprocess.run(["/usr/bin/python3", READER], input=json.dumps(descriptions), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def codecs(section):
    return {codec.payloadType: codec for codec in section.rtp.codecs}


def repeats(section):
    """Payload types of retransmissions and what they repeat."""
    return {kind: codec.parameters["apt"] for kind, codec in codecs(section).items() if codec.name.lower() == "rtx"}


def names(section):
    """The codecs of a section that are forwarded."""
    return {codec.name.lower() for codec in section.rtp.codecs} & CODECS[section.kind]


def profile(codec):
    return parse_h264_profile_level_id(codec.parameters["profile-level-id"])[0]


def feedback(codec):
    return {f"{one.type}-{one.parameter}" if one.parameter else one.type for one in codec.rtcpFeedback}


def acceptable(section):
    """The payload types that an answer takes of a section that sends: Opus with RED, or the first video codec; and what retransmits them.

    Of H.264 it is constrained baseline in packetization mode 1, which every WebRTC client decodes (RFC 7742), where that is offered.
    """
    offered = codecs(section)
    ordered = [offered[kind] for kind in section.fmt if kind in offered and offered[kind].name.lower() in CODECS[section.kind]]
    if section.kind == "audio":
        chosen = {codec.payloadType for codec in ordered}
    else:
        first = ordered[0]
        if first.name.lower() == "h264":
            common = [one for one in ordered if one.name.lower() == "h264" and one.parameters.get("packetization-mode") == "1"
                      and profile(one) is H264Profile.PROFILE_CONSTRAINED_BASELINE]
            first = next(iter(common), first)
        chosen = {first.payloadType}
    return chosen | {kind for kind, repeated in repeats(section).items() if repeated in chosen}


def check_transport(asked, given, is_first):
    assert (given.port, given.host, given.rtcp_mux) == (7900, "192.0.2.1", True)
    assert (given.ice.usernameFragment, given.ice.password, given.ice.iceLite) == ("martlet0", "martlet0martlet0martlet0", True)
    assert given.ice_options == asked.ice_options, "trickled candidates are accepted where they were offered"
    assert [(one.algorithm, one.value) for one in given.dtls.fingerprints] == [("sha-256", FINGERPRINT)]
    assert given.dtls.role == {"auto": "server", "server": "client"}[asked.dtls.role]
    candidates = [(one.component, one.protocol, one.ip, one.port, one.type) for one in given.ice_candidates]
    assert candidates == (CANDIDATES if is_first else []) and given.ice_candidates_complete == is_first, "the bundle's first section has all"


def check_formats(asked, given):
    offered, accepted = codecs(asked), codecs(given)
    assert sorted(accepted) == sorted(given.fmt), "each format is mapped, and no other"
    for kind, codec in accepted.items():
        of_offer = offered[kind]
        assert (codec.name.lower(), codec.clockRate, codec.channels) == (of_offer.name.lower(), of_offer.clockRate, of_offer.channels)
        assert [codec.parameters.get(one) for one in MEANING] == [of_offer.parameters.get(one) for one in MEANING]
        if codec.name.lower() == "h264":
            assert profile(codec) is profile(of_offer)
        assert feedback(codec) <= feedback(of_offer)
        if given.kind == "video":
            assert {"nack", "nack-pli"} & feedback(codec) == {"nack", "nack-pli"} & feedback(of_offer)
    assert set(repeats(given).values()) <= set(accepted)
    ids, known = ({one.id: one.uri for one in section.rtp.headerExtensions} for section in (given, asked))
    assert ids.items() <= known.items()
    assert {uri for uri in known.values() if uri.endswith(NEEDED)} <= set(ids.values())


def check_streams(given, number):
    """What the server sends in section `number` is announced by msid and by SSRC, retransmissions in a group with it (RFC 8830, 5576)."""
    msid = f"stream{number} track{number}"
    ssrcs = [10 * number, 10 * number + 1] if given.kind == "video" and repeats(given) else [10 * number]
    assert given.msid == msid
    assert [(one.ssrc, one.cname, one.msid) for one in given.ssrc] == [(ssrc, "martlet", msid) for ssrc in ssrcs]
    assert given.ssrc_group == ([GroupDescription("FID", ssrcs)] if len(ssrcs) == 2 else [])


@pytest.mark.parametrize("name", OFFERS)
def test_our_answer_to_a_recorded_offer_is_to_aiortc_what_the_offer_allows(name):
    """Sections, directions, bundle, transport, formats with their parameters and feedback, extensions, streams (RFC 3264, 8829, 8843)."""
    offer, answer = aiortc(text(name)), aiortc(text(f"golden/{name}.answer"))
    assert [(one.kind, one.profile, one.rtp.muxId) for one in answer.media] == [(one.kind, one.profile, one.rtp.muxId) for one in offer.media]
    bundled = [one.rtp.muxId for one in answer.media if one.port]
    assert answer.group == ([GroupDescription("BUNDLE", bundled)] if bundled else [])
    for number, (asked, given) in enumerate(zip(offer.media, answer.media), 1):
        if asked.kind == "application":
            assert (given.port, given.direction, given.dtls, given.ice_candidates) == (0, "inactive", None, []), "this server has no data channels"
            continue
        check_transport(asked, given, given.rtp.muxId == bundled[0])
        check_formats(asked, given)
        if asked.direction == "recvonly":
            assert given.direction == "sendonly" and names(given) == names(asked), "whom it sends to decides later, so all codecs are named"
            check_streams(given, number)
        else:
            assert asked.direction in ("sendonly", "sendrecv") and given.direction == "recvonly"
            assert set(given.fmt) == acceptable(asked) and not given.ssrc and given.msid is None


#: The order that a description's lines must have, by the letter of each (RFC 8866, section 9).
LINE_ORDER = re.compile(r"vosi?u?e*p*c?b*(tr*)+z?k?a*(mi?c*b*k?a*)*")


@pytest.mark.parametrize("name", OFFERS)
def test_lines_of_our_answers_stand_in_the_order_of_RFC_8866_and_end_with_CRLF(name):
    *lines, end = text(f"golden/{name}.answer").split("\r\n")
    assert end == "" and all(re.fullmatch(r"[a-z]=[^\r\n]+", line) for line in lines)
    assert LINE_ORDER.fullmatch("".join(line[0] for line in lines)), lines


#: Feedback that GStreamer knows.
KNOWN_FEEDBACK = {"nack", "nack-pli", "ccm-fir", "transport-cc"}


def check_agreement(sections, description, name):
    """GStreamer reads what aiortc reads."""
    assert len(sections) == len(description.media), name
    for section, media in zip(sections, description.media):
        assert (section["kind"], section["port"], section["proto"], section["mid"], section["direction"]) == (
            media.kind, media.port, media.profile, media.rtp.muxId, media.direction), name
        assert section["formats"] == [str(one) for one in media.fmt], name
        assert set(section["codecs"]) == {str(kind) for kind in codecs(media)}, name
        for kind, codec in codecs(media).items():
            read = section["codecs"][str(kind)]
            repeated = codec.parameters.get("apt")
            assert (read["name"].lower(), read["rate"], read["apt"]) == (
                codec.name.lower(), codec.clockRate, None if repeated is None else str(repeated)), name
            assert set(read["feedback"]) & KNOWN_FEEDBACK == feedback(codec) & KNOWN_FEEDBACK, (name, kind)


def test_GStreamer_reads_our_answers_as_aiortc_does_and_the_simulcast_that_was_offered():
    """Each layer that an offer sends is received, under its rid and in its order (RFC 8853)."""
    answers = [text(f"golden/{name}.answer") for name in OFFERS]
    read = gstreamer(*answers, *(text(name) for name in OFFERS))
    simulcast = 0
    for name, answer, given, asked in zip(OFFERS, answers, read, read[len(OFFERS):], strict=False):
        check_agreement(given, aiortc(answer), name)
        for one, offered in zip(given, asked, strict=True):
            expected = offered["simulcast"] and offered["simulcast"].replace("send", "recv")
            assert one["simulcast"] == expected and one["rids"] == [rid.replace("send", "recv") for rid in offered["rids"]], name
            simulcast += expected is not None
    assert len(read) == 2 * len(OFFERS) >= 80 and simulcast >= 10
    print(f"figures: {len(OFFERS)} answers, {simulcast} sections with simulcast")


FORMAT = re.compile(r"  (\w+) (\d+) rtx (\d+|-) variant '([^']*)' feedback (\d+)")
#: As `FeedbackSet` counts them. A client that has transport-wide feedback is asked for no REMB.
BITS = {"nack": 1, "nack-pli": 2, "ccm-fir": 4, "transport-cc": 8, "goog-remb": 16}
PROFILES = {H264Profile.PROFILE_CONSTRAINED_BASELINE: "baseline", H264Profile.PROFILE_BASELINE: "baseline", H264Profile.PROFILE_MAIN: "main"}


def check_format(line, section):
    """One line of a report; the codec's name."""
    codec, kind, repetition, variant, bits = FORMAT.fullmatch(line).groups()
    read = codecs(section)[int(kind)]
    assert read.name.lower() == codec.lower()
    # It had offered no retransmissions of audio.
    repeating = {repeated: one for one, repeated in repeats(section).items() if section.kind == "video"}
    assert repetition == str(repeating.get(int(kind), "-"))
    if codec == "H264":
        name, mode = variant.split("/")
        # A decoder of mode 1 accepts mode 0 (RFC 6184 section 8.2.2).
        assert name == PROFILES[profile(read)] and int(mode) <= int(read.parameters.get("packetization-mode", 0))
    else:
        assert variant == {"VP9": read.parameters.get("profile-id", "0"), "AV1": read.parameters.get("profile", "0")}.get(codec, "")
    asked = feedback(read) - ({"goog-remb"} if "transport-cc" in feedback(read) else set())
    assert int(bits) == sum(BITS[one] for one in asked)
    return codec.lower()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_recorded_answer_is_read_as_aiortc_reads_it(name):
    """Credentials, roles, candidates, directions, and each format with its retransmissions, profile and feedback."""
    media = [one for one in aiortc(text(name)).media if one.kind != "application"]
    lines = iter((FOLDER / f"golden/{name}.facts.txt").read_text().splitlines())
    first = media[0]
    candidates = json.dumps([f"{one.type} {one.protocol} {one.ip}" for one in first.ice_candidates])
    role = {"client": "passive", "server": "active"}[first.dtls.role]
    assert next(lines) == (
        f"transport {first.ice.usernameFragment}, the server is {role}, candidates {candidates}{', no more' if first.ice_candidates_complete else ''}"
        f"{', trickles' if 'trickle' in (first.ice_options or '') else ''}")
    line = next(lines)
    for index, section in enumerate(media):
        receives = section.port and section.direction in ("recvonly", "sendrecv")
        assert line == f"{index} {section.kind} mid {index} {'sendonly' if receives else 'inactive, refused: not_wanted_by_remote'}"
        reported = set()
        while (line := next(lines, "")).startswith("  "):
            reported.add(check_format(line, section))
        assert reported == (names(section) if receives else set())
    assert line == "" and next(lines, None) is None


#: Offers of each client and of each codec, with and without simulcast, that publish.
PUBLISHERS = ["chromium156_sendrecv_av", "chromium156_sendonly_simulcast_vp8", "chromium156_simulcast_h264", "chromium156_svc_av1_L3T3",
              "chromium156_svc_vp9_L3T3_KEY", "ffmpeg9_whip_offer", "firefox153esr_sendonly_simulcast_gathered", "gst122_whip_H264.offer"]


def test_the_servers_offers_are_to_aiortc_and_GStreamer_what_was_published(server):
    """For each publisher by its recorded offer: a viewer is offered its codecs, sent on one lite transport that takes either DTLS role."""
    async def publish(name, room):
        """The answer to the publisher and the offer to a viewer who comes later."""
        async with signal(server, token("ada", room)) as ada:
            answer, _ = await ada.request("offer", connection="pub", sdp=text(name))
            assert answer["type"] == "answer", answer
            async with signal(server, token("bob", room)) as bob:
                _, offer = await bob.wait_for("offer", connection="sub")
                return answer, offer

    async def run():
        return await asyncio.gather(*(publish(name, f"room{index}") for index, name in enumerate(PUBLISHERS)))

    pairs = asyncio.run(run())
    for name, (answer, offer), sections in zip(PUBLISHERS, pairs, gstreamer(*(offer["sdp"] for _, offer in pairs)), strict=True):
        taken, read = aiortc(answer["sdp"]), aiortc(offer["sdp"])
        check_agreement(sections, read, name)
        published = {one.kind: names(one) for one in taken.media if one.port and one.rtp.muxId in answer["tracks"]}
        shown = [one for one in read.media if one.rtp.muxId in offer["tracks"]]
        assert shown and len(shown) == len(offer["tracks"]), name
        assert read.group == [GroupDescription("BUNDLE", [one.rtp.muxId for one in read.media])], name
        assert read.media[0].ice_candidates and read.media[0].ice_candidates_complete, name
        assert all(one.ice.iceLite and one.ice.usernameFragment and one.dtls.role == "auto" and one.rtcp_mux for one in read.media), name
        for one in shown:
            assert one.direction == "sendonly" and names(one) == published[one.kind], name
            assert set(repeats(one).values()) <= set(one.fmt) and bool(repeats(one)) == (one.kind == "video"), name
            assert len(one.msid.split()) == 2 and one.ssrc and all(entry.cname for entry in one.ssrc), name
            assert len(one.ssrc) == (2 if one.kind == "video" else 1) == 1 + sum(len(group.items) - 1 for group in one.ssrc_group), name
