#!/usr/bin/env bash
# A Debian 12 with nothing but Martlet's runtime packages, for tests of packages that are installed on it. Needs root.
#   machine.sh prepare                     makes the root file system if it is not there yet, and prints its folder
#   machine.sh start FOLDER [COMMAND…]     runs COMMAND as process 1 of a machine with that root; without one, systemd. What the machine writes
#                                          goes to FOLDER/changes, which can be filled before.
# A machine has its own processes, mounts and network, in which only the loopback interface exists. It ends with its process 1.
set -euo pipefail
# Files made here must be accessible to other users of the machine, too.
umask 022
cd "$(dirname "$0")/../.."
suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# Named after its packages, so that a changed list makes another one.
parts=(Packaging/install-runtime.sh Packaging/packages.sh)
root=$PWD/.build/tools/debian-$suite-$({ awk '!/^#/ { print $1, $2 }' Packaging/runtime-packages; cat "${parts[@]}"; } | sha256sum | cut -c1-12)

prepare() {
    [ ! -d "$root" ] || return 0
    local made log
    mkdir -p .build/tools
    rm -rf .build/tools/debian-*
    echo "Making a Debian root file system with debootstrap (a minute)" >&2
    made=$(mktemp -d .build/tools/debian-new-XXXXXX)
    log=$(mktemp)
    chmod 755 "$made"
    # In a separate mount namespace, so that no service that a package starts, and no mount that it makes, reaches this machine.
    if ! unshare -m -p -f --kill-child bash -ec '
        debootstrap --variant=minbase "$1" "$2" "$3"
        mount -t proc proc "$2/proc"
        mkdir "$2/packaging"
        mount --bind -o ro Packaging "$2/packaging"
        printf "#!/bin/sh\nexit 101\n" > "$2/usr/sbin/policy-rc.d"
        chmod +x "$2/usr/sbin/policy-rc.d"
        env -u TMPDIR chroot "$2" /packaging/install-runtime.sh
        umount "$2/packaging" "$2/proc"
        rmdir "$2/packaging"
        rm "$2/usr/sbin/policy-rc.d"' - "$suite" "$made" "$mirror" > "$log" 2>&1; then
        tail -20 "$log" >&2
        rm -rf "$made" "$log"
        echo "machine.sh: no root file system could be made" >&2
        exit 1
    fi
    rm -f "$log"
    mv "$made" "$root"
}

# The second half of `start`, inside the new namespaces.
inside() {
    local folder=$1 m=$1/root device
    shift
    mount --make-rprivate /
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/changes,workdir=$folder/work" "$m"
    mount -t proc proc "$m/proc"
    mount -t sysfs -o ro sysfs "$m/sys"
    mount -t cgroup2 cgroup2 "$m/sys/fs/cgroup"
    mount -t tmpfs -o mode=755 tmpfs "$m/run"
    mount -t tmpfs tmpfs "$m/tmp"
    mount -t tmpfs -o mode=755 tmpfs "$m/dev"
    for device in null zero full random urandom tty; do
        touch "$m/dev/$device"
        mount --bind "/dev/$device" "$m/dev/$device"
    done
    mkdir "$m/dev/pts" "$m/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$m/dev/pts"
    ln -s pts/ptmx "$m/dev/ptmx"
    ln -s /proc/self/fd "$m/dev/fd"
    ip link set lo up
    if [ $# -eq 0 ]; then
        set -- env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
    fi
    # A read-only root has its writable places mounted, as a container's has.
    [ -z "${READ_ONLY:-}" ] || mount -o remount,bind,ro "$m"
    # chroot is not enough: a process in one cannot create user namespaces, as PrivateUsers=yes of a unit does.
    cd "$m"
    mkdir tmp/outside
    pivot_root . tmp/outside
    chroot . umount -l /tmp/outside
    chroot . rmdir /tmp/outside
    exec env -u TMPDIR chroot . "$@"
}

case "${1:-}" in
prepare)
    prepare
    echo "$root"
    ;;
start)
    folder=$(readlink -f "$2")
    shift 2
    prepare
    mkdir -p "$folder/changes" "$folder/work" "$folder/root"
    # systemd manages the groups below its own, so it gets one that is not the machine's.
    groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/$(basename "$folder")
    mkdir "$groups"
    echo $$ > "$groups/cgroup.procs"
    exec unshare -m -p -u -i -n -C -f --kill-child "$PWD/Tests/Support/machine.sh" inside "$folder" "$@"
    ;;
inside)
    shift
    inside "$@"
    ;;
*) echo "usage: machine.sh prepare | start FOLDER [COMMAND…]" >&2; exit 2 ;;
esac
