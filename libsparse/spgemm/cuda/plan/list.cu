/* The products of each entry of C, for tiles.cu. Products of whole rows are only numbered. Those of all others are
 * walked to be counted, TILE_MOST a block whatever their rows, so that one hub is shared by the whole device. Those
 * of listed rows are walked once more and put where their entry's begin. There they lie in any order; tiles sort them
 * by their entry of A, and those of long entries are sorted here.
 */
#include <algorithm>

#include "base/search.h"
#include "device/radix.cuh"
#include "device/running_sums.cuh"
#include "spgemm/cuda/plan/source.cuh"

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

enum { LIST_THREADS = 256, LONG_TERM_BITS = 40 };

/* ---- device ---------------------------------------------------------------------------------------------- */

/* A row that is walked, and the blocks that walk rows before it. */
struct walked_row {
    int32_t row;
    uint32_t first;
};

/* All that is counted on the device. */
struct list_totals {
    unsigned long long walked; /* rows, times 2^32, and their blocks */
    unsigned long long cut, listed; /* products of these rows */
    unsigned long long longs;    /* long entries, times 2^LONG_TERM_BITS, and their products */
    unsigned long long longest;
    unsigned int too_many;
};

/* Products of the entries of A; 0 behind the last. */
struct products_of_entry {
    const int32_t *cols;
    const int64_t *b_offsets;
    int64_t entries;
    __device__ __forceinline__ int64_t operator()(int64_t entry) const
    {
        if (entry >= entries) return 0;
        const int32_t k = cols[entry];
        return b_offsets[k + 1] - b_offsets[k];
    }
};

/* Places of the entries of C; none behind the last. */
struct places_of_entry {
    const uint32_t *weights;
    int64_t nnz;
    __device__ __forceinline__ int64_t operator()(int64_t entry) const
    {
        const uint32_t weight = entry < nnz ? weights[entry] : 0;
        return weight & LONG_ENTRY ? MOST_TERMS : weight & ~WHOLE_ROW;
    }
};

static __global__ void __launch_bounds__(LIST_THREADS)
    weigh_rows(product_source source, walked_row *walks, list_totals *totals)
{
    const int64_t row = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    if (row >= source.rows) return;
    const int64_t first = source.a_offsets[row], last = source.a_offsets[row + 1], entry = source.c_offsets[row];
    const int64_t products = source.before[last] - source.before[first];
    if (products == 0 || entry == source.c_offsets[row + 1]) return;
    if (!source.masked && products <= MOST_WHOLE && last - first <= MOST_TERMS) {
        source.weights[entry] = WHOLE_ROW | (uint32_t)products;
        return;
    }
    if (last - first >= (int64_t)WHOLE_ROW) totals->too_many = 1;
    const unsigned long long blocks = (unsigned long long)((products + TILE_MOST - 1) / TILE_MOST);
    const unsigned long long before = atomicAdd(&totals->walked, 1ull << 32 | blocks);
    walks[before >> 32] = {(int32_t)row, (uint32_t)before};
    atomicAdd(is_listed(source.masked, last - first) ? &totals->listed : &totals->cut, (unsigned long long)products);
}

/* Products of which a thread looks the columns up at once. */
enum { TOGETHER = 4 };

/* The columns of a row of C, of `count` entries from `first` on. */
struct row_columns {
    const int32_t *cols;
    int64_t first;
    uint32_t count;
    bool full; /* without gaps */
};

static __device__ __forceinline__ row_columns columns_of(const product_source &source, int64_t row)
{
    const int64_t first = source.c_offsets[row];
    const uint32_t count = (uint32_t)(source.c_offsets[row + 1] - first);
    const int32_t *cols = source.c_cols + first;
    return {cols, first, count, (uint32_t)(cols[count - 1] - cols[0]) == count - 1};
}

