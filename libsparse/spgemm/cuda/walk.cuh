/* The products of a row of C: what they are made of, how two values are multiplied and added by a semiring, what a mask
 * allows, and how a warp hands them to a sink, in the order in which sums see them.
 *
 * Columns within a row of B are distinct, so lanes that hold one row of B add without atomics; where a step of the
 * warp holds several rows of B, lanes with the same column add one after another, in the order of A's row. Every sum
 * therefore sees its products in A's order, as on the CPU.
 *
 * Cost, in warp instructions for 32 products: some 40 for loading, hashing and adding where B's rows fill the lanes.
 */
#ifndef SPARSE_SPGEMM_WALK_CUH
#define SPARSE_SPGEMM_WALK_CUH

#include <type_traits>

#include "base/search.h"
#include "device/common.cuh"

/* ---- operands and semirings ------------------------------------------------------------------------------ */

/* Where the entries of each bucket of columns begin in rows of B of LEAST_INDEXED entries or more: entry i of row k's
 * part, which starts at offsets[k] / 4 + k, is the row's first entry with a column of i << shift or more. A row of n
 * entries has 2^(floor(log2 n) - 2) buckets, 4 to 8 entries a bucket where columns are spread evenly. 1 byte an entry
 * of B. */
struct bucket_index {
    const uint32_t *first; /* NULL: none */
    int bits;              /* columns are below 2^bits */
};
enum { LEAST_INDEXED = 16 };

static __device__ __forceinline__ int bucket_shift(const bucket_index &index, int32_t length)
{
    return index.bits - (29 - __clz(length));
}

/* What the product is made of. PLAIN below is plus-times of matrices with values, without a mask and with fewer than
 * 2^32 entries in B, for which nothing else is compiled in. */
template <typename V> struct product_view {
    matrix_view<V> a, b;
    int64_t cols;
    sp_semiring semiring;
    const int64_t *mask_offsets; /* NULL: no mask */
    const int32_t *mask_cols;
    bool complement;
    bucket_index index;     /* of B */
    /* which rows of B, where it is A, have the columns of the row before; NULL: not known */
    const uint8_t *repeats = nullptr;
};

template <bool PLAIN, typename V>
static __device__ __forceinline__ double multiply(const product_view<V> &product, double a, double b)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_MAX_TIMES) return __dmul_rn(a, b);
    return product.semiring == SP_MIN_PLUS ? __dadd_rn(a, b) : 1.0;
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ double combine(const product_view<V> &product, double sum, double more)
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
static __device__ __forceinline__ void add_to(const product_view<V> &product, double *sum, double more)
{
    const double old = *sum;
    *sum = !PLAIN && __double2hiint(old) == -1 ? more : combine<PLAIN>(product, old, more);
}

/* Whether the mask lets this entry be. */
template <bool PLAIN, typename V>
static __device__ __forceinline__ bool allowed(const product_view<V> &product, int64_t row, int32_t col)
{
    if (PLAIN || !product.mask_offsets) return true;
    const int64_t end = product.mask_offsets[row + 1];
    const int64_t at = lower_bound_i32(product.mask_cols, product.mask_offsets[row], end, col);
    return (at < end && product.mask_cols[at] == col) != product.complement;
}

/* ---- walks ----------------------------------------------------------------------------------------------- */

/* A row of B and the elements of A, in ROWS rows of the same columns, that it is multiplied by. */
template <bool PLAIN, int ROWS> struct alignas(PLAIN && ROWS == 1 ? 16 : 8) row_of_b {
    using place = std::conditional_t<PLAIN, uint32_t, int64_t>;
    double weight[ROWS];
    place start;
    int32_t length;
};

/* U entries a lane, loaded ahead of their use. The product is formed when it is added: formed at once, it would wait
 * for the load. */
template <int U, int ROWS, typename V> struct entries_of_b {
    int32_t col[U]; /* EMPTY: none */
    V value[U];
    double weight[ROWS];

    template <bool PLAIN, bool SUM, typename Place>
    __device__ __forceinline__ void load(const product_view<V> &product, int u, bool active, Place at)
    {
        col[u] = EMPTY;
        if (!active) return;
        col[u] = __ldg(product.b.cols + at);
        if (SUM) value[u] = PLAIN || product.b.values ? __ldg(product.b.values + at) : V(1);
    }
};

