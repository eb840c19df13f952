/* Norms over columns (batch) and rows (layer) on the CPU: Y = (X - mean) · inverse · scale + shift, where inverse = 1 /
 * √(variance + ε). Back, with N = (X - mean) · inverse: dshift = Σ dY, dscale = Σ dY ∘ N over the rows, and
 *
 *   dX = inverse · (D - mean(D) - N · mean(D ∘ N)),  D = dY · scale, means over each column or row;
 *
 * over columns these means are shift's and scale's gradients, and with running numbers, which are constants, they drop
 * out. Variances are means of squared distances from the mean, so that nothing cancels. Sums over columns do not
 * depend on the number of threads (gnn_cpu_sum_rows). */
#include <math.h>

#include "backend.h"

typedef struct normal_job {
    gnn_normal how;
    const sp_dense *x, *dy;
    sp_dense *to;                             /* Y, or dX */
    const void *scale_gradient, *shift_gradient;
} normal_job;

/* Row i. sum_*: what it adds to a column's sums. */
#define ROWS(type)                                                                                                   \
    static void sum_##type(const normal_job *job, int64_t i, double *sums)                                           \
    {                                                                                                                \
        const type *x = cpu_row(job->x, i);                                                                          \
        for (int64_t j = 0; j < job->x->cols; j++) sums[j] += (double)x[j];                                          \
    }                                                                                                                \
    static void sum_squares_##type(const normal_job *job, int64_t i, double *sums)                                   \
    {                                                                                                                \
        const type *x = cpu_row(job->x, i), *mean = job->how.mean;                                                   \
        for (int64_t j = 0; j < job->x->cols; j++) sums[j] += (double)((x[j] - mean[j]) * (x[j] - mean[j]));         \
    }                                                                                                                \
    static void sum_scale_##type(const normal_job *job, int64_t i, double *sums)                                     \
    {                                                                                                                \
        const bool batch = job->how.norm == GNN_NORM_BATCH;                                                          \
        const type *x = cpu_row(job->x, i), *dy = cpu_row(job->dy, i);                                               \
        const type *mean = job->how.mean, *inverse = job->how.inverse;                                               \
        for (int64_t j = 0; j < job->x->cols; j++) {                                                                 \
            const int64_t k = batch ? j : i;                                                                         \
            sums[j] += (double)(dy[j] * (x[j] - mean[k]) * inverse[k]);                                              \
        }                                                                                                            \
    }                                                                                                                \
    static void finish_columns_##type(const gnn_normal *how, int64_t rows, int64_t cols)                             \
    {                                                                                                                \
        type *mean = how->mean, *inverse = how->inverse;                                                             \
        type *running_mean = how->running_mean, *running_variance = how->running_variance;                           \
        for (int64_t j = 0; j < cols; j++) {                                                                         \
            if (how->fixed) {                                                                                        \
                mean[j] = running_mean[j];                                                                           \
                inverse[j] = running_variance[j];                                                                    \
            } else {                                                                                                 \
                const type sample = inverse[j] * (type)rows / (type)(rows > 1 ? rows - 1 : 1);                       \
                running_mean[j] += (type)GNN_NORM_MOMENTUM * (mean[j] - running_mean[j]);                            \
                running_variance[j] += (type)GNN_NORM_MOMENTUM * (sample - running_variance[j]);                     \
            }                                                                                                        \
            inverse[j] = (type)(1 / sqrt((double)inverse[j] + GNN_NORM_LEAST));                                      \
        }                                                                                                            \
    }                                                                                                                \
    static void divide_##type(type *sums, int64_t count, int64_t by)                                                 \
    {                                                                                                                \
        for (int64_t j = 0; j < count; j++) sums[j] /= (type)by;                                                     \
    }                                                                                                                \
    static void moments_of_row_##type(const normal_job *job, int64_t i)                                              \
    {                                                                                                                \
        const type *x = cpu_row(job->x, i);                                                                          \
        const int64_t cols = job->x->cols;                                                                           \
        double sum = 0, squares = 0;                                                                                 \
        for (int64_t j = 0; j < cols; j++) sum += (double)x[j];                                                      \
        const double mean = sum / (double)cols;                                                                      \
        for (int64_t j = 0; j < cols; j++) squares += ((double)x[j] - mean) * ((double)x[j] - mean);                 \
        ((type *)job->how.mean)[i] = (type)mean;                                                                     \
        ((type *)job->how.inverse)[i] = (type)(1 / sqrt(squares / (double)cols + GNN_NORM_LEAST));                   \
    }                                                                                                                \
    static void forward_##type(const normal_job *job, int64_t i)                                                     \
    {                                                                                                                \
        const bool batch = job->how.norm == GNN_NORM_BATCH;                                                          \
        const type *x = cpu_row(job->x, i), *scale = job->how.scale, *shift = job->how.shift;                        \
        const type *mean = job->how.mean, *inverse = job->how.inverse;                                               \
        type *y = cpu_row(job->to, i);                                                                               \
        for (int64_t j = 0; j < job->x->cols; j++) {                                                                 \
            const int64_t k = batch ? j : i;                                                                         \
            y[j] = (x[j] - mean[k]) * inverse[k] * scale[j] + shift[j];                                              \
        }                                                                                                            \
    }                                                                                                                \
    static void backward_columns_##type(const normal_job *job, int64_t i)                                            \
    {                                                                                                                \
        const type *x = cpu_row(job->x, i), *dy = cpu_row(job->dy, i), *scale = job->how.scale;                      \
        const type *mean = job->how.mean, *inverse = job->how.inverse;                                               \
        const type *dscale = job->scale_gradient, *dshift = job->shift_gradient;                                     \
        const type part = job->how.fixed ? 0 : 1 / (type)job->x->rows;                                               \
        type *dx = cpu_row(job->to, i);                                                                              \
        for (int64_t j = 0; j < job->x->cols; j++) {                                                                 \
            const type normal = (x[j] - mean[j]) * inverse[j];                                                       \
            dx[j] = inverse[j] * scale[j] * (dy[j] - part * (dshift[j] + normal * dscale[j]));                       \
        }                                                                                                            \
    }                                                                                                                \
    static void backward_row_##type(const normal_job *job, int64_t i)                                                \
    {                                                                                                                \
        const type *x = cpu_row(job->x, i), *dy = cpu_row(job->dy, i), *scale = job->how.scale;                      \
        const type mean = ((const type *)job->how.mean)[i], inverse = ((const type *)job->how.inverse)[i];           \
        const int64_t cols = job->x->cols;                                                                           \
        type *dx = cpu_row(job->to, i);                                                                              \
        double sum = 0, along = 0;                                                                                   \
        for (int64_t j = 0; j < cols; j++) {                                                                         \
            sum += (double)(dy[j] * scale[j]);                                                                       \
            along += (double)(dy[j] * scale[j] * (x[j] - mean) * inverse);                                           \
        }                                                                                                            \
        const type by = (type)(sum / (double)cols), of = (type)(along / (double)cols);                               \
        for (int64_t j = 0; j < cols; j++)                                                                           \
            dx[j] = inverse * (dy[j] * scale[j] - by - (x[j] - mean) * inverse * of);                                \
    }

