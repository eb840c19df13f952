/* Dense layers in one pass on CUDA. multiply_split.cu forms Y = forward(Σ A·B + bias) as it stores. Narrow products
 * of hidden numbers are formed here: C = Y·W together with Y = forward(Y + bias), and back dX = (Σ G·Wᵀ) ∘ derivative
 * with its column sums and dW = Xᵀ·G.
 *
 * G and W of a last layer have one column a class. X and dX (nodes x hidden) take the time: each is read or written
 * once, 8 bytes a number, instead of seven times step by step. A block takes a part of the rows; LANES lanes, a warp
 * or up to 32 columns a quarter of it, take V columns each of a row. W's numbers of these columns, the sums of dW and
 * of dX's columns lie in registers; G's numbers of a row, one a lane, are broadcast by shuffles. A second launch adds
 * up the parts, always in the same order. All other shapes go step by step.
 */
#include "backend.cuh"

/* Columns of the products together, at most, and a block's warps. */
enum { FEW = 16, WARPS = THREADS / 32 };

template <typename S> struct narrow_term {
    const S *g, *w;
    computed_t<S> *w_gradient;
    int64_t g_rows, g_stride, w_stride, w_gradient_stride;
    int cols;
};

template <typename S> struct narrow_job {
    using T = computed_t<S>;
    narrow_term<S> term[2];
    dense_view<S> x, x_gradient;
    mask how;
    int64_t rows, cols;
    unsigned col_tiles, parts;
    T *partial; /* for each part: cols sums of dX, then those of each column of dW */
    T *sums;    /* or NULL */
};

/* Finds the term of column j of the products side by side; false if there is no such column. */
template <typename Job, typename Term>
static __device__ __forceinline__ bool find_column(const Job &job, int *j, const Term **term)
{
    *term = &job.term[0];
    if (*j >= job.term[0].cols) {
        *j -= job.term[0].cols;
        *term = &job.term[1];
    }
    return *j < (*term)->cols;
}

/* V rows of [W_1 W_2] from `row` on: w[j] is column j, or 0. */
template <typename Job, typename T, int COUNT, int V>
static __device__ __forceinline__ void fetch_rows(const Job &job, int64_t row, T (&w)[COUNT][V])
{
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        decltype(&job.term[0]) term;
        int k = j;
        const bool there = row < job.cols && find_column(job, &k, &term);
#pragma unroll
        for (int v = 0; v < V; v++) w[j][v] = there ? number_from(term->w + (row + v) * term->w_stride + k) : 0;
    }
}

/* Adds up the sums of the block's groups of lanes and stores them for the part. */
template <typename T, int V, int LANES>
static __device__ __forceinline__ void store_sums(T (&own)[V], T (*shared)[LANES * V], T *to, int64_t cols_left)
{
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int apart = LANES; apart < 32; apart *= 2) own[v] += __shfl_xor_sync(FULL_WARP, own[v], apart);
        if (threadIdx.x % 32 < LANES) shared[threadIdx.x / 32][threadIdx.x % 32 * V + v] = own[v];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < LANES * V && c < cols_left; c += THREADS) {
        T sum = 0;
        for (int warp = 0; warp < WARPS; warp++) sum += shared[warp][c];
        to[c] = sum;
    }
    __syncthreads();
}

template <typename S, int V, int COUNT, int LANES>
static __global__ void __launch_bounds__(THREADS, sizeof(S) <= 4 ? 2 : 1)
    go_back_narrow(const __grid_constant__ narrow_job<S> job)
{
    follow();
    using T = computed_t<S>;
    constexpr int AHEAD = V == 4 ? 4 : 8, GROUPS = THREADS / LANES;
    static_assert(COUNT <= LANES, "one number of G a lane");
    __shared__ T shared[WARPS][LANES * V];
    const unsigned part = blockIdx.x / job.col_tiles, col_tile = blockIdx.x - part * job.col_tiles;
    const int64_t first_col = (int64_t)col_tile * LANES * V, col = first_col + threadIdx.x % LANES * V;
    const int64_t end = job.rows * (part + 1) / job.parts;
    const uint64_t stream = stream_of(job.how);
    const narrow_term<S> *from;
    int from_col = threadIdx.x % LANES;
    const bool gives = find_column(job, &from_col, &from), filled = col < job.cols;
    T w[COUNT][V], w_sums[COUNT][V] = {}, sums[V] = {};
    fetch_rows(job, col, w);
    for (int64_t first = job.rows * part / job.parts; first < end; first += AHEAD * GROUPS) {
        pack<T, V> x[AHEAD] = {};
        T g[AHEAD] = {};
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const int64_t row = first + u * GROUPS + threadIdx.x / LANES;
            if (row < end && filled) x[u] = job.x.template load<V>(row, col);
            if (row < end && gives && row < from->g_rows) g[u] = number_from(from->g + row * from->g_stride + from_col);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const int64_t row = first + u * GROUPS + threadIdx.x / LANES;
            pack<T, V> out = {};
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                const T by = __shfl_sync(FULL_WARP, g[u], j, LANES);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    out.part[v] = fused(by, w[j][v], out.part[v]);
                    w_sums[j][v] = fused(by, x[u].part[v], w_sums[j][v]);
                }
            }
            if (row >= end || !filled) continue;
