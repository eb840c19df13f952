/* Wide rows of a contraction: sums of f32 in rows of more entries than a block's registers hold.
 *
 * Near rows, of up to ROW_ENTRIES and of many columns, are a block's each, in one kernel: entries, columns replaced
 * by labels, go to memory that the second-level cache holds while it works on them. Columns, a window of them at
 * once, have a bit each in shared memory; sums, as integers, and columns of as many cells as there is room for lie
 * there, too. An entry is written once, 8 bytes, and read once or twice for each window; it costs an atomic for its
 * bit and one or two for its sum.
 *
 * Others are parted, a block every PART entries. Bits, their counts and sums lie in global memory. First the parts
 * write their entries to the stage, set the row's bits and find what its numbers have in common; a block a row
 * counts the bits, eight words at once. Then the parts add their entries to the cells of their columns, and another
 * kernel writes bits and sums as columns and values. An entry is written to the stage and read from there, 16 bytes,
 * reads 32 bytes of bits, and costs an atomic for its bit and one or two for its sum, in shared memory where a row
 * has few words of bits or few cells, else in the second-level cache. A row costs some 12 bytes a word of 32
 * columns, and 12 an entry that are cleared.
 *
 * Rows whose sums may not be exact are left to ranked_rows. */
#ifndef SPARSE_CUDA_CONTRACT_PARTED_CUH
#define SPARSE_CUDA_CONTRACT_PARTED_CUH

#include "contract/cuda/run.cuh"
#include "contract/cuda/summed.cuh"

enum { PART_ITEMS = 8, PART_THREADS = PART / PART_ITEMS, RANK_THREADS = 1024, WRITE_THREADS = 256 };
enum { COUNTED_WORDS = 8, ROW_WORDS = 128 }; /* of bits: counted at once; a row's are a multiple of so many */
enum { NEAR_WORDS = 2048, NEAR_CELLS = PART / 2 }; /* of a row, which its parts gather in shared memory first */
/* Of a row that one block sums: entries at most, words of bits at once, bytes a cell, bytes of shared memory that are
 * kept for what is static. */
enum { ROW_ENTRIES = 3 << 16, NEAR_WINDOW = 16384, NEAR_BYTES = 12, NEAR_STATIC = 4096 };
/* Up to so many columns rows get less shared memory than a block could have, and labels more cache: R-MAT 22 with 1 %
 * groups takes 3 % less. With more columns, cells would need several turns beside the bits: 5 to 10 % more. */
enum { NEAR_FEW = 65536, NEAR_SHARED = 128 << 10 };
enum { NEAR_COLUMNS = 8192 }; /* rows of fewer are parted: 3 % faster with 3,146 */
enum { MANY_SLICES = 512, SLICES = 8 }; /* of 32 words: of a row, of which a warp writes so many in turn */

/* Blocks a multiprocessor: most of a part's time is waiting for its first entries. */
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890)
#define PART_BLOCKS 1
#else
#define PART_BLOCKS 2
#endif

/* The span of a row's numbers, to be raised from zero. */
struct parted_span {
    uint32_t above, highest, signs; /* ~lowest */
    int late;                       /* a sum has wrapped: 1; the row is left: 2 */
};

using part_row = summed_row<PART_THREADS, PART_ITEMS, false>; /* of which the reading of entries is used */

/* Cells of few columns have many entries each. */
static __device__ __forceinline__ sum_units units_of_row(const parted_span &span, int64_t length, int cells)
{
    return {~span.above, span.highest, span.signs, length, cells <= NEAR_CELLS};
}

/* Whether the entries of cells are counted, since the row's length would make too many late. */
static __device__ __forceinline__ bool are_counted(const sum_units &units, int cells)
{
    return !units.sure && (cells <= NEAR_CELLS || units.rounded);
}

