/* COO → CSR: triples are brought to their rows, columns are sorted within rows, and duplicates are combined in the
 * order of their appearance. The method depends on the triples:
 *
 * - in order already, as in files written from a matrix: copied;
 * - in the order of columns: each appended to its row. A transpose is made the same way;
 * - many, in another order: sorted block by block (coo_blocks.c);
 * - otherwise, a few triples or most of them in a few rows: written to their rows as entries of 8 bytes and sorted
 *   there. Their values are fetched at the end.
 */
#include <omp.h>
#include <string.h>

#include "base/kernel.h"
#include "base/search.h"
#include "core/coo.h"

/* ---- sorting --------------------------------------------------------------------------------------------- */

static void sift_down(sp_entry *heap, int64_t root, int64_t count)
{
    sp_entry moving = heap[root];
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child] < heap[child + 1]) child++;
        if (moving >= heap[child]) break;
        heap[root] = heap[child];
    }
    heap[root] = moving;
}

/* Quicksort with the median of three; heap sort when the recursion is too deep, because a row of many million entries
 * must not take quadratic time; insertion sort for short ends, because most rows are short. */
static void sort_entries(sp_entry *list, int64_t count, int depth, sp_watch *watch)
{
    while (count > 24) {
        if (count >= SP_STRIDE && sp_stops(watch)) return;
        if (depth-- == 0) {
            for (int64_t i = count / 2; i-- > 0 && !sp_stops_at(watch, i);) sift_down(list, i, count);
            for (int64_t i = count; i-- > 1 && !sp_stops_at(watch, i);) {
                sp_entry last = list[i];
                list[i] = list[0];
                list[0] = last;
                sift_down(list, 0, i);
            }
            return;
        }
        sp_entry a = list[0], b = list[count / 2], c = list[count - 1];
        sp_entry pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        int64_t i = -1, j = count;
        for (int64_t swaps = 1;; swaps++) {
            do i++; while (list[i] < pivot);
            do j--; while (pivot < list[j]);
            if (i >= j) break;
            if (sp_stops_at(watch, swaps)) return;
            sp_entry swap = list[i];
            list[i] = list[j];
            list[j] = swap;
        }
        sort_entries(list + j + 1, count - j - 1, depth, watch);
        count = j + 1;
    }
    for (int64_t i = 1; i < count; i++) {
        sp_entry moving = list[i];
        int64_t j = i;
        for (; j > 0 && moving < list[j - 1]; j--) list[j] = list[j - 1];
        list[j] = moving;
    }
}

void sp_sort_entries(sp_entry *list, int64_t count, sp_watch *watch)
{
    int depth = 2; /* the usual depth of a quicksort, twice */
    for (int64_t left = count; left; left >>= 1) depth += 2;
    sort_entries(list, count, depth, watch);
}

/* ---- triples in order ------------------------------------------------------------------------------------ */

/* Whether the triples ascend strictly by rows and, within a row, by columns. With `rows` and `cols` exchanged: by
 * columns, then rows. */
static bool are_in_order(const sp_triples *t, const int32_t *rows, const int32_t *cols, int threads, sp_watch *watch)
{
    int64_t others = 0;
    if (t->symmetric) return false;
    for (int64_t i = 1; i < t->count && i < 64; i++) /* triples without any order show it at once */
        if (rows[i - 1] > rows[i] || (rows[i - 1] == rows[i] && cols[i - 1] >= cols[i])) return false;
#pragma omp parallel for schedule(static) reduction(+ : others) num_threads(threads)
    for (int64_t first = 0; first < t->count; first += SP_STRIDE) {
        const int64_t end = sp_stride_end(first, t->count);
        if (sp_stops(watch)) continue;
        for (int64_t i = first > 0 ? first : 1; i < end; i++)
            others += (rows[i - 1] > rows[i]) | ((rows[i - 1] == rows[i]) & (cols[i - 1] >= cols[i]));
    }
    return others == 0;
}

/* Copies triples first .. end - 1. */
static void take_stretch(const sp_triples *t, int64_t first, int64_t end, bool ones, const sp_csr *made)
{
    for (int64_t i = first; i < end; i++) {
        const int32_t before = i ? t->row_indices[i - 1] : -1;
        for (int64_t row = t->row_indices[i]; row > before; row--) made->row_offsets[row] = i;
        made->col_indices[i] = t->col_indices[i];
        store_value(made->values, t->type, i, ones ? 1 : load_value(t->values, t->type, i));
    }
}

