/* What terms.cu needs, made from the operands and the pattern of C.
 *
 * The plan is made from lists of pairs by entry of C (put_product in walk.cuh). Two runs of the kernels that look
 * products up fill them: one counts the products of each entry, one puts the pairs where they belong. A tile's pairs
 * are then sorted by entry of A; those of one entry of A keep the order of C, which is B's.
 */
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "base/ablation.h"
#include "spgemm/cuda/terms.cuh"
#include "spgemm/cuda/walk.cuh"

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

/* ---- device ------------------------------------------------------------------------------- */

/* Lists of pairs by entry of C, a slice of 32 entries after another. */
struct pair_lists {
    int64_t nnz, slices;
    const uint16_t *counts;
    const int64_t *bases;
    const uint2 *pairs; /* behind those of slices what crowded entries have beside */
    crowded_entries crowded;
};

/* The products of an entry. */
static __device__ __forceinline__ int64_t products_of(const pair_lists &lists, int64_t entry, unsigned count)
{
    int64_t others = 0;
    if (count == MOST_PRODUCTS) crowded_base(lists.crowded, entry, &others);
    return count + others;
}

/* All that is counted on the device. */
struct term_totals {
    unsigned long long long_terms, placed_terms, longest;
    unsigned int long_entries, placed, too_many;
};

/* Products of entries and slices. */
static __global__ void __launch_bounds__(TILE_THREADS)
    count_slices(int64_t nnz, int64_t slices, const double *products, uint16_t *counts, int32_t *totals,
                 term_totals *all)
{
    const int lane = threadIdx.x & 31;
    for (int64_t slice = ((int64_t)blockIdx.x * TILE_THREADS + threadIdx.x) / 32; slice < slices;
         slice += (int64_t)gridDim.x * TILE_THREADS / 32) {
        const int64_t entry = slice * 32 + lane;
        const double its = entry < nnz ? products[entry] : 0;
        const unsigned count = (unsigned)fmin(its, (double)MOST_PRODUCTS), total = warp_add(count);
        if (its > INT32_MAX) all->too_many = 1;
        counts[entry] = (uint16_t)count;
        if (lane == 0) totals[slice] = (int32_t)total;
    }
}

/* The first entry of every tile, and of the one that there is not; long entries and their products. */
static __global__ void __launch_bounds__(TILE_THREADS)
    cut_tiles(pair_lists lists, int64_t tiles, int64_t *cuts, term_totals *all)
{
    const int lane = threadIdx.x & 31;
    for (int64_t slice = ((int64_t)blockIdx.x * TILE_THREADS + threadIdx.x) / 32; slice < lists.slices;
         slice += (int64_t)gridDim.x * TILE_THREADS / 32) {
        const int64_t entry = slice * 32 + lane;
        const int count = lists.counts[entry];
        int total;
        const int64_t start = lists.bases[slice] + scan_lanes(count, &total), end = start + count;
        if (entry >= lists.nnz) continue;
        for (int64_t tile = start / TILE_PRODUCTS + 1; tile * TILE_PRODUCTS <= end; tile++) cuts[tile] = entry + 1;
        if (entry == 0) cuts[0] = 0;
        if (entry == lists.nnz - 1) cuts[tiles] = lists.nnz;
        if (count > MOST_TERMS) {
            const unsigned long long its = (unsigned long long)products_of(lists, entry, (unsigned)count);
            atomicAdd(&all->long_entries, 1u);
            atomicAdd(&all->long_terms, its);
            atomicMax(&all->longest, its);
        }
    }
}

typedef cub::BlockRadixSort<uint32_t, TILE_THREADS, TILE_EACH, uint16_t> tile_sort;

struct build_memory {
    union {
        tile_sort::TempStorage sort;
        uint32_t a[TILE_MOST];
    };
    union {
        uint32_t b[TILE_MOST];
        uint16_t order[TILE_MOST]; /* entries, those of most products first */
    };
    uint16_t place[TILE_MOST], start[TILE_PRODUCTS + 1]; /* of products; of entries among these */
    uint32_t heads[TILE_GROUPS], before[TILE_GROUPS], last_a[TILE_THREADS], last_b[TILE_THREADS];
    uint64_t scratch[32];
};

