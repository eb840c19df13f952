/* Matching and two-hop matching on the device (matching.c has their sources).
 *
 * Rounds of proposals are what the CPU makes of them: a node's wish is the best of its neighbours, whatever the order
 * in which they are looked at, and two wishes that meet make a pair. Between rounds the lists of nodes that still wish,
 * and of those whose wish was taken, are made again. Two-hop matching sorts by radix; pairs of the nodes that follow
 * each other under one hub are known by their places.
 *
 * Bytes an entry: the first round reads column and value and gathers leader, place and weight of the neighbour. */
#ifndef CONTRACTION_MATCHING_CUH
#define CONTRACTION_MATCHING_CUH

#include "rounds.cuh"
#include "wishes.cuh"

/* ---- wishes ------------------------------------------------------------------------------------------------ */

struct free_neighbours {
    typedef wish_candidate best;
    coarse_view c;
    int32_t *wish;

    __device__ wish_candidate at(int32_t node, int start, int step) const
    {
        const double load = c.load(node);
        wish_candidate found = {0, 0, -1};
        for (int64_t k = c.g.row_offsets[node] + start; k < c.g.row_offsets[node + 1]; k += step) {
            const int32_t other = c.g.col_indices[k];
            if (other == node || !c.is_free(other)) continue;
            const double there = c.load(other);
            if (load + there > c.cap) continue;
            const double rating = rate_edge(c.place, entry_value(&c.g, k), node, load, other, there);
            if (rating >= found.rating) found.take({rating, edge_bits(c.seed, node, other), other});
        }
        return found;
    }
    __device__ void put(int32_t node, wish_candidate found) const { wish[node] = found.node; }
};

/* ---- rounds ------------------------------------------------------------------------------------------------ */

/* Counts of a round. */
enum { PAIRS, OPEN, COUNTS };

static __global__ void __launch_bounds__(THREADS) list_all(const sp_csr g, const row_lists lists, int32_t *open)
{
    const int64_t node = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (node >= g.rows) return;
    open[node] = (int32_t)node;
    lists.add(g.row_offsets[node + 1] - g.row_offsets[node], (int32_t)node);
}

/* Wishes that meet. `pairs` only tells whether there are any. */
static __global__ void __launch_bounds__(THREADS)
    pair_up(const coarse_view c, const int32_t *wish, const int32_t *open, int count, int *pairs)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int32_t node = open[i], other = wish[node];
    if (other < node || wish[other] != node) return;
    c.leader[node] = c.leader[other] = node;
    *pairs = 1;
}

/* The free nodes that wish, and of these the ones whose wish was taken. */
static __global__ void __launch_bounds__(THREADS)
    list_open(const coarse_view c, const int32_t *wish, const int32_t *open, int count, int *open_count,
              const row_lists lists, int32_t *kept)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int32_t node = open[i];
    if (!c.is_free(node) || wish[node] < 0) return;
    kept[atomicAdd(open_count, 1)] = node;
    if (!c.is_free(wish[node])) lists.add(c.g.row_offsets[node + 1] - c.g.row_offsets[node], node);
}

/* *left: the nodes that still wish after the rounds. */
static sp_status match(sp_context *context, const coarse_view &c, int *left)
{
    const int64_t n = c.g.rows;
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> wish, open, kept;
    device_array<int> counts;
    row_list_memory rows;
    int found[COUNTS], count = (int)n;
    CHECK(wish.allocate(context, n));
    CHECK(open.allocate(context, n));
    CHECK(kept.allocate(context, n));
    CHECK(counts.allocate(context, COUNTS));
    CHECK(rows.allocate(context, n, c.g.nnz));
    list_all<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(c.g, rows.lists(), open.data);
    CUDA_CHECK(cudaGetLastError());
    for (int round = 0; round < MATCHING_ROUNDS && count > 0; round++) {
        const unsigned blocks = blocks_for(count, THREADS);
        CHECK(walk(context, free_neighbours{c, wish.data}, rows.lists()));
        CHECK(counts.fill(0, COUNTS));
        pair_up<<<blocks, THREADS, 0, stream>>>(c, wish.data, open.data, count, counts.data + PAIRS);
        list_open<<<blocks, THREADS, 0, stream>>>(c, wish.data, open.data, count, counts.data + OPEN, rows.lists(),
                                                  kept.data);
        CUDA_CHECK(cudaGetLastError());
        CHECK(read_counts(context, counts.data, COUNTS, found));
        count = found[OPEN];
        int32_t *const swap = open.data;
        open.data = kept.data;
        kept.data = swap;
        if (!found[PAIRS]) break;
    }
    *left = count;
    return SP_OK;
}

/* ---- two hops ---------------------------------------------------------------------------------------------- */

/* What a free node is sorted by. */
struct relative {
    double rating;
    uint64_t neighbours;
    int32_t hub;

