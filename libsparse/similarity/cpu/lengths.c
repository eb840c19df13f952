/* The lengths of rows, by which cosines are divided. */
#include <float.h>
#include <math.h>

#include "core/backend_cpu.h"

/* 1 / the length of a row, 0 for one without length. Squares of very small or large numbers leave the range of f64:
 * then all are scaled by the largest. */
static double inverse_length(const sp_csr *a, int64_t row)
{
    double sum = 0, largest = 0;
    for (int64_t e = a->row_offsets[row]; e < a->row_offsets[row + 1]; e++) {
        const double value = entry_value(a, e);
        sum += value * value;
        largest = fmax(largest, fabs(value));
    }
    if (largest == 0) return 0;
    if (sum > 1e-280 && sum <= DBL_MAX) return 1 / sqrt(sum);
    sum = 0;
    for (int64_t e = a->row_offsets[row]; e < a->row_offsets[row + 1]; e++) {
        const double value = entry_value(a, e) / largest;
        sum += value * value;
    }
    return 1 / sqrt(sum) / largest;
}

sp_status sp_cpu_inverse_lengths(sp_context *context, const sp_csr *a, double *factors)
{
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < a->rows; i++) {
        if (!sp_stops_at(&watch, i)) factors[i] = inverse_length(a, i);
    }
    return sp_watched(&watch);
}
