/* C = epilogue(A·B): the Markov product on the CPU; see sp_markov_epilogue in sparse.h for the epilogue.
 *
 * Each row is summed in f64, in an accumulator chosen by its products p against the columns N:
 *   hash   p < N / 64   a table of at least 2p slots, its entries sorted afterwards;
 *   dense  otherwise    N sums, a mark on each touched line of eight.
 * Where B's columns lie in clumps, its rows are added to the dense sums eight columns at a time (lines.h). Where B is
 * dense, blocks of rows are summed together, 16 columns at a time (panels.h).
 * The scan of the sums takes only what is above the cutoff, mostly a hundredth of the row; the rest is looked at
 * again only if recovery asks for it, and never stored with its columns.
 *
 * Sums run over A's row by ascending (original) column and, within a row of C, likewise: the order in which mcl adds,
 * so that results agree to the last bit.
 */
#include <math.h>
#include <string.h>

#include "core/backend_cpu.h"
#include "base/ablation.h"
#include "base/bits.h"
#include "base/longest.h"
#include "base/select.h"
#include "core/rows.h"
#include "core/table.h"
#include "markov/cpu/lines.h"
#include "markov/cpu/panels.h"

enum { DENSE_SHARE = 64 };
/* Indexing B's lines reads it twice and pays from about this many products an entry of B, if a line holds enough
 * entries: a line costs about as much as two entries one by one. */
static const double LINES_PRODUCTS = 8, LINES_FILL = 2;

typedef struct markov {
    const sp_csr *a, *b;
    const sp_markov_epilogue *epilogue;
    line_index index;    /* of B; empty where it does not pay */
    panel_index panels;  /* likewise */
    int64_t block_rows;  /* rows that are summed together by panels */
    float cutoff;        /* the smallest f32 not below the epilogue's */
    sp_markov_row *rows; /* may be NULL */
} markov;

/* One thread's scratch memory. */
typedef struct markov_worker {
    const markov *job;
    line_sums sums;             /* dense accumulator */
    panel_block *block;         /* the same for several rows */
    int32_t *keys;              /* hash accumulator, -1: empty */
    double *slots;
    uint64_t *sorted[2];        /* entries packed for sorting */
    int32_t *columns;               /* what the cutoff leaves of the row */
    float *values, *scratch;
    int32_t *all_columns;           /* all of the row, where it was hashed */
    float *all_values;
    int64_t terms;              /* A's row in the order of summation */
    const int32_t *term_rows;
    const float *weights;
    int32_t *sorted_rows;       /* where it is kept if that is not the order of storage */
    float *sorted_weights;
    bool hashed;
    int64_t expanded, dense_rows;
    char apart[APART];
} markov_worker;

/* ---- the terms of a row -------------------------------------------------------------------------------- */

/* Lists A's row in the order in which its terms are added. */
static void list_terms(markov_worker *w, int64_t row)
{
    const sp_csr *a = w->job->a;
    const int32_t *order = w->job->epilogue->order;
    const int32_t *columns = a->col_indices + a->row_offsets[row];
    const float *weights = (const float *)a->values + a->row_offsets[row];
    w->terms = a->row_offsets[row + 1] - a->row_offsets[row];
    w->term_rows = columns;
    w->weights = weights;
    if (!order) return;
    uint64_t *list = w->sorted[0];
    for (int64_t k = 0; k < w->terms; k++) list[k] = pack_entry(order[columns[k]], (uint32_t)k);
    list = sort_entries(list, w->sorted[1], w->terms, a->cols);
    for (int64_t k = 0; k < w->terms; k++) {
        w->sorted_rows[k] = columns[(uint32_t)list[k]];
        w->sorted_weights[k] = weights[(uint32_t)list[k]];
    }
    w->term_rows = w->sorted_rows;
    w->weights = w->sorted_weights;
}

/* ---- dense accumulation -------------------------------------------------------------------------------- */

/* mcl's dense path multiplies in f32, its sparse path in f64; both add in f64. */
static inline double multiply(float a, float b, bool f32_product)
{
    return f32_product ? (double)(a * b) : (double)a * (double)b;
}

