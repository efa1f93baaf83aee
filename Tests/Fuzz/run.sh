#!/usr/bin/env bash
# Builds every fuzz target and runs each for SECONDS (default 30): Tests/Fuzz/run.sh [SECONDS] [TARGET…]
# Seeds come from the captures in Tests/Vectors and from Tests/Fuzz/Corpus/TARGET, where inputs that once crashed are kept.
# What is found goes to .build/fuzz/corpus/TARGET; a crash fails the run and leaves its input in .build/fuzz/crashes.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-30}
shift || true
export MARTLET_FUZZ=1 SWIFT_BACKTRACE=enable=no
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(cd Tests/Fuzz && ls -- *Fuzz.swift | sed 's/\.swift$//')
fi
work=.build/fuzz
mkdir -p "$work/crashes"
python3 Tests/Fuzz/seeds.py Tests/Vectors "$work/seeds"
failed=()
for target in "${targets[@]}"; do
    swift build -c release --sanitize fuzzer --scratch-path "$work/build" --product "$target"
    mkdir -p "$work/corpus/$target"
    inputs=("$work/corpus/$target")
    for folder in "$work/seeds/$target" "Tests/Fuzz/Corpus/$target"; do
        [ -d "$folder" ] && inputs+=("$folder")
    done
    echo "== $target for $seconds s"
    log="$work/$target.log"
    if "$work/build/release/$target" -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=2048 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$work/crashes/$target-" "${inputs[@]}" >"$log" 2>&1; then
        grep -aE 'executed_units|exec_per_sec|new_units|peak_rss' "$log"
    else
        tail -n 40 "$log"
        failed+=("$target")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "crashed: ${failed[*]} (inputs in $work/crashes)"
    exit 1
fi
echo "${#targets[@]} fuzz targets, $seconds s each, no crash"