/* A part's entries, in a block; its row's place in the list. */
static __device__ __forceinline__ unsigned open_part(part_row &row, unsigned i)
{
    __shared__ int32_t found;
    const contract_job<float> &job = row.job;
    const uint2 part = job.parts[i];
    const unsigned at = part.x + job.totals->wide_long;
    row.p = rows_of(job, WIDE).rows[at];
    const stage_range range = job.ranges[row.p];
    int32_t node = job.firsts[row.p];
    const int64_t begin = range.begin + (int64_t)part.y * PART;
    row.begin = (uint32_t)begin;
    row.length = (int)min((int64_t)PART, range.end - begin);
    __syncthreads();
    row.reset();
    if (threadIdx.x < 32) {
        const int32_t first = node;
        node += (int32_t)last_item(job.nodes - first, begin, [&](int64_t k) { return node_start(job, first + k, 0); });
        if (threadIdx.x == 0) found = node;
    }
    __syncthreads();
    node = found;
    row.start(node, part_row::node_of(job, node + (int64_t)threadIdx.x));
    return at;
}

/* Sets the bits of a part's columns: in shared memory, from where words go to the row's, or at once. */
static __device__ __forceinline__ void mark_columns(const part_row &row, uint32_t *bits, int64_t words)
{
    uint32_t *near = (uint32_t *)row.more;
    const bool gathers = words <= NEAR_WORDS;
    uint32_t *to = gathers ? near : bits;
    bool loops = false;
    if (gathers) {
        __syncthreads(); /* sources have been read */
        for (int w = threadIdx.x; w < words; w += PART_THREADS) near[w] = 0;
        __syncthreads();
    }
#pragma unroll
    for (int u = 0; u < PART_ITEMS; u++) {
        if (row.col[u] == row.p) loops = true;
        else if (row.col[u] != EMPTY) atomicOr(to + row.col[u] / 32, 1u << (row.col[u] % 32));
    }
    if (__any_sync(FULL_WARP, loops) && (threadIdx.x & 31) == 0) atomicOr(to + row.p / 32, 1u << (row.p % 32));
    if (!gathers) return;
    __syncthreads();
    for (int w = threadIdx.x; w < words; w += PART_THREADS)
        if (near[w]) atomicOr(bits + w, near[w]);
}

/* Entries to the stage, bits, spans. */
static __global__ void __launch_bounds__(PART_THREADS, PART_BLOCKS)
    mark_parts(contract_job<float> job, parted_rows rows)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    __shared__ part_row::memory memory;
    part_row row = {job, memory, NULL, NULL, NULL, NULL, (unsigned long long *)row_memory,
                    (uint2 *)row_memory};
    unsigned long long kept = 0;
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = open_part(row, i);
        bool minus_zero = false;
        row.gather();
        row.measure();
        kept += (unsigned)__popc(row.kept);
        const int first = threadIdx.x / 32 * (32 * PART_ITEMS) + (threadIdx.x & 31);
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            if (first + 32 * u >= row.length) continue;
            job.cols[row.begin + first + 32 * u] = row.col[u];
            job.values[row.begin + first + 32 * u] = row.value[u];
            minus_zero = minus_zero || (row.col[u] != EMPTY && __float_as_uint(row.value[u]) == 0x80000000u);
        }
        if (minus_zero) atomicMax(&memory.highest, UINT32_MAX);
        mark_columns(row, rows.bits + at * rows.words, rows.words);
        __syncthreads();
        if (threadIdx.x != 0) continue;
        parted_span *span = rows.spans + at;
        atomicMax(&span->above, ~memory.lowest);
        atomicMax(&span->highest, memory.highest);
        if (memory.signs) atomicOr(&span->signs, memory.signs);
    }
    add_entries(job.totals, kept);
}

/* Leaves a row to ranked_rows, for a thread; not while blocks with barriers look at its class. */
static __device__ __forceinline__ void leave_row(const contract_job<float> &job, unsigned at)
{
    job.classes[rows_of(job, WIDE).rows[at]] = WIDE;
    leave_row(job, WIDE, (int32_t)at);
}

static __device__ __forceinline__ int bits_of(uint4 words)
{
    return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}

