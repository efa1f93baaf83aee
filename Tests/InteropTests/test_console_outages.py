"""What the console page says while the server, the network or the machine is away, and that a person's choices outlive it."""
import asyncio
import contextlib
import re
import signal
import time

import pytest

from conftest import running
from support.chromium import EXECUTABLE, chromium, open_room, room_address, until, wait_for_video
from support.firefox import firefox
from support.network import SERVER_ADDRESS, Lab
from support.processes import browser_of, descendants, suspended
from support.server import Server
from support.tokens import token
from support.waiting import PATIENCE_S, standstills, until_true

SHOWN = """(() => {
    const seen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && one.getBoundingClientRect().height > 0;
    const texts = (selector) => [...document.querySelectorAll(selector)].filter(seen).map((one) => one.textContent);
    const band = document.querySelector("#outage");
    const frames = [...document.querySelectorAll(".tile.speaking")].map((one) => getComputedStyle(one, "::after").boxShadow);
    return {
        band: band && seen(band) ? band.textContent : "", bandHeight: band?.getBoundingClientRect().height ?? 0,
        titleSize: band ? parseFloat(getComputedStyle(band.firstElementChild).fontSize) : 0,
        figures: texts(".tile .figures").join(" "), bars: texts(".tile .quality").length, still: texts(".tile .still"),
        speakingFrames: frames.filter((one) => one.includes("3px")).length,
    };
})()"""
#: Sooner than the 30 s without a keep-alive, after which anybody would be gone.
NOTICED_S = 25
BAND = "(document.querySelector('#outage:not([hidden])')?.textContent ?? '')"
# What a person does in the page before the connection is lost, and how the page and its browser know it.
CHOOSE = """(() => {
    document.querySelector("#mute-audio").click();
    document.querySelector("#share-screen").click();
    const tile = document.querySelector(".tile.camera:not(.own)");
    tile.querySelector(".pin").click();
    const menu = tile.querySelector(".layer");
    menu.value = "0";
    menu.dispatchEvent(new Event("change"));
})()"""
CHOSEN = """(() => {
    const tile = document.querySelector(".tile.camera:not(.own)");
    return JSON.stringify({
        microphone: document.querySelector("#mute-audio").getAttribute("aria-pressed"),
        camera: document.querySelector("#mute-video").getAttribute("aria-pressed"),
        captured: martlet.room?.media.stream.getTracks().map((one) => one.enabled && one.readyState).join(),
        sharing: document.querySelector("#share-screen").textContent,
        pinned: tile?.querySelector(".pin").getAttribute("aria-pressed"), size: tile?.querySelector(".layer").value,
    });
})()"""
SUBSCRIPTION = """martlet.room.signal.request("snapshot").then(({ subscriptions, participants }) => {
    const camera = participants.flatMap((one) => one.tracks).find((one) => one.source === "camera");
    return subscriptions.find((one) => one.track === camera?.sid && one.kind === "video");
})"""


async def choose(page):
    """Makes the choices; what they look like."""
    await page.evaluate(CHOOSE)
    await until(page, "document.querySelector('#share-screen').textContent.trim() === 'Stop sharing'")
    chosen = await page.evaluate(CHOSEN)
    assert '"pinned":"true","size":"0"' in chosen and '"microphone":"false","camera":"true"' in chosen, chosen
    return chosen


async def choices_hold(page, other, chosen, server, room, name):
    """The page shows what was chosen, and the server does it: the others get the screen again and the microphone stays muted."""
    await until(page, f"{CHOSEN} === {chosen!r}")
    await until(page, f"{SUBSCRIPTION}.then((one) => Boolean(one?.pinned && one.preference.spatial === 0))")
    await wait_for_video(page)
    await wait_for_video(other, count=2)

    def tracks():
        _, detail = server.api("GET", f"/v1/rooms/{room}/participants/{name}")
        return {one["source"]: one["muted"] for one in detail.get("participant", detail).get("tracks", [])}

    # The other one's videos may be those of before, whose frames its browser still counts, while the page publishes them afresh.
    wanted = {"microphone": True, "camera": False, "screen": False}
    await until_true(lambda: tracks() == wanted, PATIENCE_S, f"the server knows {wanted} of {name}")


