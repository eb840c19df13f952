#!/bin/bash
# Checks the CUDA back end on a machine with a GPU: builds for it, runs every suite that knows CUDA, then few cases of
# those suites under each tool of compute-sanitizer: memory errors and leaks, races in shared memory, reads of memory
# that nobody wrote, barriers that not all threads reach. Prints a line for each run last, and fails if one failed or
# found anything. With --sanitize the suites do not run by themselves.
#   ARCHS="90"           compute capabilities to build for
#   TOOLS="memcheck"     tools of compute-sanitizer to run, in place of all four
#   TEST_SECONDS         limit for a suite
#   SANITIZE_SECONDS     limit for a run under compute-sanitizer; one that is stopped found nothing until then
#   CHECK_SECONDS        no run under compute-sanitizer starts later than this after the suites
# CUDA does not survive a fork, and Check's own time limits need one: hence CK_FORK=no under timeout.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} CK_FORK=no
limit=${TEST_SECONDS:-300} budget=${CHECK_SECONDS:-480} run_limit=${SANITIZE_SECONDS:-60}
tools=${TOOLS:-memcheck racecheck initcheck synccheck}
# Stages of multiply_split are handed on by mbarriers on which one lane arrives for its warp: racecheck does not see
# that what the other lanes read and wrote comes before.
declare -A flags=([memcheck]="--leak-check full" [racecheck]="--racecheck-report analysis
    --kernel-name-exclude kernel_substring=multiply_split")
summary=() failed=0

note() { # note NAME STATUS LOG
    local verdict=ok
    if [ "$2" -ne 0 ]; then
        failed=$((failed + 1))
        verdict="FAILED with status $2"
        tail -n 40 "$3"
    fi
    summary+=("$(printf '%-56s %s' "$1" "$verdict")")
}

# What a tool has found so far, warnings too, for which it has no exit status. Leaks come at the end.
findings() { grep -E '^=+ .*(Invalid|Uninitialized|Race reported|Barrier error|Leaked|Program hit)' "$log"; }

sanitize() { # sanitize TOOL SUITE [CASE]
    local name="$2${3:+, $3} under $1" start=$SECONDS
    [ -x "$BUILD/tests/$2" ] || return
    if [ $((SECONDS - built)) -ge "$budget" ]; then
        summary+=("$(printf '%-56s %s' "$name" "left out: $budget s are over")")
        return
    fi
    # Few random cases and each shape once: a tool slows the kernels down ten to a hundred times.
    # shellcheck disable=SC2086
    env TEST_CASES=12 ${3:+CK_RUN_CASE=$3} timeout -k 10 "$run_limit" \
        compute-sanitizer --tool "$1" ${flags[$1]:-} --error-exitcode 9 "$BUILD/tests/$2" >"$log" 2>&1
    local status=$?
    if [ -n "$(findings)" ]; then
        [ $status -ne 0 ] || status=9
    elif [ $status -eq 124 ] || [ $status -eq 137 ]; then
        summary+=("$(printf '%-56s %s' "$name" "stopped after $run_limit s, nothing found")")
        return
    fi
    note "$name, $(sed -nE 's/^([0-9]+ passed).*/\1/p' "$log" | tail -n 1) in $((SECONDS - start)) s" $status "$log"
}

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
make -j"$(nproc)" CUDA=1 CUDA_ARCHS="${ARCHS:-90}" all suites >"$log" 2>&1
status=$?
note "build" $status "$log"
[ $status -eq 0 ] || { printf '%s\n' "${summary[@]}"; exit 1; }

for source in $([ "${1-}" = --sanitize ] || grep -l 'test_on_devices' tests/test_*.c); do
    suite=$(basename "$source" .c) start=$SECONDS
    timeout -k 10 "$limit" "$BUILD/tests/$suite" >"$log" 2>&1
    status=$?
    note "$suite: $(grep -E '^[0-9]+ passed' "$log" | tail -n 1) in $((SECONDS - start)) s" $status "$log"
done

if command -v compute-sanitizer >/dev/null; then
    built=$SECONDS
    for tool in $tools; do
        sanitize "$tool" test_spgemm random
        sanitize "$tool" test_spmm products
        sanitize "$tool" test_contraction sums
        sanitize "$tool" test_contraction random
        sanitize "$tool" test_maxk products
        sanitize "$tool" test_gnn_dense
        sanitize "$tool" test_gnn_sampler structure
    done
    for tool in $tools; do
        sanitize "$tool" test_spgemm shapes
        sanitize "$tool" test_spgemm_plan random
        sanitize "$tool" test_spgemm_markov
        sanitize "$tool" test_contraction shapes
        sanitize "$tool" test_csr
        sanitize "$tool" test_operations random
        sanitize "$tool" test_maxk selection
        sanitize "$tool" test_gnn_sampler edges
    done
    case " $tools " in *" memcheck "*) sanitize memcheck test_spgemm contract ;; esac
else
    summary+=("compute-sanitizer is not installed: $tools skipped")
fi

printf '%s\n' "${summary[@]}"
[ "$failed" -eq 0 ]
