/* test_spmm: what the header promises beside numbers: arguments, new values, odd shapes, refusals, interrupts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"
#include "spmm_shared.h"

static sp_dense host_dense(float *values, int64_t rows, int64_t cols)
{
    return (sp_dense){.rows = rows, .cols = cols, .stride = cols, .values = values};
}

/* Small integers: many equals, all products exact, so that arguments are the reference's. */
DEVICE_TEST(arguments_are_the_first_of_equals, _i, 2)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        test_random random = test_seed(seed);
        const int64_t rows = test_below(&random, 80), cols = test_below(&random, 80), width = widths[seed % WIDTHS];
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr a = random_sparse(host, &random, rows, cols, type, seed % 3 ? TEST_INTEGERS : TEST_PATTERN);
        for (int kind = 0; kind < 4 * ALGORITHMS; kind++) {
            const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)(kind / 4), .transpose = kind % 2,
                                             .reduce = kind / 2 % 2 ? SP_REDUCE_MAX : SP_REDUCE_MIN};
            const sp_dense_type x_type = type == SP_F64 ? SP_DENSE_F64 : kind % 2 ? SP_DENSE_F32 : SP_DENSE_BF16;
            sp_dense x =
                random_dense(&random, options.transpose ? rows : cols, width, width + 3, x_type, TEST_INTEGERS);
            sp_dense y = make_dense(options.transpose ? cols : rows, width, width + 1, x_type);
            int64_t *argument = malloc((size_t)(y.rows * width) * sizeof *argument + 1);
            sp_spmm_plan *plan;
            answer expected = reference(&(problem){&a, &x, options.reduce, options.transpose});
            ck_ok(context, sp_spmm_plan_create(context, &a, width, &options, &plan));
            ck_ok(context, sp_spmm_execute_argument(plan, &x, &y, argument));
            for (int64_t at = 0; at < y.rows * width; at++) {
                test_expect(argument[at] == expected.argument[at],
                            "seed %llu, kind %d: argument of (%lld, %lld) is %lld, not %lld",
                            (unsigned long long)seed, kind, (long long)(at / width), (long long)(at % width),
                            (long long)argument[at], (long long)expected.argument[at]);
                test_expect(get(&y, at / width, at % width) == expected.value[at], "seed %llu, kind %d: value",
                            (unsigned long long)seed, kind);
            }
            check_gaps(&y, seed);
            sp_spmm_plan_free(plan);
            free_answer(&expected);
            free_all(argument, x.values, y.values);
        }
        sp_csr_free(host, &a);
    }
}

/* A hub with half of all edges among rows of one: long sums stay right, and no thread or block takes part twice. */
DEVICE_TEST(hubs_of_many_thousand_entries_sum_to_five_digits, _i, 2)
{
    enum { N = 60000 };
    test_random random = test_seed(7);
    sp_csr a;
    ck_ok(host, sp_csr_create(host, N, N, 2 * N - 1, SP_F32, SP_HOST, &a));
    a.row_offsets[0] = 0;
    for (int64_t i = 0, k = 0; i < N; i++) {
        for (int64_t j = 0; j < (i == N / 3 ? N : 1); j++) {
            a.col_indices[k] = (int32_t)(i == N / 3 ? j : test_below(&random, N));
            ((float *)a.values)[k++] = (float)(test_unit(&random) + 0x1p-20);
        }
        a.row_offsets[i + 1] = k;
    }
    ck_ok(host, sp_csr_check(host, &a));
    for (int kind = 0; kind < 2 * ALGORITHMS; kind++) {
        const int64_t width = kind % 2 ? 40 : 5;
        const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)(kind / 2), .reduce = SP_REDUCE_MEAN};
        scenario s = {.a = a, .alpha = 1, .seed = 7};
        s.x = random_dense(&random, N, width, width, SP_DENSE_F32, TEST_POSITIVE);
        s.y = make_dense(N, width, width, SP_DENSE_F32);
        answer expected = reference(&(problem){&a, &s.x, options.reduce, false});
        run_scenario(context, &s, &options, &expected);
        free_answer(&expected);
        free_all(s.x.values, s.y.values);
    }
    sp_csr_free(host, &a);
}