@pytest.mark.parametrize("end", [pytest.param("killed", marks=pytest.mark.at_night), "hangs"])
def test_4_4_a_dead_server_is_shown_as_disconnected(server, end):
    """Large and plain: the connection is lost, and why; no figure, bar or speaking frame remains, and each video shows for how long it has been frozen."""
    async def run():
        async with chromium() as browser, standstills() as still:
            await open_room(browser, server, "dead", "ada")
            bob = await open_room(browser, server, "dead", "bob")
            await wait_for_video(bob)
            await until(bob, "document.querySelectorAll('.tile .quality:not([hidden])').length === 2")
            await until(bob, "/fps/.test(document.querySelector('.tile:not(.own) .figures').textContent)")
            server.process.send_signal(signal.SIGKILL if end == "killed" else signal.SIGSTOP)
            words = "The server does not answer|The connection to the server was closed" if end == "killed" else "The server stopped answering"
            ended = time.monotonic()
            await until(bob, f"/Connection lost.*({words})/.test({BAND})", PATIENCE_S)
            # After 23 s a page once still looked alive.
            took = (shown_at := time.monotonic()) - ended - still.within(ended, shown_at)
            assert took < 20, f"shown after {took:.1f} s"
            await until(bob, f"/Connection lost.*({words})/.test({BAND}) && [...document.querySelectorAll('.tile .still')]"
                             ".some((one) => /^No frames for ([6-9]|\\d\\d) s$/.test(one.textContent))", 40)
            await bob.evaluate("for (const one of document.querySelectorAll('.tile')) one.classList.add('speaking')")
            shown = await bob.evaluate(SHOWN)
            print(f"figures: after the server {end}, shown {took:.1f} s later: {shown}")
            assert re.search(f"Connection lost.*({words})", shown["band"]) and shown["bandHeight"] > 70 and shown["titleSize"] >= 20
            assert "fps" not in shown["figures"] and shown["bars"] == 0 and shown["speakingFrames"] == 0
            assert any(re.fullmatch(r"No frames for ([6-9]|\d\d) s", one) for one in shown["still"]), shown
            started = time.monotonic()
            if end == "killed":
                server.process.wait()
                server.start()
            else:
                server.process.send_signal(signal.SIGCONT)
            await until(bob, f"martlet.joined && /^Connected.*The connection was lost for \\d+ s/.test({BAND})")
            await until(bob, "document.querySelectorAll('.tile.camera:not(.own, .stands-still)').length === 1")
            await until(bob, "/fps/.test(document.querySelector('.tile:not(.own) .figures').textContent)")
            print(f"figures: everything is back {time.monotonic() - started:.1f} s after the server")
            await until(bob, f"{BAND} === ''")
            assert not bob.problems

    asyncio.run(run())


def test_4_4_a_frozen_video_is_marked_while_the_server_answers(server):
    """The publisher's machine hangs: its tile, and no other, shows for how long no frame arrived."""
    async def run():
        async with chromium("--stops-later") as first, chromium() as second:
            await open_room(first, server, "still", "ada")
            bea = await open_room(second, server, "still", "bea")
            bob = await open_room(second, server, "still", "bob", send="nothing")
            await wait_for_video(bob, count=2)
            with suspended(browser_of("--stops-later")):
                names = "[...document.querySelectorAll('.tile.stands-still .name b')].map((one) => one.textContent).join()"
                # For a moment bob's own page may have stood still, or bea's, and that is said then.
                await until(bob, f"{names} === 'ada' && {BAND} === '' && [...document.querySelectorAll('.tile .still')].some((one) => /^No frames for \\d+ s$/.test(one.textContent))"
                                 " && !document.querySelector('.tile.stands-still .figures').textContent.includes('fps')")
            await until(bob, "document.querySelector('.tile.stands-still') === null")
            await bea.click("#mute-video")
            await until(bob, "document.querySelector('.tile.video-muted') !== null")
            # Where the news came later than her last frame's three seconds, she was marked until then.
            await until(bob, f"!{names}.includes('bea')")
            await asyncio.sleep(4)
            assert "bea" not in await bob.evaluate(names), "a camera that is off is meant to be still"

    asyncio.run(run())


def test_whoever_was_in_the_room_sees_that_it_waits_to_be_let_in_again(server):
    """A restarted server does not know who was let in before, and the form, which says what one waits for, is hidden during a call."""
    says = "document.querySelector('#room-problem').textContent"

    async def run():
        async with chromium() as browser:
            eve = await open_room(browser, server, "again", "eve", send="nothing")
            await eve.evaluate("martlet.room.room.fire('waitingForApproval', {})")
            assert "waiting room" in await eve.evaluate(says) and await eve.is_visible("#room-problem")
            await eve.evaluate("martlet.room.signal.startOver()")
            await until(eve, f"martlet.joined && {says} === ''")
            assert not eve.problems

    asyncio.run(run())


