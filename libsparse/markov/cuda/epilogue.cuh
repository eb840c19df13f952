/* The epilogue of the Markov product: a summed row is pruned, inflated and normalised by the block, or the warp, that
 * holds it. Sums (mass, the normalising sum, squares) are taken in fixed point, which no order of additions changes. */
#ifndef SPARSE_CUDA_MARKOV_EPILOGUE_CUH
#define SPARSE_CUDA_MARKOV_EPILOGUE_CUH

#include "markov/cuda/job.cuh"

/* What is known of a summed row before it is pruned. */
struct row_facts {
    int count;        /* of entries */
    float magnitude;  /* the largest |value| */
    float largest;    /* the largest value, at least 0 */
    double centre;    /* Σ value² */
};

/* ---- sums that no order can change --------------------------------------------------------------------- */

/* Fixed point for `terms` numbers whose magnitude is below 2^(power · (e + 1)), e the exponent of `largest`: the sum
 * stays below 2^62. */
struct fixed_point {
    double to, from;
    __device__ fixed_point(float largest, int terms, int power)
    {
        const int field = (__float_as_int(largest) >> 23) & 0xff;
        const int exponent = (field ? field : 1) - 126; /* |v| < 2^exponent */
        const int shift = 62 - (32 - __clz(terms)) - power * exponent;
        to = __longlong_as_double((long long)(1023 + shift) << 52);
        from = __longlong_as_double((long long)(1023 - shift) << 52);
    }
    __device__ unsigned long long fix(double value) const { return (unsigned long long)__double2ll_rn(value * to); }
    __device__ double sum(unsigned long long total) const { return (double)(long long)total * from; }
};

template <int THREADS, typename Entries>
__device__ row_facts examine(const Entries &entries, uint64_t *scratch)
{
    int count = 0, magnitude = 0;
    float largest = 0;
    for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
        const float value = entries.value(i);
        if (value != value) continue;
        count++;
        magnitude = max(magnitude, __float_as_int(value) & 0x7fffffff);
        largest = value > largest ? value : largest;
    }
    row_facts facts;
    facts.count = block_reduce<THREADS>(count, add_op(), scratch);
    facts.magnitude = __int_as_float(block_reduce<THREADS>(magnitude, max_op(), scratch));
    facts.largest = block_reduce<THREADS>(largest, max_op(), scratch);

    const fixed_point fixed(facts.magnitude, facts.count, 2);
    unsigned long long squares = 0;
    for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
        const double value = (double)entries.value(i);
        if (value == value) squares += fixed.fix(value * value);
    }
    facts.centre = fixed.sum(block_reduce<THREADS>(squares, add_op(), scratch));
    return facts;
}

struct kept_part {
    int count;
    double mass;
};

/* Count and mass of the entries not below `bar`, which is not negative. */
template <int THREADS, typename Entries>
__device__ kept_part keep_above(const Entries &entries, float bar, const fixed_point &fixed, uint64_t *scratch)
{
    int count = 0;
    unsigned long long mass = 0;
    for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
        const float value = entries.value(i);
        if (!(value >= bar)) continue;
        count++;
        mass += fixed.fix((double)value);
    }
    count = block_reduce<THREADS>(count, add_op(), scratch);
    return {count, fixed.sum(block_reduce<THREADS>(mass, add_op(), scratch))};
}

/* The nth largest value v with low <= v < high, low not negative; 0 when there are fewer. Four rounds of 8 bits. */
template <int THREADS, typename Entries>
__device__ float nth_largest(const Entries &entries, float low, float high, int nth, markov_memory &memory)
{
    unsigned found = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += THREADS) memory.histogram[i] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
            const float value = entries.value(i);
            const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
            if (value >= low && value < high && (bits & mask) == found)
                atomicAdd(&memory.histogram[bits >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32) { /* lane l holds the digits 255 - 8l and the seven below */
            const int lane = threadIdx.x;
            int own = 0;
            for (int d = 0; d < 8; d++) own += (int)memory.histogram[255 - 8 * lane - d];
            const int above = sum_until(own);
            const unsigned reached = __ballot_sync(FULL_WARP, above >= nth);
            if (reached == 0 && lane == 0) memory.digit = -1;
            if (reached != 0 && lane == __ffs((int)reached) - 1) {
                int rank = nth - (above - own), digit = 255 - 8 * lane;
                while ((int)memory.histogram[digit] < rank) rank -= (int)memory.histogram[digit--];
                memory.digit = digit;
                memory.rank = rank;
            }
        }
        __syncthreads();
        if (memory.digit < 0) return 0;
        found |= (unsigned)memory.digit << shift;
        mask |= 0xffu << shift;
        nth = memory.rank;
    }
    return __uint_as_float(found);
}

