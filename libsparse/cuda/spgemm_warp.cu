/* C = A·B on a CUDA device in two phases, row-wise (Gustavson 1978), sorted; entries that cancel to zero are kept.
 *
 * Rows are put into classes by what they cost, first by their products to count the columns of C, then by those to
 * form the sums; every class has its own launch and its own tables; the launches run beside each other.
 *   - merged rows, 32 neighbours of up to 4 elements of A and 16 products each: a lane each, which merges rows of B;
 *   - small rows, up to 96 products: sorted in registers, neighbours together (warp.cuh);
 *   - hashed rows: a warp each, with a table of a power of two of slots in shared memory (warp.cuh); up to 2,048
 *     products to count, up to 768 entries of C to sum; two rows at once where neighbouring rows of A have the same
 *     columns;
 *   - narrow rows, whose columns lie within 65,536: a warp each, and a bit a column, to count;
 *   - ranked rows, the narrow ones of up to 768 entries of C, of plain products only: sums lie at the column's rank
 *     among the bits. Where rows of B of the same columns follow one another, as in finite elements, lanes keep
 *     columns and sums in registers;
 *   - sorted rows, up to 4,096 products, or 8,192 where such rows are few or columns many, of plain products only,
 *     and with more than 768 entries of C or half as many as products, whose sums would take as large a network: a
 *     block each, or up to 256 products a warp, the products sorted by column and place in shared memory; those of
 *     more than 2,048 are counted with a block's table, of more than 4,096 as wide rows unless columns are many;
 *   - wide rows: a block each, and a bit a column in windows of 524,288 columns, to count and to write the columns,
 *     which a prefix sum over the bits puts in order. Their sums are done by warps, 512 entries of C at a time, in a
 *     hash table or, where these lie close together, at the column's rank among them.
 * Sums see their products in A's order everywhere: the values are the CPU's, bit for bit.
 *
 * Bytes: 4 of B a product to count and 4 + v to sum (wide rows twice 4), from L2 where rows in flight share rows of B;
 * C written once; 10 a row for lengths, classes and lists. The host waits three times: for the rows of each class,
 * while small rows are counted, for nnz(C) and the classes that sum, for the end; what has no rows is not launched.
 * Merged rows are counted when they are classified, so that the second wait and much else drops out where there are
 * no others.
 */
#include <algorithm>
#include <stdio.h>
#include <string.h>

#include "terms.cuh"
#include "warp.cuh"

/* ---- constants ------------------------------------------------------------------------------------------- */

/* Blocks of rows a warp: four warps, or as few as keep a block's tables within 48 KB, which every device has. */
enum { WARP_THREADS = 128, TABLE_LIMIT = 48 << 10 };

/* Classes of rows. IDLE rows have no products. Classes HASHED + i and TWINS + i have tables of LEAST_SLOTS << i slots, at
 * most half full but for the largest to sum, whose 1,024 slots hold 768: what a multiprocessor holds of larger tables
 * does not keep it busy. */
enum { COUNTED_CLASSES = 6, SUMMED_CLASSES = 4, SORTED_CLASSES = 7, RANKED_CLASSES = 4 };
enum { IDLE, SMALL, MERGED, HASHED, NARROW = HASHED + COUNTED_CLASSES, NARROWER, WIDE, SORTED,
       RANKED = SORTED + SORTED_CLASSES, TWINS = RANKED + RANKED_CLASSES, RANKED_TWINS = TWINS + SUMMED_CLASSES,
       CLASSES = RANKED_TWINS + RANKED_CLASSES };
enum { MOST_SMALL = 96, LEAST_SLOTS = 128, MOST_COUNTED = 2048, MOST_SUMMED = 768 };
static_assert((int)MOST_SMALL <= (int)PACK_PRODUCTS, "a small row fits a pack");
static_assert(LEAST_SLOTS << (COUNTED_CLASSES - 1) == 2 * MOST_COUNTED, "tables are at most half full");

/* Slots of the table that counts rows of class HASHED + i. For up to 256 products it is a quarter full at most: twice
 * the slots take no warp from a multiprocessor, and cost less to clear than the probes that they save. */
static __host__ __device__ constexpr int counting_slots(int i) { return LEAST_SLOTS << (i < 3 ? i + 1 : i); }

/* Rows of class SORTED + i have up to LEAST_SORTED << i products. Those of class BLOCK_COUNTED, more than MOST_COUNTED,
 * are counted by a block, too. LONG rows are counted as wide ones, and sorted where there are no more than LONG_BLOCKS a
 * multiprocessor, which holds one block at a time: their parts would hardly keep the device busy. Where columns are so
 * many that wide rows cost more, they are counted by a block and sorted however many there are. Longer rows are wide,
 * and those that the device's shared memory cannot sort. */
enum { LEAST_SORTED = 128, BLOCK_COUNTED = SORTED + 5, LONG = SORTED + 6, LONG_BLOCKS = 8 };
static_assert(LEAST_SORTED << (BLOCK_COUNTED - SORTED) == 2 * MOST_COUNTED, "what a warp's tables do not count");
static_assert(LONG + 1 == RANKED, "the last class");

/* Merged rows: the elements and products that one may have. All 32 rows of a warp are merged, or none; at least half
 * of their elements lie within NEAR columns of the diagonal, so that neighbouring lanes read neighbouring rows of B:
 * lanes that each read 4 bytes here and there take twice as long as packs. */
enum { MERGED_ELEMENTS = 4, MERGED_PRODUCTS = 16, NEAR = 1 << 16 };

/* What is noted of a row: up to MOST_SMALL, the products of a small or idle one; beyond, its class. TWIN marks rows
 * 2i and 2i + 1 whose columns in A are the same: the first stands for both. Alone it says that the row's columns in A
 * are those of the row before it: of the second, and where more than two agree of the first. When sums are formed, that
 * there is nothing to do for the row, whatever its products. */
enum { TWIN = 128 };
static_assert(MOST_SMALL + CLASSES <= TWIN, "a note is a byte");

static __device__ __forceinline__ uint8_t note_of(int c) { return (uint8_t)(c == IDLE ? TWIN : MOST_SMALL + c); }
static __device__ __forceinline__ int class_of(int note)
{
    note &= TWIN - 1;
    return note == 0 ? IDLE : note <= MOST_SMALL ? SMALL : note - MOST_SMALL;
}

/* Narrow rows: 8 KB of bits a warp, 25 warps a multiprocessor; 2 KB, and as many warps as it holds, for the narrower
 * ones. One warp is not to be left with a hub. */
enum { NARROW_WORDS = 2048, NARROWER_WORDS = 512, NARROW_PRODUCTS = 65536 };

/* Wide rows: 64 KB of bits, three blocks a multiprocessor, or half of it where a block may not have as much. A part of
 * a row has PART_ENTRIES entries of C; fewer where wide rows have less than a million in all, so that all
 * multiprocessors get parts. Compact parts lie within RANKED_COLUMNS: with 4 KB of bits and ranks, as much as their sums
 * take, a multiprocessor holds 24 warps; so it does with scattered ones, which have two buckets an entry.
 * Ranked rows have bits for NARROW_WORDS or NARROWER_WORDS words and sums for LEAST_RANKED or MOST_SUMMED entries. */
enum { WIDE_THREADS = 256, WIDE_WORDS = 16384, PART_ENTRIES = 512, LEAST_PART_ENTRIES = 128, FEW_ENTRIES = 1 << 20,
       RANKED_COLUMNS = 16384, LEAST_RANKED = 256 };

static __host__ __device__ constexpr int buckets_for(int entries) { return 2 * next_power_of_two(entries); }

/* ---- device: classes ------------------------------------------------------------------------------------- */

/* All that is counted on the device. */
struct warp_totals {
    unsigned long long products, entries, wide_entries;
    unsigned int members[CLASSES], placed[CLASSES]; /* rows of a class; rows already listed */
    unsigned int next, compact, scattered;          /* wide row to take; parts of wide rows */
};

/* Kernels of classes may be launched as a chain: each begins when all blocks of that before it have begun, of which
 * it reads nothing, and ends after it. */
static __device__ __forceinline__ void let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
static __device__ __forceinline__ void end_after_last()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (blockIdx.x == 0) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ __forceinline__ unsigned first_warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / 32; }
static __device__ __forceinline__ unsigned all_warps() { return gridDim.x * blockDim.x / 32; }

static __device__ __forceinline__ int hashed_class(int64_t entries)
{
    return entries <= LEAST_SLOTS / 2 ? HASHED : HASHED + 26 - __clz((int)entries - 1);
}

static __device__ __forceinline__ int summed_class(int entries)
{
    return min(hashed_class(entries), HASHED + SUMMED_CLASSES - 1);
}

/* Tables of twins take more room, and most of their many products find their column at once: filled to 3/4. */
static __device__ __forceinline__ int twins_class(int entries)
{
    return summed_class((entries + 2) / 3 * 2) - HASHED + TWINS;
}

/* Adds the block's numbers of rows a class to the totals. `histogram`: CLASSES zeroed words of shared memory. */
static __device__ void add_members(warp_totals *totals, const unsigned *histogram)
{
    __syncthreads();
    if (threadIdx.x < CLASSES && histogram[threadIdx.x])
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
    const unsigned group = LANES == 32 ? FULL_WARP : ((1u << (LANES & 31)) - 1) << ((threadIdx.x & 31) & ~(LANES - 1));
    for (int64_t at = first + threadIdx.x % LANES;; at += LANES) {
        const bool equal = !same || at >= last || cols[at] == cols[at + distance];
        const unsigned differing = __ballot_sync(FULL_WARP, !equal); /* all lanes vote, whatever theirs is worth */
        same = same && (differing & group) == 0;
        if (!__any_sync(FULL_WARP, same && at + LANES < last)) break;
    }
    return same;
}

/* Which rows have the columns of the row before, 8 lanes a row. */
static __global__ void __launch_bounds__(256) find_repeats(int64_t rows, const int64_t *offsets, const int32_t *cols,
                                                           uint8_t *repeats)
{
    const int64_t groups = (int64_t)gridDim.x * blockDim.x / 8;
    for (int64_t base = (int64_t)first_warp() * 4; base < rows; base += groups) {
        const int64_t row = base + threadIdx.x % 32 / 8;
        const bool same = have_same_columns<8>(offsets, cols, row, row - 1, row > 0 && row < rows);
        if (row < rows && threadIdx.x % 8 == 0) repeats[row] = same;
    }
}

/* The smallest and the largest column of a row, by LANES lanes, and whether there is any; all lanes of the warp must
 * call. */
template <int LANES>
static __device__ __forceinline__ void find_span(int64_t first, int64_t last, const int32_t *a_cols,
                                                 const int64_t *b_offsets, const int32_t *b_cols, int32_t *lowest,
                                                 int32_t *highest)
{
    int32_t low = INT32_MAX, high = 0;
    for (int64_t at = first + threadIdx.x % LANES; at < last; at += LANES) {
        const int32_t k = __ldg(a_cols + at);
        const int64_t from = __ldg(b_offsets + k), to = __ldg(b_offsets + k + 1);
        if (from == to) continue;
        low = min(low, __ldg(b_cols + from));
        high = max(high, __ldg(b_cols + to - 1));
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        low = min(low, __shfl_xor_sync(FULL_WARP, low, step));
        high = max(high, __shfl_xor_sync(FULL_WARP, high, step));
    }
    *lowest = low;
    *highest = high;
}

/* What to note of a row to be counted; `span`: between its smallest and largest column, where it may be narrow. */
static __device__ __forceinline__ int note_products(int64_t products, int64_t elements, int32_t span, int sorts)
{
    if (products <= MOST_SMALL && (elements <= 32 || products == 0)) return (int)products;
    if (products <= MOST_COUNTED) return note_of(hashed_class(products));
    return note_of(span < NARROWER_WORDS * 32          ? NARROWER
                   : span < NARROW_WORDS * 32          ? NARROW
                   : products <= sorts                 ? hashed_class(products) - hashed_class(LEAST_SORTED) + SORTED
                                                       : WIDE);
}
static __device__ __forceinline__ bool may_be_narrow(int64_t products)
{
    return products > MOST_COUNTED && products <= NARROW_PRODUCTS;
}

/* A row of C, of fewer than 2^32 entries of B, as one lane merges it: no table, no sort, and sums in A's order. */
struct row_merge {
    const int32_t *cols;                                /* of B */
    uint32_t at[MERGED_ELEMENTS], end[MERGED_ELEMENTS]; /* what is left of B's rows */
    int32_t head[MERGED_ELEMENTS];                      /* their columns at `at`, or NO_COLUMN */
    static constexpr int32_t NO_COLUMN = INT32_MAX;

    __device__ __forceinline__ void open(int64_t begin, int64_t last, const int32_t *a_cols, const int64_t *b_offsets)
    {
        int32_t k[MERGED_ELEMENTS];
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) k[i] = begin + i < last ? __ldg(a_cols + begin + i) : -1;
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) {
            at[i] = k[i] < 0 ? 0 : (uint32_t)__ldg(b_offsets + k[i]);
            end[i] = k[i] < 0 ? 0 : (uint32_t)__ldg(b_offsets + k[i] + 1);
        }
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) look(i);
    }
    __device__ __forceinline__ void look(int i) { head[i] = at[i] < end[i] ? __ldg(cols + at[i]) : NO_COLUMN; }
    __device__ __forceinline__ int32_t lowest() const
    {
        int32_t low = head[0];
#pragma unroll
        for (int i = 1; i < MERGED_ELEMENTS; i++) low = min(low, head[i]);
        return low;
    }
    __device__ __forceinline__ int count()
    {
        int entries = 0;
        for (int32_t low; (low = lowest()) != NO_COLUMN; entries++)
#pragma unroll
            for (int i = 0; i < MERGED_ELEMENTS; i++)
                if (head[i] == low) {
                    at[i]++;
                    look(i);
                }
        return entries;
    }
    /* The sum of column `low`; all that it reads is on its way at once. */
    template <typename V>
    __device__ __forceinline__ double take(int32_t low, const double (&weight)[MERGED_ELEMENTS], const V *values)
    {
        bool takes[MERGED_ELEMENTS];
        V value[MERGED_ELEMENTS];
        double sum = no_sum<true>();
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++) {
            takes[i] = head[i] == low;
            if (!takes[i]) continue;
            value[i] = __ldg(values + at[i]++);
            look(i);
        }
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++)
            if (takes[i]) sum = __dadd_rn(sum, __dmul_rn(weight[i], (double)value[i]));
        return sum;
    }
};

