/* test_spmm: dense matrices by columns, and batches of them, against products by rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmm_shared.h"

enum { BATCH = 3, GAP = 5 };

/* The place of a number, by the definition of sp_dense. */
static size_t place_of(const sp_dense *m, int64_t number, int64_t row, int64_t col)
{
    return (size_t)(number * m->batch_stride +
                    (m->layout == SP_ROW_MAJOR ? row * m->stride + col : col * m->stride + row));
}

static size_t size_of(const sp_dense *m) { return m->type == SP_DENSE_F64 ? 8 : m->type == SP_DENSE_F32 ? 4 : 2; }

/* Numbers of all matrices of a batch, whatever lies between them. */
static size_t span_of(const sp_dense *m)
{
    return place_of(m, m->batch > 0 ? m->batch - 1 : 0, m->rows - 1, m->cols - 1) + 1;
}

/* Copies the matrices of a batch, all of them by rows one behind the other in `flat`, to or from their places. */
static void copy_numbers(const sp_dense *m, char *numbers, char *flat, bool out)
{
    const size_t size = size_of(m);
    for (int64_t b = 0; b < (m->batch > 0 ? m->batch : 1); b++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->cols; j++) {
                char *there = numbers + size * place_of(m, b, i, j);
                char *here = flat + size * (size_t)((b * m->rows + i) * m->cols + j);
                memcpy(out ? here : there, out ? there : here, size);
            }
}

/* How the matrices of a batch lie: one alone; behind each other; as columns of wider matrices; the same for all. */
typedef enum arrangement { ALONE, BEHIND, BESIDE, SHARED } arrangement;

static sp_dense arrange(int64_t rows, int64_t cols, sp_dense_type type, sp_layout layout, arrangement how)
{
    sp_dense m = {.rows = rows, .cols = cols, .type = type, .layout = layout, .batch = how == ALONE ? 0 : BATCH};
    const bool by_rows = layout == SP_ROW_MAJOR;
    m.stride = (by_rows ? cols : rows) * (how == BESIDE && by_rows ? BATCH : 1) + GAP;
    if (how == BEHIND) m.batch_stride = m.stride * (by_rows ? rows : cols) + GAP;
    if (how == BESIDE) m.batch_stride = by_rows ? cols : cols * m.stride;
    return m;
}

/* As many random matrices by rows. */
static char *random_numbers(test_random *random, int64_t count, int64_t rows, int64_t cols, sp_dense_type type)
{
    const sp_dense all = random_dense(random, count * rows, cols, cols, type, TEST_SIGNED);
    return all.values;
}

/* The product of one of the batch, by rows in host memory. */
static void multiply_by_rows(sp_context *context, sp_spmm_plan *plan, const sp_dense *x, const sp_dense *y,
                             char *x_flat, char *y_flat, double beta)
{
    for (int64_t b = 0; b < (y->batch > 0 ? y->batch : 1); b++) {
        const int64_t from = x->batch_stride || !x->batch ? b : 0;
        const sp_dense one_x = {.rows = x->rows, .cols = x->cols, .stride = x->cols, .type = x->type,
                                .values = x_flat + size_of(x) * (size_t)(from * x->rows * x->cols)};
        sp_dense one_y = {.rows = y->rows, .cols = y->cols, .stride = y->cols, .type = y->type,
                          .values = y_flat + size_of(y) * (size_t)(b * y->rows * y->cols)};
        ck_ok(context, sp_spmm_execute(plan, 1.5, &one_x, beta, &one_y));
    }
}

/* Puts the batch into `space`, numbers and what lies between them. */
static void place_batch(sp_context *context, sp_dense *m, char *numbers, sp_space space)
{
    m->space = space;
    m->values = numbers;
    if (space == SP_HOST) return;
    ck_ok(context, sp_array_create(context, (int64_t)span_of(m), size_of(m), space, &m->values));
    ck_ok(context, sp_array_copy(context, (int64_t)span_of(m), size_of(m), m->values, space, numbers, SP_HOST));
}

static void fetch_batch(sp_context *context, sp_dense *m, char *numbers)
{
    if (m->space == SP_HOST) return;
    ck_ok(context, sp_array_copy(context, (int64_t)span_of(m), size_of(m), numbers, SP_HOST, m->values, m->space));
    sp_array_free(context, m->space, m->values);
}

/* A GPU adds up rows in another order where X or Y lies otherwise or is wider: its numbers may differ in their last
 * places.
 * Those of `flat` then take their place. */
