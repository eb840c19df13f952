/* C = alpha · Σ op(A)·op(B) + beta · C, of one product or two, in f32 on Hopper's tensor cores, which multiply f16
 * numbers (11 bits). Each number is the sum of two of them, x = x1 + x2, and A·B is A1·B1 + A1·B2 + A2·B1 without
 * A2·B2, which is 2^-22 of it. (Markidis et al. 2018; Ootomo and Yokota, "Recovering single precision accuracy from
 * Tensor Cores while surpassing the FP32 theoretical peak performance", 2022.) f16 has few exponents, so numbers are
 * scaled by powers of two first, A by row and slab, B by tile and slab. Numbers below 2^-17 of the largest one there
 * lose bits, with an error of 2^-40 of the largest. Tensor cores truncate sums where f32 additions round. Therefore
 * they form sums over SLAB terms only; f32 operations scale these back and add them up, so errors are no larger than
 * those of an f32 product. Bias, activation and dropout are applied before C is stored.
 *
 * A first launch splits B into an image of its layout in shared memory. A block takes tiles of TILE x COLS of C in
 * slabs of SLAB of the inner dimension: one thread copies the image's slabs into STAGES buffers, and two warpgroups
 * multiply, 64 rows each, with A split in their registers. Shared memory gives 128 bytes a cycle and wgmma takes 64
 * of them for B, so A goes from global memory to the registers directly, a slab ahead. The order of the inner
 * dimension within a slab is free; it is such that a thread's numbers of a row of A are neighbours. Blocks stay for
 * all of their tiles, so the next tile's operands arrive while C is stored.
 *
 * If tiles are too few for the device (Xᵀ·G, whose inner dimension is the nodes), the inner dimension is cut into
 * parts, which another launch sums, always in the same order. If the image has no room for all of B, it is cut into
 * stretches, one after another.
 *
 * An H200 multiplies f16 numbers at 989 TFLOP/s, so three products run at 330, and f32 numbers at 67. Other devices
 * use cuBLAS. Left out (SPARSE_WITHOUT=gnn-split), cuBLAS in f32 takes its work, without loss of accuracy; its TF32
 * mode would be faster but keeps 11 bits only.
 */
#include "each.cuh"
#include "hopper.cuh"
#include "split.cuh"

/* Smaller products take no longer in cuBLAS. */
static const double LEAST_WORK = 1 << 22;
static const int64_t LEAST_INNER = 64;

/* ---- A in halves ------------------------------------------------------------------------------------------ */

/* This thread's numbers of A: 4 of each step of the slab, in two rows. The rows are 8 apart, or neighbours if rows of
 * A run along the outer dimension. Rows beyond the end repeat the last one. */
template <bool INNER, bool WIDE> struct two_rows {
    const float *from[2];
    int64_t stride;
    int left; /* numbers from the thread's first one to the end */

    __device__ __forceinline__ void begin(const split_product &p, const walk &at, int row)
    {
        int64_t inner;
        const split_term &term = at.term(p, &inner, &left);
        const int64_t first = inner + threadIdx.x % 4 * 4, i = at.first_row + row;
        const int64_t last = min(p.rows, at.first_row + p.tile_rows) - 1;
        const int64_t one = min(i, INNER || !WIDE ? last : last / 2 * 2), other = min(i + (INNER ? 8 : 1), last);
        stride = INNER ? 1 : term.a_stride;
        from[0] = term.a + (INNER ? one * term.a_stride + first : first * term.a_stride + one);
        from[1] = term.a + (INNER ? other * term.a_stride + first : first * term.a_stride + other);
        left = (int)min(term.inner - first, (int64_t)INT32_MAX);
        if (at.item >= p.items) left = 0;
    }
    __device__ __forceinline__ void go_on(const split_product &p, walk *at, int row)
    {
        if (at->next(p)) {
            from[0] += SLAB * stride;
            from[1] += SLAB * stride;
            left -= SLAB;
        } else begin(p, *at, row);
    }
    __device__ __forceinline__ void load(float (&raw)[2 * SLAB / 4]) const
    {
        constexpr int OWN = SLAB / 4;
        if (INNER) {
#pragma unroll
            for (int e = 0; e < 2 * OWN; e += 4)
                load_four<WIDE>(from[e / OWN] + e % OWN * 4, left - e % OWN * 4, raw + e);
            return;
        }
        const float *at[2] = {from[0], from[1]};
#pragma unroll
        for (int e = 0; e < OWN; e++) {
            float2 two = make_float2(0, 0);
            if (WIDE && e / 4 * 16 + e % 4 < left) two = *(const float2 *)at[0];
            if (!WIDE && e / 4 * 16 + e % 4 < left) two = make_float2(*at[0], *at[1]);
            raw[e] = two.x;
            raw[OWN + e] = two.y;
            at[0] += (e % 4 == 3 ? 13 : 1) * stride;
            at[1] += (e % 4 == 3 ? 13 : 1) * stride;
        }
    }
};

