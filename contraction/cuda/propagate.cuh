/* Label propagation on the device: the rounds of propagate.c.
 *
 * Sums by group are sums of integers, whatever their order. Rows of up to 8 and 32 entries: a lane an entry, which adds
 * up the entries of its group as they come around by shuffles. Longer ones: a table of groups in shared memory, of a
 * warp or of a block. Of rows of hubs only LOOKED_AT entries are looked at, so no row is more work than that.
 *
 * Bytes an entry and round: column, steps, and the gathered leader of the neighbour; the weights of groups once a
 * group. */
#ifndef CONTRACTION_PROPAGATE_CUH
#define CONTRACTION_PROPAGATE_CUH

#include "enter.cuh"

/* What the nodes of a part choose by. */
struct choice_view {
    group_view groups;
    const uint32_t *steps; /* ratings of entries */
    uint64_t bits;         /* of the round */
    int32_t *wish;
};

/* ---- ratings ----------------------------------------------------------------------------------------------- */

static __device__ double rating_at(const coarse_view &c, int32_t node, int64_t k)
{
    const int32_t other = c.g.col_indices[k];
    if (other == node) return 0;
    const double rating = rate_edge(c.place, entry_value(&c.g, k), node, 1, other, 1);
    return rating > 0 ? rating : 0;
}

/* By WIDTH lanes, or by a block if WIDTH is THREADS. */
template <int WIDTH> static __device__ void rate_row(const coarse_view &c, int32_t node, uint32_t *steps)
{
    __shared__ uint64_t scratch[THREADS / 32];
    const int64_t first = c.g.row_offsets[node], entries = c.g.row_offsets[node + 1] - first;
    const int count = (int)looked_count(entries), lane = threadIdx.x % WIDTH;
    double most = 0;
    for (int i = lane; i < count; i += WIDTH) most = fmax(most, rating_at(c, node, first + looked_place(entries, i)));
    if constexpr (WIDTH == THREADS) most = block_reduce<THREADS>(most, max_op(), scratch);
    else
        for (int step = WIDTH / 2; step > 0; step /= 2)
            most = fmax(most, __shfl_xor_sync(group_mask<WIDTH>(), most, step));
    const int exponent = rating_exponent(most);
    for (int i = lane; i < count; i += WIDTH) {
        const int64_t k = first + looked_place(entries, i);
        steps[k] = rating_steps(rating_at(c, node, k), exponent);
    }
}

static __global__ void __launch_bounds__(THREADS)
    rate_short(const coarse_view c, uint32_t *steps, int32_t *many, int *many_count)
{
    const int64_t node = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    if (node >= c.g.rows) return;
    if (c.g.row_offsets[node + 1] - c.g.row_offsets[node] <= LOOKED_AT) rate_row<LANES>(c, (int32_t)node, steps);
    else if (threadIdx.x % LANES == 0) many[atomicAdd(many_count, 1)] = (int32_t)node;
}

static __global__ void __launch_bounds__(THREADS) rate_long(const coarse_view c, uint32_t *steps, const int32_t *many)
{
    rate_row<THREADS>(c, many[blockIdx.x], steps);
}