/* Every algorithm, transposed or not: a plan with new values is a new plan. */
DEVICE_TEST(new_values_replace_the_old_ones, _i, 2)
{
    for (int kind = 0; kind < 8 * ALGORITHMS; kind++) {
        test_random random = test_seed((uint64_t)kind + 1);
        const sp_value_type type = kind & 2 ? SP_F64 : SP_F32;
        const sp_dense_type dense = kind & 2 ? SP_DENSE_F64 : SP_DENSE_F32;
        sp_csr first = random_sparse(host, &random, 90, 90, type, kind & 4 ? TEST_PATTERN : TEST_SIGNED), second;
        sp_dense x = random_dense(&random, 90, 33, 33, dense, TEST_SIGNED), y = make_dense(90, 33, 33, dense);
        const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)(kind / 8), .transpose = kind % 2,
                                         .partition_bytes = 1000};
        sp_spmm_plan *plan;
        ck_ok(host, sp_csr_copy(host, &first, SP_HOST, &second));
        if (!second.values) ck_ok(host, sp_alloc(host, second.nnz, type == SP_F32 ? 4 : 8, &second.values));
        for (int64_t k = 0; k < second.nnz; k++) test_set(&second, k, test_unit(&random));
        ck_ok(context, sp_spmm_plan_create(context, &first, 33, &options, &plan));
        for (int round = 0; round < 3; round++) {
            sp_csr *now = round == 0 || (round == 2 && first.values) ? &first : &second;
            answer expected = reference(&(problem){now, &x, SP_REDUCE_SUM, options.transpose});
            if (round > 0) ck_ok(context, sp_spmm_plan_set_values(plan, now->values, SP_HOST));
            ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &y));
            check_product(&y, &y, &expected, 1, 0, "new values");
            free_answer(&expected);
        }
        ck_assert_int_eq(sp_spmm_plan_set_values(plan, NULL, SP_HOST), SP_ERROR_ARGUMENT);
        sp_spmm_plan_free(plan);
        test_free(host, &first, &second);
        free_all(x.values, y.values);
    }
}

/* A plan for one width takes others, among them none at all, and matrices without rows, columns or entries. */
DEVICE_TEST(empty_shapes_and_other_widths_are_products_too, _i, 2)
{
    static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {5, 7}};
    for (int kind = 0; kind < 4 * 2 * ALGORITHMS; kind++) {
        const int64_t *shape = shapes[kind % 4];
        test_random random = test_seed((uint64_t)kind + 1);
        sp_csr a = kind / 4 % 2 ? random_sparse(host, &random, shape[0], shape[1], SP_F32, TEST_SIGNED)
                                : test_matrix(host, &random, shape[0], shape[1], 0, SP_F32, TEST_SIGNED);
        const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)(kind / 8), .transpose = true};
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &a, (int64_t)kind % 3 * 50, &options, &plan));
        for (int64_t width = 0; width < 100; width += 33) {
            sp_dense x = random_dense(&random, shape[0], width, width + 1, SP_DENSE_F32, TEST_SIGNED);
            sp_dense y = make_dense(shape[1], width, width + 1, SP_DENSE_F32), before;
            fill(&y, 3);
            before = clone(&y);
            answer expected = reference(&(problem){&a, &x, SP_REDUCE_SUM, true});
            ck_ok(context, sp_spmm_execute(plan, 2, &x, 0.5, &y));
            check_product(&y, &before, &expected, 2, 0.5, "shapes");
            check_gaps(&y, (uint64_t)kind);
            free_answer(&expected);
            free_all(x.values, y.values, before.values);
        }
        sp_spmm_plan_free(plan);
        sp_csr_free(host, &a);
    }
}

/* Every n-th row has 1 to `most` entries, the others have none. */
static sp_csr sparse_rows(sp_context *host, test_random *random, int64_t rows, int64_t cols, int64_t n, int64_t most,
                          sp_value_type type)
{
    entry_list list = {0};
    for (int64_t i = n / 2; i < rows; i += n)
        for (int64_t k = 1 + test_below(random, most); k > 0; k--)
            entry_add(&list, i, test_below(random, cols), test_unit(random) - 0.5);
    return entry_matrix(host, &list, rows, cols, type, false);
}

