#!/bin/bash
# What `make install` leaves: tools that start, man pages without a complaint, and a library to which README.md's
# programs link, shared and static, whose header stands alone in C99 and C++ and whose shared object exports that header
# and no more. Takes the variables of the make that runs the tests (CUDA, CUDA_ARCHS...), so that nothing is built anew.
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
program() { # program N: the N-th of README.md
    awk -v n="$1" '/^```c$/ { inside = ++found == n; next } /^```$/ { inside = 0 } inside' "$root/README.md"
}
program 1 >app.c
printf '0 0 8\n0 2 3\n1 0 12\n2 1 4\n2 2 8\n' >app.expected # the square of its matrix
{ program 2; cat <<'END'; } >walk.c
#include <stdio.h>
int main(void) /* four nodes on a line, and the two strongest of each */
{
    const int32_t row[] = {0, 0, 0, 1, 1, 2}, column[] = {1, 2, 3, 2, 3, 3};
    const double value[] = {6, 3, 1, 6, 3, 6};
    sp_context *context;
    sp_csr a, made, walk;
    if (sp_context_create(NULL, &context) != SP_OK ||
        sp_csr_from_coo(context, 4, 4, 6, row, column, value, SP_F64, SP_COMBINE_SUM, true, &a) != SP_OK ||
        neighbour_walk(context, &a, 2, &made) != SP_OK || sp_csr_copy(context, &made, SP_HOST, &walk) != SP_OK)
        return 1;
    for (int64_t i = 0; i < walk.rows; i++)
        for (int64_t e = walk.row_offsets[i]; e < walk.row_offsets[i + 1]; e++)
            printf("%d %d %.3f\n", (int)i, (int)walk.col_indices[e], ((const double *)walk.values)[e]);
    return 0;
}
END
cat >walk.expected <<'END'
0 1 0.800
0 2 0.200
1 0 0.444
1 2 0.444
1 3 0.111
2 0 0.111
2 1 0.444
2 3 0.444
3 1 0.200
3 2 0.800
END
builds() { # builds PROGRAM ARGUMENT...: which then says what it should
    ${CC:-cc} $strict "$1.c" "${@:2}" -o "$1" && "./$1" >run.out && diff run.out "$1.expected"
}
if command -v pkg-config >/dev/null; then
    ok 'the first program of README.md, shared' builds app $(pkg-config --cflags --libs libsparse)
    ok 'the same, static' builds app "$prefix/lib/libsparse.a" $(pkg-config --cflags --libs --static libsparse)
    ok 'the second' builds walk $(pkg-config --cflags --libs libsparse)
else skip 'no pkg-config: the programs of README.md'; fi
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
