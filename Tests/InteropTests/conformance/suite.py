"""Checks of a protocol, each an obligation of the server, run one after the other against a server at an address.

A check is a coroutine function that raises where the server breaks the obligation. It makes rooms of its own, so checks do not disturb each other, and
it needs nothing but the server's address and an API key: it can be run against any implementation.
"""
import asyncio
import dataclasses
import time
import traceback
import uuid

from support import tokens


@dataclasses.dataclass
class Target:
    """A server under test. `host` is the address of this machine on which the suite's own media sockets listen."""
    url: str
    key: str
    secret: str
    host: str = "127.0.0.1"

    def token(self, identity, room=None, **grants):
        return tokens.token(identity, room, key=self.key, secret=self.secret, **grants)


@dataclasses.dataclass
class Outcome:
    section: str
    obligation: str
    seconds: float
    #: What went wrong; none: the obligation is kept.
    fault: str | None

    @property
    def line(self):
        return f"{'kept  ' if self.fault is None else 'BROKEN'} {self.section:5} {self.obligation} ({self.seconds:.2f} s){'' if self.fault is None else ': ' + self.fault}"


class Suite:
    """The obligations of one protocol. Each has at most `seconds`."""

    def __init__(self, name, seconds=20):
        self.name, self.seconds, self.checks = name, seconds, []

    def check(self, section, obligation):
        """Adds the decorated `async def check(target, room)`, which says what the server must do by `section` of the protocol's page."""
        def add(function):
            self.checks.append((section, obligation, function))
            return function
        return add

    async def run(self, target, only="", report=lambda outcome: None, at_once=1):
        """The outcomes of all checks whose section or obligation contains `only`; `report` is called with each as it comes."""
        places = asyncio.Semaphore(at_once)

        async def hold(section, obligation, function):
            async with places:
                outcome = await self._outcome(target, section, obligation, function)
                report(outcome)
                return outcome

        return await asyncio.gather(*(hold(*one) for one in self.checks if only in f"{one[0]} {one[1]}"))

    async def _outcome(self, target, section, obligation, function):
        begun, fault = time.monotonic(), None
        try:
            await asyncio.wait_for(function(target, f"conformance-{uuid.uuid4().hex[:12]}"), self.seconds)
        except Exception as error:  # noqa: BLE001: whatever a server provokes is a finding
            at = traceback.extract_tb(error.__traceback__)
            mine = next((frame for frame in reversed(at) if frame.filename == function.__code__.co_filename), at[-1])
            fault = f"{error or type(error).__name__} [{mine.line}]"
        return Outcome(section, obligation, time.monotonic() - begun, fault)


def expect(holds, what):
    """Raises where the obligation does not hold: `assert` would vanish under `python -O`."""
    if not holds:
        raise AssertionError(what)
