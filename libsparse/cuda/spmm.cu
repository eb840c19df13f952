/* Y = alpha · reduce(A · X) + beta · Y on a CUDA device: plans, the choice of the algorithm, shapes of launches.
 *
 * No algorithm adds to Y with floating-point atomics, so that every result has the same bits in every run; the
 * deterministic option costs nothing.
 */
#include <new>

#include "spmm_panels.cuh"
#include "spmm_stream.cuh"

/* ---- what a matrix looks like ---------------------------------------------------------------------------- */

struct row_lengths {
    unsigned long long longest; /* entries */
    unsigned long long near;    /* rows whose middle entry is near the diagonal */
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
    const int nears = __popc(__ballot_sync(FULL_WARP, near));
    for (int step = 16; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
    if (threadIdx.x % 32 != 0) return;
    if (longest > lengths->longest) atomicMax(&lengths->longest, longest);
    if (nears) atomicAdd(&lengths->near, (unsigned long long)nears);
}

static sp_status measure(sp_context *context, const sp_csr *a, row_lengths *lengths)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<row_lengths> measured;
    TRY(measured.allocate(context, 1));
    TRY(measured.fill(0, 1));
    if (a->rows > 0) {
        measure_rows<<<(unsigned)((a->rows + 255) / 256), 256, 0, stream>>>(a->rows, a->cols, a->row_offsets,
                                                                            a->col_indices, measured.data);
        CUDA_TRY(cudaGetLastError());
    }
    CUDA_TRY(cudaMemcpyAsync(lengths, measured.data, sizeof *lengths, cudaMemcpyDeviceToHost, stream));
    return cuda_finish(context);
}

/* ---- plans ----------------------------------------------------------------------------------------------- */

/* Columns of the narrowest tile of X, 128 bytes in f32: a whole line of the caches. */
static const int64_t TILE_COLUMNS = 32;
static const int MOST_BINS = 256, MOST_GROUP_ENTRIES = 1024;
/* Entries of the longest row where rows are taken by 32: four of them are fetched ahead, the others one by one. */
static const unsigned MOST_SHORT = 16;

/* Rows that are alike need no sorting. Ranges of columns were never ahead on the device that this was measured on,
 * with 60 MB of second-level cache: 3.6 to 4.5 ms against 3.5 where tiles of X take 313 MB and rows have 50. */
static sp_spmm_algorithm choose(const sp_csr *a, const row_lengths &lengths)
{
    const double mean = a->rows > 0 ? (double)a->nnz / (double)a->rows : 0;
    return (double)lengths.longest > 2 * mean + 16 ? SP_SPMM_BLOCK_PARTITION : SP_SPMM_ROW_SPLIT;
}

/* The ranges of columns whose tiles of X, f32, take at most `bytes`. */
static int count_bins(const sp_csr *a, int64_t width, int64_t bytes)
{
    const int64_t row = (width < TILE_COLUMNS ? width > 0 ? width : 1 : TILE_COLUMNS) * 4;
    const int64_t columns = bytes / row > 0 ? bytes / row : 1;
    const int64_t bins = (a->cols + columns - 1) / columns;
    return (int)(bins < 1 ? 1 : bins > MOST_BINS ? MOST_BINS : bins);
}

/* Most entries of a group. A 15,000th of all, so that those that run at a time, some 16,000, are many more than those
 * that are long, but not so many that all rows go whole. Measured best on graphs of 1, 2, 18, 111 and 123 million
 * entries, 10, 15, 68, 478 and 50 a row: 64, 128, 1024, 1024 and 256. Where neighbouring rows are alike, long ones
 * are cut small, so that few rows, and with them few rows of X, are in flight. */
static int group_size(const sp_csr *a, bool near)
{
    int entries = 32;
    const int most = near ? 64 : MOST_GROUP_ENTRIES;
    while (2 * entries <= most && 2 * entries * (int64_t)11000 <= a->nnz && 2 * entries * a->rows <= 10 * a->nnz)
        entries *= 2;
    return entries;
}

