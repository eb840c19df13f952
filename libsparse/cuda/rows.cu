/* Work on the rows of a product that both products need: how much each row costs, and in which order rows are taken.
 *
 * Rows are never moved: a class is a range of an array of row numbers, made by a radix sort of 4-byte keys whose top
 * bits are the class (Li et al., "Accelerating SpGEMM on GPUs with Processing Near HBMs", Algorithm 1). Counting
 * products reads 4 bytes of A and 16 of B's offsets (cached) an entry of A; sorting moves some 50 bytes a row.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "common.cuh"

/* Eight lanes a row: enough for long rows to be read in whole sectors, few enough for short ones. */
static __global__ void count_products(int64_t rows, const int64_t *a_offsets, const int32_t *a_cols,
                                      const int64_t *b_offsets, int64_t *products)
{
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8;
    const int lane = threadIdx.x % 8;
    int64_t sum = 0;
    if (row < rows)
        for (int64_t at = a_offsets[row] + lane; at < a_offsets[row + 1]; at += 8) {
            const int32_t k = a_cols[at];
            sum += b_offsets[k + 1] - b_offsets[k];
        }
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
    if (row < rows && lane == 0) products[row] = sum;
}

sp_status cuda_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t *products)
{
    if (a->rows == 0) return SP_OK;
    const int64_t blocks = (a->rows * 8 + 255) / 256;
    count_products<<<(unsigned)blocks, 256, 0, cuda_state_of(context)->stream>>>(
        a->rows, a->row_offsets, a->col_indices, b->row_offsets, products);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

static __global__ void number_rows(int64_t rows, int32_t *list)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) list[i] = (int32_t)i;
}

sp_status cuda_order_rows(sp_context *context, int64_t rows, const uint32_t *keys, int first_bit,
                          const uint32_t *counts, row_order *order)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<uint32_t> sorted_keys;
    device_array<int32_t> unsorted;
    device_array<char> scratch;
    uint32_t class_rows[MAX_CLASSES] = {0};
    size_t bytes = 0;
    TRY(order->rows.allocate(context, rows));
    if (rows > 0) {
        TRY(sorted_keys.allocate(context, rows));
        TRY(unsorted.allocate(context, rows));
        number_rows<<<(unsigned)((rows + 255) / 256), 256, 0, stream>>>(rows, unsorted.data);
        CUDA_TRY(cudaGetLastError());
        CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys.data, unsorted.data,
                                                 order->rows.data, rows, first_bit, CLASS_SHIFT + 4, stream));
        TRY(scratch.allocate(context, (int64_t)bytes));
        CUDA_TRY(cub::DeviceRadixSort::SortPairs(scratch.data, bytes, keys, sorted_keys.data, unsorted.data,
                                                 order->rows.data, rows, first_bit, CLASS_SHIFT + 4, stream));
        CUDA_TRY(cudaMemcpyAsync(class_rows, counts, sizeof class_rows, cudaMemcpyDeviceToHost, stream));
    }
    TRY(cuda_finish(context));
    order->begin[0] = 0;
    for (int c = 0; c < MAX_CLASSES; c++) order->begin[c + 1] = order->begin[c] + class_rows[c];
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
