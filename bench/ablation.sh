#!/bin/bash
# What every special path is worth: times the cases of the benchmarks as they are, and without each path whose source
# says left_out("NAME") (libsparse/base/ablation.h). A path stays if leaving it out costs 3 % over all cases or 15 % of a
# family that users have.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/ablation.sh [options]    needs a build of its own: make ABLATION=1 BUILD=build/ablation
  --names "..."       of the paths [all that the sources have]
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --graphs "..."      of gnn: specifications of gnn convert [flickr reddit; on the CPU flickr]
  --widths N,...      of spmm [16,32,64,100,128,256,602]
  --repeat N          samples, of which the median counts [5]
  --limit SECONDS     for each candidate and matrix; then fewer samples do [1]
  --out DIR           where logs and JSON files go [BUILD/results]
Names of markov are left out: mcl-gpu's own runs measure these.
Names of spgemm, spmm and contract are measured on the cases of bench/survey.sh, those of gnn by sparse-bench gnn: GCN
and GraphSAGE with 16 and 256 columns, A*X kept and not, 16-bit gathers, MaxK, sampling. BUILD=DIR the build
[build/ablation].
END_OF_USAGE
}

export BUILD=${BUILD:-build/ablation}
names='' device='' graphs='' widths=16,32,64,100,128,256,602 repeat=5 limit=1 out='' name='' threads=''
options="names device graphs widths repeat limit out"
. bench/options.sh
[ "$device" = cpu ] && graphs=${graphs:-flickr}
graphs=${graphs:-flickr reddit}
out=${out:-$BUILD/results}
names=${names:-$(grep -rhE 'left_out\(' libsparse gnn | grep -oE '"[a-z0-9]+-[a-z0-9-]+"' | tr -d '"' | grep -v ^markov- | sort -u)}
for name in $names; do
    case $name in
    spgemm-* | spmm-* | contract-* | gnn-*) ;;
    *) echo "ablation.sh: no benchmark measures $name" >&2 && exit 2 ;;
    esac
done
mkdir -p "$out" || exit 1
status=0

gnn() { # gnn NAME: epochs and sampling
    local generate=()
    for graph in $graphs; do generate+=(--generate "$graph"); done
    "$BUILD/bin/sparse-bench" gnn "${generate[@]}" --device "$device" --repeat "$repeat" --limit "$limit" --model gcn,sage \
        --hidden 16,256 --maxk 16,32 --keep --half --sample --json "$out/$1.json" >"$out/$1.log" || status=1
}
survey() { # survey OPERATION: with the same seed each time
    local parts="$1-f64 $1-f32"
    [ "$1" != spmm ] || parts=spmm-f32
    BENCH_WITHOUT=$(tr ' ' ',' <<<"$names") bench/survey.sh --parts "$parts" --out "$out" --seed 1 --device "$device" \
        --repeat "$repeat" --limit "$limit" --widths "$widths" --peers none >"$out/$1.txt" || status=1
    python3 -B bench/ablation.py "$out/survey.log" || status=1
}

for operation in spgemm spmm contract gnn; do
    own=$(tr ' ' '\n' <<<"$names" | grep "^$operation-")
    [ -n "$own" ] || continue
    if [ $operation != gnn ]; then
        survey $operation
        continue
    fi
    gnn whole
    for path in $own; do
        SPARSE_WITHOUT=$path gnn "$path"
        python3 -B bench/ablation.py --gnn "$path" "$out/whole.json" "$out/$path.json" || status=1
    done
done
exit $status
