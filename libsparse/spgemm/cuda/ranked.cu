/* Narrow rows of few entries, a warp each: their columns as bits, which are C's columns in order, then every sum at
 * its column's rank. Rows of A of the same columns are done two at a time. A run of rows of B of the same columns
 * takes its columns and ranks once, and every lane adds the products of a column to a sum in registers, in the order
 * of the rows: some 30 instructions for 128 products of two rows, where finding them in a table takes 250. */
#include "spgemm/cuda/classes.cuh"

/* A word holds a bit for each of 32 columns (x), and how many come before them (y). */
struct ranked_bits {
    uint2 *words;
    __device__ __forceinline__ void set(uint32_t i) const { set_bit(&words[i / 32].x, 1u << (i % 32)); }
};
template <typename V> struct ranked_sink {
    static constexpr bool SUMS = false;
    static constexpr int ROWS = 1;
    ranked_bits bits;
    int32_t lowest;

    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int, int)
    {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (entries.col[u] != EMPTY) bits.set((uint32_t)(entries.col[u] - lowest));
        __syncwarp();
    }
};

/* What a warp sums ROWS rows of the same columns with: the r-th row's sums begin at sums + r·most. The last is
 * unused: lanes without an entry read it, as a branch around the reading takes a fifteenth of the time. */
template <typename V, int ROWS> struct ranked_sums {
    const product_view<V> &product;
    row_of_b<true, ROWS> *rows;
    double *sums;
    uint2 *words;
    int most;
    int32_t lowest;

    /* The products of rows [0, count) of B. Those in `heads` begin a run of rows of the same columns. A lane
     * keeps its columns, and their sums, throughout a run. */
    template <int U> __device__ __forceinline__ void add_runs(int count, unsigned heads) const
    {
        const int lane = threadIdx.x & 31;
        int32_t next[U];
        auto read_columns = [&](int row, int from) {
            const uint32_t start = rows[row].start, length = (uint32_t)rows[row].length;
#pragma unroll
            for (int u = 0; u < U; u++) {
                const uint32_t at = (uint32_t)(from + 32 * u + lane);
                next[u] = at < length ? __ldg(product.b.cols + start + at) : EMPTY;
            }
        };
        read_columns(0, 0);
        for (int row = 0, from = 0; row < count;) {
            const unsigned later = heads & -(2u << row); /* begin runs behind this row */
            const int length = rows[row].length, end = later ? __ffs((int)later) - 1 : count;
            int slot[U];
            bool there[U];
            V value[U];
            double sum[ROWS][U];
            uint32_t start = rows[row].start;
#pragma unroll
            for (int u = 0; u < U; u++) {
                there[u] = next[u] != EMPTY;
                if (there[u]) value[u] = __ldg(product.b.values + start + (uint32_t)(from + 32 * u + lane));
            }
#pragma unroll
            for (int u = 0; u < U; u++) {
                const int offset = there[u] ? next[u] - lowest : 0;
                const uint2 word = words[offset / 32];
                slot[u] = there[u] ? (int)word.y + __popc(word.x & ((1u << offset % 32) - 1)) : most - 1;
#pragma unroll
                for (int r = 0; r < ROWS; r++) sum[r][u] = sums[r * most + slot[u]];
            }
            const int now = from;
            from += 32 * U;
            const int first = row;
            if (from >= length) {
                row = end;
                from = 0;
            }
            if (row < count) read_columns(row, from);
            for (int k = first; k < end; k++) {
                const row_of_b<true, ROWS> b = rows[k];
                V taken[U];
                if (k + 1 < end) start = rows[k + 1].start;
#pragma unroll
                for (int u = 0; u < U; u++) {
                    taken[u] = value[u];
                    if (there[u] && k + 1 < end)
                        value[u] = __ldg(product.b.values + start + (uint32_t)(now + 32 * u + lane));
                }
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int u = 0; u < U; u++)
                        sum[r][u] = __dadd_rn(sum[r][u], __dmul_rn(b.weight[r], (double)taken[u]));
            }
#pragma unroll
            for (int u = 0; u < U; u++)
                if (there[u])
                    for (int r = 0; r < ROWS; r++) sums[r * most + slot[u]] = sum[r][u];
            __syncwarp();
        }
    }

    __device__ __forceinline__ void add_row(int64_t row) const
    {
        const int lane = threadIdx.x & 31;
        const int64_t begin = product.a.offsets[row], last = product.a.offsets[row + 1];
        for (int64_t base = begin; base < last; base += 32) {
            row_of_b<true, ROWS> b = {};
            int32_t k = -2;
            if (base + lane < last) {
                k = __ldg(product.a.cols + base + lane);
                const int64_t from = __ldg(product.b.offsets + k);
                for (int r = 0; r < ROWS; r++)
                    b.weight[r] = (double)__ldg(product.a.values + base + lane + r * (last - begin));
                b.start = (uint32_t)from;
                b.length = (int32_t)(__ldg(product.b.offsets + k + 1) - from);
            }
            const int32_t before = __shfl_up_sync(FULL_WARP, k, 1);
            const bool neighbours = lane > 0 && before >= 0 && before == k - 1;
            const bool repeats = neighbours && product.repeats && __ldg(product.repeats + k);
            const unsigned filled = __ballot_sync(FULL_WARP, b.length > 0);
            const int place = __popc(filled & lanes_below());
            const unsigned heads = warp_or(b.length > 0 && !repeats ? 1u << place : 0);
            const bool any_long = __any_sync(FULL_WARP, b.length > 64);
            if (b.length > 0) rows[place] = b;
            __syncwarp();
            if (filled == 0) continue;
            if (any_long) add_runs<4>(__popc(filled), heads);
            else add_runs<2>(__popc(filled), heads);
        }
    }
};

