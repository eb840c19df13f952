/* The dense operations of gnn on every device: each against an obvious loop in f64, over shapes with and without
 * rows, over strides, types and alignments; random numbers, captured work, engines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gnn/internal.h"
#include "support.h"

/* ---- subjects ------------------------------------------------------------------------------------------ */

/* What an operation runs on: a device, a type, and how matrices lie in memory. */
typedef struct subject {
    sp_context *context;
    gnn_engine *engine;
    const gnn_backend *back;
    sp_dense_type type;
    int64_t padding, offset; /* numbers between rows, and before the first */
    double tolerance;        /* of a sum of a few dozen numbers about 1 */
    test_random random;
    char name[96];
} subject;

enum { LAYOUTS = 4, SEED = 20 };

static subject make_subject(int device, sp_dense_type type, int layout, int threads)
{
    static const int64_t padding[LAYOUTS] = {0, 3, 4, 0}, offset[LAYOUTS] = {0, 0, 0, 1};
    subject s = {.context = test_context(device, threads), .type = type};
    ck_ok(s.context, gnn_engine_create(s.context, 17, &s.engine));
    s.back = s.engine->backend;
    s.padding = padding[layout];
    s.offset = offset[layout];
    s.tolerance = type == SP_DENSE_F32 ? 2e-5 : 1e-12;
    s.random = test_seed(SEED + (uint64_t)layout);
    snprintf(s.name, sizeof s.name, "%s, %s, layout %d, seed %d", sp_context_device(s.context),
             type == SP_DENSE_F32 ? "f32" : "f64", layout, SEED + layout);
    return s;
}

static void free_subject(subject *s)
{
    gnn_engine_free(s->engine);
    sp_context_destroy(s->context);
}

/* In brief the first layout, which is aligned, and the last, which is not. */
static int layout_step(void) { return test_is_brief() ? LAYOUTS - 1 : 1; }

/* Runs `body` with every type and layout. */
static void on_subjects(int device, void (*body)(subject *))
{
    for (int layout = 0; layout < LAYOUTS; layout += layout_step())
        for (int type = 0; type < 2; type++) {
            subject s = make_subject(device, type ? SP_DENSE_F64 : SP_DENSE_F32, layout, 0);
            body(&s);
            free_subject(&s);
        }
}

static size_t size_of(const subject *s) { return s->type == SP_DENSE_F32 ? 4 : 8; }

static double *numbers(int64_t count)
{
    double *made = calloc((size_t)count + 1, sizeof *made);
    ck_assert_ptr_nonnull(made);
    return made;
}

/* In (-1, 1), rounded to the type. */
static double *random_numbers(subject *s, int64_t count)
{
    double *made = numbers(count);
    for (int64_t k = 0; k < count; k++) {
        made[k] = 2 * test_unit(&s->random) - 1;
        if (s->type == SP_DENSE_F32) made[k] = (double)(float)made[k];
    }
    return made;
}

/* ---- arrays and matrices in the engine's space ----------------------------------------------------------- */

static void *put(const subject *s, int64_t count, size_t size, const void *from)
{
    void *array;
    ck_ok(s->context, sp_array_create(s->context, count, size, s->engine->space, &array));
    ck_ok(s->context, sp_array_copy(s->context, count, size, array, s->engine->space, from, SP_HOST));
    return array;
}

static void take(const subject *s, int64_t count, size_t size, const void *array, void *to)
{
    ck_ok(s->context, s->back->wait(s->engine));
    ck_ok(s->context, sp_array_copy(s->context, count, size, to, SP_HOST, array, s->engine->space));
}

static void drop_array(const subject *s, void *array) { sp_array_free(s->context, s->engine->space, array); }

/* Numbers as an array of the subject's type. */
static void *put_numbers(const subject *s, int64_t count, const double *from)
{
    char *host = malloc((size_t)count * 8 + 8);
    ck_assert_ptr_nonnull(host);
    for (int64_t k = 0; k < count; k++)
        if (s->type == SP_DENSE_F32) ((float *)(void *)host)[k] = (float)from[k];
        else ((double *)(void *)host)[k] = from[k];
    void *array = put(s, count, size_of(s), host);
    free(host);
    return array;
}

static double *take_numbers(const subject *s, int64_t count, const void *array)
{
    double *made = numbers(count);
    take(s, count, size_of(s), array, made);
    if (s->type == SP_DENSE_F32)
        for (int64_t k = count - 1; k >= 0; k--) {
            float one;
            memcpy(&one, (const char *)made + 4 * k, sizeof one);
            made[k] = (double)one;
        }
    return made;
}

static const double UNTOUCHED = 12345;

/* A matrix in the subject's layout; what lies between its rows is UNTOUCHED. */
static sp_dense put_matrix(const subject *s, int64_t rows, int64_t cols, const double *from)
{
    const int64_t stride = cols + s->padding, count = s->offset + rows * stride;
    double *all = numbers(count);
    for (int64_t k = 0; k < count; k++) all[k] = UNTOUCHED;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) all[s->offset + i * stride + j] = from[i * cols + j];
    char *array = put_numbers(s, count, all);
    free(all);
    return (sp_dense){rows, cols, stride, array + (size_t)s->offset * size_of(s), s->type, s->engine->space};
}

/* One whose numbers are not read before they are written. */
static sp_dense new_matrix(const subject *s, int64_t rows, int64_t cols)
{
    double *none = numbers(rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) none[k] = NAN;
    const sp_dense made = put_matrix(s, rows, cols, none);
    free(none);
    return made;
}

/* Ends the matrix; what lies between its rows must be as it was. */
static double *take_matrix(const subject *s, sp_dense *matrix)
{
    const int64_t count = s->offset + matrix->rows * matrix->stride;
    char *array = (char *)matrix->values - (size_t)s->offset * size_of(s);
    double *all = take_numbers(s, count, array), *made = numbers(matrix->rows * matrix->cols);
    for (int64_t k = 0; k < count; k++) {
        const int64_t place = k - s->offset, stride = matrix->stride > 0 ? matrix->stride : 1;
        const int64_t i = place / stride, j = place % stride;
        if (place >= 0 && j < matrix->cols) made[i * matrix->cols + j] = all[k];
        else
            test_expect(all[k] == UNTOUCHED, "%s: number %lld outside the matrix is %g", s->name, (long long)k,
                        all[k]);
    }
    free(all);
    drop_array(s, array);
    return made;
}

