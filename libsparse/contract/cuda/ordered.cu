/* Wide rows of a contraction whose entries must be combined in order, as sums of f64 are: all of them, with the row's
 * place in the list and the column as key, are sorted by radix, stably, and each cell's are combined as they follow
 * each other. So the work is even whatever the rows are; a block a row took 4 ms for one of 300,000 entries.
 *
 * A thread combines up to SERIAL entries of a cell, a warp more, and all warps the sum of very many: where nearly all
 * of a graph lies within one group one cell has most of it. Bytes an entry of f64: 12 read and 16 written, 32 for
 * every 8 bits of the key, 20 for its cell.
 */
#include <cub/device/device_scan.cuh>

#include "contract/cuda/wide.cuh"
#include "device/long_sums.cuh"
#include "device/radix.cuh"

/* Entries of a cell that a thread combines, and that it reads at once. A warp takes about as long for a cell of some
 * hundreds as a thread for LANE_SERIAL, and its threads work at the same time. */
enum { SERIAL = 64, LANE_SERIAL = 48, AHEAD = 8 };
enum { SEGMENT = 4 }; /* neighbouring cells of a warp */
/* Entries of a cell that is summed by all warps, at least, and of all wide rows if there are such cells: four
 * launches more, some 10 µs, are little beside their sort. */
enum { LEAST_ALONE = 1 << 15, LEAST_WITH_ALONE = 1 << 18 };
enum { PLACE_THREADS = 1024, KEY_THREADS = 256 };

/* ---- device: entries to keys ---------------------------------------------------------------------------- */

/* The entries before each wide row, and in `lengths` its place in the list until it has its cells. Inexact rows are
 * listed by their places among all (`again`), from here on by their numbers. One block. */
template <typename V>
static __global__ void __launch_bounds__(PLACE_THREADS) place_wide(contract_args<V> job, int64_t *before, bool again)
{
    const int64_t listed = first_of_class(job, WIDE_ROWS);
    __shared__ uint64_t scratch[PLACE_THREADS / 32];
    const class_rows own = rows_of(job, WIDE_ROWS);
    int64_t done = 0;
    for (unsigned first = 0; first < own.count; first += PLACE_THREADS) {
        const unsigned i = first + threadIdx.x;
        int length = 0, total;
        if (i < own.count) {
            const int32_t p = again ? job.list[listed + own.rows[i]] : own.rows[i];
            if (again) job.inexact[listed + i] = p;
            length = (int)(job.ranges[p].end - job.ranges[p].begin);
            job.lengths[p] = (int32_t)i;
        }
        const int its = block_scan<PLACE_THREADS>(length, &total, scratch);
        if (i < own.count) before[i] = done + its;
        done += total;
    }
    if (threadIdx.x == 0) before[own.count] = done;
}

/* Keys: the row's place in the list, and the column in the last `bits`; `columns` for entries that are left out. */
template <typename Key, typename V> struct key_sink {
    Key *keys;
    V *values;
    const int64_t *before;
    int bits;
    Key row;
    int64_t shift;

    __device__ __forceinline__ void begin_row(const contract_args<V> &job, int32_t p)
    {
        const int32_t i = job.lengths[p];
        row = (Key)i << bits;
        shift = before[i] - job.ranges[p].begin;
    }
    __device__ __forceinline__ void put(const contract_args<V> &job, int64_t at, int32_t column, V value) const
    {
        keys[at + shift] = row | (Key)(column == EMPTY ? (int32_t)job.columns : column);
        values[at + shift] = value;
    }
};

/* ---- device: keys to cells ------------------------------------------------------------------------------ */

template <typename Key>
static __global__ void __launch_bounds__(KEY_THREADS) mark_cells(const Key *keys, int64_t entries, uint32_t *number)
{
    const int64_t j = (int64_t)blockIdx.x * KEY_THREADS + threadIdx.x;
    if (j < entries) number[j] = j == 0 || keys[j] != keys[j - 1];
}

