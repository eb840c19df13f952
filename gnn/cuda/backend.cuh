/* What the CUDA files of this module share: the engine's state, checked calls, kernels over matrices number by
 * number, over the rows of a sparse matrix, and reductions that have the same bits in every run.
 *
 * Nothing here waits or allocates: all work space is made with the engine. Launches follow one another on the
 * context's stream, so that one work space serves them all.
 */
#ifndef GNN_CUDA_BACKEND_CUH
#define GNN_CUDA_BACKEND_CUH

#include <cuda_runtime.h>

#include "internal.h"

/* ---- host: state and checked calls ----------------------------------------------------------------------- */

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8 };

struct cublas; /* multiply.cu */

/* The engine's `state`. */
struct gnn_cuda_state {
    int device, processors;
    cudaStream_t stream;
    double *partial;   /* work space of reductions: `blocks` blocks of PARTIALS numbers */
    unsigned *tickets; /* `blocks` counters, 0 between launches: see is_last_block */
    int64_t blocks;    /* that fill the device */
    int64_t captured_from; /* the engine's step when a capture began */
    bool overlaps;     /* kernels may begin while the one before them ends: see queue_kernel */
    cublas *blas;
    /* Of multiply_split.cu: parts of C, an image of B, what that is scaled by; NULL where it is of no use. */
    float *split_partial, *split_backs;
    void *split_image;
};

/* What a block leaves behind at most: sums of a tile of columns, the scores of all splits, or for each of
 * NARROW_BLOCKS blocks a multiprocessor 17 sums of 64 columns (dense.cu). */
enum { NARROW_BLOCKS = 2, PARTIALS = 17 * 64 * NARROW_BLOCKS / BLOCKS_PER_PROCESSOR };

static inline gnn_cuda_state *state_of(const gnn_engine *engine) { return (gnn_cuda_state *)engine->state; }

sp_status gnn_cuda_status(gnn_engine *engine, cudaError_t error, const char *call);
sp_status gnn_cuda_open_blas(gnn_engine *engine);
void gnn_cuda_close_blas(gnn_engine *engine);
sp_status gnn_cuda_open_split(gnn_engine *engine);
sp_status gnn_cuda_open_tiles(gnn_engine *engine);

#define CHECK(call)                           \
    do {                                      \
        sp_status status_ = (call);           \
        if (status_ != SP_OK) return status_; \
    } while (0)
#define CUDA_CHECK(call) CHECK(gnn_cuda_status(engine, (call), #call))

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Queues a kernel whose first act is follow(): where the device can, its blocks come to the multiprocessors when
 * those of the kernel before it have all begun and leave room, and wait there, which takes some 0.5 us less than to
 * begin when all is done. */
template <typename... P, typename... A>
static inline cudaError_t queue_kernel(const gnn_cuda_state *state, void (*kernel)(P...), int64_t blocks, int threads,
                                       size_t shared, const A &...arguments)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t how = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    how.gridDim = dim3((unsigned)blocks);
    how.blockDim = dim3((unsigned)threads);
    how.dynamicSmemBytes = shared;
    how.stream = state->stream;
    how.attrs = &early;
    how.numAttrs = state->overlaps;
    return cudaLaunchKernelEx(&how, kernel, P(arguments)...);
}

static inline size_t size_of(sp_dense_type type) { return type == SP_DENSE_F32 ? sizeof(float) : sizeof(double); }

/* The blocks of a launch: 2^31 - 1 at most. */
static inline sp_status check_grid(gnn_engine *engine, int64_t blocks)
{
    if (blocks <= INT32_MAX) return SP_OK;
    return sp_fail(engine->context, SP_ERROR_UNSUPPORTED, "%lld blocks of threads are more than a launch may have",
                   (long long)blocks);
}

sp_status gnn_cuda_multiply(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, const sp_dense *a,
                            const sp_dense *b, double beta, sp_dense *c);

