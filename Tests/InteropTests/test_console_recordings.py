"""Recordings in the operators' tab: begun, watched, downloaded, copied to WebM, played into a room and deleted by a person."""
import asyncio
import hashlib
import re
import urllib.request

import pytest

from conftest import running
from support.chromium import SAME_SIZE, chromium, open_room, until, wait_for_video
from support.tokens import KEY, SECRET
from support.waiting import PATIENCE_S, until_true
from test_backend_page import PAGE

STATE = "document.querySelector('#recordings-list tbody tr')?.cells[5].textContent ?? ''"
VIDEO = "document.getElementById('recording-video')"


@pytest.fixture
def archive(tmp_path):
    with running(development=True, extra=f"recording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n") as server:
        server.recordings = tmp_path / "recordings"
        yield server


async def operator(browser, server, place, **options):
    page = await browser.new_page(bypass_csp=True, **{"viewport": {"width": 1280, "height": 900}, **options})
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    await page.goto(f"{server.url}/{place}")
    return page


def arrived(server, room):
    """What the server has received in a room, by kind and SSRC."""
    people = server.api("GET", f"/v1/rooms/{room}/stats")[1]["participants"]
    return {(track["kind"], layer["ssrc"]): layer for one in people for track in one["tracks"] for layer in track["layers"]}


async def record(page, server, room, files="participant", seconds=3):
    """Begins and ends a recording by the list's buttons, and opens it. Its folder."""
    await until(page, f"[...document.getElementById('recordings-start-room').options].some((one) => one.value === '{room}')")
    await page.select_option("#recordings-start-room", room)
    await page.select_option("#recordings-start-files", files)
    await page.get_by_role("button", name="Start recording").click()
    await until(page, f"{STATE} === 'Recording'")
    (begun,) = server.api("GET", f"/v1/recordings?room={room}")[1]["recordings"]
    # A video's file begins with its first keyframe.
    await until_true(lambda: sum(bool(track["files"]) for track in server.api("GET", f"/v1/recordings/{begun['sid']}")[1]["tracks"]) == 2,
                     PATIENCE_S, "audio and video have a file")
    before = arrived(server, room)
    await asyncio.sleep(seconds)

    def has_come():
        """Packets of 20 ms for so long, and of a layer of eight frames a second more than half."""
        now = arrived(server, room)
        audio, video = [max((layer[name] - before.get(key, {name: 0})[name] for key, layer in now.items() if key[0] == kind), default=0)
                        for kind, name in (("audio", "packetsReceived"), ("video", "framesReceived"))]
        return audio >= 50 * seconds and video >= 5 * seconds

    # A browser that got no processor meanwhile has sent less, and would show less than is wanted.
    await until_true(has_come, PATIENCE_S, f"{seconds} s of audio and video come")
    await page.get_by_role("button", name="Stop").click()
    await until(page, f"{STATE} === 'Ready'")
    await page.click("#recordings-list a.who")
    await until(page, "document.querySelector('#recording-files button')?.disabled === false")
    (folder,) = server.recordings.glob("RM_*/RC_*")
    return folder


