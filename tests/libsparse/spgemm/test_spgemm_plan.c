/* Plans of SpGEMM: what they know of C, that their numeric phase gives the bits of the reference whatever values the
 * operands have, and that C keeps its arrays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"

/* A plan for the product, or NULL where sparse.h lets the back end refuse. */
static sp_spgemm_plan *plan_for(sp_context *context, const product *p)
{
    const sp_spgemm_options options = product_options(p);
    sp_spgemm_plan *plan;
    const sp_status status = sp_spgemm_plan_create(context, &p->a, product_b(p), &options, &plan);
    if (status == SP_ERROR_UNSUPPORTED && product_may_be_refused(context, &options)) {
        test_expect(plan == NULL, "%s: refused, yet there is a plan", p->name);
        return NULL;
    }
    test_expect(status == SP_OK, "%s: %s (%s)", p->name, sp_status_string(status), sp_last_error(context));
    test_expect(options.algorithm != SP_SPGEMM_DENSE || !sp_context_is_cuda(context),
                "%s: dense accumulators on CUDA are refused", p->name);
    return plan;
}

static void check_plan_info(const sp_spgemm_plan *plan, const product *p, const sp_csr *expected, int64_t products)
{
    const sp_spgemm_info *info = sp_spgemm_plan_info(plan);
    test_expect(info->nnz == expected->nnz, "%s: the plan has %lld nonzeros, not %lld", p->name,
                (long long)info->nnz, (long long)expected->nnz);
    test_expect(p->masked ? info->products >= expected->nnz : info->products == products,
                "%s: the plan has %lld products, not %lld", p->name, (long long)info->products, (long long)products);
}

/* Executes with the operands in host memory, or in device memory where there is such; C as by the reference. */
static void execute(sp_context *context, sp_spgemm_plan *plan, const product *p, bool there, sp_csr *c)
{
    sp_context *host = test_context(0, 1);
    sp_csr expected = product_reference(host, p, NULL), a = {0}, b = {0}, got;
    there = there && sp_context_is_cuda(context);
    if (there) {
        ck_ok(context, sp_csr_copy(context, &p->a, SP_DEVICE, &a));
        ck_ok(context, sp_csr_copy(context, product_b(p), SP_DEVICE, &b));
    }
    const sp_status status = sp_spgemm_plan_execute(plan, 1, there ? &a : &p->a, there ? &b : product_b(p), 0, c);
    test_expect(status == SP_OK, "%s: %s (%s)", p->name, sp_status_string(status), sp_last_error(context));
    ck_ok(context, sp_csr_copy(context, c, SP_HOST, &got));
    product_same(&expected, &got, p->name);
    test_free(context, &got, &a, &b);
    sp_csr_free(host, &expected);
    sp_context_destroy(host);
}

/* A plan executed four times, each time with other values: into a first C, the same C twice, and another C. */
static void check_plan(sp_context *context, product *p, test_random *random)
{
    sp_context *host = test_context(0, 1);
    int64_t products;
    sp_csr expected = product_reference(host, p, &products), c = {0}, other = {0};
    sp_spgemm_plan *plan = plan_for(context, p);
    if (plan) {
        check_plan_info(plan, p, &expected, products);
        execute(context, plan, p, false, &c);
        const sp_csr before = c;
        for (int round = 0; round < 3; round++) {
            product_new_values(random, p);
            execute(context, plan, p, round == 1, round == 2 ? &other : &c);
            test_expect(memcmp(&before, &c, sizeof c) == 0, "%s: C is made of other arrays", p->name);
        }
        check_plan_info(plan, p, &expected, products);
    }
    test_free(context, &c, &other);
    sp_spgemm_plan_free(plan);
    sp_csr_free(host, &expected);
    sp_context_destroy(host);
}

DEVICE_TEST(random_plans_have_the_bits_of_the_reference, _i, 2)
{
    const int64_t cases = test_cases(250);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        product p = product_random(host, 100000 + seed);
        test_random random = test_seed(seed);
        p.options.algorithm = (sp_spgemm_algorithm)test_below(&random, 4);
        p.options.aia = (sp_aia)test_below(&random, 4);
        check_plan(context, &p, &random);
        product_free(host, &p);
    }
}

