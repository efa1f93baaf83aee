"""The policy editor of the operators' tab: whom a change affects stands there before it is applied, and nobody overwrites another operator's edit."""
import asyncio

import pytest

from support.chromium import chromium, open_room, stands_still, until, wait_for_video
from support.firefox import firefox
from support.signalling import signal
from support.tokens import token
from support.waiting import PATIENCE_S

#: The lines of what a change would do, one string.
IMPACT = "document.querySelector('#policy-impact').innerText"
CHANGES = "document.querySelector('#policy-changes').innerText"
#: Says nothing of a change that is still being asked about.
READY = "!document.querySelector('#policy-apply').disabled"


async def open_policy(browser, server, room, size=(1280, 860)):
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, bypass_csp=True)
    page.problems, page.asked = [], []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.asked.append((request.method, request.url.partition("?")[2])) if "/policy" in request.url else None)
    await page.goto(f"{server.url}/#/rooms/{room}/policy")
    await page.wait_for_selector("#policy-maxParticipants")
    return page


def edits(page):
    """Edits that the page asked for: all, and those that were no dry run."""
    every = [query for method, query in page.asked if method == "PATCH"]
    return every, [query for query in every if "dryRun" not in query]


async def policy(server, room):
    return (await asyncio.to_thread(server.api, "GET", f"/v1/rooms/{room}/policy"))[1]


async def change(server, room, **members):
    status, answer = await asyncio.to_thread(server.api, "PATCH", f"/v1/rooms/{room}/policy", members)
    assert status == 200, answer


def test_the_editor_shows_whom_a_change_affects_and_applies_it_only_when_confirmed(development_server):
    """ada sends video to bob; the operator makes the room audio-only: first nothing happens, then what was announced."""
    server = development_server

    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "talk", "ada", token=token("ada", "talk", name="Ada Lovelace"))
            bob = await open_room(browser, server, "talk", "bob", token=token("bob", "talk"), send="nothing")
            await wait_for_video(bob)
            page = await open_policy(browser, server, "talk")
            assert await page.is_disabled("#policy-apply") and "Nothing is changed" in await page.evaluate(IMPACT)

            await page.select_option("#policy-audioOnly", label="Yes")
            await until(page, READY)
            assert (await page.evaluate(IMPACT)).split("\n")[::2] == [
                "2 participants in the room are affected:", "Ada Lovelace no longer sends the camera.", "bob no longer receives 1 track."]
            assert await page.evaluate(CHANGES) == "Audio only: No → Yes"
            assert edits(page)[1] == [] and "audioOnly" in await policy(server, "talk") and not (await policy(server, "talk"))["audioOnly"]

            # What ends for others asks for confirmation.
            await page.click("#policy-apply")
            await page.get_by_role("alertdialog", name="Apply the policy of “talk”?").wait_for(timeout=PATIENCE_S * 1000)
            assert await page.inner_text("#ask-text") == "1 track ends."
            await page.keyboard.press("Escape")
            assert edits(page)[1] == [] and not (await policy(server, "talk"))["audioOnly"]
            await page.click("#policy-apply")
            await page.click("#ask-confirm")
            await until(page, "document.querySelector('#policy-done').textContent.startsWith('Applied at')")
            assert (await policy(server, "talk"))["audioOnly"] is True
            await until(bob, "martlet.received().then((all) => all.every((r) => r.kind !== 'video'))")
            assert await page.is_disabled("#policy-apply") and await page.evaluate(CHANGES) == ""

            # Back to the default: null in the merge patch.
            await page.select_option("#policy-audioOnly", label="Back to the default")
            await until(page, READY)
            await page.click("#policy-apply")
            await until(page, "document.querySelector('#policy-audioOnly').selectedOptions[0].textContent === 'No'")
            assert (await policy(server, "talk"))["audioOnly"] is False
            assert page.problems == []

    asyncio.run(run())