static sp_status take_in_order(sp_context *context, const sp_triples *t, int threads, sp_csr *matrix)
{
    sp_csr made;
    sp_status status = sp_csr_create(context, t->rows, t->cols, t->count, t->type, SP_HOST, &made);
    if (status != SP_OK) return status;
    const bool ones = !t->values || t->rule == SP_COMBINE_COUNT;
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t first = 0; first < t->count; first += SP_STRIDE)
        if (!sp_stops(&watch)) take_stretch(t, first, sp_stride_end(first, t->count), ones, &made);
    for (int64_t row = t->count ? t->row_indices[t->count - 1] + 1 : 0; row <= t->rows; row++)
        made.row_offsets[row] = t->count;
    status = sp_watched(&watch);
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- triples in the order of columns --------------------------------------------------------------------- */

/* Distances, in triples, at which a triple's row and then its place in that row are prefetched: rows may lie
 * anywhere. */
enum { ROW_AHEAD = 32, PLACE_AHEAD = 16 };

/* The triples are cut into parts, each with write positions of its own: next[part * rows + i] is the place of the
 * part's next entry of row i. */
typedef struct columns_run {
    const sp_triples *t;
    int parts;
    int64_t *next;
    const sp_csr *made;
    sp_watch watch;
} columns_run;

static int64_t part_start(const columns_run *r, int part)
{
    return r->t->count / r->parts * part + (part == r->parts ? r->t->count % r->parts : 0);
}

KERNEL void place_part(columns_run *r, int part, size_t size)
{
    const sp_triples *t = r->t;
    const int32_t *rows = t->row_indices;
    const int64_t *offsets = t->col_offsets, begin = part_start(r, part), end = part_start(r, part + 1);
    int64_t *next = r->next + part * t->rows, column = offsets ? row_of_entry(offsets, t->cols, begin) : 0;
    int32_t *cols = r->made->col_indices;
    char *values = r->made->values;
    for (int64_t i = begin; i < end; column++) {
        const int64_t column_end = offsets && offsets[column + 1] < end ? offsets[column + 1] : end;
        for (; i < column_end; i++) {
            if (sp_stops_at(&r->watch, i)) return;
            if (i + ROW_AHEAD < end) {
                __builtin_prefetch(next + rows[i + ROW_AHEAD], 1);
                const int64_t place = next[rows[i + PLACE_AHEAD]];
                __builtin_prefetch(cols + place, 1);
                __builtin_prefetch(values + (size_t)place * size, 1);
            }
            const int64_t to = next[rows[i]]++;
            cols[to] = offsets ? (int32_t)column : t->col_indices[i];
            if (size) memcpy(values + (size_t)to * size, (const char *)t->values + (size_t)i * size, size);
        }
    }
}

/* Turns the counts of all parts into write positions, and makes the row offsets. */
static void place_rows(columns_run *r)
{
    const int64_t rows = r->t->rows;
    int64_t before = 0;
    for (int64_t i = 0; i < rows && !sp_stops_at(&r->watch, i); i++) {
        r->made->row_offsets[i] = before;
        for (int part = 0; part < r->parts; part++) {
            const int64_t count = r->next[part * rows + i];
            r->next[part * rows + i] = before;
            before += count;
        }
    }
    r->made->row_offsets[rows] = before;
}

sp_status sp_coo_by_columns(sp_context *context, const sp_triples *t, const sp_csr *matrix)
{
    const size_t size = t->values ? sp_value_size(t->type) : 0;
    /* The write positions of all parts take no more memory than the matrix. */
    const int64_t worth = 1 + t->count / (t->rows + 1);
    const int threads = sp_threads_for(context, 3 * t->count);
    columns_run r = {.t = t, .parts = worth < threads ? (int)worth : threads, .made = matrix,
                     .watch = {context, false}};
    sp_status status;
    TRY(sp_alloc(context, r.parts * t->rows, sizeof *r.next, (void **)&r.next));
#pragma omp parallel for schedule(static, 1) num_threads(r.parts)
    for (int part = 0; part < r.parts; part++) {
        int64_t *counts = r.next + part * t->rows;
        memset(counts, 0, (size_t)t->rows * sizeof *counts);
        const int64_t end = part_start(&r, part + 1);
        for (int64_t i = part_start(&r, part); i < end && !sp_stops_at(&r.watch, i); i++) counts[t->row_indices[i]]++;
    }
    TRY(sp_watched(&r.watch));
    place_rows(&r);
    TRY(sp_watched(&r.watch));
#pragma omp parallel for schedule(static, 1) num_threads(r.parts)
    for (int part = 0; part < r.parts; part++) {
        if (size == 0) place_part(&r, part, 0);
        else if (size == sizeof(float)) place_part(&r, part, sizeof(float));
        else place_part(&r, part, sizeof(double));
    }
    TRY(sp_watched(&r.watch));
done:
    sp_free(context, r.next);
    return status;
}

