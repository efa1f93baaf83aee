"""The obligations of a server of LiveKit's protocol (version 15), as its SDKs rely on them; messages by LiveKit's own package."""
import asyncio
import base64
import contextlib
import json
import time

import aiohttp
from livekit.protocol import models, rtc

from .media import Peer, camera, microphone
from .suite import Suite, expect

SUITE = Suite("livekit")
PUBLISHER, SUBSCRIBER = rtc.SignalTarget.PUBLISHER, rtc.SignalTarget.SUBSCRIBER


class Session:
    """One signalling socket: every message that came, in order."""

    def __init__(self, socket):
        self.socket, self.messages, self.arrived = socket, [], asyncio.Event()
        self.reader = asyncio.ensure_future(self._read())

    async def _read(self):
        async for frame in self.socket:
            if frame.type is aiohttp.WSMsgType.BINARY:
                self.messages.append(rtc.SignalResponse.FromString(frame.data))
                self.arrived.set()
        self.arrived.set()

    async def send(self, **message):
        await self.socket.send_bytes(rtc.SignalRequest(**message).SerializeToString())

    def of(self, kind):
        return [getattr(message, kind) for message in self.messages if message.WhichOneof("message") == kind]

    async def wait_for(self, kind, condition=lambda message: True, seconds=8):
        """The first such message."""
        deadline = time.monotonic() + seconds
        while True:
            for message in self.of(kind):
                if condition(message):
                    return message
            seen = [message.WhichOneof("message") for message in self.messages]
            if self.reader.done() or time.monotonic() > deadline:
                raise AssertionError(f"no {kind} as wanted within {seconds} s, but {seen}; closed with {self.socket.close_code}")
            self.arrived.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.arrived.wait(), max(0.01, deadline - time.monotonic()))

    async def person(self, identity, condition=lambda info: True):
        """The first update about `identity` as wanted."""
        def fits(update):
            return any(info.identity == identity and condition(info) for info in update.participants)
        update = await self.wait_for("update", fits)
        return next(info for info in update.participants if info.identity == identity and condition(info))


def address(target, path):
    return f"{target.url.replace('http', 'ws', 1)}{path}"


@contextlib.asynccontextmanager
async def opened(target, path, access, **query):
    async with aiohttp.ClientSession() as http:
        parameters = {"access_token": access, "protocol": "15", "sdk": "python", "auto_subscribe": "1", **query}
        async with http.ws_connect(address(target, path), params=parameters) as socket:
            session = Session(socket)
            try:
                yield session
            finally:
                session.reader.cancel()


@contextlib.asynccontextmanager
async def joined(target, identity, room, grants=None, **query):
    """A session with two peer connections (`/rtc`)."""
    async with opened(target, "/rtc", target.token(identity, room, **(grants or {})), **query) as session:
        await session.wait_for("join")
        first = session.messages[0].WhichOneof("message")
        expect(first == "join", f"the first message is join, not {first}")
        session.join = session.of("join")[0]
        yield session


@contextlib.asynccontextmanager
async def joined_with_one(target, identity, room, peer, *tracks):
    """A session with one peer connection (`/rtc/v1`), whose offer comes with the join."""
    peer.channel("_reliable")
    offer = rtc.SessionDescription(type="offer", sdp=await peer.offer(*tracks), id=1)
    request = rtc.JoinRequest(
        client_info=models.ClientInfo(protocol=16), connection_settings=rtc.ConnectionSettings(auto_subscribe=True), publisher_offer=offer,
        add_track_requests=[
            rtc.AddTrackRequest(cid=track.id, type=models.TrackType.AUDIO if track.kind == "audio" else models.TrackType.VIDEO,
                                source=models.TrackSource.MICROPHONE if track.kind == "audio" else models.TrackSource.CAMERA) for track in tracks])
    wrapped = rtc.WrappedJoinRequest(join_request=request.SerializeToString()).SerializeToString()
    async with opened(target, "/rtc/v1", target.token(identity, room), join_request=base64.urlsafe_b64encode(wrapped).decode()) as session:
        await session.wait_for("join")
        session.join = session.of("join")[0]
        await peer.accept((await session.wait_for("answer")).sdp)
        yield session


