/* Shared by the CUDA files of libsparse: the context's state, the table of operations, the order of rows. The headers
 * beside it need no private header, and gnn uses them too: failures (check.cuh), device memory (array.cuh), launches
 * (launch.cuh), sums and scans of lanes and blocks (sums.cuh). */
#ifndef SPARSE_CUDA_COMMON_CUH
#define SPARSE_CUDA_COMMON_CUH

#include <cuda.h> /* types only: the driver's functions are looked up at run time */
#include <type_traits>

#include "core/internal.h"
#include "device/array.cuh"
#include "device/launch.cuh"
#include "device/sums.cuh"

/* ---- host: state, checked calls, arrays ---------------------------------------------------------------- */

enum { SIDE_STREAMS = 6, MAILBOX = 1024 /* bytes, for counts that the host waits for */ };

struct cuda_state {
    int device, processors;
    CUcontext primary;                   /* the device's context of the driver, which the runtime uses too */
    CUresult (CUDAAPI *push)(CUcontext); /* cuCtxPushCurrent, cuCtxPopCurrent */
    CUresult (CUDAAPI *pop)(CUcontext *);
    size_t shared_limit; /* bytes of shared memory a block may have */
    cudaMemPool_t pool; /* NULL: memory comes from the caller's allocator */
    struct {
        struct {
            void *data;
            size_t bytes;
        } *blocks;
        int64_t count, room; /* of blocks */
        size_t bytes, peak;
    } lent; /* blocks of that allocator */
    cudaStream_t stream, own, side[SIDE_STREAMS]; /* stream: the context's own, or one of the caller */
    cudaEvent_t forked, joined[SIDE_STREAMS];
    struct {
        const void *kernel;
        size_t shared;
        int blocks;
    } grids[128]; /* results of cuda_full_grid */
    int known_grids;
    struct {
        char *data;
        size_t bytes;
        int turn;
    } counts;      /* counts that contractions keep between calls (contract/cuda/contract.cu) */
    void *mailbox; /* MAILBOX bytes of host memory that the device can write */
};

static inline cuda_state *cuda_state_of(sp_context *context) { return (cuda_state *)context->device_state; }

/* memory.cu: opens and closes the source of memory; closing gives back what the caller has not released. */
sp_status cuda_open_memory(sp_context *context);
void cuda_close_memory(sp_context *context);
/* Bytes that the context's pool holds and nobody uses; 0 with an allocator of the caller's. Asking the driver what is
 * free takes 13 µs. */
sp_status cuda_unused(sp_context *context, size_t *bytes);
/* Bytes that may still be allocated: the rest of the budget, or the free memory less a reserve. */
sp_status cuda_available(sp_context *context, size_t *bytes);
/* Starts a measurement of peak memory; *before gets the bytes in use now. cuda_peak: how far the peak rose above
 * that. */
sp_status cuda_watch_peak(sp_context *context, size_t *before);
sp_status cuda_peak(sp_context *context, size_t before, int64_t *rise);
/* The same without the memory of C. */
sp_status cuda_peak_beside(sp_context *context, size_t before, const sp_csr *c, int64_t *rise);
sp_status cuda_allocate(sp_context *context, size_t bytes, void **pointer);
void cuda_release(sp_context *context, void *pointer);
/* Releases the counts that contractions keep between calls. */
void cuda_drop_counts(sp_context *context);
/* Waits for the stream. SP_ERROR_INTERRUPTED if the interrupt flag is set. */
sp_status cuda_finish(sp_context *context);
/* cuda_fork: side streams start after the work queued in the main stream. cuda_join: the main stream goes on after the
 * work of all side streams. */
sp_status cuda_fork(sp_context *context, int streams = SIDE_STREAMS);
sp_status cuda_join(sp_context *context, int streams = SIDE_STREAMS);