static sp_status take_by_columns(sp_context *context, const sp_triples *t, sp_csr *matrix)
{
    sp_csr made;
    sp_status status = sp_csr_create(context, t->rows, t->cols, t->count, t->type, SP_HOST, &made);
    if (status != SP_OK) return status;
    status = sp_coo_by_columns(context, t, &made);
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- row by row ------------------------------------------------------------------------------------------ */

/* Turns one row's sorted entries into columns and values. Returns the number of entries after combining. */
static int64_t combine_row(const sp_triples *t, const sp_entry *list, int64_t count, int shift, int32_t *cols,
                           void *out, sp_watch *watch)
{
    int64_t left = 0;
    for (int64_t i = 0; i < count;) {
        const int32_t col = sp_entry_col(list[i], shift);
        double value = 1.0;
        const int64_t first = i;
        for (; i < count && sp_entry_col(list[i], shift) == col; i++) {
            if (sp_stops_at(watch, i)) return 0;
            const double next = load_value(t->values, t->type, sp_entry_source(list[i], shift));
            if (i == first) value = t->rule == SP_COMBINE_COUNT ? 1 : next;
            else value = sp_combine_values(value, next, t->rule);
        }
        if (t->rule == SP_COMBINE_MEAN) value /= (double)(i - first);
        cols[left] = col;
        store_value(out, t->type, left++, value);
    }
    return left;
}

/* counts[i] = entries of row i, including mirror images. Every thread reads all triples and counts those of its own
 * rows: reading is cheap, and no two threads write to one place. */
static void count_rows(const sp_triples *t, int threads, int64_t *counts, sp_watch *watch)
{
#pragma omp parallel num_threads(threads)
    {
        const int32_t low = (int32_t)(t->rows * omp_get_thread_num() / omp_get_num_threads());
        const int32_t high = (int32_t)(t->rows * (omp_get_thread_num() + 1) / omp_get_num_threads());
        for (int64_t i = 0; i < t->count && !sp_stops_at(watch, i); i++) {
            const int32_t row = t->row_indices[i], col = t->col_indices[i];
            if (row >= low && row < high) counts[row]++;
            if (t->symmetric && col != row && col >= low && col < high) counts[col]++;
        }
    }
}

/* Writes every triple (and its mirror image) to its row, in the order of appearance. `next` holds each row's write
 * position. Threads read all triples and write those of their own rows, about equally many each. */
static void scatter(const sp_triples *t, const int64_t *starts, int threads, int shift, int64_t *next,
                    sp_entry *list, sp_watch *watch)
{
#pragma omp parallel num_threads(threads)
    {
        const int64_t share = starts[t->rows] / omp_get_num_threads() + 1;
        const int64_t low = lower_bound_i64(starts, 0, t->rows, share * omp_get_thread_num());
        const int64_t high = lower_bound_i64(starts, 0, t->rows, share * (omp_get_thread_num() + 1));
        for (int64_t i = 0; i < t->count && !sp_stops_at(watch, i); i++) {
            const int32_t row = t->row_indices[i], col = t->col_indices[i];
            if (row >= low && row < high) list[next[row]++] = sp_make_entry(col, i, shift);
            if (t->symmetric && col != row && col >= low && col < high)
                list[next[col]++] = sp_make_entry(row, i, shift);
        }
    }
}

/* Closes the gaps between rows that combining made shorter. next[i] is the length of row i, starts[i] its place. */
static void close_gaps(const int64_t *starts, const int64_t *next, size_t size, sp_csr *made)
{
    int64_t nnz = 0;
    for (int64_t i = 0; i < made->rows; i++) {
        made->row_offsets[i] = nnz;
        if (nnz != starts[i]) {
            memmove(made->col_indices + nnz, made->col_indices + starts[i], (size_t)next[i] * sizeof(int32_t));
            memmove((char *)made->values + (size_t)nnz * size, (char *)made->values + (size_t)starts[i] * size,
                    (size_t)next[i] * size);
        }
        nnz += next[i];
    }
    made->row_offsets[made->rows] = made->nnz = nnz;
}

static sp_status sort_rows(sp_context *context, const sp_triples *t, int threads, sp_csr *matrix)
{
    const int64_t rows = t->rows;
    const int shift = sp_entry_shift(t->cols);
    const size_t size = sp_value_size(t->type);
    sp_csr made = {0};
    int64_t *starts = NULL, *next = NULL;
    sp_entry *list = NULL;
    sp_watch watch = {context, false};
    sp_status status;
    TRY(sp_calloc(context, rows + 1, sizeof *starts, (void **)&starts));
    TRY(sp_alloc(context, rows, sizeof *next, (void **)&next));
    count_rows(t, threads, starts + 1, &watch);
    TRY(sp_watched(&watch));
    for (int64_t i = 0; i < rows; i++) {
        next[i] = starts[i];
        starts[i + 1] += starts[i];
    }
    TRY(sp_alloc(context, starts[rows], sizeof *list, (void **)&list));
    scatter(t, starts, threads, shift, next, list, &watch);
    TRY(sp_watched(&watch));

    /* The size of the sorted list bounds that of the result. The surplus is released at the end. */
    TRY(sp_csr_create(context, rows, t->cols, starts[rows], t->type, SP_HOST, &made));
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t length = starts[i + 1] - starts[i];
        if (sp_stops(&watch)) continue;
        sp_sort_entries(list + starts[i], length, &watch);
        next[i] = combine_row(t, list + starts[i], length, shift, made.col_indices + starts[i],
                              (char *)made.values + (size_t)starts[i] * size, &watch);
    }
    TRY(sp_watched(&watch));
    close_gaps(starts, next, size, &made);
    TRY(sp_grow(context, made.nnz, made.nnz, sizeof(int32_t), (void **)&made.col_indices));
    TRY(sp_grow(context, made.nnz, made.nnz, size, &made.values));
done:
    FREE_ALL(context, starts, next, list);
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static sp_status check_sizes(sp_context *context, const sp_coo *t, sp_combine rule, bool symmetric)
{
    static const char call[] = "sp_csr_from_coo";
    const int64_t rows = t->rows, cols = t->cols;
    sp_status status = sp_require_space(context, call, "coo", t->space);
    if (status == SP_OK && t->count > 0) status = sp_require(context, call, "row_indices", t->row_indices);
    if (status == SP_OK && t->count > 0) status = sp_require(context, call, "col_indices", t->col_indices);
    if (status != SP_OK) return status;
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX || t->count < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%lld triples for a matrix of %lld x %lld: 0 to %d rows and columns are possible",
                       (long long)t->count, (long long)rows, (long long)cols, INT32_MAX);
    if (symmetric && rows != cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a matrix of %lld x %lld cannot be symmetric", (long long)rows,
                       (long long)cols);
    if ((unsigned)rule > SP_COMBINE_COUNT || (unsigned)t->value_type > SP_F64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "combine operation %d or type %d of values does not exist",
                       (int)rule, (int)t->value_type);
    if ((unsigned)t->index_type > SP_I64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "type %d of indices does not exist", (int)t->index_type);
    const int bits = t->space == SP_DEVICE ? 31 : sp_entry_shift(cols);
    if (t->count > 0 && (t->count - 1) >> bits > 0)
        return sp_fail(context, SP_ERROR_OVERFLOW, "%lld triples are more than 2^%d, which %s", (long long)t->count,
                       bits, t->space == SP_DEVICE ? "a device allows" : "the number of columns allows");
    return SP_OK;
}

