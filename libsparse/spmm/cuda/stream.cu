/* Y = alpha · reduce(A · X) + beta · Y where X, Y or both lie in host memory and do not fit the device: the pipeline.
 *
 * The columns of X and Y are cut into tiles (stream_cut.cu). A tile is a product of its own, a sum, mean or extreme, by
 * the plan's kernels. A tile of X must be complete, because any row of A may need any of its rows. A tile of Y is made
 * and copied out in blocks of its rows, through two small buffers in turn, while the next tile of X is copied in
 * (stream_copy.cu). So memory holds two tiles of X and a sixteenth of one of Y.
 *
 * Lanes and panels are assigned as for the whole product, so every sum has the order and the bits of the product on the
 * device, unless that one uses copies (aligned.cu).
 *
 * Plans that cannot go by blocks of rows (panels, ranges of columns) make whole tiles of Y: with two buffers each for X
 * and Y, or with one each of twice the width; then X is copied in while Y is copied out, and nothing is copied while a
 * tile is multiplied. If memory is short, one tile of X of twice the width replaces two: X and Y are then copied in
 * turn, but by longer rows.
 */
#include "spmm/cuda/shape.cuh"
#include "spmm/cuda/stream_cut.cuh"

/* A staging buffer's, at most. */
static const size_t STAGING_BYTES = (size_t)4 << 20;

/* Slots of X and Y are used in turn, each with its events: X has come, X is no longer read, Y has come, Y is made, Y
 * has gone. */
struct stream_line {
    sp_context *context = nullptr;
    cudaStream_t in = nullptr, out = nullptr;
    cudaEvent_t loaded[2] = {}, used[2] = {}, added[2] = {}, made[2] = {}, stored[2] = {};

    stream_line() = default;
    stream_line(const stream_line &) = delete;
    stream_line &operator=(const stream_line &) = delete;
    /* Nothing is under way when buffers end. */
    ~stream_line()
    {
        if (context) cudaStreamSynchronize(cuda_state_of(context)->stream);
        for (cudaStream_t stream : {in, out})
            if (stream) {
                cudaStreamSynchronize(stream);
                cudaStreamDestroy(stream);
            }
        for (int i = 0; i < 2; i++)
            for (cudaEvent_t event : {loaded[i], used[i], added[i], made[i], stored[i]})
                if (event) cudaEventDestroy(event);
        cudaGetLastError();
    }
    /* Threads that copy are let in before those that multiply, which fill the device. */
    sp_status open(sp_context *owner)
    {
        int lowest = 0, highest = 0;
        context = owner;
        CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
        CUDA_CHECK(cudaStreamCreateWithPriority(&in, cudaStreamNonBlocking, highest));
        CUDA_CHECK(cudaStreamCreateWithPriority(&out, cudaStreamNonBlocking, highest));
        for (int i = 0; i < 2; i++)
            for (cudaEvent_t *event : {&loaded[i], &used[i], &added[i], &made[i], &stored[i]})
                CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        return SP_OK;
    }
};

/* What a buffer of Y and one of arguments hold goes out: when the product has made them, and whether all of it is on
 * its way. */
struct stream_store {
    stream_copy copies[2];
    bool awaited = false, started = false;
};

/* A step multiplies a tile of X, or a range of its rows, and makes a tile of Y, or a block of its rows. */
struct stream_run {
    const stream_job &job;
    const stream_cut &cut;
    spmm_blocks *range_parts;
    char *x[2], *y[2], *argument[2], *sums; /* buffers */
    stream_store stores[2];
    stream_line line;

