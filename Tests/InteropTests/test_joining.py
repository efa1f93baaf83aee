"""Which room a join leads to, spoken plainly over the WebSocket protocol, and what is refused."""
import asyncio
import json

import time
from urllib.parse import quote

import aiohttp
import pytest

from conftest import running
from support.bare import offer
from support.tokens import token


async def joined(server, access, query="", **asked):
    """The reply to a join with this token; `asked` may name a room."""
    async with aiohttp.ClientSession() as session:
        address = f"{server.url}/v1/signal?access_token={access}{query}"
        async with session.ws_connect(address, protocols=["martlet.v1"]) as socket:
            assert (await socket.receive_json())["type"] == "hello"
            await socket.send_json({"type": "join", "id": 1, **asked})
            return await socket.receive_json()


def refused(server, method, path, access, body=None, type="application/sdp"):
    """(status, code) of a request that is not carried out."""
    status, _, text = server.request(method, path, body, {"Authorization": f"Bearer {access}", "Content-Type": type})
    return status, json.loads(text).get("code") if text.startswith("{") else text[:40]


@pytest.mark.parametrize("granted, asked, room", [
    ("R1", {}, "R1"),
    ("R1", {"room": "R1"}, "R1"),
    ("R1", {"room": ""}, "R1"),
    (None, {"room": "R2"}, "R2"),
    (None, {}, "Broadcast"),
])
def test_B4_the_room_comes_from_the_grant_then_the_request_then_the_default(server, granted, asked, room):
    reply = asyncio.run(joined(server, token("ada", granted), **asked))
    assert reply["type"] == "joined" and reply["room"]["name"] == room


def test_B4_an_empty_request_creates_a_room_with_a_generated_name(server):
    """The generated name is in the reply, and two of them differ."""
    names = {asyncio.run(joined(server, token("ada"), room=""))["room"]["name"] for _ in range(2)}
    assert len(names) == 2 and all(names) and "Broadcast" not in names


def test_B4_another_room_than_the_tokens_is_refused_on_every_edge(server):
    """403 room_mismatch in join, in the WebSocket's address, on WHIP, WHEP, the control API and resume, as LiveKit refuses in its API; and no room is created."""
    kitchen, operator = token("ada", "kitchen"), token("op", "kitchen", roomAdmin=True, roomCreate=True, roomList=True)
    reply = asyncio.run(joined(server, kitchen, room="board"))
    assert (reply["type"], reply.get("code")) == ("error", "room_mismatch"), reply
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        asyncio.run(joined(server, kitchen, query="&room=board"))
    assert error.value.status == 403
    assert server.api("GET", "/v1/rooms")[1]["rooms"] == []
    assert refused(server, "GET", "/v1/signal?room=board", kitchen) == (403, "room_mismatch")
    for path in ("/whip/board", "/whep/board", "/whep/board/bob"):
        assert refused(server, "POST", path, kitchen, offer()) == (403, "room_mismatch"), path
    for method, path in (("GET", "/v1/rooms/board"), ("DELETE", "/v1/rooms/board"), ("DELETE", "/v1/rooms/board/participants/bob")):
        assert refused(server, method, path, operator) == (403, "room_mismatch"), path
    assert refused(server, "POST", "/v1/rooms", operator, '{"name":"board"}', "application/json") == (403, "room_mismatch")
    # LiveKit's server API has the codes of Twirp and of LiveKit's server; its clients name no room beside the token's.
    for call, body in (("CreateRoom", {"name": "board"}), ("DeleteRoom", {"room": "board"}), ("ListParticipants", {"room": "board"})):
        reply = refused(server, "POST", f"/twirp/livekit.RoomService/{call}", operator, json.dumps(body), "application/json")
        assert reply == (401, "unauthenticated"), (call, reply)
    assert server.api("GET", "/v1/rooms")[1]["rooms"] == []

    async def resume():
        async with aiohttp.ClientSession() as http:
            async def socket(access):
                one = await http.ws_connect(f"{server.url}/v1/signal?access_token={access}")
                await one.receive_json()
                return one

            one, two = await socket(token("ada", "board")), await socket(kitchen)
            await one.send_json({"type": "join", "id": 1})
            session = (await one.receive_json())["session"]
            await two.send_json({"type": "resume", "id": 1, "session": session, "seq": 0})
            return await two.receive_json()

    assert asyncio.run(resume())["code"] == "room_mismatch"


