/* Where products go that a plan lists: the numbers of the entries of A and B, in place of sums (terms.cu). */
#ifndef SPARSE_SPGEMM_PLACES_CUH
#define SPARSE_SPGEMM_PLACES_CUH

#include <type_traits>

#include "spgemm/cuda/semiring.cuh"

/* Where V is uint32_t, no sums are formed: the numbers of the entries of A and of B that make a product go to the
 * product's place (terms.cu). They take the way of the factors: `weight` holds the number in A, `value` that
 * in B. */
template <typename V> constexpr bool PLACES = std::is_same_v<V, uint32_t>;

/* Product `number` of entry `entry` of C. A slice of 32 entries lists the first products of all of them, then the
 * second ones, and so on, each time of those that have as many. */
static __device__ __forceinline__ void put_product(const product_places &places, int64_t entry, uint32_t number,
                                                   uint32_t a, uint32_t b)
{
    const uint4 *counts = (const uint4 *)(places.counts + entry / 32 * 32);
    const uint32_t both = number | number << 16, lane = (uint32_t)(entry % 32);
    uint32_t before = 0;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const uint4 eight = __ldg(counts + q);
        const uint32_t pair[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t least = __vminu2(pair[i], both), more = __vcmpgtu2(pair[i], both) & 0x10001u;
            const uint32_t first = 8 * q + 2 * i;
            before += (least & 0xffff) + (least >> 16);
            before += first < lane ? more & 1 : 0;
            before += first + 1 < lane ? more >> 16 : 0;
        }
    }
    places.terms[places.bases[entry / 32] + before] = make_uint2(a, b);
}

/* Sums that are counters of products, of entries of C from `first` on. */
struct counted_places {
    product_places places;
    int64_t first;

    __device__ __forceinline__ void put(double *sums, int slot, double weight, uint32_t b) const
    {
        const double number = sums[slot];
        sums[slot] = number + 1;
        put_product(places, first + slot, (uint32_t)number, (uint32_t)weight, b);
    }
};

#endif
