/* The stage that gathers ranges before the products are formed, and how kernels find ranges with it and without it.
 *
 * Li et al., "Accelerating SpGEMM on GPUs with Processing Near HBMs", Algorithm 5, R = 2: aia_1 holds where each row
 * of A starts and ends, in the order in which kernels take the rows; aia_2 holds where the row of B of each entry of
 * A starts and ends. Kernels then read both as streams instead of following A's columns into B's offsets.
 *
 * Packing: one 64-bit word a range, its start times 2^31 plus its length. A row has less than 2^31 entries as columns
 * are distinct; a start has 33 bits, that is matrices of up to 8.6e9 entries, 34 GB of columns alone: larger ones go
 * without the stage. The paper's two offsets would take 16 bytes.
 */
#ifndef SPARSE_CUDA_AIA_CUH
#define SPARSE_CUDA_AIA_CUH

#include "device/common.cuh"

enum { RANGE_LENGTH_BITS = 31 };

struct entry_range {
    int64_t start;
    int32_t length;
};

static __device__ __forceinline__ uint64_t packed_range(int64_t start, int64_t end)
{
    return (uint64_t)start << RANGE_LENGTH_BITS | (uint64_t)(end - start);
}
static __device__ __forceinline__ entry_range unpacked_range(uint64_t word)
{
    return {(int64_t)(word >> RANGE_LENGTH_BITS), (int32_t)(word & ((1u << RANGE_LENGTH_BITS) - 1))};
}

struct range_arrays {
    const int64_t *a_offsets, *b_offsets;
    const int32_t *a_cols;
    const uint64_t *rows, *entries; /* aia_1 and aia_2; NULL without the stage */
};

/* How a kernel finds ranges, fixed when it is compiled: SP_AIA_OFF follows the columns with cached loads,
 * SP_AIA_UNCACHED with loads that bypass the first-level cache (as nsparse reads A), SP_AIA_ON reads the streams. */
template <sp_aia WAY> struct range_source : range_arrays {
    template <typename T> static __device__ __forceinline__ T load(const T *at)
    {
        return WAY == SP_AIA_UNCACHED ? __ldcg(at) : __ldg(at);
    }
    __device__ __forceinline__ entry_range between(const int64_t *offsets) const
    {
        const int64_t start = load(offsets);
        return {start, (int32_t)(load(offsets + 1) - start)};
    }
    /* The entries of A's row `row`, which is at `place` in the order of the rows. */
    __device__ __forceinline__ entry_range row_of_a(int place, int row) const
    {
        if constexpr (WAY == SP_AIA_ON) return unpacked_range(load(rows + place));
        else return between(a_offsets + row);
    }
    /* The row of B that A's entry `at` multiplies. */
    __device__ __forceinline__ entry_range row_of_b(int64_t at) const
    {
        if constexpr (WAY == SP_AIA_ON) return unpacked_range(load(entries + at));
        else return between(b_offsets + load(a_cols + at));
    }
    /* An entry's value; values NULL stands for ones. */
    template <typename V> __device__ __forceinline__ V value_of_a(const V *values, int64_t at) const
    {
        return values ? load(values + at) : V(1);
    }
};

/* Products of each row (Algorithm 1). Eight lanes a row: enough for long rows to be read in whole sectors, few enough
 * for short ones. */
template <sp_aia WAY>
static __global__ void count_products(int64_t rows, range_source<WAY> ranges, int64_t *products)
{
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8;
    const int lane = threadIdx.x % 8;
    int64_t sum = 0;
    if (row < rows)
        for (int64_t at = ranges.a_offsets[row] + lane; at < ranges.a_offsets[row + 1]; at += 8)
            sum += ranges.row_of_b(at).length;
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
    if (row < rows && lane == 0) products[row] = sum;
}

/* Whether ranges of both matrices fit the packing. */
static inline bool cuda_aia_packs(const sp_csr *a, const sp_csr *b)
{
    const int64_t starts = (int64_t)1 << (64 - RANGE_LENGTH_BITS);
    return a->nnz < starts && b->nnz < starts;
}
/* aia_1[i] = the range of A's row order[i], a->rows words; aia_2[j] = the range of B's row a->col_indices[j], a->nnz
 * words. On the main stream. */
sp_status cuda_aia_rows(sp_context *context, const sp_csr *a, const int32_t *order, uint64_t *aia_1);
sp_status cuda_aia_entries(sp_context *context, const sp_csr *a, const sp_csr *b, uint64_t *aia_2);

#endif
