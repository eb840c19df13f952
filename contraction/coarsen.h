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
    double cap;      /* greatest weight of a group; infinite if there is none */
    int32_t *leader; /* of each node's group; -1: in none yet */
    double *load;    /* weight of each node; NULL for matching without a cap, which does not look at it */
    float *place;    /* of each node, DISTANCE_VECTORS numbers (distance.c); NULL: edges are rated by weight alone */
    /* Of groups of several nodes (enter.c), in units: */
    double unit;
    int64_t *units;  /* weight of each node */
    int64_t *heavy;  /* of each leader's group; of a node in none that of the node */
    int64_t *claims; /* on each leader's group in the present round; 0 between rounds */
    int64_t room;    /* the cap */
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

/* The free neighbour at the best edge of a node, -1 for none. */
typedef int32_t best_edge(const coarsening *c, int32_t node);
/* Its function for this graph; with `all_free` one that need not look whether neighbours are. */
best_edge *coarsen_best_edge(const coarsening *c, bool all_free);

sp_status coarsen_distances(coarsening *c);
/* Weights in units. Every node is in no group. */
sp_status coarsen_count_units(coarsening *c);
/* Moves node nodes[i] to the group of to[i] if that has room; returns how many moved. Without room, to[i]
 * becomes ~to[i]. No node is in the list twice. */
int64_t coarsen_enter(coarsening *c, const int32_t *nodes, int32_t *to, int64_t count);
/* The ways of coarsening fill c->leader. */
sp_status coarsen_match(coarsening *c);
sp_status coarsen_two_hop(coarsening *c); /* after coarsen_match */
sp_status coarsen_heavy_edges(coarsening *c);
sp_status coarsen_propagate(coarsening *c);

#endif
