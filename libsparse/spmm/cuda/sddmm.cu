/* values[e] = Σ_k X(i, k) · Y(j, k) for the entries e = (i, j) of A, and the softmax over the entries of a row.
 *
 * The products: every group of lanes takes 32 entries, whatever their rows. A block finds the rows of its first and
 * last entry by bisection of A's offsets, and its groups search between them. Lanes share the columns, 16 bytes each.
 * The row of X stays in the first-level cache, and four entries of a row are gathered at a time. 4 · (width + 2) bytes
 * an entry. No sum crosses groups, so results have the same bits in every run.
 *
 * The softmax: a warp takes a row, a block a row of more than 2,048 entries. Three passes over the row, which stays in
 * the caches, form the largest, the sum of exponentials and the quotients. Sums are f64.
 */
#include "base/search.h"
#include "device/common.cuh"
#include "spmm/cuda/packet.cuh"

enum { THREADS = 256, GROUP_ENTRIES = 32, AT_ONCE = 4, LONG_ROW = 2048 };

struct sddmm_product {
    const int64_t *offsets;
    const int32_t *cols;
    int64_t rows, nnz;
    const void *x, *y;
    uint32_t x_bytes, y_bytes; /* from a row to the next */
    int32_t width;
};

/* The products of `count` entries of a row, at most AT_ONCE, in every lane of the group. */
template <typename T, int V, int LANES>
static __device__ __forceinline__ void multiply_some(const sddmm_product &p, int64_t row, int64_t at, int count,
                                                     unsigned mask, T (&sum)[AT_ONCE])
{
    const char *x = row_of_x((const char *)p.x, (int32_t)row, p.x_bytes), *y[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
        sum[u] = 0;
        y[u] = row_of_x((const char *)p.y, u < count ? __ldg(p.cols + at + u) : 0, p.y_bytes);
    }
    for (int32_t k = (int32_t)(threadIdx.x % LANES) * V; k < p.width; k += LANES * V) {
        packet<T, V> a, b[AT_ONCE];
        a.load((const T *)x + k);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) b[u].load_if(u < count, (const T *)y[u] + k);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
            for (int v = 0; v < V; v++) sum[u] = fused(a.part[v], b[u].part[v], sum[u]);
    }
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) sum[u] += __shfl_xor_sync(mask, sum[u], step);
}

template <typename T, int V, int LANES>
static __global__ void __launch_bounds__(THREADS) sample_products(const sddmm_product p, T *values)
{
    constexpr int GROUPS = THREADS / LANES;
    __shared__ int64_t bound[2];
    const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const unsigned mask = LANES == 32 ? FULL_WARP
                                      : ((1u << LANES % 32) - 1) << (threadIdx.x % 32 / LANES * LANES);
    const int64_t block = (int64_t)blockIdx.x * (GROUPS * GROUP_ENTRIES);
    if (threadIdx.x < 2)
        bound[threadIdx.x] = row_of_entry(p.offsets, p.rows,
                                          threadIdx.x ? min(block + GROUPS * GROUP_ENTRIES, p.nnz) - 1 : block);
    __syncthreads();
    int64_t at = block + group * GROUP_ENTRIES;
    const int64_t end = min(at + GROUP_ENTRIES, p.nnz);
    if (at >= end) return;
    int64_t row = upper_bound_i64(p.offsets, bound[0], bound[1] + 1, at) - 1, row_end = __ldg(p.offsets + row + 1);
    while (at < end) {
        while (row_end <= at) row_end = __ldg(p.offsets + ++row + 1);
        const int count = (int)min(min(row_end, end) - at, (int64_t)AT_ONCE);
        T sum[AT_ONCE];
        multiply_some<T, V, LANES>(p, row, at, count, mask, sum);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (lane == u && u < count) values[at + u] = sum[u];
        at += count;
    }
}

template <typename T, int V, int LANES>
static sp_status launch_products(sp_context *context, const sddmm_product &product, void *values)
{
    constexpr int64_t ENTRIES = THREADS / LANES * GROUP_ENTRIES;
    sample_products<T, V, LANES><<<(unsigned)((product.nnz + ENTRIES - 1) / ENTRIES), THREADS, 0,
                                   cuda_state_of(context)->stream>>>(product, (T *)values);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template <typename T>
static sp_status sample(sp_context *context, const sddmm_product &product, bool aligned, void *values)
{
    constexpr int WHOLE = 16 / sizeof(T);
    const int packets = product.width / WHOLE;
    if (!aligned) return launch_products<T, 1, 8>(context, product, values);
    return packets <= 4    ? launch_products<T, WHOLE, 4>(context, product, values)
           : packets <= 24 ? launch_products<T, WHOLE, 8>(context, product, values)
                           : launch_products<T, WHOLE, 32>(context, product, values);
}

static bool is_aligned(const sp_dense *matrix, size_t size)
{
    return (size_t)matrix->cols * size % 16 == 0 && (size_t)matrix->stride * size % 16 == 0 &&
           (uintptr_t)matrix->values % 16 == 0;
}

sp_status sp_cuda_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values)
{
    const size_t size = x->type == SP_DENSE_F32 ? 4 : 8;
    if ((size_t)x->stride * size > UINT32_MAX || (size_t)y->stride * size > UINT32_MAX || x->cols > INT32_MAX / 2)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "rows of X and Y of %lld columns, %lld and %lld apart",
                       (long long)x->cols, (long long)x->stride, (long long)y->stride);
    for (int64_t b = 0; b < sp_dense_batch(x) && a->nnz > 0; b++) {
        const sp_dense own_x = sp_dense_of(x, b), own_y = sp_dense_of(y, b);
        const sddmm_product product = {a->row_offsets, a->col_indices, a->rows, a->nnz, own_x.values, own_y.values,
                                       (uint32_t)((size_t)x->stride * size), (uint32_t)((size_t)y->stride * size),
                                       (int32_t)x->cols};
        const bool aligned = is_aligned(&own_x, size) && is_aligned(&own_y, size);
        char *const own = (char *)values + (size_t)(b * a->nnz) * size;
        if (size == 4) CHECK(sample<float>(context, product, aligned, own));
        else CHECK(sample<double>(context, product, aligned, own));
    }
    return cuda_finish(context);
}

