"""Before one joins and during the call: devices, hands, views."""
import asyncio

import pytest

from support.chromium import chromium, join_by_form, open_form, open_room, until, wait_for_video
from support.firefox import firefox

# The second of Chromium's fake cameras measures depth (Y16), which no encoder takes.
CAMERAS = "--use-fake-device-for-media-stream=device-count=3"
MENU = "document.querySelector('#{place} select[data-kind={kind}]')"
COUNT_OFFERS = """(() => {
    window.offers = 0;
    const ask = martlet.room.signal.request;
    martlet.room.signal.request = function (type, ...rest) {
        if (type === "offer") window.offers += 1;
        return ask.call(this, type, ...rest);
    };
})()"""
# Every device that the page opens, after a while.
SLOW_DEVICES = """(() => {
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    window.opened = [];
    navigator.mediaDevices.getUserMedia = async (constraints) => {
        await new Promise((resolve) => { setTimeout(resolve, 100); });
        const stream = await open(constraints);
        window.opened.push(...stream.getTracks());
        return stream;
    };
})()"""
ON = "opened.filter(({ readyState }) => readyState === 'live').map(({ kind }) => kind).sort().join()"
MICROPHONE = "martlet.room.media.sources.find(({ source }) => source === 'microphone').track"
# A screen that needs no person, and its end by the browser's own button.
SCREEN = "navigator.mediaDevices.getDisplayMedia = async () => { const one = document.createElement('canvas'); one.getContext('2d'); return one.captureStream(5); }"
END_SCREEN = "martlet.room.screen.sources.forEach(({ track }) => { track.stop(); track.dispatchEvent(new Event('ended')); })"
LOUD = "document.querySelector('#{place} meter').value > 0.2"


async def choose_other(page, place, kind):
    """Chooses a device that is not in use; its name."""
    menu = MENU.format(place=place, kind=kind)
    fits = f"[...{menu}.options].findLast((it) => it.value !== {menu}.value && it.value !== 'default' && it.text !== 'fake_device_1')"
    # The browser lists its devices when the menus are opened.
    await until(page, f"Boolean({fits})")
    other, label = await page.evaluate(f"(() => {{ const one = {fits}; return [one.value, one.text]; }})()")
    await page.select_option(f"#{place} select[data-kind={kind}]", other)
    return label


def test_devices_are_chosen_before_joining_and_changed_during_the_call_without_negotiation(development_server):
    """The preview shows the camera and the microphone's level; what was previewed is sent; another camera and microphone go on in the same sections."""
    server = development_server

    async def run():
        async with chromium(CAMERAS) as browser:
            page = await open_form(browser, server, "devices", "Ada", send="camera", script=SLOW_DEVICES)
            assert await page.is_hidden("#preview")
            # A preview that opens after another choice is nobody's.
            await page.click("#preview-start")
            await page.select_option("#sending", "nothing")
            await until(page, f"opened.length === 2 && {ON} === ''")
            assert await page.is_hidden("#preview")
            await page.select_option("#sending", "camera")
            await page.click("#preview-start")
            await until(page, "document.querySelector('#preview-video').videoWidth > 0")
            await until(page, LOUD.format(place="preview-devices"))
            label = await choose_other(page, "preview-devices", "camera")
            await until(page, f"document.querySelector('#preview-video').srcObject.getVideoTracks()[0].label === {label!r}")
            await page.click("#join-button")
            await until(page, "martlet.joined")
            assert await page.evaluate("martlet.room.media.videoTrack.label") == label
            assert await page.evaluate("document.activeElement.id") == "room-title", "the focus is not lost with the form"
            bob = await open_room(browser, server, "devices", "bob", send="nothing")
            await wait_for_video(bob)
            await page.evaluate(COUNT_OFFERS)
            sids = await page.evaluate("JSON.stringify(martlet.room.publishing.sids)")
            await page.click("#mute-audio")
            await page.click("#devices-open")
            await page.evaluate(f"void (window.firstMicrophone = {MICROPHONE})")
            await choose_other(page, "devices-menus", "microphone")
            # Menus change their devices independently of each other: this one may take longer than all that follows.
            await until(page, f"{MICROPHONE} !== window.firstMicrophone")
            label = await choose_other(page, "devices-menus", "camera")
            await until(page, f"martlet.room.media.videoTrack.label === {label!r}")
            await until(page, "document.querySelector('.tile.own video').srcObject.getVideoTracks()[0] === martlet.room.media.videoTrack")
            await page.keyboard.press("Escape")
            assert await page.evaluate("document.activeElement.id") == "devices-open", "the keyboard goes on where it was"
            decoded = (await wait_for_video(bob))[0]["framesDecoded"]
            await wait_for_video(bob, frames=decoded + 20)
            assert await page.evaluate("JSON.stringify(martlet.room.publishing.sids)") == sids and await page.evaluate("window.offers") == 0
            assert await page.evaluate(f"{MICROPHONE}.enabled === false"), "a muted microphone stays muted when it is another one"
            # Two changes in a row, and one that is under way when the call ends. A former device goes off after the other has its place.
            await until(page, f"{ON} === 'audio,video'")
            await page.click("#devices-open")
            menu = MENU.format(place="devices-menus", kind="camera")
            twice = f"""(() => {{
                const menu = {menu}, used = menu.value, other = [...menu.options].find((it) => it.value !== used && it.text !== 'fake_device_1').value;
                window.count = opened.length;
                for (const one of [other, used]) {{ menu.value = one; menu.dispatchEvent(new Event("change")); }}
            }})()"""
            await page.evaluate(twice)
            await until(page, f"opened.length === count + 2 && {ON} === 'audio,video'")
            assert await page.evaluate("martlet.room.media.videoTrack.readyState") == "live"
            await page.evaluate(twice)
            await page.evaluate("document.querySelector('#leave').click()")
            assert await page.evaluate("document.activeElement.id") == "join-title", "nor is it lost with the room"
            await until(page, f"opened.length > count && {ON} === ''")
            assert not page.problems and not bob.problems

    asyncio.run(run())


