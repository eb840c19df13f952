/* Rows of A that are the row before them, one column to the right, where the same holds for the rows of B that they
 * multiply: stencils and bands in the order of their grid. C's row then is the one before, one column to the right,
 * too, and each product goes to the place in it where that of the row before went. So nothing is marked or sorted, and
 * four rows are summed at once, side by side. One thread of a Xeon takes 0.45 to 0.6 of the time. */
#include "base/kernel.h"
#include "base/vectors.h"
#include "spgemm/cpu/kernels.h"

typedef double four __attribute__((vector_size(BLOCK * sizeof(double))));

/* Finding the places costs more than they save for shorter runs of such rows. */
enum { LEAST_SHIFTED = 4 };
/* With fewer products an entry of B, the search for shifted rows costs what they save. */
enum { FEW_PRODUCTS = 3 };

/* Whether the row is the row before it, `by` columns to the right. */
static bool is_shifted(const sp_csr *m, int64_t row, int by)
{
    const int64_t *offsets = m->row_offsets;
    const int64_t start = offsets[row], count = offsets[row + 1] - start;
    if (row == 0 || start - offsets[row - 1] != count) return false;
    const int32_t *own = m->col_indices + start, *before = own - count;
    int64_t i = 0;
    while (i < count && own[i] == before[i] + by) i++;
    return i == count;
}

/* Whether three quarters of a sample of rows are shifted ones with entries. */
static bool mostly_shifted(const sp_csr *m)
{
    const int64_t step = (m->rows / 256) | 1;
    int64_t shifted = 0, seen = 0;
    for (int64_t row = step; row < m->rows; row += step, seen++)
        shifted += m->row_offsets[row + 1] > m->row_offsets[row] && is_shifted(m, row, 1);
    return shifted * 4 > seen * 3;
}

/* A bit for each row that is the row before it, `by` columns to the right. */
static sp_status find_shifted(sp_context *context, const sp_csr *m, int by, uint64_t **bits, int64_t *bytes)
{
    const int64_t words = m->rows / 64 + 1;
    const sp_status status = sp_calloc(context, words, sizeof **bits, (void **)bits);
    if (status != SP_OK) return status;
    *bytes += words * (int64_t)sizeof **bits;
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, m->nnz))
    for (int64_t i = 0; i < words; i++) {
        const int64_t end = (i + 1) * 64 < m->rows ? (i + 1) * 64 : m->rows;
        for (int64_t row = i * 64; row < end; row++) (*bits)[i] |= (uint64_t)is_shifted(m, row, by) << (row & 63);
    }
    return SP_OK;
}

/* In blocks the repeated rows, which have the columns of the row before. */
sp_status sp_find_shifts(sp_context *context, bool masked, int64_t products, int64_t *bytes, row_product *job)
{
    const sp_csr *a = job->a, *b = job->b;
    const bool same = a->col_indices == b->col_indices && a->row_offsets == b->row_offsets && a->rows == b->rows;
    sp_status status = SP_OK;
    if (job->blocks && !job->pattern && !left_out("spgemm-repeat")) {
        TRY(find_shifted(context, a, 0, &job->a_repeated, bytes));
        if (same) job->b_repeated = job->a_repeated;
        else TRY(find_shifted(context, b, 0, &job->b_repeated, bytes));
        return SP_OK;
    }
    if (masked || job->algorithm != SP_SPGEMM_AUTO || job->blocks || left_out("spgemm-shift")) return SP_OK;
    if (products < FEW_PRODUCTS * b->nnz || !mostly_shifted(a) || (!same && !mostly_shifted(b))) return SP_OK;
    TRY(find_shifted(context, a, 1, &job->a_shifted, bytes));
    if (same) job->b_shifted = job->a_shifted;
    else TRY(find_shifted(context, b, 1, &job->b_shifted, bytes));
done:
    return status;
}

void sp_forget_shifts(sp_context *context, row_product *job)
{
    if (job->b_shifted != job->a_shifted) sp_free(context, job->b_shifted);
    sp_free(context, job->a_shifted);
    if (job->b_repeated != job->a_repeated) sp_free(context, job->b_repeated);
    sp_free(context, job->a_repeated);
    job->a_shifted = job->b_shifted = job->a_repeated = job->b_repeated = NULL;
}

/* How many bits from `at` on are set, at most `most`, which lie in the array. */
static int64_t set_bits(const uint64_t *bits, int64_t at, int64_t most)
{
    int64_t count = 0;
    while (count < most) {
        const uint64_t clear = ~bits[(at + count) >> 6] >> ((at + count) & 63);
        if (clear) {
            count += __builtin_ctzll(clear);
            break;
        }
        count += 64 - ((at + count) & 63);
    }
    return count < most ? count : most;
}

int64_t sp_shifted_rows(const row_product *job, int64_t row, int64_t end)
{
    const int64_t *offsets = job->a->row_offsets, *rows_of_b = job->b->row_offsets;
    int64_t rows = job->a_shifted ? set_bits(job->a_shifted, row, end - row) : 0, products = 0;
    for (int64_t k = offsets[row]; rows >= LEAST_SHIFTED && k < offsets[row + 1]; k++) {
        const int32_t j = job->a->col_indices[k];
        rows = set_bits(job->b_shifted, j, rows);
        products += rows_of_b[j + 1] - rows_of_b[j];
        if (products > MOST_SHIFTED) return 0;
    }
    return rows < LEAST_SHIFTED || products == 0 ? 0 : rows;
}