    stream_run(const stream_job &whole, const stream_cut &pieces, spmm_blocks *parts, char *memory)
        : job(whole), cut(pieces), range_parts(parts), x(), y(), argument()
    {
        for (int i = 0; i < cut.x_slots; i++, memory += cut.x) x[i] = memory;
        for (int i = 0; i < cut.slots; i++, memory += cut.y + cut.argument) {
            y[i] = memory;
            argument[i] = memory + cut.y;
        }
        sums = memory;
    }
    int64_t steps() const { return cut.tiles * cut.ranges * cut.blocks; }
    int64_t tile_of(int64_t step) const { return step / (cut.ranges * cut.blocks); }
    int64_t range_of(int64_t step) const { return step % cut.ranges; }
    int64_t block_of(int64_t step) const { return cut.ranges > 1 ? 0 : step % cut.blocks; }
    int x_slot(int64_t step) const { return (int)((cut.ranges > 1 ? step : tile_of(step)) % cut.x_slots); }
    int y_slot(int64_t step) const { return (int)((cut.blocks > 1 ? step : tile_of(step)) % cut.slots); }
    bool last_range(int64_t step) const { return range_of(step) == cut.ranges - 1; }
};

/* How many of `rows` from `first` on a part of `most` has. */
static int64_t rows_of(int64_t rows, int64_t first, int64_t most)
{
    return rows - first < most ? rows - first : most;
}

/* Rows from `row` on of a tile, in the matrix outside. */
static stream_copy copy_of(char *device, void *values, int64_t stride, size_t size, const stream_memory &memory,
                           int64_t row, int64_t rows, int64_t first, int64_t columns)
{
    stream_copy copy;
    copy.device = device;
    copy.pitch = (size_t)stride * size;
    copy.bytes = (size_t)columns * size;
    copy.offset = (size_t)row * copy.pitch + (size_t)first * size;
    copy.outside = (char *)values + copy.offset;
    copy.rows = rows > 0 ? rows : 0;
    copy.memory = memory;
    return copy;
}

/* What step `x_step` needs of X, or its part of the tile that is needed first by it, in copies[0]; what step `y_step`
 * needs of Y in copies[1]; -1: nothing. */
static void plan_load(const stream_run &run, int64_t x_step, int64_t y_step, stream_copy *copies)
{
    const stream_job &job = run.job;
    const stream_cut &cut = run.cut;
    if (x_step >= 0 && job.x->space == SP_HOST) {
        const int64_t tile = run.tile_of(x_step), columns = columns_of(cut, job.x->cols, tile);
        const size_t size = sp_dense_size(job.x->type);
        const int64_t part = run.block_of(x_step) * cut.part_rows;
        const int64_t row = cut.ranges > 1 ? run.range_of(x_step) * cut.range_rows : part;
        copies[0] = copy_of(run.x[run.x_slot(x_step)] + (size_t)part * (size_t)columns * size, job.x->values,
                            job.x->stride, size, job.x_memory, row,
                            rows_of(job.a->cols, row, cut.ranges > 1 ? cut.range_rows : cut.part_rows),
                            column_of(cut, tile), columns);
    }
    if (y_step >= 0 && job.y->space == SP_HOST && job.beta != 0 && run.range_of(y_step) == 0) {
        const int64_t tile = run.tile_of(y_step), row = run.block_of(y_step) * cut.block_rows;
        copies[1] = copy_of(run.y[run.y_slot(y_step)], job.y->values, job.y->stride, sp_dense_size(job.y->type),
                            job.y_memory, row, rows_of(job.a->rows, row, cut.block_rows), column_of(cut, tile),
                            columns_of(cut, job.x->cols, tile));
    }
}

static void plan_store(stream_run *run, int64_t step)
{
    const stream_job &job = run->job;
    const stream_cut &cut = run->cut;
    const int64_t tile = run->tile_of(step), first = column_of(cut, tile);
    const int64_t columns = columns_of(cut, job.x->cols, tile);
    const int64_t row = run->block_of(step) * cut.block_rows, rows = rows_of(job.a->rows, row, cut.block_rows);
    const int slot = run->y_slot(step);
    stream_copy *const copies = run->stores[slot].copies;
    run->stores[slot] = stream_store();
    if (job.y->space == SP_HOST)
        copies[0] = copy_of(run->y[slot], job.y->values, job.y->stride, sp_dense_size(job.y->type), job.y_memory, row,
                            rows, first, columns);
    if (job.argument)
        copies[1] = copy_of(run->argument[slot], job.argument, job.y->cols, sizeof(int64_t), job.argument_memory, row,
                            rows, first, columns);
}

