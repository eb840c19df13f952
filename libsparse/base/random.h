/* Random bits: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). The same on
 * every machine and on both back ends. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

#include "base/inline.h"

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio, odd */

/* The finalizer: a bijection in which each input bit changes half of the output. */
INLINE uint64_t mix64(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The next 64 bits of a stream. */
INLINE uint64_t next64(uint64_t *state) { return mix64(*state += RANDOM_STEP); }

/* [0, 1), from the upper 53 bits. */
INLINE double unit64(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

#endif
