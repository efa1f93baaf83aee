"""How long a person waits for the first picture."""
import asyncio
import math
import time

import pytest

from support.chromium import EXECUTABLE, chromium, open_room, until, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.waiting import standstills

pytestmark = pytest.mark.judging

JOINS = 20
FAR_JOINS = 5
#: On a machine of its own. A slower one gets so many times what a call of the page with itself takes there: no server, no signalling, one socket.
BOUND_MS, TIMES_OWN_CALL = 700, 3

# A call of the page with itself; milliseconds until its first frame is painted.
OWN_CALL = """(async () => {
    const started = performance.now();
    const from = new RTCPeerConnection(), to = new RTCPeerConnection();
    const pen = Object.assign(document.createElement("canvas"), { width: 1280, height: 720 }).getContext("2d");
    let n = 0;
    const timer = setInterval(() => { pen.fillStyle = `hsl(${n++ * 7} 80% 50%)`; pen.fillRect(0, 0, 1280, 720); }, 33);
    const stream = pen.canvas.captureStream(30);
    from.addTrack(stream.getVideoTracks()[0], stream);
    const video = document.body.appendChild(Object.assign(document.createElement("video"), { muted: true, autoplay: true }));
    const seen = new Promise((done) => {
        to.ontrack = ({ streams }) => { video.srcObject = streams[0]; video.requestVideoFrameCallback(() => done(performance.now() - started)); };
    });
    const gathered = (connection) => new Promise((done) => {
        const look = () => connection.iceGatheringState === "complete" && done();
        connection.onicegatheringstatechange = look;
        look();
    });
    await from.setLocalDescription();
    await gathered(from);
    await to.setRemoteDescription(from.localDescription);
    await to.setLocalDescription();
    await gathered(to);
    await from.setRemoteDescription(to.localDescription);
    const took = await seen;
    clearInterval(timer);
    from.close();
    to.close();
    video.remove();
    return took;
})()"""


def percentile(values, share):
    """The smallest value that `share` of all are not above."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


async def first_frame_ms(page):
    """Milliseconds from the beginning of the stay to the first frame that the page painted."""
    await until(page, "martlet.room?.firstFrames.size > 0")
    return await page.evaluate("Math.max(...martlet.room.firstFrames.values())")


async def rejoin(page, times):
    """Leaves and joins again through the page; how long each first frame took, without time in which the machine stood still."""
    waits = []
    async with standstills() as still:
        for _ in range(times):
            await page.click("#leave")
            await page.wait_for_selector("#join")
            pressed = time.monotonic()
            await page.click("#join-button")
            took = await first_frame_ms(page)
            waits.append(took - 1000 * min(still.within(pressed, pressed + took / 1000), took / 1000))
    return waits


def test_the_first_frame_is_decoded_soon_after_the_join(server):
    """B5, D9, G6: by name into a room with a camera; 95 % within 700 ms, socket, ICE and DTLS included."""
    async def run():
        async with chromium(shared=False) as browser:
            await open_room(browser, server, "soon", "ada", send="camera")
            bob = await open_room(browser, server, "soon", "bob", send="nothing")
            await wait_for_video(bob)
            waits, own = [], []
            for _ in range(4):  # In turn, so that both meet the same machine.
                own.append(await bob.evaluate(OWN_CALL))
                waits += await rejoin(bob, JOINS // 4)
            return waits, own

    waits, own = asyncio.run(run())
    median, worst, own = percentile(waits, 0.5), percentile(waits, 0.95), percentile(own, 0.5)
    print(f"figures: join to first frame median {median:.0f} ms, p95 {worst:.0f} ms, longest {max(waits):.0f} ms of {len(waits)} joins; "
          f"a call of the page with itself {own:.0f} ms")
    assert worst <= max(BOUND_MS, TIMES_OWN_CALL * own), sorted(waits)


@pytest.mark.at_night
def test_the_first_frame_is_decoded_soon_over_a_long_round_trip():
    """B5: four of five joins within 2 s where both the subscriber and the publisher have 100 ms of round trip to the server."""
    with Lab("mfar", 2, "both", "delay", 50) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()

        async def run():
            async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as one, chromium(executable=lab.wrapper(2, EXECUTABLE)) as two:
                await open_room(one, server, "far", "ada", simulcast=0)
                bob = await open_room(two, server, "far", "bob", send="nothing")
                await wait_for_video(bob)
                return await rejoin(bob, FAR_JOINS)

        try:
            waits = asyncio.run(run())
        finally:
            server.stop()
    print(f"figures: join to first frame at 100 ms of round trip {', '.join(f'{wait:.0f}' for wait in waits)} ms")
    # Browsers and server share the processors: one join may wait for a publisher whose encoder gets none. The row of B5 says that the fifth is held to nothing.
    assert percentile(waits, 0.8) <= 2000, waits