static stream_copy *unfinished(stream_copy *copies)
{
    return !copies[0].finished() ? &copies[0] : !copies[1].finished() ? &copies[1] : nullptr;
}

/* Has what `step` made begin its way out, as far as staging buffers are empty. */
static sp_status start_store(stream_run *run, int64_t step)
{
    sp_context *context = run->job.context;
    const int slot = run->y_slot(step);
    stream_store *store = &run->stores[slot];
    if (store->started) return SP_OK;
    if (!store->awaited) CUDA_CHECK(cudaStreamWaitEvent(run->line.out, run->line.made[slot], 0));
    store->awaited = true;
    for (stream_copy &copy : store->copies) {
        if (!copy.all_started()) CHECK(stream_start_out(context, &copy, run->job.state->staging_out, run->line.out));
        if (!copy.all_started()) return SP_OK;
    }
    store->started = true;
    CUDA_CHECK(cudaEventRecord(run->line.stored[slot], run->line.out));
    return SP_OK;
}

/* Loads what `x_step` and `y_step` need and stores what step `store` made, part by part in turn, so that both
 * directions of the link are busy; -1: nothing. What step `next` made begins its way meanwhile. Y comes into a buffer
 * when what it held is on its way. */
static sp_status transfer(stream_run *run, int64_t x_step, int64_t y_step, int64_t store, int64_t next)
{
    sp_context *context = run->job.context;
    stream_line *line = &run->line;
    stream_staging *const staging = run->job.state->staging_out;
    stream_store *const out = store >= 0 ? &run->stores[run->y_slot(store)] : nullptr;
    stream_copy in[2];
    plan_load(*run, x_step, y_step, in);
    if (x_step >= 0) CUDA_CHECK(cudaStreamWaitEvent(line->in, line->used[run->x_slot(x_step)], 0));
    for (;;) {
        if (out) CHECK(start_store(run, store));
        if (next >= 0 && (!out || out->started)) CHECK(start_store(run, next));
        stream_copy *next_in = unfinished(in), *const next_out = out ? unfinished(out->copies) : nullptr;
        if (!next_in && !next_out) break;
        if (next_in == &in[1] && out && !out->started) next_in = nullptr;
        if (next_out && (!next_in || stream_has_come(staging))) {
            CHECK(stream_finish_out(context, next_out, staging));
            continue;
        }
        if (next_in == &in[1] && in[1].done == 0)
            CUDA_CHECK(cudaStreamWaitEvent(line->in, line->stored[run->y_slot(y_step)], 0));
        CHECK(stream_copy_in(context, next_in, run->job.state->staging_in, line->in));
        if (in[0].finished() && next_in == &in[0])
            CUDA_CHECK(cudaEventRecord(line->loaded[run->x_slot(x_step)], line->in));
        if (in[1].finished() && next_in == &in[1])
            CUDA_CHECK(cudaEventRecord(line->added[run->y_slot(y_step)], line->in));
    }
    return SP_OK;
}

/* The operands of a step. Rows of X before a range and rows of Y before a block are not there and are not touched;
 * where rows are taken as they come, those of a block are a matrix of their own. */