/* Rows of B one after another, U·32 entries a step, the next step loaded before the present one is taken. */
template <int U, bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_long(const product_view<V> &product,
                                                 const row_of_b<PLAIN, Sink::ROWS> *rows, int count, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    int k = 0;
    uint32_t at = lane; /* a row may hold close to 2^31 entries */
    row_of_b<PLAIN, Sink::ROWS> b = rows[0];
    entries_of_b<U, Sink::ROWS, V> next;
    auto load = [&] {
        for (int r = 0; r < Sink::ROWS; r++) next.weight[r] = b.weight[r];
#pragma unroll
        for (int u = 0; u < U; u++)
            next.template load<PLAIN, Sink::SUMS>(product, u, at + 32 * u < (uint32_t)b.length,
                                                  b.start + at + 32 * u);
    };
    load();
    for (bool more = true; more;) {
        entries_of_b<U, Sink::ROWS, V> now = next;
        at += 32 * U;
        if (at - lane >= (uint32_t)b.length) {
            more = ++k < count;
            if (more) b = rows[k];
            at = lane;
        }
        if (more) load();
        sink.template take<U>(now, 0, 1);
    }
}

/* The products of `count` rows of B as one sequence, 32 of them a step, for rows too short to fill the lanes. Each
 * lane stands for a row as well, the k-th row that is not empty for the k-th such lane: `before` products come before
 * the row's own `length`. Rows hold where they would begin if the sequence began at 0. */
template <bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_flat(const product_view<V> &product,
                                                 const row_of_b<PLAIN, Sink::ROWS> *rows, int before, int length,
                                                 int total, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    int row = -1; /* the last that has begun */
    unsigned begun;
    entries_of_b<1, Sink::ROWS, V> next;
    auto load = [&](int base) {
        const int begins = before - base;
        begun = warp_or(length > 0 && (unsigned)begins < 32 ? 1u << begins : 0);
        const row_of_b<PLAIN, Sink::ROWS> b = rows[max(row + __popc(begun & (lanes_below() * 2 + 1)), 0)];
        row += __popc(begun);
        for (int r = 0; r < Sink::ROWS; r++) next.weight[r] = b.weight[r];
        next.template load<PLAIN, Sink::SUMS>(product, 0, base + lane < total, b.start + base + lane);
    };
    load(0);
    for (int base = 0; base < total; base += 32) {
        entries_of_b<1, Sink::ROWS, V> now = next;
        const int turn = __popc(begun & lanes_below() * 2), turns = 1 + __popc(begun & ~1u);
        if (base + 32 < total) load(base + 32);
        sink.template take<1>(now, turn, turns);
    }
}

/* Narrows entries from..to of B, row k, to the columns in [low, high). Both ends are looked for at once. */
template <typename V>
static __device__ __forceinline__ void narrow(const product_view<V> &product, int32_t k, int64_t low, int64_t high,
                                              int64_t *from, int64_t *to)
{
    const int32_t *cols = product.b.cols + *from;
    const uint32_t length = (uint32_t)(*to - *from);
    uint32_t start = 0, start_end = length, end = 0, end_end = length;
    if (product.index.first && length >= LEAST_INDEXED) {
        const uint32_t *first = product.index.first + *from / 4 + k;
        const int shift = bucket_shift(product.index, (int32_t)length);
        const uint32_t *lowest = first + (low >> shift), *highest = first + ((high - 1) >> shift);
        start = __ldg(lowest);
        start_end = __ldg(lowest + 1);
        end = __ldg(highest);
        end_end = __ldg(highest + 1);
    }
    while (start < start_end || end < end_end) {
        const uint32_t middle = (start + start_end) / 2, other = (end + end_end) / 2;
        const bool looks = start < start_end, looks_too = end < end_end;
        const int32_t col = looks ? __ldg(cols + middle) : 0, last = looks_too ? __ldg(cols + other) : 0;
        if (looks && col < low) start = middle + 1;
        else if (looks) start_end = middle;
        if (looks_too && last < high) end = other + 1;
        else if (looks_too) end_end = other;
    }
    *to = *from + end;
    *from += start;
}

