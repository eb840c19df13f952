/* Rows of C = A·B where B has few columns, as where a graph meets a tall, thin matrix: a warp each, with a sum for
 * each of B's columns in shared memory. No column is looked for, and none sorted.
 *
 * 32 elements of A at a time: their rows of B lie side by side in the warp, 4, 8, 16 or 32 lanes a row as the longest
 * needs, longer ones in pieces of 32; each lane has the entries of up to 2·DEPTH rows on their way. Lanes of one row
 * of B have distinct columns and add together; rows add in turn, in A's order. Counting needs no turns, and ends when
 * all columns are done.
 *
 * What binds is shared memory: 16 sums at random take some 3 of its cycles to read and 3 to write, 32 products 12,
 * beside 4 for entries of B and 4 for weights and places. Bytes: 4 + v of B a product, from the second-level cache.
 */
#include <algorithm>

#include "spgemm/cuda/classes.cuh"

/* A warp's own: rows of B, and those that are cut into pieces; then sums, or bits. */
enum { DENSE_ROWS = 64 };
typedef row_of_b<true, 1> dense_row;

static __host__ __device__ constexpr int64_t padded(int64_t cols) { return (cols + 63) / 64 * 64; }
static __host__ __device__ constexpr size_t dense_bytes(int64_t cols, bool sum)
{
    return DENSE_ROWS * sizeof(dense_row) + (size_t)padded(cols) * (sum ? 64 : 1) / 8;
}
static __device__ __forceinline__ dense_row *own_rows(unsigned char *memory, int64_t cols, bool sum)
{
    return (dense_row *)(memory + dense_bytes(cols, sum) * (threadIdx.x / 32));
}

/* A sum that nothing has been added to is -0, which changes no other number. UNSEEN stands for one that is -0 though
 * products have been added: a NaN that no arithmetic makes. */
static constexpr unsigned long long UNTOUCHED = 1ull << 63, UNSEEN = ~0ull;

/* An entry a lane of each of EACH rows of B. */
template <int EACH, typename V> struct dense_entries {
    int32_t col[EACH]; /* EMPTY: none */
    V value[EACH];
};

/* Up to 32 rows of B of at most LANES entries; the other places of `rows` hold empty ones. */
template <int LANES, int DEPTH, typename V, typename Sink>
static __device__ __forceinline__ void take_rows(const product_view<V> &product, const dense_row *rows, int count,
                                                 Sink &sink)
{
    constexpr int GROUPS = 32 / LANES, EACH = DEPTH <= LANES ? DEPTH : LANES, STEP = GROUPS * EACH;
    const int group = (threadIdx.x & 31) / LANES;
    const uint32_t own = threadIdx.x % LANES;
    dense_entries<EACH, V> next;
    rows += group;
    auto load = [&](int base) {
#pragma unroll
        for (int d = 0; d < EACH; d++) {
            const dense_row &b = rows[base + d * GROUPS];
            next.col[d] = EMPTY;
            if (own >= (uint32_t)b.length) continue;
            next.col[d] = __ldg(product.b.cols + (b.start + own));
            if (Sink::SUMS) next.value[d] = __ldg(product.b.values + (b.start + own));
        }
    };
    load(0);
    for (int base = 0; base < count; base += STEP) {
        const dense_entries<EACH, V> now = next;
        if (base + STEP < count) load(base + STEP);
#pragma unroll
        for (int d = 0; d < EACH; d++) {
            if constexpr (Sink::SUMS) {
                const double weight = rows[base + d * GROUPS].weight[0];
#pragma unroll
                for (int turn = 0; turn < GROUPS; turn++) {
                    if (group == turn && now.col[d] != EMPTY) sink.add(now.col[d], weight, now.value[d]);
                    __syncwarp();
                }
            } else if (now.col[d] != EMPTY) {
                sink.set(now.col[d]);
            }
        }
    }
}

/* Rows of B of more than 32 entries, among others, a lane a row. */
template <int DEPTH, typename V, typename Sink>
static __device__ __forceinline__ void take_pieces(const product_view<V> &product, dense_row b, int place,
                                                   dense_row *rows, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    const uint32_t pieces = ((uint32_t)b.length + 31) / 32;
    int total, row = -1; /* the last that has begun */
    const uint32_t before = (uint32_t)scan_lanes((int)pieces, &total);
    b.start -= 32 * before;
    b.length += (int32_t)(32 * before);
    if (pieces > 0) rows[32 + place] = b;
    __syncwarp();
    for (int first = 0; first < total; first += 32) {
        const uint32_t begins = before - (uint32_t)first, at = 32 * (uint32_t)(first + lane);
        const unsigned begun = warp_or(pieces > 0 && begins < 32 ? 1u << begins : 0);
        dense_row piece = rows[32 + row + __popc(begun & (lanes_below() * 2 + 1))];
        row += __popc(begun);
        piece.start += at;
        piece.length = first + lane < total ? (int32_t)min((uint32_t)piece.length - at, 32u) : 0;
        rows[lane] = piece;
        __syncwarp();
        take_rows<32, DEPTH>(product, rows, min(total - first, 32), sink);
        __syncwarp();
    }
}