/* Where the products of each entry begin if entry follows entry, long ones left out; returns their number. */
static __device__ int start_entries(const pair_lists &lists, int64_t first, int entries, build_memory &memory)
{
    int products = 0, total;
    for (int base = 0; base < entries; base += TILE_THREADS) {
        const int i = base + threadIdx.x, count = i < entries ? lists.counts[first + i] : 0;
        const int before = block_scan<TILE_THREADS>(count > MOST_TERMS ? 0 : count, &total, memory.scratch);
        if (i < entries) memory.start[i] = (uint16_t)(products + before);
        products += total;
    }
    if (threadIdx.x == 0) memory.start[entries] = (uint16_t)products;
    __syncthreads();
    return products;
}

/* Copies a tile's pairs to shared memory, entry by entry, and with WRITE those of long entries to their place; finds
 * the range of entries of A. */
template <bool WRITE>
static __device__ void load_pairs(const pair_lists &lists, int64_t first, int entries, term_totals *all,
                                  const product_terms &terms, build_memory &memory, int64_t *lowest, int64_t *highest)
{
    enum { AHEAD = 8 };
    const int lane = threadIdx.x & 31;
    int64_t low = INT64_MAX, high = -1;
    for (int64_t slice = first / 32 + threadIdx.x / 32; slice * 32 < first + entries; slice += TILE_WARPS) {
        const int64_t entry = slice * 32 + lane;
        const bool own = entry >= first && entry < first + entries;
        const unsigned count = lists.counts[entry];
        const bool is_long = count > MOST_TERMS;
        const int start = own ? memory.start[entry - first] : 0;
        const uint2 *at = lists.pairs + lists.bases[slice];
        uint2 *to = NULL;
        if (WRITE && own && is_long) {
            const int64_t its = products_of(lists, entry, count);
            const int64_t term = (int64_t)atomicAdd(&all->placed_terms, (unsigned long long)its);
            terms.longs[atomicAdd(&all->placed, 1u)] = {entry, term, its};
            to = terms.long_terms + term;
        }
        const unsigned wanted = own && (WRITE || !is_long) ? count : 0;
        for (unsigned number = 0; __any_sync(FULL_WARP, number < wanted); number += AHEAD) {
            uint2 pair[AHEAD];
#pragma unroll
            for (unsigned u = 0; u < AHEAD; u++) {
                const unsigned there = __ballot_sync(FULL_WARP, number + u < count);
                if (number + u < wanted) pair[u] = __ldg(at + __popc(there & lanes_below()));
                at += __popc(there);
            }
#pragma unroll
            for (unsigned u = 0; u < AHEAD; u++) {
                if (number + u >= wanted) continue;
                if (is_long) {
                    to[number + u] = pair[u];
                    continue;
                }
                memory.a[start + number + u] = pair[u].x;
                memory.b[start + number + u] = pair[u].y;
                low = min(low, (int64_t)pair[u].x);
                high = max(high, (int64_t)pair[u].x);
            }
        }
    }
    *highest = block_reduce<TILE_THREADS>(high, max_op(), memory.scratch);
    *lowest = -block_reduce<TILE_THREADS>(-low, max_op(), memory.scratch);
    __syncthreads();
}

/* Puts the tile's products into the order of A and B: memory.place. Returns the number of segments, and with WRITE
 * writes them and the groups. */
