/* Sixteen numbers at once (AVX-512), of f32 or of bf16 and computed in f32, for the files of the CPU back end. Each of
 * them also has loops for one number at a time, for f64 and other processors. */
#ifndef GNN_CPU_LANES_H
#define GNN_CPU_LANES_H

#include "backend.h"
#include "base/vectors.h"

/* Whether matrices of this type are worked on so. */
static inline bool have_lanes(sp_dense_type type)
{
    return type != SP_DENSE_F64 && have_avx512() && !left_out("gnn-cpu-lanes");
}

#if defined __x86_64__
enum { LANES = 16 };

/* The first `count` lanes, 16 at most. */
AVX512 static inline __mmask16 lanes_first(int64_t count)
{
    return (__mmask16)(count >= LANES ? 0xffffu : (1u << count) - 1);
}

/* The numbers j .. j + 15 of a row of f32, or with `half` of bf16; 0 in the lanes that are not `some`. */
AVX512 static inline __m512 lanes_load(const void *row, int64_t j, __mmask16 some, bool half)
{
    if (!half) return _mm512_maskz_loadu_ps(some, (const float *)row + j);
    const __m256i bits = _mm256_maskz_loadu_epi16(some, (const uint16_t *)row + j);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/* bf16_of_float of sixteen numbers. (The processor's own conversion takes subnormal numbers for 0.) */
AVX512 static inline __m256i lanes_round(__m512 value)
{
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i rounded = _mm512_mask_or_epi32(near, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

AVX512 static inline void lanes_store(void *row, int64_t j, __mmask16 some, __m512 value, bool half)
{
    if (half) _mm256_mask_storeu_epi16((uint16_t *)row + j, some, lanes_round(value));
    else _mm512_mask_storeu_ps((float *)row + j, some, value);
}

/* exp(x) = 2^n · (1 + p), p = exp(r) - 1 with |r| <= ln 2 / 2: a polynomial (Cephes' expf), right to a unit in the last
 * place. NaN stays NaN. */
AVX512 static inline __m512 lanes_exponential_parts(__m512 x, __m512 *n)
{
    static const float factor[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                   1.6666665459e-1f, 5.0000001201e-1f};
    *n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                              _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 near = _mm512_fnmadd_ps(*n, _mm512_set1_ps(0.693359375f), x);
    const __m512 r = _mm512_fnmadd_ps(*n, _mm512_set1_ps(-2.12194440e-4f), near);
    __m512 p = _mm512_set1_ps(factor[0]);
    for (int k = 1; k < 6; k++) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(factor[k]));
    return _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
}

AVX512 static inline __m512 lanes_exponential(__m512 x)
{
    __m512 n;
    const __m512 least = _mm512_set1_ps(-150), most = _mm512_set1_ps(150); /* beyond these it is 0 and infinite */
    x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, least, _CMP_LT_OQ), least);
    x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, most, _CMP_GT_OQ), most);
    const __m512 p = lanes_exponential_parts(x, &n);
    return _mm512_scalef_ps(_mm512_add_ps(_mm512_set1_ps(1), p), n);
}

/* exp(x) - 1 for x <= 0 or NaN, as exact near 0. */
AVX512 static inline __m512 lanes_exponential_minus_1(__m512 x)
{
    __m512 n;
    const __m512 least = _mm512_set1_ps(-150);
    x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, least, _CMP_LT_OQ), least);
    const __m512 p = lanes_exponential_parts(x, &n), one = _mm512_set1_ps(1);
    return _mm512_add_ps(_mm512_scalef_ps(p, n), _mm512_sub_ps(_mm512_scalef_ps(one, n), one));
}

/* log(x) for normal numbers x > 0: x = 2^n · m, 0.75 <= m < 1.5, and a polynomial (Cephes' logf), as right. */
AVX512 static inline __m512 lanes_logarithm(__m512 x)
{
    static const float factor[] = {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                   -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                   2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
    const __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    const __m512 n = _mm512_getexp_ps(_mm512_div_ps(x, m)), r = _mm512_sub_ps(m, _mm512_set1_ps(1));
    const __m512 square = _mm512_mul_ps(r, r);
    __m512 p = _mm512_set1_ps(factor[0]);
    for (int k = 1; k < 9; k++) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(factor[k]));
    p = _mm512_mul_ps(_mm512_mul_ps(p, r), square);
    p = _mm512_fmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), p);
    p = _mm512_fnmadd_ps(square, _mm512_set1_ps(0.5f), p);
    return _mm512_fmadd_ps(n, _mm512_set1_ps(0.693359375f), _mm512_add_ps(r, p));
}

/* gnn_draw of eight neighbouring indices: `at` is stream + RANDOM_STEP · (index + 1). */
AVX512 static inline __m512i lanes_draw(__m512i at)
{
    const __m512i first = _mm512_set1_epi64((int64_t)0xbf58476d1ce4e5b9);
    const __m512i second = _mm512_set1_epi64((int64_t)0x94d049bb133111eb);
    at = _mm512_mullo_epi64(_mm512_xor_si512(at, _mm512_srli_epi64(at, 30)), first);
    at = _mm512_mullo_epi64(_mm512_xor_si512(at, _mm512_srli_epi64(at, 27)), second);
    return _mm512_xor_si512(at, _mm512_srli_epi64(at, 31));
}

/* Which of the numbers index .. index + 15 stay, in dropout with gnn_drop_bound(rate) = bound. */
AVX512 static inline __mmask16 lanes_kept(uint64_t stream, int64_t index, uint64_t bound)
{
    const __m512i step = _mm512_set1_epi64((int64_t)RANDOM_STEP);
    const __m512i lane = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), step);
    const __m512i limit = _mm512_set1_epi64((int64_t)bound);
    const uint64_t begin = stream + RANDOM_STEP * (uint64_t)(index + 1);
    const __m512i low = _mm512_add_epi64(_mm512_set1_epi64((int64_t)begin), lane);
    const __m512i high = _mm512_add_epi64(low, _mm512_slli_epi64(step, 3));
    const __mmask8 first = _mm512_cmpge_epu64_mask(_mm512_srli_epi64(lanes_draw(low), 40), limit);
    const __mmask8 second = _mm512_cmpge_epu64_mask(_mm512_srli_epi64(lanes_draw(high), 40), limit);
    return (__mmask16)(first | second << 8);
}

/* attention_lanes.c: forward, or with `back` the way back, where dY has the columns of all heads. `heads` must be as
 * gnn_cpu_takes_lanes says. */
bool gnn_cpu_takes_lanes(sp_dense_type type, int heads);
sp_status gnn_cpu_attention_lanes(gnn_engine *engine, const gnn_attention *attention, const cpu_mask *mask,
                                  const gnn_attention_gradient *back);
#else
#define gnn_cpu_takes_lanes(type, heads) false
#define gnn_cpu_attention_lanes(...) SP_OK
#endif

#endif
