"""Whether the console page can be read and operated: contrast of every button in every state, by the rules of WCAG 2.2."""
import asyncio
import datetime
import json
import pathlib
import re

import pytest
from playwright.async_api import Error

from support.chromium import SPARING, chromium, join_by_form, open_room, until, wait_for_video
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S

CONTRAST = (pathlib.Path(__file__).parent / "support/contrast.js").read_text()
#: WCAG 2.2, 1.4.3 (text) and 1.4.11 (what shows a state).
TEXT, RING = 4.5, 3
BUTTONS = ":is(button, select, input, summary, textarea, a[href]):not(:disabled)"


async def measure(page, place, found, within=""):
    """Every button that can be seen, of all or of one part of the page: at rest, under the pointer, pressed, and with the keyboard's focus."""
    handles = await page.query_selector_all(f"dialog[open] {BUTTONS}") or await page.query_selector_all(f"{within} {BUTTONS}")
    for handle in handles:
        try:
            await measure_one(page, place, found, handle)
        except Error as problem:
            # A list that is drawn anew meanwhile replaces its buttons by others that look the same.
            if "not attached" not in str(problem):
                raise


async def measure_one(page, place, found, handle):
    """One button in each state, if it can be seen."""
    if await handle.is_visible():
        label = await handle.evaluate("(one) => one.id || one.className || one.textContent.trim()")

        async def note(state, of="contrastOf", least=TEXT):
            ratio = await handle.evaluate(f"(one) => {of}(one)")
            found.append((round(ratio, 2), least, f"{place}: {label} {state}"))

        async def rest():
            await page.mouse.move(1, 1)
            await page.evaluate("document.activeElement?.blur()")

        await rest()
        in_tile = await handle.evaluate("(one) => Boolean(one.closest('.tile'))")
        if not in_tile:  # A tile's controls appear under the pointer.
            await note("at rest")
        await handle.scroll_into_view_if_needed()
        await handle.hover(force=True)
        await note("under the pointer")
        if await handle.evaluate("(one) => one.tagName === 'BUTTON'"):  # A press on a menu opens it.
            await page.mouse.down()
            await note("pressed")
            await page.mouse.move(1, 1)
            await page.mouse.up()  # Elsewhere: nothing is clicked.
        await rest()
        await page.keyboard.press("Shift")  # Focus that comes from a keyboard is shown.
        await handle.focus()
        await note("focused")
        await note("focus ring", "ringOf", RING)


@pytest.mark.at_night
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_4_5_every_button_is_readable_in_every_state(development_server, scheme):
    """Form, call with a muted microphone and a shared screen, operators' tab with its screens, and dialog; check and reference; links as well."""
    async def run():
        found = []
        async with chromium() as browser:
            await join_by_form(browser, development_server, "looks", "Ada", script=SPARING)
            page = await join_by_form(browser, development_server, "looks", "Bob", script=SPARING)
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await wait_for_video(page)
            await page.evaluate(CONTRAST)
            await measure(page, "call", found)
            await page.click("#mute-audio")
            await page.click("#share-screen")
            await page.click(".tile .pin", force=True)
            await until(page, "document.querySelector('#share-screen').textContent.trim() === 'Stop sharing'")
            await measure(page, "muted and sharing", found)
            await page.click("#chat-open")
            await page.fill("#chat-text", "Hello")
            await page.press("#chat-text", "Enter")
            await measure(page, "chat", found, "#chat")
            await page.click("#chat-close")
            await page.click("#tab-operators")
            await until(page, "document.querySelectorAll('#members tr').length === 3")
            await measure(page, "operators", found)
            await page.click("#close-room")
            await measure(page, "dialog", found)
            await page.keyboard.press("Escape")
            await page.click("#edit-policy")
            await page.fill("#policy-maxParticipants", "2")
            await until(page, "!document.querySelector('#policy-apply').disabled")
            await measure(page, "policy", found)
            await page.click("#policy-back")
            await page.click("#members a")
            await page.wait_for_selector("#member-charts svg")
            await measure(page, "participant", found)
            await page.get_by_role("link", name="Recordings").click()
            await measure(page, "recordings", found)
            await page.click("text=Past sessions")
            await measure(page, "past sessions", found)
            await page.click("#tab-room")
            await page.click("#leave")
            await page.click("summary")
            await measure(page, "form", found)
            for path, place in [("/check", "check"), ("/reference", "reference"), ("/examples", "examples")]:
                await page.goto(development_server.url + path)
                await page.evaluate(CONTRAST)
                if place == "reference":  # One operation stands for all.
                    await until(page, "document.querySelector('.operation') !== null")
                    await page.fill("#search", "drain delete")
                if place == "examples":  # One button stands for all of those that copy.
                    await page.evaluate("document.querySelectorAll('.code').forEach((one, index) => index && one.remove())")
                await measure(page, place, found)
            assert not page.problems
        # 780 as a rule; what a list that was drawn anew took away is not missed in silence.
        assert len(found) > 700, f"only {len(found)} looks were found"
        bad = sorted({one for one in found if one[0] < one[1]})
        least = {kind: min(one for one in found if one[1] == kind) for kind in (TEXT, RING)}
        print(f"figures: {scheme}: {len(found)} looks, {len(bad)} too weak {bad[:12]}, least of text {least[TEXT]}, of rings {least[RING]}")
        assert not bad, bad

    asyncio.run(run())


