#!/bin/bash
# Sparse times dense beside cuSPARSE (GPU) or SuiteSparse:GraphBLAS (CPU): nine generated graphs at seven widths,
# 16-bit features, the mean and the maximum; graphs of the shapes of Accel-GCN's and of BiKD's at their widths, with
# what these papers take apart; partitions of 1/4 to 8 second-level caches; matrices in host memory.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_spmm.sh [options]        writes bench/results/spmm-NAME-*.json and prints tables
  --small             one small graph of each kind
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      names or specifications [each part has its own; on the CPU what two cores multiply in seconds]
  --widths LIST       [of each part its own]
  --parts "..."       of fp32 f16 bf16 f16-result bf16-result mean max accel-gcn bikd ablation host scipy
                      [fp32 f16 f16-result max; on the CPU fp32]
  --repeat N          samples, of which the median counts [10; of accel-gcn and host 5, of bikd and ablation 3]
  --limit SECONDS     for each candidate and case; then fewer samples do [2; of accel-gcn, bikd and ablation 1]
  --threads N         [all cores]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, RESULTS=DIR where results go, BENCH_COMMIT the commit that is named in them, PYTHON an
interpreter that has scipy. bench/plots.py --papers plots results of accel-gcn, bikd, ablation and max.
END_OF_USAGE
}

build=${BUILD:-build} results=${RESULTS:-bench/results}
device='' graphs='' widths='' parts='' repeat='' limit='' threads='' name='' small=''
options="device graphs widths parts repeat limit threads name"
. bench/options.sh
if [ "$device" = cpu ]; then
    usual=16,32,64,128 parts=${parts:-fp32}
    paper="molecules rmat17 flickr uniform:100000,100 community:100000,60,6000,50,2000,80,1"
else
    usual=16,32,64,96,128,256,384 parts=${parts:-fp32 f16 f16-result max} paper=paper
fi
if [ -n "$small" ]; then graphs=small widths=${widths:-16,33} name=$name-small; fi
status=0 written=()

# bench PART GRAPHS WIDTHS REPEAT LIMIT ARGUMENTS...: the defaults of a part give way to what is asked for; without
# widths each graph has its own
bench() {
    local json=$results/spmm-$name-$1.json columns=${widths:-$3} samples=${repeat:-$4} seconds=${limit:-$5}
    local graph operands=()
    for graph in ${graphs:-$2}; do operands+=(--generate "$graph"); done
    shift 5
    "$build/bin/sparse-bench" spmm --device "$device" ${threads:+--threads "$threads"} --repeat "$samples" \
        --limit "$seconds" ${columns:+--width "$columns"} --json "$json" "${operands[@]}" "$@" || status=1
    written+=("$json")
}

mkdir -p "$results"
for part in $parts; do
    case $part in
    fp32) bench fp32 "$paper" $usual 10 2 ;;
    f16 | bf16) bench "$part" "$paper" $usual 10 2 --features "$part" ;;
    f16-result | bf16-result)
        bench "$part" "$paper" $usual 10 2 --features "${part%-result}" --result "${part%-result}"
        ;;
    mean | max) bench "$part" "$paper" $usual 10 2 --reduce "$part" ;;
    accel-gcn) bench accel-gcn accel-gcn 16,32,64,96,128 5 1 --ablation warps ;;
    bikd) bench bikd bikd '' 3 1 --ablation partitions ;;
    ablation) bench ablation "KG19 SYN500k DBLP KG20 HW OK" '' 3 1 --ablation sizes --peers none ;;
    host)
        if [ "$device" = cpu ]; then echo "left out: host, which needs a GPU" >&2 && continue; fi
        for memory in pinned pageable; do
            # 2 to 4 GB of X and Y, of which the device may hold 1.
            bench "host-$memory" "uniform:500000,16 community:500000,20,20000,50,500,60,1" 512,1024 5 2 \
                --host $memory --memory 1G
        done
        ;;
    scipy)
        if [ "$device" != cpu ]; then echo "left out: scipy, which runs on the CPU" >&2 && continue; fi
        bench scipy "molecules:1900000,20 rmat:17,16 community:89250,10.2,1900,50,900,60,1 uniform:100000,100" $usual 10 2 \
            --peers graphblas,mkl,scipy
        ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ ${#written[@]} -eq 0 ] || python3 -B bench/table.py --show "${written[@]}" || status=1
exit $status