/* Counts bits, a block a row. Rows that are to be summed lose their class. */
static __global__ void __launch_bounds__(RANK_THREADS) rank_parts(contract_job<float> job, parted_rows rows)
{
    __shared__ uint64_t scratch[RANK_THREADS / 32];
    const class_rows own = rows_of(job, WIDE);
    const int64_t counted = rows.words / COUNTED_WORDS;
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) {
        const int32_t p = own.rows[at];
        const int64_t length = job.ranges[p].end - job.ranges[p].begin;
        if (length <= job.near) continue;
        const uint4 *bits = (const uint4 *)(rows.bits + at * rows.words);
        int done = 0;
        for (int64_t first = 0; first < counted; first += RANK_THREADS) {
            const int64_t w = first + threadIdx.x;
            int total;
            const int count = w < counted ? bits_of(bits[2 * w]) + bits_of(bits[2 * w + 1]) : 0;
            const int from = done + (int)block_scan<RANK_THREADS>(count, &total, scratch);
            if (w < counted) rows.before[at * counted + w] = (uint32_t)from;
            done += total;
        }
        if (threadIdx.x != 0) continue;
        const bool exact = units_of_row(rows.spans[at], length, done).exact;
        job.lengths[p] = done;
        if (exact) job.classes[p] = IDLE;
        else leave_row(job, at);
    }
}

/* The bits before a column: those before its eight words, and those of these. */
static __device__ __forceinline__ uint32_t part_cell(const uint32_t *bits, const uint32_t *before, int32_t col)
{
    const uint32_t own = (uint32_t)col / 32 % COUNTED_WORDS, mask = (1u << (col % 32)) - 1;
    const uint4 *words = (const uint4 *)bits + (uint32_t)col / (32 * COUNTED_WORDS) * 2;
    const uint4 low = __ldg(words), high = __ldg(words + 1);
    const auto part = [&](uint32_t word, uint32_t i) {
        return (uint32_t)__popc(i < own ? word : i == own ? word & mask : 0);
    };
    return __ldg(before + (uint32_t)col / (32 * COUNTED_WORDS)) + part(low.x, 0) + part(low.y, 1) + part(low.z, 2) +
           part(low.w, 3) + part(high.x, 4) + part(high.y, 5) + part(high.z, 6) + part(high.w, 7);
}

/* Adds the parts' entries to the cells of their columns. */
static __global__ void __launch_bounds__(PART_THREADS, PART_BLOCKS)
    sum_parts(contract_job<float> job, parted_rows rows)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    unsigned long long *near = (unsigned long long *)row_memory;
    uint32_t *near_counts = (uint32_t *)(near + NEAR_CELLS);
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = job.parts[i].x + job.totals->wide_long;
        const int32_t p = rows_of(job, WIDE).rows[at];
        if (job.classes[p] == WIDE) continue;
        const stage_range range = job.ranges[p];
        const int64_t begin = range.begin + (int64_t)job.parts[i].y * PART;
        const int length = (int)min((int64_t)PART, range.end - begin), cells = job.lengths[p];
        const uint32_t *bits = rows.bits + at * rows.words, *before = rows.before + at * (rows.words / COUNTED_WORDS);
        const bool few = cells <= NEAR_CELLS;
        const sum_units units = units_of_row(rows.spans[at], range.end - range.begin, cells);
        const bool counted = are_counted(units, cells);
        unsigned long long *sums = rows.sums + job.cells_of[at], loops = 0;
        uint32_t *counts = rows.counts + job.cells_of[at], loop_count = 0;
        bool wrapped = false, flags = false; /* of loops */
        const auto add = [&](uint32_t cell, unsigned long long state, uint32_t count) {
            if (!units.can_wrap) atomicAdd(sums + cell, state);
            else wrapped = atomicAdd(sums + cell, state) + state < state || wrapped;
            if (counted) atomicAdd(counts + cell, count);
        };
        int32_t col[PART_ITEMS];
        float value[PART_ITEMS];
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            const int from = u * PART_THREADS + (int)threadIdx.x;
            col[u] = from < length ? __ldcs(job.cols + begin + from) : EMPTY;
            value[u] = from < length ? __ldcs(job.values + begin + from) : 0;
        }
        if (few) {
            __syncthreads(); /* the part before is done with */
            for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS) {
                near[cell] = 0;
                near_counts[cell] = 0;
            }
            __syncthreads();
        }
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            if (col[u] == EMPTY) continue;
            const unsigned long long state = units.of(value[u]);
            if (col[u] == p) {
                loops += state;
                loop_count++;
                flags = flags || units.flags(value[u]);
                continue;
            }
            const uint32_t cell = part_cell(bits, before, col[u]);
            if (!few) {
                add(cell, state, 1);
                continue;
            }
            add_shared(near + cell, state);
            if (units.flags(value[u])) flag_shared(near + cell);
            if (counted) atomicAdd(near_counts + cell, 1u);
        }
        for (int step = 16; step > 0; step /= 2) loops += __shfl_xor_sync(FULL_WARP, loops, step);
        loop_count = warp_add(loop_count);
        flags = __any_sync(FULL_WARP, flags);
        if ((threadIdx.x & 31) == 0 && loop_count) {
            const uint32_t cell = part_cell(bits, before, p);
            add(cell, loops, loop_count);
            if (flags) atomicOr(sums + cell, 1ull << 63);
        }
        if (few) {
            __syncthreads();
            for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS) {
                const unsigned long long state = near[cell], sum = units.sum_of(state);
                if (state || near_counts[cell]) add((uint32_t)cell, sum, near_counts[cell]);
                if (state != sum) atomicOr(sums + cell, 1ull << 63);
            }
        }
        if (wrapped) rows.spans[at].late = 1;
    }
}

