"""coturn as the chart and Deploying.md start it: the real program, and the credentials that Martlet makes for it with their settings."""
import asyncio
import contextlib
import json
import re
import socket
import ssl
import subprocess
import time

import aioice.stun
import aioice.turn
import pytest
import yaml

from conftest import running
from support.chart import COTURN, SECRETS, environment, of, render, server
from support.server import ROOT, free_ports
from support.tokens import token
from support.waiting import PATIENCE_S

SECRET = SECRETS["turn"]["secret"]
VALUES = {"coturn": {**COTURN["coturn"], "allowedPeers": ["127.0.0.1", "127.0.0.8-127.0.0.9"]}, "config": {"ice_servers": ["stun:stun.example.org:3478"]}}


def of_the_chart(folder, port):
    """The command of the container of the chart's Deployment."""
    objects = render(VALUES)
    pod = of(objects, "Deployment")[0]["spec"]["template"]["spec"]
    container, = pod["containers"]
    secrets = environment(container, SECRETS)
    arguments = [re.sub(r"\$\((\w+)\)", lambda name: secrets[name[1]], one).replace("/tmp/", f"{folder}/") for one in container["args"]]
    assert "--listening-port=3478" in arguments and SECRET not in json.dumps(objects)
    arguments[arguments.index("--listening-port=3478")] = f"--listening-port={port}"
    return [*container["command"], *arguments], {"MARTLET_ICE_SERVERS": environment(server(objects)["containers"][0], SECRETS)["MARTLET_ICE_SERVERS"]}


def of_the_guide(folder, port):
    """coturn with the file of Deploying.md, at the port beside `port` for TLS, and Martlet with its settings there."""
    page = (ROOT / "Sources/martlet/martlet.docc/Deploying.md").read_text()
    configuration, = re.findall(r"```text\n(realm=.*?)```", page, re.S)
    settings, = re.findall(r"```yaml\n(ice_servers:.*?)```", page, re.S)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=turn.example.org", "-keyout", folder / "key.pem",
                    "-out", folder / "certificate.pem"], check=True, capture_output=True, timeout=20)
    for there, here in {"=SHARED": f"={SECRET}", "=443": f"={port + 1}", "/etc/ssl/turn": str(folder), "203.0.113.7": "127.0.0.1"}.items():
        assert there in configuration, there
        configuration = configuration.replace(there, here)
    (folder / "turnserver.conf").write_text(configuration + f"pidfile={folder}/pid\nuserdb={folder}/db\nlog-file=stdout\nsimple-log\nlistening-port={port}\n")
    entry, = yaml.safe_load(settings)["ice_servers"]
    assert entry["secret"] == "SHARED"
    return ["turnserver", "-c", folder / "turnserver.conf"], {"MARTLET_ICE_SERVERS": json.dumps([{**entry, "secret": SECRET}])}


@contextlib.contextmanager
def coturn(command, folder, port):
    log = folder / "log"
    # A pod has an address of its own; here there is loopback, which coturn refuses unless it is configured otherwise.
    here = ["--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1", "--allow-loopback-peers", "--no-cli"]
    with open(log, "w") as output:
        process = subprocess.Popen([*command, *here], stdout=output, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < end and process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield
        assert process.poll() is None and "CONFIG ERROR" not in log.read_text(), log.read_text()
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("made, urls, allowed", [
    (of_the_chart, ["turn:turn.example.org:3478?transport=udp", "turn:turn.example.org:3478?transport=tcp"], ["127.0.0.1", "127.0.0.8", "127.0.0.9"]),
    (of_the_guide, ["turns:turn.example.org:443?transport=tcp", "turn:turn.example.org:3478?transport=udp"], ["127.0.0.1"])])
def test_K5_coturn_of_the_chart_and_of_the_guide_accepts_martlets_credentials_and_relays_to_the_allowed_addresses_alone(tmp_path, monkeypatch, made, urls, allowed):
    port = free_ports(2)[0]
    command, settings = made(tmp_path, port)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    async def relay(one, peers):
        """Which peers a client with these credentials reaches."""
        client = aioice.turn.TurnClientUdpProtocol(("127.0.0.1", port), one["username"], one["credential"], lifetime=600, channel_refresh_time=500)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: client, remote_addr=("127.0.0.1", port))
        try:
            await client.connect()
            reached = []
            for number, peer in enumerate(peers):
                try:
                    await client.channel_bind(0x4000 + number, (peer, 7900))
                    reached.append(peer)
                except aioice.stun.TransactionFailed as refused:
                    assert refused.response.attributes["ERROR-CODE"][0] == 403, refused
            return reached
        finally:
            transport.close()

    with coturn(command, tmp_path, port), running() as martlet:
        _, _, text = martlet.request("GET", "/v1/ice-servers", headers={"Authorization": f"Bearer {token('ada', 'far')}"})
        turn, *others = json.loads(text)["iceServers"]
        assert turn["urls"] == urls
        peers = ["127.0.0.1", "127.0.0.7", "127.0.0.8", "127.0.0.9", "10.96.0.1", "169.254.169.254", "192.0.2.1"]
        assert asyncio.run(relay(turn, peers)) == allowed
        with pytest.raises(aioice.stun.TransactionFailed):
            asyncio.run(relay({**turn, "credential": "forged"}, peers))
        if made is of_the_chart:
            assert others == [{"urls": ["stun:stun.example.org:3478"]}], "what the settings name is announced, too"
        else:
            trust = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
            with socket.create_connection(("127.0.0.1", port + 1), 5) as plain, trust.wrap_socket(plain, server_hostname="turn.example.org") as safe:
                assert safe.version() >= "TLSv1.2"
