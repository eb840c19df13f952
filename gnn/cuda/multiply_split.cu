/* C = alpha · op(A) · op(B) + beta · C in f32 on Hopper's tensor cores, which multiply TF32 numbers (11 bits): every
 * number is the sum of two of them, x = x1 + x2, and A·B is A1·B1 + A1·B2 + A2·B1 but for A2·B2, 2^-22 of it.
 * (Markidis et al. 2018; Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
 * the FP32 theoretical peak performance", 2022.) Tensor cores cut sums off where f32 additions round; so sums over
 * SLAB terms are formed there and added up by f32 additions, which leaves errors no larger than those of an f32
 * product.
 *
 * A block of two warpgroups makes TILE x COLS of C, a warpgroup 64 rows of it, in slabs of SLAB of the inner
 * dimension, which are copied to shared memory STAGES - 1 slabs ahead, as they lie in memory, rows padded so that the
 * 32 lanes' reads of a fragment fall into 32 banks. While the tensor cores work on a slab (wgmma runs in the
 * background) the threads split the next one: B within shared memory, where wgmma wants it, four numbers of the inner
 * dimension side by side; A into registers. Where tiles are too few for the device (Xᵀ·G, whose inner dimension is
 * the nodes) the inner dimension is cut into parts, which are summed by a second launch, always in the same order.
 *
 * An H200 multiplies TF32 numbers at 494 TFLOP/s, a third of which is 165, and f32 ones at 67. On other devices
 * cuBLAS is asked.
 */
#include "backend.cuh"

enum { TILE = 128, SLAB = 32, STAGES = 4, STEPS = SLAB / 8 };

/* Rows of a slab in shared memory: along the inner dimension, or along the outer one, OUTER long. */
enum { INNER_ROW = SLAB + 4 };
template <int OUTER> constexpr int outer_row = OUTER + 8;
template <int OUTER>
constexpr int slab_size = OUTER * INNER_ROW > SLAB * outer_row<OUTER> ? OUTER * INNER_ROW : SLAB * outer_row<OUTER>;

/* In shared memory: stages of A and B as they come, then B split: two buffers of two halves of SLAB x COLS. */
template <int COLS> struct layout {
    static constexpr int B = slab_size<TILE>, STAGE = B + slab_size<COLS>, READY = STAGES * STAGE;
    static constexpr int HALF = SLAB * COLS, BUFFER = 2 * HALF;
    static constexpr size_t BYTES = (size_t)(READY + 2 * BUFFER) * sizeof(float);
};

/* Less work than that takes no longer elsewhere. */
static const double LEAST_WORK = 1 << 22;

struct split_product {
    const float *a, *b;
    float *c;
    int64_t rows, cols, inner, a_stride, b_stride, c_stride;
    int64_t part_inner, part_size; /* inner dimension of a part, a multiple of SLAB; numbers from part to part of C */
    unsigned col_tiles;
    float alpha, beta;
    bool pairs; /* two numbers of C may be stored at once */
};

/* ---- instructions, which other devices have not or do not need ------------------------------------------- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER
#endif

/* Copies `bytes` of BYTES from global to shared memory, and zeros for the others, in the background. */
template <int BYTES> static __device__ __forceinline__ void copy_ahead(float *to, const float *from, int bytes)
{
#ifdef HOPPER
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(BYTES), "r"(bytes)
                     : "memory");
#endif
}

