/* C = A·B of small matrices on a CUDA device in two phases, row-wise, sorted; entries that cancel to zero are kept.
 *
 * What takes time here is latency: of launches, of the host's waiting, and of one warp that walks the thousands of
 * products of a long row. So there are two kinds of rows only, and four launches:
 *   - short rows, up to 96 products and 32 elements of A: sorted in registers, neighbours together (warp.cuh);
 *   - all others, a block each: a bit for each of B's at most 16,384 columns gives C's columns in order and their
 *     ranks. Sums lie at these in shared memory, 2,048 at a time; rows of B are added one after another, each by the
 *     whole block, with a barrier between them: sums see their products in A's order, as on the CPU.
 * A row of B takes a block hundreds of cycles, whatever its length up to 256.
 *
 * The host waits twice, for nnz(C) and for the end. Bytes: 4 + 4 + v of B a product, C written once, 9 a row.
 */
#include <stdio.h>

#include "spgemm_small.cuh"
#include "warp.cuh"

/* SMALL_ROWS: rows a warp, whose short ones are sorted together; AHEAD: rows of B that are on their way. */
enum { SMALL_THREADS = 256, SMALL_WARPS = SMALL_THREADS / 32, SMALL_ROWS = 8, BLOCK_ROWS = SMALL_WARPS * SMALL_ROWS,
       SCAN_THREADS = 1024, AHEAD = 8, SUMS = 2048 };
/* The largest operands. Beyond, rows keep the device busy, and warps do the same in fewer instructions: a uniform matrix
 * of 256,000 entries takes 0.40 ms here and 0.13 there. Rows of FULL_ROW elements and more on average may have more of
 * them, as they have the products to fill a block. */
enum { MOST_COLUMNS = 16384, MOST_ROWS = 32768, MOST_ELEMENTS = 40960, MOST_OF_FULL = 98304, FULL_ROW = 24,
       WORDS = MOST_COLUMNS / 32 };
static_assert(WORDS == 2 * SMALL_THREADS, "a thread has two words");

/* All that is counted on the device. */
struct small_totals {
    unsigned long long products;
    long long entries;
    unsigned shorts, others;   /* rows of C that are not empty */
    unsigned counted, summed;  /* of the others, begun beyond the first of each block */
};

template <typename V> struct small_job {
    row_product<V> product;
    int64_t rows;
    small_totals *totals;
    int32_t *lengths;
    int32_t *list;  /* rows that are not short */
    uint8_t *notes; /* products of short rows, or OTHER, which is more */
    int64_t *offsets;
    int32_t *c_cols;
    V *c_values;
};
enum { OTHER = 255 };

/* ---- short rows ------------------------------------------------------------------------------------------ */

/* The products of SMALL_ROWS rows from `base` on; begins[i]: where the elements of row base + i begin. */
static __device__ __forceinline__ void count_products(const int64_t *b_offsets, const int32_t *a_cols,
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
    count_products(job.product.b.offsets, job.product.a.cols, begins[warp], products[warp]);
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
    const unsigned all = warp_add(count);
    unsigned first = 0;
    if (lane == 0) {
        if (others) first = atomicAdd(&job.totals->others, (unsigned)__popc(others));
        if (shorts) atomicAdd(&job.totals->shorts, (unsigned)__popc(shorts));
        if (all) atomicAdd(&job.totals->products, (unsigned long long)all);
    }
    first = __shfl_sync(FULL_WARP, first, 0);
    if (others >> lane & 1) job.list[first + __popc(others & lanes_below())] = (int32_t)row;
    const int length = take_packs<uint32_t, false, true>(job.product, base, own, packs[warp], 0, (int32_t *)nullptr,
                                                         (V *)nullptr, {});
    if (own.small) job.lengths[row] = length;
}

/* ---- rows by blocks -------------------------------------------------------------------------------------- */

