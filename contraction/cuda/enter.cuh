/* Groups of any size under a bound, as the CPU makes them (enter.c): nodes that move in a round are sorted by the group
 * that they want, those of a group in the order of their numbers, and a scan by group tells each what those before it
 * weigh. Weights are whole numbers of units, so atomics add them in any order. */
#ifndef CONTRACTION_ENTER_CUH
#define CONTRACTION_ENTER_CUH

#include "rounds.cuh"

/* Groups with their weights, as kernels see them. */
struct group_view {
    coarse_view c;
    double unit;
    int64_t room;
    const int64_t *units; /* of nodes */
    int64_t *heavy;       /* of leaders' groups; of a node in none that of the node */

    /* The weight of the node's group, or of a node in none. */
    __device__ int64_t weight_at(int32_t node) const
    {
        const int32_t leader = c.leader[node];
        return heavy[leader < 0 ? node : leader];
    }
    __device__ void add(int32_t leader, int64_t more) const
    {
        atomicAdd((unsigned long long *)&heavy[leader], (unsigned long long)more);
    }
};

/* The memory of a group_view, and what a round of moves needs. */
struct group_memory {
    device_array<int64_t> units, heavy, loads, sums;
    device_array<int32_t> keys, sorted, moving;
    device_array<int> moved;
};

static __global__ void __launch_bounds__(THREADS)
    count_units(const coarse_view c, double unit, int64_t *units, int64_t *heavy)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < c.g.rows) units[i] = heavy[i] = units_of_weight(c.load((int32_t)i), unit);
}

/* Weights in units; every node is in no group. */
static sp_status start_groups(sp_context *context, const coarse_view &c, group_memory *memory, group_view *groups)
{
    const int64_t n = c.g.rows;
    const cudaStream_t stream = stream_of(context);
    device_array<double> most;
    double heaviest = 1;
    CHECK(memory->units.allocate(context, n));
    CHECK(memory->heavy.allocate(context, n));
    CHECK(memory->moved.allocate(context, 1));
    if (c.weights) {
        CHECK(most.allocate(context, 1));
        CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
            return cub::DeviceReduce::Max(scratch, bytes, c.weights, most.data, (int)n, stream);
        }));
        CHECK(read_counts(context, most.data, 1, &heaviest));
    }
    const double unit = weight_unit(heaviest);
    *groups = {c, unit, units_of_cap(c.cap, unit), memory->units.data, memory->heavy.data};
    if (groups->room < units_of_cap(INFINITY, unit)) {
        CHECK(memory->loads.allocate(context, n));
        CHECK(memory->sums.allocate(context, n));
        CHECK(memory->keys.allocate(context, n));
        CHECK(memory->sorted.allocate(context, n));
        CHECK(memory->moving.allocate(context, n));
    }
    count_units<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(c, unit, memory->units.data, memory->heavy.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- a round of moves -------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    gather_targets(const int32_t *nodes, int count, const int32_t *to, int32_t *keys)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) keys[i] = to[nodes[i]];
}

static __global__ void __launch_bounds__(THREADS)
    gather_loads(const group_view groups, const int32_t *moving, int count, int64_t *loads)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) loads[i] = groups.units[moving[i]];
}

/* ~node in place of a node that finds no room. */
static __global__ void __launch_bounds__(THREADS)
    refuse(const group_view groups, const int32_t *targets, const int64_t *sums, int count, int32_t *moving)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count && groups.heavy[targets[i]] + sums[i] > groups.room) moving[i] = ~moving[i];
}

/* `found`: a target in no group becomes the leader of one. Targets in no group do not move in the same round. */
static __global__ void __launch_bounds__(THREADS)
    move_nodes(const group_view groups, const int32_t *moving, int count, const int32_t *to, bool found, int *moved)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int32_t node = i < count ? moving[i] : -1;
    if (node >= 0) {
        const int32_t target = to[node], leader = groups.c.leader[node];
        const int64_t units = groups.units[node];
        groups.add(leader < 0 ? node : leader, -units);
        groups.add(target, units);
        groups.c.leader[node] = target;
        if (found) groups.c.leader[target] = target;
    }
    const int here = __syncthreads_count(node >= 0);
    if (threadIdx.x == 0 && here > 0) atomicAdd(moved, here);
}