static sp_status prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                         spmm_state *state, sp_spmm_info *info)
{
    const bool extreme = options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
    int cache = 0;
    row_lengths lengths = {};
    CUDA_TRY(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, cuda_state_of(context)->device));
    state->cache = cache;
    TRY(measure(context, a, &lengths));
    state->algorithm = options->algorithm == SP_SPMM_AUTO ? choose(a, lengths) : options->algorithm;
    state->short_rows = lengths.longest <= MOST_SHORT && a->nnz <= 4 * a->rows;
    info->algorithm = state->algorithm;
    info->partitions = 1;
    if (state->algorithm == SP_SPMM_ROW_SPLIT) return SP_OK;
    /* An extreme over ranges would have to keep its argument between launches: it has one range. */
    const int64_t bytes = options->partition_bytes ? (int64_t)options->partition_bytes : 2 * (int64_t)cache;
    const int bins = state->algorithm == SP_SPMM_BIDIRECTIONAL && !extreme ? count_bins(a, width, bytes) : 1;
    const bool near = (int64_t)lengths.near * 2 > a->rows;
    TRY(cuda_spmm_cut(context, a, bins, (a->cols + bins - 1) / bins, group_size(a, near), near, &state->parts));
    if (state->algorithm == SP_SPMM_BLOCK_PARTITION && !extreme)
        TRY(cuda_spmm_make_panels(context, a, (int64_t)lengths.longest, &state->panels));
    info->partitions = state->algorithm == SP_SPMM_BIDIRECTIONAL ? bins : state->parts->count;
    info->metadata_bytes = state->parts->count * (int64_t)sizeof(int4) +
                           state->parts->places * (int64_t)(2 * sizeof(int32_t) + sizeof(int64_t)) +
                           cuda_spmm_panel_bytes(state->panels);
    return SP_OK;
}

sp_status sp_cuda_spmm_prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                               void **state, sp_spmm_info *info)
{
    void *memory = NULL;
    *state = NULL;
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    TRY(sp_calloc(context, 1, sizeof(spmm_state), &memory));
    const sp_status status = prepare(context, a, width, options, (spmm_state *)memory, info);
    if (status == SP_OK) *state = memory;
    else sp_cuda_spmm_forget(context, memory);
    return status;
}

/* Plans hold places of entries, no values. */
sp_status sp_cuda_spmm_refresh(sp_context *, const sp_csr *, void *) { return SP_OK; }

void sp_cuda_spmm_forget(sp_context *context, void *state)
{
    if (state) {
        cuda_spmm_free_blocks(context, ((spmm_state *)state)->parts);
        cuda_spmm_free_blocks(context, ((spmm_state *)state)->row_parts);
        cuda_spmm_free_panels(context, ((spmm_state *)state)->panels);
    }
    sp_free(context, state);
}

/* ---- shapes ---------------------------------------------------------------------------------------------- */

static size_t size_of(sp_dense_type type)
{
    return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2;
}

/* Whether packets of so many numbers are aligned in every row. */
static bool fits(const sp_dense *matrix, int64_t numbers)
{
    const size_t bytes = (size_t)numbers * size_of(matrix->type), most = bytes < 16 ? bytes : 16;
    return matrix->cols % numbers == 0 && matrix->stride * (int64_t)size_of(matrix->type) % (int64_t)most == 0 &&
           (uintptr_t)matrix->values % most == 0;
}

/* Lanes and repeats with the least to do, for at most `most` columns: packets, idle ones too, and for each tile what
 * its entries of A cost, some 8 packets of X. Rows of few entries are taken 8 a warp rather than 4. */
static spmm_shape choose_shape(const sp_dense *x, const sp_dense *y, bool extreme, bool few, int64_t most)
{
    static const int whole_shapes[][2] = {{4, 1}, {4, 2}, {8, 1}, {8, 2}, {8, 3}, {8, 4}};
    static const int narrow_shapes[][2] = {{8, 1}, {32, 1}, {32, 2}};
    const int packet = (int)(16 / size_of(x->type));
    const bool whole = fits(x, packet) && fits(y, packet), single = x->type == SP_DENSE_F32;
    const int vector = whole ? packet : single && fits(x, 2) && fits(y, 2) ? 2 : 1;
    const int count = (int)(whole ? sizeof whole_shapes : sizeof narrow_shapes) / (int)sizeof *whole_shapes;
    const int64_t packets = x->cols / vector;
    spmm_shape best = {vector, 8, 1};
    int64_t best_cost = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int lanes = (whole ? whole_shapes : narrow_shapes)[i][0];
        const int repeats = (whole ? whole_shapes : narrow_shapes)[i][1], span = lanes * repeats;
        if ((repeats > 1 && extreme) || (repeats > 2 && !single)) continue;
        if ((span * vector > most && span > 8) || (lanes == 4 && repeats == 2 && !few)) continue;
        const int64_t tiles = (packets + span - 1) / span, cost = tiles * (span + 8);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = {vector, lanes, repeats};
    }
    return best;
}

