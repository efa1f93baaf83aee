"""Network namespaces joined by emulated links (Tests/Support/netem.sh, linkemu.c): loss, delay, rate and address changes."""
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import stat
import subprocess
import tempfile

import pytest

NETEM = pathlib.Path(__file__).resolve().parents[2] / "Support/netem.sh"
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
SERVER_ADDRESS = "10.77.0.1"


@contextlib.contextmanager
def inside(namespace):
    """Sockets that this thread opens meanwhile belong to `namespace`."""
    if namespace is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    try:
        if _libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter namespace {namespace}")
        yield
    finally:
        if _libc.setns(home, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "cannot leave the namespace")
        os.close(home)
        os.close(there)


@functools.cache
def why_no_namespaces():
    """Why this machine cannot emulate networks: no privileges, no TUN device, no `ip`. Empty where it can."""
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    name = f"martlet-probe-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, timeout=10)
        if made.returncode:
            return made.stderr.strip() or "ip netns add failed"
        try:
            tun = subprocess.run(["ip", "netns", "exec", name, "ip", "tuntap", "add", "mode", "tun", "probe0"],
                                 capture_output=True, text=True, timeout=10)
            return "" if tun.returncode == 0 else tun.stderr.strip() or "no TUN device in a namespace"
        finally:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


class Lab:
    """One server namespace and `clients` client namespaces, each behind a link of its own."""

    def __init__(self, prefix, clients, *link):
        # The process id keeps runs apart, also from one that was killed and left its namespaces behind.
        self.prefix, self.clients, self.link = f"{prefix}{os.getpid()}", clients, [str(word) for word in link]
        self.folder = tempfile.TemporaryDirectory(prefix="martlet-lab-")

    def __enter__(self):
        if reason := why_no_namespaces():
            pytest.skip(f"needs network namespaces (CAP_NET_ADMIN): {reason}")
        try:
            self._netem("up", self.prefix, str(self.clients), *self.link)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._netem("down", self.prefix)
        self.folder.cleanup()

    @property
    def server(self):
        return f"{self.prefix}-srv"

    def client(self, number):
        return f"{self.prefix}-c{number}"

    def set(self, number, command):
        """Changes client `number`'s link live, for example "both loss 5"."""
        self._netem("set", self.prefix, str(number), command)

    def arrived_bytes(self, number):
        """Bytes, headers included, that client `number`'s link has delivered to it so far."""
        shown = subprocess.run(["ip", "-n", self.client(number), "-s", "-j", "link", "show", "e0"], capture_output=True, text=True, check=True, timeout=10)
        return json.loads(shown.stdout)[0]["stats64"]["rx"]["bytes"]

    @contextlib.contextmanager
    def cut(self, number):
        """Client `number` has no network meanwhile: its interface is down, as without Wi-Fi, and its system knows."""
        def ip(*words):
            subprocess.run(["ip", "-n", self.client(number), *words], check=True, timeout=10)

        ip("link", "set", "e0", "down")
        try:
            yield
        finally:
            ip("link", "set", "e0", "up")
            ip("route", "replace", "default", "via", f"10.77.{number}.1")

    def wrapper(self, number, program):
        """A script that runs `program` inside client `number`'s namespace, for launchers that take a path."""
        path = pathlib.Path(self.folder.name) / f"run-{number}-{pathlib.Path(program).name}"
        path.write_text(f'#!/bin/sh\nexec ip netns exec {self.client(number)} {program} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def _netem(self, *arguments):
        environment = {**os.environ, "NETEM_DIR": self.folder.name}
        # No pipes: the links that `up` leaves running would hold them open.
        subprocess.run([str(NETEM), *arguments], check=True, timeout=30, env=environment,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
