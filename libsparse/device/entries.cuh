/* Kernels over the entries of a matrix as one sequence, cut into equal blocks regardless of the lengths of rows; and
 * subsets of a sequence, as a bit for each member and the places of the members. */
#ifndef SPARSE_CUDA_ENTRIES_CUH
#define SPARSE_CUDA_ENTRIES_CUH

#include "base/search.h"
#include "device/common.cuh"

enum { ENTRY_THREADS = 256, ENTRIES_A_THREAD = 8, ENTRIES_A_BLOCK = ENTRY_THREADS * ENTRIES_A_THREAD };
/* 64 turns of a block, which take as long as bisections of 20 steps. */
enum { ROWS_MARKED = 64 * ENTRY_THREADS };

static inline unsigned entry_blocks(int64_t entries)
{
    return (unsigned)((entries + ENTRIES_A_BLOCK - 1) / ENTRIES_A_BLOCK);
}

/* The number of blocks with one thread for each member. */
static inline unsigned thread_blocks(int64_t members)
{
    return (unsigned)((members + ENTRY_THREADS - 1) / ENTRY_THREADS);
}

/* The row of an entry (the last row that begins at or before it), found by a warp in steps of 32 rows: four steps for a
 * million rows. There must be at least one row. */
static __device__ __forceinline__ int64_t warp_row_at(const int64_t *offsets, int64_t rows, int64_t at)
{
    const int lane = threadIdx.x % 32;
    int64_t low = 0;
    while (rows > 1) {
        const int64_t step = (rows + 31) / 32;
        const int64_t mine = lane * step;
        const unsigned before = __ballot_sync(FULL_WARP, mine < rows && __ldg(offsets + low + mine) <= at);
        const int64_t skipped = (31 - __clz((int)before)) * step; /* lane 0's row always begins before */
        low += skipped;
        rows = min(step, rows - skipped);
    }
    return low;
}

/* Calls store(at, load(row, at)) for every entry of a block; a thread loads all of its entries before it stores. A warp
 * takes 32 entries at a time, those of one word of bits, and 256 in all. To find rows, each row that begins within the
 * block marks its first entry; an entry belongs to the last mark at or before it. If the block spans very many rows,
 * nearly all of them empty, each entry searches for its row instead. */
template <typename Load, typename Store>
static __device__ __forceinline__ void for_entries(int64_t rows, int64_t nnz, const int64_t *offsets, Load load,
                                                   Store store)
{
    enum { ITEMS = ENTRIES_A_THREAD, WARPS = ENTRY_THREADS / 32 };
    __shared__ int64_t bound[2];
    __shared__ int marks[ENTRIES_A_BLOCK];
    __shared__ unsigned last_marks[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, place = warp * 32 * ITEMS + lane;
    const int64_t begin = (int64_t)blockIdx.x * ENTRIES_A_BLOCK, end = min(begin + ENTRIES_A_BLOCK, nnz);
    if (warp < 2) {
        const int64_t row = warp_row_at(offsets, rows, warp == 0 ? begin : end - 1);
        if (lane == 0) bound[warp] = row;
    }
    for (int i = threadIdx.x; i < ENTRIES_A_BLOCK; i += ENTRY_THREADS) marks[i] = 0;
    __syncthreads();
    const int64_t first = bound[0];
    if (bound[1] - first <= ROWS_MARKED)
        for (int64_t row = first + 1 + threadIdx.x; row <= bound[1]; row += ENTRY_THREADS) {
            const int64_t at = __ldg(offsets + row);
            if (__ldg(offsets + row + 1) > at) marks[at - begin] = (int)(row - first);
        }
    else
#pragma unroll 1
        for (int i = threadIdx.x; i < end - begin; i += ENTRY_THREADS)
            marks[i] = (int)(upper_bound_i64(offsets, first, bound[1] + 1, begin + i) - 1 - first);
    __syncthreads();
    int mark[ITEMS], row = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) mark[i] = marks[place + i * 32], row = max(row, mark[i]);
    const unsigned last_mark = warp_max((unsigned)row);
    if (lane == 0) last_marks[warp] = last_mark;
    __syncthreads();
    row = 0;
    for (int w = 0; w < warp; w++) row = max(row, (int)last_marks[w]);

    decltype(load(first, begin)) held[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const unsigned marked = __ballot_sync(FULL_WARP, mark[i] > 0) & (~0u >> (31 - lane));
        const int found = __shfl_sync(FULL_WARP, mark[i], marked ? 31 - __clz((int)marked) : 0);
        if (marked) row = found;
        const int64_t at = begin + place + i * 32;
        if (at < end) held[i] = load(first + row, at);
        row = __shfl_sync(FULL_WARP, row, 31);
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int64_t at = begin + place + i * 32;
        if (at < end) store(at, held[i]);
    }
}

/* ---- parts of a sequence --------------------------------------------------------------------------------- */

/* Bit m % 32 of word m / 32 says whether member m belongs to the subset. before[w] is the number of members that do in
 * the words before w. */
struct member_places {
    const uint32_t *words;
    const int64_t *before;

    /* The number of members before m that belong. m may be the number of members. */
    __device__ __forceinline__ int64_t place(int64_t m) const
    {
        return before[m / 32] + __popc(words[m / 32] & ((1u << m % 32) - 1));
    }
};

/* Called by for_entries for each of `count` entries: records whether it belongs. */
static __device__ __forceinline__ void mark_entry(uint32_t *words, int64_t count, int64_t at, bool belongs)
{
    const int64_t there = count - at / 32 * 32; /* entries of this word */
    const unsigned word = __ballot_sync(there < 32 ? (1u << there) - 1 : FULL_WARP, belongs);
    if (threadIdx.x % 32 == 0) words[at / 32] = word;
}

/* Records for the members first + lane of a warp whether they belong, by the bits of `ballot`. */
static __device__ __forceinline__ void mark_warp(uint32_t *words, int64_t first, unsigned ballot)
{
    const int shift = (int)(first % 32);
    if (threadIdx.x % 32 != 0 || ballot == 0) return;
    atomicOr(words + first / 32, ballot << shift);
    if (shift > 0 && ballot >> (32 - shift)) atomicOr(words + first / 32 + 1, ballot >> (32 - shift));
}

/* A subset of a sequence. */
struct marked_part {
    device_array<uint32_t> words;
    device_array<int64_t> before;
    int64_t total = 0;

    /* Makes room for `members` bits, all zero. */
    sp_status create(sp_context *context, int64_t members);
    /* After all bits are set: fills `before` and `total`. Waits for the device. */
    sp_status count(sp_context *context, int64_t members);
    member_places places() const { return {words.data, before.data}; }
};

/* B = the marked entries of A. If `names` is not NULL, columns are renamed by it. */
sp_status cuda_take_marked(sp_context *context, const sp_csr *a, const marked_part *part, int64_t cols,
                           const int32_t *names, sp_csr *b);

#endif
