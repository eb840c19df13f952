/* sp_spgemm against the reference of product.h: random products, shapes at the limits of the algorithms, and what the
 * interface promises besides. Values are compared bit by bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spgemm_shared.h"

/* ---- random products ----------------------------------------------------------------------------------- */

DEVICE_TEST(random_products_have_the_bits_of_the_reference, _i, 2)
{
    const int64_t cases = test_cases(1000);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        product p = product_random(host, seed);
        test_random random = test_seed(seed);
        product_check(context, &p, &random, false);
        product_free(host, &p);
    }
}

/* ---- the contract -------------------------------------------------------------------------------------- */

DEVICE_TEST(degenerate_shapes_work, _i, 2)
{
    static const int64_t sizes[][3] = {{0, 0, 0}, {0, 5, 3}, {5, 0, 3}, {5, 3, 0}, {1, 1, 1},
                                       {1, 40, 1}, {40, 1, 40}, {1, 40, 40}, {40, 40, 1}, {3, 1, 500}};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int semiring = SP_PLUS_TIMES; semiring <= SP_OR_AND; semiring++)
            for (int filled = 0; filled < 2; filled++) {
                test_random random = test_seed(s + 1);
                product p = product_of(
                    test_matrix(host, &random, sizes[s][0], sizes[s][1], filled, SP_F32, TEST_SIGNED),
                    test_matrix(host, &random, sizes[s][1], sizes[s][2], filled, SP_F32, TEST_SIGNED));
                snprintf(p.name, sizeof p.name, "size %d", (int)s);
                p.options.semiring = (sp_semiring)semiring;
                product_check(context, &p, &random, false);
                p.masked = true;
                p.mask = test_matrix(host, &random, sizes[s][0], sizes[s][2], 0.5, SP_F32, TEST_SIGNED);
                product_check(context, &p, &random, false);
                product_free(host, &p);
            }
}

/* Known by hand, so that the reference itself is held to something. */
DEVICE_TEST(small_products_are_what_they_are_by_hand, _i, 2)
{
    static const double left[] = {1, 2, 0, 0, 3, -4}, right[] = {5, 0, -1, 1, -2, 0};
    static const double expected[SP_OR_AND + 1][4] = {{3, 2, 5, 3}, {2, 1, 2, 1}, {1, 3, -6, 4}, {5, 2, 8, 3},
                                                      {1, 1, 1, 1}};
    static const double diagonal[] = {1, 0, 0, 1};
    sp_csr a = test_from_dense(host, 2, 3, left, SP_F64), b = test_from_dense(host, 3, 2, right, SP_F64), c;
    sp_csr mask = test_from_dense(host, 2, 2, diagonal, SP_F32);
    for (int semiring = SP_PLUS_TIMES; semiring <= SP_OR_AND; semiring++)
        for (int masking = 0; masking < 3; masking++) { /* none, the diagonal, all but the diagonal */
            const sp_spgemm_options options = {.semiring = (sp_semiring)semiring, .to_host = true,
                                               .mask = masking ? &mask : NULL, .complement = masking == 2};
            ck_ok(context, sp_spgemm(context, &a, &b, &options, &c, NULL));
            ck_assert_int_eq(c.nnz, masking ? 2 : 4);
            ck_assert(!c.values == (semiring == SP_OR_AND));
            for (int64_t i = 0; i < 2; i++)
                for (int64_t k = c.row_offsets[i]; k < c.row_offsets[i + 1]; k++) {
                    ck_assert(masking == 0 || (c.col_indices[k] == i) == (masking == 1));
                    ck_assert(test_value(&c, k) == expected[semiring][2 * i + c.col_indices[k]]);
                }
            sp_csr_free(context, &c);
        }
    sp_csr *all[] = {&a, &b, &mask};
    for (int i = 0; i < 3; i++) sp_csr_free(host, all[i]);
}

DEVICE_TEST(entries_that_cancel_are_kept, _i, 1)
{
    const double left[] = {1, 1}, right[] = {5, 0, -5, 2};
    for (int type = SP_F32; type <= SP_F64; type++) {
        sp_csr a = test_from_dense(host, 1, 2, left, (sp_value_type)type), c;
        sp_csr b = test_from_dense(host, 2, 2, right, (sp_value_type)type);
        ck_ok(context, sp_spgemm(context, &a, &b, NULL, &c, NULL));
        test_to_host(context, &c);
        ck_assert_int_eq(c.nnz, 2);
        ck_assert(test_value(&c, 0) == 0);
        ck_assert(test_value(&c, 1) == 2);
        sp_csr_free(context, &c);
        test_free(host, &a, &b);
    }
}