/* The products of a row into the sink. Columns of A are read two steps ahead, ends of rows of B one. */
template <int DEPTH, typename V, typename Sink>
static __device__ __forceinline__ void walk_dense(const product_view<V> &product, int64_t row, dense_row *rows,
                                                  Sink &sink)
{
    const int lane = threadIdx.x & 31;
    const int64_t begin = product.a.offsets[row], last = product.a.offsets[row + 1];
    int32_t after = begin + lane < last ? __ldg(product.a.cols + begin + lane) : -1;
    dense_row next = {};
    auto read_ahead = [&](int64_t at) {
        next.length = 0;
        if (after >= 0) {
            const int64_t from = __ldg(product.b.offsets + after);
            if (Sink::SUMS) next.weight[0] = (double)__ldg(product.a.values + at + lane);
            next.start = (uint32_t)from;
            next.length = (int32_t)(__ldg(product.b.offsets + after + 1) - from);
        }
        after = at + 32 + lane < last ? __ldg(product.a.cols + at + 32 + lane) : -1;
    };
    read_ahead(begin);
    for (int64_t base = begin; base < last; base += 32) {
        const dense_row b = next;
        read_ahead(base + 32);
        const unsigned filled = __ballot_sync(FULL_WARP, b.length > 0);
        const int count = __popc(filled), place = __popc(filled & lanes_below());
        const int longest = (int)warp_max((unsigned)b.length);
        if (longest <= 32) {
            rows[b.length > 0 ? place : 31 - (lane - place)] = b; /* empty ones last */
            __syncwarp();
            if (longest <= 4) take_rows<4, DEPTH>(product, rows, count, sink);
            else if (longest <= 8) take_rows<8, DEPTH>(product, rows, count, sink);
            else if (longest <= 16) take_rows<16, DEPTH>(product, rows, count, sink);
            else take_rows<32, DEPTH>(product, rows, count, sink);
            __syncwarp();
        } else {
            take_pieces<DEPTH>(product, b, place, rows, sink);
        }
        if (sink.full()) return;
    }
}

/* The next row of a list, -1 at its end. */
static __device__ __forceinline__ int32_t next_row(const row_list &list)
{
    unsigned at = 0;
    if ((threadIdx.x & 31) == 0) at = atomicAdd(list.next, 1u);
    at = __shfl_sync(FULL_WARP, at, 0);
    return at < list.count ? list.rows[(int64_t)at * list.step] : -1;
}

/* ---- counting -------------------------------------------------------------------------------------------- */

struct dense_bits {
    static constexpr bool SUMS = false;
    uint32_t *words;
    int64_t cols;

    __device__ __forceinline__ void set(int32_t col) const { set_bit(words + col / 32, 1u << (col % 32)); }
    __device__ __forceinline__ int count() const
    {
        int own = 0;
        for (int i = threadIdx.x & 31; i < padded(cols) / 32; i += 32) own += __popc(words[i]);
        return (int)warp_add((unsigned)own);
    }
    __device__ __forceinline__ bool full() const { return count() == cols; }
};

template <typename V>
static __global__ void __launch_bounds__(WARP_THREADS, 12) count_dense(warp_job<V> job, row_list list)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const int64_t cols = job.product.cols;
    dense_row *rows = own_rows(table_memory, cols, false);
    dense_bits bits = {(uint32_t *)(rows + DENSE_ROWS), cols};
    for (int32_t row; (row = next_row(list)) >= 0;) {
        for (int i = threadIdx.x & 31; i < padded(cols) / 32; i += 32) bits.words[i] = 0;
        __syncwarp();
        walk_dense<2>(job.product, row, rows, bits);
        const int count = bits.count();
        if ((threadIdx.x & 31) == 0) job.lengths[row] = count;
        __syncwarp();
    }
    end_after_last();
}

/* ---- summing --------------------------------------------------------------------------------------------- */

/* Products of two f32 are exact in f64: fused with the addition they give the same bits. */
template <typename V> struct dense_sums {
    static constexpr bool SUMS = true;
    double *sums;

    __device__ __forceinline__ void add(int32_t col, double weight, V value) const
    {
        if constexpr (sizeof(V) == sizeof(float)) sums[col] = __fma_rn(weight, (double)value, sums[col]);
        else sums[col] = __dadd_rn(sums[col], __dmul_rn(weight, (double)value));
    }
    __device__ __forceinline__ bool full() const { return false; }
};

/* Marks sums that are -0 though products have been added. */
struct dense_zeros {
    static constexpr bool SUMS = false;
    unsigned long long *sums;

    __device__ __forceinline__ void set(int32_t col) const { atomicCAS(sums + col, UNTOUCHED, UNSEEN); }
    __device__ __forceinline__ bool full() const { return false; }
};