sp_status sp_coo_outside(sp_context *context, const sp_coo *t, int64_t triple, int64_t row, int64_t col)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "triple %lld is at (%lld, %lld), outside %lld x %lld", (long long)triple,
                   (long long)row, (long long)col, (long long)t->rows, (long long)t->cols);
}

static inline int64_t index_of(const void *indices, sp_index_type type, int64_t at)
{
    return type == SP_I32 ? ((const int32_t *)indices)[at] : ((const int64_t *)indices)[at];
}

/* The first of triples first .. end - 1 that lies outside, or INT64_MAX. Indices of 64 bits are written to `rows` and
 * `cols`. */
KERNEL int64_t check_stretch(const sp_coo *t, sp_index_type type, int64_t first, int64_t end, int32_t *rows,
                             int32_t *cols)
{
    int64_t bad = INT64_MAX;
    for (int64_t k = first; k < end; k++) {
        const int64_t i = index_of(t->row_indices, type, k), j = index_of(t->col_indices, type, k);
        if ((i < 0 || i >= t->rows || j < 0 || j >= t->cols) && k < bad) bad = k;
        if (type == SP_I32) continue;
        rows[k] = (int32_t)i;
        cols[k] = (int32_t)j;
    }
    return bad;
}

static sp_status check_triples(sp_context *context, const sp_coo *t, int32_t *rows, int32_t *cols)
{
    int64_t bad = INT64_MAX;
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(static) reduction(min : bad) num_threads(sp_threads_for(context, t->count))
    for (int64_t first = 0; first < t->count; first += SP_STRIDE) {
        const int64_t end = sp_stride_end(first, t->count);
        if (sp_stops(&watch)) continue;
        const int64_t found = t->index_type == SP_I32 ? check_stretch(t, SP_I32, first, end, NULL, NULL)
                                                      : check_stretch(t, SP_I64, first, end, rows, cols);
        if (found < bad) bad = found;
    }
    if (watch.stopped) return sp_watched(&watch);
    if (bad == INT64_MAX) return SP_OK;
    return sp_coo_outside(context, t, bad, index_of(t->row_indices, t->index_type, bad),
                          index_of(t->col_indices, t->index_type, bad));
}

