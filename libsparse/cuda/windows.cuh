/* Sums of a row of A·B by windows of columns, one warp a row: for rows of many products where the columns of B lie in
 * clumps, as they do once the nodes of a network are numbered by community.
 *
 * The columns are cut into windows of WINDOW_COLUMNS. An index, made once a call, splits every row of B into
 * segments, the entries of one window. A warp holds one f64 a column of one window in shared memory, without keys,
 * atomics or barriers, and merges the segments of all its rows of B by window: a cursor for each row points at its
 * next segment; the rows whose cursor is at the current window are queued in ascending order, looked up 32 at a time
 * and added one after another, 32 entries an instruction, the next WINDOW_PIECES in flight. Columns within a segment
 * are distinct, and the order of the additions to a sum is A's: the CPU's bits.
 *
 * Instructions a warp: some 30 for up to 32 products; 7 for 32 cursors and 130 for the scan of the sums a window that
 * is touched. Bytes: 8 of B a product, from the L2 cache as far as rows in flight share rows of B; 4 a segment. A row
 * is a warp's own from start to end, hence no waiting for others where half of its products lie in one window.
 */
#ifndef SPARSE_CUDA_WINDOWS_CUH
#define SPARSE_CUDA_WINDOWS_CUH

#include "common.cuh"

/* 8 KB of sums: 12 to 17 warps share a Hopper multiprocessor, and most of a community of 60 to 300 nodes lies in one
 * window. A power of two, at least 256. */
#ifndef WINDOW_COLUMNS
#define WINDOW_COLUMNS 1024
#endif
/* Eight pieces of 256 bytes in flight a warp, 25 KB or more a multiprocessor: 600 cycles of the L2 cache's rate. */
#ifndef WINDOW_PIECES
#define WINDOW_PIECES 8
#endif
/* Entries a segment, on average, from which windows pay: a segment costs as much as three products in a table. */
#ifndef WINDOW_FILL
#define WINDOW_FILL 3
#endif

constexpr uint32_t NO_WINDOW = 0xffff;
constexpr int MOST_SEGMENT_START = 0xffff; /* a start and a window share 32 bits */

/* ---- the index of B ------------------------------------------------------------------------------------ */

/* Row k's segments start at first[k]: window << 16 | place of the first entry in the row, ascending; the last one,
 * of NO_WINDOW, marks the row's end. */
struct window_index {
    const int64_t *first;
    const uint32_t *segments;
};

/* A warp a row. counts[k] = segments of row k with the end mark, or, with WRITE, the segments themselves. */
template <bool WRITE>
static __global__ void index_segments(int64_t rows, const int64_t *offsets, const int32_t *cols, int32_t *counts,
                                      int *too_long, const int64_t *first, uint32_t *segments)
{
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const int64_t begin = offsets[row], length = offsets[row + 1] - begin;
    uint32_t *const own = WRITE ? segments + first[row] : nullptr;
    int count = 0, last = -1;
    for (int64_t base = 0; base < length && length <= MOST_SEGMENT_START; base += 32) {
        const int64_t i = base + lane;
        const int window = i < length ? cols[begin + i] / WINDOW_COLUMNS : -1;
        int before = __shfl_up_sync(FULL_WARP, window, 1);
        if (lane == 0) before = last;
        const bool starts = i < length && window != before;
        const unsigned starters = __ballot_sync(FULL_WARP, starts);
        if (WRITE && starts)
            own[count + __popc(starters & ((1u << lane) - 1))] = (uint32_t)window << 16 | (uint32_t)i;
        count += __popc(starters);
        last = __shfl_sync(FULL_WARP, window, 31);
    }
    if (lane != 0) return;
    if (WRITE) own[count] = NO_WINDOW << 16 | (uint32_t)length;
    else counts[row] = count + 1;
    if (!WRITE && length > MOST_SEGMENT_START) *too_long = 1;
}

/* What an index takes of the device's memory. */
struct window_arrays {
    device_array<int64_t> first;
    device_array<uint32_t> segments;
};

/* Leaves index->segments NULL where windows cannot be used, would not pay, or need more than an eighth of the memory
 * left. Waits for the stream. */
