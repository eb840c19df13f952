/* Draws entries of one row of a matrix without replacement, the same on both back ends. */
#ifndef SPARSE_ELEMENTWISE_DRAW_H
#define SPARSE_ELEMENTWISE_DRAW_H

#include "base/random.h"

/* A number below `bound`; the bias is bound / 2^64. */
INLINE int64_t draw_below(uint64_t *state, int64_t bound)
{
    return (int64_t)((unsigned __int128)next64(state) * (uint64_t)bound >> 64);
}

/* The random state of the i-th row that a call draws from. */
INLINE uint64_t draw_state(uint64_t seed, int64_t i) { return mix64(mix64(seed) + RANDOM_STEP * (uint64_t)(i + 1)); }

/* Places, ascending, of `count` of the `length` entries from `begin` on. Few of many are drawn by Floyd's algorithm
 * (Bentley and Floyd 1987): draw t is from the first length - count + t + 1 entries, and one that is there already
 * stands for the last of these. Others are drawn by looking at all entries (Knuth, volume 2, 3.4.2, Algorithm S). */
INLINE void draw_entries(int64_t begin, int64_t length, int64_t count, uint64_t state, int64_t *places)
{
    if (count * count >= 4 * length) {
        for (int64_t t = 0, drawn = 0; drawn < count && t < length; t++)
            if (draw_below(&state, length - t) < count - drawn) places[drawn++] = begin + t;
        return;
    }
    for (int64_t t = 0; t < count; t++) {
        const int64_t last = begin + length - count + t;
        const int64_t place = begin + draw_below(&state, length - count + t + 1);
        int64_t at = t;
        while (at > 0 && places[at - 1] > place) at--;
        const int taken = at > 0 && places[at - 1] == place;
        for (int64_t k = taken ? 0 : t; k > at; k--) places[k] = places[k - 1];
        places[taken ? t : at] = taken ? last : place;
    }
}

#endif
