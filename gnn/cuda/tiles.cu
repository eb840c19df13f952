/* Y += diag(r)·T·diag(c)·X on tensor cores, T ones and zeros in tiles of 128 rows and 64 columns (tiles.c), X f32
 * or bf16, Y f32 or of X's type.
 *
 * X in f32 is scaled by a power of two so that the largest number is below 2^15, and is then the sum of two f16
 * numbers: 22 bits of each number down to 2^-18 of the largest, below that an error of 2^-40 of the largest. Ones are
 * exact; sums are f32 (tensor cores truncate instead of rounding). X in bf16 is scaled, rounded again and multiplied
 * once, as it has the exponents of f32. A block takes a panel of 128 rows and 64 columns
 * of X, its eight warps 32 rows and 32 columns each. For each tile it copies 64 rows of both halves of X into shared
 * memory, three tiles ahead. T's ones are bits in the order of the registers (a shift, an AND and a multiplication
 * for two numbers), 1 KB a tile. A tile takes 2 · 8,192 · 64 multiplications, reads 16 KB of X from the second-level
 * cache, and replaces up to 8,192 gathers of 256 bytes. H200, 132,600 tiles, 256 columns: 2.7 ms. Left out
 * (SPARSE_WITHOUT=gnn-tiles), sparse x dense products gather all entries.
 */
#include <cuda_fp16.h>

#include "backend.cuh"

/* 128 columns a block, two blocks a multiprocessor: 2.7 to 4.2 ms. Three stages and four blocks: twice as long on 64
 * columns. */
enum { TILE_THREADS = 256, COLUMNS = 64, STAGES = 4, RESIDENT = 3 };
enum { SEGMENTS = COLUMNS / 8, PAIRS = COLUMNS / 32 }; /* of 8 columns a row of X; of 16 columns a warp */
enum { PLANE = GNN_TILE_COLS * COLUMNS * 2 };

/* X is one plane of bf16 numbers, or two of f16. */
template <typename S> static constexpr int PLANES = sizeof(S) == 2 ? 1 : 2;
template <typename S> static constexpr int STAGE = PLANES<S> * PLANE;
template <typename S> static constexpr unsigned ONES = sizeof(S) == 2 ? 0x3f80u : 0x3c00u;

/* ---- X in two halves ------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    find_largest(const float *x, int64_t rows, int width, int64_t stride, const float *c, unsigned *largest)
{
    float most = 0;
    for (int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
        const float scale = c ? __ldg(c + i) : 1.0f;
        for (int j = threadIdx.x; j < width; j += THREADS) most = fmaxf(most, fabsf(x[i * stride + j] * scale));
    }
    for (int apart = 16; apart; apart /= 2) most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, apart));
    if (threadIdx.x % 32 == 0) atomicMax(largest, __float_as_uint(most));
}

/* The power of two that brings the largest number below 2^15. */
static __device__ __forceinline__ float scale_for(unsigned largest)
{
    const int up = 14 - ((int)(largest >> 23) - 127);
    return __uint_as_float((unsigned)(127 + min(max(up, -126), 126)) << 23);
}

/* Eight numbers a thread; columns from `width` and rows from `rows` on are zeros. */
static __global__ void __launch_bounds__(THREADS)
    split_rows(const float *x, int64_t rows, int width, int64_t stride, const float *c, const unsigned *largest,
               int64_t whole_rows, int padded, uint16_t *high, uint16_t *low)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = at / (padded / 8);
    const int j = (int)(at % (padded / 8)) * 8;
    if (i >= whole_rows) return;
    const bool there = i < rows;
    const float scale = scale_for(*largest) * (there && c ? __ldg(c + i) : 1.0f);
    pack<__half, 8> upper, lower;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float number = there && j + k < width ? x[i * stride + j + k] * scale : 0.0f;
        upper.part[k] = __float2half_rn(number);
        lower.part[k] = __float2half_rn(number - __half2float(upper.part[k]));
    }
    *(pack<__half, 8> *)(high + i * padded + j) = upper;
    *(pack<__half, 8> *)(low + i * padded + j) = lower;
}

/* The same for bf16: X scaled by rows. */
static __global__ void __launch_bounds__(THREADS)
    scale_rows(const dense_view<const __nv_bfloat16> x, int64_t rows, int width, const float *c, int64_t whole_rows,
               int padded, const dense_view<__nv_bfloat16> scaled)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = at / (padded / 8);
    const int j = (int)(at % (padded / 8)) * 8;
    if (i >= whole_rows) return;
    const bool there = i < rows;
    const float scale = there && c ? __ldg(c + i) : 1.0f;
    pack<float, 8> numbers;
#pragma unroll
    for (int k = 0; k < 8; k++)
        numbers.part[k] = there && j + k < width ? number_from(x.values + i * x.stride + j + k) * scale : 0.0f;
    scaled.store(i, j, numbers);
}

/* ---- tiles ----------------------------------------------------------------------------------------------- */

#if __CUDA_ARCH__ >= 800 /* on others the engine takes no tiles */

