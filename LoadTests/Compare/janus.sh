#!/usr/bin/env bash
# Janus 1.1 (Debian package janus) in its best configuration: one event loop per core, nothing loaded but VideoRoom and HTTP; full ICE, as its operators run it.
#   janus.sh start ADDRESS FOLDER        LOOPS overrides the number of event loops (0: a thread per peer, its default), ICE_LITE=true its ICE
set -euo pipefail
command -v janus >/dev/null || { echo "install Debian's package janus" >&2; exit 1; }
loops=${LOOPS:-$(nproc)}
address=$2 folder=$3
mkdir -p "$folder/conf"
plugins=$(cd /usr/lib/*/janus/plugins && ls ./*.so | grep -v videoroom | sed 's|./||' | paste -sd,)
transports=$(cd /usr/lib/*/janus/transports && ls ./*.so | grep -v http | sed 's|./||' | paste -sd,)
events=$(cd /usr/lib/*/janus/events && ls ./*.so | sed 's|./||' | paste -sd,)
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
version() { dpkg-query -W -f='${Version}' "$1"; }
[ "$loops" -gt 0 ] && threads="$loops event loops" || threads="a thread per peer"
[ "${ICE_LITE:-false}" = true ] && ice="ICE-lite" || ice="full ICE"
echo "Janus $(version janus), $threads, $ice, SRTP by libsrtp2 $(version libsrtp2-1) as Debian builds it (NSS)" >"$folder/description"
echo "$! http://$address:8088 janus"
