/* C = the entries of A·B that are large enough, and of these the k largest of each row (B is the transpose of the
 * rows that A's rows are compared with).
 *
 * A thread sums a row in windows of columns whose sums stay in the second-level cache: a sum a column, and a mark for
 * each line (eight neighbouring columns, a cache line of sums), so that the inner loop has no branch. Then the marked
 * lines are compared with the smallest value that can still be kept, four sums at a time. Few pass, and go to a heap of
 * the k largest or, without a k, directly to C. So neither a row of the product nor the list of its columns is made.
 * Rows with many products need no marks: all lines are compared. Rows with few products among many columns are summed
 * in a hash table, which takes less of the caches. Sums are f64 and run over A's row in ascending order.
 *
 * A product costs 12 bytes of B (8 for f32), and a read and a write in the cache.
 */
#include <math.h>

#include "base/kernel.h"
#include "base/search.h"
#include "base/vectors.h"
#include "core/backend_cpu.h"
#include "core/rows.h"
#include "core/table.h"

enum {
    LINE_COLUMNS = 8,
    WINDOW = 1 << 15,    /* columns: 256 KB of sums, half of a small second-level cache */
    DENSE_SHARE = LINE_COLUMNS,  /* rows with a product for this many columns touch most lines: marks do not pay */
    WINDOW_PRODUCTS = 1 << 12, /* of a row in a window, on average: for fewer, entering the rows of B again takes longer
                                  than the cache saves */
    TABLE_PRODUCTS = 1 << 12, /* the table then takes 96 KB, and a quarter of it for a quarter of them */
    TABLE_SHARE = 32,         /* columns a product, from which on the table is faster than lines */
    SPLITS_SHARE = 2     /* the places where rows of B enter a window are at most nnz / SPLITS_SHARE */
};

/* A row is expected to keep sums of at least this part of the least that the row before kept. */
static const double LIKELY = 0.8;

/* Half a line: a register of AVX2. */
typedef double four __attribute__((vector_size(LINE_COLUMNS / 2 * sizeof(double))));
typedef int64_t four_masks __attribute__((vector_size(LINE_COLUMNS / 2 * sizeof(int64_t))));

typedef struct pair {
    double value;
    int32_t column;
} pair;

/* The join, as all threads see it. */
typedef struct join {
    const sp_csr *a, *b;
    const double *factors; /* of A's rows, or NULL */
    int64_t k;             /* 0: all */
    double threshold;
    bool skip_self;
    int64_t window, windows; /* columns of a window, a power of two; their number */
    const int64_t *splits;   /* row j of B enters window w at splits[j * (windows + 1) + w]; NULL if there is one */
} join;

/* One thread's memory. */
typedef struct worker {
    const join *job;
    void *block;
    double *sums;   /* of a window; 0 between windows; on a 64-byte boundary */
    uint64_t *marks; /* a byte a line, 0 between windows */
    double *slots;  /* of the table; 0 between rows */
    int32_t *keys;
    pair *heap;     /* the kept entries, the least first; without a k those of a table, in any order */
    uint64_t *order[2];
    int64_t kept;
    double likely; /* a table's k largest are expected to be at least this */
    char apart[APART];
} worker;

/* ---- the k largest ------------------------------------------------------------------------------------- */

/* Whether x goes before y: it is smaller, or equal and further right. */
static inline bool goes_first(pair x, pair y)
{
    return x.value < y.value || (x.value == y.value && x.column > y.column);
}

