/* sp_spmm_*, sp_sddmm and sp_edge_softmax* against dense references in f64: random products of every type, reduction,
 * algorithm and stride, rows of extreme lengths, arguments of maxima, gradients by finite differences, mistakes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const int64_t widths[] = {1, 3, 16, 31, 32, 33, 64, 96, 128, 200, 384, 602, 1000};
enum { WIDTHS = sizeof widths / sizeof *widths, ALGORITHMS = 4, REDUCTIONS = 4 };

/* ---- 16-bit numbers ------------------------------------------------------------------------------------ */

/* The value of a finite number with so many bits of exponent and of fraction, by definition. */
static double small_value(uint16_t bits, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const double fraction = ldexp(bits & ((1 << fraction_bits) - 1), -fraction_bits);
    const double size = exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
    if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : bits >> 15 ? -INFINITY : INFINITY;
    return bits >> 15 ? -size : size;
}

/* The nearest such number, ties to even, by trying all in order: those of one sign ascend with their bits. */
static uint16_t small_bits(double value, int exponent_bits, int fraction_bits)
{
    const double size = fabs(value);
    uint16_t low = 0, high = (uint16_t)(((1 << exponent_bits) - 1) << fraction_bits), sign = value < 0 ? 0x8000 : 0;
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)(low + (high - low) / 2);
        if (small_value(middle, exponent_bits, fraction_bits) <= size) low = middle;
        else high = middle;
    }
    const double below = small_value(low, exponent_bits, fraction_bits), step = below - (low ? small_value((uint16_t)(low - 1), exponent_bits, fraction_bits) : 0);
    const double above = isinf(small_value(high, exponent_bits, fraction_bits)) ? below + step : small_value(high, exponent_bits, fraction_bits);
    if (size - below > above - size || (size - below == above - size && low % 2)) low = high;
    return low | sign;
}

/* ---- dense matrices ------------------------------------------------------------------------------------ */

static size_t size_of(sp_dense_type type) { return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2; }

static double get(const sp_dense *m, int64_t row, int64_t col)
{
    const int64_t at = row * m->stride + col;
    switch (m->type) {
    case SP_DENSE_F32: return (double)((const float *)m->values)[at];
    case SP_DENSE_F64: return ((const double *)m->values)[at];
    case SP_DENSE_F16: return small_value(((const uint16_t *)m->values)[at], 5, 10);
    case SP_DENSE_BF16: return small_value(((const uint16_t *)m->values)[at], 8, 7);
    }
    return NAN;
}

static void set(sp_dense *m, int64_t row, int64_t col, double value)
{
    const int64_t at = row * m->stride + col;
    switch (m->type) {
    case SP_DENSE_F32: ((float *)m->values)[at] = (float)value; break;
    case SP_DENSE_F64: ((double *)m->values)[at] = value; break;
    case SP_DENSE_F16: ((uint16_t *)m->values)[at] = isnan(value) ? 0x7e00 : small_bits(value, 5, 10); break;
    case SP_DENSE_BF16: ((uint16_t *)m->values)[at] = isnan(value) ? 0x7fc0 : small_bits(value, 8, 7); break;
    }
}

static const unsigned char FILLER = 0xa5;

static size_t bytes_of(const sp_dense *m) { return (size_t)(m->rows * m->stride) * size_of(m->type) + 1; }

/* A host matrix whose memory ends with its last entry's row, so that sanitizers see reads behind it. */
static sp_dense make_dense(int64_t rows, int64_t cols, int64_t stride, sp_dense_type type)
{
    sp_dense m = {.rows = rows, .cols = cols, .stride = stride, .type = type, .space = SP_HOST};
    m.values = malloc(bytes_of(&m));
    ck_assert_ptr_nonnull(m.values);
    memset(m.values, FILLER, bytes_of(&m));
    return m;
}

static sp_dense random_dense(test_random *random, int64_t rows, int64_t cols, int64_t stride, sp_dense_type type,
                             test_values values)
{
    sp_dense m = make_dense(rows, cols, stride, type);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double value = test_unit(random) + 0x1p-20;
            if (values == TEST_SIGNED) value = 2 * value - 1;
            if (values == TEST_INTEGERS) value = (double)(test_below(random, 7) - 3);
            if (type == SP_DENSE_F16 || type == SP_DENSE_BF16) { /* bits as they come, below 8 in size */
                const uint16_t limit = type == SP_DENSE_F16 ? 0x4800 : 0x4100;
                if (values != TEST_INTEGERS) {
                    const uint16_t bits = (uint16_t)(test_below(random, limit) | (test_below(random, 2) ? 0x8000 : 0));
                    ((uint16_t *)m.values)[i * stride + j] = bits;
                    continue;
                }
            }
            set(&m, i, j, value);
        }
    return m;
}

