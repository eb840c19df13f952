/* Y = alpha · reduce(A · X) + beta · Y where X, Y or both lie in host memory and do not fit the device.
 *
 * The columns of X and Y are cut into tiles, which are products of their own: sums, means and extremes alike, by
 * the plan's kernels as they are. A tile of X must be there as a whole, for any row of A may ask for any of its
 * rows; a tile of Y is made and goes out in blocks of its rows, each through one of two small buffers, while tile
 * t + 1 of X comes in, so that two tiles of X and a sixteenth of one of Y take the memory. Lanes are dealt, and
 * panels are cut, as for the whole product, so that every sum runs in the order, and has the bits, of the product on
 * the device, unless that is one of copies (spmm.cu), as of rows that do not begin at 16 bytes. Plans that do not go
 * by blocks of rows (panels, ranges of columns) make whole tiles of Y: with two buffers for X and two for Y, or with
 * one each of twice the width, where tile t + 1 of X comes in while tile t of Y goes out and nothing moves while a
 * tile is multiplied. Where memory is short, one tile of X of twice the width takes the place of two: X and Y move in
 * turn then, but by longer rows.
 *
 * With W columns in tiles of at most c, the link moves W + c of them, since nothing goes out while the first tile
 * comes in and nothing comes in while the last one goes out; narrower tiles at both ends change nothing, as all
 * that comes in before a tile and all that goes out behind it remain. Narrow tiles have short rows, though, which
 * move slowly: `estimate` weighs one against the other, and what is left beside whole tiles is shared by the first
 * and the last.
 *
 * Where not even a tile of a sector fits, X is cut by its rows too, which are A's columns (the bidirectional
 * partition of Kim et al., "BiKD", 2026): the tile of Y stays until all ranges of X have been added to it. Sums
 * then run by ranges and may differ in the last places, though not from run to run; extremes are refused.
 *
 * The link is what counts: a number of X or Y takes 4 bytes of 55 GB/s of it, and the products of an entry of A 4
 * bytes of 4 TB/s or more, so that up to some 70 entries a row cost no time. Pinned memory is read and written where
 * it is. Rows of a tile are short and far apart. Copy engines, both at once, move 46, 78 and 101 GB/s of rows of 64,
 * 128 and 256 bytes that begin 512 bytes apart, and 26, 49, 73 and 92 of 64 to 512 bytes that lie in pages of their
 * own, which cost 4 to 5 ns each (H200, PCIe 5); more where what kernels gather from memory has pushed the pages'
 * translations out of the second-level cache: so A and X pass through it (SPMM_PASSES), 52.6 -> 49.4 ms at 1,024
 * columns. Threads move 62 to 65 of rows from 128 bytes on wherever they lie, 38 to 46 of 64: they copy what is short
 * and far apart. Two to eight times as many move 72 to 79, but the product waits for them, 68 -> 70 to 78 ms. Rows of
 * 32 bytes, half a line of the host's caches, come in at 20 and go out at 11. Neither kernels of a quarter of the
 * threads, nor large pages, nor reading a word of each page ahead brings more. Blocks of rows of 8 MB move as fast as
 * the whole.
 *
 * Pageable memory goes through pinned buffers of 4 MB, which the plan keeps, for to pin them takes 17 ms; all threads
 * fill and empty them while the link moves the others. What has come is emptied before more is filled, and the next
 * block is on its way out by then: 62 -> 41 ms for 1 GB each way. Pinning the caller's memory instead would take 50
 * to 75 ms a GB and product.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "spmm/cuda/stream.cuh"

/* Tiles have multiples of so many columns, or a power of two fewer. */
static const int64_t COLUMNS = 32;
enum { SECTOR = 32, LINE = 128 /* bytes */ };
enum { MOST_RANGES = 256 };
/* Staging buffers of each direction. The link writes at half its rate where threads' caches still hold what they read
 * there: 4 MB at 28 to 34 GB/s into two or four buffers in turn, at 53 into eight. */
enum { PARTS_IN = 4, PARTS_OUT = 8, MOST_PARTS = 8 };
/* Of rows of Y, and the rows of A from which on they pay: blocks below 8 KB are not worth a copy. */
enum { ROW_BLOCKS = 32, LEAST_BLOCKED_ROWS = 1024 };
/* Bytes a second each way, both ways busy, of copy engines by bytes of a row, where rows lie close and where they lie
 * far apart; of threads, for each byte of a row, and at most; gathered from the device's memory; by how much a
 * direction is faster alone, and the link; seconds to start a copy. Estimates, for the choice of tiles. */
