/* Rows of X and Y between the device and host memory: see stream_copy.cu. */
#ifndef SPARSE_CUDA_SPMM_STREAM_COPY_CUH
#define SPARSE_CUDA_SPMM_STREAM_COPY_CUH

#include "device/common.cuh"

/* Staging buffers of each direction. The link writes at half its rate where threads' caches still hold what they read
 * there: 4 MB at 28 to 34 GB/s into two or four buffers in turn, at 53 into eight. */
enum { PARTS_IN = 4, PARTS_OUT = 8, MOST_PARTS = 8 };
/* From this pitch on rows lie far apart. */
static const size_t FAR = 2048;

/* What a matrix outside the device is: memory that the device reaches (pinned, managed, or its own), at what address
 * (NULL: copy engines alone), or pageable. */
struct stream_memory {
    bool direct;
    char *mapped;
};

static inline size_t extent(int64_t rows, int64_t cols, int64_t stride, size_t size)
{
    return rows > 0 ? ((size_t)(rows - 1) * (size_t)stride + (size_t)cols) * size : 0;
}

/* Pinned buffers of one direction, which the plan keeps, used in turn, and when each of them was last moved. */
struct stream_staging {
    char *memory;
    size_t bytes; /* of one */
    int parts;
    int64_t started, done; /* of all copies, that went into buffers, and that left them */
    cudaEvent_t moved[MOST_PARTS];
};

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

/* What memory `values` lie in; `bytes` of them. */
sp_status stream_look_at(sp_context *context, const void *values, size_t bytes, stream_memory *memory);
/* *staging becomes `parts` buffers of `bytes` each, unless it is as large already. */
sp_status stream_need_staging(sp_context *context, size_t bytes, int parts, stream_staging **staging);
/* Has the system make the pages of memory that nobody has touched. */
void stream_make_pages(sp_context *context, void *values, size_t bytes);
/* Whether copy engines are faster than threads for rows of this many bytes, `pitch` apart. */
bool stream_by_engines(size_t row, size_t pitch);
/* The next part in. */
sp_status stream_copy_in(sp_context *context, stream_copy *copy, stream_staging *staging, cudaStream_t stream);
/* The next parts out, into all buffers that are empty. */
sp_status stream_start_out(sp_context *context, stream_copy *copy, stream_staging *staging, cudaStream_t stream);
/* Whether the buffer that has been on its way for longest is here. */
bool stream_has_come(const stream_staging *staging);
/* Empties that buffer. */
sp_status stream_finish_out(sp_context *context, stream_copy *copy, stream_staging *staging);

#endif
