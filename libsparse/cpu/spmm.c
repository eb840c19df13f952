/* Y = alpha · reduce(A · X) + beta · Y on the CPU: row by row, the output in registers (spmm_tile.h).
 *
 * The families of sparse.h, as far as they matter to caches:
 *   row split        rows as they come, cut into chunks of about equal work that the threads take as they are free;
 *   block partition  rows sorted by degree (a counting sort), then the same: the loop over a row's entries has the
 *                    same length row after row;
 *   bidirectional    X cut into tiles of columns, A's columns binned by range, so that the part of X that a pass
 *                    gathers from stays in the cache; sums of a tile go on from one bin to the next in a buffer.
 * The order of additions depends on nothing but A and the plan, so that the bits do not change from run to run.
 */
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "spmm_tile.h"

/* A chunk's entries, and the entries for which the work on a row as such stands. A chunk of 64 columns is some 500 KB
 * of gathers: tens of microseconds against the tenth of one that taking it costs. */
enum { CHUNK_WORK = 2048, ROW_WORK = 4 };

typedef struct spmm_state {
    sp_spmm_algorithm algorithm;
    int32_t *order;           /* block partition */
    int64_t *first, chunks;   /* chunk c is rows first[c] to first[c + 1] - 1, of the order if there is one */
    int64_t columns;          /* bidirectional: of X a tile, at most */
    int32_t *splits, bins;    /* splits[(b - 1) * rows + i]: entries of row i before bin b */
} spmm_state;

/* ---- preparation --------------------------------------------------------------------------------------- */

/* Rows by descending degree, those of equal degree as they come. */
static sp_status sort_by_degree(sp_context *context, const sp_csr *a, int32_t **order)
{
    int64_t *starts = NULL, longest = 0;
    sp_status status;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t degree = a->row_offsets[i + 1] - a->row_offsets[i];
        if (degree > longest) longest = degree;
    }
    SP_TRY(sp_calloc(context, longest + 2, sizeof *starts, (void **)&starts));
    SP_TRY(sp_alloc(context, a->rows, sizeof **order, (void **)order));
    for (int64_t i = 0; i < a->rows; i++) starts[longest - (a->row_offsets[i + 1] - a->row_offsets[i]) + 1]++;
    for (int64_t d = 0; d <= longest; d++) starts[d + 1] += starts[d];
    for (int64_t i = 0; i < a->rows; i++)
        (*order)[starts[longest - (a->row_offsets[i + 1] - a->row_offsets[i])]++] = (int32_t)i;
done:
    sp_free(context, starts);
    return status;
}

static sp_status cut_chunks(sp_context *context, const sp_csr *a, spmm_state *state)
{
    /* A chunk but the last holds CHUNK_WORK or more. */
    const int64_t most = (a->nnz + ROW_WORK * a->rows) / CHUNK_WORK + 2;
    sp_status status = sp_alloc(context, most, sizeof *state->first, (void **)&state->first);
    if (status != SP_OK) return status;
    state->first[0] = 0;
    for (int64_t r = 0, work = 0; r < a->rows; r++) {
        const int64_t i = state->order ? state->order[r] : r;
        work += a->row_offsets[i + 1] - a->row_offsets[i] + ROW_WORK;
        if (work < CHUNK_WORK && r + 1 < a->rows) continue;
        state->first[++state->chunks] = r + 1;
        work = 0;
    }
    return SP_OK;
}

/* Bytes of X that a pass may gather from: half of the last cache that a core has for itself. */
static int64_t cache_bytes(const sp_spmm_options *options)
{
    if (options->partition_bytes) return (int64_t)(options->partition_bytes < INT64_MAX ? options->partition_bytes : INT64_MAX);
    const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? size / 2 : 8 << 20;
}

static sp_status bin_columns(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                             spmm_state *state)
{
    const int64_t bytes = cache_bytes(options), size = a->values && a->value_type == SP_F64 ? 8 : 4, line = 64 / size;
    int64_t columns = width < line ? width : line, range;
    if (columns < 1) columns = 1;
    while (2 * columns <= width && 2 * columns * size * a->cols <= bytes) columns *= 2;
    state->columns = columns;
    range = bytes / (columns * size);
    if (range < 1) range = 1;
    state->bins = 1;
    /* Shorter pieces of rows than 8 entries would cost more in the sums that come and go than X's rows do. */
    const int64_t useful = a->rows ? a->nnz / (8 * a->rows) : 0, wanted = (a->cols + range - 1) / range;
    const int64_t bins = wanted < useful || options->partition_bytes ? wanted : useful;
    if (bins <= 1 || options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN) return SP_OK;
    state->bins = (int32_t)(bins < 64 ? bins : 64);
    range = (a->cols + state->bins - 1) / state->bins;
    sp_status status = sp_alloc(context, (state->bins - 1) * a->rows, sizeof *state->splits, (void **)&state->splits);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t k = a->row_offsets[i];
        for (int32_t b = 1; b < state->bins; b++) {
            while (k < a->row_offsets[i + 1] && a->col_indices[k] < b * range) k++;
            state->splits[(b - 1) * a->rows + i] = (int32_t)(k - a->row_offsets[i]);
        }
    }
    return SP_OK;
}

