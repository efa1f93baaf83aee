"""The operators' tab under a person's hands: it asks before it ends anything, stays in place, and bears any entry."""
import asyncio
import contextlib
import json
import re
import signal
import time

import pytest
from support.chromium import chromium, open_room, room_address, until
from support.firefox import firefox
from support.signalling import signal as signalling
from support.tokens import admin_token, token
from support.waiting import PATIENCE_S, until_true

MEMBERS_FIGURE = "document.querySelector('#room-charts figcaption output').textContent"
ROOM = "[...document.querySelectorAll('#rooms button')].find((one) => one.querySelector('.name').textContent === {name!r})"


async def open_operators(browser, server):
    page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    await page.goto(server.url)
    await page.click("#tab-operators")
    return page


def rooms_of(server):
    return sorted(room["name"] for room in server.api("GET", "/v1/rooms")[1]["rooms"])


def test_the_operators_tab_shows_what_happens_in_a_room_as_it_happens(development_server):
    server = development_server

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "kitchen", "ada", send="nothing")
            page = await open_operators(browser, server)
            await page.locator("#events li", has_text="ada joined.").wait_for(timeout=PATIENCE_S * 1000)
            await page.locator("#lock-room").click()
            await page.locator("#events li", has_text="The room was locked.").wait_for(timeout=PATIENCE_S * 1000)
            # Newest first, each once, although the list of rooms is read again and again.
            await page.wait_for_timeout(2_500)
            lines = await page.locator("#events li").all_inner_texts()
            words = [line.split("\n")[-1] for line in lines]
            assert [sum(word in line for line in words) for word in ("joined", "locked", "opened")] == [1, 1, 1], lines
            assert "locked" in words[0] and "opened" in words[-1], lines
            await ada.close()
            assert page.problems == []

    asyncio.run(run())


@pytest.mark.at_night
def test_the_operators_tab_and_the_chat_work_in_firefox(development_server):
    """An operator in Firefox sees who is in a room, its charts and what happens there, and locks it; somebody in Firefox chats with somebody in Chromium."""
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox:
            ada = await open_room(browser, server, "kitchen", "ada")
            await fox.open(f"{server.url}/#/rooms/kitchen", size=(1280, 900))
            newest = "[...document.querySelectorAll('#events li')].map((one) => one.innerText).join(' ')"
            await fox.wait_for("[...document.querySelectorAll('#members a.who')].some((one) => one.textContent.includes('ada'))")
            await fox.wait_for(f"{newest}.includes('ada joined.')")
            await fox.wait_for("document.querySelectorAll('#room-charts svg').length > 0", 40)
            await fox.run("document.querySelector('#lock-room').click()")
            await fox.wait_for(f"{newest}.includes('The room was locked.')")
            await fox.run("document.querySelector('#lock-room').click()")
            await fox.wait_for(f"{newest}.includes('The room was unlocked.')")

            await fox.open(room_address(server, "kitchen", "fox", send="nothing"))
            await fox.wait_for("Boolean(window.martlet?.joined)")
            await until(ada, "martlet.room.room.participants.size === 1")
            await fox.run("document.querySelector('#chat-open').click()")
            await fox.run("const field = document.querySelector('#chat-text'); field.value = 'Hello from Firefox'; field.form.requestSubmit()")
            await ada.click("#chat-open")
            await until(ada, "document.querySelector('#chat-log').innerText.includes('Hello from Firefox')")
            await ada.fill("#chat-text", "Hello from Chromium")
            await ada.press("#chat-text", "Enter")
            await fox.wait_for("document.querySelector('#chat-log').innerText.includes('Hello from Chromium')")
            assert ada.problems == []

    asyncio.run(run())


