/* Y = alpha · reduce(A · X) + beta · Y on a CUDA device: plans, the choice of the algorithm, shapes of launches.
 *
 * No algorithm adds to Y with floating-point atomics, so that every result has the same bits in every run; the
 * deterministic option costs nothing.
 */
#include <new>
#include <stdlib.h>
#include <stdio.h>

#include "spmm.cuh"

/* ---- what a matrix looks like ---------------------------------------------------------------------------- */

struct row_lengths {
    unsigned long long longest;
};

static __global__ void __launch_bounds__(256) measure_rows(int64_t rows, const int64_t *offsets, row_lengths *lengths)
{
    const int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x;
    unsigned long long longest = row < rows ? (unsigned long long)(offsets[row + 1] - offsets[row]) : 0;
    for (int step = 16; step > 0; step /= 2) longest = max(longest, __shfl_xor_sync(FULL_WARP, longest, step));
    if (threadIdx.x % 32 == 0 && longest > lengths->longest) atomicMax(&lengths->longest, longest);
}

static sp_status measure(sp_context *context, const sp_csr *a, int64_t *longest)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<row_lengths> lengths;
    row_lengths host = {};
    TRY(lengths.allocate(context, 1));
    TRY(lengths.fill(0, 1));
    if (a->rows > 0) {
        measure_rows<<<(unsigned)((a->rows + 255) / 256), 256, 0, stream>>>(a->rows, a->row_offsets, lengths.data);
        CUDA_TRY(cudaGetLastError());
    }
    CUDA_TRY(cudaMemcpyAsync(&host, lengths.data, sizeof host, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    *longest = (int64_t)host.longest;
    return SP_OK;
}

/* ---- plans ----------------------------------------------------------------------------------------------- */

/* Columns of a tile of X in f32: 128 bytes, a whole line of the caches. */
static const int64_t TILE_COLUMNS = 32;
static const int MOST_BINS = 256;

static sp_spmm_algorithm choose(const sp_csr *a, int64_t width, int64_t longest, int64_t cache)
{
    const double mean = a->rows > 0 ? (double)a->nnz / (double)a->rows : 0;
    const double tile = (double)a->cols * (double)(width < TILE_COLUMNS ? width : TILE_COLUMNS) * 4;
    if (tile > 2.0 * (double)cache && mean >= 24) return SP_SPMM_BIDIRECTIONAL;
    return (double)longest > 4 * mean + 64 ? SP_SPMM_BLOCK_PARTITION : SP_SPMM_ROW_SPLIT;
}

/* The ranges of columns whose tiles of X, f32, take at most `bytes`. */
static int count_bins(const sp_csr *a, int64_t width, int64_t bytes)
{
    const int64_t row = (width < TILE_COLUMNS ? width > 0 ? width : 1 : TILE_COLUMNS) * 4;
    const int64_t columns = bytes / row > 0 ? bytes / row : 1;
    const int64_t bins = (a->cols + columns - 1) / columns;
    return (int)(bins < 1 ? 1 : bins > MOST_BINS ? MOST_BINS : bins);
}

/* Most entries of a group: few enough for eight groups to take turns in each place of the device, so that none is long
 * alone; not fewer than pay for what a group costs beside its entries. */
static int group_size(sp_context *context, const sp_csr *a, int64_t width)
{
    const int64_t lanes = width <= 16 ? 4 : width <= 96 ? 8 : 32;
    const int64_t places = (int64_t)cuda_state_of(context)->processors * 768 / lanes;
    int entries = 32;
    while (entries < 512 && a->nnz > 8 * 2 * entries * places) entries *= 2;
    return entries;
}

static sp_status prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                         spmm_state *state, sp_spmm_info *info)
{
    const bool extreme = options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
    int cache = 0;
    int64_t longest = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, cuda_state_of(context)->device));
    state->cache = cache;
    state->algorithm = options->algorithm;
    if (options->algorithm == SP_SPMM_AUTO) {
        TRY(measure(context, a, &longest));
        state->algorithm = choose(a, width, longest, cache);
        if (extreme && state->algorithm == SP_SPMM_BIDIRECTIONAL) state->algorithm = SP_SPMM_BLOCK_PARTITION;
    }
    info->algorithm = state->algorithm;
    info->partitions = 1;
    if (state->algorithm == SP_SPMM_ROW_SPLIT) return SP_OK;
    /* An extreme over ranges would have to keep its argument between launches: it has one range. */
    const int64_t bytes = options->partition_bytes ? (int64_t)options->partition_bytes : cache / 6 * 5;
    const int bins = state->algorithm == SP_SPMM_BIDIRECTIONAL && !extreme ? count_bins(a, width, bytes) : 1;
    int group_entries = group_size(context, a, width);
    if (getenv("KNOB_GROUP")) group_entries = atoi(getenv("KNOB_GROUP"));
    TRY(cuda_spmm_cut(context, a, bins, (a->cols + bins - 1) / bins, group_entries, &state->parts));
    info->partitions = state->algorithm == SP_SPMM_BIDIRECTIONAL ? bins : state->parts->count;
    info->metadata_bytes = state->parts->count * (int64_t)sizeof(int4) +
                           state->parts->places * (int64_t)(sizeof(int32_t) + sizeof(int64_t));
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
    if (state) cuda_spmm_free_blocks(context, ((spmm_state *)state)->parts);
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

