#!/bin/bash
# What `make install` leaves: tools that start, man pages without a complaint, and a library to which README.md's program
# links, shared and static, whose header stands alone in C99 and C++ and whose shared object exports that header and no
# more. Takes the variables of the make that runs the tests (CUDA, CUDA_ARCHS...), so that nothing is built anew.
cd "$(dirname "$0")/.." || exit 1
root=$PWD
. tests/cli.sh

variables=()
case ${MAKEFLAGS-} in *'-- '*) read -ra variables <<<"${MAKEFLAGS#*-- }" ;; esac
if [ -z "${MAKELEVEL-}" ]; then
    echo "skipped: the installation, which make test runs with its variables"
    echo "0 passed, 0 failed, 1 skipped"
    exit
fi
prefix=$work/prefix
ok 'make install' env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" "${variables[@]}" install PREFIX="$prefix"

complaints() { [ -z "$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$1" 2>&1 >/dev/null)" ]; }
for tool in mcl-gpu contract gnn sparse-bench; do
    ok "$tool starts" "$prefix/bin/$tool" --version
    if command -v man >/dev/null; then ok "the page of $tool" complaints "$prefix/share/man/man1/$tool.1"; else
        skip "no man: the page of $tool"; fi
done

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
strict='-Wall -Wextra -Werror'
sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '1d; /^```$/,$d' >app.c
printf '0 0 8\n0 2 3\n1 0 12\n2 1 4\n2 2 8\n' >expected # the square of its matrix
builds() { # builds ARGUMENT...: the program, which then says what it should
    ${CC:-cc} $strict "$@" -o app && ./app >run.out && diff run.out expected
}
if command -v pkg-config >/dev/null; then
    ok 'the program of README.md, shared' builds app.c $(pkg-config --cflags --libs libsparse)
    ok 'the same, static' builds app.c "$prefix/lib/libsparse.a" $(pkg-config --cflags --libs --static libsparse)
else skip 'no pkg-config: the program of README.md'; fi
echo '#include <sparse.h>' >header.c
ok 'the header in C99' ${CC:-cc} -std=c99 -pedantic $strict -I"$prefix/include" -fsyntax-only header.c
if command -v g++ >/dev/null; then
    ok 'the header in C++' g++ -x c++ -std=c++11 -pedantic $strict -I"$prefix/include" -fsyntax-only header.c
else skip 'no g++: the header in C++'; fi
exports() { # but for OpenMP's locks
    nm -D --defined-only "$prefix/lib/libsparse.so" | awk '{ print $3 }' | grep -v '^\.gomp_' | while read -r name; do
        grep -qw "$name" "$prefix/include/sparse.h" || echo "$name"
    done >run.out
    [ ! -s run.out ] || { head -n 20 run.out; return 1; }
}
ok 'only the header is exported' exports

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