def test_4_5_closing_a_room_and_removing_a_participant_ask_for_confirmation(development_server):
    """One click ends nothing: Escape and Cancel change nothing and return the focus, only the confirming button acts."""
    server = development_server

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "kitchen", "ada", send="nothing")
            page = await open_operators(browser, server)
            remove = page.locator("#members tr", has_text="ada").get_by_role("button", name="Remove")
            for button, question, consequence in [
                (page.locator("#close-room"), "Close the room “kitchen”?", "All participants are disconnected."),
                (remove, "Remove ada?", "ada is disconnected from the room “kitchen”."),
            ]:
                for refuse in (lambda: page.keyboard.press("Escape"), lambda: page.get_by_role("button", name="Cancel").click(),
                               lambda: page.keyboard.press("Enter")):
                    await button.click()
                    dialog = page.get_by_role("alertdialog", name=question)
                    await dialog.wait_for(timeout=PATIENCE_S * 1000)
                    assert await dialog.get_by_text(consequence).is_visible()
                    assert await page.evaluate("document.activeElement.textContent") == "Cancel"
                    await refuse()
                    await dialog.wait_for(state="hidden", timeout=PATIENCE_S * 1000)
                    assert await button.evaluate("(one) => one === document.activeElement")
            assert rooms_of(server) == ["kitchen"] and await ada.evaluate("martlet.joined")

            await remove.click()
            await page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
            await ada.wait_for_selector("#join", timeout=PATIENCE_S * 1000)
            await page.click("#close-room")
            await page.get_by_role("alertdialog").get_by_role("button", name="Close room").click()
            await page.wait_for_selector("#no-room", timeout=PATIENCE_S * 1000)
            assert rooms_of(server) == [] and not page.problems

    asyncio.run(run())


def test_4_5_the_list_of_rooms_stays_in_place(development_server):
    """Over several refreshes, while rooms are created and closed: the same button keeps the focus, and a slow click counts."""
    server = development_server

    async def run():
        for name in ("bed", "den"):
            server.api("POST", "/v1/rooms", {"name": name})
        async with chromium() as browser:
            page = await open_operators(browser, server)
            await until(page, f"Boolean({ROOM.format(name='den')})")
            await page.evaluate(f"window.before = {ROOM.format(name='den')}; window.before.focus()")
            server.api("POST", "/v1/rooms", {"name": "attic"})
            server.api("POST", "/v1/rooms", {"name": "zoo"})
            server.api("DELETE", "/v1/rooms/bed")
            names = "[...document.querySelectorAll('#rooms .name')].map((one) => one.textContent).join()"
            await until(page, f"{names} === 'attic,den,zoo'")
            focus = "document.activeElement === window.before && window.before.isConnected"
            assert await page.evaluate(focus), "the focus fell out of the list"

            box = await page.locator("#rooms button", has_text="zoo").bounding_box()
            await page.mouse.move(box["x"] + 20, box["y"] + 10)
            await page.mouse.down()
            server.api("POST", "/v1/rooms", {"name": "zoo-2"})
            await until(page, f"{names} === 'attic,den,zoo,zoo-2'")  # The list was looked at again while the button is held.
            await page.mouse.up()
            await until(page, "document.querySelector('#members-title').textContent === 'Members of zoo'")

            # What went wrong with an action stays while the screen is looked at again, until the next action.
            problem = "document.querySelector('#operators-problem').textContent"
            await page.route("**/lock", lambda route: route.fulfill(status=503, json={"detail": "Not now."}))
            await page.click("#lock-room")
            await until(page, f"{problem} === 'Not now.'")
            for room, left in (("attic", "den,zoo,zoo-2"), ("zoo-2", "den,zoo")):  # The first look is complete when the second one shows something.
                server.api("DELETE", f"/v1/rooms/{room}")
                await until(page, f"{names} === '{left}'")
            assert await page.evaluate(problem) == "Not now."
            await page.unroute("**/lock")
            await page.click("#lock-room")
            await until(page, f"{problem} === '' && document.querySelector('#lock-room').textContent === 'Unlock room'")
            assert not page.problems

    asyncio.run(run())