/* A matrix some of whose values are replaced by those of `odd`. */
static sp_csr with_odd_values(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type,
                              const double *odd, int64_t odds)
{
    sp_csr matrix = product_matrix(host, random, rows, cols, 12, type, TEST_INTEGERS);
    for (int64_t k = 0; k < matrix.nnz; k++) {
        if (test_below(random, 4)) continue;
        const double value = odd[test_below(random, odds)];
        test_set(&matrix, k, value);
    }
    return matrix;
}

/* Every algorithm gives what the arithmetic of f64 gives, rounded once: infinities, NaN, zeros of either sign, what
 * overflows or vanishes in f32. Minima and maxima of NaN are nobody's promise. */
DEVICE_TEST(odd_values_give_what_the_arithmetic_gives, _i, 2)
{
    static const double odd[] = {INFINITY, -INFINITY, 0.0, -0.0, 3e38, -3e38, 1e-40, -1e-45, NAN};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        test_random random = test_seed(seed);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const int64_t cols = seed < 5 ? 60 : 30000;
        product p = product_of(with_odd_values(host, &random, 50, 40, type, odd, 9),
                               with_odd_values(host, &random, 40, cols, type, odd, 9));
        snprintf(p.name, sizeof p.name, "odd values, seed %d", (int)seed);
        product_check(context, &p, &random, true);
        product_free(host, &p);
        /* Positive infinity alone: no sum and no product is NaN. */
        p = product_of(with_odd_values(host, &random, 50, 40, type, odd, 1),
                       with_odd_values(host, &random, 40, cols, type, odd, 1));
        for (int semiring = SP_MIN_PLUS; semiring <= SP_MAX_TIMES; semiring++) {
            snprintf(p.name, sizeof p.name, "infinity, seed %d", (int)seed);
            p.options.semiring = (sp_semiring)semiring;
            product_check(context, &p, &random, false);
        }
        product_free(host, &p);
    }
}

/* Long enough that the CPU takes several threads. */
HOST_TEST(products_do_not_depend_on_threads, 1)
{
    test_random random = test_seed(6);
    product p = product_of(product_matrix(host, &random, 3000, 2000, 12, SP_F32, TEST_SIGNED),
                           product_matrix(host, &random, 2000, 9000, 12, SP_F32, TEST_SIGNED));
    p.mask = product_matrix(host, &random, 3000, 9000, 200, SP_F64, TEST_PATTERN);
    snprintf(p.name, sizeof p.name, "threads");
    for (int threads = 1; threads <= 4; threads++) {
        sp_context *context = test_context(_i, threads);
        p.masked = p.options.complement = threads == 4;
        product_check(context, &p, &random, false);
        sp_context_destroy(context);
    }
    product_free(host, &p);
}

/* Symmetric graph, mask, A and B one and the same: how triangles are counted. */
DEVICE_TEST(one_matrix_may_be_all_operands, _i, 2)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        test_random random = test_seed(seed);
        product p = {.a = test_communities(host, &random, 6, 20, 0.5, 0.05), .b_is_a = true, .masked = true,
                     .mask_is_a = true, .options.semiring = SP_PLUS_PAIR};
        snprintf(p.name, sizeof p.name, "triangles, seed %d", (int)seed);
        product_check(context, &p, &random, false);
        p.options.complement = true;
        product_check(context, &p, &random, false);
        product_free(host, &p);
    }
}

/* C takes three times the budget: rows are made in batches, C may end up on the host, the bits stay. */
TEST(a_small_memory_budget_changes_no_bit)
{
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_with(_i, (sp_context_options){.threads = 2, .memory_budget = 6 << 20});
    test_random random = test_seed(13);
    const sp_csr a = product_matrix(host, &random, 2400, 1500, 25, SP_F64, TEST_SIGNED); /* drawn before B */
    product p = product_of(a, product_matrix(host, &random, 1500, 4000, 40, SP_F64, TEST_SIGNED));
    for (int masked = 0; masked < 2; masked++) {
        p.masked = p.options.complement = masked;
        if (masked) p.mask = product_matrix(host, &random, 2400, 4000, 20, SP_F32, TEST_PATTERN);
        const sp_spgemm_options how = product_options(&p);
        sp_csr expected = product_reference(host, &p, NULL), c;
        ck_assert_int_gt(expected.nnz * 12, 3 * (int64_t)(6 << 20));
        ck_ok(context, sp_spgemm(context, &p.a, &p.b, &how, &c, NULL));
        test_to_host(context, &c);
        product_same(&expected, &c, "small budget");
        sp_csr_free(context, &c);
        sp_csr_free(host, &expected);
    }
    product_free(host, &p);
    test_end(context, host);
}