static const struct {
    size_t row;
    double close, far;
} BY_ENGINES[] = {{128, 37e9, 28e9}, {256, 49e9, 36e9}, {512, 50e9, 48e9}, {768, 50.5e9, 49e9}};
static const double THREADS_BYTE = 0.3e9, THREADS_MOST = 32e9, GATHERS = 4e12, ALONE = 1.5, LINK = 54e9, START = 8e-6;
/* From this pitch on rows lie far apart; copy engines are faster than threads from a row of so many bytes on, close
 * and far; at multiples of which rows should begin for them. */
static const size_t FAR = 2048, LONG_ROW = 128, LONG_FAR_ROW = 256, ENGINE_ALIGNMENT = 256;
static const size_t PAGE_BYTES = 4096, PIECE_BYTES = (size_t)2 << 20 /* of the pages that a thread makes at a time */;
/* Copies on the host take rows that lie side by side in runs of this size. */
static const size_t RUN = 4096;
static const size_t STAGING_BYTES = (size_t)4 << 20;
/* Left to small allocations of the kernels' launches. */
static const size_t SLACK = (size_t)64 << 10;

/* ---- rows between the device and pinned memory ----------------------------------------------------------- */

/* 32 blocks of 256 threads with 4 words of 16 bytes each hold 0.5 MB; the link, 55 GB/s at 2 µs, needs 0.1. */
enum { COPY_BLOCKS = 32, COPY_THREADS = 256, COPY_AHEAD = 4 };

template <typename W>
static __global__ void __launch_bounds__(COPY_THREADS)
    copy_rows(char *to, size_t to_pitch, const char *from, size_t from_pitch, int words, int lanes, int64_t rows)
{
    const int64_t thread = (int64_t)blockIdx.x * COPY_THREADS + threadIdx.x;
    const int64_t group = thread / lanes, groups = (int64_t)gridDim.x * COPY_THREADS / lanes;
    const int lane = (int)(thread % lanes);
    for (int64_t row = group; row < rows; row += COPY_AHEAD * groups)
        for (int at = lane; at < words; at += lanes) {
            W word[COPY_AHEAD] = {};
#pragma unroll
            for (int i = 0; i < COPY_AHEAD; i++)
                if (row + i * groups < rows)
                    word[i] = ((const W *)(from + (size_t)(row + i * groups) * from_pitch))[at];
#pragma unroll
            for (int i = 0; i < COPY_AHEAD; i++)
                if (row + i * groups < rows) ((W *)(to + (size_t)(row + i * groups) * to_pitch))[at] = word[i];
        }
}

template <typename W>
static void start_copy(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t bytes, int64_t rows,
                       cudaStream_t stream)
{
    const int words = (int)(bytes / sizeof(W));
    int lanes = 1;
    while (lanes < 32 && lanes < words) lanes *= 2;
    copy_rows<W><<<COPY_BLOCKS, COPY_THREADS, 0, stream>>>(to, to_pitch, from, from_pitch, words, lanes, rows);
}

/* ---- one tile on its way ---------------------------------------------------------------------------------- */

/* What a matrix outside the device is: memory that the device reaches (pinned, managed, or its own), at what address
 * (NULL: copy engines alone), or pageable. */
struct stream_memory {
    bool direct;
    char *mapped;
};

static size_t extent(int64_t rows, int64_t cols, int64_t stride, size_t size)
{
    return rows > 0 ? ((size_t)(rows - 1) * (size_t)stride + (size_t)cols) * size : 0;
}

static sp_status look_at(sp_context *context, const void *values, size_t bytes, stream_memory *memory)
{
    cudaPointerAttributes first = {}, last = {};
    *memory = {false, nullptr};
    if (bytes == 0) return SP_OK;
    CUDA_CHECK(cudaPointerGetAttributes(&first, values));
    CUDA_CHECK(cudaPointerGetAttributes(&last, (const char *)values + bytes - 1));
    if (first.type == cudaMemoryTypeUnregistered || last.type != first.type) return SP_OK;
    *memory = {true, (char *)first.devicePointer};
    return SP_OK;
}

