#!/usr/bin/env bash
# The two commands on a fresh machine: a Debian 12 with a Swift toolchain and nothing else of ours, made with debootstrap, in which a clone of the
# last commit is used as its README says. Needs root.
#   fresh.sh run     `make run` until the page answers and a development token is made, then SIGINT, which must end it with 0
#   fresh.sh test    `.ci/run`, whose last line is the verdict (an hour). CI's time limit is for a prepared machine: a fresh one also downloads
#                    what the tests need. MARTLET_TEST_MINUTES=90
set -euo pipefail
umask 022
cd "$(dirname "$0")/../.."
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
toolchain=$(readlink -f "$(command -v swift)")
toolchain=${toolchain%/usr/bin/*}
# What swift.org requires before the toolchain is installed, and what the README requires: git and make.
needed=binutils,ca-certificates,gnupg2,libc6-dev,libcurl4,libedit2,libncurses6,libgcc-12-dev,libpython3.11,libsqlite3-0,libstdc++-12-dev,libxml2,libz3-4,tzdata,zlib1g-dev,git,make

# What the server on port 7880 answers to a request: method, path, body. A fresh machine has no HTTP client.
ask() {
    exec 3<> /dev/tcp/127.0.0.1/7880
    printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:7880\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" ${#3} "$3" >&3
    cat <&3
    exec 3>&-
}

# In the clone, as README says.
try_run() {
    local log server status=0
    log=$(mktemp)
    set -m
    make run > "$log" 2>&1 &
    server=$!
    until grep -q 'http://127.0.0.1:7880/' "$log"; do
        kill -0 "$server" 2>/dev/null || { tail -40 "$log"; echo "make run ended before it served"; exit 1; }
        sleep 1
    done
    grep -v '^\[' "$log" | tail -20
    # Reads to the end: with -q, grep ends at the first match, and the program that still writes to it fails (pipefail).
    ask GET / '' | grep '<title>Martlet</title>' > /dev/null || { echo "the page is not served"; status=1; }
    ask POST /dev/token '{"room": "first", "identity": "ada"}' | grep '"token"' > /dev/null || { echo "no development token"; status=1; }
    kill -INT -- "-$server"
    # Make itself returns 130 for an interrupted child; the server's log shows that it shut down.
    wait "$server" || true
    grep -q 'media workers stopped' "$log" || { tail "$log"; echo "the server was not ended by Ctrl-C"; status=1; }
    [ "$status" -ne 0 ] || echo "make run: the page and a token were served, Ctrl-C ended it, after $SECONDS s"
    exit $status
}

case "${1:-}" in
run | test) ;;
inside)
    cd /root/martlet
    [ "$2" = run ] || exec .ci/run
    try_run
    ;;
*) echo "usage: fresh.sh run | test" >&2; exit 2 ;;
esac

mkdir -p .build/fresh
root=$(mktemp -d "$PWD/.build/fresh/root-XXXXXX")
chmod 755 "$root"
trap 'rm -rf --one-file-system "$root"' EXIT
# In separate mount and process namespaces, so that nothing of it outlives this script; in this machine's network, because packages are downloaded.
unshare -m -p -f --kill-child bash -ec '
    root=$1
    debootstrap --variant=minbase --include="$4" bookworm "$root" "$3" > "$root.log" 2>&1 || { tail -20 "$root.log" >&2; exit 1; }
    rm "$root.log"
    git clone -q . "$root/root/martlet"
    # No package starts a service: they would be in the network of this machine.
    printf "#!/bin/sh\nexit 101\n" > "$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    mkdir -p "$root/opt/swift"
    # Only a mount point can become the root of a namespace.
    mount --bind "$root" "$root"
    mount --bind -o ro "$2" "$root/opt/swift"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    # Packages are downloaded over the network of this machine, so its trusted certificates are used.
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    # A process in a chroot cannot create user namespaces, as the unit of the tests does (PrivateUsers): so the new root becomes that of this namespace.
    cd "$root"
    pivot_root . .
    umount -l .
    cd /
    exec env -i HOME=/root TERM=dumb MARTLET_TEST_MINUTES="${MARTLET_TEST_MINUTES:-90}" PATH=/opt/swift/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin /root/martlet/Tests/Support/fresh.sh inside "$5"
' - "$root" "$toolchain" "$mirror" "$needed" "$1"
