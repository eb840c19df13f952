/* The kernels of the hash product (hash.cu): PWPR, four lanes a row, and TBPR, a block a row, for the symbolic phase
 * (Algorithms 2 and 3), and PWPR for the numeric one, whose blocks are numeric.cuh's. */
#ifndef SPARSE_SPGEMM_HASH_ROWS_CUH
#define SPARSE_SPGEMM_HASH_ROWS_CUH

#include "spgemm/cuda/numeric.cuh"

/* ---- constants ----------------------------------------------------------------------------------------- */

/* Tables of PWPR have up to twice as many slots as products. With a stride of 68 the slots of a warp's eight rows
 * start 4 banks apart, so that 32 lanes that walk their tables in step meet 32 banks. */
enum { TINY_PRODUCTS = 32, TINY_LANES = 4, TINY_STRIDE = 2 * TINY_PRODUCTS + 4, TINY_THREADS = 128 };
enum { TINY_ROWS = TINY_THREADS / TINY_LANES };

/* ---- device: jobs -------------------------------------------------------------------------------------- */

struct count_job {
    const int32_t *rows; /* in the order of their groups */
    const int32_t *b_cols;
    int64_t cols; /* of C */
    const int64_t *products;
    int32_t *lengths; /* made here */
    int lane_bits;    /* 2^lane_bits lanes take a row of B */
    int32_t *spilled; /* receives the places of rows that no table holds */
    int *spill_count;
};

/* Stores the rows of C, whose lengths are known. */
template <typename V, sp_aia WAY> struct sum_job : row_operands<V, WAY> {
    static constexpr bool SPILLS = false;
    static constexpr size_t SCRATCH = 0;
    using memory = block_memory;
    const int64_t *offsets;
    int32_t *c_cols;
    V *c_values;

    __device__ __forceinline__ int64_t most_columns(int row) const { return offsets[row + 1] - offsets[row]; }
    __device__ __forceinline__ bool in_f32(int) const { return false; }

    template <int THREADS, typename Table> __device__ __forceinline__ void finish(int row, Table &table,
                                                                                  block_memory &memory) const
    {
        int32_t *cols = c_cols + offsets[row];
        V *values = c_values + offsets[row];
        gather<THREADS>(table.slots, &memory.gathered, [&](int slot) { return table.keys[slot] != EMPTY; },
                        [&](int slot, int place) {
                            cols[place] = table.keys[slot];
                            values[place] = (V)table.sums[slot];
                        });
        sort_row<THREADS>(cols, values, (int)most_columns(row), (uint32_t *)table.keys, (V *)table.sums);
    }
    template <int THREADS> __device__ __forceinline__ void finish_global(int row, global_sums &sums, char *,
                                                                 block_memory &memory) const
    {
        int32_t *cols = c_cols + offsets[row];
        V *values = c_values + offsets[row];
        sums.template take_all<THREADS>(this->cols, memory.reduce, [=](int place, int32_t col, double sum) {
            cols[place] = col;
            values[place] = (V)sum;
        });
    }
};

/* The column's slot, found or claimed. */
static __device__ __forceinline__ int find_slot(int32_t *keys, int slots, int32_t col, bool *fresh)
{
    const int slot = home_slot(col, slots);
    return find_slot(keys, slots, col, slot, look(keys, slot), nullptr, 0, fresh);
}

/* ---- device: PWPR -------------------------------------------------------------------------------------- */

/* Slots of a tiny row's table: a power of two, at least twice the columns. */
static __device__ __forceinline__ int tiny_slots(int columns)
{
    return columns <= 2 ? 4 : 2 << (32 - __clz(columns - 1));
}

/* Algorithm 2: a lane an entry of A, as counting needs no order. */
template <sp_aia WAY>
__global__ void __launch_bounds__(TINY_THREADS) count_tiny(count_job job, range_source<WAY> ranges, int count)
{
    __shared__ int32_t all_keys[TINY_ROWS * TINY_STRIDE];
    const int group = threadIdx.x / TINY_LANES, lane = threadIdx.x % TINY_LANES;
    const int place = blockIdx.x * TINY_ROWS + group;
    const unsigned lanes = 0xfu << (threadIdx.x % 32 & ~3);
    if (place >= count) return;
    const int row = job.rows[place], slots = tiny_slots((int)job.products[row]);
    int32_t *keys = all_keys + group * TINY_STRIDE;
    for (int i = lane; i < slots; i += TINY_LANES) keys[i] = EMPTY;
    __syncwarp(lanes);

    const entry_range a = ranges.row_of_a(place, row);
    int claimed = 0;
    for (int i = lane; i < a.length; i += TINY_LANES) {
        const entry_range b = ranges.row_of_b(a.start + i);
        for (int k = 0; k < b.length; k++) {
            bool fresh;
            find_slot(keys, slots, __ldg(job.b_cols + b.start + k), &fresh);
            claimed += fresh;
        }
    }
    __syncwarp(lanes);
    for (int step = TINY_LANES / 2; step > 0; step /= 2) claimed += __shfl_xor_sync(lanes, claimed, step);
    if (lane == 0) job.lengths[row] = claimed;
}

