/* Matching and two-hop matching on a CUDA device (matching.c has their sources).
 *
 * Rounds of proposals are what the CPU makes of them: a node's wish is the best of its neighbours, whatever the order in
 * which they are looked at, and two wishes that meet make a pair. Between rounds the lists of nodes that still wish, and
 * of those whose wish was taken, are made anew. Two-hop matching sorts by radix. Pairs of the nodes that follow each
 * other under one hub are known by their places; only where a bound on weights may refuse some, a thread a hub makes
 * them one by one.
 *
 * Bytes an entry: the first round reads column and value and gathers leader, place and weight of the neighbour; each
 * sweep of the distances reads column and value and gathers 16 bytes. */
#include "distance.cuh"
#include "rounds.cuh"

/* ---- wishes ------------------------------------------------------------------------------------------------ */

struct wish_candidate {
    double rating; /* 0: none */
    uint64_t bits;
    int32_t node;

    __device__ void take(wish_candidate other)
    {
        const bool better = other.rating != rating ? other.rating > rating : other.rating > 0 && other.bits > bits;
        if (better) *this = other;
    }
    __device__ wish_candidate from_lane(int step, unsigned mask) const
    {
        return {__shfl_xor_sync(mask, rating, step), __shfl_xor_sync(mask, bits, step),
                __shfl_xor_sync(mask, node, step)};
    }
};

/* The best free neighbour among every `step`-th entry from `start` on. */
static __device__ wish_candidate look_around(const coarse_view &c, int32_t node, int start, int step)
{
    const double load = c.load(node);
    wish_candidate best = {0, 0, -1};
    for (int64_t k = c.g.row_offsets[node] + start; k < c.g.row_offsets[node + 1]; k += step) {
        const int32_t other = c.g.col_indices[k];
        if (other == node || !c.is_free(other)) continue;
        const double there = c.load(other);
        if (load + there > c.cap) continue;
        const double rating = rate_edge(c.place, entry_value(&c.g, k), node, load, other, there);
        if (rating >= best.rating) best.take({rating, edge_bits(c.seed, node, other), other});
    }
    return best;
}

static __global__ void __launch_bounds__(THREADS) wish_short(const coarse_view c, const node_lists lists, int32_t *wish)
{
    const int64_t place = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    if (place >= lists.counts[0]) return;
    const int32_t node = lists.few[place];
    const wish_candidate best = best_of_lanes<LANES>(look_around(c, node, threadIdx.x % LANES, LANES));
    if (threadIdx.x % LANES == 0) wish[node] = best.node;
}

static __global__ void __launch_bounds__(THREADS) wish_long(const coarse_view c, const node_lists lists, int32_t *wish)
{
    const int32_t node = lists.many[blockIdx.x];
    const wish_candidate best = best_of_block(look_around(c, node, threadIdx.x, THREADS));
    if (threadIdx.x == 0) wish[node] = best.node;
}

/* ---- rounds ------------------------------------------------------------------------------------------------ */

/* Counts of a round: nodes with short and with long rows to look around, then pairs, then nodes that still wish. */
enum { PAIRS = 2, OPEN, COUNTS };

static __global__ void __launch_bounds__(THREADS) list_all(const sp_csr g, node_lists lists, int32_t *open)
{
    const int64_t node = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (node >= g.rows) return;
    open[node] = (int32_t)node;
    lists.add(g, (int32_t)node);
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
    list_open(const coarse_view c, const int32_t *wish, const int32_t *open, int count, node_lists lists, int32_t *kept)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int32_t node = open[i];
    if (!c.is_free(node) || wish[node] < 0) return;
    kept[atomicAdd(&lists.counts[OPEN], 1)] = node;
    if (!c.is_free(wish[node])) lists.add(c.g, node);
}