/* A row of B that is not empty, and the element of A that it is multiplied by. */
struct alignas(16) factor_row {
    double weight;
    uint32_t start;
    int32_t length;
};

struct block_memory {
    factor_row factor[SMALL_THREADS + 2 * AHEAD]; /* those beyond are read, not used */
    uint2 words[WORDS]; /* a bit for each of 32 columns (x), and how many come before them (y) */
    uint64_t scratch[SMALL_WARPS];
    unsigned next;
};

/* The factors of up to SMALL_THREADS elements of A from `first` on; returns their number. Ends with a barrier. */
template <typename V>
static __device__ __forceinline__ int load_factors(const row_product<V> &product, int64_t first, int64_t last,
                                                   bool sum, block_memory &memory)
{
    factor_row own = {};
    int count;
    const int64_t at = first + threadIdx.x;
    if (at < last) {
        const int32_t k = __ldg(product.a.cols + at);
        if (sum) own.weight = (double)__ldg(product.a.values + at);
        const int64_t start = __ldg(product.b.offsets + k);
        own.start = (uint32_t)start;
        own.length = (int32_t)(__ldg(product.b.offsets + k + 1) - start);
    }
    const int place = block_scan<SMALL_THREADS>(own.length > 0, &count, memory.scratch);
    if (own.length > 0) memory.factor[place] = own;
    __syncthreads();
    return count;
}

/* Sets the bits of the columns of `count` rows of B: a warp takes one of few, eight lanes one of many. */
static __device__ __forceinline__ void mark_columns(const int32_t *cols, int count, block_memory &memory)
{
    const int lanes = count <= 2 * SMALL_WARPS ? 32 : 8, own = threadIdx.x & (lanes - 1);
    for (int k = (int)threadIdx.x / lanes; k < count; k += SMALL_THREADS / lanes) {
        const uint32_t start = memory.factor[k].start;
        const int length = memory.factor[k].length;
        for (int i = own; i < length; i += 4 * lanes) {
            int32_t col[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int at = i + u * lanes;
                col[u] = at < length ? __ldg(cols + start + (uint32_t)at) : EMPTY;
            }
#pragma unroll
            for (int u = 0; u < 4; u++) {
                if (col[u] == EMPTY) continue;
                uint32_t *word = &memory.words[col[u] / 32].x;
                const uint32_t bit = 1u << col[u] % 32;
                if (!(*(volatile uint32_t *)word & bit)) atomicOr(word, bit);
            }
        }
    }
}

/* The bits of a row of C. Returns the factors that are loaded: all of the row's if it has no more than SMALL_THREADS
 * elements. Ends with a barrier. */
template <typename V>
static __device__ __forceinline__ int find_columns(const row_product<V> &product, int64_t row, bool sum,
                                                   block_memory &memory)
{
    const int64_t last = product.a.offsets[row + 1];
    int count = 0;
    memory.words[threadIdx.x].x = memory.words[SMALL_THREADS + threadIdx.x].x = 0;
    for (int64_t first = product.a.offsets[row]; first < last; first += SMALL_THREADS) {
        count = load_factors(product, first, last, sum, memory); /* with barriers, which clearing needs, too */
        mark_columns(product.b.cols, count, memory);
        __syncthreads();
    }
    return count;
}

/* The number of the next row to take, fetched at the beginning of the row that is done now. */
static __device__ __forceinline__ void fetch_next(unsigned *taken, block_memory &memory)
{
    if (threadIdx.x == 0) memory.next = gridDim.x + atomicAdd(taken, 1u);
}

