"""A phone's screen broadcaster: it sends, and the server sends it nothing but what its own stream needs."""
import asyncio

from support.aiortc_client import Client, MovingPicture, Tone
from support.chromium import chromium, open_room, wait_for_video
from support.tokens import token


def test_B1_B2_a_broadcaster_receives_no_media_and_next_to_no_control(server):
    """B1: 0 RTP packets. B2: at most 5 kbit/s of control for a broadcaster among talking members."""
    async def run():
        async with chromium() as browser:
            bob = await open_room(browser, server, "cast", "bob")
            await open_room(browser, server, "cast", "eve")
            phone = await Client().publish(f"{server.url}/whip/cast", token("phone", "cast"), MovingPicture(), Tone())
            await phone.connected()
            await wait_for_video(bob, count=2)
            await asyncio.sleep(5)
            before = stats(server)
            await asyncio.sleep(10)
            after = stats(server)
            assert after["rtpPacketsSent"] == 0
            assert after["downlinkStateBytes"] == 0, "B3: nothing of the downlink exists"
            control = (after["bytesSent"] - before["bytesSent"]) * 8 / 10
            assert control <= 5000, f"{control} bit/s"
            await phone.close()

    def stats(server):
        status, body = server.api("GET", "/v1/rooms/cast/participants/phone/stats")
        assert status == 200, body
        return body["peers"][0]

    asyncio.run(run())


def test_B17_goodbye_is_prompt_and_told_once(server):
    async def run():
        async with chromium() as browser:
            bob = await open_room(browser, server, "bye", "bob", send="nothing")
            phone = await Client().publish(f"{server.url}/whip/bye", token("phone", "bye"), MovingPicture())
            await phone.connected()
            await wait_for_video(bob)
            assert await phone.delete() in (200, 204)
            await bob.wait_for_function("() => document.querySelectorAll('.tile:not(.own)').length === 0", timeout=1000)
            status, people = server.api("GET", "/v1/rooms/bye/participants")
            assert [p["identity"] for p in people["participants"]] == ["bob"]
            await phone.close()

    asyncio.run(run())


def test_B18_a_new_session_replaces_the_ghost_of_the_same_identity(server):
    async def run():
        ghost = await Client().publish(f"{server.url}/whip/ghosts", token("phone", "ghosts"), MovingPicture())
        await ghost.connected()
        # Not closed: the first session is still there when the second comes.
        phone = await Client().publish(f"{server.url}/whip/ghosts", token("phone", "ghosts"), MovingPicture())
        await phone.connected()
        status, people = server.api("GET", "/v1/rooms/ghosts/participants")
        assert [p["identity"] for p in people["participants"]] == ["phone"]
        await ghost.close()
        await phone.close()

    asyncio.run(run())