static void end_matrix(const subject *s, sp_dense *matrix) { free(take_matrix(s, matrix)); }

static void expect_close(const subject *s, int64_t count, const double *is, const double *wanted, double tolerance,
                         const char *what)
{
    for (int64_t k = 0; k < count; k++)
        test_expect(fabs(is[k] - wanted[k]) <= tolerance * (1 + fabs(wanted[k])),
                    "%s: %s: number %lld is %.17g, not %.17g", s->name, what, (long long)k, is[k], wanted[k]);
}

static const int64_t shapes[][2] = {{0, 5},   {5, 0},    {1, 1},  {7, 3},     {33, 16},    {130, 41},
                                    {65, 256}, {1000, 7}, {3, 1500}, {2100, 20}, {300, 96}};
enum { SHAPES = COUNT(shapes) };

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
        free_subject(&s);
    }
}

TEST(refuses_products_that_blas_cannot_count)
{
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    float none = 0;
    const sp_dense a = {1, (int64_t)1 << 31, (int64_t)1 << 31, &none, SP_DENSE_F32, s.engine->space};
    const sp_dense b = {(int64_t)1 << 31, 1, 1, &none, SP_DENSE_F32, s.engine->space};
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

/* What dropout multiplies number `index` with. */
static double kept(const subject *s, double rate, uint64_t site, int64_t index)
{
    return (double)gnn_unit(gnn_random(s->engine->seed, s->engine->step, site, index)) < rate ? 0 : 1 / (1 - rate);
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
    for (int64_t e = 0; e < rows * in; e++)
        x[e] = activated(how.activation, z[e]) * kept(s, how.rate, how.site, e);
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
    int32_t *place = calloc((size_t)wanted_rows + 1, sizeof *place);
    ck_assert_ptr_nonnull(place);
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

/* ---- losses -------------------------------------------------------------------------------------------- */

typedef struct loss_case {
    int64_t nodes, rows, cols; /* of the graph; of the logits */
    double *logits;
    int32_t *node, *label; /* node: NULL where rows are nodes */
    uint8_t *target, *split;
    double scale; /* of the logits */
} loss_case;

static loss_case make_loss_case(subject *s, int64_t rows, int64_t cols, bool picked, double scale)
{
    loss_case c = {.nodes = picked ? 2 * rows + 3 : rows, .rows = rows, .cols = cols, .scale = scale};
    c.logits = random_numbers(s, rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) c.logits[k] *= scale;
    c.node = picked ? calloc((size_t)rows + 1, sizeof *c.node) : NULL;
    c.label = calloc((size_t)c.nodes + 1, sizeof *c.label);
    c.target = calloc((size_t)(c.nodes * cols) + 1, 1);
    c.split = calloc((size_t)c.nodes + 1, 1);
    ck_assert(c.label && c.target && c.split && (!picked || c.node));
    for (int64_t i = 0; i < c.nodes; i++) {
        c.split[i] = (uint8_t)test_below(&s->random, GNN_SPLITS);
        c.label[i] = c.split[i] == GNN_UNUSED ? -1 : (int32_t)test_below(&s->random, cols);
        for (int64_t j = 0; j < cols; j++) c.target[i * cols + j] = (uint8_t)test_below(&s->random, 2);
    }
    for (int64_t i = 0; picked && i < rows; i++) c.node[i] = (int32_t)test_below(&s->random, c.nodes);
    return c;
}

static void free_loss_case(loss_case *c)
{
    free_all(c->logits, c->node, c->label, c->target, c->split);
}

static double log_sum(const double *x, int64_t cols)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < cols; j++) most = fmax(most, x[j]);
    for (int64_t j = 0; j < cols; j++) sum += exp(x[j] - most);
    return most + log(sum);
}

/* One row's score by the definitions, and the gradient of its loss. */
static gnn_score row_score(const loss_case *c, bool softmax, int64_t i, double *gradient)
{
    const int64_t node = c->node ? c->node[i] : i;
    const double *x = c->logits + i * c->cols, whole = log_sum(x, c->cols);
    gnn_score one = {.nodes = 1};
    int64_t best = 0;
    for (int64_t j = 0; j < c->cols; j++) {
        const double t = softmax ? (double)(j == c->label[node]) : (double)c->target[node * c->cols + j];
        const double p = softmax ? exp(x[j] - whole) : 1 / (1 + exp(-x[j]));
        gradient[j] = (p - t) / (softmax ? 1 : (double)c->cols);
        if (x[j] > x[best]) best = j;
        if (softmax) continue;
        /* log(1 + e^-z) of the logit that should be large; log1p(exp(z)) overflows where z is. */
        const double z = t != 0 ? x[j] : -x[j];
        one.loss += (z < -500 ? -z : log1p(exp(-z))) / (double)c->cols;
        one.right += t != 0 && x[j] > 0;
        one.predicted += x[j] > 0;
        one.actual += t != 0;
    }
    if (softmax) {
        one.loss = whole - x[c->label[node]];
        one.right = best == c->label[node];
    }
    return one;
}

static void add_score(gnn_score *to, gnn_score one)
{
    to->loss += one.loss;
    to->nodes += one.nodes;
    to->right += one.right;
    to->predicted += one.predicted;
    to->actual += one.actual;
}

static void expect_scores(const subject *s, const loss_case *c, const gnn_score *is, const gnn_score *wanted)
{
    for (int k = 0; k < GNN_SPLITS; k++) {
        test_expect(is[k].nodes == wanted[k].nodes && is[k].right == wanted[k].right &&
                        is[k].predicted == wanted[k].predicted && is[k].actual == wanted[k].actual,
                    "%s: split %d: %lld nodes, %lld right, %lld predicted, %lld actual, not %lld, %lld, %lld, %lld",
                    s->name, k, (long long)is[k].nodes, (long long)is[k].right, (long long)is[k].predicted,
                    (long long)is[k].actual, (long long)wanted[k].nodes, (long long)wanted[k].right,
                    (long long)wanted[k].predicted, (long long)wanted[k].actual);
        expect_close(s, 1, &is[k].loss, &wanted[k].loss, s->tolerance * (1 + c->scale), "loss");
    }
}

