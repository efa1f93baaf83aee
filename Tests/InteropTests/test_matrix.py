"""A few cells of the matrix of publishers and players, at night: four to five programs take a minute here. `make matrix` plays all of them."""
import asyncio

import pytest
from matrix.matrix import play_row
from support.network import Lab


@pytest.fixture(scope="module")
def lab():
    with Lab("mmt", 2) as lab:
        yield lab


@pytest.mark.judging
@pytest.mark.at_night
@pytest.mark.parametrize("publisher, players", [
    ("Chromium AV1 L3T3", ["Firefox", "aiortc"]), ("Chromium VP9 L3T3_KEY", ["GStreamer", "Firefox"]),
    ("Chromium VP9 x3", ["Chromium", "Firefox", "GStreamer"]), ("Chromium AV1 x3", ["Chromium", "Firefox"]),
], ids=lambda one: one if isinstance(one, str) else "+".join(one))
def test_2_1_layers_of_VP9_and_AV1_reach_plain_players(lab, publisher, players):
    """G8: without a dependency descriptor frames continue when layers are dropped and return; a player without the codec is reported to have none."""
    cells = asyncio.run(play_row(lab, publisher, players))
    print("figures: " + "; ".join(f"{one.player}: {one.text}" for one in cells))
    assert not [f"{one.player}: {one.problem}" for one in cells if one.problem]
