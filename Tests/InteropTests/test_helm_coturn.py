"""The chart's coturn: the real program with the arguments of its pod, and the credentials that the chart's Martlet makes for it."""
import asyncio
import contextlib
import json
import re
import socket
import subprocess
import time

import aioice.stun
import aioice.turn
import pytest

from conftest import running
from support.chart import COTURN, SECRETS, environment, of, render, server
from support.server import free_ports
from support.tokens import token

VALUES = {"coturn": {**COTURN["coturn"], "allowedPeers": ["127.0.0.1", "127.0.0.8-127.0.0.9"]}, "config": {"ice_servers": ["stun:stun.example.org:3478"]}}


@contextlib.contextmanager
def coturn(objects, folder):
    """The container of the chart's Deployment; its port here."""
    pod = of(objects, "Deployment")[0]["spec"]["template"]["spec"]
    container, = pod["containers"]
    secrets = environment(container, SECRETS)
    port, = free_ports(1)
    arguments = [re.sub(r"\$\((\w+)\)", lambda name: secrets[name[1]], one).replace("/tmp/", f"{folder}/") for one in container["args"]]
    assert "--listening-port=3478" in arguments and SECRETS["turn"]["secret"] not in json.dumps(objects)
    arguments[arguments.index("--listening-port=3478")] = f"--listening-port={port}"
    log = folder / "log"
    # A pod has an address of its own; here there is loopback, which coturn refuses unless it is told otherwise.
    here = ["--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1", "--allow-loopback-peers", "--no-cli"]
    with open(log, "w") as output:
        process = subprocess.Popen([*container["command"], *arguments, *here], stdout=output, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < end and process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield port
        assert process.poll() is None and "CONFIG ERROR" not in log.read_text(), log.read_text()
    finally:
        process.terminate()
        process.wait(10)


def test_K5_coturn_of_the_chart_accepts_martlets_credentials_and_relays_to_the_allowed_addresses_alone(tmp_path, monkeypatch):
    objects = render(VALUES)
    monkeypatch.setenv("MARTLET_ICE_SERVERS", environment(server(objects)["containers"][0], SECRETS)["MARTLET_ICE_SERVERS"])

    async def relay(port, one, peers):
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

    with coturn(objects, tmp_path) as port, running() as martlet:
        _, _, text = martlet.request("GET", "/v1/ice-servers", headers={"Authorization": f"Bearer {token('ada', 'far')}"})
        turn, stun = json.loads(text)["iceServers"]
        assert turn["urls"] == ["turn:turn.example.org:3478?transport=udp", "turn:turn.example.org:3478?transport=tcp"]
        assert stun["urls"] == ["stun:stun.example.org:3478"], "what the settings name is told, too"
        peers = ["127.0.0.1", "127.0.0.7", "127.0.0.8", "127.0.0.9", "10.96.0.1", "169.254.169.254", "192.0.2.1"]
        assert asyncio.run(relay(port, turn, peers)) == ["127.0.0.1", "127.0.0.8", "127.0.0.9"]
        with pytest.raises(aioice.stun.TransactionFailed):
            asyncio.run(relay(port, {**turn, "credential": "forged"}, peers))
