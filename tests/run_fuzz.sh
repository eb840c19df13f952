#!/bin/bash
# Runs every fuzz target of $BUILD/bin for FUZZ_SECONDS, from the seeds in tests/fuzz/corpus/NAME where there are
# some. A finding is kept as $BUILD/NAME.found/ and fails the run.
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build/fuzz}
passed=0 failed=0

for source in tests/fuzz/fuzz_*.c; do
    [ -e "$source" ] || break
    name=$(basename "$source" .c)
    grown=$BUILD/corpus/$name found=$BUILD/$name.found seeds=tests/fuzz/corpus/${name#fuzz_}
    mkdir -p "$grown" "$found"
    [ -d "$seeds" ] || seeds=
    if "$BUILD/bin/$name" -max_total_time="${FUZZ_SECONDS:-60}" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
        -malloc_limit_mb=512 -artifact_prefix="$found/" -print_final_stats=1 "$grown" $seeds >"$BUILD/$name.log" 2>&1
    then
        passed=$((passed + 1))
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$BUILD/$name.log") inputs, no finding"
    else
        failed=$((failed + 1))
        echo "$name: finding, see $found and $BUILD/$name.log"
        tail -n 40 "$BUILD/$name.log"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
