/* The operands of a product, how two values are multiplied and added by its semiring, and what its mask allows. */
#ifndef SPARSE_SPGEMM_SEMIRING_CUH
#define SPARSE_SPGEMM_SEMIRING_CUH

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
    const uint8_t *repeats = nullptr; /* which rows of B have the columns of the row before; NULL: not known */
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
    int64_t low = product.mask_offsets[row], high = product.mask_offsets[row + 1];
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (product.mask_cols[middle] < col) low = middle + 1;
        else high = middle;
    }
    return (low < end && product.mask_cols[low] == col) != product.complement;
}

#endif
