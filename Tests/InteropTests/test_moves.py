"""Participants who are moved to another room, on the connections that they have."""
import asyncio
import contextlib
import json
import time

from livekit.protocol import rtc
import pytest

from conformance import livekit_rtc
from conftest import running
from support import livekit_sdk
from support.chromium import REMOTES, SPARING, chromium, open_room, stands_still, until, wait_for_video
from support.livekit_js import ChromiumPage, join
from support.livekit_sdk import GREEN, RED, Client
from support.raw_page import raw_member
from support.tokens import KEY, SECRET, token
from support.waiting import PATIENCE_S
from test_limits import publish

#: Publishes a picture on "pub", and answers what the server offers on "sub".
PUBLISH = """async () => {
    raw.pub = new RTCPeerConnection();
    raw.pub.addTransceiver(raw.picture(), { direction: "sendonly" });
    raw.receive();
    return raw.offer("pub", raw.pub);
}"""
FRAMES = "() => raw.sub ? raw.frames(raw.sub, 'video') : 0"
EVENTS = "(type) => raw.events.filter((event) => event.type === type)"


async def more_frames(page, count, what, seconds=PATIENCE_S):
    """Waits until the page has decoded so many more frames of video. Those of a section that has ended are not counted any more."""
    before = await page.evaluate(FRAMES)
    deadline = time.monotonic() + seconds
    while (now := await page.evaluate(FRAMES)) < before + count:
        before = min(before, now)
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        await page.wait_for_timeout(20)


def test_I8_a_participant_moves_to_another_room_and_its_video_with_it():
    async def run(server):
        assert server.api("POST", "/v1/rooms", {"name": "hall"})[0] == 201
        assert server.api("POST", "/v1/rooms", {"name": "booth", "beside": "hall"})[0] == 201
        async with chromium() as browser:
            ada, bob = [await raw_member(browser, server, "hall", name) for name in ("ada", "bob")]
            carl = await raw_member(browser, server, "booth", "carl")
            for page in (ada, bob, carl):
                assert (await page.evaluate(PUBLISH))["type"] == "answer"
            await more_frames(bob, 10, "bob sees ada")
            await more_frames(ada, 10, "ada sees bob")
            assert await carl.evaluate(FRAMES) == 0

            begun = time.monotonic()
            status, moved = server.api("POST", "/v1/rooms/hall/participants/ada/move", {"room": "booth"})[:2]
            assert status == 200 and moved["identity"] == "ada" and len(moved["tracks"]) == 1
            await more_frames(carl, 10, "carl sees ada")
            print(f"figures: ten frames in the other room {time.monotonic() - begun:.2f} s after the request")
            await more_frames(ada, 10, "ada sees carl")
            # Of bob's last frames some may be decoded after the move.
            await until(ada, "raw.events.some((event) => event.type === 'moved')")
            told = await ada.evaluate(EVENTS, "moved")
            assert [event["room"]["name"] for event in told] == ["booth"]
            assert [one["identity"] for one in told[0]["participants"]] == ["carl"]
            await until(bob, "raw.events.some((event) => event.type === 'participantLeft')")
            left = await bob.evaluate(EVENTS, "participantLeft")
            assert [(one["identity"], one["reason"]) for one in left] == [("ada", "moved")]
            await stands_still(lambda: bob.evaluate(FRAMES))
            # The same two connections, which nobody restarted.
            states = [one["state"] for one in await ada.evaluate(EVENTS, "connection")]
            assert states == ["connected", "connected"], states
            assert await ada.evaluate("[raw.pub.connectionState, raw.sub.connectionState]") == ["connected", "connected"]
            assert (await ada.evaluate("raw.request('ping')"))["type"] == "pong"

            # The console's page, which uses the module: it shows the other room, and who is there.
            eve = await open_room(browser, server, "hall", "eve")
            await wait_for_video(eve)
            assert server.api("POST", "/v1/rooms/hall/participants/eve/move", {"room": "booth"})[0] == 200
            await until(eve, "document.getElementById('room-title').textContent === 'booth'")
            await until(eve, "[...martlet.room.room.participants.values()].map((one) => one.identity).sort().join() === 'ada,carl'")
            await wait_for_video(eve, 2)
            assert eve.problems == []

            assert server.api("POST", "/v1/rooms/booth/participants/ada/move", {"room": "hall"})[0] == 200
            await more_frames(bob, 10, "bob sees ada again")
            await more_frames(ada, 10, "ada sees bob again")

    with running() as server:
        asyncio.run(run(server))