@contextlib.asynccontextmanager
async def subject(kind, server, room, *, lab=None, flag="--stops-later"):
    """The page whose connection is lost, in Chromium or Firefox; and the ids of the browser's processes, by a function."""
    access = token("eve", room)
    if kind == "chromium":
        async with chromium(flag, **({"executable": lab.wrapper(2, EXECUTABLE)} if lab else {})) as browser:
            yield await open_room(browser, server, room, "eve", token=access), lambda: browser_of(flag)
    else:
        async with firefox(lab.client(2) if lab else None) as fox:
            await fox.open(room_address(server, room, "eve", token=access))
            await until(fox, "Boolean(window.martlet?.joined)")
            yield fox, lambda: [fox.pid, *descendants(fox.pid)]


@pytest.mark.at_night
@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_4_10_a_restart_of_the_server_is_shown_and_survived(development_server, kind):
    server = development_server

    async def run():
        async with chromium() as browser, subject(kind, server, "restart") as (eve, _):
            ada = await open_room(browser, server, "restart", "ada")
            await wait_for_video(eve)
            chosen = await choose(eve)
            await wait_for_video(ada, count=2)
            server.terminate()
            await until(eve, f"/Connection lost.*(shutting down or restarting|does not answer|closed)/.test({BAND})", NOTICED_S)
            said = await eve.evaluate(BAND)
            server.start()
            started = time.monotonic()
            await until(eve, "martlet.joined")
            back = time.monotonic() - started
            await choices_hold(eve, ada, chosen, server, "restart", "eve")
            print(f"figures: {kind}: “{said}”, joined again {back:.1f} s after the start, all media after {time.monotonic() - started:.1f} s")

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["chromium", pytest.param("firefox", marks=pytest.mark.at_night)])
def test_4_10_a_lost_network_is_shown_and_survived(kind):
    """The interface is down for 20 s at least, longer than the server's timeout for a peer; a change made meanwhile takes effect."""
    async def run():
        with Lab("mcut", 2, "both", "delay", 5) as lab:
            server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
            try:
                async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as browser, subject(kind, server, "cut", lab=lab) as (eve, _):
                    ada = await open_room(browser, server, "cut", "ada")
                    await wait_for_video(eve)
                    chosen = await choose(eve)
                    await wait_for_video(ada, count=2)
                    with lab.cut(2):
                        cut = time.monotonic()
                        await until(eve, f"/Connection lost/.test({BAND})", NOTICED_S)
                        noticed, said = time.monotonic() - cut, await eve.evaluate(BAND)
                        await until(eve, "[...document.querySelectorAll('.tile .still')].some((one) => /No frames/.test(one.textContent))")
                        await eve.evaluate("document.querySelector('#mute-video').click()")
                        await asyncio.sleep(max(0, 20 - (time.monotonic() - cut)))
                    restored = time.monotonic()
                    await until(eve, "martlet.joined")
                    back = time.monotonic() - restored
                    assert await eve.evaluate("martlet.room.media.videoTrack.enabled") is False
                    await eve.evaluate("document.querySelector('#mute-video').click()")
                    await choices_hold(eve, ada, chosen, server, "cut", "eve")
                    print(f"figures: {kind}: noticed after {noticed:.1f} s: “{said}”; joined {back:.1f} s after the network, "
                          f"all media after {time.monotonic() - restored:.1f} s")
            finally:
                server.stop()

    asyncio.run(run())


@pytest.mark.at_night
@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_4_10_a_machine_that_slept_is_shown_and_survived(kind):
    """All processes of the browser are stopped for 13 s, longer than the server keeps session and connections of a silent client."""
    patience = {"media": {"consent_timeout": 5, "bind": None}, "extra": "sessions:\n  keep_alive: 5\n  resume_window: 5\n"}

    async def run(server):
        async with chromium() as browser, subject(kind, server, "sleep") as (eve, processes):
            ada = await open_room(browser, server, "sleep", "ada")
            await wait_for_video(eve)
            chosen = await choose(eve)
            await wait_for_video(ada, count=2)
            session = await eve.evaluate("martlet.room.signal.session")
            turned = await eve.evaluate("martlet.room.signal.ranAt")
            with suspended(processes()):
                await asyncio.sleep(13)
            woken = time.monotonic()
            await until(eve, f"/This page was suspended for \\d+ s/.test({BAND})")
            said, read = await eve.evaluate(f"[{BAND}, Date.now()]")
            # From its last look, a second before at most, to its first one afterwards; rounded.
            assert 13 - 1 <= int(re.search(r"suspended for (\d+) s", said)[1]) <= (read - turned) / 1000 + 0.5, said
            await until(eve, f"martlet.joined && martlet.room.signal.session !== '{session}'")
            back = time.monotonic() - woken
            await choices_hold(eve, ada, chosen, server, "sleep", "eve")
            print(f"figures: {kind}: “{said}”, joined again {back:.1f} s after it woke, all media after {time.monotonic() - woken:.1f} s")

    with running(development=True, **patience) as server:
        asyncio.run(run(server))