/* Classes by products where rows of A are short: a warp takes 32 rows, whose elements it reads side by side, AHEAD
 * times 32 at once, so that a hub does not leave other lanes waiting. With `merges` it counts the entries of those
 * that are to be merged, whose columns it has begun to read. */
static __global__ void __launch_bounds__(256, MOST_THREADS / 256 - 1)
    classify_short(int64_t rows, const int64_t *a_offsets, const int32_t *a_cols, const int64_t *b_offsets,
                   const int32_t *b_cols, int sorts, bool merges, uint8_t *notes, int32_t *lengths,
                   warp_totals *totals)
{
    enum { AHEAD = 4 };
    __shared__ unsigned histogram[CLASSES];
    __shared__ uint64_t scratch[32];
    if (threadIdx.x < CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x & 31;
    unsigned long long all = 0;
    unsigned entries = 0;
    for (int64_t base = (int64_t)first_warp() * 32; base < rows; base += (int64_t)all_warps() * 32) {
        const int64_t row = base + lane, begin = a_offsets[min(row, rows)], end = a_offsets[min(row + 1, rows)];
        const int64_t first = __shfl_sync(FULL_WARP, (long long)begin, 0);
        const int64_t last = __shfl_sync(FULL_WARP, (long long)end, 31);
        long long passed = 0, before = 0; /* products of the rows so far, and of those before this one */
        int64_t near = 0;                 /* elements close to the diagonal */
        for (int64_t at = first; at < last; at += 32 * AHEAD) {
            int32_t k[AHEAD];
            long long until[AHEAD];
            /* Without conditions, so that all are on their way at once. */
#pragma unroll
            for (int u = 0; u < AHEAD; u++) k[u] = __ldg(a_cols + min(at + 32 * u + lane, last - 1));
#pragma unroll
            for (int u = 0; u < AHEAD; u++) until[u] = __ldg(b_offsets + k[u] + 1) - __ldg(b_offsets + k[u]);
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                const bool there = at + 32 * u + lane < last;
                if (!there) until[u] = 0;
                near += merges ? __popc(__ballot_sync(FULL_WARP, there && llabs(k[u] - base) < NEAR)) : 0;
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                const long long own = until[u];
#pragma unroll
                for (int step = 1; step < 32; step *= 2) {
                    const long long other = __shfl_up_sync(FULL_WARP, until[u], step);
                    if (lane >= step) until[u] += other;
                }
                const int64_t place = begin - at - 32 * u; /* of the row's first element in this step */
                const long long there = passed + __shfl_sync(FULL_WARP, until[u] - own, (int)place & 31);
                if (place >= 0 && place < 32) before = there;
                passed += __shfl_sync(FULL_WARP, until[u], 31);
            }
        }
        if (begin == last) before = passed;
        const long long next = __shfl_down_sync(FULL_WARP, before, 1);
        const int64_t products = (lane == 31 ? passed : next) - before;
        int32_t span = INT32_MAX;
        const bool may = may_be_narrow(products) && products > sorts;
        for (unsigned narrow = __ballot_sync(FULL_WARP, may); narrow; narrow &= narrow - 1) {
            const int of = __ffs((int)narrow) - 1;
            int32_t lowest, highest;
            find_span<32>(__shfl_sync(FULL_WARP, (long long)begin, of), __shfl_sync(FULL_WARP, (long long)end, of),
                          a_cols, b_offsets, b_cols, &lowest, &highest);
            if (lane == of) span = highest - lowest;
        }
        const bool fits = end - begin <= MERGED_ELEMENTS && products <= MERGED_PRODUCTS;
        const bool merged = merges && __all_sync(FULL_WARP, fits && 2 * near >= last - first);
        if (row >= rows) continue;
        const int note = merged ? note_of(MERGED) : note_products(products, end - begin, span, sorts);
        if (merged) {
            row_merge merge = {b_cols};
            merge.open(begin, end, a_cols, b_offsets);
            const int length = merge.count();
            lengths[row] = length;
            entries += (unsigned)length;
        }
        all += (unsigned long long)products;
        notes[row] = (uint8_t)note;
        if (products == 0) lengths[row] = 0;
        atomicAdd(&histogram[class_of(note)], 1u);
    }
    add_members(totals, histogram);
    all = block_reduce<256>(all, add_op(), scratch);
    entries = block_reduce<256>(entries, add_op(), scratch);
    if (threadIdx.x != 0) return;
    atomicAdd(&totals->products, all);
    if (entries) atomicAdd(&totals->entries, (unsigned long long)entries);
}

/* The same where they are longer, LANES lanes a row. */
template <int LANES>
static __global__ void __launch_bounds__(256, MOST_THREADS / 256)
    classify_long(int64_t rows, const int64_t *a_offsets, const int32_t *a_cols, const int64_t *b_offsets,
                  const int32_t *b_cols, int sorts, const uint8_t *repeats, uint8_t *notes, int32_t *lengths,
                  warp_totals *totals)
{
    __shared__ unsigned histogram[CLASSES];
    __shared__ uint64_t scratch[32];
    if (threadIdx.x < CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x % LANES;
    const int64_t groups = (int64_t)gridDim.x * blockDim.x / LANES;
    unsigned long long all = 0;
    /* Whole warps stay in the loop: the shuffles below need them. */
    for (int64_t base = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32 * (32 / LANES); base < rows;
         base += groups) {
        const int64_t row = base + threadIdx.x % 32 / LANES;
        const int64_t first = a_offsets[min(row, rows)], last = a_offsets[min(row + 1, rows)];
        int64_t products = 0;
        for (int64_t at = first + lane; at < last; at += LANES) {
            const int32_t k = a_cols[at];
            products += b_offsets[k + 1] - b_offsets[k];
        }
        for (int step = LANES / 2; step > 0; step /= 2)
            products += __shfl_xor_sync(FULL_WARP, (long long)products, step);
        const bool narrow = may_be_narrow(products);
        int32_t span = INT32_MAX;
        if (__any_sync(FULL_WARP, narrow)) {
            int32_t lowest, highest;
            find_span<LANES>(first, narrow ? last : first, a_cols, b_offsets, b_cols, &lowest, &highest);
            if (narrow) span = highest - lowest;
        }
        if (row >= rows || lane != 0) continue;
        const bool twin = repeats && (row | 1) < rows && repeats[row | 1];
        const bool follows = twin && row % 32 != 0 && repeats[row];
        int note = note_products(products, last - first, span, sorts);
        all += (unsigned long long)products;
        if (twin && note > MOST_SMALL) note = TWIN | (row % 2 || follows ? 0 : note);
        notes[row] = (uint8_t)note;
        if (products == 0) lengths[row] = 0;
        atomicAdd(&histogram[class_of(note)], 1u);
    }
    add_members(totals, histogram);
    all = block_reduce<256>(all, add_op(), scratch);
    if (threadIdx.x == 0) atomicAdd(&totals->products, all);
}

/* The class that sums a row of class c by its products; `sorts` is 0 where products are not plain. */
static __device__ __forceinline__ int class_to_sum(int c, int entries, int sorts, bool twin)
{
    if (entries == 0) return IDLE;
    if (sorts && (c == NARROW || c == NARROWER) && entries <= MOST_SUMMED) {
        const int shape = (c == NARROW ? 2 : 0) + (entries > LEAST_RANKED ? 1 : 0);
        return twin ? RANKED_TWINS + shape : RANKED + shape;
    }
    if (sorts && !twin) {
        const bool table = c > HASHED && c < NARROW; /* rows of up to LEAST_SLOTS / 2 << (c - HASHED) products */
        if (table && entries > min(LEAST_SLOTS / 4 << (c - HASHED), (int)MOST_SUMMED))
            return SORTED + c - hashed_class(LEAST_SORTED);
        if (entries > MOST_SUMMED &&
            (c == BLOCK_COUNTED || (c == LONG && sorts >= LEAST_SORTED << (LONG - SORTED))))
            return c;
    }
    if (entries > MOST_SUMMED) return WIDE;
    return twin ? twins_class(entries) : summed_class(entries);
}

/* Classes by entries of C; small and idle rows stay what they are. A row whose columns in A are those of the row
 * before has its number of entries and its class; 32 rows at most follow one. */
static __global__ void classify_lengths(int64_t rows, const uint8_t *counted, int sorts, int32_t *lengths,
                                        uint8_t *notes, warp_totals *totals)
{
    __shared__ unsigned histogram[CLASSES];
    __shared__ uint64_t scratch[32];
    if (threadIdx.x < CLASSES) histogram[threadIdx.x] = 0;
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
        if (twin || c >= HASHED) {
            c = class_to_sum(c, entries, sorts, twin);
            if (c >= TWINS && row % 2) c = IDLE;
            if (c == WIDE) wide += (unsigned long long)entries;
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
    __shared__ unsigned histogram[CLASSES], place[CLASSES];
    unsigned listed = 0;
    for (int c = HASHED; c < CLASSES; c++) listed += totals->members[c];
    if (listed == 0) return;
    for (int64_t base = (int64_t)blockIdx.x * 1024; base < rows; base += (int64_t)gridDim.x * 1024) {
        if (threadIdx.x < CLASSES) histogram[threadIdx.x] = 0;
        __syncthreads();
        int own[4];
        unsigned at[4];
        for (int u = 0; u < 4; u++) {
            const int64_t row = base + u * 256 + threadIdx.x;
            own[u] = row < rows ? class_of(notes[row]) : IDLE;
            if (own[u] >= HASHED) at[u] = atomicAdd(&histogram[own[u]], 1u);
        }
        __syncthreads();
        if (threadIdx.x < CLASSES) {
            const int c = threadIdx.x;
            unsigned first = 0;
            for (int d = HASHED; d < c; d++) first += totals->members[d];
            if (c >= HASHED && histogram[c]) place[c] = first + atomicAdd(&totals->placed[c], histogram[c]);
        }
        __syncthreads();
        for (int u = 0; u < 4; u++)
            if (own[u] >= HASHED) list[place[own[u]] + at[u]] = (int32_t)(base + u * 256 + threadIdx.x);
        __syncthreads();
    }
}

/* The rows of class c, which are listed. */
struct class_rows {
    const int32_t *rows;
    unsigned count;
};
static __device__ __forceinline__ class_rows rows_of(const warp_totals *totals, const int32_t *list, int c)
{
    unsigned first = 0;
    for (int d = HASHED; d < c; d++) first += totals->members[d];
    return {list + first, totals->members[c]};
}

/* ---- device: small and hashed rows ----------------------------------------------------------------------- */

template <typename V> struct warp_job {
    row_product<V> product;
    int64_t rows;
    warp_totals *totals; /* of the phase */
    const uint8_t *notes;
    const int32_t *list;
    int32_t *lengths;       /* counting writes them */
    const int64_t *offsets; /* of C; summing reads them */
    int32_t *c_cols;
    V *c_values; /* NULL: C is a pattern */
    product_places places;  /* where V is uint32_t */
    struct row_part *parts; /* compact ones from the front, scattered ones from the end */
    unsigned most_parts;
};

/* Entries [first, first + count) of C, of one row. */
struct row_part {
    int64_t first;
    int32_t row, count;
};

/* A warp takes `each` <= 32 rows, a lane each. */
template <typename Key, typename V, bool PLAIN, bool SUM>
static __global__ void __launch_bounds__(WARP_THREADS) small_rows(warp_job<V> job, int each)
{
    __shared__ pack_memory<Key, SUM, PLAIN> memory[WARP_THREADS / 32];
    const int lane = threadIdx.x & 31;
    for (int64_t base = (int64_t)first_warp() * each; base < job.rows; base += (int64_t)all_warps() * each) {
        const int64_t row = base + lane;
        small_row own = {};
        int64_t to = 0;
        if (lane < each && row < job.rows) {
            const int note = job.notes[row];
            own.begin = job.product.a.offsets[row];
            own.elements = (int)(job.product.a.offsets[row + 1] - own.begin);
            own.products = note;
            own.small = note <= MOST_SMALL;
            if (SUM) to = job.offsets[row];
        }
        if (!__any_sync(FULL_WARP, own.small && own.products > 0)) continue;
        const int length = take_packs<Key, SUM, PLAIN>(job.product, base, own, memory[threadIdx.x / 32], to,
                                                       job.c_cols, job.c_values, job.places);
        if (!SUM && own.small) job.lengths[row] = length;
    }
}

/* Merged rows, 32 a warp. Their entries leave side by side, through shared memory. */
enum { STAGED = 256 };
template <typename V> static __global__ void __launch_bounds__(WARP_THREADS, 8) sum_merged(warp_job<V> job)
{
    let_next_begin();
    __shared__ V staged_values[WARP_THREADS / 32][STAGED];
    __shared__ int32_t staged_cols[WARP_THREADS / 32][STAGED];
    const matrix_view<V> &a = job.product.a, &b = job.product.b;
    const int lane = threadIdx.x & 31;
    V *values = staged_values[threadIdx.x / 32];
    int32_t *cols = staged_cols[threadIdx.x / 32];
    row_merge merge = {b.cols};
    for (int64_t base = (int64_t)first_warp() * 32; base < job.rows; base += (int64_t)all_warps() * 32) {
        if (class_of(job.notes[base]) != MERGED) continue;
        const int64_t row = min(base + lane, job.rows), next = min(row + 1, job.rows);
        const int64_t begin = a.offsets[row], last = a.offsets[next], start = job.offsets[base];
        const int total = __shfl_sync(FULL_WARP, (int)(job.offsets[next] - start), 31);
        int place = (int)(job.offsets[row] - start);
        double weight[MERGED_ELEMENTS];
        merge.open(begin, last, a.cols, b.offsets);
#pragma unroll
        for (int i = 0; i < MERGED_ELEMENTS; i++)
            weight[i] = begin + i < last ? (double)__ldg(a.values + begin + i) : 0;
        for (int done = 0; done < total; done += STAGED) {
            for (int32_t low; place < done + STAGED && (low = merge.lowest()) != merge.NO_COLUMN; place++) {
                cols[place - done] = low;
                values[place - done] = (V)merge.take(low, weight, b.values);
            }
            __syncwarp();
            for (int i = lane; i < min(total - done, (int)STAGED); i += 32) {
                job.c_cols[start + done + i] = cols[i];
                job.c_values[start + done + i] = values[i];
            }
            __syncwarp();
        }
    }
    end_after_last();
}

/* Per warp: sums, rows of B, keys, and the list of used slots. */
template <bool PLAIN, int ROWS> static __host__ __device__ constexpr size_t table_bytes(int slots, bool sum)
{
    return (size_t)slots * (4 + (sum ? 8 * ROWS : 0)) + (sum ? (size_t)slots / 4 * 3 * sizeof(uint16_t) : 0) +
           32 * sizeof(row_of_b<PLAIN, ROWS>);
}

template <bool PLAIN, bool SUM, int ROWS, typename V>
static __device__ __forceinline__ warp_table<V, PLAIN, SUM, ROWS>
own_table(const row_product<V> &product, unsigned char *memory, int slots, row_of_b<PLAIN, ROWS> **rows)
{
    unsigned char *own = memory + table_bytes<PLAIN, ROWS>(slots, SUM) * (threadIdx.x / 32);
    *rows = (row_of_b<PLAIN, ROWS> *)(own + (SUM ? ROWS * slots * sizeof(double) : 0));
    int32_t *keys = (int32_t *)(*rows + 32);
    return {product, 0, keys, (double *)own, (uint16_t *)(keys + slots), __clz(slots) + 1, 0};
}

template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WARP_THREADS) count_hashed(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    row_of_b<PLAIN, 1> *rows;
    auto table = own_table<PLAIN, false, 1>(job.product, table_memory, counting_slots(c - HASHED), &rows);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        table.clear(own.rows[at]);
        walk_row<false>(job.product, table.row, 0, 0, rows, table);
        if ((threadIdx.x & 31) == 0) job.lengths[table.row] = table.used;
    }
    end_after_last();
}

