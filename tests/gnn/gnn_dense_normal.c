/* test_gnn_dense: norms over columns and rows, and maxima of matrices, against their definitions in f64. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_dense_shared.h"

typedef struct norm_case {
    gnn_norm norm;
    bool fixed;
    int64_t rows, cols;
    double *x, *g, *scale, *shift, *running_mean, *running_variance;
    double *y, *dx, *dscale, *dshift, *next_mean, *next_variance; /* wanted */
} norm_case;

static norm_case draw_case(subject *s, gnn_norm norm, bool fixed, int64_t rows, int64_t cols)
{
    norm_case c = {.norm = norm, .fixed = fixed, .rows = rows, .cols = cols};
    double **given[] = {&c.x, &c.g}, **wanted[] = {&c.y, &c.dx};
    double **row[] = {&c.scale, &c.shift, &c.running_mean, &c.running_variance};
    for (size_t i = 0; i < COUNT(given); i++) *given[i] = random_numbers(s, rows * cols);
    for (size_t i = 0; i < COUNT(wanted); i++) *wanted[i] = numbers(rows * cols);
    for (size_t i = 0; i < COUNT(row); i++) *row[i] = random_numbers(s, cols);
    for (int64_t k = 0; k < rows * cols; k++) c.x[k] += 2; /* far from mean 0 */
    for (int64_t j = 0; j < cols; j++) c.running_variance[j] = fabs(c.running_variance[j]) + 0.5;
    c.dscale = numbers(cols);
    c.dshift = numbers(cols);
    c.next_mean = random_numbers(s, cols);
    c.next_variance = random_numbers(s, cols);
    for (int64_t j = 0; j < cols; j++) {
        c.next_mean[j] = c.running_mean[j];
        c.next_variance[j] = c.running_variance[j];
    }
    return c;
}

static void free_case(norm_case *c)
{
    free_all(c->x, c->g, c->scale, c->shift, c->running_mean, c->running_variance);
    free_all(c->y, c->dx, c->dscale, c->dshift, c->next_mean, c->next_variance);
}

/* Group g of a norm is a column or a row. */
static int64_t place_of(const norm_case *c, int64_t g, int64_t m)
{
    return c->norm == GNN_NORM_BATCH ? m * c->cols + g : g * c->cols + m;
}

static void define_group(norm_case *c, int64_t g, int64_t members)
{
    const double count = (double)members;
    double mean = 0, variance = 0, sum = 0, along = 0;
    for (int64_t m = 0; m < members; m++) mean += c->x[place_of(c, g, m)] / count;
    for (int64_t m = 0; m < members; m++) variance += pow(c->x[place_of(c, g, m)] - mean, 2) / count;
    if (c->fixed) {
        mean = c->running_mean[g];
        variance = c->running_variance[g];
    } else if (c->norm == GNN_NORM_BATCH) {
        c->next_mean[g] = 0.9 * c->running_mean[g] + 0.1 * mean;
        c->next_variance[g] = 0.9 * c->running_variance[g] + 0.1 * variance * (members > 1 ? count / (count - 1) : 1);
    }
    const double inverse = 1 / sqrt(variance + 1e-5);
    for (int64_t m = 0; m < members; m++) {
        const int64_t k = place_of(c, g, m), j = k % c->cols;
        const double normal = (c->x[k] - mean) * inverse;
        c->y[k] = normal * c->scale[j] + c->shift[j];
        c->dscale[j] += c->g[k] * normal;
        c->dshift[j] += c->g[k];
        sum += c->g[k] * c->scale[j] / count;
        along += c->g[k] * c->scale[j] * normal / count;
    }
    for (int64_t m = 0; m < members; m++) {
        const int64_t k = place_of(c, g, m);
        const double own = c->g[k] * c->scale[k % c->cols], normal = (c->x[k] - mean) * inverse;
        c->dx[k] = inverse * (own - (c->fixed ? 0 : sum + normal * along));
    }
}

enum { RESULTS = 6 };