/* *left: the nodes that still wish after the rounds. */
static sp_status match(sp_context *context, const coarse_view &c, int *left)
{
    const int64_t n = c.g.rows;
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> wish, open, kept, few, many;
    device_array<int> counts;
    int found[COUNTS] = {0}, count = (int)n;
    CHECK(wish.allocate(context, n));
    CHECK(open.allocate(context, n));
    CHECK(kept.allocate(context, n));
    CHECK(few.allocate(context, n));
    CHECK(many.allocate(context, c.g.nnz / LONG_ROW + 1));
    CHECK(counts.allocate(context, COUNTS));
    CHECK(counts.fill(0, COUNTS));
    const node_lists lists = {few.data, many.data, counts.data};
    list_all<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(c.g, lists, open.data);
    CUDA_CHECK(cudaGetLastError());
    for (int round = 0; round < MATCHING_ROUNDS && count > 0; round++) {
        CHECK(read_counts(context, counts.data, COUNTS, found));
        if (found[0] > 0)
            wish_short<<<blocks_for((int64_t)found[0] * LANES, THREADS), THREADS, 0, stream>>>(c, lists, wish.data);
        if (found[1] > 0) wish_long<<<found[1], THREADS, 0, stream>>>(c, lists, wish.data);
        CUDA_CHECK(cudaGetLastError());
        CHECK(counts.fill(0, COUNTS));
        pair_up<<<blocks_for(count, THREADS), THREADS, 0, stream>>>(c, wish.data, open.data, count, counts.data + PAIRS);
        list_open<<<blocks_for(count, THREADS), THREADS, 0, stream>>>(c, wish.data, open.data, count, lists, kept.data);
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

static __device__ relative look_for_hub(const coarse_view &c, int32_t node, int start, int step)
{
    relative found = {0, 0, -1};
    for (int64_t k = c.g.row_offsets[node] + start; k < c.g.row_offsets[node + 1]; k += step) {
        const int32_t other = c.g.col_indices[k];
        if (other == node) continue;
        found.take({rate_edge(c.place, entry_value(&c.g, k), node, 1, other, c.load(other)),
                    mix64((uint64_t)other + RANDOM_STEP), other});
    }
    return found;
}

static __device__ void describe(const sp_csr &g, const int32_t *list, int place, relative found, uint64_t *neighbours,
                                uint64_t *hubs)
{
    const int32_t node = list[place];
    neighbours[place] = found.neighbours;
    hubs[place] = (uint64_t)(uint32_t)found.hub << 32 | (uint64_t)(g.row_offsets[node + 1] - g.row_offsets[node]);
}

/* `places`: those of long rows in the list. */
static __global__ void __launch_bounds__(THREADS)
    describe_short(const coarse_view c, const int32_t *list, int count, uint64_t *neighbours, uint64_t *hubs,
                   int32_t *places, int *place_count)
{
    const int place = (int)(((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES);
    if (place >= count) return;
    const int32_t node = list[place];
    if (c.g.row_offsets[node + 1] - c.g.row_offsets[node] > LONG_ROW) {
        if (threadIdx.x % LANES == 0) places[atomicAdd(place_count, 1)] = place;
        return;
    }
    const relative found = best_of_lanes<LANES>(look_for_hub(c, node, threadIdx.x % LANES, LANES));
    if (threadIdx.x % LANES == 0) describe(c.g, list, place, found, neighbours, hubs);
}

static __global__ void __launch_bounds__(THREADS)
    describe_long(const coarse_view c, const int32_t *list, const int32_t *places, uint64_t *neighbours, uint64_t *hubs)
{
    const int place = places[blockIdx.x];
    const relative found = best_of_block(look_for_hub(c, list[place], threadIdx.x, THREADS));
    if (threadIdx.x == 0) describe(c.g, list, place, found, neighbours, hubs);
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

/* The same where some pairs are too heavy: then the second of them waits for the next. A thread a hub. */
static __global__ void __launch_bounds__(THREADS)
    pair_bounded(const coarse_view c, const int32_t *list, const int32_t *places, const uint64_t *hubs, int count)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count || hub_at(hubs, i) == UINT32_MAX || (i > 0 && hub_at(hubs, i - 1) == hub_at(hubs, i))) return;
    int32_t waits = -1;
    for (int k = i; k < count && hub_at(hubs, k) == hub_at(hubs, i); k++) {
        const int32_t node = list[places[k]];
        if (waits >= 0 && c.load(waits) + c.load(node) <= c.cap) {
            begin_group(c, waits, node);
            waits = -1;
        } else {
            waits = node;
        }
    }
}

static __global__ void __launch_bounds__(THREADS) find_heavy(const coarse_view c, const int32_t *list, int count, int *any)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count && c.load(list[i]) * 2 > c.cap) *any = 1;
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
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, neighbours, sorted_hubs, numbers.data, places, count, 0, 64,
                                               stream);
    }));
    gather_hubs<<<blocks, THREADS, 0, stream>>>(hubs, places, count, keys.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(numbers.data, places, (size_t)count * sizeof *places, cudaMemcpyDeviceToDevice, stream));
    return with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data, sorted_hubs, numbers.data, places, count, 0, 64,
                                               stream);
    });
}

