"""The least that a peer can be: an offer, one UDP socket and STUN. For many peers at once, and for bytes that no client sends."""
import os
import secrets
import socket
import time

from aioice import stun

from .tokens import token

OFFER = """v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=rtcp-mux
a=mid:0
a=sendonly
a=setup:actpass
a=ice-ufrag:{ufrag}
a=ice-pwd:{password}
a=fingerprint:sha-256 {fingerprint}
a=rtpmap:111 opus/48000/2
a=ssrc:{ssrc} cname:bare
"""


def offer(ufrag="abcd", password="0123456789abcdefghijklmn", candidates=()):
    """An offer of audio; `candidates` are the values of its candidate lines."""
    fingerprint = ":".join(f"{byte:02X}" for byte in os.urandom(32))
    text = OFFER.format(ufrag=ufrag, password=password, fingerprint=fingerprint, ssrc=secrets.randbelow(2**32 - 1) + 1)
    text += "".join(f"a=candidate:{one}\n" for one in candidates)
    return text.replace("\n", "\r\n")


def binding_request(username, password, *, nominate=True, priority=1_862_270_975):
    request = stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.REQUEST)
    request.attributes["USERNAME"] = username
    request.attributes["PRIORITY"] = priority
    request.attributes["ICE-CONTROLLING"] = secrets.randbits(64)
    if nominate:
        request.attributes["USE-CANDIDATE"] = None
    request.add_message_integrity(password.encode())
    request.add_fingerprint()
    return request


class BarePeer:
    """Posts an offer over WHIP and validates its address; never does DTLS."""

    def __init__(self, server, room, identity):
        self.ufrag, self.password = secrets.token_hex(4), secrets.token_hex(12)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(2)
        headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token(identity, room)}"}
        status, reply, self.answer = server.request("POST", f"/whip/{room}", offer(self.ufrag, self.password), headers)
        assert status == 201, (status, self.answer)
        self.location = reply["Location"]
        self.remote_ufrag, self.remote_password = attribute(self.answer, "ice-ufrag"), attribute(self.answer, "ice-pwd")
        words = attribute(self.answer, "candidate").split()
        self.address = (words[4], int(words[5]))

    def check(self):
        """One check that nominates, repeated until it is answered (RFC 8489, section 6.2.1: after 0.5 s, 1 s, 2 s and so on); the answer says success."""
        request = binding_request(f"{self.remote_ufrag}:{self.ufrag}", self.remote_password)
        for wait_s in (0.5, 1, 2, 4, 8, 16):
            self.socket.sendto(bytes(request), self.address)
            end = time.monotonic() + wait_s
            while (left := end - time.monotonic()) > 0:
                self.socket.settimeout(left)
                try:
                    reply = stun.parse_message(self.socket.recv(2048))
                except TimeoutError:
                    break
                if reply.transaction_id == request.transaction_id:
                    assert reply.message_class == stun.Class.RESPONSE, reply
                    return
        raise TimeoutError("the check is not answered")

    def close(self):
        self.socket.close()


def attribute(sdp, name):
    """The first value of an attribute of a description."""
    return next(line.split(":", 1)[1] for line in sdp.splitlines() if line.startswith(f"a={name}:"))