template <typename Key, typename V> struct sorted_entries {
    const Key *keys;
    const V *values;
    const int64_t *before; /* entries before each row */
    const uint32_t *number; /* cells up to an entry */
    uint32_t *first;        /* entry of a cell */
    int64_t entries;
    int bits;

    __device__ __forceinline__ int64_t cells_before(int64_t entry) const { return entry ? number[entry - 1] : 0; }
    __device__ __forceinline__ int32_t column(Key key) const { return (int32_t)(key & (((Key)1 << bits) - 1)); }
    __device__ __forceinline__ int64_t row(Key key) const { return (int64_t)(key >> bits); }
};

/* Where cells begin, and how many each row has. */
template <typename Key, typename V>
static __global__ void __launch_bounds__(KEY_THREADS) list_cells(contract_args<V> job, sorted_entries<Key, V> sorted)
{
    const int64_t j = (int64_t)blockIdx.x * KEY_THREADS + threadIdx.x;
    if (j >= sorted.entries) return;
    const uint32_t number = sorted.number[j];
    if (sorted.cells_before(j) != number) sorted.first[number - 1] = (uint32_t)j;
    if (j == sorted.entries - 1) sorted.first[number] = (uint32_t)sorted.entries;
    const Key key = sorted.keys[j];
    const int64_t i = sorted.row(key);
    if (j != sorted.before[i + 1] - 1) return;
    const bool left_out = sorted.column(key) == job.columns;
    job.lengths[rows_of(job, WIDE_ROWS).rows[i]] =
        (int32_t)(number - sorted.cells_before(sorted.before[i]) - (left_out ? 1 : 0));
}

/* Cell c, combined of `count` entries, to its row in the stage. */
template <typename Key, typename V>
static __device__ __forceinline__ void write_cell(const contract_args<V> &job, const sorted_entries<Key, V> &sorted,
                                                  int64_t c, double kept, int64_t count)
{
    const Key key = sorted.keys[sorted.first[c]];
    const int64_t i = sorted.row(key);
    const int32_t p = rows_of(job, WIDE_ROWS).rows[i], column = sorted.column(key);
    const int64_t to = job.ranges[p].begin + c - sorted.cells_before(sorted.before[i]);
    job.cols[to] = column;
    job.values[to] = (V)cell_value(job.operation, kept, (double)count, column == p);
}

/* The largest or smallest number, as `combine` finds it one after another: the first, if that is not a number, else of
 * equal ones the first. */
