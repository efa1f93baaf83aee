#!/usr/bin/env bash
# Builds the fuzz targets and runs each for SECONDS (default 30), as many at a time as there are processors: Tests/Fuzz/run.sh [SECONDS] [TARGET…]
# Seeds come from the captures in Tests/Vectors (Tests/Fuzz/Targets/Seeds.swift) and from Tests/Fuzz/Corpus/TARGET, where inputs that
# once broke something are kept; `make test` replays both. What is found goes to .build/fuzz/corpus/TARGET; a crash fails the run and
# leaves its input in .build/fuzz/crashes. MARTLET_FUZZ_TARGET=RTP .build/fuzz/build/release/fuzz FILE runs one input again.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-30}
shift || true
export MARTLET_FUZZ=1 SWIFT_BACKTRACE=enable=no
work=.build/fuzz
mkdir -p "$work/crashes"
swift build -c release --sanitize fuzzer --scratch-path "$work/build" -Xswiftc -enable-testing --product fuzz
program=$work/build/release/fuzz
targets=("$@")
# In a command of its own, which ends this script where it fails; a program that names none has fuzzed nothing.
[ ${#targets[@]} -gt 0 ] || {
    names=$("$program")
    mapfile -t targets <<<"$names"
    [ -n "$names" ] || { echo "there are no fuzz targets"; exit 1; }
}

# A night that goes on (Tests/Support/nightly.sh) runs only the targets that were good with the same code, for the same time.
was_good() { [ -n "${CONTINUE:-}" ] && [ -n "${NIGHTLY_CODE:-}" ] && grep -qsxF "$NIGHTLY_CODE $seconds $1" "$work/good"; }

# fuzz TARGET: what it printed comes at its end, in one piece.
fuzz() {
    local target=$1 log="$work/$1.log" inputs
    mkdir -p "$work/corpus/$target" "$work/seeds/$target"
    inputs=("$work/corpus/$target" "$work/seeds/$target")
    [ -d "Tests/Fuzz/Corpus/$target" ] && inputs+=("Tests/Fuzz/Corpus/$target")
    if MARTLET_FUZZ_TARGET=$target MARTLET_FUZZ_SEEDS="$work/seeds/$target" "$program" -max_total_time="$seconds" \
        -max_len=16384 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$work/crashes/$target-" "${inputs[@]}" >"$log" 2>&1; then
        printf '== %s for %s s\n%s\n' "$target" "$seconds" "$(grep -aE 'executed_units|exec_per_sec|new_units|peak_rss' "$log")"
        [ -z "${NIGHTLY_CODE:-}" ] || echo "$NIGHTLY_CODE $seconds $target" >>"$work/good"
    else
        printf '== %s broke\n%s\n' "$target" "$(tail -n 40 "$log")"
        echo "$target" >>"$work/broken"
    fi
}

rm -f "$work/broken"
running=()
for target in "${targets[@]}"; do
    if was_good "$target"; then
        echo "== $target was good in an earlier run of this code"
        continue
    fi
    while mapfile -t running < <(jobs -pr) && [ ${#running[@]} -ge "$(nproc)" ]; do
        wait -n || true
    done
    fuzz "$target" &
done
wait
if [ -e "$work/broken" ]; then
    echo "broken: $(tr '\n' ' ' <"$work/broken")(inputs in $work/crashes)"
    exit 1
fi
echo "${#targets[@]} fuzz targets, $seconds s each, no crash"
