"""Encoders publish over WHIP, players play over WHEP, browsers watch."""
import asyncio
import json
import pathlib
import subprocess
import time

import imageio_ffmpeg
import pytest
from support import bare
from support.aiortc_client import CM_ONLY, Client, MovingPicture, Tone
from support.browser_whip import open_whip
from support.captures import payload
from support.chromium import EXECUTABLE, chromium, open_room, until, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.signalling import signal
from support.tokens import SECRET, token
from support.waiting import PATIENCE_S, standstills, until_true

GST_CLIENT = pathlib.Path(__file__).parent / "support/gst_client.py"


async def moves(page):
    """The first remote video is not black and changes: decoded, and not one frozen frame."""
    await until(page, "Object.values(martlet.pixels()).some(Boolean)")
    first = json.dumps(await page.evaluate("JSON.stringify(martlet.pixels())"))
    await until(page, f"JSON.stringify(martlet.pixels()) !== {first}")


def connection(server, room, identity):
    """What the server counts of a participant's only connection."""
    status, body = server.api("GET", f"/v1/rooms/{room}/participants/{identity}/stats")
    assert status == 200, body
    return body["connections"][0]


# Clients


def test_aiortc_publishes_and_plays(server):
    async def run():
        sender = await Client().publish(f"{server.url}/whip/studio", token("phone", "studio"), MovingPicture(), Tone())
        await sender.connected()
        player = await Client().play(f"{server.url}/whep/studio/phone", token("tv", "studio"))
        await player.wait_for_frames(video=30, audio=50)
        await player.wait_for_colour(MovingPicture.RED)
        missing, packets = player.tap.missing(), player.tap.packets()
        print(f"figures: {player.frames} frames, {packets} packets, {missing} missing")
        assert missing == 0
        assert await player.delete() in (200, 204)
        assert await sender.delete() in (200, 204)
        await player.close()
        await sender.close()

    asyncio.run(run())


def test_follow_mode_plays_the_dominant_speaker_without_renegotiation(server):
    """The speaker changes: the video changes, in the same two streams, without renegotiation."""
    async def run():
        ada_voice, bob_voice = Tone(12000), Tone(0)
        ada = await Client().publish(
            f"{server.url}/whip/stage", token("ada", "stage"), MovingPicture(320, 180, MovingPicture.RED), ada_voice)
        bob = await Client().publish(
            f"{server.url}/whip/stage", token("bob", "stage"), MovingPicture(320, 180, MovingPicture.BLUE), bob_voice)
        await ada.connected()
        await bob.connected()
        player = await Client().play(f"{server.url}/whep/stage", token("tv", "stage"))
        await player.wait_for_colour(MovingPicture.RED)
        # The video may come before the first audio.
        await player.wait_for_frames(audio=1, video=1)
        streams = set(player.tap.rtp)
        took = []
        for voice, other, colour in [(bob_voice, ada_voice, MovingPicture.BLUE), (ada_voice, bob_voice, MovingPicture.RED)]:
            voice.amplitude, other.amplitude = 12000, 0
            took.append(await player.wait_for_colour(colour))
        # Whoever dominated leaves: the other one is shown.
        await ada.delete()
        took.append(await player.wait_for_colour(MovingPicture.BLUE))
        print(f"figures: picture changed after {[f'{s:.1f} s' for s in took]}, streams {len(streams)}, "
              f"{player.tap.packets()} packets, {player.tap.missing()} missing")
        assert set(player.tap.rtp) == streams and len(streams) == 2, "the same SSRCs all the time"
        assert player.tap.missing() == 0, "sequence numbers go on across the switches"
        assert sorted(took)[1] < 6
        for client in (player, ada, bob):
            await client.close()

    asyncio.run(run())


def test_follow_mode_waits_for_a_publisher(server):
    async def run():
        player = await Client().play(f"{server.url}/whep/empty", token("tv", "empty"))
        sender = await Client().publish(f"{server.url}/whip/empty", token("ada", "empty"), MovingPicture(320, 180), Tone())
        await player.wait_for_frames(video=15, audio=15)
        await player.close()
        await sender.close()

    asyncio.run(run())


