/* C = alpha · op(A)·B + beta · C in f32 where C has few columns, 8 (A·B) or 16 (Aᵀ·B) at most: A is what takes time,
 * and is read once. It is multiplied on tensor cores as three products of TF32 numbers (11 bits): every
 * number is the sum of two of them, as in multiply_split.cu, which has f16 ones.
 *
 * A·B: A's rows stream through shared memory, ROWS at a time in STAGES buffers, without passing registers: 64 to 130
 * KB are on their way to a multiprocessor. Of each row a warp multiplies its share of the inner dimension, for which
 * it keeps B split in registers; the shares of all warps are added up through shared memory. Aᵀ·B: a warp takes WIDE of
 * A's columns and a block a part of the rows, which go straight to the registers, and no warp waits for another; what
 * blocks have summed is added up by a second launch, always in the same order. Sums of a share, or of some rows, are
 * formed by tensor cores, which cut off, and those by f32 additions.
 *
 * H200, 89,250 rows: 256 columns times 7 take 0.030 ms where multiply_split.cu takes 0.044 and a copy 0.022. (500
 * columns)ᵀ times 16 take 0.057 ms where that takes 0.066; 500 columns times 16 do not gain: 0.056 for 0.055.
 */
#include "backend.cuh"

/* ROOM: from row to row of B, and of shares of C, so that four rows lie in all banks. */
enum { WARPS = THREADS / 32, ROWS = 16, STAGES = 3, MOST_COLS = 8, ROOM = 24 };

struct narrow_product {
    const float *a, *b;
    float *c, *partial;
    int64_t a_rows, a_stride, b_stride, c_stride;
    int a_cols, cols, parts;
    float alpha, beta;
};

/* A warp's share of A's columns is 16 · SHARE. */
template <int SHARE> struct room {
    static constexpr int COLS = 16 * SHARE * WARPS, BLOCKS = SHARE <= 4 ? 2 : 1;
    /* From row to row: rows that are read side by side, 64 bytes of each, lie in all banks. */
    static constexpr int ACROSS = COLS + 16;
    static constexpr size_t BYTES = sizeof(float) * (STAGES * ROWS * ACROSS + WARPS * ROWS * ROOM);
};

/* ---- instructions ---------------------------------------------------------------------------------------- */

#if __CUDA_ARCH__ >= 800
#define HAS_TF32
#endif

/* 16 bytes, of which those from `bytes` on are zeros. */
static __device__ __forceinline__ void copy_16(float *to, const float *from, int bytes)
{
#ifdef HAS_TF32
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
#endif
}
static __device__ __forceinline__ void end_of_copies()
{
#ifdef HAS_TF32
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
static __device__ __forceinline__ void wait_for_copies() /* of all stages but one */
{
#ifdef HAS_TF32
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
#endif
}

/* sums += a · b, 16 x 8 x 8: with g = lane / 4 and t = lane % 4, a is (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4),
 * b (t, g), (t + 4, g), sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). */
static __device__ __forceinline__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#ifdef HAS_TF32
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/* `first` is rounded to 11 bits; `second` has no more than 13, of which the tensor core drops the last two. */
static __device__ __forceinline__ void split(float x, uint32_t *first, uint32_t *second)
{
    *first = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    *second = __float_as_uint(x - __uint_as_float(*first));
}

/* 8 inner numbers of 16 rows and 8 columns. */
static __device__ __forceinline__ void add_products(float (&sums)[4], const float (&x)[4], const uint32_t (&b1)[2],
                                                    const uint32_t (&b2)[2])
{
    uint32_t a1[4], a2[4];
#pragma unroll
    for (int e = 0; e < 4; e++) split(x[e], &a1[e], &a2[e]);
    multiply_add(sums, a2, b1);
    multiply_add(sums, a1, b2);
    multiply_add(sums, a1, b1);
}

/* ---- A·B ------------------------------------------------------------------------------------------------- */

/* Rows of A from `first` on, as far as there are any before `end`; columns that are not there are zeros. */
template <int SHARE>
static __device__ __forceinline__ void fetch(const narrow_product &p, int64_t first, int64_t end, int pitch,
                                             float *to)
{
    constexpr int FOURS = room<SHARE>::COLS / 4;
#pragma unroll
    for (int k = 0; k < ROWS * FOURS / THREADS; k++) {
        const int at = k * THREADS + threadIdx.x, row = at / FOURS, col = at % FOURS * 4;
        const int left = first + row < end ? min(max(p.a_cols - col, 0), 4) : 0;
        copy_16(to + row * pitch + col, left ? p.a + (first + row) * p.a_stride + col : p.a, left * 4);
    }
}

template <int SHARE>
static __global__ void __launch_bounds__(THREADS, room<SHARE>::BLOCKS)
    multiply_across(const __grid_constant__ narrow_product p)
{
    follow();
    constexpr int PITCH = room<SHARE>::ACROSS, STAGE = ROWS * PITCH;
    extern __shared__ float4 aligned[];
    float *const stages = (float *)aligned, *const shares = stages + STAGES * STAGE;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, own = warp * 16 * SHARE + 4 * t;
    const int64_t chunks = (p.a_rows + ROWS - 1) / ROWS;
    uint32_t b1[2 * SHARE][2], b2[2 * SHARE][2];
    int64_t coming = blockIdx.x;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++, coming += gridDim.x) {
        fetch<SHARE>(p, coming * ROWS, p.a_rows, PITCH, stages + s * STAGE);
        end_of_copies();
    }
#pragma unroll
    for (int k = 0; k < 4 * SHARE; k++) {
        const int inner = own + k / 4 * 16 + k % 4;
        const float number = inner < p.a_cols && g < p.cols ? __ldg(p.b + inner * p.b_stride + g) : 0.0f;
        split(number, &b1[k / 2][k % 2], &b2[k / 2][k % 2]);
    }
    int stage = 0;
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x, coming += gridDim.x) {
        float sums[4] = {};
        wait_for_copies();
        __syncthreads(); /* the chunk is there, and the stage of the last one and its shares are read */
        fetch<SHARE>(p, coming * ROWS, p.a_rows, PITCH, stages + (stage + STAGES - 1) % STAGES * STAGE);
        end_of_copies();
        const float *rows = stages + stage * STAGE + own;
#pragma unroll
        for (int s = 0; s < SHARE; s++) {
            const float4 upper = *(const float4 *)(rows + g * PITCH + s * 16);
            const float4 lower = *(const float4 *)(rows + (g + 8) * PITCH + s * 16);
            add_products(sums, {upper.x, lower.x, upper.y, lower.y}, b1[2 * s], b2[2 * s]);
            add_products(sums, {upper.z, lower.z, upper.w, lower.w}, b1[2 * s + 1], b2[2 * s + 1]);
        }
#pragma unroll
        for (int half = 0; half < 2; half++)
            *(float2 *)(shares + (warp * ROWS + g + half * 8) * ROOM + 2 * t) =
                make_float2(sums[2 * half], sums[2 * half + 1]);
        __syncthreads();
        const int row = threadIdx.x / MOST_COLS, col = threadIdx.x % MOST_COLS;
        if (row < ROWS && chunk * ROWS + row < p.a_rows && col < p.cols) {
            float *to = p.c + (chunk * ROWS + row) * p.c_stride + col, total = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) total += shares[(w * ROWS + row) * ROOM + col];
            *to = p.beta != 0 ? p.alpha * total + p.beta * *to : p.alpha * total;
        }
        stage = (stage + 1) % STAGES;
    }
}

