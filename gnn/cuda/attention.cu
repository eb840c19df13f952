/* Attention of GAT on CUDA: scores of nodes and of edges, with their gradients.
 *
 * Scores of nodes: a group of lanes a node and head; H is read once, and once for both parts of the gradient. Scores
 * of edges: a group of lanes a row of A; sums over columns of A run over rows of the transpose. Every sum has one
 * order, so results have the same bits in every run.
 */
#include "each.cuh"

/* ---- nodes ----------------------------------------------------------------------------------------------- */

template <typename T, int LANES>
static __global__ void __launch_bounds__(THREADS)
    score_heads(int64_t rows, int heads, int64_t width, const dense_view<const T> h, const T *vector,
                const dense_view<T> scores)
{
    const int64_t place = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    if (place >= rows * heads) return;
    const int64_t row = place / heads, head = place - row * heads;
    const T *x = h.values + row * h.stride + head * width, *by = vector + head * width;
    T sum = 0;
    for (int64_t k = threadIdx.x % LANES; k < width; k += LANES) sum += x[k] * by[k];
    sum = group_sum<LANES>(sum);
    if (threadIdx.x % LANES == 0) scores.values[row * scores.stride + head] = sum;
}

template <typename T, int LANES>
static sp_status launch_heads(gnn_engine *engine, const sp_dense *h, int heads, const void *vector, sp_dense *scores)
{
    return launch(engine, score_heads<T, LANES>, ceil_div(h->rows * heads, THREADS / LANES), h->rows, heads,
                  h->cols / heads, dense_view<const T>{(const T *)h->values, h->stride}, (const T *)vector,
                  view_of<T>(scores));
}

sp_status gnn_cuda_head_scores(gnn_engine *engine, const sp_dense *h, int heads, const void *vector, sp_dense *scores)
{
    const bool narrow = h->cols / heads <= 16;
    if (h->type == SP_DENSE_F32)
        return (narrow ? launch_heads<float, 8> : launch_heads<float, 32>)(engine, h, heads, vector, scores);
    return (narrow ? launch_heads<double, 8> : launch_heads<double, 32>)(engine, h, heads, vector, scores);
}

/* Sums of ds(i, head) · H(i, k) over rows, and in the same pass dH(i, k) += ds(i, head) · vector[k]. */
template <typename S, int V> struct heads_backward_op {
    using T = computed_t<S>;
    struct local {
        pack<T, V> vector;
        int head[V];
    };
    struct input {
        pack<T, V> h, gradient;
    };
    int64_t width;
    dense_view<S> h, h_gradient;
    dense_view<T> scores_gradient;
    const T *vector;

    __device__ __forceinline__ local begin(int64_t col) const
    {
        local made;
#pragma unroll
        for (int v = 0; v < V; v++) {
            made.vector.part[v] = vector[col + v];
            made.head[v] = (int)((col + v) / width);
        }
        return made;
    }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        return {h.template load<V>(row, col), h_gradient.template load<V>(row, col)};
    }
    __device__ __forceinline__ void add(int64_t row, int64_t col, const input &in, const local &own,
                                        double (&sums)[V]) const
    {
        pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const T by = scores_gradient.values[row * scores_gradient.stride + own.head[v]];
            out.part[v] = in.gradient.part[v] + by * own.vector.part[v];
            sums[v] += (double)by * (double)in.h.part[v];
        }
        h_gradient.store(row, col, out);
    }
};

sp_status gnn_cuda_head_scores_backward(gnn_engine *engine, const sp_dense *h, int heads, const void *vector,
                                        const sp_dense *scores_gradient, sp_dense *h_gradient, void *vector_gradient)
{
    return by_type(h->type, is_aligned(h) && is_aligned(h_gradient), [&](auto number, auto lanes) {
        using S = decltype(number);
        using T = computed_t<S>;
        constexpr int V = lanes;
        const heads_backward_op<S, V> op = {h->cols / heads, view_of<S>(h), view_of<S>(h_gradient),
                                            view_of<T>(scores_gradient), (const T *)vector};
        return launch_sums<S, V>(engine, h->rows, h->cols, op, (T *)vector_gradient);
    });
}

/* ---- edges ----------------------------------------------------------------------------------------------- */

/* values = leakyrelu(left + right) */
template <typename T> struct edge_scores_work {
    const int32_t *cols;
    const T *left, *right; /* of the head */
    int64_t left_stride, right_stride;
    T slope, *values;

    __device__ __forceinline__ double sum(int64_t row, int64_t begin, int64_t end, int step) const
    {
        const T own = left[row * left_stride];
#pragma unroll 4
        for (int64_t e = begin; e < end; e += step) {
            const T score = own + __ldg(right + __ldg(cols + e) * right_stride);
            values[e] = score > 0 ? score : slope * score;
        }
        return 0;
    }
    __device__ __forceinline__ void finish(int64_t, double) const {}
};