/* LEAST to MOST keys a lane to sort. As many blocks as shared memory lets in: 64, 72 and 128 registers a thread. */
template <typename V, bool PLAIN, int LEAST, int MOST, int ROWS>
static __global__ void __launch_bounds__(WARP_THREADS, MOST > 8 ? 4 : LEAST == 8 ? 7 : 8)
    sum_hashed(warp_job<V> job, int c, int slots)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    row_of_b<PLAIN, ROWS> *rows;
    auto table = own_table<PLAIN, true, ROWS>(job.product, table_memory, slots, &rows);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        table.clear(own.rows[at]);
        walk_row<false>(job.product, table.row, 0, 0, rows, table);
        int64_t to[ROWS];
        for (int r = 0; r < ROWS; r++) to[r] = job.offsets[table.row + r];
        write_sorted<LEAST, MOST, PLAIN>(table, to, job.c_cols, job.c_values);
    }
    end_after_last();
}

/* ---- device: narrow and wide rows ------------------------------------------------------------------------ */

/* Sets bits of shared memory. Most are set already where C has far fewer entries than there are products. */
static __device__ __forceinline__ void set_bit(uint32_t *word, uint32_t bit)
{
    if (!(*(volatile uint32_t *)word & bit)) atomicOr(word, bit);
}

/* Bits of columns that are to be counted only: neighbouring columns go to different words, so that their lanes do not
 * wait for each other. */
struct scattered_bits {
    uint32_t *words;
    int log; /* of the number of words, a power of two */
    __device__ __forceinline__ void set(uint32_t i) const { set_bit(words + (i & ((1u << log) - 1)), 1u << (i >> log)); }
};
struct ordered_bits {
    uint32_t *words;
    __device__ __forceinline__ void set(uint32_t i) const { set_bit(words + i / 32, 1u << (i % 32)); }
};

/* Sets the bits of a row's columns. */
template <typename V, bool PLAIN> struct bit_sink {
    static constexpr bool SUMS = false;
    static constexpr int ROWS = 1;
    const row_product<V> &product;
    int64_t row;
    scattered_bits bits;
    int32_t lowest;

    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int, int)
    {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (entries.col[u] != EMPTY && allowed<PLAIN>(product, row, entries.col[u]))
                bits.set((uint32_t)(entries.col[u] - lowest));
        __syncwarp();
    }
};

template <bool PLAIN> static __host__ __device__ constexpr size_t narrow_bytes(int words)
{
    return words * sizeof(uint32_t) + 32 * sizeof(row_of_b<PLAIN, 1>);
}

template <typename V, bool PLAIN, int WORDS>
static __global__ void __launch_bounds__(WARP_THREADS) count_narrow(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    const int lane = threadIdx.x & 31;
    row_of_b<PLAIN, 1> *rows = (row_of_b<PLAIN, 1> *)(table_memory + narrow_bytes<PLAIN>(WORDS) * (threadIdx.x / 32));
    uint32_t *words = (uint32_t *)(rows + 32);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        const int64_t row = own.rows[at];
        int32_t lowest, highest;
        find_span<32>(job.product.a.offsets[row], job.product.a.offsets[row + 1], job.product.a.cols,
                      job.product.b.offsets, job.product.b.cols, &lowest, &highest);
        const int span = highest - lowest;
        bit_sink<V, PLAIN> sink = {job.product, row, {words, span < 32 ? 0 : 27 - __clz(span)}, lowest};
        for (int i = lane; i < 1 << sink.bits.log; i += 32) words[i] = 0;
        __syncwarp();
        walk_row<false>(job.product, row, 0, 0, rows, sink);
        int count = 0;
        for (int i = lane; i < 1 << sink.bits.log; i += 32) count += __popc(words[i]);
        count = (int)warp_add((unsigned)count);
        if (lane == 0) job.lengths[row] = count;
        __syncwarp();
    }
    end_after_last();
}

/* Fills a bucket_index of B if rows of C are to be done in parts: eight lanes a row, the block for a long one. */
static __global__ void __launch_bounds__(256) fill_index(const warp_totals *totals, int64_t rows, const int64_t *offsets,
                                                         const int32_t *cols, bucket_index index, uint32_t *first)
{
    enum { LANES = 8, LONG = 512 };
    __shared__ int64_t waiting[256 / LANES];
    __shared__ int waits;
    auto fill = [&](int64_t row, int lane, int lanes) {
        const int64_t begin = offsets[row];
        const int32_t length = (int32_t)(offsets[row + 1] - begin);
        const int shift = bucket_shift(index, length);
        uint32_t *own = first + begin / 4 + row;
        for (int64_t i = lane; i <= length; i += lanes) {
            const int to = i < length ? cols[begin + i] >> shift : 1 << (index.bits - shift);
            for (int at = i > 0 ? (cols[begin + i - 1] >> shift) + 1 : 0; at <= to; at++) own[at] = (uint32_t)i;
        }
    };
    if (totals->members[WIDE] == 0) return;
    for (int64_t base = (int64_t)blockIdx.x * (256 / LANES); base < rows; base += (int64_t)gridDim.x * (256 / LANES)) {
        const int64_t row = base + threadIdx.x / LANES, length = row < rows ? offsets[row + 1] - offsets[row] : 0;
        __syncthreads();
        if (threadIdx.x == 0) waits = 0;
        __syncthreads();
        if (length >= LONG && threadIdx.x % LANES == 0) waiting[atomicAdd(&waits, 1)] = row;
        else if (length >= LEAST_INDEXED && length < LONG) fill(row, threadIdx.x % LANES, LANES);
        __syncthreads();
        for (int i = 0; i < waits; i++) fill(waiting[i], threadIdx.x, 256);
    }
}

/* The part of a row of B inside a window of columns. */
struct piece_of_b {
    int64_t start;
    int32_t length;
};

struct wide_memory {
    piece_of_b piece[WIDE_THREADS];
    uint64_t scratch[WIDE_THREADS / 32];
    int row, pieces, long_pieces, shared_pieces;
    uint32_t words[1]; /* as many as the launch has */
};
static constexpr size_t wide_bytes(int words) { return sizeof(wide_memory) + words * sizeof(uint32_t); }

/* With `more` a row of class LONG where there are no wide ones left. */
static __device__ int take_wide(warp_totals *totals, const int32_t *list, bool more, wide_memory &memory)
{
    const class_rows own = rows_of(totals, list, WIDE), others = rows_of(totals, list, LONG);
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned at = atomicAdd(&totals->next, 1u), other = at - own.count;
        memory.row = at < own.count ? own.rows[at] : more && other < others.count ? others.rows[other] : -1;
    }
    __syncthreads();
    return memory.row;
}

/* The row's smallest and largest column. */
template <typename V>
static __device__ void find_wide_span(const row_product<V> &product, int row, int64_t *lowest, int64_t *highest,
                                      wide_memory &memory)
{
    int64_t low = INT64_MAX, high = -1;
    for (int64_t at = product.a.offsets[row] + threadIdx.x; at < product.a.offsets[row + 1]; at += WIDE_THREADS) {
        const int32_t k = product.a.cols[at];
        const int64_t from = product.b.offsets[k], to = product.b.offsets[k + 1];
        if (from == to) continue;
        low = min(low, (int64_t)__ldg(product.b.cols + from));
        high = max(high, (int64_t)__ldg(product.b.cols + to - 1));
    }
    *highest = block_reduce<WIDE_THREADS>(high, max_op(), memory.scratch);
    *lowest = -block_reduce<WIDE_THREADS>(-low, max_op(), memory.scratch);
}

/* Sets the bits of the row's columns in [low, high). A warp takes pieces of more than 32 entries, eight lanes shorter
 * ones; the block shares those of more than SHARED_PIECE. */
enum { SHARED_PIECE = 2048 };
template <typename V, bool PLAIN, typename Bits>
static __device__ void set_bits(const row_product<V> &product, int row, int64_t low, int64_t high, bool whole,
                                Bits bits, wide_memory &memory)
{
    const int64_t last = product.a.offsets[row + 1];
    /* Four loads on their way, LANES apart. */
    auto take = [&](const piece_of_b &piece, int own, int lanes) {
        for (int i = own; i < piece.length; i += 4 * lanes) {
            int32_t col[4];
#pragma unroll
            for (int u = 0; u < 4; u++)
                col[u] = i + u * lanes < piece.length ? __ldg(product.b.cols + piece.start + i + u * lanes) : EMPTY;
#pragma unroll
            for (int u = 0; u < 4; u++)
                if (col[u] != EMPTY && allowed<PLAIN>(product, row, col[u])) bits.set((uint32_t)(col[u] - low));
        }
    };
    for (int64_t base = product.a.offsets[row]; base < last; base += WIDE_THREADS) {
        if (threadIdx.x == 0) memory.pieces = memory.long_pieces = memory.shared_pieces = 0;
        __syncthreads();
        if (base + threadIdx.x < last) {
            const int32_t k = __ldg(product.a.cols + base + threadIdx.x);
            int64_t from = __ldg(product.b.offsets + k), to = __ldg(product.b.offsets + k + 1);
            if (!whole) narrow(product, k, low, high, &from, &to);
            const piece_of_b own = {from, (int32_t)(to - from)};
            /* Long pieces from the end of the array, others from its front. */
            if (own.length > 32) memory.piece[WIDE_THREADS - 1 - atomicAdd(&memory.long_pieces, 1)] = own;
            else if (own.length > 0) memory.piece[atomicAdd(&memory.pieces, 1)] = own;
            if (own.length > SHARED_PIECE) memory.shared_pieces = true;
        }
        __syncthreads();
        for (int k = threadIdx.x / 32; k < memory.long_pieces; k += WIDE_THREADS / 32) {
            const piece_of_b piece = memory.piece[WIDE_THREADS - 1 - k];
            if (piece.length <= SHARED_PIECE) take(piece, threadIdx.x % 32, 32);
        }
        for (int k = 0; memory.shared_pieces && k < memory.long_pieces; k++) {
            const piece_of_b piece = memory.piece[WIDE_THREADS - 1 - k];
            if (piece.length > SHARED_PIECE) take(piece, threadIdx.x, WIDE_THREADS);
        }
        for (int k = threadIdx.x / 8; k < memory.pieces; k += WIDE_THREADS / 8)
            take(memory.piece[k], threadIdx.x % 8, 8);
        __syncthreads();
    }
}

template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WIDE_THREADS) count_wide(warp_job<V> job, int wide_words, bool with_long)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    wide_memory &memory = *(wide_memory *)table_memory;
    for (int row; (row = take_wide(job.totals, job.list, with_long, memory)) >= 0;) {
        int64_t lowest, highest;
        find_wide_span(job.product, row, &lowest, &highest, memory);
        const int64_t window = 32 * (int64_t)wide_words;
        const bool whole = highest - lowest < window;
        int count = 0;
        for (int64_t low = lowest; low <= highest; low += window) {
            const int64_t high = min(highest + 1, low + window);
            scattered_bits bits = {memory.words, 0};
            while (32ll << bits.log < high - low) bits.log++;
            for (int i = threadIdx.x; i < 1 << bits.log; i += WIDE_THREADS) memory.words[i] = 0;
            set_bits<V, PLAIN>(job.product, row, low, high, whole, bits, memory);
            for (int i = threadIdx.x; i < 1 << bits.log; i += WIDE_THREADS) count += __popc(memory.words[i]);
            __syncthreads();
        }
        count = block_reduce<WIDE_THREADS>(count, add_op(), memory.scratch);
        if (threadIdx.x == 0) job.lengths[row] = count;
    }
}

