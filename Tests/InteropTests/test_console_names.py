"""Which room the console page is in, and what it says of names and refusals."""
import asyncio
import json

import pytest

from support.chromium import chromium, open_form, open_room, room_address, until
from support.tokens import token

# The server names the room of its token: what it did with any join before it refused a room that the token is not for.
JOIN_WITHOUT_ROOM = """(() => {
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) {
        const message = JSON.parse(text);
        if (message.type === "join") delete message.room;
        return send.call(this, JSON.stringify(message));
    };
    navigator.clipboard.writeText = async (text) => { window.copied = String(text); };
})()"""


def test_4_1_the_page_shows_the_room_that_the_server_names(server):
    """The token is for kitchen, the address says board-meeting: title, tab, address and link name the joined room."""
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "board-meeting", "ada", token=token("ada", "kitchen"), script=JOIN_WITHOUT_ROOM)
            await page.click("#copy-link")
            await until(page, "Boolean(window.copied)")
            shown = {
                "title": await page.inner_text("#room-title"), "tab": await page.title(),
                "address": await page.evaluate("new URLSearchParams(location.search).get('room')"),
                "link": await page.evaluate("new URL(window.copied).searchParams.get('room')"),
                "form": await page.input_value("#room-name"),
            }
            assert shown == {"title": "kitchen", "tab": "kitchen · Martlet", "address": "kitchen", "link": "kitchen", "form": "kitchen"}
            assert not page.problems

    asyncio.run(run())


def test_4_1_a_token_for_another_room_is_refused_in_the_form(server):
    """Nobody joins a room other than the named one: the form shows the server's reason, and no room is created."""
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(room_address(server, "board-meeting", "ada", send="nothing", token=token("ada", "kitchen")))
            await until(page, "document.querySelector('#join-problem').textContent !== ''")
            assert "token is for another room" in await page.inner_text("#join-problem")
            assert await page.is_visible("#join") and await page.inner_text("#status") == "Not connected"
            assert await page.input_value("#room-name") == "board-meeting"
            assert server.api("GET", "/v1/rooms")[1]["rooms"] == []

    asyncio.run(run())


@pytest.mark.parametrize("room, name, says, field", [
    (" ", "Ada", "The room name is empty.", "room-name"),
    ("x" * 300, "Ada", "The room name has 300 characters. At most 256 are allowed.", "room-name"),
    ("..", "Ada", "The room name “..” cannot be used, because it cannot be part of a URL. Choose another one.", "room-name"),
    ("a\u202eb", "Ada", "The room name contains an invisible character (U+202E) that is not allowed. Type the name instead of pasting it.",
     "room-name"),
    ("kitchen", " ", "Your name is empty.", "your-name"),
    ("kitchen", "x" * 257, "Your name has 257 characters. At most 256 are allowed.", "your-name"),
])
def test_4_5_an_invalid_name_is_reported_before_any_request(development_server, room, name, says, field):
    async def run():
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            asked = []
            page.on("request", lambda request: asked.append(request.url) if "/dev/token" in request.url else None)
            page.on("websocket", lambda socket: asked.append(socket.url))
            query = json.dumps({"room": room, "name": name, "send": "nothing", "join": "1"})
            await page.goto(development_server.url)
            await page.goto(development_server.url + "/?" + await page.evaluate(f"new URLSearchParams({query}).toString()"))
            await until(page, f"document.querySelector('#join-problem').textContent === {json.dumps(says)}")
            assert await page.evaluate("document.activeElement.id") == field
            assert await page.get_attribute(f"#{field}", "aria-invalid") == "true"
            assert asked == [] and await page.evaluate("martlet.room === null")

    asyncio.run(run())


def test_4_5_names_at_the_limit_join(development_server):
    """256 code points each, each of several bytes: the identity made from the name is within its own limit."""
    async def run():
        async with chromium() as browser:
            page = await open_form(browser, development_server, "ü" * 256, "\U0001f40b" * 256, send="nothing")
            await page.click("#join-button")
            await until(page, "martlet.joined || document.querySelector('#join-problem').textContent !== ''")
            assert await page.inner_text("#join-problem") == "" and await page.inner_text("#room-title") == "ü" * 256

    asyncio.run(run())


