/* C = A·B of small matrices on a CUDA device in two phases, row-wise, sorted; entries that cancel to zero are kept.
 *
 * What takes time here is latency: of launches, of the host's waiting, and of one warp that walks the thousands of
 * products of a long row. So there are two kinds of rows only, and four launches:
 *   - short rows, up to 96 products and 32 elements of A: sorted in registers, neighbours together (pack.cuh);
 *   - all others, a block each, those of many products first: a bit for each of B's at most 16,384 columns gives C's
 *     columns in order and their ranks. Sums lie at these in shared memory, 2,048 at a time. Up to 32 rows of B and
 *     1,024 of their entries are added together: each column has a word with a bit a row, which says where its
 *     products lie side by side in A's order, the CPU's. Where B has few columns for the products of a row, all but
 *     the longest rows are summed by a warp each, with a sum a column (dense.cu).
 * One row of B after another, with a barrier between, would take a block up to 400 cycles each.
 *
 * The host waits twice, for nnz(C) and for the end. Bytes: 4 + 4 + v of B a product, C written once, 9 a row.
 */
#include <stdio.h>

#include "base/ablation.h"
#include "spgemm/cuda/small_rows.cuh"

/* SMALL_ROWS: rows a warp, whose short ones are sorted together. */
enum { SMALL_ROWS = 8, BLOCK_ROWS = SMALL_WARPS * SMALL_ROWS, SCAN_THREADS = 1024 };
/* The largest operands. Beyond, rows keep the device busy, and warps do the same in fewer instructions: a uniform
 * matrix of 256,000 entries takes 0.32 ms here and 0.14 there. Rows of FULL_ROW elements and more on average may have
 * more of them, as they have the products to fill a block. */
enum { MOST_ROWS = 32768, MOST_ELEMENTS = 49152, MOST_OF_FULL = 98304, FULL_ROW = 24 };
/* Rows of more than MANY products are taken first, by blocks. Others are faster by a warp each with a sum a column,
 * unless rows have fewer products than half of B's columns: all sums are cleared and read (R-MAT 2^12 0.34 ms by
 * blocks, 0.385 by warps). With rows of up to 16,384 products by warps hangGlider_2 takes 0.31 ms for 0.23. */
enum { MANY = 4096 };

/* All that is counted on the device. */
struct small_totals {
    unsigned long long products;
    long long entries;
    unsigned shorts, others;   /* rows of C that are not empty */
    unsigned heavy, light;     /* of the others */
    unsigned counted, summed;  /* of the others, begun beyond the first of each block */
    unsigned dense;            /* of the light, begun */
};

template <typename V> struct small_job {
    product_view<V> product;
    int64_t rows;
    bool heavy_only; /* the light rows are summed by warps */
    small_totals *totals;
    int32_t *lengths;
    int32_t *list;  /* rows that are not short: heavy ones from the front, light ones from the end */
    uint8_t *notes; /* products of short rows, or OTHER, which is more */
    int64_t *offsets;
    int32_t *c_cols;
    V *c_values;
};
enum { OTHER = 255 };

/* Row `at` of those that are not short, those of many products first: taken last, one would be waited for. */
template <typename V> static __device__ __forceinline__ int32_t other_row(const small_job<V> &job, unsigned at)
{
    const unsigned heavy = job.totals->heavy;
    return job.list[at < heavy ? at : job.rows - 1 - (at - heavy)];
}

/* ---- short rows ------------------------------------------------------------------------------------------ */

/* The products of SMALL_ROWS rows from `base` on; begins[i]: where the elements of row base + i begin. */
static __device__ __forceinline__ void count_short_products(const int64_t *b_offsets, const int32_t *a_cols,
                                                      const int32_t *begins, unsigned *products)
{
    enum { LOADS = 4 };
    const int lane = threadIdx.x & 31;
    const int32_t last = begins[SMALL_ROWS];
    for (int32_t at = begins[0] + lane; __any_sync(FULL_WARP, at < last); at += 32 * LOADS) {
        int32_t k[LOADS];
        unsigned length[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; u++) k[u] = at + 32 * u < last ? __ldg(a_cols + at + 32 * u) : -1;
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            length[u] = k[u] < 0 ? 0 : (unsigned)(__ldg(b_offsets + k[u] + 1) - __ldg(b_offsets + k[u]));
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            int row = 0;
#pragma unroll
            for (int i = 1; i < SMALL_ROWS; i++) row += at + 32 * u >= begins[i];
            if (__all_sync(FULL_WARP, row == __shfl_sync(FULL_WARP, row, 0))) {
                const unsigned sum = warp_add(length[u]);
                if (lane == 0) products[row] += sum;
            } else if (length[u]) {
                atomicAdd(products + row, length[u]);
            }
            __syncwarp();
        }
    }
}

