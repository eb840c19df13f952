/* Parted rows of a contraction: sums of f32 in rows so long that one block would take too long, a block every PART
 * entries.
 *
 * Bits, their counts and sums lie in global memory. Four kernels: the parts set the row's bits and find what its
 * numbers have in common; a block a row counts the bits; the parts add their entries, as integers, to the cells of
 * their columns, where a part has few cells in shared memory first; the words of bits and their sums are written as
 * columns and values. Rows whose sums may not be exact are left to ranked_rows.
 *
 * An entry is read twice, with its label, and costs an atomic in the second-level cache, or shared memory; a row
 * costs 8 bytes a word of 32 columns, and 8 a cell. */
#ifndef SPARSE_CUDA_CONTRACT_PARTED_CUH
#define SPARSE_CUDA_CONTRACT_PARTED_CUH

#include "contract_summed.cuh"

enum { PART_ITEMS = 8, PART_THREADS = PART / PART_ITEMS, RANK_THREADS = 1024, WRITE_THREADS = 256, WRITE_SLICES = 8 };

/* The span of a row's numbers, to be raised from zero. */
struct parted_span {
    uint32_t above, highest, signs; /* ~lowest */
    int late;
};

/* Wide rows, in the order of their list. */
struct parted_rows {
    uint32_t *bits, *before; /* `words` a row */
    unsigned long long *sums; /* as cells_of */
    parted_span *spans;
    int64_t words; /* a multiple of 4 */
};

using part_row = summed_row<PART_THREADS, PART_ITEMS, false>; /* of which the reading of entries is used */

static __device__ __forceinline__ sum_units units_of_row(const parted_span &span, int64_t length)
{
    return {~span.above, span.highest, span.signs, length};
}

/* A part's entries, in a block; its row's place in the list. */
static __device__ __forceinline__ unsigned open_part(part_row &row, unsigned i)
{
    __shared__ int64_t found;
    const contract_job<float> &job = row.job;
    const uint2 part = job.parts[i];
    row.p = rows_of(job, WIDE).rows[part.x];
    const stage_range range = job.ranges[row.p];
    const int64_t first = job.firsts[row.p];
    row.begin = range.begin + (int64_t)part.y * PART;
    row.length = (int)min((int64_t)PART, range.end - row.begin);
    __syncthreads();
    if (threadIdx.x < 32) {
        const int64_t last = last_start(job.starts + first, job.nodes - first, row.begin);
        if (threadIdx.x == 0) found = first + last;
    }
    __syncthreads();
    row.start(found);
    return part.x;
}

/* What a block of the kernels below holds. */
#define PART_ROW(row)                                                             \
    extern __shared__ __align__(16) unsigned char row_memory[];                   \
    __shared__ part_row::memory memory;                                           \
    part_row row = {job, memory, NULL, NULL, NULL, NULL, (unsigned long long *)row_memory}

/* Sets bits; a grid of at most totals->parts blocks. */
static __global__ void __launch_bounds__(PART_THREADS) mark_parts(contract_job<float> job, parted_rows rows)
{
    PART_ROW(row);
    unsigned long long kept = 0;
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = open_part(row, i);
        uint32_t *bits = rows.bits + at * rows.words;
        bool minus_zero = false;
        kept += row.gather();
        row.measure();
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            if (row.col[u] == EMPTY) continue;
            uint32_t *word = bits + row.col[u] / 32;
            const uint32_t bit = 1u << (row.col[u] % 32);
            if (!(__ldcg(word) & bit)) atomicOr(word, bit);
            minus_zero = minus_zero || __float_as_uint(row.value[u]) == 0x80000000u;
        }
        if (minus_zero) atomicMax(&memory.highest, UINT32_MAX);
        __syncthreads();
        if (threadIdx.x != 0) continue;
        parted_span *span = rows.spans + at;
        atomicMax(&span->above, ~memory.lowest);
        atomicMax(&span->highest, memory.highest);
        if (memory.signs) atomicOr(&span->signs, memory.signs);
    }
    add_entries(job.totals, kept);
}

/* Leaves a row to ranked_rows, for a thread. */
static __device__ __forceinline__ void leave_row(const contract_job<float> &job, unsigned at)
{
    job.inexact[first_of_class(job.totals, WIDE) + atomicAdd(job.totals->inexact + WIDE, 1u)] = (int32_t)at;
}

