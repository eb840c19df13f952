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
#include <stdlib.h>

#include "base/try.h"
#include "members.h"

/* Of a cluster's members. */
typedef struct sums {
    double inside, efficiency, arcs, arcs_inside;
} sums;

struct mcl_measuring {
    sp_context *context;
    mcl_memberships of;
    sums *sums;  /* of each cluster */
    double arcs; /* of all nodes */
};

/* What the node of row `row` adds to the sums of one of its clusters. */
static void add_member(const mcl_measuring *m, const sp_csr *rows, int64_t row, int64_t node, int32_t cluster)
{
    const mcl_clustering *c = m->of.clustering;
    const int64_t size = c->offsets[cluster + 1] - c->offsets[cluster];
    const float *values = rows->values;
    double inside = 0, outside = 0, squares = 0;
    int64_t either = size;
    sums *s = &m->sums[cluster];
    for (int64_t e = rows->row_offsets[row]; e < rows->row_offsets[row + 1]; e++) {
        const int64_t other = rows->col_indices[e];
        const double p = (double)values[e];
        const bool shared = is_member(&m->of, other, cluster);
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

sp_status mcl_measure_begin(sp_context *context, const mcl_clustering *clustering, mcl_measuring **measuring)
{
    mcl_measuring *m = NULL;
    sp_status status;
    TRY(sp_require(context, __func__, "clustering", clustering));
    TRY(sp_require(context, __func__, "measuring", measuring));
    TRY(sp_calloc(context, 1, sizeof *m, (void **)&m));
    m->context = context;
    TRY(mcl_memberships_make(context, clustering, &m->of));
    TRY(sp_calloc(context, clustering->clusters, sizeof *m->sums, (void **)&m->sums));
    *measuring = m;
    m = NULL;
done:
    mcl_measure_drop(m);
    return status;
}

void mcl_measure_drop(mcl_measuring *m)
{
    if (!m) return;
    mcl_memberships_free(m->context, &m->of);
    FREE_ALL(m->context, m->sums, m);
}

void mcl_measure_rows(void *measuring, int64_t first, const sp_csr *rows)
{
    mcl_measuring *m = measuring;
    for (int64_t i = 0; i < rows->rows; i++) {
        for (int64_t k = m->of.starts[first + i]; k < m->of.starts[first + i + 1]; k++)
            add_member(m, rows, i, first + i, m->of.clusters[k]);
        for (int64_t e = rows->row_offsets[i]; e < rows->row_offsets[i + 1]; e++)
            if (rows->col_indices[e] != first + i) m->arcs += (double)((const float *)rows->values)[e];
    }
}

sp_status mcl_measure_end(mcl_measuring *measuring, mcl_measures *measures)
{
    const mcl_clustering *c = measuring->of.clustering;
    const int64_t nodes = c->nodes, clusters = c->clusters, members = clusters > 0 ? c->offsets[clusters] : 0;
    mcl_measures m = {.clusters = clusters};
    double inside = 0, efficiency = 0, area = 0;
    int64_t *sizes = NULL;
    sp_status status;
    TRY(sp_require(measuring->context, __func__, "measures", measures));
    TRY(sp_alloc(measuring->context, clusters, sizeof *sizes, (void **)&sizes));
    for (int64_t k = 0; k < clusters; k++) {
        const sums *s = &measuring->sums[k];
        sizes[k] = c->offsets[k + 1] - c->offsets[k];
        inside += s->inside;
        efficiency += s->efficiency;
        area += (double)sizes[k] * (double)(sizes[k] - 1);
        if (measuring->arcs > 0)
            m.modularity += s->arcs_inside / measuring->arcs -
                            (s->arcs / measuring->arcs) * (s->arcs / measuring->arcs);
    }
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
    sp_free(measuring->context, sizes);
    mcl_measure_drop(measuring);
    return status;
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
    mcl_measuring *measuring;
    status = mcl_measure_begin(context, clustering, &measuring);
    if (status != SP_OK) return status;
    mcl_measure_rows(measuring, 0, start);
    return mcl_measure_end(measuring, measures);
}
