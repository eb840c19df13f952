/* test_operations: the k largest of each row. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "operations_shared.h"

/* The k largest numbers of each row, of equals those of the lowest columns. */
static void keep_largest(dense *d, int64_t k)
{
    bool stays[700];
    for (int64_t i = 0; i < d->rows; i++) {
        double *number = d->number + i * d->cols;
        bool *there = d->there + i * d->cols;
        for (int64_t j = 0; j < d->cols; j++) {
            int64_t before = 0;
            for (int64_t l = 0; l < d->cols; l++)
                before += there[l] && (number[l] > number[j] || (number[l] == number[j] && l < j));
            stays[j] = there[j] && before < k;
        }
        for (int64_t j = 0; j < d->cols; j++)
            if (!stays[j]) there[j] = false, number[j] = 0;
    }
}

CONTEXT_TEST(the_k_largest_of_each_row_stay, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(150); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 30), cols = test_below(&random, seed % 5 == 0 ? 700 : 70);
        const int64_t k = test_below(&random, 2 + cols / 2);
        sp_csr x = random_matrix(context, &random, rows, cols, seed % 2 ? SP_F32 : SP_F64), b;
        sp_csr a = send(context, &random, &x);
        dense expected = dense_of(&x);
        keep_largest(&expected, k);
        ck_ok(context, sp_csr_top_k(context, &a, k, &b));
        ck_assert(!b.values == !x.values && b.value_type == x.value_type);
        check_matrix(context, &b, &expected, (uint64_t)seed);
        test_free(context, &x, &a);
    }
}

/* Sums run by ascending column of A and are rounded once. */
static dense dense_product(const sp_csr *a, const sp_csr *b, const sp_csr *mask)
{
    dense x = dense_of(a), y = dense_of(b), c = dense_create(a->rows, b->cols);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t l = 0; l < x.cols; l++)
            for (int64_t j = 0; x.there[i * x.cols + l] && j < c.cols; j++) {
                if (!y.there[l * y.cols + j]) continue;
                c.there[i * c.cols + j] = true;
                c.number[i * c.cols + j] += x.number[i * x.cols + l] * y.number[l * y.cols + j];
            }
    for (int64_t i = 0; i < c.rows * c.cols; i++) c.number[i] = rounded(c.number[i], a->value_type);
    if (mask) {
        dense m = dense_of(mask);
        for (int64_t i = 0; i < c.rows * c.cols; i++)
            if (!m.there[i]) c.there[i] = false, c.number[i] = 0;
        dense_free(&m);
    }
    dense_free(&x);
    dense_free(&y);
    return c;
}

CONTEXT_TEST(the_k_largest_of_each_row_of_a_product, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(60); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 30), inner = test_below(&random, 40), cols = test_below(&random, 50);
        const int64_t k = test_below(&random, 2 + cols / 2);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr x = random_matrix(context, &random, rows, inner, type), a = send(context, &random, &x);
        sp_csr y = random_matrix(context, &random, inner, cols, type), b = send(context, &random, &y);
        sp_csr mask = random_matrix(context, &random, rows, cols, SP_F32), c;
        const bool masked = seed % 3 == 0;
        const sp_spgemm_options options = {.mask = masked ? &mask : NULL};
        sp_spgemm_info info;
        ck_ok(context, sp_spgemm_top_k(context, &a, &b, k, &options, &c, &info));
        ck_assert(info.nnz == c.nnz && info.batches == 1);
        dense expected = dense_product(&x, &y, options.mask);
        keep_largest(&expected, k);
        check_matrix(context, &c, &expected, (uint64_t)seed);
        sp_csr *all[] = {&x, &y, &a, &b, &mask};
        for (int i = 0; i < 5; i++) sp_csr_free(context, all[i]);
    }
}

