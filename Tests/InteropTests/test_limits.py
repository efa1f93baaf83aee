"""What bounds the server, and what it says and gives back when a bound is reached."""
import asyncio
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import random
import re
import threading
import time

import pytest
from conftest import running
from support import bare
from support.aiortc_client import Client, Tone
from support.chromium import chromium, open_room, until, wait_for_video
from support.raw_page import raw_join, raw_page
from support.server import ROOT, Server
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S

OFFERS = [path.read_text() for path in sorted((ROOT / "Tests/Vectors/sdp").glob("*.sdp")) if "answer" not in path.name]
PUBLISHING = (ROOT / "Tests/Vectors/sdp/gst122_whip_VP8.offer.sdp").read_text()


def publish(server, room, identity, offer=PUBLISHING):
    """(status, headers, text) of a WHIP request by a client that never connects."""
    return server.request("POST", f"/whip/{room}", offer, {
        "Content-Type": "application/sdp", "Authorization": f"Bearer {token(identity, room)}"})


def eventually(condition, timeout_s, what):
    """Waits until `condition()` holds; how long that took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < timeout_s, f"not within {timeout_s} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - start


def test_a_join_beyond_the_memory_limit_is_refused_with_a_reason():
    """Refused before anything is confirmed, alike over WHIP and WebSocket; participants in the room keep their service."""
    server = Server(extra="rooms:\n  max_connections: 3\n").start()

    async def run():
        async with signal(server, token("ada", "call")):
            status, headers, _ = await asyncio.to_thread(publish, server, "call", "phone")
            assert status == 201
            status, answer, text = await asyncio.to_thread(publish, server, "call", "one more")
            assert (status, json.loads(text)["code"]) == (503, "overloaded") and int(answer["Retry-After"]) > 0
            with pytest.raises(AssertionError, match="'code': 'overloaded'"):
                async with signal(server, token("bob", "call")):
                    pass
            assert server.metric("martlet_participants") == 2
            assert server.metric("martlet_connections_reserved") == server.metric("martlet_connections_limit") == 3
            server.request("DELETE", headers["Location"])
            assert (await asyncio.to_thread(publish, server, "call", "one more"))[0] == 201

    asyncio.run(run())
    assert server.stop() == 0


# More tracks than one participant receives


def voices(count):
    """An offer of so many audio tracks, by a client that never connects."""
    head, _, section = bare.OFFER.partition("m=audio")
    sections = "".join(
        f"m=audio{section}".replace("a=mid:0", f"a=mid:{n}\na=msid:s v{n}").replace("{ssrc}", str(1000 + n)) for n in range(count))
    head = head.replace("BUNDLE 0", "BUNDLE " + " ".join(map(str, range(count))))
    fingerprint = ":".join(["AB"] * 32)
    return (head + sections).format(ufrag="abcd", password="p" * 24, fingerprint=fingerprint).replace("\n", "\r\n")


def test_the_251st_track_waits_and_is_received_when_another_ends(server):
    """A browser receives 250 tracks on one connection; one more waits, the subscriber is notified, and receives it as soon as there is room."""
    waiting = "raw.events.filter((one) => one.type === 'subscriptionsWaiting').map((one) => `${one.waiting} of ${one.limit}`).join()"

    async def run():
        async with chromium() as browser, contextlib.AsyncExitStack() as stack:
            # First: members that never connect are taken for gone 30 s after their offers.
            viewer = await raw_page(browser, server)
            members = []
            for count in (*[32] * 7, 26):
                name = f"member-{len(members)}"
                members.append(await stack.enter_async_context(signal(server, token(name, "crowd"), room="crowd", autoSubscribe=False)))
                reply, _ = await members[-1].request("offer", connection="pub", sdp=voices(count))
                assert len(reply["tracks"]) == count, reply
            late = await Client().publish(f"{server.url}/whip/crowd", token("late", "crowd"), Tone())
            await raw_join(viewer, server, "crowd", "viewer")
            await viewer.evaluate("raw.receive()")
            # While the browser works: of the members' 30 s nothing is spent on it.
            await late.connected()
            await until(viewer, f"{waiting} === '1 of 250'")
            await until(viewer, "raw.answered?.type === 'ok' && raw.sub.connectionState === 'connected'", 40)
            sections = await viewer.evaluate("raw.sub.localDescription.sdp.match(/^m=audio/gm).length")
            size = await viewer.evaluate("raw.sub.localDescription.sdp.length")
            assert sections == 250 and await viewer.evaluate("raw.frames(raw.sub, 'audio')") == 0
            await members[0].request("leave")
            await until(viewer, f"{waiting} === '1 of 250,0 of 250'")
            started = time.monotonic()
            await until(viewer, "raw.frames(raw.sub, 'audio').then((packets) => packets > 25)", 40)
            print(f"figures: an answer of {sections} sections has {size} bytes; the one that waited is heard {time.monotonic() - started:.1f} s after "
                  "there was room")
            await late.close()

    asyncio.run(run())


# A media thread that hangs


@contextlib.contextmanager
def stopped_thread(pid, name):
    """Stops one thread of a child process, as a debugger does (ptrace(2)), while the others go on."""
    seize, interrupt, detach, wait_for_thread = 0x4206, 0x4207, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    tasks = pathlib.Path(f"/proc/{pid}/task")

    def name_of(task):
        # Another thread may end while they are looked through.
        with contextlib.suppress(OSError):
            return (task / "comm").read_text().strip()

    thread = next(int(task.name) for task in tasks.iterdir() if name_of(task) == name)

    def ask(request):
        assert libc.ptrace(request, thread, None, None) == 0, os.strerror(ctypes.get_errno())

    ask(seize)
    ask(interrupt)
    os.waitpid(thread, wait_for_thread)
    yield
    ask(detach)


def test_a_media_thread_that_hangs_is_detected_named_and_blocks_nobody():
    server = Server(workers=2).start()
    for room in ("a", "b"):
        assert publish(server, room, "phone")[0] == 201
    assert server.get_private("/healthz") == (200, "alive\n")
    with stopped_thread(server.process.pid, "media-0"):
        start = time.monotonic()
        # One of the two rooms lives there. Nobody knows yet that its worker hangs: the request waits until it is found out.
        refused = [room for room in ("a", "b") if publish(server, room, "tablet")[0] == 503]
        waited = time.monotonic() - start
        assert len(refused) == 1 and waited < 12
        took = []

        def timed(ask, *words):
            begun = time.monotonic()
            answer = ask(*words)
            took.append(time.monotonic() - begun)
            return answer

        status, text = timed(server.get_private, "/healthz")
        assert status == 503 and text.startswith("media worker 0 is not responding")
        status, text = timed(server.get_private, "/readyz")
        assert status == 503 and text.startswith("media worker 0 is not responding"), "new joins are better sent to another server"
        page = timed(server.get_private, "/metrics")[1]
        status, _, text = timed(publish, server, refused[0], "laptop")
        assert (status, json.loads(text)["code"]) == (503, "media_unavailable")
        for room in ("c", "d"):
            assert timed(publish, server, room, "phone")[0] == 201, "new rooms go to the other worker"
        # Each for itself: what a slow machine adds to all of them together is no wait.
        assert max(took) < 4, f"nothing waits any more: the watchdog's patience is 5 s; {took}"
        assert 'martlet_worker_hangs{worker="0"} 1\n' in page and 'martlet_worker_hangs{worker="1"} 0\n' in page
        assert "martlet_ready 0\n" in page
        assert 'martlet_worker_peers{worker="1"}' in page and 'martlet_worker_peers{worker="0"}' not in page
        _, node = server.api("GET", "/v1/node")
        assert [worker["hangs"] for worker in node["workers"]] == [True, False]
    back = eventually(lambda: server.get_private("/healthz")[0] == 200, 15, "the thread is back")
    assert publish(server, refused[0], "laptop")[0] == 201 and server.get_private("/readyz") == (200, "ready\n")
    print(f"figures: found after {waited:.1f} s, back {back:.1f} s after it went on")
    log = server.log()
    assert re.search(r"error media: a media worker is not responding.* worker=0", log) and re.search(r"a media worker responds again", log)
    assert server.stop() == 0, log


# Memory


def hostile(dice):
    """An offer of a real client with lines cut, doubled, swapped and swollen; or one of sixty sections with hundreds of formats."""
    if dice.randrange(8) == 0:
        formats = " ".join(str(96 + n % 32) for n in range(200))
        lines = "".join(f"a=rtpmap:{96 + n % 32} VP8/90000\r\na=fmtp:{96 + n % 32} {'x' * 50}\r\n" for n in range(40))
        return "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" + "".join(
            f"m=video 9 UDP/TLS/RTP/SAVPF {formats}\r\na=mid:{n}\r\n{lines}" for n in range(60))
    lines = dice.choice(OFFERS).splitlines()
    for _ in range(dice.randrange(1, 7)):
        place = dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                lines[place] = lines[place][:dice.randrange(20)]
            case 1:
                lines.insert(place, dice.choice(lines))
            case 2:
                other = dice.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
            case 3:
                lines[place] += dice.choice([" 99999999999999999999", ":", " -1", ";;=", " 0/0/0"])
            case 4:
                lines[place] = "a=" + "x" * dice.randrange(2000)
    return "\r\n".join(lines) + "\r\n"


def test_memory_is_released_after_hostile_offers():
    """2,400 offers, some hundreds of which are answered and kept: when all sessions have ended the process is as small as before."""
    server = Server().start()
    before = server.anonymous_bytes()
    statuses, sessions = [], []

    def attack(number):
        dice = random.Random(number)
        for count in range(150):
            room = f"room-{number}-{count % 7}"
            connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
            connection.request("POST", f"/whip/{room}", hostile(dice).encode(), {
                "Content-Type": "application/sdp", "Authorization": f"Bearer {token(f'u{count}', room)}"})
            reply = connection.getresponse()
            reply.read()
            connection.close()
            statuses.append(reply.status)
            if location := reply.getheader("Location"):
                sessions.append(location)

    threads = [threading.Thread(target=attack, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    most = server.anonymous_bytes()
    for location in sessions:
        server.request("DELETE", location)
    assert len(statuses) == 2400 and len(sessions) > 200
    eventually(lambda: server.metric("martlet_participants") == 0, 20, "everybody has left")
    took = 0.0
    with contextlib.suppress(AssertionError):
        took = eventually(lambda: server.anonymous_bytes() < before + (32 << 20), 20, "memory is given back")
    after = server.anonymous_bytes()
    print(f"figures: {before >> 20} MB before, {most >> 20} MB with {len(sessions)} sessions, {after >> 20} MB {took:.0f} s after the last")
    assert after < before + (32 << 20), f"{before >> 20} MB before, {most >> 20} MB at most, {after >> 20} MB afterwards"
    assert server.stop() == 0


# End-to-end encryption

# Every byte of every encoded frame is changed on its way out, behind a header of one byte, and back on its way in; the dependency descriptor is
# asked for on both sides. In the clear the header's lowest bit would say that a VP8 frame is no keyframe.
ENCRYPTION = """(() => {
    const transform = (change) => new TransformStream({ transform(frame, controller) {
        const data = new Uint8Array(frame.data), type = (frame.getMetadata().mimeType ?? "").toLowerCase();
        frame.data = (type === "video/h264" ? ofSlices(data, change) : type === "video/av1" ? ofUnits(data, change) : change(data)).buffer;
        controller.enqueue(frame);
    } });
    const encrypt = (data) => new Uint8Array([1, ...data.map((byte, i) => byte ^ (0xa5 + i))]);
    const decrypt = (data) => data.slice(1).map((byte, i) => byte ^ (0xa5 + i));
    // Packetizers look for NAL units, so start codes and headers stay, and what looks like a start code afterwards is escaped (H.264 section 7.4.1).
    const escaped = (data) => {
        const all = [];
        let zeros = 0;
        for (const byte of data) {
            if (zeros >= 2 && byte <= 3) { all.push(3); zeros = 0; }
            all.push(byte);
            zeros = byte ? 0 : zeros + 1;
        }
        return new Uint8Array(all[all.length - 1] ? all : [...all, 3]);
    };
    const unescaped = (data) => {
        const all = [];
        let zeros = 0;
        for (const byte of data) {
            if (zeros >= 2 && byte === 3) { zeros = 0; continue; }
            all.push(byte);
            zeros = byte ? 0 : zeros + 1;
        }
        return new Uint8Array(all);
    };
    const ofSlices = (data, change) => {
        const begins = [];
        for (let i = 0; i + 2 < data.length; i += 1) if (!data[i] && !data[i + 1] && data[i + 2] === 1) begins.push(i + 3);
        const all = [];
        begins.forEach((begin, n) => {
            let end = n + 1 < begins.length ? begins[n + 1] - 3 : data.length;
            if (n + 1 < begins.length && !data[end - 1]) end -= 1;
            const rest = data.slice(begin + 1, end), isSlice = [1, 5].includes(data[begin] & 0x1f);
            const changed = !isSlice ? rest : change === encrypt ? escaped(change(rest)) : change(unescaped(rest));
            all.push(0, 0, 0, 1, data[begin], ...changed);
        });
        return new Uint8Array(all);
    };
    // They look for OBUs, too: headers and sizes stay (AV1 section 5.3), with room for the byte more.
    const ofUnits = (data, change) => {
        const all = [];
        for (let at = 0; at < data.length;) {
            const header = data[at], begin = at + (header & 4 ? 2 : 1);
            let size = 0, length = 0;
            if (header & 2) {
                for (let more = 0x80; more; length += 1) {
                    size += (data[begin + length] & 0x7f) << 7 * length;
                    more = data[begin + length] & 0x80;
                }
            } else {
                size = data.length - begin;
            }
            const body = data.slice(begin + length, begin + length + size), isFrame = [3, 4, 6].includes(header >> 3 & 15);
            const changed = isFrame ? change(body) : body;
            all.push(...data.slice(at, begin));
            if (header & 2) {
                let left = changed.length;
                do { all.push(left & 0x7f | (left > 0x7f ? 0x80 : 0)); left >>= 7; } while (left);
            }
            all.push(...changed);
            at = begin + length + size;
        }
        return new Uint8Array(all);
    };
    const seal = (side, change) => {
        const { readable, writable } = side.createEncodedStreams();
        readable.pipeThrough(transform(change)).pipeTo(writable);
    };
    const describe = (transceiver) => {
        if (transceiver.receiver.track.kind !== "video") return;
        const extensions = transceiver.getHeaderExtensionsToNegotiate();
        for (const one of extensions) if (one.uri.includes("dependency-descriptor")) one.direction = "sendrecv";
        transceiver.setHeaderExtensionsToNegotiate(extensions);
    };
    const Plain = RTCPeerConnection;
    window.RTCPeerConnection = class extends Plain {
        constructor(configuration) {
            super({ ...configuration, encodedInsertableStreams: true });
            this.addEventListener("track", ({ receiver }) => seal(receiver, decrypt));
        }
        addTransceiver(track, init) {
            const transceiver = super.addTransceiver(track, init);
            if (typeof track !== "string") seal(transceiver.sender, encrypt);
            describe(transceiver);
            return transceiver;
        }
        async setRemoteDescription(description) {
            await super.setRemoteDescription(description);
            if (description.type === "offer") this.getTransceivers().forEach(describe);
        }
    };
})()"""


#: Names of the codecs of the videos that a page sends.
CODECS_SENT = """martlet.room.pub.getStats().then((all) => [...all.values()].filter((one) => one.type === 'outbound-rtp' && one.kind === 'video')
    .map((one) => all.get(one.codecId)?.mimeType ?? '').join())"""


@pytest.mark.parametrize("codec", ["VP8", *(pytest.param(codec, marks=pytest.mark.at_night) for codec in ("VP9", "H264", "AV1"))])
def test_end_to_end_encrypted_media_is_decoded_with_the_key_only(server, codec):
    """G10: the server sees no frame unencrypted; a client with the key decodes audio and video, one without it is sent as much video and decodes none."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "sealed", "ada", simulcast=0, codec=codec, script=ENCRYPTION)
            bob = await open_room(browser, server, "sealed", "bob", send="nothing", script=ENCRYPTION)
            eve = await open_room(browser, server, "sealed", "eve", send="nothing")
            (seen,) = await wait_for_video(bob, frames=60)
            await until(bob, "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0.001))")
            assert codec.lower() in (await ada.evaluate(CODECS_SENT)).lower()
            # What does not reach her proves nothing.
            await until(eve, "martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.packetsReceived > 100))")
            unsealed = [r for r in await eve.evaluate("martlet.received()") if r["kind"] == "video"]
            print(f"figures: {seen['framesDecoded']} frames decoded with the key, {[(r['framesDecoded'], r['packetsReceived']) for r in unsealed]} frames and packets without")
            assert unsealed and all(r["framesDecoded"] < 5 for r in unsealed)

    asyncio.run(run())


