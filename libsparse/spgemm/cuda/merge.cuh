/* Rows of C as one lane makes them, of up to four rows of B: their columns are merged. */
#ifndef SPARSE_CUDA_MERGE_CUH
#define SPARSE_CUDA_MERGE_CUH

#include "spgemm/cuda/semiring.cuh"

/* Merged rows: the elements and products that one may have. All 32 rows of a warp are merged, or none; at least half
 * of their elements lie within NEAR columns of the diagonal, so that neighbouring lanes read neighbouring rows of B:
 * lanes that each read 4 bytes here and there take twice as long as packs. */
enum { MERGED_ELEMENTS = 4, MERGED_PRODUCTS = 16, NEAR = 1 << 16 };

/* A row of C, of fewer than 2^32 entries of B, as one lane merges it: no table, no sort, and sums in A's order. */
struct row_merge {
    const int32_t *cols;                                /* of B */
    uint32_t at[MERGED_ELEMENTS], end[MERGED_ELEMENTS]; /* the rest of B's rows */
    int32_t head[MERGED_ELEMENTS];                      /* their columns at `at`, or NO_COLUMN */
    static constexpr int32_t NO_COLUMN = INT32_MAX;

    __device__ __forceinline__ void open(int64_t begin, int64_t last, const int32_t *a_cols, const int64_t *b_offsets)
    {
        int32_t k[MERGED_ELEMENTS];
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) k[i] = begin + i < last ? __ldg(a_cols + begin + i) : -1;
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) {
            at[i] = k[i] < 0 ? 0 : (uint32_t)__ldg(b_offsets + k[i]);
            end[i] = k[i] < 0 ? 0 : (uint32_t)__ldg(b_offsets + k[i] + 1);
        }
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) look(i);
    }
    __device__ __forceinline__ void look(int i) { head[i] = at[i] < end[i] ? __ldg(cols + at[i]) : NO_COLUMN; }
    __device__ __forceinline__ int32_t lowest() const
    {
        int32_t low = head[0];
#pragma unroll
        for (int i = 1; i < MERGED_ELEMENTS; i++) low = min(low, head[i]);
        return low;
    }
    __device__ __forceinline__ int count()
    {
        int entries = 0;
        for (int32_t low; (low = lowest()) != NO_COLUMN; entries++)
#pragma unroll
            for (int i = 0; i < MERGED_ELEMENTS; i++)
                if (head[i] == low) {
                    at[i]++;
                    look(i);
                }
        return entries;
    }
    /* The sum of column `low`; all that it reads is on its way at once. */
    template <typename V>
    __device__ __forceinline__ double take(int32_t low, const double (&weight)[MERGED_ELEMENTS], const V *values)
    {
        bool takes[MERGED_ELEMENTS];
        V value[MERGED_ELEMENTS];
        double sum = no_sum<true>();
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) {
            takes[i] = head[i] == low;
            if (!takes[i]) continue;
            value[i] = __ldg(values + at[i]++);
            look(i);
        }
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++)
            if (takes[i]) sum = __dadd_rn(sum, __dmul_rn(weight[i], (double)value[i]));
        return sum;
    }
};

#endif