#: Devices open when the test says so, and the page's audio contexts, of which each meter has one.
GATED = """(() => {
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices), Context = window.AudioContext;
    window.gate = Promise.resolve();
    navigator.mediaDevices.getUserMedia = async (constraints) => { await window.gate; return open(constraints); };
    window.contexts = [];
    window.AudioContext = class extends Context { constructor(...given) { super(...given); window.contexts.push(this); } };
})()"""


def test_a_microphone_that_opens_after_the_menus_were_closed_is_measured_no_more(server):
    async def run():
        async with chromium(CAMERAS) as browser:
            page = await open_room(browser, server, "meter", "ada", send="camera", script=GATED)
            await page.click("#devices-open")
            await until(page, "contexts.length === 1")
            await page.evaluate(f"void (window.former = {MICROPHONE}, window.gate = new Promise((resolve) => {{ window.letIn = resolve; }}))")
            await choose_other(page, "devices-menus", "microphone")
            await page.keyboard.press("Escape")
            await until(page, "!document.querySelector('#devices').open")
            await page.evaluate("letIn()")
            await until(page, f"former.readyState === 'ended' && {MICROPHONE}.readyState === 'live'")
            # The page looks at the devices once more; this look comes after that.
            assert await page.evaluate("navigator.mediaDevices.enumerateDevices().then(() => contexts.length)") == 1
            await until(page, "contexts[0].state === 'closed'")
            await page.click("#devices-open")
            await until(page, "contexts.length === 2")
            assert not page.problems

    asyncio.run(run())


#: A machine without devices of these kinds.
WITHOUT = """(() => {
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices), missing = %s;
    navigator.mediaDevices.getUserMedia = (constraints) => (missing.some((kind) => constraints[kind]) ? Promise.reject(new DOMException("", "NotFoundError")) : open(constraints));
})()"""


@pytest.mark.parametrize("missing, sent", [(["video"], "microphone true"), (["audio"], "camera true"), (["video", "audio"], "camera,microphone undefined")])
def test_a_machine_that_lacks_a_camera_or_a_microphone_sends_what_it_has(server, missing, sent):
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "lacking", "ada", send="camera", script=WITHOUT % missing)
            assert await page.evaluate("`${martlet.room.media.sources.map(({ source }) => source).sort()} ${martlet.room.media.isFromDevices}`") == sent
            assert await page.is_disabled("#mute-video") == (sent == "microphone true")
            assert not page.problems

    asyncio.run(run())


#: What a browser does when a camera is unplugged; `isLeft`: whether it finds another one.
UNPLUG = """(isLeft) => {
    window.realGetUserMedia ??= navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = isLeft ? window.realGetUserMedia : () => Promise.reject(new DOMException("", "NotFoundError"));
    const track = martlet.room.media.videoTrack;
    track.stop();
    track.dispatchEvent(new Event("ended"));
}"""


#: For others its video is off, and what the page says of it.
OFF = "[...martlet.room.roster.videos()].some(({ track }) => track.muted)"
SAYS = "document.querySelector('#room-problem').textContent.includes({text!r})"