def test_a_room_beyond_the_first_200_is_found_by_the_beginning_of_its_name_and_stays_shown(development_server):
    server = development_server
    names = "[...document.querySelectorAll('#rooms .name')].map((one) => one.textContent)"
    note = "document.querySelector('#no-room:not([hidden])')?.textContent"

    async def run():
        async with chromium() as browser:
            page = await open_operators(browser, server)
            await until(page, f"{note} === 'No room is open.'")
            assert await page.is_hidden("#rooms-find"), "few rooms need no search"
            for number in range(200):
                server.api("POST", "/v1/rooms", {"name": f"desk-{number:03}"})
            await until(page, f"{names}.length === 200")
            assert await page.is_hidden("#rooms-find") and await page.is_hidden("#no-room")
            for name in ("zebra", "zoo"):
                server.api("POST", "/v1/rooms", {"name": name})
            await until(page, f"{note} === 'These are the first 200 by name.'")
            await page.fill("#rooms-prefix", "z")
            # The one that is chosen stays, whatever is looked for.
            await until(page, f"{names}.join() === 'desk-000,zebra,zoo'")
            await page.locator("#rooms button", has_text="zoo").click()
            await until(page, f"{names}.join() === 'zebra,zoo'")
            await page.fill("#rooms-prefix", "nobody")
            await until(page, f"{note} === 'No open room’s name begins so.' && {names}.join() === 'zoo'")
            await page.fill("#rooms-prefix", "")
            await until(page, f"{names}.length === 201 && {names}.at(-1) === 'zoo'")
            assert await page.text_content("#members-title") == "Members of zoo"
            server.api("DELETE", "/v1/rooms/zoo")
            await until(page, f"{names}.length === 200 && document.querySelector('#members-title').textContent === 'Members of desk-000'")
            assert not page.problems

    asyncio.run(run())


def test_4_2_no_entry_breaks_the_operators_tab(development_server):
    """A room called `..`, which cannot be part of a path, and names of every kind are listed; the others are shown and can be closed."""
    server = development_server
    names = ["a/b", "100 % Füße & Ä?#", "<b>bold</b>"]

    async def run():
        for name in names:
            assert server.api("POST", "/v1/rooms", {"name": name})[0] == 201
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)

            async def with_dots(route):
                reply = await route.fetch()
                rooms = (await reply.json())["rooms"]
                odd = [{**rooms[0], "sid": f"RM_x{number}", "name": name} for number, name in enumerate(("..", "."))] if rooms else []
                await route.fulfill(response=reply, body=json.dumps({"rooms": odd + rooms}))

            await page.route(re.compile(r"/v1/rooms\?"), with_dots)
            await page.goto(server.url)
            await page.click("#tab-operators")
            await until(page, "document.querySelectorAll('#rooms button').length === 5")
            for name in names:
                await page.locator("#rooms button", has_text=name).click()
                await until(page, f"document.querySelector('#members-title').textContent === {json.dumps(f'Members of {name}')}")
                assert await page.inner_text("#operators-problem") == "" and await page.inner_text("#members-problem") == ""
            await page.locator("#rooms button", has_text="..").click()
            await until(page, "/^The name “..” cannot be part of a URL/.test(document.querySelector('#members-problem').textContent)")
            assert await page.is_hidden("#close-room") and await page.inner_text("#operators-problem") == ""
            for name in names:
                await page.locator("#rooms button", has_text=name).click()
                await page.click("#close-room")
                await page.click("#ask-confirm")
                await until(page, f"![...document.querySelectorAll('#rooms .name')].some((one) => one.textContent === {json.dumps(name)})")
            assert rooms_of(server) == []

    asyncio.run(run())


def test_4_4_figures_of_an_unreachable_server_are_not_shown(development_server):
    async def run():
        async with chromium() as browser:
            await open_room(browser, development_server, "gone", "ada", send="nothing")
            page = await open_operators(browser, development_server)
            await until(page, "/Members1/.test(document.querySelector('#node').textContent)")
            development_server.kill()
            await until(page, "document.querySelector('#operators-problem').textContent === 'The server does not answer.'")
            assert not any(character.isdigit() for character in await page.inner_text("#node"))
            assert await page.evaluate("document.querySelector('#operators').classList.contains('stale')")
            development_server.start()
            await until(page, "/Rooms[01]/.test(document.querySelector('#node').textContent)")
            await until(page, "document.querySelector('#operators-problem').textContent === ''")

    asyncio.run(run())


def test_a_media_worker_that_does_not_respond_and_a_drain_are_shown_beside_the_figures(development_server):
    server = development_server
    notice = "document.querySelector('#operators-drain').textContent"

    async def run():
        async with chromium() as browser:
            page = await open_operators(browser, server)
            hanging = []

            async def answer(route):
                reply = await route.fetch()
                node = await reply.json()
                node["workers"] = [{**node["workers"][0], "index": index, "hangs": index in hanging} for index in range(3)]
                await route.fulfill(response=reply, json=node)

            await page.route("**/v1/node", answer)
            hanging.append(1)
            await until(page, f"{notice} === 'Media worker 1 does not respond: its calls stand still, and its figures are the last known ones.'")
            hanging.append(2)
            await until(page, f"{notice}.startsWith('Media workers 1, 2 do not respond: their calls stand still')")
            hanging.clear()
            await until(page, f"{notice} === ''")
            # A drain that an operator began does not end the server.
            assert server.api("POST", "/v1/node/drain", {})[0] == 200
            await until(page, f"{notice}.startsWith('This server drains') && {notice}.endsWith('a drain that an operator began ends nothing by itself.')")
            assert server.api("DELETE", "/v1/node/drain")[0] == 200
            await until(page, f"{notice} === ''")
            assert not page.problems

    asyncio.run(run())