DEVICE_TEST(plans_of_shifted_rows_have_the_bits_of_the_reference, _i, 2)
{
    for (int type = SP_F32; type <= SP_F64; type++)
        for (int semiring = SP_PLUS_TIMES; semiring <= SP_OR_AND; semiring++) {
            test_random random = test_seed(31);
            product p = product_shifted(host, &random, 5, (sp_value_type)type);
            p.options.semiring = (sp_semiring)semiring;
            snprintf(p.name, sizeof p.name, "shifted rows, semiring %d", semiring);
            check_plan(context, &p, &random);
            product_free(host, &p);
        }
}

/* Rows on both sides of every limit, long enough for several threads. */
DEVICE_TEST(large_plans_have_the_bits_of_the_reference, _i, 2)
{
    for (int type = SP_F32; type <= SP_F64; type++)
        for (int algorithm = SP_SPGEMM_AUTO; algorithm <= SP_SPGEMM_WARP; algorithm++) {
            test_random random = test_seed(3);
            entry_list list = {0};
            for (int64_t i = 0; i < 400; i++)
                for (int64_t k = 0; k * k <= i; k++) entry_add(&list, i, test_below(&random, 300), 1);
            product p = {.a = entry_matrix(host, &list, 400, 300, (sp_value_type)type, false),
                         .b = product_matrix(host, &random, 300, 50000, 120, (sp_value_type)type, TEST_SIGNED),
                         .options.algorithm = (sp_spgemm_algorithm)algorithm, .name = "large plan"};
            check_plan(context, &p, &random);
            product_free(host, &p);
        }
}

/* B has one column and lacks some entries. A has a full row. */
DEVICE_TEST(plans_of_one_column_have_the_bits_of_the_reference, _i, 2)
{
    enum { ROWS = 300, INNER = 50000 };
    for (int type = SP_F32; type <= SP_F64; type++)
        for (int missing = 0; missing < 2; missing++) {
            test_random random = test_seed(5);
            entry_list list = {0};
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t k = 0; k < (i == 9 ? INNER : i % 40 * (i % 11)); k++)
                    entry_add(&list, i, (i + k) % INNER, product_value(&random));
            sp_csr a = entry_matrix(host, &list, ROWS, INNER, (sp_value_type)type, false);
            for (int64_t j = 0; j < INNER; j++)
                if (!missing || j % 5) entry_add(&list, j, 0, product_value(&random));
            product p = product_of(a, entry_matrix(host, &list, INNER, 1, (sp_value_type)type, false));
            snprintf(p.name, sizeof p.name, "one column, %d", missing);
            check_plan(context, &p, &random);
            product_free(host, &p);
        }
}

/* Entries of C of one product to 700, side by side: more than the CUDA back end takes of one entry at once; rows of
 * entries that have some 550 or some 280 products each. */
DEVICE_TEST(plans_sum_entries_of_any_number_of_products, _i, 2)
{
    enum { SIZE = 700, HUBS = 4 };
    for (int type = SP_F32; type <= SP_F64; type++) {
        test_random random = test_seed(6);
        entry_list list = {0};
        for (int64_t i = 0; i < SIZE; i++) {
            for (int64_t k = 0; k < HUBS; k++) entry_add(&list, i, k, product_value(&random));
            for (int64_t k = 0; k < (i < HUBS ? SIZE : 2); k++)
                entry_add(&list, i, i < HUBS ? k : test_below(&random, SIZE), product_value(&random));
        }
        product hubs = {.a = entry_matrix(host, &list, SIZE, SIZE, (sp_value_type)type, false), .b_is_a = true,
                        .name = "hubs"};
        product long_sums = {.a = product_matrix(host, &random, 30, 1200, 1100, (sp_value_type)type, TEST_SIGNED),
                             .b = product_matrix(host, &random, 1200, 30, 15, (sp_value_type)type, TEST_SIGNED),
                             .name = "550 products an entry"};
        product sums = {.a = product_matrix(host, &random, 150, 700, 600, (sp_value_type)type, TEST_SIGNED),
                        .b = product_matrix(host, &random, 700, 30, 14, (sp_value_type)type, TEST_SIGNED),
                        .name = "280 products an entry"};
        product *all[] = {&hubs, &long_sums, &sums};
        for (int i = 0; i < 3; i++) {
            check_plan(context, all[i], &random);
            product_free(host, all[i]);
        }
    }
}

/* Rows of a few products and of thousands side by side, about the limits of what the CUDA back end takes as one, some
 * whose elements meet empty rows of B, empty ones, and a hub; B's rows have runs of columns and gaps. */
