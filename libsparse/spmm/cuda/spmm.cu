/* Y = alpha · reduce(A · X) + beta · Y on a CUDA device: plans, the choice of the algorithm, shapes of launches.
 *
 * No algorithm adds to Y with floating-point atomics, so that every result has the same bits in every run; the
 * deterministic option costs nothing.
 */
#include <new>

#include "spmm/cuda/order.cuh"
#include "spmm/cuda/panels.cuh"
#include "spmm/cuda/stream.cuh"

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

/* Columns of the narrowest tile of X, 128 bytes in f32: a whole line of the caches. */
static const int64_t TILE_COLUMNS = 32;
static const int MOST_BINS = 256, MOST_GROUP_ENTRIES = 1024;
/* Entries of the longest row where rows are taken by 32: four of them are fetched ahead, the others one by one. */
static const unsigned MOST_SHORT = 16;

/* Ranges of columns pay where tiles of X exceed the cache and rows still have this many entries in each range, half
 * as many where a row of a tile is no more than half a line. Measured with 60 MB of cache, in ms without and with them:
 * 128 MB and 200 entries a row 51.8, 41.4 (3 ranges) and 47.2 (2); 134 MB and 85 17.9, 14.9 (2) and 16.4 (3); 201 MB
 * and 116 3.94, 3.65 (2) and 3.84 (4); 67 MB and 83 7.44, 7.00 (2); 313 MB and 50 3.40, 3.70 (3); and of 64 bytes a
 * row, 157 MB and 50 3.31, 2.77 (3) and 2.77 (6). */
static const int64_t RANGE_ENTRIES = 32;
/* As many, in rows that are alike, of X of half a line. */
static const int64_t ALIKE_ENTRIES = 48;

/* Communities whose rows of X the second-level cache should hold beside each other, at least. */
static const int64_t COMMUNITIES = 8;

/* Bytes of a row of a tile of X in f32. */
static int64_t tile_row(int64_t width) { return (width < TILE_COLUMNS ? width > 0 ? width : 1 : TILE_COLUMNS) * 4; }

/* The ranges of columns whose tiles of X take at most `bytes`. */
static int count_bins(const sp_csr *a, int64_t width, int64_t bytes)
{
    const int64_t columns = bytes / tile_row(width) > 0 ? bytes / tile_row(width) : 1;
    const int64_t bins = (a->cols + columns - 1) / columns;
    return (int)(bins < 1 ? 1 : bins > MOST_BINS ? MOST_BINS : bins);
}

static bool alike(const sp_csr *a, const row_lengths &lengths)
{
    return (double)lengths.longest <= 2 * ((double)a->nnz / (double)(a->rows > 0 ? a->rows : 1)) + 16;
}

/* As many as pay; 1: none do. Rows that are alike pass over the columns at one pace, so that what is gathered at a
 * time is small: uniform ones of 200 run at 8.7 TB/s where a tile takes 64 MB, rows of all lengths at 7.0, and at 8.3
 * in two ranges. But gathers of half a line are as many requests as the cache answers, and those from its far half
 * count twice: 100 million entries, 32 MB a tile, take 942 us in one range, 897 in two, 894 in three; in ranges of 25
 * entries a row no less than in one. */
static int choose_bins(const sp_csr *a, int64_t width, int64_t cache, const row_lengths &lengths)
{
    const bool narrow = 2 * tile_row(width) <= TILE_COLUMNS * 4;
    const int64_t useful = a->rows > 0 ? a->nnz / a->rows / (narrow ? RANGE_ENTRIES / 2 : RANGE_ENTRIES) : 0;
    const int bins = count_bins(a, width, cache);
    if (alike(a, lengths) && narrow && a->cols * tile_row(width) > cache / 2) {
        const int64_t fit = count_bins(a, width, cache / 3);
        const int64_t most = a->rows > 0 ? a->nnz / a->rows / ALIKE_ENTRIES : 0;
        return most < 2 ? 1 : (int)(fit < most ? fit : most);
    }
    if (alike(a, lengths) || a->cols * tile_row(width) < (narrow ? cache * 2 : cache)) return 1;
    return useful < 1 ? 1 : bins < useful ? bins : (int)useful;
}

/* Rows that are alike need no sorting, unless little else is to be done for an entry: uniform rows of 200, 16
 * columns, take 1.13 ms as they come and 1.08 in blocks. */