static __device__ __forceinline__ void end_group()
{
#ifdef HOPPER
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until all but the last PENDING groups of this thread have arrived. */
template <int PENDING> static __device__ __forceinline__ void wait_groups()
{
#ifdef HOPPER
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* What the threads have written to shared memory is there for the tensor cores, after the next barrier. */
static __device__ __forceinline__ void publish()
{
#ifdef HOPPER
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Before the first product whose registers other instructions have touched. */
static __device__ __forceinline__ void begin_products()
{
#ifdef HOPPER
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void end_products()
{
#ifdef HOPPER
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wait_products()
{
#ifdef HOPPER
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
}

/* The tensor cores still read or write the register up to here. */
static __device__ __forceinline__ void hold(float &x)
{
#ifdef HOPPER
    asm volatile("" : "+f"(x)::"memory");
#endif
}
static __device__ __forceinline__ void hold(uint32_t &x)
{
#ifdef HOPPER
    asm volatile("" : "+r"(x)::"memory");
#endif
}

/* Describes 8 x COLS of B at `b` in shared memory to the tensor cores: core matrices of 8 columns of C by 4 numbers
 * of the inner dimension (16 bytes each), the next 8 columns 128 bytes on, the next 4 numbers COLS · 16 bytes on, not
 * swizzled. */
template <int COLS> static __device__ __forceinline__ uint64_t describe(const float *b)
{
    const uint64_t place = (uint64_t)__cvta_generic_to_shared(b), inner = COLS * 16, outer = 128;
    return place >> 4 | inner >> 4 << 16 | outer >> 4 << 32;
}

/* sums = a · b, or sums += a · b (`keep`), 64 x COLS x 8 a warpgroup, in the background; COLS are 2 for each of a
 * thread's sums. Warp w of the group holds rows 16w to 16w + 15. With g = lane / 4 and t = lane % 4: a holds (g, t),
 * (g + 8, t), (g, t + 4), (g + 8, t + 4) of its rows; sums[4j ..] are (g, 8j + 2t), (g, 8j + 2t + 1), (g + 8, 8j +
 * 2t), (g + 8, 8j + 2t + 1). */
static __device__ __forceinline__ void multiply_add(float (&sums)[8], const uint32_t (&a)[4], uint64_t b,
                                                    bool keep)
{
#ifdef HOPPER
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %13, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "{%8, %9, %10, %11}, %12, keep, 1, 1;\n}"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
                   "+f"(sums[6]), "+f"(sums[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)keep)
                 : "memory");
#endif
}
static __device__ __forceinline__ void multiply_add(float (&sums)[32], const uint32_t (&a)[4], uint64_t b,
                                                    bool keep)
{
#ifdef HOPPER
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, keep, 1, 1;\n}"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
                   "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
                   "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
                   "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
                   "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
                   "+f"(sums[30]), "+f"(sums[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)keep)
                 : "memory");
#endif
}
static __device__ __forceinline__ void multiply_add(float (&sums)[64], const uint32_t (&a)[4], uint64_t b,
                                                    bool keep)
{
#ifdef HOPPER
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, keep, 1, 1;\n}"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
                   "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
                   "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
                   "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
                   "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
                   "+f"(sums[30]), "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
                   "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
                   "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]),
                   "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51]), "+f"(sums[52]), "+f"(sums[53]),
                   "+f"(sums[54]), "+f"(sums[55]), "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]),
                   "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)keep)
                 : "memory");
#endif
}

/* ---- a slab ---------------------------------------------------------------------------------------------- */

/* `first` is rounded to 11 bits; `second` has no more than 13, of which the tensor core drops the last two. */
static __device__ __forceinline__ void split(float x, uint32_t *first, uint32_t *second)
{
    *first = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    *second = __float_as_uint(x - __uint_as_float(*first));
}

template <bool INNER, int OUTER> static __device__ __forceinline__ int place_of(int outer, int inner)
{
    return INNER ? outer * INNER_ROW + inner : inner * outer_row<OUTER> + outer;
}

/* What a thread copies of the slabs of an operand whose rows run along the inner dimension (INNER) or along the
 * other: V numbers of every DOWN-th row, always of the same columns. The pointer goes along: with places and limits
 * worked out anew for each copy, copies were two thirds of all instructions. */