/* ---- Aᵀ·B ------------------------------------------------------------------------------------------------ */

/* Threads of a block, columns of a warp, rows of a step. A thread loads BATCH steps at once, and has BATCHES of them on
 * their way or at work: loads that are waited for one by one run out of the scoreboard's six barriers, and four steps
 * ahead took 0.070 ms where this takes 0.057. */
enum { DOWN_THREADS = 512, WIDE = 32, STEP = 8, BATCH = 2, BATCHES = 2, DOWN_COLS = DOWN_THREADS };

/* A thread's numbers of BATCH steps: of rows t and t + 4 of each four columns of A, and of every tile of B one. */
template <int TILES> struct down_batch {
    float4 a[BATCH][2];
    float b[BATCH][TILES][2];
};

/* C has 8 · TILES columns at most. A is read past the first-level cache, and leaves the second soonest. */
template <int TILES>
static __global__ void __launch_bounds__(DOWN_THREADS, 1) multiply_down(const __grid_constant__ narrow_product p)
{
    follow();
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const unsigned part = blockIdx.x % p.parts, col_tile = blockIdx.x / p.parts;
    const int first_col = (int)(col_tile * DOWN_COLS + threadIdx.x / 32 * WIDE), col = first_col + 4 * g;
    const int64_t steps = (p.a_rows + STEP - 1) / STEP;
    const int64_t begin = steps * part / p.parts * STEP, end = min(steps * (part + 1) / p.parts * STEP, p.a_rows);
    const int one = min(g, p.cols - 1), apart = min(g + 8, p.cols - 1) - one; /* columns of B that are there */
    const float *a[2], *b[2];
    int left = (int)(end - begin) - t;
    down_batch<TILES> batch[BATCHES];
    float totals[2][TILES][4] = {};
    if (first_col >= p.a_cols) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        a[r] = p.a + (begin + t + 4 * r) * p.a_stride + col;
        b[r] = p.b + (begin + t + 4 * r) * p.b_stride + one;
    }
    const auto load = [&](down_batch<TILES> &to) {
#pragma unroll
        for (int u = 0; u < BATCH; u++, left -= STEP)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const bool there = 4 * r < left;
                to.a[u][r] = make_float4(0, 0, 0, 0);
                if (there && col < p.a_cols) to.a[u][r] = __ldcs((const float4 *)a[r]);
#pragma unroll
                for (int n = 0; n < TILES; n++) to.b[u][n][r] = there ? __ldg(b[r] + n * apart) : 0;
                a[r] += STEP * p.a_stride;
                b[r] += STEP * p.b_stride;
            }
    };