/* ---- softmax over the entries of a row ------------------------------------------------------------------- */

static __device__ __forceinline__ float exponential(float x) { return expf(x); }
static __device__ __forceinline__ double exponential(double x) { return exp(x); }

template <typename T> struct softmax_rows {
    T *values;

    template <typename Reduce>
    __device__ void work(int64_t begin, int64_t end, int thread, int threads, Reduce reduce)
    {
        T most = -INFINITY;
        double sum = 0;
        for (int64_t at = begin + thread; at < end; at += threads) most = values[at] > most ? values[at] : most;
        most = reduce(most, max_op());
        for (int64_t at = begin + thread; at < end; at += threads) {
            values[at] = exponential(values[at] - most);
            sum += (double)values[at];
        }
        sum = reduce(sum, add_op());
        for (int64_t at = begin + thread; at < end; at += threads) values[at] = (T)((double)values[at] / sum);
    }
};

template <typename T> struct softmax_gradients {
    const T *softmax;
    T *gradient;

    template <typename Reduce>
    __device__ void work(int64_t begin, int64_t end, int thread, int threads, Reduce reduce)
    {
        double sum = 0;
        for (int64_t at = begin + thread; at < end; at += threads) sum += (double)softmax[at] * (double)gradient[at];
        sum = reduce(sum, add_op());
        for (int64_t at = begin + thread; at < end; at += threads)
            gradient[at] = (T)((double)softmax[at] * ((double)gradient[at] - sum));
    }
};

/* A warp a row; then the block's long rows, by all its warps. */
template <typename Rows>
static __global__ void __launch_bounds__(THREADS) work_rows(int64_t rows, const int64_t *offsets, Rows work)
{
    __shared__ uint64_t scratch[THREADS / 32];
    const int64_t first = (int64_t)blockIdx.x * (THREADS / 32), row = first + threadIdx.x / 32;
    const auto in_warp = [](auto value, auto op) { return block_reduce<32>(value, op, nullptr); };
    const auto in_block = [](auto value, auto op) { return block_reduce<THREADS>(value, op, scratch); };
    bool is_long = false;
    if (row < rows) {
        const int64_t begin = offsets[row], end = offsets[row + 1];
        is_long = end - begin > LONG_ROW;
        if (!is_long) work.work(begin, end, threadIdx.x % 32, 32, in_warp);
    }
    if (!__syncthreads_or(is_long)) return;
    for (int64_t i = first; i < min(first + THREADS / 32, rows); i++)
        if (offsets[i + 1] - offsets[i] > LONG_ROW)
            work.work(offsets[i], offsets[i + 1], threadIdx.x, THREADS, in_block);
}

template <typename Rows> static sp_status launch_rows(sp_context *context, const sp_csr *a, Rows work)
{
    constexpr int64_t ROWS = THREADS / 32;
    if (a->nnz == 0) return SP_OK;
    work_rows<<<(unsigned)((a->rows + ROWS - 1) / ROWS), THREADS, 0, cuda_state_of(context)->stream>>>(
        a->rows, a->row_offsets, work);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template <typename T> static sp_status soften(sp_context *context, const sp_csr *a, int64_t heads, T *values)
{
    for (int64_t h = 0; h < heads; h++) CHECK(launch_rows(context, a, softmax_rows<T>{values + h * a->nnz}));
    return cuda_finish(context);
}

sp_status sp_cuda_edge_softmax(sp_context *context, const sp_csr *a, int64_t heads, void *values)
{
    return a->value_type == SP_F32 ? soften(context, a, heads, (float *)values)
                                   : soften(context, a, heads, (double *)values);
}

template <typename T>
static sp_status soften_backward(sp_context *context, const sp_csr *a, int64_t heads, const T *softmax, T *gradient)
{
    for (int64_t h = 0; h < heads; h++)
        CHECK(launch_rows(context, a, softmax_gradients<T>{softmax + h * a->nnz, gradient + h * a->nnz}));
    return cuda_finish(context);
}

sp_status sp_cuda_edge_softmax_backward(sp_context *context, const sp_csr *a, int64_t heads, const void *softmax,
                                        void *gradient)
{
    return a->value_type == SP_F32
               ? soften_backward(context, a, heads, (const float *)softmax, (float *)gradient)
               : soften_backward(context, a, heads, (const double *)softmax, (double *)gradient);
}