ROWS(float)
ROWS(double)

#define BY_TYPE(call) (job->x->type == SP_DENSE_F32 ? call##_float : call##_double)

typedef void add_row(const normal_job *job, int64_t i, double *sums);
#define ADD_ROWS(what)                                                                                               \
    static void add_##what(const void *of, int64_t begin, int64_t end, double *sums)                                 \
    {                                                                                                                \
        const normal_job *job = of;                                                                                  \
        add_row *add = BY_TYPE(what);                                                                                \
        for (int64_t i = begin; i < end; i++) add(job, i, sums);                                                     \
    }

ADD_ROWS(sum)
ADD_ROWS(sum_squares)
ADD_ROWS(sum_scale)

static sp_status add_up(gnn_engine *engine, cpu_add_rows *add, const normal_job *job, void *sums)
{
    return gnn_cpu_sum_rows(engine, add, job, job->x->rows, job->x->cols, job->x->type, sums);
}

static void each_row(gnn_engine *engine, const normal_job *job, void (*work)(const normal_job *job, int64_t i))
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, job->x->rows * job->x->cols))
    for (int64_t i = 0; i < job->x->rows; i++) work(job, i);
}

static void divide(const normal_job *job, void *sums, int64_t by)
{
    if (job->x->type == SP_DENSE_F32) divide_float(sums, job->x->cols, by);
    else divide_double(sums, job->x->cols, by);
}

