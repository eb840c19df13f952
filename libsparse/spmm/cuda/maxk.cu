/* MaxK on a CUDA device (Peng et al., "MaxK-GNN", 2024): the product of A with the compressed rows that maxk_select.cu
 * makes, and its gradient.
 *
 * Bytes, f32 and up to 256 columns. An entry of A costs the product 8 of A and 5k gathered, 80 where k is 16 against
 * 1,024 of 256 dense columns, and a row of Y is written once; the second-level cache holds the kept rows, so that its 5
 * to 9 TB/s are the floor. The gradient needs k numbers of a dense row of 256 in sectors of 8: 13 of the 32 sectors for
 * k = 16, 406 bytes.
 *
 * The product: a warp takes a row of A, or a part of one as cut by the plan, and keeps its sums dense in shared
 * memory. A kept row has distinct columns, so lanes over its entries add without atomics; where k is at most 16, 2
 * or more parts of the warp take a kept row each and have sums of their own, which meet when the row is written.
 * 32 products cost the shared memory some 7 cycles, a load and a store at random banks, and their loads 4: 3
 * products a cycle and multiprocessor.
 *
 * The gradient: lanes over the kept entries of the row that is made gather from several dense rows at a time, and
 * have their sums in registers. Where the dense matrix is larger than the second-level cache and its rows are
 * gathered often, tiles of its columns are worked on one after another; kept columns ascend, so those of a tile
 * are neighbours.
 *
 * Peng et al. add to shared memory and, in the gradient, to global memory with atomics, in any order. Here sums
 * run in an order that the plan fixes, and results have the same bits in every run.
 */
#include "spmm/cuda/blocks.cuh"
#include "spmm/cuda/maxk.cuh"
#include "spmm/cuda/packet.cuh"

enum { WARPS = MAXK_WARPS, THREADS = 32 * WARPS };
static_assert((int)WARPS == (int)SPMM_GROUPS, "a warp takes what a group of the block partition does");

/* ---- loads ------------------------------------------------------------------------------------------------ */

/* Loads that are issued where they stand, several before the first is waited for: left to itself the compiler moves
 * each to its use. */
static __device__ __forceinline__ int load_now(const uint8_t *from)
{
    unsigned word;
    asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(word) : "l"(from));
    return (int)word;
}
static __device__ __forceinline__ int load_now(const uint16_t *from)
{
    unsigned short word;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(word) : "l"(from));
    return word;
}
static __device__ __forceinline__ float load_now(const float *from)
{
    float word;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(word) : "l"(from));
    return word;
}
static __device__ __forceinline__ double load_now(const double *from)
{
    double word;
    asm volatile("ld.global.nc.f64 %0, [%1];" : "=d"(word) : "l"(from));
    return word;
}

/* base + row * stride, in one instruction; the compiler would take it apart. */
template <typename T>
static __device__ __forceinline__ const T *address_of_row(const T *base, uint32_t row, uint32_t stride)
{
    const T *at;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(stride * (uint32_t)sizeof(T)), "l"(base));
    return at;
}

/* ---- the rows of A that a warp has ------------------------------------------------------------------------- */

/* A as a plan has cut it: see spmm.cuh and blocks.cu. */
struct plan_rows {
    const int64_t *offsets;
    const int32_t *cols;
    const void *weights; /* NULL: ones */
    int64_t rows;
    const int4 *blocks; /* NULL: rows as they come, a warp a row */
    const int32_t *part_rows, *part_entries;
    const int64_t *part_starts;
    block_sizes sizes;
    int partial; /* the first blocks, this many, have a part of a row each */
    void *carry; /* the sums of these parts, */
    unsigned *arrived; /* and by first block of a row and blockIdx.y how many are there */
};

/* Entries begin to begin + count - 1 of A: a part of a row that `groups` neighbouring warps of the block share;
 * this is number `part` of them. `groups` is the same in all warps of a block. */
struct row_part {
    int64_t row, begin;
    int count, groups, part;
    bool active;        /* whether there is a row */
    int piece, pieces;  /* of a row that takes several blocks; pieces 0: this block has all of the row */
};

