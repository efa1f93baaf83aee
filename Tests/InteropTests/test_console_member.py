"""A participant's page in the operators' tab: why was it blurry at 14:02?"""
import asyncio
import re
import time

import pytest

from support.chromium import chromium, open_room, until, wait_for_video
from support.firefox import firefox
from support.signalling import signal
from support.tokens import token

ANSWER = "document.querySelector('#member-answer').innerText"
TWO_O_TWO = "14:02:10"


async def open_member(browser, server, room, participant, *, size=(1280, 860), at="", **options):
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, bypass_csp=True, **options)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    await page.goto(f"{server.url}/#/rooms/{room}/participants/{participant}{at}")
    return page


async def choose_time(page, words):
    """As a person types it."""
    await page.fill("#member-time", words)
    await page.locator("#member-time").dispatch_event("change")


@pytest.mark.judging
@pytest.mark.at_night
def test_a_limit_that_held_a_video_down_for_a_while_is_found_by_the_time_of_day(development_server):
    """ada sends to bob; the policy caps what bob gets for ten seconds. Afterwards all is well, and the page still says what was, and of which video."""
    server = development_server

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "call", "ada", token=token("ada", "call", name="Ada Lovelace"))
            bob = await open_room(browser, server, "call", "bob", token=token("bob", "call"), send="nothing")
            await wait_for_video(bob, frames=60)
            await asyncio.sleep(6)
            for cap in (150_000, None):
                assert (await asyncio.to_thread(server.api, "PATCH", "/v1/rooms/call/policy", {"maxDownlinkBitrate": cap}))[0] == 200
                if cap:
                    await asyncio.sleep(5)
                    blurry = time.time() * 1000
                    await asyncio.sleep(5)
            page = await open_member(browser, server, "call", "bob")
            await page.wait_for_selector("#member-charts .span")
            assert await page.inner_text("#member-title") == "bob"
            await until(page, f"{ANSWER}.includes('The best layer that the publisher sends.')", 40)
            await choose_time(page, await page.evaluate(f"new Date({blurry}).toTimeString().slice(0, 8)"))
            answer = await page.evaluate(ANSWER)
            assert "A limit of the room's policy, of the access token or of bob's own settings held the videos down." in answer, answer
            assert "Ada Lovelace, camera" in answer and "needed for" in answer and "The room's policy was changed, by " in answer
            assert await page.get_attribute("#member-now", "aria-pressed") == "false"
            assert await page.locator("#member-charts .span.less").count() >= 1
            # To the one who sent the video, at the same moment.
            at = await page.evaluate("location.hash.split('at=')[1]")
            await page.get_by_role("link", name="Ada Lovelace, camera").click()
            await until(page, "document.querySelector('#member-title').textContent === 'Ada Lovelace'")
            assert await page.evaluate("location.hash.split('at=')[1]") == at
            await until(page, "/Mbit|kbit/.test([...document.querySelectorAll('.chart')].find((one) => one.innerText.startsWith('Sent')).querySelector('output').textContent)")
            await page.click("#member-now")
            await until(page, "document.querySelector('#member-now').getAttribute('aria-pressed') === 'true' && !location.hash.includes('at=')")
            assert page.problems == []

    asyncio.run(run())


#: An hour in which the path was bad from 14:02:00 to 14:03:00, and in which nothing was measured from 14:10 to 14:12. In the page, for its clock.
HOUR = """(() => {
    const day = new Date(); day.setDate(day.getDate() - 1); day.setHours(14, 2, 0, 0);
    const bad = day.getTime(), begin = bad - 40 * 60_000;
    const isBad = (at) => at >= bad && at < bad + 60_000;
    const samples = [], estimates = [];
    for (let at = begin; at < begin + 3_600_000; at += 5_000) {
        if (at > bad + 480_000 && at < bad + 600_000) continue;
        samples.push({ at, uplink: 40_000, downlink: isBad(at) ? 290_000 : 1_400_000, loss: isBad(at) ? 0.042 : 0, roundTripMilliseconds: isBad(at) ? 450 : 30, quality: isBad(at) ? 2 : 5 });
        if ((at - begin) % 20_000 === 0) estimates.push({ at, min: isBad(at) ? 250_000 : 1_500_000, max: isBad(at) ? 310_000 : 1_900_000 });
    }
    const layer = (height, bitrate) => ({ spatial: 0, temporal: 0, height, framesPerSecond: 30, bitrate });
    const video = { subscription: "SU_1", track: "TR_1" };
    const decisions = [
        { ...video, at: begin + 60_000, reason: "best", text: "the best layer that the publisher sends", layer: layer(720, 1_300_000) },
        { ...video, at: bad + 3_000, reason: "bandwidth", text: "120 of 500 kbit/s needed for 360p", estimate: 280_000, layer: layer(180, 150_000), next: layer(360, 500_000) },
        { subscription: "SU_2", track: "TR_2", at: bad + 4_000, reason: "shortage", text: "20 of 150 kbit/s needed for the lowest layer", estimate: 280_000, next: layer(180, 150_000) },
        { subscription: "SU_2", track: "TR_2", at: bad + 65_000, reason: "best", text: "the best layer that the publisher sends", layer: layer(180, 150_000) },
        { ...video, at: bad + 66_000, reason: "best", text: "the best layer that the publisher sends", layer: layer(720, 1_300_000) },
    ];
    return { bad, samples, estimates, decisions };
})()"""