static spmm_product operands_of(const stream_run &run, int64_t step)
{
    const stream_job &job = run.job;
    const int64_t tile = run.tile_of(step), first = column_of(run.cut, tile);
    const int64_t columns = columns_of(run.cut, job.x->cols, tile);
    const int64_t span = job.shape.columns(), row = run.block_of(step) * run.cut.block_rows;
    const size_t x_size = sp_dense_size(job.x->type), y_size = sp_dense_size(job.y->type);
    spmm_product p = job.product;
    int64_t before = row;
    p.width = (int32_t)columns;
    p.first = (int32_t)first;
    p.tiles = (int32_t)((columns + span - 1) / span);
    if (!job.state->parts && run.cut.blocks > 1) {
        p.offsets += row;
        p.rows = rows_of(p.rows, row, run.cut.block_rows);
        before = 0;
    }
    p.x = (const char *)job.x->values + (size_t)first * x_size;
    if (job.x->space == SP_HOST) {
        p.x_bytes = (uint32_t)((size_t)columns * x_size);
        p.x = (const void *)((uintptr_t)run.x[run.x_slot(step)] -
                             (uintptr_t)(run.range_of(step) * run.cut.range_rows) * p.x_bytes);
    }
    p.y = (char *)job.y->values + (size_t)first * y_size;
    if (job.y->space == SP_HOST) {
        p.y_stride = columns;
        p.y = (void *)((uintptr_t)run.y[run.y_slot(step)] - (uintptr_t)(before * columns) * y_size);
    }
    p.argument = job.argument ? (int64_t *)((uintptr_t)run.argument[run.y_slot(step)] -
                                            (uintptr_t)(before * columns) * sizeof(int64_t))
                              : NULL;
    return p;
}

static sp_status multiply(stream_run *run, int64_t step)
{
    const stream_job &job = run->job;
    sp_context *context = job.context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t range = run->range_of(step);
    const int x_slot = run->x_slot(step), y_slot = run->y_slot(step);
    const spmm_product p = operands_of(*run, step);
    for (cudaEvent_t event : {run->line.loaded[x_slot], run->line.added[y_slot], run->line.stored[y_slot]})
        CUDA_CHECK(cudaStreamWaitEvent(stream, event, 0));
    if (run->cut.ranges > 1) {
        spmm_product part = p;
        if (run->cut.sums) {
            part.y = run->sums;
            part.y_stride = p.width;
            part.y_narrow = false;
            part.beta = 0;
        }
        if (range > 0) part.beta = 1;
        CHECK(cuda_spmm_blocks(context, job.x->type, false, job.shape, part, run->range_parts, (int)range));
        if (run->cut.sums && run->last_range(step))
            CHECK(cuda_spmm_round(context, job.x->type, p, (const float *)run->sums));
    } else if (run->cut.blocks > 1 && job.state->parts) {
        CHECK(cuda_spmm_blocks(context, job.x->type, job.extreme, job.shape, p, job.state->row_parts,
                               (int)run->block_of(step)));
    } else {
        CHECK(cuda_spmm_launch(context, job.x->type, job.extreme, job.state, job.shape, p));
    }
    CUDA_CHECK(cudaEventRecord(run->line.used[x_slot], stream));
    CUDA_CHECK(cudaEventRecord(run->line.made[y_slot], stream));
    return SP_OK;
}

/* Pinned buffers where pageable memory is streamed, no larger than what goes through them. */
static sp_status make_staging(stream_run *run)
{
    const stream_job &job = run->job;
    const bool x = job.x->space == SP_HOST && !job.x_memory.direct;
    const bool y = job.y->space == SP_HOST && !job.y_memory.direct;
    const bool argument = job.argument && job.y->space == SP_HOST && !job.argument_memory.direct;
    size_t most = run->cut.x > run->cut.y ? run->cut.x : run->cut.y;
    if (argument && run->cut.argument > most) most = run->cut.argument;
    size_t bytes = most < STAGING_BYTES ? most : STAGING_BYTES;
    const size_t row = (size_t)run->cut.columns * sizeof(int64_t); /* the longest: one must fit */
    if (bytes < row) bytes = row;
    if (x || (y && job.beta != 0)) CHECK(stream_need_staging(job.context, bytes, PARTS_IN, &job.state->staging_in));
    if (y || argument) CHECK(stream_need_staging(job.context, bytes, PARTS_OUT, &job.state->staging_out));
    for (stream_staging *staging : {job.state->staging_in, job.state->staging_out})
        if (staging) staging->started = staging->done = 0;
    if (y && job.y->stride == job.y->cols)
        stream_make_pages(job.context, job.y->values,
                   extent(job.y->rows, job.y->cols, job.y->stride, sp_dense_size(job.y->type)));
    return SP_OK;
}

