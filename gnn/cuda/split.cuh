/* What the kernels of multiply_split.cu share: the product, how slabs of B lie in shared memory, numbers in two halves,
 * the order in which a block works on its slabs. */
#ifndef GNN_CUDA_SPLIT_CUH
#define GNN_CUDA_SPLIT_CUH

#include <cuda_fp16.h>

#include "backend.cuh"

enum { TILE = 128, SLAB = 64, STEPS = SLAB / 16 };

/* Threads of the warpgroup of which one fetches B, and a block's. */
enum { FETCHERS = 128, BLOCK = 3 * 128 };

/* Of B in shared memory: a slab of a column is 128 bytes, chunk c of column n (16 bytes) the one at c ^ n % 8 there,
 * so that eight columns' chunks c lie in all the banks (the 128-byte swizzle of wgmma). A second half has the second
 * parts. */
template <int COLS> struct layout {
    static constexpr int HALF = COLS * SLAB, STAGE = 2 * HALF, STAGES = COLS == 128 ? 6 : 4, ALIGNED = 1024;
    static constexpr size_t BYTES = (size_t)STAGES * STAGE * sizeof(__half) + ALIGNED;

    static __device__ __forceinline__ int place(int n, int c) { return n * SLAB + (c ^ n % 8) * 8; }

    /* Which column of the tile that is: those that are loaded together are written side by side but a quarter apart,
     * so that threads write to different banks, and a thread finds four that are neighbours in its sums. */
    static __device__ __forceinline__ int column(int n) { return n % (COLS / 4) * 4 + n / (COLS / 4); }
};

/* Blocks of a multiprocessor, and registers of the two kinds of threads: of narrow tiles two blocks, which keep
 * enough of A on its way. */
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
    const __half *image; /* of B, as it is to lie in shared memory: of a slab column tile by column tile; */
    const float *backs;  /* and what it is scaled by, inversely */
    float *c;
    int64_t rows, cols, c_stride, part_size; /* numbers from part to part of C */
    int first_slabs, slabs, part_slabs;      /* of the first term, of both, of a part */
    unsigned row_tiles, col_tiles, items;    /* tiles times parts */
    int tile_rows;                           /* of TILE, an even number */
    float alpha, beta;
    bool fours; /* four numbers of C may be stored at once */
    mask how;   /* what happens to the numbers of C then, and the bias before it, or NULL */
    const float *bias;
};

/* ---- slabs ----------------------------------------------------------------------------------------------- */

/* Number e of chunk c of a slab: with t = e / 2 those of step s are c = 2s at 2t, 2t + 1 and c = 2s + 1 at 2t + 8,
 * 2t + 9, and a thread's four numbers of a step lie side by side. */
static __device__ __forceinline__ int inner_of(int c, int e) { return c / 2 * 16 + c % 2 * 2 + e / 2 * 4 + e % 2; }

/* Two numbers, each in two halves. */
static __device__ __forceinline__ void split(float x, float y, uint32_t *first, uint32_t *second)
{
    const __half2 upper = __floats2half2_rn(x, y);
    const float2 known = __half22float2(upper);
    const __half2 lower = __floats2half2_rn(x - known.x, y - known.y);
    *first = *(const uint32_t *)&upper;
    *second = *(const uint32_t *)&lower;
}

/* The power of two that brings `most` between 2^to and 2^(to + 1), as far as there is one, and its inverse. */
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
    /* Whether it is the slab beside the last one. */
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
    /* The term that the slab belongs to, its place in the inner dimension, and how much of it is there: nothing after
     * the last one. */
    __device__ __forceinline__ const split_term &term(const split_product &p, int64_t *inner, int *left) const
    {
        const bool second = slab >= p.first_slabs;
        const split_term &found = p.term[second];
        *inner = (int64_t)(slab - (second ? p.first_slabs : 0)) * SLAB;
        *left = item < p.items ? (int)min(found.inner - *inner, (int64_t)SLAB) : 0;
        return found;
    }
};

/* Four neighbours in a row of which `left` are there; WIDE: rows begin at multiples of 16 bytes and go on to one, and
 * what comes after those that are there is whatever lies there. */
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