/* With as many products as columns, hardly a line is left untouched. */
static void accumulate_dense(markov_worker *w, int64_t products, bool f32_products)
{
    const markov *job = w->job;
    const bool by_lines = job->index.offsets != NULL, all = !by_lines && products >= job->b->cols;
    if (all) sp_line_touch_all(&w->sums);
    for (int64_t k = 0; k < w->terms; k++) {
        if (by_lines) sp_line_add(&w->sums, job->b, &job->index, w->term_rows[k], w->weights[k], f32_products);
        else sp_line_add_entries(&w->sums, job->b, w->term_rows[k], w->weights[k], f32_products, !all);
    }
}

/* ---- hash accumulation --------------------------------------------------------------------------------- */

/* Sums the row in the table and collects all of it, by ascending column. */
static int64_t collect_hashed(markov_worker *w, int64_t products, bool f32_products)
{
    const sp_csr *b = w->job->b;
    const float *values = b->values;
    const int bits = table_bits(products);
    const uint32_t size = 1u << bits, mask = size - 1;
    int32_t *keys = w->keys;
    double *slots = w->slots;
    memset(keys, 0xff, size * sizeof *keys);
    for (int64_t k = 0; k < w->terms; k++) {
        const int32_t j = w->term_rows[k];
        for (int64_t q = b->row_offsets[j]; q < b->row_offsets[j + 1]; q++) {
            const int32_t column = b->col_indices[q];
            const double product = multiply(w->weights[k], values[q], f32_products);
            uint32_t at = hash_column(column, bits);
            while (keys[at] != column && keys[at] != -1) at = (at + 1) & mask;
            if (keys[at] == -1) {
                keys[at] = column;
                slots[at] = product;
            } else {
                slots[at] += product;
            }
        }
    }
    int64_t count = 0;
    uint64_t *list = w->sorted[0];
    for (uint32_t at = 0; at < size; at++)
        if (keys[at] != -1 && slots[at] != 0) list[count++] = pack_entry(keys[at], bits_of_float((float)slots[at]));
    list = sort_entries(list, w->sorted[1], count, b->cols);
    for (int64_t i = 0; i < count; i++) {
        w->all_columns[i] = (int32_t)(list[i] >> 32);
        w->all_values[i] = float_of_bits((uint32_t)list[i]);
    }
    return count;
}

static bool multiplies_in_f32(const markov *job, int64_t products)
{
    const int64_t factor = job->epilogue->dense_factor;
    return factor > 0 && products >= (job->b->cols + factor - 1) / factor;
}

/* Makes the row; leaves what is above the cutoff in columns and values and returns how many those are. */
static int64_t expand_row(markov_worker *w, int64_t row, int64_t products, row_figures *figures)
{
    const markov *job = w->job;
    const int64_t cols = job->b->cols;
    const bool f32_products = multiplies_in_f32(job, products);
    w->dense_rows += f32_products;
    w->hashed = products < cols / DENSE_SHARE;
    list_terms(w, row);
    if (!w->hashed) {
        accumulate_dense(w, products, f32_products);
        return sp_line_scan(&w->sums, job->cutoff, w->columns, w->values, figures);
    }
    int64_t kept = 0;
    *figures = (row_figures){collect_hashed(w, products, f32_products), 0, 0};
    for (int64_t i = 0; i < figures->count; i++) {
        const float value = w->all_values[i];
        figures->largest = value > figures->largest ? value : figures->largest;
        figures->squares += (double)value * (double)value;
        if (value < job->cutoff) continue;
        w->columns[kept] = w->all_columns[i];
        w->values[kept++] = value;
    }
    return kept;
}

/* ---- pruning ------------------------------------------------------------------------------------------- */

static int64_t values_below(const float *values, int64_t count, float bar, float *below)
{
    int64_t chosen = 0;
    for (int64_t i = 0; i < count; i++)
        if (values[i] < bar) below[chosen++] = values[i];
    return chosen;
}

