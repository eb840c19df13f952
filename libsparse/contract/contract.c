/* The public contractions, by labels and by a matrix: check and bring operands to the back end's space, call the back
 * end. */
#include "core/devices.h"

static sp_status check_request(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                               int64_t groups, const sp_contract_options *options, const sp_csr *c)
{
    static const char call[] = "sp_contract";
    sp_status status = sp_require_csr(context, call, "G", g);
    if (status == SP_OK && g->rows > 0) status = sp_require(context, call, "labels", labels);
    if (status == SP_OK) status = sp_require_space(context, call, "labels", labels_space);
    if (status == SP_OK) status = sp_require_output(context, call, "C", c, "G", g);
    if (status != SP_OK) return status;
    if (g->rows != g->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph is %lld x %lld, not square", (long long)g->rows,
                       (long long)g->cols);
    if (groups < 0 || groups > INT32_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld groups are not between 0 and %d", (long long)groups,
                       INT32_MAX);
    if ((unsigned)options->combine > SP_COMBINE_COUNT || (unsigned)options->loops > SP_LOOPS_ONLY)
        return sp_fail(context, SP_ERROR_ARGUMENT, "combine operation %d or loops %d does not exist",
                       (int)options->combine, (int)options->loops);
    if (!context->backend->contract)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "this back end does not contract in one pass");
    return SP_OK;
}

/* Labels in host memory; those in device memory the back end checks while it reads them. */
static sp_status check_labels(sp_context *context, const int32_t *labels, int64_t nodes, int64_t groups)
{
    int32_t largest = -1;
#pragma omp parallel for schedule(static) reduction(max : largest) num_threads(sp_threads_for(context, nodes / 4))
    for (int64_t i = 0; i < nodes; i++) largest = labels[i] > largest ? labels[i] : largest;
    if (largest < groups) return SP_OK;
    int64_t node = 0;
    while (labels[node] < groups) node++;
    return sp_fail(context, SP_ERROR_ARGUMENT, "node %lld has label %d and there are %lld groups", (long long)node,
                   labels[node], (long long)groups);
}

sp_status sp_device_contract(sp_context *device, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                             int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const sp_backend *backend = device->backend;
    const int32_t *used = labels;
    void *moved = NULL;
    sp_csr g_copy = {0};
    sp_status status;
    if (g->space != backend->space) TRY(sp_csr_copy(device, g, backend->space, &g_copy));
    if (labels_space != backend->space) {
        const size_t bytes = (size_t)g->rows * sizeof *labels; /* below 2^33 */
        TRY(backend->allocate(device, bytes ? bytes : 1, &moved));
        TRY(backend->copy(device, moved, backend->space, labels, SP_HOST, bytes));
        used = moved;
    }
    if (sp_interrupted(device)) TRY(sp_fail(device, SP_ERROR_INTERRUPTED, "interrupted"));
    TRY(backend->contract(device, g_copy.row_offsets ? &g_copy : g, used, groups, options, c, info));
done:
    if (moved) backend->release(device, moved);
    sp_csr_free(device, &g_copy);
    return status;
}

sp_status sp_contract(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                      int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const sp_contract_options how = options ? *options : (sp_contract_options){0};
    sp_csr made = {0};
    sp_contract_info measured = {0};
    sp_status status = check_request(context, g, labels, labels_space, groups, &how, c);
    if (status == SP_OK && labels_space == SP_HOST) status = check_labels(context, labels, g->rows, groups);
    if (status != SP_OK) return status;
    if (context->devices && g->space == SP_HOST && labels_space == SP_HOST)
        status = sp_devices_contract(context, g, labels, groups, &how, &made, &measured);
    else status = sp_device_contract(context, g, labels, labels_space, groups, &how, &made, &measured);
    if (status != SP_OK) return status;
    *c = made;
    if (info) *info = measured;
    return SP_OK;
}

/* Copies a matrix into arrays that have room for it, in any space. */
static sp_status copy_into(sp_context *context, const sp_csr *from, sp_csr *to)
{
    const sp_backend *backend = context->backend;
    const size_t entries = (size_t)from->nnz, value = sp_value_size(from->value_type);
    sp_status status;
    TRY(backend->copy(context, to->row_offsets, to->space, from->row_offsets, from->space,
                      ((size_t)from->rows + 1) * sizeof *from->row_offsets));
    if (entries > 0) {
        TRY(backend->copy(context, to->col_indices, to->space, from->col_indices, from->space,
                          entries * sizeof *from->col_indices));
        TRY(backend->copy(context, to->values, to->space, from->values, from->space, entries * value));
    }
    if (backend->finish) TRY(backend->finish(context));
    to->nnz = from->nnz;
done:
    return status;
}

sp_status sp_contract_into(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                           int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    sp_contract_info measured = {0};
    sp_csr made = {0};
    sp_status status;
    TRY(sp_require_csr(context, __func__, "G", g));
    TRY(sp_require_output(context, __func__, "C", c, "G", g));
    const sp_csr wanted = {.rows = groups, .cols = groups, .values = &made, .value_type = g->value_type};
    TRY(sp_require_target(context, __func__, "C", c, &wanted));
    TRY(sp_require_csr_apart(context, __func__, "C", c, "G", g));
    TRY(sp_contract(context, g, labels, labels_space, groups, options, &made, &measured));
    if (measured.peak_bytes) measured.peak_bytes += sp_csr_bytes(&made);
    if (made.nnz > c->nnz)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: C has %lld entries, and its arrays have room for %lld",
                         __func__, (long long)made.nnz, (long long)c->nnz);
    else status = copy_into(context, &made, c);
    if (info && status == SP_OK) *info = measured;
    else if (info && status == SP_ERROR_ARGUMENT) info->nnz = made.nnz;
