"""The page for backends: its Python does what it says."""
import asyncio
import re
import threading
import time

from conftest import running
from support.server import ROOT
from support.signalling import signal
from support.tokens import KEY, SECRET

PAGE = ROOT / "Sources/Edges/ControlAPI/ControlAPI.docc/Backends.md"


def test_the_python_of_the_page_for_backends_mints_creates_watches_and_ends(capfd):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 4
    page = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), page)

    async def teach(server):
        token = page["access_token"](KEY, SECRET, "teacher", "lesson", name="Ada")
        async with signal(server, token, room="lesson") as teacher:
            assert teacher.joined["participant"]["name"] == "Ada"
            async with signal(server, page["pupil_token"](KEY, SECRET, "pupil 7", "lesson"), room="lesson"):
                pupil = server.api("GET", "/v1/rooms/lesson/participants/pupil%207")[1]
                assert [rule.get("participant") for rule in pupil["subscribeRules"]] == [None, "teacher"], pupil
            await teacher.request("leave")

    with running() as server:
        backend = threading.Thread(target=page["lesson"], args=[page["Martlet"](server.url, KEY, SECRET)], daemon=True)
        backend.start()
        end = time.monotonic() + 10
        while not server.api("GET", "/v1/rooms")[1]["rooms"]:
            assert time.monotonic() < end
            time.sleep(0.02)
        asyncio.run(teach(server))
        backend.join(10)
        assert not backend.is_alive() and server.api("GET", "/v1/rooms")[1]["rooms"] == []
    printed = capfd.readouterr().out.splitlines()
    assert printed[:2] == ["roomStarted ", "participantJoined teacher"] and printed[-1] == "participantLeft teacher", printed
