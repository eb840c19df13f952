#!/bin/sh
# Includes between modules point one way: apps use mcl, contraction, gnn, io and libsparse; mcl, contraction, gnn and
# io use sparse.h alone; libsparse uses nothing of the others. Nobody includes another module's private header.
cd "$(dirname "$0")/.." || exit 1
failed=0 passed=0

# only DIR PATTERN: the project headers (quoted includes) in DIR are those that match PATTERN or lie in DIR.
only() {
    bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "$1" 2>/dev/null | while IFS= read -r line; do
        name=$(printf '%s\n' "$line" | sed 's/^[^"]*"\([^"]*\)".*/\1/')
        printf '%s\n' "$name" | grep -qE "^($2)$" && continue
        case $name in */*) ;; *) [ -n "$(find "$1" -name "$name")" ] && continue ;; esac
        printf '%s\n' "$line"
    done)
    if [ -n "$bad" ]; then
        echo "$1 may only include its own headers and $2:"
        echo "$bad"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

only libsparse 'sparse\.h'
only io 'sparse\.h'
only mcl 'sparse\.h'
only contraction 'sparse\.h'
only gnn 'sparse\.h'
only apps 'sparse\.h|io\.h|mcl\.h|contraction\.h|gnn\.h'

# The library never prints, exits or aborts.
if grep -rnE '\b(printf|fprintf|puts|fputs|perror|exit|abort)[[:space:]]*\(' libsparse mcl contraction gnn --include='*.c' \
    --include='*.h' --include='*.cu' --include='*.cuh' | grep -v '__attribute__'; then
    echo "libsparse and mcl return a status; they do not print or end the program"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
