/* C = S·G·Sᵀ as two products, G·Sᵀ and S·(G·Sᵀ), for any matrix S (sp_triple_product).
 *
 * This order is the faster one. The rows of G·Sᵀ are as short as those of G, and the rows of the second product span
 * no more columns than there are groups. (S·G)·Sᵀ would first make long rows over all nodes, and then fetch a single
 * entry of Sᵀ for each entry of these.
 *
 * Each combine operation is one semiring or is made of several:
 *
 *   sum     plus-times
 *   max     max-times with S a pattern of ones
 *   min     min-plus with S's entries all zero
 *   count   plus-times with patterns
 *   mean    the sum over the count, which have the same pattern
 *   first   min-plus over the positions of G's entries, each then replaced by the value there
 *
 * A mask of the second product leaves out entries on or off the diagonal (--loops drop, only). Mean, first and halved
 * loops have no semiring: their last step runs on the host. */
#include <string.h>

#include "internal.h"

/* What every product of one contraction shares. */
typedef struct request {
    sp_context *context;
    sp_csr mask; /* the diagonal, where loops are not kept */
    sp_loops loops;
    sp_spgemm_algorithm algorithm;
    sp_aia aia;
    bool to_host;
    int64_t peak_bytes;
} request;

static void set_value(sp_csr *m, int64_t k, double value)
{
    if (m->value_type == SP_F32) ((float *)m->values)[k] = (float)value;
    else ((double *)m->values)[k] = value;
}

/* The pattern of the unit matrix. */
static sp_status diagonal(sp_context *context, int64_t size, sp_csr *unit)
{
    const sp_status status = sp_csr_create(context, size, size, size, SP_F32, SP_HOST, unit);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i <= size; i++) unit->row_offsets[i] = i;
    for (int64_t i = 0; i < size; i++) unit->col_indices[i] = (int32_t)i;
    sp_free(context, unit->values);
    unit->values = NULL;
    return SP_OK;
}

/* C = S·G·Sᵀ. */
static sp_status multiply(request *r, const sp_csr *s, const sp_csr *g, sp_semiring semiring, sp_csr *c)
{
    const sp_spgemm_options options = {.semiring = semiring,
                                       .mask = r->loops == SP_LOOPS_KEEP ? NULL : &r->mask,
                                       .complement = r->loops == SP_LOOPS_DROP,
                                       .algorithm = r->algorithm,
                                       .aia = r->aia,
                                       .to_host = r->to_host};
    sp_spgemm_info info;
    const sp_status status = sp_triple_product(r->context, s, g, &options, c, &info);
    if (status == SP_OK && info.peak_bytes > r->peak_bytes) r->peak_bytes = info.peak_bytes;
    return status;
}

/* How many entries of G an entry of C is made of. */
static sp_status multiply_count(request *r, const sp_csr *s, const sp_csr *g, sp_csr *c)
{
    sp_csr pattern = *g;
    pattern.values = NULL;
    return multiply(r, s, &pattern, SP_PLUS_TIMES, c);
}

/* S with zeros of G's type for values. It owns these alone if S lies on the host, else all of itself. */
static sp_status zeroed(sp_context *context, const sp_csr *s, sp_value_type type, sp_csr *zeros)
{
    sp_status status = SP_OK;
    sp_csr pattern = *s;
    pattern.values = NULL;
    pattern.value_type = type;
    *zeros = pattern;
    if (s->space != SP_HOST) status = sp_csr_copy(context, &pattern, SP_HOST, zeros);
    if (status != SP_OK) return status;
    status = sp_alloc(context, s->nnz, type == SP_F32 ? sizeof(float) : sizeof(double), &zeros->values);
    if (status != SP_OK && s->space != SP_HOST) sp_csr_free(context, zeros);
    for (int64_t k = 0; k < s->nnz && status == SP_OK; k++) set_value(zeros, k, -0.0); /* -0 + x is x for all x */
    return status;
}

static void free_zeroed(sp_context *context, const sp_csr *s, sp_csr *zeros)
{
    if (s->space != SP_HOST) sp_csr_free(context, zeros);
    else sp_free(context, zeros->values);
}

static sp_status multiply_min(request *r, const sp_csr *s, const sp_csr *g, sp_csr *c)
{
    sp_csr zeros;
    sp_status status = zeroed(r->context, s, g->value_type, &zeros);
    if (status != SP_OK) return status;
    status = multiply(r, &zeros, g, SP_MIN_PLUS, c);
    free_zeroed(r->context, s, &zeros);
    return status;
}

static sp_status multiply_mean(request *r, const sp_csr *s, const sp_csr *g, sp_csr *c)
{
    sp_csr counts = {0};
    sp_status status;
    TRY(multiply_count(r, s, g, &counts));
    TRY(multiply(r, s, g, SP_PLUS_TIMES, c));
    for (int64_t k = 0; k < c->nnz; k++) set_value(c, k, entry_value(c, k) / entry_value(&counts, k));
done:
    sp_csr_free(r->context, &counts);
    return status;
}

/* Replaces positions in G by the values there, of G's type. */
static sp_status look_up(sp_context *context, const sp_csr *g, sp_csr *found)
{
    const double *places = found->values;
    sp_csr made = *found;
    sp_status status = SP_OK;
    if (g->value_type == SP_F32) status = sp_alloc(context, found->nnz, sizeof(float), &made.values);
    if (status != SP_OK) return status;
    made.value_type = g->value_type;
    for (int64_t k = 0; k < found->nnz; k++) set_value(&made, k, entry_value(g, (int64_t)places[k]));
    if (made.values != found->values) sp_free(context, found->values);
    *found = made;
    return SP_OK;
}

