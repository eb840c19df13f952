/* test_gnn_model: products with features and with hidden numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_model_shared.h"

/* Numbers in ±1 where the engine computes, and on the host: `exact` to 8 bits, as bf16 has them. */
static sp_dense draw_rows(runner *r, test_random *random, int64_t rows, int64_t cols, sp_dense_type type, bool exact,
                          double **here)
{
    const size_t size = number_size(type);
    sp_dense made;
    ck_ok(r->context, gnn_rows_create(r->engine, rows, cols, type, &made));
    void *all = calloc((size_t)(rows * made.stride), size);
    *here = malloc((size_t)(rows * cols) * sizeof **here + 1);
    ck_assert(all && *here);
    for (int64_t k = 0; k < rows * cols; k++) {
        const double unit = 2 * test_unit(random) - 1;
        float number = exact ? (float)(floor(unit * 128) / 128) : (float)unit;
        const int64_t at = k / cols * made.stride + k % cols;
        if (type == SP_DENSE_BF16) {
            uint32_t bits;
            memcpy(&bits, &number, sizeof bits);
            bits &= 0xffff0000u;
            memcpy(&number, &bits, sizeof bits);
            ((uint16_t *)all)[at] = (uint16_t)(bits >> 16);
        }
        (*here)[k] = (double)number;
        if (type == SP_DENSE_F64) ((double *)all)[at] = (double)number;
        else if (type == SP_DENSE_F32) ((float *)all)[at] = number;
    }
    ck_ok(r->context, sp_array_copy(r->context, rows * made.stride, size, made.values, made.space, all, SP_HOST));
    free(all);
    return made;
}

static double number_of(const sp_dense *host, int64_t i, int64_t j)
{
    const int64_t at = i * host->stride + j;
    if (host->type == SP_DENSE_BF16) {
        const uint32_t bits = (uint32_t)((uint16_t *)host->values)[at] << 16;
        float number;
        memcpy(&number, &bits, sizeof number);
        return (double)number;
    }
    return host->type == SP_DENSE_F64 ? ((double *)host->values)[at] : (double)((float *)host->values)[at];
}

/* C is Σ_k X(i, k)·B(k, j), X as it lies or the transpose of what lies there, but for rounding. */
static void check_product(runner *r, const double *x, bool transpose, int64_t inner, const double *b,
                          const sp_dense *c, const char *what)
{
    const double last = c->type == SP_DENSE_BF16 ? 0x1p-8 : 0; /* rounding C */
    sp_dense host;
    ck_ok(r->context, sp_dense_copy(r->context, c, SP_HOST, &host));
    for (int64_t i = 0; i < c->rows; i += i < 10 || i + 10 > c->rows ? 1 : 13)
        for (int64_t j = 0; j < c->cols; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < inner; k++) {
                const double term = (transpose ? x[k * c->rows + i] : x[i * inner + k]) * b[k * c->cols + j];
                sum += term;
                size += fabs(term);
            }
            ck_assert_msg(fabs(number_of(&host, i, j) - sum) <= 2e-6 * size + last * fabs(sum) + 1e-30,
                          "%s: (%lld, %lld) is %g, not %g", what, (long long)i, (long long)j, number_of(&host, i, j),
                          sum);
        }
    sp_dense_free(r->context, &host);
}

/* 9,001 rows are enough for the kernels of narrow products. Of two products the second is with the first rows only, and
 * in bf16 its result is f32, as logits are. */
static void check_features(runner *r, test_random *random, const sp_dense *there, const double *x, int count,
                           int64_t narrow)
{
    const gnn_backend *backend = r->engine->backend;
    const int64_t rows[] = {there->rows, there->rows - 37};
    const bool half = there->type == SP_DENSE_BF16;
    sp_dense b_there[2], g_there[2], c[2], d[2];
    double *b[2], *g[2];
    for (int k = 0; k < count; k++) {
        b_there[k] = draw_rows(r, random, there->cols, narrow, there->type, false, &b[k]);
        g_there[k] = draw_rows(r, random, rows[k], narrow, there->type, false, &g[k]);
        ck_ok(r->context, gnn_rows_create(r->engine, rows[k], narrow, k ? SP_DENSE_F32 : there->type, &c[k]));
        ck_ok(r->context, gnn_rows_create(r->engine, there->cols, narrow, SP_DENSE_F32, &d[k]));
    }
    const gnn_product_with forward[] = {{&b_there[0], &c[0]}, {&b_there[1], &c[1]}};
    const gnn_product_with back[] = {{&g_there[0], &d[0]}, {&g_there[1], &d[1]}};
    ck_ok(r->context, backend->multiply_features(r->engine, false, there, count, forward));
    ck_ok(r->context, backend->multiply_features(r->engine, true, there, count, back));
    for (int k = 0; k < count; k++) {
        char what[80];
        snprintf(what, sizeof what, "%lld x %lld, %s, %d of %d", (long long)there->cols, (long long)narrow,
                 half ? "bf16" : "f32", k + 1, count);
        check_product(r, x, false, there->cols, b[k], &c[k], what);
        check_product(r, x, true, rows[k], g[k], &d[k], what);
        test_free_dense(r->context, &b_there[k], &g_there[k], &c[k], &d[k]);
        free_all(b[k], g[k]);
    }
}

