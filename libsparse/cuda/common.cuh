/* What the CUDA files share: checked calls, device arrays, the grouping of rows, and the parts that kernels are made
 * of (the walk over a row's products, accumulators, reductions, sorting).
 *
 * Order of additions. A block owns a row of C and takes the rows of B one after another, in ascending column order
 * of A's row. Columns within a row of B are distinct, so its threads never add to the same sum between two barriers:
 * an atomic is needed only to claim a free key, and every sum sees its additions in the CPU's order. Results have the
 * same bits whatever the class, the block or the schedule.
 *
 * Cost of a product with a table in shared memory: 8 bytes of B (from L2 when rows in flight share rows of B), then
 * one 4-byte look at the key and an 8-byte load and store of the sum, at random banks: 3.5 + 6 + 6 cycles of the
 * shared memory for 32 products, hence about 2 products a cycle and multiprocessor; probing beyond the first slot
 * comes on top. L2 delivers some 21 bytes a cycle and multiprocessor, 2.6 products. A barrier costs some 40 cycles a
 * row of B, hidden where two blocks share a multiprocessor.
 */
#ifndef SPARSE_CUDA_COMMON_CUH
#define SPARSE_CUDA_COMMON_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "internal.h"

/* ---- host: state, checked calls, arrays ---------------------------------------------------------------- */

enum { SIDE_STREAMS = 6 };

struct cuda_state {
    int device, processors;
    size_t shared_limit; /* bytes of shared memory a block may have */
    cudaMemPool_t pool;
    cudaStream_t stream, side[SIDE_STREAMS];
    cudaEvent_t forked, joined[SIDE_STREAMS];
    struct {
        const void *kernel;
        size_t shared;
        int blocks;
    } grids[128]; /* of cuda_full_grid */
    int known_grids;
};

static inline cuda_state *cuda_state_of(sp_context *context) { return (cuda_state *)context->device_state; }

sp_status cuda_status(sp_context *context, cudaError_t error, const char *call);
/* Bytes that may still be allocated: the budget, or what is free less a reserve. */
sp_status cuda_available(sp_context *context, size_t *bytes);
/* Bytes in use now, from which the peak is watched; and how far they have risen since. */
sp_status cuda_watch_peak(sp_context *context, size_t *before);
sp_status cuda_peak(sp_context *context, size_t before, int64_t *rise);
sp_status cuda_allocate(sp_context *context, size_t bytes, void **pointer);
void cuda_release(sp_context *context, void *pointer);
/* Waits for the stream; SP_ERROR_INTERRUPTED if the caller asked to stop. */
sp_status cuda_finish(sp_context *context);
/* Side streams start after what the main stream holds; the main stream goes on after all of them. */
sp_status cuda_fork(sp_context *context, int streams = SIDE_STREAMS);
sp_status cuda_join(sp_context *context, int streams = SIDE_STREAMS);

sp_status sp_cuda_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         sp_csr *c, sp_spgemm_info *info);
sp_status sp_cuda_spgemm_symbolic(sp_context *context, const sp_csr *a, const sp_csr *b,
                                  const sp_spgemm_options *options, sp_csr *pattern, void **state,
                                  sp_spgemm_info *info);
sp_status sp_cuda_spgemm_numeric(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, void *state, sp_csr *c);
void sp_cuda_spgemm_forget(sp_context *context, void *state);
sp_status sp_cuda_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                           const sp_contract_options *options, sp_csr *c, sp_contract_info *info);
sp_status sp_cuda_transpose(sp_context *context, const sp_csr *a, sp_csr *b);
/* The algorithms behind them. */
sp_status sp_cuda_spgemm_hash(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info);
sp_status sp_cuda_spgemm_warp(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info);
/* Where the products of C's entries go, slice by slice of 32 entries: see spgemm_terms.cu. */
struct product_places {
    const uint16_t *counts; /* products of each entry, 0 up to a full slice */
    const int64_t *bases;   /* products before each slice */
    uint2 *terms;           /* entries of A and of B */
};
sp_status sp_cuda_spgemm_warp_places(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked,
                                     const product_places *places, const sp_csr *pattern);
