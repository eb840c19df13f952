#!/bin/sh
# Makes static binaries of mcl-gpu, contract and gnn for the CPU from the last commit: $BUILD/dist/NAME.tar.gz for each
# machine that is named. They run on any Linux of that machine. The same commit and compiler give the same bytes.
#   packaging/release.sh [x86_64] [aarch64]     [x86_64]
# Another machine needs its cross compiler and libraries. On Debian, for aarch64:
#   dpkg --add-architecture arm64 && apt-get update && apt-get install gcc-aarch64-linux-gnu qemu-user-static
#   apt-get install zlib1g-dev:arm64 libzstd-dev:arm64 libopenblas-dev:arm64
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${BUILD:-build}")
make --no-print-directory BUILD="$build" dist
source=$(basename "$build"/dist/mcl-gpu-*[0-9].tar.gz .tar.gz)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C

release() { # release MACHINE
    work=$build/release/$1 name=$source-linux-$1 emulator=
    [ "$1" = "$(uname -m)" ] || emulator=qemu-$1-static
    libraries=/usr/lib/$1-linux-gnu/openblas-pthread
    rm -rf "$work"
    mkdir -p "$work"
    tar xf "$build/dist/$source.tar.gz" -C "$work"
    (
        cd "$work/$source"
        # Debian has ISA-L as a shared library only.
        make --no-print-directory CUDA=0 ISAL=0 CC="$1-linux-gnu-gcc" AR="$1-linux-gnu-ar" CFLAGS=-g0 \
            LDFLAGS='-static -s' BLAS_LIBS="-L$libraries -lopenblas -lpthread" build/bin/mcl-gpu build/bin/contract build/bin/gnn
        mkdir "../$name" "../$name/bin"
        cp build/bin/mcl-gpu build/bin/contract build/bin/gnn "../$name/bin/"
        mkdir -p "../$name/share/man/man1"
        cp docs/man/mcl-gpu.1 docs/man/contract.1 docs/man/gnn.1 "../$name/share/man/man1/"
        cp README.md CHANGELOG.md LICENSE "../$name/"
        # Cluster and contract a network of the repository before anything is packed.
        $emulator "../$name/bin/mcl-gpu" data/Hu-2007.txt.gz --abc -I 2 -q x -V all -o hu.txt
        [ "$(wc -l <hu.txt)" = 157 ]
        $emulator "../$name/bin/contract" data/Hu-2007.txt.gz hu.txt -o between.abc --quiet
        [ "$(wc -l <between.abc)" = 441 ]
        $emulator "../$name/bin/gnn" info data/cora >/dev/null
    )
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --mode=u+rwX,go+rX,go-w -cf - "$name" | gzip -9n >"$build/dist/$name.tar.gz"
    echo "$build/dist/$name.tar.gz"
}

[ $# -gt 0 ] || set -- x86_64
for machine in "$@"; do release "$machine"; done
