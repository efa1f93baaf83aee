#!/usr/bin/env bash
# Makes the C of Sources/System/CLiveKitProtocol from its schema, with Debian's protobuf-c-compiler.
#   generate-protocol.sh [FOLDER]   into FOLDER instead of the source tree
set -euo pipefail
cd "$(dirname "$0")/../.."

source=Sources/System/CLiveKitProtocol
target=${1:-$source}
mkdir -p "$target/include"
protoc-c --proto_path="$source" --c_out="$target" livekit.proto
mv "$target/livekit.pb-c.h" "$target/include/"
