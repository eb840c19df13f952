/* The classes of C's rows, by their entries: counted, told to the host, which launches by them, and listed. Groups
 * that are only counted get their place in the stage on the way, and their nodes are put together.
 *
 * Bytes a row: 16 read and 21 written, 5 and 4 to be listed. */
#include <stdio.h>

#include "contract_run.cuh"

enum { PLACED = 1024 };     /* nodes that a block places, a few of each thread's on their way at once */
enum { LEAST_SORTED = 64 }; /* entries of the longest rows of class SORTED */

/* ---- device --------------------------------------------------------------------------------------------- */

/* Gives groups that are only counted their places, in any order (places: entries of the stage and nodes before theirs;
 * sizes: how many nodes they have), unless labels ascend. */
template <typename V>
static __global__ void __launch_bounds__(256)
    classify_rows(contract_job<V> job, class_limits limits, unsigned long long *places, int32_t *sizes,
                  count_letter *letter)
{
    __shared__ unsigned members[CLASSES], most_nodes, last;
    __shared__ unsigned long long before[256 / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    wait_ahead();
    const bool allots = job.count_shift && job.totals->unsorted;
    if (threadIdx.x < CLASSES) members[threadIdx.x] = 0;
    if (threadIdx.x == 0) most_nodes = 0;
    for (unsigned i = threadIdx.x; i < sizeof *job.spare / sizeof(unsigned) && blockIdx.x == 0; i += 256)
        ((unsigned *)job.spare)[i] = 0;
    __syncthreads();
    unsigned nodes = 0;
    for (int64_t base = (int64_t)blockIdx.x * 256; base < job.groups; base += (int64_t)gridDim.x * 256) {
        const int64_t p = base + threadIdx.x;
        const bool there = p < job.groups;
        const unsigned long long own = there && job.count_shift ? job.tallies[p] : 0;
        if (own) job.tallies[p] = 0;
        int64_t begin = 0, entries = (int64_t)own;
        if (job.count_shift) {
            if (own && !allots) begin = job.ranges[p].begin;
        } else if (there) {
            entries = job.ranges[p].end - job.ranges[p].begin;
        }
        if (allots) {
            unsigned long long upto = own;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned long long other = __shfl_up_sync(FULL_WARP, upto, step);
                if (lane >= step) upto += other;
            }
            if (lane == 31) before[warp] = upto;
            __syncthreads();
            if (threadIdx.x == 0) {
                unsigned long long all = 0;
                for (int w = 0; w < 256 / 32; w++) all += before[w];
                all = all ? atomicAdd(&job.totals->allotted, all) : 0;
                for (int w = 0; w < 256 / 32; w++) {
                    const unsigned long long some = before[w];
                    before[w] = all;
                    all += some;
                }
            }
            __syncthreads();
            const unsigned long long place = before[warp] + upto - own;
            __syncthreads();
            begin = (int64_t)(place & counted_entries(job));
            if (there) {
                job.firsts[p] = (int32_t)(place >> job.count_shift);
                sizes[p] = (int32_t)(own >> job.count_shift);
                places[p] = place;
            }
        }
        if (!there) continue;
        job.lengths[p] = 0;
        if (job.count_shift) {
            nodes = max(nodes, (unsigned)((unsigned long long)entries >> job.count_shift));
            entries &= (int64_t)counted_entries(job);
            job.ranges[p] = {begin, begin + entries};
        }
        const int c = entries == 0               ? IDLE
                      : entries <= 8             ? SMALL_8
                      : entries <= 16            ? SMALL_16
                      : entries <= 32            ? SMALL_32
                      : entries <= LEAST_SORTED  ? SORTED
                      : entries <= limits.sorted ? SORTED + 26 - __clz((int)entries - 1)
                      : entries <= RANKED_THREADS * RANKED_ITEMS ? RANKED
                      : entries <= limits.longer                 ? LONGER
                      : entries <= limits.longest                ? LONGEST
                                                                 : WIDE;
        job.classes[p] = (uint8_t)c;
        atomicAdd(&members[c], 1u);
        if (c == WIDE) {
            atomicAdd(&job.totals->wide_entries, (unsigned long long)cells_in(job, entries));
            atomicAdd(&job.totals->parts, (unsigned long long)parts_of(job, entries));
        }
    }
    if (nodes) atomicMax(&most_nodes, nodes);
    __syncthreads();
    if (threadIdx.x < CLASSES && members[threadIdx.x])
        atomicAdd(&job.totals->members[threadIdx.x], members[threadIdx.x]);
    if (threadIdx.x == 0 && most_nodes) atomicMax(&job.totals->most_nodes, most_nodes);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&job.totals->blocks, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    send_totals(job.totals, letter, &letter->counted);
}

/* Where the entries of nodes begin in the stage and in G, 32 bits each, by group and in any order within it, by the
 * blocks from `first` on, PLACED each. Nodes that are in no group, or have no entries, come last. To be written one by
 * one 4 to 8 bytes take a million nodes 20 µs, so that 16 in two arrays would take 50. */