static __device__ __forceinline__ int part_entries(const warp_totals *totals)
{
    return totals->wide_entries < FEW_ENTRIES ? LEAST_PART_ENTRIES : PART_ENTRIES;
}

/* Lists the parts of a row, whose columns are there, for a whole block. */
template <typename V> static __device__ void list_parts_of(const warp_job<V> &job, int32_t row)
{
    const int64_t begin = job.offsets[row];
    const int entries = (int)(job.offsets[row + 1] - begin), each = part_entries(job.totals);
    const int parts = entries / each + (entries % each != 0), lane = threadIdx.x % 32;
    for (int base = threadIdx.x - lane; base < parts; base += WIDE_THREADS) {
        const int i = base + lane, count = min(each, entries - i * each);
        const int64_t first = begin + (int64_t)i * each;
        const bool own = i < parts;
        const bool compact = own && job.c_cols[first + count - 1] - job.c_cols[first] < RANKED_COLUMNS;
        const unsigned front = __ballot_sync(FULL_WARP, compact), back = __ballot_sync(FULL_WARP, own && !compact);
        unsigned place = lane == 0   ? atomicAdd(&job.totals->compact, (unsigned)__popc(front))
                         : lane == 1 ? atomicAdd(&job.totals->scattered, (unsigned)__popc(back))
                                     : 0;
        place = __shfl_sync(FULL_WARP, place, compact ? 0 : 1) + __popc((compact ? front : back) & lanes_below());
        if (own) job.parts[compact ? place : job.most_parts - 1 - place] = {first, row, count};
    }
}

/* Writes the columns whose bits are set in the first `words` words; returns their number. Every warp has its share of the
 * words. It takes 128 at a time, four a lane, and lists their columns where the words were, 256 at a time, so that they
 * leave it side by side. */
static __device__ int64_t write_columns(wide_memory &memory, int words, int64_t low, int32_t *cols)
{
    enum { WARPS = WIDE_THREADS / 32, STEP = 128 };
    const int lane = threadIdx.x & 31, share = (words + WARPS * STEP - 1) / (WARPS * STEP) * STEP;
    const int begin = (int)threadIdx.x / 32 * share, end = min(words, begin + share);
    int all = 0, total;
    for (int i = begin + lane; i < end; i += 32) all += __popc(memory.words[i]);
    all = (int)warp_add((unsigned)all);
    int64_t place = block_scan<WIDE_THREADS>(lane == 0 ? all : 0, &total, memory.scratch);
    place = __shfl_sync(FULL_WARP, place, 0);
    for (int first = begin; first < end; first += STEP) {
        uint16_t *listed = (uint16_t *)(memory.words + first);
        uint32_t word[4];
        int own = 0;
#pragma unroll
        for (int u = 0; u < 4; u++) {
            word[u] = first + 4 * lane + u < end ? memory.words[first + 4 * lane + u] : 0;
            own += __popc(word[u]);
        }
        int at = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int before = __shfl_up_sync(FULL_WARP, at, step);
            if (lane >= step) at += before;
        }
        const int count = __shfl_sync(FULL_WARP, at, 31);
        at -= own;
        for (int round = 0; round < count; round += 256) {
#pragma unroll
            for (int u = 0; u < 4; u++)
                for (; word[u] && at < round + 256; word[u] &= word[u] - 1)
                    listed[at++ - round] = (uint16_t)((4 * lane + u) * 32 + __ffs((int)word[u]) - 1);
            __syncwarp();
            for (int i = lane; i < min(256, count - round); i += 32)
                cols[place + round + i] = (int32_t)(low + (int64_t)first * 32 + listed[i]);
            __syncwarp();
        }
        place += count;
    }
    return total;
}

/* Writes the columns of wide rows, ascending, and lists the rows' parts. */
template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WIDE_THREADS) write_wide(warp_job<V> job, int wide_words)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    wide_memory &memory = *(wide_memory *)table_memory;
    for (int row; (row = take_wide(job.totals, job.list, false, memory)) >= 0;) {
        int64_t lowest, highest, to = job.offsets[row];
        find_wide_span(job.product, row, &lowest, &highest, memory);
        const int64_t window = 32 * (int64_t)wide_words;
        const bool whole = highest - lowest < window;
        for (int64_t low = lowest; low <= highest; low += window) {
            const int64_t high = min(highest + 1, low + window);
            const int words = (int)((high - low + 31) / 32);
            for (int i = threadIdx.x; i < words; i += WIDE_THREADS) memory.words[i] = 0;
            set_bits<V, PLAIN>(job.product, row, low, high, whole, ordered_bits{memory.words}, memory);
            to += write_columns(memory, words, low, job.c_cols + to);
            __syncthreads();
        }
        list_parts_of(job, row);
    }
}

template <bool PLAIN> static __host__ __device__ constexpr size_t rank_bytes()
{
    return 32 * sizeof(row_of_b<PLAIN, 1>) + RANKED_COLUMNS / 32 * sizeof(uint2) + PART_ENTRIES * sizeof(double);
}

template <bool PLAIN> static __host__ __device__ constexpr size_t sorted_bytes(int entries)
{
    return 32 * sizeof(row_of_b<PLAIN, 1>) + entries * (sizeof(double) + sizeof(int32_t)) +
           ((size_t)buckets_for(entries) + 8) * sizeof(uint16_t);
}

/* Sums of entries of C whose columns are there, by a warp; PART: they are not all of their row. */
template <bool PART, bool PLAIN, typename V, typename Table>
static __device__ __forceinline__ void sum_part(const warp_job<V> &job, const row_part &part, row_of_b<PLAIN, 1> *rows,
                                                Table &table)
{
    const int32_t *cols = job.c_cols + part.first;
    table.fill(cols, part.count);
    table.place = {job.places, part.first};
    walk_row<PART>(job.product, part.row, cols[0], (int64_t)cols[part.count - 1] + 1, rows, table);
    for (int i = threadIdx.x & 31; job.c_values && i < part.count; i += 32)
        job.c_values[part.first + i] = (V)table.sums[i];
    __syncwarp();
}

template <typename V, bool PLAIN>
static __device__ __forceinline__ sorted_table<V, PLAIN>
own_sorted(const row_product<V> &product, unsigned char *memory, int entries, row_of_b<PLAIN, 1> **rows)
{
    unsigned char *own = memory + sorted_bytes<PLAIN>(entries) * (threadIdx.x / 32);
    *rows = (row_of_b<PLAIN, 1> *)own;
    double *sums = (double *)(*rows + 32);
    int32_t *keys = (int32_t *)(sums + entries);
    return {product, {}, sums, keys, (uint16_t *)(keys + entries), buckets_for(entries), 0, 0};
}

/* Parts whose columns lie close together. */
template <typename V, bool PLAIN> static __global__ void __launch_bounds__(WARP_THREADS) sum_compact(warp_job<V> job)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    unsigned char *own = table_memory + rank_bytes<PLAIN>() * (threadIdx.x / 32);
    row_of_b<PLAIN, 1> *rows = (row_of_b<PLAIN, 1> *)own;
    uint2 *words = (uint2 *)(rows + 32);
    rank_table<V, PLAIN> table = {job.product, {}, (double *)(words + RANKED_COLUMNS / 32), words, 0};
    const unsigned count = job.totals->compact;
    for (unsigned at = first_warp(); at < count; at += all_warps())
        sum_part<true, PLAIN>(job, job.parts[at], rows, table);
}

template <typename V, bool PLAIN> static __global__ void __launch_bounds__(WARP_THREADS) sum_scattered(warp_job<V> job)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    row_of_b<PLAIN, 1> *rows;
    auto table = own_sorted<V, PLAIN>(job.product, table_memory, PART_ENTRIES, &rows);
    const unsigned count = job.totals->scattered;
    for (unsigned at = first_warp(); at < count; at += all_warps())
        sum_part<true, PLAIN>(job, job.parts[job.most_parts - 1 - at], rows, table);
}

/* ---- device: sorted rows ----------------------------------------------------------------------------------- */

/* Plain products only, of up to THREADS·K a row: sorted by column and by their place in the row, so that equal columns
 * are added up in A's order. Where columns are spread over all of them, by counting: a bucket for two places, and
 * warps sort what is in order but within buckets. Else warps sort 32·K keys each in registers, then runs are merged
 * in shared memory, which takes two to three times as many instructions. */
template <int THREADS, int K> struct sorted_shape {
    static constexpr int PRODUCTS = THREADS * K, PLACE_BITS = log2_of(PRODUCTS), BUCKETS = PRODUCTS / 2;
};

/* A row of B that is multiplied: its first entry less the place of its first product. */
struct alignas(16) sorted_piece {
    double weight;
    uint32_t start;
};

/* Of each 32 of up to 8 products a thread: which begin a piece, and the pieces before them. */
template <int THREADS> struct piece_memory {
    static constexpr int WORDS = 8 * THREADS / 32;
    sorted_piece piece[THREADS];
    uint32_t heads[WORDS], before[WORDS];
    uint64_t scratch[32];
};

/* Calls take(place, column, weight, value) for the row's products, neighbours side by side, and two of a thread on
 * their way at once, four of a warp's own: more registers would cost warps. Returns their number. Ends with a
 * barrier. */
template <int THREADS, bool SUM, typename V, typename Take>
static __device__ __forceinline__ int walk_pieces(const row_product<V> &product, int64_t row,
                                                  piece_memory<THREADS> &memory, Take take)
{
    enum { AHEAD = THREADS == 32 ? 4 : 2, WORDS = piece_memory<THREADS>::WORDS };
    const unsigned up_to = lanes_below() * 2 + 1;
    const int64_t last = product.a.offsets[row + 1];
    int done = 0;
    for (int64_t base = product.a.offsets[row]; base < last; base += THREADS) {
        sorted_piece own = {};
        int length = 0, total;
        if (threadIdx.x < WORDS) memory.heads[threadIdx.x] = memory.before[threadIdx.x] = 0;
        if (base + threadIdx.x < last) {
            const int32_t k = __ldg(product.a.cols + base + threadIdx.x);
            const int64_t start = __ldg(product.b.offsets + k);
            if (SUM) own.weight = (double)__ldg(product.a.values + base + threadIdx.x);
            own.start = (uint32_t)start;
            length = (int)(__ldg(product.b.offsets + k + 1) - start);
        }
        if (THREADS == 32) __syncwarp();
        /* The pieces before this one, and below them their products; a barrier where there are several warps. */
        const int until = block_scan<THREADS>(length > 0 ? 1 << 16 | length : 0, &total, memory.scratch);
        const int place = until & 0xffff, pieces = until >> 16, products = total & 0xffff;
        if (length > 0) {
            own.start -= (uint32_t)place;
            memory.piece[pieces] = own;
            atomicOr(&memory.heads[place / 32], 1u << place % 32);
            for (int i = place / 32 + 1; i * 32 <= place + length && i < WORDS; i++)
                memory.before[i] = (uint32_t)pieces + 1;
        }
        __syncthreads();
        for (int group = (int)threadIdx.x & ~31; group < products; group += AHEAD * THREADS) {
            const int at = group + (int)(threadIdx.x & 31);
            int32_t col[AHEAD];
            V value[AHEAD];
            double weight[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (at + u * THREADS >= products) continue;
                const int word = at / 32 + u * (THREADS / 32);
                const sorted_piece piece = memory.piece[memory.before[word] + __popc(memory.heads[word] & up_to) - 1];
                const uint32_t entry = piece.start + (uint32_t)(at + u * THREADS);
                weight[u] = piece.weight;
                col[u] = __ldg(product.b.cols + entry);
                value[u] = SUM ? __ldg(product.b.values + entry) : V(0);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (at + u * THREADS < products) take(done + at + u * THREADS, col[u], weight[u], value[u]);
        }
        done += products;
        __syncthreads();
    }
    return done;
}

/* Of up to 8 products a thread, in a table that is at most half full. */
template <int THREADS> struct count_memory {
    static constexpr int SLOTS = 16 * THREADS;
    piece_memory<THREADS> pieces;
    int32_t slot[SLOTS];
};

/* Lengths of the longest sorted rows, a block each. */
template <int THREADS, typename V>
static __global__ void __launch_bounds__(THREADS) count_pieces(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    auto &memory = *(count_memory<THREADS> *)table_memory;
    const int slots = count_memory<THREADS>::SLOTS;
    const class_rows own = rows_of(job.totals, job.list, c);
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) {
        const int row = own.rows[at];
        int fresh = 0;
        for (int i = threadIdx.x; i < slots; i += THREADS) memory.slot[i] = EMPTY;
        __syncthreads();
        walk_pieces<THREADS, false>(job.product, row, memory.pieces, [&](int, int32_t col, double, V) {
            int slot = (int)(scrambled(col) >> (32 - log2_of(slots)));
            for (;; slot = (slot + 1) & (slots - 1)) {
                int32_t key = *(volatile int32_t *)(memory.slot + slot);
                if (key == EMPTY) {
                    key = atomicCAS(memory.slot + slot, EMPTY, col);
                    fresh += key == EMPTY;
                    if (key == EMPTY) break;
                }
                if (key == col) break;
            }
        });
        fresh = block_reduce<THREADS>(fresh, add_op(), memory.pieces.scratch);
        if (threadIdx.x == 0) job.lengths[row] = fresh;
        __syncthreads();
    }
    end_after_last();
}

