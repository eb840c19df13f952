#!/bin/sh
# Builds the library and the tools for macOS on this machine, to find what does not exist there: compiles against
# macOS's C headers and links with its C library, which zig brings along. Nothing is run, nothing is made for use: zlib,
# zstd, OpenMP and BLAS are empty libraries with the names of the functions in this machine's ones.
#   packaging/macos.sh [aarch64|x86_64]     needs python3 -m ziglang (PyPI) and what scripts/setup fuzz installs
set -eu
cd "$(dirname "$0")/.."
work=$(realpath -m "${BUILD:-build}/macos-${1:-aarch64}")
zig="${PYTHON:-python3} -m ziglang cc -target ${1:-aarch64}-macos"
mkdir -p "$work/include" "$work/lib"

last() { for file; do :; done; echo "$file"; } # of the versions that there are
for header in zlib.h zstd.h cblas.h; do # and what these include, but the C library
    echo "#include <$header>" | cc -M -x c - | tr ' ' '\n' |
        grep -E '/(z(lib|conf|std|std_errors)|cblas.*|openblas_config)\.h$' |
        xargs -I FILE cp -L FILE "$work/include/"
done
sed -i.linux '/#define OPENBLAS_OS_LINUX/d' "$work"/include/openblas_config*.h
cp "$(last /usr/lib/llvm-*/lib/clang/*/include/omp.h)" "$work/include/"

empty() { # empty NAME LIBRARY PATTERN: libNAME.dylib with the functions of LIBRARY whose names match
    { nm -D --defined-only "$2" | sed -nE 's/.* [TWi] ([^@]+).*/\1/p' | grep -E "^($3)"
      [ "$1" != omp ] || echo __kmpc_dispatch_deinit; } | # which newer compilers call
        sort -u | sed 's/.*/void &(void) {}/' >"$work/lib/$1.c"
    $zig -w -fno-builtin -shared -o "$work/lib/lib$1.dylib" "$work/lib/$1.c"
}
here() { cc -print-file-name="lib$1.so"; }
empty z "$(here z)" '(in|de)flate|crc|adler|gz|compress|zlib'
empty zstd "$(here zstd)" ZSTD_
empty openblas "$(here openblas)" 'cblas_|openblas_'
empty omp "$(last /usr/lib/llvm-*/lib/libomp.so)" '__kmpc|omp_'

make --no-print-directory -k BUILD="$work" SYSTEM=Darwin CUDA=0 ISAL=0 HARDENING= BLAS_LIBS=-lopenblas \
    CC="$zig" AR="$(command -v llvm-ar || last /usr/bin/llvm-ar-*)" CPPFLAGS="-I$work/include" \
    CFLAGS='-O1 -g0 -Wno-sign-conversion -Wno-enum-float-conversion -Werror=implicit-function-declaration' \
    LDFLAGS="-L$work/lib" all
file "$work"/bin/* "$work"/lib/*.so.*.*.*
