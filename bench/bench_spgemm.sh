#!/bin/bash
# Sparse products beside cuSPARSE (GPU) or SuiteSparse:GraphBLAS (CPU): squares of ten generated matrices and of an
# arrowhead in both precisions, of four more (Li et al., Table I), plans, the gathering stage on and off, transposed and
# rectangular products, files.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END_OF_USAGE'
usage: bench/bench_spgemm.sh [options]      writes bench/results/spgemm-NAME-*.json and prints tables
  --small             one small matrix of each kind
  --device NAME       cpu, cuda, cuda:N [cuda where there is a GPU]
  --files DIR         also the squares of the matrices in DIR (.mtx, edge lists .txt; .gz), each up to 20 MB
  --parts "..."       of fp64 fp32 more aia files aat rectangular [all; no more, no aia on the CPU]
  --repeat N          samples, of which the median counts [10]
  --limit SECONDS     for each candidate and matrix; then fewer samples do [5; on the CPU 20]
  --threads N         [all cores]
  --name NAME         of the results [cpu-Ncores, or that of the GPU]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results.
END_OF_USAGE
}

build=${BUILD:-build}
device='' files='' parts='' repeat=10 limit='' threads='' name='' small=''
options="device files parts repeat limit threads name"
. bench/options.sh
all="fp64 fp32 more aia files aat rectangular" matrices="paper arrowhead"
more="amazon economics cit-Patents wb-edu"
if [ "$device" = cpu ]; then
    limit=${limit:-20}
    all=${all/more aia /}
    # What two cores square in seconds; the others hold up to two thousand million products.
    matrices="scircuit road web-Google webbase protein wind-tunnel rmat16 uniform arrowhead"
else
    limit=${limit:-5}
fi
if [ -n "$small" ]; then matrices=small more='' name=$name-small; fi
parts=${parts:-$all}
status=0 written=()

bench() { # bench PART ARGUMENTS...
    local json=bench/results/spgemm-$name-$1.json
    shift
    "$build/bin/sparse-bench" spgemm --device "$device" ${threads:+--threads "$threads"} --repeat "$repeat" \
        --limit "$limit" --json "$json" "$@" || status=1
    written+=("$json")
}

generate() { # the options that make the matrices named
    local matrix
    for matrix in "$@"; do printf -- '--generate\n%s\n' "$matrix"; done
}

mkdir -p bench/results
mapfile -t squares < <(generate $matrices)
mapfile -t rest < <(generate $more)
if [ -n "$small" ]; then others=small; else others="scircuit web-Google rmat16"; fi
mapfile -t some < <(generate $others)
for part in $parts; do
    case $part in
    fp64) bench fp64 "${squares[@]}" --plan ;;
    fp32) bench fp32 "${squares[@]}" --plan --fp32 ;;
    more) [ ${#rest[@]} -eq 0 ] || bench more "${rest[@]}" --plan ;;
    aia) bench aia "${squares[@]}" "${rest[@]}" --aia --peers none ;;
    aat) bench aat "${some[@]}" --aat ;;
    rectangular)
        bench rectangular --generate uniform:200000,16,20000 --times-generated uniform:20000,24,400000
        ;;
    files)
        [ -n "$files" ] || continue
        mapfile -t paths < <(find "$files" -maxdepth 1 -size -20M \( -name '*.mtx' -o -name '*.txt' -o \
            -name '*.mtx.gz' -o -name '*.txt.gz' \) ! -name '*labels*' | sort)
        # Some hold what is no square matrix of numbers: complex entries, rectangular ones.
        usable=()
        for path in "${paths[@]}"; do
            if "$build/bin/sparse-bench" spgemm "$path" --device cpu --peers none --no-check --repeat 1 \
                >/dev/null 2>&1; then usable+=("$path"); else echo "left out: $path" >&2; fi
        done
        [ ${#usable[@]} -eq 0 ] || bench files "${usable[@]}"
        ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ ${#written[@]} -eq 0 ] || python3 -B bench/table.py --show "${written[@]}" || status=1
exit $status
