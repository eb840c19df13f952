/* The whole process in one call, for graphs whose clusters are all that is wanted: labels. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/value.h"
#include "mcl.h"

/* A copy with f32 values, which the process takes, without those that f32 rounds to 0. */
static sp_status give_weights(sp_context *context, const sp_csr *g, sp_csr *copy)
{
    const sp_status status = sp_csr_create(context, g->rows, g->cols, g->nnz, SP_F32, SP_HOST, copy);
    if (status != SP_OK) return status;
    int64_t kept = 0;
    for (int64_t i = 0, e = 0; i < g->rows; i++) {
        copy->row_offsets[i] = kept;
        for (; e < g->row_offsets[i + 1]; e++) {
            const double value = entry_value(g, e);
            if (!(fabs(value) <= FLT_MAX))
                return sp_fail(context, SP_ERROR_NOT_FINITE,
                               "a weight of %g: clustering takes at most 3.4e38; scale the weights down", value);
            if (g->value_type == SP_F64 && (float)value == 0) continue;
            copy->col_indices[kept] = g->col_indices[e];
            ((float *)copy->values)[kept++] = (float)value;
        }
    }
    copy->row_offsets[g->rows] = copy->nnz = kept;
    return SP_OK;
}

static sp_status check_arguments(sp_context *context, const sp_csr *graph, const mcl_options *options,
                                 const int32_t *labels, const int64_t *clusters)
{
    static const char call[] = "mcl_label";
    sp_status status = sp_require_csr(context, call, "graph", graph);
    if (status == SP_OK) status = sp_require(context, call, "options", options);
    if (status == SP_OK && graph->rows > 0) status = sp_require(context, call, "labels", labels);
    if (status == SP_OK) status = sp_require(context, call, "clusters", clusters);
    if (status == SP_OK && graph->space != SP_HOST)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: graph must lie in host memory", call);
    return status;
}

sp_status mcl_label(sp_context *context, const sp_csr *graph, const mcl_options *options, int32_t *labels,
                    int64_t *clusters)
{
    mcl_run run;
    mcl_clustering found = {0};
    sp_csr weighted = {0}, start = {0}, limit = {0};
    sp_status status = check_arguments(context, graph, options, labels, clusters);
    if (status == SP_OK) status = give_weights(context, graph, &weighted);
    if (status == SP_OK) status = mcl_start_matrix(context, &weighted, NULL, options, false, &start);
    if (status == SP_OK) status = mcl_iterate(context, &start, options, NULL, NULL, &limit, &run);
    sp_csr_free(context, &start);
    if (status == SP_OK) status = mcl_interpret(context, &limit, &weighted, options, &found);
    sp_csr_free(context, &limit);
    sp_csr_free(context, &weighted);
    if (status != SP_OK) return status;
    mcl_clustering_labels(&found, labels);
    *clusters = found.clusters;
    mcl_clustering_free(context, &found);
    return SP_OK;
}
