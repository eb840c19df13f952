/* C = alpha · op(A) · op(B) + beta · C in f32 on tensor cores that multiply TF32 numbers (11 bits): every number is
 * the sum of two of them, x = x1 + x2, and A·B is A1·B1 + A1·B2 + A2·B1 but for A2·B2, 2^-22 of it. (Markidis et al.
 * 2018; Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
 * theoretical peak performance", 2022.) Tensor cores cut sums off where f32 additions round; so sums over SLAB terms
 * are formed there and added up by f32 additions, which leaves errors no larger than those of an f32 product.
 *
 * A block of 8 warps makes TILE x TILE of C, a warp 64 x 32 of it, in slabs of SLAB of the inner dimension, which are
 * copied to shared memory STAGES - 1 slabs ahead. A slab of an operand lies there as it does in memory, rows padded
 * so that the 32 lanes' reads of a fragment fall into 32 banks. Numbers are split in registers, on their way to the
 * tensor cores: 4 instructions a number beside 6 to 12 multiplications of 8 x 16 x 8 for each 8 numbers a lane. Where
 * tiles are too few for the device (Xᵀ·G, whose inner dimension is the nodes) the inner dimension is cut into parts,
 * which are summed by a second launch, always in the same order.
 *
 * The tensor cores of 8.0 and 9.0 multiply TF32 8 and 7 times as fast as the other units f32; on others it is not
 * worth it, and cuBLAS is asked.
 */
#include "backend.cuh"

enum { TILE = 128, SLAB = 32, STAGES = 4, WARP_ROWS = 64, WARP_COLS = 32 };
enum { MMA_ROWS = 16, MMA_COLS = 8, MMA_INNER = 8, DOWN = WARP_ROWS / MMA_ROWS, ACROSS = WARP_COLS / MMA_COLS };

/* Rows of a slab in shared memory: along the inner dimension, or along the outer one. */
enum { INNER_ROW = SLAB + 4, OUTER_ROW = TILE + 8, OPERAND = TILE * INNER_ROW };
static_assert(SLAB * OUTER_ROW <= OPERAND, "a slab fits either way");

constexpr size_t SHARED_BYTES = (size_t)STAGES * 2 * OPERAND * sizeof(float);

/* Less work than that takes no longer elsewhere. */
static const double LEAST_WORK = 1 << 26;

struct split_product {
    const float *a, *b;
    float *c;
    int64_t rows, cols, inner, a_stride, b_stride, c_stride;
    int64_t part_inner, part_size; /* inner dimension of a part, a multiple of SLAB; numbers from part to part of C */
    unsigned col_tiles;
    float alpha, beta;
    bool pairs; /* two numbers of C may be stored at once */
};

/* ---- instructions ---------------------------------------------------------------------------------------- */

/* Copies `bytes` of BYTES from global to shared memory, and zeros for the others, in the background. */
template <int BYTES> static __device__ __forceinline__ void copy_ahead(float *to, const float *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
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
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until all but the last PENDING groups of this thread have arrived. */
template <int PENDING> static __device__ __forceinline__ void wait_groups()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* sums += a · b, 16 x 8 x 8 a warp. With g = lane / 4 and t = lane % 4: a holds (g, t), (g + 8, t), (g, t + 4),
 * (g + 8, t + 4); b (t, g), (t + 4, g); sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). */
static __device__ __forceinline__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/* ---- a slab ---------------------------------------------------------------------------------------------- */

/* `first` is rounded to 11 bits; `second` has no more than 13, of which the tensor core drops the last two. */
static __device__ __forceinline__ void split(float x, uint32_t *first, uint32_t *second)
{
    *first = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    *second = __float_as_uint(x - __uint_as_float(*first));
}

template <bool INNER> static __device__ __forceinline__ int place_of(int outer, int inner)
{
    return INNER ? outer * INNER_ROW + inner : inner * OUTER_ROW + outer;
}

