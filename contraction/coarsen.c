/* Labels that make a graph smaller: chooses the way, bounds the number of groups, numbers them. */
#include <stdlib.h>
#include <string.h>

#include "coarsen.h"
#include "on_device.h"

/* Two-hop matching begins where other ways leave more than a tenth of the nodes alone, as METIS has it. */
static bool is_stalled(const coarsening *c)
{
    int64_t alone = 0;
    for (int64_t i = 0; i < c->g->rows; i++) alone += c->leader[i] < 0;
    return alone * 10 > c->g->rows;
}

static sp_status make_groups(coarsening *c)
{
    sp_status status = SP_OK;
    switch (c->how->method) {
    case CONTRACTION_MATCHING: return coarsen_match(c);
    case CONTRACTION_TWO_HOP: status = coarsen_match(c); break;
    case CONTRACTION_HEAVY_EDGES: status = coarsen_heavy_edges(c); break;
    case CONTRACTION_PROPAGATION: status = coarsen_propagate(c); break;
    }
    return status == SP_OK && is_stalled(c) ? coarsen_two_hop(c) : status;
}

/* Group numbers in the order of the lowest node of each group. `number` has an element a leader. */
static int64_t number_groups(int64_t nodes, const int32_t *leader, int32_t *number, int32_t *labels)
{
    int32_t count = 0;
    memset(number, 0xff, (size_t)nodes * sizeof *number);
    for (int64_t i = 0; i < nodes; i++) { /* no branch: which nodes are the first of a group cannot be predicted */
        const int32_t of = leader[i] < 0 ? (int32_t)i : leader[i], known = number[of], first = known < 0;
        labels[i] = number[of] = (known & (first - 1)) | (count & -first);
        count += first;
    }
    return count;
}

static sp_status start(coarsening *c)
{
    const int64_t n = c->g->rows;
    sp_status status = sp_alloc(c->context, n, sizeof *c->leader, (void **)&c->leader);
    if (status == SP_OK && n > 0) memset(c->leader, 0xff, (size_t)n * sizeof *c->leader);
    if (c->how->method == CONTRACTION_MATCHING && c->cap == INFINITY) return status;
    if (status == SP_OK) status = sp_alloc(c->context, n, sizeof *c->load, (void **)&c->load);
    for (int64_t i = 0; i < n && status == SP_OK; i++) c->load[i] = c->how->weights ? c->how->weights[i] : 1;
    return status;
}

static sp_status coarsen_on_host(sp_context *context, const sp_csr *g, const contraction_coarsening *how,
                                 int32_t *labels, int64_t *groups)
{
    coarsening c = {.context = context, .g = g, .how = how};
    int32_t *number = NULL, *made = NULL, *to = labels;
    int64_t count;
    sp_status status;
    c.threads = sp_context_threads(context);
    c.cap = c.how->max_weight > 0 ? c.how->max_weight : INFINITY;
    TRY(start(&c));
    if (c.how->method != CONTRACTION_MATCHING) TRY(coarsen_distances(&c));
    TRY(make_groups(&c));
    TRY(sp_alloc(context, g->rows, sizeof *number, (void **)&number));
    if (c.how->least > 0) { /* may fail after the numbering, and labels are written on success only */
        TRY(sp_alloc(context, g->rows, sizeof *made, (void **)&made));
        to = made;
    }
    count = number_groups(g->rows, c.leader, number, to);
    if (count < c.how->least) TRY(contraction_loosen(context, g, made, &count, c.how->least));
    if (made && g->rows > 0) memcpy(labels, made, (size_t)g->rows * sizeof *labels);
    *groups = count;
done:
    FREE_ALL(context, made, number, c.leader, c.load, c.place, c.units, c.heavy, c.claims);
    return status;
}

/* What the device does not do itself is done with copies in host memory. */
static sp_status coarsen_copies(sp_context *context, const sp_csr *g, const contraction_coarsening *how,
                                int32_t *labels, int64_t *groups)
{
    const int64_t n = g->rows;
    contraction_coarsening here = *how;
    sp_csr copy = {0};
    int32_t *made = NULL;
    double *weights = NULL;
    sp_status status;
    TRY(sp_csr_copy(context, g, SP_HOST, &copy));
    TRY(sp_alloc(context, n, sizeof *made, (void **)&made));
    if (how->weights) {
        TRY(sp_alloc(context, n, sizeof *weights, (void **)&weights));
        TRY(sp_array_copy(context, n, sizeof *weights, weights, SP_HOST, how->weights, SP_DEVICE));
        here.weights = weights;
    }
    TRY(coarsen_on_host(context, &copy, &here, made, groups));
    TRY(sp_array_copy(context, n, sizeof *made, labels, SP_DEVICE, made, SP_HOST));
done:
    sp_csr_free(context, &copy);
    FREE_ALL(context, made, weights);
    return status;
}

static sp_status loosen_copies(sp_context *context, const sp_csr *g, int32_t *labels, int64_t *groups, int64_t least)
{
    const int64_t n = g->rows;
    sp_csr copy = {0};
    int32_t *made = NULL;
    sp_status status;
    TRY(sp_csr_copy(context, g, SP_HOST, &copy));
    TRY(sp_alloc(context, n, sizeof *made, (void **)&made));
    TRY(sp_array_copy(context, n, sizeof *made, made, SP_HOST, labels, SP_DEVICE));
    TRY(contraction_loosen(context, &copy, made, groups, least));
    TRY(sp_array_copy(context, n, sizeof *made, labels, SP_DEVICE, made, SP_HOST));
done:
    sp_csr_free(context, &copy);
    sp_free(context, made);
    return status;
}