static void check_loss(subject *s, int64_t rows, int64_t cols, bool picked, bool softmax, double scale)
{
    loss_case c = make_loss_case(s, rows, cols, picked, scale);
    gnn_score wanted[GNN_SPLITS] = {{0}}, is[GNN_SPLITS], alone[GNN_SPLITS];
    double *gradient = numbers(rows * cols), *sum = numbers(cols), size = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) count += c.split[c.node ? c.node[i] : i] == GNN_TRAIN;
    for (int64_t i = 0; i < rows; i++) {
        const int split = c.split[c.node ? c.node[i] : i];
        if (split == GNN_UNUSED) continue;
        add_score(&wanted[split], row_score(&c, softmax, i, gradient + i * cols));
        for (int64_t j = 0; j < cols; j++)
            gradient[i * cols + j] = split == GNN_TRAIN ? gradient[i * cols + j] / (double)count : 0;
        for (int64_t j = 0; j < cols; j++) {
            sum[j] += gradient[i * cols + j];
            size += fabs(gradient[i * cols + j]);
        }
    }
    sp_dense logits = put_matrix(s, rows, cols, c.logits), dx = new_matrix(s, rows, cols);
    void *node = picked ? put(s, rows, sizeof *c.node, c.node) : NULL, *split = put(s, c.nodes, 1, c.split);
    void *label = put(s, c.nodes, sizeof *c.label, c.label), *target = put(s, c.nodes * cols, 1, c.target);
    gnn_score *scores = put(s, 2 * GNN_SPLITS, sizeof *scores, (gnn_score[2 * GNN_SPLITS]){{0}});
    void *sums = put_numbers(s, cols, sum);
    for (int k = 0; k < 2; k++) {
        gnn_score *score = scores + k * GNN_SPLITS;
        sp_dense *to = k ? NULL : &dx;
        void *to_sums = k ? NULL : sums;
        ck_ok(s->context, softmax ? s->back->softmax_loss(s->engine, &logits, NULL, node, label, split, GNN_TRAIN,
                                                          count, score, to, to_sums)
                                  : s->back->sigmoid_loss(s->engine, &logits, node, target, split, GNN_TRAIN, count,
                                                          score, to, to_sums));
    }
    take(s, GNN_SPLITS, sizeof *scores, scores, is);
    take(s, GNN_SPLITS, sizeof *scores, scores + GNN_SPLITS, alone);
    double *gradient_is = take_matrix(s, &dx), *sums_are = take_numbers(s, cols, sums);
    expect_scores(s, &c, is, wanted);
    ck_assert(memcmp(is, alone, sizeof is) == 0);
    expect_close(s, rows * cols, gradient_is, gradient, s->tolerance * fmax(1, scale / 10), "gradient of the loss");
    expect_close(s, cols, sums_are, sum, s->tolerance * fmax(1, scale / 10) * fmax(1, size), "its sums");
    end_matrix(s, &logits);
    drop_array(s, sums);
    free_all(sum, sums_are);
    void *arrays[] = {node, split, label, target, scores};
    for (size_t k = 0; k < COUNT(arrays); k++) drop_array(s, arrays[k]);
    free_all(gradient, gradient_is);
    free_loss_case(&c);
}

static void losses(subject *s)
{
    static const double scales[] = {1, 20, 2000};
    for (int shape = 0; shape < SHAPES; shape++)
        for (int k = 0; k < 3; k++)
            if (shapes[shape][1] > 0 && (!test_is_brief() || k == shape % 3))
                for (int softmax = 0; softmax < 2; softmax++)
                    check_loss(s, shapes[shape][0], shapes[shape][1], (shape + k) % 2, softmax, scales[k]);
}

TEST(losses_scores_and_gradients_are_those_of_the_formulas) { on_subjects(_i, losses); }

TEST(loss_of_nan_is_nan)
{
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    const double x[] = {1, NAN, 2, 0};
    const int32_t label[] = {1, 0};
    const uint8_t split[] = {GNN_TRAIN, GNN_TEST}, target[] = {1, 0, 0, 1};
    gnn_score *scores = put(&s, GNN_SPLITS, sizeof *scores, (gnn_score[GNN_SPLITS]){{0}}), is[GNN_SPLITS];
    sp_dense logits = put_matrix(&s, 2, 2, x);
    void *labels = put(&s, 2, sizeof *label, label), *splits = put(&s, 2, 1, split), *targets = put(&s, 4, 1, target);
    ck_ok(s.context, s.back->softmax_loss(s.engine, &logits, NULL, NULL, labels, splits, GNN_TRAIN, 1, scores, NULL,
                                          NULL));
    take(&s, GNN_SPLITS, sizeof *scores, scores, is);
    ck_assert(isnan(is[GNN_TRAIN].loss) && isfinite(is[GNN_TEST].loss));
    ck_ok(s.context, s.back->sigmoid_loss(s.engine, &logits, NULL, targets, splits, GNN_TRAIN, 1, scores, NULL,
                                          NULL));
    take(&s, GNN_SPLITS, sizeof *scores, scores, is);
    ck_assert(isnan(is[GNN_TRAIN].loss) && isfinite(is[GNN_TEST].loss));
    end_matrix(&s, &logits);
    drop_array(&s, labels);
    drop_array(&s, splits);
    drop_array(&s, targets);
    drop_array(&s, scores);
    free_subject(&s);
}

