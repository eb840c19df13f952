/* Entries of items of any lengths, dealt out to warps evenly: rows of nodes that are gathered, rows of C that are
 * moved. */
#ifndef SPARSE_CUDA_CONTRACT_TILES_CUH
#define SPARSE_CUDA_CONTRACT_TILES_CUH

#include "contract/cuda/contract.cuh"

enum { GATHER_THREADS = 256 };
enum { TILE = 256, TILES = 4 }; /* entries that a warp assigns to their rows at once; tiles it takes in a row */

/* The items of a warp's tile, those without entries left out: a bit where each begins, and where entry e of the tile
 * comes from, as source - e. */
struct item_tile {
    uint32_t begins[TILE / 32];
    int64_t source[TILE];
};

/* Finds the items of the entries [base, end); item *first has the first of them, and afterwards that after the last.
 * take(item, &source) gives an item's first entry. */
template <typename Take>
static __device__ __forceinline__ void fill_tile(item_tile &tile, const int64_t *starts, int64_t items, int64_t base,
                                                 int64_t end, int64_t *first, Take take)
{
    const int lane = threadIdx.x & 31;
    int used = 0;
    __syncwarp();
    if (lane < TILE / 32) tile.begins[lane] = 0;
    __syncwarp();
    for (;;) {
        const int64_t k = *first + lane;
        int64_t from = end, to = end, source = 0;
        if (k < items) {
            from = __ldg(starts + k);
            to = __ldg(starts + k + 1);
            take(k, &source); /* not all are wanted, but to know which takes as long again */
        }
        const bool inside = from < to && from < end && to > base;
        const unsigned all = __ballot_sync(FULL_WARP, inside);
        if (inside) {
            const int at = (int)(max(from, base) - base), slot = used + __popc(all & lanes_below());
            tile.source[slot] = source + (base - from);
            atomicOr(tile.begins + at / 32, 1u << (at % 32));
        }
        used += __popc(all);
        const unsigned beyond = __ballot_sync(FULL_WARP, to >= end);
        if (beyond) {
            *first += __ffs((int)beyond) - 1;
            break;
        }
        *first += 32;
        if (!all) *first = last_start(starts, items, __shfl_sync(FULL_WARP, (long long)to, 31));
    }
    __syncwarp();
}

/* Calls copy(base, end) for the tiles of entries [begin, stop), in a warp; item `first` has the first of them. */
template <typename Take, typename Copy>
static __device__ __forceinline__ void copy_tiles(item_tile &tile, const int64_t *starts, int64_t items,
                                                  int64_t begin, int64_t stop, int64_t first, Take take, Copy copy)
{
    for (int64_t base = begin; base < stop; base += TILE) {
        const int64_t end = min(base + TILE, stop);
        fill_tile(tile, starts, items, base, end, &first, take);
        copy(base, end);
    }
}

/* Calls deal(begin, stop) for this many entries of all items in a warp each. */
template <typename Deal> static __device__ __forceinline__ void deal_entries(int64_t total, Deal deal)
{
    const int64_t warps = blockDim.x / 32, step = gridDim.x * warps * TILE * TILES;
    for (int64_t begin = (blockIdx.x * warps + threadIdx.x / 32) * TILE * TILES; begin < total; begin += step)
        deal(begin, min(begin + TILE * TILES, total));
}

/* The item in the tile of its entry 32·u + lane, for all u. */
static __device__ __forceinline__ void slots_of(const item_tile &tile, int (&slot)[TILE / 32])
{
    int before = -1;
#pragma unroll
    for (int u = 0; u < TILE / 32; u++) {
        const uint32_t bits = tile.begins[u];
        slot[u] = before + __popc(bits & (lanes_below() * 2 + 1));
        before += __popc(bits);
    }
}

#endif
