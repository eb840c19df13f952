/* Ranked rows of a contraction: a block each, entries combined in any order where f64 sums do not depend on it.
 *
 * A bit a column is set; the bits before a column, counted, are its cell's number. Entries meet in their cells by
 * integer atomics: numbers are multiples of some 2^least, and f64 adds such numbers exactly while sums stay below
 * 2^(least + 53), so that integer sums are f64's in any order. Where they may not be, a few cells are summed again in
 * order, or the row's entries are put together by cell, and each cell's brought in order; in rows that do not fit
 * registers a warp goes through all of them for its cells.
 *
 * An entry costs some 5 accesses of shared memory and 2 atomics there, a row some 15 barriers, a window of 32
 * columns a word to clear and count.
 */
#ifndef SPARSE_CUDA_CONTRACT_RANKED_CUH
#define SPARSE_CUDA_CONTRACT_RANKED_CUH

#include "contract/cuda/integers.cuh"
#include "device/ordered_sum.cuh"

enum { WORD_SHIFT = 7, WORD_STEP = 1 << WORD_SHIFT }; /* words that a warp counts at once */

/* Cells that are summed again one after another; with more of them the row is. */
enum { MOST_LATE = 64 };
/* Entries of a cell that a thread combines in order, and that a warp does one after another. */
enum { FEW_ENTRIES = 8, SERIAL_ENTRIES = 64 };
constexpr unsigned long long NO_STATE = ~0ull; /* combining in order: a NaN that no arithmetic makes */

/* A block's row: in registers, ITEMS entries a thread, or if that is 0 in the stage. Its cells are numbered by
 * column: those of earlier windows, then by bits. PLAIN is the sum of numbers, for which nothing else is compiled
 * in. */
