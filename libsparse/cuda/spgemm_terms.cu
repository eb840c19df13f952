/* The numeric phase of a plan as sums of products whose places are known: for every entry of C the pairs (entry of A,
 * entry of B) that make it, in A's order.
 *
 * A warp sums a slice of 32 neighbouring entries of C, a lane each. The slice lists the first products of all of them,
 * then the second ones, and so on, each time only of entries that have as many, so that lanes load side by side and
 * nothing is padded; neighbours in C mostly share an entry of A and have neighbours in B. Every sum runs in A's order,
 * as in the other kernels: the bits are the same.
 *
 * Bytes: 8 a product from memory, and the two values, mostly from caches; 2 an entry of C for its products, its value.
 * No look-up, no shared memory, no order to keep between lanes. Made in two runs of the kernels that look products up:
 * one counts the products of each entry, one puts the pairs where they belong (put_product in warp.cuh).
 */
#include "terms.cuh"
#include "warp.cuh"

enum { TERM_THREADS = 256, MOST_PRODUCTS = UINT16_MAX };

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

/* Products of entries and slices; *too_many if an entry has more than a count holds. */
static __global__ void __launch_bounds__(TERM_THREADS)
    count_slices(int64_t nnz, int64_t slices, const float *products, uint16_t *counts, int32_t *totals, int *too_many)
{
    const int lane = threadIdx.x & 31;
    for (int64_t slice = ((int64_t)blockIdx.x * TERM_THREADS + threadIdx.x) / 32; slice < slices;
         slice += (int64_t)gridDim.x * TERM_THREADS / 32) {
        const int64_t entry = slice * 32 + lane;
        const unsigned count = entry < nnz ? (unsigned)products[entry] : 0;
        if (count > MOST_PRODUCTS) *too_many = 1;
        counts[entry] = (uint16_t)count;
        const unsigned total = warp_add(min(count, (unsigned)MOST_PRODUCTS));
        if (lane == 0) totals[slice] = (int32_t)total;
    }
}

/* AHEAD products of an entry are on their way at once: 2 let a multiprocessor hold 64 warps, 4 let it hold 40. (Loading a slice's counts and terms before the sums of the slice
 * before it costs registers, and so warps: 20 to 60 % slower.) */
template <typename V, bool PLAIN, int AHEAD>
static __global__ void __launch_bounds__(TERM_THREADS)
    sum_terms(int64_t nnz, int64_t slices, product_places places, row_product<V> product, V *values)
{
    const int lane = threadIdx.x & 31;
    for (int64_t slice = ((int64_t)blockIdx.x * TERM_THREADS + threadIdx.x) / 32; slice < slices;
         slice += (int64_t)gridDim.x * TERM_THREADS / 32) {
        const unsigned count = places.counts[slice * 32 + lane];
        const uint2 *at = places.terms + places.bases[slice];
        double sum = no_sum<PLAIN>();
        for (unsigned number = 0; __any_sync(FULL_WARP, number < count); number += AHEAD) {
            uint2 term[AHEAD];
            V a[AHEAD], b[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                const bool more = number + u < count;
                const unsigned all = __ballot_sync(FULL_WARP, more);
                if (more) term[u] = __ldcs(at + __popc(all & lanes_below()));
                at += __popc(all);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                a[u] = b[u] = 1;
                if (number + u >= count) continue;
                if (PLAIN || product.a.values) a[u] = __ldg(product.a.values + term[u].x);
                if (PLAIN || product.b.values) b[u] = __ldg(product.b.values + term[u].y);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (number + u < count)
                    add_to<PLAIN>(product, &sum, multiply<PLAIN>(product, (double)a[u], (double)b[u]));
        }
        if (slice * 32 + lane < nnz) values[slice * 32 + lane] = (V)sum;
    }
}

static unsigned slice_grid(sp_context *context, int64_t slices)
{
    const int64_t blocks = (slices + TERM_THREADS / 32 - 1) / (TERM_THREADS / 32);
    const int64_t most = cuda_state_of(context)->processors * 32;
    return (unsigned)(blocks < most ? blocks : most);
}

/* The products of each entry of C, by the product of patterns. */
static sp_status count_products(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked,
                                const sp_csr *pattern, float *products)
{
    sp_csr a_pattern = *a, b_pattern = *b, c = *pattern;
    sp_spgemm_options options = {};
    options.semiring = SP_PLUS_PAIR;
    options.mask = masked ? pattern : NULL;
    a_pattern.values = b_pattern.values = NULL;
    a_pattern.value_type = b_pattern.value_type = c.value_type = SP_F32;
    c.values = products;
    return sp_cuda_spgemm_warp_values(context, &a_pattern, &b_pattern, &options, &c);
}

/* Counts and bases; *total is 0 if an entry has too many products. */
static sp_status lay_out(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                         product_terms *terms, int64_t *total)
{
    const int64_t slices = terms->slices;
    device_array<float> products;
    device_array<int32_t> totals;
    device_array<int> too_many;
    int overflow = 0;
    TRY(products.allocate(context, pattern->nnz));
    TRY(totals.allocate(context, slices + 1));
    TRY(too_many.allocate(context, 1));
    TRY(too_many.fill(0, 1));
    TRY(count_products(context, a, b, masked, pattern, products.data));
    TRY(cuda_allocate(context, (size_t)slices * 32 * sizeof(uint16_t), (void **)&terms->counts));
    TRY(cuda_allocate(context, ((size_t)slices + 1) * sizeof(int64_t), (void **)&terms->bases));
    count_slices<<<slice_grid(context, slices), TERM_THREADS, 0, stream_of(context)>>>(
        pattern->nnz, slices, products.data, terms->counts, totals.data, too_many.data);
    CUDA_TRY(cudaGetLastError());
    TRY(cuda_scan_counts(context, slices, totals.data, terms->bases));
    CUDA_TRY(cudaMemcpyAsync(&overflow, too_many.data, sizeof overflow, cudaMemcpyDeviceToHost, stream_of(context)));
    CUDA_TRY(cudaMemcpyAsync(total, terms->bases + slices, sizeof *total, cudaMemcpyDeviceToHost, stream_of(context)));
    TRY(cuda_finish(context));
    if (overflow) *total = 0;
    return SP_OK;
}

static sp_status list_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                            int64_t room, product_terms *terms)
{
    int64_t total = 0;
    terms->slices = (pattern->nnz + 31) / 32;
    TRY(lay_out(context, a, b, masked, pattern, terms, &total));
    if (total == 0 || total > room / (int64_t)sizeof(uint2))
        return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%s: %lld products are too many for a plan to list",
                       context->device_name, (long long)total);
    TRY(cuda_allocate(context, (size_t)total * sizeof(uint2), (void **)&terms->terms));
    terms->total = total;
    terms->bytes = total * (int64_t)sizeof(uint2) + terms->slices * (int64_t)(32 * sizeof(uint16_t) + sizeof(int64_t));
    const product_places places = {terms->counts, terms->bases, terms->terms};
    return sp_cuda_spgemm_warp_places(context, a, b, masked, &places, pattern);
}

