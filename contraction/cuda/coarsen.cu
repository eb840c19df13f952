/* Coarsening on a CUDA device: the ways of coarsen.c, with the CPU's groups. A hub's row is never the work of one block
 * alone. Each sweep of the distances reads column and value of an entry and gathers 16 bytes. */
#include "distance.cuh"
#include "heavy_edges.cuh"
#include "matching.cuh"
#include "propagate.cuh"

/* ---- groups ------------------------------------------------------------------------------------------------ */

struct node_is_alone {
    const int32_t *leader;
    __device__ bool operator()(int32_t node) const { return leader[node] < 0; }
};

/* Two such nodes are never too heavy. */
struct node_may_pair {
    coarse_view c;
    __device__ bool operator()(int32_t node) const { return c.is_free(node) && 2 * c.load(node) <= c.cap; }
};

/* Where more than a tenth of the nodes is alone, pairs with a common neighbour. */
static sp_status pair_the_rest(sp_context *context, const coarse_view &c)
{
    const int n = (int)c.g.rows;
    device_array<int32_t> nodes, list;
    int alone, count;
    CHECK(nodes.allocate(context, n));
    CHECK(list.allocate(context, n));
    number<<<blocks_for(n, THREADS), THREADS, 0, stream_of(context)>>>(nodes.data, n);
    CUDA_CHECK(cudaGetLastError());
    CHECK(select_nodes(context, nodes.data, n, node_is_alone{c.leader}, list.data, &alone));
    if ((int64_t)alone * 10 <= n) return SP_OK;
    CHECK(select_nodes(context, nodes.data, n, node_may_pair{c}, list.data, &count));
    return match_relatives(context, c, list.data, count);
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
                                   int32_t *labels, int64_t *groups, bool *complete)
{
    const device_scope scope(context);
    CHECK(scope.status);
    const int64_t n = g->rows;
    device_array<int32_t> leader;
    device_array<float> place;
    int left = 0;
    *groups = 0;
    *complete = true;
    if (n == 0) return SP_OK;
    CHECK(leader.allocate(context, n));
    CHECK(leader.fill(0xff, n));
    if (how->method != CONTRACTION_MATCHING) CHECK(find_places(context, g, how->seed, &place));
    const coarse_view c = {*g,         how->seed, how->max_weight > 0 ? how->max_weight : INFINITY, how->weights,
                           place.data, leader.data};
    if (how->method == CONTRACTION_HEAVY_EDGES) CHECK(join_heavy_edges(context, c));
    else if (how->method == CONTRACTION_PROPAGATION) CHECK(propagate_labels(context, c));
    else CHECK(match(context, c, &left));
    *complete = left == 0;
    if (!*complete) return SP_OK;
    if (how->method != CONTRACTION_MATCHING) CHECK(pair_the_rest(context, c));
    return number_groups(context, leader.data, (int)n, labels, groups);
}
