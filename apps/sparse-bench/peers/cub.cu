/* C = S·G·Sᵀ by sorting, as one writes it with CUB: every edge i → j gets the key labels[i] * groups + labels[j],
 * keys and weights are sorted by radix, equal keys summed (reduce by key), and keys taken apart into rows and columns.
 *
 * Bytes an edge, f32: 12 for its key, 24 or more a pass of 8 bits, 20 to sum.
 *
 * And S and Sᵀ of labels, which two products start from: nodes are counted by label with their places, counts added
 * up, nodes put there. */
#include <cstddef>
#include <cub/cub.cuh>

#include "cub.h"

namespace {

enum { THREADS = 256, TILE = 2048 };

#define CUDA(call)                                           \
    do {                                                     \
        const cudaError_t error_ = (call);                   \
        if (error_ != cudaSuccess) return error_;            \
    } while (0)

/* The last row of low .. high that begins at or before entry `k`. */
__device__ int64_t row_of(const int64_t *offsets, int64_t low, int64_t high, int64_t k)
{
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (offsets[middle] <= k) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* A block takes a tile of entries, whatever rows they are in, and looks for each entry's row among the tile's. */
template <typename Key> __global__ void relabel(cub_graph g, Key *keys)
{
    __shared__ int64_t first, last;
    const int64_t begin = (int64_t)blockIdx.x * TILE, end = begin + TILE < g.nnz ? begin + TILE : g.nnz;
    if (threadIdx.x == 0) first = row_of(g.offsets, 0, g.nodes - 1, begin);
    if (threadIdx.x == 32) last = row_of(g.offsets, 0, g.nodes - 1, end - 1);
    __syncthreads();
    for (int64_t k = begin + threadIdx.x; k < end; k += THREADS) {
        const int64_t row = row_of(g.offsets, first, last, k);
        keys[k] = (Key)g.labels[row] * (Key)g.groups + (Key)g.labels[g.cols[k]];
    }
}

/* Entry k of C, and the offsets of the rows that begin at it. */
template <typename Key, typename Value>
__global__ void take_apart(const Key *keys, const Value *sums, int64_t count, int64_t groups, int64_t *offsets,
                           int32_t *cols, Value *values)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= count) return;
    const int64_t row = (int64_t)(keys[k] / (Key)groups), before = k ? (int64_t)(keys[k - 1] / (Key)groups) : -1;
    cols[k] = (int32_t)(keys[k] % (Key)groups);
    values[k] = sums[k];
    for (int64_t r = before + 1; r <= row; r++) offsets[r] = k;
    if (k == count - 1)
        for (int64_t r = row + 1; r <= groups; r++) offsets[r] = count;
}

struct Sum {
    template <typename Value> __host__ __device__ Value operator()(Value x, Value y) const { return x + y; }
};

/* Counts the nodes of each label, those of one that follow each other at once; ranks: of a node among them. */
template <typename Value> __global__ void count_labels(cub_labelling s, int32_t *counts, int32_t *ranks)
{
    const int32_t i = blockIdx.x * THREADS + threadIdx.x;
    const int lane = threadIdx.x & 31;
    const int32_t label = i < s.nodes ? s.labels[i] : -1;
    const int32_t before = __shfl_up_sync(~0u, label, 1);
    const unsigned upto = 2u << lane, heads = __ballot_sync(~0u, lane == 0 || label != before);
    const int head = 31 - __clz(heads & (upto - 1)), next = __ffs(heads & ~(upto - 1));
    int32_t first = 0;
    if (lane == head && i < s.nodes) first = atomicAdd(counts + label, (next ? next - 1 : 32) - lane);
    first = __shfl_sync(~0u, first, head);
    if (i <= s.nodes) s.offsets_transposed[i] = i;
    if (i >= s.nodes) return;
    ranks[i] = first + lane - head;
    ((Value *)s.values)[i] = ((Value *)s.values_transposed)[i] = 1;
}

__global__ void place_nodes(cub_labelling s, const int32_t *ranks)
{
    const int32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < s.nodes) s.cols[s.offsets[s.labels[i]] + ranks[i]] = i;
}

/* What one contraction needs beside C. */
enum { KEYS, SORTED_KEYS, SORTED_VALUES, SUMS, COUNT, TEMPORARY, BLOCKS };

struct Memory {
    cudaMemPool_t pool;
    cudaStream_t stream;
    void *block[BLOCKS];

    template <typename T> cudaError_t take(size_t count, T **pointer)
    {
        void *taken = nullptr;
        const cudaError_t error = cudaMallocFromPoolAsync(&taken, (count ? count : 1) * sizeof(T), pool, stream);
        *pointer = (T *)taken;
        return error;
    }
    cudaError_t take_temporary(size_t bytes) { return take(bytes, (char **)&block[TEMPORARY]); }
    void give_back(int which)
    {
        if (block[which]) cudaFreeAsync(block[which], stream);
        block[which] = nullptr;
    }
    ~Memory()
    {
        for (int i = 0; i < BLOCKS; i++) give_back(i);
    }
};

int blocks_of(int64_t count, int each) { return (int)((count + each - 1) / each); }

