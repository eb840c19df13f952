/* How X and Y in host memory are cut into tiles.
 *
 * With W columns in tiles of at most c, the link takes the time of W + c columns, because nothing is copied out while
 * the first tile is copied in, and nothing is copied in while the last one is copied out. Narrower tiles at both ends
 * do not change that sum. But narrow tiles have short rows, which are copied slowly: `estimate` weighs the two. Columns
 * left beside whole tiles are shared by the first and the last tile.
 *
 * If not even a tile of one sector fits, X is cut by its rows too, which are A's columns (the bidirectional partition
 * of Kim et al., "BiKD", 2026). The tile of Y stays until all ranges of X have been added to it. Sums are then formed
 * range by range and may differ in the last places, though not from run to run; extremes are refused.
 */
#include <math.h>

#include "spmm/cuda/shape.cuh"
#include "spmm/cuda/stream_cut.cuh"

/* Tiles have multiples of this many columns, or a power of two fewer. */
static const int64_t COLUMNS = 32;
enum { SECTOR = 32 /* bytes */ };
/* Blocks of rows of Y, and the rows of A from which on they pay: blocks below 8 KB are not worth a copy. */
enum { ROW_BLOCKS = 32, LEAST_BLOCKED_ROWS = 1024 };
/* Bytes a second each way, both ways busy, of copy engines by bytes of a row, where rows lie close and where they lie
 * far apart; of threads, for each byte of a row, and at most; gathered from the device's memory; by how much a
 * direction is faster alone, and the link; seconds to start a copy. Estimates, for the choice of tiles. */
static const struct {
    size_t row;
    double close, far;
} BY_ENGINES[] = {{128, 37e9, 28e9}, {256, 49e9, 36e9}, {512, 50e9, 48e9}, {768, 50.5e9, 49e9}};
static const double THREADS_BYTE = 0.3e9, THREADS_MOST = 32e9, GATHERS = 4e12, ALONE = 1.5, LINK = 54e9, START = 8e-6;
/* Rows should begin at multiples of this for copy engines. */
static const size_t ENGINE_ALIGNMENT = 256;
/* Left to small allocations of the kernels' launches. */
static const size_t SLACK = (size_t)64 << 10;

static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* The rest beside whole tiles is shared by the first and the last, so that neither is narrow: 1,024 columns are
 * 128, four times 192 and 128. */
static int64_t columns_of_first(const stream_job &job, int64_t columns)
{
    const int64_t unit = (int64_t)(ENGINE_ALIGNMENT / sp_dense_size(job.x->type));
    const int64_t tiles = (job.x->cols + columns - 1) / columns, rest = job.x->cols - (tiles - 2) * columns;
    const int64_t half = (rest / 2 + unit - 1) / unit * unit;
    return tiles > 2 && half < columns ? half : columns;
}

/* What a launch keeps of rows of several blocks, at most: 8 bytes a column and block for sums, 24 for extremes. */
static size_t carry_bytes(const stream_job &job, const spmm_blocks *parts, int64_t columns)
{
    const int64_t span = job.shape.columns(), tiles = (columns + span - 1) / span;
    int64_t most = 0;
    for (int range = 0; parts && parts->edges && range < parts->ranges; range++) {
        const int64_t partial = parts->edges[2 * range + 1] - parts->edges[2 * range];
        if (partial > most) most = partial;
    }
    return (size_t)(most * tiles) * ((size_t)span * (job.extreme ? 24 : 8) + sizeof(unsigned));
}

/* Of the partition by blocks of rows, if it has yet to be made: that of the plan in another order. */
static size_t partition_bytes(const stream_job &job)
{
    const spmm_blocks *parts = job.state->parts;
    if (!parts || job.state->row_parts) return 0;
    return (size_t)parts->places * (2 * sizeof(int32_t) + sizeof(int64_t)) +
           (size_t)(parts->count + ROW_BLOCKS * SPMM_GROUPS * parts->group_entries) * sizeof(int4);
}

