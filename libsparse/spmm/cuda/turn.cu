/* Dense matrices from one layout to the other on a CUDA device: squares of 32 x 32 values pass through shared memory,
 * so that both arrays are read and written line by line. */
#include "device/common.cuh"

enum { EDGE = 32, TURN_ROWS = 8 }; /* a thread has EDGE / TURN_ROWS values of a square */

/* to[j * to_stride + i] = from[i * from_stride + j] for `lines` times `length` values. */
template <typename T>
static __global__ void __launch_bounds__(EDGE *TURN_ROWS)
    turn(int64_t lines, int64_t length, const T *from, int64_t from_stride, T *to, int64_t to_stride)
{
    __shared__ T square[EDGE][EDGE + 1];
    const int64_t across = (length + EDGE - 1) / EDGE;
    const int64_t i0 = blockIdx.x / across * EDGE, j0 = blockIdx.x % across * EDGE;
    const int x = threadIdx.x % EDGE, y = threadIdx.x / EDGE;
    for (int i = y; i < EDGE; i += TURN_ROWS)
        if (i0 + i < lines && j0 + x < length) square[i][x] = from[(i0 + i) * from_stride + j0 + x];
    __syncthreads();
    for (int j = y; j < EDGE; j += TURN_ROWS)
        if (j0 + j < length && i0 + x < lines) to[(j0 + j) * to_stride + i0 + x] = square[x][j];
}

template <typename T> static sp_status turn_values(sp_context *context, const sp_dense *from, sp_dense *to)
{
    const int64_t lines = sp_dense_lines(from), length = sp_dense_length(from);
    const int64_t squares = ceil_div(lines, EDGE) * ceil_div(length, EDGE);
    if (squares > INT32_MAX)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "a dense matrix of %lld x %lld by columns", (long long)from->rows,
                       (long long)from->cols);
    turn<<<(unsigned)squares, EDGE * TURN_ROWS, 0, cuda_state_of(context)->stream>>>(
        lines, length, (const T *)from->values, from->stride, (T *)to->values, to->stride);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

sp_status sp_cuda_turn(sp_context *context, const sp_dense *from, sp_dense *to)
{
    switch (sp_dense_size(from->type)) {
    case 2: return turn_values<uint16_t>(context, from, to);
    case 4: return turn_values<uint32_t>(context, from, to);
    }
    return turn_values<uint64_t>(context, from, to);
}
