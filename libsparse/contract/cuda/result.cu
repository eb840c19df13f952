/* C of a contraction: its arrays, asked for ahead, its offsets, and its rows, which are brought there from the stage
 * once the lengths of all are known.
 *
 * Bytes a cell of f32: 8 read and 8 written. */
#include "contract/cuda/run.cuh"
#include "contract/cuda/tiles.cuh"

/* ---- device: offsets ------------------------------------------------------------------------------------ */

enum { LENGTH_THREADS = 256, LENGTHS_EACH = 4 }; /* four are read at once */
static_assert(LENGTHS == LENGTH_THREADS * LENGTHS_EACH, "a block's");
static_assert(CHUNK % TILE == 0, "a warp moves whole tiles");

/* A thread's share of its block's lengths; 0 beyond the last. */
static __device__ __forceinline__ int64_t read_lengths(const int32_t *lengths, int64_t rows,
                                                       int32_t (&own)[LENGTHS_EACH])
{
    const int64_t first = (int64_t)blockIdx.x * LENGTHS + threadIdx.x * LENGTHS_EACH;
    if (first + LENGTHS_EACH <= rows) {
        const int4 four = *(const int4 *)(lengths + first);
        own[0] = four.x;
        own[1] = four.y;
        own[2] = four.z;
        own[3] = four.w;
    } else {
        for (int i = 0; i < LENGTHS_EACH; i++) own[i] = first + i < rows ? lengths[first + i] : 0;
    }
    return (int64_t)own[0] + own[1] + own[2] + own[3];
}

