/* f16 and bf16, stored as 16 bits, to and from f32; rounding to nearest, ties to even. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>

#include "base/bits.h"

static inline float float_of_bf16(uint16_t half) { return float_of_bits((uint32_t)half << 16); }

/* A multiplication changes the bias of the exponent, which is also right for subnormal numbers. Infinities and NaN
 * become at least 2^16. */
static inline float float_of_f16(uint16_t half)
{
    const float size = float_of_bits((uint32_t)(half & 0x7fff) << 13) * 0x1p112f;
    const uint32_t huge = size >= 0x1p16f ? 0x7f800000 : 0;
    return float_of_bits(bits_of_float(size) | huge | (uint32_t)(half & 0x8000) << 16);
}

static inline uint16_t bf16_of_float(float value)
{
    const uint32_t bits = bits_of_float(value);
    /* A NaN must stay a NaN when its low bits are cut. */
    return (uint16_t)((value != value ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t f16_of_float(float value)
{
    const uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more round to infinity */
    if (size < 0x38800000) /* below 2^-14: adding 2^-1 leaves a multiple of 2^-24 in the low bits, rounded */
        return (uint16_t)(sign | (bits_of_float(float_of_bits(size) + 0.5f) - bits_of_float(0.5f)));
    return (uint16_t)(sign | ((size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13));
}

#endif
