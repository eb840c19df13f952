/* C = A ∘ B on a CUDA device. Each entry of the matrix with fewer entries is searched for in the other's row. A bit
 * says whether it was found, and those that were are moved up with their products (entries.cuh).
 *
 * The lanes of a warp search neighbouring columns of the same row or of neighbouring ones, so their probes share lines
 * of the first-level cache. Bytes an entry of the smaller matrix: 4 for its column, those that the probes touch in the
 * other's row, v of each for a product found and v to keep it, twice 4 + v to move it, a quarter for bits and their
 * sums. */
#include "device/entries.cuh"

/* `products` may be NULL. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_pairs(int64_t rows, int64_t nnz, matrix_view<V> a, matrix_view<V> b, V *products, uint32_t *words)
{
    const auto paired = [&](int64_t row, int64_t at) {
        const int32_t column = __ldg(a.cols + at);
        const int64_t end = __ldg(b.offsets + row + 1);
        const int64_t found = lower_bound_i32(b.cols, __ldg(b.offsets + row), end, column);
        const bool pair = found < end && __ldg(b.cols + found) == column;
        if (pair && products)
            products[at] = (a.values ? __ldg(a.values + at) : V(1)) * (b.values ? __ldg(b.values + found) : V(1));
        return pair;
    };
    for_entries(rows, nnz, a.offsets, paired, [&](int64_t at, bool pair) { mark_entry(words, nnz, at, pair); });
}

template <typename V> static sp_status hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<V> products;
    marked_part pairs;
    sp_csr multiplied = *a;
    multiplied.values = NULL;
    if (a->values || b->values) {
        CHECK(products.allocate(context, a->nnz));
        multiplied.values = products.data;
    }
    CHECK(pairs.create(context, a->nnz));
    if (a->nnz > 0)
        mark_pairs<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->rows, a->nnz, view_of<V>(a), view_of<V>(b),
                                                                      (V *)multiplied.values, pairs.words.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(pairs.count(context, a->nnz));
    CHECK(cuda_take_marked(context, &multiplied, &pairs, a->cols, NULL, c));
    const sp_status status = cuda_finish(context);
    if (status != SP_OK) sp_csr_free(context, c);
    return status;
}

sp_status sp_cuda_hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    const sp_csr *fewer = a->nnz <= b->nnz ? a : b, *other = fewer == a ? b : a;
    return a->value_type == SP_F32 ? hadamard<float>(context, fewer, other, c)
                                   : hadamard<double>(context, fewer, other, c);
}
