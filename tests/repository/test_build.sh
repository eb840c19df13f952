#!/bin/bash
# What the build says where something is missing: a header, nvcc, a GPU.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
. tests/support/cli.sh
unset MAKEFLAGS MAKELEVEL CUDA CUDA_HOME CUDA_ARCHS

build() { make -s -C "$root" BUILD="$work/build" "$@" >run.out 2>run.err; }

missing_header() { # before any compiler error, and again in the next run
    for run in 1 2; do
        ! build CUDA=0 CPPFLAGS=-nostdinc lib && grep -qx 'make: the compiler does not find zlib.h: run scripts/setup.*' run.err &&
            ! grep -q 'fatal error' run.err || return 1
    done
}
ok 'a missing header names scripts/setup' missing_header

mkdir -p toolkit/bin
printf '#!/bin/sh\n[ "$1" = --list-gpu-arch ] && echo compute_90\n' >toolkit/bin/nvcc && chmod +x toolkit/bin/nvcc
says() { # says LINE VARIABLE...
    local line=$1
    shift
    build "$@" notice && grep -qxF "$line" run.out
}
if nvidia-smi -L >/dev/null 2>&1; then skip 'a machine with a GPU: builds without one'; else
    ok 'nvcc without a GPU builds for the CPU only' says \
        'CPU-only build: this machine has nvcc but no GPU (CUDA=1 builds for both)' CUDA_HOME="$work/toolkit"
fi
ok 'CUDA=1 builds for both' says 'CPU and CUDA build: sm_90 and PTX' CUDA_HOME="$work/toolkit" CUDA=1 CUDA_ARCHS=90
ok 'CUDA=0 leaves nvcc alone' says 'CPU-only build' CUDA_HOME="$work/toolkit" CUDA=0
nvcc_needed() { ! build CUDA=1 CUDA_HOME="$work/nowhere" PATH="$work/none:/usr/bin:/bin" notice && grep -q 'CUDA=1 needs nvcc' run.err; }
if [ -x /usr/local/cuda/bin/nvcc ]; then skip 'nvcc is here: CUDA=1 without it'; else
    ok 'CUDA=1 without nvcc stops' nvcc_needed
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
