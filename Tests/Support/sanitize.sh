#!/usr/bin/env bash
# The Swift tests under one sanitizer: Tests/Support/sanitize.sh address|thread [FILTER]
# Each has a separate build. Suppressions are in Tests/Support/{lsan,tsan}.supp, each with its reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=$1
export LSAN_OPTIONS="suppressions=$PWD/Tests/Support/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS="suppressions=$PWD/Tests/Support/tsan.supp:history_size=4:halt_on_error=0:exitcode=66"
# A sanitized program is five to ten times slower: one mutation of each fuzz seed is enough here.
export MARTLET_FUZZ_MUTATIONS=${MARTLET_FUZZ_MUTATIONS:-1}
# Optimised like the build of `make test`, with the assertions of a debug build: otherwise the simulated worlds would take an hour by themselves.
export MARTLET_ONE_RUN=1
arguments=(-c release -Xswiftc -enable-testing -Xswiftc -assert-config -Xswiftc Debug
    --sanitize="$kind" --scratch-path ".build/${kind:0:1}san" --disable-xctest)
# Simulated worlds are skipped: they run in one thread, where nothing races, and would take most of an hour. Tests run one at a time, because those that compute
# for minutes would otherwise keep threads from those that wait for each other.
[ "$kind" = thread ] && arguments+=(--no-parallel --skip SimulationTests --skip ScenarioTests)
swift test "${arguments[@]}" ${2:+--filter "$2"}
