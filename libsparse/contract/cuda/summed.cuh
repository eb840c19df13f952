/* Summed rows of a contraction: sums of f32, a block each, for rows in which most columns occur once.
 *
 * A bit a column is set, as for ranked rows; who sets it first is the column's first entry, whose value and column go
 * straight to the cell that the bits before count. Only the others meet by atomics, as integers, in what the cell has
 * beyond its first entry: f64 adds numbers that are multiples of some 2^l exactly, in any order, while sums stay
 * below 2^(l + 53); beyond that it is close enough, nearly always, for the same f32. Rows for which neither is
 * certain, or in which a zero has a sign, are listed for ranked_rows.
 *
 * With many columns (DEEP), a bit stands for 32 of them first; only those of the 32 that occur get a word.
 *
 * An entry costs some 35 instructions to be read, 15 to set its bit, 20 to find its cell and 15 to be written, DEEP
 * 30 more; a row 6 or 8 barriers, 250 instructions a thread and those for words of bits. The first thread has where
 * the next row lies copied to shared memory while a row is summed. */
#ifndef SPARSE_CUDA_CONTRACT_SUMMED_CUH
#define SPARSE_CUDA_CONTRACT_SUMMED_CUH

#include <cuda_pipeline_primitives.h>

#include "contract/cuda/ranked.cuh"

/* How a row's numbers add up as integers, in units of a power of two that all are multiples of, as span_of finds
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
    /* Whether f64, adding this many numbers in order, may come to another f32: it is off by 2^-53 of the sum each time
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

/* Labels that a thread asks for before it looks at one of them: one each time takes 1 % longer, all eight 3 % on
 * R-MAT 22. */
enum { LOOKUPS = 2 };

/* Fine words after those, one a lane: entries that set no bit set one there; a branch around each costs more. */
enum { SPARE_WORDS = 32 };

/* Bytes of a block's bits and cells. */
static __host__ __device__ constexpr size_t summed_bytes(summed_words words, int entries)
{
    return (size_t)(words.fine + SPARE_WORDS + words.coarse) * (sizeof(uint32_t) + sizeof(uint16_t)) +
           (size_t)entries * (words.coarse ? words.narrow ? 18 : 20 : 16);
}

