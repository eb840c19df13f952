/* What the parts of test_spmm share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmm_shared.h"

double small_value(uint16_t bits, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const double fraction = ldexp(bits & ((1 << fraction_bits) - 1), -fraction_bits);
    const double size = exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
    if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : bits >> 15 ? -INFINITY : INFINITY;
    return bits >> 15 ? -size : size;
}

uint16_t small_bits(double value, int exponent_bits, int fraction_bits)
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

static size_t size_of(sp_dense_type type) { return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2; }

double get(const sp_dense *m, int64_t row, int64_t col)
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

size_t bytes_of(const sp_dense *m) { return (size_t)(m->rows * m->stride) * size_of(m->type) + 1; }

sp_dense make_dense(int64_t rows, int64_t cols, int64_t stride, sp_dense_type type)
{
    sp_dense m = {.rows = rows, .cols = cols, .stride = stride, .type = type, .space = SP_HOST};
    m.values = test_block(bytes_of(&m));
    memset(m.values, FILLER, bytes_of(&m));
    return m;
}

sp_dense random_dense(test_random *random, int64_t rows, int64_t cols, int64_t stride, sp_dense_type type,
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

void fill(sp_dense *m, double value)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) set(m, i, j, value);
}

sp_dense clone(const sp_dense *m)
{
    sp_dense copy = make_dense(m->rows, m->cols, m->stride, m->type);
    memcpy(copy.values, m->values, bytes_of(m));
    return copy;
}

void check_gaps(const sp_dense *m, uint64_t seed)
{
    const size_t size = size_of(m->type);
    for (int64_t i = 0; i < m->rows; i++) {
        const unsigned char *row = (const unsigned char *)m->values + (size_t)(i * m->stride) * size;
        for (size_t b = (size_t)m->cols * size; b < (size_t)m->stride * size; b++)
            test_expect(row[b] == FILLER, "seed %llu: row %lld was written past its end", (unsigned long long)seed,
                        (long long)i);
    }
}

sp_csr random_sparse(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type,
                     test_values values)
{
    double *numbers = test_zeros((size_t)(rows * cols) + 1, sizeof *numbers);
    const int law = (int)test_below(random, 5);
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
    if (values == TEST_PATTERN) test_drop_values(host, &matrix);
    return matrix;
}

static int64_t rows_of(const problem *p) { return p->transpose ? p->a->cols : p->a->rows; }

answer reference(const problem *p)
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

void free_answer(answer *r) { free_all(r->value, r->size, r->argument, r->count); }

double tolerance(sp_dense_type type)
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

void check_product(const sp_dense *y, const sp_dense *before, const answer *r, double alpha, double beta,
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

/* The matrix in the back end's space, or a shallow copy of it where it is. */
static sp_csr place_sparse(sp_context *context, const sp_csr *a, bool move)
{
    sp_csr placed = *a;
    if (move) ck_ok(context, sp_csr_copy(context, a, SP_DEVICE, &placed));
    return placed;
}

sp_dense place_dense(sp_context *context, const sp_dense *m, bool move)
{
    sp_dense placed = *m, whole = *m;
    whole.cols = m->stride;
    if (move) ck_ok(context, sp_dense_copy(context, &whole, SP_DEVICE, &placed));
    placed.cols = m->cols;
    return placed;
}

void fetch_dense(sp_context *context, sp_dense *placed, sp_dense *m)
{
    sp_dense copy;
    if (placed->space == SP_HOST) return;
    ck_ok(context, sp_dense_copy(context, placed, SP_HOST, &copy));
    for (int64_t i = 0; i < m->rows; i++)
        memcpy((char *)m->values + (size_t)(i * m->stride) * size_of(m->type),
               (char *)copy.values + (size_t)(i * m->cols) * size_of(m->type), (size_t)m->cols * size_of(m->type));
    test_free_dense(context, &copy, placed);
}

void run_scenario(sp_context *context, scenario *s, const sp_spmm_options *options, const answer *expected)
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

void run_and_free(sp_context *context, sp_context *host, scenario *s, const sp_spmm_options *options)
{
    answer expected = reference(&(problem){&s->a, &s->x, options->reduce, options->transpose});
    run_scenario(context, s, options, &expected);
    free_answer(&expected);
    sp_csr_free(host, &s->a);
    free_all(s->x.values, s->y.values);
}

sp_csr random_communities(sp_context *host, int kind)
{
    sp_csr a;
    char spec[100];
    snprintf(spec, sizeof spec, "community:20011,%d,16000,50,%d,80,%d", 130 + kind * 10, 501 + kind * 72, kind % 2);
    ck_ok(host, generate_matrix(host, spec, (uint64_t)kind + 1, SP_F32, &a));
    return a;
}

sp_csr large_sparse(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type)
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
