/* The public products: checks shapes and types, brings operands to the back end's space, calls the back end. */
#include <string.h>

#include "internal.h"

static sp_status check_operands(sp_context *context, const sp_csr *a, const sp_csr *b)
{
    if (a->cols != b->rows)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A is %lld x %lld and B is %lld x %lld: A's columns must be B's rows",
                       (long long)a->rows, (long long)a->cols, (long long)b->rows, (long long)b->cols);
    if (a->value_type != b->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A and B must hold values of the same type");
    return SP_OK;
}

static sp_status check_epilogue(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue)
{
    if (a->value_type != SP_F32 || !a->values || !b->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the Markov product needs f32 values");
    if (!(epilogue->inflation > 0) || !(epilogue->cutoff >= 0) || epilogue->select < 0 || epilogue->recover < 0 ||
        epilogue->dense_factor < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "inflation %g must be above 0; cutoff %g, selection %lld, recovery %lld not below 0",
                       epilogue->inflation, epilogue->cutoff, (long long)epilogue->select,
                       (long long)epilogue->recover);
    return SP_OK;
}

/* Points *used at `matrix`, or at a copy of it in the back end's space, which `copy` then owns. */
static sp_status bring(sp_context *context, const sp_csr *matrix, sp_csr *copy, const sp_csr **used)
{
    *used = matrix;
    if (matrix->space == context->backend->space) return SP_OK;
    *used = copy;
    return sp_csr_copy(context, matrix, context->backend->space, copy);
}

/* Both products: with an epilogue the Markov product, without one the general product. */
static sp_status multiply(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                          sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    sp_csr a_copy = {0}, b_copy = {0}, made = {0};
    const sp_csr *a_used, *b_used;
    sp_spgemm_info measured = {0};
    sp_status status;
    memset(c, 0, sizeof *c);
    SP_TRY(bring(context, a, &a_copy, &a_used));
    if (b == a) b_used = a_used;
    else SP_TRY(bring(context, b, &b_copy, &b_used));
    if (epilogue)
        SP_TRY(context->backend->spgemm_markov(context, a_used, b_used, epilogue, &made, rows, &measured));
    else
        SP_TRY(context->backend->spgemm(context, a_used, b_used, &made, &measured));
    *c = made;
    if (info) *info = measured;
done:
    sp_csr_free(context, &a_copy);
    sp_csr_free(context, &b_copy);
    return status;
}

sp_status sp_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    sp_status status = check_operands(context, a, b);
    return status == SP_OK ? multiply(context, a, b, NULL, c, NULL, info) : status;
}

sp_status sp_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                           sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    sp_status status = check_operands(context, a, b);
    if (status == SP_OK) status = check_epilogue(context, a, b, epilogue);
    return status == SP_OK ? multiply(context, a, b, epilogue, c, rows, info) : status;
}