template <typename V> static __global__ void __launch_bounds__(SMALL_THREADS) count_others(small_job<V> job)
{
    __shared__ block_memory memory;
    const unsigned rows = job.totals->others;
    for (unsigned at = blockIdx.x; at < rows; at = memory.next) {
        const int32_t row = job.list[at];
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
    place_rows(int64_t rows, const int32_t *lengths, int64_t *offsets, small_totals *totals)
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

struct sum_memory {
    block_memory block;
    double sums[SUMS];
};

/* Ranks of the row's columns, which are written from `to` on. Ends with a barrier. */
static __device__ __forceinline__ void rank_bits(int32_t *to, block_memory &memory)
{
    uint2 *own = memory.words + 2 * threadIdx.x;
    int total;
    int rank = block_scan<SMALL_THREADS>(__popc(own[0].x) + __popc(own[1].x), &total, memory.scratch);
#pragma unroll
    for (int w = 0; w < 2; w++) {
        own[w].y = (uint32_t)rank;
        for (uint32_t left = own[w].x; left; left &= left - 1)
            to[rank++] = (int32_t)(2 * threadIdx.x + w) * 32 + __ffs((int)left) - 1;
    }
    __syncthreads();
}

/* Entries of AHEAD rows of B, one a thread. */
template <typename V> struct loaded_entries {
    int32_t col[AHEAD]; /* EMPTY: none */
    V value[AHEAD];

    __device__ __forceinline__ void load(const row_product<V> &product, const factor_row *factors, int count)
    {
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            col[u] = EMPTY;
            value[u] = 0; /* what was there would be waited for */
            const factor_row factor = factors[u];
            if (u >= count || (int)threadIdx.x >= factor.length) continue;
            col[u] = __ldg(product.b.cols + factor.start + threadIdx.x);
            value[u] = __ldg(product.b.values + factor.start + threadIdx.x);
        }
    }
};

/* The place of a column's sum; SUMS or more where it is not among those at hand. */
static __device__ __forceinline__ uint32_t slot_of(int32_t col, uint32_t low, const block_memory &memory)
{
    if (col == EMPTY) return SUMS;
    const uint2 word = memory.words[col / 32];
    return word.y + __popc(word.x & ((1u << col % 32) - 1)) - low;
}

/* Adds the products of `count` rows of B to the sums of ranks [low, low + SUMS), a row between two barriers. */
template <typename V>
static __device__ __forceinline__ void add_factors(const row_product<V> &product, int count, uint32_t low,
                                                   sum_memory &memory)
{
    const factor_row *factors = memory.block.factor;
    loaded_entries<V> next;
    auto add = [&](uint32_t slot, double weight, V value) {
        if (slot < SUMS) memory.sums[slot] = __dadd_rn(memory.sums[slot], __dmul_rn(weight, (double)value));
    };
    next.load(product, factors, count);
    for (int base = 0; base < count; base += AHEAD) {
        const loaded_entries<V> now = next;
        uint32_t slot[AHEAD];
        next.load(product, factors + base + AHEAD, count - base - AHEAD);
#pragma unroll
        for (int u = 0; u < AHEAD; u++) slot[u] = slot_of(now.col[u], low, memory.block);
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (base + u >= count) continue;
            const factor_row factor = factors[base + u];
            add(slot[u], factor.weight, now.value[u]);
            for (int at = SMALL_THREADS + (int)threadIdx.x; at < factor.length; at += SMALL_THREADS)
                add(slot_of(__ldg(product.b.cols + factor.start + (uint32_t)at), low, memory.block), factor.weight,
                    __ldg(product.b.values + factor.start + (uint32_t)at));
            __syncthreads();
        }
    }
}

