/* The operands of a product, how two values are multiplied and added by its semiring, what its mask allows, and where
 * products go that a plan lists. */
#ifndef SPARSE_SPGEMM_SEMIRING_CUH
#define SPARSE_SPGEMM_SEMIRING_CUH

#include <type_traits>

#include "base/search.h"
#include "device/common.cuh"

/* Where the entries of each bucket of columns begin in rows of B of LEAST_INDEXED entries or more: entry i of row k's
 * part, which starts at offsets[k] / 4 + k, is the row's first entry with a column of i << shift or more. A row of n
 * entries has 2^(floor(log2 n) - 2) buckets, 4 to 8 entries a bucket where columns are spread evenly. 1 byte an entry
 * of B. */
struct bucket_index {
    const uint32_t *first; /* NULL: none */
    int bits;              /* columns are below 2^bits */
};
enum { LEAST_INDEXED = 16 };

static __device__ __forceinline__ int bucket_shift(const bucket_index &index, int32_t length)
{
    return index.bits - (29 - __clz(length));
}

/* What the product is made of. PLAIN below is plus-times of matrices with values, without a mask and with fewer than
 * 2^32 entries in B, for which nothing else is compiled in. */
template <typename V> struct product_view {
    matrix_view<V> a, b;
    int64_t cols;
    sp_semiring semiring;
    const int64_t *mask_offsets; /* NULL: no mask */
    const int32_t *mask_cols;
    bool complement;
    bucket_index index;     /* of B */
    const uint8_t *repeats = nullptr; /* which rows of B, where it is A, have the columns of the row before; NULL: not known */
};

template <bool PLAIN, typename V>
static __device__ __forceinline__ double multiply(const product_view<V> &product, double a, double b)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_MAX_TIMES) return __dmul_rn(a, b);
    return product.semiring == SP_MIN_PLUS ? __dadd_rn(a, b) : 1.0;
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ double combine(const product_view<V> &product, double sum, double more)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_PLUS_PAIR) return __dadd_rn(sum, more);
    if (product.semiring == SP_MIN_PLUS) return more < sum ? more : sum;
    return more > sum ? more : sum;
}

/* What a sum holds before its first product. -0 is what any number can be added to without changing its bits; for
 * other operations than the sum, all ones stands for "none", a NaN that no arithmetic makes. */
template <bool PLAIN> static __device__ __forceinline__ double no_sum()
{
    return PLAIN ? -0.0 : __longlong_as_double(-1ll);
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ void add_to(const product_view<V> &product, double *sum, double more)
{
    const double old = *sum;
    *sum = !PLAIN && __double2hiint(old) == -1 ? more : combine<PLAIN>(product, old, more);
}

/* Whether the mask lets this entry be. */
template <bool PLAIN, typename V>
static __device__ __forceinline__ bool allowed(const product_view<V> &product, int64_t row, int32_t col)
{
    if (PLAIN || !product.mask_offsets) return true;
    const int64_t end = product.mask_offsets[row + 1];
    const int64_t at = lower_bound_i32(product.mask_cols, product.mask_offsets[row], end, col);
    return (at < end && product.mask_cols[at] == col) != product.complement;
}

/* ---- places of products ---------------------------------------------------------------------------------- */

/* Where V is uint32_t, no sums are formed: the numbers of the entries of A and of B that make a product go to the
 * product's place (terms.cu). They take the way of the factors: `weight` holds the number in A, `value` that
 * in B. */
template <typename V> constexpr bool PLACES = std::is_same_v<V, uint32_t>;

/* Slices list this many products of an entry. */
enum { MOST_PRODUCTS = UINT16_MAX };

/* Entries of more products, by their numbers, and where the products that slices do not list begin, for count + 1. */
struct crowded_entries {
    const int64_t *entries, *bases;
    int64_t count;
};

/* Where an entry's other products begin, and how many there are. */
static __device__ __forceinline__ int64_t crowded_base(const crowded_entries &crowded, int64_t entry, int64_t *count)
{
    const int64_t at = upper_bound_i64(crowded.entries, 0, crowded.count, entry) - 1;
    const bool found = at >= 0 && crowded.entries[at] == entry;
    *count = found ? crowded.bases[at + 1] - crowded.bases[at] : 0;
    return found ? crowded.bases[at] : 0;
}

/* The places of the products of C's entries, by slices of 32 entries: see terms.cu. */
struct product_places {
    const uint16_t *counts; /* products of each entry, 0 up to a full slice */
    const int64_t *bases;   /* products before each slice */
    uint2 *terms;           /* entries of A and of B; behind the slices' those of crowded entries */
    crowded_entries crowded;
};

/* Product `number` of entry `entry` of C. A slice of 32 entries lists the first products of all of them, then the
 * second ones, and so on, each time of those that have as many. */
static __device__ __forceinline__ void put_product(const product_places &places, int64_t entry, uint32_t number,
                                                   uint32_t a, uint32_t b)
{
    if (number >= MOST_PRODUCTS) {
        int64_t count;
        const int64_t base = crowded_base(places.crowded, entry, &count);
        places.terms[base + number - MOST_PRODUCTS] = make_uint2(a, b);
        return;
    }
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