static void expect_near(const sp_dense *m, char *numbers, char *flat, const char *what)
{
    const size_t size = size_of(m);
    for (int64_t b = 0; b < (m->batch > 0 ? m->batch : 1); b++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->cols; j++) {
                sp_dense one = {.rows = 1, .cols = 1, .stride = 1, .type = m->type};
                one.values = flat + size * (size_t)((b * m->rows + i) * m->cols + j);
                const double expected = get(&one, 0, 0);
                one.values = numbers + size * place_of(m, b, i, j);
                const double found = get(&one, 0, 0);
                test_expect(fabs(found - expected) <= 2 * tolerance(m->type) * (1 + fabs(expected)),
                            "%s: matrix %lld has %.9g at (%lld, %lld), not %.9g", what, (long long)b, found,
                            (long long)i, (long long)j, expected);
            }
    copy_numbers(m, numbers, flat, false);
}

static void compare(sp_context *context, sp_spmm_plan *plan, test_random *random, sp_dense x, sp_dense y, double beta,
                    const char *what)
{
    char *x_flat = random_numbers(random, BATCH, x.rows, x.cols, x.type);
    char *y_flat = random_numbers(random, BATCH, y.rows, y.cols, y.type);
    const size_t bytes = span_of(&y) * size_of(&y);
    char *x_numbers = test_zeros(span_of(&x), size_of(&x)), *y_numbers = test_block(bytes);
    char *untouched = test_block(bytes);
    const sp_space space = test_space(context);
    memset(y_numbers, 0x55, bytes);
    if (x.batch && !x.batch_stride) { /* one for all */
        sp_dense first = x;
        first.batch = 0;
        copy_numbers(&first, x_numbers, x_flat, false);
    } else {
        copy_numbers(&x, x_numbers, x_flat, false);
    }
    copy_numbers(&y, y_numbers, y_flat, false);
    memcpy(untouched, y_numbers, bytes);
    place_batch(context, &x, x_numbers, test_below(random, 2) ? space : SP_HOST);
    place_batch(context, &y, y_numbers, test_below(random, 2) ? space : SP_HOST);
    ck_ok(context, sp_spmm_execute(plan, 1.5, &x, beta, &y));
    fetch_batch(context, &x, x_numbers);
    fetch_batch(context, &y, y_numbers);
    multiply_by_rows(context, plan, &x, &y, x_flat, y_flat, beta);
    copy_numbers(&y, untouched, y_flat, false);
    if (sp_context_is_cuda(context)) expect_near(&y, y_numbers, y_flat, what);
    test_expect(memcmp(y_numbers, untouched, bytes) == 0, "%s: a number, or what lies between them, differs", what);
    free_all(x_flat, y_flat, x_numbers, y_numbers, untouched);
}

DEVICE_TEST(layouts_and_batches_give_the_products_by_rows, _i, 2)
{
    static const sp_dense_type types[][2] = {{SP_DENSE_F32, SP_DENSE_F32}, {SP_DENSE_F64, SP_DENSE_F64},
                                             {SP_DENSE_F16, SP_DENSE_F16}, {SP_DENSE_BF16, SP_DENSE_F32}};
    static const arrangement ways[][2] = {{ALONE, ALONE},  {BEHIND, BEHIND}, {BESIDE, BESIDE},
                                          {BEHIND, BESIDE}, {SHARED, BEHIND}, {BESIDE, BEHIND}};
    static const int64_t some[] = {1, 7, 32, 70};
    for (uint64_t seed = 1; seed <= 4 * COUNT(ways); seed++) {
        test_random random = test_seed(seed);
        const sp_dense_type *type = types[test_below(&random, COUNT(types))];
        const int64_t rows = 1 + test_below(&random, 90), cols = 1 + test_below(&random, 90);
        const int64_t width = some[seed % COUNT(some)];
        const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT, .transpose = seed % 2, .deterministic = true};
        sp_csr a = random_sparse(host, &random, rows, cols, type[0] == SP_DENSE_F64 ? SP_F64 : SP_F32, TEST_SIGNED);
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &a, width, &options, &plan));
        for (int layout = 0; layout < 4; layout++) {
            const arrangement *way = ways[seed % COUNT(ways)];
            char what[100];
            snprintf(what, sizeof what, "seed %llu, layouts %d, ways %d %d", (unsigned long long)seed, layout,
                     (int)way[0], (int)way[1]);
            compare(context, plan, &random,
                    arrange(options.transpose ? rows : cols, width, type[0], (sp_layout)(layout % 2), way[0]),
                    arrange(options.transpose ? cols : rows, width, type[1], (sp_layout)(layout / 2), way[1]),
                    seed % 3 ? 0 : 0.75, what);
        }
        sp_spmm_plan_free(plan);
        sp_csr_free(host, &a);
    }
}