def test_a_recording_is_begun_watched_downloaded_copied_played_into_a_room_and_deleted(archive):
    server = archive

    async def run():
        async with chromium() as browser:
            # An encoder that adapts its size may round it off 16:9.
            await open_room(browser, server, "den", "ada", script=SAME_SIZE)
            bob = await open_room(browser, server, "attic", "bob", send="nothing")
            page = await operator(browser, server, "#/recordings?room=den")
            folder = await record(page, server, "den")
            # The tracks' own files go once they are joined.
            await until_true(lambda: len(list(folder.glob("*.mp4"))) == 1, PATIENCE_S, "one file is left")
            (path,) = folder.glob("*.mp4")
            await until(page, "document.querySelectorAll('#recording-files tbody tr').length === 1")
            # It plays to its end, and there is a picture of the size that was sent. The publisher's best layer is recorded, and a browser
            # reaches its largest one late: the size may change on the way, but at the end it is the same, however late one looks.
            asked = []
            page.on("request", lambda request: asked.append(request.url))
            await page.get_by_role("button", name="Watch").click()
            await until(page, f"{VIDEO}.ended && {VIDEO}.currentTime > 1 && {VIDEO}.getVideoPlaybackQuality().totalVideoFrames > 5")
            size = await page.evaluate(f"[{VIDEO}.videoWidth, {VIDEO}.videoHeight]")
            print(f"figures: {path.stat().st_size} bytes, {size}, {await page.evaluate(f'{VIDEO}.duration')} s")
            assert size[0] > 100 and size[0] * 9 == size[1] * 16
            watched = [url for url in asked if "/file?" in url]
            assert watched and all("link=" in url and "access_token" not in url for url in watched)
            async with page.expect_download() as found:
                await page.get_by_role("button", name="Download").click()
            download = await found.value
            assert download.suggested_filename == path.name
            assert hashlib.sha256((await asyncio.to_thread(open, await download.path(), "rb")).read()).digest() == hashlib.sha256(path.read_bytes()).digest()
            # The link alone opens the file for any client; a changed one does not.
            link = watched[-1]
            with urllib.request.urlopen(link) as reply:
                assert reply.read() == path.read_bytes() and int(reply.headers["Content-Length"]) == path.stat().st_size
            assert server.request("GET", link.removeprefix(server.url)[:-4] + "AAAA", None, {})[0] == 401
            # So does what the page for backends says.
            backend = {}
            for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
                exec(compile(block, str(PAGE), "exec"), backend)
            (recording,) = server.api("GET", "/v1/recordings")[1]["recordings"]
            with urllib.request.urlopen(backend["link_to"](backend["Martlet"](server.url, KEY, SECRET), recording)) as reply:
                assert reply.read() == path.read_bytes()
            # A copy for players that show no VP8 in MP4.
            before = await page.evaluate(f"{VIDEO}.currentSrc")
            await page.get_by_role("button", name="Copy it to WebM").click()
            # At idle priority a job may get next to nothing of a busy machine.
            await until(page, "document.querySelector('#recording-jobs .dim')?.textContent.startsWith('ready') ?? false", 2 * PATIENCE_S)
            await page.locator("[aria-label^='Watch JB_']").click()
            await until(page, f"{VIDEO}.currentSrc !== {before!r} && {VIDEO}.ended && {VIDEO}.currentTime > 1 && {VIDEO}.videoWidth === {size[0]}")
            (copy,) = folder.glob("JB_*.webm")
            assert copy.read_bytes().startswith(bytes.fromhex("1a45dfa3")), "EBML"
            # Into another room, where somebody sees it.
            await page.select_option("#recording-play-room", "attic")
            await page.check("#recording-play-loop")
            await page.get_by_role("button", name="Play", exact=True).click()
            await wait_for_video(bob, frames=10)
            await page.get_by_role("button", name="Pause recording").click()
            status, playing = server.api("GET", "/v1/rooms/attic/playbacks")
            await until(page, "document.querySelector('#recording-playbacks b').textContent === 'recording (paused)'")
            (playback,) = server.api("GET", "/v1/rooms/attic/playbacks")[1]["playbacks"]
            assert (playback["state"], playback["loop"], playback["identity"]) == ("paused", True, "recording")
            # By keyboard to another place: the slider's End key is the film's end, Home its beginning.
            await page.focus("#recording-playbacks input[type=range]")
            await page.keyboard.press("Home")
            await until(page, "document.querySelector('#recording-playbacks output').textContent.startsWith('0:00 /')")
            await page.get_by_role("button", name="Stop recording", exact=True).last.click()
            await until(page, "!document.querySelector('#recording-playbacks li')")
            # Deleting asks first, and Escape means no.
            await page.get_by_role("button", name="Delete recording").click()
            await page.keyboard.press("Escape")
            assert path.exists()
            await page.get_by_role("button", name="Delete recording").click()
            await page.click("#ask-confirm")
            await until(page, "location.hash === '#/recordings' && document.getElementById('recordings-none').textContent === 'There is no recording.'")
            assert not path.exists() and server.request("GET", link.removeprefix(server.url), None, {})[0] == 404
            assert page.problems == [] and bob.problems == []

    asyncio.run(run())


