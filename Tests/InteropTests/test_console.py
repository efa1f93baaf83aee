"""What the console page does beside showing a call: the operators' tab, refusals, ends, and a server that goes and returns."""
import asyncio

import pytest

from support.chromium import SAME_SIZE, chromium, join_by_form, open_form, open_room, until, wait_for_video
from support.tokens import token
from support.waiting import PATIENCE_S


def row(name):
    """The operators' row of one member."""
    return f"[...document.querySelectorAll('#members tbody tr')].find((row) => row.querySelector('.who').textContent === '{name}')"


def test_operators_watch_mute_and_remove(development_server):
    """Rooms and participants are live; muting and removing work, and those affected are notified."""
    async def run():
        async with chromium() as browser:
            ada = await join_by_form(browser, development_server, "studio", "Ada", script=SAME_SIZE)
            bob = await join_by_form(browser, development_server, "studio", "Bob", send="nothing")
            await wait_for_video(bob)
            operator = await browser.new_page(viewport={"width": 1300, "height": 720}, bypass_csp=True)
            await operator.goto(development_server.url)
            await operator.click("#tab-operators")

            await until(operator, "document.querySelector('#rooms [aria-current=true] .name')?.textContent === 'studio'")
            # A browser on a busy machine sends its largest layer late, perhaps never.
            await until(operator, f"/camera.*[0-9]+×[0-9]+.* fps · .*bit.s/.test({row('Ada')}?.textContent)")
            await until(operator, f"/2 tracks.*bit.s.*sub: [0-9.]+ ms/.test({row('Bob')}?.textContent)")
            await until(operator, "/Members2.*Packets received per second[1-9]/.test(document.querySelector('#node').textContent)")

            await operator.locator("#members tr", has_text="Ada").get_by_role("button", name="Mute").first.click()
            await until(ada, "document.querySelector('#mute-audio').getAttribute('aria-pressed') === 'false'")
            assert await ada.inner_text("#room-problem") == "A moderator or operator turned off your microphone."
            await until(bob, "document.querySelector('.tile .name.muted') !== null")
            await until(operator, f"/opus · muted/.test({row('Ada')}.textContent)")

            await operator.locator("#members tr", has_text="Ada").get_by_role("button", name="Remove").click()
            await operator.click("#ask-confirm")
            await ada.wait_for_selector("#join", timeout=PATIENCE_S * 1000)
            assert await ada.inner_text("#join-problem") == "You were removed from the room."
            await until(bob, "document.querySelectorAll('.tile:not(.own)').length === 0")
            await until(operator, f"{row('Ada')} === undefined")

            await operator.click("#close-room")
            await operator.click("#ask-confirm")
            await bob.wait_for_selector("#join", timeout=PATIENCE_S * 1000)
            assert await bob.inner_text("#join-problem") == "The room was closed."
            await operator.wait_for_selector("#no-room", timeout=PATIENCE_S * 1000)
            assert not ada.problems and not bob.problems

    asyncio.run(run())


def test_I7_who_comes_later_sees_the_network_quality_of_those_who_are_here(server):
    """Only changes of it are events."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "later", "ada")
            await until(ada, "document.querySelector('.tile.own .quality:not([hidden])') !== null")
            bob = await open_room(browser, server, "later", "bob", send="nothing")
            await until(bob, "document.querySelector('.tile:not(.own)') !== null")
            assert await bob.evaluate("document.querySelector('.tile:not(.own) .quality').hidden") is False
            assert bob.problems == []

    asyncio.run(run())


def test_refusals_are_shown_in_the_form(server):
    """C1, C12: connecting and joining fail distinctly, with the server's words."""
    server.api("POST", "/v1/rooms", {"name": "tiny", "policy": {"maxParticipants": 1}})

    async def refused(browser, room, access):
        page = await open_form(browser, server, room, "Eve", send="nothing", **({"token": access} if access else {}))
        await page.click("#join-button")
        await until(page, "document.querySelector('#join-problem').textContent !== ''")
        assert await page.is_visible("#join") and not page.problems
        return await page.inner_text("#join-problem")

    async def run():
        async with chromium() as browser:
            assert "access token" in await refused(browser, "tiny", None)
            assert await refused(browser, "none", token("eve", roomJoin=False)) != ""
            assert await refused(browser, "tiny", "nonsense") == "The access token is not a JSON web token."
            assert "expired" in await refused(browser, "tiny", token("eve", "tiny", lifetime_s=-60))
            await open_room(browser, server, "tiny", "ada", send="nothing")
            assert "full" in await refused(browser, "tiny", token("eve", "tiny"))

    asyncio.run(run())


def test_a_newer_session_of_the_same_identity_replaces_the_older(server):
    """B18: and the older page says why it ended."""
    async def run():
        async with chromium() as browser:
            old = await open_room(browser, server, "twice", "ada")
            bob = await open_room(browser, server, "twice", "bob", send="nothing")
            await wait_for_video(bob)
            tiles = "[...document.querySelectorAll('.tile:not(.own)')].map((one) => one.dataset.key).join()"
            former = await bob.evaluate(tiles)
            await open_room(browser, server, "twice", "ada")
            await old.wait_for_selector("#join", timeout=PATIENCE_S * 1000)
            assert await old.inner_text("#join-problem") == "You joined this room from another window."
            # Bob is notified of the end and of the beginning by events of his own, which may come later than those of both pages.
            await until(bob, f"!['', {former!r}].includes({tiles}) && !{tiles}.includes(',')")
            await wait_for_video(bob)
            assert await bob.evaluate("document.querySelectorAll('.tile:not(.own)').length") == 1

    asyncio.run(run())


@pytest.mark.parametrize("end", ["kill", pytest.param("terminate", marks=pytest.mark.at_night)])
def test_pages_rejoin_a_restarted_server(server, end):
    """The server is killed and restarted, the pages rejoin; the camera and a shared screen return."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "phoenix", "ada")
            bob = await open_room(browser, server, "phoenix", "bob")
            await ada.click("#share-screen")
            await wait_for_video(bob, count=2, frames=5)
            getattr(server, end)()
            await until(bob, "document.querySelector('#status').textContent === 'Reconnecting…'")
            server.start()
            for page in (ada, bob):
                await until(page, "martlet.joined")
            await wait_for_video(bob, count=2, frames=5)
            await wait_for_video(ada)
            assert not ada.problems and not bob.problems

    asyncio.run(run())


def test_a_dropped_socket_is_resumed_without_affecting_media(server):
    """The session continues with the events that it missed; no connection is reopened, no frame is lost."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "drop", "ada")
            bob = await open_room(browser, server, "drop", "bob", send="nothing")
            await wait_for_video(bob)
            session = await bob.evaluate("window.before = martlet.room.sub; martlet.room.signal.session")
            await bob.evaluate("martlet.room.signal.socket.close()")
            await ada.click("#mute-video")  # Told while the socket is away.
            await until(bob, "document.querySelector('.tile.video-muted') !== null && martlet.joined")
            await ada.click("#mute-video")
            await until(bob, "document.querySelector('.tile.video-muted') === null")
            assert await bob.evaluate("martlet.room.signal.session") == session
            assert await bob.evaluate("martlet.room.sub === window.before && martlet.room.sub.connectionState === 'connected'")
            await wait_for_video(bob, frames=30)
            _, statistics = server.api("GET", "/v1/rooms/drop/stats")
            assert len(statistics["participants"]) == 2

    asyncio.run(run())
