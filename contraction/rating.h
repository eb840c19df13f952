/* The preference between neighbours, the same on both back ends to the last bit. */
#ifndef CONTRACTION_RATING_H
#define CONTRACTION_RATING_H

#include <math.h>
#include <stdbool.h>

#include "base/random.h"

enum {
    DISTANCE_VECTORS = 4,
    DISTANCE_SWEEPS = 20,
    DISTANCE_CHUNK = 128, /* entries of a row that are summed one after the other; the sums are then added in order */
    MATCHING_ROUNDS = 24, /* a path of rising weights would take a round for each edge */
    AGREEING_ROUNDS = 12, /* of heavy-edge coarsening, then JOINING_ROUNDS - AGREEING_ROUNDS by coins */
    JOINING_ROUNDS = 36,
    ASKING_TURNS = 2, /* of an agreeing round with the same wishes: those whose neighbour has just entered follow */
    MOVING_ROUNDS = 5, /* of label propagation, in which nodes move by MOVING_PARTS */
    MOVING_PARTS = 8,
    LOOKED_AT = 1024 /* neighbours that label propagation looks at, spread over longer rows */
};

/* Equal edges are ordered by bits that both ends see alike. So the best edge of all is the best of both of its ends,
 * and rounds of proposals end. */
INLINE uint64_t edge_bits(uint64_t seed, int32_t a, int32_t b)
{
    const uint64_t low = (uint64_t)(uint32_t)(a < b ? a : b), high = (uint64_t)(uint32_t)(a < b ? b : a);
    return mix64((low << 32 | high) + seed * RANDOM_STEP);
}

/* Number `at` of those that the nodes begin with before they are smoothed. */
INLINE float first_place(uint64_t seed, int64_t at) { return (float)unit64(mix64((uint64_t)at + seed * RANDOM_STEP)); }

/* 0: next to each other. `place` has DISTANCE_VECTORS numbers a node. */
INLINE double distance(const float *place, int64_t a, int64_t b)
{
    const float *x = place + a * DISTANCE_VECTORS, *y = place + b * DISTANCE_VECTORS;
    float most = 0;
    for (int v = 0; v < DISTANCE_VECTORS; v++) most = fmaxf(most, fabsf(x[v] - y[v]));
    return (double)most;
}

/* The weight of an edge; with places, over the distance of its ends and their weights: heavy nodes would become heavier
 * still. The same from both ends. */
INLINE double rate_edge(const float *place, double weight, int64_t a, double heavy_a, int64_t b, double heavy_b)
{
    const double nearest = 3e-4; /* distances below it do not differ: rounding, and components that are smooth */
    return place ? weight / (heavy_a * heavy_b * (distance(place, a, b) + nearest)) : weight;
}

/* ---- weights of groups, in units (enter.c) ----------------------------------------------------------------- */

/* A power of two: whole weights up to 2^29 are whole numbers of units, and 2^31 nodes have at most 2^61. */
INLINE double weight_unit(double heaviest)
{
    int exponent;
    frexp(heaviest, &exponent);
    return ldexp(1.0, exponent - 30);
}

INLINE int64_t units_of_weight(double weight, double unit) { return (int64_t)fmax(ceil(weight / unit), 1.0); }
INLINE int64_t units_of_cap(double cap, double unit) { return (int64_t)fmin(floor(cap / unit), 0x1p61); }

/* Random bits of a round; not 0. */
INLINE uint64_t round_bits(uint64_t seed, int round) { return mix64(seed * RANDOM_STEP + (uint64_t)round) | 1; }

/* ---- heavy-edge coarsening --------------------------------------------------------------------------------- */

INLINE bool has_heads(uint64_t coins, int32_t node) { return mix64(coins + (uint64_t)(uint32_t)node) >> 63; }

/* ---- label propagation ------------------------------------------------------------------------------------- */

INLINE int moving_part(uint64_t bits, int64_t node) { return (int)(mix64(bits + (uint64_t)node) % MOVING_PARTS); }

/* The number of entries of a row that are looked at, and the place of the one with number i. */
INLINE int64_t looked_count(int64_t entries) { return entries < LOOKED_AT ? entries : (int64_t)LOOKED_AT; }
INLINE int64_t looked_place(int64_t entries, int64_t i) { return entries < LOOKED_AT ? i : i * entries / LOOKED_AT; }

/* Ratings of a row as whole numbers below 2^22, 0 for none, so that sums of those that are looked at fit 32 bits and
 * have no order. `most` is the greatest of them. */
INLINE int rating_exponent(double most)
{
    int exponent;
    frexp(most, &exponent);
    return exponent;
}
INLINE uint32_t rating_steps(double rating, int exponent)
{
    return rating > 0 ? (uint32_t)fmax(fmin(ldexp(rating, 22 - exponent), 0x1p22 - 1), 1.0) : 0;
}

/* Between groups to which a node has equal edges. */
INLINE uint64_t group_bits(uint64_t bits, int32_t leader) { return mix64(bits ^ (uint64_t)(uint32_t)leader); }

#endif
