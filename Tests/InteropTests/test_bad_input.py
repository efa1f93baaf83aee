"""Bad input while a call is up: a clear error or a counted drop, and the call loses nothing."""
import asyncio
import contextlib
import http.client
import json
import os
import random
import re
import resource
import socket
import struct
import subprocess
import time

import aiohttp
import pytest
from aioice import stun
from support import bare
from support.aiortc_client import Client, MovingPicture, Tone
from support.server import Server
from support.signalling import signal
from support.tokens import admin_token, token
from support.waiting import PATIENCE_S, standstills, until_true

SEED = 20260


@contextlib.asynccontextmanager
async def call(server, room="call"):
    """A publisher and a player. Afterwards not one packet may be missing, and the call must have gone on."""
    sender = await Client().publish(f"{server.url}/whip/{room}", token("phone", room), MovingPicture(320, 180), Tone())
    await sender.connected()
    player = await Client().play(f"{server.url}/whep/{room}/phone", token("tv", room))
    await player.wait_for_frames(video=10, audio=10)
    yield sender, player
    packets = player.tap.packets()
    await until_true(lambda: player.tap.packets() > packets + 10, PATIENCE_S, "the call goes on")
    missing = player.tap.missing()
    silence = player.tap.longest_silence(player.tap.rtp[next(iter(player.tap.rtp))][0][0])
    print(f"figures: the call got {player.tap.packets()} packets, {missing} missing, longest silence {silence * 1000:.0f} ms")
    assert missing == 0
    assert [sender.peer.connectionState, player.peer.connectionState] == ["connected", "connected"]
    await player.close()
    await sender.close()


def drops(server):
    """Every counted drop by its reason."""
    page = server.get_private("/metrics")[1]
    return {reason: float(value) for reason, value in re.findall(
        r'^martlet_packets_dropped_total\{reason="(\w+)"\} (\S+)$', page, re.MULTILINE)}


async def counted(server, before, wanted, timeout_s=PATIENCE_S, reasons=None):
    """The drops since `before`, when all of them, or those for `reasons`, have reached `wanted`."""
    deadline = time.monotonic() + timeout_s
    while True:
        after = await asyncio.to_thread(drops, server)
        grown = {reason: int(count - before.get(reason, 0)) for reason, count in after.items() if count > before.get(reason, 0)}
        if sum(count for reason, count in grown.items() if reasons is None or reason in reasons) >= wanted:
            return grown
        assert time.monotonic() < deadline, f"{sum(grown.values())} of {wanted} are counted: {grown}"
        await asyncio.sleep(0.05)


# Datagrams


def mutations(datagram, dice, count):
    """Cuts, flipped bits, changed bytes, and bytes added, of one datagram that was good."""
    for _ in range(count):
        bad = bytearray(datagram)
        match dice.randrange(4):
            case 0:
                del bad[dice.randrange(1, len(bad)):]
            case 1:
                bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
            case 2:
                for _ in range(dice.randrange(1, 8)):
                    bad[dice.randrange(len(bad))] = dice.randrange(256)
            case 3:
                bad += dice.randbytes(dice.randrange(1, 600))
        if bytes(bad) != datagram:
            yield bytes(bad)


def stun_oddities(username, password, dice):
    """STUN that is wrong in one way each."""
    good = bytes(bare.binding_request(username, password))
    yield from mutations(good, dice, 150)
    yield from (good[:n] for n in range(0, len(good), 3))
    yield from (good[:2] + struct.pack("!H", n) + good[4:] for n in (0, 1, 4, 0xFFFC, len(good)))
    yield good[:4] + b"\0\0\0\0" + good[8:]  # another cookie
    yield bytes(bare.binding_request(username, "wrong password"))
    yield bytes(bare.binding_request("nobody:else", password))
    for method in range(0, 4):
        for kind in (0x0000, 0x0010, 0x0100, 0x0110):
            yield struct.pack("!HHI", method | kind, 0, stun.COOKIE) + os.urandom(12)
    # An attribute that must be understood, one whose length leaves the message, and a thousand empty ones.
    for body in (struct.pack("!HHI", 0x7FFF, 4, 1), struct.pack("!HH", 6, 0xFFFF), struct.pack("!HH", 6, 0) * 300):
        yield struct.pack("!HHI", 1, len(body), stun.COOKIE) + os.urandom(12) + body


