/* sparse-bench spmm --ablation: the gain of each idea behind the algorithms, one at a time.
 *
 *   FP    X cut by columns (Kim et al., "BiKD", 2026): products of 32 columns, one after another. It is the block
 *         partition without combined warps too (Xie et al., "Accel-GCN", 2023), which takes columns 32 at a time.
 *   GP    A binned by ranges of columns: Y is the sum of products with all columns of some rows of X, whose bytes are
 *         the size of a partition; a plan by blocks a range. Rows without entries in a range are added to as well.
 *   BiKD  both cuts: the library's bidirectional algorithm, the size of a partition given.
 *   BiKD, rows as they come
 *         both cuts, and row split for each range: neither blocks of equal work nor lanes by a row's entries, which
 *         the paper adds as NB and AS. The library's blocks are both at once: they cannot be measured apart.
 * Sizes of partitions are multiples of the second-level cache. What these are compared with, the block partition (all
 * columns, all of A) and row split (a warp a row), stand among our algorithms. Only plans count as
 * preparation: ranges are cut out of A on the host, which no algorithm of the library does. */
#include <string.h>

#include "base/value.h"
#include "sparse-bench/spmm/spmm_bench.h"

enum { TILE_COLUMNS = 32, MOST_RANGES = 256 };
/* Of the offsets of all ranges; beyond it a variant is left out. */
static const int64_t MOST_OFFSET_BYTES = (int64_t)2 << 30;

typedef struct variant {
    const char *name;
    unsigned parts; /* of the options that ask for it */
    sp_spmm_algorithm algorithm;
    int64_t columns; /* of X a product; 0: all */
    double caches;   /* bytes of a partition, in second-level caches; 0: no limit */
    bool ranges;     /* a product a range, else the plan has its own */
} variant;

static const variant variants[] = {
    {"FP", ABLATE_WARPS | ABLATE_PARTITIONS, SP_SPMM_BLOCK_PARTITION, TILE_COLUMNS, 0, false},
    {"GP", ABLATE_SIZES, SP_SPMM_BLOCK_PARTITION, 0, 0.25, true},
    {"GP", ABLATE_SIZES, SP_SPMM_BLOCK_PARTITION, 0, 0.5, true},
    {"GP", ABLATE_PARTITIONS | ABLATE_SIZES, SP_SPMM_BLOCK_PARTITION, 0, 1, true},
    {"GP", ABLATE_SIZES, SP_SPMM_BLOCK_PARTITION, 0, 2, true},
    {"GP", ABLATE_SIZES, SP_SPMM_BLOCK_PARTITION, 0, 4, true},
    {"GP", ABLATE_SIZES, SP_SPMM_BLOCK_PARTITION, 0, 8, true},
    {"BiKD", ABLATE_SIZES, SP_SPMM_BIDIRECTIONAL, 0, 0.25, false},
    {"BiKD", ABLATE_SIZES, SP_SPMM_BIDIRECTIONAL, 0, 0.5, false},
    {"BiKD", ABLATE_PARTITIONS | ABLATE_SIZES, SP_SPMM_BIDIRECTIONAL, 0, 1, false},
    {"BiKD", ABLATE_SIZES, SP_SPMM_BIDIRECTIONAL, 0, 2, false},
    {"BiKD", ABLATE_SIZES, SP_SPMM_BIDIRECTIONAL, 0, 4, false},
    {"BiKD", ABLATE_SIZES, SP_SPMM_BIDIRECTIONAL, 0, 8, false},
    {"BiKD, rows as they come", ABLATE_PARTITIONS, SP_SPMM_ROW_SPLIT, TILE_COLUMNS, 1, true},
};
_Static_assert(sizeof variants / sizeof *variants == SPMM_VARIANTS, "a result has a place for each variant");

/* ---- ranges of A's columns ------------------------------------------------------------------------------- */

typedef struct ablation_run {
    sp_context *context;
    const sp_csr *a; /* where the context computes */
    const sp_dense *x;
    sp_dense *y;
    int64_t columns, range_rows; /* of a product, of X */
    int ranges;
    sp_csr pieces[MOST_RANGES]; /* none for one range: it is A */
    sp_spmm_plan *plans[MOST_RANGES];
} ablation_run;