def test_a_camera_that_is_unplugged_is_replaced_and_without_another_one_shown_as_off_until_one_is_there(server):

    async def run():
        async with chromium(CAMERAS) as browser:
            ada = await open_room(browser, server, "unplugged", "ada", send="camera")
            bob = await open_room(browser, server, "unplugged", "bob", send="nothing")

            async def plays():
                decoded = (await wait_for_video(bob))[0]["framesDecoded"]
                await wait_for_video(bob, frames=decoded + 10)

            await plays()
            await ada.evaluate(UNPLUG, True)
            await until(ada, SAYS.format(text="Another one is used now."))
            await plays()
            assert not await bob.evaluate(OFF)
            await ada.evaluate(UNPLUG, False)
            await until(ada, SAYS.format(text="There is no camera: connect one and turn it on."))
            await until(bob, OFF)
            await ada.click("#mute-video")
            await until(ada, "!" + SAYS.format(text="disconnected") + " && " + SAYS.format(text="There is no camera"))
            assert await bob.evaluate(OFF), "what is not there is not turned on"
            await ada.evaluate("void (navigator.mediaDevices.getUserMedia = window.realGetUserMedia)")
            await ada.click("#mute-video")
            await until(bob, f"!{OFF}")
            await plays()
            assert not ada.problems and not bob.problems

    asyncio.run(run())


#: Another program has every camera but this one, or, with `isTaken`, this one too by the time the page lets go of it.
BUSY = """(isTaken) => {
    window.realGetUserMedia ??= navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    const own = martlet.room.media.videoTrack;
    const { deviceId } = own.getSettings();
    window.before = own;
    navigator.mediaDevices.getUserMedia = (constraints) => {
        const isBusy = constraints.video && (isTaken || constraints.video.deviceId?.exact !== deviceId);
        return isBusy ? Promise.reject(new DOMException("Could not start video source", "NotReadableError")) : window.realGetUserMedia(constraints);
    };
}"""


def test_a_camera_that_another_program_has_leaves_the_one_that_worked_in_place_or_is_shown_as_off(server):
    sent = "martlet.room.ownSender?.track === martlet.room.media.videoTrack && martlet.room.media.videoTrack.readyState === 'live'"

    async def run():
        async with chromium(CAMERAS) as browser:
            ada = await open_room(browser, server, "busy", "ada", send="camera")
            bob = await open_room(browser, server, "busy", "bob", send="nothing")
            await wait_for_video(bob)
            used = await ada.evaluate("martlet.room.media.videoTrack.label")
            await ada.evaluate(BUSY, False)
            await ada.click("#devices-open")
            await choose_other(ada, "devices-menus", "camera")
            await until(ada, SAYS.format(text="Could not start video source"))
            await until(ada, f"martlet.room.media.videoTrack !== before && before.readyState === 'ended' && {sent}")
            assert await ada.evaluate("martlet.room.media.videoTrack.label") == used
            decoded = (await wait_for_video(bob))[0]["framesDecoded"]
            await wait_for_video(bob, frames=decoded + 20)
            assert not await bob.evaluate(OFF)
            await ada.evaluate(BUSY, True)
            await choose_other(ada, "devices-menus", "camera")
            await until(bob, OFF)
            await until(ada, "martlet.room.muted.video && before.readyState === 'ended'")
            # The module's own way, without the page.
            await ada.evaluate("void (navigator.mediaDevices.getUserMedia = window.realGetUserMedia)")
            await ada.keyboard.press("Escape")
            await ada.click("#mute-video")
            await until(ada, sent)
            await until(bob, f"!{OFF}")
            await ada.evaluate(BUSY, False)
            name = await ada.evaluate("martlet.room.room.publications.get(before).switchDevice('another').catch((problem) => problem.name)")
            assert name == "NotReadableError"
            assert await ada.evaluate("[...martlet.room.publishing.sent.keys()].every((one) => one !== before && one.readyState === 'live')")
            assert not ada.problems and not bob.problems

    asyncio.run(run())


