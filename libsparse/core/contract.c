/* The public contraction: checks graph and labels, brings them to the back end's space, calls the back end. */
#include <string.h>

#include "internal.h"

static sp_status check_request(sp_context *context, const sp_csr *g, sp_space labels_space, int64_t groups,
                               const sp_contract_options *options)
{
    if (g->rows != g->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph is %lld x %lld, not square", (long long)g->rows,
                       (long long)g->cols);
    if (groups < 0 || groups > INT32_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld groups are not between 0 and %d", (long long)groups,
                       INT32_MAX);
    if ((unsigned)options->combine > SP_COMBINE_COUNT || (unsigned)options->loops > SP_LOOPS_ONLY)
        return sp_fail(context, SP_ERROR_ARGUMENT, "combine operation %d or loops %d does not exist",
                       (int)options->combine, (int)options->loops);
    if (labels_space == SP_DEVICE && context->backend->space == SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a CPU context cannot reach device memory");
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

sp_status sp_contract(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                      int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const sp_backend *backend = context->backend;
    const sp_contract_options how = options ? *options : (sp_contract_options){0};
    const int32_t *used = labels;
    void *moved = NULL;
    sp_csr g_copy = {0}, made = {0};
    sp_contract_info measured = {0};
    memset(c, 0, sizeof *c);
    sp_status status = check_request(context, g, labels_space, groups, &how);
    if (status == SP_OK && labels_space == SP_HOST) status = check_labels(context, labels, g->rows, groups);
    if (status != SP_OK) return status;
    if (g->space != backend->space) SP_TRY(sp_csr_copy(context, g, backend->space, &g_copy));
    if (labels_space != backend->space) {
        const size_t bytes = (size_t)g->rows * sizeof *labels; /* below 2^33 */
        SP_TRY(backend->allocate(context, bytes ? bytes : 1, &moved));
        SP_TRY(backend->copy(context, moved, backend->space, labels, SP_HOST, bytes));
        used = moved;
    }
    if (sp_interrupted(context)) SP_TRY(sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted"));
    SP_TRY(backend->contract(context, g_copy.row_offsets ? &g_copy : g, used, groups, &how, &made, &measured));
    *c = made;
    if (info) *info = measured;
done:
    if (moved) backend->release(context, moved);
    sp_csr_free(context, &g_copy);
    return status;
}
