/* test_spmm: what runs over the edges: sampled products, the softmax, and products with several heads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmm_shared.h"

/* Values that a call wrote or changes in place, in the space where the context computes. */
static void *to_space(sp_context *context, const void *values, size_t bytes)
{
    sp_dense m = {.rows = 1, .cols = (int64_t)bytes / 4, .stride = (int64_t)bytes / 4,
                  .values = (void *)(uintptr_t)values}, copy;
    ck_ok(context, sp_dense_copy(context, &m, test_space(context), &copy));
    return copy.values;
}

static void from_space(sp_context *context, void *values, size_t bytes, void *to)
{
    const sp_space space = test_space(context);
    sp_dense m = {.rows = 1, .cols = (int64_t)bytes / 4, .stride = (int64_t)bytes / 4, .values = values,
                  .space = space}, copy;
    ck_ok(context, sp_dense_copy(context, &m, SP_HOST, &copy));
    memcpy(to, copy.values, bytes);
    test_free_dense(context, &copy, &m);
}

static double read_as(sp_value_type type, const void *values, int64_t k)
{
    return type == SP_F32 ? (double)((const float *)values)[k] : ((const double *)values)[k];
}

DEVICE_TEST(sampled_products_agree_with_the_reference, _i, 2)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        test_random random = test_seed(seed);
        const int64_t width = widths[seed % WIDTHS], rows = test_below(&random, 90), cols = test_below(&random, 90);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const sp_dense_type dense = type == SP_F32 ? SP_DENSE_F32 : SP_DENSE_F64;
        sp_csr a = random_sparse(host, &random, rows, cols, SP_F32, seed % 5 ? TEST_SIGNED : TEST_PATTERN);
        sp_dense x = random_dense(&random, rows, width, width + 2, dense, TEST_SIGNED);
        sp_dense y = random_dense(&random, cols, width, width + test_below(&random, 3), dense, TEST_SIGNED);
        double *got = calloc((size_t)a.nnz + 1, 8);
        void *values = to_space(context, got, (size_t)a.nnz * 8);
        ck_ok(context, sp_sddmm(context, &a, &x, &y, values));
        from_space(context, values, (size_t)a.nnz * 8, got);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = a.row_offsets[i]; k < a.row_offsets[i + 1]; k++) {
                double sum = 0, size = 0;
                for (int64_t j = 0; j < width; j++) {
                    const double term = get(&x, i, j) * get(&y, a.col_indices[k], j);
                    sum += term;
                    size += fabs(term);
                }
                test_expect(fabs(read_as(type, got, k) - sum) <= tolerance(dense) * size,
                            "seed %llu: entry %lld is %g, not %g", (unsigned long long)seed, (long long)k,
                            read_as(type, got, k), sum);
            }
        free_all(got, x.values, y.values);
        sp_csr_free(host, &a);
    }
}

/* The loss Σ weight · softmax(value) in f64, by the definition. */
static double softmax_loss(const sp_csr *a, const double *values, const double *weights, double *softmax)
{
    double loss = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) sum += exp(values[k]);
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            const double s = exp(values[k]) / sum;
            if (softmax) softmax[k] = s;
            loss += weights[k] * s;
        }
    }
    return loss;
}