/* The entries of A from column `low` to `high` - 1, those of row i from cursor[i] on, which moves behind them. */
static sp_status cut_range(spmm_case *c, int64_t *cursor, int64_t low, int64_t high, sp_csr *piece)
{
    const sp_csr *a = &c->a;
    const int threads = sp_context_threads(c->host);
    int64_t *offsets = NULL;
    sp_status status;
    TRY(sp_alloc(c->host, a->rows + 1, sizeof *offsets, (void **)&offsets));
    offsets[0] = 0;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t end = cursor[i];
        while (end < a->row_offsets[i + 1] && a->col_indices[end] < high) end++;
        offsets[i + 1] = end - cursor[i];
    }
    for (int64_t i = 0; i < a->rows; i++) offsets[i + 1] += offsets[i];
    TRY(sp_csr_create(c->host, a->rows, high - low, offsets[a->rows], a->value_type, SP_HOST, piece));
    memcpy(piece->row_offsets, offsets, (size_t)(a->rows + 1) * sizeof *offsets);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t to = offsets[i]; to < offsets[i + 1]; to++, cursor[i]++) {
            const double weight = entry_value(a, cursor[i]);
            piece->col_indices[to] = (int32_t)(a->col_indices[cursor[i]] - low);
            if (a->value_type == SP_F32) ((float *)piece->values)[to] = (float)weight;
            else ((double *)piece->values)[to] = weight;
        }
done:
    sp_free(c->host, offsets);
    return status;
}

static sp_status cut_ranges(spmm_case *c, ablation_run *run)
{
    const sp_csr *a = &c->a;
    const sp_space space = sp_context_is_cuda(run->context) ? SP_DEVICE : SP_HOST;
    int64_t *cursor = NULL;
    sp_status status;
    TRY(sp_alloc(c->host, a->rows, sizeof *cursor, (void **)&cursor));
    memcpy(cursor, a->row_offsets, (size_t)a->rows * sizeof *cursor);
    for (int r = 0; r < run->ranges; r++) {
        const int64_t low = r * run->range_rows, left = a->cols - low;
        sp_csr piece = {0};
        TRY(cut_range(c, cursor, low, low + (left < run->range_rows ? left : run->range_rows), &piece));
        status = sp_csr_copy(run->context, &piece, space, &run->pieces[r]);
        sp_csr_free(c->host, &piece);
        if (status != SP_OK) sp_fail(c->host, status, "%s", sp_last_error(run->context));
        if (status != SP_OK || *c->interrupt) break;
    }
done:
    sp_free(c->host, cursor);
    if (status != SP_OK) return sp_fail(run->context, status, "%s", sp_last_error(c->host));
    return *c->interrupt ? sp_fail(run->context, SP_ERROR_INTERRUPTED, "interrupted") : SP_OK;
}

/* ---- a variant --------------------------------------------------------------------------------------------- */

static int64_t partition_bytes(const spmm_case *c, const variant *v)
{
    return v->caches > 0 ? (int64_t)(v->caches * (double)c->machine->cache_bytes) : 0;
}

/* Ranges whose rows of X, as wide as a product, fill a partition. */
static sp_status choose_ranges(const spmm_case *c, const variant *v, ablation_run *run)
{
    const int64_t size = run->x->type == SP_DENSE_F64 ? 8 : run->x->type == SP_DENSE_F32 ? 4 : 2;
    const int64_t width = run->x->cols, rows = run->x->rows;
    run->columns = v->columns && v->columns < width ? v->columns : width;
    run->ranges = 1;
    run->range_rows = rows;
    if (!v->ranges) return SP_OK;
    const int64_t fit = partition_bytes(c, v) / (run->columns * size), range_rows = fit > 0 ? fit : 1;
    const int64_t ranges = rows > range_rows ? (rows + range_rows - 1) / range_rows : 1;
    if (ranges > MOST_RANGES || ranges * (c->a.rows + 1) > MOST_OFFSET_BYTES / 8)
        return sp_fail(run->context, SP_ERROR_UNSUPPORTED, "%lld ranges of rows of X are too many",
                       (long long)ranges);
    run->ranges = (int)ranges;
    if (ranges > 1) run->range_rows = range_rows;
    return SP_OK;
}

