/* Rows of C of small matrices, a block each (small.cu): their columns as bits, and sums at the ranks of the bits. */
#ifndef SPARSE_SPGEMM_SMALL_ROWS_CUH
#define SPARSE_SPGEMM_SMALL_ROWS_CUH

#include "spgemm/cuda/classes.cuh"

enum { SMALL_THREADS = 256, SMALL_WARPS = SMALL_THREADS / 32, MOST_COLUMNS = 16384, WORDS = MOST_COLUMNS / 32,
       SUMS = 2048 };
static_assert(WORDS == 2 * SMALL_THREADS, "a thread has two words");

/* ---- columns --------------------------------------------------------------------------------------------- */

/* A row of B that is not empty, and the element of A that it is multiplied by. */
struct alignas(16) factor_row {
    double weight;
    uint32_t start;
    int32_t length;
};

struct row_memory {
    factor_row factor[SMALL_THREADS];
    uint2 words[WORDS]; /* a bit for each of 32 columns (x), and how many come before them (y) */
    uint64_t scratch[SMALL_WARPS];
    unsigned next;
};

/* The factors of up to SMALL_THREADS elements of A from `first` on; returns their number. Ends with a barrier. */
template <typename V>
static __device__ __forceinline__ int load_factors(const product_view<V> &product, int64_t first, int64_t last,
                                                   bool sum, row_memory &memory)
{
    factor_row own = {};
    int count;
    const int64_t at = first + threadIdx.x;
    if (at < last) {
        const int32_t k = __ldg(product.a.cols + at);
        if (sum) own.weight = (double)__ldg(product.a.values + at);
        const int64_t start = __ldg(product.b.offsets + k);
        own.start = (uint32_t)start;
        own.length = (int32_t)(__ldg(product.b.offsets + k + 1) - start);
    }
    const int place = block_scan<SMALL_THREADS>(own.length > 0, &count, memory.scratch);
    if (own.length > 0) memory.factor[place] = own;
    __syncthreads();
    return count;
}

/* Up to CHUNK rows of B as one sequence of their entries; a lane stands for a row. Every warp looks alike at all of
 * them, and for each 32 places for the rows that these belong to. */
enum { CHUNK = 32 };
struct row_chunk {
    uint32_t start; /* of the row, were it to begin at place 0 */
    int before, length, total;

    __device__ __forceinline__ void open(const factor_row *factors, int count)
    {
        const int lane = threadIdx.x & 31;
        length = lane < count ? factors[lane].length : 0;
        before = scan_lanes(length, &total);
        start = lane < count ? factors[lane].start - (uint32_t)before : 0;
    }
    /* The row of place `base` + lane; *at is its entry of B. */
    __device__ __forceinline__ int row_of(int base, uint32_t *at) const
    {
        const int lane = threadIdx.x & 31, begins = before - base;
        const unsigned begun = warp_or(length > 0 && (unsigned)begins < 32 ? 1u << begins : 0);
        const int earlier = __popc(__ballot_sync(FULL_WARP, length > 0 && begins < 0));
        const int row = earlier + __popc(begun & (lanes_below() * 2 + 1)) - 1;
        *at = __shfl_sync(FULL_WARP, start, row) + (uint32_t)(base + lane);
        return row;
    }
};

/* Sets a column's bit, for a whole warp; EMPTY: none. Lanes that set bits of one word would wait for each other:
 * where columns follow one another, one lane sets the bits of all. */
static __device__ __forceinline__ void set_bits(uint2 *words, int32_t col)
{
    enum { FEW_WORDS = 4 };
    const int lane = threadIdx.x & 31, word = col == EMPTY ? -1 : col / 32;
    const uint32_t bit = 1u << (col & 31);
    const int before = __shfl_up_sync(FULL_WARP, word, 1);
    unsigned heads = __ballot_sync(FULL_WARP, lane == 0 || word != before);
    if (__popc(heads) <= FEW_WORDS) {
        for (; heads; heads &= heads - 1) {
            const int taken = __shfl_sync(FULL_WARP, word, __ffs((int)heads) - 1);
            const uint32_t bits = warp_or(word == taken ? bit : 0);
            if (lane == 0 && taken >= 0) atomicOr(&words[taken].x, bits);
        }
    } else if (word >= 0 && !(*(volatile uint32_t *)&words[word].x & bit)) {
        atomicOr(&words[word].x, bit);
    }
}

