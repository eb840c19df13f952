/* Operations number by number on CUDA: Y = dropout(activation(X + bias)) and its gradient, copies, sums, sums of
 * columns, gathered rows. Each is one pass at the speed of memory, 16 bytes a thread and row if rows are aligned.
 *
 * Dropout masks are functions of the place and are not stored. Their step is read on the device, so captured work
 * draws new ones. A mask takes some 20 integer instructions a number, about as many as fit beside loads and stores at
 * 4.5 TB/s. The gradient needs only Y: for ReLU it is 0 where X was negative or dropped; ELU is exp(x) - 1 below 0,
 * so its derivative exp(x) is Y / scale + 1.
 */
#include "each.cuh"

/* ---- activation and dropout ------------------------------------------------------------------------------ */

template <typename S, int V> struct forward_op {
    using T = computed_t<S>;
    struct local {
        pack<T, V> bias;
        uint64_t stream;
    };
    using input = pack<T, V>;
    mask how;
    dense_view<S> x, y;
    const T *bias;       /* or NULL */
    int64_t cols, first; /* the number of the first number */

    __device__ __forceinline__ local begin(int64_t col) const
    {
        local made = {};
        if (bias)
#pragma unroll
            for (int v = 0; v < V; v++) made.bias.part[v] = bias[col + v];
        made.stream = stream_of(how);
        return made;
    }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const { return x.template load<V>(row, col); }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &own) const
    {
        const int64_t index = first + row * cols + col;
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const T at = bias ? in.part[v] + own.bias.part[v] : in.part[v];
            out.part[v] = finished<true>(how, own.stream, index + v, at);
        }
        y.store(row, col, out);
    }
};

/* Applies the derivative to all numbers, and adds up columns if asked to. */
template <typename S, int V> struct backward_op {
    using T = computed_t<S>;
    struct local {
        uint64_t stream;
    };
    struct input {
        pack<T, V> y, gradient;
    };
    mask how;
    dense_view<S> y, y_gradient, x_gradient;
    int64_t cols;

    __device__ __forceinline__ local begin(int64_t) const { return {stream_of(how)}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {y.template load<V>(row, col), y_gradient.template load<V>(row, col)};
    }
    __device__ __forceinline__ pack<T, V> store(int64_t row, int64_t col, const input &in, const local &own) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++)
            out.part[v] = derived(how, own.stream, row * cols + col + v, in.y.part[v], in.gradient.part[v]);
        x_gradient.store(row, col, out);
        return out;
    }
    __device__ __forceinline__ void add(int64_t row, int64_t col, const input &in, const local &own,
                                        double (&sums)[V]) const
    {
        const pack<T, V> out = store(row, col, in, own);
#pragma unroll
        for (int v = 0; v < V; v++) sums[v] += (double)out.part[v];
    }
};

sp_status gnn_cuda_forward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *x, const void *bias,
                           sp_dense *y)
{
    const mask own = make_mask(engine, how->activation, how->rate, how->site);
    return by_type(x->type, is_aligned(x) && is_aligned(y), [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_each<S, V>(engine, x->rows, x->cols,
                                 forward_op<S, V>{own, view_of<S>(x), view_of<S>(y), (const computed_t<S> *)bias,
                                                  x->cols, 0});
    });
}

sp_status gnn_cuda_backward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *y,
                            const sp_dense *y_gradient, sp_dense *x_gradient, void *sums)
{
    const mask own = make_mask(engine, how->activation, how->rate, how->site);
    const bool aligned = is_aligned(y) && is_aligned(y_gradient) && is_aligned(x_gradient);
    return by_type(y->type, aligned, [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        const backward_op<S, V> op = {own, view_of<S>(y), view_of<S>(y_gradient), view_of<S>(x_gradient), y->cols};
        return sums ? launch_sums<S, V>(engine, y->rows, y->cols, op, (computed_t<S> *)sums)
                    : launch_each<S, V>(engine, y->rows, y->cols, op);
    });
}

/* The array is treated as a matrix with rows of 16 bytes, and its rest as one with rows of one number. */
template <typename T>
static sp_status drop(gnn_engine *engine, const mask &how, int64_t count, const T *x, T *y)
{
    constexpr int WHOLE = 16 / sizeof(T);
    const bool aligned = (uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0;
    const int64_t packs = aligned ? count / WHOLE : 0, done = packs * WHOLE;
    const forward_op<T, WHOLE> most = {how, {(T *)x, WHOLE}, {y, WHOLE}, NULL, WHOLE, 0};
    const forward_op<T, 1> rest = {how, {(T *)x + done, 1}, {y + done, 1}, NULL, 1, done};
    CHECK((launch_each<T, WHOLE>(engine, packs, WHOLE, most)));
    return launch_each<T, 1>(engine, count - done, 1, rest);
}

sp_status gnn_cuda_drop(gnn_engine *engine, double rate, uint64_t site, int64_t count, const void *x,
                        sp_dense_type type, void *y)
{
    const mask how = make_mask(engine, GNN_LINEAR, rate, site);
    return type == SP_DENSE_F32 ? drop(engine, how, count, (const float *)x, (float *)y)
                                : drop(engine, how, count, (const double *)x, (double *)y);
}

/* ---- copies and sums ------------------------------------------------------------------------------------- */

template <typename S, int V> struct copy_op {
    using T = computed_t<S>;
    using local = nothing;
    using input = pack<T, V>;
    dense_view<S> from, to;
    const int32_t *rows; /* NULL: as they come */

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return from.template load<V>(rows ? rows[row] : row, col);
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &) const
    {
        to.store(row, col, in);
    }
};

