#!/bin/bash
# First-level cache hit ratios of the hash algorithm's kernels with the gathering stage, without it, and without it
# with loads that bypass that cache (Li et al., Figure 5), by Nsight Compute.
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'END'
usage: bench/ncu_aia.sh [options]      writes bench/results/aia-l1-NAME.json and prints a table
  --matrices "..."    files, or what sparse-bench takes after --generate [scircuit economics amazon protein wind-tunnel]
  --name NAME         of the results [that of the GPU]
  --ncu PATH          Nsight Compute [ncu on the PATH, else that of CUDA_HOME or /usr/local/cuda]
BUILD=DIR the build, BENCH_COMMIT the commit that is named in the results. The counters need the right to read them:
root, or NVreg_RestrictProfilingToAdminUsers=0.
END
}

build=${BUILD:-build}
device=cuda matrices='' name=''
ncu=$(command -v ncu || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ncu")
options="matrices name ncu"
. bench/options.sh
read -ra matrices <<<"${matrices:-scircuit economics amazon protein wind-tunnel}"
[ -x "$ncu" ] || { echo "no Nsight Compute at $ncu: name it with --ncu" >&2 && exit 1; }

metrics=l1tex__t_sectors_lookup_hit.sum,l1tex__t_sectors_lookup_miss.sum,lts__t_sectors_op_read.sum
metrics+=,dram__bytes_read.sum,gpu__time_duration.sum
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
json=bench/results/aia-l1-$name.json
python3 -B bench/ncu_aia.py --output "$json" --counts "$counts" --gpu "$gpu_name" "${matrices[@]}" &&
    python3 -B bench/table.py --show "$json"