static sp_status prepare(spmm_case *c, const variant *v, ablation_run *run, candidate *figures)
{
    const sp_spmm_options options = {.algorithm = v->algorithm,
                                     .partition_bytes = v->ranges ? 0 : (size_t)partition_bytes(c, v)};
    sp_status status = choose_ranges(c, v, run);
    if (status == SP_OK && run->ranges > 1) status = cut_ranges(c, run);
    device_finish();
    const double began = wall_seconds();
    for (int r = 0; r < run->ranges && status == SP_OK; r++) {
        status = sp_spmm_plan_create(run->context, run->ranges > 1 ? &run->pieces[r] : run->a, run->columns, &options,
                                     &run->plans[r]);
        if (status != SP_OK) break;
        const sp_spmm_info *info = sp_spmm_plan_info(run->plans[r]);
        figures->info.algorithm = info->algorithm;
        figures->info.metadata_bytes += info->metadata_bytes;
        figures->info.partitions = v->ranges ? run->ranges : info->partitions;
    }
    device_finish();
    figures->once_seconds = wall_seconds() - began;
    return status;
}

static sp_dense columns_of(const sp_dense *m, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const size_t size = m->type == SP_DENSE_F64 ? 8 : m->type == SP_DENSE_F32 ? 4 : 2;
    sp_dense part = *m;
    part.rows = rows;
    part.cols = cols;
    part.values = (char *)m->values + (size_t)(row * m->stride + col) * size;
    return part;
}

/* Tile by tile of columns, and in each range by range, as the library does. */
static sp_status ablation_step(void *user)
{
    const ablation_run *run = user;
    const int64_t width = run->x->cols;
    sp_status status = SP_OK;
    for (int64_t col = 0; col < width; col += run->columns)
        for (int r = 0; r < run->ranges && status == SP_OK; r++) {
            const int64_t cols = width - col < run->columns ? width - col : run->columns;
            const int64_t row = r * run->range_rows, left = run->x->rows - row;
            const sp_dense x = columns_of(run->x, row, left < run->range_rows ? left : run->range_rows, col, cols);
            sp_dense y = columns_of(run->y, 0, run->y->rows, col, cols);
            status = sp_spmm_execute(run->plans[r], 1, &x, r > 0, &y);
        }
    return status;
}

static sp_status measure_variant(spmm_case *c, const variant *v, ablation_run *run)
{
    candidate *figures = &c->result->variants[c->result->variant_count++];
    *figures = (candidate){.error = -1, .caches = v->caches};
    snprintf(figures->name, sizeof figures->name, "%s", v->name);
    sp_status status = prepare(c, v, run, figures);
    if (status == SP_OK) status = spmm_time(&c->options->common, ablation_step, run, &figures->time);
    if (status == SP_OK && !c->options->common.no_check) {
        status = spmm_compare(c, run->y->values, run->y->type, SP_DENSE_F32, &figures->error);
        if (status != SP_OK) sp_fail(run->context, status, "%s", sp_last_error(c->host));
    }
    for (int r = 0; r < MOST_RANGES; r++) {
        sp_spmm_plan_free(run->plans[r]);
        sp_csr_free(run->context, &run->pieces[r]);
        run->plans[r] = NULL;
    }
    return candidate_failed(run->context, status, figures);
}

sp_status spmm_ablation_measure(spmm_case *c, sp_context *context, const sp_csr *a, const sp_dense *x, sp_dense *y)
{
    ablation_run *run;
    sp_status status = sp_calloc(context, 1, sizeof *run, (void **)&run);
    if (status != SP_OK) return status;
    *run = (ablation_run){.context = context, .a = a, .x = x, .y = y};
    for (int i = 0; i < SPMM_VARIANTS && status == SP_OK; i++)
        if (variants[i].parts & c->options->ablation) status = measure_variant(c, &variants[i], run);
    sp_free(context, run);
    return status;
}

/* ---- metadata ---------------------------------------------------------------------------------------------- */

/* 16 bytes for each warp, of up to 32 entries of a row, as GNNAdvisor's groups of neighbours have. */
enum { WARP_ENTRIES = 32, WARP_BYTES = 16 };

int64_t spmm_warp_metadata(const sp_csr *a)
{
    int64_t warps = 0;
    for (int64_t i = 0; i < a->rows; i++)
        warps += (a->row_offsets[i + 1] - a->row_offsets[i] + WARP_ENTRIES - 1) / WARP_ENTRIES;
    return warps * WARP_BYTES;
}
