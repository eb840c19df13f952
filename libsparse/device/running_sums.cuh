/* Running sums of an array, each without its own element. */
#ifndef DEVICE_RUNNING_SUMS_CUH
#define DEVICE_RUNNING_SUMS_CUH

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "device/common.cuh"

/* sums[i] = of(0) + ... + of(i - 1) for count + 1 places; *all, the last, is waited for. */
template <typename Of>
static sp_status sum_before(sp_context *context, Of of, int64_t count, int64_t *sums, int64_t *all)
{
    const auto from = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), of);
    const cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<char> scratch;
    size_t bytes = 0;
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, sums, count + 1, stream));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(scratch.data, bytes, from, sums, count + 1, stream));
    CUDA_CHECK(cudaMemcpyAsync(all, sums + count, sizeof *all, cudaMemcpyDeviceToHost, stream));
    return cuda_finish(context);
}

#endif