/* ITEMS entries a thread in registers, 32·ITEMS that follow each other in a warp. */
template <int THREADS, int ITEMS, bool DEEP> struct summed_row {
    static constexpr int WARPS = THREADS / 32, ENTRIES = THREADS * ITEMS, WRITTEN = 4; /* cells at once */
    struct memory {
        alignas(16) uint32_t begins[ENTRIES / 32]; /* a bit where a node's entries begin */
        stage_range range;                         /* of the next row, */
        int32_t first, p;                          /* its first node and its number, below 0: there is none */
        uint32_t cells[WARPS];                     /* of each warp's words */
        uint32_t lowest, highest, signs;           /* as in span_of */
        int late;                                  /* the row is listed */
        unsigned drawn;                            /* the row after the next one */
    };
    const contract_args<float> &job;
    memory &shared;
    uint32_t *bits, *coarse;
    uint16_t *before, *coarse_before; /* bits before a word, of its warp's */
    unsigned long long *more; /* of each cell, beyond its first entry; 0 between rows */
    uint2 *cells;             /* column and first value; until entries are read, 32 bits a node (list) */
    int32_t *blocks;          /* DEEP: the 32 columns of a fine word; if these are narrow, of 16 bits */
    summed_words words;
    int32_t p;
    uint32_t begin;
    int length;
    uint32_t kept, loops, firsts, repeats; /* a bit for each of the thread's entries; loops are neither of the last */
    bool in_doubt;  /* some loop is -0 */
    int32_t col[ITEMS]; /* DEEP, once found: the place of its bit */
    float value[ITEMS];

    __device__ __forceinline__ void clear(uint32_t *of, int count)
    {
#pragma unroll 1
        for (int i = threadIdx.x; i < count / 4; i += THREADS) ((uint4 *)of)[i] = make_uint4(0, 0, 0, 0);
    }
    /* log2 of a warp's words; the last warps may have none. */
    static __device__ __forceinline__ int shift_of(int count)
    {
        return 32 - __clz(max(count / WARPS, (int)WORD_STEP) - 1);
    }
    /* Whether the thread's warp has no entries. */
    __device__ __forceinline__ bool is_idle() const { return (int)(threadIdx.x / 32) * (32 * ITEMS) >= length; }
    /* Clears what the row before has left; a barrier is to follow. */
    __device__ __forceinline__ void reset()
    {
        if (threadIdx.x < ENTRIES / 32) shared.begins[threadIdx.x] = 0;
        if (threadIdx.x == 0) {
            shared.lowest = UINT32_MAX;
            shared.highest = shared.signs = 0;
        }
        clear(bits, words.fine);
        if (DEEP) clear(coarse, words.coarse);
    }
    /* Where node k begins in the stage, and in G: the last 32 bits, which tell all there are. */
    static __device__ __forceinline__ uint2 node_of(const contract_args<float> &job, int64_t k)
    {
        if (job.whole || k >= job.nodes) return make_uint2(0, 0);
        if (job.placed) return __ldg(job.placed + k);
        return make_uint2(__ldg((const uint32_t *)(job.starts + k)), __ldg((const uint32_t *)(job.sources + k)));
    }
    /* Lists the nodes of `count` entries of the stage from `from` on; node `first` has the first of them: for each
     * where its entries lie in G less where they do among these, modulo 2^32, and a bit where they begin. `ahead`: the
     * thread's first node, as known. */
    __device__ __forceinline__ void list(uint32_t *sources, uint32_t *begins, uint32_t from, int count, int64_t first,
                                         uint2 ahead) const
    {
        if (job.whole && threadIdx.x == 0) {
            sources[0] = from;
            begins[0] = 1;
        }
        for (int64_t k = first + threadIdx.x, node = threadIdx.x; k < job.nodes && !job.whole; node += THREADS) {
            const uint32_t own = ahead.x - from, at = node == 0 ? 0 : own; /* they may begin before these */
            if (at >= (uint32_t)count) break;
            sources[node] = ahead.y - own;
            atomicOr(begins + at / 32, 1u << (at % 32));
            k += THREADS;
            ahead = node_of(job, k);
        }
    }
    __device__ __forceinline__ void start(int32_t first, uint2 ahead)
    {
        __syncthreads(); /* the row before is done with */
        if (threadIdx.x == 0) shared.late = 0;
        if (job.whole) return;
        list((uint32_t *)cells, shared.begins, begin, length, first, ahead);
        __syncthreads();
    }
    /* The row's entries to registers. */
    __device__ __forceinline__ void gather()
    {
        const int word = threadIdx.x / 32 * ITEMS, lane = threadIdx.x & 31, first = word * 32 + lane;
        uint32_t at[ITEMS];
        if (job.whole) {
#pragma unroll
            for (int u = 0; u < ITEMS; u++) at[u] = begin + (uint32_t)(first + 32 * u);
        } else {
            uint32_t node = 0, upto = lanes_below() * 2 + 1;
#pragma unroll 1
            for (int i = lane; i < word; i += 32) node += (uint32_t)__popc(shared.begins[i]);
            node = warp_add(node) - 1;
#pragma unroll
            for (int u = 0; u < ITEMS; u++) {
                const uint32_t begins = shared.begins[word + u];
                at[u] = ((const uint32_t *)cells)[node + __popc(begins & upto)] + (uint32_t)(first + 32 * u);
                node += __popc(begins);
            }
        }
        fetch(at, length - first);
    }
    /* Entries of G to registers, the first of each 32 that are `left`, EMPTY those that are left out. */
    __device__ __forceinline__ void fetch(const uint32_t (&at)[ITEMS], int left)
    {
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            const bool there = 32 * u < left;
            col[u] = there ? read_entry(job, job.g.cols + at[u]) : EMPTY;
            value[u] = there ? read_entry(job, job.g.values + at[u]) : 0;
        }
        const uint32_t columns = (uint32_t)job.columns;
        kept = 0;
#pragma unroll
        for (int some = 0; some < ITEMS; some += LOOKUPS) {
            if (job.runs) {
#pragma unroll
                for (int u = some; u < some + LOOKUPS; u++)
                    if (col[u] != EMPTY) col[u] = label_in(__ldg(job.runs + (uint32_t)col[u] / 32), col[u]);
            } else if (job.short_labels) {
#pragma unroll
                for (int u = some; u < some + LOOKUPS; u++)
                    if (col[u] != EMPTY) col[u] = (int32_t)read_label(job, job.short_labels + (uint32_t)col[u]);
            } else if (job.labels) {
#pragma unroll
                for (int u = some; u < some + LOOKUPS; u++)
                    if (col[u] != EMPTY) col[u] = read_label(job, job.labels + (uint32_t)col[u]);
            }
#pragma unroll
            for (int u = some; u < some + LOOKUPS; u++) {
                const bool inside = (uint32_t)col[u] < columns;
                col[u] = inside ? col[u] : EMPTY;
                value[u] = inside ? value[u] : 0;
                if (inside) kept |= 1u << u;
            }
        }
        if (job.operation.loops != SP_LOOPS_KEEP) leave_out();
    }
    __device__ __forceinline__ void leave_out()
    {
        kept = 0;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if ((col[u] == p) != (job.operation.loops == SP_LOOPS_ONLY)) col[u] = EMPTY;
            if (col[u] == EMPTY) value[u] = 0;
            else kept |= 1u << u;
        }
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
     * would meet in one word. Entries that set no bit get a place of the lane's own. */
    __device__ __forceinline__ void set_bits(int32_t own)
    {
        const int32_t spare = (words.fine + (int)(threadIdx.x & 31)) * 32;
        bool any = false;
        uint32_t old[ITEMS], seen = 0;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) any = any || col[u] == own;
        loops = 0;
        if (__any_sync(FULL_WARP, any)) {
#pragma unroll
            for (int u = 0; u < ITEMS; u++)
                if (col[u] == own) loops |= 1u << u;
            if ((threadIdx.x & 31) == 0) atomicOr(bits + own / 32, 1u << (own % 32));
        }
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if (col[u] == EMPTY || col[u] == own) col[u] = spare;
            old[u] = atomicOr(bits + (uint32_t)col[u] / 32, 1u << ((uint32_t)col[u] % 32));
        }
