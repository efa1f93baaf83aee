"""An operator's session, from the first room to the drain, as a person would do it in the console. It writes a screenshot per step and says what was seen.

    .venv/bin/python Tests/InteropTests/operator_session.py FOLDER [pace]

`pace` is how many seconds the operator watches between two steps: 1 by default, 240 for an hour.
"""
import asyncio
import contextlib
import pathlib
import sys
import time

from support.chromium import SPARING, chromium, open_room, until, wait_for_video
from support.server import Server
from support.tokens import token

NEWEST = "document.querySelector('#events li')?.lastChild.textContent"


class Session:
    def __init__(self, browser, server, folder, pace):
        self.browser, self.server, self.folder, self.pace = browser, server, folder, pace
        self.count, self.started = 0, time.monotonic()

    async def open(self):
        self.page = await self.browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
        self.page.on("pageerror", lambda error: print(f"        the page failed: {error}"))
        await self.page.goto(f"{self.server.url}/#/rooms")

    async def step(self, name, seen=""):
        self.count += 1
        await asyncio.sleep(self.pace)
        await self.page.screenshot(path=self.folder / f"{self.count:02}-{name.replace(' ', '-')}.png", full_page=True)
        print(f"{time.monotonic() - self.started:7.1f} s  {self.count:2}  {name}{f': {seen}' if seen else ''}")

    async def expect(self, expression, within_s=15):
        await until(self.page, expression, within_s)


async def create(s):
    status, room = s.server.api("POST", "/v1/rooms", {"name": "all-hands", "policy": {"maxParticipants": 10, "lockRight": "operators"}})
    assert status == 201
    await s.expect("[...document.querySelectorAll('#rooms .name')].some((one) => one.textContent === 'all-hands')")
    await s.step("create", f"the room {room['sid']} is in the list")


async def watch(s):
    people = [await open_room(s.browser, s.server, "all-hands", name, script=SPARING if s.pace > 10 else None) for name in ("ada", "bob", "carol")]
    for page in people:
        await wait_for_video(page, count=2)
    await s.expect("document.querySelectorAll('#members tbody tr').length === 3")
    await s.expect("/Mbit|kbit/.test(document.querySelector('#room-charts').textContent)")
    await s.step("watch", await s.page.evaluate("[...document.querySelectorAll('#room-charts figcaption')].map((one) => one.textContent).join(' | ')"))
    await s.page.click("#members a.who")
    await s.page.wait_for_selector("#member-charts svg")
    await asyncio.sleep(11)
    await s.step("one participant over time", (await s.page.inner_text("#member-answer")).replace("\n", " ")[:160])
    await s.page.click("#member-back")
    return people


async def edit(s):
    await s.page.click("#edit-policy")
    await s.page.fill("#policy-maxParticipants", "3")
    await s.expect("!document.querySelector('#policy-apply').disabled")
    await s.step("edit with a dry run", (await s.page.inner_text("#policy-impact")).replace("\n", " "))
    await s.page.click("#policy-apply")
    await s.expect("document.querySelector('#policy-done').textContent !== ''")
    await s.page.click("#policy-back")
    await s.expect(f"{NEWEST}.startsWith('The room’s policy was changed') || {NEWEST}.includes('policy was changed')")
    dora = await refused(s, "dora")
    await s.expect(f"{NEWEST}.includes('could not join (room_full)')")
    await s.step("a fourth is refused", dora)


async def lock(s):
    await s.page.click("#lock-room")
    await s.expect(f"{NEWEST} === 'The room was locked.'")
    await s.step("lock", await refused(s, "emil"))
    await s.page.click("#lock-room")
    await s.expect(f"{NEWEST} === 'The room was unlocked.'")


async def refused(s, name):
    """What somebody reads who may not join."""
    page = await s.browser.new_page(bypass_csp=True)
    await page.goto(f"{s.server.url}/?room=all-hands&name={name}&send=nothing&join=1&token={token(name, 'all-hands')}")
    await until(page, "document.querySelector('#join-problem').textContent !== ''")
    words = await page.inner_text("#join-problem")
    await page.close()
    return f"{name} reads “{words}”"


async def kick(s, carol):
    row = s.page.locator("#members tr", has_text="carol")
    await row.get_by_role("button", name="Remove").click()
    await s.step("the question before a kick", await s.page.inner_text("#ask-text"))
    await s.page.click("#ask-confirm")
    await s.expect("document.querySelectorAll('#members tbody tr').length === 2")
    await until(carol, "document.querySelector('#join-problem').textContent !== ''")
    await s.step("kick", f"carol reads “{await carol.inner_text('#join-problem')}”")


async def capture(s, ada):
    status, info = s.server.api("POST", "/v1/rooms/all-hands/participants/ada/captures", {"seconds": 3})
    assert status == 201
    await until(ada, "document.querySelector('#capture').textContent !== ''")
    notice = await ada.inner_text("#capture")
    await s.expect(f"{NEWEST}.includes('capture of ada')", 10)
    place = f"/v1/rooms/all-hands/participants/ada/captures/{info['id']}"
    info = s.server.api("GET", place)[1]
    await s.step("capture", f"{info['packets']} packets; ada reads “{notice}”")
    s.server.api("DELETE", place)


async def move(s, bob):
    status, problem = s.server.api("POST", "/v1/rooms", {"name": "side-room", "beside": "all-hands"})
    assert status == 201, problem
    status, problem = s.server.api("POST", "/v1/rooms/all-hands/participants/bob/move", {"room": "side-room"})
    assert status == 200, problem
    await until(bob, "document.title.includes('side-room')")
    await s.expect("document.querySelectorAll('#members tbody tr').length === 1")
    await s.step("move", f"bob's page says “{await bob.title()}”")


async def drain(s, ada):
    assert s.server.api("POST", "/v1/node/drain", {})[0] in (200, 202)
    await until(ada, "document.querySelector('#drain').textContent !== ''")
    await s.expect("document.querySelector('#operators-drain').textContent !== ''")
    await s.step("drain", f"ada reads “{await ada.inner_text('#drain')}”")
    await s.page.click("text=Past sessions")
    await s.expect("document.querySelector('#sessions-list').textContent.includes('carol')")
    await s.step("past sessions", (await s.page.inner_text("#sessions-list")).replace("\n", " ")[:160])


async def main(folder, pace):
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(development=True, extra="rooms: {allow_captures: true}\n").start()
    try:
        async with chromium() as browser:
            session = Session(browser, server, folder, pace)
            await session.open()
            await create(session)
            ada, bob, carol = await watch(session)
            await edit(session)
            await lock(session)
            await kick(session, carol)
            await capture(session, ada)
            await move(session, bob)
            await drain(session, ada)
            await session.page.set_viewport_size({"width": 390, "height": 800})
            await session.page.click("text=Rooms")
            await session.step("the same on a phone")
    finally:
        with contextlib.suppress(AssertionError):
            print(f"the server ended with {server.stop()}")


if __name__ == "__main__":
    asyncio.run(main(pathlib.Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1))