static double mass_above(const float *values, int64_t count, float bar, int64_t *above)
{
    double mass = 0;
    *above = 0;
    for (int64_t i = 0; i < count; i++)
        if (values[i] >= bar) {
            ++*above;
            mass += (double)values[i];
        }
    return mass;
}

/* Appends the entries >= bar to the arrays that the row goes to; returns how many. */
static int64_t keep(const int32_t *columns, const float *values, int64_t count, float bar, int32_t *out_columns,
                    float *out_values)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (values[i] < bar) continue;
        out_columns[kept] = columns[i];
        out_values[kept++] = values[i];
    }
    return kept;
}

/* Writes what the cutoff left of `count` entries, and as many of the largest others as there may be. */
static int64_t recover_row(markov_worker *w, int64_t count, int64_t kept, int32_t *columns, float *values)
{
    const float cutoff = w->job->cutoff;
    float bar = -INFINITY;
    if (count > w->job->epilogue->recover) {
        const int64_t below = w->hashed ? values_below(w->all_values, count, cutoff, w->scratch)
                                        : sp_line_below(&w->sums, cutoff, w->scratch);
        bar = nth_largest(w->scratch, below, w->job->epilogue->recover - kept);
    }
    return w->hashed ? keep(w->all_columns, w->all_values, count, bar, columns, values)
                     : sp_line_above(&w->sums, bar, columns, values);
}

/* Selection and recovery on `count` entries, `kept` of them above the cutoff; writes what stays. */
static int64_t prune_row(markov_worker *w, int64_t count, int64_t kept, int32_t *columns, float *values)
{
    const sp_markov_epilogue *e = w->job->epilogue;
    int64_t above;
    const double mass = mass_above(w->values, kept, 0, &above);
    if (kept < e->recover && mass < e->recover_mass) return recover_row(w, count, kept, columns, values);
    if (e->select == 0 || kept <= e->select) return keep(w->columns, w->values, kept, -INFINITY, columns, values);
    memcpy(w->scratch, w->values, (size_t)kept * sizeof *w->scratch);
    float bar = nth_largest(w->scratch, kept, e->select);
    const double selected_mass = mass_above(w->values, kept, bar, &above);
    if (above < e->recover && selected_mass < e->recover_mass)
        bar = kept <= e->recover
                  ? -INFINITY
                  : nth_largest(w->scratch, values_below(w->values, kept, bar, w->scratch), e->recover - above);
    return keep(w->columns, w->values, kept, bar, columns, values);
}

/* ---- inflation ----------------------------------------------------------------------------------------- */

static double sum_of_squares(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
    return sum;
}

/* Leaves in w->sorted[0] the places of a row's entries in the order in which they are summed. */
static void order_entries(markov_worker *w, const int32_t *columns, int64_t count)
{
    const int32_t *order = w->job->epilogue->order;
    uint64_t *list = w->sorted[0];
    for (int64_t i = 0; i < count; i++) list[i] = pack_entry(order[columns[i]], (uint32_t)i);
    uint64_t *sorted = sort_entries(list, w->sorted[1], count, w->job->b->cols);
    if (sorted != list) memcpy(list, sorted, (size_t)count * sizeof *list);
}

static double divide_by_sum(const markov_worker *w, float *values, int64_t count)
{
    double sum = 0;
    if (w->job->epilogue->order)
        for (int64_t i = 0; i < count; i++) sum += (double)values[(uint32_t)w->sorted[0][i]];
    else
        for (int64_t i = 0; i < count; i++) sum += (double)values[i];
    if (sum > 0)
        for (int64_t i = 0; i < count; i++) values[i] = (float)((double)values[i] / sum);
    return sum;
}

/* The square of an f32 is exact in f64, so that pow() would give no other bits. */
static void raise(float *values, int64_t count, double power)
{
    if (power == 2)
        for (int64_t i = 0; i < count; i++) values[i] = (float)((double)values[i] * (double)values[i]);
    else if (power != 1)
        for (int64_t i = 0; i < count; i++) values[i] = (float)pow((double)values[i], power);
}