template <typename V>
static __device__ double ordered_extreme(sp_combine operation, const V *values, int64_t count)
{
    const double sign = operation == SP_COMBINE_MIN ? -1 : 1;
    double best = (double)values[0];
    int64_t place = 0;
    for (int64_t j = threadIdx.x & 31; j < count; j += 32) {
        const double value = (double)values[j];
        if (value * sign > best * sign) {
            best = value;
            place = j;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(FULL_WARP, best, step);
        const int64_t its = __shfl_xor_sync(FULL_WARP, (long long)place, step);
        if (other * sign > best * sign || (other == best && its < place)) {
            best = other;
            place = its;
        }
    }
    return best;
}

/* One after another. */
template <typename V> static __device__ double combine_run(sp_combine operation, const V *values, int64_t count)
{
    double kept = (double)values[0];
    for (int64_t first = 1; first < count; first += AHEAD) {
        V more[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) more[u] = first + u < count ? values[first + u] : V(0);
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (first + u < count) kept = combine(operation, kept, (double)more[u]);
    }
    return kept;
}

/* The sum of a cell that was listed to be summed by all warps. */
template <typename Key, typename V> struct write_long_cell {
    contract_args<V> job;
    sorted_entries<Key, V> sorted;
    __device__ __forceinline__ void operator()(const long_run &run, double sum) const
    {
        write_cell(job, sorted, run.place, sum, run.count);
    }
};

/* A cell a lane, and of many entries the warp, if few of its cells have; sums of `alone` and more are listed. Cells of
 * many are often neighbours, as those of large groups: a warp's are far from each other, by fours if there are more
 * cells than lanes. */
template <typename Key, typename V>
static __global__ void __launch_bounds__(KEY_THREADS)
    combine_cells(contract_args<V> job, sorted_entries<Key, V> sorted, int64_t alone, long_runs *longest)
{
    __shared__ double tiles[KEY_THREADS / 32][SUM_PLACES];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t warps = (int64_t)gridDim.x * (KEY_THREADS / 32), cells = sorted.number[sorted.entries - 1];
    const int segment = cells > 32 * warps ? SEGMENT : 1;
    const sp_combine operation = job.operation.combine;
    const bool sums = operation == SP_COMBINE_SUM || operation == SP_COMBINE_MEAN;
    const bool first_only = operation == SP_COMBINE_COUNT || operation == SP_COMBINE_FIRST;
    for (int64_t base = (blockIdx.x * (KEY_THREADS / 32) + warp) * (int64_t)segment; base < cells; base += 32 * warps) {
        const int64_t c = base + lane / segment * segment * warps + lane % segment;
        const int64_t begin = c < cells ? sorted.first[c] : 0;
        const bool own = c < cells && sorted.column(sorted.keys[begin]) != job.columns; /* not left out */
        const int64_t count = own ? sorted.first[c + 1] - begin : 0;
        const bool is_listed = sums && count >= alone;
        const int longs_here = __popc(__ballot_sync(FULL_WARP, count > SERIAL && !is_listed));
        const bool is_long = count > max((int)SERIAL, LANE_SERIAL * longs_here) && !first_only && !is_listed;
        double kept = own ? (double)sorted.values[begin] : 0;
        if (own && !is_long && !is_listed && !first_only) kept = combine_run(operation, sorted.values + begin, count);
        for (unsigned longs = __ballot_sync(FULL_WARP, is_long); longs; longs &= longs - 1) {
            const int of = __ffs((int)longs) - 1;
            const V *values = sorted.values + __shfl_sync(FULL_WARP, (long long)begin, of);
            const int64_t its = __shfl_sync(FULL_WARP, (long long)count, of);
            const double whole = sums ? sum_in_order(values, its, tiles[warp])
                                      : ordered_extreme(operation, values, its);
            if (lane == of) kept = whole;
        }
        if (is_listed) add_long_run(longest, begin, count, (int32_t)c);
        else if (own) write_cell(job, sorted, c, kept, count);
    }
}

/* ---- host ----------------------------------------------------------------------------------------------- */

/* The host's part of a stable sort by key; scratch NULL: only how many bytes it needs. Which of the two arrays of keys
 * and of values have the result the buffers say. */
template <typename Key, typename V>
static sp_status sort_by_key(contract_run<V> *run, cub::DoubleBuffer<Key> *keys, cub::DoubleBuffer<V> *values,
                             char *scratch, size_t *bytes, cudaStream_t stream)
{
    sp_context *context = run->context;
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(scratch, *bytes, *keys, *values, run->ordered.entries, 0,
                                               run->ordered.key_bits, stream));
    return SP_OK;
}

template <typename Key, typename V> static sp_status measure_scratch(contract_run<V> *run)
{
    sp_context *context = run->context;
    ordered_rows<V> *rows = &run->ordered;
    cub::DoubleBuffer<Key> keys(NULL, NULL);
    cub::DoubleBuffer<V> values(NULL, NULL);
    size_t scan = 0;
    CHECK(sort_by_key(run, &keys, &values, NULL, &rows->scratch_bytes, stream_of(context)));
    CUDA_CHECK(cub::DeviceScan::InclusiveSum(NULL, scan, rows->number, rows->number, rows->entries,
                                             stream_of(context)));
    if (scan > rows->scratch_bytes) rows->scratch_bytes = scan;
    return SP_OK;
}

