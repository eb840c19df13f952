#!/bin/bash
# Runs every suite and script of tests/ that is there, one a processor at a time, each under a time limit, and adds up
# what they report. A program reports "N passed, N failed, N skipped" in a line of its own; one that crashes, or fails
# without saying so, or that ran nothing, counts as one failure. With --suites only the Check suites run.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} TEST_SECONDS=${TEST_SECONDS:-900}
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # threads that wait leave the processor to the other program
results=$(mktemp -d) || exit 1
export results
trap 'rm -rf "$results"' EXIT

counts() { # counts LOG: passed, failed and skipped
    sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p
        s/^[0-9]+%: Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+)$/\1 \2 \3 check/p' "$1" | tail -n 1 |
        awk '{ if ($4 == "check") print $1 - $2 - $3, $2 + $3, 0; else print }'
}
run() { # run NAME, a suite's or a script's
    local name=$1 start=$SECONDS log=$results/$1.log status p f s
    local command=("$BUILD/tests/$name")
    [ -f "tests/$name.sh" ] && command=(bash "tests/$name.sh")
    timeout -k 10 "$TEST_SECONDS" "${command[@]}" >"$log" 2>&1 </dev/null 9>&-
    status=$?
    read -r p f s < <(counts "$log")
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ $status -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then f=1; fi
    flock 9 # what follows is one piece
    echo "== $name"
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
        if [ $status -eq 124 ] || [ $status -eq 137 ]; then echo "   stopped after $TEST_SECONDS s"; else
            echo "   ended with status $status"; fi
    fi
    if [ "$f" -ne 0 ]; then cat "$log"; else grep -i skip "$log" | grep -v ' passed, ' | head -n 20; fi
    printf '   %d passed, %d failed, %d skipped in %d s\n' "$p" "$f" "$s" $((SECONDS - start))
    echo "$p $f $s" >>"$results/sums"
}
export -f counts run

names=()
if [ "${1-}" != --suites ]; then # the longest first
    for script in live_mcl test_bench golden scipy_contraction check_layers test_install test_cli test_contract test_gnn \
        test_gnn_data pipelines test_device_check test_build test_docs test_outputs; do
        if [ -f "tests/$script.sh" ]; then names+=("$script"); fi
    done
fi
for source in tests/test_*.c; do names+=("$(basename "$source" .c)"); done
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I NAME bash -c 'run NAME 9>"$results/lock"'

read -r passed failed skipped < <(awk -v names=${#names[@]} '{ p += $1; f += $2; s += $3 }
    END { print p + 0, f + names - NR, s + 0 }' "$results/sums")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