/* Of rows without entries Y keeps beta times what it had, or is 0, whatever it had, and between its rows nothing
 * changes; one row in ten has entries, or in two, or each has, but few. */
DEVICE_TEST(rows_of_few_entries_or_none_agree_with_the_reference, _i, 2)
{
    static const struct { sp_value_type a; sp_dense_type x, y; } types[] = {
        {SP_F32, SP_DENSE_F32, SP_DENSE_F32}, {SP_F64, SP_DENSE_F64, SP_DENSE_F64},
        {SP_F32, SP_DENSE_F16, SP_DENSE_F16}, {SP_F32, SP_DENSE_BF16, SP_DENSE_F32}};
    static const double scales[][2] = {{1, 0}, {-2, 0}, {1, 0.5}};
    static const int64_t own_widths[] = {1, 33, 34, 50, 64, 130, 602}, every[] = {10, 2, 1};
    for (int kind = 0; kind < (int)COUNT(types) * 3 * (int)COUNT(own_widths); kind++) {
        const int type = kind % (int)COUNT(types), turn = kind / (int)COUNT(types) % 3;
        const int64_t width = own_widths[kind / (3 * (int)COUNT(types))], gap = kind % 2 ? 0 : 6;
        test_random random = test_seed((uint64_t)kind + 1);
        scenario s = {.alpha = scales[turn][0], .beta = scales[turn][1], .seed = (uint64_t)kind};
        s.a_moves = s.x_moves = s.y_moves = sp_context_is_cuda(context);
        s.a = sparse_rows(host, &random, 1003, 300, every[(turn + type) % 3], 3, types[type].a);
        s.x = random_dense(&random, 300, width, width + gap, types[type].x, TEST_SIGNED);
        s.y = random_dense(&random, 1003, width, width + gap, types[type].y, TEST_SIGNED);
        for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
            const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)algorithm,
                                             .reduce = kind % 5 ? SP_REDUCE_SUM : SP_REDUCE_MEAN};
            answer expected = reference(&(problem){&s.a, &s.x, options.reduce, false});
            run_scenario(context, &s, &options, &expected);
            free_answer(&expected);
        }
        sp_csr_free(host, &s.a);
        free_all(s.x.values, s.y.values);
    }
}

/* Few rows of many entries are cut, whatever their lengths. */
DEVICE_TEST(few_long_rows_agree_with_the_reference, _i, 2)
{
    for (int64_t width = 4; width < 300; width = width * 3 + 1) {
        test_random random = test_seed((uint64_t)width);
        scenario s = {.alpha = 1, .seed = (uint64_t)width};
        s.a = sparse_rows(host, &random, 37, 5000, 1, 900, SP_F32);
        s.x = random_dense(&random, 5000, width, width, SP_DENSE_F32, TEST_SIGNED);
        s.y = make_dense(37, width, width, SP_DENSE_F32);
        run_and_free(context, host, &s, &(sp_spmm_options){0});
    }
}

/* Halves of every pattern of bits go in as f32 sees them and come out again; what falls between two goes to the
 * nearer, to the even one of equals. */
