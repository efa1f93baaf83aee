#!/usr/bin/env bash
# Martlet as an operator runs it behind a proxy: one media worker per core, or WORKERS.
#   martlet.sh start ADDRESS FOLDER
set -euo pipefail
martlet=${MARTLET:-$(dirname "$0")/../../.build/release/martlet}
address=$2 folder=$3
# The file contains a secret: the server refuses it if others can read it.
umask 077
cat >"$folder/martlet.yaml" <<CONFIG
insecure: true
http:
  bind: $address
media:
  bind: $address
  workers: ${WORKERS:-0}
  announced_addresses: [$address]
# The load decides how busy it gets.
admission: {max_cpu: 100}
keys:
  devkey: devsecret-devsecret-devsecret-00
CONFIG
"$martlet" serve --config "$folder/martlet.yaml" >"$folder/martlet.log" 2>&1 &
for _ in $(seq 100); do
    grep -qs 'martlet: ready' "$folder/martlet.log" && break
    sleep 0.1
done
cipher=$(sed -n 's/.*forwarding_cipher="\([^"]*\)".*/\1/p' "$folder/martlet.log")
echo "$("$martlet" version), ${WORKERS:-$(nproc)} media workers, ICE-lite, AES-GCM by $cipher" >"$folder/description"
echo "$! http://$address:7880 martlet"
