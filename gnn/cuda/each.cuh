/* Kernels that apply an operation to all numbers of a matrix, or in sums over rows. Sums have the same bits in every
 * run. */
#ifndef GNN_CUDA_EACH_CUH
#define GNN_CUDA_EACH_CUH

#include "backend.cuh"

/* ---- number by number ------------------------------------------------------------------------------------ */

/* A block takes a tile of rows and columns, 2^shift lanes wide, ROWS rows a thread. */
struct each_tiling {
    int64_t rows, packs; /* packs a row */
    unsigned col_tiles;
    int shift;
};

/* `op` has the types `input` and `local`; begin(col) is called once a thread, then for each pack load(row, col) and
 * store(row, col, input, local). All loads of a thread come before its stores. */
template <typename T, int V, int ROWS, typename Op>
static __global__ void __launch_bounds__(THREADS) each_pack(const each_tiling tiling, const Op op)
{
    follow();
    const int across = 1 << tiling.shift, down = THREADS >> tiling.shift;
    const unsigned row_tile = blockIdx.x / tiling.col_tiles, col_tile = blockIdx.x - row_tile * tiling.col_tiles;
    const int64_t place = (int64_t)col_tile * across + (threadIdx.x & (across - 1)), col = place * V;
    const int64_t row = (int64_t)row_tile * (down * ROWS) + (threadIdx.x >> tiling.shift);
    if (place >= tiling.packs) return;
    const typename Op::local local = op.begin(col);
    typename Op::input in[ROWS];
#pragma unroll
    for (int u = 0; u < ROWS; u++)
        if (row + u * down < tiling.rows) in[u] = op.load(row + u * down, col);
#pragma unroll
    for (int u = 0; u < ROWS; u++)
        if (row + u * down < tiling.rows) op.store(row + u * down, col, in[u], local);
}

/* 4 rows a thread keep 64 KB in flight a multiprocessor. Small matrices use 1 row a thread, so that every
 * multiprocessor has a block. */
template <typename T, int V, typename Op>
static sp_status launch_each(gnn_engine *engine, int64_t rows, int64_t cols, const Op &op)
{
    const gnn_cuda_state *state = state_of(engine);
    each_tiling tiling = {rows, cols / V, 1, 0};
    if (rows == 0 || cols == 0) return SP_OK;
    while (tiling.shift < 8 && (int64_t)1 << tiling.shift < tiling.packs) tiling.shift++;
    const int64_t col_tiles = ceil_div(tiling.packs, (int64_t)1 << tiling.shift), down = THREADS >> tiling.shift;
    tiling.col_tiles = (unsigned)col_tiles;
    const bool few = ceil_div(rows, 4 * down) * col_tiles < state->blocks;
    const int64_t blocks = ceil_div(rows, few ? down : 4 * down) * col_tiles;
    return launch_early(engine, few ? each_pack<T, V, 1, Op> : each_pack<T, V, 4, Op>, blocks, THREADS, 0, tiling, op);
}

/* ---- sums over rows --------------------------------------------------------------------------------------- */

/* A block takes a tile of columns, 2^shift packs across, and a part of the rows. */
struct sum_tiling {
    int64_t rows, packs;
    unsigned col_tiles, parts;
    int shift;
};

/* Adds the sums of the block's threads with the same column; the first row of threads gets the totals. */
template <int V> static __device__ void add_down(double (&sums)[V], int across, double (*shared)[V])
{
#pragma unroll
    for (int v = 0; v < V; v++) shared[threadIdx.x][v] = sums[v];
    for (int half = THREADS / 2; half >= across; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
#pragma unroll
            for (int v = 0; v < V; v++) shared[threadIdx.x][v] += shared[threadIdx.x + half][v];
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; v++) sums[v] = shared[threadIdx.x & (across - 1)][v];
    __syncthreads();
}

/* sums[col] = Σ over rows by `op`: begin(col) once a thread, load(row, col), and add(row, col, input, local, sums).
 * Four rows a thread are in flight. The last block of a tile of columns adds up its parts in their order. */
template <typename T, int V, typename Op>
static __global__ void __launch_bounds__(THREADS)
    sum_rows(const sum_tiling tiling, const Op op, double *partial, unsigned *tickets, computed_t<T> *totals)
{
    follow();
    constexpr int ROWS = 4;
    __shared__ double shared[THREADS][V];
    const int across = 1 << tiling.shift, down = THREADS >> tiling.shift;
    const unsigned part = blockIdx.x / tiling.col_tiles, col_tile = blockIdx.x - part * tiling.col_tiles;
    const int lane = threadIdx.x & (across - 1), level = threadIdx.x >> tiling.shift;
    const int64_t place = (int64_t)col_tile * across + lane, col = place * V;
    const int64_t end = tiling.rows * (part + 1) / tiling.parts;
    const bool filled = place < tiling.packs;
    double sums[V] = {};
    if (filled) {
        const typename Op::local local = op.begin(col);
        for (int64_t row = tiling.rows * part / tiling.parts + level; row < end; row += ROWS * down) {
            typename Op::input in[ROWS];
#pragma unroll
            for (int u = 0; u < ROWS; u++)
                if (row + u * down < end) in[u] = op.load(row + u * down, col);
#pragma unroll
            for (int u = 0; u < ROWS; u++)
                if (row + u * down < end) op.add(row + u * down, col, in[u], local, sums);
        }
    }
    add_down<V>(sums, across, shared);
    if (tiling.parts > 1) {
        double *own = partial + (int64_t)col_tile * tiling.parts * across * V;
        if (level == 0)
#pragma unroll
            for (int v = 0; v < V; v++) own[((int64_t)part * across + lane) * V + v] = sums[v];
        if (!is_last_block(tickets + col_tile, tiling.parts)) return;
#pragma unroll
        for (int v = 0; v < V; v++) sums[v] = 0;
#pragma unroll 4
        for (unsigned p = level; p < tiling.parts; p += down)
#pragma unroll
            for (int v = 0; v < V; v++) sums[v] += __ldcg(own + ((int64_t)p * across + lane) * V + v);
        add_down<V>(sums, across, shared);
    }
    if (level == 0 && filled)
#pragma unroll
        for (int v = 0; v < V; v++) totals[col + v] = (computed_t<T>)sums[v];
}

/* Tiles are 128 bytes wide (32 numbers if they are loaded one by one), and parts fill the device. Parts depend on the
 * shape and the device alone. */
template <typename T, int V, typename Op>
static sp_status launch_sums(gnn_engine *engine, int64_t rows, int64_t cols, const Op &op, computed_t<T> *totals)
{
    const gnn_cuda_state *state = state_of(engine);
    sum_tiling tiling = {rows, cols / V, 1, 1, 0};
    if (cols == 0) return SP_OK;
    while (1 << tiling.shift < (V == 1 ? 32 : 8) && (int64_t)1 << tiling.shift < tiling.packs) tiling.shift++;
    const int64_t col_tiles = ceil_div(tiling.packs, (int64_t)1 << tiling.shift), down = THREADS >> tiling.shift;
    const int64_t wanted = ceil_div(rows, 8 * down), most = state->blocks / col_tiles;
    const int64_t parts = wanted < most ? wanted : most;
    tiling.col_tiles = (unsigned)col_tiles;
    tiling.parts = parts > 1 ? (unsigned)parts : 1;
    return launch_early(engine, sum_rows<T, V, Op>, col_tiles * tiling.parts, THREADS, 0, tiling, op, state->partial,
                        state->tickets, totals);
}

#endif