/* The products of a row of B a lane, which begins at `from`, one row after another or as one sequence. */
template <bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_rows(const product_view<V> &product, row_of_b<PLAIN, Sink::ROWS> b,
                                                 int64_t from, row_of_b<PLAIN, Sink::ROWS> *rows, Sink &sink)
{
    const int length = b.length;
    const unsigned filled = __ballot_sync(FULL_WARP, length > 0);
    const int count = __popc(filled), place = __popc(filled & lanes_below());
    /* Cut off so that 32 lengths fit: only their mean is asked for when they are long. */
    const int all = (int)warp_add((unsigned)min(length, 1 << 25));
    if (all <= 24 * count) {
        const int before = sum_until(length) - length;
        b.start = (decltype(b.start))(from - before);
        if (length > 0) rows[place] = b;
        __syncwarp();
        walk_flat<PLAIN>(product, rows, before, length, all, sink);
    } else {
        b.start = (decltype(b.start))from;
        if (length > 0) rows[place] = b;
        __syncwarp();
        if (all > 64 * count) walk_long<4, PLAIN>(product, rows, count, sink);
        else if (all > 32 * count) walk_long<2, PLAIN>(product, rows, count, sink);
        else walk_long<1, PLAIN>(product, rows, count, sink);
    }
    __syncwarp();
}

/* The products of a row, or of Sink::ROWS rows of the same columns, into the sink; with PART those of columns in
 * [low, high). 32 elements of A at a time, empty rows of B dropped. `rows`: 32 of the warp's own in shared memory. */
template <bool PART, bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_row(const product_view<V> &product, int64_t row, int64_t low, int64_t high,
                                                row_of_b<PLAIN, Sink::ROWS> *rows, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    const int64_t begin = product.a.offsets[row], last = product.a.offsets[row + 1];
    /* With PART columns are read two steps ahead and the ends of rows of B one: searching these takes its time. */
    int32_t next = -1, after = -1; /* columns of A */
    int64_t next_from = 0, next_to = 0;
    auto read_ahead = [&](int64_t at) {
        next = after;
        next_from = next < 0 ? 0 : __ldg(product.b.offsets + next);
        next_to = next < 0 ? 0 : __ldg(product.b.offsets + next + 1);
        after = at + lane < last ? __ldg(product.a.cols + at + lane) : -1;
    };
    if (PART) {
        read_ahead(begin);
        read_ahead(begin + 32);
    }
    for (int64_t base = begin; base < last; base += 32) {
        row_of_b<PLAIN, Sink::ROWS> b;
        int64_t from = next_from, to = next_to;
        const int32_t searched = next;
        if (PART) read_ahead(base + 64);
        for (int r = 0; r < Sink::ROWS; r++) b.weight[r] = 1;
        if (base + lane < last) {
            const int32_t k = PART ? searched : __ldg(product.a.cols + base + lane);
            if (Sink::SUMS && (PLAIN || product.a.values))
                for (int r = 0; r < Sink::ROWS; r++)
                    b.weight[r] = (double)__ldg(product.a.values + base + lane + r * (last - begin));
            if (PART) {
                narrow(product, k, low, high, &from, &to);
            } else if (Sink::SUMS || !product.repeats || lane == 0 || !__ldg(product.repeats + k) ||
                       __ldg(product.a.cols + base + lane - 1) != k - 1) {
                from = __ldg(product.b.offsets + k);
                to = __ldg(product.b.offsets + k + 1);
            } /* otherwise the row adds no column to those of the row before */
        }
        b.length = (int)(to - from);
        walk_rows(product, b, from, rows, sink);
    }
}

/* ---- adding in order ------------------------------------------------------------------------------------- */

/* Finding out which lanes have the same column takes as long as this number of turns. */
enum { FEW_TURNS = 4 };

/* Adds U products a lane to the table's sums, those of a lane in its turn of so many: lanes of the same turn have
 * distinct columns. */
template <int U, typename Table, typename Entries>
static __device__ __forceinline__ void add_in_turns(Table &table, const Entries &entries, const int (&slot)[U],
                                                    int turn, int turns)
{
    if (U == 1 && turns > FEW_TURNS) {
        const unsigned same = __match_any_sync(FULL_WARP, entries.col[0]);
        turn = entries.col[0] == EMPTY ? 0 : __popc(same & lanes_below());
        turns = (int)warp_max((unsigned)turn) + 1;
    }
    for (int t = 0; t < turns; t++) {
        if (turn == t) {
#pragma unroll
            for (int u = 0; u < U; u++)
                if (entries.col[u] != EMPTY) table.add(slot[u], entries.weight, entries.value[u]);
        }
        __syncwarp();
    }
}

#endif
