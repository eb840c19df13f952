/* Softmax within each row of a sparse matrix, and its gradient, on the CPU. The row's maximum is taken off before
 * exponentials are formed, so that none overflows; sums are f64. */
#include <math.h>

#include "core/backend_cpu.h"

#define SOFTMAX(type, exponential)                                                                    \
    static void softmax_##type(type *values, int64_t count)                                           \
    {                                                                                                 \
        type most = -(type)INFINITY;                                                                  \
        double sum = 0;                                                                               \
        for (int64_t k = 0; k < count; k++) most = values[k] > most ? values[k] : most;               \
        for (int64_t k = 0; k < count; k++) sum += (double)(values[k] = exponential(values[k] - most)); \
        for (int64_t k = 0; k < count; k++) values[k] = (type)((double)values[k] / sum);              \
    }                                                                                                 \
    static void backward_##type(const type *softmax, type *gradient, int64_t count)                   \
    {                                                                                                 \
        double sum = 0;                                                                               \
        for (int64_t k = 0; k < count; k++) sum += (double)softmax[k] * (double)gradient[k];          \
        for (int64_t k = 0; k < count; k++)                                                           \
            gradient[k] = (type)((double)softmax[k] * ((double)gradient[k] - sum));                   \
    }

SOFTMAX(float, expf)
SOFTMAX(double, exp)

/* Loop i is row i % rows of head i / rows. */
sp_status sp_cpu_edge_softmax(sp_context *context, const sp_csr *a, int64_t heads, void *values)
{
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, 10 * heads * a->nnz))
    for (int64_t i = 0; i < heads * a->rows; i++) {
        if (sp_stops(&watch)) continue;
        const int64_t row = i % a->rows, count = a->row_offsets[row + 1] - a->row_offsets[row];
        const int64_t start = a->row_offsets[row] + i / a->rows * a->nnz;
        if (a->value_type == SP_F32) softmax_float((float *)values + start, count);
        else softmax_double((double *)values + start, count);
    }
    return sp_watched(&watch);
}

sp_status sp_cpu_edge_softmax_backward(sp_context *context, const sp_csr *a, int64_t heads, const void *softmax,
                                       void *gradient)
{
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, 2 * heads * a->nnz))
    for (int64_t i = 0; i < heads * a->rows; i++) {
        if (sp_stops(&watch)) continue;
        const int64_t row = i % a->rows, count = a->row_offsets[row + 1] - a->row_offsets[row];
        const int64_t start = a->row_offsets[row] + i / a->rows * a->nnz;
        if (a->value_type == SP_F32)
            backward_float((const float *)softmax + start, (float *)gradient + start, count);
        else
            backward_double((const double *)softmax + start, (double *)gradient + start, count);
    }
    return sp_watched(&watch);
}
