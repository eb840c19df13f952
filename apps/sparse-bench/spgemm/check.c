/* Whether two products are the same: pattern exactly, values to 1e-12 (fp64) or 1e-5 (fp32) of the sum of the
 * magnitudes of the products that make them. Of a huge result all row lengths are compared, and the entries of runs
 * of rows spread over it. The reference is a plain dense accumulator with sums in f64, written for this purpose. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/value.h"
#include "sparse-bench/bench.h"

/* Entries, and products, that are compared at most: some seconds on one thread. */
static const int64_t MOST_ENTRIES = 100000000, MOST_PRODUCTS = 1000000000;

static double tolerance(sp_value_type type) { return type == SP_F32 ? 1e-5 : 1e-12; }

raw_matrix raw_of(const sp_csr *m)
{
    return (raw_matrix){m->rows, m->nnz, m->row_offsets, m->col_indices, m->values, 8, 4, false, m->value_type};
}

/* ---- which rows ---------------------------------------------------------------------------------------- */

static int64_t row_products(const sp_csr *a, const sp_csr *b, int64_t row)
{
    int64_t products = 0;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++)
        products += b->row_offsets[a->col_indices[k] + 1] - b->row_offsets[a->col_indices[k]];
    return products;
}

sp_status choose_rows(sp_context *context, const sp_csr *c, const sp_csr *a, const sp_csr *b, row_ranges *ranges)
{
    int64_t products = 0;
    (void)context;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : products) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < a->rows; i++) products += row_products(a, b, i);
    const double share = fmin((double)MOST_ENTRIES / (double)(c->nnz + 1),
                              (double)MOST_PRODUCTS / (double)(products + 1));
    *ranges = (row_ranges){.count = 1, .end = {a->rows}, .all = true};
    if (share >= 1 || a->rows < MAX_RANGES) return SP_OK;
    ranges->all = false;
    ranges->count = MAX_RANGES;
    for (int i = 0; i < MAX_RANGES; i++) {
        const double step = (double)a->rows / MAX_RANGES;
        ranges->begin[i] = (int64_t)(step * i);
        ranges->end[i] = ranges->begin[i] + 1 + (int64_t)(step * share);
        if (ranges->end[i] > (int64_t)(step * (i + 1))) ranges->end[i] = (int64_t)(step * (i + 1));
    }
    return SP_OK;
}

/* ---- taking rows out of a result ----------------------------------------------------------------------- */

typedef struct pair {
    int32_t col;
    double value;
} pair;

static int by_column(const void *left, const void *right)
{
    const pair *a = left, *b = right;
    return (a->col > b->col) - (a->col < b->col);
}

/* Orders a row whose columns came in any order. */
static sp_status order_row(sp_context *context, int32_t *cols, double *values, int64_t count)
{
    pair *pairs;
    sp_status status = sp_alloc(context, count, sizeof *pairs, (void **)&pairs);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < count; k++) pairs[k] = (pair){cols[k], values[k]};
    qsort(pairs, (size_t)count, sizeof *pairs, by_column);
    for (int64_t k = 0; k < count; k++) {
        cols[k] = pairs[k].col;
        values[k] = pairs[k].value;
    }
    sp_free(context, pairs);
    return SP_OK;
}

static sp_status order_rows(sp_context *context, const row_ranges *ranges, extract *e)
{
    sp_status status = SP_OK;
    e->sorted = true;
    for (int r = 0; r < ranges->count; r++)
        for (int64_t row = ranges->begin[r]; row < ranges->end[r] && status == SP_OK; row++) {
            const int64_t first = e->starts[r] + e->offsets[row] - e->offsets[ranges->begin[r]];
            const int64_t count = e->offsets[row + 1] - e->offsets[row];
            bool ascending = true;
            for (int64_t k = first + 1; k < first + count; k++) ascending &= e->cols[k - 1] < e->cols[k];
            if (ascending) continue;
            e->sorted = false;
            status = order_row(context, e->cols + first, e->values + first, count);
        }
    return status;
}