/* values ∘= leakyrelu'(left + right), and their sum over the row. */
template <typename T> struct edge_backward_work {
    const int32_t *cols;
    const T *left, *right;
    int64_t left_stride, right_stride;
    T slope, *values, *sums;
    int64_t sums_stride;

    __device__ __forceinline__ double sum(int64_t row, int64_t begin, int64_t end, int step) const
    {
        const T own = left[row * left_stride];
        double sum = 0;
#pragma unroll 4
        for (int64_t e = begin; e < end; e += step) {
            T value = values[e];
            if (!(own + __ldg(right + __ldg(cols + e) * right_stride) > 0)) values[e] = value *= slope;
            sum += (double)value;
        }
        return sum;
    }
    __device__ __forceinline__ void finish(int64_t row, double sum) const { sums[row * sums_stride] = (T)sum; }
};

/* The sums of values over the columns of A. */
template <typename T> struct column_work {
    const int64_t *places;
    const T *values;
    T *sums;
    int64_t sums_stride;

    __device__ __forceinline__ double sum(int64_t, int64_t begin, int64_t end, int step) const
    {
        double sum = 0;
#pragma unroll 4
        for (int64_t t = begin; t < end; t += step) sum += (double)values[places[t]];
        return sum;
    }
    __device__ __forceinline__ void finish(int64_t row, double sum) const { sums[row * sums_stride] = (T)sum; }
};

template <typename T>
static sp_status edge_scores(gnn_engine *engine, const sp_csr *a, const sp_dense *left, const sp_dense *right,
                             int head, double slope, void *values)
{
    return launch_sparse_rows(engine, a,
                              edge_scores_work<T>{a->col_indices, (const T *)left->values + head,
                                                  (const T *)right->values + head, left->stride, right->stride,
                                                  (T)slope, (T *)values});
}

sp_status gnn_cuda_edge_scores(gnn_engine *engine, const sp_csr *a, const sp_dense *left, const sp_dense *right,
                               int head, double slope, void *values)
{
    const auto run = left->type == SP_DENSE_F32 ? edge_scores<float> : edge_scores<double>;
    return run(engine, a, left, right, head, slope, values);
}

template <typename T>
static sp_status edge_backward(gnn_engine *engine, const sp_csr *a, const sp_csr *transpose, const int64_t *places,
                               const sp_dense *left, const sp_dense *right, int head, double slope, T *values,
                               sp_dense *left_gradient, sp_dense *right_gradient)
{
    CHECK(launch_sparse_rows(engine, a,
                             edge_backward_work<T>{a->col_indices, (const T *)left->values + head,
                                                   (const T *)right->values + head, left->stride, right->stride,
                                                   (T)slope, values, (T *)left_gradient->values + head,
                                                   left_gradient->stride}));
    return launch_sparse_rows(engine, transpose,
                              column_work<T>{places, values, (T *)right_gradient->values + head,
                                             right_gradient->stride});
}

sp_status gnn_cuda_edge_scores_backward(gnn_engine *engine, const sp_csr *a, const sp_csr *transpose,
                                        const int64_t *places, const sp_dense *left, const sp_dense *right, int head,
                                        double slope, void *values, sp_dense *left_gradient,
                                        sp_dense *right_gradient)
{
    return left->type == SP_DENSE_F32 ? edge_backward(engine, a, transpose, places, left, right, head, slope,
                                                      (float *)values, left_gradient, right_gradient)
                                      : edge_backward(engine, a, transpose, places, left, right, head, slope,
                                                      (double *)values, left_gradient, right_gradient);
}

/* ---- permutations ---------------------------------------------------------------------------------------- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    gather_numbers(const int64_t *places, int64_t count, const T *from, T *to)
{
    const int64_t t = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (t < count) to[t] = from[places[t]];
}

sp_status gnn_cuda_gather(gnn_engine *engine, const int64_t *places, int64_t count, const void *from,
                          sp_dense_type type, void *to)
{
    const int64_t blocks = ceil_div(count, THREADS);
    if (type == SP_DENSE_F32)
        return launch(engine, gather_numbers<float>, blocks, places, count, (const float *)from, (float *)to);
    return launch(engine, gather_numbers<double>, blocks, places, count, (const double *)from, (double *)to);
}
