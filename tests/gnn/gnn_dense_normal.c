/* test_gnn_dense: norms over columns and rows, and maxima of matrices, against their definitions in f64; bf16. */
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
    double *const unset = numbers(groups);
    const gnn_normal how = {c->norm, c->fixed, put_numbers(s, cols, c->scale), put_numbers(s, cols, c->shift),
                            put_numbers(s, cols, c->running_mean), put_numbers(s, cols, c->running_variance),
                            put_numbers(s, groups, unset), put_numbers(s, groups, unset)};
    free(unset);
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

/* ---- bf16 ------------------------------------------------------------------------------------------------- */

/* Rows of the engine with `from`, exact in bf16, and 3 between them. */
static sp_dense put_rows(const subject *s, int64_t rows, int64_t cols, sp_dense_type type, const double *from)
{
    const subject single = {.context = s->context, .engine = s->engine, .back = s->back, .type = SP_DENSE_F32};
    sp_dense given = put_matrix(&single, rows, cols, from), made;
    ck_ok(s->context, gnn_rows_create(s->engine, rows, cols, type, &made));
    made.cols = made.stride;
    ck_ok(s->context, s->back->fill(s->engine, 3, &made));
    made.cols = cols;
    if (type == SP_DENSE_BF16) ck_ok(s->context, s->back->round(s->engine, &given, &made));
    else ck_ok(s->context, s->back->copy(s->engine, &given, &made));
    end_matrix(&single, &given);
    return made;
}

/* The numbers of rows of f32 or bf16. */
static double *take_rows(const subject *s, const sp_dense *matrix)
{
    const size_t size = matrix->type == SP_DENSE_BF16 ? 2 : 4;
    char *raw = test_block((size_t)(matrix->rows * matrix->stride) * size);
    double *made = numbers(matrix->rows * matrix->cols);
    take(s, matrix->rows * matrix->stride, size, matrix->values, raw);
    for (int64_t e = 0; e < matrix->rows * matrix->cols; e++) {
        float number = 0; /* the two bytes of bf16 are the upper ones of f32 */
        memcpy((char *)&number + 4 - size, raw + (size_t)(e / matrix->cols * matrix->stride + e % matrix->cols) * size,
               size);
        made[e] = (double)number;
    }
    free(raw);
    return made;
}

static double *eighths(subject *s, int64_t count)
{
    double *made = numbers(count);
    for (int64_t e = 0; e < count; e++) made[e] = (double)test_below(&s->random, 63) / 8 - 4;
    return made;
}

static sp_dense put_zeros(const subject *s, int64_t rows, int64_t cols)
{
    double *from = numbers(rows * cols);
    const sp_dense made = put_rows(s, rows, cols, SP_DENSE_BF16, from);
    free(from);
    return made;
}

/* Numbers in bf16 of which all products and their sums are exact in f32: whatever lies between rows, and however an
 * inner dimension is cut, a C of f32 is right to the last bit. */
static void check_half_product(subject *s, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                               sp_dense_type type, double beta)
{
    double *a = eighths(s, m * k), *b = eighths(s, k * n), *c = eighths(s, m * n), *wanted = numbers(m * n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            const double by = a[transpose_a ? p * m + i : i * k + p], *row = b + (transpose_b ? p : p * n);
            double *sums = wanted + i * n;
            for (int64_t j = 0; j < n; j++, row += transpose_b ? k : 1) sums[j] += by * *row;
        }
    sp_dense x = put_rows(s, transpose_a ? k : m, transpose_a ? m : k, SP_DENSE_BF16, a);
    sp_dense y = put_rows(s, transpose_b ? n : k, transpose_b ? k : n, SP_DENSE_BF16, b);
    sp_dense z = put_rows(s, m, n, type, c);
    ck_ok(s->context, s->back->multiply(s->engine, transpose_a, transpose_b, 0.5, &x, &y, beta, &z));
    double *is = take_rows(s, &z);
    for (int64_t e = 0; e < m * n; e++) {
        const double product = 0.5 * wanted[e], right = product + beta * c[e];
        const double size = fabs(product) + beta * fabs(c[e]); /* bf16: either may be rounded before they are added */
        test_expect(fabs(is[e] - right) <= (type == SP_DENSE_BF16 ? size / 128 : 0),
                    "%s: %lld x %lld x %lld, %d%d, beta %g: number %lld is %g, not %g", s->name, (long long)m,
                    (long long)k, (long long)n, transpose_a, transpose_b, beta, (long long)e, is[e], right);
    }
    sp_dense *const all[] = {&x, &y, &z};
    for (size_t i = 0; i < COUNT(all); i++) sp_dense_free(s->context, all[i]);
    free_all(a, b, c, wanted, is);
}