/* sums[b] = the lengths of block b's rows. */
static __global__ void __launch_bounds__(LENGTH_THREADS)
    sum_lengths(const int32_t *lengths, int64_t rows, int64_t *sums)
{
    __shared__ uint64_t scratch[LENGTH_THREADS / 32];
    int32_t own[LENGTHS_EACH];
    wait_ahead();
    const int64_t sum = block_reduce<LENGTH_THREADS>(read_lengths(lengths, rows, own), add_op(), scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/* Notes the row for the chunks of cells that begin in it, so that no warp that moves one has to look for it; a row of
 * many is the warp's. */
static __device__ __forceinline__ void note_chunks(int64_t row, int64_t begin, int32_t length,
                                                   int32_t *rows_of_chunks)
{
    enum { MANY = 8 };
    const int64_t chunk = (begin + CHUNK - 1) / CHUNK, end = (begin + length + CHUNK - 1) / CHUNK;
    for (int64_t c = chunk; c < end && end - chunk <= MANY; c++) rows_of_chunks[c] = (int32_t)row;
    __syncwarp();
    for (unsigned left = __ballot_sync(FULL_WARP, end - chunk > MANY); left; left &= left - 1) {
        const int of = __ffs((int)left) - 1;
        const int64_t upto = __shfl_sync(FULL_WARP, (long long)end, of);
        const int32_t its = (int32_t)__shfl_sync(FULL_WARP, (long long)row, of);
        for (int64_t c = __shfl_sync(FULL_WARP, (long long)chunk, of) + (threadIdx.x & 31); c < upto; c += 32)
            rows_of_chunks[c] = its;
    }
}

/* C's offsets, rows + 1 of them. A block adds up the sums of those before it: with look-back, and its states to be
 * cleared, two kernels take 8 µs for half a million rows, these 5. */
static __global__ void __launch_bounds__(LENGTH_THREADS)
    scan_lengths(const int32_t *lengths, int64_t rows, const int64_t *sums, int64_t *offsets, int32_t *rows_of_chunks)
{
    __shared__ uint64_t scratch[LENGTH_THREADS / 32];
    __shared__ int64_t warp_sums[LENGTH_THREADS / 32];
    const int64_t first = (int64_t)blockIdx.x * LENGTHS + threadIdx.x * LENGTHS_EACH;
    const int lane = threadIdx.x & 31;
    int32_t own[LENGTHS_EACH];
    int64_t before = 0, upto;
    wait_ahead();
    for (int64_t b = threadIdx.x; b < blockIdx.x; b += LENGTH_THREADS) before += sums[b];
    before = block_reduce<LENGTH_THREADS>(before, add_op(), scratch);
    upto = read_lengths(lengths, rows, own);
    before -= upto;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int64_t other = __shfl_up_sync(FULL_WARP, (long long)upto, step);
        if (lane >= step) upto += other;
    }
    if (lane == 31) warp_sums[threadIdx.x / 32] = upto;
    __syncthreads();
    for (int w = 0; w < (int)threadIdx.x / 32; w++) before += warp_sums[w];
    before += upto;
    int64_t at = before;
#pragma unroll
    for (int i = 0; i < LENGTHS_EACH; at += own[i++]) note_chunks(first + i, at, own[i], rows_of_chunks);
    if (first + LENGTHS_EACH <= rows) {
        const int64_t half = before + own[0] + own[1];
        *(longlong2 *)(offsets + first) = make_longlong2(before, before + own[0]);
        *(longlong2 *)(offsets + first + 2) = make_longlong2(half, half + own[2]);
    } else {
        for (int i = 0; first + i <= rows; before += own[i++]) offsets[first + i] = before;
    }
}

/* ---- device: cells -------------------------------------------------------------------------------------- */

/* The combined ranges of the stage to C, if it has `least` entries and no row is inexact. The host gets the number
 * first. */
template <typename V>
static __global__ void __launch_bounds__(GATHER_THREADS, sizeof(V) == 4 ? 6 : 4)
    move_rows(contract_args<V> job, const int64_t *offsets, const int32_t *rows_of_chunks, int32_t *cols, V *values,
              int64_t least, bool only_exact, posted_counts *posted)
{
    unsigned inexact = 0;
    wait_ahead();
    for (int c = TO_64; c < ROW_CLASSES && only_exact; c++) inexact |= job.totals->inexact[c]; /* all at once */
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) posted->nnz = offsets[job.groups];
        send_totals(job.totals, posted, &posted->combined);
    }
    const int64_t cells = offsets[job.groups];
    if (inexact || cells < least) return;
    __shared__ item_tile tiles[GATHER_THREADS / 32];
    item_tile &tile = tiles[threadIdx.x / 32];
    const V *from = (const V *)job.values;
    const auto take = [&](int64_t p, int64_t *source) { *source = job.ranges[p].begin; };
    const auto copy = [&](int64_t base, int64_t end) {
        const int lane = threadIdx.x & 31;
        int slot[TILE / 32];
        int32_t col[TILE / 32];
        V value[TILE / 32];
        slots_of(tile, slot);
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int at = 32 * u + lane;
            col[u] = 0; /* or registers hold what the tile before had */
            value[u] = 0;
            if (base + at >= end) continue;
            const int64_t source = tile.source[slot[u]] + at;
            col[u] = __ldg(job.cols + source);
            value[u] = __ldg(from + source);
        }
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int64_t at = base + 32 * u + lane;
            if (at >= end) continue;
            cols[at] = col[u];
            values[at] = value[u];
        }
    };
    const int64_t chunk = (int64_t)blockIdx.x * (GATHER_THREADS / 32) + threadIdx.x / 32;
    const int64_t begin = chunk * CHUNK;
    if (begin < cells)
        copy_tiles(tile, offsets, job.groups, begin, min(begin + CHUNK, cells), rows_of_chunks[chunk], take, copy);
}

/* ---- host ----------------------------------------------------------------------------------------------- */

/* C's arrays, for this many entries. */
template <typename V> static sp_status allocate_result(sp_context *context, sp_csr *c, int64_t entries)
{
    CHECK(cuda_allocate(context, (size_t)entries * sizeof(int32_t), (void **)&c->col_indices));
    return cuda_allocate(context, (size_t)entries * sizeof(V), &c->values);
}

/* Arrays for as many entries as C may have, before its rows are combined; until they are, wide rows have room there.
 * Where a call asks for sizes that no call before it had, the driver maps memory again: 40 to 330 µs in which the
 * device has nothing to do. Where memory is short there are none yet. */
