# Sourced by compare.sh and busy.sh: one network for servers and one for the generator, and functions that run one against the other.
#
# Servers run in a separate network namespace at 10.77.0.1, the generator in another one behind a veth pair, its peers at 10.77.128.1 and up.
# Janus never offers loopback addresses and binds its sockets to an interface, so loopback would not do; all servers get the same network. No server may
# raise its threads' priority (Martlet would, with CAP_SYS_NICE): all are scheduled alike.
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
address=10.77.0.1
if [ "${1:-}" != inside ]; then
    [ "$(id -u)" -eq 0 ] || { echo "$(basename "$0") needs root for network namespaces of its own" >&2; exit 2; }
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
server=
trap 'kill $load $server 2>/dev/null' EXIT

# describe NAME: one line about a server that ran: its version, its configuration, its encryption library.
describe() { cat "$out/$1.txt"; }

# run SERVER SCENARIO REPORT [loadtest's options]: one run against a newly started server. The report exists afterwards if the run delivered anything.
run() {
    local name=$1 scenario=$2 report=$3 folder url driver
    shift 3
    folder=$(mktemp -d)
    rm -f "$report"
    read -r server url driver < <(setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice "$here/Compare/$name.sh" start $address "$folder")
    [ -n "$server" ] || { echo "$name did not start: $(tail -3 "$folder"/*.log)" >&2; exit 1; }
    cp "$folder/description" "$out/$name.txt"
    nsenter --net=/proc/$load/ns/net "$loadtest" run "$here/Scenarios/$scenario.json" --url "$url" --driver "$driver" --label "$name" \
        --server-pid "$server" --timers independent --json "$report" --quiet "$@" >"$out/last.txt" ||
        { cat "$out/last.txt"; tail -3 "$folder"/*.log; } >&2
    kill "$server" 2>/dev/null
    while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
    server=
    rm -rf "$folder"
}