/* Σ of the squares that an inflation by 2 would leave, Σ v⁴ / (Σ v²)²: mcl's log measures by it, whatever -I is. */
static double squares_after_squaring(const float *values, int64_t count)
{
    double squares = 0, fourths = 0;
    for (int64_t i = 0; i < count; i++) {
        const double square = (double)values[i] * (double)values[i];
        squares += square;
        fourths += square * square;
    }
    return squares > 0 ? fourths / (squares * squares) : 0;
}

/* ---- a row --------------------------------------------------------------------------------------------- */

/* Prunes and inflates the row that w has made, `kept` of whose entries are above the cutoff, and appends it. */
static sp_status finish_row(markov_worker *w, int64_t row, int64_t kept, const row_figures *figures, row_buffer *out)
{
    const markov *job = w->job;
    const sp_markov_epilogue *e = job->epilogue;
    w->expanded += figures->count;

    sp_status status = sp_row_buffer_reserve(out, figures->count + 1);
    if (status != SP_OK) return status;
    int32_t *columns = out->columns + out->count;
    float *values = (float *)out->values + out->count;
    int64_t left = prune_row(w, figures->count, kept, columns, values);
    if (!w->hashed) sp_line_clear(&w->sums);
    const int64_t diagonal = e->diagonal + row;
    const bool loop = left == 0 && e->recover == 0 && diagonal < job->b->cols;
    if (loop) {
        columns[0] = (int32_t)diagonal;
        values[left++] = 1;
    }
    if (e->order) order_entries(w, columns, left);
    const double mass = divide_by_sum(w, values, left);
    const double after = job->rows ? squares_after_squaring(values, left) : 0;
    if (e->inflation > 0) {
        raise(values, left, e->inflation);
        divide_by_sum(w, values, left);
    }
    out->count += left;

    if (job->rows) {
        const int64_t first = job->a->row_offsets[row];
        const double before = sum_of_squares((const float *)job->a->values + first,
                                             job->a->row_offsets[row + 1] - first);
        job->rows[row] = (sp_markov_row){.chaos = (float)(((double)figures->largest - figures->squares) * (double)left),
                                         .homogeneity = after > 0 ? (float)(before / after) : 1,
                                         .kept_mass = loop ? 0 : (float)mass,
                                         .expanded = (int32_t)figures->count};
    }
    return SP_OK;
}

static sp_status markov_row(void *worker, int64_t row, int64_t products, row_buffer *out)
{
    markov_worker *w = worker;
    row_figures figures;
    const int64_t kept = expand_row(w, row, products, &figures);
    return finish_row(w, row, kept, &figures, out);
}

/* Appends the row that is number `place` in the block. */
static sp_status block_row(markov_worker *w, int64_t row, int64_t place, row_buffer *out)
{
    const float *sums = sp_panel_block_row(w->block, place);
    const int64_t cols = w->job->b->cols;
    row_figures figures;
    for (int64_t i = 0; i < cols; i++) w->sums.sums[i] = (double)sums[i];
    sp_line_touch_all(&w->sums);
    w->hashed = false;
    const int64_t kept = sp_line_scan(&w->sums, w->job->cutoff, w->columns, w->values, &figures);
    return finish_row(w, row, kept, &figures, out);
}

/* A row_method's `rows`: those that multiply in f32 by panels, the others one by one. The products are f32 or zero, so
 * a sum is zero if and only if it rounds to zero in f32. */
static sp_status markov_block(void *worker, int64_t first, int64_t end, int64_t *counts, row_buffer *out)
{
    markov_worker *w = worker;
    const markov *job = w->job;
    sp_status status = SP_OK;
    sp_panel_block_begin(w->block);
    for (int64_t row = first; row < end; row++) {
        if (!multiplies_in_f32(job, counts[row])) continue;
        list_terms(w, row);
        sp_panel_block_add(w->block, w->term_rows, w->weights, w->terms, job->epilogue->order);
    }
    sp_panel_block_sum(w->block, job->epilogue->fast);
    for (int64_t row = first, place = 0; row < end && status == SP_OK; row++) {
        const int64_t before = out->count;
        if (multiplies_in_f32(job, counts[row])) {
            w->dense_rows++;
            status = block_row(w, row, place++, out);
        } else {
            status = markov_row(w, row, counts[row], out);
        }
        counts[row] = out->count - before;
    }
    return status;
}

