"""Only the loudest microphones of a room, heard by a real browser."""
import asyncio

import pytest

from conftest import running
from support.chromium import chromium, open_room, received, until
from support.tokens import token

pytestmark = pytest.mark.judging

PEOPLE = ["ada", "bob", "carol", "dora"]
SECONDS = 12


def test_G9_of_four_who_take_turns_a_browser_is_sent_one_at_a_time_and_hears_as_much():
    """Each page's tone comes and goes like speech. The listener's counts with all microphones, then with the loudest one, in one call."""

    async def measure(page):
        def sums(reports):
            audio = [r for r in reports if r["kind"] == "audio"]
            assert len(audio) == len(PEOPLE)
            return [sum(r[key] for r in audio) for key in ("packetsReceived", "totalAudioEnergy", "concealedSamples", "totalSamplesReceived")]

        before = sums(await received(page))
        await page.wait_for_timeout(SECONDS * 1_000)
        packets, energy, concealed, samples = (after - first for after, first in zip(sums(await received(page)), before))
        return packets / SECONDS, energy, concealed / samples

    async def run(server):
        assert server.api("POST", "/v1/rooms", {"name": "talk", "policy": {"publishSources": ["microphone"]}})[0] == 201
        async with chromium() as browser:
            for name in PEOPLE:
                page = await open_room(browser, server, "talk", name, token=token(name, "talk"))
            listener = await open_room(browser, server, "talk", "listener", token=token("listener", "talk"), send="nothing")
            await until(listener, f"martlet.received().then((all) => all.filter((r) => r.kind === 'audio' && r.packetsReceived > 100).length === {len(PEOPLE)})")
            everybody = await measure(listener)
            sections = await listener.evaluate("martlet.room.sub.getTransceivers().length")
            assert server.api("PATCH", "/v1/rooms/talk/policy", {"maxMicrophones": 1})[0] == 200
            loudest = await measure(listener)
            for what, (packets, energy, concealed) in (("all", everybody), ("the loudest", loudest)):
                print(f"figures: {what}: {packets:.0f} packets a second, energy {energy:.2f}, {concealed * 100:.1f} % made up")
            assert everybody[0] > 150 and loudest[0] < 75
            # Two who speak at once are one now; nobody's words are lost beyond that.
            assert loudest[1] > 0.4 * everybody[1]
            # Chromium fills the first moments of a pause with fading noise, of silence here: 5 % was seen.
            assert loudest[2] < 0.15
            assert server.metric("martlet_microphone_switches_total") >= 3
            assert await listener.evaluate("martlet.room.sub.getTransceivers().length") == sections
            assert page.problems == [] and listener.problems == []

    with running() as server:
        asyncio.run(run(server))
