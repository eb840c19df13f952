/* The best edge of a node to a free neighbour, as is_better() has it: one function a kind of values, compiled for the
 * usual processor and, where nodes have no bound on weights, for AVX-512, which looks at eight edges at a time.
 *
 * Which neighbours are free, and which edge of equals is the best, cannot be predicted: so nothing branches on it. In
 * the first round all neighbours are free, and are not looked up. */
#include "base/bits.h"
#include "base/kernel.h"
#include "base/vectors.h"
#include "coarsen.h"

typedef enum rated { BY_NONE, BY_F32, BY_F64, BY_PLACES } rated;

/* ---- one edge at a time ---------------------------------------------------------------------------------- */

KERNEL int32_t scan_row(const coarsening *c, int32_t node, rated by, bool capped)
{
    const sp_csr *g = c->g;
    const int32_t *columns = g->col_indices, *leader = c->leader;
    const void *values = g->values;
    const uint64_t seed = c->how->seed;
    const double *load = c->load, own = capped ? load[node] : 1, cap = c->cap;
    const int64_t end = g->row_offsets[node + 1];
    uint64_t best = 0, best_bits = 0, found = UINT64_MAX;
    for (int64_t k = g->row_offsets[node]; k < end; k++) {
        const int32_t other = columns[k];
        const double rating = by == BY_NONE     ? 1
                              : by == BY_F32    ? (double)((const float *)values)[k]
                              : by == BY_F64    ? ((const double *)values)[k]
                                                : rate(c, entry_value(g, k), node, own, other, load[other]);
        /* Positive numbers have the order of their bits. */
        const uint64_t order = by == BY_NONE ? 0 : bits_of_double(rating), bits = edge_bits(seed, node, other);
        bool better = (order > best) | ((order == best) & (bits >= best_bits));
        better &= (other != node) & (leader[other] < 0);
        if (by != BY_NONE) better &= rating > 0;
        if (capped) better &= !(own + load[other] > cap);
        const uint64_t changed = -(uint64_t)better;
        best ^= (best ^ order) & changed;
        best_bits ^= (best_bits ^ bits) & changed;
        found ^= (found ^ (uint64_t)other) & changed;
    }
    return (int32_t)found;
}

static int32_t by_none(const coarsening *c, int32_t node) { return scan_row(c, node, BY_NONE, false); }
static int32_t by_f32(const coarsening *c, int32_t node) { return scan_row(c, node, BY_F32, false); }
static int32_t by_f64(const coarsening *c, int32_t node) { return scan_row(c, node, BY_F64, false); }
static int32_t by_none_capped(const coarsening *c, int32_t node) { return scan_row(c, node, BY_NONE, true); }
static int32_t by_f32_capped(const coarsening *c, int32_t node) { return scan_row(c, node, BY_F32, true); }
static int32_t by_f64_capped(const coarsening *c, int32_t node) { return scan_row(c, node, BY_F64, true); }
static int32_t by_places(const coarsening *c, int32_t node) { return scan_row(c, node, BY_PLACES, true); }

/* ---- eight edges at a time ------------------------------------------------------------------------------- */

#if defined(__x86_64__)
AVX512 KERNEL __m512i mix_lanes(__m512i z)
{
    const __m512i first = _mm512_set1_epi64((int64_t)UINT64_C(0xbf58476d1ce4e5b9));
    const __m512i second = _mm512_set1_epi64((int64_t)UINT64_C(0x94d049bb133111eb));
    z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 30)), first);
    z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 27)), second);
    return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

/* edge_bits() */
AVX512 KERNEL __m512i edge_lanes(uint64_t seed, __m256i a, __m256i b)
{
    const __m512i low = _mm512_cvtepu32_epi64(_mm256_min_epu32(a, b));
    const __m512i high = _mm512_cvtepu32_epi64(_mm256_max_epu32(a, b));
    const __m512i ends = _mm512_or_si512(_mm512_slli_epi64(low, 32), high);
    return mix_lanes(_mm512_add_epi64(ends, _mm512_set1_epi64((int64_t)(seed * RANDOM_STEP))));
}

