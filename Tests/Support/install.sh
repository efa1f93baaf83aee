#!/usr/bin/env bash
# Installs what is missing and says what it installs.
#   install.sh build   the libraries that Martlet links with
#   install.sh load    those, and the encoders and the HTTP client of the load generator
#   install.sh compare those, and the servers that Martlet is compared with
#   install.sh package those of build, and what makes a Debian package
#   install.sh image   what builds and runs the container image
#   install.sh permission   nothing: lets sudo read its password now, if packages are missing that `install.sh test` installs
#   install.sh test    all of these, and the real clients that the interop tests drive: browsers, GStreamer, a Python environment
set -euo pipefail
cd "$(dirname "$0")/../.."

build_packages=(libssl-dev libsrtp2-dev libnice-dev libjwt-dev libjansson-dev libyaml-dev libsqlite3-dev
    libcurl4-openssl-dev libprotobuf-c-dev zlib1g-dev pkg-config)
load_packages=(libsoup-3.0-dev libvpx-dev libopus-dev libopenh264-dev)
compare_packages=(janus iproute2 jq)
package_packages=(dpkg-dev binutils python3)
image_packages=(podman crun debootstrap)
test_packages=(protobuf-c-compiler debootstrap curl tshark chromium coturn firefox-esr ffmpeg gstreamer1.0-nice gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav python3-venv python3-gi python3-gst-1.0
    gir1.2-gst-plugins-bad-1.0 gir1.2-gst-plugins-base-1.0 iproute2 nftables gcc libc6-dev)

fail() {
    echo "$1" >&2
    exit 1
}

# pkg-config's names of the libraries, for systems without Debian's packages.
declare -A modules=([libssl-dev]=openssl [libsrtp2-dev]=libsrtp2 [libnice-dev]=nice [libsoup-3.0-dev]=libsoup-3.0 [libjwt-dev]=libjwt
    [libjansson-dev]=jansson [libsqlite3-dev]=sqlite3 [libcurl4-openssl-dev]=libcurl
    [libprotobuf-c-dev]=libprotobuf-c [zlib1g-dev]=zlib
    [libyaml-dev]=yaml-0.1 [libvpx-dev]=vpx [libopus-dev]=opus [libopenh264-dev]=openh264)

is_installed() {
    if command -v dpkg-query >/dev/null; then
        dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
    elif [ -n "${modules[$1]:-}" ]; then
        pkg-config --exists "${modules[$1]}" 2>/dev/null
    else
        command -v "$1" >/dev/null
    fi
}

# Prints those of the named packages that are not installed yet.
missing_of() {
    local package
    for package in "$@"; do is_installed "$package" || echo "$package"; done
}

# Installs the named Debian packages that are not installed yet. On other systems it reports what is missing.
install_debian() {
    local missing=()
    mapfile -t missing < <(missing_of "$@")
    [ ${#missing[@]} -eq 0 ] && return
    if ! command -v apt-get >/dev/null; then
        local names=()
        for package in "${missing[@]}"; do names+=("${modules[$package]:-$package}"); done
        fail "No apt-get here, and these are missing (as pkg-config or Debian calls them): ${names[*]}.
Install their development packages; README.md, 'Other systems', has the names."
    fi
    echo "Installing Debian packages: ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "Not root and no sudo: install these packages, then try again: ${missing[*]}"
        as_root=(sudo)
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    "${apt[@]}" update -qq || echo "apt-get update failed; trying with the existing package lists"
    "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "apt-get could not install: ${missing[*]}"
}

# libipsec-mb encrypts forwarded packets at a quarter of the cost, on x86-64. Martlet builds and runs without it.
install_fast_cipher() {
    [ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null || return 0
    (install_debian libipsec-mb-dev) || echo "Continuing without libipsec-mb: OpenSSL encrypts"
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

# Only Prometheus and promtool, from Debian's package: the package itself would start a server on the machine.
install_prometheus() {
    [ -x .build/tools/promtool ] && [ -x .build/tools/prometheus ] && return
    if ! command -v apt-get >/dev/null; then
        command -v promtool >/dev/null && command -v prometheus >/dev/null || fail "No Prometheus with promtool on the PATH."
        return
    fi
    echo "Extracting prometheus and promtool from Debian's package prometheus"
    local folder
    folder=$(mktemp -d)
    chmod 755 "$folder"
    (cd "$folder" && apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root download -qq prometheus && dpkg-deb -x prometheus_*.deb .) >/dev/null ||
        fail "apt-get could not download: prometheus"
    mkdir -p .build/tools
    # Each is installed completely or not at all, even if this is interrupted.
    for program in promtool prometheus; do
        cp "$folder/usr/bin/$program" ".build/tools/$program.new"
        mv ".build/tools/$program.new" ".build/tools/$program"
    done
    rm -rf "$folder"
}

command -v swift >/dev/null ||
    fail "No 'swift' on the PATH. Martlet needs a Swift toolchain, 6.2 or later, from swift.org; put its usr/bin on the PATH and try again."
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
package)
    install_debian "${build_packages[@]}" "${package_packages[@]}"
    install_fast_cipher
    ;;
test)
    install_fast_cipher
    install_debian "${build_packages[@]}" "${load_packages[@]}" "${package_packages[@]}" "${test_packages[@]}"
    install_python
    install_prometheus
    # Without permission to create namespaces, as for root in many containers, all other tests run.
    [ "$(id -u)" -ne 0 ] || Tests/Support/machine.sh prepare >/dev/null || echo "Continuing without a root file system for the tests of what is installed"
    ;;
image) install_debian "${image_packages[@]}" ;;
permission)
    [ "$(id -u)" -ne 0 ] && [ -t 0 ] && command -v apt-get >/dev/null && command -v sudo >/dev/null || exit 0
    [ -z "$(missing_of "${build_packages[@]}" "${load_packages[@]}" "${package_packages[@]}" "${test_packages[@]}")" ] || sudo -v
    ;;
*) echo "usage: install.sh build|load|compare|package|image|permission|test" >&2; exit 2 ;;
esac