/* y, dx, dscale, dshift and the running numbers as the back end makes them. */
static void run_case(subject *s, const norm_case *c, bool in_place, double *is[RESULTS])
{
    const int64_t rows = c->rows, cols = c->cols, groups = c->norm == GNN_NORM_BATCH ? cols : rows;
    const gnn_normal how = {c->norm, c->fixed, put_numbers(s, cols, c->scale), put_numbers(s, cols, c->shift),
                            put_numbers(s, cols, c->running_mean), put_numbers(s, cols, c->running_variance),
                            put_numbers(s, groups, c->x), put_numbers(s, groups, c->x)};
    sp_dense x = put_matrix(s, rows, cols, c->x), y = new_matrix(s, rows, cols), dy = put_matrix(s, rows, cols, c->g);
    sp_dense other = new_matrix(s, rows, cols), *dx = in_place ? &dy : &other;
    void *dscale = put_numbers(s, cols, c->scale), *dshift = put_numbers(s, cols, c->scale);
    ck_ok(s->context, s->back->normalise(s->engine, &how, &x, &y));
    ck_ok(s->context, s->back->normalise_backward(s->engine, &how, &x, &dy, dx, dscale, dshift));
    is[0] = take_matrix(s, &y);
    is[1] = take_matrix(s, dx);
    is[2] = take_numbers(s, cols, dscale);
    is[3] = take_numbers(s, cols, dshift);
    is[4] = take_numbers(s, cols, how.running_mean);
    is[5] = take_numbers(s, cols, how.running_variance);
    void *const arrays[] = {(void *)how.scale, (void *)how.shift, how.running_mean, how.running_variance,
                            how.mean,          how.inverse,       dscale,           dshift};
    for (size_t i = 0; i < COUNT(arrays); i++) drop_array(s, arrays[i]);
    end_matrix(s, &x);
    end_matrix(s, in_place ? &other : &dy);
}

static void check_norm(subject *s, gnn_norm norm, bool fixed, int64_t rows, int64_t cols, bool in_place)
{
    static const char *const names[RESULTS] = {"y", "dx", "dscale", "dshift", "mean", "variance"};
    const int64_t groups = norm == GNN_NORM_BATCH ? cols : rows, members = norm == GNN_NORM_BATCH ? rows : cols;
    const double sharp = norm == GNN_NORM_LAYER && cols < 8 ? 300 : 20; /* few numbers may lie close together */
    norm_case c = draw_case(s, norm, fixed, rows, cols);
    for (int64_t g = 0; g < groups && members > 0; g++) define_group(&c, g, members);
    const double *wanted[RESULTS] = {c.y, c.dx, c.dscale, c.dshift, c.next_mean, c.next_variance};
    double *is[RESULTS];
    run_case(s, &c, in_place, is);
    for (int i = 0; i < RESULTS; i++) {
        const double terms = i == 2 || i == 3 ? (double)rows : 0;
        char what[96];
        snprintf(what, sizeof what, "norm %d%s, %lld x %lld, %s", norm, fixed ? " fixed" : "", (long long)rows,
                 (long long)cols, names[i]);
        expect_close(s, i < 2 ? rows * cols : cols, is[i], wanted[i], s->tolerance * (1 + sqrt(terms)) * sharp, what);
        free(is[i]);
    }
    free_case(&c);
}

static void norms(subject *s)
{
    for (size_t i = 0; i < SHAPES; i++) {
        check_norm(s, GNN_NORM_BATCH, false, shapes[i][0], shapes[i][1], i % 2);
        check_norm(s, GNN_NORM_BATCH, true, shapes[i][0], shapes[i][1], i % 2 == 0);
        check_norm(s, GNN_NORM_LAYER, false, shapes[i][0], shapes[i][1], i % 2);
    }
}

TEST(normalises_as_defined) { on_subjects(_i, norms); }

/* BatchNorm1d(2) and LayerNorm(2) of PyTorch 2.15 in double precision, as they are made but for weight = [2, -0.5] and
 * bias = [0.25, 1]: y = m(x); y.backward(g); y, x.grad, weight.grad, bias.grad, running_mean, running_var. */