template <bool INNER, int OUTER, int V> struct source {
    static constexpr int COLS = INNER ? SLAB : OUTER, ROWS = INNER ? OUTER : SLAB, PACKS = COLS / V;
    static constexpr int DOWN = THREADS / PACKS, COPIES = ROWS / DOWN;
    static constexpr int SHARED_ROW = INNER ? INNER_ROW : outer_row<OUTER>;
    const float *from;
    int64_t down, next; /* numbers from copy to copy, and from slab to slab */
    int outer_left;     /* rows or columns of the tile that are there */

    __device__ __forceinline__ void begin(const float *values, int64_t stride, int64_t outer, int64_t outer_end,
                                          int64_t inner)
    {
        const int64_t row = threadIdx.x / PACKS, col = threadIdx.x % PACKS * V;
        from = values + ((INNER ? outer : inner) + row) * stride + (INNER ? inner : outer) + col;
        down = DOWN * stride;
        next = INNER ? SLAB : SLAB * stride;
        outer_left = (int)min(outer_end - outer, (int64_t)OUTER);
    }
    /* Copies a slab of which `inner_left` numbers are there, and goes on to the next. */
    __device__ __forceinline__ void fetch(float *shared, int inner_left)
    {
        const int row = threadIdx.x / PACKS, col = threadIdx.x % PACKS * V;
        const int rows = INNER ? outer_left : inner_left, left = (INNER ? inner_left : outer_left) - col;
        const int bytes = 4 * max(0, min(left, V));
        const float *at = from;
        float *to = shared + row * SHARED_ROW + col;
#pragma unroll
        for (int c = 0; c < COPIES; c++) {
            copy_ahead<V * 4>(to + c * DOWN * SHARED_ROW, at, row + c * DOWN < rows ? bytes : 0);
            at += down;
        }
        from += next;
    }
};

/* B's slab split: number (outer, inner) at (inner / 4 · COLS + outer) · 4 + inner % 4 of `to`, and its second part
 * SLAB · COLS further on. */
template <bool INNER, int COLS> static __device__ __forceinline__ void split_b(const float *from, float *to)
{
    constexpr int ALL = COLS * SLAB / 4;
#pragma unroll
    for (int c = 0; c < ALL; c += THREADS) {
        const int chunk = c + threadIdx.x, outer = chunk % COLS, inner = chunk / COLS * 4;
        if (ALL < THREADS && chunk >= ALL) break;
        uint32_t first[4], second[4];
#pragma unroll
        for (int e = 0; e < 4; e++) split(from[place_of<INNER, COLS>(outer, inner + e)], &first[e], &second[e]);
        ((uint4 *)to)[chunk] = make_uint4(first[0], first[1], first[2], first[3]);
        ((uint4 *)to)[chunk + ALL] = make_uint4(second[0], second[1], second[2], second[3]);
    }
}

/* This thread's numbers of A's slab: of rows `row` and `row` + 8. */
template <bool INNER>
static __device__ __forceinline__ void split_a(const float *from, int row, uint32_t (&first)[STEPS][4],
                                               uint32_t (&second)[STEPS][4])
{
#pragma unroll
    for (int k = 0; k < STEPS * 4; k++) {
        const int step = k / 4, e = k % 4, inner = step * 8 + e / 2 * 4 + threadIdx.x % 4;
        split(from[place_of<INNER, TILE>(row + e % 2 * 8, inner)], &first[step][e], &second[step][e]);
    }
}

/* Begins the products of a slab, small ones first. */
template <int COLS>
static __device__ __forceinline__ void begin_slab(float (&sums)[COLS / 2], const uint32_t (&first)[STEPS][4],
                                                  const uint32_t (&second)[STEPS][4], const float *b)
{
    begin_products();
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const uint64_t b1 = describe<COLS>(b + step * 8 * COLS), b2 = describe<COLS>(b + (SLAB + step * 8) * COLS);
        multiply_add(sums, second[step], b1, step > 0);
        multiply_add(sums, first[step], b2, true);
        multiply_add(sums, first[step], b1, true);
    }
    end_products();
}

/* ---- the product ----------------------------------------------------------------------------------------- */

/* Two neighbouring numbers of C. */
static __device__ __forceinline__ void store_pair(const split_product &p, float *c, int64_t row, int64_t col, float x,
                                                  float y)
{
    if (row >= p.rows || col >= p.cols) return;
    float *to = c + row * p.c_stride + col;
    const bool both = col + 1 < p.cols;
    x *= p.alpha;
    y *= p.alpha;
    if (p.beta != 0) {
        x += p.beta * to[0];
        if (both) y += p.beta * to[1];
    }
    if (both && p.pairs) *(float2 *)to = make_float2(x, y);
    else {
        to[0] = x;
        if (both) to[1] = y;
    }
}