/* Numbers beyond the first `there` become zero here, because a check during loading would wait for them. Each of the
 * two rows is scaled by a power of two; back[] is its inverse. */
static __device__ __forceinline__ void split_a(float (&raw)[2 * SLAB / 4], int there, uint32_t (&first)[STEPS][4],
                                               uint32_t (&second)[STEPS][4], float (&back)[2])
{
    constexpr int OWN = SLAB / 4;
    if (there < SLAB - 12)
#pragma unroll
        for (int e = 0; e < 2 * OWN; e++)
            if (e % OWN / 4 * 16 + e % 4 >= there) raw[e] = 0;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = 0;
#pragma unroll
        for (int e = 0; e < OWN; e++) most = fmaxf(most, fabsf(raw[r * OWN + e]));
        most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, 1));
        most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, 2));
        const float scale = scale_to(14, most);
        back[r] = inverse(scale);
#pragma unroll
        for (int e = 0; e < OWN; e += 2)
            split(raw[r * OWN + e] * scale, raw[r * OWN + e + 1] * scale, &first[e / 4][r + e % 4],
                  &second[e / 4][r + e % 4]);
    }
}

/* Begins the products of a slab, the small terms first. */
template <int COLS>
static __device__ __forceinline__ void begin_slab(float (&sums)[COLS / 2], const uint32_t (&first)[STEPS][4],
                                                  const uint32_t (&second)[STEPS][4], const __half *stage)
{
    begin_products();
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const uint64_t b1 = describe(stage + step * 16), b2 = describe(stage + step * 16 + layout<COLS>::HALF);
        multiply_add(sums, second[step], b1, step > 0);
        multiply_add(sums, first[step], b2, true);
        multiply_add(sums, first[step], b1, true);
    }
    end_products();
}

/* ---- the product ----------------------------------------------------------------------------------------- */

/* COUNT neighbouring numbers of C. */
template <int COUNT>
static __device__ __forceinline__ void store(const split_product &p, float *c, uint64_t stream, int64_t row,
                                             int64_t end, int64_t col, float (&x)[COUNT])
{
    if (row >= end || col >= p.cols) return;
    float *to = c + row * p.c_stride + col;
    const int left = (int)min(p.cols - col, (int64_t)COUNT);
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        x[e] *= p.alpha;
        if (p.beta != 0 && e < left) x[e] += p.beta * to[e];
        if (p.bias && e < left) x[e] += p.bias[col + e];
        x[e] = finished<false>(p.how, stream, row * p.cols + col + e, x[e]);
    }
    if (COUNT == 4 && left == 4 && p.fours) *(float4 *)to = make_float4(x[0], x[1], x[2], x[3]);
    else
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            if (e < left) to[e] = x[e];
}

/* A thread's sums of two rows: n = 8j + 2t + b is number 4j + b of the first and 4j + 2 + b of the second. */
template <int COLS>
static __device__ __forceinline__ void store_sums(const split_product &p, float *c, uint64_t stream, int64_t row,
                                                  int64_t next_row, int64_t end, int64_t first_col,
                                                  const float (&sums)[COLS / 2])
{
    constexpr int COUNT = COLS == 16 ? 1 : 4, GROUPS = COLS / 8 / COUNT;
#pragma unroll
    for (int q = 0; q < 4 * GROUPS; q++) {
        const int j = q / 4, b = q % 2, second = q / 2 % 2;
        const int64_t col = first_col + layout<COLS>::column(8 * j + threadIdx.x % 4 * 2 + b);
        float x[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; e++) x[e] = sums[4 * (j + e * GROUPS) + 2 * second + b];
        store(p, c, stream, second ? next_row : row, end, col, x);
    }
}

