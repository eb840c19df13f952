/* How a thread combines rows of a contraction; see cells.h. Each accumulator is compiled once an operation and value
 * type. */
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "contract/cpu/cells.h"
#include "core/table.h"
#include "core/touched.h"

/* Insertion sort moves a quarter of the square of these. Half of a row's entries are up to the diagonal, as a rule. */
enum { SORT_ENTRIES = 32, LOWER_SORT_ENTRIES = 2 * SORT_ENTRIES };
/* As for products (accumulator.c): rows from this share of all groups on are dense, rows with less than an entry in
 * SCAN_GROUPS groups are not, and FREE_GROUPS cells fit the second-level cache of any machine. */
enum { ROWS_BATCH = 2048, ROWS_AT_ONCE = 256 }; /* entries and rows that are marked at once: first-level cache */
enum { DENSE_SHARE = 16, SCAN_GROUPS = 1 << 14, FREE_GROUPS = 1 << 16 };

enum { F32 = SP_F32, F64 = SP_F64, ONES };

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

/* A cell is one double, for the mean two, the sum and the number. -0 unlike 0 changes no addend; NaN is no value. */
KERNEL double identity(int op)
{
    return op == SP_COMBINE_MAX ? -INFINITY : op == SP_COMBINE_MIN ? INFINITY : op == SP_COMBINE_FIRST ? NAN : -0.0;
}

KERNEL int width_of(int op) { return op == SP_COMBINE_MEAN ? 2 : 1; }

KERNEL void clear_cell(int op, double *cell)
{
    cell[0] = identity(op);
    if (op == SP_COMBINE_MEAN) cell[1] = 0;
}

KERNEL void put_value(int op, double *cell, double value)
{
    const double kept = cell[0];
    if (op == SP_COMBINE_MAX) cell[0] = value > kept ? value : kept;
    else if (op == SP_COMBINE_MIN) cell[0] = value < kept ? value : kept;
    else if (op == SP_COMBINE_FIRST) cell[0] = isnan(kept) ? value : kept;
    else cell[0] = kept + value;
    if (op == SP_COMBINE_MEAN) cell[1] += 1;
}

KERNEL double cell_value(int op, const double *cell) { return op == SP_COMBINE_MEAN ? cell[0] / cell[1] : cell[0]; }