#pragma unroll
            for (int v = 0; v < V; v++) {
                out.part[v] = derived(job.how, stream, row * job.cols + col + v, x[u].part[v], out.part[v]);
                sums[v] += out.part[v];
            }
            job.x_gradient.store(row, col, out);
        }
    }
    const int count = job.term[0].cols + job.term[1].cols;
    T *to = job.partial + (int64_t)part * (1 + count) * job.cols + first_col;
    store_sums<T, V, LANES>(sums, shared, to, job.cols - first_col);
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if (j < count) store_sums<T, V, LANES>(w_sums[j], shared, to + (1 + j) * job.cols, job.cols - first_col);
}

/* Adds up the parts of 8 columns: of the sums of dX (row 0) or of column j of dW (row 1 + j). */
template <typename S>
static __global__ void __launch_bounds__(THREADS) add_narrow(const __grid_constant__ narrow_job<S> job)
{
    follow();
    using T = computed_t<S>;
    constexpr int ACROSS = 8, DOWN = THREADS / ACROSS;
    __shared__ T shared[DOWN][ACROSS];
    const int count = job.term[0].cols + job.term[1].cols, down = threadIdx.x / ACROSS, lane = threadIdx.x % ACROSS;
    const unsigned row = blockIdx.x % (1 + count);
    const int64_t col = (int64_t)(blockIdx.x / (1 + count)) * ACROSS + lane;
    T sum = 0;
#pragma unroll 8
    for (unsigned part = down; part < job.parts; part += DOWN)
        if (col < job.cols) sum += job.partial[((int64_t)part * (1 + count) + row) * job.cols + col];
    shared[down][lane] = sum;
    __syncthreads();
    if (down > 0 || col >= job.cols) return;
    for (int other = 1; other < DOWN; other++) sum += shared[other][lane];
    const narrow_term<S> *term;
    int j = (int)row - 1;
    if (row > 0 && find_column(job, &j, &term)) term->w_gradient[col * term->w_gradient_stride + j] = sum;
    else if (row == 0 && job.sums) job.sums[col] = sum;
}

template <typename S, int V, int COUNT, int LANES>
static sp_status launch_narrow(gnn_engine *engine, narrow_job<S> job)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t col_tiles = ceil_div(job.cols, LANES * V), blocks = NARROW_BLOCKS * state->processors;
    const int64_t wanted = ceil_div(job.rows, 8 * (THREADS / LANES)), most = blocks / col_tiles;
    job.col_tiles = (unsigned)col_tiles;
    job.parts = (unsigned)(wanted < most ? wanted : most);
    CHECK(launch_early(engine, go_back_narrow<S, V, COUNT, LANES>, job.col_tiles * job.parts, THREADS, 0, job));
    const int64_t rows = 1 + job.term[0].cols + job.term[1].cols;
    return launch_early(engine, add_narrow<S>, rows * ceil_div(job.cols, 8), THREADS, 0, job);
}

/* Packs of four f32 or bf16 numbers or two of f64, or half of that for many columns, whose sums fill the registers. */
template <typename S>
static sp_status go_back(gnn_engine *engine, int count, const gnn_product_gradient *product, const mask &how,
                         const sp_dense *x, sp_dense *x_gradient, void *sums)
{
    using T = computed_t<S>;
    constexpr int WHOLE = 16 / sizeof(T);
    narrow_job<S> job = {{}, view_of<S>(x), view_of<S>(x_gradient), how, x->rows, x->cols, 0, 0,
                         (T *)state_of(engine)->partial, (T *)sums};
    int cols = 0;
    for (int k = 0; k < count; k++) {
        const gnn_product_gradient *p = &product[k];
        job.term[k] = {(const S *)p->g->values, (const S *)p->w->values, (T *)p->w_gradient->values, p->g->rows,
                       p->g->stride, p->w->stride, p->w_gradient->stride, (int)p->g->cols};
        cols += (int)p->g->cols;
    }
    if (!is_aligned(x) || !is_aligned(x_gradient)) return launch_narrow<S, 1, FEW, 32>(engine, job);
    if (cols > FEW / 2) return launch_narrow<S, WHOLE / 2, FEW, 32>(engine, job);
    return x->cols <= 4 * WHOLE   ? launch_narrow<S, WHOLE / 2, FEW / 2, FEW / 2>(engine, job)
           : x->cols <= 8 * WHOLE ? launch_narrow<S, WHOLE, FEW / 2, FEW / 2>(engine, job)
                                  : launch_narrow<S, WHOLE, FEW / 2, 32>(engine, job);
}