async def publish(session, peer, *tracks):
    """Announces and offers `tracks` on the publisher's connection; their sids by kind."""
    sids = {}
    for track in tracks:
        kind = models.TrackType.AUDIO if track.kind == "audio" else models.TrackType.VIDEO
        source = models.TrackSource.MICROPHONE if track.kind == "audio" else models.TrackSource.CAMERA
        await session.send(add_track=rtc.AddTrackRequest(cid=track.id, name=track.kind, type=kind, source=source, width=320, height=180))
        published = await session.wait_for("track_published", lambda message, cid=track.id: message.cid == cid)
        sids[track.kind] = published.track.sid
        expect(published.track.sid.startswith("TR_") and published.track.type == kind, f"{published}")
    await session.send(offer=rtc.SessionDescription(type="offer", sdp=await peer.offer(*tracks), id=1))
    answer = await session.wait_for("answer")
    expect(answer.type == "answer", f"{answer}")
    await peer.accept(answer.sdp)
    return sids


async def subscribe(session, peer, count=1):
    """Answers the server's offers on the subscriber's connection until `count` tracks are decoded."""
    answered = 0
    deadline = time.monotonic() + 10
    while sum(frames >= 10 for frames in peer.frames.values()) < count:
        offers = session.of("offer")
        while answered < len(offers):
            sdp = await peer.answer(offers[answered].sdp)
            await session.send(answer=rtc.SessionDescription(type="answer", sdp=sdp, id=offers[answered].id))
            answered += 1
        expect(time.monotonic() < deadline, f"frames of {count} tracks, not {peer.frames}; {answered} offers were answered")
        await asyncio.sleep(0.02)


async def status(target, path, access=None):
    parameters = {"access_token": access} if access else {}
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{target.url}{path}", params=parameters) as reply:
            return reply.status, await reply.text()


@SUITE.check("join", "/rtc/validate answers success for a good token, and refuses one that is missing or may not join")
async def validate(target, room):
    expect(await status(target, "/rtc/validate", target.token("ada", room)) == (200, "success"), "200 success")
    for access in (None, target.token("ada", room, roomJoin=False), "x"):
        code, text = await status(target, "/rtc/validate", access)
        expect(code in (400, 401) and text, f"{code} {text}")


@SUITE.check("join", "the first message is join, with room, oneself, ping times and server's version: SDKs end their process without")
async def first(target, room):
    async with joined(target, "ada", room, {"canPublish": False}) as ada:
        found = ada.join
        expect(found.room.name == room and found.room.sid.startswith("RM_"), f"{found.room}")
        me = found.participant
        expect(me.identity == "ada" and me.sid.startswith("PA_") and me.state != models.ParticipantInfo.State.DISCONNECTED, f"{me}")
        expect(not me.permission.can_publish and me.permission.can_subscribe, f"{me.permission}")
        expect(found.ping_interval > 0 and found.ping_timeout > 0, f"{found.ping_interval} {found.ping_timeout}")
        expect(found.server_version or found.server_info.version, "a version")


@SUITE.check("join", "with one connection the join's offer is answered, and its announced tracks have sids")
async def single(target, room):
    async with Peer(target.host) as peer:
        track = microphone()
        async with joined_with_one(target, "ada", room, peer, track) as ada:
            published = await ada.wait_for("track_published")
            expect(published.cid == track.id and published.track.sid.startswith("TR_"), f"{published}")
            await peer.connected()


