/* Numbers of X and Y on the device: sums' types, fused multiply-add, loads of up to 16 bytes, packets of them. */
#ifndef SPARSE_CUDA_SPMM_PACKET_CUH
#define SPARSE_CUDA_SPMM_PACKET_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

template <typename T> struct spmm_sum {
    using type = float;
};
template <> struct spmm_sum<double> {
    using type = double;
};

static __device__ __forceinline__ float wide(float x) { return x; }
static __device__ __forceinline__ double wide(double x) { return x; }
static __device__ __forceinline__ float wide(__half x) { return __half2float(x); }
static __device__ __forceinline__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ __forceinline__ void narrow(float x, float *to) { *to = x; }
static __device__ __forceinline__ void narrow(double x, double *to) { *to = x; }
static __device__ __forceinline__ void narrow(float x, __half *to) { *to = __float2half_rn(x); }
static __device__ __forceinline__ void narrow(float x, __nv_bfloat16 *to) { *to = __float2bfloat16_rn(x); }
static __device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <int BYTES> struct spmm_word;
template <> struct spmm_word<2> {
    using type = unsigned short;
};
template <> struct spmm_word<4> {
    using type = unsigned;
};
template <> struct spmm_word<8> {
    using type = uint2;
};
template <> struct spmm_word<16> {
    using type = uint4;
};

/* Loads that a predicate turns into zeros. In assembly, and volatile: the compiler makes branches of them or moves
 * each to its use, and then waits for one before it issues the next. */
static __device__ __forceinline__ uint4 load_word_if(bool wanted, const uint4 *from)
{
    uint4 word;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;"
                 " @p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(from), "r"((int)wanted));
    return word;
}
static __device__ __forceinline__ uint2 load_word_if(bool wanted, const uint2 *from)
{
    uint2 word;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0;"
                 " @p ld.global.nc.v2.b32 {%0, %1}, [%2]; }"
                 : "=r"(word.x), "=r"(word.y)
                 : "l"(from), "r"((int)wanted));
    return word;
}
static __device__ __forceinline__ unsigned load_word_if(bool wanted, const unsigned *from)
{
    unsigned word;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1]; }"
                 : "=r"(word)
                 : "l"(from), "r"((int)wanted));
    return word;
}
static __device__ __forceinline__ unsigned short load_word_if(bool wanted, const unsigned short *from)
{
    unsigned short word;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b16 %0, 0; @p ld.global.nc.b16 %0, [%1]; }"
                 : "=h"(word)
                 : "l"(from), "r"((int)wanted));
    return word;
}

/* Loads with a policy of the second-level cache. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define SPMM_HINTED "ld.global.nc.L2::cache_hint"
#define SPMM_POLICY_1 ", %2;"
#define SPMM_POLICY ", %5;"
#define SPMM_POLICY_IF ", %6; }"
#else
#define SPMM_HINTED "ld.global.nc"
#define SPMM_POLICY_1 ";"
#define SPMM_POLICY ";"
#define SPMM_POLICY_IF "; }"
#endif
static __device__ __forceinline__ int32_t load_kept(const int32_t *from, uint64_t keep)
{
    int32_t word;
    asm volatile(SPMM_HINTED ".b32 %0, [%1]" SPMM_POLICY_1 : "=r"(word) : "l"(from), "l"(keep));
    return word;
}
static __device__ __forceinline__ float load_kept(const float *from, uint64_t keep)
{
    return __int_as_float(load_kept((const int32_t *)from, keep));
}
static __device__ __forceinline__ uint4 load_kept(const uint4 *from, uint64_t keep)
{
    uint4 word;
    asm volatile(SPMM_HINTED ".v4.b32 {%0, %1, %2, %3}, [%4]" SPMM_POLICY
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(from), "l"(keep));
    return word;
}
static __device__ __forceinline__ uint4 load_kept_if(bool wanted, const uint4 *from, uint64_t keep)
{
    uint4 word;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;"
                 " @p " SPMM_HINTED ".v4.b32 {%0, %1, %2, %3}, [%4]" SPMM_POLICY_IF
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(from), "r"((int)wanted), "l"(keep));
    return word;
}
/* Others are rare and go without. */
template <typename W> static __device__ __forceinline__ W load_kept(const W *from, uint64_t) { return __ldg(from); }
template <typename W> static __device__ __forceinline__ W load_kept_if(bool wanted, const W *from, uint64_t)
{
    return load_word_if(wanted, from);
}

/* N numbers that lie together, aligned to their size or 16 bytes, or to a number if they are three. */
template <typename T, int N> struct packet {
    static constexpr int SIZE = sizeof(T) * N, BYTES = N == 3 ? sizeof(T) : SIZE < 16 ? SIZE : 16;
    static constexpr int WORDS = SIZE / BYTES;
    using word = typename spmm_word<BYTES>::type;
    T part[N];

    __device__ __forceinline__ void load(const T *from)
    {
        word words[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++) words[w] = __ldg((const word *)from + w);
        memcpy(part, words, sizeof part);
    }
    /* Zeros without a load where `wanted` is false. */
    __device__ __forceinline__ void load_if(bool wanted, const T *from)
    {
        word words[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++) words[w] = load_word_if(wanted, (const word *)from + w);
        memcpy(part, words, sizeof part);
    }
    __device__ __forceinline__ void load(const T *from, uint64_t keep)
    {
        word words[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++) words[w] = load_kept((const word *)from + w, keep);
        memcpy(part, words, sizeof part);
    }
    __device__ __forceinline__ void load_if(bool wanted, const T *from, uint64_t keep)
    {
        word words[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++) words[w] = load_kept_if(wanted, (const word *)from + w, keep);
        memcpy(part, words, sizeof part);
    }
    __device__ __forceinline__ void load_changed(const T *from) /* what other blocks may have written */
    {
        word words[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++) words[w] = __ldcg((const word *)from + w);
        memcpy(part, words, sizeof part);
    }
    /* Y is not read again soon: it gives way to X in the caches. */
    __device__ __forceinline__ void store(T *to) const
    {
        word words[WORDS];
        memcpy(words, part, sizeof part);
#pragma unroll
        for (int w = 0; w < WORDS; w++) __stcs((word *)to + w, words[w]);
    }
};

static __device__ __forceinline__ const char *row_of_x(const char *x, int32_t col, uint32_t bytes)
{
    return x + (uint64_t)(uint32_t)col * bytes;
}

#endif