/* ---- the product ----------------------------------------------------------------------------------------- */

static bool is_extreme(const sp_spmm_options *options)
{
    return options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
}

sp_status cuda_spmm_describe(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                             const spmm_state *state, double alpha, const sp_dense *x, double beta, const sp_dense *y,
                             int64_t *argument, spmm_shape *shape, spmm_product *product)
{
    const int64_t row_bytes = x->stride * (int64_t)size_of(x->type);
    if (row_bytes > UINT32_MAX || x->cols > INT32_MAX / 2)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "rows of X of %lld columns, %lld bytes apart",
                       (long long)x->cols, (long long)row_bytes);
    /* Tiles of X that the second-level cache holds, if lines of it are narrow enough. */
    int64_t most = 128;
    while (most > TILE_COLUMNS && a->cols * most * (int64_t)size_of(x->type) > state->cache / 10 * 11) most /= 2;
    if (state->algorithm == SP_SPMM_BIDIRECTIONAL) most = TILE_COLUMNS;
    const int64_t places = state->parts ? state->parts->places : a->rows;
    *shape = choose_shape(x, y, is_extreme(options), a->nnz < 8 * places, most);
    *product = {};
    product->offsets = a->row_offsets;
    product->cols = a->col_indices;
    product->values = a->values;
    product->rows = a->rows;
    product->nnz = a->nnz;
    product->x = x->values;
    product->y = y->values;
    product->argument = argument;
    product->y_stride = y->stride;
    product->x_bytes = (uint32_t)row_bytes;
    product->width = (int32_t)x->cols;
    product->tiles = (int32_t)((x->cols + shape->columns() - 1) / shape->columns());
    product->alpha = alpha;
    product->beta = beta;
    product->mean = options->reduce == SP_REDUCE_MEAN;
    product->minimum = options->reduce == SP_REDUCE_MIN;
    product->y_narrow = size_of(y->type) == 2;
    if (product->tiles > 65535)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "X has %lld columns", (long long)x->cols);
    return SP_OK;
}

sp_status cuda_spmm_launch(sp_context *context, sp_dense_type type, bool extreme, spmm_state *state,
                           const spmm_shape &shape, const spmm_product &product)
{
    const bool whole = shape.vector * size_of(type) == 16;
    /* Half a line of the caches and less is for groups of fewer lanes. */
    if (state->panels && !extreme && whole && type != SP_DENSE_F64 && shape.lanes * shape.repeats > 4)
        return cuda_spmm_panels(context, type, product, state->panels);
    switch (state->algorithm) {
    case SP_SPMM_BLOCK_PARTITION: return cuda_spmm_blocks(context, type, extreme, shape, product, state->parts, 0);
    case SP_SPMM_BIDIRECTIONAL:
        return extreme ? cuda_spmm_blocks(context, type, extreme, shape, product, state->parts, 0)
                       : cuda_spmm_bins(context, type, shape, product, state->parts);
    default: break;
    }
    if (state->short_rows && !extreme && whole) return cuda_spmm_short_rows(context, type, product);
    return cuda_spmm_rows(context, type, extreme, shape, product);
}

/* Does not wait where X and Y lie on the device: what follows on the context's stream does, and a product of 20 µs is
 * not held up for 10 more. */
sp_status sp_cuda_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                       double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    spmm_state *const plan = (spmm_state *)state;
    spmm_shape shape;
    spmm_product product;
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    if (sp_interrupted(context)) return sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    if (a->rows == 0 || x->cols == 0) return SP_OK;
    if (x->space == SP_HOST || y->space == SP_HOST)
        return cuda_spmm_stream(context, a, options, plan, alpha, x, beta, y, argument);
    TRY(cuda_spmm_describe(context, a, options, plan, alpha, x, beta, y, argument, &shape, &product));
    return cuda_spmm_launch(context, x->type, is_extreme(options), plan, shape, product);
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
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    if (count == 0) return SP_OK;
    count_up<<<(unsigned)((count + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(count, to);
    CUDA_TRY(cudaGetLastError());
    return cuda_finish(context);
}

sp_status sp_cuda_gather(sp_context *context, const int64_t *index, int64_t count, const void *from, size_t size,
                         void *to)
{
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    if (count == 0) return SP_OK;
    gather_words<<<(unsigned)((count + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(
        index, count, from, size == sizeof(uint32_t), to);
    CUDA_TRY(cudaGetLastError());
    return cuda_finish(context);
}
