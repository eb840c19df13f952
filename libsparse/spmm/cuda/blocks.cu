/* Y = alpha · reduce(A · X) + beta · Y by blocks of equal work (Xie et al., "Accel-GCN", 2023, Algorithms 1 and 2).
 *
 * Rows are sorted by their number of entries, the longest first. A block has 8 groups of lanes. A row of up to n
 * entries takes one group, a row of up to 2n two, and so on to 8n, which takes all 8 (Algorithm 1; 8 groups stand for
 * the paper's warps of a block; n, 16 to 1,024, depends on the matrix, see spmm.cu). Longer rows take several blocks
 * (Algorithm 2). 16 bytes describe a block. Rows without entries, 41 % of R-MAT 17, are 64 a block: 38.8 -> 35.4 us at
 * 32 columns. A group spans the columns of X as the paper's combined warps do, 16 bytes a lane.
 *
 * Where this differs from the paper: partial sums are in registers; groups add them up once a row, by shuffles and then
 * through 1 to 8 KB of shared memory, where the paper adds to shared memory for every entry of A. A row of several
 * blocks is summed in a fixed order by the last of them to arrive, where the paper adds to Y with atomics; so results
 * have the same bits in every run. Entries are not moved: a place in the sorted order has a row, its first entry and
 * their number, 16 bytes.
 *
 * The same partition serves ranges of columns: the entries of a row within a range, contiguous since columns ascend,
 * count as a row of their own. It also serves ranges of rows, one after another.
 */
#include <float.h>
#include <new>

#include "device/entries.cuh"
#include "device/radix.cuh"
#include "spmm/cuda/blocks.cuh"
#include "spmm/cuda/walk.cuh"

enum { THREADS = ENTRY_THREADS };

/* ---- preparation ----------------------------------------------------------------------------------------- */

/* Ranges of A's columns, or of its rows. */
struct part_ranges {
    int count;
    int64_t columns, rows; /* of each; 0: not cut */
    const int32_t *order;  /* in which rows are taken, or NULL */
};

/* Calls take(range, begin, end) for the parts of a row: those with entries, and the first in any case, since every row
 * of Y is written by it. */
template <typename Take>
static __device__ __forceinline__ void for_parts(const part_ranges &ranges, const int64_t *offsets,
                                                 const int32_t *cols, int64_t row, Take take)
{
    const int64_t end = offsets[row + 1];
    int64_t begin = offsets[row];
    if (ranges.rows) {
        take((int)(row / ranges.rows), begin, end);
        return;
    }
    for (int range = 0; range < ranges.count && (begin < end || range == 0); range++) {
        const int64_t next =
            range + 1 < ranges.count ? lower_bound_i32(cols, begin, end, (int32_t)((range + 1) * ranges.columns)) : end;
        if (next > begin || range == 0) take(range, begin, next);
        begin = next;
    }
}

static __global__ void __launch_bounds__(THREADS)
    count_parts(part_ranges ranges, int64_t rows, const int64_t *offsets, const int32_t *cols, int32_t *counts)
{
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    int count = 0;
    for_parts(ranges, offsets, cols, row, [&](int, int64_t, int64_t) { count++; });
    counts[row] = count;
}

/* Sorted, keys run through the ranges, and in each from rows of several blocks down to empty ones. */
static __global__ void __launch_bounds__(THREADS)
    list_parts(block_sizes sizes, part_ranges ranges, int64_t rows, const int64_t *offsets, const int32_t *cols,
               const int64_t *first, uint32_t *keys, uint32_t *numbers, int32_t *part_rows, int64_t *part_starts,
               int32_t *part_entries)
{
    const int64_t number = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (number >= rows) return;
    const int64_t row = ranges.order ? ranges.order[number] : number;
    int64_t at = first ? first[row] : number;
    for_parts(ranges, offsets, cols, row, [&](int range, int64_t begin, int64_t end) {
        const int entries = (int)(end - begin);
        keys[at] = (uint32_t)(range * sizes.classes + sizes.classes - 1 - sizes.class_of(entries));
        numbers[at] = (uint32_t)at;
        part_rows[at] = (int32_t)row;
        part_starts[at] = begin;
        part_entries[at] = entries;
        at++;
    });
}

static __global__ void __launch_bounds__(THREADS)
    find_classes(int64_t classes, int64_t places, const uint32_t *sorted, int64_t *class_begin)
{
    const int64_t c = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (c > classes) return;
    class_begin[c] = lower_bound_u32(sorted, 0, places, (uint32_t)c);
}