    __device__ void take(relative other)
    {
        neighbours += other.neighbours;
        const bool better = other.rating != rating ? other.rating > rating
                                                   : other.rating > 0 && (uint32_t)other.hub < (uint32_t)hub;
        if (better) rating = other.rating, hub = other.hub;
    }
    __device__ relative from_lane(int step, unsigned mask) const
    {
        return {__shfl_xor_sync(mask, rating, step), __shfl_xor_sync(mask, neighbours, step),
                __shfl_xor_sync(mask, hub, step)};
    }
};

/* Item: the place of a node in the list. */
struct hub_row {
    typedef relative best;
    coarse_view c;
    const int32_t *list;
    uint64_t *neighbours, *hubs;

    __device__ relative at(int32_t place, int start, int step) const
    {
        const int32_t node = list[place];
        relative found = {0, 0, -1};
        for (int64_t k = c.g.row_offsets[node] + start; k < c.g.row_offsets[node + 1]; k += step) {
            const int32_t other = c.g.col_indices[k];
            if (other == node) continue;
            found.take({rate_edge(c.place, entry_value(&c.g, k), node, 1, other, c.load(other)),
                        mix64((uint64_t)other + RANDOM_STEP), other});
        }
        return found;
    }
    __device__ void put(int32_t place, relative found) const
    {
        const int32_t node = list[place];
        neighbours[place] = found.neighbours;
        hubs[place] =
            (uint64_t)(uint32_t)found.hub << 32 | (uint64_t)(c.g.row_offsets[node + 1] - c.g.row_offsets[node]);
    }
};

static __global__ void __launch_bounds__(THREADS)
    list_places(const coarse_view c, const int32_t *list, int count, const row_lists lists)
{
    const int place = blockIdx.x * THREADS + threadIdx.x;
    if (place >= count) return;
    lists.add(c.g.row_offsets[list[place] + 1] - c.g.row_offsets[list[place]], place);
}

static __global__ void __launch_bounds__(THREADS)
    gather_hubs(const uint64_t *hubs, const int32_t *places, int count, uint64_t *sorted)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) sorted[i] = hubs[places[i]];
}

static __device__ uint32_t hub_at(const uint64_t *hubs, int place) { return (uint32_t)(hubs[place] >> 32); }

/* The first place of the hub at `place`. */
static __device__ int first_of_hub(const uint64_t *hubs, int place)
{
    int low = 0, high = place;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (hub_at(hubs, middle) < hub_at(hubs, place)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static __device__ void begin_group(const coarse_view &c, int32_t a, int32_t b)
{
    c.leader[a] = c.leader[b] = min(a, b);
}

/* Sorted by hub: the nodes of a hub are pairs, two by two. */
static __global__ void __launch_bounds__(THREADS)
    pair_relatives(const coarse_view c, const int32_t *list, const int32_t *places, const uint64_t *hubs, int count)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i + 1 >= count || hub_at(hubs, i) == UINT32_MAX || hub_at(hubs, i + 1) != hub_at(hubs, i)) return;
    if ((i - first_of_hub(hubs, i)) % 2 == 0) begin_group(c, list[places[i]], list[places[i + 1]]);
}

/* Sorts the places of the list by hub and degree, then by neighbours, then by node. */
static sp_status sort_relatives(sp_context *context, int count, const uint64_t *neighbours, const uint64_t *hubs,
                                int32_t *places, uint64_t *sorted_hubs)
{
    const cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_for(count, THREADS);
    device_array<uint64_t> keys;
    device_array<int32_t> numbers;
    CHECK(keys.allocate(context, count));
    CHECK(numbers.allocate(context, count));
    number<<<blocks, THREADS, 0, stream>>>(numbers.data, count);
    CUDA_CHECK(cudaGetLastError());
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, neighbours, sorted_hubs, numbers.data, places, count, 0,
                                               64, stream);
    }));
    gather_hubs<<<blocks, THREADS, 0, stream>>>(hubs, places, count, keys.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(numbers.data, places, (size_t)count * sizeof *places, cudaMemcpyDeviceToDevice, stream));
    return with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data, sorted_hubs, numbers.data, places, count, 0,
                                               64, stream);
    });
}

/* `list`: free nodes in ascending order; any two of them may become a pair. */
static sp_status match_relatives(sp_context *context, const coarse_view &c, const int32_t *list, int count)
{
    const cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_for(count, THREADS);
    device_array<uint64_t> neighbours, hubs, sorted;
    device_array<int32_t> places;
    row_list_memory rows;
    if (count == 0) return SP_OK;
    CHECK(neighbours.allocate(context, count));
    CHECK(hubs.allocate(context, count));
    CHECK(sorted.allocate(context, count));
    CHECK(places.allocate(context, count));
    CHECK(rows.allocate(context, count, c.g.nnz));
    list_places<<<blocks, THREADS, 0, stream>>>(c, list, count, rows.lists());
    CUDA_CHECK(cudaGetLastError());
    CHECK(walk(context, hub_row{c, list, neighbours.data, hubs.data}, rows.lists()));
    CHECK(sort_relatives(context, count, neighbours.data, hubs.data, places.data, sorted.data));
    pair_relatives<<<blocks, THREADS, 0, stream>>>(c, list, places.data, sorted.data, count);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

#endif
