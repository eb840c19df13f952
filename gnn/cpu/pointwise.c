/* Operations number by number on the CPU: Y = dropout(activation(X + bias)) and its gradient, copies, sums, sums of
 * columns, gathered rows. One loop a row, compiled for f32 and f64; threads share the rows.
 *
 * Dropout masks are functions of the place and are not stored. The gradient needs only Y: for ReLU it is 0 where X
 * was negative or dropped; ELU is exp(x) - 1 below 0, so its derivative exp(x) is Y / scale + 1.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "lanes.h"

/* Numbers of an array, and rows of a matrix, that are taken at a time. */
enum { PIECE = 4096, ROWS_AT_ONCE = 16 };

cpu_mask gnn_cpu_mask(const gnn_engine *engine, const gnn_pointwise *how)
{
    return (cpu_mask){engine->seed, how->site, gnn_drop_bound(how->rate), engine->step,
                      how->rate < 1 ? 1 / (1 - how->rate) : 0, how->activation};
}

static inline bool dropped(const cpu_mask *how, int64_t index)
{
    return how->bound && gnn_random(how->seed, how->step, how->site, index) >> 40 < how->bound;
}

/* The value or 0, without a branch: one on random numbers is mispredicted half the time (6.5 ns a number instead of
 * 2.6). */
static inline float float_or_0(float value, bool kept)
{
    return float_of_bits(bits_of_float(value) & -(uint32_t)kept);
}

static inline double double_or_0(double value, bool kept)
{
    return double_of_bits(bits_of_double(value) & -(uint64_t)kept);
}

/* NaN stays NaN, so that a diverged model is noticed. `first` is the index of the row's first number. */
#define ROWS(type, exp_minus_1)                                                                                    \
    static void forward_##type(const cpu_mask *how, int64_t first, const type *x, const type *bias, type *y,       \
                               int64_t cols)                                                                       \
    {                                                                                                              \
        const cpu_mask own = *how;                                                                                 \
        const type scale = (type)own.scale;                                                                        \
        for (int64_t j = 0; j < cols; j++) {                                                                       \
            type value = bias ? x[j] + bias[j] : x[j];                                                             \
            if (own.activation == GNN_RELU) value = value <= 0 ? 0 : value;                                        \
            else if (own.activation == GNN_ELU && value <= 0) value = exp_minus_1(value);                          \
            y[j] = value;                                                                                          \
        }                                                                                                          \
        if (own.bound)                                                                                             \
            for (int64_t j = 0; j < cols; j++) y[j] = type##_or_0(y[j] * scale, !dropped(&own, first + j));        \
    }                                                                                                              \
    static void backward_##type(const cpu_mask *how, int64_t first, const type *y, const type *dy, type *dx,       \
                                int64_t cols)                                                                      \
    {                                                                                                              \
        const cpu_mask own = *how;                                                                                 \
        const type scale = (type)own.scale;                                                                        \
        if (own.activation == GNN_RELU)                                                                            \
            for (int64_t j = 0; j < cols; j++) dx[j] = y[j] == 0 ? 0 : dy[j] * scale;                              \
        else                                                                                                       \
            for (int64_t j = 0; j < cols; j++) {                                                                   \
                const bool linear = own.activation == GNN_LINEAR || y[j] > 0;                                      \
                dx[j] = dropped(&own, first + j) ? 0 : dy[j] * (linear ? scale : y[j] + scale);                    \
            }                                                                                                      \
    }                                                                                                              \
    static void add_##type(double alpha, const type *from, type *to, int64_t cols)                                 \
    {                                                                                                              \
        const type by = (type)alpha;                                                                               \
        for (int64_t j = 0; j < cols; j++) to[j] += by * from[j];                                                  \
    }                                                                                                              \
    static void larger_##type(const type *x, type *y, int64_t cols)                                                \
    {                                                                                                              \
        for (int64_t j = 0; j < cols; j++) y[j] = y[j] >= x[j] || y[j] != y[j] ? y[j] : x[j];                      \
    }                                                                                                              \
    static void take_##type(const type *x, const type *y, type *left, type *dx, int64_t cols)                      \
    {                                                                                                              \
        for (int64_t j = 0; j < cols; j++) {                                                                       \
            dx[j] += x[j] == y[j] ? left[j] : 0;                                                                   \
            left[j] = x[j] == y[j] ? 0 : left[j];                                                                  \
        }                                                                                                          \
    }                                                                                                              \
    static void fill_##type(double value, type *to, int64_t cols)                                                  \
    {                                                                                                              \
        for (int64_t j = 0; j < cols; j++) to[j] = (type)value;                                                    \
    }                                                                                                              \
    static void sum_##type(const type *x, double *sums, int64_t cols)                                              \
    {                                                                                                              \
        for (int64_t j = 0; j < cols; j++) sums[j] += (double)x[j];                                                \
    }