template <typename V> sp_status open_ordered(contract_run<V> *run, const contract_totals *totals, bool again)
{
    sp_context *context = run->context;
    ordered_rows<V> *rows = &run->ordered;
    array_block *arrays = &rows->arrays;
    const unsigned count = again ? totals->inexact[WIDE_ROWS] : totals->members[WIDE_ROWS];
    size_t available;
    rows->again = again;
    rows->entries = (int64_t)(again ? totals->inexact_stage : totals->wide_stage);
    rows->alone = INT64_MAX;
    if (rows->entries > INT32_MAX || run->job.columns >= INT32_MAX) return SP_OK;
    rows->bits = radix_bits(run->job.columns + 1);
    rows->key_bits = rows->bits + radix_bits(count);
    const bool narrow = rows->key_bits <= 32;
    const int64_t key_bytes = narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    if (narrow) CHECK(measure_scratch<uint32_t>(run));
    else CHECK(measure_scratch<uint64_t>(run));
    for (int i = 0; i < 2; i++) {
        CHECK(arrays->add(context, rows->entries * key_bytes, &rows->keys[i]));
        CHECK(arrays->add(context, rows->entries, &rows->values[i]));
    }
    CHECK(arrays->add(context, count + (int64_t)1, &rows->before));
    CHECK(arrays->add(context, rows->entries, &rows->number));
    CHECK(arrays->add(context, rows->entries + 1, &rows->first));
    CHECK(arrays->add(context, (int64_t)rows->scratch_bytes, &rows->scratch));
    if (rows->entries >= LEAST_WITH_ALONE) {
        rows->alone = max((int64_t)LEAST_ALONE, rows->entries / MOST_LONG_RUNS + 1);
        CHECK(arrays->add(context, 1, &rows->longest));
        CHECK(arrays->add(context, most_chunks(rows->entries), &rows->totals));
        CHECK(arrays->add(context, most_chunks(rows->entries), &rows->growths));
    }
    CHECK(cuda_available(context, &available));
    rows->fit = arrays->bytes <= available / 2;
    if (rows->fit) return arrays->allocate(context);
    arrays->count = 0;
    arrays->bytes = 0;
    return SP_OK;
}

template <typename Key, typename V> static sp_status combine_ordered(contract_run<V> *run, cudaStream_t stream)
{
    sp_context *context = run->context;
    ordered_rows<V> *rows = &run->ordered;
    const contract_args<V> &job = run->job;
    const unsigned blocks = blocks_of(rows->entries, KEY_THREADS);
    cub::DoubleBuffer<Key> keys((Key *)rows->keys[0], (Key *)rows->keys[1]);
    cub::DoubleBuffer<V> values(rows->values[0], rows->values[1]);
    const key_sink<Key, V> sink = {keys.Current(), values.Current(), rows->before, rows->bits, 0, 0};
    place_wide<<<1, PLACE_THREADS, 0, stream>>>(job, rows->before, rows->again);
    CUDA_CHECK(cudaGetLastError());
    CHECK(launch(run, gather_wide<V, key_sink<Key, V>>, GATHER_THREADS, 0,
                 blocks_of(run->entries, GATHER_THREADS / 32 * TILE * TILES), stream, sink));
    CHECK(sort_by_key(run, &keys, &values, rows->scratch, &rows->scratch_bytes, stream));
    mark_cells<<<blocks, KEY_THREADS, 0, stream>>>((const Key *)keys.Current(), rows->entries, rows->number);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cub::DeviceScan::InclusiveSum(rows->scratch, rows->scratch_bytes, rows->number, rows->number,
                                             rows->entries, stream));
    const sorted_entries<Key, V> sorted = {keys.Current(), values.Current(), rows->before, rows->number,
                                           rows->first,    rows->entries,    rows->bits};
    list_cells<<<blocks, KEY_THREADS, 0, stream>>>(job, sorted);
    CUDA_CHECK(cudaGetLastError());
    const bool some_alone = rows->alone < INT64_MAX;
    if (some_alone) CUDA_CHECK(cudaMemsetAsync(rows->longest, 0, sizeof *rows->longest, stream));
    CHECK(launch(run, combine_cells<Key, V>, KEY_THREADS, 0, blocks, stream, sorted, rows->alone, rows->longest));
    if (!some_alone) return SP_OK;
    return cuda_launch_long_sums(context, sorted.values, rows->longest, rows->entries, rows->totals, rows->growths,
                                 stream, write_long_cell<Key, V>{job, sorted});
}

template <typename V> sp_status launch_ordered(contract_run<V> *run, cudaStream_t stream)
{
    return run->ordered.key_bits <= 32 ? combine_ordered<uint32_t>(run, stream)
                                       : combine_ordered<uint64_t>(run, stream);
}

template sp_status open_ordered(contract_run<float> *, const contract_totals *, bool);
template sp_status open_ordered(contract_run<double> *, const contract_totals *, bool);
template sp_status launch_ordered(contract_run<float> *, cudaStream_t);
template sp_status launch_ordered(contract_run<double> *, cudaStream_t);
