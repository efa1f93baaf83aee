"""A martlet.v1 client without media, written from Sources/Edges/Signalling/Protocol.md alone."""
import asyncio
import contextlib
import itertools
import json
import time

import aiohttp

from .waiting import PATIENCE_S


class Signal:
    """One joined session: requests with replies, and every event with the time at which it came."""

    def __init__(self, socket):
        self._socket, self._ids, self._waiting = socket, itertools.count(1), {}
        self.events = []
        self.hello = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        async for frame in self._socket:
            if frame.type != aiohttp.WSMsgType.TEXT:
                continue
            message = json.loads(frame.data)
            if message["type"] == "hello":
                self.hello.set_result(message)
            elif "id" not in message and ("seq" in message or message["type"] == "iceServers"):
                self.events.append((time.monotonic(), message))
            elif (waiting := self._waiting.pop(message.get("id"), None)) and not waiting.done():
                waiting.set_result((message, len(frame.data)))

    async def request(self, type, **fields):
        """The reply and its size in bytes."""
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[number]
        await self._socket.send_str(json.dumps({"type": type, "id": number, **fields}))
        return await asyncio.wait_for(waiting, PATIENCE_S)

    def of(self, type, **fields):
        return [(at, e) for at, e in self.events if e["type"] == type and all(e.get(k) == v for k, v in fields.items())]

    async def wait_for(self, type, timeout_s=PATIENCE_S, **fields):
        """The first such event: (when it came, event)."""
        deadline = time.monotonic() + timeout_s
        while not (found := self.of(type, **fields)):
            assert time.monotonic() < deadline, f"no {type} {fields} within {timeout_s} s: {[e['type'] for _, e in self.events]}"
            await asyncio.sleep(0.005)
        return found[0]


@contextlib.asynccontextmanager
async def signal(server, token, **join):
    """A session that has joined; `joined` is the reply, `joined_bytes` its size."""
    async with aiohttp.ClientSession() as http:
        url = f"{server.url.replace('http', 'ws', 1)}/v1/signal"
        async with http.ws_connect(url, protocols=["martlet.v1"], headers={"Authorization": f"Bearer {token}"}) as socket:
            session = Signal(socket)
            await asyncio.wait_for(session.hello, PATIENCE_S)
            session.joined, session.joined_bytes = await session.request("join", **join)
            assert session.joined["type"] == "joined", session.joined
            keep_alive = asyncio.create_task(_ping(session))
            try:
                yield session
            finally:
                keep_alive.cancel()
                session._reader.cancel()


async def _ping(session):
    while True:
        await asyncio.sleep(8)
        await session.request("ping")
