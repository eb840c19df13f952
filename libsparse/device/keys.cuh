/* Maps numbers to integers of the same order, for selection by digits. */
#ifndef SPARSE_CUDA_KEYS_CUH
#define SPARSE_CUDA_KEYS_CUH

#include <stdint.h>

template <typename T> struct key_type;
template <> struct key_type<float> {
    using type = uint32_t;
};
template <> struct key_type<double> {
    using type = uint64_t;
};

static __device__ __forceinline__ uint32_t bits_of(float value) { return __float_as_uint(value); }
static __device__ __forceinline__ uint64_t bits_of(double value) { return (uint64_t)__double_as_longlong(value); }

/* An integer above 0 in the order of the values. Zeros of both signs are equal; every NaN is above infinity. */
template <typename T> static __device__ __forceinline__ typename key_type<T>::type key_of(T value)
{
    using K = typename key_type<T>::type;
    constexpr K SIGN = (K)1 << (8 * sizeof(K) - 1);
    const K bits = bits_of(value), size = bits & ~SIGN;
    if (value != value) return ~(K)0;
    return bits & SIGN && size ? ~bits : size | SIGN;
}

#endif
