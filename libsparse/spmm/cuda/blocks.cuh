/* How rows are cut into blocks of equal work, for the kernels that walk over them. */
#ifndef SPARSE_CUDA_SPMM_BLOCKS_CUH
#define SPARSE_CUDA_SPMM_BLOCKS_CUH

#include "spmm/cuda/spmm.cuh"

/* Algorithm 1: how much a group and a block take. */
struct block_sizes {
    enum { EMPTY_ROWS = 64 };
    int group, block; /* entries, at most */
    int classes;      /* of rows by entries: exact numbers up to what one block takes, then all others */
    bool coarse;      /* powers of two instead */

    block_sizes() = default;
    explicit block_sizes(const spmm_blocks *parts)
        : group(parts->group_entries), block(group * SPMM_GROUPS), classes(block + 2), coarse(parts->coarse)
    {
    }
    /* The class of a row: the most entries that rows of the class have. */
    __host__ __device__ __forceinline__ int class_of(int entries) const
    {
        if (entries > block) return block + 1;
        int top = 8;
        while (top < entries) top *= 2;
        return coarse && entries > 0 ? top : entries;
    }
    /* Rows of a block. A row without entries is only a row of zeros to write. */
    __host__ __device__ __forceinline__ int rows_of(int entries) const
    {
        return entries == 0 ? EMPTY_ROWS : SPMM_GROUPS / groups_of(entries);
    }
    /* Groups that share a row. */
    __host__ __device__ __forceinline__ int groups_of(int entries) const
    {
        int groups = 1;
        while (groups * group < entries) groups *= 2;
        return groups;
    }
    /* Entries of each of them except the last. */
    __host__ __device__ __forceinline__ int share(int entries, int groups) const
    {
        return groups == 1 ? entries : ((entries + groups - 1) / groups + 7) / 8 * 8;
    }
};

/* Room for the partial results of rows of several blocks: `bytes` of them, and `arrived` counts of blocks, which are
 * zero between launches. Kept from launch to launch. */
sp_status cuda_spmm_make_carry(sp_context *context, spmm_blocks *parts, int64_t arrived, size_t bytes);

#endif