static void fill(sp_dense *m, double value)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) set(m, i, j, value);
}

static sp_dense clone(const sp_dense *m)
{
    sp_dense copy = make_dense(m->rows, m->cols, m->stride, m->type);
    memcpy(copy.values, m->values, bytes_of(m));
    return copy;
}

/* What lies between the rows is as it was. */
static void check_gaps(const sp_dense *m, uint64_t seed)
{
    const size_t size = size_of(m->type);
    for (int64_t i = 0; i < m->rows; i++) {
        const unsigned char *row = (const unsigned char *)m->values + (size_t)(i * m->stride) * size;
        for (size_t b = (size_t)m->cols * size; b < (size_t)m->stride * size; b++)
            test_expect(row[b] == FILLER, "seed %llu: row %lld was written past its end", (unsigned long long)seed,
                        (long long)i);
    }
}

/* ---- sparse matrices ----------------------------------------------------------------------------------- */

/* Rows of no, one, few, many and all columns, and now and then one that holds about half of all entries. */
static sp_csr random_sparse(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type,
                            test_values values)
{
    double *numbers = calloc((size_t)(rows * cols) + 1, sizeof *numbers);
    const int law = (int)test_below(random, 5);
    ck_assert_ptr_nonnull(numbers);
    for (int64_t i = 0; i < rows && cols > 0; i++) {
        int64_t degree = test_below(random, 4);
        if (law == 1) degree = test_below(random, cols + 1);
        if (law == 2) degree = i % 7 ? 1 : 0;
        if (law == 3 && i % 5 == 0) degree = 30 + test_below(random, 10);
        if (law == 4 || degree > cols) degree = i == rows / 2 ? cols : degree < cols ? degree : cols;
        for (int64_t j = 0, left = degree; j < cols && left > 0; j++) {
            if (test_below(random, cols - j) >= left) continue;
            const double value = values == TEST_POSITIVE ? test_unit(random) + 0x1p-20 : 2 * test_unit(random) - 1;
            numbers[i * cols + j] = values == TEST_INTEGERS ? (double)(1 + test_below(random, 2)) : value != 0 ? value : 1;
            left--;
        }
    }
    sp_csr matrix = test_from_dense(host, rows, cols, numbers, type);
    free(numbers);
    if (values == TEST_PATTERN) {
        sp_free(host, matrix.values);
        matrix.values = NULL;
    }
    return matrix;
}

/* ---- the reference ------------------------------------------------------------------------------------- */

/* One product's definition. */
typedef struct problem {
    const sp_csr *a;
    const sp_dense *x;
    sp_reduce reduce;
    bool transpose;
} problem;

static int64_t rows_of(const problem *p) { return p->transpose ? p->a->cols : p->a->rows; }

/* reduce(A · X) (rows x width), the sum of the terms' sizes, and the first entry that gives an extreme. */
typedef struct answer {
    double *value, *size;
    int64_t *argument, *count;
} answer;

static answer reference(const problem *p)
{
    const int64_t rows = rows_of(p), width = p->x->cols;
    const size_t count = (size_t)(rows * width) + 1;
    const double sign = p->reduce == SP_REDUCE_MIN ? -1 : 1;
    const bool extreme = p->reduce == SP_REDUCE_MAX || p->reduce == SP_REDUCE_MIN;
    answer r = {calloc(count, 8), calloc(count, 8), malloc(8 * count), calloc((size_t)rows + 1, 8)};
    ck_assert(r.value && r.size && r.argument && r.count);
    for (size_t k = 0; k < count; k++) r.argument[k] = -1;
    for (int64_t i = 0; i < p->a->rows; i++)
        for (int64_t k = p->a->row_offsets[i]; k < p->a->row_offsets[i + 1]; k++) {
            const int64_t out = p->transpose ? p->a->col_indices[k] : i, in = p->transpose ? i : p->a->col_indices[k];
            r.count[out]++;
            for (int64_t j = 0; j < width; j++) {
                const double term = test_value(p->a, k) * get(p->x, in, j);
                const int64_t at = out * width + j;
                if (!extreme) {
                    r.value[at] += term;
                    r.size[at] += fabs(term);
                } else if (r.argument[at] < 0 || sign * term > sign * r.value[at]) {
                    r.value[at] = term;
                    r.size[at] = fabs(term);
                    r.argument[at] = k;
                }
            }
        }
    for (int64_t i = 0; i < rows && p->reduce == SP_REDUCE_MEAN; i++)
        for (int64_t j = 0; j < width && r.count[i]; j++) {
            r.value[i * width + j] /= (double)r.count[i];
            r.size[i * width + j] /= (double)r.count[i];
        }
    return r;
}

