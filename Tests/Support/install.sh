#!/usr/bin/env bash
# Installs what is missing and says what it installs.
#   install.sh build   the libraries that Martlet links with
#   install.sh load    those, and the encoders of the load generator
#   install.sh compare those, and the servers that Martlet is compared with
#   install.sh test    all of these, and the real clients that the interop tests drive: browsers, GStreamer, a Python environment
set -euo pipefail
cd "$(dirname "$0")/../.."

build_packages=(libssl-dev libsrtp2-dev libnice-dev libsoup-3.0-dev libjwt-dev libyaml-dev pkg-config)
load_packages=(libvpx-dev libopus-dev libopenh264-dev)
compare_packages=(janus iproute2)
test_packages=(chromium firefox-esr gstreamer1.0-nice gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav python3-venv python3-gi python3-gst-1.0
    gir1.2-gst-plugins-bad-1.0 gir1.2-gst-plugins-base-1.0 iproute2 gcc libc6-dev)

fail() {
    echo "$1" >&2
    exit 1
}

# Installs the named Debian packages that are not there yet.
install_debian() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "Installing Debian packages: ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "Not root and no sudo: install these packages, then try again: ${missing[*]}"
        as_root=(sudo)
    fi
    command -v apt-get >/dev/null || fail "No apt-get here: install what these Debian packages hold: ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    "${apt[@]}" update -qq || echo "apt-get update failed; trying with the lists that are there"
    "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "apt-get could not install: ${missing[*]}"
}

# libipsec-mb encrypts what is forwarded at a quarter of the cost, on x86-64. Martlet builds and runs without it.
install_fast_cipher() {
    [ "$(uname -m)" = x86_64 ] || return 0
    (install_debian libipsec-mb-dev) || echo "Going on without libipsec-mb: OpenSSL encrypts"
}

# A Python environment with pinned versions, made anew when the pins change.
install_python() {
    local pins=Tests/InteropTests/requirements.txt
    cmp -s "$pins" .venv/pins.txt 2>/dev/null && return
    echo "Installing Python packages into .venv: $(paste -sd' ' "$pins")"
    rm -rf .venv
    /usr/bin/python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check --retries 5 -r "$pins" || fail "pip could not install $pins"
    cp "$pins" .venv/pins.txt
}

command -v swift >/dev/null || fail "No Swift toolchain on the PATH; Martlet needs Swift 6.2 or later (swift.org)."
case "${1:-build}" in
build)
    install_debian "${build_packages[@]}"
    install_fast_cipher
    ;;
load)
    install_debian "${build_packages[@]}" "${load_packages[@]}"
    install_fast_cipher
    ;;
compare)
    install_debian "${build_packages[@]}" "${load_packages[@]}" "${compare_packages[@]}"
    install_fast_cipher
    ;;
test)
    install_fast_cipher
    install_debian "${build_packages[@]}" "${load_packages[@]}" "${test_packages[@]}"
    install_python
    ;;
*) echo "usage: install.sh build|load|compare|test" >&2; exit 2 ;;
esac
