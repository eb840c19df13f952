/* sp_spmm_*, sp_sddmm and sp_edge_softmax* against dense references in f64: random products of every type, reduction,
 * algorithm and stride, rows of extreme lengths, arguments of maxima, gradients by finite differences, mistakes; and
 * products out of core against those in core, bit by bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "generate.h"
#include "support.h"

static const int64_t widths[] = {1, 3, 16, 31, 32, 33, 64, 96, 128, 200, 384, 602, 1000};
enum { WIDTHS = COUNT(widths), ALGORITHMS = 4, REDUCTIONS = 4 };

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
    const double below = small_value(low, exponent_bits, fraction_bits),
                 step = below - (low ? small_value((uint16_t)(low - 1), exponent_bits, fraction_bits) : 0);
    const double above = isinf(small_value(high, exponent_bits, fraction_bits))
                             ? below + step
                             : small_value(high, exponent_bits, fraction_bits);
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
                    const uint16_t bits =
                        (uint16_t)(test_below(random, limit) | (test_below(random, 2) ? 0x8000 : 0));
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
            numbers[i * cols + j] = values == TEST_INTEGERS ? (double)(1 + test_below(random, 2))
                                    : value != 0            ? value
                                                            : 1;
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
    double *x = malloc((size_t)(p->x->rows * width) * sizeof *x + 1);
    ck_assert(r.value && r.size && r.argument && r.count && x);
    for (int64_t at = 0; at < p->x->rows * width; at++) x[at] = get(p->x, at / width, at % width);
    for (size_t k = 0; k < count; k++) r.argument[k] = -1;
    for (int64_t i = 0; i < p->a->rows; i++)
        for (int64_t k = p->a->row_offsets[i]; k < p->a->row_offsets[i + 1]; k++) {
            const int64_t out = p->transpose ? p->a->col_indices[k] : i, in = p->transpose ? i : p->a->col_indices[k];
            const double weight = test_value(p->a, k);
            r.count[out]++;
            for (int64_t j = 0; j < width && !extreme; j++) {
                const double term = weight * x[in * width + j];
                r.value[out * width + j] += term;
                r.size[out * width + j] += fabs(term);
            }
            for (int64_t j = 0; j < width && extreme; j++) {
                const double term = weight * x[in * width + j];
                const int64_t at = out * width + j;
                if (r.argument[at] < 0 || sign * term > sign * r.value[at]) {
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
    free(x);
    return r;
}

static void free_answer(answer *r)
{
    free_all(r->value, r->size, r->argument, r->count);
}

/* The relative error allowed: 1e-5 in f32; the rounding of Y where that is coarser. */
static double tolerance(sp_dense_type type)
{
    return type == SP_DENSE_F64 ? 1e-13 : type == SP_DENSE_F32 ? 1e-5 : type == SP_DENSE_F16 ? 0x1.01p-11 : 0x1.01p-8;
}

/* Half of the least number, which is the distance of all small ones. */
static double half_step(sp_dense_type type)
{
    return type == SP_DENSE_F16    ? 0x1.01p-25
           : type == SP_DENSE_BF16 ? 0x1.01p-134
           : type == SP_DENSE_F32  ? 0x1p-140
                                   : 0;
}