static void check_probabilities(subject *s, int64_t rows, int64_t cols, bool softmax, double scale)
{
    double *x = random_numbers(s, rows * cols), *wanted = numbers(rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) x[k] *= scale;
    for (int64_t i = 0; i < rows; i++) {
        const double whole = log_sum(x + i * cols, cols);
        for (int64_t k = i * cols; k < (i + 1) * cols; k++)
            wanted[k] = softmax ? exp(x[k] - whole) : 1 / (1 + exp(-x[k]));
    }
    sp_dense from = put_matrix(s, rows, cols, x), to = new_matrix(s, rows, cols);
    ck_ok(s->context, s->back->probabilities(s->engine, &from, softmax, &to));
    ck_ok(s->context, s->back->probabilities(s->engine, &from, softmax, &from));
    double *is = take_matrix(s, &to), *in_place = take_matrix(s, &from);
    expect_close(s, rows * cols, is, wanted, s->tolerance * (1 + scale), "probabilities");
    expect_close(s, rows * cols, in_place, is, 0, "probabilities in place");
    free_all(x, wanted, is, in_place);
}

static void probabilities(subject *s)
{
    for (int shape = 0; shape < SHAPES; shape++)
        for (int softmax = 0; softmax < 2; softmax++) {
            check_probabilities(s, shapes[shape][0], shapes[shape][1], softmax, 3);
            check_probabilities(s, shapes[shape][0], shapes[shape][1], softmax, 300);
        }
}

TEST(probabilities_are_those_of_the_formulas) { on_subjects(_i, probabilities); }

/* ---- optimizers ---------------------------------------------------------------------------------------- */

/* One step of the papers' recurrences: Kingma and Ba's Algorithm 1, Loshchilov and Hutter's Algorithm 2, momentum. */
static void textbook_step(const gnn_optimizer_options *how, gnn_range decay, int64_t count, double rate, int64_t t,
                          double *w, const double *gradient, double *m, double *v)
{
    for (int64_t k = 0; k < count; k++) {
        const double lambda = k >= decay.begin && k < decay.end ? how->decay : 0, before = w[k];
        const double g = gradient[k] + (how->method == GNN_ADAMW ? 0 : lambda * before);
        if (how->method == GNN_SGD) {
            m[k] = how->beta1 * m[k] + g;
            w[k] = before - rate * m[k];
            continue;
        }
        m[k] = how->beta1 * m[k] + (1 - how->beta1) * g;
        v[k] = how->beta2 * v[k] + (1 - how->beta2) * g * g;
        const double m_hat = m[k] / (1 - pow(how->beta1, (double)t)), v_hat = v[k] / (1 - pow(how->beta2, (double)t));
        w[k] = before - rate * m_hat / (sqrt(v_hat) + how->epsilon);
        if (how->method == GNN_ADAMW) w[k] -= rate * lambda * before;
    }
}

static void check_optimizer(subject *s, const gnn_optimizer_options *how, gnn_range decay, int64_t count)
{
    double *w = random_numbers(s, count), *m = numbers(count), *v = numbers(count);
    void *weights = put_numbers(s, count, w), *first = put_numbers(s, count, m), *second = put_numbers(s, count, v);
    const bool no_moments = how->method == GNN_SGD && how->beta1 == 0;
    gnn_pace now = {how->rate, 0}, *pace = put(s, 1, sizeof now, &now);
    for (int64_t t = 1; t <= 4; t++) {
        double *g = random_numbers(s, count);
        void *gradients = put_numbers(s, count, g);
        if (t == 3) { /* the rate may change on the way */
            take(s, 1, sizeof now, pace, &now);
            now.rate *= 0.5;
            drop_array(s, pace);
            pace = put(s, 1, sizeof now, &now);
        }
        textbook_step(how, decay, count, now.rate, t, w, g, m, v);
        ck_ok(s->context, s->back->optimize(s->engine, how, decay, count, s->type, weights, gradients,
                                            no_moments ? NULL : first, how->method == GNN_SGD ? NULL : second, pace));
        double *is = take_numbers(s, count, weights);
        expect_close(s, count, is, w, s->tolerance, "weights");
        take(s, 1, sizeof now, pace, &now);
        ck_assert_int_eq(now.steps, t);
        drop_array(s, gradients);
        free_all(g, is);
    }
    drop_array(s, weights);
    drop_array(s, first);
    drop_array(s, second);
    drop_array(s, pace);
    free_all(w, m, v);
}

static void optimizers(subject *s)
{
    static const gnn_optimizer_options methods[] = {
        {.method = GNN_ADAM, .rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.method = GNN_ADAM, .rate = 0.02, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-8, .decay = 5e-2},
        {.method = GNN_ADAMW, .rate = 0.02, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.1},
        {.method = GNN_SGD, .rate = 0.1},
        {.method = GNN_SGD, .rate = 0.1, .beta1 = 0.9, .decay = 1e-2}};
    for (size_t k = 0; k < COUNT(methods); k++) {
        check_optimizer(s, &methods[k], (gnn_range){0, 10007}, 10007);
        check_optimizer(s, &methods[k], (gnn_range){3, 70}, 131);
        check_optimizer(s, &methods[k], (gnn_range){0, 0}, 5);
        check_optimizer(s, &methods[k], (gnn_range){0, 0}, 0);
    }
}

TEST(optimizers_follow_the_recurrences) { on_subjects(_i, optimizers); }

/* ---- attention ----------------------------------------------------------------------------------------- */

static void check_heads(subject *s, int64_t nodes, int heads, int64_t width)
{
    const int64_t cols = heads * width;
    double *h = random_numbers(s, nodes * cols), *vector = random_numbers(s, cols);
    double *ds = random_numbers(s, nodes * heads), *dh = random_numbers(s, nodes * cols);
    double *scores = numbers(nodes * heads), *dh_wanted = numbers(nodes * cols), *dv_wanted = numbers(cols);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < cols; j++) {
            scores[i * heads + j / width] += h[i * cols + j] * vector[j];
            dh_wanted[i * cols + j] = dh[i * cols + j] + ds[i * heads + j / width] * vector[j];
            dv_wanted[j] += ds[i * heads + j / width] * h[i * cols + j];
        }
    sp_dense x = put_matrix(s, nodes, cols, h), out = new_matrix(s, nodes, heads);
    sp_dense gradient = put_matrix(s, nodes, heads, ds), dx = put_matrix(s, nodes, cols, dh);
    void *v = put_numbers(s, cols, vector), *dv = put_numbers(s, cols, vector);
    ck_ok(s->context, s->back->head_scores(s->engine, &x, heads, v, &out));
    ck_ok(s->context, s->back->head_scores_backward(s->engine, &x, heads, v, &gradient, &dx, dv));
    double *out_is = take_matrix(s, &out), *dh_is = take_matrix(s, &dx), *dv_is = take_numbers(s, cols, dv);
    expect_close(s, nodes * heads, out_is, scores, s->tolerance * 4, "head scores");
    expect_close(s, nodes * cols, dh_is, dh_wanted, s->tolerance, "their gradient by H");
    expect_close(s, cols, dv_is, dv_wanted, s->tolerance * 4, "their gradient by the vector");
    end_matrix(s, &x);
    end_matrix(s, &gradient);
    drop_array(s, v);
    drop_array(s, dv);
    void *all[] = {h, vector, ds, dh, scores, dh_wanted, dv_wanted, out_is, dh_is, dv_is};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
}

