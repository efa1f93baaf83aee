"""One cell of the matrix: a player plays a publisher, its layers are made to change and change back, and frames are counted all the time."""
import asyncio
import dataclasses
import time

from .clients import PLAYERS, PUBLISHERS, ROOM

COUNTED = 5
"""Seconds in which frames are counted: as it begins, after the change, after the change back."""
SETTLING = 4
"""Seconds that a change without another size takes at most."""
FIRST_FRAME = 20
FULL_SIZE = 30
SMALLER_SIZE = 20
"""Seconds until the first frame, the full size and the smaller one have come: a machine that runs other things takes its time."""
DECODED, THINNED = 0.6, 0.2
"""Of the frames that were sent meanwhile, so many at least are decoded; of those whose temporal layers are left out, so many: the base is a quarter."""

KNOWN = {("Chromium VP8 x3", "aiortc"), ("Chromium H264 x3", "aiortc"), ("Firefox VP8 x3", "aiortc")}
"""Cells that may fail after their first phase: where a narrow link has lost packets, aiortc shows nothing for some 17 s (README.md has its packets)."""


@dataclasses.dataclass
class Cell:
    publisher: str
    player: str
    result: str = ""
    frames: list = dataclasses.field(default_factory=list)
    """Frames decoded in each phase: as it begins, after the change, after the change back."""
    sent: list = dataclasses.field(default_factory=list)
    """Frames that the publisher sent meanwhile."""
    heights: list = dataclasses.field(default_factory=list)
    problem: str = ""

    @property
    def is_known(self):
        """Whether it fails as it is known to: as it began, everything was there."""
        return bool(self.problem) and (self.publisher, self.player) in KNOWN and len(self.frames) > 1

    @property
    def text(self):
        if self.problem:
            return f"{'fails, as known' if self.is_known else 'FAILED'}: {self.problem}"
        if self.result:
            return self.result
        return ", ".join(f"{got}/{of} of {height}" for got, of, height in zip(self.frames, self.sent, self.heights))


async def play(lab, server, publisher_name, player_name):
    """Plays one cell; the publisher is publishing."""
    publisher, player = PUBLISHERS[publisher_name], PLAYERS[player_name]
    cell = Cell(publisher_name, player_name)
    identity = f"{player_name.lower()}-{time.monotonic_ns()}"
    try:
        async with player.play(lab, server, identity) as received:
            if publisher.codec not in player.codecs:
                await without_codec(cell, server, identity, received)
            else:
                await with_codec(cell, lab, server, publisher, player, received)
    except Exception as error:  # One cell that breaks is a result, and the others go on.
        cell.problem = f"{type(error).__name__}: {error}"[:200]
    finally:
        lab.set(2, "ab rate 0")
    return cell


async def without_codec(cell, server, identity, received):
    deadline = time.monotonic() + FIRST_FRAME
    while (states := codec_states(server, identity)) != {"no_common_codec"} and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    frames = (await received())["frames"]
    cell.result = "no common codec"
    if frames or states != {"no_common_codec"}:
        cell.problem = f"{frames} frames, the video's subscriptions are {states}, expected no_common_codec"


def codec_states(server, identity):
    """What the server says of the videos that a participant subscribes to; nothing until it has joined."""
    status, participant = server.api("GET", f"/v1/rooms/{ROOM}/participants/{identity}")
    if status != 200:
        return set()
    sid = participant["sid"]
    _, body = server.api("GET", f"/v1/rooms/{ROOM}/subscriptions")
    return {one["state"] for one in body["subscriptions"] if one["kind"] == "video" and one["subscriber"] == sid}


async def with_codec(cell, lab, server, publisher, player, received):
    deadline = time.monotonic() + FIRST_FRAME
    while not (await received())["frames"]:
        assert time.monotonic() < deadline, f"no frame within {FIRST_FRAME} s: {await received()}"
        await asyncio.sleep(0.1)
    # Estimates grow at their own pace, Firefox's slowly; that is another matter.
    deadline = time.monotonic() + FULL_SIZE
    while (await received())["height"] < publisher.height and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    await phase(cell, server, received, DECODED, "as it begins")
    if publisher.layers == 1 and not publisher.is_thinned:
        return
    is_slow = publisher.is_thinned
    for change, least, name in ((True, THINNED, "after the change"), (False, DECODED, "after the change back")):
        if player.reports_bandwidth:
            lab.set(2, f"ab rate {publisher.narrow if change else 0}")
        elif not is_slow:
            await publisher.leave_out(change)
        else:
            return
        await asyncio.sleep(SETTLING)
        deadline = time.monotonic() + (SMALLER_SIZE if change else FULL_SIZE) - SETTLING
        while not is_slow and ((await received())["height"] >= cell.heights[0]) == change and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        await phase(cell, server, received, least, name)
    if is_slow:
        shares = [got / of for got, of in zip(cell.frames, cell.sent)]
        assert shares[1] < 0.8 * shares[0], f"no frames were left out: {cell.text}"
    else:
        assert cell.heights[1] < cell.heights[0], f"no switch: {cell.text}"
        assert cell.heights[2] > cell.heights[1], f"no larger size again: {cell.text}"


def frames_of_publisher(server):
    """Frames that the server received so far, by stream: one for each time, however many spatial layers it has. Nothing is lost on the way to it."""
    _, body = server.api("GET", f"/v1/rooms/{ROOM}/participants/publisher/stats")
    return {one["ssrc"]: one["framesReceived"] for track in body["tracks"] if track["kind"] == "video" for one in track["layers"]}


async def phase(cell, server, received, least, name):
    """Counts the frames of some seconds: of those that the publisher sent, a share of at least `least` is decoded."""
    before, sent = (await received())["frames"], frames_of_publisher(server)
    await asyncio.sleep(COUNTED)
    now, later = await received(), frames_of_publisher(server)
    cell.frames.append(now["frames"] - before)
    # Streams that are left out stand still.
    cell.sent.append(max(count - sent.get(layer, 0) for layer, count in later.items()))
    cell.heights.append(now["height"])
    assert cell.sent[-1] >= COUNTED, f"{name}: the publisher sent {cell.sent[-1]} frames in {COUNTED} s"
    assert cell.frames[-1] >= least * cell.sent[-1], f"{name}: {cell.text}"
