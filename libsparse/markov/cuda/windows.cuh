/* Sums of a row of A·B by windows of columns, one warp a row: for rows of many products where the columns of B lie in
 * clumps, as they do once the nodes of a network are numbered by community.
 *
 * The columns are cut into windows of WINDOW_COLUMNS. An index, made once a call, splits every row of B into
 * segments, the entries of one window. A warp holds one f64 a column of one window in shared memory, without keys,
 * atomics or barriers, and merges the segments of all its rows of B by window: a cursor for each row points at its
 * next segment; the rows whose cursor is at the current window are queued in ascending order and looked up 32 at a
 * time, a round. The segments of a round, one after another, are cut into pieces of 32 entries, one load a lane.
 * WINDOW_PIECES of these are in flight, while the segments of the next round are looked up. A piece that holds entries
 * of several segments is added in as many steps, in their order. So the order of the additions to a sum is A's: the
 * CPU's bits.
 *
 * Instructions a warp: some 35 for 32 products and 6 a further step; 100 a round; 7 for 32 cursors and 65 for the
 * scan of the sums a window that is touched. Bytes: 6 of B a product, from the L2 cache as far as rows in flight
 * share rows of B; 16 a segment. A row is a warp's own from start to end, hence no waiting for others where half of
 * its products lie in one window.
 *
 * On an H200, networks of 300,000 nodes in their heaviest iterations: 2.9 to 3.7e11 products a second where a segment
 * has some 25 entries, 1.2e11 where it has 11 (18,000 segments a row).
 */
#ifndef SPARSE_CUDA_WINDOWS_CUH
#define SPARSE_CUDA_WINDOWS_CUH

#include "markov/cuda/job.cuh"

/* 4 KB of sums: 14 to 24 warps share a Hopper multiprocessor, and most of a community of 60 to 300 nodes lies in one
 * window. With 1,024 columns the heaviest iteration measured took 1.23 s, with 512 it took 1.13 s. A power of two, at
 * least 256. */
enum { WINDOW_COLUMNS = 512 };
/* Eight pieces of 192 bytes in flight a warp, 21 KB or more a multiprocessor: 600 cycles of the L2 cache's rate. With
 * four, and more warps, that iteration took 1.25 s. */
enum { WINDOW_PIECES = 8 };
/* Entries a segment, on average, from which windows pay: a segment costs as much as three products in a table. Builds
 * that test the windows on matrices of any kind lower it. */
#ifndef WINDOW_FILL
#define WINDOW_FILL 3
#endif

/* ---- the index of B ------------------------------------------------------------------------------------ */

/* A warp a row. counts[k] = segments of row k with the end mark, or, with WRITE, the segments and columns. */
template <bool WRITE>
static __global__ void index_segments(int64_t rows, const int64_t *offsets, const int32_t *cols, int32_t *counts,
                                      const int64_t *first, uint2 *segments, window_column *narrow)
{
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const int64_t end = offsets[row + 1];
    uint2 *const own = WRITE ? segments + first[row] : nullptr;
    int count = 0, last = -1;
    for (int64_t base = offsets[row]; base < end; base += 32) {
        const int64_t i = base + lane;
        const int col = i < end ? cols[i] : 0, window = i < end ? col / WINDOW_COLUMNS : -1;
        int before = __shfl_up_sync(FULL_WARP, window, 1);
        if (lane == 0) before = last;
        const bool starts = i < end && window != before;
        const unsigned starters = __ballot_sync(FULL_WARP, starts);
        if (WRITE && starts)
            own[count + __popc(starters & ((1u << lane) - 1))] = make_uint2((uint32_t)i, (uint32_t)window);
        if (WRITE && i < end) narrow[i] = (window_column)(col % WINDOW_COLUMNS);
        count += __popc(starters);
        last = __shfl_sync(FULL_WARP, window, 31);
    }
    if (lane != 0) return;
    if (WRITE) own[count] = make_uint2((uint32_t)end, NO_WINDOW);
    else counts[row] = count + 1;
}

