/* What the kernels of coarsening share: the graph on its way, candidates and their reduction, one node by a few lanes or
 * by a block. */
#ifndef CONTRACTION_ROUNDS_CUH
#define CONTRACTION_ROUNDS_CUH

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "base/value.h"
#include "on_device.h"
#include "device/array.cuh"
#include "device/launch.cuh"
#include "device/sums.cuh"
#include "rating.h"

#define CUDA_CHECK(call) CHECK(cuda_status(context, (call), #call))

/* A node with more than LONG_ROW entries is the work of a block, any other that of LANES lanes. */
constexpr int THREADS = 256, LANES = 8, LONG_ROW = 1024;

static inline unsigned blocks_for(int64_t items, int64_t a_block) { return (unsigned)ceil_div(items, a_block); }
static inline cudaStream_t stream_of(sp_context *context) { return (cudaStream_t)sp_context_stream(context); }

/* The graph and its groups, as kernels see them. */
struct coarse_view {
    sp_csr g;
    uint64_t seed;
    double cap;
    const double *weights; /* of nodes; NULL: 1 each */
    const float *place;    /* NULL: edges are rated by weight alone */
    int32_t *leader;

    __device__ double load(int32_t node) const { return weights ? weights[node] : 1; }
    __device__ bool is_free(int32_t node) const { return leader[node] < 0; }
};

/* Nodes that a kernel takes: those with short rows and those with long ones, in any order. */
struct node_lists {
    int32_t *few, *many;
    int *counts; /* of few, of many; more counts of the caller's may follow */

    __device__ void add(const sp_csr &g, int32_t node) const
    {
        const bool is_long = g.row_offsets[node + 1] - g.row_offsets[node] > LONG_ROW;
        (is_long ? many : few)[atomicAdd(&counts[is_long], 1)] = node;
    }
};

static __global__ void __launch_bounds__(THREADS) number(int32_t *to, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) to[i] = (int32_t)i;
}

/* Scratch of CUB's calls: `call` gets the memory and its size, and asks for the size when the memory is NULL. */
template <typename Call> static sp_status with_scratch(sp_context *context, const Call &call)
{
    device_array<char> scratch;
    size_t bytes = 0;
    CUDA_CHECK(call(nullptr, bytes));
    CHECK(scratch.allocate(context, (int64_t)bytes + 1));
    CUDA_CHECK(call(scratch.data, bytes));
    return SP_OK;
}

/* Reads counts that the stream is to have written. */
template <typename T> static sp_status read_counts(sp_context *context, const T *counts, int64_t count, T *host)
{
    return sp_array_copy(context, count, sizeof(T), host, SP_HOST, counts, SP_DEVICE);
}

/* The best of what the lanes of a group hold, in all of them. `Best` has take(other). */
template <int WIDTH, typename Best> static __device__ Best best_of_lanes(Best best)
{
    for (int step = WIDTH / 2; step > 0; step /= 2) best.take(best.from_lane(step, group_mask<WIDTH>()));
    return best;
}

/* The best of what the threads of a block hold, in thread 0. */
template <typename Best> static __device__ Best best_of_block(Best best)
{
    __shared__ Best warps[THREADS / 32];
    best = best_of_lanes<32>(best);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < THREADS / 32; w++) best.take(warps[w]);
    __syncthreads();
    return best;
}

#endif
