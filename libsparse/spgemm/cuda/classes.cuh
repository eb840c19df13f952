/* The classes of rows of a product that warp.cu forms: their names, the counts on the device, the job that a kernel
 * gets and how it is launched. Each kind of rows has a file of kernels and of their launches, declared below. */
#ifndef SPARSE_CUDA_SPGEMM_ROWS_CUH
#define SPARSE_CUDA_SPGEMM_ROWS_CUH

#include "base/ablation.h"
#include "spgemm/cuda/pack.cuh"
#include "spgemm/cuda/rank.cuh"

/* ---- constants ------------------------------------------------------------------------------------------- */

/* Blocks of rows a warp: four warps, or as few as keep a block's tables within 48 KB, which every device has. */
enum { WARP_THREADS = 128, TABLE_LIMIT = 48 << 10 };

/* Sizes of the classes that have several. Class CLASS_HASHED + i and CLASS_TWINS + i have tables of LEAST_SLOTS << i
 * slots, at most half full except those of the largest class to sum, whose 1,024 slots hold 768: of larger tables too
 * few fit a multiprocessor to keep it busy. Class CLASS_SORTED + i has rows of up to LEAST_SORTED << i products. */
enum { COUNTED_CLASSES = 6, SUMMED_CLASSES = 4, SORTED_CLASSES = 7, RANKED_CLASSES = 4 };
enum { LEAST_SLOTS = 128, MOST_COUNTED = 2048, MOST_SUMMED = 768, LEAST_SORTED = 128 };
static_assert(LEAST_SLOTS << (COUNTED_CLASSES - 1) == 2 * MOST_COUNTED, "tables are at most half full");

/* Classes of rows: which rows, who takes them, and what the class gained when it was added, in ms on the matrices of
 * docs/notebook/spgemm-gpu.md (H200, f64). */
enum {
    CLASS_IDLE,   /* no products */
    CLASS_SMALL,  /* up to 96 products: packs, sorted in registers (short.cu) */
    CLASS_MERGED, /* 32 neighbours of up to 9 elements and 96 products that are alike: a lane each, which merges rows
                     of B (merged.cu). Road networks 0.39 to 0.19, stencils of five points 0.67 to 0.30, of nine 2.0 to
                     0.54 */
    CLASS_HASHED, /* up to 2,048 products to count, up to 768 entries of C to sum: a warp's table (tables.cu) */
    /* Of these, more than LEAST_LOCAL products in columns within 16,384: a bit a column to count (wide.cu), summed as
     * hashed ones. A band of 65 columns 1.25 to 0.97, stencils of 27 points 2.15 to 1.99 */
    CLASS_LOCAL = CLASS_HASHED + COUNTED_CLASSES,
    /* Columns within 65,536, or 16,384: a bit a column to count (wide.cu). Where B has up to 4,096 columns, rows of
     * more, or fewer, than NARROW_PRODUCTS products: dense sums (dense.cu); a graph times a thin matrix 41.8 to 6.3. */
    CLASS_NARROW,
    CLASS_NARROWER,
    CLASS_WIDE, /* all others: a block and a bit a column, sums by parts (wide.cu) */
    /* Up to 4,096 products, and more than 768 entries of C or half as many as products: sorted (sorted.cu). Uniform
     * matrix 6.0 to 4.6 */
    CLASS_SORTED,
    CLASS_BLOCK_COUNTED = CLASS_SORTED + 5, /* of these, more than MOST_COUNTED: counted by a block as well */
    /* Up to 8,192 products: counted as wide rows, and sorted if there are at most LONG_BLOCKS a
     * multiprocessor, which holds one block at a time: their parts would hardly keep the device busy. Where wide rows
     * cost more, because there are many columns, counted by a block and sorted however many there are. */
    CLASS_LONG = CLASS_SORTED + 6,
    /* Narrow rows of up to 768 entries of C: sums at the rank of the column (ranked.cu). Class i: i & 1 more than
     * LEAST_RANKED entries, i & 2 not narrower. Finite elements 4.0 to 1.65 with the next but one */
    CLASS_RANKED = CLASS_SORTED + SORTED_CLASSES,
    CLASS_TWINS = CLASS_RANKED + RANKED_CLASSES,         /* two hashed rows of equal columns in A at once */
    CLASS_RANKED_TWINS = CLASS_TWINS + SUMMED_CLASSES,   /* two ranked rows */
    CLASS_GIANT = CLASS_RANKED_TWINS + RANKED_CLASSES,   /* plain rows that are split over blocks (giant.cu) */
    ROW_CLASSES
};
enum { LONG_BLOCKS = 8 };
static_assert(LEAST_SORTED << (CLASS_BLOCK_COUNTED - CLASS_SORTED) == 2 * MOST_COUNTED, "what tables do not count");
static_assert(CLASS_LONG + 1 == CLASS_RANKED, "the last class");

