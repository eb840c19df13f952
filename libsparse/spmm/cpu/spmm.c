/* Y = alpha · reduce(A · X) + beta · Y on the CPU: row by row, the output in registers (tile.h).
 *
 * The families of sparse.h, as far as they matter to caches:
 *   row split        rows as they come, cut into chunks of about equal work that the threads take as they are free;
 *   block partition  the same, the rows of each chunk sorted by degree (a counting sort): the loop over a row's
 *                    entries has the same length row after row, and what a chunk touches stays together;
 *   bidirectional    X cut into tiles of columns, A's columns in ranges, so that the part of X that a pass
 *                    gathers from stays in the cache; sums of a tile go on from one range to the next in Y.
 * The order of additions depends on nothing but A and the plan, so that the bits do not change from run to run.
 */
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

#include "base/ablation.h"
#include "base/system.h"
#include "core/backend_cpu.h"
#include "spmm/cpu/tile.h"
#include "spmm/plan.h"

/* A chunk's entries, and the entries for which the work on a row as such stands. A chunk of 64 columns is some 500 KB
 * of gathers: tens of microseconds against the tenth of one that taking it costs. */
enum { CHUNK_WORK = 2048, ROW_WORK = 4 };

/* Of a Y that no cache holds; by way of a copy it pays later. */
static const double STREAM_BYTES = 32 << 20, STAGE_BYTES = 64 << 20;

/* Of the rows of Y that are made before the next ones. Where a row takes several tiles, their part of X is then in the
 * first-level cache or on its way there by the processor's own prefetching, which follows rows of X. One thread of a
 * Xeon at 602 columns, five-point stencil 166 -> 98 ms, power law (with the rule for ranges) 350 -> 193. */
enum { GROUP_BYTES = 8192 };

/* Pieces of rows shorter than these are not worth a range: their sums would come and go more often than rows of X are
 * found in the cache. Where X takes several tiles, which are copied first, pieces have to be longer. Ranges beyond the
 * last number only help the offsets to grow. */
enum { RANGE_ENTRIES = 8, TILED_ENTRIES = 20, MOST_RANGES = 64 };

/* Rows that have as many in the mean are summed in two chains: two sums take longer to join than few additions wait. */
enum { LONG_ENTRIES = 12 };

/* Rows from this degree on are not sorted: a wrong guess of where a row ends is little beside its entries. */
enum { MOST_SORTED = 32 };

typedef struct spmm_state {
    sp_spmm_algorithm algorithm;
    int64_t core_cache;       /* bytes */
    int64_t *first, chunks;   /* chunk c is rows first[c] to first[c + 1] - 1 */
    int32_t *order;           /* block partition: the rows, chunk by chunk */
    /* Range r is a CSR with entries offsets[r * rows + i] to offsets[r * rows + i + 1] - 1 in row i; all lie in the
     * same arrays, range by range. A single range is A itself, and these are NULL. */
    int64_t ranges, *offsets;
    int32_t *cols;
    void *values;
} spmm_state;

/* ---- preparation --------------------------------------------------------------------------------------- */

static sp_status cut_chunks(sp_context *context, const sp_csr *a, spmm_state *state)
{
    /* A chunk but the last holds CHUNK_WORK or more. */
    const int64_t most = (a->nnz + ROW_WORK * a->rows) / CHUNK_WORK + 2;
    sp_status status = sp_alloc(context, most, sizeof *state->first, (void **)&state->first);
    if (status != SP_OK) return status;
    state->first[0] = 0;
    for (int64_t i = 0, work = 0; i < a->rows; i++) {
        work += a->row_offsets[i + 1] - a->row_offsets[i] + ROW_WORK;
        if (work < CHUNK_WORK && i + 1 < a->rows) continue;
        state->first[++state->chunks] = i + 1;
        work = 0;
    }
    return SP_OK;
}

/* A row's degree, or MOST_SORTED. */
static int64_t class_of(const sp_csr *a, int64_t i)
{
    const int64_t degree = a->row_offsets[i + 1] - a->row_offsets[i];
    return degree < MOST_SORTED ? degree : MOST_SORTED;
}

