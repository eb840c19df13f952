/* Y = alpha · reduce(A · X) + beta · Y by ranges and tiles of columns (Kim et al., "BiKD", 2026, Algorithms 3 and 4).
 *
 * A launch multiplies one range of A's columns, which are X's rows, with one tile of X's columns, so that the rows of X
 * that it gathers stay in the second-level cache. The first range writes Y, the others add to it: that costs 8 bytes a
 * number of Y and range; gathers run 4 to 5 TB/s faster. A's entries are not moved: those of a row within
 * a range are contiguous, and are found once, when the plan is made.
 *
 * Where this differs from the paper: blocks have equal work (blocks.cu), where the paper has a block of threads a row.
 * Y is read when its sum is written, where the paper reads it ahead, which pays if a block has one row and nothing else
 * to wait for.
 */
#include "spmm/cuda/packet.cuh"
#include "spmm/cuda/spmm.cuh"

/* Rounds sums and adds them to Y; a group of 2^shift threads takes a row. */
template <typename T>
static __global__ void __launch_bounds__(256)
    round_sums(int64_t rows, int width, int shift, const float *sums, int64_t sums_stride, T *y, int64_t stride,
               float beta)
{
    const int64_t row = ((int64_t)blockIdx.x * 256 + threadIdx.x) >> shift;
    if (row >= rows) return;
    for (int at = threadIdx.x & ((1 << shift) - 1); at < width; at += 1 << shift) {
        T *to = y + row * stride + at;
        const float sum = sums[row * sums_stride + at];
        narrow(beta != 0 ? fused(beta, wide(*to), sum) : sum, to);
    }
}

static sp_status multiply(sp_context *context, sp_dense_type type, const spmm_shape &shape,
                          const spmm_product &product, spmm_blocks *parts)
{
    const size_t x_size = type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2;
    const size_t y_size = type == SP_DENSE_F64 ? 8 : 4;
    for (int32_t first = 0; first < product.width; first += shape.columns())
        for (int range = 0; range < parts->ranges; range++) {
            spmm_product tile = product;
            tile.x = (const char *)product.x + (size_t)first * x_size;
            tile.y = (char *)product.y + (size_t)first * y_size;
            tile.width = min(product.width - first, shape.columns());
            tile.tiles = 1;
            if (range > 0) tile.beta = 1;
            CHECK(cuda_spmm_blocks(context, type, false, shape, tile, parts, range));
        }
    return SP_OK;
}

sp_status cuda_spmm_round(sp_context *context, sp_dense_type type, const spmm_product &product, const float *sums,
                          int64_t stride)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    int shift = 0;
    while (shift < 5 && 1 << shift < product.width) shift++;
    const unsigned blocks = (unsigned)(((product.rows << shift) + 255) / 256);
    const auto launch = [&](auto *y) {
        round_sums<<<blocks, 256, 0, stream>>>(product.rows, product.width, shift, sums,
                                               stride ? stride : product.width, y, product.y_stride,
                                               (float)product.beta);
    };
    if (!product.y_narrow) launch((float *)product.y);
    else if (type == SP_DENSE_F16) launch((__half *)product.y);
    else launch((__nv_bfloat16 *)product.y);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

sp_status cuda_spmm_ranges(sp_context *context, sp_dense_type type, const spmm_shape &shape,
                         const spmm_product &product, spmm_blocks *parts)
{
    if (!product.y_narrow) return multiply(context, type, shape, product, parts);
    device_array<float> sums;
    CHECK(sums.allocate(context, product.rows * product.width));
    spmm_product made = product;
    made.y = sums.data;
    made.y_stride = product.width;
    made.y_narrow = false;
    made.beta = 0;
    CHECK(multiply(context, type, shape, made, parts));
    return cuda_spmm_round(context, type, product, sums.data);
}
