#!/bin/bash
# Quotient graphs beside those of igraph and networkit, which come from PyPI where they are missing.
#   PEER_CASES  how many graphs [40]
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
. tests/support/scipy.sh

if ! find_graph_programs >"$log"; then
    echo "skipped: quotients by igraph and networkit ($(tail -n 1 "$log"))"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
"$python" -B tests/contraction/quotient_peers.py "$build/bin/contract" "${PEER_CASES:-40}"
