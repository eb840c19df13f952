/* Small rows of C, which share a warp: packs that are sorted in registers (pack.cuh). What they add to C lies side by
 * side, and leaves so. */
#include "spgemm/cuda/classes.cuh"

/* A warp takes `each` <= 32 rows, a lane each. */
template <typename Key, typename V, bool PLAIN, bool SUM>
static __global__ void __launch_bounds__(WARP_THREADS) small_rows(warp_job<V> job, int each)
{
    __shared__ pack_memory<Key, SUM, PLAIN> memory[WARP_THREADS / 32];
    const int lane = threadIdx.x & 31;
    for (int64_t base = (int64_t)first_warp() * each; base < job.rows; base += (int64_t)all_warps() * each) {
        const int64_t row = base + lane;
        small_row own = {};
        int64_t to = 0;
        if (lane < each && row < job.rows) {
            own = noted_row(job.product.a, row, job.notes[row]);
            if (SUM) to = job.offsets[row];
        }
        if (!__any_sync(FULL_WARP, own.small && own.products > 0)) continue;
        const int length = take_packs<Key, SUM, PLAIN>(job.product, base, own, memory[threadIdx.x / 32], to,
                                                       job.c_cols, job.c_values);
        if (!SUM && own.small) job.lengths[row] = length;
    }
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* With few rows, a warp takes fewer, so that enough warps have some. */
template <typename V, bool PLAIN, bool SUM> sp_status launch_small(warp_run<V> *run)
{
    const int64_t wanted = cuda_state_of(run->context)->processors * 64;
    int each = 32;
    while (each > 8 && run->a->rows / each < wanted) each /= 2;
    if (!has_rows(run, CLASS_SMALL)) return SP_OK;
    /* Keys of 32 bits where they can tell eight rows apart. */
    const bool narrow = run->b->cols <= (int64_t)1 << (SUM ? 22 : 29);
    return narrow ? launch(run, small_rows<uint32_t, V, PLAIN, SUM>, WARP_THREADS, 0, INT64_MAX, SMALL_STREAM, each)
                  : launch(run, small_rows<unsigned long long, V, PLAIN, SUM>, WARP_THREADS, 0, INT64_MAX,
                           SMALL_STREAM, each);
}

template sp_status launch_small<float, true, true>(warp_run<float> *);
template sp_status launch_small<float, true, false>(warp_run<float> *);
template sp_status launch_small<float, false, true>(warp_run<float> *);
template sp_status launch_small<float, false, false>(warp_run<float> *);
template sp_status launch_small<double, true, true>(warp_run<double> *);
template sp_status launch_small<double, true, false>(warp_run<double> *);
template sp_status launch_small<double, false, true>(warp_run<double> *);
template sp_status launch_small<double, false, false>(warp_run<double> *);
