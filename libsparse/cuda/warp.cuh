/* What a warp does with one row of C, or with a few short ones: forms the row's products and adds up those of the same
 * column. Two ways, by size:
 *
 *   small   <= 32 products: a lane a product, 1 to 4 rows a warp, sorted in registers;
 *   hashed  <= 1,024 entries of C, any number of products: a table in shared memory that is at most half full, its
 *           keys sorted in registers afterwards.
 *
 * Order of additions. Columns within a row of B are distinct, so lanes that hold one row of B add without atomics;
 * where a step of the warp holds several rows of B, lanes with the same column add one after another, in the order of
 * A's row. Every sum therefore sees its products in A's order, as on the CPU.
 *
 * Cost, in warp instructions for 32 products: some 40 for loading, hashing and adding where B's rows fill the lanes.
 * Sorting n keys takes log2(n)² / 2 steps of 2 or 3 instructions for every 32 of them, of which a third go through the
 * shuffle unit: 600 for 256 keys, 1,300 for 512. A table at 4/5 of its slots took 13 probes a step, the most of 32
 * lanes; at half it takes 4.
 */
#ifndef SPARSE_CUDA_WARP_CUH
#define SPARSE_CUDA_WARP_CUH

#include "common.cuh"

/* What the product is made of. PLAIN below is plus-times without a mask, for which nothing else is compiled in. */
template <typename V> struct row_product {
    matrix_view<V> a, b;
    int64_t cols;
    sp_semiring semiring;
    const int64_t *mask_offsets; /* NULL: no mask */
    const int32_t *mask_cols;
    bool complement;
};

static __device__ __forceinline__ unsigned lanes_below() { return (1u << (threadIdx.x & 31)) - 1; }

static __device__ __forceinline__ unsigned warp_max(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(FULL_WARP, value);
#else
    for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
#endif
}

static __device__ __forceinline__ int warp_sum(int value)
{
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
    return value;
}

static __host__ __device__ constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

/* ---- the semiring ---------------------------------------------------------------------------------------- */

template <bool PLAIN, typename V>
static __device__ __forceinline__ double multiply(const row_product<V> &product, double a, double b)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_MAX_TIMES) return __dmul_rn(a, b);
    return product.semiring == SP_MIN_PLUS ? __dadd_rn(a, b) : 1.0;
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ double combine(const row_product<V> &product, double sum, double more)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_PLUS_PAIR) return __dadd_rn(sum, more);
    if (product.semiring == SP_MIN_PLUS) return more < sum ? more : sum;
    return more > sum ? more : sum;
}

/* What a sum holds before its first product. -0 is what any number can be added to without changing its bits; for
 * other operations than the sum, all ones stands for "none", a NaN that no arithmetic makes. */
template <bool PLAIN> static __device__ __forceinline__ double no_sum()
{
    return PLAIN ? -0.0 : __longlong_as_double(-1ll);
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ void add_to(const row_product<V> &product, double *sum, double more)
{
    const double old = *sum;
    *sum = !PLAIN && __double2hiint(old) == -1 ? more : combine<PLAIN>(product, old, more);
}

/* Whether the mask lets this entry be. */
template <bool PLAIN, typename V>
static __device__ __forceinline__ bool allowed(const row_product<V> &product, int64_t row, int32_t col)
{
    if (PLAIN || !product.mask_offsets) return true;
    int64_t low = product.mask_offsets[row], high = product.mask_offsets[row + 1];
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (product.mask_cols[middle] < col) low = middle + 1;
        else high = middle;
    }
    return (low < end && product.mask_cols[low] == col) != product.complement;
}

/* ---- sorting in registers -------------------------------------------------------------------------------- */

template <typename Key> static __device__ __forceinline__ void order_pair(Key &a, Key &b)
{
    const Key low = min(a, b), high = max(a, b);
    a = low;
    b = high;
}

template <typename Key> static __device__ __forceinline__ Key keep(Key own, Key other, bool low)
{
    return (own < other) == low ? own : other;
}

/* Bitonic network over `lanes` lanes of K keys each; key i of lane l has place l·K + i. Every merge begins with the
 * mirrored half, so that all comparisons point the same way. */