static void heads(subject *s)
{
    check_heads(s, 0, 2, 3);
    check_heads(s, 1, 1, 1);
    check_heads(s, 70, 8, 8);
    check_heads(s, 3000, 3, 5);
    check_heads(s, 257, 4, 64);
    check_heads(s, 40, 1, 300);
}

TEST(head_scores_go_forward_and_back) { on_subjects(_i, heads); }

/* A pattern with its transpose and where the transpose's entries stand in it, in the engine's space as well. */
typedef struct edges {
    sp_csr a, transpose, a_there, transpose_there;
    int64_t *places, *places_there;
} edges;

static edges make_edges(subject *s, int64_t rows, int64_t cols, double density, bool hub)
{
    edges e;
    double *dense = numbers(rows * cols);
    for (int64_t k = 0; k < rows * cols; k++)
        dense[k] = test_unit(&s->random) < density || (hub && (k / cols == rows / 2 || k % cols == cols / 3));
    sp_value_type type = s->type == SP_DENSE_F32 ? SP_F32 : SP_F64;
    e.a = test_from_dense(s->context, rows, cols, dense, type);
    ck_ok(s->context, sp_csr_create(s->context, cols, rows, e.a.nnz, type, SP_HOST, &e.transpose));
    e.places = calloc((size_t)e.a.nnz + 1, sizeof *e.places);
    ck_assert_ptr_nonnull(e.places);
    int64_t t = 0;
    for (int64_t j = 0; j < cols; j++) {
        e.transpose.row_offsets[j] = t;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = e.a.row_offsets[i]; dense[i * cols + j] != 0 && k < e.a.row_offsets[i + 1]; k++)
                if (e.a.col_indices[k] == j) {
                    e.transpose.col_indices[t] = (int32_t)i;
                    e.places[t++] = k;
                }
    }
    e.transpose.row_offsets[cols] = t;
    for (int64_t k = 0; k < t; k++) {
        if (type == SP_F32) ((float *)e.transpose.values)[k] = 1;
        else ((double *)e.transpose.values)[k] = 1;
    }
    free(dense);
    ck_ok(s->context, sp_csr_copy(s->context, &e.a, s->engine->space, &e.a_there));
    ck_ok(s->context, sp_csr_copy(s->context, &e.transpose, s->engine->space, &e.transpose_there));
    e.places_there = put(s, e.a.nnz, sizeof *e.places, e.places);
    return e;
}

static void free_edges(subject *s, edges *e)
{
    test_free(s->context, &e->a, &e->transpose, &e->a_there, &e->transpose_there);
    drop_array(s, e->places_there);
    free(e->places);
}

enum { HEADS = 3, HEAD = 1 };

static const double SLOPE = 0.2;

/* Scores of the edges, and Σ weight · score, whose gradient is `weight` taken back through them. */
static double edge_sum(const edges *e, const double *left, const double *right, const double *weight, double *scores)
{
    double sum = 0;
    for (int64_t i = 0; i < e->a.rows; i++)
        for (int64_t k = e->a.row_offsets[i]; k < e->a.row_offsets[i + 1]; k++) {
            const double x = left[i * HEADS + HEAD] + right[e->a.col_indices[k] * HEADS + HEAD];
            scores[k] = x > 0 ? x : SLOPE * x;
            sum += weight[k] * scores[k];
        }
    return sum;
}

/* Central differences of edge_sum by `moved`, which is `left` or `right`; the sum is linear but for its kinks. */
static double *edge_slopes(const edges *e, double *left, double *right, const double *weight, double *moved,
                           int64_t nodes)
{
    const double step = 1e-6;
    double *slopes = numbers(nodes), *scores = numbers(e->a.nnz);
    for (int64_t i = 0; i < nodes; i++) {
        double *x = moved + i * HEADS + HEAD;
        const double at = *x;
        *x = at + step;
        const double above = edge_sum(e, left, right, weight, scores);
        *x = at - step;
        slopes[i] = (above - edge_sum(e, left, right, weight, scores)) / (2 * step);
        *x = at;
    }
    free(scores);
    return slopes;
}

static void expect_head(const subject *s, int64_t nodes, const double *is, const double *wanted, double tolerance,
                        const char *what)
{
    for (int64_t i = 0; i < nodes; i++) {
        expect_close(s, 1, is + i * HEADS + HEAD, wanted + i, tolerance, what);
        for (int h = 0; h < HEADS; h++)
            test_expect(h == HEAD || isnan(is[i * HEADS + h]), "%s: %s touches head %d", s->name, what, h);
    }
}

