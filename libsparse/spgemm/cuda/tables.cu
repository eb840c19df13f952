/* Rows of C by tables: a warp each, with a table of a power of two of slots in shared memory, where products find
 * their columns. Summed rows sort what they hold; rows of A with the same columns, twins, are summed by
 * twos. */
#include "spgemm/cuda/classes.cuh"

/* ---- the table -------------------------------------------------------------------------------------------- */

/* Columns and, with SUM, their sums in ROWS rows, in shared memory: 2^(32 - shift) slots. Filled to 4/5 a step takes
 * 13 probes, the most of 32 lanes; half full it takes 4. */
template <typename V, bool PLAIN, bool SUM, int ROWS_ = 1> struct warp_table {
    static constexpr bool SUMS = SUM;
    static constexpr int ROWS = ROWS_;
    const product_view<V> &product;
    int64_t row; /* that is in the table */
    int32_t *keys;
    double *sums;   /* row r's begin at sums + r·slots */
    uint16_t *list; /* with SUM: the slots in use, in the order of their first use */
    int shift, used;

    __device__ __forceinline__ int slots() const { return (int)(0xffffffffu >> shift) + 1; }
    __device__ __forceinline__ int home(int32_t col) const { return (int)(scrambled(col) >> shift); }
    __device__ __forceinline__ int after(int slot) const { return (slot + 1) & (int)(0xffffffffu >> shift); }

    __device__ __forceinline__ void clear(int64_t new_row)
    {
        const int lane = threadIdx.x & 31;
        const double none = no_sum<PLAIN>();
        row = new_row;
        used = 0;
        for (int i = lane; i < slots() / 4; i += 32) ((int4 *)keys)[i] = make_int4(EMPTY, EMPTY, EMPTY, EMPTY);
        if (SUM)
            for (int i = lane; i < ROWS * slots() / 2; i += 32) ((double2 *)sums)[i] = make_double2(none, none);
        __syncwarp();
    }
    /* The slots of U columns a lane, EMPTY for none, claimed for those that have none yet. The whole warp probes
     * together until all have found theirs: lanes that leave the loop one by one would go on apart, and add apart. */
    template <int U> __device__ __forceinline__ void find(const int32_t (&col)[U], int (&slot)[U])
    {
        bool pending[U], fresh[U], any = false;
        int32_t key[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            slot[u] = home(col[u]);
            key[u] = *(volatile int32_t *)(keys + slot[u]);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            fresh[u] = false;
            pending[u] = col[u] != EMPTY && key[u] != col[u];
            slot[u] = pending[u] && key[u] != EMPTY ? after(slot[u]) : slot[u];
            any = any || pending[u];
        }
        if (!__any_sync(FULL_WARP, any)) return;
        do {
            any = false;
#pragma unroll
            for (int u = 0; u < U; u++) {
                const int32_t old = claim(keys + slot[u], col[u], pending[u]);
                fresh[u] = fresh[u] || (pending[u] && old == EMPTY);
                pending[u] = pending[u] && old != EMPTY && old != col[u];
                slot[u] = pending[u] ? after(slot[u]) : slot[u];
                any = any || pending[u];
            }
        } while (__any_sync(FULL_WARP, any));
#pragma unroll
        for (int u = 0; u < U; u++) {
            const unsigned claimed = __ballot_sync(FULL_WARP, fresh[u]);
            if (SUM && fresh[u]) list[used + __popc(claimed & lanes_below())] = (uint16_t)slot[u];
            used += __popc(claimed);
        }
    }
    /* What the slot held, which is the column's now if it was empty. Predicated: a branch would cost more. */
    static __device__ __forceinline__ int32_t claim(int32_t *key, int32_t col, bool wanted)
    {
        int32_t old = 0;
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %4, 0; @p atom.shared.cas.b32 %0, [%1], %2, %3; }"
                     : "+r"(old)
                     : "r"((uint32_t)__cvta_generic_to_shared(key)), "r"(EMPTY), "r"(col), "r"((int)wanted)
                     : "memory");
        return old;
    }
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, ROWS, V> &entries, int turn, int turns)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (!PLAIN && entries.col[u] != EMPTY && !allowed<PLAIN>(product, row, entries.col[u]))
                entries.col[u] = EMPTY;
        find<U>(entries.col, slot);
        if (SUM) add_in_turns<U>(*this, entries, slot, turn, turns);
    }
    __device__ __forceinline__ void add(int slot, const double (&weight)[ROWS], V value)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            add_to<PLAIN>(product, sums + r * slots() + slot, multiply<PLAIN>(product, weight[r], (double)value));
    }
};