CONTEXT_TEST(sixteen_bits_are_read_and_rounded_right, _i, 2)
{
    enum { ALL = 1 << 16 };
    static float ones[ALL];
    static uint16_t in[ALL], out[ALL];
    static const struct {
        sp_dense_type type;
        int exponent, fraction;
    } forms[] = {{SP_DENSE_F16, 5, 10}, {SP_DENSE_BF16, 8, 7}};
    float weight = 1;
    int64_t offsets[] = {0, 1};
    int32_t column = 0;
    sp_csr a = {1, 1, 1, offsets, &column, &weight, SP_F32, SP_HOST};
    for (int f = 0; f < 2; f++) {
        const int e = forms[f].exponent, m = forms[f].fraction;
        sp_dense x = {.rows = 1, .cols = ALL, .stride = ALL, .values = in, .type = forms[f].type};
        sp_dense y = host_dense(ones, 1, ALL);
        sp_dense rounded = {.rows = 1, .cols = ALL, .stride = ALL, .values = out, .type = forms[f].type};
        sp_spmm_plan *plan;
        for (int k = 0; k < ALL; k++) in[k] = (uint16_t)k;
        ck_ok(context, sp_spmm_plan_create(context, &a, ALL, NULL, &plan));
        ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &y));
        for (int k = 0; k < ALL; k++) {
            const double expected = small_value((uint16_t)k, e, m), got = (double)ones[k];
            test_expect(got == expected || (isnan(got) && isnan(expected)), "form %d: bits %04x are %g, not %g", f, k,
                        got, expected);
        }
        ck_ok(context, sp_spmm_execute(plan, 1.03125, &x, 0, &rounded));
        for (int k = 0; k < ALL; k++) {
            const double value = 1.03125 * small_value((uint16_t)k, e, m);
            if (isnan(value)) {
                test_expect(isnan(small_value(out[k], e, m)), "form %d: NaN %04x became %04x", f, k, out[k]);
                continue;
            }
            /* bf16's smallest products lie below what f32 keeps apart */
            if (f == 1 && fabs(value) < 0x1p-125) continue;
            test_expect((out[k] & 0x7fff) == (small_bits(value, e, m) & 0x7fff), "form %d: %g became %04x, not %04x",
                        f, value, out[k], small_bits(value, e, m));
        }
        sp_spmm_plan_free(plan);
    }
}

DEVICE_TEST(bad_arguments_are_refused, _i, 1)
{
    float values[16] = {0};
    int64_t argument[16];
    test_random random = test_seed(1);
    sp_csr a = test_matrix(host, &random, 4, 3, 0.5, SP_F32, TEST_SIGNED),
           wide = test_matrix(host, &random, 4, 3, 0.5, SP_F64, TEST_SIGNED);
    float other[16] = {0};
    sp_dense x = host_dense(values, 3, 2), y = host_dense(other, 4, 2), bad;
    sp_spmm_plan *plan, *of_wide, *none = (sp_spmm_plan *)&plan;
    ck_assert_int_eq(sp_spmm_plan_create(context, &a, -1, NULL, &none), SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(
        sp_spmm_plan_create(context, &a, 2, &(sp_spmm_options){.algorithm = (sp_spmm_algorithm)4}, &none),
        SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_spmm_plan_create(context, &a, 2, &(sp_spmm_options){.reduce = (sp_reduce)4}, &none),
                     SP_ERROR_ARGUMENT);
    ck_ok(context, sp_spmm_plan_create(context, &a, 2, NULL, &plan));
    ck_ok(context, sp_spmm_plan_create(context, &wide, 2, NULL, &of_wide));
    ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &y));
