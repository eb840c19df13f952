/* Heavy-edge matching (Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular
 * graphs", 1998) by proposals (Hoepman, "Simple distributed weighted matchings", 2004): each free node proposes to the
 * free neighbour at its best edge, and nodes that propose to each other are a pair. The result is that of a greedy
 * matching by falling rating, whatever the threads. O(nnz) a round and few rounds; nodes that still have proposals then
 * are matched in order.
 *
 * Two-hop matching, for stars and other graphs whose free nodes have no free neighbour (Gilbert et al.,
 * "Performance-portable graph coarsening for efficient multilevel graph analysis", 2021): free nodes are sorted by
 * their best neighbour, then degree, then a sum over their neighbours, and two that follow each other with the same
 * best neighbour are a pair. So leaves of a hub and nodes with the same neighbours come first, then relatives. Nodes
 * that weigh more than half of the bound are left out, so that all pairs fit. */
#include <stdlib.h>

#include "coarsen.h"

static candidate best_neighbour(const coarsening *c, int32_t node)
{
    const sp_csr *g = c->g;
    candidate best = {0, -1};
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = g->col_indices[k];
        if (other == node || !is_free(c, other) || c->load[node] + c->load[other] > c->cap) continue;
        const double rating = rate(c, entry_value(g, k), node, c->load[node], other, c->load[other]);
        if (is_better(c, node, rating, other, best)) best = (candidate){rating, other};
    }
    return best;
}

static void begin_group(coarsening *c, int32_t a, int32_t b) { c->leader[a] = c->leader[b] = a < b ? a : b; }

/* Free nodes with a proposal; returns their number. */
static int64_t keep_open(const coarsening *c, const int32_t *wish, int32_t *open, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (is_free(c, open[i]) && wish[open[i]] >= 0) open[kept++] = open[i];
    return kept;
}

/* One round; whether there was a pair. */
static bool propose(coarsening *c, int32_t *wish, const int32_t *open, int64_t count, bool first)
{
    bool paired = false;
#pragma omp parallel for schedule(dynamic, 512) num_threads(c->threads) if (count > 10000)
    for (int64_t i = 0; i < count; i++)
        if (first || !is_free(c, wish[open[i]])) wish[open[i]] = best_neighbour(c, open[i]).node;
#pragma omp parallel for schedule(static) reduction(|| : paired) num_threads(c->threads) if (count > 10000)
    for (int64_t i = 0; i < count; i++) {
        const int32_t node = open[i], other = wish[node];
        if (other < node || wish[other] != node) continue;
        begin_group(c, node, other);
        paired = true;
    }
    return paired;
}

sp_status coarsen_match(coarsening *c)
{
    int32_t *wish = NULL, *open = NULL;
    int64_t count = c->g->rows;
    sp_status status;
    TRY(sp_alloc(c->context, count, sizeof *wish, (void **)&wish));
    TRY(sp_alloc(c->context, count, sizeof *open, (void **)&open));
    for (int64_t i = 0; i < count; i++) open[i] = (int32_t)i;
    for (int round = 0; round < MATCHING_ROUNDS && count > 0; round++) {
        const bool paired = propose(c, wish, open, count, round == 0);
        count = keep_open(c, wish, open, count);
        if (!paired) break;
    }
    for (int64_t i = 0; i < count; i++) { /* directed graphs, and the rest of long chains */
        const int32_t other = is_free(c, open[i]) ? best_neighbour(c, open[i]).node : -1;
        if (other >= 0) begin_group(c, open[i], other);
    }
done:
    sp_free(c->context, open);
    sp_free(c->context, wish);
    return status;
}

/* ---- two hops -------------------------------------------------------------------------------------------- */

typedef struct relative {
    int32_t hub, node;
    int64_t degree;
    uint64_t neighbours; /* the same for the same neighbours */
} relative;

static relative describe(const coarsening *c, int32_t node)
{
    const sp_csr *g = c->g;
    candidate best = {0, -1};
    uint64_t sum = 0;
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = g->col_indices[k];
        if (other == node) continue;
        const double rating = rate(c, entry_value(g, k), node, 1, other, c->load[other]);
        sum += mix64((uint64_t)other + RANDOM_STEP);
        if (rating > best.rating || (rating > 0 && rating == best.rating && other < best.node))
            best = (candidate){rating, other};
    }
    return (relative){best.node, node, g->row_offsets[node + 1] - g->row_offsets[node], sum};
}

static int by_hub(const void *a, const void *b)
{
    const relative *x = a, *y = b;
    if (x->hub != y->hub) return x->hub < y->hub ? -1 : 1;
    if (x->degree != y->degree) return x->degree < y->degree ? -1 : 1;
    if (x->neighbours != y->neighbours) return x->neighbours < y->neighbours ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Two such nodes are never too heavy. */
static bool may_pair(const coarsening *c, int32_t node) { return is_free(c, node) && 2 * c->load[node] <= c->cap; }

sp_status coarsen_two_hop(coarsening *c)
{
    relative *list = NULL;
    int64_t count = 0, last = -1;
    sp_status status;
    for (int64_t i = 0; i < c->g->rows; i++) count += may_pair(c, (int32_t)i);
    TRY(sp_alloc(c->context, count, sizeof *list, (void **)&list));
    count = 0;
    for (int64_t i = 0; i < c->g->rows; i++)
        if (may_pair(c, (int32_t)i)) list[count++].node = (int32_t)i;
#pragma omp parallel for schedule(dynamic, 512) num_threads(c->threads) if (count > 10000)
    for (int64_t i = 0; i < count; i++) list[i] = describe(c, list[i].node);
    qsort(list, (size_t)count, sizeof *list, by_hub);
    for (int64_t i = 0; i < count; i++) { /* `last` waits for a mate */
        if (list[i].hub < 0) continue;
        if (last >= 0 && list[last].hub == list[i].hub) {
            begin_group(c, list[last].node, list[i].node);
            last = -1;
        } else {
            last = i;
        }
    }
done:
    sp_free(c->context, list);
    return status;
}