#: Frames that the console's page has decoded of each other's video, by identity.
SEEN = """martlet.received().then((all) => {
    const frames = {};
    for (const { kind, mid, framesDecoded } of all) {
        const sid = kind === "video" && martlet.room.receiving.tracks.get(mid);
        const other = [...martlet.room.room.participants.values()].find((one) => one.publications.has(sid));
        if (other) frames[other.identity] = (frames[other.identity] ?? 0) + framesDecoded;
    }
    return frames;
})"""
#: Counts the page's moves.
COUNT_MOVES = "window.moves = 0, martlet.room.room.on('moved', () => { moves += 1; }), 0"
MOVED = "document.getElementById('room-title').textContent === '{room}' && moves === {moves}"
#: Requests of the page stay where they are from now on, and it reads no events: until `socket.close()`, after which it resumes.
DEAF = """(() => {
    const { signal, publishing } = martlet.room;
    signal.socket.send = signal.socket.onmessage = () => {};
    publishing.offer({ iceRestart: true }).catch(() => {});
})()"""


async def all_see_each_other(pages):
    """Waits until each of these pages, by identity, has decoded ten more frames of each other's video, and receives nobody else's."""
    async def look(name):
        others, seen = pages.keys() - {name}, None
        deadline = time.monotonic() + PATIENCE_S
        while True:
            now = await pages[name].evaluate(SEEN)
            if now.keys() == others:
                seen = seen or now
                if all(now[other] >= seen[other] + 10 for other in others):
                    return
            assert time.monotonic() < deadline, f"{name} sees {now}, not ten frames more than {seen} of {others}"
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(look, pages))


async def moved(page, room, moves):
    """Waits until the page shows that it was moved so many times in all, the last time to `room`."""
    await until(page, MOVED.format(room=room, moves=moves))


async def port(page):
    """Where both of the page's connections lead: to one port, for a room is on one media worker."""
    await until(page, f"{REMOTES}.then((all) => all.length === 2)")
    remotes = set(await page.evaluate(REMOTES))
    assert len(remotes) == 1, remotes
    return remotes.pop()


async def problems_are_only_moves(pages, **rooms):
    """Of each page that was moved its problem is the room that it was moved to, and the others have none."""
    for name, page in pages.items():
        expected = f"You were moved to the room {rooms[name]}." if name in rooms else ""
        assert await page.evaluate("document.getElementById('room-problem').textContent") == expected and page.problems == [], name


def move(server, name, room, other):
    status, answer = server.api("POST", f"/v1/rooms/{room}/participants/{name}/move", {"room": other})[:2]
    assert status == 200, answer
    return answer