/* Sets the bits of the columns of `count` rows of B: the block takes chunks of few together, a warp one of many. */
static __device__ __forceinline__ void mark_columns(const int32_t *cols, int count, row_memory &memory)
{
    enum { LOADS = 4 };
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const bool together = count <= SMALL_THREADS / 2;
    const int stride = together ? SMALL_THREADS : 32;
    for (int base = together ? 0 : warp * CHUNK; base < count; base += together ? CHUNK : SMALL_WARPS * CHUNK) {
        row_chunk chunk;
        chunk.open(memory.factor + base, min(count - base, (int)CHUNK));
        for (int first = together ? warp * 32 : 0; first < chunk.total; first += LOADS * stride) {
            int32_t col[LOADS];
#pragma unroll
            for (int u = 0; u < LOADS; u++) {
                const int place = first + u * stride;
                uint32_t at;
                col[u] = EMPTY;
                if (place >= chunk.total) continue;
                chunk.row_of(place, &at);
                if (place + lane < chunk.total) col[u] = __ldg(cols + at);
            }
#pragma unroll
            for (int u = 0; u < LOADS; u++)
                if (first + u * stride < chunk.total) set_bits(memory.words, col[u]);
        }
    }
}

/* The bits of a row of C. Returns the factors that are loaded: all of the row's if it has no more than SMALL_THREADS
 * elements. Ends with a barrier. */