sp_status gnn_cuda_multiply_features(gnn_engine *engine, bool transpose, const sp_dense *x, const sp_dense *rounded,
                                     int count, const gnn_product_with *product);

/* The same on tensor cores: multiply_split.cu, and whether that is faster. */
bool gnn_cuda_split_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a,
                         const sp_dense *c);
sp_status gnn_cuda_multiply_split(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, int count,
                                  const gnn_product *product, double beta, const gnn_pointwise *how, const void *bias,
                                  sp_dense *c);

/* C, or two of the same A, of few columns: multiply_narrow.cu; A may be of bf16. */
bool gnn_cuda_narrow_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a, int count,
                          const gnn_product_with *product);
sp_status gnn_cuda_multiply_narrow(gnn_engine *engine, bool transpose_a, double alpha, const sp_dense *a, int count,
                                   const gnn_product_with *product, double beta);

sp_status gnn_cuda_forward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *x, const void *bias,
                           sp_dense *y);
sp_status gnn_cuda_dense(gnn_engine *engine, int count, const gnn_product *product, const gnn_pointwise *how,
                         const void *bias, sp_dense *y);
sp_status gnn_cuda_finish_multiply(gnn_engine *engine, const gnn_pointwise *how, const void *bias, sp_dense *y,
                                   int count, const gnn_product_with *product);
sp_status gnn_cuda_dense_backward(gnn_engine *engine, int count, const gnn_product_gradient *product,
                                  const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient, void *sums);

sp_status gnn_cuda_backward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *y,
                            const sp_dense *y_gradient, sp_dense *x_gradient, void *sums);
sp_status gnn_cuda_drop(gnn_engine *engine, double rate, uint64_t site, int64_t count, const void *x,
                        sp_dense_type type, void *y);
sp_status gnn_cuda_copy(gnn_engine *engine, const sp_dense *from, sp_dense *to);
sp_status gnn_cuda_round(gnn_engine *engine, const sp_dense *from, sp_dense *to);
sp_status gnn_cuda_fill(gnn_engine *engine, double value, sp_dense *to);
sp_status gnn_cuda_add(gnn_engine *engine, double alpha, const sp_dense *from, sp_dense *to);
sp_status gnn_cuda_column_sums(gnn_engine *engine, const sp_dense *x, void *sums);
sp_status gnn_cuda_gather_rows(gnn_engine *engine, const sp_dense *x, const int32_t *rows, sp_dense *y);

sp_status gnn_cuda_softmax_loss(gnn_engine *engine, sp_dense *logits, const void *bias, const int32_t *nodes,
                                const int32_t *labels, const uint8_t *split, gnn_split of, int64_t count,
                                gnn_score *score, sp_dense *gradient, void *sums);
sp_status gnn_cuda_sigmoid_loss(gnn_engine *engine, const sp_dense *logits, const int32_t *nodes,
                                const uint8_t *targets, const uint8_t *split, gnn_split of, int64_t count,
                                gnn_score *score, sp_dense *gradient, void *sums);
sp_status gnn_cuda_probabilities(gnn_engine *engine, const sp_dense *x, bool softmax, sp_dense *y);

sp_status gnn_cuda_optimize(gnn_engine *engine, const gnn_optimizer_options *how, gnn_range decay, int64_t count,
                            sp_dense_type type, void *weights, const void *gradients, void *m, void *v,
                            gnn_pace *pace);

sp_status gnn_cuda_head_scores(gnn_engine *engine, const sp_dense *h, int heads, const void *vector,
                               sp_dense *scores);
sp_status gnn_cuda_head_scores_backward(gnn_engine *engine, const sp_dense *h, int heads, const void *vector,
                                        const sp_dense *scores_gradient, sp_dense *h_gradient, void *vector_gradient);
sp_status gnn_cuda_edge_scores(gnn_engine *engine, const sp_csr *a, const sp_dense *left, const sp_dense *right,
                               int head, double slope, void *values);
