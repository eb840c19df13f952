/* Similarity joins beside a dense product: the same pairs with the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static double rounded(double value, sp_value_type type) { return type == SP_F32 ? (double)(float)value : value; }

static double inverse_length(const sp_csr *m, int64_t row)
{
    double sum = 0;
    for (int64_t e = m->row_offsets[row]; e < m->row_offsets[row + 1]; e++) sum += test_value(m, e) * test_value(m, e);
    return sum > 0 ? 1 / sqrt(sum) : 0;
}

/* All similarities: sums by ascending columns of A's row, with B's row as sp_similarity documents it. */
static double *similarities(const sp_csr *a, const sp_csr *b, sp_metric metric)
{
    const bool cosine = metric == SP_METRIC_COSINE;
    double *made = test_zeros((size_t)(a->rows * b->rows) + 1, sizeof *made);
    for (int64_t i = 0; i < a->rows; i++) {
        for (int64_t j = 0; j < b->rows; j++) {
            const double left = cosine ? inverse_length(a, i) : 1, right = cosine ? inverse_length(b, j) : 1;
            for (int64_t e = a->row_offsets[i]; e < a->row_offsets[i + 1]; e++) {
                const int64_t other = test_find(b, j, a->col_indices[e]);
                if (other < 0) continue;
                made[i * b->rows + j] += left * test_value(a, e) * rounded(test_value(b, other) * right, a->value_type);
            }
        }
    }
    return made;
}

/* Sets all to 0 that the options do not keep. */
static void select_pairs(double *all, int64_t rows, int64_t cols, const sp_similarity_options *options)
{
    bool *stays = test_block((size_t)cols + 1);
    for (int64_t i = 0; i < rows; i++) {
        double *row = all + i * cols;
        for (int64_t j = 0; j < cols; j++)
            if (!(row[j] >= options->threshold) || (options->skip_self && i == j)) row[j] = 0;
        for (int64_t j = 0; j < cols; j++) {
            int64_t before = 0;
            for (int64_t l = 0; l < cols && options->top_k; l++)
                before += row[l] != 0 && (row[l] > row[j] || (row[l] == row[j] && l < j));
            stays[j] = !options->top_k || before < options->top_k;
        }
        for (int64_t j = 0; j < cols; j++)
            if (!stays[j]) row[j] = 0;
    }
    free_all(stays);
}

static void check_join(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_similarity_options *options,
                       uint64_t seed)
{
    const sp_similarity_options asked = options ? *options : (sp_similarity_options){0};
    sp_csr found;
    sp_spgemm_info info;
    double *all = similarities(a, b, asked.metric);
    select_pairs(all, a->rows, b->rows, &asked);
    sp_csr expected = test_from_dense(context, a->rows, b->rows, all, a->value_type);
    ck_ok(context, sp_similarity(context, a, b, options, &found, &info));
    test_same(&expected, &found, seed);
    ck_assert_int_eq(info.nnz, found.nnz);
    test_free(context, &expected, &found);
    free_all(all);
}

HOST_TEST(kept_pairs_are_those_of_a_dense_product, 2)
{
    static const double thresholds[] = {-INFINITY, -0.2, 0, 0.1, 0.5, 2};
    for (int64_t seed = 1; seed <= test_cases(150); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t cols = test_below(&random, 20);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const test_values kind = (test_values)(seed % 4);
        const double density = seed % 7 == 0 ? 0 : seed % 5 == 0 ? 1 : 0.3;
        sp_csr a = test_matrix(host, &random, test_below(&random, 30), cols, density, type, kind);
        sp_csr b = test_matrix(host, &random, test_below(&random, 200), cols, density, type, kind);
        const sp_similarity_options options = {.metric = (sp_metric)(seed / 2 % 2), .top_k = test_below(&random, 12),
                                               .threshold = thresholds[test_below(&random, COUNT(thresholds))],
                                               .skip_self = seed % 3 == 0};
        check_join(host, &a, &b, &options, (uint64_t)seed);
        check_join(host, &a, &a, &options, (uint64_t)seed);
        check_join(host, &b, &a, NULL, (uint64_t)seed);
        test_free(host, &a, &b);
    }
}

/* B has more rows than a window: rows of C with many products, with few, and with so few that a table sums them. */
HOST_TEST(rows_of_many_columns, 2)
{
    static const double densities[] = {0.9, 0.1, 0.001, 0.003};
    for (size_t d = 0; d < COUNT(densities); d++) {
        test_random random = test_seed(d + 1);
        const test_values kind = d == 3 ? TEST_INTEGERS : TEST_SIGNED; /* many equal products */
        const sp_metric metric = d == 3 ? SP_METRIC_DOT : SP_METRIC_COSINE;
        sp_csr a = test_matrix(host, &random, 6, 4, 0.7, SP_F64, kind);
        sp_csr b = test_matrix(host, &random, 70000, 4, densities[d], SP_F64, kind), found;
        double *all = similarities(&a, &b, metric);
        for (int self = 0; self < 2; self++) {
            const sp_similarity_options options = {.metric = metric, .threshold = self ? 0.5 : -INFINITY,
                                                   .skip_self = self};
            double *kept = test_block((size_t)(a.rows * b.rows) * sizeof *kept);
            memcpy(kept, all, (size_t)(a.rows * b.rows) * sizeof *kept);
            select_pairs(kept, a.rows, b.rows, &options);
            sp_csr expected = test_from_dense(host, a.rows, b.rows, kept, SP_F64), best, best_found;
            ck_ok(host, sp_similarity(host, &a, &b, &options, &found, NULL));
            test_same(&expected, &found, d);
            const sp_similarity_options few = {.metric = metric, .threshold = options.threshold, .skip_self = self,
                                               .top_k = 7};
            ck_ok(host, sp_csr_top_k(host, &expected, 7, &best));
            ck_ok(host, sp_similarity(host, &a, &b, &few, &best_found, NULL));
            test_same(&best, &best_found, d);
            test_free(host, &expected, &found, &best, &best_found);
            free_all(kept);
        }
        test_free(host, &a, &b);
        free_all(all);
    }
}

