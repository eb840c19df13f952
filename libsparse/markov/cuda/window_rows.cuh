/* Rows of the Markov product that are summed by windows of columns (windows.cuh), a warp each: which entries of a row
 * are kept for the epilogue, and where. */
#ifndef SPARSE_CUDA_MARKOV_WINDOW_ROWS_CUH
#define SPARSE_CUDA_MARKOV_WINDOW_ROWS_CUH

#include "markov/cuda/epilogue.cuh"
#include "markov/cuda/windows.cuh"

/* Entries above the cutoff that get a list of their own; entries in all that must fit a list, for rows that recover
 * what is below the cutoff. */
enum { WINDOW_ABOVE = 4096, WINDOW_LEAST_LIST = 4096 };
/* Warps a multiprocessor that registers are to suffice for; 16 is what every architecture can hold. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { WINDOW_WARPS = 16 };
#else
enum { WINDOW_WARPS = 20 };
#endif

/* Takes a row's sums from the windows, ascending: all entries that fit the one list, those not below the cutoff that
 * fit the other, and the row's facts, each lane its share until `gathered` is called. */
struct window_entries {
    int32_t *cols, *above_cols;
    float *values, *above_values;
    int list_length;
    float cutoff;
    int count, above, magnitude;
    float largest;
    double squares;

    __device__ __forceinline__ void put(bool exists, int place, int32_t col, float value)
    {
        if (!exists) return;
        magnitude = max(magnitude, __float_as_int(value) & 0x7fffffff);
        largest = value > largest ? value : largest;
        squares += (double)value * (double)value;
        if (place >= list_length) return;
        __stcs(cols + place, col);
        __stcs(values + place, value);
    }
    __device__ __forceinline__ void put_above(bool exists, int place, int32_t col, float value)
    {
        if (!exists || place >= WINDOW_ABOVE) return;
        above_cols[place] = col;
        above_values[place] = value;
    }
    /* Lane l takes the columns 2l and 2l + 1 of every 64. */
    __device__ void take(int32_t first, double2 *sums)
    {
        constexpr int AT_ONCE = 4;
        const int lane = threadIdx.x;
        const unsigned below = (1u << lane) - 1;
        for (int base = 0; base < WINDOW_COLUMNS / 2; base += 32 * AT_ONCE) {
            double2 sum[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) sum[j] = sums[base + 32 * j + lane];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                const bool even = sum[j].x != 0, odd = sum[j].y != 0;
                const unsigned evens = __ballot_sync(FULL_WARP, even), odds = __ballot_sync(FULL_WARP, odd);
                if ((evens | odds) == 0) continue;
                const int place = base + 32 * j + lane, to = count + __popc(evens & below) + __popc(odds & below);
                const int32_t col = first + 2 * place;
                const float even_value = __double2float_rn(sum[j].x), odd_value = __double2float_rn(sum[j].y);
                sums[place] = make_double2(0, 0);
                put(even, to, col, even_value);
                put(odd, to + even, col + 1, odd_value);
                count += __popc(evens) + __popc(odds);

                const bool high = even && even_value >= cutoff, high_odd = odd && odd_value >= cutoff;
                const unsigned highs = __ballot_sync(FULL_WARP, high), high_odds = __ballot_sync(FULL_WARP, high_odd);
                if ((highs | high_odds) == 0) continue;
                const int above_to = above + __popc(highs & below) + __popc(high_odds & below);
                put_above(high, above_to, col, even_value);
                put_above(high_odd, above_to + high, col + 1, odd_value);
                above += __popc(highs) + __popc(high_odds);
            }
        }
        __syncwarp();
    }
    __device__ row_facts gathered()
    {
        return {count, __int_as_float(block_reduce<32>(magnitude, max_op(), nullptr)),
                block_reduce<32>(largest, max_op(), nullptr), block_reduce<32>(squares, add_op(), nullptr)};
    }
};

/* Bytes of global memory that a warp needs which makes rows by windows. */
static __host__ __device__ int64_t window_bytes(int64_t list_length)
{
    return (list_length + WINDOW_ABOVE) * (int64_t)(sizeof(int32_t) + sizeof(float));
}

/* Rows of at most TERMS entries in A, a warp each; longer ones go to the spill list, as do those that lack an entry
 * of their lists. */
template <int TERMS>
__global__ void __launch_bounds__(32, WINDOW_WARPS) markov_window_rows(markov_job job, work_list work, char *scratch)
{
    extern __shared__ __align__(16) double table_memory[];
    window_memory &windows = *(window_memory *)table_memory;
    markov_memory &memory = *(markov_memory *)windows.cursors(); /* while there are no cursors */
    static_assert(window_memory::bytes(TERMS) >= sizeof(window_memory) + sizeof(markov_memory), "too small");
    const int list_length = job.list_length;
    window_entries into;
    into.above_cols = (int32_t *)(scratch + window_bytes(list_length) * blockIdx.x);
    into.above_values = (float *)(into.above_cols + WINDOW_ABOVE);
    into.cols = (int32_t *)(into.above_values + WINDOW_ABOVE);
    into.values = (float *)(into.cols + list_length);
    into.list_length = list_length;
    into.cutoff = job.cutoff;
    for (int i = threadIdx.x; i < WINDOW_COLUMNS; i += 32) windows.sums[i] = 0;
    for (int row; (row = take_row(work, &memory.taken).row) >= 0;) {
        const int64_t first = job.ranges.a_offsets[row], length = job.ranges.a_offsets[row + 1] - first;
        bool makes = length <= TERMS;
        if (makes) {
            const window_terms terms = {job.index, job.b_values, job.ranges.a_cols + first, job.a_values + first,
                                        (int)length};
            const auto take_sums = [&](int32_t column) { into.take(column, (double2 *)windows.sums); };
            into.count = into.above = into.magnitude = 0;
            into.largest = 0;
            into.squares = 0;
            if (job.in_f32(row)) sum_windows<true>(terms, windows, take_sums);
            else sum_windows<false>(terms, windows, take_sums);
        }
        const row_facts facts = into.gathered();
        const list_entries entries = {into.cols, into.values, min(facts.count, list_length)};
        const bool all_above = into.above <= WINDOW_ABOVE;
        const list_entries above = all_above ? list_entries{into.above_cols, into.above_values, into.above} : entries;
        __syncwarp();
        if (makes && facts.count > list_length) {
            const fixed_point fixed(facts.magnitude, facts.count, 1);
            const kept_part part = keep_above<32>(above, job.cutoff, fixed, memory.reduce);
            makes = all_above && (part.count >= job.recover || part.mass >= job.recover_mass);
        }
        unsigned long long place;
        if (makes) finish_row<32>(job, row, facts, entries, above, memory, &place);
        else if (threadIdx.x == 0) work.spill[atomicAdd(work.spill_count, 1)] = row;
    }
}

#endif