def test_figures_of_a_server_that_says_nothing_at_all_are_not_shown(development_server):
    """A machine that hangs refuses no connection: what is asked of it is given up after a while, and asked again."""
    async def run():
        async with chromium() as browser:
            await open_room(browser, development_server, "mute", "ada", send="nothing")
            page = await open_operators(browser, development_server)
            await until(page, "/Members1/.test(document.querySelector('#node').textContent)")
            development_server.process.send_signal(signal.SIGSTOP)
            try:
                await until(page, "document.querySelector('#operators-problem').textContent === 'The server does not answer.'")
                assert await page.evaluate("document.querySelector('#operators').classList.contains('stale')")
            finally:
                development_server.process.send_signal(signal.SIGCONT)
            await until(page, "/Rooms[01]/.test(document.querySelector('#node').textContent)")
            await until(page, "document.querySelector('#operators-problem').textContent === ''")

    asyncio.run(run())


def test_an_operator_gives_the_tab_a_token_where_it_needs_one(server):
    """At first, after one that is no good, and when one expires in the middle of an edit, which goes on."""
    problem = "document.querySelector('{}-problem').textContent"

    async def run():
        assert server.api("POST", "/v1/rooms", {"name": "den"})[0] == 201
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)

            async def use(one):
                await page.wait_for_selector("#operators-token-text", timeout=PATIENCE_S * 1000)
                await page.fill("#operators-token-text", one)
                await page.keyboard.press("Enter")

            await page.goto(f"{server.url}/#/rooms")
            await until(page, f"{problem.format('#operators')}.startsWith('This server requires an access token.')")
            await use(token("operator", secret="another-secret-another-secret-00", roomList=True))
            await until(page, f"{problem.format('#operators')} === 'The access token\\'s signature does not match.'")
            await use(admin_token())
            await until(page, f"{problem.format('#operators')} === '' && document.querySelector('#operators-token').hidden")
            await until(page, f"Boolean({ROOM.format(name='den')})")

            await page.evaluate("location.hash = '#/rooms/den/policy'")
            await page.wait_for_selector("#policy-maxParticipants")
            expired = {"detail": "The access token has expired.", "code": "token_expired"}
            await page.route("**/v1/**", lambda route: route.fulfill(status=401, json=expired))
            await page.fill("#policy-maxParticipants", "5")
            await until(page, f"{problem.format('#policy')}.startsWith('The access token has expired.')")
            await page.wait_for_selector("#operators-token-text", timeout=PATIENCE_S * 1000)
            await page.unroute("**/v1/**")
            await use(admin_token())
            await until(page, "!document.querySelector('#policy-apply').disabled")
            assert await page.input_value("#policy-maxParticipants") == "5" and await page.is_hidden("#operators-token")

            # A screen that does not look again by itself has the field, too, and whoever may not join with that token sees it in the form.
            await page.route("**/v1/**", lambda route: route.fulfill(status=401, json=expired))
            await page.evaluate("location.hash = '#/sessions'")
            await page.wait_for_selector("#operators-token-text", timeout=PATIENCE_S * 1000)
            # An answer that comes after the new token, to what was asked for without one, brings the field back no more.
            held, go_on = asyncio.Event(), asyncio.Event()

            async def hold(route):
                held.set()
                await go_on.wait()
                await route.continue_()

            await page.route("**/dev/token", hold)
            await page.get_by_role("button", name="Search").click()
            await asyncio.wait_for(held.wait(), PATIENCE_S)
            await page.unroute("**/v1/**")
            await use(admin_token())
            async with page.expect_response("**/dev/token", timeout=PATIENCE_S * 1000):
                go_on.set()
            await page.wait_for_timeout(300)
            assert await page.is_hidden("#operators-token")
            await page.click("#tab-room")
            assert await page.is_visible("#token")

    asyncio.run(run())