/* Giant rows have more elements of A, or more products: all else would wait for the warp that reads the elements of
 * one, or for the block that takes its products, for longer than for the dozen launches and three waits of sorting. */
enum { GIANT_ELEMENTS = 1 << 13, GIANT_PRODUCTS = 1 << 19 };

/* Slots of the table that counts rows of class CLASS_HASHED + i. For up to 256 products it is a quarter full at most:
 * twice the slots take no warp from a multiprocessor, and cost less to clear than the probes that they save. */
static __host__ __device__ constexpr int counting_slots(int i) { return LEAST_SLOTS << (i < 3 ? i + 1 : i); }

/* What is noted of a row: up to MOST_SMALL, the products of a small or idle one; beyond, its class. TWIN marks rows
 * 2i and 2i + 1 whose columns in A are the same: the first stands for both. Alone it says that the row's columns in A
 * are those of the row before it: of the second, and where more than two agree of the first. When sums are formed,
 * that there is nothing to do for the row, whatever its products. */
enum { TWIN = 128 };
static_assert(MOST_SMALL + ROW_CLASSES - 1 - CLASS_SMALL < TWIN, "a note is a byte");

static __device__ __forceinline__ uint8_t note_of(int c)
{
    return (uint8_t)(c == CLASS_IDLE ? TWIN : MOST_SMALL + c - CLASS_SMALL);
}
static __device__ __forceinline__ int class_of(int note)
{
    note &= TWIN - 1;
    return note == 0 ? CLASS_IDLE : note <= MOST_SMALL ? CLASS_SMALL : note - MOST_SMALL + CLASS_SMALL;
}

/* Narrow rows: 8 KB of bits a warp, 25 warps a multiprocessor; 2 KB, and as many warps as it holds, for the narrower
 * ones. One warp is not to be left with a hub. */
enum { NARROW_WORDS = 2048, NARROWER_WORDS = 512, LEAST_LOCAL = 512, NARROW_PRODUCTS = 65536 };

/* Where B has few columns every long row is narrow, and dense: it has a sum for each of them, 32 KB at most.
 * CLASS_NARROW are those of more than NARROW_PRODUCTS products, which are taken first, CLASS_NARROWER the others. Rows
 * of few products are left to tables and sorting, which need not clear and read all sums: 4,000 rows of 576 products
 * in 4,000 columns take 0.13 ms so and 0.17 by dense sums. */
enum { DENSE_COLUMNS = 4096, LEAST_DENSE = 256 };
static inline int least_dense(const sp_csr *b)
{
    if (b->cols > DENSE_COLUMNS) return 0;
    return b->cols > 4 * LEAST_DENSE ? (int)b->cols / 4 : (int)LEAST_DENSE;
}

/* Wide rows: bits for all of B's columns, a power of two of words, up to 64 KB, or half of it where a block may not
 * have as much. A multiprocessor has three blocks with 64 KB, with less as many as registers are to suffice for. A
 * part of a row has PART_ENTRIES entries of C; fewer where wide rows have less than a million in all, so that all
 * multiprocessors get parts. Compact parts lie within RANKED_COLUMNS: with 4 KB of bits and ranks, as much as their
 * sums take, a multiprocessor holds 24 warps; so it does with scattered ones, which have two buckets an entry.
 * Ranked rows have bits for NARROW_WORDS or NARROWER_WORDS words and sums for LEAST_RANKED or MOST_SUMMED entries. */
enum { WIDE_THREADS = 256, WIDE_BLOCKS = MOST_THREADS / WIDE_THREADS, WIDE_WORDS = 16384, LEAST_WIDE_WORDS = 1024,
       PART_ENTRIES = 512, LEAST_PART_ENTRIES = 128, FEW_ENTRIES = 1 << 20, RANKED_COLUMNS = 16384,
       LEAST_RANKED = 256 };

/* ---- device ---------------------------------------------------------------------------------------------- */

/* All that is counted on the device. */
struct warp_totals {
    unsigned long long products, entries, wide_entries;
    unsigned int members[ROW_CLASSES], placed[ROW_CLASSES]; /* rows of a class; rows already listed */
    unsigned int next, compact, scattered;          /* wide row to take; parts of wide rows */
};

/* Kernels of classes may be launched as a chain: each begins when all blocks of that before it have begun. It
 * reads nothing that these write, and ends after them. */
static __device__ __forceinline__ void end_after_last()
{
    if (blockIdx.x == 0) wait_for_previous();
}