template <int K, typename Key> static __device__ __forceinline__ void sort_keys(Key (&key)[K], int lanes)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int size = 2; size <= K; size *= 2) {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i < (i ^ (size - 1))) order_pair(key[i], key[i ^ (size - 1)]);
#pragma unroll
        for (int step = size / 4; step > 0; step /= 2)
#pragma unroll
            for (int i = 0; i < K; i++)
                if (i < (i ^ step)) order_pair(key[i], key[i ^ step]);
    }
#pragma unroll 1
    for (int size = 2; size <= lanes; size *= 2) {
        bool low = !(lane & (size / 2));
        if (K == 1) {
            key[0] = keep(key[0], __shfl_xor_sync(FULL_WARP, key[0], size - 1), low);
        } else {
#pragma unroll
            for (int i = 0; i < K / 2; i++) {
                const Key first = __shfl_xor_sync(FULL_WARP, key[K - 1 - i], size - 1);
                const Key second = __shfl_xor_sync(FULL_WARP, key[i], size - 1);
                key[i] = keep(key[i], first, low);
                key[K - 1 - i] = keep(key[K - 1 - i], second, low);
            }
        }
#pragma unroll 1
        for (int step = size / 4; step > 0; step /= 2) {
            low = !(lane & step);
#pragma unroll
            for (int i = 0; i < K; i++) key[i] = keep(key[i], __shfl_xor_sync(FULL_WARP, key[i], step), low);
        }
#pragma unroll
        for (int step = K / 2; step > 0; step /= 2)
#pragma unroll
            for (int i = 0; i < K; i++)
                if (i < (i ^ step)) order_pair(key[i], key[i ^ step]);
    }
}

/* ---- small rows: G lanes a row --------------------------------------------------------------------------- */

/* One row a group of G lanes, with at most G products and G elements of A; row < 0: none. Returns the row's entries in
 * every lane of the group; with SUM writes them to cols and values from `to` on. */
template <int G, typename Key, typename V, bool PLAIN, bool SUM>
static __device__ __forceinline__ int small_row(const row_product<V> &product, int64_t row, const int64_t *to,
                                                int32_t *cols, V *values)
{
    const int lane = threadIdx.x & 31, own = lane & (G - 1);
    int64_t start = 0;
    int length = 0;
    double weight = 1;
    if (row >= 0) {
        const int64_t at = product.a.offsets[row] + own;
        if (at < product.a.offsets[row + 1]) {
            const int32_t k = __ldg(product.a.cols + at);
            if (SUM && product.a.values) weight = (double)__ldg(product.a.values + at);
            start = __ldg(product.b.offsets + k);
            length = (int)(__ldg(product.b.offsets + k + 1) - start);
        }
    }
    int until = length;
#pragma unroll
    for (int step = 1; step < G; step *= 2) {
        const int before = __shfl_up_sync(FULL_WARP, until, step, G);
        if (own >= step) until += before;
    }
    const int products = __shfl_sync(FULL_WARP, until, G - 1, G);
    /* The lane's product belongs to the first element of A whose products end beyond it. */
    int element = 0;
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2)
        if (__shfl_sync(FULL_WARP, until, element + step - 1, G) <= own) element += step;
    start -= until - length; /* so that lane `own` finds its product at start + own */
    start = __shfl_sync(FULL_WARP, (long long)start, element, G);
    if (SUM) weight = __shfl_sync(FULL_WARP, weight, element, G);
    const bool active = own < products;
    int32_t col = 0;
    double term = 0;
    if (active) {
        col = __ldg(product.b.cols + start + own);
        if (SUM)
            term = multiply<PLAIN>(product, weight,
                                   product.b.values ? (double)__ldg(product.b.values + start + own) : 1.0);
    }
    Key key[1] = {active ? (Key)(uint32_t)col << log2_of(G) | (Key)own : ~Key(0)};
    sort_keys<1>(key, G);
    col = (int32_t)(key[0] >> log2_of(G));
    const int32_t previous = __shfl_up_sync(FULL_WARP, col, 1, G);
    const bool head = active && (own == 0 || previous != col);
    const bool kept = head && allowed<PLAIN>(product, row, col);
    const unsigned group = G == 32 ? FULL_WARP : ((1u << (G & 31)) - 1) << (lane & ~(G - 1));
    const unsigned heads = __ballot_sync(FULL_WARP, kept) & group;
    if (SUM) {
        term = __shfl_sync(FULL_WARP, term, (int)key[0] & (G - 1), G);
        double sum = term;
        for (int step = 1; step < G; step++) {
            const int32_t other = __shfl_down_sync(FULL_WARP, col, step, G);
            const double more = __shfl_down_sync(FULL_WARP, term, step, G);
            const bool joins = head && own + step < products && other == col;
            if (!__any_sync(FULL_WARP, joins)) break;
            if (joins) sum = combine<PLAIN>(product, sum, more);
        }
        if (kept) {
            const int64_t at = to[row] + __popc(heads & lanes_below());
            cols[at] = col;
            if (values) values[at] = (V)sum;
        }
    }
    return __popc(heads);
}