/* ---- the product --------------------------------------------------------------------------------------- */

static void close_workers(sp_context *context, markov_worker *workers, int threads)
{
    for (int t = 0; workers && t < threads; t++) {
        markov_worker *w = &workers[t];
        void *arrays[] = {w->keys,   w->slots,      w->sorted[0], w->sorted[1],   w->columns,       w->all_columns,
                          w->values, w->all_values, w->scratch,   w->sorted_rows, w->sorted_weights};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_free(context, arrays[i]);
        sp_line_sums_free(context, &w->sums);
        sp_panel_block_free(context, w->block);
    }
    sp_free(context, workers);
}

/* Scratch for rows of at most `largest` products. */
static sp_status open_workers(sp_context *context, const markov *job, int64_t largest, int threads,
                              markov_worker **workers)
{
    const int64_t cols = job->b->cols;
    const int64_t hashed = largest < cols / DENSE_SHARE ? largest : cols / DENSE_SHARE;
    const int64_t longest = largest < cols ? largest : cols;
    const int64_t terms = job->epilogue->order ? longest_of(job->a->row_offsets, job->a->rows) : 0;
    const int64_t sorted = longest > terms ? longest : terms;
    const int64_t slots = (int64_t)1 << table_bits(hashed);
    sp_status status = sp_calloc(context, threads, sizeof **workers, (void **)workers);
    for (int t = 0; t < threads && status == SP_OK; t++) {
        markov_worker *w = &(*workers)[t];
        w->job = job;
        if (largest >= cols / DENSE_SHARE) TRY(sp_line_sums_create(context, cols, &w->sums));
        TRY(sp_alloc(context, slots, sizeof(int32_t), (void **)&w->keys));
        TRY(sp_alloc(context, slots, sizeof(double), (void **)&w->slots));
        TRY(sp_alloc(context, sorted, sizeof(uint64_t), (void **)&w->sorted[0]));
        TRY(sp_alloc(context, sorted, sizeof(uint64_t), (void **)&w->sorted[1]));
        TRY(sp_alloc(context, longest, sizeof(int32_t), (void **)&w->columns));
        TRY(sp_alloc(context, hashed, sizeof(int32_t), (void **)&w->all_columns));
        TRY(sp_alloc(context, longest, sizeof(float), (void **)&w->values));
        TRY(sp_alloc(context, hashed, sizeof(float), (void **)&w->all_values));
        TRY(sp_alloc(context, longest, sizeof(float), (void **)&w->scratch));
        TRY(sp_alloc(context, terms, sizeof(int32_t), (void **)&w->sorted_rows));
        TRY(sp_alloc(context, terms, sizeof(float), (void **)&w->sorted_weights));
    }
done:
    return status;
}

/* Terms of the block that has most. */
static int64_t largest_block(const sp_csr *a, int64_t rows)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < a->rows; i += rows) {
        const int64_t end = i + rows < a->rows ? i + rows : a->rows, terms = a->row_offsets[end] - a->row_offsets[i];
        if (terms > largest) largest = terms;
    }
    return largest;
}

