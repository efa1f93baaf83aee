"""Which room a join leads to (B4), spoken plainly over the WebSocket protocol."""
import asyncio

import aiohttp
import pytest

from support.tokens import token


async def joined(server, access, **asked):
    """The reply to a join with this token; `asked` may name a room."""
    async with aiohttp.ClientSession() as session:
        address = f"{server.url}/v1/signal?access_token={access}"
        async with session.ws_connect(address, protocols=["martlet.v1"]) as socket:
            assert (await socket.receive_json())["type"] == "hello"
            await socket.send_json({"type": "join", "id": 1, **asked})
            return await socket.receive_json()


@pytest.mark.parametrize("granted, asked, room", [
    ("R1", {}, "R1"),
    ("R1", {"room": "R2"}, "R1"),
    (None, {"room": "R2"}, "R2"),
    (None, {}, "Broadcast"),
])
def test_the_room_comes_from_the_grant_then_the_wish_then_the_default(server, granted, asked, room):
    """B4: the token's room wins over the asked one; with neither it is the default room."""
    reply = asyncio.run(joined(server, token("ada", granted), **asked))
    assert reply["type"] == "joined" and reply["room"]["name"] == room


def test_an_empty_wish_makes_a_room_with_a_name_of_its_own(server):
    """B4: the generated name is in the reply, and two of them differ."""
    names = {asyncio.run(joined(server, token("ada"), room=""))["room"]["name"] for _ in range(2)}
    assert len(names) == 2 and all(names) and "Broadcast" not in names
