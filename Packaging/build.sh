#!/usr/bin/env bash
# Makes what is installed out of the release build (`swift build -c release --product martlet`), or out of that in the folder PROGRAM_FOLDER.
#   build.sh deb             .build/package/martlet_VERSION_ARCHITECTURE.deb, its SBOM, and symbols for debuggers
#   build.sh image FOLDER STATUS
#                            the program laid out below FOLDER as in an image whose /var/lib/dpkg/status is STATUS, with the image's SBOM
set -euo pipefail
cd "$(dirname "$0")/.."

build=${PROGRAM_FOLDER:-.build/release}
out=.build/package
# With its debug information; what is installed has none.
program=$out/martlet
architecture=$(dpkg --print-architecture)
# Equal sources give equal packages: every file is as old as the last commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH LC_ALL=C
umask 022

fail() {
    echo "Packaging/build.sh: $1" >&2
    exit 1
}

# Links the objects of the release build once more, with the Swift runtime inside: Debian has no package of it. SwiftPM's own --static-swift-stdlib
# would compile everything again, for the same objects; what it adds to the link for Foundation stands here instead.
link() {
    local objects=$build/martlet.product/Objects.LinkFileList libraries
    [ -f "$objects" ] || fail "no release build here; run 'swift build -c release --product martlet' first"
    mkdir -p "$out"
    # The list names the folder in which the build ran.
    sed "s|^.*/release/|$(readlink -f $build)/|" "$objects" > "$out/objects"
    libraries=$(pkg-config --libs openssl libcurl sqlite3 libsrtp2 nice jansson libjwt yaml-0.1 libprotobuf-c zlib)
    # Like Debian's own programs: loaded at a random address, with tables that are read-only once they are filled in.
    # shellcheck disable=SC2086 # words of pkg-config
    swiftc -static-stdlib -emit-executable -module-name martlet -g -o "$program" "@$out/objects" \
        -Xlinker --gc-sections -Xlinker --defsym -Xlinker main=martlet_main -Xlinker --build-id=sha1 \
        -Xlinker --as-needed -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now \
        -lCoreFoundation -l_FoundationCollections -l_FoundationCShims -l_FoundationICU $libraries > "$out/link.log" 2>&1 ||
        { cat "$out/link.log" >&2; fail "the program cannot be linked"; }
    rm -f "$out/objects"
}

# The dependencies with the versions that the program's symbols need; the names must be those of the list.
linked_dependencies() {
    local work found named
    work=$(mktemp -d)
    mkdir "$work/debian"
    : > "$work/debian/control"
    found=$(cd "$work" && dpkg-shlibdeps -O -e "$1" 2>"$work/log" | sed -n 's/^shlibs:Depends=//p') || { cat "$work/log" >&2; rm -rf "$work"; exit 1; }
    rm -rf "$work"
    named=$(Packaging/packages.sh linked | sort)
    [ "$(tr ',' '\n' <<< "$found" | awk '{ print $1 }' | sort)" = "$named" ] ||
        fail "the program is linked with: $found
Packaging/runtime-packages lists: $(paste -sd' ' <<< "$named")
Correct the list, with each licence. Its names are those of Debian 12."
    echo "$found"
}