def test_hands_screens_and_views_are_seen_by_all_on_a_phone_too(server):
    """Hands in the order in which they were raised, kept over a rejoin; who shares a screen; the speaker, or who is pinned, large on the stage."""
    news = "document.querySelector('#news').textContent"

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "hands", "ada", size=(390, 800))
            bob = await open_room(browser, server, "hands", "bob", send="nothing")
            carol = await open_room(browser, server, "hands", "carol")
            await wait_for_video(ada)
            for page in (carol, bob):
                await page.click("#raise-hand")
                await until(ada, f"{news}.includes({await page.evaluate('martlet.room.self.name')!r})")
            assert await ada.evaluate(news) == "Raised hands: carol, bob"
            assert await ada.evaluate("[...document.querySelectorAll('.tile .hand')].filter((one) => one.checkVisibility()).length") == 2
            await carol.click("#share-screen")
            await until(ada, f"{news} === 'carol shares a screen · Raised hands: carol, bob'")
            await carol.click("#share-screen")
            await carol.click("#raise-hand")
            await until(ada, f"{news} === 'Raised hands: bob'")
            await ada.click("#change-view")
            await until(ada, "document.querySelectorAll('#stage .tile').length === 1 && document.querySelectorAll('#grid .tile').length === 2")
            await until(ada, "document.querySelector('#stage .tile b').textContent === 'carol'")  # Bob sends nothing, so nobody else speaks.
            await ada.click("#change-view")
            await until(ada, "document.querySelector('#stage').childElementCount === 0")
            await ada.click("#grid .tile:not(.own) .pin", force=True)
            await until(ada, "document.querySelectorAll('#stage .tile.pinned').length === 1")
            await wait_for_video(ada, frames=60)
            assert await ada.evaluate("document.documentElement.scrollWidth") <= 390
            sizes = await ada.evaluate("[...document.querySelectorAll('.control')].filter((one) => one.checkVisibility()).map((one) => [one.clientWidth, one.clientHeight, one.textContent.trim()])")
            assert all(width >= 40 and height >= 40 and name for width, height, name in sizes), "fingers hit them, and they have names"
            await bob.evaluate("martlet.room.signal.startOver()")
            await until(bob, "martlet.joined")
            await until(ada, f"{news} === 'Raised hands: bob'")
            # Joined with a screen instead of a camera: the browser's own button ends that, too.
            dave = await open_room(browser, server, "hands", "dave", send="screen", script=SCREEN)
            await until(ada, f"{news} === 'dave shares a screen · Raised hands: bob'")
            assert await dave.inner_text("#share-screen") == "Stop sharing"
            await dave.evaluate(END_SCREEN)
            await until(ada, f"{news} === 'Raised hands: bob'")
            assert await dave.inner_text("#share-screen") == "Share screen" and await dave.evaluate("document.querySelector('.tile.own video')") is None
            assert not ada.problems and not bob.problems and not carol.problems and not dave.problems

    asyncio.run(run())


#: A screen that a person has not chosen before the test says so.
SLOW_SCREEN = """(() => {
    window.asked = 0;
    navigator.mediaDevices.getDisplayMedia = async () => {
        window.asked += 1;
        await new Promise((resolve) => { window.choose = resolve; });
        const { canvas } = document.createElement("canvas").getContext("2d");
        return canvas.captureStream(5);
    };
})()"""


def test_two_clicks_in_a_row_share_one_screen_which_a_third_one_ends(server):
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "two-clicks", "ada", send="nothing", script=SLOW_SCREEN)
            await ada.dblclick("#share-screen")
            await ada.evaluate("choose()")
            await until(ada, "martlet.room.room.publications.size > 0")
            await asyncio.sleep(0.5)
            assert await ada.evaluate("[asked, martlet.room.room.publications.size]") == [1, 1]
            await ada.click("#share-screen")
            await until(ada, "martlet.room.screen === null && martlet.room.room.publications.size === 0")
            assert not ada.problems

    asyncio.run(run())


def test_whom_the_operating_system_lets_share_no_screen_is_shown_that_and_who_chose_none_nothing(server):
    refuse = "void (navigator.mediaDevices.getDisplayMedia = async () => {{ throw new DOMException('{words}', 'NotAllowedError'); }})"

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "by-system", "ada", send="nothing")
            for words, says in (("Permission denied by system", "The operating system does not let this browser record the screen."), ("Permission denied", "")):
                await ada.evaluate(refuse.format(words=words))
                await ada.click("#share-screen")
                await until(ada, f"document.querySelector('#room-problem').textContent.startsWith({says!r})")
                await until(ada, "document.querySelector('#share-screen').textContent.trim() === 'Share screen'")
            assert await ada.inner_text("#room-problem") == "" and not ada.problems

    asyncio.run(run())


#: A browser that asks for a screen in the click alone, as Safari does.
IN_THE_CLICK = """(() => {
    let isClick = false;
    addEventListener("submit", () => { isClick = true; setTimeout(() => { isClick = false; }); }, true);
    navigator.mediaDevices.getDisplayMedia = async () => {
        if (!isClick) throw new DOMException("getDisplayMedia must be called from a user gesture handler.", "InvalidAccessError");
        const { canvas } = document.createElement("canvas").getContext("2d");
        return canvas.captureStream(5);
    };
})()"""


