#!/usr/bin/env bash
# How many packets per second one media thread of a server carries at a given share of a core: it fills rooms until the server's process uses that share,
# then measures, servers in turn. Each room has its own timing and each peer its own socket, so that the generator's rhythm helps no server.
#   busy.sh
# Environment: SERVERS="martlet janus", SCENARIOS="meeting rooms-of-7", SHARE=0.85, ROUNDS=3, SECONDS_EACH=20, OUT=folder, ARGS=loadtest's options.
set -uo pipefail
. "$(dirname "$0")/Compare/lab.sh"

out=${OUT:-$root/.build/busy}
SERVERS=${SERVERS:-martlet janus}
share=${SHARE:-0.85}
mkdir -p "$out"
export WORKERS=1 LOOPS=1

# load SERVER SCENARIO ROOMS SECONDS REPORT
load() {
    # shellcheck disable=SC2086
    run "$1" "$2" "$5" --rooms "$3" --peer-addresses ports --joinsPerSecond 100 --seconds "$4" ${ARGS:-}
}

# rooms_for SERVER SCENARIO: how many rooms make the server use `share` of a core. Its cost per packet falls as it gets busy, so the number is
# corrected until it is accurate to one room, at most four times.
rooms_for() {
    local rooms=2 report=$out/search.json next
    for _ in 1 2 3 4; do
        load "$1" "$2" "$rooms" 6 "$report"
        [ -f "$report" ] || break
        next=$(jq --argjson share "$share" --argjson rooms "$rooms" '($rooms * $share / .serverCores) | round | if . < 1 then 1 else . end' "$report")
        echo "  $1, $2: $rooms rooms take $(jq -r '.serverCores * 100 | round' "$report") % of a core" >&2
        [ "$next" -eq "$rooms" ] && break
        rooms=$next
    done
    echo "$rooms"
}

declare -A rooms
reports=()
missing=0
for scenario in ${SCENARIOS:-meeting rooms-of-7}; do
    for name in $SERVERS; do rooms[$name]=$(rooms_for "$name" "$scenario"); done
    for round in $(seq "${ROUNDS:-3}"); do
        for name in $SERVERS; do
            report=$out/$scenario-$name-$round.json
            load "$name" "$scenario" "${rooms[$name]}" "${SECONDS_EACH:-20}" "$report"
            if [ -f "$report" ]; then
                reports+=("$report")
            else
                missing=$((missing + 1))
                echo "$scenario against $name, round $round: nothing was delivered" >&2
            fi
        done
    done
done
[ ${#reports[@]} -gt 0 ] || exit 1
for name in $SERVERS; do describe "$name"; done
# Frames that were sent late, or packets lost: the generator or the network in between was at its limit, and the row says nothing about the server.
# Cores and packets of each run, and packets at exactly the share, in proportion.
jq -rs --argjson share "$share" '
    def middle: sort | .[length / 2 | floor];
    ["scenario", "server", "rooms", "cores", "packets/s at \($share * 100 | round) %: median", "lowest", "p99 ms", "lost", "failed joins", "generator cores", "frames sent late"],
    (group_by([.scenario.name, .label])[] |
        [.[0].scenario.name, .[0].label, .[0].scenario.rooms, (map(.serverCores) | middle * 100 | round / 100),
         (map(.deliveredPerSecond * $share / .serverCores) | middle | round), (map(.deliveredPerSecond * $share / .serverCores) | min | round),
         (map(.delayP99) | middle * 10 | round / 10), (map(.counts.lost) | add), (map(.failedJoins) | add),
         (map(.generatorCores) | middle * 100 | round / 100), (map(.counts.lateFrames) | add)]) | @tsv' "${reports[@]}" | column -t -s "$(printf '\t')" || exit
[ "$missing" -eq 0 ]