static __device__ __forceinline__ row_part find_part(const plan_rows &a)
{
    const int warp = threadIdx.x / 32;
    row_part found = {};
    if (!a.blocks) {
        found.row = (int64_t)blockIdx.x * WARPS + warp;
        found.active = found.row < a.rows;
        found.begin = found.active ? __ldg(a.offsets + found.row) : 0;
        found.count = found.active ? (int)(__ldg(a.offsets + found.row + 1) - found.begin) : 0;
        found.groups = 1;
        return found;
    }
    const int4 block = __ldg(a.blocks + blockIdx.x);
    const bool partial = (int)blockIdx.x < a.partial;
    const int share = partial ? a.sizes.share(block.w, WARPS) : block.w >> 16;
    found.groups = partial ? WARPS : a.sizes.groups_of(block.x);
    found.part = warp % found.groups;
    found.active = warp / found.groups < (partial ? 1 : block.w & 0xffff);
    if (partial) {
        found.piece = block.z / a.sizes.block;
        found.pieces = (block.x + a.sizes.block - 1) / a.sizes.block;
    }
    if (!found.active) return found;
    const int place = block.y + warp / found.groups;
    const int entries = partial ? block.w : __ldg(a.part_entries + place), first = min(found.part * share, entries);
    found.row = __ldg(a.part_rows + place);
    found.begin = __ldg(a.part_starts + place) + block.z + first;
    found.count = min(entries - first, share);
    return found;
}

/* In a block of more rows without entries than warps, calls take(row) for those of this warp, and
 * returns true. */
template <typename Take> static __device__ __forceinline__ bool for_empty_rows(const plan_rows &a, Take take)
{
    if (!a.blocks) return false;
    const int4 block = __ldg(a.blocks + blockIdx.x);
    if (block.x != 0) return false;
    const int rows = block.w & 0xffff;
    for (int i = threadIdx.x / 32; i < rows; i += WARPS) take((int64_t)__ldg(a.part_rows + block.y + i));
    return true;
}

/* Calls take(cols, weights, count) for 32 entries of a part at a time, an entry a lane; lanes without one have column
 * and weight 0. The next are on their way meanwhile. */
template <typename T, typename Take>
static __device__ __forceinline__ void for_entries(const plan_rows &a, const row_part &part, Take take)
{
    const int lane = threadIdx.x % 32;
    const int32_t *cols = a.cols + part.begin;
    const T *weights = a.weights ? (const T *)a.weights + part.begin : nullptr;
    const auto col_at = [&](int at) { return at < part.count ? __ldg(cols + at) : 0; };
    const auto weight_at = [&](int at) { return at < part.count ? weights ? __ldg(weights + at) : T(1) : T(0); };
    int32_t next_col = col_at(lane);
    T next_weight = weight_at(lane);
    for (int base = 0; base < part.count; base += 32) {
        const int32_t col = next_col;
        const T weight = next_weight;
        next_col = col_at(base + 32 + lane);
        next_weight = weight_at(base + 32 + lane);
        take(col, weight, min(part.count - base, 32));
    }
}

template <typename T>
static __device__ __forceinline__ T scale_of(const plan_rows &a, int64_t row, double alpha, bool mean)
{
    const int64_t entries = mean ? __ldg(a.offsets + row + 1) - __ldg(a.offsets + row) : 1;
    return entries > 1 ? (T)alpha / (T)entries : (T)alpha;
}

/* After all threads of a block have left its part of a row: true in the last block of the row. */
static __device__ __forceinline__ bool arrives_last(const plan_rows &a, const row_part &part)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned *arrived = a.arrived + ((int64_t)blockIdx.x - part.piece) * gridDim.y + blockIdx.y;
        last = atomicAdd(arrived, 1) + 1 == (unsigned)part.pieces;
        if (last) *arrived = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* Where piece `piece` of this block's row leaves `count` sums. */
template <typename T>
static __device__ __forceinline__ T *carry_of(const plan_rows &a, const row_part &part, int piece, int count)
{
    const int64_t block = (int64_t)blockIdx.x - part.piece + piece;
    return (T *)a.carry + (block * gridDim.y + blockIdx.y) * count;
}

