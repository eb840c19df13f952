/* What the accumulators share (accumulator.h): arithmetic, the walk over the products of a row, the kernels that are
 * compiled once a semiring, value type and filter, and what each of them offers. */
#ifndef SPARSE_CPU_KERNELS_H
#define SPARSE_CPU_KERNELS_H

#include <math.h>
#include <string.h>

#include "base/ablation.h"
#include "base/kernel.h"
#include "base/search.h"
#include "core/table.h"
#include "core/touched.h"
#include "spgemm/cpu/accumulator.h"

/* Rows of fewer products than one per SCAN_COLUMNS columns of their range are hashed: dense ones look through a word
 * per 4,096 columns. */
enum { SCAN_COLUMNS = 1 << 14 };
/* The mask's columns are looked up in rows of B that are at least FOUND_SHARE times as long. */
enum { FOUND_SHARE = 16 };
/* Dense sums of this many columns fit the second-level cache of any machine, and are free. */
enum { FREE_COLUMNS = 1 << 16 };
/* Rows in a block: a register of AVX2. */
enum { BLOCK = 4 };

enum { F32 = SP_F32, F64 = SP_F64, NO_VALUES };

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

KERNEL double identity(int op) { return op == SP_PLUS_TIMES ? -0.0 : op == SP_MIN_PLUS ? INFINITY : -INFINITY; }

KERNEL double multiply(int op, double x, double y) { return op == SP_MIN_PLUS ? x + y : x * y; }

KERNEL double add(int op, double sum, double next)
{
    if (op == SP_PLUS_TIMES) return sum + next;
    if (op == SP_MIN_PLUS) return next < sum ? next : sum;
    return next > sum ? next : sum;
}

KERNEL double load(const void *values, int type, int64_t i)
{
    return type == SP_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

KERNEL void store(void *values, int type, int64_t i, double value)
{
    if (type == SP_F32) ((float *)values)[i] = (float)value;
    else ((double *)values)[i] = value;
}

/* ---- the products of a row ----------------------------------------------------------------------------- */

KERNEL bool bit_at(const uint64_t *bits, int32_t column) { return bits[column >> 6] >> (column & 63) & 1; }

/* Where a product goes. */
typedef void put_product(accumulator *w, int op, int type, int32_t column, double value);

/* B's rows are reached through A's columns: their offsets are asked for 16 entries ahead, their first entries 6. On
 * rows drawn at random this halves the time, on others it costs a few percent. */
KERNEL void prefetch_rows(const row_product *job, int64_t k, int type)
{
    const sp_csr *a = job->a, *b = job->b;
    if (k + 16 >= a->nnz) return;
    __builtin_prefetch(&b->row_offsets[a->col_indices[k + 16]]);
    const int64_t start = b->row_offsets[a->col_indices[k + 6]];
    __builtin_prefetch(b->col_indices + start);
    if (type == NO_VALUES) return;
    const size_t size = type == SP_F32 ? sizeof(float) : sizeof(double);
    __builtin_prefetch((const char *)job->b_values + (size_t)(start & job->b_select) * size);
    __builtin_prefetch((const char *)job->b_values + (size_t)((start + 8) & job->b_select) * size);
}

/* Puts the products of B's row at the mask's columns, found by bisection. */
KERNEL void walk_found(accumulator *w, int32_t j, double weight, const int32_t *wanted, int64_t count, int op, int type,
                       put_product *put)
{
    const row_product *job = w->job;
    const int32_t *columns = job->b->col_indices;
    int64_t low = job->b->row_offsets[j];
    const int64_t end = job->b->row_offsets[j + 1];
    for (int64_t i = 0; i < count && low < end; i++) {
        low = lower_bound_i32(columns, low, end, wanted[i]);
        if (low == end || columns[low] != wanted[i]) continue;
        const double value = type == NO_VALUES ? 0 : load(job->b_values, type, low & job->b_select);
        put(w, op, type, wanted[i], multiply(op, weight, value));
    }
}

/* Puts the products of A's row, where row j of B has one entry, j. */
KERNEL void walk_single(accumulator *w, int64_t row, int op, int type, put_product *put)
{
    const row_product *job = w->job;
    const sp_csr *a = job->a;
    const int32_t *columns = job->b->col_indices;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        const double weight = type == NO_VALUES ? 0 : load(job->a_values, type, k & job->a_select);
        if (k + 16 < a->nnz) __builtin_prefetch(columns + a->col_indices[k + 16]);
        put(w, op, type, columns[j],
            type == NO_VALUES ? 0 : multiply(op, weight, load(job->b_values, type, j & job->b_select)));
    }
}

