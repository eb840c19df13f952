/* Packed values and a mask of eight columns, spread over a register of AVX2. */
#ifndef SPARSE_CPU_SPREAD_H
#define SPARSE_CPU_SPREAD_H

#include "base/vectors.h"

#if defined(__x86_64__)
extern const char sp_spread_places[256][8]; /* lines.c */

/* The packed values at `packed` spread over the lanes of the mask, zero elsewhere. Reads eight values. */
AVX2 static inline __m256 spread(const float *packed, uint32_t mask)
{
    const __m256i places = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)sp_spread_places[mask]));
    const __m256 value = _mm256_permutevar8x32_ps(_mm256_loadu_ps(packed), places);
    return _mm256_blendv_ps(value, _mm256_setzero_ps(), _mm256_castsi256_ps(places));
}
#endif

#endif
