#!/bin/sh
# Makes Debian packages of the last commit, with debian/ as it is now, and checks them with lintian.
#   packaging/deb.sh              with what this machine has: dpkg-dev debhelper lintian and what debian/control lists
#   packaging/deb.sh --install    also runs the package tests, which installs them here; needs root, autopkgtest
#   packaging/deb.sh --clean      builds in a new Debian system that has only what debian/control asks for, and tests in
#                                 another one, which had none of it; needs root, mmdebstrap and the network
# Packages go to $BUILD/deb. SUITE=bookworm is the release for --clean; DEB_BUILD_OPTIONS=nocheck leaves the tests of
# the build out.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
build=$(realpath -m "${BUILD:-build}")
unset BUILD # which the package's own "make clean" would remove
suite=${SUITE:-bookworm}
version=$(sed -n '1s/.*(\(.*\)-.*/\1/p' debian/changelog)
name=mcl-gpu-$version
# The tag is about Debian's archive.
check='lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs'

make --no-print-directory BUILD="$build" dist
rm -rf --one-file-system "$build/deb"
mkdir -p "$build/deb"
cp "$build/dist/$name.tar.gz" "$build/deb/mcl-gpu_$version.orig.tar.gz"
cd "$build/deb"
tar xf "mcl-gpu_$version.orig.tar.gz"
cp -r "$source/debian" "$name/"

# new_system FOLDER PACKAGE...: a Debian system with nothing else than these
new_system() {
    system=$1
    shift
    mmdebstrap --quiet --variant=buildd --include="$(echo "$@" | tr ' ' ',')" "$suite" "$system"
}
# within FOLDER COMMAND: run there, with a /proc and devices that vanish with it
within() {
    unshare --mount --pid --fork sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
        mount -t tmpfs tmp "$1/tmp" && exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive HOME=/root sh -euc "$2"' sh "$1" "$2"
}

if [ "${1-}" = --clean ]; then
    new_system builder lintian
    mkdir builder/work
    cp -r "$name" "mcl-gpu_$version.orig.tar.gz" builder/work/
    within builder "cd /work/$name; apt-get -qq update; apt-get -qq build-dep -y ./ >/dev/null
        useradd builder; chown -R builder /work
        su builder -c 'DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-} dpkg-buildpackage -us -uc'; cd ..; $check ./*.changes"
    find builder/work -maxdepth 1 -type f -exec cp {} . \;
    new_system tester autopkgtest
    mkdir tester/work
    cp -r ./*.deb "$name" tester/work/
    within tester "cd /work; apt-get -qq update; autopkgtest ./*.deb $name/ -- null"
    rm -rf --one-file-system builder tester
    exit
fi
cd "$name"
dpkg-buildpackage -us -uc
cd ..
$check ./*.changes
if [ "${1-}" = --install ]; then autopkgtest ./*.deb "$name/" -- null; fi
