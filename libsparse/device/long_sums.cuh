/* Sums of runs of very many numbers, each in order and with the bits of adding one after another, by all warps of the
 * device. Header-only, as check.cuh.
 *
 * A run is cut into chunks. What a chunk adds to a sum depends, between two powers of two, on nothing but whether that
 * sum is an even or odd multiple of its unit (ordered_sum.cuh). So, once the chunks are added up in any order, each
 * chunk knows roughly where it begins, and a warp finds what it adds to an even and to an odd sum there, and how low
 * and high sums go meanwhile. One warp then goes from chunk to chunk, 32 at a time. Where sums come near a power of
 * two, which the bounds say, it adds the chunk's numbers themselves. 3 million products of one entry, formed and sorted
 * too, take 0.53 ms for 4.87 by one warp (H100).
 */
#ifndef DEVICE_LONG_SUMS_CUH
#define DEVICE_LONG_SUMS_CUH

#include "device/common.cuh"
#include "device/ordered_sum.cuh"

/* Numbers of a chunk, and runs of a list. Sums that stay LONG_SUM_MARGIN of a power of two away from it have the same
 * unit: a chunk's two sums differ by a few units at most. */
enum { CHUNK_NUMBERS = 4 * SUM_STEP, MOST_LONG_RUNS = 64, LONG_SUM_THREADS = 256 };
#define LONG_SUM_MARGIN 0x1p-40

/* Numbers from `from` on; `chunk` numbers its first chunk among those of all runs; `place` is the caller's. */
struct long_run {
    int64_t from, count;
    unsigned chunk;
    int32_t place;
};
/* Of a device. Zeros: none. */
struct long_runs {
    unsigned count, chunks;
    long_run runs[MOST_LONG_RUNS];
};

static __device__ __forceinline__ unsigned chunks_of(int64_t numbers)
{
    return (unsigned)((numbers + CHUNK_NUMBERS - 1) / CHUNK_NUMBERS);
}

/* Adds a run to the list, by one thread; runs must be so long that the list holds all there are. */
static __device__ __forceinline__ void add_long_run(long_runs *list, int64_t from, int64_t count, int32_t place)
{
    const unsigned chunk = atomicAdd(&list->chunks, chunks_of(count));
    list->runs[atomicAdd(&list->count, 1u)] = {from, count, chunk, place};
}

/* What a chunk adds to a sum of this sign and power of two (0: not known), if it is an even multiple of its unit and if
 * it is an odd one, and the least and the most that sums differ from their beginning on the way. */
struct chunk_growth {
    growth added;
    double lowest, highest;
    unsigned power;
};

/* Sign and power of two of a number; 0 of those without 53 bits, and of those that are not finite. */
static __device__ __forceinline__ unsigned power_of(double number)
{
    const unsigned power = (unsigned)(bits_of(number) >> 52);
    return (power & 0x7ff) == 0 || (power & 0x7ff) == 0x7ff ? 0 : power;
}

/* Whether all numbers from sum + lowest to sum + highest are of this power, with a margin. */
static __device__ __forceinline__ bool stays(double sum, double lowest, double highest, unsigned power)
{
    const double margin = fabs(sum) * LONG_SUM_MARGIN;
    return power != 0 && power_of(sum + lowest - margin) == power && power_of(sum + highest + margin) == power;
}

/* The run of a chunk. */
static __device__ __forceinline__ long_run run_of_chunk(const long_runs *list, unsigned chunk)
{
    for (unsigned i = 0; i < list->count; i++) {
        const long_run run = list->runs[i];
        if (chunk - run.chunk < chunks_of(run.count)) return run;
    }
    return {};
}

/* ---- kernels --------------------------------------------------------------------------------------------- */

/* The sum of each chunk, roughly. */
template <typename N>
static __global__ void __launch_bounds__(LONG_SUM_THREADS)
    total_chunks(const N *numbers, const long_runs *list, double *totals)
{
    const int lane = threadIdx.x & 31;
    for (unsigned chunk = (blockIdx.x * LONG_SUM_THREADS + threadIdx.x) / 32; chunk < list->chunks;
         chunk += gridDim.x * LONG_SUM_THREADS / 32) {
        const long_run run = run_of_chunk(list, chunk);
        const int64_t begin = (int64_t)(chunk - run.chunk) * CHUNK_NUMBERS, end = min(begin + CHUNK_NUMBERS, run.count);
        double total = 0;
        for (int64_t i = begin + lane; i < end; i += 32) total += (double)numbers[run.from + i];
        total = group_sum<32>(total);
        if (lane == 0) totals[chunk] = total;
    }
}