DEVICE_TEST(plans_of_rows_of_all_lengths_have_the_bits_of_the_reference, _i, 2)
{
    enum { ROWS = 900, INNER = 12000, COLS = 5000 };
    static const int64_t lengths[] = {3, 0, 17, 1, 128, 5, 511, 0, 512, 40, 513, 2, 900, 8, 256, 90};
    for (int type = SP_F32; type <= SP_F64; type++)
        for (int masked = 0; masked < 2; masked++) {
            test_random random = test_seed(37);
            entry_list list = {0};
            for (int64_t i = 0; i < ROWS; i++) {
                const int64_t length = i == 400 ? INNER : lengths[i % 97 % (int64_t)COUNT(lengths)];
                const int64_t step = length == INNER ? 1 : INNER / (length + 1);
                for (int64_t k = 0; k < length; k++)
                    entry_add(&list, i, (i * 11 + k * step) % INNER, product_value(&random));
            }
            sp_csr a = entry_matrix(host, &list, ROWS, INNER, (sp_value_type)type, false);
            for (int64_t i = 0; i < INNER; i++)
                for (int64_t k = 0; k < (i % 9 == 4 ? 0 : i % 31 == 2 ? 60 : 1 + i % 7); k++)
                    entry_add(&list, i, (i * 13 + k + (k > 2 ? 5 : 0)) % (i % 3 ? COLS : 40), product_value(&random));
            product p = product_of(a, entry_matrix(host, &list, INNER, COLS, (sp_value_type)type, false));
            p.masked = masked;
            if (masked) p.mask = product_matrix(host, &random, ROWS, COLS, 1200, SP_F32, TEST_PATTERN);
            snprintf(p.name, sizeof p.name, "rows of all lengths%s", masked ? ", masked" : "");
            check_plan(context, &p, &random);
            product_free(host, &p);
        }
}

/* Rows of `many` elements, and short ones. The elements meet column 1 of B, but for 133 of the first 200. */
static product crowded(sp_context *host, test_random *random, int64_t rows, int64_t many, sp_value_type type)
{
    enum { COLS = 3 };
    entry_list list = {0};
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < (i % 7 ? 5 + i : many); j++) entry_add(&list, i, j, product_value(random));
    sp_csr a = entry_matrix(host, &list, rows, many, type, false);
    for (int64_t j = 0; j < many; j++) entry_add(&list, j, j < 200 ? j % COLS : 1, product_value(random));
    product p = product_of(a, entry_matrix(host, &list, many, COLS, type, false));
    snprintf(p.name, sizeof p.name, "%lld products, %lld rows", (long long)many, (long long)rows);
    return p;
}

/* Entries of C of more products than the CUDA back end lists of one in its place, or lets a warp sum: of a row times a
 * column, and among others. */
DEVICE_TEST(plans_sum_entries_of_very_many_products, _i, 2)
{
    static const int64_t many[] = {16384 + 133, 16385 + 133, 65535 + 133, 65536 + 133, 150000};
    for (int type = SP_F32; type <= SP_F64; type++)
        for (size_t i = 0; i < COUNT(many); i++)
            for (int64_t rows = 1; rows < 20; rows += 15) {
                test_random random = test_seed((uint64_t)rows);
                product p = crowded(host, &random, rows, many[i], (sp_value_type)type);
                check_plan(context, &p, &random);
                product_free(host, &p);
            }
}

DEVICE_TEST(plans_combine_very_many_products_by_any_semiring, _i, 2)
{
    for (int semiring = SP_PLUS_TIMES; semiring <= SP_OR_AND; semiring++) {
        test_random random = test_seed(7);
        product p = crowded(host, &random, 9, 70000, SP_F64);
        p.options.semiring = (sp_semiring)semiring;
        check_plan(context, &p, &random);
        product_free(host, &p);
    }
}

/* Nodes of one to seven unknowns with the same neighbours, whose rows are alike, some with a gap; behind them rows of
 * two entries, rows that meet three or six nodes far from each other, and empty ones. */
