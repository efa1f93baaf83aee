#!/usr/bin/env bash
# Janus with its defaults: a thread per peer.
LOOPS=0 exec "$(dirname "$0")/janus.sh" "$@"