static sp_spmm_algorithm choose(const sp_csr *a, int64_t width, const row_lengths &lengths, int bins)
{
    const bool narrow = width <= TILE_COLUMNS / 2 && a->nnz >= 32 * a->rows;
    if (bins > 1) return SP_SPMM_BIDIRECTIONAL;
    return alike(a, lengths) && !narrow ? SP_SPMM_ROW_SPLIT : SP_SPMM_BLOCK_PARTITION;
}

/* Most entries of a group. A 14,000th of all, so that those that run at a time, some 16,000, are many more than those
 * that are long, but not so many that all rows go whole. Measured best on graphs of 0.1, 1, 1.6, 2, 18, 111 and 123
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

/* What the caller learns of the way that products go. */
static void tell(const spmm_state *state, sp_spmm_info *info)
{
    const spmm_blocks *parts = state->parts;
    info->algorithm = state->algorithm;
    info->partitions = !parts ? 1 : state->algorithm == SP_SPMM_BIDIRECTIONAL ? parts->bins : parts->count;
}

static sp_status prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                         spmm_state *state, sp_spmm_info *info)
{
    const bool extreme = options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
    int cache = 0;
    row_lengths lengths = {};
    CUDA_CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, cuda_state_of(context)->device));
    state->cache = cache;
    CHECK(measure(context, a, &lengths));
    /* Where neighbouring rows are alike, what is gathered at a time is small. Others are brought together, if half of
     * the cache, which is near, does not hold X, or if panels find X in the first-level cache: 105 million entries,
     * 15 MB of X, 854 us without an order, 776 with one and panels, but 928 with one and without them. */
    bool near = (int64_t)lengths.near * 2 > a->rows, small = false;
    const bool by_blocks = options->algorithm == SP_SPMM_AUTO || options->algorithm == SP_SPMM_BLOCK_PARTITION;
    const bool far = a->cols * tile_row(width) > cache / 2;
    device_array<int32_t> order;
    if (by_blocks && !near &&
        (far || (!extreme && cuda_spmm_fills_panels(context, a, (int64_t)lengths.longest, true))))
        CHECK(cuda_spmm_order(context, a, cache / COMMUNITIES / tile_row(width), cuda_spmm_panel_reach(a), &order,
                              &small));
    if (!far && !small) order.free();
    near = near || order.data;
    /* An extreme over ranges would have to keep its argument between launches: it has one range. */
    int bins = extreme || near ? 1 : choose_bins(a, width, cache, lengths);
    state->algorithm = options->algorithm != SP_SPMM_AUTO ? options->algorithm
                       : order.data                         ? SP_SPMM_BLOCK_PARTITION
                                                            : choose(a, width, lengths, bins);
    state->short_ranges = options->algorithm == SP_SPMM_AUTO && bins > 1 && !options->partition_bytes &&
                          a->nnz < 2 * RANGE_ENTRIES * bins * a->rows;
    if (options->partition_bytes && !extreme)
        bins = count_bins(a, width, options->partition_bytes < INT64_MAX ? (int64_t)options->partition_bytes
                                                                         : INT64_MAX);
    if (state->algorithm != SP_SPMM_BIDIRECTIONAL) bins = 1;
    state->short_rows = lengths.longest <= MOST_SHORT && a->nnz <= 4 * a->rows;
    state->info = state->short_ranges ? info : NULL;
    tell(state, info);
    if (state->algorithm == SP_SPMM_ROW_SPLIT) return SP_OK;
    CHECK(cuda_spmm_cut(context, a, bins, (a->cols + bins - 1) / bins, group_size(a, near), near, order.data,
                        &state->parts));
    if (state->algorithm == SP_SPMM_BLOCK_PARTITION && !extreme && (small || !order.data))
        CHECK(cuda_spmm_make_panels(context, a, (int64_t)lengths.longest, order.data, &state->panels));
    tell(state, info);
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
    CUDA_CHECK(cudaSetDevice(cuda_state_of(context)->device));
    CHECK(sp_calloc(context, 1, sizeof(spmm_state), &memory));
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
        cuda_spmm_free_blocks(context, ((spmm_state *)state)->kept_parts);
        cuda_spmm_free_panels(context, ((spmm_state *)state)->panels);
        sp_cuda_spmm_forget(context, ((spmm_state *)state)->single);
        cuda_spmm_free_staging(context, ((spmm_state *)state)->staging_in);
        cuda_spmm_free_staging(context, ((spmm_state *)state)->staging_out);
        ((spmm_state *)state)->lines.free();
    }
    sp_free(context, state);
}