def test_chromium_publishes_and_aiortc_plays(server):
    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "down", "ada", codec="VP8", simulcast=0)
            player = await Client().play(f"{server.url}/whep/down/ada", token("tv", "down"))
            await player.wait_for_frames(video=20, audio=50)
            profile = connection(server, "down", "ada")["srtpProfile"]
            print(f"figures: {player.frames} frames, Chromium uses {profile}")
            assert "GCM" in profile, "F6: GCM first"
            await player.close()

    asyncio.run(run())


@pytest.mark.parametrize("flags", [[], ["-whip_flags", "dtls_active"]], ids=["server-is-dtls-client", "server-is-dtls-server"])
def test_ffmpeg_publishes_and_chromium_plays(server, flags):
    async def run():
        command = [
            imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-loglevel", "warning", "-re",
            "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=15", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000",
            "-t", "110", "-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "30",
            "-pix_fmt", "yuv420p", "-b:v", "800k", "-c:a", "libopus", "-ar", "48000", "-ac", "2",
            "-f", "whip", *flags, "-authorization", token("encoder", "tv"), f"{server.url}/whip/tv",
        ]
        encoder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            async with chromium() as browser:
                bob = await open_room(browser, server, "tv", "bob", send="nothing")
                stats = await wait_for_video(bob)
                assert "h264" in stats[0]["codec"].lower()
                await moves(bob)
                print(f"figures: {connection(server, 'tv', 'encoder')['srtpProfile']}, {stats[0]['framesDecoded']} frames decoded")
        finally:
            encoder.terminate()
            encoder.wait(10)

    asyncio.run(run())


@pytest.fixture(scope="module")
def lab():
    # GStreamer's libnice has no loopback candidate, so server and client each get an address of their own.
    with Lab("mgst", 2) as lab:
        yield lab


@pytest.mark.parametrize("codec", ["H264", "VP8"])
def test_gstreamer_publishes_and_chromium_plays(lab, codec):
    async def run(server):
        sender = subprocess.Popen(gst(lab, 1, "publish", f"{server.url}/whip/gst", token("gst", "gst"), codec, 110))
        try:
            async with chromium(executable=lab.wrapper(2, EXECUTABLE)) as browser:
                bob = await open_room(browser, server, "gst", "bob", send="nothing", token=token("bob", "gst"))
                stats = await wait_for_video(bob)
                assert codec.lower() in stats[0]["codec"].lower()
                await moves(bob)
                print(f"figures: {stats[0]['framesDecoded']} frames decoded, {stats[0]['frameWidth']}x{stats[0]['frameHeight']}")
        finally:
            sender.terminate()
            sender.wait(10)

    with_server(lab, run)


@pytest.mark.parametrize("codec", ["H264", "VP8"])
def test_chromium_publishes_and_gstreamer_plays(lab, codec):
    async def run(server):
        async with chromium(executable=lab.wrapper(2, EXECUTABLE)) as browser:
            await open_room(browser, server, "gst", "ada", codec=codec, token=token("ada", "gst"), simulcast=0)
            player = await asyncio.create_subprocess_exec(
                *gst(lab, 1, "watch", f"{server.url}/whep/gst/ada", token("tv", "gst"), codec, 60), stdout=asyncio.subprocess.PIPE)
            counts, started = {"video": 0, "audio": 0}, time.monotonic()
            try:
                while counts["video"] <= 50 or counts["audio"] <= 100:
                    counts = json.loads(await asyncio.wait_for(player.stdout.readline(), 40 - (time.monotonic() - started)))
            finally:
                print(f"figures: {counts} after {time.monotonic() - started:.1f} s")
                player.kill()
                await player.wait()

    with_server(lab, run)


def gst(lab, client, *arguments):
    return ["ip", "netns", "exec", lab.client(client), "/usr/bin/python3", str(GST_CLIENT), *map(str, arguments)]


def with_server(lab, run):
    server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
    try:
        asyncio.run(run(server))
    finally:
        server.stop()


# The protocol (RFC 9725, draft-ietf-wish-whep)