static sp_status index_windows(sp_context *context, const sp_csr *b, window_arrays *arrays, window_index *index)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const unsigned blocks = (unsigned)((b->rows * 32 + 255) / 256);
    device_array<int32_t> counts;
    device_array<int> too_long;
    int64_t total = 0;
    size_t available;
    int long_row = 0;
    *index = {nullptr, nullptr};
    TRY(cuda_available(context, &available));
    const int64_t most_bytes = (b->nnz + b->rows) * (int64_t)sizeof(uint32_t) + (b->rows + 1) * 12;
    if (b->rows == 0 || b->cols > (int64_t)NO_WINDOW * WINDOW_COLUMNS || most_bytes > (int64_t)(available / 8))
        return SP_OK;

    TRY(counts.allocate(context, b->rows + 1));
    TRY(arrays->first.allocate(context, b->rows + 1));
    TRY(too_long.allocate(context, 1));
    TRY(too_long.fill(0, 1));
    index_segments<false><<<blocks, 256, 0, stream>>>(b->rows, b->row_offsets, b->col_indices, counts.data,
                                                      too_long.data, nullptr, nullptr);
    CUDA_TRY(cudaGetLastError());
    TRY(cuda_scan_counts(context, b->rows, counts.data, arrays->first.data));
    CUDA_TRY(cudaMemcpyAsync(&total, arrays->first.data + b->rows, sizeof total, cudaMemcpyDeviceToHost, stream));
    CUDA_TRY(cudaMemcpyAsync(&long_row, too_long.data, sizeof long_row, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    if (long_row || b->nnz < WINDOW_FILL * (total - b->rows)) return SP_OK;
    TRY(arrays->segments.allocate(context, total));
    index_segments<true><<<blocks, 256, 0, stream>>>(b->rows, b->row_offsets, b->col_indices, nullptr, nullptr,
                                                     arrays->first.data, arrays->segments.data);
    CUDA_TRY(cudaGetLastError());
    *index = {arrays->first.data, arrays->segments.data};
    return SP_OK;
}

/* ---- a warp's sums ------------------------------------------------------------------------------------- */

/* Loads an entry in the lanes before `left`, without the branch that the compiler would make of it. */
static __device__ __forceinline__ void load_entry(int lane, int left, const int32_t *col_at, const float *value_at,
                                                  int32_t *col, float *value)
{
    asm volatile("{\n .reg .pred present;\n setp.lt.s32 present, %2, %3;\n"
                 " @present ld.global.nc.b32 %0, [%4];\n @present ld.global.nc.f32 %1, [%5];\n}"
                 : "+r"(*col), "+f"(*value)
                 : "r"(lane), "r"(left), "l"(col_at), "l"(value_at));
}

struct alignas(16) window_segment {
    const int32_t *cols;
    int length;
    float weight;
};

enum { WINDOW_STRIDE = 128 }; /* cursors looked at together */

/* The shared memory of a warp; after it a cursor a term of A's row: window of its next segment << 16 | which one. */
struct window_memory {
    double sums[WINDOW_COLUMNS]; /* zero between windows */
    window_segment segments[32 + WINDOW_PIECES]; /* after the last, WINDOW_PIECES of length 0 */
    uint16_t queue[256];         /* terms; a ring, at most 31 wait when WINDOW_STRIDE come */

    static __host__ __device__ size_t bytes(int terms)
    {
        return sizeof(window_memory) + (size_t)((terms + WINDOW_STRIDE - 1) / WINDOW_STRIDE * WINDOW_STRIDE) * 4;
    }
    __device__ uint32_t *cursors() { return (uint32_t *)(this + 1); }
};

/* A's row against B. */
struct window_terms {
    matrix_view<float> b;
    window_index index;
    const int32_t *rows; /* of B */
    const float *weights;
    int count;
};

/* Up to 32 entries of a segment a step, WINDOW_PIECES steps ahead. `values_away`: bytes from B's columns to its
 * values; `origin`: where the sum of column 0 would be. */
template <bool IN_F32>
static __device__ __forceinline__ void add_segments(const window_segment *segment, int64_t values_away,
                                                    double *origin)
{
    const int lane = threadIdx.x % 32;
    int32_t col[WINDOW_PIECES];
    float value[WINDOW_PIECES], weight[WINDOW_PIECES], factor = 0;
    int size[WINDOW_PIECES], left = 0;
    const int32_t *at = nullptr;
    const auto load = [&](int u) {
        if (left <= 0) {
            const window_segment next = *segment++;
            at = next.cols + lane;
            left = next.length;
            factor = next.weight;
        }
        size[u] = left;
        weight[u] = factor;
        load_entry(lane, left, at, (const float *)((const char *)at + values_away), &col[u], &value[u]);
        at += 32;
        left -= 32;
    };
#pragma unroll
    for (int u = 0; u < WINDOW_PIECES; u++) {
        col[u] = 0;
        value[u] = 0;
        load(u);
    }
    for (;;) {
#pragma unroll
        for (int u = 0; u < WINDOW_PIECES; u++) {
            if (size[u] <= 0) return;
            if (lane < size[u]) {
                double *const sum = origin + col[u];
                *sum = __dadd_rn(*sum, product_of(weight[u], value[u], IN_F32));
            }
            __syncwarp();
            load(u);
        }
    }
}

static __device__ uint32_t warp_min(uint32_t value)
{
    for (int step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
}

/* Sums all products of the terms, window by window, ascending; drain(first column) finds each touched window's sums
 * in memory.sums, and leaves them zero. For one warp. */
template <bool IN_F32, typename Drain>
__device__ void sum_windows(const window_terms &terms, window_memory &memory, Drain drain)
{
    const int lane = threadIdx.x % 32;
    const unsigned below = (1u << lane) - 1;
    const int padded = (terms.count + WINDOW_STRIDE - 1) / WINDOW_STRIDE * WINDOW_STRIDE;
    const int64_t values_away = (const char *)terms.b.values - (const char *)terms.b.cols;
    uint32_t *const cursors = memory.cursors();
    uint32_t next = NO_WINDOW;
    for (int term = lane; term < padded; term += 32) {
        uint32_t cursor = NO_WINDOW << 16;
        if (term < terms.count)
            cursor = __ldg(terms.index.segments + terms.index.first[terms.rows[term]]) & ~0xffffu;
        cursors[term] = cursor;
        next = min(next, cursor >> 16);
    }
    for (uint32_t window; (window = warp_min(next)) != NO_WINDOW; drain((int32_t)(window * WINDOW_COLUMNS))) {
        int queued = 0, head = 0;
        next = NO_WINDOW;
        for (int base = 0; base < padded; base += WINDOW_STRIDE) {
            uint32_t ahead[WINDOW_STRIDE / 32];
#pragma unroll
            for (int j = 0; j < WINDOW_STRIDE / 32; j++) ahead[j] = cursors[base + 32 * j + lane] >> 16;
#pragma unroll
            for (int j = 0; j < WINDOW_STRIDE / 32; j++) {
                const bool hit = ahead[j] == window;
                const unsigned hits = __ballot_sync(FULL_WARP, hit);
                if (!hit) next = min(next, ahead[j]);
                else memory.queue[(head + queued + __popc(hits & below)) & 255] = (uint16_t)(base + 32 * j + lane);
                queued += __popc(hits);
            }
            /* Full rounds, and at the end what is left. */
            while (queued >= 32 || (queued > 0 && base + WINDOW_STRIDE >= padded)) {
                const int count = min(queued, 32);
                __syncwarp();
                if (lane < count) {
                    const int term = memory.queue[(head + lane) & 255], row = terms.rows[term];
                    const uint32_t cursor = cursors[term];
                    const uint32_t *const segment = terms.index.segments + terms.index.first[row] + (cursor & 0xffff);
                    const uint32_t own = __ldg(segment), after = __ldg(segment + 1);
                    const int start = (int)(own & 0xffff), end = (int)(after & 0xffff);
                    cursors[term] = (after & ~0xffffu) | ((cursor & 0xffff) + 1);
                    next = min(next, after >> 16);
                    memory.segments[lane] = {terms.b.cols + terms.b.offsets[row] + start, end - start,
                                             terms.weights[term]};
                }
                if (lane < WINDOW_PIECES) memory.segments[count + lane].length = 0;
                __syncwarp();
                add_segments<IN_F32>(memory.segments, values_away, memory.sums - (int)(window * WINDOW_COLUMNS));
                __syncwarp();
                head += count;
                queued -= count;
            }
        }
        __syncwarp();
    }
}

#endif