sp_status sp_cpu_spmm_prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              void **state, sp_spmm_info *info)
{
    spmm_state *made;
    sp_status status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) return status;
    made->bins = 1;
    made->algorithm = options->algorithm ? options->algorithm : SP_SPMM_ROW_SPLIT;
    if (made->algorithm == SP_SPMM_BLOCK_PARTITION) SP_TRY(sort_by_degree(context, a, &made->order));
    if (made->algorithm == SP_SPMM_BIDIRECTIONAL) SP_TRY(bin_columns(context, a, width, options, made));
    SP_TRY(cut_chunks(context, a, made));
    info->algorithm = made->algorithm;
    info->partitions = made->algorithm == SP_SPMM_BIDIRECTIONAL ? made->bins : made->chunks;
    info->metadata_bytes = (made->chunks + 1) * (int64_t)sizeof *made->first +
                           (made->order ? a->rows : 0) * (int64_t)sizeof *made->order +
                           (made->bins - 1) * a->rows * (int64_t)sizeof *made->splits;
    *state = made;
done:
    if (status != SP_OK) sp_cpu_spmm_forget(context, made);
    return status;
}

/* Nothing here depends on values. */
sp_status sp_cpu_spmm_refresh(sp_context *context, const sp_csr *a, void *state)
{
    (void)context;
    (void)a;
    (void)state;
    return SP_OK;
}

void sp_cpu_spmm_forget(sp_context *context, void *state)
{
    spmm_state *s = state;
    sp_free(context, s->order);
    sp_free(context, s->first);
    sp_free(context, s->splits);
    sp_free(context, s);
}

/* ---- the product --------------------------------------------------------------------------------------- */

/* All columns of a chunk before the next chunk: its part of A stays in the cache. `columns` a tile at most. */
static bool run_chunks(sp_context *context, const spmm_state *state, const tile_job *job, tile_reduction reduction,
                       int64_t columns, int threads)
{
    const int64_t width = job->y->cols, tiles = (width + columns - 1) / columns;
    bool interrupted = false;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) reduction(|| : interrupted)
    for (int64_t c = 0; c < state->chunks; c++) {
        if (sp_interrupted(context)) interrupted = true;
        for (int64_t t = 0; t < tiles && !interrupted; t++) {
            const int64_t from = width * t / tiles, to = width * (t + 1) / tiles;
            tile_find(job->x->type, reduction, to - from)(job, state->first[c], state->first[c + 1], from, to - from);
        }
    }
    return interrupted;
}

/* All rows of a tile, bin by bin, before the next tile. */
static bool run_bins(sp_context *context, const spmm_state *state, const tile_job *whole, tile_reduction reduction,
                     int64_t columns, int64_t rows, int threads)
{
    const int64_t width = whole->y->cols, tiles = (width + columns - 1) / columns;
    bool interrupted = false;
    for (int64_t pass = 0; pass < tiles * state->bins && !interrupted; pass++) {
        const int64_t t = pass / state->bins, bin = pass % state->bins;
        const int64_t from = width * t / tiles, to = width * (t + 1) / tiles;
        tile_rows *const loop = tile_find(whole->x->type, reduction, to - from);
        tile_job job = *whole;
        job.from = bin > 0 ? state->splits + (bin - 1) * rows : NULL;
        job.to = bin < state->bins - 1 ? state->splits + bin * rows : NULL;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) reduction(|| : interrupted)
        for (int64_t c = 0; c < state->chunks; c++) {
            if (sp_interrupted(context)) interrupted = true;
            else loop(&job, state->first[c], state->first[c + 1], from, to - from);
        }
    }
    return interrupted;
}

sp_status sp_cpu_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state, double alpha,
                      const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    const spmm_state *plan = state;
    const bool extreme = options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
    const tile_reduction reduction = argument ? TILE_ARGUMENT : extreme ? TILE_EXTREME : TILE_SUM;
    const int threads = sp_threads_for(context, (a->nnz + a->rows) * (y->cols / 8 + 1));
    int64_t columns = tile_width(x->type, reduction);
    bool interrupted;
    tile_job job = {.offsets = a->row_offsets, .cols = a->col_indices, .weights = a->values, .order = plan->order,
                    .x = x, .y = y, .alpha = alpha, .beta = beta, .mean = options->reduce == SP_REDUCE_MEAN,
                    .least = options->reduce == SP_REDUCE_MIN, .argument = argument, .limit = a->nnz};
    if (y->cols == 0) return SP_OK;
    if (plan->algorithm == SP_SPMM_BIDIRECTIONAL) {
        if (plan->columns < columns) columns = plan->columns;
        if (plan->bins > 1) {
            const size_t size = x->type == SP_DENSE_F64 ? sizeof(double) : sizeof(float);
            sp_status status = sp_alloc(context, a->rows * columns, size, &job.partial);
            if (status != SP_OK) return status;
        }
        interrupted = run_bins(context, plan, &job, reduction, columns, a->rows, threads);
        sp_free(context, job.partial);
    } else {
        interrupted = run_chunks(context, plan, &job, reduction, columns, threads);
    }
    return interrupted ? sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted") : SP_OK;
}