/* Pinned buffers of one direction, which the plan keeps, used in turn, and when each of them was last moved. */
struct stream_staging {
    char *memory;
    size_t bytes; /* of one */
    int parts;
    int64_t started, done; /* of all copies, that went into buffers, and that left them */
    cudaEvent_t moved[MOST_PARTS];
};

void cuda_spmm_free_staging(sp_context *context, stream_staging *staging)
{
    if (!staging) return;
    for (int i = 0; i < MOST_PARTS; i++)
        if (staging->moved[i]) cudaEventDestroy(staging->moved[i]);
    if (staging->memory) cudaFreeHost(staging->memory);
    cudaGetLastError();
    sp_free(context, staging);
}

static sp_status fill_staging(sp_context *context, stream_staging *staging, size_t bytes, int parts)
{
    for (int i = 0; i < parts; i++)
        CUDA_CHECK(cudaEventCreateWithFlags(&staging->moved[i], cudaEventDisableTiming));
    if (cudaMallocHost((void **)&staging->memory, (size_t)parts * bytes) != cudaSuccess) {
        cudaGetLastError();
        staging->memory = nullptr;
        return sp_fail(context, SP_ERROR_HOST_MEMORY, "%zu bytes of pinned memory could not be allocated",
                       (size_t)parts * bytes);
    }
    staging->bytes = bytes;
    staging->parts = parts;
    return SP_OK;
}

/* Those that there are, if they are large enough. */
static sp_status need_staging(sp_context *context, size_t bytes, int parts, stream_staging **staging)
{
    if (*staging && (*staging)->bytes >= bytes) return SP_OK;
    cuda_spmm_free_staging(context, *staging);
    *staging = nullptr;
    CHECK(sp_calloc(context, 1, sizeof **staging, (void **)staging));
    const sp_status status = fill_staging(context, *staging, bytes, parts);
    if (status == SP_OK) return SP_OK;
    cuda_spmm_free_staging(context, *staging);
    *staging = nullptr;
    return status;
}

/* Rows between the device, where they lie side by side, and the outside. */
struct stream_copy {
    char *device = nullptr, *outside = nullptr;
    size_t pitch = 0, bytes = 0; /* outside, from row to row; of a row */
    int64_t rows = 0;
    stream_memory memory = {};
    size_t offset = 0; /* of `outside` in its matrix */
    int64_t started = 0, done = 0; /* rows */

    bool finished() const { return done >= rows || bytes == 0; }
    bool all_started() const { return started >= rows || bytes == 0; }
};

typedef void (*stream_write)(char *to, const char *from, size_t bytes);

static void write_cached(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }

/* Whole lines past the caches, which would read them first: 1 GB by 16 threads 12 ms for 33. Not what the link takes
 * next: two threads, whose 4 MB the caches hold, take twice as long to it. */
static void write_past(char *to, const char *from, size_t bytes)
{
#ifdef __SSE2__
    enum { LINE = 64, WORD = 16 };
    const size_t before = -(uintptr_t)to % LINE;
    if (bytes >= before + LINE) {
        const size_t end = before + (bytes - before) / LINE * LINE;
        memcpy(to, from, before);
        for (size_t at = before; at < end; at += WORD)
            _mm_stream_si128((__m128i *)(to + at), _mm_loadu_si128((const __m128i *)(from + at)));
        to += end;
        from += end;
        bytes -= end;
    }
#endif
    memcpy(to, from, bytes);
}

/* What was written past the caches comes before all that follows. */
static void end_writing()
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* By as many threads as have 25 KB each or more, some 3 us of work. */
static void copy_on_host(sp_context *context, char *to, size_t to_pitch, const char *from, size_t from_pitch,
                         size_t bytes, int64_t rows, stream_write write)
{
    if (to_pitch == bytes && from_pitch == bytes && bytes < RUN) { /* one run, however short its rows */
        const int64_t group = (int64_t)(RUN / bytes), whole = rows / group * group;
        if (group > 1 && whole > group) {
            const size_t run = (size_t)group * bytes, at = (size_t)whole * bytes;
            copy_on_host(context, to, run, from, run, run, whole / group, write);
            if (rows > whole) memcpy(to + at, from + at, (size_t)(rows - whole) * bytes);
            return;
        }
    }
    const int threads = sp_threads_for(context, rows * (int64_t)bytes * 2);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < rows; i++) write(to + (size_t)i * to_pitch, from + (size_t)i * from_pitch, bytes);
        end_writing();
    }
}

