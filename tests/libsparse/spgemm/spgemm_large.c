/* test_spgemm: more than 2^31 entries. */
#include <string.h>

#include "spgemm_shared.h"

/* C of 2.5 · 10^9 entries from 3.4 · 10^9 products, in f32: 20 GB. Row i of A is alike in pattern to row i mod KINDS,
 * so that the length of every row of C is known from a few; all numbers are small integers, and sums exact. */
enum { LARGE_ROWS = 4200000, LARGE_INNER = 5000, LARGE_COLS = 30200, KINDS = 97, SAMPLED = 300 };

static int64_t elements_of_a(int64_t row) { return row % KINDS == KINDS - 1 ? 0 : 1 + row % KINDS % 5; }
static int32_t column_of_a(int64_t row, int64_t i) { return (int32_t)(1000 * i + row % KINDS * 37 % 1000); }
static float value_of_a(int64_t row, int64_t i) { return (float)(1 + (row + i) % 13); }
static int64_t elements_of_b(int64_t row) { return 8 + row * row % 600; }
static int32_t column_of_b(int64_t row, int64_t i) { return (int32_t)(row * 17 % 1000 + i * (1 + row % 60)); }
static float value_of_b(int64_t row, int64_t i) { return (float)(1 + (row + i) % 7); }

static sp_csr large_matrix(sp_context *host, int64_t rows, int64_t cols, int64_t (*elements)(int64_t),
                           int32_t (*column)(int64_t, int64_t), float (*value)(int64_t, int64_t))
{
    sp_csr made;
    int64_t nnz = 0;
    for (int64_t row = 0; row < rows; row++) nnz += elements(row);
    ck_ok(host, sp_csr_create(host, rows, cols, nnz, SP_F32, SP_HOST, &made));
    made.row_offsets[0] = nnz = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < elements(row); i++, nnz++) {
            made.col_indices[nnz] = column(row, i);
            ((float *)made.values)[nnz] = value(row, i);
        }
        made.row_offsets[row + 1] = nnz;
    }
    return made;
}

/* Sums of row `row` of C, 0 where it has no entry, as no sum is 0; returns its entries. */
static int64_t large_row(int64_t row, float *sums)
{
    int64_t entries = 0;
    memset(sums, 0, LARGE_COLS * sizeof *sums);
    for (int64_t i = 0; i < elements_of_a(row); i++) {
        const int32_t k = column_of_a(row, i);
        for (int64_t j = 0; j < elements_of_b(k); j++) {
            float *sum = &sums[column_of_b(k, j)];
            entries += *sum == 0;
            *sum += value_of_a(row, i) * value_of_b(k, j);
        }
    }
    return entries;
}

static void check_large_row(sp_context *context, const sp_csr *c, int64_t row, int64_t begin, int64_t count)
{
    static float sums[LARGE_COLS], values[LARGE_COLS];
    static int32_t cols[LARGE_COLS];
    test_expect(large_row(row, sums) == count, "row %lld has %lld entries", (long long)row, (long long)count);
    ck_ok(context, sp_array_copy(context, count, sizeof *cols, cols, SP_HOST, c->col_indices + begin, SP_DEVICE));
    ck_ok(context, sp_array_copy(context, count, sizeof *values, values, SP_HOST, (float *)c->values + begin,
                                 SP_DEVICE));
    for (int64_t i = 0, col = 0; i < count; i++, col++) {
        while (sums[col] == 0) col++;
        test_expect(cols[i] == col && values[i] == sums[col], "row %lld, entry %lld: column %d, %g, not %lld, %g",
                    (long long)row, (long long)i, cols[i], (double)values[i], (long long)col, (double)sums[col]);
    }
}

/* All offsets, and some rows, among them the one that 2^31 entries come before. */
static void check_large(sp_context *context, const sp_csr *c)
{
    static float sums[LARGE_COLS];
    int64_t length[KINDS], end = 0, *offsets;
    for (int64_t row = 0; row < KINDS; row++) length[row] = large_row(row, sums);
    ck_ok(context, sp_alloc(context, LARGE_ROWS + 1, sizeof *offsets, (void **)&offsets));
    ck_ok(context, sp_array_copy(context, LARGE_ROWS + 1, sizeof *offsets, offsets, SP_HOST, c->row_offsets,
                                 SP_DEVICE));
    ck_assert_int_eq(offsets[0], 0);
    for (int64_t row = 0, next = 0; row < LARGE_ROWS; row++) {
        const int64_t begin = end;
        end += length[row % KINDS];
        test_expect(offsets[row + 1] == end, "row %lld ends at %lld, not %lld", (long long)row,
                    (long long)offsets[row + 1], (long long)end);
        if (row < next && row != LARGE_ROWS - 1 && !(begin <= INT32_MAX && end > INT32_MAX)) continue;
        check_large_row(context, c, row, begin, end - begin);
        if (row >= next) next += LARGE_ROWS / SAMPLED;
    }
    ck_assert_int_gt(end, (int64_t)1 << 31);
    ck_assert_int_eq(c->nnz, end);
    sp_free(context, offsets);
}

/* Asked outside of tests, where Check can take no failure. */
static bool has_large_room(void)
{
    const int64_t bytes = (int64_t)48 << 30;
    void *array;
    sp_context *context;
    if (test_is_brief()) return false;
    if (sp_context_create(&(sp_context_options){.device = "cuda"}, &context) != SP_OK) return false;
    const bool has = sp_array_create(context, bytes, 1, SP_DEVICE, &array) == SP_OK;
    if (has) sp_array_free(context, SP_DEVICE, array);
    sp_context_destroy(context);
    return has;
}

DEVICE_TEST(entries_may_outnumber_32_bits, 1, 0)
{
    sp_csr a = large_matrix(host, LARGE_ROWS, LARGE_INNER, elements_of_a, column_of_a, value_of_a), c;
    sp_csr b = large_matrix(host, LARGE_INNER, LARGE_COLS, elements_of_b, column_of_b, value_of_b);
    sp_spgemm_plan *plan;
    ck_ok(context, sp_spgemm(context, &a, &b, NULL, &c, NULL));
    check_large(context, &c);
    sp_csr_free(context, &c);
    ck_ok(context, sp_spgemm_plan_create(context, &a, &b, NULL, &plan));
    ck_ok(context, sp_spgemm_plan_execute(plan, 1, &a, &b, 0, &c));
    check_large(context, &c);
    sp_csr_free(context, &c);
    sp_spgemm_plan_free(plan);
    test_free(host, &a, &b);
}

const test_entry large_tests[] = {
    CASE("large", 120),
    ONCE_IF(entries_may_outnumber_32_bits, has_large_room),
    {0},
};
