"""What a viewer's samples say: the picture's size over time, freezes, how long until the right layer, changes of layer."""
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
        """(count, seconds) of libwebrtc's freezes: gaps of three usual ones, or 150 ms more than usual."""
        return (self.samples[-1]["freezes"] - self.samples[0]["freezes"], self.samples[-1]["frozen"] - self.samples[0]["frozen"])

    @property
    def longest_gap(self):
        """The longest time without a new picture, in seconds, to the 0.2 s of the samples."""
        longest, last = 0.0, self.samples[0]
        for one in self.samples[1:]:
            if one["decoded"] > last["decoded"]:
                last = one
            longest = max(longest, one["t"] - last["t"])
        return longest

    @property
    def changes(self):
        """Changes of the picture's height: (second, from, to)."""
        shown = [one for one in self.samples if one["height"]]
        return [(b["t"], a["height"], b["height"]) for a, b in zip(shown, shown[1:]) if a["height"] != b["height"]]

    @property
    def most_changes_in_five_seconds(self):
        times = [at for at, _, _ in self.changes]
        return max((sum(at <= other < at + 5 for other in times) for at in times), default=0)

    @property
    def times_to_right(self):
        """For each moment from which a size is right: seconds until it is shown and pictures come, None for never."""
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

    def row(self):
        count, frozen = self.freezes
        right = " ".join("never" if one is None else f"{one:.1f}" for one in self.times_to_right)
        return [self.case.name, self.server, f"{self.kilobits:.0f}", f"{self.frames_per_second:.1f}", f"{count}", f"{frozen:.1f}",
                f"{self.longest_gap:.1f}", right, f"{self.right_share:.0%}", f"{len(self.changes)}",
                f"{self.most_changes_in_five_seconds}", f"{self.buffer_milliseconds:.0f}"]

    def as_json(self):
        return {"case": self.case.name, "server": self.server, "about": self.case.about, "freezes": self.freezes[0],
                "frozenSeconds": self.freezes[1], "longestGapSeconds": self.longest_gap, "secondsToRight": self.times_to_right,
                "rightShare": self.right_share, "changes": self.changes, "framesPerSecond": self.frames_per_second,
                "kilobits": self.kilobits, "bufferMilliseconds": self.buffer_milliseconds, "samples": self.samples,
                "estimates": self.estimates, "reasons": self.reasons, "sent": self.sent, "metrics": self.metrics}


HEAD = ["case", "server", "kbit/s", "fps", "freezes", "frozen s", "longest gap s", "s to right size", "right", "changes", "in 5 s", "buffer ms"]


def table(figures):
    rows = [HEAD] + [one.row() for one in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
