"""Networks that block UDP: browsers reach the media workers over TCP alone (ICE-TCP, RFC 6544)."""
import asyncio
import contextlib
import os
import pathlib
import stat
import subprocess
import tempfile
import time

import pytest

from support.chromium import EXECUTABLE, REMOTES, chromium, open_room, received, room_address, until, wait_for_video
from support.firefox import firefox
from support.network import SERVER_ADDRESS, Lab, why_no_namespaces
from support.server import Server
from support.tokens import token
from support.waiting import PATIENCE_S
from test_console_check import DONE, STEPS, open_check

SEES = "martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.framesDecoded > 15))"
HEARS = "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0))"


# Drops packets whose byte 9, the protocol of IPv4, is 17: load it, compare, TC_ACT_SHOT or TC_ACT_OK.
NO_UDP = "4,48 0 0 9,21 0 1 17,6 0 0 2,6 0 0 0"


PUBLIC = "198.51.100.7"


def block_udp(namespace):
    """No datagram passes in either direction, and nobody is notified: what hotels and offices do that permit the web alone."""
    filters = [["filter", "add", "dev", "e0", way, "bpf", "da", "bytecode", NO_UDP] for way in ("egress", "ingress")]
    for command in (["qdisc", "add", "dev", "e0", "clsact"], *filters):
        subprocess.run(["ip", "netns", "exec", namespace, "tc", *command], check=True, timeout=10)


def permit_udp(namespace):
    """Takes `block_udp` back."""
    subprocess.run(["ip", "netns", "exec", namespace, "tc", "qdisc", "del", "dev", "e0", "clsact"], check=True, timeout=10)


@pytest.fixture
def walled():
    """A server, and two clients' networks without UDP."""
    with Lab("mtcp", 2) as lab:
        for number in (1, 2):
            block_udp(lab.client(number))
        yield lab


@pytest.mark.parametrize("port", ["own", pytest.param("shared", marks=pytest.mark.at_night)])
def test_F9_Chromium_and_Firefox_meet_without_UDP(walled, port):
    """Both publish and watch; at the workers' ports, and at one shared port with two workers behind it. Judged by decoded frames."""
    lab = walled
    media = {}
    if port == "shared":
        # Chromium takes 443 from no private address.
        subprocess.run(["ip", "-n", lab.server, "addr", "add", f"{PUBLIC}/32", "dev", "lo"], check=True, timeout=10)
        media = {"bind": None, "announced_addresses": PUBLIC, "tcp": "false", "tcp_port": 443}
    server = Server(host=SERVER_ADDRESS, namespace=lab.server, workers=2, media=media).start()

    async def run():
        async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as browser, firefox(lab.client(2)) as fox:
            ada = await open_room(browser, server, "walled", "ada", codec="VP8", token=token("ada", "walled"))
            await fox.open(room_address(server, "walled", "fox", send="generated", token=token("fox", "walled")))
            await wait_for_video(ada)
            await until(ada, "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.packetsReceived > 20))")
            await fox.wait_for(SEES, PATIENCE_S)
            await fox.wait_for(HEARS, PATIENCE_S)
            # The shared port has an announced address of its own.
            ports = tuple(f":{443 if port == 'shared' else server.udp + worker}" for worker in (0, 1))
            for remotes in (await ada.evaluate(REMOTES), await fox.evaluate(REMOTES)):
                assert remotes and all(remote.startswith("tcp ") and remote.endswith(ports) for remote in remotes), remotes
            assert ada.problems == []

    try:
        asyncio.run(run())
        assert server.metric("martlet_tcp_connections_accepted_total") >= 4
    finally:
        assert server.stop() == 0