async def move_two_in_a_row(server, pages):
    """Ada and, directly after, bob: from `hall`, where dan stays, to `far`, where carl is alone."""
    ada, bob, carl, dan = pages.values()
    # Carl receives nothing yet: his only connection is the one that he publishes on.
    await until(carl, f"{REMOTES}.then((all) => all.length === 1)")
    far, hall = (await carl.evaluate(REMOTES))[0], await port(ada)
    assert far != hall, "both rooms are on one media worker"
    sids = [await page.evaluate("martlet.room.self.sid") for page in (ada, bob)]
    begun = time.monotonic()
    assert [move(server, name, "hall", "far")["sid"] for name in ("ada", "bob")] == sids
    for page in (ada, bob):
        await moved(page, "far", 1)
    await all_see_each_other({name: pages[name] for name in ("ada", "bob", "carl")})
    print(f"figures: ten frames (4 a second) of six videos in the room of the other worker {time.monotonic() - begun:.2f} s after the first request")
    assert [await port(page) for page in (ada, bob, carl)] == [far] * 3
    assert [await page.evaluate("martlet.room.self.sid") for page in (ada, bob)] == sids
    await until(dan, "document.querySelectorAll('.tile:not(.own)').length === 0")
    await problems_are_only_moves(pages, ada="far", bob="far")


async def move_there_and_back(server, pages):
    """Ada to `hall` and back to `far`, so soon that the page has hardly begun to connect there."""
    move(server, "ada", "far", "hall")
    move(server, "ada", "hall", "far")
    await moved(pages["ada"], "far", 3)
    await all_see_each_other({name: pages[name] for name in ("ada", "bob", "carl")})
    assert await port(pages["ada"]) == await port(pages["carl"])
    await problems_are_only_moves(pages, ada="far", bob="far")


async def move_while_the_socket_is_cut(server, pages):
    """Ada to `hall`, where dan is: she learns of it when she resumes, and has an offer of her former connection that nobody answered."""
    ada = pages["ada"]
    session = await ada.evaluate("martlet.room.signal.session")
    await ada.evaluate(DEAF)
    await until(ada, "[...martlet.room.signal.waiting.values()].some(({ message }) => message.type === 'offer')")
    move(server, "ada", "far", "hall")
    await ada.evaluate("martlet.room.signal.socket.close()")
    await moved(ada, "hall", 4)
    await all_see_each_other({name: pages[name] for name in ("ada", "dan")})
    await all_see_each_other({name: pages[name] for name in ("bob", "carl")})
    assert await ada.evaluate("martlet.room.signal.session") == session
    assert await port(ada) == await port(pages["dan"]) != await port(pages["bob"])
    await problems_are_only_moves(pages, ada="hall", bob="far")


@pytest.mark.at_night
def test_I8_a_participant_moves_to_a_room_of_another_media_worker_by_connecting_anew():
    """The console's page, which uses the module: in the same session it leaves one worker's port for the other's, and publishes again."""
    async def run(server):
        async with chromium() as browser:
            pages = {name: await open_room(browser, server, room, name, script=SPARING)
                     for name, room in (("ada", "hall"), ("bob", "hall"), ("carl", "far"), ("dan", "hall"))}
            for page in pages.values():
                await page.evaluate(COUNT_MOVES)
            await all_see_each_other({name: pages[name] for name in ("ada", "bob", "dan")})
            await move_two_in_a_row(server, pages)
            await move_there_and_back(server, pages)
            await move_while_the_socket_is_cut(server, pages)
            # Whoever would have to join anew is refused, and learns how rooms are made for it.
            assert publish(server, "hall", "phone")[0] == 201
            status, problem = server.api("POST", "/v1/rooms/hall/participants/phone/move", {"room": "far"})[:2]
            assert status == 409 and problem["code"] == "different_worker" and "`beside`" in problem["detail"], problem

    with running(workers=2) as server:
        asyncio.run(run(server))


