#!/bin/bash
# Quotient graphs C = S·G·Sᵀ beside two products of SuiteSparse:GraphBLAS (CPU), or of cuSPARSE and relabelling with
# CUB's sort (GPU): R-MAT, uniform and community graphs, 1, 10 and 50 % of the nodes as groups, drawn at random and as
# runs. On the GPU also two products with and without the stage that gathers ranges (Li et al., Figure 7); on the CPU
# beside scipy. And the tool from text to text, on two cores; partitions by its coarse graphs beside those of METIS and
# KaHIP; its matching and coarsening beside networkit's. Levels of coarsening by each way, checked with the CPU's.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_contract.sh [options]      writes bench/results/contract-NAME.json, contract-NAME-aia.json,
                                              contract-NAME-scipy.json, text-NAME.json, partitions-NAME.json,
                                              coarsen-NAME.json, coarsen-NAME-rmat.json, coarsen-NAME-stencil.json and prints tables
  --small             three small graphs
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      presets or KIND:ARGS [rmat20 uniform20 rmat22, communities; on the CPU rmat:18,16]
  --files DIR         also the graphs in DIR (.mtx, .txt; .gz); partitions and coarsen: METIS graphs (.graph; .gz)
  --parts "..."       of speed aia scipy text partitions coarsen levels [speed aia; on the CPU speed]
  --how "..."         ways of --repeat for partitions [matching two-hop hec lp]
  --seeds N           of METIS for partitions, whose mean cut is compared [3]
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate and case; then fewer samples do [2; on the CPU 20]
  --threads N         [all cores]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results, PYTHON an interpreter that has scipy, pymetis,
kahip and networkit.
END_OF_USAGE
}

build=${BUILD:-build} python=${PYTHON:-python3}
device='' graphs='' files='' parts='' repeat=10 limit='' threads='' name='' small=''
how='matching two-hop hec lp' seeds=3
options="device graphs files parts how seeds repeat limit threads name"
. bench/options.sh
twins="wind-tunnel road web-Google amazon economics protein" # of the matrices of Figure 7
if [ "$device" = cpu ]; then
    limit=${limit:-20} graphs=${graphs:-rmat:18,16} parts=${parts:-speed}
else
    limit=${limit:-2} parts=${parts:-speed aia}
    graphs=${graphs:-rmat20 uniform20 rmat22 community:1000000,18,5000,50,100,70,0} # blocks of 1 % are its communities
fi
if [ -n "$small" ]; then graphs=small twins=small name=$name-small; fi
paths=() status=0 written=()
if [ -n "$files" ]; then
    mapfile -t paths < <(find "$files" -maxdepth 1 \( -name '*.mtx' -o -name '*.txt' -o -name '*.mtx.gz' -o \
        -name '*.txt.gz' \) | sort)
fi

bench() { # bench RESULT GRAPHS ARGUMENTS...
    local json=bench/results/contract-$1.json generated=() graph
    for graph in $2; do generated+=(--generate "$graph"); done
    "$build/bin/sparse-bench" contract --device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" \
        --limit "$limit" --json "$json" "${generated[@]}" "${@:3}" || status=1
    if [ -e "$json" ]; then written+=("$json"); fi
}

# The tool's reports, and bytes a second of reading and of writing, for 17 million edges drawn at random as Matrix
# Market and 50,000 groups of twenty nodes. Two cores, and as many threads. Writing ends when the process does: the
# file is synced by then.
text_to_text() {
    local folder edges=17000000 nodes=1000000 json=bench/results/text-$name.json run runs=() cores began
    if [ -n "$small" ]; then edges=20000 nodes=1000; fi
    folder=$(mktemp -d) || return 1
    awk -v n=$nodes -v m=$edges 'BEGIN {
        srand(1)
        printf "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", n, n, m
        for (; m > 0; m--) printf "%d %d %.6f\n", n * rand() + 1, n * rand() + 1, rand()
    }' >"$folder/graph.mtx" && awk -v n=$nodes 'BEGIN { for (i = 0; i < n; i++) print int(i / 20) + 1 }' \
        >"$folder/labels" || status=1
    cores=$(taskset -cp $$ | sed 's/.*: //; s/-.*\|,.*//')
    for run in 1 2 3 4 5; do
        began=$(date +%s.%N)
        taskset -c "$cores,$((cores + 1))" "$build/bin/contract" "$folder/graph.mtx" "$folder/labels" \
            -o "$folder/quotient.mtx" --device cpu --threads 2 --report "$folder/report$run.json" || status=1
        runs+=("$began" "$(date +%s.%N)" "$folder/report$run.json")
    done
    python3 -B - "$folder/quotient.mtx" "$json" "$BENCH_COMMIT" "${runs[@]}" <<'END_OF_SUMMARY' || status=1