static sp_status multiply_first(request *r, const sp_csr *s, const sp_csr *g, sp_csr *c)
{
    sp_context *context = r->context;
    sp_csr copy = {0}, places, found = {0};
    double *numbers = NULL;
    sp_status status;
    if (g->space != SP_HOST) {
        TRY(sp_csr_copy(context, g, SP_HOST, &copy));
        g = &copy;
    }
    places = *g;
    TRY(sp_alloc(context, g->nnz, sizeof *numbers, (void **)&numbers));
    for (int64_t k = 0; k < g->nnz; k++) numbers[k] = (double)k; /* exact: there is no memory for 2^53 */
    places.values = numbers;
    places.value_type = SP_F64;
    TRY(multiply_min(r, s, &places, &found));
    TRY(look_up(context, g, &found));
    *c = found;
    found = (sp_csr){0};
done:
    sp_free(context, numbers);
    sp_csr_free(context, &found);
    sp_csr_free(context, &copy);
    return status;
}

static sp_status combine(request *r, const sp_csr *s, const sp_csr *g, sp_combine rule, sp_csr *c)
{
    switch (rule) {
    case SP_COMBINE_SUM: return multiply(r, s, g, SP_PLUS_TIMES, c);
    case SP_COMBINE_MAX: return multiply(r, s, g, SP_MAX_TIMES, c);
    case SP_COMBINE_MIN: return multiply_min(r, s, g, c);
    case SP_COMBINE_COUNT: return multiply_count(r, s, g, c);
    case SP_COMBINE_MEAN: return multiply_mean(r, s, g, c);
    case SP_COMBINE_FIRST: break;
    }
    return multiply_first(r, s, g, c);
}

static void halve_loops(sp_csr *c)
{
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t k = c->row_offsets[i]; k < c->row_offsets[i + 1] && c->col_indices[k] <= i; k++)
            if (c->col_indices[k] == i) set_value(c, k, entry_value(c, k) / 2);
}

static sp_status check(sp_context *context, const sp_csr *s, const sp_csr *g, const contraction_options *options,
                       const sp_csr *c)
{
    static const char call[] = "contraction_product";
    sp_status status = sp_require_csr(context, call, "S", s);
    if (status == SP_OK) status = sp_require_csr(context, call, "G", g);
    if (status == SP_OK) status = sp_require_output(context, call, "C", c, "S", s);
    if (status == SP_OK) status = sp_require_output(context, call, "C", c, "G", g);
    if (status != SP_OK) return status;
    if (g->rows != g->cols || s->cols != g->rows)
        return sp_fail(context, SP_ERROR_ARGUMENT, "S is %lld x %lld and the graph %lld x %lld: it must be square,"
                       " and S have a column a node", (long long)s->rows, (long long)s->cols,
                       (long long)g->rows, (long long)g->cols);
    if (s->values && s->value_type != g->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "S holds %s and the graph %s: values of the same type are needed",
                       s->value_type == SP_F32 ? "f32" : "f64", g->value_type == SP_F32 ? "f32" : "f64");
    if ((unsigned)options->engine > CONTRACTION_PRODUCT || options->engine == CONTRACTION_FUSED)
        return sp_fail(context, SP_ERROR_ARGUMENT, "engine %d does not take a matrix S", (int)options->engine);
    if ((unsigned)options->how.combine > SP_COMBINE_COUNT || (unsigned)options->how.loops > SP_LOOPS_ONLY)
        return sp_fail(context, SP_ERROR_ARGUMENT, "combine operation %d or loops %d does not exist",
                       (int)options->how.combine, (int)options->how.loops);
    return SP_OK;
}

sp_status contraction_product(sp_context *context, const sp_csr *s, const sp_csr *g,
                              const contraction_options *options, sp_csr *c, contraction_info *info)
{
    const contraction_options all = options ? *options : (contraction_options){0};
    const sp_combine rule = all.how.combine;
    const bool half = all.how.half_loops && (rule == SP_COMBINE_SUM || rule == SP_COMBINE_COUNT);
    const double start = wall_seconds();
    request r = {.context = context, .loops = all.how.loops, .algorithm = all.algorithm, .aia = all.aia};
    sp_csr made = {0}, moved = {0};
    sp_status status = check(context, s, g, &all, c);
    if (status != SP_OK) return status;
    sp_csr weights = *s;
    r.to_host = half || rule == SP_COMBINE_MEAN || rule == SP_COMBINE_FIRST;
    if (rule != SP_COMBINE_SUM) weights.values = NULL;
    weights.value_type = g->value_type;
    if (r.loops != SP_LOOPS_KEEP) TRY(diagonal(context, s->rows, &r.mask));
    TRY(combine(&r, &weights, g, rule, &made));
    if (half) halve_loops(&made);
    if (r.to_host && sp_context_stream(context)) { /* the context computes in device memory */
        TRY(sp_csr_copy(context, &made, SP_DEVICE, &moved));
        sp_csr_free(context, &made);
        made = moved;
    }
    *c = made;
    memset(&made, 0, sizeof made);
    if (info)
        *info = (contraction_info){.engine = CONTRACTION_PRODUCT, .nnz = c->nnz, .peak_bytes = r.peak_bytes,
                                   .seconds = wall_seconds() - start};
done:
    sp_csr_free(context, &made);
    sp_csr_free(context, &r.mask);
    return status;
}