/* Each chunk's total becomes that of the chunks of its run before it. A block a run. */
static __global__ void __launch_bounds__(LONG_SUM_THREADS) scan_chunks(const long_runs *list, double *totals)
{
    __shared__ double part[LONG_SUM_THREADS];
    if (blockIdx.x >= list->count) return;
    const long_run run = list->runs[blockIdx.x];
    const unsigned count = chunks_of(run.count), each = (count + LONG_SUM_THREADS - 1) / LONG_SUM_THREADS;
    const unsigned begin = min(threadIdx.x * each, count), end = min(begin + each, count);
    double sum = 0, before = 0;
    for (unsigned i = begin; i < end; i++) sum += totals[run.chunk + i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned i = 0; i < threadIdx.x; i++) before += part[i];
    for (unsigned i = begin; i < end; i++) {
        const double own = totals[run.chunk + i];
        totals[run.chunk + i] = before;
        before += own;
    }
}

/* What each chunk adds; befores[i]: the sum before it, roughly. Sums begin amid the powers of two, where they have the
 * most room. */
template <typename N>
static __global__ void __launch_bounds__(LONG_SUM_THREADS)
    grow_chunks(const N *numbers, const long_runs *list, const double *befores, chunk_growth *growths)
{
    __shared__ double tiles[LONG_SUM_THREADS / 32][SUM_PLACES];
    const int lane = threadIdx.x & 31;
    for (unsigned chunk = (blockIdx.x * LONG_SUM_THREADS + threadIdx.x) / 32; chunk < list->chunks;
         chunk += gridDim.x * LONG_SUM_THREADS / 32) {
        const long_run run = run_of_chunk(list, chunk);
        const int64_t begin = (int64_t)(chunk - run.chunk) * CHUNK_NUMBERS, end = min(begin + CHUNK_NUMBERS, run.count);
        const unsigned power = power_of(befores[chunk]);
        const double middle = __longlong_as_double((long long)((uint64_t)power << 52 | (uint64_t)1 << 51));
        const double neighbour = __longlong_as_double((long long)(bits_of(middle) | 1));
        chunk_growth all = {{0, 0}, 0, 0, power};
        for (int64_t base = begin; base < end && all.power; base += SUM_STEP) {
            double own[SUM_EACH];
            load_numbers(numbers + run.from + base, end - base, own);
            pass_numbers(own, tiles[threadIdx.x / 32]);
            double same = middle, other = neighbour, low = middle, high = middle;
#pragma unroll
            for (int i = 0; i < SUM_EACH; i++) {
                same = __dadd_rn(same, own[i]);
                other = __dadd_rn(other, own[i]);
                low = fmin(low, same);
                high = fmax(high, same);
            }
            const growth added = {__dadd_rn(same, -middle), __dadd_rn(other, -neighbour)};
            const growth until = join_lanes(added, middle);
            growth before = {__shfl_up_sync(FULL_WARP, until.same, 1), __shfl_up_sync(FULL_WARP, until.other, 1)};
            if (lane == 0) before = {0, 0};
            const bool known = stays(low, 0, 0, power) && stays(high, 0, 0, power) && same == same;
            low = all.added.same + before.same + (low - middle);
            high = all.added.same + before.same + (high - middle);
#pragma unroll
            for (int step = 16; step > 0; step /= 2) {
                low = fmin(low, __shfl_xor_sync(FULL_WARP, low, step));
                high = fmax(high, __shfl_xor_sync(FULL_WARP, high, step));
            }
            all.lowest = fmin(all.lowest, low);
            all.highest = fmax(all.highest, high);
            const growth step = {__shfl_sync(FULL_WARP, until.same, 31), __shfl_sync(FULL_WARP, until.other, 31)};
            all.added = join_growths(all.added, step, middle);
            if (!__all_sync(FULL_WARP, known) || !stays(middle, all.lowest, all.highest, power)) all.power = 0;
        }
        if (lane == 0) growths[chunk] = all;
    }
}