DEVICE_TEST(softmax_and_its_gradient_agree_with_finite_differences, _i, 2)
{
    enum { MOST = 4000 };
    static double values[MOST], weights[MOST], expected[MOST], got[MOST], made[MOST];
    for (uint64_t seed = 1; seed <= 10; seed++) {
        test_random random = test_seed(seed);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const double exact = type == SP_F32 ? 1e-5 : 1e-12;
        sp_csr a = random_sparse(host, &random, 40, 40, type, seed % 4 ? TEST_SIGNED : TEST_PATTERN);
        const size_t bytes = (size_t)a.nnz * (type == SP_F32 ? 4 : 8);
        for (int64_t k = 0; k < a.nnz; k++) {
            values[k] = (double)(float)(8 * test_unit(&random) - 4);
            weights[k] = (double)(float)(2 * test_unit(&random) - 1);
            if (type == SP_F32) ((float *)made)[k] = (float)values[k], ((float *)got)[k] = (float)weights[k];
            else made[k] = values[k], got[k] = weights[k];
        }
        softmax_loss(&a, values, weights, expected);
        void *softmax = to_space(context, made, bytes), *gradient = to_space(context, got, bytes);
        ck_ok(context, sp_edge_softmax(context, &a, 1, softmax));
        ck_ok(context, sp_edge_softmax_backward(context, &a, 1, softmax, gradient));
        from_space(context, softmax, bytes, made);
        from_space(context, gradient, bytes, got);
        for (int64_t k = 0; k < a.nnz; k++) {
            const double kept = values[k], step = 1e-5;
            values[k] = kept + step;
            double slope = softmax_loss(&a, values, weights, NULL);
            values[k] = kept - step;
            slope = (slope - softmax_loss(&a, values, weights, NULL)) / (2 * step);
            values[k] = kept;
            test_expect(fabs(read_as(type, made, k) - expected[k]) <= exact * expected[k],
                        "seed %llu: softmax %lld is %g, not %g", (unsigned long long)seed, (long long)k,
                        read_as(type, made, k), expected[k]);
            test_expect(fabs(read_as(type, got, k) - slope) <= 1e-6 + exact * fabs(slope),
                        "seed %llu: gradient %lld is %g, not %g", (unsigned long long)seed, (long long)k,
                        read_as(type, got, k), slope);
        }
        sp_csr_free(host, &a);
    }
}

/* Exponentials of 1000 overflow; their softmax does not. */
CONTEXT_TEST(softmax_of_large_values_is_finite, _i, 1)
{
    float values[3] = {1000, 1000, -1000};
    int64_t offsets[] = {0, 0, 3};
    int32_t cols[] = {0, 1, 2};
    sp_csr a = {2, 3, 3, offsets, cols, NULL, SP_F32, SP_HOST};
    void *placed = to_space(context, values, sizeof values);
    ck_ok(context, sp_edge_softmax(context, &a, 1, placed));
    from_space(context, placed, sizeof values, values);
    ck_assert(values[0] == 0.5f && values[1] == 0.5f && values[2] == 0);
}

/* ---- several heads --------------------------------------------------------------------------------------- */

/* A head of a matrix in which the heads are columns side by side, or rows behind each other. */
static sp_dense head_of(const sp_dense *all, int64_t heads, int64_t h, bool beside)
{
    const int64_t size = all->type == SP_DENSE_F64 ? 8 : all->type == SP_DENSE_F32 ? 4 : 2;
    sp_dense one = *all;
    if (beside) one.cols /= heads;
    else one.rows /= heads;
    one.values = (char *)all->values + h * size * (beside ? one.cols : one.rows * one.stride);
    return one;
}

static sp_dense batch_of(const sp_dense *all, int64_t heads, bool beside)
{
    sp_dense batch = head_of(all, heads, 0, beside);
    batch.batch = heads;
    batch.batch_stride = beside ? batch.cols : batch.rows * batch.stride;
    return batch;
}

typedef struct heads_case {
    sp_csr a;
    sp_dense x, y, values; /* values: a row for each head */
    int64_t heads;
    double alpha, beta;
    bool beside, moves;
    char name[160];
} heads_case;

static void check_heads(sp_context *context, const heads_case *c, const sp_spmm_options *options)
{
    const size_t bytes = (size_t)(c->heads * c->a.nnz) * (c->a.value_type == SP_F64 ? 8 : 4);
    sp_dense y = clone(&c->y), x_placed = place_dense(context, &c->x, c->moves), y_placed;
    sp_space space = test_space(context);
    void *values = to_space(context, c->values.values, bytes);
    sp_spmm_plan *plan;
    if (c->beta == 0) fill(&y, NAN);
    y_placed = place_dense(context, &y, c->moves);
    ck_ok(context, sp_spmm_plan_create(context, &c->a, y.cols, options, &plan));
    const sp_dense x_batch = batch_of(&x_placed, c->heads, c->beside);
    sp_dense y_batch = batch_of(&y_placed, c->heads, c->beside);
    if (c->a.nnz % 2) { /* from host memory */
        sp_array_free(context, space, values);
        values = c->values.values;
        space = SP_HOST;
    }
    ck_ok(context, sp_spmm_execute_heads(plan, values, space, c->alpha, &x_batch, c->beta, &y_batch));
    fetch_dense(context, &y_placed, &y);
    for (int64_t h = 0; h < c->heads; h++) {
        const sp_dense x = head_of(&c->x, c->heads, h, c->beside), before = head_of(&c->y, c->heads, h, c->beside);
        const sp_dense found = head_of(&y, c->heads, h, c->beside), of = head_of(&c->values, c->heads, h, false);
        sp_csr a = c->a;
        a.values = of.values;
        answer expected = reference(&(problem){&a, &x, options->reduce, options->transpose});
        check_product(&found, &before, &expected, c->alpha, c->beta, c->name);
        free_answer(&expected);
    }
    check_gaps(&y, (uint64_t)c->heads);
    if (values != c->values.values) sp_array_free(context, space, values);
    if (c->moves) sp_dense_free(context, &x_placed);
    free(y.values);
    sp_spmm_plan_free(plan);
}

