"""Participants who are moved to another room, on the connections that they have."""
import asyncio
import time

from conftest import running
from support import livekit_sdk
from support.chromium import REMOTES, chromium, open_room, until, wait_for_video
from support.livekit_sdk import GREEN, RED, Client
from support.raw_page import raw_member
from support.tokens import KEY, SECRET
from test_limits import publish

#: Publishes a picture on "pub", and answers what the server offers on "sub".
PUBLISH = """async () => {
    raw.pub = new RTCPeerConnection();
    raw.pub.addTransceiver(raw.picture(), { direction: "sendonly" });
    raw.receive();
    return raw.offer("pub", raw.pub);
}"""
FRAMES = "() => raw.sub ? raw.frames(raw.sub, 'video') : 0"
EVENTS = "(type) => raw.events.filter((event) => event.type === type)"


async def more_frames(page, count, what, seconds=10):
    """Waits until the page has decoded so many more frames of video."""
    wanted = await page.evaluate(FRAMES) + count
    deadline = time.monotonic() + seconds
    while await page.evaluate(FRAMES) < wanted:
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        await page.wait_for_timeout(20)


def test_I8_a_participant_moves_to_another_room_and_its_picture_with_it():
    async def run(server):
        assert server.api("POST", "/v1/rooms", {"name": "hall"})[0] == 201
        assert server.api("POST", "/v1/rooms", {"name": "booth", "beside": "hall"})[0] == 201
        async with chromium() as browser:
            ada, bob = [await raw_member(browser, server, "hall", name) for name in ("ada", "bob")]
            carl = await raw_member(browser, server, "booth", "carl")
            for page in (ada, bob, carl):
                assert (await page.evaluate(PUBLISH))["type"] == "answer"
            await more_frames(bob, 10, "bob sees ada")
            await more_frames(ada, 10, "ada sees bob")
            assert await carl.evaluate(FRAMES) == 0

            begun = time.monotonic()
            status, moved = server.api("POST", "/v1/rooms/hall/participants/ada/move", {"room": "booth"})[:2]
            assert status == 200 and moved["identity"] == "ada" and len(moved["tracks"]) == 1
            await more_frames(carl, 10, "carl sees ada")
            print(f"figures: ten frames in the other room {time.monotonic() - begun:.2f} s after the request")
            await more_frames(ada, 10, "ada sees carl")
            told = await ada.evaluate(EVENTS, "moved")
            assert [event["room"]["name"] for event in told] == ["booth"]
            assert [one["identity"] for one in told[0]["participants"]] == ["carl"]
            left = await bob.evaluate(EVENTS, "participantLeft")
            assert [(one["identity"], one["reason"]) for one in left] == [("ada", "moved")]
            still = await bob.evaluate(FRAMES)
            await bob.wait_for_timeout(1_000)
            assert await bob.evaluate(FRAMES) == still
            # The same two connections, which nobody restarted.
            states = [one["state"] for one in await ada.evaluate(EVENTS, "connection")]
            assert states == ["connected", "connected"], states
            assert await ada.evaluate("[raw.pub.connectionState, raw.sub.connectionState]") == ["connected", "connected"]
            assert (await ada.evaluate("raw.request('ping')"))["type"] == "pong"

            # The console's page, which uses the module: it shows the other room, and who is there.
            eve = await open_room(browser, server, "hall", "eve")
            await wait_for_video(eve)
            assert server.api("POST", "/v1/rooms/hall/participants/eve/move", {"room": "booth"})[0] == 200
            await until(eve, "document.getElementById('room-title').textContent === 'booth'")
            await until(eve, "[...martlet.room.room.participants.values()].map((one) => one.identity).sort().join() === 'ada,carl'")
            await wait_for_video(eve, 2)
            assert eve.problems == []

            assert server.api("POST", "/v1/rooms/booth/participants/ada/move", {"room": "hall"})[0] == 200
            await more_frames(bob, 10, "bob sees ada again")
            await more_frames(ada, 10, "ada sees bob again")

    with running() as server:
        asyncio.run(run(server))


def test_I8_a_participant_moves_to_a_room_of_another_media_worker_by_connecting_anew():
    """The console's page, which uses the module: in the same session it leaves one worker's port for the other's, and publishes again."""
    async def run(server):
        async with chromium() as browser:
            ada = await open_room(browser, server, "hall", "ada")
            bob = await open_room(browser, server, "hall", "bob", send="nothing")
            carl = await open_room(browser, server, "far", "carl")
            await wait_for_video(bob)
            ports = [set(await page.evaluate(REMOTES)) for page in (ada, carl)]
            assert ports[0] and ports[1] and ports[0] != ports[1], ports
            sid = await ada.evaluate("martlet.room.self.sid")
            begun = time.monotonic()
            status, moved = server.api("POST", "/v1/rooms/hall/participants/ada/move", {"room": "far"})[:2]
            assert status == 200 and moved["sid"] == sid, moved
            await until(ada, "document.getElementById('room-title').textContent === 'far'")
            await wait_for_video(carl, frames=10)
            print(f"figures: ten frames in the room of the other worker {time.monotonic() - begun:.2f} s after the request")
            await wait_for_video(ada, frames=10)
            assert set(await ada.evaluate(REMOTES)) == ports[1]
            assert await ada.evaluate("martlet.room.self.sid") == sid
            await until(bob, "document.querySelectorAll('.tile:not(.own)').length === 0")
            assert ada.problems == [] and carl.problems == []
            # Whoever would have to join anew is told how rooms are made for it.
            assert publish(server, "hall", "phone")[0] == 201
            status, problem = server.api("POST", "/v1/rooms/hall/participants/phone/move", {"room": "far"})[:2]
            assert status == 409 and problem["code"] == "different_worker" and "`beside`" in problem["detail"], problem

    with running(workers=2) as server:
        asyncio.run(run(server))


async def breakout(url, http):
    from livekit import api
    ada, bob = [await Client(url, name).connect() for name in ("ada", "bob")]
    carl = await Client(url, "carl", "booth").connect()
    moves = []
    ada.room.on("moved", lambda: moves.append(ada.room.name))
    await ada.publish_video(RED, size=(640, 360))
    await carl.publish_video(GREEN, size=(640, 360))
    await (await bob.sees("ada", RED)).more(5)
    calls = api.LiveKitAPI(http, KEY, SECRET)
    await calls.room.move_participant(api.MoveParticipantRequest(room="r", identity="ada", destination_room="booth"))
    await calls.aclose()
    await (await carl.sees("ada", RED)).more(10)
    await (await ada.sees("carl", GREEN)).more(10)
    await livekit_sdk.until(lambda: bob.seen("participant_disconnected"), "bob learns that ada is gone")
    people = sorted(ada.room.remote_participants)
    for client in (ada, bob, carl):
        await client.close()
    return moves, people, bool(ada.seen("reconnecting"))


def test_I8_livekits_sdk_follows_a_move():
    with running() as server:
        assert livekit_sdk.run(breakout, server.url.replace("http", "ws", 1), server.url) == (["booth"], ["carl"], False)