/* The numbers of one column in `count` rows of sums. */
template <typename T> static __device__ __forceinline__ T add_up(const T *sums, int count, int pitch)
{
    T total = 0;
#pragma unroll 4
    for (int i = 0; i < count; i++) total += sums[i * pitch];
    return total;
}

/* The same over the pieces of this block's row. Other blocks have written them: they are read past the first
 * cache. */
template <typename T>
static __device__ __forceinline__ T add_pieces(const plan_rows &a, const row_part &part, int count, int column)
{
    T total = 0;
#pragma unroll 4
    for (int i = 0; i < part.pieces; i++) total += __ldcg(carry_of<T>(a, part, i, count) + column);
    return total;
}

/* ---- the product ----------------------------------------------------------------------------------------- */

/* Kept rows in flight a part of a warp; bytes of sums a warp, which 4 blocks a multiprocessor leave room for. */
enum { IN_FLIGHT = 4, SUM_BYTES = 6144 };

struct sum_product {
    plan_rows a;
    const void *values, *columns;
    int k, width;
    int tile, pitch; /* columns whose sums are in shared memory, and the same rounded up to 16 bytes */
    void *y;
    int64_t stride;
    double alpha, beta;
    bool mean;
};

/* Adds the kept rows of a part of A to `sums`, those of this part of the warp, one of 2^SUB_BITS; for
 * SUB_BITS -1 there is one, and columns before `first` and beyond `width` more are left out. */
template <typename T, typename C, int SUB_BITS>
static __device__ __forceinline__ void add_kept(const sum_product &p, const row_part &part, int first, int width,
                                                T *sums)
{
    constexpr int BITS = SUB_BITS < 0 ? 0 : SUB_BITS, SUBS = 1 << BITS, LANES = 32 >> BITS, STEP = IN_FLIGHT * SUBS;
    const int own = threadIdx.x % LANES, sub = threadIdx.x % 32 / LANES;
    const auto add = [&](bool mine, int column, T weight, T value) {
        const int to = SUB_BITS < 0 ? column - first : column;
        if (mine && (SUB_BITS >= 0 || (unsigned)to < (unsigned)width)) sums[to] = fused(weight, value, sums[to]);
        __syncwarp();
    };
    for_entries<T>(p.a, part, [&](int32_t cols, T weights, int count) {
        for (int at = 0; at < count; at += STEP) {
            uint32_t row[IN_FLIGHT];
            T weight[IN_FLIGHT];
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; u++) {
                row[u] = (uint32_t)__shfl_sync(FULL_WARP, cols, at + u * SUBS + sub);
                weight[u] = __shfl_sync(FULL_WARP, weights, at + u * SUBS + sub);
            }
            /* Where a warp has parts, all of a kept row is taken at once. */
            for (int base = 0; base < (BITS > 0 ? 1 : p.k); base += LANES) {
                /* Lanes without an entry load some entry that exists. */
                const int e = min(base + own, p.k - 1);
                const bool mine = base + own < p.k;
                T value[IN_FLIGHT];
                int column[IN_FLIGHT];
#pragma unroll
                for (int u = 0; u < IN_FLIGHT; u++) {
                    column[u] = load_now(address_of_row((const C *)p.columns + e, row[u], (uint32_t)p.k));
                    value[u] = load_now(address_of_row((const T *)p.values + e, row[u], (uint32_t)p.k));
                }
                if (at + STEP <= count) {
#pragma unroll
                    for (int u = 0; u < IN_FLIGHT; u++) add(mine, column[u], weight[u], value[u]);
                } else {
#pragma unroll
                    for (int u = 0; u < IN_FLIGHT; u++)
                        add(mine && at + u * SUBS + sub < count, column[u], weight[u], value[u]);
                }
            }
        }
    });
}

