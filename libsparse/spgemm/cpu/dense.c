/* Dense sums: a sum a column, a bit a touched column and a bit a touched word of these. The columns come out in order
 * by counting trailing zeros. */
#include "spgemm/cpu/kernels.h"

KERNEL void put_dense(accumulator *w, int op, int type, int32_t column, double value)
{
    if (type != NO_VALUES) w->sums[column] = add(op, w->sums[column], value);
    w->bits[column >> 6] |= (uint64_t)1 << (column & 63);
}

KERNEL void put_dense_sparse(accumulator *w, int op, int type, int32_t column, double value)
{
    put_dense(w, op, type, column, value);
    w->summary[column >> 12] |= (uint64_t)1 << (column >> 6 & 63);
}

/* C's pattern is known: nothing is marked. */
KERNEL void put_known_dense(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)type;
    w->sums[column] = add(op, w->sums[column], value);
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
KERNEL void take_sums(accumulator *w, const int32_t *columns, int64_t count, int op, int type, void *values,
                      int64_t to)
{
    double *sums = w->sums;
    for (int64_t i = 0; i < count; i++) {
        store(values, type, to + i, sums[columns[i]]);
        sums[columns[i]] = identity(op);
    }
}

void sp_row_dense(accumulator *w, int64_t row, int64_t products, range columns_of_row, const int32_t *mask,
                  int64_t mask_count, row_buffer *out)
{
    const row_product *job = w->job;
    const bool excluded = job->complement, wanted = job->mask && !excluded;
    const bool sparse = !wanted && products < range_length(columns_of_row) / 64;
    int32_t *columns = out->columns + out->count;
#define WALK(op, type, filtered)                                                                    \
    do {                                                                                            \
        if (sparse) walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense_sparse); \
        else walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense);               \
    } while (0)
    EACH_KIND(job->kind, WALK)
#undef WALK
    const int64_t count = wanted ? take_wanted(w, mask, mask_count, columns)
                        : sparse ? take_touched_words(w->bits, w->summary, columns_of_row.low,
                                                      (int64_t)columns_of_row.high + 1, columns)
                                 : sp_take_columns(w, columns_of_row, columns);
#define TAKE(op, type, filtered) \
    if (type != NO_VALUES) take_sums(w, columns, count, op, type, out->values, out->count)
    EACH_KIND(job->kind, TAKE)
#undef TAKE
    out->count += count;
}

void sp_values_dense(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                     int64_t to)
{
#define WALK(op, type, filtered)                                                  \
    do {                                                                          \
        walk(w, row, op, type, filtered, false, columns, count, put_known_dense); \
        take_sums(w, columns, count, op, type, values, to);                       \
    } while (0)
    EACH_KIND(kind, WALK)
#undef WALK
}