sp_status gnn_cuda_dense_backward(gnn_engine *engine, int count, const gnn_product_gradient *product,
                                  const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient, void *sums)
{
    const mask own = make_mask(engine, how->activation, how->rate, how->site);
    int64_t cols = 0;
    for (int k = 0; k < count; k++) cols += product[k].g->cols;
    const int64_t most = NARROW_BLOCKS * 32 * (int64_t)state_of(engine)->processors;
    if (left_out("gnn-back") || cols > FEW || cols == 0 || x->rows == 0 || x->cols > most)
        return gnn_dense_backward_by_steps(engine, count, product, how, x, x_gradient, sums);
    const auto run = x->type == SP_DENSE_F32   ? go_back<float>
                     : x->type == SP_DENSE_F64 ? go_back<double>
                                               : go_back<__nv_bfloat16>;
    return run(engine, count, product, own, x, x_gradient, sums);
}

/* ---- Y = forward(Y + bias), C = Y·W ---------------------------------------------------------------------- */

template <typename S> struct after_term {
    const S *w;
    void *c; /* of S, or of f32 if C is logits */
    int64_t rows, w_stride, c_stride;
    int cols;
    bool whole;
};

template <typename S> struct after_job {
    using T = computed_t<S>;
    after_term<S> term[2];
    dense_view<S> y;
    mask how;
    const T *bias; /* or NULL */
    int64_t rows, cols;
};

/* LANES lanes take V columns each of AHEAD rows, then of others: 8 lanes, or for bf16 a warp, which holds 256 columns.
 * Sums are dealt among 8 lanes, and added over the fours of them in a warp. W lies in registers. With 256 columns a
 * warp reads 32 KB of lines for it, as many as for 64 rows of Y, so blocks stay for all of their rows; and code for ELU
 * would not fit the instruction cache there. */
enum { AFTER_LANES = 8, AFTER_AHEAD = 4 };

template <typename S, int V, int COUNT, int LANES>
static __global__ void __launch_bounds__(THREADS, LANES == 32 ? 2 : 1)
    finish_narrow(const __grid_constant__ after_job<S> job)
{
    follow();
    using T = computed_t<S>;
    constexpr int GROUPS = THREADS / LANES, EACH = COUNT / AFTER_LANES;
    const int lane = threadIdx.x % LANES, col = lane * V;
    const bool filled = col < job.cols;
    const uint64_t stream = stream_of(job.how);
    pack<T, V> bias = {};
    T w[COUNT][V];
    if (filled && job.bias)
#pragma unroll
        for (int v = 0; v < V; v++) bias.part[v] = job.bias[col + v];
    fetch_rows(job, col, w);
    for (int64_t begin = (int64_t)blockIdx.x * (AFTER_AHEAD * GROUPS); begin < job.rows;
         begin += (int64_t)gridDim.x * (AFTER_AHEAD * GROUPS)) {
        const int64_t first = begin + threadIdx.x / LANES;
        pack<S, V> from[AFTER_AHEAD] = {};
#pragma unroll
        for (int u = 0; u < AFTER_AHEAD; u++)
            if (filled && first + u * GROUPS < job.rows)
                from[u] = *(const pack<S, V> *)(job.y.values + (first + u * GROUPS) * job.y.stride + col);
#pragma unroll
        for (int u = 0; u < AFTER_AHEAD; u++) {
            const int64_t row = first + u * GROUPS;
            pack<T, V> y;
            T sums[COUNT] = {};
#pragma unroll
            for (int v = 0; v < V; v++) {
                T number = number_from(&from[u].part[v]) + bias.part[v];
                number = finished<LANES == AFTER_LANES>(job.how, stream, row * job.cols + col + v, number);
                if (sizeof(S) == 2) number = __bfloat162float(__float2bfloat16_rn((float)number)); /* as it is stored */
                y.part[v] = number;
#pragma unroll
                for (int j = 0; j < COUNT; j++) sums[j] = fused(number, w[j][v], sums[j]);
            }
            if (filled && row < job.rows) job.y.store(row, col, y);
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                T sum = deal_sums<AFTER_LANES>(sums + e * AFTER_LANES);
#pragma unroll
                for (int apart = AFTER_LANES; apart < LANES; apart *= 2) sum += __shfl_xor_sync(FULL_WARP, sum, apart);
                const after_term<S> *term;
                int k = e * AFTER_LANES + lane;
                if (lane >= AFTER_LANES || !find_column(job, &k, &term) || row >= term->rows) continue;
                if (term->whole) ((T *)term->c)[row * term->c_stride + k] = sum;
                else number_to((S *)term->c + row * term->c_stride + k, sum);
            }
        }
    }
}

