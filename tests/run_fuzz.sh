#!/bin/bash
# Runs every fuzz target of $BUILD/bin for FUZZ_SECONDS, one a core at a time, from the seeds in
# tests/fuzz/corpus/NAME where there are some, and prints a line a target with its number of inputs. A finding is kept in
# $BUILD/NAME.found/ and fails the run.
#   FUZZ_TARGETS="abc npy"  these targets instead of all; one that is named twice gets two shares of the cores
#   FUZZ_CORES=N            processes at once [all cores]; with more cores than targets a target gets several
#   FUZZ_SCRATCH=1          begins with the seeds alone and keeps no corpus, so that many short runs add up; else what
#                           gave new coverage stays in $BUILD/corpus for the next run
#   FUZZ_SEED=N             repeats the inputs of another run with an empty $BUILD/corpus; without it each run draws others
# On a machine with many cores, to add to the sums of docs/notebook/tests.md:
#   FUZZ_SCRATCH=1 make fuzz FUZZ_SECONDS=600
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build/fuzz} FUZZ_SECONDS=${FUZZ_SECONDS:-60}
# Two threads of a target wait for each other asleep, and freed memory is kept: 2 to 3 times as many inputs a second.
export KMP_BLOCKTIME=${KMP_BLOCKTIME:-0}
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=8:malloc_context_size=4:allocator_release_to_os_interval_ms=-1}

fuzz() { # fuzz NUMBER NAME: one process; NUMBER tells those of a target apart
    local grown=$BUILD/corpus/fuzz_$2 found=$BUILD/fuzz_$2.found seeds=tests/fuzz/corpus/$2 log=$BUILD/fuzz_$2.$1.log
    [ -z "$FUZZ_SCRATCH" ] || grown=$(mktemp -d) || exit 1
    mkdir -p "$grown" "$found"
    [ -d "$seeds" ] || seeds=
    if ! "$BUILD/bin/fuzz_$2" -max_total_time="$FUZZ_SECONDS" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
        -malloc_limit_mb=512 -artifact_prefix="$found/" -print_final_stats=1 ${FUZZ_SEED:+-seed=$((FUZZ_SEED + $1))} \
        "$grown" $seeds >"$log" 2>&1
    then
        printf '\nFINDING\n' >>"$log" # a process that was killed may have left half a line
    fi
    [ -z "$FUZZ_SCRATCH" ] || rm -rf "$grown"
}
export -f fuzz

targets=(${FUZZ_TARGETS:-$(printf '%s\n' tests/fuzz/fuzz_*.c | sed 's#.*/fuzz_##; s#\.c$##')})
cores=${FUZZ_CORES:-$(nproc)} runs=${#targets[@]}
[ "$cores" -le "$runs" ] || runs=$cores
rm -f "$BUILD"/fuzz_*.log
for ((i = 0; i < runs; i++)); do echo "$i ${targets[i % ${#targets[@]}]}"; done |
    xargs -P "$cores" -L 1 bash -c 'fuzz "$@"' fuzz

passed=0 failed=0
for name in $(printf '%s\n' "${targets[@]}" | sort -u); do
    inputs=$(cat "$BUILD/fuzz_$name".*.log | awk '$1 == "stat::number_of_executed_units:" { n += $2 } END { print n + 0 }')
    wrong=$(grep -lx FINDING "$BUILD/fuzz_$name".*.log)
    if [ -z "$wrong" ] && [ "$inputs" -gt 0 ]; then
        passed=$((passed + 1))
        echo "fuzz_$name: $inputs inputs, no finding"
    else
        failed=$((failed + 1))
        [ -z "$wrong" ] || tail -n 40 $wrong
        echo "fuzz_$name: FINDING after $inputs inputs, see $BUILD/fuzz_$name.found and" ${wrong:-"$BUILD/fuzz_$name.*.log"}
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
