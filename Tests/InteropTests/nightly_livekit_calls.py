"""LiveKit's Python SDK in the situations of a call, each in both of its ways of signalling; judged by what is decoded. Run by name and at night.

livekit.md lists all scenarios.
"""
import asyncio
import base64
import types

import pytest

from support import livekit_sdk
from support.livekit_sdk import BLUE, GREEN, RED, Client, greet, until
from support.tokens import KEY, SECRET, admin_token, token

BOTH = pytest.mark.parametrize("single", [True, False], ids=["v1", "v0"])
SMALL = (640, 360)


async def couple(url, single, **options):
    """Ada publishes, bob sees her."""
    ada = await Client(url, "ada", single=single).connect(**options)
    bob = await Client(url, "bob", single=single).connect()
    published = await ada.publish_video(RED, size=SMALL)
    eye = await bob.sees("ada")
    await eye.more(10)
    return ada, bob, published, eye


async def close(*clients):
    for client in clients:
        await client.close()


async def stands(eye, seconds=1.0):
    """Waits until no frame comes any more."""
    async def quiet():
        while True:
            before = eye.frames
            await asyncio.sleep(seconds)
            if eye.frames - before <= 1:
                return

    await asyncio.wait_for(quiet(), 15)


def publication(client, identity):
    """The first track that somebody else publishes."""
    return next(iter(client.room.remote_participants[identity].track_publications.values()))


async def crowd(url, single):
    people = [Client(url, f"p{number}", single=single) for number in range(20)]
    await asyncio.gather(*(one.connect() for one in people))
    speakers = people[:3]
    for one, colour in zip(speakers, (RED, GREEN, BLUE)):
        await one.publish_video(colour, size=(320, 180), fps=10, simulcast=False)
    for viewer in people:
        for speaker, colour in zip(speakers, (RED, GREEN, BLUE)):
            if viewer is not speaker:
                await (await viewer.sees(speaker.identity, colour, seconds=60)).more(5, 60)
        assert len(viewer.room.remote_participants) == 19
    await asyncio.gather(*(one.close() for one in people))


@BOTH
def test_twenty_participants_see_three_speakers(server, single):
    livekit_sdk.run(crowd, server.url, single, seconds=115)


async def late(url, single):
    ada = await Client(url, "ada", single=single).connect()
    await ada.publish_video(RED, size=SMALL)
    await ada.publish_audio()
    await asyncio.sleep(2)
    bob = await Client(url, "bob", single=single).connect()
    await (await bob.sees("ada")).more(10)
    await bob.hears("ada")
    await close(ada, bob)


@BOTH
def test_who_comes_late_sees_and_hears_what_is_there(server, single):
    livekit_sdk.run(late, server.url, single)


async def by_hand(url, single):
    ada = await Client(url, "ada", single=single).connect()
    await ada.publish_video(RED, size=SMALL)
    bob = await Client(url, "bob", single=single).connect(auto_subscribe=False)
    await until(lambda: "ada" in bob.room.remote_participants and bob.room.remote_participants["ada"].track_publications, "bob knows ada's track")
    await asyncio.sleep(1)
    assert not bob.eyes
    publication(bob, "ada").set_subscribed(True)
    eye = await bob.sees("ada")
    await eye.more(10)
    publication(bob, "ada").set_subscribed(False)
    await until(lambda: bob.seen("track_unsubscribed"), "bob is unsubscribed")
    await close(ada, bob)


@BOTH
def test_without_automatic_subscription_a_track_comes_when_it_is_asked_for(server, single):
    livekit_sdk.run(by_hand, server.url, single)


async def audience(url, single):
    from livekit import rtc
    ada, bob, published, eye = await couple(url, single)
    carl = await Client(url, "carl", single=single).connect()
    await carl.sees("ada")
    only_carl = rtc.ParticipantTrackPermission(participant_identity="carl", allow_all=True)
    ada.room.local_participant.set_track_subscription_permissions(allow_all_participants=False, participant_permissions=[only_carl])
    await stands(eye)
    await carl.eye_of("ada").more(10)
    before = eye.frames
    ada.room.local_participant.set_track_subscription_permissions(allow_all_participants=True)
    # The SDK says nothing of a track that comes back in the same section.
    await until(lambda: bob.eye_of("ada").frames > (before if bob.eye_of("ada") is eye else 0) + 10, "bob sees ada again", 15)
    assert bob.eye_of("ada").shows(RED)
    await close(ada, bob, carl)