sp_status sp_cuda_spgemm_warp_values(sp_context *context, const sp_csr *a, const sp_csr *b,
                                     const sp_spgemm_options *options, sp_csr *c);
sp_status sp_cuda_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                sp_spgemm_info *info);

sp_status sp_cuda_spmm_prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                               void **state, sp_spmm_info *info);
sp_status sp_cuda_spmm_refresh(sp_context *context, const sp_csr *a, void *state);
sp_status sp_cuda_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                       double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument);
void sp_cuda_spmm_forget(sp_context *context, void *state);
sp_status sp_cuda_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values);
sp_status sp_cuda_edge_softmax(sp_context *context, const sp_csr *a, void *values);
sp_status sp_cuda_edge_softmax_backward(sp_context *context, const sp_csr *a, const void *softmax, void *gradient);
sp_status sp_cuda_number(sp_context *context, int64_t count, int64_t *to);
sp_status sp_cuda_gather(sp_context *context, const int64_t *index, int64_t count, const void *from, size_t size,
                         void *to);

/* Both return the failure from the calling function; destructors free what it holds. */
#define TRY(call)                              \
    do {                                       \
        sp_status status_ = (call);            \
        if (status_ != SP_OK) return status_;  \
    } while (0)
#define CUDA_TRY(call) TRY(cuda_status(context, (call), #call))

/* Device memory that ends with its scope. */
template <typename T> struct device_array {
    sp_context *context = nullptr;
    T *data = nullptr;

    device_array() = default;
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    ~device_array() { free(); }

    sp_status allocate(sp_context *owner, int64_t count)
    {
        size_t bytes;
        free();
        if (count < 0 || !sp_mul_size((size_t)count, sizeof(T), &bytes))
            return sp_fail(owner, SP_ERROR_OVERFLOW, "%lld elements are more than memory can address",
                           (long long)count);
        context = owner;
        return cuda_allocate(owner, bytes, (void **)&data);
    }
    sp_status fill(int byte, int64_t count)
    {
        cudaStream_t stream = cuda_state_of(context)->stream;
        CUDA_TRY(cudaMemsetAsync(data, byte, (size_t)count * sizeof(T), stream));
        return SP_OK;
    }
    void free()
    {
        if (data) cuda_release(context, data);
        data = nullptr;
    }
};

/* A device matrix as kernels see it; values NULL stands for ones. */
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

enum { CLASS_SHIFT = 28, MAX_CLASSES = 10 };

/* Rows in the order in which blocks take them: class by class, and within a class as their keys say. */
struct row_order {
    device_array<int32_t> rows;
    int64_t begin[MAX_CLASSES + 1]; /* where each class starts in `rows` */
};

/* keys[i] = class << CLASS_SHIFT | place; counts[c], on the device, rows of class c. Rows with keys that agree from
 * bit `first_bit` up stay in their order. Waits for the stream. */
sp_status cuda_order_rows(sp_context *context, int64_t rows, const uint32_t *keys, int first_bit,
                          const uint32_t *counts, row_order *order);
/* offsets[i] = Σ of counts before i, for rows + 1 offsets; counts[rows] must exist, its value does not matter. */
sp_status cuda_scan_counts(sp_context *context, int64_t rows, const int32_t *counts, int64_t *offsets);
/* products[i] = Σ over k in A's row i of nnz(B's row k); the offsets and columns of A, the offsets of B. */
sp_status cuda_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t *products);

/* Lets the kernel have so much dynamic shared memory. A limit that must be raised is raised to all that the device has:
 * it belongs to the process, and what one context sets must do for every other. */
