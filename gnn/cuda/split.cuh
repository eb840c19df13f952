/* What the kernels of multiply_split.cu share: the product, how slabs of B lie in shared memory, numbers in two halves,
 * the order in which a block works on its slabs. */
#ifndef GNN_CUDA_SPLIT_CUH
#define GNN_CUDA_SPLIT_CUH

#include <cuda_fp16.h>

#include "backend.cuh"

enum { TILE = 128, SLAB = 64, STEPS = SLAB / 16 };

/* Threads of the warpgroup that fetches B (by one of them), and of a block. */
enum { FETCHERS = 128, BLOCK = 3 * 128 };

/* The layout of B in shared memory: a slab of a column is 128 bytes; chunk c of column n (16 bytes) lies at c ^ n %
 * 8, so that chunks c of eight columns use all banks (the 128-byte swizzle of wgmma). A second half has the second
 * parts. */
template <int COLS> struct layout {
    static constexpr int HALF = COLS * SLAB, STAGE = 2 * HALF, STAGES = COLS == 128 ? 6 : 4, ALIGNED = 1024;
    static constexpr size_t BYTES = (size_t)STAGES * STAGE * sizeof(__half) + ALIGNED;

    static __device__ __forceinline__ int place(int n, int c) { return n * SLAB + (c ^ n % 8) * 8; }

    /* The tile's column at place n. Columns that are loaded together are stored a quarter apart, so that threads
     * write to different banks and four neighbours lie in one thread's sums. */
    static __device__ __forceinline__ int column(int n) { return n % (COLS / 4) * 4 + n / (COLS / 4); }
};

/* Blocks of a multiprocessor, and registers of the two kinds of threads. Narrow tiles have two blocks, to keep enough
 * loads of A in flight. */
template <int COLS> struct shares {
    static constexpr int BLOCKS = COLS == 16 ? 2 : 1;
    static constexpr int FETCHER = 32, MULTIPLIER = COLS == 16 ? 104 : 232;
};

struct split_term {
    const float *a, *b;
    int64_t a_stride, b_stride, inner;
};

struct split_product {
    split_term term[2];
    const __half *image; /* of B in the layout of shared memory, by slabs and within these by column tiles; */
    const float *backs;  /* and the inverse of its scales */
    float *c;
    int64_t rows, cols, c_stride, part_size; /* numbers of a part of C */
    int first_slabs, slabs, part_slabs;      /* of the first term, of both, of a part */
    unsigned row_tiles, col_tiles, items;    /* tiles times parts */
    int tile_rows;                           /* of TILE, an even number */
    float alpha, beta;
    bool fours; /* four numbers of C may be stored at once */
    mask how;   /* activation and dropout of C, and the bias before them, or NULL */
    const float *bias;
};

/* ---- slabs ----------------------------------------------------------------------------------------------- */

/* The inner index of number e of chunk c of a slab. With t = e / 2, step s has chunk 2s at 2t, 2t + 1 and chunk 2s +
 * 1 at 2t + 8, 2t + 9, so a thread's four numbers of a step are neighbours. */
static __device__ __forceinline__ int inner_of(int c, int e) { return c / 2 * 16 + c % 2 * 2 + e / 2 * 4 + e % 2; }

/* Splits two numbers into two halves each. */
static __device__ __forceinline__ void split(float x, float y, uint32_t *first, uint32_t *second)
{
    const __half2 upper = __floats2half2_rn(x, y);
    const float2 known = __half22float2(upper);
    const __half2 lower = __floats2half2_rn(x - known.x, y - known.y);
    *first = *(const uint32_t *)&upper;
    *second = *(const uint32_t *)&lower;
}

/* The power of two that brings `most` between 2^to and 2^(to + 1), limited to finite f32, and its inverse. */
static __device__ __forceinline__ float scale_to(int to, float most)
{
    const int field = 2 * 127 + to - (int)(__float_as_uint(most) >> 23);
    return __uint_as_float((unsigned)min(field, 253) << 23);
}
static __device__ __forceinline__ float inverse(float scale)
{
    return __uint_as_float((254u << 23) - __float_as_uint(scale));
}

/* The slabs of a block, tile after tile. */
struct walk {
    int64_t first_row;
    unsigned item, col_tile;
    int part, slab, end;

    __device__ __forceinline__ void enter(const split_product &p, unsigned to)
    {
        item = to;
        if (item >= p.items) return;
        const unsigned tile = item / p.col_tiles;
        part = (int)(tile / p.row_tiles);
        first_row = (int64_t)(tile - (unsigned)part * p.row_tiles) * p.tile_rows;
        col_tile = item - tile * p.col_tiles;
        slab = part * p.part_slabs;
        end = min(slab + p.part_slabs, p.slabs);
    }
    /* Goes on; true if the new slab is the neighbour of the old one. */
    __device__ __forceinline__ bool next(const split_product &p)
    {
        if (++slab == end) {
            enter(p, item + gridDim.x);
            return false;
        }
        return slab != p.first_slabs;
    }
    /* The slab's place in the image of B. */
    __device__ __forceinline__ int64_t tile(const split_product &p) const
    {
        return (int64_t)slab * p.col_tiles + col_tile;
    }
    /* The slab's term, its place in the inner dimension, and how many of its numbers exist: none after the last slab.
     */
    __device__ __forceinline__ const split_term &term(const split_product &p, int64_t *inner, int *left) const
    {
        const bool second = slab >= p.first_slabs;
        const split_term &found = p.term[second];
        *inner = (int64_t)(slab - (second ? p.first_slabs : 0)) * SLAB;
        *left = item < p.items ? (int)min(found.inner - *inner, (int64_t)SLAB) : 0;
        return found;
    }
};

/* Loads four neighbours of a row, `left` of which exist. WIDE: rows and strides are multiples of 16 bytes, and
 * numbers beyond the end may have any value. */
template <bool WIDE> static __device__ __forceinline__ void load_four(const float *from, int left, float *to)
{
    if (WIDE) {
        const float4 four = left > 0 ? *(const float4 *)from : make_float4(0, 0, 0, 0);
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else
#pragma unroll
        for (int e = 0; e < 4; e++) to[e] = left > e ? from[e] : 0;
}

#endif