/* What a tile's first block leaves of X. */
static sp_status load_rest(stream_run *run, int64_t first)
{
    for (int block = 1; block < run->cut.blocks; block++) CHECK(transfer(run, first + block, -1, -1, -1));
    return SP_OK;
}

/* One tile, or one range, ahead with X; one step ahead with Y, and with two buffers one behind with Y on its way
 * out. */
static sp_status go(stream_run *run)
{
    sp_context *context = run->job.context;
    const int64_t steps = run->steps(), ahead = run->cut.blocks;
    const bool in_turn = run->cut.x_slots == 1 && ahead > 1; /* no tile comes in before all of the last is used */
    CHECK(make_staging(run));
    CHECK(run->line.open(context));
    CHECK(transfer(run, 0, 0, -1, -1));
    CHECK(load_rest(run, 0));
    for (int64_t step = 0; step < steps; step++) {
        if (sp_interrupted(context)) return sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
        CHECK(multiply(run, step));
        if (run->last_range(step)) plan_store(run, step);
        const int64_t before = step + 1 - run->cut.slots;
        const int64_t next = !in_turn ? step + ahead : run->block_of(step) == ahead - 1 ? step + 1 : steps;
        CHECK(transfer(run, next < steps ? next : -1, step + 1 < steps ? step + 1 : -1,
                       before >= 0 && run->last_range(before) ? before : -1, run->last_range(step) ? step : -1));
        if (in_turn && next < steps) CHECK(load_rest(run, next));
    }
    if (run->cut.slots == 2) CHECK(transfer(run, -1, -1, steps - 1, -1));
    CUDA_CHECK(cudaStreamSynchronize(run->line.out));
    return cuda_finish(context);
}

/* ---- the product ------------------------------------------------------------------------------------------- */

/* The matrix as it would be on the device, for the choice of the kernels' shape. */
static sp_dense on_device(const sp_dense *matrix)
{
    sp_dense there = *matrix;
    if (matrix->space == SP_HOST) {
        there.stride = matrix->cols;
        there.values = NULL;
    }
    return there;
}

sp_status cuda_spmm_stream(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *state,
                           double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument)
{
    const sp_dense there_x = on_device(x), there_y = on_device(y);
    state->aligned.free();
    stream_job job = {};
    stream_cut cut = {};
    job.context = context;
    job.a = a;
    job.state = state;
    job.x = x;
    job.y = y;
    job.argument = argument;
    job.beta = beta;
    job.extreme = spmm_is_extreme(options);
    CHECK(cuda_spmm_describe(context, a, options, state, alpha, &there_x, beta, &there_y, argument, &job.shape,
                             &job.product));
    job.product.keep = SPMM_PASSES;
    CHECK(stream_look_at(context, x->values, extent(x->rows, x->cols, x->stride, sp_dense_size(x->type)),
                         &job.x_memory));
    CHECK(stream_look_at(context, y->values, extent(y->rows, y->cols, y->stride, sp_dense_size(y->type)),
                         &job.y_memory));
    if (argument)
        CHECK(stream_look_at(context, argument, extent(y->rows, y->cols, y->cols, sizeof *argument),
                             &job.argument_memory));
    stream_parts parts(context);
    CHECK(stream_choose_cut(job, &parts, &cut));
    device_array<char> memory;
    CHECK(memory.allocate(context, (int64_t)cut.buffers));
    CUDA_CHECK(cudaStreamSynchronize(cuda_state_of(context)->stream)); /* buffers are there for all streams */
    stream_run run(job, cut, parts.blocks, memory.data);
    return go(&run);
}