static void free_answer(answer *r)
{
    free(r->value);
    free(r->size);
    free(r->argument);
    free(r->count);
}

/* The relative error allowed: 1e-5 in f32; the rounding of Y where that is coarser. */
static double tolerance(sp_dense_type type)
{
    return type == SP_DENSE_F64 ? 1e-13 : type == SP_DENSE_F32 ? 1e-5 : type == SP_DENSE_F16 ? 0x1.01p-11 : 0x1.01p-8;
}

/* Half of the least number, which is the distance of all small ones. */
static double half_step(sp_dense_type type)
{
    return type == SP_DENSE_F16 ? 0x1.01p-25 : type == SP_DENSE_BF16 ? 0x1.01p-134 : type == SP_DENSE_F32 ? 0x1p-140 : 0;
}

static void check_product(const sp_dense *y, const sp_dense *before, const answer *r, double alpha, double beta,
                          const char *what)
{
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) {
            const int64_t at = i * y->cols + j;
            const double kept = beta != 0 ? beta * get(before, i, j) : 0, value = alpha * r->value[at] + kept;
            const double bound = fabs(alpha) * r->size[at] + fabs(kept);
            const double error = fabs(get(y, i, j) - value);
            test_expect(error <= tolerance(y->type) * bound + half_step(y->type),
                        "%s: (%lld, %lld) is %.9g, not %.9g; terms sum to %g", what, (long long)i, (long long)j,
                        get(y, i, j), value, bound);
        }
}

/* ---- random products ----------------------------------------------------------------------------------- */

/* The matrix in the back end's space, or a shallow copy of it where it is. */
static sp_csr place_sparse(sp_context *context, const sp_csr *a, bool move)
{
    sp_csr placed = *a;
    if (move) ck_ok(context, sp_csr_copy(context, a, SP_DEVICE, &placed));
    return placed;
}

static sp_dense place_dense(sp_context *context, const sp_dense *m, bool move)
{
    sp_dense placed = *m;
    if (move) ck_ok(context, sp_dense_copy(context, m, SP_DEVICE, &placed));
    return placed;
}

/* Y's entries, its gaps untouched. */
static void fetch_dense(sp_context *context, sp_dense *placed, sp_dense *m)
{
    sp_dense copy;
    if (placed->space == SP_HOST) return;
    ck_ok(context, sp_dense_copy(context, placed, SP_HOST, &copy));
    for (int64_t i = 0; i < m->rows; i++)
        memcpy((char *)m->values + (size_t)(i * m->stride) * size_of(m->type),
               (char *)copy.values + (size_t)(i * m->cols) * size_of(m->type), (size_t)m->cols * size_of(m->type));
    sp_dense_free(context, &copy);
    sp_dense_free(context, placed);
}

typedef struct scenario {
    sp_csr a;
    sp_dense x, y;
    double alpha, beta;
    bool a_moves, x_moves, y_moves; /* to the device before the call */
    size_t partition_bytes;
    uint64_t seed;
} scenario;

static scenario random_scenario(sp_context *host, sp_context *context, uint64_t seed)
{
    static const struct {
        sp_value_type a;
        sp_dense_type x, y;
    } types[] = {
        {SP_F32, SP_DENSE_F32, SP_DENSE_F32}, {SP_F32, SP_DENSE_F32, SP_DENSE_F32}, {SP_F64, SP_DENSE_F64, SP_DENSE_F64},
        {SP_F32, SP_DENSE_F16, SP_DENSE_F32}, {SP_F32, SP_DENSE_F16, SP_DENSE_F16}, {SP_F32, SP_DENSE_BF16, SP_DENSE_F32},
        {SP_F32, SP_DENSE_BF16, SP_DENSE_BF16},
    };
    static const double scales[][2] = {{1, 0}, {1, 0}, {1, 1}, {2.5, 0}, {-0.5, 0.75}, {0, 2}};
    test_random random = test_seed(seed);
    const int type = (int)test_below(&random, sizeof types / sizeof *types);
    const double *scale = scales[test_below(&random, sizeof scales / sizeof *scales)];
    const int64_t width = widths[seed % WIDTHS], bound = width < 100 ? 200 : 60;
    const int64_t rows = test_below(&random, 20) ? 1 + test_below(&random, bound) : 0;
    const int64_t cols = test_below(&random, 20) ? 1 + test_below(&random, bound) : 0;
    const test_values kinds[] = {TEST_POSITIVE, TEST_SIGNED, TEST_INTEGERS, TEST_PATTERN}, kind = kinds[test_below(&random, 4)];
    const int64_t gap = test_below(&random, 2) ? test_below(&random, 9) : 0, tall = rows > cols ? rows : cols;
    const bool cuda = sp_context_is_cuda(context);
    scenario s = {.alpha = scale[0], .beta = scale[1], .seed = seed};
    s.a = random_sparse(host, &random, rows, cols, types[type].a, kind);
    /* X and Y have rows for A and for its transpose; each product takes the upper part. */
    s.x = random_dense(&random, tall, width, width + gap, types[type].x, kind);
    s.y = random_dense(&random, tall, width, width + test_below(&random, 2) * gap, types[type].y, TEST_SIGNED);
    s.partition_bytes = test_below(&random, 2) ? (size_t)(1 + test_below(&random, 20000)) : 0;
    s.a_moves = cuda && test_below(&random, 2);
    s.x_moves = cuda && test_below(&random, 2);
    s.y_moves = cuda && test_below(&random, 2);
    return s;
}

