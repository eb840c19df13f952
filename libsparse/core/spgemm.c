/* The public products: checks shapes and types, brings operands to the back end's space, transposes them where asked,
 * calls the back end. */
#include <string.h>

#include "internal.h"

/* What a back end is given: the caller's matrices, or copies of them, which end with this struct. */
typedef struct operands {
    const sp_csr *a, *b;
    sp_spgemm_options options;
    sp_csr a_copy, b_copy, mask_copy;
} operands;

static sp_status check_shapes(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    const int64_t rows = options->transpose_a ? a->cols : a->rows, inner = options->transpose_a ? a->rows : a->cols;
    const int64_t cols = options->transpose_b ? b->rows : b->cols, other = options->transpose_b ? b->cols : b->rows;
    const sp_csr *mask = options->mask;
    if (inner != other)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A is %lld x %lld, B is %lld x %lld: A's columns must be B's rows",
                       (long long)rows, (long long)inner, (long long)other, (long long)cols);
    if (a->value_type != b->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A holds %s and B %s: values of the same type are needed",
                       sp_value_type_name(a->value_type), sp_value_type_name(b->value_type));
    if (mask && (mask->rows != rows || mask->cols != cols))
        return sp_fail(context, SP_ERROR_ARGUMENT, "the mask is %lld x %lld and the product %lld x %lld",
                       (long long)mask->rows, (long long)mask->cols, (long long)rows, (long long)cols);
    if (options->complement && !mask)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a mask is to be complemented and there is none");
    if ((unsigned)options->semiring > SP_OR_AND || (unsigned)options->algorithm > SP_SPGEMM_WARP ||
        (unsigned)options->aia > SP_AIA_UNCACHED)
        return sp_fail(context, SP_ERROR_ARGUMENT, "semiring %d, algorithm %d or stage %d does not exist",
                       (int)options->semiring, (int)options->algorithm, (int)options->aia);
    return SP_OK;
}

static sp_status check_epilogue(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue)
{
    if (a->value_type != SP_F32 || !a->values || !b->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the Markov product needs f32 values");
    if (!(epilogue->inflation >= 0) || !(epilogue->cutoff >= 0) || epilogue->select < 0 || epilogue->recover < 0 ||
        epilogue->dense_factor < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "inflation %g, cutoff %g, selection %lld and recovery %lld must not be below 0",
                       epilogue->inflation, epilogue->cutoff, (long long)epilogue->select,
                       (long long)epilogue->recover);
    return SP_OK;
}

/* Points *used at `matrix`, or at a copy in the back end's space or at its transpose, which `copy` then owns. */
static sp_status bring(sp_context *context, const sp_csr *matrix, bool transpose, sp_csr *copy, const sp_csr **used)
{
    const sp_space space = context->backend->space;
    sp_csr moved = {0};
    sp_status status = SP_OK;
    *used = matrix;
    if (matrix->space != space) {
        SP_TRY(sp_csr_copy(context, matrix, space, transpose ? &moved : copy));
        *used = transpose ? &moved : copy;
    }
    if (transpose) {
        SP_TRY(sp_csr_transpose(context, *used, copy));
        *used = copy;
    }
done:
    sp_csr_free(context, &moved);
    return status;
}

/* Releases what prepare() took; fit for a zeroed struct. */
static void release(sp_context *context, operands *o)
{
    sp_csr_free(context, &o->a_copy);
    sp_csr_free(context, &o->b_copy);
    sp_csr_free(context, &o->mask_copy);
}

static sp_status prepare(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         operands *o)
{
    sp_status status;
    memset(o, 0, sizeof *o);
    o->options = options ? *options : (sp_spgemm_options){0};
    SP_TRY(check_shapes(context, a, b, &o->options));
    SP_TRY(bring(context, a, o->options.transpose_a, &o->a_copy, &o->a));
    if (b == a && o->options.transpose_a == o->options.transpose_b) o->b = o->a;
    else SP_TRY(bring(context, b, o->options.transpose_b, &o->b_copy, &o->b));
    if (o->options.mask) SP_TRY(bring(context, o->options.mask, false, &o->mask_copy, &o->options.mask));
    o->options.transpose_a = o->options.transpose_b = false;
done:
    if (status != SP_OK) release(context, o);
    return status;
}

sp_status sp_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                    sp_csr *c, sp_spgemm_info *info)
{
    operands o;
    sp_csr made = {0};
    sp_spgemm_info measured = {0};
    memset(c, 0, sizeof *c);
    sp_status status = prepare(context, a, b, options, &o);
    if (status != SP_OK) return status;
    SP_TRY(context->backend->spgemm(context, o.a, o.b, &o.options, &made, &measured));
    *c = made;
    if (info) *info = measured;
done:
    release(context, &o);
    return status;
}