template <int ROWS> static __host__ __device__ constexpr size_t ranked_bytes(int words, int entries)
{
    return 32 * sizeof(row_of_b<true, ROWS>) + words * sizeof(uint2) + ROWS * entries * sizeof(double);
}

/* Finds the columns of a row, their bits and ranks, and writes them where ROWS rows begin; returns their number. */
template <int ROWS, typename V>
static __device__ __forceinline__ int find_ranks(const warp_job<V> &job, int64_t row, row_of_b<true, 1> *rows,
                                                 uint2 *words, const int64_t (&to)[ROWS], int32_t *lowest)
{
    const int lane = threadIdx.x & 31;
    int32_t highest;
    find_span<32>(job.product.a.offsets[row], job.product.a.offsets[row + 1], job.product.a.cols,
                  job.product.b.offsets, job.product.b.cols, lowest, &highest);
    const int used = (highest - *lowest) / 32 + 1;
    for (int i = lane; i < used; i += 32) words[i].x = 0;
    __syncwarp();
    ranked_sink<V> sink = {{words}, *lowest};
    walk_row<false>(job.product, row, 0, 0, rows, sink);
    int count = 0;
    for (int base = 0; base < used; base += 32) {
        const uint32_t word = base + lane < used ? words[base + lane].x : 0;
        int total, before = count + scan_lanes(__popc(word), &total);
        if (base + lane < used) words[base + lane].y = (uint32_t)before;
        for (uint32_t left = word; left; left &= left - 1, before++) {
            const int32_t col = *lowest + (base + lane) * 32 + __ffs((int)left) - 1;
            for (int r = 0; r < ROWS; r++) job.c_cols[to[r] + before] = col;
        }
        count += total;
    }
    return count;
}

/* Whole narrow rows, a warp each; with KNOWN their columns are in C already. */
template <typename V, int ROWS, bool KNOWN>
static __global__ void __launch_bounds__(WARP_THREADS, 6) sum_ranked(warp_job<V> job, int c, int words, int most)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    const int lane = threadIdx.x & 31;
    unsigned char *memory = table_memory + ranked_bytes<ROWS>(words, most) * (threadIdx.x / 32);
    row_of_b<true, ROWS> *rows = (row_of_b<true, ROWS> *)memory;
    ranked_sums<V, ROWS> table = {job.product, rows, (double *)(rows + 32), NULL, most, 0};
    table.words = (uint2 *)(table.sums + ROWS * most);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        const int64_t row = own.rows[at];
        int64_t to[ROWS];
        for (int r = 0; r < ROWS; r++) to[r] = job.offsets[row + r];
        int count;
        if constexpr (KNOWN) {
            const int32_t *cols = job.c_cols + to[0];
            count = (int)(job.offsets[row + 1] - to[0]);
            table.lowest = cols[0];
            rank_columns(cols, count, table.words);
        } else {
            count = find_ranks<ROWS>(job, row, (row_of_b<true, 1> *)rows, table.words, to, &table.lowest);
        }
        for (int i = lane; i < count; i += 32)
            for (int r = 0; r < ROWS; r++) table.sums[r * most + i] = no_sum<true>();
        __syncwarp();
        table.add_row(row);
        for (int i = lane; i < count; i += 32)
            for (int r = 0; r < ROWS; r++) job.c_values[to[r] + i] = (V)table.sums[r * most + i];
        __syncwarp();
    }
    end_after_last();
}

/* ---- host ------------------------------------------------------------------------------------------------ */

template <typename V> sp_status launch_ranked(warp_run<V> *run)
{
    for (int i = RANKED_CLASSES - 1; i >= 0; i--) {
        const int words = i & 2 ? (int)NARROW_WORDS : (int)NARROWER_WORDS;
        const int most = (i & 1 ? (int)MOST_SUMMED : (int)LEAST_RANKED) + 2; /* one is unused, two are aligned */
        if (has_rows(run, CLASS_RANKED_TWINS + i))
            CHECK(launch_tables(run, run->pattern_known ? sum_ranked<V, 2, true> : sum_ranked<V, 2, false>,
                                ranked_bytes<2>(words, most), rows_in(run, CLASS_RANKED_TWINS + i),
                                (i + 2) % SMALL_STREAM, CLASS_RANKED_TWINS + i, words, most));
        if (!has_rows(run, CLASS_RANKED + i)) continue;
        const auto kernel = run->pattern_known ? sum_ranked<V, 1, true> : sum_ranked<V, 1, false>;
        const size_t bytes = ranked_bytes<1>(words, most);
        const int warps = table_warps(bytes);
        CHECK(cuda_leave_cache(run->context, kernel, 32 * warps, warps * bytes)); /* protein 1.65 to 1.5 ms */
        CHECK(launch_tables(run, kernel, bytes, rows_in(run, CLASS_RANKED + i), i, CLASS_RANKED + i, words, most));
    }
    return SP_OK;
}

template sp_status launch_ranked(warp_run<float> *);
template sp_status launch_ranked(warp_run<double> *);