@pytest.mark.at_night
def test_notices_move_nothing(development_server):
    """Notices of a lost connection and of a problem overlay the tiles: these, and whatever is under the pointer, stay in place."""
    places = """JSON.stringify([...document.querySelectorAll(".tile, .control, header, #room > .bar, #floor, .panel, #node > div")].map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return [one.dataset.key || one.id || one.classList[0] || one.tagName, x, y, width, height];
    }))"""

    async def run():
        async with chromium() as browser:
            await join_by_form(browser, development_server, "steady", "Ada")
            page = await join_by_form(browser, development_server, "steady", "Bob")
            operator = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            await operator.goto(development_server.url)
            await operator.click("#tab-operators")
            await until(operator, "document.querySelectorAll('#members tbody tr').length === 2")
            await wait_for_video(page)
            before, before_there = await page.evaluate(places), json.loads(await operator.evaluate(places))
            await page.evaluate("document.querySelector('#room-problem').textContent = 'A moderator or operator turned off your microphone.'")
            assert await page.is_visible("#room-problem") and await page.evaluate(places) == before
            development_server.kill()
            await until(page, "!document.querySelector('#outage').hidden")
            await until(operator, "document.querySelector('#operators-problem').textContent !== ''")
            assert await page.evaluate(places) == before
            assert [one[:3] for one in json.loads(await operator.evaluate(places))] == [one[:3] for one in before_there]
            development_server.start()

    asyncio.run(run())


def test_many_who_wait_to_be_let_in_leave_the_call_its_place(server):
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "many-guests", "ada", send="nothing")
            await page.evaluate("martlet.room.handle({ type: 'waitingRoom', guests: Array.from({ length: 100 }, (_, n) => ({ identity: `guest-${n}`, name: '' })) })")
            sizes = await page.evaluate("""(() => {
                const list = document.querySelector("#guests"), main = document.querySelector("main");
                return { hall: document.querySelector("#hall").clientHeight, shown: list.clientHeight, all: list.scrollHeight, hidden: main.scrollHeight - main.clientHeight };
            })()""")
            assert sizes["hall"] > 200 and sizes["all"] > 2_000 and 100 < sizes["shown"] < 250 and sizes["hidden"] <= 1, sizes
            assert not page.problems

    asyncio.run(run())


def test_whoever_decides_about_a_guest_keeps_the_button_while_others_come_and_go(server):
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "deciding", "ada", send="nothing")
            shown = "[...document.querySelectorAll('#guests span')].map((one) => one.textContent.split(' ')[0]).join()"

            async def wait(*names):
                guests = json.dumps([{"identity": name, "name": ""} for name in names])
                await page.evaluate(f"martlet.room.handle({{ type: 'waitingRoom', guests: {guests} }})")
                assert await page.evaluate(shown) == ",".join(names)

            await wait("bob", "carol")
            await page.locator("#guests li", has_text="carol").get_by_role("button", name="Let in").focus()
            await page.evaluate("window.focused = document.activeElement")
            for names in (("bob", "carol", "dora"), ("carol", "dora"), ("alf", "carol", "dora")):
                await wait(*names)
                assert await page.evaluate("document.activeElement === window.focused && focused.isConnected"), names
            # Who asks again before the list has come without them can be decided about again.
            await page.evaluate("""() => {
                const { signal } = martlet.room, { request } = signal;
                signal.request = (type, ...rest) => (type === "turnAway" ? Promise.resolve({}) : request.call(signal, type, ...rest));
            }""")
            turn_away = page.locator("#guests li", has_text="carol").get_by_role("button", name="Turn away")
            await turn_away.click()
            await wait("alf", "carol", "dora")
            assert await turn_away.is_enabled()
            await wait()
            assert await page.is_hidden("#guests") and not page.problems

    asyncio.run(run())


