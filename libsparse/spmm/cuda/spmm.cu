/* Y = alpha · reduce(A · X) + beta · Y on a CUDA device: plans, the choice of the algorithm, the call of its kernels.
 *
 * No algorithm adds to Y with floating-point atomics, so every result has the same bits in every run, and the
 * deterministic option costs nothing.
 */
#include <new>

#include "spmm/cuda/panels.cuh"
#include "spmm/cuda/shape.cuh"

/* ---- what a matrix looks like ---------------------------------------------------------------------------- */

struct row_lengths {
    unsigned long long longest; /* entries */
    unsigned long long near;    /* rows whose middle entry is near the diagonal */
    unsigned long long filled;  /* rows with entries */
};

/* Near: within a 32nd of the matrix, where one column in 16 would be by chance. */
static __global__ void __launch_bounds__(256)
    measure_rows(int64_t rows, int64_t cols, const int64_t *offsets, const int32_t *col_indices, row_lengths *lengths)
{
    const int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int64_t begin = row < rows ? offsets[row] : 0, end = row < rows ? offsets[row + 1] : 0;
    unsigned long long longest = (unsigned long long)(end - begin);
    bool near = false;
    if (end > begin) {
        const int64_t away = col_indices[(begin + end) / 2] - (int64_t)((double)row * (double)cols / (double)rows);
        near = (away < 0 ? -away : away) * 32 < cols;
    }
    const int nears = __popc(__ballot_sync(FULL_WARP, near)), filled = __popc(__ballot_sync(FULL_WARP, end > begin));
    for (int step = 16; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
    if (threadIdx.x % 32 != 0) return;
    if (longest > lengths->longest) atomicMax(&lengths->longest, longest);
    if (nears) atomicAdd(&lengths->near, (unsigned long long)nears);
    if (filled) atomicAdd(&lengths->filled, (unsigned long long)filled);
}

static sp_status measure(sp_context *context, const sp_csr *a, row_lengths *lengths)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<row_lengths> measured;
    CHECK(measured.allocate(context, 1));
    CHECK(measured.fill(0, 1));
    if (a->rows > 0) {
        measure_rows<<<(unsigned)((a->rows + 255) / 256), 256, 0, stream>>>(a->rows, a->cols, a->row_offsets,
                                                                            a->col_indices, measured.data);
        CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaMemcpyAsync(lengths, measured.data, sizeof *lengths, cudaMemcpyDeviceToHost, stream));
    return cuda_finish(context);
}

/* ---- plans ----------------------------------------------------------------------------------------------- */

static const int MOST_GROUP_ENTRIES = 1024;
/* Entries of the longest row if a warp takes 32 rows: four of them are loaded ahead, the others one by one. */
static const unsigned MOST_SHORT = 16;

/* Ranges of columns pay where tiles of X exceed the cache and rows still have this many entries in each range, half
 * as many where a row of a tile is no more than half a line. Measured with 60 MB of cache, in ms without and with them:
 * 128 MB and 200 entries a row 51.8, 41.4 (3 ranges) and 47.2 (2); 134 MB and 85 17.9, 14.9 (2) and 16.4 (3); 201 MB
 * and 116 3.94, 3.65 (2) and 3.84 (4); 67 MB and 83 7.44, 7.00 (2); 313 MB and 50 3.40, 3.70 (3); and of 64 bytes a
 * row, 157 MB and 50 3.31, 2.77 (3) and 2.77 (6). */
static const int64_t RANGE_ENTRIES = 32;
/* The same where rows are alike and rows of X are half a line. */
static const int64_t ALIKE_ENTRIES = 48;

/* The second-level cache should hold the rows of X of this many communities, at least. */
static const int64_t COMMUNITIES = 8;

/* Bytes of a row of a tile of X in f32. */
static int64_t tile_row(int64_t width) { return (width < TILE_COLUMNS ? width > 0 ? width : 1 : TILE_COLUMNS) * 4; }

