/* Numbers as integers, which are added in any order: what the numbers of a row have in common, in which units they are
 * exact, and how shared memory adds them. */
#ifndef SPARSE_CUDA_CONTRACT_INTEGERS_CUH
#define SPARSE_CUDA_CONTRACT_INTEGERS_CUH

#include <limits.h>

#include "contract/cuda/contract.cuh"

/* What numbers have in common: multiples of 2^least, below 2^most. */
struct number_span {
    int least, most;
    bool negative, odd; /* some are; some are -0, infinite or no number */
};

/* A thread's numbers. For f32 the smallest exponent does for `least`; f64 has the room only for what its numbers
 * need. */
template <typename V> struct span_of {
    uint32_t lowest = UINT32_MAX, highest = 0, signs = 0; /* of the magnitudes, lowest less one: 0 does not count */
    bool minus_zero = false;

    __device__ __forceinline__ void add(float value)
    {
        const uint32_t bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
        lowest = min(lowest, magnitude - 1);
        highest = max(highest, magnitude);
        signs |= bits;
        minus_zero = minus_zero || bits == 0x80000000u;
    }
    __device__ __forceinline__ number_span get() const
    {
        return {highest ? max((int)((lowest + 1) >> 23), 1) - 150 : INT_MAX,
                highest ? max((int)(highest >> 23), 1) - 126 : INT_MIN, signs >> 31 != 0,
                minus_zero || highest >= 0x7f800000u};
    }
};
template <> struct span_of<double> {
    number_span span = {INT_MAX, INT_MIN, false, false};

    __device__ __forceinline__ void add(double value)
    {
        const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
        const unsigned long long fraction = bits & ((1ull << 52) - 1);
        const int exponent = (int)(bits >> 52 & 0x7ff);
        span.negative = span.negative || bits >> 63;
        span.odd = span.odd || exponent == 0x7ff || bits == 1ull << 63;
        if (bits << 1 == 0) return;
        const int unit = max(exponent, 1) - 1075;
        span.least = min(span.least, unit + __ffsll((long long)(fraction | (exponent ? 1ull << 52 : 0))) - 1);
        span.most = max(span.most, unit + 53);
    }
    __device__ __forceinline__ number_span get() const { return span; }
};

/* f64 adds integers below 2^53 exactly; 64 bits with their sign hold any below 2^62. */
enum { EXACT_BITS = 53, INTEGER_BITS = 62, MOST_SCALE = 1000 };

static __device__ __forceinline__ double power_of_two(int exponent)
{
    return __longlong_as_double((long long)(exponent + 1023) << 52);
}

/* A number in units of 2^least. */
static __device__ __forceinline__ unsigned long long units_of(float value, int least)
{
    const uint32_t bits = __float_as_uint(value), exponent = bits >> 23 & 0xff;
    const unsigned long long fraction = (bits & 0x7fffffu) | (exponent ? 1u << 23 : 0);
    const unsigned long long units = fraction << max((exponent ? (int)exponent : 1) - 150 - least, 0);
    return bits >> 31 ? 0 - units : units;
}
static __device__ __forceinline__ unsigned long long units_of(double value, int least)
{
    return (unsigned long long)__double2ll_rn(__dmul_rn(value, power_of_two(-least)));
}

/* f64 numbers as integers that compare like them, and back. */
static __device__ __forceinline__ unsigned long long comparable(double value)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
static __device__ __forceinline__ double compared(unsigned long long key)
{
    return __longlong_as_double((long long)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

/* Shared memory adds 32 bits at once; carries are rare, and few numbers have upper bits. */
static __device__ __forceinline__ void add_shared(unsigned long long *cell, unsigned long long more)
{
    unsigned *half = (unsigned *)cell;
    const unsigned low = (unsigned)more, old = atomicAdd(half, low);
    const unsigned high = (unsigned)(more >> 32) + (old + low < old);
    if (high) atomicAdd(half + 1, high);
}

#endif
