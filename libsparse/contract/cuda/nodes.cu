/* The nodes of a contraction by group: counted with their groups' entries, put there in any order, and, where rows of C
 * need it, ordered within each: by some lanes of a warp, a warp or a block; by radix where a group has very many.
 *
 * Bytes a node: 12 read and 8 written to count, 28 and 8 to place, 16 and 20 to order; 48 or more where they are
 * sorted. */
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "contract/cuda/run.cuh"
#include "device/radix.cuh"

/* ---- device --------------------------------------------------------------------------------------------- */

/* Groups of fewer than MANY_NODES on average are ordered by half a warp (10 nodes each: 28 µs for a million nodes, a
 * warp 46), of fewer than FEW_NODES by a quarter, others by a warp. */
enum { FEW_NODES = 4, MANY_NODES = 12, NODE_THREADS = 128 };

/* A warp orders this many nodes, a block of the two kinds the others; one group of more means that all nodes are
 * sorted. */
enum { MOST_ORDERED = 256, MOST_LARGE = 2048, MOST_LARGEST = 16384 };

/* Counts the entries and nodes of each group, and looks for bad labels. preceding[i] is what of its group came before
 * node i, in any order, or UNLISTED where it has no entries; nodes of a label that follow each other are counted at
 * once. Finds whether labels ascend: then groups are consecutive rows of G, and the first node of each says which. */
template <typename V>
static __global__ void __launch_bounds__(256) size_groups(contract_args<V> job, unsigned long long *preceding)
{
    wait_ahead();
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int lane = threadIdx.x & 31;
    const int32_t label = i < job.nodes ? job.labels[i] : -1;
    const int64_t begin = job.g.offsets[min(i, job.nodes)], upto = job.g.offsets[min(i + 1, job.nodes)];
    int32_t previous = __shfl_up_sync(FULL_WARP, label, 1);
    if (lane == 0) previous = i > 0 && i < job.nodes ? job.labels[i - 1] : 0;
    const bool member = label >= 0 && label < job.groups, listed = member && upto > begin;
    if (label >= job.groups) atomicMax(&job.totals->bad_node, UINT_MAX - (unsigned)i);
    if (i < job.nodes && job.short_labels) job.short_labels[i] = member ? (uint16_t)label : UINT16_MAX;
    const unsigned heads = __ballot_sync(FULL_WARP, lane == 0 || label != previous);
    if (lane == 0 && i < job.nodes) job.runs[i / 32] = make_uint2((uint32_t)label, heads & ~1u);
    const unsigned all = __ballot_sync(FULL_WARP, listed), upto_here = lanes_below() * 2 + 1;
    const unsigned after = heads & ~upto_here, until = after ? (after & (0 - after)) - 1 : FULL_WARP;
    const int head = 31 - __clz((int)(heads & upto_here));
    const unsigned run = all & until & (FULL_WARP << head);
    const int64_t end = __shfl_sync(FULL_WARP, (long long)upto, 31 - __clz((int)until));
    unsigned long long before = 0;
    if (member && lane == head && end > begin)
        before = atomicAdd(job.tallies + label,
                           (unsigned long long)(end - begin) | (unsigned long long)__popc(run) << job.count_shift);
    before = __shfl_sync(FULL_WARP, before, head);
    before += (unsigned long long)(begin - __shfl_sync(FULL_WARP, (long long)begin, head));
    before += (unsigned long long)__popc(run & lanes_below()) << job.count_shift;
    if (i < job.nodes) preceding[i] = listed ? before : UNLISTED;
    if (__syncthreads_or(i < job.nodes && label < previous)) {
        if (threadIdx.x == 0) job.totals->unsorted = 1;
        return;
    }
    const bool jumps = lane > 0 && i < job.nodes && (int64_t)label > previous + (int64_t)1;
    if (__any_sync(FULL_WARP, jumps) && lane == 0) job.totals->gaps = 1;
    if (member && (i == 0 || label != previous)) {
        job.ranges[label].begin = begin;
        job.firsts[label] = (int32_t)i;
    }
}

/* Orders up to LANES·K nodes of group p, beginning with `first`, by where their entries begin in G, in this many
 * lanes. Their places below 256 stand behind that in the keys. */