@pytest.fixture(scope="module")
def edge():
    server = Server(extra="""
ice_servers:
  - stun:stun.example.org:3478
  - urls: [turn:192.0.2.1:3478, "turns:192.0.2.1:5349?transport=tcp"]
    username: martlet
    credential: 'two "words"'
""").start()
    yield server
    assert server.stop() == 0


def post(server, path, body, bearer, type="application/sdp", **headers):
    headers = {"Content-Type": type, **({"Authorization": f"Bearer {bearer}"} if bearer else {}), **headers}
    return server.request("POST", path, body, headers)


def test_an_endpoint_answers_with_location_etag_and_ice_servers(edge):
    status, headers, answer = post(edge, "/whip/desk", bare.offer(), token("cam", "desk"))
    assert status == 201, answer
    assert headers["Content-Type"] == "application/sdp"
    assert headers["Location"].startswith("/whip/session/")
    assert headers["ETag"].startswith('"') and headers["ETag"].endswith('"')
    assert headers["Accept-Patch"] == "application/trickle-ice-sdpfrag"
    assert headers.get_all("Link") == [
        '<stun:stun.example.org:3478>; rel="ice-server"',
        *(f'<{url}>; rel="ice-server"; username="martlet"; credential="two \\"words\\""; credential-type="password"'
          for url in ["turn:192.0.2.1:3478", "turns:192.0.2.1:5349?transport=tcp"])]
    assert "a=ice-lite" in answer and "a=recvonly" in answer and "a=candidate:" in answer
    assert edge.request("DELETE", headers["Location"])[0] == 200
    assert edge.request("DELETE", headers["Location"])[0] == 404


def test_a_room_comes_from_the_token_or_is_the_default_one(edge):
    """B4 over WHIP: the token's room, and no other one; without any, `Broadcast`."""
    assert code(post(edge, "/whip/other", bare.offer(), token("b4", "mine"))) == (403, "room_mismatch")
    for bearer, path, room in [
        (token("b4", "mine"), "/whip", "mine"), (token("b4", "mine"), "/whip/mine", "mine"), (token("b4"), "/whip", "Broadcast"),
        (token("b4"), "/whip/asked", "asked"),
    ]:
        status, headers, answer = post(edge, path, bare.offer(), bearer)
        assert status == 201, answer
        people = edge.api("GET", f"/v1/rooms/{room}/participants")[1]["participants"]
        assert "b4" in [person["identity"] for person in people], (path, room)
        edge.request("DELETE", headers["Location"])


def test_patch_trickles_restarts_and_requires_the_etag(edge):
    status, headers, answer = post(edge, "/whip/trickle", bare.offer("aaaa"), token("cam", "trickle"))
    location, etag = headers["Location"], headers["ETag"]
    fragment = "application/trickle-ice-sdpfrag"

    def patch(ufrag, lines="a=candidate:1 1 udp 2122260223 192.0.2.7 50123 typ host\r\n", type=fragment, **headers):
        body = f"a=ice-ufrag:{ufrag}\r\na=ice-pwd:0123456789abcdefghijklmn\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n{lines}"
        return edge.request("PATCH", location, body, {"Content-Type": type, **{k.replace("_", "-"): v for k, v in headers.items()}})

    assert patch("aaaa", If_Match=etag)[0] == 204
    assert patch("aaaa", "a=candidate:2 1 udp 1 f00.local 5 typ host\r\na=end-of-candidates\r\n", If_Match=etag)[0] == 204
    assert patch("aaaa", If_Match='"other"')[0] == 412
    assert patch("aaaa")[0] == 428
    status, reply, text = patch("aaaa", type="application/sdp", If_Match=etag)
    assert status == 415 and reply["Accept-Patch"] == fragment
    assert code(patch("aaaa", "a=candidate:nonsense\r\n", If_Match=etag)) in ((204, None), (400, "invalid_sdp"))

    status, reply, text = patch("bbbb", If_Match="*")
    assert status == 200 and reply["Content-Type"] == fragment, text
    assert reply["ETag"] != etag, "a restart makes another ICE session"
    assert bare.attribute(text, "ice-ufrag") != bare.attribute(answer, "ice-ufrag")
    assert len(bare.attribute(text, "ice-pwd")) >= 22
    assert patch("bbbb", If_Match=etag)[0] == 412, "the tag of the session before"
    assert patch("bbbb", If_Match=reply["ETag"])[0] == 204
    assert edge.request("DELETE", location)[0] == 200
    assert code(patch("bbbb", If_Match="*")) == (404, "session_not_found")