/* From and to each space. */
CONTEXT_TEST(copies_turn_columns_into_rows, _i, 2)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test_random random = test_seed(seed);
        const sp_dense_type types[] = {SP_DENSE_F32, SP_DENSE_F64, SP_DENSE_BF16};
        const sp_space space = test_space(context), from = seed % 2 ? space : SP_HOST,
                       to = seed / 2 % 2 ? space : SP_HOST;
        sp_dense m = arrange(1 + test_below(&random, 100), 1 + test_below(&random, 100), types[seed % 3],
                             SP_COLUMN_MAJOR, ALONE), copy;
        char *flat = random_numbers(&random, 1, m.rows, m.cols, m.type);
        char *numbers = test_zeros(span_of(&m), size_of(&m));
        copy_numbers(&m, numbers, flat, false);
        place_batch(context, &m, numbers, from);
        ck_ok(context, sp_dense_copy(context, &m, to, &copy));
        ck_assert(copy.layout == SP_ROW_MAJOR && copy.stride == m.cols && copy.space == to);
        char *found = test_block((size_t)(m.rows * m.cols) * size_of(&m));
        ck_ok(context, sp_array_copy(context, m.rows * m.cols, size_of(&m), found, SP_HOST, copy.values, to));
        test_expect(memcmp(found, flat, (size_t)(m.rows * m.cols) * size_of(&m)) == 0, "seed %llu",
                    (unsigned long long)seed);
        fetch_batch(context, &m, numbers);
        sp_dense_free(context, &copy);
        free_all(flat, numbers, found);
    }
}

/* 3 x 3, with X and Y of 3 x 2. */
CONTEXT_TEST(odd_layouts_and_batches_are_refused, 0, 1)
{
    const double numbers[] = {1, 0, 2, 0, 3, 0, 4, 0, 5};
    float in[12] = {0}, out[12] = {0};
    sp_csr a = test_from_dense(context, 3, 3, numbers, SP_F32);
    const sp_dense x = {.rows = 3, .cols = 2, .stride = 2, .values = in},
                   y = {.rows = 3, .cols = 2, .stride = 2, .values = out};
    sp_dense bad_x[4] = {x, x, x, x}, bad_y[3] = {y, y, y}, turned = x, batch = x, copy;
    sp_spmm_plan *plan;
    ck_ok(context, sp_spmm_plan_create(context, &a, 2, NULL, &plan));
    bad_x[0].layout = (sp_layout)2;
    bad_x[1].layout = SP_COLUMN_MAJOR; /* its stride is below 3 */
    bad_x[2].batch = -1;
    bad_x[3].batch = 2; /* Y is not */
    for (size_t i = 0; i < COUNT(bad_x); i++) {
        sp_dense result = y;
        test_expect(sp_spmm_execute(plan, 1, &bad_x[i], 0, &result) == SP_ERROR_ARGUMENT, "X %zu: %s", i,
                    sp_last_error(context));
    }
    batch.batch = bad_y[0].batch = bad_y[1].batch = bad_y[2].batch = 2;
    bad_y[0].batch_stride = 5; /* one has 6 numbers */
    bad_y[1].batch_stride = 0;
    bad_y[2].batch_stride = 6;
    bad_y[2].values = in;      /* over X */
    for (size_t i = 0; i < COUNT(bad_y); i++)
        test_expect(sp_spmm_execute(plan, 1, &batch, 0, &bad_y[i]) == SP_ERROR_ARGUMENT, "Y %zu: %s", i,
                    sp_last_error(context));
    turned.layout = SP_COLUMN_MAJOR;
    turned.stride = 3;
    ck_assert_int_eq(sp_sddmm(context, &a, &turned, &turned, out), SP_ERROR_UNSUPPORTED);
    ck_assert_str_eq(sp_last_error(context), "sp_sddmm: X is stored by columns, which this call does not take");
    ck_assert_int_eq(sp_dense_copy(context, &batch, SP_HOST, &copy), SP_ERROR_UNSUPPORTED);
    sp_spmm_plan_free(plan);
    sp_csr_free(context, &a);
}

const test_entry layouts_tests[] = {
    CASE("layouts", 120),
    ON_DEVICES(layouts_and_batches_give_the_products_by_rows),
    ON_DEVICES(copies_turn_columns_into_rows),
    ONCE(odd_layouts_and_batches_are_refused),
    {0},
};