static void pytorch(subject *s)
{
    static const double x[] = {1, 2, 3, 5, 4, -1}, g[] = {1, -2, 0.5, 3, -1, 0.25};
    static const double wanted[2][RESULTS][6] = {
        {{-2.422603828626, 1, 0.784520765725, 0.387628074614, 2.388083062901, 1.612371925386},
         {-0.286339978941, 0.493299606561, 0.859049144376, -0.246650271064, -0.572709165435, -0.246649335497},
         {-2.271713254332, 3.368045589623},
         {0.5, 1.25},
         {0.266666666667, 0.2},
         {1.133333333333, 1.8}},
        {{-1.749960001200, 0.500009999700, -1.749990000075, 0.500002499981, 2.249998400002, 1.499999600000},
         {3.999760012e-05, -3.999760012e-05, 1.249981250e-05, -1.249981250e-05, -5.999985600e-07, 5.999985600e-07},
         {-2.499976700620, 0.750025198912},
         {0.5, 1.25},
         {0, 0},
         {1, 1}}};
    for (int norm = GNN_NORM_BATCH; norm <= GNN_NORM_LAYER; norm++) {
        norm_case c = draw_case(s, (gnn_norm)norm, false, 3, 2);
        double *is[RESULTS];
        memcpy(c.x, x, sizeof x);
        memcpy(c.g, g, sizeof g);
        memcpy(c.scale, (double[]){2, -0.5}, 2 * sizeof(double));
        memcpy(c.shift, (double[]){0.25, 1}, 2 * sizeof(double));
        memcpy(c.running_mean, (double[]){0, 0}, 2 * sizeof(double));
        memcpy(c.running_variance, (double[]){1, 1}, 2 * sizeof(double));
        run_case(s, &c, false, is);
        for (int i = 0; i < RESULTS; i++) {
            expect_close(s, i < 2 ? 6 : 2, is[i], wanted[norm - 1][i], fmax(s->tolerance, 1e-11), "PyTorch's norm");
            free(is[i]);
        }
        free_case(&c);
    }
}

TEST(norms_are_those_of_pytorch) { on_subjects(_i, pytorch); }

TEST(norms_have_the_same_bits_whatever_the_threads)
{
    enum { ROWS = 5000, COLS = 33 };
    for (int norm = GNN_NORM_BATCH; norm <= GNN_NORM_LAYER; norm++) {
        double *is[2][RESULTS];
        for (int many = 0; many < 2; many++) {
            subject s = make_subject(_i, SP_DENSE_F32, 0, many ? 3 : 1);
            norm_case c = draw_case(&s, (gnn_norm)norm, false, ROWS, COLS);
            run_case(&s, &c, false, is[many]);
            free_case(&c);
            free_subject(&s);
        }
        for (int i = 0; i < RESULTS; i++) {
            for (int64_t k = 0; k < (i < 2 ? ROWS * COLS : COLS); k++)
                test_expect(is[0][i][k] == is[1][i][k], "norm %d, result %d: number %lld", norm, i, (long long)k);
            free_all(is[0][i], is[1][i]);
        }
    }
}

/* Of three matrices with many equal numbers. */
static void maxima(subject *s)
{
    for (size_t i = 0; i < SHAPES; i++) {
        const int64_t rows = shapes[i][0], cols = shapes[i][1], count = rows * cols;
        double *from[3], *g = random_numbers(s, count), *most = numbers(count), *left = numbers(count);
        double *gradient[3];
        sp_dense x[3], to[3];
        for (int m = 0; m < 3; m++) {
            from[m] = random_numbers(s, count);
            gradient[m] = random_numbers(s, count);
            for (int64_t k = 0; k < count; k++) from[m][k] = round(2 * from[m][k]);
            x[m] = put_matrix(s, rows, cols, from[m]);
            to[m] = put_matrix(s, rows, cols, gradient[m]);
        }
        for (int64_t k = 0; k < count; k++) {
            int first = 0;
            for (int m = 1; m < 3; m++)
                if (from[m][k] > from[first][k]) first = m;
            most[k] = from[first][k];
            gradient[first][k] += g[k];
        }
        sp_dense y = put_matrix(s, rows, cols, from[1]), rest = put_matrix(s, rows, cols, g);
        ck_ok(s->context, s->back->larger(s->engine, &x[0], &y));
        ck_ok(s->context, s->back->larger(s->engine, &x[2], &y));
        for (int m = 0; m < 3; m++)
            ck_ok(s->context, s->back->larger_backward(s->engine, &x[m], &y, &rest, &to[m]));
        double *is = take_matrix(s, &y), *none = take_matrix(s, &rest);
        expect_close(s, count, is, most, 0, "maxima");
        expect_close(s, count, none, left, 0, "what is left of the gradient");
        for (int m = 0; m < 3; m++) {
            double *got = take_matrix(s, &to[m]);
            expect_close(s, count, got, gradient[m], s->tolerance, "a gradient of maxima");
            end_matrix(s, &x[m]);
            free_all(got, from[m], gradient[m]);
        }
        free_all(is, none, g, most, left);
    }
}

TEST(maxima_of_matrices_are_as_defined) { on_subjects(_i, maxima); }

const test_entry normal_tests[] = {
    CASE("norms", 120),
    ON_DEVICES(normalises_as_defined),
    ON_DEVICES(norms_are_those_of_pytorch),
    ON_DEVICES(norms_have_the_same_bits_whatever_the_threads),
    ON_DEVICES(maxima_of_matrices_are_as_defined),
    {0},
};
