"""Holds a server to a protocol:

    python Tests/InteropTests/conformance martlet.v1 http://127.0.0.1:7880 KEY SECRET
    python Tests/InteropTests/conformance livekit https://sfu.example KEY SECRET --host 192.0.2.7 --only leave

One line for each obligation, then "N kept, M broken"; the exit status is 0 where none is broken.
"""
import argparse
import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from conformance import livekit_rtc, martlet_v1  # noqa: E402
from conformance.suite import Target  # noqa: E402

SUITES = {suite.name: suite for suite in (martlet_v1.SUITE, livekit_rtc.SUITE)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("protocol", choices=SUITES)
    arguments.add_argument("url", help="of the server, with http or https")
    arguments.add_argument("key", help="name of an API key")
    arguments.add_argument("secret", help="secret of that key")
    arguments.add_argument("--host", default="127.0.0.1", help="this machine's address for media (default: 127.0.0.1)")
    arguments.add_argument("--only", default="", help="only obligations with this text in their section or sentence")
    given = arguments.parse_args()
    target = Target(given.url.rstrip("/"), given.key, given.secret, given.host)
    outcomes = asyncio.run(SUITES[given.protocol].run(target, given.only, lambda outcome: print(outcome.line, flush=True)))
    broken = sum(outcome.fault is not None for outcome in outcomes)
    print(f"{len(outcomes) - broken} kept, {broken} broken")
    sys.exit(broken > 0 or not outcomes)


main()
