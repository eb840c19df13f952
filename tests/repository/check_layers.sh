#!/bin/sh
# Includes between modules point one way: apps use mcl, contraction, gnn, io and libsparse; these use sparse.h of the
# library and its base/, CUDA code of gnn and contraction some of device/ too; libsparse uses nothing of the others, and
# its rooms only what lies below them. Nobody includes another module's private header.
cd "$(dirname "$0")/../.." || exit 1
failed=0 passed=0

# only DIR PATTERN: the project headers (quoted includes) in DIR are those that match PATTERN or lie in DIR.
only() {
    bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "$1" 2>/dev/null | while IFS= read -r line; do
        name=$(printf '%s\n' "$line" | sed 's/^[^"]*"\([^"]*\)".*/\1/')
        printf '%s\n' "$name" | grep -qE "^($2)$" && continue
        case $name in */*) ;; *) [ -n "$(find "$1" -name "$name")" ] && continue ;; esac
        printf '%s\n' "$line"
    done)
    if [ -n "$bad" ]; then
        echo "$1 may only include its own headers and $2:"
        echo "$bad"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

# Rooms of libsparse name headers by their path. core is the floor of all, device that of all CUDA code, whose table of
# operations has MaxK's header too. base is what every file may use. Products of patterns are contractions.
for room in libsparse/*/; do
    room=$(basename "$room")
    case $room in
    base) floor=base ;;
    core) floor=base ;;
    device) floor='base|core|device|spmm/cuda/maxk.cuh' ;;
    spgemm) floor='base|core|device|contract/cuda/contract.cuh' ;;
    contract) floor='base|core|device' ;;
    markov) floor='base|core|device|spgemm' ;;
    *) floor='base|core|device' ;;
    esac
    only "libsparse/$room" "sparse\.h|sp_ranks\.h|($room|$floor)(/.*)?"
done
# io in layers: bytes below text, text below lines, arrays and XML, these below the formats of graphs.
layers='sparse\.h|base/.*|io\.h'
only io/bytes "$layers|bytes/.*"
only io/text "$layers|(bytes|text)/.*"
only io/lines "$layers|(bytes|text|lines)/.*"
only io/graphs "$layers|(bytes|text|lines|arrays|xml|graphs)/.*"
only io/arrays "$layers|(bytes|text|arrays)/.*"
only io/xml "$layers|(bytes|xml)/.*"
only io/nodes "$layers|(bytes|text|lines|graphs|arrays|xml|nodes)/.*"
only mcl 'sp_ranks\.h|sparse\.h|base/.*'
only mpi 'sp_ranks\.h'
# The headers of device that the CUDA code of modules stands on use public calls alone: the shared library hides all
# others.
shared='device/(check|array|launch|sums)\.cuh'
only contraction "sparse\.h|base/.*|$shared"
only gnn "sparse\.h|base/.*|$shared"
if grep -rn 'device/' gnn contraction --include='*.c' --include='*.h'; then
    echo "only gnn/cuda and contraction/cuda may include headers of libsparse/device"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi
bad=$(grep -nE '^#[[:space:]]*include[[:space:]]+"' libsparse/device/check.cuh libsparse/device/array.cuh \
    libsparse/device/launch.cuh libsparse/device/sums.cuh | grep -vE "\"(sparse\.h|base/.*|$shared)\"")
if [ -n "$bad" ]; then
    echo "what gnn uses of libsparse/device may include public headers only:"
    echo "$bad"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi
only bench/generate 'sparse\.h|base/.*'
modules='sparse\.h|sp_ranks\.h|base/.*|io\.h|mcl\.h|contraction\.h|gnn\.h|generate\.h'
only apps/common "$modules|common/.*|mpi_ranks\.h"
for tool in mcl-gpu contract gnn; do only "apps/$tool" "$modules|common/.*|mpi_ranks\.h|$tool/page\.js\.h"; done
only apps/sparse-bench "$modules|common/.*|peers/.*|sparse-bench/.*|gnn/input\.h"

# No call leaves another device current than it found: the tables of CUDA operations wrap them (there<>::run), and
# nothing else sets the device.
bad=$(grep -rn 'cudaSetDevice(' libsparse contraction gnn
    grep -nE '^ *\.[a-z_]+ = (sp_cuda|gnn_cuda|cuda)_[a-z_]+,$' libsparse/device/context.cu \
        gnn/cuda/engine.cu gnn/cuda/sample.cu)
if [ -n "$bad" ]; then
    echo "calls must restore the current device:"
    echo "$bad"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

# The library never prints, exits or aborts.
if grep -rnE '\b(printf|fprintf|puts|fputs|perror|exit|abort)[[:space:]]*\(' libsparse mcl contraction gnn --include='*.c' \
    --include='*.h' --include='*.cu' --include='*.cuh' | grep -v '__attribute__'; then
    echo "libsparse and mcl return a status; they do not print or end the program"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

# What only some systems have is called in one file. CUDA's code is for Linux.
if grep -rnE '__APPLE__|__linux__|__GLIBC__|<(malloc|sched|xlocale)\.h>|<(sys/(mman|random|resource|sysinfo|sysctl)|mach-o/.*)\.h>|/proc/self|\b(memrchr|strchrnul|getrandom|mallopt|malloc_usable_size|sched_[gs]etaffinity|sync_file_range|madvise|newlocale|strtod_l|get_nprocs|posix_fadvise|posix_fallocate|mremap|renameat2|copy_file_range|secure_getenv|qsort_r|pipe2|asprintf|pthread_condattr_setclock)\(' \
    libsparse mcl contraction gnn io apps bench/generate python/native --include='*.c' --include='*.h' |
    grep -v '^libsparse/base/system\.h:'; then
    echo "only libsparse/base/system.h asks which system this is"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
