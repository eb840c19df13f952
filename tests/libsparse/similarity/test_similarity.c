/* Similarity joins beside a dense product, on both back ends and in both spaces: the same pairs with the same bits. */
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
        const double left = cosine ? inverse_length(a, i) : 1;
        for (int64_t j = 0; j < b->rows; j++) {
            const double right = cosine ? inverse_length(b, j) : 1;
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

/* The join of A and B, each in a space by lot, in host memory. */
static sp_csr join(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_similarity_options *options,
                   uint64_t seed, sp_spgemm_info *info)
{
    test_random random = test_seed(seed);
    sp_csr sent_a, sent_b, made;
    ck_ok(context, sp_csr_copy(context, a, test_below(&random, 2) ? test_space(context) : SP_HOST, &sent_a));
    ck_ok(context, sp_csr_copy(context, b, test_below(&random, 2) ? test_space(context) : SP_HOST, &sent_b));
    ck_ok(context, sp_similarity(context, &sent_a, a == b ? &sent_a : &sent_b, options, &made, info));
    ck_assert_int_eq(made.space, test_space(context));
    test_to_host(context, &made);
    test_free(context, &sent_a, &sent_b);
    return made;
}

static void check_join(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_similarity_options *options,
                       uint64_t seed)
{
    const sp_similarity_options asked = options ? *options : (sp_similarity_options){0};
    sp_spgemm_info info;
    double *all = similarities(a, b, asked.metric);
    select_pairs(all, a->rows, b->rows, &asked);
    sp_csr expected = test_from_dense(context, a->rows, b->rows, all, a->value_type);
    sp_csr found = join(context, a, b, options, seed, &info);
    test_same(&expected, &found, seed);
    ck_assert_int_eq(info.nnz, found.nnz);
    test_free(context, &expected, &found);
    free_all(all);
}

CONTEXT_TEST(kept_pairs_are_those_of_a_dense_product, _i, 2)
{
    static const double thresholds[] = {-INFINITY, -0.2, 0, 0.1, 0.5, 2};
    for (int64_t seed = 1; seed <= test_cases(150); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t cols = test_below(&random, 20);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const test_values kind = (test_values)(seed % 4);
        const double density = seed % 7 == 0 ? 0 : seed % 5 == 0 ? 1 : 0.3;
        sp_csr a = test_matrix(context, &random, test_below(&random, 30), cols, density, type, kind);
        sp_csr b = test_matrix(context, &random, test_below(&random, 200), cols, density, type, kind);
        const sp_similarity_options options = {.metric = (sp_metric)(seed / 2 % 2), .top_k = test_below(&random, 12),
                                               .threshold = thresholds[test_below(&random, COUNT(thresholds))],
                                               .skip_self = seed % 3 == 0};
        check_join(context, &a, &b, &options, (uint64_t)seed);
        check_join(context, &a, &a, &options, (uint64_t)seed);
        check_join(context, &b, &a, NULL, (uint64_t)seed);
        test_free(context, &a, &b);
    }
}

/* B has more rows than a window: rows of C with many products, with few, and with so few that a table, or several, sum
 * them. The k largest are few, or more than a list in shared memory holds. */
CONTEXT_TEST(rows_of_many_columns, _i, 2)
{
    static const double densities[] = {0.9, 0.1, 0.001, 0.003, 0.01};
    for (size_t d = 0; d < COUNT(densities); d++) {
        test_random random = test_seed(d + 1);
        const test_values kind = d == 3 ? TEST_INTEGERS : TEST_SIGNED; /* many equal products */
        const sp_metric metric = d == 3 ? SP_METRIC_DOT : SP_METRIC_COSINE;
        sp_csr a = test_matrix(context, &random, 6, 4, 0.7, SP_F64, kind);
        sp_csr b = test_matrix(context, &random, 70000, 4, densities[d], SP_F64, kind);
        double *all = similarities(&a, &b, metric);
        for (int self = 0; self < 2; self++) {
            const sp_similarity_options options = {.metric = metric, .threshold = self ? 0.5 : -INFINITY,
                                                   .skip_self = self};
            double *kept = test_block((size_t)(a.rows * b.rows) * sizeof *kept);
            memcpy(kept, all, (size_t)(a.rows * b.rows) * sizeof *kept);
            select_pairs(kept, a.rows, b.rows, &options);
            sp_csr expected = test_from_dense(context, a.rows, b.rows, kept, SP_F64);
            sp_csr found = join(context, &a, &b, &options, d, NULL);
            test_same(&expected, &found, d);
            for (int64_t k = 7; k < 20000; k = k * 20 + 300) { /* 7, 440, 9100 */
                sp_similarity_options few = options;
                sp_csr best;
                few.top_k = k;
                ck_ok(context, sp_csr_top_k(context, &expected, k, &best));
                test_to_host(context, &best);
                sp_csr best_found = join(context, &a, &b, &few, d, NULL);
                test_same(&best, &best_found, d);
                test_free(context, &best, &best_found);
            }
            test_free(context, &expected, &found);
            free_all(kept);
        }
        test_free(context, &a, &b);
        free_all(all);
    }
}

/* What a row keeps says nothing about the next one, whose sums are larger, smaller, of the other sign, or few. */
CONTEXT_TEST(rows_unlike_those_before, _i, 2)
{
    static const double scales[] = {1, 100, 1e-3, -1, 1, 0, -5, 1e-200, 1e200, 3};
    test_random random = test_seed(10);
    sp_csr a = test_matrix(context, &random, COUNT(scales), 3, 1, SP_F64, TEST_POSITIVE);
    sp_csr b = test_matrix(context, &random, 30000, 3, 0.003, SP_F64, TEST_POSITIVE);
    for (int64_t e = 0; e < a.nnz; e++) ((double *)a.values)[e] *= scales[e / 3];
    double *all = similarities(&a, &b, SP_METRIC_DOT);
    for (int with = 0; with < 2; with++) /* the second time of those that the first has left */
        for (int64_t k = 1; k < 200; k *= 5) {
            const sp_similarity_options options = {.metric = SP_METRIC_DOT, .threshold = with ? 0.5 : -INFINITY};
            sp_similarity_options few = options;
            sp_csr expected;
            few.top_k = k;
            select_pairs(all, a.rows, b.rows, &options);
            sp_csr kept = test_from_dense(context, a.rows, b.rows, all, SP_F64);
            ck_ok(context, sp_csr_top_k(context, &kept, k, &expected));
            test_to_host(context, &expected);
            sp_csr found = join(context, &a, &b, &few, (uint64_t)k, NULL);
            test_same(&expected, &found, (uint64_t)k);
            test_free(context, &kept, &expected, &found);
        }
    test_free(context, &a, &b);
    free_all(all);
}

/* Each row is only like itself. */
CONTEXT_TEST(rows_with_themselves, _i, 2)
{
    enum { ROWS = 3000 };
    int32_t numbers[ROWS];
    sp_csr a;
    for (int32_t i = 0; i < ROWS; i++) numbers[i] = i;
    ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = ROWS, .cols = ROWS, .count = ROWS, .row_indices = numbers,
                                                      .col_indices = numbers, .value_type = SP_F64}, SP_COMBINE_SUM,
                                   false, &a));
    for (int64_t k = 0; k < 3; k++) {
        sp_csr with = join(context, &a, &a, &(sp_similarity_options){.top_k = k}, (uint64_t)k, NULL), without =
            join(context, &a, &a, &(sp_similarity_options){.top_k = k, .skip_self = true}, (uint64_t)k, NULL);
        test_same(&a, &with, (uint64_t)k);
        ck_assert_int_eq(without.nnz, 0);
        test_free(context, &with, &without);
    }
    test_free(context, &a);
}