template <bool INNER_A, bool INNER_B, int V, int COLS>
static __global__ void __launch_bounds__(THREADS, COLS == 16 ? 2 : 1) multiply_split(const split_product p)
{
    extern __shared__ float4 aligned_shared[];
    using place = layout<COLS>;
    float *const shared = (float *)aligned_shared, *const ready = shared + place::READY;
    const unsigned row_tile = blockIdx.x / p.col_tiles, col_tile = blockIdx.x - row_tile * p.col_tiles;
    const int64_t first_row = (int64_t)row_tile * TILE, first_col = (int64_t)col_tile * COLS;
    const int64_t begin = blockIdx.y * p.part_inner, end = min(begin + p.part_inner, p.inner);
    const int slabs = (int)((end - begin + SLAB - 1) / SLAB), row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    source<INNER_A, TILE, V> a;
    source<INNER_B, COLS, COLS == 16 ? 1 : V> b;
    a.begin(p.a, p.a_stride, first_row, p.rows, begin);
    b.begin(p.b, p.b_stride, first_col, p.cols, begin);
    const auto fetch_slab = [&](int s) {
        float *stage = shared + s % STAGES * place::STAGE;
        if (s < slabs) {
            const int left = (int)min(end - begin - (int64_t)s * SLAB, (int64_t)SLAB);
            a.fetch(stage, left);
            b.fetch(stage + place::B, left);
        }
        end_group();
    };
    uint32_t first[STEPS][4], second[STEPS][4], next_first[STEPS][4], next_second[STEPS][4];
    const auto split_slab = [&](int s) {
        const float *stage = shared + s % STAGES * place::STAGE;
        split_b<INNER_B, COLS>(stage + place::B, ready + s % 2 * place::BUFFER);
        publish();
        split_a<INNER_A>(stage, row, next_first, next_second);
    };
    float totals[COLS / 2] = {}, sums[COLS / 2];
    for (int s = 0; s < STAGES - 1; s++) fetch_slab(s);
    wait_groups<STAGES - 2>();
    __syncthreads();
    split_slab(0);
    wait_groups<STAGES - 3>();
    for (int s = 0; s < slabs; s++) {
#pragma unroll
        for (int e = 0; e < STEPS * 4; e++) {
            first[e / 4][e % 4] = next_first[e / 4][e % 4];
            second[e / 4][e % 4] = next_second[e / 4][e % 4];
        }
        __syncthreads(); /* slab s is split, slab s + 1 is there, and all are done with slab s - 1 */
        begin_slab<COLS>(sums, first, second, ready + s % 2 * place::BUFFER);
        if (s + 1 < slabs) split_slab(s + 1);
        fetch_slab(s + STAGES - 1);
        wait_groups<STAGES - 3>();
        wait_products();
#pragma unroll
        for (int e = 0; e < STEPS * 4; e++) {
            hold(first[e / 4][e % 4]);
            hold(second[e / 4][e % 4]);
        }
#pragma unroll
        for (int e = 0; e < COLS / 2; e++) {
            hold(sums[e]);
            totals[e] += sums[e];
        }
    }
    float *const c = p.c + blockIdx.y * p.part_size;
#pragma unroll
    for (int j = 0; j < COLS / 8; j++) {
        const int64_t at = first_col + j * 8 + threadIdx.x % 4 * 2;
        store_pair(p, c, first_row + row, at, totals[4 * j], totals[4 * j + 1]);
        store_pair(p, c, first_row + row + 8, at, totals[4 * j + 2], totals[4 * j + 3]);
    }
}

/* C = alpha · Σ parts + beta · C */
struct add_parts_op {
    using local = nothing;
    using input = float;
    const float *partial;
    int64_t cols, size;
    int parts;
    float alpha, beta;
    dense_view<float> c;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        float sum = 0;
#pragma unroll 8
        for (int part = 0; part < parts; part++) sum += partial[part * size + row * cols + col];
        return sum;
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &sum, const local &) const
    {
        float *to = c.values + row * c.stride + col;
        *to = beta != 0 ? alpha * sum + beta * *to : alpha * sum;
    }
};

/* ---- host ------------------------------------------------------------------------------------------------ */