#define REFUSED(plan, x, y)                                                                \
    ck_assert_int_eq(sp_spmm_execute(plan, 1, x, 0, y), SP_ERROR_ARGUMENT);                \
    ck_assert_msg(strlen(sp_last_error(context)) > 0, "no sentence")
    bad = host_dense(values, 4, 2);
    REFUSED(plan, &bad, &y);
    bad = host_dense(other, 3, 2);
    REFUSED(plan, &x, &bad);
    bad = host_dense(values, 3, 3);
    REFUSED(plan, &bad, &y);
    bad = x;
    bad.stride = 1;
    REFUSED(plan, &bad, &y);
    bad = x;
    bad.values = NULL;
    REFUSED(plan, &bad, &y);
    bad = x;
    bad.type = SP_DENSE_F64;
    REFUSED(plan, &bad, &y);
    bad = y;
    bad.type = SP_DENSE_F16;
    REFUSED(plan, &x, &bad);
    bad = y;
    bad.values = values;
    REFUSED(plan, &x, &bad);
    REFUSED(of_wide, &x, &y);
    ck_assert_int_eq(sp_spmm_execute_argument(plan, &x, &y, argument), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_sddmm(context, &a, &y, &y, values), SP_ERROR_ARGUMENT);
    bad = x;
    bad.type = SP_DENSE_F16;
    ck_assert_int_eq(sp_sddmm(context, &a, &y, &bad, values), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_sddmm(context, &a, &y, &x, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_edge_softmax(context, &a, 1, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_edge_softmax_backward(context, &a, 1, NULL, values), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_dense_create(context, -1, 2, SP_DENSE_F32, SP_HOST, &bad), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_dense_create(context, INT64_MAX / 2, 3, SP_DENSE_F32, SP_HOST, &bad), SP_ERROR_OVERFLOW);
    ck_assert_ptr_null(bad.values);
    sp_spmm_plan_free(NULL);
    sp_spmm_plan_free(of_wide);
    sp_spmm_plan_free(plan);
    test_free(host, &wide, &a);
}

TEST(interrupts_end_the_product)
{
    volatile int flag = 0;
    sp_context *context = test_context_with(0, (sp_context_options){.threads = 2, .interrupt = &flag});
    sp_spmm_plan *plan;
    test_random random = test_seed(1);
    sp_csr a = random_sparse(context, &random, 100, 100, SP_F32, TEST_SIGNED);
    sp_dense x = random_dense(&random, 100, 20, 20, SP_DENSE_F32, TEST_SIGNED),
             y = make_dense(100, 20, 20, SP_DENSE_F32);
    ck_ok(context,
          sp_spmm_plan_create(context, &a, 20, &(sp_spmm_options){.algorithm = (sp_spmm_algorithm)_i}, &plan));
    flag = 1;
    ck_assert_int_eq(sp_spmm_execute(plan, 1, &x, 0, &y), SP_ERROR_INTERRUPTED);
    sp_spmm_plan_free(plan);
    sp_csr_free(context, &a);
    free_all(x.values, y.values);
    sp_context_destroy(context);
}

/* A plan that needs every kind of memory, new values, a product and a maximum. */
static sp_status use_everything(sp_context *context, const sp_csr *a, const sp_dense *x, sp_dense *y,
                                int64_t *argument)
{
    sp_spmm_options options = {.algorithm = SP_SPMM_BIDIRECTIONAL, .transpose = true, .partition_bytes = 700};
    sp_spmm_plan *plan;
    sp_status status = sp_spmm_plan_create(context, a, x->cols, &options, &plan);
    if (status == SP_OK) status = sp_spmm_plan_set_values(plan, a->values, SP_HOST);
    if (status == SP_OK) status = sp_spmm_execute(plan, 1, x, 0, y);
    sp_spmm_plan_free(plan);
    if (status != SP_OK) return status;
    options = (sp_spmm_options){.algorithm = SP_SPMM_BLOCK_PARTITION, .transpose = true, .reduce = SP_REDUCE_MAX};
    status = sp_spmm_plan_create(context, a, x->cols, &options, &plan);
    if (status == SP_OK) status = sp_spmm_execute_argument(plan, x, y, argument);
    sp_spmm_plan_free(plan);
    return status;
}

/* Three times the same product: into a Y aligned to lines of the caches, into one that is not, and into one with wider
 * rows, which always goes through the caches. From 32 MB on, an aligned Y is written past them (tiles of 96 columns
 * begin and end at lines, those of 40 do not), from 64 MB on by way of a copy wherever rows begin. */
CONTEXT_TEST(large_results_are_the_same_past_the_caches, 0, 2)
{
    static const struct {
        int64_t rows, width, stride;
        sp_dense_type type;
    } cases[] = {{140000, 64, 64, SP_DENSE_F32}, {90000, 96, 112, SP_DENSE_F32}, {220000, 40, 48, SP_DENSE_F32},
                 {180000, 24, 24, SP_DENSE_F64}, {170000, 100, 100, SP_DENSE_F32}, {300001, 29, 29, SP_DENSE_F64}};
    for (int c = 0; c < (int)(COUNT(cases)); c++) {
        test_random random = test_seed((uint64_t)c + 1);
        const int64_t rows = cases[c].rows, width = cases[c].width;
        const size_t size = cases[c].type == SP_DENSE_F32 ? 4 : 8;
        sp_csr a = large_sparse(context, &random, rows, 500, size == 4 ? SP_F32 : SP_F64);
        sp_dense x = random_dense(&random, 500, width, width, cases[c].type, TEST_SIGNED);
        char *memory[3];
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &a, width, NULL, &plan));
        for (int i = 0; i < 3; i++) {
            const int64_t stride = cases[c].stride + i / 2;
            const size_t bytes = (size_t)(rows * stride) * size;
            memory[i] = aligned_alloc(64, (bytes + 127) / 64 * 64);
            ck_assert_ptr_nonnull(memory[i]);
            memset(memory[i], 0x7f, bytes + 64);
            sp_dense y = {.rows = rows, .cols = width, .stride = stride, .values = memory[i] + 16 * i,
                          .type = cases[c].type};
            ck_ok(context, sp_spmm_execute(plan, -0.5, &x, 0, &y));
            bool same = true, whole = true; /* nothing beside Y is written */
            for (int64_t r = 0; r < rows; r++)
                same &= memcmp(memory[0] + (size_t)(r * cases[c].stride) * size,
                               (char *)y.values + (size_t)(r * stride) * size, (size_t)width * size) == 0;
            for (int b = 0; b < 64; b++)
                whole &= (b < 16 * i ? memory[i][b] : memory[i][bytes + (size_t)b]) == 0x7f;
            test_expect(same && whole, "width %lld, %d: results differ", (long long)width, i);
        }
        for (int i = 0; i < 3; i++) free(memory[i]);
        sp_spmm_plan_free(plan);
        sp_csr_free(context, &a);
        free(x.values);
    }
}