@BOTH
def test_a_publisher_takes_its_video_from_one_viewer_and_gives_it_back(server, single):
    livekit_sdk.run(audience, server.url, single)


async def rights(url, single):
    from livekit import api
    ada, bob, _, eye = await couple(url, single)
    lk = api.LiveKitAPI(url, KEY, SECRET)

    async def permit(**changes):
        rights = {"can_subscribe": True, "can_publish": True, "can_publish_data": True, **changes}
        await lk.room.update_participant(api.UpdateParticipantRequest(
            room="r", identity="ada", permission=api.ParticipantPermission(**rights)))

    await permit(can_publish=False)
    await until(lambda: bob.seen("track_unpublished"), "ada's track ends")
    await until(lambda: ada.seen("participant_permissions_changed"), "ada learns of it")
    with pytest.raises(Exception):
        await ada.publish_video(GREEN, size=SMALL, name="no")
    await permit()
    bob.eyes.clear()
    await ada.publish_video(BLUE, size=SMALL, name="again")
    await (await bob.sees("ada", BLUE, "again")).more(10)
    await permit(can_publish_data=False)
    await ada.room.local_participant.publish_data(b"no", topic="no")
    await permit()
    # The sender sends what it may as soon as it may.
    await asyncio.sleep(1)
    await ada.room.local_participant.publish_data(b"yes", topic="yes")
    await until(lambda: any(packet.topic == "yes" for (packet,) in bob.seen("data_received")), "bob gets what ada may send")
    assert not any(packet.topic == "no" for (packet,) in bob.seen("data_received"))
    await lk.aclose()
    await close(ada, bob)


@BOTH
def test_permissions_change_during_a_call(server, single):
    livekit_sdk.run(rights, server.url, single, seconds=90)


async def sends(publication):
    """Frames that a track has sent of each width."""
    found = {}
    for one in await publication.track.get_stats():
        if one.WhichOneof("stats") == "outbound_rtp":
            stream = one.outbound_rtp.outbound
            found[stream.rid] = stream.frames_encoded
    return found


async def layers(url, single):
    from livekit import rtc
    ada = await Client(url, "ada", single=single).connect(dynacast=True)
    published = await ada.publish_video(RED, size=(1280, 720), simulcast=True)
    bob = await Client(url, "bob", single=single).connect()
    await bob.sees("ada")
    publication(bob, "ada").set_video_quality(rtc.VideoQuality.VIDEO_QUALITY_LOW)
    await until(lambda: bob.eye_of("ada").size[0] == 320, "bob gets the smallest layer", 20)

    async def stopped():
        while True:
            before = await sends(published)
            await asyncio.sleep(2)
            after = await sends(published)
            growing = {rid for rid in after if after[rid] - before.get(rid, 0) > 5}
            if growing == {"q"}:
                return

    await asyncio.wait_for(stopped(), 25)
    publication(bob, "ada").set_video_quality(rtc.VideoQuality.VIDEO_QUALITY_HIGH)
    await until(lambda: bob.eye_of("ada").size[0] == 1280, "the largest layer comes back", 25)
    await close(ada, bob)


@BOTH
def test_dynacast_stops_the_layers_that_nobody_receives_and_begins_them_again(server, single):
    livekit_sdk.run(layers, server.url, single, seconds=90)


async def in_codec(url, single, codec, options):
    from livekit import rtc
    ada = await Client(url, "ada", single=single).connect()
    await ada.publish_video(RED, size=SMALL, video_codec=getattr(rtc.VideoCodec, codec), **options)
    bob = await Client(url, "bob", single=single).connect()
    eye = await bob.sees("ada", seconds=20)
    await eye.more(20, 20)
    stats = await publication(bob, "ada").track.get_stats()
    used = {one.codec.codec.mime_type.lower() for one in stats if one.WhichOneof("stats") == "codec"}
    assert f"video/{codec}".lower() in used, used
    size = eye.size
    await close(ada, bob)
    return size


@BOTH
@pytest.mark.parametrize("codec, options", [
    ("VP8", {"simulcast": False}), ("H264", {"simulcast": False}), ("H264", {"simulcast": True}), ("VP9", {"simulcast": False}), ("AV1", {"simulcast": False}),
], ids=["VP8", "H264", "H264-simulcast", "VP9", "AV1"])
def test_a_video_is_sent_and_decoded_in_the_codec_that_was_chosen(server, single, codec, options):
    width, height = livekit_sdk.run(in_codec, server.url, single, codec, options)
    assert abs(width / height - 16 / 9) < 0.02


