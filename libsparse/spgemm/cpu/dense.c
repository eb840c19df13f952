/* Dense sums: a sum a column, a bit a touched column and a bit a touched word of these. The columns come out in order
 * by counting trailing zeros. Where sums for all columns take too much memory, rows that span few columns have theirs
 * in a ring. */
#include "base/kernel.h"
#include "spgemm/cpu/kernels.h"

/* The sum of a column, of its own or in the ring. */
KERNEL int32_t sum_of(int32_t column, bool ring) { return ring ? column & (FREE_COLUMNS - 1) : column; }

KERNEL void mark(accumulator *w, int32_t column, bool sparse)
{
    w->bits[column >> 6] |= (uint64_t)1 << (column & 63);
    if (sparse) w->summary[column >> 12] |= (uint64_t)1 << (column >> 6 & 63);
}

KERNEL void add_dense(accumulator *w, int op, int type, int32_t column, double value, bool ring, bool sparse)
{
    if (type != NO_VALUES) w->sums[sum_of(column, ring)] = add(op, w->sums[sum_of(column, ring)], value);
    mark(w, column, sparse);
}

KERNEL void put_dense(accumulator *w, int op, int type, int32_t column, double value)
{
    add_dense(w, op, type, column, value, false, false);
}

KERNEL void put_dense_sparse(accumulator *w, int op, int type, int32_t column, double value)
{
    add_dense(w, op, type, column, value, false, true);
}

KERNEL void put_ring(accumulator *w, int op, int type, int32_t column, double value)
{
    add_dense(w, op, type, column, value, true, true);
}

/* Sums of neighbouring columns are added side by side. */
KERNEL void add_run(accumulator *w, int op, int type, int32_t first, int64_t from, int64_t length, double weight)
{
    double *restrict sums = w->sums + first;
    const void *restrict values = w->job->b_values;
    for (int64_t i = 0; i < length; i++)
        sums[i] = add(op, sums[i], multiply(op, weight, load(values, type, from + i)));
}

KERNEL void put_dense_run(accumulator *w, int op, int type, int32_t first, int64_t from, int64_t length, double weight)
{
    const int64_t last = first + length - 1;
    const uint64_t low = ~(uint64_t)0 << (first & 63), high = ~(uint64_t)0 >> (63 - (last & 63));
    if (type != NO_VALUES) add_run(w, op, type, first, from, length, weight);
    w->bits[first >> 6] |= first >> 6 == last >> 6 ? low & high : low;
    for (int64_t i = (first >> 6) + 1; i < last >> 6; i++) w->bits[i] = ~(uint64_t)0;
    if (last >> 6 > first >> 6) w->bits[last >> 6] |= high;
}

/* C's pattern is known: nothing is marked. */
KERNEL void put_known_dense(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)type;
    w->sums[column] = add(op, w->sums[column], value);
}

KERNEL void put_known_ring(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)type;
    w->sums[sum_of(column, true)] = add(op, w->sums[sum_of(column, true)], value);
}

KERNEL void put_known_run(accumulator *w, int op, int type, int32_t first, int64_t from, int64_t length, double weight)
{
    if (type != NO_VALUES) add_run(w, op, type, first, from, length, weight);
}

/* The products of A's row where row j of B has one entry, j. Those of one column that follow each other, as in
 * aggregates of a grid, are added in a register: 0.9 of the time, half for a single column. */
KERNEL void walk_groups(accumulator *w, int64_t row, int op, int type, bool ring, bool sparse, bool marks)
{
    const row_product *job = w->job;
    const sp_csr *a = job->a;
    const int32_t *columns = job->b->col_indices;
    const int64_t end = a->row_offsets[row + 1];
    for (int64_t k = a->row_offsets[row]; k < end;) {
        const int32_t column = columns[a->col_indices[k]];
        double sum = type == NO_VALUES ? 0 : w->sums[sum_of(column, ring)];
        for (; k < end && columns[a->col_indices[k]] == column; k++) {
            const int32_t j = a->col_indices[k];
            if (k + 16 < a->nnz) __builtin_prefetch(columns + a->col_indices[k + 16]);
            if (type != NO_VALUES)
                sum = add(op, sum, multiply(op, load(job->a_values, type, k & job->a_select),
                                            load(job->b_values, type, j & job->b_select)));
        }
        if (type != NO_VALUES) w->sums[sum_of(column, ring)] = sum;
        if (marks) mark(w, column, sparse);
    }
}

