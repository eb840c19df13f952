/* The dense operations of gnn on every device: each against an obvious loop in f64, over shapes with and without
 * rows, over strides, types and alignments; random numbers, captured work, engines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_dense_shared.h"

/* ---- multiply ------------------------------------------------------------------------------------------ */

static double *transposed(int64_t rows, int64_t cols, const double *from)
{
    double *made = numbers(rows * cols);
    for (int64_t e = 0; e < rows * cols; e++) made[e % cols * rows + e / cols] = from[e];
    return made;
}

/* Σ += op(A)·op(B), m x n */
static void add_product(int64_t m, int64_t n, int64_t k, const double *a, bool transpose_a, const double *b,
                        bool transpose_b, double *sum)
{
    double *flipped = transpose_b ? transposed(n, k, b) : NULL;
    const double *rows = flipped ? flipped : b;
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            const double by = a[transpose_a ? p * m + i : i * k + p];
            for (int64_t j = 0; j < n; j++) sum[i * n + j] += by * rows[p * n + j];
        }
    free(flipped);
}

static void check_product(subject *s, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                          double alpha, double beta)
{
    double *a = random_numbers(s, m * k), *b = random_numbers(s, k * n), *c = random_numbers(s, m * n);
    double *wanted = numbers(m * n);
    add_product(m, n, k, a, transpose_a, b, transpose_b, wanted);
    for (int64_t e = 0; e < m * n; e++) wanted[e] = alpha * wanted[e] + (beta == 0 ? 0 : beta * c[e]);
    sp_dense x = put_matrix(s, transpose_a ? k : m, transpose_a ? m : k, a);
    sp_dense y = put_matrix(s, transpose_b ? n : k, transpose_b ? k : n, b);
    sp_dense z = beta == 0 ? new_matrix(s, m, n) : put_matrix(s, m, n, c);
    ck_ok(s->context, s->back->multiply(s->engine, transpose_a, transpose_b, alpha, &x, &y, beta, &z));
    double *is = take_matrix(s, &z);
    char what[96];
    snprintf(what, sizeof what, "product %lld x %lld x %lld, %d%d, beta %g", (long long)m, (long long)k, (long long)n,
             transpose_a, transpose_b, beta);
    expect_close(s, m * n, is, wanted, s->tolerance * (1 + sqrt((double)k)), what);
    end_matrix(s, &x);
    end_matrix(s, &y);
    free_all(a, b, c, wanted, is);
}

static void products(subject *s)
{
    static const int64_t size[][3] = {{0, 3, 4},     {3, 0, 4},     {3, 4, 0},     {1, 1, 1},
                                      {5, 7, 3},     {64, 16, 33},  {16, 7, 9000}, {300, 41, 20},
                                      {20, 300, 40}, {260, 270, 50}, {40, 16, 300}, {1, 40, 70}};
    for (size_t i = 0; i < COUNT(size); i++)
        for (int t = 0; t < 4; t++) {
            static const double alpha[] = {1, 1, -0.5, 2}, beta[] = {0, 1, 0.5, 0};
            check_product(s, t & 1, t & 2, size[i][0], size[i][1], size[i][2], alpha[t], beta[t]);
        }
}

TEST(multiplies_as_defined) { on_subjects(_i, products); }

/* Products that are large enough for the ways that only large ones take, and their errors beside Σ |a·b|: f32
 * additions of k terms in whatever order stay well below k · 2^-24 of it. */
