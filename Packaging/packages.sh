#!/bin/sh
# packages.sh KIND… prints the names of these kinds in runtime-packages, one per line. Optional ones only where Debian has them.
set -eu
list=$(dirname "$0")/runtime-packages
for kind in "$@"; do
    [ "$kind" != optional ] || [ "$(dpkg --print-architecture)" = amd64 ] || continue
    awk -v kind="$kind" '$1 == kind { print $2 }' "$list"
done