/* Widths of heads that are vectors, half of one, several, and none; and few and many heads. */
DEVICE_TEST(products_with_several_heads_are_those_of_each_head, _i, 2)
{
    static const int64_t each[] = {8, 4, 1, 16, 7, 2, 24, 12, 3, 40};
    for (uint64_t seed = 1; seed <= 120; seed++) {
        test_random random = test_seed(seed);
        const int64_t width = each[seed % COUNT(each)], rows = test_below(&random, 90), cols = test_below(&random, 90);
        const sp_dense_type type = (sp_dense_type)(seed / 2 % 4);
        const sp_dense_type out = seed % 3 || type == SP_DENSE_F64 ? type : SP_DENSE_F32;
        const sp_spmm_options options = {.reduce = (sp_reduce)(seed % 7 > 3 ? 0 : seed % 7), .transpose = seed % 5 < 2,
                                         .algorithm = (sp_spmm_algorithm)(seed % 11 < 8 ? 0 : seed % 11 - 7),
                                         .partition_bytes = seed % 11 < 8 ? 0 : 2000};
        heads_case c = {.heads = 1 + test_below(&random, 9), .alpha = seed % 4 ? 1.5 : 1, .beta = seed % 3 ? 0 : -0.5,
                        .beside = seed % 8 > 1, .moves = test_space(context) == SP_DEVICE && seed % 6};
        const int64_t wide = c.beside ? c.heads : 1, tall = c.beside ? 1 : c.heads;
        c.a = random_sparse(host, &random, rows, cols, type == SP_DENSE_F64 ? SP_F64 : SP_F32,
                            seed % 2 ? TEST_SIGNED : TEST_PATTERN);
        c.values = random_dense(&random, c.heads, c.a.nnz, c.a.nnz, type == SP_DENSE_F64 ? type : SP_DENSE_F32,
                                TEST_SIGNED);
        c.x = random_dense(&random, tall * (options.transpose ? rows : cols), wide * width,
                           wide * width + test_below(&random, 4), type, TEST_SIGNED);
        c.y = random_dense(&random, tall * (options.transpose ? cols : rows), wide * width,
                           wide * width + test_below(&random, 4), out, TEST_SIGNED);
        snprintf(c.name, sizeof c.name, "seed %llu: %lld heads of %lld, %s", (unsigned long long)seed,
                 (long long)c.heads, (long long)width, c.beside ? "side by side" : "apart");
        check_heads(context, &c, &options);
        free_all(c.x.values, c.y.values, c.values.values);
        sp_csr_free(host, &c.a);
    }
}