template <typename V> sp_status reserve_result(contract_run<V> *run, sp_csr *c)
{
    const size_t most = (size_t)run->entries * (sizeof(int32_t) + sizeof(V));
    size_t available = 0;
    if (!run->context->memory_budget) CHECK(cuda_unused(run->context, &available));
    if (most > available / 2) CHECK(cuda_available(run->context, &available));
    if (most > available / 2) return SP_OK;
    CHECK(allocate_result<V>(run->context, c, run->entries));
    run->room = (char *)c->values;
    return SP_OK;
}

static bool are_inexact(const contract_totals *totals)
{
    for (unsigned rows : totals->inexact)
        if (rows) return true;
    return false;
}

/* Moves the rows to C if it has `least` entries and, if `only_exact`, all are exact. */
template <typename V>
static sp_status move_result(contract_run<V> *run, sp_csr *c, int64_t least, bool only_exact)
{
    const int64_t blocks = blocks_of(run->entries, GATHER_THREADS / 32 * CHUNK) + (int64_t)1;
    return launch_early(run, move_rows<V>, GATHER_THREADS, blocks, run->job, c->row_offsets, run->rows_of_chunks,
                        c->col_indices, (V *)c->values, least, only_exact, run->posted);
}

/* C's offsets. */
template <typename V> static sp_status add_lengths(contract_run<V> *run, int64_t *offsets)
{
    sp_context *context = run->context;
    const int64_t rows = run->job.groups;
    const unsigned blocks = blocks_of(rows + 1, LENGTHS);
    sum_lengths<<<blocks, LENGTH_THREADS, 0, stream_of(context)>>>(run->job.lengths, rows, run->sums_of_lengths);
    CUDA_CHECK(cudaGetLastError());
    return launch_early(run, scan_lengths, LENGTH_THREADS, blocks, run->job.lengths, rows, run->sums_of_lengths,
                        offsets, run->rows_of_chunks);
}

/* Moves them, before the host knows how many entries there are, if C keeps the arrays that it has.
 * Where more than a quarter of them would not be used, it gets others. */
template <typename V>
static sp_status finish_rows(contract_run<V> *run, sp_csr *c, contract_totals *totals, bool only_exact)
{
    sp_context *context = run->context;
    const int64_t least = c->col_indices ? run->entries / 4 * 3 : INT64_MAX;
    run->posted->combined = 0;
    CHECK(add_lengths(run, c->row_offsets));
    CHECK(move_result(run, c, least, only_exact));
    CHECK(await_posted(context, &run->posted->combined));
    c->nnz = run->posted->nnz;
    *totals = run->posted->totals;
    if ((only_exact && are_inexact(totals)) || c->nnz >= least) return SP_OK;
    cuda_release(context, c->col_indices);
    cuda_release(context, c->values);
    c->col_indices = NULL;
    c->values = NULL;
    CHECK(allocate_result<V>(context, c, c->nnz));
    return move_result(run, c, 0, false);
}

/* Inexact rows, which are rare, are formed again: launched ahead, kernels that find nothing to do would
 * stand between others. The run's memory is given back in the order of the stream, before the host waits for it. */
template <typename V> sp_status write_result(contract_run<V> *run, sp_csr *c, contract_totals *totals)
{
    CHECK(finish_rows(run, c, totals, true));
    if (are_inexact(totals)) {
        const unsigned long long entries = totals->entries; /* which those rows are counted among twice then */
        CHECK(combine_again(run, totals));
        CHECK(finish_rows(run, c, totals, false));
        totals->entries = entries;
    }
    run->arrays.memory.free();
    run->cells.memory.free();
    run->ordered.arrays.memory.free();
    return cuda_finish(run->context);
}

template sp_status reserve_result(contract_run<float> *, sp_csr *);
template sp_status reserve_result(contract_run<double> *, sp_csr *);
template sp_status write_result(contract_run<float> *, sp_csr *, contract_totals *);
template sp_status write_result(contract_run<double> *, sp_csr *, contract_totals *);