def test_questions_follow_one_after_the_other_and_are_taken_back(development_server):
    """A click answers the question that is shown and no other."""
    async def run():
        async with chromium() as browser:
            page = await open_operators(browser, development_server)
            await page.evaluate("""import("/console/dialog.js").then(({ ask }) => {
                const third = new AbortController();
                Object.assign(window, { answers: [], takeBack: () => third.abort() });
                for (const [title, signal] of [["First?"], ["Second?"], ["Third?", third.signal], ["Fourth?", third.signal]])
                    ask({ title, text: "", action: "Yes", signal }).then((answer) => window.answers.push(`${title} ${answer}`));
            })""")
            shown = "document.querySelector('#ask').open && document.querySelector('#ask-title').textContent"
            await until(page, f"{shown} === 'First?'")
            await page.click("#ask-confirm")
            await until(page, f"{shown} === 'Second?'")
            await page.keyboard.press("Escape")
            await until(page, f"{shown} === 'Third?'")
            await page.evaluate("takeBack()")
            await until(page, "answers.length === 4")
            assert await page.evaluate("answers") == ["First? true", "Second? false", "Third? false", "Fourth? false"]
            assert not await page.evaluate("document.querySelector('#ask').open") and not page.problems

    asyncio.run(run())


def test_the_chart_of_members_counts_who_joined_in_each_room_of_a_name(development_server):
    """A stream of events begins with the rooms that had the name before, and each room numbers its events from 1."""
    server = development_server

    async def run():
        for _ in range(3):
            async with signalling(server, token("ada", "kitchen"), room="kitchen") as session:
                await session.request("leave")
        assert server.api("DELETE", "/v1/rooms/kitchen")[0] == 200
        async with contextlib.AsyncExitStack() as stack:
            async def join(name):
                # Tokens from before a room was closed do not open it again, and their times are whole seconds.
                later = token(name, "kitchen", issued_at=int(time.time()) + 2)
                await stack.enter_async_context(signalling(server, later, room="kitchen"))

            for name in ("bob", "carol"):
                await join(name)
            browser = await stack.enter_async_context(chromium())
            page = await open_operators(browser, server)
            # Three up and three down, then two up: each draws a step of two points.
            steps = "(document.querySelector('#room-charts .line')?.getAttribute('d').match(/L/g) ?? []).length"
            await until(page, f"{steps} === 1 + 2 * 8")
            # Once each, also where the stream is read anew.
            await page.click("#edit-policy")
            await page.wait_for_selector("#policy-back")
            await page.click("#policy-back")
            await until(page, "document.querySelectorAll('#events li').length > 8")
            await join("dora")
            await until(page, f"{MEMBERS_FIGURE} === '3' && {steps} === 1 + 2 * 9")
            assert page.problems == []

    asyncio.run(run())


def test_figures_that_come_late_are_not_added_to_the_charts_of_another_room(development_server):
    server = development_server

    async def run():
        async with contextlib.AsyncExitStack() as stack:
            for name, room in (("ada", "attic"), ("bob", "attic"), ("carol", "cellar")):
                await stack.enter_async_context(signalling(server, token(name, room), room=room))
            browser = await stack.enter_async_context(chromium())
            page = await open_operators(browser, server)
            await until(page, f"{MEMBERS_FIGURE} === '2'")
            held, go_on, looks = asyncio.Event(), asyncio.Event(), []

            async def hold(route):
                held.set()
                await go_on.wait()
                await route.continue_()

            await page.route("**/v1/rooms/attic/playbacks", hold)
            page.on("request", lambda request: looks.append(request) if request.url.endswith("/cellar/playbacks") else None)
            await asyncio.wait_for(held.wait(), PATIENCE_S)
            await page.locator("#rooms button", has_text="cellar").click()
            await until(page, f"{MEMBERS_FIGURE} === '1'")
            await page.evaluate(f"""() => {{
                window.figures = [];
                const figure = document.querySelector("#room-charts figcaption output");
                new MutationObserver(() => window.figures.push(figure.textContent)).observe(figure, {{ childList: true }});
            }}""")
            async with page.expect_response("**/v1/rooms/attic/playbacks"):
                go_on.set()
            before = len(looks)
            await until_true(lambda: len(looks) >= before + 2, PATIENCE_S, "the other room was looked at again")
            await until(page, "window.figures.length >= 1")
            assert set(await page.evaluate("window.figures")) == {"1"} and page.problems == []

    asyncio.run(run())


