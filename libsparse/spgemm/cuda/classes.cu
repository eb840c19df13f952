/* Which class a row of C belongs to (classes.cuh), first by its products, then by its entries, and a list of the
 * rows of each class. A's columns and B's offsets are read once, with as many lanes a row as suit A's rows, and a
 * byte a row is noted. Rows of A with the columns of the row before are found by comparing neighbours. */
#include "spgemm/cuda/classes.cuh"

static __device__ __forceinline__ int hashed_class(int64_t entries)
{
    return entries <= LEAST_SLOTS / 2 ? CLASS_HASHED : CLASS_HASHED + 26 - __clz((int)entries - 1);
}

static __device__ __forceinline__ int summed_class(int entries)
{
    return min(hashed_class(entries), CLASS_HASHED + SUMMED_CLASSES - 1);
}

/* Tables of twins take more room, and most of their many products find their column at once: filled to 3/4. */
static __device__ __forceinline__ int twins_class(int entries)
{
    return summed_class((entries + 2) / 3 * 2) - CLASS_HASHED + CLASS_TWINS;
}

/* Adds the block's numbers of rows a class to the totals. `histogram`: ROW_CLASSES zeroed words of shared memory. */
static __device__ void add_members(warp_totals *totals, const unsigned *histogram)
{
    __syncthreads();
    if (threadIdx.x < ROW_CLASSES && histogram[threadIdx.x])
        atomicAdd(&totals->members[threadIdx.x], histogram[threadIdx.x]);
}

/* Whether `row` and `other` of A are to be compared and have the same columns, for LANES lanes; all lanes of the warp
 * must call. */
template <int LANES>
static __device__ __forceinline__ bool have_same_columns(const int64_t *offsets, const int32_t *cols, int64_t row,
                                                         int64_t other, bool same)
{
    int64_t first = 0, last = 0, distance = 0;
    if (same) {
        first = offsets[row];
        last = offsets[row + 1];
        distance = offsets[other] - first;
        same = offsets[other + 1] - last == distance;
    }
    const unsigned lanes = FULL_WARP >> (32 - LANES), group = lanes << (threadIdx.x & 31 & ~(LANES - 1));
    for (int64_t at = first + threadIdx.x % LANES;; at += LANES) {
        const bool equal = !same || at >= last || cols[at] == cols[at + distance];
        const unsigned differing = __ballot_sync(FULL_WARP, !equal); /* all lanes vote, whatever theirs is worth */
        same = same && (differing & group) == 0;
        if (!__any_sync(FULL_WARP, same && at + LANES < last)) break;
    }
    return same;
}

/* Which rows have the columns of the row before, 8 lanes a row; rows of more than `most` are not compared. */
static __global__ void __launch_bounds__(256) find_repeats(int64_t rows, const int64_t *offsets, const int32_t *cols,
                                                           int64_t most, uint8_t *repeats)
{
    const int64_t groups = (int64_t)gridDim.x * blockDim.x / 8;
    for (int64_t base = (int64_t)first_warp() * 4; base < rows; base += groups) {
        const int64_t row = base + threadIdx.x % 32 / 8;
        const bool compared = row > 0 && row < rows && offsets[row + 1] - offsets[row] <= most;
        const bool same = have_same_columns<8>(offsets, cols, row, row - 1, compared);
        if (row < rows && threadIdx.x % 8 == 0) repeats[row] = same;
    }
}

/* Whether the row's products are not to be counted here. */
static __device__ __forceinline__ bool has_many_elements(int64_t elements, bool splits)
{
    return splits && elements > GIANT_ELEMENTS;
}

/* What to note of a row to be counted; `span`: between its smallest and largest column, where it may be narrow. */
static __device__ __forceinline__ int note_products(int64_t products, int64_t elements, int32_t span, int sorts,
                                                    int dense, bool splits)
{
    if (has_many_elements(elements, splits) || (splits && products > GIANT_PRODUCTS)) return note_of(CLASS_GIANT);
    if (products <= MOST_SMALL && (elements <= 32 || products == 0)) return (int)products;
    if (dense && products > dense) return note_of(products > NARROW_PRODUCTS ? CLASS_NARROW : CLASS_NARROWER);
    const bool narrower = span < NARROWER_WORDS * 32;
    if (products <= MOST_COUNTED)
        return note_of(products > LEAST_LOCAL && narrower ? (int)CLASS_LOCAL : hashed_class(products));
    return note_of(narrower                            ? CLASS_NARROWER
                   : span < NARROW_WORDS * 32          ? CLASS_NARROW
                   : products <= sorts                 ? hashed_class(products) - hashed_class(LEAST_SORTED) +
                                                             CLASS_SORTED
                                                       : CLASS_WIDE);
}
/* Whether a row of A, [first, last), is worth the search for its span. The columns of a local one are taken to lie
 * together where those of A do: to look at all rows of so few products would cost random graphs a tenth. */
