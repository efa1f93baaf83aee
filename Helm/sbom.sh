#!/bin/sh
# The software in this root as a CycloneDX 1.5 document: every Debian package with its version and source, and Martlet itself. Usage: sbom.sh VERSION
set -eu
echo '{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,'
printf '"metadata":{"component":{"type":"application","name":"martlet","version":"%s","licenses":[{"license":{"id":"Apache-2.0"}}]}},\n' "$1"
echo '"components":['
dpkg-query -W -f '{"type":"library","name":"${Package}","version":"${Version}","purl":"pkg:deb/debian/${Package}@${Version}?arch=${Architecture}"},\n' \
    | sed '$ s/,$//'
echo ']}'
