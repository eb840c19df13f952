/* Label propagation with bounded groups (Meyerhenke, Sanders and Schulz, "Partitioning complex networks via
 * size-constrained clustering", 2014): a node moves to the neighbouring group to which it has the heaviest edges and that
 * has room. The nodes of a round are dealt into parts by random bits; the nodes of a part choose at once, by the groups
 * as they were before the part, and move in their order while there is room. So threads do not change the result. */
#include <omp.h>

#include "coarsen.h"

enum { ROUNDS = 5, PARTS = 8 };

/* One thread's sums by group. */
typedef struct sums {
    double *weight; /* by leader; 0 between nodes */
    int32_t *seen;
    int64_t count;
} sums;

static void add(sums *s, int32_t leader, double weight)
{
    if (s->weight[leader] == 0) s->seen[s->count++] = leader;
    s->weight[leader] += weight;
}

static int32_t choose(const coarsening *c, sums *s, int32_t node, uint64_t bits)
{
    const sp_csr *g = c->g;
    const int32_t own = c->leader[node];
    int32_t best = own;
    double most;
    s->count = 0;
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const double weight = rate(c, entry_value(g, k), node, 1, g->col_indices[k], 1);
        if (g->col_indices[k] != node && weight > 0) add(s, c->leader[g->col_indices[k]], weight);
    }
    most = s->weight[own];
    for (int64_t i = 0; i < s->count; i++) {
        const int32_t leader = s->seen[i];
        const double weight = s->weight[leader];
        s->weight[leader] = 0;
        if (leader == own || weight < most || c->heavy[leader] + c->load[node] > c->cap) continue;
        if (weight == most && (best == own || mix64(bits ^ (uint64_t)leader) < mix64(bits ^ (uint64_t)best))) continue;
        best = leader;
        most = weight;
    }
    return best;
}

/* The choices of one part of the nodes. */
static void choose_all(const coarsening *c, sums *all, const int32_t *part, int64_t count, uint64_t bits, int32_t *wish)
{
#pragma omp parallel num_threads(c->threads) if (count > 2000)
    {
        sums *own = &all[omp_get_thread_num()];
#pragma omp for schedule(dynamic, 256)
        for (int64_t i = 0; i < count; i++) wish[i] = choose(c, own, part[i], bits);
    }
}

static int64_t move_all(coarsening *c, const int32_t *part, int64_t count, const int32_t *wish)
{
    int64_t moved = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t node = part[i], from = c->leader[node], to = wish[i];
        if (to == from || c->heavy[to] + c->load[node] > c->cap) continue;
        c->heavy[from] -= c->load[node];
        c->heavy[to] += c->load[node];
        c->leader[node] = to;
        moved++;
    }
    return moved;
}

/* Deals nodes into parts, each in ascending order. */
static void deal(const coarsening *c, uint64_t bits, int32_t *order, int64_t first[PARTS + 1])
{
    int64_t at[PARTS] = {0};
    for (int64_t i = 0; i < c->g->rows; i++) at[mix64(bits + (uint64_t)i) % PARTS]++;
    first[0] = 0;
    for (int p = 0; p < PARTS; p++) {
        first[p + 1] = first[p] + at[p];
        at[p] = first[p];
    }
    for (int64_t i = 0; i < c->g->rows; i++) order[at[mix64(bits + (uint64_t)i) % PARTS]++] = (int32_t)i;
}

static void propagate(coarsening *c, sums *all, int32_t *order, int32_t *wish)
{
    int64_t first[PARTS + 1], moved = c->g->rows;
    for (int round = 0; round < ROUNDS && moved * 50 > c->g->rows; round++) {
        const uint64_t bits = mix64(c->how->seed * RANDOM_STEP + (uint64_t)round);
        deal(c, bits, order, first);
        moved = 0;
        for (int p = 0; p < PARTS; p++) {
            const int64_t count = first[p + 1] - first[p];
            choose_all(c, all, order + first[p], count, bits, wish);
            moved += move_all(c, order + first[p], count, wish);
        }
    }
}

/* Names groups by their first node; nodes that are alone are in no group. `first` has an element a node. */
static void name_groups(coarsening *c, int32_t *first, int32_t *sizes)
{
    const int64_t n = c->g->rows;
    for (int64_t i = 0; i < n; i++) {
        first[i] = -1;
        sizes[i] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        const int32_t group = c->leader[i];
        if (first[group] < 0) first[group] = (int32_t)i;
        sizes[group]++;
    }
    for (int64_t i = 0; i < n; i++) c->leader[i] = sizes[c->leader[i]] > 1 ? first[c->leader[i]] : -1;
}

sp_status coarsen_propagate(coarsening *c)
{
    const int64_t n = c->g->rows;
    sums *all = NULL;
    int32_t *order = NULL, *wish = NULL;
    sp_status status;
    TRY(sp_calloc(c->context, c->threads, sizeof *all, (void **)&all));
    for (int t = 0; t < c->threads; t++) {
        TRY(sp_calloc(c->context, n, sizeof *all[t].weight, (void **)&all[t].weight));
        TRY(sp_alloc(c->context, n, sizeof *all[t].seen, (void **)&all[t].seen));
    }
    TRY(sp_alloc(c->context, n, sizeof *order, (void **)&order));
    TRY(sp_alloc(c->context, n, sizeof *wish, (void **)&wish));
    for (int64_t i = 0; i < n; i++) {
        c->leader[i] = (int32_t)i;
        c->heavy[i] = c->load[i];
    }
    propagate(c, all, order, wish);
    name_groups(c, order, wish);
done:
    for (int t = 0; all && t < c->threads; t++) {
        sp_free(c->context, all[t].weight);
        sp_free(c->context, all[t].seen);
    }
    sp_free(c->context, all);
    sp_free(c->context, order);
    sp_free(c->context, wish);
    return status;
}
