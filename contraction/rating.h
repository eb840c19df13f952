/* The preference between neighbours, the same on both back ends to the last bit. */
#ifndef CONTRACTION_RATING_H
#define CONTRACTION_RATING_H

#include <math.h>

#include "base/random.h"

enum {
    DISTANCE_VECTORS = 4,
    DISTANCE_SWEEPS = 20,
    DISTANCE_CHUNK = 512, /* entries of a row that are summed one after the other; the sums are then added in order */
    MATCHING_ROUNDS = 24  /* a path of rising weights would take a round for each edge */
};

/* Equal edges are ordered by bits that both ends see alike. So the best edge of all is the best of both of its ends, and
 * rounds of proposals end. */
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

#endif
