#!/bin/bash
# Graph neural networks beside PyTorch and PyTorch Geometric: full-batch training of GCN and GraphSAGE on graphs of
# the shapes of Flickr and Reddit, aggregation of sparsified features (Li et al., Table II), neighbour sampling, accuracy.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_gnn.sh [options]        writes bench/results/gnn-NAME*.json and prints tables
  --small             one small graph
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      flickr, reddit, or specifications of gnn convert [flickr reddit; on the CPU flickr]
  --parts "..."       of train aggregate sample torch torch-sample accuracy check [all but accuracy]
  --model LIST        [gcn,sage]
  --hidden LIST       [16,256]
  --maxk LIST         [16,32,64]
  --order LIST        of the nodes in training: auto, keep, community [auto]
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate; then fewer samples do [20]
  --threads N         [all cores]
  --folder DIR        where graphs are written for both sides [a temporary one]
  --data "..."        folders for accuracy, as gnn train takes them [data/cora]
  --seeds N           of accuracy [10]
  --split A,B         of accuracy: training and validation nodes of each class, drawn [that of the folder]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, PYTHON the interpreter that has torch [python3], BENCH_COMMIT the commit named in the results.
END_OF_USAGE
}

build=${BUILD:-build} python=${PYTHON:-python3}
device='' graphs='' parts='train aggregate sample torch torch-sample check' model=gcn,sage hidden=16,256
maxk=16,32,64 order=auto repeat=10 limit=20 threads='' folder='' data=data/cora seeds=10 split='' name='' small=''
options="device graphs parts model hidden maxk order repeat limit threads folder data seeds split name"
. bench/options.sh
if [ "$device" = cpu ]; then
    graphs=${graphs:-flickr}
else
    graphs=${graphs:-flickr reddit}
fi
if [ -n "$small" ]; then graphs=rmat:11,8 name=$name-small hidden=16,64 maxk=8; fi
if [ -z "$folder" ]; then
    folder=$(mktemp -d) || exit 1
    trap 'rm -rf "$folder"' EXIT
fi
status=0 written=() folders=()
common=(--device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" --limit "$limit")

# Both sides read the same files.
for graph in $graphs; do
    made=$folder/${graph%%[:,]*}
    [ -e "$made/graph.npz" ] || "$build/bin/gnn" convert "generate:$graph" "$made" || exit 1
    folders+=("$made")
done

ours() { # ours PART ARGUMENTS...
    local json=bench/results/gnn-$name-$1.json
    shift
    "$build/bin/sparse-bench" gnn "${common[@]}" --json "$json" "${folders[@]}" "$@" || status=1
    written+=("$json")
}
theirs() { # theirs PART COMMAND ARGUMENTS...
    local json=bench/results/gnn-$name-$1.json
    shift
    "$python" -B bench/gnn_torch.py "$@" "${common[@]}" --json "$json" || status=1
    written+=("$json")
}

mkdir -p bench/results
for part in $parts; do
    case $part in
    train) ours train --model "$model" --hidden "$hidden" --maxk "$maxk" --order "$order" --keep --half ;;
    aggregate) ours aggregate --model none --hidden "${hidden##*,}" --maxk "$maxk" --aggregate ;;
    sample) ours sample --model none --sample ;;
    torch) theirs torch speed "${folders[@]}" --model "$model" --hidden "$hidden" --keep ;;
    torch-sample) theirs torch-sample sample "${folders[@]}" ;;
    accuracy)
        sets=() reports=()
        for set in $data; do
            copy=$folder/accuracy/$(basename "$set")
            mkdir -p "$folder/accuracy"
            [ -e "$copy/graph.npz" ] || "$build/bin/gnn" convert "$set" "$copy" || exit 1
            sets+=("$copy")
            for kind in gcn sage gin gat; do
                report=$copy-$kind.json
                "$build/bin/gnn" train "$copy" --model $kind --seeds "$seeds" ${split:+--split "$split"} --quiet \
                    --device "$device" --report "$report" || status=1
                reports+=("$report")
            done
        done
        python3 -B bench/table.py --reports "bench/results/gnn-$name-accuracy.json" "${reports[@]}" || status=1
        written+=("bench/results/gnn-$name-accuracy.json")
        theirs torch-accuracy accuracy "${sets[@]}" --seeds "$seeds" ${split:+--split "$split"}
        ;;
    check)
        "$build/bin/gnn" convert generate:rmat:8,6 --features 20 --classes 5 "$folder/check" &&
            "$build/bin/sparse-bench" gnn "${common[@]}" "$folder/check" --model gcn,sage,gin,gat --hidden 12 \
                --export "$folder/exported" || status=1
        theirs torch-check check "$folder/check" "$folder/exported"
        ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ ${#written[@]} -eq 0 ] || python3 -B bench/table.py --show "${written[@]}" || status=1
exit $status