sp_status gnn_cuda_edge_scores_backward(gnn_engine *engine, const sp_csr *a, const sp_csr *transpose,
                                        const int64_t *places, const sp_dense *left, const sp_dense *right, int head,
                                        double slope, void *values, sp_dense *left_gradient,
                                        sp_dense *right_gradient);
sp_status gnn_cuda_gather(gnn_engine *engine, const int64_t *places, int64_t count, const void *from,
                          sp_dense_type type, void *to);

sp_status gnn_cuda_maximum_backward(gnn_engine *engine, const sp_csr *transpose, const int64_t *places,
                                    const int64_t *argument, const sp_dense *y_gradient, sp_dense *x_gradient);

sp_status gnn_cuda_multiply_kept(gnn_engine *engine, const sp_dense *s, const sp_dense *w, sp_cbsr *kept);

sp_status gnn_cuda_multiply_tiles(gnn_engine *engine, const gnn_tiles *tiles, const float *r, const float *c,
                                  const sp_dense *x, sp_dense *y);

/* ---- device: packs of numbers, groups of lanes, the last block -------------------------------------------- */

/* V neighbouring numbers of a row, loaded and stored at once. */
template <typename T, int V> struct alignas(V * sizeof(T)) pack {
    T part[V];
};

/* A matrix as kernels see it. */
template <typename T> struct dense_view {
    T *values;
    int64_t stride;

    template <int V> __device__ __forceinline__ pack<T, V> load(int64_t row, int64_t col) const
    {
        return *(const pack<T, V> *)(values + row * stride + col);
    }
    template <int V> __device__ __forceinline__ void store(int64_t row, int64_t col, const pack<T, V> &from) const
    {
        *(pack<T, V> *)(values + row * stride + col) = from;
    }
};

template <typename T> static inline dense_view<T> view_of(const sp_dense *matrix)
{
    return {(T *)matrix->values, matrix->stride};
}

/* Whether rows may be read 16 bytes at a time. */
static inline bool is_aligned(const sp_dense *matrix)
{
    const size_t size = size_of(matrix->type);
    return (size_t)matrix->cols * size % 16 == 0 && (size_t)matrix->stride * size % 16 == 0 &&
           (uintptr_t)matrix->values % 16 == 0;
}

struct nothing {};

/* Lets the next kernel's blocks come, and waits until all that was queued before this one is done. */
static __device__ __forceinline__ void follow()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

/* The lanes of this thread's group. */
template <int LANES> static __device__ __forceinline__ unsigned group_mask()
{
    return LANES == 32 ? 0xffffffffu : ((1u << LANES % 32) - 1) << (threadIdx.x % 32 / LANES * LANES);
}

template <int LANES, typename T> static __device__ __forceinline__ T group_sum(T value)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(group_mask<LANES>(), value, step);
    return value;
}

/* Lane j of a group gets the group's sum of sums[j], with LANES - 1 shuffles where one after another would take
 * LANES · log LANES: half of the sums go to the other half of the lanes, and so on. All lanes of the warp. */
template <int LANES, typename T> static __device__ __forceinline__ T deal_sums(T *sums)
{
#pragma unroll
    for (int half = LANES / 2; half > 0; half /= 2) {
        const bool upper = threadIdx.x & half;
#pragma unroll
        for (int j = 0; j < half; j++) {
            const T kept = upper ? sums[j + half] : sums[j], given = upper ? sums[j] : sums[j + half];
            sums[j] = kept + __shfl_xor_sync(0xffffffffu, given, half);
        }
    }
    return sums[0];
}

/* True in the block that is the last of `blocks` to get here; it sees what the others have written. The ticket is 0
 * again for the next launch. */
static __device__ __forceinline__ bool is_last_block(unsigned *ticket, unsigned blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(ticket, blocks - 1) == blocks - 1;
    __syncthreads();
    if (last) __threadfence();
    return last;
}

/* ---- activation and dropout ------------------------------------------------------------------------------ */

struct mask {
    uint64_t seed, site, bound; /* bound 0: nothing is dropped */
    const int64_t *step;
    double scale;
    gnn_activation activation;
};

