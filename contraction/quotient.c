/* The quotient graph of a labelling: chooses between sp_contract and two products.
 *
 * The fused engine combines each entry of G once, straight into C. Two products combine nnz(G) entries into S·G,
 * write that, and combine its entries again into C: nnz(G) + nnz(G·Sᵀ) combinations, whatever the labels. So the
 * fused engine never costs more, and AUTO takes the products only where a back end has no other. */
#include <string.h>

#include "internal.h"

/* S, a pattern: S(labels[i], i) = 1. Row by row the nodes of a group ascend. */
static sp_status selection(sp_context *context, const int32_t *labels, int64_t nodes, int64_t groups,
                           sp_value_type type, sp_csr *s)
{
    int64_t labelled = 0, *offsets;
    sp_status status = contraction_check_labels(context, labels, nodes, groups);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < nodes; i++) labelled += labels[i] >= 0;
    status = sp_csr_create(context, groups, nodes, labelled, type, SP_HOST, s);
    if (status != SP_OK) return status;
    sp_free(context, s->values);
    s->values = NULL;
    offsets = s->row_offsets;
    memset(offsets, 0, ((size_t)groups + 1) * sizeof *offsets);
    for (int64_t i = 0; i < nodes; i++)
        if (labels[i] >= 0) offsets[labels[i] + 1]++;
    for (int64_t p = 0; p < groups; p++) offsets[p + 1] += offsets[p];
    /* From the end, so that each group's end moves down to its start; what is then one too far down is shifted. */
    for (int64_t i = nodes; i-- > 0;)
        if (labels[i] >= 0) s->col_indices[--offsets[labels[i] + 1]] = (int32_t)i;
    memmove(offsets, offsets + 1, (size_t)groups * sizeof *offsets);
    offsets[groups] = labelled;
    return SP_OK;
}

static sp_status by_products(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                             const contraction_options *options, sp_csr *c, contraction_info *info)
{
    sp_csr s = {0};
    sp_status status = selection(context, labels, g->rows, groups, g->value_type, &s);
    if (status == SP_OK) status = contraction_product(context, &s, g, options, c, info);
    sp_csr_free(context, &s);
    return status;
}

/* Labels of the device are copied to the host. */
static sp_status by_products_of(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                                int64_t groups, const contraction_options *options, sp_csr *c, contraction_info *info)
{
    int32_t *copy = NULL;
    sp_status status;
    if (labels_space == SP_HOST) return by_products(context, g, labels, groups, options, c, info);
    TRY(sp_alloc(context, g->rows, sizeof *copy, (void **)&copy));
    TRY(sp_array_copy(context, g->rows, sizeof *copy, copy, SP_HOST, labels, labels_space));
    TRY(by_products(context, g, copy, groups, options, c, info));
done:
    sp_free(context, copy);
    return status;
}

sp_status contraction_quotient(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                               const contraction_options *options, sp_csr *c, contraction_info *info)
{
    return contraction_quotient_at(context, g, labels, SP_HOST, groups, options, c, info);
}

sp_status contraction_quotient_at(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                                  int64_t groups, const contraction_options *options, sp_csr *c,
                                  contraction_info *info)
{
    contraction_options how = options ? *options : (contraction_options){0};
    sp_contract_info measured;
    const double start = wall_seconds();
    sp_status status = contraction_require(context, "contraction_quotient", g, labels);
    if (status == SP_OK) status = sp_require_output(context, "contraction_quotient", "C", c, "G", g);
    if (status != SP_OK) return status;
    if ((unsigned)how.engine > CONTRACTION_PRODUCT)
        return sp_fail(context, SP_ERROR_ARGUMENT, "engine %d does not exist", (int)how.engine);
    if (how.engine != CONTRACTION_PRODUCT) {
        status = sp_contract(context, g, labels, labels_space, groups, &how.how, c, &measured);
        if (status == SP_OK && info)
            *info = (contraction_info){.engine = CONTRACTION_FUSED, .nnz = c->nnz, .peak_bytes = measured.peak_bytes,
                                       .seconds = wall_seconds() - start, .mirrored = measured.mirrored};
        if (status != SP_ERROR_UNSUPPORTED || how.engine == CONTRACTION_FUSED) return status;
    }
    how.engine = CONTRACTION_PRODUCT;
    status = by_products_of(context, g, labels, labels_space, groups, &how, c, info);
    if (status == SP_OK && info) info->seconds = wall_seconds() - start;
    return status;
}
