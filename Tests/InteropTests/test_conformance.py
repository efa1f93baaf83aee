"""The suites of `conformance`, against this server and against one that keeps no obligation."""
import asyncio

import pytest
from aiohttp import WSMsgType, web
from conformance import livekit_rtc, martlet_v1
from conformance.suite import Target
from support.tokens import KEY, SECRET

SUITES = [martlet_v1.SUITE, livekit_rtc.SUITE]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_C15_the_server_keeps_every_obligation_of_its_protocols(server, suite):
    outcomes = asyncio.run(suite.run(Target(server.url, KEY, SECRET)))
    assert len(outcomes) == len(suite.checks) and not (broken := [one.line for one in outcomes if one.fault is not None]), broken
    print(f"figures: {len(outcomes)} obligations of {suite.name} in {sum(one.seconds for one in outcomes):.1f} s")


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_C15_no_check_passes_against_a_server_that_sends_back_what_it_gets(suite):
    async def echo(request):
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.json_response({})
        socket = web.WebSocketResponse(protocols=["martlet.v1"])
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await socket.send_bytes(message.data)
        return socket

    async def run():
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", echo)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        outcomes = await suite.run(Target(f"http://127.0.0.1:{port}", KEY, SECRET), at_once=len(suite.checks))
        await runner.cleanup()
        return outcomes

    outcomes = asyncio.run(run())
    assert len(outcomes) == len(suite.checks) and not (kept := [one.line for one in outcomes if one.fault is None]), kept
