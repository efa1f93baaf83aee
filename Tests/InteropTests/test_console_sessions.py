"""Past sessions in the operators' tab: found again, in order, with what was and why it ended."""
import asyncio
import pathlib
import re
import time

import pytest

from support.chromium import chromium, open_room, until, wait_for_video
from support.firefox import firefox
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S

EVENTS = pathlib.Path(__file__).parents[2] / "Sources/Control/Rooms/Vocabulary/RoomEvent.swift"
ROWS = "[...document.querySelectorAll('#sessions-list tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"


async def stay(server, identity, room):
    async with signal(server, token(identity, room), room=room) as session:
        await session.request("leave")


async def kept(server, number):
    """Summaries are written a moment after a stay."""
    end = time.monotonic() + PATIENCE_S
    while len(found := (await asyncio.to_thread(server.api, "GET", "/v1/sessions?limit=1000"))[1]["sessions"]) < number:
        assert time.monotonic() < end, len(found)
        await asyncio.sleep(0.05)
    return found


def test_why_a_stay_ended_is_said_in_words_for_each_reason(development_server):
    """Those of the server (`LeaveReason`), which the control API gives as words of its own."""
    reasons = re.findall(r"^    case (\w+)(?: = \"(\w+)\")?$", re.search(r"enum LeaveReason\b.*?\n}", EVENTS.read_text(), re.S)[0], re.M)
    words = [word or name for name, word in reasons]
    assert "left" in words and "token_revoked" in words

    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            one = {"session": "PA_1", "room": "den", "identity": "ada", "name": "", "leftAt": 1_790_000_000_000, "durationSeconds": 60}
            await page.route("**/v1/sessions?*", lambda route: route.fulfill(json={"sessions": [{**one, "reason": word} for word in words]}))
            await page.goto(f"{development_server.url}/#/sessions")
            await until(page, f"{ROWS}.length === {len(words)}")
            shown = [row[-1] for row in await page.evaluate(ROWS)]
            assert not set(shown) & set(words) and len(set(shown)) == len(words), shown

    asyncio.run(run())


def test_past_sessions_are_listed_last_to_leave_first_and_found_by_room_and_identity(development_server):
    server = development_server

    async def run():
        for identity, room in [("ada", "den"), ("bob", "den"), ("ada", "attic")]:
            await stay(server, identity, room)
        await kept(server, 3)
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            problems = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await page.goto(server.url)
            await page.click("#tab-operators")
            await page.get_by_role("link", name="Past sessions").click()
            await until(page, f"{ROWS}.length === 3")
            assert [(row[0], row[1], row[4], row[5]) for row in await page.evaluate(ROWS)] == [
                ("ada", "attic", "not measured", "Left"), ("bob", "den", "not measured", "Left"), ("ada", "den", "not measured", "Left")]
            await page.get_by_label("Identity").fill("ada")
            await page.keyboard.press("Enter")
            await until(page, f"{ROWS}.length === 2")
            await page.get_by_role("textbox", name="Room").fill("den")
            await page.keyboard.press("Enter")
            await until(page, f"{ROWS}.length === 1")
            # The address finds them again, and "Back" leads through the searches.
            assert await page.evaluate("location.hash") == "#/sessions?room=den&identity=ada"
            await page.reload()
            await until(page, f"{ROWS}.length === 1")
            await page.go_back()
            await until(page, f"{ROWS}.length === 2")
            await page.get_by_label("Identity").fill("nobody")
            await page.get_by_role("button", name="Search").click()
            await page.get_by_text("No past session is kept that matches.").wait_for(timeout=PATIENCE_S * 1000)
            assert problems == []

    asyncio.run(run())


def test_older_sessions_are_added_page_by_page_each_once(development_server):
    server = development_server

    async def run():
        for number in range(120):
            await stay(server, f"guest-{number}", "hall")
        await kept(server, 120)
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            await page.goto(f"{server.url}/#/sessions")
            await until(page, f"{ROWS}.length === 50")
            # Who leaves meanwhile moves no page.
            await stay(server, "late", "hall")
            await kept(server, 121)
            await page.get_by_role("button", name="Show older sessions").click()
            await until(page, f"{ROWS}.length === 100")
            assert await page.evaluate("document.activeElement.textContent") == "guest-69", "the focus is on the first that was added"
            await page.get_by_role("button", name="Show older sessions").click()
            await until(page, f"{ROWS}.length === 120")
            assert await page.is_hidden("#sessions-more")
            assert [row[0] for row in await page.evaluate(ROWS)] == [f"guest-{number}" for number in reversed(range(120))]

    asyncio.run(run())


@pytest.mark.at_night
def test_a_past_session_shows_what_was_sent_how_it_went_and_why_it_ended(development_server):
    """ada sent video and was removed: her page says so on a phone's width, and one that is not kept is named as such. The same in Firefox."""
    server = development_server

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "call", "ada", token=token("ada", "call", name="Ada Lovelace"))
            bob = await open_room(browser, server, "call", "bob", token=token("bob", "call"), send="nothing")
            await wait_for_video(bob, frames=60)
            await asyncio.sleep(6)  # One sample of the network's quality.
            assert (await asyncio.to_thread(server.api, "DELETE", "/v1/rooms/call/participants/ada"))[0] in (200, 204)
            summary = (await kept(server, 1))[0]
            page = await browser.new_page(viewport={"width": 360, "height": 700}, bypass_csp=True)
            await page.goto(f"{server.url}/#/sessions")
            await page.get_by_role("link", name="Ada Lovelace").click()
            await page.wait_for_selector("#session-body .facts")
            assert await page.inner_text("#session-title") == "Ada Lovelace in call"
            facts = dict(await page.evaluate("[...document.querySelectorAll('.facts > div')].map((one) => [...one.children].map((part) => part.innerText))"))
            assert facts["Why it ended"] == "Removed by an operator or moderator" and facts["Identity"] == "ada"
            assert facts["Time to connect"] == f"{summary['connectedAfterMilliseconds']} ms"
            assert facts["DTLS up"] == f"after {summary['reachedAfterMilliseconds']['dtls']} ms"
            # The two languages round a half differently.
            assert abs(float(facts["Network quality"].partition(" of 5")[0]) - summary["averageQuality"]) <= 0.05 + 1e-9 and facts["Sent by Ada Lovelace"].endswith("B")
            lanes = await page.evaluate("[...document.querySelectorAll('#session-body svg .title')].filter((one) => one.tagName === 'text').map((one) => one.textContent)")
            assert sorted(lane.split(" ")[0] for lane in lanes) == ["camera", "microphone"], lanes
            assert await page.locator("#session-body svg .span").count() == 2
            assert await page.evaluate("Math.max(...[...document.querySelectorAll('main, main *')].map((one) => one.getBoundingClientRect().right))") <= 360
            await page.goto(f"{server.url}/#/sessions/PA_unknown")
            await page.get_by_text("There is no past stay of this id, or it is no longer kept.").wait_for(timeout=PATIENCE_S * 1000)
        async with firefox() as fox:
            await fox.open(f"{server.url}/#/sessions/{summary['session']}")
            await fox.wait_for("document.querySelectorAll('#session-body svg .span').length === 2")
            assert await fox.evaluate("document.querySelector('#session-title').textContent") == "Ada Lovelace in call"

    asyncio.run(run())