sp_status sp_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                           sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    operands o;
    sp_csr made = {0};
    sp_spgemm_info measured = {0};
    memset(c, 0, sizeof *c);
    sp_status status = check_epilogue(context, a, b, epilogue);
    if (status == SP_OK) status = prepare(context, a, b, NULL, &o);
    if (status != SP_OK) return status;
    SP_TRY(context->backend->spgemm_markov(context, o.a, o.b, epilogue, &made, rows, &measured));
    *c = made;
    if (info) *info = measured;
done:
    release(context, &o);
    return status;
}

/* ---- plans --------------------------------------------------------------------------------------------- */

struct sp_spgemm_plan {
    sp_context *context;
    sp_spgemm_options options; /* the caller's, without the mask: the pattern has passed it */
    sp_spgemm_info info;
    sp_csr pattern; /* of C, where C is to lie */
    void *state;    /* the back end's */
    sp_csr a, b;    /* shapes, nnz and types only */
};

sp_status sp_spgemm_plan_create(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, sp_spgemm_plan **plan)
{
    operands o = {0};
    sp_spgemm_plan *made = NULL;
    sp_status status;
    *plan = NULL;
    SP_TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    made->context = context;
    made->a = *a;
    made->b = *b;
    SP_TRY(prepare(context, a, b, options, &o));
    SP_TRY(context->backend->spgemm_symbolic(context, o.a, o.b, &o.options, &made->pattern, &made->state,
                                             &made->info));
    if (options) made->options = *options;
    made->options.mask = NULL;
    made->options.complement = false;
    *plan = made;
done:
    release(context, &o);
    if (status != SP_OK) sp_spgemm_plan_free(made);
    return status;
}

const sp_spgemm_info *sp_spgemm_plan_info(const sp_spgemm_plan *plan) { return &plan->info; }

static bool same_size(const sp_csr *a, const sp_csr *b)
{
    return a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->value_type == b->value_type;
}

/* C in `space`, with the plan's pattern and room for values. */
static sp_status copy_pattern(sp_spgemm_plan *plan, sp_space space, sp_csr *c)
{
    sp_context *context = plan->context;
    const size_t size = sp_value_size(plan->pattern.value_type);
    size_t bytes;
    sp_status status = sp_csr_copy(context, &plan->pattern, space, c);
    if (status != SP_OK || plan->options.semiring == SP_OR_AND) return status;
    if (space == SP_HOST) status = sp_alloc(context, c->nnz, size, &c->values);
    else if (!sp_mul_size((size_t)c->nnz, size, &bytes))
        status = sp_fail(context, SP_ERROR_OVERFLOW, "%lld values cannot be addressed", (long long)c->nnz);
    else status = context->backend->allocate(context, bytes, &c->values);
    if (status != SP_OK) sp_csr_free(context, c);
    return status;
}

sp_status sp_spgemm_plan_execute(sp_spgemm_plan *plan, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    sp_context *context = plan->context;
    operands o = {0};
    sp_csr made = {0};
    sp_status status;
    if (!same_size(a, &plan->a) || !same_size(b, &plan->b))
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "the plan is for %lld x %lld (%lld entries) and %lld x %lld (%lld entries), not for these",
                       (long long)plan->a.rows, (long long)plan->a.cols, (long long)plan->a.nnz,
                       (long long)plan->b.rows, (long long)plan->b.cols, (long long)plan->b.nnz);
    if (c->row_offsets && (!same_size(c, &plan->pattern) || !c->values != (plan->options.semiring == SP_OR_AND) ||
                           (c->space == SP_DEVICE && context->backend->space == SP_HOST)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "C was not made by this plan");
    SP_TRY(prepare(context, a, b, &plan->options, &o));
    if (!c->row_offsets) {
        status = copy_pattern(plan, plan->pattern.space, &made);
        if (status == SP_ERROR_DEVICE_MEMORY) status = copy_pattern(plan, SP_HOST, &made);
        if (status != SP_OK) goto done;
    }
    sp_csr *target = c->row_offsets ? c : &made;
    if (plan->options.semiring != SP_OR_AND)
        SP_TRY(context->backend->spgemm_numeric(context, o.a, o.b, &o.options, plan->state, target));
    if (target == &made) *c = made;
    memset(&made, 0, sizeof made);
done:
    release(context, &o);
    sp_csr_free(context, &made);
    return status;
}

void sp_spgemm_plan_free(sp_spgemm_plan *plan)
{
    if (!plan) return;
    if (plan->state) plan->context->backend->spgemm_forget(plan->context, plan->state);
    sp_csr_free(plan->context, &plan->pattern);
    sp_free(plan->context, plan);
}