# What waits for a connection when it is closed: an offer in each of its steps with another one behind it, a device that is replaced, a message. Of the
# connections here each step settles when it is let go, which a closed connection of a browser never does.
CLOSED = """Promise.all(["receiving", "publishing", "channels"].map((name) => import(`/martlet/${name}.js`))).then(async (modules) => {
    const [{ Receiving }, { Publishing }, { DataChannels }] = modules;
    const settled = () => new Promise((resolve) => { setTimeout(resolve, 20); });
    const offers = async (stuck) => {
        const problems = [], answers = [];
        let release = () => {}, isOpen = false;
        const step = (name) => (name === stuck && !isOpen ? new Promise((resolve) => { release = resolve; }) : Promise.resolve());
        window.RTCPeerConnection = class {
            setRemoteDescription({ sdp }) { this.localDescription = { sdp }; return step("remote"); }
            setLocalDescription() { return step("local"); }
            getTransceivers() { return []; }
            close() {}
        };
        const signal = { request: (type, { sdp }) => { answers.push(sdp); return step("answer"); }, cancel() {} };
        const receiving = new Receiving({ signal, speaker: () => null, onTracks() {}, onProblem: ({ message }) => problems.push(message) });
        for (const sdp of ["old", "queued"]) receiving.take({ sdp, tracks: { 0: sdp } });
        await settled();
        isOpen = true;
        receiving.reset();
        receiving.take({ sdp: "new", tracks: { 0: "new" } });
        await settled();
        release();
        await settled();
        return [answers.join(), [...receiving.tracks.values()].join(), problems.join()];
    };
    const found = [await offers("remote"), await offers("local"), await offers("answer")];

    const publishing = new Publishing({ signal: { cancel() {} } });
    publishing.sent.set("old", { transceiver: { sender: { replaceTrack: () => new Promise(() => {}) } } });
    const replaced = publishing.replace("old", "new").catch(({ code }) => code);
    await settled();
    publishing.close();
    found.push(await replaced);

    const sent = [], send = (text) => sent.push(JSON.parse(text).text);
    const channel = Object.assign(new EventTarget(), { readyState: "open", bufferedAmount: 2 ** 20, send });
    const channels = new DataChannels({ signal: { request: async (type, { text }) => sent.push(`${text} by ${type}`) } });
    channels.openOn({ createDataChannel: () => channel });
    const messages = [channels.send("one"), channels.send("two")];
    await settled();
    channels.reset();
    await Promise.all(messages);
    return [...found, sent];
})"""


# A session whose socket is lost while requests wait, and which learns after the resume that the connection "sub" ended. Other requests are sent again.
RESUMED = """import("/martlet/signal.js").then(async ({ Signal }) => {
    const settled = () => new Promise((resolve) => { setTimeout(resolve, 20); });
    const sockets = [], sent = [], ends = [], sub = {};
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 1;
        constructor() { sockets.push(this); setTimeout(() => this.give({ type: "hello", pingIntervalSeconds: 60 })); }
        give(message) { this.onmessage({ data: JSON.stringify(message) }); }
        send(text) {
            const message = JSON.parse(text), { id, type } = message;
            sent.push(message.connection ?? message.track ?? type);
            if (type === "join") this.give({ type: "joined", id, session: "SE_1", seq: 0 });
            if (type === "resume") this.give({ type: "resumed", id });
            if (type === "resume") setTimeout(() => this.give({ type: "connection", seq: 1, connection: "sub", state: "closed" }));
            if (type === "ping") setTimeout(() => this.give({ type: "pong", id }), 5);
            if (message.connection === "far") this.give({ type: "error", id, code: "connection_not_found", message: "" });
            if (message.track && sockets.length === 2) this.give({ type: "error", id, code: "track_not_found", message: "" });
        }
    };
    const signal = new Signal({
        url: "", token: "", join: {}, onJoined() {}, onICEServers() {}, onState() {}, onEnd() {},
        onEvent: ({ connection }) => { if (connection === "sub") signal.cancel(sub); },
    });
    await settled();
    const end = (name) => ({ code }) => ends.push(`${name} ${code}`);
    signal.request("answer", { connection: "sub" }, sub).catch(end("sub"));
    signal.request("bye", { connection: "far" }, {}).catch(end("far"));
    signal.request("view", { track: "TR_1" }).catch(end("track"));
    sockets[0].onclose({ code: 1006 });
    for (let turn = 0; turn < 400 && ends.length < 3; turn++) await new Promise((resolve) => { setTimeout(resolve, 50); });
    return [sent, ends];
})"""


