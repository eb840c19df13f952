/* C = alpha·A + beta·B on a CUDA device, by merging (Green, McColl and Bader, "GPU Merge Path", 2012).
 *
 * The entries of A and B form one sequence: row by row, by columns within a row, A's first of two in the same place.
 * Row i begins at member s(i) = A.offsets[i] + B.offsets[i]. The row of a member is found by a search among the s(i),
 * and the number of A's entries before it by a search along a diagonal of that row. So tiles of 2,048 members, 8 a
 * thread, are equal work whatever the lengths of rows. An entry of B in the same place as one of A is added to it. All
 * other members are the entries of C, and the number of them before a row's first member is C's offset.
 *
 * The tiles are merged twice: once for the bits that say which members are entries of C, once to write these. Bytes an
 * entry of A or B: 4 to merge it, 4 + v to read it again, 4 + v to write C's; one and a half for bits, sums and
 * offsets. */
#include "device/entries.cuh"

enum { ITEMS = 8, TILE = ENTRY_THREADS * ITEMS };

/* Where a tile begins: the row of its first member, and how many of A's entries come before it. */
struct tile_start {
    int64_t row, a;
};

template <typename V> struct add_operands {
    matrix_view<V> a, b;
    int64_t rows, a_entries, members;

    __device__ __forceinline__ int64_t start(int64_t row) const
    {
        return __ldg(a.offsets + row) + __ldg(b.offsets + row);
    }
    /* The row of a member: the last of low .. high that begins at or before it. */
    __device__ __forceinline__ int64_t row_of(int64_t low, int64_t high, int64_t member) const
    {
        while (low < high) {
            const int64_t middle = (low + high + 1) / 2;
            if (start(middle) <= member) low = middle;
            else high = middle - 1;
        }
        return low;
    }
    /* How many entries of A come before a member of the row, which are low .. high. Columns are given by load_a and
     * load_b. */
    template <typename LoadA, typename LoadB>
    __device__ __forceinline__ int64_t before(int64_t row, int64_t member, int64_t low, int64_t high, LoadA load_a,
                                              LoadB load_b) const
    {
        low = max(low, max(__ldg(a.offsets + row), member - __ldg(b.offsets + row + 1)));
        high = min(high, min(__ldg(a.offsets + row + 1), member - __ldg(b.offsets + row)));
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (load_a(middle) <= load_b(member - 1 - middle)) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};

template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    find_tiles(add_operands<V> o, int64_t tiles, tile_start *starts)
{
    const int64_t tile = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (tile > tiles) return;
    if (tile == tiles) {
        starts[tile] = {o.rows - 1, o.a_entries};
        return;
    }
    const int64_t row = o.row_of(0, o.rows - 1, tile * TILE);
    starts[tile] = {row, o.before(row, tile * TILE, 0, INT64_MAX, [&](int64_t e) { return __ldg(o.a.cols + e); },
                                  [&](int64_t e) { return __ldg(o.b.cols + e); })};
}

/* What a block holds of its tile. */
struct tile_columns {
    int32_t a[TILE + 2], b[TILE + 1]; /* one more of A's before the first, and of both after the last */
    int marks[ENTRY_THREADS], last_marks[ENTRY_THREADS / 32];
};

/* The largest of the threads' marks up to this one's. */
static __device__ __forceinline__ int last_mark(const int *marks, int *last_marks)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int mark = marks[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(FULL_WARP, mark, step);
        if (lane >= step) mark = max(mark, before);
    }
    if (lane == 31) last_marks[warp] = mark;
    __syncthreads();
    for (int w = 0; w < warp; w++) mark = max(mark, last_marks[w]);
    return mark;
}

/* Calls take(i, p, q, from_a, both) for the thread's members that are entries of C, the i-th of its 8: A's entry p
 * or, not from_a, B's entry q, or `both` of them. */
template <typename V, typename Take>
static __device__ __forceinline__ void merge_members(const add_operands<V> &o, const tile_start *starts,
                                                     tile_columns *tile, Take take)
{
    const tile_start begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    const int64_t first = (int64_t)blockIdx.x * TILE, last = min(first + TILE, o.members);
    const int64_t a_first = begin.a - 1, b_first = first - begin.a, b_end = last - end.a;
    for (int64_t e = max(a_first, (int64_t)0) + threadIdx.x; e < min(end.a + 1, o.a_entries); e += ENTRY_THREADS)
        tile->a[e - a_first] = __ldg(o.a.cols + e);
    for (int64_t e = b_first + threadIdx.x; e < min(b_end + 1, o.members - o.a_entries); e += ENTRY_THREADS)
        tile->b[e - b_first] = __ldg(o.b.cols + e);
    tile->marks[threadIdx.x] = 0;
    __syncthreads();
    /* Rows mark the first thread whose members all lie behind their begin; the last mark up to a thread is its
     * row. */
    for (int64_t r = begin.row + 1 + threadIdx.x; r <= end.row; r += ENTRY_THREADS) {
        const int64_t thread = (o.start(r) - first + ITEMS - 1) / ITEMS;
        if (thread >= ENTRY_THREADS) break;
        atomicMax(tile->marks + thread, (int)(r - begin.row));
    }
    __syncthreads();
    int64_t row = begin.row + last_mark(tile->marks, tile->last_marks);
    const int64_t member = first + threadIdx.x * ITEMS;
    if (member >= last) return;
    int64_t p = o.before(row, member, max(begin.a, member - b_end), min(end.a, member - b_first),
                         [&](int64_t e) { return tile->a[e - a_first]; },
                         [&](int64_t e) { return tile->b[e - b_first]; });
    int64_t q = member - p;
    int64_t a_end = __ldg(o.a.offsets + row + 1), row_begin = __ldg(o.a.offsets + row);
    int64_t q_end = __ldg(o.b.offsets + row + 1);
    for (int i = 0; i < ITEMS && member + i < last; i++) {
        if (p == a_end && q == q_end) {
            /* Mostly the next row; after rows without entries one that is looked for. */
            row = o.start(row + 2 <= o.rows ? row + 2 : o.rows) > member + i ? row + 1
                                                                            : o.row_of(row + 1, end.row, member + i);
            row_begin = __ldg(o.a.offsets + row);
            a_end = __ldg(o.a.offsets + row + 1);
            q_end = __ldg(o.b.offsets + row + 1);
        }
        const bool has_a = p < a_end, has_b = q < q_end;
        const int32_t x = has_a ? tile->a[p - a_first] : INT32_MAX, y = has_b ? tile->b[q - b_first] : INT32_MAX;
        if (has_a && (!has_b || x <= y)) {
            take(i, p, q, true, has_b && x == y);
            p++;
        } else {
            if (!(p > row_begin && tile->a[p - 1 - a_first] == y)) take(i, p, q, false, false);
            q++;
        }
    }
}