/* Makes the index of B by panels or by lines, if one of them pays. */
static sp_status make_index(sp_context *context, markov *job, int64_t products, int64_t largest)
{
    const sp_csr *a = job->a, *b = job->b;
    const bool fast = job->epilogue->fast;
    sp_status status;
    if ((double)products < LINES_PRODUCTS * (double)b->nnz) return SP_OK;
    TRY(sp_line_index_count(context, b, &job->index));
    const int64_t *lines = job->index.offsets;
    if (!lines) return SP_OK;
    const bool f32_products = largest >= b->cols / DENSE_SHARE && multiplies_in_f32(job, products / (a->rows + 1));
    int64_t line_products = 0;
    for (int64_t k = 0; f32_products && k < a->nnz; k++)
        line_products += lines[a->col_indices[k] + 1] - lines[a->col_indices[k]];
    job->block_rows = sp_panel_block_rows(a, b, sp_threads_for(context, products));
    if (f32_products && sp_panels_pay(a, b, line_products, fast) && !left_out("markov-panels"))
        TRY(sp_panel_index_create(context, b, job->epilogue->order, &job->panels));
    if (!job->panels.offsets && (double)b->nnz >= LINES_FILL * (double)lines[b->rows])
        TRY(sp_line_index_fill(context, b, &job->index));
    if (!job->index.lines) sp_line_index_free(context, &job->index);
done:
    return status;
}

/* About the bytes of the indexes and of all workers. */
static int64_t scratch_bytes(const markov *job, int64_t largest, int threads)
{
    const sp_csr *b = job->b;
    const int64_t cols = b->cols, longest = largest < cols ? largest : cols;
    const int64_t sums = largest >= cols / DENSE_SHARE ? cols * (int64_t)sizeof(double) : 0;
    const int64_t sorting = 2 * (int64_t)sizeof(uint64_t) + sizeof(int32_t) + 2 * sizeof(float);
    int64_t bytes = threads * (sums + longest * sorting);
    if (job->index.lines) bytes += job->index.offsets[b->rows] * (int64_t)sizeof *job->index.lines;
    if (job->panels.offsets) bytes += b->nnz * (int64_t)sizeof *job->panels.values;
    return bytes;
}

static float smallest_f32_not_below(double bound)
{
    const float rounded = (float)bound;
    return (double)rounded < bound ? nextafterf(rounded, INFINITY) : rounded;
}

sp_status sp_cpu_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                               const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    markov job = {.a = a, .b = b, .epilogue = epilogue, .rows = rows};
    markov_worker *workers = NULL;
    int64_t *products = NULL, largest;
    int threads = 0;
    sp_status status;
    const double start = wall_seconds();
    info->peak_bytes = 0;
    job.cutoff = epilogue->cutoff > 0 ? smallest_f32_not_below(epilogue->cutoff) : -INFINITY;
    TRY(sp_row_products(context, a, b, &products, &info->products, &largest));
    TRY(make_index(context, &job, info->products, largest));
    threads = sp_threads_for(context, info->products);
    TRY(open_workers(context, &job, largest, threads, &workers));
    const int64_t block_terms = job.panels.offsets ? largest_block(a, job.block_rows) : 0;
    for (int t = 0; t < threads && job.panels.offsets; t++)
        TRY(sp_panel_block_create(context, &job.panels, job.block_rows, block_terms, &workers[t].block));
    info->analysis_seconds = wall_seconds() - start;
    const int64_t most = epilogue->select > epilogue->recover ? epilogue->select : epilogue->recover;
    const row_method method = {.row = markov_row, .rows = job.panels.offsets ? markov_block : NULL,
                               .chunk_rows = job.panels.offsets ? job.block_rows : 0, .workers = workers,
                               .worker_size = sizeof *workers, .threads = threads, .row_entries = most,
                               .bytes = &info->peak_bytes};
    TRY(sp_row_run(context, a->rows, b->cols, &products, info->products, &method, SP_F32, c));
    for (int t = 0; t < threads; t++) {
        info->product_nnz += workers[t].expanded;
        info->dense_rows += workers[t].dense_rows;
    }
    info->nnz = c->nnz;
    info->peak_bytes += scratch_bytes(&job, largest, threads);
    info->batches = 1;
    info->numeric_seconds = wall_seconds() - start - info->analysis_seconds;
done:
    close_workers(context, workers, threads);
    sp_line_index_free(context, &job.index);
    sp_panel_index_free(context, &job.panels);
    sp_free(context, products);
    return status;
}
