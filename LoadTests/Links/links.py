#!/usr/bin/env python3
"""Real browsers over emulated links: one Chromium publishes, another one or a Firefox behind an impaired link watches, and reports what it received.

    make links                                  all cases, Martlet and, if a case says so, Janus: a table, .build/links/links.html and rows.md
    make links ONLY="step loss-2"               some of them
    make links ONLY=firefox-step ROUNDS=1       one run instead of five

Needs what `make test` installs, and root for network namespaces; and Janus (Debian package janus) where it is compared. The exit status is 1 when the median of
a case's runs is beyond its bound (cases.py); Tests/InteropTests/test_links.py has bounds for busy machines.
"""
import argparse
import asyncio
import contextlib
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "Tests/InteropTests"), str(HERE)]

import peers  # noqa: E402
from cases import CASES, PEERS  # noqa: E402
from figures import Figures, markdown, medians_beyond, table  # noqa: E402
from page import write_page  # noqa: E402
from support.chromium import EXECUTABLE, chromium, one_stream, open_room, room_address, until  # noqa: E402
from support.firefox import firefox  # noqa: E402
from support.network import SERVER_ADDRESS, Lab  # noqa: E402
from support.server import Server  # noqa: E402
from support.tokens import token  # noqa: E402

VIEWER = (HERE / "viewer.js").read_text()
SIMULCAST = [{"rid": "q", "scaleResolutionDownBy": 4, "maxBitrate": 150_000}, {"rid": "h", "scaleResolutionDownBy": 2, "maxBitrate": 500_000},
             {"rid": "f", "scaleResolutionDownBy": 1, "maxBitrate": 2_000_000}]
# A publisher that lacks CPU reduces the frame rate, not the size: otherwise the viewer would see the encoder's changes of size (720 to 540 lines for half of
# ten minutes on two cores of 2.5 GHz).
KEEP_LINES = """(() => {
    const add = RTCPeerConnection.prototype.addTransceiver;
    RTCPeerConnection.prototype.addTransceiver = function (...all) {
        const transceiver = add.apply(this, all);
        const parameters = transceiver.sender.getParameters();
        parameters.degradationPreference = "maintain-resolution";
        transceiver.sender.setParameters(parameters);
        return transceiver;
    };
})();"""
# A page large enough to request the largest size.
LARGE = (1700, 1050)
SENT = """async () => {
    const all = [];
    (await (window.pub ?? martlet.room.pub).getStats()).forEach((one) => { if (one.type === "outbound-rtp") all.push(one); });
    return all;
}"""


class Martlet:
    """Publisher and viewer through the console page."""

    def __init__(self, server, case):
        self.server, self.case = server, case

    async def publish(self, browser):
        layers = one_stream(self.case.svc) if self.case.svc else ""
        return await open_room(browser, self.server, "link", "ada", codec=self.case.codec, token=token("ada", "link"),
                               script=f"{KEEP_LINES}\n{layers}")

    async def view(self, browser, who):
        if self.case.viewer == "firefox":
            page = browser
            await page.open(room_address(self.server, "link", who, send="nothing", token=token(who, "link")), size=LARGE)
        else:
            page = await open_room(browser, self.server, "link", who, send="nothing", token=token(who, "link"), size=LARGE)
        await until(page, "window.martlet?.received().then((all) => all.some((r) => r.framesDecoded > 10)) ?? false", 30)
        await page.evaluate(f"({VIEWER})(martlet.room.sub)")
        return page

    def estimate(self, who):
        """The server's estimate of the viewer's link, in bit/s; None before there is one."""
        status, body = self.server.api("GET", f"/v1/rooms/link/participants/{who}/stats")
        known = [one["estimate"] for one in body["connections"] if "estimate" in one] if status == 200 else []
        return known[0] if known else None

    def metrics(self):
        """The server's counters, without zeros."""
        lines = [line.rsplit(" ", 1) for line in self.server.get_private("/metrics")[1].splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines if float(value) and "_bucket" not in name}

    def reasons(self, who):
        return self.server.api("GET", f"/v1/rooms/link/participants/{who}/decisions")[1]["decisions"]


class Janus:
    """The same through Janus's VideoRoom; the pages come from a Martlet server next to it."""

    def __init__(self, server, case):
        self.server, self.case, self.base = server, case, f"http://{SERVER_ADDRESS}:8088/janus"

    async def open(self, browser):
        page = await browser.new_page(viewport={"width": 1100, "height": 720}, bypass_csp=True)
        await page.add_init_script(KEEP_LINES)
        await page.goto(f"{self.server.url}/")
        await page.evaluate((HERE / "janus.js").read_text())
        return page

    async def publish(self, browser):
        page = await self.open(browser)
        # Largest first, as Janus numbers them: the other way round it shows the smallest as the best.
        await page.evaluate("""async ([base, encodings, codec]) => {
            const { generatedStream } = await import("/console/generated.js");
            window.pub = await janus.publish(base, 7, generatedStream({ name: "ada" }), encodings, codec);
        }""", [self.base, SIMULCAST[::-1], self.case.codec])
        return page

    async def view(self, browser, who):
        page = await self.open(browser)
        await page.evaluate("async (base) => { window.sub = await janus.view(base, 7); }", self.base)
        await page.evaluate(f"({VIEWER})(window.sub)")
        return page

    def estimate(self, who):
        return None

    def reasons(self, who):
        return []

    def metrics(self):
        return {}


