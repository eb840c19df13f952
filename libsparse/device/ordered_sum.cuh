/* The sum of numbers in order, with the bits of adding one after another, by a warp whose lanes add beside each other.
 * Header-only, as check.cuh.
 *
 * Between two powers of two all sums are multiples of one unit, and by how much a number changes a sum, rounding
 * included, depends on nothing but whether that multiple is even or odd. So each lane adds its numbers to the sum so
 * far and to that sum's neighbour of the other parity; a scan says from these where each lane begins; and each adds its
 * numbers once more from there. What a lane ends with is right if that before it is right and ends, bit for bit, where
 * the lane began: nothing rests on the guess but time. Behind the first lane that is wrong, as where sums pass a power
 * of two, all is done again from the last that is right. A round of 512 numbers waits for twice 16 additions and a scan
 * of five steps; one thread would wait for 512 additions.
 */
#ifndef DEVICE_ORDERED_SUM_CUH
#define DEVICE_ORDERED_SUM_CUH

#include "device/keys.cuh"
#include "device/sums.cuh"

/* What a lane adds at once, and a warp. */
enum { SUM_EACH = 16, SUM_STEP = 32 * SUM_EACH };

/* By how much numbers change a sum that is an even or odd multiple of its unit as `sum` is, and one that is not. */
struct growth {
    double same, other;
};
static __device__ __forceinline__ growth join_growths(const growth &first, const growth &second, double sum)
{
    const bool turned = (bits_of(__dadd_rn(sum, first.same)) ^ bits_of(sum)) & 1;
    const bool turned_too = (bits_of(__dadd_rn(sum, first.other)) ^ bits_of(sum)) & 1;
    return {__dadd_rn(first.same, turned ? second.other : second.same),
            __dadd_rn(first.other, turned_too ? second.same : second.other)};
}

/* What the lanes up to each add to `sum`. */
static __device__ __forceinline__ growth join_lanes(growth until, double sum)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const growth before = {__shfl_up_sync(FULL_WARP, until.same, step),
                               __shfl_up_sync(FULL_WARP, until.other, step)};
        const growth both = join_growths(before, until, sum);
        if (lane >= step) until = both;
    }
    return until;
}

/* The sum and then own[0..] of one lane after the other. */
static __device__ double add_lanes(const double (&own)[SUM_EACH], double sum)
{
    const int lane = threadIdx.x & 31;
    for (int first = 0; first < 32;) { /* lanes before it are in the sum */
        const double neighbour = __longlong_as_double((long long)(bits_of(sum) ^ 1));
        double same = sum, other = neighbour;
#pragma unroll
        for (int i = 0; i < SUM_EACH; i++) {
            same = __dadd_rn(same, own[i]);
            other = __dadd_rn(other, own[i]);
        }
        growth until = {0, 0};
        if (lane >= first) until = {__dadd_rn(same, -sum), __dadd_rn(other, -neighbour)};
        until = join_lanes(until, sum);
        /* Sums that stay infinite, or -0, are only right as they are. */
        const double more = __shfl_up_sync(FULL_WARP, until.same, 1);
        const bool moves = lane > first && (more < 0 || more > 0);
        const double begin = moves ? __dadd_rn(sum, more) : sum;
        double end = begin;
#pragma unroll
        for (int i = 0; i < SUM_EACH; i++) end = __dadd_rn(end, own[i]);
        const double end_before = __shfl_up_sync(FULL_WARP, end, 1);
        const bool wrong = lane > first && bits_of(end_before) != bits_of(begin);
        const unsigned wrongs = __ballot_sync(FULL_WARP, wrong);
        first = wrongs ? __ffs((int)wrongs) - 1 : 32;
        sum = __shfl_sync(FULL_WARP, end, first - 1);
    }
    return sum;
}

/* The next SUM_STEP numbers of a warp, side by side, from load(at); -0, which changes nothing, behind the last of
 * `count`. */
template <typename Load>
static __device__ __forceinline__ void load_next(const Load &load, int64_t count, double (&next)[SUM_EACH])
{
#pragma unroll
    for (int i = 0; i < SUM_EACH; i++) {
        const int at = 32 * i + (threadIdx.x & 31);
        next[i] = at < count ? (double)load(at) : -0.0;
    }
}
template <typename V>
static __device__ __forceinline__ void load_numbers(const V *numbers, int64_t count, double (&next)[SUM_EACH])
{
    load_next([&](int at) { return numbers[at]; }, count, next);
}

/* Passes them to the lanes that add them, SUM_EACH neighbours each. A place of the tile in 17 is empty, so that lanes
 * use different banks. */
enum { SUM_PLACES = SUM_STEP + SUM_STEP / SUM_EACH };
static __device__ __forceinline__ void pass_numbers(double (&own)[SUM_EACH], double *tile)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < SUM_EACH; i++) tile[32 * i + lane + (32 * i + lane) / SUM_EACH] = own[i];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < SUM_EACH; i++) own[i] = tile[lane * (SUM_EACH + 1) + i];
    __syncwarp();
}

/* `sum` and then load(0), load(1) and so on, by a warp; -0 of none. */
template <typename Load>
static __device__ double sum_loaded(const Load &load, int64_t count, double *tile, double sum = -0.0)
{
    double next[SUM_EACH], own[SUM_EACH];
    load_next(load, count, next);
    for (int64_t base = 0; base < count; base += SUM_STEP) {
        const int64_t behind = base + SUM_STEP;
        memcpy(own, next, sizeof own);
        pass_numbers(own, tile);
        if (behind < count) load_next([&](int at) { return load(behind + at); }, count - behind, next);
        sum = add_lanes(own, sum);
    }
    return sum;
}
template <typename V>
static __device__ double sum_in_order(const V *numbers, int64_t count, double *tile, double sum = -0.0)
{
    return sum_loaded([&](int64_t at) { return numbers[at]; }, count, tile, sum);
}

/* The same of numbers in shared memory, the i-th of which is at(i). */
template <typename At> static __device__ double sum_in_order_at(int count, At at)
{
    const int lane = threadIdx.x & 31;
    double own[SUM_EACH], sum = -0.0;
    for (int base = lane * SUM_EACH; base - lane * SUM_EACH < count; base += SUM_STEP) {
#pragma unroll
        for (int i = 0; i < SUM_EACH; i++) own[i] = base + i < count ? at(base + i) : -0.0;
        sum = add_lanes(own, sum);
    }
    return sum;
}

#endif