def test_F9_the_check_reports_that_TCP_works_where_UDP_does_not(walled):
    """What the page shows a person behind such a firewall before the call."""
    server = Server(host=SERVER_ADDRESS, namespace=walled.server).start()

    async def run():
        async with chromium(executable=walled.wrapper(1, EXECUTABLE)) as browser:
            page = await open_check(browser, server)
            await page.click("#check-start")
            await until(page, DONE, 60)
            steps, verdict = await page.evaluate(STEPS), await page.evaluate("martletCheck.verdict")
            print(f"figures: {steps['tcp']['measured']}")
            assert steps["signalling"]["state"] == "good" and steps["udp"]["state"] == "bad", steps
            # How well it works on this machine at this moment is another question.
            assert steps["tcp"]["state"] in ("good", "poor") and steps["tcp"]["measured"]["returnedBitrate"] > 50_000, steps["tcp"]
            assert verdict["state"] == "poor" and verdict["text"].startswith("Calls will work from here by TCP, because UDP"), verdict
            assert page.problems == []

    try:
        asyncio.run(run())
    finally:
        assert server.stop() == 0


@pytest.mark.judging
def test_F9_a_slow_TCP_reader_loses_video_and_nobody_else_does(walled):
    """The link of one viewer falls to a tenth of its video and comes back. The other viewer misses nothing, the server's memory is bounded, and the
    slow viewer's video returns with a keyframe."""
    lab = walled
    server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()

    async def video(page):
        return await page.evaluate("""martlet.room.sub.getStats().then((all) => {
            const { bytesReceived, framesReceived, framesDecoded, keyFramesDecoded, packetsLost } =
                [...all.values()].find((one) => one.type === 'inbound-rtp' && one.kind === 'video');
            return { bytesReceived, framesReceived, framesDecoded, keyFramesDecoded, packetsLost };
        })""")

    async def sent(page):
        return await page.evaluate("""martlet.room.pub.getStats().then((all) => [...all.values()].find((one) => one.type === 'outbound-rtp' && one.kind === 'video').framesSent)""")

    async def run():
        # The first client's network is open again.
        permit_udp(lab.client(1))
        async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as near, chromium(executable=lab.wrapper(2, EXECUTABLE)) as far:
            ada = await open_room(near, server, "slow", "ada", codec="VP8", simulcast=0, token=token("ada", "slow"))
            eve = await open_room(near, server, "slow", "eve", send="nothing", token=token("eve", "slow"))
            bob = await open_room(far, server, "slow", "bob", send="nothing", token=token("bob", "slow"))
            await wait_for_video(eve, frames=40)
            await wait_for_video(bob, frames=40)
            assert set(await bob.evaluate(REMOTES)) == {f"tcp {SERVER_ADDRESS}:{server.udp}"}
            # The kernel takes 32 kB before anything waits in the server: a video of 60 kB/s was paused for bandwidth before that was full, one of
            # the full rate fills it in a quarter of a second.
            end, last = time.monotonic() + PATIENCE_S, await video(bob)
            while True:
                await asyncio.sleep(1)
                last, before = await video(bob), last
                if (rate := last["bytesReceived"] - before["bytesReceived"]) > 120_000:
                    break
                assert time.monotonic() < end, (before, last)
            memory, before, first, start = server.rss_bytes(), await video(eve), await sent(ada), time.monotonic()
            lab.set(2, "ab rate 20")
            backlog = 0
            while time.monotonic() < start + 8:
                await asyncio.sleep(0.5)
                backlog = max(backlog, server.metric("martlet_tcp_backlog_bytes"))
            # The sender is asked within what the viewer's answers span, here and above: an answer that is late adds no frame that the viewer lacks.
            slow, last, after = await video(bob), await sent(ada), await video(eve)
            lab.set(2, "ab rate 0")
            received = after["framesReceived"] - before["framesReceived"]
            end = time.monotonic() + 25
            while (now := await video(bob))["framesDecoded"] <= slow["framesDecoded"] + 30 or now["keyFramesDecoded"] <= slow["keyFramesDecoded"]:
                assert time.monotonic() < end, f"the video does not return: {slow}, {now}"
                await asyncio.sleep(0.2)
            holds = server.metric("martlet_tcp_video_holds_total")
            grown = server.rss_bytes() - memory
            print(f"figures: {rate} bytes/s before, {holds} holds, at most {backlog} bytes in the backlog, {grown} bytes of memory more, {received} of {last - first} frames at the other viewer")
            assert holds >= 1 and 0 < backlog <= 256 << 10 and grown < 16 << 20
            # The server numbers packets anew, so that what it leaves out is not lost to a receiver: frames are counted, too. A few are on the way.
            assert after["packetsLost"] == before["packetsLost"] and received > 0.95 * (last - first) > 0, (before, after, first, last)

    try:
        asyncio.run(run())
    finally:
        assert server.stop() == 0


