"""The obligations of a server of martlet.v1; sections are those of Sources/Edges/Signalling/Protocol.md."""
import asyncio
import contextlib
import json

import aiohttp
from support.signalling import signal

from .media import Peer, camera, microphone
from .suite import Suite, expect

SUITE = Suite("martlet.v1")
SUBPROTOCOL = "martlet.v1"


def address(target):
    return f"{target.url.replace('http', 'ws', 1)}/v1/signal"


def join(target, identity, room, grants=None, **fields):
    """A session that has joined."""
    return signal(target, target.token(identity, room, **(grants or {})), **fields)


@contextlib.asynccontextmanager
async def socket(target, access, **query):
    """An open WebSocket, before its first message."""
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(address(target), protocols=[SUBPROTOCOL], params={"access_token": access, **query}) as one:
            yield one


async def read(one):
    message = await one.receive(timeout=10)
    expect(message.type is aiohttp.WSMsgType.TEXT, f"a text frame, not {message.type}")
    return json.loads(message.data)


async def asked(one, **message):
    """The reply to a request on a bare socket, past the events before it."""
    await one.send_str(json.dumps(message))
    while (reply := await read(one)).get("id") != message.get("id"):
        pass
    return reply


async def closed(one):
    """With which code the server closes a socket."""
    while (await one.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
        pass
    return one.close_code


async def problem(target, access=None, headers=None, **query):
    """Status and code of the answer to the request without an upgrade."""
    parameters = {**({"access_token": access} if access else {}), **query}
    async with aiohttp.ClientSession() as http:
        async with http.get(address(target).replace("ws", "http", 1), params=parameters, headers=headers) as reply:
            document = await reply.json(content_type=None)
            return reply.status, document.get("code"), reply.headers.get("Content-Type", "")


async def refused(session, code, type, **fields):
    reply, _ = await session.request(type, **fields)
    expect(reply["type"] == "error" and reply["code"] == code, f"error {code}, not {reply}")
    expect(reply.get("message"), "a message for people")


async def publish(session, peer, *tracks, connection="pub"):
    """Offers `tracks`; the sids by their mids."""
    reply, _ = await session.request("offer", connection=connection, sdp=await peer.offer(*tracks))
    expect(reply["type"] == "answer" and reply["connection"] == connection, f"an answer, not {reply}")
    await peer.accept(reply["sdp"])
    return reply.get("tracks", {})


async def receive(session, peer):
    """Answers the server's first offer; the sids by their mids."""
    _, offer = await session.wait_for("offer", connection="sub")
    await session.request("answer", connection="sub", sdp=await peer.answer(offer["sdp"]))
    return offer["tracks"]


@SUITE.check("§1", "a request without a token is refused with 401 and a problem document with token_missing")
async def no_token(target, room):
    status, code, type = await problem(target)
    expect((status, code) == (401, "token_missing") and "application/problem+json" in type, f"{status} {code} {type}")


@SUITE.check("§1", "a token that another secret signed is refused with 401 token_bad_signature")
async def forged(target, room):
    access = target.token("ada", room)
    found = await problem(target, access[:-4] + ("AAAA" if access[-4:] != "AAAA" else "BBBB"))
    expect(found[:2] == (401, "token_bad_signature"), f"{found}")


@SUITE.check("§1", "a good token without an upgrade is answered with 426")
async def no_upgrade(target, room):
    found = await problem(target, target.token("ada", room))
    expect(found[0] == 426, f"{found}")


@SUITE.check("§1", "a query that names another room than the token's is refused with 403 room_mismatch")
async def other_room(target, room):
    found = await problem(target, target.token("ada", room), room=f"{room}-other")
    expect(found[:2] == (403, "room_mismatch"), f"{found}")


@SUITE.check("§1", "a client that offers only other subprotocols is refused")
async def other_protocol(target, room):
    async with aiohttp.ClientSession() as http:
        try:
            async with http.ws_connect(address(target), protocols=["other.v9"], params={"access_token": target.token("ada", room)}):
                pass
        except aiohttp.WSServerHandshakeError as error:
            return expect(400 <= error.status < 500, f"status {error.status}")
    expect(False, "the socket was opened")


@SUITE.check("§1", "a binary frame closes the socket with 1003")
async def binary(target, room):
    async with socket(target, target.token("ada", room)) as one:
        await read(one)
        await one.send_bytes(b"{}")
        code = await closed(one)
        expect(code == 1003, f"closed with {code}")


@SUITE.check("§3", "the first message is hello with protocol, ICE servers, intervals and the longest message")
async def hello(target, room):
    async with socket(target, target.token("ada", room)) as one:
        first = await read(one)
        expect(first["type"] == "hello" and first["protocol"] == SUBPROTOCOL, f"{first}")
        expect(all(isinstance(server["urls"], list) for server in first["iceServers"]), f"{first}")
        expect(all(first[name] > 0 for name in ("pingIntervalSeconds", "resumeWindowSeconds", "maxMessageBytes")), f"{first}")


@SUITE.check("§2", "what is not understood is answered with a code and the request's id, and the socket stays open")
async def not_understood(target, room):
    async with socket(target, target.token("ada", room)) as one:
        await read(one)
        reply = await asked(one, type="ping", id=1)
        expect(reply["type"] in ("pong", "error"), f"{reply}")
        reply = await asked(one, type="snapshot", id=2)
        expect(reply.get("code") == "not_joined", f"{reply}")
        reply = await asked(one, type="join", id=3)
        expect(reply["type"] == "joined", f"{reply}")
        reply = await asked(one, type="levitate", id=4)
        expect(reply.get("code") == "unknown_type", f"{reply}")
        await one.send_str("no JSON")
        expect((reply := await read(one)).get("code") == "malformed_message" and "id" not in reply, f"{reply}")
        reply = await asked(one, type="announce", id=5, tracks=[{"track": "x", "source": "moon"}])
        expect(reply.get("code") == "invalid_request" and reply.get("pointer") == "/tracks/0/source", f"{reply}")
        reply = await asked(one, type="ping", id=6)
        expect(reply == {"type": "pong", "id": 6}, f"{reply}")


@SUITE.check("§2", "unknown fields are ignored")
async def unknown_fields(target, room):
    async with join(target, "ada", room, shoe={"size": 43}) as ada:
        reply, _ = await ada.request("ping", colour="blue")
        expect(reply["type"] == "pong", f"{reply}")


@SUITE.check("§3", "joined has the session, the room of the token, oneself with the token's permissions, and the others with their tracks")
async def joined(target, room):
    async with join(target, "bob", room) as bob, Peer(target.host) as peer:
        tracks = await publish(bob, peer, microphone())
        async with join(target, "ada", room, {"canPublish": False}, name="Ada", metadata="m") as ada:
            found = ada.joined
            expect(found["session"] and found["room"]["name"] == room and found["room"]["sid"], f"{found}")
            me = found["participant"]
            expect((me["identity"], me["name"], me["metadata"], me["profile"]) == ("ada", "Ada", "m", "full"), f"{me}")
            expect(me["permissions"]["canPublish"] is False and me["permissions"]["canSubscribe"] is True, f"{me}")
            other, = found["participants"]
            expect(other["identity"] == "bob" and [track["sid"] for track in other["tracks"]] == list(tracks.values()), f"{other}")
            await refused(ada, "already_joined", "join")


@SUITE.check("§2", "events are numbered without a gap from the number in joined on")
async def numbered(target, room):
    async with join(target, "ada", room) as ada:
        for identity in ("bob", "carol", "dora"):
            async with join(target, identity, room) as other:
                await other.request("metadata", name=identity.upper())
                await other.request("leave")
        await ada.wait_for("participantLeft", identity="dora")
        numbers = [event["seq"] for _, event in ada.events]
        first = ada.joined["seq"] + 1
        expect(numbers == list(range(first, first + len(numbers))), f"{numbers}")
        sid = ada.of("participantJoined")[0][1]["participant"]["sid"]
        words = [event["type"] for _, event in ada.events if event.get("participant") == sid or isinstance(event.get("participant"), dict) and event["participant"]["sid"] == sid]
        expect(words == ["participantJoined", "participantUpdated", "participantLeft"], f"{words}")


@SUITE.check("§4", "what one publishes is offered to the others, who decode it")
async def media(target, room):
    async with join(target, "bob", room) as bob, join(target, "ada", room) as ada, Peer(target.host) as sender, Peer(target.host) as receiver:
        sent = await publish(bob, sender, microphone(), camera())
        expect(len(sent) == 2 and all(sid.startswith("TR_") for sid in sent.values()), f"{sent}")
        await sender.connected()
        await bob.wait_for("connection", connection="pub", state="connected")
        await receive(ada, receiver)
        # The second section may come with a second offer.
        await receiver.until(lambda: len(ada.of("offer")[-1][1]["tracks"]) == 2, "both are offered")
        if len(ada.of("offer")) > 1:
            await ada.request("answer", connection="sub", sdp=await receiver.answer(ada.of("offer")[-1][1]["sdp"]))
        await receiver.decodes(2)
        for sid in sent.values():
            await ada.wait_for("subscriptionStarted", track=sid)
        started = {event["track"] for _, event in ada.of("subscriptionStarted")}
        expect(started == set(sent.values()), f"subscriptionStarted of {started}")
        await bob.wait_for("trackSubscribed")


@SUITE.check("§4", "every section of an answer is bundled on one transport, with rtcp-mux, a SHA-256 fingerprint and candidates")
async def description(target, room):
    async with join(target, "bob", room) as bob, Peer(target.host) as peer:
        reply, _ = await bob.request("offer", connection="pub", sdp=await peer.offer(microphone(), camera()))
        sdp = reply["sdp"]
        expect("a=group:BUNDLE 0 1" in sdp and sdp.count("a=rtcp-mux") == 2, sdp)
        expect("a=fingerprint:sha-256 " in sdp and "a=ice-lite" in sdp and "a=candidate:" in sdp, sdp)


@SUITE.check("§4", "a description that is none is refused with invalid_sdp, an answer without an offer with unexpected_answer")
async def bad_descriptions(target, room):
    async with join(target, "bob", room) as bob:
        await refused(bob, "invalid_sdp", "offer", connection="pub", sdp="no description")
        async with Peer(target.host) as peer:
            await publish(bob, peer, microphone())
            await refused(bob, "unexpected_answer", "answer", connection="pub", sdp=peer.connection.localDescription.sdp)
        await refused(bob, "connection_not_found", "bye", connection="never")


@SUITE.check("§4", "bye ends one connection with its tracks, and the participant stays")
async def bye(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room) as bob, Peer(target.host) as peer:
        sid, = (await publish(bob, peer, microphone())).values()
        await ada.wait_for("trackPublished")
        reply, _ = await bob.request("bye", connection="pub")
        expect(reply["type"] == "ok", f"{reply}")
        await ada.wait_for("trackUnpublished", track=sid)
        reply, _ = await ada.request("snapshot")
        expect([one["identity"] for one in reply["participants"]] == ["bob"], f"{reply}")


@SUITE.check("§4", "bye that keeps the subscriptions: the server offers them on another connection")
async def bye_for_another(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room) as bob, Peer(target.host) as peer:
        sid, = (await publish(bob, peer, microphone())).values()
        await ada.wait_for("offer")
        reply, _ = await ada.request("bye", connection="sub", keepSubscriptions=True)
        expect(reply["type"] == "ok", f"{reply}")
        await ada.wait_for("connection", connection="sub", state="closed")
        async with asyncio.timeout(8):
            while len(offers := ada.of("offer")) < 2:
                await asyncio.sleep(0.01)
        expect(list(offers[1][1]["tracks"].values()) == [sid], f"{offers}")


@SUITE.check("§5", "an announcement says what a track is, and others see it; one of the wrong kind is refused")
async def announced(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room) as bob, Peer(target.host) as peer:
        track = camera()
        await bob.request("announce", tracks=[{"track": track.id, "source": "screen", "name": "slides"}])
        sid, = (await publish(bob, peer, track)).values()
        _, event = await ada.wait_for("trackPublished")
        seen = event["track"]
        expect((seen["sid"], seen["source"], seen["name"], seen["kind"], seen["identity"]) == (sid, "screen", "slides", "video", "bob"), f"{seen}")
        await refused(bob, "invalid_request", "announce", tracks=[{"track": track.id, "source": "microphone"}])


@SUITE.check("§5", "a mute is announced to the others; nobody unmutes another's track")
async def mute(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room) as bob, Peer(target.host) as peer:
        sid, = (await publish(bob, peer, microphone())).values()
        await bob.request("mute", track=sid, muted=True)
        await ada.wait_for("trackPublished")
        for _ in range(500):
            if any(event["track"]["muted"] for _, event in ada.of("trackUpdated")):
                break
            await asyncio.sleep(0.02)
        else:
            expect(False, "trackUpdated with muted")
        await refused(ada, "permission_denied", "mute", track=sid, muted=False)
        await refused(ada, "track_not_found", "mute", track="TR_none", muted=True)


@SUITE.check("§5", "a token without canPublish publishes nothing, one without canPublishData sends no message")
async def permissions(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room, {"canPublish": False, "canPublishData": False}) as bob, Peer(target.host) as peer:
        reply, _ = await bob.request("offer", connection="pub", sdp=await peer.offer(microphone()))
        expect(reply.get("code") == "permission_denied" or not reply.get("tracks"), f"{reply}")
        await refused(bob, "permission_denied", "data", text="x")
        reply, _ = await ada.request("snapshot")
        expect(reply["participants"][0]["tracks"] == [], f"{reply}")


@SUITE.check("§5", "a message reaches those whom it names, with its sender, topic and content")
async def message(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room) as bob, join(target, "carol", room) as carol:
        await bob.request("data", topic="chat", to=["ada"], text="only ada")
        await bob.request("data", topic="chat", text="everybody")
        await bob.request("data", topic="cursor", bytes="AQID")
        await carol.wait_for("data", bytes="AQID")
        await ada.wait_for("data", bytes="AQID")
        heard = [(event["identity"], event["topic"], event.get("text") or event["bytes"]) for _, event in ada.of("data")]
        expect(heard == [("bob", "chat", "only ada"), ("bob", "chat", "everybody"), ("bob", "cursor", "AQID")], f"{heard}")
        expect(len(carol.of("data")) == 2 and not bob.of("data"), "carol was named in two, and nobody hears himself")


@SUITE.check("§11", "an open data channel carries messages both ways, and a WebSocket those of members without one")
async def channel(target, room):
    async with join(target, "ada", room) as ada, join(target, "bob", room) as bob, join(target, "carol", room) as carol, Peer(target.host) as one, Peer(target.host) as two:
        first, second = one.channel("reliable"), two.channel("reliable")
        await publish(ada, one)
        await publish(bob, two)
        await one.until(lambda: first.readyState == second.readyState == "open", "both channels are open")
        first.send(json.dumps({"topic": "chat", "text": "Hello"}))
        await two.until(lambda: two.messages, "bob's message")
        got = json.loads(two.messages[0])
        expect((got["identity"], got["topic"], got["text"]) == ("ada", "chat", "Hello") and got["from"].startswith("PA_"), f"{got}")
        _, told = await carol.wait_for("data", text="Hello")
        expect(told["identity"] == "ada", f"{told}")
        await carol.request("data", text="from a socket")
        await one.until(lambda: one.messages, "ada's message")
        expect(json.loads(one.messages[0])["text"] == "from a socket" and not ada.of("data"), f"{one.messages}")


@SUITE.check("§6", "leave is confirmed, ended with reason left, and closed with 1000; the others are notified")
async def leave(target, room):
    async with join(target, "ada", room) as ada:
        async with socket(target, target.token("bob", room)) as one:
            await read(one)
            expect((await asked(one, type="join", id=1))["type"] == "joined", "joined")
            await one.send_str(json.dumps({"type": "leave", "id": 2}))
            said = []
            while (frame := await one.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
                said.append(json.loads(frame.data))
            # How many there are is an event of its own time, which may come between.
            said = [message for message in said if message["type"] != "room"]
            expect(said[-2] == {"type": "ok", "id": 2} and (said[-1]["type"], said[-1]["reason"]) == ("ended", "left"), f"{said}")
            expect(one.close_code == 1000, f"closed with {one.close_code}")
        await ada.wait_for("participantLeft", identity="bob", reason="left")


@SUITE.check("§8", "a session that lost its socket is resumed with the events that it missed, and nobody saw it leave")
async def resume(target, room):
    async with join(target, "carol", room) as carol:
        async with join(target, "ada", room) as ada:
            session, last = ada.joined["session"], max([ada.joined["seq"]] + [event["seq"] for _, event in ada.events])
        async with join(target, "bob", room):
            async with socket(target, target.token("ada", room)) as one:
                await read(one)
                reply = await asked(one, type="resume", id=1, session=session, seq=last)
                expect(reply == {"type": "resumed", "id": 1, "session": session, "seq": last}, f"{reply}")
                missed = await read(one)
                expect(missed["seq"] == last + 1, f"{missed}")
                while missed["type"] != "participantJoined" or missed["participant"]["identity"] != "bob":
                    missed = await read(one)
        expect(not carol.of("participantLeft", identity="ada"), "ada did not leave")


@SUITE.check("§8", "a resume by another identity is refused with session_not_found, one with other grants with grants_changed")
async def foreign_resume(target, room):
    async with join(target, "ada", room) as ada:
        for access, code in ((target.token("eve", room), "session_not_found"), (target.token("ada", room, canPublish=False), "grants_changed")):
            async with socket(target, access) as one:
                await read(one)
                reply = await asked(one, type="resume", id=1, session=ada.joined["session"], seq=0)
                expect(reply.get("code") == code, f"{reply}")
        reply, _ = await ada.request("ping")
        expect(reply["type"] == "pong", "the session goes on where it was")


@SUITE.check("§9", "a second session of an identity ends the first with duplicate_identity and code 4004")
async def duplicate(target, room):
    async with socket(target, target.token("ada", room)) as one:
        await read(one)
        await asked(one, type="join", id=1)
        async with join(target, "ada", room):
            said = []
            while (frame := await one.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
                said.append(json.loads(frame.data))
            expect((said[-1]["type"], said[-1]["reason"]) == ("ended", "duplicate_identity") and one.close_code == 4004, f"{said} {one.close_code}")


@SUITE.check("§9", "a moderator removes a participant: ended with removed, code 4003; nobody else may")
async def removed(target, room):
    async with join(target, "mod", room, {"roomAdmin": True}) as moderator, join(target, "bob", room) as bob:
        await refused(bob, "permission_denied", "remove", participant="mod")
        await refused(moderator, "participant_not_found", "remove", participant="nobody")
        async with socket(target, target.token("eve", room)) as one:
            await read(one)
            await asked(one, type="join", id=1)
            reply, _ = await moderator.request("remove", participant="eve")
            expect(reply["type"] == "ok", f"{reply}")
            code = await closed(one)
            expect(code == 4003, f"closed with {code}")


@SUITE.check("§10", "a frame that is longer than hello permits closes the socket with 1009")
async def too_long(target, room):
    async with socket(target, target.token("ada", room)) as one:
        first = await read(one)
        await one.send_str(" " * (first["maxMessageBytes"] + 1))
        code = await closed(one)
        expect(code == 1009, f"closed with {code}")