template <typename Kernel> static sp_status cuda_allow_shared(sp_context *context, Kernel *kernel, size_t shared)
{
    cudaFuncAttributes attributes;
    if (shared == 0) return SP_OK;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernel));
    if ((size_t)attributes.maxDynamicSharedSizeBytes >= shared) return SP_OK;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)(cuda_state_of(context)->shared_limit - attributes.sharedSizeBytes)));
    return SP_OK;
}

/* Blocks to launch so that the device is full, at most `work`; lets the kernel have its shared memory first. */
template <typename Kernel>
static sp_status cuda_grid(sp_context *context, Kernel *kernel, int threads, size_t shared, int64_t work, int *blocks)
{
    int resident = 0;
    TRY(cuda_allow_shared(context, kernel, shared));
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared));
    int64_t full = (int64_t)(resident > 0 ? resident : 1) * cuda_state_of(context)->processors;
    *blocks = (int)(work < full ? work : full);
    return SP_OK;
}

/* Blocks that fill the device, asked for once a kernel and context: asking takes longer than launching. */
template <typename Kernel>
static sp_status cuda_full_grid(sp_context *context, Kernel *kernel, int threads, size_t shared, int *blocks)
{
    cuda_state *state = cuda_state_of(context);
    for (int i = 0; i < state->known_grids; i++)
        if (state->grids[i].kernel == (const void *)kernel && state->grids[i].shared == shared) {
            *blocks = state->grids[i].blocks;
            return SP_OK;
        }
    TRY(cuda_grid(context, kernel, threads, shared, INT64_MAX, blocks));
    if (state->known_grids < (int)(sizeof state->grids / sizeof *state->grids))
        state->grids[state->known_grids++] = {(const void *)kernel, shared, *blocks};
    return SP_OK;
}

/* Rows that a launch works on: its own range of the order, then those that smaller tables gave up on. */
struct work_list {
    const int32_t *own;
    int own_count;
    const int32_t *extra;   /* NULL: none */
    const int *extra_count; /* on the device */
    int *next;              /* the place of the next row to take, 0 at launch */
    int32_t *spill;         /* takes rows that do not fit this table */
    int *spill_count;
};

/* ---- device: a block and its sums ---------------------------------------------------------------------- */

constexpr int32_t EMPTY = -1;
constexpr unsigned FULL_WARP = 0xffffffffu;

/* Where a table looks for a column first is its upper bits. The product alone puts columns at distances near a multiple
 * of a Fibonacci number, or drawn by a golden-ratio sequence, into the same few slots: 230 probes a column in a table
 * half full. Folded, no distance up to 100,000 takes more than 10. Folding from bit 12 keeps runs of columns together,
 * which the product spreads evenly: the squares of finite elements take 2.2 probes for the slowest of 32 lanes, 3.0
 * with a fold from bit 7. */
static __device__ __forceinline__ uint32_t scrambled(int32_t col)
{
    return ((uint32_t)col ^ (uint32_t)col >> 12) * 0x9e3779b1u;
}

/* Takes the next row of the list for the whole block, or -1. `shared_row` is one int in shared memory. */
static __device__ int take_row(const work_list &work, int *shared_row)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const int at = atomicAdd(work.next, 1);
        const int extra = work.extra ? *work.extra_count : 0;
        *shared_row = at < work.own_count           ? work.own[at]
                      : at - work.own_count < extra ? work.extra[at - work.own_count]
                                                    : -1;
    }
    __syncthreads();
    return *shared_row;
}

