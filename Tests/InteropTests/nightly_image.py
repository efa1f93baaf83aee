"""The container image: built by podman from Packaging/Containerfile, run as README.md says, and used. Part of `make nightly`; needs root and Debian's
mirror.

    make interop ONLY=nightly_image.py
"""
import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from support.aiortc_client import Client, MovingPicture, Tone
from support.server import ROOT, Server, free_ports
from support.tokens import KEY, SECRET, token

SCRIPT = ROOT / "Tests/Support/image.sh"


class Container(Server):
    """A server that runs in a container, in the machine's network."""

    def start(self):
        settings = {"HTTP_BIND": self.host, "HTTP_PORT": self.http, "PRIVATE_PORT": self.private, "MEDIA_BIND": self.host, "MEDIA_UDP_PORT": self.udp,
                    "MEDIA_WORKERS": self.workers, "KEYS": f"{KEY}:{SECRET}", "SESSIONS_DRAIN": 20}
        options = [word for name, value in settings.items() for word in ("-e", f"MARTLET_{name}={value}")]
        self.process = subprocess.Popen([SCRIPT, "run", f"martlet-{self.http}", *options], stdout=subprocess.DEVNULL, stderr=open(self.log_path, "ab"))
        self._wait_until_ready()
        self.init = self._find()
        return self

    def _find(self):
        """The process that runs the program of the image, which is no child of podman's."""
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            # Others end meanwhile.
            with contextlib.suppress(OSError):
                if (path / "comm").read_text() == "martlet\n" and f"MARTLET_HTTP_PORT={self.http}" in (path / "environ").read_text():
                    return int(path.name)
        raise AssertionError(self.log())


@pytest.fixture(scope="module")
def image():
    """Built once; IMAGE_IS_BUILT=1 takes the one of the run before."""
    if os.environ.get("IMAGE_IS_BUILT"):
        return
    done = subprocess.run([SCRIPT, "build"], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_K5_the_container_file_is_built_by_an_engine_and_its_image_serves_a_call_and_drains(image):
    server = Container(workers=2).start()

    async def run():
        sender = await Client().publish(f"{server.url}/whip/box", token("cam", "box"), MovingPicture(320, 180), Tone())
        player = await Client().play(f"{server.url}/whep/box/cam", token("tv", "box"))
        await player.wait_for_frames(video=15, audio=15)
        # As process 1 of its container, asked to end while somebody is in, and then to end at once.
        server.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 10
        while server.get_private("/readyz")[0] != 503:
            assert time.monotonic() < end
            await asyncio.sleep(0.1)
        before = player.frames["video"]
        await player.wait_for_frames(video=before + 10)
        await player.close()
        await sender.close()

    facts = pathlib.Path(f"/proc/{server.init}/status").read_text()
    assert "\nUid:\t10001\t10001\t10001\t10001\n" in facts and f"\nCapBnd:\t{'0' * 16}\n" in facts and "\nNSpid:" in facts
    assert facts.split("\nNSpid:")[1].split("\n")[0].split()[-1] == "1" and "\nSeccomp:\t2\n" in facts
    root = pathlib.Path(f"/proc/{server.init}/root")
    assert " ro," in next(line for line in pathlib.Path(f"/proc/{server.init}/mountinfo").read_text().splitlines() if line.split()[4] == "/")
    names = {one["name"] for one in json.loads((root / "usr/share/doc/martlet/martlet.spdx.json").read_text())["packages"]}
    assert {"martlet", "libssl3", "swift"} <= names
    asyncio.run(run())
    assert server.process.wait(30) == 0, server.log()


def test_K2_a_second_SIGTERM_ends_the_containers_process_1_at_once(image):
    server = Container().start()

    async def run():
        async with asyncio.timeout(60):
            sender = await Client().publish(f"{server.url}/whip/box", token("cam", "box"), Tone())
            await sender.connected()
            server.process.send_signal(signal.SIGTERM)
            while server.get_private("/readyz")[0] != 503:
                await asyncio.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            # The kernel keeps the signal's own effect from process 1, so this is the program's.
            assert await asyncio.to_thread(server.process.wait, 10) == 128 + signal.SIGTERM, server.log()
            await sender.close()

    asyncio.run(run())
