#!/usr/bin/env python3
"""What it costs to record a hundred tracks of 1 Mbit/s, and how it affects their calls: the scenario `recorded` without and with recordings in turn, A B A B.

    recording.py [--rounds 2] [--seconds 30] [--folder FOLDER] [--freeze]

FOLDER: a folder on the disk to measure; default: .build/recorded. With --freeze, as root, each round has a third run in which the disk, a separate
file system, is frozen for ten seconds in the middle.

Each run has a new server. Prints a row for each run and the medians, and judges p99: it is unchanged if its median does not exceed the larger of the worst
round without recordings and 1.1 times their median. The exit status is 0 if it is unchanged. Cores of others: the work of the machine besides server and
generator, which has to be nearly nothing for the figures to be meaningful; in runs with recordings it includes the kernel's threads that write the files to
the disk.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/InteropTests"))
from support.disks import frozen, own_disk  # noqa: E402
from support.server import Server  # noqa: E402
from support.tokens import KEY, SECRET  # noqa: E402

SCENARIO = ROOT / "LoadTests/Scenarios/recorded.json"
PLAN = json.loads(SCENARIO.read_text())
PEERS, TRACKS = PLAN["rooms"] * (PLAN["publishers"] + PLAN["subscribers"]), PLAN["rooms"] * PLAN["publishers"]
TICKS = os.sysconf("SC_CLK_TCK")
PLAIN, RECORDED, FROZEN = "not recorded", "recorded", "recorded, disk frozen for ten seconds"


@contextlib.contextmanager
def freezing(folder, after):
    """Freezes the disk for ten seconds, beginning after `after` seconds, while the body runs."""
    def freeze():
        time.sleep(after)
        with frozen(folder):
            time.sleep(10)

    thread = threading.Thread(target=freeze, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def machine_seconds():
    """Processor time of the whole machine that was not idle, and that the hypervisor gave to others.

    Computed from idle time, which the kernel measures; the rest it only samples, and so misses what runs between two ticks, such as a media thread's turns."""
    idle, wait, _, _, steal = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[4:9])
    return time.monotonic() * os.cpu_count() - (idle + wait + steal) / TICKS, steal / TICKS


def thread_seconds(server, name):
    total = 0
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        try:
            head, _, rest = (task / "stat").read_text().rpartition(")")
        except OSError:
            continue
        if head.partition("(")[2] == name:
            total += sum(map(int, rest.split()[11:13]))
    return total / TICKS


def measured(server, seconds):
    """The figures of so many seconds from now on."""
    def look():
        busy, stolen = machine_seconds()
        return time.monotonic(), busy, stolen, thread_seconds(server, "recorder"), server.metric("martlet_recording_bytes_written_total")

    before = look()
    time.sleep(seconds)
    span, *used = (after - start for after, start in zip(look(), before))
    return dict(zip(("busyCores", "stolenCores", "recorderCores", "writtenPerSecond"), (one / span for one in used)))


def run(kind, seconds, folder):
    """One run of the load; returns the results. The separate disk is larger than the reserve that recordings leave."""
    shutil.rmtree(folder, ignore_errors=True)
    with own_disk(folder, "8G") if kind == FROZEN else contextlib.nullcontext():
        return measure(kind, seconds, folder, folder / "files")


def measure(kind, seconds, disk, folder):
    server = Server(workers=1, extra=f"admission: {{max_cpu: 100}}\nrecording:\n  directory: {folder}\n").start()
    found, recorded = {}, kind != PLAIN

    def watch():
        while server.metric("martlet_participants") < PEERS:
            time.sleep(0.1)
        joined = time.monotonic()
        if recorded:
            for room in server.api("GET", "/v1/rooms")[1]["rooms"]:
                status, answer = server.api("POST", f"/v1/rooms/{room['name']}/recordings", {})
                assert status == 201, answer
        time.sleep(PLAN["warmupSeconds"] - (time.monotonic() - joined))
        # The load may be over before its measurement is.
        found["tracks"] = server.metric("martlet_recorded_tracks")
        with freezing(disk, (seconds - 10) / 2) if kind == FROZEN else contextlib.nullcontext():
            found.update(measured(server, seconds))
        found["gaps"] = server.metric("martlet_recording_gaps_total")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory() as place:
            report = pathlib.Path(place) / "report.json"
            subprocess.run([ROOT / ".build/release/loadtest", "run", SCENARIO, "--url", server.url, "--key", KEY, "--secret", SECRET, "--server-pid",
                            str(server.process.pid), "--seconds", str(seconds), "--json", report, "--quiet"], check=True)
            played = json.loads(report.read_text())
        watcher.join(20)
    finally:
        code = server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    assert code == 0 and found and found["tracks"] == (TRACKS if recorded else 0), (code, found)
    return {
        "kind": kind, "server cores": played["serverCores"], "recorder's thread": found["recorderCores"],
        "generator cores": played["generatorCores"], "others' cores": found["busyCores"] - played["serverCores"] - played["generatorCores"],
        "stolen cores": found["stolenCores"], "memory MB": statistics.median(one["residentBytes"] for one in played["timeline"]) / 1e6,
        "written MB/s": found["writtenPerSecond"] / 1e6, "p50 ms": played["delayP50"], "p99 ms": played["delayP99"],
        "packets/s": played["deliveredPerSecond"], "lost": played["counts"]["lost"], "frames sent late": played["counts"]["lateFrames"], "gaps": found["gaps"],
    }


def show(title, row):
    print(title, *(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items() if name != "kind"), sep="; ", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".build/recorded")
    parser.add_argument("--freeze", action="store_true")
    given = parser.parse_args()
    if given.freeze and given.seconds < 20:
        parser.error("--freeze needs --seconds 20 or more: the disk stands still for ten of them")
    kinds, rows = (PLAIN, RECORDED, FROZEN) if given.freeze else (PLAIN, RECORDED), []
    for number in range(given.rounds):
        for kind in kinds:
            rows.append(run(kind, given.seconds, given.folder.resolve()))
            show(f"round {number + 1}, {kind}", rows[-1])
    delays = {kind: [row["p99 ms"] for row in rows if row["kind"] == kind] for kind in kinds}
    for kind in kinds:
        those = [row for row in rows if row["kind"] == kind]
        show(f"median, {kind}", {name: float(statistics.median(row[name] for row in those)) for name in those[0] if name != "kind"})
    # The noise is the difference between rounds without recordings.
    bound, worse = max(*delays[PLAIN], 1.1 * statistics.median(delays[PLAIN])), False
    for kind in kinds[1:]:
        found = statistics.median(delays[kind])
        worse = worse or found > bound
        print(f"p99 {'is worse' if found > bound else 'is unchanged'}, {kind}: {found:.2f} ms in the middle of {[round(one, 2) for one in delays[kind]]}, "
              f"without recordings {[round(one, 2) for one in delays[PLAIN]]}, bound {bound:.2f}")
    sys.exit(worse)


if __name__ == "__main__":
    main()
