"""A server behind a NAT that gives its media port another number: it finds both out, announces them, and a client outside connects."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from aioice import stun
from support.bare import offer
from support.network import inside, why_no_namespaces
from support.server import ROOT, Server
from support.tokens import token
from support.waiting import PATIENCE_S

CLIENT = ROOT / "Tests/InteropTests/support/aiortc_client.py"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=10)


class BehindNAT:
    """home (10.0.0.2) – nat (10.0.0.1, 203.0.113.1) – outside (203.0.113.2, with a STUN server)."""

    def __init__(self):
        self.home, self.nat, self.outside = (f"mn{os.getpid()}{name}" for name in ("h", "n", "o"))

    def __enter__(self):
        if reason := why_no_namespaces():
            pytest.skip(f"needs network namespaces (CAP_NET_ADMIN): {reason}")
        for name in (self.home, self.nat, self.outside):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for there, inner, outer in ((self.home, "10.0.0.1/24", "10.0.0.2/24"), (self.outside, "203.0.113.1/24", "203.0.113.2/24")):
            ip("link", "add", f"{there}x", "netns", self.nat, "type", "veth", "peer", "name", "eth0", "netns", there)
            for namespace, device, address in ((self.nat, f"{there}x", inner), (there, "eth0", outer)):
                ip("-n", namespace, "address", "add", address, "dev", device)
                ip("-n", namespace, "link", "set", device, "up")
        ip("-n", self.home, "route", "add", "default", "via", "10.0.0.1")
        ip("netns", "exec", self.nat, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        # A NAT that forgets soon, so that the next question gets the mapping that holds then.
        for name in ("udp_timeout", "udp_timeout_stream"):
            ip("netns", "exec", self.nat, "sysctl", "-q", "-w", f"net.netfilter.nf_conntrack_{name}=1")
        return self

    def map(self, server, public_port, address="203.0.113.1"):
        """The media port of the server has another number outside; HTTP has the same."""
        if address != "203.0.113.1":
            ip("-n", self.nat, "address", "add", f"{address}/24", "dev", f"{self.outside}x")
        rules = f"""
            flush ruleset
            table ip nat {{
              chain before {{ type nat hook prerouting priority dstnat;
                ip daddr {address} udp dport {public_port} dnat to 10.0.0.2:{server.udp}
                ip daddr 203.0.113.1 tcp dport {server.http} dnat to 10.0.0.2:{server.http}
              }}
              chain after {{ type nat hook postrouting priority srcnat;
                ip saddr 10.0.0.2 udp sport {server.udp} snat to {address}:{public_port}
                ip saddr 10.0.0.2 masquerade
              }}
            }}"""
        subprocess.run(["ip", "netns", "exec", self.nat, "nft", "-f", "-"], input=rules, check=True, text=True, capture_output=True, timeout=10)

    def __exit__(self, *_):
        for name in (self.home, self.nat, self.outside):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10)


@contextlib.contextmanager
def stun_server(namespace, folder):
    """coturn, which answers Binding requests of everybody."""
    with open(folder / "coturn.log", "w") as log:
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, "turnserver", "-n", "--stun-only", "--listening-ip=203.0.113.2", "--listening-port=3478", "--no-tls", "--no-dtls",
             "--no-cli", "--log-file=stdout", f"--pidfile={folder}/coturn.pid", f"--db={folder}/turn.db"], stdout=log, stderr=log)
    try:
        # A server asks for three seconds only.
        with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(0.2)
            until(lambda: answers(asking), PATIENCE_S, lambda: "coturn answers")
        yield
    finally:
        process.terminate()
        process.wait(10)


def answers(asking):
    """Whether the STUN server answers a Binding request."""
    try:
        asking.sendto(bytes(stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.REQUEST)), ("203.0.113.2", 3478))
        return len(asking.recv(2048)) > 0
    except OSError:
        return False


def until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what()}"
        time.sleep(0.1)


def test_F11_a_server_behind_nat_finds_its_address_and_mapped_port_and_a_client_outside_connects(tmp_path):
    with BehindNAT() as net, stun_server(net.outside, tmp_path):
        server = Server(
            host="10.0.0.2", namespace=net.home,
            media={"bind": "10.0.0.2", "announced_addresses": "discover", "stun_server": "203.0.113.2"})
        net.map(server, 41_000)
        begun = time.monotonic()
        server.start()
        # Within less than the ten seconds after which it would ask again.
        until(lambda: "addresses=203.0.113.1:41000" in server.log().replace('"', ""), 9, server.log)

        def client(verb, *words):
            return subprocess.Popen(
                ["ip", "netns", "exec", net.outside, sys.executable, "-u", CLIENT, verb, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        base = f"http://203.0.113.1:{server.http}"
        started = time.monotonic()
        camera = client("publish", f"{base}/whip/far", token("camera", "far"), "203.0.113.2")
        try:
            first = camera.stdout.readline()
            assert first.strip() == "connected", first
            connected = time.monotonic() - started
            # What the provider changes is found again, and only new descriptions say it.
            net.map(server, 42_000, "203.0.113.9")
            time.sleep(1.5)
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "203.0.113.9:42000" in server.log(), 50 - (time.monotonic() - begun), server.log)  # Sooner than it asks by itself, a minute after its start.
            status, _, answer = server.request(
                "POST", "/whip/far", offer(), {"Content-Type": "application/sdp", "Authorization": f"Bearer {token('late', 'far')}"})
            assert status == 201
            candidates = [line for line in answer.splitlines() if line.startswith("a=candidate:")]
            assert len(candidates) == 1 and " 203.0.113.9 42000 typ host" in candidates[0], candidates
            print(f"figures: a publisher outside connected {connected:.1f} s after it began")
        finally:
            camera.terminate()
            camera.wait(10)
        assert server.stop() == 0


def test_F11_a_server_that_started_before_the_STUN_server_asks_again_by_itself(tmp_path):
    with BehindNAT() as net:
        server = Server(
            host="10.0.0.2", namespace=net.home,
            media={"bind": "10.0.0.2", "announced_addresses": "discover", "stun_server": "203.0.113.2"})
        net.map(server, 41_000)
        server.start()
        assert "does not answer the media ports" in server.log() and "addresses=" not in server.log(), server.log()
        with stun_server(net.outside, tmp_path):
            until(lambda: "addresses=203.0.113.1:41000" in server.log().replace('"', ""), PATIENCE_S, server.log)
        assert server.stop() == 0
