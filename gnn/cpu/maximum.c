/* The gradient of the maximum over neighbours on the CPU: dX(j, k) = Σ of dY(i, k) over the rows i whose maximum in
 * column k came from j. A thread owns a row of dX and reads that row of the transpose, 8 bytes an entry and column.
 * Scattering dY would touch fewer bytes, but by atomic additions without a fixed order. */
#include <string.h>

#include "backend.h"

#define MAXIMUM(type)                                                                                             \
    static void pick_##type(const int64_t *argument, int64_t place, const type *dy, type *dx, int64_t cols)       \
    {                                                                                                             \
        for (int64_t k = 0; k < cols; k++)                                                                        \
            if (argument[k] == place) dx[k] += dy[k];                                                             \
    }

MAXIMUM(float)
MAXIMUM(double)

sp_status gnn_cpu_maximum_backward(gnn_engine *engine, const sp_csr *transpose, const int64_t *places,
                                   const int64_t *argument, const sp_dense *y_gradient, sp_dense *x_gradient)
{
    const int64_t cols = x_gradient->cols;
    const int threads = cpu_threads(engine, (transpose->nnz + transpose->rows) * cols);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t j = 0; j < transpose->rows; j++) {
        void *dx = cpu_row(x_gradient, j);
        memset(dx, 0, (size_t)cols * number_size(x_gradient->type));
        for (int64_t t = transpose->row_offsets[j]; t < transpose->row_offsets[j + 1]; t++) {
            const int64_t i = transpose->col_indices[t];
            if (x_gradient->type == SP_DENSE_F32)
                pick_float(argument + i * cols, places[t], cpu_row(y_gradient, i), dx, cols);
            else pick_double(argument + i * cols, places[t], cpu_row(y_gradient, i), dx, cols);
        }
    }
    return SP_OK;
}