static sp_csr elements(sp_context *host, test_random *random, sp_value_type type, int64_t stride)
{
    enum { NODES = 100, REACH = 8, OTHERS = 40 };
    int64_t first[NODES + 1] = {0};
    entry_list list = {0};
    for (int64_t node = 0; node < NODES; node++) first[node + 1] = first[node] + 1 + node * 5 % 7;
    const int64_t rows = first[NODES] + OTHERS;
    for (int64_t node = 0; node < NODES; node++) {
        const int64_t low = first[node < REACH ? 0 : node - REACH];
        const int64_t high = first[node + REACH < NODES ? node + REACH + 1 : NODES];
        for (int64_t i = first[node]; i < first[node + 1]; i++)
            for (int64_t col = low; col < high; col++)
                if (i % 31 != 3 || col != low + 5) entry_add(&list, i, col * stride, product_value(random));
    }
    for (int64_t i = 0; i < OTHERS; i++)
        for (int64_t k = 0; k < (i % 4 == 3 ? 6 : i % 4 + 1) && i % 4; k++)
            entry_add(&list, first[NODES] + i, (i % 4 == 1 ? rows - 1 - k : (k * 13 + i) % first[NODES]) * stride,
                      product_value(random));
    return entry_matrix(host, &list, rows, rows * stride, type, false);
}

/* Such rows are summed as in a product: a plan does not list their products. */
DEVICE_TEST(plans_of_finite_elements_have_the_bits_of_the_reference, _i, 2)
{
    for (int type = SP_F32; type <= SP_F64; type++)
        for (int stride = 1; stride < 300; stride += 280) {
            test_random random = test_seed(9);
            product p = {.a = elements(host, &random, (sp_value_type)type, 1), .b_is_a = stride == 1,
                         .name = "finite elements"};
            if (!p.b_is_a) p.b = elements(host, &random, (sp_value_type)type, stride);
            check_plan(context, &p, &random);
            sp_spgemm_plan *plan = plan_for(context, &p);
            const sp_spgemm_info *info = sp_spgemm_plan_info(plan);
            ck_assert_int_lt(info->plan_bytes, info->products);
            sp_spgemm_plan_free(plan);
            product_free(host, &p);
        }
}

/* Two plans live on one context, their executions take turns, and what they were made from is gone. */
DEVICE_TEST(plans_stand_alone, _i, 2)
{
    product p[2];
    sp_spgemm_plan *plans[2];
    sp_csr c[2] = {{0}, {0}};
    test_random random = test_seed(2);
    for (int i = 0; i < 2; i++) {
        p[i] = (product){.a = product_matrix(host, &random, 300, 200, 9, SP_F64, TEST_SIGNED),
                         .b = product_matrix(host, &random, 300 - 50 * i, 200, 7, SP_F64, TEST_SIGNED),
                         .options.transpose_b = true, .masked = true, .name = "two plans"};
        p[i].mask = product_matrix(host, &random, 300, 300 - 50 * i, 40, SP_F32, TEST_PATTERN);
        product copy = p[i];
        ck_ok(host, sp_csr_copy(host, &p[i].a, SP_HOST, &copy.a));
        ck_ok(host, sp_csr_copy(host, &p[i].b, SP_HOST, &copy.b));
        ck_ok(host, sp_csr_copy(host, &p[i].mask, SP_HOST, &copy.mask));
        ck_assert_ptr_nonnull(plans[i] = plan_for(context, &copy));
        memset(copy.mask.col_indices, 0, (size_t)copy.mask.nnz * sizeof(int32_t));
        memset(copy.a.col_indices, 0, (size_t)copy.a.nnz * sizeof(int32_t));
        product_free(host, &copy);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            product_new_values(&random, &p[i]);
            execute(context, plans[i], &p[i], round == 1, &c[i]);
        }
    for (int i = 0; i < 2; i++) {
        sp_csr_free(context, &c[i]);
        sp_spgemm_plan_free(plans[i]);
        product_free(host, &p[i]);
    }
}

