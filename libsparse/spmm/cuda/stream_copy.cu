/* Rows of X and Y between the device and host memory.
 *
 * The link is what counts: a number of X or Y takes 4 bytes of 55 GB/s of it, and the products of an entry of A 4
 * bytes of 4 TB/s or more, so that up to some 70 entries a row cost no time. Pinned memory is read and written where
 * it is. Rows of a tile are short and far apart. Copy engines, both at once, move 46, 78 and 101 GB/s of rows of 64,
 * 128 and 256 bytes that begin 512 bytes apart, and 26, 49, 73 and 92 of 64 to 512 bytes that lie in pages of their
 * own, which cost 4 to 5 ns each (H200, PCIe 5); more where what kernels gather from memory has pushed the pages'
 * translations out of the second-level cache: so A and X pass through it (SPMM_PASSES), 52.6 -> 49.4 ms at 1,024
 * columns. Threads move 62 to 65 of rows from 128 bytes on wherever they lie, 38 to 46 of 64: they copy what is short
 * and far apart. Two to eight times as many move 72 to 79, but the product waits for them, 68 -> 70 to 78 ms. Rows of
 * 32 bytes, half a line of the host's caches, come in at 20 and go out at 11. Blocks of rows of 8 MB move as fast as
 * the whole.
 *
 * Pageable memory goes through pinned buffers of 4 MB, which the plan keeps, since pinning them takes 17 ms. All
 * threads fill and empty them while the link moves the others. What has come is emptied before more is filled, and the
 * next block is on its way out by then: 62 -> 41 ms for 1 GB each way. Pinning the caller's memory instead would take
 * 50 to 75 ms a GB and product.
 */
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "spmm/cuda/stream_copy.cuh"

/* Copy engines are faster than threads from a row of this many bytes on, where rows lie close and where they lie far
 * apart. */
static const size_t LONG_ROW = 128, LONG_FAR_ROW = 256;
static const size_t PAGE_BYTES = 4096, PIECE_BYTES = (size_t)2 << 20 /* of the pages that a thread makes at a time */;
/* Copies on the host take rows that lie side by side in runs of this size. */
static const size_t RUN = 4096;

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

/* ---- staging buffers --------------------------------------------------------------------------------------- */

sp_status stream_look_at(sp_context *context, const void *values, size_t bytes, stream_memory *memory)
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
sp_status stream_need_staging(sp_context *context, size_t bytes, int parts, stream_staging **staging)
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

typedef void (*stream_write)(char *to, const char *from, size_t bytes);

static void write_cached(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }

/* Whole lines past the caches, which would read them first: 1 GB by 16 threads 12 ms for 33. Not what the link takes
 * next: two threads, whose 4 MB the caches hold, take twice as long to it. */
static void write_past(char *to, const char *from, size_t bytes)
{
#ifdef __SSE2__
    enum { LINE_BYTES = 64, WORD = 16 };
    const size_t before = -(uintptr_t)to % LINE_BYTES;
    if (bytes >= before + LINE_BYTES) {
        const size_t end = before + (bytes - before) / LINE_BYTES * LINE_BYTES;
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
void stream_make_pages(sp_context *context, void *values, size_t bytes)
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

bool stream_by_engines(size_t row, size_t pitch) { return row >= (pitch < FAR ? LONG_ROW : LONG_FAR_ROW); }

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
    if (!reached || stream_by_engines(copy->bytes, copy->pitch) || mixed % 2)
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

/* The next part in: filled here, once the link is done with the buffer. */
sp_status stream_copy_in(sp_context *context, stream_copy *copy, stream_staging *staging, cudaStream_t stream)
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
sp_status stream_start_out(sp_context *context, stream_copy *copy, stream_staging *staging, cudaStream_t stream)
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
bool stream_has_come(const stream_staging *staging)
{
    const bool here = cudaEventQuery(staging->moved[staging->done % staging->parts]) == cudaSuccess;
    if (!here) cudaGetLastError();
    return here;
}

/* Empties it. */
sp_status stream_finish_out(sp_context *context, stream_copy *copy, stream_staging *staging)
{
    const int part = (int)(staging->done++ % staging->parts);
    const int64_t rows = rows_of_part(*staging, *copy, copy->done);
    CUDA_CHECK(cudaEventSynchronize(staging->moved[part]));
    copy_on_host(context, copy->outside + (size_t)copy->done * copy->pitch, copy->pitch,
                 staging->memory + (size_t)part * staging->bytes, copy->bytes, copy->bytes, rows, write_past);
    copy->done += rows;
    return SP_OK;
}
