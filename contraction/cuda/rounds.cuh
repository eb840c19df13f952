/* What the kernels of coarsening share: the graph on its way, and the walk over rows of any length: short ones by a few
 * lanes, long ones by a block, those of hubs by several blocks. */
#ifndef CONTRACTION_ROUNDS_CUH
#define CONTRACTION_ROUNDS_CUH

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "base/value.h"
#include "on_device.h"
#include "device/array.cuh"
#include "device/launch.cuh"
#include "device/sums.cuh"
#include "rating.h"

#define CUDA_CHECK(call) CHECK(cuda_status(context, (call), #call))

/* Most entries of rows that LANES lanes and a block walk over; longer rows are the work of HUB_BLOCKS blocks. */
constexpr int THREADS = 256, LANES = 8, LONG_ROW = 1024, HUB_ROW = 16384, HUB_BLOCKS = 32;

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

/* ---- rows by length ----------------------------------------------------------------------------------------- */

enum row_length { SHORT, LONG, HUB, LENGTHS };

/* Nodes, or their places in a list, by the length of their rows, in any order. */
struct row_lists {
    int32_t *rows[LENGTHS];
    int *counts;

    /* For the threads of the launch. */
    __device__ void add(int64_t entries, int32_t item) const
    {
        const int length = entries <= LONG_ROW ? SHORT : entries <= HUB_ROW ? LONG : HUB;
        const unsigned same = __match_any_sync(__activemask(), length);
        const int first = __ffs((int)same) - 1;
        int begin = 0;
        if ((int)(threadIdx.x % 32) == first) begin = atomicAdd(&counts[length], __popc(same));
        begin = __shfl_sync(same, begin, first);
        rows[length][begin + __popc(same & lanes_below())] = item;
    }
};

/* The memory of row_lists. */
struct row_list_memory {
    device_array<int32_t> rows[LENGTHS];
    device_array<int> counts;

    sp_status allocate(sp_context *context, int64_t items, int64_t nnz)
    {
        const int64_t most[] = {items, nnz / LONG_ROW + 1, nnz / HUB_ROW + 1};
        for (int length = 0; length < LENGTHS; length++) CHECK(rows[length].allocate(context, most[length]));
        CHECK(counts.allocate(context, LENGTHS));
        return counts.fill(0, LENGTHS);
    }
    row_lists lists() const { return {{rows[SHORT].data, rows[LONG].data, rows[HUB].data}, counts.data}; }
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

/* The best of a group's lanes, in all of them. `Best` has take(other). */
template <int WIDTH, typename Best> static __device__ Best best_of_lanes(Best best)
{
    for (int step = WIDTH / 2; step > 0; step /= 2) best.take(best.from_lane(step, group_mask<WIDTH>()));
    return best;
}

/* The best of a block's threads, in thread 0. */
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

/* ---- the walk ------------------------------------------------------------------------------------------------ */

/* A `Row` has a type `best`, at(item, start, step), the best of every `step`-th entry of the item's row from `start`
 * on, and put(item, best). */
template <typename Row> static __global__ void __launch_bounds__(THREADS)
    walk_short(const Row row, const int32_t *items, int count)
{
    const int64_t place = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    if (place >= count) return;
    const int32_t item = items[place];
    const typename Row::best best = best_of_lanes<LANES>(row.at(item, threadIdx.x % LANES, LANES));
    if (threadIdx.x % LANES == 0) row.put(item, best);
}

template <typename Row> static __global__ void __launch_bounds__(THREADS) walk_long(const Row row, const int32_t *items)
{
    const int32_t item = items[blockIdx.x];
    const typename Row::best best = best_of_block(row.at(item, threadIdx.x, THREADS));
    if (threadIdx.x == 0) row.put(item, best);
}

template <typename Row> static __global__ void __launch_bounds__(THREADS)
    walk_hubs(const Row row, const int32_t *items, typename Row::best *parts)
{
    const int part = blockIdx.x % HUB_BLOCKS;
    const typename Row::best best = best_of_block(
        row.at(items[blockIdx.x / HUB_BLOCKS], part * THREADS + threadIdx.x, HUB_BLOCKS * THREADS));
    if (threadIdx.x == 0) parts[blockIdx.x] = best;
}

/* A warp a hub. */
template <typename Row> static __global__ void __launch_bounds__(THREADS)
    finish_hubs(const Row row, const int32_t *items, int count, const typename Row::best *parts)
{
    static_assert(HUB_BLOCKS == 32, "a lane a part");
    const int hub = (blockIdx.x * THREADS + threadIdx.x) / 32;
    if (hub >= count) return;
    const typename Row::best best = best_of_lanes<32>(parts[hub * HUB_BLOCKS + threadIdx.x % 32]);
    if (threadIdx.x % 32 == 0) row.put(items[hub], best);
}

/* Walks over the rows of the lists, which are empty then. */
template <typename Row> static sp_status walk(sp_context *context, const Row &row, const row_lists &lists)
{
    const cudaStream_t stream = stream_of(context);
    device_array<typename Row::best> parts;
    int found[LENGTHS];
    CHECK(read_counts(context, lists.counts, LENGTHS, found));
    if (found[SHORT] > 0)
        walk_short<<<blocks_for((int64_t)found[SHORT] * LANES, THREADS), THREADS, 0, stream>>>(row, lists.rows[SHORT],
                                                                                             found[SHORT]);
    if (found[LONG] > 0) walk_long<<<found[LONG], THREADS, 0, stream>>>(row, lists.rows[LONG]);
    CUDA_CHECK(cudaGetLastError());
    if (found[HUB] > 0) {
        CHECK(parts.allocate(context, (int64_t)found[HUB] * HUB_BLOCKS));
        walk_hubs<<<found[HUB] * HUB_BLOCKS, THREADS, 0, stream>>>(row, lists.rows[HUB], parts.data);
        finish_hubs<<<blocks_for((int64_t)found[HUB] * 32, THREADS), THREADS, 0, stream>>>(row, lists.rows[HUB],
                                                                                          found[HUB], parts.data);
        CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaMemsetAsync(lists.counts, 0, LENGTHS * sizeof *lists.counts, stream));
    return SP_OK;
}

#endif
