"""Every publisher with every player, frames decoded in each cell: make matrix, or make matrix ONLY="AV1-L3T3 Firefox".

A word of ONLY picks rows by part of their publisher's name; `publisher>player` picks cells. Results are kept in .build/matrix, so that a run of some rows completes
the table.
"""
import asyncio
import dataclasses
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from matrix.cells import Cell, play  # noqa: E402
from matrix.clients import PLAYERS, PUBLISHERS  # noqa: E402
from support.network import SERVER_ADDRESS, Lab  # noqa: E402
from support.server import Server  # noqa: E402

RESULTS = ROOT / ".build/matrix"


async def play_row(lab, publisher, players):
    """All cells of one publisher, one player after the other, so that none lives on keyframes that another one asked for."""
    server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
    cells = []
    try:
        async with PUBLISHERS[publisher].publish(lab, server):
            for player in players:
                cells.append(await play(lab, server, publisher, player))
                print(f"{publisher} > {player}: {cells[-1].text}", flush=True)
    except Exception as error:
        cells += [Cell(publisher, player, problem=f"the publisher: {error}"[:200]) for player in players[len(cells):]]
        print(f"{publisher}: {error}", flush=True)
    finally:
        server.stop()
    return cells


def picked(words):
    """publisher -> players that ONLY asks for; everything without it."""
    rows = {}
    for publisher in PUBLISHERS:
        for player in PLAYERS:
            if not words or any(matches(word, publisher, player) for word in words):
                rows.setdefault(publisher, []).append(player)
    return rows


def matches(word, publisher, player):
    wanted, _, who = word.lower().partition(">")
    return wanted in publisher.lower().replace(" ", "-") and who in player.lower()


def table(cells):
    """In Markdown."""
    found = {(one.publisher, one.player): one.text for one in cells}
    lines = ["| publisher | " + " | ".join(PLAYERS) + " |", "|" + "---|" * (len(PLAYERS) + 1)]
    for publisher in PUBLISHERS:
        lines.append(f"| {publisher} | " + " | ".join(found.get((publisher, player), "–") for player in PLAYERS) + " |")
    return "\n".join(lines)


def versions():
    def first(*command):
        try:
            text = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
            return text.splitlines()[0].strip() if text else "?"
        except OSError:
            return "?"

    import aiortc
    import imageio_ffmpeg
    commit = first("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    return ", ".join([f"commit {commit}", first("/usr/lib/chromium/chromium", "--version"), first("firefox-esr", "--version"),
                      first("/usr/bin/python3", "-c", "from gi.repository import Gst; print(Gst.version_string())"),
                      f"aiortc {aiortc.__version__}", "ffmpeg " + imageio_ffmpeg.get_ffmpeg_version()])


def main(words):
    RESULTS.mkdir(parents=True, exist_ok=True)
    with Lab("mmx", 2) as lab:
        for publisher, players in picked(words).items():
            path = RESULTS / f"{publisher.replace(' ', '-')}.json"
            kept = [Cell(**one) for one in json.loads(path.read_text())] if path.exists() else []
            fresh = asyncio.run(play_row(lab, publisher, players))
            cells = [one for one in kept if one.player not in players] + fresh
            path.write_text(json.dumps([dataclasses.asdict(one) for one in cells], indent=1))
    cells = [Cell(**one) for path in sorted(RESULTS.glob("*.json")) for one in json.loads(path.read_text())]
    text = f"{table(cells)}\n\n{datetime.date.today()}; {versions()}\n"
    (RESULTS / "matrix.md").write_text(text)
    print(text)
    known = [one for one in cells if one.is_known]
    failed = [one for one in cells if one.problem and not one.is_known]
    print(f"{len(cells) - len(known) - len(failed)} of {len(PUBLISHERS) * len(PLAYERS)} cells are good, {len(known)} fail as they are known to, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
