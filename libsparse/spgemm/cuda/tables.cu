/* Rows of C by tables: a warp each, with a table of a power of two of slots in shared memory, where products find
 * their columns (table.cuh). Summed rows sort what they hold; rows of A with the same columns, twins, are summed by
 * twos. */
#include "spgemm/cuda/classes.cuh"

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