def dtls_oddities(dice):
    """Records and handshake messages that are wrong in one way each."""
    def record(kind, payload, epoch=0, number=0, version=0xFEFD, length=None):
        return struct.pack("!BHHHIH", kind, version, epoch, number >> 32, number & 0xFFFFFFFF, len(payload) if length is None else length) + payload

    for kind in (20, 21, 22, 23, 24, 25, 63):
        for epoch in (0, 1, 2, 0xFFFF):
            yield record(kind, dice.randbytes(40), epoch)
    yield record(21, b"\x01\x00")  # close_notify that nobody has authenticated
    yield record(21, b"\x02\x28")
    yield record(22, b"", length=0xFFFF)
    yield record(22, b"\x01\xff\xff\xff\x00\x00\x00\x00\x00\x00\xff\xff\xff")
    for kind in range(0, 25):
        body = dice.randbytes(60)
        yield record(22, struct.pack("!B", kind) + len(body).to_bytes(3) + bytes(2) + bytes(3) + len(body).to_bytes(3) + body)
    yield from mutations(record(22, dice.randbytes(300)), dice, 80)


def media_oddities(captured, dice):
    """Encrypted packets of the call itself, cut, changed, sent again; and headers that promise what is not there."""
    for datagram in captured:
        yield datagram
        yield from mutations(datagram, dice, 12)
    for first in (0x80, 0x8F, 0x90, 0xA0, 0xBF):
        for second in (0, 96, 127, 192, 200, 201, 205, 206, 223, 224, 255):
            for size in (2, 3, 4, 8, 11, 12, 13, 20, 40, 1400):
                yield bytes([first, second]) + dice.randbytes(size - 2)


@pytest.mark.parametrize("place", ["from an unknown source", "from the call's own address"])
def test_malformed_datagrams_are_counted_and_change_nothing(server, place):
    """Every kind of datagram, truncated and modified, from an unknown port and from the publisher's own socket."""
    async def run():
        dice = random.Random(SEED)
        async with call(server) as (sender, _):
            captured = []
            send = sender.dtls.transport._send

            async def tapped(data):
                captured.append(bytes(data))
                await send(data)

            sender.dtls.transport._send = tapped
            await until_true(lambda: sum(128 <= d[0] <= 191 for d in captured) > 80, 20, "some of its media is captured")
            sender.dtls.transport._send = send
            media = [d for d in captured if 128 <= d[0] <= 191]
            media = dice.sample([d for d in media if not 192 <= d[1] <= 223], 25) + [d for d in media if 192 <= d[1] <= 223][:5]
            connection = sender.dtls.transport._connection
            kinds = {
                "STUN": list(stun_oddities(f"{connection.remote_username}:{connection.local_username}", connection.remote_password, dice)),
                "DTLS": list(dtls_oddities(dice)),
                "SRTP": list(media_oddities(media, dice)),
                "other": [bytes([first]) + dice.randbytes(50) for first in range(256)] + [b"", b"\0", dice.randbytes(1472), bytes(9000)],
            }
            unknown = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            unknown.bind(("127.0.0.1", 0))
            unknown.setblocking(False)
            sent = 0
            before = await asyncio.to_thread(drops, server)
            for datagrams in kinds.values():
                for datagram in datagrams:
                    if place == "from an unknown source":
                        unknown.sendto(datagram, ("127.0.0.1", server.udp))
                    else:
                        await send(datagram)
                    sent += 1
                    if sent % 20 == 0:
                        await asyncio.sleep(0.002)
            # Some are legal after all: an indication, a check with another unknown attribute, a record that OpenSSL swallows.
            grown = await counted(server, before, sent * 0.8)
            print(f"figures: {place}: {sent} datagrams ({', '.join(f'{k} {len(v)}' for k, v in kinds.items())}), counted {grown}")
            unknown.close()

    asyncio.run(run())


def evil_rtp(ssrc, known_payload_type, dice):
    """RTP that passes authentication, because its publisher is the one who is evil."""
    def header(sequence, payload_type=known_payload_type, first=0x80, ssrc=ssrc, marker=0):
        return struct.pack("!BBHII", first, marker << 7 | payload_type, sequence & 0xFFFF, dice.getrandbits(32), ssrc)

    for n in range(200):
        sequence = dice.randrange(0x10000)
        yield header(sequence) + dice.randbytes(dice.randrange(0, 60))  # descriptors of nonsense
        yield header(sequence, first=0x90) + b"\xbe\xde" + struct.pack("!H", dice.randrange(0, 4)) + dice.randbytes(16)
        yield header(sequence, first=0x90) + b"\x10\x00\x00\x02" + dice.randbytes(8)
        yield header(sequence, first=0xA0) + dice.randbytes(8) + bytes([dice.randrange(0, 255)])  # padding longer than the packet
        yield header(sequence, payload_type=dice.randrange(0, 64)) + b"x"
        yield header(sequence, ssrc=dice.getrandbits(32)) + b"streams that nobody announced"
        yield header(sequence)