#: Which of the elements that assistive technology reads out are written to, in `written`.
WRITTEN = """(...ids) => {
    window.written = [];
    for (const id of ids) new MutationObserver(() => written.push(id)).observe(document.getElementById(id), { childList: true, characterData: true, subtree: true });
}"""


def test_notices_are_read_out_once_however_often_the_page_hears_or_looks(development_server):
    """A room's lock, its recordings and who shares or raises a hand, at each event; that no room is open, at each look of an operator."""
    again = """() => {
        const info = { ...martlet.room.room.info, lock: "password", recordings: [{ sid: "RE_1", startedAt: 0 }] };
        martlet.room.handle({ type: "room", room: info });
        const participant = { sid: "PA_bob", identity: "bob", name: "Bob", metadata: '{"hand":1}', permissions: {}, tracks: [] };
        for (const type of ["participantJoined", "participantUpdated"]) martlet.room.handle({ type, participant });
    }"""

    async def run():
        async with chromium() as browser:
            operator = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            await operator.goto(f"{development_server.url}/#/rooms")
            await until(operator, "document.querySelector('#no-room').textContent === 'No room is open.'")
            await operator.evaluate(f"({WRITTEN})('no-room', 'operators-drain', 'operators-problem', 'members-problem')")
            await operator.evaluate("""() => {
                const { fetch } = window;
                window.looks = 0;
                window.fetch = (address, ...given) => {
                    if (address === "/v1/node") window.looks += 1;
                    return fetch(address, ...given);
                };
            }""")
            # With the third look, the first one is shown.
            await until(operator, "looks >= 3")
            assert await operator.evaluate("written") == []
            page = await open_room(browser, development_server, "said", "ada", send="nothing")
            await page.evaluate(f"({WRITTEN})('lock', 'recording', 'news')")
            await page.evaluate(again)
            assert sorted(set(await page.evaluate("written"))) == ["lock", "news", "recording"]
            # In one task, or what the server sends of the room comes in between.
            twice = f"async () => {{ const again = {again}; again(); await null; written.length = 0; again(); await null; return written; }}"
            assert await page.evaluate(twice) == []
            assert not page.problems

    asyncio.run(run())


def test_the_notice_of_a_server_that_ends_on_another_day_has_the_day(server):
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "drain", "ada", send="nothing")
            at = await page.evaluate("Date.now() + 86_400_000")
            await page.evaluate(f"martlet.room.handle({{ type: 'migrate', deadline: {at} }})")
            words = await page.evaluate(f"import('/console/elements.js').then(({{ dayAndClock }}) => dayAndClock({at}))")
            assert await page.inner_text("#drain") == f"This server is about to be restarted, at {words} at the latest."
            assert not page.problems

    asyncio.run(run())