template <typename V>
static __device__ __forceinline__ void place_nodes(const contract_job<V> &job, int first,
                                                   const unsigned long long *preceding,
                                                   const unsigned long long *places, uint2 *placed)
{
    if (!job.totals->unsorted) return;
    const int64_t begin = (int64_t)(blockIdx.x - first) * PLACED + threadIdx.x;
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

/* Lists the rows of each class, class by class, by the first blocks; within a class in pieces of 1,024 rows that lie
 * together. The other blocks place nodes. */
template <typename V>
static __global__ void __launch_bounds__(256)
    list_rows(contract_job<V> job, int lists, const unsigned long long *preceding, const unsigned long long *places,
              uint2 *placed)
{
    __shared__ unsigned members[CLASSES], place[CLASSES];
    wait_ahead();
    if ((int)blockIdx.x >= lists) {
        place_nodes(job, lists, preceding, places, placed);
        return;
    }
    for (int64_t base = (int64_t)blockIdx.x * 1024; base < job.groups; base += (int64_t)lists * 1024) {
        if (threadIdx.x < CLASSES) members[threadIdx.x] = 0;
        __syncthreads();
        int own[4];
        unsigned at[4];
        for (int u = 0; u < 4; u++) {
            const int64_t p = base + u * 256 + threadIdx.x;
            own[u] = p < job.groups ? job.classes[p] : IDLE;
            if (own[u] != IDLE) at[u] = atomicAdd(&members[own[u]], 1u);
        }
        __syncthreads();
        if (threadIdx.x < CLASSES && members[threadIdx.x])
            place[threadIdx.x] = atomicAdd(&job.totals->placed[threadIdx.x], members[threadIdx.x]);
        __syncthreads();
        for (int u = 0; u < 4; u++) {
            if (own[u] == IDLE) continue;
            const int64_t p = base + u * 256 + threadIdx.x;
            const int64_t entries = job.ranges[p].end - job.ranges[p].begin;
            unsigned to = place[own[u]] + at[u];
            if (own[u] == WIDE) /* the longest first, since a block each sums them */
                to = entries > 2 * PART ? atomicAdd(&job.totals->wide_long, 1u)
                                        : job.totals->members[WIDE] - 1 - atomicAdd(&job.totals->wide_short, 1u);
            job.list[first_of_class(job.totals, own[u]) + to] = (int32_t)p;
            if (own[u] != WIDE) continue;
            const int64_t cells = cells_in(job, entries);
            job.cells_of[to] = (int64_t)atomicAdd(&job.totals->wide_placed, (unsigned long long)cells);
            const unsigned parts = parts_of(job, entries);
            const unsigned long long first = atomicAdd(&job.totals->parts_placed, (unsigned long long)parts);
            for (unsigned part = 0; part < parts; part++) job.parts[first + part] = make_uint2(to, part);
        }
        __syncthreads();
    }
}

/* ---- host ----------------------------------------------------------------------------------------------- */

template <typename V> sp_status list_classes(contract_run<V> *run)
{
    const contract_job<V> &job = run->job;
    const int64_t places = job.count_shift ? blocks_of(job.nodes + 1, PLACED) : 0;
    int lists;
    TRY(launch_full(run, classify_rows<V>, 256, blocks_of(job.groups, 256) + (int64_t)1, job, run->limits, run->places,
                    run->sizes, run->letter));
    TRY(cuda_full_grid(run->context, list_rows<V>, 256, 0, &lists));
    if (lists > (int)blocks_of(job.groups, 1024)) lists = (int)blocks_of(job.groups, 1024);
    return launch_early(run, list_rows<V>, 256, lists + places, job, lists, run->preceding, run->places,
                        run->placed);
}

/* Waits until what the device writes to the host's memory has arrived: some 5 µs less than for the stream. */
sp_status await_letter(sp_context *context, const unsigned *arrived)
{
    enum { SPINS = 10000 }; /* between looks at the stream, whose work may have failed */
    for (int spins = 0; !__atomic_load_n(arrived, __ATOMIC_ACQUIRE); spins = (spins + 1) % SPINS) {
        if (spins < SPINS - 1) continue;
        const cudaError_t error = cudaStreamQuery(stream_of(context));
        if (error == cudaErrorNotReady) continue;
        CUDA_TRY(error);
        if (!__atomic_load_n(arrived, __ATOMIC_ACQUIRE))
            return sp_fail(context, SP_ERROR_DEVICE, "%s: counts have not arrived", context->device_name);
    }
    return SP_OK;
}

/* What has been counted, once the device has; whether the labels are good. */
template <typename V> sp_status read_totals(contract_run<V> *run, contract_totals *totals)
{
    sp_context *context = run->context;
    contract_job<V> &job = run->job;
    TRY(await_letter(context, &run->letter->counted));
    *totals = run->letter->totals;
    run->grouped = sp_seconds();
    if (totals->bad_node == 0) return SP_OK;
    const unsigned node = UINT_MAX - totals->bad_node;
    int32_t label;
    CUDA_TRY(cudaMemcpyAsync(&label, job.labels + node, sizeof label, cudaMemcpyDeviceToHost, stream_of(context)));
    CUDA_TRY(cudaStreamSynchronize(stream_of(context)));
    return sp_fail(context, SP_ERROR_ARGUMENT, "node %u has label %d and there are %lld groups", node, label,
                   (long long)job.groups);
}

/* Names the classes that have rows; returns their number. */
int name_groups(const contract_totals *totals, sp_spgemm_group *group)
{
    static const char *const names[CLASSES] = {"", "small 8", "small 16", "small 32", "to 64", "to 128", "to 256",
                                               "to 512", "to 1024", "to 2048", "to 4096", "to 8192", "wide"};
    int groups = 0;
    for (int c = IDLE + 1; c < CLASSES; c++) {
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
