/* The numeric phase of a plan: C's values from products whose places are known, tile by tile.
 *
 * A tile is a range of C's entries, whatever their rows, with some 3,000 products. A block forms these in shared
 * memory in the order of A and B, so that rows of B are read as they lie, then adds up each entry's at the place of
 * its first one, then writes the sums in C's order. No look-up, no atomics, no order to keep between lanes: every sum
 * runs in A's order, as in the other kernels, and has their bits.
 *   - Products come in segments: neighbours in B by the same entry of A. 8 bytes a segment, and a bit a product that
 *     says where one begins.
 *   - Entries of several products list the places of these, 2 bytes each, in slices of 32 entries, a lane each. They
 *     are sorted by how many they have (SELL, Kreutzer et al. 2014, with a tile as its window): without that a slice
 *     waits for its longest entry, 5 times the work in R-MAT graphs.
 *   - Entries of more than MOST_TERMS products are summed by a warp each, from pairs of an entry of A and one of B, and
 *     those of more than most_of_warp by the device (long_sums.cuh).
 *
 * Bytes a product: v of B from L2, 2.3 to 3.5 of the plan from memory, 5 where rows of B are as short as in road
 * networks. An entry of C: 2, and its value.
 *
 * tiles.cu makes the plan.
 */
#include <cuda_pipeline.h>

#include "spgemm/cuda/plan/terms.cuh"
#include "spgemm/cuda/walk.cuh"

/* ---- device: sums ---------------------------------------------------------------------------------------- */

struct tile_memory {
    double term[TILE_MOST + 1];
    uint4 list[LIST_PIECES];
};

/* The product of two entries. */
template <bool PLAIN, typename V>
static __device__ __forceinline__ double product_at(const product_view<V> &product, uint2 pair)
{
    const V a = PLAIN || product.a.values ? __ldg(product.a.values + pair.x) : V(1);
    const V b = PLAIN || product.b.values ? __ldg(product.b.values + pair.y) : V(1);
    return multiply<PLAIN>(product, (double)a, (double)b);
}

/* A tile's products. A warp takes every eighth group, AHEAD of them on their way at once. */
template <bool PLAIN, int AHEAD, typename V>
static __device__ __forceinline__ void form_terms(const product_view<V> &product, const product_terms &terms,
                                                  const product_tile &tile, uint2 groups, double *term)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const unsigned up_to = lanes_below() * 2 + 1;
    const uint2 *segments = terms.segments + tile.segment;
#pragma unroll 1
    for (int i = 0; (i * TILE_WARPS + warp) * 32 < tile.products; i += AHEAD) {
        const int place = (i * TILE_WARPS + warp) * 32 + lane;
        uint2 pair[AHEAD];
        V a[AHEAD], b[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const unsigned heads = __shfl_sync(FULL_WARP, groups.x, i + u);
            const unsigned before = __shfl_sync(FULL_WARP, groups.y, i + u);
            if (place + u * TILE_THREADS >= tile.products) continue;
            pair[u] = __ldg(segments + (before + __popc(heads & up_to) - 1));
            pair[u].y += place + u * TILE_THREADS;
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            a[u] = b[u] = 1;
            if (place + u * TILE_THREADS >= tile.products) continue;
            if (PLAIN || product.a.values) a[u] = __ldg(product.a.values + pair[u].x);
            if (PLAIN || product.b.values) b[u] = __ldg(product.b.values + pair[u].y);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (place + u * TILE_THREADS < tile.products)
                term[place + u * TILE_THREADS] = multiply<PLAIN>(product, (double)a[u], (double)b[u]);
    }
}

/* Adds up the products of entries that have several, a slice a warp. */
template <bool PLAIN, typename V>
static __device__ __forceinline__ void add_terms(const product_view<V> &product, int slices, const uint16_t *list,
                                                 double *term)
{
    enum { AHEAD = 4 };
    for (int slice = threadIdx.x / 32; slice < slices; slice += TILE_WARPS) {
        const int begin = list[slice], width = list[slice + 1] - begin;
        const uint16_t *own = list + begin * 32 + (threadIdx.x & 31);
        const int first = own[0];
        double sum = term[first];
        for (int d = 1; d < width; d += AHEAD) {
            int place[AHEAD];
            double more[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) place[u] = d + u < width ? own[(d + u) * 32] : NO_TERM;
#pragma unroll
            for (int u = 0; u < AHEAD; u++) more[u] = term[place[u]];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (PLAIN || place[u] != NO_TERM) sum = combine<PLAIN>(product, sum, more[u]);
        }
        if (first != NO_TERM) term[first] = sum;
    }
}

