"""Waiting for what a test needs, instead of sleeping for as long as it usually takes."""
import asyncio
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
