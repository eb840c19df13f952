/* Wide rows of a contraction: their entries, columns replaced by labels, handed to a sink in the order of the stage. */
#ifndef SPARSE_CUDA_CONTRACT_WIDE_CUH
#define SPARSE_CUDA_CONTRACT_WIDE_CUH

#include "contract/cuda/run.cuh"
#include "contract/cuda/tiles.cuh"

/* To the stage. */
template <typename V> struct stage_sink {
    __device__ __forceinline__ void begin_row(const contract_args<V> &, int32_t) {}
    __device__ __forceinline__ void put(const contract_args<V> &job, int64_t at, int32_t column, V value) const
    {
        job.cols[at] = column;
        if (job.g.values) job.values[at] = value;
    }
};

/* Calls sink.begin_row(job, row) and then sink.put(job, place in the stage, column or EMPTY, value) for its entries.
 * Wide rows are longer than what a warp takes: it begins or ends in one, if it sees any. */
template <typename V, typename Sink>
static __global__ void __launch_bounds__(GATHER_THREADS, 4) gather_wide(contract_args<V> job, Sink sink)
{
    __shared__ item_tile tiles[GATHER_THREADS / 32];
    item_tile &tile = tiles[threadIdx.x / 32];
    unsigned long long kept = 0;
    int32_t p = 0;
    const auto take = [&](int64_t k, int64_t *source) { *source = node_source(job, k, 0); };
    const auto copy = [&](int64_t base, int64_t end) {
        const int lane = threadIdx.x & 31;
        int slot[TILE / 32];
        int32_t col[TILE / 32];
        V value[TILE / 32];
        slots_of(tile, slot);
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int at = 32 * u + lane;
            col[u] = EMPTY;
            value[u] = 1;
            if (base + at >= end) continue;
            const int64_t source = tile.source[slot[u]] + at;
            col[u] = __ldcs(job.g.cols + source);
            if (job.g.values) value[u] = __ldcs(job.g.values + source);
        }
#pragma unroll
        for (int u = 0; u < TILE / 32; u++)
            if (col[u] != EMPTY) col[u] = column_of(job, p, col[u]);
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int64_t at = base + 32 * u + lane;
            if (at >= end) continue;
            kept += col[u] != EMPTY;
            sink.put(job, at, col[u], value[u]);
        }
    };
    deal_entries(__ldg(job.starts + job.nodes), [&](int64_t begin, int64_t stop) {
        const int64_t first = last_start(job.starts, job.nodes, begin);
        const int32_t last_row = (int32_t)job.keys[last_start(job.starts, job.nodes, stop - 1)];
        p = (int32_t)job.keys[first];
        if (job.classes[p] == WIDE_ROWS) {
            sink.begin_row(job, p);
            copy_tiles(tile, job.starts, job.nodes, begin, min(stop, job.ranges[p].end), first, take, copy);
        }
        if (p == last_row || job.classes[last_row] != WIDE_ROWS) return;
        p = last_row;
        sink.begin_row(job, p);
        copy_tiles(tile, job.starts, job.nodes, job.ranges[p].begin, stop, job.firsts[p], take, copy);
    });
    add_entries(job.totals, kept);
}

#endif