/* ---- the epilogue -------------------------------------------------------------------------------------- */

/* The value that an entry needs to stay, and the part of the row that has it. */
template <int THREADS, typename Entries>
__device__ float pruning_bar(const markov_job &job, const Entries &entries, const Entries &above, int count,
                             const fixed_point &fixed, markov_memory &memory, kept_part *part)
{
    *part = keep_above<THREADS>(above, job.cutoff, fixed, memory.reduce);
    float bar = job.cutoff;
    if (part->count < job.recover && part->mass < job.recover_mass) {
        bar = count <= job.recover ? 0 : nth_largest<THREADS>(entries, 0, bar, job.recover - part->count, memory);
        *part = keep_above<THREADS>(entries, bar, fixed, memory.reduce);
    } else if (job.select != 0 && part->count > job.select) {
        const int above_cutoff = part->count;
        bar = nth_largest<THREADS>(above, bar, INFINITY, job.select, memory);
        *part = keep_above<THREADS>(above, bar, fixed, memory.reduce);
        if (part->count >= job.recover || part->mass >= job.recover_mass) return bar;
        bar = above_cutoff <= job.recover
                  ? job.cutoff
                  : nth_largest<THREADS>(above, job.cutoff, bar, job.recover - part->count, memory);
        *part = keep_above<THREADS>(above, bar, fixed, memory.reduce);
    }
    return bar;
}

static __device__ __forceinline__ float share_of(float value, double mass)
{
    return mass > 0 ? (float)__ddiv_rn((double)value, mass) : value;
}

static __device__ __forceinline__ float inflated(float share, double power)
{
    if (power == 2) return (float)((double)share * (double)share);
    return power == 0 || power == 1 ? share : (float)pow((double)share, power);
}

/* Σ v² over a row of A, in an order fixed by THREADS. */
template <int THREADS> __device__ double row_squares(const markov_job &job, int row, uint64_t *scratch)
{
    double sum = 0;
    for (int64_t at = job.ranges.a_offsets[row] + threadIdx.x; at < job.ranges.a_offsets[row + 1]; at += THREADS)
        sum += (double)job.a_values[at] * (double)job.a_values[at];
    return block_reduce<THREADS>(sum, add_op(), scratch);
}

/* Writes what is not below `bar`, unsorted unless the entries are sorted. */
template <int THREADS, typename Entries>
__device__ void write_kept(const Entries &entries, float bar, int32_t *cols, float *values, markov_memory &memory)
{
    const auto keep = [&](int i) { return entries.value(i) >= bar; };
    const auto write = [&](int i, int to) {
        cols[to] = entries.col(i);
        values[to] = entries.value(i);
    };
    if (Entries::SORTED) gather_in_order<THREADS>(entries.count(), memory.reduce, keep, write);
    else gather<THREADS>(entries.count(), &memory.gathered, keep, write);
}

/* Inflates and normalises `kept` values whose mass is known and of whose shares of it `largest` is the largest: it
 * stays so, as inflation is monotone. Every thread keeps to its own places. Returns Σ share⁴ / (Σ share²)², or 0. */
template <int THREADS>
__device__ double inflate(float *values, int kept, double mass, float largest, double inflation, uint64_t *scratch)
{
    const fixed_point fixed_top(inflated(largest, inflation), kept, 1);
    const fixed_point fixed_squares(largest, kept, 2), fixed_fourths(largest, kept, 4);
    unsigned long long total = 0, all_squares = 0, all_fourths = 0;
    for (int i = threadIdx.x; i < kept; i += THREADS) {
        const float share = share_of(values[i], mass);
        const double square = (double)share * (double)share;
        all_squares += fixed_squares.fix(square);
        all_fourths += fixed_fourths.fix(square * square);
        values[i] = inflated(share, inflation);
        total += fixed_top.fix((double)values[i]);
    }
    const double sum = fixed_top.sum(block_reduce<THREADS>(total, add_op(), scratch));
    const double squares = fixed_squares.sum(block_reduce<THREADS>(all_squares, add_op(), scratch));
    const double fourths = fixed_fourths.sum(block_reduce<THREADS>(all_fourths, add_op(), scratch));
    if (sum > 0 && inflation > 0)
        for (int i = threadIdx.x; i < kept; i += THREADS) values[i] = (float)__ddiv_rn((double)values[i], sum);
    return fourths > 0 ? fourths / (squares * squares) : 0;
}

