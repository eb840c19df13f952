#!/bin/bash
# The survey of speed: families of matrices x operations x types, ours beside the peers, correctness in the same run.
# Every change of a kernel is judged by it. Every other matrix is drawn by a fixed seed, the others by a new one.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/survey.sh [options]      runs sparse-bench survey, which writes BUILD/survey/PART.json; prints a table a
                                      family and the ten worst cases, draws BUILD/survey/survey.svg (matplotlib)
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --files DIR         also the matrices in DIR (.mtx, .mtx.gz)
  --generate X        in place of the families, as with sparse-bench survey
  --parts "..."       of spgemm-f64 spgemm-f32 spmm-f32 spmm-f16 spmm-bf16 spmm-transposed-f32 contract-f64 contract-f32
                      [all]
  --widths N,...      of spmm [25 of them, from 1 to 1433]
  --seed N            the new seed [the seconds since 1970]
  --repeat N          samples, of which the median counts [5]
  --limit SECONDS     for each candidate and matrix; then fewer samples do [1]
  --threads N         [all cores]
  --peers LIST        as with sparse-bench: none, or some of cusparse, graphblas, mkl, published, cub, scipy [those that
                      fit the device, without scipy]
  --before DIR        compares with the JSON files of an earlier run
  --out DIR           where the JSON files go [BUILD/survey]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results. On the CPU the peers are MKL and GraphBLAS:
the newest ones after bench/peers/install.sh, else those of the system; BENCH_MKL and BENCH_GRAPHBLAS name others.
On a GPU they are cuSPARSE, CUB and what bench/peers/build.sh has built; BENCH_PEERS names another folder of programs.
scipy runs on the CPU, one thread, with the interpreter PYTHON [python3]: --peers graphblas,mkl,scipy.
END_OF_USAGE
}

build=${BUILD:-build}
export BENCH_PEERS=${BENCH_PEERS-$build/peers/bin}
device='' files='' generate='' parts='' widths='' peers='' seed='' repeat=5 limit=1 threads='' name='' before='' out=''
options="device files generate parts widths peers seed repeat limit threads before out"
. bench/options.sh
parts=${parts:-spgemm-f64 spgemm-f32 spmm-f32 spmm-f16 spmm-bf16 spmm-transposed-f32 contract-f64 contract-f32}
seed=${seed:-$(date +%s)}
out=${out:-$build/survey}
mkdir -p "$out" || exit 1
paths=() written=()
[ -z "$files" ] || mapfile -t paths < <(find "$files" -maxdepth 1 -size -40M \( -name '*.mtx' -o -name '*.mtx.gz' \) | sort)
for part in $parts; do
    rm -f "$out/$part.json" # of an earlier run
    written+=("$out/$part.json")
done
"$build/bin/sparse-bench" survey --parts "${parts// /,}" --out "$out" --device "$device" --seed "4,$seed" \
    --repeat "$repeat" --limit "$limit" ${threads:+--threads "$threads"} ${peers:+--peers "$peers"} \
    ${widths:+--width "$widths"} ${generate:+--generate "$generate"} "${paths[@]}" >"$out/survey.log"
status=$?
[ $status -ne 2 ] || exit 2
drawn=()
if python3 -c 'import matplotlib' 2>/dev/null; then drawn=(--svg "$out/survey.svg"); fi
python3 -B bench/survey.py ${before:+--before "$before"} "${drawn[@]}" "${written[@]}" || status=1
exit $status
