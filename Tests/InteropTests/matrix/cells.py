"""One cell of the matrix: a player plays a publisher, its layers are made to change and change back, and frames are counted all the time."""
import asyncio
import dataclasses
import time

from .clients import PLAYERS, PUBLISHERS, ROOM

STEADY, CHANGED, AGAIN = 5, 9, 9
"""Seconds: as it begins; after the change, of which the first four may go to it; after the change back, the same."""
SETTLING = 4
FIRST_FRAME = 10
FULL_SIZE = 30


@dataclasses.dataclass
class Cell:
    publisher: str
    player: str
    result: str = ""
    frames: list = dataclasses.field(default_factory=list)
    """Frames decoded in each phase: as it begins, after the change, after the change back."""
    heights: list = dataclasses.field(default_factory=list)
    problem: str = ""

    @property
    def text(self):
        if self.problem:
            return f"FAILED: {self.problem}"
        if self.result:
            return self.result
        heights = "-".join(map(str, self.heights))
        return f"{'+'.join(map(str, self.frames))} ({heights})"


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
                await with_codec(cell, lab, publisher, player, received)
    except Exception as error:  # One cell that breaks is a result, and the others go on.
        cell.problem = f"{type(error).__name__}: {error}"[:200]
    finally:
        lab.set(2, "ab rate 0")
    return cell


async def without_codec(cell, server, identity, received):
    await asyncio.sleep(3)
    frames = (await received())["frames"]
    states = codec_states(server, identity)
    cell.result = "no common codec"
    if frames or states != {"no_common_codec"}:
        cell.problem = f"{frames} frames, the video's subscriptions are {states}, expected no_common_codec"


def codec_states(server, identity):
    """What the server says of the videos that a participant subscribes to."""
    sid = server.api("GET", f"/v1/rooms/{ROOM}/participants/{identity}")[1]["sid"]
    _, body = server.api("GET", f"/v1/rooms/{ROOM}/subscriptions")
    return {one["state"] for one in body["subscriptions"] if one["kind"] == "video" and one["subscriber"] == sid}


async def with_codec(cell, lab, publisher, player, received):
    deadline = time.monotonic() + FIRST_FRAME
    while not (await received())["frames"]:
        assert time.monotonic() < deadline, f"no frame within {FIRST_FRAME} s: {await received()}"
        await asyncio.sleep(0.1)
    full = publisher.frames_per_second
    # Estimates grow at their own pace, Firefox's slowly; that is another matter.
    deadline = time.monotonic() + FULL_SIZE
    while (await received())["height"] < publisher.height and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    await phase(cell, received, STEADY, 0.6 * full, "as it begins")
    if publisher.layers == 1 and not publisher.is_thinned:
        return
    is_slow = publisher.is_thinned
    for change, seconds, least, name in ((True, CHANGED, 0.2 * full, "after the change"), (False, AGAIN, 0.6 * full, "after the change back")):
        if player.reports_bandwidth:
            lab.set(2, f"ab rate {publisher.narrow if change else 0}")
        elif not is_slow:
            await publisher.leave_out(change)
        else:
            return
        await asyncio.sleep(SETTLING)
        await phase(cell, received, seconds - SETTLING, least, name)
    before, changed = (cell.frames[0], cell.frames[1]) if is_slow else (cell.heights[0], cell.heights[1])
    assert changed < before, f"no switch: {'frames' if is_slow else 'heights'} {before}, then {changed}"


async def phase(cell, received, seconds, least, name):
    """Counts the frames of some seconds; at least `least` a second."""
    before = (await received())["frames"]
    await asyncio.sleep(seconds)
    now = await received()
    cell.frames.append(now["frames"] - before)
    cell.heights.append(now["height"])
    assert cell.frames[-1] >= least * seconds, f"{name}: {cell.frames[-1]} frames in {seconds} s ({cell.frames}, {cell.heights})"