async def with_hour(page, decisions=None):
    """The history of a participant as the test sets it; all else is the server's."""
    hour = await page.evaluate(HOUR)
    hour["decisions"] = decisions(hour) if decisions else hour["decisions"]

    async def answer(route, **body):
        await route.fulfill(json=body)

    await page.route("**/participants/*/history", lambda route: answer(route, samples=hour["samples"]))
    await page.route("**/participants/*/decisions", lambda route: answer(route, decisions=hour["decisions"], estimates=hour["estimates"]))
    return hour


def test_what_is_kept_of_a_stay_is_looked_for_again_where_it_is_written_after_the_first_look(development_server):
    server = development_server

    async def run():
        async with chromium() as browser, signal(server, token("ada", "call"), room="call") as ada:
            page = await open_member(browser, server, "call", "ada")
            await until(page, "document.querySelector('#member-title').textContent === 'ada'")
            refused = []

            async def late(route):
                if refused:
                    return await route.continue_()
                refused.append(route.request.url)
                await route.fulfill(status=404, json={"detail": "There is no past stay of this id.", "code": "session_not_found"})

            await page.route(re.compile(r"/v1/sessions/"), late)
            await ada.request("leave")
            await until(page, "document.querySelector('#member-problem').textContent.includes('kept like the summary')")
            assert refused and page.problems == []

    asyncio.run(run())


def test_the_moment_that_somebody_asks_about_is_explained_from_history_estimates_and_decisions(development_server):
    server = development_server

    async def run():
        async with chromium() as browser, signal(server, token("bob", "call"), room="call"):
            page = await browser.new_page(viewport={"width": 1280, "height": 860}, bypass_csp=True, locale="en-GB")
            await page.goto(server.url)
            hour = await with_hour(page)
            await page.goto(f"{server.url}/#/rooms/call/participants/bob")
            await page.wait_for_selector("#member-charts svg")
            # Typed, although the clock of the test is another one: the last time that it was 14:02.
            await choose_time(page, TWO_O_TWO)
            answer = await page.evaluate(ANSWER)
            for words in [TWO_O_TWO, "The network to bob carried less than the videos needed: an estimated 250 kbit/s to 310 kbit/s.", "4.2 % of the packets were lost",
                          "The round trip took 450 ms", "180p · 30 fps · 150 kbit/s", "120 of 500 kbit/s needed for 360p. Since 14:02:03, 7 s before.",
                          "20 of 150 kbit/s needed for the lowest layer"]:
                assert words in answer, (words, answer)
            assert [await page.locator(f"#member-charts .span.{kind}").count() for kind in ("full", "less", "nothing")] == [3, 1, 1]

            # By keyboard: the slider moves through the samples, and says the time, which is one of yesterday.
            await page.locator("#member-moment").focus()
            for _ in range(12):
                await page.keyboard.press("ArrowRight")
            assert re.fullmatch(r"\d+ \w+, 14:03:10", await page.get_attribute("#member-moment", "aria-valuetext"))
            assert "bob received all that its publisher sent" in await page.evaluate(ANSWER)
            # By pointer: a third into the chart.
            box = await page.locator("#member-charts svg").nth(0).bounding_box()
            await page.mouse.click(box["x"] + 54 + (box["width"] - 64) / 3, box["y"] + 20)
            clicked, span = [await page.evaluate(f"Number({one})") for one in ("location.hash.split('at=')[1]", "document.querySelector('#member-moment').min * 1000")]
            assert abs(clicked - span - 300_000) < 6_000

            # A link to the moment shows the same to somebody else.
            await page.goto("about:blank")
            await page.goto(f"{server.url}/#/rooms/call/participants/bob?at={hour['bad'] + 10_000}")
            await until(page, f"document.querySelector('#member-time').value === '{TWO_O_TWO}'")
            assert "The network to bob carried less" in await page.evaluate(ANSWER)

            # Nothing is drawn where nothing was measured: two pieces, of which each begins anew.
            await page.select_option("#member-span", "3600")
            await choose_time(page, "14:11:00")
            assert all(piece == 2 for piece in await page.evaluate("[...document.querySelectorAll('#member-charts .line')].map((one) => one.getAttribute('d').split('M').length - 1)"))
            await choose_time(page, "12:00:00")
            assert "The history begins at 13:22:00" in await page.evaluate(ANSWER)

    asyncio.run(run())


