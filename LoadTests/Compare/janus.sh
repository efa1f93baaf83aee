#!/usr/bin/env bash
# Janus 1.1 (Debian package janus) at its best: one event loop a core, ICE-lite, nothing loaded but VideoRoom and HTTP.
#   janus.sh start ADDRESS FOLDER        LOOPS overrides the number of event loops; LOOPS=0: a thread a peer, its default
set -euo pipefail
address=$2 folder=$3
command -v janus >/dev/null || { echo "install Debian's package janus" >&2; exit 1; }
mkdir -p "$folder/conf"
plugins=$(cd /usr/lib/*/janus/plugins && ls ./*.so | grep -v videoroom | sed 's|./||' | paste -sd,)
transports=$(cd /usr/lib/*/janus/transports && ls ./*.so | grep -v http | sed 's|./||' | paste -sd,)
events=$(cd /usr/lib/*/janus/events && ls ./*.so | sed 's|./||' | paste -sd,)
loops=${LOOPS:-$(nproc)}
cat >"$folder/conf/janus.jcfg" <<CONFIG
general: {
    configs_folder = "$folder/conf"
    debug_level = 2
    $([ "$loops" -gt 0 ] && echo "event_loops = $loops")
}
nat: {
    ice_lite = ${ICE_LITE:-false}
    ice_enforce_list = "$address"
}
media: { ipv6 = false }
plugins: { disable = "$plugins" }
transports: { disable = "$transports" }
events: { broadcast = false }
CONFIG
cat >"$folder/conf/janus.transport.http.jcfg" <<CONFIG
general: {
    json = "compact"
    base_path = "/janus"
    http = true
    port = 8088
    ip = "$address"
    https = false
}
admin: { admin_http = false }
CONFIG
echo 'general: {}' >"$folder/conf/janus.plugin.videoroom.jcfg"
janus -F "$folder/conf" >"$folder/janus.log" 2>&1 &
for _ in $(seq 100); do
    (exec 3<>"/dev/tcp/$address/8088") 2>/dev/null && break
    sleep 0.1
done
echo "$! http://$address:8088 janus"
