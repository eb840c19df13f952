/* Which accumulator takes a row (accumulator.h), how much memory it gets, and the rows of a chunk. */
#include "spgemm/cpu/kernels.h"

/* From this share of all columns on a row is summed densely, whatever memory that takes. */
enum { DENSE_SHARE = 16 };
/* The shortest ring of blocks' sums, in columns: 128 KB. */
enum { LEAST_RING = 1 << 12 };

enum { KIND_PATTERN = 12 };

static int kind_of(sp_semiring semiring, sp_value_type type, bool pattern, bool filtered)
{
    const int op = semiring == SP_MIN_PLUS ? 1 : semiring == SP_MAX_TIMES ? 2 : 0;
    return (pattern ? KIND_PATTERN : op * 4 + (type == SP_F64) * 2) + filtered;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static void mark_filter(accumulator *w, const int32_t *columns, int64_t count)
{
    for (int64_t i = 0; i < count; i++) w->filter[columns[i] >> 6] |= (uint64_t)1 << (columns[i] & 63);
}

static void clear_filter(accumulator *w, const int32_t *columns, int64_t count)
{
    for (int64_t i = 0; i < count; i++) w->filter[columns[i] >> 6] = 0;
}

/* `most`: entries that the row may come to have; all of them lie in `columns`. */
static int choose_method(const row_product *job, int64_t row, int64_t products, int64_t most, range columns)
{
    const int64_t cols = job->b->cols;
    if (job->algorithm == SP_SPGEMM_HASH) return ROW_HASH;
    if (job->algorithm == SP_SPGEMM_DENSE) return ROW_DENSE;
    if (!job->mask && single_entry(job, row)) return ROW_COPY;
    if (products <= SHORT_PRODUCTS) return ROW_SHORT;
    if (job->mask && !job->complement) return job->dense ? ROW_DENSE : ROW_HASH;
    if (most >= cols / DENSE_SHARE) return ROW_DENSE;
    const bool dense = job->dense || in_ring(job, columns);
    return dense && products >= range_length(columns) / SCAN_COLUMNS ? ROW_DENSE : ROW_HASH;
}

/* Makes one row of at most `most` entries by the method; its filter is the mask's row. */
static void make_row(accumulator *w, int method, int64_t row, int64_t products, int64_t most, range columns_of_row,
                     row_buffer *out)
{
    const row_product *job = w->job;
    const sp_csr *mask = job->mask;
    const int32_t *columns = mask ? mask->col_indices + mask->row_offsets[row] : NULL;
    const int64_t count = mask ? mask->row_offsets[row + 1] - mask->row_offsets[row] : 0;
    if (mask) mark_filter(w, columns, count);
    if (method == ROW_COPY) sp_row_copy(w, row, products, out);
    else if (method == ROW_SHORT) sp_row_short(w, row, columns, count, out);
    else if (method == ROW_DENSE) sp_row_dense(w, row, products, columns_of_row, columns, count, out);
    else sp_row_hash(w, row, most, columns, count, out);
    if (mask) clear_filter(w, columns, count);
}

/* The most entries that a row of `products` products may have. */
static int64_t most_entries(const row_product *job, int64_t row, int64_t products)
{
    int64_t most = products < job->b->cols ? products : job->b->cols;
    if (job->mask && !job->complement) {
        const int64_t wanted = job->mask->row_offsets[row + 1] - job->mask->row_offsets[row];
        if (wanted < most) most = wanted;
    }
    return most;
}

static sp_status open_dense(accumulator *w, int64_t sums);
static sp_status open_hash(accumulator *w, int64_t entries);

/* Takes the scratch memory that the method needs for a row in these columns. Threads may call it at the same time. */
static inline sp_status reserve(accumulator *w, int method, int64_t entries, range columns)
{
    if (method == ROW_SHORT || method == ROW_COPY) return SP_OK;
    const row_product *job = w->job;
    const int64_t cols = job->b->cols, block = BLOCK * (job->ring < 0 ? cols : job->ring + 1);
    const int64_t own = in_ring(job, columns) ? FREE_COLUMNS : cols;
    const int64_t sums = job->pattern ? 0 : method == ROW_BLOCK ? block : own;
    const bool dense = (method == ROW_DENSE || method == ROW_BLOCK) && (!w->bits || sums > w->sums_room);
    sp_status status = SP_OK;
    if (!dense && (method != ROW_HASH || entries <= w->room)) return SP_OK;
#pragma omp critical(sp_row_buffer)
    status = dense ? open_dense(w, sums) : open_hash(w, entries);
    return status;
}

/* A row with the columns of the one before, whose pattern is the last in `out`. */
static void repeat_row(int64_t count, row_buffer *out)
{
    memcpy(out->columns + out->count, out->columns + out->count - count, (size_t)count * sizeof(int32_t));
    out->count += count;
}

sp_status sp_accumulate_rows(void *worker, int64_t first, int64_t end, int64_t *counts, row_buffer *out)
{
    accumulator *w = worker;
    const row_product *job = w->job;
    const int64_t cols = job->b->cols;
    const bool light = !job->mask && job->algorithm == SP_SPGEMM_AUTO;
    for (int64_t row = first; row < end;) {
        const int64_t shifted = row > first ? sp_shifted_rows(job, row, end) : 0;
        if (shifted) {
            const sp_status room = sp_row_buffer_reserve(out, shifted * counts[row - 1]);
            if (room != SP_OK) return room;
            sp_rows_shifted(w, row, shifted, counts, out);
            row += shifted;
            continue;
        }
        if (light && counts[row] <= SHORT_PRODUCTS) {
            const sp_status made = sp_rows_light(w, &row, end, counts, out);
            if (made != SP_OK) return made;
            if (row == end) break;
        }
        const int64_t products = counts[row];
        if (products == 0) {
            row++;
            continue;
        }
        const int64_t most = most_entries(job, row, products);
        const int64_t words = cols / 64, entries = job->a->row_offsets[row + 1] - job->a->row_offsets[row];
        const bool ranged = products > SHORT_PRODUCTS && (job->local || (products >= words && entries <= words));
        range columns = {0, (int32_t)(cols - 1)};
        if (ranged) columns = row_range(job, row);
        const int method = choose_method(job, row, products, most, columns);
        const bool block = job->blocks && (method == ROW_DENSE || method == ROW_HASH);
        const bool tries = block && !job->pattern && sp_worth_block(job, row, products, most);
        int rows = tries ? sp_block_rows(job, row, end) : 1;
        if (rows > 1) {
            if (!ranged) columns = row_range(job, row);
            if (!sp_fits_ring(job, columns, products)) rows = 1;
        }
        sp_status status = reserve(w, rows > 1 ? ROW_BLOCK : method, most, columns);
        int64_t room = rows * most, listed = SHORT_PRODUCTS; /* take_short clears them ahead, take_wanted one */
        if (rows > 1 && job->mask) {
            listed = products < cols ? products : cols;
            room = job->complement ? rows * listed : job->mask->row_offsets[row + rows] - job->mask->row_offsets[row];
        }
        if (status == SP_OK) status = sp_row_buffer_reserve(out, room + listed + TAKEN_AHEAD);
        if (status != SP_OK) return status;
        const int64_t before = out->count;
        if (rows > 1) {
            if (job->mask) sp_rows_block_masked(w, row, rows, columns, room, counts, out);
            else sp_rows_block(w, row, rows, columns, counts, out);
            w->rows[ROW_BLOCK] += rows;
        } else if (most > 0) {
            if (block && job->pattern && row > first && same_columns(job->a, row - 1, row))
                repeat_row(counts[row - 1], out);
            else make_row(w, method, row, products, most, columns, out);
            w->rows[method]++;
        }
        if (rows == 1) counts[row] = out->count - before;
        row += rows;
    }
    return SP_OK;
}

/* ---- values for a pattern ------------------------------------------------------------------------------ */

void sp_accumulate_values(accumulator *w, int64_t first, int64_t end, bool masked, sp_csr *c)
{
    const row_product *job = w->job;
    const int kind = (job->kind & ~1) + masked;
    for (int64_t row = first; row < end;) {
        const int64_t to = c->row_offsets[row], count = c->row_offsets[row + 1] - to;
        const int32_t *columns = c->col_indices + to;
        const int64_t shifted = sp_shifted_rows(job, row, end);
        if (shifted) {
            sp_values_shifted(job, row, shifted, columns, count, c->values, to);
            row += shifted;
            continue;
        }
        int rows = 1;
        if (job->blocks && !masked && count > 0 && sp_fits_ring(job, (range){columns[0], columns[count - 1]}, count))
            rows = sp_block_rows(job, row, end);
        row += rows;
        if (count == 0) continue;
        if (masked) mark_filter(w, columns, count);
        if (rows > 1) {
            sp_values_block(w, row - rows, rows, columns, count, c->values, to);
        } else if (!masked && single_entry(job, row - 1)) {
            sp_values_copy(job, job->a->row_offsets[row - 1], c->values, to);
        } else if (w->sums_room >= job->b->cols || in_ring(job, (range){columns[0], columns[count - 1]})) {
            sp_values_dense(w, row - 1, kind, columns, count, c->values, to);
        } else {
            sp_values_hash(w, row - 1, kind, columns, count, c->values, to);
        }
        if (masked) clear_filter(w, columns, count);
    }
}

/* ---- life ---------------------------------------------------------------------------------------------- */

/* Whether half of a sample of A's rows have the columns of the row after them. */
static bool rows_repeat(const sp_csr *a)
{
    const int64_t step = a->rows / 256 + 1;
    int64_t same = 0, seen = 0;
    for (int64_t row = 0; row + 1 < a->rows; row += step, seen++) same += same_columns(a, row, row + 1);
    return same * 2 > seen;
}

/* Whether each row of B has one entry, as in matrices that put columns into groups or another order. Aggregates of a
 * multigrid take 0.77 of the time if it is known. */
static bool has_single_entries(const sp_csr *b, int threads)
{
    int64_t others = b->nnz != b->rows;
    if (others) return false;
#pragma omp parallel for schedule(static) reduction(+ : others) num_threads(threads)
    for (int64_t row = 0; row < b->rows; row++) others += b->row_offsets[row] != row;
    return others == 0;
}

/* Whether more than half of a sample of C's rows span less than a 16th of its columns. */
static bool rows_are_local(const row_product *job)
{
    const int64_t rows = job->a->rows, step = (rows / 256) | 1; /* odd: numberings often have even periods */
    int64_t local = 0, seen = 0;
    if (job->b->cols < SCAN_COLUMNS) return false;
    for (int64_t row = 0; row < rows; row += step) {
        const int64_t length = range_length(row_range(job, row));
        seen += length > 0;
        local += length > 0 && length < job->b->cols / 16;
    }
    return local * 2 > seen;
}

/* Bytes of a dense accumulator with `sums` sums a column. */
static int64_t dense_bytes(int64_t cols, int sums) { return cols * (int64_t)sizeof(double) * sums + cols / 8; }

/* Bytes of a hash accumulator for `entries` entries: slots of a key and a sum; two lists. */
static int64_t hash_bytes(const row_product *job, int64_t entries)
{
    return entries ? ((int64_t)1 << table_bits(entries)) * (job->pattern ? 4 : 12) + entries * 16 : 0;
}

void sp_row_product_values(row_product *job, const sp_csr *a, const sp_csr *b, sp_semiring semiring)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    const void *one = a->value_type == SP_F32 ? (const void *)&one_f32 : (const void *)&one_f64;
    const bool counts = semiring == SP_PLUS_PAIR; /* plus-times on patterns */
    job->a = a;
    job->b = b;
    job->a_select = counts || !a->values ? 0 : -1;
    job->b_select = counts || !b->values ? 0 : -1;
    job->a_values = job->a_select ? a->values : one;
    job->b_values = job->b_select ? b->values : one;
}

