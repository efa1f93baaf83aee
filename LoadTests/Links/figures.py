"""Figures from a viewer's samples: the video's size over time, freezes, the time until the right layer, changes of layer."""
import dataclasses


@dataclasses.dataclass
class Figures:
    case: object
    server: str
    samples: list
    estimates: list
    reasons: list
    sent: list | None = None  # what the publisher's browser says
    metrics: dict | None = None  # what the server counted

    @property
    def seconds(self):
        return self.samples[-1]["t"] - self.samples[0]["t"]

    def between(self, since, until):
        return [one for one in self.samples if since <= one["t"] < until]

    @property
    def freezes(self):
        """(count, seconds) of libwebrtc's freezes: gaps of three usual intervals, or 150 ms more than one."""
        first, last = self.samples[0], self.samples[-1]
        return (last.get("freezes", 0) - first.get("freezes", 0), last.get("frozen", 0) - first.get("frozen", 0))

    @property
    def longest_gap(self):
        """The longest time without a new frame, in seconds, to the 0.2 s of the samples."""
        longest, last = 0.0, self.samples[0]
        for one in self.samples[1:]:
            if one["decoded"] > last["decoded"]:
                last = one
            longest = max(longest, one["t"] - last["t"])
        return longest

    @property
    def changes(self):
        """Changes of the video's height: (second, from, to)."""
        shown = [one for one in self.samples if one["height"]]
        return [(b["t"], a["height"], b["height"]) for a, b in zip(shown, shown[1:]) if a["height"] != b["height"]]

    @property
    def most_changes_in_five_seconds(self):
        times = [at for at, _, _ in self.changes]
        return max((sum(at <= other < at + 5 for other in times) for at in times), default=0)

    @property
    def times_to_right(self):
        """For each moment from which a size is right: seconds until it is shown and frames arrive, None for never."""
        ends = [since for since, _ in self.case.right[1:]] + [self.case.seconds]
        return [self._time_to(height, since, end) for (since, height), end in zip(self.case.right, ends)]

    def _time_to(self, height, since, end):
        part = self.between(since, end)
        for before, one in zip(part, part[1:]):
            if one["height"] == height and one["decoded"] > before["decoded"]:
                return max(0.0, before["t"] - since)
        return None

    @property
    def right_share(self):
        """Share of the time in which the right size was shown."""
        ends = [since for since, _ in self.case.right[1:]] + [self.case.seconds]
        good = total = 0
        for (since, height), end in zip(self.case.right, ends):
            part = self.between(since, end)
            good += sum(one["height"] == height for one in part)
            total += len(part)
        return good / total if total else 0.0

    @property
    def frames_per_second(self):
        return (self.samples[-1]["decoded"] - self.samples[0]["decoded"]) / self.seconds

    @property
    def kilobits(self):
        return (self.samples[-1]["bytes"] - self.samples[0]["bytes"]) * 8 / self.seconds / 1000

    @property
    def buffer_milliseconds(self):
        emitted = self.samples[-1]["emitted"] - self.samples[0]["emitted"]
        return 1000 * (self.samples[-1]["buffered"] - self.samples[0]["buffered"]) / emitted if emitted else 0.0

    @property
    def frozen_at_the_end(self):
        """Seconds of a freeze that has not ended with the samples, which no total includes yet; 0 if frames still arrive. By libwebrtc's rule: three usual
        intervals or 150 ms more than one, and the time that two samples are apart."""
        since = next((after["t"] for before, after in reversed([*zip(self.samples, self.samples[1:])]) if after["decoded"] > before["decoded"]), self.samples[0]["t"])
        still, moving = self.samples[-1]["t"] - since, since - self.samples[0]["t"]
        usual = moving / max(1, self.samples[-1]["decoded"] - self.samples[0]["decoded"])
        return still if still > 0.2 + max(3 * usual, usual + 0.15) else 0.0

    @property
    def longest_freeze(self):
        """Seconds of the longest freeze (libwebrtc's), by which the total grows when it ends, or of the one in which the samples end; if a browser counts
        none, of the longest gap."""
        if "frozen" not in self.samples[-1]:
            return self.longest_gap
        return max([self.frozen_at_the_end, *(after["frozen"] - before["frozen"] for before, after in zip(self.samples, self.samples[1:]))])

    def row(self):
        """The results of a run, by column."""
        return {"kbit/s": self.kilobits, "frames/s": self.frames_per_second, "freezes": self.freezes[0], "frozen s": self.freezes[1],
                "longest freeze s": self.longest_freeze, "s to right size": self.times_to_right, "right %": 100 * self.right_share,
                "changes": len(self.changes), "in 5 s": self.most_changes_in_five_seconds, "buffer ms": self.buffer_milliseconds}

    def as_json(self):
        return {"case": self.case.name, "server": self.server, "about": self.case.about, "freezes": self.freezes[0],
                "frozenSeconds": self.freezes[1],
                "longestFreezeSeconds": self.longest_freeze, "longestGapSeconds": self.longest_gap, "secondsToRight": self.times_to_right,
                "rightShare": self.right_share, "changes": self.changes, "framesPerSecond": self.frames_per_second,
                "kilobits": self.kilobits, "bufferMilliseconds": self.buffer_milliseconds, "samples": self.samples,
                "estimates": self.estimates, "reasons": self.reasons, "sent": self.sent, "metrics": self.metrics}