/* One thread fetches slab after slab of B. */
template <int COLS>
static __device__ __forceinline__ void fetch_slabs(const split_product &p, __half *shared, uint64_t *full,
                                                   uint64_t *empty)
{
    using place = layout<COLS>;
    walk at;
    at.enter(p, blockIdx.x);
    for (unsigned s = 0; at.item < p.items; s++) {
        const unsigned stage = s % place::STAGES;
        await(&empty[stage], s / place::STAGES % 2 ^ 1);
        announce(&full[stage], place::STAGE * (unsigned)sizeof(__half));
        fetch(shared + stage * place::STAGE, p.image + at.tile(p) * place::STAGE,
              place::STAGE * (unsigned)sizeof(__half), &full[stage]);
        at.next(p);
    }
}

template <bool INNER_A, bool WIDE, int COLS>
static __device__ __forceinline__ void multiply_slabs(const split_product &p, const __half *shared, uint64_t *full,
                                                      uint64_t *empty)
{
    using place = layout<COLS>;
    const int warp = (threadIdx.x - FETCHERS) / 32, row = warp * 16 + threadIdx.x % 32 / 4 * (INNER_A ? 1 : 2);
    const uint64_t stream = stream_of(p.how);
    float raw[2 * SLAB / 4], sums[COLS / 2], totals[COLS / 2] = {}, back[2];
    uint32_t first[STEPS][4], second[STEPS][4];
    walk at, ahead; /* `ahead` is the slab that is loaded: the next one, and after the split the one after it */
    two_rows<INNER_A, WIDE> rows;
    at.enter(p, blockIdx.x);
    ahead = at;
    rows.begin(p, ahead, row);
    rows.load(raw);
    split_a(raw, rows.left, first, second, back);
    rows.go_on(p, &ahead, row);
    rows.load(raw);
    for (unsigned s = 0; at.item < p.items; s++) {
        const unsigned stage = s % place::STAGES;
        const float scaled = __ldg(p.backs + at.tile(p));
        await(&full[stage], s / place::STAGES % 2);
        begin_slab<COLS>(sums, first, second, shared + stage * place::STAGE);
        const float by[2] = {fminf(back[0] * scaled, 0x1p127f), fminf(back[1] * scaled, 0x1p127f)};
        wait_products();
        if (threadIdx.x % 32 == 0) arrive(&empty[stage]);
#pragma unroll
        for (int e = 0; e < STEPS * 4; e++) {
            hold(first[e / 4][e % 4]);
            hold(second[e / 4][e % 4]);
        }
#pragma unroll
        for (int e = 0; e < COLS / 2; e++) {
            hold(sums[e]);
            totals[e] = fused(sums[e], by[e % 4 / 2], totals[e]);
        }
        split_a(raw, rows.left, first, second, back);
        rows.go_on(p, &ahead, row);
        rows.load(raw);
        const bool last = at.slab + 1 == at.end;
        if (last) {
            walk tile; /* formed again, as registers are few */
            tile.enter(p, at.item);
            const int64_t i = tile.first_row + row;
            store_sums<COLS>(p, p.c + tile.part * p.part_size, stream, i, i + (INNER_A ? 8 : 1),
                             min(p.rows, tile.first_row + p.tile_rows), (int64_t)tile.col_tile * COLS, totals);
#pragma unroll
            for (int e = 0; e < COLS / 2; e++) totals[e] = 0;
        }
        at.next(p);
    }
}

template <bool INNER_A, bool WIDE, int COLS>
static __global__ void __launch_bounds__(BLOCK, shares<COLS>::BLOCKS)
    multiply_split(const __grid_constant__ split_product p)
{
    follow();
    extern __shared__ float4 aligned_shared[];
    using place = layout<COLS>;
    __shared__ uint64_t full[place::STAGES], empty[place::STAGES];
    const unsigned begin = (unsigned)__cvta_generic_to_shared(aligned_shared);
    __half *const shared = (__half *)aligned_shared + (0u - begin) % place::ALIGNED / sizeof(__half);
    if (threadIdx.x < place::STAGES) {
        make_barrier(&full[threadIdx.x], 1);
        make_barrier(&empty[threadIdx.x], (BLOCK - FETCHERS) / 32);
    }
    __syncthreads();
    if (threadIdx.x < FETCHERS) {
        leave_registers<shares<COLS>::FETCHER>();
        if (threadIdx.x == 0) fetch_slabs<COLS>(p, shared, full, empty);
    } else {
        take_registers<shares<COLS>::MULTIPLIER>();
        multiply_slabs<INNER_A, WIDE, COLS>(p, shared, full, empty);
    }
}

/* ---- B in halves ----------------------------------------------------------------------------------------- */

/* A thread's part of a slab of B: four columns by a chunk, or if rows of B run along the inner dimension (INNER) two
 * columns by two chunks. `n` is the first column, `chunk` the first chunk. */