/* C = alpha · A·B + beta · C, in arrays of the caller, beside the product that the same plan gives. */
DEVICE_TEST(plans_scale_and_add_to_the_callers_arrays, _i, 2)
{
    static const double alphas[] = {1, 0, -0.3, 2}, betas[] = {0, 1, 0.7, 0};
    for (int type = SP_F32; type <= SP_F64; type++)
        for (int semiring = SP_PLUS_TIMES; semiring <= SP_PLUS_PAIR; semiring++) {
            test_random random = test_seed(12);
            product p = product_of(product_matrix(host, &random, 60, 50, 6, (sp_value_type)type, TEST_SIGNED),
                                   product_matrix(host, &random, 50, 70, 6, (sp_value_type)type, TEST_SIGNED));
            p.options.semiring = (sp_semiring)semiring;
            sp_spgemm_plan *plan = plan_for(context, &p);
            sp_csr plain = {0}, expected;
            ck_ok(context, sp_spgemm_plan_execute(plan, 1, &p.a, &p.b, 0, &plain));
            test_to_host(context, &plain);
            ck_ok(context, sp_csr_copy(context, &plain, SP_HOST, &expected));
            for (int there = 0; there < 2; there++)
                for (size_t i = 0; i < COUNT(alphas); i++) {
                    sp_csr c;
                    for (int64_t e = 0; e < plain.nnz; e++) test_set(&expected, e, i ? (double)(e % 9) - 4 : NAN);
                    ck_ok(context, sp_csr_copy(context, &expected, there ? test_space(context) : SP_HOST, &c));
                    const sp_csr before = c;
                    for (int64_t e = 0; e < plain.nnz; e++)
                        test_set(&expected, e, alphas[i] * test_value(&plain, e) +
                                               (betas[i] != 0 ? betas[i] * test_value(&expected, e) : 0));
                    ck_ok(context, sp_spgemm_plan_execute(plan, alphas[i], &p.a, &p.b, betas[i], &c));
                    ck_assert(memcmp(&before, &c, sizeof c) == 0);
                    test_to_host(context, &c);
                    product_same(&expected, &c, "alpha and beta");
                    sp_csr_free(context, &c);
                }
            test_free(context, &plain, &expected);
            sp_spgemm_plan_free(plan);
            product_free(host, &p);
        }
}

CONTEXT_TEST(plans_refuse_what_they_are_not_for, _i, 1)
{
    test_random random = test_seed(4);
    sp_csr a = test_matrix(context, &random, 20, 30, 0.2, SP_F32, TEST_SIGNED);
    sp_csr b = test_matrix(context, &random, 30, 25, 0.2, SP_F32, TEST_SIGNED);
    sp_csr denser = test_matrix(context, &random, 20, 30, 0.5, SP_F32, TEST_SIGNED);
    sp_csr wider = test_matrix(context, &random, 30, 26, 0.2, SP_F32, TEST_SIGNED);
    sp_csr a64 = test_matrix(context, &(test_random){4, 4}, 20, 30, 0.2, SP_F64, TEST_SIGNED), c = {0}, foreign;
    sp_spgemm_plan *plan;
    ck_assert_int_eq(a.nnz, a64.nnz);
    ck_ok(context, sp_spgemm_plan_create(context, &a, &b, NULL, &plan));
    const sp_csr *wrong[][2] = {{&denser, &b}, {&a, &wider}, {&b, &a}, {&a64, &b}, {&a, &a}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        ck_assert_int_eq(sp_spgemm_plan_execute(plan, 1, wrong[i][0], wrong[i][1], 0, &c), SP_ERROR_ARGUMENT);
        ck_assert_int_gt((int)strlen(sp_last_error(context)), 0);
        ck_assert_ptr_null(c.row_offsets);
    }
    ck_ok(context, sp_csr_copy(context, &denser, test_space(context), &foreign));
    const sp_csr before = foreign;
    ck_assert_int_eq(sp_spgemm_plan_execute(plan, 1, &a, &b, 0, &foreign), SP_ERROR_ARGUMENT);
    ck_assert(memcmp(&before, &foreign, sizeof before) == 0);
    ck_assert_int_eq(sp_spgemm_plan_execute(plan, 1, &a, &b, 2, &c), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "there is no C"));
    ck_ok(context, sp_spgemm_plan_execute(plan, 1, &a, &b, 0, &c));
    test_to_host(context, &c);
    if (c.col_indices[0] > 0) c.col_indices[0]--; /* another pattern of the same size */
    else for (int64_t e = 0; e < c.row_offsets[1]; e++) c.col_indices[e] = (int32_t)(c.cols - c.row_offsets[1] + e);
    ck_assert_int_eq(sp_spgemm_plan_execute(plan, 1, &a, &b, 2, &c), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "does not have the pattern"));
    sp_spgemm_plan_free(plan);
    ck_ok(context, sp_spgemm_plan_create(context, &a, &b, &(sp_spgemm_options){.semiring = SP_MIN_PLUS}, &plan));
    ck_assert_int_eq(sp_spgemm_plan_execute(plan, 2, &a, &b, 0, &c), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "forms no sums"));
    sp_csr *all[] = {&a, &b, &denser, &wider, &a64, &c, &foreign};
    for (size_t i = 0; i < COUNT(all); i++) sp_csr_free(context, all[i]);
    sp_spgemm_plan_free(plan);
    sp_spgemm_plan_free(NULL);
}

