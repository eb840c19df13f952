#!/bin/bash
# Builds published kernels into BUILD/peers/bin, where sparse-bench finds them (--peers published). No code of theirs is
# part of this repository: each is cloned at a fixed commit into BUILD/peers/src, or taken from a folder, and changed only
# where it does not compile or does not run there.
#
#   usage: bench/peers/build.sh [NAME...]       of sparse times sparse: opsparse speck96 speck227 mh;
#                                               of sparse times dense: ge sputnik rode hp [all]
#   PEER_SOURCES=DIR   holds the sources instead, in folders named as their repositories, as of the commits below
#   CUDA_ARCHS=90      what to compile for [90]
#
# The first are linked with the program of peer.cuh, which times each with its memory from a cache (pool.h); the others
# become libraries, which sparse-bench opens (apps/sparse-bench/peers/spmm_peer.h).
cd "$(dirname "$0")/../.." || exit 1
set -e
mkdir -p "${BUILD:-build}/peers"
out=$(cd "${BUILD:-build}/peers" && pwd) here=$PWD/bench/peers
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
arch=${CUDA_ARCHS:-90}
names=("$@")
[ $# -gt 0 ] || names=(opsparse speck96 speck227 mh ge sputnik rode hp)
mkdir -p "$out/bin" "$out/src"

# fetch OWNER/NAME COMMIT: a fresh copy of the sources in $out/src/NAME, into which it goes
fetch() {
    local folder=$out/src/${1#*/}
    rm -rf "$folder"
    if [ -n "${PEER_SOURCES-}" ]; then
        cp -r "$PEER_SOURCES/${1#*/}" "$folder"
    else
        git clone --quiet "https://github.com/$1" "$folder"
        git -C "$folder" checkout --quiet "$2"
    fi
    cd "$folder"
}

# compile NAME TITLE FLAGS... SOURCE...: the program spgemm-NAME, which calls itself TITLE
compile() {
    local name=$1 title=$2
    shift 2
    "$nvcc" -O3 -w -std=c++17 -gencode "arch=compute_$arch,code=sm_$arch" -include "$here/pool.h" -I"$here" \
        -DPEER_NAME="\"$title\"" -Xcompiler -fopenmp -o "$out/bin/spgemm-$name" "$@"
    echo "built $out/bin/spgemm-$name"
}

# library NAME TITLE FLAGS... SOURCE...: the library spmm-NAME.so, which calls itself TITLE
library() {
    local name=$1 title=$2
    shift 2
    "$nvcc" -O3 -w -std=c++17 -gencode "arch=compute_$arch,code=sm_$arch" -I"$here" \
        -I"$here/../../apps/sparse-bench/peers" -DPEER_NAME="\"$title\"" -shared -Xcompiler -fPIC \
        -o "$out/bin/spmm-$name.so" "$@"
    echo "built $out/bin/spmm-$name.so"
}

# CUB's scratch lies behind the offsets of the bins, of which room was left for one; sizes and offsets of tables in
# device memory overflow 32 bits; a block of malloc went to delete[]. The clock asks for a frequency that not all
# processors tell.
opsparse() {
    fetch lorentzbf/OpSparse 0134b0c5b4e20cde1956850aa22b8793ae9c14e8
    cd OpSparse
    sed -i 's/d_cub_storage = d_bin_offset + 1;/d_cub_storage = d_bin_offset + NUM_BIN;/
            s/delete \[\] combined_mem/free(combined_mem)/
            s/mint d_combined_size = M  + 2 \* NUM_BIN + 2/mint d_combined_size = M + 2 * NUM_BIN + 66/' src/Meta.cu
    sed -i 's/= fail_bin_size \* max_tsize/= (size_t)fail_bin_size * max_tsize/
            s/size_t global_size = meta/size_t global_size = (size_t)meta/' inc/kernel_wrapper.cuh
    sed -i 's/d_table + blockIdx.x \* max_tsize/d_table + (size_t)blockIdx.x * max_tsize/' inc/symbolic.cuh
    sed -i 's/d_tables + blockIdx.x \* max_tsize/d_tables + (size_t)blockIdx.x * max_tsize/' inc/numeric.cuh
    sed -i 's/return double(counter)\/get_tsc_freq();/return double(counter);/' inc/cuda_common.h
    compile opsparse "OpSparse 0134b0c" -Iinc -Isrc "$here/spgemm_opsparse.cu" src/CSR.cu src/Meta.cu src/Timings.cu -lcusparse
}

# CUDA's own CUB in place of the one of 2018 that comes along, and limits of integers without NPP; warnings about the
# shared memory that it was built for, printed each call, are dropped.
speck() { # speck NAME TITLE BYTES
    fetch GPUPeople/spECK 2f84623087d536b5ae6e71d08db754941f60667a
    rm -rf include/external/cub
    sed -i 's/#include <npp.h>/#include <climits>/; s/NPP_MIN_[0-9]*U/0/; s/NPP_MAX_32U/UINT_MAX/; s/NPP_MIN_32S/INT_MIN/
            s/NPP_MAX_32S/INT_MAX/; s/NPP_MAX_16U/USHRT_MAX/; s/NPP_MIN_16S/SHRT_MIN/; s/NPP_MAX_16S/SHRT_MAX/
            s/NPP_MAX_8U/UCHAR_MAX/; s/NPP_MIN_8S/SCHAR_MIN/; s/NPP_MAX_8S/SCHAR_MAX/' include/GPU/limits.cuh
    sed -i 's/cub::Max()/cuda::maximum<>()/; s/cub::Min()/cuda::minimum<>()/' include/common.cuh include/GPU/*.cuh
    sed -i '/cub\/warp\/specializations/d; s/__shfl(\(.*\), \(.*\))/__shfl_sync(0xffffffffu, \1, \2)/' include/common.cuh
    sed -i '/cub\/iterator\/transform_input_iterator/d' include/GPU/HelperFunctions.cuh
    sed -i '/^template void MultiplyspECK/d; /printf("WARNING/,/);/d' source/GPU/Multiply.cu
    compile "$1" "$2" -DSHARED="$3" -Iinclude -Isource --expt-extended-lambda --expt-relaxed-constexpr \
        "$here/spgemm_speck.cu" source/GPU/memory.cpp source/dCSR.cpp source/CSR.cpp source/COO.cpp -lcuda
}
speck96() { speck speck96 "spECK 2f84623, 96 KB" 98304; }
speck227() { speck speck227 "spECK 2f84623, 227 KB" 232448; }

# Launches of no blocks are skipped, after which CUB refuses to run; prints of each call are dropped.
mh() {
    fetch yyssys/MH-SpGEMM cf1f6aa06caead657163b2f96861bd2b43352bb9
    sed -i '/^ *printf/d; s/^\( *\)\(k_init_group_size<[012]><<<\)/\1if (rows > 0) \2/' inc/MH_spgemm.cuh src/main.cu
    sed -i 's/return double(counter) \/ get_tsc_freq();/return double(counter);/' inc/common.h
    compile mh "MH-SpGEMM cf1f6aa" -Iinc -Isrc "$here/spgemm_mh.cu" src/CSR.cu src/Tool.cu src/Timing.cpp src/utils.cpp -lcusparse
}

# Its kernels alone, without PyTorch.
ge() {
    fetch hgyhungry/ge-spmm f62f51169eb26c0d4411f6d9744eb585854410e1
    sed -n '/^__global__ void spmm_test/,/^}/p' pytorch-custom/spmm_kernel.cu >ge_kernels.cuh
    library ge "GE-SpMM f62f511" -I. "$here/spmm_ge.cu"
}

sputnik() {
    fetch google-research/sputnik bbf5840ba5efccf01f862855c785f71bcc6ff1f0
    library sputnik "Sputnik bbf5840" -I. "$here/spmm_sputnik.cu" -x cu sputnik/spmm/cuda_spmm.cu.cc
}

# Launches of no blocks are skipped.
rode() {
    fetch CRAFT-THU/RoDe f446e29802015df3d2fd9cc904f4cbe0cce97f3a
    sed -i 's/^ *RoDeComputeKernel\([12]\)<.*<<</    if (m\1 > 0) &/' RoDe_SpMM/RoDeSpmm.cu
    library rode "RoDe f446e29" -include cstdint -IRoDe_SpMM -Iutils "$here/spmm_rode.cu" RoDe_SpMM/RoDeSpmm.cu
}

# Its kernels alone, without its class of matrices and without CUSP.
hp() {
    fetch fan1997/HP-SpMM-SDDMM e5a35ed65e2a083cf233a81933359386a519aadc
    sed -n '/^__device__ __forceinline__ float sum_/,/^}/p; /^#define CO/p; /^#define CP_/p; /^    asm volatile("cp/p
            /^__global__ void LBSPMM/,/^}/p' spmm/mm/spmm_kernel.cu >hp_kernels.cuh
    library hp "HP-SpMM e5a35ed" -I. "$here/spmm_hp.cu"
}

for name in "${names[@]}"; do
    case $name in
    opsparse | speck96 | speck227 | mh | ge | sputnik | rode | hp) (
        "$name"
    ) ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$here/build.sh" >&2; exit 2 ;;
    esac
done
