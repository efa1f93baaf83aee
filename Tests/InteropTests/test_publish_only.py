"""A phone's screen broadcaster: it sends, and the server sends it nothing but what its own stream needs."""
import asyncio
import contextlib
import pathlib
import subprocess
import sys
import time

import pytest

from support import bare
from support.aiortc_client import Client, MovingPicture, Tone
from support.browser_whip import open_whip
from support.chromium import chromium, open_room, until, wait_for_video
from support.server import Server
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S, until_true

AIORTC = pathlib.Path(__file__).parent / "support/aiortc_client.py"


def connection(server, room, identity):
    status, body = server.api("GET", f"/v1/rooms/{room}/participants/{identity}/stats")
    assert status == 200, body
    return body["connections"][0]


def people(server, room):
    return [person["identity"] for person in server.api("GET", f"/v1/rooms/{room}/participants")[1]["participants"]]


def report_blocks(compound):
    """Every SSRC that the packets of a decrypted RTCP compound are about: report blocks, media of feedback, REMB lists."""
    about, at = [], 0
    while at + 8 <= len(compound):
        count, kind, size = compound[at] & 0x1F, compound[at + 1], 4 * (int.from_bytes(compound[at + 2:at + 4]) + 1)
        body = compound[at:at + size]
        if kind in (200, 201):
            first = 28 if kind == 200 else 8
            about += [int.from_bytes(body[first + 24 * i:][:4]) for i in range(count)]
        elif kind == 205 or kind == 206 and count != 15:
            about.append(int.from_bytes(body[8:12]))
        elif kind == 206:
            about += [int.from_bytes(body[20 + 4 * i:][:4]) for i in range(body[16])]
        at += size
    return about


def test_B1_B2_B3_a_publish_only_participant_receives_no_media_and_next_to_no_control(server):
    """B1: 0 RTP packets. B2: at most 5 kbit/s of control, none of it about others. B3: no downlink state."""
    async def run():
        async with chromium() as browser, contextlib.AsyncExitStack() as stack:
            bob = await open_room(browser, server, "cast", "bob")
            await open_room(browser, server, "cast", "eve")
            talkers = [await Client().publish(f"{server.url}/whip/cast", token(f"talker{n}", "cast"), Tone()) for n in range(6)]
            phone = await Client().publish(f"{server.url}/whip/cast", token("phone", "cast"), MovingPicture(), Tone())
            quiet = await stack.enter_async_context(signal(server, token("app", "cast"), room="cast", profile="publishOnly"))
            await phone.connected()
            await wait_for_video(bob, count=2)
            await asyncio.sleep(2)
            seconds, before = 10, phone.tap.bytes.copy()
            heard = len(quiet.events)
            cpu, started = server.cpu_seconds(), time.monotonic()
            await asyncio.sleep(seconds)
            seconds = time.monotonic() - started
            rates = {kind: (phone.tap.bytes[kind] - before[kind]) * 8 / seconds for kind in ("rtp", "rtcp", "dtls", "other")}
            counted = connection(server, "cast", "phone")
            own = {sender.transport and sender._ssrc for sender in phone.peer.getSenders()}
            own |= {sender._rtx_ssrc for sender in phone.peer.getSenders()}
            about = {ssrc for compound in phone.tap.rtcp for ssrc in report_blocks(compound)} - {0}
            print(f"figures: {phone.tap.packets()} RTP packets, {rates['rtcp']:.0f} bit/s of RTCP, {rates['dtls']:.0f} of DTLS, "
                  f"{len(phone.tap.rtcp)} compounds about {len(about)} streams, downlink state {counted['downlinkStateBytes']} bytes, "
                  f"{len(quiet.events) - heard} events to a publish-only socket, server {cpu_share(server, cpu, seconds):.2f} cores")
            assert phone.tap.packets() == 0 and phone.tap.datagrams["rtp"] == 0, "no media"
            assert counted["rtpPacketsSent"] == 0
            assert rates["rtcp"] + rates["dtls"] <= 5000, "control"
            assert rates["rtcp"] > 0 and about <= own, f"control is about its own streams only: {about} of {own}"
            assert counted["downlinkStateBytes"] == 0, "nothing of the downlink exists"
            assert connection(server, "cast", "bob") and len(quiet.events) == heard, "nobody's events"
            assert "a=sendonly" not in phone.answer and "a=sendrecv" not in phone.answer, "no section sends to it"
            for client in (phone, *talkers):
                await client.close()

    asyncio.run(run())


def cpu_share(server, before, seconds):
    return (server.cpu_seconds() - before) / seconds


