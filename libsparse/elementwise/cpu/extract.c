/* B(i, j) = A(rows[i], cols[j]) on the CPU.
 *
 * Without a list of columns, rows are copied whole, and the next ones are prefetched. With one, rows are made in one
 * pass, chunk by chunk as rows of products are (rows.h). Every column of A knows its first place in the list, and every
 * place the next one of the same column, so an entry of A costs one look-up of 4 bytes. If the list ascends without
 * repetitions, entries are written at once, without a branch. Otherwise places are collected as integers, together with
 * their sources, and sorted if the list does not ascend. */
#include <omp.h>
#include <string.h>

#include "core/coo.h"
#include "core/rows.h"

/* Row i of B comes from here. */
static inline int64_t source_row(const int32_t *rows, int64_t i) { return rows ? rows[i] : i; }

/* ---- whole rows ------------------------------------------------------------------------------------------ */

/* This many rows ahead their ends, and at half the way their entries, are fetched. */
enum { AHEAD = 16 };

static void fetch_row(const sp_csr *a, int64_t row)
{
    const int64_t begin = a->row_offsets[row];
    __builtin_prefetch(a->col_indices + begin);
    if (a->values) __builtin_prefetch((const char *)a->values + (size_t)begin * sp_value_size(a->value_type));
}

static sp_status copy_rows(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t count, sp_csr *b)
{
    const int64_t *offsets = a->row_offsets;
    sp_watch watch = {context, false};
    int64_t nnz = 0;
    for (int64_t i = 0; i < count && !sp_stops_at(&watch, i); i++)
        nnz += offsets[source_row(rows, i) + 1] - offsets[source_row(rows, i)];
    sp_status status = sp_watched(&watch);
    if (status == SP_OK) status = sp_csr_create_like(context, a, count, a->cols, nnz, SP_HOST, b);
    if (status != SP_OK) return status;
    b->row_offsets[0] = 0;
    for (int64_t i = 0; i < count; i++)
        b->row_offsets[i + 1] = b->row_offsets[i] + offsets[source_row(rows, i) + 1] - offsets[source_row(rows, i)];
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, nnz))
    for (int64_t i = 0; i < count; i++) {
        if (sp_stops(&watch)) continue;
        if (i + AHEAD < count) __builtin_prefetch(offsets + source_row(rows, i + AHEAD));
        if (i + AHEAD / 2 < count) fetch_row(a, source_row(rows, i + AHEAD / 2));
        sp_copy_entries(a, a->row_offsets[source_row(rows, i)], b->row_offsets[i + 1] - b->row_offsets[i], b,
                        b->row_offsets[i]);
    }
    status = sp_watched(&watch);
    if (status != SP_OK) sp_csr_free(context, b);
    return status;
}

/* ---- columns --------------------------------------------------------------------------------------------- */

typedef struct extraction {
    const sp_csr *a;
    const int32_t *rows;
    int32_t *first; /* the first place of each of A's columns in the list, or -1 */
    int32_t *next;  /* the next place of the same column, or -1 */
    bool ascending, repeated;
    int shift; /* of places in what is sorted */
    sp_watch *watch;
} extraction;

typedef struct worker {
    const extraction *job;
    sp_entry *list; /* of a row's entries, for lists of columns that do not ascend strictly */
} worker;

/* Entry `from` of A becomes the buffer's entry `to`. */
static inline void move_value(const sp_csr *a, int64_t from, const row_buffer *out, int64_t to)
{
    if (!a->values) return;
    if (a->value_type == SP_F32) ((float *)out->values)[to] = ((const float *)a->values)[from];
    else ((double *)out->values)[to] = ((const double *)a->values)[from];
}

/* What is not listed is written over by the next. */
static void filter_row(const extraction *job, int64_t row, row_buffer *out)
{
    const sp_csr *a = job->a;
    int64_t to = out->count;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t place = job->first[a->col_indices[k]];
        out->columns[to] = place;
        move_value(a, k, out, to);
        to += place >= 0;
    }
    out->count = to;
}

static void collect_row(const extraction *job, int64_t row, sp_entry *list, row_buffer *out)
{
    const sp_csr *a = job->a;
    const int64_t begin = a->row_offsets[row];
    int64_t n = 0;
    for (int64_t k = begin; k < a->row_offsets[row + 1]; k++)
        for (int32_t place = job->first[a->col_indices[k]]; place >= 0; place = job->next[place])
            list[n++] = sp_make_entry(place, k - begin, job->shift);
    if (!job->ascending) sp_sort_entries(list, n, job->watch);
    for (int64_t i = 0; i < n; i++) {
        out->columns[out->count] = sp_entry_col(list[i], job->shift);
        move_value(a, begin + sp_entry_source(list[i], job->shift), out, out->count++);
    }
}