/* ---- shapes ---------------------------------------------------------------------------------------------- */

static size_t size_of(sp_dense_type type)
{
    return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2;
}

enum { LINE = 128, WORD = 16 /* bytes */ };

/* Whether rows begin at lines of the caches. */
static bool at_lines(const sp_dense *matrix)
{
    return matrix->stride * (int64_t)size_of(matrix->type) % LINE == 0 && (uintptr_t)matrix->values % LINE == 0;
}

/* Whether packets of so many numbers are aligned in every row. */
static bool fits(const sp_dense *matrix, int64_t numbers)
{
    const size_t bytes = (size_t)numbers * size_of(matrix->type), most = bytes < 16 ? bytes : 16;
    return matrix->cols % numbers == 0 && matrix->stride * (int64_t)size_of(matrix->type) % (int64_t)most == 0 &&
           (uintptr_t)matrix->values % most == 0;
}

/* Lanes and repeats with the least to do, for at most `most` columns: packets, idle ones too, and for each tile what
 * its entries of A cost, some 8 packets of X. Rows of few entries are taken 8 a warp rather than 4. Wide rows of X
 * that lie across lines are loaded by 256 bytes, which are in three lines, rather than by 128, in two, and in tiles
 * of which the cache holds half: 262,144 of them at 100 and 200 columns 814 -> 761 and 1,655 -> 1,464 us; 128 columns
 * in lines would take 896 for 871. */
static spmm_shape choose_shape(const sp_dense *x, const sp_dense *y, bool extreme, bool few, int64_t most)
{
    static const int whole_shapes[][2] = {{4, 1}, {4, 2}, {8, 1}, {8, 2}, {8, 3}, {8, 4}, {16, 2}};
    static const int narrow_shapes[][2] = {{8, 1}, {32, 1}, {32, 2}};
    const int packet = (int)(16 / size_of(x->type));
    const bool whole = fits(x, packet) && fits(y, packet), single = x->type == SP_DENSE_F32;
    const int vector = whole ? packet : single && fits(x, 2) && fits(y, 2) ? 2 : 1;
    const int count = (int)(whole ? sizeof whole_shapes : sizeof narrow_shapes) / (int)sizeof *whole_shapes;
    const bool across = size_of(x->type) <= 4 && !at_lines(x);
    const int64_t packets = x->cols / vector;
    spmm_shape best = {vector, 8, 1};
    int64_t best_cost = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int lanes = (whole ? whole_shapes : narrow_shapes)[i][0];
        const int repeats = (whole ? whole_shapes : narrow_shapes)[i][1], span = lanes * repeats;
        if ((repeats > 1 && extreme) || (repeats > 2 && !single)) continue;
        if ((lanes == 16 && !across) || (repeats == 4 && across)) continue;
        if ((span * vector > (lanes == 16 ? 2 * most : most) && span > 8) ||
            (lanes == 4 && repeats == 2 && !few))
            continue;
        const int64_t tiles = (packets + span - 1) / span, cost = tiles * (span + 8);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = {vector, lanes, repeats};
    }
    return best;
}

/* Rows of X of 9 to 12 packets are one tile, two entries at a time, beyond the cache too: R-MAT 20 at 96 columns of
 * f16 2.07 -> 1.81 ms by ranges. But where rows are alike, narrower tiles, which the cache holds, take 1.37 ms for
 * 1.76. */
