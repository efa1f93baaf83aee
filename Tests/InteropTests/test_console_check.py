"""The page that tries before a call whether it will work from here."""
import asyncio

import pytest

from conftest import running
from support.chromium import chromium, until
from support.firefox import firefox
from support.server import Server
from support.tokens import admin_token, token
from test_ice_servers import SECRET, coturn

DONE = "Boolean(window.martletCheck)"
STEPS = "Object.fromEntries(martletCheck.steps.map((one) => [one.name, one]))"
# Where nothing listens: as behind a firewall that lets no media pass.
BLOCKED = """(() => {
    const set = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
        return set.call(this, { type, sdp: sdp.replace(/^(a=candidate:\\S+ \\d+ \\S+ \\d+ \\S+) \\d+/gm, "$1 9") });
    };
})()"""


async def open_check(browser, server, script=None, size=(1100, 800)):
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, bypass_csp=True)
    if script:
        await page.add_init_script(script)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    await page.goto(f"{server.url}/check?token={token('ada', 'lecture')}")
    return page


@pytest.mark.judging
def test_the_check_sends_video_through_the_server_by_UDP_and_by_TURN_and_reports_what_came_back(tmp_path):
    """TCP is tried where the server offers it; test_tcp.py sees it alone. With a real TURN server; a token for one room suffices. No list, event or summary mentions the check, and there is one at a time here."""
    async def run(server):
        async with chromium() as browser:
            page = await open_check(browser, server)
            await page.click("#check-start")
            await until(page, "Boolean(document.querySelector('#check-steps [data-name=udp]:not([data-state=waiting])'))")
            headers = {"Authorization": f"Bearer {token('bob', 'lecture')}"}
            status, _, text = server.request("POST", "/v1/checks", headers=headers)
            assert status == 429 and "rate_limited" in text, "rooms.max_checks bounds them"
            assert server.api("GET", "/v1/rooms")[1]["rooms"] == []
            [room] = server.api("GET", "/v1/rooms?checks=true")[1]["rooms"]
            assert room["name"].startswith("check-") and room["participants"] == 2
            await until(page, DONE, 40)
            steps = await page.evaluate(STEPS)
            print(f"figures: {(await page.evaluate('martletCheck.report')).splitlines()[:5]}")
            assert await page.evaluate("martletCheck.verdict") == {"state": "good", "text": "Calls will work well from here."}
            for name in ("udp", "turn"):
                measured = steps[name]["measured"]
                assert steps[name]["state"] == "good" and measured["returnedBitrate"] > 50_000 and measured["framesPerSecond"] > 5, steps[name]
                assert measured["returnedLoss"] < 0.01, measured
            assert steps["signalling"]["state"] == "good" and steps["tcp"]["state"] in ("good", "absent"), steps
            assert server.api("GET", "/v1/events?after=0", headers={"Accept": "application/json"})[1]["events"] == []
            assert server.api("GET", "/v1/sessions")[1]["sessions"] == []
            assert not page.problems

    with coturn(tmp_path) as port:
        turn = f'ice_servers:\n  - urls: ["turn:127.0.0.1:{port}?transport=udp"]\n    secret: {SECRET}\n'
        with running(extra=f"{turn}rooms: {{max_checks: 1}}\n") as server:
            asyncio.run(run(server))


def test_the_check_says_in_plain_words_that_no_media_reaches_the_server(server):
    """And which candidates belong to which way, so that one way is never taken for another."""
    filtered = """import("/console/loopback.js").then(({ onlyCandidates }) => ["udp", "tcp"].map((way) => onlyCandidates(
        ["v=0", "a=candidate:1 1 UDP 1 192.0.2.1 7900 typ host", "a=candidate:2 1 tcp 1 192.0.2.1 7900 typ host tcptype passive"].join("\\r\\n"), way)))"""

    async def run():
        async with chromium() as browser:
            page = await open_check(browser, server, script=BLOCKED, size=(390, 800))
            udp, tcp = await page.evaluate(filtered)
            assert "UDP" in udp and "tcp" not in udp and "tcptype passive" in tcp and "UDP" not in tcp
            await page.click("#check-start")
            await until(page, DONE, 50)
            verdict, udp = await page.evaluate("[martletCheck.verdict, martletCheck.steps.find(({ name }) => name === 'udp')]")
            assert verdict["state"] == "bad" and verdict["text"].startswith("Calls will not work from here: no media reaches the server.")
            assert udp["text"] == "UDP does not reach the server. A firewall between this device and the server probably blocks it."
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, "fits a phone"

    asyncio.run(run())


def test_a_check_whose_server_goes_away_says_so_and_blames_no_firewall(server):
    async def run():
        async with chromium() as browser:
            page = await open_check(browser, server, script=BLOCKED)
            await page.click("#check-start")
            await until(page, "document.querySelector('#check-steps [data-name=udp]')?.dataset.state === 'running'")
            await asyncio.to_thread(server.kill)
            await until(page, "document.querySelector('#check-problem').textContent === 'The check was interrupted. The connection to the server was lost.'")
            assert await page.is_hidden("#check-result") and await page.is_enabled("#check-start") and not await page.evaluate(DONE)
            assert not page.problems
            server.start()

    asyncio.run(run())


@pytest.mark.at_night
def test_the_check_works_in_firefox(development_server):
    """With a token that a development server makes for the page."""
    async def run():
        async with firefox() as fox:
            await fox.open(f"{development_server.url}/check?start=1")
            await fox.wait_for(DONE, 60)
            steps = await fox.evaluate(STEPS)
            print(f"figures: {await fox.evaluate('martletCheck.report')}".splitlines()[0:3])
            assert steps["udp"]["state"] == "good" and steps["udp"]["measured"]["returnedBitrate"] > 50_000, steps["udp"]

    asyncio.run(run())


def test_checks_may_be_turned_off():
    server = Server(extra="rooms: {max_checks: 0}\n").start()
    try:
        status, _, text = server.request("POST", "/v1/checks", headers={"Authorization": f"Bearer {token('ada', 'lecture')}"})
        assert status == 403 and "rooms.max_checks is 0" in text
        status, _, text = server.request("POST", "/v1/checks", headers={"Authorization": f"Bearer {admin_token()}"})
        assert status == 403
    finally:
        assert server.stop() == 0


def test_a_low_bitrate_is_a_fault_of_the_network_unless_the_browser_sent_no_more_by_itself(development_server):
    """What the page concludes of figures as browsers report them: 100 kbit/s come back, of 300 or of as many that were sent."""
    async def run():
        async with chromium() as browser:
            page = await open_check(browser, development_server)
            narrow = "(sentBitrate, limitation) => import('/console/check.js').then(({ faultsOf }) => faultsOf(" \
                     "{ sentLoss: 0, returnedLoss: 0, roundTripMilliseconds: 5, returnedBitrate: 100_000, sentBitrate, limitation }))"
            for sent, limitation, faulty in [(300_000, "cpu", True), (100_000, "bandwidth", True), (100_000, None, True), (100_000, "cpu", False), (100_000, "none", False)]:
                found = await page.evaluate(f"([...figures]) => ({narrow})(...figures)", [sent, limitation])
                assert found == (["only 100 kbit/s come through"] if faulty else []), (sent, limitation, found)
            assert page.problems == []

    asyncio.run(run())
