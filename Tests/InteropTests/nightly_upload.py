"""Finished recordings go to a real S3-compatible server that checks signatures, through its failures and the server's own."""
import hashlib
import json
import pathlib
import random
import time

import pytest

from conftest import running
from support.object_storage import ObjectStorage

BUCKET = "calls"
#: 32 MB go in two parts of 16 and a third.
LARGE = (32 << 20) + 12_345


def recording(folder, sid, size):
    """A recording as an earlier life of the server left it: (the folder, the file's bytes)."""
    place = folder / "RM_1" / sid
    place.mkdir(parents=True)
    content = random.Random(sid).randbytes(size)
    (place / "TR_1.000.mp4").write_bytes(content)
    (place / "TR_1.jsonl").write_text('{"type":"start"}\n')
    (place / "recording.json").write_text(json.dumps({
        "version": 1, "sid": sid, "state": "ready", "room": "r", "roomSid": "RM_1", "startedAt": 1, "endedAt": 2, "ended": "stopped",
        "tracks": [{
            "sid": "TR_1", "participant": "PA_1", "identity": "ada", "name": "", "source": "camera", "kind": "video", "gaps": [], "gapCount": 0,
            "framesWritten": 1, "framesLost": 0, "ended": True,
            "files": [{"name": "TR_1.000.mp4", "codec": "vp8", "startMilliseconds": 0, "rtpTime": 0, "clockRate": 90000, "rotation": 0,
                       "bytes": size, "samples": 1, "durationMilliseconds": 1, "index": "front"}]}]}))
    return place, content


def settings(folder, storage, keep=True):
    return (f"recording:\n  directory: {folder}\n  reserve: 0\n  upload_endpoint: {storage.url}\n  upload_bucket: {BUCKET}\n"
            f"  upload_region: eu-central-1\n  upload_prefix: martlet\n  upload_credentials: {storage.credentials}\n  upload_keep: {str(keep).lower()}\n")


def until(condition, told=lambda: "", timeout_s=50):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.01)
    return found


def uploads(server, sid):
    status, found = server.api("GET", f"/v1/recordings/{sid}")
    assert status == 200, found
    return found.get("uploads", [])


def is_done(server, sid):
    found = uploads(server, sid)
    return found if found and found[-1]["name"] == "recording.json" and all(one["state"] == "done" for one in found) else None


@pytest.fixture
def storage(tmp_path):
    one = ObjectStorage(tmp_path)
    one.credentials.write_text("nobody\nsecret-that-no-answer-may-have\n")
    yield one
    if one.process and one.process.poll() is None:
        one.kill()


def test_a_file_is_uploaded_when_the_storage_comes_back_and_leaves_only_then(tmp_path, storage):
    """First nobody listens, then the keys are wrong; neither loses the file, and no answer and no line of the log has a secret."""
    folder = tmp_path / "recordings"
    place, content = recording(folder, "RC_1", 3_000_000)
    with running(extra=settings(folder, storage, keep=False)) as server:
        first = until(lambda: [one for one in uploads(server, "RC_1") if one["failures"] > 0])[0]
        assert first["state"] == "pending" and first["key"] == "martlet/RM_1/RC_1/TR_1.000.mp4" and first["fault"]
        # Its first calls make its keys: nobody else may call meanwhile.
        server.terminate()
        storage.start(BUCKET)
        storage.credentials.write_text("nobody\nsecret-that-no-answer-may-have\n")
        server.start()
        refused = until(lambda: [one for one in uploads(server, "RC_1") if "403" in one.get("fault", "")])[0]
        assert (place / "TR_1.000.mp4").read_bytes() == content
        for text in (server.log(), json.dumps(refused), json.dumps(server.api("GET", "/v1/recordings")[1])):
            assert "secret-that" not in text and "nobody" not in text
        server.terminate()
        storage.credentials.write_text("\n".join(storage.keys) + "\n")
        server.start()
        found = until(lambda: is_done(server, "RC_1"), lambda: (uploads(server, "RC_1"), storage.log()[-1_000:]))
        assert [one["name"] for one in found] == ["TR_1.000.mp4", "TR_1.jsonl", "recording.json"]
        stored = storage.s3.get_object(Bucket=BUCKET, Key="martlet/RM_1/RC_1/TR_1.000.mp4")["Body"].read()
        assert stored == content
        until(lambda: not (place / "TR_1.000.mp4").exists())
        assert found[0]["bytes"] == len(content) and uploads(server, "RC_1")[0]["isRemoved"]
        assert storage.keys[1] not in server.log() + json.dumps(found)
        assert server.request("GET", "/v1/recordings/RC_1/file?name=TR_1.000.mp4", None, {})[0] == 401
        assert 'martlet_recording_files_uploaded_total 3' in server.get_private("/metrics")[1]


def test_an_upload_in_parts_goes_on_after_kills_of_the_server_and_of_the_storage(tmp_path, storage):
    """kill -9 of Martlet in the middle: no part goes twice but the one that was on its way. kill -9 of the storage, which forgets everything: all goes again."""
    folder = tmp_path / "recordings"
    place, content = recording(folder, "RC_1", LARGE)
    storage.start(BUCKET)
    key = "martlet/RM_1/RC_1/TR_1.000.mp4"
    with running(extra=settings(folder, storage)) as server:
        state = place / "TR_1.000.mp4.upload"
        until(lambda: state.exists() and len(state.read_text().splitlines()) > 1)
        server.kill()
        before = storage.parts()
        assert 1 <= len(before) <= 3 and key not in storage.objects(BUCKET)
        server.start()
        until(lambda: is_done(server, "RC_1"), lambda: (uploads(server, "RC_1"), storage.log()[-1_000:]))
        after = storage.parts()
        print(f"figures: parts before the kill {before}, after it {after[len(before):]}")
        assert set(after) == {1, 2, 3} and len(after) <= 4
        stored = storage.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        assert hashlib.sha256(stored).digest() == hashlib.sha256(content).digest()
        assert not state.exists() and (place / "TR_1.000.mp4").read_bytes() == content


def test_what_the_storage_forgets_in_the_middle_is_uploaded_anew(tmp_path, storage):
    folder = tmp_path / "recordings"
    place, content = recording(folder, "RC_1", LARGE)
    storage.start(BUCKET)
    with running(extra=settings(folder, storage)) as server:
        until(lambda: storage.parts())
        storage.kill()
        until(lambda: [one for one in uploads(server, "RC_1") if one["failures"] > 0])
        server.terminate()
        storage.start(BUCKET)
        server.start()
        found = until(lambda: is_done(server, "RC_1"), lambda: (uploads(server, "RC_1"), storage.log()[-1_000:]))
        assert found[0]["failures"] >= 1
        stored = storage.s3.get_object(Bucket=BUCKET, Key=found[0]["key"])["Body"].read()
        assert hashlib.sha256(stored).digest() == hashlib.sha256(content).digest()
        assert pathlib.Path(place / "TR_1.000.mp4").exists()