/* Writes what has been touched from `to` on; returns how much that is. */
template <typename V>
static __device__ __forceinline__ int64_t write_dense(const double *sums, int64_t cols, int64_t to, int32_t *c_cols,
                                                      V *c_values)
{
    const int64_t begin = to;
#pragma unroll 4
    for (int base = 0; base < cols; base += 32) {
        const int col = base + (threadIdx.x & 31);
        const double sum = sums[col]; /* padded with untouched ones */
        const unsigned long long word = (unsigned long long)__double_as_longlong(sum);
        const unsigned touched = __ballot_sync(FULL_WARP, word != UNTOUCHED);
        if (word != UNTOUCHED) {
            const int64_t at = to + __popc(touched & lanes_below());
            c_cols[at] = col;
            c_values[at] = word == UNSEEN ? V(-0.0) : (V)sum;
        }
        to += __popc(touched);
    }
    __syncwarp();
    return to - begin;
}

template <typename V, int DEPTH, int BLOCKS>
static __global__ void __launch_bounds__(WARP_THREADS, BLOCKS) sum_dense(warp_job<V> job, row_list list)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const int64_t cols = job.product.cols;
    dense_row *rows = own_rows(table_memory, cols, true);
    dense_sums<V> sums = {(double *)(rows + DENSE_ROWS)};
    for (int32_t row; (row = next_row(list)) >= 0;) {
        for (int i = threadIdx.x & 31; i < padded(cols) / 2; i += 32)
            ((double2 *)sums.sums)[i] = make_double2(no_sum<true>(), no_sum<true>());
        __syncwarp();
        walk_dense<DEPTH>(job.product, row, rows, sums);
        const int64_t to = job.offsets[row], entries = job.offsets[row + 1] - to;
        if (write_dense(sums.sums, cols, to, job.c_cols, job.c_values) == entries) continue;
        dense_zeros zeros = {(unsigned long long *)sums.sums};
        walk_dense<1>(job.product, row, rows, zeros);
        write_dense(sums.sums, cols, to, job.c_cols, job.c_values);
    }
    end_after_last();
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Dense rows, the longest first. */
template <typename V> static row_list dense_rows(const warp_run<V> *run)
{
    const unsigned *members = run->known->members;
    unsigned first = 0;
    for (int c = CLASS_HASHED; c < CLASS_NARROW; c++) first += members[c];
    const unsigned count = run->dense ? members[CLASS_NARROW] + members[CLASS_NARROWER] : 0;
    return {run->job.list + first, count, 1, &run->job.totals->next};
}

template <typename V> sp_status launch_dense_counts(warp_run<V> *run)
{
    const row_list list = dense_rows(run);
    if (list.count == 0) return SP_OK;
    return launch_tables(run, count_dense<V>, dense_bytes(run->b->cols, false), list.count, 3, list);
}

/* Of many columns a multiprocessor holds few warps, which have more on their way: Reddit's shape with 16 entries in
 * 256, 1,024 and 4,096 columns takes 6.3, 10.4 and 21.9 ms with 4 and 6.6, 8.3 and 19.3 with 8 in f32. In f64, where
 * registers would not suffice for as many warps, Flickr's with 64 in 256 takes 0.71 and 0.61. */
template <typename V> static auto kernel_to_sum([[maybe_unused]] int64_t cols)
{
    if constexpr (sizeof(V) == sizeof(float))
        if (cols <= 512 && !left_out("spgemm-dense-512")) return sum_dense<V, 4, 7>;
    return sum_dense<V, 8, 4>;
}

template <typename V> sp_status launch_dense(warp_run<V> *run)
{
    const row_list list = dense_rows(run);
    if (list.count == 0) return SP_OK;
    return launch_tables(run, kernel_to_sum<V>(run->b->cols), dense_bytes(run->b->cols, true), list.count, 3, list);
}

template <typename V>
sp_status sum_dense_rows(sp_context *context, const warp_job<V> &job, const row_list &list, cudaStream_t stream)
{
    const size_t bytes = dense_bytes(job.product.cols, true);
    const int warps = table_warps(bytes);
    int blocks;
    CHECK(cuda_full_grid(context, kernel_to_sum<V>(job.product.cols), 32 * warps, warps * bytes, &blocks));
    blocks = (int)std::min((unsigned)blocks, list.count / warps + 1);
    kernel_to_sum<V>(job.product.cols)<<<(unsigned)blocks, 32 * warps, warps * bytes, stream>>>(job, list);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template sp_status launch_dense_counts(warp_run<float> *);
template sp_status launch_dense_counts(warp_run<double> *);
template sp_status launch_dense(warp_run<float> *);
template sp_status launch_dense(warp_run<double> *);
template sp_status sum_dense_rows(sp_context *, const warp_job<float> &, const row_list &, cudaStream_t);
template sp_status sum_dense_rows(sp_context *, const warp_job<double> &, const row_list &, cudaStream_t);