def test_a_time_has_its_day_where_that_is_not_today(development_server):
    """Of events that are kept, of a ban and of an end to come, of a stay that goes on, and at midnight in a chart."""
    server = development_server
    noon, day = datetime.datetime(2026, 3, 14, 12, tzinfo=datetime.timezone.utc), datetime.timedelta(days=1)
    times = "[...document.querySelectorAll('#events time')].map((one) => one.textContent)"

    async def run():
        async with signal(server, token("ada", "kitchen"), room="kitchen"), chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True, locale="en-GB", timezone_id="Etc/UTC")
            problems = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await page.clock.set_fixed_time(noon)
            await page.goto(f"{server.url}/#/sessions")
            await page.evaluate("""async () => {
                const { describe, EventList } = await import("/console/events.js");
                const { wordsOf } = await import("/console/impact.js");
                const { LaneChart } = await import("/console/chart.js");
                const DAY = 86_400_000, lost = { endedTracks: [], cappedTracks: [], endedSubscriptions: [], newSubscriptions: [], endedRecordings: [], newRecordings: [] };
                window.ban = (until) => describe({ type: "banStarted", identity: "ada", until });
                window.end = (endsAt) => wordsOf({ participants: [{ ...lost, sid: "PA_1", identity: "ada", changesEnd: true, endsAt }] }, [])[1];
                window.said = { today: [ban(Date.now() + 5_000), end(Date.now() + 5_000)], tomorrow: [ban(Date.now() + DAY), end(Date.now() + DAY)] };
                window.list = new EventList(document.createElement("ol"), () => "");
                list.add(Date.now(), "The first.");
                window.lines = () => [...list.list.children].map((one) => one.textContent);
                const chart = new LaneChart("Test");
                document.body.append(chart.element);
                chart.update({ from: Date.now(), to: Date.now() + DAY }, []);
                window.marks = () => [...chart.svg.querySelectorAll("text")].map((one) => one.textContent);
            }""")
            assert await page.evaluate("said.today") == ["ada is banned until 12:00:05.", "ada is disconnected at 12:00:05."]
            assert await page.evaluate("said.tomorrow") == ["ada is banned until 15 Mar, 12:00:00.", "ada is disconnected at 15 Mar, 12:00:00."]
            # Recordings and summaries are kept for years.
            assert await page.evaluate("import('/console/elements.js').then(({ dayAndClock }) => dayAndClock(Date.now() - 365 * 86_400_000))") == "14 Mar 2025, 12:00:00"
            assert await page.evaluate("lines()") == ["12:00:00The first."]
            await until(page, "marks().length > 0")
            marks = await page.evaluate("marks()")
            assert marks.count("15 Mar") == 1 and "18:00" in marks and "00:00" not in marks, marks
            # The day passes while the list is shown.
            await page.clock.set_fixed_time(noon + day)
            await page.evaluate("list.add(Date.now(), 'The second.')")
            assert await page.evaluate("lines()") == ["12:00:00The second.", "14 Mar, 12:00:00The first."]

            # Of the server's time, the day after.
            now = datetime.datetime.now(datetime.timezone.utc)
            await page.clock.set_fixed_time(now + day)
            await page.evaluate("location.hash = '#/rooms/kitchen'")
            await until(page, f"{times}.length >= 2 && {times}.every((one) => /^\\d+ \\w+(?: \\d+)?, \\d\\d:\\d\\d:\\d\\d$/.test(one))")
            await page.click("#members a.who")
            await until(page, "/ in kitchen since \\d+ \\w+(?: \\d+)?, \\d\\d:\\d\\d:\\d\\d$/.test(` ${document.querySelector('#member-facts').textContent}`)")
            assert problems == []

    asyncio.run(run())


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_stay_in_their_panels_and_what_is_listed_has_its_titles(development_server, width):
    """Rooms keep their numbers of members beside a long name, and buttons their words in one line; on a phone, too, every figure says what it is."""
    server = development_server
    long = "a-room-with-a-name-that-is-longer-than-any-list-of-rooms-is-wide-" * 2
    before = "(query) => [...document.querySelectorAll(query)].map((one) => getComputedStyle(one, '::before').content)"

    async def run():
        assert server.api("POST", "/v1/rooms", {"name": long})[0] == 201
        async with signal(server, token("ada", "kitchen"), room="kitchen") as ada, chromium() as browser:
            page = await browser.new_page(viewport={"width": width, "height": 800}, bypass_csp=True)
            await page.goto(f"{server.url}/#/rooms/{long}")
            await until(page, f"document.querySelector('#members-title').textContent === 'Members of {long}' && document.querySelectorAll('#rooms .count').length === 2")
            for query in ("#rooms .count", "#rooms button", "#close-room"):
                inside = "(query) => [...document.querySelectorAll(query)].every((one) => one.getBoundingClientRect().right <= one.closest('.panel').getBoundingClientRect().right)"
                assert await page.evaluate(inside, query), query
            assert await page.evaluate("document.querySelector('#close-room').clientHeight") < 34
            await page.locator("#rooms button", has_text="kitchen").click()
            await page.locator("#members tr", has_text="ada").wait_for(timeout=PATIENCE_S * 1000)
            titles = await page.evaluate(before, "#members tbody td:nth-child(n+3):nth-child(-n+4)")
            assert titles == (['"Receives"', '"Connections"'] if width < 640 else ["none", "none"])
            await page.click("#edit-policy")
            notes = "[...document.querySelectorAll('#policy-form .note')].map((one) => one.textContent)"
            await until(page, f"{notes}.length > 20")
            assert not [note for note in await page.evaluate(notes) if "bits per second" in note or "Absent" in note]
            # Names of the API and of the server's settings stand in the description as code.
            members = server.api("GET", "/openapi.json")[1]["components"]["schemas"]["Policy"]["properties"]
            names = {name for member in members.values() for name in re.findall(r"`([^`]+)`", member["description"])} | set(members)
            names = [name for name in names if re.search("[A-Z._]", name)]
            assert not [note for note in await page.evaluate(notes) if any(name in note for name in names)]
            await ada.request("leave")
            await page.goto(f"{server.url}/#/sessions")
            # Summaries are written a moment after a stay.
            while not await page.locator("#sessions-list tbody tr").count():
                async with page.expect_response("**/v1/sessions?*", timeout=PATIENCE_S * 1000):
                    await page.get_by_role("button", name="Search").click()
            assert (await page.evaluate(before, "#sessions-list tbody td"))[-1] == ('"Ended"' if width < 640 else "none")

    asyncio.run(run())