TEST(products_in_bf16_do_not_depend_on_what_lies_between_rows)
{
    static const int64_t size[][3] = {{300, 41, 20}, {131, 48, 50}, {500, 7, 602}, {20, 300, 41},
                                      {602, 41, 9},  {70, 256, 3001}, {50, 41, 20003}, {24, 40, 5},
                                      {4500, 16, 20}, {230, 300, 530}};
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    for (size_t i = 0; i < COUNT(size); i++)
        for (int beta = 0; beta < 2; beta++) {
            const int64_t m = size[i][0], n = size[i][1], k = size[i][2];
            check_half_product(&s, true, false, m, n, k, SP_DENSE_F32, beta);
            check_half_product(&s, false, false, m, n, k, beta ? SP_DENSE_F32 : SP_DENSE_BF16, beta);
            check_half_product(&s, false, true, m, n, k, beta ? SP_DENSE_BF16 : SP_DENSE_F32, beta);
        }
    free_subject(&s);
}

/* ---- the CPU's ways of its own ---------------------------------------------------------------------------- */

/* Blocks with GUARD bytes behind them that nobody may change. */
enum { GUARD = 1 << 20, HEAD = 64, MARK = 0x6b };

static void *take_guarded(void *user, size_t bytes)
{
    (void)user;
    char *block = aligned_alloc(HEAD, (HEAD + bytes + GUARD + HEAD - 1) / HEAD * HEAD);
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    memset(block + HEAD + bytes, MARK, GUARD);
    return block + HEAD;
}

static void release_guarded(void *user, void *pointer)
{
    int *changed = user;
    size_t bytes;
    if (!pointer) return;
    memcpy(&bytes, (char *)pointer - HEAD, sizeof bytes);
    for (size_t i = 0; i < GUARD; i++) *changed += ((char *)pointer)[bytes + i] != MARK;
    free((char *)pointer - HEAD);
}

/* A product that is cut by columns, and the way back of a layer whose gradients are wider than its input: each has a C
 * of fewer columns than the work space is made for, and so pieces of more rows. */
TEST(pieces_of_c_in_bf16_stay_in_their_work_space)
{
    int changed = 0;
    const sp_allocator guarded = {.allocate = take_guarded, .release = release_guarded, .user = &changed};
    subject s = {.context = test_context_with(0, (sp_context_options){.threads = 1, .allocator = &guarded}),
                 .type = SP_DENSE_F32, .random = test_seed(SEED), .name = "guarded"};
    ck_ok(s.context, gnn_engine_create(s.context, 17, &s.engine));
    s.back = s.engine->backend;
    check_half_product(&s, false, false, 255, 1366, 1, SP_DENSE_BF16, 0);
    const gnn_pointwise how = {GNN_LINEAR, 0, 3};
    const int64_t rows = 2048, in = 256, out = 1400;
    sp_dense x = put_zeros(&s, rows, in), g = put_zeros(&s, rows, out), w = put_zeros(&s, in, out);
    sp_dense dx = put_zeros(&s, rows, in), dw;
    ck_ok(s.context, gnn_rows_create(s.engine, in, out, SP_DENSE_F32, &dw));
    float sums[256];
    ck_ok(s.context,
          s.back->dense_backward(s.engine, 1, &(gnn_product_gradient){&g, &w, &dw}, &how, &x, &dx, sums));
    sp_dense *const all[] = {&x, &g, &w, &dx, &dw};
    for (size_t i = 0; i < COUNT(all); i++) sp_dense_free(s.context, all[i]);
    free_subject(&s);
    test_expect(changed == 0, "%d bytes behind blocks were written", changed);
}

