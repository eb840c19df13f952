/* C = alpha · op(A)·B + beta · C for a C of at most 16 columns, A and B both of f32 or of bf16. A takes the time and is
 * read once, also for two C of equal width. It is multiplied on tensor cores as three products of TF32 numbers (11
 * bits): each number is the sum of two of them, as in multiply_split.cu with f16 numbers. A bf16 number is one TF32
 * number, so one product suffices.
 *
 * A·B: one warp copies A's rows to shared memory, ROWS at a time in STAGES buffers, 135 KB together. Eight warps
 * multiply a share of the inner dimension each, for which they keep B split in registers; the shares are added up
 * through shared memory. Aᵀ·B: a warp takes WIDE of A's columns and a block a part of the rows, which are loaded into
 * registers; no warp waits for another. A second launch adds up the parts, always in the same order. Tensor cores,
 * which truncate, form the sums of a share or of some rows; f32 operations add these up.
 *
 * H200, 89,250 rows of 500 columns, which are read in 0.040 ms: a product with 16 columns takes 0.052 ms
 * (multiply_split.cu 0.058 and 0.003 for its split of B), in bf16 0.033; the transpose times 16 columns takes 0.042
 * (multiply_split.cu 0.066). More stages are slower: with 192 KB in flight to each multiprocessor A is read in 0.054
 * ms, with 96 to 128 KB in 0.043. Left out (SPARSE_WITHOUT=gnn-narrow), multiply_split.cu takes its work, with f16
 * halves instead of TF32 ones and the same accuracy.
 */
#include "backend.cuh"
#include "hopper.cuh"

/* Columns of C, 8 for each tile. */
enum { WARPS = THREADS / 32, TILE = 8, MOST_COLS = 2 * TILE };

/* One of TERMS products with the same A: the first `rows` rows of A count. */
template <typename A> struct narrow_term {
    const A *b;
    void *c; /* f32 if `whole`, else of type A */
    int64_t rows, b_stride, c_stride;
    bool whole;
};

template <typename A> struct narrow_product {
    narrow_term<A> term[2];
    const A *a;
    float *partial;
    int64_t a_rows, a_stride;
    int a_cols, cols, parts; /* cols: of each C */
    float alpha, beta;
};

/* ---- instructions ---------------------------------------------------------------------------------------- */

#if __CUDA_ARCH__ >= 800
#define HAS_TF32
#endif

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

/* `first` is rounded to 11 bits. `second` has at most 13 bits; the tensor core drops the last two. */
static __device__ __forceinline__ void split(float x, uint32_t *first, uint32_t *second)
{
    *first = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    *second = __float_as_uint(x - __uint_as_float(*first));
}