template <int THREADS, int ITEMS, bool PLAIN, typename V> struct ranked_row {
    static constexpr int WARPS = THREADS / 32;
    static constexpr bool IS_WIDE = ITEMS == 0;
    static constexpr int DEPTH = IS_WIDE ? 4 : ITEMS; /* entries that a thread loads at once */
    static constexpr int CAPACITY = THREADS * DEPTH, TURN_BITS = log2_of(CAPACITY);
    static_assert(2 * TURN_BITS < 31, "cell and turn take the place of a column");
    struct memory {
        uint32_t base[WARPS]; /* cells before a warp's words */
        int least, most, late, diagonal; /* the cell of the row's own column */
        unsigned flags;
        uint64_t scratch[WARPS];
    };
    const contract_args<V> &job;
    memory &shared;
    uint32_t *bits;
    uint16_t *before; /* cells before a word, of its warp's */
    unsigned long long *states, *counts, *grains;
    int32_t *cell_cols;
    int words, shift; /* of a window, a power of two; log2 of a warp's */
    int32_t p;
    int64_t begin, length;
    number_span span;
    bool in_order, sure, grained; /* how values are combined; no cell can reach 2^EXACT_BITS; its grain is known */
    int32_t col[DEPTH];
    V value[DEPTH];

    __device__ __forceinline__ sp_combine operation() const { return PLAIN ? SP_COMBINE_SUM : job.operation.combine; }
    __device__ __forceinline__ bool sums() const
    {
        return operation() == SP_COMBINE_SUM || operation() == SP_COMBINE_MEAN;
    }
    __device__ __forceinline__ bool adds() const { return sums() || operation() == SP_COMBINE_COUNT; }
    __device__ __forceinline__ bool has_values() const { return PLAIN || job.g.values; }
    __device__ __forceinline__ V value_at(int64_t i) const { return has_values() ? job.values[begin + i] : V(1); }

    /* The row's entries from G to registers: a bit where each node's begin, and its source in the cells' place.
     * Returns how many are not left out. */
    __device__ unsigned gather()
    {
        int64_t *sources = (int64_t *)states;
        const int needed = ITEMS * WARPS < WORD_STEP ? (int)WORD_STEP : ITEMS * WARPS;
        clear_bits(needed);
        if (job.whole && threadIdx.x == 0) {
            sources[0] = begin;
            bits[0] = 1;
        }
        for (int64_t k = job.firsts[p] + (int64_t)threadIdx.x, node = threadIdx.x; k < job.nodes && !job.whole;
             k += THREADS, node += THREADS) {
            const int64_t from = node_start(job, k, begin);
            if (from >= length) break;
            sources[node] = node_source(job, k, from);
            atomicOr(bits + from / 32, 1u << (from % 32));
        }
        __syncthreads();
        count_bits(needed, WORD_SHIFT);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int i = u * THREADS + threadIdx.x;
            col[u] = EMPTY;
            if (i >= length) continue;
            const int word = i / 32, node = shared.base[word >> WORD_SHIFT] + before[word] - 1 +
                                            __popc(bits[word] & (lanes_below() * 2 + 1));
            const int64_t source = sources[node] + i;
            col[u] = __ldg(job.g.cols + source);
            value[u] = has_values() ? __ldg(job.g.values + source) : V(1);
        }
        unsigned kept = 0;
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            if (col[u] != EMPTY) col[u] = column_of(job, p, col[u]);
            kept += col[u] != EMPTY;
        }
        __syncthreads();
        return kept;
    }
    /* The row's entries from registers to the stage. */
    __device__ void spill()
    {
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int i = u * THREADS + threadIdx.x;
            if (i >= length) continue;
            job.cols[begin + i] = col[u];
            if (has_values()) job.values[begin + i] = value[u];
        }
        __syncthreads();
    }
    template <bool VALUES> __device__ __forceinline__ void load(int64_t first)
    {
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int64_t i = first + u * THREADS + threadIdx.x;
            col[u] = i < length ? job.cols[begin + i] : EMPTY;
            if (VALUES) value[u] = i < length ? value_at(i) : V(0);
        }
    }
    /* Calls visit(i, column, value) for the thread's entries. */
    template <bool VALUES, typename Visit> __device__ __forceinline__ void each(Visit visit)
    {
        for (int64_t first = 0; first < (IS_WIDE ? length : 1); first += DEPTH * THREADS) {
            if (IS_WIDE) load<VALUES>(first);
#pragma unroll
            for (int u = 0; u < DEPTH; u++)
                if (col[u] != EMPTY) visit(first + u * THREADS + threadIdx.x, col[u], value[u]);
        }
    }

    /* Decides how the row's values are combined. */
    __device__ void choose_order()
    {
        in_order = grained = false;
        sure = true;
        span = {0, 0, false, false};
        if (operation() == SP_COMBINE_FIRST || operation() == SP_COMBINE_COUNT) return;
        if (threadIdx.x == 0) {
            shared.least = INT_MAX;
            shared.most = INT_MIN;
            shared.flags = 0;
        }
        __syncthreads();
        span_of<V> numbers;
        each<true>([&](int64_t, int32_t, V number) { numbers.add(number); });
        span = numbers.get();
        for (int step = 16; step > 0; step /= 2) {
            span.least = min(span.least, __shfl_xor_sync(FULL_WARP, span.least, step));
            span.most = max(span.most, __shfl_xor_sync(FULL_WARP, span.most, step));
        }
        const unsigned flags = warp_or((span.odd ? 1u : 0u) | (span.negative ? 2u : 0u));
        if ((threadIdx.x & 31) == 0) {
            atomicMin(&shared.least, span.least);
            atomicMax(&shared.most, span.most);
            if (flags) atomicOr(&shared.flags, flags);
        }
        __syncthreads();
        span = {shared.least, shared.most, (shared.flags & 2) != 0, (shared.flags & 1) != 0};
        if (span.most == INT_MIN) span.least = span.most = 0;
        if (sums()) {
            const int width = span.most - span.least + 64 - __clzll(length);
            sure = width <= EXACT_BITS;
            in_order = width > INTEGER_BITS || abs(span.least) > MOST_SCALE || (!sure && span.negative);
        }
        in_order = in_order || span.odd;
    }

    /* Whether the column lies in the window from `low`, and where. */
    __device__ __forceinline__ bool in_window(int32_t column, int64_t low, uint32_t *at) const
    {
        *at = (uint32_t)column - (uint32_t)low;
        return *at < (uint32_t)words * 32;
    }
    __device__ __forceinline__ void clear_bits(int count)
    {
        for (int i = threadIdx.x; i < count / 4; i += THREADS) ((uint4 *)bits)[i] = make_uint4(0, 0, 0, 0);
        __syncthreads();
    }
    /* Counts the bits before each of this many words, 2^log of them a warp; returns how many there are. A barrier is to
     * follow. */
    __device__ __forceinline__ int count_bits(int count, int log)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
        uint32_t total = 0;
        const int end = min((warp + 1) << log, count);
        for (int first = warp << log; first < end; first += WORD_STEP) {
            const uint4 word = ((const uint4 *)bits)[first / 4 + lane];
            const uint32_t a = __popc(word.x), b = a + __popc(word.y), c = b + __popc(word.z), d = c + __popc(word.w);
            uint32_t inclusive = d;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const uint32_t other = __shfl_up_sync(FULL_WARP, inclusive, step);
                if (lane >= step) inclusive += other;
            }
            const uint32_t from = total + inclusive - d;
            ((ushort4 *)before)[first / 4 + lane] =
                make_ushort4((uint16_t)from, (uint16_t)(from + a), (uint16_t)(from + b), (uint16_t)(from + c));
            total += __shfl_sync(FULL_WARP, inclusive, 31);
        }
        if (lane == 0) shared.base[warp] = total;
        __syncthreads();
        const uint32_t other = lane < WARPS ? shared.base[lane] : 0;
        const uint32_t own = warp_add(lane < warp ? other : 0), all = warp_add(other);
        __syncthreads();
        if (lane == 0) shared.base[warp] = own;
        return (int)all;
    }
    /* Sets the bits of the window's columns and counts them. */
    __device__ __forceinline__ int rank_columns(int64_t low)
    {
        clear_bits(words);
        each<false>([&](int64_t, int32_t column, V) {
            uint32_t at;
            if (!in_window(column, low, &at)) return;
            const uint32_t bit = 1u << (at % 32);
            if (!(((volatile uint32_t *)bits)[at / 32] & bit)) atomicOr(bits + at / 32, bit);
        });
        __syncthreads();
        return count_bits(words, shift);
    }
    __device__ __forceinline__ int cell_of(uint32_t at, int done) const
    {
        const uint32_t word = at / 32;
        return done + (int)(shared.base[word >> shift] + before[word] + __popc(bits[word] & ((1u << (at % 32)) - 1)));
    }

    __device__ __forceinline__ unsigned long long state_of(int64_t i, V number) const
    {
        if (sums()) return units_of(number, span.least);
        if (operation() == SP_COMBINE_COUNT) return 1;
        if (operation() == SP_COMBINE_FIRST) return ~(unsigned long long)i;
        return operation() == SP_COMBINE_MAX ? comparable((double)number) : ~comparable((double)number);
    }
    __device__ __forceinline__ void merge(int cell, unsigned long long state, unsigned long long count)
    {
        if (!adds()) atomicMax(states + cell, state);
        else if (IS_WIDE) atomicAdd(states + cell, state);
        else add_shared(states + cell, state);
        if (operation() != SP_COMBINE_MEAN) return;
        if (IS_WIDE) atomicAdd(counts + cell, count);
        else add_shared(counts + cell, count);
    }
    /* In any order. Labels that follow communities make most of a row's entries loops: each thread keeps its own. */
    __device__ void combine_at_once(int64_t low, int done)
    {
        unsigned long long loops = 0, loop_count = 0;
        each<true>([&](int64_t i, int32_t column, V number) {
            uint32_t at;
            if (!in_window(column, low, &at)) return;
            const unsigned long long state = state_of(i, number);
            if (column == p) {
                loops = adds() ? loops + state : max(loops, state);
                loop_count++;
                return;
            }
            const int cell = cell_of(at, done);
            cell_cols[cell] = column;
            merge(cell, state, 1);
        });
        if (!__any_sync(FULL_WARP, loop_count > 0)) return;
        for (int step = 16; step > 0; step /= 2) {
            const unsigned long long other = __shfl_xor_sync(FULL_WARP, loops, step);
            loops = adds() ? loops + other : max(loops, other);
            loop_count += __shfl_xor_sync(FULL_WARP, loop_count, step);
        }
        if ((threadIdx.x & 31) != 0) return;
        const int cell = cell_of((uint32_t)p - (uint32_t)low, done);
        cell_cols[cell] = p;
        merge(cell, loops, loop_count);
    }

    /* In order, from registers to the stage: entries are put together by cell, and each cell's brought in order.
     * Returns the number of cells. In place of cells' columns lie, two of them a word, the entries of cells and then
     * where these begin, and behind them the entries' places. */
    __device__ int combine_placed()
    {
        uint32_t *tally = (uint32_t *)cell_cols;
        uint16_t *places = (uint16_t *)(tally + CAPACITY / 2);
        const auto first_of = [&](int cell) { return (int)(tally[cell / 2] >> cell % 2 * 16 & 0xffff); };
        const int cells = count_cells(tally), total = sum_tally(tally), lane = threadIdx.x & 31;
#pragma unroll
        for (int u = 0; u < DEPTH; u++)
            if (col[u] != EMPTY)
                places[first_of((col[u] & INT_MAX) >> TURN_BITS) + (col[u] & (CAPACITY - 1))] =
                    (uint16_t)(u * THREADS + threadIdx.x);
        __syncthreads();
        for (int base = threadIdx.x - lane; base < cells; base += THREADS) {
            const int cell = base + lane, first = cell < cells ? first_of(cell) : total;
            const int count = (cell + 1 < cells ? first_of(cell + 1) : total) - first;
            double kept = count > 0 && count <= FEW_ENTRIES ? combine_few(places + first, count) : 0;
            for (unsigned many = __ballot_sync(FULL_WARP, count > FEW_ENTRIES); many; many &= many - 1) {
                const int of = __ffs((int)many) - 1;
                const int its_first = __shfl_sync(FULL_WARP, first, of), its = __shfl_sync(FULL_WARP, count, of);
                const double whole = combine_many(places + its_first, its);
                if (lane == of) kept = whole;
            }
            if (cell < cells)
                job.values[begin + cell] = (V)cell_value(job.operation, kept, count, cell == shared.diagonal);
        }
        return cells;
    }
    /* Counts the entries of cells, writes their columns, and puts numbers in the states' place. An entry's cell and its
     * turn there become its column, with the sign set. Returns the number of cells. */
    __device__ int count_cells(uint32_t *tally)
    {
        int cells = 0;
        for (int i = threadIdx.x; i < CAPACITY / 2; i += THREADS) tally[i] = 0;
        if (threadIdx.x == 0) shared.diagonal = -1;
        for (int64_t low = 0; low < job.columns; low += (int64_t)words * 32) {
            const int found = rank_columns(low);
            __syncthreads();
#pragma unroll
            for (int u = 0; u < DEPTH; u++) {
                uint32_t at;
                if (col[u] < 0 || !in_window(col[u], low, &at)) continue;
                const int cell = cell_of(at, cells), half = cell % 2 * 16;
                const uint32_t turn = atomicAdd(tally + cell / 2, 1u << half) >> half & 0xffff;
                if (turn == 0) job.cols[begin + cell] = col[u];
                if (col[u] == p) shared.diagonal = cell;
                ((double *)states)[u * THREADS + threadIdx.x] = (double)value[u];
                col[u] = (int32_t)(1u << 31 | (uint32_t)cell << TURN_BITS | turn);
            }
            cells += found;
            __syncthreads();
        }
        return cells;
    }
    /* Entries of cells become those before them; returns all. */
    __device__ int sum_tally(uint32_t *tally)
    {
        uint32_t own[DEPTH / 2], sum = 0;
        int total;
#pragma unroll
        for (int w = 0; w < DEPTH / 2; w++) {
            own[w] = tally[threadIdx.x * (DEPTH / 2) + w];
            sum += (own[w] & 0xffff) + (own[w] >> 16);
        }
        uint32_t first = (uint32_t)block_scan<THREADS>((int)sum, &total, shared.scratch);
#pragma unroll
        for (int w = 0; w < DEPTH / 2; w++) {
            const uint32_t second = first + (own[w] & 0xffff);
            tally[threadIdx.x * (DEPTH / 2) + w] = first | second << 16;
            first = second + (own[w] >> 16);
        }
        __syncthreads();
        return total;
    }
    /* A cell's numbers by one thread. */
    __device__ __forceinline__ double combine_few(const uint16_t *places, int count) const
    {
        const double *numbers = (const double *)states;
        uint32_t place[FEW_ENTRIES];
        if (count == 1) return numbers[places[0]];
#pragma unroll
        for (int i = 0; i < FEW_ENTRIES; i++) place[i] = i < count ? places[i] : UINT32_MAX;
        sort_keys<FEW_ENTRIES>(place, 1);
        double kept = numbers[place[0]];
#pragma unroll
        for (int i = 1; i < FEW_ENTRIES; i++)
            if (i < count) kept = combine(operation(), kept, numbers[place[i]]);
        return kept;
    }
    /* The same by a warp, which puts the places in order by a bit for each of the row's; bits of columns are no longer
     * needed. */
    __device__ double combine_many(uint16_t *places, int count)
    {
        constexpr int WORDS = CAPACITY / 32, EACH = WORDS / 32;
        const double *numbers = (const double *)states;
        uint32_t *map = bits + threadIdx.x / 32 * WORDS;
        const int lane = threadIdx.x & 31;
        int own = 0, all;
        for (int i = lane; i < WORDS; i += 32) map[i] = 0;
        __syncwarp();
        for (int i = lane; i < count; i += 32) atomicOr(map + places[i] / 32, 1u << places[i] % 32);
        __syncwarp();
#pragma unroll
        for (int w = 0; w < EACH; w++) own += __popc(map[lane * EACH + w]);
        int at = scan_lanes(own, &all);
#pragma unroll
        for (int w = 0; w < EACH; w++)
            for (uint32_t left = map[lane * EACH + w]; left; left &= left - 1)
                places[at++] = (uint16_t)((lane * EACH + w) * 32 + __ffs((int)left) - 1);
        __syncwarp();
        if (sums() && count > SERIAL_ENTRIES)
            return sum_in_order_at(count, [&](int i) { return numbers[places[i]]; });
        double kept = numbers[places[0]];
#pragma unroll 8
        for (int i = 1; i < count; i++) kept = combine(operation(), kept, numbers[places[i]]);
        return kept;
    }

    __device__ __forceinline__ void put(int cell, double more)
    {
        const unsigned long long old = states[cell];
        const double kept = old == NO_STATE ? more : combine(operation(), __longlong_as_double((long long)old), more);
        states[cell] = (unsigned long long)__double_as_longlong(kept);
        if (operation() == SP_COMBINE_MEAN) counts[cell]++;
    }
    /* In order, from the stage: each warp goes through all of it for its cells. Lanes with the same cell take turns,
     * and those with others as well then. */
    __device__ void combine_in_order(int64_t low, int done)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
        int32_t next = lane < length ? job.cols[begin + lane] : EMPTY;
        for (int64_t first = 0; first < length; first += 32) {
            const int64_t i = first + lane;
            const int32_t column = next;
            next = i + 32 < length ? job.cols[begin + i + 32] : EMPTY;
            uint32_t at = 0;
            const bool inside = in_window(column, low, &at);
            const int cell = inside ? cell_of(at, done) : 0;
            const bool own = inside && cell % WARPS == warp;
            const unsigned all = __ballot_sync(FULL_WARP, own);
            if (!all) continue;
            const double more = own ? (double)value_at(i) : 0;
            if (own) cell_cols[cell] = column;
            const unsigned same = own ? __match_any_sync(all, cell) : 0;
            if (!__any_sync(FULL_WARP, (same & (same - 1)) != 0)) {
                if (own) put(cell, more);
                __syncwarp();
                continue;
            }
            for (unsigned left = all; left; left &= left - 1) {
                if (lane == __ffs((int)left) - 1) put(cell, more);
                __syncwarp();
            }
        }
    }

    /* The row's cells; returns their number. */
    __device__ int combine_entries()
    {
        int done = 0;
        for (int64_t low = 0; low < job.columns; low += (int64_t)words * 32) {
            const int found = rank_columns(low);
            for (int cell = done + threadIdx.x; cell < done + found; cell += THREADS) {
                states[cell] = in_order ? NO_STATE : 0;
                if (operation() == SP_COMBINE_MEAN) counts[cell] = 0;
            }
            __syncthreads();
            if (IS_WIDE && in_order) combine_in_order(low, done);
            else combine_at_once(low, done);
            done += found;
            __syncthreads();
        }
        return done;
    }

    /* Whether f64 may have rounded this sum, or one on the way to it: all are multiples of the cell's grain. */
    __device__ __forceinline__ bool is_late(int cell, unsigned long long state) const
    {
        if (sure || state < 1ull << EXACT_BITS) return false;
        return !grained || state >> (__ffsll((long long)grains[cell]) - 1) >= 1ull << EXACT_BITS;
    }
    __device__ int late_cells(int cells)
    {
        if (threadIdx.x == 0) shared.late = 0;
        __syncthreads();
        int late = 0;
        for (int cell = threadIdx.x; cell < cells; cell += THREADS) late += is_late(cell, states[cell]);
        if (late) atomicAdd(&shared.late, late);
        __syncthreads();
        late = shared.late;
        __syncthreads();
        return late;
    }
    /* What the numbers of each cell, and not only those of the row, have in common; for rows of one window. */
    __device__ void find_grains(int cells)
    {
        unsigned long long loops = 0;
        for (int cell = threadIdx.x; cell < cells; cell += THREADS) grains[cell] = 0;
        __syncthreads();
        each<true>([&](int64_t i, int32_t column, V number) {
            const unsigned long long state = state_of(i, number);
            if (column == p) loops |= state;
            else atomicOr(grains + cell_of((uint32_t)column, 0), state);
        });
        if (loops) atomicOr(grains + cell_of((uint32_t)p, 0), loops);
        __syncthreads();
        grained = true;
    }
    /* The sum of the entries of one column, in order, by a warp, which looks at AHEAD times 32 entries at once. */
    __device__ double sum_of(int32_t column) const
    {
        constexpr int AHEAD = 8;
        const int lane = threadIdx.x & 31;
        double sum = -0.0; /* what any number can be added to without changing its bits */
        for (int64_t first = lane; first - lane < length; first += 32 * AHEAD) {
            bool own[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                own[u] = first + 32 * u < length && job.cols[begin + first + 32 * u] == column;
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                unsigned owners = __ballot_sync(FULL_WARP, own[u]);
                const double more = own[u] ? (double)value_at(first + 32 * u) : 0;
                for (; owners; owners &= owners - 1)
                    sum = __dadd_rn(sum, __shfl_sync(FULL_WARP, more, __ffs((int)owners) - 1));
            }
        }
        return sum;
    }
    /* States become f64 numbers. */
    __device__ void finish_states(int cells)
    {
        const int lane = threadIdx.x & 31;
        const double unit = power_of_two(span.least);
        if (in_order || operation() == SP_COMBINE_COUNT) return;
        for (int first = threadIdx.x - lane; first < cells; first += THREADS) {
            const int cell = first + lane;
            const unsigned long long state = cell < cells ? states[cell] : 0;
            double kept = operation() == SP_COMBINE_MAX   ? compared(state)
                          : operation() == SP_COMBINE_MIN ? compared(~state)
                                                          : __dmul_rn((double)(long long)state, unit);
            if (operation() == SP_COMBINE_FIRST && cell < cells) kept = (double)value_at((int64_t)~state);
            for (unsigned late = __ballot_sync(FULL_WARP, is_late(cell, state)); late; late &= late - 1) {
                const int owner = __ffs((int)late) - 1;
                const double sum = sum_of(cell_cols[first + owner]);
                if (lane == owner) kept = sum;
            }
            if (cell < cells) states[cell] = (unsigned long long)__double_as_longlong(kept);
        }
    }
    /* Returns how many of the entries that the thread gathered are not left out. */
    __device__ unsigned contract()
    {
        const unsigned kept = IS_WIDE ? 0 : gather();
        choose_order();
        if (!IS_WIDE && !in_order && (!sure || operation() == SP_COMBINE_FIRST)) spill();
        int cells = 0;
        if (IS_WIDE || !in_order) cells = combine_entries();
        int late = sure || in_order ? 0 : late_cells(cells);
        if (IS_WIDE && late > 0 && (int64_t)words * 32 >= job.columns) {
            find_grains(cells);
            late = late_cells(cells);
        }
        if (late > MOST_LATE) {
            in_order = true;
            if (IS_WIDE) cells = combine_entries();
        }
        if (!IS_WIDE && in_order) cells = combine_placed();
        else write_cells(cells);
        if (threadIdx.x == 0) job.lengths[p] = cells;
        __syncthreads();
        return kept;
    }
    /* From the cells to the stage. */
    __device__ void write_cells(int cells)
    {
        finish_states(cells);
        __syncthreads(); /* the stage has been read */
        for (int cell = threadIdx.x; cell < cells; cell += THREADS) {
            const int32_t column = cell_cols[cell];
            const unsigned long long state = states[cell];
            const double count = operation() == SP_COMBINE_COUNT  ? (double)state
                                 : operation() == SP_COMBINE_MEAN ? (double)counts[cell]
                                                                  : 1;
            job.cols[begin + cell] = column;
            job.values[begin + cell] =
                (V)cell_value(job.operation, __longlong_as_double((long long)state), count, column == p);
        }
    }
};