/* A hub, more rows than a chunk has, Y past the caches; a plan with values of its own afterwards. */
DEVICE_TEST(heads_of_large_matrices_have_the_bits_of_products_alone, _i, 2)
{
    enum { N = 70000, HEADS = 8, WIDTH = 16 };
    test_random random = test_seed(5);
    sp_csr on_host = large_sparse(host, &random, N, N, SP_F32), a;
    sp_dense x = random_dense(&random, N, HEADS * WIDTH, HEADS * WIDTH, SP_DENSE_F32, TEST_SIGNED), x_placed;
    sp_dense found, alone;
    sp_dense values = random_dense(&random, HEADS, on_host.nnz, on_host.nnz, SP_DENSE_F32, TEST_SIGNED), placed;
    const sp_space space = test_space(context);
    ck_ok(context, sp_csr_copy(context, &on_host, space, &a));
    ck_ok(context, sp_dense_copy(context, &values, space, &placed));
    ck_ok(context, sp_dense_copy(context, &x, space, &x_placed));
    for (int transpose = 0; transpose < 2; transpose++) {
        sp_spmm_plan *plan;
        ck_ok(context, sp_dense_create(context, N, HEADS * WIDTH, SP_DENSE_F32, space, &found));
        ck_ok(context, sp_dense_create(context, N, WIDTH, SP_DENSE_F32, space, &alone));
        ck_ok(context, sp_spmm_plan_create(context, &a, WIDTH, &(sp_spmm_options){.transpose = transpose}, &plan));
        const sp_dense x_batch = batch_of(&x_placed, HEADS, true);
        sp_dense y_batch = batch_of(&found, HEADS, true), all, one;
        ck_ok(context, sp_spmm_execute_heads(plan, placed.values, space, 1, &x_batch, 0, &y_batch));
        ck_ok(context, sp_dense_copy(context, &found, SP_HOST, &all));
        for (int h = 0; h < HEADS; h++) {
            const sp_dense x_head = head_of(&x_placed, HEADS, h, true), of = head_of(&placed, HEADS, h, false);
            ck_ok(context, sp_spmm_plan_set_values(plan, of.values, space));
            ck_ok(context, sp_spmm_execute(plan, 1, &x_head, 0, &alone));
            ck_ok(context, sp_dense_copy(context, &alone, SP_HOST, &one));
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < WIDTH; j++) {
                    const double want = get(&one, i, j), got = get(&all, i, h * WIDTH + j);
                    test_expect(space == SP_HOST ? got == want : fabs(got - want) <= 1e-4 * (1 + fabs(want)),
                                "head %d: (%lld, %lld) is %.9g, not %.9g", h, (long long)i, (long long)j, got, want);
                }
            sp_dense_free(context, &one);
        }
        test_free_dense(context, &all, &found, &alone);
        sp_spmm_plan_free(plan);
    }
    test_free_dense(context, &placed, &x_placed);
    test_free(context, &a);
    free_all(x.values, values.values);
    sp_csr_free(host, &on_host);
}

/* The sampled products and the softmax of several heads are those of each. */
DEVICE_TEST(edges_of_several_heads_are_those_of_each_head, _i, 2)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_random random = test_seed(seed);
        const int64_t heads = 1 + test_below(&random, 5), width = 1 + test_below(&random, 20);
        const int64_t n = 1 + test_below(&random, 90);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const size_t size = type == SP_F32 ? 4 : 8;
        const bool moves = test_space(context) == SP_DEVICE && seed % 3;
        sp_csr a = random_sparse(host, &random, n, n, type, TEST_PATTERN);
        sp_dense x = random_dense(&random, n, heads * width, heads * width + 1, (sp_dense_type)type, TEST_SIGNED);
        sp_dense x_placed = place_dense(context, &x, moves);
        const sp_dense batch = batch_of(&x_placed, heads, true);
        const int64_t count = heads * a.nnz;
        const size_t bytes = (size_t)count * size, each = (size_t)a.nnz * size;
        char *zeros = test_zeros(bytes + 8, 1), *all = test_zeros(bytes + 8, 1), *one = test_zeros(bytes + 8, 1);
        void *values = to_space(context, zeros, bytes), *softmax = to_space(context, zeros, bytes);
        ck_ok(context, sp_sddmm(context, &a, &batch, &batch, values));
        ck_ok(context, sp_array_copy(context, count, size, softmax, test_space(context), values, test_space(context)));
        ck_ok(context, sp_edge_softmax(context, &a, heads, softmax));
        ck_ok(context, sp_edge_softmax_backward(context, &a, heads, softmax, values));
        from_space(context, values, bytes, all);
        sp_array_free(context, test_space(context), softmax);
        for (int64_t h = 0; h < heads; h++) {
            const sp_dense x_head = head_of(&x_placed, heads, h, true);
            void *g = to_space(context, zeros, each), *s = to_space(context, zeros, each);
            ck_ok(context, sp_sddmm(context, &a, &x_head, &x_head, g));
            ck_ok(context, sp_array_copy(context, a.nnz, size, s, test_space(context), g, test_space(context)));
            ck_ok(context, sp_edge_softmax(context, &a, 1, s));
            ck_ok(context, sp_edge_softmax_backward(context, &a, 1, s, g));
            from_space(context, g, each, one);
            sp_array_free(context, test_space(context), s);
            for (int64_t k = 0; k < a.nnz; k++)
                test_expect(read_as(type, all, h * a.nnz + k) == read_as(type, one, k),
                            "seed %llu: head %lld, entry %lld", (unsigned long long)seed, (long long)h, (long long)k);
        }
        if (moves) sp_dense_free(context, &x_placed);
        free_all(zeros, all, one, x.values);
        sp_csr_free(host, &a);
    }
}

