#!/usr/bin/env bash
# Runs every test: Swift (unit, architecture, simulation, integration), then interop with real clients, and ends with one
# line that adds both up. Exits non-zero when anything failed or when a runner ran nothing.
set -uo pipefail
cd "$(dirname "$0")/../.."
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

strict=(--explicit-target-dependency-import-check error -Xswiftc -warnings-as-errors)
swift build "${strict[@]}" --build-tests || { echo "0 passed, 1 failed"; exit 1; }
swift test "${strict[@]}" --skip-build 2>&1 | tee "$logs/swift"
swift_status=${PIPESTATUS[0]}
swift build "${strict[@]}" -c release --product martlet || { echo "0 passed, 1 failed"; exit 1; }
.venv/bin/python -m pytest Tests/InteropTests -q -ra --color=no 2>&1 | tee "$logs/interop"
interop_status=${PIPESTATUS[0]}

# "Test run with 412 tests in 60 suites passed", "… failed after … with 3 issues"
swift_total=$(sed -nE 's/.*Test run with ([0-9]+) tests?.*/\1/p' "$logs/swift" | tail -1)
swift_failed=$(grep -cE '^.{0,4} ?Test .* failed after' "$logs/swift")
count() { sed -nE "s/.*[^0-9]?([0-9]+) $1.*/\1/p" "$logs/interop" | tail -1; }
interop_passed=$(tail -1 "$logs/interop" | grep -oE '[0-9]+ passed' | grep -oE '[0-9]+')
interop_failed=$(tail -1 "$logs/interop" | grep -oE '[0-9]+ (failed|error)' | grep -oE '[0-9]+' | awk "{s+=\$1} END {print s+0}")

status=$((swift_status != 0 || interop_status != 0 ? 1 : 0))
failed=$((${swift_failed:-0} + ${interop_failed:-0}))
[ "$status" -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
[ "${swift_total:-0}" -gt 0 ] && [ "${interop_passed:-0}" -gt 0 ] || { status=1; [ "$failed" -eq 0 ] && failed=1; }
passed=$((${swift_total:-0} - ${swift_failed:-0} + ${interop_passed:-0}))
echo "$passed passed, $failed failed"
exit $status