static sp_status rate_entries(sp_context *context, const coarse_view &c, uint32_t *steps)
{
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> many;
    device_array<int> many_count;
    int count;
    CHECK(many.allocate(context, c.g.nnz / LOOKED_AT + 1));
    CHECK(many_count.allocate(context, 1));
    CHECK(many_count.fill(0, 1));
    rate_short<<<blocks_for(c.g.rows * LANES, THREADS), THREADS, 0, stream>>>(c, steps, many.data, many_count.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_counts(context, many_count.data, 1, &count));
    if (count > 0) rate_long<<<count, THREADS, 0, stream>>>(c, steps, many.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- choices ----------------------------------------------------------------------------------------------- */

struct choice {
    uint32_t sum; /* 0: none */
    int32_t leader;
    uint64_t bits;

    __device__ void take(choice other)
    {
        if (other.sum > sum || (other.sum == sum && sum > 0 && other.bits > bits)) *this = other;
    }
    __device__ choice from_lane(int step, unsigned mask) const
    {
        return {__shfl_xor_sync(mask, sum, step), __shfl_xor_sync(mask, leader, step),
                __shfl_xor_sync(mask, bits, step)};
    }
};

/* A group with the sum of the node's edges to it, if it has room. */
static __device__ choice consider(const choice_view &v, int32_t leader, uint32_t sum, int64_t units)
{
    if (sum == 0 || v.groups.heavy[leader] + units > v.groups.room) return {0, -1, 0};
    return {sum, leader, group_bits(v.bits, leader)};
}

/* Rows of at most WIDTH entries, a lane each. */
template <int WIDTH> static __global__ void __launch_bounds__(THREADS)
    choose_by_lanes(const choice_view v, const int32_t *nodes, int count)
{
    const coarse_view &c = v.groups.c;
    const int64_t place = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WIDTH;
    if (place >= count) return;
    const int32_t node = nodes[place], own = c.leader[node];
    const int64_t k = c.g.row_offsets[node] + threadIdx.x % WIDTH;
    const bool mine = k < c.g.row_offsets[node + 1];
    const uint32_t steps = mine ? v.steps[k] : 0;
    const int32_t leader = steps > 0 ? c.leader[c.g.col_indices[k]] : -1;
    uint32_t sum = 0;
#pragma unroll
    for (int lane = 0; lane < WIDTH; lane++) {
        const int32_t there = __shfl_sync(group_mask<WIDTH>(), leader, lane, WIDTH);
        const uint32_t more = __shfl_sync(group_mask<WIDTH>(), steps, lane, WIDTH);
        if (there == leader) sum += more;
    }
    const uint32_t to_own = group_sum<WIDTH>(leader == own ? steps : 0u);
    choice best = {0, -1, 0};
    if (leader >= 0 && leader != own) best = consider(v, leader, sum, v.groups.units[node]);
    best = best_of_lanes<WIDTH>(best);
    if (threadIdx.x % WIDTH == 0) v.wish[node] = best.sum > to_own ? best.leader : own;
}

/* Waits for the threads that share a table. */
template <int WIDTH> static __device__ void wait_for_table()
{
    if (WIDTH == 32) __syncwarp();
    else __syncthreads();
}

/* Rows of which at most SLOTS / 2 entries are looked at: a table of SLOTS slots for WIDTH threads, a warp or a block.
 */
template <int WIDTH, int SLOTS> static __global__ void __launch_bounds__(THREADS)
    choose_by_table(const choice_view v, const int32_t *nodes, int count)
{
    static_assert(WIDTH == 32 || WIDTH == THREADS, "a warp or a block");
    __shared__ int32_t leaders[THREADS / WIDTH][SLOTS];
    __shared__ uint32_t sums[THREADS / WIDTH][SLOTS];
    __shared__ uint32_t to_own[THREADS / WIDTH];
    const coarse_view &c = v.groups.c;
    const int64_t place = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WIDTH;
    if (place >= count) return;
    const int table = threadIdx.x / WIDTH, lane = threadIdx.x % WIDTH;
    const int32_t node = nodes[place], own = c.leader[node];
    const int64_t first = c.g.row_offsets[node], entries = c.g.row_offsets[node + 1] - first;
    const int looked = (int)looked_count(entries);
    int slots = 64;
    while (slots < 2 * looked) slots *= 2;
    for (int slot = lane; slot < slots; slot += WIDTH) {
        leaders[table][slot] = -1;
        sums[table][slot] = 0;
    }
    if (lane == 0) to_own[table] = 0;
    wait_for_table<WIDTH>();
    for (int i = lane; i < looked; i += WIDTH) {
        const int64_t k = first + looked_place(entries, i);
        const uint32_t steps = v.steps[k];
        if (steps == 0) continue;
        const int32_t leader = c.leader[c.g.col_indices[k]];
        int slot = (int)((uint32_t)leader * 0x9e3779b1u >> 16) & (slots - 1);
        for (;;) {
            const int32_t there = atomicCAS(&leaders[table][slot], -1, leader);
            if (there == -1 || there == leader) break;
            slot = (slot + 1) & (slots - 1);
        }
        atomicAdd(&sums[table][slot], steps);
    }
    wait_for_table<WIDTH>();
    choice best = {0, -1, 0};
    for (int slot = lane; slot < slots; slot += WIDTH) {
        const int32_t leader = leaders[table][slot];
        if (leader == own) to_own[table] = sums[table][slot];
        else if (leader >= 0) best.take(consider(v, leader, sums[table][slot], v.groups.units[node]));
    }
    wait_for_table<WIDTH>();
    best = WIDTH == 32 ? best_of_lanes<32>(best) : best_of_block(best);
    if (lane == 0) v.wish[node] = best.sum > to_own[table] ? best.leader : own;
}

/* Row lengths with a kernel of their own. */
enum { ROW_8, ROW_32, ROW_256, ROW_ANY, ROW_KINDS };
static_assert(ROW_KINDS == 4 && MOVING_PARTS == 8, "two bits and three");
constexpr int KIND_BITS = 2, PART_BITS = 3, DEALT = MOVING_PARTS * ROW_KINDS;

static sp_status choose_part(sp_context *context, const choice_view &v, const int32_t *nodes,
                             const int counts[ROW_KINDS])
{
    const cudaStream_t stream = stream_of(context);
    for (int kind = ROW_8; kind < ROW_KINDS; nodes += counts[kind++]) {
        const int count = counts[kind], lanes = kind == ROW_8 ? 8 : kind == ROW_ANY ? THREADS : 32;
        const unsigned blocks = blocks_for((int64_t)count * lanes, THREADS);
        if (count == 0) continue;
        if (kind == ROW_8) choose_by_lanes<8><<<blocks, THREADS, 0, stream>>>(v, nodes, count);
        else if (kind == ROW_32) choose_by_lanes<32><<<blocks, THREADS, 0, stream>>>(v, nodes, count);
        else if (kind == ROW_256) choose_by_table<32, 512><<<blocks, THREADS, 0, stream>>>(v, nodes, count);
        else choose_by_table<THREADS, 2 * LOOKED_AT><<<blocks, THREADS, 0, stream>>>(v, nodes, count);
        CUDA_CHECK(cudaGetLastError());
    }
    return SP_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------- */

/* The part and the kind of row of each node, and how many have them. */
static __global__ void __launch_bounds__(THREADS) deal(const sp_csr g, uint64_t bits, uint8_t *keys, int32_t *nodes,
                                                       int *counts)
{
    __shared__ int here[DEALT];
    const int64_t node = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (threadIdx.x < DEALT) here[threadIdx.x] = 0;
    __syncthreads();
    if (node < g.rows) {
        const int64_t entries = g.row_offsets[node + 1] - g.row_offsets[node];
        const int kind = entries <= 8 ? ROW_8 : entries <= 32 ? ROW_32 : entries <= 256 ? ROW_256 : ROW_ANY;
        const int key = moving_part(bits, node) << KIND_BITS | kind;
        keys[node] = (uint8_t)key;
        nodes[node] = (int32_t)node;
        atomicAdd(&here[key], 1);
    }
    __syncthreads();
    if (threadIdx.x < DEALT && here[threadIdx.x] > 0) atomicAdd(&counts[threadIdx.x], here[threadIdx.x]);
}

struct node_moves {
    const int32_t *leader, *wish;
    __device__ bool operator()(int32_t node) const { return wish[node] != leader[node]; }
};

/* What the rounds need beside the groups. */
struct dealt_nodes {
    device_array<uint8_t> keys, sorted;
    device_array<int32_t> nodes, parts, kinds, movers; /* by part, ascending; by part and kind of row */
    device_array<int> counts;
};

static sp_status deal_nodes(sp_context *context, const coarse_view &c, uint64_t bits, dealt_nodes *d, int counts[DEALT])
{
    const int n = (int)c.g.rows;
    const cudaStream_t stream = stream_of(context);
    CHECK(d->counts.fill(0, DEALT));
    deal<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(c.g, bits, d->keys.data, d->nodes.data, d->counts.data);
    CUDA_CHECK(cudaGetLastError());
    for (int by_kind = 0; by_kind < 2; by_kind++)
        CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
            return cub::DeviceRadixSort::SortPairs(scratch, bytes, d->keys.data, d->sorted.data, d->nodes.data,
                                                   by_kind ? d->kinds.data : d->parts.data, n, by_kind ? 0 : KIND_BITS,
                                                   KIND_BITS + PART_BITS, stream);
        }));
    return read_counts(context, d->counts.data, DEALT, counts);
}