static void check_edges(subject *s, int64_t rows, int64_t cols, double density, bool hub)
{
    edges e = make_edges(s, rows, cols, density, hub);
    double *left = random_numbers(s, rows * HEADS), *right = random_numbers(s, cols * HEADS);
    double *weight = random_numbers(s, e.a.nnz), *wanted = numbers(e.a.nnz);
    sp_dense l = put_matrix(s, rows, HEADS, left), r = put_matrix(s, cols, HEADS, right);
    sp_dense dl = new_matrix(s, rows, HEADS), dr = new_matrix(s, cols, HEADS);
    void *values = put_numbers(s, e.a.nnz, weight), *work = put_numbers(s, e.a.nnz, weight);
    edge_sum(&e, left, right, weight, wanted);
    ck_ok(s->context, s->back->edge_scores(s->engine, &e.a_there, &l, &r, HEAD, SLOPE, values));
    ck_ok(s->context, s->back->edge_scores_backward(s->engine, &e.a_there, &e.transpose_there, e.places_there, &l, &r,
                                                    HEAD, SLOPE, work, &dl, &dr));
    double *scores = take_numbers(s, e.a.nnz, values), *dl_is = take_matrix(s, &dl), *dr_is = take_matrix(s, &dr);
    double *dl_wanted = edge_slopes(&e, left, right, weight, left, rows);
    double *dr_wanted = edge_slopes(&e, left, right, weight, right, cols);
    expect_close(s, e.a.nnz, scores, wanted, s->tolerance, "edge scores");
    const double tolerance = s->type == SP_DENSE_F32 ? 1e-4 : 1e-7;
    expect_head(s, rows, dl_is, dl_wanted, tolerance, "gradient by left");
    expect_head(s, cols, dr_is, dr_wanted, tolerance, "gradient by right");
    end_matrix(s, &l);
    end_matrix(s, &r);
    drop_array(s, values);
    drop_array(s, work);
    free_edges(s, &e);
    void *all[] = {left, right, weight, wanted, scores, dl_is, dr_is, dl_wanted, dr_wanted};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
}

static void edge_cases(subject *s)
{
    check_edges(s, 0, 4, 0.5, false);
    check_edges(s, 4, 6, 0, false);
    check_edges(s, 30, 45, 0.1, false);
    check_edges(s, 70, 60, 0.6, false);
    check_edges(s, 40, 700, 0.02, true);
}

TEST(edge_scores_go_forward_and_back) { on_subjects(_i, edge_cases); }

/* A row and a column of 6,000 entries: beyond what a few lanes take alone. */
TEST(edge_gradients_of_hubs_are_complete)
{
    enum { NODES = 6000 };
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    double *ones = numbers(HEADS * NODES), *weight = numbers(2 * NODES);
    int64_t *offsets = calloc(NODES + 1, sizeof *offsets), *places = calloc(2 * NODES, sizeof *places);
    int32_t *cols = calloc(2 * NODES, sizeof *cols);
    ck_assert(offsets && places && cols);
    int64_t nnz = 0;
    for (int64_t i = 0; i < NODES; i++) { /* row 0 is full, all other rows hold column 0 alone: A = Aᵀ */
        offsets[i] = nnz;
        for (int64_t j = 0; j < (i ? 1 : NODES); j++) cols[nnz++] = (int32_t)j;
    }
    offsets[NODES] = nnz;
    for (int64_t k = 0; k < nnz; k++) places[k] = k < NODES ? (k ? NODES - 1 + k : 0) : k - NODES + 1;
    for (int64_t k = 0; k < HEADS * NODES; k++) ones[k] = 1;
    for (int64_t k = 0; k < nnz; k++) weight[k] = 0.5;
    sp_csr a = {.rows = NODES, .cols = NODES, .nnz = nnz, .space = s.engine->space};
    a.row_offsets = put(&s, NODES + 1, sizeof *offsets, offsets);
    a.col_indices = put(&s, nnz, sizeof *cols, cols);
    int64_t *places_there = put(&s, nnz, sizeof *places, places);
    sp_dense l = put_matrix(&s, NODES, HEADS, ones);
    sp_dense dl = new_matrix(&s, NODES, HEADS), dr = new_matrix(&s, NODES, HEADS);
    void *work = put_numbers(&s, nnz, weight);
    ck_ok(s.context,
          s.back->edge_scores_backward(s.engine, &a, &a, places_there, &l, &l, HEAD, SLOPE, work, &dl, &dr));
    double *left = take_matrix(&s, &dl), *right = take_matrix(&s, &dr);
    for (int64_t i = 0; i < NODES; i++) {
        const double wanted = i ? 0.5 : 0.5 * NODES, row = left[i * HEADS + HEAD], column = right[i * HEADS + HEAD];
        test_expect(row == wanted, "row %lld sums to %g", (long long)i, row);
        test_expect(column == wanted, "column %lld sums to %g", (long long)i, column);
    }
    end_matrix(&s, &l);
    drop_array(&s, work);
    drop_array(&s, places_there);
    sp_csr_free(s.context, &a);
    void *all[] = {ones, weight, offsets, places, cols, left, right};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
    free_subject(&s);
}

static void gathers(subject *s)
{
    static const int64_t counts[] = {0, 1, 5000};
    for (int c = 0; c < 3; c++) {
        const int64_t count = counts[c];
        double *from = random_numbers(s, 300), *wanted = numbers(count);
        int64_t *place = calloc((size_t)count + 1, sizeof *place);
        ck_assert_ptr_nonnull(place);
        for (int64_t t = 0; t < count; t++) wanted[t] = from[place[t] = test_below(&s->random, 300)];
        void *source = put_numbers(s, 300, from), *places = put(s, count, sizeof *place, place);
        void *to = put_numbers(s, count, wanted);
        ck_ok(s->context, s->back->gather(s->engine, places, count, source, s->type, to));
        double *is = take_numbers(s, count, to);
        expect_close(s, count, is, wanted, 0, "gathered");
        drop_array(s, source);
        drop_array(s, places);
        drop_array(s, to);
        free_all(from, wanted, place, is);
    }
}

TEST(gathers_numbers) { on_subjects(_i, gathers); }

/* ---- maximum ------------------------------------------------------------------------------------------- */

static void check_maximum(subject *s, int64_t rows, int64_t nodes, int64_t cols, double density, bool hub)
{
    edges e = make_edges(s, rows, nodes, density, hub);
    double *dy = random_numbers(s, rows * cols), *wanted = numbers(nodes * cols);
    int64_t *argument = calloc((size_t)(rows * cols) + 1, sizeof *argument);
    ck_assert_ptr_nonnull(argument);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++) {
            const int64_t begin = e.a.row_offsets[i], count = e.a.row_offsets[i + 1] - begin;
            argument[i * cols + k] = count ? begin + test_below(&s->random, count) : -1;
            if (count) wanted[e.a.col_indices[argument[i * cols + k]] * cols + k] += dy[i * cols + k];
        }
    sp_dense gradient = put_matrix(s, rows, cols, dy), dx = new_matrix(s, nodes, cols);
    void *arguments = put(s, rows * cols, sizeof *argument, argument);
    ck_ok(s->context,
          s->back->maximum_backward(s->engine, &e.transpose_there, e.places_there, arguments, &gradient, &dx));
    double *is = take_matrix(s, &dx);
    expect_close(s, nodes * cols, is, wanted, s->tolerance, "gradient of the maximum");
    end_matrix(s, &gradient);
    drop_array(s, arguments);
    free_edges(s, &e);
    free_all(dy, wanted, argument, is);
}

