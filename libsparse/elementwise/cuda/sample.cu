/* Entries of rows drawn without replacement, on a CUDA device: a thread a row. A row costs 32 bytes beside its places,
 * which stay in the first-level cache while they are drawn in order. */
#include "device/common.cuh"
#include "elementwise/draw.h"

static const int THREADS = 128;

static __global__ void __launch_bounds__(THREADS)
    draw_rows(const int64_t *row_offsets, const int32_t *rows, int64_t row_count, const int64_t *offsets, uint64_t seed,
              int64_t *places)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= row_count) return;
    const int64_t row = __ldg(rows + i), begin = __ldg(row_offsets + row), first = __ldg(offsets + i);
    draw_entries(begin, __ldg(row_offsets + row + 1) - begin, __ldg(offsets + i + 1) - first, draw_state(seed, i),
                 places + first);
}

sp_status sp_cuda_sample_rows(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                              const int64_t *offsets, uint64_t seed, int64_t *places)
{
    if (row_count == 0) return SP_OK;
    draw_rows<<<(unsigned)((row_count + THREADS - 1) / THREADS), THREADS, 0, cuda_state_of(context)->stream>>>(
        a->row_offsets, rows, row_count, offsets, seed, places);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}