def evil_rtcp(own, theirs, dice):
    """RTCP that passes authentication."""
    def packet(count, kind, body, length=None):
        body += bytes(-len(body) % 4)
        return struct.pack("!BBH", 0x80 | count, kind, len(body) // 4 if length is None else length) + body

    ids = struct.pack("!II", own, theirs)
    for kind in range(192, 224):
        for count in (0, 1, 15, 31):
            yield packet(count, kind, struct.pack("!I", own))
            yield packet(count, kind, dice.randbytes(dice.randrange(4, 80)))
            yield packet(count, kind, ids + dice.randbytes(8), length=0xFFFF)
    yield packet(1, 205, ids + struct.pack("!HH", 0, 0xFFFF) * 300)  # a NACK of 5,100 numbers
    yield packet(15, 205, ids + struct.pack("!HHI", 0, 0xFFFF, 0) + b"\x1f\xff" * 100)  # feedback about 65,535 packets
    for _ in range(50):
        yield packet(1, 206, ids)  # a storm of picture loss
        yield packet(4, 206, struct.pack("!II", own, 0) + struct.pack("!IB3x", theirs, dice.randrange(256)) * 20)
        yield packet(15, 206, struct.pack("!II", own, 0) + b"REMB" + bytes([255, 255, 255, 255]))
        yield packet(1, 201, struct.pack("!I", own) + struct.pack("!IIIIII", theirs, 0xFF000000, 0, 0, dice.getrandbits(32), 1))
        yield packet(0, 200, struct.pack("!IQIII", own, dice.getrandbits(64), dice.getrandbits(32), 0, 0))
    yield packet(31, 203, dice.randbytes(124))  # goodbye of everybody


def test_participants_with_valid_keys_can_harm_only_themselves(server):
    """RTP and RTCP that decrypt correctly but are nonsense, from a publisher and from a player of the same room."""
    async def run():
        dice = random.Random(SEED)
        async with call(server) as (_, watched):
            villain = await Client().publish(f"{server.url}/whip/call", token("villain", "call"), MovingPicture(160, 90), Tone())
            await villain.connected()
            accomplice = await Client().play(f"{server.url}/whep/call/villain", token("accomplice", "call"))
            spy = await Client().play(f"{server.url}/whep/call/phone", token("spy", "call"))
            await spy.wait_for_frames(audio=5)
            before, sent = await asyncio.to_thread(drops, server), 0
            video = next(sender for sender in villain.peer.getSenders() if sender.kind == "video")
            stream = next(iter(spy.tap.rtp))
            for client, packets in [
                (villain, evil_rtp(video._ssrc, 97, dice)), (villain, evil_rtcp(video._ssrc, stream, dice)),
                (spy, evil_rtcp(1, stream, dice)), (spy, evil_rtp(stream, 97, dice)),
            ]:
                for packet in packets:
                    with contextlib.suppress(Exception):  # libsrtp itself refuses some
                        await client.dtls._send_rtp(packet)
                        sent += 1
                    if sent % 20 == 0:
                        await asyncio.sleep(0.002)
            await asyncio.sleep(0.5)
            grown = await counted(server, before, 500)
            status, rooms = await asyncio.to_thread(server.api, "GET", "/v1/rooms/call/stats")
            assert status == 200
            rss = server.rss_bytes() / 1e6
            print(f"figures: {sent} packets that decrypt, counted {grown}; RSS {rss:.0f} MB")
            assert rss < 200
            for client in (villain, accomplice, spy):
                await client.close()

    asyncio.run(run())


def test_peers_that_never_finish_their_handshake_cost_little(server):
    """Peers with validated addresses that send only malformed DTLS and RTP: bounded memory, and the call continues."""
    async def run():
        dice = random.Random(SEED)
        async with call(server):
            rss = server.rss_bytes()
            peers = await asyncio.to_thread(lambda: [bare.BarePeer(server, "half", f"half-{n}") for n in range(30)])
            await asyncio.to_thread(lambda: [peer.check() for peer in peers])
            assert server.metric("martlet_worker_peers") == 32
            before, sent = await asyncio.to_thread(drops, server), 0
            for peer in peers:
                # Media without keys, a first fragment of a ClientHello that claims 16 MB, then whatever else looks like DTLS.
                claims = b"\x16\xfe\xfd" + bytes(8) + b"\x00\x2d\x01\xff\xff\xff\x00\x00\x00\x00\x00\x00\x21" + dice.randbytes(33)
                for datagram in [*(b"\x80\x60" + dice.randbytes(900) for _ in range(50)), claims, *dtls_oddities(dice)]:
                    peer.socket.sendto(datagram, peer.address)
                    sent += 1
                await asyncio.sleep(0.02)
            # What waited in a socket while the server had no processor is too late to look at.
            grown = await counted(server, before, 30 * 50, reasons=("srtpNotReady", "receivedLate"))
            rss = (server.rss_bytes() - rss) / 1e6
            # Garbage from its address ends nobody's handshake, for anybody could have sent it; time does.
            began, left = server.metric("martlet_worker_peers"), 0
            for _ in range(90):
                left = server.metric("martlet_worker_peers")
                if left == 2:
                    break
                await asyncio.sleep(0.5)
            print(f"figures: 30 peers sent {sent} datagrams, counted {grown}, RSS {rss:+.1f} MB, {began:.0f} peers, {left:.0f} in the end")
            # A few of the oddities look like media.
            assert grown["srtpNotReady"] > 0 and grown["dtlsMalformed"] >= 30 and rss < 20
            assert sum(grown.values()) <= sent
            assert began == 32 and left == 2, "a handshake that does not succeed ends with its time, and nobody else's"
            for peer in peers:
                peer.close()

    asyncio.run(run())


# Requests


def problem(reply):
    """(status, code) of a refusal, which must be a problem document."""
    status, headers, text = reply
    assert headers["Content-Type"] == "application/problem+json", (status, text[:200])
    document = json.loads(text)
    assert document["status"] == status and document["code"], document
    return status, document["code"]


def test_invalid_requests_get_a_reason(server):
    """Bodies, tokens, descriptions and paths: a fitting status, a stable code, and never a 500."""
    async def run():
        async with call(server):
            await asyncio.to_thread(check)

    def check():
        sdp, good = {"Content-Type": "application/sdp"}, {"Authorization": f"Bearer {token('x', 'call')}"}
        admin = {"Authorization": f"Bearer {admin_token()}"}
        big = "v=0\r\n" + "a=" + "x" * (1 << 20)
        for method, path, headers in [
            ("POST", "/whip/call", {**sdp, **good}), ("POST", "/whep/call", {**sdp, **good}), ("POST", "/v1/rooms", admin),
            ("PATCH", "/whip/session/SE_x", good), ("GET", "/v1/rooms", admin), ("POST", "/nothing", {}),
        ]:
            assert problem(server.request(method, path, big, headers)) == (413, "body_too_large"), path
        refused = 0
        for path in ("/v1/rooms", "/v1/node", "/v1/rooms/call", "/v1/rooms/call/participants", "/v1/rooms/call/stats"):
            for bearer in ("", "x", "a.b.c", token("x", "call")[:-3], token("x", "call", secret="y" * 32), "\u00e9" * 10):
                headers = {"Authorization": f"Bearer {bearer}".encode().decode("latin-1")}
                assert problem(server.request("GET", path, headers=headers))[0] == 401
                refused += 1
            assert problem(server.request("GET", path, headers={"Authorization": f"Bearer {token('x', 'other')}"}))[0] == 403
        dice, offer, statuses = random.Random(SEED), bare.offer(), {}
        for n in range(300):
            text = broken(offer, dice)
            status, headers, reply = server.request("POST", "/whip/junk", text, {
                **sdp, "Authorization": f"Bearer {token(f'junk-{n}', 'junk')}"})
            statuses[status] = statuses.get(status, 0) + 1
            assert status == 201 or problem((status, headers, reply))[0] in (400, 406, 413, 415), (text, reply)
            if status == 201:
                server.request("DELETE", headers["Location"])
        for body in ("{", "[]", "null", '{"name": 5}', '{"name": ""}', '{"name": "x", "surprise": 1}', '{"name": "' + "y" * 300 + '"}',
                     '{"name":"z","policy":{"maxParticipants":-1}}', "[" * 5000):
            status, headers, text = server.request("POST", "/v1/rooms", body, {**admin, "Content-Type": "application/json"})
            assert problem((status, headers, text))[0] in (400, 413, 415, 422), (body[:50], status, text)
        for path in ("/v1/rooms/%ff", "/v1/rooms/%00", "/whip/%2e%2e%2f", "/../etc/passwd", "/%", "/v1/rooms/" + "a" * 9000, "/whip/" + "%41" * 300):
            status, headers, text = server.request("GET", path, headers=admin)
            assert 400 <= status < 500, (path, status)
        print(f"figures: {refused} wrong tokens refused; 300 broken descriptions: {statuses}")
        page = server.get_private("/metrics")[1]
        assert 'martlet_http_responses_total{class="5xx"} 0' in page.splitlines(), "nothing was the server's own fault"

    asyncio.run(run())


def broken(offer, dice):
    """An offer with lines gone, doubled, swapped, cut or replaced."""
    lines = offer.split("\r\n")
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(lines))
        match dice.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[dice.randrange(len(lines))])
            case 2:
                lines[at] = lines[at][:dice.randrange(len(lines[at]) + 1)]
            case 3:
                lines[at] = "".join(chr(dice.randrange(32, 127)) for _ in range(dice.randrange(80)))
            case 4:
                lines[at] = re.sub(r"\d+", lambda m: str(dice.choice([0, -1, 65536, 2**32, 10**30])), lines[at])
            case 5:
                lines.insert(at, "m=" + dice.choice(["audio 0 RTP/AVP 0", "video 9 UDP/TLS/RTP/SAVPF", "application 9 UDP/DTLS/SCTP webrtc-datachannel", "x"]))
    return "\r\n".join(lines)


