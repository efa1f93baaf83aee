"""The reference of the control API, and a room's charts."""
import asyncio
import json

import pytest

from support.chromium import chromium, open_room, until
from support.firefox import firefox
from support.tokens import admin_token

# Keys of an input method in the search, the last two as Safari sends them. How many links were followed, and what is searched for afterwards.
COMPOSED = """(() => {
    const search = document.querySelector("#search");
    let followed = 0;
    addEventListener("click", () => { followed += 1; });
    for (const composing of [{ isComposing: true }, { keyCode: 229 }]) {
        for (const key of ["Enter", "Escape"]) search.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...composing }));
    }
    return [followed, search.value];
})()"""


def operations(server):
    document = json.loads(server.request("GET", "/openapi.json")[2])
    return [one["operationId"] for item in document["paths"].values() for method, one in item.items() if method != "parameters"]


def test_I9_the_reference_page_shows_every_operation_and_finds_it(development_server):
    """By address, by search with the keyboard alone, with a call that works as it stands; on a phone nothing is cut off."""
    server = development_server
    ids = operations(server)

    async def run():
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
            problems = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await page.goto(f"{server.url}/reference#patchParticipant")
            await until(page, "document.activeElement?.id === 'patchParticipant'")
            assert sorted(await page.evaluate("[...document.querySelectorAll('.operation')].map((one) => one.id)")) == sorted(ids)
            top = await page.evaluate("document.querySelector('#patchParticipant').getBoundingClientRect().top")
            assert 0 < top < 120, "the address leads there"
            await page.keyboard.press("/")
            await page.keyboard.type("drain delete")
            await until(page, "document.querySelector('#found').textContent.startsWith('1 of ')")
            assert await page.evaluate(COMPOSED) == [0, "drain delete"], "keys that end a composition are the input method's"
            await page.keyboard.press("Enter")
            await until(page, "location.hash === '#endDrain' && document.activeElement?.id === 'endDrain'")
            call = await page.evaluate("(() => { document.querySelector('#search').value = ''; return document.querySelector('#createRoom pre').textContent; })()")
            assert call.startswith('curl -X POST "$MARTLET/v1/rooms" \\\n  -H "Authorization: Bearer $TOKEN"'), call
            environment = {"MARTLET": server.url, "TOKEN": admin_token(), "PATH": "/usr/bin:/bin"}
            done = await asyncio.create_subprocess_shell(await page.evaluate("document.querySelector('#listRooms pre').textContent"), env=environment, stdout=asyncio.subprocess.PIPE)
            assert json.loads((await done.communicate())[0]) == {"rooms": []}
            await page.set_viewport_size({"width": 390, "height": 800})
            await page.goto(f"{server.url}/reference?phone#replacePolicy")
            await until(page, "document.activeElement?.id === 'replacePolicy'")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
            assert not problems
        async with firefox() as fox:
            await fox.open(f"{server.url}/reference#showRoom")
            await fox.wait_for("document.activeElement?.id === 'showRoom'")
            assert await fox.evaluate("document.querySelectorAll('.operation').length") == len(ids)

    asyncio.run(run())


@pytest.mark.at_night
def test_the_operators_tab_charts_a_room_over_time(development_server):
    """Members from the room's events, also before the page was opened; bit rate and loss from the histories and what comes after. Of those who left, too."""
    server = development_server

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "charts", "ada")
            bob = await open_room(browser, server, "charts", "bob", send="nothing")
            await bob.click("#leave")
            await until(bob, "!martlet.joined")
            page = await browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            problems = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await page.goto(f"{server.url}/#/rooms/charts")
            figures = "[...document.querySelectorAll('#room-charts figcaption')].map((one) => one.querySelector('output').textContent)"
            await until(page, f"/^1,[1-9].* from, .* to members,0 %$/.test({figures}.join())")
            # Up to one, up to two, down to one: each change draws a step of two points.
            steps = "(document.querySelector('#room-charts .line').getAttribute('d').match(/L/g) ?? []).length"
            await until(page, f"{steps} >= 6")

            async def sent():
                return any(one["uplink"] for one in (await asyncio.to_thread(server.api, "GET", "/v1/rooms/charts/history"))[1]["samples"])

            while not await sent():
                await asyncio.sleep(0.2)
            await open_room(browser, server, "charts", "eve", send="nothing")
            await ada.click("#leave")
            await until(ada, "!martlet.joined")
            await page.reload()
            # Who sent it is not here any more.
            await until(page, f"/^1,0 .* from, .* to members,/.test({figures}.join())")
            heights = "document.querySelectorAll('#room-charts .chart')[1].querySelector('.line.own').getAttribute('d').split(/[ML]/).slice(1).map((one) => parseFloat(one.split(/[ ,]/)[1]))"
            await until(page, f"Math.max(...{heights}) - Math.min(...{heights}) > 10")
            assert not problems

    asyncio.run(run())
