/* The public operations between products: they check arguments, choose the space to work in, and hand over the result.
 */
#include <math.h>

#include "core/internal.h"

/* ---- spaces ---------------------------------------------------------------------------------------------- */

/* What lies in host memory is worked on there: sending it away would take longer. */
static const sp_backend *back_end_for(const sp_context *context, const sp_csr *a)
{
    return a->space == SP_HOST ? &sp_backend_cpu : context->backend;
}

/* Points *used at the matrix, or at `copy`, which then has one in `space`. */
static sp_status bring(sp_context *context, const sp_csr *matrix, sp_space space, sp_csr *copy, const sp_csr **used)
{
    *used = matrix->space == space ? matrix : copy;
    return matrix->space == space ? SP_OK : sp_csr_copy(context, matrix, space, copy);
}

/* The same for an array; NULL stays NULL. */
static sp_status bring_array(sp_context *context, const void *array, int64_t count, size_t size, sp_space from,
                             sp_space space, void **copy, const void **used)
{
    sp_status status = SP_OK;
    *used = array;
    if (!array || from == space) return SP_OK;
    TRY(sp_array_create(context, count, size, space, copy));
    TRY(sp_array_copy(context, count, size, *copy, space, array, from));
    *used = *copy;
done:
    return status;
}

/* Hands the result over, where the context computes. */
static sp_status settle(sp_context *context, sp_csr *made, sp_csr *result)
{
    sp_status status = SP_OK;
    if (made->space == context->backend->space) *result = *made;
    else {
        status = sp_csr_copy(context, made, context->backend->space, result);
        sp_csr_free(context, made);
    }
    return status;
}

/* ---- matrices -------------------------------------------------------------------------------------------- */

/* One matrix made from another. */
static sp_status check_pair(sp_context *context, const char *call, const sp_csr *a, const sp_csr *b)
{
    const sp_status status = sp_require_csr(context, call, "A", a);
    return status == SP_OK ? sp_require_output(context, call, "B", b, "A", a) : status;
}

/* Two matrices for an operation element by element; `what` it makes is named in messages. */
static sp_status check_alike(sp_context *context, const char *call, const sp_csr *a, const sp_csr *b, const sp_csr *c,
                             const char *what)
{
    sp_status status;
    TRY(sp_require_csr(context, call, "A", a));
    TRY(sp_require_csr(context, call, "B", b));
    TRY(sp_require_output(context, call, "C", c, "A", a));
    TRY(sp_require_output(context, call, "C", c, "B", b));
    if (a->rows != b->rows || a->cols != b->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A is %lld x %lld and B %lld x %lld: %s need one shape",
                       (long long)a->rows, (long long)a->cols, (long long)b->rows, (long long)b->cols, what);
    if (a->value_type != b->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A holds %s and B %s: values of the same type are needed",
                       sp_value_type_name(a->value_type), sp_value_type_name(b->value_type));
done:
    return status;
}

sp_status sp_csr_add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c)
{
    sp_csr a_copy = {0}, b_copy = {0}, made;
    sp_status status;
    TRY(check_alike(context, __func__, a, b, c, "sums"));
    const sp_backend *back_end = back_end_for(context, a->space == SP_HOST ? b : a);
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(bring(context, b, back_end->space, &b_copy, &b));
    TRY(back_end->add(context, alpha, a, beta, b, &made));
    status = settle(context, &made, c);
done:
    sp_csr_free(context, &a_copy);
    sp_csr_free(context, &b_copy);
    return status;
}

sp_status sp_csr_hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    sp_csr a_copy = {0}, b_copy = {0}, made;
    sp_status status;
    TRY(check_alike(context, __func__, a, b, c, "Hadamard products"));
    const sp_backend *back_end = back_end_for(context, a->space == SP_HOST ? b : a);
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(bring(context, b, back_end->space, &b_copy, &b));
    TRY(back_end->hadamard(context, a, b, &made));
    status = settle(context, &made, c);
done:
    sp_csr_free(context, &a_copy);
    sp_csr_free(context, &b_copy);
    return status;
}

