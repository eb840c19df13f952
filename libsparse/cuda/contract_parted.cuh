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

enum { PART_ITEMS = 8, PART_THREADS = PART / PART_ITEMS, RANK_THREADS = 1024, WRITE_THREADS = 256 };

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

/* Wide rows, in the order of their list. */
struct parted_rows {
    uint32_t *bits, *before; /* `words` a row */
    unsigned long long *sums; /* as cells_of */
    uint32_t *counts;         /* of entries, where sums may be late */
    parted_span *spans;
    int32_t *nodes; /* of parts: the first */
    int64_t words; /* a multiple of 4 */
};

using part_row = summed_row<PART_THREADS, PART_ITEMS, false>; /* of which the reading of entries is used */

static __device__ __forceinline__ sum_units units_of_row(const parted_span &span, int64_t length)
{
    return {~span.above, span.highest, span.signs, length};
}

/* A part's entries, in a block; its row's place in the list. The part's first node is looked for once. */
template <bool KNOWN>
static __device__ __forceinline__ unsigned open_part(part_row &row, const parted_rows &rows, unsigned i)
{
    __shared__ int32_t found;
    const contract_job<float> &job = row.job;
    const uint2 part = job.parts[i];
    row.p = rows_of(job, WIDE).rows[part.x];
    const stage_range range = job.ranges[row.p];
    int32_t node = KNOWN ? rows.nodes[i] : job.firsts[row.p];
    row.begin = range.begin + (int64_t)part.y * PART;
    row.length = (int)min((int64_t)PART, range.end - row.begin);
    if (!KNOWN) {
        __syncthreads();
        if (threadIdx.x < 32) {
            node += (int32_t)last_start(job.starts + node, job.nodes - node, row.begin);
            if (threadIdx.x == 0) rows.nodes[i] = found = node;
        }
        __syncthreads();
        node = found;
    }
    row.start(node, node_at(job, node + (int64_t)threadIdx.x));
    return part.x;
}

/* What a block of the kernels below holds. */
#define PART_ROW(row)                                                             \
    extern __shared__ __align__(16) unsigned char row_memory[];                   \
    __shared__ part_row::memory memory;                                           \
    part_row row = {job, memory, NULL, NULL, NULL, NULL, (unsigned long long *)row_memory}

