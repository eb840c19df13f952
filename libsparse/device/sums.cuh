/* Sums, maxima and scans over the lanes of a group or a warp, and over a block, each in a fixed order. Header-only, as
 * check.cuh. */
#ifndef DEVICE_SUMS_CUH
#define DEVICE_SUMS_CUH

#include <stdint.h>

constexpr unsigned FULL_WARP = 0xffffffffu;

/* ---- lanes --------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned lanes_below() { return (1u << (threadIdx.x & 31)) - 1; }

/* The mask of the lanes of this thread's group. */
template <int LANES> static __device__ __forceinline__ unsigned group_mask()
{
    return LANES == 32 ? FULL_WARP : ((1u << LANES % 32) - 1) << (threadIdx.x % 32 / LANES * LANES);
}

template <int LANES, typename T> static __device__ __forceinline__ T group_sum(T value)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(group_mask<LANES>(), value, step);
    return value;
}

struct add_op {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct max_op {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

static __device__ __forceinline__ unsigned warp_max(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(FULL_WARP, value);
#else
    for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
#endif
}

static __device__ __forceinline__ unsigned warp_add(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(FULL_WARP, value);
#else
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
    return value;
#endif
}

static __device__ __forceinline__ unsigned warp_or(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(FULL_WARP, value);
#else
    for (int step = 16; step > 0; step /= 2) value |= __shfl_xor_sync(FULL_WARP, value, step);
    return value;
#endif
}

/* The sum over all lanes up to and including this one. */
template <typename T> static __device__ __forceinline__ T sum_until(T value)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(FULL_WARP, value, step);
        if ((threadIdx.x & 31) >= step) value += other;
    }
    return value;
}

/* The sum over the lanes before this one; *total is the sum over all. */
static __device__ __forceinline__ int scan_lanes(int value, int *total)
{
    const int until = sum_until(value);
    *total = __shfl_sync(FULL_WARP, until, 31);
    return until - value;
}

/* ---- a block ------------------------------------------------------------------------------------------- */

/* Reduces over the block in an order that depends only on THREADS. Every thread gets the result. `scratch` has THREADS
 * / 32 elements. */
template <int THREADS, typename T, typename Op> __device__ T block_reduce(T value, Op op, uint64_t *scratch)
{
    for (int step = 16; step > 0; step /= 2) value = op(value, __shfl_xor_sync(FULL_WARP, value, step));
    if (THREADS == 32) return value;
    T *partial = (T *)scratch;
    constexpr int stride = 8 / sizeof(T);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32 * stride] = value;
    __syncthreads();
    T result = partial[0];
    for (int w = 1; w < THREADS / 32; w++) result = op(result, partial[w * stride]);
    return result;
}

/* The sum over the threads before this one; *total is the sum over all. */
template <int THREADS> __device__ int block_scan(int value, int *total, uint64_t *scratch)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (THREADS == 32) return scan_lanes(value, total);
    const int until = sum_until(value);
    int *sums = (int *)scratch, before = 0, all = 0;
    __syncthreads();
    if (lane == 31) sums[warp] = until;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) {
        if (w < warp) before += sums[w];
        all += sums[w];
    }
    *total = all;
    return before + until - value;
}

/* True in the last of `blocks` blocks to get here; it sees what the others have written. The ticket is 0 again for the
 * next launch. */
static __device__ __forceinline__ bool is_last_block(unsigned *ticket, unsigned blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(ticket, blocks - 1) == blocks - 1;
    __syncthreads();
    if (last) __threadfence();
    return last;
}

#endif