/* C of a plan with `to_host` lies on the host, as C of a product does. */
CONTEXT_TEST(plans_put_c_where_the_options_say, _i, 1)
{
    test_random random = test_seed(8);
    sp_csr a = test_matrix(context, &random, 40, 40, 0.2, SP_F64, TEST_SIGNED), expected, c = {0};
    for (int to_host = 0; to_host < 2; to_host++) {
        const sp_spgemm_options options = {.to_host = to_host};
        sp_spgemm_plan *plan;
        ck_ok(context, sp_spgemm(context, &a, &a, NULL, &expected, NULL));
        ck_ok(context, sp_spgemm_plan_create(context, &a, &a, &options, &plan));
        for (int round = 0; round < 2; round++) {
            ck_ok(context, sp_spgemm_plan_execute(plan, 1, &a, &a, 0, &c));
            ck_assert_int_eq(c.space, _i && !to_host ? SP_DEVICE : SP_HOST);
        }
        sp_spgemm_plan_free(plan);
        test_to_host(context, &expected);
        test_to_host(context, &c);
        product_same(&expected, &c, "plan");
        test_free(context, &expected, &c);
    }
    sp_csr_free(context, &a);
}

/* Counted by the context's allocator: nothing new stays for a C that is there, and with the plan all goes. */
TEST(plans_give_back_their_memory)
{
    test_heap heap = {.fail_at = -1};
    sp_context *host = test_context(0, 1), *context = test_heap_context(&heap, _i, 2);
    test_random random = test_seed(5);
    for (int semiring = SP_PLUS_TIMES; semiring <= SP_OR_AND; semiring++) {
        product p = {.a = product_matrix(host, &random, 500, 400, 10, SP_F32, TEST_SIGNED),
                     .b = product_matrix(host, &random, 400, 500, 10, SP_F32, TEST_SIGNED),
                     .options = {.semiring = (sp_semiring)semiring, .transpose_a = true, .transpose_b = true},
                     .name = "memory of a plan"};
        sp_spgemm_plan *plan = NULL;
        sp_csr c = {0};
        int64_t blocks = 0, bytes = 0;
        /* The first time may leave something with the context for the next; that is not a leak. */
        for (int round = 0; round < 2; round++) {
            blocks = heap.live_blocks;
            bytes = heap.live_bytes;
            plan = plan_for(context, &p);
            execute(context, plan, &p, false, &c);
            const int64_t with_c = heap.live_bytes;
            execute(context, plan, &p, false, &c);
            ck_assert_int_eq(heap.live_bytes, with_c);
            sp_csr_free(context, &c);
            sp_spgemm_plan_free(plan);
        }
        ck_assert_int_eq(heap.live_blocks, blocks);
        ck_assert_int_eq(heap.live_bytes, bytes);
        product_free(host, &p);
    }
    test_end_heap(context, &heap);
    sp_context_destroy(host);
}

static const test_entry tests[] = {
    CASE("random", 120),
    ON_DEVICES(random_plans_have_the_bits_of_the_reference),
    ON_DEVICES(plans_of_one_column_have_the_bits_of_the_reference),
    CASE("contract", 120),
    ON_DEVICES(plans_of_shifted_rows_have_the_bits_of_the_reference),
    ON_DEVICES(large_plans_have_the_bits_of_the_reference),
    ON_DEVICES(plans_sum_entries_of_any_number_of_products),
    ON_DEVICES(plans_of_rows_of_all_lengths_have_the_bits_of_the_reference),
    ON_DEVICES(plans_sum_entries_of_very_many_products),
    ON_DEVICES(plans_combine_very_many_products_by_any_semiring),
    ON_DEVICES(plans_of_finite_elements_have_the_bits_of_the_reference),
    ON_DEVICES(plans_stand_alone),
    ON_DEVICES(plans_scale_and_add_to_the_callers_arrays),
    ON_DEVICES(plans_refuse_what_they_are_not_for),
    ON_DEVICES(plans_put_c_where_the_options_say),
    ON_DEVICES(plans_give_back_their_memory),
    {0},
};

int main(void) { return test_run("spgemm_plan", tests); }