struct add_op {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct max_op {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

/* Reduces over the block in an order fixed by THREADS; every thread gets the result. `scratch`: THREADS / 32. */
template <int THREADS, typename T, typename Op> __device__ T block_reduce(T value, Op op, uint64_t *scratch)
{
    for (int step = 16; step > 0; step /= 2) value = op(value, __shfl_xor_sync(FULL_WARP, value, step));
    if (THREADS == 32) return value;
    T *partial = (T *)scratch;
    constexpr int stride = 8 / sizeof(T);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32 * stride] = value;
    __syncthreads();
    T result = partial[0];
    for (int w = 1; w < THREADS / 32; w++) result = op(result, partial[w * stride]);
    return result;
}

/* The sum over the threads before this one; *total is the sum over all. */
template <int THREADS> __device__ int block_scan(int value, int *total, uint64_t *scratch)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int inclusive = value;
    for (int step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(FULL_WARP, inclusive, step);
        if (lane >= step) inclusive += below;
    }
    if (THREADS == 32) {
        *total = __shfl_sync(FULL_WARP, inclusive, 31);
        return inclusive - value;
    }
    int *sums = (int *)scratch, before = 0, all = 0;
    __syncthreads();
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) {
        if (w < warp) before += sums[w];
        all += sums[w];
    }
    *total = all;
    return before + inclusive - value;
}

/* Sorts count <= capacity entries of global memory by column, through shared memory (bitonic network). Room for the
 * next power of two is needed in `keys` and `values`. */
template <int THREADS, typename V>
__device__ void sort_row(int32_t *cols, V *row_values, int count, uint32_t *keys, V *values)
{
    int padded = 2;
    while (padded < count) padded *= 2;
    __syncthreads();
    for (int i = threadIdx.x; i < padded; i += THREADS) {
        keys[i] = i < count ? (uint32_t)cols[i] : 0xffffffffu;
        values[i] = i < count ? row_values[i] : V(0);
    }
    for (int size = 2; size <= padded; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < padded / 2; i += THREADS) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const uint32_t a = keys[low], b = keys[high];
                if ((a > b) != ((low & size) == 0)) continue;
                keys[low] = b;
                keys[high] = a;
                const V value = values[low];
                values[low] = values[high];
                values[high] = value;
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) {
        cols[i] = (int32_t)keys[i];
        row_values[i] = values[i];
    }
}

/* Calls write(i, place) for each i < count with keep(i), places counting from 0 in no particular order. */
template <int THREADS, typename Keep, typename Write>
__device__ void gather(int count, int *counter, Keep keep, Write write)
{
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) *counter = 0;
    __syncthreads();
    for (int base = 0; base < count; base += THREADS) {
        const int i = base + threadIdx.x;
        const bool kept = i < count && keep(i);
        const unsigned keepers = __ballot_sync(FULL_WARP, kept);
        int first = 0;
        if (lane == 0 && keepers) first = atomicAdd(counter, __popc(keepers));
        first = __shfl_sync(FULL_WARP, first, 0);
        if (kept) write(i, first + __popc(keepers & ((1u << lane) - 1)));
    }
    __syncthreads();
}

/* The same with places in the order of i. */
template <int THREADS, typename Keep, typename Write>
__device__ void gather_in_order(int count, uint64_t *scratch, Keep keep, Write write)
{
    int done = 0;
    for (int base = 0; base < count; base += THREADS) {
        const int i = base + threadIdx.x;
        const bool kept = i < count && keep(i);
        int total;
        const int place = done + block_scan<THREADS>(kept, &total, scratch);
        if (kept) write(i, place);
        done += total;
    }
    __syncthreads();
}

/* ---- device: the walk over a row's products ------------------------------------------------------------ */

/* Rows of B that a block looks up at a time, so that their offsets are at hand when their turn comes. */
template <int THREADS, typename V> struct walk_memory {
    static constexpr int CHUNK = THREADS < 128 ? THREADS : 128;
    int64_t start[CHUNK];
    int32_t length[CHUNK];
    V weight[CHUNK];
};

/* Up to DEPTH entries a thread of one row of B, loaded ahead of their use. */
template <int THREADS, int DEPTH, typename V> struct piece {
    int32_t col[DEPTH];
    V value[DEPTH];

    __device__ void load(const matrix_view<V> &b, int64_t start, int length)
    {
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int i = threadIdx.x + u * THREADS;
            col[u] = i < length ? __ldg(b.cols + start + i) : EMPTY;
            value[u] = i < length && b.values ? __ldg(b.values + start + i) : V(1);
        }
    }
};