static void sift_down(pair *heap, int64_t count, pair moving)
{
    int64_t at = 0;
    for (int64_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && goes_first(heap[child + 1], heap[child])) child++;
        if (!goes_first(heap[child], moving)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void sift_up(pair *heap, int64_t at, pair moving)
{
    for (; at > 0 && goes_first(moving, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = moving;
}

/* Keeps an entry of at least `least`, unless the heap is full of better ones, and returns the least that can be kept
 * from here on. */
static double keep(worker *w, pair found, double least)
{
    const int64_t k = w->job->k;
    if (w->kept < k) sift_up(w->heap, w->kept++, found);
    else if (goes_first(w->heap[0], found)) sift_down(w->heap, k, found);
    return w->kept < k ? least : w->heap[0].value;
}

/* Appends the heap by ascending columns. */
static sp_status take_heap(worker *w, row_buffer *out)
{
    sp_status status = sp_row_buffer_reserve(out, w->kept);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < w->kept; i++) w->order[0][i] = pack_entry(w->heap[i].column, (uint32_t)i);
    const uint64_t *sorted = sort_entries(w->order[0], w->order[1], w->kept, w->job->b->cols);
    for (int64_t i = 0; i < w->kept; i++, out->count++) {
        const pair *taken = &w->heap[(uint32_t)sorted[i]];
        out->columns[out->count] = taken->column;
        store_value(out->values, w->job->b->value_type, out->count, taken->value);
    }
    w->kept = 0;
    return SP_OK;
}

/* ---- a row --------------------------------------------------------------------------------------------- */

/* Of B, which has values. */
static inline double value_of(const void *values, int type, int64_t at)
{
    return type == SP_F32 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

/* Rows of B are reached through A's columns: their offsets are asked for 16 entries ahead, their first entries 6. */
static inline void prefetch_rows(const join *job, int64_t e)
{
    const sp_csr *a = job->a, *b = job->b;
    if (job->splits || e + 16 >= a->nnz) return;
    __builtin_prefetch(&b->row_offsets[a->col_indices[e + 16]]);
    const int64_t start = b->row_offsets[a->col_indices[e + 6]];
    __builtin_prefetch(b->col_indices + start);
    __builtin_prefetch((const char *)b->values + (size_t)start * sp_value_size(b->value_type));
}

/* Adds the products of a row that lie in a window. */
KERNEL void add_products(worker *w, int64_t row, int64_t window, int type, bool mark)
{
    const join *job = w->job;
    const sp_csr *a = job->a, *b = job->b;
    const int32_t *columns = b->col_indices;
    const void *values = b->values;
    const double factor = job->factors ? job->factors[row] : 1;
    const uint32_t within = (uint32_t)(job->window - 1);
    uint8_t *marks = (uint8_t *)w->marks;
    double *sums = w->sums;
    for (int64_t e = a->row_offsets[row]; e < a->row_offsets[row + 1]; e++) {
        const int64_t j = a->col_indices[e];
        const int64_t *ends = job->splits ? job->splits + j * (job->windows + 1) + window : b->row_offsets + j;
        prefetch_rows(job, e);
        const double weight = factor * load_value(a->values, (sp_value_type)type, e);
        for (int64_t q = ends[0], end = ends[1]; q < end; q++) {
            const uint32_t at = (uint32_t)columns[q] & within;
            sums[at] += weight * value_of(values, type, q);
            if (mark) marks[at / LINE_COLUMNS] = 1;
        }
    }
}

static void add_window(worker *w, int64_t row, int64_t window, bool mark)
{
    if (w->job->b->value_type == SP_F32 && mark) add_products(w, row, window, SP_F32, true);
    else if (w->job->b->value_type == SP_F32) add_products(w, row, window, SP_F32, false);
    else if (mark) add_products(w, row, window, SP_F64, true);
    else add_products(w, row, window, SP_F64, false);
}

/* Takes the entries of a line that has one of at least *least. */
static sp_status take_line(worker *w, int64_t row, int32_t column, const double *sums, double *least, row_buffer *out)
{
    const join *job = w->job;
    sp_status status = SP_OK;
    if (!job->k) TRY(sp_row_buffer_reserve(out, LINE_COLUMNS));
    for (int i = 0; i < LINE_COLUMNS; i++) {
        if (!(sums[i] >= *least) || sums[i] == 0 || (job->skip_self && column + i == row)) continue;
        if (job->k) { /* columns ascend: an equal entry is not better than those that the heap has */
            *least = keep(w, (pair){sums[i], column + i}, *least);
            if (w->kept == job->k) *least = nextafter(*least, INFINITY);
        } else {
            out->columns[out->count] = column + i;
            store_value(out->values, job->b->value_type, out->count++, sums[i]);
        }
    }
done:
    return status;
}

KERNEL bool has_large(const four *sums, int count, double least)
{
    four_masks any = {0};
    for (int i = 0; i < count; i++) any |= sums[i] >= least;
    return any[0] | any[1] | any[2] | any[3];
}

/* Compares neighbouring lines with *least and clears them. */
KERNEL sp_status compare_some(worker *w, int64_t row, int64_t first, int lines, double *least, row_buffer *out)
{
    double *sums = w->sums + (first & (w->job->window - 1));
    four *fours = (four *)sums;
    sp_status status = SP_OK;
    if (has_large(fours, 2 * lines, *least))
        for (int i = 0; i < lines; i++)
            if (has_large(fours + 2 * i, 2, *least))
                TRY(take_line(w, row, (int32_t)(first + i * LINE_COLUMNS), sums + i * LINE_COLUMNS, least, out));
    for (int i = 0; i < 2 * lines; i++) fours[i] = (four){0};
done:
    return status;
}

/* Compares all lines of a window, or the marked ones, and clears them. */
KERNEL sp_status compare_lines(worker *w, int64_t row, int64_t window, bool marked, double *least, row_buffer *out)
{
    const int64_t first = window * w->job->window, left = w->job->b->cols - first;
    const int64_t end = first + (left < w->job->window ? left : w->job->window);
    sp_status status = SP_OK;
    for (int64_t column = first; column < end; column += 8 * LINE_COLUMNS) {
        uint64_t *word = &w->marks[(column - first) / (8 * LINE_COLUMNS)];
        if (!marked) {
            TRY(compare_some(w, row, column, 8, least, out));
            continue;
        }
        for (uint64_t found = *word; found; found &= found - 1)
            TRY(compare_some(w, row, column + __builtin_ctzll(found) / 8 * LINE_COLUMNS, 1, least, out));
        *word = 0;
    }
done:
    return status;
}

typedef sp_status compare_window(worker *w, int64_t row, int64_t window, bool marked, double *least, row_buffer *out);

static sp_status compare_portable(worker *w, int64_t row, int64_t window, bool marked, double *least, row_buffer *out)
{
    return compare_lines(w, row, window, marked, least, out);
}

#ifdef __x86_64__
AVX2 static sp_status compare_avx2(worker *w, int64_t row, int64_t window, bool marked, double *least,
                                   row_buffer *out)
{
    return compare_lines(w, row, window, marked, least, out);
}
#endif

static compare_window *choose_compare(void)
{
#ifdef __x86_64__
    if (have_avx2()) return compare_avx2;
#endif
    return compare_portable;
}

/* ---- rows of few products ------------------------------------------------------------------------------ */

KERNEL void add_to_table(worker *w, int64_t row, int bits, int type)
{
    const join *job = w->job;
    const sp_csr *a = job->a, *b = job->b;
    const void *values = b->values;
    const double factor = job->factors ? job->factors[row] : 1;
    for (int64_t e = a->row_offsets[row]; e < a->row_offsets[row + 1]; e++) {
        const double weight = factor * load_value(a->values, (sp_value_type)type, e);
        const int64_t j = a->col_indices[e], end = b->row_offsets[j + 1];
        prefetch_rows(job, e);
        for (int64_t q = b->row_offsets[j]; q < end; q++) {
            const uint32_t at = table_slot(w->keys, bits, b->col_indices[q]);
            w->keys[at] = b->col_indices[q];
            w->slots[at] += weight * value_of(values, type, q);
        }
    }
}

/* Keeps what is at least `least` of a table with `slots` slots, in their order. An empty slot has the sum 0, which is
 * never kept. */
static void keep_slots(worker *w, int64_t row, int64_t slots, double least)
{
    const join *job = w->job;
    for (int64_t slot = 0; slot < slots; slot += LINE_COLUMNS / 2) {
        if (!has_large((four *)(w->slots + slot), 1, least)) continue;
        for (int64_t i = slot; i < slot + LINE_COLUMNS / 2; i++) {
            const pair found = {w->slots[i], w->keys[i]};
            if (!(found.value >= least) || found.value == 0 || (job->skip_self && found.column == row)) continue;
            if (job->k) least = keep(w, found, least);
            else w->heap[w->kept++] = found;
        }
    }
}

/* Rows are often alike. So sums are first compared with those that the thread's last row kept, and all are looked at
 * only if fewer than k are large enough. The heap then sees few sums that it does not keep: with 100 products a row,
 * 20 % of the join. */
static void join_by_table(worker *w, int64_t row, int64_t products)
{
    const join *job = w->job;
    const int bits = table_bits(products);
    const int64_t slots = (int64_t)1 << bits;
    clear_keys(w->keys, bits);
    if (job->b->value_type == SP_F32) add_to_table(w, row, bits, SP_F32);
    else add_to_table(w, row, bits, SP_F64);
    keep_slots(w, row, slots, fmax(w->likely, job->threshold));
    if (w->likely > job->threshold && w->kept < job->k) {
        w->kept = 0;
        keep_slots(w, row, slots, job->threshold);
    }
    w->likely = w->kept > 0 && w->kept == job->k ? LIKELY * w->heap[0].value : -INFINITY;
    memset(w->slots, 0, (size_t)slots * sizeof *w->slots);
}

/* A row_method's `row`. */
static sp_status join_row(void *worker_, int64_t row, int64_t products, row_buffer *out)
{
    worker *w = worker_;
    const join *job = w->job;
    compare_window *compare = choose_compare();
    const bool mark = products < job->b->cols / DENSE_SHARE;
    double least = job->threshold;
    sp_status status = SP_OK;
    if (products == 0) return SP_OK;
    if (products <= TABLE_PRODUCTS && products < job->b->cols / TABLE_SHARE) {
        join_by_table(w, row, products);
        return take_heap(w, out);
    }
    for (int64_t window = 0; window < job->windows; window++) {
        add_window(w, row, window, mark);
        TRY(compare(w, row, window, mark, &least, out));
    }
    if (job->k) TRY(take_heap(w, out));
done:
    return status;
}

/* ---- the join ------------------------------------------------------------------------------------------ */

/* Chooses the windows and finds where B's rows enter them. */
static sp_status cut_windows(sp_context *context, join *job, int64_t products, int64_t **splits)
{
    const sp_csr *b = job->b;
    const int64_t by_memory = b->nnz / SPLITS_SHARE / (b->rows + 1);
    const int64_t by_products = products / WINDOW_PRODUCTS / (job->a->rows + 1);
    const int64_t most = 1 + (by_memory < by_products ? by_memory : by_products);
    sp_status status = SP_OK;
    job->window = WINDOW;
    while (job->window < b->cols && (b->cols - 1) / job->window + 1 > most) job->window *= 2;
    job->windows = b->cols > 0 ? (b->cols - 1) / job->window + 1 : 0;
    if (job->windows <= 1) goto done;
    TRY(sp_alloc(context, b->rows * (job->windows + 1), sizeof **splits, (void **)splits));
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, b->nnz))
    for (int64_t j = 0; j < b->rows; j++) {
        int64_t *place = *splits + j * (job->windows + 1);
        place[0] = b->row_offsets[j];
        for (int64_t w = 1; w <= job->windows; w++)
            place[w] = w == job->windows ? b->row_offsets[j + 1]
                     : lower_bound_i32(b->col_indices, place[w - 1], b->row_offsets[j + 1], (int32_t)(w * job->window));
    }
    job->splits = *splits;
done:
    return status;
}

static sp_status open_worker(sp_context *context, const join *job, worker *w, int64_t *bytes)
{
    const int64_t window = job->window;
    sp_status status;
    w->job = job;
    w->likely = -INFINITY;
    TRY(sp_calloc(context, window + 2 * TABLE_PRODUCTS + LINE_COLUMNS, sizeof(double), &w->block));
    w->sums = (double *)(((uintptr_t)w->block + 63) / 64 * 64);
    w->slots = w->sums + window;
    TRY(sp_alloc(context, 2 * TABLE_PRODUCTS, sizeof *w->keys, (void **)&w->keys));
    TRY(sp_calloc(context, window / LINE_COLUMNS / 8 + 1, sizeof *w->marks, (void **)&w->marks));
    const int64_t room = job->k ? job->k : TABLE_PRODUCTS;
    TRY(sp_alloc(context, room, sizeof *w->heap, (void **)&w->heap));
    for (int i = 0; i < 2; i++) TRY(sp_alloc(context, room, sizeof *w->order[i], (void **)&w->order[i]));
    *bytes += window * 8 + window / LINE_COLUMNS + 2 * TABLE_PRODUCTS * 12 +
              room * (int64_t)(sizeof *w->heap + 2 * sizeof *w->order[0]);
done:
    return status;
}

sp_status sp_cpu_similarity(sp_context *context, const sp_csr *a, const double *factors, const sp_csr *b,
                            const sp_similarity_options *options, sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    join job = {.a = a, .b = b, .factors = factors, .k = options->top_k, .threshold = options->threshold,
                .skip_self = options->skip_self};
    int64_t *products = NULL, *splits = NULL, largest;
    worker *workers = NULL;
    int threads = 0;
    sp_status status;
    if (job.k > b->cols) job.k = b->cols;
    TRY(sp_row_products(context, a, b, &products, &info->products, &largest));
    TRY(cut_windows(context, &job, info->products, &splits));
    threads = sp_threads_for(context, info->products);
    TRY(sp_calloc(context, threads, sizeof *workers, (void **)&workers));
    for (int t = 0; t < threads; t++) TRY(open_worker(context, &job, &workers[t], &info->peak_bytes));
    if (splits) info->peak_bytes += b->rows * (job.windows + 1) * (int64_t)sizeof *splits;
    const row_method method = {.row = join_row, .workers = workers, .worker_size = sizeof *workers, .threads = threads,
                               .row_entries = job.k, .bytes = &info->peak_bytes};
    TRY(sp_row_run(context, a->rows, b->cols, &products, info->products, &method, b->value_type, c));
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    info->numeric_seconds = wall_seconds() - start;
done:
    for (int t = 0; workers && t < threads; t++) {
        FREE_ALL(context, workers[t].block, workers[t].marks, workers[t].keys, workers[t].heap);
        for (int i = 0; i < 2; i++) sp_free(context, workers[t].order[i]);
    }
    FREE_ALL(context, workers, splits, products);
    return status;
}
