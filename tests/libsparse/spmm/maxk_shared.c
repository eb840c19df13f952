/* What the parts of test_maxk share. */
#include <stdlib.h>

#include "maxk_shared.h"

sp_dense place(sp_context *context, const double *numbers, int64_t rows, int64_t cols, int64_t stride,
               sp_dense_type type)
{
    sp_dense wide, made;
    ck_ok(context, sp_dense_create(context, rows, stride, type, SP_HOST, &wide));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < stride; j++) {
            const double value = j < cols ? numbers[i * cols + j] : -77;
            if (type == SP_DENSE_F32) ((float *)wide.values)[i * stride + j] = (float)value;
            else ((double *)wide.values)[i * stride + j] = value;
        }
    ck_ok(context, sp_dense_copy(context, &wide, test_space(context), &made));
    sp_dense_free(context, &wide);
    made.cols = cols;
    return made;
}

double *take_back(sp_context *context, sp_dense *matrix)
{
    const int64_t cols = matrix->cols, stride = matrix->stride;
    double *numbers = test_block((size_t)(matrix->rows * cols) * sizeof *numbers + 1);
    sp_dense host;
    matrix->cols = stride;
    ck_ok(context, sp_dense_copy(context, matrix, SP_HOST, &host));
    for (int64_t i = 0; i < host.rows; i++)
        for (int64_t j = 0; j < stride; j++) {
            const double value = host.type == SP_DENSE_F32 ? (double)((float *)host.values)[i * stride + j]
                                                           : ((double *)host.values)[i * stride + j];
            if (j < cols) numbers[i * cols + j] = value;
            else test_expect(value == -77, "row %lld was written past its end", (long long)i);
        }
    test_free_dense(context, &host, matrix);
    return numbers;
}

kept_rows make_kept(int64_t rows, int64_t cols, int64_t k)
{
    kept_rows kept = {rows, cols, k, malloc((size_t)(rows * k) * sizeof(double) + 1),
                      malloc((size_t)(rows * k) * sizeof(int32_t) + 1)};
    ck_assert(kept.values && kept.columns);
    return kept;
}

void free_kept(kept_rows *kept) { free_all(kept->values, kept->columns); }

kept_rows read_kept(sp_context *context, const sp_cbsr *matrix)
{
    const int64_t count = matrix->rows * matrix->k;
    const size_t size = matrix->type == SP_DENSE_F32 ? 4 : 8, column = matrix->cols <= 256 ? 1 : 2;
    kept_rows kept = make_kept(matrix->rows, matrix->cols, matrix->k);
    void *values, *columns;
    ck_ok(context, sp_array_create(context, count, size, SP_HOST, &values));
    ck_ok(context, sp_array_create(context, count, column, SP_HOST, &columns));
    ck_ok(context, sp_array_copy(context, count, size, values, SP_HOST, matrix->values, matrix->space));
    ck_ok(context, sp_array_copy(context, count, column, columns, SP_HOST, matrix->columns, matrix->space));
    for (int64_t e = 0; e < count; e++) {
        kept.values[e] = size == 4 ? (double)((float *)values)[e] : ((double *)values)[e];
        kept.columns[e] = column == 1 ? ((uint8_t *)columns)[e] : ((uint16_t *)columns)[e];
    }
    sp_array_free(context, SP_HOST, values);
    sp_array_free(context, SP_HOST, columns);
    return kept;
}