/* ---- the walk over the products of a row ----------------------------------------------------------------- */

/* A row of B and the element of A that it is multiplied by. */
struct __align__(8) row_of_b {
    int64_t start;
    double weight;
    int32_t length;
};

/* U entries a lane of one row of B, loaded ahead of their use. The product is formed when it is added: formed at once,
 * it would wait for the load. */
template <int U, typename V> struct entries_of_b {
    int32_t col[U]; /* EMPTY: none */
    V value[U];
    double weight;

    template <bool SUM>
    __device__ __forceinline__ void load(const row_product<V> &product, const row_of_b &b, int at)
    {
        weight = b.weight;
#pragma unroll
        for (int u = 0; u < U; u++) {
            col[u] = EMPTY;
            if (at + 32 * u >= b.length) continue;
            col[u] = __ldg(product.b.cols + b.start + at + 32 * u);
            if (SUM) value[u] = product.b.values ? __ldg(product.b.values + b.start + at + 32 * u) : V(1);
        }
    }
};

/* Rows of B one after another, U·32 entries a step, the next step loaded before the present one is taken. */
template <int U, typename V, typename Sink>
static __device__ __forceinline__ void walk_long(const row_product<V> &product, const row_of_b *rows, int count,
                                                 Sink &sink)
{
    const int lane = threadIdx.x & 31;
    int k = 0, at = lane;
    row_of_b b = rows[0];
    entries_of_b<U, V> next;
    next.template load<Sink::SUMS>(product, b, at);
    for (bool more = true; more;) {
        entries_of_b<U, V> now = next;
        at += 32 * U;
        if (at - lane >= b.length) {
            more = ++k < count;
            if (more) b = rows[k];
            at = lane;
        }
        if (more) next.template load<Sink::SUMS>(product, b, at);
        sink.template take<U>(now, true);
    }
}

/* Rows of B of at most 2^log entries, 32 >> log of them a step. */
template <typename V, typename Sink>
static __device__ __forceinline__ void walk_short(const row_product<V> &product, const row_of_b *rows, int count,
                                                  int log, Sink &sink)
{
    const int lane = threadIdx.x & 31, own = lane & ((1 << log) - 1), together = 32 >> log;
    const row_of_b none = {0, 0, 0};
    entries_of_b<1, V> next;
    next.template load<Sink::SUMS>(product, lane >> log < count ? rows[lane >> log] : none, own);
    for (int first = 0; first < count; first += together) {
        entries_of_b<1, V> now = next;
        const int k = first + together + (lane >> log);
        next.template load<Sink::SUMS>(product, k < count ? rows[k] : none, own);
        sink.template take<1>(now, false);
    }
}