/* Sorts nodes by target, and takes out those that find no room. */
static sp_status find_room(sp_context *context, const group_view &groups, group_memory *m, const int32_t *nodes,
                           int count, const int32_t *to)
{
    const unsigned blocks = blocks_for(count, THREADS);
    const cudaStream_t stream = stream_of(context);
    int bits = 1;
    while (bits < 31 && (int64_t)1 << bits < groups.c.g.rows) bits++;
    gather_targets<<<blocks, THREADS, 0, stream>>>(nodes, count, to, m->keys.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, m->keys.data, m->sorted.data, nodes, m->moving.data,
                                               count, 0, bits, stream);
    }));
    gather_loads<<<blocks, THREADS, 0, stream>>>(groups, m->moving.data, count, m->loads.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceScan::InclusiveSumByKey(scratch, bytes, m->sorted.data, m->loads.data, m->sums.data, count,
                                                  cuda::std::equal_to<>{}, stream);
    }));
    refuse<<<blocks, THREADS, 0, stream>>>(groups, m->sorted.data, m->sums.data, count, m->moving.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* Moves nodes, in ascending order, to the groups of to[node] that have room. *moved counts them. */
static sp_status enter_groups(sp_context *context, const group_view &groups, group_memory *m, const int32_t *nodes,
                              int count, const int32_t *to, bool found, int *moved)
{
    *moved = 0;
    if (count == 0) return SP_OK;
    const bool bounded = m->moving.data != nullptr;
    if (bounded) CHECK(find_room(context, groups, m, nodes, count, to));
    CHECK(m->moved.fill(0, 1));
    move_nodes<<<blocks_for(count, THREADS), THREADS, 0, stream_of(context)>>>(
        groups, bounded ? m->moving.data : nodes, count, to, found, m->moved.data);
    CUDA_CHECK(cudaGetLastError());
    return read_counts(context, m->moved.data, 1, moved);
}

/* ---- lists ------------------------------------------------------------------------------------------------- */

/* The nodes that `wanted` takes, in their order. */
template <typename Wanted>
static sp_status select_nodes(sp_context *context, const int32_t *nodes, int count, const Wanted &wanted,
                              int32_t *selected, int *selected_count)
{
    device_array<int> found;
    CHECK(found.allocate(context, 1));
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceSelect::If(scratch, bytes, nodes, selected, found.data, count, wanted, stream_of(context));
    }));
    return read_counts(context, found.data, 1, selected_count);
}

/* ---- names ------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) count_members(const int32_t *leader, int count, unsigned *first,
                                                                int *sizes)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count || leader[i] < 0) return;
    atomicMin(&first[leader[i]], (unsigned)i);
    atomicAdd(&sizes[leader[i]], 1);
}

static __global__ void __launch_bounds__(THREADS)
    name_leaders(int32_t *leader, int count, const unsigned *first, const int *sizes)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count || leader[i] < 0) return;
    const int32_t group = leader[i];
    leader[i] = sizes[group] > 1 ? (int32_t)first[group] : -1;
}

/* Names groups by their first node; nodes that are alone are in no group. */
static sp_status name_groups(sp_context *context, const coarse_view &c)
{
    const int n = (int)c.g.rows;
    const unsigned blocks = blocks_for(n, THREADS);
    device_array<unsigned> first;
    device_array<int> sizes;
    CHECK(first.allocate(context, n));
    CHECK(sizes.allocate(context, n));
    CHECK(first.fill(0xff, n));
    CHECK(sizes.fill(0, n));
    count_members<<<blocks, THREADS, 0, stream_of(context)>>>(c.leader, n, first.data, sizes.data);
    name_leaders<<<blocks, THREADS, 0, stream_of(context)>>>(c.leader, n, first.data, sizes.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

#endif