/* Rows of A with more entries than a block has threads, and rows of B whose entries are close together. */
CONTEXT_TEST(long_rows_and_crowded_columns, _i, 2)
{
    enum { FEATURES = 300, CROWD = 900, ITEMS = 30000 };
    test_random random = test_seed(8);
    sp_csr a = test_matrix(context, &random, 2, FEATURES, 0.9, SP_F32, TEST_SIGNED), b;
    int32_t *items = test_block((size_t)(CROWD * 12 + ITEMS) * sizeof *items);
    int32_t *features = test_block((size_t)(CROWD * 12 + ITEMS) * sizeof *features);
    int64_t count = 0;
    for (int32_t item = 0; item < ITEMS; item += item < CROWD ? 1 : 97)
        for (int feature = 0; feature < (item < CROWD ? 12 : 1); feature++, count++) {
            items[count] = item;
            features[count] = (int32_t)test_below(&random, FEATURES);
        }
    ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = ITEMS, .cols = FEATURES, .count = count,
                                                      .row_indices = items, .col_indices = features}, SP_COMBINE_COUNT,
                                   false, &b));
    test_to_host(context, &b);
    double *all = similarities(&a, &b, SP_METRIC_COSINE);
    const sp_similarity_options options = {.top_k = 40, .threshold = -INFINITY};
    select_pairs(all, a.rows, b.rows, &options);
    sp_csr expected = test_from_dense(context, a.rows, b.rows, all, SP_F32);
    sp_csr found = join(context, &a, &b, &options, 8, NULL);
    test_same(&expected, &found, 8);
    test_free(context, &a, &b, &expected, &found);
    free_all(all, items, features);
}