/* A slab of an operand whose rows run along the inner dimension (INNER) or along the other, V numbers at a time. */
template <bool INNER, int V>
static __device__ __forceinline__ void fetch(float *shared, const float *values, int64_t stride, int64_t outer,
                                             int64_t outer_end, int64_t inner, int64_t inner_end)
{
    constexpr int PACKS = (INNER ? SLAB : TILE) / V;
    const int64_t first_row = INNER ? outer : inner, row_end = INNER ? outer_end : inner_end;
    const int64_t first_col = INNER ? inner : outer, col_end = INNER ? inner_end : outer_end;
#pragma unroll
    for (int p = threadIdx.x; p < TILE * SLAB / V; p += THREADS) {
        const int row = p / PACKS, col = p % PACKS * V;
        const int64_t left = first_row + row < row_end ? col_end - (first_col + col) : 0;
        const int some = left <= 0 ? 0 : left < V ? (int)left : V;
        const float *from = some ? values + (first_row + row) * stride + first_col + col : values;
        copy_ahead<V * 4>(shared + row * (INNER ? INNER_ROW : OUTER_ROW) + col, from, some * 4);
    }
}

/* Adds the products of one slab to the warp's sums. */
template <bool INNER_A, bool INNER_B>
static __device__ __forceinline__ void multiply_slab(const float *a, const float *b, int row, int col,
                                                     float (&sums)[DOWN][ACROSS][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < SLAB; k += MMA_INNER) {
        uint32_t a1[DOWN][4], a2[DOWN][4], b1[ACROSS][2], b2[ACROSS][2];
#pragma unroll
        for (int ie = 0; ie < DOWN * 4; ie++) {
            const int i = ie / 4, e = ie % 4, outer = row + i * MMA_ROWS + g + e % 2 * 8;
            split(a[place_of<INNER_A>(outer, k + t + e / 2 * 4)], &a1[i][e], &a2[i][e]);
        }
#pragma unroll
        for (int je = 0; je < ACROSS * 2; je++) {
            const int j = je / 2, e = je % 2, outer = col + j * MMA_COLS + g;
            split(b[place_of<INNER_B>(outer, k + t + e * 4)], &b1[j][e], &b2[j][e]);
        }
        /* The small ones first; sixteen of each kind depend on nothing between them. */
#pragma unroll
        for (int ij = 0; ij < DOWN * ACROSS; ij++)
            multiply_add(sums[ij / ACROSS][ij % ACROSS], a2[ij / ACROSS], b1[ij % ACROSS]);
#pragma unroll
        for (int ij = 0; ij < DOWN * ACROSS; ij++)
            multiply_add(sums[ij / ACROSS][ij % ACROSS], a1[ij / ACROSS], b2[ij % ACROSS]);
#pragma unroll
        for (int ij = 0; ij < DOWN * ACROSS; ij++)
            multiply_add(sums[ij / ACROSS][ij % ACROSS], a1[ij / ACROSS], b1[ij % ACROSS]);
    }
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

template <bool INNER_A, bool INNER_B, int V>
static __global__ void __launch_bounds__(THREADS, 1) multiply_split(const split_product p)
{
    extern __shared__ float4 aligned_shared[];
    float *const shared = (float *)aligned_shared;
    const unsigned row_tile = blockIdx.x / p.col_tiles, col_tile = blockIdx.x - row_tile * p.col_tiles;
    const int64_t first_row = (int64_t)row_tile * TILE, first_col = (int64_t)col_tile * TILE;
    const int64_t begin = blockIdx.y * p.part_inner, end = min(begin + p.part_inner, p.inner);
    const int slabs = (int)((end - begin + SLAB - 1) / SLAB), warp = threadIdx.x / 32;
    const int row = warp % (TILE / WARP_ROWS) * WARP_ROWS, col = warp / (TILE / WARP_ROWS) * WARP_COLS;
    const auto fetch_slab = [&](int s) {
        float *stage = shared + s % STAGES * 2 * OPERAND;
        const int64_t inner = begin + (int64_t)s * SLAB;
        if (s < slabs) {
            fetch<INNER_A, V>(stage, p.a, p.a_stride, first_row, p.rows, inner, end);
            fetch<INNER_B, V>(stage + OPERAND, p.b, p.b_stride, first_col, p.cols, inner, end);
        }
        end_group();
    };
    float totals[DOWN][ACROSS][4] = {};
    for (int s = 0; s < STAGES - 1; s++) fetch_slab(s);
    for (int s = 0; s < slabs; s++) {
        const float *stage = shared + s % STAGES * 2 * OPERAND;
        float sums[DOWN][ACROSS][4] = {};
        /* Slab s is there for all, and all are done with slab s - 1, whose place the next to be fetched takes. */
        wait_groups<STAGES - 2>();
        __syncthreads();
        fetch_slab(s + STAGES - 1);
        multiply_slab<INNER_A, INNER_B>(stage, stage + OPERAND, row, col, sums);
#pragma unroll
        for (int e = 0; e < DOWN * ACROSS * 4; e++)
            totals[e / (ACROSS * 4)][e / 4 % ACROSS][e % 4] += sums[e / (ACROSS * 4)][e / 4 % ACROSS][e % 4];
    }
    float *const c = p.c + blockIdx.y * p.part_size;
    const int64_t g = first_row + row + threadIdx.x % 32 / 4, t = first_col + col + threadIdx.x % 4 * 2;
#pragma unroll
    for (int ij = 0; ij < DOWN * ACROSS; ij++) {
        const int i = ij / ACROSS, j = ij % ACROSS;
        store_pair(p, c, g + i * MMA_ROWS, t + j * MMA_COLS, totals[i][j][0], totals[i][j][1]);
        store_pair(p, c, g + i * MMA_ROWS + 8, t + j * MMA_COLS, totals[i][j][2], totals[i][j][3]);
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

template <bool INNER_A, bool INNER_B, int V>
static sp_status launch(gnn_engine *engine, const split_product &p, unsigned tiles, unsigned parts)
{
    const auto kernel = multiply_split<INNER_A, INNER_B, V>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES));
    kernel<<<dim3(tiles, parts), THREADS, SHARED_BYTES, state_of(engine)->stream>>>(p);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

template <int V>
static sp_status launch_aligned(gnn_engine *engine, bool inner_a, bool inner_b, const split_product &p,
                                unsigned tiles, unsigned parts)
{
    return inner_a ? (inner_b ? launch<true, true, V> : launch<true, false, V>)(engine, p, tiles, parts)
                   : launch<false, false, V>(engine, p, tiles, parts);
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
    const double rows = (double)c->rows, cols = (double)c->cols, inner = (double)(transpose_a ? a->rows : a->cols);
    const double tiled = (double)(ceil_div(c->rows, TILE) * TILE) * (double)(ceil_div(c->cols, TILE) * TILE);
    return state->split_partial && c->type == SP_DENSE_F32 && !(transpose_a && transpose_b) &&
           rows * cols * inner >= LEAST_WORK && inner >= 2 * SLAB && rows * cols >= 0.7 * tiled &&
           ceil_div(c->rows, TILE) * ceil_div(c->cols, TILE) <= INT32_MAX;
}

sp_status gnn_cuda_multiply_split(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha,
                                  const sp_dense *a, const sp_dense *b, double beta, sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t inner = transpose_a ? a->rows : a->cols, col_tiles = ceil_div(c->cols, TILE);
    const int64_t tiles = ceil_div(c->rows, TILE) * col_tiles, slabs = ceil_div(inner, SLAB);
    const int64_t room = state->processors / tiles, most = slabs / 8, wanted = room < most ? room : most;
    const int64_t part_slabs = ceil_div(slabs, wanted > 1 ? wanted : 1), parts = ceil_div(slabs, part_slabs);
    const int width = width_of(a) < width_of(b) ? width_of(a) : width_of(b);
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
    TRY((width == 4   ? launch_aligned<4>
         : width == 2 ? launch_aligned<2>
                      : launch_aligned<1>)(engine, !transpose_a, transpose_b, p, (unsigned)tiles, (unsigned)parts));
    if (parts == 1) return SP_OK;
    const add_parts_op sum = {state->split_partial, c->cols, p.part_size, (int)parts, (float)alpha, (float)beta,
                              view_of<float>(c)};
    return launch_each<float, 1>(engine, c->rows, c->cols, sum);
}

/* Parts fill the device once at most, so that their tiles need no more. */
sp_status gnn_cuda_open_split(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    int major = 0, minor = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, state->device));
    CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, state->device));
    if (minor != 0 || (major != 8 && major != 9)) return SP_OK;
    return sp_array_create(engine->context, (int64_t)state->processors * TILE * TILE, sizeof *state->split_partial,
                           SP_DEVICE, (void **)&state->split_partial);
}
