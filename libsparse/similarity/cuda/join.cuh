/* A row of a similarity join, C = A·B with only the entries that are kept, by one block.
 *
 * The block sums the row in windows of columns: a window of up to `window` columns has a sum a column in shared memory,
 * a wider one a hash table. Threads share the entries of a row of B, and a barrier stands between two of them, so sums
 * run over A's row in ascending order, as on the CPU. Sums of a window that can still be kept go to a list. When the
 * list is full it is cut to the k largest, by digits of 8 bits of values and then of columns, and the least of these is
 * what later sums are compared with; where all are kept, the list is written out. So the product is never in memory.
 *
 * A product costs 4 + v bytes of B, from the second-level cache if B fits, and a read and a write in shared memory. */
#ifndef SPARSE_CUDA_JOIN_CUH
#define SPARSE_CUDA_JOIN_CUH

#include "base/search.h"
#include "device/common.cuh"
#include "device/keys.cuh"

enum { DIGIT = 8, BINS = 1 << DIGIT };

/* What blocks look like that take rows of many products, or of few. A table is at most half full. */
struct many_products {
    static constexpr int THREADS = 256, SLOTS = 2048, LISTED = 1024, ROUND = 2 * THREADS;
};
struct few_products {
    static constexpr int THREADS = 64, SLOTS = 2048, LISTED = 512, ROUND = 4 * THREADS;
};
constexpr int FEW = few_products::SLOTS / 2;

/* The join, as all blocks see it. */
template <typename V> struct similarity_join {
    matrix_view<V> a, b;
    const double *factors; /* of A's rows, or NULL */
    int64_t cols, k;       /* k: 0 for all */
    double threshold;
    bool skip_self;
    int window; /* columns of a window with a sum a column */
};

/* Rows of one shape, and where their entries go: those of row i from slots[i] on, in any order. */
template <typename V> struct joined_rows {
    const int32_t *list;
    int count;
    int *next; /* of the list that no block has taken */
    const int64_t *products, *slots;
    int64_t base; /* the slot of the first entry of `cols` and `values` */
    int32_t *cols, *counts;
    V *values;
    double *spare_values; /* lists of `spare` entries, one a block, where k entries need more than LISTED; or NULL */
    int32_t *spare_cols;
    int64_t spare;
};

/* The shared memory of a block; the sums of a window follow it. The sums are 0 between windows. A table has its sums in
 * the first SLOTS of them. */
template <typename S> struct join_memory {
    double listed_values[S::LISTED];
    double weight[S::THREADS];
    int64_t begin[S::THREADS]; /* of a row of B, in the window */
    uint64_t scratch[32];
    int32_t listed_cols[S::LISTED];
    int32_t keys[S::SLOTS];
    int32_t length[S::THREADS];
    uint32_t bins[BINS];
    int64_t left;
    uint32_t digit;
    int listed, place;
    bool exact;
};