# A manual page, sections 1 and 5, of the help that the program prints.
manual() {
    local title=$1 section=$2 summary=$3
    echo ".TH $title $section \"$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)\" \"martlet $version\""
    printf '.SH NAME\n%s \\- %s\n' "$title" "$summary"
    shift 3
    while [ $# -gt 0 ]; do
        printf '.SH %s\n.nf\n' "$1"
        "$program" $2 | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
        echo .fi
        shift 2
    done
}

# The program and its completions, below a folder.
stage() {
    local root=$1 shell
    declare -A completions=([bash]=usr/share/bash-completion/completions/martlet [zsh]=usr/share/zsh/vendor-completions/_martlet
        [fish]=usr/share/fish/vendor_completions.d/martlet.fish)
    install -D -m 755 "$program" "$root/usr/bin/martlet"
    strip --strip-unneeded "$root/usr/bin/martlet"
    for shell in "${!completions[@]}"; do
        "$program" completion "$shell" | install -D -m 644 /dev/stdin "$root/${completions[$shell]}"
    done
}

# A page, with the files and folders that it links, below a folder: links lead to the same places as in the repository.
page() {
    local doc=$1 file=$2 target
    [ ! -e "$doc/$file" ] || return 0
    mkdir -p "$doc/$(dirname "$file")"
    cp -r "$file" "$doc/$file"
    [[ $file == *.md ]] || return 0
    while read -r target; do
        page "$doc" "$(realpath --relative-to=. "$(dirname "$file")/$target")"
    done < <(grep -oP '\]\(\K[^)#:]+(?=[)#])' "$file")
}

documents() {
    local root=$1 doc=$1/usr/share/doc/martlet commands=() name
    for name in $("$program" help | awk '$1 == "martlet" { print $2 }'); do commands+=("martlet $name" "help $name"); done
    mkdir -p "$root/usr/share/man/man1" "$root/usr/share/man/man5" "$doc"
    manual martlet 1 "group-room media router (WebRTC SFU)" COMMANDS help "${commands[@]}" | gzip -9n > "$root/usr/share/man/man1/martlet.1.gz"
    manual martlet.yaml 5 "configuration of martlet" SETTINGS "help settings" | gzip -9n > "$root/usr/share/man/man5/martlet.yaml.5.gz"
    cp Packaging/debian/copyright "$doc/"
    page "$doc" README.md
    page "$doc" SECURITY.md
    # The chart's own names say what the files are only together with their folders.
    install -D Helm/martlet/rules/martlet.yaml "$doc/examples/prometheus-rules.yaml"
    install -D Helm/martlet/dashboards/martlet.json "$doc/examples/grafana-dashboard.json"
    gzip -9n < CHANGELOG.md > "$doc/CHANGELOG.md.gz"
    # In the form that Debian's tools read.
    printf 'martlet (%s) unstable; urgency=medium\n\n  * The changes are in CHANGELOG.md.gz.\n\n -- %s  %s\n' "$version" \
        "$(sed -n 's/^Maintainer: //p' Packaging/debian/control.in)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n > "$doc/changelog.gz"
    find "$doc" -type f -exec chmod 644 {} +
}

deb() {
    local root=$out/root file="$out/martlet_${version}_$architecture.deb" linked needed optional jobs
    rm -rf "$root"
    stage "$root"
    documents "$root"
    linked=$(linked_dependencies "$(readlink -f "$root/usr/bin/martlet")")
    needed=$(Packaging/packages.sh needed | paste -sd, | sed 's/,/, /g')
    optional=$(awk '$1 == "optional" { print $2 }' Packaging/runtime-packages | paste -sd, | sed 's/,/, /g')
    # Suggested, not recommended: most servers record nothing, and ffmpeg brings 250 MB.
    jobs=$(Packaging/packages.sh jobs | paste -sd, | sed 's/,/, /g')
    install -D -m 640 Packaging/martlet.yaml "$root/etc/martlet/martlet.yaml"
    chmod 750 "$root/etc/martlet"
    install -D -m 644 Packaging/martlet.service "$root/lib/systemd/system/martlet.service"
    Packaging/sbom.py --version "$version" --program "$root/usr/bin/martlet" > "$out/martlet_$version.spdx.json"
    gzip -9n < "$out/martlet_$version.spdx.json" > "$root/usr/share/doc/martlet/martlet.spdx.json.gz"
    mkdir "$root/DEBIAN"
    sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@LINKED@/$linked/" -e "s/@NEEDED@/$needed/" \
        -e "s/@OPTIONAL@/$optional/" -e "s/@JOBS@/$jobs/" -e "s/@SIZE@/$(du -sk --apparent-size "$root" | cut -f1)/" \
        Packaging/debian/control.in > "$root/DEBIAN/control"
    install -m 755 Packaging/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
    install -m 644 Packaging/debian/conffiles "$root/DEBIAN/"
    (cd "$root" && find usr lib -type f | sort | xargs md5sum) > "$root/DEBIAN/md5sums"
    find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    rm -f "$out"/*.deb
    # The tests compress less: 3 s of CPU in place of 18, and 19 MB in place of 16.
    dpkg-deb --root-owner-group -Zxz -z"${COMPRESSION_LEVEL:-6}" --build "$root" "$file" > /dev/null
    objcopy --only-keep-debug "$program" "$out/martlet.debug"
    rm -rf "$root"
    echo "$file ($(du -k "$file" | cut -f1) kB)"
}

image() {
    local root=$1 status=$2
    stage "$root"
    linked_dependencies "$(readlink -f "$root/usr/bin/martlet")" > /dev/null
    Packaging/sbom.py --version "$version" --program "$root/usr/bin/martlet" --status "$status" |
        install -D -m 644 /dev/stdin "$root/usr/share/doc/martlet/martlet.spdx.json"
    install -m 644 LICENSE Packaging/debian/copyright "$root/usr/share/doc/martlet/"
}

command -v dpkg-shlibdeps > /dev/null || fail "no dpkg-shlibdeps; install dpkg-dev"
link
version=$("$program" version | awk '{ print $2 }')
case "${1:-}" in
deb) deb ;;
image) image "${2:?a folder}" "${3:?the status file of dpkg}" ;;
*) fail "usage: build.sh deb | image FOLDER STATUS" ;;
esac