/* Adds the products of 8 inner numbers, 16 rows and 8 columns. EXACT: all numbers have at most 11 bits. */
template <bool EXACT>
static __device__ __forceinline__ void add_products(float (&sums)[4], const float (&x)[4], const uint32_t (&b1)[2],
                                                    const uint32_t (&b2)[2])
{
    uint32_t a1[4], a2[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (EXACT) a1[e] = __float_as_uint(x[e]);
        else split(x[e], &a1[e], &a2[e]);
    if (!EXACT) {
        multiply_add(sums, a2, b1);
        multiply_add(sums, a1, b2);
    }
    multiply_add(sums, a1, b1);
}

/* Four neighbours of A, from shared or global memory. */
static __device__ __forceinline__ float4 widened(const uint2 &two)
{
    return make_float4(__uint_as_float(two.x << 16), __uint_as_float(two.x & 0xffff0000u),
                       __uint_as_float(two.y << 16), __uint_as_float(two.y & 0xffff0000u));
}
static __device__ __forceinline__ float4 four_of(const float *a) { return *(const float4 *)a; }
static __device__ __forceinline__ float4 four_of(const __nv_bfloat16 *a) { return widened(*(const uint2 *)a); }

/* ---- A·B ------------------------------------------------------------------------------------------------- */

/* A warp's share of A's columns is 16 · SHARE. Stages have the same size in all forms; 4 of them with 512 columns
 * take 135 KB. Each C has EACH tiles. */
template <typename A, int SHARE, int TERMS, int EACH> struct across {
    static constexpr int COLS = 16 * SHARE * WARPS, ROWS = 64 / (int)sizeof(A), STAGES = 16 / SHARE;
    /* The stride of rows: rows that are read together, four numbers a thread, use all banks. So do four rows of
     * shares of C. */
    static constexpr int PITCH = COLS + 16, STAGE = ROWS * PITCH, TILES = TERMS * EACH;
    static constexpr int ACROSS = TILES <= 2 ? 24 : 40, SHARES = WARPS * ROWS * ACROSS;
    static constexpr size_t BYTES = STAGES * STAGE * sizeof(A) + 2 * SHARES * sizeof(float);
};

/* One warp copies A in chunks of ROWS rows. */
template <typename shape, typename A>
static __device__ __forceinline__ void fetch_chunks(const narrow_product<A> &p, A *stages, uint64_t *full,
                                                    uint64_t *empty)
{
    const unsigned bytes = (unsigned)(p.a_cols * sizeof(A) + 15) / 16 * 16, lane = threadIdx.x % 32;
    unsigned s = 0;
    for (int64_t first = (int64_t)blockIdx.x * shape::ROWS; first < p.a_rows;
         first += (int64_t)gridDim.x * shape::ROWS, s++) {
        const unsigned stage = s % shape::STAGES;
        const unsigned rows = (unsigned)min(p.a_rows - first, (int64_t)shape::ROWS);
        await(&empty[stage], s / shape::STAGES % 2 ^ 1);
        if (lane == 0) announce(&full[stage], rows * bytes);
        __syncwarp();
        if (lane < rows)
            fetch(stages + stage * shape::STAGE + lane * shape::PITCH, p.a + (first + lane) * p.a_stride,
                  bytes, &full[stage]);
    }
}

template <typename C> static __device__ __forceinline__ void add_to(C *c, float number, float beta)
{
    number_to(c, beta != 0 ? number + beta * number_from(c) : number);
}

/* Adds the warps' shares of a chunk of C, its rows from `first` on, and stores it. */
template <typename shape, int EACH, typename A>
static __device__ __forceinline__ void add_shares(const narrow_product<A> &p, int64_t first, const float *shares)
{
    constexpr int COLS = TILE * shape::TILES;
#pragma unroll
    for (int at = threadIdx.x; at < shape::ROWS * COLS; at += THREADS) {
        const int row = at / COLS, place = at % COLS, col = place % (TILE * EACH);
        const narrow_term<A> &term = p.term[place / (TILE * EACH)];
        float total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) total += shares[(w * shape::ROWS + row) * shape::ACROSS + place];
        if (first + row >= term.rows || col >= p.cols) continue;
        const int64_t to = (first + row) * term.c_stride + col;
        if (term.whole) add_to((float *)term.c + to, p.alpha * total, p.beta);
        else add_to((A *)term.c + to, p.alpha * total, p.beta);
    }
}

template <typename A, int SHARE, int TERMS, int EACH>
static __device__ __forceinline__ void multiply_chunks(const narrow_product<A> &p, const A *stages, float *shares,
                                                       uint64_t *full, uint64_t *empty)
{
    using shape = across<A, SHARE, TERMS, EACH>;
    constexpr bool EXACT = sizeof(A) == 2;
    constexpr int TILES = shape::TILES, ACROSS = shape::ACROSS;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, own = warp * 16 * SHARE + 4 * t;
    uint32_t b1[TILES][2 * SHARE][2], b2[TILES][2 * SHARE][2];
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int k = 0; k < 4 * SHARE; k++) {
            const narrow_term<A> &term = p.term[n / EACH];
            const int inner = own + k / 4 * 16 + k % 4, col = n % EACH * TILE + g;
            const float number = inner < p.a_cols && col < p.cols ? number_from(term.b + inner * term.b_stride + col)
                                                                     : 0.0f;
            split(number, &b1[n][k / 2][k % 2], &b2[n][k / 2][k % 2]);
        }
    unsigned s = 0;
    for (int64_t first = (int64_t)blockIdx.x * shape::ROWS; first < p.a_rows;
         first += (int64_t)gridDim.x * shape::ROWS, s++) {
        const unsigned stage = s % shape::STAGES;
        const A *rows = stages + stage * shape::STAGE + g * shape::PITCH + own;
        float *const to = shares + s % 2 * shape::SHARES;
        await(&full[stage], s / shape::STAGES % 2);
#pragma unroll
        for (int m = 0; m < shape::ROWS; m += 16) {
            float sums[TILES][4] = {};
#pragma unroll
            for (int k = 0; k < SHARE; k++) {
                float4 upper = four_of(rows + m * shape::PITCH + k * 16);
                float4 lower = four_of(rows + (m + 8) * shape::PITCH + k * 16);
                const int left = p.a_cols - own - k * 16; /* numbers beyond the end may be NaN */
                if (left < 4) {
                    float *const x[2] = {&upper.x, &lower.x};
#pragma unroll
                    for (int e = 0; e < 8; e++)
                        if (e % 4 >= left) x[e / 4][e % 4] = 0;
                }
#pragma unroll
                for (int n = 0; n < TILES; n++) {
                    add_products<EXACT>(sums[n], {upper.x, lower.x, upper.y, lower.y}, b1[n][2 * k], b2[n][2 * k]);
                    add_products<EXACT>(sums[n], {upper.z, lower.z, upper.w, lower.w}, b1[n][2 * k + 1],
                                        b2[n][2 * k + 1]);
                }
            }
#pragma unroll
            for (int e = 0; e < 2 * TILES; e++)
                *(float2 *)(to + (warp * shape::ROWS + m + g + e % 2 * 8) * ACROSS + e / 2 * TILE + 2 * t) =
                    make_float2(sums[e / 2][e % 2 * 2], sums[e / 2][e % 2 * 2 + 1]);
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(&empty[stage]);
        /* Shares have two buffers, so one barrier is enough. */
        asm volatile("bar.sync 1, %0;" ::"r"((int)THREADS) : "memory");
        add_shares<shape, EACH>(p, first, to);
    }
}

