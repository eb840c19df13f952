#!/bin/bash
# What the build and the demonstration say where something is missing: a header, nvcc, a GPU.
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

# ---- scripts/demo: a copy, without a compiler ------------------------------------------------------------------

tool=$(realpath "$root/${BUILD:-build}/bin/mcl-gpu")
mkdir -p scripts no_gpu gpu demo/bin
cp "$root/scripts/demo" scripts/demo && ln -s "$root/data" data
printf '#!/bin/sh\n' >scripts/setup
printf '#!/bin/sh\necho "$@" >>made\n' >no_gpu/make && cp no_gpu/make gpu/make
printf '#!/bin/sh\nexit 9\n' >no_gpu/nvidia-smi
printf '#!/bin/sh\necho "GPU 0: one"\n' >gpu/nvidia-smi
cat >demo/bin/mcl-gpu <<END
#!/bin/sh
echo "\$*" >>ran
for argument; do shift; case \$argument in --device | cuda) ;; *) set -- "\$@" "\$argument" ;; esac; done
exec "$tool" "\$@" --device cpu
END
chmod +x scripts/* no_gpu/* gpu/* demo/bin/mcl-gpu
demo() { # demo STATUS FOLDER ARGUMENTS...: with the programs of the folder
    local expected=$1
    rm -f made ran
    PATH="$work/$2:${programs:-/usr/bin:/bin}" CUDA_HOME="${home:-$work/toolkit}" scripts/demo "${@:3}" >run.out 2>run.err
    [ $? -eq "$expected" ]
}
refuses() { # refuses STATUS PATTERN FOLDER ARGUMENTS...: in one line, before anything is made
    demo "$1" "${@:3}" && [ "$(wc -l <run.err)" -eq 1 ] && grep -q "^demo: $2" run.err && [ ! -e made ]
}
helps() { demo 0 no_gpu --help && grep -q 'scripts/demo \[--gpu\]' run.out && ! grep -q '^#\|^set' run.out && [ ! -e made ]; }
ok 'the demonstration has --help' helps
ok 'it refuses an argument that it does not know' refuses 2 'unknown argument: --gpus; scripts/demo --help' no_gpu --gpus
ok 'no GPU: --gpu says so' refuses 1 '--gpu needs an NVIDIA GPU' no_gpu --gpu
mkdir plain && ln -s /usr/bin/* plain && rm -f plain/nvcc
programs=$work/plain home=$work/nowhere ok 'no nvcc: --gpu says so' refuses 1 '--gpu needs nvcc' gpu --gpu
on_gpu() { # both networks, and a report of each
    demo 0 gpu --gpu BUILD=demo && grep -q 'BUILD=demo CUDA=1 all' made && [ "$(grep -c -- '--device cuda .*--report' ran)" -eq 2 ] &&
        [ -s demo/demo/yeast-physical.html ] && grep -q 'proteins, .* clusters' run.out
}
ok 'with both it builds with CUDA and clusters on the GPU' on_gpu
ok 'without --gpu it takes what there is' eval 'demo 0 no_gpu BUILD=demo && ! grep -q CUDA made && ! grep -q -- --device ran'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
