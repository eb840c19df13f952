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

#include "base/kernel.h"
#include "coarsen.h"

enum { BLOCK = 512 }; /* nodes that a thread takes at once */

static void begin_group(coarsening *c, int32_t a, int32_t b) { c->leader[a] = c->leader[b] = a < b ? a : b; }

/* Rounds of proposals. */
typedef struct proposals {
    coarsening *c;
    best_edge *best, *first; /* first: while all nodes are free */
    int32_t *wish;           /* of each node; -1: none */
    int32_t *open;           /* free nodes with a wish, as far as is known */
    int64_t count;           /* of open nodes */
    int64_t *kept, *paired;  /* of each share of them */
} proposals;

/* Open nodes whose wish is taken propose again. Which these are cannot be predicted, so a block of them is listed
 * before their rows are read. */
static void wish_again(const proposals *p, int64_t low, int64_t high)
{
    int32_t again[BLOCK];
    int64_t count = 0;
    for (int64_t i = low; i < high; i++) {
        again[count] = p->open[i];
        count += !is_free(p->c, p->wish[p->open[i]]);
    }
    for (int64_t i = 0; i < count; i++) p->wish[again[i]] = p->best(p->c, again[i]);
}

/* Nodes that propose to each other are pairs. Nodes that stay open move to the front of the share; nothing branches on
 * wishes. */
KERNEL void settle(const proposals *p, int64_t low, int64_t high, bool first, int share)
{
    const int32_t *wish = p->wish;
    int32_t *leader = p->c->leader, *open = p->open;
    int64_t kept = low, paired = 0;
    for (int64_t i = low; i < high; i++) {
        const int32_t node = first ? (int32_t)i : open[i], other = wish[node], asked = other < 0 ? node : other;
        const int32_t mutual = (wish[asked] == node) & (asked != node), lower = node < asked ? node : asked;
        leader[node] = lower | (mutual - 1); /* -1 unless they are a pair */
        paired += mutual;
        open[kept] = node;
        kept += (other >= 0) & ~mutual;
    }
    p->kept[share] = kept - low;
    p->paired[share] = paired;
}

/* Returns whether there was a pair. */
static bool propose(proposals *p, bool first)
{
    const int64_t count = p->count;
    const int shares = count > 10000 ? p->c->threads : 1;
    int64_t paired = 0;
#pragma omp parallel for schedule(dynamic) num_threads(shares)
    for (int64_t low = 0; low < count; low += BLOCK) {
        const int64_t high = count - low < BLOCK ? count : low + BLOCK;
        if (!first) wish_again(p, low, high);
        else
            for (int64_t i = low; i < high; i++) p->wish[i] = p->first(p->c, (int32_t)i);
    }
#pragma omp parallel for schedule(static, 1) num_threads(shares)
    for (int s = 0; s < shares; s++) {
        const int64_t low = count / shares * s, high = s + 1 < shares ? count / shares * (s + 1) : count;
        if (first) settle(p, low, high, true, s);
        else settle(p, low, high, false, s);
    }
    p->count = 0;
    for (int s = 0; s < shares; s++) {
        const int64_t low = count / shares * s;
        if (p->count < low) memmove(p->open + p->count, p->open + low, (size_t)p->kept[s] * sizeof *p->open);
        p->count += p->kept[s];
        paired += p->paired[s];
    }
    return paired > 0;
}

sp_status coarsen_match(coarsening *c)
{
    proposals p = {.c = c, .best = coarsen_best_edge(c, false), .first = coarsen_best_edge(c, true),
                   .count = c->g->rows};
    bool paired = true;
    sp_status status;
    TRY(sp_alloc(c->context, p.count, sizeof *p.wish, (void **)&p.wish));
    TRY(sp_alloc(c->context, p.count, sizeof *p.open, (void **)&p.open));
    TRY(sp_alloc(c->context, c->threads, sizeof *p.kept, (void **)&p.kept));
    TRY(sp_alloc(c->context, c->threads, sizeof *p.paired, (void **)&p.paired));
    for (int round = 0; round < MATCHING_ROUNDS && p.count > 0 && paired; round++) paired = propose(&p, round == 0);
    for (int64_t i = 0; i < p.count; i++) { /* directed graphs, and the rest of long chains */
        const int32_t other = is_free(c, p.open[i]) ? p.best(c, p.open[i]) : -1;
        if (other >= 0) begin_group(c, p.open[i], other);
    }
done:
    FREE_ALL(c->context, p.paired, p.kept, p.open, p.wish);
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