template <bool WRITE>
static __device__ int order_products(int products, uint32_t lowest, uint32_t span, uint2 *groups, uint2 *segments,
                                     build_memory &memory)
{
    const int first = threadIdx.x * TILE_EACH;
    uint32_t key[TILE_EACH], heads = 0;
    uint16_t from[TILE_EACH];
#pragma unroll
    for (int i = 0; i < TILE_EACH; i++) {
        from[i] = (uint16_t)(first + i);
        key[i] = first + i < products ? memory.a[first + i] - lowest : span + 1;
    }
    if (threadIdx.x < TILE_GROUPS) memory.heads[threadIdx.x] = 0;
    __syncthreads();
    tile_sort(memory.sort).Sort(key, from, 0, 32 - __clz((int)(span + 1)));
    memory.last_a[threadIdx.x] = key[TILE_EACH - 1];
    memory.last_b[threadIdx.x] = memory.b[from[TILE_EACH - 1]];
    __syncthreads();
    uint32_t last_a = threadIdx.x ? memory.last_a[threadIdx.x - 1] : 0;
    uint32_t last_b = threadIdx.x ? memory.last_b[threadIdx.x - 1] : 0;
#pragma unroll
    for (int i = 0; i < TILE_EACH; i++) {
        const int rank = first + i;
        if (rank >= products) continue;
        const uint32_t b = memory.b[from[i]];
        memory.place[from[i]] = (uint16_t)rank;
        if (rank == 0 || key[i] != last_a || b != last_b + 1) {
            heads |= 1u << i;
            atomicOr(&memory.heads[rank / 32], 1u << rank % 32);
        }
        last_a = key[i];
        last_b = b;
    }
    __syncthreads();
    const uint32_t own = threadIdx.x < TILE_GROUPS ? memory.heads[threadIdx.x] : 0;
    int total;
    const int before = block_scan<TILE_THREADS>(__popc(own), &total, memory.scratch);
    if (WRITE && threadIdx.x < TILE_GROUPS) {
        memory.before[threadIdx.x] = (uint32_t)before;
        groups[threadIdx.x] = make_uint2(own, (uint32_t)before);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE_EACH; i++) {
        const int rank = first + i;
        if (!WRITE || !(heads >> i & 1)) continue;
        const uint32_t begun = memory.before[rank / 32] + __popc(memory.heads[rank / 32] & ((1u << rank % 32) - 1));
        segments[begun] = make_uint2(key[i] + lowest, memory.b[from[i]] - (uint32_t)rank);
    }
    __syncthreads();
    return total;
}

static __device__ __forceinline__ int terms_of(const build_memory &memory, int entry)
{
    return memory.start[entry + 1] - memory.start[entry];
}

/* Lists the places of entries of several products. Returns the pieces of the list; with WRITE writes it. */
template <bool WRITE>
static __device__ int list_places(int entries, uint16_t *list, int *slices, build_memory &memory)
{
    const int first = threadIdx.x * TILE_EACH, lane = threadIdx.x & 31;
    uint32_t key[TILE_EACH];
    uint16_t from[TILE_EACH];
    int several = 0, rows;
#pragma unroll
    for (int i = 0; i < TILE_EACH; i++) {
        const int count = first + i < entries ? terms_of(memory, first + i) : 0;
        from[i] = (uint16_t)(first + i);
        key[i] = count > 1 ? MOST_TERMS - count : MOST_TERMS;
        several += count > 1;
    }
    tile_sort(memory.sort).Sort(key, from, 0, 32 - __builtin_clz(MOST_TERMS));
    for (int i = 0; i < TILE_EACH; i++) memory.order[first + i] = from[i];
    several = block_reduce<TILE_THREADS>(several, add_op(), memory.scratch);
    *slices = (several + 31) / 32;
    if (several == 0) return 0;
    const int width = (int)threadIdx.x < *slices ? terms_of(memory, memory.order[threadIdx.x * 32]) : 0;
    const int header = (*slices + 32) / 32; /* of 32 places: where slices begin, and the last one's end */
    const int begin = header + block_scan<TILE_THREADS>(width, &rows, memory.scratch);
    rows += header;
    if (!WRITE) return rows * 4;
    if ((int)threadIdx.x < header * 32)
        list[threadIdx.x] = (uint16_t)((int)threadIdx.x < *slices ? begin : (int)threadIdx.x == *slices ? rows : 0);
    if ((int)threadIdx.x <= *slices) memory.heads[threadIdx.x] = (int)threadIdx.x < *slices ? begin : rows;
    __syncthreads();
    for (int slice = threadIdx.x / 32; slice < *slices; slice += TILE_WARPS) {
        const int entry = slice * 32 + lane < several ? memory.order[slice * 32 + lane] : -1;
        const int count = entry < 0 ? 0 : terms_of(memory, entry), start = entry < 0 ? 0 : memory.start[entry];
        const int top = (int)memory.heads[slice], end = (int)memory.heads[slice + 1];
        for (int i = 0; top + i < end; i++)
            list[(top + i) * 32 + lane] = i < count ? memory.place[start + i] : (uint16_t)NO_TERM;
    }
    return rows * 4;
}