/* The ranges of columns whose tiles of X take at most `bytes`. */
static int count_ranges(const sp_csr *a, int64_t width, int64_t bytes)
{
    const int64_t columns = bytes / tile_row(width) > 0 ? bytes / tile_row(width) : 1;
    const int64_t ranges = (a->cols + columns - 1) / columns;
    return (int)(ranges < 1 ? 1 : ranges > SPMM_MOST_RANGES ? SPMM_MOST_RANGES : ranges);
}

static bool alike(const sp_csr *a, const row_lengths &lengths)
{
    return (double)lengths.longest <= 2 * ((double)a->nnz / (double)(a->rows > 0 ? a->rows : 1)) + 16;
}

/* The number of ranges that pays; 1: none does. Rows that are alike pass over the columns at one pace, so that few rows
 * of X are in use at a time: uniform ones of 200 run at 8.7 TB/s with a tile of 64 MB, rows of all lengths at 7.0, and
 * at 8.3 in two ranges. But gathers of half a line are as many requests as the cache answers, and those from its far
 * half count twice: 100 million entries, 32 MB a tile, take 942 us in one range, 897 in two, 894 in three; in ranges of
 * 25 entries a row no less than in one. */
static int choose_ranges(const sp_csr *a, int64_t width, int64_t cache, const row_lengths &lengths)
{
    const bool narrow = 2 * tile_row(width) <= TILE_COLUMNS * 4;
    const int64_t useful = a->rows > 0 ? a->nnz / a->rows / (narrow ? RANGE_ENTRIES / 2 : RANGE_ENTRIES) : 0;
    const int ranges = count_ranges(a, width, cache);
    if (alike(a, lengths) && narrow && a->cols * tile_row(width) > cache / 2) {
        const int64_t fit = count_ranges(a, width, cache / 3);
        const int64_t most = a->rows > 0 ? a->nnz / a->rows / ALIKE_ENTRIES : 0;
        return most < 2 ? 1 : (int)(fit < most ? fit : most);
    }
    if (alike(a, lengths) || a->cols * tile_row(width) < (narrow ? cache * 2 : cache)) return 1;
    return useful < 1 ? 1 : ranges < useful ? ranges : (int)useful;
}

/* Whether most rows have no entries: their part of Y is cleared, and the others are cut into blocks. */
static bool mostly_empty(const sp_csr *a, const row_lengths &lengths)
{
    return !left_out("spmm-empty") && 2 * (int64_t)lengths.filled <= a->rows;
}

/* Whether rows, a lane for every four columns, would leave much of the device idle: 7,734 rows of 121 entries take 54
 * us at 128 columns and 31 in blocks, which are shorter; but 3,000 of 300 at 256 columns 136 us either way. */
static bool few_rows(sp_context *context, const sp_csr *a, int64_t width)
{
    enum { BUSY_WARPS = 16, BUSY_NARROW = 64 }; /* of a multiprocessor; where a row of X is one tile */
    const int64_t warps = width <= 4 * TILE_COLUMNS ? BUSY_NARROW : BUSY_WARPS;
    const int64_t threads = (int64_t)cuda_state_of(context)->processors * warps * 32;
    return !left_out("spmm-few-rows") && a->nnz >= 32 * a->rows && a->rows * ((width + 3) / 4) < threads;
}

/* Whether the longest row ends long before the others do, where rows of X of f32 begin anywhere and are not copied
 * (aligned.cu). Its entries are a chain of loads, 0.25 us each; all together take as long as their rows of X at 5 TB/s.
 * Such rows need narrow loads, for which rows have all threads: 1.3 million entries, 288 in the longest row, 602
 * columns, 951 us in blocks and 673 by rows. */
static bool ends_early(const sp_csr *a, int64_t width, const row_lengths &lengths)
{
    const double chain = 0.25e-6 * (double)lengths.longest, all = (double)a->nnz * (double)width * 4 / 5e12;
    return width % 4 != 0 && a->nnz < 16 * a->rows && 4 * chain < all;
}