template <int THREADS, int K, typename Key> struct sort_memory {
    double term[THREADS * K];
    Key key[THREADS * K];
    piece_memory<THREADS> pieces;

    /* Where a key of sorted runs lies: K in a row, one thread's, in as many banks. */
    __device__ __forceinline__ Key &at(int place) { return key[swizzled(place, K - 1)]; }
    __device__ __forceinline__ int32_t col(int place)
    {
        return (int32_t)(uint32_t)(at(place) >> sorted_shape<THREADS, K>::PLACE_BITS);
    }
};

/* By how much a key is shifted to be its bucket's number, if columns are below `cols`. */
template <int THREADS, int K> static __device__ __forceinline__ int key_shift(int64_t cols)
{
    typedef sorted_shape<THREADS, K> shape;
    return shape::PLACE_BITS + max(0, 64 - __clzll(cols - 1) - log2_of(shape::BUCKETS));
}

/* Whether of 32 of `count` keys hardly any share a bucket; every warp comes to the same answer. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ bool is_spread(const sort_memory<THREADS, K, Key> &memory, int count,
                                                 int shift)
{
    const unsigned bucket = (unsigned)(memory.key[(threadIdx.x & 31) * count / 32] >> shift);
    return !__any_sync(FULL_WARP, __popc(__match_any_sync(FULL_WARP, bucket)) > 6);
}

/* Sorts a warp's 32·K keys from place `base` on, K in a row a lane, of which few lie far from their places:
 * neighbours are exchanged, and where this has not been enough after 24 rounds the network sorts them. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ void sort_neighbours(sort_memory<THREADS, K, Key> &memory, int base, int count)
{
    const int lane = threadIdx.x & 31, first = base + lane * K;
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) key[i] = first + i < count ? memory.at(first + i) : ~Key(0);
    for (int round = 1;; round++) {
#pragma unroll
        for (int i = 0; i < K; i += 2) order_pair(key[i], key[i + 1]);
#pragma unroll
        for (int i = 1; i + 1 < K; i += 2) order_pair(key[i], key[i + 1]);
        const Key above = __shfl_down_sync(FULL_WARP, key[0], 1), below = __shfl_up_sync(FULL_WARP, key[K - 1], 1);
        if (lane < 31) key[K - 1] = min(key[K - 1], above);
        if (lane > 0) key[0] = max(key[0], below);
        if (round % 3) continue;
        const Key next = __shfl_down_sync(FULL_WARP, key[0], 1);
        bool sorted = lane == 31 || key[K - 1] <= next;
#pragma unroll
        for (int i = 0; i + 1 < K; i++) sorted = sorted && key[i] <= key[i + 1];
        if (__all_sync(FULL_WARP, sorted)) break;
        if (round < 12) continue;
        sort_keys<K>(key, 32);
        break;
    }
#pragma unroll
    for (int i = 0; i < K; i++)
        if (first + i < count) memory.at(first + i) = key[i];
}

/* Sorts `count` keys by buckets; they lie swizzled then. A bucket of up to 16·K keys, half of what a warp sorts, lies
 * within what one sorts the first time or the second; if there is a larger one nothing is done, and the answer is
 * false. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ bool sort_buckets(sort_memory<THREADS, K, Key> &memory, int count, int shift)
{
    enum { BUCKETS = sorted_shape<THREADS, K>::BUCKETS, EACH = BUCKETS / THREADS };
    unsigned *begins = (unsigned *)memory.pieces.piece; /* of which there is nothing left to use */
    unsigned *largest = memory.pieces.before;
    static_assert(BUCKETS * sizeof *begins <= sizeof memory.pieces.piece, "they have their place");
    const int base = (int)threadIdx.x / 32 * 32 * K, first = base + (int)(threadIdx.x & 31);
    Key key[K];
    int place[K], own[EACH], sum = 0, total;
    unsigned most = 0;
    for (int i = threadIdx.x; i < BUCKETS; i += THREADS) begins[i] = 0;
    if (threadIdx.x == 0) *largest = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++) {
        if (first + 32 * i >= count) continue;
        key[i] = memory.key[first + 32 * i];
        place[i] = (int)atomicAdd(begins + (unsigned)(key[i] >> shift), 1u);
        most = max(most, (unsigned)place[i] + 1);
    }
    most = warp_max(most);
    if (THREADS > 32) {
        if (threadIdx.x % 32 == 0) atomicMax(largest, most);
        __syncthreads();
        most = *largest;
    } else {
        __syncwarp();
    }
    if (most > 16 * K) return false;
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += own[i] = (int)begins[threadIdx.x * EACH + i];
    int before = block_scan<THREADS>(sum, &total, memory.pieces.scratch);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        begins[threadIdx.x * EACH + i] = (unsigned)before;
        before += own[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++)
        if (first + 32 * i < count) memory.at((int)begins[(unsigned)(key[i] >> shift)] + place[i]) = key[i];
    __syncthreads();
    sort_neighbours<THREADS, K>(memory, base, count);
    if (THREADS > 32) {
        __syncthreads();
        sort_neighbours<THREADS, K>(memory, base + 16 * K, count);
    }
    __syncthreads();
    return true;
}

/* Sorts `count` keys; they lie swizzled then. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ void sort_terms(sort_memory<THREADS, K, Key> &memory, int count)
{
    const int first = (int)threadIdx.x / 32 * 32 * K + (threadIdx.x & 31);
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) key[i] = first + 32 * i < count ? memory.key[first + 32 * i] : ~Key(0);
    sort_keys<K>(key, 32);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++) memory.at(threadIdx.x * K + i) = key[i];
    __syncthreads();
    for (int run = 32 * K; run < count; run *= 2) {
        /* Of the two runs to be merged, `low` keys of the first and `other` of the second come before the thread's. */
        const int base = (int)threadIdx.x * K & ~(2 * run - 1), before = (int)threadIdx.x * K - base;
        int low = max(0, before - run), high = min(before, run);
        while (low < high) {
            const int middle = (low + high) / 2;
            if (memory.at(base + middle) < memory.at(base + run + before - 1 - middle)) low = middle + 1;
            else high = middle;
        }
        int other = before - low;
        Key a = low < run ? memory.at(base + low) : ~Key(0);
        Key b = other < run ? memory.at(base + run + other) : ~Key(0);
#pragma unroll
        for (int i = 0; i < K; i++) {
            const bool takes = a <= b;
            key[i] = takes ? a : b;
            const int next = takes ? ++low : ++other;
            const Key more = next < run ? memory.at(base + (takes ? 0 : run) + next) : ~Key(0);
            if (takes) a = more;
            else b = more;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < K; i++) memory.at(threadIdx.x * K + i) = key[i];
        __syncthreads();
    }
}

/* Blocks a multiprocessor for which registers are to suffice. */
template <int THREADS> static constexpr int sort_blocks()
{
    constexpr int wanted = THREADS < 64 ? 32 : (THREADS < 512 && MOST_THREADS > 1280 ? 1280 : 1024) / THREADS;
    return wanted < ARCH_BLOCKS ? wanted : ARCH_BLOCKS;
}

/* The entries of rows of class c, a block each. */
template <int THREADS, int K, typename Key, typename V>
static __global__ void __launch_bounds__(THREADS, sort_blocks<THREADS>())
    sort_rows(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    constexpr int PLACE_BITS = sorted_shape<THREADS, K>::PLACE_BITS;
    auto &memory = *(sort_memory<THREADS, K, Key> *)table_memory;
    const class_rows own = rows_of(job.totals, job.list, c);
    const int shift = key_shift<THREADS, K>(job.product.cols);
    const int lane = threadIdx.x & 31, first = (int)threadIdx.x / 32 * 32 * K + lane;
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) {
        const int row = own.rows[at];
        const int count = walk_pieces<THREADS, true>(
            job.product, row, memory.pieces, [&](int place, int32_t col, double weight, V value) {
                memory.key[place] = (Key)(uint32_t)col << PLACE_BITS | (Key)place;
                memory.term[place] = __dmul_rn(weight, (double)value);
            });
        if (!is_spread(memory, count, shift) || !sort_buckets(memory, count, shift)) sort_terms(memory, count);
        unsigned heads[K];
        int entries = 0, total;
#pragma unroll
        for (int i = 0; i < K; i++) {
            const int place = first + 32 * i;
            heads[i] = __ballot_sync(FULL_WARP, place < count &&
                                                    (place == 0 || memory.col(place) != memory.col(place - 1)));
            entries += __popc(heads[i]);
        }
        const int before = block_scan<THREADS>(lane == 0 ? entries : 0, &total, memory.pieces.scratch);
        int64_t to = job.offsets[row] + __shfl_sync(FULL_WARP, before, 0);
#pragma unroll
        for (int i = 0; i < K; i++) {
            if (heads[i] >> lane & 1) {
                const int place = first + 32 * i;
                const Key places = ((Key)1 << PLACE_BITS) - 1;
                const int32_t col = memory.col(place);
                double sum = memory.term[memory.at(place) & places];
                for (int next = place + 1; next < count && memory.col(next) == col; next++)
                    sum = __dadd_rn(sum, memory.term[memory.at(next) & places]);
                job.c_cols[to + __popc(heads[i] & lanes_below())] = col;
                job.c_values[to + __popc(heads[i] & lanes_below())] = (V)sum;
            }
            to += __popc(heads[i]);
        }
        __syncthreads();
    }
    end_after_last();
}

/* ---- device: ranked rows ----------------------------------------------------------------------------------- */

/* Narrow rows of few entries, a warp each: their columns as bits, which are C's columns in order, then every sum at
 * its column's rank. Rows of A of the same columns are done two at a time. A run of rows of B of the same columns
 * takes its columns and ranks once, and every lane adds the products of a column to a sum in registers, in the order
 * of the rows: some 30 instructions for 128 products of two rows, where finding them in a table takes 250. */

/* A word holds a bit for each of 32 columns (x), and how many come before them (y). */
struct ranked_bits {
    uint2 *words;
    __device__ __forceinline__ void set(uint32_t i) const { set_bit(&words[i / 32].x, 1u << (i % 32)); }
};
template <typename V> struct ranked_sink {
    static constexpr bool SUMS = false;
    static constexpr int ROWS = 1;
    ranked_bits bits;
    int32_t lowest;

    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int, int)
    {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (entries.col[u] != EMPTY) bits.set((uint32_t)(entries.col[u] - lowest));
        __syncwarp();
    }
};

/* What a warp sums ROWS rows of the same columns with: the r-th row's sums begin at sums + r·most. The last is
 * nobody's: lanes without an entry read it, as a branch around the reading takes a fifteenth of the time. */
template <typename V, int ROWS> struct ranked_sums {
    const row_product<V> &product;
    row_of_b<true, ROWS> *rows;
    double *sums;
    uint2 *words;
    int most;
    int32_t lowest;

    /* The products of rows [0, count) of B, of which those in `heads` begin a run of rows of the same columns. A lane
     * keeps its columns, and their sums, throughout a run. */
    template <int U> __device__ __forceinline__ void add_runs(int count, unsigned heads) const
    {
        const int lane = threadIdx.x & 31;
        int32_t next[U];
        auto read_columns = [&](int row, int from) {
            const uint32_t start = rows[row].start, length = (uint32_t)rows[row].length;
#pragma unroll
            for (int u = 0; u < U; u++) {
                const uint32_t at = (uint32_t)(from + 32 * u + lane);
                next[u] = at < length ? __ldg(product.b.cols + start + at) : EMPTY;
            }
        };
        read_columns(0, 0);
        for (int row = 0, from = 0; row < count;) {
            const unsigned later = heads & -(2u << row); /* begin runs behind this row */
            const int length = rows[row].length, end = later ? __ffs((int)later) - 1 : count;
            int slot[U];
            bool there[U];
            V value[U];
            double sum[ROWS][U];
            uint32_t start = rows[row].start;
#pragma unroll
            for (int u = 0; u < U; u++) {
                there[u] = next[u] != EMPTY;
                if (there[u]) value[u] = __ldg(product.b.values + start + (uint32_t)(from + 32 * u + lane));
            }
#pragma unroll
            for (int u = 0; u < U; u++) {
                const int offset = there[u] ? next[u] - lowest : 0;
                const uint2 word = words[offset / 32];
                slot[u] = there[u] ? (int)word.y + __popc(word.x & ((1u << offset % 32) - 1)) : most - 1;
#pragma unroll
                for (int r = 0; r < ROWS; r++) sum[r][u] = sums[r * most + slot[u]];
            }
            const int now = from;
            from += 32 * U;
            const int first = row;
            if (from >= length) {
                row = end;
                from = 0;
            }
            if (row < count) read_columns(row, from);
            for (int k = first; k < end; k++) {
                const row_of_b<true, ROWS> b = rows[k];
                V taken[U];
                if (k + 1 < end) start = rows[k + 1].start;
#pragma unroll
                for (int u = 0; u < U; u++) {
                    taken[u] = value[u];
                    if (there[u] && k + 1 < end)
                        value[u] = __ldg(product.b.values + start + (uint32_t)(now + 32 * u + lane));
                }
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int u = 0; u < U; u++)
                        sum[r][u] = __dadd_rn(sum[r][u], __dmul_rn(b.weight[r], (double)taken[u]));
            }
#pragma unroll
            for (int u = 0; u < U; u++)
                if (there[u])
                    for (int r = 0; r < ROWS; r++) sums[r * most + slot[u]] = sum[r][u];
            __syncwarp();
        }
    }

    __device__ __forceinline__ void add_row(int64_t row) const
    {
        const int lane = threadIdx.x & 31;
        const int64_t begin = product.a.offsets[row], last = product.a.offsets[row + 1];
        for (int64_t base = begin; base < last; base += 32) {
            row_of_b<true, ROWS> b = {};
            int32_t k = -2;
            if (base + lane < last) {
                k = __ldg(product.a.cols + base + lane);
                const int64_t from = __ldg(product.b.offsets + k);
                for (int r = 0; r < ROWS; r++)
                    b.weight[r] = (double)__ldg(product.a.values + base + lane + r * (last - begin));
                b.start = (uint32_t)from;
                b.length = (int32_t)(__ldg(product.b.offsets + k + 1) - from);
            }
            const int32_t before = __shfl_up_sync(FULL_WARP, k, 1);
            const bool neighbours = lane > 0 && before >= 0 && before == k - 1;
            const bool repeats = neighbours && product.repeats && __ldg(product.repeats + k);
            const unsigned filled = __ballot_sync(FULL_WARP, b.length > 0);
            const int place = __popc(filled & lanes_below());
            const unsigned heads = warp_or(b.length > 0 && !repeats ? 1u << place : 0);
            const bool any_long = __any_sync(FULL_WARP, b.length > 64);
            if (b.length > 0) rows[place] = b;
            __syncwarp();
            if (filled == 0) continue;
            if (any_long) add_runs<4>(__popc(filled), heads);
            else add_runs<2>(__popc(filled), heads);
        }
    }
};

