"""Waiting for what a test needs, instead of sleeping for as long as it usually takes."""
import asyncio
import contextlib
import time

#: How long a test waits where no speed is judged: until then what it waits for may come late, on a loaded machine, but not never.
PATIENCE_S = 40


async def until_true(condition, timeout_s, what):
    """How long it took until `condition` became true."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout_s, f"not within {timeout_s} s: {what}"
        await asyncio.sleep(0.01)
    return time.monotonic() - started


class Standstills:
    """When this process got no processor, as it notices by a timer of its own: time in which a measurement stood still with the machine is nobody's fault."""

    STEP_S, LATE_S = 0.02, 0.2

    def __init__(self):
        self._found = []

    async def watch(self):
        while True:
            before = time.monotonic()
            await asyncio.sleep(self.STEP_S)
            if (now := time.monotonic()) - before > self.LATE_S:
                self._found.append((before + self.STEP_S, now))

    def within(self, start, end):
        """Seconds of standing still between two moments."""
        return sum(max(0, min(end, until) - max(start, since)) for since, until in self._found)


@contextlib.asynccontextmanager
async def standstills():
    """Watches for them meanwhile."""
    found = Standstills()
    task = asyncio.create_task(found.watch())
    try:
        yield found
    finally:
        task.cancel()