/* Bytes of a block's bits of columns, or of places for each warp, which follow them; and with its cells. */
static __host__ __device__ constexpr size_t bits_bytes(int words, int threads, int cells)
{
    const size_t columns = (size_t)words * (sizeof(uint32_t) + sizeof(uint16_t)),
                 places = (size_t)threads / 32 * cells / 8;
    return columns > places ? columns : places;
}
static __host__ __device__ constexpr size_t ranked_bytes(int words, int threads, int cells, bool mean)
{
    return bits_bytes(words, threads, cells) + (size_t)cells * (mean ? 20 : 12);
}

/* The rows of class c, or `again` those that other kernels have left and counted. */
template <int THREADS, int ITEMS, bool PLAIN, typename V>
static __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    ranked_rows(contract_args<V> job, int c, int words, bool again)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    __shared__ typename ranked_row<THREADS, ITEMS, PLAIN, V>::memory memory;
    constexpr int capacity = THREADS * ITEMS;
    const bool mean = !PLAIN && job.operation.combine == SP_COMBINE_MEAN;
    uint32_t *bits = (uint32_t *)row_memory;
    uint16_t *before = (uint16_t *)(bits + words);
    unsigned long long *states = (unsigned long long *)(row_memory + bits_bytes(words, THREADS, capacity));
    unsigned long long *counts = states + capacity, *grains = NULL;
    int32_t *cell_cols = (int32_t *)(counts + (mean ? capacity : 0));
    const int shift = 31 - __clz(max(words / (THREADS / 32), (int)WORD_STEP));
    const class_rows own = rows_of(job, c);
    unsigned long long kept = 0;
    for (unsigned i = blockIdx.x; i < own.count; i += gridDim.x) {
        const int32_t p = ITEMS == 0 && again ? job.list[first_of_class(job, c) + own.rows[i]] : own.rows[i];
        const stage_range range = job.ranges[p];
        if (ITEMS == 0) {
            const int64_t first = job.cells_of[again ? own.rows[i] : i];
            states = job.cells + first;
            counts = mean ? job.counts + first : NULL;
            grains = job.grains ? job.grains + first : NULL;
            cell_cols = job.cell_cols + first;
        }
        ranked_row<THREADS, ITEMS, PLAIN, V> row = {job,       memory,      bits,  before, states,
                                             counts,    grains,      cell_cols, words, shift,
                                             p,         range.begin, range.end - range.begin};
        kept += row.contract();
    }
    add_entries(job.totals, kept);
}

#endif
