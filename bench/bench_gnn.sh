#!/bin/bash
# Graph neural networks beside PyTorch, PyTorch Geometric and DGL: full-batch training of GCN and GraphSAGE on graphs of
# the shapes of Flickr and Reddit, aggregation of sparsified features (Li et al., Table II), sampling, training by
# sampled minibatches, accuracy.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_gnn.sh [options]        writes bench/results/gnn-NAME*.json and prints tables
  --small             one small graph
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      flickr, reddit, or specifications of gnn convert [flickr reddit; on the CPU flickr]
  --parts "..."       of train aggregate sample minibatches torch torch-sample torch-minibatches check accuracy
                      maxk-accuracy [all but accuracies]
  --model LIST        of gcn sage sage-max gin gat [gcn,sage]
  --hidden LIST       [16,256]; of gat 8 heads share them
  --maxk LIST         [16,32,64], "": train without MaxK; maxk-accuracy: beside ReLU with the widest of --hidden
  --precision LIST    of PyTorch: fp32, tf32, bf16 (AMP) [fp32,tf32,bf16; on the CPU fp32,bf16]
  --compile SECONDS   of PyTorch, for each torch.compile of a model; 0: none [60]
  --compile-edges N   PyG's messages are compiled up to this number of edges [20000000]
  --order LIST        of the nodes in training: auto, keep, community [auto]
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate; then fewer samples do [20]
  --threads N         [all cores]
  --folder DIR        where graphs are written for both sides [a temporary one]
  --data "..."        folders for accuracy, as gnn train takes them [data/cora]
  --seeds N           of accuracy [10]; twice as many where they deviate
  --split A,B         of accuracy: training and validation nodes of each class, where a folder has no split [20,30]
  --jobs N            folders of accuracy at the same time [1]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, PYTHON the interpreter that has torch [python3], BENCH_COMMIT the commit named in the results.
PyTorch Geometric and DGL of that interpreter run too. DGL 2.1.0, PyPI's newest wheel, is for the CPU and PyTorch 2.0.0
to 2.2.1; an interpreter of its own: python3.11 with torch==2.2.1 dgl==2.1.0 torchdata==0.7.1 numpy==1.26.4 pandas
pydantic pyyaml torch_geometric, and --name cpu-2cores-dgl, whose results the tables join to those of cpu-2cores.
END_OF_USAGE
}

build=${BUILD:-build} python=${PYTHON:-python3}
device='' graphs='' model=gcn,sage hidden=16,256
maxk=16,32,64 order=auto repeat=10 limit=20 threads='' folder='' data=data/cora seeds=10 split=20,30 jobs=1
name='' small='' precision='' compile=60 compile_edges=20000000
parts='train aggregate sample minibatches torch torch-sample torch-minibatches check'
options="device precision compile compile-edges graphs parts model hidden maxk order repeat limit threads folder data"
options+=" seeds split jobs name"
. bench/options.sh
if [ "$device" = cpu ]; then
    graphs=${graphs:-flickr} precision=${precision:-fp32,bf16}
else
    graphs=${graphs:-flickr reddit} precision=${precision:-fp32,tf32,bf16}
fi
if [ -n "$small" ]; then graphs=rmat:11,8 name=$name-small hidden=16,64 maxk=8; fi
if [ -n "$folder" ]; then
    mkdir -p "$folder" || exit 1
else
    folder=$(mktemp -d) || exit 1
    trap 'rm -rf "$folder"' EXIT