/* Sums of a tiny row: its lanes take one row of B at a time, four rows of B loaded ahead. */
template <typename V, sp_aia WAY>
__device__ __forceinline__ void add_tiny(const sum_job<V, WAY> &job, entry_range a, unsigned lanes, int lane,
                                         int32_t *keys, double *sums, int slots)
{
    const auto add = [=](int32_t col, V weight, V value) {
        bool fresh;
        const double product = product_of(weight, value, false);
        const int slot = find_slot(keys, slots, col, &fresh);
        sums[slot] = fresh ? product : __dadd_rn(sums[slot], product);
    };
    for (int base = 0; base < a.length; base += TINY_LANES) {
        const bool mine = base + lane < a.length;
        const int64_t at = a.start + base + lane;
        const entry_range b = mine ? job.ranges.row_of_b(at) : entry_range{0, 0};
        const V weight = mine ? job.ranges.value_of_a(job.a_values, at) : V(0);
        int64_t start[TINY_LANES];
        int32_t length[TINY_LANES], col[TINY_LANES];
        V value[TINY_LANES];
#pragma unroll
        for (int u = 0; u < TINY_LANES; u++) {
            start[u] = __shfl_sync(lanes, b.start, u, TINY_LANES) + lane;
            length[u] = __shfl_sync(lanes, b.length, u, TINY_LANES);
            col[u] = lane < length[u] ? __ldg(job.b_cols + start[u]) : EMPTY;
            value[u] = lane < length[u] && job.b_values ? __ldg(job.b_values + start[u]) : V(1);
        }
#pragma unroll
        for (int u = 0; u < TINY_LANES; u++) {
            const V by = __shfl_sync(lanes, weight, u, TINY_LANES);
            if (lane < length[u]) add(col[u], by, value[u]);
            for (int i = TINY_LANES; lane + i < length[u]; i += TINY_LANES)
                add(__ldg(job.b_cols + start[u] + i), by, job.b_values ? __ldg(job.b_values + start[u] + i) : V(1));
            __syncwarp(lanes);
        }
    }
}

/* Moves the taken slots to the front, then writes each where the number of smaller columns says. */
template <typename V, sp_aia WAY>
__global__ void __launch_bounds__(TINY_THREADS) sum_tiny(sum_job<V, WAY> job, const int32_t *rows, int count)
{
    __shared__ int32_t all_keys[TINY_ROWS * TINY_STRIDE];
    __shared__ double all_sums[TINY_ROWS * TINY_STRIDE];
    const int group = threadIdx.x / TINY_LANES, lane = threadIdx.x % TINY_LANES;
    const int place = blockIdx.x * TINY_ROWS + group, shift = threadIdx.x % 32 & ~3;
    const unsigned lanes = 0xfu << shift;
    if (place >= count) return;
    const int row = rows[place];
    const int64_t to = job.offsets[row];
    const int columns = (int)(job.offsets[row + 1] - to), slots = tiny_slots(columns);
    int32_t *keys = all_keys + group * TINY_STRIDE;
    double *sums = all_sums + group * TINY_STRIDE;
    for (int i = lane; i < slots; i += TINY_LANES) keys[i] = EMPTY;
    __syncwarp(lanes);
    add_tiny(job, job.ranges.row_of_a(place, row), lanes, lane, keys, sums, slots);

    int done = 0;
    for (int i = lane; i < slots; i += TINY_LANES) {
        const int32_t col = keys[i];
        const double sum = sums[i]; /* of no meaning where the slot is free */
        const unsigned taken = __ballot_sync(lanes, col != EMPTY) >> shift & 0xfu;
        __syncwarp(lanes); /* all have read */
        if (col != EMPTY) {
            const int at = done + __popc(taken & ((1u << lane) - 1));
            keys[at] = col;
            sums[at] = sum;
        }
        done += __popc(taken);
    }
    __syncwarp(lanes);
    for (int i = lane; i < columns; i += TINY_LANES) {
        const int32_t col = keys[i];
        int smaller = 0;
        for (int other = 0; other < columns; other++) smaller += keys[other] < col;
        job.c_cols[to + smaller] = col;
        job.c_values[to + smaller] = (V)sums[i];
    }
}