static inline mask make_mask(const gnn_engine *engine, gnn_activation activation, double rate, uint64_t site)
{
    return {engine->seed, site, gnn_drop_bound(rate), engine->step_there, rate < 1 ? 1 / (1 - rate) : 0, activation};
}

/* What the masks of this step are drawn from; threads ask once. */
static __device__ __forceinline__ uint64_t stream_of(const mask &how)
{
    return how.bound ? gnn_stream(how.seed, *how.step, how.site) : 0;
}

static __device__ __forceinline__ bool dropped(const mask &how, uint64_t stream, int64_t index)
{
    return gnn_draw(stream, index) >> 40 < how.bound;
}

static __device__ __forceinline__ float exp_minus_1(float x) { return expm1f(x); }
static __device__ __forceinline__ double exp_minus_1(double x) { return expm1(x); }

/* dropout(activation(x)) of number `index` of a matrix; ELU: it may be that. NaN stays NaN: a diverged model must not
 * look like one that has nothing to say. */
template <bool ELU, typename T>
static __device__ __forceinline__ T finished(const mask &how, uint64_t stream, int64_t index, T x)
{
    if (how.activation == GNN_RELU) x = x <= 0 ? 0 : x;
    if (ELU && how.activation == GNN_ELU && x <= 0) x = exp_minus_1(x);
    return !how.bound ? x : dropped(how, stream, index) ? 0 : x * (T)how.scale;
}

/* Given y = finished(x), the derivative times `gradient`: of ReLU 0 where y is 0. */
template <typename T>
static __device__ __forceinline__ T derived(const mask &how, uint64_t stream, int64_t index, T y, T gradient)
{
    const T scale = (T)how.scale;
    if (how.activation == GNN_RELU) return y == 0 ? 0 : gradient * scale;
    const bool linear = how.activation == GNN_LINEAR || y > 0;
    return how.bound && dropped(how, stream, index) ? 0 : gradient * (linear ? scale : y + scale);
}

/* ---- number by number ------------------------------------------------------------------------------------ */

/* A block takes a tile of rows and columns: 2^shift lanes across, ROWS rows a thread. */
struct each_tiling {
    int64_t rows, packs; /* packs a row */
    unsigned col_tiles;
    int shift;
};

/* `op` gives the types `input` and `local`, and for a pack begin(col) once a thread, load(row, col), and
 * store(row, col, input, local). All loads of a thread come before its stores. */
template <typename T, int V, int ROWS, typename Op>
static __global__ void __launch_bounds__(THREADS) each_pack(const each_tiling tiling, const Op op)
{
    follow();
    const int across = 1 << tiling.shift, down = THREADS >> tiling.shift;
    const unsigned row_tile = blockIdx.x / tiling.col_tiles, col_tile = blockIdx.x - row_tile * tiling.col_tiles;
    const int64_t place = (int64_t)col_tile * across + (threadIdx.x & (across - 1)), col = place * V;
    const int64_t row = (int64_t)row_tile * (down * ROWS) + (threadIdx.x >> tiling.shift);
    if (place >= tiling.packs) return;
    const typename Op::local local = op.begin(col);
    typename Op::input in[ROWS];
#pragma unroll
    for (int u = 0; u < ROWS; u++)
        if (row + u * down < tiling.rows) in[u] = op.load(row + u * down, col);
#pragma unroll
    for (int u = 0; u < ROWS; u++)
        if (row + u * down < tiling.rows) op.store(row + u * down, col, in[u], local);
}

