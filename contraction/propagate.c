/* Label propagation with bounded groups (Meyerhenke, Sanders and Schulz, "Partitioning complex networks via
 * size-constrained clustering", 2014): a node moves to the neighbouring group to which it has the heaviest edges and
 * that has room. The nodes of a round are dealt into parts by random bits; the nodes of a part choose at once, by the
 * groups as they were before the part, and those that find room move (enter.c). Ratings of edges are whole numbers of a
 * small step, so that sums by group have no order, and of rows of hubs only some entries are looked at. */
#include <omp.h>

#include "coarsen.h"

/* One thread's sums by group. */
typedef struct sums {
    uint32_t *steps; /* by leader; 0 between nodes */
    int32_t *seen;
} sums;

/* Rates the entries of a node's row that are looked at. */
static void rate_row(const coarsening *c, int64_t node, uint32_t *steps)
{
    const sp_csr *g = c->g;
    const int64_t first = g->row_offsets[node], entries = g->row_offsets[node + 1] - first;
    const int64_t count = looked_count(entries);
    double ratings[LOOKED_AT], most = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = first + looked_place(entries, i);
        const double rating = rate(c, entry_value(g, k), node, 1, g->col_indices[k], 1);
        ratings[i] = g->col_indices[k] != node && rating > 0 ? rating : 0;
        most = fmax(most, ratings[i]);
    }
    const int exponent = rating_exponent(most);
    for (int64_t i = 0; i < count; i++) steps[first + looked_place(entries, i)] = rating_steps(ratings[i], exponent);
}

static int32_t choose(const coarsening *c, const uint32_t *steps, sums *s, int32_t node, uint64_t bits)
{
    const sp_csr *g = c->g;
    const int64_t first = g->row_offsets[node], entries = g->row_offsets[node + 1] - first;
    const int64_t count = looked_count(entries);
    const int32_t own = c->leader[node];
    int32_t best = own;
    uint32_t most;
    int64_t groups = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = first + looked_place(entries, i);
        const int32_t leader = c->leader[g->col_indices[k]];
        if (steps[k] == 0) continue;
        if (s->steps[leader] == 0) s->seen[groups++] = leader;
        s->steps[leader] += steps[k];
    }
    most = s->steps[own];
    for (int64_t i = 0; i < groups; i++) {
        const int32_t leader = s->seen[i];
        const uint32_t sum = s->steps[leader];
        s->steps[leader] = 0;
        if (leader == own || sum < most || c->heavy[leader] + c->units[node] > c->room) continue;
        if (sum == most && (best == own || group_bits(bits, leader) < group_bits(bits, best))) continue;
        best = leader;
        most = sum;
    }
    return best;
}

/* The choices of one part of the nodes. */
static void choose_all(const coarsening *c, const uint32_t *steps, sums *all, const int32_t *part, int64_t count,
                       uint64_t bits, int32_t *wish)
{
#pragma omp parallel num_threads(c->threads) if (count > 2000)
    {
        sums *own = &all[omp_get_thread_num()];
#pragma omp for schedule(dynamic, 256)
        for (int64_t i = 0; i < count; i++) wish[i] = choose(c, steps, own, part[i], bits);
    }
}

/* Of a part, whose nodes become those that wish to move. */
static int64_t move_all(coarsening *c, int32_t *part, int64_t count, int32_t *wish)
{
    int64_t moving = 0;
    for (int64_t i = 0; i < count; i++) {
        if (wish[i] == c->leader[part[i]]) continue;
        part[moving] = part[i];
        wish[moving++] = wish[i];
    }
    return coarsen_enter(c, part, wish, moving);
}

/* Deals nodes into parts, each in ascending order. */
static void deal(const coarsening *c, uint64_t bits, int32_t *order, int64_t first[MOVING_PARTS + 1])
{
    int64_t at[MOVING_PARTS] = {0};
    for (int64_t i = 0; i < c->g->rows; i++) at[moving_part(bits, i)]++;
    first[0] = 0;
    for (int p = 0; p < MOVING_PARTS; p++) {
        first[p + 1] = first[p] + at[p];
        at[p] = first[p];
    }
    for (int64_t i = 0; i < c->g->rows; i++) order[at[moving_part(bits, i)]++] = (int32_t)i;
}

static void propagate(coarsening *c, const uint32_t *steps, sums *all, int32_t *order, int32_t *wish)
{
    int64_t first[MOVING_PARTS + 1], moved = c->g->rows;
    for (int round = 0; round < MOVING_ROUNDS && moved * 50 > c->g->rows; round++) {
        const uint64_t bits = round_bits(c->how->seed, round);
        deal(c, bits, order, first);
        moved = 0;
        for (int p = 0; p < MOVING_PARTS; p++) {
            const int64_t count = first[p + 1] - first[p];
            choose_all(c, steps, all, order + first[p], count, bits, wish);
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

static sp_status start_sums(const coarsening *c, sums **all)
{
    const int64_t n = c->g->rows;
    sp_status status;
    TRY(sp_calloc(c->context, c->threads, sizeof **all, (void **)all));
    for (int t = 0; t < c->threads; t++) {
        TRY(sp_calloc(c->context, n, sizeof *(*all)[t].steps, (void **)&(*all)[t].steps));
        TRY(sp_alloc(c->context, LOOKED_AT, sizeof *(*all)[t].seen, (void **)&(*all)[t].seen));
    }
done:
    return status;
}

sp_status coarsen_propagate(coarsening *c)
{
    const int64_t n = c->g->rows;
    sums *all = NULL;
    uint32_t *steps = NULL;
    int32_t *order = NULL, *wish = NULL;
    sp_status status;
    TRY(coarsen_count_units(c));
    TRY(start_sums(c, &all));
    TRY(sp_alloc(c->context, c->g->nnz, sizeof *steps, (void **)&steps));
    TRY(sp_alloc(c->context, n, sizeof *order, (void **)&order));
    TRY(sp_alloc(c->context, n, sizeof *wish, (void **)&wish));
    for (int64_t i = 0; i < n; i++) c->leader[i] = (int32_t)i;
#pragma omp parallel for schedule(dynamic, 512) num_threads(c->threads) if (n > 1000)
    for (int64_t i = 0; i < n; i++) rate_row(c, i, steps);
    propagate(c, steps, all, order, wish);
    name_groups(c, order, wish);
done:
    for (int t = 0; all && t < c->threads; t++) {
        FREE_ALL(c->context, all[t].steps, all[t].seen);
    }
    FREE_ALL(c->context, all, steps, order, wish);
    return status;
}
