/* Algebraic distances on the device, with the CPU's order of additions (distance.c). Four lanes a row of one chunk, one
 * for each of its node's numbers; the rows of a warp are about as long, since it takes as long as its longest. Chunks
 * of longer rows are the work of four lanes each, wherever they are; then a block a row adds their sums in order. So a
 * hub's row is spread over the device. */
#ifndef CONTRACTION_DISTANCE_CUH
#define CONTRACTION_DISTANCE_CUH

#include "rounds.cuh"

static_assert(DISTANCE_VECTORS == 4, "four lanes a node");
/* Rows by the steps of four entries that they take; those of several chunks come last. */
constexpr int DISTANCE_STEPS = DISTANCE_CHUNK / DISTANCE_VECTORS, DISTANCE_BITS = 6;
static_assert(DISTANCE_STEPS + 1 < 1 << DISTANCE_BITS, "keys of rows");
constexpr int DISTANCE_GROUPS = THREADS / DISTANCE_VECTORS;

struct smoothed {
    double sum, all;
};

/* Entries first to end - 1 of the node's row, for number v, by the four lanes of the node: each loads one of four. */
static __device__ smoothed add_entries(const sp_csr &g, int64_t node, int64_t first, int64_t end, const float *from,
                                       int v)
{
    constexpr int AHEAD = DISTANCE_VECTORS;
    const unsigned lanes = group_mask<AHEAD>();
    smoothed s = {0, 0};
    for (int64_t k = first; k < end; k += AHEAD) {
        const int32_t my_col = k + v < end ? g.col_indices[k + v] : (int32_t)node;
        const double my_weight = my_col != node ? entry_value(&g, k + v) : 0;
        double weight[AHEAD];
        float there[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const int32_t col = __shfl_sync(lanes, my_col, u, AHEAD);
            weight[u] = __shfl_sync(lanes, my_weight, u, AHEAD);
            there[u] = from[(int64_t)col * DISTANCE_VECTORS + v];
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (!(weight[u] > 0)) continue;
            s.all += weight[u];
            s.sum += weight[u] * (double)there[u];
        }
    }
    return s;
}

static __device__ float smooth_number(float own, smoothed s)
{
    return s.all > 0 ? (float)(0.5 * (double)own + 0.5 * s.sum / s.all) : own;
}

/* Rows of several chunks, and the first of their chunks among all of these. */
struct chunked_rows {
    int32_t *nodes;
    int *first;
    int32_t *owner; /* of each chunk, its place in `nodes` */
    int *counts;    /* of rows, of chunks */
};

static __global__ void __launch_bounds__(THREADS)
    begin_places(const sp_csr g, uint64_t seed, float *place, uint8_t *keys, int32_t *nodes, const chunked_rows rows)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, node = i / DISTANCE_VECTORS;
    if (node >= g.rows) return;
    place[i] = first_place(seed, i);
    const int64_t entries = g.row_offsets[node + 1] - g.row_offsets[node];
    if (i % DISTANCE_VECTORS != 0) return;
    nodes[node] = (int32_t)node;
    keys[node] = (uint8_t)min((entries + DISTANCE_VECTORS - 1) / DISTANCE_VECTORS, (int64_t)DISTANCE_STEPS + 1);
    if (entries <= DISTANCE_CHUNK) return;
    const int row = atomicAdd(&rows.counts[0], 1);
    rows.nodes[row] = (int32_t)node;
    rows.first[row] = atomicAdd(&rows.counts[1], (int)((entries + DISTANCE_CHUNK - 1) / DISTANCE_CHUNK));
}

static __global__ void __launch_bounds__(THREADS) name_chunks(const sp_csr g, const chunked_rows rows)
{
    const int32_t node = rows.nodes[blockIdx.x];
    const int64_t entries = g.row_offsets[node + 1] - g.row_offsets[node];
    const int chunks = (int)((entries + DISTANCE_CHUNK - 1) / DISTANCE_CHUNK), first = rows.first[blockIdx.x];
    for (int chunk = threadIdx.x; chunk < chunks; chunk += THREADS) rows.owner[first + chunk] = (int32_t)blockIdx.x;
}

/* Rows of one chunk, whose nodes are listed. */
static __global__ void __launch_bounds__(THREADS)
    smooth_short(const sp_csr g, const int32_t *nodes, int64_t count, const float *from, float *to)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i / DISTANCE_VECTORS >= count) return;
    const int64_t node = nodes[i / DISTANCE_VECTORS], at = node * DISTANCE_VECTORS + i % DISTANCE_VECTORS;
    const int64_t first = g.row_offsets[node], end = g.row_offsets[node + 1];
    to[at] = smooth_number(from[at], add_entries(g, node, first, end, from, (int)(i % DISTANCE_VECTORS)));
}

static __global__ void __launch_bounds__(THREADS)
    sum_chunks(const sp_csr g, const chunked_rows rows, int count, const float *from, smoothed *sums)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, chunk = i / DISTANCE_VECTORS;
    if (chunk >= count) return;
    const int row = rows.owner[chunk];
    const int32_t node = rows.nodes[row];
    const int64_t first = g.row_offsets[node] + (chunk - rows.first[row]) * DISTANCE_CHUNK;
    const int64_t end = min(first + DISTANCE_CHUNK, g.row_offsets[node + 1]);
    sums[i] = add_entries(g, node, first, end, from, (int)(i % DISTANCE_VECTORS));
}