/* Batches of rows under a memory budget, of rows that keep all and of rows that keep few. */
CONTEXT_TEST(a_budget_cuts_rows_into_batches, 1, 1)
{
    test_random random = test_seed(9);
    sp_csr a = test_matrix(context, &random, 3000, 40, 0.4, SP_F64, TEST_SIGNED);
    sp_context *small = test_context_with(1, (sp_context_options){.memory_budget = (size_t)128 << 20});
    const sp_similarity_options options[] = {{.threshold = 0.6}, {.top_k = 5, .threshold = -INFINITY}};
    for (size_t i = 0; i < COUNT(options); i++) {
        sp_spgemm_info info;
        sp_csr whole = join(context, &a, &a, &options[i], i, NULL), cut = join(small, &a, &a, &options[i], i, &info);
        ck_assert_msg(i > 0 || info.batches > 1, "%lld batches", (long long)info.batches);
        test_same(&whole, &cut, i);
        test_free(context, &whole);
        test_free(small, &cut);
    }
    test_free(context, &a);
    test_end(small);
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

CONTEXT_TEST(wrong_calls_are_refused, _i, 1)
{
    test_random random = test_seed(5);
    sp_csr a = test_matrix(context, &random, 4, 5, 0.5, SP_F64, TEST_POSITIVE), c;
    sp_csr b = test_matrix(context, &random, 4, 6, 0.5, SP_F64, TEST_POSITIVE);
    sp_csr f = test_matrix(context, &random, 4, 5, 0.5, SP_F32, TEST_POSITIVE);
    const sp_similarity_options wrong[] = {{.metric = (sp_metric)2}, {.metric = (sp_metric)-1}, {.top_k = -1},
                                           {.threshold = NAN}};
    test_mark(&c, sizeof c);
    ck_assert_int_eq(sp_similarity(context, &a, &b, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "rows of the same length"));
    ck_assert_int_eq(sp_similarity(context, &a, &f, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(context, &a, NULL, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(context, NULL, &a, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(context, &a, &a, NULL, NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_similarity(context, &a, &a, NULL, &a, NULL), SP_ERROR_ARGUMENT);
    for (size_t i = 0; i < COUNT(wrong); i++)
        ck_assert_int_eq(sp_similarity(context, &a, &a, &wrong[i], &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&c, sizeof c));
    test_free(context, &a, &b, &f);
}

int main(void)
{
    static const test_entry tests[] = {
        CASE("pairs", 120),
        ON_DEVICES(kept_pairs_are_those_of_a_dense_product),
        ON_DEVICES(rows_of_many_columns),
        ON_DEVICES(rows_unlike_those_before),
        ON_DEVICES(rows_with_themselves),
        ON_DEVICES(long_rows_and_crowded_columns),
        ON_CUDA(a_budget_cuts_rows_into_batches),
        ONCE(bits_do_not_depend_on_the_threads),
        ONCE(the_product_is_never_in_memory),
        CASE("calls", 60),
        ON_DEVICES(wrong_calls_are_refused),
        {0},
    };
    return test_run("similarity", tests);
}
