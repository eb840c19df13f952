#!/bin/bash
# Statement coverage of the CPU's code of libsparse, io, mcl and mcl-gpu, from what the tests have left in $BUILD (make
# coverage). Prints covered and executable lines of each folder, and writes the lines that never ran to
# $BUILD/uncovered.txt. Fails below COVERAGE percent in any. ranks.c and together.c of mcl-gpu, which work only in several
# MPI processes, are left out: make test-mpi runs them.
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${BUILD:-build/coverage}") at_least=${COVERAGE:-95}
lines=$(mktemp) || exit 1
trap 'rm -f "$lines"' EXIT

(cd "$build/obj/cpu" && find "$PWD/libsparse" "$PWD/io" "$PWD/mcl" "$PWD/apps/mcl-gpu" -name '*.gcno' -print0) |
    xargs -0 -n 1 gcov -t 2>/dev/null >"$lines"
# A line of a header, or of a template that is compiled for several types, is covered if it ran in any of them.
awk -F: -v out="$build/uncovered.txt" -v at_least="$at_least" '
    { count = $1; line = $2; gsub(/ /, "", count); gsub(/ /, "", line) }
    line == 0 { if ($3 == "Source") file = $4; next }
    file ~ /^apps\/mcl-gpu\/(ranks|together)\.c$/ { next }
    file !~ /^(libsparse|io|mcl|apps\/mcl-gpu)\// || count == "-" || line !~ /^[0-9]+$/ { next }
    {
        key = file ":" line
        text = $0; sub(/^[^:]*:[^:]*:/, "", text)
        if (!(key in ran)) { ran[key] = 0; texts[key] = text }
        if (count !~ /^[#=]/) ran[key] = 1
    }
    END {
        for (key in ran) {
            folder = key; if (!sub(/^apps\/mcl-gpu.*/, "apps/mcl-gpu", folder)) sub(/\/.*/, "", folder)
            all[folder]++; covered[folder] += ran[key]
            if (!ran[key]) print key ":" texts[key] | ("sort -t: -k1,1 -k2,2n >" out)
        }
        for (folder in all) {
            percent = 100 * covered[folder] / all[folder]
            printf "%s: %d of %d lines run, %.1f %%\n", folder, covered[folder], all[folder], percent
            if (percent < at_least) failed = 1
        }
        if (length(all) < 4) { print "no lines counted: make coverage builds what this needs"; failed = 1 }
        exit failed
    }' "$lines"
