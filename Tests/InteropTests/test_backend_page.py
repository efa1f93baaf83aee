"""The page for backends: its Python and its JavaScript do what they say."""
import asyncio
import pathlib
import re
import subprocess
import threading
import time

import jwt
import playwright

from conftest import running
from support.server import ROOT
from support.signalling import signal
from support.tokens import KEY, SECRET
from support.waiting import PATIENCE_S

PAGE = ROOT / "Sources/Edges/ControlAPI/ControlAPI.docc/Backends.md"
#: Playwright brings its own, so that none needs to be installed.
NODE = pathlib.Path(playwright.__file__).parent / "driver/node"


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
        end = time.monotonic() + PATIENCE_S
        while not server.api("GET", "/v1/rooms")[1]["rooms"]:
            assert time.monotonic() < end
            time.sleep(0.02)
        asyncio.run(teach(server))
        backend.join(PATIENCE_S)
        assert not backend.is_alive() and server.api("GET", "/v1/rooms")[1]["rooms"] == []
    printed = capfd.readouterr().out.splitlines()
    assert printed[:2] == ["roomStarted ", "participantJoined teacher"] and printed[-1] == "participantLeft teacher", printed


#: As much of the package `jsonwebtoken` as the page uses, and nothing is downloaded.
JSONWEBTOKEN = """
import { createHmac } from "node:crypto";
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
export default {
  sign(payload, secret, { algorithm, issuer, subject, expiresIn }) {
    if (algorithm !== "HS256" || expiresIn !== "1h") throw new Error("another algorithm or time than the page has");
    const now = Math.floor(Date.now() / 1000);
    const signed = `${part({ alg: algorithm, typ: "JWT" })}.${part({ ...payload, iat: now, exp: now + 3600, iss: issuer, sub: subject })}`;
    return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
  },
};
"""


def test_the_javascript_of_the_page_for_backends_makes_a_token_that_joins_and_the_others_set_the_same_claims(tmp_path):
    text = PAGE.read_text()
    (block,) = re.findall(r"```javascript\n(.*?)```", text, re.S)
    package = tmp_path / "node_modules/jsonwebtoken"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
    (package / "index.js").write_text(JSONWEBTOKEN)
    call = f"accessToken({KEY!r}, {SECRET!r}, 'teacher', 'lesson', 'Ada', {{ roomAdmin: true }})"
    (tmp_path / "page.mjs").write_text(f"{block}\nconsole.log({call});\n")
    made = subprocess.run([NODE, tmp_path / "page.mjs"], capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    claims = jwt.decode(made, SECRET, algorithms=["HS256"], issuer=KEY)
    assert (claims["sub"], claims["name"]) == ("teacher", "Ada")
    assert claims["video"] == {"room": "lesson", "roomJoin": True, "roomAdmin": True} and 3_500 < claims["exp"] - time.time() <= 3_600

    async def join(server):
        async with signal(server, made, room="lesson") as teacher:
            assert teacher.joined["participant"]["name"] == "Ada"

    with running() as server:
        asyncio.run(join(server))
    for language, words in {
        "go": ['"iss": key', '"sub": identity', '"exp": time.Now().Add(time.Hour)', '"room": room', '"roomJoin": true', "SigningMethodHS256"],
        "java": ["withIssuer(key)", "withSubject(identity)", "withExpiresAt(", '"room", room', '"roomJoin", true', "HMAC256(secret)"],
        "csharp": ["Issuer = key", '["sub"] = identity', "Expires = ", '["room"] = room', '["roomJoin"] = true', "HmacSha256"],
    }.items():
        (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.S)
        assert [word for word in words if word not in block] == [], language