/* Bytes of a share of the matrices, C guessed at one entry in `products_an_entry` products, a thread. */
static int64_t share_of_matrices(const row_product *job, int64_t products, int products_an_entry, int share)
{
    const sp_csr *a = job->a, *b = job->b, *mask = job->mask;
    const int64_t entry = (int64_t)(sizeof(int32_t) + sp_value_size(a->value_type));
    int64_t entries = products / products_an_entry;
    if (mask && !job->complement && mask->nnz < entries) entries = mask->nnz;
    const int64_t matrices = 8 * (a->rows * 2 + b->rows) + entry * (a->nnz + (a == b ? 0 : b->nnz) + entries);
    return matrices / share / job->context->threads;
}

void sp_row_product_begin(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          int64_t products, int64_t largest, row_product *job)
{
    *job = (row_product){.context = context, .mask = options->mask, .algorithm = options->algorithm,
                         .complement = options->complement, .pattern = options->semiring == SP_OR_AND};
    sp_row_product_values(job, a, b, options->semiring);
    job->single = !left_out("spgemm-single") && has_single_entries(b, sp_threads_for(context, b->rows));
    job->kind = kind_of(options->semiring, a->value_type, job->pattern, options->mask != NULL);
    job->lanes = sp_fits_lanes(job);

    /* All threads' sums may take an eighth of the matrices' memory; a 32nd where the rows of a mask fit small tables.
     * Finite elements have an entry of C in ten to thirty products, and a row's columns lie together: a 32nd is
     * enough for blocks. */
    const int64_t cols = b->cols;
    const bool wanted = options->mask && !options->complement;
    const bool elements = options->algorithm == SP_SPGEMM_AUTO && largest > 0 && rows_repeat(a);
    const int products_an_entry = elements ? 16 : 4;
    const int64_t share = share_of_matrices(job, products, products_an_entry, 32);
    job->dense = dense_bytes(cols, 1) <= (wanted ? share : share_of_matrices(job, products, products_an_entry, 8)) ||
                 cols <= (wanted ? FREE_COLUMNS / 2 : FREE_COLUMNS);
    job->local = !wanted && rows_are_local(job) &&
                 (job->dense || cols / 8 <= share_of_matrices(job, products, products_an_entry, 8));
    job->blocks = elements && !(options->mask && job->pattern) && options->semiring != SP_MIN_PLUS &&
                  options->semiring != SP_MAX_TIMES;
    job->ring = -1;
    if (cols <= FREE_COLUMNS || dense_bytes(cols, BLOCK) <= share) return;
    for (job->ring = LEAST_RING; dense_bytes(2 * job->ring, BLOCK) <= share;) job->ring *= 2;
    job->ring--;
}

