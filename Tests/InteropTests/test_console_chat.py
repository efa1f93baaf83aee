"""Chat and files on the console page."""
import asyncio

from support.chromium import chromium, join_by_form, open_room, until
from support.tokens import token

LOG = "document.querySelector('#chat-log').innerText"


def test_people_chat_and_send_files_whatever_they_publish(development_server, tmp_path):
    """A member without a peer connection chats, too; what is unread is counted; texts and names are text; a file arrives byte for byte, one over the limit is refused."""
    server = development_server
    content = bytes((i * 31) & 255 for i in range(300_000))
    small, large = tmp_path / "<b>notes.html", tmp_path / "film.mp4"
    small.write_bytes(content)
    with large.open("wb") as file:
        file.truncate(30_000_000)

    async def run():
        # A browser that was launched for the test reads a file by its path; the shared one would be sent all 30 MB of it.
        async with chromium(shared=False) as browser:
            ada = await join_by_form(browser, server, "chat", "Ada <i>")
            bob = await join_by_form(browser, server, "chat", "Bob", send="nothing")
            await until(ada, "martlet.room.room.participants.size === 1")
            await bob.click("#chat-open")
            await bob.fill("#chat-text", "<img src=x onerror=alert(1)> Hello")
            await bob.press("#chat-text", "Enter")
            await until(ada, "document.querySelector('#chat-unread').textContent === '1'")
            assert await ada.is_hidden("#chat")
            assert await ada.text_content("#chat-news") == "Bob: <img src=x onerror=alert(1)> Hello", "whoever listens does not see the count"
            # What is written while a message is sent is the next one's; what was not sent is there again.
            await bob.evaluate("void (martlet.room.room.send = () => new Promise((_, reject) => { window.fail = () => reject(new Error('Not sent.')); }))")
            for after in ("", "next"):
                await bob.fill("#chat-text", "first")
                await bob.press("#chat-text", "Enter")
                assert await bob.input_value("#chat-text") == ""
                await bob.fill("#chat-text", after)
                await bob.evaluate("fail()")
                await until(bob, "document.querySelector('#chat-problem').textContent === 'Not sent.'")
                assert await bob.input_value("#chat-text") == (after or "first")
            await bob.evaluate("void (delete martlet.room.room.send)")
            await bob.fill("#chat-text", "")
            await until(bob, f"{LOG}.includes('Hello')")
            await ada.click("#chat-open")
            await until(ada, "document.querySelector('#chat-unread').textContent === ''")
            assert await ada.text_content("#chat-news") == ""
            assert await ada.evaluate("document.querySelector('#chat-log li p:last-child').textContent") == "<img src=x onerror=alert(1)> Hello"
            assert await ada.evaluate("document.querySelectorAll('#chat-log img').length") == 0
            await ada.set_input_files("#chat-file", small)
            await until(bob, "document.querySelector('#chat-log .file a') !== null")
            await until(ada, f"{LOG}.includes('Received by 1 person')")
            assert "Ada <i>" in await bob.evaluate(LOG) and "300 kB" in await bob.evaluate(LOG)
            async with bob.expect_download() as download:
                await bob.click("#chat-log .file a")
            file = await download.value
            assert (tmp_path / "got").write_bytes(content) and (await file.path()).read_bytes() == content
            await ada.set_input_files("#chat-file", large)
            problem = "“film.mp4” has 30.0 MB. A file may have at most 25.0 MB; nothing was sent."
            await until(ada, f"document.querySelector('#chat-problem').textContent === '{problem}'")
            await bob.click("#chat-close")
            assert await bob.evaluate("document.activeElement.id") == "chat-open"
            mute = await open_room(browser, server, "chat", "mute", send="nothing", token=token("mute", "chat", canPublishData=False))
            await mute.click("#chat-open")
            assert await mute.is_disabled("#chat-text") and await mute.is_disabled("#chat-pick")

            # The room's rules, and what somebody is permitted, change while people write.
            async def patch(path, body):
                assert (await asyncio.to_thread(server.api, "PATCH", f"/v1/rooms/chat/{path}", body))[0] == 200

            await patch("policy", {"allowMessages": False})
            await until(bob, "document.querySelector('#chat-text').disabled")
            assert await bob.get_attribute("#chat-text", "placeholder") == "Nobody may write in this room now"
            await patch("policy", {"allowMessages": None})
            await until(bob, "!document.querySelector('#chat-text').disabled")
            members = (await asyncio.to_thread(server.api, "GET", "/v1/rooms/chat"))[1]["participants"]
            sid = next(one["sid"] for one in members if one["name"] == "Bob")
            await patch(f"participants/{sid}", {"permissions": {"canPublishData": False}})
            await until(bob, "document.querySelector('#chat-text').placeholder === 'You may only read here'")
            assert not ada.problems and not bob.problems and not mute.problems

    asyncio.run(run())


def test_escape_closes_the_chat_but_not_while_it_takes_a_composition_back(server):
    escape = "document.querySelector('#chat-text').dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Escape', bubbles: true, {} }}))"

    async def run():
        async with chromium() as browser:
            page = await open_room(browser, server, "composed", "ada", send="nothing")
            await page.click("#chat-open")
            # The second is Safari's, which has ended the composition by then.
            for composing in ("isComposing: true", "keyCode: 229"):
                await page.evaluate(escape.format(composing))
                assert await page.is_visible("#chat"), composing
            await page.evaluate(escape.format("keyCode: 27"))
            assert not await page.is_visible("#chat") and not page.problems

    asyncio.run(run())


def test_names_and_messages_are_shown_in_the_direction_of_their_script(server):
    direction = "getComputedStyle(document.querySelector({of!r})).direction"
    said = "[...document.querySelectorAll('#chat-log li > p:last-child')].map((one) => `${getComputedStyle(one).direction} ${one.textContent}`).join('|')"

    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "\u05d7\u05d3\u05e8 1", "\u05e2\u05d3\u05d4", send="nothing")
            bob = await open_room(browser, server, "\u05d7\u05d3\u05e8 1", "Bob", send="nothing")
            await until(bob, "document.querySelector('.tile:not(.own) .name b') !== null")
            found = [await bob.evaluate(direction.format(of=of)) for of in (".tile:not(.own) .name b", ".tile.own .name b", "#room-title")]
            assert found == ["rtl", "ltr", "rtl"]
            for page, text in ((ada, "\u05e9\u05dc\u05d5\u05dd, Bob!"), (bob, "Hello.")):
                await page.click("#chat-open")
                await page.fill("#chat-text", text)
                assert await page.evaluate(direction.format(of="#chat-text")) == ("rtl" if page is ada else "ltr")
                await page.press("#chat-text", "Enter")
                await until(bob, f"document.querySelector('#chat-log').textContent.includes({text!r})")
            expected = "rtl \u05e9\u05dc\u05d5\u05dd, Bob!|ltr Hello."
            for page in (ada, bob):
                await until(page, f"{said} === {expected!r}")
            assert not ada.problems and not bob.problems

    asyncio.run(run())