/* One round; *moved counts the nodes that changed their group. */
static sp_status move_round(sp_context *context, const choice_view &v, group_memory *memory, dealt_nodes *d,
                            int64_t *moved)
{
    const coarse_view &c = v.groups.c;
    int counts[DEALT], begin = 0;
    *moved = 0;
    CHECK(deal_nodes(context, c, v.bits, d, counts));
    for (int part = 0; part < MOVING_PARTS; part++) {
        const int *const kinds = counts + part * ROW_KINDS;
        int count = 0, moving, more;
        for (int kind = 0; kind < ROW_KINDS; kind++) count += kinds[kind];
        if (count == 0) continue;
        CHECK(choose_part(context, v, d->kinds.data + begin, kinds));
        CHECK(select_nodes(context, d->parts.data + begin, count, node_moves{c.leader, v.wish}, d->movers.data,
                           &moving));
        CHECK(enter_groups(context, v.groups, memory, d->movers.data, moving, v.wish, false, &more));
        *moved += more;
        begin += count;
    }
    return SP_OK;
}

static sp_status propagate_labels(sp_context *context, const coarse_view &c)
{
    const int64_t n = c.g.rows;
    group_memory memory;
    group_view groups;
    dealt_nodes d;
    device_array<uint32_t> steps;
    device_array<int32_t> wish;
    int64_t moved = n;
    CHECK(start_groups(context, c, &memory, &groups));
    CHECK(steps.allocate(context, c.g.nnz));
    CHECK(wish.allocate(context, n));
    CHECK(d.keys.allocate(context, n));
    CHECK(d.sorted.allocate(context, n));
    CHECK(d.nodes.allocate(context, n));
    CHECK(d.parts.allocate(context, n));
    CHECK(d.kinds.allocate(context, n));
    CHECK(d.movers.allocate(context, n));
    CHECK(d.counts.allocate(context, DEALT));
    number<<<blocks_for(n, THREADS), THREADS, 0, stream_of(context)>>>(c.leader, n);
    CUDA_CHECK(cudaGetLastError());
    CHECK(rate_entries(context, c, steps.data));
    for (int round = 0; round < MOVING_ROUNDS && moved * 50 > n; round++)
        CHECK(move_round(context, choice_view{groups, steps.data, round_bits(c.seed, round), wish.data}, &memory, &d,
                         &moved));
    return name_groups(context, c);
}

#endif