def test_I8_what_waits_for_a_connection_goes_on_when_that_is_closed():
    async def run(server):
        async with chromium() as browser:
            page = await browser.new_page(bypass_csp=True)
            await page.goto(server.url + "/examples")
            new = ["new", "new", ""]
            assert await page.evaluate(CLOSED) == [new, new, ["old,new", "new", ""], "lost", ["one", "two by data"]]
            sent, ends = await page.evaluate(RESUMED)
            assert sent == ["join", "sub", "far", "TR_1", "resume", "ping", "TR_1"], sent
            assert ends == ["far lost", "sub lost", "track track_not_found"], ends

    with running() as server:
        asyncio.run(run(server))


async def move_participant(http, identity, room, destination):
    """As a backend on LiveKit's own server SDK does it."""
    from livekit import api
    calls = api.LiveKitAPI(http, KEY, SECRET)
    await calls.room.move_participant(api.MoveParticipantRequest(room=room, identity=identity, destination_room=destination))
    await calls.aclose()


async def breakout(url, http, single=True):
    ada, bob = [await Client(url, name, single=single).connect() for name in ("ada", "bob")]
    carl = await Client(url, "carl", "booth", single=single).connect()
    moves = []
    ada.room.on("moved", lambda: moves.append(ada.room.name))
    await ada.publish_video(RED, size=(640, 360))
    await carl.publish_video(GREEN, size=(640, 360))
    await (await bob.sees("ada", RED)).more(5)
    sid = ada.room.local_participant.sid
    await move_participant(http, "ada", "r", "booth")
    await livekit_sdk.until(lambda: bob.seen("participant_disconnected"), "bob learns that ada left")
    await carl.decodes("ada", RED)
    await ada.decodes("carl", GREEN)
    people = sorted(ada.room.remote_participants)
    stays = ada.room.local_participant.sid == sid
    for client in (ada, bob, carl):
        await client.close()
    return moves, people, stays, bool(ada.seen("reconnecting"))


def test_I8_livekits_sdk_follows_a_move():
    with running() as server:
        assert livekit_sdk.run(breakout, server.url.replace("http", "ws", 1), server.url) == (["booth"], ["carl"], True, False)


@pytest.mark.parametrize("single", [True, False], ids=["one connection", "two connections"])
def test_I8_livekits_python_sdk_joins_the_room_of_another_media_worker_that_it_is_moved_to_as_the_same_participant(single):
    with running(workers=2) as server:
        # The first room of each worker.
        assert [server.api("POST", "/v1/rooms", {"name": name})[0] for name in ("r", "booth")] == [201, 201]
        moves, people, stays, reconnected = livekit_sdk.run(breakout, server.url.replace("http", "ws", 1), server.url, single)
        assert people == ["carl"] and stays and reconnected, (moves, people, stays, reconnected)


def test_I8_what_a_moved_livekit_client_still_says_on_its_old_socket_ends_neither_its_stay_nor_its_client():
    async def run(server):
        assert [server.api("POST", "/v1/rooms", {"name": name})[0] for name in ("hall", "booth")] == [201, 201]
        async with livekit_rtc.opened(server, "/rtc", token("ada", "hall")) as old:
            await old.wait_for("join")
            assert server.api("POST", "/v1/rooms/hall/participants/ada/move", {"room": "booth"})[0] == 200
            await old.wait_for("leave")
            # An offer that was on its way; a socket's requests are answered in order.
            await old.send(offer=rtc.SessionDescription(type="offer", sdp="v=0", id=1))
            await old.send(ping=1)
            await old.wait_for("pong")
            assert [message.action for message in old.of("leave")] == [rtc.LeaveRequest.RECONNECT]
            async with livekit_rtc.opened(server, "/rtc", old.of("refresh_token")[-1]) as new:
                await new.wait_for("join")
                # SDKs say goodbye first, but on another connection.
                with contextlib.suppress(ConnectionError):
                    await old.send(leave=rtc.LeaveRequest())
                await old.reader
                await new.send(ping=2)
                await new.wait_for("pong")
                assert not new.of("leave")
                members = server.api("GET", "/v1/rooms/booth/participants")[1]["participants"]
                assert [one["identity"] for one in members] == ["ada"]

    with running() as server:
        asyncio.run(run(server))


