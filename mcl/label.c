/* The whole process in one call, for graphs whose clusters are all that is wanted: labels. */
#include <string.h>

#include "mcl.h"

/* A copy with f32 values, which the process takes. */
static sp_status give_weights(sp_context *context, const sp_csr *g, sp_csr *copy)
{
    const sp_status status = sp_csr_create(context, g->rows, g->cols, g->nnz, SP_F32, SP_HOST, copy);
    if (status != SP_OK) return status;
    memcpy(copy->row_offsets, g->row_offsets, (size_t)(g->rows + 1) * sizeof *g->row_offsets);
    memcpy(copy->col_indices, g->col_indices, (size_t)g->nnz * sizeof *g->col_indices);
    for (int64_t e = 0; e < g->nnz; e++)
        ((float *)copy->values)[e] = !g->values                ? 1.0f
                                     : g->value_type == SP_F32 ? ((const float *)g->values)[e]
                                                               : (float)((const double *)g->values)[e];
    return SP_OK;
}

sp_status mcl_label(sp_context *context, const sp_csr *graph, const mcl_options *options, int32_t *labels,
                    int64_t *clusters)
{
    mcl_run run;
    mcl_clustering found = {0};
    sp_csr weighted = {0}, start = {0}, limit = {0};
    sp_status status = give_weights(context, graph, &weighted);
    if (status == SP_OK) status = mcl_start_matrix(context, &weighted, NULL, options, false, &start);
    if (status == SP_OK) status = mcl_iterate(context, &start, options, NULL, NULL, &limit, &run);
    sp_csr_free(context, &start);
    if (status == SP_OK) status = mcl_interpret(context, &limit, &weighted, options, &found);
    sp_csr_free(context, &limit);
    sp_csr_free(context, &weighted);
    if (status != SP_OK) return status;
    for (int64_t c = found.clusters; c-- > 0;)
        for (int64_t i = found.offsets[c]; i < found.offsets[c + 1]; i++) labels[found.members[i]] = (int32_t)c;
    *clusters = found.clusters;
    mcl_clustering_free(context, &found);
    return SP_OK;
}
