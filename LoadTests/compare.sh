#!/usr/bin/env bash
# Runs the same scenarios against several servers in turn (A B A B …) and prints one table with ratios; a page with a plot lies beside it.
#   compare.sh
# Environment: SERVERS="martlet janus", SCENARIOS="webinar audio meeting", ROUNDS=3, SECONDS_EACH=30, OUT=folder, ARGS=loadtest's options.
# Each server is a script in Compare/ with `start ADDRESS FOLDER` (prints "PID URL DRIVER"); adding one is one more script.
#
# Servers run in a network namespace of their own at 10.77.0.1, the generator in another one behind a veth pair, its peers at 10.77.128.1 and up.
# Janus never offers loopback addresses and binds its sockets to an interface, so loopback would not do; all servers get the same.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
address=10.77.0.1
if [ "${1:-}" != inside ]; then
    [ "$(id -u)" -eq 0 ] || { echo "compare needs root for a network namespace of its own" >&2; exit 2; }
    exec unshare --net "$0" inside
fi
unshare --net sleep infinity &
load=$!
while [ "$(readlink /proc/$load/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link set lo up
ip link add mlt0 type veth peer name mlt1 netns $load
ip address add $address/24 dev mlt0
ip link set mlt0 up
ip route add 10.77.128.0/17 via 10.77.0.2
nsenter --net=/proc/$load/ns/net bash -e <<NAMESPACE
ip link set lo up
ip address add 10.77.0.2/24 dev mlt1
ip link set mlt1 up
ip route add local 10.77.128.0/17 dev lo
NAMESPACE

loadtest=${LOADTEST:-$root/.build/release/loadtest}
out=${OUT:-$root/.build/compare}
rounds=${ROUNDS:-3}
SERVERS=${SERVERS:-martlet janus}
SCENARIOS=${SCENARIOS:-webinar audio meeting}
seconds=${SECONDS_EACH:-30}
mkdir -p "$out"
reports=()
server=
trap 'kill $load $server 2>/dev/null' EXIT
total=$((rounds * $(wc -w <<<"$SERVERS") * $(wc -w <<<"$SCENARIOS")))
for scenario in $SCENARIOS; do
    for round in $(seq "$rounds"); do
        for name in $SERVERS; do
            echo "[$((${#reports[@]} + 1))/$total] $scenario against $name, round $round" >&2
            folder=$(mktemp -d)
            read -r server url driver < <("$here/Compare/$name.sh" start $address "$folder")
            [ -n "$server" ] || { echo "$name did not start: $(tail -3 "$folder"/*.log)" >&2; exit 1; }
            report=$out/$scenario-$name-$round.json
            # shellcheck disable=SC2086
            nsenter --net=/proc/$load/ns/net "$loadtest" run "$here/Scenarios/$scenario.json" --url "$url" --driver "$driver" --label "$name" --server-pid "$server" \
                --peer-addresses 10.77.128.1 --seconds "$seconds" --json "$report" --quiet ${ARGS:-} >"$out/last.txt" \
                || { cat "$out/last.txt"; tail -3 "$folder"/*.log; }
            [ -f "$report" ] && reports+=("$report")
            kill "$server" 2>/dev/null
            while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
            server=
            rm -rf "$folder"
        done
    done
done
"$loadtest" compare --html "$out/compare.html" "${reports[@]}"