@SUITE.check("join", "newcomers and their end are announced as whole participants, with a version that grows and the reason")
async def roster(target, room):
    async with joined(target, "ada", room) as ada:
        async with joined(target, "bob", room) as bob:
            expect([info.identity for info in bob.join.other_participants] == ["ada"], f"{bob.join.other_participants}")
            seen = await ada.person("bob")
            await bob.send(update_metadata=rtc.UpdateParticipantMetadata(name="Bob", metadata="m", attributes={"a": "1"}, request_id=7))
            reply = await bob.wait_for("request_response", lambda message: message.request_id == 7)
            if reply.reason == rtc.RequestResponse.Reason.OK:
                changed = await ada.person("bob", lambda info: info.name == "Bob")
                expect(changed.version > seen.version and changed.attributes == {"a": "1"}, f"{changed}")
            await bob.send(leave=rtc.LeaveRequest(reason=models.DisconnectReason.CLIENT_INITIATED))
        gone = await ada.person("bob", lambda info: info.state == models.ParticipantInfo.State.DISCONNECTED)
        expect(gone.disconnect_reason == models.DisconnectReason.CLIENT_INITIATED, f"{gone}")


@SUITE.check("ping", "both kinds of ping are answered")
async def ping(target, room):
    async with joined(target, "ada", room) as ada:
        await ada.send(ping_req=rtc.Ping(timestamp=1234))
        pong = await ada.wait_for("pong_resp")
        expect(pong.last_ping_timestamp == 1234, f"{pong}")
        await ada.send(ping=5)
        await ada.wait_for("pong")


@SUITE.check("media", "a track is announced, offered, shown to the others with the same sid, and decoded by them")
async def media(target, room):
    async with joined(target, "bob", room) as bob, joined(target, "ada", room) as ada, Peer(target.host) as sender, Peer(target.host) as receiver:
        sids = await publish(bob, sender, microphone(), camera())
        info = await ada.person("bob", lambda info: len(info.tracks) == 2)
        expect({track.sid for track in info.tracks} == set(sids.values()), f"{info}")
        await sender.connected()
        await subscribe(ada, receiver, 2)
        await bob.wait_for("track_subscribed", lambda message: message.track_sid in sids.values())


@SUITE.check("media", "a mute and its end are announced to the others, with a version that grows")
async def mute(target, room):
    async with joined(target, "bob", room) as bob, joined(target, "ada", room) as ada, Peer(target.host) as sender:
        sid, = (await publish(bob, sender, microphone())).values()
        await bob.send(mute=rtc.MuteTrackRequest(sid=sid, muted=True))
        await ada.person("bob", lambda info: any(track.sid == sid and track.muted for track in info.tracks))
        await bob.send(mute=rtc.MuteTrackRequest(sid=sid, muted=False))
        versions = [info.version for update in ada.of("update") for info in update.participants if info.identity == "bob"]
        await ada.person("bob", lambda info: info.version > max(versions) and any(track.sid == sid and not track.muted for track in info.tracks))


@SUITE.check("media", "a track that the token does not permit is refused in request_response and never announced to others")
async def not_permitted(target, room):
    async with joined(target, "ada", room) as ada, joined(target, "bob", room, {"canPublish": False}) as bob:
        await bob.send(add_track=rtc.AddTrackRequest(cid="c1", name="x", type=models.TrackType.AUDIO, source=models.TrackSource.MICROPHONE))
        reply = await bob.wait_for("request_response")
        expect(reply.reason == rtc.RequestResponse.Reason.NOT_ALLOWED, f"{reply}")
        await bob.send(ping_req=rtc.Ping(timestamp=1))
        await bob.wait_for("pong_resp")
        expect(not any(info.tracks for update in ada.of("update") for info in update.participants), "no track of bob")