static void check_large_product(subject *s, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                                double beta)
{
    double *a = random_numbers(s, m * k), *b = random_numbers(s, k * n), *c = random_numbers(s, m * n);
    double *wanted = numbers(m * n), *size = numbers(m * n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            const double by = a[i * k + p];
            for (int64_t j = 0; j < n; j++) {
                wanted[i * n + j] += by * b[p * n + j];
                size[i * n + j] += fabs(by * b[p * n + j]);
            }
        }
    double *flipped_a = transposed(m, k, a), *flipped_b = transposed(k, n, b);
    sp_dense x = transpose_a ? put_matrix(s, k, m, flipped_a) : put_matrix(s, m, k, a);
    sp_dense y = transpose_b ? put_matrix(s, n, k, flipped_b) : put_matrix(s, k, n, b), z = put_matrix(s, m, n, c);
    ck_ok(s->context, s->back->multiply(s->engine, transpose_a, transpose_b, 0.5, &x, &y, beta, &z));
    double *is = take_matrix(s, &z);
    for (int64_t e = 0; e < m * n; e++) {
        const double error = fabs(is[e] - 0.5 * wanted[e] - beta * c[e]), most = 5e-7 * (size[e] + fabs(c[e]));
        test_expect(error <= most, "%s: %lld x %lld x %lld, %d%d: number %lld is off by %g, more than %g", s->name,
                    (long long)m, (long long)k, (long long)n, transpose_a, transpose_b, (long long)e, error, most);
    }
    end_matrix(s, &x);
    end_matrix(s, &y);
    void *all[] = {a, b, c, wanted, size, flipped_a, flipped_b, is};
    for (size_t e = 0; e < COUNT(all); e++) free(all[e]);
}

TEST(large_products_keep_the_digits_of_f32)
{
    for (int layout = 0; layout < LAYOUTS; layout += layout_step()) {
        subject s = make_subject(_i, SP_DENSE_F32, layout, 0);
        check_large_product(&s, false, false, 700, 252, 402, 0);
        check_large_product(&s, true, false, 252, 128, 2111, layout % 2);
        check_large_product(&s, false, true, 1310, 252, 204, 0.5);
        check_large_product(&s, false, false, 700, 16, 404, 0);
        check_large_product(&s, true, false, 252, 7, 2400, layout % 2);
        check_large_product(&s, true, false, 131, 13, 9001, layout % 2);
        check_large_product(&s, true, false, 600, 16, 8461, 0.5);
        check_large_product(&s, true, false, 40, 3, 8500, 0);
        check_large_product(&s, false, false, 9001, 7, 252, layout % 2);
        check_large_product(&s, false, true, 1310, 9, 404, 0.5);
        check_large_product(&s, false, false, 700, 41, 202, 0.5);
        check_large_product(&s, true, false, 100, 41, 1100, 0);
        check_large_product(&s, false, true, 500, 80, 204, layout % 2);
        check_large_product(&s, false, true, 3000, 256, 7, 0.5);
        check_large_product(&s, false, false, 333, 40, 16, layout % 2);
        check_large_product(&s, false, false, 130, 300, 1100, 0.5);
        check_large_product(&s, true, false, 30, 300, 9001, layout % 2);
        free_subject(&s);
    }
}

TEST(refuses_products_that_blas_cannot_count)
{
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    float none = 0;
    const sp_dense a = {.rows = 1, .cols = (int64_t)1 << 31, .stride = (int64_t)1 << 31, .values = &none,
                        .space = s.engine->space};
    const sp_dense b = {.rows = (int64_t)1 << 31, .cols = 1, .stride = 1, .values = &none,
                        .space = s.engine->space};
    sp_dense c = new_matrix(&s, 1, 1);
    ck_assert_int_eq(s.back->multiply(s.engine, false, false, 1, &a, &b, 0, &c), SP_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(sp_last_error(s.context), "2147483648"));
    end_matrix(&s, &c);
    free_subject(&s);
}

/* ---- activation and dropout ---------------------------------------------------------------------------- */

static double activated(gnn_activation how, double x)
{
    if (how == GNN_RELU) return x > 0 ? x : 0;
    return how == GNN_ELU && x < 0 ? exp(x) - 1 : x;
}

static double slope_at(gnn_activation how, double x)
{
    if (how == GNN_RELU) return x > 0;
    return how == GNN_ELU && x < 0 ? exp(x) : 1;
}