template <typename T, typename C, int SUB_BITS>
static __global__ void __launch_bounds__(THREADS, 4) sum_rows(const sum_product p)
{
    extern __shared__ int4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr int subs = SUB_BITS < 0 ? 1 : 1 << SUB_BITS;
    const int packets = subs * p.pitch / (int)(sizeof(int4) / sizeof(T));
    const int first = (int)blockIdx.y * p.tile, width = min(p.width - first, p.tile);
    if (for_empty_rows(p.a, [&](int64_t row) {
            T *y = (T *)p.y + row * p.stride + first;
            for (int j = lane; j < width; j += 32) y[j] = (T)p.beta != 0 ? (T)p.beta * y[j] : T(0);
        }))
        return;
    const row_part part = find_part(p.a);
    for (int i = lane; i < packets; i += 32) shared[warp * packets + i] = make_int4(0, 0, 0, 0);
    __syncwarp();
    add_kept<T, C, SUB_BITS>(p, part, first, width, (T *)shared + (warp * subs + lane / (32 / subs)) * p.pitch);
    if (part.groups > 1) __syncthreads();

    /* All warps of a row, column by column. */
    const T *sums = (const T *)shared + (warp - part.part) * subs * p.pitch;
    const int begin = part.part * 32 + lane, step = part.groups * 32, count = part.groups * subs;
    const bool partial = part.pieces > 0;
    if (partial) {
        T *left = carry_of<T>(p.a, part, part.piece, p.pitch);
        for (int j = begin; j < width; j += step) left[j] = add_up(sums + j, count, p.pitch);
        if (!arrives_last(p.a, part)) return;
    }
    if (!part.active) return;
    const T scale = scale_of<T>(p.a, part.row, p.alpha, p.mean), beta = (T)p.beta;
    T *y = (T *)p.y + part.row * p.stride + first;
    for (int j = begin; j < width; j += step) {
        const T total = partial ? add_pieces<T>(p.a, part, p.pitch, j) : add_up(sums + j, count, p.pitch);
        y[j] = beta != 0 ? fused(beta, y[j], scale * total) : scale * total;
    }
}

/* ---- the gradient ---------------------------------------------------------------------------------------- */

/* The narrowest tile is a line of the caches. */
enum { LINE_BYTES = 128, LEAST_GATHERED = 16 };

struct collect_product {
    plan_rows a;
    void *values;
    const void *columns;
    int k;
    int tiles, tile; /* of columns, and columns of each */
    int chunks;      /* of 32 kept entries, in a tile at most */
    const void *dense;
    uint32_t stride; /* numbers of at most 4 GB */
    bool mean, add;
};

/* How many of a row's columns, ascending, are below a bound. The whole warp. */
template <typename C> static __device__ __forceinline__ int count_below(const C *columns, int k, int bound)
{
    int count = 0;
    for (int base = 0; base < k; base += 32) {
        const int e = base + (int)(threadIdx.x % 32);
        count += __popc(__ballot_sync(FULL_WARP, e < k && (int)__ldg(columns + e) < bound));
    }
    return count;
}

/* The sum for kept entry `lane`, below `count`, over a part of A's row; the lanes with the same entry have the
 * same. */
template <typename T, typename C>
static __device__ __forceinline__ T collect(const collect_product &p, const row_part &part, const C *columns,
                                            int count)
{
    int bits = 2;
    while (1 << bits < count) bits++;
    const int lanes = 1 << bits, own = threadIdx.x & (lanes - 1), sub = threadIdx.x % 32 >> bits, subs = 32 >> bits;
    const T *dense = (const T *)p.dense + __ldg(columns + min(own, count - 1));
    T sum = 0;
    for_entries<T>(p.a, part, [&](int32_t cols, T weights, int entries) {
        for (int at = 0; at < entries; at += IN_FLIGHT * subs) {
            /* Beyond the last entry row 0 is loaded, but not added: it may hold NaN. */
            uint32_t row[IN_FLIGHT];
            T number[IN_FLIGHT], weight[IN_FLIGHT];
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; u++) {
                row[u] = (uint32_t)__shfl_sync(FULL_WARP, cols, at + u * subs + sub);
                weight[u] = __shfl_sync(FULL_WARP, weights, at + u * subs + sub);
            }
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; u++) number[u] = load_now(address_of_row(dense, row[u], p.stride));
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; u++)
                if (at + u * subs + sub < entries) sum = fused(weight[u], number[u], sum);
        }
    });
    for (int step = lanes; step < 32; step *= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
    return sum;
}

