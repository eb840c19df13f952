#!/bin/bash
# Quotient graphs against scipy's: contract_scipy.py runs the tool on random files; gen_contraction.py writes random
# graphs and their quotients, the suite of the contraction reads them.
#   SCIPY_CASES  how many graphs of either kind [240]
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

. tests/support/scipy.sh

if ! find_scipy >"$work/log"; then
    echo "skipped: there is no scipy, and none from PyPI ($(tail -n 1 "$work/log"))"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
if ! "$python" tests/contraction/contract_scipy.py "$build/bin/contract" "${SCIPY_CASES:-240}"; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
if ! "$python" tests/contraction/gen_contraction.py "${SCIPY_CASES:-240}" >"$work/cases"; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
"$build/tests/test_contraction" "$work/cases"