static __device__ __forceinline__ void copy_16(unsigned to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

static __device__ __forceinline__ void end_of_copies() { asm volatile("cp.async.commit_group;"); }

template <int LEFT> static __device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* 16 rows of X and 16 columns, as the right operands of two products. */
static __device__ __forceinline__ void load_right(unsigned from, unsigned right[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(right[0]), "=r"(right[1]), "=r"(right[2]), "=r"(right[3])
                 : "r"(from));
}

template <typename S>
static __device__ __forceinline__ void add_product(float sums[4], const unsigned left[4], unsigned right0,
                                                   unsigned right1)
{
    if (sizeof(S) == 2) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
        return;
    }
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

#else
static __device__ __forceinline__ void copy_16(unsigned, const void *) {}
static __device__ __forceinline__ void end_of_copies() {}
template <int> static __device__ __forceinline__ void wait_for_copies() {}
static __device__ __forceinline__ void load_right(unsigned, unsigned *) {}
template <typename> static __device__ __forceinline__ void add_product(float *, const unsigned *, unsigned, unsigned) {}
#endif

template <typename S, typename Y> struct tile_job {
    const int64_t *start;
    const int32_t *column;
    const uint32_t *bits;
    const uint16_t *high, *low;
    int padded, width;
    const unsigned *largest; /* NULL: X was not scaled as a whole */
    const float *r;
    Y *y;
    int64_t stride, rows;
};

/* The place of 8 numbers of a row of X in shared memory. Rows are shifted so that eight rows use all banks. */
static __device__ __forceinline__ unsigned segment_place(int row, int segment)
{
    return (unsigned)(row * COLUMNS * 2 + (segment ^ (row & 7)) * 16);
}

template <typename S, typename Y>
static __device__ __forceinline__ void fetch_rows(const tile_job<S, Y> &job, int32_t column, int col0, unsigned to)
{
#pragma unroll
    for (int k = 0; k < GNN_TILE_COLS * SEGMENTS / TILE_THREADS; k++) {
        const int at = k * TILE_THREADS + threadIdx.x, row = at / SEGMENTS, segment = at % SEGMENTS;
        const int64_t from = ((int64_t)column * GNN_TILE_COLS + row) * job.padded + col0 + segment * 8;
        copy_16(to + segment_place(row, segment), job.high + from);
        if (PLANES<S> == 2) copy_16(to + PLANE + segment_place(row, segment), job.low + from);
    }
}

/* Adds a tile to a warp's sums; `ones` are the bits of its 32 rows. */
template <typename S>
static __device__ __forceinline__ void add_tile(float sums[2][2 * PAIRS][4], const uint32_t ones[2], unsigned from,
                                                int side)
{
    const int lane = threadIdx.x % 32, row = (lane & 7) + ((lane >> 3) & 1) * 8, right_half = lane >> 4;
#pragma unroll
    for (int s = 0; s < GNN_TILE_COLS / 16; s++) {
        unsigned left[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int k = 0; k < 4; k++) left[m][k] = (ones[m] >> (4 * s + k) & 0x00010001u) * ONES<S>;
#pragma unroll
        for (int p = 0; p < PAIRS; p++) {
            const unsigned at = from + segment_place(16 * s + row, side * (COLUMNS / 16) + 2 * p + right_half);
            unsigned high[4], low[4];
            load_right(at, high);
            if (PLANES<S> == 2) load_right(at + PLANE, low);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                add_product<S>(sums[m][2 * p], left[m], high[0], high[1]);
                add_product<S>(sums[m][2 * p + 1], left[m], high[2], high[3]);
                if (PLANES<S> == 1) continue;
                add_product<S>(sums[m][2 * p], left[m], low[0], low[1]);
                add_product<S>(sums[m][2 * p + 1], left[m], low[2], low[3]);
            }
        }
    }
}

template <typename S, typename Y>
static __device__ __forceinline__ void add_to_rows(const tile_job<S, Y> &job, const float sums[2][2 * PAIRS][4],
                                                   int64_t first, int col0)
{
    const int lane = threadIdx.x % 32;
    const float back = job.largest ? 1.0f / scale_for(*job.largest) : 1.0f;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int below = 0; below < 2; below++) {
            const int64_t row = first + m * 16 + below * 8 + lane / 4;
            if (row >= job.rows) continue;
            const float factor = back * (job.r ? __ldg(job.r + row) : 1.0f);
            Y *y = job.y + row * job.stride;
#pragma unroll
            for (int n = 0; n < 2 * PAIRS; n++) {
                const int col = col0 + n * 8 + lane % 4 * 2;
#pragma unroll
                for (int k = 0; k < 2; k++)
                    if (col + k < job.width)
                        number_to(y + col + k, number_from(y + col + k) + factor * sums[m][n][2 * below + k]);
            }
        }
}