def test_the_initials_of_a_name_are_whole_characters(development_server):
    async def run():
        async with chromium() as browser:
            page = await open_form(browser, development_server, "kitchen", "Ada", send="nothing")
            names = ["Ada Lovelace", "\U0001f40b Bob", "\U00010400\U00010401", " "]
            found = await page.evaluate("""(names) => import("/console/grid.js").then(({ Tile }) => names.map((name) => new Tile({ key: "", name }).face.textContent))""", names)
            assert found == ["AL", "\U0001f40bB", "\U00010400", "?"]

    asyncio.run(run())


def test_a_tile_and_its_controls_are_called_as_their_participant_is_now(server):
    """A listener to the page pins whom it means, and one's own tile has the name that the others see."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "renamed", "ada", send="nothing")
            bob = await open_room(browser, server, "renamed", "bob")
            tile, own = "document.querySelector('.tile:not(.own)')", "document.querySelector('.tile.own')"
            await until(ada, f"Boolean({tile}?.querySelector('.pin'))")
            await bob.evaluate("martlet.room.signal.request('metadata', { name: 'Ze Robert' }).then(() => 0)")
            await until(ada, f"{tile}.querySelector('b').textContent === 'Ze Robert'")
            await until(bob, f"{own}.querySelector('b').textContent === 'Ze Robert (you)'")
            labels = "[...{}.querySelectorAll('.choice')].every((one) => one.title.includes('Ze Robert’s video') && one.getAttribute('aria-label') === one.title)"
            for page, place, count in ((ada, tile, 6), (bob, own, 2)):
                assert await page.evaluate(f"{place}.querySelectorAll('.choice').length") == count
                assert await page.evaluate(labels.format(place))
                assert await page.evaluate(f"{place}.querySelector('.face').textContent") == "ZR"
            assert not ada.problems and not bob.problems

    asyncio.run(run())


def test_4_5_names_within_sentences_keep_their_direction_and_the_icons_of_a_tile_have_names(server):
    """The first hand stands on the left also where the names are written from the right; a name as long as names may be stays within its tile."""
    first, second, long = "\u05d3\u05df!", "\u05e9\u05e8\u05d4", "x" * 256
    hands = {"A": (first, 1), "B": (second, 2), "C": (long, 3)}

    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "directions", "ada", send="nothing")
            for sid, (name, at) in hands.items():
                person = {"sid": sid, "identity": sid, "name": name, "metadata": json.dumps({"hand": at}), "permissions": {}, "tracks": []}
                await page.evaluate(f"martlet.room.handle({json.dumps({'type': 'participantJoined', 'participant': person})})")
            await page.evaluate(f"martlet.room.handle({json.dumps({'type': 'waitingRoom', 'guests': [{'identity': 'g', 'name': first}]})})")
            assert await page.text_content("#news") == f"Raised hands: {first}, {second}, {long}"
            assert await page.text_content("#guests span") == f"{first} waits to be let in."
            assert await page.eval_on_selector_all("#news bdi, #guests bdi", "(all) => all.map((one) => one.textContent)") == [first, second, long, first]
            lefts = await page.eval_on_selector_all("#news bdi", "(all) => all.map((one) => one.getBoundingClientRect().left)")
            assert lefts == sorted(lefts)
            await page.evaluate("document.querySelectorAll('.tile .name').forEach((one) => one.classList.add('muted'))")
            tiles = await page.evaluate("""[...document.querySelectorAll('.tile')].map((tile) => {
                const label = tile.querySelector('.name b').getBoundingClientRect(), place = tile.getBoundingClientRect();
                return [label.left >= place.left && label.right <= place.right, [...tile.querySelectorAll('.name svg')].map((one) => one.getAttribute('role'))];
            })""")
            assert tiles == [[True, ["img", "img"]]] * 4
            assert not page.problems

    asyncio.run(run())


def test_4_5_the_reason_for_a_refused_token_is_shown(development_server):
    """Only a server without such an endpoint requires a token from the user; any other refusal is shown in the server's words."""
    async def run():
        async with chromium() as browser:
            page = await open_form(browser, development_server, "kitchen", "Ada", send="nothing")
            problem = json.dumps({"status": 403, "code": "loopback_only", "detail": "Only clients on this machine may request tokens."})
            await page.route("**/dev/token", lambda route: route.fulfill(status=403, content_type="application/problem+json", body=problem))
            await page.click("#join-button")
            await until(page, "document.querySelector('#join-problem').textContent === 'Only clients on this machine may request tokens.'")
            assert not await page.is_visible("#token-field")

    asyncio.run(run())
