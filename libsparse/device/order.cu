/* Rows class by class, and places by counts.
 *
 * Rows are never moved: a class is a range of an array of row numbers (Li et al., "Accelerating SpGEMM on GPUs with
 * Processing Near HBMs"). Ordering reads 1 byte a row and writes 4.
 */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "device/common.cuh"

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
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, offsets, rows + 1, stream));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(scratch.data, bytes, from, offsets, rows + 1, stream));
    return SP_OK;
}

/* first[c · runs + r]: the place of the first member of class c in run r. */
static __global__ void __launch_bounds__(ORDER_THREADS)
    place_rows(int64_t rows, const uint8_t *classes, const int64_t *first, int32_t *order)
{
    __shared__ int64_t place[ORDER_THREADS / 32][MAX_CLASSES];
    const int64_t row = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = row < rows ? classes[row] : -1;
    int rank = 0;
    for (int c = 0; c < MAX_CLASSES; c++) {
        const unsigned members = __ballot_sync(FULL_WARP, own == c);
        if (lane == 0) place[warp][c] = __popc(members);
        if (own == c) rank = __popc(members & ((1u << lane) - 1));
    }
    __syncthreads();
    if (threadIdx.x < MAX_CLASSES) {
        int64_t at = first[(int64_t)threadIdx.x * gridDim.x + blockIdx.x];
        for (int w = 0; w < ORDER_THREADS / 32; w++) {
            const int64_t members = place[w][threadIdx.x];
            place[w][threadIdx.x] = at;
            at += members;
        }
    }
    __syncthreads();
    if (own >= 0) order[place[warp][own] + rank] = (int32_t)row;
}

sp_status cuda_order_rows(sp_context *context, int64_t rows, const uint8_t *classes, const int32_t *counts,
                          int32_t *order)
{
    const int64_t runs = order_runs(rows);
    device_array<int64_t> first;
    if (rows == 0) return SP_OK;
    CHECK(first.allocate(context, MAX_CLASSES * runs + 1));
    CHECK(cuda_scan_counts(context, MAX_CLASSES * runs, counts, first.data));
    place_rows<<<(unsigned)runs, ORDER_THREADS, 0, cuda_state_of(context)->stream>>>(rows, classes, first.data,
                                                                                    order);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}
