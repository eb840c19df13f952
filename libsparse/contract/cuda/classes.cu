/* The classes of C's rows, by their entries: counted, listed, and told to the host, which launches by them. Groups
 * that are only counted get their place in the stage on the way, and their nodes are put together.
 *
 * Bytes a row: 8 read and 49 written. */
#include <stdio.h>

#include "contract/cuda/run.cuh"

enum { PLACED = 1024 };     /* nodes that a block places, a few of each thread's on their way at once */
enum { CLASSED = 1024 };    /* rows of a block; 512 blocks of half a million share what is counted of all */
static_assert(CLASSED == 32 * 32, "a warp sums up its block's warps");
enum { LEAST_SORTED = 64 }; /* entries of the longest rows of class TO_64 */

/* ---- device --------------------------------------------------------------------------------------------- */

/* Where a wide row is listed: the longest first, since a block each sums them, so before all others. */
template <typename V>
static __device__ __forceinline__ void list_wide(const contract_args<V> &job, int32_t p, int64_t entries)
{
    contract_totals *totals = job.totals;
    const int to = entries > 2 * PART ? -1 - (int)atomicAdd(&totals->wide_long, 1u)
                                      : (int)atomicAdd(&totals->wide_short, 1u);
    const unsigned parts = parts_of(job, entries);
    const unsigned long long first = atomicAdd(&totals->parts, (unsigned long long)parts);
    atomicAdd(&totals->wide_stage, (unsigned long long)entries);
    job.list[job.lists[WIDE_ROWS] + to] = p;
    job.cells_of[to] = (int64_t)atomicAdd(&totals->wide_entries, (unsigned long long)cells_in(job, entries));
    for (unsigned part = 0; part < parts; part++) job.parts[first + part] = make_uint2((unsigned)to, part);
}

static __device__ __forceinline__ int class_of(const class_limits &limits, int64_t entries)
{
    return entries == 0               ? NO_ENTRIES
           : entries <= 8             ? TO_8
           : entries <= 16            ? TO_16
           : entries <= 32            ? TO_32
           : entries <= LEAST_SORTED  ? TO_64
           : entries <= limits.sorted ? TO_64 + 26 - __clz((int)entries - 1)
           : entries <= limits.ranked  ? TO_2048
           : entries <= limits.longer  ? TO_4096
           : entries <= limits.longest ? TO_8192
                                       : WIDE_ROWS;
}

/* Notes what of all comes before a group, and what it has; returns where its entries begin in the stage. */
template <typename V>
static __device__ __forceinline__ int64_t place_group(const contract_args<V> &job, int64_t p, unsigned long long to,
                                                      unsigned long long own, unsigned long long *places,
                                                      int32_t *sizes)
{
    job.firsts[p] = (int32_t)(to >> job.count_shift);
    sizes[p] = (int32_t)(own >> job.count_shift);
    places[p] = to;
    return (int64_t)(to & counted_entries(job));
}

/* Puts rows in classes and lists them there, a block's of a class together. Groups that are only counted get their
 * places, in any order of blocks (places: entries of the stage and nodes before theirs; sizes: how many nodes they
 * have), unless labels ascend. */