template <int LANES, int K, typename V>
static __device__ __forceinline__ void order_nodes(const contract_args<V> &job, const uint2 *placed, uint32_t p,
                                                   int64_t first, int count, stage_range range)
{
    const int lane = threadIdx.x & (LANES - 1);
    unsigned long long node[K];
    int64_t length = 0, begin = range.begin;
    int32_t own[K];
#pragma unroll
    for (int u = 0; u < K; u++) {
        const int at = LANES * u + lane;
        node[u] = at < count ? (unsigned long long)__ldg(placed + first + at).y << 8 | (unsigned)at : UINT64_MAX;
    }
    sort_keys<K>(node, LANES);
#pragma unroll
    for (int u = 0; u < K; u++) {
        const int64_t k = first + (int64_t)(node[u] & 255);
        own[u] = 0;
        if (lane * K + u < count)
            own[u] = (int32_t)((k + 1 < first + count ? __ldg(placed + k + 1).x : range.end) - __ldg(placed + k).x);
        length += own[u];
    }
    int64_t upto = length;
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
        const int64_t other = __shfl_up_sync(FULL_WARP, (long long)upto, step, LANES);
        if (lane >= step) upto += other;
    }
    begin += upto - length;
#pragma unroll
    for (int u = 0; u < K; u++) {
        const int64_t k = first + lane * K + u;
        if (lane * K + u >= count) break;
        job.sources[k] = (int64_t)(node[u] >> 8);
        job.starts[k] = begin;
        job.keys[k] = p;
        begin += own[u];
    }
}
template <typename V>
static __device__ __forceinline__ void order_group(const contract_args<V> &job, const uint2 *placed, uint32_t p,
                                                   int64_t first, int count, stage_range range)
{
    if (count <= 32) order_nodes<32, 1>(job, placed, p, first, count, range);
    else if (count <= 64) order_nodes<32, 2>(job, placed, p, first, count, range);
    else if (count <= 128) order_nodes<32, 4>(job, placed, p, first, count, range);
    else order_nodes<32, 8>(job, placed, p, first, count, range);
}

/* The nodes of each group in order; this many lanes a group, the warp for one of more nodes than they hold. */
template <typename V>
static __global__ void __launch_bounds__(NODE_THREADS, 8)
    order_groups(contract_args<V> job, int lanes, const int32_t *sizes, const uint2 *placed)
{
    wait_ahead();
    const int lane = threadIdx.x & 31, each = 32 / lanes;
    const int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    const int64_t own = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int64_t base = own * each; base < job.groups; base += warps * each) {
        const int64_t p = base + lane / lanes;
        const int count = p < job.groups ? sizes[p] : 0;
        const int64_t first = count ? (uint32_t)job.firsts[p] : 0;
        const stage_range range = count ? job.ranges[p] : stage_range{0, 0};
        if (lanes == 32) {
            if (count && count <= MOST_ORDERED) order_group(job, placed, (uint32_t)p, first, count, range);
            continue;
        }
        const int few = count <= lanes ? count : 0;
        if (lanes == 16) order_nodes<16, 1>(job, placed, (uint32_t)p, first, few, range);
        else order_nodes<8, 1>(job, placed, (uint32_t)p, first, few, range);
        __syncwarp();
        const bool more = count > lanes && count <= MOST_ORDERED;
        for (unsigned left = __ballot_sync(FULL_WARP, more && lane % lanes == 0); left; left &= left - 1) {
            const int of = __ffs((int)left) - 1;
            order_group(job, placed, (uint32_t)(base + of / lanes), __shfl_sync(FULL_WARP, (long long)first, of),
                        __shfl_sync(FULL_WARP, count, of),
                        {__shfl_sync(FULL_WARP, (long long)range.begin, of),
                         __shfl_sync(FULL_WARP, (long long)range.end, of)});
        }
    }
    /* Nodes that are in no group, or have no entries. */
    const unsigned long long allotted = job.totals->allotted;
    for (int64_t k = (int64_t)(allotted >> job.count_shift) + own * 32 + lane; k <= job.nodes; k += warps * 32) {
        job.starts[k] = (int64_t)(allotted & counted_entries(job));
        if (k == job.nodes) break;
        job.sources[k] = 0; /* is read ahead */
        job.keys[k] = (uint32_t)job.groups;
    }
}