/* What the segments and the list of each tile take, or, with WRITE, the plan, whose tiles hold where these begin. */
template <bool WRITE>
static __global__ void __launch_bounds__(TILE_THREADS)
    build_tiles(pair_lists lists, const int64_t *cuts, const int64_t *segments_before, const int64_t *pieces_before,
                int32_t *segments, int32_t *pieces, product_terms terms, term_totals *all)
{
    __shared__ build_memory memory;
    const int64_t number = blockIdx.x, first = cuts[number];
    const int entries = (int)(cuts[number + 1] - first), products = start_entries(lists, first, entries, memory);
    int64_t lowest, highest;
    int slices;
    load_pairs<WRITE>(lists, first, entries, all, terms, memory, &lowest, &highest);
    const uint32_t low = products ? (uint32_t)lowest : 0, span = products ? (uint32_t)(highest - lowest) : 0;
    const int64_t segment = WRITE ? segments_before[number] : 0, list = WRITE ? pieces_before[number] : 0;
    const int own_segments = order_products<WRITE>(products, low, span, terms.groups + number * TILE_GROUPS,
                                                   terms.segments + segment, memory);
    const int own_pieces = list_places<WRITE>(entries, (uint16_t *)(terms.lists + list), &slices, memory);
    if (!WRITE && threadIdx.x == 0) {
        segments[number] = own_segments;
        pieces[number] = own_pieces;
    }
    if (!WRITE) return;
    if (threadIdx.x == 0) terms.tile[number] = {first, segment, list, entries, products, slices, own_pieces};
    for (int i = threadIdx.x; i < entries; i += TILE_THREADS)
        terms.firsts[first + i] = terms_of(memory, i) ? memory.place[memory.start[i]] : (uint16_t)ELSEWHERE;
}

/* The products that slices do not list, to where those of their entries are. A block an entry. */
static __global__ void __launch_bounds__(TILE_THREADS) copy_crowded(pair_lists lists, product_terms terms)
{
    const long_entry own = terms.longs[blockIdx.x];
    int64_t count;
    const int64_t base = own.count > MOST_PRODUCTS ? crowded_base(lists.crowded, own.entry, &count) : 0;
    for (int64_t i = MOST_PRODUCTS + threadIdx.x; i < own.count; i += TILE_THREADS)
        terms.long_terms[own.term + i] = lists.pairs[base + i - MOST_PRODUCTS];
}

/* ---- host --------------------------------------------------------------------------------- */

/* What a plan is made from. */
struct term_source {
    device_array<uint16_t> counts;
    device_array<int64_t> bases, crowded, crowded_bases;
    device_array<uint2> pairs;
    device_array<term_totals> totals;
    pair_lists lists;
    int64_t listed; /* products that slices list */
};

static unsigned slice_grid(sp_context *context, int64_t slices)
{
    const int64_t blocks = (slices + TILE_WARPS - 1) / TILE_WARPS;
    const int64_t most = cuda_state_of(context)->processors * 32;
    return (unsigned)(blocks < most ? blocks : most);
}

static sp_status read_total(sp_context *context, const int64_t *from, int64_t *value)
{
    CUDA_CHECK(cudaMemcpyAsync(value, from, sizeof *value, cudaMemcpyDeviceToHost, stream_of(context)));
    return SP_OK;
}

/* The products of each entry of C, by the product of patterns. */
static sp_status count_entry_products(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked,
                                const sp_csr *pattern, double *products)
{
    sp_csr a_pattern = *a, b_pattern = *b, c = *pattern;
    sp_spgemm_options options = {};
    options.semiring = SP_PLUS_PAIR;
    options.mask = masked ? pattern : NULL;
    a_pattern.values = b_pattern.values = NULL;
    a_pattern.value_type = b_pattern.value_type = c.value_type = SP_F64;
    c.values = products;
    return sp_cuda_spgemm_warp_values(context, &a_pattern, &b_pattern, &options, &c);
}

static __global__ void shift_places(int64_t *places, int64_t count, int64_t by)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) places[i] += by;
}
struct is_crowded {
    const double *products;
    __device__ __forceinline__ bool operator()(int64_t entry) const { return products[entry] > MOST_PRODUCTS; }
};
static __global__ void count_others(const int64_t *entries, int64_t count, const double *products, int32_t *others)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) others[i] = (int32_t)(products[entries[i]] - MOST_PRODUCTS);
}