/* As take_touched for rows that have most columns of their range. Inlined it makes the search of other rows slower:
 * equal rows lose a tenth. */
static __attribute__((noinline)) int64_t take_full(uint64_t *bits, int64_t first, int64_t end, int32_t *columns)
{
    int64_t count = 0;
    for (int64_t i = first; i < end; i++) {
        if (bits[i] == ~(uint64_t)0) {
            for (int j = 0; j < 64; j++) columns[count + j] = (int32_t)(i * 64 + j);
            count += 64;
        } else if (bits[i]) {
            count = take_word(bits[i], i * 64, columns, count);
        }
        bits[i] = 0;
    }
    return count;
}

/* Lists the columns that a row touched, by ascending number, and unmarks them. */
int64_t sp_take_columns(accumulator *w, range columns_of_row, int32_t *columns)
{
    const int64_t first = columns_of_row.low / 64, last = columns_of_row.high / 64;
    if (w->bits[(first + last) / 2] == ~(uint64_t)0) return take_full(w->bits, first, last + 1, columns);
    return take_touched(w->bits, first, last + 1, columns);
}

/* The same where only the columns of `wanted` can have been touched. */
static int64_t take_wanted(accumulator *w, const int32_t *wanted, int64_t wanted_count, int32_t *columns)
{
    int64_t count = 0;
    for (int64_t i = 0; i < wanted_count; i++) {
        columns[count] = wanted[i];
        count += bit_at(w->bits, wanted[i]);
    }
    for (int64_t i = 0; i < count; i++) w->bits[columns[i] >> 6] = 0;
    return count;
}

/* Moves the sums of the listed columns out. */
KERNEL void take_sums(accumulator *w, const int32_t *columns, int64_t count, int op, int type, bool ring, void *values,
                      int64_t to)
{
    double *sums = w->sums;
    if (!ring && count >= LEAST_RUN && columns[count - 1] - columns[0] == count - 1) {
        for (int64_t i = 0; i < count; i++) store(values, type, to + i, sums[columns[0] + i]);
        for (int64_t i = 0; i < count; i++) sums[columns[0] + i] = identity(op);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        store(values, type, to + i, sums[sum_of(columns[i], ring)]);
        sums[sum_of(columns[i], ring)] = identity(op);
    }
}

void sp_row_dense(accumulator *w, int64_t row, int64_t products, range columns_of_row, const int32_t *mask,
                  int64_t mask_count, row_buffer *out)
{
    const row_product *job = w->job;
    const bool excluded = job->complement, wanted = job->mask && !excluded;
    const bool ring = in_ring(job, columns_of_row);
    const bool sparse = ring || (!wanted && products < range_length(columns_of_row) / 64);
    int32_t *columns = out->columns + out->count;
#define WALK(op, type, filtered)                                                                    \
    do {                                                                                            \
        if (!filtered && job->single) walk_groups(w, row, op, type, ring, sparse, true);            \
        else if (ring) walk(w, row, op, type, filtered, excluded, mask, mask_count, put_ring);      \
        else if (sparse)                                                                            \
            walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense_sparse);         \
        else walk_runs(w, row, op, type, filtered, excluded, mask, mask_count, put_dense, put_dense_run); \
    } while (0)
    EACH_KIND(job->kind, WALK)
#undef WALK
    const int64_t count = wanted ? take_wanted(w, mask, mask_count, columns)
                        : sparse ? take_touched_words(w->bits, w->summary, columns_of_row.low,
                                                      (int64_t)columns_of_row.high + 1, columns)
                                 : sp_take_columns(w, columns_of_row, columns);
#define TAKE(op, type, filtered) \
    if (type != NO_VALUES) take_sums(w, columns, count, op, type, ring, out->values, out->count)
    EACH_KIND(job->kind, TAKE)
#undef TAKE
    out->count += count;
}

void sp_values_dense(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                     int64_t to)
{
    const bool ring = count > 0 && in_ring(w->job, (range){columns[0], columns[count - 1]});
#define WALK(op, type, filtered)                                                           \
    do {                                                                                   \
        if (!filtered && w->job->single) walk_groups(w, row, op, type, ring, false, false); \
        else if (ring) walk(w, row, op, type, filtered, false, columns, count, put_known_ring); \
        else walk_runs(w, row, op, type, filtered, false, columns, count, put_known_dense, put_known_run); \
        take_sums(w, columns, count, op, type, ring, values, to);                          \
    } while (0)
    EACH_KIND(kind, WALK)
#undef WALK
}