/* What an index takes of the device's memory. */
struct window_arrays {
    device_array<int64_t> first;
    device_array<uint2> segments;
    device_array<window_column> cols;
};

/* Leaves index->segments NULL where windows cannot be used, would not pay, or need more than half of the memory
 * left. Waits for the stream. */
static sp_status index_windows(sp_context *context, const sp_csr *b, window_arrays *arrays, window_index *index)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const unsigned blocks = (unsigned)((b->rows * 32 + 255) / 256);
    device_array<int32_t> counts;
    int64_t total = 0;
    size_t available;
    *index = {nullptr, nullptr, nullptr};
    CHECK(cuda_available(context, &available));
    const int64_t share = (int64_t)(available / 2), row_bytes = (b->rows + 1) * 12;
    const int64_t entry_bytes = b->nnz * (int64_t)sizeof(window_column);
    if (b->rows == 0 || b->cols > (int64_t)NO_WINDOW * WINDOW_COLUMNS || b->nnz + b->rows > UINT32_MAX
        || row_bytes + entry_bytes > share)
        return SP_OK;

    CHECK(counts.allocate(context, b->rows + 1));
    CHECK(arrays->first.allocate(context, b->rows + 1));
    index_segments<false><<<blocks, 256, 0, stream>>>(b->rows, b->row_offsets, b->col_indices, counts.data, nullptr,
                                                      nullptr, nullptr);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, b->rows, counts.data, arrays->first.data));
    CUDA_CHECK(cudaMemcpyAsync(&total, arrays->first.data + b->rows, sizeof total, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    if (b->nnz < WINDOW_FILL * (total - b->rows)
        || row_bytes + entry_bytes + total * (int64_t)sizeof(uint2) > share)
        return SP_OK;
    CHECK(arrays->segments.allocate(context, total));
    CHECK(arrays->cols.allocate(context, b->nnz));
    index_segments<true><<<blocks, 256, 0, stream>>>(b->rows, b->row_offsets, b->col_indices, nullptr,
                                                     arrays->first.data, arrays->segments.data, arrays->cols.data);
    CUDA_CHECK(cudaGetLastError());
    *index = {arrays->first.data, arrays->segments.data, arrays->cols.data};
    return SP_OK;
}

/* ---- a warp's sums ------------------------------------------------------------------------------------- */

/* Loads an entry in the lanes before `left`, without the branch that the compiler would make of it. */
static __device__ __forceinline__ void load_entry(int lane, int left, const window_column *col_at,
                                                  const float *value_at, int32_t *col, float *value)
{
    asm volatile("{\n .reg .pred present;\n setp.lt.s32 present, %2, %3;\n"
                 " @present ld.global.nc.u16 %0, [%4];\n"
                 " @present ld.global.nc.f32 %1, [%5];\n}"
                 : "+r"(*col), "+f"(*value)
                 : "r"(lane), "r"(left), "l"(col_at), "l"(value_at));
}

/* An address in shared memory; in a register, where a pointer would be made time and again. */
typedef uint32_t shared_place;

static __device__ __forceinline__ shared_place place_of(const double *pointer)
{
    shared_place place = (shared_place)__cvta_generic_to_shared(pointer);
    asm volatile("" : "+r"(place));
    return place;
}

/* *place += value, likewise without a branch. */
static __device__ __forceinline__ void add_where(bool present, shared_place place, double value)
{
    asm volatile("{\n .reg .pred present;\n .reg .f64 sum;\n setp.ne.s32 present, %0, 0;\n"
                 " mov.f64 sum, 0d0000000000000000;\n @present ld.shared.f64 sum, [%1];\n"
                 " add.rn.f64 sum, sum, %2;\n @present st.shared.f64 [%1], sum;\n}"
                 :
                 : "r"((int)present), "r"(place), "d"(value)
                 : "memory");
}

enum { WINDOW_STRIDE = 128 }; /* cursors looked at together */

static __host__ __device__ constexpr int window_padded(int terms)
{
    return (terms + WINDOW_STRIDE - 1) / WINDOW_STRIDE * WINDOW_STRIDE;
}

/* The shared memory of a warp; after it, a term of A's row, its next segment in the index, and that one's window. */
struct window_memory {
    double sums[WINDOW_COLUMNS]; /* zero between windows */
    uint16_t queue[256];         /* terms; a ring, at most 31 wait when WINDOW_STRIDE come */

    static __host__ __device__ constexpr size_t bytes(int terms)
    {
        return sizeof(window_memory) + (size_t)window_padded(terms) * 6;
    }
    __device__ uint32_t *cursors() { return (uint32_t *)(this + 1); }
};

/* A's row against B. */
struct window_terms {
    window_index index;
    const float *values; /* of B */
    const int32_t *rows; /* of B */
    const float *weights;
    int count;
};

/* Up to 32 segments of one window, in the order of A's row, a lane each. */
struct window_round {
    uint32_t window; /* NO_WINDOW: there is no more */
    int count, term;
    bool last; /* of its window */
    uint2 own, after;
    float weight;
};

/* Where a warp is in its rows of B. */
struct window_merge {
    const window_terms &terms;
    uint32_t *const cursors;
    uint16_t *const windows, *const queue;
    const int padded;
    int base, head, queued; /* terms looked at for this window; the ring */
    uint32_t window, next;  /* the current one; this lane's part of the next one's number */

    __device__ window_merge(const window_terms &of, window_memory &memory)
        : terms(of), cursors(memory.cursors()), windows((uint16_t *)(cursors + window_padded(of.count))),
          queue(memory.queue), padded(window_padded(of.count)), base(padded), head(0), queued(0), next(NO_WINDOW)
    {
        __syncwarp();
        for (int term = threadIdx.x % 32; term < padded; term += 32) {
            uint32_t at = 0, first = NO_WINDOW;
            if (term < terms.count) {
                at = (uint32_t)terms.index.first[terms.rows[term]];
                first = __ldg(&terms.index.segments[at].y);
            }
            cursors[term] = at;
            windows[term] = (uint16_t)first;
            next = min(next, first);
        }
        __syncwarp();
    }

    /* The next round. What it reads of the index may still be on its way. */
    __device__ __forceinline__ window_round find()
    {
        const int lane = threadIdx.x % 32;
        const unsigned below = (1u << lane) - 1;
        if (queued == 0 && base == padded) {
            window = ~warp_max(~next);
            next = NO_WINDOW;
            base = window == NO_WINDOW ? padded : 0;
        }
        for (; queued < 32 && base < padded; base += WINDOW_STRIDE) {
            uint32_t ahead[WINDOW_STRIDE / 32];
#pragma unroll
            for (int j = 0; j < WINDOW_STRIDE / 32; j++) ahead[j] = windows[base + 32 * j + lane];
#pragma unroll
            for (int j = 0; j < WINDOW_STRIDE / 32; j++) {
                const bool hit = ahead[j] == window;
                const unsigned hits = __ballot_sync(FULL_WARP, hit);
                if (!hit) next = min(next, ahead[j]);
                else queue[(head + queued + __popc(hits & below)) & 255] = (uint16_t)(base + 32 * j + lane);
                queued += __popc(hits);
            }
        }
        __syncwarp();
        window_round round;
        round.window = window;
        round.count = min(queued, 32);
        if (lane < round.count) {
            round.term = queue[(head + lane) & 255];
            const uint2 *const at = terms.index.segments + cursors[round.term];
            round.own = __ldg(at);
            round.after = __ldg(at + 1);
            round.weight = __ldg(terms.weights + round.term);
        }
        head += round.count;
        queued -= round.count;
        round.last = queued == 0 && base == padded;
        return round;
    }

    /* Moves the round's cursors on; to be called before the next round is looked for. */
    __device__ __forceinline__ void move(const window_round &round)
    {
        if (threadIdx.x % 32 < round.count) {
            cursors[round.term]++;
            windows[round.term] = (uint16_t)round.after.y;
            next = min(next, round.after.y);
        }
        __syncwarp();
    }
};

/* The entries of a round's segments, one after another; lane l knows where the lth begins in this list, what has to
 * be added to a place in the list to have the place in B, and the factor. */
struct window_list {
    int begin, total;
    uint32_t shift;
    float weight;

    __device__ __forceinline__ window_list(const window_round &round)
    {
        const int lane = threadIdx.x % 32, length = lane < round.count ? (int)(round.after.x - round.own.x) : 0;
        const int before = scan_lanes(length, &total);
        begin = lane < round.count ? before : INT32_MAX;
        shift = round.own.x - (uint32_t)begin;
        weight = round.weight;
    }
};

/* Adds the entries of a list to the sums at `origin`, WINDOW_PIECES ahead. */
template <bool IN_F32>
static __device__ __forceinline__ void add_list(const window_list &list, const window_terms &terms,
                                                shared_place origin)
{
    const int lane = threadIdx.x % 32;
    const unsigned up_to = (1u << lane) - 1 | 1u << lane; /* lanes as far as this one */
    int32_t col[WINDOW_PIECES];
    float value[WINDOW_PIECES], weight[WINDOW_PIECES];
    unsigned inner[WINDOW_PIECES]; /* lanes from 1 up where a segment begins */
    int ahead = 0, begun = 0;      /* entries and segments of the pieces that were loaded */
    const auto load = [&](int u) {
        if (ahead >= list.total) return;
        const uint32_t distance = (uint32_t)(list.begin - ahead);
        int segment = begun - 1;
        inner[u] = 0;
        if (__any_sync(FULL_WARP, distance < 32)) {
            const unsigned begins = warp_or(distance < 32 ? 1u << distance : 0);
            segment += __popc(begins & up_to);
            begun += __popc(begins);
            inner[u] = begins & ~1u;
        }
        const uint32_t place = (uint32_t)(ahead + lane) + __shfl_sync(FULL_WARP, list.shift, segment);
        weight[u] = __shfl_sync(FULL_WARP, list.weight, segment);
        load_entry(lane, list.total - ahead, terms.index.cols + place, terms.values + place, &col[u], &value[u]);
        ahead += 32;
    };
#pragma unroll
    for (int u = 0; u < WINDOW_PIECES; u++) {
        col[u] = 0;
        value[u] = weight[u] = 0;
        load(u);
    }
    for (int left = list.total;;) {
#pragma unroll
        for (int u = 0; u < WINDOW_PIECES; u++) {
            if (left <= 0) return;
            const bool present = lane < left;
            const double product = product_of(weight[u], value[u], IN_F32);
            const shared_place sum = origin + col[u] * (int)sizeof(double);
            if (inner[u] == 0) {
                add_where(present, sum, product);
                __syncwarp();
            } else {
                const int last = __popc(inner[u]), own = __popc(inner[u] & up_to);
#pragma unroll 1
                for (int step = 0; step <= last; step++) {
                    add_where(present && own == step, sum, product);
                    __syncwarp();
                }
            }
            left -= 32;
            load(u);
        }
    }
}

/* Sums all products of the terms, window by window, ascending; take(first column) finds each touched window's sums
 * in memory.sums, and leaves them zero. For one warp. */
template <bool IN_F32, typename Take>
__device__ void sum_windows(const window_terms &terms, window_memory &memory, Take take)
{
    window_merge merge(terms, memory);
    const shared_place sums = place_of(memory.sums);
    for (window_round round = merge.find(); round.window != NO_WINDOW;) {
        const int32_t first = (int32_t)(round.window * WINDOW_COLUMNS);
        const bool last = round.last;
        const window_list list(round);
        merge.move(round);
        round = merge.find();
        add_list<IN_F32>(list, terms, sums);
        if (last) take(first);
    }
}

#endif
