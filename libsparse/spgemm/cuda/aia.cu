/* aia[i] = (offsets[list[i]], offsets[list[i] + 1]) packed into one word: the gather of ranges of aia.cuh.
 *
 * Li et al., "Accelerating SpGEMM on GPUs with Processing Near HBMs", Algorithm 5; there one thread gathers for a row
 * and once for each phase, here a thread takes single elements, so that lists and words are read and written whole
 * sectors at a time, and what is gathered for A's entries serves counting, symbolic and numeric phase.
 *
 * Bytes an element: 4 of the list, 16 of the offsets (1.25 sectors of 32 bytes on average, from the L2 cache while
 * the offsets fit it, as they do up to 7 million rows on an H200), 8 written. Nothing is computed: the time is that
 * of the gather, hence four elements in flight a thread.
 */
#include "spgemm/cuda/aia.cuh"

enum { AIA_THREADS = 256, AIA_ELEMENTS = 4 };

static __global__ void __launch_bounds__(AIA_THREADS)
    gather_ranges(int64_t count, const int32_t *list, const int64_t *offsets, uint64_t *ranges)
{
    const int64_t first = (int64_t)blockIdx.x * (AIA_THREADS * AIA_ELEMENTS) + threadIdx.x;
    int32_t at[AIA_ELEMENTS];
    int64_t start[AIA_ELEMENTS], end[AIA_ELEMENTS];
#pragma unroll
    for (int u = 0; u < AIA_ELEMENTS; u++) {
        const int64_t i = first + u * AIA_THREADS;
        at[u] = i < count ? __ldg(list + i) : 0;
    }
#pragma unroll
    for (int u = 0; u < AIA_ELEMENTS; u++) {
        start[u] = __ldg(offsets + at[u]);
        end[u] = __ldg(offsets + at[u] + 1);
    }
#pragma unroll
    for (int u = 0; u < AIA_ELEMENTS; u++) {
        const int64_t i = first + u * AIA_THREADS;
        if (i < count) ranges[i] = packed_range(start[u], end[u]);
    }
}

static sp_status gather_list(sp_context *context, int64_t count, const int32_t *list, const int64_t *offsets,
                             uint64_t *ranges)
{
    if (count == 0) return SP_OK;
    const int64_t blocks = (count + AIA_THREADS * AIA_ELEMENTS - 1) / (AIA_THREADS * AIA_ELEMENTS);
    gather_ranges<<<(unsigned)blocks, AIA_THREADS, 0, cuda_state_of(context)->stream>>>(count, list, offsets, ranges);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

sp_status cuda_aia_rows(sp_context *context, const sp_csr *a, const int32_t *order, uint64_t *aia_1)
{
    return gather_list(context, a->rows, order, a->row_offsets, aia_1);
}

sp_status cuda_aia_entries(sp_context *context, const sp_csr *a, const sp_csr *b, uint64_t *aia_2)
{
    return gather_list(context, a->nnz, a->col_indices, b->row_offsets, aia_2);
}

/* Counting products reads 4 bytes of A and 16 of B's offsets (cached) an entry of A. */
sp_status cuda_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t *products)
{
    if (a->rows == 0) return SP_OK;
    range_source<SP_AIA_OFF> ranges = {};
    ranges.a_offsets = a->row_offsets;
    ranges.b_offsets = b->row_offsets;
    ranges.a_cols = a->col_indices;
    count_products<<<(unsigned)((a->rows * 8 + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(a->rows, ranges,
                                                                                                      products);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}
