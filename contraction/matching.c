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
#include <string.h>

#include "coarsen.h"

/* Positive numbers have the order of their bits, as whole numbers. */
static inline uint64_t order_of(double rating)
{
    uint64_t bits;
    memcpy(&bits, &rating, sizeof bits);
    return bits;
}

typedef enum rated { BY_NONE, BY_F32, BY_F64, BY_PLACES } rated;

/* Which neighbours are free, and which edge of equals is the best, cannot be predicted: so nothing branches on it. */
static inline __attribute__((always_inline)) int32_t scan_row(const coarsening *c, int32_t node, rated by, bool capped)
{
    const sp_csr *g = c->g;
    const int32_t *columns = g->col_indices, *leader = c->leader;
    const void *values = g->values;
    const uint64_t seed = c->how->seed;
    const double *load = c->load, own = load[node], cap = c->cap;
    const int64_t end = g->row_offsets[node + 1];
    uint64_t best = 0, best_bits = 0, found = UINT64_MAX;
    for (int64_t k = g->row_offsets[node]; k < end; k++) {
        const int32_t other = columns[k];
        const double rating = by == BY_NONE     ? 1
                              : by == BY_F32    ? (double)((const float *)values)[k]
                              : by == BY_F64    ? ((const double *)values)[k]
                                                : rate(c, entry_value(g, k), node, own, other, load[other]);
        const uint64_t order = by == BY_NONE ? 0 : order_of(rating), bits = edge_bits(seed, node, other);
        bool better = (order > best) | ((order == best) & (bits >= best_bits));
        better &= (other != node) & (leader[other] < 0);
        if (by != BY_NONE) better &= rating > 0;
        if (capped) better &= !(own + load[other] > cap);
        const uint64_t changed = -(uint64_t)better;
        best ^= (best ^ order) & changed;
        best_bits ^= (best_bits ^ bits) & changed;
        found ^= (found ^ (uint64_t)other) & changed;
    }
    return (int32_t)found;
}

/* The free neighbour at the best edge as is_better() has it, -1 for none. */
static int32_t best_neighbour(const coarsening *c, int32_t node)
{
    const bool capped = c->cap < INFINITY;
    if (c->place) return scan_row(c, node, BY_PLACES, true);
    if (!c->g->values) return capped ? scan_row(c, node, BY_NONE, true) : scan_row(c, node, BY_NONE, false);
    if (c->g->value_type == SP_F32) return capped ? scan_row(c, node, BY_F32, true) : scan_row(c, node, BY_F32, false);
    return capped ? scan_row(c, node, BY_F64, true) : scan_row(c, node, BY_F64, false);
}

static void begin_group(coarsening *c, int32_t a, int32_t b) { c->leader[a] = c->leader[b] = a < b ? a : b; }

/* One round: open nodes whose wish is taken propose again, and those that propose to each other are pairs. Returns the
 * number of nodes that stay open, which is that of the free ones with a proposal; *paired tells whether there was a
 * pair. */
static int64_t propose(coarsening *c, int32_t *wish, int32_t *open, int64_t count, bool first, bool *paired)
{
    int64_t kept = 0, pairs = 0;
#pragma omp parallel for schedule(dynamic, 512) num_threads(c->threads) if (count > 10000)
    for (int64_t i = 0; i < count; i++)
        if (first || !is_free(c, wish[open[i]])) wish[open[i]] = best_neighbour(c, open[i]);
#pragma omp parallel for schedule(static) reduction(+ : pairs) num_threads(c->threads) if (count > 10000)
    for (int64_t i = 0; i < count; i++) {
        const int32_t node = open[i], other = wish[node];
        const bool mutual = other >= 0 && wish[other] == node;
        if (mutual) c->leader[node] = node < other ? node : other;
        if (mutual || other < 0) open[i] = ~node;
        pairs += mutual;
    }
    for (int64_t i = 0; i < count; i++) {
        const int32_t node = open[i];
        open[kept] = node;
        kept += node >= 0;
    }
    *paired = pairs > 0;
    return kept;
}

sp_status coarsen_match(coarsening *c)
{
    int32_t *wish = NULL, *open = NULL;
    int64_t count = c->g->rows;
    bool paired = true;
    sp_status status;
    TRY(sp_alloc(c->context, count, sizeof *wish, (void **)&wish));
    TRY(sp_alloc(c->context, count, sizeof *open, (void **)&open));
    for (int64_t i = 0; i < count; i++) open[i] = (int32_t)i;
    for (int round = 0; round < MATCHING_ROUNDS && count > 0 && paired; round++)
        count = propose(c, wish, open, count, round == 0, &paired);
    for (int64_t i = 0; i < count; i++) { /* directed graphs, and the rest of long chains */
        const int32_t other = is_free(c, open[i]) ? best_neighbour(c, open[i]) : -1;
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