#pragma unroll
    for (int k = 0; k < BATCHES; k++) load(batch[k]);
    for (int64_t first = begin; first < end; first += BATCHES * BATCH * STEP)
#pragma unroll
        for (int k = 0; k < BATCHES; k++) {
            float sums[2][TILES][4] = {};
#pragma unroll
            for (int u = 0; u < BATCH; u++) {
                const float4 upper = batch[k].a[u][0], lower = batch[k].a[u][1];
#pragma unroll
                for (int n = 0; n < TILES; n++) {
                    uint32_t b1[2], b2[2];
#pragma unroll
                    for (int r = 0; r < 2; r++) split(batch[k].b[u][n][r], &b1[r], &b2[r]);
                    add_products(sums[0][n], {upper.x, upper.y, lower.x, lower.y}, b1, b2);
                    add_products(sums[1][n], {upper.z, upper.w, lower.z, lower.w}, b1, b2);
                }
            }
            load(batch[k]);
#pragma unroll
            for (int e = 0; e < 8 * TILES; e++)
                totals[e / 4 % 2][e / 8][e % 4] += sums[e / 4 % 2][e / 8][e % 4];
        }
    float *to = p.partial + (int64_t)part * p.a_cols * p.cols;
#pragma unroll
    for (int e = 0; e < 8 * TILES; e++) {
        const int row = col + e / 4 % 2 * 2 + e % 4 / 2, c = e / 8 * 8 + 2 * t + e % 2;
        if (row < p.a_cols && c < p.cols) to[row * p.cols + c] = totals[e / 4 % 2][e / 8][e % 4];
    }
}

/* The parts of 32 numbers of C, an eighth a warp. */
static __global__ void __launch_bounds__(THREADS) add_narrow_parts(const __grid_constant__ narrow_product p)
{
    follow();
    __shared__ float shared[WARPS][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, at = blockIdx.x * 32 + lane, size = p.a_cols * p.cols;
    float sum = 0;
#pragma unroll 8
    for (int part = warp; part < p.parts; part += WARPS)
        if (at < size) sum += p.partial[(int64_t)part * size + at];
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || at >= size) return;
    for (int other = 1; other < WARPS; other++) sum += shared[other][lane];
    float *to = p.c + at / p.cols * p.c_stride + at % p.cols;
    *to = p.beta != 0 ? p.alpha * sum + p.beta * *to : p.alpha * sum;
}

/* ---- host ------------------------------------------------------------------------------------------------ */

template <int SHARE> static sp_status launch_across(gnn_engine *engine, const narrow_product &p)
{
    const gnn_cuda_state *state = state_of(engine);
    const auto kernel = multiply_across<SHARE>;
    const size_t bytes = room<SHARE>::BYTES;
    const int64_t chunks = ceil_div(p.a_rows, ROWS), most = (int64_t)room<SHARE>::BLOCKS * state->processors;
    CUDA_TRY(cudaSetDevice(state->device));
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    CUDA_TRY(queue_kernel(state, kernel, chunks < most ? chunks : most, THREADS, bytes, p));
    return SP_OK;
}

static sp_status launch_down(gnn_engine *engine, narrow_product p)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t col_tiles = ceil_div(p.a_cols, DOWN_COLS);
    p.parts = (int)(state->processors / col_tiles);
    CUDA_TRY(cudaSetDevice(state->device));
    const auto kernel = p.cols <= MOST_COLS ? multiply_down<1> : multiply_down<2>;
    CUDA_TRY(queue_kernel(state, kernel, p.parts * col_tiles, DOWN_THREADS, 0, p));
    CUDA_TRY(queue_kernel(state, add_narrow_parts, ceil_div((int64_t)p.a_cols * p.cols, 32), THREADS, 0, p));
    return SP_OK;
}

static bool starts_at_16(const sp_dense *matrix)
{
    return (uintptr_t)matrix->values % 16 == 0 && matrix->stride % 4 == 0;
}

/* Fewer rows than fill the device twice are over sooner elsewhere. */
bool gnn_cuda_narrow_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a,
                          const sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    return state->split_partial && c->type == SP_DENSE_F32 && !transpose_b &&
           c->cols <= (transpose_a ? 2 : 1) * MOST_COLS && a->cols > MOST_COLS && a->cols <= room<8>::COLS &&
           a->rows >= 4 * ROWS * (int64_t)state->processors && starts_at_16(a);
}

sp_status gnn_cuda_multiply_narrow(gnn_engine *engine, bool transpose_a, double alpha, const sp_dense *a,
                                   const sp_dense *b, double beta, sp_dense *c)
{
    const narrow_product p = {(const float *)a->values, (const float *)b->values, (float *)c->values,
                              state_of(engine)->split_partial, a->rows, a->stride, b->stride, c->stride,
                              (int)a->cols, (int)c->cols, 0, (float)alpha, (float)beta};
    if (transpose_a) return launch_down(engine, p);
    return p.a_cols <= room<2>::COLS   ? launch_across<2>(engine, p)
           : p.a_cols <= room<4>::COLS ? launch_across<4>(engine, p)
                                       : launch_across<8>(engine, p);
}