/* Cannot overflow: X, Y and the arguments exist, and nothing here is more than four times as large. */
static stream_cut lay_out(const stream_job &job, int64_t columns, int ranges, int blocks, int x_slots, int slots,
                          const spmm_blocks *parts)
{
    const bool narrow_sums = job.product.y_narrow && !job.extreme;
    const size_t x_size = sp_dense_size(job.x->type), y_size = sp_dense_size(job.y->type);
    stream_cut cut = {};
    cut.columns = columns;
    cut.first = columns_of_first(job, columns);
    cut.tiles = (job.x->cols + columns - 1) / columns;
    cut.ranges = ranges;
    cut.x_slots = x_slots;
    cut.slots = slots;
    cut.range_rows = (job.a->cols + ranges - 1) / ranges;
    cut.block_rows = (job.a->rows + blocks - 1) / blocks;
    cut.blocks = (int)((job.a->rows + cut.block_rows - 1) / cut.block_rows);
    cut.part_rows = (job.a->cols + cut.blocks - 1) / cut.blocks;
    const size_t tile = (size_t)cut.block_rows * (size_t)columns;
    if (job.x->space == SP_HOST) cut.x = padded((size_t)cut.range_rows * (size_t)columns * x_size);
    if (job.y->space == SP_HOST) cut.y = padded(tile * y_size);
    if (job.argument) cut.argument = padded(tile * sizeof(int64_t));
    if (ranges > 1 && narrow_sums) cut.sums = padded(tile * sizeof(float));
    cut.buffers = (size_t)x_slots * cut.x + (size_t)slots * (cut.y + cut.argument) + cut.sums;
    cut.bytes = cut.buffers + carry_bytes(job, parts, columns) + SLACK;
    if (blocks > 1) cut.bytes += partition_bytes(job);
    else if (ranges == 1 && narrow_sums && job.state->algorithm == SP_SPMM_BIDIRECTIONAL)
        cut.bytes += padded(tile * sizeof(float));
    return cut;
}

/* Whether blocks of rows of Y can be made one by one, with the bits of the whole. */
static bool goes_by_blocks(const stream_job &job)
{
    const spmm_state *state = job.state;
    return job.y->space == SP_HOST && job.a->rows >= LEAST_BLOCKED_ROWS && (!state->panels || job.extreme) &&
           (!state->parts || state->parts->ranges == 1);
}

/* Seconds that copies of a tile's rows take, both ways busy or one alone. */
static double seconds_of(size_t size, int64_t stride, int64_t rows, int64_t columns, int copies, bool alone)
{
    const size_t row = (size_t)columns * size, pitch = (size_t)stride * size;
    double rate = fmin((double)row * THREADS_BYTE, THREADS_MOST);
    if (stream_by_engines(row, pitch))
        for (const auto &point : BY_ENGINES)
            if (row >= point.row && (row <= ENGINE_ALIGNMENT || row % ENGINE_ALIGNMENT == 0 || &point == BY_ENGINES))
                rate = pitch < FAR ? point.close : point.far;
    if (alone) rate = fmin(ALONE * rate, LINK);
    return (double)rows * (double)row / rate + copies * START;
}

/* Seconds that a product takes, tile after tile: when X has come, when the tile is multiplied and when Y is gone. */
static double estimate(const stream_job &job, const stream_cut &cut)
{
    const size_t x_size = sp_dense_size(job.x->type), y_size = sp_dense_size(job.y->type);
    const bool x_moves = job.x->space == SP_HOST, y_moves = job.y->space == SP_HOST;
    const bool alone = cut.x_slots == 1 && cut.blocks > 1;
    double loaded = 0, made[2] = {}, stored[2] = {}, gone = 0, ready = 0;
    for (int64_t tile = 0; tile < cut.tiles; tile++) {
        const int64_t columns = columns_of(cut, job.x->cols, tile);
        const int x_slot = (int)(tile % cut.x_slots), slot = (int)(tile % cut.slots);
        const double y = y_moves ? seconds_of(y_size, job.y->stride, job.a->rows, columns, cut.blocks, alone) : 0;
        const double x = x_moves ? seconds_of(x_size, job.x->stride, job.a->cols, columns, cut.blocks, alone) : 0;
        const double in = x + (job.beta != 0 ? y : 0);
        const double out = y + (job.argument ? seconds_of(sizeof(int64_t), job.y->cols, job.a->rows, columns,
                                                          cut.blocks, alone)
                                             : 0);
        const double work = (double)job.a->nnz * (double)columns * (double)x_size / GATHERS;
        const double first = work / cut.blocks;
        loaded = fmax(loaded, made[x_slot]) + in;
        ready = fmax(ready, loaded);
        if (cut.blocks == 1) ready = fmax(ready, stored[slot]);
        gone = fmax(gone, ready + first) + fmax(out, work - first);
        ready = cut.blocks == 1 ? ready + work : fmax(ready + work, gone - cut.slots * out / cut.blocks);
        made[x_slot] = ready;
        stored[slot] = gone;
    }
    return gone;
}

static int64_t sector_of(const stream_job &job) { return SECTOR / (int64_t)sp_dense_size(job.x->type); }

