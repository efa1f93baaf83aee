#!/usr/bin/env python3
"""Runs every scenario in virtual time with several seeds and prints each one's distribution and the rows that some seed breaks.

    scenarios.py TEST_BINARY REPORT_FOLDER [SEED ...]

A seed is added to the scenarios' own seeds (MARTLET_SEED); those of `make test` are the default. The exit status is 1 when a seed breaks a bound.
"""
import collections
import os
import re
import statistics
import subprocess
import sys

FIGURES = re.compile(
    r"^(?P<name>.+?): utilisation (?P<use>[\d.]+), queue p95 (?P<queue>[\d.]+) ms, loss (?P<loss>[\d.]+), "
    r"longest freeze (?P<freeze>[\d.]+) ms, right layer after (?P<right>[\d.]+|never|-)"
)
BROKEN = re.compile(r'^✘ Test "(?P<title>.+?)" recorded an issue .*?Expectation failed: (?P<what>.*)')
VERDICT = re.compile(r"Test run with (\d+) tests")
COLOURS = re.compile(r"\x1b\[[\d;]*m")


def run(binary, seed, report):
    """The output's lines of one run; ends with a message when nothing ran, so that an empty run does not pass."""
    environment = dict(os.environ, MARTLET_SEED=str(seed))
    if seed == 0:
        environment["MARTLET_REPORT"] = report
    command = [binary, "--testing-library", "swift-testing", "--filter", "ScenarioTests"]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1200)
    output = COLOURS.sub("", result.stdout)
    verdict = VERDICT.search(output)
    if not verdict or int(verdict[1]) == 0:
        sys.exit(f"seed {seed}: no scenario ran\n{output[-2000:]}")
    return output.splitlines()


def spread(values, unit=""):
    """Median and both ends."""
    return f"{statistics.median(values):g}{unit} [{min(values):g} … {max(values):g}]"


def main(binary, report, *seeds):
    figures = collections.defaultdict(lambda: collections.defaultdict(list))
    broken = collections.defaultdict(dict)
    seeds = [int(seed) for seed in seeds] or list(range(0, 80, 10))
    for seed in seeds:
        for line in run(binary, seed, report):
            if match := FIGURES.match(line):
                row = figures[match["name"]]
                for key in ("use", "queue", "loss", "freeze"):
                    row[key].append(float(match[key]))
                if match["right"] not in ("never", "-"):
                    row["right"].append(float(match["right"]))
            elif match := BROKEN.match(line):
                broken[match["title"]].setdefault(seed, match["what"])
    print(f"{len(figures)} scenarios, seeds {' '.join(map(str, seeds))}: median [least … most]")
    for name, row in sorted(figures.items()):
        right = f", right layer {spread(row['right'], ' s')}" if row["right"] else ""
        print(f"{name}: {spread(row['freeze'], ' ms')} frozen{right}, used {spread(row['use'])}, "
              f"queue p95 {spread(row['queue'], ' ms')}, loss {spread(row['loss'])}")
    for title, failures in sorted(broken.items()):
        for seed, what in failures.items():
            print(f"BROKEN with seed {seed}: {title}: {what}")
    print(f"{len(seeds)} seeds, {len(broken)} tests with a bound that some seed breaks; plots of seed 0: {report}/index.html")
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
