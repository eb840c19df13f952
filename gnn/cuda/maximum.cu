/* The gradient of the maximum over neighbours on CUDA: dX(j, k) = Σ of dY(i, k) over the rows i whose maximum in
 * column k came from j. A group of lanes takes a row j of the transpose and 16 or 32 columns at a time: 8 bytes an
 * entry and column, and dY where they match. The whole block takes rows of more than LONG entries. Scattering dY
 * would touch fewer bytes, but by atomic additions without a fixed order.
 */
#include "backend.cuh"

enum { LONG = 512 };

template <typename T> struct maximum_job {
    const int64_t *offsets, *places, *argument;
    const int32_t *cols; /* of the transpose */
    int64_t rows, width;
    dense_view<const T> y_gradient;
    dense_view<T> x_gradient;
};

/* The sum of column k over entries begin, begin + step, ... of one row. */
template <typename T>
static __device__ __forceinline__ double add_matches(const maximum_job<T> &job, int64_t k, int64_t begin, int64_t end,
                                                     int step)
{
    double sum = 0;
#pragma unroll 4
    for (int64_t t = begin; t < end; t += step) {
        const int64_t i = __ldg(job.cols + t);
        if (__ldg(job.argument + i * job.width + k) == __ldg(job.places + t))
            sum += (double)job.y_gradient.values[i * job.y_gradient.stride + k];
    }
    return sum;
}

template <typename T, int LANES>
static __global__ void __launch_bounds__(THREADS) send_back(const maximum_job<T> job)
{
    constexpr int GROUPS = THREADS / LANES;
    __shared__ double shared[GROUPS][LANES];
    const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int64_t first = (int64_t)blockIdx.x * GROUPS, row = first + group;
    bool is_long = false;
    if (row < job.rows) {
        const int64_t begin = job.offsets[row], end = job.offsets[row + 1];
        is_long = end - begin > LONG;
        for (int64_t k = lane; !is_long && k < job.width; k += LANES)
            job.x_gradient.values[row * job.x_gradient.stride + k] = (T)add_matches(job, k, begin, end, 1);
    }
    if (!__syncthreads_or(is_long)) return;
    for (int64_t j = first; j < min(first + GROUPS, job.rows); j++) {
        const int64_t begin = job.offsets[j], end = job.offsets[j + 1];
        if (end - begin <= LONG) continue;
        for (int64_t base = 0; base < job.width; base += LANES) {
            const int64_t k = base + lane;
            shared[group][lane] = k < job.width ? add_matches(job, k, begin + group, end, GROUPS) : 0;
            __syncthreads();
            if (group == 0 && k < job.width) {
                double sum = 0;
                for (int g = 0; g < GROUPS; g++) sum += shared[g][lane];
                job.x_gradient.values[j * job.x_gradient.stride + k] = (T)sum;
            }
            __syncthreads();
        }
    }
}

template <typename T>
static sp_status launch_maximum(gnn_engine *engine, const sp_csr *transpose, const int64_t *places,
                                const int64_t *argument, const sp_dense *y_gradient, sp_dense *x_gradient)
{
    const maximum_job<T> job = {transpose->row_offsets, places, argument, transpose->col_indices, transpose->rows,
                                x_gradient->cols, {(const T *)y_gradient->values, y_gradient->stride},
                                view_of<T>(x_gradient)};
    const bool narrow = job.width <= 16;
    if (job.width == 0) return SP_OK;
    return launch(engine, narrow ? send_back<T, 16> : send_back<T, 32>,
                  ceil_div(job.rows, THREADS / (narrow ? 16 : 32)), job);
}

sp_status gnn_cuda_maximum_backward(gnn_engine *engine, const sp_csr *transpose, const int64_t *places,
                                    const int64_t *argument, const sp_dense *y_gradient, sp_dense *x_gradient)
{
    return (x_gradient->type == SP_DENSE_F32 ? launch_maximum<float> : launch_maximum<double>)(
        engine, transpose, places, argument, y_gradient, x_gradient);
}
