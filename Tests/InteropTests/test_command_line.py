"""The program's commands for operators, against a server that runs."""
import contextlib
import json
import os
import pty
import signal
import subprocess
import time
import urllib.parse

import pytest

from conftest import running
from support.bare import offer
from support.server import BINARY, free_ports
from support.tokens import KEY, SECRET, admin_token, token
from support.waiting import PATIENCE_S


def martlet(server, *words, status=0, text=None, **environment):
    """What a command prints; its key comes from the environment, as in a shell of the operator's."""
    environment = {**os.environ, f"MARTLET_KEYS": f"{KEY}:{SECRET}", **environment}
    done = subprocess.run(
        [BINARY, *words, "--server", server.url], capture_output=True, text=True, timeout=20, env=environment, input=text)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


def publish(server, room, identity):
    headers = {"Authorization": f"Bearer {token(identity, room)}", "Content-Type": "application/sdp"}
    assert server.request("POST", f"/whip/{urllib.parse.quote(room)}", offer(), headers)[0] == 201


def test_an_operators_day_on_the_command_line(tmp_path):
    with running() as server:
        assert martlet(server, "rooms").splitlines()[0].split() == ["ROOM", "PARTICIPANTS", "PUBLISHERS", "LOCK", "SINCE"]
        assert martlet(server, "rooms", "create", "board room") == "room board room was created\n"
        assert "room_exists" in martlet(server, "rooms", "create", "board room", status=1)
        assert json.loads(martlet(server, "policy", "set", "board room", "maxParticipants=7", 'videoCodecs=["vp8"]'))["maxParticipants"] == 7
        policy = json.loads(martlet(server, "policy", "get", "board room"))
        assert policy["maxParticipants"] == 7 and policy["videoCodecs"] == ["vp8"] and policy["audioOnly"] is False
        assert "did you mean maxParticipants?" in martlet(server, "policy", "set", "board room", "maxParticipant=7", status=1)
        edited = martlet(server, "policy", "edit", "board room", EDITOR="sed -i 's/: 7/: 9/'")
        assert json.loads(edited)["maxParticipants"] == 9
        assert "unchanged" in martlet(server, "policy", "edit", "board room", EDITOR="true")
        assert "unchanged" in martlet(server, "policy", "edit", "board room", EDITOR="false", status=1)
        # Somebody else changes the policy while the editor is open: what was not seen is not overwritten.
        meanwhile = tmp_path / "editor"
        meanwhile.write_text(f"""#!/bin/sh
{BINARY} policy set 'board room' maxParticipants=5 --server {server.url} > /dev/null
sed -i 's/: 9/: 4/' "$1"
""")
        meanwhile.chmod(0o755)
        assert "revision_mismatch" in martlet(server, "policy", "edit", "board room", EDITOR=str(meanwhile), status=1)
        assert json.loads(martlet(server, "policy", "get", "board room"))["maxParticipants"] == 5
        # As late as possible: a publisher that never connects is taken for gone after 30 s, in which a slow machine runs some commands, not all of them.
        publish(server, "board room", "cam")
        assert martlet(server, "rooms").splitlines()[1].startswith("board room  1             1           open")
        assert [room["name"] for room in json.loads(martlet(server, "rooms", "--json"))["rooms"]] == ["board room"]
        row = martlet(server, "participants", "board room").splitlines()[1]
        assert row.split()[0] == "cam" and "microphone" in row
        assert "participants" in json.loads(martlet(server, "policy", "set", "board room", "audioOnly=true", "--dry-run"))
        assert martlet(server, "kick", "board room", "cam", "--reason", "enough", "--ban", "60") == "cam was removed from board room\n"
        assert "participant_not_found" in martlet(server, "kick", "board room", "cam", status=1)
        end = time.monotonic() + PATIENCE_S
        while len(lines := martlet(server, "sessions", "--room", "board room").splitlines()) < 2:
            assert time.monotonic() < end, lines
        assert "cam" in lines[1] and "removed" in lines[1]
        types = [line.split("  ")[2] for line in martlet(server, "events", "--room", "board room").splitlines()]
        assert types[0] == "roomStarted" and "policyChanged" in types and types[-1] == "participantLeft"
        assert martlet(server, "rooms", "delete", "board room") == "room board room was deleted\n"
        assert "room_not_found" in martlet(server, "rooms", "show", "board room", status=1)
        # Another secret than the server's, a token from standard input, a server that is not there.
        assert "(" in martlet(server, "rooms", status=1, MARTLET_KEYS=f"{KEY}:{'x' * 32}")
        assert martlet(server, "rooms", "--token", "-", text=admin_token() + "\n").startswith("ROOM")
        # A token alone: no key, no file; the environment says where the server is.
        done = subprocess.run(
            [BINARY, "rooms", "--token", admin_token()], capture_output=True, text=True, timeout=20,
            env={**os.environ, "MARTLET_HTTP_PORT": str(server.http)})
        assert done.returncode == 0 and done.stdout.startswith("ROOM"), (done.stdout, done.stderr)
    assert "cannot be reached" in martlet(server, "rooms", status=3)


