"""Bad networks between namespaces: loss, a changing address, a server that dies."""
import asyncio
import time

import pytest
from support.chromium import chromium, open_room, received, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.tokens import token

CHROMIUM = "/usr/lib/chromium/chromium"


@pytest.fixture
def lossy():
    with Lab("mloss", 2, "both", "loss", 5, "both", "delay", 20) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
        yield lab, server
        server.stop()


def test_G3_five_percent_loss_each_way_is_repaired(lossy):
    """G3: at least 99 % of the frames that were sent are decoded, although 5 % of all packets are lost each way."""
    lab, server = lossy

    async def run():
        async with chromium(executable=lab.wrapper(1, CHROMIUM)) as one, chromium(executable=lab.wrapper(2, CHROMIUM)) as two:
            await open_room(one, server, "loss", "ada", codec="VP8", simulcast=0, token=token("ada", "loss"))
            bob = await open_room(two, server, "loss", "bob", send="nothing", token=token("bob", "loss"))
            await wait_for_video(bob, frames=60, timeout_s=40)
            before = video(await received(bob))
            await asyncio.sleep(20)
            after = video(await received(bob))
            decoded = after["framesDecoded"] - before["framesDecoded"]
            dropped = after["framesDropped"] - before["framesDropped"]
            assert decoded > 300, after
            assert decoded / (decoded + dropped) >= 0.99, (before, after)
            lost = after["packetsLost"] - before["packetsLost"]
            packets = after["packetsReceived"] - before["packetsReceived"]
            assert lost / packets < 0.02, "retransmission did not repair the link"
            assert after["nackCount"] > 0, "the link lost nothing, so this proved nothing"
            assert server.metric("martlet_retransmissions_sent_total") > 0
            assert server.metric("martlet_nacks_sent_total") > 0

    asyncio.run(run())


def video(all_received):
    return next(r for r in all_received if r["kind"] == "video")


def test_clients_rejoin_after_the_server_was_killed():
    server = Server().start()

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "phoenix", "ada")
            bob = await open_room(browser, server, "phoenix", "bob")
            await wait_for_video(bob)
            server.kill()
            await bob.wait_for_function("!martlet.joined", timeout=10_000)
            server.start()
            for page in (ada, bob):
                await page.wait_for_function("martlet.joined", timeout=20_000)
                await wait_for_video(page, timeout_s=25)

    try:
        asyncio.run(run())
    finally:
        server.stop()


def test_F4_a_killed_peer_is_gone_within_the_consent_timeout(server):
    """F4, B18: no goodbye; the others are told within 15 s, and the transport is freed."""
    async def run():
        async with chromium() as watching:
            bob = await open_room(watching, server, "ghost", "bob")
            async with chromium() as doomed:
                await open_room(doomed, server, "ghost", "ada")
                await wait_for_video(bob)
            gone = time.monotonic()
            await bob.wait_for_function("() => document.querySelectorAll('.tile:not(.own)').length === 0", timeout=20_000)
            assert time.monotonic() - gone < 17
            status, people = server.api("GET", "/v1/rooms/ghost/participants")
            assert status == 200 and len(people["participants"]) == 1

    asyncio.run(run())