def test_the_lock_of_a_room_cannot_be_changed_before_it_is_known(development_server):
    """The button says what it does to the room that was shown before: on a slow network a click opened the next one, or took its password."""
    server = development_server

    async def run():
        for name in ("attic", "cellar"):
            assert server.api("POST", "/v1/rooms", {"name": name})[0] == 201
        assert server.api("PUT", "/v1/rooms/cellar/lock", {"password": "swordfish"})[0] < 300
        async with chromium() as browser:
            page = await open_operators(browser, server)
            await until(page, "document.querySelector('#lock-room:not([hidden])')?.textContent === 'Lock room'")
            go_on = asyncio.Event()

            async def hold(route):
                await go_on.wait()
                await route.continue_()

            await page.route(re.compile(r"/v1/rooms\?"), hold)
            await page.locator("#rooms button", has_text="cellar").click()
            assert await page.is_disabled("#lock-room")
            go_on.set()
            await until(page, "document.querySelector('#lock-room').textContent === 'Unlock room' && !document.querySelector('#lock-room').disabled")
            # Where a room is closed, or was when its address was kept, that is said: another one is shown.
            await page.evaluate("location.hash = '#/rooms/barn'")
            problem = "document.querySelector('#members-problem').textContent"
            await until(page, f"{problem} === 'The room “barn” is not open.' && document.querySelector('#members-title').textContent === 'Members of attic'")
            await page.locator("#rooms button", has_text="cellar").click()
            await until(page, f"{problem} === '' && document.querySelector('#members-title').textContent === 'Members of cellar'")
            assert not page.problems

    asyncio.run(run())


def test_the_events_of_a_room_have_who_waits_to_be_let_in_and_what_was_decided(development_server):
    async def run():
        async with chromium() as browser:
            page = await open_operators(browser, development_server)
            assert await page.evaluate("""import("/console/events.js").then(({ describe }) => [
                { type: "guestWaiting", identity: "ada", name: "Ada Lovelace" }, { type: "guestWaiting", identity: "bob", name: "" },
                { type: "guestDecided", identity: "ada", letIn: true }, { type: "guestDecided", identity: "bob", letIn: false },
            ].map((event) => describe(event, event.identity)))""") == [
                "Ada Lovelace waits to be let in.", "bob waits to be let in.", "ada was let in.", "bob was turned away."]

    asyncio.run(run())


def test_a_playback_whose_slider_was_brought_back_to_its_place_is_shown_as_it_goes_on(development_server):
    """Of a slider that is let go where it was taken, browsers report no change."""
    async def run():
        async with chromium() as browser:
            page = await open_operators(browser, development_server)
            await page.evaluate("""import("/console/playbacks.js").then(({ PlaybackList }) => {
                const at = (positionMilliseconds) => ({
                    sid: "PB_1", state: "playing", identity: "film", positionMilliseconds, durationMilliseconds: 100_000, loop: false, tracks: [],
                });
                const list = document.createElement("ul");
                document.querySelector("main").prepend(list);
                const operators = { api: { call: async () => ({ playbacks: [at(window.position)] }) }, act() {} };
                Object.assign(window, { position: 0, list, playbacks: new PlaybackList(operators, list) });
                return playbacks.look("den");
            })""")
            box = await page.locator("main > ul input[type=range]").bounding_box()
            y = box["y"] + box["height"] / 2
            await page.mouse.move(box["x"] + 3, y)
            await page.mouse.down()
            await page.mouse.move(box["x"] + box["width"] / 2, y)
            await page.evaluate("window.position = 20_000; playbacks.look('den')")
            time_shown = "list.querySelector('output').textContent"
            assert not (await page.evaluate(time_shown)).startswith("0:20"), "what a person holds stays"
            await page.mouse.move(box["x"], y)
            await page.mouse.up()
            await until(page, f"playbacks.look('den').then(() => {time_shown} === '0:20 / 1:40')")
            assert not page.problems

    asyncio.run(run())


