# What the benchmark scripts do first: options of the command line into variables (`options` names them, all but --small
# and --help take a value), the device, the name of the results, what the results say of the run. Sourced; needs usage.
while [ $# -gt 0 ]; do
    case $1 in
    --small) small=yes ;;
    --help) usage && exit 0 ;;
    --*)
        case " $options " in *" ${1#--} "*) ;; *) usage >&2 && exit 2 ;; esac
        [ $# -gt 1 ] || { usage >&2 && exit 2; }
        option=${1#--}
        declare "${option//-/_}=$2"
        shift
        ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
if [ -z "$device" ]; then
    device=cpu
    if [ -n "$gpu" ]; then device=cuda; fi
fi
export BENCH_DRIVER=${gpu#*, }
export BENCH_COMMIT=${BENCH_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null)}
if [ "$device" = cpu ]; then
    name=${name:-cpu-${threads:-$(nproc)}cores}
else
    gpu_name=${gpu%%, *}
    name=${name:-$(tr '[:upper:] ' '[:lower:]-' <<<"${gpu_name#NVIDIA }")}
fi
# scipy is asked for by --peers; PYTHON names an interpreter that has it.
export BENCH_SCIPY=${BENCH_SCIPY-$PWD/bench/scipy_peer.py}
# Libraries that bench/peers/install.sh has fetched, unless others are named.
for library in "${build:-build}"/peers/lib/libmkl_rt.so.*; do
    if [ -e "$library" ]; then export BENCH_MKL=${BENCH_MKL:-$PWD/$library}; fi
done
for library in "${build:-build}"/peers/lib/python*/site-packages/suitesparse_graphblas.libs/libgraphblas*; do
    if [ -e "$library" ]; then export BENCH_GRAPHBLAS=${BENCH_GRAPHBLAS:-$PWD/$library}; fi
done