@contextlib.contextmanager
def janus_in(namespace):
    """Janus in its best configuration inside `namespace`, as `make compare` starts it."""
    with tempfile.TemporaryDirectory(prefix="martlet-links-") as folder:
        started = subprocess.run(
            ["ip", "netns", "exec", namespace, str(ROOT / "LoadTests/Compare/janus.sh"), "start", SERVER_ADDRESS, folder],
            capture_output=True, text=True, timeout=30, check=True)
        process = started.stdout.split()[0]
        try:
            yield
        finally:
            subprocess.run(["kill", process], check=False)


async def play(cases, name, lab, server):
    """Plays cases with one publisher and a viewer each, at the same time through one server; returns their figures."""
    side = {"martlet": Martlet, "janus": Janus}[name](server, cases[0])
    async with contextlib.AsyncExitStack() as browsers:
        async def browser(number, kind="chromium"):
            started = firefox(lab.client(number)) if kind == "firefox" else chromium(executable=lab.wrapper(number, EXECUTABLE))
            return await browsers.enter_async_context(started)

        publisher = await side.publish(await browser(1))
        # The encoder starts with its smallest layer and adds the others: the viewer joins when the stream is complete.
        await asyncio.sleep(8)
        played = await asyncio.gather(*[watch(case, name, side, lab, number, await browser(number, case.viewer)) for number, case in enumerate(cases, 2)])
        sent = await publisher.evaluate(SENT)
        for one in played:
            one.sent, one.metrics = sent, side.metrics()
        return played


async def watch(case, name, side, lab, number, browser):
    """One viewer, client `number` of the lab, and what happens on its link."""
    for command in zip(*[iter(case.link)] * 3):
        lab.set(number, " ".join(map(str, command)))
    who = f"viewer-{number}"
    viewer = await side.view(browser, who)
    began, steps, estimates = time.monotonic(), sorted(case.steps), []
    while (now := time.monotonic() - began) < case.seconds:
        while steps and steps[0][0] <= now:
            lab.set(number, steps.pop(0)[1])
        estimates.append((now, side.estimate(who)))
        await asyncio.sleep(min(0.5, max(0.01, steps[0][0] - now)) if steps else 0.5)
    return Figures(case, name, await viewer.evaluate("samples"), estimates, side.reasons(who))


async def run(cases, name):
    with Lab("mlink", 1 + len(cases), "both", "delay", 5) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()
        try:
            with janus_in(lab.server) if name == "janus" else contextlib.nullcontext():
                return await play(cases, name, lab, server)
        finally:
            server.stop()


def together(cases):
    """The cases in the groups in which they are played."""
    return [list(group) for _, group in itertools.groupby(cases, lambda case: case.together or case.name)]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("cases", nargs="*", help="names; all of them when none is given")
    options.add_argument("--out", type=pathlib.Path, default=ROOT / ".build/links")
    options.add_argument("--rounds", type=int, default=5, help="runs of each case")
    options.add_argument("--servers", nargs="+", default=["martlet", "janus"])
    chosen = options.parse_args()
    known = {case.name: case for case in CASES + PEERS}
    if unknown := [name for name in chosen.cases if name not in known]:
        sys.exit(f"links: no case is called {', '.join(unknown)}; there are {', '.join(known)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    all_figures = []
    wanted = [known[name] for name in chosen.cases] or CASES + PEERS
    for cases in together([case for case in wanted if case in CASES]):
        for name in [one for one in cases[0].servers if one in chosen.servers]:
            for number in range(chosen.rounds):
                print(f"{', '.join(case.name for case in cases)} through {name}: {cases[0].seconds:.0f} s, run {number + 1} of {chosen.rounds} ...",
                      file=sys.stderr, flush=True)
                all_figures += asyncio.run(run(cases, name))
                print(table(all_figures[-len(cases):]), flush=True)
    if all_figures:
        (chosen.out / "links.json").write_text(json.dumps([one.as_json() for one in all_figures], indent=1))
        write_page(all_figures, chosen.out / "links.html")
        print(table(all_figures))
        (chosen.out / "rows.md").write_text(markdown(all_figures) + "\n")
        print(f"The plots are in {chosen.out / 'links.html'}, the rows for LoadTests/README.md in {chosen.out / 'rows.md'}")
    if found := [peers.play(case) for case in wanted if case in PEERS]:
        (chosen.out / "peers.json").write_text(json.dumps([one.as_json() for one in found], indent=1))
        print(peers.table(found))
    beyond = medians_beyond(all_figures)
    print("\n".join(["links: medians beyond their bounds:", *beyond] if beyond else ["links: every median keeps its bound"]))
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
