/* The random numbers of the generators: xoroshiro128+ seeded by SplitMix64, the same on every machine. */
#ifndef GEN_RANDOM_H
#define GEN_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "base/random.h"

typedef struct random_state {
    uint64_t a, b;
} random_state;

static inline random_state random_start(uint64_t seed)
{
    random_state random;
    random.a = next64(&seed);
    random.b = next64(&seed);
    return random;
}

static inline uint64_t random_rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t random_next(random_state *random)
{
    uint64_t a = random->a, b = random->b;
    b ^= a;
    random->a = random_rotate(a, 24) ^ b ^ (b << 16);
    random->b = random_rotate(b, 37);
    return a + (b ^ a);
}

/* 0 .. bound - 1 */
static inline int random_below(random_state *random, int bound)
{
    return (int)(random_next(random) % (uint64_t)bound);
}

/* [0, 1) */
static inline double random_unit(random_state *random)
{
    return unit64(random_next(random));
}

/* (0, 1), so that its logarithm is finite */
static inline double random_positive(random_state *random)
{
    double u = random_unit(random);
    return u < 1e-300 ? 1e-300 : u;
}

/* Standard normal (Box and Muller) */
static inline double random_normal(random_state *random)
{
    double u = random_unit(random), v = random_unit(random);
    if (u < 1e-300) u = 1e-300;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Exponential of mean 1 */
static inline double random_exponential(random_state *random)
{
    return -log(1 - random_unit(random));
}

/* A shuffle of 0 .. n - 1 into `order` */
static inline void random_order(random_state *random, int *order, int n)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = random_below(random, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

#endif