/* 4 rows a thread keep 64 KB in flight a multiprocessor; where that leaves some without a block, 1 row. */
template <typename T, int V, typename Op>
static sp_status launch_each(gnn_engine *engine, int64_t rows, int64_t cols, const Op &op)
{
    const gnn_cuda_state *state = state_of(engine);
    each_tiling tiling = {rows, cols / V, 1, 0};
    if (rows == 0 || cols == 0) return SP_OK;
    while (tiling.shift < 8 && (int64_t)1 << tiling.shift < tiling.packs) tiling.shift++;
    const int64_t col_tiles = ceil_div(tiling.packs, (int64_t)1 << tiling.shift), down = THREADS >> tiling.shift;
    tiling.col_tiles = (unsigned)col_tiles;
    const bool few = ceil_div(rows, 4 * down) * col_tiles < state->blocks;
    const int64_t blocks = ceil_div(rows, few ? down : 4 * down) * col_tiles;
    CHECK(check_grid(engine, blocks));
    const auto kernel = few ? each_pack<T, V, 1, Op> : each_pack<T, V, 4, Op>;
    CUDA_CHECK(cudaSetDevice(state->device));
    CUDA_CHECK(queue_kernel(state, kernel, blocks, THREADS, 0, tiling, op));
    return SP_OK;
}

/* ---- rows of a sparse matrix ------------------------------------------------------------------------------ */

/* Rows of more entries a lane are taken by the whole block. */
enum { LONG_ROW = 64 };

/* A group of LANES a row, then the block's long rows one after another: `work` gives sum(row, begin, end, step) over
 * its entries from begin on in steps, and finish(row, sum). */
template <int LANES, typename Work>
static __global__ void __launch_bounds__(THREADS)
    each_sparse_row(int64_t rows, const int64_t *offsets, const Work work)
{
    __shared__ double partial[THREADS / 32];
    const int64_t first = (int64_t)blockIdx.x * (THREADS / LANES), row = first + threadIdx.x / LANES;
    bool is_long = false;
    if (row < rows) {
        const int64_t begin = offsets[row], end = offsets[row + 1];
        is_long = end - begin > LANES * LONG_ROW;
        if (!is_long) {
            const double sum = group_sum<LANES>(work.sum(row, begin + threadIdx.x % LANES, end, LANES));
            if (threadIdx.x % LANES == 0) work.finish(row, sum);
        }
    }
    if (!__syncthreads_or(is_long)) return;
    for (int64_t i = first; i < min(first + THREADS / LANES, rows); i++) {
        const int64_t begin = offsets[i], end = offsets[i + 1];
        if (end - begin <= LANES * LONG_ROW) continue;
        const double sum = group_sum<32>(work.sum(i, begin + threadIdx.x, end, THREADS));
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            double total = 0;
            for (int w = 0; w < THREADS / 32; w++) total += partial[w];
            work.finish(i, total);
        }
        __syncthreads();
    }
}

