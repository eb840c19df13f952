#!/bin/bash
# The random sweeps, one after another; each prints its seed.
#   SWEEP_CASES  how many cases of each [2000]
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build} cases=${SWEEP_CASES:-2000} failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

. tests/support/scipy.sh

if ! find_scipy >"$work/log"; then
    echo "the sweeps need numpy and scipy, and PyPI has given none ($(tail -n 1 "$work/log"))" >&2
    exit 1
fi
for sweep in contract mcl gnn libsparse; do
    subject=$build/bin
    [ $sweep = libsparse ] && subject=$build/lib/libsparse.so
    echo "== $sweep"
    if [ $sweep = mcl ] && ! type mcl mcxload clm zstd >/dev/null; then
        echo "skipped: it needs mcl, mcxload, clm and zstd"
        continue
    fi
    "$python" "tests/sweep/$sweep.py" "$subject" --cases "$cases" || failed=1
done
exit $failed