static void check_pointwise(subject *s, int64_t rows, int64_t cols, gnn_activation activation, double rate,
                            bool biased)
{
    const gnn_pointwise how = {activation, rate, 5};
    const int64_t count = rows * cols;
    double *x = random_numbers(s, count), *dy = random_numbers(s, count), *bias = random_numbers(s, cols);
    double *y_wanted = numbers(count), *dx_wanted = numbers(count);
    for (int64_t k = 0; k < count; k++) {
        if (k % 11 == 0) x[k] = 0;
        const double in = biased ? x[k] + bias[k % cols] : x[k], keep = kept(s, rate, how.site, k);
        y_wanted[k] = activated(activation, in) * keep;
        dx_wanted[k] = dy[k] * slope_at(activation, in) * keep;
    }
    sp_dense from = put_matrix(s, rows, cols, x), same = put_matrix(s, rows, cols, x), y = new_matrix(s, rows, cols);
    sp_dense gradient = put_matrix(s, rows, cols, dy), dx = new_matrix(s, rows, cols);
    void *biases = put_numbers(s, cols, bias);
    ck_ok(s->context, s->back->forward(s->engine, &how, &from, biased ? biases : NULL, &y));
    ck_ok(s->context, s->back->forward(s->engine, &how, &same, biased ? biases : NULL, &same));
    ck_ok(s->context, s->back->backward(s->engine, &how, &y, &gradient, &dx, NULL));
    void *sums = put_numbers(s, cols, bias);
    ck_ok(s->context, s->back->backward(s->engine, &how, &y, &gradient, &gradient, sums));
    double *results[] = {take_matrix(s, &y), take_matrix(s, &same), take_matrix(s, &dx), take_matrix(s, &gradient)};
    expect_close(s, count, results[0], y_wanted, s->tolerance, "forward");
    expect_close(s, count, results[1], y_wanted, s->tolerance, "forward in place");
    expect_close(s, count, results[2], dx_wanted, s->tolerance, "backward");
    expect_close(s, count, results[3], dx_wanted, s->tolerance, "backward in place");
    double *sums_wanted = numbers(cols), *total = take_numbers(s, cols, sums);
    for (int64_t k = 0; k < count; k++) sums_wanted[k % cols] += dx_wanted[k];
    expect_close(s, cols, total, sums_wanted, s->tolerance * (1 + sqrt((double)rows)), "backward, sums");
    drop_array(s, sums);
    free_all(sums_wanted, total);
    end_matrix(s, &from);
    drop_array(s, biases);
    for (int k = 0; k < 4; k++) free(results[k]);
    free_all(x, dy, bias, y_wanted, dx_wanted);
}

static void pointwise(subject *s)
{
    static const gnn_activation activations[] = {GNN_LINEAR, GNN_RELU, GNN_ELU};
    ck_ok(s->context, s->back->set_step(s->engine, 3));
    for (int shape = 0; shape < SHAPES; shape++)
        for (int a = 0; a < 3; a++)
            for (int dropout = 0; dropout < 3; dropout++)
                if (!test_is_brief() || (shape + a + dropout) % 3 == 0)
                    check_pointwise(s, shapes[shape][0], shapes[shape][1], activations[a], dropout * 0.4,
                                    (shape + a) % 2 == 0);
}

TEST(activations_and_dropout_go_forward_and_back) { on_subjects(_i, pointwise); }

/* ---- dense layers -------------------------------------------------------------------------------------- */

/* Y = forward(X·W [+ X'·W'] + bias); X' has other columns. */
static void check_dense(subject *s, int64_t rows, int64_t in, int64_t out, int count, gnn_pointwise how, bool biased)
{
    double *wanted = numbers(rows * out), *bias = random_numbers(s, out), *number[2][2];
    sp_dense x[2], w[2], y = new_matrix(s, rows, out);
    gnn_product product[2];
    void *biases = put_numbers(s, out, bias);
    for (int k = 0; k < count; k++) {
        const int64_t cols = in + 3 * k;
        number[k][0] = random_numbers(s, rows * cols);
        number[k][1] = random_numbers(s, cols * out);
        add_product(rows, out, cols, number[k][0], false, number[k][1], false, wanted);
        x[k] = put_matrix(s, rows, cols, number[k][0]);
        w[k] = put_matrix(s, cols, out, number[k][1]);
        product[k] = (gnn_product){&x[k], &w[k]};
    }
    for (int64_t e = 0; e < rows * out; e++) {
        if (biased) wanted[e] += bias[e % out];
        wanted[e] = activated(how.activation, wanted[e]) * kept(s, how.rate, how.site, e);
    }
    ck_ok(s->context, s->back->dense(s->engine, count, product, &how, biased ? biases : NULL, &y));
    double *is = take_matrix(s, &y);
    expect_close(s, rows * out, is, wanted, s->tolerance * (1 + sqrt((double)in)), "dense layer");
    for (int k = 0; k < count; k++) {
        end_matrix(s, &x[k]);
        end_matrix(s, &w[k]);
        free_all(number[k][0], number[k][1]);
    }
    drop_array(s, biases);
    free_all(wanted, bias, is);
}

