/* The public similarity join: checks, and the operands as the back end wants them. B is transposed once, because row i
 * of C = A·Bᵀ is the sum of the rows of Bᵀ that A's row names; for cosines its columns are scaled on the way. */
#include <math.h>

#include "core/internal.h"

static sp_status check(sp_context *context, const char *call, const sp_csr *a, const sp_csr *b,
                       const sp_similarity_options *options, const sp_csr *c)
{
    sp_status status;
    TRY(sp_require_csr(context, call, "A", a));
    TRY(sp_require_csr(context, call, "B", b));
    TRY(sp_require_output(context, call, "C", c, "A", a));
    TRY(sp_require_output(context, call, "C", c, "B", b));
    if (a->cols != b->cols)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "A is %lld x %lld, B is %lld x %lld: rows of the same length are "
                         "compared", (long long)a->rows, (long long)a->cols, (long long)b->rows, (long long)b->cols);
    else if (a->value_type != b->value_type)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "A holds %s and B %s: values of the same type are needed",
                         sp_value_type_name(a->value_type), sp_value_type_name(b->value_type));
    else if ((unsigned)options->metric > SP_METRIC_DOT)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "metric %d does not exist", (int)options->metric);
    else if (options->top_k < 0 || isnan(options->threshold))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "the %lld largest above %g cannot be kept",
                         (long long)options->top_k, options->threshold);
done:
    return status;
}

/* Points *there at the matrix where the context computes: itself, or `copy`. */
static sp_status bring(sp_context *context, const sp_csr *matrix, sp_csr *copy, const sp_csr **there)
{
    *there = matrix->space == context->backend->space ? matrix : copy;
    return *there == matrix ? SP_OK : sp_csr_copy(context, matrix, context->backend->space, copy);
}

/* *factors: 1 / the length of each row; the caller frees them. */
static sp_status inverse_lengths(sp_context *context, const sp_csr *a, double **factors)
{
    const sp_status status = sp_array_create(context, a->rows, sizeof **factors, context->backend->space,
                                             (void **)factors);
    return status == SP_OK ? context->backend->inverse_lengths(context, a, *factors) : status;
}

sp_status sp_similarity(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_similarity_options *options,
                        sp_csr *c, sp_spgemm_info *info)
{
    const sp_similarity_options asked = options ? *options : (sp_similarity_options){0};
    double *a_factors = NULL, *b_factors = NULL;
    sp_csr a_copy = {0}, b_copy = {0}, transposed = {0}, made = {0};
    sp_spgemm_info measured = {0};
    const double start = wall_seconds();
    sp_status status = check(context, __func__, a, b, &asked, c);
    if (status != SP_OK) return status;
    const bool itself = a == b;
    const sp_space space = context->backend->space;
    TRY(bring(context, a, &a_copy, &a));
    if (itself) b = a;
    else TRY(bring(context, b, &b_copy, &b));
    if (asked.metric == SP_METRIC_COSINE) {
        TRY(inverse_lengths(context, a, &a_factors));
        if (!itself) TRY(inverse_lengths(context, b, &b_factors));
    }
    TRY(sp_csr_transpose(context, b, &transposed));
    TRY(sp_csr_scale(context, &transposed, NULL, b_factors ? b_factors : a_factors, space));
    measured.analysis_seconds = wall_seconds() - start;
    TRY(context->backend->similarity(context, a, a_factors, &transposed, &asked, &made, &measured));
    *c = made;
    if (info) *info = measured;
done:
    sp_csr_free(context, &transposed);
    sp_csr_free(context, &b_copy);
    sp_csr_free(context, &a_copy);
    sp_array_free(context, space, b_factors);
    sp_array_free(context, space, a_factors);
    return status;
}