#define DECLARE(name) std::remove_pointer_t<decltype(sp_backend::name)> sp_cuda_##name;
SP_OPERATIONS(DECLARE)
#undef DECLARE
/* B gets arrays; or its own are filled. */
sp_status sp_cuda_transpose(sp_context *context, const sp_csr *a, sp_csr *b);
sp_status sp_cuda_fill_transpose(sp_context *context, const sp_csr *a, const sp_csr *b);
sp_status sp_cuda_from_coo(sp_context *context, const sp_coo *coo, sp_combine combine, bool symmetric,
                           sp_csr *matrix);
sp_status sp_cuda_widen(sp_context *context, int64_t count, const int32_t *from, int64_t *to);
sp_status sp_cuda_is_sound(sp_context *context, const sp_csr *matrix, bool *sound);
sp_status sp_cuda_turn(sp_context *context, const sp_dense *from, sp_dense *to);
/* The algorithms of sp_spgemm. */
sp_status sp_cuda_spgemm_hash(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info);
sp_status sp_cuda_spgemm_warp(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info);
/* Each time whether the function after it takes the product, and is faster. */
bool cuda_is_small(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options);
sp_status sp_cuda_spgemm_small(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                               sp_spgemm_info *info);
bool cuda_is_column(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options);
sp_status sp_cuda_spgemm_column(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info);
/* C's values, in its pattern. */
sp_status sp_cuda_spgemm_column_values(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c);
sp_status sp_cuda_spgemm_warp_values(sp_context *context, const sp_csr *a, const sp_csr *b,
                                     const sp_spgemm_options *options, sp_csr *c);

sp_status sp_cuda_number(sp_context *context, int64_t count, int64_t *to);
sp_status sp_cuda_gather(sp_context *context, const int64_t *index, int64_t count, const void *from, size_t size,
                         void *to);

#define CUDA_CHECK(call) CHECK(cuda_status(context, (call), #call))

/* A device matrix for kernels; values NULL stands for ones. */
template <typename V> struct matrix_view {
    const int64_t *offsets;
    const int32_t *cols;
    const V *values;
};

template <typename V> static inline matrix_view<V> view_of(const sp_csr *matrix)
{
    return {matrix->row_offsets, matrix->col_indices, (const V *)matrix->values};
}

/* ---- host: row classes --------------------------------------------------------------------------------- */

enum { MAX_CLASSES = 11, ORDER_THREADS = 256 };

/* The number of runs of ORDER_THREADS rows. The members of each class are counted run by run. */
static inline int64_t order_runs(int64_t rows) { return (rows + ORDER_THREADS - 1) / ORDER_THREADS; }
/* order = the rows class by class, ascending within a class. counts[c · order_runs(rows) + r] is the number of rows of
 * class c in run r. */
sp_status cuda_order_rows(sp_context *context, int64_t rows, const uint8_t *classes, const int32_t *counts,
                          int32_t *order);
/* offsets[i] = Σ of the counts before i, for rows + 1 offsets. */
sp_status cuda_scan_counts(sp_context *context, int64_t rows, const int32_t *counts, int64_t *offsets);
/* products[i] = Σ over k in A's row i of nnz(B's row k). Reads the offsets and columns of A and the offsets of B. */
sp_status cuda_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t *products);

/* Raises the kernel's limit of dynamic shared memory to at least `shared`. A limit that must be raised is raised to the
 * device's maximum: it holds for the whole process, so it must suffice for all contexts. */
template <typename Kernel> static sp_status cuda_allow_shared(sp_context *context, Kernel *kernel, size_t shared)
{
    cudaFuncAttributes attributes;
    if (shared == 0) return SP_OK;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    if ((size_t)attributes.maxDynamicSharedSizeBytes >= shared) return SP_OK;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)(cuda_state_of(context)->shared_limit - attributes.sharedSizeBytes)));
    return SP_OK;
}

/* *blocks = the number of blocks that fills the device, at most `work`. Also allows the kernel its shared memory. */
template <typename Kernel>
static sp_status cuda_grid(sp_context *context, Kernel *kernel, int threads, size_t shared, int64_t work, int *blocks)
{
    int resident = 0;
    CHECK(cuda_allow_shared(context, kernel, shared));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared));
    int64_t full = (int64_t)(resident > 0 ? resident : 1) * cuda_state_of(context)->processors;
    *blocks = (int)(work < full ? work : full);
    return SP_OK;
}