sp_status cuda_make_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t products, product_terms *terms)
{
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + sp_value_size(pattern->value_type) + sizeof(uint16_t));
    size_t available;
    *terms = {};
    if (pattern->nnz == 0 || a->nnz >= UINT32_MAX || b->nnz >= UINT32_MAX) return SP_OK;
    TRY(cuda_available(context, &available));
    /* C itself, and as much again for the operands of the next call, must have their place beside the plan. */
    const int64_t room = (int64_t)available - 2 * entry_bytes * pattern->nnz;
    if (room <= 0 || (!masked && products > room / (int64_t)sizeof(uint2))) return SP_OK;
    const sp_status status = list_terms(context, a, b, masked, pattern, room, terms);
    if (status == SP_OK) return SP_OK;
    cuda_free_terms(context, terms);
    return status == SP_ERROR_DEVICE_MEMORY ? SP_OK : status;
}

void cuda_free_terms(sp_context *context, product_terms *terms)
{
    cuda_release(context, terms->terms);
    cuda_release(context, terms->bases);
    cuda_release(context, terms->counts);
    *terms = {};
}

template <typename V, bool PLAIN>
static sp_status launch_sums(sp_context *context, const product_terms *terms, const row_product<V> &product, sp_csr *c)
{
    const product_places places = {terms->counts, terms->bases, terms->terms};
    const bool few = terms->total < 4 * c->nnz;
    auto kernel = few ? sum_terms<V, PLAIN, 2> : sum_terms<V, PLAIN, 4>;
    kernel<<<slice_grid(context, terms->slices), TERM_THREADS, 0, stream_of(context)>>>(c->nnz, terms->slices, places,
                                                                                      product, (V *)c->values);
    CUDA_TRY(cudaGetLastError());
    return cuda_finish(context);
}

template <typename V>
static sp_status sum_of(sp_context *context, const product_terms *terms, const sp_csr *a, const sp_csr *b,
                        sp_semiring semiring, sp_csr *c)
{
    const row_product<V> product = {view_of<V>(a), view_of<V>(b), b->cols, semiring, NULL, NULL, false, {}};
    if (semiring == SP_PLUS_TIMES && a->values && b->values)
        return launch_sums<V, true>(context, terms, product, c);
    return launch_sums<V, false>(context, terms, product, c);
}

sp_status cuda_sum_terms(sp_context *context, const product_terms *terms, const sp_csr *a, const sp_csr *b,
                         sp_semiring semiring, sp_csr *c)
{
    return c->value_type == SP_F32 ? sum_of<float>(context, terms, a, b, semiring, c)
                                   : sum_of<double>(context, terms, a, b, semiring, c);
}
