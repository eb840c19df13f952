#!/bin/sh
# Makes Debian packages of the last commit, with debian/ as it is now, and checks them with lintian.
#   packaging/deb.sh [--install]    packages go to $BUILD/deb; --install also runs the package tests, as root, on this
#                                   machine: that installs the packages
# Needs dpkg-dev debhelper lintian and what debian/control lists; with --install also autopkgtest.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
build=$(realpath -m "${BUILD:-build}")
make --no-print-directory BUILD="$build" dist
version=$(sed -n '1s/.*(\(.*\)-.*/\1/p' debian/changelog)
rm -rf "$build/deb"
mkdir -p "$build/deb"
cp "$build/dist/mcl-gpu-$version.tar.gz" "$build/deb/mcl-gpu_$version.orig.tar.gz"
cd "$build/deb"
tar xf "mcl-gpu_$version.orig.tar.gz"
cp -r "$source/debian" "mcl-gpu-$version/"
cd "mcl-gpu-$version"
dpkg-buildpackage -us -uc
cd ..
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs ./*.changes # for Debian's archive only
if [ "${1-}" = --install ]; then autopkgtest ./*.deb "mcl-gpu-$version/" -- null; fi