KERNEL double load(const void *values, int type, int64_t i)
{
    return type == ONES ? 1 : type == F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

KERNEL void store(void *values, sp_value_type type, int64_t i, double value)
{
    if (type == SP_F32) ((float *)values)[i] = (float)value;
    else ((double *)values)[i] = value;
}

/* One case for each compiled kernel; KERNEL_OF(op, type). A count is a sum of ones; of ones, all else is one. */
#define EACH_KIND(kind, KERNEL_OF)                     \
    switch (kind) {                                    \
    case 0: KERNEL_OF(SP_COMBINE_SUM, F32); break;     \
    case 1: KERNEL_OF(SP_COMBINE_SUM, F64); break;     \
    case 2: KERNEL_OF(SP_COMBINE_MAX, F32); break;     \
    case 3: KERNEL_OF(SP_COMBINE_MAX, F64); break;     \
    case 4: KERNEL_OF(SP_COMBINE_MIN, F32); break;     \
    case 5: KERNEL_OF(SP_COMBINE_MIN, F64); break;     \
    case 6: KERNEL_OF(SP_COMBINE_FIRST, F32); break;   \
    case 7: KERNEL_OF(SP_COMBINE_FIRST, F64); break;   \
    case 8: KERNEL_OF(SP_COMBINE_MEAN, F32); break;    \
    case 9: KERNEL_OF(SP_COMBINE_MEAN, F64); break;    \
    case 10: KERNEL_OF(SP_COMBINE_SUM, ONES); break;   \
    default: KERNEL_OF(SP_COMBINE_MAX, ONES); break;   \
    }
enum { KIND_COUNT = 10, KIND_ONE };

static int kind_of(const sp_csr *g, sp_combine combine)
{
    if (combine == SP_COMBINE_COUNT || (!g->values && combine == SP_COMBINE_SUM)) return KIND_COUNT;
    return g->values ? 2 * (int)combine + (g->value_type == SP_F64) : KIND_ONE;
}

/* ---- the entries of a row ------------------------------------------------------------------------------- */

/* Where the entries of a batch go. */
typedef void put_batch(worker *w, int op, int type);

KERNEL double batch_value(const worker *w, int type, int64_t i) { return type == ONES ? 1 : w->values[i]; }

KERNEL void put_dense(worker *w, int op, int type)
{
    double *cells = w->cells;
    uint64_t *bits = w->bits;
    for (int64_t i = 0; i < w->count; i++) {
        const int32_t column = w->columns[i];
        put_value(op, cells + (int64_t)column * width_of(op), batch_value(w, type, i));
        bits[column >> 6] |= (uint64_t)1 << (column & 63);
    }
}

KERNEL void put_dense_sparse(worker *w, int op, int type)
{
    put_dense(w, op, type);
    for (int64_t i = 0; i < w->count; i++)
        w->summary[w->columns[i] >> 12] |= (uint64_t)1 << (w->columns[i] >> 6 & 63);
}

KERNEL void put_hash(worker *w, int op, int type)
{
    for (int64_t i = 0; i < w->count; i++) {
        const int32_t column = w->columns[i];
        const uint32_t at = table_slot(w->keys, w->bits_of_table, column);
        if (w->keys[at] == -1) {
            w->keys[at] = column;
            w->list[0][w->listed++] = pack_entry(column, at);
            clear_cell(op, w->slots + (int64_t)at * width_of(op));
        }
        put_value(op, w->slots + (int64_t)at * width_of(op), batch_value(w, type, i));
    }
}

KERNEL size_t value_size(int type) { return type == ONES ? 0 : type == F32 ? sizeof(float) : sizeof(double); }

/* How many entries of G the batch stands for that contribute to C: without loops that are not wanted and, where only
 * these are, without others. Those up to the diagonal stand for their mirror images, too. */
static int64_t count_kept(const worker *w, int64_t row)
{
    const contraction *job = w->job;
    int64_t own = 0;
    if (job->loops == SP_LOOPS_KEEP && !job->lower) return w->count;
    for (int64_t i = 0; i < w->count; i++) own += w->columns[i] == row;
    const int64_t others = (w->count - own) * (job->lower ? 2 : 1);
    return job->loops == SP_LOOPS_KEEP ? others + own : job->loops == SP_LOOPS_DROP ? others : own;
}

/* Puts the entries of row `row` of C, in the order of G, where `put` says; the last batch has fewer. */
KERNEL void walk(worker *w, int64_t row, int op, int type, bool dense, put_batch *put)
{
    const contraction *job = w->job;
    const int32_t *labels = job->labels, *columns = job->g->col_indices;
    const int64_t *offsets = job->g->row_offsets;
    const void *values = job->g->values;
    /* Nodes without a label have greater ones. */
    const uint32_t bound = !job->lower ? INT32_MAX : (uint32_t)row + (job->loops != SP_LOOPS_DROP);
    int64_t count = 0, seen = 0, kept = 0;
    for (int64_t n = job->starts[row]; n < job->starts[row + 1]; n++) {
        const int32_t node = job->order[n];
        const int64_t last = offsets[node + 1];
        sp_prefetch_rows(job, n, value_size(type));
        for (int64_t k = offsets[node]; k < last;) {
            const int64_t end = last - k < BATCH - count ? last : k + BATCH - count;
            seen += end - k;
            for (; k < end; k++) {
                const int32_t column = labels[columns[k]];
                w->columns[count] = column;
                if (type != ONES) w->values[count] = load(values, type, k);
                if (dense) __builtin_prefetch(w->cells + (int64_t)column * width_of(op), 1);
                count += (uint32_t)column < bound;
            }
            if (count < BATCH) continue;
            w->count = count;
            kept += count_kept(w, row);
            put(w, op, type);
            count = 0;
        }
    }
    w->count = count;
    kept += count_kept(w, row);
    put(w, op, type);
    w->left_out += seen - kept;
}

/* ---- sort ---------------------------------------------------------------------------------------------- */

/* The row is one batch. */
KERNEL void put_sorted(worker *w, int op, int type)
{
    const contraction *job = w->job;
    row_buffer *out = w->out;
    uint64_t packed[2][LOWER_SORT_ENTRIES];
    for (int64_t i = 0; i < w->count; i++) packed[0][i] = pack_entry(w->columns[i], (uint32_t)i);
    const uint64_t *list = sort_entries(packed[0], packed[1], w->count, job->groups);
    int64_t to = out->count;
    for (int64_t i = 0; i < w->count;) {
        const int32_t column = (int32_t)(list[i] >> 32);
        double cell[2];
        clear_cell(op, cell);
        for (; i < w->count && (int32_t)(list[i] >> 32) == column; i++)
            put_value(op, cell, batch_value(w, type, (uint32_t)list[i]));
        if (column == w->row && job->loops == SP_LOOPS_DROP) continue;
        if (column == w->row && job->half) cell[0] *= 0.5;
        out->columns[to] = column;
        store(out->values, job->g->value_type, to++, cell_value(op, cell));
    }
    out->count = to;
}

static void row_sort(worker *w, int64_t row, row_buffer *out)
{
    w->row = row;
    w->out = out;
#define ROW(op, type) walk(w, row, op, type, false, put_sorted)
    EACH_KIND(w->job->kind, ROW)
#undef ROW
}

/* ---- dense --------------------------------------------------------------------------------------------- */

KERNEL void take_cells(worker *w, const int32_t *columns, int64_t count, int op, row_buffer *out)
{
    const sp_value_type type = w->job->g->value_type;
    for (int64_t i = 0; i < count; i++) {
        double *cell = w->cells + (int64_t)columns[i] * width_of(op);
        store(out->values, type, out->count + i, cell_value(op, cell));
        clear_cell(op, cell);
    }
}

static void row_dense(worker *w, int64_t row, int64_t entries, row_buffer *out)
{
    const contraction *job = w->job;
    const bool sparse = entries < job->groups / 64;
    int32_t *columns = out->columns + out->count;
    int64_t count = 0;
#define ROW(op, type)                                                               \
    do {                                                                            \
        if (sparse) walk(w, row, op, type, true, put_dense_sparse);                 \
        else walk(w, row, op, type, true, put_dense);                               \
        if (job->loops == SP_LOOPS_DROP) {                                          \
            clear_cell(op, w->cells + row * width_of(op));                          \
            w->bits[row >> 6] &= ~((uint64_t)1 << (row & 63));                      \
        } else if (job->half) {                                                     \
            w->cells[row] *= 0.5; /* a sum; untouched, it stays -0 */               \
        }                                                                           \
        count = sparse ? take_touched_words(w->bits, w->summary, 0, job->groups, columns) \
                       : take_touched(w->bits, 0, job->groups / 64 + 1, columns);      \
        take_cells(w, columns, count, op, out);                                     \
    } while (0)
    EACH_KIND(job->kind, ROW)
#undef ROW
    out->count += count;
}

/* ---- hash ---------------------------------------------------------------------------------------------- */

KERNEL void take_table(worker *w, int64_t row, int op, row_buffer *out)
{
    const contraction *job = w->job;
    const uint64_t *list = sort_entries(w->list[0], w->list[1], w->listed, job->groups);
    int64_t to = out->count;
    for (int64_t i = 0; i < w->listed; i++) {
        const int32_t column = (int32_t)(list[i] >> 32);
        double *cell = w->slots + (int64_t)(uint32_t)list[i] * width_of(op);
        if (column == row && job->loops == SP_LOOPS_DROP) continue;
        if (column == row && job->half) cell[0] *= 0.5;
        out->columns[to] = column;
        store(out->values, job->g->value_type, to++, cell_value(op, cell));
    }
    out->count = to;
}

static void row_hash(worker *w, int64_t row, int64_t entries, row_buffer *out)
{
    w->bits_of_table = table_bits(entries);
    w->listed = 0;
    clear_keys(w->keys, w->bits_of_table);
#define ROW(op, type)                     \
    do {                                  \
        walk(w, row, op, type, false, put_hash); \
        take_table(w, row, op, out);      \
    } while (0)
    EACH_KIND(w->job->kind, ROW)
#undef ROW
}

/* ---- loop ---------------------------------------------------------------------------------------------- */

KERNEL void put_loop(worker *w, int op, int type)
{
    for (int64_t i = 0; i < w->count; i++) {
        if (w->columns[i] != w->row) continue;
        put_value(op, w->loop, batch_value(w, type, i));
        w->listed = 1;
    }
}

static void row_loop(worker *w, int64_t row, row_buffer *out)
{
    const contraction *job = w->job;
    double value = 0;
    w->row = row;
    w->listed = 0; /* whether there is an entry */
#define ROW(op, type)                                \
    do {                                             \
        clear_cell(op, w->loop);                     \
        walk(w, row, op, type, false, put_loop);     \
        value = cell_value(op, w->loop);             \
    } while (0)
    EACH_KIND(job->kind, ROW)
#undef ROW
    if (!w->listed) return;
    out->columns[out->count] = (int32_t)row;
    store(out->values, job->g->value_type, out->count++, job->half ? value * 0.5 : value);
}

/* ---- mark ---------------------------------------------------------------------------------------------- */

/* Appends entries of the batch that are new to the row to its `listed` columns, and returns the new number; cells lie
 * as the columns do. */
KERNEL uint32_t mark_entries(worker *w, const int32_t *batch, const double *values, int64_t count, uint32_t listed,
                             int32_t *columns, double *cells, int op, int type)
{
    uint32_t *marks = w->marks;
    const uint32_t base = w->mark_base;
    for (int64_t i = 0; i < count; i++) {
        const int32_t column = batch[i];
        const uint32_t marked = marks[column] - base; /* of an earlier row: far above `listed` */
        const bool known = marked < listed;
        const uint32_t at = known ? marked : listed;
        columns[listed] = column;
        marks[column] = base + at;
        put_value(op, cells + (int64_t)at * width_of(op), type == ONES ? 1 : values[i]);
        listed += !known;
    }
    return listed;
}

/* The row is made. Numbers of marks start again where they end. */
KERNEL void end_marks(worker *w, int64_t row, uint32_t listed, double *cells)
{
    const uint32_t loop = w->marks[row] - w->mark_base;
    if (w->job->half && loop < listed) cells[loop] *= 0.5;
    w->mark_base += listed;
    if (w->mark_base <= UINT32_MAX - (uint32_t)w->job->groups - 1) return;
    memset(w->marks, 0, (size_t)w->job->groups * sizeof *w->marks);
    w->mark_base = 1;
}

/* Appends the values of `count` cells, and clears these. */
KERNEL void take_marked(worker *w, int64_t count, row_buffer *out, int op)
{
    const bool single = w->job->g->value_type == SP_F32;
    for (int64_t i = 0; i < count; i++) {
        double *cell = w->cells + i * width_of(op);
        const double value = cell_value(op, cell);
        if (single) ((float *)out->values)[out->count + i] = (float)value;
        else ((double *)out->values)[out->count + i] = value;
        clear_cell(op, cell);
    }
    out->count += count;
}

KERNEL void put_marked(worker *w, int op, int type)
{
    w->listed = mark_entries(w, w->columns, w->values, w->count, (uint32_t)w->listed, w->out->columns + w->out->count,
                             w->cells, op, type);
}

/* A row that is longer than a batch of rows. */
KERNEL void mark_long_row(worker *w, int64_t row, int op, int type)
{
    w->listed = 0;
    walk(w, row, op, type, false, put_marked);
    end_marks(w, row, (uint32_t)w->listed, w->cells);
    take_marked(w, w->listed, w->out, op);
}

/* The entries of a row up to the diagonal under their new columns, after the first `count` of the batch of rows; the
 * new number of these. */
KERNEL int64_t gather_row(worker *w, int64_t row, int64_t count, int type)
{
    const contraction *job = w->job;
    const int32_t *labels = job->labels, *columns = job->g->col_indices;
    const int64_t *offsets = job->g->row_offsets, before = count;
    const void *values = job->g->values;
    const bool loops = job->loops != SP_LOOPS_DROP;
    const uint32_t bound = (uint32_t)row + loops;
    const int64_t end = job->starts[row + 1];
    int32_t *batch = w->batch;
    double *batch_values = w->batch_values;
    int64_t own = 0, seen = 0;
    for (int64_t n = job->starts[row]; n < end; n++) {
        const int32_t node = job->order[n];
        const int64_t last = offsets[node + 1];
        sp_prefetch_rows(job, n, value_size(type));
        seen += last - offsets[node];
        for (int64_t k = offsets[node]; k < last; k++) {
            const int32_t column = labels[columns[k]];
            batch[count] = column;
            if (type != ONES) batch_values[count] = load(values, type, k);
            own += column == row;
            count += (uint32_t)column < bound;
        }
    }
    w->left_out += seen - (2 * (count - before) - (loops ? own : 0));
    return count;
}

/* Rows first to end - 1, which have at most ROWS_BATCH entries in all: gathered, marked, and their values taken, one
 * step for all rows after the other, because the end of a short loop is rarely predicted. */
KERNEL void mark_short_rows(worker *w, int64_t first, int64_t end, int64_t *counts, int op, int type)
{
    row_buffer *out = w->out;
    int64_t ends[ROWS_AT_ONCE], count = 0, from = 0, made = 0;
    for (int64_t row = first; row < end; row++) ends[row - first] = count = gather_row(w, row, count, type);
    for (int64_t row = first; row < end; row++) {
        double *cells = w->cells + made * width_of(op);
        const uint32_t listed = mark_entries(w, w->batch + from, w->batch_values + from, ends[row - first] - from, 0,
                                             out->columns + out->count + made, cells, op, type);
        end_marks(w, row, listed, cells);
        from = ends[row - first];
        counts[row] = listed;
        made += listed;
    }
    take_marked(w, made, out, op);
}

KERNEL void mark_rows(worker *w, int64_t first, int64_t end, int64_t *counts, int op, int type)
{
    for (int64_t row = first; row < end;) {
        const int64_t start = row;
        int64_t entries = 0;
        for (; row < end && row - start < ROWS_AT_ONCE && entries + counts[row] <= ROWS_BATCH; row++)
            entries += counts[row];
        if (row > start) {
            mark_short_rows(w, start, row, counts, op, type);
        } else {
            mark_long_row(w, row, op, type);
            counts[row++] = w->listed;
        }
        w->rows[ROW_MARK] += row - start;
    }
}

sp_status sp_make_marked_rows(void *scratch, int64_t first, int64_t end, int64_t *counts, row_buffer *out)
{
    worker *w = scratch;
    int64_t most = TAKEN_AHEAD;
    for (int64_t row = first; row < end; row++) most += counts[row] < row + 1 ? counts[row] : row + 1;
    const sp_status status = sp_row_buffer_reserve(out, most);
    if (status != SP_OK) return status;
    w->out = out;
#define ROWS(op, type) mark_rows(w, first, end, counts, op, type)
    EACH_KIND(w->job->kind, ROWS)
#undef ROWS
    return SP_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static int choose_method(const contraction *job, int64_t entries)
{
    if (job->loops == SP_LOOPS_ONLY) return ROW_LOOP;
    if (entries <= (job->lower ? LOWER_SORT_ENTRIES : SORT_ENTRIES)) return ROW_SORT;
    if (entries >= job->groups / DENSE_SHARE) return ROW_DENSE;
    return job->dense && entries >= job->groups / SCAN_GROUPS ? ROW_DENSE : ROW_HASH;
}

/* A row_method's `row`: `entries` of G are in the group's rows. */
sp_status sp_make_row(void *scratch, int64_t row, int64_t entries, row_buffer *out)
{
    worker *w = scratch;
    const int method = choose_method(w->job, entries);
    const int64_t most = method == ROW_LOOP ? 1 : w->job->groups;
    if (entries == 0) return SP_OK;
    const sp_status status = sp_row_buffer_reserve(out, (entries < most ? entries : most) + TAKEN_AHEAD);
    if (status != SP_OK) return status;
    w->rows[method]++;
    if (method == ROW_SORT) row_sort(w, row, out);
    else if (method == ROW_DENSE) row_dense(w, row, entries, out);
    else if (method == ROW_HASH) row_hash(w, row, entries, out);
    else row_loop(w, row, out);
    return SP_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

/* What does not depend on the grouping. */
contraction sp_contraction_begin(const sp_csr *g, const int32_t *labels, int64_t groups,
                                 const sp_contract_options *options)
{
    const bool sums = options->combine == SP_COMBINE_SUM || options->combine == SP_COMBINE_COUNT;
    contraction job = {.g = g, .labels = labels, .groups = groups, .kind = kind_of(g, options->combine),
                       .loops = options->loops, .half = options->half_loops && sums,
                       .lower = options->symmetric};
    job.counts = job.kind == KIND_COUNT;
    job.width = job.kind / 2 == SP_COMBINE_MEAN ? 2 : 1;
    return job;
}

/* All threads' cells may take an eighth of G's memory and C's, which has up to `entries`, guessed at half of
 * them. */
void sp_contraction_choose(contraction *job, int64_t entries, int threads)
{
    const sp_csr *g = job->g;
    const int64_t entry = (int64_t)(sizeof(int32_t) + sp_value_size(g->value_type));
    const int64_t matrices = 8 * (g->rows + job->groups) + entry * (g->nnz + entries / 2);
    job->dense = job->groups <= FREE_GROUPS || job->groups * 8 * job->width <= matrices / 8 / threads;
    job->marked = job->dense && job->lower && job->loops != SP_LOOPS_ONLY;
}

static sp_status open_marks(sp_context *context, const contraction *job, int64_t largest, worker *w)
{
    const int64_t longest = largest < job->groups ? largest : job->groups;
    const int64_t cells = longest < ROWS_BATCH ? ROWS_BATCH : longest;
    sp_status status;
    w->mark_base = 1;
    TRY(sp_alloc(context, ROWS_BATCH + 1, sizeof *w->batch, (void **)&w->batch));
    TRY(sp_alloc(context, ROWS_BATCH + 1, sizeof *w->batch_values, (void **)&w->batch_values));
    TRY(sp_calloc(context, job->groups, sizeof *w->marks, (void **)&w->marks));
    TRY(sp_alloc(context, (cells + 1) * job->width, sizeof *w->cells, (void **)&w->cells));
#define CLEAR(op, type) for (int64_t i = 0; i <= cells; i++) clear_cell(op, w->cells + i * width_of(op))
    EACH_KIND(job->kind, CLEAR)
#undef CLEAR
    w->bytes += job->groups * 4 + (cells + 1) * job->width * 8 + (ROWS_BATCH + 1) * 12;
done:
    return status;
}

sp_status sp_open_worker(sp_context *context, const contraction *job, int64_t largest, worker *w)
{
    const int64_t words = job->groups / 64 + 1, cells = job->groups * job->width;
    int64_t hashed = largest < job->groups / DENSE_SHARE ? largest : job->groups / DENSE_SHARE;
    sp_status status = SP_OK;
    w->job = job;
    if (job->loops == SP_LOOPS_ONLY) return SP_OK;
    if (job->marked) return open_marks(context, job, largest, w);
    if (job->dense && hashed > job->groups / SCAN_GROUPS) hashed = job->groups / SCAN_GROUPS;
    if (largest > SORT_ENTRIES && (job->dense || largest >= job->groups / DENSE_SHARE)) {
        TRY(sp_calloc(context, words, sizeof(uint64_t), (void **)&w->bits));
        TRY(sp_calloc(context, words / 64 + 1, sizeof(uint64_t), (void **)&w->summary));
        TRY(sp_alloc(context, cells, sizeof(double), (void **)&w->cells));
#define CLEAR(op, type) for (int64_t i = 0; i < job->groups; i++) clear_cell(op, w->cells + i * width_of(op))
        EACH_KIND(job->kind, CLEAR)
#undef CLEAR
        w->bytes += words * 8 + words / 8 + cells * 8;
    }
    if (hashed > SORT_ENTRIES) {
        const int64_t slots = (int64_t)1 << table_bits(hashed);
        TRY(sp_alloc(context, slots, sizeof(int32_t), (void **)&w->keys));
        TRY(sp_alloc(context, slots * job->width, sizeof(double), (void **)&w->slots));
        TRY(sp_alloc(context, hashed, sizeof(uint64_t), (void **)&w->list[0]));
        TRY(sp_alloc(context, hashed, sizeof(uint64_t), (void **)&w->list[1]));
        w->bytes += slots * (4 + 8 * job->width) + hashed * 16;
    }
done:
    return status;
}

void sp_close_workers(sp_context *context, worker *workers, int threads)
{
    for (int t = 0; workers && t < threads; t++) {
        worker *w = &workers[t];
        void *arrays[] = {w->cells, w->bits, w->summary, w->keys, w->slots, w->list[0], w->list[1], w->marks,
                          w->batch, w->batch_values};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_free(context, arrays[i]);
    }
    sp_free(context, workers);
}