/* Rows that are alike need no sorting, unless an entry is little work: uniform rows of 200 at 16 columns take 1.13 ms
 * by rows and 1.08 in blocks. */
static sp_spmm_algorithm choose(sp_context *context, const sp_csr *a, int64_t width, const row_lengths &lengths,
                                int ranges)
{
    const bool narrow = width <= TILE_COLUMNS / 2 && a->nnz >= 32 * a->rows;
    if (ranges > 1) return SP_SPMM_BIDIRECTIONAL;
    const bool even = alike(a, lengths) || ends_early(a, width, lengths);
    const bool by_rows = even && !narrow && !mostly_empty(a, lengths) && !few_rows(context, a, width);
    return by_rows ? SP_SPMM_ROW_SPLIT : SP_SPMM_BLOCK_PARTITION;
}

/* The most entries of a group: a 14,000th of all, so that most of the 16,000 groups that run at a time are not long
 * ones, and that not all rows remain whole. Measured best on graphs of 0.1, 1, 1.6, 2, 18, 111 and 123
 * million entries, 5, 10, 33, 15, 68, 478 and 50 a row: 16, 64, 64, 128, 1024, 1024 and 256. Where neighbouring rows
 * are alike, long ones are cut small, so that few rows, and with them few rows of X, are in flight. */
static int group_size(const sp_csr *a, bool near)
{
    int entries = 16;
    const int most = near ? 64 : MOST_GROUP_ENTRIES;
    while (2 * entries <= most && 2 * entries * (int64_t)14000 <= a->nnz && 2 * entries * a->rows <= 10 * a->nnz)
        entries *= 2;
    return entries;
}

/* Reports to the caller how products are done. */
static void report_choice(const spmm_state *state, sp_spmm_info *info)
{
    const spmm_blocks *parts = state->parts;
    info->algorithm = state->algorithm;
    info->partitions = !parts ? 1 : state->algorithm == SP_SPMM_BIDIRECTIONAL ? parts->ranges : parts->count;
}

static sp_status prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                         spmm_state *state, sp_spmm_info *info)
{
    const bool extreme = spmm_is_extreme(options);
    int cache = 0;
    row_lengths lengths = {};
    CUDA_CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, cuda_state_of(context)->device));
    state->cache = cache;
    CHECK(measure(context, a, &lengths));
    /* If neighbouring rows are alike, few rows of X are in use at a time. Others are brought together, if half of
     * the cache, which is near, does not hold X, or if panels find X in the first-level cache: 105 million entries,
     * 15 MB of X, 854 us without an order, 776 with one and panels, but 928 with one and without them. */
    bool near = (int64_t)lengths.near * 2 > a->rows, small = false;
    const bool by_blocks = options->algorithm == SP_SPMM_AUTO || options->algorithm == SP_SPMM_BLOCK_PARTITION;
    const bool far = a->cols * tile_row(width) > cache / 2;
    device_array<int32_t> order;
    if (by_blocks && !near && !left_out("spmm-order") &&
        (far || (!extreme && cuda_spmm_fills_panels(context, a, (int64_t)lengths.longest, true))))
        CHECK(cuda_spmm_order(context, a, cache / COMMUNITIES / tile_row(width), cuda_spmm_panel_reach(a), &order,
                              &small));
    if (!far && !small) order.free();
    near = near || order.data;
    /* An extreme has one range: over several it would have to keep its argument between launches. */
    int ranges = extreme || near || left_out("spmm-ranges") ? 1 : choose_ranges(a, width, cache, lengths);
    state->algorithm = options->algorithm != SP_SPMM_AUTO ? options->algorithm
                       : order.data                         ? SP_SPMM_BLOCK_PARTITION
                                                            : choose(context, a, width, lengths, ranges);
    state->short_ranges = options->algorithm == SP_SPMM_AUTO && ranges > 1 && !options->partition_bytes &&
                          a->nnz < 2 * RANGE_ENTRIES * ranges * a->rows;
    if (options->partition_bytes && !extreme)
        ranges = count_ranges(a, width, options->partition_bytes < INT64_MAX ? (int64_t)options->partition_bytes
                                                                         : INT64_MAX);
    if (state->algorithm != SP_SPMM_BIDIRECTIONAL) ranges = 1;
    state->short_rows = lengths.longest <= MOST_SHORT && a->nnz <= 4 * a->rows;
    state->info = state->short_ranges ? info : NULL;
    report_choice(state, info);
    if (state->algorithm == SP_SPMM_ROW_SPLIT) return SP_OK;
    CHECK(cuda_spmm_cut(context, a, ranges, (a->cols + ranges - 1) / ranges, group_size(a, near), near, order.data,
                        &state->parts));
    state->parts->mostly_empty = ranges == 1 && mostly_empty(a, lengths);
    if (state->algorithm == SP_SPMM_BLOCK_PARTITION && !extreme && (small || !order.data) && !left_out("spmm-panels"))
        CHECK(cuda_spmm_make_panels(context, a, (int64_t)lengths.longest, order.data, &state->panels));
    report_choice(state, info);
    info->metadata_bytes = state->parts->count * (int64_t)sizeof(int4) +
                           state->parts->places * (int64_t)(2 * sizeof(int32_t) + sizeof(int64_t)) +
                           cuda_spmm_panel_bytes(state->panels);
    return SP_OK;
}

