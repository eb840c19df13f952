/* Vectors wider than every x86-64 has: what marks a function that uses them, and whether this processor has them. */
#ifndef BASE_VECTORS_H
#define BASE_VECTORS_H

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))

static inline bool have_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"); }

static inline bool have_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
}
#else
static inline bool have_avx2(void) { return false; }
static inline bool have_avx512(void) { return false; }
#endif

#endif