async def several(url, single):
    from livekit import rtc
    ada = await Client(url, "ada", single=single).connect()
    bob = await Client(url, "bob", single=single).connect()
    await ada.publish_video(RED, size=SMALL)
    await ada.publish_video(GREEN, size=(960, 540), name="screen", source=rtc.TrackSource.SOURCE_SCREENSHARE, simulcast=False)
    await ada.publish_audio()
    await ada.publish_audio(name="sound of the screen", source=rtc.TrackSource.SOURCE_SCREENSHARE_AUDIO)
    await (await bob.sees("ada")).more(10)
    screen = await bob.sees("ada", GREEN, "screen")
    await screen.more(10)
    await bob.hears("ada")
    await bob.hears("ada", "sound of the screen")
    sources = {one.name: one.source for one in bob.room.remote_participants["ada"].track_publications.values()}
    assert sources["screen"] == rtc.TrackSource.SOURCE_SCREENSHARE
    await close(ada, bob)


@BOTH
def test_camera_screen_and_the_audio_of_both_arrive_as_what_they_are(server, single):
    livekit_sdk.run(several, server.url, single)


async def simulated(url, single, kind):
    """A test aid of the SDK: the server requests it to begin anew, or to resume."""
    from livekit import rtc
    ada, bob, _, eye = await couple(url, single)
    await bob.publish_video(GREEN, size=SMALL)
    await ada.sees("bob", GREEN)
    # A new join makes new tracks, and so new eyes.
    ada.eyes.clear()
    if kind == "SIMULATE_FULL_RECONNECT":
        bob.eyes.clear()
    await bob.room.simulate_scenario(getattr(rtc.SimulateScenarioKind, kind))
    await until(lambda: bob.seen("reconnected"), "bob is back", 30)
    await (await bob.sees("ada", seconds=30)).more(20, 30)
    if kind == "SIMULATE_FULL_RECONNECT":
        await (await ada.sees("bob", GREEN, seconds=30)).more(20, 30)
    assert not bob.seen("disconnected")
    await close(ada, bob)


@BOTH
@pytest.mark.parametrize("kind", ["SIMULATE_FULL_RECONNECT", "SIMULATE_SIGNAL_RECONNECT", "SIMULATE_NODE_FAILURE"])
def test_a_client_that_is_asked_to_reconnect_sees_again(server, single, kind):
    livekit_sdk.run(simulated, server.url, single, kind, seconds=90)


async def stays_muted(url, single):
    import aiohttp
    ada, bob, published, eye = await couple(url, single)
    published.track.mute()
    await until(lambda: bob.seen("track_muted"), "bob learns of the mute")
    await stands(eye)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {admin_token()}"}) as session:
        async with session.post(f"{url}/v1/rooms/r/tracks/{published.sid}/unmute-request") as reply:
            assert reply.status == 503 and (await reply.json())["code"] == "not_available", await reply.text()
    await asyncio.sleep(2)
    assert not bob.seen("track_unmuted"), "nobody's microphone is switched on from afar"
    # The person decides.
    published.track.unmute()
    await until(lambda: bob.seen("track_unmuted"), "ada unmutes", 15)
    await eye.more(10)
    await close(ada, bob)


@BOTH
def test_an_operator_cannot_unmute_a_client(server, single):
    livekit_sdk.run(stays_muted, server.url, single)


async def replaced(url, single):
    from livekit import rtc
    ada, bob, _, eye = await couple(url, single)
    again = await Client(url, "ada", single=single).connect()
    await until(lambda: ada.seen("disconnected"), "the older session ends")
    assert ada.seen("disconnected")[0][0] == rtc.DisconnectReason.DUPLICATE_IDENTITY
    bob.eyes.clear()
    await again.publish_video(BLUE, size=SMALL)
    await (await bob.sees("ada", BLUE)).more(10)
    await close(again, bob)


@BOTH
def test_a_second_client_of_an_identity_takes_its_place(server, single):
    livekit_sdk.run(replaced, server.url, single)