ROWS(float, expm1f)
ROWS(double, expm1)

/* The same for rows of bf16, a few numbers at a time in f32. Sums are of numbers that are not rounded yet. */
enum { FEW = 512 };
#define IN_PIECES(count) for (int64_t at = 0, some; some = count - at < FEW ? count - at : FEW, at < count; at += FEW)

static void forward_half(const cpu_mask *how, int64_t first, const uint16_t *x, const float *bias, uint16_t *y,
                         int64_t cols)
{
    float row[FEW];
    IN_PIECES(cols)
    {
        gnn_cpu_widen_row(x + at, row, some);
        forward_float(how, first + at, row, bias ? bias + at : NULL, row, some);
        gnn_cpu_round_row(row, y + at, some);
    }
}

static void backward_half(const cpu_mask *how, int64_t first, const uint16_t *y, const uint16_t *dy, uint16_t *dx,
                          int64_t cols, double *sums)
{
    float row[FEW], gradient[FEW];
    IN_PIECES(cols)
    {
        gnn_cpu_widen_row(y + at, row, some);
        gnn_cpu_widen_row(dy + at, gradient, some);
        backward_float(how, first + at, row, gradient, gradient, some);
        if (sums) sum_float(gradient, sums + at, some);
        gnn_cpu_round_row(gradient, dx + at, some);
    }
}

static void add_half(double alpha, const uint16_t *from, uint16_t *to, int64_t cols)
{
    float row[FEW], sum[FEW];
    IN_PIECES(cols)
    {
        gnn_cpu_widen_row(from + at, row, some);
        gnn_cpu_widen_row(to + at, sum, some);
        add_float(alpha, row, sum, some);
        gnn_cpu_round_row(sum, to + at, some);
    }
}

static void larger_half(const uint16_t *x, uint16_t *y, int64_t cols)
{
    float row[FEW], most[FEW];
    IN_PIECES(cols)
    {
        gnn_cpu_widen_row(x + at, row, some);
        gnn_cpu_widen_row(y + at, most, some);
        larger_float(row, most, some);
        gnn_cpu_round_row(most, y + at, some);
    }
}

static void take_half(const uint16_t *x, const uint16_t *y, uint16_t *left, uint16_t *dx, int64_t cols)
{
    float row[FEW], most[FEW], rest[FEW], gradient[FEW];
    IN_PIECES(cols)
    {
        gnn_cpu_widen_row(x + at, row, some);
        gnn_cpu_widen_row(y + at, most, some);
        gnn_cpu_widen_row(left + at, rest, some);
        gnn_cpu_widen_row(dx + at, gradient, some);
        take_float(row, most, rest, gradient, some);
        gnn_cpu_round_row(rest, left + at, some);
        gnn_cpu_round_row(gradient, dx + at, some);
    }
}

static void fill_half(double value, uint16_t *to, int64_t cols)
{
    const uint16_t number = bf16_of_float((float)value);
    for (int64_t j = 0; j < cols; j++) to[j] = number;
}