template <typename S, int V> struct fill_op {
    using T = computed_t<S>;
    using local = nothing;
    using input = nothing;
    T value;
    dense_view<S> to;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t, int64_t) const { return {}; }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &, const local &) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) out.part[v] = value;
        to.store(row, col, out);
    }
};

template <typename S, int V> struct add_to_op {
    using T = computed_t<S>;
    using local = nothing;
    struct input {
        pack<T, V> from, to;
    };
    T alpha;
    dense_view<S> from, to;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {from.template load<V>(row, col), to.template load<V>(row, col)};
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) out.part[v] = in.to.part[v] + alpha * in.from.part[v];
        to.store(row, col, out);
    }
};

template <typename S, int V> struct larger_op {
    using T = computed_t<S>;
    using local = nothing;
    struct input {
        pack<T, V> x, y;
    };
    dense_view<S> x, y;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {x.template load<V>(row, col), y.template load<V>(row, col)};
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const T a = in.x.part[v], b = in.y.part[v];
            out.part[v] = b >= a || b != b ? b : a;
        }
        y.store(row, col, out);
    }
};

template <typename S, int V> struct take_op {
    using T = computed_t<S>;
    using local = nothing;
    struct input {
        pack<T, V> x, y, left, gradient;
    };
    dense_view<S> x, y, left, x_gradient;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {x.template load<V>(row, col), y.template load<V>(row, col), left.template load<V>(row, col),
                x_gradient.template load<V>(row, col)};
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &) const
    {
        pack<T, V> rest = in.left, out = in.gradient;
#pragma unroll
        for (int v = 0; v < V; v++)
            if (in.x.part[v] == in.y.part[v]) {
                out.part[v] += rest.part[v];
                rest.part[v] = 0;
            }
        left.store(row, col, rest);
        x_gradient.store(row, col, out);
    }
};

template <typename S, int V> struct sum_op {
    using T = computed_t<S>;
    using local = nothing;
    using input = pack<T, V>;
    dense_view<S> x;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const { return x.template load<V>(row, col); }
    __device__ __forceinline__ void add(int64_t, int64_t, const input &in, const local &, double (&sums)[V]) const
    {
#pragma unroll
        for (int v = 0; v < V; v++) sums[v] += (double)in.part[v];
    }
};

sp_status gnn_cuda_gather_rows(gnn_engine *engine, const sp_dense *x, const int32_t *rows, sp_dense *y)
{
    return by_type(x->type, is_aligned(x) && is_aligned(y), [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_each<S, V>(engine, y->rows, y->cols, copy_op<S, V>{view_of<S>(x), view_of<S>(y), rows});
    });
}

sp_status gnn_cuda_copy(gnn_engine *engine, const sp_dense *from, sp_dense *to)
{
    return gnn_cuda_gather_rows(engine, from, NULL, to);
}

template <int V> struct round_op {
    using local = nothing;
    using input = pack<float, V>;
    dense_view<float> from;
    dense_view<__nv_bfloat16> to;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const { return from.template load<V>(row, col); }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &in, const local &) const
    {
        to.store(row, col, in);
    }
};

template <int V> static sp_status round_to(gnn_engine *engine, const sp_dense *from, sp_dense *to)
{
    return launch_each<float, V>(engine, to->rows, to->cols,
                                 round_op<V>{view_of<float>(from), view_of<__nv_bfloat16>(to)});
}

sp_status gnn_cuda_round(gnn_engine *engine, const sp_dense *from, sp_dense *to)
{
    const bool aligned = is_aligned(from) && to->stride % 4 == 0 && (uintptr_t)to->values % 8 == 0;
    return aligned ? round_to<4>(engine, from, to) : round_to<1>(engine, from, to);
}

sp_status gnn_cuda_fill(gnn_engine *engine, double value, sp_dense *to)
{
    return by_type(to->type, is_aligned(to), [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_each<S, V>(engine, to->rows, to->cols, fill_op<S, V>{(computed_t<S>)value, view_of<S>(to)});
    });
}

sp_status gnn_cuda_add(gnn_engine *engine, double alpha, const sp_dense *from, sp_dense *to)
{
    return by_type(to->type, is_aligned(from) && is_aligned(to), [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_each<S, V>(engine, to->rows, to->cols,
                                 add_to_op<S, V>{(computed_t<S>)alpha, view_of<S>(from), view_of<S>(to)});
    });
}

sp_status gnn_cuda_larger(gnn_engine *engine, const sp_dense *x, sp_dense *y)
{
    return by_type(y->type, is_aligned(x) && is_aligned(y), [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_each<S, V>(engine, y->rows, y->cols, larger_op<S, V>{view_of<S>(x), view_of<S>(y)});
    });
}

sp_status gnn_cuda_larger_backward(gnn_engine *engine, const sp_dense *x, const sp_dense *y, sp_dense *left,
                                   sp_dense *x_gradient)
{
    const bool aligned = is_aligned(x) && is_aligned(y) && is_aligned(left) && is_aligned(x_gradient);
    return by_type(y->type, aligned, [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_each<S, V>(engine, y->rows, y->cols,
                                 take_op<S, V>{view_of<S>(x), view_of<S>(y), view_of<S>(left),
                                               view_of<S>(x_gradient)});
    });
}

sp_status gnn_cuda_column_sums(gnn_engine *engine, const sp_dense *x, void *sums)
{
    return by_type(x->type, is_aligned(x), [&](auto number, auto width) {
        using S = decltype(number);
        constexpr int V = width;
        return launch_sums<S, V>(engine, x->rows, x->cols, sum_op<S, V>{view_of<S>(x)}, (computed_t<S> *)sums);
    });
}