/* Ranges of columns on the CPU: extremes go on from range to range, and NaNs with them; arguments take no ranges. */
CONTEXT_TEST(extremes_by_ranges_have_the_bits_of_row_split, 0, 2)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        static const int64_t some[] = {1, 5, 33, 64, 130};
        test_random random = test_seed(seed);
        const int64_t width = some[seed % 5], rows = 150, size = rows * width;
        sp_csr a = random_sparse(context, &random, rows, rows, SP_F32, seed % 3 ? TEST_SIGNED : TEST_PATTERN);
        sp_dense x = random_dense(&random, rows, width, width, SP_DENSE_F32, TEST_INTEGERS), y[2];
        int64_t *places[2];
        ((float *)x.values)[test_below(&random, size)] = NAN;
        ((float *)x.values)[test_below(&random, size)] = -0.0f;
        for (int i = 0; i < 2; i++) {
            const sp_spmm_options options = {.algorithm = i ? SP_SPMM_BIDIRECTIONAL : SP_SPMM_ROW_SPLIT,
                                             .reduce = seed % 2 ? SP_REDUCE_MAX : SP_REDUCE_MIN,
                                             .partition_bytes = 500};
            sp_spmm_plan *plan;
            sp_dense again = make_dense(rows, width, width, SP_DENSE_F32);
            y[i] = make_dense(rows, width, width, SP_DENSE_F32);
            places[i] = malloc((size_t)size * sizeof *places[i]);
            fill(&y[i], NAN);
            ck_ok(context, sp_spmm_plan_create(context, &a, width, &options, &plan));
            if (i) ck_assert_int_gt(sp_spmm_plan_info(plan)->partitions, 1);
            ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &y[i]));
            ck_ok(context, sp_spmm_execute_argument(plan, &x, &again, places[i]));
            ck_assert_mem_eq(again.values, y[i].values, bytes_of(&y[i]));
            sp_spmm_plan_free(plan);
            free(again.values);
        }
        ck_assert_mem_eq(y[0].values, y[1].values, bytes_of(&y[0]));
        ck_assert_mem_eq(places[0], places[1], (size_t)size * sizeof *places[0]);
        for (int i = 0; i < 2; i++) {
            free_all(y[i].values, places[i]);
        }
        free(x.values);
        sp_csr_free(context, &a);
    }
}