def test_a_policy_is_edited_in_an_editor_that_reads_the_terminal():
    """As vi does: the editor must be in the group of processes that has the terminal, or the kernel stops it."""
    with running() as server:
        assert server.api("POST", "/v1/rooms", {"name": "studio"})[0] == 201
        environment = {**os.environ, "MARTLET_KEYS": f"{KEY}:{SECRET}", "EDITOR": 'sh -c "read x </dev/tty" --'}
        child, terminal = pty.fork()
        if child == 0:
            try:
                os.execve(BINARY, [str(BINARY), "policy", "edit", "studio", "--server", server.url], environment)
            finally:
                os._exit(127)
        try:
            os.write(terminal, b"a line\n")
            end = time.monotonic() + PATIENCE_S
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
                time.sleep(0.05)
            if ended[0] == 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert ended[0] == child and os.waitstatus_to_exitcode(ended[1]) == 0, ended
            said = b""
            with contextlib.suppress(OSError):  # EIO: the command has ended, and all of it was read
                while part := os.read(terminal, 4096):
                    said += part
            assert b"the policy is unchanged" in said
        finally:
            os.close(terminal)


def test_events_are_followed_until_the_server_ends():
    with running() as server:
        environment = {**os.environ, "MARTLET_KEYS": f"{KEY}:{SECRET}"}
        command = [BINARY, "events", "--follow", "--after", "0", "--json", "--server", server.url]
        assert server.api("POST", "/v1/rooms", {"name": "a"})[0] == 201
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        assert json.loads(follower.stdout.readline())["type"] == "roomStarted"
        assert server.api("PUT", "/v1/rooms/a/lock", {})[0] == 200
        assert json.loads(follower.stdout.readline())["type"] == "lockChanged"
    rest, errors = follower.communicate(timeout=PATIENCE_S)
    assert [json.loads(line)["type"] for line in rest.splitlines()] == ["roomEnded"]
    assert follower.returncode == 0, errors


def test_a_participant_is_moved_to_a_room_that_was_created_beside_its_own():
    """Of two rooms each has a media thread of its own; a third one shares that of the first."""
    with running(workers=2) as server:
        for words in (["stage"], ["elsewhere"], ["lobby", "--beside", "stage"]):
            assert martlet(server, "rooms", "create", *words) == f"room {words[0]} was created\n"
        assert "preset_not_found" in martlet(server, "rooms", "create", "other", "--preset", "none", status=1)
        publish(server, "stage", "cam")
        refusal = martlet(server, "move", "stage", "cam", "elsewhere", status=1)
        assert "different_worker" in refusal and "beside" in refusal
        assert martlet(server, "move", "stage", "cam", "lobby") == "cam was moved from stage to lobby\n"
        assert martlet(server, "participants", "lobby").splitlines()[1].split()[0] == "cam"
        assert "participant_not_found" in martlet(server, "move", "stage", "cam", "lobby", status=1)


def test_every_media_port_is_asked_over_UDP_and_TCP_and_one_that_does_not_answer_is_named():
    """Two media threads; then one more address is announced, at which nobody is."""
    with running(workers=2) as server:
        asked = json.loads(martlet(server, "reach", "--json"))
        assert {(one["transport"], one["address"], one["port"]) for one in asked} == {
            (transport, "127.0.0.1", server.udp + worker) for transport in ("udp", "tcp") for worker in (0, 1)}
        # A loaded machine may need a second attempt at one of them; not at all of them.
        assert all(one["milliseconds"] > 0 for one in asked) and min(one["milliseconds"] for one in asked) < 1000
        assert json.loads(martlet(server, "events", "--json") or "null") is None, "checks are in no event"
        assert server.api("GET", "/v1/rooms")[1]["rooms"] == []
    # TEST-NET-1: no way leads there.
    with running(media={"announced_addresses": "[127.0.0.1, 192.0.2.1]", "bind": None}) as server:
        rows = [line.split("  ") for line in martlet(server, "reach").splitlines()[1:]]
        assert {row[0]: row[-1].strip() == "none" for row in rows} == {
            f"{transport} {address}:{server.udp}": address != "127.0.0.1" for transport in ("udp", "tcp") for address in ("127.0.0.1", "192.0.2.1")}
    with running(media={"announced_addresses": "192.0.2.1", "bind": None}) as server:
        assert "not every media port answers here" in martlet(server, "reach", status=1)


@pytest.mark.parametrize("http", ["  control_api: private\n", "  bind: '::1'\n", "  tls:\n    certificate: {0}/cert.pem\n    key: {0}/key.pem\n"],
                         ids=["private", "IPv6", "TLS"])
def test_commands_find_the_server_of_their_configuration(tmp_path, http):
    """Wherever it serves the control API, and whatever names its certificate has."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=sfu.example",
         "-addext", "subjectAltName=DNS:sfu.example", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    os.chmod(tmp_path / "key.pem", 0o600)
    port, private, udp = free_ports(3)
    config = tmp_path / "martlet.yaml"
    config.write_text(
        f"http:\n  port: {port}\n{http.format(tmp_path)}" + ("" if "bind" in http else "  bind: 127.0.0.1\n") + f"private:\n  port: {private}\n"
        f"media:\n  bind: 127.0.0.1\n  udp_port: {udp}\n  workers: 1\nkeys:\n  {KEY}: {SECRET}\n")
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([BINARY, "serve", "--config", config], stderr=log)
    try:
        end = time.monotonic() + PATIENCE_S
        while b" ready " not in (tmp_path / "log").read_bytes():
            assert process.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.05)
        done = subprocess.run([BINARY, "rooms", "--config", config], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0 and done.stdout.startswith("ROOM"), done.stderr
        # WHIP is on the public listener, whichever serves the control API.
        done = subprocess.run([BINARY, "reach", "--config", config], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 and f"udp 127.0.0.1:{udp}" in done.stdout, (done.stdout, done.stderr)
    finally:
        process.terminate()
        assert process.wait(15) == 0