/* Puts rows in their places, and counts the blocks that begin at each. */
static __global__ void __launch_bounds__(THREADS)
    place_rows(block_sizes sizes, int64_t places, const uint32_t *sorted, const uint32_t *numbers,
               const int64_t *class_begin, const int32_t *part_rows, const int64_t *part_starts,
               const int32_t *part_entries, int32_t *rows, int64_t *starts, int32_t *entries, int32_t *counts)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= places) return;
    const uint32_t number = numbers[at];
    const int row_entries = part_entries[number];
    rows[at] = part_rows[number];
    starts[at] = part_starts[number];
    entries[at] = row_entries;
    const int rows_a_block = sizes.rows_of(min(sizes.class_of(row_entries), sizes.block));
    counts[at] = row_entries > sizes.block ? (row_entries + sizes.block - 1) / sizes.block
                                           : (at - class_begin[sorted[at]]) % rows_a_block == 0;
}

/* Algorithm 2, a thread a place. */
static __global__ void __launch_bounds__(THREADS)
    fill_blocks(block_sizes sizes, int64_t places, const uint32_t *sorted, const int64_t *class_begin,
                const int32_t *entries, const int32_t *counts, const int64_t *first, int4 *blocks)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= places || counts[at] == 0) return;
    const int row_entries = entries[at];
    int4 *block = blocks + first[at];
    if (row_entries <= sizes.block) {
        const int most = sizes.class_of(row_entries), groups = sizes.groups_of(most);
        const int rows = (int)min(class_begin[sorted[at] + 1] - at, (int64_t)sizes.rows_of(most));
        *block = {most, (int)at, 0, sizes.share(most, groups) << 16 | rows};
        return;
    }
    for (int done = 0; done < row_entries; done += sizes.block)
        *block++ = {row_entries, (int)at, done, min(row_entries - done, sizes.block)};
}

/* edges[2r], edges[2r + 1] = where the blocks of range r begin, and those of them that do more than a part of a
 * row; behind these, where all end, and where those of range 0 without entries begin. */
static __global__ void find_ranges(int ranges, int64_t classes, const int64_t *class_begin, const int64_t *first,
                                   int64_t *edges)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < 2 * ranges) edges[i] = first[class_begin[i / 2 * classes + i % 2]];
    if (i == 2 * ranges) edges[i] = first[class_begin[ranges * classes]];
    if (i == 2 * ranges + 1) edges[i] = first[class_begin[classes - 1]];
}

/* The parts of A's rows, unsorted. */
struct part_list {
    device_array<uint32_t> keys, numbers;
    device_array<int32_t> rows, entries;
    device_array<int64_t> starts;
    int64_t count;
};