/* X has `in` columns, the gradients `out` and out + 1; the second one lacks a third of the rows. */
static void check_dense_backward(subject *s, int64_t rows, int64_t in, int64_t out, int count, gnn_pointwise how)
{
    double *z = random_numbers(s, rows * in), *x = numbers(rows * in), *wanted = numbers(rows * in);
    double *sums_wanted = numbers(in), *number[2][2], *dw_wanted[2];
    sp_dense g[2], w[2], dw[2], dx = new_matrix(s, rows, in);
    gnn_product_gradient product[2];
    for (int64_t e = 0; e < rows * in; e++) x[e] = activated(how.activation, z[e]) * kept(s, how.rate, how.site, e);
    for (int k = 0; k < count; k++) {
        const int64_t cols = out + k, some = k ? rows - rows / 3 : rows;
        number[k][0] = random_numbers(s, some * cols);
        number[k][1] = random_numbers(s, in * cols);
        dw_wanted[k] = numbers(in * cols);
        add_product(some, in, cols, number[k][0], false, number[k][1], true, wanted);
        add_product(in, cols, some, x, true, number[k][0], false, dw_wanted[k]);
        g[k] = put_matrix(s, some, cols, number[k][0]);
        w[k] = put_matrix(s, in, cols, number[k][1]);
        dw[k] = new_matrix(s, in, cols);
        product[k] = (gnn_product_gradient){&g[k], &w[k], &dw[k]};
    }
    for (int64_t e = 0; e < rows * in; e++) {
        wanted[e] *= slope_at(how.activation, z[e]) * kept(s, how.rate, how.site, e);
        sums_wanted[e % in] += wanted[e];
    }
    sp_dense from = put_matrix(s, rows, in, x);
    void *sums = put_numbers(s, in, sums_wanted);
    const double tolerance = s->tolerance * (1 + sqrt((double)(out + rows)));
    ck_ok(s->context, s->back->dense_backward(s->engine, count, product, &how, &from, &dx, sums));
    double *is = take_matrix(s, &dx), *total = take_numbers(s, in, sums);
    expect_close(s, rows * in, is, wanted, s->tolerance * (1 + sqrt((double)out)), "dense layer backward");
    expect_close(s, in, total, sums_wanted, tolerance * 2, "dense layer backward, sums");
    for (int k = 0; k < count; k++) {
        double *dw_is = take_matrix(s, &dw[k]);
        expect_close(s, in * (out + k), dw_is, dw_wanted[k], tolerance, "dense layer backward, weights");
        end_matrix(s, &g[k]);
        end_matrix(s, &w[k]);
        free_all(dw_is, dw_wanted[k], number[k][0], number[k][1]);
    }
    end_matrix(s, &from);
    drop_array(s, sums);
    void *all[] = {z, x, wanted, sums_wanted, is, total};
    for (size_t e = 0; e < COUNT(all); e++) free(all[e]);
}

/* Shapes for the passes of narrow products and of large ones, and for those that have none. */
static void dense_layers(subject *s)
{
    static const int64_t size[][3] = {{0, 5, 3},     {1, 1, 1},     {40, 9, 8},     {700, 33, 7}, {2100, 256, 7},
                                      {300, 300, 6}, {130, 41, 17}, {1310, 70, 96}, {300, 402, 252}, {900, 16, 3},
                                      {1300, 28, 7}, {3000, 8, 2}};
    static const gnn_activation activations[] = {GNN_LINEAR, GNN_RELU, GNN_ELU};
    ck_ok(s->context, s->back->set_step(s->engine, 5));
    for (size_t i = 0; i < COUNT(size); i++)
        for (int variant = 0; variant < 6; variant++) {
            const gnn_pointwise how = {activations[variant % 3], variant < 3 ? 0 : 0.4, 3};
            const int count = 1 + (variant + (int)i) % 2;
            if (size[i][0] * size[i][1] * size[i][2] > 10000000 && variant % 3 != 1) continue;
            if (test_is_brief() && (variant + (int)i) % 3 != 0) continue;
            check_dense(s, size[i][0], size[i][1], size[i][2], count, how, variant != 1);
            check_dense_backward(s, size[i][0], size[i][1], size[i][2], count, how);
        }
}