@pytest.mark.parametrize("name", [".", "..", " ", "\u00a0", "a\nb", "a\u202eb", "a\u0000b", "x" * 257])
def test_4_2_a_name_unfit_for_a_path_or_a_line_creates_no_room(server, name):
    reply = asyncio.run(joined(server, token("ada"), room=name))
    assert (reply["type"], reply.get("code")) == ("error", "invalid_request"), reply
    status, problem = server.api("POST", "/v1/rooms", {"name": name})
    assert status == 400, problem
    assert server.api("GET", "/v1/rooms")[1]["rooms"] == []


@pytest.mark.parametrize("name", ["a/b", "%2e%2e", "Füße & Ä?#", "...", "\U0001f469\u200d\U0001f467" * 85, "e\u0301"])
def test_4_2_a_room_with_an_accepted_name_can_be_addressed(server, name):
    assert asyncio.run(joined(server, token("ada"), room=name))["room"]["name"] == name
    status, detail = server.api("GET", f"/v1/rooms/{quote(name, safe='')}")
    assert status == 200 and detail["room"]["name"] == name


def test_1_5_a_token_for_microphones_publishes_no_video(server):
    """Announced as a microphone before the offer, after it, or not at all: the section is not received."""
    async def run():
        async with aiohttp.ClientSession() as http:
            access = token("ada", "sources", canPublishSources=["microphone"])
            async with http.ws_connect(f"{server.url}/v1/signal?access_token={access}") as socket:
                number = 0

                async def ask(type, **fields):
                    nonlocal number
                    number += 1
                    await socket.send_json({"type": type, "id": number, **fields})
                    while (reply := await socket.receive_json()).get("id") != number:
                        pass
                    return reply

                await socket.receive_json()
                await ask("join")
                video = offer().replace("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96").replace(
                    "111 opus/48000/2", "96 VP8/90000").replace("a=mid:0", "a=mid:0\r\na=msid:s cam")
                assert (await ask("announce", tracks=[{"track": "cam", "source": "microphone"}]))["type"] == "ok"
                answer = await ask("offer", connection="pub", sdp=video)
                assert answer["tracks"] == {} and "a=inactive" in answer["sdp"], answer
                answer = await ask("offer", connection="voice", sdp=offer())
                assert len(answer["tracks"]) == 1
                reply = await ask("announce", tracks=[{"track": "0", "source": "screen"}])
                assert reply["type"] == "error", reply

    asyncio.run(run())


def test_1_6_a_stolen_session_id_is_useless(server):
    """Another identity, a token without roomJoin, other grants: no resume; the same bearer with a newer token resumes."""
    async def run():
        async with aiohttp.ClientSession() as http:
            async def said(access, message):
                async with http.ws_connect(f"{server.url}/v1/signal?access_token={access}") as socket:
                    await socket.receive_json()
                    await socket.send_json({"id": 1, **message})
                    return await socket.receive_json()

            session = (await said(token("ada", "r"), {"type": "join"}))["session"]
            resume = {"type": "resume", "session": session, "seq": 0}
            for access, code in [
                (token("eve", "r"), "session_not_found"), (token("ada", "q"), "room_mismatch"),
                (token("ada", "r", roomJoin=False), "permission_denied"), (token("ada", "r", canPublish=False), "grants_changed"),
                (token("ada", "r", roomAdmin=True), "grants_changed"),
            ]:
                reply = await said(access, resume)
                assert (reply["type"], reply.get("code")) == ("error", code), reply
            assert (await said(token("ada", "r", lifetime_s=9), resume))["type"] == "resumed"

    asyncio.run(run())