@SUITE.check("media", "an end to a subscription stops it, and a new one begins it again")
async def subscription(target, room):
    async with joined(target, "bob", room) as bob, joined(target, "ada", room) as ada, Peer(target.host) as sender, Peer(target.host) as receiver:
        sid, = (await publish(bob, sender, microphone())).values()
        await sender.connected()
        await subscribe(ada, receiver)
        offers = len(ada.of("offer"))
        await ada.send(subscription=rtc.UpdateSubscription(track_sids=[sid], subscribe=False))
        await ada.wait_for("offer", lambda message: len(ada.of("offer")) > offers)
        ended = ada.of("offer")[-1]
        await ada.send(answer=rtc.SessionDescription(type="answer", sdp=await receiver.answer(ended.sdp), id=ended.id))
        # What was on its way is decoded still, on a slow machine for longer.
        deadline, before = time.monotonic() + 5, None
        while before != (before := sum(receiver.frames.values())):
            expect(time.monotonic() < deadline, "no more frames come")
            await asyncio.sleep(0.5)
        offers = len(ada.of("offer"))
        await ada.send(subscription=rtc.UpdateSubscription(track_sids=[sid], subscribe=True))
        await ada.wait_for("offer", lambda message: len(ada.of("offer")) > offers)
        again = ada.of("offer")[-1]
        await ada.send(answer=rtc.SessionDescription(type="answer", sdp=await receiver.answer(again.sdp), id=again.id))
        await receiver.until(lambda: sum(receiver.frames.values()) > before + 10, "frames come again")


@SUITE.check("data", "a packet reaches those whom it names, with the sender set by the server")
async def data(target, room):
    async with Peer(target.host) as one, Peer(target.host) as two, Peer(target.host) as three:
        async with joined_with_one(target, "ada", room, one) as ada, joined_with_one(target, "bob", room, two), joined_with_one(target, "carol", room, three):
            for peer in (one, two, three):
                await peer.connected()
                await peer.until(lambda peer=peer: peer.channels["_reliable"].readyState == "open", "the reliable channel is open")
            reliable = one.channels["_reliable"]
            lie = models.DataPacket(user=models.UserPacket(payload=b"Hello", topic="chat"), participant_identity="eve", destination_identities=["bob"])
            reliable.send(lie.SerializeToString())
            await two.until(lambda: two.messages, "bob's packet")
            packet = models.DataPacket.FromString(two.messages[0])
            expect((packet.user.payload, packet.user.topic) == (b"Hello", "chat"), f"{packet}")
            expect(packet.participant_identity == "ada" and packet.participant_sid == ada.join.participant.sid, f"{packet}")
            reliable.send(models.DataPacket(user=models.UserPacket(payload=b"all")).SerializeToString())
            await three.until(lambda: three.messages, "carol's packet")
            expect([models.DataPacket.FromString(message).user.payload for message in three.messages] == [b"all"] and not one.messages, "carol was not named in the first")


@SUITE.check("data", "a data track is announced to all with its sid; who subscribes learns of a number for it, and of its end")
async def data_track(target, room):
    async with joined(target, "bob", room) as bob, joined(target, "ada", room) as ada:
        await ada.send(publish_data_track_request=rtc.PublishDataTrackRequest(pub_handle=7, name="pose"))
        published = (await ada.wait_for("publish_data_track_response")).info
        expect((published.pub_handle, published.name) == (7, "pose") and published.sid, f"{published}")
        seen = await bob.person("ada", lambda info: info.data_tracks)
        expect([track.sid for track in seen.data_tracks] == [published.sid], f"{seen}")
        update = rtc.UpdateDataSubscription.Update(track_sid=published.sid, subscribe=True)
        await bob.send(update_data_subscription=rtc.UpdateDataSubscription(updates=[update]))
        (number, track), = (await bob.wait_for("data_track_subscriber_handles", lambda message: message.sub_handles)).sub_handles.items()
        expect(0 < number < 65_536 and (track.publisher_identity, track.track_sid) == ("ada", published.sid), f"{number}: {track}")
        await ada.send(publish_data_track_request=rtc.PublishDataTrackRequest(pub_handle=8, name="pose"))
        refused = await ada.wait_for("request_response", lambda message: message.publish_data_track.pub_handle == 8)
        expect(refused.reason == rtc.RequestResponse.Reason.DUPLICATE_NAME, f"{refused}")
        await ada.send(unpublish_data_track_request=rtc.UnpublishDataTrackRequest(pub_handle=7))
        expect((await ada.wait_for("unpublish_data_track_response")).info.sid == published.sid, "the same data track")
        await bob.person("ada", lambda info: info.version > seen.version and not info.data_tracks)


