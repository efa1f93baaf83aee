"""Networks that block UDP: browsers reach the media workers over TCP alone (ICE-TCP, RFC 6544)."""
import asyncio
import contextlib
import re
import socket
import subprocess
import time

import pytest

from support.chromium import EXECUTABLE, chromium, open_room, received, room_address, until, wait_for_video
from support.firefox import firefox
from support.network import SERVER_ADDRESS, Lab, inside
from support.server import Server
from support.tokens import token

SEES = "martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.framesDecoded > 15))"
HEARS = "martlet.received().then((all) => all.some((r) => r.kind === 'audio' && r.totalAudioEnergy > 0))"
PAIRS = """Promise.all([martlet.room.pub, martlet.room.sub].filter(Boolean).map(async (peer) => {
    const reports = [...(await peer.getStats()).values()];
    const pair = reports.find((one) => one.type === 'candidate-pair' && (one.selected || (one.nominated && one.state === 'succeeded')));
    const remote = pair && reports.find((one) => one.id === pair.remoteCandidateId);
    return remote ? `${remote.protocol} ${remote.port}` : '';
})).then((all) => all.filter(Boolean))"""


# Drops packets whose byte 9, the protocol of IPv4, is 17: load it, compare, TC_ACT_SHOT or TC_ACT_OK.
NO_UDP = "4,48 0 0 9,21 0 1 17,6 0 0 2,6 0 0 0"


def block_udp(namespace):
    """No datagram leaves, and nobody is told: what hotels and offices do that permit the web alone."""
    for command in (["qdisc", "add", "dev", "e0", "clsact"], ["filter", "add", "dev", "e0", "egress", "bpf", "da", "bytecode", NO_UDP]):
        subprocess.run(["ip", "netns", "exec", namespace, "tc", *command], check=True, timeout=10)


def metric(server, name):
    """The sum of a metric over workers, by the value of its one other label where it has one."""
    page = server.get_private("/metrics")[1]
    found = {}
    for labels, value in re.findall(rf"^martlet_{name}(?:{{(.*)}})? (\S+)$", page, re.M):
        key = ",".join(part for part in labels.split(",") if part and not part.startswith("worker="))
        found[key] = found.get(key, 0) + float(value)
    return found


@pytest.fixture
def walled():
    """A server, and two clients' networks without UDP."""
    with Lab("mtcp", 2) as lab:
        for number in (1, 2):
            block_udp(lab.client(number))
        yield lab


@pytest.mark.parametrize("port", ["own", "shared"])
def test_F9_Chromium_and_Firefox_meet_without_UDP(walled, port):
    """Both publish and watch; at the workers' ports, and at one shared port with two workers behind it. Judged by decoded frames."""
    lab = walled
    media = {"tcp": "false", "tcp_port": 443} if port == "shared" else {}
    server = Server(host=SERVER_ADDRESS, namespace=lab.server, workers=2, media=media).start()

    async def run():
        async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as browser, firefox(lab.client(2)) as fox:
            ada = await open_room(browser, server, "walled", "ada", codec="VP8", token=token("ada", "walled"))
            await fox.open(room_address(server, "walled", "fox", send="generated", token=token("fox", "walled")))
            await wait_for_video(ada, timeout_s=30)
            await until(ada, HEARS)
            await fox.wait_for(SEES, 30)
            await fox.wait_for(HEARS, 10)
            ports = {f"tcp {443 if port == 'shared' else server.udp + worker}" for worker in (0, 1)}
            for pairs in (await ada.evaluate(PAIRS), await fox.evaluate(PAIRS)):
                assert pairs and set(pairs) <= ports, pairs
            assert ada.problems == []
            if port == "own":
                # ICE restart, and a connection that breaks: both come back by themselves.
                before = (await received(ada))[0]["packetsReceived"]
                subprocess.run(["ip", "netns", "exec", lab.client(1), "ss", "-K", "dport", "=", f":{server.udp}", "or", "dport", "=", f":{server.udp + 1}"],
                               check=True, timeout=10, stdout=subprocess.DEVNULL)
                frames = max(r.get("framesDecoded", 0) for r in await received(ada))
                await until(ada, f"martlet.received().then((all) => all.some((r) => r.kind === 'video' && r.framesDecoded > {frames + 30}))", 20)
                assert before >= 0

    try:
        asyncio.run(run())
        assert metric(server, "tcp_connections")[""] >= 4
    finally:
        assert server.stop() == 0