/* Classes of all rows, the lengths of short ones. */
template <typename V> static __global__ void __launch_bounds__(SMALL_THREADS) count_short(small_job<V> job)
{
    __shared__ pack_memory<uint32_t, false, true> packs[SMALL_WARPS];
    __shared__ int32_t begins[SMALL_WARPS][SMALL_ROWS + 1];
    __shared__ unsigned products[SMALL_WARPS][SMALL_ROWS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t base = ((int64_t)blockIdx.x * SMALL_WARPS + warp) * SMALL_ROWS, row = base + lane;
    if (base >= job.rows) return;
    if (lane <= SMALL_ROWS) begins[warp][lane] = (int32_t)job.product.a.offsets[min(row, job.rows)];
    if (lane < SMALL_ROWS) products[warp][lane] = 0;
    __syncwarp();
    count_short_products(job.product.b.offsets, job.product.a.cols, begins[warp], products[warp]);
    small_row own = {};
    const bool there = lane < SMALL_ROWS && row < job.rows;
    unsigned count = 0;
    if (there) {
        count = products[warp][lane];
        own.begin = begins[warp][lane];
        own.elements = begins[warp][lane + 1] - begins[warp][lane];
        own.small = count <= MOST_SMALL && own.elements <= 32;
        own.products = own.small ? (int)count : 0;
        job.notes[row] = (uint8_t)(own.small ? (int)count : (int)OTHER);
    }
    const unsigned shorts = __ballot_sync(FULL_WARP, own.small && count > 0);
    const unsigned others = __ballot_sync(FULL_WARP, there && !own.small);
    const unsigned heavy = __ballot_sync(FULL_WARP, there && !own.small && count > MANY), light = others & ~heavy;
    const unsigned all = warp_add(count);
    unsigned first = 0, first_heavy = 0;
    if (lane == 0) {
        if (others) atomicAdd(&job.totals->others, (unsigned)__popc(others));
        if (light) first = atomicAdd(&job.totals->light, (unsigned)__popc(light));
        if (heavy) first_heavy = atomicAdd(&job.totals->heavy, (unsigned)__popc(heavy));
        if (shorts) atomicAdd(&job.totals->shorts, (unsigned)__popc(shorts));
        if (all) atomicAdd(&job.totals->products, (unsigned long long)all);
    }
    first = __shfl_sync(FULL_WARP, first, 0);
    first_heavy = __shfl_sync(FULL_WARP, first_heavy, 0);
    if (heavy >> lane & 1) job.list[first_heavy + __popc(heavy & lanes_below())] = (int32_t)row;
    if (light >> lane & 1) job.list[job.rows - 1 - first - __popc(light & lanes_below())] = (int32_t)row;
    const int length = take_packs<uint32_t, false, true>(job.product, base, own, packs[warp], 0, (int32_t *)nullptr,
                                                         (V *)nullptr);
    if (own.small) job.lengths[row] = length;
}

/* ---- rows by blocks -------------------------------------------------------------------------------------- */

/* The number of the next row to take, fetched at the beginning of the row that is done now. */
static __device__ __forceinline__ void fetch_next(unsigned *taken, row_memory &memory)
{
    if (threadIdx.x == 0) memory.next = gridDim.x + atomicAdd(taken, 1u);
}

template <typename V> static __global__ void __launch_bounds__(SMALL_THREADS) count_others(small_job<V> job)
{
    __shared__ row_memory memory;
    const unsigned rows = job.totals->others;
    for (unsigned at = blockIdx.x; at < rows; at = memory.next) {
        const int32_t row = other_row(job, at);
        __syncthreads();
        fetch_next(&job.totals->counted, memory);
        find_columns(job.product, row, false, memory);
        const int own = __popc(memory.words[threadIdx.x].x) + __popc(memory.words[SMALL_THREADS + threadIdx.x].x);
        const int length = block_reduce<SMALL_THREADS>(own, add_op(), memory.scratch);
        if (threadIdx.x == 0) job.lengths[row] = length;
    }
}

/* offsets = the sums of the lengths before each row, by one block. */
static __global__ void __launch_bounds__(SCAN_THREADS)
    scan_lengths(int64_t rows, const int32_t *lengths, int64_t *offsets, small_totals *totals)
{
    enum { EACH = 4 };
    __shared__ uint64_t scratch[SCAN_THREADS / 32];
    int64_t done = 0;
    for (int64_t base = 0; base < rows; base += SCAN_THREADS * EACH) {
        int own[EACH], sum = 0, total;
        const int64_t first = base + threadIdx.x * EACH;
#pragma unroll
        for (int i = 0; i < EACH; i++) sum += own[i] = first + i < rows ? lengths[first + i] : 0;
        int64_t before = done + block_scan<SCAN_THREADS>(sum, &total, scratch);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (first + i < rows) offsets[first + i] = before;
            before += own[i];
        }
        done += total;
    }
    if (threadIdx.x != 0) return;
    offsets[rows] = done;
    totals->entries = done;
}