sp_status sp_csr_select(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b)
{
    sp_csr a_copy = {0}, made;
    sp_status status = check_pair(context, __func__, a, b);
    if (status != SP_OK) return status;
    const sp_backend *back_end = back_end_for(context, a);
    if ((unsigned)select > SP_SELECT_ABS_GE)
        return sp_fail(context, SP_ERROR_ARGUMENT, "selection %d does not exist", (int)select);
    if (select <= SP_SELECT_OFF_DIAGONAL) {
        if (bound != floor(bound)) /* nor is NaN */
            return sp_fail(context, SP_ERROR_ARGUMENT, "diagonal %g is no whole number", bound);
        bound = fmax(-0x1p31, fmin(bound, 0x1p31)); /* beyond all entries */
    }
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(back_end->select(context, a, select, bound, &made));
    status = settle(context, &made, b);
done:
    sp_csr_free(context, &a_copy);
    return status;
}

/* Every index of a list in the back end's space is one of 0 .. bound - 1. */
static sp_status check_list(sp_context *context, const sp_backend *back_end, const char *name, const int32_t *list,
                            int64_t count, int64_t bound)
{
    int64_t place = -1;
    int32_t index;
    sp_status status = SP_OK;
    if (!list) return SP_OK;
    TRY(back_end->find_outside(context, list, count, bound, &place));
    if (place < 0) return SP_OK;
    TRY(sp_array_copy(context, 1, sizeof index, &index, SP_HOST, list + place, back_end->space));
    status = sp_fail(context, SP_ERROR_ARGUMENT, "%s %d, number %lld (from 0) of the list, is not one of A's %lld",
                     name, (int)index, (long long)place, (long long)bound);
done:
    return status;
}

