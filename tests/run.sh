#!/bin/bash
# Runs every suite and script below tests/, one a processor at a time, each under a time limit, and adds up
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
run() { # run PATH, of a script or of a suite's source
    local name start=$SECONDS status p f s
    name=$(basename "$1" .c)
    local command=("$BUILD/tests/$name") log=$results/${name%.sh}.log
    [ "$name" = "${name%.sh}" ] || command=(bash "$1")
    name=${name%.sh}
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

paths=()
if [ "${1-}" != --suites ]; then # the longest first
    for script in mcl/live_mcl apps/test_bench mcl/golden python/test_python contraction/scipy_contraction contraction/quotient_peers \
        repository/check_layers repository/check_sizes repository/test_install apps/test_cli apps/test_report \
        apps/test_mcl_runs apps/test_contract apps/test_contract_formats apps/test_coarsen apps/test_judge contraction/refine \
        contraction/through apps/test_contract_attributes apps/test_contract_devices apps/test_devices apps/test_gnn apps/test_gnn_data \
        apps/test_gnn_tables apps/test_gnn_figures apps/test_convert_pickles apps/pipelines \
        io/test_mtx_reference clients/clients repository/test_device_check repository/test_run_fuzz repository/test_build repository/test_glibc repository/test_docs \
        apps/test_outputs apps/test_resources apps/mcl-gpu/test_networks; do
        paths+=("tests/$script.sh")
    done
fi
for source in tests/*/test_*.c tests/*/*/test_*.c; do paths+=("$source"); done
printf '%s\n' "${paths[@]}" | xargs -P "$(nproc)" -I FILE bash -c 'run FILE 9>"$results/lock"'

read -r passed failed skipped < <(awk -v names=${#paths[@]} '{ p += $1; f += $2; s += $3 }
    END { print p + 0, f + names - NR, s + 0 }' "$results/sums")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