template <bool INNER_A, bool INNER_B, int V, int COLS>
static sp_status launch(gnn_engine *engine, const split_product &p, dim3 grid)
{
    const auto kernel = multiply_split<INNER_A, INNER_B, V, COLS>;
    const size_t bytes = layout<COLS>::BYTES;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<grid, THREADS, bytes, state_of(engine)->stream>>>(p);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

template <int V, int COLS>
static sp_status launch_kind(gnn_engine *engine, bool inner_a, bool inner_b, const split_product &p, dim3 grid)
{
    return inner_a ? (inner_b ? launch<true, true, V, COLS> : launch<true, false, V, COLS>)(engine, p, grid)
                   : launch<false, false, V, COLS>(engine, p, grid);
}

template <int COLS>
static sp_status launch_width(gnn_engine *engine, int width, bool inner_a, bool inner_b, const split_product &p,
                              dim3 grid)
{
    return (width == 4   ? launch_kind<4, COLS>
            : width == 2 ? launch_kind<2, COLS>
                         : launch_kind<1, COLS>)(engine, inner_a, inner_b, p, grid);
}

/* Columns of a tile; 128 unless many would be empty. */
static int tile_cols(int64_t cols)
{
    return cols <= 16 ? 16 : 10 * cols >= 7 * (ceil_div(cols, 128) * 128) ? 128 : 64;
}

/* How many numbers of the matrix may be copied at once: 4, 2 or 1. */
static int width_of(const sp_dense *matrix)
{
    const uint64_t all = (uint64_t)(uintptr_t)matrix->values / sizeof(float) | (uint64_t)matrix->stride;
    return all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
}

bool gnn_cuda_split_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a,
                         const sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t inner = transpose_a ? a->rows : a->cols, tiles = ceil_div(c->cols, tile_cols(c->cols));
    return state->split_partial && c->type == SP_DENSE_F32 && !(transpose_a && transpose_b) && inner >= 2 * SLAB &&
           (double)c->rows * (double)c->cols * (double)inner >= LEAST_WORK &&
           ceil_div(c->rows, TILE) * tiles <= INT32_MAX;
}

sp_status gnn_cuda_multiply_split(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha,
                                  const sp_dense *a, const sp_dense *b, double beta, sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t inner = transpose_a ? a->rows : a->cols, col_tiles = ceil_div(c->cols, tile_cols(c->cols));
    const int64_t tiles = ceil_div(c->rows, TILE) * col_tiles, slabs = ceil_div(inner, SLAB);
    const int64_t room = state->processors / tiles, most = slabs / 8, wanted = room < most ? room : most;
    const int64_t part_slabs = ceil_div(slabs, wanted > 1 ? wanted : 1), parts = ceil_div(slabs, part_slabs);
    const int cols = tile_cols(c->cols), width_b = cols == 16 ? 4 : width_of(b); /* a narrow B is copied by ones */
    const int width = width_of(a) < width_b ? width_of(a) : width_b;
    split_product p = {(const float *)a->values, (const float *)b->values, (float *)c->values,
                       c->rows, c->cols, inner, a->stride, b->stride, c->stride,
                       part_slabs * SLAB, 0, (unsigned)col_tiles, (float)alpha, (float)beta, width_of(c) >= 2};
    if (parts > 1) {
        p.c = state->split_partial;
        p.c_stride = c->cols;
        p.part_size = c->rows * c->cols;
        p.alpha = 1;
        p.beta = 0;
        p.pairs = c->cols % 2 == 0;
    }
    CUDA_TRY(cudaSetDevice(state->device));
    const dim3 grid((unsigned)tiles, (unsigned)parts);
    TRY((cols == 16   ? launch_width<16>
         : cols == 64 ? launch_width<64>
                      : launch_width<128>)(engine, width, !transpose_a, transpose_b, p, grid));
    if (parts == 1) return SP_OK;
    const add_parts_op sum = {state->split_partial, c->cols, p.part_size, (int)parts, (float)alpha, (float)beta,
                              view_of<float>(c)};
    return launch_each<float, 1>(engine, c->rows, c->cols, sum);
}

/* Parts fill the device once at most, so that their tiles need no more. */
sp_status gnn_cuda_open_split(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    int major = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, state->device));
    if (major != 9) return SP_OK;
    return sp_array_create(engine->context, (int64_t)state->processors * TILE * TILE, sizeof *state->split_partial,
                           SP_DEVICE, (void **)&state->split_partial);
}