/* A block a row: it loads the sums of some chunks at once, and one group adds them in order. */
static __global__ void __launch_bounds__(THREADS)
    smooth_long(const sp_csr g, const chunked_rows rows, const smoothed *sums, const float *from, float *to)
{
    __shared__ smoothed parts[DISTANCE_GROUPS][DISTANCE_VECTORS];
    const int32_t node = rows.nodes[blockIdx.x];
    const int64_t entries = g.row_offsets[node + 1] - g.row_offsets[node];
    const int chunks = (int)((entries + DISTANCE_CHUNK - 1) / DISTANCE_CHUNK);
    const int group = threadIdx.x / DISTANCE_VECTORS, v = threadIdx.x % DISTANCE_VECTORS;
    const smoothed *const own = sums + (int64_t)rows.first[blockIdx.x] * DISTANCE_VECTORS;
    smoothed s = {0, 0};
    for (int turn = 0; turn < chunks; turn += DISTANCE_GROUPS) {
        if (turn + group < chunks) parts[group][v] = own[(int64_t)(turn + group) * DISTANCE_VECTORS + v];
        __syncthreads();
        if (group == 0)
            for (int part = 0; part < DISTANCE_GROUPS && turn + part < chunks; part++) {
                s.sum += parts[part][v].sum;
                s.all += parts[part][v].all;
            }
        __syncthreads();
    }
    const int64_t at = (int64_t)node * DISTANCE_VECTORS + v;
    if (group == 0) to[at] = smooth_number(from[at], s);
}

/* First places; the nodes by the length of their rows; which rows have several chunks. */
static sp_status open_places(sp_context *context, const sp_csr *g, uint64_t seed, float *place,
                             device_array<int32_t> *order, const chunked_rows &rows)
{
    const int64_t n = g->rows;
    const cudaStream_t stream = stream_of(context);
    device_array<uint8_t> keys, sorted;
    device_array<int32_t> nodes;
    CHECK(keys.allocate(context, n));
    CHECK(sorted.allocate(context, n));
    CHECK(nodes.allocate(context, n));
    CHECK(order->allocate(context, n));
    begin_places<<<blocks_for(n * DISTANCE_VECTORS, THREADS), THREADS, 0, stream>>>(*g, seed, place, keys.data,
                                                                                    nodes.data, rows);
    CUDA_CHECK(cudaGetLastError());
    return with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data, sorted.data, nodes.data, order->data, n, 0,
                                               DISTANCE_BITS, stream);
    });
}

/* The places of all nodes. */
static sp_status find_places(sp_context *context, const sp_csr *g, uint64_t seed, device_array<float> *place)
{
    const int64_t n = g->rows, most_rows = g->nnz / DISTANCE_CHUNK + 1;
    const cudaStream_t stream = stream_of(context);
    device_array<float> other;
    device_array<int32_t> order, nodes, owner;
    device_array<int> first, counts;
    device_array<smoothed> sums;
    int found[2]; /* rows, chunks */
    CHECK(place->allocate(context, n * DISTANCE_VECTORS));
    CHECK(other.allocate(context, n * DISTANCE_VECTORS));
    CHECK(nodes.allocate(context, most_rows));
    CHECK(first.allocate(context, most_rows));
    CHECK(owner.allocate(context, 2 * most_rows));
    CHECK(counts.allocate(context, 2));
    CHECK(counts.fill(0, 2));
    const chunked_rows rows = {nodes.data, first.data, owner.data, counts.data};
    CHECK(open_places(context, g, seed, place->data, &order, rows));
    CHECK(read_counts(context, counts.data, 2, found));
    const int64_t shorts = n - found[0];
    const unsigned short_blocks = blocks_for(shorts * DISTANCE_VECTORS, THREADS);
    const unsigned chunk_blocks = blocks_for((int64_t)found[1] * DISTANCE_VECTORS, THREADS);
    CHECK(sums.allocate(context, (int64_t)found[1] * DISTANCE_VECTORS));
    if (found[0] > 0) name_chunks<<<found[0], THREADS, 0, stream>>>(*g, rows);
    for (int sweep = 0; sweep < DISTANCE_SWEEPS; sweep++) {
        if (shorts > 0)
            smooth_short<<<short_blocks, THREADS, 0, stream>>>(*g, order.data, shorts, place->data, other.data);
        if (found[0] > 0) {
            sum_chunks<<<chunk_blocks, THREADS, 0, stream>>>(*g, rows, found[1], place->data, sums.data);
            smooth_long<<<found[0], THREADS, 0, stream>>>(*g, rows, sums.data, place->data, other.data);
        }
        CUDA_CHECK(cudaGetLastError());
        float *const swap = place->data;
        place->data = other.data;
        other.data = swap;
    }
    return SP_OK;
}

#endif