/* On the CPU, of 150,000 rows of X with 256 columns: larger than any core's own cache, and no range is. */
CONTEXT_TEST(ranges_are_chosen_where_gathers_come_from_far, 0, 2)
{
    static const struct {
        const char *graph;
        sp_spmm_algorithm choice;
    } cases[] = {{"uniform:150000,48", SP_SPMM_BIDIRECTIONAL},
                 {"uniform:150000,2", SP_SPMM_ROW_SPLIT},
                 {"rmat:17,24", SP_SPMM_ROW_SPLIT},
                 {"fem2d:60,60,6", SP_SPMM_ROW_SPLIT}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        sp_csr a;
        sp_spmm_plan *plan;
        ck_ok(context, generate_matrix(context, cases[i].graph, 1, SP_F32, &a));
        ck_ok(context, sp_spmm_plan_create(context, &a, 256, NULL, &plan));
        test_expect(sp_spmm_plan_info(plan)->algorithm == cases[i].choice, "%s: algorithm %d", cases[i].graph,
                    (int)sp_spmm_plan_info(plan)->algorithm);
        sp_spmm_plan_free(plan);
        sp_csr_free(context, &a);
    }
}

TEST(failed_allocations_leave_nothing)
{
    static int64_t argument[60 * 40];
    sp_context *host = test_context(0, 1), *context;
    test_random random = test_seed(3);
    sp_csr a = random_sparse(host, &random, 60, 60, SP_F32, TEST_SIGNED);
    sp_dense x = random_dense(&random, 60, 40, 40, SP_DENSE_F32, TEST_SIGNED);
    sp_dense y = make_dense(60, 40, 40, SP_DENSE_F32);
    test_heap heap = {.fail_at = -1};
    context = test_heap_context(&heap, 0, 2);
    const int64_t before = heap.live_blocks;
    for (int64_t n = 0;; n++) {
        heap.allocations = 0;
        heap.fail_at = n;
        const sp_status status = use_everything(context, &a, &x, &y, argument);
        ck_assert_msg(heap.live_blocks == before, "allocation %lld leaks", (long long)n);
        if (status == SP_OK) break;
        ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        ck_assert_int_lt(n, 200);
    }
    ck_assert_int_gt(heap.allocations, 10);
    sp_context_destroy(context);
    sp_csr_free(host, &a);
    sp_context_destroy(host);
    free_all(x.values, y.values);
}

/* So many rows of X that they are copied to lines of the device's caches, 49 and 40 MB; in brief the latter alone. */
TEST(rows_of_x_may_lie_across_lines)
{
    enum { ROWS = 200, COLS = 280000, DEGREE = 22500 };
    sp_context *host = test_context(0, 2), *context = test_context(_i, 2);
    for (int kind = test_is_brief(); kind < 2; kind++) {
        test_random random = test_seed((uint64_t)kind + 1);
        const int64_t width = kind ? 72 : 44;
        const sp_spmm_options options = {.reduce = kind ? SP_REDUCE_MEAN : SP_REDUCE_SUM};
        scenario s = {.alpha = 1.5, .beta = kind ? 0.25 : 0, .seed = (uint64_t)kind + 1};
        ck_ok(host, sp_csr_create(host, ROWS, COLS, ROWS * DEGREE, SP_F32, SP_HOST, &s.a));
        for (int64_t i = 0; i <= ROWS; i++) s.a.row_offsets[i] = i * DEGREE;
        for (int64_t k = 0; k < s.a.nnz; k++) {
            s.a.col_indices[k] = (int32_t)(k % DEGREE * 12 + test_below(&random, 12));
            ((float *)s.a.values)[k] = (float)(2 * test_unit(&random) - 1);
        }
        ck_ok(host, sp_csr_check(host, &s.a));
        s.x = random_dense(&random, COLS, width, width, kind ? SP_DENSE_F16 : SP_DENSE_F32, TEST_SIGNED);
        s.y = random_dense(&random, ROWS, width, width + 4, SP_DENSE_F32, TEST_SIGNED);
        run_and_free(context, host, &s, &options);
    }
    test_end(context, host);
}

/* Few rows, of which one is long, of many columns: ranges of them pay for X of f32, but are too short for 16 bits,
 * which have a plan of their own from their first product on. */
