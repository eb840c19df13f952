/* Norms over columns (batch) and rows (layer) on CUDA, by the formulas of cpu/normal.c. Over columns each sum is a pass
 * over X at the speed of memory (sum_rows); over rows a warp takes a row, which its first-level cache holds between the
 * passes over it. Nothing depends on the order of blocks. */
#include "each.cuh"

/* ---- sums over columns ------------------------------------------------------------------------------------- */

/* Σ (X - mean)², where `sums` holds those of X. */
template <typename S, int V> struct squares_op {
    using T = computed_t<S>;
    using local = pack<T, V>;
    using input = pack<T, V>;
    dense_view<S> x;
    const T *sums;
    T part; /* 1 / rows */

    __device__ __forceinline__ local begin(int64_t col) const
    {
        local mean;
#pragma unroll
        for (int v = 0; v < V; v++) mean.part[v] = sums[col + v] * part;
        return mean;
    }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const { return x.template load<V>(row, col); }
    __device__ __forceinline__ void add(int64_t, int64_t, const input &in, const local &mean, double (&sums)[V]) const
    {
#pragma unroll
        for (int v = 0; v < V; v++) {
            const double apart = (double)(in.part[v] - mean.part[v]);
            sums[v] += apart * apart;
        }
    }
};

/* The mean and inverse of V columns, or of a row. */
template <typename T, int V> struct moments {
    pack<T, V> mean, inverse;
};

template <typename T, int V>
static __device__ __forceinline__ moments<T, V> moments_at(bool rows, const T *mean, const T *inverse, int64_t row,
                                                           int64_t col)
{
    moments<T, V> made;
#pragma unroll
    for (int v = 0; v < V; v++) {
        made.mean.part[v] = mean[rows ? row : col + v];
        made.inverse.part[v] = inverse[rows ? row : col + v];
    }
    return made;
}

/* Σ dY ∘ (X - mean) · inverse. */
template <typename S, int V> struct scale_op {
    using T = computed_t<S>;
    using local = nothing;
    struct input {
        pack<T, V> x, gradient;
        moments<T, V> own;
    };
    bool by_rows;
    dense_view<S> x, y_gradient;
    const T *mean, *inverse;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {x.template load<V>(row, col), y_gradient.template load<V>(row, col),
                moments_at<T, V>(by_rows, mean, inverse, row, col)};
    }
    __device__ __forceinline__ void add(int64_t, int64_t, const input &in, const local &, double (&sums)[V]) const
    {
#pragma unroll
        for (int v = 0; v < V; v++)
            sums[v] += (double)(in.gradient.part[v] * (in.x.part[v] - in.own.mean.part[v]) * in.own.inverse.part[v]);
    }
};

/* ---- columns ------------------------------------------------------------------------------------------------ */

