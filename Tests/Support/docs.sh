#!/usr/bin/env bash
# Renders every module's DocC page and symbols into .build/docs.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=.build/docs
rm -rf "$out" && mkdir -p "$out"
# A separate build: the flags differ from those of the tests, which would otherwise all be rebuilt.
# The command fails because it does not find the test runner's module, after it has written the others: these are searched for below.
swift package --scratch-path .build/docs-build dump-symbol-graph --minimum-access-level public --skip-synthesized-members \
    >"$out/symbols.log" 2>&1 || true
graphs=$(find .build/docs-build -type d -name symbolgraph | head -1)
for page in Sources/*/*/*.docc Sources/Simulation/*.docc; do
    module=$(basename "$page" .docc)
    if [ ! -s "$graphs/$module.symbols.json" ]; then
        tail -20 "$out/symbols.log" >&2
        echo "no symbols of $module" >&2
        exit 1
    fi
    mkdir -p "$out/graphs/$module"
    cp "$graphs/$module".symbols.json "$graphs/$module"@*.symbols.json "$out/graphs/$module/" 2>/dev/null || true
    docc convert "$page" --additional-symbol-graph-dir "$out/graphs/$module" --fallback-display-name "$module" \
        --fallback-bundle-identifier "martlet.$module" --output-path "$out/$module.doccarchive" >/dev/null
    echo "$out/$module.doccarchive"
done