import datetime, json, os, statistics, sys
written = os.path.getsize(sys.argv[1])
reports, rates = [], {"read_graph": [], "read_labels": [], "write": []}
for began, ended, path in zip(sys.argv[4::3], sys.argv[5::3], sys.argv[6::3]):
    with open(path) as report:
        r = json.load(report)
    seconds = r["seconds"]
    rates["read_graph"].append(r["graph"]["bytes"] / seconds["read_graph"])
    rates["read_labels"].append(r["labels"]["bytes"] / seconds["read_labels"])
    rates["write"].append(written / (float(ended) - float(began) - seconds["total"] + seconds["write"]))
    reports.append(r)
result = {"bench": "text to text", "date": datetime.date.today().isoformat(), "commit": sys.argv[3],
          "written_bytes": written, "bytes_per_second": rates, "reports": reports}
with open(sys.argv[2], "w") as out:
    json.dump(result, out, indent=1)
for what, all_rates in rates.items():
    print(f"{what}: median {statistics.median(all_rates) / 1e6:.0f} MB/s of {len(all_rates)} runs, "
          f"{min(all_rates) / 1e6:.0f} to {max(all_rates) / 1e6:.0f}")
END_OF_SUMMARY
    rm -rf "$folder"
}

on_metis_graphs() { # on_metis_graphs SCRIPT OPTIONS...: with the METIS graphs of --files
    local metis=()
    [ -z "$files" ] || mapfile -t metis < <(find "$files" -maxdepth 1 \( -name '*.graph' -o -name '*.graph.gz' \) | sort)
    BUILD=$build CONTRACT=$build/bin/contract "$python" -B "bench/$1.py" "${@:2}" "${metis[@]}" || status=1
}

# sparse-bench coarsen; on a GPU graphs of 100 million edges.
levels() {
    local graphs=(rmat:18,16 stencil:60,60,60,27) graph
    if [ "$device" != cpu ]; then graphs=(rmat:22,27 stencil:198,198,199,27); fi
    if [ -n "$small" ]; then graphs=(rmat:11,8 stencil:12,12,12,27); fi
    for graph in "${graphs[@]}"; do
        "$build/bin/sparse-bench" coarsen --device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" \
            --limit "$limit" --json "bench/results/coarsen-$name-${graph%%:*}.json" --generate "$graph" || status=1
    done
}

mkdir -p bench/results
for part in $parts; do
    case $part in
    speed) bench "$name" "$graphs" "${paths[@]}" ;;
    aia) bench "$name-aia" "$twins" --aia --groups 10% --peers none ;;
    scipy)
        if [ "$device" != cpu ]; then echo "left out: scipy, which runs on the CPU" >&2 && continue; fi
        bench "$name-scipy" "$graphs" --peers graphblas,mkl,scipy
        ;;
    text) text_to_text ;;
    partitions)
        on_metis_graphs partition --how "$how" --seeds "$seeds" --kahip eco --json "bench/results/partitions-$name.json"
        ;;
    coarsen) on_metis_graphs peers/coarsen --json "bench/results/coarsen-$name.json" ;;
    levels) levels ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ ${#written[@]} -eq 0 ] || python3 -B bench/table.py --show "${written[@]}" || status=1
exit $status