TEST(features_are_multiplied_in_either_type)
{
    static const int64_t widths[] = {17, 20, 256, 259, 500, 512, 600, 1024}, narrow[] = {1, 7, 8, 9, 16, 17, 64};
    runner r = open_runner(_i);
    test_random random = test_seed(91);
    for (int half = 0; half < 2; half++)
        for (size_t w = 0; w < COUNT(widths); w++) {
            double *x;
            sp_dense there = draw_rows(&r, &random, 9001, widths[w], half ? SP_DENSE_BF16 : SP_DENSE_F32, false, &x);
            for (size_t n = 0; n < COUNT(narrow); n++)
                if ((w + n) % 3 == 0 || widths[w] == 500)
                    for (int count = 1; count <= 2; count++) check_features(&r, &random, &there, x, count, narrow[n]);
            test_free_dense(r.context, &there);
            free(x);
        }
    free_runner(&r);
}

/* Y has the bits of a forward pass by itself, and C is Y·W. */
TEST(hidden_numbers_are_finished_and_multiplied)
{
    static const int64_t widths[] = {4, 7, 8, 16, 20, 32, 36, 128, 256};
    static const int64_t first[] = {7, 8, 3, 16, 20}, second[] = {0, 7, 9, 5, 3};
    runner r = open_runner(_i);
    test_random random = test_seed(92);
    const gnn_backend *backend = r.engine->backend;
    for (int type = 0; type < 3; type++)
        for (size_t w = 0; w < COUNT(widths); w++)
            for (size_t n = 0; n < COUNT(first); n++) {
                const sp_dense_type t = (sp_dense_type[]){SP_DENSE_F32, SP_DENSE_F64, SP_DENSE_BF16}[type];
                const sp_dense_type own = type == 1 ? SP_DENSE_F64 : SP_DENSE_F32; /* of a bias, and of logits */
                const int64_t rows = 1 + test_below(&random, 700), cols[2] = {first[n], second[n]};
                const gnn_pointwise how = {n % 2 ? GNN_RELU : GNN_ELU, w % 2 ? 0.4 : 0, 3};
                double *numbers, *weights[2], *unused;
                sp_dense y = draw_rows(&r, &random, rows, widths[w], t, false, &numbers), alone, host, v[2], c[2];
                sp_dense bias = draw_rows(&r, &random, 1, widths[w], own, false, &unused);
                free(unused);
                ck_ok(r.context, gnn_rows_create(r.engine, rows, widths[w], t, &alone));
                ck_ok(r.context, backend->forward(r.engine, &how, &y, bias.values, &alone));
                for (int k = 0; k < 2; k++) {
                    v[k] = draw_rows(&r, &random, widths[w], cols[k] ? cols[k] : 1, t, false, &weights[k]);
                    ck_ok(r.context, gnn_rows_create(r.engine, k ? 1 + rows / 2 : rows, cols[k] ? cols[k] : 1,
                                                     k ? own : t, &c[k]));
                }
                const gnn_product_with product[] = {{&v[0], &c[0]}, {&v[1], &c[1]}};
                ck_ok(r.context, backend->finish_multiply(r.engine, &how, bias.values, &y, cols[1] ? 2 : 1, product));
                sp_dense expected;
                ck_ok(r.context, sp_dense_copy(r.context, &y, SP_HOST, &host));
                ck_ok(r.context, sp_dense_copy(r.context, &alone, SP_HOST, &expected));
                for (int64_t k = 0; k < rows * widths[w]; k++) {
                    numbers[k] = number_of(&host, k / widths[w], k % widths[w]);
                    ck_assert(numbers[k] == number_of(&expected, k / widths[w], k % widths[w]));
                }
                for (int k = 0; k < (cols[1] ? 2 : 1); k++)
                    check_product(&r, numbers, false, widths[w], weights[k], &c[k], k ? "the second" : "the first");
                test_free_dense(r.context, &host, &expected, &alone, &bias, &y);
                free(numbers);
                for (int k = 0; k < 2; k++) {
                    test_free_dense(r.context, &v[k], &c[k]);
                    free(weights[k]);
                }
            }
    free_runner(&r);
}

const test_entry products_tests[] = {
    CASE("models", 300),
    ON_DEVICES(features_are_multiplied_in_either_type),
    ON_DEVICES(hidden_numbers_are_finished_and_multiplied),
    {0},
};
