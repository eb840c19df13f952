/* The product S·Wᵀ on the CPU at the entries that MaxK kept. A row of S and W lie in the first-level cache; rows of W
 * are read in the order of the kept columns. Sums are f64, rounded once. */
#include "backend.h"

#define KEPT(real, column)                                                                                        \
    static void fill_##real##_##column(const real *s, const sp_dense *w, const column *columns, int64_t k,        \
                                       real *values)                                                              \
    {                                                                                                             \
        for (int64_t e = 0; e < k; e++) {                                                                         \
            const real *by = cpu_row(w, columns[e]);                                                              \
            double sum = 0;                                                                                       \
            for (int64_t t = 0; t < w->cols; t++) sum += (double)s[t] * (double)by[t];                            \
            values[e] = (real)sum;                                                                                \
        }                                                                                                         \
    }

KEPT(float, uint8_t)
KEPT(float, uint16_t)
KEPT(double, uint8_t)
KEPT(double, uint16_t)

sp_status gnn_cpu_multiply_kept(gnn_engine *engine, const sp_dense *s, const sp_dense *w, sp_cbsr *kept)
{
    const int64_t k = kept->k;
    const bool single = kept->type == SP_DENSE_F32, bytes = kept->cols <= 256;
    const int threads = cpu_threads(engine, kept->rows * k * (w->cols + 1));
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < kept->rows; i++) {
        const uint8_t *narrow = (const uint8_t *)kept->columns + i * k;
        const uint16_t *wide = (const uint16_t *)kept->columns + i * k;
        void *values = (char *)kept->values + (size_t)(i * k) * number_size(kept->type);
        const void *row = cpu_row(s, i);
        if (single && bytes) fill_float_uint8_t(row, w, narrow, k, values);
        else if (single) fill_float_uint16_t(row, w, wide, k, values);
        else if (bytes) fill_double_uint8_t(row, w, narrow, k, values);
        else fill_double_uint16_t(row, w, wide, k, values);
    }
    return SP_OK;
}