static void check_product(const sp_dense *y, const sp_dense *before, const answer *r, double alpha, double beta,
                          const char *what)
{
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) {
            const int64_t at = i * y->cols + j;
            const double kept = beta != 0 ? beta * get(before, i, j) : 0, value = alpha * r->value[at] + kept;
            const double bound = fabs(alpha) * r->size[at] + fabs(kept);
            const double error = fabs(get(y, i, j) - value),
                         allowed = tolerance(y->type) * bound + half_step(y->type);
            test_expect(error <= allowed,
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

/* With its gaps. */
static sp_dense place_dense(sp_context *context, const sp_dense *m, bool move)
{
    sp_dense placed = *m, whole = *m;
    whole.cols = m->stride;
    if (move) ck_ok(context, sp_dense_copy(context, &whole, SP_DEVICE, &placed));
    placed.cols = m->cols;
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
    test_free_dense(context, &copy, placed);
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
        {SP_F32, SP_DENSE_F32, SP_DENSE_F32},   {SP_F32, SP_DENSE_F32, SP_DENSE_F32},
        {SP_F64, SP_DENSE_F64, SP_DENSE_F64},   {SP_F32, SP_DENSE_F16, SP_DENSE_F32},
        {SP_F32, SP_DENSE_F16, SP_DENSE_F16},   {SP_F32, SP_DENSE_BF16, SP_DENSE_F32},
        {SP_F32, SP_DENSE_BF16, SP_DENSE_BF16},
    };
    static const double scales[][2] = {{1, 0}, {1, 0}, {1, 1}, {2.5, 0}, {-0.5, 0.75}, {0, 2}};
    test_random random = test_seed(seed);
    const int type = (int)test_below(&random, COUNT(types));
    const double *scale = scales[test_below(&random, COUNT(scales))];
    const int64_t width = widths[seed % WIDTHS], bound = width < 100 ? 200 : 60;
    const int64_t rows = test_below(&random, 20) ? 1 + test_below(&random, bound) : 0;
    const int64_t cols = test_below(&random, 20) ? 1 + test_below(&random, bound) : 0;
    const test_values kinds[] = {TEST_POSITIVE, TEST_SIGNED, TEST_INTEGERS, TEST_PATTERN},
                      kind = kinds[test_below(&random, 4)];
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
    const int runs = test_is_brief() ? 1 : 2;
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
    for (int run = 0; run < runs; run++) {
        sp_dense *y = &results[run], y_placed;
        *y = clone(&before);
        if (s->beta == 0) fill(y, NAN);
        y_placed = place_dense(context, y, s->y_moves);
        ck_ok(context, sp_spmm_execute(plan, s->alpha, &x_placed, s->beta, &y_placed));
        fetch_dense(context, &y_placed, y);
        check_product(y, &before, expected, s->alpha, s->beta, what);
        check_gaps(y, s->seed);
    }
    test_expect(memcmp(results[0].values, results[runs - 1].values, bytes_of(&results[0])) == 0,
                "%s: two runs differ", what);
    for (int run = 0; run < runs; run++) free(results[run].values);
    if (s->x_moves) sp_dense_free(context, &x_placed);
    sp_spmm_plan_free(plan);
    if (s->a_moves) sp_csr_free(context, &a);
}

/* Beside the reference, and the operands, which lie on the host, are freed. */
static void run_and_free(sp_context *context, sp_context *host, scenario *s, const sp_spmm_options *options)
{
    answer expected = reference(&(problem){&s->a, &s->x, options->reduce, options->transpose});
    run_scenario(context, s, options, &expected);
    free_answer(&expected);
    sp_csr_free(host, &s->a);
    free_all(s->x.values, s->y.values);
}

/* TEST_CASES=N runs N cases in place of these. In brief there are four times as many, but of each two reductions, a
 * sum and an extreme, with one algorithm: kernels are many by type, width and alignment. */
DEVICE_TEST(random_products_agree_with_the_reference, _i, 2)
{
    const bool brief = test_is_brief();
    const int64_t cases = test_cases(320) * (brief ? 4 : 1);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        scenario s = random_scenario(host, context, seed);
        for (int kind = 0; kind < 2 * REDUCTIONS; kind++) {
            sp_spmm_options options = {.reduce = (sp_reduce)(kind / 2), .transpose = kind % 2, .deterministic = true,
                                       .partition_bytes = s.partition_bytes};
            sp_dense x = s.x;
            x.rows = options.transpose ? s.a.rows : s.a.cols;
            if (brief && kind % 4 != (int)(seed / 4 % 4)) continue;
            answer expected = reference(&(problem){&s.a, &x, options.reduce, options.transpose});
            for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
                if (brief && algorithm != (int)(seed % ALGORITHMS)) continue;
                options.algorithm = (sp_spmm_algorithm)algorithm;
                run_scenario(context, &s, &options, &expected);
            }
            free_answer(&expected);
        }
        sp_csr_free(host, &s.a);
        free_all(s.x.values, s.y.values);
    }
}

/* Communities of odd sizes, of neighbouring ids or of shuffled ones, whose rows the CUDA back end takes a panel at a
 * time: rows of one to eight groups, hubs of up to 128, and rows of none. */
static sp_csr random_communities(sp_context *host, int kind)
{
    sp_csr a;
    char spec[100];
    snprintf(spec, sizeof spec, "community:20011,%d,16000,50,%d,80,%d", 130 + kind * 10, 501 + kind * 72, kind % 2);
    ck_ok(host, generate_matrix(host, spec, (uint64_t)kind + 1, SP_F32, &a));
    return a;
}

/* Without every 101st row's entries, and without values for a pattern. */
static sp_csr thinned(sp_context *host, const sp_csr *whole, uint64_t seed, bool pattern)
{
    sp_csr a;
    ck_ok(host, sp_csr_copy(host, whole, SP_HOST, &a));
    int64_t kept = 0;
    for (int64_t i = 0, k = 0; i < a.rows; i++) {
        const int64_t end = a.row_offsets[i + 1];
        for (; k < end; k++) {
            if ((i + (int64_t)seed) % 101 == 0) continue;
            a.col_indices[kept] = a.col_indices[k];
            ((float *)a.values)[kept++] = ((float *)a.values)[k];
        }
        a.row_offsets[i + 1] = kept;
    }
    a.nnz = kept;
    ck_ok(host, sp_csr_check(host, &a));
    if (pattern) {
        sp_free(host, a.values);
        a.values = NULL;
    }
    return a;
}

