/* Summed rows of a contraction: sums of f32, a block each, for rows in which most columns occur once.
 *
 * A bit a column is set, as for ranked rows; who sets it first is the column's first entry, whose value and column go
 * straight to the cell that the bits before count. Only the others meet by atomics, as integers, in what the cell has
 * beyond its first entry: f64 adds numbers that are multiples of some 2^l exactly, in any order, while sums stay
 * below 2^(l + 53); beyond that it is close enough, nearly always, for the same f32. Rows for which neither is
 * certain, or in which a zero has a sign, are listed for ranked_rows.
 *
 * Where there are many columns (DEEP), a bit stands for 32 of them first; only those of the 32 that occur get a word.
 *
 * An entry costs some 40 instructions to be read, 20 to set its bit, 30 to find its cell and 25 to be written, DEEP
 * 30 more; a row 6 or 8 barriers, 250 instructions a thread and those for words of bits. */
#ifndef SPARSE_CUDA_CONTRACT_SUMMED_CUH
#define SPARSE_CUDA_CONTRACT_SUMMED_CUH

#include "contract_ranked.cuh"

/* How a row's numbers add up as integers, in units of a power of two that all are multiples of, by what span_of finds
 * and their count: a number added to the anchor, 1.5 · 2^52 units, leaves its units in the last bits. Numbers of more
 * than ANCHORED_BITS are rounded to units of 2^-ANCHORED_BITS of the largest; where rows are crowded, where cells may
 * have most of their entries, to so few bits that sums keep within INTEGER_BITS. */
enum { ANCHORED_BITS = 51 };

struct sum_units {
    double unit, anchor;
    bool exact;    /* if no sum is late */
    bool sure;     /* none can be */
    bool rounded;  /* numbers may be */
    bool flagged;  /* the states of cells with such numbers have their highest bit set */
    bool can_wrap; /* sums can reach 2^64 */

    __device__ __forceinline__ sum_units(uint32_t lowest, uint32_t highest, uint32_t signs, int64_t count,
                                         bool crowded)
    {
        const int most = max((int)(highest >> 23), 1) - 126, least = max((int)((lowest + 1) >> 23), 1) - 150;
        const int bits = 64 - __clzll(count), width = highest ? most - least : 0;
        const int room = crowded ? min((int)ANCHORED_BITS, INTEGER_BITS - bits) : (int)ANCHORED_BITS;
        const int last = highest ? max(least, most - room) : 0;
        unit = power_of_two(last);
        anchor = __longlong_as_double((long long)(last + 52 + 1023) << 52 | 1ll << 51);
        rounded = width > room;
        sure = width + bits <= EXACT_BITS;
        can_wrap = min(width, room) + bits > 64;
        flagged = rounded && !can_wrap;
        exact = highest < 0x7f800000u && (sure || signs >> 31 == 0);
    }
    __device__ __forceinline__ unsigned long long of(float number) const
    {
        return (unsigned long long)(__double_as_longlong(__dadd_rn(anchor, (double)number)) -
                                    __double_as_longlong(anchor));
    }
    __device__ __forceinline__ unsigned long long sum_of(unsigned long long state) const
    {
        return flagged ? state & ~(1ull << 63) : state;
    }
    __device__ __forceinline__ double number_of(unsigned long long state) const
    {
        return __dmul_rn((double)(long long)sum_of(state), unit);
    }
    /* Whether a number's cell must be flagged. */
    __device__ __forceinline__ bool flags(float number) const
    {
        return flagged && number_of(of(number)) != (double)number;
    }
    /* Whether f64, adding so many numbers in order, may come to another f32: it is off by 2^-53 of the sum each time
     * at most, and units by a half. Sums below 2^EXACT_BITS of numbers that are not rounded are exact. */
    __device__ __forceinline__ bool is_late(unsigned long long state, int64_t count) const
    {
        const unsigned long long sum = sum_of(state);
        if (sure || (!(flagged ? state != sum : rounded) && sum < 1ull << EXACT_BITS)) return false;
        const unsigned long long slack = ((sum >> 52) + 2) * (unsigned long long)count;
        const float low = (float)__dmul_rn((double)(long long)(sum - slack), unit);
        const float high = (float)__dmul_rn((double)(long long)(sum + slack), unit);
        return sum >> 62 != 0 || low != high || low < 0x1p-120f;
    }
};

static __device__ __forceinline__ void flag_shared(unsigned long long *state)
{
    atomicOr((unsigned *)state + 1, 1u << 31);
}

