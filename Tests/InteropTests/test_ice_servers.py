"""ICE servers with credentials reach browsers in a form that they accept."""
import asyncio

from support.chromium import chromium, open_room, until
from support.server import Server

TURN = """
ice_servers:
  - urls: ["turn:127.0.0.1:9", "turns:127.0.0.1:9?transport=tcp"]
    username: martlet
    credential: secret
"""


def test_a_browser_joins_and_publishes_with_a_turn_server_configured():
    """The constructor of RTCPeerConnection in Chromium throws for a TURN server without credentials."""
    server = Server(extra=TURN).start()

    async def run():
        async with chromium() as browser:
            keep = "const Kept = RTCPeerConnection; window.kept = [];" \
                   "window.RTCPeerConnection = class extends Kept { constructor(c) { super(c); window.kept.push(this); } };"
            page = await open_room(browser, server, "relayed", "Ada", script=keep)
            await until(page, "window.kept.some((peer) => peer.connectionState === 'connected')")
            servers = await page.evaluate("window.kept[0].getConfiguration().iceServers")
            assert [(one["urls"], one["username"], one["credential"]) for one in servers] == [
                (["turn:127.0.0.1:9", "turns:127.0.0.1:9?transport=tcp"], "martlet", "secret")]
            assert not page.problems

    try:
        asyncio.run(run())
    finally:
        assert server.stop() == 0