template <int ROWS> static __host__ __device__ constexpr size_t ranked_bytes(int words, int entries)
{
    return 32 * sizeof(row_of_b<true, ROWS>) + words * sizeof(uint2) + ROWS * entries * sizeof(double);
}

/* Finds the columns of a row, their bits and ranks, and writes them where ROWS rows begin; returns their number. */
template <int ROWS, typename V>
static __device__ __forceinline__ int find_ranks(const warp_job<V> &job, int64_t row, row_of_b<true, 1> *rows,
                                                 uint2 *words, const int64_t (&to)[ROWS], int32_t *lowest)
{
    const int lane = threadIdx.x & 31;
    int32_t highest;
    find_span<32>(job.product.a.offsets[row], job.product.a.offsets[row + 1], job.product.a.cols,
                  job.product.b.offsets, job.product.b.cols, lowest, &highest);
    const int used = (highest - *lowest) / 32 + 1;
    for (int i = lane; i < used; i += 32) words[i].x = 0;
    __syncwarp();
    ranked_sink<V> sink = {{words}, *lowest};
    walk_row<false>(job.product, row, 0, 0, rows, sink);
    int count = 0;
    for (int base = 0; base < used; base += 32) {
        const uint32_t word = base + lane < used ? words[base + lane].x : 0;
        int total, before = count + scan_lanes(__popc(word), &total);
        if (base + lane < used) words[base + lane].y = (uint32_t)before;
        for (uint32_t left = word; left; left &= left - 1, before++) {
            const int32_t col = *lowest + (base + lane) * 32 + __ffs((int)left) - 1;
            for (int r = 0; r < ROWS; r++) job.c_cols[to[r] + before] = col;
        }
        count += total;
    }
    return count;
}

/* Whole narrow rows, a warp each; with KNOWN their columns are there. */
template <typename V, int ROWS, bool KNOWN>
static __global__ void __launch_bounds__(WARP_THREADS, 6) sum_ranked(warp_job<V> job, int c, int words, int most)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    const int lane = threadIdx.x & 31;
    unsigned char *memory = table_memory + ranked_bytes<ROWS>(words, most) * (threadIdx.x / 32);
    row_of_b<true, ROWS> *rows = (row_of_b<true, ROWS> *)memory;
    ranked_sums<V, ROWS> table = {job.product, rows, (double *)(rows + 32), NULL, most, 0};
    table.words = (uint2 *)(table.sums + ROWS * most);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        const int64_t row = own.rows[at];
        int64_t to[ROWS];
        for (int r = 0; r < ROWS; r++) to[r] = job.offsets[row + r];
        int count;
        if constexpr (KNOWN) {
            const int32_t *cols = job.c_cols + to[0];
            count = (int)(job.offsets[row + 1] - to[0]);
            table.lowest = cols[0];
            rank_columns(cols, count, table.words);
        } else {
            count = find_ranks<ROWS>(job, row, (row_of_b<true, 1> *)rows, table.words, to, &table.lowest);
        }
        for (int i = lane; i < count; i += 32)
            for (int r = 0; r < ROWS; r++) table.sums[r * most + i] = no_sum<true>();
        __syncwarp();
        table.add_row(row);
        for (int i = lane; i < count; i += 32)
            for (int r = 0; r < ROWS; r++) job.c_values[to[r] + i] = (V)table.sums[r * most + i];
        __syncwarp();
    }
    end_after_last();
}

/* ---- device: values for a pattern that is there ------------------------------------------------------------ */

/* Whole rows of C, a warp each. */
template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WARP_THREADS) sum_known(warp_job<V> job, int c, int entries)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    const class_rows own = rows_of(job.totals, job.list, c);
    row_of_b<PLAIN, 1> *rows;
    auto table = own_sorted<V, PLAIN>(job.product, table_memory, entries, &rows);
    for (unsigned at = first_warp(); at < own.count; at += all_warps()) {
        const int32_t row = own.rows[at];
        const int64_t first = job.offsets[row];
        sum_part<false, PLAIN>(job, row_part{first, row, (int32_t)(job.offsets[row + 1] - first)}, rows, table);
    }
    end_after_last();
}

/* Lists the parts of wide rows, a block a row. */
template <typename V> static __global__ void __launch_bounds__(WIDE_THREADS) list_parts(warp_job<V> job)
{
    const class_rows own = rows_of(job.totals, job.list, WIDE);
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) list_parts_of(job, own.rows[at]);
}

static __global__ void lengths_of(int64_t rows, const int64_t *offsets, int32_t *lengths)
{
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) lengths[row] = (int32_t)(offsets[row + 1] - offsets[row]);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Where a launch goes. ALONE: to the main stream, after all that it holds, as the kernels of wide rows read what the
 * one before them wrote. SMALL_STREAM: a side stream of small rows' own. Any other number: into the phase's chain,
 * which is on the main stream unless there are wide rows; where the device or the code knows no chains, to the stream
 * of that number. A stream costs some 2 us to start and to join, and streams share the device at random: chains take
 * 2 to 3 % off web-Google, 6 off scircuit and webbase, 11 off protein. */
enum { STREAMS = 5, SMALL_STREAM = 4, CHAIN_STREAM = 1, ALONE = 8 };
static_assert((int)STREAMS <= (int)SIDE_STREAMS, "side streams are the context's");

/* Side streams that hold work of a phase. A phase that ends early waits for them before memory is released, which is
 * done in the order of the main stream. */
struct side_work {
    unsigned streams;
    ~side_work()
    {
        if (streams) cudaDeviceSynchronize();
    }
};

/* Everything that one call holds on the device. */
template <typename V> struct warp_run {
    sp_context *context;
    const sp_csr *a, *b;
    sp_csr *c;
    warp_job<V> job;
    int sorts; /* the most products of a row that is sorted */
    bool twins, merges;
    bool far;    /* wide rows take more than FEW_WINDOWS windows */
    bool chains; /* can launches be chained */
    int chain;   /* the stream of the phase's chain */
    bool chained; /* a launch of it has been made */
    int streams; /* that the launches of the phase are spread over; 0: the main one takes them all */
    bool small_counted; /* or on their way to be */
    bool pattern_known; /* C has its columns */
    const warp_totals *known; /* of the phase, once the host has waited for them: classes without rows are left out */
    /* In one array of bytes: the totals of both phases, lengths, lists, and notes of both phases. */
    device_array<unsigned char> room;
    warp_totals *totals;
    int32_t *lengths, *list;
    uint8_t *notes;
    device_array<row_part> parts;
    device_array<uint32_t> index;
    device_array<uint8_t> a_repeats, b_repeats;
    side_work taken;
};

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

template <typename V> static bool has_rows(const warp_run<V> *run, int c)
{
    return !run->known || run->known->members[c] > 0;
}

/* The stream of a phase's launches that has the number; number 0 is the main one. A side stream starts after what the
 * main one held when the phase began, and is joined at its end. */
template <typename V> static sp_status take_stream(warp_run<V> *run, int number, cudaStream_t *stream)
{
    sp_context *context = run->context;
    cuda_state *state = cuda_state_of(context);
    const int i = run->streams && number != ALONE ? number % run->streams : 0;
    *stream = i ? state->side[i] : state->stream;
    if (i == 0 || run->taken.streams >> i & 1) return SP_OK;
    CUDA_TRY(cudaStreamWaitEvent(state->side[i], state->forked, 0));
    run->taken.streams |= 1u << i;
    return SP_OK;
}

/* The rows of a class, as far as they are known. */
template <typename V> static int64_t rows_in(const warp_run<V> *run, int c)
{
    return run->known ? run->known->members[c] : INT64_MAX;
}

/* Launches a kernel with as many blocks as the device holds, at most `most`. */
template <typename V, typename Kernel, typename... Arguments>
static sp_status launch(warp_run<V> *run, Kernel *kernel, int threads, size_t shared, int64_t most, int stream,
                        Arguments... arguments)
{
    sp_context *context = run->context;
    int blocks;
    TRY(cuda_full_grid(context, kernel, threads, shared, &blocks));
    if (most < blocks) blocks = (int)most;
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t how = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    how.gridDim = dim3((unsigned)blocks);
    how.blockDim = dim3((unsigned)threads);
    how.dynamicSmemBytes = shared;
    how.attrs = &early;
    if (run->chains && stream != ALONE && stream != SMALL_STREAM) {
        how.numAttrs = run->chained;
        run->chained = true;
        stream = run->chain;
    }
    TRY(take_stream(run, stream, &how.stream));
    CUDA_TRY(cudaLaunchKernelEx(&how, kernel, run->job, arguments...));
    return SP_OK;
}

/* The same for a kernel whose warps have tables of so many bytes and take a row each. */
template <typename V, typename Kernel, typename... Arguments>
static sp_status launch_tables(warp_run<V> *run, Kernel *kernel, size_t bytes, int64_t rows, int stream,
                               Arguments... arguments)
{
    int warps = WARP_THREADS / 32;
    while (warps > 1 && warps * bytes > TABLE_LIMIT) warps /= 2;
    return launch(run, kernel, 32 * warps, warps * bytes, rows / warps + 1, stream, arguments...);
}

static int wide_words(sp_context *context)
{
    const size_t reserved = 1024; /* of a block's shared memory, by the driver */
    return wide_bytes(WIDE_WORDS) + reserved <= cuda_state_of(context)->shared_limit ? WIDE_WORDS : WIDE_WORDS / 2;
}

/* Enough warps get rows where there are few. */
template <typename V, bool PLAIN, bool SUM> static sp_status launch_small(warp_run<V> *run)
{
    const int64_t wanted = cuda_state_of(run->context)->processors * 64;
    int each = 32;
    while (each > 8 && run->a->rows / each < wanted) each /= 2;
    if (!has_rows(run, SMALL)) return SP_OK;
    /* Keys of 32 bits where they can tell eight rows apart. */
    const bool narrow = run->b->cols <= (int64_t)1 << (SUM ? 22 : 29);
    return narrow ? launch(run, small_rows<uint32_t, V, PLAIN, SUM>, WARP_THREADS, 0, INT64_MAX, SMALL_STREAM, each)
                  : launch(run, small_rows<unsigned long long, V, PLAIN, SUM>, WARP_THREADS, 0, INT64_MAX,
                           SMALL_STREAM, each);
}

/* Keys of 32 bits hold column and place where there are not too many columns. */
template <int THREADS, int K> static bool fits_narrow_keys(int64_t cols)
{
    return cols <= (int64_t)1 << (32 - sorted_shape<THREADS, K>::PLACE_BITS);
}

typedef unsigned long long wide_key;

template <int THREADS, int K> static bool can_sort(sp_context *context, int64_t cols)
{
    const size_t bytes = fits_narrow_keys<THREADS, K>(cols) ? sizeof(sort_memory<THREADS, K, uint32_t>)
                                                            : sizeof(sort_memory<THREADS, K, wide_key>);
    return bytes + 1024 <= cuda_state_of(context)->shared_limit; /* the driver reserves some */
}

/* The most products of a row that is sorted. */
static int most_sorted(sp_context *context, int64_t cols)
{
    return can_sort<1024, 8>(context, cols) ? 1024 * 8 : can_sort<512, 8>(context, cols) ? 512 * 8 : 256 * 8;
}

template <int THREADS, int K, typename V> static sp_status launch_sort(warp_run<V> *run, int stream, int c)
{
    if (!has_rows(run, c)) return SP_OK;
    if (!fits_narrow_keys<THREADS, K>(run->b->cols))
        return launch(run, sort_rows<THREADS, K, wide_key, V>, THREADS, sizeof(sort_memory<THREADS, K, wide_key>),
                      rows_in(run, c), stream, c);
    return launch(run, sort_rows<THREADS, K, uint32_t, V>, THREADS, sizeof(sort_memory<THREADS, K, uint32_t>),
                  rows_in(run, c), stream, c);
}

template <typename V> static sp_status launch_sorts(warp_run<V> *run)
{
    TRY((launch_sort<1024, 8>(run, 2, LONG)));
    TRY((launch_sort<512, 8>(run, 1, SORTED + 5)));
    TRY((launch_sort<256, 8>(run, 3, SORTED + 4)));
    TRY((launch_sort<256, 4>(run, 2, SORTED + 3)));
    TRY((launch_sort<128, 4>(run, 1, SORTED + 2)));
    TRY((launch_sort<32, 8>(run, 2, SORTED + 1)));
    return launch_sort<32, 4>(run, 3, SORTED);
}

