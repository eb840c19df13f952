/* Checks of arguments, one kind a function. All take O(1). All public calls make them, so the sentence for a wrong
 * argument names it. */
#include "core/internal.h"

sp_status sp_require(sp_context *context, const char *call, const char *name, const void *argument)
{
    if (!context) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: context is NULL", call);
    return argument ? SP_OK : sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
}

sp_status sp_require_space(sp_context *context, const char *call, const char *name, sp_space space)
{
    if (!context) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: context is NULL", call);
    if ((unsigned)space > SP_DEVICE)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s: space %d does not exist", call, name, (int)space);
    if (space == SP_DEVICE && context->backend->space == SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s: %s: a CPU context cannot reach device memory, which needs a CUDA context", call, name);
    return SP_OK;
}

sp_status sp_require_csr(sp_context *context, const char *call, const char *name, const sp_csr *m)
{
    sp_status status = sp_require(context, call, name, m);
    if (status == SP_OK) status = sp_require_space(context, call, name, m->space);
    if (status != SP_OK) return status;
    const int64_t rows = m->rows, cols = m->cols, nnz = m->nnz;
    if (rows < 0 || cols < 0 || nnz < 0 || rows > INT32_MAX || cols > INT32_MAX ||
        nnz > INT64_MAX / 16) /* 16: bytes of working memory an entry */
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %lld x %lld with %lld entries, which no matrix can be",
                       call, name, (long long)rows, (long long)cols, (long long)nnz);
    if ((unsigned)m->value_type > SP_F64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s: type %d of values does not exist", call, name,
                       (int)m->value_type);
    if (!m->row_offsets) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s has no row offsets", call, name);
    if (nnz > 0 && !m->col_indices)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s has %lld entries and no column indices", call, name,
                       (long long)nnz);
    if (m->space == SP_HOST && (m->row_offsets[0] != 0 || m->row_offsets[rows] != nnz))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: row offsets of %s run from %lld to %lld, not from 0 to %lld",
                       call, name, (long long)m->row_offsets[0], (long long)m->row_offsets[rows], (long long)nnz);
    return SP_OK;
}

sp_status sp_require_any_dense(sp_context *context, const char *call, const char *name, const sp_dense *m)
{
    int64_t last, before, bytes;
    sp_status status = sp_require(context, call, name, m);
    if (status == SP_OK) status = sp_require_space(context, call, name, m->space);
    if (status != SP_OK) return status;
    if ((unsigned)m->type > SP_DENSE_BF16)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s: type %d of values does not exist", call, name,
                       (int)m->type);
    if ((unsigned)m->layout > SP_COLUMN_MAJOR)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s: layout %d does not exist", call, name, (int)m->layout);
    const bool by_rows = m->layout == SP_ROW_MAJOR;
    if (m->rows < 0 || m->cols < 0 || m->stride < (by_rows ? m->cols : m->rows) ||
        (m->rows > 0 && m->cols > 0 && !m->values))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %lld x %lld with stride %lld%s%s", call, name,
                       (long long)m->rows, (long long)m->cols, (long long)m->stride, by_rows ? "" : " by columns",
                       m->values ? "" : " and no values");
    if (m->batch < 0 || m->batch_stride < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is a batch of %lld matrices, %lld apart", call, name,
                       (long long)m->batch, (long long)m->batch_stride);
    if (__builtin_mul_overflow(by_rows ? m->rows : m->cols, m->stride, &last) ||
        __builtin_mul_overflow(m->batch, m->batch_stride, &before) || __builtin_add_overflow(last, before, &last) ||
        __builtin_mul_overflow(last, (int64_t)sp_dense_size(m->type), &bytes))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %lld x %lld with stride %lld: it cannot be addressed",
                       call, name, (long long)m->rows, (long long)m->cols, (long long)m->stride);
    return SP_OK;
}

sp_status sp_require_dense(sp_context *context, const char *call, const char *name, const sp_dense *m)
{
    const sp_status status = sp_require_any_dense(context, call, name, m);
    if (status != SP_OK || (m->layout == SP_ROW_MAJOR && sp_dense_batch(m) == 1)) return status;
    return sp_fail(context, SP_ERROR_UNSUPPORTED, "%s: %s is %s, which this call does not take", call, name,
                   m->layout == SP_ROW_MAJOR ? "a batch of matrices" : "stored by columns");
}