/* Puts the products of a row of B, whose entries begin with `from` and have the columns `first`, `first` + 1, ... */
typedef void put_run(accumulator *w, int op, int type, int32_t first, int64_t from, int64_t length, double weight);

/* Entries from which on it is asked whether columns follow each other. Full rows and columns take 2.2 times as long
 * without it on one thread, an arrowhead 2.4 times. */
enum { LEAST_RUN = 32 };

/* Whether the columns of B's row follow each other, and its values can be read one after another. */
KERNEL bool is_run(const row_product *job, int64_t start, int64_t end, int type)
{
    const int32_t *columns = job->b->col_indices;
    return end - start >= LEAST_RUN && columns[end - 1] - columns[start] == end - start - 1 &&
           (type == NO_VALUES || job->b_select);
}

/* Puts the products of A's row. With `filtered` only columns whose filter bit is not `excluded`; where these are the
 * columns of a short row of `wanted`, they are looked up in long rows of B. `run`, where it is given, takes rows of B
 * whose columns follow each other. */
KERNEL void walk_runs(accumulator *w, int64_t row, int op, int type, bool filtered, bool excluded,
                      const int32_t *wanted, int64_t wanted_count, put_product *put, put_run *run)
{
    const row_product *job = w->job;
    const int64_t *offsets = job->b->row_offsets;
    const int32_t *columns = job->b->col_indices;
    const void *values = job->b_values;
    const int64_t select = job->b_select;
    if (!filtered && job->single) {
        walk_single(w, row, op, type, put);
        return;
    }
    for (int64_t k = job->a->row_offsets[row]; k < job->a->row_offsets[row + 1]; k++) {
        const int32_t j = job->a->col_indices[k];
        const double weight = type == NO_VALUES ? 0 : load(job->a_values, type, k & job->a_select);
        const int64_t end = offsets[j + 1];
        prefetch_rows(job, k, type);
        if (filtered && !excluded && wanted_count * FOUND_SHARE < end - offsets[j]) {
            walk_found(w, j, weight, wanted, wanted_count, op, type, put);
            continue;
        }
        if (run && !filtered && is_run(job, offsets[j], end, type)) {
            run(w, op, type, columns[offsets[j]], offsets[j], end - offsets[j], weight);
            continue;
        }
        for (int64_t q = offsets[j]; q < end; q++) {
            if (filtered && bit_at(w->filter, columns[q]) == excluded) continue;
            put(w, op, type, columns[q],
                type == NO_VALUES ? 0 : multiply(op, weight, load(values, type, q & select)));
        }
    }
}

KERNEL void walk(accumulator *w, int64_t row, int op, int type, bool filtered, bool excluded, const int32_t *wanted,
                 int64_t wanted_count, put_product *put)
{
    walk_runs(w, row, op, type, filtered, excluded, wanted, wanted_count, put, NULL);
}

/* Scales `count` values of B, from `from` on, by A's entry k. */
KERNEL void copy_values(const row_product *job, int64_t k, int64_t from, int64_t count, int op, int type, void *values,
                        int64_t to)
{
    const double weight = load(job->a_values, type, k & job->a_select);
    for (int64_t i = 0; i < count; i++)
        store(values, type, to + i,
              add(op, identity(op), multiply(op, weight, load(job->b_values, type, (from + i) & job->b_select))));
}

/* One case for each compiled kernel; KERNEL_OF(op, type, filtered). */
#define EACH_KIND(kind, KERNEL_OF)                              \
    switch (kind) {                                             \
    case 0: KERNEL_OF(SP_PLUS_TIMES, F32, false); break;        \
    case 1: KERNEL_OF(SP_PLUS_TIMES, F32, true); break;         \
    case 2: KERNEL_OF(SP_PLUS_TIMES, F64, false); break;        \
    case 3: KERNEL_OF(SP_PLUS_TIMES, F64, true); break;         \
    case 4: KERNEL_OF(SP_MIN_PLUS, F32, false); break;          \
    case 5: KERNEL_OF(SP_MIN_PLUS, F32, true); break;           \
    case 6: KERNEL_OF(SP_MIN_PLUS, F64, false); break;          \
    case 7: KERNEL_OF(SP_MIN_PLUS, F64, true); break;           \
    case 8: KERNEL_OF(SP_MAX_TIMES, F32, false); break;         \
    case 9: KERNEL_OF(SP_MAX_TIMES, F32, true); break;          \
    case 10: KERNEL_OF(SP_MAX_TIMES, F64, false); break;        \
    case 11: KERNEL_OF(SP_MAX_TIMES, F64, true); break;         \
    case 12: KERNEL_OF(SP_PLUS_TIMES, NO_VALUES, false); break; \
    default: KERNEL_OF(SP_PLUS_TIMES, NO_VALUES, true); break;  \
    }

