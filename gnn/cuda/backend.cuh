/* What the CUDA files of this module share: the engine's state, checked calls, launches, packs of numbers, activation
 * and dropout. each.cuh goes over matrices number by number and row by row, hopper.cuh has instructions of Hopper.
 *
 * Nothing here waits or allocates: the work space is made with the engine. Launches are queued on the context's
 * stream, so one work space serves them all.
 */
#ifndef GNN_CUDA_BACKEND_CUH
#define GNN_CUDA_BACKEND_CUH

#include <cuda_bf16.h>
#include <type_traits>

#include "device/launch.cuh"
#include "device/sums.cuh"
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
    int64_t blocks;    /* blocks that fill the device */
    int64_t captured_from; /* the engine's step at the begin of a capture */
    bool overlaps;     /* kernels may begin while the kernel before them ends: see launch_early */
    cublas *blas;
    /* For multiply_split.cu: parts of C, an image of B and its scales. NULL on devices without its instructions. */
    float *split_partial, *split_backs;
    void *split_image;
};

/* Numbers that a block stores for others, at most: sums of a tile of columns, the scores of all splits, or for each
 * of NARROW_BLOCKS blocks a multiprocessor 17 sums of 64 columns (dense.cu). */
enum { NARROW_BLOCKS = 2, PARTIALS = 17 * 64 * NARROW_BLOCKS / BLOCKS_PER_PROCESSOR };

static inline gnn_cuda_state *state_of(const gnn_engine *engine) { return (gnn_cuda_state *)engine->state; }

sp_status gnn_cuda_open_blas(gnn_engine *engine);
void gnn_cuda_close_blas(gnn_engine *engine);
sp_status gnn_cuda_open_split(gnn_engine *engine);
sp_status gnn_cuda_open_tiles(gnn_engine *engine);

#define CUDA_CHECK(call) CHECK(cuda_status(engine->context, (call), #call))

/* What tables and launches ask of the owner of an operation: the engine, or a sampler (sample.cuh). */
static inline sp_context *context_of(const gnn_engine *engine) { return engine->context; }
static inline cudaStream_t stream_of(const gnn_engine *engine) { return state_of(engine)->stream; }
static inline bool has_overlap(const gnn_engine *engine) { return state_of(engine)->overlaps; }

/* The operations of a table, with the context's device current. */
template <auto OPERATION> struct there;
template <typename Result, typename Owner, typename... P, Result (*OPERATION)(Owner, P...)> struct there<OPERATION> {
    static Result run(Owner owner, P... arguments)
    {
        const device_scope scope(context_of(owner));
        if constexpr (!std::is_void_v<Result>) CHECK(scope.status);
        return OPERATION(owner, arguments...);
    }
};

template <typename Owner, typename... P, typename... A>
static inline sp_status launch_grid(const Owner *owner, bool early, void (*kernel)(P...), dim3 grid, int threads,
                                    size_t shared, const A &...arguments)
{
    return cuda_status(context_of(owner),
                       launch_kernel(kernel, grid, threads, shared, stream_of(owner), early && has_overlap(owner),
                                     arguments...),
                       "cudaLaunchKernelEx");
}

/* Launches `blocks` blocks, at most 2^31 - 1; does nothing for 0. */
template <typename Owner, typename... P, typename... A>
static inline sp_status launch_blocks(const Owner *owner, bool early, void (*kernel)(P...), int64_t blocks,
                                      int threads, size_t shared, const A &...arguments)
{
    if (blocks == 0) return SP_OK;
    if (blocks > INT32_MAX)
        return sp_fail(context_of(owner), SP_ERROR_UNSUPPORTED,
                       "%lld blocks of threads are more than a launch may have", (long long)blocks);
    return launch_grid(owner, early, kernel, dim3((unsigned)blocks), threads, shared, arguments...);
}

/* A kernel of THREADS threads. */
template <typename Owner, typename... P, typename... A>
static inline sp_status launch(const Owner *owner, void (*kernel)(P...), int64_t blocks, const A &...arguments)
{
    return launch_blocks(owner, false, kernel, blocks, THREADS, 0, arguments...);
}

/* A kernel whose first act is follow(). */
template <typename Owner, typename... P, typename... A>
static inline sp_status launch_early(const Owner *owner, void (*kernel)(P...), int64_t blocks, int threads,
                                     size_t shared, const A &...arguments)
{
    return launch_blocks(owner, true, kernel, blocks, threads, shared, arguments...);
}

#define GNN_OPERATION(name, ...) sp_status gnn_cuda_##name(gnn_engine *engine, __VA_ARGS__);
#include "operations.inc"

/* Products on tensor cores (multiply_split.cu), and whether that is faster. */
bool gnn_cuda_split_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a,
                         const sp_dense *c);
sp_status gnn_cuda_multiply_split(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, int count,
                                  const gnn_product *product, double beta, const gnn_pointwise *how, const void *bias,
                                  sp_dense *c);

/* One C of few columns, or two with the same A (multiply_narrow.cu). */
bool gnn_cuda_narrow_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a, int count,
                          const gnn_product_with *product);
sp_status gnn_cuda_multiply_narrow(gnn_engine *engine, bool transpose_a, double alpha, const sp_dense *a, int count,
                                   const gnn_product_with *product, double beta);

sp_status gnn_cuda_multiply_tiles(gnn_engine *engine, const gnn_tiles *tiles, const float *r, const float *c,
                                  const sp_dense *x, sp_dense *y);