template <typename V>
static __global__ void __launch_bounds__(CLASSED)
    classify_rows(contract_args<V> job, class_limits limits, unsigned long long *places, int32_t *sizes,
                  posted_counts *posted)
{
    __shared__ unsigned members[ROW_CLASSES], place[ROW_CLASSES], most_nodes, last;
    __shared__ unsigned long long before[CLASSED / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t p = (int64_t)blockIdx.x * CLASSED + threadIdx.x;
    if (threadIdx.x < ROW_CLASSES) members[threadIdx.x] = 0;
    if (threadIdx.x == 0) most_nodes = 0;
    __syncthreads();
    wait_ahead();
    const bool there = p < job.groups, counted = job.count_shift, allots = counted && job.totals->unsorted;
    if (blockIdx.x == 0 && threadIdx.x < sizeof *job.spare / sizeof(unsigned)) ((unsigned *)job.spare)[threadIdx.x] = 0;
    const unsigned long long own = there && counted ? job.tallies[p] : 0;
    stage_range range = {0, (int64_t)(own & counted_entries(job))};
    if (there && !counted) range = job.ranges[p];
    if (own && !allots) range.begin = job.ranges[p].begin;
    const int64_t entries = counted ? range.end : range.end - range.begin;
    const int c = class_of(limits, entries);
    const unsigned alike = __match_any_sync(FULL_WARP, c), head = __ffs((int)alike) - 1;
    unsigned at = lane == (int)head ? atomicAdd(&members[c], (unsigned)__popc(alike)) : 0;
    at = __shfl_sync(FULL_WARP, at, head) + __popc(alike & lanes_below());
    if (c == WIDE_ROWS) list_wide(job, (int32_t)p, entries);
    const unsigned nodes = counted ? warp_max((unsigned)(own >> job.count_shift)) : 0;
    const unsigned long long upto = sum_until(own);
    if (lane == 31) before[warp] = upto;
    if (lane == 31 && nodes) atomicMax(&most_nodes, nodes);
    __syncthreads();
    if (warp == 0) {
        if (lane < ROW_CLASSES && members[lane]) place[lane] = atomicAdd(&job.totals->members[lane], members[lane]);
        if (lane == 0 && most_nodes) atomicMax(&job.totals->most_nodes, most_nodes);
        const unsigned long long its = before[lane], until = sum_until(its);
        unsigned long long first = lane == 31 && allots ? atomicAdd(&job.totals->allotted, until) : 0;
        before[lane] = __shfl_sync(FULL_WARP, first, 31) + until - its;
    }
    __syncthreads();
    if (allots && there) range.begin = place_group(job, p, before[warp] + upto - own, own, places, sizes);
    if (counted && there) {
        job.ranges[p] = {range.begin, range.begin + entries};
        job.tallies[p] = 0;
    }
    if (there) {
        job.lengths[p] = 0;
        job.classes[p] = (uint8_t)c;
    }
    if (c != NO_ENTRIES && c != WIDE_ROWS) job.list[job.lists[c] + place[c] + at] = (int32_t)p;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&job.totals->blocks, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    send_totals(job.totals, posted, &posted->counted);
}

/* Where the entries of nodes begin in the stage and in G, 32 bits each, by group and in any order within it, PLACED a
 * block. Nodes that are in no group, or have no entries, come last. To be written one by one 4 to 8 bytes take a
 * million nodes 20 µs, so that 16 in two arrays would take 50. Launched before the host knows whether nodes are in
 * order. */
template <typename V>
static __global__ void __launch_bounds__(256)
    place_nodes(contract_args<V> job, const unsigned long long *preceding, const unsigned long long *places,
                uint2 *placed)
{
    wait_ahead();
    if (!job.totals->unsorted) return;
    const int64_t begin = (int64_t)blockIdx.x * PLACED + threadIdx.x;
    const unsigned long long allotted = job.totals->allotted;
    unsigned long long to[PLACED / 256];
    int32_t label[PLACED / 256];
    uint32_t source[PLACED / 256];
#pragma unroll
    for (int u = 0; u < PLACED / 256; u++) {
        const int64_t i = begin + u * 256;
        to[u] = i < job.nodes ? __ldg(preceding + i) : UNLISTED;
        label[u] = i < job.nodes ? job.labels[i] : 0;
        source[u] = i < job.nodes ? (uint32_t)job.g.offsets[i] : 0;
    }
#pragma unroll
    for (int u = 0; u < PLACED / 256; u++)
        if (to[u] != UNLISTED) to[u] += __ldg(places + label[u]);
#pragma unroll
    for (int u = 0; u < PLACED / 256; u++) {
        const int64_t i = begin + u * 256, k = (int64_t)(to[u] >> job.count_shift);
        if (to[u] != UNLISTED) placed[k] = make_uint2((uint32_t)(to[u] & counted_entries(job)), source[u]);
        if (i < (int64_t)(allotted >> job.count_shift) || i > job.nodes) continue;
        placed[i] = make_uint2((uint32_t)(allotted & counted_entries(job)), 0); /* is read ahead */
    }
}

/* ---- host ----------------------------------------------------------------------------------------------- */

template <typename V> sp_status list_classes(contract_run<V> *run)
{
    const contract_args<V> &job = run->job;
    CHECK(launch_early(run, classify_rows<V>, CLASSED, max((int64_t)blocks_of(job.groups, CLASSED), (int64_t)1), job,
                       run->limits, run->places, run->sizes, run->posted));
    if (!job.count_shift) return SP_OK;
    return launch_early(run, place_nodes<V>, 256, blocks_of(job.nodes + 1, PLACED), job, run->preceding, run->places,
                        run->placed);
}

/* Waits until what the device writes to the host's memory has arrived: some 5 µs less than for the stream. */
sp_status await_posted(sp_context *context, const unsigned *arrived)
{
    enum { SPINS = 10000 }; /* between looks at the stream, whose work may have failed */
    for (int spins = 0; !__atomic_load_n(arrived, __ATOMIC_ACQUIRE); spins = (spins + 1) % SPINS) {
        if (spins < SPINS - 1) continue;
        const cudaError_t error = cudaStreamQuery(stream_of(context));
        if (error == cudaErrorNotReady) continue;
        CUDA_CHECK(error);
        if (!__atomic_load_n(arrived, __ATOMIC_ACQUIRE))
            return sp_fail(context, SP_ERROR_DEVICE, "%s: counts have not arrived", context->device_name);
    }
    return SP_OK;
}

/* What has been counted, once the device has; whether the labels are good. */
template <typename V> sp_status read_totals(contract_run<V> *run, contract_totals *totals)
{
    sp_context *context = run->context;
    contract_args<V> &job = run->job;
    CHECK(await_posted(context, &run->posted->counted));
    *totals = run->posted->totals;
    job.cells_of -= totals->wide_long;
    run->grouped = wall_seconds();
    if (totals->bad_node == 0) return SP_OK;
    const unsigned node = UINT_MAX - totals->bad_node;
    int32_t label;
    CUDA_CHECK(cudaMemcpyAsync(&label, job.labels + node, sizeof label, cudaMemcpyDeviceToHost, stream_of(context)));
    CUDA_CHECK(cudaStreamSynchronize(stream_of(context)));
    return sp_fail(context, SP_ERROR_ARGUMENT, "node %u has label %d and there are %lld groups", node, label,
                   (long long)job.groups);
}

/* Names the classes that have rows; returns their number. */
int name_groups(const contract_totals *totals, sp_spgemm_group *group)
{
    static const char *const names[ROW_CLASSES] = {"", "small 8", "small 16", "small 32", "to 64", "to 128", "to 256",
                                               "to 512", "to 1024", "to 2048", "to 4096", "to 8192", "wide"};
    int groups = 0;
    for (int c = NO_ENTRIES + 1; c < ROW_CLASSES; c++) {
        if (totals->members[c] == 0) continue;
        snprintf(group[groups].name, sizeof group->name, "%s", names[c]);
        group[groups++].count = totals->members[c];
    }
    return groups;
}

template sp_status list_classes(contract_run<float> *);
template sp_status list_classes(contract_run<double> *);
template sp_status read_totals(contract_run<float> *, contract_totals *);
template sp_status read_totals(contract_run<double> *, contract_totals *);