/* Columns of the narrowest tile whose sums have the bits of the whole product: where lanes are dealt to two entries,
 * and in panels, places within a tile decide what is added to what. */
static int64_t narrowest(const stream_job &job)
{
    if (!job.extreme && job.state->panels) return LINE_BYTES / (int64_t)sp_dense_size(job.x->type);
    if (!job.extreme && (job.shape.pairs || (job.shape.lanes == 4 && job.shape.repeats == 1)))
        return job.shape.columns();
    return sector_of(job);
}

/* The fastest tiles of all rows that fit, of `narrow` columns or more. False: none fit, and *cut has the smallest. */
static bool choose_columns(const stream_job &job, size_t available, bool by_blocks, int64_t narrow, stream_cut *cut)
{
    static const struct {
        int blocks, x_slots, slots;
    } kinds[] = {{ROW_BLOCKS, 2, 2}, {ROW_BLOCKS, 1, 2}, {1, 2, 2}, {1, 1, 1}};
    const int64_t width = job.x->cols;
    const int64_t unit = width < narrow ? width : narrow, step = unit < COLUMNS ? COLUMNS : unit;
    double least = 0;
    bool fits = false;
    for (const auto &kind : kinds) {
        if (kind.blocks > 1 && !by_blocks) continue;
        for (int64_t wide = unit; wide < width + step; wide += wide < COLUMNS ? wide : step) {
            const stream_cut tried = lay_out(job, wide < width ? wide : width, 1, kind.blocks, kind.x_slots,
                                             kind.slots, job.state->parts);
            if (tried.bytes > available) break;
            const double seconds = estimate(job, tried);
            if (fits && seconds >= least) continue;
            *cut = tried;
            least = seconds;
            fits = true;
        }
    }
    if (!fits) *cut = lay_out(job, unit, 1, 1, 1, 1, job.state->parts);
    return fits;
}

/* Bytes that can be allocated when all that was released is free. */
static sp_status available_now(sp_context *context, size_t *bytes)
{
    CUDA_CHECK(cudaStreamSynchronize(cuda_state_of(context)->stream));
    return cuda_available(context, bytes);
}

/* About half as many columns, a multiple of `least`; 0: there are no fewer. */
static int64_t narrower(int64_t columns, int64_t least)
{
    return columns > least ? (columns / 2 + least - 1) / least * least : 0;
}

sp_status stream_choose_cut(const stream_job &job, stream_parts *parts, stream_cut *cut)
{
    sp_context *context = job.context;
    const spmm_blocks *known = job.state->parts;
    size_t available = 0;
    CHECK(available_now(context, &available));
    int64_t narrow = narrowest(job);
    bool fits = choose_columns(job, available, goes_by_blocks(job), narrow, cut);
    if (!fits) /* rather sums that differ in the last places than none */
        fits = choose_columns(job, available, goes_by_blocks(job), narrow = sector_of(job), cut);
    if (fits && cut->blocks > 1 && known && !job.state->row_parts) {
        const sp_status status = cuda_spmm_cut_rows(context, job.a, cut->blocks, cut->block_rows,
                                                    known->group_entries, known->coarse, &job.state->row_parts);
        if (status != SP_ERROR_DEVICE_MEMORY) return status;
        fits = choose_columns(job, available, false, narrow, cut); /* sorting takes more than the result */
    }
    if (fits) return SP_OK;
    const stream_cut smallest = *cut;
    const bool by_rows = !job.extreme && job.x->space == SP_HOST;
    for (int64_t columns = job.x->cols; by_rows && columns > 0; columns = narrower(columns, sector_of(job)))
        for (int ranges = 2; ranges <= SPMM_MOST_RANGES && ranges <= job.a->cols; ranges *= 2) {
            size_t left = 0;
            *cut = lay_out(job, columns, ranges, 1, 2, 2, NULL);
            if (cut->bytes > available) continue;
            CHECK(cuda_spmm_cut(context, job.a, ranges, cut->range_rows, known ? known->group_entries : 64,
                                known && known->coarse, NULL, &parts->blocks));
            *cut = lay_out(job, columns, ranges, 1, 2, 2, parts->blocks);
            CHECK(available_now(context, &left));
            if (cut->bytes <= left) return SP_OK;
            parts->free();
        }
    return sp_fail(context, SP_ERROR_DEVICE_MEMORY,
                   "%s: X and Y do not fit, nor do tiles of %lld of their columns, %zu bytes where %zu are left%s",
                   context->device_name, (long long)smallest.columns, smallest.bytes, available,
                   by_rows ? ", nor with ranges of the rows of X" : "");
}