def test_participants_beyond_a_new_maximum_stay_unless_the_operator_disconnects_them(development_server):
    server = development_server

    async def run():
        async with chromium() as browser, signal(server, token("ada", "den"), room="den"), signal(server, token("bob", "den"), room="den"):
            page = await open_policy(browser, server, "den")
            await page.fill("#policy-maxParticipants", "1")
            await until(page, READY)
            assert "1 participant whom the policy would not let in any more would stay." in await page.evaluate(IMPACT)
            await page.check("#policy-remove-excess")
            await until(page, f"{READY} && {IMPACT}.includes('bob is disconnected.')")
            assert "would stay" not in await page.evaluate(IMPACT)
            await page.click("#policy-apply")
            assert await page.inner_text("#ask-text") == "1 participant is disconnected."
            await page.click("#ask-confirm")
            await until(page, "document.querySelector('#policy-done').textContent.startsWith('Applied')")
            members = (await asyncio.to_thread(server.api, "GET", "/v1/rooms/den"))[1]["participants"]
            assert [member["identity"] for member in members] == ["ada"]

            # So may a change of who counts, although the maximum stays.
            await page.select_option("#policy-countsHidden", label="Yes")
            assert await page.is_visible("#policy-excess")
            await page.select_option("#policy-countsHidden", label="No")
            assert await page.is_hidden("#policy-excess")

            # Who has been here for longer than anybody may stay leaves at once, and that is asked about; others are notified when.
            await page.fill("#policy-maxStaySeconds", "3600")
            await until(page, f"{READY} && {IMPACT}.includes('ada is disconnected at ')")
            await page.fill("#policy-maxStaySeconds", "1")
            await until(page, f"{READY} && {IMPACT}.includes('ada is disconnected.')")
            await page.click("#policy-apply")
            assert await page.inner_text("#ask-text") == "1 participant is disconnected."
            await page.keyboard.press("Escape")
            assert page.problems == []

    asyncio.run(run())


@pytest.mark.parametrize("when", ["while it is checked", "between check and apply"])
def test_an_edit_of_another_operator_is_never_overwritten_unnoticed(development_server, when):
    """Both changes are shown beside each other; keeping one's own applies them on top, discarding them shows the other's."""
    server = development_server

    async def run():
        assert (await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "shared"}))[0] == 201
        async with chromium() as browser:
            page = await open_policy(browser, server, "shared")
            await page.fill("#policy-maxParticipants", "5")
            await until(page, READY)
            if when == "between check and apply":
                # The other operator's edit arrives when ours is on its way.
                async def late(route):
                    if "dryRun" not in route.request.url and route.request.method == "PATCH" and not late.was:
                        late.was = True
                        await change(server, "shared", maxParticipants=8, lockRight="members")
                    await route.continue_()

                late.was = False
                await page.route("**/v1/rooms/shared/policy*", late)
                await page.click("#policy-apply")
            else:
                await change(server, "shared", maxParticipants=8, lockRight="members")
            await page.get_by_text("Somebody else changed this policy after you opened it.").wait_for(timeout=PATIENCE_S * 1000)
            lines = await page.locator("#policy-conflict li").all_inner_texts()
            assert lines == ["Maximum participants: 8, was not set; you want 5",
                             "Who may lock the room: Everybody in the room, was Operators and moderators"], lines
            assert not await page.is_visible("#policy-apply") and (await policy(server, "shared"))["maxParticipants"] == 8

            if when == "between check and apply":
                await page.get_by_role("button", name="Discard my changes").click()
                await until(page, "document.querySelector('#policy-maxParticipants').value === '8'")
                assert await page.is_disabled("#policy-apply")
            else:
                await page.get_by_role("button", name="Keep my changes").click()
                await until(page, READY)
                assert await page.evaluate(CHANGES) == "Maximum participants: 8 → 5"
                await page.click("#policy-apply")
                await until(page, "document.querySelector('#policy-done').textContent.startsWith('Applied')")
                after = await policy(server, "shared")
                assert (after["maxParticipants"], after["lockRight"]) == (5, "members")
            assert await page.locator("#policy-conflict li").count() == 0 and page.problems == []

    asyncio.run(run())


