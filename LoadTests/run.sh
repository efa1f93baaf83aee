#!/usr/bin/env bash
# Starts a development server, runs one scenario against it, and stops it.
#   run.sh SCENARIO [loadtest's options]       SCENARIO: a name in LoadTests/Scenarios, or a file
# MARTLET and LOADTEST name other binaries.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
martlet=${MARTLET:-$here/../.build/release/martlet}
loadtest=${LOADTEST:-$here/../.build/release/loadtest}
scenario=$1
shift
[ -f "$scenario" ] || scenario=$here/Scenarios/$scenario.json
log=$(mktemp)
# The load decides how busy the server gets, unless the environment says otherwise.
export MARTLET_ADMISSION_MAX_CPU=${MARTLET_ADMISSION_MAX_CPU:-100}
"$martlet" serve --dev >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -f "$log"' EXIT
for _ in $(seq 50); do
    grep -qs 'martlet: ready' "$log" && break
    kill -0 $server 2>/dev/null || { cat "$log"; exit 1; }
    sleep 0.1
done
"$loadtest" run "$scenario" --server-pid $server "$@"
