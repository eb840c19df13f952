/* Up to four rows of A with the same columns at once, as finite elements have them: their sums lie side by side, for as
 * many columns as such a row spans, in a ring. */
#include "base/kernel.h"
#include "base/vectors.h"
#include "spgemm/cpu/kernels.h"

/* Rows of B with equal columns that are added in one pass over the sums. Without that finite elements take 1.2 to 1.6
 * times as long on one thread of a Xeon, blocks of 16 to 256 rows 1.7 to 3 times. */
enum { REPEATS = 8 };

typedef double four __attribute__((vector_size(BLOCK * sizeof(double))));

/* Whether the ring holds all columns of a row, which is not much longer than its products. */
bool sp_fits_ring(const row_product *job, range columns, int64_t products)
{
    const int64_t length = (int64_t)columns.high - columns.low;
    return (job->ring < 0 || length <= job->ring) && length / SCAN_COLUMNS <= products;
}

/* Whether all of a row's products are formed: a mask whose row is short against those of B is looked up in them. */
bool sp_worth_block(const row_product *job, int64_t row, int64_t products, int64_t most)
{
    return !job->mask || most * FOUND_SHARE * (job->a->row_offsets[row + 1] - job->a->row_offsets[row]) >= products;
}

/* How many rows from `row` on, below `end`, have the same columns of A and are taken as a block: of five three, so that
 * no row stays alone. */
int sp_block_rows(const row_product *job, int64_t row, int64_t end)
{
    const uint64_t *repeated = job->a_repeated;
    int count = 1;
    while (count < BLOCK + 2 && row + count < end &&
           (repeated ? bit_at(repeated, (int32_t)(row + count)) : same_columns(job->a, row, row + count)))
        count++;
    return count == BLOCK + 1 ? BLOCK - 1 : count < BLOCK ? count : BLOCK;
}

/* Adds the products of A's entries k to k + count - 1, whose rows of B, from j on, have the same columns. Touched
 * columns lie together here, so that a word of their bits is gathered in a register. */
KERNEL void add_rows(accumulator *w, int64_t row, int rows, int64_t k, int32_t j, int type, bool mark, const int count)
{
    const row_product *job = w->job;
    const int64_t *starts = job->a->row_offsets + row;
    const int64_t from = job->b->row_offsets[j], length = job->b->row_offsets[j + 1] - from;
    const int32_t *columns = job->b->col_indices + from;
    const void *values = job->b_values;
    const int64_t select = job->b_select, ring = job->ring;
    double *sums = w->sums;
    four weights[REPEATS];
    int32_t word = 0;
    uint64_t bits = 0;
    for (int i = 0; i < count; i++) {
        weights[i] = (four){0};
        for (int r = 0; r < rows; r++) weights[i][r] = load(job->a_values, type, (starts[r] + k + i) & job->a_select);
    }
    for (int64_t q = 0; q < length; q++) {
        const int32_t column = columns[q];
        four *to = (four *)(sums + BLOCK * (column & ring)), sum = *to;
        for (int i = 0; i < count; i++) sum += weights[i] * load(values, type, (from + i * length + q) & select);
        *to = sum;
        if (!mark) continue;
        if (column >> 6 != word) {
            w->bits[word] |= bits;
            word = column >> 6;
            bits = 0;
        }
        bits |= (uint64_t)1 << (column & 63);
    }
    if (mark) w->bits[word] |= bits;
}

/* How many of A's entries from k on, below `end`, meet rows of B that follow each other and have the same columns. */
static inline int repeated_rows(const row_product *job, int64_t k, int64_t end)
{
    const int32_t *cols = job->a->col_indices;
    int count = 1;
    for (; count < REPEATS && k + count < end && cols[k + count] == cols[k] + count; count++)
        if (!job->b_repeated || !bit_at(job->b_repeated, cols[k] + count)) break;
    return count;
}

KERNEL void walk_block(accumulator *w, int64_t row, int rows, int type, bool mark)
{
    const row_product *job = w->job;
    const int64_t start = job->a->row_offsets[row], end = job->a->row_offsets[row + 1];
    for (int64_t k = start; k < end;) {
        const int32_t j = job->a->col_indices[k];
        int count = repeated_rows(job, k, end);
        if (count == 1) add_rows(w, row, rows, k - start, j, type, mark, 1);
        else if (count == 2) add_rows(w, row, rows, k - start, j, type, mark, 2);
        else if (count == 3) add_rows(w, row, rows, k - start, j, type, mark, 3);
        else if (count < 6) add_rows(w, row, rows, k - start, j, type, mark, count = 4);
        else if (count < 8) add_rows(w, row, rows, k - start, j, type, mark, count = 6);
        else add_rows(w, row, rows, k - start, j, type, mark, 8);
        k += count;
    }
}

