#!/bin/bash
# Training of unchanged PyTorch Geometric programs with and without spgraph.torch.install_pyg(): GCN and GraphSAGE on
# graphs of the shapes of Flickr and Reddit, beside PyG's best settings, with the losses compared.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_pyg.sh [options]        writes bench/results/pyg-NAME.json and prints its figures
  --small             one small graph
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      flickr, reddit, or specifications of gnn convert [flickr reddit; on the CPU flickr]
  --model LIST        [gcn,sage]
  --hidden LIST       [16,256]
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate; then fewer samples do [20]
  --threads N         [all cores]
  --folder DIR        where graphs are written, or found [a temporary one]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, PYTHON the interpreter that has torch and torch_geometric [python3], BENCH_COMMIT the commit named
in the results. spgraph is that of the build: BUILD/python/libspgraph.so (make CUDA=1 for a GPU).
END_OF_USAGE
}

build=${BUILD:-build} python=${PYTHON:-python3}
device='' graphs='' model=gcn,sage hidden=16,256 repeat=10 limit=20 threads='' folder='' name='' small=''
options="device graphs model hidden repeat limit threads folder name"
. bench/options.sh
if [ "$device" = cpu ]; then
    graphs=${graphs:-flickr}
else
    graphs=${graphs:-flickr reddit}
fi
if [ -n "$small" ]; then graphs=rmat:11,8 name=$name-small hidden=16,64; fi
if [ -n "$folder" ]; then
    mkdir -p "$folder" || exit 1
else
    folder=$(mktemp -d) || exit 1
    trap 'rm -rf "$folder"' EXIT
fi
folders=()
for graph in $graphs; do
    made=$folder/${graph%%[:,]*}
    [ -e "$made/graph.npz" ] || "$build/bin/gnn" convert "generate:$graph" "$made" || exit 1
    folders+=("$made")
done
PYTHONPATH=$(scripts/lay-out-python) || exit 1
export PYTHONPATH
mkdir -p bench/results
"$python" -B bench/pyg_epochs.py "${folders[@]}" --model "$model" --hidden "$hidden" --device "$device" \
    ${threads:+--threads "$threads"} --repeat "$repeat" --limit "$limit" --compile --json "bench/results/pyg-$name.json"