/* Indices of either width; `scratch` holds `count` of the wider one. */
static sp_status fetch_cols(sp_context *context, const raw_matrix *m, int64_t at, int64_t count, void *scratch,
                            int32_t *cols)
{
    const char *from = (const char *)m->cols + at * m->col_width;
    if (m->col_width == 4) return device_copy(context, cols, from, (size_t)count * 4);
    sp_status status = device_copy(context, scratch, from, (size_t)count * 8);
    for (int64_t k = 0; k < count && status == SP_OK; k++) cols[k] = (int32_t)((const int64_t *)scratch)[k];
    return status;
}

static sp_status fetch_values(sp_context *context, const raw_matrix *m, int64_t at, int64_t count, void *scratch,
                              double *values)
{
    const int64_t width = m->type == SP_F32 ? 4 : 8;
    sp_status status = SP_OK;
    if (!m->values) {
        for (int64_t k = 0; k < count; k++) values[k] = 1;
        return status;
    }
    const char *from = (const char *)m->values + (m->one_value ? 0 : at * width);
    status = device_copy(context, scratch, from, (size_t)((m->one_value && count > 0 ? 1 : count) * width));
    for (int64_t k = 0; k < count && status == SP_OK; k++) {
        const int64_t i = m->one_value ? 0 : k;
        values[k] = width == 4 ? (double)((const float *)scratch)[i] : ((const double *)scratch)[i];
    }
    return status;
}

static sp_status fetch_offsets(sp_context *context, const raw_matrix *m, int64_t *offsets)
{
    const size_t bytes = (size_t)(m->rows + 1) * (size_t)m->offset_width;
    if (m->offset_width == 8) return device_copy(context, offsets, m->offsets, bytes);
    int32_t *narrow;
    sp_status status = sp_alloc(context, m->rows + 1, sizeof *narrow, (void **)&narrow);
    if (status == SP_OK) status = device_copy(context, narrow, m->offsets, bytes);
    for (int64_t i = 0; i <= m->rows && status == SP_OK; i++) offsets[i] = narrow[i];
    sp_free(context, narrow);
    return status;
}

sp_status extract_rows(sp_context *context, const raw_matrix *m, const row_ranges *ranges, extract *out)
{
    extract e = {.rows = m->rows, .nnz = m->nnz};
    void *scratch = NULL;
    int64_t longest = 0;
    sp_status status;
    device_finish();
    TRY(sp_alloc(context, m->rows + 1, sizeof *e.offsets, (void **)&e.offsets));
    TRY(fetch_offsets(context, m, e.offsets));
    for (int r = 0; r < ranges->count; r++) {
        const int64_t count = e.offsets[ranges->end[r]] - e.offsets[ranges->begin[r]];
        if (count < 0 || e.offsets[ranges->end[r]] > m->nnz)
            TRY(sp_fail(context, SP_ERROR_MATRIX, "row offsets descend before row %lld", (long long)ranges->end[r]));
        e.starts[r] = e.kept;
        e.kept += count;
        if (count > longest) longest = count;
    }
    e.starts[ranges->count] = e.kept;
    TRY(sp_alloc(context, e.kept, sizeof *e.cols, (void **)&e.cols));
    TRY(sp_alloc(context, e.kept, sizeof *e.values, (void **)&e.values));
    TRY(sp_alloc(context, longest, sizeof(double), &scratch));
    for (int r = 0; r < ranges->count; r++) {
        const int64_t first = e.offsets[ranges->begin[r]], count = e.starts[r + 1] - e.starts[r];
        TRY(fetch_cols(context, m, first, count, scratch, e.cols + e.starts[r]));
        TRY(fetch_values(context, m, first, count, scratch, e.values + e.starts[r]));
    }
    TRY(order_rows(context, ranges, &e));
done:
    sp_free(context, scratch);
    if (status == SP_OK) *out = e;
    else extract_free(context, &e);
    return status;
}

void extract_free(sp_context *context, extract *e)
{
    FREE_ALL(context, e->offsets, e->cols, e->values);
    memset(e, 0, sizeof *e);
}

/* ---- one entry ----------------------------------------------------------------------------------------- */

