#!/bin/bash -eu
# Builds every target of tests/fuzz for OSS-Fuzz, which sets CC, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, WORK and OUT, in
# the root of the repository. To $OUT go the targets, their seeds, and the libraries that they need there.
#   packaging/oss-fuzz/build.sh --try FOLDER    plays OSS-Fuzz on this machine, with clang, and runs each target briefly
try=
if [ "${1-}" = --try ]; then
    cd "$(dirname "$0")/../.."
    try=$(realpath -m "$2")
    export CC=clang CFLAGS='-O1 -gline-tables-only -fsanitize=fuzzer-no-link,address' CXXFLAGS= \
        LIB_FUZZING_ENGINE=-fsanitize=fuzzer WORK=$try/work OUT=$try/out
    mkdir -p "$WORK" "$OUT"
fi

# OSS-Fuzz's clang has no OpenMP of its own; that of the system has another version, but the same interface.
openmp=$(echo /usr/lib/llvm-*/lib/libomp.so | awk '{ print $NF }')
mkdir -p "$WORK/include" "$OUT/lib"
cp "$(echo /usr/lib/llvm-*/lib/clang/*/include/omp.h | awk '{ print $NF }')" "$WORK/include/"
engine=$LIB_FUZZING_ENGINE
case $CXXFLAGS in *libc++*) engine="$engine -lc++" ;; esac
make BUILD="$WORK/build" CC="$CC" CUDA=0 ISAL=0 HARDENING= CPPFLAGS="-I$WORK/include" \
    CFLAGS="$CFLAGS -Wno-sign-conversion" FUZZ_ENGINE="$engine" \
    LDFLAGS="-L${openmp%/*} -Wl,-rpath,'\$\$ORIGIN/lib'" fuzzers

for target in "$WORK"/build/bin/fuzz_*; do
    name=$(basename "$target")
    cp "$target" "$OUT/"
    ldd "$target" | awk '/=> \// && !/\/(libc|libm|libstdc\+\+|libgcc_s)\.so/ { print $3 }' |
        xargs -I FILE cp -Lu FILE "$OUT/lib/"
    zip -qj "$OUT/${name}_seed_corpus.zip" "tests/fuzz/corpus/${name#fuzz_}"/*
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 10\n' >"$OUT/$name.options"
done

[ -n "$try" ] || exit 0
cd "$try"
for target in out/fuzz_*_seed_corpus.zip; do
    name=$(basename "$target" _seed_corpus.zip)
    mkdir -p "corpus/$name"
    unzip -qo "$target" -d "corpus/$name"
    "out/$name" -runs=2000 -max_len=4096 "corpus/$name" >"$name.log" 2>&1 || { cat "$name.log"; exit 1; }
    echo "$name: $(ls "corpus/$name" | wc -l) files after $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$name.log") runs"
done
