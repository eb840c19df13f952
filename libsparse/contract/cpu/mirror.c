/* All of a symmetric C from its entries up to the diagonal, in two passes that leave rows in order without a sort:
 *
 *   1. entry (p, q) of the lower half goes to row q, on or above the diagonal. Rows p are read from the last to the
 *      first, and rows q filled from their ends;
 *   2. each entry above the diagonal, row by row now in order, goes to its place below.
 *
 * In the first pass each thread reads some rows of the lower half, and counts of all threads tell where its entries go;
 * in the second it fills some rows of C. Per entry of the lower half: 4 bytes read to count, then twice a column and a
 * value read and written, where rows of C that are near each other in G are near in memory. */
#include <string.h>

#include "base/kernel.h"
#include "base/search.h"
#include "base/value.h"
#include "contract/cpu/mirror.h"

/* The first row of part `part`, if the entries are cut into `parts` equal parts. */
static int64_t first_row(const sp_csr *lower, int parts, int part)
{
    if (part == parts) return lower->rows;
    return lower_bound_i64(lower->row_offsets, 0, lower->rows, lower->nnz / parts * part);
}

/* A part a thread, while their counts do not take much more memory than C. */
static int count_parts(const sp_context *context, const sp_csr *lower)
{
    const int useful = sp_threads_for(context, lower->nnz);
    const int64_t most = 4 + lower->nnz / (lower->rows + 1);
    return useful < most ? useful : (int)most;
}

/* Adds to counts[q] the entries of rows low to high - 1 in column q below the diagonal. */
static void count_below(const sp_csr *lower, int64_t low, int64_t high, int64_t *counts)
{
    for (int64_t p = low; p < high; p++)
        for (int64_t k = lower->row_offsets[p]; k < lower->row_offsets[p + 1]; k++)
            counts[lower->col_indices[k]] += lower->col_indices[k] != p;
}

/* Counts become the ends of the places in C; C's offsets follow from them. */
static void place_columns(const sp_csr *lower, int parts, int64_t *ends, int64_t *offsets)
{
    const int64_t n = lower->rows;
    offsets[0] = 0;
    for (int64_t q = 0; q < n; q++) {
        int64_t end = offsets[q] + lower->row_offsets[q + 1] - lower->row_offsets[q];
        for (int64_t at = q; at < parts * n; at += n) ends[at] = end += ends[at];
        offsets[q + 1] = end;
    }
}

KERNEL void fill_upper(const sp_csr *lower, sp_value_type type, int64_t low, int64_t high, int64_t *ends, sp_csr *c)
{
    const int32_t *from = lower->col_indices;
    int32_t *to = c->col_indices;
    for (int64_t p = high; p-- > low;)
        for (int64_t k = lower->row_offsets[p]; k < lower->row_offsets[p + 1]; k++) {
            const int64_t at = --ends[from[k]];
            to[at] = (int32_t)p;
            store_value(c->values, type, at, load_value(lower->values, type, k));
        }
}

/* Rows low to high - 1 below the diagonal. The entries of row q of C above it follow as many as `lower` has there. */
KERNEL void fill_lower(const sp_csr *lower, sp_value_type type, int64_t low, int64_t high, int64_t *next, sp_csr *c)
{
    int32_t *columns = c->col_indices;
    memcpy(next + low, c->row_offsets + low, (size_t)(high - low) * sizeof *next);
    for (int64_t q = 0; q < high; q++) {
        const int64_t end = c->row_offsets[q + 1];
        int64_t k = c->row_offsets[q] + lower->row_offsets[q + 1] - lower->row_offsets[q];
        if (q < low) k = lower_bound_i32(columns, k, end, (int32_t)low);
        for (; k < end && columns[k] < high; k++) {
            const int64_t at = next[columns[k]]++;
            columns[at] = (int32_t)q;
            store_value(c->values, type, at, load_value(c->values, type, k));
        }
    }
}

sp_status sp_mirror_lower(sp_context *context, sp_csr *lower, int64_t *bytes)
{
    const int64_t n = lower->rows;
    const int parts = count_parts(context, lower);
    sp_csr c = {0};
    int64_t *ends = NULL;
    sp_status status;
    TRY(sp_calloc(context, parts * n, sizeof *ends, (void **)&ends));
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int t = 0; t < parts; t++)
        count_below(lower, first_row(lower, parts, t), first_row(lower, parts, t + 1), ends + t * n);
    int64_t all = lower->nnz;
#pragma omp parallel for schedule(static) reduction(+ : all) num_threads(parts)
    for (int64_t at = 0; at < parts * n; at++) all += ends[at];
    TRY(sp_csr_create(context, n, n, all, lower->value_type, SP_HOST, &c));
    place_columns(lower, parts, ends, c.row_offsets);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int t = 0; t < parts; t++) {
        const int64_t low = first_row(lower, parts, t), high = first_row(lower, parts, t + 1);
        if (c.value_type == SP_F64) fill_upper(lower, SP_F64, low, high, ends + t * n, &c);
        else fill_upper(lower, SP_F32, low, high, ends + t * n, &c);
    }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int t = 0; t < parts; t++) {
        const int64_t low = first_row(lower, parts, t), high = first_row(lower, parts, t + 1);
        if (c.value_type == SP_F64) fill_lower(lower, SP_F64, low, high, ends, &c);
        else fill_lower(lower, SP_F32, low, high, ends, &c);
    }
    *bytes += parts * n * (int64_t)sizeof *ends +
              lower->nnz * (int64_t)(sizeof(int32_t) + sp_value_size(lower->value_type)) +
              (n + 1) * (int64_t)sizeof *lower->row_offsets;
    sp_csr_free(context, lower);
    *lower = c;
done:
    sp_free(context, ends);
    return status;
}