/* Working memory beside A and C, of blocks of rows whose sums lie in a ring, of rows without structure and of a few
 * long ones, most of which no thread meets; and that tables give the same bits. Of eight threads, and such small
 * matrices, more is allowed: those that wait for one without a processor hold what they made. */
HOST_TEST(working_memory_is_small_beside_operand_and_product, 1)
{
    static const char *const specs[] = {"fem2d:160,160,3", "web:80000,8,35,70,500", "powerlaw:150000,3.4,5000,67,36",
                                        "grid:300,300,70"};
    static const int threads[] = {1, 2, 8};
    for (size_t i = 0; i < COUNT(specs); i++) {
        sp_csr a, expected;
        const sp_spgemm_options hash = {.algorithm = SP_SPGEMM_HASH};
        ck_ok(host, generate_matrix(host, specs[i], 4, SP_F64, &a));
        ck_ok(host, sp_spgemm(host, &a, &a, &hash, &expected, NULL));
        const int64_t matrices = 8 * (a.rows + 1) * 2 + 12 * (a.nnz + expected.nnz);
        for (int t = 0; t < 3; t++) {
            test_heap heap = {.fail_at = -1};
            sp_context *context = test_heap_context(&heap, 0, threads[t]);
            sp_spgemm_info info;
            sp_csr c;
            heap.peak_bytes = heap.live_bytes;
            ck_ok(context, sp_spgemm(context, &a, &a, NULL, &c, &info));
            const int64_t more = heap.peak_bytes - heap.live_bytes;
            product_same(&expected, &c, specs[i]);
            test_expect(info.peak_bytes * 100 <= (threads[t] > 2 ? 30 : 15) * matrices,
                        "%s, %d threads: %lld bytes beside %lld", specs[i], threads[t], (long long)info.peak_bytes,
                        (long long)matrices);
            /* Room for C that is reserved and not used comes on top. */
            test_expect(more * 100 <= (threads[t] > 2 ? 60 : 35) * matrices,
                        "%s, %d threads: %lld bytes asked for beside %lld", specs[i], threads[t], (long long)more,
                        (long long)matrices);
            sp_csr_free(context, &c);
            const sp_spgemm_options masked = {.mask = &a};
            ck_ok(context, sp_spgemm(context, &a, &a, &masked, &c, &info));
            const int64_t beside = 8 * (a.rows + 1) * 2 + 12 * (a.nnz + c.nnz);
            test_expect(info.peak_bytes * 100 <= (threads[t] > 2 ? 40 : 15) * beside,
                        "%s masked, %d threads: %lld bytes beside %lld", specs[i], threads[t],
                        (long long)info.peak_bytes, (long long)beside);
            sp_csr_free(context, &c);
            sp_context_destroy(context);
        }
        test_free(host, &expected, &a);
    }
}

/* A view that shares the arrays of the right operand, of fewer rows. Neighbouring rows have the same columns. */
CONTEXT_TEST(the_first_rows_of_a_matrix_times_all_of_it_are_those_of_its_square, _i, 2)
{
    sp_context *host = test_context(0, 1);
    sp_csr m, here, expected, found;
    ck_ok(host, generate_matrix(host, "fem2d:100,100,4", 4, SP_F64, &m));
    ck_ok(context, sp_csr_copy(context, &m, sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST, &here));
    ck_ok(host, sp_spgemm(host, &m, &m, NULL, &expected, NULL));
    for (int64_t rows = 1; rows < m.rows; rows = 5 * rows + 3) {
        sp_csr first = here, part = expected;
        first.rows = part.rows = rows;
        first.nnz = m.row_offsets[rows];
        part.nnz = expected.row_offsets[rows];
        ck_ok(context, sp_spgemm(context, &first, &here, NULL, &found, NULL));
        test_to_host(context, &found);
        test_same(&part, &found, (uint64_t)rows);
        sp_csr_free(context, &found);
    }
    sp_csr_free(context, &here);
    test_free(host, &m, &expected);
    sp_context_destroy(host);
}

