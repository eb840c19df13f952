/* Scaling of rows and columns on the CPU: values[e] = A's entry (i, j) · (row_factors[i] · col_factors[j]). */
#include "core/backend_cpu.h"

#define SCALE(type)                                                                                             \
    static void scale_##type(const sp_csr *a, const double *rows, const double *cols, int64_t i, type *to)     \
    {                                                                                                           \
        const type *from = a->values;                                                                           \
        const double factor = rows ? rows[i] : 1;                                                               \
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++)                                     \
            to[k] = (type)((from ? (double)from[k] : 1) * (factor * (cols ? cols[a->col_indices[k]] : 1)));     \
    }

SCALE(float)
SCALE(double)

sp_status sp_cpu_scale(sp_context *context, const sp_csr *a, const double *row_factors, const double *col_factors,
                       void *values)
{
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < a->rows; i++) {
        if (sp_stops(&watch)) continue;
        if (a->value_type == SP_F32) scale_float(a, row_factors, col_factors, i, values);
        else scale_double(a, row_factors, col_factors, i, values);
    }
    return sp_watched(&watch);
}
