/* Rows of C that share a warp (pack.cuh): small ones, in packs sorted in registers, and merged ones, a lane each. What
 * they add to C lies side by side, and leaves so. */
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

/* Merged rows, 32 a warp. Their entries leave side by side, through shared memory. */
enum { STAGED = 256 };
template <typename V> static __global__ void __launch_bounds__(WARP_THREADS, 8) sum_merged(warp_job<V> job)
{
    let_next_begin();
    __shared__ V staged_values[WARP_THREADS / 32][STAGED];
    __shared__ int32_t staged_cols[WARP_THREADS / 32][STAGED];
    const matrix_view<V> &a = job.product.a, &b = job.product.b;
    const int lane = threadIdx.x & 31;
    V *values = staged_values[threadIdx.x / 32];
    int32_t *cols = staged_cols[threadIdx.x / 32];
    row_merge merge = {b.cols};
    for (int64_t base = (int64_t)first_warp() * 32; base < job.rows; base += (int64_t)all_warps() * 32) {
        if (class_of(job.notes[base]) != CLASS_MERGED) continue;
        const int64_t row = min(base + lane, job.rows), next = min(row + 1, job.rows);
        const int64_t begin = a.offsets[row], last = a.offsets[next], start = job.offsets[base];
        const int total = __shfl_sync(FULL_WARP, (int)(job.offsets[next] - start), 31);
        int place = (int)(job.offsets[row] - start);
        double weight[MERGED_ELEMENTS];
        merge.open(begin, last, a.cols, b.offsets);
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++)
            weight[i] = begin + i < last ? (double)__ldg(a.values + begin + i) : 0;
        for (int done = 0; done < total; done += STAGED) {
            for (int32_t low; place < done + STAGED && (low = merge.lowest()) != merge.NO_COLUMN; place++) {
                cols[place - done] = low;
                values[place - done] = (V)merge.take(low, weight, b.values);
            }
            __syncwarp();
            for (int i = lane; i < min(total - done, (int)STAGED); i += 32) {
                job.c_cols[start + done + i] = cols[i];
                job.c_values[start + done + i] = values[i];
            }
            __syncwarp();
        }
    }
    end_after_last();
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

template <typename V> sp_status launch_merged(warp_run<V> *run)
{
    return has_rows(run, CLASS_MERGED) ? launch(run, sum_merged<V>, WARP_THREADS, 0, INT64_MAX, 0) : SP_OK;
}

template sp_status launch_small<float, true, true>(warp_run<float> *);
template sp_status launch_small<float, true, false>(warp_run<float> *);
template sp_status launch_small<float, false, true>(warp_run<float> *);
template sp_status launch_small<float, false, false>(warp_run<float> *);
template sp_status launch_small<double, true, true>(warp_run<double> *);
template sp_status launch_small<double, true, false>(warp_run<double> *);
template sp_status launch_small<double, false, true>(warp_run<double> *);
template sp_status launch_small<double, false, false>(warp_run<double> *);
template sp_status launch_merged(warp_run<float> *);
template sp_status launch_merged(warp_run<double> *);
