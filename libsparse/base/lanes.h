/* Sixteen keys of 32 bits in one register, sorted without a branch. */
#ifndef BASE_LANES_H
#define BASE_LANES_H

#include "base/vectors.h"

#if defined(__x86_64__)
/* Lanes are compared with those that `places` has; those in `upper` keep the greater. */
AVX512 static inline __m512i exchange_lanes(__m512i keys, __m512i places, __mmask16 upper)
{
    const __m512i others = _mm512_permutexvar_epi32(places, keys);
    return _mm512_mask_max_epu32(_mm512_min_epu32(keys, others), upper, keys, others);
}

/* Batcher's bitonic network: the blocks of 2, 4, 8, 16 lanes are folded, then halved. Without `all` the two halves of
 * the register are sorted, each on its own. */
AVX512 static inline __m512i sort_lanes(__m512i keys, bool all)
{
    const __m512i by_1 = _mm512_set_epi32(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1);
    const __m512i by_2 = _mm512_set_epi32(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
    const __m512i by_4 = _mm512_set_epi32(11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6, 5, 4);
    const __m512i fold_4 = _mm512_set_epi32(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const __m512i fold_8 = _mm512_set_epi32(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i fold_16 = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    keys = exchange_lanes(keys, by_1, 0xaaaa);
    keys = exchange_lanes(keys, fold_4, 0xcccc);
    keys = exchange_lanes(keys, by_1, 0xaaaa);
    keys = exchange_lanes(keys, fold_8, 0xf0f0);
    keys = exchange_lanes(keys, by_2, 0xcccc);
    keys = exchange_lanes(keys, by_1, 0xaaaa);
    if (!all) return keys;
    keys = exchange_lanes(keys, fold_16, 0xff00);
    keys = exchange_lanes(keys, by_4, 0xf0f0);
    keys = exchange_lanes(keys, by_2, 0xcccc);
    return exchange_lanes(keys, by_1, 0xaaaa);
}
#endif

#endif