static void sum_half(const uint16_t *x, double *sums, int64_t cols)
{
    float row[FEW];
    IN_PIECES(cols)
    {
        gnn_cpu_widen_row(x + at, row, some);
        sum_float(row, sums + at, some);
    }
}

/* ---- f32 and bf16, sixteen numbers at once --------------------------------------------------------------- */

#if defined __x86_64__
/* Dropout as the rows above: 0.35 ns a number instead of 1.75, and the way back with its sums 0.25 instead of 2.7. */
AVX512 static void forward_lanes(const cpu_mask *how, const sp_dense *x, const float *bias, sp_dense *y, int64_t begin,
                                 int64_t end)
{
    const bool half = x->type == SP_DENSE_BF16;
    const uint64_t stream = gnn_stream(how->seed, how->step, how->site);
    const __m512 zero = _mm512_setzero_ps(), scale = _mm512_set1_ps((float)how->scale);
    for (int64_t i = begin; i < end; i++) {
        const void *from = cpu_row(x, i);
        void *to = cpu_row(y, i);
        for (int64_t j = 0; j < x->cols; j += LANES) {
            const __mmask16 some = lanes_first(x->cols - j);
            __m512 value = lanes_load(from, j, some, half);
            if (bias) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(some, bias + j));
            const __mmask16 negative = _mm512_cmp_ps_mask(value, zero, _CMP_LE_OQ);
            if (how->activation == GNN_RELU) value = _mm512_mask_mov_ps(value, negative, zero);
            else if (how->activation == GNN_ELU && negative)
                value = _mm512_mask_mov_ps(value, negative, lanes_exponential_minus_1(value));
            if (how->bound)
                value = _mm512_maskz_mul_ps(lanes_kept(stream, i * x->cols + j, how->bound), value, scale);
            lanes_store(to, j, some, value, half);
        }
    }
}

/* Sixteen columns from `j` on of some rows. Sums are of numbers that are not rounded yet. */
AVX512 static void backward_columns(const cpu_mask *how, const sp_dense *y, const sp_dense *y_gradient,
                                    sp_dense *x_gradient, int64_t begin, int64_t end, int64_t j, double *sums)
{
    const uint64_t stream = gnn_stream(how->seed, how->step, how->site);
    const __mmask16 some = lanes_first(y->cols - j);
    const bool half = y->type == SP_DENSE_BF16;
    const __m512 zero = _mm512_setzero_ps(), scale = _mm512_set1_ps((float)how->scale);
    __m512d low = _mm512_setzero_pd(), high = low;
    if (sums) {
        low = _mm512_maskz_loadu_pd((__mmask8)some, sums + j);
        high = _mm512_maskz_loadu_pd((__mmask8)(some >> 8), sums + j + 8);
    }
    for (int64_t i = begin; i < end; i++) {
        const __m512 value = lanes_load(cpu_row(y, i), j, some, half);
        __m512 gradient = lanes_load(cpu_row(y_gradient, i), j, some, half);
        __mmask16 kept = 0xffff;
        if (how->activation == GNN_RELU) kept = _mm512_cmp_ps_mask(value, zero, _CMP_NEQ_UQ);
        else if (how->bound) kept = lanes_kept(stream, i * y->cols + j, how->bound);
        const __mmask16 curved = how->activation == GNN_ELU ? _mm512_cmp_ps_mask(value, zero, _CMP_NGT_UQ) : 0;
        gradient = _mm512_maskz_mul_ps(kept, gradient, _mm512_mask_add_ps(scale, curved, value, scale));
        lanes_store(cpu_row(x_gradient, i), j, some, gradient, half);
        low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(gradient)));
        high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(gradient, 1)));
    }
    if (!sums) return;
    _mm512_mask_storeu_pd(sums + j, (__mmask8)some, low);
    _mm512_mask_storeu_pd(sums + j + 8, (__mmask8)(some >> 8), high);
}

