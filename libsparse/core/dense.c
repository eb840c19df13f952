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

/* ---- copies ---------------------------------------------------------------------------------------------- */

/* A copy with the same layout, row by row, or by columns column by column. */
static sp_status move_lines(sp_context *context, const sp_dense *from, sp_dense *to)
{
    const sp_backend *backend = context->backend;
    const int64_t lines = sp_dense_lines(from);
    const size_t size = sp_dense_size(from->type), bytes = (size_t)sp_dense_length(from) * size;
    const size_t from_pitch = (size_t)from->stride * size, to_pitch = (size_t)to->stride * size;
    sp_status status = SP_OK;
    if (bytes == 0 || lines == 0) return SP_OK;
    if (from_pitch == bytes && to_pitch == bytes)
        return backend->copy(context, to->values, to->space, from->values, from->space, bytes * (size_t)lines);
    if (backend->copy_rows)
        return backend->copy_rows(context, to->values, to_pitch, to->space, from->values, from_pitch, from->space,
                                  bytes, lines);
    for (int64_t i = 0; i < lines && status == SP_OK; i++)
        status = backend->copy(context, (char *)to->values + (size_t)i * to_pitch, to->space,
                               (const char *)from->values + (size_t)i * from_pitch, from->space, bytes);
    return status;
}

/* to[j * to_stride + i] = from[i * from_stride + j] for `lines` times `length` numbers, square by square: a square of
 * each array stays in the first-level cache. */
#define DEFINE_TURN(T)                                                                                              \
    static void turn_##T(int64_t lines, int64_t length, const T *from, int64_t from_stride, T *to, int64_t to_stride, \
                         int threads)                                                                               \
    {                                                                                                               \
        enum { EDGE = 32 };                                                                                         \
        _Pragma("omp parallel for schedule(static) num_threads(threads)")                                           \
        for (int64_t j0 = 0; j0 < length; j0 += EDGE)                                                               \
            for (int64_t i0 = 0; i0 < lines; i0 += EDGE)                                                            \
                for (int64_t j = j0; j < length && j < j0 + EDGE; j++)                                              \
                    for (int64_t i = i0; i < lines && i < i0 + EDGE; i++)                                           \
                        to[j * to_stride + i] = from[i * from_stride + j];                                          \
    }
DEFINE_TURN(uint16_t)
DEFINE_TURN(uint32_t)
DEFINE_TURN(uint64_t)

static sp_status turn_on_host(sp_context *context, const sp_dense *from, sp_dense *to)
{
    const int64_t lines = sp_dense_lines(from), length = sp_dense_length(from);
    const int threads = sp_threads_for(context, lines * length);
    const size_t size = sp_dense_size(from->type);
    if (size == 2) turn_uint16_t(lines, length, from->values, from->stride, to->values, to->stride, threads);
    else if (size == 4) turn_uint32_t(lines, length, from->values, from->stride, to->values, to->stride, threads);
    else turn_uint64_t(lines, length, from->values, from->stride, to->values, to->stride, threads);
    return SP_OK;
}

/* Layouts are exchanged where the context computes, in which one of the two may have to be copied first or last. */
sp_status sp_dense_move(sp_context *context, const sp_dense *from, sp_dense *to)
{
    const sp_backend *backend = context->backend;
    const sp_space space = from->space == to->space ? from->space : backend->space;
    sp_dense other = {0};
    sp_status status = SP_OK;
    if (from->layout == to->layout) return move_lines(context, from, to);
    if (from->rows == 0 || from->cols == 0) return SP_OK;
    if (from->space != to->space) {
        const bool arrives = to->space == space; /* it is turned after the copy */
        const sp_dense *like = arrives ? from : to;
        TRY(sp_dense_create(context, sp_dense_lines(like), sp_dense_length(like), like->type, space, &other));
        other.layout = like->layout;
        other.rows = from->rows;
        other.cols = from->cols;
        if (arrives) TRY(move_lines(context, from, &other));
    }
    const sp_dense *source = other.values && to->space == space ? &other : from;
    sp_dense *target = other.values && from->space == space ? &other : to;
    TRY((space == SP_DEVICE ? backend->turn : turn_on_host)(context, source, target));
    if (target == &other) TRY(move_lines(context, &other, to));
done:
    sp_dense_free(context, &other);
    return status;
}

sp_status sp_dense_copy(sp_context *context, const sp_dense *source, sp_space space, sp_dense *copy)
{
    sp_dense made = {0};
    sp_status status;
    TRY(sp_require_any_dense(context, __func__, "source", source));
    if (sp_dense_batch(source) > 1)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "%s: source is a batch: copy its matrices", __func__);
    TRY(sp_require_output(context, __func__, "copy", copy, "source", source));
    TRY(sp_dense_create(context, source->rows, source->cols, source->type, space, &made));
    TRY(sp_dense_move(context, source, &made));
    *copy = made;
done:
    if (status != SP_OK) sp_dense_free(context, &made);
    return status;
}
