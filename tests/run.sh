#!/bin/bash
# Runs every suite and script of tests/ that is there, each under a time limit, and adds up what they report.
# A program reports "N passed, N failed, N skipped" in a line of its own; one that crashes, or fails without saying
# so, counts as one failure. With --suites only the Check suites run.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
limit=${TEST_SECONDS:-900}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

run() { # run NAME COMMAND...
    local name=$1 start=$SECONDS status p f s
    shift
    echo "== $name"
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
    status=$?
    read -r p f s < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p
        s/^[0-9]+%: Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+)$/\1 \2 \3 check/p' "$log" | tail -n 1 |
        awk '{ if ($4 == "check") print $1 - $2 - $3, $2 + $3, 0; else print }')
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
        if [ $status -eq 124 ] || [ $status -eq 137 ]; then echo "   stopped after $limit s"; else
            echo "   ended with status $status"; fi
    fi
    if [ "$f" -ne 0 ]; then cat "$log"; else grep -i skip "$log" | grep -v ' passed, ' | head -n 20; fi
    printf '   %d passed, %d failed, %d skipped in %d s\n' "$p" "$f" "$s" $((SECONDS - start))
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

for source in tests/test_*.c; do
    suite=$(basename "$source" .c)
    run "$suite" "$BUILD/tests/$suite"
done
if [ "${1-}" != --suites ]; then
    # scipy_contraction makes the environment with numpy and scipy that test_gnn_data compares with.
    for script in check_layers test_install test_cli test_contract test_gnn test_bench golden live_mcl scipy_contraction \
        test_gnn_data pipelines; do
        if [ -f "tests/$script.sh" ]; then run "$script" bash "tests/$script.sh"; fi
    done
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
