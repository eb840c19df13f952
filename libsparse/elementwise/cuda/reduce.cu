/* Reductions of rows on a CUDA device: their entries combined, and the order of rows by length.
 *
 * Eight lanes take a row, a warp a row of more than 64 entries. Longer rows contain whole stretches of 1,024 entries,
 * which a kernel before has combined, a warp each, so that a row of any length is shared by all blocks. The order of
 * additions depends only on where rows begin: results have the same bits in every run. */
#include "device/entries.cuh"
#include "device/radix.cuh"

enum { LANES = 8, LONG = 64, STRETCH = 1024 };

struct min_op {
    template <typename T> __device__ T operator()(T a, T b) const { return a < b ? a : b; }
};

/* What begins a reduction. */
static __device__ __forceinline__ double neutral(add_op) { return 0; }
static __device__ __forceinline__ double neutral(max_op) { return -INFINITY; }
static __device__ __forceinline__ double neutral(min_op) { return INFINITY; }

/* Entries begin + first, begin + first + step, … before end. */
template <typename V, typename Op>
static __device__ __forceinline__ double reduce_lane(const V *values, int64_t begin, int64_t end, int first, int step,
                                                     Op op, double result)
{
#pragma unroll 4
    for (int64_t at = begin + first; at < end; at += step) result = op(result, (double)__ldg(values + at));
    return result;
}

template <int WIDTH, typename Op> static __device__ __forceinline__ double reduce_lanes(double value, Op op)
{
    for (int step = WIDTH / 2; step > 0; step /= 2) value = op(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
}

template <typename V, typename Op>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    reduce_stretches(int64_t rows, int64_t count, const int64_t *offsets, const V *values, Op op, double *stretches)
{
    const int64_t stretch = ((int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x) / 32;
    const int64_t begin = stretch * STRETCH, end = begin + STRETCH;
    if (stretch >= count || offsets[warp_row_at(offsets, rows, begin) + 1] < end) return;
    const double mine = reduce_lane(values, begin, end, (int)threadIdx.x % 32, 32, op, neutral(op));
    const double all = reduce_lanes<32>(mine, op);
    if (threadIdx.x % 32 == 0) stretches[stretch] = all;
}

template <typename V, typename Op>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    reduce_rows(int64_t rows, const int64_t *offsets, const V *values, Op op, bool mean, const double *stretches,
                double *result)
{
    const int64_t row = ((int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x) / LANES;
    const int lane = threadIdx.x % 32;
    const int64_t begin = row < rows ? offsets[row] : 0, end = row < rows ? offsets[row + 1] : 0;
    const bool is_long = end - begin > LONG;
    double mine = neutral(op);
    if (!is_long) mine = reduce_lane(values, begin, end, lane % LANES, LANES, op, mine);
    mine = reduce_lanes<LANES>(mine, op);
    if (lane % LANES == 0 && row < rows && !is_long)
        result[row] = begin == end ? 0 : mean ? mine / (double)(end - begin) : mine;
    for (unsigned waiting = __ballot_sync(FULL_WARP, is_long && lane % LANES == 0); waiting; waiting &= waiting - 1) {
        const int owner = __ffs((int)waiting) - 1;
        const int64_t from = __shfl_sync(FULL_WARP, begin, owner), to = __shfl_sync(FULL_WARP, end, owner);
        /* Before the first stretch, the stretches, after the last. */
        const int64_t head = min((from + STRETCH - 1) / STRETCH * STRETCH, to);
        const int64_t tail = max(to / STRETCH * STRETCH, head);
        double part = reduce_lane(values, from, head, lane, 32, op, neutral(op));
        part = reduce_lane(stretches, head / STRETCH, tail / STRETCH, lane, 32, op, part);
        part = reduce_lanes<32>(reduce_lane(values, tail, to, lane, 32, op, part), op);
        if (lane == owner) result[row] = mean ? part / (double)(to - from) : part;
    }
}

template <typename V, typename Op>
static sp_status reduce(sp_context *context, const sp_csr *a, Op op, bool mean, double *result)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t whole = a->nnz / STRETCH;
    device_array<double> stretches;
    CHECK(stretches.allocate(context, whole));
    if (whole > 0)
        reduce_stretches<<<thread_blocks(whole * 32), ENTRY_THREADS, 0, stream>>>(
            a->rows, whole, a->row_offsets, (const V *)a->values, op, stretches.data);
    CUDA_CHECK(cudaGetLastError());
    reduce_rows<<<thread_blocks(a->rows * LANES), ENTRY_THREADS, 0, stream>>>(
        a->rows, a->row_offsets, (const V *)a->values, op, mean, stretches.data, result);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

template <typename V>
static sp_status reduce_values(sp_context *context, const sp_csr *a, sp_combine combine, double *result)
{
    if (combine == SP_COMBINE_MAX) return reduce<V>(context, a, max_op{}, false, result);
    if (combine == SP_COMBINE_MIN) return reduce<V>(context, a, min_op{}, false, result);
    return reduce<V>(context, a, add_op{}, combine == SP_COMBINE_MEAN, result);
}

/* What no more than a row's ends tell: how many entries there are, whether there is one, or the first. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    look_at_rows(int64_t rows, const int64_t *offsets, const V *values, bool count, double *result)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row >= rows) return;
    const int64_t begin = offsets[row], length = offsets[row + 1] - begin;
    result[row] = count ? (double)length : length == 0 ? 0 : values ? (double)values[begin] : 1;
}

sp_status sp_cuda_reduce_rows(sp_context *context, const sp_csr *a, sp_combine combine, double *result)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const bool count = combine == SP_COMBINE_COUNT || (combine == SP_COMBINE_SUM && !a->values);
    if (a->rows == 0) return SP_OK;
    if (a->values && !count && combine != SP_COMBINE_FIRST)
        return a->value_type == SP_F32 ? reduce_values<float>(context, a, combine, result)
                                       : reduce_values<double>(context, a, combine, result);
    if (a->value_type == SP_F32)
        look_at_rows<<<thread_blocks(a->rows), ENTRY_THREADS, 0, stream>>>(a->rows, a->row_offsets,
                                                                           (const float *)a->values, count, result);
    else
        look_at_rows<<<thread_blocks(a->rows), ENTRY_THREADS, 0, stream>>>(a->rows, a->row_offsets,
                                                                           (const double *)a->values, count, result);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

static __global__ void __launch_bounds__(ENTRY_THREADS)
    number_rows(int64_t rows, const int64_t *offsets, uint32_t *lengths, int32_t *numbers)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row >= rows) return;
    lengths[row] = (uint32_t)(offsets[row + 1] - offsets[row]);
    numbers[row] = (int32_t)row;
}

sp_status sp_cuda_degree_order(sp_context *context, const sp_csr *a, int32_t *order)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<uint32_t> lengths, sorted;
    device_array<int32_t> numbers;
    if (a->rows == 0) return SP_OK;
    CHECK(lengths.allocate(context, a->rows));
    CHECK(sorted.allocate(context, a->rows));
    CHECK(numbers.allocate(context, a->rows));
    number_rows<<<thread_blocks(a->rows), ENTRY_THREADS, 0, stream>>>(a->rows, a->row_offsets, lengths.data,
                                                                      numbers.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(radix_sort_pairs<true>(context, lengths.data, sorted.data, numbers.data, order, a->rows,
                                 radix_bits(a->cols + 1)));
    return cuda_finish(context);
}