/* The rows of each chunk by ascending degree, those of equal degree as they come. */
static sp_status sort_chunks(sp_context *context, const sp_csr *a, spmm_state *state)
{
    const sp_status status = sp_alloc(context, a->rows, sizeof *state->order, (void **)&state->order);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, a->rows))
    for (int64_t c = 0; c < state->chunks; c++) {
        int64_t starts[MOST_SORTED + 2] = {0};
        for (int64_t i = state->first[c]; i < state->first[c + 1]; i++) starts[class_of(a, i) + 1]++;
        starts[0] = state->first[c];
        for (int d = 0; d < MOST_SORTED; d++) starts[d + 1] += starts[d];
        for (int64_t i = state->first[c]; i < state->first[c + 1]; i++)
            state->order[starts[class_of(a, i)]++] = (int32_t)i;
    }
    return SP_OK;
}

/* Bytes of X that a pass may gather from: eight times a core's own cache, 4 MB if that is unknown. (What virtual
 * machines say of the shared cache is often wrong.) Half of it takes as long where rows have 50
 * and more entries and up to half more where they have 20, as pieces of rows become short; twice as much gains
 * nothing, and leaves single ranges of data that the shared cache may not hold. */
static int64_t table_bytes(const sp_spmm_options *options)
{
    if (options->partition_bytes == 0) return 8 * system_core_cache();
    return options->partition_bytes < INT64_MAX ? (int64_t)options->partition_bytes : INT64_MAX;
}

static sp_dense_type sum_type(const sp_csr *a)
{
    return a->values && a->value_type == SP_F64 ? SP_DENSE_F64 : SP_DENSE_F32;
}

/* Bytes of all rows of X in a tile of columns: as few tiles as there must be. */
static int64_t tile_bytes(const sp_csr *a, int64_t width)
{
    const sp_dense_type type = sum_type(a);
    const int64_t most = sp_tile_range_width(type, TILE_SUM), tiles = (width + most - 1) / most;
    return a->cols * (tiles ? (width + tiles - 1) / tiles : 1) * (int64_t)sp_dense_size(type);
}

/* Ranges of X's rows that fill the cache with a tile's columns. */
static int64_t choose_ranges(const sp_csr *a, int64_t width, const sp_spmm_options *options)
{
    const int64_t bytes = table_bytes(options), tile = tile_bytes(a, width);
    const int64_t wanted = tile / bytes + (tile % bytes > 0);
    const bool tiled = width > sp_tile_range_width(sum_type(a), TILE_SUM);
    const int64_t useful = a->rows ? a->nnz / ((tiled ? TILED_ENTRIES : RANGE_ENTRIES) * a->rows) : 0;
    const int64_t ranges = wanted < useful || options->partition_bytes ? wanted : useful;
    return ranges < 1 ? 1 : ranges < MOST_RANGES ? ranges : MOST_RANGES;
}

/* The entries of row i of A that lie in a range are *from to the result - 1. */
static int64_t range_end(const sp_csr *a, int64_t i, int64_t from, int64_t last_column)
{
    while (from < a->row_offsets[i + 1] && a->col_indices[from] < last_column) from++;
    return from;
}

static sp_status copy_values(sp_context *context, const sp_csr *a, spmm_state *state)
{
    const size_t size = sp_value_size(a->value_type);
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < a->rows; i++) {
        if (sp_stops(&watch)) continue;
        const char *from = (const char *)a->values + (size_t)a->row_offsets[i] * size;
        for (int64_t r = 0; r < state->ranges; r++) {
            const int64_t *at = state->offsets + r * a->rows + i;
            const size_t bytes = (size_t)(at[1] - at[0]) * size;
            memcpy((char *)state->values + (size_t)at[0] * size, from, bytes);
            from += bytes;
        }
    }
    return sp_watched(&watch);
}