/* `list`: the free nodes, ascending. */
static sp_status match_relatives(sp_context *context, const coarse_view &c, const int32_t *list, int count)
{
    const cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_for(count, THREADS);
    device_array<uint64_t> neighbours, hubs, sorted;
    device_array<int32_t> places;
    device_array<int> found;
    int host[2]; /* long rows, any heavy node */
    CHECK(neighbours.allocate(context, count));
    CHECK(hubs.allocate(context, count));
    CHECK(sorted.allocate(context, count));
    CHECK(places.allocate(context, count));
    CHECK(found.allocate(context, 2));
    CHECK(found.fill(0, 2));
    describe_short<<<blocks_for((int64_t)count * LANES, THREADS), THREADS, 0, stream>>>(
        c, list, count, neighbours.data, hubs.data, places.data, found.data);
    find_heavy<<<blocks, THREADS, 0, stream>>>(c, list, count, found.data + 1);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_counts(context, found.data, 2, host));
    if (host[0] > 0)
        describe_long<<<host[0], THREADS, 0, stream>>>(c, list, places.data, neighbours.data, hubs.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(sort_relatives(context, count, neighbours.data, hubs.data, places.data, sorted.data));
    (host[1] ? pair_bounded : pair_relatives)<<<blocks, THREADS, 0, stream>>>(c, list, places.data, sorted.data, count);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- groups ------------------------------------------------------------------------------------------------ */

struct node_is_free {
    const int32_t *leader;
    __device__ bool operator()(int32_t node) const { return leader[node] < 0; }
};

/* The free nodes, ascending. */
static sp_status list_free(sp_context *context, const coarse_view &c, int32_t *list, int *count)
{
    const int n = (int)c.g.rows;
    device_array<int32_t> nodes;
    device_array<int> found;
    CHECK(nodes.allocate(context, n));
    CHECK(found.allocate(context, 1));
    number<<<blocks_for(n, THREADS), THREADS, 0, stream_of(context)>>>(nodes.data, n);
    CUDA_CHECK(cudaGetLastError());
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceSelect::If(scratch, bytes, nodes.data, list, found.data, n, node_is_free{c.leader},
                                     stream_of(context));
    }));
    return read_counts(context, found.data, 1, count);
}

static __global__ void __launch_bounds__(THREADS) mark_first(const int32_t *leader, int count, int32_t *first)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) first[i] = leader[i] < 0 || leader[i] == i;
}

static __global__ void __launch_bounds__(THREADS)
    label_nodes(const int32_t *leader, const int32_t *number, int count, int32_t *labels)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) labels[i] = number[leader[i] < 0 ? i : leader[i]] - 1;
}

/* Group numbers in the order of the first nodes, which lead. */
static sp_status number_groups(sp_context *context, const int32_t *leader, int nodes, int32_t *labels, int64_t *groups)
{
    const unsigned blocks = blocks_for(nodes, THREADS);
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> first, number;
    int32_t count;
    CHECK(first.allocate(context, nodes));
    CHECK(number.allocate(context, nodes));
    mark_first<<<blocks, THREADS, 0, stream>>>(leader, nodes, first.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceScan::InclusiveSum(scratch, bytes, first.data, number.data, nodes, stream);
    }));
    label_nodes<<<blocks, THREADS, 0, stream>>>(leader, number.data, nodes, labels);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_counts(context, number.data + nodes - 1, 1, &count));
    *groups = count;
    return SP_OK;
}

sp_status contraction_cuda_coarsen(sp_context *context, const sp_csr *g, const contraction_coarsening *how,
                                   int32_t *labels, int64_t *groups, bool *done)
{
    const int64_t n = g->rows;
    device_array<int32_t> leader, list;
    device_array<float> place;
    int left, count;
    *groups = 0;
    *done = true;
    if (n == 0) return SP_OK;
    CHECK(leader.allocate(context, n));
    CHECK(leader.fill(0xff, n));
    if (how->method != CONTRACTION_MATCHING) CHECK(find_places(context, g, how->seed, &place));
    const coarse_view c = {*g,         how->seed, how->max_weight > 0 ? how->max_weight : INFINITY, how->weights,
                           place.data, leader.data};
    CHECK(match(context, c, &left));
    *done = left == 0;
    if (!*done) return SP_OK;
    if (how->method == CONTRACTION_TWO_HOP) {
        CHECK(list.allocate(context, n));
        CHECK(list_free(context, c, list.data, &count));
        if ((int64_t)count * 10 > n) CHECK(match_relatives(context, c, list.data, count));
    }
    CHECK(number_groups(context, leader.data, (int)n, labels, groups));
    *done = *groups >= how->least;
    return SP_OK;
}
