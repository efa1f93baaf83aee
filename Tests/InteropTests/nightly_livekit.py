"""LiveKit's SDKs, Python and JavaScript: what takes longer than `make test` has. Run by name and at night."""
import asyncio
import hashlib
import json
import os
import signal
import threading
import time

import pytest

from nightly_livekit_js import page_of
from support import livekit_sdk
from support.chromium import until
from support.livekit_js import join
from support.livekit_sdk import BLUE, GREEN, RED, Client
from support.network import SERVER_ADDRESS, Lab, inside
from support.server import Server
from support.tokens import token

FILE_BYTES = int(os.environ.get("FILE_BYTES", 50_000_000))


def content(seed):
    """A file's bytes, which follow from their places, a block at a time."""
    block = hashlib.sha256(seed.encode()).digest() * 512
    for start in range(0, FILE_BYTES, len(block)):
        yield (start.to_bytes(8, "big") + block[8:])[:FILE_BYTES - start]


def digest(seed):
    whole = hashlib.sha256()
    for block in content(seed):
        whole.update(block)
    return whole.hexdigest()


async def send_and_take(url, identity, sender, senders, single):
    """One Python client: sends a file if it is `sender`, and takes those of the others; their digests by sender."""
    client = await Client(url, identity, "files", single=single).connect()
    found, tasks = {}, []

    async def take(reader, who):
        whole = hashlib.sha256()
        async for chunk in reader:
            whole.update(chunk)
        found[who] = whole.hexdigest()

    client.room.register_byte_stream_handler("files", lambda reader, who: tasks.append(asyncio.create_task(take(reader, who))))
    # What is sent before a receiver's channels are open does not reach it, so each says again and again how many of the others it has heard: as many bytes, and one.
    def heard(least):
        return {packet.participant.identity for (packet,) in client.seen("data_received") if packet.topic == "here" and len(packet.data) >= least}

    async def say():
        while True:
            await client.room.local_participant.publish_data(bytes(1 + len(heard(1))), topic="here")
            await asyncio.sleep(0.5)

    tasks.append(asyncio.create_task(say()))
    await livekit_sdk.until(lambda: len(heard(3)) == 2, "each hears both others", 60)
    if identity == sender:
        writer = await client.room.local_participant.stream_bytes("file", total_size=FILE_BYTES, topic="files")
        for block in content(identity):
            await writer.write(block)
        await writer.aclose()
    wanted = set(senders) - {identity}
    await livekit_sdk.until(lambda: set(found) == wanted, f"{identity} has the files of {wanted}", 400)
    # The others may still be receiving.
    await client.room.local_participant.publish_data(b"done", topic="done")
    await livekit_sdk.until(
        lambda: len({packet.participant.identity for (packet,) in client.seen("data_received") if packet.topic == "done"}) == 2,
        "all have everything", 400)
    await client.close()
    return found


@pytest.mark.parametrize("kind, single", [("chromium", True), ("chromium", False), ("firefox", True)], ids=["v1", "v0", "firefox"])
def test_a_file_of_50_MB_arrives_whole_at_a_page_and_at_a_python_client_and_one_of_the_page_at_both(development_server, kind, single):
    """Two files at once, from Python and from a page, to the two others each; equal digests."""
    server = development_server

    async def run():
        async with page_of(kind, server) as page:
            await join(page, server, token("page", "files"))
            await page.evaluate("""lk.room.registerByteStreamHandler("files", async (reader, { identity }) => {
                const parts = [];
                for await (const chunk of reader) parts.push(chunk);
                const digest = await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer());
                lk.digest = [identity, [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")];
            }), 0""")
            clients = [asyncio.create_task(asyncio.to_thread(
                livekit_sdk.run, send_and_take, server.url, name, "ada", ["ada", "page"], single, seconds=600)) for name in ("ada", "bob")]
            me = "lk.room.localParticipant"
            await page.evaluate(f"""lk.heard = (least) => new Set(lk.data.filter(({{ topic, size }}) => topic === "here" && size >= least).map(({{ from }}) => from)).size,
                setInterval(() => void {me}.publishData(new Uint8Array(1 + lk.heard(1)), {{ reliable: true, topic: "here" }}), 500)""")
            await until(page, "lk.heard(3) === 2", 60)
            block = list(hashlib.sha256(b"page").digest())
            await page.evaluate(f"""void (async () => {{
                const whole = new Uint8Array({FILE_BYTES}), block = {json.dumps(block)};
                for (let i = 0; i < whole.length; i++) whole[i] = block[i % 32];
                const size = 32 * 512, view = new DataView(whole.buffer);
                for (let start = 0; start + 8 <= whole.length; start += size) {{ view.setUint32(start, 0); view.setUint32(start + 4, start); }}
                await {me}.sendFile(new File([whole], "file"), {{ topic: "files" }});
                lk.sent = true;
            }})(), 0""")
            await until(page, "!!lk.digest && !!lk.sent", 400)
            assert await page.evaluate("lk.digest") == ["ada", digest("ada")]
            await page.evaluate(f"{me}.publishData(new Uint8Array([1]), {{ reliable: true, topic: 'done' }}).then(() => 0)")
            ada, bob = await asyncio.gather(*clients)
            assert ada == {"page": digest("page")}
            assert bob == {"ada": digest("ada"), "page": digest("page")}

    asyncio.run(run())


