#!/bin/bash
# Runs every fuzz target of $BUILD/bin for FUZZ_SECONDS, one a core at a time, from the seeds in
# tests/fuzz/corpus/NAME where there are some. A finding is kept in $BUILD/NAME.found/ and fails the run. FUZZ_SEED makes
# a run repeat the inputs of another one with an empty $BUILD/corpus; without it each run draws others.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build/fuzz} FUZZ_SECONDS=${FUZZ_SECONDS:-60}
# Two threads of a target wait for each other asleep, and freed memory is kept: 2 to 3 times as many inputs a second.
export KMP_BLOCKTIME=${KMP_BLOCKTIME:-0}
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=8:malloc_context_size=4:allocator_release_to_os_interval_ms=-1}

fuzz() { # fuzz NAME
    local grown=$BUILD/corpus/$1 found=$BUILD/$1.found seeds=tests/fuzz/corpus/${1#fuzz_}
    mkdir -p "$grown" "$found"
    [ -d "$seeds" ] || seeds=
    if "$BUILD/bin/$1" -max_total_time="$FUZZ_SECONDS" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
        -malloc_limit_mb=512 -artifact_prefix="$found/" -print_final_stats=1 ${FUZZ_SEED:+-seed=$FUZZ_SEED} \
        "$grown" $seeds >"$BUILD/$1.log" 2>&1
    then
        echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$BUILD/$1.log") inputs, no finding"
    else
        tail -n 40 "$BUILD/$1.log"
        echo "$1: FINDING, see $found and $BUILD/$1.log"
    fi
}
export -f fuzz

said=$(printf '%s\n' tests/fuzz/fuzz_*.c | sed 's#.*/##; s#\.c$##' | xargs -P "$(nproc)" -I NAME bash -c 'fuzz NAME')
echo "$said"
passed=$(grep -c ', no finding$' <<<"$said") failed=$(grep -c ': FINDING, ' <<<"$said")
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
