"""A rolling restart of two servers behind a small proxy, with fifty members in ten rooms: the longest time without media of each. Then the first server
once more, with two pages in Chromium that stay until the drain is over.

    rolling.py        exits with 0 if everybody moved twice, nobody was without media for a second, and the pages see each other on the other
                      server; `make rolling`, and a part of `make nightly`
"""
import asyncio
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/InteropTests"))
from support.chromium import chromium, open_room, received, wait_for_video  # noqa: E402
from support.server import Server, free_ports  # noqa: E402
from support.tokens import KEY, SECRET, token  # noqa: E402

DRAIN_S = 20
#: A page learns of the end from its socket, waits a moment, joins, connects and needs a keyframe. The servers share the machine with two browsers' encoders.
PAGE_GAP_S = 5


class Proxy:
    """Passes each new TCP connection to the first server that is ready, as a load balancer with health checks does."""

    def __init__(self, servers):
        self.servers, self.port = servers, free_ports(1)[0]
        self.ready = list(servers)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def run(self):
        asyncio.create_task(self._look())
        await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _look(self):
        while True:
            ready = []
            for server in self.servers:
                try:
                    if (await asyncio.to_thread(server.get_private, "/readyz"))[0] == 200:
                        ready.append(server)
                except OSError:
                    pass
            self.ready = ready
            await asyncio.sleep(0.1)

    async def _serve(self, reader, writer):
        if not self.ready:
            return writer.close()
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.ready[0].http)

        async def pass_on(source, target):
            try:
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            except OSError:
                pass
            finally:
                target.close()

        await asyncio.gather(pass_on(reader, there_writer), pass_on(there_reader, writer))


async def end(server):
    """Sends SIGTERM and waits until the server has ended by itself; returns how long it drained, and its exit status."""
    started = time.monotonic()
    server.process.terminate()
    code = await asyncio.to_thread(server.process.wait, DRAIN_S + 15)
    return round(time.monotonic() - started, 1), code


async def restart(server):
    ended = await end(server)
    await asyncio.to_thread(server.start)
    return ended


async def longest_gap(page, over):
    """The longest time, in seconds, in which a page decoded no frame of video, until `over` is set."""
    longest, frames, since = 0.0, None, time.monotonic()
    while not over.is_set():
        now = [(one["mid"], one["framesDecoded"]) for one in await received(page) if one["kind"] == "video"]
        if now and now != frames:
            longest, frames, since = max(longest, time.monotonic() - since), now, time.monotonic()
        await asyncio.sleep(0.05)
    return max(longest, time.monotonic() - since)


async def pages(servers, proxy):
    """Two pages see each other while their server is restarted; returns the claims about that."""
    over = asyncio.Event()
    async with chromium() as browser:
        pair = [await open_room(browser, proxy, "pair", name, codec="VP8", token=token(name, "pair")) for name in ("ada", "bob")]
        for page in pair:
            await wait_for_video(page)
        before = servers[0].metric("martlet_participants")
        gaps = [asyncio.create_task(longest_gap(page, over)) for page in pair]
        drained, code = await end(servers[0])
        # It stays away for a moment: a page that tries again after its new start would find the first server.
        await asyncio.sleep(5)
        await asyncio.to_thread(servers[0].start)
        over.set()
        gaps = [round(await gap, 2) for gap in gaps]
        for page in pair:
            await wait_for_video(page)
        after = servers[1].metric("martlet_participants")
        problems = [problem for page in pair for problem in page.problems]
        for page in pair:
            await page.click("#leave")
    return [
        ("two pages on the first server before, on the second after, their errors", [before, after, problems], before == after == 2 and not problems),
        ("seconds that the first server drained with them, exit status", [drained, code], code == 0 and drained < DRAIN_S + 5),
        ("longest time without a decoded frame of each page, s", gaps, max(gaps) < PAGE_GAP_S),
    ]


async def run():
    servers = [Server(extra=f"sessions: {{drain: {DRAIN_S}}}\n").start() for _ in range(2)]
    proxy = Proxy(servers)
    await proxy.run()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        load = await asyncio.create_subprocess_exec(
            ROOT / ".build/release/loadtest", "run", ROOT / "LoadTests/Scenarios/rolling.json", "--url", proxy.url,
            "--key", KEY, "--secret", SECRET, "--server-pid", ",".join(str(one.process.pid) for one in servers), "--follow-drains", "--json", path, "--quiet")
        # A generator that has ended brings nobody in any more.
        while load.returncode is None and servers[0].metric("martlet_participants") < 50:
            await asyncio.sleep(0.2)
        await asyncio.sleep(8)
        first = await restart(servers[0])
        await asyncio.sleep(3)
        second = await restart(servers[1])
        played = await load.wait()
        assert path.exists(), f"the generator wrote no report and ended with status {played}"
        report = json.loads(path.read_text())
    of_pages = await pages(servers, proxy)
    codes = [one.stop() for one in servers]
    claims = [
        ("exit status of the generator", played, played == 0),
        ("peers, and joins that failed", [report["peers"], report["failedJoins"], report.get("firstFailure")], report["peers"] == 50 and report["failedJoins"] == 0),
        ("moves to the other server", report["moves"], report["moves"] == 100),
        ("longest time without media of each of the fifty, ms", [round(one) for one in report["silences"]], len(report["silences"]) == 50),
        ("the same: p50, p95, max", [round(report[f"silence{one}"]) for one in ("P50", "P95", "Max")], report["silenceMax"] < 1000),
        ("seconds that each server drained, exit status", [first, second], first[1] == second[1] == 0 and max(first[0], second[0]) < DRAIN_S),
        ("exit status of those that came after", codes, codes == [0, 0]),
        *of_pages,
    ]
    for what, figure, holds in claims:
        print(f"{'good' if holds else 'BAD '} {what}: {figure}", flush=True)
    return all(holds for *_, holds in claims)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(run()) else 1)