NEVER = float("inf")
COLUMNS = {"kbit/s": 0, "frames/s": 1, "freezes": 0, "frozen s": 1, "longest freeze s": 2, "s to right size": 1, "right %": 0, "changes": 0,
           "in 5 s": 0, "buffer ms": 0}
HEAD = ["case", "server", "runs", *COLUMNS]


def spread(values, digits):
    """The median of some runs, with the minimum and the maximum if they differ; None is "never"."""
    ordered = sorted(values, key=lambda one: NEVER if one is None else one)
    texts = ["never" if one is None else f"{one:.{digits}f}" for one in (ordered[(len(ordered) - 1) // 2], ordered[0], ordered[-1])]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} [{texts[1]}-{texts[2]}]"


def bound_of(case, column):
    """The bound of a case's row in a column, as text; empty if there is none."""
    bounds = case.bounds
    found = {"longest freeze s": ("≤", bounds.freeze), "s to right size": ("≤", bounds.right),
             "right %": ("≥", bounds.share and 100 * bounds.share), "changes": ("≤", bounds.changes)}.get(column)
    return f" ({found[0]} {found[1]:g})" if found and found[1] is not None else ""


def summarise(figures):
    """One row for the runs of one case through one server."""
    case, rows = figures[0].case, [one.row() for one in figures]
    cells = []
    for column, digits in COLUMNS.items():
        values = [row[column] for row in rows]
        if column == "s to right size":
            text = ", ".join(spread(moment, digits) for moment in zip(*values))
        else:
            text = spread(values, digits)
        cells.append(text + bound_of(case, column))
    return [case.name, figures[0].server, f"{len(figures)}", *cells]


def summaries(figures):
    """A row for each case and server, in the order in which they were played first."""
    groups = {}
    for one in figures:
        groups.setdefault((one.case.name, one.server), []).append(one)
    return [summarise(group) for group in groups.values()]


def table(figures):
    rows = [HEAD] + summaries(figures)
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


README_HEAD = ["link", "server", "frames/s", "longest freeze, s: median, worst", "bound", "seconds to the right size, at each change: medians (worst)", "bound",
               "at the right size", "bound", "changes of size", "bound"]


def markdown(figures):
    """The rows of LoadTests/README.md: medians and the worst of a case's runs, each followed by its bound; what is beyond its bound is bold."""
    groups = {}
    for one in figures:
        groups.setdefault((one.case.name, one.server), []).append(one)
    rows = [README_HEAD, ["---"] * len(README_HEAD)] + [_readme_row(group) for group in groups.values()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def median(values, is_least=False):
    """The middle one; of an even number, the worse of the two middle ones, which is the lower one if the bound is a minimum."""
    return sorted(values, reverse=is_least)[len(values) // 2]


def is_beyond(value, bound, is_least=False):
    return bound is not None and (value < bound if is_least else value > bound)


def medians_beyond(figures):
    """A line for each bound that the median of a case's runs breaks; only Martlet's runs have bounds."""
    groups, lines = {}, []
    for one in figures:
        if one.server == "martlet":
            groups.setdefault(one.case.name, []).append(one)
    for name, runs in groups.items():
        bounds, rows = runs[0].case.bounds, [one.row() for one in runs]
        moments = [[NEVER if one is None else one for one in moment] for moment in zip(*(row["s to right size"] for row in rows))]
        judged = [("longest freeze s", [row["longest freeze s"] for row in rows], bounds.freeze, False),
                  *[(f"s to right size, change {number + 1}", moment, bounds.right, False) for number, moment in enumerate(moments)],
                  ("right %", [row["right %"] for row in rows], bounds.share and 100 * bounds.share, True),
                  ("changes", [row["changes"] for row in rows], bounds.changes, False)]
        for column, values, bound, is_least in judged:
            if is_beyond(middle := median(values, is_least), bound, is_least):
                lines.append(f"{name}: {column}: the median is {middle:.2f}, the bound {bound:g}")
    return lines


def _readme_row(runs):
    case, rows = runs[0].case, [one.row() for one in runs]
    bounds = case.bounds

    def cell(value, digits, bound, is_least=False):
        text = "never" if value == NEVER else f"{value:.{digits}f}"
        return f"**{text}**" if is_beyond(value, bound, is_least) else text

    def pair(column, digits, bound, scale=1, is_least=False):
        values = [row[column] for row in rows]
        limit = None if bound is None else bound * scale
        return ", ".join(cell(one, digits, limit, is_least) for one in (median(values, is_least), min(values) if is_least else max(values)))

    def bound_cell(bound, unit=""):
        return "–" if bound is None else f"{bound:g}{unit}"

    moments = [sorted(NEVER if one is None else one for one in moment) for moment in zip(*(row["s to right size"] for row in rows))]
    medians = [median(moment) for moment in moments]
    worst = max((moment[-1] for moment in moments), default=0)
    right = " ".join(cell(one, 1, bounds.right) for one in medians)
    if f"{worst:.1f}" not in [f"{one:.1f}" for one in medians]:
        right += f" ({cell(worst, 1, bounds.right)})"
    share = pair("right %", 0, bounds.share, scale=100, is_least=True) + " %"
    return [("Firefox, " if case.viewer == "firefox" else "") + case.about, runs[0].server, f"{median([row['frames/s'] for row in rows], is_least=True):.1f}",
            pair("longest freeze s", 2, bounds.freeze), bound_cell(bounds.freeze), right, bound_cell(bounds.right), share,
            bound_cell(bounds.share and 100 * bounds.share, " %"), pair("changes", 0, bounds.changes), bound_cell(bounds.changes)]