def test_B2_feedback_to_a_browser_stays_small_while_it_sends_much(server):
    """B2: with transport-wide feedback, which grows with what is sent, all downlink traffic stays within 5 kbit/s."""
    async def run():
        async with chromium() as browser:
            page = await open_whip(browser, server, f"{server.url}/whip/busy", token("desk", "busy"), shapes=150)
            async def rates(seconds):
                """What goes down and up, by the browser's own clock."""
                before = await page.evaluate("whip.transport()")
                await asyncio.sleep(seconds)
                after = await page.evaluate("whip.transport()")
                elapsed = (after["timestamp"] - before["timestamp"]) / 1000
                return [(after[key] - before[key]) / elapsed for key in ("bytesReceived", "bytesSent", "packetsSent")]

            # A browser's estimate grows as soon as its machine lets it.
            for _ in range(30):
                if (await rates(1))[1] * 8 > 400_000:
                    break
            # A browser that gets no processor time sends little: measure again.
            for _ in range(4):
                down, up, packets = await rates(8)
                if up * 8 > 300_000:
                    break
            down, up = down * 8, up * 8
            print(f"figures: {down:.0f} bit/s down (everything), {up / 1000:.0f} kbit/s up, {packets:.0f} packets/s up")
            assert up > 300_000, "the picture is busy"
            assert down <= 5000

    asyncio.run(run())


def test_B3_a_publish_only_participant_has_no_state_of_a_downlink(server):
    """B3: no byte of an estimator, a pacer or what was sent, where a player of one participant has some, 100 kB at most."""
    async def run():
        phone = await Client().publish(f"{server.url}/whip/cost", token("phone", "cost"), MovingPicture(320, 180), Tone())
        others = [await Client().publish(f"{server.url}/whip/cost", token(f"o{n}", "cost"), Tone()) for n in range(3)]
        player = await Client().play(f"{server.url}/whep/cost/phone", token("tv", "cost"))
        await player.wait_for_frames(video=10)
        lean, full = connection(server, "cost", "phone"), connection(server, "cost", "tv")
        print(f"figures: downlink state {lean['downlinkStateBytes']} bytes of a broadcaster, {full['downlinkStateBytes']} of a player")
        assert lean["downlinkStateBytes"] == 0 < full["downlinkStateBytes"] <= 100_000
        for client in (player, phone, *others):
            await client.close()

    asyncio.run(run())


def test_B20_the_replies_to_a_publish_only_participant_are_small(server):
    """B20: a publish-only participant in a room of 50 gets at most 16 KB, over the socket as over WHIP; a full participant gets the roster."""
    async def run():
        async with contextlib.AsyncExitStack() as stack:
            for n in range(50):
                await stack.enter_async_context(signal(server, token(f"member-{n}", "big", name=f"Member number {n}"), room="big"))
            app = await stack.enter_async_context(signal(server, token("app", "big"), room="big", profile="publishOnly"))
            full = await stack.enter_async_context(signal(server, token("full", "big"), room="big"))
            status, headers, answer = server.request("POST", "/whip/big", bare.offer(), {
                "Content-Type": "application/sdp", "Authorization": f"Bearer {token('phone', 'big')}"})
            assert status == 201, answer
            whip = len(answer) + sum(len(key) + len(value) + 4 for key, value in headers.items())
            print(f"figures: join reply {app.joined_bytes} bytes publish-only, {full.joined_bytes} full; WHIP answer {whip} bytes")
            assert app.joined_bytes <= 16_384 and whip <= 16_384
            assert not app.joined["participants"] and len(full.joined["participants"]) == 51
            await asyncio.sleep(0.3)
            assert not app.of("participantJoined"), "no roster unless requested"
            before = len(app.of("room"))
            reply, _ = await app.request("roster")
            assert reply["type"] == "ok"
            await app.wait_for("participantJoined")
            assert len(app.of("room")) == before + 1, "the state of the room precedes its participants"

    asyncio.run(run())


def test_B15_app_and_extension_of_one_person_are_two_participants(server):
    """B15: `alice` and `alice/screen` live side by side, and removing one leaves the other."""
    async def run():
        async with signal(server, token("alice", "office"), room="office") as alice:
            screen = await Client().publish(f"{server.url}/whip/office", token("alice/screen", "office"), MovingPicture(320, 180))
            await screen.connected()
            assert sorted(people(server, "office")) == ["alice", "alice/screen"]
            status, closure = server.api("DELETE", "/v1/rooms/office/participants/alice%2Fscreen")
            assert status == 200
            _, left = await alice.wait_for("participantLeft", identity="alice/screen")
            assert left["reason"] == "removed"
            assert people(server, "office") == ["alice"] and not alice.of("ended")
            newer = token("alice/screen", "office", issued_at=closure["acceptsTokensIssuedAfter"] + 1)
            again = await Client().publish(f"{server.url}/whip/office", newer, MovingPicture(320, 180))
            await again.connected()
            assert server.api("DELETE", "/v1/rooms/office/participants/alice")[0] == 200
            await alice.wait_for("ended", reason="removed")
            assert people(server, "office") == ["alice/screen"]
            await asyncio.sleep(0.3)
            assert again.peer.connectionState == "connected"
            for client in (screen, again):
                await client.close()

    asyncio.run(run())