template <typename V>
static __device__ __forceinline__ void sum_row(const small_job<V> &job, int32_t row, sum_memory &memory)
{
    const int64_t to = job.offsets[row], begin = job.product.a.offsets[row], last = job.product.a.offsets[row + 1];
    const int length = (int)(job.offsets[row + 1] - to);
    int count = find_columns(job.product, row, true, memory.block);
    rank_bits(memory.block);
    for (int low = 0; low < length; low += SUMS) {
        const int sums = min(length - low, (int)SUMS);
        uint16_t *cols = (uint16_t *)memory.term; /* whose time comes later */
        list_columns((uint32_t)low, memory.block, cols);
        for (int i = threadIdx.x; i < sums; i += SMALL_THREADS) memory.sums[i] = no_sum<true>();
        __syncthreads();
        for (int i = threadIdx.x; i < sums; i += SMALL_THREADS) job.c_cols[to + low + i] = cols[i];
        __syncthreads();
        for (int64_t first = begin; first < last; first += SMALL_THREADS) {
            if (last - begin > SMALL_THREADS) count = load_factors(job.product, first, last, true, memory.block);
            add_factors(job.product, count, (uint32_t)low, memory);
        }
        for (int i = threadIdx.x; i < sums; i += SMALL_THREADS) job.c_values[to + low + i] = (V)memory.sums[i];
        __syncthreads();
    }
}

/* The first `blocks` blocks take rows that are not short, the others short ones. */
template <typename V>
static __global__ void __launch_bounds__(SMALL_THREADS, 3) sum_small(small_job<V> job, unsigned blocks)
{
    __shared__ union {
        sum_memory others;
        pack_memory<uint32_t, true, true> packs[SMALL_WARPS];
    } memory;
    if (blockIdx.x < blocks) {
        const unsigned rows = job.heavy_only ? job.totals->heavy : job.totals->others;
        for (int i = threadIdx.x; i < SUMS; i += SMALL_THREADS) memory.others.rows[i] = 0;
        if (threadIdx.x == 0) memory.others.terms = 0; /* barriers follow */
        for (unsigned at = blockIdx.x; at < rows; at = memory.others.block.next) {
            const int32_t row = other_row(job, at);
            __syncthreads();
            if (threadIdx.x == 0) memory.others.block.next = blocks + atomicAdd(&job.totals->summed, 1u);
            sum_row(job, row, memory.others);
        }
        return;
    }
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t base = ((int64_t)(blockIdx.x - blocks) * SMALL_WARPS + warp) * SMALL_ROWS, row = base + lane;
    small_row own = {};
    int64_t to = 0;
    if (lane < SMALL_ROWS && row < job.rows) {
        own = noted_row(job.product.a, row, job.notes[row]);
        to = job.offsets[row];
    }
    take_packs<uint32_t, true, true>(job.product, base, own, memory.packs[warp], to, job.c_cols, job.c_values);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

bool cuda_is_small(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    const int64_t most = a->nnz >= FULL_ROW * a->rows ? MOST_OF_FULL : MOST_ELEMENTS;
    if (left_out("spgemm-small")) return false;
    return options->algorithm == SP_SPGEMM_AUTO && options->semiring == SP_PLUS_TIMES && !options->mask &&
           a->values && b->values && a->rows > 0 && a->rows <= MOST_ROWS && b->cols <= MOST_COLUMNS &&
           a->nnz <= most && b->nnz <= INT32_MAX;
}

static void name_rows(const small_totals *totals, unsigned dense, sp_spgemm_info *info)
{
    const struct {
        const char *name;
        unsigned count;
    } groups[] = {{"small", totals->shorts}, {"block", totals->others}, {"dense", dense}};
    info->groups = 0;
    for (int i = 0; i < 3; i++) {
        if (groups[i].count == 0) continue;
        sp_spgemm_group *group = &info->group[info->groups++];
        snprintf(group->name, sizeof group->name, "%s", groups[i].name);
        group->count = groups[i].count;
    }
}

/* Has warps sum the light rows, on a side stream, where they do better. The others are then the heavy ones. */
template <typename V>
static sp_status sum_light_rows(sp_context *context, small_job<V> *job, small_totals *totals, unsigned *dense,
                                side_work *taken)
{
    cuda_state *state = cuda_state_of(context);
    const int64_t cols = job->product.cols;
    if (left_out("spgemm-small-light")) return SP_OK;
    if (cols > DENSE_COLUMNS || totals->light == 0 || 2 * totals->products < (uint64_t)cols * totals->others)
        return SP_OK;
    warp_job<V> rows = {};
    rows.product = job->product;
    rows.offsets = job->offsets;
    rows.c_cols = job->c_cols;
    rows.c_values = job->c_values;
    CUDA_CHECK(cudaEventRecord(state->forked, state->stream));
    CUDA_CHECK(cudaStreamWaitEvent(state->side[1], state->forked, 0));
    taken->streams = 1;
    CHECK(sum_dense_rows(context, rows, row_list{job->list + job->rows - 1, totals->light, -1, &job->totals->dense},
                         state->side[1]));
    CUDA_CHECK(cudaEventRecord(state->joined[1], state->side[1]));
    *dense = totals->light;
    totals->others = totals->heavy;
    job->heavy_only = true;
    return SP_OK;
}

/* Totals, lengths, lists and notes lie in one array. */
static int64_t room_for_rows(int64_t rows) { return (int64_t)sizeof(small_totals) + rows * (2 * 4 + 1); }
template <typename V> static void use_room(small_job<V> *job, char *room)
{
    job->totals = (small_totals *)room;
    job->lengths = (int32_t *)(job->totals + 1);
    job->list = job->lengths + job->rows;
    job->notes = (uint8_t *)(job->list + job->rows);
}

/* Classes and lengths of all rows, C's offsets. */
template <typename V>
static sp_status count_rows(sp_context *context, const small_job<V> &job, unsigned packs, small_totals *totals)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    int blocks;
    count_short<V><<<packs, SMALL_THREADS, 0, stream>>>(job);
    CHECK(cuda_full_grid(context, count_others<V>, SMALL_THREADS, 0, &blocks));
    count_others<V><<<(unsigned)(job.rows < blocks ? job.rows : blocks), SMALL_THREADS, 0, stream>>>(job);
    scan_lengths<<<1, SCAN_THREADS, 0, stream>>>(job.rows, job.lengths, job.offsets, job.totals);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(totals, job.totals, sizeof *totals, cudaMemcpyDeviceToHost, stream));
    return cuda_finish(context);
}