fi
status=0 written=() folders=()
rm -f "$folder/failed"
common=(--device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" --limit "$limit")

# Both sides read the same files.
if [[ $parts =~ train|aggregate|sample|minibatches|torch ]]; then
    for graph in $graphs; do
        made=$folder/${graph%%[:,]*}
        [ -e "$made/graph.npz" ] || "$build/bin/gnn" convert "generate:$graph" "$made" || exit 1
        folders+=("$made")
    done
fi

ours() { # ours PART ARGUMENTS...
    local json=bench/results/gnn-$name-$1.json
    shift
    "$build/bin/sparse-bench" gnn "${common[@]}" --json "$json" "${folders[@]}" "$@" || status=1
    written+=("$json")
}
theirs() { # theirs PART COMMAND ARGUMENTS...
    local json=bench/results/gnn-$name-$1.json script=bench/gnn_torch.py
    shift
    if [ "$1" = minibatches ]; then
        script=bench/peers/gnn_minibatches.py
        shift
    fi
    "$python" -B "$script" "$@" "${common[@]}" --json "$json" || status=1
    written+=("$json")
}

# Accuracies, folder beside folder; what is finished stays, whatever becomes of the others.
train() { # train FOLDER MODEL REPORT GNN-TRAIN-OPTIONS...
    local set=$1 model=$2 report=$3
    shift 3
    [ -e "$set/split.npy" ] || set -- "$@" --split "$split"
    "$build/bin/gnn" train "$set" --model "$model" --seeds "$seeds" --quiet --device "$device" --threads "$share" \
        --report "$report" "$@" && python3 -B bench/table.py --add "bench/results/gnn-$name-accuracy.json" "$report"
}
# Options beside the defaults, with which models converge in 200 epochs: else deviations are 4 to 8 points. GIN, whose
# sums grow with the neighbours, wants small steps, and features as they are where few of them are filled; GCN and GAT want
# those of Amazon Photo as they are. What still deviates by more than a point gets twice the seeds.
settings() { # settings MODEL FOLDER
    local twice="--seeds $((2 * seeds))"
    case $1-$(basename "$2") in
    gin-amazon_photo) echo "$twice --hidden 64 --rate 0.003 --dropout 0.8 --input-dropout 0.5" ;;
    gin-*) echo "$twice --hidden 64 --rate 0.001 --no-normalise --dropout 0.8 --input-dropout 0.5" ;;
    gcn-amazon_photo) echo "$twice --hidden 64 --no-normalise" ;;
    gat-amazon_photo) echo --no-normalise ;;
    esac
}
train_models() { # train_models FOLDER: theirs are given what the reports of ours say
    local model reports=()
    for model in gcn sage gin gat; do
        reports+=("$1-$model.json")
        # shellcheck disable=SC2046
        train "$1" $model "$1-$model.json" $(settings $model "$1") || return 1
    done
    "$python" -B bench/gnn_torch.py accuracy "${reports[@]}" --device "$device" --threads "$share" \
        --json "bench/results/gnn-$name-torch-accuracy-$(basename "$1").json"
}
train_maxk() {
    local model k
    for model in gcn sage; do
        for k in '' ${maxk//,/ }; do
            # shellcheck disable=SC2046
            train "$1" $model "$1-$model-maxk$k.json" $(settings $model "$1") --hidden "${hidden##*,}" \
                ${k:+--maxk "$k"} || return 1
        done
    done
}
accuracy() { # accuracy COMMAND, for each folder of --data, --jobs of them at the same time
    local set copy share=$(((${threads:-$(nproc)} + jobs - 1) / jobs))
    mkdir -p "$folder/accuracy"
    for set in $data; do
        copy=$folder/accuracy/$(basename "$set")
        [ -e "$copy/graph.npz" ] || "$build/bin/gnn" convert --undirected "$set" "$copy" || exit 1
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        { "$1" "$copy" || touch "$folder/failed"; } &
    done
    wait
    [ ! -e "$folder/failed" ] || status=1
}

mkdir -p bench/results
for part in $parts; do
    case $part in
    train) ours train --model "$model" --hidden "$hidden" ${maxk:+--maxk "$maxk"} --order "$order" --keep --half ;;
    aggregate) ours aggregate --model none --hidden "${hidden##*,}" --maxk "$maxk" --aggregate ;;
    sample) ours sample --model none --sample ;;
    minibatches) ours minibatches --model none --hidden "$hidden" --minibatches --half ;;
    torch) theirs torch speed "${folders[@]}" --model "$model" --hidden "$hidden" --keep --precision "$precision" \
        --compile "$compile" --compile-edges "$compile_edges" ;;
    torch-sample) theirs torch-sample sample "${folders[@]}" ;;
    torch-minibatches)
        theirs torch-minibatches minibatches "${folders[@]}" --hidden "$hidden" --precision "$precision"
        ;;
    accuracy)
        accuracy train_models
        written+=("bench/results/gnn-$name"-{accuracy,torch-accuracy-*}.json)
        ;;
    maxk-accuracy)
        accuracy train_maxk
        written+=("bench/results/gnn-$name-accuracy.json")
        ;;
    check)
        "$build/bin/gnn" convert generate:rmat:8,6 --features 20 --classes 5 "$folder/check" &&
            "$build/bin/sparse-bench" gnn "${common[@]}" "$folder/check" --model gcn,sage,gin,gat --hidden 16 \
                --export "$folder/exported" || status=1
        theirs torch-check check "$folder/check" "$folder/exported"
        ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ ${#written[@]} -eq 0 ] || python3 -B bench/table.py --show "${written[@]}" || status=1
exit $status