template <typename S, int V, int LANES>
static sp_status finish_narrow(gnn_engine *engine, const after_job<S> &job, bool few)
{
    const int64_t blocks = ceil_div(job.rows, AFTER_AHEAD * THREADS / LANES);
    const int64_t most = LANES == 32 ? 2 * (int64_t)state_of(engine)->processors : blocks;
    return launch_early(engine, few ? finish_narrow<S, V, FEW / 2, LANES> : finish_narrow<S, V, FEW, LANES>,
                        blocks < most ? blocks : most, THREADS, 0, job);
}

template <typename S>
static sp_status finish_multiply(gnn_engine *engine, const mask &how, const void *bias, sp_dense *y, int count,
                                 const gnn_product_with *product, int cols)
{
    using T = computed_t<S>;
    constexpr int WHOLE = 16 / sizeof(T);
    after_job<S> job = {{}, view_of<S>(y), how, (const T *)bias, y->rows, y->cols};
    for (int k = 0; k < count; k++) {
        const sp_dense *w = product[k].b, *c = product[k].c;
        job.term[k] = {(const S *)w->values, c->values,     c->rows,           w->stride,
                       c->stride,            (int)w->cols,  c->type != y->type};
    }
    const bool few = cols <= FEW / 2;
    if (sizeof(S) == 2 && y->cols > AFTER_LANES * WHOLE)
        return few ? finish_narrow<S, 2 * WHOLE, 32>(engine, job, few) : finish_narrow<S, WHOLE, 32>(engine, job, few);
    return y->cols <= AFTER_LANES * WHOLE / 2 ? finish_narrow<S, WHOLE / 2, AFTER_LANES>(engine, job, few)
                                              : finish_narrow<S, WHOLE, AFTER_LANES>(engine, job, few);
}

/* Columns that the lanes hold: with more than eight sums a lane of a warp has registers for half as many. */
static int64_t most_columns(const sp_dense *y, int64_t cols)
{
    if (y->type == SP_DENSE_BF16) return cols <= FEW / 2 ? 256 : 128;
    return AFTER_LANES * 16 / (int64_t)number_size(y->type);
}

/* More columns than lanes hold, or rows or a bias that are not aligned, go step by step. */
sp_status gnn_cuda_finish_multiply(gnn_engine *engine, const gnn_pointwise *how, const void *bias, sp_dense *y,
                                   int count, const gnn_product_with *product)
{
    int64_t cols = 0;
    for (int k = 0; k < count; k++) cols += product[k].b->cols;
    const bool elu = how->activation == GNN_ELU && y->type == SP_DENSE_BF16;
    if (left_out("gnn-finish") || cols > FEW || y->cols > most_columns(y, cols) || y->rows == 0 || !is_aligned(y) ||
        elu)
        return gnn_finish_multiply_by_steps(engine, how, bias, y, count, product);
    const mask own = make_mask(engine, how->activation, how->rate, how->site);
    const auto run = y->type == SP_DENSE_F32   ? finish_multiply<float>
                     : y->type == SP_DENSE_F64 ? finish_multiply<double>
                                               : finish_multiply<__nv_bfloat16>;
    return run(engine, own, bias, y, count, product, (int)cols);
}

/* ELU's exponential for each of a thread's 64 numbers would not fit the instruction cache. */
sp_status gnn_cuda_dense(gnn_engine *engine, int count, const gnn_product *product, const gnn_pointwise *how,
                         const void *bias, sp_dense *y)
{
    bool split = how->activation != GNN_ELU;
    for (int k = 0; k < count; k++) split = split && gnn_cuda_split_wins(engine, false, false, product[k].a, y);
    if (!split || left_out("gnn-epilogue")) return gnn_dense_by_steps(engine, count, product, how, bias, y);
    return gnn_cuda_multiply_split(engine, false, false, 1, count, product, 0, how, bias, y);
}