/* Relabelled and sorted. */
template <typename Key, typename Value> cudaError_t sort(const cub_graph &g, int bits, Memory &m)
{
    Key *keys, *sorted;
    Value *values;
    size_t bytes = 0;
    CUDA(m.take(g.nnz, (Key **)&m.block[KEYS]));
    CUDA(m.take(g.nnz, (Key **)&m.block[SORTED_KEYS]));
    CUDA(m.take(g.nnz, (Value **)&m.block[SORTED_VALUES]));
    keys = (Key *)m.block[KEYS];
    sorted = (Key *)m.block[SORTED_KEYS];
    values = (Value *)m.block[SORTED_VALUES];
    relabel<Key><<<blocks_of(g.nnz, TILE), THREADS, 0, m.stream>>>(g, keys);
    CUDA(cudaGetLastError());
    CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted, (const Value *)g.values, values, (int)g.nnz, 0,
                                         bits, m.stream));
    CUDA(m.take_temporary(bytes));
    CUDA(cub::DeviceRadixSort::SortPairs(m.block[TEMPORARY], bytes, keys, sorted, (const Value *)g.values, values,
                                         (int)g.nnz, 0, bits, m.stream));
    m.give_back(TEMPORARY);
    return cudaSuccess;
}

/* Sums equal keys; the distinct keys are written over the unsorted ones. */
template <typename Key, typename Value> cudaError_t reduce(const cub_graph &g, Memory &m, int *count)
{
    size_t bytes = 0;
    CUDA(m.take(g.nnz, (Value **)&m.block[SUMS]));
    CUDA(m.take(1, (int **)&m.block[COUNT]));
    const Key *sorted = (Key *)m.block[SORTED_KEYS];
    const Value *values = (Value *)m.block[SORTED_VALUES];
    Key *left = (Key *)m.block[KEYS];
    Value *sums = (Value *)m.block[SUMS];
    int *device_count = (int *)m.block[COUNT];
    CUDA(cub::DeviceReduce::ReduceByKey(nullptr, bytes, sorted, left, values, sums, device_count, Sum(), (int)g.nnz,
                                        m.stream));
    CUDA(m.take_temporary(bytes));
    CUDA(cub::DeviceReduce::ReduceByKey(m.block[TEMPORARY], bytes, sorted, left, values, sums, device_count, Sum(),
                                        (int)g.nnz, m.stream));
    CUDA(cudaMemcpyAsync(count, device_count, sizeof *count, cudaMemcpyDeviceToHost, m.stream));
    return cudaStreamSynchronize(m.stream);
}

template <typename Key, typename Value> cudaError_t contract(const cub_graph &g, int bits, Memory &m, cub_quotient *c)
{
    int count = 0;
    CUDA(m.take((size_t)g.groups + 1, &c->offsets));
    if (g.nnz > 0) {
        CUDA((sort<Key, Value>(g, bits, m)));
        CUDA((reduce<Key, Value>(g, m, &count)));
    } else {
        CUDA(cudaMemsetAsync(c->offsets, 0, ((size_t)g.groups + 1) * sizeof *c->offsets, m.stream));
    }
    c->nnz = count;
    CUDA(m.take((size_t)count, &c->cols));
    CUDA(m.take((size_t)count, (Value **)&c->values));
    if (count > 0)
        take_apart<Key, Value><<<blocks_of(count, THREADS), THREADS, 0, m.stream>>>(
            (const Key *)m.block[KEYS], (const Value *)m.block[SUMS], count, g.groups, c->offsets, c->cols,
            (Value *)c->values);
    CUDA(cudaGetLastError());
    return cudaStreamSynchronize(m.stream);
}

cudaError_t make_labelling(const cub_labelling &s, Memory &m)
{
    const int blocks = blocks_of((int64_t)s.nodes + 1, THREADS);
    const size_t count_bytes = ((size_t)s.groups + 1) * sizeof(int32_t);
    int32_t *counts, *ranks;
    size_t bytes = 0;
    CUDA(m.take((size_t)s.groups + 1, (int32_t **)&m.block[KEYS]));
    CUDA(m.take((size_t)s.nodes, (int32_t **)&m.block[SORTED_KEYS]));
    counts = (int32_t *)m.block[KEYS];
    ranks = (int32_t *)m.block[SORTED_KEYS];
    CUDA(cudaMemsetAsync(counts, 0, count_bytes, m.stream));
    if (s.wide) count_labels<double><<<blocks, THREADS, 0, m.stream>>>(s, counts, ranks);
    else count_labels<float><<<blocks, THREADS, 0, m.stream>>>(s, counts, ranks);
    CUDA(cudaGetLastError());
    CUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts, s.offsets, s.groups + 1, m.stream));
    CUDA(m.take_temporary(bytes));
    CUDA(cub::DeviceScan::ExclusiveSum(m.block[TEMPORARY], bytes, counts, s.offsets, s.groups + 1, m.stream));
    place_nodes<<<blocks, THREADS, 0, m.stream>>>(s, ranks);
    return cudaGetLastError();
}

/* Bits of the largest key. */
int bits_of(int64_t groups)
{
    const uint64_t largest = (uint64_t)groups * (uint64_t)groups - 1;
    int bits = 1;
    while (bits < 64 && largest >> bits) bits++;
    return bits;
}

} // namespace

cudaError_t cub_make_labelling(const cub_labelling *s, cudaMemPool_t pool, cudaStream_t stream)
{
    Memory m = {pool, stream, {}};
    return make_labelling(*s, m);
}

cudaError_t cub_contract(const cub_graph *g, bool all_bits, cudaMemPool_t pool, cudaStream_t stream, cub_quotient *c)
{
    Memory m = {pool, stream, {}};
    const int bits = all_bits ? 64 : bits_of(g->groups);
    if (bits <= 32)
        return g->wide ? contract<uint32_t, double>(*g, bits, m, c) : contract<uint32_t, float>(*g, bits, m, c);
    return g->wide ? contract<uint64_t, double>(*g, bits, m, c) : contract<uint64_t, float>(*g, bits, m, c);
}
