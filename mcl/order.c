/* Markov matrices in another numbering of the nodes (sp_csr_community_order), and back. Expansion reads the columns
 * of a community together again and again; when they lie together, its sums stay in the nearest cache, a cache line
 * serves several of them, and the GPU's accumulators become short windows. The numbers change no result: sums run in
 * the order of the original numbers (sp_markov_epilogue.order).
 */
#include "mcl.h"

static sp_status invert(sp_context *context, const int32_t *order, int64_t count, int32_t **inverse)
{
    sp_status status = sp_alloc(context, count, sizeof **inverse, (void **)inverse);
    for (int64_t i = 0; i < count && status == SP_OK; i++) (*inverse)[order[i]] = (int32_t)i;
    return status;
}

sp_status mcl_renumber(sp_context *context, const sp_csr *matrix, const int32_t *order, sp_csr *renumbered)
{
    int32_t *inverse = NULL;
    sp_status status = sp_require_csr(context, __func__, "matrix", matrix);
    if (status == SP_OK) status = sp_require(context, __func__, "order", order);
    if (status == SP_OK) status = sp_require_output(context, __func__, "renumbered", renumbered, "matrix", matrix);
    if (status == SP_OK) status = invert(context, order, matrix->rows, &inverse);
    if (status == SP_OK) status = sp_csr_permute(context, matrix, order, inverse, renumbered);
    sp_free(context, inverse);
    return status;
}

sp_status mcl_restore(sp_context *context, const sp_csr *renumbered, const int32_t *order, sp_csr *matrix)
{
    sp_csr host = {0};
    int32_t *inverse = NULL;
    sp_status status = sp_require_csr(context, __func__, "renumbered", renumbered);
    if (status == SP_OK) status = sp_require_output(context, __func__, "matrix", matrix, "renumbered", renumbered);
    if (status != SP_OK) return status;
    if (!order) return sp_csr_copy(context, renumbered, SP_HOST, matrix);
    status = invert(context, order, renumbered->rows, &inverse);
    if (status == SP_OK && renumbered->space != SP_HOST) status = sp_csr_copy(context, renumbered, SP_HOST, &host);
    if (status == SP_OK)
        status = sp_csr_permute(context, renumbered->space == SP_HOST ? renumbered : &host, inverse, order, matrix);
    sp_csr_free(context, &host);
    sp_free(context, inverse);
    return status;
}
