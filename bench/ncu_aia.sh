#!/bin/bash
# First-level cache hit ratios of the hash algorithm's kernels with the gathering stage, without it, and without it
# with loads that bypass that cache (Li et al., Figure 5), by Nsight Compute.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END'
usage: bench/ncu_aia.sh [options] [MATRIX...]     writes bench/results/NAME.json and prints a table
  MATRIX      a file, or what sparse-bench takes after --generate [scircuit cage15]
  --name N    of the result [aia-l1]
  --ncu PATH  Nsight Compute [ncu on the PATH, else that of CUDA_HOME or /usr/local/cuda]
BUILD=DIR is the build. The counters need the right to read them: root, or NVreg_RestrictProfilingToAdminUsers=0.
END
}

build=${BUILD:-build} name=aia-l1 matrices=()
ncu=$(command -v ncu || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ncu")
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage && exit 0 ;;
    --name | --ncu)
        [ $# -gt 1 ] || { usage >&2 && exit 2; }
        declare "${1#--}=$2"
        shift
        ;;
    -*) usage >&2 && exit 2 ;;
    *) matrices+=("$1") ;;
    esac
    shift
done
[ ${#matrices[@]} -gt 0 ] || matrices=(scircuit cage15)
[ -x "$ncu" ] || { echo "no Nsight Compute at $ncu: name it with --ncu" >&2 && exit 1; }

metrics=l1tex__t_sectors_lookup_hit.sum,l1tex__t_sectors_lookup_miss.sum
metrics+=,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum
metrics+=,lts__t_sectors_op_read.sum,dram__bytes_read.sum,gpu__time_duration.sum
kernels='regex:^(gather_ranges|count_products|(count|sum)_(tiny|rows|wide_rows))'
counts=$(mktemp -d) || exit 1
trap 'rm -rf "$counts"' EXIT

# One run holds all three ways: they differ in a template argument of the kernels. The warm-up is measured with them.
number=0
for matrix in "${matrices[@]}"; do
    source=(--generate "$matrix")
    [ -e "$matrix" ] && source=("$matrix")
    if ! "$ncu" --csv --page raw --print-units base --kernel-name "$kernels" --metrics "$metrics" \
        "$build/bin/sparse-bench" spgemm "${source[@]}" --device cuda --aia --repeat 1 --peers none --no-check \
        >"$counts/$number.csv"; then
        cat "$counts/$number.csv" >&2
        exit 1
    fi
    number=$((number + 1))
done
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
python3 -B bench/ncu_aia.py --output "bench/results/$name.json" --counts "$counts" --gpu "$gpu" "${matrices[@]}"
