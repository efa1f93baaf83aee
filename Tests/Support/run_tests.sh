#!/usr/bin/env bash
# Runs every test: Swift (unit, architecture, simulation, integration), then interop with real clients. Installs what is missing first.
#
# Whatever happens, the last line says "N passed, M failed, K skipped". The exit status is 0 only when M is 0 and both runners ran something.
#   MARTLET_TEST_MINUTES=44   the whole run ends by then, and says which phase was cut off; CI ends it after 45
set -uo pipefail
cd "$(dirname "$0")/../.."

minutes=${MARTLET_TEST_MINUTES:-44}
deadline=$((SECONDS + minutes * 60))
logs=$(mktemp -d)
# Overrides the user's own settings: the tests read messages, and other users must be able to read files.
export LC_ALL=C.UTF-8
unset LANGUAGE
umask 022
# Compilers and browsers keep caches at home; a bare environment has none.
if [ ! -w "${HOME:-/nonexistent}" ]; then
    export HOME="$logs/home"
    mkdir -p "$HOME"
fi
export PROGRAM_FOLDER=$PWD/.build/tested/release
broken=""
child=""
viewer=""
beside=""

# phase NAME FILTER COMMAND…: runs a command within what is left of the time; its output goes to a file, and through FILTER to the screen.
phase() {
    local name=$1 filter=$2 started=$SECONDS status
    shift 2
    echo "== $name"
    : > "$logs/$name"
    timeout -k 20 $((deadline > SECONDS ? deadline - SECONDS : 1)) "$@" < /dev/null > "$logs/$name" 2>&1 &
    child=$!
    # In the background, because a signal is handled while bash waits, not while a command runs.
    tail -n +1 -s 0.5 -f --pid="$child" "$logs/$name" | $filter &
    viewer=$!
    wait "$child"
    status=$?
    child=""
    wait "$viewer"
    echo "== $name took $((SECONDS - started)) s, status $status"
    [ "$status" -ne 124 ] || echo "== $name was cut off: all tests have $minutes minutes (MARTLET_TEST_MINUTES)"
    [ "$status" -eq 0 ] || broken+=" $name"
    return "$status"
}

# begin NAME COMMAND…: runs a command concurrently with the following phases, until `await NAME`; one at a time.
begin() {
    local name=$1
    shift
    timeout -k 20 $((deadline > SECONDS ? deadline - SECONDS : 1)) "$@" < /dev/null > "$logs/$name" 2>&1 &
    beside=$!
}

await() {
    local name=$1 started=$SECONDS status
    wait "$beside"
    status=$?
    beside=""
    tail -60 "$logs/$name"
    echo "== $name was waited for $((SECONDS - started)) s more, status $status"
    [ "$status" -eq 0 ] || broken+=" $name"
    return "$status"
}

# Omits the two lines that each passed Swift test writes.
failures() { awk '!(($2 == "Test" && $3 != "run" || $2 == "Suite") && /started\.$|passed after/) { print; fflush() }'; }

# The number before a word in the last line of one or both interop phases: "412 passed, 3 failed, 1 skipped in 80.1s".
interop_count() {
    local word=$1 name
    shift
    for name in ${1:-interop judging}; do
        tail -1 "$logs/$name" 2>/dev/null
    done | awk -v word="$word" '{ for (i = 2; i <= NF; i++) if ($i ~ "^" word) n += $(i - 1) } END { print n + 0 }'
}

# Swift tests that compute for minutes in virtual time. Those with real sockets have real deadlines, so they do not share a process with these: it has
# as many threads as processors, and on a slower machine seventeen tests once missed their deadlines. Suites not named here run with the sockets.
computing='^(ArchitectureTests|ScenarioTests|SimulationTests|LoadGeneratorTests|FuzzTests|MediaEngineTests|ForwardingTests|CongestionControlTests'
computing+='|PeerTransportTests|DTLSTests|ICETests|SRTPTests|CryptographyTests|RecordingTests|MP4Tests|DataChannelsTests)\.'

# How many Swift tests ended this way: "✔ Test … passed after …", "✘ Test … failed after … with 3 issues.", "➜ Test … skipped". The words occur in titles
# too, so they are searched for at the end of a line.
swift_lines() {
    cat "$logs/sockets" "$logs/computing" 2>/dev/null | awk -v word="$1" '
        $2 != "Test" || $3 == "run" { next }
        word == "skipped" ? $1 !~ /^(◇|✔|✘|━)$/ && / skipped(\.|: .*)$/ : $0 ~ " " word " after [0-9.]+ seconds[^\"]*$"
    '
}
swift_count() { swift_lines "$1" | wc -l; }

# Known issues: "━ Test … recorded a known issue at FILE:LINE:COLUMN: …". Its test counts as passed.
known_issues() { cat "$logs/sockets" "$logs/computing" 2>/dev/null | awk '$1 == "━" && $2 == "Test" && / recorded a known issue /'; }

finish() {
    trap - EXIT TERM INT HUP
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null
        wait "$child" "$viewer" 2>/dev/null
        broken+=" the run (stopped from outside)"
    fi
    [ -z "$beside" ] || kill "$beside" 2>/dev/null
    local passed failed skipped name
    passed=$(($(swift_count passed) + $(interop_count passed)))
    failed=$(($(swift_count failed) + $(interop_count failed) + $(interop_count error)))
    skipped=$(($(swift_count skipped) + $(interop_count skipped)))
    # A test skips itself only if the machine lacks what it needs, so what CI's machine can run may not be skipped there.
    [ "$skipped" -eq 0 ] || [ -z "${MARTLET_NO_SKIPS:-}" ] || broken+=" $skipped skipped"
    for name in sockets computing; do
        grep -q '^✔ Test ' "$logs/$name" 2>/dev/null || broken+=" $name (ran nothing)"
    done
    for name in interop judging; do
        [ "$(interop_count passed $name)" -gt 0 ] || broken+=" $name (ran nothing)"
    done
    [ -n "$broken" ] && [ "$failed" -eq 0 ] && failed=1
    [ -z "$broken" ] || echo "== not good:$broken"
    swift_lines failed
    swift_lines skipped
    cat "$logs/interop" "$logs/judging" 2>/dev/null | grep -E '^(FAILED|ERROR|SKIPPED) '
    known_issues
    echo "== $(known_issues | wc -l) known issues, in tests that count as passed"
    rm -rf "$logs"
    mkdir -p .build
    echo "$passed passed, $failed failed, $skipped skipped" | tee .build/test-result
    exit $((failed > 0))
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

# Phases run in the background, where sudo cannot read a password: the kernel stops processes that read from the terminal there.
Tests/Support/install.sh permission
phase install cat Tests/Support/install.sh load || exit
# The clients of the interop tests are downloaded while the compiler runs.
begin clients Tests/Support/install.sh test
build() { phase "$1" "tail -60" Tests/Support/build_tests.sh "$1" || exit; }
build martletPackageTests
build martlet
build bench
await clients || exit
swift_tests=("$PROGRAM_FOLDER/martletPackageTests.xctest" --testing-library swift-testing)
phase sockets failures "${swift_tests[@]}" --skip "$computing"
phase computing failures "${swift_tests[@]}" --filter "$computing"
interop=(.venv/bin/python -u -m pytest Tests/InteropTests -q -ra --color=no --durations=20 -p no:cacheprovider)
phase interop cat "${interop[@]}" -m "not judging and not at_night" -n 3 --dist loadscope
# Tests that judge loss, times or quality: nothing else runs at the same time.
phase judging cat "${interop[@]}" -m "judging and not at_night"
exit