async def pair(url, *, single=True, **options):
    """Ada and bob, who see each other; their eyes for each other's pictures."""
    ada = await Client(url, "ada", single=single).connect(**options)
    bob = await Client(url, "bob", single=single).connect(**options)
    await ada.publish_video(RED, size=(640, 360))
    await bob.publish_video(GREEN, size=(640, 360))
    return ada, bob, await bob.sees("ada"), await ada.sees("bob", GREEN)


async def restarted(url, single):
    """The server is killed once both see each other, and starts again: both join anew, and publish again what they published."""
    ada, bob, eye, back = await pair(url, single=single)
    await eye.more(10)
    await back.more(10)
    for client in (ada, bob):
        await livekit_sdk.until(lambda: client.seen("reconnecting"), f"{client.identity} notices", 60)
        client.eyes.clear()
    for client in (ada, bob):
        await livekit_sdk.until(lambda: client.seen("reconnected"), f"{client.identity} is back", 60)
    await (await bob.sees("ada", seconds=40)).more(20, 60)
    await (await ada.sees("bob", GREEN, seconds=40)).more(20, 60)
    assert not ada.seen("disconnected") and not bob.seen("disconnected")
    await ada.close()
    await bob.close()


def once(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not after {seconds} s: {what}"
        time.sleep(0.2)


def receives(server, identity):
    """How many videos a participant receives."""
    status, body = server.api("GET", f"/v1/rooms/r/participants/{identity}")
    return 0 if status != 200 else sum(one["state"] == "active" and one["kind"] == "video" for one in body["subscriptions"])


@pytest.mark.parametrize("single", [True, False], ids=["v1", "v0"])
def test_both_see_each_other_again_after_the_server_was_killed_and_started_again(single):
    server = Server().start()
    failures = []

    def scenario():
        try:
            livekit_sdk.run(restarted, server.url, single, seconds=180)
        except AssertionError as error:
            failures.append(error)

    try:
        child = threading.Thread(target=scenario)
        child.start()
        once(lambda: receives(server, "ada") == 1 and receives(server, "bob") == 1, "both receive a video")
        time.sleep(3)
        server.kill()
        time.sleep(1)
        server.start()
        child.join()
        assert not failures, failures[0]
    finally:
        server.stop()


async def cut_off(url, namespace, single):
    """A client behind a link that is cut for some seconds: what the others send arrives again, and what it sends."""
    with inside(namespace):
        ada, bob, eye, back = await pair(url, single=single)
        await eye.more(10)
        await back.more(10)
        print("ready", flush=True)
        # The link is cut by now, or soon.
        while True:
            before = eye.frames
            await asyncio.sleep(1.5)
            if eye.frames == before:
                break
        started = time.monotonic()
        await livekit_sdk.until(lambda: bob.eye_of("ada") and bob.eye_of("ada").frames > before + 20, "bob sees ada again", 60)
        await livekit_sdk.until(lambda: ada.eye_of("bob").shows(GREEN), "ada sees bob again", 60)
        await (ada.eye_of("bob")).more(20, 60)
        await bob.room.local_participant.publish_data(b"after", topic="after")
        await livekit_sdk.until(lambda: ada.seen("data_received"), "and data arrives", 20)
        seconds = time.monotonic() - started
        await ada.close()
        await bob.close()
        return seconds


@pytest.mark.parametrize("single", [True, False], ids=["v1", "v0"])
@pytest.mark.parametrize("seconds", [4, 12])
def test_media_and_data_go_on_after_a_network_that_was_away(single, seconds):
    """Both clients behind one link without any network for 4 s (media comes back by itself), and for 12 s."""
    with Lab("mlk", 1, "both", "delay", 10) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
        try:
            found = []
            child = threading.Thread(target=lambda: found.append(livekit_sdk.run(cut_off, server.url, lab.client(1), single, seconds=240)))
            child.start()
            with inside(lab.server):
                once(lambda: receives(server, "ada") == 1 and receives(server, "bob") == 1, "both receive a video")
            time.sleep(3)
            with lab.cut(1):
                time.sleep(seconds)
            child.join()
            assert found, "the scenario failed: its report is above"
            print(f"figures: {found[0]:.1f} s from the last picture to all of it again")
        finally:
            server.stop()


async def encrypted(url, single):
    """End-to-end encrypted: who has the key sees both ways and reads what is sent, who has another key sees nothing."""
    from livekit import rtc

    def options(key):
        return {"encryption": rtc.E2EEOptions(key_provider_options=rtc.KeyProviderOptions(shared_key=key))}

    ada, bob, eye, back = await pair(url, single=single, **options(b"one key"))
    for client in (ada, bob):
        await client.publish_audio()
    await eye.more(30)
    await back.more(30)
    await bob.hears("ada")
    await ada.hears("bob")
    carl = await Client(url, "carl", single=single).connect(**options(b"another key"))
    await carl.publish_video(BLUE, size=(640, 360))
    await livekit_sdk.until(lambda: carl.room.remote_participants["ada"].track_publications, "carl knows ada's track")
    await asyncio.sleep(5)
    assert not any(one.shows(RED) or one.shows(GREEN) for one in carl.eyes.values()), "carl's key opens nothing"
    assert not any(one.level > 500 for one in carl.ears.values()), {key: one.level for key, one in carl.ears.items()}
    assert not any(one.shows(BLUE) for one in (*ada.eyes.values(), *bob.eyes.values()))
    assert all(publication.encryption_type != 0 for publication in bob.room.remote_participants["ada"].track_publications.values())
    for writer, reader in ((ada, bob), (bob, ada)):
        await writer.room.local_participant.publish_data(b"secret", topic="e2ee")
        await livekit_sdk.until(lambda: reader.seen("data_received"), f"{reader.identity} reads it")  # noqa: B023: the loop waits for it
        assert bytes(reader.seen("data_received")[0][0].data) == b"secret"
    assert not any(bytes(packet.data) == b"secret" for (packet,) in carl.seen("data_received"))
    for client in (ada, bob, carl):
        await client.close()


@pytest.mark.parametrize("single", [True, False], ids=["v1", "v0"])
def test_end_to_end_encrypted_media_and_data_go_both_ways_and_to_nobody_else(server, single):
    livekit_sdk.run(encrypted, server.url, single, seconds=120)


async def announced(url, single):
    """What the server reports by itself: a fresh token at once, who speaks and who does not any more, and how the network is."""
    from livekit import rtc
    ada, bob, eye, _ = await pair(url, single=single)
    await livekit_sdk.until(lambda: ada.seen("token_refreshed"), "ada has a fresh token")
    published = await ada.publish_audio()
    await livekit_sdk.until(
        lambda: any("ada" in [one.identity for one in speakers] for (speakers,) in bob.seen("active_speakers_changed")), "ada speaks")
    published.track.mute()

    def speaking():
        (speakers,) = bob.seen("active_speakers_changed")[-1]
        return [one.identity for one in speakers]

    try:
        await livekit_sdk.until(lambda: "ada" not in speaking(), "ada is silent", 20)
    except AssertionError as error:
        raise AssertionError(f"{error}: {[[one.identity for one in speakers] for (speakers,) in bob.seen('active_speakers_changed')]}") from None
    await livekit_sdk.until(
        lambda: any(quality == rtc.ConnectionQuality.QUALITY_EXCELLENT and person.identity == "bob"
                    for person, quality in ada.seen("connection_quality_changed")), "bob's network is reported", 30)
    await eye.more(10)
    await ada.close()
    await bob.close()


@pytest.mark.parametrize("single", [True, False], ids=["v1", "v0"])
def test_a_fresh_token_speakers_and_the_quality_of_networks_are_announced(server, single):
    livekit_sdk.run(announced, server.url, single, seconds=90)


async def leave_without_a_word(url, single):
    """Publishes until it is killed."""
    eve = await Client(url, "eve", single=single).connect()
    await eve.publish_video(BLUE, size=(320, 180))
    await eve.sees("ada", seconds=60)
    await livekit_sdk.until(lambda: eve.seen("data_received"), "ada sees eve, too", 60)
    os.kill(os.getpid(), signal.SIGKILL)


async def left_behind(url, single):
    ada = await Client(url, "ada", single=single).connect()
    await ada.publish_video(RED, size=(320, 180))
    await ada.sees("eve", BLUE, seconds=60)
    await ada.room.local_participant.publish_data(b"seen", topic="seen")
    await livekit_sdk.until(lambda: ada.seen("participant_disconnected"), "eve is gone", 90)
    await ada.close()


@pytest.mark.parametrize("single", [True, False], ids=["v1", "v0"])
def test_others_learn_that_a_killed_client_left(server, single):
    found = []
    child = threading.Thread(target=lambda: found.append(livekit_sdk.run(left_behind, server.url, single, seconds=180)))
    child.start()
    with pytest.raises(AssertionError, match="the SDK ended its process"):
        livekit_sdk.run(leave_without_a_word, server.url, single, seconds=90)
    child.join()
    assert found, "ada was not notified"