/* In brief only what panels take: all columns in whole packets. */
TEST(communities_agree_with_the_reference)
{
    enum { GRAPHS = 3 };
    static const sp_dense_type types[][2] = {{SP_DENSE_F32, SP_DENSE_F32}, {SP_DENSE_F32, SP_DENSE_F32},
                                             {SP_DENSE_F16, SP_DENSE_F32}, {SP_DENSE_F16, SP_DENSE_F16},
                                             {SP_DENSE_BF16, SP_DENSE_F32}};
    static const double scales[][2] = {{1, 0}, {-0.5, 0.75}};
    static const int64_t some[] = {31, 16, 64, 200, 32, 33, 3};
    /* Whose last tile is a half or a quarter of a line of X, or whose rows begin and end anywhere; {columns, type} */
    static const int tails[][2] = {{16, 0}, {8, 0}, {44, 1}, {24, 2}, {96, 2}, {72, 3}, {96, 4},
                                   {33, 0}, {50, 1}, {71, 2}, {30, 3}, {131, 4}};
    enum { TAILS = COUNT(tails) };
    sp_context *host = test_context(0, 2), *context = test_context(_i, 2);
    const bool cuda = sp_context_is_cuda(context);
    sp_csr graphs[GRAPHS];
    for (int kind = 0; kind < GRAPHS; kind++) graphs[kind] = random_communities(host, kind);
    for (uint64_t seed = 1; seed <= WIDTHS + TAILS; seed++) {
        const int *tail = seed > WIDTHS ? tails[seed - WIDTHS - 1] : NULL;
        const int64_t width = tail ? tail[0] : some[seed % 7];
        const int64_t stride = width + (seed % 4 == 3 && !tail ? 5 : (int64_t)(seed % 4) * 8);
        if (test_is_brief() && !tail && (width % 8 != 0 || seed % 4 == 3)) continue;
        const int type = tail ? tail[1] : (int)(seed % (COUNT(types)));
        const sp_spmm_options options = {
            .reduce = seed % 6 == 5 && !tail ? SP_REDUCE_MAX : seed % 2 ? SP_REDUCE_SUM : SP_REDUCE_MEAN,
            .transpose = seed % 3 == 0};
        test_random random = test_seed(seed);
        scenario s = {.alpha = scales[seed / 2 % 2][0], .beta = scales[seed / 2 % 2][1], .seed = seed};
        s.a = thinned(host, &graphs[seed / 2 % GRAPHS], seed, seed % 4 == 0);
        s.x = random_dense(&random, s.a.cols, width, stride, types[type][0], TEST_SIGNED);
        s.y = random_dense(&random, s.a.rows, width, stride, types[type][1], TEST_SIGNED);
        s.a_moves = s.x_moves = s.y_moves = cuda;
        run_and_free(context, host, &s, &options);
    }
    for (int kind = 0; kind < GRAPHS; kind++) sp_csr_free(host, &graphs[kind]);
    sp_context_destroy(context);
    sp_context_destroy(host);
}

/* ---- single promises ----------------------------------------------------------------------------------- */

static sp_dense host_dense(float *values, int64_t rows, int64_t cols)
{
    return (sp_dense){rows, cols, cols, values, SP_DENSE_F32, SP_HOST};
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
        for (int64_t k = 0; k < second.nnz; k++)
            if (type == SP_F32) ((float *)second.values)[k] = (float)test_unit(&random);
            else ((double *)second.values)[k] = test_unit(&random);
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
        sp_dense x = {1, ALL, ALL, in, forms[f].type, SP_HOST}, y = host_dense(ones, 1, ALL);
        sp_dense rounded = {1, ALL, ALL, out, forms[f].type, SP_HOST};
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
    ck_assert_int_eq(sp_edge_softmax(context, &a, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_edge_softmax_backward(context, &a, NULL, values), SP_ERROR_ARGUMENT);
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
    const sp_context_options options = {.device = "cpu", .threads = 2, .interrupt = &flag};
    sp_context *context;
    sp_spmm_plan *plan;
    test_random random = test_seed(1);
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
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

/* Up to 8 entries a row, spread over all columns, none in every fifth; half of the columns, up to 3000, in one. */
static sp_csr large_sparse(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type)
{
    const int64_t hub = cols / 2 < 3000 ? cols / 2 : 3000;
    sp_csr a;
    ck_ok(host, sp_csr_create(host, rows, cols, 8 * rows + hub, type, SP_HOST, &a));
    a.nnz = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t degree = i == rows / 3 ? hub : i % 5 ? 1 + test_below(random, 8) : 0;
        a.row_offsets[i] = a.nnz;
        for (int64_t j = 0; j < degree; j++) {
            const int64_t low = j * cols / degree, high = (j + 1) * cols / degree;
            a.col_indices[a.nnz] = (int32_t)(low + test_below(random, high - low));
            if (type == SP_F32) ((float *)a.values)[a.nnz++] = (float)(2 * test_unit(random) - 1);
            else ((double *)a.values)[a.nnz++] = 2 * test_unit(random) - 1;
        }
    }
    a.row_offsets[rows] = a.nnz;
    ck_ok(host, sp_csr_check(host, &a));
    return a;
}

/* A Y of more than 32 MB, aligned to lines of the caches, is written past them, and one that is not goes through them;
 * tiles of 96 columns begin and end at lines, those of 40 do not. */
CONTEXT_TEST(large_results_are_the_same_past_the_caches, 0, 2)
{
    static const struct {
        int64_t rows, width, stride;
        sp_dense_type type;
    } cases[] = {{140000, 64, 64, SP_DENSE_F32}, {90000, 96, 112, SP_DENSE_F32}, {220000, 40, 48, SP_DENSE_F32},
                 {180000, 24, 24, SP_DENSE_F64}};
    for (int c = 0; c < (int)(COUNT(cases)); c++) {
        test_random random = test_seed((uint64_t)c + 1);
        const int64_t rows = cases[c].rows, width = cases[c].width, stride = cases[c].stride;
        const bool single = cases[c].type == SP_DENSE_F32;
        sp_csr a = large_sparse(context, &random, rows, 500, single ? SP_F32 : SP_F64);
        sp_dense x = random_dense(&random, 500, width, width, cases[c].type, TEST_SIGNED), y[2];
        const size_t bytes = (size_t)(rows * stride) * (single ? 4 : 8);
        char *memory[2];
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &a, width, NULL, &plan));
        for (int i = 0; i < 2; i++) {
            memory[i] = aligned_alloc(64, bytes + 64);
            ck_assert_ptr_nonnull(memory[i]);
            memset(memory[i], 0x7f, bytes + 64);
            y[i] = (sp_dense){rows, width, stride, memory[i] + 16 * i, cases[c].type, SP_HOST};
            ck_ok(context, sp_spmm_execute(plan, -0.5, &x, 0, &y[i]));
        }
        test_expect(memcmp(y[0].values, y[1].values, bytes) == 0, "width %lld: results differ", (long long)width);
        for (int i = 0; i < 2; i++) free(memory[i]);
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
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cpu", .threads = 2, .allocator = &allocator};
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
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
    sp_context_destroy(context);
    sp_context_destroy(host);
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
    sp_context_destroy(context);
    sp_context_destroy(host);
}