/* ---- sorting --------------------------------------------------------------------------------------------- */

/* Sorts the table's `used` <= 32·K entries: leaves their columns in `keys` and their slots in `list`, both swizzled
 * with K - 1. The table is no table any more. */
template <int K, typename Key, typename Table> static __device__ __forceinline__ void sort_entries(Table &table)
{
    const int lane = threadIdx.x & 31, bits = 32 - table.shift;
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) {
        key[i] = ~Key(0);
        if (i * 32 + lane >= table.used) continue;
        const int slot = table.list[i * 32 + lane];
        key[i] = (Key)(uint32_t)table.keys[slot] << bits | (Key)slot;
    }
    sort_keys<K>(key, 32);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < K; i++) {
        const int place = lane * K + i, at = swizzled(place, K - 1);
        if (place >= table.used) continue;
        table.keys[at] = (int32_t)(key[i] >> bits);
        table.list[at] = (uint16_t)((uint32_t)key[i] & (0xffffffffu >> table.shift));
    }
    __syncwarp();
}

/* Sorts with the smallest network of 32·LEAST to 32·MOST keys and writes the table's rows, the r-th from to[r] on.
 * Keys of 32 bits hold column and slot in plain products of not too many columns. */
template <int LEAST, int MOST, bool PLAIN, typename V, typename Table>
static __device__ __forceinline__ void write_sorted(Table &table, const int64_t (&to)[Table::ROWS], int32_t *cols,
                                                    V *values)
{
    int spread = LEAST - 1; /* K - 1 */
    while (32 * (spread + 1) < table.used) spread = 2 * spread + 1;
    const bool narrow = PLAIN && table.product.cols <= (int64_t)1 << table.shift;
#define SORT(K)                                                                                  \
    if constexpr (LEAST <= K && K <= MOST) {                                                     \
        if (spread == K - 1) {                                                                   \
            if (narrow) sort_entries<K, std::conditional_t<PLAIN, uint32_t, uint64_t>>(table);   \
            else sort_entries<K, uint64_t>(table);                                               \
        }                                                                                        \
    }
    SORT(1) SORT(2) SORT(4) SORT(8) SORT(16) SORT(32)
#undef SORT
    for (int i = threadIdx.x & 31; i < table.used; i += 32) {
        const int at = swizzled(i, spread), slot = table.list[at];
#pragma unroll
        for (int r = 0; r < Table::ROWS; r++) {
            cols[to[r] + i] = table.keys[at];
            if (values) values[to[r] + i] = (V)table.sums[r * table.slots() + slot];
        }
    }
    __syncwarp();
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

/* Per warp: sums, rows of B, keys, and the list of used slots. */
template <bool PLAIN, int ROWS> static __host__ __device__ constexpr size_t table_bytes(int slots, bool sum)
{
    return (size_t)slots * (4 + (sum ? 8 * ROWS : 0)) + (sum ? (size_t)slots / 4 * 3 * sizeof(uint16_t) : 0) +
           32 * sizeof(row_of_b<PLAIN, ROWS>);
}

template <bool PLAIN, bool SUM, int ROWS, typename V>
static __device__ __forceinline__ warp_table<V, PLAIN, SUM, ROWS>
own_table(const product_view<V> &product, unsigned char *memory, int slots, row_of_b<PLAIN, ROWS> **rows)
{
    unsigned char *own = memory + table_bytes<PLAIN, ROWS>(slots, SUM) * (threadIdx.x / 32);
    *rows = (row_of_b<PLAIN, ROWS> *)(own + (SUM ? ROWS * slots * sizeof(double) : 0));
    int32_t *keys = (int32_t *)(*rows + 32);
    return {product, 0, keys, (double *)own, (uint16_t *)(keys + slots), __clz(slots) + 1, 0};
}

template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WARP_THREADS) count_hashed(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    row_of_b<PLAIN, 1> *rows;
    auto table = own_table<PLAIN, false, 1>(job.product, table_memory, counting_slots(c - CLASS_HASHED), &rows);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        table.clear(own.rows[at]);
        walk_row<false>(job.product, table.row, 0, 0, rows, table);
        if ((threadIdx.x & 31) == 0) job.lengths[table.row] = table.used;
    }
    end_after_last();
}