static bool takes_pairs(const sp_dense *x, const sp_dense *y, bool extreme, sp_spmm_algorithm algorithm, int64_t most)
{
    const int64_t packet = 16 / (int64_t)size_of(x->type), packets = x->cols / packet;
    return packets > 8 && packets <= 12 && x->type != SP_DENSE_F64 && !extreme && fits(x, packet) &&
           fits(y, packet) && (algorithm != SP_SPMM_ROW_SPLIT || 12 * packet <= most);
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
    /* Half of the cache is near. Where it holds 64 columns of X and not 128, 64 and 96 are faster: with 89,250
     * rows of X 512 columns take 267 us for 285, with 65,536 rows 128 take 92 for 100, but with 131,072 rows 118
     * for 117. Rows across lines are not, see choose_shape: 89,250 at 100 columns take 69 us in two tiles for 57. */
    const int64_t near_columns = state->cache / 2 / (a->cols > 0 ? a->cols : 1) / (int64_t)sizeof(float);
    if (x->type == SP_DENSE_F32 && at_lines(x) && most == 128 && near_columns >= 64 && near_columns < 128) most = 96;
    if (state->algorithm == SP_SPMM_BIDIRECTIONAL) most = TILE_COLUMNS;
    const int64_t places = state->parts ? state->parts->places : a->rows;
    if (takes_pairs(x, y, is_extreme(options), state->algorithm, most))
        *shape = {16 / (int)size_of(x->type), 8, 2, true};
    else *shape = choose_shape(x, y, is_extreme(options), a->nnz < 8 * places, most);
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
    product->width = product->total = (int32_t)x->cols;
    product->tiles = (int32_t)((x->cols + shape->columns() - 1) / shape->columns());
    product->alpha = alpha;
    product->beta = beta;
    product->mean = options->reduce == SP_REDUCE_MEAN;
    product->minimum = options->reduce == SP_REDUCE_MIN;
    product->y_narrow = size_of(y->type) == 2;
    product->keep = SPMM_STAYS;
    if (product->tiles > 65535)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "X has %lld columns", (long long)x->cols);
    return SP_OK;
}

