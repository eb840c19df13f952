#!/bin/bash
# Fetches the newest oneMKL and SuiteSparse:GraphBLAS from PyPI into BUILD/peers, where bench/ finds them. Nothing is
# installed elsewhere and nothing is linked: sparse-bench loads them at run time, from the files that BENCH_MKL and
# BENCH_GRAPHBLAS name.
cd "$(dirname "$0")/../.." || exit 1
set -e
peers=${BUILD:-build}/peers
python3 -m venv "$peers"
"$peers/bin/pip" install --quiet --upgrade mkl suitesparse-graphblas
"$peers/bin/pip" list 2>/dev/null | grep -i '^mkl \|^suitesparse'