def code(reply):
    """(status, code of the problem document) of a refusal; its form is checked."""
    status, headers, text = reply
    if status < 400:
        return status, None
    assert headers["Content-Type"] == "application/problem+json", (status, text)
    problem = json.loads(text)
    assert problem["status"] == status and problem["title"] and problem["code"], problem
    assert len(problem.get("detail", "")) > 10, f"a sentence for people: {problem}"
    return status, problem["code"]


def test_refusals_are_problem_documents_with_stable_codes(edge):
    good, sdp = token("cam", "strict"), bare.offer()
    nothing_common = sdp.replace("opus/48000/2", "iLBC/8000")
    expected = [
        ((sdp, None), (401, "token_missing")),
        ((sdp, "not.a.token"), (401, "token_malformed")),
        ((sdp, token("cam", "strict", secret="x" * 32)), (401, "token_bad_signature")),
        ((sdp, token("cam", "strict", key="nobody")), (401, "token_unknown_key")),
        ((sdp, token("cam", "strict", lifetime_s=-120)), (401, "token_expired")),
        ((sdp, token("cam", "strict", roomJoin=False)), (403, "permission_denied")),
        ((sdp, token("cam", "strict", canPublish=False)), (403, "permission_denied")),
        ((sdp, token("cam", "strict", canPublishSources=["screen_share"])), (403, "permission_denied")),
        (("", good), (400, "invalid_sdp")),
        (("hello", good), (400, "invalid_sdp")),
        ((sdp.replace("a=fingerprint", "a=thumbprint"), good), None),
        ((sdp.replace("a=ice-ufrag", "a=ice-nothing"), good), None),
        ((nothing_common, good), (406, "no_common_codec")),
        ((sdp + "a=x:" + "y" * (1 << 20), good), (413, "body_too_large")),
    ]
    for (body, bearer), wanted in expected:
        got = code(post(edge, "/whip/strict", body, bearer))
        if wanted is None:
            assert got[0] in (400, 406), got
        else:
            assert got == wanted, (got, wanted)
    assert code(post(edge, "/whip/strict", sdp, good, type="text/plain")) == (415, "unsupported_media_type")
    assert code(edge.request("GET", "/whip/strict")) == (405, "method_not_allowed")
    assert code(edge.request("PATCH", "/whip/session/SE_nothing", "x", {
        "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": "*"})) == (404, "session_not_found")
    assert code(post(edge, "/whep/strict/nobody", sdp, good))[0] in (404, 406)
    assert code(post(edge, "/whep/strict", sdp, token("tv", "strict", canSubscribe=False))) == (403, "permission_denied")
    rooms = edge.api("GET", "/v1/rooms")[1]["rooms"]
    assert "strict" not in [room["name"] for room in rooms], "a refused offer leaves no room behind"
    assert SECRET not in edge.log()


def test_B12_an_encoder_of_H264_alone_is_accepted_or_refused_before_media_starts(edge):
    """In a room without H.264 its voice is accepted beside a video that is not; without a voice the whole offer is refused."""
    vectors = pathlib.Path(__file__).parents[1] / "Vectors/sdp"
    alone, with_voice = [(vectors / f"whip_{name}.offer.sdp").read_text() for name in ("chromium_h264_sim3", "ffmpeg_h264")]
    for room, codecs in (("vp8", ["vp8"]), ("both", ["vp8", "h264"])):
        assert edge.api("POST", "/v1/rooms", {"name": room, "policy": {"videoCodecs": codecs}})[0] == 201
    assert code(post(edge, "/whip/vp8", alone, token("cam", "vp8"))) == (406, "no_common_codec")
    assert edge.api("GET", "/v1/rooms/vp8/participants")[1]["participants"] == []
    for room, sdp, kinds in (("both", alone, ["video"]), ("both", with_voice, ["audio", "video"]), ("vp8", with_voice, ["audio"])):
        status, headers, answer = post(edge, f"/whip/{room}", sdp, token("cam", room))
        assert status == 201, answer
        assert sorted(track["kind"] for track in edge.api("GET", f"/v1/rooms/{room}/tracks")[1]["tracks"]) == kinds
        assert ("m=video 0 " in answer) == ("video" not in kinds), answer
        edge.request("DELETE", headers["Location"])


