"""Only the loudest microphones of a room, heard by a real browser."""
import asyncio

import pytest

from conftest import running
from support.chromium import SPARING, chromium, open_room, received, until
from support.tokens import token

pytestmark = pytest.mark.judging

PEOPLE = ["ada", "bob", "carol", "dora"]
#: Each speaks for so long while the others are silent, by the clock that all pages share.
TURN_MS = 1_000
#: Two rounds: whenever a look begins, everybody is in it for as long.
SECONDS = 2 * len(PEOPLE) * TURN_MS / 1_000


def in_turns(place):
    """A script that replaces the slow oscillator of the page's tone, whose phase is chance, by turns: the `place`-th of them is this page's."""
    return f"""(() => {{
        const often = setInterval;
        const Real = OscillatorNode;
        window.OscillatorNode = function (context, options) {{
            if (options.frequency >= 1) return new Real(context, options);
            const turns = new ConstantSourceNode(context, {{ offset: -1 }});
            often(() => {{ turns.offset.value = Math.floor(Date.now() / {TURN_MS}) % {len(PEOPLE)} === {place} ? 1 : -1; }}, 10);
            return turns;
        }};
    }})()"""


def test_G9_of_four_who_take_turns_a_browser_is_sent_one_at_a_time_and_hears_as_much():
    """One page's tone after the other. The listener's counts with all microphones, then with the loudest one, in one call."""

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
            for place, name in enumerate(PEOPLE):
                page = await open_room(browser, server, "talk", name, token=token(name, "talk"), script=f"{in_turns(place)};{SPARING}")
            listener = await open_room(browser, server, "talk", "listener", token=token("listener", "talk"), send="nothing")
            await until(listener, f"martlet.received().then((all) => all.filter((r) => r.kind === 'audio' && r.packetsReceived > 100).length === {len(PEOPLE)})")
            everybody = await measure(listener)
            sections = await listener.evaluate("martlet.room.sub.getTransceivers().length")
            assert server.api("PATCH", "/v1/rooms/talk/policy", {"maxMicrophones": 1})[0] == 200
            loudest = await measure(listener)
            for what, (packets, energy, concealed) in (("all", everybody), ("the loudest", loudest)):
                print(f"figures: {what}: {packets:.0f} packets a second, energy {energy:.2f}, {concealed * 100:.1f} % made up")
            assert everybody[0] > 150 and loudest[0] < 75
            # Nobody's words are lost, save what is said before the server has heard that it is speech.
            assert loudest[1] > 0.8 * everybody[1]
            # Chromium fills the first moments of a pause with fading noise, of silence here.
            assert loudest[2] < 0.15
            # Two rounds, save the first and the last turn, which the look may cut.
            assert server.metric("martlet_microphone_switches_total") >= 2 * len(PEOPLE) - 2
            assert await listener.evaluate("martlet.room.sub.getTransceivers().length") == sections
            assert page.problems == [] and listener.problems == []

    with running() as server:
        asyncio.run(run(server))