KERNEL void take_block(accumulator *w, const int32_t *columns, int64_t count, int rows, int type, void *values,
                       int64_t to)
{
    const int64_t ring = w->job->ring;
    for (int64_t i = 0; i < count; i++) {
        four *sums = (four *)(w->sums + BLOCK * (columns[i] & ring));
        for (int r = 0; r < rows; r++) store(values, type, to + r * count + i, (*sums)[r]);
        *sums = (four){-0.0, -0.0, -0.0, -0.0};
    }
}

/* Fills the sums, marking the columns or not. */
#define WALK_BLOCK(name, attributes)                                                             \
    attributes static void name(accumulator *w, int64_t row, int rows, int type, bool mark)      \
    {                                                                                            \
        if (type == SP_F32 && mark) walk_block(w, row, rows, SP_F32, true);                      \
        else if (type == SP_F32) walk_block(w, row, rows, SP_F32, false);                        \
        else if (mark) walk_block(w, row, rows, SP_F64, true);                                   \
        else walk_block(w, row, rows, SP_F64, false);                                            \
    }
WALK_BLOCK(walk_block_portable, )
#ifdef __x86_64__
WALK_BLOCK(walk_block_avx2, AVX2)
#endif

static void sum_block(accumulator *w, int64_t row, int rows, bool mark)
{
#ifdef __x86_64__
    if (have_avx2()) {
        walk_block_avx2(w, row, rows, (int)w->job->a->value_type, mark);
        return;
    }
#endif
    walk_block_portable(w, row, rows, (int)w->job->a->value_type, mark);
}

static void take_block_sums(accumulator *w, const int32_t *columns, int64_t count, int rows, void *values, int64_t to)
{
    if (w->job->a->value_type == SP_F32) take_block(w, columns, count, rows, SP_F32, values, to);
    else take_block(w, columns, count, rows, SP_F64, values, to);
}

void sp_rows_block(accumulator *w, int64_t row, int rows, range columns_of_row, int64_t *lengths,
                   row_buffer *out)
{
    int32_t *columns = out->columns + out->count;
    sum_block(w, row, rows, true);
    const int64_t count = sp_take_columns(w, columns_of_row, columns);
    take_block_sums(w, columns, count, rows, out->values, out->count);
    for (int r = 0; r < rows; r++) {
        if (r > 0) memcpy(columns + r * count, columns, (size_t)count * sizeof *columns);
        lengths[row + r] = count;
    }
    out->count += rows * count;
}

/* Moves one row's sums out of a block, at the columns that the mask lets pass of those that the block touched. */
KERNEL int64_t take_masked(const accumulator *w, int64_t row, int place, const int32_t *columns, int64_t count,
                           int type, int32_t *kept, void *values, int64_t to)
{
    const row_product *job = w->job;
    const int32_t *listed = job->mask->col_indices + job->mask->row_offsets[row];
    const int32_t *end = job->mask->col_indices + job->mask->row_offsets[row + 1];
    int64_t made = 0;
    for (int64_t i = 0; i < count; i++) {
        while (listed < end && *listed < columns[i]) listed++;
        if ((listed < end && *listed == columns[i]) == job->complement) continue;
        kept[made] = columns[i];
        store(values, type, to + made++, w->sums[BLOCK * (columns[i] & job->ring) + place]);
    }
    return made;
}

/* The same under a mask; together the rows come to have at most `most` entries. */
void sp_rows_block_masked(accumulator *w, int64_t row, int rows, range columns_of_row, int64_t most,
                          int64_t *lengths, row_buffer *out)
{
    int32_t *touched = out->columns + out->count + most; /* behind all that the rows can have */
    sum_block(w, row, rows, true);
    const int64_t count = sp_take_columns(w, columns_of_row, touched);
    for (int r = 0; r < rows; r++) {
        int32_t *kept = out->columns + out->count;
        if (w->job->a->value_type == SP_F32)
            lengths[row + r] = take_masked(w, row + r, r, touched, count, SP_F32, kept, out->values, out->count);
        else lengths[row + r] = take_masked(w, row + r, r, touched, count, SP_F64, kept, out->values, out->count);
        out->count += lengths[row + r];
    }
    for (int64_t i = 0; i < count; i++)
        *(four *)(w->sums + BLOCK * (touched[i] & w->job->ring)) = (four){-0.0, -0.0, -0.0, -0.0};
}

void sp_values_block(accumulator *w, int64_t row, int rows, const int32_t *columns, int64_t count, void *values,
                     int64_t to)
{
    sum_block(w, row, rows, false);
    take_block_sums(w, columns, count, rows, values, to);
}