/* Crowded entries; their other products lie behind `listed` ones, and *total of all. */
static sp_status list_crowded(sp_context *context, const double *products, int64_t nnz, int64_t listed,
                              term_source *source, int64_t *total)
{
    enum { THREADS = 256 };
    const thrust::counting_iterator<int64_t> entries(0);
    const cudaStream_t stream = stream_of(context);
    device_array<int64_t> counted;
    device_array<int32_t> others;
    device_array<char> scratch;
    size_t bytes = 0;
    int64_t count = 0;
    CHECK(source->crowded.allocate(context, listed / MOST_PRODUCTS + 1));
    CHECK(counted.allocate(context, 1));
    const auto select = [&](void *memory) {
        return cub::DeviceSelect::If(memory, bytes, entries, source->crowded.data, counted.data, nnz,
                                     is_crowded{products}, stream);
    };
    CUDA_CHECK(select(nullptr));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(select(scratch.data));
    CHECK(read_total(context, counted.data, &count));
    CHECK(cuda_finish(context));
    *total = listed;
    if (count == 0) return SP_OK;
    CHECK(others.allocate(context, count + 1));
    CHECK(source->crowded_bases.allocate(context, count + 1));
    count_others<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(source->crowded.data, count,
                                                                                    products, others.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, count, others.data, source->crowded_bases.data));
    shift_places<<<(unsigned)(count / THREADS + 1), THREADS, 0, stream>>>(source->crowded_bases.data, count + 1,
                                                                          listed);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_total(context, source->crowded_bases.data + count, total));
    source->lists.crowded = {source->crowded.data, source->crowded_bases.data, count};
    return cuda_finish(context);
}

/* Counts and bases; *total is 0 if an entry has too many products. */
static sp_status lay_out(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                         term_source *source, int64_t *total)
{
    const int64_t slices = (pattern->nnz + 31) / 32;
    device_array<double> products;
    device_array<int32_t> totals;
    term_totals all = {};
    int64_t listed;
    CHECK(products.allocate(context, pattern->nnz));
    CHECK(totals.allocate(context, slices + 1));
    CHECK(source->totals.allocate(context, 1));
    CHECK(source->totals.fill(0, 1));
    CHECK(count_entry_products(context, a, b, masked, pattern, products.data));
    CHECK(source->counts.allocate(context, slices * 32));
    CHECK(source->bases.allocate(context, slices + 1));
    count_slices<<<slice_grid(context, slices), TILE_THREADS, 0, stream_of(context)>>>(
        pattern->nnz, slices, products.data, source->counts.data, totals.data, source->totals.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, slices, totals.data, source->bases.data));
    CUDA_CHECK(cudaMemcpyAsync(&all, source->totals.data, sizeof all, cudaMemcpyDeviceToHost, stream_of(context)));
    CHECK(read_total(context, source->bases.data + slices, &listed));
    CHECK(cuda_finish(context));
    source->lists = {pattern->nnz, slices, source->counts.data, source->bases.data, NULL, {}};
    *total = 0;
    if (all.too_many) return SP_OK;
    source->listed = listed;
    return list_crowded(context, products.data, pattern->nnz, listed, source, total);
}

static sp_status list_pairs(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                            int64_t total, term_source *source)
{
    CHECK(source->pairs.allocate(context, total));
    source->lists.pairs = source->pairs.data;
    const product_places places = {source->counts.data, source->bases.data, source->pairs.data,
                                   source->lists.crowded};
    return sp_cuda_spgemm_warp_places(context, a, b, masked, &places, pattern);
}

/* An array of a plan; *bytes grows by its size. */
template <typename T> static sp_status add_array(sp_context *context, int64_t count, int64_t *bytes, T **array)
{
    *bytes += count * (int64_t)sizeof(T);
    return cuda_allocate(context, (size_t)count * sizeof(T), (void **)array);
}