/* Cells of 32 words of bits, one a lane, for a warp: calls put(cell, column). Where they have few bits a lane goes
 * through those of its word, else the lanes through a word's, one word after another. */
template <typename Put>
static __device__ __forceinline__ void each_cell(uint32_t word, uint32_t before, int64_t first, Put put)
{
    const int lane = threadIdx.x & 31, count = __popc(word);
    const unsigned used = __ballot_sync(FULL_WARP, count > 0);
    if (!used) return;
    int upto = count;
#pragma unroll
    for (int over = 1; over < 32; over *= 2) {
        const int other = __shfl_up_sync(FULL_WARP, upto, over);
        if (lane >= over) upto += other;
    }
    int cell = (int)before + upto - count;
    if ((int)warp_max((unsigned)count) < __popc(used)) {
        for (uint32_t left = word; left; left &= left - 1)
            put(cell++, (int32_t)(first + lane) * 32 + __ffs((int)left) - 1);
        __syncwarp();
        return;
    }
#pragma unroll 4
    for (int j = 0; j < 32; j++) {
        const uint32_t bits = __shfl_sync(FULL_WARP, word, j);
        const int from = __shfl_sync(FULL_WARP, cell, j);
        if (bits >> lane & 1) put(from + __popc(bits & lanes_below()), (int32_t)(first + j) * 32 + lane);
    }
}

/* Rows that a block each sums: a window's words of bits, and so many of its cells at once. */
struct near_table {
    int words, cells;
};
static __host__ __device__ constexpr size_t near_bytes(near_table table)
{
    return (size_t)table.cells * NEAR_BYTES + (size_t)table.words * (sizeof(uint32_t) + sizeof(uint16_t));
}

/* The nodes of a row, of so many entries at once: where they begin among them, how many before each 32, and by
 * summed_row.list where their entries lie in G. */
struct node_list {
    int entries;
    uint32_t *begins, *sources;
    uint16_t *before; /* as summed_row.count has it */

    /* In the memory of a row's cells: 4.2 bytes an entry. */
    __device__ __forceinline__ node_list(near_table table, void *memory)
    {
        entries = table.cells * NEAR_BYTES * 4 / 17 / (32 * WORD_STEP) * (32 * WORD_STEP);
        begins = (uint32_t *)memory;
        sources = begins + entries / 32;
        before = (uint16_t *)(sources + entries);
    }
    static __device__ __forceinline__ int words_of(int count)
    {
        return (count + 32 * WORD_STEP - 1) / (32 * WORD_STEP) * WORD_STEP;
    }
};

struct near_row {
    const contract_job<float> &job;
    part_row &part;
    near_table table;
    int32_t p;
    stage_range range;
    int64_t length;
    uint2 *entries; /* where cells of wide rows lie else: labels and values */