static sp_status make_list(sp_context *context, const sp_csr *a, const block_sizes &sizes, const part_ranges &ranges,
                           part_list *list)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<int32_t> counts;
    device_array<int64_t> first;
    list->count = a->rows;
    if (ranges.count > 1 && ranges.rows == 0) {
        CHECK(counts.allocate(context, a->rows + 1));
        CHECK(first.allocate(context, a->rows + 1));
        count_parts<<<thread_blocks(a->rows), THREADS, 0, stream>>>(ranges, a->rows, a->row_offsets, a->col_indices,
                                                                 counts.data);
        CUDA_CHECK(cudaGetLastError());
        CHECK(cuda_scan_counts(context, a->rows, counts.data, first.data));
        CUDA_CHECK(cudaMemcpyAsync(&list->count, first.data + a->rows, sizeof list->count, cudaMemcpyDeviceToHost,
                                   stream));
        CHECK(cuda_finish(context));
    }
    if (list->count > INT32_MAX)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "%d ranges of columns cut %lld rows into %lld parts",
                       ranges.count, (long long)a->rows, (long long)list->count);
    CHECK(list->keys.allocate(context, list->count));
    CHECK(list->numbers.allocate(context, list->count));
    CHECK(list->rows.allocate(context, list->count));
    CHECK(list->entries.allocate(context, list->count));
    CHECK(list->starts.allocate(context, list->count));
    list_parts<<<thread_blocks(a->rows), THREADS, 0, stream>>>(
        sizes, ranges, a->rows, a->row_offsets, a->col_indices, first.data, list->keys.data, list->numbers.data,
        list->rows.data, list->starts.data, list->entries.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

static sp_status sort_list(sp_context *context, part_list *list, int64_t classes, device_array<uint32_t> *keys,
                           device_array<uint32_t> *numbers)
{
    int bits = 1;
    while (classes >> bits) bits++;
    CHECK(keys->allocate(context, list->count));
    CHECK(numbers->allocate(context, list->count));
    return radix_sort_pairs(context, list->keys.data, keys->data, list->numbers.data, numbers->data, list->count, bits);
}

static sp_status cut(sp_context *context, const sp_csr *a, const part_ranges &ranges, spmm_blocks *parts)
{
    const int range_count = ranges.count;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const block_sizes sizes(parts);
    const int64_t classes = (int64_t)range_count * sizes.classes;
    device_array<uint32_t> keys, numbers;
    device_array<int64_t> class_begin, first, edges;
    device_array<int32_t> counts;
    part_list list;
    void *host = NULL;
    CHECK(sp_alloc(context, 2 * (int64_t)range_count + 2, sizeof(int64_t), &host));
    parts->edges = (int64_t *)host;
    CHECK(make_list(context, a, sizes, ranges, &list));
    parts->places = list.count;
    CHECK(sort_list(context, &list, classes, &keys, &numbers));
    CHECK(class_begin.allocate(context, classes + 1));
    find_classes<<<thread_blocks(classes + 1), THREADS, 0, stream>>>(classes, list.count, keys.data, class_begin.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(parts->rows.allocate(context, list.count));
    CHECK(parts->starts.allocate(context, list.count));
    CHECK(parts->entries.allocate(context, list.count));
    CHECK(counts.allocate(context, list.count + 1));
    CHECK(first.allocate(context, list.count + 1));
    place_rows<<<thread_blocks(list.count), THREADS, 0, stream>>>(
        sizes, list.count, keys.data, numbers.data, class_begin.data, list.rows.data, list.starts.data,
        list.entries.data,
        parts->rows.data, parts->starts.data, parts->entries.data, counts.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, list.count, counts.data, first.data));
    CHECK(edges.allocate(context, 2 * range_count + 2));
    find_ranges<<<thread_blocks(2 * range_count + 2), THREADS, 0, stream>>>(range_count, sizes.classes,
                                                                            class_begin.data,
                                                                         first.data, edges.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(parts->edges, edges.data, (size_t)(2 * range_count + 2) * sizeof(int64_t),
                               cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    parts->count = parts->edges[2 * range_count];
    parts->filled = parts->edges[2 * range_count + 1];
    CHECK(parts->blocks.allocate(context, parts->count));
    fill_blocks<<<thread_blocks(list.count), THREADS, 0, stream>>>(sizes, list.count, keys.data, class_begin.data,
                                                                parts->entries.data, counts.data, first.data,
                                                                parts->blocks.data);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

void cuda_spmm_free_blocks(sp_context *context, spmm_blocks *parts)
{
    if (!parts) return;
    sp_free(context, parts->edges);
    parts->~spmm_blocks();
    sp_free(context, parts);
}

static sp_status make_blocks(sp_context *context, const sp_csr *a, const part_ranges &ranges, int group_entries,
                             bool coarse, spmm_blocks **parts)
{
    void *memory = NULL;
    *parts = NULL;
    CHECK(sp_calloc(context, 1, sizeof(spmm_blocks), &memory));
    spmm_blocks *made = new (memory) spmm_blocks();
    made->ranges = ranges.count;
    made->group_entries = group_entries;
    made->coarse = coarse;
    const sp_status status = a->rows > 0 ? cut(context, a, ranges, made) : SP_OK;
    if (status == SP_OK) *parts = made;
    else cuda_spmm_free_blocks(context, made);
    return status;
}

sp_status cuda_spmm_cut(sp_context *context, const sp_csr *a, int ranges, int64_t range_columns, int group_entries,
                        bool coarse, const int32_t *order, spmm_blocks **parts)
{
    return make_blocks(context, a, {ranges, range_columns, 0, order}, group_entries, coarse, parts);
}

sp_status cuda_spmm_cut_rows(sp_context *context, const sp_csr *a, int ranges, int64_t range_rows, int group_entries,
                             bool coarse, spmm_blocks **parts)
{
    return make_blocks(context, a, {ranges, 0, range_rows, NULL}, group_entries, coarse, parts);
}

/* ---- the product ----------------------------------------------------------------------------------------- */

/* Where rows of several blocks leave their partial results. */
struct carry_view {
    void *results;     /* by block, tile, repeat and lane */
    unsigned *arrived; /* by first block of the row, and tile */
    int blocks;        /* how many of the launch's blocks, the first, belong to such rows */
};

template <typename Result> static __device__ __forceinline__ Result load_result(const Result *from)
{
    Result result;
    packet<uint32_t, sizeof(Result) % 16 == 0 ? 4 : 1> part;
    constexpr int WORDS = sizeof part / 4;
#pragma unroll
    for (int w = 0; w < (int)(sizeof(Result) / sizeof part); w++) {
        part.load_changed((const uint32_t *)from + w * WORDS);
        memcpy((char *)&result + w * sizeof part, &part, sizeof part);
    }
    return result;
}

/* The threads of one of the partition's blocks. Where they are a warp, four are one block of the launch: with a block
 * for each, their start is much of the time. 16 columns of 0.9, 1.2 and 17.8 million entries take 12.9, 18.2 and 133
 * us for 16.1, 28.0 and 142; by eight no less. */
template <int LANES> struct block_threads {
    static constexpr int COUNT = SPMM_GROUPS * LANES;
    static constexpr bool WARP = COUNT == 32;
    static constexpr int TOGETHER = WARP ? 4 : 1;
    /* Of the partition's block; read again where it is needed, as it is not worth the register that it would keep. */
    static __device__ __forceinline__ int number()
    {
        if (!WARP) return (int)blockIdx.x;
        int block, thread;
        asm volatile("mov.u32 %0, %%ctaid.x; mov.u32 %1, %%tid.x;" : "=r"(block), "=r"(thread));
        return block * TOGETHER + thread / COUNT;
    }
    static __device__ __forceinline__ int thread() { return WARP ? threadIdx.x % COUNT : threadIdx.x; }
    static __device__ __forceinline__ void sync()
    {
        if (WARP) __syncwarp();
        else __syncthreads();
    }
};

/* Merges the results of neighbouring groups, a power of two, into the first of them. All threads of the block. */
template <int LANES, int REPEATS, typename Result>
static __device__ __forceinline__ void merge_groups(int groups, Result (&results)[REPEATS],
                                                    Result (*shared)[REPEATS][LANES])
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int step = LANES; step < 32; step *= 2)
        if (step < groups * LANES)
#pragma unroll
            for (int r = 0; r < REPEATS; r++) results[r].merge(results[r].across(step));
    if (block_threads<LANES>::WARP || groups * LANES <= 32) return;
    const int warps = groups * LANES / 32;
    __syncthreads();
    if (lane < LANES)
#pragma unroll
        for (int r = 0; r < REPEATS; r++) shared[warp][r][lane] = results[r];
    __syncthreads();
    if (warp % warps == 0 && lane < LANES)
        for (int w = 1; w < warps; w++)
#pragma unroll
            for (int r = 0; r < REPEATS; r++) results[r].merge(shared[warp + w][r][lane]);
}

/* Leaves a block's part of a row, in its first group, where the row's last block to arrive finds it. True in that
 * block, whose first group then holds the whole row. */
template <int LANES, int REPEATS, typename Result>
static __device__ bool gather_row(const spmm_product &p, const carry_view &carry, int block_entries,
                                  const int4 &block, Result (&results)[REPEATS], Result (*shared)[REPEATS][LANES])
{
    using threads = block_threads<LANES>;
    __shared__ bool lasts[threads::TOGETHER];
    bool &last = lasts[threads::WARP ? threadIdx.x / 32 : 0];
    const int group = threads::thread() / LANES, lane = threadIdx.x % LANES, number = threads::number();
    const int pieces = (block.x + block_entries - 1) / block_entries;
    const int64_t first = (int64_t)number - block.z / block_entries;
    Result *left = (Result *)carry.results;
    const auto place = [&](int64_t slot, int r) {
        return ((slot * p.tiles + blockIdx.y) * REPEATS + r) * LANES + lane;
    };
    if (group == 0) {
#pragma unroll
        for (int r = 0; r < REPEATS; r++) left[place(number, r)] = results[r];
        __threadfence();
    }
    threads::sync();
    if (threads::thread() == 0) {
        unsigned *arrived = carry.arrived + first * p.tiles + blockIdx.y;
        last = atomicAdd(arrived, 1) + 1 == (unsigned)pieces;
        if (last) *arrived = 0;
        __threadfence();
    }
    threads::sync();
    if (!last) return false;
#pragma unroll
    for (int r = 0; r < REPEATS; r++) results[r].clear(p);
    for (int piece = group; piece < pieces; piece += SPMM_GROUPS)
#pragma unroll
        for (int r = 0; r < REPEATS; r++) results[r].merge(load_result(left + place(first + piece, r)));
    merge_groups<LANES>(SPMM_GROUPS, results, shared);
    return true;
}

/* A block's description, loaded again where it is needed: keeping it would cost registers. */
static __device__ __forceinline__ int4 load_again(const int4 *block)
{
    const uint4 words = load_kept((const uint4 *)block, SPMM_STAYS);
    return {(int)words.x, (int)words.y, (int)words.z, (int)words.w};
}

/* LOADS and PARTS: see spmm_quads; 0 loads: entries one by one, or in pairs where the last repeat has two parts. */
template <int LOADS, int PARTS, typename T, int V, int LANES, int REPEATS, typename Result>
static __global__ void
    __launch_bounds__(block_threads<LANES>::COUNT *block_threads<LANES>::TOGETHER,
                      SPMM_RESIDENT(T, V, LANES, REPEATS, Result, true, SPMM_GROUPS *LANES) /
                          block_threads<LANES>::TOGETHER)
    work_blocks(const spmm_product p, const block_sizes sizes, const int4 *blocks, int count, const int32_t *rows,
                const int64_t *starts, const int32_t *row_entries, const carry_view carry)
{
    using threads = block_threads<LANES>;
    using quads = spmm_quads<T, V, LANES, REPEATS, Result::EXTREME>;
    constexpr int EXCHANGED = exchange_depth<T, V, LANES, REPEATS, Result::EXTREME>::UNROLL;
    __shared__ Result shared[threads::WARP ? 1 : threads::COUNT / 32][REPEATS][LANES];
    const int group = threads::thread() / LANES, number = threads::number();
    let_next_begin();
    if (threads::WARP && number >= count) return;
    const int4 block = __ldg(blocks + number);
    const bool partial = number < carry.blocks;
    const spmm_columns<T, V, LANES, REPEATS> columns(p, (int)blockIdx.y, PARTS);
    const int groups = partial ? SPMM_GROUPS : sizes.groups_of(block.x);
    const int share = partial ? sizes.share(block.w, SPMM_GROUPS) : block.w >> 16;
    const int rows_here = partial ? 1 : block.w & 0xffff;
    const int mine = group >> (__ffs(groups) - 1), part = group & (groups - 1);
    const bool active = mine < rows_here;
    const int32_t row = active && part == 0 ? __ldg(rows + block.y + mine) : -1; /* that the group writes */
    const int64_t start = active ? __ldg(starts + block.y + mine) : 0;
    const int entries = partial ? block.w : active ? __ldg(row_entries + block.y + mine) : 0;
    const int begin = min(part * share, entries), own = active ? min(entries - begin, share) : 0;
    Result results[REPEATS];
    if (block.x == 0) wait_for_previous(); /* others wait once they have columns: so far all is the plan's */
    if (row >= 0) prefetch_row(p, row, columns);
#pragma unroll
    for (int r = 0; r < REPEATS; r++) results[r].clear(p);
    if (block.x == 0) {
        for (int i = group; i < rows_here; i += SPMM_GROUPS)
            write_row(p, __ldg(rows + block.y + i), columns, results);
        return;
    }
    if constexpr (LOADS > quads::LOADS) {
        __shared__ quad_exchange exchange[threads::TOGETHER];
        add_quads<LOADS, PARTS>(p, start + block.z + begin, own, columns, results[0], exchange + threadIdx.x / 32);
    } else if constexpr (LOADS > 0) {
        add_quads<LOADS, PARTS>(p, start + block.z + begin, own, columns, results[0]);
    } else if constexpr (PARTS == LANES) {
        add_apart<(V <= 2 ? 4 : 2)>(p, start + block.z + begin, own, block.z + begin, columns, results[0]);
    } else if constexpr (PARTS > 1) {
        __shared__ entry_exchange<32> exchange[threads::COUNT / 32];
        add_pairs<2>(p, start + block.z + begin, own, LANES, columns, results, exchange[threadIdx.x / 32]);
    } else if constexpr (EXCHANGED > 0) {
        __shared__ entry_exchange<32> exchange[threads::COUNT / 32];
        add_exchanged<EXCHANGED>(p, start + block.z + begin, own, columns, results, exchange[threadIdx.x / 32]);
    } else
        add_entries<spmm_depth<T, REPEATS, Result::EXTREME>::UNROLL>(p, start + block.z + begin, own,
                                                                 block.z + begin, columns, results);
    if (groups > 1) merge_groups<LANES>(groups, results, shared);
    if (partial && !gather_row<LANES>(p, carry, sizes.block, load_again(blocks + threads::number()), results, shared))
        return;
    if (row >= 0) write_row(p, row, columns, results);
}

sp_status cuda_spmm_make_carry(sp_context *context, spmm_blocks *parts, int64_t arrived, size_t bytes)
{
    if (bytes > parts->carry_bytes) {
        parts->carry_bytes = 0;
        CHECK(parts->carry.allocate(context, (int64_t)bytes));
        parts->carry_bytes = bytes;
    }
    if (arrived > parts->arrived_count) {
        parts->arrived_count = 0;
        CHECK(parts->arrived.allocate(context, arrived));
        CHECK(parts->arrived.fill(0, arrived));
        parts->arrived_count = arrived;
    }
    return SP_OK;
}

template <bool IS_EXTREME> struct block_launch {
    static constexpr bool EXTREME = IS_EXTREME;
    sp_context *context;
    const spmm_product &product;
    spmm_blocks *parts;
    int range;

    /* Y = 0 is written at the speed of memory; by blocks of empty rows a million of 602 columns took 5.4 ms for 0.6. */
    sp_status clear(size_t size) const
    {
        CUDA_CHECK(cudaMemset2DAsync(product.y, (size_t)product.y_stride * size, 0, (size_t)product.width * size,
                                     (size_t)product.rows, cuda_state_of(context)->stream));
        return SP_OK;
    }

    template <typename T, int V, int LANES, int REPEATS, int PARTS = 1> sp_status run() const
    {
        if constexpr (LANES < 4) return run<T, V, 4, 1, 4>();
        else return launch<T, V, LANES, REPEATS, PARTS>();
    }

    template <typename T, int V, int LANES, int REPEATS, int PARTS> sp_status launch() const
    {
        using Result = std::conditional_t<EXTREME, spmm_extremes<T, V>, spmm_sums<T, V>>;
        using S = typename spmm_sum<T>::type;
        const bool clears = parts->mostly_empty && !EXTREME && product.beta == 0 && product.alpha >= 0 &&
                            product.alpha <= DBL_MAX; /* whose product with 0 is 0 */
        const int64_t begin = parts->edges[2 * range], partial = parts->edges[2 * range + 1] - begin,
                      count = (clears ? parts->filled : parts->edges[2 * range + 2]) - begin;
        if (clears) CHECK(clear(product.y_narrow ? sizeof(T) : sizeof(S)));
        const size_t bytes = (size_t)partial * (size_t)product.tiles * REPEATS * LANES * sizeof(Result);
        if (count == 0) return SP_OK;
        CHECK(cuda_spmm_make_carry(context, parts, partial * product.tiles, bytes));
        const carry_view carry = {parts->carry.data, parts->arrived.data, (int)partial};
        using quads = spmm_quads<T, V, LANES, REPEATS, EXTREME>;
        auto kernel = work_blocks<0, PARTS, T, V, LANES, REPEATS, Result>;
        if constexpr (quads::FIT && PARTS == 1)
            if (has_quads(product) && !left_out("spmm-quads"))
                kernel = 2 * product.width > V * LANES ? work_blocks<2, 1, T, V, LANES, REPEATS, Result>
                                                       : work_blocks<quads::LOADS, 2, T, V, LANES, REPEATS, Result>;
        using threads = block_threads<LANES>;
        const dim3 grid((unsigned)ceil_div(count, threads::TOGETHER), (unsigned)product.tiles);
        unsigned early;
        CHECK(can_be_early(context, kernel, &early));
        if (clears) early = 0;
        CUDA_CHECK(launch_kernel(kernel, grid, threads::COUNT * threads::TOGETHER, 0, cuda_state_of(context)->stream,
                                 early > 0, product, block_sizes(parts), (const int4 *)parts->blocks.data + begin,
                                 (int)count, (const int32_t *)parts->rows.data, (const int64_t *)parts->starts.data,
                                 (const int32_t *)parts->entries.data, carry));
        return SP_OK;
    }
};

sp_status cuda_spmm_blocks(sp_context *context, sp_dense_type type, bool extreme, const spmm_shape &shape,
                           const spmm_product &product, spmm_blocks *parts, int range)
{
    return extreme ? spmm_with_shape(type, shape, block_launch<true>{context, product, parts, range})
                   : spmm_with_shape(type, shape, block_launch<false>{context, product, parts, range});
}