/* ---- out of core --------------------------------------------------------------------------------------- */

/* On CUDA alone: on the CPU nothing is out of core. */
enum { BUDGET = 3 << 20 };

static sp_context *limited_context(size_t bytes, const sp_allocator *allocator, const volatile int *interrupt)
{
    const sp_context_options options = {.device = "cuda", .threads = 2, .memory_budget = bytes,
                                        .allocator = allocator, .interrupt = interrupt};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    return context;
}

static sp_context *budget_context(const sp_allocator *allocator, const volatile int *interrupt)
{
    return limited_context(BUDGET, allocator, interrupt);
}

/* A copy in pinned memory where there is CUDA. */
static sp_dense pinned_clone(const sp_dense *m)
{
    sp_dense copy = *m;
#ifdef SPARSE_CUDA
    ck_assert_int_eq(cudaMallocHost(&copy.values, bytes_of(m)), cudaSuccess);
    memcpy(copy.values, m->values, bytes_of(m));
#else
    copy = clone(m);
#endif
    return copy;
}

static void free_pinned(sp_dense *m)
{
#ifdef SPARSE_CUDA
    cudaFreeHost(m->values);
#else
    free(m->values);
#endif
}

/* What was released is free then. */
static void finish_device(void)
{
#ifdef SPARSE_CUDA
    cudaDeviceSynchronize();
#endif
}