static sp_status coarsen_on_device(sp_context *context, const sp_csr *g, const contraction_coarsening *how,
                                   int32_t *labels, int64_t *groups)
{
    bool complete = false;
    int32_t *made = NULL;
    int64_t count = 0;
    sp_status status;
    TRY(sp_array_create(context, g->rows, sizeof *made, SP_DEVICE, (void **)&made));
#ifdef CONTRACTION_CUDA
    TRY(contraction_cuda_coarsen(context, g, how, made, &count, &complete));
#endif
    if (!complete) {
        TRY(coarsen_copies(context, g, how, labels, groups));
        goto done;
    }
    if (count < how->least) TRY(loosen_copies(context, g, made, &count, how->least));
    TRY(sp_array_copy(context, g->rows, sizeof *made, labels, SP_DEVICE, made, SP_DEVICE));
    *groups = count;
done:
    sp_array_free(context, SP_DEVICE, made);
    return status;
}

sp_status contraction_coarsen(sp_context *context, const sp_csr *g, const contraction_coarsening *how, int32_t *labels,
                              int64_t *groups)
{
    static const contraction_coarsening usual = {.method = CONTRACTION_TWO_HOP, .seed = 1};
    sp_status status;
    if (!how) how = &usual;
    TRY(contraction_require(context, __func__, g, labels));
    TRY(sp_require(context, __func__, "groups", groups));
    TRY(contraction_check_square(context, g));
    if ((unsigned)how->method > CONTRACTION_PROPAGATION || !(how->max_weight >= 0) || how->least < 0)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: way %d, greatest weight %g, at least %lld groups", __func__,
                    (int)how->method, how->max_weight, (long long)how->least));
    TRY((g->space == SP_HOST ? coarsen_on_host : coarsen_on_device)(context, g, how, labels, groups));
done:
    return status;
}

/* ---- weights of groups ------------------------------------------------------------------------------------ */

sp_status contraction_add_weights(sp_context *context, const int32_t *labels, int64_t nodes, int64_t groups,
                                  sp_space space, double *weights)
{
    int64_t next = 0;
    sp_status status = sp_require(context, __func__, "labels", nodes > 0 ? labels : (const void *)&next);
    if (status == SP_OK) status = sp_require(context, __func__, "weights", nodes > 0 ? weights : (const void *)&next);
    if (status == SP_OK && space == SP_DEVICE && !sp_context_is_cuda(context))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: weights on the device, and the context has none", __func__);
    if (status != SP_OK) return status;
#ifdef CONTRACTION_CUDA
    if (space == SP_DEVICE) return contraction_cuda_add_weights(context, labels, nodes, groups, weights);
#endif
    (void)groups;
    for (int64_t i = 0; i < nodes; i++) { /* in place: a group's number is at most that of its first node */
        const double weight = weights[i];
        if (labels[i] == next) weights[next++] = weight;
        else weights[labels[i]] += weight;
    }
    return SP_OK;
}

/* ---- fewer nodes in groups ------------------------------------------------------------------------------- */

typedef struct member {
    double bond; /* weight of the edges to its group */
    int32_t node;
} member;

static int loosest(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->bond != y->bond) return x->bond < y->bond ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static double bond(const sp_csr *g, const int32_t *labels, int64_t node)
{
    double sum = 0;
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++)
        if (g->col_indices[k] != node && labels[g->col_indices[k]] == labels[node]) sum += entry_value(g, k);
    return sum;
}

sp_status contraction_loosen(sp_context *context, const sp_csr *g, int32_t *labels, int64_t *groups, int64_t least)
{
    const int64_t n = g ? g->rows : 0, missing = (least < n ? least : n) - (groups ? *groups : 0);
    member *members = NULL;
    int32_t *first = NULL, *number = NULL, *leader = NULL;
    int64_t count = 0;
    sp_status status;
    TRY(contraction_require(context, __func__, g, labels));
    TRY(sp_require(context, __func__, "groups", groups));
    TRY(contraction_check_graph(context, g));
    TRY(contraction_check_labels(context, labels, n, *groups));
    if (missing <= 0) goto done;
    TRY(sp_alloc(context, n, sizeof *members, (void **)&members));
    TRY(sp_alloc(context, *groups, sizeof *first, (void **)&first));
    TRY(sp_alloc(context, n, sizeof *number, (void **)&number));
    TRY(sp_alloc(context, n, sizeof *leader, (void **)&leader));
    memset(first, 0xff, (size_t)*groups * sizeof *first);
    for (int64_t i = 0; i < n; i++) {
        if (first[labels[i]] < 0) first[labels[i]] = (int32_t)i;
        leader[i] = first[labels[i]];
        if (leader[i] != i) members[count++].node = (int32_t)i;
    }
#pragma omp parallel for schedule(dynamic, 512) num_threads(sp_context_threads(context)) if (count > 10000)
    for (int64_t i = 0; i < count; i++) members[i].bond = bond(g, labels, members[i].node);
    qsort(members, (size_t)count, sizeof *members, loosest);
    for (int64_t i = 0; i < missing && i < count; i++) leader[members[i].node] = members[i].node;
    *groups = number_groups(n, leader, number, labels);
done:
    FREE_ALL(context, members, first, number, leader);
    return status;
}