sp_status cuda_spmm_kept_parts(sp_context *context, const sp_csr *a, spmm_state *state, spmm_blocks **parts)
{
    *parts = state->parts;
    if (!state->parts || !state->parts->coarse) return SP_OK;
    if (!state->kept_parts)
        CHECK(cuda_spmm_cut(context, a, 1, a->cols, group_size(a, false), false, NULL, &state->kept_parts));
    *parts = state->kept_parts;
    return SP_OK;
}

sp_status sp_cuda_spmm_prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                               void **state, sp_spmm_info *info)
{
    void *memory = NULL;
    *state = NULL;
    CHECK(sp_calloc(context, 1, sizeof(spmm_state), &memory));
    const sp_status status = prepare(context, a, width, options, (spmm_state *)memory, info);
    if (status == SP_OK) *state = memory;
    else sp_cuda_spmm_forget(context, memory);
    return status;
}

/* Plans hold places of entries, but no values. */
sp_status sp_cuda_spmm_refresh(sp_context *, const sp_csr *, void *) { return SP_OK; }

void sp_cuda_spmm_forget(sp_context *context, void *state)
{
    if (state) {
        cuda_spmm_free_blocks(context, ((spmm_state *)state)->parts);
        cuda_spmm_free_blocks(context, ((spmm_state *)state)->row_parts);
        cuda_spmm_free_blocks(context, ((spmm_state *)state)->kept_parts);
        cuda_spmm_free_panels(context, ((spmm_state *)state)->panels);
        sp_cuda_spmm_forget(context, ((spmm_state *)state)->without_ranges);
        cuda_spmm_free_staging(context, ((spmm_state *)state)->staging_in);
        cuda_spmm_free_staging(context, ((spmm_state *)state)->staging_out);
        ((spmm_state *)state)->aligned.free();
    }
    sp_free(context, state);
}

/* ---- the product ----------------------------------------------------------------------------------------- */

sp_status cuda_spmm_launch(sp_context *context, sp_dense_type type, bool extreme, spmm_state *state,
                           const spmm_shape &shape, const spmm_product &product)
{
    const bool whole = shape.vector * sp_dense_size(type) == 16 && !shape.apart;
    const bool by_numbers = type == SP_DENSE_F32 && !shape.apart;
    if (state->panels && !extreme && whole && type != SP_DENSE_F64)
        return cuda_spmm_panels(context, type, product, state->panels);
    switch (state->algorithm) {
    case SP_SPMM_BLOCK_PARTITION: return cuda_spmm_blocks(context, type, extreme, shape, product, state->parts, 0);
    case SP_SPMM_BIDIRECTIONAL:
        return extreme ? cuda_spmm_blocks(context, type, extreme, shape, product, state->parts, 0)
                       : cuda_spmm_ranges(context, type, shape, product, state->parts);
    default: break;
    }
    if (state->short_rows && !extreme && (whole || by_numbers) && !left_out("spmm-short"))
        return cuda_spmm_short_rows(context, type, shape.vector, product);
    return cuda_spmm_rows(context, type, extreme, shape, product);
}