/* The sum of a run, by a warp, added up from its chunks. */
template <typename N>
static __device__ double join_chunks(const N *numbers, const long_run &run, const chunk_growth *growths, double *tile)
{
    const int lane = threadIdx.x & 31;
    const unsigned chunks = chunks_of(run.count);
    double sum = -0.0;
    for (unsigned base = 0; base < chunks; base += 32) {
        const int count = (int)min(chunks - base, 32u);
        chunk_growth own = {};
        if (lane < count) own = growths[run.chunk + base + lane];
        for (int first = 0; first < count;) { /* chunks before it are in the sum */
            const bool odd = bits_of(sum) & 1, here = lane >= first && own.power && own.power == power_of(sum);
            growth added = {0, 0};
            if (here && odd) added = {own.added.other, own.added.same};
            else if (here) added = own.added;
            const growth until = join_lanes(added, sum);
            const double before = __shfl_up_sync(FULL_WARP, until.same, 1);
            const double begin = lane > first ? __dadd_rn(sum, before) : sum;
            const bool known = here && stays(begin, own.lowest, own.highest, own.power);
            const unsigned unknown = __ballot_sync(FULL_WARP, lane >= first && !known);
            const int end = unknown ? min(__ffs((int)unknown) - 1, count) : count;
            const double reached = __dadd_rn(sum, __shfl_sync(FULL_WARP, until.same, max(end - 1, 0)));
            if (end > first) sum = reached;
            first = end;
            if (first == count) break;
            const int64_t at = (int64_t)(base + first++) * CHUNK_NUMBERS;
            sum = sum_in_order(numbers + run.from + at, min(run.count - at, (int64_t)CHUNK_NUMBERS), tile, sum);
        }
    }
    return sum;
}

/* finish(run, sum) of each run, a warp each. */
template <typename N, typename Finish>
static __global__ void __launch_bounds__(32)
    sum_long_runs(const N *numbers, const long_runs *list, const chunk_growth *growths, Finish finish)
{
    __shared__ double tile[SUM_PLACES];
    if (blockIdx.x >= list->count) return;
    const long_run run = list->runs[blockIdx.x];
    const double sum = join_chunks(numbers, run, growths, tile);
    if (threadIdx.x == 0) finish(run, sum);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* A sum goes where the run's place is. */
template <typename V> struct write_sum {
    V *values;
    __device__ __forceinline__ void operator()(const long_run &run, double sum) const { values[run.place] = (V)sum; }
};

/* The most chunks that runs of `numbers` numbers in all can have. */
static inline int64_t most_chunks(int64_t numbers) { return numbers / CHUNK_NUMBERS + MOST_LONG_RUNS; }

/* Sums the listed runs, whose list is being made on the stream; `most`: of all their numbers. `totals` and `growths`
 * have room for most_chunks(most). */
template <typename N, typename Finish>
static sp_status cuda_launch_long_sums(sp_context *context, const N *numbers, const long_runs *list, int64_t most,
                                       double *totals, chunk_growth *growths, cudaStream_t stream, Finish finish)
{
    const int64_t warps = LONG_SUM_THREADS / 32;
    const unsigned blocks = (unsigned)((most_chunks(most) + warps - 1) / warps);
    total_chunks<<<blocks, LONG_SUM_THREADS, 0, stream>>>(numbers, list, totals);
    CUDA_CHECK(cudaGetLastError());
    scan_chunks<<<MOST_LONG_RUNS, LONG_SUM_THREADS, 0, stream>>>(list, totals);
    CUDA_CHECK(cudaGetLastError());
    grow_chunks<<<blocks, LONG_SUM_THREADS, 0, stream>>>(numbers, list, totals, growths);
    CUDA_CHECK(cudaGetLastError());
    sum_long_runs<<<MOST_LONG_RUNS, 32, 0, stream>>>(numbers, list, growths, finish);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* The same on the context's stream, with room of its own. */
template <typename N, typename Finish>
static sp_status cuda_sum_long_runs(sp_context *context, const N *numbers, const long_runs *list, int64_t most,
                                    Finish finish)
{
    device_array<double> totals;
    device_array<chunk_growth> growths;
    CHECK(totals.allocate(context, most_chunks(most)));
    CHECK(growths.allocate(context, most_chunks(most)));
    return cuda_launch_long_sums(context, numbers, list, most, totals.data, growths.data,
                                 cuda_state_of(context)->stream, finish);
}

#endif