static __device__ __forceinline__ int64_t lower_bound_of(const int32_t *cols, int64_t low, int64_t high, int64_t col)
{
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (__ldg(cols + middle) < col) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Narrows entries from..to of B, one row or part of it, to the columns in [low, high). */
static __device__ __forceinline__ void narrow(const int32_t *cols, int64_t low, int64_t high, int64_t *from, int64_t *to)
{
    if (*from < *to && __ldg(cols + *from) < low) *from = lower_bound_of(cols, *from, *to, low);
    if (*from < *to && __ldg(cols + *to - 1) >= high)
        *to = lower_bound_of(cols, *from, min(*to, *from + (high - low)), high);
}

/* The products of a row into the sink, those of columns in [low, high) if PART: 32 elements of A at a time, empty rows
 * of B dropped. `rows`: 32 of the warp's own in shared memory. */
template <bool PART, typename V, typename Sink>
static __device__ __forceinline__ void walk_row(const row_product<V> &product, int64_t row, int64_t low, int64_t high,
                                                row_of_b *rows, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    const int64_t last = product.a.offsets[row + 1];
    for (int64_t base = product.a.offsets[row]; base < last; base += 32) {
        row_of_b b = {0, 1, 0};
        if (base + lane < last) {
            const int32_t k = __ldg(product.a.cols + base + lane);
            if (Sink::SUMS && product.a.values) b.weight = (double)__ldg(product.a.values + base + lane);
            int64_t to = __ldg(product.b.offsets + k + 1);
            b.start = __ldg(product.b.offsets + k);
            if (PART) narrow(product.b.cols, low, high, &b.start, &to);
            b.length = (int32_t)(to - b.start);
        }
        const unsigned filled = __ballot_sync(FULL_WARP, b.length > 0);
        if (b.length > 0) rows[__popc(filled & lanes_below())] = b;
        const int count = __popc(filled), longest = (int)warp_max((unsigned)b.length);
        __syncwarp();
        if (longest > 64) walk_long<4>(product, rows, count, sink);
        else if (longest > 32) walk_long<2>(product, rows, count, sink);
        else if (longest > 16) walk_long<1>(product, rows, count, sink);
        else if (longest > 0) walk_short(product, rows, count, longest == 1 ? 0 : 32 - __clz(longest - 1), sink);
        __syncwarp();
    }
}

/* ---- hashed rows: the table ------------------------------------------------------------------------------ */

/* Columns and, with SUM, their sums in shared memory; 2^(32 - shift) slots, of which at most half are used. */
template <typename V, bool PLAIN, bool SUM> struct warp_table {
    static constexpr bool SUMS = SUM;
    const row_product<V> &product;
    int64_t row; /* that is in the table */
    int32_t *keys;
    double *sums;
    int shift, claimed; /* claimed: new columns, by this lane */

    __device__ __forceinline__ int slots() const { return (int)(0xffffffffu >> shift) + 1; }
    __device__ __forceinline__ int home(int32_t col) const { return (int)((uint32_t)col * 0x9e3779b1u >> shift); }
    __device__ __forceinline__ int after(int slot) const { return (slot + 1) & (int)(0xffffffffu >> shift); }

    __device__ __forceinline__ void clear(int64_t new_row)
    {
        const int lane = threadIdx.x & 31;
        const double none = no_sum<PLAIN>();
        row = new_row;
        claimed = 0;
        for (int i = lane; i < slots() / 4; i += 32) ((int4 *)keys)[i] = make_int4(EMPTY, EMPTY, EMPTY, EMPTY);
        if (SUM)
            for (int i = lane; i < slots() / 2; i += 32) ((double2 *)sums)[i] = make_double2(none, none);
        __syncwarp();
    }
    /* The slots of U columns a lane, EMPTY for none, claimed for those that have none yet. The whole warp probes
     * together until all have found theirs: lanes that leave the loop one by one would go on apart, and add apart. */
    template <int U> __device__ __forceinline__ void find(const int32_t (&col)[U], int (&slot)[U])
    {
        bool pending[U];
        int32_t key[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            slot[u] = home(col[u]);
            key[u] = *(volatile int32_t *)(keys + slot[u]);
        }
        bool any = false;
#pragma unroll
        for (int u = 0; u < U; u++) {
            pending[u] = col[u] != EMPTY && key[u] != col[u];
            if (pending[u] && key[u] != EMPTY) slot[u] = after(slot[u]);
            any = any || pending[u];
        }
        while (__any_sync(FULL_WARP, any)) {
            any = false;
#pragma unroll
            for (int u = 0; u < U; u++) {
                if (!pending[u]) continue;
                const int32_t old = atomicCAS(keys + slot[u], EMPTY, col[u]);
                claimed += old == EMPTY;
                pending[u] = old != EMPTY && old != col[u];
                if (pending[u]) slot[u] = after(slot[u]);
                any = any || pending[u];
            }
        }
    }
    /* Adds U products a lane; `distinct`: no two of the warp have the same column. */
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, V> &entries, bool distinct)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (!PLAIN && entries.col[u] != EMPTY && !allowed<PLAIN>(product, row, entries.col[u]))
                entries.col[u] = EMPTY;
        find<U>(entries.col, slot);
        if (!SUM) return;
        if (distinct) {
#pragma unroll
            for (int u = 0; u < U; u++)
                if (entries.col[u] != EMPTY) add(slot[u], entries.weight, entries.value[u]);
        } else {
            const unsigned same = __match_any_sync(FULL_WARP, entries.col[0]);
            const unsigned turn = entries.col[0] == EMPTY ? 0 : __popc(same & lanes_below());
            const unsigned turns = warp_max(turn);
            for (unsigned t = 0; t <= turns; t++) {
                if (turn == t && entries.col[0] != EMPTY) add(slot[0], entries.weight, entries.value[0]);
                __syncwarp();
            }
        }
        __syncwarp();
    }
    __device__ __forceinline__ void add(int slot, double weight, V value)
    {
        add_to<PLAIN>(product, sums + slot, multiply<PLAIN>(product, weight, (double)value));
    }
    /* Moves the entries to the front, in place; returns their number. */
    __device__ __forceinline__ int compact()
    {
        int count = 0;
        for (int at = threadIdx.x & 31; at < slots(); at += 32) {
            const int32_t col = keys[at];
            const double sum = sums[at];
            const unsigned keepers = __ballot_sync(FULL_WARP, col != EMPTY);
            if (col != EMPTY) {
                const int place = count + __popc(keepers & lanes_below());
                keys[place] = col;
                sums[place] = sum;
            }
            count += __popc(keepers);
            __syncwarp();
        }
        return count;
    }
};