/* Ranges of columns cost another pass over Y, of f32, and save gathers of X. Where X has 16 bits they need twice the
 * entries to pay: R-MAT 20, 36 a row and range, at 32, 96 and 128 columns 737, 1,810 and 2,290 us by two ranges, 690,
 * 1,760 and 2,190 by one. *plan becomes the one without, which the first such product makes. */
static sp_status choose_plan(sp_context *context, const sp_csr *a, const sp_spmm_options *options, const sp_dense *x,
                             spmm_state **plan)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    sp_spmm_options single = *options;
    sp_spmm_info info, *report = (*plan)->info;
    if (!(*plan)->short_ranges) return SP_OK;
    report_choice(*plan, report);
    if (sp_dense_size(x->type) > 2) return SP_OK;
    CUDA_CHECK(cudaStreamIsCapturing(cuda_state_of(context)->stream, &capture));
    if (!(*plan)->without_ranges && capture == cudaStreamCaptureStatusNone) {
        single.algorithm = SP_SPMM_BLOCK_PARTITION;
        const sp_status status =
            sp_cuda_spmm_prepare(context, a, x->cols, &single, (void **)&(*plan)->without_ranges, &info);
        if (status != SP_OK && status != SP_ERROR_DEVICE_MEMORY) return status;
        if (status == SP_OK) report->metadata_bytes += info.metadata_bytes;
    }
    if (!(*plan)->without_ranges) return SP_OK;
    *plan = (*plan)->without_ranges;
    report_choice(*plan, report);
    return SP_OK;
}

/* Does not wait if X and Y lie on the device: later work on the context's stream does. Waiting would add 10 µs to a
 * product of 20. */
sp_status sp_cuda_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                       double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    spmm_state *plan = (spmm_state *)state;
    spmm_shape shape;
    spmm_product product;
    bool done;
    if (sp_interrupted(context)) return sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    if (a->rows == 0 || x->cols == 0) return SP_OK;
    CHECK(choose_plan(context, a, options, x, &plan));
    if (x->space == SP_HOST || y->space == SP_HOST)
        return cuda_spmm_stream(context, a, options, plan, alpha, x, beta, y, argument);
    CHECK(cuda_spmm_aligned(context, a, options, plan, alpha, x, beta, y, &done));
    if (done) return SP_OK;
    CHECK(cuda_spmm_describe(context, a, options, plan, alpha, x, beta, y, argument, &shape, &product));
    return cuda_spmm_launch(context, x->type, spmm_is_extreme(options), plan, shape, product);
}

/* ---- places of entries ------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(256) count_up(int64_t count, int64_t *to)
{
    const int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (k < count) to[k] = k;
}

static __global__ void __launch_bounds__(256)
    gather_words(const int64_t *index, int64_t count, const void *from, bool narrow, void *to)
{
    const int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int64_t at = index[k];
    if (narrow) ((uint32_t *)to)[k] = ((const uint32_t *)from)[at];
    else ((int64_t *)to)[k] = at < 0 ? -1 : ((const int64_t *)from)[at];
}

sp_status sp_cuda_number(sp_context *context, int64_t count, int64_t *to)
{
    if (count == 0) return SP_OK;
    count_up<<<(unsigned)((count + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(count, to);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

sp_status sp_cuda_gather(sp_context *context, const int64_t *index, int64_t count, const void *from, size_t size,
                         void *to)
{
    if (count == 0) return SP_OK;
    gather_words<<<(unsigned)((count + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(
        index, count, from, size == sizeof(uint32_t), to);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}