/* Each row is only like itself. */
HOST_TEST(rows_with_themselves, 2)
{
    enum { ROWS = 3000 };
    int32_t numbers[ROWS];
    sp_csr a, with, without;
    for (int32_t i = 0; i < ROWS; i++) numbers[i] = i;
    ck_ok(host, sp_csr_from_coo(host, ROWS, ROWS, ROWS, numbers, numbers, NULL, SP_F64, SP_COMBINE_SUM, false, &a));
    for (int64_t k = 0; k < 3; k++) {
        ck_ok(host, sp_similarity(host, &a, &a, &(sp_similarity_options){.top_k = k}, &with, NULL));
        ck_ok(host, sp_similarity(host, &a, &a, &(sp_similarity_options){.top_k = k, .skip_self = true}, &without,
                                  NULL));
        test_same(&a, &with, (uint64_t)k);
        ck_assert_int_eq(without.nnz, 0);
        test_free(host, &with, &without);
    }
    test_free(host, &a);
}

TEST(bits_do_not_depend_on_the_threads)
{
    sp_context *one = test_context(0, 1), *many = test_context(0, 5);
    test_random random = test_seed(3);
    sp_csr a = test_matrix(one, &random, 700, 60, 0.3, SP_F32, TEST_SIGNED), here, there;
    const sp_similarity_options options = {.top_k = 9, .threshold = -INFINITY};
    ck_ok(one, sp_similarity(one, &a, &a, &options, &here, NULL));
    ck_ok(many, sp_similarity(many, &a, &a, &options, &there, NULL));
    test_same(&here, &there, 3);
    test_free(one, &a, &here);
    test_free(many, &there);
    test_end(one, many);
}

TEST(the_product_is_never_in_memory)
{
    test_heap heap = {.fail_at = -1};
    sp_context *host = test_heap_context(&heap, 0, 2);
    test_random random = test_seed(4);
    sp_csr a = test_matrix(host, &random, 2000, 20, 1, SP_F64, TEST_POSITIVE), c;
    const sp_similarity_options options = {.top_k = 2};
    heap.peak_bytes = heap.live_bytes;
    const int64_t before = heap.live_bytes;
    ck_ok(host, sp_similarity(host, &a, &a, &options, &c, NULL));
    ck_assert_int_eq(c.nnz, 4000);
    ck_assert_int_lt(heap.peak_bytes - before, 2 << 20); /* the product has 4,000,000 entries of 12 bytes */
    test_free(host, &a, &c);
    test_end_heap(host, &heap);
}

HOST_TEST(wrong_calls_are_refused, 1)
{
    test_random random = test_seed(5);
    sp_csr a = test_matrix(host, &random, 4, 5, 0.5, SP_F64, TEST_POSITIVE), c;
    sp_csr b = test_matrix(host, &random, 4, 6, 0.5, SP_F64, TEST_POSITIVE);
    sp_csr f = test_matrix(host, &random, 4, 5, 0.5, SP_F32, TEST_POSITIVE);
    const sp_similarity_options wrong[] = {{.metric = (sp_metric)2}, {.metric = (sp_metric)-1}, {.top_k = -1},
                                           {.threshold = NAN}};
    test_mark(&c, sizeof c);
    ck_assert_int_eq(sp_similarity(host, &a, &b, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(host), "rows of the same length"));
    ck_assert_int_eq(sp_similarity(host, &a, &f, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(host, &a, NULL, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(host, NULL, &a, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(host, &a, &a, NULL, NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(host, &a, &a, NULL, &a, NULL), SP_ERROR_ARGUMENT);
    for (size_t i = 0; i < COUNT(wrong); i++)
        ck_assert_int_eq(sp_similarity(host, &a, &a, &wrong[i], &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&c, sizeof c));
    test_free(host, &a, &b, &f);
}

CONTEXT_TEST(a_gpu_refuses_with_a_remedy, 1, 1)
{
    test_random random = test_seed(6);
    sp_csr a = test_matrix(context, &random, 4, 5, 0.5, SP_F64, TEST_POSITIVE), c;
    ck_assert_int_eq(sp_similarity(context, &a, &a, NULL, &c, NULL), SP_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "\"cpu\""));
    test_free(context, &a);
}

int main(void)
{
    static const test_entry tests[] = {
        CASE("pairs", 120),
        ONCE(kept_pairs_are_those_of_a_dense_product),
        ONCE(rows_of_many_columns),
        ONCE(rows_with_themselves),
        ONCE(bits_do_not_depend_on_the_threads),
        ONCE(the_product_is_never_in_memory),
        CASE("calls", 60),
        ONCE(wrong_calls_are_refused),
        ON_CUDA(a_gpu_refuses_with_a_remedy),
        {0},
    };
    return test_run("similarity", tests);
}
