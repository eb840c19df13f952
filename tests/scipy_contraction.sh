#!/bin/bash
# Quotient graphs against scipy's: gen_contraction.py writes random graphs and their quotients, the suite of the
# contraction reads them. scipy is the system's, or comes from PyPI into a virtual environment under the build folder.
#   SCIPY_CASES  how many graphs [240]
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

has_scipy() { "$1" -c 'import scipy.sparse; scipy.sparse.csr_array' 2>/dev/null; }

# What can be done is done quietly; the last line of a failure says why.
install_scipy() {
    has_scipy "$build/venv/bin/python3" && return
    python3 -m venv "$build/venv" && timeout 240 "$build/venv/bin/python3" -m pip install --quiet scipy &&
        has_scipy "$build/venv/bin/python3"
}

python=python3
if ! has_scipy "$python"; then
    python=$build/venv/bin/python3
    if ! install_scipy >"$work/log" 2>&1; then
        echo "skipped: there is no scipy, and none from PyPI ($(tail -n 1 "$work/log"))"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
fi
if ! "$python" tests/gen_contraction.py "${SCIPY_CASES:-240}" >"$work/cases"; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
"$build/tests/test_contraction" "$work/cases"