template <bool INNER, int COLS> struct slab_part {
    int n, chunk;
    float raw[32];

    __device__ __forceinline__ slab_part()
    {
        n = INNER ? threadIdx.x / 4 : threadIdx.x % (COLS / 4);
        chunk = INNER ? threadIdx.x % 4 * 2 : threadIdx.x / (COLS / 4);
    }
    /* Loads from the slab's first number on, zeros beyond `left` of the inner dimension and `cols_left` columns. */
    template <bool WIDE>
    __device__ __forceinline__ void load(const float *from, int64_t stride, int left, int64_t cols_left)
    {
        if (INNER) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int col = layout<COLS>::column(n + c * (COLS / 2));
                const int some = col < cols_left ? left - chunk * 8 : 0;
#pragma unroll
                for (int e = 0; e < 16; e += 4)
                    load_four<WIDE>(from + col * stride + chunk * 8 + e, some - e, raw + c * 16 + e);
            }
#pragma unroll
            for (int e = 0; e < 32; e++)
                if (chunk * 8 + e % 16 >= left) raw[e] = 0;
        } else
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const int k = inner_of(chunk, e);
                const int across = (int)min(cols_left - 4 * n, (int64_t)4);
                load_four<WIDE>(from + k * stride + 4 * n, k < left ? across : 0, raw + e * 4);
#pragma unroll
                for (int v = 1; v < 4; v++)
                    if (v >= across) raw[e * 4 + v] = 0;
            }
    }
    /* Stores both halves of all numbers, times `scale`, in the image. */
    __device__ __forceinline__ void split_to(__half *made, float scale)
    {
        using place = layout<COLS>;
#pragma unroll
        for (int e = 0; e < 32; e++) raw[e] *= scale;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            uint4 first, second;
            uint32_t *const one = (uint32_t *)&first, *const two = (uint32_t *)&second;
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (INNER) {
                    const int at_chunk = c / 2 * 16 + q * 4 + c % 2 * 2;
                    split(raw[at_chunk], raw[at_chunk + 1], &one[q], &two[q]);
                } else split(raw[q * 8 + c], raw[q * 8 + 4 + c], &one[q], &two[q]);
            const int to = INNER ? place::place(n + c / 2 * (COLS / 2), chunk + c % 2)
                                 : place::place(n + c * (COLS / 4), chunk);
            *(uint4 *)(made + to) = first;
            *(uint4 *)(made + place::HALF + to) = second;
        }
    }
};

/* A block makes a slab of the image, scaled so that its largest number lies between 2^14 and 2^15. */
template <bool INNER, bool WIDE, int COLS>
static __global__ void __launch_bounds__(2 * COLS)
    split_b(const __grid_constant__ split_product p, __half *image, float *backs)
{
    follow();
    using place = layout<COLS>;
    constexpr int WARPS = 2 * COLS / 32;
    __shared__ alignas(16) __half made[place::STAGE];
    __shared__ float largest[WARPS];
    walk at = {};
    at.slab = (int)(blockIdx.x / p.col_tiles);
    at.col_tile = blockIdx.x % p.col_tiles;
    int64_t inner;
    int left;
    const split_term &term = at.term(p, &inner, &left);
    const int64_t first_col = (int64_t)at.col_tile * COLS;
    slab_part<INNER, COLS> own;
    own.template load<WIDE>(term.b + (INNER ? first_col * term.b_stride + inner : inner * term.b_stride + first_col),
                            term.b_stride, left, p.cols - first_col);
    float most = 0;
#pragma unroll
    for (int e = 0; e < 32; e++) most = fmaxf(most, fabsf(own.raw[e]));
#pragma unroll
    for (int apart = 16; apart; apart /= 2) most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, apart));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, largest[w]);
    const float scale = scale_to(14, most);
    own.split_to(made, scale);
    __syncthreads();
    uint4 *const to = (uint4 *)(image + (int64_t)blockIdx.x * place::STAGE);
#pragma unroll
    for (int k = 0; k < place::STAGE / 8 / (2 * COLS); k++)
        to[k * 2 * COLS + threadIdx.x] = ((const uint4 *)made)[k * 2 * COLS + threadIdx.x];
    if (threadIdx.x == 0) backs[blockIdx.x] = inverse(scale);
}

/* C = alpha · Σ parts + beta · C, then bias, activation and dropout. */
struct add_parts_op {
    using local = uint64_t;
    using input = float;
    const float *partial;
    int parts;
    split_product p;
    dense_view<float> c;