/* The row's last entry whose column is not above each of some, or its first. */
static __device__ __forceinline__ void find_columns(const row_columns &own, const int32_t (&col)[TOGETHER],
                                                    int64_t (&entry)[TOGETHER])
{
    uint32_t at[TOGETHER] = {};
    if (own.full) {
        const int32_t lowest = own.cols[0];
        for (int u = 0; u < TOGETHER; u++) at[u] = min((uint32_t)max(col[u] - lowest, 0), own.count - 1);
    } else {
        for (uint32_t step = 1u << (31 - __clz((int)own.count)); step > 0; step /= 2) {
#pragma unroll
            for (int u = 0; u < TOGETHER; u++)
                if (at[u] + step < own.count && __ldg(own.cols + at[u] + step) <= col[u]) at[u] += step;
        }
    }
    for (int u = 0; u < TOGETHER; u++) entry[u] = own.first + at[u];
}

/* Where products of listed rows are put. Those of long entries get keys by which they are sorted. */
struct product_puts {
    const long_entry *longs;
    unsigned int *placed; /* products of each long entry */
    uint64_t *keys;
    uint32_t *others;
};

static __device__ __forceinline__ void put_product(const product_source &source, const product_puts &puts,
                                                   int64_t entry, uint32_t a, uint32_t b)
{
    const uint32_t weight = *(volatile uint32_t *)(source.weights + entry);
    if (!(weight & LONG_ENTRY)) {
        source.pairs[source.starts[entry] + atomicSub(source.weights + entry, 1u) - 1] = make_uint2(a, b);
        return;
    }
    const uint32_t number = weight & ~LONG_ENTRY;
    const int64_t at = puts.longs[number].term + atomicAdd(puts.placed + number, 1u);
    puts.keys[at] = (uint64_t)number << 32 | a;
    puts.others[at] = b;
}

/* Counts products in their entries' weights, or puts those of listed rows. */
template <bool PUT>
static __global__ void __launch_bounds__(LIST_THREADS)
    walk_rows_of_c(product_source source, const walked_row *walks, unsigned int count, product_puts puts)
{
    __shared__ walked_products walked;
    __shared__ uint32_t a[TILE_MOST], b[TILE_MOST]; /* at heads: entry of A, first entry of B */
    unsigned low = 0, high = count;
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        if (walks[middle].first <= blockIdx.x) low = middle;
        else high = middle;
    }
    const int64_t row = walks[low].row, first = source.a_offsets[row], last = source.a_offsets[row + 1];
    if (PUT && !is_listed(source.masked, last - first)) return;
    const int64_t from = source.before[first] + (int64_t)(blockIdx.x - walks[low].first) * TILE_MOST;
    const int products = (int)min(source.before[last] - from, (int64_t)TILE_MOST);
    const int64_t begin = first + row_of_entry(source.before + first, last - first, from);
    const int64_t end = first + row_of_entry(source.before + first, last - first, from + products - 1) + 1;
    walked.clear();
    __syncthreads();
    for (int64_t at = begin + threadIdx.x; at < end; at += LIST_THREADS) {
        const int64_t its = source.before[at], skipped = max(from - its, (int64_t)0);
        if (its + skipped == source.before[at + 1]) continue;
        const int place = (int)(its + skipped - from);
        a[place] = (uint32_t)at;
        b[place] = (uint32_t)(source.b_offsets[source.a_cols[at]] + skipped);
        walked.mark(place);
    }
    __syncthreads();
    if (threadIdx.x < 32) walked.find_last();
    __syncthreads();
    const row_columns own = columns_of(source, row);
    for (int base = 0; base < products; base += TOGETHER * LIST_THREADS) {
        uint32_t other[TOGETHER];
        int32_t col[TOGETHER];
        int64_t entry[TOGETHER];
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            const int place = min(base + u * LIST_THREADS + (int)threadIdx.x, products - 1);
            const int head = walked.head_of(place);
            other[u] = b[head] + (uint32_t)(place - head);
            col[u] = source.b_cols[other[u]];
        }
        find_columns(own, col, entry);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            const int place = base + u * LIST_THREADS + (int)threadIdx.x;
            if (place >= products || (source.masked && source.c_cols[entry[u]] != col[u])) continue;
            if (PUT) put_product(source, puts, entry[u], a[walked.head_of(place)], other[u]);
            else atomicAdd(source.weights + entry[u], 1u);
        }
    }
}

