#!/bin/bash
# Quotient graphs C = S·G·Sᵀ beside two products of SuiteSparse:GraphBLAS (CPU), or of cuSPARSE and relabelling with
# CUB's sort (GPU): R-MAT and uniform graphs, 1, 10 and 50 % of the nodes as groups, drawn at random and as runs.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_contract.sh [options]      writes bench/results/contract-NAME.json and prints the table
  --small             three small graphs
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      presets or KIND:ARGS [rmat20 uniform20 rmat22; on the CPU rmat:18,16]
  --files DIR         also the graphs in DIR (.mtx, .txt; .gz)
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate and case; then fewer samples do [5; on the CPU 20]
  --threads N         [all cores]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results.
END_OF_USAGE
}

build=${BUILD:-build}
device='' graphs='' files='' repeat=10 limit='' threads='' name='' small=''
options="device graphs files repeat limit threads name"
. bench/options.sh
if [ "$device" = cpu ]; then
    limit=${limit:-20} graphs=${graphs:-rmat:18,16}
else
    limit=${limit:-5}
    graphs=${graphs:-rmat20 uniform20 rmat22}
fi
if [ -n "$small" ]; then graphs=small name=$name-small; fi
paths=() generated=()
if [ -n "$files" ]; then
    mapfile -t paths < <(find "$files" -maxdepth 1 \( -name '*.mtx' -o -name '*.txt' -o -name '*.mtx.gz' -o \
        -name '*.txt.gz' \) | sort)
fi
for graph in $graphs; do generated+=(--generate "$graph"); done
json=bench/results/contract-$name.json status=0
mkdir -p bench/results
"$build/bin/sparse-bench" contract --device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" \
    --limit "$limit" --json "$json" "${generated[@]}" "${paths[@]}" || status=1
[ ! -e "$json" ] || python3 -B bench/table.py --show "$json" || status=1
exit $status