/* One operand may lie on the device: 0 none, 1 X, 2 Y. Both contexts get the same. */
static void same_as_in_core(uint64_t seed)
{
    static const struct {
        sp_value_type a;
        sp_dense_type x, y;
    } types[] = {
        {SP_F32, SP_DENSE_F32, SP_DENSE_F32}, {SP_F64, SP_DENSE_F64, SP_DENSE_F64},
        {SP_F32, SP_DENSE_F16, SP_DENSE_F16}, {SP_F32, SP_DENSE_BF16, SP_DENSE_F32},
    };
    test_random random = test_seed(seed);
    const int64_t width = 640 + test_below(&random, 260), gap = test_below(&random, 2) * test_below(&random, 9);
    const int type = (int)test_below(&random, 4), placed = seed % 3 ? 0 : 1 + (int)test_below(&random, 2);
    const bool pinned = test_below(&random, 2);
    const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)test_below(&random, ALGORITHMS),
                                     .reduce = (sp_reduce)test_below(&random, REDUCTIONS),
                                     .transpose = test_below(&random, 2), .partition_bytes = 20000};
    const double alpha = test_below(&random, 2) ? 1 : -0.75, beta = test_below(&random, 2) ? 0 : 1.5;
    const int64_t y_rows = placed == 2 ? 100 : placed == 1 ? 2500 : 1300 + test_below(&random, 200);
    const int64_t x_rows = placed == 1 ? 100 : placed == 2 ? 2500 : 1300 + test_below(&random, 200);
    sp_context *host = test_context(0, 1), *contexts[] = {test_context(1, 2), budget_context(NULL, NULL)};
    sp_csr a = options.transpose ? large_sparse(host, &random, x_rows, y_rows, types[type].a)
                                 : large_sparse(host, &random, y_rows, x_rows, types[type].a);
    sp_dense x = random_dense(&random, x_rows, width, width + gap, types[type].x, TEST_SIGNED);
    sp_dense y = random_dense(&random, y_rows, width, width + gap, types[type].y, TEST_SIGNED), results[2];
    ck_assert_int_gt((int64_t)(bytes_of(&x) + bytes_of(&y)), BUDGET);
    for (int i = 0; i < 2; i++) {
        sp_dense x_used = pinned ? pinned_clone(&x) : clone(&x), y_used, x_placed, y_placed;
        sp_spmm_plan *plan;
        results[i] = pinned ? pinned_clone(&y) : clone(&y);
        y_used = results[i];
        if (beta == 0) fill(&y_used, NAN);
        ck_ok(contexts[i], sp_spmm_plan_create(contexts[i], &a, width, &options, &plan));
        x_placed = place_dense(contexts[i], &x_used, placed == 1);
        y_placed = place_dense(contexts[i], &y_used, placed == 2);
        ck_ok(contexts[i], sp_spmm_execute(plan, alpha, &x_placed, beta, &y_placed));
        fetch_dense(contexts[i], &y_placed, &results[i]);
        if (placed == 1) sp_dense_free(contexts[i], &x_placed);
        sp_spmm_plan_free(plan);
        if (pinned) free_pinned(&x_used);
        else free(x_used.values);
    }
    test_expect(memcmp(results[0].values, results[1].values, bytes_of(&y)) == 0,
                "seed %llu: types %d %d, algorithm %d, reduction %d, width %lld differ out of core",
                (unsigned long long)seed, (int)x.type, (int)y.type, (int)options.algorithm, (int)options.reduce,
                (long long)width);
    for (int i = 0; i < 2; i++) {
        if (pinned) free_pinned(&results[i]);
        else free(results[i].values);
        sp_context_destroy(contexts[i]);
    }
    free_all(x.values, y.values);
    sp_csr_free(host, &a);
    sp_context_destroy(host);
}

TEST(products_out_of_core_have_the_bits_of_those_in_core)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(60); seed++) same_as_in_core(seed);
}

/* Panels take the last columns in a tile of a half or a quarter of a line, or of a line and a half, and a streamed
 * tile of X may begin and end anywhere: 40 to 130 columns of X and Y fit beside A. */
TEST(panels_out_of_core_have_the_bits_of_those_in_core)
{
    static const sp_dense_type types[] = {SP_DENSE_F32, SP_DENSE_F16, SP_DENSE_BF16};
    static const int64_t some[] = {208, 232, 240, 176};
    enum { TYPES = 3, ROOM = 3 << 20 /* for the plan */ };
    sp_context *host = test_context(0, 2), *whole = test_context(1, 2);
    sp_csr a = random_communities(host, 1);
    for (int64_t kind = 0; kind < 4 * TYPES; kind++) {
        const sp_dense_type type = types[kind % TYPES];
        const int64_t width = some[kind / TYPES], columns = 40 + 30 * (kind / TYPES);
        test_random random = test_seed((uint64_t)kind + 1);
        sp_dense x = random_dense(&random, a.cols, width, width, type, TEST_SIGNED), results[2];
        const size_t column = bytes_of(&x) / (size_t)width + 4 * (size_t)a.rows;
        const size_t left = 8 * ((size_t)a.rows + 1) + 8 * (size_t)a.nnz + ROOM + (size_t)columns * column;
        sp_context *contexts[] = {whole, limited_context(left, NULL, NULL)};
        for (int i = 0; i < 2; i++) {
            sp_spmm_plan *plan;
            results[i] = make_dense(a.rows, width, width, SP_DENSE_F32);
            fill(&results[i], NAN);
            ck_ok(contexts[i], sp_spmm_plan_create(contexts[i], &a, width, NULL, &plan));
            ck_ok(contexts[i], sp_spmm_execute(plan, 1, &x, 0, &results[i]));
            sp_spmm_plan_free(plan);
        }
        test_expect(memcmp(results[0].values, results[1].values, bytes_of(&results[0])) == 0,
                    "type %d, width %lld: results differ out of core, where %lld columns fit", (int)type,
                    (long long)width, (long long)columns);
        for (int i = 0; i < 2; i++) free(results[i].values);
        free(x.values);
        sp_context_destroy(contexts[1]);
    }
    sp_csr_free(host, &a);
    sp_context_destroy(whole);
    sp_context_destroy(host);
}

