/* What is known of the groups of a labelling, and their numbering. */
#include <string.h>

#include "internal.h"

/* Where the weight of one node's edges goes. */
typedef struct node_weight {
    double internal, cut;
} node_weight;

static node_weight weigh_node(const sp_csr *g, const int32_t *labels, int64_t node)
{
    node_weight sum = {0, 0};
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = labels[g->col_indices[k]];
        if (other < 0) continue;
        *(other == labels[node] ? &sum.internal : &sum.cut) += entry_value(g, k);
    }
    return sum;
}

/* 1 where all others have no weight to be compared with. */
static double conductance(const contraction_group *group, double all)
{
    const double own = group->internal + group->cut, smaller = own < all - own ? own : all - own;
    if (group->cut == 0) return 0;
    return smaller > 0 ? group->cut / smaller : 1;
}

void contraction_conductances(contraction_group *group, int64_t groups)
{
    double all = 0;
    for (int64_t p = 0; p < groups; p++) all += group[p].internal + group[p].cut;
    for (int64_t p = 0; p < groups; p++) group[p].conductance = conductance(&group[p], all);
}

sp_status contraction_groups(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                             contraction_group *group)
{
    node_weight *weights = NULL;
    sp_status status = contraction_require(context, __func__, g, labels);
    if (status == SP_OK && groups < 0)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld groups", __func__, (long long)groups);
    if (status == SP_OK && groups > 0) status = sp_require(context, __func__, "group", group);
    if (status == SP_OK) status = contraction_check_graph(context, g);
    if (status == SP_OK) status = contraction_check_labels(context, labels, g->rows, groups);
    if (status == SP_OK) status = sp_alloc(context, g->rows, sizeof *weights, (void **)&weights);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1024) num_threads(sp_context_threads(context)) if (g->nnz > 100000)
    for (int64_t i = 0; i < g->rows; i++)
        if (labels[i] >= 0) weights[i] = weigh_node(g, labels, i);
    if (groups > 0) memset(group, 0, (size_t)groups * sizeof *group);
    for (int64_t i = 0; i < g->rows; i++) { /* in this order whatever the threads */
        if (labels[i] < 0) continue;
        contraction_group *to = &group[labels[i]];
        to->size++;
        to->internal += weights[i].internal;
        to->cut += weights[i].cut;
    }
    contraction_conductances(group, groups);
    sp_free(context, weights);
    return SP_OK;
}

sp_status contraction_compact(sp_context *context, int64_t nodes, int32_t *labels, int64_t *groups, int32_t **old)
{
    int32_t *number = NULL, *kept = NULL;
    int64_t count = 0;
    sp_status status = sp_require(context, __func__, "groups", groups);
    if (status == SP_OK && nodes < 0)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld nodes", __func__, (long long)nodes);
    if (status == SP_OK && nodes > 0) status = sp_require(context, __func__, "labels", labels);
    if (status != SP_OK) return status;
    if (*groups < 0 || *groups > INT32_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld groups are not between 0 and %d", (long long)*groups,
                       INT32_MAX);
    status = contraction_check_labels(context, labels, nodes, *groups);
    if (status == SP_OK) status = sp_calloc(context, *groups, sizeof *number, (void **)&number);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < nodes; i++)
        if (labels[i] >= 0) number[labels[i]] = 1;
    for (int64_t p = 0; p < *groups; p++) count += number[p];
    if (old) TRY(sp_alloc(context, count, sizeof *kept, (void **)&kept));
    count = 0;
    for (int64_t p = 0; p < *groups; p++) {
        if (!number[p]) continue;
        if (old) kept[count] = (int32_t)p;
        number[p] = (int32_t)count++;
    }
    for (int64_t i = 0; i < nodes; i++)
        if (labels[i] >= 0) labels[i] = number[labels[i]];
    if (old) *old = kept;
    *groups = count;
done:
    sp_free(context, number);
    return status;
}
