#!/bin/sh
# Makes static binaries of mcl-gpu, contract and gnn for the CPU from the last commit: $BUILD/dist/NAME.tar.gz for each
# machine that is named. They run on any Linux of that machine. The same commit and compiler give the same bytes.
#   packaging/release.sh [x86_64] [aarch64]     [x86_64]
# Before it is packed, mcl-gpu writes the golden results (MCL_GOLDEN_INPUTS=DIR: also those whose inputs are not shipped).
# Another machine than this needs, on Debian, gcc-aarch64-linux-gnu qemu-user-static mmdebstrap and the network, which its libraries come from.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${BUILD:-build}")
make --no-print-directory BUILD="$build" dist
source=mcl-gpu-$(sed -n 's/^#define SP_VERSION_[A-Z]* \([0-9]*\)$/\1/p' libsparse/sparse.h | paste -sd.)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C

# foreign MACHINE: its libraries and headers in $libraries, and a script mcl-gpu that runs the tool, in $work
foreign() {
    case $1 in aarch64) debian=arm64 ;; *) debian=$1 ;; esac
    libraries=$work/libraries
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mmdebstrap --quiet --variant=extract --architectures="$debian" --include=zlib1g-dev,libzstd-dev,libopenblas-dev \
        "$release" "$libraries"
    headers=$libraries/usr/include/$1-linux-gnu
    flags="-isystem $headers/openblas-pthread -isystem $headers -isystem $libraries/usr/include"
    emulator=qemu-$1-static
}

release() { # release MACHINE
    work=$build/release/$1 name=$source-linux-$1 emulator= flags= libraries=
    rm -rf "$work"
    mkdir -p "$work"
    [ "$1" = "$(uname -m)" ] || foreign "$1"
    tar xf "$build/dist/$source.tar.gz" -C "$work"
    (
        cd "$work/$source"
        folder=$libraries/usr/lib/$1-linux-gnu
        # Debian has ISA-L as a shared library only.
        make --no-print-directory BUILD=build CUDA=0 ISAL=0 CC="$1-linux-gnu-gcc" AR="$1-linux-gnu-ar" CPPFLAGS="$flags" \
            CFLAGS=-g0 LDFLAGS="-static -s -L$folder -B$folder" \
            BLAS_LIBS="-L$folder/openblas-pthread -lopenblas -lpthread" \
            build/bin/mcl-gpu build/bin/contract build/bin/gnn
        mkdir "../$name" "../$name/bin"
        cp build/bin/mcl-gpu build/bin/contract build/bin/gnn "../$name/bin/"
        mkdir -p "../$name/share/man/man1"
        cp docs/man/mcl-gpu.1 docs/man/contract.1 docs/man/gnn.1 "../$name/share/man/man1/"
        cp README.md CHANGELOG.md LICENSE "../$name/"
        # Each tool does some work before anything is packed.
        printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$emulator" "$work/$name/bin/mcl-gpu" >run
        chmod +x run
        BUILD=build MCL_GPU=$PWD/run bash tests/mcl/golden.sh
        $emulator "../$name/bin/mcl-gpu" data/Hu-2007.txt.gz --abc -I 2 -q x -V all -o hu.txt
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
