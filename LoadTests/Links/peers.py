"""The load generator's peers over the same emulated links: they account for every packet, which browsers do not."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.tokens import KEY, SECRET

HERE = pathlib.Path(__file__).resolve().parent
LOADTEST = os.environ.get("LOADTEST", str(HERE.parents[1] / ".build/release/loadtest"))
SCENARIO = HERE.parent / "Scenarios/link.json"
# The generator joins, waits for video, and then measures.
PATIENCE = 60


def play(case):
    """One run: the generator in a namespace behind the link, what it reports, and why the server chose its layers."""
    with Lab("mpeers", 1, "both", "delay", 5) as lab, tempfile.TemporaryDirectory(prefix="martlet-peers-") as folder:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
        report = pathlib.Path(folder) / "report.json"
        command = ["ip", "netns", "exec", lab.client(1), LOADTEST, "run", str(SCENARIO), "--url", server.url, "--key", KEY, "--secret", SECRET,
                   "--peer-addresses", "ports", "--json", str(report), "--quiet", "--room", "link", "--seconds", str(int(case.seconds))]
        try:
            for words in zip(*[iter(case.link)] * 3):
                lab.set(1, " ".join(map(str, words)))
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            began, steps, reasons = time.monotonic(), sorted(case.steps), []
            while process.poll() is None and time.monotonic() - began < case.seconds + PATIENCE:
                while steps and steps[0][0] <= time.monotonic() - began:
                    lab.set(1, steps.pop(0)[1])
                reasons = decisions(server) or reasons
                time.sleep(0.25)
            if process.poll() is None:
                process.kill()
            return Figures(case, json.loads(report.read_text()), reasons)
        finally:
            server.stop()


def decisions(server):
    """All decisions about the videos of everybody in the room, oldest first."""
    status, rooms = server.api("GET", "/v1/rooms")
    found = []
    for room in rooms.get("rooms", []) if status == 200 else []:
        status, body = server.api("GET", f"/v1/rooms/{room['name']}/participants")
        for one in body.get("participants", []) if status == 200 else []:
            status, told = server.api("GET", f"/v1/rooms/{room['name']}/participants/{one['identity']}/decisions")
            found += told["decisions"] if status == 200 else []
    return found


class Figures:
    def __init__(self, case, report, reasons):
        self.case, self.report, self.reasons = case, report, reasons

    def row(self):
        counts, heights = self.report["counts"], []
        for one in self.reasons:
            height = one["layer"]["height"] if "layer" in one else 0
            if heights[-1:] != [height]:
                heights.append(height)
        share = counts["lost"] / max(counts["lost"] + counts["delivered"], 1)
        return [self.case.name, f"{1000 * self.report['deliveredMegabits']:.0f}", f"{share:.1%}", f"{counts['recovered']}",
                f"{self.report['delayP50']:.0f}", f"{self.report['delayP99']:.0f}", f"{counts['jumps']}", f"{counts['pictureJumps']}",
                f"{counts['framesDecoded']}", f"{counts['framesBroken']}", " ".join(map(str, heights))]

    def as_json(self):
        return {"case": self.case.name, "about": self.case.about, "report": self.report, "reasons": self.reasons}


HEAD = ["case", "kbit/s", "lost", "repaired", "delay p50", "p99 ms", "jumps", "picture ID jumps", "decoded", "broken", "lines sent"]


def table(figures):
    rows = [HEAD] + [one.row() for one in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