/* From Σ X in `mean` and Σ (X - mean)² in `inverse` the mean and inverse, and the running numbers; or with `fixed`
 * from these. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    finish_columns(bool fixed, int64_t rows, int64_t cols, T *mean, T *inverse, T *running_mean, T *running_variance)
{
    follow();
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= cols) return;
    T variance;
    if (fixed) {
        mean[j] = running_mean[j];
        variance = running_variance[j];
    } else {
        const T own = mean[j] / (T)rows, squares = inverse[j];
        variance = squares / (T)rows;
        mean[j] = own;
        running_mean[j] += (T)GNN_NORM_MOMENTUM * (own - running_mean[j]);
        running_variance[j] += (T)GNN_NORM_MOMENTUM * (squares / (T)(rows > 1 ? rows - 1 : 1) - running_variance[j]);
    }
    inverse[j] = (T)(1 / sqrt((double)variance + GNN_NORM_LEAST));
}

template <typename S, int V> struct columns_op {
    using T = computed_t<S>;
    struct local {
        moments<T, V> own;
        pack<T, V> scale, shift;
    };
    using input = pack<T, V>;
    dense_view<S> x, y;
    const T *mean, *inverse, *scale, *shift;

    __device__ __forceinline__ local begin(int64_t col) const
    {
        local made;
        made.own = moments_at<T, V>(false, mean, inverse, 0, col);
#pragma unroll
        for (int v = 0; v < V; v++) {
            made.scale.part[v] = scale[col + v];
            made.shift.part[v] = shift[col + v];
        }
        return made;
    }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const { return x.template load<V>(row, col); }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &at) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++)
            out.part[v] = (in.part[v] - at.own.mean.part[v]) * at.own.inverse.part[v] * at.scale.part[v] +
                          at.shift.part[v];
        y.store(row, col, out);
    }
};

template <typename S, int V> struct columns_back_op {
    using T = computed_t<S>;
    struct local {
        moments<T, V> own;
        pack<T, V> factor, shift, along; /* inverse · scale, and the means of dY and dY ∘ N */
    };
    struct input {
        pack<T, V> x, gradient;
    };
    dense_view<S> x, y_gradient, x_gradient;
    const T *mean, *inverse, *scale, *scale_gradient, *shift_gradient;
    T part; /* 1 / rows; 0 if mean and variance are constants */

    __device__ __forceinline__ local begin(int64_t col) const
    {
        local made;
        made.own = moments_at<T, V>(false, mean, inverse, 0, col);
#pragma unroll
        for (int v = 0; v < V; v++) {
            made.factor.part[v] = made.own.inverse.part[v] * scale[col + v];
            made.shift.part[v] = part * shift_gradient[col + v];
            made.along.part[v] = part * scale_gradient[col + v];
        }
        return made;
    }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {x.template load<V>(row, col), y_gradient.template load<V>(row, col)};
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &at) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const T normal = (in.x.part[v] - at.own.mean.part[v]) * at.own.inverse.part[v];
            out.part[v] = at.factor.part[v] * (in.gradient.part[v] - at.shift.part[v] - normal * at.along.part[v]);
        }
        x_gradient.store(row, col, out);
    }
};

/* ---- rows --------------------------------------------------------------------------------------------------- */

enum { WARPS = THREADS / 32 };

template <typename S, typename T = computed_t<S>>
static __global__ void __launch_bounds__(THREADS)
    normalise_rows(int64_t rows, int64_t cols, dense_view<S> x, const T *scale, const T *shift, T *means, T *inverses,
                   dense_view<S> y)
{
    follow();
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const S *from = x.values + row * x.stride;
    S *to = y.values + row * y.stride;
    double sum = 0, squares = 0;
    for (int64_t j = lane; j < cols; j += 32) sum += (double)number_from(from + j);
    const double mean = group_sum<32>(sum) / (double)cols;
    for (int64_t j = lane; j < cols; j += 32) {
        const double apart = (double)number_from(from + j) - mean;
        squares += apart * apart;
    }
    const T own = (T)mean, inverse = (T)(1 / sqrt(group_sum<32>(squares) / (double)cols + GNN_NORM_LEAST));
    if (lane == 0) {
        means[row] = own;
        inverses[row] = inverse;
    }
    for (int64_t j = lane; j < cols; j += 32)
        number_to(to + j, (number_from(from + j) - own) * inverse * scale[j] + shift[j]);
}

template <typename S, typename T = computed_t<S>>
static __global__ void __launch_bounds__(THREADS)
    normalise_rows_back(int64_t rows, int64_t cols, dense_view<S> x, dense_view<S> y_gradient, const T *scale,
                        const T *means, const T *inverses, dense_view<S> x_gradient)
{
    follow();
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const S *from = x.values + row * x.stride, *dy = y_gradient.values + row * y_gradient.stride;
    const T mean = means[row], inverse = inverses[row];
    S *dx = x_gradient.values + row * x_gradient.stride;
    double sum = 0, along = 0;
    for (int64_t j = lane; j < cols; j += 32) {
        const T scaled = number_from(dy + j) * scale[j];
        sum += (double)scaled;
        along += (double)(scaled * (number_from(from + j) - mean) * inverse);
    }
    const T by = (T)(group_sum<32>(sum) / (double)cols), of = (T)(group_sum<32>(along) / (double)cols);
    for (int64_t j = lane; j < cols; j += 32) {
        const T scaled = number_from(dy + j) * scale[j], normal = (number_from(from + j) - mean) * inverse;
        number_to(dx + j, inverse * (scaled - by - normal * of));
    }
}

