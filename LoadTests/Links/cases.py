"""The cases: what happens on a viewer's link. Directions: "ab" is towards the viewer. Rates in kbit/s, times in seconds."""
import dataclasses


@dataclasses.dataclass
class Bounds:
    """The bounds of a case; None: no bound."""
    freeze: float | None = None  # the longest, seconds
    right: float | None = None  # seconds until the right size, at each change
    share: float | None = None  # of the time at the right size
    changes: int | None = None  # of size, in all


@dataclasses.dataclass
class Case:
    name: str
    about: str
    seconds: float
    link: list  # words for linkemu at the start
    steps: list = dataclasses.field(default_factory=list)  # (second, command for linkemu)
    codec: str = "VP8"
    svc: str = ""  # a scalability mode instead of simulcast
    servers: tuple = ("martlet",)
    # (second, height): from that second on this size is the right one.
    right: list = dataclasses.field(default_factory=list)
    viewer: str = "chromium"
    bounds: Bounds = dataclasses.field(default_factory=Bounds)
    # Cases with the same word here have their viewers in one room at the same time.
    together: str = ""


def steps(*pairs):
    return [(second, f"ab rate {rate}") for second, rate in pairs]


def sawtooth(low, high, length, until):
    """From `high` to `low` and back, each for `length` seconds, from the tenth second on."""
    rates = (low, high)
    return steps(*((second, rates[n % 2]) for n, second in enumerate(range(10, until, length))))


FAR = ["both", "delay", 25]
BOTH = ("martlet", "janus")


def jitter(milliseconds, reorder):
    """A link without a limit whose delay is anything from 20 to 20 + 2 x `milliseconds`; `reorder` percent arrive without any."""
    return ["both", "delay", 25, "ab", "delay", 20 + milliseconds, "ab", "jitter", milliseconds, "ab", "reorder", reorder]


# (name, what it is, seconds, link, steps, right, bounds): each with a Chromium and with a Firefox as the viewer.
BROWSERS = [
    ("clean", "no limit", 30, FAR, [], [(0, 720)], Bounds(freeze=0.5, right=3, share=0.9, changes=1)),
    ("step", "3 Mbit/s, 0.5, and 3 again", 60, FAR + ["ab", "rate", 3000], steps((20, 500), (40, 3000)), [(10, 720), (20, 360), (40, 720)],
     Bounds(freeze=0.5, right=8, changes=4)),
    ("600", "600 kbit/s", 40, FAR + ["ab", "rate", 600], [], [(10, 360)], Bounds(freeze=0.5, right=1, share=0.8, changes=1)),
    ("hiccup", "60 kbit/s for 3 s", 40, FAR + ["ab", "rate", 3000], steps((20, 60), (23, 3000)), [(10, 720), (23, 720)], Bounds(right=4)),
    ("sawtooth", "2.5 and 0.8 Mbit/s, 8 s each", 58, FAR + ["ab", "rate", 2500], sawtooth(800, 2500, 8, 58),
     [(second, 720 if n % 2 else 360) for n, second in enumerate(range(10, 58, 8))], Bounds(freeze=0.5, right=8, changes=7)),
    ("jitter-30", "30 ms of jitter, 1 % reordered", 30, jitter(30, 1), [], [(5, 720)], Bounds(freeze=0.5, right=3, share=0.8)),
    ("jitter-60", "60 ms of jitter, 5 % reordered", 30, jitter(60, 5), [], [(5, 720)], Bounds(freeze=0.5, right=3, share=0.8)),
    ("jitter-100", "100 ms of jitter, 5 % reordered", 30, jitter(100, 5), [], [(5, 720)], Bounds(freeze=0.5, right=3, share=0.8)),
]

CASES = [
    Case(name if browser == "chromium" else f"{browser}-{name}", about, seconds, link, when, viewer=browser, right=right, bounds=bounds,
         servers=BOTH if (name, browser) == ("step", "chromium") else ("martlet",))
    for name, about, seconds, link, when, right, bounds in BROWSERS for browser in ("chromium", "firefox")
] + [
    # Chromium's two lower spatial layers take 390 to 430 kbit/s at half of the frame rate, 550 at the full one: 500 would be borderline.
    Case("step-vp9-svc", "The same with VP9 L3T3_KEY", 60, FAR + ["ab", "rate", 3000], steps((20, 700), (40, 3000)), codec="VP9", svc="L3T3_KEY",
         right=[(10, 720), (20, 360), (40, 720)], bounds=Bounds(freeze=0.7, right=8)),
    Case("step-av1-svc", "The same with AV1 L3T3", 60, FAR + ["ab", "rate", 3000], steps((20, 700), (40, 3000)), codec="AV1", svc="L3T3",
         right=[(10, 720), (20, 360), (40, 720)], bounds=Bounds(freeze=0.7, right=8)),
    Case("loss-2", "2 % random loss", 30, FAR + ["ab", "loss", 2], servers=BOTH, right=[(10, 720)], bounds=Bounds(freeze=0.5, share=0.9)),
    Case("loss-10", "10 % random loss", 30, FAR + ["ab", "loss", 10], servers=BOTH, right=[(10, 720)], bounds=Bounds(freeze=0.5, share=0.9)),
    Case("outage", "nothing for 3 s", 40, FAR + ["ab", "rate", 3000], [(20, "both loss 100"), (23, "both loss 0")],
         right=[(10, 720)], bounds=Bounds(freeze=5)),  # the outage, and two seconds
    # Longer than packets are kept for retransmission, too short for the estimate to pause the video. The bound: the gap, and three round trips with the
    # requested keyframe.
    Case("gaps", "nothing for 1.2 s, five times", 44, FAR, [(12 + 6 * n + shift, f"both loss {loss}") for n in range(5) for shift, loss in ((0, 100), (1.2, 0))],
         right=[(10, 720)], bounds=Bounds(freeze=1.5)),
    Case("narrow", "250 kbit/s from the start", 40, FAR + ["ab", "rate", 250], right=[(10, 180)], bounds=Bounds(freeze=0.5, share=0.9)),
    Case("wifi", "stalls of 150 ms twice per second", 40, FAR + ["ab", "rate", 5000],
         [(10 + n / 2 + shift, f"ab delay {delay}") for n in range(40) for shift, delay in ((0, 175), (0.15, 25))], right=[(10, 720)],
         bounds=Bounds(freeze=0.5, share=0.9)),
    Case("ten-minutes-clean", "no change of layer", 600, FAR, right=[(10, 720)], together="ten", bounds=Bounds(freeze=0.5, share=0.9, changes=1)),
    Case("ten-minutes-600", "600 kbit/s", 600, FAR + ["ab", "rate", 600], right=[(10, 360)], together="ten", bounds=Bounds(freeze=0.5, share=0.9, changes=1)),
]

# The same for the load generator's peers, all of which are behind the link: seconds count from their join.
PEERS = [
    Case("peers-step", "3 Mbit/s, 0.5, and 3 again", 60, FAR + ["ab", "rate", 3000], steps((25, 500), (45, 3000))),
    Case("peers-loss", "5 % random loss", 30, FAR + ["ab", "loss", 5]),
]