def test_a_tab_that_was_left_before_its_first_answer_follows_nothing(development_server):
    """Nor does an address lead to a screen that there is not."""
    server = development_server

    async def run():
        assert server.api("POST", "/v1/rooms", {"name": "den"})[0] == 201
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            problems, streams = [], []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda request: streams.append(request) if request.url.endswith("/events") else None)
            held, go_on = asyncio.Event(), asyncio.Event()

            async def hold(route):
                held.set()
                await go_on.wait()
                await route.continue_()

            await page.route(re.compile(r"/v1/rooms\?"), hold)
            await page.goto(f"{server.url}/#/rooms")
            await asyncio.wait_for(held.wait(), PATIENCE_S)
            await page.click("#tab-room")
            async with page.expect_response(re.compile(r"/v1/rooms\?"), timeout=PATIENCE_S * 1000):
                go_on.set()
            await page.wait_for_timeout(500)
            assert streams == []
            await page.evaluate("location.hash = '#/recordings?screen=nowhere'")
            await until(page, "!document.querySelector('#recordings').hidden")
            assert problems == []

    asyncio.run(run())


def test_a_rooms_chart_has_the_losses_of_publishers_and_forgets_those_of_a_path_on_which_nothing_is_sent(development_server):
    """As the histories do, which the chart begins with."""
    looks = """import("/console/roomcharts.js").then(({ Losses }) => {
        const losses = new Losses();
        const path = (sent, loss) => ({ id: "sub", rtpPacketsSent: sent, downlinkLoss: loss, estimate: 900_000 });
        const look = (connections, [lost, received] = [0, 0], subscriptions = []) => losses.look([{
            sid: "PA_1", connections, subscriptions, tracks: [{ sid: "TR_1", layers: [{ packetsLost: lost, packetsReceived: received }] }],
        }]);
        return [
            look([path(100, 0)], [0, 1_000]),
            look([path(200, 0)], [40, 1_160]), // from the publisher
            look([path(300, 0)], [41, 1_165]), // too few to say
            look([path(400, 0.25)], [41, 1_365]), // to the subscriber
            look([path(400, 0.25)], [41, 1_565]), // nothing is sent to it any more
            look([path(500, 0)], [0, 100]), // counted anew
            look([{ ...path(600, 0), estimate: undefined }], [0, 200], [{ bitrate: 50_000, fractionLost: 0.5 }]),
            look([{ ...path(700, 0), estimate: undefined }], [0, 300], [{ bitrate: 0, fractionLost: 0.5 }]),
        ];
    })"""

    async def run():
        async with chromium() as browser:
            page = await open_operators(browser, development_server)
            assert await page.evaluate(looks) == [0, 0.2, 0, 0.25, 0, 0, 0.5, 0]

    asyncio.run(run())


def test_the_row_of_a_participant_who_was_moved_acts_on_the_room_that_is_shown(development_server):
    server = development_server

    async def run():
        for room in ({"name": "attic"}, {"name": "cellar", "beside": "attic"}):
            assert server.api("POST", "/v1/rooms", room)[0] == 201
        async with signalling(server, token("ada", "attic"), room="attic") as ada, chromium() as browser:
            page = await open_operators(browser, server)
            await page.locator("#members tr", has_text="ada").wait_for(timeout=PATIENCE_S * 1000)
            # No look notices that the room is empty before the other one is chosen.
            held, go_on = asyncio.Event(), asyncio.Event()

            async def hold(route):
                held.set()
                await go_on.wait()
                await route.continue_()

            await page.route("**/v1/rooms/attic", hold)
            await asyncio.wait_for(held.wait(), PATIENCE_S)
            assert server.api("POST", "/v1/rooms/attic/participants/ada/move", {"room": "cellar"})[0] == 200
            await page.locator("#rooms button", has_text="cellar").click()
            row = page.locator("#members tr", has_text="ada")
            await until(page, "document.querySelector('#members a.who')?.hash.startsWith('#/rooms/cellar/participants/') ?? false")
            assert await row.count() == 1
            go_on.set()
            await row.get_by_role("button", name="Remove").click()
            assert await page.inner_text("#ask-text") == "ada is disconnected from the room “cellar”."
            await page.click("#ask-confirm")
            await ada.wait_for("ended", reason="removed")
            await row.wait_for(state="detached", timeout=PATIENCE_S * 1000)
            assert await page.inner_text("#operators-problem") == "" and page.problems == []

    asyncio.run(run())