def test_options_and_cors_allow_pages_of_other_origins(edge):
    preflight = {"Origin": "https://app.example.org", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization, content-type"}
    status, headers, _ = edge.request("OPTIONS", "/whip/desk", headers=preflight)
    assert status in (200, 204)
    assert headers["Accept-Post"] == "application/sdp"
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in headers["Access-Control-Allow-Methods"]
    assert {"authorization", "content-type", "if-match"} <= set(headers["Access-Control-Allow-Headers"].lower().split(", "))
    status, headers, _ = post(edge, "/whip/desk", bare.offer(), token("cam", "desk"), Origin="https://app.example.org")
    assert status == 201 and headers["Access-Control-Allow-Origin"] == "*"
    assert {"Location", "ETag", "Link"} <= set(headers["Access-Control-Expose-Headers"].split(", "))
    status, reply, _ = edge.request("OPTIONS", headers["Location"], headers={**preflight, "Access-Control-Request-Method": "PATCH"})
    assert status in (200, 204) and {"PATCH", "DELETE"} <= set(reply["Access-Control-Allow-Methods"].split(", "))
    edge.request("DELETE", headers["Location"])


@pytest.mark.judging
def test_B21_a_browser_trickles_and_restarts_ice_by_patch(server):
    """B21: new credentials and a new port; the subscriber is without media for at most 1.5 s, in the same streams, and no participant joins anew."""
    async def run():
        async with chromium() as browser, signal(server, token("eve", "move"), room="move", autoSubscribe=False) as eve:
            page = await open_whip(browser, server, f"{server.url}/whip/move", token("ada", "move"))
            player = await Client().play(f"{server.url}/whep/move/ada", token("tv", "move"))
            await player.wait_for_frames(video=15)
            trickled = await page.evaluate("whip.trickled")
            assert trickled and set(trickled) == {204}, trickled
            streams, port, joins = set(player.tap.rtp), await page.evaluate("whip.localPort()"), len(eve.of("participantJoined"))
            async with standstills() as still:
                started = time.monotonic()
                restart = await page.evaluate("whip.restart()")
                assert restart["status"] == 200 and restart["before"] != restart["after"], restart
                await until(page, f"whip.localPort().then((port) => port !== {port})")
                await asyncio.sleep(2)
                # Nothing is sent or received while the machine stands still.
                outage, moved = player.tap.longest_silence(started, still=still), await page.evaluate("whip.localPort()")
            print(f"figures: port {port} -> {moved}, longest silence {outage * 1000:.0f} ms, {player.tap.missing()} packets missing, "
                  f"{len(trickled)} fragments trickled")
            assert outage <= 1.5
            assert set(player.tap.rtp) == streams
            assert len(eve.of("participantJoined")) == joins and not eve.of("participantLeft")
            await player.close()

    asyncio.run(run())


# What the transport insists on


def test_F6_a_client_with_AES_CM_only_connects(server):
    async def run():
        sender = await Client(srtp_profiles=CM_ONLY).publish(
            f"{server.url}/whip/cm", token("old", "cm"), MovingPicture(320, 180), Tone())
        await sender.connected()
        player = await Client().play(f"{server.url}/whep/cm/old", token("tv", "cm"))
        await player.wait_for_frames(video=10, audio=10)
        profiles = connection(server, "cm", "old")["srtpProfile"], connection(server, "cm", "tv")["srtpProfile"]
        print(f"figures: publisher {profiles[0]}, player {profiles[1]}")
        assert "CM" in profiles[0]
        await player.close()
        await sender.close()

    asyncio.run(run())


def test_F6_a_certificate_that_does_not_match_the_fingerprint_is_refused_with_a_named_reason(server):
    def mangle(sdp):
        def other(line):
            return line[:-2] + ("00" if line[-2:] != "00" else "FF") if line.startswith("a=fingerprint:sha-256") else line
        return "\r\n".join(other(line) for line in sdp.splitlines()) + "\r\n"

    async def run():
        liar = await Client(mangle=mangle).publish(f"{server.url}/whip/lie", token("liar", "lie"), Tone())
        closed = lambda: 'martlet_connections_closed_total{reason="fingerprintMismatch"} 1\n' in server.get_private("/metrics")[1]  # noqa: E731
        await until_true(closed, PATIENCE_S, "the connection is closed, and counted with its reason")
        assert "ingerprint" in server.log()
        assert liar.peer.connectionState != "connected"
        await liar.close()

    asyncio.run(run())


def test_A3_stereo_music_keeps_its_parameters_and_its_bytes(server):
    """A3: every subscriber's description contains the publisher's Opus parameters, and no byte of a payload changes."""
    wanted = {"stereo=1", "sprop-stereo=1", "maxaveragebitrate=128000"}

    def mangle(sdp):
        return sdp.replace("a=rtpmap:96 opus/48000/2\r\n", "a=rtpmap:96 opus/48000/2\r\na=fmtp:96 " + ";".join(sorted(wanted)) + "\r\n")

    async def run():
        async with signal(server, token("eve", "music"), room="music") as eve:
            sender = await Client(mangle=mangle).publish(f"{server.url}/whip/music", token("band", "music"), Tone())
            assert "sprop-stereo=1" in sender.offer
            # From the first packet on: one may be on its way for longer than a player needs to join.
            sent, protect = [], sender.dtls._send_rtp

            async def tapped(data):
                if not 192 <= data[1] <= 223:
                    sent.append(payload(data))
                await protect(data)

            sender.dtls._send_rtp = tapped
            await sender.connected()
            _, offer = await eve.wait_for("offer")
            fmtp = next(line for line in offer["sdp"].splitlines() if line.startswith("a=fmtp:") and "stereo" in line)
            assert wanted <= set(fmtp.split(" ", 1)[1].replace(" ", "").split(";")), fmtp
            player = await Client().play(f"{server.url}/whep/music/band", token("tv", "music"))
            played, on_rtp = [], player.dtls._handle_rtp_data

            async def taken(data, arrival_time_ms):
                # Without padding: packets that the server sends in one turn are padded to one length (RFC 3550 section 5.1).
                played.append(payload(data))
                await on_rtp(data, arrival_time_ms=arrival_time_ms)

            player.dtls._handle_rtp_data = taken
            await player.wait_for_frames(audio=60)
            known = set(sent)
            print(f"figures: {fmtp}; {len(played)} packets played, {sum(p in known for p in played)} with a payload that was sent")
            assert len(played) > 50 and all(one in known for one in played), "no byte and no size of a payload changes"
            await player.close()
            await sender.close()

    asyncio.run(run())


def test_A10_slides_are_a_screen(edge):
    """A10: `a=content:slides`, or a token that permits nothing else, makes a video track a screen for all participants."""
    video = bare.offer().replace("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96").replace(
        "a=rtpmap:111 opus/48000/2", "a=rtpmap:96 VP8/90000")
    for body, grants, source in [
        (video, {}, "camera"), (video + "a=content:slides\r\n", {}, "screen"),
        (video, {"canPublishSources": ["screen_share"]}, "screen"),
    ]:
        status, headers, answer = post(edge, "/whip/slides", body, token("desk", "slides", **grants))
        assert status == 201, answer
        tracks = edge.api("GET", "/v1/rooms/slides/tracks")[1]["tracks"]
        assert [track["source"] for track in tracks] == [source]
        edge.request("DELETE", headers["Location"])
