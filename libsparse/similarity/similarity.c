/* The public similarity join: checks, and the operands as the back end wants them. B is transposed once, because row i
 * of C = A·Bᵀ is the sum of the rows of Bᵀ that A's row names; for cosines its columns are scaled on the way. */
#include <float.h>
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
    else if (!context->backend->similarity)
        status = sp_fail(context, SP_ERROR_UNSUPPORTED, "%s runs on the CPU: use a context of the device \"cpu\", or "
                         "sp_spgemm_top_k", call);
done:
    return status;
}

/* 1 / the length of a row, 0 for one without length. Squares of very small or large numbers leave the range of f64: then
 * all are scaled by the largest. */
static double inverse_length(const sp_csr *a, int64_t row)
{
    double sum = 0, largest = 0;
    for (int64_t e = a->row_offsets[row]; e < a->row_offsets[row + 1]; e++) {
        const double value = entry_value(a, e);
        sum += value * value;
        largest = fmax(largest, fabs(value));
    }
    if (largest == 0) return 0;
    if (sum > 1e-280 && sum <= DBL_MAX) return 1 / sqrt(sum);
    sum = 0;
    for (int64_t e = a->row_offsets[row]; e < a->row_offsets[row + 1]; e++) {
        const double value = entry_value(a, e) / largest;
        sum += value * value;
    }
    return 1 / sqrt(sum) / largest;
}

/* *factors: those of all rows; the caller frees them. */
static sp_status inverse_lengths(sp_context *context, const sp_csr *a, double **factors)
{
    sp_status status;
    sp_watch watch = {context, false};
    TRY(sp_alloc(context, a->rows, sizeof **factors, (void **)factors));
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, a->nnz))
    for (int64_t i = 0; i < a->rows; i++) {
        if (!sp_stops_at(&watch, i)) (*factors)[i] = inverse_length(a, i);
    }
    status = sp_watched(&watch);
done:
    return status;
}

sp_status sp_similarity(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_similarity_options *options,
                        sp_csr *c, sp_spgemm_info *info)
{
    const sp_similarity_options asked = options ? *options : (sp_similarity_options){0};
    double *a_factors = NULL, *b_factors = NULL;
    sp_csr transposed = {0}, made = {0};
    sp_spgemm_info measured = {0};
    const double start = wall_seconds();
    sp_status status = check(context, __func__, a, b, &asked, c);
    if (status != SP_OK) return status;
    if (asked.metric == SP_METRIC_COSINE) {
        TRY(inverse_lengths(context, a, &a_factors));
        if (b != a) TRY(inverse_lengths(context, b, &b_factors));
    }
    TRY(sp_csr_transpose(context, b, &transposed));
    TRY(sp_csr_scale(context, &transposed, NULL, b_factors ? b_factors : a_factors, SP_HOST));
    measured.analysis_seconds = wall_seconds() - start;
    TRY(context->backend->similarity(context, a, a_factors, &transposed, &asked, &made, &measured));
    *c = made;
    if (info) *info = measured;
done:
    sp_csr_free(context, &transposed);
    sp_free(context, b_factors);
    sp_free(context, a_factors);
    return status;
}