sp_status cuda_spmm_launch(sp_context *context, sp_dense_type type, bool extreme, spmm_state *state,
                           const spmm_shape &shape, const spmm_product &product)
{
    const bool whole = shape.vector * size_of(type) == 16;
    if (state->panels && !extreme && whole && type != SP_DENSE_F64)
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

/* ---- rows of X and Y that begin anywhere ------------------------------------------------------------------- */

/* Entries a row of X for which it pays to copy X to lines, which reads and writes it once more; where panels find
 * most of it in the caches; and to copy pairs of f32, which are loaded as such, to packets. */
static const int64_t COPY_ENTRIES = 16, PANEL_ENTRIES = 64, PAIR_ENTRIES = 32;
/* Multiplications from which on the copies' launches are nothing. */
static const int64_t COPY_WORK = 1 << 24;
/* Caches that a copy of X may fill. */
static const int64_t COPY_CACHES = 4;

/* Columns of each row of X in words of 16 bytes, `room` from row to row, zeros behind the last; a group of 2^shift
 * threads a row. */
template <typename W>
static __global__ void __launch_bounds__(256)
    copy_columns(int64_t rows, const char *x, size_t x_bytes, int bytes, int room, int shift, uint4 *to)
{
    enum { PIECES = WORD / sizeof(W) };
    const int64_t row = ((int64_t)blockIdx.x * 256 + threadIdx.x) >> shift;
    if (row >= rows) return;
    for (int word = threadIdx.x & ((1 << shift) - 1); word * WORD < bytes; word += 1 << shift) {
        const W *from = (const W *)(x + (size_t)row * x_bytes) + word * PIECES;
        W piece[PIECES];
        uint4 whole;
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            piece[i] = word * WORD + i * (int)sizeof(W) < bytes ? __ldg(from + i) : W();
        memcpy(&whole, piece, WORD);
        to[row * room + word] = whole;
    }
}

/* Words of 16 bytes from row to row of copies; 0 of Y where it needs none. */
struct spmm_copies {
    int x_words, y_words;
};

static spmm_copies lay_out(const sp_dense *x, const sp_dense *y, int64_t columns)
{
    const int64_t packet = WORD / (int64_t)size_of(x->type), words = (columns + packet - 1) / packet;
    sp_dense part = *y;
    int64_t room = 1;
    while (room < words && room < LINE / WORD) room *= 2;
    if (words > room) room = words <= 12 ? 12 : (words + room - 1) / room * room; /* 12: see takes_pairs */
    part.cols = columns;
    return {(int)room, fits(&part, packet) ? 0 : (int)(words * packet * (int64_t)sizeof(float) / WORD)};
}

/* Columns from `first` on that are copied at a time: a line of X where the cache does not hold two, unless panels
 * find what they gather in the first-level one, else some lines; and what is left if it is half a line at most. */
static int64_t columns_at_once(const sp_csr *a, const sp_dense *x, const spmm_state *state, int64_t first)
{
    const int64_t line = LINE / (int64_t)size_of(x->type), left = x->cols - first;
    const int64_t most = COPY_CACHES * state->cache / LINE / (a->cols > 0 ? a->cols : 1);
    const bool far = !state->panels && 2 * LINE * a->cols > state->cache / 10 * 11;
    const int64_t columns = (far || most < 1 ? 1 : most) * line;
    return left <= columns + (state->algorithm == SP_SPMM_ROW_SPLIT && far ? 0 : line / 2) ? left : columns;
}

/* Where rows of X do not begin at lines, a tile's row lies in two of them, of which the caches and the memory move
 * and keep more than is asked for: 182 million entries, 201 MB a tile, 200 columns take 47.8 ms, seven tiles of 32
 * columns that do 26.5; by panels 105 million at 100 columns 3.74 and 3.47. Not where the cache holds wider tiles,
 * nor where one tile takes a line and a half: 75 million, 36 columns, 1.56 ms for 1.74. Rows that do not begin at
 * packets of 16 bytes, or end amid one, are loaded number by number otherwise: 105 million entries at 33 columns take
 * 5.85 ms, and 1.66 from copies, 3.9 million in 1.9 million rows 878 and 724 us. */
static bool needs_copy(const sp_csr *a, const sp_dense *x, const sp_dense *y, bool extreme, const spmm_state *state)
{
    const int64_t size = (int64_t)size_of(x->type);
    if (extreme || a->nnz == 0) return false;
    if (!fits(x, WORD / size) || !fits(y, WORD / size)) {
        const bool pairs = size == 4 && fits(x, 2) && fits(y, 2);
        return size < 8 && a->nnz >= (pairs ? PAIR_ENTRIES : 1) * a->cols && a->nnz >= COPY_WORK / x->cols;
    }
    if (takes_pairs(x, y, extreme, state->algorithm, 0) || x->cols * size < LINE) return false;
    if (at_lines(x)) return false;
    return state->panels && size < 8
               ? a->nnz >= PANEL_ENTRIES * a->cols
               : a->nnz >= COPY_ENTRIES * a->cols && 2 * LINE * a->cols > state->cache / 10 * 11;
}

/* The product, some columns at a time, from a copy of X at `copy`, and where Y needs one to one behind it. */
static sp_status multiply_copied(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                                 spmm_state *state, double alpha, const sp_dense *x, double beta, const sp_dense *y,
                                 uint4 *copy)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t size = (int64_t)size_of(x->type), packet = WORD / size;
    const size_t x_bytes = (size_t)(x->stride * size), mixed = x_bytes | (size_t)(uintptr_t)x->values;
    const auto copy_x = mixed % 16 == 0  ? copy_columns<uint4>
                        : mixed % 8 == 0 ? copy_columns<uint2>
                        : mixed % 4 == 0 ? copy_columns<unsigned>
                                         : copy_columns<unsigned short>;
    for (int64_t first = 0, columns; first < x->cols; first += columns) {
        columns = columns_at_once(a, x, state, first);
        const spmm_copies made = lay_out(x, y, columns);
        const int64_t whole = (columns + packet - 1) / packet * packet;
        sp_dense x_part = {x->rows, whole, made.x_words * packet, copy, x->type, SP_DEVICE};
        sp_dense y_part = *y, sums = {y->rows, whole, whole, copy + a->cols * made.x_words, SP_DENSE_F32, SP_DEVICE};
        spmm_shape shape;
        spmm_product product;
        int shift = 0;
        while (shift < 5 && 1 << shift < made.x_words) shift++;
        copy_x<<<(unsigned)(((a->cols << shift) + 255) / 256), 256, 0, stream>>>(
            a->cols, (const char *)x->values + first * size, x_bytes, (int)(columns * size), made.x_words, shift,
            copy);
        CUDA_CHECK(cudaGetLastError());
        y_part.cols = columns;
        y_part.values = (char *)y->values + (size_t)first * size_of(y->type);
        CHECK(cuda_spmm_describe(context, a, options, state, alpha, &x_part, made.y_words ? 0 : beta,
                                 made.y_words ? &sums : &y_part, NULL, &shape, &product));
        product.first = (int32_t)first;
        product.total = (int32_t)x->cols;
        CHECK(cuda_spmm_launch(context, x->type, false, state, shape, product));
        if (!made.y_words) continue;
        product.width = (int32_t)columns;
        product.y = y_part.values;
        product.y_stride = y->stride;
        product.y_narrow = size_of(y->type) == 2;
        product.beta = beta;
        CHECK(cuda_spmm_round(context, x->type, product, (const float *)sums.values, sums.stride));
    }
    return SP_OK;
}