static sp_status cut_columns(sp_context *context, const sp_csr *a, spmm_state *state)
{
    const int64_t ranges = state->ranges, rows = a->rows, each = (a->cols + ranges - 1) / ranges;
    sp_watch watch = {context, false};
    sp_status status;
    TRY(sp_alloc(context, ranges * rows + 1, sizeof *state->offsets, (void **)&state->offsets));
    TRY(sp_alloc(context, a->nnz, sizeof *state->cols, (void **)&state->cols));
    if (a->values) TRY(sp_alloc(context, a->nnz, sp_value_size(a->value_type), &state->values));
    int64_t *offsets = state->offsets;
    offsets[0] = 0;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < rows; i++) {
        if (sp_stops(&watch)) continue;
        int64_t k = a->row_offsets[i];
        for (int64_t r = 0; r < ranges; r++) {
            const int64_t end = range_end(a, i, k, (r + 1) * each);
            offsets[r * rows + i + 1] = end - k;
            k = end;
        }
    }
    TRY(sp_watched(&watch));
    for (int64_t at = 0; at < ranges * rows; at++) offsets[at + 1] += offsets[at];
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < rows; i++) {
        if (sp_stops(&watch)) continue;
        const int32_t *from = a->col_indices + a->row_offsets[i];
        for (int64_t r = 0; r < ranges; r++) {
            const int64_t *at = offsets + r * rows + i;
            memcpy(state->cols + at[0], from, (size_t)(at[1] - at[0]) * sizeof *from);
            from += at[1] - at[0];
        }
    }
    TRY(sp_watched(&watch));
    if (a->values) TRY(copy_values(context, a, state));
done:
    return status;
}

/* The share of entries, in sixteen windows, whose row of X no entry of the window gathers before them. Uniform graphs
 * have 0.9, communities in random order 0.8, R-MAT, whose hubs stay in the caches, 0.5 to 0.6, communities in order,
 * webs and meshes 0.5 and less. */
static double far_share(const sp_csr *a)
{
    enum { WINDOW = 16384, SAMPLES = 16, BITS = 18 }; /* with these bits 1 in 30 columns meets another's */
    const int64_t entries = a->nnz < WINDOW ? a->nnz : WINDOW;
    int64_t fresh = 0;
    for (int s = 0; s < SAMPLES; s++) {
        const int32_t *cols = a->col_indices + (a->nnz - entries) / SAMPLES * s;
        uint64_t seen[1 << (BITS - 6)] = {0};
        for (int64_t k = 0; k < entries; k++) {
            const uint32_t hash = (uint32_t)cols[k] * 2654435761u >> (32 - BITS);
            fresh += !(seen[hash / 64] >> hash % 64 & 1);
            seen[hash / 64] |= UINT64_C(1) << hash % 64;
        }
    }
    return entries ? (double)fresh / (double)(SAMPLES * entries) : 0;
}

/* Bidirectional where gathers come from far: X is larger than what one process has of the shared cache, 20 times a
 * core's own one (10 MB), 12 times for rows as long as are cut at little cost; rows have entries enough for two or more
 * ranges of X, of a size that helps; and few gathers meet those shortly before. Row split takes, in times of
 * bidirectional, with 200 uniform entries a row 1.25 at 6 MB of X, 1.8 at 13 and 1.6 at 26; with 48 entries 1 at 6 MB
 * and 2.4 at 13; with 16 entries 1.5 at 13 and 26 MB, 1 at 100; in R-MAT graphs 0.9 to 1.2, in a web graph of local
 * links 0.6 to 1. Sorting rows by degree loses more, by the order in which A and Y are touched, than equal lengths
 * bring, even within chunks: rows of 2 entries take 1.1 to 1.5 times as long as by row split. */
static sp_spmm_algorithm choose_algorithm(const sp_csr *a, int64_t width, const sp_spmm_options *options)
{
    const double cache = (double)system_core_cache(), bytes = (double)a->cols * (double)width * sizeof(float);
    const int64_t ranges = choose_ranges(a, width, options);
    const bool large = bytes >= (a->nnz / 96 >= a->rows ? 12 : 20) * cache;
    const bool helps = ranges > 1 && (double)(tile_bytes(a, width) / ranges) <= 32 * cache;
    return large && helps && far_share(a) >= 0.7 ? SP_SPMM_BIDIRECTIONAL : SP_SPMM_ROW_SPLIT;
}

sp_status sp_cpu_spmm_prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              void **state, sp_spmm_info *info)
{
    spmm_state *made;
    sp_status status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) return status;
    made->ranges = 1;
    made->core_cache = system_core_cache();
    made->algorithm = options->algorithm ? options->algorithm : choose_algorithm(a, width, options);
    if (made->algorithm == SP_SPMM_BIDIRECTIONAL) made->ranges = choose_ranges(a, width, options);
    if (made->ranges > 1) TRY(cut_columns(context, a, made));
    TRY(cut_chunks(context, a, made));
    if (made->algorithm == SP_SPMM_BLOCK_PARTITION) TRY(sort_chunks(context, a, made));
    info->algorithm = made->algorithm;
    info->partitions = made->algorithm == SP_SPMM_BIDIRECTIONAL ? made->ranges : made->chunks;
    info->metadata_bytes = (made->chunks + 1) * (int64_t)sizeof *made->first +
                           (made->order ? a->rows : 0) * (int64_t)sizeof *made->order;
    if (made->ranges > 1)
        info->metadata_bytes += (made->ranges * a->rows + 1) * (int64_t)sizeof *made->offsets +
                                a->nnz * (int64_t)sizeof *made->cols +
                                (a->values ? a->nnz * (int64_t)sp_value_size(a->value_type) : 0);
    *state = made;
