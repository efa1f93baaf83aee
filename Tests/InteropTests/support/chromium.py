"""Headless Chromium through playwright, with the flags that make it a good citizen of a test machine."""
import asyncio
import contextlib
import time
from urllib.parse import urlencode

from playwright.async_api import async_playwright

from .shared_chromium import START_S, SharedChromium
from .tokens import token as make_token
from .waiting import PATIENCE_S

EXECUTABLE = "/usr/lib/chromium/chromium"
FLAGS = [
    "--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection",
    "--disable-gpu", "--mute-audio", "--disable-dev-shm-usage", "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
]


#: For tests that need neither flags nor a network of their own.
_shared = SharedChromium()


@contextlib.asynccontextmanager
async def chromium(*extra_flags, executable=EXECUTABLE, shared=True):
    """A browser; open pages with `open_room` or `new_page`. `shared`: it may be one that earlier tests used."""
    may_share = shared and not extra_flags and executable == EXECUTABLE
    with _shared.lent(executable, FLAGS) if may_share else contextlib.nullcontext() as address:
        async with async_playwright() as playwright:
            if address:
                browser = await playwright.chromium.connect_over_cdp(address, timeout=1000 * START_S)
            else:
                browser = await playwright.chromium.launch(
                    executable_path=executable, headless=True, args=FLAGS + list(extra_flags), timeout=1000 * START_S)
            try:
                yield browser
            finally:
                # This ends the contexts; the browser itself only where it was launched for the test.
                await browser.close()


def frames_every(milliseconds):
    """A script that makes the page's generated video slower, so that encoders do not take the machine."""
    return f"""(() => {{
        const often = setInterval;
        window.setInterval = (work, period, ...more) => often(work, Math.max(period, {milliseconds}), ...more);
    }})();"""


#: For pages whose pictures nobody looks at.
SPARING = frames_every(250)

#: What runs before the page's own scripts in the test that runs now.
_pace = ""


def judge(quality):
    """Whether the test that runs now judges loss, times or quality: then video has its full rate, else eight frames a second are enough. Browsers take most of
    the time of the machine: two pages that send each other video 122 % of a processor at fifteen frames a second, 94 % at eight (measured)."""
    global _pace
    _pace = "" if quality else frames_every(125)


def one_stream(mode):
    """A script for `open_room`: video leaves as one stream with its layers inside (`mode`, as L3T3_KEY) where the page sends three."""
    return f"""(() => {{
        const add = RTCPeerConnection.prototype.addTransceiver;
        RTCPeerConnection.prototype.addTransceiver = function (track, init = {{}}) {{
            if (track.kind === "video") init = {{ ...init, sendEncodings: [{{ scalabilityMode: "{mode}", maxBitrate: 2_000_000 }}] }};
            return add.call(this, track, init);
        }};
    }})()"""


#: A browser whose machine or estimate is small makes its video smaller, and then every layer has another height. This one leaves out frames instead.
SAME_SIZE = """(() => {
    const add = RTCPeerConnection.prototype.addTransceiver;
    RTCPeerConnection.prototype.addTransceiver = function (...given) {
        const made = add.apply(this, given);
        if (made.sender.track?.kind === "video") made.sender.setParameters({ ...made.sender.getParameters(), degradationPreference: "maintain-resolution" });
        return made;
    };
})()"""


def room_address(server, room, name, *, send="generated", token=None, **options):
    """Where the page joins `room` as `name` by itself."""
    query = {"room": room, "name": name, "send": send, "join": 1, "token": token or make_token(name, room), **options}
    return f"{server.url}/?{urlencode(query)}"


async def open_room(browser, server, room, name, *, send="generated", token=None, size=(1100, 720), script=None, **options):
    """Joins through the console page, as a person does, but by address instead of by form. `script` runs before the page's own."""
    # The page forbids eval, which is how playwright waits for an expression.
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, bypass_csp=True)
    await page.add_init_script(_pace + (script or ""))
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    await page.goto(room_address(server, room, name, send=send, token=token, **options))
    try:
        await until(page, "Boolean(window.martlet?.joined)")
    except AssertionError:
        raise AssertionError(f"{name} has not joined within {PATIENCE_S} s; problems: {page.problems}; the page says: {await page.inner_text('body')}") from None
    return page


async def join_by_form(browser, server, room, name, send="generated", script=None, **options):
    """Joins as a person does: fills the form and presses the button. The server must be a development server."""
    page = await open_form(browser, server, room, name, send, script, **options)
    await page.click("#join-button")
    await until(page, "martlet.joined")
    return page


async def open_form(browser, server, room, name, send="generated", script=None, **options):
    """The filled form, not sent yet. `script` runs before the page's own."""
    page = await browser.new_page(viewport={"width": 1100, "height": 720}, bypass_csp=True)
    await page.add_init_script(_pace + (script or ""))
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    await page.goto(f"{server.url}/?{urlencode(options)}")
    await page.fill("#room-name", room)
    await page.fill("#your-name", name)
    await page.select_option("#sending", send)
    return page


#: What the connections of the page send to and receive from, as "udp 192.0.2.1:7900" each, once they have agreed on it.
REMOTES = """Promise.all([martlet.room.pub, martlet.room.sub].filter(Boolean).map(async (peer) => {
    const reports = [...(await peer.getStats()).values()];
    const pair = reports.find((one) => one.type === 'candidate-pair' && (one.selected || one.id === reports.find((other) => other.type === 'transport')?.selectedCandidatePairId));
    const remote = pair && reports.find((one) => one.id === pair.remoteCandidateId);
    return remote ? `${remote.protocol} ${remote.address}:${remote.port}` : '';
})).then((all) => all.filter(Boolean))"""


async def received(page):
    """What the page receives now: one entry a remote track, from getStats()."""
    return await page.evaluate("martlet.received()")


async def until(page, expression, timeout_s=PATIENCE_S):
    """Waits until a JavaScript expression, which may be a promise, is true. Playwright's own wait takes any promise for true."""
    deadline = time.monotonic() + timeout_s
    while not await page.evaluate(expression):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {expression}"
        await asyncio.sleep(0.1)


async def stands_still(look, for_s=1, timeout_s=PATIENCE_S):
    """Waits until what `look` returns has stayed the same for so long, and returns it. What was under way may still arrive, on a slow machine late."""
    deadline = time.monotonic() + timeout_s
    while True:
        before = await look()
        await asyncio.sleep(for_s)
        if (after := await look()) == before:
            return after
        assert time.monotonic() < deadline, f"still changes after {timeout_s} s: {before}, {after}"


async def wait_for_video(page, count=1, frames=15, timeout_s=PATIENCE_S):
    """Waits until `count` remote videos have decoded `frames` frames each; returns their statistics."""
    await until(page, f"martlet.received().then((all) => all.filter((r) => r.kind === 'video' && r.framesDecoded >= {frames})"
                      f".length >= {count})", timeout_s)
    return [r for r in await received(page) if r["kind"] == "video"]