/* ---- rows ---------------------------------------------------------------------------------------------- */

typedef struct range {
    int32_t low, high; /* low > high: empty */
} range;

/* The first and the last column that the row's products have. */
static inline range row_range(const row_product *job, int64_t row)
{
    const sp_csr *a = job->a, *b = job->b;
    int32_t low = INT32_MAX, high = 0;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int64_t start = b->row_offsets[a->col_indices[k]], end = b->row_offsets[a->col_indices[k] + 1];
        if (start == end) continue;
        if (b->col_indices[start] < low) low = b->col_indices[start];
        if (b->col_indices[end - 1] > high) high = b->col_indices[end - 1];
    }
    return (range){low, high};
}

static inline int64_t range_length(range columns)
{
    return columns.low > columns.high ? 0 : (int64_t)columns.high - columns.low + 1;
}

/* Whether column j of a dense row in this range has the sum j & (FREE_COLUMNS - 1), not one of its own. */
static inline bool in_ring(const row_product *job, range columns)
{
    return job->local && !job->dense && range_length(columns) <= FREE_COLUMNS;
}

static inline bool single_entry(const row_product *job, int64_t row)
{
    return job->a->row_offsets[row + 1] - job->a->row_offsets[row] == 1;
}

static inline bool same_columns(const sp_csr *a, int64_t row, int64_t other)
{
    const int64_t start = a->row_offsets[row], count = a->row_offsets[row + 1] - start;
    const int64_t at = a->row_offsets[other];
    return a->row_offsets[other + 1] - at == count && count > 0 && a->col_indices[start] == a->col_indices[at] &&
           memcmp(a->col_indices + start, a->col_indices + at, (size_t)count * sizeof(int32_t)) == 0;
}

/* ---- accumulators -------------------------------------------------------------------------------------- */

/* Each makes one row of C, or `rows` of them, at the end of `out`, or the values of a known row from `to` on. `mask`:
 * the columns that the mask lists in this row. */

/* copy.c: A's row has one entry, k. */
void sp_row_copy(accumulator *w, int64_t row, int64_t count, row_buffer *out);
void sp_values_copy(const row_product *job, int64_t k, void *values, int64_t to);

/* short.c */
void sp_row_short(accumulator *w, int64_t row, const int32_t *mask, int64_t mask_count, row_buffer *out);
/* Rows of up to SHORT_PRODUCTS products without a mask, copies too, from *row on up to the first of more, or `end`. */
sp_status sp_rows_light(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out);

/* lanes.c: the same for the products that sp_fits_lanes names. */
bool sp_fits_lanes(const row_product *job);
sp_status sp_rows_lanes(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out);

/* dense.c */
void sp_row_dense(accumulator *w, int64_t row, int64_t products, range columns_of_row, const int32_t *mask,
                  int64_t mask_count, row_buffer *out);
void sp_values_dense(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                     int64_t to);
/* Lists the columns that a row touched, by ascending number, and unmarks them. */
int64_t sp_take_columns(accumulator *w, range columns_of_row, int32_t *columns);

/* block.c */
bool sp_fits_ring(const row_product *job, range columns, int64_t products);
bool sp_worth_block(const row_product *job, int64_t row, int64_t products, int64_t most);
int sp_block_rows(const row_product *job, int64_t row, int64_t end);
void sp_rows_block(accumulator *w, int64_t row, int rows, range columns_of_row, int64_t *lengths, row_buffer *out);
void sp_rows_block_masked(accumulator *w, int64_t row, int rows, range columns_of_row, int64_t most, int64_t *lengths,
                          row_buffer *out);
void sp_values_block(accumulator *w, int64_t row, int rows, const int32_t *columns, int64_t count, void *values,
                     int64_t to);

/* shift.c: how many rows from `row` on, below `end`, are shifted ones; each has at most MOST_SHIFTED products. They are
 * made after the row before them, or their values where the columns of the first one are known. */
enum { MOST_SHIFTED = 1024 };
int64_t sp_shifted_rows(const row_product *job, int64_t row, int64_t end);
void sp_rows_shifted(accumulator *w, int64_t row, int64_t rows, int64_t *counts, row_buffer *out);
void sp_values_shifted(const row_product *job, int64_t row, int64_t rows, const int32_t *columns, int64_t count,
                       void *values, int64_t to);

/* hash.c */
void sp_row_hash(accumulator *w, int64_t row, int64_t entries, const int32_t *mask, int64_t mask_count,
                 row_buffer *out);
void sp_values_hash(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                    int64_t to);

#endif