def test_4_8_older_tokens_do_not_return_after_an_operator_ended_the_session():
    """A removed participant and a deleted room: older tokens are refused for rooms.closed_for, newer ones are accepted."""
    now = int(time.time())
    old = {name: token(name, "hall", issued_at=now - 60) for name in ("ada", "bob", "eve", "cam")}

    def join(server, access):
        reply = asyncio.run(joined(server, access))
        return reply.get("code", reply["type"])

    with running(extra="rooms: {closed_for: 60}\n") as server:
        assert server.api("POST", "/v1/rooms", {"name": "hall", "policy": {"maxParticipants": 3}})[0] == 201
        assert join(server, old["ada"]) == "joined" and join(server, old["bob"]) == "joined"
        status, closure = server.api("DELETE", "/v1/rooms/hall/participants/ada")
        assert status == 200 and closure["closedForSeconds"] == 60 and now <= closure["acceptsTokensIssuedAfter"] <= time.time()
        assert join(server, old["ada"]) == "participant_removed"
        assert join(server, token("ada", "hall", issued_at=closure["acceptsTokensIssuedAfter"] + 1)) == "joined"
        status, closure = server.api("DELETE", "/v1/rooms/hall")
        assert status == 200 and closure["closedForSeconds"] == 60
        assert join(server, old["eve"]) == "room_closed"
        assert refused(server, "POST", "/whip/hall", old["cam"], offer()) == (410, "room_closed")
        assert server.api("GET", "/v1/rooms")[1]["rooms"] == [], "it does not come back without its limits"
        assert join(server, token("eve", "hall", issued_at=closure["acceptsTokensIssuedAfter"] + 1)) == "joined"
    with running(extra="rooms: {closed_for: 1}\n") as server:
        assert join(server, old["ada"]) == "joined"
        assert server.api("DELETE", "/v1/rooms/hall")[1]["closedForSeconds"] == 1
        time.sleep(1.1)
        assert join(server, old["ada"]) == "joined"


def test_1_7_no_page_of_another_origin_gets_a_token_of_a_development_server(development_server):
    server = development_server

    def ask(**headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return server.request("POST", "/dev/token", {"identity": "ada"}, headers)[0]

    assert ask() == 200 and ask(Origin=server.url) == 200 and ask(Origin=server.url, Sec_Fetch_Site="same-origin") == 200
    for headers in [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:3000"}, {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"}, {"Host": f"evil.example:{server.http}", "Origin": f"http://evil.example:{server.http}"},
        {"Host": "evil.example"},
    ]:
        assert ask(**headers) == 403, headers


def test_C2_fifty_first_joins_at_once_create_one_room(server):
    """Fifty open sockets join a new room name at the same moment."""
    async def run():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            sockets = await asyncio.gather(*(
                http.ws_connect(f"{server.url.replace('http', 'ws', 1)}/v1/signal?access_token={token(f'm{n}', 'new')}") for n in range(50)))
            for socket in sockets:
                assert (await socket.receive_json())["type"] == "hello"
            assert server.api("GET", "/v1/rooms")[1]["rooms"] == []
            await asyncio.gather(*(socket.send_json({"type": "join", "id": 1}) for socket in sockets))

            async def reply(socket):
                while (message := await socket.receive_json()).get("id") != 1:
                    pass
                return message

            replies = await asyncio.gather(*(reply(socket) for socket in sockets))
            assert {one["type"] for one in replies} == {"joined"}
            assert len({one["room"]["sid"] for one in replies}) == 1
            (room,) = server.api("GET", "/v1/rooms")[1]["rooms"]
            assert room["participants"] == 50

    asyncio.run(run())