/* Blocks of rows under a memory budget: the same bits, with masks, transposes, semirings and C on the host. */
TEST(blocks_of_a_product_keep_their_k_largest)
{
    enum { ROWS = 1200, KEPT = 7 };
    sp_csr mask;
    const sp_spgemm_options kinds[] = {{0}, {.transpose_b = true, .to_host = true}, {.semiring = SP_OR_AND},
                                       {.mask = &mask, .complement = true, .transpose_a = true},
                                       {.mask = &mask, .semiring = SP_MAX_TIMES}};
    sp_context *context = test_context(_i, 0);
    sp_context *limited = test_context_with(_i, (sp_context_options){.memory_budget = 16 << 20});
    for (size_t n = 0; n < COUNT(kinds); n++) {
        test_random random = test_seed(n);
        sp_csr a = test_matrix(context, &random, ROWS, ROWS, 0.04, n % 2 ? SP_F32 : SP_F64, TEST_SIGNED);
        sp_csr b = spread_matrix(context, ROWS, ROWS, 40, 77, a.value_type, n), whole, expected, found;
        mask = test_matrix(context, &random, ROWS, ROWS, 0.2, SP_F32, TEST_PATTERN);
        sp_spgemm_info info;
        ck_ok(context, sp_spgemm(context, &a, &b, &kinds[n], &whole, NULL));
        ck_ok(context, sp_csr_top_k(context, &whole, KEPT, &expected));
        ck_ok(limited, sp_spgemm_top_k(limited, &a, &b, KEPT, &kinds[n], &found, &info));
        ck_assert_int_gt(info.batches, 2);
        ck_assert_int_eq(info.product_nnz, whole.nnz);
        int64_t grouped = 0;
        for (int i = 0; i < info.groups; i++) grouped += info.group[i].count;
        ck_assert(info.groups <= SP_SPGEMM_GROUPS && grouped < ROWS); /* of the last block */
        ck_assert(found.space == (kinds[n].to_host ? SP_HOST : test_space(limited)));
        test_to_host(limited, &found);
        test_to_host(context, &expected);
        test_same(&found, &expected, n);
        sp_csr_free(limited, &found);
        sp_csr *all[] = {&a, &b, &whole, &expected, &mask};
        for (int i = 0; i < 5; i++) sp_csr_free(context, all[i]);
    }
    test_end(limited, context);
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Rows of 1,000 to 300,000 entries, their values all different, few different ones, or all equal. */
CONTEXT_TEST(long_rows_keep_their_k_largest, _i, 0)
{
    enum { LONGEST = 300000 };
    static const int64_t lengths[] = {1000, 1024, 1025, 4096, 4097, 30000, 0, LONGEST, 3, 8193};
    static const int64_t kept[] = {1, 10, 1024, 4000, 29999, 290000};
    double *sorted = test_block(LONGEST * sizeof *sorted);
    for (int kind = 0; kind < 6; kind++) {
        const sp_value_type type = kind % 2 ? SP_F64 : SP_F32;
        test_random random = test_seed((uint64_t)kind);
        int64_t nnz = 0;
        for (int i = 0; i < 10; i++) nnz += lengths[i];
        sp_csr m, a, b;
        ck_ok(context, sp_csr_create(context, 10, LONGEST, nnz, type, SP_HOST, &m));
        m.row_offsets[0] = 0;
        for (int i = 0; i < 10; i++) {
            m.row_offsets[i + 1] = m.row_offsets[i] + lengths[i];
            for (int64_t e = 0; e < lengths[i]; e++) {
                const double unit = 2 * test_unit(&random) - 1;
                const double value = kind < 2 ? unit : kind < 4 ? floor(unit * 5) : -2;
                m.col_indices[m.row_offsets[i] + e] = (int32_t)(LONGEST - lengths[i] + e);
                test_set(&m, m.row_offsets[i] + e, value);
            }
        }
        ck_ok(context, sp_csr_copy(context, &m, test_space(context), &a));
        for (size_t n = 0; n < COUNT(kept); n++) {
            const int64_t k = kept[n];
            ck_ok(context, sp_csr_top_k(context, &a, k, &b));
            test_to_host(context, &b);
            ck_ok(context, sp_csr_check(context, &b));
            for (int i = 0; i < 10; i++) {
                const int64_t begin = m.row_offsets[i], length = lengths[i];
                for (int64_t e = 0; e < length; e++) sorted[e] = test_value(&m, begin + e);
                qsort(sorted, (size_t)length, sizeof *sorted, descending);
                const double least = k < length ? sorted[k - 1] : -INFINITY;
                int64_t equals = k, at = b.row_offsets[i];
                for (int64_t e = 0; e < length && sorted[e] > least; e++) equals--;
                for (int64_t e = 0; e < length; e++) {
                    const double value = test_value(&m, begin + e);
                    if (value < least || (value == least && equals-- <= 0)) continue;
                    test_expect(at < b.row_offsets[i + 1] && b.col_indices[at] == m.col_indices[begin + e] &&
                                    test_value(&b, at) == value,
                                "kind %d, k %lld, row %d: entry %lld is lost", kind, (long long)k, i, (long long)e);
                    at++;
                }
                test_expect(at == b.row_offsets[i + 1], "kind %d, k %lld, row %d: too many", kind, (long long)k, i);
            }
            sp_csr_free(context, &b);
        }
        test_free(context, &a, &m);
    }
    free(sorted);
}

/* NaN above infinity, zeros equal. */
CONTEXT_TEST(odd_values_have_their_order, _i, 1)
{
    const double numbers[] = {-0.0, 0.0, -INFINITY, NAN, INFINITY, -1, 0.0};
    static const int32_t expected[] = {3, 4, 0, 1, 6, 5, 2}; /* largest first */
    for (int type = 0; type < 2; type++)
        for (int64_t copies = 1; copies <= 400; copies += 57) { /* of rows that have only zeros beside */
            const int64_t cols = 7 * copies;
            sp_csr m, a, b;
            ck_ok(context, sp_csr_create(context, 1, cols, cols, type ? SP_F64 : SP_F32, SP_HOST, &m));
            m.row_offsets[0] = 0;
            m.row_offsets[1] = cols;
            for (int64_t j = 0; j < cols; j++) {
                const double value = j < 7 ? numbers[j] : -INFINITY;
                m.col_indices[j] = (int32_t)j;
                if (type) ((double *)m.values)[j] = value;
                else ((float *)m.values)[j] = (float)value;
            }
            ck_ok(context, sp_csr_copy(context, &m, test_space(context), &a));
            for (int64_t k = 1; k <= 7; k++) {
                ck_ok(context, sp_csr_top_k(context, &a, k, &b));
                test_to_host(context, &b);
                ck_assert_int_eq(b.nnz, k);
                for (int64_t e = 0; e < k; e++) {
                    bool found = false;
                    for (int64_t o = 0; o < k; o++) found = found || expected[o] == b.col_indices[e];
                    test_expect(found, "%lld of %lld: column %d stays", (long long)k, (long long)cols,
                                b.col_indices[e]);
                }
                sp_csr_free(context, &b);
            }
            test_free(context, &a, &m);
        }
}

/* Memory of the host that runs out at any point of several blocks: nothing is kept. */
TEST(blocks_of_a_product_survive_failed_allocations)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *context = test_context_with(
        _i, (sp_context_options){.threads = 1, .allocator = &allocator, .memory_budget = 8 << 20});
    sp_csr a = spread_matrix(context, 3000, 3000, 20, 7, SP_F64, 1), c;
    const int64_t before = heap.live_blocks;
    sp_spgemm_info info;
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n += 1 + n / 8) {
        heap.fail_at = heap.allocations + n;
        test_mark(&c, sizeof c);
        status = sp_spgemm_top_k(context, &a, &a, 3, NULL, &c, &info);
        ck_assert(status == SP_OK || (status == SP_ERROR_HOST_MEMORY && test_is_marked(&c, sizeof c)));
        if (status == SP_OK) sp_csr_free(context, &c);
        test_expect(heap.live_blocks == before, "allocation %lld: memory leaked", (long long)n);
    }
    ck_assert_int_gt(info.batches, 2);
    sp_csr_free(context, &a);
    test_end_heap(context, &heap);
}

const test_entry select_tests[] = {
    CASE("random", 120),
    ON_DEVICES(the_k_largest_of_each_row_stay),
    ON_DEVICES(the_k_largest_of_each_row_of_a_product),
    ON_DEVICES(odd_values_have_their_order),
    CASE("shapes", 120),
    ON_DEVICES(long_rows_keep_their_k_largest),
    ON_DEVICES(blocks_of_a_product_keep_their_k_largest),
    ON_DEVICES(blocks_of_a_product_survive_failed_allocations),
    {0},
};