@pytest.mark.parametrize("protocol", ["15", "16"])
def test_I8_a_livekit_client_whose_socket_is_away_while_it_is_moved_comes_back_to_where_it_is(protocol):
    """With the token of the room that it knows: by resuming where it understands moves (from protocol 16 on), else by joining anew."""
    async def run(server):
        assert [server.api("POST", "/v1/rooms", {"name": name})[0] for name in ("hall", "booth")] == [201, 201]
        first = token("ada", "hall")
        async with livekit_rtc.opened(server, "/rtc", first, protocol=protocol) as old:
            sid = (await old.wait_for("join")).participant.sid
        assert server.api("POST", "/v1/rooms/hall/participants/ada/move", {"room": "booth"})[0] == 200
        async with contextlib.AsyncExitStack() as sockets:
            new = await sockets.enter_async_context(livekit_rtc.opened(server, "/rtc", first, protocol=protocol, reconnect="1", sid=sid))
            if protocol == "16":
                moved = await new.wait_for("room_moved")
                assert [one.WhichOneof("message") for one in new.messages[:2]] == ["reconnect", "refresh_token"]
                assert (moved.room.name, moved.participant.sid, moved.token) == ("booth", sid, new.of("refresh_token")[0])
            else:
                assert (await new.wait_for("leave")).action == rtc.LeaveRequest.RECONNECT
                new = await sockets.enter_async_context(livekit_rtc.opened(server, "/rtc", first, protocol=protocol))
                joined = await new.wait_for("join")
                assert (joined.room.name, joined.participant.sid) == ("booth", sid)
            await new.send(ping=1)
            await new.wait_for("pong")
            assert not new.of("leave")
            members = [server.api("GET", f"/v1/rooms/{room}/participants")[1]["participants"] for room in ("hall", "booth")]
            assert [[one["identity"] for one in room] for room in members] == [[], ["ada"]]

    with running() as server:
        asyncio.run(run(server))


def test_I8_livekits_javascript_sdk_which_knows_no_moves_joins_the_locked_room_that_it_is_moved_to():
    async def run(server):
        assert [server.api("POST", "/v1/rooms", {"name": name})[0] for name in ("hall", "booth")] == [201, 201]
        async with chromium() as browser:
            ada, carl = [await ChromiumPage.open(browser, server) for _ in range(2)]
            await join(ada, server, token("ada", "hall"))
            await join(carl, server, token("carl", "booth"))
            await ada.evaluate(f"lk.publish({json.dumps(RED)}, 640, 360)")
            await carl.evaluate(f"lk.publish({json.dumps(GREEN)}, 640, 360)")
            await until(ada, "lk.own.trackSid")
            assert server.api("PUT", "/v1/rooms/booth/lock", {"password": "secret"})[0] == 200
            await move_participant(server.url, "ada", "hall", "booth")
            await until(carl, f"lk.shows('ada', {json.dumps(RED)})")
            await until(ada, f"lk.shows('carl', {json.dumps(GREEN)})")
            # Media may be there before the SDK says that it has joined anew.
            await until(ada, "lk.room.state === 'connected'")
            assert await ada.evaluate("[lk.room.name, lk.room.state, [...lk.room.remoteParticipants.keys()].join()]") == [
                "booth", "connected", "carl"]
            members = server.api("GET", "/v1/rooms/booth/participants")[1]
            assert sorted(one["identity"] for one in members["participants"]) == ["ada", "carl"]

    with running() as server:
        asyncio.run(run(server))