static __device__ __forceinline__ unsigned first_warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / 32; }
static __device__ __forceinline__ unsigned all_warps() { return gridDim.x * blockDim.x / 32; }

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

/* Sets bits of shared memory. Most are set already where C has far fewer entries than there are products. */
static __device__ __forceinline__ void set_bit(uint32_t *word, uint32_t bit)
{
    if (!(*(volatile uint32_t *)word & bit)) atomicOr(word, bit);
}

/* The rows of class c, which are listed. */
struct class_rows {
    const int32_t *rows;
    unsigned count;
};
static __device__ __forceinline__ class_rows rows_of(const warp_totals *totals, const int32_t *list, int c)
{
    unsigned first = 0;
    for (int d = CLASS_HASHED; d < c; d++) first += totals->members[d];
    return {list + first, totals->members[c]};
}

template <typename V> struct warp_job {
    product_view<V> product;
    int64_t rows;
    warp_totals *totals; /* of the phase */
    const uint8_t *notes;
    const int32_t *list;
    int32_t *lengths;       /* counting writes them */
    const int64_t *offsets; /* of C; summing reads them */
    int32_t *c_cols;
    V *c_values; /* NULL: C is a pattern */
    struct row_part *parts; /* compact ones from the front, scattered ones from the end */
    unsigned most_parts;
};

/* Entries [first, first + count) of C, of one row. */
struct row_part {
    int64_t first;
    int32_t row, count;
};

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

/* The entries of C in giant rows, until C has its arrays. */
struct giant_rows {
    int64_t count, products, entries; /* rows; of all of them */
    device_array<int32_t> rows;
    device_array<int64_t> firsts; /* entries before each row, and all */
    device_array<int32_t> cols;
    device_array<double> sums;
};

/* Everything that one call holds on the device. */
template <typename V> struct warp_run {
    sp_context *context;
    const sp_csr *a, *b;
    sp_csr *c;
    warp_job<V> job;
    int sorts; /* the most products of a row that is sorted */
    int dense; /* rows of more products have a sum for each of B's few columns; 0: none */
    bool twins, merges;
    bool splits; /* giant rows are split over blocks */
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
    device_array<uint8_t> a_repeats;
    giant_rows giants;
    side_work taken;
};

static inline cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

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
    CUDA_CHECK(cudaStreamWaitEvent(state->side[i], state->forked, 0));
    run->taken.streams |= 1u << i;
    return SP_OK;
}

/* The rows of a class, as far as they are known. */
template <typename V> static int64_t rows_in(const warp_run<V> *run, int c)
{
    return run->known ? run->known->members[c] : INT64_MAX;
}

/* Narrow rows are counted by a block each, as wide ones, if there are at most FEW_NARROW a multiprocessor: a
 * warp with tens of thousands of products is what all else would wait for. */
enum { FEW_NARROW = 8 };
template <typename V> static bool few_narrow(const warp_run<V> *run)
{
    if (left_out("spgemm-few-narrow")) return false;
    const int64_t few = FEW_NARROW * cuda_state_of(run->context)->processors;
    return run->known && !run->dense && rows_in(run, CLASS_NARROW) + rows_in(run, CLASS_NARROWER) <= few;
}

/* Launches a kernel with as many blocks as the device holds, at most `most`. */
template <typename V, typename Kernel, typename... Arguments>
static sp_status launch(warp_run<V> *run, Kernel *kernel, int threads, size_t shared, int64_t most, int stream,
                        Arguments... arguments)
{
    sp_context *context = run->context;
    int blocks;
    CHECK(cuda_full_grid(context, kernel, threads, shared, &blocks));
    if (most < blocks) blocks = (int)most;
    bool early = false;
    cudaStream_t queue;
    if (run->chains && stream != ALONE && stream != SMALL_STREAM) {
        early = run->chained;
        run->chained = true;
        stream = run->chain;
    }
    CHECK(take_stream(run, stream, &queue));
    CUDA_CHECK(launch_kernel(kernel, dim3((unsigned)blocks), threads, shared, queue, early, run->job, arguments...));
    return SP_OK;
}

/* Warps of a block whose tables take `bytes` each. */
static inline int table_warps(size_t bytes)
{
    int warps = WARP_THREADS / 32;
    while (warps > 1 && warps * bytes > TABLE_LIMIT) warps /= 2;
    return warps;
}

/* The same for a kernel whose warps have a table of `bytes` and take a row each. */
template <typename V, typename Kernel, typename... Arguments>
static sp_status launch_tables(warp_run<V> *run, Kernel *kernel, size_t bytes, int64_t rows, int stream,
                               Arguments... arguments)
{
    const int warps = table_warps(bytes);
    return launch(run, kernel, 32 * warps, warps * bytes, rows / warps + 1, stream, arguments...);
}