#pragma unroll
        for (int u = 0; u < ITEMS; u++) seen |= (old[u] >> ((uint32_t)col[u] % 32) & 1) << u;
        firsts = kept & ~loops & ~seen;
        repeats = kept & ~loops & seen;
    }
    /* Counts the bits before each of a warp's words. */
    __device__ __forceinline__ void count(const uint32_t *of, uint16_t *counts, int size)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, shift = shift_of(size);
        const int end = min((warp + 1) << shift, size);
        uint32_t total = 0;
#pragma unroll 1
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
    /* of[u]: registers cannot be indexed at run time. */
    template <typename T, int N> static __device__ __forceinline__ T pick(const T (&of)[N], int u)
    {
        T some[N];
#pragma unroll
        for (int i = 0; i < N; i++) some[i] = of[i];
#pragma unroll
        for (int half = N / 2; half > 0; half /= 2)
#pragma unroll
            for (int i = 0; i < half; i++) some[i] = u & half ? some[i + half] : some[i];
        return some[0];
    }
    __device__ __forceinline__ void place_entries(int32_t own, uint32_t base, const sum_units &units)
    {
        in_doubt = false;
        if (is_idle()) return;
        int to[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) to[u] = cell_of((uint32_t)col[u], base);
#pragma unroll
        for (int u = 0; u < ITEMS; u++)
            if (firsts & 1u << u) cells[to[u]] = make_uint2((uint32_t)column_at(col[u]), __float_as_uint(value[u]));
        for (uint32_t left = repeats; left; left &= left - 1) {
            const int u = __ffs((int)left) - 1, cell = pick(to, u);
            const float number = pick(value, u);
            add_shared(more + cell, units.of(number));
            if (units.flags(number)) flag_shared(more + cell);
        }
        __syncwarp();
        if (__any_sync(FULL_WARP, loops)) add_loops(own, base, units);
    }
    __device__ __forceinline__ void add_loops(int32_t own, uint32_t base, const sum_units &units)
    {
        unsigned long long sum = 0;
        bool flags = false;
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if (!(loops & 1u << u)) continue;
            sum += units.of(value[u]);
            flags = flags || units.flags(value[u]);
            in_doubt = in_doubt || __float_as_uint(value[u]) == 0x80000000u;
        }
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
        const int cell = cell_of((uint32_t)own, base);
        flags = __any_sync(FULL_WARP, flags);
        if ((threadIdx.x & 31) != 0) return;
        add_shared(more + cell, sum);
        if (flags) flag_shared(more + cell);
        cells[cell] = make_uint2((uint32_t)p, 0);
    }
    /* This many cells to the stage; returns whether the row must be summed again. */
    __device__ __forceinline__ bool write_cells(int count, const sum_units &units) const
    {
        bool late = in_doubt;
        for (int first = threadIdx.x; first < count; first += WRITTEN * THREADS) {
            int32_t column[WRITTEN];
            unsigned long long beyond[WRITTEN];
            float sum[WRITTEN];
#pragma unroll
            for (int u = 0; u < WRITTEN; u++) {
                const int cell = first + u * THREADS, from = cell < count ? cell : first;
                const uint2 both = cells[from];
                column[u] = (int32_t)both.x;
                beyond[u] = more[from];
                sum[u] = __uint_as_float(both.y);
            }
            uint32_t sums = 0; /* of several entries */
#pragma unroll
            for (int u = 0; u < WRITTEN; u++) {
                const int cell = first + u * THREADS;
                if (cell >= count) break;
                late = late || __float_as_uint(sum[u]) == 0x80000000u;
                job.cols[begin + cell] = column[u];
                if (beyond[u]) sums |= 1u << u;
                else job.values[begin + cell] = sum[u];
            }
            for (; sums; sums &= sums - 1) {
                const int u = __ffs((int)sums) - 1;
                const float number = pick(sum, u);
                more[first + u * THREADS] = 0; /* few have any: to clear all for each row takes longer */
                const unsigned long long flag = units.flags(number) ? 1ull << 63 : 0;
                const unsigned long long state = (units.of(number) + pick(beyond, u)) | flag;
                late = late || units.is_late(state, length);
                job.values[begin + first + u * THREADS] =
                    (float)cell_value(job.operation, units.number_of(state), 1, pick(column, u) == p);
            }
        }
        return late;
    }
    /* Row `next` will be the next one, for a thread, which is to wait for the copies. */
    __device__ __forceinline__ void look_ahead(int32_t next)
    {
        shared.p = next;
        if (next < 0) return;
        __pipeline_memcpy_async(&shared.range, job.ranges + next, sizeof shared.range);
        __pipeline_memcpy_async(&shared.first, job.firsts + next, sizeof shared.first);
        __pipeline_commit();
    }
    /* `following`: the number of the next row; *node: the thread's first of this row, and then of that one. */
    __device__ __forceinline__ void contract(int32_t first, uint2 *node, const class_rows &own, unsigned following,
                                             int32_t *listed, unsigned *listed_count)
    {
        const int32_t next = threadIdx.x == 0 && following < own.count ? __ldg(own.rows + following) : -1;
        start(first, *node);
        if (threadIdx.x == 0) look_ahead(next);
        gather();
        measure();
        if (DEEP) set_coarse();
        else set_bits(p);
        __syncthreads();
        const sum_units units(shared.lowest, shared.highest, shared.signs, length, true);
        int32_t loop = p;
        int found = 0;
        if (units.exact) {
            if (DEEP) {
                loop = find_places();
                set_bits(loop);
                __syncthreads();
            }
            count(bits, before, words.fine); /* finds the cells of those that are set */
        }
        if (threadIdx.x == 0) __pipeline_wait_prior(0);
        __syncthreads();
        *node = shared.p < 0 ? make_uint2(0, 0) : node_of(job, shared.first + (int64_t)threadIdx.x);
        if (units.exact) {
            place_entries(loop, cells_before(&found), units);
            if (threadIdx.x == 0) job.lengths[p] = found;
            __syncthreads();
        }
        reset();
        const bool late = !units.exact || write_cells(found, units);
        if (late && atomicExch(&shared.late, 1) == 0) listed[atomicAdd(listed_count, 1u)] = p;
    }
};