def test_a_screen_to_join_with_is_asked_for_in_the_click_and_ended_where_there_is_no_token(development_server):
    async def run():
        async with chromium() as browser:
            page = await join_by_form(browser, development_server, "in-the-click", "Ada", send="screen", script=IN_THE_CLICK)
            assert await page.inner_text("#share-screen") == "Stop sharing" and not page.problems
            page = await open_form(browser, development_server, "in-the-click", "Bob", send="screen", script=IN_THE_CLICK)
            await page.evaluate("""(() => {
                const open = navigator.mediaDevices.getDisplayMedia;
                navigator.mediaDevices.getDisplayMedia = async () => { window.opened = await open(); return window.opened; };
            })()""")
            await page.route("**/dev/token", lambda route: route.fulfill(status=403, content_type="application/problem+json", body='{"detail":"Not now."}'))
            await page.click("#join-button")
            await until(page, "document.querySelector('#join-problem').textContent === 'Not now.'")
            assert await page.evaluate("opened.getTracks().map(({ readyState }) => readyState)") == ["ended"]

    asyncio.run(run())


def test_malformed_metadata_as_a_hand_hides_nobody_elses(server):
    """Metadata is anybody's JSON, and an object without a number ended the listing of hands and screens in every page."""
    news = "document.querySelector('#news').textContent"

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "strange", "ada", send="nothing")
            eve = await open_room(browser, server, "strange", "eve", send="nothing")
            await eve.evaluate("""martlet.room.signal.request("metadata", { metadata: '{"hand":{"toString":0}}' }).then(() => 0)""")
            bob = await open_room(browser, server, "strange", "bob", send="nothing")
            await bob.click("#raise-hand")
            await until(ada, f"{news} === 'Raised hands: bob'")
            assert not ada.problems and not bob.problems

    asyncio.run(run())


def test_a_video_that_the_browser_has_paused_is_played_when_the_page_is_seen_again_and_at_a_click(server):
    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "paused", "ada")
            video = "document.querySelector('.tile.own video')"
            await until(page, f"{video}?.paused === false")
            for again in ("document.dispatchEvent(new Event('visibilitychange'))", "document.body.click()"):
                await page.evaluate(f"{video}.pause()")
                await page.evaluate(again)
                assert await page.evaluate(f"{video}.paused") is False, again
            assert not page.problems

    asyncio.run(run())


@pytest.mark.at_night
def test_one_video_is_shown_on_the_full_screen_and_in_a_window_of_its_own(server):
    async def run():
        async with chromium() as browser:
            await open_room(browser, server, "full", "ada")
            bob = await open_room(browser, server, "full", "bob", send="nothing")
            await wait_for_video(bob)
            await bob.click(".tile:not(.own) .full", force=True)
            await until(bob, "document.fullscreenElement?.matches('.tile')")
            await bob.evaluate("document.exitFullscreen()")
            await until(bob, "document.fullscreenElement === null")
            await bob.click(".tile:not(.own) .float", force=True)
            await until(bob, "document.pictureInPictureElement?.closest('.tile:not(.own)')")
            shown = await bob.evaluate("document.pictureInPictureElement.currentTime")
            await until(bob, f"document.pictureInPictureElement.currentTime > {shown} + 0.5")
            await bob.click(".tile:not(.own) .float", force=True)
            await until(bob, "document.pictureInPictureElement === null")
            assert not bob.problems

    asyncio.run(run())


@pytest.mark.at_night
def test_preview_hands_and_views_work_in_firefox(development_server):
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox:
            ada = await open_room(browser, server, "fox", "ada", send="generated")
            await fox.open(f"{server.url}/?room=fox&name=Fox&send=camera")
            await fox.run("document.querySelector('#preview-start').click(); 0")
            await fox.wait_for("document.querySelector('#preview-video').videoWidth > 0")
            await fox.wait_for("!document.querySelector('#preview-devices select[data-kind=camera]').closest('label').hidden")
            await fox.run("document.querySelector('#join-button').click(); 0")
            await fox.wait_for("martlet.joined")
            await wait_for_video(ada)
            await fox.run("document.querySelector('#raise-hand').click(); 0")
            await until(ada, "document.querySelector('#news').textContent === 'Raised hands: Fox'")
            await fox.run("document.querySelector('#change-view').click(); 0")
            await fox.wait_for("document.querySelectorAll('#stage .tile').length === 1")
            await fox.run("document.querySelector('#devices-open').click(); 0")
            await fox.wait_for("document.querySelector('#devices').open && !document.querySelector('#devices-menus meter').hidden")

    asyncio.run(run())
