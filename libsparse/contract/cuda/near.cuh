/* Near rows of a contraction: sums of f32 in wide rows of up to ROW_ENTRIES and of many columns, a block each, in one
 * kernel. Entries, columns replaced by labels, go to memory that the second-level cache holds while the block works on
 * them. Columns, a window of them at once, have a bit each in shared memory; sums, as integers, and columns of as many
 * cells as there is room for lie there, too. An entry is written once, 8 bytes, and read once or twice for each window;
 * it costs an atomic for its bit and one or two for its sum.
 *
 * Rows whose sums may not be exact are left to ordered.cu. */
#ifndef SPARSE_CUDA_CONTRACT_NEAR_CUH
#define SPARSE_CUDA_CONTRACT_NEAR_CUH

#include "contract/cuda/parted.cuh"

/* Of a row that one block sums: entries at most, words of bits at once, bytes a cell, bytes of shared memory that are
 * kept for what is static. */
enum { ROW_ENTRIES = 3 << 16, NEAR_WINDOW = 16384, NEAR_BYTES = 12, NEAR_STATIC = 4096 };
/* Up to this many columns rows get less shared memory than a block could have, and labels more cache: R-MAT 22 with 1 %
 * groups takes 3 % less. With more columns, cells would need several turns beside the bits: 5 to 10 % more. */
enum { NEAR_FEW = 65536, NEAR_SHARED = 128 << 10 };
enum { NEAR_COLUMNS = 8192 }; /* rows of fewer are parted: 3 % faster with 3,146 */

/* Rows that a block each sums: a window's words of bits, and this many of its cells at once. */
struct near_table {
    int words, cells;
};
static __host__ __device__ constexpr size_t near_bytes(near_table table)
{
    return (size_t)table.cells * NEAR_BYTES + (size_t)table.words * (sizeof(uint32_t) + sizeof(uint16_t));
}

/* The nodes of a row, of this many entries at once: where they begin among them, how many before each 32, and by
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
    const contract_args<float> &job;
    part_row &part;
    near_table table;
    int32_t p;
    stage_range range;
    int64_t length;
    uint2 *entries; /* where cells of wide rows lie else: labels and values */

    /* One window does for all columns. */
    __device__ __forceinline__ bool is_whole() const { return job.columns <= (int64_t)table.words * 32; }
    /* Sets bits of columns from `low` on; loops, which may be many, only once a warp. */
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
    /* Lists the nodes of `count` entries of the stage from `begin` on; `node` has the first of them; counts those that
     * begin before each word of bits, and returns how many do; *base as in part.cells_before. */
    __device__ __forceinline__ int list(const node_list &nodes, int64_t begin, int count, int64_t node, uint32_t *base)
    {
        const int words = nodes.words_of(count);
        int begun;
        __syncthreads(); /* the memory is another's no more */
        part.clear(nodes.begins, words);
        __syncthreads();
        part.list(nodes.sources, nodes.begins, (uint32_t)begin, count, node,
                  part_row::node_of(job, node + threadIdx.x));
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
                    most = max(most, number == 0x80000000u ? UINT32_MAX : magnitude); /* -0 is left to ordered.cu */
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
    /* This many entries of a thread. */
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
static __global__ void __launch_bounds__(PART_THREADS, 1) near_rows(contract_args<float> job, near_table table)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    __shared__ part_row::memory memory;
    unsigned long long *sums = (unsigned long long *)row_memory;
    int32_t *cols = (int32_t *)(sums + table.cells);
    uint32_t *bits = (uint32_t *)(cols + table.cells);
    uint16_t *before = (uint16_t *)(bits + table.words);
    part_row part = {job, memory, bits, NULL, before, NULL, sums};
    const class_rows own = rows_of(job, WIDE_ROWS);
    unsigned long long kept = 0;
    part.words.fine = table.words;
    const auto look_ahead = [&] {
        const unsigned at = atomicAdd(job.totals->drawn + WIDE_ROWS, 1u);
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
        else job.classes[p] = NO_ENTRIES;
    }
    add_entries(job.totals, kept);
}

#endif
