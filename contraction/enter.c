/* Groups of any size under a bound. All nodes that move in a round name the group that they want, by the groups as they
 * were before the round. A group takes them in the order of their numbers, until one finds no room; weights of those
 * that found none count as well, so that whether a node finds room is known from a sum over the nodes before it.
 * Weights are whole numbers of a small unit, whose sums have no order. So threads, or a GPU, make the same groups. */
#include "coarsen.h"

sp_status coarsen_count_units(coarsening *c)
{
    const int64_t n = c->g->rows;
    double heaviest = 0;
    sp_status status;
    TRY(sp_alloc(c->context, n, sizeof *c->units, (void **)&c->units));
    TRY(sp_alloc(c->context, n, sizeof *c->heavy, (void **)&c->heavy));
    TRY(sp_calloc(c->context, n, sizeof *c->claims, (void **)&c->claims));
    for (int64_t i = 0; i < n; i++) heaviest = fmax(heaviest, c->load[i]);
    c->unit = weight_unit(heaviest);
    c->room = units_of_cap(c->cap, c->unit);
    for (int64_t i = 0; i < n; i++) c->heavy[i] = c->units[i] = units_of_weight(c->load[i], c->unit);
done:
    return status;
}

static void move(coarsening *c, int32_t node, int32_t to)
{
    const int32_t from = is_free(c, node) ? node : c->leader[node];
    c->heavy[from] -= c->units[node];
    c->heavy[to] += c->units[node];
    c->leader[node] = to;
}

int64_t coarsen_enter(coarsening *c, const int32_t *nodes, int32_t *to, int64_t count)
{
    int64_t moved = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t *const claim = &c->claims[to[i]];
        *claim += c->units[nodes[i]];
        if (c->heavy[to[i]] + *claim > c->room) to[i] = ~to[i];
    }
    for (int64_t i = 0; i < count; i++) {
        c->claims[to[i] < 0 ? ~to[i] : to[i]] = 0;
        if (to[i] < 0) continue;
        move(c, nodes[i], to[i]);
        moved++;
    }
    return moved;
}