/* Means and variances of the columns, to job->how.mean and .inverse. */
static sp_status columns_of(gnn_engine *engine, const normal_job *job)
{
    sp_status status;
    TRY(add_up(engine, add_sum, job, job->how.mean));
    divide(job, job->how.mean, job->x->rows);
    TRY(add_up(engine, add_sum_squares, job, job->how.inverse));
    divide(job, job->how.inverse, job->x->rows);
done:
    return status;
}

static sp_status normalise_half(gnn_engine *engine, const gnn_normal *how, const sp_dense *x, sp_dense *y)
{
    sp_dense wide_x = {0}, wide_y = {0};
    sp_status status;
    TRY(gnn_cpu_wide(engine, x, true, &wide_x));
    TRY(gnn_cpu_wide(engine, y, false, &wide_y));
    TRY(gnn_cpu_normalise(engine, how, &wide_x, &wide_y));
done:
    gnn_cpu_leave_wide(engine, y, status == SP_OK ? y : NULL, &wide_y);
    gnn_cpu_leave_wide(engine, x, NULL, &wide_x);
    return status;
}

sp_status gnn_cpu_normalise(gnn_engine *engine, const gnn_normal *how, const sp_dense *x, sp_dense *y)
{
    if (x->type == SP_DENSE_BF16) return normalise_half(engine, how, x, y);
    const normal_job own = {.how = *how, .x = x, .to = y}, *job = &own;
    if (x->rows == 0) return SP_OK;
    if (how->norm == GNN_NORM_BATCH) {
        const sp_status status = how->fixed ? SP_OK : columns_of(engine, job);
        if (status != SP_OK) return status;
        BY_TYPE(finish_columns)(how, x->rows, x->cols);
    } else {
        each_row(engine, job, BY_TYPE(moments_of_row));
    }
    each_row(engine, job, BY_TYPE(forward));
    return SP_OK;
}

static sp_status normalise_backward_half(gnn_engine *engine, const gnn_normal *how, const sp_dense *x,
                                         const sp_dense *y_gradient, sp_dense *x_gradient, void *scale_gradient,
                                         void *shift_gradient)
{
    sp_dense wide_x = {0}, wide_dy = {0}, wide_dx = {0};
    sp_status status;
    TRY(gnn_cpu_wide(engine, x, true, &wide_x));
    TRY(gnn_cpu_wide(engine, y_gradient, true, &wide_dy));
    TRY(gnn_cpu_wide(engine, x_gradient, false, &wide_dx));
    TRY(gnn_cpu_normalise_backward(engine, how, &wide_x, &wide_dy, &wide_dx, scale_gradient, shift_gradient));
done:
    gnn_cpu_leave_wide(engine, x_gradient, status == SP_OK ? x_gradient : NULL, &wide_dx);
    gnn_cpu_leave_wide(engine, y_gradient, NULL, &wide_dy);
    gnn_cpu_leave_wide(engine, x, NULL, &wide_x);
    return status;
}

sp_status gnn_cpu_normalise_backward(gnn_engine *engine, const gnn_normal *how, const sp_dense *x,
                                     const sp_dense *y_gradient, sp_dense *x_gradient, void *scale_gradient,
                                     void *shift_gradient)
{
    if (x->type == SP_DENSE_BF16)
        return normalise_backward_half(engine, how, x, y_gradient, x_gradient, scale_gradient, shift_gradient);
    const normal_job own = {*how, x, y_gradient, x_gradient, scale_gradient, shift_gradient}, *job = &own;
    sp_status status;
    TRY(gnn_cpu_column_sums(engine, y_gradient, shift_gradient));
    TRY(add_up(engine, add_sum_scale, job, scale_gradient));
    each_row(engine, job, how->norm == GNN_NORM_BATCH ? BY_TYPE(backward_columns) : BY_TYPE(backward_row));
done:
    return status;
}
