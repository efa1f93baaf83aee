"""Headless Chromium through playwright, with the flags that make it a good citizen of a test machine."""
import contextlib

from playwright.async_api import async_playwright

EXECUTABLE = "/usr/lib/chromium/chromium"
FLAGS = [
    "--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection",
    "--disable-gpu", "--mute-audio", "--disable-dev-shm-usage", "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
]


@contextlib.asynccontextmanager
async def chromium(*extra_flags, executable=EXECUTABLE):
    """A browser; open pages with `open_room` or `new_page`."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, headless=True, args=FLAGS + list(extra_flags))
        try:
            yield browser
        finally:
            await browser.close()


async def open_room(browser, server, room, name, *, send="generated", token=None, **options):
    """Joins through the console page, as a person does, but by address instead of by form."""
    page = await browser.new_page(viewport={"width": 1100, "height": 720})
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    query = "&".join(f"{k}={v}" for k, v in {"room": room, "name": name, "send": send, "join": 1, **options}.items())
    if token:
        query += f"&token={token}"
    await page.goto(f"{server.url}/?{query}")
    await page.wait_for_function("window.martlet && martlet.joined", timeout=15_000)
    return page


async def received(page):
    """What the page receives now: one entry a remote track, from getStats()."""
    return await page.evaluate("martlet.received()")


async def wait_for_video(page, count=1, frames=15, timeout_s=20, where="true"):
    """Waits until `count` remote videos have decoded `frames` frames each; returns their statistics."""
    await page.wait_for_function(
        f"""async () => {{
            const all = (await martlet.received()).filter((r) => r.kind === 'video' && r.framesDecoded >= {frames} && ({where}));
            return all.length >= {count};
        }}""", timeout=timeout_s * 1000, polling=250)
    return [r for r in await received(page) if r["kind"] == "video"]
