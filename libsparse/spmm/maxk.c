/* The public MaxK calls: life of the compressed rows, checks of shapes, types and places, the back end's call. */
#include <string.h>

#include "spmm/plan.h"

/* ---- compressed rows ------------------------------------------------------------------------------------- */

enum { MOST_COLUMNS = 65536, MOST_BYTE_COLUMNS = 256 };

static sp_status check_shape(sp_context *context, int64_t rows, int64_t cols, int64_t k, sp_dense_type type)
{
    if (rows < 0 || cols < 1 || cols > MOST_COLUMNS || k < 1 || k > cols)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%lld rows that keep %lld of %lld columns: of 1 to %d columns 1 to all can be kept",
                       (long long)rows, (long long)k, (long long)cols, (int)MOST_COLUMNS);
    if (type != SP_DENSE_F32 && type != SP_DENSE_F64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "MaxK of %s values: they must be f32 or f64",
                       sp_dense_type_name(type));
    return SP_OK;
}

sp_status sp_cbsr_create(sp_context *context, int64_t rows, int64_t cols, int64_t k, sp_dense_type type,
                         sp_cbsr *matrix)
{
    int64_t count;
    sp_status status = sp_require(context, __func__, "matrix", matrix);
    if (matrix) memset(matrix, 0, sizeof *matrix);
    if (status == SP_OK) status = check_shape(context, rows, cols, k, type);
    if (status != SP_OK) return status;
    const sp_space space = context->backend->space;
    sp_cbsr made = {.rows = rows, .cols = cols, .k = k, .type = type, .space = space};
    if (__builtin_mul_overflow(rows, k, &count))
        return sp_fail(context, SP_ERROR_OVERFLOW, "%lld rows of %lld entries cannot be addressed", (long long)rows,
                       (long long)k);
    TRY(sp_array_create(context, count, sp_dense_size(type), space, &made.values));
    TRY(sp_array_create(context, count, cols <= MOST_BYTE_COLUMNS ? 1 : 2, space, &made.columns));
    *matrix = made;
done:
    if (status != SP_OK) sp_cbsr_free(context, &made);
    return status;
}

void sp_cbsr_free(sp_context *context, sp_cbsr *matrix)
{
    if (!matrix) return;
    sp_array_free(context, matrix->space, matrix->values);
    sp_array_free(context, matrix->space, matrix->columns);
    memset(matrix, 0, sizeof *matrix);
}

/* ---- checks ---------------------------------------------------------------------------------------------- */

static sp_status check_kept(sp_context *context, const char *call, const sp_cbsr *kept)
{
    sp_status status = sp_require(context, call, "kept", kept);
    if (status == SP_OK) status = check_shape(context, kept->rows, kept->cols, kept->k, kept->type);
    if (status != SP_OK) return status;
    if (kept->rows > INT64_MAX / 16 / kept->k)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld rows of %lld kept values cannot be addressed", call,
                       (long long)kept->rows, (long long)kept->k);
    if (kept->space != context->backend->space)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: the kept values do not lie where the context computes", call);
    if (kept->rows > 0 && (!kept->values || !kept->columns))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: there is no array for the kept values or their columns", call);
    return SP_OK;
}

/* A dense matrix that goes with the kept values: as many rows, with their columns, type and place. */
static sp_status check_dense(sp_context *context, const char *call, const char *name, const sp_dense *m, int64_t rows,
                             const sp_cbsr *kept)
{
    sp_status status = sp_require(context, call, name, m);
    if (status != SP_OK) return status;
    if (m->space != kept->space)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s does not lie where the context computes", call, name);
    status = sp_require_dense(context, call, name, m);
    if (status != SP_OK) return status;
    if (m->rows != rows || m->cols != kept->cols || m->type != kept->type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %lld x %lld of %s, and %lld x %lld of %s is needed",
                       call, name, (long long)m->rows, (long long)m->cols, sp_dense_type_name(m->type),
                       (long long)rows, (long long)kept->cols, sp_dense_type_name(kept->type));
    if (m->rows == 0 || kept->rows == 0) return SP_OK;
    const size_t bytes = (size_t)((m->rows - 1) * m->stride + m->cols) * sp_dense_size(m->type);
    return sp_require_apart(context, call, name, m->values, bytes, "kept", kept->values,
                            (size_t)(kept->rows * kept->k) * sp_dense_size(kept->type));
}

/* X has the rows and columns that are kept. */
static sp_status check_source(sp_context *context, const char *call, const sp_dense *x, const sp_cbsr *kept)
{
    const sp_status status = check_kept(context, call, kept);
    return status == SP_OK ? check_dense(context, call, "X", x, kept->rows, kept) : status;
}

/* `kept_rows` of them belong to the kept values, `dense_rows` to the dense matrix. */
static sp_status check_product(const sp_spmm_plan *plan, const char *call, const sp_cbsr *kept, int64_t kept_rows,
                               const char *name, const sp_dense *dense, int64_t dense_rows)
{
    sp_context *context = plan->context;
    sp_status status;
    TRY(check_kept(context, call, kept));
    TRY(check_dense(context, call, name, dense, dense_rows, kept));
    if (kept->rows != kept_rows)
        status = sp_fail(context, SP_ERROR_ARGUMENT,
                         "the matrix is %lld x %lld and %lld rows of kept values are given", (long long)plan->a.rows,
                         (long long)plan->a.cols, (long long)kept->rows);
    else if (plan->options.reduce != SP_REDUCE_SUM && plan->options.reduce != SP_REDUCE_MEAN)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "the plan is for a maximum or minimum, not for sums or means");
    else if (plan->a.values && (plan->a.value_type == SP_F64) != (kept->type == SP_DENSE_F64))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "A is %s and the kept values are %s, which do not go together",
                         sp_value_type_name(plan->a.value_type), sp_dense_type_name(kept->type));
done:
    return status;
}

/* ---- the calls ------------------------------------------------------------------------------------------- */

sp_status sp_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept)
{
    const sp_status status = check_source(context, __func__, x, kept);
    if (status != SP_OK || kept->rows == 0) return status;
    return context->backend->maxk(context, x, kept);
}

sp_status sp_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x)
{
    const sp_status status = check_source(context, __func__, x, kept);
    if (status != SP_OK || kept->rows == 0) return status;
    return context->backend->maxk_expand(context, kept, x);
}

sp_status sp_maxk_spmm(sp_spmm_plan *plan, double alpha, const sp_cbsr *kept, double beta, sp_dense *y)
{
    if (!plan) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: plan is NULL", __func__);
    sp_context *context = plan->context;
    sp_status status = check_product(plan, __func__, kept, plan->a.cols, "Y", y, plan->a.rows);
    if (status != SP_OK || y->rows == 0) return status;
    return context->backend->maxk_spmm(context, &plan->a, &plan->options, plan->state, alpha, kept, beta, y);
}

sp_status sp_maxk_spmm_backward(sp_spmm_plan *plan, const sp_dense *gradient, sp_cbsr *kept)
{
    if (!plan) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: plan is NULL", __func__);
    sp_context *context = plan->context;
    sp_status status = check_product(plan, __func__, kept, plan->a.rows, "gradient", gradient, plan->a.cols);
    if (status != SP_OK || kept->rows == 0) return status;
    return context->backend->maxk_spmm_backward(context, &plan->a, &plan->options, plan->state, gradient, kept);
}