/* Words of bits for all columns, or of DEEP rows a word an entry and coarse words, of 1,024 columns each. All are
 * multiples of WORD_STEP. `narrow`: 16 bits tell the blocks of 32 columns apart. */
struct summed_words {
    int fine, coarse;
    bool narrow;
};

/* Bytes of a block's bits and cells. */
static __host__ __device__ constexpr size_t summed_bytes(summed_words words, int entries)
{
    return (size_t)(words.fine + words.coarse) * (sizeof(uint32_t) + sizeof(uint16_t)) +
           (size_t)entries * (words.coarse ? words.narrow ? 18 : 20 : 16);
}

/* ITEMS entries a thread in registers, 32·ITEMS that follow each other in a warp. */
template <int THREADS, int ITEMS, bool DEEP> struct summed_row {
    static constexpr int WARPS = THREADS / 32, ENTRIES = THREADS * ITEMS, WRITTEN = 4; /* cells at once */
    struct memory {
        alignas(16) uint32_t begins[ENTRIES / 32]; /* a bit where a node's entries begin */
        uint32_t cells[WARPS];                     /* of each warp's words */
        uint32_t lowest, highest, signs;           /* as in span_of */
        int late;                                  /* the row is listed */
        unsigned drawn;                            /* the row after the next one */
    };
    const contract_job<float> &job;
    memory &shared;
    uint32_t *bits, *coarse;
    uint16_t *before, *coarse_before; /* bits before a word, of its warp's */
    unsigned long long *more; /* of each cell, beyond its first entry; until they are read, sources of nodes */
    uint2 *cells;    /* column and first value */
    int32_t *blocks; /* DEEP: the 32 columns of a fine word; if these are narrow, of 16 bits */
    summed_words words;
    int32_t p;
    int64_t begin;
    int length;
    uint32_t later; /* a bit for each entry whose column has an earlier one */
    unsigned after; /* the number of the row after the next one */
    bool in_doubt;  /* some loop is -0 */
    int32_t col[ITEMS]; /* DEEP, once found: the place of its bit */
    float value[ITEMS];

    __device__ __forceinline__ void clear(uint32_t *of, int count)
    {
        for (int i = threadIdx.x; i < count / 4; i += THREADS) ((uint4 *)of)[i] = make_uint4(0, 0, 0, 0);
    }
    /* log2 of a warp's words; the last warps may have none. */
    static __device__ __forceinline__ int shift_of(int count)
    {
        return 32 - __clz(max(count / WARPS, (int)WORD_STEP) - 1);
    }
    /* Whether the thread's warp has no entries. */
    __device__ __forceinline__ bool is_idle() const { return (int)(threadIdx.x / 32) * (32 * ITEMS) >= length; }
    /* `ahead`: the start and the source of the thread's first node, as known. */
    __device__ __forceinline__ void start(int32_t first, longlong2 ahead)
    {
        __syncthreads(); /* the row before is done with */
        for (int i = threadIdx.x; i < ENTRIES / 32; i += THREADS) shared.begins[i] = 0;
        if (threadIdx.x == 0) {
            shared.lowest = UINT32_MAX;
            shared.highest = shared.signs = 0;
            shared.late = 0;
        }
        clear(bits, words.fine);
        if (DEEP) clear(coarse, words.coarse);
        __syncthreads();
        for (int64_t k = first + (int64_t)threadIdx.x, node = threadIdx.x; k < job.nodes; node += THREADS) {
            const int64_t from = ahead.x - begin;
            if (from >= length) break;
            more[node] = (unsigned long long)(ahead.y - from) * sizeof(float); /* in bytes */
            const unsigned at = (unsigned)max(from, (int64_t)0); /* a part can begin within a node's */
            atomicOr(shared.begins + at / 32, 1u << (at % 32));
            k += THREADS;
            ahead = node_at(job, k);
        }
        __syncthreads();
    }
    /* The row's entries to registers. Returns how many of the thread's are not left out. */
    __device__ __forceinline__ unsigned gather()
    {
        const int word = threadIdx.x / 32 * ITEMS, lane = threadIdx.x & 31, first = word * 32 + lane;
        const char *entry_cols = (const char *)(job.g.cols + first);
        const char *entry_values = (const char *)(job.g.values + first);
        uint32_t node = 0, upto = lanes_below() * 2 + 1, begins[ITEMS];
        for (int i = lane; i < word; i += 32) node += (uint32_t)__popc(shared.begins[i]);
        node = warp_add(node) - 1;
#pragma unroll
        for (int u = 0; u < ITEMS; u += 4) {
            const uint4 four = *(const uint4 *)(shared.begins + word + u);
            begins[u] = four.x;
            begins[u + 1] = four.y;
            begins[u + 2] = four.z;
            begins[u + 3] = four.w;
        }
        int64_t at[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            at[u] = (int64_t)more[first + u * 32 < length ? node + __popc(begins[u] & upto) : 0];
            node += __popc(begins[u]);
        }
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            const bool there = first + u * 32 < length;
            col[u] = there ? __ldg((const int32_t *)(entry_cols + at[u]) + u * 32) : EMPTY;
            value[u] = there ? __ldg((const float *)(entry_values + at[u]) + u * 32) : 0;
        }
        const uint32_t columns = (uint32_t)job.columns;
        unsigned kept = 0;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if (col[u] != EMPTY)
                col[u] = job.short_labels ? (int32_t)__ldg(job.short_labels + col[u])
                         : job.labels     ? __ldg(job.labels + col[u])
                                          : col[u];
            const bool inside = (uint32_t)col[u] < columns;
            col[u] = inside ? col[u] : EMPTY;
            value[u] = inside ? value[u] : 0;
            kept += inside;
        }
        return job.operation.loops == SP_LOOPS_KEEP ? kept : leave_out();
    }
    __device__ __forceinline__ unsigned leave_out()
    {
        unsigned kept = 0;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if ((col[u] == p) != (job.operation.loops == SP_LOOPS_ONLY)) col[u] = EMPTY;
            if (col[u] == EMPTY) value[u] = 0;
            kept += col[u] != EMPTY;
        }
        return kept;
    }
    __device__ __forceinline__ void measure()
    {
        if (is_idle()) return;
        uint32_t lowest = UINT32_MAX, highest = 0, signs = 0;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            const uint32_t number = __float_as_uint(value[u]), magnitude = number & 0x7fffffffu;
            lowest = min(lowest, magnitude - 1);
            highest = max(highest, magnitude);
            signs |= number;
        }
        lowest = ~warp_max(~lowest);
        highest = warp_max(highest);
        signs = warp_or(signs);
        if ((threadIdx.x & 31) != 0) return;
        atomicMin(&shared.lowest, lowest);
        atomicMax(&shared.highest, highest);
        if (signs >> 31) atomicOr(&shared.signs, signs);
    }
    /* Loops are never a cell's first entry: where labels follow communities most of a row's entries are loops, and
     * would meet in one word. */
    __device__ __forceinline__ void set_bits(int32_t own)
    {
        bool loops = false;
        uint32_t old[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            uint32_t *word = bits + (uint32_t)col[u] / 32;
            old[u] = 0;
            if (col[u] != EMPTY && col[u] != own) old[u] = atomicOr(word, 1u << ((uint32_t)col[u] % 32));
        }
        later = 0;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            const bool loop = col[u] == own;
            if (loop || (old[u] >> ((uint32_t)col[u] % 32) & 1)) later |= 1u << u;
            loops = loops || loop;
        }
        if (__any_sync(FULL_WARP, loops) && (threadIdx.x & 31) == 0) atomicOr(bits + own / 32, 1u << (own % 32));
    }
    /* Counts the bits before each of a warp's words. */
    __device__ __forceinline__ void count(const uint32_t *of, uint16_t *counts, int size)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, shift = shift_of(size);
        const int end = min((warp + 1) << shift, size);
        uint32_t total = 0;
        for (int first = warp << shift; first < end; first += WORD_STEP) {
            const uint4 word = ((const uint4 *)of)[first / 4 + lane];
            const uint32_t a = __popc(word.x), b = a + __popc(word.y), c = b + __popc(word.z), d = c + __popc(word.w);
            uint32_t inclusive = d;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const uint32_t other = __shfl_up_sync(FULL_WARP, inclusive, step);
                if (lane >= step) inclusive += other;
            }
            const uint32_t from = total + inclusive - d;
            ((uint2 *)counts)[first / 4 + lane] = make_uint2(from | (from + a) << 16, (from + b) | (from + c) << 16);
            total += __shfl_sync(FULL_WARP, inclusive, 31);
        }
        if (lane == 0) shared.cells[warp] = total;
    }
    /* The bits before the words of warp `lane`; *found, all. */
    __device__ __forceinline__ uint32_t cells_before(int *found) const
    {
        const int lane = threadIdx.x & 31;
        const uint32_t own = lane < WARPS ? shared.cells[lane] : 0;
        uint32_t inclusive = own;
#pragma unroll
        for (int step = 1; step < WARPS; step *= 2) {
            const uint32_t other = __shfl_up_sync(FULL_WARP, inclusive, step);
            if (lane >= step) inclusive += other;
        }
        *found = (int)__shfl_sync(FULL_WARP, inclusive, WARPS - 1);
        return inclusive - own;
    }
    /* Bits before place `at`, for all lanes at once. */
    static __device__ __forceinline__ int rank(const uint32_t *of, const uint16_t *counts, int size, uint32_t at,
                                               uint32_t base)
    {
        const uint32_t word = at / 32;
        return (int)(__shfl_sync(FULL_WARP, base, (int)(word >> shift_of(size))) + counts[word] +
                     (uint32_t)__popc(of[word] & ((1u << (at % 32)) - 1)));
    }
    __device__ __forceinline__ int cell_of(uint32_t at, uint32_t base) const
    {
        return rank(bits, before, words.fine, at, base);
    }
    __device__ __forceinline__ int32_t column_at(int32_t at) const
    {
        if (!DEEP) return at;
        const int32_t block = words.narrow ? ((const uint16_t *)blocks)[at / 32] : blocks[at / 32];
        return block * 32 + at % 32;
    }
    /* DEEP: sets the bits of the entries' blocks of columns. */
    __device__ __forceinline__ void set_coarse()
    {
#pragma unroll
        for (int u = 0; u < ITEMS; u++)
            if (col[u] != EMPTY) atomicOr(coarse + col[u] / 1024, 1u << (col[u] / 32 % 32));
    }
    /* DEEP: gives these blocks words of bits, columns become places there; returns that of column p, or one that no
     * entry has. */
    __device__ __forceinline__ int32_t find_places()
    {
        int found;
        count(coarse, coarse_before, words.coarse);
        __syncthreads();
        const uint32_t base = cells_before(&found);
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            const int32_t block = col[u] == EMPTY ? 0 : col[u] / 32;
            const int word = rank(coarse, coarse_before, words.coarse, (uint32_t)block, base);
            if (col[u] == EMPTY) continue;
            if (words.narrow) ((uint16_t *)blocks)[word] = (uint16_t)block;
            else blocks[word] = block;
            col[u] = word * 32 + col[u] % 32;
        }
        if (p >= job.columns) return INT_MAX;
        const int word = rank(coarse, coarse_before, words.coarse, (uint32_t)p / 32, base);
        return coarse[p / 1024] >> (p / 32 % 32) & 1 ? word * 32 + p % 32 : INT_MAX;
    }
    __device__ __forceinline__ void place_entries(int32_t own, uint32_t base, const sum_units &units)
    {
        unsigned long long sum = 0;
        bool loops = false, flags = false;
        in_doubt = false;
        if (is_idle()) return;
        int to[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) to[u] = cell_of(col[u] == EMPTY ? 0 : (uint32_t)col[u], base);
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if (col[u] == EMPTY || (later >> u & 1)) continue;
            cells[to[u]] = make_uint2((uint32_t)column_at(col[u]), __float_as_uint(value[u]));
        }
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if (!(later >> u & 1)) continue;
            const unsigned long long state = units.of(value[u]);
            const bool flag = units.flags(value[u]);
            if (col[u] != own) {
                add_shared(more + to[u], state);
                if (flag) flag_shared(more + to[u]);
                continue;
            }
            sum += state;
            in_doubt = in_doubt || __float_as_uint(value[u]) == 0x80000000u;
            loops = true;
            flags = flags || flag;
        }
        if (!__any_sync(FULL_WARP, loops)) return;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
        const int cell = cell_of((uint32_t)own, base);
        flags = __any_sync(FULL_WARP, flags);
        if ((threadIdx.x & 31) != 0) return;
        add_shared(more + cell, sum);
        if (flags) flag_shared(more + cell);
        cells[cell] = make_uint2((uint32_t)p, 0);
    }
    /* The row's entries to cells, whose bits are set; returns their number. */
    __device__ __forceinline__ int fill_cells(int32_t own, const sum_units &units)
    {
        int found;
        count(bits, before, words.fine);
        clear((uint32_t *)more, 2 * ENTRIES);
        __syncthreads();
        place_entries(own, cells_before(&found), units);
        __syncthreads();
        return found;
    }
    /* So many cells to the stage; returns whether the row must be summed again. */
    __device__ __forceinline__ bool write_cells(int count, const sum_units &units) const
    {
        bool late = in_doubt;
        for (int first = threadIdx.x; first < count; first += WRITTEN * THREADS) {
            int32_t column[WRITTEN];
            unsigned long long beyond[WRITTEN];
            float sum[WRITTEN];
#pragma unroll
            for (int u = 0; u < WRITTEN; u++) {
                const int cell = first + u * THREADS, from = cell < count ? cell : 0;
                const uint2 both = cells[from];
                column[u] = (int32_t)both.x;
                beyond[u] = more[from];
                sum[u] = __uint_as_float(both.y);
            }
#pragma unroll
            for (int u = 0; u < WRITTEN; u++) {
                const int cell = first + u * THREADS;
                if (cell >= count) break;
                late = late || __float_as_uint(sum[u]) == 0x80000000u;
                if (beyond[u]) {
                    const unsigned long long flag = units.flags(sum[u]) ? 1ull << 63 : 0;
                    const unsigned long long state = (units.of(sum[u]) + beyond[u]) | flag;
                    late = late || units.is_late(state, length);
                    sum[u] = (float)cell_value(job.operation, units.number_of(state), 1, column[u] == p);
                }
                job.cols[begin + cell] = column[u];
                job.values[begin + cell] = sum[u];
            }
        }
        return late;
    }
    /* Returns how many of the thread's entries are not left out. */
    __device__ __forceinline__ unsigned contract(next_row<float> &next, const class_rows &own, unsigned following,
                                                 int32_t *listed, unsigned *listed_count)
    {
        start(next.first, next.node);
        after = shared.drawn;
        next.read_number(own, following);
        const unsigned kept = gather();
        next.read_range(job);
        measure();
        if (DEEP) set_coarse();
        else set_bits(p);
        __syncthreads();
        next.read_node(job, (int)threadIdx.x);
        const sum_units units(shared.lowest, shared.highest, shared.signs, length, true);
        if (!units.exact) {
            if (threadIdx.x == 0) listed[atomicAdd(listed_count, 1u)] = p;
            return kept;
        }
        int32_t loop = p;
        if (DEEP) {
            loop = find_places();
            set_bits(loop);
            __syncthreads();
        }
        const int found = fill_cells(loop, units);
        if (threadIdx.x == 0) job.lengths[p] = found;
        if (write_cells(found, units) && atomicExch(&shared.late, 1) == 0) listed[atomicAdd(listed_count, 1u)] = p;
        return kept;
    }
};