TEST(dense_layers_go_forward_and_back) { on_subjects(_i, dense_layers); }

TEST(relu_lets_nan_through)
{
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    const double bad[] = {NAN, -1, INFINITY, 2};
    sp_dense x = put_matrix(&s, 1, 4, bad);
    ck_ok(s.context, s.back->forward(s.engine, &(gnn_pointwise){GNN_RELU, 0, 1}, &x, NULL, &x));
    double *y = take_matrix(&s, &x);
    ck_assert(isnan(y[0]) && y[1] == 0 && isinf(y[2]) && y[3] == 2);
    free(y);
    free_subject(&s);
}

static double *dropped_ones(subject *s, double rate, uint64_t site, int64_t count)
{
    double *ones = numbers(count);
    for (int64_t k = 0; k < count; k++) ones[k] = 1;
    void *array = put_numbers(s, count, ones);
    free(ones);
    ck_ok(s->context, s->back->drop(s->engine, rate, site, count, array, s->type, array));
    double *made = take_numbers(s, count, array);
    drop_array(s, array);
    return made;
}

static int64_t differences(const double *a, const double *b, int64_t count)
{
    int64_t found = 0;
    for (int64_t k = 0; k < count; k++) found += a[k] != b[k];
    return found;
}

/* A share p of n numbers is within 5 √(p (1 - p) n) of p·n but once in 10^6 seeds; the seed is fixed. */
TEST(dropout_draws_by_seed_step_site_and_place)
{
    enum { COUNT = 100003 };
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    ck_ok(s.context, s.back->set_step(s.engine, 7));
    double *first = dropped_ones(&s, 0.3, 2, COUNT), *again = dropped_ones(&s, 0.3, 2, COUNT);
    double *site = dropped_ones(&s, 0.3, 3, COUNT), *all = dropped_ones(&s, 1, 2, COUNT);
    ck_ok(s.context, s.back->advance(s.engine));
    ck_assert_int_eq(s.engine->step, 8);
    double *step = dropped_ones(&s, 0.3, 2, COUNT);
    int64_t zeros = 0;
    for (int64_t k = 0; k < COUNT; k++) {
        zeros += first[k] == 0;
        test_expect(first[k] == 0 || fabs(first[k] - 1 / 0.7) < 1e-6, "%g is neither dropped nor scaled", first[k]);
        test_expect(all[k] == 0, "rate 1 keeps number %lld", (long long)k);
    }
    ck_assert_msg(fabs((double)zeros - 0.3 * COUNT) < 5 * sqrt(0.21 * COUNT), "%lld dropped", (long long)zeros);
    ck_assert_int_eq(differences(first, again, COUNT), 0);
    const double others = 0.42 * COUNT, within = 5 * sqrt(0.42 * 0.58 * COUNT);
    ck_assert(fabs((double)differences(first, site, COUNT) - others) < within);
    ck_assert(fabs((double)differences(first, step, COUNT) - others) < within);
    free_all(first, again, site, all, step);
    free_subject(&s);
}

/* ---- copies and sums ----------------------------------------------------------------------------------- */

