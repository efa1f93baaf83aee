#!/usr/bin/env bash
# Builds the image of Packaging/Containerfile with podman, and runs it. Its two base images are made here with debootstrap, so no registry is asked. Needs
# root, podman with crun, debootstrap and Debian's mirror; `make nightly PARTS=image` installs them.
#   image.sh build            the image localhost/martlet, and what it is made of; the release build in it takes several minutes
#   image.sh run NAME [-e SETTING=VALUE]…
#                             runs it as README.md says, but in the machine's own network, until SIGTERM, which it passes on
# Images are kept in .build/image, or in the folder IMAGE_STORE.
set -euo pipefail
cd "$(dirname "$0")/../.."
store=${IMAGE_STORE:-$PWD/.build/image}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
# Debian packages that the toolchain needs, as in the image docker.io/library/swift has it.
swift_needs=binutils,ca-certificates,git,libc6-dev,libcurl4-openssl-dev,libedit2,libgcc-12-dev,libncurses6,libpython3-dev,libsqlite3-0,libstdc++-12-dev,libxml2-dev,libz3-dev,pkg-config,tzdata,zlib1g-dev

# In a separate mount namespace, because crun refuses machines that have control groups of both versions. Without control groups and limits, which a sandbox may
# not set.
engine() {
    # shellcheck disable=SC2016 # expanded inside
    ${become:-} unshare -m --propagation private bash -c 'umount -l -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
        store=$1; shift
        exec podman --root "$store/images" --runroot "$store/run" --storage-driver vfs --cgroup-manager cgroupfs --runtime crun "$@"' - "$store" "$@"
}

# A base image of Debian packages only.
base() {
    local name=$1 packages=$2 folder
    shift 2
    ! engine image exists "$name" || return 0
    folder=$(mktemp -d)
    chmod 755 "$folder"
    debootstrap --variant=minbase ${packages:+"--include=$packages"} bookworm "$folder" "$mirror" >"$store/log" 2>&1 || { tail -20 "$store/log" >&2; exit 1; }
    tar -C "$folder" --exclude=./var/cache/apt/archives/*.deb -cf - . | engine import "$@" - "$name" >/dev/null
    rm -rf "$folder"
}

case "${1:-}" in
build)
    mkdir -p "$store"
    toolchain=$(dirname "$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")")
    base localhost/debian:bookworm-slim ""
    base localhost/swift:6.2-bookworm "$swift_needs" --change "ENV PATH=$toolchain/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    # chroot, because RUN needs nothing more; the toolchain is mounted, not copied.
    engine build --isolation=chroot --network=host --layers=false --volume "$toolchain:$toolchain:ro" \
        --build-arg DEBIAN=localhost/debian:bookworm-slim --build-arg SWIFT=localhost/swift:6.2-bookworm \
        --build-arg SOURCE_DATE_EPOCH="$(git -c safe.directory='*' log -1 --format=%ct)" ${STAGE:+--target "$STAGE"} \
        -f Packaging/Containerfile -t "localhost/${STAGE:-martlet}" .
    ;;
run)
    name=$2
    shift 2
    # It replaces this script, so that signals reach it, and it passes them on.
    become=exec
    engine run --rm --name "$name" --cgroups=disabled --ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit nproc=4096:4096 --network=host \
        --read-only --cap-drop=all "$@" localhost/martlet
    ;;
*) echo "usage: image.sh build | run NAME [OPTION…]" >&2; exit 2 ;;
esac
