#!/bin/bash
# Checks the CUDA back end on a machine with a GPU: builds for it, runs every suite that knows CUDA, then few cases of
# those suites under each tool of compute-sanitizer: memory errors and leaks, races in shared memory, reads of memory
# that nobody wrote, barriers that not all threads reach. Prints a line for each run, in the order of the list below,
# then how many there were of each kind, and fails if one failed or found anything. Logs stay in $BUILD/device_check.
#   --sanitize           the suites do not run by themselves
#   --no-build           runs what $BUILD has
#   ARCHS="90"           compute capabilities to build for
#   SUITES="test_spmm"   suites to run, in place of all
#   TOOLS="memcheck"     tools of compute-sanitizer to run, in place of all four
#   TEST_SECONDS         limit for a suite
#   SANITIZE_SECONDS     limit for a run under compute-sanitizer; one that is stopped found nothing until then
#   CHECK_SECONDS        no run under compute-sanitizer starts later than this after the suites
#   JOBS                 runs under compute-sanitizer at a time, in place of one a processor and 12 at most: what they
#                        wait for is mostly the host, but programs that share a GPU wait for each other as well, of 16
#                        each some 6 ms a launch
# CUDA does not survive a fork, and Check's own time limits need one: hence CK_FORK=no under timeout.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} CK_FORK=no OMP_WAIT_POLICY=passive
export TEST_SECONDS=${TEST_SECONDS:-300} SANITIZE_SECONDS=${SANITIZE_SECONDS:-150}
export CHECK_SECONDS=${CHECK_SECONDS:-330}
tools=${TOOLS:-initcheck memcheck synccheck racecheck} # the slowest last
export results=$BUILD/device_check

# Suite, test case ("-": all) and the number of processes among which its tests are dealt out (TEST_SHARE). Few random
# cases and each shape once: a tool slows the kernels down ten to a hundred times.
cases="test_spgemm shapes 10
test_spgemm giant 8
test_spgemm random 1
test_spgemm_plan random 1
test_spgemm_markov - 2
test_markov_devices - 2
test_spmm products 4
test_spmm edges 1
test_contraction sums 2
test_contraction random 1
test_contraction shapes 4
test_maxk products 3
test_similarity pairs 2
test_maxk selection 1
test_operations random 2
test_csr - 1
test_gnn_dense - 5
test_gnn_model - 6
test_gnn_train - 8
test_gnn_sampler structure 2
test_gnn_sampler edges 1"

file_of() { # file_of RUN: where its log and its line are kept, without ending
    local name=${1// /.}
    echo "$results/${name//\//-}"
}
# Leaves beside the log of a run the line that says how it went.
judge() { # judge RUN STATUS SECONDS
    local file verdict
    file=$(file_of "$1")
    verdict="$(grep -E '^[0-9]+ passed' "$file.log" | tail -n 1) in $3 s"
    # What a tool has found, warnings too, for which it has no exit status.
    if grep -qE '^=+ .*(Invalid|Uninitialized|Race reported|Barrier error|Leaked|Program hit)' "$file.log"; then
        verdict="FAILED: findings; $verdict"
    elif [ "$2" -eq 124 ] || [ "$2" -eq 137 ]; then
        verdict="stopped after $3 s, nothing found"
        [ "$1" != "${1%check}" ] || verdict="FAILED: $verdict" # a suite by itself
    elif [ "$2" -ne 0 ] || [[ $verdict != *passed* ]]; then
        verdict="FAILED with status $2; $verdict"
    fi
    printf '%-48s %s\n' "$1" "$verdict" >"$file.line"
}

alone() { # alone SUITE
    local start=$SECONDS
    timeout -k 10 "$TEST_SECONDS" "$BUILD/tests/$1" >"$(file_of "$1").log" 2>&1
    judge "$1" $? $((SECONDS - start))
}

sanitize() { # sanitize RUN, which is SUITE CASE SHARE TOOL
    local suite case share tool file start=$SECONDS
    read -r suite case share tool <<<"$1"
    file=$(file_of "$1")
    if [ $(($(date +%s) - begun)) -ge "$CHECK_SECONDS" ]; then
        printf '%-48s %s\n' "$1" "left out: $CHECK_SECONDS s are over" | tee "$file.line" >"$file.log"
        return
    fi
    # Stages of multiply_split are handed on by mbarriers on which one lane arrives for its warp: racecheck does not
    # see that what the other lanes read and wrote comes before. And it takes seconds for a sort of CUB's.
    local -A flags=([memcheck]="--leak-check full" [racecheck]="--racecheck-report analysis
        --kernel-name-exclude kernel_substring=multiply_split --kernel-name-exclude kernel_substring=cub")
    [ "$case" = - ] || export CK_RUN_CASE=$case
    # shellcheck disable=SC2086
    TEST_SHARE=$share TEST_CASES=12 OMP_NUM_THREADS=1 timeout -k 10 "$SANITIZE_SECONDS" \
        compute-sanitizer --tool "$tool" ${flags[$tool]:-} --error-exitcode 9 "$BUILD/tests/$suite" >"$file.log" 2>&1
    judge "$1" $? $((SECONDS - start))
}
export -f file_of judge sanitize

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

wanted() { [ -x "$BUILD/tests/$1" ] && [[ " ${SUITES:-$1} " == *" $1 "* ]]; } # wanted SUITE
runs=() sanitized=()
knows_cuda() { # knows_cuda SOURCE: a suite's, or one of the parts beside it
    local name=${1##*/test_}
    grep -qsE 'ON_(DEVICES|CUDA)\(' "$1" "${1%/*}/${name%.c}"_*.c
}
for source in $([ -n "$suites" ] && ls tests/*/test_*.c tests/*/*/test_*.c); do
    suite=$(basename "$source" .c)
    if ! wanted "$suite" || ! knows_cuda "$source"; then continue; fi
    runs+=("$suite")
    alone "$suite"
done
if command -v compute-sanitizer >/dev/null; then
    for tool in $tools; do
        while read -r suite case shares; do
            wanted "$suite" || continue
            for ((i = 0; i < shares; i++)); do sanitized+=("$suite $case $i/$shares $tool"); done
        done <<<"$cases"
    done
    runs+=("${sanitized[@]}")
    begun=$(date +%s)
    export begun
    jobs=$(nproc)
    printf '%s\n' "${sanitized[@]}" | xargs -P "${JOBS:-$((jobs < 12 ? jobs : 12))}" -I RUN bash -c 'sanitize "RUN"'
else
    echo "compute-sanitizer is not installed: $tools skipped"
fi

for run in "${runs[@]}"; do
    file=$(file_of "$run")
    grep -q FAILED "$file.line" || continue
    echo "== $run"
    tail -n 40 "$file.log"
done
lines=$(for run in "${runs[@]}"; do cat "$(file_of "$run").line"; done)
count() { grep -cE "^.{48} $1" <<<"$lines"; }
echo "$lines"
echo "${#runs[@]} runs: $(count '[0-9]+ passed') passed, $(count FAILED) failed, $(count stopped) stopped," \
    "$(count 'left out') left out"
[ "$(count FAILED)" -eq 0 ] && [ ${#runs[@]} -gt 0 ]