void sp_accumulators_close(sp_context *context, accumulator *workers, int threads)
{
    for (int t = 0; workers && t < threads; t++) {
        accumulator *w = &workers[t];
        void *arrays[] = {w->sums_block, w->bits, w->summary, w->filter, w->keys, w->slots, w->list[0], w->list[1]};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_free(context, arrays[i]);
    }
    sp_free(context, workers);
}

/* This many sums, in place of those there are, which hold the identity. */
static sp_status open_dense(accumulator *w, int64_t sums)
{
    const row_product *job = w->job;
    sp_context *context = job->context;
    const int64_t words = job->b->cols / 64 + 1;
    sp_status status = SP_OK;
    if (sums > 0) {
        sp_free(context, w->sums_block);
        w->bytes -= w->sums_room * 8;
        w->sums_room = 0;
        TRY(sp_alloc(context, sums + 8, sizeof(double), &w->sums_block));
        w->sums = (double *)(((uintptr_t)w->sums_block + 63) / 64 * 64);
        const double empty = (job->kind & ~1) >= 8 ? identity(SP_MAX_TIMES)
                           : (job->kind & ~1) >= 4 ? identity(SP_MIN_PLUS) : identity(SP_PLUS_TIMES);
        for (int64_t i = 0; i < sums; i++) w->sums[i] = empty;
        w->bytes += sums * 8;
        w->sums_room = sums;
    }
    if (w->bits) goto done;
    TRY(sp_calloc(context, words / 64 + 1, sizeof(uint64_t), (void **)&w->summary));
    TRY(sp_calloc(context, words, sizeof(uint64_t), (void **)&w->bits));
    w->bytes += words * 8 + words / 8;
done:
    return status;
}

