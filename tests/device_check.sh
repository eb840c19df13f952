#!/bin/bash
# Checks the CUDA back end on a machine with a GPU: builds for it, runs every suite that knows CUDA, then the smaller
# ones again under compute-sanitizer (memory errors and leaks; races in shared memory). Prints a summary last.
#   ARCHS="90"       compute capabilities to build for
#   SANITIZE="..."   suites to run under compute-sanitizer, in place of those in `small`
#   TEST_SECONDS     limit for one run
# CUDA does not survive a fork, and Check's own time limits need one: hence CK_FORK=no under timeout.
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} CK_FORK=no
limit=${TEST_SECONDS:-300}
small=${SANITIZE:-test_csr test_spgemm}
summary=() failed=0

note() { # note NAME STATUS LOG
    local verdict=ok
    if [ "$2" -ne 0 ]; then
        failed=$((failed + 1))
        verdict="FAILED with status $2"
        tail -n 40 "$3"
    fi
    summary+=("$(printf '%-44s %s' "$1" "$verdict")")
}

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
make -j"$(nproc)" CUDA=1 CUDA_ARCHS="${ARCHS:-90}" all suites >"$log" 2>&1
status=$?
note "build" $status "$log"
[ $status -eq 0 ] || { printf '%s\n' "${summary[@]}"; exit 1; }

for source in $(grep -l 'test_on_devices' tests/test_*.c); do
    suite=$(basename "$source" .c)
    timeout -k 10 "$limit" "$BUILD/tests/$suite" >"$log" 2>&1
    status=$?
    note "$suite: $(grep -E '^[0-9]+ passed' "$log" | tail -n 1)" $status "$log"
done

if command -v compute-sanitizer >/dev/null; then
    for suite in $small; do
        [ -x "$BUILD/tests/$suite" ] || continue
        timeout -k 10 "$limit" compute-sanitizer --tool memcheck --leak-check full --error-exitcode 9 \
            "$BUILD/tests/$suite" >"$log" 2>&1
        note "$suite under memcheck" $? "$log"
        timeout -k 10 "$limit" compute-sanitizer --tool racecheck --racecheck-report analysis --error-exitcode 9 \
            "$BUILD/tests/$suite" >"$log" 2>&1
        note "$suite under racecheck" $? "$log"
    done
else
    summary+=("compute-sanitizer is not installed: memcheck and racecheck skipped")
fi

printf '%s\n' "${summary[@]}"
[ "$failed" -eq 0 ]