template <typename S, typename Y>
static __global__ void __launch_bounds__(TILE_THREADS, RESIDENT) multiply_panels(const tile_job<S, Y> job)
{
    extern __shared__ __align__(128) char memory[];
    const unsigned base = (unsigned)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, above = warp % 4, side = warp / 4, col0 = (int)blockIdx.y * COLUMNS;
    const int64_t panel = blockIdx.x, first = job.start[panel];
    const int count = (int)(job.start[panel + 1] - first);
    const uint32_t *bits = job.bits + first * GNN_TILE_WORDS + above * 64 + threadIdx.x % 32;
    float sums[2][2 * PAIRS][4] = {};
    if (count == 0) return;
    auto fetch = [&](int i) {
        if (i < count) fetch_rows(job, __ldg(job.column + first + i), col0, base + i % STAGES * STAGE<S>);
        end_of_copies();
    };
    for (int i = 0; i < STAGES - 1; i++) fetch(i);
    uint32_t ones[2] = {__ldg(bits), __ldg(bits + 32)}, next[2] = {0, 0};
    for (int i = 0; i < count; i++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads(); /* all threads have copied tile i and have used the one before */
        fetch(i + STAGES - 1);
        if (i + 1 < count) {
            next[0] = __ldg(bits + (int64_t)(i + 1) * GNN_TILE_WORDS);
            next[1] = __ldg(bits + (int64_t)(i + 1) * GNN_TILE_WORDS + 32);
        }
        add_tile<S>(sums, ones, base + i % STAGES * STAGE<S>, side);
        ones[0] = next[0];
        ones[1] = next[1];
    }
    add_to_rows(job, sums, panel * GNN_TILE_ROWS + above * 32, col0 + side * (COLUMNS / 2));
}

/* ---- the product ----------------------------------------------------------------------------------------- */

/* Y += ... for as many columns as the work space holds. */
template <typename S, typename Y>
static sp_status multiply_columns(gnn_engine *engine, const gnn_tiles *tiles, const float *r, const float *c,
                                  const sp_dense *x, const sp_dense *y)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t padded = gnn_tile_width(x->cols), rows = ceil_div(x->rows, GNN_TILE_COLS) * GNN_TILE_COLS;
    const int64_t blocks = ceil_div(rows * (padded / 8), THREADS);
    uint16_t *high = (uint16_t *)tiles->halves, *low = high + rows * padded;
    const bool half = sizeof(S) == 2;
    const tile_job<S, Y> job = {tiles->start, tiles->column, tiles->bits, high, low, (int)padded, (int)x->cols,
                                half ? NULL : tiles->largest, r, (Y *)y->values, y->stride, y->rows};
    const dim3 grid((unsigned)tiles->panels, (unsigned)(padded / COLUMNS));
    if (half) {
        const dense_view<const __nv_bfloat16> from = {(const __nv_bfloat16 *)x->values, x->stride};
        const dense_view<__nv_bfloat16> scaled = {(__nv_bfloat16 *)high, padded};
        CHECK(launch(engine, scale_rows, blocks, from, x->rows, (int)x->cols, c, rows, (int)padded, scaled));
    } else {
        const float *numbers = (const float *)x->values;
        CUDA_CHECK(cudaMemsetAsync(tiles->largest, 0, sizeof *tiles->largest, state->stream));
        CHECK(launch(engine, find_largest, state->blocks, numbers, x->rows, (int)x->cols, x->stride, c,
                     tiles->largest));
        CHECK(launch(engine, split_rows, blocks, numbers, x->rows, (int)x->cols, x->stride, c, tiles->largest, rows,
                     (int)padded, high, low));
    }
    const auto kernel = multiply_panels<S, Y>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * STAGE<S>));
    return launch_grid(engine, false, kernel, grid, TILE_THREADS, STAGES * STAGE<S>, job);
}

sp_status gnn_cuda_multiply_tiles(gnn_engine *engine, const gnn_tiles *tiles, const float *r, const float *c,
                                  const sp_dense *x, sp_dense *y)
{
    for (int64_t first = 0; first < x->cols; first += tiles->padded) {
        sp_dense some = *x, sums = *y;
        some.cols = sums.cols = x->cols - first < tiles->padded ? x->cols - first : tiles->padded;
        some.values = (char *)x->values + first * (int64_t)number_size(x->type);
        sums.values = (char *)y->values + first * (int64_t)number_size(y->type);
        const auto run = x->type == SP_DENSE_F32   ? multiply_columns<float, float>
                         : y->type == SP_DENSE_F32 ? multiply_columns<__nv_bfloat16, float>
                                                   : multiply_columns<__nv_bfloat16, __nv_bfloat16>;
        CHECK(run(engine, tiles, r, c, &some, &sums));
    }
    return SP_OK;
}

/* Only with machine code that has the instructions; code made of PTX for Turing lacks them. */
sp_status gnn_cuda_open_tiles(gnn_engine *engine)
{
    cudaFuncAttributes code;
    CUDA_CHECK(cudaFuncGetAttributes(&code, multiply_panels<float, float>));
    engine->takes_tiles = !left_out("gnn-tiles") && code.ptxVersion >= 80;
    return SP_OK;
}