/* A tile a block. */
template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(TILE_THREADS, MOST_THREADS / TILE_THREADS - !PLAIN)
    sum_tiles(product_terms terms, product_view<V> product, V *values)
{
    enum { AHEAD = 4, WRITES = 4 };
    __shared__ tile_memory memory;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t number = blockIdx.x;
    const uint2 *own_groups = terms.groups + number * TILE_GROUPS + lane * TILE_WARPS + warp;
    const uint2 groups = lane < WARP_GROUPS ? __ldcs(own_groups) : make_uint2(0, 0);
    const product_tile tile = terms.tile[number];
    const bool staged = tile.pieces <= LIST_PIECES;
    for (int i = threadIdx.x; staged && i < tile.pieces; i += TILE_THREADS)
        __pipeline_memcpy_async(memory.list + i, terms.lists + tile.list + i, sizeof(uint4));
    __pipeline_commit();
    if (threadIdx.x == 0) memory.term[NO_TERM] = -0.0;
    form_terms<PLAIN, AHEAD>(product, terms, tile, groups, memory.term);
    __pipeline_wait_prior(0);
    __syncthreads();

    if (staged) add_terms<PLAIN>(product, tile.slices, (const uint16_t *)memory.list, memory.term);
    else add_terms<PLAIN>(product, tile.slices, (const uint16_t *)(terms.lists + tile.list), memory.term);

    const uint16_t *firsts = terms.firsts + tile.entry;
    for (int base = threadIdx.x, round = 0; base - (int)threadIdx.x < tile.entries; base += WRITES * TILE_THREADS) {
        int first[WRITES];
#pragma unroll
        for (int u = 0; u < WRITES; u++)
            first[u] = base + u * TILE_THREADS < tile.entries ? __ldcs(firsts + base + u * TILE_THREADS) : ELSEWHERE;
        if (round++ == 0) __syncthreads(); /* the sums are complete; the places to write are being loaded */
#pragma unroll
        for (int u = 0; u < WRITES; u++)
            if (first[u] != ELSEWHERE) values[tile.entry + base + u * TILE_THREADS] = (V)memory.term[first[u]];
    }
}

/* ---- device: long entries -------------------------------------------------------------------------------- */

enum { LONG_THREADS = 128, FORMED = 8 };

/* Long entries of up to `most` products, a warp each. */
template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(LONG_THREADS)
    sum_long_entries(product_terms terms, product_view<V> product, int64_t most, V *values)
{
    __shared__ double tiles[PLAIN ? LONG_THREADS / 32 : 1][SUM_PLACES];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t number = (int64_t)blockIdx.x * (LONG_THREADS / 32) + warp;
    if (number >= terms.long_entries) return;
    const long_entry own = terms.longs[number];
    const uint2 *pairs = terms.long_terms + own.term;
    double sum = no_sum<PLAIN>();
    if (own.count > most) return;
    if constexpr (PLAIN) {
        const auto load = [&](int64_t at) { return product_at<PLAIN>(product, __ldg(pairs + at)); };
        sum = sum_loaded(load, own.count, tiles[warp]);
    } else {
        double next = product_at<PLAIN>(product, pairs[min((int64_t)lane, own.count - 1)]);
        for (int64_t base = 0; base < own.count; base += 32) {
            const double now = next;
            const int count = (int)min(own.count - base, (int64_t)32);
            if (base + 32 < own.count) next = product_at<PLAIN>(product, pairs[min(base + 32 + lane, own.count - 1)]);
            for (int i = 0; i < count; i++) add_to<PLAIN>(product, &sum, __shfl_sync(FULL_WARP, now, i));
        }
    }
    if (lane == 0) values[own.entry] = (V)sum;
}