async def operated(url, single):
    """The application's server: data to one and to all, a call of a method, a mute, a removal."""
    from livekit import api, rtc
    ada, bob, published, eye = await couple(url, single)
    await greet(ada, bob)

    @bob.room.local_participant.register_rpc_method("double")
    async def double(call):
        assert call.caller_identity == "server"
        return call.payload * 2

    @bob.room.local_participant.register_rpc_method("fail")
    async def fail(call):
        raise rtc.RpcError(1234, "not today", "rain")

    @bob.room.local_participant.register_rpc_method("sleep")
    async def sleep(call):
        await asyncio.sleep(8)
        return ""

    lk = api.LiveKitAPI(url, KEY, SECRET)

    async def call(method, payload="", identity="bob", **options):
        request = api.PerformRpcRequest(room="r", destination_identity=identity, method=method, payload=payload, **options)
        headers = lk.room._auth_header(api.VideoGrants(room_admin=True, room="r"))
        return (await lk.room._client.request("RoomService", "PerformRpc", request, headers, api.PerformRpcResponse)).payload

    assert await call("double", "ab") == "abab"
    refusals = [("fail", {}, "unknown", "not today"), ("nothing", {}, "unknown", ""), ("sleep", {"response_timeout_ms": 1000}, "deadline_exceeded", ""),
                ("double", {"identity": "nobody"}, "not_found", "")]
    for method, options, code, words in refusals:
        with pytest.raises(api.TwirpError) as refused:
            await call(method, **options)
        assert refused.value.code == code and words in refused.value.message, (method, refused.value)
    with pytest.raises(api.TwirpError) as refused:
        await lk.room.forward_participant(api.ForwardParticipantRequest(room="r", identity="bob", destination_room="q"))
    assert refused.value.code == "unimplemented"

    for topic, names in (("one", ["bob"]), ("all", [])):
        await lk.room.send_data(api.SendDataRequest(room="r", data=topic.encode(), topic=topic, destination_identities=names))
    await until(lambda: {"one", "all"} <= {packet.topic for (packet,) in bob.seen("data_received")}, "bob gets both")
    await until(lambda: "all" in {packet.topic for (packet,) in ada.seen("data_received")}, "ada gets what is for all")
    assert "one" not in {packet.topic for (packet,) in ada.seen("data_received")}

    await lk.room.mute_published_track(api.MuteRoomTrackRequest(room="r", identity="ada", track_sid=published.sid, muted=True))
    await stands(eye)
    await lk.room.remove_participant(api.RoomParticipantIdentity(room="r", identity="ada"))
    await until(lambda: ada.seen("disconnected"), "ada is removed")
    assert ada.seen("disconnected")[0][0] == rtc.DisconnectReason.PARTICIPANT_REMOVED
    await until(lambda: bob.seen("participant_disconnected"), "bob learns of it")
    await lk.aclose()
    await close(bob)


@BOTH
def test_the_applications_server_sends_calls_mutes_and_removes(server, single):
    livekit_sdk.run(operated, server.url, single, seconds=90)


async def calls(url, single):
    """Calls between clients that fail: no such method, an error of the method's own, nobody there."""
    from livekit import rtc
    ada = await Client(url, "ada", single=single).connect()
    bob = await Client(url, "bob", single=single).connect()
    await greet(ada, bob)

    @bob.room.local_participant.register_rpc_method("fail")
    async def fail(call):
        raise rtc.RpcError(1234, "not today", "rain")

    found = {}
    for method, identity in (("nothing", "bob"), ("fail", "bob"), ("nothing", "nobody")):
        with pytest.raises(rtc.RpcError) as refused:
            await ada.room.local_participant.perform_rpc(destination_identity=identity, method=method, payload="", response_timeout=3)
        found[method, identity] = refused.value.code
    await close(ada, bob)
    return found


@BOTH
def test_calls_between_clients_fail_with_their_reason(server, single):
    found = livekit_sdk.run(calls, server.url, single)
    assert (found["nothing", "bob"], found["fail", "bob"]) == (1400, 1234)
    assert found["nothing", "nobody"] in (1401, 1501, 1502, 1503)