/* ---- device: TBPR -------------------------------------------------------------------------------------- */

/* Algorithm 3 with 2^lane_bits lanes an entry of A, entries side by side, as counting needs no order: hands the
 * columns of a row's products to take(column), which returns false to stop. */
template <int THREADS, sp_aia WAY, typename Take>
__device__ __forceinline__ void walk_columns(const count_job &job, const range_source<WAY> &ranges, entry_range a,
                                             Take take)
{
    const int lanes = 1 << job.lane_bits, lane = threadIdx.x & (lanes - 1), step = THREADS >> job.lane_bits;
    const int64_t end = a.start + a.length;
    int64_t at = a.start + (threadIdx.x >> job.lane_bits);
    entry_range next = {0, 0};
    if (at < end) next = ranges.row_of_b(at);
    for (; at < end; at += step) {
        const entry_range now = next;
        if (at + step < end) next = ranges.row_of_b(at + step);
        for (int64_t q = now.start + lane; q < now.start + now.length; q += lanes)
            if (!take(__ldg(job.b_cols + q))) return;
    }
}

/* Counts a row's columns. A row that may have more than the table takes is tried: all threads stop soon after the
 * limit, and its place goes to the spill list. */
template <sp_aia WAY, int THREADS, int SLOTS>
__global__ void __launch_bounds__(THREADS) count_rows(count_job job, range_source<WAY> ranges, int first)
{
    constexpr int LIMIT = table_limit<SLOTS>::value;
    static_assert(LIMIT + THREADS < SLOTS, "a slot must stay free whatever the threads claim beyond the limit");
    extern __shared__ __align__(16) double table_memory[];
    __shared__ uint64_t reduce[32];
    __shared__ int fill;
    const int place = first + blockIdx.x, row = job.rows[place];
    const int64_t most = min(job.products[row], job.cols);
    const bool may_spill = most > LIMIT;
    const int slots = slots_for<SLOTS>(most);
    int32_t *keys = (int32_t *)table_memory;
    clear_keys<THREADS>(keys, slots);
    if (threadIdx.x == 0) fill = 0;
    __syncthreads();

    int claimed = 0;
    bool full = false;
    walk_columns<THREADS>(job, ranges, ranges.row_of_a(place, row), [&](int32_t col) {
        bool fresh;
        find_slot(keys, slots, col, &fresh);
        claimed += fresh;
        if (fresh && may_spill) full = atomicAdd(&fill, 1) >= LIMIT;
        return !full;
    });
    const bool spills = __syncthreads_or(full);
    const int total = block_reduce<THREADS>(claimed, add_op(), reduce);
    if (threadIdx.x != 0) return;
    if (spills) job.spilled[atomicAdd(job.spill_count, 1)] = place;
    else job.lengths[row] = total;
}

/* Takes the next of `count` rows for the whole block, or -1. */
static __device__ int take_next(int *next, int count, int *shared_taken)
{
    __syncthreads();
    if (threadIdx.x == 0) *shared_taken = atomicAdd(next, 1);
    __syncthreads();
    return *shared_taken < count ? *shared_taken : -1;
}

/* Rows that no table holds: a bit a column, all zero at launch, rounded_cols / 8 bytes a block. */
template <sp_aia WAY>
__global__ void __launch_bounds__(GLOBAL_THREADS, GLOBAL_BLOCKS)
    count_global_rows(count_job job, range_source<WAY> ranges, int count, int *next, char *scratch)
{
    __shared__ uint64_t reduce[32];
    __shared__ int taken;
    uint32_t *touched = (uint32_t *)(scratch + rounded_cols(job.cols) / 8 * blockIdx.x);
    for (int i; (i = take_next(next, count, &taken)) >= 0;) {
        const int place = job.spilled[i], row = job.rows[place];
        walk_columns<GLOBAL_THREADS>(job, ranges, ranges.row_of_a(place, row), [&](int32_t col) {
            const uint32_t bit = 1u << (col % 32);
            if (!(__ldcg(touched + col / 32) & bit)) atomicOr(touched + col / 32, bit);
            return true;
        });
        __syncthreads();
        int columns = 0;
        for (int64_t at = threadIdx.x; at < (job.cols + 31) / 32; at += GLOBAL_THREADS) {
            const uint32_t bits = __ldcg(touched + at);
            if (bits == 0) continue;
            columns += __popc(bits);
            __stcg(touched + at, 0u);
        }
        const int total = block_reduce<GLOBAL_THREADS>(columns, add_op(), reduce);
        if (threadIdx.x == 0) job.lengths[row] = total;
    }
}

#endif