/* Sets bits. */
static __global__ void __launch_bounds__(PART_THREADS, PART_BLOCKS) mark_parts(contract_job<float> job, parted_rows rows)
{
    PART_ROW(row);
    unsigned long long kept = 0;
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = open_part<false>(row, rows, i);
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

/* Leaves a row to ranked_rows, for a thread; not while blocks with barriers look at its class. */
static __device__ __forceinline__ void leave_row(const contract_job<float> &job, unsigned at)
{
    job.classes[rows_of(job, WIDE).rows[at]] = WIDE;
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
static __global__ void __launch_bounds__(PART_THREADS, PART_BLOCKS) sum_parts(contract_job<float> job, parted_rows rows)
{
    PART_ROW(row);
    for (unsigned i = blockIdx.x; i < job.totals->parts; i += gridDim.x) {
        const unsigned at = open_part<true>(row, rows, i);
        if (job.classes[row.p] == WIDE) continue;
        const uint32_t *bits = rows.bits + at * rows.words, *before = rows.before + at * rows.words;
        const int cells = job.lengths[row.p];
        const bool few = cells <= PART / 2;
        const sum_units units = units_of_row(rows.spans[at], job.ranges[row.p].end - job.ranges[row.p].begin);
        unsigned long long *sums = rows.sums + job.cells_of[at], *near = row.more, loops = 0;
        uint32_t *counts = rows.counts + job.cells_of[at], *near_counts = (uint32_t *)(near + PART / 2), loop_count = 0;
        const auto cell_of = [&](int32_t col) {
            return __ldg(before + col / 32) + (uint32_t)__popc(__ldg(bits + col / 32) & ((1u << (col % 32)) - 1));
        };
        bool wrapped = false;
        const auto add = [&](uint32_t cell, unsigned long long state, uint32_t count) {
            if (!units.can_wrap) atomicAdd(sums + cell, state);
            else wrapped = atomicAdd(sums + cell, state) + state < state || wrapped;
            if (!units.sure) atomicAdd(counts + cell, count);
        };
        row.gather();
        if (few) {
            __syncthreads(); /* sources have been read */
            for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS) {
                near[cell] = 0;
                near_counts[cell] = 0;
            }
            __syncthreads();
        }
#pragma unroll
        for (int u = 0; u < PART_ITEMS; u++) {
            if (row.col[u] == EMPTY) continue;
            const unsigned long long state = units.of(row.value[u]);
            if (row.col[u] == row.p) {
                loops += state;
                loop_count++;
                continue;
            }
            const uint32_t cell = cell_of(row.col[u]);
            if (!few) {
                add(cell, state, 1);
                continue;
            }
            add_shared(near + cell, state);
            if (!units.sure) atomicAdd(near_counts + cell, 1u);
        }
        for (int step = 16; step > 0; step /= 2) loops += __shfl_xor_sync(FULL_WARP, loops, step);
        loop_count = warp_add(loop_count);
        if ((threadIdx.x & 31) == 0 && loop_count) add(cell_of(row.p), loops, loop_count);
        if (few) {
            __syncthreads();
            for (int cell = threadIdx.x; cell < cells; cell += PART_THREADS)
                if (near[cell] || near_counts[cell]) add((uint32_t)cell, near[cell], near_counts[cell]);
        }
        if (wrapped) rows.spans[at].late = 1;
    }
}

/* Cells to the stage: a warp takes 32 words, a lane a bit of each. */
static __global__ void __launch_bounds__(WRITE_THREADS) write_parts(contract_job<float> job, parted_rows rows)
{
    const class_rows own = rows_of(job, WIDE);
    const int lane = threadIdx.x & 31;
    const int64_t slices = (rows.words + 31) / 32, step = (int64_t)gridDim.x * WRITE_THREADS / 32;
    for (int64_t i = ((int64_t)blockIdx.x * WRITE_THREADS + threadIdx.x) / 32; i < own.count * slices; i += step) {
        const unsigned at = (unsigned)(i / slices);
        const int32_t p = own.rows[at];
        const int64_t first = i % slices * 32, w = first + lane;
        if (job.classes[p] == WIDE) continue;
        const stage_range range = job.ranges[p];
        const sum_units units = units_of_row(rows.spans[at], range.end - range.begin);
        const unsigned long long *sums = rows.sums + job.cells_of[at];
        const uint32_t *counts = rows.counts + job.cells_of[at];
        const uint32_t own_bits = w < rows.words ? rows.bits[at * rows.words + w] : 0;
        const uint32_t own_before = w < rows.words ? rows.before[at * rows.words + w] : 0;
        bool late = rows.spans[at].late == 1;
#pragma unroll 4
        for (int j = 0; j < 32; j++) {
            const uint32_t bits = __shfl_sync(FULL_WARP, own_bits, j);
            const int64_t cell = __shfl_sync(FULL_WARP, own_before, j) + (uint32_t)__popc(bits & lanes_below());
            if (!(bits >> lane & 1)) continue;
            const int32_t column = (int32_t)(first + j) * 32 + lane;
            const unsigned long long state = __ldg(sums + cell);
            if (!units.sure) late = late || units.is_late(state, __ldg(counts + cell));
            job.cols[range.begin + cell] = column;
            job.values[range.begin + cell] =
                (float)cell_value(job.operation, units.number_of(state), 1, column == p);
        }
        if (late && atomicExch(&rows.spans[at].late, 2) != 2) leave_row(job, at);
    }
}

#undef PART_ROW

#endif