template <typename V, typename S> struct row_join {
    static constexpr int THREADS = S::THREADS;
    const similarity_join<V> &job;
    const joined_rows<V> &out;
    join_memory<S> &memory;
    double *sums;
    int64_t row, first, end; /* A's entries of the row */
    double *list_values;
    int32_t *list_cols;
    int64_t capacity, written;
    bool selects;
    uint64_t least_key; /* what is smaller, or equal and further right, is not kept */
    uint32_t least_place;

    /* ---- the list ---------------------------------------------------------------------------------------- */

    /* Columns in falling order, for digits. */
    static __device__ __forceinline__ uint32_t place_of(int32_t col) { return ~(uint32_t)col; }

    /* The `left` largest of the keys of the list that take part: *prefix gets the digits of the least of them, as many
     * as tell it from all others, and then it returns true; false if keys are equal to it that are too many. */
    template <typename K, typename Key, typename Takes>
    __device__ bool find_least(Key key, Takes takes, K *prefix)
    {
        *prefix = 0;
        for (int shift = 8 * (int)sizeof(K) - DIGIT; shift >= 0; shift -= DIGIT) {
            const K known = shift + DIGIT < 8 * (int)sizeof(K) ? ~(K)0 << (shift + DIGIT) : 0;
            for (int i = threadIdx.x; i < BINS; i += THREADS) memory.bins[i] = 0;
            __syncthreads();
            for (int i = threadIdx.x; i < memory.listed; i += THREADS)
                if (takes(i) && (key(i) & known) == *prefix) atomicAdd(&memory.bins[key(i) >> shift & (BINS - 1)], 1u);
            __syncthreads();
            if (threadIdx.x < 32) choose_digit();
            __syncthreads();
            *prefix |= (K)memory.digit << shift;
            if (memory.exact) return true;
        }
        return false;
    }

    /* Finds the bin that holds the last of the `left` largest. One warp; each lane has 8 bins, the largest first. */
    __device__ void choose_digit()
    {
        const int lane = (int)threadIdx.x, top = BINS - 1 - 8 * lane;
        const int64_t left = memory.left;
        int own = 0, total;
        for (int i = 0; i < 8; i++) own += (int)memory.bins[top - i];
        int64_t before = scan_lanes(own, &total);
        __syncwarp();
        for (int i = 0; i < 8; i++) {
            const int64_t count = memory.bins[top - i];
            if (before < left && left <= before + count) {
                memory.digit = (uint32_t)(top - i);
                memory.left = left - before;
                memory.exact = left - before == count;
            }
            before += count;
        }
    }

    /* Cuts the list, of at least k entries, to the k that go before all others. */
    __device__ void cut()
    {
        uint64_t least;
        uint32_t last = 0;
        if (threadIdx.x == 0) memory.left = job.k;
        __syncthreads();
        const auto value_key = [&](int i) { return key_of(list_values[i]); };
        if (!find_least<uint64_t>(value_key, [](int) { return true; }, &least))
            find_least<uint32_t>([&](int i) { return place_of(list_cols[i]); },
                                 [&](int i) { return value_key(i) == least; }, &last);
        least_key = least;
        least_place = last;
        const int listed = memory.listed;
        __syncthreads();
        if (threadIdx.x == 0) memory.listed = 0;
        for (int base = 0; base < listed; base += THREADS) { /* nothing is written above what has been read */
            const int i = base + (int)threadIdx.x;
            const double value = i < listed ? list_values[i] : 0;
            const int32_t col = i < listed ? list_cols[i] : 0;
            __syncthreads();
            append(i < listed && may_stay(value, col), value, col);
            __syncthreads();
        }
    }

    __device__ __forceinline__ bool may_stay(double value, int32_t col) const
    {
        const uint64_t key = key_of(value);
        return key > least_key || (key == least_key && place_of(col) >= least_place);
    }

    /* All threads of a warp call it. */
    __device__ __forceinline__ void append(bool stays, double value, int32_t col)
    {
        const unsigned those = __ballot_sync(FULL_WARP, stays);
        int at = 0;
        if (those == 0) return;
        if (threadIdx.x % 32 == 0) at = atomicAdd(&memory.listed, __popc(those));
        at = __shfl_sync(FULL_WARP, at, 0) + __popc(those & lanes_below());
        if (!stays) return;
        list_values[at] = value;
        list_cols[at] = col;
    }

    /* Writes the list to C's slots. */
    __device__ void write_out()
    {
        const int64_t to = out.slots[row] - out.base + written;
        const int listed = memory.listed;
        for (int i = threadIdx.x; i < listed; i += THREADS) {
            out.cols[to + i] = list_cols[i];
            out.values[to + i] = (V)list_values[i];
        }
        written += listed;
        __syncthreads();
        if (threadIdx.x == 0) memory.listed = 0;
        __syncthreads();
    }

    /* Lists those of the window's sums that can be kept, and leaves the sums 0. */
    template <typename Column> __device__ void compare(int count, Column column)
    {
        for (int base = 0; base < count; base += S::ROUND) {
            if (memory.listed + S::ROUND > capacity) {
                if (selects) cut();
                else write_out();
            }
            __syncthreads();
            for (int i = base + (int)threadIdx.x; i < base + S::ROUND; i += THREADS) {
                const double value = i < count ? sums[i] : 0;
                const int32_t col = value != 0 ? column(i) : 0;
                if (i < count) sums[i] = 0;
                append(value != 0 && value >= job.threshold && !(job.skip_self && col == row) &&
                           (!selects || may_stay(value, col)),
                       value, col);
            }
            __syncthreads();
        }
    }

    /* ---- sums -------------------------------------------------------------------------------------------- */

    /* The entries of B that one of A meets in a window. `cursor` is where the last window ended, if A's row has not
     * more entries than the block has threads. */
    __device__ __forceinline__ void find_range(int64_t entry, int64_t low, int64_t high, int64_t cursor,
                                               int64_t *begin, int64_t *stop) const
    {
        const int32_t j = job.a.cols[entry];
        *begin = job.b.offsets[j], *stop = job.b.offsets[j + 1];
        if (low > 0)
            *begin = end - first <= THREADS ? cursor : lower_bound_i32(job.b.cols, *begin, *stop, (int32_t)low);
        if (high < job.cols) *stop = lower_bound_i32(job.b.cols, *begin, *stop, (int32_t)high);
    }

    /* The number of products of a window; all threads get it. */
    __device__ int64_t count_products(int64_t low, int64_t high, int64_t cursor)
    {
        int64_t count = 0, begin, stop;
        for (int64_t entry = first + threadIdx.x; entry < end; entry += THREADS) {
            find_range(entry, low, high, cursor, &begin, &stop);
            count += stop - begin;
        }
        return block_reduce<THREADS>(count, add_op{}, memory.scratch);
    }

    /* Calls add(column, product) for all products of a window, entry by entry of A's row. */
    template <typename Add> __device__ void for_products(int64_t low, int64_t high, int64_t *cursor, Add add)
    {
        const double factor = job.factors ? job.factors[row] : 1;
        for (int64_t tile = first; tile < end; tile += THREADS) {
            const int count = (int)min((int64_t)THREADS, end - tile);
            __syncthreads();
            if ((int)threadIdx.x < count) {
                int64_t begin, stop;
                find_range(tile + threadIdx.x, low, high, *cursor, &begin, &stop);
                *cursor = stop;
                memory.begin[threadIdx.x] = begin;
                memory.length[threadIdx.x] = (int32_t)(stop - begin);
                memory.weight[threadIdx.x] =
                    __dmul_rn(factor, job.a.values ? (double)job.a.values[tile + threadIdx.x] : 1);
            }
            __syncthreads();
            /* A thread loads its first entry of the next row of B before it waits for the others. */
            int32_t col = -1, next_col;
            V value = 0, next_value = 0;
            const auto load = [&](int e, int32_t *to_col, V *to_value) {
                *to_col = -1;
                if (e >= count || (int)threadIdx.x >= memory.length[e]) return;
                *to_col = __ldg(job.b.cols + memory.begin[e] + threadIdx.x);
                *to_value = __ldg(job.b.values + memory.begin[e] + threadIdx.x);
            };
            load(0, &col, &value);
            for (int e = 0; e < count; e++) {
                const int length = memory.length[e];
                const int64_t begin = memory.begin[e];
                const double weight = memory.weight[e];
                load(e + 1, &next_col, &next_value);
                if (col >= 0) add(col, __dmul_rn(weight, (double)value));
                for (int i = (int)threadIdx.x + THREADS; i < length; i += THREADS)
                    add(__ldg(job.b.cols + begin + i), __dmul_rn(weight, (double)__ldg(job.b.values + begin + i)));
                if (length > 0) __syncthreads();
                col = next_col, value = next_value;
            }
        }
        __syncthreads();
    }

    __device__ void dense_window(int64_t low, int64_t high, int64_t *cursor)
    {
        for_products(low, high, cursor, [&](int32_t col, double product) {
            double *sum = sums + (col - low);
            *sum = __dadd_rn(*sum, product);
        });
        compare((int)(high - low), [&](int i) { return (int32_t)(low + i); });
    }

    /* Threads insert the columns of one row of B at a time, which differ, so each sum has one writer. */
    __device__ void table_window(int64_t low, int64_t high, int64_t products, int64_t *cursor)
    {
        int bits = 6;
        while (1 << bits < 2 * products) bits++;
        const int slots = 1 << bits;
        for (int i = threadIdx.x; i < slots; i += THREADS) memory.keys[i] = EMPTY;
        for_products(low, high, cursor, [&](int32_t col, double product) {
            uint32_t at = scrambled(col) >> (32 - bits);
            for (;; at = (at + 1) & (uint32_t)(slots - 1)) {
                const int32_t held = atomicCAS(memory.keys + at, EMPTY, col);
                if (held == EMPTY || held == col) break;
            }
            sums[at] = __dadd_rn(sums[at], product);
        });
        compare(slots, [&](int i) { return memory.keys[i]; });
    }

    /* ---- the row ------------------------------------------------------------------------------------------ */

    __device__ void join(int block)
    {
        const int64_t products = out.products[row];
        selects = job.k > 0 && job.k < min(products, job.cols);
        const bool is_spare = selects && job.k + S::ROUND > S::LISTED;
        list_values = is_spare ? out.spare_values + block * out.spare : memory.listed_values;
        list_cols = is_spare ? out.spare_cols + block * out.spare : memory.listed_cols;
        capacity = is_spare ? out.spare : S::LISTED;
        written = 0, least_key = 0, least_place = 0;
        if (threadIdx.x == 0) memory.listed = 0;
        __syncthreads();
        sum_windows(products);
        if (selects && memory.listed > job.k) cut();
        write_out();
        if (threadIdx.x == 0) out.counts[row] = (int32_t)written;
    }

    /* Tables are made for a quarter of their slots, in the mean; where columns lie closer, windows are halved. */
    __device__ void sum_windows(int64_t products)
    {
        int64_t cursor = 0, width = job.window;
        if (products <= S::SLOTS / 2) width = job.cols;
        else if ((double)job.cols * (S::SLOTS / 4) > (double)products * job.window)
            width = (int64_t)((double)job.cols * (S::SLOTS / 4) / (double)products);
        for (int64_t low = 0, high; low < job.cols; low = high) {
            int64_t wide = width, count = products;
            for (;; wide = max(wide / 2, (int64_t)job.window)) {
                high = min(low + wide, job.cols);
                if (high - low <= job.window) break;
                if (products > S::SLOTS / 2) count = count_products(low, high, cursor);
                if (count <= S::SLOTS / 2) break;
            }
            if (high - low <= job.window) dense_window(low, high, &cursor);
            else table_window(low, high, count, &cursor);
        }
    }
};

/* Blocks take rows one by one. */
template <typename V, typename S>
static __global__ void __launch_bounds__(S::THREADS) join_rows(similarity_join<V> job, joined_rows<V> out)
{
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    join_memory<S> &memory = *(join_memory<S> *)shared_bytes;
    double *sums = (double *)(shared_bytes + sizeof(join_memory<S>));
    const int kept_zero = max(job.window, S::SLOTS);
    for (int i = threadIdx.x; i < kept_zero; i += S::THREADS) sums[i] = 0;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) memory.place = atomicAdd(out.next, 1);
        __syncthreads();
        if (memory.place >= out.count) return;
        const int64_t row = out.list[memory.place];
        row_join<V, S> taken{job, out, memory, sums, row, job.a.offsets[row], job.a.offsets[row + 1]};
        taken.join((int)blockIdx.x);
    }
}

template <typename S> static inline size_t join_shared(int window)
{
    return sizeof(join_memory<S>) + (size_t)(window > S::SLOTS ? window : S::SLOTS) * sizeof(double);
}

#endif