def test_decisions_reach_further_back_than_the_last_ones_and_those_that_are_no_longer_kept_are_not_made_up(development_server):
    """Before the last decisions come those that were in force every five seconds. Before the first of them the page says so, and shows history and estimates alone."""
    server = development_server

    def some(hour):
        return hour["decisions"] + [{**hour["decisions"][0], "at": hour["bad"] + 120_000 + number * 1_000} for number in range(64)]

    def many(hour):
        video = hour["decisions"][1]
        return [{**video, "at": hour["bad"] + 120_000 + number * 1_000} for number in range(720)]

    async def run():
        async with chromium() as browser, signal(server, token("bob", "call"), room="call"):
            page = await browser.new_page(viewport={"width": 1280, "height": 860}, bypass_csp=True, locale="en-GB")
            await page.goto(server.url)
            await with_hour(page, some)
            await page.goto(f"{server.url}/#/rooms/call/participants/bob")
            await page.wait_for_selector("#member-charts svg")
            await choose_time(page, TWO_O_TWO)
            answer = await page.evaluate(ANSWER)
            assert "120 of 500 kbit/s needed for 360p. Since 14:02:03" in answer and "are kept since" not in answer, answer
            await page.unroute_all()
            await with_hour(page, many)
            await page.reload()
            await page.wait_for_selector("#member-charts svg")
            await choose_time(page, TWO_O_TWO)
            answer = await page.evaluate(ANSWER)
            assert "Decisions about videos are kept since 14:04:00" in answer and "4.2 % of the packets were lost" in answer, answer
            assert await page.locator("#member-answer").get_by_text("180p").count() == 0 and "received all" not in answer
            assert await page.locator("#member-charts .unknown").count() == 1

    asyncio.run(run())


@pytest.mark.at_night
def test_the_page_of_a_participant_who_leaves_keeps_its_charts_over_a_reload_and_leads_to_the_summary(development_server):
    server = development_server

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "call", "ada", token=token("ada", "call"))
            bob = await open_room(browser, server, "call", "bob", token=token("bob", "call"), send="nothing")
            await wait_for_video(bob)
            page = await open_member(browser, server, "call", "bob")
            await page.wait_for_selector("#member-charts .span")
            facts, now = [f"document.querySelector('#member-{id}').textContent" for id in ("facts", "now")]
            assert (await page.evaluate(facts)).startswith("in call since ") and await page.evaluate(now) == "Follow live"
            # Looked at every five seconds; the time limit of the test ends the wait.
            while not server.api("GET", "/v1/rooms/call/participants/bob/history")[1]["samples"]:
                await asyncio.sleep(0.2)
            await bob.click("#leave")
            await until(page, "document.querySelector('#member-problem').textContent.includes('no longer in the room')")
            assert await page.locator("#member-charts .span").count() >= 1
            await page.get_by_role("link", name="The summary of the stay").click()
            await until(page, "document.querySelector('#session-title').textContent === 'bob in call'")
            # From there, and on a page that was opened afterwards, the charts and the reasons are those of the stay.
            await page.get_by_role("link", name="Its network and videos over time").click()
            await until(page, "document.querySelector('#member-title').textContent === 'bob'")
            await page.goto(f"{server.url}/#/rooms/call/participants/bob")
            await page.reload()
            await until(page, "document.querySelector('#member-problem').textContent.includes('kept like the summary')")
            # What is over has a beginning and an end, and cannot be followed.
            stay = "(from, to) => `in call from ${from.day}, ${from.clock} to ${to.clock}`"
            clocks = "(at) => ({ day: new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' }), clock: new Date(at).toLocaleTimeString() })"
            one = server.api("GET", "/v1/sessions?room=call&identity=bob")[1]["sessions"][0]
            assert await page.evaluate(facts) == await page.evaluate(f"({stay})(({clocks})({one['joinedAt']}), ({clocks})({one['leftAt']}))")
            assert await page.evaluate(now) == "Show the end"
            assert await page.locator("#member-charts .span").count() >= 1
            answer = await page.evaluate(ANSWER)
            assert "ada, camera" in answer, answer
            sid = server.api("GET", "/v1/sessions?room=call&identity=bob")[1]["sessions"][0]["session"]
            status, kept = server.api("GET", f"/v1/sessions/{sid}/history")
            assert status == 200 and kept["samples"] and kept["decisions"] and kept["estimates"], kept
            assert all(decision["track"].startswith("TR_") for decision in kept["decisions"]), kept["decisions"]
            # Of somebody who never was there, nothing is shown.
            await page.goto(f"{server.url}/#/rooms/call/participants/nobody")
            await until(page, "document.querySelector('#member-problem').textContent.includes('no longer in the room')")
            assert await page.is_hidden("#member-body") and page.problems == []

    asyncio.run(run())


