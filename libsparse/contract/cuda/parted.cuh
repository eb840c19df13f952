/* Parted rows of a contraction: sums of f32 in wide rows of few columns, or of more than ROW_ENTRIES (near.cuh has the
 * others).
 *
 * A block takes PART entries of a row. Bits, their counts and sums lie in global memory. First the parts
 * write their entries to the stage, set the row's bits and find what its numbers have in common; a block a row
 * counts the bits, eight words at once. Then the parts add their entries to the cells of their columns, and another
 * kernel writes bits and sums as columns and values. An entry is written to the stage and read from there, 16 bytes,
 * reads 32 bytes of bits, and costs an atomic for its bit and one or two for its sum, in shared memory where a row
 * has few words of bits or few cells, else in the second-level cache. A row costs some 12 bytes a word of 32
 * columns, and 12 an entry that are cleared.
 *
 * Rows whose sums may not be exact are left to ordered.cu. */
#ifndef SPARSE_CUDA_CONTRACT_PARTED_CUH
#define SPARSE_CUDA_CONTRACT_PARTED_CUH

#include "contract/cuda/run.cuh"
#include "contract/cuda/summed.cuh"

enum { PART_ITEMS = 8, PART_THREADS = PART / PART_ITEMS, RANK_THREADS = 1024, WRITE_THREADS = 256 };
enum { COUNTED_WORDS = 8, ROW_WORDS = 128 }; /* of bits: counted at once; a row's are a multiple of this many */
enum { NEAR_WORDS = 2048, NEAR_CELLS = PART / 2 }; /* of a row, which its parts gather in shared memory first */
enum { MANY_SLICES = 512, SLICES = 8 }; /* of 32 words: of a row; a warp writes this many in turn */

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

using part_row = summed_row<PART_THREADS, PART_ITEMS, false>; /* for its reading of entries */

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
    const contract_args<float> &job = row.job;
    const uint2 part = job.parts[i];
    const unsigned at = part.x + job.totals->wide_long;
    row.p = rows_of(job, WIDE_ROWS).rows[at];
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
    mark_parts(contract_args<float> job, parted_rows rows)
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

/* Leaves a row to be summed again, for a thread; not while blocks with barriers look at its class. */
static __device__ __forceinline__ void leave_row(const contract_args<float> &job, unsigned at)
{
    const int32_t p = rows_of(job, WIDE_ROWS).rows[at];
    job.classes[p] = WIDE_ROWS;
    atomicAdd(&job.totals->inexact_stage, (unsigned long long)(job.ranges[p].end - job.ranges[p].begin));
    leave_row(job, WIDE_ROWS, (int32_t)at);
}

static __device__ __forceinline__ int bits_of(uint4 words)
{
    return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}

/* Counts bits, a block a row. Rows that are to be summed lose their class. */
static __global__ void __launch_bounds__(RANK_THREADS) rank_parts(contract_args<float> job, parted_rows rows)
{
    __shared__ uint64_t scratch[RANK_THREADS / 32];
    const class_rows own = rows_of(job, WIDE_ROWS);
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
        if (exact) job.classes[p] = NO_ENTRIES;
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
    sum_parts(contract_args<float> job, parted_rows rows)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    unsigned long long *near = (unsigned long long *)row_memory;
    uint32_t *near_counts = (uint32_t *)(near + NEAR_CELLS);
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = job.parts[i].x + job.totals->wide_long;
        const int32_t p = rows_of(job, WIDE_ROWS).rows[at];
        if (job.classes[p] == WIDE_ROWS) continue;
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

/* Cells of the other rows to the stage, a warp some slices of 32 words. */
static __global__ void __launch_bounds__(WRITE_THREADS) write_parts(contract_args<float> job, parted_rows rows)
{
    const class_rows own = rows_of(job, WIDE_ROWS);
    const int lane = threadIdx.x & 31, each = 32 * (rows.words >= 32 * MANY_SLICES ? SLICES : 1);
    const int64_t slices = (rows.words + each - 1) / each, step = (int64_t)gridDim.x * WRITE_THREADS / 32;
    for (int64_t i = ((int64_t)blockIdx.x * WRITE_THREADS + threadIdx.x) / 32; i < own.count * slices; i += step) {
        const unsigned at = (unsigned)(i / slices);
        const int32_t p = own.rows[at];
        const stage_range range = job.ranges[p];
        const int64_t length = range.end - range.begin, begin = (i - at * slices) * each;
        const int cells = job.lengths[p];
        const sum_units units = units_of_row(rows.spans[at], length, cells);
        const bool is_left = job.classes[p] == WIDE_ROWS; /* which another warp may say at any time */
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
