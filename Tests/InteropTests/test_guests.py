"""Waiting rooms, demanded encryption and revoked tokens: from the page, over a socket and through the operators' API."""
import asyncio
import time

from conftest import running
from support.bare import offer
from support.chromium import chromium, open_form, open_room, until
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S, until_true
from test_joining import joined, refused


def test_I1_a_guest_waits_on_the_page_until_a_moderator_lets_it_in_from_the_page():
    async def run(server):
        assert server.api("POST", "/v1/rooms", {"name": "clinic", "policy": {"waitingRoom": True}})[0] == 201
        async with chromium() as browser:
            host = await open_room(browser, server, "clinic", "host", token=token("host", "clinic", roomAdmin=True), send="nothing")
            dora = await open_form(browser, server, "clinic", "dora", token=token("dora", "clinic"), send="nothing")
            await dora.click("#join-button")
            await until(dora, "!document.getElementById('join-wait').hidden")
            line = host.locator("#guests li", has_text="dora")
            await line.wait_for(timeout=PATIENCE_S * 1_000)
            # Longer than a socket is given to join.
            await host.wait_for_timeout(12_000)
            assert await dora.is_visible("#join-wait") and await line.is_visible()
            begun = time.monotonic()
            await line.get_by_role("button", name="Let in").click()
            await until(dora, "Boolean(window.martlet?.joined)")
            print(f"figures: in {time.monotonic() - begun:.1f} s after the click")
            await until(host, "document.getElementById('guests').hidden")
            eve = await open_form(browser, server, "clinic", "eve", token=token("eve", "clinic"), send="nothing")
            await eve.click("#join-button")
            await host.locator("#guests li", has_text="eve").get_by_role("button", name="Turn away").click()
            await until(eve, "document.getElementById('join-problem').textContent.includes('did not let you in')")
            for page in (host, dora, eve):
                assert page.problems == []

    with running() as server:
        asyncio.run(run(server))


def test_I1_a_guest_may_stop_waiting_which_turns_the_camera_off():
    async def run(server):
        assert server.api("POST", "/v1/rooms", {"name": "clinic", "policy": {"waitingRoom": True}})[0] == 201
        async with chromium() as browser:
            host = await open_room(browser, server, "clinic", "host", token=token("host", "clinic", roomAdmin=True), send="nothing")
            dora = await open_form(browser, server, "clinic", "dora", token=token("dora", "clinic"), send="camera")
            assert not await dora.is_visible("#join-cancel")
            await dora.click("#preview-start")
            await until(dora, "Boolean(document.querySelector('#preview-video').srcObject)")
            await dora.evaluate("window.camera = document.querySelector('#preview-video').srcObject.getVideoTracks()[0]; 0")
            await dora.click("#join-button")
            await until(host, "document.querySelectorAll('#guests li').length === 1")
            assert await dora.evaluate("camera.readyState") == "live"
            await dora.click("#join-cancel")
            assert await dora.evaluate("camera.readyState") == "ended", "the camera is off"
            assert await dora.inner_text("#join-problem") == "" and not await dora.is_visible("#join-wait") and not await dora.is_visible("#join-cancel")
            assert await dora.evaluate("document.activeElement.id") == "join-button" and await dora.inner_text("#join-button") == "Join"
            await until(host, "document.querySelector('#guests').hidden")
            await dora.click("#join-button")  # And may ask again.
            await host.locator("#guests li", has_text="dora").get_by_role("button", name="Let in").click()
            await until(dora, "Boolean(window.martlet?.joined)")
            for page in (host, dora):
                assert page.problems == []

    with running() as server:
        asyncio.run(run(server))


