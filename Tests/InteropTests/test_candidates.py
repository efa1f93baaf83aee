"""F9: with `media.tcp`, every description that a client gets has TCP candidates on the numbers of the UDP ones; without, none has."""
import asyncio
import re

import aiohttp
import pytest
from conftest import running
from livekit.protocol import models, rtc
from support import bare
from support.tokens import token
from support.waiting import PATIENCE_S


def candidates(description):
    """{transport: what follows the candidates' addresses}"""
    found = re.findall(r"candidate:\S+ 1 (udp|tcp) \d+ (\S+ \d+) (typ host.*?)\s*$", description, re.M)
    return {transport: [(place, words.split()) for each, place, words in found if each == transport] for transport in ("udp", "tcp")}


def check(description, server, has_tcp):
    found = candidates(description)
    place = f"127.0.0.1 {server.udp}"
    assert [one for one, _ in found["udp"]] == [place] and "tcptype" not in found["udp"][0][1], description
    assert [one for one, _ in found["tcp"]] == ([place] if has_tcp else []), description
    assert all(words[:4] == ["typ", "host", "tcptype", "passive"] for _, words in found["tcp"]), description
    assert description.count("a=candidate:") == 1 + has_tcp, "no others"


def post(server, path, identity, direction="sendonly"):
    headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token(identity, 'reach')}"}
    status, _, answer = server.request("POST", path, bare.offer().replace("a=sendonly", f"a={direction}"), headers)
    assert status == 201, answer
    return answer


async def livekit(server):
    """What LiveKit's signalling gives out: the answer to a publisher, and the offer to a subscriber of a session with two connections."""
    query = {"access_token": token("kit", "reach"), "protocol": "15", "auto_subscribe": "1"}
    found = {}
    async with aiohttp.ClientSession() as http, http.ws_connect(server.url.replace("http", "ws", 1) + "/rtc", params=query) as socket:
        track = rtc.AddTrackRequest(cid="microphone", type=models.TrackType.AUDIO, source=models.TrackSource.MICROPHONE)
        offer = rtc.SessionDescription(type="offer", sdp=bare.offer().replace("a=mid:0", "a=mid:0\r\na=msid:stream microphone"), id=1)
        for request in (rtc.SignalRequest(add_track=track), rtc.SignalRequest(offer=offer)):
            await socket.send_bytes(request.SerializeToString())
        while found.keys() != {"answer", "offer"}:
            message = rtc.SignalResponse.FromString(await socket.receive_bytes(timeout=PATIENCE_S))
            kind = message.WhichOneof("message")
            if kind in ("answer", "offer"):
                found[kind] = getattr(message, kind).sdp
            assert kind != "trickle" or "tcp" not in message.trickle.candidateInit, "candidates are in the descriptions"
    return found


@pytest.mark.parametrize("has_tcp", [True, False], ids=["on", "off"])
def test_F9_WHIP_WHEP_and_LiveKits_descriptions_have_passive_TCP_candidates_where_media_tcp_is_on_and_nowhere_else(has_tcp):
    with running(media={"tcp": str(has_tcp).lower()}) as server:
        check(post(server, "/whip/reach", "cam"), server, has_tcp)
        check(post(server, "/whep/reach/cam", "tv", "recvonly"), server, has_tcp)
        for description in asyncio.run(livekit(server)).values():
            check(description, server, has_tcp)
