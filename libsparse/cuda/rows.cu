/* Work on the rows of a product that both products need: how much each row costs, and in which order rows are taken.
 *
 * Rows are never moved: a class is a range of an array of row numbers (Li et al., "Accelerating SpGEMM on GPUs with
 * Processing Near HBMs", Algorithm 1). Counting products reads 4 bytes of A and 16 of B's offsets (cached) an entry
 * of A; ordering reads 1 byte a row and writes 4.
 */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "aia.cuh"

enum { ORDER_THREADS = 256 };

sp_status cuda_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t *products)
{
    if (a->rows == 0) return SP_OK;
    range_source<SP_AIA_OFF> ranges = {};
    ranges.a_offsets = a->row_offsets;
    ranges.b_offsets = b->row_offsets;
    ranges.a_cols = a->col_indices;
    count_products<<<(unsigned)((a->rows * 8 + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(a->rows, ranges,
                                                                                                      products);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

/* Rows of a block stay neighbours and in order within their class, so that their offsets, their rows of A and of C
 * are read and written together. Blocks take their places as they come. */
static __global__ void __launch_bounds__(ORDER_THREADS)
    place_rows(int64_t rows, const uint8_t *classes, class_counts *counts, int32_t *order)
{
    __shared__ uint32_t first[ORDER_THREADS / 32][MAX_CLASSES];
    const int64_t row = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = row < rows ? classes[row] : -1;
    uint32_t rank = 0;
    for (int c = 0; c < MAX_CLASSES; c++) {
        const unsigned members = __ballot_sync(FULL_WARP, own == c);
        if (lane == 0) first[warp][c] = (uint32_t)__popc(members);
        if (own == c) rank = (uint32_t)__popc(members & ((1u << lane) - 1));
    }
    __syncthreads();
    if (threadIdx.x < MAX_CLASSES) {
        const int c = threadIdx.x;
        uint32_t all = 0, at = 0;
        for (int w = 0; w < ORDER_THREADS / 32; w++) all += first[w][c];
        for (int k = 0; k < c; k++) at += counts->rows[k];
        if (all) at += atomicAdd(&counts->placed[c], all);
        for (int w = 0; w < ORDER_THREADS / 32; w++) {
            const uint32_t members = first[w][c];
            first[w][c] = at;
            at += members;
        }
    }
    __syncthreads();
    if (own >= 0) order[first[warp][own] + rank] = (int32_t)row;
}

sp_status cuda_order_rows(sp_context *context, int64_t rows, const uint8_t *classes, class_counts *counts,
                          int32_t *order)
{
    if (rows == 0) return SP_OK;
    place_rows<<<(unsigned)((rows + ORDER_THREADS - 1) / ORDER_THREADS), ORDER_THREADS, 0,
                 cuda_state_of(context)->stream>>>(rows, classes, counts, order);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

/* Zero for the count after the last, which nobody has written. */
struct count_before_end {
    const int32_t *counts;
    int64_t rows;
    __device__ __forceinline__ int64_t operator()(int64_t i) const { return i < rows ? counts[i] : 0; }
};

sp_status cuda_scan_counts(sp_context *context, int64_t rows, const int32_t *counts, int64_t *offsets)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const auto from = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0),
                                                      count_before_end{counts, rows});
    device_array<char> scratch;
    size_t bytes = 0;
    CUDA_TRY(cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, offsets, rows + 1, stream));
    TRY(scratch.allocate(context, (int64_t)bytes));
    CUDA_TRY(cub::DeviceScan::ExclusiveSum(scratch.data, bytes, from, offsets, rows + 1, stream));
    return SP_OK;
}