/* Rows are drawn: those of a class differ by up to two in length, which the twenty of a block do not even out. The
 * number of the row after the next is on its way while a row is summed.
 * A multiprocessor holds 1,024 threads. With 1,536 of them, whose shared memory leaves the first-level cache 28 KB for
 * labels on their way, rows take as long as ranked ones; those of 8,192 entries, 1,024 threads, half as long. */
template <int THREADS, int ITEMS, bool DEEP>
static __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    summed_rows(contract_args<float> job, int c, summed_words words)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    using row_type = summed_row<THREADS, ITEMS, DEEP>;
    __shared__ typename row_type::memory memory;
    constexpr int entries = THREADS * ITEMS;
    uint32_t *bits = (uint32_t *)row_memory, *coarse = bits + words.fine + SPARE_WORDS;
    unsigned long long *more = (unsigned long long *)(coarse + words.coarse);
    uint2 *cells = (uint2 *)(more + entries);
    int32_t *blocks = (int32_t *)(cells + entries);
    uint16_t *before = (uint16_t *)((char *)blocks + (DEEP ? words.narrow ? 2 : 4 : 0) * entries);
    uint16_t *coarse_before = before + words.fine + SPARE_WORDS;
    const class_rows own = rows_of(job, c);
    int32_t *listed = job.inexact + (own.rows - job.list);
    unsigned kept = 0, drawn = 0, following = blockIdx.x + gridDim.x;
    row_type row = {job, memory, bits, coarse, before, coarse_before, more, cells, blocks, words};
    if (threadIdx.x == 0) {
        row.look_ahead(blockIdx.x < own.count ? __ldg(own.rows + blockIdx.x) : -1);
        drawn = atomicAdd(job.totals->drawn + c, 1u);
        __pipeline_wait_prior(0);
    }
    row.clear((uint32_t *)more, 2 * entries);
    row.reset();
    __syncthreads();
    uint2 node = memory.p < 0 ? make_uint2(0, 0) : row_type::node_of(job, memory.first + (int64_t)threadIdx.x);
    while ((row.p = memory.p) >= 0) {
        const int32_t first = memory.first;
        row.begin = (uint32_t)memory.range.begin;
        row.length = (int)(memory.range.end - memory.range.begin);
        row.contract(first, &node, own, following, listed, job.totals->inexact + c);
        kept += (unsigned)__popc(row.kept);
        if (threadIdx.x != 0) continue;
        following = 2 * gridDim.x + drawn;
        drawn = atomicAdd(job.totals->drawn + c, 1u);
    }
    add_entries(job.totals, kept);
}

#endif
