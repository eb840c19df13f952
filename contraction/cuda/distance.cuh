/* Algebraic distances on the device, with the CPU's order of additions (distance.c). Four lanes a node, one for each of
 * its numbers. A row of several chunks is the work of a block, whose groups of four take chunks in turn. */
#ifndef CONTRACTION_DISTANCE_CUH
#define CONTRACTION_DISTANCE_CUH

#include "rounds.cuh"

static_assert(DISTANCE_VECTORS == 4, "four lanes a node");
constexpr int DISTANCE_GROUPS = THREADS / DISTANCE_VECTORS;

struct smoothed {
    double sum, all;
};

/* Entries first to end - 1 of the node's row, for number v. */
static __device__ smoothed add_entries(const sp_csr &g, int64_t node, int64_t first, int64_t end, const float *from,
                                       int v)
{
    constexpr int AHEAD = 4;
    smoothed s = {0, 0};
    for (int64_t k = first; k < end; k += AHEAD) {
        int32_t col[AHEAD];
        double weight[AHEAD];
        float there[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) col[u] = k + u < end ? g.col_indices[k + u] : (int32_t)node;
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            weight[u] = col[u] != node ? entry_value(&g, k + u) : 0;
            there[u] = from[(int64_t)col[u] * DISTANCE_VECTORS + v];
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

static __global__ void __launch_bounds__(THREADS)
    begin_places(const sp_csr g, uint64_t seed, float *place, int32_t *many, int *many_count)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= g.rows * DISTANCE_VECTORS) return;
    const int64_t node = i / DISTANCE_VECTORS;
    place[i] = first_place(seed, i);
    if (i % DISTANCE_VECTORS == 0 && g.row_offsets[node + 1] - g.row_offsets[node] > DISTANCE_CHUNK)
        many[atomicAdd(many_count, 1)] = (int32_t)node;
}

static __global__ void __launch_bounds__(THREADS) smooth_short(const sp_csr g, const float *from, float *to)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, node = i / DISTANCE_VECTORS;
    if (node >= g.rows) return;
    const int64_t first = g.row_offsets[node], end = g.row_offsets[node + 1];
    if (end - first > DISTANCE_CHUNK) return;
    to[i] = smooth_number(from[i], add_entries(g, node, first, end, from, (int)(i % DISTANCE_VECTORS)));
}

static __global__ void __launch_bounds__(THREADS)
    smooth_long(const sp_csr g, const int32_t *many, const float *from, float *to)
{
    __shared__ smoothed parts[DISTANCE_GROUPS][DISTANCE_VECTORS];
    const int64_t node = many[blockIdx.x], first = g.row_offsets[node], end = g.row_offsets[node + 1];
    const int group = threadIdx.x / DISTANCE_VECTORS, v = threadIdx.x % DISTANCE_VECTORS;
    smoothed s = {0, 0};
    for (int64_t turn = first; turn < end; turn += DISTANCE_GROUPS * DISTANCE_CHUNK) {
        const int64_t begin = turn + group * DISTANCE_CHUNK, last = min(begin + DISTANCE_CHUNK, end);
        if (begin < end) parts[group][v] = add_entries(g, node, begin, last, from, v);
        __syncthreads();
        if (group == 0)
            for (int part = 0; part < DISTANCE_GROUPS && turn + part * DISTANCE_CHUNK < end; part++) {
                s.sum += parts[part][v].sum;
                s.all += parts[part][v].all;
            }
        __syncthreads();
    }
    if (group == 0) to[node * DISTANCE_VECTORS + v] = smooth_number(from[node * DISTANCE_VECTORS + v], s);
}

/* The places of all nodes. */
static sp_status find_places(sp_context *context, const sp_csr *g, uint64_t seed, device_array<float> *place)
{
    const int64_t n = g->rows;
    const cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_for(n * DISTANCE_VECTORS, THREADS);
    device_array<float> other;
    device_array<int32_t> many;
    device_array<int> many_count;
    int count;
    CHECK(place->allocate(context, n * DISTANCE_VECTORS));
    CHECK(other.allocate(context, n * DISTANCE_VECTORS));
    CHECK(many.allocate(context, g->nnz / DISTANCE_CHUNK + 1));
    CHECK(many_count.allocate(context, 1));
    CHECK(many_count.fill(0, 1));
    begin_places<<<blocks, THREADS, 0, stream>>>(*g, seed, place->data, many.data, many_count.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_counts(context, many_count.data, 1, &count));
    for (int sweep = 0; sweep < DISTANCE_SWEEPS; sweep++) {
        smooth_short<<<blocks, THREADS, 0, stream>>>(*g, place->data, other.data);
        if (count > 0) smooth_long<<<count, THREADS, 0, stream>>>(*g, many.data, place->data, other.data);
        CUDA_CHECK(cudaGetLastError());
        float *const swap = place->data;
        place->data = other.data;
        other.data = swap;
    }
    return SP_OK;
}

#endif