def test_I1_an_operator_sees_who_waits_and_lets_an_encoder_in():
    with running() as server:
        assert server.api("POST", "/v1/rooms", {"name": "hall", "policy": {"waitingRoom": True}})[0] == 201
        publish = {"Authorization": f"Bearer {token('cam', 'hall')}", "Content-Type": "application/sdp"}
        status, headers, text = server.request("POST", "/whip/hall", offer(), publish)
        assert status == 403 and "approval_required" in text and headers["Retry-After"] == "2"
        guests = server.api("GET", "/v1/rooms/hall/guests")[1]["guests"]
        assert [guest["identity"] for guest in guests] == ["cam"]
        assert server.api("POST", "/v1/rooms/hall/guests/cam")[0] == 204
        assert server.request("POST", "/whip/hall", offer(), publish)[0] == 201
        assert server.api("DELETE", "/v1/rooms/hall/guests/nobody")[1]["code"] == "guest_not_found"
        types = [event["type"] for event in server.api("GET", "/v1/rooms/hall/events?after=0", headers={"Accept": "application/json"})[1]["events"]]
        assert types.count("guestWaiting") == 1 and types.count("guestDecided") == 1, types


def test_I1_a_room_that_demands_encryption_admits_only_who_encrypts():
    async def run(server):
        assert server.api("POST", "/v1/rooms", {"name": "vault", "policy": {"requireEncryption": True}})[0] == 201
        assert (await joined(server, token("ada", "vault")))["code"] == "encryption_required"
        reply = await joined(server, token("ada", "vault"), encrypted=True)
        assert reply["type"] == "joined" and reply["participant"]["encrypted"] is True

    with running() as server:
        asyncio.run(run(server))
        assert refused(server, "POST", "/whip/vault", token("cam", "vault"), offer()) == (403, "encryption_required")


def test_I8_a_moderator_asks_a_person_to_unmute_and_the_person_does():
    async def run(server):
        async with chromium() as browser:
            ada = await open_room(browser, server, "class", "ada", token=token("ada", "class"))
            await until(ada, "document.getElementById('mute-audio').disabled === false")
            audio = lambda: [t["sid"] for t in server.api("GET", "/v1/rooms/class/tracks")[1]["tracks"] if t["kind"] == "audio"]  # noqa: E731
            await until_true(audio, PATIENCE_S, "the microphone is published")
            track = audio()[0]
            assert server.api("POST", f"/v1/rooms/class/tracks/{track}/mute")[1]["muted"] is True
            await until(ada, "document.getElementById('mute-audio').getAttribute('aria-pressed') === 'false'")
            async with signal(server, token("host", "class", roomAdmin=True), room="class") as host:
                assert (await host.request("requestUnmute", track=track))[0]["type"] == "ok"
                await until(ada, "document.getElementById('ask').open")
                await ada.get_by_role("button", name="Turn on microphone").click()
                await until_true(lambda: any(not e["track"]["muted"] for _, e in host.of("trackUpdated")), PATIENCE_S, "the track is unmuted")
            assert ada.problems == []

    with running() as server:
        asyncio.run(run(server))


def test_I8_revoked_tokens_presets_and_bans_hold_over_a_restart(tmp_path):
    async def stay(server, access):
        async with signal(server, access, room="R") as ada:
            assert server.api("PUT", "/v1/revocations/token/t-1", {"seconds": 600})[0] == 200
            await until_true(lambda: any(e["reason"] == "token_revoked" for _, e in ada.of("ended")), PATIENCE_S, "the stay ends")

    access = token("ada", "R", token_id="t-1")
    with running(extra=f"storage:\n  path: {tmp_path / 'martlet.db'}\n") as server:
        assert server.api("PUT", "/v1/presets/small", {"maxParticipants": 1, "alwaysHeard": ["host"]})[0] == 201
        asyncio.run(stay(server, access))
        assert asyncio.run(joined(server, token("eve", "R")))["type"] == "joined"
        assert server.api("DELETE", "/v1/rooms/R/participants/eve?ban=600")[0] == 200
        server.kill()
        server.start()
        assert server.api("GET", "/v1/presets/small")[1]["policy"] == {"maxParticipants": 1, "alwaysHeard": ["host"]}
        later = token("eve", "R", issued_at=int(time.time()) + 3)
        assert asyncio.run(joined(server, later))["code"] == "banned"
        assert refused(server, "POST", "/whip/R", access, offer()) == (401, "token_revoked")
        assert server.api("DELETE", "/v1/revocations/token/t-1")[0] == 204
        assert server.api("GET", "/v1/revocations")[1]["revocations"] == []
        assert asyncio.run(joined(server, access))["type"] == "joined"