def test_a_track_without_a_place_in_the_recorder_is_reported_and_recorded_once_there_is_one(tmp_path):
    """Two publish into a recorded room, and one track may be recorded: an operator learns of the other by event, summary and metric; when the first has left, it is recorded."""
    with running(extra=f"recording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n  tracks: 1\n") as server:
        assert publish(server, "studio", "ada", bare.offer())[0] == 201
        status, begun = server.api("POST", "/v1/rooms/studio/recordings", {})
        assert status == 201, begun
        assert publish(server, "studio", "bob", bare.offer())[0] == 201

        def tracks():
            return [(track["identity"], track.get("fault")) for track in server.api("GET", f"/v1/recordings/{begun['sid']}")[1]["tracks"]]

        eventually(lambda: tracks() == [("ada", None), ("bob", "too_many_tracks")], PATIENCE_S, "bob's track is refused")
        assert server.metric("martlet_recorded_tracks") == server.metric("martlet_recording_tracks_refused_total") == 1
        status, events = server.api("GET", "/v1/rooms/studio/events", headers={"Accept": "application/json"})
        assert [one["reason"] for one in events["events"] if one["type"] == "recordingFailed"] == ["too_many_tracks"], events
        assert server.api("POST", "/v1/rooms/studio/recordings", {"participant": "bob"})[1]["code"] == "overloaded"
        assert server.api("DELETE", "/v1/rooms/studio/participants/ada")[0] == 200
        eventually(lambda: tracks() == [("ada", None), ("bob", "too_many_tracks"), ("bob", None)], PATIENCE_S, "bob's track is recorded")
        assert server.metric("martlet_recorded_tracks") == server.metric("martlet_recording_tracks_refused_total") == 1