static void run_scenario(sp_context *context, scenario *s, const sp_spmm_options *options, const answer *expected)
{
    char what[200];
    sp_spmm_plan *plan;
    sp_dense x = s->x, before = s->y, x_placed, results[2];
    sp_csr a = place_sparse(context, &s->a, s->a_moves);
    x.rows = options->transpose ? s->a.rows : s->a.cols;
    before.rows = options->transpose ? s->a.cols : s->a.rows;
    snprintf(what, sizeof what, "seed %llu: %lld x %lld, width %lld, types %d %d %d, algorithm %d, reduction %d%s",
             (unsigned long long)s->seed, (long long)a.rows, (long long)a.cols, (long long)x.cols, (int)a.value_type,
             (int)x.type, (int)before.type, (int)options->algorithm, (int)options->reduce,
             options->transpose ? ", transposed" : "");
    ck_ok(context, sp_spmm_plan_create(context, &a, x.cols, options, &plan));
    test_expect(sp_spmm_plan_info(plan)->algorithm != SP_SPMM_AUTO &&
                    (!options->algorithm || sp_spmm_plan_info(plan)->algorithm == options->algorithm),
                "%s: the plan says algorithm %d", what, (int)sp_spmm_plan_info(plan)->algorithm);
    x_placed = place_dense(context, &x, s->x_moves);
    for (int run = 0; run < 2; run++) {
        sp_dense *y = &results[run], y_placed;
        *y = clone(&before);
        if (s->beta == 0) fill(y, NAN);
        y_placed = place_dense(context, y, s->y_moves);
        ck_ok(context, sp_spmm_execute(plan, s->alpha, &x_placed, s->beta, &y_placed));
        fetch_dense(context, &y_placed, y);
        check_product(y, &before, expected, s->alpha, s->beta, what);
        check_gaps(y, s->seed);
    }
    test_expect(memcmp(results[0].values, results[1].values, bytes_of(&results[0])) == 0,
                "%s: two runs differ", what);
    free(results[0].values);
    free(results[1].values);
    if (s->x_moves) sp_dense_free(context, &x_placed);
    sp_spmm_plan_free(plan);
    if (s->a_moves) sp_csr_free(context, &a);
}

/* TEST_CASES=N runs N cases in place of these. */
START_TEST(random_products_agree_with_the_reference)
{
    sp_context *host = test_context(0, 1), *context = test_context(_i, 2);
    const int64_t cases = test_cases(320);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        scenario s = random_scenario(host, context, seed);
        for (int kind = 0; kind < 2 * REDUCTIONS; kind++) {
            sp_spmm_options options = {.reduce = (sp_reduce)(kind / 2), .transpose = kind % 2, .deterministic = true,
                                       .partition_bytes = s.partition_bytes};
            sp_dense x = s.x;
            x.rows = options.transpose ? s.a.rows : s.a.cols;
            answer expected = reference(&(problem){&s.a, &x, options.reduce, options.transpose});
            for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
                options.algorithm = (sp_spmm_algorithm)algorithm;
                run_scenario(context, &s, &options, &expected);
            }
            free_answer(&expected);
        }
        sp_csr_free(host, &s.a);
        free(s.x.values);
        free(s.y.values);
    }
    sp_context_destroy(context);
    sp_context_destroy(host);
}
END_TEST

static void add_tests(TCase *products)
{
    test_on_devices(products, random_products_agree_with_the_reference);
}

int main(void)
{
    Suite *suite = suite_create("spmm");
    TCase *products = tcase_create("products");
    tcase_set_timeout(products, 600);
    suite_add_tcase(suite, products);
    add_tests(products);
    return test_run(suite);
}