template <typename A, int SHARE, int TERMS, int EACH>
static __global__ void __launch_bounds__(THREADS + 32, 1) multiply_across(const __grid_constant__ narrow_product<A> p)
{
    follow();
    using shape = across<A, SHARE, TERMS, EACH>;
    extern __shared__ float4 aligned[];
    __shared__ uint64_t full[shape::STAGES], empty[shape::STAGES];
    A *const stages = (A *)aligned;
    if (threadIdx.x < shape::STAGES) {
        make_barrier(&full[threadIdx.x], 1);
        make_barrier(&empty[threadIdx.x], WARPS);
    }
    __syncthreads();
    if (threadIdx.x < THREADS)
        multiply_chunks<A, SHARE, TERMS, EACH>(p, stages, (float *)(stages + shape::STAGES * shape::STAGE), full,
                                               empty);
    else fetch_chunks<shape>(p, stages, full, empty);
}

/* ---- Aᵀ·B ------------------------------------------------------------------------------------------------ */

/* Threads of a block, columns of a warp, rows of a step. A thread loads BATCH steps at once after it has used those
 * before: 0.051 ms with checks of every row. Two times two steps took 0.063 ms, single steps four ahead 0.079: loads
 * that are awaited one by one run out of the scoreboard's six barriers. */
enum { DOWN_THREADS = 512, WIDE = 32, STEP = 8, BATCH = 4, DOWN_COLS = DOWN_THREADS };

/* A bypasses the first-level cache and is the first to leave the second. */
static __device__ __forceinline__ float4 passing(const float *a) { return __ldcs((const float4 *)a); }
static __device__ __forceinline__ float4 passing(const __nv_bfloat16 *a) { return widened(__ldcs((const uint2 *)a)); }

/* Adds a batch to a C: `a` has four columns of A in rows t and t + 4 of each step, `b` one column of a tile. */
template <bool EXACT, int EACH>
static __device__ __forceinline__ void add_batch(const float4 (&a)[BATCH][2], const float (&b)[BATCH][EACH][2],
                                                 float (&sums)[2][EACH][4])
{
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
        const float4 upper = a[u][0], lower = a[u][1];
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            uint32_t b1[2], b2[2];
#pragma unroll
            for (int r = 0; r < 2; r++) split(b[u][n][r], &b1[r], &b2[r]);
            add_products<EXACT>(sums[0][n], {upper.x, upper.y, lower.x, lower.y}, b1, b2);
            add_products<EXACT>(sums[1][n], {upper.z, upper.w, lower.z, lower.w}, b1, b2);
        }
    }
}

