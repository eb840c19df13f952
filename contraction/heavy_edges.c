/* Heavy-edge coarsening (Gilbert et al., "Performance-portable graph coarsening for efficient multilevel graph
 * analysis", 2021): groups of any size along the best edge of each node. Unlike there, in rounds of proposals, so that
 * the result does not depend on the threads: two free nodes that propose to each other begin a group, one that proposes to
 * a member of a group enters it if the group does not become too heavy. O(nnz) a round, few rounds. */
#include "coarsen.h"

enum { ROUNDS = 12 };

static bool enter(coarsening *c, int32_t node, int32_t leader)
{
    if (c->heavy[leader] + c->load[node] > c->cap) return false;
    c->leader[node] = leader;
    c->heavy[leader] += c->load[node];
    return true;
}

/* In the order of the nodes: proposals to groups as they were before, then those of two free nodes. */
static int64_t answer(coarsening *c, const int32_t *wish, const int32_t *open, int64_t count)
{
    int64_t joined = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t node = open[i], other = wish[node];
        if (other >= 0 && !is_free(c, other) && is_free(c, node)) joined += enter(c, node, c->leader[other]);
        else if (other > node && is_free(c, other) && wish[other] == node) begin_group(c, node, other), joined++;
    }
    return joined;
}

sp_status coarsen_heavy_edges(coarsening *c)
{
    int32_t *wish = NULL, *open = NULL;
    int64_t count = c->g->rows, joined = 1;
    sp_status status;
    TRY(sp_alloc(c->context, count, sizeof *wish, (void **)&wish));
    TRY(sp_alloc(c->context, count, sizeof *open, (void **)&open));
    for (int64_t i = 0; i < count; i++) open[i] = (int32_t)i;
    for (int round = 0; round < ROUNDS && joined > 0; round++) {
        int64_t kept = 0;
#pragma omp parallel for schedule(dynamic, 512) num_threads(c->threads) if (count > 10000)
        for (int64_t i = 0; i < count; i++) wish[open[i]] = best_neighbour(c, open[i], false).node;
        joined = answer(c, wish, open, count);
        for (int64_t i = 0; i < count; i++)
            if (c->leader[open[i]] < 0 && wish[open[i]] >= 0) open[kept++] = open[i];
        count = kept;
    }
    for (int64_t i = 0; i < count; i++) { /* directed graphs, and the rest of long chains */
        const int32_t node = open[i], other = is_free(c, node) ? best_neighbour(c, node, false).node : -1;
        if (other < 0) continue;
        if (!is_free(c, other)) enter(c, node, c->leader[other]);
        else begin_group(c, node, other);
    }
done:
    sp_free(c->context, open);
    sp_free(c->context, wish);
    return status;
}
