#!/bin/bash
# Sparse times dense beside cuSPARSE (GPU) or SuiteSparse:GraphBLAS (CPU): nine generated graphs at seven widths,
# 16-bit features, the mean and the maximum.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_spmm.sh [options]        writes bench/results/spmm-NAME-*.json and prints tables
  --small             one small graph of each kind
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      names or specifications [all nine; on the CPU those that two cores multiply in seconds]
  --widths LIST       [16,32,64,96,128,256,384; on the CPU 16,32,64,128]
  --parts "..."       of fp32 f16 bf16 mean max [fp32 f16 max; on the CPU fp32]
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate and case; then fewer samples do [2]
  --threads N         [all cores]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results.
END_OF_USAGE
}

build=${BUILD:-build}
device='' graphs='' widths='' parts='' repeat=10 limit=2 threads='' name='' small=''
options="device graphs widths parts repeat limit threads name"
. bench/options.sh
if [ "$device" = cpu ]; then
    widths=${widths:-16,32,64,128} parts=${parts:-fp32}
    graphs=${graphs:-molecules rmat17 flickr uniform:100000,100 community:100000,60,6000,50,2000,80,1}
else
    widths=${widths:-16,32,64,96,128,256,384} parts=${parts:-fp32 f16 max} graphs=${graphs:-paper}
fi
if [ -n "$small" ]; then graphs=small name=$name-small; fi
status=0 written=() operands=()
for graph in $graphs; do operands+=(--generate "$graph"); done

bench() { # bench PART ARGUMENTS...
    local json=bench/results/spmm-$name-$1.json
    shift
    "$build/bin/sparse-bench" spmm --device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" \
        --limit "$limit" --width "$widths" --json "$json" "${operands[@]}" "$@" || status=1
    written+=("$json")
}

mkdir -p bench/results
for part in $parts; do
    case $part in
    fp32) bench fp32 ;;
    f16 | bf16) bench "$part" --features "$part" ;;
    mean | max) bench "$part" --reduce "$part" ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ ${#written[@]} -eq 0 ] || python3 -B bench/table.py --show "${written[@]}" || status=1
exit $status