/* Arguments on the host, of A and of its transpose, beside those of the CPU. */
TEST(arguments_out_of_core_are_the_first_of_equals)
{
    sp_context *host = test_context(0, 2), *context = budget_context(NULL, NULL);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        test_random random = test_seed(seed);
        const int64_t rows = 900 + 50 * (int64_t)seed, width = 700 + test_below(&random, 30);
        const sp_spmm_options options = {.reduce = seed % 2 ? SP_REDUCE_MAX : SP_REDUCE_MIN,
                                         .transpose = seed / 2 % 2,
                                         .algorithm = (sp_spmm_algorithm)(seed / 4 % 2 + 1)};
        sp_csr a = large_sparse(host, &random, rows, rows, SP_F32);
        sp_dense x = random_dense(&random, rows, width, width + 1, SP_DENSE_F32, TEST_INTEGERS);
        sp_dense y[] = {make_dense(rows, width, width + 2, SP_DENSE_F32),
                        make_dense(rows, width, width + 2, SP_DENSE_F32)};
        const size_t bytes = (size_t)(rows * width) * sizeof(int64_t);
        int64_t *arguments[] = {malloc(bytes), malloc(bytes)};
        for (int64_t k = 0; k < a.nnz; k++) ((float *)a.values)[k] = 1;
        for (int i = 0; i < 2; i++) {
            sp_context *used = i ? context : host;
            sp_spmm_plan *plan;
            ck_assert_ptr_nonnull(arguments[i]);
            ck_ok(used, sp_spmm_plan_create(used, &a, width, &options, &plan));
            ck_ok(used, sp_spmm_execute_argument(plan, &x, &y[i], arguments[i]));
            sp_spmm_plan_free(plan);
        }
        test_expect(memcmp(arguments[0], arguments[1], bytes) == 0, "seed %llu: arguments",
                    (unsigned long long)seed);
        test_expect(memcmp(y[0].values, y[1].values, bytes_of(&y[0])) == 0, "seed %llu: values",
                    (unsigned long long)seed);
        for (int i = 0; i < 2; i++) free(y[i].values), free(arguments[i]);
        free(x.values);
        sp_csr_free(host, &a);
    }
    sp_context_destroy(context);
    sp_context_destroy(host);
}

/* X and Y have so many rows that 8 or 16 columns of X fit, once or twice: even so the bits are those in core. */
TEST(narrow_tiles_have_the_bits_of_products_in_core)
{
    sp_context *host = test_context(0, 1), *contexts[] = {test_context(1, 2), budget_context(NULL, NULL)};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        test_random random = test_seed(seed);
        const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT,
                                         .reduce = seed % 4 == 3 ? SP_REDUCE_MAX : SP_REDUCE_SUM};
        const int64_t rows = 8000 + 4000 * (int64_t)seed, width = seed % 2 ? 49 + test_below(&random, 40) : 64;
        const double beta = seed % 4 == 0 ? -0.5 : 0;
        sp_csr a = large_sparse(host, &random, rows, rows, SP_F32);
        sp_dense x = random_dense(&random, rows, width, width, SP_DENSE_F32, TEST_SIGNED);
        sp_dense y = random_dense(&random, rows, width, width, SP_DENSE_F32, TEST_SIGNED), results[2];
        for (int i = 0; i < 2; i++) {
            sp_dense x_used = seed % 3 ? pinned_clone(&x) : clone(&x);
            sp_spmm_plan *plan;
            results[i] = seed % 3 ? pinned_clone(&y) : clone(&y);
            ck_ok(contexts[i], sp_spmm_plan_create(contexts[i], &a, width, &options, &plan));
            ck_ok(contexts[i], sp_spmm_execute(plan, 1, &x_used, beta, &results[i]));
            sp_spmm_plan_free(plan);
            if (seed % 3) free_pinned(&x_used);
            else free(x_used.values);
        }
        test_expect(memcmp(results[0].values, results[1].values, bytes_of(&y)) == 0,
                    "seed %llu: %lld rows, width %lld differ out of core", (unsigned long long)seed, (long long)rows,
                    (long long)width);
        for (int i = 0; i < 2; i++) {
            if (seed % 3) free_pinned(&results[i]);
            else free(results[i].values);
        }
        free_all(x.values, y.values);
        sp_csr_free(host, &a);
    }
    for (int i = 0; i < 2; i++) sp_context_destroy(contexts[i]);
    sp_context_destroy(host);
}