/* Prunes, inflates and normalises the summed row and writes it, unsorted unless the entries are sorted. `above` are
 * the entries from which those not below the cutoff can be had, at least these. Returns the number kept, at *place of
 * the output; -1 when the output is full, and the row is left for the next pass; 0 where rows are only counted. */
template <int THREADS, typename Entries>
__device__ int finish_row(const markov_job &job, int row, const row_facts &facts, const Entries &entries,
                          const Entries &above, markov_memory &memory, unsigned long long *place)
{
    const fixed_point fixed(facts.magnitude, facts.count, 1);
    kept_part part;
    const float bar = pruning_bar<THREADS>(job, entries, above, facts.count, fixed, memory, &part);
    const Entries source = bar < job.cutoff ? entries : above;
    const bool loop = part.count == 0 && job.recover == 0 && job.diagonal + row < job.cols;
    const int kept = loop ? 1 : part.count;
    const double mass = loop ? 1 : part.mass;

    if (job.mode == COUNT) {
        if (threadIdx.x == 0) {
            job.lengths[row] = kept;
            job.places[row] = 0;
        }
        return 0;
    }
    if (threadIdx.x == 0)
        memory.place = job.mode == WRITE ? (unsigned long long)job.out_offsets[row]
                                         : atomicAdd(job.used, (unsigned long long)kept);
    __syncthreads();
    *place = memory.place;
    if (*place + kept > job.capacity) return -1;
    int32_t *cols = job.out_cols + *place;
    float *values = job.out_values + *place;
    if (loop) {
        if (threadIdx.x == 0) {
            cols[0] = (int32_t)(job.diagonal + row);
            values[0] = 1;
        }
        __syncthreads();
    } else write_kept<THREADS>(source, bar, cols, values, memory);
    const float largest = loop ? 1 : share_of(facts.largest, mass);
    const double crowding = inflate<THREADS>(values, kept, mass, largest, job.inflation, memory.reduce);
    const double squares_before = row_squares<THREADS>(job, row, memory.reduce);
    if (threadIdx.x == 0) {
        sp_markov_row seen;
        /* Comparisons and fixed point hide a NaN in the sums; A's row shows where it came from. */
        seen.chaos = isfinite(squares_before) ? (float)(((double)facts.largest - facts.centre) * (double)kept) : NAN;
        seen.homogeneity = crowding > 0 ? (float)(squares_before / crowding) : 1;
        seen.kept_mass = (float)part.mass;
        seen.expanded = facts.count;
        job.stats[row] = seen;
        job.lengths[row] = kept;
        job.places[row] = job.pass << PLACE_BITS | (int64_t)*place;
        atomicAdd(job.expanded, (unsigned long long)facts.count);
    }
    return kept;
}

/* From a table: kept entries are written unsorted, and sorted there. */
template <int THREADS, typename Table>
__device__ __forceinline__ void markov_job::finish(int row, Table &table, markov_memory &memory) const
{
    const table_entries<Table> entries = {table};
    const row_facts facts = examine<THREADS>(entries, memory.reduce);
    unsigned long long place;
    const int kept = finish_row<THREADS>(*this, row, facts, entries, entries, memory, &place);
    if (kept > 1)
        sort_row<THREADS>(out_cols + place, out_values + place, kept, (uint32_t *)table.keys, (float *)table.sums);
}

template <int THREADS>
__device__ __forceinline__ void markov_job::finish_global(int row, global_sums &sums, char *own,
                                                          markov_memory &memory) const
{
    int32_t *list = (int32_t *)own;
    float *values = (float *)(list + rounded_cols(cols));
    const auto write = [=](int i, int32_t col, double sum) {
        list[i] = col;
        values[i] = entry_value(sum);
    };
    const int count = sums.template take_all<THREADS>(cols, memory.reduce, write);
    const list_entries entries = {list, values, count};
    const row_facts facts = examine<THREADS>(entries, memory.reduce);
    unsigned long long place;
    finish_row<THREADS>(*this, row, facts, entries, entries, memory, &place);
}

#endif
