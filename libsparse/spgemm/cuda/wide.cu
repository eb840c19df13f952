/* Rows of C by bits: a warp counts a narrow row, a block a wide one, in windows of columns, with a bit a column in
 * shared memory. A prefix sum over the bits gives the columns of wide rows in order; their sums are formed by warps,
 * part by part, as are those of rows whose columns are known. An index of B by column tells which entries of a row of
 * B belong to a part. A block copies a row that is nearly one row of B. */
#include "spgemm/cuda/classes.cuh"

static __host__ __device__ constexpr int buckets_for(int entries) { return 2 * next_power_of_two(entries); }

/* Bits of columns that are to be counted only: neighbouring columns go to different words, so that their lanes do not
 * wait for each other. */
struct scattered_bits {
    uint32_t *words;
    int log; /* of the number of words, a power of two */
    __device__ __forceinline__ void set(uint32_t i) const
    {
        set_bit(words + (i & ((1u << log) - 1)), 1u << (i >> log));
    }
};
struct ordered_bits {
    uint32_t *words;
    __device__ __forceinline__ void set(uint32_t i) const { set_bit(words + i / 32, 1u << (i % 32)); }
};

/* Sets the bits of a row's columns. */
template <typename V, bool PLAIN> struct bit_sink {
    static constexpr bool SUMS = false;
    static constexpr int ROWS = 1;
    const product_view<V> &product;
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
static __global__ void __launch_bounds__(256)
    fill_index(const warp_totals *totals, int64_t rows, const int64_t *offsets, const int32_t *cols,
               bucket_index index, uint32_t *first)
{
    enum { LANES = 8, GROUPS = 256 / LANES, LONG_ROW = 512 };
    __shared__ int64_t waiting[GROUPS];
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
    if (totals->members[CLASS_WIDE] == 0) return;
    for (int64_t base = (int64_t)blockIdx.x * GROUPS; base < rows; base += (int64_t)gridDim.x * GROUPS) {
        const int64_t row = base + threadIdx.x / LANES, length = row < rows ? offsets[row + 1] - offsets[row] : 0;
        __syncthreads();
        if (threadIdx.x == 0) waits = 0;
        __syncthreads();
        if (length >= LONG_ROW && threadIdx.x % LANES == 0) waiting[atomicAdd(&waits, 1)] = row;
        else if (length >= LEAST_INDEXED && length < LONG_ROW) fill(row, threadIdx.x % LANES, LANES);
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

/* The next row of classes `first` to CLASS_WIDE; with `more` one of CLASS_LONG after these. */
static __device__ int take_wide(warp_totals *totals, const int32_t *list, int first, bool more, wide_memory &memory)
{
    class_rows own = rows_of(totals, list, first);
    const class_rows others = rows_of(totals, list, CLASS_LONG);
    for (int c = first + 1; c <= CLASS_WIDE; c++) own.count += totals->members[c];
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
static __device__ void find_wide_span(const product_view<V> &product, int row, int64_t *lowest, int64_t *highest,
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
static __device__ void set_bits(const product_view<V> &product, int row, int64_t low, int64_t high, bool whole,
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
static __global__ void __launch_bounds__(WIDE_THREADS, WIDE_BLOCKS)
    count_wide(warp_job<V> job, int wide_words, int first, bool with_long)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    wide_memory &memory = *(wide_memory *)table_memory;
    for (int row; (row = take_wide(job.totals, job.list, first, with_long, memory)) >= 0;) {
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

/* Lists the parts of a row whose columns are known, for a whole block. */
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

/* Writes the columns whose bits are set in the first `words` words; returns their number. Every warp has its share of
 * the words. It takes 128 at a time, four a lane, and lists their columns where the words were, 256 at a time, so
 * that they leave it side by side. */
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
        int count, at = scan_lanes(own, &count);
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

/* ---- copied rows ----------------------------------------------------------------------------------------- */

/* A row of C that is nearly one long row of B, times a number: all other products are few. Their columns are looked for
 * in the long row, whose other entries are copied. */
enum { MOST_BESIDE = 128 };

/* The long row, and the products beside it, in A's order. */
struct copied_row {
    uint32_t start; /* of the long row in B */
    int32_t length;
    int element, before; /* of A: the long row's; the products that come before its own */
    double value[MOST_BESIDE];
    int32_t col[MOST_BESIDE];
    int32_t place[MOST_BESIDE];     /* where columns that the long row lacks come in it, ascending */
    uint8_t by_column[MOST_BESIDE]; /* the products by column, those of one column in A's order */
};
static_assert(sizeof(copied_row) <= sizeof(wide_memory::piece), "it lies where pieces would");

/* A thread's element of A, and then its product in the order of columns. */
struct beside {
    uint32_t start; /* of the element's row of B */
    int32_t length; /* 0 of the long row */
    bool first;     /* the first of its column */
    bool met;       /* which the long row has */
    int place;      /* in the long row */
    int inserted;   /* columns before it that the long row lacks */
};

/* Whether the row is one, for the block. A thread takes an element of A; rows of more elements are none. */
template <typename V>
static __device__ bool find_copied(const product_view<V> &product, int row, wide_memory &memory, beside *own)
{
    copied_row &copied = *(copied_row *)memory.piece;
    const int64_t begin = product.a.offsets[row], elements = product.a.offsets[row + 1] - begin;
    if (elements > WIDE_THREADS) return false;
    own->length = 0;
    if (threadIdx.x < elements) {
        const int32_t k = __ldg(product.a.cols + begin + threadIdx.x);
        own->start = (uint32_t)__ldg(product.b.offsets + k);
        own->length = (int32_t)(__ldg(product.b.offsets + k + 1) - own->start);
    }
    const bool is_long = own->length > MOST_BESIDE;
    if (__syncthreads_count(is_long) != 1) return false;
    if (is_long) {
        copied.start = own->start;
        copied.length = own->length;
        copied.element = (int)threadIdx.x;
        own->length = 0;
    }
    return block_reduce<WIDE_THREADS>(own->length, add_op(), memory.scratch) <= MOST_BESIDE;
}

/* Lists the products beside the long row, *count, and finds where their columns come in it; returns how many of these
 * it lacks. */
template <typename V>
static __device__ int place_beside(const product_view<V> &product, int row, wide_memory &memory, beside *own,
                                   int *count)
{
    copied_row &copied = *(copied_row *)memory.piece;
    const int at = block_scan<WIDE_THREADS>(own->length, count, memory.scratch), i = (int)threadIdx.x;
    const double weight = own->length > 0 ? (double)product.a.values[product.a.offsets[row] + i] : 0;
    for (int k = 0; k < own->length; k++) {
        copied.col[at + k] = __ldg(product.b.cols + own->start + k);
        copied.value[at + k] = __dmul_rn(weight, (double)__ldg(product.b.values + own->start + k));
    }
    if (i == copied.element) copied.before = at;
    __syncthreads();
    if (i < *count) {
        int rank = 0;
        for (int k = 0; k < *count; k++)
            rank += copied.col[k] < copied.col[i] || (copied.col[k] == copied.col[i] && k < i);
        copied.by_column[rank] = (uint8_t)i;
    }
    __syncthreads();
    own->first = false;
    if (i < *count) {
        const int32_t col = copied.col[copied.by_column[i]], *cols = product.b.cols + copied.start;
        own->first = i == 0 || copied.col[copied.by_column[i - 1]] != col;
        own->place = (int)lower_bound_i32(cols, 0, copied.length, col);
        own->met = own->place < copied.length && cols[own->place] == col;
    }
    const bool lacks = own->first && !own->met;
    int all;
    own->inserted = block_scan<WIDE_THREADS>(lacks, &all, memory.scratch);
    if (lacks) copied.place[own->inserted] = own->place;
    __syncthreads();
    return all;
}

/* The sum of a column, from its first product beside the long row on: entry `i` of those by column. */
static __device__ double sum_beside(const copied_row &copied, int i, int count, bool met, double of_long)
{
    const int32_t col = copied.col[copied.by_column[i]];
    double sum = -0.0;
    for (; i < count && copied.col[copied.by_column[i]] == col; i++) {
        const int product = copied.by_column[i];
        if (met && product >= copied.before) {
            sum = __dadd_rn(sum, of_long);
            met = false;
        }
        sum = __dadd_rn(sum, copied.value[product]);
    }
    return met ? __dadd_rn(sum, of_long) : sum;
}

/* Writes the row, which find_copied has found. */
template <typename V>
static __device__ void copy_row(const warp_job<V> &job, int row, wide_memory &memory, beside *own)
{
    enum { DEPTH = 2 };
    const copied_row &copied = *(copied_row *)memory.piece;
    int count;
    const int inserted = place_beside(job.product, row, memory, own, &count);
    const double weight = (double)job.product.a.values[job.product.a.offsets[row] + copied.element];
    const int32_t *cols = job.product.b.cols + copied.start;
    const V *values = job.product.b.values + copied.start;
    int32_t *c_cols = job.c_cols + job.offsets[row];
    V *c_values = job.c_values + job.offsets[row];
    int shift = 0; /* columns before the next entry that the long row lacks */
    int32_t next = inserted > 0 ? copied.place[0] : INT32_MAX;
    for (int base = threadIdx.x; base < copied.length; base += DEPTH * WIDE_THREADS) {
        int32_t col[DEPTH];
        V value[DEPTH];
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int i = min(base + u * WIDE_THREADS, copied.length - 1);
            col[u] = __ldg(cols + i);
            value[u] = __ldg(values + i);
        }
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int i = base + u * WIDE_THREADS;
            if (i >= copied.length) break;
            while (next <= i) next = ++shift < inserted ? copied.place[shift] : INT32_MAX;
            c_cols[i + shift] = col[u];
            c_values[i + shift] = (V)__dmul_rn(weight, (double)value[u]);
        }
    }
    __syncthreads();
    if (!own->first) return;
    const double of_long = own->met ? __dmul_rn(weight, (double)values[own->place]) : 0;
    c_cols[own->place + own->inserted] = copied.col[copied.by_column[threadIdx.x]];
    c_values[own->place + own->inserted] = (V)sum_beside(copied, (int)threadIdx.x, count, own->met, of_long);
}

/* ---- wide rows ------------------------------------------------------------------------------------------- */

/* Writes copied rows, the columns of the others, ascending, and lists their parts. */
template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WIDE_THREADS, WIDE_BLOCKS)
    write_wide(warp_job<V> job, int wide_words)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    wide_memory &memory = *(wide_memory *)table_memory;
    for (int row; (row = take_wide(job.totals, job.list, CLASS_WIDE, false, memory)) >= 0;) {
        int64_t lowest, highest, to = job.offsets[row];
        if constexpr (PLAIN) {
            beside own;
            if (find_copied(job.product, row, memory, &own)) {
                copy_row(job, row, memory, &own);
                continue;
            }
        }
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

/* Sums entries of C whose columns are known, by a warp; PART: they are a part of their row. */
template <bool PART, bool PLAIN, typename V, typename Table>
static __device__ __forceinline__ void sum_part(const warp_job<V> &job, const row_part &part,
                                                row_of_b<PLAIN, 1> *rows, Table &table)
{
    const int32_t *cols = job.c_cols + part.first;
    table.fill(cols, part.count);
    walk_row<PART>(job.product, part.row, cols[0], (int64_t)cols[part.count - 1] + 1, rows, table);
    for (int i = threadIdx.x & 31; job.c_values && i < part.count; i += 32)
        job.c_values[part.first + i] = (V)table.sums[i];
    __syncwarp();
}

template <typename V, bool PLAIN>
static __device__ __forceinline__ sorted_table<V, PLAIN>
own_sorted(const product_view<V> &product, unsigned char *memory, int entries, row_of_b<PLAIN, 1> **rows)
{
    unsigned char *own = memory + sorted_bytes<PLAIN>(entries) * (threadIdx.x / 32);
    *rows = (row_of_b<PLAIN, 1> *)own;
    double *sums = (double *)(*rows + 32);
    int32_t *keys = (int32_t *)(sums + entries);
    return {product, sums, keys, (uint16_t *)(keys + entries), buckets_for(entries), 0, 0};
}

/* Parts whose columns lie close together. */
template <typename V, bool PLAIN> static __global__ void __launch_bounds__(WARP_THREADS) sum_compact(warp_job<V> job)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    unsigned char *own = table_memory + rank_bytes<PLAIN>() * (threadIdx.x / 32);
    row_of_b<PLAIN, 1> *rows = (row_of_b<PLAIN, 1> *)own;
    uint2 *words = (uint2 *)(rows + 32);
    rank_table<V, PLAIN> table = {job.product, (double *)(words + RANKED_COLUMNS / 32), words, 0};
    const unsigned count = job.totals->compact;
    for (unsigned at = first_warp(); at < count; at += all_warps())
        sum_part<true, PLAIN>(job, job.parts[at], rows, table);
}

template <typename V, bool PLAIN>
static __global__ void __launch_bounds__(WARP_THREADS) sum_scattered(warp_job<V> job)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    row_of_b<PLAIN, 1> *rows;
    auto table = own_sorted<V, PLAIN>(job.product, table_memory, PART_ENTRIES, &rows);
    const unsigned count = job.totals->scattered;
    for (unsigned at = first_warp(); at < count; at += all_warps())
        sum_part<true, PLAIN>(job, job.parts[job.most_parts - 1 - at], rows, table);
}

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
    const class_rows own = rows_of(job.totals, job.list, CLASS_WIDE);
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) list_parts_of(job, own.rows[at]);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

static int wide_words(sp_context *context, int64_t cols)
{
    const size_t reserved = 1024; /* of a block's shared memory, by the driver */
    const bool fits = wide_bytes(WIDE_WORDS) + reserved <= cuda_state_of(context)->shared_limit;
    const int most = fits ? WIDE_WORDS : WIDE_WORDS / 2;
    int words = LEAST_WIDE_WORDS;
    while (words < most && words * 32ll < cols) words *= 2;
    return words;
}

/* The index of B for rows of C that are done in parts; run->index holds it. */
template <typename V> bucket_index index_of(const warp_run<V> *run)
{
    bucket_index index = {run->index.data, 1};
    while (1ll << index.bits < run->b->cols) index.bits++;
    return index;
}
template <typename V> sp_status index_columns(warp_run<V> *run, cudaStream_t stream)
{
    sp_context *context = run->context;
    const sp_csr *b = run->b;
    return launch_strided(context, fill_index, (b->rows * 8 + 255) / 256, stream, run->job.totals, b->rows,
                          b->row_offsets, b->col_indices, index_of(run), run->index.data);
}

/* A few wide rows look so little up that B need not be read for them: of webs, a hundred rows among a million. */
enum { INDEX_SHARE = 4096 };
template <typename V> bool index_pays(const warp_run<V> *run)
{
    return has_rows(run, CLASS_WIDE) &&
           run->known->members[CLASS_WIDE] * windows_of(run->b) * INDEX_SHARE >= run->b->nnz;
}
template <typename V> sp_status open_index(warp_run<V> *run)
{
    return run->index.allocate(run->context, run->b->nnz / 4 + run->b->rows + 1);
}

template <typename V, bool PLAIN> sp_status launch_wide_counts(warp_run<V> *run)
{
    const int words = wide_words(run->context, run->b->cols);
    const bool narrow = few_narrow(run);
    const int64_t rows = (narrow ? rows_in(run, CLASS_NARROW) + rows_in(run, CLASS_NARROWER) : 0) +
                         rows_in(run, CLASS_WIDE) + (run->far ? 0 : rows_in(run, CLASS_LONG));
    if (rows == 0) return SP_OK;
    return launch(run, count_wide<V, PLAIN>, WIDE_THREADS, wide_bytes(words), rows, ALONE, words,
                  narrow ? (int)CLASS_NARROW : (int)CLASS_WIDE, !run->far);
}

template <typename V, bool PLAIN, int WORDS> static sp_status launch_bits(warp_run<V> *run, int c, int stream)
{
    if (!has_rows(run, c)) return SP_OK;
    return launch_tables(run, count_narrow<V, PLAIN, WORDS>, narrow_bytes<PLAIN>(WORDS), rows_in(run, c), stream, c);
}

/* Dense rows, and a few narrow ones, others count. */
template <typename V, bool PLAIN> sp_status launch_narrow_counts(warp_run<V> *run)
{
    if (run->dense) return SP_OK;
    if (!few_narrow(run)) {
        CHECK((launch_bits<V, PLAIN, NARROW_WORDS>(run, CLASS_NARROW, 1)));
        CHECK((launch_bits<V, PLAIN, NARROWER_WORDS>(run, CLASS_NARROWER, 2)));
    }
    return launch_bits<V, PLAIN, NARROWER_WORDS>(run, CLASS_LOCAL, 3);
}

template <typename V, bool PLAIN> static sp_status launch_parts(warp_run<V> *run)
{
    CHECK(launch_tables(run, sum_compact<V, PLAIN>, rank_bytes<PLAIN>(), INT64_MAX, ALONE));
    return launch_tables(run, sum_scattered<V, PLAIN>, sorted_bytes<PLAIN>(PART_ENTRIES), INT64_MAX, ALONE);
}

template <typename V, bool PLAIN> sp_status launch_wide(warp_run<V> *run)
{
    const int words = wide_words(run->context, run->b->cols);
    if (!has_rows(run, CLASS_WIDE)) return SP_OK;
    CHECK(launch(run, write_wide<V, PLAIN>, WIDE_THREADS, wide_bytes(words), rows_in(run, CLASS_WIDE), ALONE, words));
    return run->job.c_values ? launch_parts<V, PLAIN>(run) : SP_OK;
}

/* Of wide rows and of those that tables would sum. */
template <typename V, bool PLAIN> sp_status launch_known(warp_run<V> *run)
{
    CHECK(launch(run, list_parts<V>, WIDE_THREADS, 0, INT64_MAX, ALONE));
    CHECK((launch_parts<V, PLAIN>(run)));
    for (int i = SUMMED_CLASSES - 1; i >= 0; i--) {
        const int entries = i + 1 < SUMMED_CLASSES ? LEAST_SLOTS / 2 << i : MOST_SUMMED;
        CHECK(launch_tables(run, sum_known<V, PLAIN>, sorted_bytes<PLAIN>(entries), INT64_MAX, i, CLASS_HASHED + i,
                            entries));
    }
    return SP_OK;
}

template sp_status launch_wide_counts<float, true>(warp_run<float> *);
template sp_status launch_wide_counts<float, false>(warp_run<float> *);
template sp_status launch_wide_counts<double, true>(warp_run<double> *);
template sp_status launch_wide_counts<double, false>(warp_run<double> *);
template sp_status launch_narrow_counts<float, true>(warp_run<float> *);
template sp_status launch_narrow_counts<float, false>(warp_run<float> *);
template sp_status launch_narrow_counts<double, true>(warp_run<double> *);
template sp_status launch_narrow_counts<double, false>(warp_run<double> *);
template sp_status launch_wide<float, true>(warp_run<float> *);
template sp_status launch_wide<float, false>(warp_run<float> *);
template sp_status launch_wide<double, true>(warp_run<double> *);
template sp_status launch_wide<double, false>(warp_run<double> *);
template sp_status launch_known<float, true>(warp_run<float> *);
template sp_status launch_known<float, false>(warp_run<float> *);
template sp_status launch_known<double, true>(warp_run<double> *);
template sp_status launch_known<double, false>(warp_run<double> *);
template bool index_pays(const warp_run<float> *);
template bool index_pays(const warp_run<double> *);
template sp_status open_index(warp_run<float> *);
template sp_status open_index(warp_run<double> *);
template bucket_index index_of(const warp_run<float> *);
template bucket_index index_of(const warp_run<double> *);
template sp_status index_columns(warp_run<float> *, cudaStream_t);
template sp_status index_columns(warp_run<double> *, cudaStream_t);
