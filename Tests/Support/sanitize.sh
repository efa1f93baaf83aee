#!/usr/bin/env bash
# The Swift tests under one sanitizer: Tests/Support/sanitize.sh address|thread [FILTER]
# Each has a build of its own. What is suppressed stands in Tests/Support/{lsan,tsan}.supp, each line with its reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=$1
export LSAN_OPTIONS="suppressions=$PWD/Tests/Support/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS="suppressions=$PWD/Tests/Support/tsan.supp:history_size=4:halt_on_error=0:exitcode=66"
# A sanitized program is five to ten times slower: one mutation of each fuzz seed is enough here.
export MARTLET_FUZZ_MUTATIONS=${MARTLET_FUZZ_MUTATIONS:-1}
# Optimised as what `make test` builds, with the assertions of a debug build: the simulated worlds alone would take an hour otherwise.
export MARTLET_ONE_RUN=1
arguments=(-c release -Xswiftc -enable-testing -Xswiftc -assert-config -Xswiftc Debug
    --sanitize="$kind" --scratch-path ".build/${kind:0:1}san" --disable-xctest)
# Simulated worlds run in one thread and would take most of an hour: nothing races there. One test at a time, or those that compute for
# minutes keep those that wait for each other from their threads.
[ "$kind" = thread ] && arguments+=(--no-parallel --skip SimulationTests --skip ScenarioTests)
swift test "${arguments[@]}" ${2:+--filter "$2"}