/* Where the products of a row go in its sums; its columns in C are known. */
static void find_places(const row_product *job, int64_t row, const int32_t *columns, int64_t count, uint16_t *places)
{
    const sp_csr *a = job->a, *b = job->b;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        for (int64_t q = b->row_offsets[j]; q < b->row_offsets[j + 1]; q++)
            *places++ = (uint16_t)lower_bound_i32(columns, 0, count, b->col_indices[q]);
    }
}

/* One row. */
KERNEL void sum_row(const row_product *job, int64_t row, const uint16_t *places, int64_t count, int op, int type,
                    void *values, int64_t to)
{
    const sp_csr *a = job->a, *b = job->b;
    double sums[MOST_SHIFTED];
    for (int64_t i = 0; i < count; i++) sums[i] = identity(op);
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        const double weight = load(job->a_values, type, k & job->a_select);
        for (int64_t q = b->row_offsets[j]; q < b->row_offsets[j + 1]; q++, places++)
            sums[*places] = add(op, sums[*places], multiply(op, weight, load(job->b_values, type, q & job->b_select)));
    }
    for (int64_t i = 0; i < count; i++) store(values, type, to + i, sums[i]);
}

/* The same entry of four rows, which follow each other `apart` entries apart. */
KERNEL void load_four(const void *values, int type, int64_t at, int64_t apart, int64_t select, four *numbers)
{
    *numbers = (four){load(values, type, at & select), load(values, type, (at + apart) & select),
                      load(values, type, (at + 2 * apart) & select), load(values, type, (at + 3 * apart) & select)};
}

/* Four rows, plus-times. */
KERNEL void sum_four(const row_product *job, int64_t row, const uint16_t *places, int64_t count, int type, void *values,
                     int64_t to)
{
    const sp_csr *a = job->a, *b = job->b;
    const int64_t start = a->row_offsets[row], end = a->row_offsets[row + 1];
    four sums[MOST_SHIFTED];
    for (int64_t i = 0; i < count; i++) sums[i] = (four){-0.0, -0.0, -0.0, -0.0};
    for (int64_t k = start; k < end; k++) {
        const int64_t from = b->row_offsets[a->col_indices[k]], length = b->row_offsets[a->col_indices[k] + 1] - from;
        four weights = {0}, numbers = {0};
        load_four(job->a_values, type, k, end - start, job->a_select, &weights);
        for (int64_t q = 0; q < length; q++) {
            load_four(job->b_values, type, from + q, length, job->b_select, &numbers);
            sums[*places++] += weights * numbers;
        }
    }
    for (int64_t i = 0; i < count; i++)
        for (int r = 0; r < BLOCK; r++) store(values, type, to + r * count + i, sums[i][r]);
}

#define SUM_ROWS(name, attributes)                                                                                  \
    attributes static void name(const row_product *job, int64_t row, int64_t rows, const uint16_t *places,          \
                                int64_t count, void *values, int64_t to)                                            \
    {                                                                                                               \
        const int kind = job->kind & ~1;                                                                            \
        int64_t r = 0;                                                                                              \
        for (; kind == 0 && r + BLOCK <= rows; r += BLOCK)                                                          \
            sum_four(job, row + r, places, count, F32, values, to + r * count);                                     \
        for (; kind == 2 && r + BLOCK <= rows; r += BLOCK)                                                          \
            sum_four(job, row + r, places, count, F64, values, to + r * count);                                     \
        for (; r < rows; r++) EACH_KIND(kind, ONE_ROW)                                                              \
    }
#define ONE_ROW(op, type, filtered) sum_row(job, row + r, places, count, op, type, values, to + r * count)
SUM_ROWS(sum_rows_portable, )
#ifdef __x86_64__
SUM_ROWS(sum_rows_avx2, AVX2)
#endif

void sp_values_shifted(const row_product *job, int64_t row, int64_t rows, const int32_t *columns, int64_t count,
                       void *values, int64_t to)
{
    uint16_t places[MOST_SHIFTED];
    find_places(job, row, columns, count, places);
#ifdef __x86_64__
    if (have_avx2()) {
        sum_rows_avx2(job, row, rows, places, count, values, to);
        return;
    }
#endif
    sum_rows_portable(job, row, rows, places, count, values, to);
}

/* A row's columns, `by` to the right. All rows of a run are made from the row before it: not each from the last, which
 * would wait for what was stored just then. */
static void shift_columns(const int32_t *restrict from, int64_t count, int32_t by, int32_t *restrict to)
{
    for (int64_t i = 0; i < count; i++) to[i] = from[i] + by;
}

void sp_rows_shifted(accumulator *w, int64_t row, int64_t rows, int64_t *counts, row_buffer *out)
{
    const int64_t count = counts[row - 1];
    int32_t *columns = out->columns + out->count;
    for (int64_t r = 0; r < rows; r++) {
        shift_columns(columns - count, count, (int32_t)r + 1, columns + r * count);
        counts[row + r] = count;
    }
    if (!w->job->pattern) sp_values_shifted(w->job, row, rows, columns, count, out->values, out->count);
    w->rows[ROW_SHIFT] += rows;
    out->count += rows * count;
}