@pytest.mark.judging
def test_B17_leaving_is_acknowledged_promptly_and_reported_once(server):
    """B17: acknowledged within 200 ms, reported once, everything freed within 1 s."""
    async def run():
        async with chromium() as browser, signal(server, token("eve", "bye"), room="bye", autoSubscribe=False) as eve:
            bob = await open_room(browser, server, "bye", "bob", send="nothing")
            figures = []
            for _ in range(5):
                phone = await Client().publish(f"{server.url}/whip/bye", token("phone", "bye"), MovingPicture(320, 180))
                await phone.connected()
                await wait_for_video(bob, frames=5)
                tracks = server.metric("martlet_worker_tracks")
                eve.events.clear()
                started = time.monotonic()
                assert await phone.delete() == 200
                acknowledged = time.monotonic() - started
                told = (await eve.wait_for("participantLeft", identity="phone"))[0] - started
                freed = acknowledged + await until_true(
                    lambda: server.metric("martlet_worker_tracks") < tracks and server.metric("martlet_worker_peers") <= 2, PATIENCE_S, "freed")
                await until(bob, "document.querySelectorAll('.tile:not(.own) video').length === 0")
                await asyncio.sleep(0.5)
                assert len(eve.of("participantLeft")) == 1 and len(eve.of("trackUnpublished")) <= 1
                assert "phone" not in people(server, "bye")
                figures.append((acknowledged, told, freed))
                await phone.close()
            # The median: one in five may meet a machine that was busy with something else.
            median, worst = ([pick(sorted(column)) * 1000 for column in zip(*figures)] for pick in (lambda all: all[2], max))
            print(f"figures: median (worst) of 5: acknowledged in {median[0]:.0f} ({worst[0]:.0f}) ms, notified in {median[1]:.0f} "
                  f"({worst[1]:.0f}) ms, freed in {median[2]:.0f} ({worst[2]:.0f}) ms")
            assert median[0] <= 200 and median[1] <= 200 and median[2] <= 1000

    asyncio.run(run())


def test_B18_a_new_session_replaces_the_ghost_of_the_same_identity(server):
    async def run():
        async with signal(server, token("eve", "ghosts"), room="ghosts", autoSubscribe=False) as eve:
            ghost = await Client().publish(f"{server.url}/whip/ghosts", token("phone", "ghosts"), MovingPicture(320, 180))
            await ghost.connected()
            # Not closed: the first session is still there when the second comes.
            phone = await Client().publish(f"{server.url}/whip/ghosts", token("phone", "ghosts"), MovingPicture(320, 180))
            await phone.connected()
            _, left = await eve.wait_for("participantLeft", identity="phone")
            assert left["reason"] == "duplicate_identity" and len(eve.of("participantLeft")) == 1
            assert sorted(people(server, "ghosts")) == ["eve", "phone"]
            await until_true(lambda: server.metric("martlet_worker_peers") == 1, PATIENCE_S, "the ghost's connection is closed")
            await ghost.close()
            await asyncio.sleep(0.3)
            assert phone.peer.connectionState == "connected", "the ghost's goodbye does not touch its successor"
            await phone.close()

    asyncio.run(run())


def test_B18_F4_a_killed_client_is_disconnected_within_the_consent_timeout():
    """F4, B18: kill -9, without leaving. The others are notified within the configured time (15 s by default), and the transport is freed."""
    servers = {5: Server(media={"consent_timeout": 5}).start(), 15: Server().start()}

    async def kill_one(server, limit):
        async with signal(server, token("eve", "ghost"), room="ghost", autoSubscribe=False) as eve:
            doomed = await asyncio.create_subprocess_exec(
                sys.executable, AIORTC, "publish", f"{server.url}/whip/ghost", token("phone", "ghost"), stdout=subprocess.PIPE)
            assert await asyncio.wait_for(doomed.stdout.readline(), PATIENCE_S) == b"connected\n"
            peers = server.metric("martlet_worker_peers")
            await asyncio.sleep(1)

            def came():
                tracks = server.api("GET", "/v1/rooms/ghost/participants/phone/stats")[1]["tracks"]
                return sum(layer["packetsReceived"] for track in tracks for layer in track["layers"])

            # It is alive now: the time counts from the last packet that came.
            before = came()
            await until_true(lambda: came() > before, PATIENCE_S, "the phone sends")
            killed = time.time()
            doomed.kill()
            await doomed.wait()
            _, left = await eve.wait_for("participantLeft", identity="phone")
            # When the server reported it, by its own clock: this process, which asks two servers at a time, may read it later.
            events = server.api("GET", "/v1/rooms/ghost/events?after=0", headers={"Accept": "application/json"})[1]["events"]
            (told,) = [one["at"] / 1000 for one in events if one["type"] == "participantLeft"]
            await until_true(lambda: server.metric("martlet_worker_peers") < peers, PATIENCE_S, "freed")
            print(f"figures: notified {told - killed:.1f} s after the kill (limit {limit} s), reason {left['reason']}")
            assert limit - 1 <= told - killed <= limit + 3
            assert left["reason"] == "connection_lost" and len(eve.of("participantLeft")) == 1
            assert people(server, "ghost") == ["eve"]
            assert server.metric("martlet_worker_tracks") == 0

    async def run():
        await asyncio.gather(*(kill_one(server, limit) for limit, server in servers.items()))

    try:
        asyncio.run(run())
    finally:
        for server in servers.values():
            server.stop()