static __device__ __forceinline__ bool may_be_narrow(int64_t products, const int32_t *a_cols, int64_t first,
                                                     int64_t last)
{
    if (products <= LEAST_LOCAL || products > NARROW_PRODUCTS) return false;
    return products > MOST_COUNTED || __ldg(a_cols + last - 1) - __ldg(a_cols + first) < NARROWER_WORDS * 32;
}

/* Products of 32 rows of A whose elements lie in [first, last), the lane's from `begin` on: those before its row's,
 * and of all. */
struct products_before {
    long long before, all;
};
static __device__ __forceinline__ products_before pass_products(int64_t first, int64_t last, int64_t begin,
                                                                const int32_t *a_cols, const int64_t *b_offsets)
{
    enum { AHEAD = 4 };
    const int lane = threadIdx.x & 31;
    products_before passed = {};
    for (int64_t at = first; at < last; at += 32 * AHEAD) {
        int32_t k[AHEAD];
        long long own[AHEAD];
        /* Without conditions, so that all are on their way at once. */
#pragma unroll
        for (int u = 0; u < AHEAD; u++) k[u] = __ldg(a_cols + min(at + 32 * u + lane, last - 1));
#pragma unroll
        for (int u = 0; u < AHEAD; u++) own[u] = __ldg(b_offsets + k[u] + 1) - __ldg(b_offsets + k[u]);
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (at + 32 * u + lane >= last) own[u] = 0;
            const long long until = sum_until(own[u]);
            const int64_t place = begin - at - 32 * u; /* of the row's first element in this step */
            const long long there = passed.all + __shfl_sync(FULL_WARP, until - own[u], (int)place & 31);
            if (place >= 0 && place < 32) passed.before = there;
            passed.all += __shfl_sync(FULL_WARP, until, 31);
        }
    }
    if (begin == last) passed.before = passed.all;
    return passed;
}

/* The products of the lane's row, whose elements lie in [begin, end), by the whole warp, a row after the other. */
static __device__ __noinline__ int64_t count_apart(int64_t begin, int64_t end, const int32_t *a_cols,
                                                   const int64_t *b_offsets)
{
    const int lane = threadIdx.x & 31;
    int64_t products = 0;
    for (int of = 0; of < 32; of++) {
        const int64_t first = __shfl_sync(FULL_WARP, (long long)begin, of);
        const int64_t last = __shfl_sync(FULL_WARP, (long long)end, of);
        long long own = 0;
        for (int64_t at = first + lane; at < last; at += 32) {
            const int32_t k = __ldg(a_cols + at);
            own += __ldg(b_offsets + k + 1) - __ldg(b_offsets + k);
        }
        own = group_sum<32>(own);
        if (lane == of) products = own;
    }
    return products;
}

/* Classes by products where rows of A are short: a warp takes 32 rows, whose elements it reads side by side, 128 at
 * once, so that a hub does not leave other lanes waiting. With `merges` merged rows are known, and keep their notes. */
