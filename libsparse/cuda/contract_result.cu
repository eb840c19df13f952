/* C of a contraction: its arrays, asked for ahead, its offsets, and its rows, which are brought there from the stage once
 * the lengths of all are known.
 *
 * Bytes a cell of f32: 8 read and 8 written. */
#include "contract_run.cuh"
#include "contract_tiles.cuh"

/* ---- device --------------------------------------------------------------------------------------------- */

/* The combined ranges of the stage to C, if it has `least` entries and no row is inexact. The host is told first. */
template <typename V>
static __global__ void __launch_bounds__(GATHER_THREADS)
    move_rows(contract_job<V> job, const int64_t *offsets, int32_t *cols, V *values, int64_t least, bool only_exact,
              count_letter *letter)
{
    bool inexact = false;
    for (int c = SORTED; c < CLASSES && only_exact; c++) inexact = inexact || job.totals->inexact[c];
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) letter->nnz = offsets[job.groups];
        send_totals(job.totals, letter, &letter->combined);
    }
    if (inexact || offsets[job.groups] < least) return;
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
    deal_entries(__ldg(offsets + job.groups), [&](int64_t begin, int64_t stop) {
        copy_tiles(tile, offsets, job.groups, begin, stop, last_start(offsets, job.groups, begin), take, copy);
    });
}

/* ---- host ----------------------------------------------------------------------------------------------- */

/* C's arrays, for so many entries. */
template <typename V> static sp_status allocate_result(sp_context *context, sp_csr *c, int64_t entries)
{
    TRY(cuda_allocate(context, (size_t)entries * sizeof(int32_t), (void **)&c->col_indices));
    return cuda_allocate(context, (size_t)entries * sizeof(V), &c->values);
}

/* Arrays for as many entries as C may have, before its rows are combined; until they are, wide rows have room there.
 * Where a call asks for sizes that no call before it had, the driver maps memory anew: 40 to 330 µs in which the
 * device has nothing to do. Where memory is short there are none yet. */
template <typename V> sp_status reserve_result(contract_run<V> *run, sp_csr *c)
{
    size_t available;
    TRY(cuda_available(run->context, &available));
    if ((size_t)run->entries > available / 2 / (sizeof(int32_t) + sizeof(V))) return SP_OK;
    TRY(allocate_result<V>(run->context, c, run->entries));
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
    const int64_t work = blocks_of(run->entries, GATHER_THREADS / 32 * TILE * TILES) + (int64_t)1;
    return launch(run, move_rows<V>, GATHER_THREADS, 0, work, stream_of(run->context), c->row_offsets,
                  c->col_indices, (V *)c->values, least, only_exact, run->letter);
}

/* C's offsets; moves the rows, before the host knows how many entries there are, if C keeps the arrays that it has.
 * Where more than a quarter of them would not be used, it gets others. */
template <typename V>
static sp_status finish_rows(contract_run<V> *run, sp_csr *c, contract_totals *totals, bool only_exact)
{
    sp_context *context = run->context;
    const int64_t least = c->col_indices ? run->entries / 4 * 3 : INT64_MAX;
    run->letter->combined = 0;
    TRY(cuda_scan_counts(context, run->job.groups, run->job.lengths, c->row_offsets));
    TRY(move_result(run, c, least, only_exact));
    TRY(await_letter(context, &run->letter->combined));
    c->nnz = run->letter->nnz;
    *totals = run->letter->totals;
    if ((only_exact && are_inexact(totals)) || c->nnz >= least) return SP_OK;
    cuda_release(context, c->col_indices);
    cuda_release(context, c->values);
    c->col_indices = NULL;
    c->values = NULL;
    TRY(allocate_result<V>(context, c, c->nnz));
    return move_result(run, c, 0, false);
}

/* Inexact rows, of which there mostly are none, are formed anew: launched ahead, kernels that find nothing to do would
 * stand between others. The run's memory is given back in the order of the stream, before the host waits for it. */
template <typename V> sp_status write_result(contract_run<V> *run, sp_csr *c, contract_totals *totals)
{
    TRY(finish_rows(run, c, totals, true));
    if (are_inexact(totals)) {
        TRY(combine_again(run, totals));
        TRY(finish_rows(run, c, totals, false));
    }
    run->arrays.memory.free();
    run->cells.memory.free();
    return cuda_finish(run->context);
}

template sp_status reserve_result(contract_run<float> *, sp_csr *);
template sp_status reserve_result(contract_run<double> *, sp_csr *);
template sp_status write_result(contract_run<float> *, sp_csr *, contract_totals *);
template sp_status write_result(contract_run<double> *, sp_csr *, contract_totals *);
