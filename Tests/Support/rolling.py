"""A rolling restart of two servers behind a small proxy, with fifty members in ten rooms: the longest time without media of each.

    rolling.py        exits with 0 when everybody moved twice and nobody was without media for a second; `make rolling`
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
from support.server import Server, free_ports  # noqa: E402
from support.tokens import KEY, SECRET  # noqa: E402

DRAIN_S = 20


class Proxy:
    """Passes each new TCP connection to the first server that is ready, as a load balancer with health checks does."""

    def __init__(self, servers):
        self.servers, self.port = servers, free_ports(1)[0]
        self.ready = list(servers)

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


async def restart(server):
    """SIGTERM, until it has ended by itself, and a new start; how long it drained, and its exit status."""
    started = time.monotonic()
    server.process.terminate()
    code = await asyncio.to_thread(server.process.wait, DRAIN_S + 15)
    drained = time.monotonic() - started
    await asyncio.to_thread(server.start)
    return round(drained, 1), code


async def run():
    servers = [Server(extra=f"sessions: {{drain: {DRAIN_S}}}\n").start() for _ in range(2)]
    proxy = Proxy(servers)
    await proxy.run()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        load = await asyncio.create_subprocess_exec(
            ROOT / ".build/release/loadtest", "run", ROOT / "LoadTests/Scenarios/rolling.json", "--url", f"http://127.0.0.1:{proxy.port}",
            "--key", KEY, "--secret", SECRET, "--server-pid", ",".join(str(one.process.pid) for one in servers), "--follow-drains", "--json", path, "--quiet")
        while servers[0].metric("martlet_participants") < 50:
            await asyncio.sleep(0.2)
        await asyncio.sleep(8)
        first = await restart(servers[0])
        await asyncio.sleep(3)
        second = await restart(servers[1])
        await load.wait()
        report = json.loads(path.read_text())
    codes = [one.stop() for one in servers]
    claims = [
        ("peers, and joins that failed", [report["peers"], report["failedJoins"], report.get("firstFailure")], report["peers"] == 50 and report["failedJoins"] == 0),
        ("moves to the other server", report["moves"], report["moves"] == 100),
        ("longest time without media of each peer, ms: p50, p95, max", [round(report[f"silence{one}"]) for one in ("P50", "P95", "Max")], report["silenceMax"] < 1000),
        ("seconds that each server drained, exit status", [first, second], first[1] == second[1] == 0 and max(first[0], second[0]) < DRAIN_S),
        ("exit status of those that came after", codes, codes == [0, 0]),
    ]
    for what, figure, holds in claims:
        print(f"{'good' if holds else 'BAD '} {what}: {figure}", flush=True)
    return all(holds for *_, holds in claims)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(run()) else 1)
