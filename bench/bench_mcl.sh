#!/bin/bash
# mcl-gpu beside mcl on generated protein networks: whole processes, interleaved, every sample kept.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END'
usage: bench/bench_mcl.sh [options]      writes bench/results/NAME.json and prints a table
  --small             q2000 and q20000, three runs: what `make bench` does
  --networks "..."    of q2000 q20000 q100000 q300000 p2000 p20000 p100000 p300000, string, or paths of .abc files
                      [q20000]; string: the dense yeast network of data/ (5,925 proteins, 352,606 edges)
                      q: families with subfamilies, p: larger families at random; the number is that of the nodes
  --devices "..."     of cpu, cuda [cpu, and cuda where there is a GPU]
  --runs N            runs of mcl-gpu [5]; the figure quoted is the median
  --peer-runs N       runs of mcl, 0 to leave it out [as --runs]
  --threads N         for both [all cores]
  --timeout SECONDS   for a single run [3600]
  --name NAME         of the result [mcl-DEVICES-THREADScores]
  --inflation F       [2]
MCL=PATH names the mcl to compare with, BUILD=DIR the build, BENCH_DATA=DIR where networks are kept [$BUILD/bench].
END
}

build=${BUILD:-build}
data=${BENCH_DATA:-$build/bench}
networks=q20000 devices='' runs=5 peer_runs='' threads=$(nproc) timeout=3600 name='' inflation=2
while [ $# -gt 0 ]; do
    case $1 in
    --small) networks="q2000 q20000" runs=3 ;;
    --help) usage && exit 0 ;;
    --networks | --devices | --runs | --peer-runs | --threads | --timeout | --name | --inflation)
        [ $# -gt 1 ] || { usage >&2 && exit 2; }
        declare "$(tr - _ <<<"${1#--}")=$2"
        shift
        ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
if [ -z "$devices" ]; then
    devices=cpu
    if nvidia-smi -L >/dev/null 2>&1; then devices="cpu cuda"; fi
fi
mcl=${MCL:-$(command -v mcl)}
peer_runs=${peer_runs:-$runs}
if [ -z "$mcl" ] && [ "$peer_runs" -gt 0 ]; then
    echo "no mcl on this machine: only mcl-gpu is measured (Debian has it: apt-get install mcl)" >&2
    peer_runs=0
fi

# Networks are made once: seed 1, mean degree 80.
files=()
mkdir -p "$data"
for network in $networks; do
    case $network in
    q[0-9]*) generator=gen_protein2 ;;
    p[0-9]*) generator=gen_protein ;;
    string)
        gzip -dc data/4932.*.txt.gz | tail -n +2 | tr ' ' '\t' >"$data/string.abc" || exit 1
        files+=("$data/string.abc")
        continue
        ;;
    *)
        files+=("$network")
        continue
        ;;
    esac
    if [ ! -s "$data/$network.abc" ]; then
        "$build/tests/gen/$generator" "${network:1}" 80 1 3>/dev/null >"$data/$network.tmp" || exit 1
        mv "$data/$network.tmp" "$data/$network.abc" || exit 1
    fi
    files+=("$data/$network.abc")
done

name=${name:-mcl-$(tr ' ' - <<<"$devices")-${threads}cores}
exec python3 -B bench/compare.py --tool "$build/bin/mcl-gpu" --peer "$mcl" --devices "$devices" --runs "$runs" \
    --peer-runs "$peer_runs" --threads "$threads" --timeout "$timeout" --inflation "$inflation" \
    --output "bench/results/$name.json" "${files[@]}"