/* Σ |a·b| of an entry: what rounding errors are proportional to when products cancel. */
static double magnitude(const sp_csr *a, const sp_csr *b, int64_t row, int32_t col)
{
    double sum = 0;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int64_t end = b->row_offsets[a->col_indices[k] + 1];
        const int64_t found = lower_bound_i32(b->col_indices, b->row_offsets[a->col_indices[k]], end, col);
        if (found < end && b->col_indices[found] == col) sum += fabs(entry_value(a, k) * entry_value(b, found));
    }
    return sum;
}

/* The difference of two values relative to their own size, or, where products cancel, to that of the products. */
static double difference(const sp_csr *a, const sp_csr *b, const bench_options *options, int64_t row, int32_t col,
                         double x, double y)
{
    const double apart = fabs(x - y);
    if (x == y) return 0;
    if (!isfinite(apart)) return INFINITY;
    const double relative = apart / fmax(fabs(x), fabs(y));
    if (relative <= tolerance(options->type) || options->semiring != SP_PLUS_TIMES) return relative;
    const double products = magnitude(a, b, row, col);
    return products > 0 ? apart / products : INFINITY;
}

/* ---- with another result ------------------------------------------------------------------------------- */

static void disagree(verdict *v, int64_t row, const char *what)
{
    v->good = false;
    snprintf(v->sentence, sizeof v->sentence, "row %lld %s", (long long)row, what);
}

void compare_extracts(const sp_csr *a, const sp_csr *b, const bench_options *options, const row_ranges *ranges,
                      const extract *ours, const extract *theirs, verdict *v)
{
    int64_t bad_row = INT64_MAX;
    double largest = 0;
    v->good = true;
    v->whole = ranges->all;
    v->entries = ours->kept;
    v->rows = 0;
    if (ours->rows != theirs->rows || ours->nnz != theirs->nnz) {
        v->good = false;
        v->largest = INFINITY;
        snprintf(v->sentence, sizeof v->sentence, "%lld rows and %lld entries, not %lld and %lld",
                 (long long)ours->rows, (long long)ours->nnz, (long long)theirs->rows, (long long)theirs->nnz);
        return;
    }
    for (int64_t i = 0; i <= ours->rows; i++)
        if (ours->offsets[i] != theirs->offsets[i]) {
            disagree(v, i - 1, "has another length");
            v->largest = INFINITY;
            return;
        }
    for (int r = 0; r < ranges->count; r++) {
        const int64_t shift = ours->starts[r] - ours->offsets[ranges->begin[r]];
        v->rows += ranges->end[r] - ranges->begin[r];
#pragma omp parallel for schedule(dynamic, 256) reduction(min : bad_row) reduction(max : largest)
        for (int64_t row = ranges->begin[r]; row < ranges->end[r]; row++)
            for (int64_t k = shift + ours->offsets[row]; k < shift + ours->offsets[row + 1]; k++) {
                double apart = INFINITY;
                if (ours->cols[k] == theirs->cols[k])
                    apart = difference(a, b, options, row, ours->cols[k], ours->values[k], theirs->values[k]);
                if (apart > largest) largest = apart;
                if (!(apart <= tolerance(options->type)) && row < bad_row) bad_row = row;
            }
    }
    v->largest = largest;
    if (bad_row < INT64_MAX) disagree(v, bad_row, isinf(largest) ? "has other columns" : "has other values");
}

/* ---- with the reference -------------------------------------------------------------------------------- */

/* A row of the product: sums by column, and which columns there are. */
typedef struct accumulator {
    double *sums;
    int64_t *seen; /* the row + 1 that saw the column last */
    int32_t *cols;
    int64_t count;
} accumulator;

static double multiply(sp_semiring semiring, double x, double y)
{
    switch (semiring) {
    case SP_PLUS_TIMES: case SP_MAX_TIMES: return x * y;
    case SP_MIN_PLUS: return x + y;
    case SP_PLUS_PAIR: case SP_OR_AND: break;
    }
    return 1;
}