/* Launches a kernel of 256 threads that strides over its work, with no more blocks than the device holds: those left
 * over would begin when the others are done, and take as long. */
template <typename Kernel, typename... Arguments>
static sp_status launch_strided(sp_context *context, Kernel *kernel, int64_t blocks, cudaStream_t stream,
                                Arguments... arguments)
{
    int most;
    CHECK(cuda_full_grid(context, kernel, 256, 0, &most));
    kernel<<<(unsigned)(blocks < most ? blocks : most), 256, 0, stream>>>(arguments...);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* Columns of B in windows; a block has a bit for each column of one. Beyond FEW_WINDOWS a wide row costs so much, a
 * search of its rows of B a window, that rows of CLASS_LONG are counted with a table and sorted however many there
 * are, and that the index is made before wide rows are counted: wb-edu, 19 windows, 24.4 to 20.6 ms. */
enum { FEW_WINDOWS = 4 };
static inline int64_t windows_of(const sp_csr *b) { return b->cols / (32 * WIDE_WORDS) + 1; }

/* ---- host: kinds of rows ----------------------------------------------------------------------------------- */

/* classes.cu: classes to count, by products; to sum, by the counts or by C's offsets; their lists. */
template <typename V> sp_status classify_rows(warp_run<V> *run);
template <typename V> sp_status reclassify_rows(warp_run<V> *run);
template <typename V> sp_status classify_known(warp_run<V> *run, const sp_csr *c);
template <typename V> sp_status list_classes(warp_run<V> *run);
/* Whether launches can be chained: chains are Hopper's; what the driver makes of older code would begin too late. */
sp_status find_chains(sp_context *context, bool *can);

/* short.cu */
template <typename V, bool PLAIN, bool SUM> sp_status launch_small(warp_run<V> *run);

/* merged.cu: may there be merged rows; finds and counts them before others are classified; sums them */
bool can_merge(const sp_csr *a);
template <typename V> sp_status count_merged_rows(warp_run<V> *run);
template <typename V> sp_status launch_merged(warp_run<V> *run);

/* tables.cu; rows of class CLASS_HASHED + i and, where A's are compared, CLASS_TWINS + i */
template <typename V, bool PLAIN> sp_status launch_hashed_counts(warp_run<V> *run);
template <typename V, bool PLAIN> sp_status launch_hashed(warp_run<V> *run, int i);

/* sorted.cu */
template <typename V> sp_status launch_piece_counts(warp_run<V> *run);
template <typename V> sp_status launch_sorts(warp_run<V> *run);
/* The most products of a row that is sorted. */
int most_sorted(sp_context *context, int64_t cols);

/* dense.cu; rows[0], rows[step], ... are taken by `next`, which is 0 */
struct row_list {
    const int32_t *rows;
    unsigned count;
    int step;
    unsigned *next;
};
template <typename V> sp_status launch_dense_counts(warp_run<V> *run);
template <typename V> sp_status launch_dense(warp_run<V> *run);
/* Sums the rows of a list into C, whose offsets are known. */
template <typename V>
sp_status sum_dense_rows(sp_context *context, const warp_job<V> &job, const row_list &list, cudaStream_t stream);

/* ranked.cu */
template <typename V> sp_status launch_ranked(warp_run<V> *run);

/* giant.cu: the entries of `count` rows of A·B, whose numbers and lengths of C lie on the device, unless there is no
 * room to sort their products; those of rows of f32_from products and more are rounded to f32. Their way into C. */
template <typename V>
sp_status form_giant_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const int32_t *rows, int64_t count,
                          int64_t f32_from, int32_t *lengths, giant_rows *giants, bool *formed);
template <typename V> sp_status write_giants(warp_run<V> *run);

/* wide.cu: wide rows, to count also those of class CLASS_LONG; narrow rows to count; values of a known pattern */
template <typename V, bool PLAIN> sp_status launch_wide_counts(warp_run<V> *run);
template <typename V, bool PLAIN> sp_status launch_narrow_counts(warp_run<V> *run);
template <typename V, bool PLAIN> sp_status launch_wide(warp_run<V> *run);
template <typename V, bool PLAIN> sp_status launch_known(warp_run<V> *run);
/* The index of B for rows of C that are done in parts. */
template <typename V> bool index_pays(const warp_run<V> *run);
template <typename V> sp_status open_index(warp_run<V> *run);
template <typename V> bucket_index index_of(const warp_run<V> *run);
template <typename V> sp_status index_columns(warp_run<V> *run, cudaStream_t stream);

#endif
