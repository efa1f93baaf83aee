#!/usr/bin/env bash
# Martlet as an operator runs it behind a proxy: one media worker a core.
#   martlet.sh start ADDRESS FOLDER
set -euo pipefail
address=$2 folder=$3
cat >"$folder/martlet.yaml" <<CONFIG
insecure: true
http:
  bind: $address
media:
  bind: $address
  announced_addresses: [$address]
keys:
  devkey: devsecret-devsecret-devsecret-00
CONFIG
martlet=${MARTLET:-$(dirname "$0")/../../.build/release/martlet}
"$martlet" serve --config "$folder/martlet.yaml" >"$folder/martlet.log" 2>&1 &
for _ in $(seq 100); do
    grep -qs 'martlet: ready' "$folder/martlet.log" && break
    sleep 0.1
done
echo "$! http://$address:7880 martlet"