TEST(short_ranges_are_products_of_any_features)
{
    enum { ROWS = 1000, COLS = 500000, DEGREE = 100, LONG = 5000, WIDTH = 32 };
    static const sp_dense_type types[] = {SP_DENSE_F16, SP_DENSE_F32, SP_DENSE_BF16};
    sp_context *host = test_context(0, 2), *context = test_context(1, 2);
    test_random random = test_seed(1);
    sp_csr a, placed;
    sp_spmm_plan *plan;
    ck_ok(host, sp_csr_create(host, ROWS, COLS, LONG + (ROWS - 1) * DEGREE, SP_F32, SP_HOST, &a));
    a.row_offsets[0] = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t first = a.row_offsets[i], degree = i ? DEGREE : LONG;
        a.row_offsets[i + 1] = first + degree;
        for (int64_t k = 0; k < degree; k++) {
            a.col_indices[first + k] = (int32_t)(k * (COLS / degree) + test_below(&random, COLS / degree));
            ((float *)a.values)[first + k] = (float)(2 * test_unit(&random) - 1);
        }
    }
    ck_ok(host, sp_csr_check(host, &a));
    ck_ok(context, sp_csr_copy(context, &a, SP_DEVICE, &placed));
    ck_ok(context, sp_spmm_plan_create(context, &placed, WIDTH, NULL, &plan));
    for (int turn = 0; turn < 3; turn++) {
        sp_dense x = random_dense(&random, COLS, WIDTH, WIDTH, types[turn], TEST_SIGNED);
        sp_dense y = make_dense(ROWS, WIDTH, WIDTH, SP_DENSE_F32), x_placed, y_placed;
        answer expected = reference(&(problem){&a, &x, SP_REDUCE_SUM, false});
        fill(&y, NAN);
        x_placed = place_dense(context, &x, true);
        y_placed = place_dense(context, &y, true);
        ck_ok(context, sp_spmm_execute(plan, 1, &x_placed, 0, &y_placed));
        const sp_spmm_algorithm algorithm = sp_spmm_plan_info(plan)->algorithm;
        test_expect((algorithm == SP_SPMM_BIDIRECTIONAL) == (types[turn] == SP_DENSE_F32),
                    "turn %d: the plan says algorithm %d", turn, (int)algorithm);
        fetch_dense(context, &y_placed, &y);
        for (int64_t i = 0; i < ROWS * WIDTH; i++)
            test_expect(fabs((double)((float *)y.values)[i] - expected.value[i]) <= 1e-5 * expected.size[i],
                        "turn %d: number %lld is %g, not %g", turn, (long long)i, (double)((float *)y.values)[i],
                        expected.value[i]);
        sp_dense_free(context, &x_placed);
        free_answer(&expected);
        free_all(x.values, y.values);
    }
    sp_spmm_plan_free(plan);
    sp_csr_free(context, &placed);
    sp_csr_free(host, &a);
    test_end(context, host);
}

const test_entry promises_tests[] = {
    CASE("products", 600),
    ON_DEVICES(rows_of_x_may_lie_across_lines),
    ON_CUDA(short_ranges_are_products_of_any_features),
    CASE("promises", 120),
    ON_DEVICES(arguments_are_the_first_of_equals),
    ON_DEVICES(hubs_of_many_thousand_entries_sum_to_five_digits),
    ON_DEVICES(new_values_replace_the_old_ones),
    ON_DEVICES(empty_shapes_and_other_widths_are_products_too),
    ON_DEVICES(rows_of_few_entries_or_none_agree_with_the_reference),
    ON_DEVICES(few_long_rows_agree_with_the_reference),
    ON_DEVICES(sixteen_bits_are_read_and_rounded_right),
    ON_DEVICES(bad_arguments_are_refused),
    TURNS(interrupts_end_the_product, ALGORITHMS),
    ONCE(large_results_are_the_same_past_the_caches),
    ONCE(extremes_by_ranges_have_the_bits_of_row_split),
    ONCE(ranges_are_chosen_where_gathers_come_from_far),
    ONCE(failed_allocations_leave_nothing),
    {0},
};