static void maxima(subject *s)
{
    check_maximum(s, 0, 3, 4, 0.5, false);
    check_maximum(s, 5, 3, 0, 0.5, false);
    check_maximum(s, 50, 60, 7, 0.1, false);
    check_maximum(s, 60, 50, 64, 0.3, false);
    check_maximum(s, 900, 20, 33, 0.02, true);
}

TEST(maxima_give_gradients_to_where_they_came_from) { on_subjects(_i, maxima); }

/* ---- products where MaxK kept ------------------------------------------------------------------------ */

static void check_kept(subject *s, int64_t rows, int64_t cols, int64_t k, int64_t inner)
{
    double *left = random_numbers(s, rows * inner), *right = random_numbers(s, cols * inner);
    double *wanted = numbers(rows * k), *zeros = numbers(rows * k);
    uint8_t *narrow = calloc((size_t)(rows * k) + 1, 1);
    uint16_t *wide = calloc((size_t)(rows * k) + 1, sizeof *wide);
    ck_assert(narrow && wide);
    for (int64_t e = 0; e < rows * k; e++) {
        const int64_t column = test_below(&s->random, cols);
        narrow[e] = (uint8_t)column;
        wide[e] = (uint16_t)column;
        for (int64_t t = 0; t < inner; t++) wanted[e] += left[e / k * inner + t] * right[column * inner + t];
    }
    sp_dense s_there = put_matrix(s, rows, inner, left), w_there = put_matrix(s, cols, inner, right);
    sp_cbsr kept = {.rows = rows, .cols = cols, .k = k, .type = s->type, .space = s->engine->space};
    kept.columns = cols <= 256 ? put(s, rows * k, 1, narrow) : put(s, rows * k, sizeof *wide, wide);
    kept.values = put_numbers(s, rows * k, zeros);
    ck_ok(s->context, s->back->multiply_kept(s->engine, &s_there, &w_there, &kept));
    double *is = take_numbers(s, rows * k, kept.values);
    expect_close(s, rows * k, is, wanted, s->tolerance, "product where kept");
    end_matrix(s, &s_there);
    end_matrix(s, &w_there);
    drop_array(s, kept.columns);
    drop_array(s, kept.values);
    free_all(left, right, wanted, zeros, narrow, wide, is);
}

static void kept_products(subject *s)
{
    check_kept(s, 0, 5, 2, 3);
    check_kept(s, 70, 256, 7, 7);
    check_kept(s, 300, 64, 16, 16);
    check_kept(s, 33, 1000, 20, 41);
    check_kept(s, 9, 65536, 1, 2);
}

TEST(products_where_maxk_kept_are_those_of_the_formula) { on_subjects(_i, kept_products); }

/* ---- repeatability, capture, life ------------------------------------------------------------------------ */

/* The bits of a product with a long inner dimension, of column sums and of losses, with so many threads. */
static void repeatable_bits(int device, int threads, double *to)
{
    enum { ROWS = 9001, COLS = 16 };
    subject s = make_subject(device, SP_DENSE_F32, 0, threads);
    loss_case c = make_loss_case(&s, ROWS, COLS, false, 5);
    double none[COLS] = {0};
    sp_dense x = put_matrix(&s, ROWS, COLS, c.logits), product = new_matrix(&s, COLS, COLS);
    void *sums = put_numbers(&s, COLS, none), *label = put(&s, ROWS, 4, c.label), *split = put(&s, ROWS, 1, c.split);
    gnn_score *scores = put(&s, GNN_SPLITS, sizeof *scores, (gnn_score[GNN_SPLITS]){{0}}), is[GNN_SPLITS];
    ck_ok(s.context, s.back->multiply(s.engine, true, false, 1, &x, &x, 0, &product));
    ck_ok(s.context, s.back->column_sums(s.engine, &x, sums));
    ck_ok(s.context, s.back->softmax_loss(s.engine, &x, NULL, NULL, label, split, GNN_TRAIN, 1, scores, NULL, NULL));
    take(&s, GNN_SPLITS, sizeof *scores, scores, is);
    double *first = take_matrix(&s, &product), *second = take_numbers(&s, COLS, sums);
    memcpy(to, first, COLS * COLS * sizeof *to);
    memcpy(to + COLS * COLS, second, COLS * sizeof *to);
    for (int k = 0; k < GNN_SPLITS; k++) to[COLS * COLS + COLS + k] = is[k].loss;
    free_all(first, second);
    end_matrix(&s, &x);
    drop_array(&s, sums);
    drop_array(&s, label);
    drop_array(&s, split);
    drop_array(&s, scores);
    free_loss_case(&c);
    free_subject(&s);
}

enum { WAY_ROWS = 9001, WAY_IN = 24, WAY_OUT = 6, WAY_BITS = WAY_ROWS * WAY_IN + 2 * WAY_IN * WAY_OUT + WAY_IN };