/* A byte a thread: which of its 8 members are entries of C. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_entries(add_operands<V> o, const tile_start *starts, uint8_t *bytes)
{
    __shared__ tile_columns tile;
    unsigned entries = 0;
    merge_members(o, starts, &tile, [&](int i, int64_t, int64_t, bool, bool) { entries |= 1u << i; });
    const int64_t at = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (at * ITEMS < o.members) bytes[at] = (uint8_t)entries;
}

template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    place_rows(add_operands<V> o, member_places entries, int64_t *offsets)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row <= o.rows) offsets[row] = entries.place(o.start(row));
}

/* Sources go through shared memory, so that neighbouring threads write neighbouring entries. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    write_entries(add_operands<V> o, const tile_start *starts, member_places entries, double alpha, double beta,
                  int32_t *cols, V *values)
{
    enum { HALF = 16, NONE = 0xffff };
    __shared__ tile_columns tile;
    __shared__ uint32_t sources[TILE]; /* places in the tile, A's in the lower half, B's in the upper */
    const int64_t first = (int64_t)blockIdx.x * TILE, last = min(first + TILE, o.members);
    const int64_t a_first = starts[blockIdx.x].a - 1, b_first = first - starts[blockIdx.x].a;
    const int64_t begin = entries.place(first), count = entries.place(last) - begin;
    int at = (int)(entries.place(min(first + threadIdx.x * ITEMS, last)) - begin);
    merge_members(o, starts, &tile, [&](int, int64_t p, int64_t q, bool from_a, bool both) {
        const uint32_t a_place = from_a ? (uint32_t)(p - a_first) : NONE;
        const uint32_t b_place = both || !from_a ? (uint32_t)(q - b_first) : NONE;
        sources[at++] = a_place | b_place << HALF;
    });
    __syncthreads();
    for (int k = threadIdx.x; k < count; k += ENTRY_THREADS) {
        const uint32_t p = sources[k] & NONE, q = sources[k] >> HALF;
        double value = 0;
        if (p != NONE) value = alpha * (o.a.values ? (double)o.a.values[a_first + p] : 1);
        if (q != NONE) {
            const double other = beta * (o.b.values ? (double)o.b.values[b_first + q] : 1);
            value = p != NONE ? value + other : other;
        }
        cols[begin + k] = p != NONE ? tile.a[p] : tile.b[q];
        values[begin + k] = (V)value;
    }
}

template <typename V>
static sp_status add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const add_operands<V> o = {view_of<V>(a), view_of<V>(b), a->rows, a->nnz, a->nnz + b->nnz};
    const int64_t tiles = (o.members + TILE - 1) / TILE;
    device_array<tile_start> starts;
    marked_part entries;
    CHECK(starts.allocate(context, tiles + 1));
    CHECK(entries.create(context, o.members));
    if (tiles > 0) {
        find_tiles<<<thread_blocks(tiles + 1), ENTRY_THREADS, 0, stream>>>(o, tiles, starts.data);
        CUDA_CHECK(cudaGetLastError());
        mark_entries<<<(unsigned)tiles, ENTRY_THREADS, 0, stream>>>(o, starts.data, (uint8_t *)entries.words.data);
        CUDA_CHECK(cudaGetLastError());
    }
    CHECK(entries.count(context, o.members));
    CHECK(sp_csr_create(context, a->rows, a->cols, entries.total, a->value_type, SP_DEVICE, c));
    place_rows<<<thread_blocks(a->rows + 1), ENTRY_THREADS, 0, stream>>>(o, entries.places(), c->row_offsets);
    if (tiles > 0)
        write_entries<<<(unsigned)tiles, ENTRY_THREADS, 0, stream>>>(o, starts.data, entries.places(), alpha, beta,
                                                                     c->col_indices, (V *)c->values);
    sp_status status = cuda_status(context, cudaGetLastError(), "write_entries");
    if (status == SP_OK) status = cuda_finish(context);
    if (status != SP_OK) sp_csr_free(context, c);
    return status;
}

sp_status sp_cuda_add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c)
{
    return a->value_type == SP_F32 ? add<float>(context, alpha, a, beta, b, c)
                                   : add<double>(context, alpha, a, beta, b, c);
}