/* ---- device: packs of numbers, groups of lanes ------------------------------------------------------------ */

/* V neighbouring numbers of a row, loaded or stored by one instruction. */
template <typename T, int V> struct alignas(V * sizeof(T)) pack {
    T part[V];
};

/* The type in which numbers of type S in memory are computed: f32 for bf16, else S. */
template <typename S> struct computed {
    using type = S;
};
template <> struct computed<__nv_bfloat16> {
    using type = float;
};
template <typename S> using computed_t = typename computed<std::remove_const_t<S>>::type;

template <typename S> static __device__ __forceinline__ computed_t<S> number_from(const S *at) { return *at; }
static __device__ __forceinline__ float number_from(const __nv_bfloat16 *at) { return __bfloat162float(*at); }
template <typename S> static __device__ __forceinline__ void number_to(S *at, S number) { *at = number; }
static __device__ __forceinline__ void number_to(__nv_bfloat16 *at, float number) { *at = __float2bfloat16_rn(number); }

/* A dense matrix in a kernel; S may be const. */
template <typename S> struct dense_view {
    using in_memory = std::remove_const_t<S>;
    using T = computed_t<S>;
    S *values;
    int64_t stride;

    template <int V> __device__ __forceinline__ pack<T, V> load(int64_t row, int64_t col) const
    {
        const pack<in_memory, V> from = *(const pack<in_memory, V> *)(values + row * stride + col);
        if constexpr (std::is_same_v<in_memory, T>) return from;
        else {
            pack<T, V> to;
#pragma unroll
            for (int v = 0; v < V; v++) to.part[v] = number_from(&from.part[v]);
            return to;
        }
    }
    template <int V> __device__ __forceinline__ void store(int64_t row, int64_t col, const pack<T, V> &from) const
    {
        pack<in_memory, V> to;
#pragma unroll
        for (int v = 0; v < V; v++) number_to(&to.part[v], from.part[v]);
        *(pack<in_memory, V> *)(values + row * stride + col) = to;
    }
};

template <typename T> static inline dense_view<T> view_of(const sp_dense *matrix)
{
    return {(T *)matrix->values, matrix->stride};
}

/* Whether rows may be read 16 bytes at a time. */
static inline bool is_aligned(const sp_dense *matrix)
{
    const size_t size = number_size(matrix->type);
    return (size_t)matrix->cols * size % 16 == 0 && (size_t)matrix->stride * size % 16 == 0 &&
           (uintptr_t)matrix->values % 16 == 0;
}

struct nothing {};

/* Calls body(number, width): number has the matrices' type, width is how many numbers are loaded at once, 16 bytes if
 * rows are aligned. */
template <int N> using width_of = std::integral_constant<int, N>;
template <typename Body> static inline sp_status by_type(sp_dense_type type, bool aligned, const Body &body)
{
    if (type == SP_DENSE_BF16)
        return aligned ? body(__nv_bfloat16(), width_of<8>()) : body(__nv_bfloat16(), width_of<1>());
    if (type == SP_DENSE_F32) return aligned ? body(float(), width_of<4>()) : body(float(), width_of<1>());
    return aligned ? body(double(), width_of<2>()) : body(double(), width_of<1>());
}

/* Lets the next kernel's blocks come, and waits until all that was queued before this one is done. */
static __device__ __forceinline__ void follow()
{
    let_next_begin();
    wait_for_previous();
}

static __device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

/* Lane j of a group gets the group's sum of sums[j], with LANES - 1 shuffles instead of LANES · log LANES: half of
 * the sums go to the other half of the lanes, and so on. All lanes of the warp call it. */
template <int LANES, typename T> static __device__ __forceinline__ T deal_sums(T *sums)
{
#pragma unroll
    for (int half = LANES / 2; half > 0; half /= 2) {
        const bool upper = threadIdx.x & half;
#pragma unroll
        for (int j = 0; j < half; j++) {
            const T kept = upper ? sums[j + half] : sums[j], given = upper ? sums[j] : sums[j + half];
            sums[j] = kept + __shfl_xor_sync(FULL_WARP, given, half);
        }
    }
    return sums[0];
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

/* The random stream of this step's masks; a thread asks once. */
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

/* dropout(activation(x)) of number `index` of a matrix. ELU: the activation may be ELU. NaN stays NaN, so that a
 * diverged model is noticed. */
template <bool ELU, typename T>
static __device__ __forceinline__ T finished(const mask &how, uint64_t stream, int64_t index, T x)
{
    if (how.activation == GNN_RELU) x = x <= 0 ? 0 : x;
    if (ELU && how.activation == GNN_ELU && x <= 0) x = exp_minus_1(x);
    return !how.bound ? x : dropped(how, stream, index) ? 0 : x * (T)how.scale;
}

/* The derivative at y = finished(x), times `gradient`. For ReLU it is 0 where y is 0. */
template <typename T>
static __device__ __forceinline__ T derived(const mask &how, uint64_t stream, int64_t index, T y, T gradient)
{
    const T scale = (T)how.scale;
    if (how.activation == GNN_RELU) return y == 0 ? 0 : gradient * scale;
    const bool linear = how.activation == GNN_LINEAR || y > 0;
    return how.bound && dropped(how, stream, index) ? 0 : gradient * (linear ? scale : y + scale);
}

#endif