/* dX, both dW and the sums of the way back through a dense layer, with so many threads. */
static void way_back_bits(int device, int threads, double *to)
{
    subject s = make_subject(device, SP_DENSE_F32, 0, threads);
    const gnn_pointwise how = {GNN_RELU, 0.4, 3};
    double *number[] = {random_numbers(&s, WAY_ROWS * WAY_IN), random_numbers(&s, WAY_ROWS * WAY_OUT),
                        random_numbers(&s, WAY_IN * WAY_OUT)};
    sp_dense x = put_matrix(&s, WAY_ROWS, WAY_IN, number[0]), g = put_matrix(&s, WAY_ROWS, WAY_OUT, number[1]);
    sp_dense w = put_matrix(&s, WAY_IN, WAY_OUT, number[2]), fewer = g;
    sp_dense made[] = {new_matrix(&s, WAY_ROWS, WAY_IN), new_matrix(&s, WAY_IN, WAY_OUT),
                       new_matrix(&s, WAY_IN, WAY_OUT), new_matrix(&s, 1, WAY_IN)};
    const gnn_product_gradient product[] = {{&g, &w, &made[1]}, {&fewer, &w, &made[2]}};
    fewer.rows = WAY_ROWS / 2;
    ck_ok(s.context, s.back->dense_backward(s.engine, 2, product, &how, &x, &made[0], made[3].values));
    for (int k = 0; k < 4; k++) {
        const int64_t count = made[k].rows * made[k].cols;
        double *is = take_matrix(&s, &made[k]);
        memcpy(to, is, (size_t)count * sizeof *to);
        to += count;
        free(is);
    }
    end_matrix(&s, &x);
    end_matrix(&s, &g);
    end_matrix(&s, &w);
    for (int k = 0; k < 3; k++) free(number[k]);
    free_subject(&s);
}

TEST(sums_have_the_same_bits_whatever_the_threads)
{
    enum { COUNT = 16 * 16 + 16 + GNN_SPLITS };
    double first[COUNT], again[COUNT], *way = numbers(WAY_BITS), *way_again = numbers(WAY_BITS);
    repeatable_bits(_i, 1, first);
    way_back_bits(_i, 1, way);
    for (int threads = 1; threads <= 3; threads++) {
        repeatable_bits(_i, threads, again);
        ck_assert_msg(memcmp(first, again, sizeof first) == 0, "%d threads give other bits", threads);
        way_back_bits(_i, threads, way_again);
        ck_assert_msg(memcmp(way, way_again, WAY_BITS * sizeof *way) == 0,
                      "%d threads give other bits on the way back", threads);
    }
    free_all(way, way_again);
}

/* Dropout of ones, a product and a step, recorded once: each replay draws the masks of its own step. */
TEST(captured_work_runs_at_each_replay_with_its_own_step)
{
    enum { COUNT = 1000 };
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    double *ones = numbers(COUNT);
    for (int64_t k = 0; k < COUNT; k++) ones[k] = 1;
    sp_dense x = put_matrix(&s, 40, 25, ones), y = new_matrix(&s, 40, 25), product = new_matrix(&s, 25, 25);
    const gnn_pointwise how = {GNN_LINEAR, 0.5, 9};
    void *graph = NULL;
    ck_ok(s.context, s.back->set_step(s.engine, 10));
    ck_assert((s.back->capture_begin != NULL) == (_i == 1));
    if (s.back->capture_begin) {
        ck_ok(s.context, s.back->capture_begin(s.engine));
        ck_ok(s.context, s.back->forward(s.engine, &how, &x, NULL, &y));
        ck_ok(s.context, s.back->multiply(s.engine, true, false, 1, &y, &y, 0, &product));
        ck_ok(s.context, s.back->advance(s.engine));
        ck_ok(s.context, s.back->capture_end(s.engine, &graph));
        ck_assert_int_eq(s.engine->step, 10);
        for (int64_t step = 10; step < 13; step++) {
            ck_ok(s.context, s.back->replay(s.engine, graph));
            ck_ok(s.context, s.back->wait(s.engine));
            ck_assert_int_eq(s.engine->step, step + 1);
            double *is = take_numbers(&s, COUNT, y.values), *squares = take_numbers(&s, 625, product.values);
            double first = 0;
            s.engine->step = step; /* for kept() */
            for (int64_t k = 0; k < COUNT; k++)
                test_expect(is[k] == kept(&s, 0.5, 9, k), "step %lld, number %lld", (long long)step, (long long)k);
            s.engine->step = step + 1;
            for (int64_t i = 0; i < 40; i++) first += is[i * 25] * is[i * 25];
            ck_assert_double_eq_tol(squares[0], first, 1e-3);
            free_all(is, squares);
        }
        s.back->forget(s.engine, graph);
    }
    end_matrix(&s, &x);
    end_matrix(&s, &y);
    end_matrix(&s, &product);
    free(ones);
    free_subject(&s);
}

TEST(engines_free_what_they_took_when_memory_runs_out)
{
    bool made = false;
    for (int64_t fail_at = 0; !made; fail_at++) {
        test_heap heap = {.fail_at = -1};
        const sp_allocator allocator = test_allocator(&heap);
        sp_context *context;
        gnn_engine *engine;
        const sp_context_options options = {.device = _i ? "cuda" : "cpu", .allocator = &allocator};
        ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
        const int64_t before = heap.live_blocks;
        heap.fail_at = heap.allocations + fail_at;
        const sp_status status = gnn_engine_create(context, 1, &engine);
        made = status == SP_OK;
        ck_assert(made ? engine != NULL && gnn_engine_context(engine) == context
                       : status == SP_ERROR_HOST_MEMORY && engine == NULL);
        gnn_engine_free(engine);
        ck_assert_int_eq(heap.live_blocks, before);
        sp_context_destroy(context);
    }
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
    ON_DEVICES(losses_scores_and_gradients_are_those_of_the_formulas),
    ON_DEVICES(loss_of_nan_is_nan),
    ON_DEVICES(probabilities_are_those_of_the_formulas),
    ON_DEVICES(optimizers_follow_the_recurrences),
    ON_DEVICES(head_scores_go_forward_and_back),
    ON_DEVICES(edge_scores_go_forward_and_back),
    ON_DEVICES(edge_gradients_of_hubs_are_complete),
    ON_DEVICES(gathers_numbers),
    ON_DEVICES(maxima_give_gradients_to_where_they_came_from),
    ON_DEVICES(products_where_maxk_kept_are_those_of_the_formula),
    ON_DEVICES(sums_have_the_same_bits_whatever_the_threads),
    ON_DEVICES(captured_work_runs_at_each_replay_with_its_own_step),
    ON_DEVICES(engines_free_what_they_took_when_memory_runs_out),
    {0},
};

int main(void) { return test_run("gnn dense", tests); }