    /* One window does for all columns. */
    __device__ __forceinline__ bool is_whole() const { return job.columns <= (int64_t)table.words * 32; }
    /* Sets bits of columns from `low` on; loops, of which there may be many, only once a warp. */
    template <int N> __device__ __forceinline__ void set_bits(const int32_t (&col)[N], int64_t low)
    {
        bool loops = false;
#pragma unroll
        for (int u = 0; u < N; u++) {
            const uint32_t at = (uint32_t)col[u] - (uint32_t)low;
            if (col[u] == EMPTY || at >= (uint32_t)table.words * 32) continue;
            if (col[u] == p) loops = true;
            else atomicOr(part.bits + at / 32, 1u << (at % 32));
        }
        if (__any_sync(FULL_WARP, loops) && (threadIdx.x & 31) == 0)
            atomicOr(part.bits + (p - low) / 32, 1u << ((p - low) % 32));
    }
    /* Lists the nodes of `count` entries of the stage from `begin` on, of which `node` has the first; counts those that
     * begin before each word of bits, and returns how many do; *base as in part.cells_before. */
    __device__ __forceinline__ int list(const node_list &nodes, int64_t begin, int count, int64_t node, uint32_t *base)
    {
        const int words = nodes.words_of(count);
        int begun;
        __syncthreads(); /* the memory is another's no more */
        part.clear(nodes.begins, words);
        __syncthreads();
        part.list(nodes.sources, nodes.begins, (uint32_t)begin, count, node, part_row::node_of(job, node + threadIdx.x));
        __syncthreads();
        part.count(nodes.begins, nodes.before, words);
        __syncthreads();
        *base = part.cells_before(&begun);
        return begun;
    }
    /* All entries, under the labels of their columns, and their span; as much of the row at once as its nodes have room
     * for where cells will lie. Returns how many of the thread's are not left out. */
    __device__ __forceinline__ unsigned gather(int64_t node, void *memory)
    {
        const int lane = threadIdx.x & 31;
        const uint32_t upto = lanes_below() * 2 + 1;
        const node_list nodes(table, memory);
        uint32_t least = UINT32_MAX, most = 0, sign = 0, base;
        unsigned kept = 0;
        part.p = p;
        if (threadIdx.x == 0) {
            part.shared.lowest = UINT32_MAX;
            part.shared.highest = part.shared.signs = 0;
        }
        if (is_whole()) part.clear(part.bits, table.words);
        for (int64_t begin = range.begin; begin < range.end; begin += nodes.entries) {
            const int count = (int)min((int64_t)nodes.entries, range.end - begin);
            const int begun = list(nodes, begin, count, node, &base), shift = part_row::shift_of(nodes.words_of(count));
            for (int from = threadIdx.x / 32 * (32 * PART_ITEMS); from < count; from += PART) {
                uint2 *to = entries + (begin - range.begin) + from + lane;
                const int left = count - from - lane;
                uint32_t at[PART_ITEMS];
#pragma unroll
                for (int u = 0; u < PART_ITEMS; u++) {
                    const int word = from / 32 + u;
                    const uint32_t before = __shfl_sync(FULL_WARP, base, word >> shift) + nodes.before[word];
                    at[u] = nodes.sources[before + __popc(nodes.begins[word] & upto) - 1] +
                            (uint32_t)(from + 32 * u + lane);
                }
                part.fetch(at, left);
                kept += (unsigned)__popc(part.kept);
#pragma unroll
                for (int u = 0; u < PART_ITEMS; u++) {
                    const uint32_t number = __float_as_uint(part.value[u]), magnitude = number & 0x7fffffffu;
                    least = min(least, magnitude - 1);
                    most = max(most, number == 0x80000000u ? UINT32_MAX : magnitude); /* -0 is left to ranked_rows */
                    sign |= number;
                    if (32 * u < left) to[32 * u] = make_uint2((uint32_t)part.col[u], number);
                }
                if (is_whole()) set_bits(part.col, 0);
            }
            if (job.whole) continue;
            node += begun;
            if (node >= job.nodes || node_start(job, node, begin) > nodes.entries) node--; /* goes on after these */
        }
        least = ~warp_max(~least);
        most = warp_max(most);
        sign = warp_or(sign);
        if (lane == 0) {
            atomicMin(&part.shared.lowest, least);
            atomicMax(&part.shared.highest, most);
            atomicOr(&part.shared.signs, sign);
        }
        __syncthreads();
        return kept;
    }
    /* So many entries of a thread. */
    __device__ __forceinline__ void load(int64_t first, int32_t (&col)[PART_ITEMS], float (&value)[PART_ITEMS]) const
    {
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            const int64_t from = first + u * PART_THREADS;
            const uint2 entry = from < length ? entries[from] : make_uint2((uint32_t)EMPTY, 0);
            col[u] = (int32_t)entry.x;
            value[u] = __uint_as_float(entry.y);
        }
    }
    /* Counts the bits of a window; *base as in part.cells_before. */
    __device__ __forceinline__ int count(int64_t low, uint32_t *base)
    {
        int found;
        if (!is_whole()) {
            __syncthreads(); /* the window before is done with */
            part.clear(part.bits, table.words);
            __syncthreads();
            for (int64_t first = threadIdx.x; first - threadIdx.x < length; first += PART) {
                int32_t col[PART_ITEMS];
                float value[PART_ITEMS];
                load(first, col, value);
                set_bits(col, low);
            }
        }
        __syncthreads();
        part.count(part.bits, part.before, table.words);
        __syncthreads();
        *base = part.cells_before(&found);
        return found;
    }
    /* Adds up cells from `from` on, `count` of them, of a window. */
    __device__ __forceinline__ void add(int64_t low, uint32_t base, int from, int cells, const sum_units &units,
                                        unsigned long long *sums, int32_t *cols, uint32_t *counts)
    {
        unsigned long long loops = 0;
        uint32_t loop_count = 0;
        bool flags = false; /* of loops */
        const auto put = [&](int cell, int32_t column, unsigned long long state, uint32_t count, bool flag) {
            if ((unsigned)cell >= (unsigned)cells) return;
            cols[cell] = column;
            add_shared(sums + cell, state);
            if (flag) flag_shared(sums + cell);
            if (counts) atomicAdd(counts + cell, count);
        };
        for (int64_t first = threadIdx.x; first - threadIdx.x < length; first += PART) {
            int32_t col[PART_ITEMS];
            float value[PART_ITEMS];
            int cell[PART_ITEMS];
            load(first, col, value);
#pragma unroll
            for (int u = 0; u < PART_ITEMS; u++) {
                const uint32_t at = (uint32_t)col[u] - (uint32_t)low;
                const bool inside = col[u] != EMPTY && at < (uint32_t)table.words * 32;
                cell[u] = part.cell_of(inside ? at : 0, base) - from;
                if (!inside) col[u] = EMPTY;
            }
#pragma unroll
            for (int u = 0; u < PART_ITEMS; u++) {
                if (col[u] == EMPTY) continue;
                if (col[u] != p) {
                    put(cell[u], col[u], units.of(value[u]), 1, units.flags(value[u]));
                    continue;
                }
                loops += units.of(value[u]);
                loop_count++;
                flags = flags || units.flags(value[u]);
            }
        }
        loop_count = warp_add(loop_count);
        if (loop_count == 0) return;
        for (int step = 16; step > 0; step /= 2) loops += __shfl_xor_sync(FULL_WARP, loops, step);
        flags = __any_sync(FULL_WARP, flags);
        const int cell = part.cell_of((uint32_t)(p - low), base) - from;
        if ((threadIdx.x & 31) == 0) put(cell, p, loops, loop_count, flags);
    }
};

