/* test_spmm: what runs over the edges: sampled products and the softmax. */
#include <math.h>
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
        ck_ok(context, sp_edge_softmax(context, &a, softmax));
        ck_ok(context, sp_edge_softmax_backward(context, &a, softmax, gradient));
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
    ck_ok(context, sp_edge_softmax(context, &a, placed));
    from_space(context, placed, sizeof values, values);
    ck_assert(values[0] == 0.5f && values[1] == 0.5f && values[2] == 0);
}

const test_entry edges_tests[] = {
    CASE("edges", 120),
    ON_DEVICES(sampled_products_agree_with_the_reference),
    ON_DEVICES(softmax_and_its_gradient_agree_with_finite_differences),
    ON_DEVICES(softmax_of_large_values_is_finite),
    {0},
};
