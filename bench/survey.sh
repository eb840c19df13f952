#!/bin/bash
# The survey of speed: families of matrices x operations x types, ours beside the peers, correctness in the same run.
# Every change of a kernel is judged by it. Every other matrix is drawn by a fixed seed, the others by a new one.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/survey.sh [options]      writes BUILD/survey/PART.json, prints a table a family and the worst cases
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --files DIR         also the matrices in DIR (.mtx, .mtx.gz), squared
  --parts "..."       of spgemm-f64 spgemm-f32 spmm-f32 contract-f64 contract-f32 [all]
  --widths N,...      of spmm [1,2,3,4,7,8,16,20,32,33,48,50,64,96,100,128,200,256,300,500,512,602,1000,1024,1433]
  --seed N            the new seed [the seconds since 1970]
  --repeat N          samples, of which the median counts [5]
  --limit SECONDS     for each candidate and matrix; then fewer samples do [1]
  --threads N         [all cores]
  --peers LIST        as with sparse-bench: none, or some of those that fit the device [all]
  --before DIR        compares with the JSON files of an earlier run
  --out DIR           where the JSON files go [BUILD/survey]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results. On the CPU the peers are MKL and GraphBLAS:
the newest ones after bench/peers/install.sh, else those of the system; BENCH_MKL and BENCH_GRAPHBLAS name others.
On a GPU they are cuSPARSE, CUB and what bench/peers/build.sh has built; BENCH_PEERS names another folder of programs.
END_OF_USAGE
}

build=${BUILD:-build}
export BENCH_PEERS=${BENCH_PEERS-$build/peers/bin}
device='' files='' parts='' widths='' peers='' seed='' repeat=5 limit=1 threads='' name='' before='' out=''
options="device files parts widths peers seed repeat limit threads before out"
. bench/options.sh
parts=${parts:-spgemm-f64 spgemm-f32 spmm-f32 contract-f64 contract-f32}
widths=${widths:-1,2,3,4,7,8,16,20,32,33,48,50,64,96,100,128,200,256,300,500,512,602,1000,1024,1433}
seed=${seed:-$(date +%s)}
out=${out:-$build/survey}
mkdir -p "$out" || exit 1
status=0 written=()

survey() { # survey PART ARGUMENTS...
    local part=$1 json=$out/$1.json
    shift
    "$build/bin/sparse-bench" "${part%-*}" --fp"${part##*-f}" --device "$device" ${threads:+--threads "$threads"} \
        ${peers:+--peers "$peers"} \
        --repeat "$repeat" --limit "$limit" --seed "4,$seed" --json "$json" "$@" >"$out/$part.log" || status=1
    written+=("$json")
}

paths=()
[ -z "$files" ] || mapfile -t paths < <(find "$files" -maxdepth 1 -size -40M \( -name '*.mtx' -o -name '*.mtx.gz' \) | sort)
for part in $parts; do
    case $part in
    spgemm-*) survey "$part" --plan --generate survey "${paths[@]}" ;;
    spmm-*) survey "$part" --width "$widths" --generate survey ;;
    contract-*) survey "$part" --groups 1%,10%,50% --labels random,blocks,power --generate survey ;;
    *) usage >&2 && exit 2 ;;
    esac
done
python3 -B bench/survey.py ${before:+--before "$before"} "${written[@]}" || status=1
exit $status