/* Has the system make the pages of memory that nobody has touched, as it often is where results are to go: threads
 * that copy to it would wait for each other where their rows share a page (99 -> 79 ms a product). What pages hold
 * stays as it is. */
static void make_pages(sp_context *context, void *values, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    char *const begin = (char *)((uintptr_t)values / PAGE_BYTES * PAGE_BYTES);
    const int64_t pieces = (int64_t)(bytes / PIECE_BYTES);
    unsigned char there = 1;
    if (mincore(begin + bytes / 2 / PAGE_BYTES * PAGE_BYTES, 1, &there) != 0 || there & 1) return;
    const int threads = sp_threads_for(context, pieces * (int64_t)PIECE_BYTES / 16);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < pieces; i++) /* a wish */
        madvise(begin + (size_t)i * PIECE_BYTES, PIECE_BYTES, MADV_POPULATE_WRITE);
#else
    (void)context, (void)values, (void)bytes;
#endif
}

static bool by_engines(size_t row, size_t pitch) { return row >= (pitch < FAR ? LONG_ROW : LONG_FAR_ROW); }

/* All of it at once, by the device. */
static sp_status move_directly(sp_context *context, stream_copy *copy, bool inwards, cudaStream_t stream)
{
    char *const reached = copy->memory.mapped ? copy->memory.mapped + copy->offset : nullptr;
    char *const to = inwards ? copy->device : reached, *const from = inwards ? reached : copy->device;
    const size_t to_pitch = inwards ? copy->bytes : copy->pitch, from_pitch = inwards ? copy->pitch : copy->bytes;
    const size_t mixed = (size_t)(uintptr_t)to | (size_t)(uintptr_t)from | copy->pitch | copy->bytes;
    copy->started = copy->done = copy->rows;
    if (copy->pitch == copy->bytes || copy->rows == 1)
        return cuda_status(context,
                           cudaMemcpyAsync(inwards ? copy->device : copy->outside,
                                           inwards ? copy->outside : copy->device, copy->bytes * (size_t)copy->rows,
                                           cudaMemcpyDefault, stream),
                           "cudaMemcpyAsync");
    if (!reached || by_engines(copy->bytes, copy->pitch) || mixed % 2)
        return cuda_status(context,
                           cudaMemcpy2DAsync(inwards ? copy->device : copy->outside, to_pitch,
                                             inwards ? copy->outside : copy->device, from_pitch, copy->bytes,
                                             (size_t)copy->rows, cudaMemcpyDefault, stream),
                           "cudaMemcpy2DAsync");
    if (mixed % 16 == 0) start_copy<uint4>(to, to_pitch, from, from_pitch, copy->bytes, copy->rows, stream);
    else if (mixed % 8 == 0) start_copy<uint2>(to, to_pitch, from, from_pitch, copy->bytes, copy->rows, stream);
    else if (mixed % 4 == 0) start_copy<uint32_t>(to, to_pitch, from, from_pitch, copy->bytes, copy->rows, stream);
    else start_copy<uint16_t>(to, to_pitch, from, from_pitch, copy->bytes, copy->rows, stream);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

static int64_t rows_of_part(const stream_staging &staging, const stream_copy &copy, int64_t before)
{
    const int64_t most = (int64_t)(staging.bytes / copy.bytes);
    return copy.rows - before < most ? copy.rows - before : most;
}

/* The next part in: filled here, once the link is done with what the buffer held. */
static sp_status step_in(sp_context *context, stream_copy *copy, stream_staging *staging, cudaStream_t stream)
{
    if (copy->memory.direct) return move_directly(context, copy, true, stream);
    const int part = (int)(staging->done++ % staging->parts);
    const int64_t rows = rows_of_part(*staging, *copy, copy->done);
    char *const buffer = staging->memory + (size_t)part * staging->bytes;
    CUDA_CHECK(cudaEventSynchronize(staging->moved[part]));
    copy_on_host(context, buffer, copy->bytes, copy->outside + (size_t)copy->done * copy->pitch, copy->pitch,
                 copy->bytes, rows, write_cached);
    CUDA_CHECK(cudaMemcpyAsync(copy->device + (size_t)copy->done * copy->bytes, buffer, (size_t)rows * copy->bytes,
                               cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaEventRecord(staging->moved[part], stream));
    copy->done += rows;
    return SP_OK;
}

/* The next parts out, into all buffers that are empty. */
static sp_status start_out(sp_context *context, stream_copy *copy, stream_staging *staging, cudaStream_t stream)
{
    if (copy->memory.direct) return move_directly(context, copy, false, stream);
    while (copy->started < copy->rows && staging->started - staging->done < staging->parts) {
        const int part = (int)(staging->started++ % staging->parts);
        const int64_t rows = rows_of_part(*staging, *copy, copy->started);
        CUDA_CHECK(cudaMemcpyAsync(staging->memory + (size_t)part * staging->bytes,
                                   copy->device + (size_t)copy->started * copy->bytes, (size_t)rows * copy->bytes,
                                   cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaEventRecord(staging->moved[part], stream));
        copy->started += rows;
    }
    return SP_OK;
}

/* Whether the buffer that has been on its way for longest is here. */
static bool has_come(const stream_staging *staging)
{
    const bool here = cudaEventQuery(staging->moved[staging->done % staging->parts]) == cudaSuccess;
    if (!here) cudaGetLastError();
    return here;
}

/* Empties it. */
static sp_status finish_out(sp_context *context, stream_copy *copy, stream_staging *staging)
{
    const int part = (int)(staging->done++ % staging->parts);
    const int64_t rows = rows_of_part(*staging, *copy, copy->done);
    CUDA_CHECK(cudaEventSynchronize(staging->moved[part]));
    copy_on_host(context, copy->outside + (size_t)copy->done * copy->pitch, copy->pitch,
                 staging->memory + (size_t)part * staging->bytes, copy->bytes, copy->bytes, rows, write_past);
    copy->done += rows;
    return SP_OK;
}

/* ---- tiles ----------------------------------------------------------------------------------------------- */

struct stream_job {
    sp_context *context;
    const sp_csr *a;
    spmm_state *state;
    const sp_dense *x, *y;
    int64_t *argument;
    double beta;
    bool extreme;
    spmm_shape shape;
    spmm_product product;
    stream_memory x_memory, y_memory, argument_memory;
};

/* How X and Y are cut, and the bytes of one buffer of each kind; 0 where there is none. Of `ranges` and `blocks` one
 * is 1. */
struct stream_cut {
    int64_t columns, tiles;    /* of a tile; how many */
    int64_t first;             /* columns of the first tile, at most as many */
    int64_t range_rows;        /* of X */
    int64_t block_rows;        /* of Y */
    int64_t part_rows;         /* of X that come in while a block is made */
    int ranges, blocks;
    int x_slots, slots; /* buffers of X; of Y and of arguments */
    size_t x, y, argument, sums;
    size_t buffers, bytes; /* all of them; with what launches allocate */
};

static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* What is left beside whole tiles is shared by the first and the last, so that neither is narrow: 1,024 columns are
 * 128, four times 192 and 128. */
static int64_t columns_of_first(const stream_job &job, int64_t columns)
{
    const int64_t unit = (int64_t)(ENGINE_ALIGNMENT / sp_dense_size(job.x->type));
    const int64_t tiles = (job.x->cols + columns - 1) / columns, rest = job.x->cols - (tiles - 2) * columns;
    const int64_t half = (rest / 2 + unit - 1) / unit * unit;
    return tiles > 2 && half < columns ? half : columns;
}

static int64_t column_of(const stream_cut &cut, int64_t tile)
{
    return tile > 0 ? cut.first + (tile - 1) * cut.columns : 0;
}

static int64_t columns_of(const stream_cut &cut, int64_t width, int64_t tile)
{
    const int64_t left = width - column_of(cut, tile), most = tile > 0 ? cut.columns : cut.first;
    return left < most ? left : most;
}

/* What a launch keeps of rows of several blocks, at most: 8 bytes a column and block for sums, 24 for extremes. */
static size_t carry_bytes(const stream_job &job, const spmm_blocks *parts, int64_t columns)
{
    const int64_t span = job.shape.columns(), tiles = (columns + span - 1) / span;
    int64_t most = 0;
    for (int bin = 0; parts && parts->edges && bin < parts->bins; bin++) {
        const int64_t partial = parts->edges[2 * bin + 1] - parts->edges[2 * bin];
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
           (!state->parts || state->parts->bins == 1);
}

/* Seconds that copies of a tile's rows take, both ways busy or one alone. */
static double seconds_of(size_t size, int64_t stride, int64_t rows, int64_t columns, int copies, bool alone)
{
    const size_t row = (size_t)columns * size, pitch = (size_t)stride * size;
    double rate = fmin((double)row * THREADS_BYTE, THREADS_MOST);
    if (by_engines(row, pitch))
        for (const auto &point : BY_ENGINES)
            if (row >= point.row && (row <= ENGINE_ALIGNMENT || row % ENGINE_ALIGNMENT == 0 || &point == BY_ENGINES))
                rate = pitch < FAR ? point.close : point.far;
    if (alone) rate = fmin(ALONE * rate, LINK);
    return (double)rows * (double)row / rate + copies * START;
}

/* Seconds that a product takes, tile after tile: when X is there, when the tile is multiplied and when Y is gone. */
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
    if (!job.extreme && job.state->panels) return LINE / (int64_t)sp_dense_size(job.x->type);
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

/* A partition that ends with its scope. */
struct stream_parts {
    sp_context *context;
    spmm_blocks *blocks = nullptr;

    explicit stream_parts(sp_context *owner) : context(owner) {}
    stream_parts(const stream_parts &) = delete;
    stream_parts &operator=(const stream_parts &) = delete;
    ~stream_parts() { free(); }
    void free()
    {
        cuda_spmm_free_blocks(context, blocks);
        blocks = nullptr;
    }
};

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

static sp_status choose_cut(const stream_job &job, stream_parts *parts, stream_cut *cut)
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
        for (int ranges = 2; ranges <= MOST_RANGES && ranges <= job.a->cols; ranges *= 2) {
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

/* ---- the pipeline ------------------------------------------------------------------------------------------ */

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
        if (!copy.all_started()) CHECK(start_out(context, &copy, run->job.state->staging_out, run->line.out));
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
        if (next_out && (!next_in || has_come(staging))) {
            CHECK(finish_out(context, next_out, staging));
            continue;
        }
        if (next_in == &in[1] && in[1].done == 0)
            CUDA_CHECK(cudaStreamWaitEvent(line->in, line->stored[run->y_slot(y_step)], 0));
        CHECK(step_in(context, next_in, run->job.state->staging_in, line->in));
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
    if (x || (y && job.beta != 0)) CHECK(need_staging(job.context, bytes, PARTS_IN, &job.state->staging_in));
    if (y || argument) CHECK(need_staging(job.context, bytes, PARTS_OUT, &job.state->staging_out));
    for (stream_staging *staging : {job.state->staging_in, job.state->staging_out})
        if (staging) staging->started = staging->done = 0;
    if (y && job.y->stride == job.y->cols)
        make_pages(job.context, job.y->values,
                   extent(job.y->rows, job.y->cols, job.y->stride, sp_dense_size(job.y->type)));
    return SP_OK;
}

/* What a tile's first block leaves of X. */
static sp_status load_rest(stream_run *run, int64_t first)
{
    for (int block = 1; block < run->cut.blocks; block++) CHECK(transfer(run, first + block, -1, -1, -1));
    return SP_OK;
}

/* One tile, or one range, ahead with X; one step ahead with Y, and with two buffers one behind with what goes out. */
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
    state->lines.free();
    stream_job job = {};
    stream_cut cut = {};
    job.context = context;
    job.a = a;
    job.state = state;
    job.x = x;
    job.y = y;
    job.argument = argument;
    job.beta = beta;
    job.extreme = options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
    CHECK(cuda_spmm_describe(context, a, options, state, alpha, &there_x, beta, &there_y, argument, &job.shape,
                             &job.product));
    job.product.keep = SPMM_PASSES;
    CHECK(look_at(context, x->values, extent(x->rows, x->cols, x->stride, sp_dense_size(x->type)), &job.x_memory));
    CHECK(look_at(context, y->values, extent(y->rows, y->cols, y->stride, sp_dense_size(y->type)), &job.y_memory));
    if (argument)
        CHECK(look_at(context, argument, extent(y->rows, y->cols, y->cols, sizeof *argument), &job.argument_memory));
    stream_parts parts(context);
    CHECK(choose_cut(job, &parts, &cut));
    device_array<char> memory;
    CHECK(memory.allocate(context, (int64_t)cut.buffers));
    CUDA_CHECK(cudaStreamSynchronize(cuda_state_of(context)->stream)); /* buffers are there for all streams */
    stream_run run(job, cut, parts.blocks, memory.data);
    return go(&run);
}