/* The product as the CPU forms it: in f64, or for mcl's dense path in f32. Never fused with the addition. */
static __device__ __forceinline__ double product_of(float a, float b, bool in_f32)
{
    return in_f32 ? (double)__fmul_rn(a, b) : __dmul_rn((double)a, (double)b);
}
static __device__ __forceinline__ double product_of(double a, double b, bool) { return __dmul_rn(a, b); }

/* Hands every product of the entries begin <= at < end of A to the accumulator, one row of B between two barriers;
 * look_up(at, &start, &length, &weight) finds an entry's row of B and its value. Ends early and returns false when a
 * thread's accumulator is full. Uniform over the block. */
template <int THREADS, int DEPTH, typename V, typename LookUp, typename Accumulator>
__device__ __forceinline__ bool walk_entries(int64_t begin, int64_t end, LookUp look_up, const matrix_view<V> &b,
                                             bool in_f32, walk_memory<THREADS, V> &memory, Accumulator &sums)
{
    constexpr int CHUNK = walk_memory<THREADS, V>::CHUNK;
    for (int64_t base = begin; base < end; base += CHUNK) {
        const int count = (int)(end - base < CHUNK ? end - base : CHUNK);
        for (int i = threadIdx.x; i < count; i += THREADS)
            look_up(base + i, &memory.start[i], &memory.length[i], &memory.weight[i]);
        __syncthreads();
        piece<THREADS, DEPTH, V> next;
        next.load(b, memory.start[0], memory.length[0]);
        for (int k = 0; k < count; k++) {
            const piece<THREADS, DEPTH, V> now = next;
            if (k + 1 < count) next.load(b, memory.start[k + 1], memory.length[k + 1]);
            const V weight = memory.weight[k];
            double products[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) products[u] = product_of(weight, now.value[u], in_f32);
            sums.template add<DEPTH>(now.col, products);
            const int length = memory.length[k];
            for (int i = threadIdx.x + DEPTH * THREADS; i < length; i += THREADS) {
                const int64_t at = memory.start[k] + i;
                const int32_t col[1] = {b.cols[at]};
                const double product[1] = {product_of(weight, b.values ? b.values[at] : V(1), in_f32)};
                sums.template add<1>(col, product);
            }
            /* A vote costs more than a barrier; threads with a full table only drop products until the next. */
            if (k % 16 == 15 || k + 1 == count) {
                if (__syncthreads_or(sums.full())) return false;
            } else {
                __syncthreads();
            }
        }
    }
    return true;
}

/* The same for row `row` of A, whose offsets and columns are read here. */
template <int THREADS, int DEPTH, typename V, typename Accumulator>
__device__ bool walk_products(const matrix_view<V> &a, const matrix_view<V> &b, int row, bool in_f32,
                              walk_memory<THREADS, V> &memory, Accumulator &sums)
{
    const auto look_up = [&](int64_t at, int64_t *start, int32_t *length, V *weight) {
        const int32_t k = a.cols[at];
        *start = b.offsets[k];
        *length = (int32_t)(b.offsets[k + 1] - b.offsets[k]);
        *weight = a.values ? a.values[at] : V(1);
    };
    return walk_entries<THREADS, DEPTH>(a.offsets[row], a.offsets[row + 1], look_up, b, in_f32, memory, sums);
}

/* ---- device: accumulators ------------------------------------------------------------------------------ */

__host__ __device__ constexpr int next_power_of_two(int n) { return n <= 1 ? 1 : 2 * next_power_of_two((n + 1) / 2); }