/* Forms the products of all long entries, and lists the entries of more than `most` products. */
template <typename V>
static __global__ void __launch_bounds__(TILE_THREADS)
    form_long_values(product_terms terms, product_view<V> product, int64_t most, long_runs *longest)
{
    const int64_t begin = (int64_t)blockIdx.x * TILE_THREADS * FORMED + threadIdx.x;
    uint2 pair[FORMED];
#pragma unroll
    for (int u = 0; u < FORMED; u++)
        if (begin + u * TILE_THREADS < terms.long_count) pair[u] = __ldcs(terms.long_terms + begin + u * TILE_THREADS);
#pragma unroll
    for (int u = 0; u < FORMED; u++)
        if (begin + u * TILE_THREADS < terms.long_count)
            terms.long_values[begin + u * TILE_THREADS] = product_at<true>(product, pair[u]);
    for (int64_t i = (int64_t)blockIdx.x * TILE_THREADS + threadIdx.x; i < terms.long_entries;
         i += (int64_t)gridDim.x * TILE_THREADS)
        if (terms.longs[i].count > most) add_long_run(longest, terms.longs[i].term, terms.longs[i].count, (int32_t)i);
}

/* The sum of the long entry that is a run's place. */
template <typename V> struct write_long_entry {
    const long_entry *longs;
    V *values;
    __device__ __forceinline__ void operator()(const long_run &run, double sum) const
    {
        values[longs[run.place].entry] = (V)sum;
    }
};

void cuda_free_terms(sp_context *context, product_terms *terms)
{
    void *const arrays[] = {terms->tile,   terms->groups, terms->segments,  terms->lists,
                            terms->firsts, terms->longs,  terms->long_terms, terms->long_values};
    for (void *array : arrays) cuda_release(context, array);
    *terms = {};
}

/* ---- host: sums ------------------------------------------------------------------------------------------ */

/* Long entries: those that the device sums, then a warp each. */
template <typename V>
static sp_status sum_longs(sp_context *context, const product_terms &terms, const product_view<V> &product, bool plain,
                           V *values)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const bool has_longest = plain && terms.long_values && terms.long_entries <= INT32_MAX;
    const int64_t most = has_longest ? most_of_warp(terms) : INT64_MAX;
    device_array<long_runs> longest;
    if (has_longest) {
        CHECK(longest.allocate(context, 1));
        CHECK(longest.fill(0, 1));
        form_long_values<<<(unsigned)ceil_div(terms.long_count, TILE_THREADS * FORMED), TILE_THREADS, 0, stream>>>(
            terms, product, most, longest.data);
        CUDA_CHECK(cudaGetLastError());
        CHECK(cuda_sum_long_runs(context, (const double *)terms.long_values, longest.data, terms.long_count,
                                 write_long_entry<V>{terms.longs, values}));
    }
    const auto kernel = plain ? sum_long_entries<V, true> : sum_long_entries<V, false>;
    kernel<<<(unsigned)ceil_div(terms.long_entries, LONG_THREADS / 32), LONG_THREADS, 0, stream>>>(terms, product, most,
                                                                                               values);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template <typename V>
static sp_status sum_of(sp_context *context, const product_terms *terms, const sp_csr *a, const sp_csr *b,
                        sp_semiring semiring, sp_csr *c)
{
    const product_view<V> product = {view_of<V>(a), view_of<V>(b), b->cols, semiring, NULL, NULL, false, {}};
    const bool plain = semiring == SP_PLUS_TIMES && a->values && b->values;
    auto kernel = plain ? sum_tiles<V, true> : sum_tiles<V, false>;
    if (terms->long_entries > 0) CHECK(sum_longs(context, *terms, product, plain, (V *)c->values));
    kernel<<<(unsigned)terms->tiles, TILE_THREADS, 0, cuda_state_of(context)->stream>>>(*terms, product,
                                                                                        (V *)c->values);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

sp_status cuda_sum_terms(sp_context *context, const product_terms *terms, const sp_csr *a, const sp_csr *b,
                         sp_semiring semiring, sp_csr *c)
{
    return c->value_type == SP_F32 ? sum_of<float>(context, terms, a, b, semiring, c)
                                   : sum_of<double>(context, terms, a, b, semiring, c);
}
