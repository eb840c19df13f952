/* Dense sums: a sum a column, a bit a touched column and a bit a touched word of these. The columns come out in order
 * by counting trailing zeros. Where sums for all columns take too much memory, rows that span few columns have theirs
 * in a ring. */
#include "spgemm/cpu/kernels.h"

/* The sum of a column, of its own or in the ring. */
KERNEL int32_t sum_of(int32_t column, bool ring) { return ring ? column & (FREE_COLUMNS - 1) : column; }

KERNEL void add_dense(accumulator *w, int op, int type, int32_t column, double value, bool ring, bool sparse)
{
    if (type != NO_VALUES) w->sums[sum_of(column, ring)] = add(op, w->sums[sum_of(column, ring)], value);
    w->bits[column >> 6] |= (uint64_t)1 << (column & 63);
    if (sparse) w->summary[column >> 12] |= (uint64_t)1 << (column >> 6 & 63);
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

/* Lists the columns that a row touched, by ascending number, and unmarks them. */
int64_t sp_take_columns(accumulator *w, range columns_of_row, int32_t *columns)
{
    return take_touched(w->bits, columns_of_row.low / 64, columns_of_row.high / 64 + 1, columns);
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
KERNEL void take_sums(accumulator *w, const int32_t *columns, int64_t count, int op, int type, bool ring,
                      void *values, int64_t to)
{
    double *sums = w->sums;
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
        if (ring) walk(w, row, op, type, filtered, excluded, mask, mask_count, put_ring);           \
        else if (sparse)                                                                            \
            walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense_sparse);         \
        else walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense);               \
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
        if (ring) walk(w, row, op, type, filtered, false, columns, count, put_known_ring); \
        else walk(w, row, op, type, filtered, false, columns, count, put_known_dense);     \
        take_sums(w, columns, count, op, type, ring, values, to);                          \
    } while (0)
    EACH_KIND(kind, WALK)
#undef WALK
}
