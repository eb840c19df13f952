/* Heavy-edge coarsening (Gilbert et al., "Performance-portable graph coarsening for efficient multilevel graph
 * analysis", 2021): groups of any size along the best edge of each node. Unlike there, in rounds of proposals, so that
 * the result does not depend on the threads: of two free nodes that propose to each other the higher joins the lower,
 * and one that proposes to a member of a group enters it if there is room (enter.c). A round asks twice with the same
 * proposals, so that a node follows its neighbour that has just entered. O(nnz) a round.
 *
 * Chains of rising ratings would take a round for each node, and in directed graphs no two may agree. After some
 * rounds, and as soon as nobody is joined, coins decide: heads enter the group of their best neighbour, even if that is
 * a free node, unless it has heads itself. A quarter of the wishes to free nodes come true in each round. */
#include "coarsen.h"

static candidate best_group(const coarsening *c, int32_t node)
{
    const sp_csr *g = c->g;
    const double own = (double)c->units[node] * c->unit;
    candidate best = {0, -1};
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = g->col_indices[k];
        if (other == node) continue;
        const int64_t there = c->heavy[is_free(c, other) ? other : c->leader[other]];
        if (c->units[node] + there > c->room) continue;
        const double rating = rate(c, entry_value(g, k), node, own, other, (double)there * c->unit);
        if (is_better(c, node, rating, other, best)) best = (candidate){rating, other};
    }
    return best;
}

/* The group that the node asks to enter; -1: none. `coins` are 0 in rounds without. */
static int32_t aim(const coarsening *c, const int32_t *wish, int32_t node, uint64_t coins)
{
    const int32_t other = wish[node];
    if (other < 0 || (coins && !has_heads(coins, node))) return -1;
    if (!is_free(c, other)) return c->leader[other];
    if (coins) return has_heads(coins, other) ? -1 : other;
    return other < node && wish[other] == node ? other : -1;
}

/* Open nodes ask to enter groups; returns how many were joined. `asks` and `to` have an element for each open node. */
static int64_t ask(coarsening *c, const int32_t *wish, const int32_t *open, int64_t count, uint64_t coins,
                   int32_t *asks, int32_t *to)
{
    int64_t asking = 0, joined;
    for (int64_t i = 0; i < count; i++) {
        const int32_t target = is_free(c, open[i]) ? aim(c, wish, open[i], coins) : -1;
        if (target < 0) continue;
        asks[asking] = open[i];
        to[asking++] = target;
    }
    joined = coarsen_enter(c, asks, to, asking);
    for (int64_t i = 0; i < asking; i++)
        if (to[i] >= 0) c->leader[to[i]] = to[i]; /* which was free, maybe */
    return joined;
}

sp_status coarsen_heavy_edges(coarsening *c)
{
    const int64_t n = c->g->rows;
    int32_t *wish = NULL, *open = NULL, *asks = NULL, *to = NULL;
    int64_t count = n;
    bool coins = false;
    sp_status status;
    TRY(coarsen_count_units(c));
    TRY(sp_alloc(c->context, n, sizeof *wish, (void **)&wish));
    TRY(sp_alloc(c->context, n, sizeof *open, (void **)&open));
    TRY(sp_alloc(c->context, n, sizeof *asks, (void **)&asks));
    TRY(sp_alloc(c->context, n, sizeof *to, (void **)&to));
    for (int64_t i = 0; i < n; i++) open[i] = (int32_t)i;
    for (int round = 0; round < JOINING_ROUNDS && count > 0; round++) {
        int64_t kept = 0, joined = 0;
        coins |= round >= AGREEING_ROUNDS;
#pragma omp parallel for schedule(dynamic, 512) num_threads(c->threads) if (count > 10000)
        for (int64_t i = 0; i < count; i++) wish[open[i]] = best_group(c, open[i]).node;
        for (int turn = 0; turn < (coins ? 1 : ASKING_TURNS); turn++)
            joined += ask(c, wish, open, count, coins ? round_bits(c->how->seed, round) : 0, asks, to);
        if (joined == 0) coins = true;
        for (int64_t i = 0; i < count; i++)
            if (is_free(c, open[i]) && wish[open[i]] >= 0) open[kept++] = open[i];
        count = kept;
    }
done:
    FREE_ALL(c->context, to, asks, open, wish);
    return status;
}
