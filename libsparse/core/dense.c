/* Dense matrices: life and copies between spaces. */
#include <string.h>

#include "core/internal.h"

sp_status sp_dense_create(sp_context *context, int64_t rows, int64_t cols, sp_dense_type type, sp_space space,
                          sp_dense *matrix)
{
    sp_dense made = {.rows = rows, .cols = cols, .stride = cols, .type = type, .space = space};
    size_t count, bytes;
    sp_status status = sp_require(context, __func__, "matrix", matrix);
    if (matrix) memset(matrix, 0, sizeof *matrix);
    if (status == SP_OK) status = sp_require_space(context, __func__, "matrix", space);
    if (status != SP_OK) return status;
    if ((unsigned)type > SP_DENSE_BF16)
        return sp_fail(context, SP_ERROR_ARGUMENT, "type %d of values does not exist", (int)type);
    if (rows < 0 || cols < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a dense matrix of %lld x %lld: neither can be below 0",
                       (long long)rows, (long long)cols);
    if (!sp_mul_size((size_t)rows, (size_t)cols, &count) ||
        !sp_mul_size(count, sp_dense_size(type), &bytes) || bytes > PTRDIFF_MAX)
        return sp_fail(context, SP_ERROR_OVERFLOW, "a dense matrix of %lld x %lld of %s cannot be addressed",
                       (long long)rows, (long long)cols, sp_dense_type_name(type));
    status = sp_array_create(context, (int64_t)bytes, 1, space, &made.values);
    if (status == SP_OK) *matrix = made;
    return status;
}

void sp_dense_free(sp_context *context, sp_dense *matrix)
{
    if (!matrix) return;
    sp_array_free(context, matrix->space, matrix->values);
    memset(matrix, 0, sizeof *matrix);
}

sp_status sp_dense_move(sp_context *context, const sp_dense *from, sp_dense *to)
{
    const sp_backend *backend = context->backend;
    const size_t size = sp_dense_size(from->type), bytes = (size_t)from->cols * size;
    const size_t from_pitch = (size_t)from->stride * size, to_pitch = (size_t)to->stride * size;
    sp_status status = SP_OK;
    if (bytes == 0 || from->rows == 0) return SP_OK;
    if (from_pitch == bytes && to_pitch == bytes)
        return backend->copy(context, to->values, to->space, from->values, from->space, bytes * (size_t)from->rows);
    if (backend->copy_rows)
        return backend->copy_rows(context, to->values, to_pitch, to->space, from->values, from_pitch, from->space,
                                  bytes, from->rows);
    for (int64_t i = 0; i < from->rows && status == SP_OK; i++)
        status = backend->copy(context, (char *)to->values + (size_t)i * to_pitch, to->space,
                               (const char *)from->values + (size_t)i * from_pitch, from->space, bytes);
    return status;
}

sp_status sp_dense_copy(sp_context *context, const sp_dense *source, sp_space space, sp_dense *copy)
{
    sp_dense made = {0};
    sp_status status;
    TRY(sp_require_dense(context, __func__, "source", source));
    TRY(sp_require_output(context, __func__, "copy", copy, "source", source));
    TRY(sp_dense_create(context, source->rows, source->cols, source->type, space, &made));
    TRY(sp_dense_move(context, source, &made));
    *copy = made;
done:
    if (status != SP_OK) sp_dense_free(context, &made);
    return status;
}