done:
    if (status != SP_OK) sp_cpu_spmm_forget(context, made);
    return status;
}

sp_status sp_cpu_spmm_refresh(sp_context *context, const sp_csr *a, void *state)
{
    spmm_state *s = state;
    if (s->ranges == 1) return SP_OK;
    if (!s->values) { /* A was a pattern so far */
        const sp_status status = sp_alloc(context, a->nnz, sp_value_size(a->value_type), &s->values);
        if (status != SP_OK) return status;
    }
    return copy_values(context, a, s);
}

void sp_cpu_spmm_forget(sp_context *context, void *state)
{
    spmm_state *s = state;
    FREE_ALL(context, s->order, s->first, s->offsets, s->cols, s->values, s);
}

/* ---- the product --------------------------------------------------------------------------------------- */

/* Once a thread and not once a tile: a fence waits 0.1 to 0.3 us for the stores under way. */
static void settle(const tile_job *job)
{
    if (job->streams || job->staged) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* All columns of some rows, tile by tile. */
static void run_rows(const tile_job *job, tile_reduction reduction, int64_t columns, int64_t first, int64_t end)
{
    const int64_t width = job->y->cols, tiles = (width + columns - 1) / columns;
    for (int64_t t = 0; t < tiles; t++) {
        int64_t from = width * t / tiles, to = width * (t + 1) / tiles;
        if (reduction == TILE_HEADS) { /* whole vectors */
            from -= from % job->head_lanes;
            to -= to % job->head_lanes;
        }
        (reduction == TILE_HEADS ? sp_tile_find_heads(job->x->type, job->head_lanes, to - from)
                                 : sp_tile_find(job->x->type, reduction, to - from))(job, first, end, from, to - from);
    }
}

/* Copies whole lines past the caches, the rest through them; both places are the same number of bytes into a line. */
static void copy_past(char *to, const char *from, size_t bytes)
{
    const size_t before = (LINE_BYTES - (uintptr_t)to % LINE_BYTES) % LINE_BYTES;
    size_t at = before < bytes ? before : bytes;
    memcpy(to, from, at);
#if defined __x86_64__
    for (; at + LINE_BYTES <= bytes; at += LINE_BYTES)
        for (size_t i = at; i < at + LINE_BYTES; i += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
#endif
    memcpy(to + at, from + at, bytes - at);
}

/* The same for a group of rows that do not begin at lines: they are made in the first-level cache and copied. */
static void run_staged(const tile_job *whole, tile_reduction reduction, int64_t columns, int64_t first, int64_t end)
{
    _Alignas(LINE_BYTES) char stage[GROUP_BYTES + LINE_BYTES];
    const size_t row = (size_t)whole->y->cols * sp_dense_size(whole->y->type);
    char *const to = (char *)whole->y->values + (size_t)first * row, *const from = stage + (uintptr_t)to % LINE_BYTES;
    sp_dense y = *whole->y;
    tile_job job = *whole;
    y.values = from;
    job.y = &y;
    job.y_row = first;
    job.streams = false;
    run_rows(&job, reduction, columns, first, end);
    copy_past(to, from, (size_t)(end - first) * row);
}

/* Groups of rows of narrow Y are chunks, whose part of A stays in the cache. */
static sp_status run_chunks(sp_context *context, const spmm_state *state, const tile_job *job,
                            tile_reduction reduction, int64_t columns, int threads)
{
    const int64_t row = job->y->cols * (int64_t)sp_dense_size(job->y->type);
    const int64_t fitting = row > GROUP_BYTES ? 1 : GROUP_BYTES / row;
    const int64_t group = job->staged || job->y->cols > columns ? fitting : INT32_MAX;
    sp_watch watch = {context, false};
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t c = 0; c < state->chunks; c++) {
            const int64_t end = state->first[c + 1];
            for (int64_t r = state->first[c]; r < end && !sp_stops(&watch); r += group)
                (job->staged ? run_staged : run_rows)(job, reduction, columns, r, end - r < group ? end : r + group);
        }
        settle(job);
    }
    return sp_watched(&watch);
}