sp_status sp_csr_extract(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                         const int32_t *cols, int64_t col_count, sp_space space, sp_csr *b)
{
    void *rows_copy = NULL, *cols_copy = NULL;
    const void *row_list, *col_list;
    sp_csr a_copy = {0}, made;
    sp_status status = check_pair(context, __func__, a, b);
    if (status == SP_OK) status = sp_require_space(context, __func__, "the lists", space);
    if (status != SP_OK) return status;
    const sp_backend *back_end = back_end_for(context, a);
    if ((rows && (row_count < 0 || row_count > INT32_MAX)) || (cols && (col_count < 0 || col_count > INT32_MAX)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld rows and %lld columns are listed: 0 to %d are possible",
                       rows ? (long long)row_count : 0, cols ? (long long)col_count : 0, INT32_MAX);
    TRY(bring_array(context, rows, row_count, sizeof *rows, space, back_end->space, &rows_copy, &row_list));
    TRY(bring_array(context, cols, col_count, sizeof *cols, space, back_end->space, &cols_copy, &col_list));
    TRY(check_list(context, back_end, "row", row_list, row_count, a->rows));
    TRY(check_list(context, back_end, "column", col_list, col_count, a->cols));
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(back_end->extract(context, a, row_list, rows ? row_count : a->rows, col_list, cols ? col_count : a->cols,
                          &made));
    status = settle(context, &made, b);
done:
    sp_array_free(context, back_end->space, rows_copy);
    sp_array_free(context, back_end->space, cols_copy);
    sp_csr_free(context, &a_copy);
    return status;
}

sp_status sp_csr_top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b)
{
    sp_csr a_copy = {0}, made;
    sp_status status = check_pair(context, __func__, a, b);
    if (status != SP_OK) return status;
    const sp_backend *back_end = back_end_for(context, a);
    if (k < 0) return sp_fail(context, SP_ERROR_ARGUMENT, "%lld entries of each row cannot be kept", (long long)k);
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(back_end->top_k(context, a, k, &made));
    status = settle(context, &made, b);
done:
    sp_csr_free(context, &a_copy);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------------------- */

sp_status sp_csr_scale(sp_context *context, sp_csr *a, const double *row_factors, const double *col_factors,
                       sp_space space)
{
    void *rows_copy = NULL, *cols_copy = NULL;
    const void *rows, *cols;
    sp_status status = sp_require_csr(context, __func__, "A", a);
    if (status == SP_OK) status = sp_require_space(context, __func__, "the factors", space);
    if (status != SP_OK) return status;
    const sp_backend *back_end = back_end_for(context, a);
    void *values = a->values;
    TRY(bring_array(context, row_factors, a->rows, sizeof *row_factors, space, a->space, &rows_copy, &rows));
    TRY(bring_array(context, col_factors, a->cols, sizeof *col_factors, space, a->space, &cols_copy, &cols));
    if (!values) TRY(sp_array_create(context, a->nnz, sp_value_size(a->value_type), a->space, &values));
    TRY(back_end->scale(context, a, rows, cols, values));
    a->values = values;
done:
    sp_array_free(context, a->space, rows_copy);
    sp_array_free(context, a->space, cols_copy);
    if (values != a->values) sp_array_free(context, a->space, values);
    return status;
}

/* The caller's array, or one in `space` to be copied there by hand_over. */
static sp_status stand_in(sp_context *context, int64_t count, size_t size, void *result, sp_space result_space,
                          sp_space space, void **used)
{
    *used = result;
    return result_space == space ? SP_OK : sp_array_create(context, count, size, space, used);
}

/* `result` has an element of `size` bytes for each row of A. */
static sp_status check_result(sp_context *context, const char *call, const sp_csr *a, const char *name,
                              const void *result, size_t size, sp_space space)
{
    sp_status status;
    TRY(sp_require_csr(context, call, "A", a));
    TRY(sp_require_space(context, call, name, space));
    if (a->rows > 0) TRY(sp_require(context, call, name, result));
    const size_t rows = (size_t)a->rows, bytes = rows * size;
    TRY(sp_require_apart(context, call, name, result, bytes, "A", a->row_offsets, (rows + 1) * sizeof(int64_t)));
    if (a->values)
        TRY(sp_require_apart(context, call, name, result, bytes, "A", a->values,
                             (size_t)a->nnz * sp_value_size(a->value_type)));
done:
    return status;
}

sp_status sp_csr_reduce_rows(sp_context *context, const sp_csr *a, sp_combine combine, double *result, sp_space space)
{
    sp_csr a_copy = {0};
    void *made = NULL;
    sp_status status = check_result(context, __func__, a, "result", result, sizeof *result, space);
    if (status != SP_OK) return status;
    const sp_backend *back_end = back_end_for(context, a);
    if ((unsigned)combine > SP_COMBINE_COUNT)
        return sp_fail(context, SP_ERROR_ARGUMENT, "combine operation %d does not exist", (int)combine);
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(stand_in(context, a->rows, sizeof *result, result, space, back_end->space, &made));
    TRY(back_end->reduce_rows(context, a, combine, made));
    if (made != result)
        status = sp_array_copy(context, a->rows, sizeof *result, result, space, made, back_end->space);
done:
    if (made != result) sp_array_free(context, back_end->space, made);
    sp_csr_free(context, &a_copy);
    return status;
}

sp_status sp_csr_degree_order(sp_context *context, const sp_csr *a, int32_t *order, sp_space space)
{
    sp_csr a_copy = {0};
    void *made = NULL;
    sp_status status = check_result(context, __func__, a, "order", order, sizeof *order, space);
    if (status != SP_OK) return status;
    const sp_backend *back_end = back_end_for(context, a);
    TRY(bring(context, a, back_end->space, &a_copy, &a));
    TRY(stand_in(context, a->rows, sizeof *order, order, space, back_end->space, &made));
    TRY(back_end->degree_order(context, a, made));
    if (made != order) status = sp_array_copy(context, a->rows, sizeof *order, order, space, made, back_end->space);
done:
    if (made != order) sp_array_free(context, back_end->space, made);
    sp_csr_free(context, &a_copy);
    return status;
}

sp_status sp_csr_sample_rows(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                             const int64_t *offsets, uint64_t seed, int64_t *places)
{
    sp_status status;
    TRY(sp_require_csr(context, __func__, "A", a));
    if (row_count < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld rows to draw from", __func__, (long long)row_count);
    if (row_count > 0) {
        TRY(sp_require(context, __func__, "rows", rows));
        TRY(sp_require(context, __func__, "offsets", offsets));
        TRY(sp_require(context, __func__, "places", places));
    }
    if (a->space != context->backend->space)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: A does not lie where the context computes", __func__);
    status = context->backend->sample_rows(context, a, rows, row_count, offsets, seed, places);
done:
    return status;
}
