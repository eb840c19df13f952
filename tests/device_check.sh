#!/bin/bash
# Checks the CUDA back end on a machine with a GPU: builds for it, runs every suite that knows CUDA, then few cases of
# those suites under each tool of compute-sanitizer: memory errors and leaks, races in shared memory, reads of memory
# that nobody wrote, barriers that not all threads reach. Prints a line for each run, in the order of the list below,
# and fails if one failed or found anything. Logs stay in $BUILD/device_check.
#   --sanitize           the suites do not run by themselves
#   --no-build           runs what $BUILD has
#   ARCHS="90"           compute capabilities to build for
#   TOOLS="memcheck"     tools of compute-sanitizer to run, in place of all four
#   TEST_SECONDS         limit for a suite
#   SANITIZE_SECONDS     limit for a run under compute-sanitizer; one that is stopped found nothing until then
#   CHECK_SECONDS        no run under compute-sanitizer starts later than this after the suites
#   JOBS                 runs under compute-sanitizer at a time, in place of 4: what they wait for is mostly the host,
#                        but programs that share a GPU wait for each other as well, of 16 each some 6 ms a launch
# CUDA does not survive a fork, and Check's own time limits need one: hence CK_FORK=no under timeout.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} CK_FORK=no OMP_WAIT_POLICY=passive
export TEST_SECONDS=${TEST_SECONDS:-300} SANITIZE_SECONDS=${SANITIZE_SECONDS:-60}
export CHECK_SECONDS=${CHECK_SECONDS:-480}
tools=${TOOLS:-memcheck racecheck initcheck synccheck}
export results=$BUILD/device_check

# Few random cases and each shape once: a tool slows the kernels down ten to a hundred times.
cases="test_spgemm shapes
test_spgemm random
test_spgemm_plan random
test_spgemm_markov
test_spmm products
test_spmm edges
test_contraction sums
test_contraction random
test_contraction shapes
test_maxk products
test_maxk selection
test_operations random
test_csr
test_gnn_dense
test_gnn_sampler structure
test_gnn_sampler edges"

# Leaves the log of a run and, beside it, the line that says how it went.
judge() { # judge NAME STATUS SECONDS
    local log=$results/$1.log verdict
    verdict="$(grep -E '^[0-9]+ passed' "$log" | tail -n 1) in $3 s"
    # What a tool has found, warnings too, for which it has no exit status.
    if grep -qE '^=+ .*(Invalid|Uninitialized|Race reported|Barrier error|Leaked|Program hit)' "$log"; then
        verdict="FAILED: findings; $verdict"
    elif [ "$2" -eq 124 ] || [ "$2" -eq 137 ]; then
        verdict="stopped after $3 s, nothing found"
        [ "$1" != "${1%check}" ] || verdict="FAILED: $verdict" # a suite by itself
    elif [ "$2" -ne 0 ]; then
        verdict="FAILED with status $2; $verdict"
    fi
    printf '%-48s %s\n' "${1//./ }" "$verdict" >"$results/$1.line"
}

alone() { # alone SUITE
    local start=$SECONDS
    timeout -k 10 "$TEST_SECONDS" "$BUILD/tests/$1" >"$results/$1.log" 2>&1
    judge "$1" $? $((SECONDS - start))
}

sanitize() { # sanitize TOOL SUITE [CASE]
    local name=$2${3:+.$3}.$1 start=$SECONDS
    if [ $(($(date +%s) - begun)) -ge "$CHECK_SECONDS" ]; then
        printf '%-48s %s\n' "${name//./ }" "left out: $CHECK_SECONDS s are over" | tee "$results/$name.line" \
            >"$results/$name.log"
        return
    fi
    # Stages of multiply_split are handed on by mbarriers on which one lane arrives for its warp: racecheck does not
    # see that what the other lanes read and wrote comes before. And it takes seconds for a sort of CUB's.
    local -A flags=([memcheck]="--leak-check full" [racecheck]="--racecheck-report analysis
        --kernel-name-exclude kernel_substring=multiply_split --kernel-name-exclude kernel_substring=cub")
    # shellcheck disable=SC2086
    env TEST_CASES=12 OMP_NUM_THREADS=1 ${3:+CK_RUN_CASE=$3} timeout -k 10 "$SANITIZE_SECONDS" \
        compute-sanitizer --tool "$1" ${flags[$1]:-} --error-exitcode 9 "$BUILD/tests/$2" >"$results/$name.log" 2>&1
    judge "$name" $? $((SECONDS - start))
}
export -f judge sanitize

build=yes suites=yes
for option in "$@"; do
    case $option in
    --sanitize) suites= ;;
    --no-build) build= ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
rm -rf "$results"
mkdir -p "$results" || exit 1
if [ -n "$build" ] && ! make -j"$(nproc)" CUDA=1 CUDA_ARCHS="${ARCHS:-90}" all suites >"$results/build.log" 2>&1; then
    tail -n 40 "$results/build.log"
    exit 1
fi

names=() runs=()
for source in $([ -n "$suites" ] && grep -l 'test_on_devices' tests/test_*.c); do
    suite=$(basename "$source" .c)
    [ -x "$BUILD/tests/$suite" ] || continue
    names+=("$suite")
    alone "$suite"
done
if command -v compute-sanitizer >/dev/null; then
    for tool in $tools; do
        while read -r suite case; do
            [ -x "$BUILD/tests/$suite" ] || continue
            names+=("$suite${case:+.$case}.$tool")
            runs+=("$tool $suite $case")
        done <<<"$cases"
    done
    begun=$(date +%s)
    export begun
    printf '%s\n' "${runs[@]}" | xargs -P "${JOBS:-4}" -I RUN bash -c 'sanitize RUN'
else
    echo "compute-sanitizer is not installed: $tools skipped"
fi

failed=0
for name in "${names[@]}"; do
    grep FAILED "$results/$name.line" >/dev/null || continue
    failed=$((failed + 1))
    echo "== $name"
    tail -n 40 "$results/$name.log"
done
for name in "${names[@]}"; do cat "$results/$name.line"; done
[ "$failed" -eq 0 ]