template <typename T, typename C>
static __global__ void __launch_bounds__(THREADS, 4) collect_rows(const collect_product p)
{
    __shared__ T shared[WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tile = (int)blockIdx.y / p.chunks, chunk = (int)blockIdx.y % p.chunks;
    if (for_empty_rows(p.a, [&](int64_t row) {
            for (int e = (int)blockIdx.y * 32 + lane; e < p.k && !p.add; e += (int)gridDim.y * 32)
                ((T *)p.values)[row * p.k + e] = 0;
        }))
        return;
    const row_part part = find_part(p.a);
    const C *columns = (const C *)p.columns + part.row * p.k;
    int begin = 0, end = part.active ? p.k : 0;
    if (p.tiles > 1 && part.active) {
        begin = count_below(columns, p.k, tile * p.tile);
        end = count_below(columns, p.k, (tile + 1) * p.tile);
    }
    begin += chunk * 32;
    const int count = min(end - begin, 32);
    T sum = count > 0 ? collect<T, C>(p, part, columns + begin, count) : T(0);

    /* The first warp of a row gathers what the others have. */
    if (part.groups > 1) {
        shared[warp][lane] = sum;
        __syncthreads();
        if (part.part == 0) sum = add_up(&shared[warp][lane], part.groups, 32);
    }
    if (part.pieces > 0) {
        if (warp == 0) carry_of<T>(p.a, part, part.piece, 32)[lane] = sum;
        if (!arrives_last(p.a, part)) return;
        if (warp == 0) sum = add_pieces<T>(p.a, part, 32, lane);
    }
    if (part.part > 0 || lane >= count) return;
    T *value = (T *)p.values + part.row * p.k + begin + lane;
    const T made = scale_of<T>(p.a, part.row, 1, p.mean) * sum;
    *value = p.add ? *value + made : made;
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Calls launch(a, blocks) for each range of columns that a plan has cut A into. `carried` bytes are left by a
 * block with a part of a row; the launch has `tiles` blocks in the second dimension. */
template <typename Launch>
static sp_status for_parts(sp_context *context, const sp_csr *a, spmm_blocks *parts, int64_t tiles, size_t carried,
                           Launch launch)
{
    plan_rows rows = {};
    rows.offsets = a->row_offsets;
    rows.cols = a->col_indices;
    rows.weights = a->values;
    rows.rows = a->rows;
    if (!parts) return launch(rows, maxk_blocks(a->rows), 0);
    rows.part_rows = parts->rows.data;
    rows.part_entries = parts->entries.data;
    rows.part_starts = parts->starts.data;
    rows.sizes = block_sizes(parts);
    for (int range = 0; range < parts->ranges; range++) {
        const int64_t first = parts->edges[2 * range], partial = parts->edges[2 * range + 1] - first;
        const int64_t count = parts->edges[2 * range + 2] - first;
        if (count == 0) continue;
        CHECK(cuda_spmm_make_carry(context, parts, partial * tiles, (size_t)(partial * tiles) * carried));
        rows.blocks = parts->blocks.data + first;
        rows.partial = (int)partial;
        rows.carry = parts->carry.data;
        rows.arrived = parts->arrived.data;
        CHECK(launch(rows, (unsigned)count, range));
    }
    return SP_OK;
}

struct sum_launch {
    sp_context *context;
    const sp_csr *a;
    spmm_blocks *parts;
    sum_product product;

    template <typename T, typename C, int SUB_BITS> sp_status launch(sum_product p) const
    {
        const size_t shared = (size_t)(SUB_BITS < 0 ? WARPS : WARPS << SUB_BITS) * p.pitch * sizeof(T);
        const unsigned tiles = (unsigned)((p.width + p.tile - 1) / p.tile);
        CHECK(cuda_allow_shared(context, sum_rows<T, C, SUB_BITS>, shared));
        return for_parts(context, a, parts, tiles, p.pitch * sizeof(T),
                         [&](const plan_rows &rows, unsigned blocks, int range) -> sp_status {
                             p.a = rows;
                             if (range > 0) p.beta = 1;
                             sum_rows<T, C, SUB_BITS>
                                 <<<dim3(blocks, tiles), THREADS, shared, cuda_state_of(context)->stream>>>(p);
                             CUDA_CHECK(cudaGetLastError());
                             return SP_OK;
                         });
    }
    template <typename T, typename C> sp_status run() const
    {
        constexpr int PACKET = 16 / sizeof(T), MOST = SUM_BYTES / sizeof(T);
        sum_product p = product;
        p.tile = min(p.width, MOST);
        p.pitch = (p.tile + PACKET - 1) / PACKET * PACKET;
        int bits = p.width > MOST ? -1 : 0;
        while (bits >= 0 && bits < 3 && 2 * p.pitch << bits <= MOST && 2 * p.k << bits <= 32) bits++;
        switch (bits) {
        case -1: return launch<T, C, -1>(p);
        case 0: return launch<T, C, 0>(p);
        case 1: return launch<T, C, 1>(p);
        case 2: return launch<T, C, 2>(p);
        default: return launch<T, C, 3>(p);
        }
    }
};

sp_status sp_cuda_maxk_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                            double alpha, const sp_cbsr *kept, double beta, sp_dense *y)
{
    sum_product product = {};
    spmm_blocks *parts;
    CHECK(maxk_begin(context));
    CHECK(cuda_spmm_kept_parts(context, a, (spmm_state *)state, &parts));
    product.values = kept->values;
    product.columns = kept->columns;
    product.k = (int)kept->k;
    product.width = (int)kept->cols;
    product.y = y->values;
    product.stride = y->stride;
    product.alpha = alpha;
    product.beta = beta;
    product.mean = options->reduce == SP_REDUCE_MEAN;
    return maxk_with_types(kept, sum_launch{context, a, parts, product});
}

struct collect_launch {
    sp_context *context;
    const sp_csr *a;
    spmm_blocks *parts;
    int64_t cache;
    int width;
    collect_product product;

    template <typename T, typename C> sp_status run() const
    {
        constexpr int LINE_COLUMNS = LINE_BYTES / sizeof(T);
        collect_product p = product;
        const int64_t column = a->cols * (int64_t)sizeof(T);
        p.tile = width;
        /* The cache holds what it gathers from up to some 50 of its 60 MB. */
        if (column * width > cache && a->nnz >= LEAST_GATHERED * a->cols)
            for (p.tile = LINE_COLUMNS; 2 * p.tile * column <= cache / 6 * 5;) p.tile *= 2;
        p.tile = min(p.tile, width);
        p.tiles = (width + p.tile - 1) / p.tile;
        p.chunks = (min(p.k, p.tile) + 31) / 32;
        const unsigned height = (unsigned)(p.tiles * p.chunks);
        return for_parts(context, a, parts, height, 32 * sizeof(T),
                         [&](const plan_rows &rows, unsigned blocks, int range) -> sp_status {
                             p.a = rows;
                             p.add = range > 0;
                             collect_rows<T, C>
                                 <<<dim3(blocks, height), THREADS, 0, cuda_state_of(context)->stream>>>(p);
                             CUDA_CHECK(cudaGetLastError());
                             return SP_OK;
                         });
    }
};

sp_status sp_cuda_maxk_spmm_backward(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                                     void *state, const sp_dense *gradient, sp_cbsr *kept)
{
    collect_product product = {};
    spmm_blocks *parts;
    CHECK(maxk_begin(context));
    CHECK(cuda_spmm_kept_parts(context, a, (spmm_state *)state, &parts));
    if (gradient->stride > UINT32_MAX / 8)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "rows of the gradient that are %lld numbers apart",
                       (long long)gradient->stride);
    product.values = kept->values;
    product.columns = kept->columns;
    product.k = (int)kept->k;
    product.dense = gradient->values;
    product.stride = (uint32_t)gradient->stride;
    product.mean = options->reduce == SP_REDUCE_MEAN;
    const int64_t cache = ((const spmm_state *)state)->cache;
    return maxk_with_types(kept, collect_launch{context, a, parts, cache, (int)kept->cols, product});
}
