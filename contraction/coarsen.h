/* What the ways of coarsening share: the graph with weights of nodes, the preference between neighbours, groups under
 * construction. */
#ifndef CONTRACTION_COARSEN_H
#define CONTRACTION_COARSEN_H

#include "internal.h"
#include "rating.h"

/* Groups are known by their leader, a node. */
typedef struct coarsening {
    sp_context *context;
    const sp_csr *g;
    const contraction_coarsening *how;
    int threads;
    double cap;       /* greatest weight of a group; infinite if there is none */
    int32_t *leader;  /* of each node's group; -1: in none yet */
    double *load;     /* weight of each node */
    double *heavy;    /* of each leader's group */
    float *place;     /* of each node, DISTANCE_VECTORS numbers (distance.c); NULL: edges are rated by weight alone */
} coarsening;

/* A neighbour that a node may be joined with. */
typedef struct candidate {
    double rating; /* 0: none */
    int32_t node;
} candidate;

static inline bool is_better(const coarsening *c, int32_t node, double rating, int32_t other, candidate than)
{
    if (rating != than.rating) return rating > than.rating;
    return rating > 0 && edge_bits(c->how->seed, node, other) > edge_bits(c->how->seed, node, than.node);
}

static inline double rate(const coarsening *c, double weight, int64_t a, double heavy_a, int64_t b, double heavy_b)
{
    return rate_edge(c->place, weight, a, heavy_a, b, heavy_b);
}

static inline bool is_free(const coarsening *c, int32_t node) { return c->leader[node] < 0; }

/* The best of the neighbours, only free ones or also members of groups, whose group is not too heavy for the node. */
static inline candidate best_neighbour(const coarsening *c, int32_t node, bool only_free)
{
    const sp_csr *g = c->g;
    candidate best = {0, -1};
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = g->col_indices[k];
        if (other == node || (only_free && !is_free(c, other))) continue;
        const double there = is_free(c, other) ? c->load[other] : c->heavy[c->leader[other]];
        if (c->load[node] + there > c->cap) continue;
        const double rating = rate(c, entry_value(g, k), node, c->load[node], other, there);
        if (is_better(c, node, rating, other, best)) best = (candidate){rating, other};
    }
    return best;
}

/* Makes a group of two free nodes. */
static inline void begin_group(coarsening *c, int32_t a, int32_t b)
{
    const int32_t first = a < b ? a : b;
    c->leader[a] = c->leader[b] = first;
    c->heavy[first] = c->load[a] + c->load[b];
}

sp_status coarsen_distances(coarsening *c);
/* The ways of coarsening fill c->leader. */
sp_status coarsen_match(coarsening *c);
sp_status coarsen_two_hop(coarsening *c); /* after coarsen_match */
sp_status coarsen_heavy_edges(coarsening *c);
sp_status coarsen_propagate(coarsening *c);

#endif