/* X has so many rows that no tile of its columns fits: sums by ranges of rows, and no extremes. */
TEST(ranges_of_x_are_summed_where_no_tile_fits)
{
    static const struct {
        int64_t rows, cols, width, gap;
        sp_dense_type x, y;
        double beta;
    } cases[] = {
        {3000, 99000, 32, 0, SP_DENSE_F32, SP_DENSE_F32, 0},  {500, 1000000, 1, 0, SP_DENSE_F32, SP_DENSE_F32, 0.5},
        {2000, 99000, 77, 3, SP_DENSE_F32, SP_DENSE_F32, -2}, {1000, 99000, 50, 0, SP_DENSE_F64, SP_DENSE_F64, 1},
        {2000, 99000, 64, 8, SP_DENSE_F16, SP_DENSE_F16, 3},  {2000, 99000, 40, 1, SP_DENSE_BF16, SP_DENSE_F32, 0},
    };
    sp_context *host = test_context(0, 1), *context = budget_context(NULL, NULL);
    for (int kind = 0; kind < 4 * (int)(COUNT(cases)); kind++) {
        const int c = kind / 4;
        if (test_is_brief() && kind % 4 != c % 4) continue;
        test_random random = test_seed((uint64_t)kind + 1);
        const sp_spmm_options options = {.reduce = kind % 2 ? SP_REDUCE_MEAN : SP_REDUCE_SUM,
                                         .algorithm = kind % 4 / 2 ? SP_SPMM_BLOCK_PARTITION : SP_SPMM_ROW_SPLIT};
        const sp_spmm_options extreme = {.reduce = SP_REDUCE_MAX};
        const int64_t stride = cases[c].width + cases[c].gap;
        scenario s = {.alpha = 1.25, .beta = cases[c].beta, .seed = (uint64_t)kind + 1};
        sp_spmm_plan *plan;
        s.a = large_sparse(host, &random, cases[c].rows, cases[c].cols,
                           cases[c].x == SP_DENSE_F64 ? SP_F64 : SP_F32);
        s.x = random_dense(&random, cases[c].cols, cases[c].width, stride, cases[c].x, TEST_SIGNED);
        s.y = random_dense(&random, cases[c].rows, cases[c].width, stride, cases[c].y, TEST_SIGNED);
        answer expected = reference(&(problem){&s.a, &s.x, options.reduce, false});
        run_scenario(context, &s, &options, &expected);
        ck_ok(context, sp_spmm_plan_create(context, &s.a, cases[c].width, &extreme, &plan));
        ck_assert_int_eq(sp_spmm_execute(plan, 1, &s.x, 0, &s.y), SP_ERROR_DEVICE_MEMORY);
        sp_spmm_plan_free(plan);
        free_answer(&expected);
        sp_csr_free(host, &s.a);
        free_all(s.x.values, s.y.values);
    }
    sp_context_destroy(context);
    sp_context_destroy(host);
}

/* A tile of Y takes more than the budget, the blocks of its rows do not. And where lanes are dealt to two entries the
 * one tile of X does not fit, but narrower ones do. */
TEST(tall_results_go_out_in_blocks)
{
    sp_context *host = test_context(0, 1), *context = budget_context(NULL, NULL);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_random random = test_seed(seed);
        const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT,
                                         .reduce = seed % 2 ? SP_REDUCE_SUM : SP_REDUCE_MAX};
        const int64_t cols = seed > 4 ? 20000 : 2000, width = seed > 4 ? 40 : 70, stride = seed > 4 ? 40 : 72;
        scenario s = {.alpha = 1.25, .beta = seed > 2 ? 0.5 : 0, .seed = seed};
        s.a = large_sparse(host, &random, 25000, cols, SP_F32);
        s.x = random_dense(&random, cols, width, stride, SP_DENSE_F32, TEST_SIGNED);
        s.y = random_dense(&random, 25000, width, stride, SP_DENSE_F32, TEST_SIGNED);
        run_and_free(context, host, &s, &options);
    }
    sp_context_destroy(context);
    sp_context_destroy(host);
}

/* X of 99,000 rows takes more than the budget in any tile, and maxima have no ranges. Nothing is lost by trying: as
 * much fits as before. */
TEST(what_no_tile_fits_is_refused)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    volatile int flag = 0;
    sp_context *host = test_context(0, 1), *context = budget_context(&allocator, &flag);
    test_random random = test_seed(5);
    const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT, .reduce = SP_REDUCE_MAX};
    sp_csr a = large_sparse(host, &random, 2000, 99000, SP_F32);
    sp_dense x = random_dense(&random, 99000, 64, 64, SP_DENSE_F32, TEST_SIGNED);
    sp_dense y = make_dense(2000, 64, 64, SP_DENSE_F32), most;
    sp_csr small = large_sparse(host, &random, 1500, 1500, SP_F32);
    sp_dense wide = random_dense(&random, 1500, 600, 600, SP_DENSE_F32, TEST_SIGNED);
    sp_dense made = make_dense(1500, 600, 600, SP_DENSE_F32);
    sp_spmm_plan *plan, *fitting;
    ck_ok(context, sp_spmm_plan_create(context, &a, 64, &options, &plan));
    ck_ok(context, sp_spmm_plan_create(context, &small, 600, NULL, &fitting));
    ck_ok(context, sp_spmm_execute(fitting, 1, &wide, 0, &made));
    const int64_t before = heap.live_blocks;
    int64_t rows = BUDGET / 1024;
    finish_device();
    while (sp_dense_create(context, rows, 256, SP_DENSE_F32, SP_DEVICE, &most) != SP_OK) rows--;
    sp_dense_free(context, &most);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(sp_spmm_execute(plan, 1, &x, 0, &y), SP_ERROR_DEVICE_MEMORY);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), "bytes"));
        ck_ok(context, sp_spmm_execute(fitting, 1, &wide, 0, &made));
        flag = 1;
        ck_assert_int_eq(sp_spmm_execute(fitting, 1, &wide, 0, &made), SP_ERROR_INTERRUPTED);
        flag = 0;
        ck_assert_int_eq(heap.live_blocks, before);
    }
    finish_device();
    ck_ok(context, sp_dense_create(context, rows, 256, SP_DENSE_F32, SP_DEVICE, &most));
    sp_dense_free(context, &most);
    sp_spmm_plan_free(plan);
    sp_spmm_plan_free(fitting);
    sp_context_destroy(context);
    test_free(host, &a, &small);
    sp_context_destroy(host);
    free_all(x.values, y.values, wide.values, made.values);
}