/* Sums rows of up to job.near entries. */
static __global__ void __launch_bounds__(PART_THREADS, 1) near_rows(contract_job<float> job, near_table table)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    __shared__ part_row::memory memory;
    unsigned long long *sums = (unsigned long long *)row_memory;
    int32_t *cols = (int32_t *)(sums + table.cells);
    uint32_t *bits = (uint32_t *)(cols + table.cells);
    uint16_t *before = (uint16_t *)(bits + table.words);
    part_row part = {job, memory, bits, NULL, before, NULL, sums};
    const class_rows own = rows_of(job, WIDE);
    unsigned long long kept = 0;
    part.words.fine = table.words;
    const auto look_ahead = [&] {
        const unsigned at = atomicAdd(job.totals->drawn + WIDE, 1u);
        memory.drawn = at;
        part.look_ahead(at < own.count ? __ldg(own.rows + at) : -1);
    };
    if (threadIdx.x == 0) {
        look_ahead();
        __pipeline_wait_prior(0);
    }
    __syncthreads();
    while (memory.p >= 0) {
        const unsigned at = memory.drawn;
        const int32_t p = memory.p, first = memory.first;
        const stage_range range = memory.range;
        near_row row = {job, part, table, p, range, range.end - range.begin, (uint2 *)(job.cells + job.cells_of[at])};
        __syncthreads();
        if (threadIdx.x == 0) look_ahead();
        if (row.length > job.near) {
            if (threadIdx.x == 0) __pipeline_wait_prior(0);
            __syncthreads();
            continue;
        }
        kept += row.gather(first, row_memory);
        const sum_units units(memory.lowest, memory.highest, memory.signs, row.length, true);
        int64_t begin = range.begin;
        bool late = !units.exact;
        for (int64_t low = 0; low < job.columns && units.exact; low += (int64_t)table.words * 32) {
            uint32_t base;
            const int found = row.count(low, &base);
            uint32_t *counts = units.sure || found > NEAR_CELLS ? NULL : (uint32_t *)(sums + NEAR_CELLS);
            late = late || (!counts && units.rounded && !units.sure);
            for (int from = 0; from < found; from += table.cells) {
                const int cells = min(found - from, table.cells);
                __syncthreads(); /* those before have been written */
                for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS) {
                    sums[cell] = 0;
                    if (counts) counts[cell] = 0;
                }
                __syncthreads();
                row.add(low, base, from, cells, units, sums, cols, counts);
                __syncthreads();
                for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS) {
                    const unsigned long long state = sums[cell];
                    const int32_t column = cols[cell];
                    late = late || units.is_late(state, counts ? (int64_t)counts[cell] : row.length);
                    job.cols[begin + from + cell] = column;
                    job.values[begin + from + cell] =
                        (float)cell_value(job.operation, units.number_of(state), 1, column == p);
                }
            }
            begin += found;
        }
        if (threadIdx.x == 0) __pipeline_wait_prior(0);
        late = __syncthreads_or(late);
        if (threadIdx.x != 0) continue;
        job.lengths[p] = (int32_t)(begin - range.begin);
        if (late) leave_row(job, at);
        else job.classes[p] = IDLE;
    }
    add_entries(job.totals, kept);
}

