#!/usr/bin/env bash
# Runs the same scenarios against several servers in turn (A B A B …) and prints one table with ratios, and writes a page with a plot.
#   compare.sh
# Environment: SERVERS="martlet janus", SCENARIOS="webinar audio meeting", OFFLOAD="on off" (whether peers receive runs of datagrams in one piece, as
# from a network card with receive offload), ROUNDS=3, SECONDS_EACH=30, OUT=folder, ARGS=loadtest's options.
# Each server is a script in Compare/: `start ADDRESS FOLDER` prints "PID URL DRIVER" and writes a line about itself to FOLDER/description.
set -uo pipefail
. "$(dirname "$0")/Compare/lab.sh"

out=${OUT:-$root/.build/compare}
rounds=${ROUNDS:-3}
SERVERS=${SERVERS:-martlet janus}
SCENARIOS=${SCENARIOS:-webinar audio meeting}
OFFLOAD=${OFFLOAD:-on off}
mkdir -p "$out"
reports=()
done=0
total=$((rounds * $(wc -w <<<"$SERVERS") * $(wc -w <<<"$SCENARIOS") * $(wc -w <<<"$OFFLOAD")))
for scenario in $SCENARIOS; do
    for offload in $OFFLOAD; do
        title=$scenario
        [ "$offload" = on ] || title="$scenario, no offload"
        for round in $(seq "$rounds"); do
            for name in $SERVERS; do
                echo "[$((++done))/$total] $title against $name, round $round" >&2
                report=$out/$scenario-$offload-$name-$round.json
                # shellcheck disable=SC2086
                run "$name" "$scenario" "$report" --name "$title" --receive-offload "$offload" --peer-addresses 10.77.128.1 \
                    --seconds "${SECONDS_EACH:-30}" ${ARGS:-}
                if [ -f "$report" ]; then reports+=("$report"); else echo "$title against $name, round $round: nothing was delivered" >&2; fi
            done
        done
    done
done
for name in $SERVERS; do describe "$name"; done
"$loadtest" compare --html "$out/compare.html" "${reports[@]}" || exit
[ ${#reports[@]} -eq "$total" ]
