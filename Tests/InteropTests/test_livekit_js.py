"""LiveKit's JavaScript SDK as it is, in Chromium and Firefox, beside the Python SDK and Martlet's own page; judged by what is decoded."""
import asyncio
import hashlib
import json

import pytest

from support import livekit_sdk
from support.chromium import chromium, open_room, until, wait_for_video
from support.firefox import firefox
from support.livekit_js import ChromiumPage, FirefoxPage, join, sdk
from support.livekit_sdk import BLUE, GREEN, RED, Client
from support.tokens import token


def shows(identity, colour, frames=10):
    return f"lk.shows({json.dumps(identity)}, {json.dumps(colour)}, {frames})"


async def companion(url, others):
    """The Python SDK in the same room: sees the others and hears one of them, until it is asked to end."""
    py = await Client(url, "py", "js").connect()
    await py.publish_video(BLUE, size=(320, 180))
    await py.publish_audio()
    for identity, colour in others.items():
        await (await py.sees(identity, colour)).more(10)
    # Firefox's tone is silent without a click; its packets are counted by the other page.
    await py.hears("ada")
    # All that the pages wait for, one after the other.
    await livekit_sdk.until(lambda: py.seen("data_received"), "the end is announced", 80)
    await py.close()


@pytest.mark.judging
def test_pages_with_the_sdk_in_chromium_and_firefox_a_python_client_and_martlets_page_see_and_hear_each_other(development_server):
    server = development_server

    async def run():
        async with chromium() as browser, firefox() as fox:
            ada, bob = await ChromiumPage.open(browser, server), await FirefoxPage.open(fox, server)
            await join(ada, server, token("ada", "js"))
            await join(bob, server, token("bob", "js"))
            # Four encoders and sixteen decoders on the machine of the test: sizes that it carries.
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 320, 180)")
            await bob.evaluate(f"lk.publish({json.dumps(GREEN)}, 320, 180)")
            for page in (ada, bob):
                await page.evaluate("lk.tone()")
            watching = asyncio.create_task(asyncio.to_thread(
                livekit_sdk.run, companion, server.url, {"ada": RED, "bob": GREEN}))

            async def look():
                carl = await open_room(browser, server, "js", "carl", send="generated", simulcast=0, token=token("carl", "js"))
                await until(ada, shows("bob", GREEN))
                await until(bob, shows("ada", RED))
                for page, other in ((ada, "bob"), (bob, "ada")):
                    await until(page, shows("py", BLUE))
                    await until(page, f"lk.packets('{other}').then((count) => count > 50)")
                    await until(page, "lk.packets('py').then((count) => count > 50)")
                    await until(page, "lk.sees('carl').then(({ frames }) => frames >= 10)")
                await wait_for_video(carl, 3)
                assert carl.problems == []
                await ada.evaluate("lk.room.localParticipant.publishData(new Uint8Array([1]), { reliable: true, topic: 'end' })")

            looking = asyncio.create_task(look())
            await asyncio.wait({watching, looking}, return_when=asyncio.FIRST_EXCEPTION)
            # Once the companion has failed it is gone, and what the pages miss then is not the reason.
            for task in (watching, looking):
                if task.done():
                    task.result()

    asyncio.run(run())
    print(f"figures: livekit-client {sdk()[1]}")


async def messages(url):
    """The Python side of the data test: what came, and the answers to its calls."""
    py = await Client(url, "py", "data").connect()
    texts, files = [], []

    async def take_text(reader, identity):
        texts.append((identity, await reader.read_all()))

    async def take_file(reader, identity):
        digest, size = hashlib.sha256(), 0
        async for chunk in reader:
            digest.update(chunk)
            size += len(chunk)
        files.append((identity, size, digest.hexdigest()))

    tasks = []
    py.room.register_text_stream_handler("notes", lambda reader, identity: tasks.append(asyncio.create_task(take_text(reader, identity))))
    py.room.register_byte_stream_handler("files", lambda reader, identity: tasks.append(asyncio.create_task(take_file(reader, identity))))

    @py.room.local_participant.register_rpc_method("half")
    async def half(call):
        return str(int(call.payload) // 2)

    await livekit_sdk.until(lambda: "ada" in py.room.remote_participants, "ada is there")
    await py.room.local_participant.publish_data(b"\x07" * 1_000, reliable=True, topic="reliable")

    async def send_lossy():
        # It may be lost: until the end.
        while True:
            await py.room.local_participant.publish_data(b"\x01" * 900, reliable=False, topic="lossy")
            await asyncio.sleep(0.5)

    lossy = asyncio.create_task(send_lossy())
    await py.room.local_participant.send_text("Grüße " * 6_000, topic="notes")
    answer = await py.room.local_participant.perform_rpc(destination_identity="ada", method="double", payload="21")
    await livekit_sdk.until(lambda: texts and files, "ada's text and file", 40)
    await livekit_sdk.until(lambda: py.seen("data_received"), "ada has all")
    lossy.cancel()
    await py.close()
    return texts, files, answer


def test_a_page_and_a_python_client_exchange_data_text_a_file_and_calls(server):
    size = 1_000_000

    async def run():
        async with chromium() as browser:
            ada = await ChromiumPage.open(browser, server)
            await join(ada, server, token("ada", "data"))
            other = asyncio.create_task(asyncio.to_thread(livekit_sdk.run, messages, server.url))
            await until(ada, "['reliable', 'lossy'].every((topic) => lk.data.some((one) => one.topic === topic)) && lk.texts.length === 1")
            came = await ada.evaluate("lk.data")
            got = {one["topic"]: one for one in came}
            assert got.keys() == {"reliable", "lossy"} and [one["topic"] for one in came].count("reliable") == 1
            assert (got["reliable"]["size"], got["reliable"]["sum"], got["reliable"]["from"]) == (1_000, 7_000, "py")
            assert (got["lossy"]["size"], got["lossy"]["sum"]) == (900, 900)
            assert (await ada.evaluate("lk.texts"))[0] == {"identity": "py", "text": "Grüße " * 6_000}
            me = "lk.room.localParticipant"
            assert await ada.evaluate(f"{me}.performRpc({{ destinationIdentity: 'py', method: 'half', payload: '84' }})") == "42"
            await ada.evaluate(f"{me}.sendText('Hallo '.repeat(6000), {{ topic: 'notes' }}).then(() => 0)")
            await ada.evaluate(f"""{me}.sendFile(new File([Uint8Array.from({{ length: {size} }}, (_, i) => (i * 31 + (i >> 9)) & 255)], 'a.bin'),
                {{ topic: 'files' }}).then(() => 0)""")
            await ada.evaluate(f"{me}.publishData(new Uint8Array([1]), {{ reliable: true }})")
            return await other

    texts, files, answer = asyncio.run(run())
    content = bytes((i * 31 + (i >> 9)) & 255 for i in range(size))
    assert texts == [("ada", "Hallo " * 6_000)] and answer == "42"
    assert files == [("ada", size, hashlib.sha256(content).hexdigest())]
