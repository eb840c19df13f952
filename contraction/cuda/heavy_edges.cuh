/* Heavy-edge coarsening on the device: the rounds of heavy_edges.c. */
#ifndef CONTRACTION_HEAVY_EDGES_CUH
#define CONTRACTION_HEAVY_EDGES_CUH

#include "enter.cuh"
#include "wishes.cuh"

struct neighbouring_groups {
    typedef wish_candidate best;
    group_view groups;
    int32_t *wish;

    __device__ wish_candidate at(int32_t node, int start, int step) const
    {
        const coarse_view &c = groups.c;
        const int64_t units = groups.units[node];
        const double own = (double)units * groups.unit;
        wish_candidate found = {0, 0, -1};
        for (int64_t k = c.g.row_offsets[node] + start; k < c.g.row_offsets[node + 1]; k += step) {
            const int32_t other = c.g.col_indices[k];
            if (other == node) continue;
            const int64_t there = groups.weight_at(other);
            if (units + there > groups.room) continue;
            const double rating = rate_edge(c.place, entry_value(&c.g, k), node, own, other,
                                            (double)there * groups.unit);
            if (rating >= found.rating) found.take({rating, edge_bits(c.seed, node, other), other});
        }
        return found;
    }
    __device__ void put(int32_t node, wish_candidate found) const { wish[node] = found.node; }
};

static __global__ void __launch_bounds__(THREADS)
    list_rows(const sp_csr g, const int32_t *nodes, int count, const row_lists lists)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) lists.add(g.row_offsets[nodes[i] + 1] - g.row_offsets[nodes[i]], nodes[i]);
}

/* The group that each open node asks to enter; -1: none. `coins` are 0 in rounds without. */
static __global__ void __launch_bounds__(THREADS)
    aim(const coarse_view c, const int32_t *wish, const int32_t *open, int count, uint64_t coins, int32_t *to)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int32_t node = open[i], other = wish[node];
    int32_t target = -1;
    if (c.is_free(node) && other >= 0 && (!coins || has_heads(coins, node))) {
        if (!c.is_free(other)) target = c.leader[other];
        else if (coins) target = has_heads(coins, other) ? -1 : other;
        else if (other < node && wish[other] == node) target = other;
    }
    to[node] = target;
}

struct node_asks {
    const int32_t *to;
    __device__ bool operator()(int32_t node) const { return to[node] >= 0; }
};

struct node_stays_open {
    const int32_t *leader, *wish;
    __device__ bool operator()(int32_t node) const { return leader[node] < 0 && wish[node] >= 0; }
};

static sp_status join_heavy_edges(sp_context *context, const coarse_view &c)
{
    const int64_t n = c.g.rows;
    const cudaStream_t stream = stream_of(context);
    group_memory memory;
    group_view groups;
    device_array<int32_t> wish, open, others, to;
    row_list_memory rows;
    int count = (int)n;
    bool tossing = false;
    CHECK(start_groups(context, c, &memory, &groups));
    CHECK(wish.allocate(context, n));
    CHECK(open.allocate(context, n));
    CHECK(others.allocate(context, n));
    CHECK(to.allocate(context, n));
    CHECK(rows.allocate(context, n, c.g.nnz));
    number<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(open.data, n);
    CUDA_CHECK(cudaGetLastError());
    for (int round = 0; round < JOINING_ROUNDS && count > 0; round++) {
        const unsigned blocks = blocks_for(count, THREADS);
        int joined = 0, asking, moved;
        tossing |= round >= AGREEING_ROUNDS;
        list_rows<<<blocks, THREADS, 0, stream>>>(c.g, open.data, count, rows.lists());
        CUDA_CHECK(cudaGetLastError());
        CHECK(walk(context, neighbouring_groups{groups, wish.data}, rows.lists()));
        for (int turn = 0; turn < (tossing ? 1 : ASKING_TURNS); turn++) {
            aim<<<blocks, THREADS, 0, stream>>>(c, wish.data, open.data, count, tossing ? round_bits(c.seed, round) : 0,
                                                to.data);
            CUDA_CHECK(cudaGetLastError());
            CHECK(select_nodes(context, open.data, count, node_asks{to.data}, others.data, &asking));
            CHECK(enter_groups(context, groups, &memory, others.data, asking, to.data, true, &moved));
            joined += moved;
        }
        tossing |= joined == 0;
        CHECK(select_nodes(context, open.data, count, node_stays_open{c.leader, wish.data}, others.data, &count));
        int32_t *const swap = open.data;
        open.data = others.data;
        others.data = swap;
    }
    return name_groups(context, c);
}

#endif