/* Finds or claims slots by column: linear probing from a multiplicative hash; any number of slots. */
template <int SLOTS, int MOST = SLOTS / 5 * 4> struct key_table {
    static constexpr int LIMIT = MOST; /* at 4/5 3 probes a hit on average; room for every thread to overshoot */
    int32_t *keys;
    int *fill;
    bool full;

    static __device__ __forceinline__ int home(int32_t col) { return __umulhi(scrambled(col), SLOTS); }
    __device__ __forceinline__ int32_t look(int slot) const { return *(volatile int32_t *)(keys + slot); }

    /* The column's slot, or -1 when it is new and the table has reached its limit. `key` is what `slot` holds. */
    __device__ __forceinline__ int find(int32_t col, int slot, int32_t key)
    {
        while (key != col) {
            if (key == EMPTY) {
                if (*(volatile int *)fill >= LIMIT) {
                    full = true;
                    return -1;
                }
                key = atomicCAS(keys + slot, EMPTY, col);
                if (key == EMPTY) {
                    atomicAdd(fill, 1);
                    return slot;
                }
            } else {
                slot = slot + 1 == SLOTS ? 0 : slot + 1;
                key = look(slot);
            }
        }
        return slot;
    }
};

/* Sums by column in shared memory. */
template <int SLOTS, int MOST = SLOTS / 5 * 4> struct sum_table {
    key_table<SLOTS, MOST> table;
    double *sums;

    static constexpr size_t BYTES = (size_t)SLOTS * (sizeof(double) + sizeof(int32_t));

    __device__ sum_table(void *memory, int *fill)
        : table{(int32_t *)((double *)memory + SLOTS), fill, false}, sums((double *)memory)
    {
    }
    __device__ bool full() const { return table.full; }
    /* -0 is what any first product can be added to without changing its bits. Ends with a barrier. */
    template <int THREADS> __device__ void clear()
    {
        static_assert(next_power_of_two(MOST + THREADS) <= SLOTS, "sorting needs the next power of two");
        for (int i = threadIdx.x; i < SLOTS; i += THREADS) {
            table.keys[i] = EMPTY;
            sums[i] = -0.0;
        }
        if (threadIdx.x == 0) *table.fill = 0;
        table.full = false;
        __syncthreads();
    }
    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&product)[N])
    {
        int slot[N];
        int32_t key[N];
#pragma unroll
        for (int u = 0; u < N; u++) {
            slot[u] = table.home(col[u]);
            key[u] = col[u] == EMPTY ? EMPTY : table.look(slot[u]);
        }
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (col[u] == EMPTY) continue;
            const int at = key[u] == col[u] ? slot[u] : table.find(col[u], slot[u], key[u]);
            if (at >= 0) sums[at] = __dadd_rn(sums[at], product[u]);
        }
    }
};

/* Columns without sums. */
template <int SLOTS> struct column_table {
    key_table<SLOTS> table;

    static constexpr size_t BYTES = (size_t)SLOTS * sizeof(int32_t);

    __device__ column_table(void *memory, int *fill) : table{(int32_t *)memory, fill, false} {}
    __device__ bool full() const { return table.full; }
    template <int THREADS> __device__ void clear()
    {
        for (int i = threadIdx.x; i < SLOTS; i += THREADS) table.keys[i] = EMPTY;
        if (threadIdx.x == 0) *table.fill = 0;
        table.full = false;
        __syncthreads();
    }
    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&)[N])
    {
#pragma unroll
        for (int u = 0; u < N; u++)
            if (col[u] != EMPTY) table.find(col[u], table.home(col[u]), table.look(table.home(col[u])));
    }
};

/* A sum for every column, in global memory, for rows that no table holds: 8 bytes read and written a product, of
 * which the columns hit most stay in the first-level cache. All ones (a NaN that no sum can be) marks an untouched
 * sum; touched columns are noted in a bit mask, from which they come out sorted. */
struct wide_sums {
    unsigned long long *sums; /* cols, all ones between rows */
    uint32_t *touched;        /* a bit a column, zero between rows */
    __device__ bool full() const { return false; }

