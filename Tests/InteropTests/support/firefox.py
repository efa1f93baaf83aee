"""Headless Firefox over WebDriver BiDi. Debian has no geckodriver; the browser speaks BiDi on a WebSocket of its own."""
import asyncio
import contextlib
import itertools
import json
import pathlib
import socket
import tempfile

import aiohttp

from .network import inside
from .processes import die_with_parent
from .waiting import PATIENCE_S

PREFERENCES = {
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.autoplay.default": 0,
    "app.update.auto": False,
    "app.normandy.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
    "remote.prefs.recommended": True,
}


class Firefox:
    def __init__(self, connection, pid):
        self.pid = pid
        self._socket, self._ids, self._waiting = connection, itertools.count(1), {}
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        async for message in self._socket:
            reply = json.loads(message.data)
            if (waiting := self._waiting.pop(reply.get("id"), None)) and not waiting.done():
                waiting.set_result(reply)

    async def call(self, method, **parameters):
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
        reply = await asyncio.wait_for(self._waiting[number], 30)
        assert reply.get("type") == "success", reply
        return reply["result"]

    async def open(self, url, size=None):
        """`size` is the page's width and height in pixels; the browser's own without it."""
        self.context = (await self.call("browsingContext.getTree"))["contexts"][0]["context"]
        if size:
            await self.call("browsingContext.setViewport", context=self.context, viewport={"width": size[0], "height": size[1]})
        await self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def evaluate(self, expression):
        """The value of a JavaScript expression that may be a promise, by way of JSON."""
        # A second script.evaluate is not answered while one awaits its promise: start it, then poll.
        await self._script(f"window.__r = undefined; Promise.resolve({expression}).then("
                           "(v) => { window.__r = JSON.stringify({v}) }, (e) => { window.__r = JSON.stringify({e: String(e)}) }); 0")
        for _ in range(800):
            result = (await self._script("window.__r === undefined ? '' : window.__r")).get("value")
            if result:
                value = json.loads(result)
                assert "e" not in value, value["e"]
                return value.get("v")
            await asyncio.sleep(0.05)
        raise TimeoutError(expression)

    async def run(self, script):
        """Runs statements in the page."""
        await self._script(script)

    async def _script(self, expression):
        result = await self.call("script.evaluate", expression=expression, target={"context": self.context}, awaitPromise=False)
        assert result["type"] == "success", result
        return result["result"]

    async def wait_for(self, expression, timeout_s=PATIENCE_S):
        """Polls until the expression is true."""
        for _ in range(int(timeout_s / 0.25)):
            if await self.evaluate(expression):
                return
            await asyncio.sleep(0.25)
        raise TimeoutError(expression)


@contextlib.asynccontextmanager
async def firefox(namespace=None):
    """A browser with one tab, in a network namespace where one is named."""
    with tempfile.TemporaryDirectory(prefix="martlet-firefox-", ignore_cleanup_errors=True) as profile:
        lines = "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES.items())
        pathlib.Path(profile, "user.js").write_text(lines)
        prefix = ["ip", "netns", "exec", namespace] if namespace else []
        process = await asyncio.create_subprocess_exec(
            *prefix, "firefox-esr", "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, preexec_fn=die_with_parent)
        drain = None
        try:
            url = await asyncio.wait_for(_listening(process), 60)
            drain = asyncio.create_task(process.stderr.read())
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(socket_factory=_sockets_in(namespace))) as session:
                async with session.ws_connect(url + "/session", max_msg_size=0) as connection:
                    browser = Firefox(connection, process.pid)
                    await browser.call("session.new", capabilities={})
                    yield browser
        finally:
            if process.returncode is None:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), 10)
                except TimeoutError:
                    process.kill()
                    await process.wait()
            if drain:
                drain.cancel()


def _sockets_in(namespace):
    """Makes sockets that belong to the browser's namespace, whose loopback it listens on."""
    def make(address):
        with inside(namespace):
            return socket.socket(*address[:3])

    return make


async def _listening(process):
    async for line in process.stderr:
        if b"WebDriver BiDi listening on" in line:
            return line.split()[-1].decode()
    raise RuntimeError("Firefox ended before it listened")