def test_what_cannot_be_applied_is_explained_at_its_field(development_server):
    """A value out of range is not sent; what the server refuses has the server's reason, and nothing is applied."""
    server = development_server

    async def run():
        async with chromium() as browser, signal(server, token("ada", "den"), room="den"):
            page = await open_policy(browser, server, "den")
            await page.fill("#policy-maxParticipants", "0")
            await until(page, "document.querySelector('#policy-maxParticipants-fault').textContent !== ''")
            assert await page.get_attribute("#policy-maxParticipants", "aria-invalid") == "true"
            assert await stands_still(lambda: asyncio.sleep(0, len(edits(page)[0]))) == 0, "it was sent"
            await page.fill("#policy-maxParticipants", "")
            assert await page.inner_text("#policy-maxParticipants-fault") == ""

            await page.fill("#policy-subscribeRules", "[nonsense")
            assert "not JSON" in await page.inner_text("#policy-subscribeRules-fault")
            await page.fill("#policy-subscribeRules", '[{"action": "exclude", "kind": "smell"}]')
            await until(page, "document.querySelector('#policy-problem').textContent.includes('it must be audio or video')")
            assert await page.get_attribute("#policy-subscribeRules", "aria-invalid") == "true" and await page.is_disabled("#policy-apply")
            await page.fill("#policy-subscribeRules", "")

            await page.select_option("#policy-topology", label="Peer to peer")
            await until(page, "/only change while nobody is in the room/.test(document.querySelector('#policy-problem').textContent)")
            assert await page.is_disabled("#policy-apply")
            await page.click("#policy-discard")
            await until(page, "document.querySelector('#policy-problem').textContent === ''")
            assert edits(page)[1] == []

            await asyncio.to_thread(server.api, "DELETE", "/v1/rooms/den")
            await until(page, "document.querySelector('#policy-problem').textContent.startsWith('This room was closed.')")
            assert page.problems == []

    asyncio.run(run())


def test_what_is_half_typed_is_still_there_when_the_policy_has_been_read_again(development_server):
    """Half of a JSON document and a line that was begun are no changes yet; nor does a list of choices close while somebody looks at it."""
    server = development_server

    async def run():
        assert (await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "desk", "policy": {"alwaysHeard": ["chair"]}}))[0] == 201
        async with chromium() as browser:
            page = await open_policy(browser, server, "desk")
            await until(page, "document.querySelector('#policy-alwaysHeard').value === 'chair'")
            await page.evaluate("window.option = document.querySelector('#policy-lockRight').options[0]")
            await page.focus("#policy-alwaysHeard")
            await page.keyboard.press("Control+End")
            await page.keyboard.press("Enter")
            await page.fill("#policy-subscribeRules", '[{"action": "excl')
            async with page.expect_response(lambda reply: reply.url.endswith("/desk/policy") and reply.request.method == "GET", timeout=PATIENCE_S * 1000):
                pass
            await page.wait_for_timeout(300)
            assert await page.input_value("#policy-subscribeRules") == '[{"action": "excl'
            assert await page.input_value("#policy-alwaysHeard") == "chair\n" and await page.evaluate("window.option.isConnected")
            # What another operator changes is shown all the same.
            await change(server, "desk", maxParticipants=7)
            await until(page, "document.querySelector('#policy-maxParticipants').value === '7'")
            assert await page.input_value("#policy-subscribeRules") == '[{"action": "excl' and page.problems == []
            # It is no fault of another room's policy.
            assert await page.evaluate(IMPACT) == "Correct the marked fields first."
            assert (await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "table"}))[0] == 201
            await page.evaluate("location.hash = '#/rooms/table/policy'")
            await until(page, f"{IMPACT} === 'Nothing is changed yet.'")

    asyncio.run(run())


def test_whoever_wanted_what_another_operator_has_set_meanwhile_can_take_it_back(development_server):
    server = development_server

    async def run():
        assert (await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "twin"}))[0] == 201
        schema = (await asyncio.to_thread(server.api, "GET", "/openapi.json"))[1]["components"]["schemas"]["Policy"]["properties"]["videoCodecs"]
        codecs = (await policy(server, "twin")).get("videoCodecs") or schema["items"]["enum"]
        async with chromium() as browser:
            page = await open_policy(browser, server, "twin")
            box = page.locator("#policy-videoCodecs label", has_text="AV1").locator("input")
            await box.uncheck()
            await until(page, READY)
            await change(server, "twin", videoCodecs=[codec for codec in codecs if codec != "av1"])
            await page.get_by_role("button", name="Keep my changes").click(timeout=PATIENCE_S * 1000)
            assert await page.evaluate(CHANGES) == "" and not await box.is_checked()
            await box.check()
            assert (await page.evaluate(CHANGES)).endswith("→ all") and page.problems == []

    asyncio.run(run())