/* The nodes of group p, by a block: as order_nodes. */
template <int THREADS, int ITEMS, typename V>
static __device__ void order_large(const contract_args<V> &job, const uint2 *placed, uint32_t p, int64_t first,
                                   int count, stage_range range, int bits, char *scratch)
{
    using sort = cub::BlockRadixSort<uint32_t, THREADS, ITEMS, uint32_t>;
    __shared__ unsigned long long upto[THREADS / 32];
    uint32_t source[ITEMS], own[ITEMS]; /* own: entries */
    unsigned long long length = 0;
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        const int i = u * THREADS + threadIdx.x;
        const uint2 node = i < count ? __ldg(placed + first + i) : make_uint2(0, UINT32_MAX);
        const uint32_t end = i + 1 < count ? __ldg(&placed[first + i + 1].x) : (uint32_t)range.end;
        source[u] = node.y;
        own[u] = i < count ? end - node.x : 0;
    }
    sort(*(typename sort::TempStorage *)scratch).Sort(source, own, 0, bits);
#pragma unroll
    for (int u = 0; u < ITEMS; u++) length += own[u];
    const unsigned long long until = sum_until(length);
    if (threadIdx.x % 32 == 31) upto[threadIdx.x / 32] = until;
    __syncthreads();
    int64_t begin = range.begin + (int64_t)(until - length);
    for (unsigned w = 0; w < threadIdx.x / 32; w++) begin += (int64_t)upto[w];
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        const int64_t k = first + (int)threadIdx.x * ITEMS + u;
        if ((int)threadIdx.x * ITEMS + u >= count) break;
        job.sources[k] = source[u];
        job.starts[k] = begin;
        job.keys[k] = p;
        begin += own[u];
    }
    __syncthreads();
}

/* The nodes of groups of more than `least`, a block each. Groups that follow each other are different blocks', as large
 * ones often do. */
template <int THREADS, int ITEMS, typename V>
static __global__ void __launch_bounds__(THREADS)
    order_large_groups(contract_args<V> job, int least, int bits, const int32_t *sizes, const uint2 *placed)
{
    extern __shared__ char scratch[];
    __shared__ int32_t large[THREADS];
    __shared__ int listed;
    for (int64_t base = blockIdx.x; base < job.groups; base += (int64_t)gridDim.x * THREADS) {
        if (threadIdx.x == 0) listed = 0;
        __syncthreads();
        const int64_t p = base + (int64_t)threadIdx.x * gridDim.x;
        const int count = p < job.groups ? sizes[p] : 0;
        if (count > least && count <= THREADS * ITEMS) large[atomicAdd(&listed, 1)] = (int32_t)p;
        __syncthreads();
        for (int i = 0; i < listed; i++) {
            const int32_t its = large[i];
            order_large<THREADS, ITEMS>(job, placed, (uint32_t)its, (uint32_t)job.firsts[its], sizes[its],
                                        job.ranges[its], bits, scratch);
        }
        __syncthreads();
    }
}

/* Nodes by where those of their group begin: the groups' order in the stage. */
template <typename V>
static __global__ void key_nodes(contract_args<V> job, const unsigned long long *preceding, uint32_t *keys,
                                 int32_t *nodes)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.nodes) return;
    keys[i] = preceding[i] == UNLISTED ? (uint32_t)job.nodes : (uint32_t)job.firsts[job.labels[i]];
    nodes[i] = (int32_t)i;
}

template <typename V>
static __global__ void measure_nodes(contract_args<V> job, const uint32_t *keys, const int32_t *order,
                                     int32_t *lengths)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= job.nodes) return;
    const int32_t node = order[k];
    const int64_t source = job.g.offsets[node];
    const bool listed = keys[k] < job.nodes;
    job.sources[k] = source;
    job.keys[k] = listed ? (uint32_t)job.labels[node] : (uint32_t)job.groups;
    lengths[k] = listed ? (int32_t)(job.g.offsets[node + 1] - source) : 0;
}

/* ---- host ----------------------------------------------------------------------------------------------- */