/* Each lane keeps the best of its edges; the best lane counts in the end. */
AVX512 KERNEL int32_t scan_lanes(const coarsening *c, int32_t node, rated by, bool all_free)
{
    const sp_csr *g = c->g;
    const int64_t end = g->row_offsets[node + 1];
    const __m256i self = _mm256_set1_epi32(node), none = _mm256_set1_epi32(-1);
    __m512i best = _mm512_setzero_si512(), best_bits = best;
    __m256i found = none;
    for (int64_t k = g->row_offsets[node]; k < end; k += 8) {
        const __mmask8 in = (__mmask8)(end - k < 8 ? (1 << (end - k)) - 1 : 0xff);
        const __m256i other = _mm256_mask_loadu_epi32(self, in, g->col_indices + k);
        __mmask8 better = _mm256_cmpneq_epi32_mask(other, self);
        if (!all_free) {
            const __m256i leader = _mm256_mmask_i32gather_epi32(self, better, other, c->leader, 4);
            better = _mm256_mask_cmplt_epi32_mask(better, leader, _mm256_setzero_si256());
        }
        const __m512i bits = edge_lanes(c->how->seed, self, other);
        __mmask8 equal = _mm512_cmpge_epu64_mask(bits, best_bits);
        if (by != BY_NONE) {
            const __m512d rating =
                by == BY_F64 ? _mm512_maskz_loadu_pd(in, (const double *)g->values + k)
                             : _mm512_cvtps_pd(_mm256_maskz_loadu_ps(in, (const float *)g->values + k));
            const __m512i order = _mm512_castpd_si512(rating);
            better &= _mm512_cmp_pd_mask(rating, _mm512_setzero_pd(), _CMP_GT_OQ);
            equal &= _mm512_cmpeq_epi64_mask(order, best);
            equal |= _mm512_cmpgt_epi64_mask(order, best);
            best = _mm512_mask_mov_epi64(best, better & equal, order);
        }
        better &= equal;
        best_bits = _mm512_mask_mov_epi64(best_bits, better, bits);
        found = _mm256_mask_mov_epi32(found, better, other);
    }
    __mmask8 lanes = _mm256_cmpneq_epi32_mask(found, none);
    if (by != BY_NONE)
        lanes &= _mm512_cmpeq_epi64_mask(best, _mm512_set1_epi64(_mm512_mask_reduce_max_epi64(lanes, best)));
    const uint64_t most = _mm512_mask_reduce_max_epu64(lanes, best_bits);
    lanes &= _mm512_cmpeq_epi64_mask(best_bits, _mm512_set1_epi64((int64_t)most));
    return _mm_cvtsi128_si32(_mm256_castsi256_si128(_mm256_mask_compress_epi32(none, lanes, found)));
}

#define LANES(name, by, all_free) \
    AVX512 static int32_t name(const coarsening *c, int32_t node) { return scan_lanes(c, node, by, all_free); }
LANES(lanes_by_none, BY_NONE, false)
LANES(lanes_by_f32, BY_F32, false)
LANES(lanes_by_f64, BY_F64, false)
LANES(first_by_none, BY_NONE, true)
LANES(first_by_f32, BY_F32, true)
LANES(first_by_f64, BY_F64, true)
#undef LANES
#endif

/* ---- the choice ------------------------------------------------------------------------------------------ */

best_edge *coarsen_best_edge(const coarsening *c, bool all_free)
{
    static best_edge *const usual[2][3] = {{by_none, by_f32, by_f64}, {by_none_capped, by_f32_capped, by_f64_capped}};
    const bool capped = c->cap < INFINITY;
    const rated by = !c->g->values ? BY_NONE : c->g->value_type == SP_F32 ? BY_F32 : BY_F64;
    if (c->place) return by_places;
#if defined(__x86_64__)
    static best_edge *const lanes[2][3] = {{lanes_by_none, lanes_by_f32, lanes_by_f64},
                                           {first_by_none, first_by_f32, first_by_f64}};
    if (!capped && have_avx512()) return lanes[all_free][by];
#endif
    (void)all_free;
    return usual[capped][by];
}