/* LEAST to MOST keys a lane to sort. As many blocks as shared memory lets in: 64, 72 and 128 registers a thread. */
template <typename V, bool PLAIN, int LEAST, int MOST, int ROWS>
static __global__ void __launch_bounds__(WARP_THREADS, MOST > 8 ? 4 : LEAST == 8 ? 7 : 8)
    sum_hashed(warp_job<V> job, int c, int slots)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    row_of_b<PLAIN, ROWS> *rows;
    auto table = own_table<PLAIN, true, ROWS>(job.product, table_memory, slots, &rows);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        table.clear(own.rows[at]);
        walk_row<false>(job.product, table.row, 0, 0, rows, table);
        int64_t to[ROWS];
        for (int r = 0; r < ROWS; r++) to[r] = job.offsets[table.row + r];
        write_sorted<LEAST, MOST, PLAIN>(table, to, job.c_cols, job.c_values);
    }
    end_after_last();
}

/* ---- host ------------------------------------------------------------------------------------------------ */

template <typename V, bool PLAIN> sp_status launch_hashed_counts(warp_run<V> *run)
{
    for (int i = COUNTED_CLASSES - 1; i >= 0; i--)
        if (has_rows(run, CLASS_HASHED + i))
            CHECK(launch_tables(run, count_hashed<V, PLAIN>, table_bytes<PLAIN, 1>(counting_slots(i), false),
                                rows_in(run, CLASS_HASHED + i), i % SMALL_STREAM, CLASS_HASHED + i));
    return SP_OK;
}

template <typename V, bool PLAIN> sp_status launch_hashed(warp_run<V> *run, int i)
{
    const int slots = LEAST_SLOTS << i;
    auto kernel = i < 2    ? sum_hashed<V, PLAIN, 1, 4, 1>
                  : i == 2 ? sum_hashed<V, PLAIN, 8, 8, 1>
                           : sum_hashed<V, PLAIN, 16, 32, 1>;
    if (has_rows(run, CLASS_HASHED + i))
        CHECK(launch_tables(run, kernel, table_bytes<PLAIN, 1>(slots, true), rows_in(run, CLASS_HASHED + i), i,
                            CLASS_HASHED + i, slots));
    if constexpr (PLAIN) {
        if (!run->twins || !has_rows(run, CLASS_TWINS + i)) return SP_OK;
        auto both = slots / 4 * 3 <= 256 ? sum_hashed<V, true, 1, 8, 2> : sum_hashed<V, true, 8, 32, 2>;
        CHECK(launch_tables(run, both, table_bytes<true, 2>(slots, true), rows_in(run, CLASS_TWINS + i), i + 1,
                            CLASS_TWINS + i, slots));
    }
    return SP_OK;
}

template sp_status launch_hashed_counts<float, true>(warp_run<float> *);
template sp_status launch_hashed_counts<float, false>(warp_run<float> *);
template sp_status launch_hashed_counts<double, true>(warp_run<double> *);
template sp_status launch_hashed_counts<double, false>(warp_run<double> *);
template sp_status launch_hashed<float, true>(warp_run<float> *, int);
template sp_status launch_hashed<float, false>(warp_run<float> *, int);
template sp_status launch_hashed<double, true>(warp_run<double> *, int);
template sp_status launch_hashed<double, false>(warp_run<double> *, int);