static __global__ void __launch_bounds__(256, MOST_THREADS / 256 - 1)
    classify_short(int64_t rows, const int64_t *a_offsets, const int32_t *a_cols, const int64_t *b_offsets,
                   const int32_t *b_cols, int sorts, int dense, bool splits, bool merges, uint8_t *notes,
                   int32_t *lengths, warp_totals *totals)
{
    __shared__ unsigned histogram[ROW_CLASSES];
    __shared__ uint64_t scratch[32];
    if (threadIdx.x < ROW_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x & 31;
    unsigned long long all = 0;
    for (int64_t base = (int64_t)first_warp() * 32; base < rows; base += (int64_t)all_warps() * 32) {
        if (merges && class_of(notes[base]) == CLASS_MERGED) continue;
        const int64_t row = base + lane, begin = a_offsets[min(row, rows)], end = a_offsets[min(row + 1, rows)];
        const int64_t first = __shfl_sync(FULL_WARP, (long long)begin, 0);
        const int64_t last = __shfl_sync(FULL_WARP, (long long)end, 31);
        const bool many = has_many_elements(end - begin, splits);
        products_before passed = {};
        int64_t products;
        if (__any_sync(FULL_WARP, many)) {
            products = count_apart(begin, many ? begin : end, a_cols, b_offsets);
        } else {
            passed = pass_products(first, last, begin, a_cols, b_offsets);
            const long long next = __shfl_down_sync(FULL_WARP, passed.before, 1);
            products = (lane == 31 ? passed.all : next) - passed.before;
        }
        int32_t span = INT32_MAX;
        const bool may = !dense && (products > sorts || products <= MOST_COUNTED) &&
                         may_be_narrow(products, a_cols, begin, end);
        for (unsigned narrow = __ballot_sync(FULL_WARP, may); narrow; narrow &= narrow - 1) {
            const int of = __ffs((int)narrow) - 1;
            int32_t lowest, highest;
            find_span<32>(__shfl_sync(FULL_WARP, (long long)begin, of), __shfl_sync(FULL_WARP, (long long)end, of),
                          a_cols, b_offsets, b_cols, &lowest, &highest);
            if (lane == of) span = highest - lowest;
        }
        if (row >= rows) continue;
        const int note = note_products(products, end - begin, span, sorts, dense, splits);
        if (class_of(note) != CLASS_GIANT) all += (unsigned long long)products;
        notes[row] = (uint8_t)note;
        if (products == 0) lengths[row] = 0;
        atomicAdd(&histogram[class_of(note)], 1u);
    }
    add_members(totals, histogram);
    all = block_reduce<256>(all, add_op(), scratch);
    if (threadIdx.x == 0) atomicAdd(&totals->products, all);
}

/* The same where they are longer, LANES lanes a row. */
template <int LANES>
static __global__ void __launch_bounds__(256, MOST_THREADS / 256)
    classify_long(int64_t rows, const int64_t *a_offsets, const int32_t *a_cols, const int64_t *b_offsets,
                  const int32_t *b_cols, int sorts, int dense, bool splits, bool merges, const uint8_t *repeats,
                  uint8_t *notes, int32_t *lengths, warp_totals *totals)
{
    __shared__ unsigned histogram[ROW_CLASSES];
    __shared__ uint64_t scratch[32];
    if (threadIdx.x < ROW_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x % LANES;
    const int64_t groups = (int64_t)gridDim.x * blockDim.x / LANES;
    unsigned long long all = 0;
    /* Whole warps stay in the loop: the shuffles below need them. */
    for (int64_t base = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32 * (32 / LANES); base < rows;
         base += groups) {
        if (merges && class_of(notes[base]) == CLASS_MERGED) continue;
        const int64_t row = base + threadIdx.x % 32 / LANES;
        const int64_t first = a_offsets[min(row, rows)], last = a_offsets[min(row + 1, rows)];
        const int64_t counted = has_many_elements(last - first, splits) ? first : last;
        int64_t products = 0;
        for (int64_t at = first + lane; at < counted; at += LANES) {
            const int32_t k = a_cols[at];
            products += b_offsets[k + 1] - b_offsets[k];
        }
        for (int step = LANES / 2; step > 0; step /= 2)
            products += __shfl_xor_sync(FULL_WARP, (long long)products, step);
        const bool narrow = !dense && may_be_narrow(products, a_cols, first, last);
        int32_t span = INT32_MAX;
        if (__any_sync(FULL_WARP, narrow)) {
            int32_t lowest, highest;
            find_span<LANES>(first, narrow ? last : first, a_cols, b_offsets, b_cols, &lowest, &highest);
            if (narrow) span = highest - lowest;
        }
        if (row >= rows || lane != 0) continue;
        const bool twin = repeats && (row | 1) < rows && repeats[row | 1];
        const bool follows = twin && row % 32 != 0 && repeats[row];
        int note = note_products(products, last - first, span, sorts, dense, splits);
        const bool giant = class_of(note) == CLASS_GIANT;
        if (!giant) all += (unsigned long long)products;
        if (twin && note > MOST_SMALL && !giant) note = TWIN | (row % 2 || follows ? 0 : note);
        notes[row] = (uint8_t)note;
        if (products == 0) lengths[row] = 0;
        atomicAdd(&histogram[class_of(note)], 1u);
    }
    add_members(totals, histogram);
    all = block_reduce<256>(all, add_op(), scratch);
    if (threadIdx.x == 0) atomicAdd(&totals->products, all);
}

/* The class that sums a row of class c by its products; `sorts` is 0 where products are not plain. */
static __device__ __forceinline__ int class_to_sum(int c, int entries, int sorts, bool dense, bool twin)
{
    if (entries == 0) return CLASS_IDLE;
    if (dense && (c == CLASS_NARROW || c == CLASS_NARROWER)) return c;
    if (sorts && (c == CLASS_NARROW || c == CLASS_NARROWER) && entries <= MOST_SUMMED) {
        const int shape = (c == CLASS_NARROW ? 2 : 0) + (entries > LEAST_RANKED ? 1 : 0);
        return twin ? CLASS_RANKED_TWINS + shape : CLASS_RANKED + shape;
    }
    if (sorts && !twin) {
        /* Rows of up to LEAST_SLOTS / 2 << (c - CLASS_HASHED) products. */
        const bool table = c > CLASS_HASHED && c < CLASS_NARROW;
        if (table && entries > min(LEAST_SLOTS / 4 << (c - CLASS_HASHED), (int)MOST_SUMMED))
            return CLASS_SORTED + c - hashed_class(LEAST_SORTED);
        if (entries > MOST_SUMMED &&
            (c == CLASS_BLOCK_COUNTED || (c == CLASS_LONG && sorts >= LEAST_SORTED << (CLASS_LONG - CLASS_SORTED))))
            return c;
    }
    if (entries > MOST_SUMMED) return CLASS_WIDE;
    return twin ? twins_class(entries) : summed_class(entries);
}

/* Classes by entries of C; small, idle and giant rows stay what they are. A row whose columns in A are those of the row
 * before has its number of entries and its class; 32 rows at most follow one. */
static __global__ void classify_lengths(int64_t rows, const uint8_t *counted, int sorts, bool dense,
                                        int32_t *lengths, uint8_t *notes, warp_totals *totals)
{
    __shared__ unsigned histogram[ROW_CLASSES];
    __shared__ uint64_t scratch[32];
    if (threadIdx.x < ROW_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    unsigned long long all = 0, wide = 0;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < rows;
         row += (int64_t)gridDim.x * blockDim.x) {
        int64_t of = row;
        int note = counted[row];
        const bool twin = note & TWIN;
        while (note == TWIN) note = counted[--of];
        const int entries = lengths[of];
        int c = class_of(note);
        if (of != row) lengths[row] = entries;
        if (c != CLASS_GIANT && (twin || c >= CLASS_HASHED)) {
            c = class_to_sum(c, entries, sorts, dense, twin);
            if (c >= CLASS_TWINS && row % 2) c = CLASS_IDLE;
            if (c == CLASS_WIDE) wide += (unsigned long long)entries;
            note = note_of(c);
        }
        notes[row] = (uint8_t)note;
        all += (unsigned long long)entries;
        atomicAdd(&histogram[c], 1u);
    }
    add_members(totals, histogram);
    all = block_reduce<256>(all, add_op(), scratch);
    wide = block_reduce<256>(wide, add_op(), scratch);
    if (threadIdx.x == 0 && all) atomicAdd(&totals->entries, all);
    if (threadIdx.x == 0 && wide) atomicAdd(&totals->wide_entries, wide);
}

/* Lists the rows of each class beyond the small ones, class by class; within a class in pieces of 1,024 rows that lie
 * together. */
static __global__ void __launch_bounds__(256)
    list_rows(int64_t rows, const uint8_t *notes, warp_totals *totals, int32_t *list)
{
    __shared__ unsigned histogram[ROW_CLASSES], place[ROW_CLASSES];
    unsigned listed = 0;
    for (int c = CLASS_HASHED; c < ROW_CLASSES; c++) listed += totals->members[c];
    if (listed == 0) return;
    for (int64_t base = (int64_t)blockIdx.x * 1024; base < rows; base += (int64_t)gridDim.x * 1024) {
        if (threadIdx.x < ROW_CLASSES) histogram[threadIdx.x] = 0;
        __syncthreads();
        int own[4];
        unsigned at[4];
        for (int u = 0; u < 4; u++) {
            const int64_t row = base + u * 256 + threadIdx.x;
            own[u] = row < rows ? class_of(notes[row]) : CLASS_IDLE;
            if (own[u] >= CLASS_HASHED) at[u] = atomicAdd(&histogram[own[u]], 1u);
        }
        __syncthreads();
        if (threadIdx.x < ROW_CLASSES) {
            const int c = threadIdx.x;
            unsigned first = 0;
            for (int d = CLASS_HASHED; d < c; d++) first += totals->members[d];
            if (c >= CLASS_HASHED && histogram[c]) place[c] = first + atomicAdd(&totals->placed[c], histogram[c]);
        }
        __syncthreads();
        for (int u = 0; u < 4; u++)
            if (own[u] >= CLASS_HASHED) list[place[own[u]] + at[u]] = (int32_t)(base + u * 256 + threadIdx.x);
        __syncthreads();
    }
}

static __global__ void lengths_of(int64_t rows, const int64_t *offsets, int32_t *lengths)
{
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) lengths[row] = (int32_t)(offsets[row + 1] - offsets[row]);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

template <typename V> sp_status list_classes(warp_run<V> *run)
{
    sp_context *context = run->context;
    return launch_strided(context, list_rows, (run->a->rows + 1023) / 1024, stream_of(context), run->a->rows,
                          run->job.notes, run->job.totals, run->list);
}

sp_status find_chains(sp_context *context, bool *can)
{
    cudaFuncAttributes code;
    CUDA_CHECK(cudaFuncGetAttributes(&code, list_rows));
    *can = code.binaryVersion >= 90 && code.ptxVersion >= 90;
    return SP_OK;
}

/* Rows of up to four elements are read 32 rows at a time, those of up to 24 by eight lanes each: in rows of six to
 * eight, hubs among 32 leave too much to one warp (117 instead of 81 us for five million elements). */
template <typename V> sp_status classify_rows(warp_run<V> *run)
{
    sp_context *context = run->context;
    const sp_csr *a = run->a, *b = run->b;
    run->job.totals = run->totals;
    if (run->merges) CHECK(count_merged_rows(run));
    if (a->nnz <= 4 * a->rows && !left_out("spgemm-classify-short"))
        return launch_strided(context, classify_short, (a->rows + 255) / 256, stream_of(context), a->rows,
                              a->row_offsets, a->col_indices, b->row_offsets, b->col_indices, run->sorts, run->dense,
                              run->splits, run->merges, run->notes, run->lengths, run->job.totals);
    const int lanes = a->nnz <= 24 * a->rows ? 8 : 32;
    const int64_t compared = run->splits ? (int64_t)GIANT_ELEMENTS : INT64_MAX;
    const bool square = a->rows == b->rows && a->row_offsets == b->row_offsets && a->col_indices == b->col_indices;
    if (run->twins) {
        CHECK(run->a_repeats.allocate(context, a->rows));
        CHECK(launch_strided(context, find_repeats, (a->rows * 8 + 255) / 256, stream_of(context), a->rows,
                             a->row_offsets, a->col_indices, compared, run->a_repeats.data));
        if (square) run->job.product.repeats = run->a_repeats.data;
    }
    return launch_strided(context, lanes == 8 ? classify_long<8> : classify_long<32>, (a->rows * lanes + 255) / 256,
                          stream_of(context), a->rows, a->row_offsets, a->col_indices, b->row_offsets, b->col_indices,
                          run->sorts, run->dense, run->splits, run->merges, run->a_repeats.data, run->notes,
                          run->lengths, run->job.totals);
}

template <typename V> sp_status reclassify_rows(warp_run<V> *run)
{
    sp_context *context = run->context;
    run->job.totals = run->totals + 1;
    run->job.notes = run->notes + run->a->rows;
    return launch_strided(context, classify_lengths, (run->a->rows + 255) / 256, stream_of(context), run->a->rows,
                          run->notes, run->sorts, run->dense > 0, run->lengths, run->notes + run->a->rows,
                          run->job.totals);
}

/* Classes of rows to sum, by C's offsets. */
template <typename V> sp_status classify_known(warp_run<V> *run, const sp_csr *c)
{
    sp_context *context = run->context;
    lengths_of<<<(unsigned)((c->rows + 255) / 256), 256, 0, stream_of(context)>>>(c->rows, c->row_offsets,
                                                                                  run->lengths);
    CUDA_CHECK(cudaGetLastError());
    CHECK(classify_rows(run));
    return reclassify_rows(run);
}

template sp_status classify_rows(warp_run<float> *);
template sp_status classify_rows(warp_run<double> *);
template sp_status reclassify_rows(warp_run<float> *);
template sp_status reclassify_rows(warp_run<double> *);
template sp_status classify_known(warp_run<float> *, const sp_csr *);
template sp_status classify_known(warp_run<double> *, const sp_csr *);
template sp_status list_classes(warp_run<float> *);
template sp_status list_classes(warp_run<double> *);
