"""What `make scenarios` makes of the output of the scenarios' tests: recorded lines of swift-testing 6.3.1 and of the scenarios, and a program that prints them."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Support"))
import scenarios  # noqa: E402

GOOD = '''\
◇ Test run started.
◇ Test "H7: holds" started.
seed 10: H2: a link falls from 3 to 0.5 Mbit/s
H2 step down: utilisation 0.34, queue p95 14.0 ms, loss 0.0, longest freeze 368.0 ms, right layer after 0.8 s, changes in 5 s 0, estimate 0.9 [0.85…0.94] of capacity, probes 3.1 kbit/s
H4 bursts: utilisation 1.01, queue p95 18.0 ms, loss 0.0, longest freeze 176.0 ms, right layer after - s, changes in 5 s 1, estimate 0.9 [0.85…0.94] of capacity, probes 3.1 kbit/s
H2 down, 3 temporal layers 7: longest freeze 478 ms, 1 changes, settled after [0.7] s, shares of sizes [94 0 6] %
H2 sawtooth, 1 temporal layers 2: longest freeze 303 ms, 6 changes, settled after [0.7 0.8 1.0] s, shares of sizes [40 50 10] %
household 71: 89 % used, 7 keyframe requests (3 in 2 s), 8 changes of size, longest freeze 0.4 s, kbit/s [520, 530]
H5 cubic 100: videos 19 %, TCP 80 % of the link
camera back in its largest layer after never s
✔ Test "H7: holds" passed after 0.001 seconds.
'''
KNOWN = '''\
━ Test "H12: five subscribers share 3 Mbit/s" recorded a known issue with 1 argument seed → 72 at HouseholdTests.swift:81:13: Expectation failed: (outcome.mostIn2Seconds → 3) <= 1
↳ losses after one raise too many cost keyframes for repair
━ Test "H12: five subscribers share 3 Mbit/s" with 5 test cases passed after 9.1 seconds with 1 known issue.
'''
ISSUES = {
    "an expectation": ('✘ Test "H1: an expectation does not hold" recorded an issue with 2 arguments a → 500, b → 1 at Rec.swift:5:115: Expectation failed: (a → 500) < 400\n'
                       "↳ H1 steady 500: freeze\n",
                       "H1: an expectation does not hold: Expectation failed: (a → 500) < 400 with 2 arguments a → 500, b → 1 (H1 steady 500: freeze)"),
    "an error": ('✘ Test "H2: an error is thrown" recorded an issue at Rec.swift:6:6: Caught error: Broken()\n', "H2: an error is thrown: Caught error: Broken()"),
    "recorded by hand": ('✘ Test "H3: recorded by hand" recorded an issue at Rec.swift:7:63: Issue recorded\n↳ the layer was left\n',
                         "H3: recorded by hand: Issue recorded (the layer was left)"),
    "a requirement": ('✘ Test "H4: required" recorded an issue at Rec.swift:8:60: Expectation failed: Int("x") → nil\n', 'H4: required: Expectation failed: Int("x") → nil'),
    "known no longer": ('✘ Test "H6: known no longer" recorded an issue at Rec.swift:10:69: Known issue was not recorded\n↳ losses cost keyframes\n',
                        "H6: known no longer: Known issue was not recorded (losses cost keyframes)"),
    "without a title": ("✘ Test noTitle() recorded an issue at Rec.swift:12:28: Expectation failed: 1 > 2\n", "noTitle(): Expectation failed: 1 > 2"),
    "without an issue": ('✘ Test "H1: an expectation does not hold" with 2 test cases failed after 0.001 seconds with 1 issue.\n',
                         "H1: an expectation does not hold: failed without a recorded issue"),
}


def verdict(word):
    return f"✘ Test run with 9 tests in 1 suite {word} after 0.002 seconds with 8 issues (including 2 known issues).\n"


def play(tmp_path, capsys, output, status, *seeds):
    """Runs the script over a program that prints `output` whatever it is asked, and ends with `status`."""
    program = tmp_path / "tests"
    (tmp_path / "output").write_text(output)
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/output"\nexit {status}\n')
    program.chmod(0o755)
    result = scenarios.main(str(program), str(tmp_path / "report"), *seeds)
    return result, capsys.readouterr().out.splitlines()


def test_figures_become_distributions_and_known_issues_are_listed(tmp_path, capsys):
    result, lines = play(tmp_path, capsys, GOOD + KNOWN + verdict("passed"), 0, "0", "10")
    assert result == 0
    assert lines[0] == "7 scenarios, seeds 0 10: median [least … most]"
    assert "H2 step down: frozen 368 ms [368 … 368], right layer after 0.8 s [0.8 … 0.8], used 0.34 [0.34 … 0.34], queue p95 14 ms [14 … 14], " \
        "loss 0 [0 … 0], changes in 5 s 0 [0 … 0]" in lines
    assert "H4 bursts: frozen 176 ms [176 … 176], used 1.01 [1.01 … 1.01], queue p95 18 ms [18 … 18], loss 0 [0 … 0], changes in 5 s 1 [1 … 1]" in lines
    assert "H2 down, 3 temporal layers: frozen 478 ms [478 … 478], settled after 0.7 s [0.7 … 0.7], changes 1 [1 … 1]" in lines
    assert "H2 sawtooth, 1 temporal layers: frozen 303 ms [303 … 303], settled after 0.8 s [0.7 … 1], changes 6 [6 … 6]" in lines
    assert "household: frozen 0.4 s [0.4 … 0.4], used 89 % [89 … 89], keyframe requests 7 [7 … 7], most in 2 s 3 [3 … 3], changes 8 [8 … 8]" in lines
    assert "H5 cubic 100: videos 19 % [19 … 19], TCP 80 % [80 … 80]" in lines
    assert "camera: largest layer again after 2 times never" in lines
    known = "H12: five subscribers share 3 Mbit/s: Expectation failed: (outcome.mostIn2Seconds → 3) <= 1 with 1 argument seed → 72 " \
        "(losses after one raise too many cost keyframes for repair)"
    assert [line for line in lines if line.startswith("KNOWN")] == [f"KNOWN ISSUE with seed {seed}: {known}" for seed in (0, 10)]
    assert lines[-1].startswith("2 seeds, 0 tests that fail with some seed, 1 with a known issue;")


@pytest.mark.parametrize("kind", ISSUES)
def test_every_kind_of_failure_is_named_and_counts(tmp_path, capsys, kind):
    output, expected = ISSUES[kind]
    result, lines = play(tmp_path, capsys, GOOD + output + verdict("failed"), 1, "30")
    assert result == 1 and f"BROKEN with seed 30: {expected}" in lines
    assert lines[-1].startswith("1 seeds, 1 tests that fail with some seed, 0 with a known issue;")


def test_colours_hide_nothing(tmp_path, capsys):
    output, expected = ISSUES["an error"]
    result, lines = play(tmp_path, capsys, GOOD + output.replace("✘", "\x1b[91m✘\x1b[0m") + verdict("failed"), 1, "30")
    assert result == 1 and f"BROKEN with seed 30: {expected}" in lines


def test_a_status_without_a_failed_test_is_a_failure(tmp_path, capsys):
    result, lines = play(tmp_path, capsys, GOOD + verdict("passed"), 3, "0")
    assert result == 1 and "BROKEN with seed 0: the whole run: status 3" in lines


@pytest.mark.parametrize("output", ["", GOOD, "✔ Test run with 0 tests in 0 suites passed after 0.001 seconds.\n"], ids=["nothing", "no verdict", "no tests"])
def test_a_run_without_tests_or_without_an_end_is_no_success(tmp_path, capsys, output):
    with pytest.raises(SystemExit, match="no scenario ran"):
        play(tmp_path, capsys, output, 0, "0")


def test_each_seed_reaches_the_tests(tmp_path, capsys):
    program = tmp_path / "tests"
    program.write_text('#!/bin/sh\necho "H5 cubic 100: videos $MARTLET_SEED %, TCP 80 % of the link"\necho "✔ Test run with 1 test in 1 suite passed after 1 seconds."\n')
    program.chmod(0o755)
    assert scenarios.main(str(program), str(tmp_path)) == 0
    assert "H5 cubic 100: videos 35 % [0 … 70], TCP 80 % [80 … 80]" in capsys.readouterr().out