/* Tiles from pairs. */
static sp_status make_tiles(sp_context *context, const term_source *source, product_terms *terms)
{
    const int64_t tiles = (source->listed + TILE_PRODUCTS - 1) / TILE_PRODUCTS;
    device_array<int64_t> cuts, segments_before, pieces_before;
    device_array<int32_t> segments, pieces;
    int64_t all_segments, all_pieces;
    term_totals all;
    if (tiles > INT32_MAX / 2) return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%lld tiles", (long long)tiles);
    CHECK(cuts.allocate(context, tiles + 1));
    CHECK(segments.allocate(context, tiles + 1));
    CHECK(pieces.allocate(context, tiles + 1));
    CHECK(segments_before.allocate(context, tiles + 1));
    CHECK(pieces_before.allocate(context, tiles + 1));
    cut_tiles<<<slice_grid(context, source->lists.slices), TILE_THREADS, 0, stream_of(context)>>>(
        source->lists, tiles, cuts.data, source->totals.data);
    CUDA_CHECK(cudaGetLastError());
    build_tiles<false><<<(unsigned)tiles, TILE_THREADS, 0, stream_of(context)>>>(
        source->lists, cuts.data, NULL, NULL, segments.data, pieces.data, *terms, source->totals.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, tiles, segments.data, segments_before.data));
    CHECK(cuda_scan_counts(context, tiles, pieces.data, pieces_before.data));
    CHECK(read_total(context, segments_before.data + tiles, &all_segments));
    CHECK(read_total(context, pieces_before.data + tiles, &all_pieces));
    CUDA_CHECK(cudaMemcpyAsync(&all, source->totals.data, sizeof all, cudaMemcpyDeviceToHost, stream_of(context)));
    CHECK(cuda_finish(context));

    terms->tiles = tiles;
    terms->long_entries = all.long_entries;
    terms->long_count = (int64_t)all.long_terms;
    terms->longest = (int64_t)all.longest;
    CHECK(add_array(context, tiles, &terms->bytes, &terms->tile));
    CHECK(add_array(context, tiles * TILE_GROUPS, &terms->bytes, &terms->groups));
    CHECK(add_array(context, all_segments, &terms->bytes, &terms->segments));
    CHECK(add_array(context, all_pieces, &terms->bytes, &terms->lists));
    CHECK(add_array(context, source->lists.nnz, &terms->bytes, &terms->firsts));
    CHECK(add_array(context, all.long_entries, &terms->bytes, &terms->longs));
    CHECK(add_array(context, terms->long_count, &terms->bytes, &terms->long_terms));
    if (terms->longest > most_of_warp(*terms))
        CHECK(add_array(context, terms->long_count, &terms->bytes, &terms->long_values));
    build_tiles<true><<<(unsigned)tiles, TILE_THREADS, 0, stream_of(context)>>>(
        source->lists, cuts.data, segments_before.data, pieces_before.data, NULL, NULL, *terms, source->totals.data);
    CUDA_CHECK(cudaGetLastError());
    if (source->lists.crowded.count == 0) return SP_OK;
    copy_crowded<<<(unsigned)terms->long_entries, TILE_THREADS, 0, stream_of(context)>>>(source->lists, *terms);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* The same from the operands, within `room` bytes. */
static sp_status list_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                            int64_t room, product_terms *terms)
{
    term_source source = {};
    int64_t total = 0;
    CHECK(lay_out(context, a, b, masked, pattern, &source, &total));
    if (total > 0 && total <= room / (int64_t)sizeof(uint2)) {
        CHECK(list_pairs(context, a, b, masked, pattern, total, &source));
        CHECK(make_tiles(context, &source, terms));
        CHECK(cuda_finish(context));
        if (terms->bytes <= room) return SP_OK;
    }
    return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%s: %lld products are too many for a plan to list",
                   context->device_name, (long long)total);
}

sp_status cuda_make_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t products, product_terms *terms)
{
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + sp_value_size(pattern->value_type) + sizeof(uint16_t));
    size_t available;
    *terms = {};
    if (left_out("spgemm-terms")) return SP_OK;
    if (pattern->nnz == 0 || a->nnz >= UINT32_MAX || b->nnz >= UINT32_MAX) return SP_OK;
    CHECK(cuda_available(context, &available));
    /* C itself, and as much again for the operands of the next call, must have their place beside the plan. */
    const int64_t room = (int64_t)available - 2 * entry_bytes * pattern->nnz;
    if (room <= 0 || (!masked && products > room / (int64_t)sizeof(uint2))) return SP_OK;
    const sp_status status = list_terms(context, a, b, masked, pattern, room, terms);
    if (status == SP_OK) return SP_OK;
    cuda_free_terms(context, terms);
    return status == SP_ERROR_DEVICE_MEMORY ? SP_OK : status;
}