/* Arrays for `entries` entries and a quarter more; the content of smaller ones is not kept. */
static sp_status open_hash(accumulator *w, int64_t entries)
{
    const row_product *job = w->job;
    sp_context *context = job->context;
    void **arrays[] = {(void **)&w->keys, (void **)&w->slots, (void **)&w->list[0], (void **)&w->list[1]};
    const int64_t slots = (int64_t)1 << table_bits(entries);
    const int64_t room = entries + entries / 4 < slots / 2 ? entries + entries / 4 : slots / 2;
    sp_status status;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        sp_free(context, *arrays[i]);
        *arrays[i] = NULL;
    }
    w->bytes -= hash_bytes(job, w->room);
    w->room = 0;
    TRY(sp_alloc(context, slots, sizeof(int32_t), (void **)&w->keys));
    if (!job->pattern) TRY(sp_alloc(context, slots, sizeof(double), (void **)&w->slots));
    TRY(sp_alloc(context, room, sizeof(uint64_t), (void **)&w->list[0]));
    TRY(sp_alloc(context, room, sizeof(uint64_t), (void **)&w->list[1]));
    w->room = room;
    w->bytes += hash_bytes(job, room);
done:
    return status;
}

sp_status sp_accumulators_open(sp_context *context, const row_product *job, bool filter, int threads,
                               accumulator **workers)
{
    const int64_t words = job->b->cols / 64 + 1;
    sp_status status = sp_calloc(context, threads, sizeof **workers, (void **)workers);
    for (int t = 0; t < threads && status == SP_OK; t++) {
        accumulator *w = &(*workers)[t];
        w->job = job;
        if (!filter) continue;
        TRY(sp_calloc(context, words, sizeof(uint64_t), (void **)&w->filter));
        w->bytes += words * 8;
    }
done:
    return status;
}

sp_status sp_accumulators_reserve(accumulator *workers, int threads, int64_t longest)
{
    const row_product *job = workers->job;
    const range all = {0, (int32_t)(job->b->cols - 1)}, few = {0, FREE_COLUMNS - 1};
    const bool dense = job->algorithm == SP_SPGEMM_DENSE ||
                       (job->algorithm == SP_SPGEMM_AUTO &&
                        (job->dense || dense_bytes(job->b->cols, 1) <= hash_bytes(job, longest)));
    sp_status status = SP_OK;
    for (int t = 0; t < threads && status == SP_OK; t++) {
        if (job->blocks) status = reserve(&workers[t], ROW_BLOCK, longest, all);
        if (status == SP_OK && in_ring(job, few)) status = reserve(&workers[t], ROW_DENSE, longest, few);
        if (status == SP_OK) status = reserve(&workers[t], dense ? ROW_DENSE : ROW_HASH, longest, all);
    }
    return status;
}