static void check_movement(subject *s, int64_t rows, int64_t cols)
{
    const int64_t count = rows * cols;
    double *x = random_numbers(s, count), *y = random_numbers(s, count), *sums = numbers(cols);
    double *added = numbers(count), *filled = numbers(count);
    for (int64_t k = 0; k < count; k++) {
        added[k] = y[k] + 0.25 * x[k];
        filled[k] = -1.5;
        sums[k % cols] += x[k];
    }
    sp_dense from = put_matrix(s, rows, cols, x), to = new_matrix(s, rows, cols), plus = put_matrix(s, rows, cols, y);
    sp_dense full = new_matrix(s, rows, cols);
    double *none = numbers(cols);
    void *totals = put_numbers(s, cols, none);
    ck_ok(s->context, s->back->copy(s->engine, &from, &to));
    ck_ok(s->context, s->back->add(s->engine, 0.25, &from, &plus));
    ck_ok(s->context, s->back->fill(s->engine, -1.5, &full));
    ck_ok(s->context, s->back->column_sums(s->engine, &from, totals));
    double *copied = take_matrix(s, &to), *plused = take_matrix(s, &plus), *fulls = take_matrix(s, &full);
    double *summed = take_numbers(s, cols, totals);
    expect_close(s, count, copied, x, 0, "copy");
    expect_close(s, count, plused, added, s->tolerance, "add");
    expect_close(s, count, fulls, filled, 0, "fill");
    expect_close(s, cols, summed, sums, s->tolerance, "column sums");
    end_matrix(s, &from);
    drop_array(s, totals);
    void *all[] = {x, y, sums, added, filled, none, copied, plused, fulls, summed};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
}

static void check_gathered_rows(subject *s, int64_t rows, int64_t cols)
{
    const int64_t wanted_rows = rows ? 2 * rows + 1 : 0;
    double *x = random_numbers(s, rows * cols), *wanted = numbers(wanted_rows * cols);
    int32_t *place = test_zeros((size_t)wanted_rows + 1, sizeof *place);
    for (int64_t i = 0; i < wanted_rows; i++) {
        place[i] = (int32_t)test_below(&s->random, rows);
        memcpy(wanted + i * cols, x + place[i] * cols, (size_t)cols * sizeof *x);
    }
    sp_dense from = put_matrix(s, rows, cols, x), to = new_matrix(s, wanted_rows, cols);
    void *places = put(s, wanted_rows, sizeof *place, place);
    ck_ok(s->context, s->back->gather_rows(s->engine, &from, places, &to));
    double *is = take_matrix(s, &to);
    expect_close(s, wanted_rows * cols, is, wanted, 0, "gathered rows");
    end_matrix(s, &from);
    drop_array(s, places);
    free_all(x, wanted, place, is);
}

static void movement(subject *s)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        check_movement(s, shapes[shape][0], shapes[shape][1]);
        check_gathered_rows(s, shapes[shape][0], shapes[shape][1]);
    }
}

TEST(copies_adds_fills_sums_and_gathers) { on_subjects(_i, movement); }

/* f32 sums of 300,000 equal numbers: one chain of additions would be wrong in the third digit. */
TEST(sums_of_many_rows_keep_their_digits)
{
    enum { ROWS = 300000 };
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    double *x = numbers(2 * ROWS), none[2] = {0};
    for (int64_t k = 0; k < 2 * ROWS; k++) x[k] = (double)(k % 2 ? 0.1f : 1e3f);
    sp_dense from = put_matrix(&s, ROWS, 2, x);
    void *totals = put_numbers(&s, 2, none);
    ck_ok(s.context, s.back->column_sums(s.engine, &from, totals));
    double *is = take_numbers(&s, 2, totals);
    ck_assert_double_eq_tol(is[0], 3e8, 3e8 * 1e-7);
    ck_assert_double_eq_tol(is[1], ROWS * (double)0.1f, 3e4 * 1e-7);
    end_matrix(&s, &from);
    drop_array(&s, totals);
    free_all(x, is);
    free_subject(&s);
}

static const test_entry tests[] = {
    CASE("dense", 300),
    ON_DEVICES(multiplies_as_defined),
    ON_DEVICES(large_products_keep_the_digits_of_f32),
    ON_DEVICES(refuses_products_that_blas_cannot_count),
    ON_DEVICES(activations_and_dropout_go_forward_and_back),
    ON_DEVICES(dense_layers_go_forward_and_back),
    ON_DEVICES(relu_lets_nan_through),
    ON_DEVICES(dropout_draws_by_seed_step_site_and_place),
    ON_DEVICES(copies_adds_fills_sums_and_gathers),
    ON_DEVICES(sums_of_many_rows_keep_their_digits),
    {0},
};

int main(void) { return test_run("gnn dense", tests, half_tests, losses_tests, attention_tests, normal_tests); }
