#!/usr/bin/env python3
"""Runs every scenario in virtual time with several seeds and prints each one's distribution, the rows that any seed breaks, and the known issues.

    scenarios.py TEST_BINARY REPORT_FOLDER [SEED ...]

A seed is added to the scenarios' own seeds (MARTLET_SEED); those of `make test` are the default. The exit status is 1 if a test fails with any seed.
"""
import collections
import os
import re
import statistics
import subprocess
import sys

#: What the scenarios print about a run: a pattern that names the run and its figures, and the name of each figure with its unit.
LINES = [
    (re.compile(
        r"^(?P<name>.+?): utilisation (?P<use>[\d.]+), queue p95 (?P<queue>[\d.]+) ms, loss (?P<loss>[\d.]+), "
        r"longest freeze (?P<freeze>[\d.]+) ms, right layer after (?P<right>[\d.]+|never|-) s, changes in 5 s (?P<changes>\d+)"),
     {"freeze": ("frozen", " ms"), "right": ("right layer after", " s"), "use": ("used", ""), "queue": ("queue p95", " ms"), "loss": ("loss", ""),
      "changes": ("changes in 5 s", "")}),
    (re.compile(r"^(?P<name>H2 .+?) \d+: longest freeze (?P<freeze>\d+) ms, (?P<changes>\d+) changes, settled after \[(?P<settled>[\d. ]+)\] s"),
     {"freeze": ("frozen", " ms"), "settled": ("settled after", " s"), "changes": ("changes", "")}),
    (re.compile(
        r"^(?P<name>household) \d+: (?P<use>\d+) % used, (?P<requests>\d+) keyframe requests \((?P<most>\d+) in 2 s\), (?P<changes>\d+) changes of size, "
        r"longest freeze (?P<freeze>[\d.]+) s"),
     {"freeze": ("frozen", " s"), "use": ("used", " %"), "requests": ("keyframe requests", ""), "most": ("most in 2 s", ""), "changes": ("changes", "")}),
    (re.compile(r"^(?P<name>H5 .+?): videos (?P<videos>\d+) %, TCP (?P<flow>\d+) % of the link"), {"videos": ("videos", " %"), "flow": ("TCP", " %")}),
    (re.compile(r"^(?P<name>H5 .+?): the largest layer again after (?P<back>[\d.]+|never) s"), {"back": ("largest layer again after", " s")}),
    (re.compile(r"^(?P<name>H7 .+?): (?P<during>\d+) of (?P<before>\d+) kbit/s"), {"during": ("least estimate", " kbit/s"), "before": ("before", " kbit/s")}),
    (re.compile(r"^(?P<name>Policed): (?P<all>\d+) changes"), {"all": ("changes in all", "")}),
    (re.compile(r"^(?P<name>H9 ten minutes): (?P<attempts>\d+) times at all frames"), {"attempts": ("attempts", "")}),
    (re.compile(r"^(?P<name>camera) back in its largest layer after (?P<back>[\d.]+|never)"), {"back": ("largest layer again after", " s")}),
]
#: A failed expectation, a thrown error, an issue that a test records itself; known issues have another sign.
ISSUE = re.compile(
    r'^(?P<sign>[✘━]) Test (?P<title>".+?"|\S+?) recorded an? (?:known )?issue(?P<arguments> with \d+ arguments? .*?)? at \S+?:\d+:\d+: (?P<what>.*)')
COMMENT = re.compile(r"^↳ (?P<words>.*)")
FAILED = re.compile(r'^✘ Test (?P<title>".+?"|\S+?) (?:with \d+ test cases? )?failed after')
VERDICT = re.compile(r"Test run with (\d+) tests?")
COLOURS = re.compile(r"\x1b\[[\d;]*m")


class Outcome:
    """The results of all seeds."""

    def __init__(self):
        # By run, then by the figure's name: all values; "never" if it did not happen.
        self.figures = collections.defaultdict(lambda: collections.defaultdict(list))
        # By title, then by seed: what is wrong, each once.
        self.broken = collections.defaultdict(lambda: collections.defaultdict(dict))
        self.known = collections.defaultdict(lambda: collections.defaultdict(dict))

    def add(self, seed, output, status):
        """Reads what one run printed. Ends with a message if nothing ran, so that an empty run does not pass."""
        output = COLOURS.sub("", output)
        verdict = VERDICT.search(output)
        if not verdict or int(verdict[1]) == 0:
            sys.exit(f"seed {seed}: no scenario ran, or the tests ended early with status {status}\n{output[-2000:]}")
        failed = set()
        lines = output.splitlines()
        for line, following in zip(lines, [*lines[1:], ""]):
            self._add_figures(line)
            if match := ISSUE.match(line):
                into = self.broken if match["sign"] == "✘" else self.known
                comment = COMMENT.match(following)
                what = match["what"] + (match["arguments"] or "") + (f" ({comment['words']})" if comment else "")
                into[match["title"].strip('"')][seed][what] = True
            elif match := FAILED.match(line):
                failed.add(match["title"].strip('"'))
        named = {title for title, seeds in self.broken.items() if seed in seeds}
        for title in failed - named:
            self.broken[title][seed]["failed without a recorded issue"] = True
        if status != 0 and not failed and not named:
            self.broken["the whole run"][seed][f"status {status}"] = True

    def _add_figures(self, line):
        for pattern, names in LINES:
            if match := pattern.match(line):
                for group, name in names.items():
                    values = match[group].split()
                    self.figures[match["name"]][name] += [value if value in ("never", "-") else float(value) for value in values]

    def lines(self):
        """The report: distributions, then broken rows, then known issues."""
        for run, row in sorted(self.figures.items()):
            parts = [spread(name, unit, values) for (name, unit), values in row.items()]
            yield f"{run}: " + ", ".join(part for part in parts if part)
        for sign, found in (("BROKEN", self.broken), ("KNOWN ISSUE", self.known)):
            for title, seeds in sorted(found.items()):
                for seed, what in seeds.items():
                    yield from (f"{sign} with seed {seed}: {title}: {one}" for one in what)


def spread(name, unit, values):
    """Median and both ends, and how often it never happened; nothing if the runs are not judged by this figure ("-")."""
    seen = [value for value in values if isinstance(value, float)]
    never = values.count("never")
    text = f"{name} {statistics.median(seen):g}{unit} [{min(seen):g} … {max(seen):g}]" if seen else ""
    return text + f"{' and' if text else name} {never} times never" if never else text


def run(binary, seed, report):
    """Runs the tests once; returns the output and the exit status."""
    environment = dict(os.environ, MARTLET_SEED=str(seed))
    if seed == 0:
        environment["MARTLET_REPORT"] = report
    command = [binary, "--testing-library", "swift-testing", "--filter", "ScenarioTests"]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1200)
    return result.stdout, result.returncode


def main(binary, report, *seeds):
    seeds = [int(seed) for seed in seeds] or list(range(0, 80, 10))
    outcome = Outcome()
    for seed in seeds:
        outcome.add(seed, *run(binary, seed, report))
    print(f"{len(outcome.figures)} scenarios, seeds {' '.join(map(str, seeds))}: median [least … most]")
    print("\n".join(outcome.lines()))
    print(f"{len(seeds)} seeds, {len(outcome.broken)} tests that fail with some seed, {len(outcome.known)} with a known issue; "
          f"plots of seed 0: {report}/index.html")
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