/* Pageable operands go through buffers that a plan keeps: those that cannot be had fail the product alone. */
TEST(failed_allocations_out_of_core_leave_nothing)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *host = test_context(0, 1), *context = budget_context(&allocator, NULL);
    test_random random = test_seed(6);
    sp_csr a = large_sparse(host, &random, 1500, 1500, SP_F32);
    sp_dense x = random_dense(&random, 1500, 700, 700, SP_DENSE_F32, TEST_SIGNED);
    sp_dense y = make_dense(1500, 700, 700, SP_DENSE_F32), expected = make_dense(1500, 700, 700, SP_DENSE_F32);
    sp_spmm_plan *plan;
    const int64_t empty = heap.live_blocks;
    int64_t kept;
    ck_ok(context, sp_spmm_plan_create(context, &a, 700, NULL, &plan));
    kept = heap.live_blocks;
    for (int64_t n = 0;; n++) {
        const int64_t before = heap.live_blocks;
        heap.allocations = 0;
        heap.fail_at = n;
        const sp_status status = sp_spmm_execute(plan, 1, &x, 0, &y);
        heap.fail_at = -1;
        if (status == SP_OK) break;
        ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        test_expect(heap.live_blocks - before <= n, "allocation %lld: %lld blocks more", (long long)n,
                    (long long)(heap.live_blocks - before));
        ck_assert_int_lt(n, 20);
    }
    ck_assert_int_gt(heap.live_blocks, kept);
    ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &expected));
    ck_assert_mem_eq(y.values, expected.values, bytes_of(&y));
    sp_spmm_plan_free(plan);
    ck_assert_int_eq(heap.live_blocks, empty);
    sp_context_destroy(context);
    sp_csr_free(host, &a);
    sp_context_destroy(host);
    free_all(x.values, y.values, expected.values);
}

/* ---- over the edges ------------------------------------------------------------------------------------ */

/* Values that a call wrote or changes in place, in the space where the context computes. */
static void *to_space(sp_context *context, const void *values, size_t bytes)
{
    sp_dense m = {1, (int64_t)bytes / 4, (int64_t)bytes / 4, (void *)(uintptr_t)values, SP_DENSE_F32, SP_HOST}, copy;
    ck_ok(context, sp_dense_copy(context, &m, sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST, &copy));
    return copy.values;
}

static void from_space(sp_context *context, void *values, size_t bytes, void *to)
{
    const sp_space space = sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST;
    sp_dense m = {1, (int64_t)bytes / 4, (int64_t)bytes / 4, values, SP_DENSE_F32, space}, copy;
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

static const test_entry tests[] = {
    CASE("products", 600),
    ON_DEVICES(random_products_agree_with_the_reference),
    ON_DEVICES(communities_agree_with_the_reference),
    ON_DEVICES(rows_of_x_may_lie_across_lines),
    ON_CUDA(products_out_of_core_have_the_bits_of_those_in_core),
    ON_CUDA(panels_out_of_core_have_the_bits_of_those_in_core),
    ON_CUDA(short_ranges_are_products_of_any_features),
    ON_CUDA(arguments_out_of_core_are_the_first_of_equals),
    ON_CUDA(narrow_tiles_have_the_bits_of_products_in_core),
    ON_CUDA(ranges_of_x_are_summed_where_no_tile_fits),
    ON_CUDA(tall_results_go_out_in_blocks),
    ON_CUDA(what_no_tile_fits_is_refused),
    ON_CUDA(failed_allocations_out_of_core_leave_nothing),
    CASE("promises", 120),
    ON_DEVICES(arguments_are_the_first_of_equals),
    ON_DEVICES(hubs_of_many_thousand_entries_sum_to_five_digits),
    ON_DEVICES(new_values_replace_the_old_ones),
    ON_DEVICES(empty_shapes_and_other_widths_are_products_too),
    ON_DEVICES(sixteen_bits_are_read_and_rounded_right),
    ON_DEVICES(bad_arguments_are_refused),
    TURNS(interrupts_end_the_product, ALGORITHMS),
    ONCE(large_results_are_the_same_past_the_caches),
    ONCE(extremes_by_ranges_have_the_bits_of_row_split),
    ONCE(ranges_are_chosen_where_gathers_come_from_far),
    ONCE(failed_allocations_leave_nothing),
    CASE("edges", 120),
    ON_DEVICES(sampled_products_agree_with_the_reference),
    ON_DEVICES(softmax_and_its_gradient_agree_with_finite_differences),
    ON_DEVICES(softmax_of_large_values_is_finite),
    {0},
};

int main(void) { return test_run("spmm", tests); }