/* By the method that suits the triples, which are checked. */
static sp_status make_matrix(sp_context *context, const sp_triples *t, sp_csr *made)
{
    /* Below some thousand triples a second thread costs more than it saves. */
    const int threads = sp_threads_for(context, 3 * t->count);
    const int32_t *rows = t->row_indices, *cols = t->col_indices;
    sp_watch watch = {context, false};
    bool sorted = false;
    if (are_in_order(t, rows, cols, threads, &watch))
        return watch.stopped ? sp_watched(&watch) : take_in_order(context, t, threads, made);
    if (t->values && t->rule != SP_COMBINE_COUNT && are_in_order(t, cols, rows, threads, &watch))
        return watch.stopped ? sp_watched(&watch) : take_by_columns(context, t, made);
    const sp_status status = sp_coo_by_blocks(context, t, made, &sorted);
    return status == SP_OK && !sorted ? sort_rows(context, t, threads, made) : status;
}

static sp_status make_on_host(sp_context *context, const sp_coo *coo, sp_combine combine, bool symmetric, sp_csr *made)
{
    int32_t *rows = NULL, *cols = NULL;
    sp_status status = SP_OK;
    if (coo->index_type == SP_I64) {
        TRY(sp_alloc(context, coo->count, sizeof *rows, (void **)&rows));
        TRY(sp_alloc(context, coo->count, sizeof *cols, (void **)&cols));
    }
    TRY(check_triples(context, coo, rows, cols));
    const sp_triples t = {.rows = coo->rows, .cols = coo->cols, .count = coo->count,
                          .row_indices = rows ? rows : coo->row_indices, .col_indices = cols ? cols : coo->col_indices,
                          .values = coo->values, .type = coo->value_type, .rule = combine, .symmetric = symmetric};
    status = make_matrix(context, &t, made);
done:
    FREE_ALL(context, rows, cols);
    return status;
}

sp_status sp_csr_from_coo(sp_context *context, const sp_coo *coo, sp_combine combine, bool symmetric, sp_csr *matrix)
{
    sp_csr made;
    sp_status status;
    TRY(sp_require(context, __func__, "coo", coo));
    TRY(sp_require(context, __func__, "matrix", matrix));
    TRY(check_sizes(context, coo, combine, symmetric));
    TRY((coo->space == SP_DEVICE ? context->backend->from_coo : make_on_host)(context, coo, combine, symmetric, &made));
    *matrix = made;
done:
    return status;
}

sp_status sp_widen_offsets(sp_context *context, int64_t count, const int32_t *from, int64_t *to, sp_space space)
{
    sp_status status;
    TRY(sp_require_space(context, __func__, "space", space));
    if (count < 0) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: count is %lld, below 0", __func__, (long long)count);
    if (count == 0) return SP_OK;
    TRY(sp_require(context, __func__, "from", from));
    TRY(sp_require(context, __func__, "to", to));
    TRY(sp_require_apart(context, __func__, "to", to, (size_t)count * sizeof *to, "from", from,
                         (size_t)count * sizeof *from));
    if (space == SP_DEVICE) return context->backend->widen(context, count, from, to);
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, count))
    for (int64_t k = 0; k < count; k++) to[k] = from[k];
done:
    return status;
}