# Sockets


async def bare_socket(server, path="/v1/signal", protocol="martlet.v1", **headers):
    """A WebSocket spoken by hand, so that frames can be wrong: (reader, writer) after the 101."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.http)
    lines = [f"GET {path} HTTP/1.1", f"Host: {server.host}:{server.http}", "Upgrade: websocket", "Connection: Upgrade",
             "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", *([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []),
             *(f"{key}: {value}" for key, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    assert head.startswith(b"HTTP/1.1 101"), head
    return reader, writer


def frame(payload, opcode=1, first=0x80, masked=True):
    size = bytes([len(payload)]) if len(payload) < 126 else b"\x7e" + struct.pack("!H", len(payload)) if len(payload) < 65536 \
        else b"\x7f" + struct.pack("!Q", len(payload))
    if not masked:
        return bytes([first | opcode]) + size + payload
    return bytes([first | opcode, size[0] | 0x80]) + size[1:] + bytes(4) + payload


async def close_code(reader):
    """The code of the close frame that comes, past whatever is sent before it."""
    while True:
        first, second = await asyncio.wait_for(reader.readexactly(2), PATIENCE_S)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8))
        payload = await reader.readexactly(size)
        if first & 0x0F == 8:
            return int.from_bytes(payload[:2])


def test_invalid_frames_close_their_socket_with_a_code(server):
    """Invalid messages are answered and the socket stays; invalid frames close it with the code of RFC 6455."""
    async def run():
        async with call(server):
            bearer = {"Authorization": f"Bearer {token('ws', 'call')}"}
            codes = {}
            for what, data, wanted in [
                ("unmasked", frame(b'{"type":"ping"}', masked=False), 1002), ("binary", frame(b"x", opcode=2), 1003),
                ("reserved bits", frame(b"x", first=0xF0), 1002), ("unknown opcode", frame(b"x", opcode=5), 1002),
                ("not UTF-8", frame(b"\xff\xfe"), 1007), ("oversize", frame(b"x" * (560 * 1024 + 1)), 1009),
                ("a claim of 2^62 bytes", b"\x81\xff" + struct.pack("!Q", 1 << 62) + bytes(4), 1009),
                ("fragmented ping", frame(b"x", opcode=9, first=0), 1002), ("continuation of nothing", frame(b"x", opcode=0), 1002),
                ("half a code", frame(b"\x03", opcode=8), 1002),
            ]:
                reader, writer = await bare_socket(server, **bearer)
                writer.write(data)
                codes[what] = await close_code(reader)
                assert codes[what] == wanted, (what, codes[what])
                writer.close()
            async with aiohttp.ClientSession() as http:
                url = f"{server.url.replace('http', 'ws', 1)}/v1/signal"
                async with http.ws_connect(url, protocols=["martlet.v1"], headers=bearer) as ws:
                    assert (await ws.receive_json())["type"] == "hello"
                    for text, code in [
                        ("nonsense", "malformed_message"), ("[]", "malformed_message"), ('{"id":1}', "malformed_message"),
                        ('{"type":"dance","id":2}', "unknown_type"), ('{"type":"join","id":3,"room":7}', "malformed_message"),
                        ('{"type":"offer","id":4,"connection":"pub","sdp":"x"}', "not_joined"), ("[" * 9000, "malformed_message"),
                        ('{"type":"' + "x" * 9000 + '"}', "unknown_type"),
                    ]:
                        await ws.send_str(text)
                        reply = await ws.receive_json(timeout=PATIENCE_S)
                        assert reply["type"] == "error" and reply["code"] == code and reply["message"], (text[:40], reply)
                    await ws.send_json({"type": "join", "id": 9, "room": "call"})
                    assert (await ws.receive_json(timeout=PATIENCE_S))["type"] == "joined", "the socket stayed open"
            print(f"figures: {codes}")

    asyncio.run(run())


@pytest.mark.judging
def test_a_slow_reader_is_disconnected_and_delays_no_other(server):
    """A socket that is never read: its queue is bounded, then it is closed; others get their events at once, memory stays flat."""
    async def run():
        async with call(server), signal(server, token("eve", "call"), room="call", autoSubscribe=False) as eve, standstills() as still:
            reader, writer = await bare_socket(server, Authorization=f"Bearer {token('slow', 'call')}")
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            writer.write(frame(b'{"type":"join","id":1,"room":"call","autoSubscribe":false}'))
            await eve.wait_for("participantJoined")
            writer.transport.pause_reading()
            rss, slowest, rounds, started = server.rss_bytes(), 0.0, 0, time.monotonic()
            metadata = "m" * 8_000
            while time.monotonic() - started < 40:
                for _ in range(20):
                    rounds += 1
                    asked = time.monotonic()
                    reply, _ = await eve.request("metadata", metadata=f"{rounds} {metadata}")
                    assert reply["type"] == "ok", reply
                    answered = time.monotonic()
                    slowest = max(slowest, answered - asked - still.within(asked, answered))
                    await asyncio.sleep(0.006)
                gone = server.get_private("/metrics")[1]
                if "martlet_websocket_slow_readers_total 1" in gone:
                    break
            else:
                pytest.fail("the slow reader was never let go")
            grown = (server.rss_bytes() - rss) / 1e6
            print(f"figures: let go after {rounds} events of 8 kB, {time.monotonic() - started:.1f} s; others wait at most "
                  f"{slowest * 1000:.0f} ms; RSS {grown:+.1f} MB")
            assert slowest < 2 and grown < 30
            writer.close()

    asyncio.run(run())


@pytest.mark.judging
def test_slowloris_locks_nobody_out(server):
    """300 connections that send their request byte by byte, and 300 that never read: others are served within a second, and the 300 are given up within 15 s."""
    async def run():
        async with call(server), aiohttp.ClientSession() as http, standstills() as still:
            async def fetch():
                started = time.monotonic()
                async with http.get(f"{server.url}/v1/rooms", headers={"Authorization": f"Bearer {admin_token()}"}) as reply:
                    assert reply.status == 200
                    await reply.read()
                return started, time.monotonic()

            # Without time in which the machine stood still, of which the watch knows a moment later.
            def longest(spans):
                return max(end - start - still.within(start, end) for start, end in spans)

            quiet = [await fetch() for _ in range(20)]
            dripping = [await asyncio.open_connection("127.0.0.1", server.http) for _ in range(300)]
            deaf = [await asyncio.open_connection("127.0.0.1", server.http, limit=1024) for _ in range(300)]
            for _, writer in deaf:
                writer.transport.pause_reading()
                writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            head, loud = b"POST /whip/call HTTP/1.1\r\nHost: x\r\nContent-Type: application/sdp\r\nX-Slow: ", []
            for n in range(len(head)):
                for _, writer in dripping:
                    with contextlib.suppress(ConnectionError):
                        writer.write(head[n:n + 1])
                if n % 5 == 0:
                    loud.append(await fetch())
                await asyncio.sleep(0.02)
            memory, open_before = server.rss_bytes() / 1e6, server.metric("martlet_http_connections")
            # The heads that never end are given up after 10 s, however steadily their bytes come.
            started = time.monotonic()
            while server.metric("martlet_http_request_timeouts_total") < 300 and time.monotonic() - started < PATIENCE_S:
                for _, writer in dripping:
                    with contextlib.suppress(ConnectionError):
                        writer.write(b"a")
                await asyncio.sleep(0.2)
            given_up, took = server.metric("martlet_http_request_timeouts_total"), time.monotonic() - started
            quiet, loud = longest(quiet), longest(loud)
            print(f"figures: the slowest of 20 requests took {quiet * 1000:.0f} ms alone, {loud * 1000:.0f} ms beside "
                  f"{open_before:.0f} open connections; {given_up:.0f} given up after {took:.1f} s; RSS {memory:.0f} MB")
            assert loud < 1 and open_before >= 300
            assert given_up >= 300 and took < 15
            for _, writer in dripping + deaf:
                writer.close()

    asyncio.run(run())


def raw(port, request, timeout_s=PATIENCE_S):
    """The status that the server answers to these bytes, "wait" when it answers nothing, "closed" when it ends the connection without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout_s) as s:
        s.settimeout(timeout_s)
        try:
            s.sendall(request)
            head = b""
            while b"\r\n\r\n" not in head:
                data = s.recv(4096)
                if not data:
                    break
                head += data
        except TimeoutError:
            return "wait"
        except ConnectionError:
            return "closed"
        return int(head.split()[1]) if head else "closed"


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def limits(server):
    """How often each bound of the HTTP listener was reached."""
    return {name: float(value) for name, value in re.findall(
        r'^martlet_http_limits_reached_total\{limit="(\w+)"\} (\S+)$', server.get_private("/metrics")[1], re.MULTILINE)}