template <typename V> sp_status count_nodes(contract_run<V> *run)
{
    sp_context *context = run->context;
    size_groups<<<blocks_of(run->job.nodes, 256), 256, 0, stream_of(context)>>>(run->job, run->preceding);
    CUDA_CHECK(cudaGetLastError());
    return allow_early(run, size_groups<V>);
}

/* Where nodes are sorted. */
struct node_order {
    array_block arrays;
    uint32_t *keys, *sorted;
    int32_t *nodes, *order, *lengths;
    char *scratch;
};

/* Sorts the nodes by group and finds where each one's entries begin; in the stage, unless that has entries. */
template <typename V> static sp_status sort_nodes(contract_run<V> *run)
{
    sp_context *context = run->context;
    contract_args<V> &job = run->job;
    cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_of(job.nodes, 256);
    const int bits = 64 - job.count_shift;
    node_order by = {};
    size_t bytes;
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, by.keys, by.sorted, by.nodes, by.order, job.nodes, 0,
                                               bits, stream));
    CHECK(by.arrays.add(context, job.nodes, &by.keys));
    CHECK(by.arrays.add(context, job.nodes, &by.sorted));
    CHECK(by.arrays.add(context, job.nodes, &by.nodes));
    CHECK(by.arrays.add(context, job.nodes, &by.order));
    CHECK(by.arrays.add(context, job.nodes + 1, &by.lengths));
    CHECK(by.arrays.add(context, (int64_t)bytes, &by.scratch));
    char *stage = (char *)job.cols;
    if (!job.placed && by.arrays.bytes <= (size_t)((char *)(job.values + run->entries) - stage))
        by.arrays.place(stage);
    else CHECK(by.arrays.allocate(context));
    key_nodes<<<blocks, 256, 0, stream>>>(job, run->preceding, by.keys, by.nodes);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(by.scratch, bytes, by.keys, by.sorted, by.nodes, by.order, job.nodes, 0,
                                               bits, stream));
    measure_nodes<<<blocks, 256, 0, stream>>>(job, by.sorted, by.order, by.lengths);
    CUDA_CHECK(cudaGetLastError());
    return cuda_scan_counts(context, job.nodes, by.lengths, job.starts);
}

template <int THREADS, int ITEMS, typename V>
static sp_status launch_large(contract_run<V> *run, int least, cudaStream_t stream)
{
    using sort = cub::BlockRadixSort<uint32_t, THREADS, ITEMS, uint32_t>;
    const int bits = radix_bits(run->entries + 1);
    return launch(run, order_large_groups<THREADS, ITEMS, V>, THREADS, sizeof(typename sort::TempStorage),
                  run->job.groups, stream, least, bits, run->sizes, run->placed);
}

template <typename V> sp_status order_nodes(contract_run<V> *run, const contract_totals *totals)
{
    sp_context *context = run->context;
    const int64_t nodes = run->job.nodes, groups = run->job.groups;
    const int lanes = nodes < groups * FEW_NODES ? 8 : nodes < groups * MANY_NODES ? 16 : 32;
    const bool large = totals->most_nodes > MOST_ORDERED, largest = totals->most_nodes > MOST_LARGE;
    cudaStream_t *side = cuda_state_of(context)->side;
    if (groups == 0) return SP_OK;
    if (totals->most_nodes > MOST_LARGEST || !run->narrow) return sort_nodes(run);
    if (large) CHECK(cuda_fork(context, 1 + largest));
    if (largest) CHECK((launch_large<1024, MOST_LARGEST / 1024>(run, MOST_LARGE, side[1])));
    if (large) CHECK((launch_large<256, MOST_LARGE / 256>(run, MOST_ORDERED, side[0])));
    CHECK(launch_full(run, order_groups<V>, NODE_THREADS, blocks_of(groups * lanes, NODE_THREADS), run->job, lanes,
                      run->sizes, run->placed));
    return large ? cuda_join(context, 1 + largest) : SP_OK;
}

template sp_status count_nodes(contract_run<float> *);
template sp_status count_nodes(contract_run<double> *);
template sp_status order_nodes(contract_run<float> *, const contract_totals *);
template sp_status order_nodes(contract_run<double> *, const contract_totals *);
