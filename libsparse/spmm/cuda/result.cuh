/* What a lane holds of a row of Y while the row is walked: sums, or extremes with the entries that gave them. */
#ifndef SPARSE_CUDA_SPMM_RESULT_CUH
#define SPARSE_CUDA_SPMM_RESULT_CUH

#include "spmm/cuda/packet.cuh"
#include "spmm/cuda/spmm.cuh"

/* Sums of V columns. */
template <typename T, int V> struct spmm_sums {
    using S = typename spmm_sum<T>::type;
    static constexpr bool EXTREME = false;
    S sum[V];

    __device__ __forceinline__ void clear(const spmm_product &)
    {
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] = 0;
    }
    __device__ __forceinline__ void add(const packet<T, V> &x, S weight, int, bool)
    {
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] = fused(weight, wide(x.part[v]), sum[v]);
    }
    __device__ __forceinline__ void merge(const spmm_sums &other)
    {
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] += other.sum[v];
    }
    __device__ __forceinline__ spmm_sums across(int step) const
    {
        spmm_sums other;
#pragma unroll
        for (int v = 0; v < V; v++) other.sum[v] = __shfl_xor_sync(FULL_WARP, sum[v], step);
        return other;
    }
    __device__ __forceinline__ S result(int v) const { return sum[v]; }
};

/* The largest product of V columns and the entry that gave it, counted from the row's first; the lowest of equals.
 * The smallest is the largest of the negated. */
template <typename T, int V> struct spmm_extremes {
    using S = typename spmm_sum<T>::type;
    static constexpr bool EXTREME = true;
    S best[V];
    int32_t entry[V];
    S sign;

    __device__ __forceinline__ void clear(const spmm_product &p)
    {
        sign = p.minimum ? S(-1) : S(1);
#pragma unroll
        for (int v = 0; v < V; v++) {
            best[v] = 0;
            entry[v] = -1;
        }
    }
    __device__ __forceinline__ void add(const packet<T, V> &x, S weight, int at, bool there)
    {
        if (!there) return;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const S product = sign * (weight * wide(x.part[v]));
            if (entry[v] < 0 || product > best[v]) {
                best[v] = product;
                entry[v] = at;
            }
        }
    }
    __device__ __forceinline__ void merge(const spmm_extremes &other)
    {
#pragma unroll
        for (int v = 0; v < V; v++) {
            const bool wins = other.best[v] > best[v] || (other.best[v] == best[v] && other.entry[v] < entry[v]);
            if (other.entry[v] >= 0 && (entry[v] < 0 || wins)) {
                best[v] = other.best[v];
                entry[v] = other.entry[v];
            }
        }
    }
    __device__ __forceinline__ spmm_extremes across(int step) const
    {
        spmm_extremes other;
#pragma unroll
        for (int v = 0; v < V; v++) {
            other.best[v] = __shfl_xor_sync(FULL_WARP, best[v], step);
            other.entry[v] = __shfl_xor_sync(FULL_WARP, entry[v], step);
        }
        other.sign = sign;
        return other;
    }
    __device__ __forceinline__ S result(int v) const { return entry[v] < 0 ? S(0) : sign * best[v]; }
};

#endif