static double add(sp_semiring semiring, double sum, double product)
{
    switch (semiring) {
    case SP_PLUS_TIMES: case SP_PLUS_PAIR: return sum + product;
    case SP_MIN_PLUS: return fmin(sum, product);
    case SP_MAX_TIMES: return fmax(sum, product);
    case SP_OR_AND: break;
    }
    return 1;
}

static void reference_row(const sp_csr *a, const sp_csr *b, sp_semiring semiring, int64_t row, accumulator *sum)
{
    sum->count = 0;
    for (int64_t p = a->row_offsets[row]; p < a->row_offsets[row + 1]; p++) {
        const double x = entry_value(a, p);
        for (int64_t q = b->row_offsets[a->col_indices[p]]; q < b->row_offsets[a->col_indices[p] + 1]; q++) {
            const int32_t col = b->col_indices[q];
            const double product = multiply(semiring, x, entry_value(b, q));
            if (sum->seen[col] == row + 1) {
                sum->sums[col] = add(semiring, sum->sums[col], product);
            } else {
                sum->seen[col] = row + 1;
                sum->sums[col] = product;
                sum->cols[sum->count++] = col;
            }
        }
    }
}

/* As many columns, each of them in the reference, ascending: then the patterns are the same. */
static double row_difference(const sp_csr *a, const sp_csr *b, const bench_options *options, int64_t row,
                             const accumulator *sum, const int32_t *cols, const double *values, int64_t count)
{
    double largest = count == sum->count ? 0 : INFINITY;
    for (int64_t k = 0; k < count; k++) {
        if (cols[k] < 0 || cols[k] >= b->cols || sum->seen[cols[k]] != row + 1 || (k > 0 && cols[k - 1] >= cols[k]))
            return INFINITY;
        largest = fmax(largest, difference(a, b, options, row, cols[k], values[k], sum->sums[cols[k]]));
    }
    return largest;
}

sp_status compare_reference(sp_context *context, const sp_csr *a, const sp_csr *b, const bench_options *options,
                            const row_ranges *ranges, const extract *ours, verdict *v)
{
    const int threads = sp_context_threads(context);
    accumulator *sums = NULL;
    int64_t bad_row = INT64_MAX;
    double largest = 0;
    sp_status status;
    TRY(sp_calloc(context, threads, sizeof *sums, (void **)&sums));
    for (int t = 0; t < threads; t++) {
        TRY(sp_alloc(context, b->cols, sizeof *sums[t].sums, (void **)&sums[t].sums));
        TRY(sp_calloc(context, b->cols, sizeof *sums[t].seen, (void **)&sums[t].seen));
        TRY(sp_alloc(context, b->cols, sizeof *sums[t].cols, (void **)&sums[t].cols));
    }
    *v = (verdict){.with = "reference", .good = true, .whole = ranges->all, .entries = ours->kept};
    for (int r = 0; r < ranges->count; r++) {
        const int64_t shift = ours->starts[r] - ours->offsets[ranges->begin[r]];
        v->rows += ranges->end[r] - ranges->begin[r];
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) reduction(min : bad_row) reduction(max : largest)
        for (int64_t row = ranges->begin[r]; row < ranges->end[r]; row++) {
            accumulator *sum = &sums[omp_get_thread_num()];
            const int64_t at = shift + ours->offsets[row], count = ours->offsets[row + 1] - ours->offsets[row];
            reference_row(a, b, options->semiring, row, sum);
            const double apart = row_difference(a, b, options, row, sum, ours->cols + at, ours->values + at, count);
            if (apart > largest) largest = apart;
            if (!(apart <= tolerance(options->type)) && row < bad_row) bad_row = row;
        }
    }
    v->largest = largest;
    if (!ours->sorted) {
        v->good = false;
        snprintf(v->sentence, sizeof v->sentence, "columns do not ascend");
    } else if (bad_row < INT64_MAX) {
        disagree(v, bad_row, "has other columns or values");
    }
done:
    for (int t = 0; sums && t < threads; t++) {
        FREE_ALL(context, sums[t].sums, sums[t].seen, sums[t].cols);
    }
    sp_free(context, sums);
    return status;
}