/* Lanes and repeats with the fewest idle lanes, of these the widest, at most `most` columns. */
static spmm_shape choose_shape(const sp_dense *x, const sp_dense *y, bool extreme, bool deep, int64_t most)
{
    static const int deep_shapes[][2] = {{32, 3}, {32, 2}, {32, 1}, {8, 3}, {16, 1}, {8, 1}, {4, 1}};
    static const int shallow_shapes[][2] = {{8, 4}, {8, 3}, {8, 2}, {8, 1}, {4, 1}};
    const int whole = (int)(16 / size_of(x->type));
    int vector = 1;
    if (fits(x, whole) && fits(y, whole)) vector = whole;
    else if (x->type == SP_DENSE_F32 && fits(x, 2) && fits(y, 2)) vector = 2;
    if (vector != whole || extreme) deep = true;
    const int64_t packets = x->cols / vector;
    const int count = deep ? sizeof deep_shapes / sizeof *deep_shapes : sizeof shallow_shapes / sizeof *shallow_shapes;
    spmm_shape best = {vector, 8, 1, deep};
    int64_t best_slots = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int lanes = (deep ? deep_shapes : shallow_shapes)[i][0];
        const int repeats = (deep ? deep_shapes : shallow_shapes)[i][1], span = lanes * repeats;
        if (vector != whole && (lanes == 4 || lanes == 16)) continue;
        if ((vector != whole || x->type != SP_DENSE_F32) && repeats > 2) continue;
        if (repeats > 1 && extreme) continue;
        if (span * vector > most && span > 8) continue;
        const int64_t slots = (packets + span - 1) / span * span;
        if (slots >= best_slots) continue;
        best_slots = slots;
        best = {vector, lanes, repeats, deep};
    }
    if (getenv("KNOB_SHAPE")) { sscanf(getenv("KNOB_SHAPE"), "%d,%d", &best.lanes, &best.repeats); }
    return best;
}

/* ---- the product ----------------------------------------------------------------------------------------- */

static sp_status multiply(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *state,
                          double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    const bool extreme = options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
    const int64_t row_bytes = x->stride * (int64_t)size_of(x->type);
    if (a->rows == 0 || x->cols == 0) return SP_OK;
    if (row_bytes > UINT32_MAX || x->cols > INT32_MAX / 2)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "rows of X of %lld columns, %lld bytes apart",
                       (long long)x->cols, (long long)row_bytes);
    int64_t most = state->algorithm == SP_SPMM_BIDIRECTIONAL ? TILE_COLUMNS : INT32_MAX;
    if (getenv("KNOB_TILE")) most = atoi(getenv("KNOB_TILE"));
    bool deep = a->nnz > 24 * a->rows;
    if (getenv("KNOB_DEEP")) deep = atoi(getenv("KNOB_DEEP"));
    const spmm_shape shape = choose_shape(x, y, extreme, deep, most);
    spmm_product product = {};
    product.offsets = a->row_offsets;
    product.cols = a->col_indices;
    product.values = a->values;
    product.rows = a->rows;
    product.nnz = a->nnz;
    product.x = x->values;
    product.y = y->values;
    product.argument = argument;
    product.y_stride = y->stride;
    product.x_bytes = (uint32_t)row_bytes;
    product.width = (int32_t)x->cols;
    product.tiles = (int32_t)((x->cols + shape.columns() - 1) / shape.columns());
    product.alpha = alpha;
    product.beta = beta;
    product.mean = options->reduce == SP_REDUCE_MEAN;
    product.minimum = options->reduce == SP_REDUCE_MIN;
    product.y_narrow = size_of(y->type) == 2;
    if (product.tiles > 65535)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "X has %lld columns", (long long)x->cols);
    switch (state->algorithm) {
    case SP_SPMM_BLOCK_PARTITION: return cuda_spmm_blocks(context, x->type, extreme, shape, product, state->parts, 0);
    case SP_SPMM_BIDIRECTIONAL:
        return extreme ? cuda_spmm_blocks(context, x->type, extreme, shape, product, state->parts, 0)
                       : cuda_spmm_bins(context, x->type, shape, product, state->parts);
    default: return cuda_spmm_rows(context, x->type, extreme, shape, product);
    }
}

sp_status cuda_spmm_launch(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                           double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    return multiply(context, a, options, (spmm_state *)state, alpha, x, beta, y, argument);
}

sp_status sp_cuda_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state, double alpha,
                       const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    TRY(multiply(context, a, options, (spmm_state *)state, alpha, x, beta, y, argument));
    return cuda_finish(context);
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