template <typename V>
static __device__ __forceinline__ int find_columns(const product_view<V> &product, int64_t row, bool sum,
                                                   row_memory &memory)
{
    const int64_t last = product.a.offsets[row + 1];
    int count = 0;
    memory.words[threadIdx.x].x = memory.words[SMALL_THREADS + threadIdx.x].x = 0;
    for (int64_t first = product.a.offsets[row]; first < last; first += SMALL_THREADS) {
        count = load_factors(product, first, last, sum, memory); /* with barriers, which clearing needs, too */
        mark_columns(product.b.cols, count, memory);
        __syncthreads();
    }
    return count;
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

/* LOADED entries of B a thread are added at once: a tile. */
enum { LOADED = 4, TILE = LOADED * SMALL_THREADS };
struct sum_memory {
    row_memory block;
    double sums[SUMS];
    double term[TILE];    /* products of columns that several rows of the tile have, side by side in A's order */
    uint32_t rows[SUMS];  /* which rows of the tile's chunk have the column: 0 between tiles */
    uint16_t first[SUMS]; /* its first term */
    unsigned terms;       /* that have got places: 0 between tiles */
};

/* Ranks of the row's columns. Ends with a barrier. */
static __device__ __forceinline__ void rank_bits(row_memory &memory)
{
    uint2 *own = memory.words + 2 * threadIdx.x;
    const int first = __popc(own[0].x);
    int total;
    const int rank = block_scan<SMALL_THREADS>(first + __popc(own[1].x), &total, memory.scratch);
    own[0].y = (uint32_t)rank;
    own[1].y = (uint32_t)(rank + first);
    __syncthreads();
}

/* Lists columns of ranks [low, low + SUMS). */
static __device__ __forceinline__ void list_columns(uint32_t low, const row_memory &memory, uint16_t *cols)
{
#pragma unroll
    for (int w = 0; w < 2; w++) {
        const int word = (int)threadIdx.x + w * SMALL_THREADS;
        const uint2 own = memory.words[word];
        uint32_t rank = own.y - low;
        for (uint32_t left = own.x; left; left &= left - 1, rank++)
            if (rank < SUMS) cols[rank] = (uint16_t)(word * 32 + __ffs((int)left) - 1);
    }
}

/* The place of a column's sum; SUMS or more where it is not among those at hand. */
static __device__ __forceinline__ uint32_t slot_of(int32_t col, uint32_t low, const row_memory &memory)
{
    if (col == EMPTY) return SUMS;
    const uint2 word = memory.words[col / 32];
    return word.y + __popc(word.x & ((1u << col % 32) - 1)) - low;
}

/* Entries of B of a tile, and of which row of its chunk they are. */
template <typename V> struct loaded_entries {
    int32_t col[LOADED]; /* EMPTY: none */
    V value[LOADED];
    int row[LOADED];

    __device__ __forceinline__ void load(const product_view<V> &product, const row_chunk &chunk, int first)
    {
        const int lane = threadIdx.x & 31;
#pragma unroll
        for (int u = 0; u < LOADED; u++) {
            const int place = first + u * SMALL_THREADS + (int)threadIdx.x - lane;
            uint32_t at;
            col[u] = EMPTY;
            value[u] = 0;
            row[u] = 0;
            if (place >= chunk.total) continue;
            row[u] = chunk.row_of(place, &at);
            if (place + lane >= chunk.total) continue;
            col[u] = __ldg(product.b.cols + at);
            value[u] = __ldg(product.b.values + at);
        }
    }
};

/* Adds a tile's products to the sums of ranks [low, low + SUMS). A column that one row of the chunk has is added at
 * once; of several, the thread of the first adds them all, in the order of the rows. */
template <typename V>
static __device__ __forceinline__ void add_tile(const loaded_entries<V> &entries, const factor_row *factors,
                                                uint32_t low, sum_memory &memory)
{
    uint32_t slot[LOADED];
    unsigned rows[LOADED], begin[LOADED];
    double term[LOADED];
#pragma unroll
    for (int u = 0; u < LOADED; u++) {
        slot[u] = slot_of(entries.col[u], low, memory.block);
        if (slot[u] < SUMS) atomicOr(memory.rows + slot[u], 1u << entries.row[u]);
        term[u] = slot[u] < SUMS ? __dmul_rn(factors[entries.row[u]].weight, (double)entries.value[u]) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < LOADED; u++) {
        const unsigned own = 1u << entries.row[u];
        rows[u] = slot[u] < SUMS ? memory.rows[slot[u]] : 0;
        if (rows[u] == own) {
            memory.sums[slot[u]] = __dadd_rn(memory.sums[slot[u]], term[u]);
        } else if (rows[u] && !(rows[u] & (own - 1))) {
            begin[u] = atomicAdd(&memory.terms, (unsigned)__popc(rows[u]));
            memory.first[slot[u]] = (uint16_t)begin[u];
        }
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < LOADED; u++) {
        const unsigned before = rows[u] & ((1u << entries.row[u]) - 1);
        if (rows[u] & (rows[u] - 1)) memory.term[memory.first[slot[u]] + __popc(before)] = term[u];
        if (rows[u] && !before) memory.rows[slot[u]] = 0;
    }
    if (threadIdx.x == 0) memory.terms = 0;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < LOADED; u++) {
        if (!(rows[u] & (rows[u] - 1)) || rows[u] & ((1u << entries.row[u]) - 1)) continue;
        const double *terms = memory.term + begin[u];
        const int count = __popc(rows[u]);
        double sum = memory.sums[slot[u]];
#pragma unroll 4
        for (int i = 0; i < count; i++) sum = __dadd_rn(sum, terms[i]);
        memory.sums[slot[u]] = sum;
    }
}

/* Adds the products of `count` rows of B, the next tile loaded before the present one is added. */
template <typename V>
static __device__ __forceinline__ void add_factors(const product_view<V> &product, int count, uint32_t low,
                                                   sum_memory &memory)
{
    const factor_row *factors = memory.block.factor;
    int base = 0, first = 0;
    row_chunk chunk;
    loaded_entries<V> next;
    if (count == 0) return;
    chunk.open(factors, min(count, (int)CHUNK));
    next.load(product, chunk, 0);
    for (bool more = true; more;) {
        const loaded_entries<V> now = next;
        const factor_row *own = factors + base;
        first += TILE;
        if (first >= chunk.total) {
            first = 0;
            base += CHUNK;
            more = base < count;
            if (more) chunk.open(factors + base, min(count - base, (int)CHUNK));
        }
        if (more) next.load(product, chunk, first);
        add_tile(now, own, low, memory);
    }
    __syncthreads();
}

#endif