/* Sums stay in registers for a few rows, which the first-level cache holds from one group of columns to the next. */
AVX512 static void backward_lanes(const cpu_mask *how, const sp_dense *y, const sp_dense *y_gradient,
                                  sp_dense *x_gradient, int64_t begin, int64_t end, double *sums)
{
    for (int64_t i = begin; i < end; i += ROWS_AT_ONCE)
        for (int64_t j = 0; j < y->cols; j += LANES)
            backward_columns(how, y, y_gradient, x_gradient, i, end - i < ROWS_AT_ONCE ? end : i + ROWS_AT_ONCE, j,
                             sums);
}

#else
#define forward_lanes(...) ((void)0)
#define backward_lanes(...) ((void)0)
#endif

/* The function of a matrix's type. */
#define OF_TYPE(of, call, ...)                                                                                     \
    do {                                                                                                           \
        if ((of) == SP_DENSE_F32) call##_float(__VA_ARGS__);                                                       \
        else if ((of) == SP_DENSE_F64) call##_double(__VA_ARGS__);                                                 \
        else call##_half(__VA_ARGS__);                                                                             \
    } while (0)

void gnn_cpu_forward_rows(const cpu_mask *how, const sp_dense *x, const void *bias, sp_dense *y, int64_t begin,
                          int64_t end)
{
    if (have_lanes(x->type)) {
        forward_lanes(how, x, bias, y, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        OF_TYPE(x->type, forward, how, i * x->cols, cpu_row(x, i), bias, cpu_row(y, i), x->cols);
}

sp_status gnn_cpu_forward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *x, const void *bias,
                          sp_dense *y)
{
    const cpu_mask own = gnn_cpu_mask(engine, how);
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, x->rows * x->cols))
    for (int64_t i = 0; i < x->rows; i += ROWS_AT_ONCE)
        gnn_cpu_forward_rows(&own, x, bias, y, i, x->rows - i < ROWS_AT_ONCE ? x->rows : i + ROWS_AT_ONCE);
    return SP_OK;
}

void gnn_cpu_backward_rows(const cpu_mask *how, const sp_dense *y, const sp_dense *y_gradient, sp_dense *x_gradient,
                           int64_t begin, int64_t end, double *sums)
{
    const int64_t cols = y->cols;
    if (have_lanes(y->type)) {
        backward_lanes(how, y, y_gradient, x_gradient, begin, end, sums);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const void *from = cpu_row(y, i), *dy = cpu_row(y_gradient, i);
        void *dx = cpu_row(x_gradient, i);
        if (y->type == SP_DENSE_F32) {
            backward_float(how, i * cols, from, dy, dx, cols);
            if (sums) sum_float(dx, sums, cols);
        } else if (y->type == SP_DENSE_BF16) {
            backward_half(how, i * cols, from, dy, dx, cols, sums);
        } else {
            backward_double(how, i * cols, from, dy, dx, cols);
            if (sums) sum_double(dx, sums, cols);
        }
    }
}

typedef struct backward_job {
    cpu_mask how;
    const sp_dense *y, *y_gradient;
    sp_dense *x_gradient;
} backward_job;

static void backward_some(const void *job, int64_t begin, int64_t end, double *sums)
{
    const backward_job *b = job;
    gnn_cpu_backward_rows(&b->how, b->y, b->y_gradient, b->x_gradient, begin, end, sums);
}

sp_status gnn_cpu_backward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *y,
                           const sp_dense *y_gradient, sp_dense *x_gradient, void *sums)
{
    const backward_job job = {gnn_cpu_mask(engine, how), y, y_gradient, x_gradient};
    if (sums) return gnn_cpu_sum_rows(engine, backward_some, &job, y->rows, y->cols, y->type, sums);
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, y->rows * y->cols))
    for (int64_t i = 0; i < y->rows; i += ROWS_AT_ONCE)
        backward_some(&job, i, y->rows - i < ROWS_AT_ONCE ? y->rows : i + ROWS_AT_ONCE, NULL);
    return SP_OK;
}