done:
    sp_csr_free(context, &made);
    return status;
}

/* ---- by a matrix ----------------------------------------------------------------------------------------- */

static sp_status check_triple(sp_context *context, const sp_csr *s, const sp_csr *g, const sp_spgemm_options *options,
                              const sp_csr *c)
{
    static const char call[] = "sp_triple_product";
    sp_status status = sp_require_csr(context, call, "S", s);
    if (status == SP_OK) status = sp_require_csr(context, call, "G", g);
    if (status == SP_OK && options->mask) status = sp_require_csr(context, call, "the mask", options->mask);
    if (status == SP_OK) status = sp_require_output(context, call, "C", c, "S", s);
    if (status == SP_OK) status = sp_require_output(context, call, "C", c, "G", g);
    if (status == SP_OK && options->mask) status = sp_require_output(context, call, "C", c, "the mask", options->mask);
    if (status != SP_OK) return status;
    if (g->rows != g->cols || s->cols != g->rows)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "S is %lld x %lld and G %lld x %lld: it must be square, and S have a column a row of it",
                       (long long)s->rows, (long long)s->cols, (long long)g->rows, (long long)g->cols);
    if (s->value_type != g->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "S holds %s and G %s: values of the same type are needed",
                       sp_value_type_name(s->value_type), sp_value_type_name(g->value_type));
    if (options->transpose_a || options->transpose_b)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a triple product takes no transposes");
    return SP_OK;
}

/* Whether the back end may leave the product between out, if S turns out to have an entry a column. */
static bool may_skip(const sp_context *context, const sp_csr *s, const sp_csr *g, const sp_spgemm_options *options)
{
    return context->backend->triple_product && !s->values && s->nnz <= s->cols && s->nnz > 0 && g->nnz > 0 &&
           options->semiring == SP_PLUS_TIMES && options->algorithm == SP_SPGEMM_AUTO && !options->mask &&
           !options->complement && !options->to_host;
}

static sp_status skip_between(sp_context *context, const sp_csr *s, const sp_csr *g, sp_csr *c, sp_spgemm_info *info,
                              bool *done)
{
    const sp_space space = context->backend->space;
    sp_csr s_copy = {0}, g_copy = {0};
    sp_status status = SP_OK;
    if (s->space != space) TRY(sp_csr_copy(context, s, space, &s_copy));
    if (g->space != space) TRY(sp_csr_copy(context, g, space, &g_copy));
    TRY(context->backend->triple_product(context, s_copy.row_offsets ? &s_copy : s,
                                         g_copy.row_offsets ? &g_copy : g, c, info, done));
done:
    sp_csr_free(context, &s_copy);
    sp_csr_free(context, &g_copy);
    return status;
}

static sp_status multiply_twice(sp_context *context, const sp_csr *s, const sp_csr *g,
                                const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info)
{
    sp_spgemm_options first = *options;
    sp_spgemm_info before = {0};
    sp_csr between = {0};
    sp_status status;
    first.transpose_b = true;
    first.mask = NULL;
    first.complement = first.to_host = false;
    TRY(sp_spgemm(context, g, s, &first, &between, &before));
    TRY(sp_spgemm(context, s, &between, options, c, info));
    if (before.peak_bytes && info->peak_bytes) {
        const int64_t more = before.peak_bytes > info->peak_bytes ? before.peak_bytes : info->peak_bytes;
        info->peak_bytes = 2 * sp_csr_bytes(s) + sp_csr_bytes(&between) + more; /* 2: Sᵀ, and what making it took */
    }
    info->products += before.products;
    info->analysis_seconds += before.analysis_seconds;
    info->aia_seconds += before.aia_seconds;
    info->symbolic_seconds += before.symbolic_seconds;
    info->numeric_seconds += before.numeric_seconds;
done:
    sp_csr_free(context, &between);
    return status;
}

sp_status sp_triple_product(sp_context *context, const sp_csr *s, const sp_csr *g, const sp_spgemm_options *options,
                            sp_csr *c, sp_spgemm_info *info)
{
    const sp_spgemm_options how = options ? *options : (sp_spgemm_options){0};
    sp_spgemm_info measured = {0};
    sp_csr made = {0};
    bool done = false;
    sp_status status = check_triple(context, s, g, &how, c);
    if (status == SP_OK && may_skip(context, s, g, &how))
        status = skip_between(context, s, g, &made, &measured, &done);
    if (status == SP_ERROR_DEVICE_MEMORY) status = SP_OK; /* two products go to host memory where they must */
    if (status == SP_OK && !done) status = multiply_twice(context, s, g, &how, &made, &measured);
    if (status != SP_OK) return status;
    *c = made;
    if (info) *info = measured;
    return SP_OK;
}
