#!/bin/bash
# What the build makes runs with glibc 2.34, that of RHEL 9 (Ubuntu 22.04 has 2.35): no library or program asks for a
# symbol of a newer one. On a system whose own headers name newer symbols, no build can do that.
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath -m "${BUILD:-build}")
. tests/support/cli.sh
limit=2.34

needed() { objdump -T "$1" | sed -n 's/.*GLIBC_\([0-9.]*\)[) ].*/\1/p' | sort -Vu | tail -n 1; } # needed FILE
runs() { # runs FILE: with that glibc; or says which symbols hinder it
    local version
    version=$(needed "$1") && [ -n "$version" ] || { echo "$1 names no version of glibc"; return 1; }
    [ "$(printf '%s\n' "$version" $limit | sort -V | tail -n 1)" = $limit ] ||
        { echo "$1 needs GLIBC_$version:" $(objdump -T "$1" | grep -F "GLIBC_$version" | sed 's/.* //'); return 1; }
}

if ! command -v objdump >/dev/null; then
    skip 'no objdump (binutils)'
elif ! printf '#include <stdlib.h>\nint main(int n, char **a) { return (int)strtol(a[n - 1], NULL, 10); }\n' >probe.c ||
    ! ${CC:-cc} -D_GNU_SOURCE probe.c -o probe || ! runs "$work/probe" >/dev/null; then
    skip "this system's headers name symbols that glibc $limit does not have"
else
    files=0
    for file in "$build"/bin/* "$build"/lib/lib*.so.*.*.* "$build"/python/libspgraph.so; do
        if [ -f "$file" ] && [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] && objdump -p "$file" | grep -q 'NEEDED.*libc\.so'; then
            ok "${file#"$build"/} runs with glibc $limit" runs "$file"
            files=$((files + 1))
        fi
    done
    ok 'the build has tools and libraries' [ $files -ge 3 ]
    printf '#include <stdlib.h>\nint main(void) { return (int)arc4random(); }\n' >newer.c
    refused() { ! runs "$work/newer" >newer.out && grep -qx '.*/newer needs GLIBC_2.36: arc4random' newer.out; }
    if ${CC:-cc} -D_GNU_SOURCE newer.c -o newer 2>/dev/null; then ok 'a newer symbol is found and named' refused; else
        skip 'no arc4random here: a program with a newer symbol'
    fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