    static constexpr unsigned long long UNTOUCHED = ~0ull;

    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&product)[N])
    {
        unsigned long long old[N];
#pragma unroll
        for (int u = 0; u < N; u++) old[u] = col[u] == EMPTY ? 0 : sums[col[u]];
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (col[u] == EMPTY) continue;
            double sum = product[u];
            if (old[u] == UNTOUCHED) atomicOr(touched + col[u] / 32, 1u << (col[u] % 32));
            else sum = __dadd_rn(__longlong_as_double((long long)old[u]), sum);
            sums[col[u]] = (unsigned long long)__double_as_longlong(sum);
        }
    }
    /* Calls write(i, column, sum) for the i-th touched column, ascending, and clears it; returns their number. */
    template <int THREADS, typename Write> __device__ int drain(int64_t cols, uint64_t *scratch, Write write)
    {
        const int64_t words = (cols + 31) / 32;
        int done = 0;
        for (int64_t base = 0; base < words; base += THREADS) {
            const int64_t at = base + threadIdx.x;
            uint32_t bits = at < words ? __ldcg(touched + at) : 0;
            int total, place = done + block_scan<THREADS>(__popc(bits), &total, scratch);
            if (bits) __stcg(touched + at, 0u);
            for (; bits; bits &= bits - 1) {
                const int32_t col = (int32_t)(at * 32) + __ffs((int)bits) - 1;
                write(place++, col, __longlong_as_double((long long)sums[col]));
                sums[col] = UNTOUCHED;
            }
            done += total;
        }
        __syncthreads();
        return done;
    }
};

/* A table in shared memory for the columns that come first, which in clustered networks are those hit most, and a sum
 * a column in global memory for those that come when it is full. A column that found the table full finds it full
 * ever after, so that each has one home. */
template <int SLOTS, int MOST> struct mixed_sums {
    sum_table<SLOTS, MOST> near;
    wide_sums far;
    __device__ bool full() const { return false; }

    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&product)[N])
    {
        int at[N];
        int32_t key[N], far_col[N];
        bool any_far = false;
#pragma unroll
        for (int u = 0; u < N; u++) {
            at[u] = near.table.home(col[u]);
            key[u] = col[u] == EMPTY ? EMPTY : near.table.look(at[u]);
        }
#pragma unroll
        for (int u = 0; u < N; u++) {
            far_col[u] = EMPTY;
            if (col[u] == EMPTY) continue;
            if (key[u] != col[u]) at[u] = near.table.find(col[u], at[u], key[u]);
            if (at[u] >= 0) {
                near.sums[at[u]] = __dadd_rn(near.sums[at[u]], product[u]);
            } else {
                far_col[u] = col[u];
                any_far = true;
            }
        }
        if (any_far) far.add<N>(far_col, product);
    }
    /* Moves the table's sums to global memory. Ends with a barrier. */
    template <int THREADS> __device__ void flush()
    {
        for (int i = threadIdx.x; i < SLOTS; i += THREADS) {
            const int32_t col = near.table.keys[i];
            if (col == EMPTY) continue;
            atomicOr(far.touched + col / 32, 1u << (col % 32));
            far.sums[col] = (unsigned long long)__double_as_longlong(near.sums[i]);
        }
        __syncthreads();
    }
};

/* Columns of one row as a bit mask in global memory, for counting. */
struct wide_columns {
    uint32_t *touched;
    __device__ bool full() const { return false; }

    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&)[N])
    {
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (col[u] == EMPTY) continue;
            const uint32_t bit = 1u << (col[u] % 32);
            if (!(__ldcg(touched + col[u] / 32) & bit)) atomicOr(touched + col[u] / 32, bit);
        }
    }
    /* Clears the mask; this thread's share of the bits that were set. */
    template <int THREADS> __device__ int drain(int64_t cols)
    {
        int count = 0;
        for (int64_t at = threadIdx.x; at < (cols + 31) / 32; at += THREADS) {
            const uint32_t bits = __ldcg(touched + at);
            if (bits == 0) continue;
            count += __popc(bits);
            __stcg(touched + at, 0u);
        }
        return count;
    }
};

#endif