/* Counts bits, a block a row. Rows that are to be summed lose their class. */
static __global__ void __launch_bounds__(RANK_THREADS) rank_parts(contract_job<float> job, parted_rows rows)
{
    __shared__ uint64_t scratch[RANK_THREADS / 32];
    const class_rows own = rows_of(job, WIDE);
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) {
        const int32_t p = own.rows[at];
        const uint4 *bits = (const uint4 *)(rows.bits + at * rows.words);
        uint4 *before = (uint4 *)(rows.before + at * rows.words);
        int done = 0;
        for (int64_t first = 0; first < rows.words / 4; first += RANK_THREADS) {
            const int64_t w = first + threadIdx.x;
            const uint4 word = w < rows.words / 4 ? bits[w] : make_uint4(0, 0, 0, 0);
            const int a = __popc(word.x), b = a + __popc(word.y), c = b + __popc(word.z), d = c + __popc(word.w);
            int total;
            const uint32_t from = (uint32_t)(done + block_scan<RANK_THREADS>(d, &total, scratch));
            if (w < rows.words / 4)
                before[w] = make_uint4(from, from + (uint32_t)a, from + (uint32_t)b, from + (uint32_t)c);
            done += total;
        }
        if (threadIdx.x != 0) continue;
        const bool exact = units_of_row(rows.spans[at], job.ranges[p].end - job.ranges[p].begin).exact;
        job.lengths[p] = done;
        if (exact) job.classes[p] = IDLE;
        else leave_row(job, at);
    }
}

/* Adds the parts' entries to the cells of their columns. */
static __global__ void __launch_bounds__(PART_THREADS) sum_parts(contract_job<float> job, parted_rows rows)
{
    PART_ROW(row);
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = open_part(row, i);
        if (job.classes[row.p] == WIDE) continue;
        const uint32_t *bits = rows.bits + at * rows.words, *before = rows.before + at * rows.words;
        const int cells = job.lengths[row.p];
        const bool few = cells <= PART / 2;
        unsigned long long *sums = rows.sums + job.cells_of[at], *near = row.more, loops = 0;
        const sum_units units = units_of_row(rows.spans[at], job.ranges[row.p].end - job.ranges[row.p].begin);
        const auto cell_of = [&](int32_t col) {
            return __ldg(before + col / 32) + (uint32_t)__popc(__ldg(bits + col / 32) & ((1u << (col % 32)) - 1));
        };
        row.gather();
        if (few) {
            __syncthreads(); /* sources have been read */
            for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS) near[cell] = 0;
            __syncthreads();
        }
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            if (row.col[u] == EMPTY) continue;
            const unsigned long long state = units.of(row.value[u]);
            if (row.col[u] == row.p) loops += state;
            else if (few) add_shared(near + cell_of(row.col[u]), state);
            else atomicAdd(sums + cell_of(row.col[u]), state);
        }
        for (int step = 16; step > 0; step /= 2) loops += __shfl_xor_sync(FULL_WARP, loops, step);
        if ((threadIdx.x & 31) == 0 && loops) atomicAdd(sums + cell_of(row.p), loops);
        if (!few) continue;
        __syncthreads();
        for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS)
            if (near[cell]) atomicAdd(sums + cell, near[cell]);
    }
}

/* Cells to the stage, by slices of the rows' words. */
static __global__ void __launch_bounds__(WRITE_THREADS) write_parts(contract_job<float> job, parted_rows rows)
{
    const class_rows own = rows_of(job, WIDE);
    for (unsigned i = blockIdx.x; i < own.count * WRITE_SLICES; i += gridDim.x) {
        const unsigned at = i / WRITE_SLICES;
        const int32_t p = own.rows[at];
        if (job.classes[p] == WIDE) continue;
        const stage_range range = job.ranges[p];
        const sum_units units = units_of_row(rows.spans[at], range.end - range.begin);
        const unsigned long long *sums = rows.sums + job.cells_of[at];
        bool late = false;
        for (int64_t w = i % WRITE_SLICES * WRITE_THREADS + threadIdx.x; w < rows.words;
             w += WRITE_SLICES * WRITE_THREADS) {
            int64_t cell = rows.before[at * rows.words + w];
            for (uint32_t bits = rows.bits[at * rows.words + w]; bits; bits &= bits - 1, cell++) {
                const int32_t column = (int32_t)(w * 32) + __ffs((int)bits) - 1;
                const unsigned long long state = sums[cell];
                late = late || units.is_late(state);
                job.cols[range.begin + cell] = column;
                job.values[range.begin + cell] =
                    (float)cell_value(job.operation, units.number_of(state), 1, column == p);
            }
        }
        if (!late || atomicExch(&rows.spans[at].late, 1) != 0) continue;
        job.classes[p] = WIDE;
        leave_row(job, at);
    }
}

#undef PART_ROW

#endif