template <typename V>
static __device__ __forceinline__ void sum_row(const small_job<V> &job, int32_t row, sum_memory &memory)
{
    const int64_t to = job.offsets[row], begin = job.product.a.offsets[row], last = job.product.a.offsets[row + 1];
    const int length = (int)(job.offsets[row + 1] - to);
    int count = find_columns(job.product, row, true, memory.block);
    rank_bits(job.c_cols + to, memory.block);
    for (int low = 0; low < length; low += SUMS) {
        const int sums = min(length - low, (int)SUMS);
        for (int i = threadIdx.x; i < sums; i += SMALL_THREADS) memory.sums[i] = no_sum<true>();
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
        const unsigned rows = job.totals->others;
        for (unsigned at = blockIdx.x; at < rows; at = memory.others.block.next) {
            const int32_t row = job.list[at];
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
    take_packs<uint32_t, true, true>(job.product, base, own, memory.packs[warp], to, job.c_cols, job.c_values, {});
}

/* ---- host ------------------------------------------------------------------------------------------------ */

bool cuda_is_small(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    const int64_t most = a->nnz >= FULL_ROW * a->rows ? MOST_OF_FULL : MOST_ELEMENTS;
    return options->algorithm == SP_SPGEMM_AUTO && options->semiring == SP_PLUS_TIMES && !options->mask &&
           a->values && b->values && a->rows > 0 && a->rows <= MOST_ROWS && b->cols <= MOST_COLUMNS && a->nnz <= most &&
           b->nnz <= INT32_MAX;
}

static void name_rows(const small_totals *totals, sp_spgemm_info *info)
{
    const struct {
        const char *name;
        unsigned count;
    } groups[] = {{"small", totals->shorts}, {"block", totals->others}};
    info->groups = 0;
    for (int i = 0; i < 2; i++) {
        if (groups[i].count == 0) continue;
        sp_spgemm_group *group = &info->group[info->groups++];
        snprintf(group->name, sizeof group->name, "%s", groups[i].name);
        group->count = groups[i].count;
    }
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V>
static sp_status form_small(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    const double start = sp_seconds();
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<char> room;
    small_totals totals;
    small_job<V> job = {};
    size_t before;
    int blocks;
    const unsigned packs = (unsigned)((a->rows + BLOCK_ROWS - 1) / BLOCK_ROWS);
    TRY(cuda_watch_peak(context, &before));
    TRY(cuda_allocate(context, ((size_t)a->rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    TRY(room.allocate(context, (int64_t)sizeof totals + a->rows * 9));
    TRY(room.fill(0, (int64_t)sizeof totals));
    job.product = {view_of<V>(a), view_of<V>(b), b->cols, SP_PLUS_TIMES, NULL, NULL, false, {}};
    job.rows = a->rows;
    job.totals = (small_totals *)room.data;
    job.lengths = (int32_t *)(job.totals + 1);
    job.list = job.lengths + a->rows;
    job.notes = (uint8_t *)(job.list + a->rows);
    job.offsets = c->row_offsets;
    count_short<V><<<packs, SMALL_THREADS, 0, stream>>>(job);
    TRY(cuda_full_grid(context, count_others<V>, SMALL_THREADS, 0, &blocks));
    count_others<V><<<(unsigned)(a->rows < blocks ? a->rows : blocks), SMALL_THREADS, 0, stream>>>(job);
    place_rows<<<1, SCAN_THREADS, 0, stream>>>(a->rows, job.lengths, job.offsets, job.totals);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaMemcpyAsync(&totals, job.totals, sizeof totals, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    const double counted = sp_seconds();
    info->products = (int64_t)totals.products;
    info->product_nnz = info->nnz = c->nnz = totals.entries;
    TRY(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    TRY(cuda_allocate(context, (size_t)c->nnz * sizeof(V), &c->values));
    job.c_cols = c->col_indices;
    job.c_values = (V *)c->values;
    TRY(cuda_full_grid(context, sum_small<V>, SMALL_THREADS, 0, &blocks));
    if ((unsigned)blocks > totals.others) blocks = (int)totals.others;
    if (c->nnz > 0)
        sum_small<V><<<(unsigned)blocks + (totals.shorts > 0 ? packs : 0), SMALL_THREADS, 0, stream>>>(
            job, (unsigned)blocks);
    CUDA_TRY(cudaGetLastError());
    TRY(cuda_finish(context));
    name_rows(&totals, info);
    info->batches = 1;
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (a->rows + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->symbolic_seconds = counted - start;
    info->numeric_seconds = sp_seconds() - counted;
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