/* Room for copies, which the plan keeps; but a graph under capture has its own, `passing`, as later products may need
 * more. */
static sp_status make_room(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y,
                           spmm_state *plan, device_array<uint4> *passing, uint4 **room)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    int64_t words = 0;
    for (int64_t first = 0, columns; first < x->cols; first += columns) {
        columns = columns_at_once(a, x, plan, first);
        const spmm_copies made = lay_out(x, y, columns);
        const int64_t needed = a->cols * made.x_words + a->rows * made.y_words;
        if (needed > words) words = needed;
    }
    CUDA_CHECK(cudaStreamIsCapturing(cuda_state_of(context)->stream, &capture));
    const bool kept = capture == cudaStreamCaptureStatusNone;
    device_array<uint4> *to = kept ? &plan->lines : passing;
    if (!to->data || plan->line_words < words) {
        CHECK(to->allocate(context, words));
        if (kept) plan->line_words = words;
    }
    *room = to->data;
    return SP_OK;
}

/* Ranges of columns cost another pass over Y, of f32, and save gathers of X. Where X has 16 bits they need twice the
 * entries to pay: R-MAT 20, 36 a row and range, at 32, 96 and 128 columns 737, 1,810 and 2,290 us by two ranges, 690,
 * 1,760 and 2,190 by one. *plan becomes the one without, which the first such product makes. */
static sp_status choose_plan(sp_context *context, const sp_csr *a, const sp_spmm_options *options, const sp_dense *x,
                             spmm_state **plan)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    sp_spmm_options single = *options;
    sp_spmm_info info, *told = (*plan)->info;
    if (!(*plan)->short_ranges) return SP_OK;
    tell(*plan, told);
    if (size_of(x->type) > 2) return SP_OK;
    CUDA_CHECK(cudaStreamIsCapturing(cuda_state_of(context)->stream, &capture));
    if (!(*plan)->single && capture == cudaStreamCaptureStatusNone) {
        single.algorithm = SP_SPMM_BLOCK_PARTITION;
        const sp_status status =
            sp_cuda_spmm_prepare(context, a, x->cols, &single, (void **)&(*plan)->single, &info);
        if (status != SP_OK && status != SP_ERROR_DEVICE_MEMORY) return status;
        if (status == SP_OK) told->metadata_bytes += info.metadata_bytes;
    }
    if (!(*plan)->single) return SP_OK;
    *plan = (*plan)->single;
    tell(*plan, told);
    return SP_OK;
}

/* Does not wait where X and Y lie on the device: what follows on the context's stream does, and a product of 20 µs is
 * not held up for 10 more. */
sp_status sp_cuda_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                       double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    spmm_state *plan = (spmm_state *)state;
    spmm_shape shape;
    spmm_product product;
    CUDA_CHECK(cudaSetDevice(cuda_state_of(context)->device));
    if (sp_interrupted(context)) return sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    if (a->rows == 0 || x->cols == 0) return SP_OK;
    CHECK(choose_plan(context, a, options, x, &plan));
    if (x->space == SP_HOST || y->space == SP_HOST)
        return cuda_spmm_stream(context, a, options, plan, alpha, x, beta, y, argument);
    if (needs_copy(a, x, y, is_extreme(options), plan)) {
        device_array<uint4> passing;
        uint4 *room = NULL;
        const sp_status status = make_room(context, a, x, y, plan, &passing, &room);
        if (status == SP_OK) return multiply_copied(context, a, options, plan, alpha, x, beta, y, room);
        if (status != SP_ERROR_DEVICE_MEMORY) return status;
    }
    CHECK(cuda_spmm_describe(context, a, options, plan, alpha, x, beta, y, argument, &shape, &product));
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
    CUDA_CHECK(cudaSetDevice(cuda_state_of(context)->device));
    if (count == 0) return SP_OK;
    count_up<<<(unsigned)((count + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(count, to);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

sp_status sp_cuda_gather(sp_context *context, const int64_t *index, int64_t count, const void *from, size_t size,
                         void *to)
{
    CUDA_CHECK(cudaSetDevice(cuda_state_of(context)->device));
    if (count == 0) return SP_OK;
    gather_words<<<(unsigned)((count + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(
        index, count, from, size == sizeof(uint32_t), to);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}