/* C's columns and sums; *dense: how many rows warps have summed. */
template <typename V>
static sp_status sum_rows(sp_context *context, small_job<V> job, unsigned packs, small_totals *totals,
                          unsigned *dense)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    side_work taken = {};
    int blocks;
    CHECK(cuda_full_grid(context, sum_small<V>, SMALL_THREADS, 0, &blocks));
    CHECK(sum_light_rows(context, &job, totals, dense, &taken));
    if ((unsigned)blocks > totals->others) blocks = (int)totals->others;
    if (totals->others + totals->shorts > 0)
        sum_small<V><<<(unsigned)blocks + (totals->shorts > 0 ? packs : 0), SMALL_THREADS, 0, stream>>>(
            job, (unsigned)blocks);
    CUDA_CHECK(cudaGetLastError());
    if (*dense) CUDA_CHECK(cudaStreamWaitEvent(stream, cuda_state_of(context)->joined[1], 0));
    CHECK(cuda_finish(context));
    taken.streams = 0;
    return SP_OK;
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V>
static sp_status form_small(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    const unsigned packs = (unsigned)((a->rows + BLOCK_ROWS - 1) / BLOCK_ROWS);
    device_array<char> room;
    small_totals totals;
    small_job<V> job = {};
    unsigned dense = 0;
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(cuda_allocate(context, ((size_t)a->rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    CHECK(room.allocate(context, room_for_rows(a->rows)));
    CHECK(room.fill(0, (int64_t)sizeof totals));
    job.product = {view_of<V>(a), view_of<V>(b), b->cols, SP_PLUS_TIMES, NULL, NULL, false, {}};
    job.rows = a->rows;
    job.offsets = c->row_offsets;
    use_room(&job, room.data);
    CHECK(count_rows(context, job, packs, &totals));
    const double counted = wall_seconds();
    info->products = (int64_t)totals.products;
    info->product_nnz = info->nnz = c->nnz = totals.entries;
    CHECK(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    CHECK(cuda_allocate(context, (size_t)c->nnz * sizeof(V), &c->values));
    job.c_cols = c->col_indices;
    job.c_values = (V *)c->values;
    if (c->nnz > 0) CHECK(sum_rows(context, job, packs, &totals, &dense));
    name_rows(&totals, dense, info);
    info->batches = 1;
    CHECK(cuda_peak_beside(context, before, c, &info->peak_bytes));
    info->symbolic_seconds = counted - start;
    info->numeric_seconds = wall_seconds() - counted;
    return SP_OK;
}

sp_status sp_cuda_spgemm_small(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made = {};
    made.rows = a->rows;
    made.cols = b->cols;
    made.value_type = a->value_type;
    made.space = SP_DEVICE;
    const sp_status status = a->value_type == SP_F32 ? form_small<float>(context, a, b, &made, info)
                                                     : form_small<double>(context, a, b, &made, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