sp_status sp_require_output(sp_context *context, const char *call, const char *name, const void *output,
                            const char *input_name, const void *input)
{
    const sp_status status = sp_require(context, call, name, output);
    if (status != SP_OK || output != input) return status;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %s: a result needs a struct of its own", call, name,
                   input_name);
}

static sp_status overlap(sp_context *context, const char *call, const char *name, const char *other_name)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: the arrays of %s and %s overlap", call, name, other_name);
}

sp_status sp_require_apart(sp_context *context, const char *call, const char *name, const void *array, size_t bytes,
                           const char *other_name, const void *other, size_t other_bytes)
{
    const uintptr_t a = (uintptr_t)array, b = (uintptr_t)other;
    if (!array || !other || bytes == 0 || other_bytes == 0) return SP_OK;
    return a < b + other_bytes && b < a + bytes ? overlap(context, call, name, other_name) : SP_OK;
}

/* Matrices with the same stride may be different columns of one array, by columns different rows. */
sp_status sp_require_dense_apart(sp_context *context, const char *call, const char *name, const sp_dense *m,
                                 const char *other_name, const sp_dense *other)
{
    const sp_dense *low = (uintptr_t)m->values <= (uintptr_t)other->values ? m : other, *high = low == m ? other : m;
    const size_t size = sp_dense_size(low->type), high_size = sp_dense_size(high->type);
    const size_t pitch = (size_t)low->stride * size, width = (size_t)sp_dense_length(low) * size;
    const size_t high_width = (size_t)sp_dense_length(high) * high_size;
    if (sp_dense_bytes(low) == 0 || sp_dense_bytes(high) == 0) return SP_OK;
    const uintptr_t offset = (uintptr_t)high->values - (uintptr_t)low->values;
    if (offset >= sp_dense_bytes(low)) return SP_OK;
    const bool alike = low->layout == high->layout && sp_dense_batch(low) == 1 && sp_dense_batch(high) == 1;
    if (alike && pitch == (size_t)high->stride * high_size && offset % pitch >= width &&
        offset % pitch + high_width <= pitch)
        return SP_OK;
    return overlap(context, call, name, other_name);
}

sp_status sp_require_csr_apart(sp_context *context, const char *call, const char *name, const sp_csr *m,
                               const char *other_name, const sp_csr *other)
{
    const void *arrays[] = {m->row_offsets, m->col_indices, m->values};
    const void *others[] = {other->row_offsets, other->col_indices, other->values};
    const size_t each[] = {sizeof *m->row_offsets, sizeof *m->col_indices, sp_value_size(m->value_type)};
    const size_t other_each[] = {each[0], each[1], sp_value_size(other->value_type)};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const size_t bytes = (size_t)(i ? m->nnz : m->rows + 1) * each[i];
            const size_t other_bytes = (size_t)(j ? other->nnz : other->rows + 1) * other_each[j];
            const sp_status status =
                sp_require_apart(context, call, name, arrays[i], bytes, other_name, others[j], other_bytes);
            if (status != SP_OK) return status;
        }
    return SP_OK;
}

sp_status sp_require_target(sp_context *context, const char *call, const char *name, const sp_csr *m,
                            const sp_csr *wanted)
{
    sp_status status = sp_require(context, call, name, m);
    if (status == SP_OK) status = sp_require_space(context, call, name, m->space);
    if (status != SP_OK) return status;
    if (m->rows != wanted->rows || m->cols != wanted->cols || m->value_type != wanted->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %lld x %lld of %s, and the result %lld x %lld of %s",
                       call, name, (long long)m->rows, (long long)m->cols, sp_value_type_name(m->value_type),
                       (long long)wanted->rows, (long long)wanted->cols, sp_value_type_name(wanted->value_type));
    if (m->nnz < 0 || m->nnz > INT64_MAX / 16)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s has room for %lld entries, which no arrays have", call, name,
                       (long long)m->nnz);
    if (!m->row_offsets || (m->nnz > 0 && (!m->col_indices || (wanted->values && !m->values))))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s lacks an array for the result", call, name);
    if (m->values && !wanted->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s has values, and the result none", call, name);
    return SP_OK;
}
