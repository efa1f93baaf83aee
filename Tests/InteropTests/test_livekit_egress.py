"""LiveKit's egress calls and webhooks, made and read by its own Python packages."""
import asyncio
import json
import time

import pytest

from conftest import running
from support import livekit_sdk
from support.livekit_sdk import RED, Client
from support.receiver import Receiver
from support.tokens import KEY, SECRET, admin_token, token


async def recorded(url):
    from livekit import api
    lk = api.LiveKitAPI(url, KEY, SECRET)
    ada, bob = await Client(url, "ada").connect(), await Client(url, "bob").connect()
    audio = await ada.publish_audio()
    await ada.publish_video(RED)
    await bob.sees("ada", RED)
    track = await lk.egress.start_track_egress(
        api.TrackEgressRequest(room_name="r", track_id=audio.sid, file=api.DirectFileOutput(filepath="x.ogg")))
    assert track.status == api.EgressStatus.EGRESS_ACTIVE and track.egress_id.startswith("EG_") and track.track.track_id == audio.sid
    person = await lk.egress.start_participant_egress(api.ParticipantEgressRequest(
        room_name="r", identity="ada", file_outputs=[api.EncodedFileOutput(filepath="calls/{room_name}-{publisher_identity}.mp4")]))
    assert person.participant.identity == "ada" and person.room_name == "r" and person.started_at > 1e18
    await livekit_sdk.until(lambda: bob.room.is_recording, "bob learns that the room is recorded")
    refusals = [
        (lk.egress.start_track_egress(api.TrackEgressRequest(room_name="r", track_id="TR_none")), "not_found"),
        (lk.egress.start_track_egress(api.TrackEgressRequest(room_name="r", track_id=audio.sid)), "failed_precondition"),
        (lk.egress.start_track_egress(api.TrackEgressRequest(room_name="r", track_id=audio.sid, websocket_url="wss://x")), "unimplemented"),
        (lk.egress.start_track_egress(api.TrackEgressRequest(
            room_name="r", track_id=audio.sid, file=api.DirectFileOutput(s3=api.S3Upload(bucket="b")))), "unimplemented"),
        (lk.egress.start_participant_egress(api.ParticipantEgressRequest(room_name="r", identity="nobody")), "not_found"),
        (lk.egress.start_participant_egress(api.ParticipantEgressRequest(
            room_name="r", identity="ada", stream_outputs=[api.StreamOutput(urls=["rtmp://x"])])), "unimplemented"),
        (lk.egress.start_participant_egress(api.ParticipantEgressRequest(
            room_name="r", identity="ada", preset=api.EncodingOptionsPreset.H264_720P_60)), "unimplemented"),
        (lk.egress.start_room_composite_egress(api.RoomCompositeEgressRequest(room_name="r", layout="grid")), "unimplemented"),
        (lk.egress.stop_egress(api.StopEgressRequest(egress_id="EG_none")), "not_found"),
    ]
    for call, code in refusals:
        with pytest.raises(api.TwirpError) as refused:
            await call
        assert refused.value.code == code, refused.value
    # A video's file begins with its first keyframe.
    for _ in range(400):
        begun = (await lk.egress.list_egress(api.ListEgressRequest(room_name="r", active=True))).items
        if len(begun) == 2 and all(one.file_results for one in begun):
            break
        await asyncio.sleep(0.1)
    # Two seconds of it by the publisher's clock, also where its process has no processor for a while.
    await (await bob.sees("ada", RED)).more(30)
    active = (await lk.egress.list_egress(api.ListEgressRequest(room_name="r", active=True))).items
    assert {one.egress_id for one in active} == {track.egress_id, person.egress_id}
    for one in active:
        ending = await lk.egress.stop_egress(api.StopEgressRequest(egress_id=one.egress_id))
        assert ending.status in (api.EgressStatus.EGRESS_ENDING, api.EgressStatus.EGRESS_COMPLETE)
    await livekit_sdk.until(lambda: not bob.room.is_recording, "bob learns that it is not any more")
    done = []
    for _ in range(400):
        done = (await lk.egress.list_egress(api.ListEgressRequest(room_name="r"))).items
        if all(one.status == api.EgressStatus.EGRESS_COMPLETE for one in done):
            break
        await asyncio.sleep(0.1)
    results = {one.egress_id: [(file.filename, file.location, file.duration, file.size) for file in one.file_results] for one in done}
    assert len(results) == 2 and all(one.status == api.EgressStatus.EGRESS_COMPLETE and one.ended_at > one.started_at for one in done), done
    with pytest.raises(api.TwirpError) as refused:
        await lk.egress.stop_egress(api.StopEgressRequest(egress_id=track.egress_id))
    assert refused.value.code == "failed_precondition"
    await lk.aclose()
    await ada.close()
    await bob.close()
    return results[track.egress_id], results[person.egress_id]