def test_idle_connections_cannot_take_the_last_descriptor():
    """64 descriptors, three times 120 idle connections without a token: both ports answer during and after, and the log states the reason."""
    server = Server(nofile=64).start()
    try:
        def answers():
            return raw(server.http, GET), raw(server.private, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")

        for _ in range(3):
            idle = [socket.create_connection(("127.0.0.1", server.http), 5) for _ in range(120)]
            idle += [socket.create_connection(("127.0.0.1", server.private), 5) for _ in range(120)]
            assert answers() == (200, 200), "while they are open"
            for s in idle:
                s.close()
            assert answers() == (200, 200), "after they are closed"
        reached, bound = limits(server), server.metric("martlet_http_connections_limit")
        lines = [line for line in server.log().splitlines() if "oldest idle connection is closed" in line]
        print(f"figures: {bound:.0f} connections of 64 descriptors; bounds reached {reached['connections']:.0f} times, {len(lines)} lines")
        assert 8 <= bound <= 40 and reached["connections"] >= 3 * (120 - bound) and reached["descriptors"] == 0
        assert 1 <= len(lines) <= 8, "an attack does not fill the log"
    finally:
        assert server.stop() == 0


@pytest.mark.judging
def test_accepting_goes_on_after_an_accept_failed_for_want_of_descriptors():
    """A limit that falls to what a running server has open: accepting fails at both ports and at that of media over TCP, and goes on by itself once there is room again."""
    server = Server(nofile=4096).start()
    try:
        def answers():
            return raw(server.http, GET), raw(server.private, b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

        def numbers():
            return {int(name) for name in os.listdir(f"/proc/{server.process.pid}/fd")}

        def limit(count):
            subprocess.run(["prlimit", "--pid", str(server.process.pid), f"--nofile={count}:"], check=True)

        def complaints():
            return [line for line in server.log().splitlines() if "cannot accept connections" in line]

        def stand_still():
            """What the server has open once it neither opens nor closes anything any more."""
            seen = None
            while seen != (seen := numbers()):
                time.sleep(0.5)
            return seen

        assert answers() == (200, 200)
        kept = stand_still()
        # The next descriptor would have the smallest free number, which the limit excludes.
        limit(min(set(range(len(kept) + 1)) - kept))
        waiting = [socket.create_connection(("127.0.0.1", port), 5) for port in (server.udp, server.http, server.private)]
        asyncio.run(until_true(lambda: len(complaints()) >= 2, PATIENCE_S, "both listeners say so"))
        limit(4096)
        started = time.monotonic()
        assert answers() == (200, 200)
        took = time.monotonic() - started
        print(f"figures: both ports answered {took * 1000:.0f} ms after the limit was lifted; {limits(server)['descriptors']:.0f} failures")
        assert took < 2 and limits(server)["descriptors"] > 0
        asyncio.run(until_true(lambda: server.metric("martlet_tcp_connections_accepted_total") == 1, PATIENCE_S, "media over TCP is accepted"))
        for s in waiting:
            s.close()
    finally:
        assert server.stop() == 0


def test_too_few_descriptors_are_reported_at_start():
    """A limit that leaves no connection to serve makes the start fail with the required number."""
    server = Server(nofile=40)
    with pytest.raises(RuntimeError, match="ulimit -n"):
        server.start()
    server.stop()


@pytest.mark.judging
def test_slow_bodies_lock_nobody_out(server):
    """1,100 POSTs that send one byte of their body each, without a token and with one: others are served at once, and so is a publisher."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))

    def attack(headers):
        sockets = []
        for _ in range(1100):
            s = socket.create_connection(("127.0.0.1", server.http), 5)
            s.sendall(b"POST /whip/call HTTP/1.1\r\nHost: a\r\nContent-Type: application/sdp\r\n" + headers + b"Content-Length: 1000\r\n\r\nv")
            sockets.append(s)
        return sockets

    offer, slowest = bare.offer(), 0.0
    for what, headers in [("without a token", b""), ("with one", f"Authorization: Bearer {token('slow', 'call')}\r\n".encode())]:
        sockets = attack(headers)
        for n in range(10):
            started = time.monotonic()
            assert raw(server.http, GET) == 200
            status, _, reply = server.request("POST", "/whip/call", offer, {
                "Content-Type": "application/sdp", "Authorization": f"Bearer {token(f'good-{n}', 'call')}"})
            assert status == 201, (what, reply)
            slowest = max(slowest, time.monotonic() - started)
        if not headers:
            sockets[0].settimeout(5)
            assert sockets[0].recv(4096).startswith(b"HTTP/1.1 401"), "nobody without a token sends a body"
            assert limits(server)["address_bodies"] == 0
        for s in sockets:
            s.close()
    reached = limits(server)
    print(f"figures: two requests took {slowest * 1000:.0f} ms at most; bounds reached {reached}")
    assert reached["address_bodies"] >= 1000 and reached["requests"] == 0 and slowest < 2


def test_endless_pings_close_their_socket(server):
    """A WebSocket that sends nothing but pings is closed with 1008 before it costs anything."""
    async def run():
        reader, writer = await bare_socket(server, Authorization=f"Bearer {token('pinger', 'call')}")
        busy, started = server.cpu_seconds(), time.monotonic()
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                writer.write(frame(b"", opcode=9) * 5000)
                await asyncio.wait_for(writer.drain(), PATIENCE_S)
        with contextlib.suppress(ConnectionError):
            assert await close_code(reader) == 1008
        cost = server.cpu_seconds() - busy
        print(f"figures: a million pings cost {cost:.2f} s of CPU; closed after {time.monotonic() - started:.2f} s")
        assert limits(server)["control_frames"] == 1 and cost < 0.5
        writer.close()

    asyncio.run(run())


def test_requests_that_proxies_could_read_differently_are_refused(server):
    """Two lengths, two hosts, signs, folded lines and the like (RFC 9112): 400, and the connection is closed."""
    line, fields = b"POST /whip/call HTTP/1.1\r\n", {
        "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n", "a sign": b"Content-Length: +4\r\n",
        "two hosts": b"Host: b\r\n", "both framings": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "a folded line": b"X-A: b\r\n c\r\n", "a blank before the colon": b"Content-Length : 4\r\n",
        "a bare CR": b"X-A: b\rX-B: c\r\n", "a bare LF": b"X-A: b\nX-B: c\r\n", "a NUL": b"X-A: b\0c\r\n"}
    answers = {what: raw(server.http, line + b"Host: a\r\n" + field + b"\r\nabcd") for what, field in fields.items()}
    answers["no host"] = raw(server.http, line + b"Content-Length: 4\r\n\r\nabcd")
    print(f"figures: {answers}")
    assert set(answers.values()) == {400}, answers
    assert server.metric("martlet_http_malformed_requests_total") == len(answers)


def test_connections_are_kept_alive_and_released(server):
    """Requests follow each other on one connection; after 3,000 connections the server has as many descriptors as before."""
    before = server.descriptors()
    one = http.client.HTTPConnection("127.0.0.1", server.http, timeout=PATIENCE_S)
    for _ in range(100):
        one.request("GET", "/")
        reply = one.getresponse()
        assert reply.read() and reply.status == 200 and reply.headers["Connection"] is None
    one.close()
    accepted = server.metric("martlet_http_connections_accepted_total")
    for _ in range(3000):
        assert raw(server.http, GET) == 200
    deadline = time.monotonic() + PATIENCE_S
    while server.descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    print(f"figures: descriptors {before} before, {server.descriptors()} after; 100 requests on {accepted:.0f} connection")
    assert server.descriptors() <= before and accepted == 1