    __device__ __forceinline__ local begin(int64_t) const { return stream_of(p.how); }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const
    {
        float sum = 0;
#pragma unroll 8
        for (int part = 0; part < parts; part++) sum += partial[part * p.part_size + row * p.cols + col];
        return sum;
    }
    __device__ __forceinline__ void store(int64_t row, int64_t col, const input &sum, const local &stream) const
    {
        float *to = c.values + row * c.stride + col;
        const float value = p.beta != 0 ? p.alpha * sum + p.beta * *to : p.alpha * sum;
        *to = finished<false>(p.how, stream, row * p.cols + col, p.bias ? value + p.bias[col] : value);
    }
};

/* ---- host ------------------------------------------------------------------------------------------------ */

template <bool INNER_A, bool WIDE, int COLS> static sp_status launch(gnn_engine *engine, const split_product &p)
{
    const auto kernel = multiply_split<INNER_A, WIDE, COLS>;
    const size_t bytes = layout<COLS>::BYTES;
    const unsigned room = (unsigned)state_of(engine)->processors * shares<COLS>::BLOCKS;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return launch_early(engine, kernel, p.items < room ? p.items : room, BLOCK, bytes, p);
}

/* Whether A and B have rows along the inner dimension, and whether they may be read four (Aᵀ: two) numbers at a time.
 */
struct split_shape {
    bool inner_a, inner_b, wide_a, wide_b;
};

template <int COLS> static sp_status launch_kind(gnn_engine *engine, const split_shape &shape, const split_product &p)
{
    const auto split = shape.inner_b ? (shape.wide_b ? split_b<true, true, COLS> : split_b<true, false, COLS>)
                                     : (shape.wide_b ? split_b<false, true, COLS> : split_b<false, false, COLS>);
    CHECK(launch_early(engine, split, (int64_t)p.slabs * p.col_tiles, 2 * COLS, 0, p, (__half *)p.image,
                       (float *)p.backs));
    if (shape.inner_a) return (shape.wide_a ? launch<true, true, COLS> : launch<true, false, COLS>)(engine, p);
    return (shape.wide_a ? launch<false, true, COLS> : launch<false, false, COLS>)(engine, p);
}

/* Slabs of a tile in B's image: 48 MB, which a second-level cache holds. A longer inner dimension is cut into
 * stretches. */
enum { IMAGE_TILES = 1536, IMAGE_TILE = 128 * SLAB * 2 };
static_assert(layout<128>::STAGE == IMAGE_TILE, "the widest tile");

static int64_t image_room(int cols) { return (int64_t)IMAGE_TILES * 128 / cols; }

/* Columns of a tile: 128, or fewer if many would be empty. */
static int tile_cols(int64_t cols)
{
    if (left_out("gnn-split-16") && cols <= 16) return 64;
    if (left_out("gnn-split-64") && cols > 16) return 128;
    return cols <= 16 ? 16 : 10 * cols >= 7 * (ceil_div(cols, 128) * 128) ? 128 : 64;
}

/* Whether rows begin at multiples of `numbers` numbers. */
static bool starts_at(const sp_dense *matrix, unsigned numbers)
{
    return ((uint64_t)(uintptr_t)matrix->values / sizeof(float) | (uint64_t)matrix->stride) % numbers == 0;
}

bool gnn_cuda_split_wins(const gnn_engine *engine, bool transpose_a, bool transpose_b, const sp_dense *a,
                         const sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    if (left_out("gnn-split")) return false;
    const int64_t inner = transpose_a ? a->rows : a->cols, tiles = ceil_div(c->cols, tile_cols(c->cols));
    return state->split_partial && a->type == SP_DENSE_F32 && !(transpose_a && transpose_b) && inner >= LEAST_INNER &&
           (double)c->rows * (double)c->cols * (double)inner >= LEAST_WORK &&
           ceil_div(c->rows, TILE) * tiles <= INT32_MAX &&
           (ceil_div(inner, SLAB) * tiles * 2 <= image_room(tile_cols(c->cols)) ||
            (transpose_a && 2 * ceil_div(c->rows, TILE) * tiles <= state->processors));
}

/* Rows of a tile such that the last round of blocks is full: 2.6 rounds of 128 rows would take as long as 3. */
static int64_t rows_of_tile(int64_t rows, int64_t col_tiles, int64_t blocks)
{
    const int64_t rounds = ceil_div(ceil_div(rows, TILE) * col_tiles, blocks), tiles = rounds * blocks / col_tiles;
    return rounds < 2 ? (int64_t)TILE : 2 * ceil_div(rows, 2 * tiles);
}