/* The columns of a tile side by side: in X itself they would fill a few sets of the caches, and lie on more pages
 * than the processor has translations for. */
static void pack(const sp_dense *x, int64_t from, int threads, sp_dense *packed)
{
    const size_t size = sp_dense_size(x->type), bytes = (size_t)packed->cols * size;
    packed->stride = packed->cols;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t j = 0; j < x->rows; j++)
        memcpy((char *)packed->values + (size_t)j * bytes,
               (const char *)x->values + (size_t)(j * x->stride + from) * size, bytes);
}

/* All rows of a tile, range by range, before the next tile. What is reduced so far waits in Y, if `partial` is NULL. */
static sp_status run_ranges(sp_context *context, const spmm_state *state, const tile_job *whole,
                          tile_reduction reduction, int64_t columns, sp_dense *packed, int threads)
{
    const sp_dense *y = whole->y;
    const int64_t width = y->cols, tiles = (width + columns - 1) / columns;
    sp_watch watch = {context, false};
    for (int64_t pass = 0; pass < tiles * state->ranges && !sp_stops(&watch); pass++) {
        const int64_t t = pass / state->ranges, range = pass % state->ranges;
        const int64_t from = width * t / tiles, to = width * (t + 1) / tiles;
        tile_rows *const loop = sp_tile_find(whole->x->type, reduction, to - from);
        tile_job job = *whole;
        job.offsets = state->offsets + range * y->rows;
        job.cols = state->cols;
        job.weights = state->values;
        job.resume = range > 0;
        job.keep = range < state->ranges - 1;
        if (!job.partial) {
            job.partial = (char *)y->values + (size_t)from * sp_dense_size(y->type);
            job.partial_stride = y->stride;
        }
        if (packed->values) {
            packed->cols = to - from;
            if (range == 0) pack(whole->x, from, threads, packed);
            job.x = packed;
            job.x_column = from;
        }
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t c = 0; c < state->chunks; c++) {
                if (!sp_stops(&watch)) loop(&job, state->first[c], state->first[c + 1], from, to - from);
            }
            settle(&job);
        }
    }
    return sp_watched(&watch);
}

static sp_status multiply_ranges(sp_context *context, const spmm_state *plan, tile_job *job, tile_reduction reduction,
                               int threads)
{
    const sp_dense *x = job->x, *y = job->y;
    const size_t size = x->type == SP_DENSE_F64 ? sizeof(double) : sizeof(float);
    const int64_t most = sp_tile_range_width(x->type, reduction), columns = x->cols < most ? x->cols : most;
    sp_dense packed = {0};
    sp_status status = SP_OK;
    if (job->beta != 0 || sp_dense_size(y->type) != size)
        TRY(sp_alloc(context, y->rows * columns, size, &job->partial));
    job->partial_stride = columns;
    if (columns < x->cols) TRY(sp_dense_create(context, x->rows, columns, x->type, SP_HOST, &packed));
    status = run_ranges(context, plan, job, reduction, columns, &packed, threads);
done:
    sp_free(context, job->partial);
    sp_dense_free(context, &packed);
    return status;
}

/* Whether Y goes past the caches: it is not read, and nothing of it will be there when the next operation asks. From
 * registers, if rows and tiles begin at lines; else through a stage, if rows follow each other. */
static void choose_stores(tile_job *job, int64_t columns)
{
    const sp_dense *y = job->y;
    const int64_t size = (int64_t)sp_dense_size(y->type);
    const bool same = (job->x->type == SP_DENSE_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float)) == size;
    const double bytes = (double)y->rows * (double)y->cols * (double)size;
    if (job->beta != 0 || bytes < STREAM_BYTES) return;
    job->streams = same && (uintptr_t)y->values % LINE_BYTES == 0 && y->stride * size % LINE_BYTES == 0;
#if defined __x86_64__
    const int64_t tiles = (y->cols + columns - 1) / columns;
    const bool lines = job->streams && y->cols % tiles == 0 && y->cols / tiles * size % LINE_BYTES == 0;
    job->staged = !lines && y->stride == y->cols && !job->order && bytes >= STAGE_BYTES &&
                  y->cols * size <= GROUP_BYTES && !left_out("spmm-stage");