/* Parts take batches of A's rows in turns. */
template <typename A, int TERMS, int EACH>
static __global__ void __launch_bounds__(DOWN_THREADS, 1) multiply_down(const __grid_constant__ narrow_product<A> p)
{
    follow();
    constexpr bool EXACT = sizeof(A) == 2;
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const unsigned part = blockIdx.x % p.parts, col_tile = blockIdx.x / p.parts;
    const int first_col = (int)(col_tile * DOWN_COLS + threadIdx.x / 32 * WIDE), col = first_col + 4 * g;
    const int one = min(g, p.cols - 1), apart = min(g + 8, p.cols - 1) - one; /* existing columns of B */
    const int64_t turn = (int64_t)p.parts * BATCH * STEP;
    float4 a[BATCH][2];
    float b[BATCH][EACH][2];
    float totals[TERMS][2][EACH][4] = {};
    if (first_col >= p.a_cols) return;
    const int64_t a_step = 4 * p.a_stride;
    const A *const own_a = p.a + t * p.a_stride + (col < p.a_cols ? col : 0);
    /* Checks and address products for every row would double the number of instructions. */
    const auto load_rows = [&](int64_t first, int k, bool whole) {
        const narrow_term<A> &term = p.term[k];
        const int64_t b_step = 4 * term.b_stride;
        const A *from_a = own_a + first * p.a_stride;
        const A *from_b = term.b + (first + t) * term.b_stride + one;
        const int64_t a_left = p.a_rows - first - t, b_left = term.rows - first - t;
#pragma unroll
        for (int u = 0; u < BATCH; u++)
#pragma unroll
            for (int r = 0; r < 2; r++, from_a += a_step, from_b += b_step) {
                const int row = u * STEP + 4 * r;
                if (k == 0) a[u][r] = whole || row < a_left ? passing(from_a) : make_float4(0, 0, 0, 0);
#pragma unroll
                for (int n = 0; n < EACH; n++)
                    b[u][n][r] = whole || row < b_left ? number_from(from_b + n * apart) : 0;
            }
    };
    const auto load = [&](int64_t first, int k) {
        if (first + BATCH * STEP <= p.term[k].rows) load_rows(first, k, true);
        else load_rows(first, k, false);
    };
    int64_t first = (int64_t)part * BATCH * STEP;
    load(first, 0);
    for (; first < p.a_rows; first += turn) {
#pragma unroll
        for (int k = 0; k < TERMS; k++) {
            float sums[2][EACH][4] = {};
            add_batch<EXACT, EACH>(a, b, sums);
            load(k + 1 < TERMS ? first : first + turn, (k + 1) % TERMS);
#pragma unroll
            for (int e = 0; e < 8 * EACH; e++)
                totals[k][e / 4 % 2][e / 8][e % 4] += sums[e / 4 % 2][e / 8][e % 4];
        }
    }
    const int cols = TERMS * p.cols;
    float *to = p.partial + (int64_t)part * p.a_cols * cols;
#pragma unroll
    for (int e = 0; e < 8 * TERMS * EACH; e++) {
        const int row = col + e / 4 % 2 * 2 + e % 4 / 2, k = e / (8 * EACH), n = e / 8 % EACH;
        const int c = n * TILE + 2 * t + e % 2;
        if (row < p.a_cols && c < p.cols) to[row * cols + k * p.cols + c] = totals[k][e / 4 % 2][n][e % 4];
    }
}

/* Adds up the parts of 32 numbers of C, a sixteenth of the parts a warp. */
template <typename A, int TERMS>
static __global__ void __launch_bounds__(DOWN_THREADS) add_narrow_parts(const __grid_constant__ narrow_product<A> p)
{
    follow();
    constexpr int WARPS = DOWN_THREADS / 32;
    __shared__ float shared[WARPS][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, at = blockIdx.x * 32 + lane;
    const int cols = TERMS * p.cols, size = p.a_cols * cols;
    float sum = 0;
#pragma unroll 8
    for (int part = warp; part < p.parts; part += WARPS)
        if (at < size) sum += p.partial[(int64_t)part * size + at];
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || at >= size) return;
    for (int other = 1; other < WARPS; other++) sum += shared[other][lane];
    const narrow_term<A> &term = p.term[TERMS > 1 && at % cols >= p.cols];
    add_to((float *)term.c + at / cols * term.c_stride + at % p.cols, p.alpha * sum, p.beta);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

template <typename A, int SHARE, int TERMS, int EACH>
static sp_status launch_across(gnn_engine *engine, const narrow_product<A> &p)
{
    using shape = across<A, SHARE, TERMS, EACH>;
    const gnn_cuda_state *state = state_of(engine);
    const auto kernel = multiply_across<A, SHARE, TERMS, EACH>;
    const int64_t chunks = ceil_div(p.a_rows, shape::ROWS), most = state->processors;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shape::BYTES));
    return launch_early(engine, kernel, chunks < most ? chunks : most, THREADS + 32, shape::BYTES, p);
}