static float float_with(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* To nearest, ties to even, by IEEE 754: bits of f32 and the upper half of what they become. */
static const uint32_t roundings[][2] = {
    {0x3f800000, 0x3f80}, /* 1 */
    {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f817fff, 0x3f81}, /* about ties */
    {0xbf808000, 0xbf80}, {0xbf818000, 0xbf82}, {0x80000000, 0x8000},
    {0x7f7fffff, 0x7f80}, {0xff7f8000, 0xff80}, {0x7f7f7fff, 0x7f7f}, /* beyond the largest number */
    {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
    {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x00018000, 0x0002}, {0x807fffff, 0x8080},
    {0x7f800001, 0x7fc0}, {0xff80ffff, 0xffc0}, {0x7fffffff, 0x7fff}, /* NaN whose upper bits may be all 0 */
};

TEST(the_cpu_rounds_to_nearest_and_keeps_nan)
{
    enum { MANY = COUNT(roundings), COLS = 2 * MANY + 1 };
    subject s = make_subject(0, SP_DENSE_F32, 0, 0);
    float row[COLS];
    uint16_t is[COLS];
    for (int j = 0; j < COLS; j++) row[j] = float_with(roundings[j % MANY][0]);
    for (int cols = 1; cols <= COLS; cols++) {
        const sp_dense from = {.rows = 1, .cols = cols, .stride = cols, .type = SP_DENSE_F32, .values = row};
        sp_dense to = {.rows = 1, .cols = cols, .stride = cols, .type = SP_DENSE_BF16, .values = is};
        memset(is, 0x55, sizeof is);
        ck_ok(s.context, s.back->round(s.engine, &from, &to));
        for (int j = 0; j < COLS; j++)
            test_expect(is[j] == (j < cols ? roundings[j % MANY][1] : 0x5555), "%d of %d: %08x becomes %04x", j, cols,
                        (unsigned)roundings[j % MANY][0], is[j]);
    }
    free_subject(&s);
}

static void expect_same(const subject *s, const sp_dense *is, const sp_dense *wanted, const char *what)
{
    double *a = take_rows(s, is), *b = take_rows(s, wanted);
    for (int64_t e = 0; e < is->rows * is->cols; e++)
        test_expect(a[e] == b[e] || (isnan(a[e]) && isnan(b[e])), "%s: number %lld is %g, not %g", what, (long long)e,
                    a[e], b[e]);
    free_all(a, b);
}

static sp_dense put_eighths(subject *s, int64_t rows, int64_t cols, sp_dense_type type)
{
    double *from = eighths(s, rows * cols);
    const sp_dense made = put_rows(s, rows, cols, type, from);
    free(from);
    return made;
}

/* A layer in one pass, forward and back, rounds where the same step by step does: with numbers whose sums are exact the
 * bits are the same. The second product of the way back lacks a third of the rows. */
static void check_layer(subject *s, int64_t rows, int64_t in, int64_t out, int count, gnn_pointwise how)
{
    sp_dense x[2], w[2], g[2], v[2], y[2], dx[2], dw[2][2];
    gnn_product product[2];
    gnn_product_gradient back[2][2];
    float sums[2][512], bias[512];
    ck_assert(in <= 512 && out < 512);
    for (int j = 0; j < 512; j++) bias[j] = (float)(j % 7) / 8;
    for (int k = 0; k < 2; k++) {
        x[k] = put_eighths(s, rows, in, SP_DENSE_BF16);
        w[k] = put_eighths(s, in, out, SP_DENSE_BF16);
        g[k] = put_eighths(s, k ? rows - rows / 3 : rows, out + k, SP_DENSE_BF16);
        v[k] = put_eighths(s, in, out + k, SP_DENSE_BF16);
        y[k] = put_eighths(s, rows, out, SP_DENSE_BF16);
        dx[k] = put_eighths(s, rows, in, SP_DENSE_BF16);
        product[k] = (gnn_product){&x[k], &w[k]};
        for (int way = 0; way < 2; way++) {
            dw[way][k] = put_eighths(s, in, out + k, SP_DENSE_F32);
            back[way][k] = (gnn_product_gradient){&g[k], &v[k], &dw[way][k]};
        }
    }
    ck_ok(s->context, s->back->dense(s->engine, count, product, &how, bias, &y[0]));
    ck_ok(s->context, gnn_dense_by_steps(s->engine, count, product, &how, bias, &y[1]));
    expect_same(s, &y[0], &y[1], "forward");
    ck_ok(s->context, s->back->dense_backward(s->engine, count, back[0], &how, &x[0], &dx[0], sums[0]));
    ck_ok(s->context, gnn_dense_backward_by_steps(s->engine, count, back[1], &how, &x[0], &dx[1], sums[1]));
    /* In one pass two products are one, whose sum is rounded once. */
    if (count == 1) expect_same(s, &dx[0], &dx[1], "backward");
    for (int k = 0; k < count; k++) expect_same(s, &dw[0][k], &dw[1][k], "weights");
    for (int64_t j = 0; count == 1 && j < in; j++)
        test_expect(fabsf(sums[0][j] - sums[1][j]) <= 1e-5f * (float)rows, "sum %lld is %g, not %g", (long long)j,
                    (double)sums[0][j], (double)sums[1][j]);
    for (int k = 0; k < 2; k++) {
        sp_dense *const all[] = {&x[k], &w[k], &g[k], &v[k], &y[k], &dx[k], &dw[0][k], &dw[1][k]};
        for (size_t i = 0; i < COUNT(all); i++) sp_dense_free(s->context, all[i]);
    }
}

TEST(layers_in_bf16_in_one_pass_are_those_step_by_step)
{
    static const int64_t size[][3] = {{0, 5, 3},      {40, 9, 8},     {3000, 33, 7},
                                      {2500, 256, 7}, {2000, 40, 96}, {1100, 300, 20}};
    subject s = make_subject(0, SP_DENSE_F32, 0, 0);
    ck_ok(s.context, s.back->set_step(s.engine, 5));
    for (size_t i = 0; i < COUNT(size); i++)
        for (int count = 1; count <= 2; count++) {
            check_layer(&s, size[i][0], size[i][1], size[i][2], count, (gnn_pointwise){GNN_LINEAR, 0, 3});
            check_layer(&s, size[i][0], size[i][1], size[i][2], count, (gnn_pointwise){GNN_RELU, 0.5, 3});
        }
    free_subject(&s);
}

/* Activation and dropout are those of f32, of the same numbers, but for what rounding the result takes. */
TEST(activations_in_bf16_are_those_in_f32)
{
    enum { ROWS = 70, COLS = 37 };
    subject s = make_subject(0, SP_DENSE_F32, 0, 0);
    for (int activation = 0; activation < 3; activation++) {
        const gnn_pointwise how = {(const gnn_activation[]){GNN_LINEAR, GNN_RELU, GNN_ELU}[activation], 0.4, 2};
        double *from = eighths(&s, ROWS * COLS), *other = eighths(&s, ROWS * COLS);
        float bias[COLS], sums[2][COLS];
        sp_dense x[2], g[2];
        for (int j = 0; j < COLS; j++) bias[j] = (float)j / 64;
        for (int half = 0; half < 2; half++) {
            const sp_dense_type type = half ? SP_DENSE_BF16 : SP_DENSE_F32;
            x[half] = put_rows(&s, ROWS, COLS, type, from);
            g[half] = put_rows(&s, ROWS, COLS, type, other);
            ck_ok(s.context, s.back->backward(s.engine, &how, &x[half], &g[half], &g[half], sums[half]));
            ck_ok(s.context, s.back->forward(s.engine, &how, &x[half], bias, &x[half]));
        }
        double *y[2] = {take_rows(&s, &x[0]), take_rows(&s, &x[1])};
        double *dx[2] = {take_rows(&s, &g[0]), take_rows(&s, &g[1])};
        for (int64_t e = 0; e < ROWS * COLS; e++)
            test_expect(fabs(y[1][e] - y[0][e]) <= 0x1p-8 * fabs(y[0][e]) &&
                            fabs(dx[1][e] - dx[0][e]) <= 0x1p-8 * fabs(dx[0][e]),
                        "activation %d, number %lld: %g and %g, not %g and %g", activation, (long long)e, y[1][e],
                        dx[1][e], y[0][e], dx[0][e]);
        for (int j = 0; j < COLS; j++) ck_assert_float_eq(sums[0][j], sums[1][j]);
        for (int half = 0; half < 2; half++) {
            free_all(y[half], dx[half]);
            sp_dense_free(s.context, &x[half]);
            sp_dense_free(s.context, &g[half]);
        }
        free_all(from, other);
    }
    free_subject(&s);
}

const test_entry half_tests[] = {
    CASE("bf16", 300),
    ON_DEVICES(products_in_bf16_do_not_depend_on_what_lies_between_rows),
    ONCE(pieces_of_c_in_bf16_stay_in_their_work_space),
    ONCE(the_cpu_rounds_to_nearest_and_keeps_nan),
    ONCE(layers_in_bf16_in_one_pass_are_those_step_by_step),
    ONCE(activations_in_bf16_are_those_in_f32),
    {0},
};
