"""What is played on a viewer's link. Directions: "ab" is towards the viewer. Rates in kbit/s, times in seconds."""
import dataclasses


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
    # (second, height): from that second on this picture is the right one.
    right: list = dataclasses.field(default_factory=list)
    # Cases with the same word here have their viewers in one room at one time.
    together: str = ""


def steps(*pairs):
    return [(second, f"ab rate {rate}") for second, rate in pairs]


FAR = ["both", "delay", 25]
BOTH = ("martlet", "janus")

CASES = [
    Case("step", "H2: 3 Mbit/s, 0.5, and 3 again", 60, FAR + ["ab", "rate", 3000], steps((20, 500), (40, 3000)),
         servers=BOTH, right=[(10, 720), (20, 360), (40, 720)]),
    # Chromium's two lower spatial layers take 390 to 430 kbit/s at half of the frames, 550 at all: 500 would be on the edge.
    Case("step-vp9-svc", "H2 with VP9 L3T3_KEY", 60, FAR + ["ab", "rate", 3000], steps((20, 700), (40, 3000)), codec="VP9", svc="L3T3_KEY",
         right=[(10, 720), (20, 360), (40, 720)]),
    Case("step-av1-svc", "H2 with AV1 L3T3", 60, FAR + ["ab", "rate", 3000], steps((20, 700), (40, 3000)), codec="AV1", svc="L3T3",
         right=[(10, 720), (20, 360), (40, 720)]),
    Case("loss-2", "H3: 2 % random loss", 30, FAR + ["ab", "loss", 2], servers=BOTH, right=[(10, 720)]),
    Case("loss-10", "H3: 10 % random loss", 30, FAR + ["ab", "loss", 10], servers=BOTH, right=[(10, 720)]),
    Case("outage", "H4: nothing for 3 s", 40, FAR + ["ab", "rate", 3000], [(20, "both loss 100"), (23, "both loss 0")],
         right=[(10, 720)]),
    Case("narrow", "250 kbit/s from the start", 40, FAR + ["ab", "rate", 250], right=[(10, 180)]),
    Case("wifi", "stalls of 150 ms twice a second", 40, FAR + ["ab", "rate", 5000],
         [(10 + n / 2 + shift, f"ab delay {delay}") for n in range(40) for shift, delay in ((0, 175), (0.15, 25))], right=[(10, 720)]),
    Case("ten-minutes-clean", "H9: no change of layer", 600, FAR, right=[(10, 720)], together="ten"),
    Case("ten-minutes-600", "H9: 600 kbit/s", 600, FAR + ["ab", "rate", 600], right=[(10, 360)], together="ten"),
]

# The same for the load generator's peers, all of whom are behind the link: seconds count from their joining.
PEERS = [
    Case("peers-step", "H2: 3 Mbit/s, 0.5, and 3 again", 60, FAR + ["ab", "rate", 3000], steps((25, 500), (45, 3000))),
    Case("peers-loss", "H3: 5 % random loss", 30, FAR + ["ab", "loss", 5]),
]