/* ---- the operations ----------------------------------------------------------------------------------------- */

template <typename S, int V>
static sp_status normalise_columns(gnn_engine *engine, const gnn_normal *how, const sp_dense *x, sp_dense *y)
{
    using T = computed_t<S>;
    T *mean = (T *)how->mean, *inverse = (T *)how->inverse;
    if (!how->fixed) {
        const squares_op<S, V> squares = {view_of<S>(x), mean, (T)1 / (T)x->rows};
        CHECK(gnn_cuda_column_sums(engine, x, mean));
        CHECK((launch_sums<S, V>(engine, x->rows, x->cols, squares, inverse)));
    }
    CHECK(launch_early(engine, finish_columns<T>, ceil_div(x->cols, THREADS), THREADS, 0, how->fixed, x->rows,
                       x->cols, mean, inverse, (T *)how->running_mean, (T *)how->running_variance));
    const columns_op<S, V> op = {view_of<S>(x),         view_of<S>(y),        mean, inverse, (const T *)how->scale,
                                 (const T *)how->shift};
    return launch_each<S, V>(engine, x->rows, x->cols, op);
}

sp_status gnn_cuda_normalise(gnn_engine *engine, const gnn_normal *how, const sp_dense *x, sp_dense *y)
{
    return by_type(x->type, is_aligned(x) && is_aligned(y), [&](auto number, auto width) {
        using S = decltype(number);
        using T = computed_t<S>;
        constexpr int V = width;
        if (x->rows == 0 || x->cols == 0) return SP_OK;
        if (how->norm == GNN_NORM_BATCH) return normalise_columns<S, V>(engine, how, x, y);
        return launch_early(engine, normalise_rows<S>, ceil_div(x->rows, WARPS), THREADS, 0, x->rows, x->cols,
                            view_of<S>(x), (const T *)how->scale, (const T *)how->shift, (T *)how->mean,
                            (T *)how->inverse, view_of<S>(y));
    });
}

sp_status gnn_cuda_normalise_backward(gnn_engine *engine, const gnn_normal *how, const sp_dense *x,
                                      const sp_dense *y_gradient, sp_dense *x_gradient, void *scale_gradient,
                                      void *shift_gradient)
{
    const bool rows = how->norm == GNN_NORM_LAYER;
    const bool aligned = is_aligned(x) && is_aligned(y_gradient) && is_aligned(x_gradient);
    CHECK(gnn_cuda_column_sums(engine, y_gradient, shift_gradient));
    return by_type(x->type, aligned, [&](auto number, auto width) {
        using S = decltype(number);
        using T = computed_t<S>;
        constexpr int V = width;
        const dense_view<S> from = view_of<S>(x), dy = view_of<S>(y_gradient), dx = view_of<S>(x_gradient);
        const T *mean = (const T *)how->mean, *inverse = (const T *)how->inverse, *scale = (const T *)how->scale;
        CHECK((launch_sums<S, V>(engine, x->rows, x->cols, scale_op<S, V>{rows, from, dy, mean, inverse},
                                 (T *)scale_gradient)));
        if (rows)
            return launch_early(engine, normalise_rows_back<S>, ceil_div(x->rows, WARPS), THREADS, 0, x->rows,
                                x->cols, from, dy, scale, mean, inverse, dx);
        const T part = how->fixed ? (T)0 : (T)1 / (T)x->rows;
        return launch_each<S, V>(engine, x->rows, x->cols,
                                 columns_back_op<S, V>{from, dy, dx, mean, inverse, scale, (const T *)scale_gradient,
                                                       (const T *)shift_gradient, part});
    });
}