/* Cells of the other rows to the stage, a warp some slices of 32 words. */
static __global__ void __launch_bounds__(WRITE_THREADS) write_parts(contract_job<float> job, parted_rows rows)
{
    const class_rows own = rows_of(job, WIDE);
    const int lane = threadIdx.x & 31, each = 32 * (rows.words >= 32 * MANY_SLICES ? SLICES : 1);
    const int64_t slices = (rows.words + each - 1) / each, step = (int64_t)gridDim.x * WRITE_THREADS / 32;
    for (int64_t i = ((int64_t)blockIdx.x * WRITE_THREADS + threadIdx.x) / 32; i < own.count * slices; i += step) {
        const unsigned at = (unsigned)(i / slices);
        const int32_t p = own.rows[at];
        const stage_range range = job.ranges[p];
        const int64_t length = range.end - range.begin, begin = (i - at * slices) * each;
        const int cells = job.lengths[p];
        const sum_units units = units_of_row(rows.spans[at], length, cells);
        const bool is_left = job.classes[p] == WIDE; /* which another warp may say at any time */
        if (length <= job.near || __any_sync(FULL_WARP, is_left)) continue;
        const bool counted = are_counted(units, cells);
        const unsigned long long *sums = rows.sums + job.cells_of[at];
        const uint32_t *counts = rows.counts + job.cells_of[at];
        bool late = rows.spans[at].late == 1;
        for (int64_t first = begin; first < min(begin + each, rows.words); first += 32)
            each_cell(rows.bits[at * rows.words + first + lane],
                      rows.before[(at * rows.words + first) / COUNTED_WORDS], first, [&](int cell, int32_t column) {
                          const unsigned long long state = __ldg(sums + cell);
                          late = late || units.is_late(state, counted ? (int64_t)__ldg(counts + cell) : length);
                          job.cols[range.begin + cell] = column;
                          job.values[range.begin + cell] =
                              (float)cell_value(job.operation, units.number_of(state), 1, column == p);
                      });
        if (late && atomicExch(&rows.spans[at].late, 2) != 2) leave_row(job, at);
    }
}

#endif
