/* Matrices of bf16 on the CPU, for operations that compute in f32 only: copies in f32, rounded back when the operation
 * is done. They make the CPU the reference of the device, number by number up to rounding, and are not meant to be
 * fast. */
#include "backend.h"

sp_status gnn_cpu_wide(gnn_engine *engine, const sp_dense *matrix, bool read, sp_dense *wide)
{
    sp_dense made;
    if (matrix->type != SP_DENSE_BF16) {
        *wide = *matrix;
        return SP_OK;
    }
    const sp_status status = sp_dense_create(engine->context, matrix->rows, matrix->cols, SP_DENSE_F32, SP_HOST, &made);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, matrix->rows * matrix->cols / 2))
    for (int64_t i = 0; i < matrix->rows; i++)
        if (read) cpu_widen(cpu_row(matrix, i), cpu_row(&made, i), matrix->cols);
    *wide = made;
    return SP_OK;
}

void gnn_cpu_leave_wide(gnn_engine *engine, const sp_dense *matrix, sp_dense *narrow, sp_dense *wide)
{
    if (matrix->type != SP_DENSE_BF16) return;
    if (narrow && wide->values) gnn_cpu_round(engine, wide, narrow);
    sp_dense_free(engine->context, wide);
}