async def while_a_file_is_sent(url, single):
    """Lossy packets while a byte stream of 8 MB waits for its rate: they are not behind it."""
    ada = await Client(url, "ada", single=single).connect()
    bob = await Client(url, "bob", single=single).connect()
    await greet(ada, bob)
    size, sizes = 8_000_000, []

    async def take(reader):
        sizes.append(0)
        async for chunk in reader:
            sizes[0] += len(chunk)

    tasks = []
    bob.room.register_byte_stream_handler("file", lambda reader, _: tasks.append(asyncio.create_task(take(reader))))

    async def send():
        writer = await ada.room.local_participant.stream_bytes("file", total_size=size, topic="file")
        for start in range(0, size, 100_000):
            await writer.write(bytes(100_000))
        await writer.aclose()

    sending = asyncio.create_task(send())
    count = 0
    while not (sizes and sizes[0] == size):
        await ada.room.local_participant.publish_data(str(count).encode(), topic="place", reliable=False)
        count += 1
        await asyncio.sleep(0.1)
    await sending
    places = [packet for (packet,) in bob.seen("data_received") if packet.topic == "place"]
    await close(ada, bob)
    return count, len(places)


@BOTH
def test_lossy_packets_arrive_while_a_file_is_sent(server, single):
    sent, arrived = livekit_sdk.run(while_a_file_is_sent, server.url, single, seconds=100)
    print(f"figures: {arrived} of {sent} lossy packets arrived during a file of 8 MB")
    assert arrived > sent / 3


async def frames_after_reconnects(url, single):
    """A data track survives new sockets of its subscriber and of its publisher; a publisher that joins anew publishes it again, and who subscribes again gets its frames."""
    from livekit import rtc
    ada, bob = await Client(url, "ada", single=single).connect(), await Client(url, "bob", single=single).connect()
    track = await ada.room.local_participant.publish_data_track(name="pose")
    frames, readers = [], []

    async def read(stream):
        async for frame in stream:
            frames.append(bytes(frame.payload))

    async def arrives(payload):
        """Pushed again and again: a frame may be lost, and the publisher is not notified of subscribers."""
        async def found():
            while payload not in frames:
                try:
                    track.try_push(rtc.DataTrackFrame(payload=payload))
                except Exception:  # noqa: BLE001: the SDK refuses frames until it is connected again
                    pass
                await asyncio.sleep(0.1)
        await asyncio.wait_for(found(), 30)

    async def subscribe(count):
        await until(lambda: len(bob.seen("data_track_published")) == count, "bob learns of the track", 30)
        readers.append(asyncio.create_task(read(bob.seen("data_track_published")[-1][0].subscribe())))

    await subscribe(1)
    await arrives(b"first")
    for client in (bob, ada):
        await client.room.simulate_scenario(rtc.SimulateScenarioKind.SIMULATE_SIGNAL_RECONNECT)
        await until(lambda: client.seen("reconnected"), f"{client.identity} is back", 30)
        await arrives(f"after {client.identity}'s new socket".encode())
    ada.events.clear()
    await ada.room.simulate_scenario(rtc.SimulateScenarioKind.SIMULATE_FULL_RECONNECT)
    await until(lambda: ada.seen("reconnected"), "ada is back", 30)
    await subscribe(2)
    await arrives(b"joined anew")
    await close(ada, bob)


@BOTH
def test_frames_of_a_data_track_arrive_after_its_clients_reconnected(server, single):
    livekit_sdk.run(frames_after_reconnects, server.url, single)


async def once(url, single):
    """Numbered packets of a client whose socket is cut meanwhile: each reaches the other SDK and a member of martlet.v1 once, in order."""
    from support.signalling import signal
    ada, bob = await Client(url, "ada", single=single).connect(), await Client(url, "bob", single=single).connect()
    await greet(ada, bob)
    async with signal(types.SimpleNamespace(url=url), token("paul", "r"), room="r") as paul:
        async def send(numbers):
            for number in numbers:
                await ada.room.local_participant.publish_data(str(number).encode(), topic="count")

        await send(range(20))
        await ada.room.simulate_scenario(ada.rtc.SimulateScenarioKind.SIMULATE_SIGNAL_RECONNECT)
        await send(range(20, 40))
        await until(lambda: ada.seen("reconnected"), "ada is back", 30)
        await send(range(40, 60))
        wanted = [str(number).encode() for number in range(60)]
        await until(lambda: len([1 for (packet,) in bob.seen("data_received") if packet.topic == "count"]) >= 60, "all are with bob", 20)
        # What was sent again would come now.
        await asyncio.sleep(2)
        assert [bytes(packet.data) for (packet,) in bob.seen("data_received") if packet.topic == "count"] == wanted
        assert [base64.b64decode(one["bytes"]) for _, one in paul.of("data", topic="count")] == wanted
    await close(ada, bob)


@BOTH
def test_reliable_packets_reach_others_once_over_a_resume(server, single):
    livekit_sdk.run(once, server.url, single)