def test_what_was_chosen_and_has_left_is_replaced_by_nothing_else(archive):
    """Neither is everybody recorded where one participant was meant, nor another room where the chosen one was closed."""
    server = archive
    what, room = "document.getElementById('recordings-start-what')", "document.getElementById('recordings-start-room')"

    async def run():
        assert server.api("POST", "/v1/rooms", {"name": "attic"})[0] == 201
        async with chromium() as browser:
            ada = await open_room(browser, server, "den", "ada")
            page = await operator(browser, server, "#/recordings?room=den")
            await until(page, f"{room}.value === 'den' && {what}.options.length > 2")
            await page.select_option("#recordings-start-what", label="Only ada")
            await ada.click("#leave")
            await until(page, f"{what}.options.length === 1 && {what}.selectedIndex === -1")
            await page.get_by_role("button", name="Start recording").click()
            assert await page.evaluate(f"{what}.matches(':invalid')")
            server.api("DELETE", "/v1/rooms/den")
            await until(page, f"[...{room}.options].map((one) => one.value).join() === 'attic' && {room}.selectedIndex === -1")
            await page.get_by_role("button", name="Start recording").click()
            assert server.api("GET", "/v1/recordings")[1]["recordings"] == []
            # Nor is it by the first room that is opened after all were closed.
            server.api("DELETE", "/v1/rooms/attic")
            await until(page, f"{room}.options.length === 0")
            assert server.api("POST", "/v1/rooms", {"name": "attic"})[0] == 201
            await until(page, f"{room}.options.length === 1 && {room}.selectedIndex === -1")
            # What a person chooses now is recorded.
            await page.select_option("#recordings-start-room", "attic")
            await page.select_option("#recordings-start-what", "")
            await page.get_by_role("button", name="Start recording").click()
            recorded = lambda: [one["room"] for one in server.api("GET", "/v1/recordings")[1]["recordings"]]
            await until_true(lambda: recorded() == ["attic"], PATIENCE_S, "the other room is recorded")
            assert page.problems == []

    asyncio.run(run())


def test_a_recording_whose_uploads_fail_is_not_just_ready(archive):
    """Its only copies are those on this server."""
    async def run():
        async with chromium() as browser:
            page = await operator(browser, archive, "#/recordings")
            assert await page.evaluate("""import("/console/recordings.js").then(({ stateOf }) => {
                const done = { name: "a.mp4", state: "done", failures: 1 }, queued = { name: "b.mp4", state: "pending", failures: 0 };
                const failing = [{ name: "c.mp4", state: "pending", failures: 3, fault: "access denied" }, { name: "d.mp4", state: "pending", failures: 1 }];
                return [[done, queued], [done, ...failing], failing.slice(1)].map((uploads) => stateOf({ state: "ready", tracks: [], uploads }));
            })""") == ["Ready", "Ready · 2 files not uploaded yet (access denied)", "Ready · 1 file not uploaded yet (the storage does not take it)"]

    asyncio.run(run())


def test_rooms_beyond_the_first_page_of_the_list_can_be_recorded_and_played_into(archive):
    """The page asks for 1,000 rooms; here it gets two, and that there are more."""
    server = archive
    note = "document.querySelector('#{}').textContent.startsWith('These are the first 1,000 rooms by name.')"
    options = "[...document.querySelector('#{}').options].map((one) => one.value).join()"

    async def run():
        for name in ("attic", "bath", "yard", "zoo", "zoo-2"):
            assert server.api("POST", "/v1/rooms", {"name": name})[0] == 201
        status, recording = server.api("POST", "/v1/rooms/zoo/recordings", {})
        assert status == 201, recording
        async with chromium() as browser:
            page = await operator(browser, server, "#/rooms/yard")
            await until(page, "document.querySelector('#members-title').textContent === 'Members of yard'")
            await page.route("**/v1/rooms?limit=1000", lambda route: route.continue_(url=f"{server.url}/v1/rooms?limit=2"))
            # The one whose recordings are shown, and the one that was chosen among the rooms.
            await page.evaluate("location.hash = '#/recordings?room=zoo'")
            await until(page, f"{options.format('recordings-start-room')} === 'attic,bath,yard,zoo' && {note.format('recordings-start-none')}")
            await until(page, "document.querySelector('#recordings-start-room').value === 'zoo'")
            # What is chosen stays as long as the room is open.
            await page.evaluate("location.hash = '#/recordings'")
            await until(page, "document.querySelector('#recordings-room').value === ''")
            for _ in range(2):  # With the second look, the first one is complete.
                async with page.expect_response("**/v1/rooms?limit=1&prefix=zoo", timeout=PATIENCE_S * 1000):
                    pass
            assert await page.evaluate("document.querySelector('#recordings-start-room').value") == "zoo"
            await page.evaluate(f"location.hash = '#/recordings/{recording['sid']}'")
            await until(page, f"{options.format('recording-play-room')} === 'attic,bath,yard,zoo' && {note.format('recording-play-none')}")
            assert server.api("DELETE", "/v1/rooms/zoo")[0] == 200
            await until(page, f"{options.format('recording-play-room')} === 'attic,bath,yard'")
            # All of them on one page: no more is said.
            await page.unroute("**/v1/rooms?limit=1000")
            await until(page, f"{options.format('recording-play-room')} === 'attic,bath,yard,zoo-2' && document.querySelector('#recording-play-none').hidden")
            assert page.problems == []

    asyncio.run(run())
