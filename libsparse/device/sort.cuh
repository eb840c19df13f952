/* Sorting in the registers of a warp, or of some of its lanes. Header-only, as check.cuh.
 *
 * Sorting n keys takes log2(n)² / 2 steps of 2 or 3 instructions for every 32 of them: 600 for 256 keys, 1,300 for
 * 512. A third of these instructions go through the shuffle unit.
 */
#ifndef DEVICE_SORT_CUH
#define DEVICE_SORT_CUH

#include "device/sums.cuh"

template <typename Key> static __device__ __forceinline__ void order_pair(Key &a, Key &b)
{
    const Key low = min(a, b), high = max(a, b);
    a = low;
    b = high;
}

/* The smaller or the larger of two keys. */
template <typename Key> static __device__ __forceinline__ Key keep(Key own, Key other, bool low)
{
    return low ? min(own, other) : max(own, other);
}

/* Keys of one lane that rise and then fall, or the other way, `size` of them each time, brought in order. */
template <int K, typename Key> static __device__ __forceinline__ void merge_lane(Key (&key)[K], int size)
{
    constexpr int UNIT = K % 3 ? 1 : 3;
#pragma unroll
    for (int step = size / 2; step >= UNIT; step /= 2)
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i / step % 2 == 0) order_pair(key[i], key[i + step]);
#pragma unroll
    for (int i = 0; UNIT == 3 && i + 2 < K; i += 3) {
        order_pair(key[i], key[i + 1]);
        order_pair(key[i + 1], key[i + 2]);
        order_pair(key[i], key[i + 1]);
    }
}

/* Bitonic network over `lanes` lanes of K = 2^n or 3·2^n keys each; key i of lane l has place l·K + i. Every merge
 * begins with the mirrored half, so that all comparisons point the same way. */
template <int K, typename Key> static __device__ __forceinline__ void sort_keys(Key (&key)[K], int lanes)
{
    constexpr int UNIT = K % 3 ? 1 : 3;
    const int lane = threadIdx.x & 31;
    merge_lane<K>(key, 1); /* three by three */
#pragma unroll
    for (int size = 2 * UNIT; size <= K; size *= 2) {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i % size < size / 2) order_pair(key[i], key[i / size * size + size - 1 - i % size]);
        merge_lane<K>(key, size / 2);
    }
#pragma unroll(K <= 4 ? 5 : 1)
    for (int size = 2; size <= lanes; size *= 2) {
        bool low = !(lane & (size / 2));
#pragma unroll
        for (int i = 0; i < (K + 1) / 2; i++) {
            const Key first = __shfl_xor_sync(FULL_WARP, key[K - 1 - i], size - 1);
            const Key second = __shfl_xor_sync(FULL_WARP, key[i], size - 1);
            key[i] = keep(key[i], first, low);
            if (i != K - 1 - i) key[K - 1 - i] = keep(key[K - 1 - i], second, low);
        }
#pragma unroll(K <= 4 ? 4 : 1)
        for (int step = size / 4; step > 0; step /= 2) {
            low = !(lane & step);
#pragma unroll
            for (int i = 0; i < K; i++) key[i] = keep(key[i], __shfl_xor_sync(FULL_WARP, key[i], step), low);
        }
        merge_lane<K>(key, K);
    }
}

/* Where entry `place` of a sorted row lies: K consecutive places, one lane's, in as many banks. */
static __device__ __forceinline__ int swizzled(int place, int spread) { return place ^ (place >> 5 & spread); }

#endif