static __global__ void __launch_bounds__(LIST_THREADS)
    mark_long(product_source source, long_entry *longs, list_totals *totals)
{
    const int64_t entry = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    const uint32_t count = entry < source.nnz ? source.weights[entry] : 0;
    if (count <= MOST_TERMS || count & WHOLE_ROW) return;
    const unsigned long long before = atomicAdd(&totals->longs, 1ull << LONG_TERM_BITS | count);
    const uint32_t number = (uint32_t)(before >> LONG_TERM_BITS);
    longs[number] = {entry, (int64_t)(before & ((1ull << LONG_TERM_BITS) - 1)), count};
    source.weights[entry] = LONG_ENTRY | number;
    atomicMax(&totals->longest, (unsigned long long)count);
}

static __global__ void __launch_bounds__(LIST_THREADS)
    join_pairs(int64_t count, const uint64_t *keys, const uint32_t *others, uint2 *pairs)
{
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    if (i < count) pairs[i] = make_uint2((uint32_t)keys[i], others[i]);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

static unsigned list_blocks(int64_t work) { return (unsigned)ceil_div(work, LIST_THREADS); }

static sp_status read_totals(sp_context *context, const list_totals *from, list_totals *totals)
{
    CUDA_CHECK(cudaMemcpyAsync(totals, from, sizeof *totals, cudaMemcpyDeviceToHost, stream_of(context)));
    return cuda_finish(context);
}

/* The terms of long entries in A's order. */
static sp_status sort_long_terms(sp_context *context, const product_terms *terms, const uint64_t *keys,
                                 const uint32_t *others)
{
    const int64_t count = terms->long_count;
    device_array<uint64_t> sorted_keys;
    device_array<uint32_t> sorted;
    CHECK(sorted_keys.allocate(context, count));
    CHECK(sorted.allocate(context, count));
    CHECK(radix_sort_pairs(context, keys, sorted_keys.data, others, sorted.data, count,
                           32 + radix_bits(terms->long_entries)));
    join_pairs<<<list_blocks(count), LIST_THREADS, 0, stream_of(context)>>>(count, sorted_keys.data, sorted.data,
                                                                            terms->long_terms);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* The rows that are walked. */
struct row_walks {
    device_array<walked_row> rows;
    device_array<list_totals> totals;
    unsigned int count, blocks;
};

/* Weights of whole rows, and of the entries of others; long entries. */
static sp_status weigh(sp_context *context, term_lists *lists, row_walks *work, product_terms *terms, bool *fits)
{
    const product_source &source = lists->source;
    list_totals all;
    CHECK(lists->weights.fill(0, source.nnz));
    CHECK(work->rows.allocate(context, source.rows));
    CHECK(work->totals.allocate(context, 1));
    CHECK(work->totals.fill(0, 1));
    weigh_rows<<<list_blocks(source.rows), LIST_THREADS, 0, stream_of(context)>>>(source, work->rows.data,
                                                                                  work->totals.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_totals(context, work->totals.data, &all));
    work->count = (unsigned)(all.walked >> 32);
    work->blocks = (unsigned)all.walked;
    lists->cut_products = (int64_t)all.cut;
    lists->listed_products = (int64_t)all.listed;
    *fits = !all.too_many;
    if (work->count == 0 || !*fits) return SP_OK;
    walk_rows_of_c<false><<<work->blocks, LIST_THREADS, 0, stream_of(context)>>>(source, work->rows.data, work->count,
                                                                                 {});
    CUDA_CHECK(cudaGetLastError());
    if (lists->listed_products == 0) return SP_OK;
    const int64_t longs = std::min(lists->listed_products / (MOST_TERMS + 1) + 1, source.nnz);
    *fits = longs < 1ll << (64 - LONG_TERM_BITS);
    if (!*fits) return SP_OK;
    CHECK(lists->longs.allocate(context, longs));
    mark_long<<<list_blocks(source.nnz), LIST_THREADS, 0, stream_of(context)>>>(source, lists->longs.data,
                                                                               work->totals.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_totals(context, work->totals.data, &all));
    terms->long_entries = (int64_t)(all.longs >> LONG_TERM_BITS);
    terms->long_count = (int64_t)(all.longs & ((1ull << LONG_TERM_BITS) - 1));
    terms->longest = (int64_t)all.longest;
    return SP_OK;
}

/* The pairs of listed rows, and the terms of long entries. */
static sp_status put_pairs(sp_context *context, term_lists *lists, const row_walks *work, product_terms *terms)
{
    device_array<uint64_t> keys;
    device_array<uint32_t> others;
    device_array<unsigned int> placed;
    CHECK(lists->pairs.allocate(context, lists->places));
    lists->source.pairs = lists->pairs.data;
    if (terms->long_entries > 0) {
        CHECK(keys.allocate(context, terms->long_count));
        CHECK(others.allocate(context, terms->long_count));
        CHECK(placed.allocate(context, terms->long_entries));
        CHECK(placed.fill(0, terms->long_entries));
        CHECK(add_array(context, terms->long_entries, terms, &terms->longs));
        CHECK(add_array(context, terms->long_count, terms, &terms->long_terms));
        if (terms->longest > most_of_warp(*terms))
            CHECK(add_array(context, terms->long_count, terms, &terms->long_values));
        CUDA_CHECK(cudaMemcpyAsync(terms->longs, lists->longs.data, (size_t)terms->long_entries * sizeof(long_entry),
                                   cudaMemcpyDeviceToDevice, stream_of(context)));
    }
    walk_rows_of_c<true><<<work->blocks, LIST_THREADS, 0, stream_of(context)>>>(
        lists->source, work->rows.data, work->count, {lists->longs.data, placed.data, keys.data, others.data});
    CUDA_CHECK(cudaGetLastError());
    return terms->long_entries > 0 ? sort_long_terms(context, terms, keys.data, others.data) : SP_OK;
}

sp_status cuda_list_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t room, term_lists *lists, product_terms *terms, bool *fits)
{
    const products_of_entry products = {a->col_indices, b->row_offsets, a->nnz};
    row_walks work;
    int64_t all;
    CHECK(lists->before.allocate(context, a->nnz + 1));
    CHECK(lists->starts.allocate(context, pattern->nnz + 1));
    CHECK(lists->weights.allocate(context, pattern->nnz));
    lists->source = {a->row_offsets, b->row_offsets, pattern->row_offsets, a->col_indices, b->col_indices,
                     pattern->col_indices, pattern->rows, pattern->nnz, masked, lists->before.data,
                     lists->weights.data, lists->starts.data, NULL};
    CHECK(sum_before(context, products, a->nnz, lists->before.data, &all));
    *fits = all / TILE_MOST <= INT32_MAX - pattern->rows; /* blocks that walk rows */
    if (*fits) CHECK(weigh(context, lists, &work, terms, fits));
    if (!*fits) return SP_OK;
    const places_of_entry places = {lists->weights.data, pattern->nnz};
    CHECK(sum_before(context, places, pattern->nnz, lists->starts.data, &lists->places));
    *fits = std::max(lists->places, terms->long_count) <= room / (int64_t)sizeof(uint2);
    return *fits && lists->listed_products > 0 ? put_pairs(context, lists, &work, terms) : SP_OK;
}
