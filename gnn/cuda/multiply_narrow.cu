/* C = alpha · op(A)·B + beta · C in f32 where C has 8 columns at most: A is what takes time, and is read once.
 *
 * A's rows stream through shared memory, ROWS at a time in STAGES buffers, without passing registers: 64 to 130 KB
 * are on their way to a multiprocessor. What is there is multiplied on tensor cores as three products of TF32 numbers
 * (11 bits): every number is the sum of two of them, as in multiply_split.cu, which has f16 ones. A·B: of each row a
 * warp multiplies its share of the inner dimension, for which it keeps B split in registers; the shares of all warps
 * are added up through shared memory. Aᵀ·B: a warp takes its share of A's columns, of all rows, and keeps their sums;
 * those of blocks, which have a part of the rows each, are added up by a second launch, always in the same order. Sums
 * of a share, or of ROWS rows, are formed by tensor cores, which cut off, and those by f32 additions.
 *
 * H200, 89,250 rows: 256 columns times 7 take 0.030 ms where multiply_split.cu takes 0.044 and a copy 0.022. With 16
 * columns it is no faster than that (500 columns times 16: 0.064 ms): twice the products an operand.
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
    /* From row to row: rows that are read side by side, 64 bytes of each or a column of four, lie in all banks. */
    static constexpr int ACROSS = COLS + 16, DOWN = COLS + 8;
    static constexpr size_t BYTES_ACROSS = sizeof(float) * (STAGES * ROWS * ACROSS + WARPS * ROWS * ROOM);
    static constexpr size_t BYTES_DOWN = sizeof(float) * (STAGES * ROWS * (DOWN + ROOM));
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

/* B's rows that belong to A's. */
static __device__ __forceinline__ void fetch_beside(const narrow_product &p, int64_t first, int64_t end, float *to)
{
    const int row = threadIdx.x / (MOST_COLS / 4), col = threadIdx.x % (MOST_COLS / 4) * 4;
    if (row >= ROWS) return;
    const int left = first + row < end ? min(max(p.cols - col, 0), 4) : 0;
    copy_16(to + row * ROOM + col, left ? p.b + (first + row) * p.b_stride + col : p.b, left * 4);
}

template <int SHARE>
static __global__ void __launch_bounds__(THREADS, room<SHARE>::BLOCKS)
    multiply_down(const __grid_constant__ narrow_product p)
{
    constexpr int PITCH = room<SHARE>::DOWN, STAGE = ROWS * (PITCH + ROOM), BESIDE = ROWS * PITCH;
    extern __shared__ float4 aligned[];
    float *const stages = (float *)aligned;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int own = warp * 16 * SHARE + 2 * g;
    const int64_t chunks = (p.a_rows + ROWS - 1) / ROWS, begin = chunks * blockIdx.x / p.parts * ROWS;
    const int64_t end = min(chunks * (blockIdx.x + 1) / p.parts * ROWS, p.a_rows);
    float totals[SHARE][4] = {};
    int64_t coming = begin;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++, coming += ROWS) {
        fetch<SHARE>(p, coming, end, PITCH, stages + s * STAGE);
        fetch_beside(p, coming, end, stages + s * STAGE + BESIDE);
        end_of_copies();
    }
    int stage = 0;
    for (int64_t first = begin; first < end; first += ROWS, coming += ROWS) {
        uint32_t b1[2][2], b2[2][2];
        wait_for_copies();
        __syncthreads(); /* the rows are there, and the stage of the last ones is read */
        float *const next = stages + (stage + STAGES - 1) % STAGES * STAGE;
        fetch<SHARE>(p, coming, end, PITCH, next);
        fetch_beside(p, coming, end, next + BESIDE);
        end_of_copies();
        const float *rows = stages + stage * STAGE, *beside = rows + BESIDE;
#pragma unroll
        for (int k = 0; k < 4; k++) split(beside[(4 * k + t) * ROOM + g], &b1[k / 2][k % 2], &b2[k / 2][k % 2]);
#pragma unroll
        for (int s = 0; s < SHARE; s++) {
            float sums[4] = {};
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const float2 upper = *(const float2 *)(rows + (8 * k + t) * PITCH + own + s * 16);
                const float2 lower = *(const float2 *)(rows + (8 * k + 4 + t) * PITCH + own + s * 16);
                add_products(sums, {upper.x, upper.y, lower.x, lower.y}, b1[k], b2[k]);
            }
#pragma unroll
            for (int e = 0; e < 4; e++) totals[s][e] += sums[e];
        }
        stage = (stage + 1) % STAGES;
    }
    float *to = p.partial + (int64_t)blockIdx.x * p.a_cols * p.cols;
#pragma unroll
    for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = own + s * 16 + e / 2, col = 2 * t + e % 2;
            if (row < p.a_cols && col < p.cols) to[row * p.cols + col] = totals[s][e];
        }
}

/* The parts of 32 numbers of C, an eighth a warp. */
static __global__ void __launch_bounds__(THREADS) add_narrow_parts(const __grid_constant__ narrow_product p)
{
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

template <int SHARE> static sp_status launch(gnn_engine *engine, bool transpose_a, narrow_product p)
{
    const gnn_cuda_state *state = state_of(engine);
    const auto kernel = transpose_a ? multiply_down<SHARE> : multiply_across<SHARE>;
    const size_t bytes = transpose_a ? room<SHARE>::BYTES_DOWN : room<SHARE>::BYTES_ACROSS;
    const int64_t chunks = ceil_div(p.a_rows, ROWS), most = (int64_t)room<SHARE>::BLOCKS * state->processors;
    p.parts = (int)(chunks < most ? chunks : most);
    CUDA_TRY(cudaSetDevice(state->device));
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<(unsigned)p.parts, THREADS, bytes, state->stream>>>(p);
    CUDA_TRY(cudaGetLastError());
    if (!transpose_a) return SP_OK;
    add_narrow_parts<<<(unsigned)ceil_div((int64_t)p.a_cols * p.cols, 32), THREADS, 0, state->stream>>>(p);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

static bool starts_at_16(const sp_dense *matrix)
{
    return (uintptr_t)matrix->values % 16 == 0 && matrix->stride % 4 == 0;
}

/* Fewer rows than fill the device twice are over sooner elsewhere. */
bool gnn_cuda_narrow_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a,
                          const sp_dense *b, const sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    return state->split_partial && c->type == SP_DENSE_F32 && !transpose_b && c->cols <= MOST_COLS &&
           a->cols > MOST_COLS && a->cols <= room<8>::COLS && a->rows >= 4 * ROWS * (int64_t)state->processors &&
           starts_at_16(a) && (!transpose_a || starts_at_16(b));
}

sp_status gnn_cuda_multiply_narrow(gnn_engine *engine, bool transpose_a, double alpha, const sp_dense *a,
                                   const sp_dense *b, double beta, sp_dense *c)
{
    const narrow_product p = {(const float *)a->values, (const float *)b->values, (float *)c->values,
                              state_of(engine)->split_partial, a->rows, a->stride, b->stride, c->stride,
                              (int)a->cols, (int)c->cols, 0, (float)alpha, (float)beta};
    return p.a_cols <= room<2>::COLS   ? launch<2>(engine, transpose_a, p)
           : p.a_cols <= room<4>::COLS ? launch<4>(engine, transpose_a, p)
                                       : launch<8>(engine, transpose_a, p);
}