/* On the CPU most rows of a grid's stencil are the row before, one column to the right. */
CONTEXT_TEST(rows_of_stencils_follow_the_row_before, 0, 2)
{
    sp_csr a, c;
    sp_spgemm_info info;
    int64_t rows = 0;
    ck_ok(context, generate_matrix(context, "stencil:60,50,1,5", 1, SP_F64, &a));
    ck_ok(context, sp_spgemm(context, &a, &a, NULL, &c, &info));
    for (int g = 0; g < info.groups; g++)
        if (strcmp(info.group[g].name, "shift") == 0) rows = info.group[g].count;
    ck_assert_int_gt(rows, a.rows / 4 * 3);
    test_free(context, &a, &c);
}

static void refuse(sp_context *context, const sp_csr *a, const sp_csr *b, sp_spgemm_options options)
{
    sp_csr c;
    sp_spgemm_plan *plan;
    test_mark(&c, sizeof c);
    ck_assert_int_eq(sp_spgemm(context, a, b, &options, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_gt((int)strlen(sp_last_error(context)), 0);
    ck_assert(test_is_marked(&c, sizeof c));
    ck_assert_int_eq(sp_spgemm_plan_create(context, a, b, &options, &plan), SP_ERROR_ARGUMENT);
    ck_assert_int_gt((int)strlen(sp_last_error(context)), 0);
    ck_assert_ptr_null(plan);
}

CONTEXT_TEST(impossible_requests_are_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr a = test_matrix(context, &random, 3, 4, 1, SP_F32, TEST_SIGNED);
    sp_csr b = test_matrix(context, &random, 4, 5, 1, SP_F32, TEST_SIGNED);
    sp_csr wide = test_matrix(context, &random, 4, 5, 1, SP_F64, TEST_SIGNED);
    sp_csr mask = test_matrix(context, &random, 3, 5, 1, SP_F64, TEST_SIGNED);
    sp_csr turned = test_matrix(context, &random, 5, 3, 1, SP_F64, TEST_SIGNED);
    refuse(context, &a, &a, (sp_spgemm_options){0});
    refuse(context, &b, &a, (sp_spgemm_options){0});
    refuse(context, &a, &wide, (sp_spgemm_options){0});
    refuse(context, &a, &b, (sp_spgemm_options){.transpose_a = true});
    refuse(context, &a, &b, (sp_spgemm_options){.transpose_b = true});
    refuse(context, &a, &b, (sp_spgemm_options){.transpose_a = true, .transpose_b = true});
    refuse(context, &a, &b, (sp_spgemm_options){.mask = &turned});
    refuse(context, &a, &b, (sp_spgemm_options){.mask = &b});
    refuse(context, &b, &a, (sp_spgemm_options){.transpose_a = true, .transpose_b = true, .mask = &mask});
    refuse(context, &a, &b, (sp_spgemm_options){.complement = true});
    const int unknown[] = {-1, 5, 1000};
    for (int i = 0; i < 3; i++) {
        refuse(context, &a, &b, (sp_spgemm_options){.semiring = (sp_semiring)unknown[i]});
        refuse(context, &a, &b, (sp_spgemm_options){.algorithm = (sp_spgemm_algorithm)unknown[i]});
        refuse(context, &a, &b, (sp_spgemm_options){.aia = (sp_aia)unknown[i]});
    }
    sp_csr *all[] = {&a, &b, &wide, &mask, &turned};
    for (int i = 0; i < 5; i++) sp_csr_free(context, all[i]);
}

/* Offsets that promise 2^58 entries, which nobody may read before the sizes are known to fit: 32 such rows are 2^63
 * products. */
CONTEXT_TEST(products_that_cannot_be_counted_are_refused, _i, 1)
{
    int64_t offsets[33], vast[] = {0, (int64_t)1 << 58};
    int32_t cols[32] = {0};
    float values[32] = {1};
    for (int i = 0; i <= 32; i++) offsets[i] = i;
    const sp_csr a = {32, 1, 32, offsets, cols, values, SP_F32, SP_HOST};
    const sp_csr b = {1, INT32_MAX, (int64_t)1 << 58, vast, cols, values, SP_F32, SP_HOST};
    sp_csr c = {0};
    sp_spgemm_plan *plan;
    sp_status status = sp_spgemm(context, &a, &b, NULL, &c, NULL);
    ck_assert(status == SP_ERROR_OVERFLOW || (_i && status == SP_ERROR_DEVICE_MEMORY));
    ck_assert_ptr_null(c.row_offsets);
    status = sp_spgemm_plan_create(context, &a, &b, NULL, &plan);
    ck_assert(status == SP_ERROR_OVERFLOW || (_i && status == SP_ERROR_DEVICE_MEMORY));
    ck_assert_ptr_null(plan);
}

TEST(interrupt_flag_ends_a_product)
{
    volatile int interrupt = 1;
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_with(_i, (sp_context_options){.interrupt = &interrupt});
    test_random random = test_seed(5);
    sp_csr a = test_stochastic(host, &random, 500, 30), c = {0};
    sp_spgemm_plan *plan;
    ck_assert_int_eq(sp_spgemm(context, &a, &a, NULL, &c, NULL), SP_ERROR_INTERRUPTED);
    ck_assert_ptr_null(c.row_offsets);
    ck_assert_int_eq(sp_spgemm_plan_create(context, &a, &a, NULL, &plan), SP_ERROR_INTERRUPTED);
    ck_assert_ptr_null(plan);
    interrupt = 0;
    ck_ok(context, sp_spgemm_plan_create(context, &a, &a, NULL, &plan));
    interrupt = 1;
    ck_assert_int_eq(sp_spgemm_plan_execute(plan, 1, &a, &a, 0, &c), SP_ERROR_INTERRUPTED);
    ck_assert_ptr_null(c.row_offsets);
    interrupt = 0;
    ck_ok(context, sp_spgemm_plan_execute(plan, 1, &a, &a, 0, &c));
    sp_csr_free(context, &c);
    ck_ok(context, sp_spgemm(context, &a, &a, NULL, &c, NULL));
    sp_csr_free(context, &c);
    sp_spgemm_plan_free(plan);
    sp_csr_free(host, &a);
    test_end(context, host);
}

/* 4.9 · 10^9 products, of which the mask lets 70,000 through: more than 32 bits count, in little memory. */
DEVICE_TEST(products_may_outnumber_32_bits, _i, 0)
{
    enum { N = 70000 };
    entry_list list = {0};
    for (int64_t i = 0; i < N; i++) entry_add(&list, i, 0, 1 + (double)(i % 7));
    sp_csr a = entry_matrix(host, &list, N, 1, SP_F32, false), c;
    for (int64_t i = 0; i < N; i++) entry_add(&list, i, i * 7919 % N, 0);
    sp_csr mask = entry_matrix(host, &list, N, N, SP_F32, true);
    const sp_spgemm_options options = {.transpose_b = true, .mask = &mask, .to_host = true};
    ck_ok(context, sp_spgemm(context, &a, &a, &options, &c, NULL));
    ck_assert_int_eq(c.nnz, N);
    for (int64_t i = 0; i < N; i++) {
        const int64_t j = i * 7919 % N;
        test_expect(c.row_offsets[i] == i && c.col_indices[i] == j, "row %lld", (long long)i);
        test_expect(test_value(&c, i) == (double)((1 + i % 7) * (1 + j % 7)), "row %lld", (long long)i);
    }
    sp_csr_free(context, &c);
    test_free(host, &a, &mask);
}

static const test_entry tests[] = {
    CASE("random", 120),
    ON_DEVICES(random_products_have_the_bits_of_the_reference),
    CASE("contract", 120),
    ON_DEVICES(degenerate_shapes_work),
    ON_DEVICES(small_products_are_what_they_are_by_hand),
    ON_DEVICES(entries_that_cancel_are_kept),
    ON_DEVICES(odd_values_give_what_the_arithmetic_gives),
    ON_DEVICES(products_do_not_depend_on_threads),
    ON_DEVICES(one_matrix_may_be_all_operands),
    ON_DEVICES(the_first_rows_of_a_matrix_times_all_of_it_are_those_of_its_square),
    ONCE(rows_of_stencils_follow_the_row_before),
    ON_DEVICES(a_small_memory_budget_changes_no_bit),
    ONCE(working_memory_is_small_beside_operand_and_product),
    ON_DEVICES(impossible_requests_are_refused),
    ON_DEVICES(products_that_cannot_be_counted_are_refused),
    ON_DEVICES(interrupt_flag_ends_a_product),
    CASE("large", 120),
    /* Seconds on a CPU, where counts have no other type than int64_t. */
    ON_CUDA(products_may_outnumber_32_bits),
    {0},
};

int main(void) { return test_run("spgemm", tests, shapes_tests, giant_tests, large_tests); }
