/* values[e] = Σ_k X(i, k) · Y(j, k) for the entries e = (i, j) of A on the CPU. X's row stays in the first cache
 * while the row's entries gather rows of Y; four vectors of sums hide the latency of the additions. */
#include <string.h>

#include "base/search.h"
#include "core/backend_cpu.h"

enum { CHUNK_ENTRIES = 1024, LANES = 32, FEW = 8 };

/* LANES sums in parallel are four or more vectors, whatever the machine's. The rest, and rows of few columns, as
 * those of one head of several, take a vector: 8 columns 0.6 of the time of one sum after another. */
#define DOT(type)                                                                   \
    static type dot_##type(const type *x, const type *y, int64_t width)             \
    {                                                                               \
        type sums[LANES] = {0}, total = 0;                                          \
        int64_t k = 0;                                                              \
        for (; k + LANES <= width; k += LANES)                                      \
            for (int lane = 0; lane < LANES; lane++) sums[lane] += x[k + lane] * y[k + lane]; \
        for (; k + FEW <= width; k += FEW)                                          \
            for (int lane = 0; lane < FEW; lane++) sums[lane] += x[k + lane] * y[k + lane]; \
        for (; k < width; k++) total += x[k] * y[k];                                \
        for (int lane = 0; lane < (width < LANES ? FEW : LANES); lane++) total += sums[lane]; \
        return total;                                                               \
    }

DOT(float)
DOT(double)

/* Entries of the same number, wherever rows begin: one row may hold half of them all. */
static void make_entries(const sp_csr *a, const sp_dense *x, const sp_dense *y, int64_t first, int64_t end,
                         void *values)
{
    const bool single = x->type == SP_DENSE_F32;
    int64_t i = row_of_entry(a->row_offsets, a->rows, first);
    for (int64_t e = first; e < end; e++) {
        while (e >= a->row_offsets[i + 1]) i++;
        const int64_t x_at = i * x->stride, y_at = a->col_indices[e] * y->stride;
        if (single)
            ((float *)values)[e] =
                dot_float((const float *)x->values + x_at, (const float *)y->values + y_at, x->cols);
        else
            ((double *)values)[e] =
                dot_double((const double *)x->values + x_at, (const double *)y->values + y_at, x->cols);
    }
}

sp_status sp_cpu_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values)
{
    const int64_t chunks = (a->nnz + CHUNK_ENTRIES - 1) / CHUNK_ENTRIES, batch = sp_dense_batch(x);
    const int64_t work = a->nnz * (x->cols / 8 + 1) * batch;
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 1) num_threads(sp_threads_for(context, work))
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t end = (c + 1) * CHUNK_ENTRIES;
        for (int64_t b = 0; b < batch && !sp_stops(&watch); b++) {
            const sp_dense own_x = sp_dense_of(x, b), own_y = sp_dense_of(y, b);
            make_entries(a, &own_x, &own_y, c * CHUNK_ENTRIES, end < a->nnz ? end : a->nnz,
                         (char *)values + (size_t)(b * a->nnz) * sp_dense_size(x->type));
        }
    }
    return sp_watched(&watch);
}