/* Rows are drawn: those of a class differ by up to two in length, which the twenty of a block do not even out. The
 * number of the row after the next is on its way while a row is summed.
 * A multiprocessor holds 1,024 threads. With 1,536 of them, whose shared memory leaves the first-level cache 28 KB for
 * labels on their way, rows take as long as ranked ones; those of 8,192 entries, 1,024 threads, half as long. */
template <int THREADS, int ITEMS, bool DEEP>
static __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    summed_rows(contract_job<float> job, int c, summed_words words)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    using row_type = summed_row<THREADS, ITEMS, DEEP>;
    __shared__ typename row_type::memory memory;
    constexpr int entries = THREADS * ITEMS;
    uint32_t *bits = (uint32_t *)row_memory, *coarse = bits + words.fine;
    unsigned long long *more = (unsigned long long *)(coarse + words.coarse);
    uint2 *cells = (uint2 *)(more + entries);
    int32_t *blocks = (int32_t *)(cells + entries);
    uint16_t *before = (uint16_t *)((char *)blocks + (DEEP ? words.narrow ? 2 : 4 : 0) * entries);
    uint16_t *coarse_before = before + words.fine;
    const class_rows own = rows_of(job, c);
    int32_t *listed = job.inexact + (own.rows - job.list);
    unsigned long long kept = 0;
    next_row<float> next;
    next.read_number(own, blockIdx.x);
    next.read_range(job);
    next.read_node(job, (int)threadIdx.x);
    unsigned drawn = 0, following = blockIdx.x + gridDim.x;
    if (threadIdx.x == 0) drawn = atomicAdd(job.totals->drawn + c, 1u);
    for (unsigned i = blockIdx.x; i < own.count;) {
        const int64_t begin = next.range.begin;
        row_type row = {job,   memory, bits,  coarse, before, coarse_before,
                        more,  cells,  blocks, words,  next.p, begin, (int)(next.range.end - begin)};
        if (threadIdx.x == 0) {
            memory.drawn = 2 * gridDim.x + drawn;
            drawn = atomicAdd(job.totals->drawn + c, 1u);
        }
        kept += row.contract(next, own, following, listed, job.totals->inexact + c);
        i = following;
        following = row.after;
    }
    add_entries(job.totals, kept);
}

#endif