/* The number of blocks that fills the device. The answer is kept for each kernel and context, because asking the
 * runtime takes longer than a launch. */
template <typename Kernel>
static sp_status cuda_full_grid(sp_context *context, Kernel *kernel, int threads, size_t shared, int *blocks)
{
    cuda_state *state = cuda_state_of(context);
    for (int i = 0; i < state->known_grids; i++)
        if (state->grids[i].kernel == (const void *)kernel && state->grids[i].shared == shared) {
            *blocks = state->grids[i].blocks;
            return SP_OK;
        }
    CHECK(cuda_grid(context, kernel, threads, shared, INT64_MAX, blocks));
    if (state->known_grids < (int)(sizeof state->grids / sizeof *state->grids))
        state->grids[state->known_grids++] = {(const void *)kernel, shared, *blocks};
    return SP_OK;
}

/* Turns the shared memory that the kernel's blocks do not need into first-level cache. Without a preference a
 * multiprocessor keeps the split of the previous kernel, which may have needed more. The split only changes while the
 * multiprocessor is empty. */
template <typename Kernel>
static sp_status cuda_leave_cache(sp_context *context, Kernel *kernel, int threads, size_t shared)
{
    const cuda_state *state = cuda_state_of(context);
    const size_t reserved = 1024, whole = state->shared_limit + reserved; /* reserved: of each block; whole: of a
                                                                             multiprocessor */
    cudaFuncAttributes own;
    int blocks;
    CHECK(cuda_full_grid(context, kernel, threads, shared, &blocks));
    CUDA_CHECK(cudaFuncGetAttributes(&own, kernel));
    const size_t used = blocks / state->processors * (shared + own.sharedSizeBytes + reserved);
    const size_t percent = (used * 100 + whole - 1) / whole;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    percent < 100 ? (int)percent : 100));
    return SP_OK;
}

/* ---- device ------------------------------------------------------------------------------------------- */

/* Threads and blocks that a multiprocessor of the architecture holds, for launch bounds. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
constexpr int ARCH_THREADS = 1024, ARCH_BLOCKS = 16;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890)
constexpr int ARCH_THREADS = 1536, ARCH_BLOCKS = __CUDA_ARCH__ == 860 ? 16 : 24;
#else
constexpr int ARCH_THREADS = 2048, ARCH_BLOCKS = 32;
#endif

/* Threads of a multiprocessor that registers are asked to suffice for, where it holds as many. */
constexpr int MOST_THREADS = ARCH_THREADS < 1536 ? ARCH_THREADS : 1536;

constexpr int32_t EMPTY = -1;

/* The hash of a column; its upper bits are the first slot to probe. The product alone maps columns at distances near a
 * multiple of a Fibonacci number, or from a golden-ratio sequence, to the same few slots: 230 probes a column in a
 * table half full. With the fold no distance up to 100,000 takes more than 10. A fold from bit 12 keeps runs of columns
 * together, and the product spreads them evenly: for the squares of finite elements the slowest of 32 lanes takes 2.2
 * probes, with a fold from bit 7 it takes 3.0. */
static __device__ __forceinline__ uint32_t scrambled(int32_t col)
{
    return ((uint32_t)col ^ (uint32_t)col >> 12) * 0x9e3779b1u;
}

/* A product as the CPU forms it: in f64, or in f32 for mcl's dense path. It is never fused with the addition. */
static __device__ __forceinline__ double product_of(float a, float b, bool in_f32)
{
    return in_f32 ? (double)__fmul_rn(a, b) : __dmul_rn((double)a, (double)b);
}
static __device__ __forceinline__ double product_of(double a, double b, bool) { return __dmul_rn(a, b); }

__host__ __device__ constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }
__host__ __device__ constexpr int next_power_of_two(int n) { return n <= 1 ? 1 : 2 * next_power_of_two((n + 1) / 2); }

#endif