sp_status gnn_cuda_multiply_split(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, int count,
                                  const gnn_product *product, double beta, const gnn_pointwise *how, const void *bias,
                                  sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    const int cols = tile_cols(c->cols);
    const int64_t blocks = state->processors * (cols == 16 ? shares<16>::BLOCKS : 1);
    const int64_t col_tiles = ceil_div(c->cols, cols), tile_rows = rows_of_tile(c->rows, col_tiles, blocks);
    const int64_t row_tiles = ceil_div(c->rows, tile_rows), tiles = row_tiles * col_tiles;
    split_product p = {{}, (const __half *)state->split_image, state->split_backs, (float *)c->values, c->rows,
                       c->cols, c->stride, c->rows * c->cols, 0, 0, 0, (unsigned)row_tiles, (unsigned)col_tiles, 0,
                       (int)tile_rows, (float)alpha, (float)beta, starts_at(c, 4),
                       make_mask(engine, how->activation, how->rate, how->site), (const float *)bias};
    split_shape shape = {!transpose_a, transpose_b, true, true};
    for (int k = 0; k < count; k++) {
        const sp_dense *a = product[k].a, *b = product[k].b;
        const int64_t inner = transpose_a ? a->rows : a->cols;
        p.term[k] = {(const float *)a->values, (const float *)b->values, a->stride, b->stride, inner};
        p.slabs += (int)ceil_div(inner, SLAB);
        if (k == 0) p.first_slabs = p.slabs;
        shape.wide_a = shape.wide_a && starts_at(a, transpose_a ? 2 : 4);
        shape.wide_b = shape.wide_b && starts_at(b, 4);
    }
    const auto run = cols == 16 ? launch_kind<16> : cols == 64 ? launch_kind<64> : launch_kind<128>;
    const int64_t stretch = image_room(cols) / col_tiles, stretches = ceil_div(p.slabs, stretch);
    const int64_t step = ceil_div(p.slabs, stretches);
    const int64_t room = blocks / tiles, most = step / 4, wanted = room < most ? room : most;
    p.part_slabs = (int)ceil_div(step, wanted > 1 ? wanted : 1);
    const int parts = (int)ceil_div(step, p.part_slabs);
    p.items = (unsigned)(tiles * parts);
    if (parts == 1 && stretches == 1) return run(engine, shape, p);
    split_product part = p;
    part.c = state->split_partial;
    part.c_stride = c->cols;
    part.alpha = 1;
    part.fours = c->cols % 4 == 0;
    part.how = mask{};
    part.bias = NULL;
    for (int64_t first = 0; first < p.slabs; first += step) {
        split_term *const term = part.term;
        part.slabs = (int)(p.slabs - first < step ? p.slabs - first : step);
        part.first_slabs = stretches > 1 ? part.slabs : p.first_slabs;
        part.items = (unsigned)(tiles * ceil_div(part.slabs, p.part_slabs));
        part.beta = first > 0;
        CHECK(run(engine, shape, part));
        term->a += step * SLAB * (transpose_a ? term->a_stride : 1);
        term->b += step * SLAB * (transpose_b ? 1 : term->b_stride);
        term->inner -= step * SLAB;
    }
    return launch_each<float, 1>(engine, c->rows, c->cols,
                                 add_parts_op{state->split_partial, parts, p, view_of<float>(c)});
}

/* Only on Hopper with machine code of this build: code that the driver makes of older PTX lacks the instructions.
 * Parts fill the device at most once, which bounds their memory. */
sp_status gnn_cuda_open_split(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    cudaFuncAttributes code;
    CUDA_CHECK(cudaFuncGetAttributes(&code, multiply_split<true, true, 16>));
    if (code.binaryVersion / 10 != 9 || code.ptxVersion < 90) return SP_OK;
    CHECK(sp_array_create(engine->context, (int64_t)state->processors * TILE * TILE, sizeof *state->split_partial,
                          SP_DEVICE, (void **)&state->split_partial));
    CHECK(sp_array_create(engine->context, image_room(16), sizeof *state->split_backs, SP_DEVICE,
                          (void **)&state->split_backs));
    return sp_array_create(engine->context, (int64_t)IMAGE_TILES * IMAGE_TILE, sizeof(__half), SP_DEVICE,
                           &state->split_image);
}