static sp_status take_row(void *own, int64_t i, int64_t entries, row_buffer *out)
{
    const worker *w = own;
    const int64_t row = source_row(w->job->rows, i);
    const sp_status status = sp_row_buffer_reserve(out, entries + 1); /* one for what is not listed */
    if (status != SP_OK) return status;
    if (w->list) collect_row(w->job, row, w->list, out);
    else filter_row(w->job, row, out);
    return SP_OK;
}

/* Places of A's columns in the list. */
static sp_status find_places(sp_context *context, int64_t cols, const int32_t *list, int64_t count, extraction *job)
{
    sp_status status;
    TRY(sp_alloc(context, cols, sizeof *job->first, (void **)&job->first));
    TRY(sp_alloc(context, count, sizeof *job->next, (void **)&job->next));
    if (cols > 0) memset(job->first, -1, (size_t)cols * sizeof *job->first);
    job->ascending = true;
    for (int64_t j = count - 1; j >= 0; j--) {
        job->next[j] = job->first[list[j]];
        job->repeated |= job->next[j] >= 0;
        job->first[list[j]] = (int32_t)j;
        if (j > 0 && list[j] < list[j - 1]) job->ascending = false;
    }
done:
    return status;
}

/* How many entries a row of B has at most; exactly that if columns are repeated. */
static int64_t bound_row(const extraction *job, int64_t row)
{
    const sp_csr *a = job->a;
    int64_t count = 0;
    if (!job->repeated) return a->row_offsets[row + 1] - a->row_offsets[row];
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++)
        for (int32_t place = job->first[a->col_indices[k]]; place >= 0; place = job->next[place]) count++;
    return count;
}

sp_status sp_cpu_extract(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                         const int32_t *cols, int64_t col_count, sp_csr *b)
{
    sp_watch watch = {context, false};
    extraction job = {.a = a, .rows = rows, .shift = sp_entry_shift(col_count), .watch = &watch};
    const int threads = sp_threads_for(context, a->nnz);
    row_method method = {.row = take_row, .worker_size = sizeof(worker), .threads = threads, .pattern = !a->values};
    worker *workers = NULL;
    sp_entry *lists = NULL;
    int64_t *entries = NULL, longest = 0, total = 0;
    sp_status status;
    if (!cols) return copy_rows(context, a, rows, row_count, b);
    TRY(find_places(context, a->cols, cols, col_count, &job));
    TRY(sp_calloc(context, row_count + 1, sizeof *entries, (void **)&entries));
#pragma omp parallel for schedule(dynamic, 256) reduction(max : longest) reduction(+ : total) num_threads(threads)
    for (int64_t i = 0; i < row_count; i++) {
        if (sp_stops(&watch)) continue;
        const int64_t most = entries[i + 1] = bound_row(&job, source_row(rows, i));
        if (most > longest) longest = most;
        total += most;
    }
    TRY(sp_watched(&watch));
    TRY(sp_alloc(context, threads, sizeof *workers, (void **)&workers));
    if (!job.ascending || job.repeated)
        TRY(sp_alloc(context, longest * threads, sizeof *lists, (void **)&lists));
    for (int t = 0; t < threads; t++) workers[t] = (worker){&job, lists ? lists + longest * t : NULL};
    method.workers = workers;
    status = sp_row_run(context, row_count, col_count, &entries, total, &method, a->value_type, b);
    if (status == SP_OK && watch.stopped) { /* in the middle of a row */
        sp_csr_free(context, b);
        status = sp_watched(&watch);
    }
done:
    FREE_ALL(context, job.first, job.next, entries, workers, lists);
    return status;
}

sp_status sp_cpu_find_outside(sp_context *context, const int32_t *list, int64_t count, int64_t bound, int64_t *place)
{
    int64_t first = count;
#pragma omp parallel for schedule(static) reduction(min : first) num_threads(sp_threads_for(context, count / 4))
    for (int64_t i = 0; i < count; i++)
        if ((list[i] < 0 || list[i] >= bound) && i < first) first = i;
    *place = first < count ? first : -1;
    return SP_OK;
}
