/* How clusters lie in the input graph, whose weights are as they were read. Loops are left out. With w the weight of
 * all arcs, and for a cluster d the weight of the arcs of its members and e that of the arcs that stay inside,
 *   coverage    Σ e / w,
 *   modularity  Σ e / w - (d / w)² (Newman and Girvan, 2004; clm info's): 0 for clusters at random, near 1 for
 *               clusters that hardly touch.
 * A node in several clusters counts in each, and once in w. O(nnz), times the clusters of a node.
 */
#include "base/try.h"
#include "base/value.h"
#include "mcl.h"

static void profile_cluster(const sp_csr *graph, const int32_t *members, int64_t size, const int32_t *mark,
                            int32_t number, mcl_profile *profile)
{
    mcl_profile p = {.size = size};
    for (int64_t i = 0; i < size; i++)
        for (int64_t e = graph->row_offsets[members[i]]; e < graph->row_offsets[members[i] + 1]; e++) {
            const int32_t other = graph->col_indices[e];
            if (other == members[i]) continue;
            const double weight = entry_value(graph, e);
            p.weight += weight;
            if (mark[other] != number) continue;
            p.weight_inside += weight;
            p.arcs_inside++;
        }
    *profile = p;
}

sp_status mcl_profile_clusters(sp_context *context, const sp_csr *graph, const mcl_clustering *clustering,
                               mcl_profile *profiles, double *coverage, double *modularity)
{
    static const char call[] = "mcl_profile_clusters";
    double weight = 0, inside = 0, expected = 0;
    int32_t *mark = NULL;
    sp_status status;
    TRY(sp_require_csr(context, call, "graph", graph));
    TRY(sp_require(context, call, "clustering", clustering));
    TRY(sp_require(context, call, "profiles", profiles));
    if (graph->space != SP_HOST || graph->rows != clustering->nodes || graph->cols != clustering->nodes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: clusters of %lld nodes need a host graph of as many", call,
                    (long long)clustering->nodes));
    TRY(sp_calloc(context, graph->rows, sizeof *mark, (void **)&mark));
    for (int64_t i = 0; i < graph->rows; i++)
        for (int64_t e = graph->row_offsets[i]; e < graph->row_offsets[i + 1]; e++)
            if (graph->col_indices[e] != i) weight += entry_value(graph, e);
    for (int64_t k = 0; k < clustering->clusters; k++) {
        const int32_t *members = clustering->members + clustering->offsets[k];
        const int64_t size = clustering->offsets[k + 1] - clustering->offsets[k];
        for (int64_t i = 0; i < size; i++) mark[members[i]] = (int32_t)(k + 1);
        profile_cluster(graph, members, size, mark, (int32_t)(k + 1), &profiles[k]);
        inside += profiles[k].weight_inside;
        if (weight > 0) expected += profiles[k].weight / weight * (profiles[k].weight / weight);
    }
    if (coverage) *coverage = weight > 0 ? inside / weight : 0;
    if (modularity) *modularity = weight > 0 ? inside / weight - expected : 0;
done:
    sp_free(context, mark);
    return status;
}