class Anywhere(Server):
    """A server on all addresses of its namespace, asked at one of them."""

    def __init__(self, address, **options):
        super().__init__(host='"::"', media={"bind": None}, **options)
        self.address = address

    @property
    def url(self):
        return f"http://{self.address}:{self.http}"

    def get_private(self, path):
        status, _, text = self.request("GET", path, base=f"http://{self.address}:{self.private}")
        return status, text


@contextlib.contextmanager
def networks(*families):
    """A server's namespace and one for each client, whose network has one family of addresses: 4 or 6. The server has those that they have."""
    if reason := why_no_namespaces():
        pytest.skip(f"needs network namespaces (CAP_NET_ADMIN): {reason}")
    prefix = f"msix{os.getpid()}"
    names = [f"{prefix}-srv", *(f"{prefix}-c{number}" for number in range(len(families)))]

    def ip(*words):
        subprocess.run(["ip", *words], check=True, timeout=10)

    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for number, family in enumerate(families):
            ip("-n", names[0], "link", "add", f"v{number}", "type", "veth", "peer", "name", "e0", "netns", names[number + 1])
            for name, device, own in ((names[0], f"v{number}", 1), (names[number + 1], "e0", 2)):
                address = f"10.78.{number}.{own}/24" if family == 4 else f"fd00:78:{number}::{own}/64"
                # No address comes later: Chromium aborts what it loads when one does (ERR_NETWORK_CHANGED).
                ip("-n", name, "link", "set", device, "addrgenmode", "none")
                ip("-n", name, "addr", "add", address, "dev", device, *(["nodad"] if family == 6 else []))
                ip("-n", name, "link", "set", device, "up")
        if 4 not in families:
            for name in names:
                ip("-n", name, "addr", "del", "127.0.0.1/8", "dev", "lo")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10)


@pytest.mark.parametrize("families", [pytest.param((6, 6), id="IPv6 only", marks=pytest.mark.at_night), pytest.param((6, 4), id="dual stack")])
def test_F2_browsers_meet_where_there_is_only_IPv6_and_across_families(families):
    """Without any IPv4 address in the server's network; and one browser with IPv6 alone, the other with IPv4 alone. Judged by decoded frames."""
    addresses = [f"[fd00:78:{number}::1]" if family == 6 else f"10.78.{number}.1" for number, family in enumerate(families)]

    async def run(names, server, folder):
        def wrapper(number):
            path = pathlib.Path(folder) / f"run-{number}"
            path.write_text(f'#!/bin/sh\nexec ip netns exec {names[number + 1]} {EXECUTABLE} "$@"\n')
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return str(path)

        async with chromium(executable=wrapper(0)) as one, chromium(executable=wrapper(1)) as two:
            pages = []
            for number, (browser, name) in enumerate(((one, "ada"), (two, "bob"))):
                server.address = addresses[number]
                pages.append(await open_room(browser, server, "six", name, codec="VP8", token=token(name, "six")))
            for page, family in zip(pages, families):
                await wait_for_video(page)
                assert all((remote.count(":") > 1) == (family == 6) for remote in await page.evaluate(REMOTES))

    with networks(*families) as names, tempfile.TemporaryDirectory() as folder:
        server = Anywhere(addresses[0], namespace=names[0]).start()
        try:
            asyncio.run(run(names, server, folder))
        finally:
            assert server.stop() == 0