@SUITE.check("leave", "a second session of an identity ends the first with leave, DUPLICATE_IDENTITY and no way back")
async def duplicate(target, room):
    async with joined(target, "ada", room) as first_one:
        async with joined(target, "ada", room):
            leave = await first_one.wait_for("leave")
            expect(leave.reason == models.DisconnectReason.DUPLICATE_IDENTITY and leave.action == rtc.LeaveRequest.Action.DISCONNECT, f"{leave}")
            await asyncio.wait_for(first_one.reader, 5)


@SUITE.check("resume", "a lost socket is resumed: reconnect comes first, then everybody including oneself; nobody saw it leave")
async def resume(target, room):
    async with joined(target, "carol", room) as carol:
        async with joined(target, "ada", room) as ada:
            me = ada.join.participant
        async with opened(target, "/rtc", target.token("ada", room), reconnect="1", sid=me.sid) as again:
            await again.wait_for("reconnect")
            expect(again.messages[0].WhichOneof("message") == "reconnect", f"{again.messages[0]}")
            update = await again.wait_for("update")
            expect({info.identity for info in update.participants} == {"ada", "carol"}, f"{update}")
            expect(next(info for info in update.participants if info.identity == "ada").sid == me.sid, "the same participant")
        left = [info for one in carol.of("update") for info in one.participants if info.state == models.ParticipantInfo.State.DISCONNECTED]
        expect(not left, f"{left}")


@SUITE.check("resume", "a resume of an unknown participant is answered with leave and RECONNECT, or refused with 404")
async def unknown_resume(target, room):
    try:
        async with opened(target, "/rtc", target.token("ada", room), reconnect="1", sid="PA_none") as session:
            leave = await session.wait_for("leave")
            expect(leave.action == rtc.LeaveRequest.Action.RECONNECT, f"{leave}")
    except aiohttp.WSServerHandshakeError as error:
        expect(error.status == 404, f"status {error.status}")


@SUITE.check("input", "unknown fields and requests are skipped; what is no message closes the socket, and nobody else's")
async def unknown(target, room):
    async with joined(target, "ada", room) as ada, joined(target, "bob", room) as bob:
        # A field of the number 999, as a later version of the protocol might have it.
        await ada.socket.send_bytes(b"\xba\x3e\x02hi" + rtc.SignalRequest(ping_req=rtc.Ping(timestamp=3)).SerializeToString())
        await ada.wait_for("pong_resp", lambda message: message.last_ping_timestamp == 3)
        await bob.socket.send_bytes(b"\xff\xff\xff\xff")
        await asyncio.wait_for(bob.reader, 5)
        await ada.send(ping_req=rtc.Ping(timestamp=4))
        await ada.wait_for("pong_resp", lambda message: message.last_ping_timestamp == 4)


@SUITE.check("api", "the server API lists the room and its participants, and removes one with PARTICIPANT_REMOVED")
async def server_api(target, room):
    async def call(method, **body):
        headers = {"Authorization": f"Bearer {target.token('backend', room, roomAdmin=True, roomList=True, roomCreate=True)}"}
        async with aiohttp.ClientSession() as http:
            async with http.post(f"{target.url}/twirp/livekit.RoomService/{method}", json=body, headers=headers) as reply:
                return reply.status, json.loads(await reply.text())

    async with joined(target, "ada", room) as ada:
        code, found = await call("ListRooms", names=[room])
        expect(code == 200 and found["rooms"][0]["name"] == room and found["rooms"][0]["num_participants"] == 1, f"{code} {found}")
        code, found = await call("ListParticipants", room=room)
        expect([info["identity"] for info in found["participants"]] == ["ada"], f"{code} {found}")
        code, found = await call("RemoveParticipant", room=room, identity="nobody")
        expect(code == 404 and found["code"] == "not_found", f"{code} {found}")
        code, found = await call("RemoveParticipant", room=room, identity="ada")
        expect(code == 200, f"{code} {found}")
        leave = await ada.wait_for("leave")
        expect(leave.reason == models.DisconnectReason.PARTICIPANT_REMOVED, f"{leave}")
