/* How clusters lie in the input graph, whose weights are as they were read. Loops are left out. With w the weight of
 * all arcs, and for a cluster d the weight of the arcs of its members and e that of the arcs that stay inside,
 *   coverage    Σ e / w,
 *   modularity  Σ e / w - (d / w)² (Newman and Girvan, 2004; clm info's): 0 for clusters at random, near 1 for
 *               clusters that hardly touch.
 * A node in several clusters counts in each, and once in w. O(nnz), times the clusters of a node.
 */
#include "base/try.h"
#include "base/value.h"
#include "members.h"

struct mcl_profiling {
    sp_context *context;
    mcl_memberships of;
    mcl_profile *profiles;
    double weight; /* of all arcs */
};

sp_status mcl_profile_begin(sp_context *context, const mcl_clustering *clustering, mcl_profile *profiles,
                            mcl_profiling **profiling)
{
    mcl_profiling *p = NULL;
    sp_status status;
    TRY(sp_require(context, __func__, "clustering", clustering));
    TRY(sp_require(context, __func__, "profiles", profiles));
    TRY(sp_require(context, __func__, "profiling", profiling));
    TRY(sp_calloc(context, 1, sizeof *p, (void **)&p));
    p->context = context;
    p->profiles = profiles;
    TRY(mcl_memberships_make(context, clustering, &p->of));
    for (int64_t k = 0; k < clustering->clusters; k++)
        profiles[k] = (mcl_profile){.size = clustering->offsets[k + 1] - clustering->offsets[k]};
    *profiling = p;
    p = NULL;
done:
    mcl_profile_drop(p);
    return status;
}

void mcl_profile_drop(mcl_profiling *p)
{
    if (!p) return;
    mcl_memberships_free(p->context, &p->of);
    sp_free(p->context, p);
}

void mcl_profile_rows(void *profiling, int64_t first, const sp_csr *rows)
{
    mcl_profiling *p = profiling;
    for (int64_t i = 0; i < rows->rows; i++) {
        const int64_t begin = p->of.starts[first + i], end = p->of.starts[first + i + 1];
        for (int64_t e = rows->row_offsets[i]; e < rows->row_offsets[i + 1]; e++) {
            const int32_t other = rows->col_indices[e];
            if (other == first + i) continue;
            const double weight = entry_value(rows, e);
            p->weight += weight;
            for (int64_t k = begin; k < end; k++) {
                mcl_profile *to = &p->profiles[p->of.clusters[k]];
                to->weight += weight;
                if (!is_member(&p->of, other, p->of.clusters[k])) continue;
                to->weight_inside += weight;
                to->arcs_inside++;
            }
        }
    }
}

void mcl_profile_end(mcl_profiling *p, double *coverage, double *modularity)
{
    const double weight = p->weight;
    double inside = 0, expected = 0;
    for (int64_t k = 0; k < p->of.clustering->clusters; k++) {
        inside += p->profiles[k].weight_inside;
        if (weight > 0) expected += p->profiles[k].weight / weight * (p->profiles[k].weight / weight);
    }
    if (coverage) *coverage = weight > 0 ? inside / weight : 0;
    if (modularity) *modularity = weight > 0 ? inside / weight - expected : 0;
    mcl_profile_drop(p);
}

sp_status mcl_profile_clusters(sp_context *context, const sp_csr *graph, const mcl_clustering *clustering,
                               mcl_profile *profiles, double *coverage, double *modularity)
{
    static const char call[] = "mcl_profile_clusters";
    mcl_profiling *profiling;
    sp_status status;
    TRY(sp_require_csr(context, call, "graph", graph));
    TRY(sp_require(context, call, "clustering", clustering));
    TRY(sp_require(context, call, "profiles", profiles));
    if (graph->space != SP_HOST || graph->rows != clustering->nodes || graph->cols != clustering->nodes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: clusters of %lld nodes need a host graph of as many", call,
                    (long long)clustering->nodes));
    TRY(mcl_profile_begin(context, clustering, profiles, &profiling));
    mcl_profile_rows(profiling, 0, graph);
    mcl_profile_end(profiling, coverage, modularity);
done:
    return status;
}
