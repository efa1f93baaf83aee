#!/bin/sh
# install-runtime.sh [KIND]: makes a bare Debian 12 the system that the server runs in: the packages of runtime-packages and the server's user, nothing else.
# With the kind `jobs`, those that jobs on recordings need, too: 250 MB, and programs under the GPL.
# The container file runs this in its last stage. The tests also run it in a root of debootstrap's, without a container engine.
set -eu
here=$(dirname "$0")
export DEBIAN_FRONTEND=noninteractive
apt-get -o Acquire::Retries=3 update -qq
# shellcheck disable=SC2046 # names without spaces
apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends $("$here/packages.sh" linked needed optional "$@") > /dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
# The user that the Helm chart names, too.
groupadd --gid 10001 image
useradd --uid 10001 --gid 10001 --home-dir /var/lib/martlet --no-create-home --shell /usr/sbin/nologin image