def test_what_is_typed_while_a_change_is_being_applied_is_the_next_change(development_server):
    server = development_server

    async def run():
        assert (await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "slow"}))[0] == 201
        async with chromium() as browser:
            page = await open_policy(browser, server, "slow")
            await page.fill("#policy-maxParticipants", "5")
            await until(page, READY)
            held, go_on = asyncio.Event(), asyncio.Event()

            async def hold(route):
                if "dryRun" not in route.request.url and route.request.method == "PATCH":
                    held.set()
                    await go_on.wait()
                await route.continue_()

            await page.route("**/v1/rooms/slow/policy*", hold)
            await page.click("#policy-apply")
            await asyncio.wait_for(held.wait(), PATIENCE_S)
            await page.fill("#policy-maxPublishers", "3")
            await page.wait_for_timeout(600)  # A dry run would follow by now.
            go_on.set()
            await until(page, f"document.querySelector('#policy-done').textContent.startsWith('Applied') && {READY}")
            assert await page.evaluate(CHANGES) == "Maximum publishers: not set → 3" and await page.locator("#policy-conflict li").count() == 0
            after = await policy(server, "slow")
            assert after["maxParticipants"] == 5 and "maxPublishers" not in after and page.problems == []

    asyncio.run(run())


def test_every_member_of_a_policy_has_a_field_that_shows_and_sets_it(development_server):
    """As the OpenAPI document lists them: each is read from the form as it stands in force, and what is typed arrives in the units of the API."""
    server = development_server
    wanted = {
        "maxVideoBitrate": 1_500_000, "emptyTimeoutSeconds": 60, "videoCodecs": ["av1", "vp9"], "vp9Profiles": [0, 2], "shortage": "oversend", "oversendBitrate": 64_000,
        "alwaysHeard": ["chair", "host"], "subscribeRules": [{"action": "include", "all": True}, {"action": "exclude", "source": "screen"}], "waitingRoom": True,
        "publishSources": ["camera", "microphone"], "moderatorSources": ["screen"], "recordingParticipants": ["host"],
        "recordingFiles": "participant", "recordingFileName": "{room}-{time}", "recordingSegmentMegabytes": 100,
    }

    async def run():
        await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "all"})
        members = (await asyncio.to_thread(server.api, "GET", "/openapi.json"))[1]["components"]["schemas"]["Policy"]["properties"]
        async with chromium() as browser:
            page = await open_policy(browser, server, "all")
            for name in members:
                assert await page.locator(f"#policy-{name}").count() == 1, name
            names = await page.evaluate("[...document.querySelectorAll('#policy-form :is(label:not(.check), legend)')].map((one) => one.firstChild.data)")
            assert len(names) == len(set(names)) == len(members), "every field has a name of its own"

            await page.fill("#policy-maxVideoBitrate", "1500")
            await page.fill("#policy-emptyTimeoutSeconds", "60")
            for name, unwanted in [("videoCodecs", ["VP8", "H.264"]), ("vp9Profiles", ["Profile 1", "Profile 3"]), ("publishSources", ["Screen", "Screen audio"])]:
                for one in unwanted:
                    await page.locator(f"#policy-{name}").get_by_label(one, exact=True).uncheck()
            await page.locator("#policy-moderatorSources").get_by_label("Screen", exact=True).check()
            await page.select_option("#policy-shortage", label="Is sent above the estimate")
            await page.fill("#policy-oversendBitrate", "64")
            await page.fill("#policy-alwaysHeard", "chair\nhost")
            await page.fill("#policy-recordingParticipants", "host")
            await page.select_option("#policy-recordingFiles", label="One per participant")
            await page.fill("#policy-recordingSegmentMegabytes", "100")
            await page.fill("#policy-recordingFileName", "../{room}")
            assert not await page.evaluate("document.querySelector('#policy-recordingFileName').checkValidity()")
            await page.fill("#policy-recordingFileName", "{room}-{time}")
            await page.fill("#policy-subscribeRules", '[{"action": "include", "all": true}, {"action": "exclude", "source": "screen"}]')
            await page.select_option("#policy-waitingRoom", label="Yes")
            await until(page, READY)
            assert await page.evaluate(IMPACT) == "Nobody who is in the room is affected."
            before = await policy(server, "all")
            await page.click("#policy-apply")
            await until(page, "document.querySelector('#policy-done').textContent.startsWith('Applied')")
            after = await policy(server, "all")
            assert {name: sorted(value) if name == "videoCodecs" else value for name, value in after.items() if value != before.get(name)} == wanted
            # Read again, nothing differs from what is in force.
            await page.reload()
            await page.wait_for_selector("#policy-maxParticipants")
            assert await page.evaluate(CHANGES) == "" and page.problems == []

    asyncio.run(run())


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_policy_is_edited_by_keyboard_on_a_phones_width(development_server, scheme):
    """From the overview and back: the focus goes where one is, nothing is wider than the screen, and what is typed is still there after "Back"."""
    server = development_server

    async def run():
        await asyncio.to_thread(server.api, "POST", "/v1/rooms", {"name": "pocket"})
        async with chromium() as browser:
            page = await browser.new_page(viewport={"width": 360, "height": 700}, bypass_csp=True, color_scheme=scheme)
            await page.goto(f"{server.url}/#/rooms")
            await page.wait_for_selector("#edit-policy")  # Hidden until the rooms have come: the focus would go nowhere.
            await page.locator("#edit-policy").focus()
            await page.keyboard.press("Enter")
            await page.wait_for_selector("#policy-maxParticipants")
            assert await page.evaluate("document.activeElement.id") == "policy-title"
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.id") == "policy-maxParticipants"
            await page.keyboard.type("12")
            await until(page, READY)
            assert await page.evaluate("Math.max(...[...document.querySelectorAll('main, main *')].map((one) => one.getBoundingClientRect().right))") <= 360
            field, aside = [await page.locator(one).bounding_box() for one in ("#policy-maxParticipants", "#policy aside")]
            assert field["y"] + field["height"] <= aside["y"], "the field that is typed into stays visible"

            await page.go_back()
            await page.wait_for_selector("#edit-policy")
            await until(page, "document.activeElement.id === 'edit-policy'")
            await page.keyboard.press("Enter")
            await until(page, f"document.querySelector('#policy-maxParticipants').value === '12' && {READY}")
            await page.locator("#policy-apply").focus()
            await page.keyboard.press("Enter")
            await until(page, "document.querySelector('#policy-done').textContent.startsWith('Applied')")
            assert (await policy(server, "pocket"))["maxParticipants"] == 12
            assert await page.evaluate("document.activeElement !== document.body"), "the focus fell out of the page"

    asyncio.run(run())


@pytest.mark.at_night
def test_the_policy_editor_works_in_firefox(development_server):
    server = development_server

    async def run():
        async with signal(server, token("ada", "fox"), room="fox"), firefox() as fox:
            await fox.open(f"{server.url}/#/rooms/fox/policy")
            await fox.wait_for("Boolean(document.querySelector('#policy-maxDownlinkBitrate'))")
            await fox.run("const one = document.querySelector('#policy-maxDownlinkBitrate'); one.value = '300';"
                          " one.dispatchEvent(new Event('input', { bubbles: true }))")
            await fox.wait_for(READY)
            assert await fox.evaluate(IMPACT) == "1 participant in the room is affected:\n\nada gets its videos by other bandwidth rules."
            await fox.run("document.querySelector('#policy-apply').click()")
            await fox.wait_for("document.querySelector('#policy-done').textContent.startsWith('Applied')")
            assert (await policy(server, "fox"))["maxDownlinkBitrate"] == 300_000
            await change(server, "fox", maxDownlinkBitrate=None)
            await fox.wait_for("document.querySelector('#policy-maxDownlinkBitrate').value === ''")

    asyncio.run(run())