template <typename V> static sp_status launch_ranked(warp_run<V> *run)
{
    for (int i = RANKED_CLASSES - 1; i >= 0; i--) {
        const int words = i & 2 ? (int)NARROW_WORDS : (int)NARROWER_WORDS;
        const int most = (i & 1 ? (int)MOST_SUMMED : (int)LEAST_RANKED) + 2; /* one is nobody's, two are aligned */
        if (has_rows(run, RANKED_TWINS + i))
            TRY(launch_tables(run, run->pattern_known ? sum_ranked<V, 2, true> : sum_ranked<V, 2, false>,
                              ranked_bytes<2>(words, most), rows_in(run, RANKED_TWINS + i), (i + 2) % SMALL_STREAM,
                              RANKED_TWINS + i, words, most));
        if (has_rows(run, RANKED + i))
            TRY(launch_tables(run, run->pattern_known ? sum_ranked<V, 1, true> : sum_ranked<V, 1, false>,
                              ranked_bytes<1>(words, most), rows_in(run, RANKED + i), i, RANKED + i, words, most));
    }
    return SP_OK;
}

/* Launches a kernel of 256 threads that strides over its work, with no more blocks than the device holds: those left
 * over would begin when the others are done, and take as long. */
template <typename Kernel, typename... Arguments>
static sp_status launch_strided(sp_context *context, Kernel *kernel, int64_t blocks, cudaStream_t stream,
                                Arguments... arguments)
{
    int most;
    TRY(cuda_full_grid(context, kernel, 256, 0, &most));
    kernel<<<(unsigned)(blocks < most ? blocks : most), 256, 0, stream>>>(arguments...);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

template <typename V> static sp_status list_classes(warp_run<V> *run)
{
    sp_context *context = run->context;
    return launch_strided(context, list_rows, (run->a->rows + 1023) / 1024, stream_of(context), run->a->rows,
                          run->job.notes, run->job.totals, run->list);
}

/* The offsets of C as far as its rows' lengths are known, and lists of the rows of each class. */
template <typename V> static sp_status place_rows(warp_run<V> *run)
{
    TRY(cuda_scan_counts(run->context, run->a->rows, run->lengths, run->c->row_offsets));
    return list_classes(run);
}

/* Lists the classes while the host waits for their numbers of rows, and counts small rows, which need no list. Where
 * rows are short all of them may have been counted. */
template <typename V, bool PLAIN> static sp_status begin_counting(warp_run<V> *run)
{
    TRY(run->merges ? place_rows(run) : list_classes(run));
    if (run->a->nnz > 16 * run->a->rows) return SP_OK; /* hardly any are small */
    run->streams = STREAMS;
    run->small_counted = true;
    return launch_small<V, PLAIN, false>(run);
}

/* The index of B for rows of C that are done in parts; run->index holds it. */
template <typename V> static bucket_index index_of(const warp_run<V> *run)
{
    bucket_index index = {run->index.data, 1};
    while (1ll << index.bits < run->b->cols) index.bits++;
    return index;
}
template <typename V> static sp_status index_columns(warp_run<V> *run, cudaStream_t stream)
{
    sp_context *context = run->context;
    const sp_csr *b = run->b;
    return launch_strided(context, fill_index, (b->rows * 8 + 255) / 256, stream, run->job.totals, b->rows,
                          b->row_offsets, b->col_indices, index_of(run), run->index.data);
}
/* Columns of B in windows of what a block has bits for. Beyond FEW_WINDOWS a wide row costs so much, a search of its
 * rows of B a window, that rows of class LONG are counted with a table and sorted however many there are, and that
 * the index is made before wide rows are counted: wb-edu, 19 windows, 24.4 to 20.6 ms. */
enum { FEW_WINDOWS = 4 };
static int64_t windows_of(const sp_csr *b) { return b->cols / (32 * WIDE_WORDS) + 1; }

/* A few wide rows look so little up that B need not be read for them: of webs, a hundred rows among a million. */
enum { INDEX_SHARE = 4096 };
template <typename V> static bool index_pays(const warp_run<V> *run)
{
    return has_rows(run, WIDE) && run->known->members[WIDE] * windows_of(run->b) * INDEX_SHARE >= run->b->nnz;
}
template <typename V> static sp_status open_index(warp_run<V> *run)
{
    return run->index.allocate(run->context, run->b->nnz / 4 + run->b->rows + 1);
}

template <int THREADS, typename V> static sp_status launch_count_pieces(warp_run<V> *run, int stream, int c)
{
    return launch(run, count_pieces<THREADS, V>, THREADS, sizeof(count_memory<THREADS>), rows_in(run, c), stream, c);
}

template <typename V, bool PLAIN> static sp_status launch_counts(warp_run<V> *run)
{
    const int words = wide_words(run->context);
    const int64_t wide = rows_in(run, WIDE) + (run->far ? 0 : rows_in(run, LONG));
    if (wide > 0)
        TRY(launch(run, count_wide<V, PLAIN>, WIDE_THREADS, wide_bytes(words), wide, ALONE, words, !run->far));
    if constexpr (PLAIN) {
        if (run->far && has_rows(run, LONG)) TRY(launch_count_pieces<1024>(run, 1, LONG));
        if (has_rows(run, BLOCK_COUNTED)) TRY(launch_count_pieces<512>(run, 3, BLOCK_COUNTED));
    }
    if (has_rows(run, NARROW))
        TRY(launch_tables(run, count_narrow<V, PLAIN, NARROW_WORDS>, narrow_bytes<PLAIN>(NARROW_WORDS),
                          rows_in(run, NARROW), 1, (int)NARROW));
    if (has_rows(run, NARROWER))
        TRY(launch_tables(run, count_narrow<V, PLAIN, NARROWER_WORDS>, narrow_bytes<PLAIN>(NARROWER_WORDS),
                          rows_in(run, NARROWER), 2, (int)NARROWER));
    /* Made beside the counting, which does not read it. */
    if (run->index.data && !run->far) {
        cudaStream_t on;
        TRY(take_stream(run, 2, &on));
        TRY(index_columns(run, on));
    }
    for (int i = COUNTED_CLASSES - 1; i >= 0; i--)
        if (has_rows(run, HASHED + i))
            TRY(launch_tables(run, count_hashed<V, PLAIN>, table_bytes<PLAIN, 1>(counting_slots(i), false),
                              rows_in(run, HASHED + i), i % SMALL_STREAM, HASHED + i));
    return run->small_counted ? SP_OK : launch_small<V, PLAIN, false>(run);
}

template <typename V, bool PLAIN> static sp_status launch_parts(warp_run<V> *run)
{
    TRY(launch_tables(run, sum_compact<V, PLAIN>, rank_bytes<PLAIN>(), INT64_MAX, ALONE));
    return launch_tables(run, sum_scattered<V, PLAIN>, sorted_bytes<PLAIN>(PART_ENTRIES), INT64_MAX, ALONE);
}

template <typename V, bool PLAIN> static sp_status launch_hashed(warp_run<V> *run, int i)
{
    const int slots = LEAST_SLOTS << i;
    auto kernel = i < 2    ? sum_hashed<V, PLAIN, 1, 4, 1>
                  : i == 2 ? sum_hashed<V, PLAIN, 8, 8, 1>
                           : sum_hashed<V, PLAIN, 16, 32, 1>;
    if (has_rows(run, HASHED + i))
        TRY(launch_tables(run, kernel, table_bytes<PLAIN, 1>(slots, true), rows_in(run, HASHED + i), i, HASHED + i,
                          slots));
    if constexpr (PLAIN) {
        if (!run->twins || !has_rows(run, TWINS + i)) return SP_OK;
        auto both = slots / 4 * 3 <= 256 ? sum_hashed<V, true, 1, 8, 2> : sum_hashed<V, true, 8, 32, 2>;
        TRY(launch_tables(run, both, table_bytes<true, 2>(slots, true), rows_in(run, TWINS + i), i + 1, TWINS + i,
                          slots));
    }
    return SP_OK;
}

/* The longest rows first: a warp with one of them takes as long as all the short ones. */
template <typename V, bool PLAIN> static sp_status launch_sums(warp_run<V> *run)
{
    const int words = wide_words(run->context);
    if (has_rows(run, WIDE)) {
        TRY(launch(run, write_wide<V, PLAIN>, WIDE_THREADS, wide_bytes(words), rows_in(run, WIDE), ALONE, words));
        if (run->job.c_values) TRY((launch_parts<V, PLAIN>(run)));
    }
    TRY((launch_hashed<V, PLAIN>(run, SUMMED_CLASSES - 1)));
    if constexpr (PLAIN) {
        TRY(launch_sorts(run));
        TRY(launch_ranked(run));
        if (has_rows(run, MERGED)) TRY(launch(run, sum_merged<V>, WARP_THREADS, 0, INT64_MAX, 0));
    }
    for (int i = SUMMED_CLASSES - 2; i >= 0; i--) TRY((launch_hashed<V, PLAIN>(run, i)));
    return launch_small<V, PLAIN, true>(run);
}

template <typename V, bool PLAIN> static sp_status launch_known(warp_run<V> *run)
{
    TRY(launch(run, list_parts<V>, WIDE_THREADS, 0, INT64_MAX, ALONE));
    TRY((launch_parts<V, PLAIN>(run)));
    for (int i = SUMMED_CLASSES - 1; i >= 0; i--) {
        const int entries = i + 1 < SUMMED_CLASSES ? LEAST_SLOTS / 2 << i : MOST_SUMMED;
        TRY(launch_tables(run, sum_known<V, PLAIN>, sorted_bytes<PLAIN>(entries), INT64_MAX, i, HASHED + i, entries));
    }
    return launch_small<V, PLAIN, true>(run);
}

/* Lets the main stream go on after the side streams that have been taken. */
template <typename V> static sp_status join(warp_run<V> *run)
{
    sp_context *context = run->context;
    cuda_state *state = cuda_state_of(context);
    for (int i = 1; i < SIDE_STREAMS; i++) {
        if (!(run->taken.streams >> i & 1)) continue;
        CUDA_TRY(cudaEventRecord(state->joined[i], state->side[i]));
        CUDA_TRY(cudaStreamWaitEvent(state->stream, state->joined[i], 0));
    }
    run->taken.streams = 0;
    return SP_OK;
}

/* Runs one phase's launches. */
template <typename V> static sp_status fork_and_join(warp_run<V> *run, sp_status (*launches)(warp_run<V> *))
{
    int classes = 0;
    for (int c = SMALL; c < CLASSES; c++) classes += has_rows(run, c);
    run->streams = classes < 2 ? 0 : STREAMS;
    run->chain = has_rows(run, WIDE) || has_rows(run, LONG) ? (int)CHAIN_STREAM : 0;
    run->chained = false;
    TRY(cuda_fork(run->context, 0));
    TRY(launches(run));
    return join(run);
}

/* Totals, lengths, lists and notes lie in one array. */
static int64_t room_for_rows(int64_t rows) { return 2 * (int64_t)sizeof(warp_totals) + rows * (2 * 4 + 2); }
template <typename V> static void use_room(warp_run<V> *run, unsigned char *room)
{
    run->totals = (warp_totals *)room;
    run->lengths = (int32_t *)(run->totals + 2);
    run->list = run->lengths + run->a->rows;
    run->notes = (uint8_t *)(run->list + run->a->rows);
    run->job.notes = run->notes;
    run->job.list = run->list;
    run->job.lengths = run->lengths;
}

/* Chains are Hopper's; what the driver makes of older code would begin too late. */
static sp_status find_chains(sp_context *context, bool *can)
{
    cudaFuncAttributes code;
    CUDA_TRY(cudaFuncGetAttributes(&code, list_rows));
    *can = code.binaryVersion >= 90 && code.ptxVersion >= 90;
    return SP_OK;
}

/* A row product's operands. */
template <typename V>
static sp_status set_operands(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         warp_run<V> *run)
{
    run->context = context;
    run->a = a;
    run->b = b;
    run->job.product = {view_of<V>(a), view_of<V>(b), b->cols, options->semiring, NULL, NULL, options->complement, {}};
    if (options->mask) {
        run->job.product.mask_offsets = options->mask->row_offsets;
        run->job.product.mask_cols = options->mask->col_indices;
    }
    run->job.rows = a->rows;
    return find_chains(context, &run->chains);
}

/* The same, and what every phase needs. */
template <typename V>
static sp_status open_run(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          warp_run<V> *run)
{
    TRY(set_operands(context, a, b, options, run));
    TRY(run->room.allocate(context, room_for_rows(a->rows)));
    TRY(run->room.fill(0, 2 * (int64_t)sizeof(warp_totals)));
    use_room(run, run->room.data);
    return SP_OK;
}

/* Rows of up to four elements are read 32 rows at a time, those of up to 24 by eight lanes each: in rows of six to
 * eight, hubs among 32 leave too much to one warp (117 instead of 81 us for five million elements). */
template <typename V> static sp_status classify_rows(warp_run<V> *run)
{
    sp_context *context = run->context;
    const sp_csr *a = run->a, *b = run->b;
    run->job.totals = run->totals;
    if (a->nnz <= 4 * a->rows)
        return launch_strided(context, classify_short, (a->rows + 255) / 256, stream_of(context), a->rows,
                              a->row_offsets, a->col_indices, b->row_offsets, b->col_indices, run->sorts, run->merges,
                              run->notes, run->lengths, run->job.totals);
    const int lanes = a->nnz <= 24 * a->rows ? 8 : 32;
    const bool square = a->row_offsets == b->row_offsets && a->col_indices == b->col_indices;
    if (run->twins) {
        TRY(run->a_repeats.allocate(context, a->rows));
        TRY(launch_strided(context, find_repeats, (a->rows * 8 + 255) / 256, stream_of(context), a->rows,
                           a->row_offsets, a->col_indices, run->a_repeats.data));
        if (!square) {
            TRY(run->b_repeats.allocate(context, b->rows));
            TRY(launch_strided(context, find_repeats, (b->rows * 8 + 255) / 256, stream_of(context), b->rows,
                               b->row_offsets, b->col_indices, run->b_repeats.data));
        }
        run->job.product.repeats = square ? run->a_repeats.data : run->b_repeats.data;
    }
    return launch_strided(context, lanes == 8 ? classify_long<8> : classify_long<32>, (a->rows * lanes + 255) / 256,
                          stream_of(context), a->rows, a->row_offsets, a->col_indices, b->row_offsets, b->col_indices,
                          run->sorts, run->a_repeats.data, run->notes, run->lengths, run->job.totals);
}

template <typename V> static sp_status reclassify_rows(warp_run<V> *run)
{
    sp_context *context = run->context;
    run->job.totals = run->totals + 1;
    run->job.notes = run->notes + run->a->rows;
    return launch_strided(context, classify_lengths, (run->a->rows + 255) / 256, stream_of(context), run->a->rows,
                          run->notes, run->sorts, run->lengths, run->notes + run->a->rows,
                          run->job.totals);
}

/* Runs `meanwhile` on the device while the phase's totals come to the host. */
template <typename V>
static sp_status wait_for_totals(warp_run<V> *run, sp_status (*meanwhile)(warp_run<V> *), warp_totals *totals)
{
    sp_context *context = run->context;
    cudaStream_t side = cuda_state_of(context)->side[0];
    TRY(cuda_fork(context, 1));
    TRY(meanwhile(run));
    CUDA_TRY(cudaMemcpyAsync(totals, run->job.totals, sizeof *totals, cudaMemcpyDeviceToHost, side));
    CUDA_TRY(cudaStreamSynchronize(side));
    if (sp_interrupted(context)) return sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    run->known = totals;
    return SP_OK;
}

/* lengths[i]: entries of row i of C; rows are classified by them. */
template <typename V, bool PLAIN> static sp_status count_rows(warp_run<V> *run)
{
    if (!run->far && run->known->members[LONG] > (unsigned)(LONG_BLOCKS * cuda_state_of(run->context)->processors))
        run->sorts = LEAST_SORTED << (BLOCK_COUNTED - SORTED);
    if (index_pays(run)) TRY(open_index(run));
    if (run->index.data && run->far) {
        TRY(index_columns(run, stream_of(run->context)));
        run->job.product.index = index_of(run);
    }
    TRY(fork_and_join(run, launch_counts<V, PLAIN>));
    return reclassify_rows(run);
}

template <typename V, bool PLAIN> static sp_status sum_rows(warp_run<V> *run)
{
    if (index_pays(run) && !run->index.data) {
        TRY(open_index(run));
        TRY(index_columns(run, stream_of(run->context)));
    }
    run->job.product.index = index_of(run);
    return fork_and_join(run, launch_sums<V, PLAIN>);
}

/* Where the numeric phase writes. A wide row has more than MOST_SUMMED entries and one part that is not full. */
template <typename V> static sp_status set_result(warp_run<V> *run, const sp_csr *c)
{
    run->job.offsets = c->row_offsets;
    run->job.c_cols = c->col_indices;
    run->job.c_values = (V *)c->values;
    if (!has_rows(run, WIDE)) return SP_OK;
    const int64_t most = c->nnz / PART_ENTRIES + c->nnz / MOST_SUMMED + FEW_ENTRIES / LEAST_PART_ENTRIES + 1;
    TRY(run->parts.allocate(run->context, most));
    run->job.parts = run->parts.data;
    run->job.most_parts = (unsigned)most;
    return SP_OK;
}

/* No more than SP_SPGEMM_GROUPS: twins are looked for in long rows of A only, merged rows are short. */
static void name_groups(const warp_totals *totals, sp_spgemm_info *info)
{
    static const char *const names[TWINS] = {"", "small", "merged", "hash 128", "hash 256", "hash 512",
                                             "hash 1024", "", "", "", "", "wide", "sort 256", "sort 256", "sort 1024",
                                             "sort 1024", "sort 4096", "sort 4096", "sort 8192", "ranked", "ranked",
                                             "ranked", "ranked"};
    unsigned twins = 0;
    for (int c = TWINS; c < CLASSES; c++) twins += totals->members[c];
    info->groups = 0;
    for (int c = IDLE + 1; c <= TWINS; c++) {
        const unsigned count = c == TWINS ? twins : totals->members[c];
        if (count == 0) continue;
        const char *name = c == TWINS ? "twins" : names[c];
        if (info->groups > 0 && strcmp(info->group[info->groups - 1].name, name) == 0) {
            info->group[info->groups - 1].count += count;
            continue;
        }
        sp_spgemm_group *group = &info->group[info->groups++];
        snprintf(group->name, sizeof group->name, "%s", name);
        group->count = count;
    }
}

static bool all_merged(const warp_totals *totals)
{
    unsigned others = 0;
    for (int c = SMALL; c < CLASSES; c++) others += c == MERGED ? 0 : totals->members[c];
    return others == 0;
}

/* Columns and values for the offsets that `c` has. */
static sp_status allocate_entries(sp_context *context, bool pattern, sp_csr *c)
{
    TRY(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    if (pattern) return SP_OK;
    return cuda_allocate(context, (size_t)c->nnz * sp_value_size(c->value_type), &c->values);
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V, bool PLAIN>
static sp_status form_product(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info)
{
    const double start = sp_seconds();
    const bool pattern = options->semiring == SP_OR_AND;
    warp_run<V> run = {};
    warp_totals totals;
    size_t before;
    TRY(cuda_watch_peak(context, &before));
    TRY(cuda_allocate(context, ((size_t)a->rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    TRY(open_run(context, a, b, options, &run));
    /* Finite elements have long rows; comparing short ones costs more than it gains. */
    run.twins = PLAIN && a->nnz > 8 * a->rows;
    run.sorts = PLAIN ? most_sorted(context, b->cols) : 0;
    run.far = run.sorts >= LEAST_SORTED << (LONG - SORTED) && windows_of(b) > FEW_WINDOWS;
    run.merges = PLAIN && a->nnz <= 4 * a->rows;
    run.c = c;
    /* Offsets are tried before rows that do not merge are counted. */
    if (run.merges) CUDA_TRY(cudaMemsetAsync(run.lengths, 0, (size_t)a->rows * sizeof(int32_t), stream_of(context)));
    TRY(classify_rows(&run));
    TRY(wait_for_totals(&run, begin_counting<V, PLAIN>, &totals));
    info->products = (int64_t)totals.products;
    if (!run.merges || !all_merged(&totals)) {
        TRY((count_rows<V, PLAIN>(&run)));
        TRY(wait_for_totals(&run, place_rows<V>, &totals));
    }
    TRY(join(&run));
    c->nnz = (int64_t)totals.entries;
    const double counted = sp_seconds();
    TRY(allocate_entries(context, pattern, c));
    TRY(set_result(&run, c));
    TRY((sum_rows<V, PLAIN>(&run)));
    TRY(cuda_finish(context));
    name_groups(&totals, info);
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (a->rows + 1) * (int64_t)sizeof(int64_t) +
                        c->nnz * (int64_t)(sizeof(int32_t) + (pattern ? 0 : sizeof(V)));
    info->symbolic_seconds = counted - start;
    info->numeric_seconds = sp_seconds() - counted;
    return SP_OK;
}

static bool is_plain(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    return options->semiring == SP_PLUS_TIMES && !options->mask && a->values && b->values && b->nnz < UINT32_MAX;
}

sp_status sp_cuda_spgemm_warp(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made = {};
    sp_status status;
    made.rows = a->rows;
    made.cols = b->cols;
    made.value_type = a->value_type;
    made.space = SP_DEVICE;
    if (a->rows == 0)
        status = sp_csr_create(context, 0, b->cols, 0, a->value_type, SP_DEVICE, &made);
    else if (a->value_type == SP_F32)
        status = is_plain(a, b, options) ? form_product<float, true>(context, a, b, options, &made, info)
                                         : form_product<float, false>(context, a, b, options, &made, info);
    else
        status = is_plain(a, b, options) ? form_product<double, true>(context, a, b, options, &made, info)
                                         : form_product<double, false>(context, a, b, options, &made, info);
    if (status == SP_OK && a->rows == 0) {
        if (options->semiring == SP_OR_AND) {
            cuda_release(context, made.values);
            made.values = NULL;
        }
        status = cuda_status(context, cudaMemsetAsync(made.row_offsets, 0, sizeof(int64_t), stream_of(context)),
                             "cudaMemsetAsync");
    }
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

/* Classes of rows to sum, by C's offsets. */
template <typename V> static sp_status classify_known(warp_run<V> *run, const sp_csr *c)
{
    sp_context *context = run->context;
    lengths_of<<<(unsigned)((c->rows + 255) / 256), 256, 0, stream_of(context)>>>(c->rows, c->row_offsets,
                                                                                  run->lengths);
    CUDA_TRY(cudaGetLastError());
    TRY(classify_rows(run));
    return reclassify_rows(run);
}

/* The numeric phase alone: products outside C's pattern are those that a mask forbids. */
template <typename V, bool PLAIN>
static sp_status form_values(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                             const product_places *places, sp_csr *c)
{
    warp_run<V> run = {};
    TRY(open_run(context, a, b, options, &run));
    TRY(classify_known(&run, c));
    TRY(set_result(&run, c));
    if (places) run.job.places = *places;
    if (c->nnz > MOST_SUMMED) {
        TRY(open_index(&run));
        TRY(index_columns(&run, stream_of(context)));
    }
    run.job.product.index = index_of(&run);
    TRY(list_classes(&run));
    TRY(fork_and_join(&run, launch_known<V, PLAIN>));
    return cuda_finish(context);
}

sp_status sp_cuda_spgemm_warp_values(sp_context *context, const sp_csr *a, const sp_csr *b,
                                     const sp_spgemm_options *options, sp_csr *c)
{
    if (a->rows == 0 || c->nnz == 0 || !c->values) return SP_OK;
    sp_spgemm_options known = *options;
    known.complement = false;
    if (known.mask) known.mask = c;
    if (a->value_type == SP_F32)
        return is_plain(a, b, &known) ? form_values<float, true>(context, a, b, &known, NULL, c)
                                      : form_values<float, false>(context, a, b, &known, NULL, c);
    return is_plain(a, b, &known) ? form_values<double, true>(context, a, b, &known, NULL, c)
                                  : form_values<double, false>(context, a, b, &known, NULL, c);
}

sp_status sp_cuda_spgemm_warp_places(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked,
                                     const product_places *places, const sp_csr *pattern)
{
    sp_csr c = *pattern;
    sp_spgemm_options known = {};
    known.mask = masked ? pattern : NULL;
    c.values = NULL;
    return form_values<uint32_t, false>(context, a, b, &known, places, &c);
}

/* ---- host: rows that a plan keeps ------------------------------------------------------------------------ */

struct kept_rows {
    warp_totals known;   /* of the numeric phase */
    unsigned char *room; /* as in warp_run */
    uint8_t *repeats;    /* of B */
};

/* Where neighbours in A have the same columns and C's lie close together, rows are summed in 2/5 to 1/2 of the time
 * that listed products take. Wide rows would use up the totals. */
static bool are_elements(const warp_totals *totals, int64_t rows)
{
    int64_t twins = 0;
    for (int i = 0; i < RANKED_CLASSES; i++) twins += totals->members[RANKED_TWINS + i];
    return 4 * twins >= rows && totals->members[WIDE] == 0;
}

/* Keeps nothing where rows do not suit. */
static sp_status find_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_csr *pattern,
                           kept_rows *kept, bool *suit)
{
    const sp_spgemm_options options = {};
    warp_run<float> run = {}; /* nobody looks at values */
    TRY(open_run(context, a, b, &options, &run));
    run.twins = true;
    run.sorts = std::min(most_sorted(context, b->cols), LEAST_SORTED << (BLOCK_COUNTED - SORTED)); /* none is LONG */
    TRY(classify_known(&run, pattern));
    TRY(list_classes(&run));
    CUDA_TRY(cudaMemcpyAsync(&kept->known, run.job.totals, sizeof kept->known, cudaMemcpyDeviceToHost,
                             stream_of(context)));
    TRY(cuda_finish(context));
    *suit = are_elements(&kept->known, a->rows);
    if (!*suit) return SP_OK;
    device_array<uint8_t> &repeats = run.b_repeats.data ? run.b_repeats : run.a_repeats;
    kept->room = run.room.data;
    kept->repeats = repeats.data;
    run.room.data = repeats.data = NULL;
    return SP_OK;
}

sp_status cuda_keep_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_csr *pattern,
                         kept_rows **rows, int64_t *bytes)
{
    bool suit = false;
    void *kept;
    *rows = NULL;
    if (a->nnz <= 8 * a->rows || b->nnz >= UINT32_MAX) return SP_OK;
    TRY(sp_calloc(context, 1, sizeof(kept_rows), &kept));
    const sp_status status = find_rows(context, a, b, pattern, (kept_rows *)kept, &suit);
    if (status != SP_OK || !suit) {
        sp_free(context, kept);
        return status;
    }
    *rows = (kept_rows *)kept;
    *bytes = room_for_rows(a->rows) + b->rows;
    return SP_OK;
}

void cuda_free_rows(sp_context *context, kept_rows *rows)
{
    if (!rows) return;
    cuda_release(context, rows->room);
    cuda_release(context, rows->repeats);
    sp_free(context, rows);
}

template <typename V>
static sp_status sum_kept(sp_context *context, const kept_rows *rows, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    const sp_spgemm_options options = {};
    warp_run<V> run = {};
    TRY(set_operands(context, a, b, &options, &run));
    use_room(&run, rows->room);
    run.twins = run.pattern_known = true;
    run.known = &rows->known;
    run.job.product.repeats = rows->repeats;
    run.job.totals = run.totals + 1;
    run.job.notes = run.notes + a->rows;
    TRY(set_result(&run, c));
    TRY((fork_and_join(&run, launch_sums<V, true>)));
    return cuda_finish(context);
}

sp_status cuda_sum_rows(sp_context *context, const kept_rows *rows, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    return c->value_type == SP_F32 ? sum_kept<float>(context, rows, a, b, c)
                                   : sum_kept<double>(context, rows, a, b, c);
}
