/* What the tiles of a plan (terms.cuh) are made from: the products of A·B, numbered in the order of A and B, and how
 * many of them each entry of C has. list.cu fills it, tiles.cu makes tiles of it. */
#ifndef SPARSE_CUDA_TERMS_SOURCE_CUH
#define SPARSE_CUDA_TERMS_SOURCE_CUH

#include "device/common.cuh"
#include "spgemm/cuda/plan/terms.cuh"

/* Three kinds of rows of C:
 *   whole   in one tile, which walks their products. They have few enough for a tile to hold at least two such rows.
 *   cut     by entries of C, between tiles that walk the products of their columns. These must have been counted, which
 *           is a walk more.
 *   listed  likewise, but a walk more lists the products entry by entry of C: rows with more than MOST_TERMS entries in
 *           A, in each of which every tile would search, and which may have long entries; masked ones.
 */
enum { MOST_WHOLE = TILE_MOST / 2 };

static __device__ __forceinline__ bool is_listed(bool masked, int64_t elements)
{
    return masked || elements > MOST_TERMS;
}

/* Weights of entries of C. The first entry of a whole row has the products of the row, and its others have none; an
 * entry of a row that is cut has its own, and one of a listed row none when they are listed. A long one has its number
 * among these. */
constexpr uint32_t WHOLE_ROW = 1u << 30, LONG_ENTRY = 1u << 31;

struct product_source {
    const int64_t *a_offsets, *b_offsets, *c_offsets;
    const int32_t *a_cols, *b_cols, *c_cols;
    int64_t rows, nnz;     /* of C */
    bool masked;           /* C has not all products */
    const int64_t *before; /* products before each entry of A, and behind the last */
    uint32_t *weights;     /* of the entries of C */
    /* Places of products by entry of C, for nnz + 1. A long entry has MOST_TERMS, all of them empty; the first of a
     * whole row has those of all its row. */
    const int64_t *starts;
    uint2 *pairs; /* entries of A and of B at these places, for listed rows */
};

/* Device memory, and what the host knows of it. */
struct term_lists {
    device_array<int64_t> before, starts;
    device_array<uint32_t> weights;
    device_array<uint2> pairs;
    device_array<long_entry> longs;
    product_source source;
    int64_t places;         /* starts[nnz] */
    int64_t cut_products, listed_products;
};

/* Products that a block walks at once; each has a place. Those of an entry of A, or of C, are beside each
 * other: `heads` has a bit for the first. */
struct walked_products {
    uint32_t heads[TILE_GROUPS];
    uint16_t last[TILE_GROUPS]; /* the last head before each 32 places */

    __device__ __forceinline__ void clear()
    {
        for (int i = threadIdx.x; i < TILE_GROUPS; i += blockDim.x) heads[i] = 0;
    }
    __device__ __forceinline__ void mark(int place) { atomicOr(heads + place / 32, 1u << place % 32); }
    /* After all marks, by a warp. */
    __device__ __forceinline__ void find_last()
    {
        int before = 0;
        for (int base = 0; base < TILE_GROUPS; base += 32) {
            const int i = base + (threadIdx.x & 31);
            const uint32_t own = i < TILE_GROUPS ? heads[i] : 0;
            int until = own ? i * 32 + 31 - __clz((int)own) : 0;
            for (int step = 1; step < 32; step *= 2) {
                const int other = __shfl_up_sync(FULL_WARP, until, step);
                if ((int)(threadIdx.x & 31) >= step) until = max(until, other);
            }
            until = max(until, before);
            const int up = __shfl_up_sync(FULL_WARP, until, 1);
            if (i < TILE_GROUPS) last[i] = (uint16_t)((threadIdx.x & 31) == 0 ? before : up);
            before = __shfl_sync(FULL_WARP, until, 31);
        }
    }
    __device__ __forceinline__ int head_of(int place) const
    {
        const uint32_t up_to = heads[place / 32] & ((2u << place % 32) - 1);
        return up_to ? place / 32 * 32 + 31 - __clz((int)up_to) : last[place / 32];
    }
};

/* Fills `lists`, and the terms of long entries; *fits is false where that takes more than `room` bytes, or more
 * blocks or long entries than can be numbered, or a row of A has 2^30 entries. */
sp_status cuda_list_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t room, term_lists *lists, product_terms *terms, bool *fits);
/* An array of a plan; terms->bytes grows by its size. */
template <typename T>
static sp_status add_array(sp_context *context, int64_t count, product_terms *terms, T **array)
{
    terms->bytes += count * (int64_t)sizeof(T);
    return cuda_allocate(context, (size_t)count * sizeof(T), (void **)array);
}

#endif
