#!/usr/bin/env bash
# The tests that take a night: every part in turn, whatever the results of the others. The last line says how many passed; the exit status is 0 if all did. A
# test that this machine cannot run proves nothing, so its part has not passed.
#   nightly.sh [PART…]       parts: address thread fuzz bench rooms seeds scenarios churn schema more livekit examples recording deploying image paths storm overload drain rolling soak monitoring fresh
# How long: FUZZ_SECONDS (600 for each target), ROOMS (10000), SEEDS (8), CHURN_JOINS (100000), STORM_RATE (30000 packets/s), SOAK_SECONDS (1800), CALL_MINUTES (10).
# The output of each part is in .build/nightly/PART.log. An interrupted run continues with CONTINUE=1: parts and fuzz targets that passed
# with the same code, for the same time, are not run again, as long as the working tree has no changes.
set -uo pipefail
umask 022
export LC_ALL=C.UTF-8 MARTLET_NO_SKIPS=1
unset LANGUAGE
cd "$(dirname "$0")/../.." || exit
work=.build/nightly
mkdir -p "$work"
strict=(--explicit-target-dependency-import-check error -Xswiftc -warnings-as-errors)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(address thread fuzz bench rooms seeds scenarios churn schema more livekit examples recording deploying image paths storm overload drain rolling soak monitoring fresh)
good=0
earlier=0
bad=()
# The code for which a result is valid: everything that is built or run, as in the commit; results with uncommitted changes are not kept.
# Nor are they if git reads nothing, as in another user's clone: the hash of an empty text would be the same for all code.
export NIGHTLY_CODE=
if changes=$(git status --porcelain) && [ -z "$changes" ] && code=$(git ls-tree HEAD Package.swift Makefile Sources Tests LoadTests Helm Packaging); then
    NIGHTLY_CODE=$(git hash-object --stdin <<<"$code")
fi
length="${FUZZ_SECONDS:-600} ${ROOMS:-10000} ${SEEDS:-8} ${CHURN_JOINS:-100000} ${STORM_RATE:-30000} ${SOAK_SECONDS:-1800} ${CALL_MINUTES:-10} ${SCHEMA_EXAMPLES:-100}"
was_good() { [ -n "${CONTINUE:-}" ] && [ -n "$NIGHTLY_CODE" ] && grep -qsxF "$NIGHTLY_CODE $length $1" "$work/good"; }

# Swift tests in the build of `make test`, in which the packet path is optimised: the full numbers would take hours otherwise.
tested=.build/tested/release/martletPackageTests.xctest
simulated() { Tests/Support/build_tests.sh && "$tested" --testing-library swift-testing --filter "$1"; }
server() { swift build -q "${strict[@]}" -c release --product martlet; }

address() { Tests/Support/sanitize.sh address; }
thread() { Tests/Support/sanitize.sh thread; }
fuzz() { Tests/Fuzz/run.sh "${FUZZ_SECONDS:-600}"; }
bench() { make --no-print-directory bench; }
# Fifty rooms per world, and a tenth as many worlds twice for their digests; joins and leaves of one engine, and a call of a day.
rooms() {
    local worlds=$((${ROOMS:-10000} / 50))
    MARTLET_WORLDS=$worlds MARTLET_ROUNDS=$((worlds > 10 ? worlds : 10)) simulated 'MeetingsTests' &&
        MARTLET_ROUNDS=1000 MARTLET_HOURS=24 simulated 'MemoryTests'
}
seeds() {
    local status=0
    # As far apart as those of `make scenarios`: a suite adds them to its own consecutive seeds.
    for seed in $(seq 0 10 $((10 * ${SEEDS:-8} - 10))); do
        echo "== seed $seed"
        MARTLET_SEED=$seed simulated 'SimulationTests' || status=1
    done
    return $status
}
scenarios() { make --no-print-directory scenarios; }
interop() { server && .venv/bin/python -m pytest "$@" -q -ra --color=no -p no:cacheprovider; }
churn() { CHURN_JOINS=${CHURN_JOINS:-100000} TEST_SECONDS=7200 interop Tests/InteropTests/test_churn.py; }
schema() { SCHEMA_PHASES=examples,coverage,fuzzing,stateful SCHEMA_EXAMPLES=${SCHEMA_EXAMPLES:-100} TEST_SECONDS=3600 interop Tests/InteropTests/test_schema.py; }
more() { interop Tests/InteropTests -m at_night; }
# A file of 50 MB to several takes 90 s on two cores that do nothing else.
livekit() { TEST_SECONDS=600 interop Tests/InteropTests/nightly_livekit*.py; }
examples() { interop Tests/InteropTests/nightly_examples.py; }
recording() { interop Tests/InteropTests/nightly_recording.py Tests/InteropTests/nightly_readers.py Tests/InteropTests/nightly_encoders.py Tests/InteropTests/nightly_upload.py Tests/InteropTests/nightly_jobs.py &&
    TEST_SECONDS=3600 interop Tests/InteropTests/nightly_ten_minutes.py; }
deploying() { TEST_SECONDS=300 interop Tests/InteropTests/nightly_deploying.py; }
image() { server && Tests/Support/install.sh image && TEST_SECONDS=1800 interop Tests/InteropTests/nightly_image.py; }
paths() { TEST_SECONDS=300 interop Tests/InteropTests/nightly_paths.py; }
load() { server && swift build -q "${strict[@]}" -c release --product loadtest && .venv/bin/python Tests/Support/soak.py "$1"; }
storm() { load storm; }
overload() { load overload; }
drain() { load drain; }
rolling() { server && swift build -q "${strict[@]}" -c release --product loadtest && .venv/bin/python Tests/Support/rolling.py; }
soak() { load soak; }
monitoring() { swift build -q "${strict[@]}" -c release --product loadtest && TEST_SECONDS=200 interop Tests/InteropTests/nightly_monitoring.py; }
fresh() { Tests/Support/fresh.sh run && Tests/Support/fresh.sh test; }

Tests/Support/install.sh test || exit
for part in "${parts[@]}"; do
    if ! declare -F "$part" >/dev/null; then
        echo "There is no part '$part'." >&2
        exit 2
    fi
    if was_good "$part"; then
        good=$((good + 1))
        earlier=$((earlier + 1))
        echo "== $part was good in an earlier run of this code"
        continue
    fi
    echo "== $part"
    started=$SECONDS
    if "$part" >"$work/$part.log" 2>&1; then
        good=$((good + 1))
        [ -z "$NIGHTLY_CODE" ] || echo "$NIGHTLY_CODE $length $part" >>"$work/good"
        tail -n 3 "$work/$part.log"
    else
        bad+=("$part")
        tail -n 40 "$work/$part.log"
    fi
    echo "== $part took $((SECONDS - started)) s"
done
echo "nightly: $good good ($earlier of them in earlier runs of the same code), ${#bad[@]} bad${bad:+: ${bad[*]}}"
[ ${#bad[@]} -eq 0 ]