@pytest.mark.at_night
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_participants_page_fits_a_phones_width(development_server, scheme):
    """Reached by keyboard from the list of members; "Back" leads there again."""
    server = development_server

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "call", "ada", token=token("ada", "call"))
            bob = await open_room(browser, server, "call", "bob", token=token("bob", "call"), send="nothing")
            await wait_for_video(bob)
            page = await open_member(browser, server, "call", "bob", size=(360, 700), color_scheme=scheme)
            await page.goto(f"{server.url}/#/rooms/call")
            link = page.get_by_role("link", name="bob")
            await link.focus()
            await page.keyboard.press("Enter")
            await page.wait_for_selector("#member-charts .span")
            assert await page.evaluate("Math.max(...[...document.querySelectorAll('main, main *')].map((one) => one.getBoundingClientRect().right))") <= 360
            assert min(await page.evaluate("[...document.querySelectorAll('#member-charts svg')].map((one) => one.clientHeight)")) >= 50
            await page.go_back()
            await until(page, "document.activeElement.textContent === 'bob'")
            assert page.problems == []

    asyncio.run(run())


@pytest.mark.at_night
def test_a_participants_page_is_drawn_in_firefox(development_server):
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox:
            await open_room(browser, server, "call", "ada", token=token("ada", "call"))
            bob = await open_room(browser, server, "call", "bob", token=token("bob", "call"), send="nothing")
            await wait_for_video(bob)
            await fox.open(f"{server.url}/#/rooms/call/participants/bob", size=(1000, 800))
            await fox.wait_for("document.querySelectorAll('#member-charts .span').length > 0")
            await fox.wait_for("[...document.querySelectorAll('#member-charts .line.own')].some((one) => one.getAttribute('d').includes('L'))", 40)
            # Which layer that is depends on what two browsers leave of the machine; the words for each are judged in Chromium.
            await fox.wait_for("document.querySelectorAll('#member-answer li .layer').length > 0", 40)
            assert await fox.evaluate("Math.min(...[...document.querySelectorAll('#member-charts svg')].map((one) => one.clientHeight))") >= 50

    asyncio.run(run())


def test_a_server_that_does_not_answer_is_shown_as_such_on_every_screen(development_server):
    server = development_server

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "call", "ada", send="nothing")
            screens = {"member": await open_member(browser, server, "call", "ada"), "policy": await open_member(browser, server, "call", "ada")}
            await screens["policy"].goto(f"{server.url}/#/rooms/call/policy")
            sid = (await asyncio.to_thread(server.api, "GET", "/v1/rooms/call"))[1]["participants"][0]["sid"]
            await screens["member"].goto(f"{server.url}/#/rooms/call/participants/{sid}")
            await screens["member"].wait_for_selector("#member-charts svg")
            await screens["policy"].wait_for_selector("#policy-maxParticipants")
            server.kill()
            for name, page in screens.items():
                await until(page, f"document.querySelector('#{name}-problem').textContent === 'The server does not answer.'")
                assert await page.evaluate(f"document.querySelector('#{name}').classList.contains('stale')")
            server.start()

    asyncio.run(run())
