#!/bin/bash
# Data races, by ThreadSanitizer: the build in $BUILD (make races) runs its suites, and mcl-gpu clusters networks, on four
# threads.
# libarcher tells ThreadSanitizer what OpenMP's barriers and locks order. A program with a race and one without show
# first that races, and nothing else, are reported.
#   RACES_SUITES="test_io test_mcl"   these suites instead of all
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${BUILD:-build/races}") || exit 1
tool=$build/bin/mcl-gpu
cc=${CC:-clang}
. tests/support/cli.sh

OMP_TOOL_LIBRARIES=$(for file in /usr/lib/llvm-*/lib/libarcher.so; do echo "$file"; done | tail -n 1)
[ -e "$OMP_TOOL_LIBRARIES" ] || { echo 'libarcher.so is missing: scripts/setup fuzz installs it'; exit 1; }
export OMP_TOOL_LIBRARIES OMP_NUM_THREADS=4
export TSAN_OPTIONS='ignore_noninstrumented_modules=1 allocator_may_return_null=1 exitcode=66'

sums() { # sums CLAUSE: a loop whose threads add up, compiled as sums.out
    printf 'int main(void)\n{\n    int n = 0;\n#pragma omp parallel for %s\n' "$1" >sums.c
    printf '    for (int i = 0; i < 10000; i++) n += i;\n    return n == 0;\n}\n' >>sums.c
    "$cc" -g -fopenmp -fsanitize=thread sums.c -o sums.out
}
ok 'a race is reported' eval 'sums "" && { ./sums.out; [ $? -eq 66 ]; }'
ok 'a reduction is not' eval 'sums "reduction(+ : n)" && ./sums.out'

without_races() { # without_races ARGUMENTS...
    status 0 "$@" -te 4 && ! grep -A 12 'WARNING: ThreadSanitizer' run.err
}
"$build/tests/gen/gen_protein" 6000 30 7 >p.abc # large enough for several threads in each step
gzip -k p.abc
ok 'sums in double precision' without_races p.abc --abc -o a
ok 'sums in single precision' without_races p.abc --abc --fast -o a
ok 'heavy pruning, and a checkpoint after each iteration' \
    without_races p.abc.gz --abc -S 20 -R 30 -o a --checkpoint a.ckpt --checkpoint-every 0
ok 'two inflations and all reports' \
    without_races p.abc --abc -I 1.4,4 -o b --report b.html --table b.tsv --graphml b.graphml
ok 'a compressed network, transformed' without_races p.abc.gz --abc -tf '#knn(20)' -overlap split -o c
ok 'a clustering that goes on' eval 'head -n 50000 p.abc >old.abc && without_races old.abc --abc -o old &&
    without_races p.abc --abc --start-from old -o d'

# Check forks for each test, and OpenMP's threads do not survive that: so all tests of a suite run in one process, without
# Check's time limits. Only races count here; a test may fail because the sanitizer has a thread of its own.
suite() { # suite NAME
    CK_FORK=no timeout 3600 "$build/tests/$1" >"$build/$1.log" 2>&1
    grep -q '^[0-9]* passed, ' "$build/$1.log" && ! grep -A 12 'WARNING: ThreadSanitizer' "$build/$1.log" && return
    echo "see $build/$1.log"
    return 1
}
for name in ${RACES_SUITES-$(ls "$build/tests" | grep '^test_')}; do ok "$name" suite "$name"; done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
