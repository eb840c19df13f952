/* Sums of entries of C whose columns are known: each lies at the rank of its column, found by bits or by bisection. */
#ifndef SPARSE_SPGEMM_RANK_CUH
#define SPARSE_SPGEMM_RANK_CUH

#include "spgemm/cuda/walk.cuh"

/* Bits and ranks of sorted columns: a word holds a bit for each of 32 columns (x), and how many entries come before
 * them (y). */
static __device__ __forceinline__ void rank_columns(const int32_t *cols, int count, uint2 *words)
{
    const int lane = threadIdx.x & 31;
    const int32_t lowest = cols[0];
    for (int i = lane; i <= (cols[count - 1] - lowest) / 32; i += 32) words[i].x = 0;
    __syncwarp();
    for (int i = lane; i < count; i += 32) {
        const int offset = cols[i] - lowest, before = i > 0 ? cols[i - 1] - lowest : -1;
        atomicOr(&words[offset / 32].x, 1u << offset % 32);
        if (before < 0 || before / 32 != offset / 32) words[offset / 32].y = (uint32_t)i;
    }
}

/* Sums of entries of C whose columns are known, in their order. */
template <typename V, bool PLAIN> struct known_sums {
    static constexpr bool SUMS = true;
    static constexpr int ROWS = 1;
    const product_view<V> &product;
    double *sums;

    static __device__ __forceinline__ double none() { return no_sum<PLAIN>(); }
    __device__ __forceinline__ void add(int slot, const double (&weight)[1], V value)
    {
        add_to<PLAIN>(product, sums + slot, multiply<PLAIN>(product, weight[0], (double)value));
    }
};

/* Their columns lie within 32·words columns from `lowest` on. No probing. */
template <typename V, bool PLAIN> struct rank_table : known_sums<V, PLAIN> {
    uint2 *words;
    int32_t lowest;

    __device__ __forceinline__ void fill(const int32_t *cols, int count)
    {
        lowest = cols[0];
        rank_columns(cols, count, words);
        for (int i = threadIdx.x & 31; i < count; i += 32) this->sums[i] = this->none();
        __syncwarp();
    }
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int turn, int turns)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (entries.col[u] == EMPTY) continue;
            const int offset = entries.col[u] - lowest;
            const uint2 word = words[offset / 32];
            const uint32_t bit = 1u << offset % 32;
            slot[u] = (int)word.y + __popc(word.x & (bit - 1));
            if (!PLAIN && !(word.x & bit)) entries.col[u] = EMPTY; /* what the mask forbids */
        }
        add_in_turns<U>(*this, entries, slot, turn, turns);
    }
};

/* They lie anywhere: the columns as they are, sorted, and where those of each of `buckets` ranges of columns begin. A
 * column is looked for among the few of its bucket. */
template <typename V, bool PLAIN> struct sorted_table : known_sums<V, PLAIN> {
    int32_t *keys;
    uint16_t *first; /* buckets + 1 */
    int buckets, lowest, shift;

    __device__ __forceinline__ void fill(const int32_t *cols, int count)
    {
        const int lane = threadIdx.x & 31;
        lowest = cols[0];
        shift = max(0, __clz(buckets) + 1 - __clz(cols[count - 1] - lowest));
        for (int i = lane; i <= count; i += 32) {
            const int col = i < count ? cols[i] : 0, before = i > 0 ? (cols[i - 1] - lowest) >> shift : -1;
            const int bucket = i < count ? (col - lowest) >> shift : buckets;
            for (int b = before + 1; b <= bucket; b++) first[b] = (uint16_t)i;
            if (i == count) break;
            keys[i] = col;
            this->sums[i] = this->none();
        }
        __syncwarp();
    }
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int turn, int turns)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (entries.col[u] == EMPTY) continue;
            const uint32_t bucket = (uint32_t)(entries.col[u] - lowest) >> shift;
            int low = 0, high = 0;
            if (PLAIN || bucket < (uint32_t)buckets) {
                low = first[bucket];
                high = first[bucket + 1];
            }
            while (high - low > 1) {
                const int middle = (low + high) / 2;
                if (keys[middle] <= entries.col[u]) low = middle;
                else high = middle;
            }
            slot[u] = low;
            /* What the mask forbids. */
            if (!PLAIN && (low == high || keys[low] != entries.col[u])) entries.col[u] = EMPTY;
        }
        __syncwarp();
        add_in_turns<U>(*this, entries, slot, turn, turns);
    }
};

#endif
