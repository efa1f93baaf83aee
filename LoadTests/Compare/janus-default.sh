#!/usr/bin/env bash
# Janus as it comes: a thread per peer.
LOOPS=0 exec "$(dirname "$0")/janus.sh" "$@"
