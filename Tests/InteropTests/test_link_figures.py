"""What `make links` makes of a viewer's samples and of the runs of a case: nothing that it judges looks better than it was."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "LoadTests/Links"))
from cases import Bounds, Case  # noqa: E402
from figures import Figures, markdown, median, medians_beyond  # noqa: E402

CASE = Case("clean", "no limit", 30, [], right=[(0, 720)], bounds=Bounds(freeze=0.5, right=3, share=0.9, changes=1))


def played(until, browser="chromium"):
    """A run of thirty seconds in which frames come until a moment, thirty per second. Firefox counts no freezes."""
    counted = {"frozen": 0.0, "freezes": 0} if browser == "chromium" else {}
    return Figures(CASE, "martlet", [{"t": n / 5, "height": 720, "decoded": min(6 * n, 30 * until), "bytes": 10_000 * n, "buffered": 0.0, "emitted": 0, **counted}
                                     for n in range(151)], [], [])


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_video_that_stops_and_does_not_come_back_is_a_freeze(browser):
    """Its last frame has the right size to the end, and libwebrtc counts a freeze when it ends."""
    assert medians_beyond([played(30, browser)]) == []
    stopped = played(20, browser)
    assert stopped.longest_freeze == pytest.approx(10, abs=0.01)
    assert [line for line in medians_beyond([stopped]) if "longest freeze" in line]


def test_of_an_even_number_of_runs_the_worse_one_in_the_middle_is_judged():
    """With ROUNDS=2 the better one of both was the median."""
    good, stopped = played(30), played(20)
    assert medians_beyond([good, good, stopped]) == [] and medians_beyond([good, stopped, stopped]) != []
    assert medians_beyond([good, stopped]) != [] and medians_beyond([good, good, good, stopped]) == []
    assert (median([4, 1, 3, 2]), median([4, 1, 3, 2], is_least=True)) == (3, 2)
    assert "**10.00**" in markdown([good, stopped])
