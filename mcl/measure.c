/* How well clusters fit the process's start matrix: the figures of mcl's -analyze and of clm info.
 *
 * The start matrix is stochastic: a node, of the cluster P, spreads a mass of 1 over its neighbours S, itself among
 * them, p to each. With in and out for the mass inside and outside of P, and c = Σ p²,
 *   mass fraction  mean of in,
 *   efficiency     mean of 1 - (|P| + (out - in) / c) / |P ∪ S| (van Dongen, INS-R0012, 2000), for equal p
 *                  |P ∩ S| / |P ∪ S|,
 *   modularity     Σ over clusters of e - d², where d is the cluster's part of the mass on arcs other than
 *                  loops, and e the part of that mass which stays within it,
 *   area fraction  Σ |P| (|P| - 1) / (N (N - 1)).
 * Means and sums are over the members of all clusters: a node in two counts twice, but once in the whole mass.
 * O(nnz), times the clusters of a node.
 */
#include "mcl.h"

#include <stdlib.h>

/* Of a cluster's members. */
typedef struct sums {
    double inside, efficiency, arcs, arcs_inside;
} sums;

/* What one member adds to the sums of its cluster, whose members have its number in `mark`. */
static void add_member(const sp_csr *start, int64_t node, int64_t size, const int32_t *mark, int32_t number, sums *s)
{
    const float *values = start->values;
    double inside = 0, outside = 0, squares = 0;
    int64_t either = size;
    for (int64_t e = start->row_offsets[node]; e < start->row_offsets[node + 1]; e++) {
        const int64_t other = start->col_indices[e];
        const double p = (double)values[e];
        const bool shared = mark[other] == number;
        squares += p * p;
        *(shared ? &inside : &outside) += p;
        either += !shared;
        if (other == node) continue;
        s->arcs += p;
        if (shared) s->arcs_inside += p;
    }
    s->inside += inside;
    s->efficiency += 1 - ((double)size + (squares > 0 ? (outside - inside) / squares : 0)) / (double)either;
}

static int descending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The figures of the sizes alone, which descend. */
static void measure_sizes(const int64_t *sizes, int64_t clusters, int64_t nodes, mcl_measures *m)
{
    int64_t covered = 0, members = 0;
    double squares = 0;
    for (int64_t k = 0; k < clusters; k++) {
        squares += (double)sizes[k] * (double)sizes[k];
        members += sizes[k];
        m->singletons += sizes[k] == 1;
        m->quartets += sizes[k] <= 4;
    }
    if (clusters == 0) return;
    m->largest = sizes[0];
    m->smallest = sizes[clusters - 1];
    m->median = sizes[clusters / 2];
    m->center = squares / (double)members;
    m->average = (double)nodes / (double)clusters;
    while (m->dust < clusters && covered < m->largest) covered += sizes[clusters - ++m->dust];
    m->half = clusters - 1;
    for (covered = sizes[m->half]; 2 * covered < nodes && m->half > 0; covered += sizes[m->half]) m->half--;
    m->half_size = sizes[m->half];
}

static sp_status check_arguments(sp_context *context, const sp_csr *start, const mcl_clustering *clustering,
                                 const mcl_measures *measures)
{
    static const char call[] = "mcl_measure";
    sp_status status = sp_require_csr(context, call, "start", start);
    if (status == SP_OK) status = sp_require(context, call, "clustering", clustering);
    if (status == SP_OK) status = sp_require(context, call, "measures", measures);
    if (status != SP_OK) return status;
    if (start->space != SP_HOST || start->value_type != SP_F32 || (start->nnz > 0 && !start->values))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: start must be a host matrix of f32 values", call);
    if (clustering->nodes != start->rows)
        return sp_fail(context, SP_ERROR_ARGUMENT, "clusters of %lld nodes for a matrix of %lld",
                       (long long)clustering->nodes, (long long)start->rows);
    if (clustering->clusters < 0 || (clustering->clusters > 0 && (!clustering->offsets || !clustering->members)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: clustering has %lld clusters and no offsets or members", call,
                       (long long)clustering->clusters);
    return SP_OK;
}

sp_status mcl_measure(sp_context *context, const sp_csr *start, const mcl_clustering *clustering,
                      mcl_measures *measures)
{
    sp_status status = check_arguments(context, start, clustering, measures);
    if (status != SP_OK) return status;
    const int64_t nodes = start->rows, clusters = clustering->clusters;
    const int64_t members = clusters > 0 ? clustering->offsets[clusters] : 0;
    mcl_measures m = {.clusters = clusters};
    int32_t *mark = NULL;
    int64_t *sizes = NULL;
    double inside = 0, efficiency = 0, area = 0, arcs = 0, *parts = NULL;
    status = sp_calloc(context, nodes, sizeof *mark, (void **)&mark);
    if (status == SP_OK) status = sp_alloc(context, clusters, sizeof *sizes, (void **)&sizes);
    if (status == SP_OK) status = sp_alloc(context, 2 * clusters, sizeof *parts, (void **)&parts);
    if (status != SP_OK) goto done;
    for (int64_t k = 0; k < clusters; k++) {
        const int64_t first = clustering->offsets[k], size = clustering->offsets[k + 1] - first;
        sums s = {0};
        for (int64_t i = first; i < first + size; i++) mark[clustering->members[i]] = (int32_t)(k + 1);
        for (int64_t i = first; i < first + size; i++)
            add_member(start, clustering->members[i], size, mark, (int32_t)(k + 1), &s);
        sizes[k] = size;
        parts[2 * k] = s.arcs;
        parts[2 * k + 1] = s.arcs_inside;
        inside += s.inside;
        efficiency += s.efficiency;
        area += (double)size * (double)(size - 1);
    }
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = start->row_offsets[i]; e < start->row_offsets[i + 1]; e++)
            if (start->col_indices[e] != i) arcs += (double)((const float *)start->values)[e];
    for (int64_t k = 0; k < clusters && arcs > 0; k++)
        m.modularity += parts[2 * k + 1] / arcs - (parts[2 * k] / arcs) * (parts[2 * k] / arcs);
    if (members > 0) {
        m.efficiency = efficiency / (double)members;
        m.mass_fraction = inside / (double)members;
    }
    if (area == 0) area = -1; /* as with mcl, where no cluster has two members */
    m.area_fraction = nodes > 1 ? area / ((double)nodes * (double)(nodes - 1)) : (double)nodes;
    qsort(sizes, (size_t)clusters, sizeof *sizes, descending);
    measure_sizes(sizes, clusters, nodes, &m);
    *measures = m;
done:
    sp_free(context, parts);
    sp_free(context, sizes);
    sp_free(context, mark);
    return status;
}