CONTEXT_TEST(impossible_heads_are_refused, 0, 1)
{
    const double numbers[] = {1, 0, 2, 0, 3, 0, 4, 0, 5};
    float in[12] = {0}, out[12] = {0}, values[10] = {0};
    sp_csr a = test_from_dense(context, 3, 3, numbers, SP_F32);
    const sp_dense x = {.rows = 3, .cols = 2, .stride = 4, .values = in, .batch = 2, .batch_stride = 2};
    sp_dense y = x, bad = x;
    sp_spmm_plan *plan;
    ck_ok(context, sp_spmm_plan_create(context, &a, 2, NULL, &plan));
    y.values = out;
    ck_ok(context, sp_spmm_execute_heads(plan, values, SP_HOST, 1, &x, 0, &y));
#define REFUSE(call, words)                                                                                   \
    do {                                                                                                      \
        ck_assert_int_eq(call, SP_ERROR_ARGUMENT);                                                            \
        test_expect(strstr(sp_last_error(context), words), "%s: %s", #call, sp_last_error(context));          \
    } while (0)
    REFUSE(sp_spmm_execute_heads(plan, NULL, SP_HOST, 1, &x, 0, &y), "values is NULL");
    REFUSE(sp_spmm_execute_heads(plan, values, (sp_space)7, 1, &x, 0, &y), "space 7 does not exist");
    REFUSE(sp_spmm_execute_heads(plan, out, SP_HOST, 1, &x, 0, &y), "the arrays of values and Y overlap");
    bad.batch = 1;
    REFUSE(sp_spmm_execute_heads(plan, values, SP_HOST, 1, &bad, 0, &y), "X is a batch of 1 matrices and Y of 2");
    REFUSE(sp_sddmm(context, &a, &bad, &x, out), "X is a batch of 1 matrices and Y of 2");
    REFUSE(sp_edge_softmax(context, &a, -1, values), "-1 heads");
    REFUSE(sp_edge_softmax_backward(context, &a, INT64_MAX, values, out), "heads");
    ck_assert_int_eq(sp_spmm_execute_heads(NULL, values, SP_HOST, 1, &x, 0, &y), SP_ERROR_ARGUMENT);
    sp_spmm_plan_free(plan);
    sp_csr pattern = a;
    pattern.values = NULL;
    ck_ok(context, sp_spmm_plan_create(context, &pattern, 2, NULL, &plan));
    const sp_dense wide_x = {.rows = 3, .cols = 1, .stride = 2, .values = in, .type = SP_DENSE_F64, .batch = 2,
                             .batch_stride = 1};
    sp_dense wide_y = wide_x;
    wide_y.values = out;
    REFUSE(sp_spmm_execute_heads(plan, values, SP_HOST, 1, &wide_x, 0, &wide_y), "values are f32, X f64 and Y f64");
    sp_spmm_plan_free(plan);
    sp_csr_free(context, &a);
}

const test_entry edges_tests[] = {
    CASE("edges", 120),
    ON_DEVICES(products_with_several_heads_are_those_of_each_head),
    ON_DEVICES(heads_of_large_matrices_have_the_bits_of_products_alone),
    ON_DEVICES(edges_of_several_heads_are_those_of_each_head),
    ONCE(impossible_heads_are_refused),
    ON_DEVICES(sampled_products_agree_with_the_reference),
    ON_DEVICES(softmax_and_its_gradient_agree_with_finite_differences),
    ON_DEVICES(softmax_of_large_values_is_finite),
    {0},
};