template <typename Work> static sp_status launch_sparse_rows(gnn_engine *engine, const sp_csr *a, const Work &work)
{
    const gnn_cuda_state *state = state_of(engine);
    if (a->rows == 0) return SP_OK;
    CUDA_CHECK(cudaSetDevice(state->device));
    if (a->nnz / 16 < a->rows)
        each_sparse_row<8><<<(unsigned)ceil_div(a->rows, THREADS / 8), THREADS, 0, state->stream>>>(
            a->rows, a->row_offsets, work);
    else
        each_sparse_row<32><<<(unsigned)ceil_div(a->rows, THREADS / 32), THREADS, 0, state->stream>>>(
            a->rows, a->row_offsets, work);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- sums over rows --------------------------------------------------------------------------------------- */

/* A block takes a tile of columns, 2^shift packs across, and a part of the rows. */
struct sum_tiling {
    int64_t rows, packs;
    unsigned col_tiles, parts;
    int shift;
};

/* The block's threads of each column together: sums[v] of the first row of threads hold the totals. */
template <int V> static __device__ void add_down(double (&sums)[V], int across, double (*shared)[V])
{
#pragma unroll
    for (int v = 0; v < V; v++) shared[threadIdx.x][v] = sums[v];
    for (int half = THREADS / 2; half >= across; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
#pragma unroll
            for (int v = 0; v < V; v++) shared[threadIdx.x][v] += shared[threadIdx.x + half][v];
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; v++) sums[v] = shared[threadIdx.x & (across - 1)][v];
    __syncthreads();
}

/* sums[col] = Σ over rows of what `op` adds: begin(col) once a thread, load(row, col), and add(row, col, input,
 * local, sums). Four rows a thread are in flight. The last block of a tile of columns adds up its parts, in their
 * order. */
template <typename T, int V, typename Op>
static __global__ void __launch_bounds__(THREADS)
    sum_rows(const sum_tiling tiling, const Op op, double *partial, unsigned *tickets, T *totals)
{
    follow();
    constexpr int ROWS = 4;
    __shared__ double shared[THREADS][V];
    const int across = 1 << tiling.shift, down = THREADS >> tiling.shift;
    const unsigned part = blockIdx.x / tiling.col_tiles, col_tile = blockIdx.x - part * tiling.col_tiles;
    const int lane = threadIdx.x & (across - 1), level = threadIdx.x >> tiling.shift;
    const int64_t place = (int64_t)col_tile * across + lane, col = place * V;
    const int64_t end = tiling.rows * (part + 1) / tiling.parts;
    const bool filled = place < tiling.packs;
    double sums[V] = {};
    if (filled) {
        const typename Op::local local = op.begin(col);
        for (int64_t row = tiling.rows * part / tiling.parts + level; row < end; row += ROWS * down) {
            typename Op::input in[ROWS];
#pragma unroll
            for (int u = 0; u < ROWS; u++)
                if (row + u * down < end) in[u] = op.load(row + u * down, col);
#pragma unroll
            for (int u = 0; u < ROWS; u++)
                if (row + u * down < end) op.add(row + u * down, col, in[u], local, sums);
        }
    }
    add_down<V>(sums, across, shared);
    if (tiling.parts > 1) {
        double *own = partial + (int64_t)col_tile * tiling.parts * across * V;
        if (level == 0)
#pragma unroll
            for (int v = 0; v < V; v++) own[((int64_t)part * across + lane) * V + v] = sums[v];
        if (!is_last_block(tickets + col_tile, tiling.parts)) return;
#pragma unroll
        for (int v = 0; v < V; v++) sums[v] = 0;
#pragma unroll 4
        for (unsigned p = level; p < tiling.parts; p += down)
#pragma unroll
            for (int v = 0; v < V; v++) sums[v] += __ldcg(own + ((int64_t)p * across + lane) * V + v);
        add_down<V>(sums, across, shared);
    }
    if (level == 0 && filled)
#pragma unroll
        for (int v = 0; v < V; v++) totals[col + v] = (T)sums[v];
}

/* Tiles 128 bytes wide (32 numbers where they are loaded one by one), parts so that the device is full. Parts depend
 * on the shape and the device alone. */
template <typename T, int V, typename Op>
static sp_status launch_sums(gnn_engine *engine, int64_t rows, int64_t cols, const Op &op, T *totals)
{
    const gnn_cuda_state *state = state_of(engine);
    sum_tiling tiling = {rows, cols / V, 1, 1, 0};
    if (cols == 0) return SP_OK;
    while (1 << tiling.shift < (V == 1 ? 32 : 8) && (int64_t)1 << tiling.shift < tiling.packs) tiling.shift++;
    const int64_t col_tiles = ceil_div(tiling.packs, (int64_t)1 << tiling.shift), down = THREADS >> tiling.shift;
    const int64_t wanted = ceil_div(rows, 8 * down), most = state->blocks / col_tiles;
    const int64_t parts = wanted < most ? wanted : most;
    tiling.col_tiles = (unsigned)col_tiles;
    tiling.parts = parts > 1 ? (unsigned)parts : 1;
    CHECK(check_grid(engine, col_tiles * tiling.parts));
    CUDA_CHECK(cudaSetDevice(state->device));
    CUDA_CHECK(queue_kernel(state, sum_rows<T, V, Op>, col_tiles * tiling.parts, THREADS, 0, tiling, op, state->partial,
                            state->tickets, totals));
    return SP_OK;
}

#endif
