"""Floods one UDP port from many sockets at a steady rate, in a process of its own.

    flood.py HOST PORT garbage|stun|hello|mixed PACKETS_PER_SECOND SECONDS [UFRAG]      prints one JSON line: {"sent": …, "rate": …}

It ends after so many seconds, or earlier by SIGTERM.
With UFRAG, checks name a user name fragment of the server's that exists, under a password that is wrong.
"""
import json
import os
import random
import secrets
import signal
import socket
import struct
import sys
import time
import zlib

SOCKETS = 64


def garbage():
    """Any first byte, so that each branch of the demultiplexer gets its share; 1 to 1,400 bytes."""
    return os.urandom(random.choice((1, 2, 12, 20, 60, 200, 1200, 1400)))


def stun(ufrag=None):
    """A well-formed Binding request with FINGERPRINT for a user name fragment that nobody has, unless one is given (RFC 8489)."""
    username = f"{ufrag or secrets.token_hex(4)}:{secrets.token_hex(4)}".encode()
    padded = username + bytes(-len(username) % 4)
    attributes = struct.pack("!HH", 6, len(username)) + padded + struct.pack("!HHI", 0x24, 4, 1) + struct.pack("!HH", 0x25, 0)
    attributes += struct.pack("!HH", 8, 20) + os.urandom(20)
    head = struct.pack("!HHI", 1, len(attributes) + 8, 0x2112A442) + os.urandom(12)
    return head + attributes + struct.pack("!HHI", 0x8028, 4, zlib.crc32(head + attributes) ^ 0x5354554E)


def hello():
    """The beginning of a DTLS 1.2 ClientHello record."""
    body = os.urandom(200)
    handshake = b"\x01" + len(body).to_bytes(3) + bytes(5) + len(body).to_bytes(3) + body
    return b"\x16\xfe\xfd" + bytes(8) + len(handshake).to_bytes(2) + handshake


KINDS = {"garbage": [garbage], "stun": [stun], "hello": [hello], "mixed": [garbage, stun, hello]}


def main(host, port, kind, rate, seconds, ufrag=None):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(SOCKETS)]
    for one in sockets:
        one.connect((host, int(port)))
        one.setblocking(False)
    datagrams = [make(ufrag) if make is stun else make() for make in KINDS[kind] for _ in range(600)]
    random.shuffle(datagrams)
    rate, seconds, sent, skipped, ended = float(rate), float(seconds), 0, 0, []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    started = time.monotonic()
    while (now := time.monotonic() - started) < seconds and not ended:
        due = int(now * rate)
        # Where this process got no processor it does not catch up: that would be a flood of another rate.
        skipped += max(0, due - sent - skipped - int(0.05 * rate))
        while sent < due - skipped:
            try:
                sockets[sent % SOCKETS].send(datagrams[sent % len(datagrams)])
            except OSError:
                pass  # the buffer is full, or a namespace refuses: it counts as sent to nobody
            sent += 1
        time.sleep(0.001)
    print(json.dumps({"sent": sent, "rate": round(sent / max(0.001, now - skipped / rate))}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