template <typename A, int TERMS> static sp_status launch_down(gnn_engine *engine, narrow_product<A> p)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t col_tiles = ceil_div(p.a_cols, DOWN_COLS);
    p.parts = (int)(state->processors / col_tiles);
    const auto kernel = p.cols <= TILE ? multiply_down<A, TERMS, 1> : multiply_down<A, TERMS, 2>;
    CHECK(launch_early(engine, kernel, p.parts * col_tiles, DOWN_THREADS, 0, p));
    return launch_early(engine, add_narrow_parts<A, TERMS>, ceil_div((int64_t)p.a_cols * TERMS * p.cols, 32),
                        DOWN_THREADS, 0, p);
}

/* Whether rows and their stride are multiples of 16 bytes. */
static bool starts_at_16(const sp_dense *matrix)
{
    const int64_t numbers = matrix->type == SP_DENSE_BF16 ? 8 : 4;
    return (uintptr_t)matrix->values % 16 == 0 && matrix->stride % numbers == 0;
}

/* Columns of A at most: a stage must hold a row, and a warp its share of B. */
static int64_t most_inner(int64_t cols) { return across<float, 8, 1, 1>::COLS / (cols <= TILE ? 1 : 2); }

/* Fewer rows than fill the device twice are faster elsewhere. */
bool gnn_cuda_narrow_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a, int count,
                          const gnn_product_with *product)
{
    const gnn_cuda_state *state = state_of(engine);
    if (left_out("gnn-narrow") || left_out(transpose_a ? "gnn-narrow-down" : "gnn-narrow-across")) return false;
    const int64_t cols = product->c->cols, together = count > 1 ? (int64_t)MOST_COLS : cols;
    const int64_t most = most_inner(transpose_a ? 1 : together);
    const bool same = a->type == product->b->type && (!transpose_a || product->c->type == SP_DENSE_F32);
    return state->split_partial && a->type != SP_DENSE_F64 && same && !transpose_b && cols <= MOST_COLS &&
           product[count - 1].c->cols == cols && a->cols > MOST_COLS && a->cols <= most &&
           a->rows >= 64 * (int64_t)state->processors && starts_at_16(a);
}

template <typename A, int TERMS>
static sp_status multiply_terms(gnn_engine *engine, bool transpose_a, const narrow_product<A> &p)
{
    const bool few = p.cols <= TILE;
    if (transpose_a) return launch_down<A, TERMS>(engine, p);
    if (p.a_cols <= across<A, 2, 1, 1>::COLS)
        return (few ? launch_across<A, 2, TERMS, 1> : launch_across<A, 2, TERMS, 2>)(engine, p);
    if (p.a_cols <= across<A, 4, 1, 1>::COLS)
        return (few ? launch_across<A, 4, TERMS, 1> : launch_across<A, 4, TERMS, 2>)(engine, p);
    return launch_across<A, 8, 1, 1>(engine, p);
}

template <typename A>
static sp_status multiply_narrow(gnn_engine *engine, bool transpose_a, double alpha, const sp_dense *a, int count,
                                 const gnn_product_with *product, double beta)
{
    narrow_product<A> p = {{}, (const A *)a->values, state_of(engine)->split_partial, 0, a->stride, (int)a->cols,
                           (int)product->c->cols, 0, (float)alpha, (float)beta};
    for (int k = 0; k < count; k++) {
        const sp_dense *b = product[k].b, *c = product[k].c;
        p.term[k] = {(const A *)b->values, c->values, transpose_a ? b->rows : c->rows, b->stride, c->stride,
                     c->type == SP_DENSE_F32};
        p.a_rows = p.term[k].rows > p.a_rows ? p.term[k].rows : p.a_rows;
    }
    return (count > 1 ? multiply_terms<A, 2> : multiply_terms<A, 1>)(engine, transpose_a, p);
}

sp_status gnn_cuda_multiply_narrow(gnn_engine *engine, bool transpose_a, double alpha, const sp_dense *a, int count,
                                   const gnn_product_with *product, double beta)
{
    return (a->type == SP_DENSE_F32 ? multiply_narrow<float> : multiply_narrow<__nv_bfloat16>)(
        engine, transpose_a, alpha, a, count, product, beta);
}