/* ---- hashed rows: sorting -------------------------------------------------------------------------------- */

/* Where entry `place` of a sorted row lies: K consecutive places, one lane's, in as many banks. */
static __device__ __forceinline__ int swizzled(int place, int spread) { return place ^ (place >> 5 & spread); }

/* Sorts `count` <= 32·K entries, which lie at the front of the table, and leaves them swizzled with K - 1. Keys hold
 * the column above the entry's place. */
template <int K, typename Key>
static __device__ __forceinline__ void sort_entries(int32_t *cols, double *sums, int count)
{
    constexpr int bits = 5 + log2_of(K);
    const int lane = threadIdx.x & 31;
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) {
        const int at = i * 32 + lane;
        key[i] = at < count ? (Key)(uint32_t)cols[at] << bits | (Key)at : ~Key(0);
    }
    sort_keys<K>(key, 32);
    double sum[K];
#pragma unroll
    for (int i = 0; i < K; i++)
        if (lane * K + i < count) sum[i] = sums[(int)key[i] & (32 * K - 1)];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < K; i++) {
        const int place = lane * K + i;
        if (place >= count) continue;
        const int at = swizzled(place, K - 1);
        cols[at] = (int32_t)(key[i] >> bits);
        sums[at] = sum[i];
    }
    __syncwarp();
}

/* Sorts with the smallest network of at most 32·MOST keys and writes the entries. */
template <int MOST, typename V>
static __device__ __forceinline__ void write_sorted(int64_t columns, int32_t *cols, double *sums, int count,
                                                    int32_t *to_cols, V *to_values)
{
    int spread = 0; /* K - 1 */
    while (32 * (spread + 1) < count) spread = 2 * spread + 1;
    const bool narrow = columns <= (int64_t)1 << (27 - __popc((unsigned)spread));
#define SORT(K)                                                                    \
    if (K <= MOST && spread == K - 1) {                                            \
        if (narrow) sort_entries<K <= MOST ? K : 1, uint32_t>(cols, sums, count);  \
        else sort_entries<K <= MOST ? K : 1, unsigned long long>(cols, sums, count); \
    }
    SORT(1) SORT(2) SORT(4) SORT(8) SORT(16) SORT(32)
#undef SORT
    for (int i = threadIdx.x & 31; i < count; i += 32) {
        const int at = swizzled(i, spread);
        to_cols[i] = cols[at];
        if (to_values) to_values[i] = (V)sums[at];
    }
    __syncwarp();
}

#endif