sp_status gnn_cpu_drop(gnn_engine *engine, double rate, uint64_t site, int64_t count, const void *x,
                       sp_dense_type type, void *y)
{
    const gnn_pointwise how = {.activation = GNN_LINEAR, .rate = rate, .site = site};
    const cpu_mask own = gnn_cpu_mask(engine, &how);
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, count))
    for (int64_t from = 0; from < count; from += PIECE) {
        const int64_t some = count - from < PIECE ? count - from : PIECE;
        if (type == SP_DENSE_F32)
            forward_float(&own, from, (const float *)x + from, NULL, (float *)y + from, some);
        else forward_double(&own, from, (const double *)x + from, NULL, (double *)y + from, some);
    }
    return SP_OK;
}

sp_status gnn_cpu_copy(gnn_engine *engine, const sp_dense *from, sp_dense *to)
{
    const size_t bytes = (size_t)from->cols * number_size(from->type);
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, from->rows * from->cols / 2))
    for (int64_t i = 0; i < from->rows; i++) memcpy(cpu_row(to, i), cpu_row(from, i), bytes);
    return SP_OK;
}

sp_status gnn_cpu_round(gnn_engine *engine, const sp_dense *from, sp_dense *to)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, from->rows * from->cols / 2))
    for (int64_t i = 0; i < from->rows; i++)
        gnn_cpu_round_row(cpu_row(from, i), cpu_row(to, i), from->cols);
    return SP_OK;
}

sp_status gnn_cpu_fill(gnn_engine *engine, double value, sp_dense *to)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, to->rows * to->cols / 4))
    for (int64_t i = 0; i < to->rows; i++)
        OF_TYPE(to->type, fill, value, cpu_row(to, i), to->cols);
    return SP_OK;
}

sp_status gnn_cpu_add(gnn_engine *engine, double alpha, const sp_dense *from, sp_dense *to)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, to->rows * to->cols / 2))
    for (int64_t i = 0; i < to->rows; i++)
        OF_TYPE(to->type, add, alpha, cpu_row(from, i), cpu_row(to, i), to->cols);
    return SP_OK;
}

sp_status gnn_cpu_larger(gnn_engine *engine, const sp_dense *x, sp_dense *y)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, y->rows * y->cols / 2))
    for (int64_t i = 0; i < y->rows; i++)
        OF_TYPE(y->type, larger, cpu_row(x, i), cpu_row(y, i), y->cols);
    return SP_OK;
}

sp_status gnn_cpu_larger_backward(gnn_engine *engine, const sp_dense *x, const sp_dense *y, sp_dense *left,
                                  sp_dense *x_gradient)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, y->rows * y->cols))
    for (int64_t i = 0; i < y->rows; i++) {
        void *rest = cpu_row(left, i), *dx = cpu_row(x_gradient, i);
        OF_TYPE(y->type, take, cpu_row(x, i), cpu_row(y, i), rest, dx, y->cols);
    }
    return SP_OK;
}

static void add_rows(const void *job, int64_t begin, int64_t end, double *sums)
{
    const sp_dense *x = job;
    for (int64_t i = begin; i < end; i++)
        OF_TYPE(x->type, sum, cpu_row(x, i), sums, x->cols);
}

sp_status gnn_cpu_column_sums(gnn_engine *engine, const sp_dense *x, void *sums)
{
    return gnn_cpu_sum_rows(engine, add_rows, x, x->rows, x->cols, x->type, sums);
}

sp_status gnn_cpu_gather_rows(gnn_engine *engine, const sp_dense *x, const int32_t *rows, sp_dense *y)
{
    const size_t bytes = (size_t)x->cols * number_size(x->type);
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, y->rows * (y->cols / 2 + 8)))
    for (int64_t i = 0; i < y->rows; i++) memcpy(cpu_row(y, i), cpu_row(x, rows[i]), bytes);
    return SP_OK;
}
