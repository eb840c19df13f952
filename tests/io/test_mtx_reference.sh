#!/bin/bash
# The reader of Matrix Market graphs beside one of another hand, in Python, on damaged files.
#   MTX_CASES  how many files [300]; MTX_SEED repeats a run, which prints it
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
library=$(realpath "${BUILD:-build}/python/libspgraph.so") || exit 1
. tests/support/cli.sh
command -v python3 >/dev/null || { echo '0 passed, 0 failed, 1 skipped'; exit 0; }
compare() {
    python3 -B "$root/tests/sweep/mtx_reference.py" "$library" --cases "${MTX_CASES:-300}" ${MTX_SEED:+--seed "$MTX_SEED"}
}
ok 'damaged Matrix Market files' compare
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