def posted(receiver):
    """What came to a webhook, verified and read by the receiver in LiveKit's own Python package."""
    from livekit import api
    reader = api.WebhookReceiver(api.TokenVerifier(KEY, SECRET))
    for _, headers, _ in receiver.requests:
        assert headers["Content-Type"] == "application/webhook+json"
    return [reader.receive(body.decode(), headers["Authorization"]) for _, headers, body in receiver.requests]


def test_livekits_egress_calls_record_tracks_and_participants_and_its_receiver_reads_the_webhooks(tmp_path):
    """As LiveKit's own Python package makes them, in protobuf; once in JSON. The files are where the results say."""
    from livekit import api
    receiver = Receiver()
    settings = f"recording:\n  directory: {tmp_path}\n  reserve: 0\nwebhooks:\n  allow_private: true\n"
    with running(extra=settings) as server:
        hook = {"url": receiver.url, "key": KEY, "format": "livekit"}
        assert server.api("PUT", "/v1/webhooks/backend", hook)[0] == 201
        (track,), person = livekit_sdk.run(recorded, server.url)
        assert server.api("DELETE", "/v1/rooms/r")[0] == 200
        told = []
        for _ in range(400):
            told = posted(receiver)
            names = [one.event for one in told]
            if "room_finished" in names and names.count("egress_ended") == 2:
                break
            time.sleep(0.1)
        # What is recorded is ready when its files are, which may be later.
        assert names[0] == "room_started" and [name for name in names if name != "egress_ended"][-1] == "room_finished"
        assert len({one.id for one in told}) == len(told)
        for event, count in {"participant_joined": 2, "participant_left": 2, "track_published": 2, "egress_started": 2, "egress_ended": 2}.items():
            assert names.count(event) == count, names
        assert all(one.room.name == "r" and one.room.sid for one in told if not one.event.startswith("egress")), told
        joined, published = (next(one for one in told if one.event == event) for event in ("participant_joined", "track_published"))
        assert joined.participant.identity == "ada" and joined.participant.sid.startswith("PA_")
        assert published.participant.identity == "ada" and published.track.sid.startswith("TR_") and names.index("track_published") > names.index("participant_joined")
        ended = [one.egress_info for one in told if one.event == "egress_ended"]
        assert all(info.egress_id.startswith("EG_") and info.room_name == "r" and info.file_results[0].size > 1_000 for info in ended), ended
        # Nothing comes after it, so it has the files that stay: those of a person are joined by then.
        assert [info.status for info in ended] == [api.EgressStatus.EGRESS_COMPLETE] * 2, ended
        assert sorted(file.location for info in ended for file in info.file_results) == sorted(location for _, location, *_ in (track, *person)), ended
        # The microphone has its own recording: a track is recorded once.
        assert [name for name, *_ in person] == ["r-ada.mp4"]
        for name, location, duration, size in (track, *person):
            assert name.endswith(".mp4") and duration > 1e9 and size > 1_000
            status, _, text = server.request("GET", location, None, {"Authorization": f"Bearer {admin_token()}", "Range": "bytes=4-7"})
            assert status == 206 and text == "ftyp"
        status, _, text = server.request("POST", "/twirp/livekit.Egress/ListEgress", {"roomName": "r"}, {"Authorization": f"Bearer {admin_token()}"})
        first = json.loads(text)["items"][0]
        assert status == 200 and first["status"] == "EGRESS_COMPLETE" and first["file_results"][0]["size"].isdigit()
        status, _, text = server.request("POST", "/twirp/livekit.Egress/ListEgress", {}, {"Authorization": f"Bearer {token('ada', 'r')}"})
        assert status == 401 and json.loads(text)["code"] == "unauthenticated"
    receiver.kill()
