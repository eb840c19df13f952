/* Between two levels of a hierarchy on a CUDA device: the weights of groups, and a quotient that is symmetric to the
 * last bit. */
#include "rounds.cuh"

/* ---- weights of groups ------------------------------------------------------------------------------------- */

/* The nodes of a group follow each other, ascending; the thread at the first of them adds in their order. */
static __global__ void __launch_bounds__(THREADS)
    add_members(const int32_t *labels, const int32_t *nodes, const double *weights, int64_t count, double *sums)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count || (i > 0 && labels[i - 1] == labels[i])) return;
    double sum = 0;
    for (int64_t k = i; k < count && labels[k] == labels[i]; k++) sum += weights[nodes[k]];
    sums[labels[i]] = sum;
}

sp_status contraction_cuda_add_weights(sp_context *context, const int32_t *labels, int64_t nodes, int64_t groups,
                                       double *weights)
{
    const device_scope scope(context);
    CHECK(scope.status);
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> numbers, sorted, members;
    device_array<double> sums;
    int bits = 1;
    if (nodes == 0) return SP_OK;
    while (bits < 31 && (int64_t)1 << bits < groups) bits++;
    CHECK(numbers.allocate(context, nodes));
    CHECK(sorted.allocate(context, nodes));
    CHECK(members.allocate(context, nodes));
    CHECK(sums.allocate(context, groups));
    number<<<blocks_for(nodes, THREADS), THREADS, 0, stream>>>(numbers.data, nodes);
    CUDA_CHECK(cudaGetLastError());
    CHECK(with_scratch(context, [&](void *scratch, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, labels, sorted.data, numbers.data, members.data, nodes,
                                               0, bits, stream);
    }));
    add_members<<<blocks_for(nodes, THREADS), THREADS, 0, stream>>>(sorted.data, members.data, weights, nodes,
                                                                    sums.data);
    CUDA_CHECK(cudaGetLastError());
    return sp_array_copy(context, groups, sizeof *weights, weights, SP_DEVICE, sums.data, SP_DEVICE);
}

/* ---- mirror images ----------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) compare_patterns(const sp_csr a, const sp_csr b, int *differ)
{
    const int64_t step = (int64_t)gridDim.x * THREADS, start = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    bool same = true;
    for (int64_t i = start; i <= a.rows; i += step) same &= a.row_offsets[i] == b.row_offsets[i];
    for (int64_t k = start; k < a.nnz; k += step) same &= a.col_indices[k] == b.col_indices[k];
    if (!same) *differ = 1;
}

/* A warp a row: values above the diagonal from the transpose, whose values there are those below. */
template <typename V> static __global__ void __launch_bounds__(THREADS) take_upper(const sp_csr transpose,
                                                                                   const sp_csr c)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    if (row >= c.rows) return;
    for (int64_t k = c.row_offsets[row] + threadIdx.x % 32; k < c.row_offsets[row + 1]; k += 32)
        if (c.col_indices[k] > row) ((V *)c.values)[k] = ((const V *)transpose.values)[k];
}

static sp_status mirror_by(sp_context *context, const sp_csr *transpose, sp_csr *c, bool *symmetric)
{
    const cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_for(c->rows * 32 + 1, THREADS);
    device_array<int> differ;
    int host;
    CHECK(differ.allocate(context, 1));
    CHECK(differ.fill(0, 1));
    compare_patterns<<<blocks_for((c->nnz > c->rows ? c->nnz : c->rows) + 1, THREADS * 16), THREADS, 0, stream>>>(
        *c, *transpose, differ.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(read_counts(context, differ.data, 1, &host));
    *symmetric = !host;
    if (host || !c->values) return SP_OK;
    if (c->value_type == SP_F32) take_upper<float><<<blocks, THREADS, 0, stream>>>(*transpose, *c);
    else take_upper<double><<<blocks, THREADS, 0, stream>>>(*transpose, *c);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

sp_status contraction_cuda_mirror(sp_context *context, sp_csr *c, bool *symmetric)
{
    const device_scope scope(context);
    CHECK(scope.status);
    sp_csr transpose = {};
    CHECK(sp_csr_transpose(context, c, &transpose));
    const sp_status status = mirror_by(context, &transpose, c, symmetric);
    sp_csr_free(context, &transpose);
    return status;
}