#else
    (void)columns, (void)STAGE_BYTES;
#endif
}

/* A job for all entries of A. */
static tile_job whole_job(const sp_csr *a, const sp_spmm_options *options, const spmm_state *plan, double alpha,
                          const sp_dense *x, double beta, sp_dense *y)
{
    return (tile_job){.offsets = a->row_offsets,
                      .whole_offsets = a->row_offsets,
                      .cols = a->col_indices,
                      .weights = a->values,
                      .order = plan->order,
                      .x = x,
                      .y = y,
                      .alpha = alpha,
                      .beta = beta,
                      .mean = options->reduce == SP_REDUCE_MEAN,
                      .least = options->reduce == SP_REDUCE_MIN,
                      .two = a->nnz / LONG_ENTRIES >= a->rows,
                      .limit = a->nnz};
}

sp_status sp_cpu_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state, double alpha,
                      const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    const spmm_state *plan = state;
    const tile_reduction reduction = argument ? TILE_ARGUMENT : spmm_is_extreme(options) ? TILE_EXTREME : TILE_SUM;
    const int threads = sp_threads_for(context, (a->nnz + a->rows) * (y->cols / 8 + 1));
    tile_job job = whole_job(a, options, plan, alpha, x, beta, y);
    job.argument = argument;
    const int64_t columns = sp_tile_width(x->type, reduction);
    if (y->cols == 0) return SP_OK;
    const int64_t row_bytes = (x->cols < columns ? x->cols : columns) * (int64_t)sp_dense_size(x->type);
    job.near = x->rows <= plan->core_cache / row_bytes;
    choose_stores(&job, columns);
    if (plan->ranges == 1 || argument) return run_chunks(context, plan, &job, reduction, columns, threads);
    return multiply_ranges(context, plan, &job, reduction, threads);
}

/* to[k * heads + h] = values[h * nnz + k] */
static void turn_heads(sp_context *context, const void *values, int64_t nnz, int64_t heads, size_t size, void *to)
{
    const bool narrow = size == sizeof(uint32_t);
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, nnz * heads))
    for (int64_t k = 0; k < nnz; k++)
        for (int64_t h = 0; h < heads; h++)
            if (narrow) ((uint32_t *)to)[k * heads + h] = ((const uint32_t *)values)[h * nnz + k];
            else ((uint64_t *)to)[k * heads + h] = ((const uint64_t *)values)[h * nnz + k];
}

/* Beside a product a head: 8 heads of 8 columns 0.35 to 0.4 of the time, of 16 columns 0.55, 4 of 32 columns 0.9 to 1.
 */
sp_status sp_cpu_spmm_heads(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                            const int64_t *places, int64_t head_width, double alpha, const sp_dense *x, double beta,
                            sp_dense *y, bool *done)
{
    const spmm_state *plan = state;
    const int64_t lanes = sp_tile_lanes(x->type, head_width), heads = y->cols / head_width;
    const int threads = sp_threads_for(context, (a->nnz + a->rows) * (y->cols / 8 + 1));
    const size_t size = sp_value_size(a->value_type);
    void *turned = NULL;
    sp_status status = SP_OK;
    /* Turning weights and finding them again costs what wide heads would gain. */
    const bool pays = !places || (size_t)head_width * sp_dense_size(x->type) <= LINE_BYTES;
    *done = pays && lanes > 0 && plan->ranges == 1 && !spmm_is_extreme(options);
    if (!*done) return SP_OK;
    if (places) { /* then an entry's weights lie anywhere, and are one line of the caches in place of one a head */
        TRY(sp_alloc(context, a->nnz * heads, size, &turned));
        turn_heads(context, a->values, a->nnz, heads, size, turned);
    }
    tile_job job = whole_job(a, options, plan, alpha, x, beta, y);
    if (turned) job.weights = turned;
    job.head_width = head_width;
    job.head_lanes = lanes;
    job.head_step = turned ? 1 : a->nnz;
    job.entry_step = turned ? heads : 1;
    job.places = places;
    choose_stores(&job, lanes * TILE_VECTORS);
    status = run_chunks(context, plan, &job, TILE_HEADS, lanes * TILE_VECTORS, threads);
done:
    sp_free(context, turned);
    return status;
}
