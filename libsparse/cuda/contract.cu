/* C(p, q) = the combination of all G(i, j) with labels[i] = p and labels[j] = q, on a CUDA device: S·G·Sᵀ for labels
 * (Li et al., Algorithm 7) in one pass over G, without the two products.
 *
 * Nodes in the order of their labels list the rows of G that make up each row of C. Where labels ascend that is G's
 * own order, and a row of C is a run of G's entries. Else a node's place in its group is counted with the group's
 * entries, and a warp, or where groups are small a thread, orders the nodes of a group; if one has many nodes, all
 * are sorted by radix. Beside that rows are put in classes, so that the host knows what to launch when it ends. Rows
 * of C are combined by class of length, columns replaced by labels as they are read:
 *   - small rows, up to 32 entries: sorted in registers, 1 to 4 rows a warp;
 *   - sorted rows, up to 512 entries (1,024 where there are many groups): a warp each, (column, place) sorted in
 *     registers, so that entries of a column follow each other in order;
 *   - longer rows: a block each, with a bit a column; the bits before a column are its place in C's row. Entries lie
 *     in registers and cells in shared memory. Sums of f32 are contract_summed.cuh's, all else contract_ranked.cuh's;
 *   - wide rows, above 8,192 entries: sums of f32 are formed by a block in shared memory or, where there are few
 *     columns or above 196,608 entries, by a block every 8,192 (contract_parted.cuh); all else by a block a row, whose
 *     cells lie in global memory.
 * What comes out goes to a stage in which every row has the room of its entries, and from there, when the lengths of
 * all are known, to C.
 *
 * Order of additions. Small and sorted rows add in G's order as they are, sorted rows of f32 also by halves where
 * f64 adds them up without an error. In longer rows threads add in any order, as integers: f64 sums of numbers that
 * are multiples of some 2^l are exact, whatever the order, while they stay below 2^(l + 53). Cells that reach that
 * are summed again in order, as are rows whose numbers span too much. The largest, the smallest, the first and the
 * number do not depend on the order. Values are therefore the CPU's.
 *
 * Products of patterns are what is left of the above. A·B where B is a pattern with one entry a row at most renames
 * A's columns: every row of G is a row of C. Only rows of B of one entry make a hub's row of C as dear as its parts
 * times its length in spgemm_warp.cu. A·B where A is a pattern adds up rows of B, whose columns stay: rows of C are
 * made of the rows that A lists instead of those of a label, in one pass where spgemm_warp.cu needs two. S·G·Sᵀ for a
 * pattern S with one entry a column does both at once: nothing is sorted or stored between the products.
 *
 * Bytes an entry of G, with f32 values: 8 of G and 4 of a label (from the second-level cache) read; the stage
 * written and read, C written, 8 each: 32 and the label, for wide rows 48 and the label. Some 70 a node for their
 * order, 40 a group.
 */
#include <cub/device/device_radix_sort.cuh>
#include <stdio.h>

#include "contract_parted.cuh"

/* ---- constants ------------------------------------------------------------------------------------------- */

enum { LEAST_SORTED = 64, MOST_SORTED = 512, MOST_SORTED_OF_MANY = 1024, FEW_WORDS = 2048, MANY_WORDS = 4096 };

/* Where bits for all columns take more than FEW_WORDS, most of them would be cleared and counted for nothing: summed
 * rows have coarse ones then, and those of 1,024 entries are sorted.
 * Ranked rows have up to 2,048, 4,096 or 8,192 entries, in the registers of their block, with as many cells in
 * shared memory: 24 KB a row in the first class, so that several blocks share a multiprocessor. Windows have so
 * many words of bits, or those of all columns where they are fewer. */
enum { RANKED_THREADS = 256, RANKED_ITEMS = 8, RANKED_WORDS = 8192 };
enum { LONGER_THREADS = 512, LONGER_ITEMS = 8, LONGEST_ITEMS = 16, LONGER_WORDS = 16384 };
enum { MOST_COLUMNS = LONGER_WORDS * 1024 }; /* of summed rows, and of those that are rows of B added up */
enum { WIDE_THREADS = 1024, LEAST_WORDS = 256 }; /* a bit an entry of the longest row in registers */
static_assert(LEAST_WORDS * 32 >= LONGER_THREADS * LONGEST_ITEMS, "bits where nodes begin");

enum { WARP_THREADS = 128, GATHER_THREADS = 256 };
enum { TILE = 256, TILES = 4 }; /* entries that a warp assigns to their rows at once; tiles it takes in a row */

/* ---- device: nodes by group ------------------------------------------------------------------------------ */

/* Groups of LEAST_NODES on average and more are ordered by a warp each, those of fewer by a thread each, which has up
 * to FEW_NODES: 5 % of the whole faster with 2 nodes a group, 5 slower with 10. One group of more than MOST_ORDERED
 * means that all nodes are sorted. */
enum { LEAST_NODES = 8, FEW_NODES = 32, MOST_ORDERED = 256, NODE_THREADS = 128 };

template <typename V> static __device__ __forceinline__ unsigned long long counted_entries(const contract_job<V> &job)
{
    return ((unsigned long long)1 << job.count_shift) - 1;
}

/* Counts the entries and nodes of each group, as the end of its range, and looks for bad labels. ranks[i] is how many
 * of its group came before node i, in any order, or UINT32_MAX where it has no entries; nodes of a label that follow
 * each other are counted at once. Finds whether labels ascend: then groups are rows of G that follow each other, of
 * which the first is theirs. */
template <typename V> static __global__ void __launch_bounds__(256) size_groups(contract_job<V> job, uint32_t *ranks)
{
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
        before = atomicAdd((unsigned long long *)&job.ranges[label].end,
                           (unsigned long long)(end - begin) | (unsigned long long)__popc(run) << job.count_shift);
    before = __shfl_sync(FULL_WARP, before, head);
    if (i < job.nodes)
        ranks[i] = listed ? (uint32_t)(before >> job.count_shift) + __popc(run & lanes_below()) : UINT32_MAX;
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

/* Nodes by group, in any order within it. */
template <typename V>
static __global__ void __launch_bounds__(256) place_nodes(contract_job<V> job, const uint32_t *ranks, int32_t *placed)
{
    if (!job.totals->unsorted || job.totals->most_nodes > MOST_ORDERED) return;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < job.nodes; i += (int64_t)gridDim.x * 256)
        if (ranks[i] != UINT32_MAX) placed[(uint32_t)job.firsts[job.labels[i]] + ranks[i]] = (int32_t)i;
}

/* Orders up to 32·K nodes of a group, in a warp, and finds where their entries begin. */
template <int K, typename V>
static __device__ __forceinline__ void order_nodes(const contract_job<V> &job, const int32_t *placed, uint32_t p,
                                                   int64_t first, int count, int64_t begin)
{
    const int lane = threadIdx.x & 31;
    uint32_t node[K];
    int64_t source[K], length = 0;
    int32_t own[K];
#pragma unroll
    for (int u = 0; u < K; u++)
        node[u] = 32 * u + lane < count ? (uint32_t)placed[first + 32 * u + lane] : UINT32_MAX;
    sort_keys<K>(node, 32);
#pragma unroll
    for (int u = 0; u < K; u++) {
        const bool there = lane * K + u < count;
        source[u] = there ? __ldg(job.g.offsets + node[u]) : 0;
        own[u] = there ? (int32_t)(__ldg(job.g.offsets + node[u] + 1) - source[u]) : 0;
        length += own[u];
    }
    int64_t upto = length;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int64_t other = __shfl_up_sync(FULL_WARP, (long long)upto, step);
        if (lane >= step) upto += other;
    }
    begin += upto - length;
#pragma unroll
    for (int u = 0; u < K; u++) {
        const int64_t k = first + lane * K + u;
        if (lane * K + u >= count) break;
        job.sources[k] = source[u];
        job.starts[k] = begin;
        job.keys[k] = p;
        begin += own[u];
    }
}
template <typename V>
static __device__ __forceinline__ void order_group(const contract_job<V> &job, const int32_t *placed, uint32_t p,
                                                   int64_t first, int count, int64_t begin)
{
    if (count <= 32) order_nodes<1>(job, placed, p, first, count, begin);
    else if (count <= 64) order_nodes<2>(job, placed, p, first, count, begin);
    else if (count <= 128) order_nodes<4>(job, placed, p, first, count, begin);
    else order_nodes<8>(job, placed, p, first, count, begin);
}

/* The same for a few nodes, in a thread, which looks for the one after the last each time. */
template <typename V>
static __device__ __forceinline__ void order_few(const contract_job<V> &job, const int32_t *placed, uint32_t p,
                                                 int64_t first, int count, int64_t begin)
{
    uint32_t least = 0;
    for (int k = 0; k < count; k++) {
        uint32_t node = UINT32_MAX;
        for (int j = 0; j < count; j++) {
            const uint32_t other = (uint32_t)placed[first + j];
            if (other >= least && other < node) node = other;
        }
        const int64_t source = __ldg(job.g.offsets + node);
        job.sources[first + k] = source;
        job.starts[first + k] = begin;
        job.keys[first + k] = p;
        begin += __ldg(job.g.offsets + node + 1) - source;
        least = node + 1;
    }
}

/* Finds where the entries of each group's nodes begin, in the order of nodes; a warp a group, or if they are `few` a
 * thread. */
template <typename V>
static __global__ void __launch_bounds__(NODE_THREADS, 8)
    order_groups(contract_job<V> job, bool few, const int32_t *sizes, const int32_t *placed)
{
    const contract_totals *totals = job.totals;
    if (!totals->unsorted || totals->most_nodes > MOST_ORDERED) return;
    const int lane = threadIdx.x & 31, each = few ? 32 : 1;
    const int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32), entries = totals->allotted & counted_entries(job);
    const int64_t own = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int64_t base = own * each; base < job.groups; base += warps * each) {
        const int64_t p = few ? base + lane : base;
        const int count = p < job.groups ? sizes[p] : 0;
        const int64_t first = count ? (uint32_t)job.firsts[p] : 0, begin = count ? job.ranges[p].begin : 0;
        if (!few) {
            if (count) order_group(job, placed, (uint32_t)p, first, count, begin);
            continue;
        }
        if (count <= FEW_NODES) order_few(job, placed, (uint32_t)p, first, count, begin);
        __syncwarp();
        for (unsigned left = __ballot_sync(FULL_WARP, count > FEW_NODES); left; left &= left - 1) {
            const int of = __ffs((int)left) - 1;
            order_group(job, placed, (uint32_t)(base + of), __shfl_sync(FULL_WARP, (long long)first, of),
                        __shfl_sync(FULL_WARP, count, of), __shfl_sync(FULL_WARP, (long long)begin, of));
        }
    }
    /* Nodes that are in no group, or have no entries. */
    const int64_t listed = (int64_t)(totals->allotted >> job.count_shift);
    for (int64_t k = listed + own * 32 + lane; k <= job.nodes; k += warps * 32) {
        job.starts[k] = entries;
        if (k == job.nodes) break;
        job.sources[k] = 0; /* is read ahead */
        job.keys[k] = (uint32_t)job.groups;
    }
}

/* Nodes by where those of their group begin: the groups' order in the stage. */
template <typename V>
static __global__ void key_nodes(contract_job<V> job, const uint32_t *ranks, uint32_t *keys, int32_t *nodes)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.nodes) return;
    keys[i] = ranks[i] == UINT32_MAX ? (uint32_t)job.nodes : (uint32_t)job.firsts[job.labels[i]];
    nodes[i] = (int32_t)i;
}

template <typename V>
static __global__ void measure_nodes(contract_job<V> job, const uint32_t *keys, const int32_t *order,
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

/* Every row of G is a row of C. */
template <typename V> static __global__ void take_rows(contract_job<V> job)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i > job.nodes) return;
    job.starts[i] = job.g.offsets[i];
    if (i == job.nodes) return;
    job.keys[i] = (uint32_t)i;
    job.sources[i] = job.g.offsets[i];
    job.firsts[i] = (int32_t)i;
    job.ranges[i] = {job.g.offsets[i], job.g.offsets[i + 1]};
}

/* ---- device: classes ------------------------------------------------------------------------------------- */

/* Largest rows of the classes, by what the device's shared memory holds. */
struct class_limits {
    int sorted, longer, longest; /* 0: none */
};

/* What the host waits for, in its memory: counts once rows have classes, and once they are combined. */
struct count_letter {
    contract_totals totals;
    int64_t nnz;
    unsigned counted, combined; /* not 0: it has come */
};
static_assert(sizeof(count_letter) <= MAILBOX, "it comes by the mailbox");

/* For a block, once all it tells has been written. */
static __device__ __forceinline__ void send_totals(const contract_totals *totals, count_letter *letter,
                                                   unsigned *arrived)
{
    for (unsigned i = threadIdx.x; i < sizeof *totals / sizeof(unsigned); i += blockDim.x)
        ((volatile unsigned *)&letter->totals)[i] = __ldcg((const unsigned *)totals + i);
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile unsigned *)arrived = 1;
}

/* Gives groups that are only counted their place in the stage, in any order, and their nodes theirs (sizes: their
 * number), unless labels ascend. */
template <typename V>
static __global__ void __launch_bounds__(256)
    classify_rows(contract_job<V> job, class_limits limits, int32_t *sizes, count_letter *letter)
{
    __shared__ unsigned members[CLASSES], most_nodes, last;
    __shared__ unsigned long long before[256 / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const bool allots = job.count_shift && job.totals->unsorted;
    if (threadIdx.x < CLASSES) members[threadIdx.x] = 0;
    if (threadIdx.x == 0) most_nodes = 0;
    __syncthreads();
    unsigned nodes = 0;
    for (int64_t base = (int64_t)blockIdx.x * 256; base < job.groups; base += (int64_t)gridDim.x * 256) {
        const int64_t p = base + threadIdx.x;
        const stage_range range = p < job.groups ? job.ranges[p] : stage_range{0, 0};
        int64_t begin = range.begin, entries = range.end - (job.count_shift ? 0 : range.begin);
        if (allots) {
            const unsigned long long own = (unsigned long long)range.end;
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
            if (p < job.groups) {
                job.firsts[p] = (int32_t)(place >> job.count_shift);
                sizes[p] = (int32_t)(own >> job.count_shift);
            }
        }
        if (p >= job.groups) continue;
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

/* Lists the rows of each class, class by class; within a class in pieces of 1,024 rows that lie together. */
template <typename V> static __global__ void __launch_bounds__(256) list_rows(contract_job<V> job)
{
    __shared__ unsigned members[CLASSES], place[CLASSES];
    for (int64_t base = (int64_t)blockIdx.x * 1024; base < job.groups; base += (int64_t)gridDim.x * 1024) {
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

/* ---- device: dealing out entries evenly ------------------------------------------------------------------ */

/* The items of a warp's tile, those without entries left out: a bit where each begins, and where entry e of the tile
 * comes from, as source - e. */
struct item_tile {
    uint32_t begins[TILE / 32];
    int64_t source[TILE];
};

/* Finds the items of the entries [base, end); item *first has the first of them, and afterwards that after the last.
 * take(item, &source) gives an item's first entry. */
template <typename Take>
static __device__ __forceinline__ void fill_tile(item_tile &tile, const int64_t *starts, int64_t items, int64_t base,
                                                 int64_t end, int64_t *first, Take take)
{
    const int lane = threadIdx.x & 31;
    int used = 0;
    __syncwarp();
    if (lane < TILE / 32) tile.begins[lane] = 0;
    __syncwarp();
    for (;;) {
        const int64_t k = *first + lane;
        const int64_t from = k < items ? __ldg(starts + k) : end, to = k < items ? __ldg(starts + k + 1) : end;
        const bool inside = from < to && from < end && to > base;
        const unsigned all = __ballot_sync(FULL_WARP, inside);
        if (inside) {
            const int at = (int)(max(from, base) - base), slot = used + __popc(all & lanes_below());
            int64_t source;
            take(k, &source);
            tile.source[slot] = source + (base - from);
            atomicOr(tile.begins + at / 32, 1u << (at % 32));
        }
        used += __popc(all);
        const unsigned beyond = __ballot_sync(FULL_WARP, to >= end);
        if (beyond) {
            *first += __ffs((int)beyond) - 1;
            break;
        }
        *first += 32;
        if (!all) *first = last_start(starts, items, __shfl_sync(FULL_WARP, (long long)to, 31));
    }
    __syncwarp();
}

/* Calls copy(base, end) for the tiles of entries [begin, stop), in a warp; item `first` has the first of them. */
template <typename Take, typename Copy>
static __device__ __forceinline__ void copy_tiles(item_tile &tile, const int64_t *starts, int64_t items,
                                                  int64_t begin, int64_t stop, int64_t first, Take take, Copy copy)
{
    for (int64_t base = begin; base < stop; base += TILE) {
        const int64_t end = min(base + TILE, stop);
        fill_tile(tile, starts, items, base, end, &first, take);
        copy(base, end);
    }
}

/* Calls deal(begin, stop) for so many entries of all items in a warp each. */
template <typename Deal> static __device__ __forceinline__ void deal_entries(int64_t total, Deal deal)
{
    const int64_t warps = blockDim.x / 32, step = gridDim.x * warps * TILE * TILES;
    for (int64_t begin = (blockIdx.x * warps + threadIdx.x / 32) * TILE * TILES; begin < total; begin += step)
        deal(begin, min(begin + TILE * TILES, total));
}

/* The item in the tile of its entry 32·u + lane, for all u. */
static __device__ __forceinline__ void slots_of(const item_tile &tile, int (&slot)[TILE / 32])
{
    int before = -1;
#pragma unroll
    for (int u = 0; u < TILE / 32; u++) {
        const uint32_t bits = tile.begins[u];
        slot[u] = before + __popc(bits & (lanes_below() * 2 + 1));
        before += __popc(bits);
    }
}

/* The entries of wide rows, columns replaced by labels, to the stage. Wide rows are longer than what a warp takes: it
 * begins or ends in one, if it sees any. */
template <typename V>
static __global__ void __launch_bounds__(GATHER_THREADS, 4) gather_wide(contract_job<V> job, bool again)
{
    __shared__ item_tile tiles[GATHER_THREADS / 32];
    item_tile &tile = tiles[threadIdx.x / 32];
    unsigned long long kept = 0;
    int32_t p = 0;
    const auto take = [&](int64_t k, int64_t *source) { *source = node_source(job, k, 0); };
    const auto copy = [&](int64_t base, int64_t end) {
        const int lane = threadIdx.x & 31;
        int slot[TILE / 32];
        int32_t col[TILE / 32];
        V value[TILE / 32];
        slots_of(tile, slot);
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int at = 32 * u + lane;
            col[u] = EMPTY;
            if (base + at >= end) continue;
            const int64_t source = tile.source[slot[u]] + at;
            col[u] = __ldcs(job.g.cols + source);
            if (job.g.values) value[u] = __ldcs(job.g.values + source);
        }
#pragma unroll
        for (int u = 0; u < TILE / 32; u++)
            if (col[u] != EMPTY) col[u] = column_of(job, p, col[u]);
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int64_t at = base + 32 * u + lane;
            if (at >= end) continue;
            kept += col[u] != EMPTY;
            job.cols[at] = col[u];
            if (job.g.values) job.values[at] = value[u];
        }
    };
    deal_entries(__ldg(job.starts + job.nodes), [&](int64_t begin, int64_t stop) {
        const int64_t first = last_start(job.starts, job.nodes, begin);
        const int32_t last_row = (int32_t)job.keys[last_start(job.starts, job.nodes, stop - 1)];
        p = (int32_t)job.keys[first];
        if (job.classes[p] == WIDE)
            copy_tiles(tile, job.starts, job.nodes, begin, min(stop, job.ranges[p].end), first, take, copy);
        if (p == last_row || job.classes[last_row] != WIDE) return;
        p = last_row;
        copy_tiles(tile, job.starts, job.nodes, job.ranges[p].begin, stop, job.firsts[p], take, copy);
    });
    if (!again) add_entries(job.totals, kept);
}

/* The row of C of each node, where only their first nodes are known: the last that begins with it or before it. */
template <typename V> static __global__ void key_sources(contract_job<V> job)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t low = 0, high = job.groups - 1;
    if (k >= job.nodes) return;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (__ldg(job.firsts + middle) <= k) low = middle;
        else high = middle - 1;
    }
    job.keys[k] = (uint32_t)low;
}

/* The combined ranges of the stage to C, if it has `least` entries and no row is inexact. The host is told first. */
template <typename V>
static __global__ void __launch_bounds__(GATHER_THREADS)
    move_rows(contract_job<V> job, const int64_t *offsets, int32_t *cols, V *values, int64_t least, bool only_exact,
              count_letter *letter)
{
    bool inexact = false;
    for (int c = SORTED; c < CLASSES && only_exact; c++) inexact = inexact || job.totals->inexact[c];
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) letter->nnz = offsets[job.groups];
        send_totals(job.totals, letter, &letter->combined);
    }
    if (inexact || offsets[job.groups] < least) return;
    __shared__ item_tile tiles[GATHER_THREADS / 32];
    item_tile &tile = tiles[threadIdx.x / 32];
    const V *from = (const V *)job.values;
    const auto take = [&](int64_t p, int64_t *source) { *source = job.ranges[p].begin; };
    const auto copy = [&](int64_t base, int64_t end) {
        const int lane = threadIdx.x & 31;
        int slot[TILE / 32];
        int32_t col[TILE / 32];
        V value[TILE / 32];
        slots_of(tile, slot);
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int at = 32 * u + lane;
            if (base + at >= end) continue;
            const int64_t source = tile.source[slot[u]] + at;
            col[u] = __ldg(job.cols + source);
            value[u] = __ldg(from + source);
        }
#pragma unroll
        for (int u = 0; u < TILE / 32; u++) {
            const int64_t at = base + 32 * u + lane;
            if (at >= end) continue;
            cols[at] = col[u];
            values[at] = value[u];
        }
    };
    deal_entries(__ldg(offsets + job.groups), [&](int64_t begin, int64_t stop) {
        copy_tiles(tile, offsets, job.groups, begin, stop, last_start(offsets, job.groups, begin), take, copy);
    });
}

/* ---- device: small rows ----------------------------------------------------------------------------------- */

/* The cell of a group's entry and those after it that have its column; `entries` are left from this one on, 0:
 * there is none to be made. */
template <int G, typename V>
static __device__ __forceinline__ V combined(const contract_operation &operation, V value, int32_t col, int entries,
                                             bool diagonal)
{
    double kept = (double)value;
    int count = 1;
    for (int step = 1; step < G; step++) {
        const int32_t other = __shfl_down_sync(FULL_WARP, col, step, G);
        const V more = __shfl_down_sync(FULL_WARP, value, step, G);
        const bool joins = step < entries && other == col;
        if (!__any_sync(FULL_WARP, joins)) break;
        if (!joins) continue;
        kept = combine(operation.combine, kept, (double)more);
        count++;
    }
    return (V)cell_value(operation, kept, count, diagonal);
}

/* A small row on its way: what its lanes have of it, and which they have. */
template <typename V> struct small_entries {
    int32_t p; /* below 0: none */
    int length;
    int64_t begin;
    int32_t col; /* of G; EMPTY beyond the row's end */
    V value;
};

/* Reads the entries of row `next`, one a lane of G, and then on in the list. */
template <int G, typename V>
static __device__ __forceinline__ small_entries<V> small_load(const contract_job<V> &job, const class_rows &rows,
                                                              unsigned following, next_row<V> &next)
{
    const int lane = threadIdx.x & 31, own = lane & (G - 1);
    const stage_range range = next.p >= 0 ? next.range : stage_range{0, 0};
    small_entries<V> row = {next.p, (int)(range.end - range.begin), range.begin, EMPTY, V(1)};
    const unsigned group = G == 32 ? FULL_WARP : ((1u << (G & 31)) - 1) << (lane & ~(G - 1));
    int64_t source = range.begin + own;
    if (!job.whole) {
        /* Each lane stands for a node, too: a bit where its entries begin. */
        const bool there = next.p >= 0 && (int64_t)next.first + own < job.nodes;
        const int64_t from = there ? next.node.x - range.begin : row.length;
        const unsigned begins = warp_or(from < row.length ? 1u << ((lane & ~(G - 1)) + (int)from) : 0) & group;
        const int node = __popc(begins & (lanes_below() * 2 + 1)) - 1;
        source = __shfl_sync(FULL_WARP, (long long)(next.node.y - from), max(node, 0), G) + own;
    }
    if (own < row.length) {
        row.col = __ldg(job.g.cols + source);
        if (job.g.values) row.value = __ldg(job.g.values + source);
    }
    next.read_number(rows, following);
    return row;
}

/* Combines a row, a group of G lanes each. The group's first lane returns how many entries are not left out. */
template <int G, typename Key, typename V>
static __device__ __forceinline__ int small_row(const contract_job<V> &job, const small_entries<V> &row)
{
    const int lane = threadIdx.x & 31, own = lane & (G - 1);
    const unsigned group = G == 32 ? FULL_WARP : ((1u << (G & 31)) - 1) << (lane & ~(G - 1));
    int32_t col = row.col != EMPTY ? column_of(job, row.p, row.col) : EMPTY;
    Key key[1] = {col == EMPTY ? ~Key(0) : (Key)(uint32_t)col << log2_of(G) | (Key)own};
    sort_keys<1>(key, G);
    const bool active = key[0] != ~Key(0);
    col = (int32_t)(key[0] >> log2_of(G));
    const int32_t previous = __shfl_up_sync(FULL_WARP, col, 1, G);
    const bool head = active && (own == 0 || previous != col);
    const unsigned all = __ballot_sync(FULL_WARP, active), all_heads = __ballot_sync(FULL_WARP, head);
    const unsigned heads = all_heads & group;
    const int entries = __popc(all & group);
    V value = __shfl_sync(FULL_WARP, row.value, (int)key[0] & (G - 1), G);
    if (all_heads != all || job.operation.half)
        value = combined<G>(job.operation, value, col, head ? entries - own : 0, col == row.p);
    if (head) {
        const int64_t at = row.begin + __popc(heads & lanes_below());
        job.cols[at] = col;
        job.values[at] = value;
    }
    if (row.p >= 0 && own == 0) job.lengths[row.p] = __popc(heads);
    return own == 0 ? entries : 0;
}

/* While a row is combined, the entries of the next and the place of the one after it are on their way. */
template <int G, typename Key, typename V>
static __global__ void __launch_bounds__(WARP_THREADS) small_rows(contract_job<V> job, int c)
{
    const class_rows own = rows_of(job, c);
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    const unsigned group = (threadIdx.x & 31) / G, step = warps * (32 / G);
    const int lane = (int)(threadIdx.x & (G - 1));
    unsigned long long kept = 0;
    unsigned base = warp * (32 / G);
    next_row<V> next;
    next.read_number(own, base + group);
    next.read_range(job);
    if (!job.whole) next.read_node(job, lane);
    small_entries<V> row = small_load<G>(job, own, base + step + group, next);
    next.read_range(job);
    if (!job.whole) next.read_node(job, lane);
    for (; base < own.count; base += step) {
        const small_entries<V> now = row;
        row = small_load<G>(job, own, base + 2 * step + group, next);
        next.read_range(job);
        kept += small_row<G, Key>(job, now);
        if (!job.whole) next.read_node(job, lane);
    }
    add_entries(job.totals, kept);
}

/* ---- device: sorted rows ---------------------------------------------------------------------------------- */

/* Bytes an entry of a sorted row: its key and value, before them its node's source. */
template <typename Key, typename V> static __host__ __device__ constexpr size_t sorted_bytes()
{
    return sizeof(Key) + sizeof(V);
}

/* A row's entries, sorted, in a warp's shared memory: keys are columns above places. */
template <int K, typename Key, typename V> struct sorted_row {
    static constexpr int BITS = log2_of(32 * K);
    const contract_job<V> &job;
    const Key *sorted;
    const V *values; /* by place */
    int32_t p;
    int64_t begin;
    int length, entries; /* with those that are left out, and without */

    __device__ __forceinline__ Key key_at(int at) const { return sorted[swizzled(at, K - 1)]; }
    __device__ __forceinline__ V value_of(Key key) const
    {
        return job.g.values ? values[(int)key & (32 * K - 1)] : V(1);
    }
    /* Entries of which no two have the same column. */
    __device__ __forceinline__ void write_entries() const
    {
#pragma unroll 1
        for (int at = threadIdx.x & 31; at < entries; at += 32) {
            const Key key = key_at(at);
            job.cols[begin + at] = (int32_t)(key >> BITS);
            job.values[begin + at] = value_of(key);
        }
    }
    /* Whether f64 adds up the values without an error, in any order: most numbers of f32 span little. */
    __device__ __forceinline__ bool adds_up() const
    {
        if (!std::is_same_v<V, float> || job.operation.combine != SP_COMBINE_SUM || job.operation.half) return false;
        span_of<float> numbers;
#pragma unroll 1
        for (int i = threadIdx.x & 31; i < length; i += 32) numbers.add((float)values[i]);
        numbers.lowest = ~warp_max(~numbers.lowest);
        numbers.highest = warp_max(numbers.highest);
        const number_span span = numbers.get();
        return numbers.highest == 0 ||
               (numbers.highest < 0x7f800000u && span.most - span.least + 32 - __clz(length) <= EXACT_BITS);
    }
    /* Sums in any order: each lane's from its entry to the end of its column, or of 32 entries; returns how many. A
     * column that the next 32 begin with is written again. */
    __device__ __forceinline__ int write_sums() const
    {
        const int lane = threadIdx.x & 31;
        int written = 0;
        double last = 0; /* of the last cell written */
        for (int base = 0; base < entries; base += 32) {
            const int at = base + lane, left = min(32, entries - base);
            const Key own = key_at(min(at, entries - 1));
            const bool head = lane < left && (at == 0 || key_at(at - 1) >> BITS != own >> BITS);
            const unsigned heads = __ballot_sync(FULL_WARP, head), after = heads & ~(lanes_below() * 2 + 1);
            const int end = after ? __ffs((int)after) - 1 : left;
            const int longest = (int)warp_max((unsigned)max(end - lane, 0));
            double sum = (double)value_of(own);
            for (int step = 1; step < longest; step *= 2) {
                const double more = __shfl_down_sync(FULL_WARP, sum, step);
                if (lane + step < end) sum = __dadd_rn(sum, more);
            }
            if (!(heads & 1)) {
                last = __dadd_rn(last, __shfl_sync(FULL_WARP, sum, 0));
                __syncwarp();
                if (lane == 0) job.values[begin + written - 1] = (V)last;
            }
            if (head) {
                const int64_t to = begin + written + __popc(heads & lanes_below());
                job.cols[to] = (int32_t)(own >> BITS);
                job.values[to] = (V)sum;
            }
            if (heads) last = __shfl_sync(FULL_WARP, sum, 31 - __clz((int)heads));
            written += __popc(heads);
        }
        return written;
    }
    /* All else, in order: the lane of a column's first entry goes through the others; returns how many columns. */
    __device__ __forceinline__ int write_in_order() const
    {
        const int lane = threadIdx.x & 31;
        int written = 0;
        for (int base = 0; base < entries; base += 32) {
            const int at = base + lane;
            const Key own = key_at(at < entries ? at : 0), col = own >> BITS;
            const bool head = at < entries && (at == 0 || key_at(at - 1) >> BITS != col);
            const unsigned heads = __ballot_sync(FULL_WARP, head);
            if (head) {
                double kept = (double)value_of(own);
                int next = at + 1;
                for (Key more; next < entries && (more = key_at(next)) >> BITS == col; next++)
                    kept = combine(job.operation.combine, kept, (double)value_of(more));
                const int64_t to = begin + written + __popc(heads & lanes_below());
                job.cols[to] = (int32_t)col;
                job.values[to] = (V)cell_value(job.operation, kept, next - at, (int32_t)col == p);
            }
            written += __popc(heads);
        }
        return written;
    }
};

/* Where a row lies in the stage. */
struct row_place {
    int32_t p;
    int length;
    int64_t begin;
};

/* Reads the entries of row `next`, K a lane, by its nodes' sources and a bit where each begins, in shared memory; then
 * on in the list. */
template <int K, typename V>
static __device__ __forceinline__ row_place sorted_load(const contract_job<V> &job, const class_rows &rows,
                                                        unsigned following, next_row<V> &next, int64_t *sources,
                                                        uint32_t *begins, int32_t (&col)[K], V (&value)[K])
{
    const int lane = threadIdx.x & 31;
    const row_place row = {next.p, next.p >= 0 ? (int)(next.range.end - next.range.begin) : 0, next.range.begin};
    if (K <= 8 && job.whole) { /* longer rows have no registers for it */
        const int32_t *cols = job.g.cols + row.begin + lane;
        const V *numbers = job.g.values + row.begin + lane;
        next.read_number(rows, following);
#pragma unroll
        for (int u = 0; u < K; u++) {
            const bool there = 32 * u + lane < row.length;
            col[u] = there ? __ldg(cols + 32 * u) : EMPTY;
            if (there && job.g.values) value[u] = __ldg(numbers + 32 * u);
        }
        next.read_range(job);
        return row;
    }
    __syncwarp();
    if (lane < K) begins[lane] = lane == 0 && job.whole;
    if (lane == 0 && job.whole) sources[0] = row.begin;
    __syncwarp();
    longlong2 at = next.node;
    for (int64_t k = (int64_t)next.first + lane, node = lane; k < job.nodes && !job.whole && row.p >= 0; node += 32) {
        const int64_t from = at.x - row.begin;
        if (from >= row.length) break;
        sources[node] = at.y - from;
        atomicOr(begins + from / 32, 1u << (from % 32));
        k += 32;
        at = node_at(job, k);
    }
    next.read_number(rows, following);
    __syncwarp();
    int node = -1;
#pragma unroll
    for (int u = 0; u < K; u++) {
        const int at = 32 * u + lane;
        const uint32_t word = begins[u];
        col[u] = EMPTY;
        if (at < row.length) {
            const int64_t source = sources[node + __popc(word & (lanes_below() * 2 + 1))] + at;
            col[u] = __ldg(job.g.cols + source);
            if (job.g.values) value[u] = __ldg(job.g.values + source);
        }
        node += __popc(word);
    }
    next.read_range(job);
    __syncwarp();
    return row;
}

/* A row of at most 32·K entries, a warp each. While it is sorted, the place of the next one is on its way, and of
 * short rows, which leave registers for them, the entries. */
template <int K, typename Key, typename V>
static __global__ void __launch_bounds__(WARP_THREADS) sorted_rows(contract_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    constexpr int bits = log2_of(32 * K);
    constexpr bool AHEAD = K <= 4;
    const class_rows own = rows_of(job, c);
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    unsigned char *memory = row_memory + warp * 32 * K * sorted_bytes<Key, V>();
    Key *sorted = (Key *)memory;
    V *value = (V *)(sorted + 32 * K);
    int64_t *sources = (int64_t *)memory; /* first: of the row's nodes */
    uint32_t *begins = (uint32_t *)(row_memory + blockDim.x * K * sorted_bytes<Key, V>()) + warp * K;
    unsigned long long kept_entries = 0;
    const unsigned step = gridDim.x * (blockDim.x / 32);
    unsigned i = blockIdx.x * (blockDim.x / 32) + warp;
    next_row<V> next;
    next.read_number(own, i);
    next.read_range(job);
    if (!job.whole) next.read_node(job, lane);
    row_place row = {}, coming = {};
    int32_t col[K], coming_col[K];
    V number[K], coming_number[K];
    if (AHEAD && i < own.count) {
        coming = sorted_load<K>(job, own, i + step, next, sources, begins, coming_col, coming_number);
        if (!job.whole) next.read_node(job, lane);
    }
    for (; i < own.count; i += step) {
        if (AHEAD) {
            row = coming;
#pragma unroll
            for (int u = 0; u < K; u++) {
                col[u] = coming_col[u];
                number[u] = coming_number[u];
            }
        } else {
            row = sorted_load<K>(job, own, i + step, next, sources, begins, col, number);
        }
#pragma unroll
        for (int u = 0; u < K; u++)
            if (col[u] != EMPTY) col[u] = column_of(job, row.p, col[u]);
        if (AHEAD)
            coming = sorted_load<K>(job, own, i + 2 * step, next, sources, begins, coming_col, coming_number);
        Key key[K];
        int entries = 0;
#pragma unroll
        for (int u = 0; u < K; u++) {
            const int at = 32 * u + lane;
            if (job.g.values && at < row.length) value[at] = number[u];
            key[u] = col[u] == EMPTY ? ~Key(0) : (Key)(uint32_t)col[u] << bits | (Key)at;
            entries += col[u] != EMPTY;
        }
        kept_entries += entries;
        entries = (int)warp_add((unsigned)entries);
        if (!job.whole) next.read_node(job, lane);
        sort_keys<K>(key, 32);
        /* Whether an entry has the column of the one before it. */
        const Key before = __shfl_up_sync(FULL_WARP, key[K - 1], 1);
        bool joins = lane > 0 && before >> bits == key[0] >> bits && key[0] != ~Key(0);
#pragma unroll
        for (int u = 0; u < K; u++) {
            sorted[swizzled(lane * K + u, K - 1)] = key[u];
            if (u > 0) joins = joins || (key[u] != ~Key(0) && key[u - 1] >> bits == key[u] >> bits);
        }
        __syncwarp();
        const sorted_row<K, Key, V> made = {job, sorted, value, row.p, row.begin, row.length, entries};
        int written = entries;
        if (!__any_sync(FULL_WARP, joins) && !job.operation.half) made.write_entries();
        else if (made.adds_up()) written = made.write_sums();
        else written = made.write_in_order();
        if (lane == 0) job.lengths[row.p] = written;
        __syncwarp();
    }
    add_entries(job.totals, kept_entries);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Streams that classes of rows are spread over; wide rows, five launches that wait for each other, have the last of
 * the side streams, whose blocks come before others'. */
enum { CLASS_STREAMS = 3, WIDE_STREAM = SIDE_STREAMS - 1 };

/* Arrays that share one block of device memory: asking for a block takes the host a microsecond or two, and giving it
 * back as much. */
struct array_block {
    enum { MOST = 24, ALIGNMENT = 256 };
    device_array<char> memory;
    struct {
        void **pointer;
        size_t at;
    } arrays[MOST];
    int count;
    size_t bytes;
    char *base; /* once placed */

    /* Lets *pointer have room for so many, once all arrays are named. */
    template <typename T> sp_status add(sp_context *context, int64_t size, T **pointer)
    {
        size_t own;
        if (count == MOST || !sp_mul_size((size_t)size, sizeof(T), &own) || own > SIZE_MAX / 2 - bytes)
            return sp_fail(context, SP_ERROR_OVERFLOW, "%lld elements are more than memory can address",
                           (long long)size);
        arrays[count++] = {(void **)pointer, bytes};
        bytes += (own + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return SP_OK;
    }
    void place(char *block)
    {
        base = block;
        for (int i = 0; i < count; i++) *arrays[i].pointer = block + arrays[i].at;
    }
    sp_status allocate(sp_context *context)
    {
        TRY(memory.allocate(context, (int64_t)bytes));
        place(memory.data);
        return SP_OK;
    }
};

/* Everything that one call holds on the device. */
template <typename V> struct contract_run {
    sp_context *context;
    int64_t entries; /* of the stage */
    contract_job<V> job;
    class_limits limits;
    int ranked_words, longer_words;
    bool sums;      /* of f32, of entries that 32 bits number */
    bool few_words; /* rows of class SORTED + 4 are summed_rows' */
    bool unkeyed;   /* nodes have no keys yet */
    array_block arrays, cells; /* of nodes, rows and entries; of wide rows */
    uint32_t *ranks;                  /* of nodes among those of their group, in any order */
    int32_t *placed, *sizes;          /* nodes by group; their number */
    count_letter *letter;
    char *room;                /* C's values, which are written last, or NULL */
    size_t zeros;              /* bytes of cells that begin as such */
    double grouped;            /* when the host knew the classes */
    bool parts;                /* wide rows are near ones or parted */
    parted_rows parted;
};

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

static unsigned blocks_of(int64_t items, int threads) { return (unsigned)((items + threads - 1) / threads); }

/* Launches a kernel with as many blocks as the device holds, at most `work`. */
template <typename V, typename Kernel, typename... Arguments>
static sp_status launch(contract_run<V> *run, Kernel *kernel, int threads, size_t shared, int64_t work,
                        cudaStream_t stream, Arguments... arguments)
{
    sp_context *context = run->context;
    int blocks;
    if (work == 0) return SP_OK;
    TRY(cuda_full_grid(context, kernel, threads, shared, &blocks));
    kernel<<<(unsigned)(work < blocks ? work : blocks), threads, shared, stream>>>(run->job, arguments...);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

/* What a kernel's blocks do not need of a multiprocessor's shared memory becomes first-level cache, in which each label
 * on its way has a line. Without a preference the split stays as the kernel before had it, which may have needed more. */
template <typename V, typename Kernel>
static sp_status leave_cache(contract_run<V> *run, Kernel *kernel, int threads, size_t shared)
{
    sp_context *context = run->context;
    const cuda_state *state = cuda_state_of(context);
    const size_t reserved = 1024, whole = state->shared_limit + reserved; /* of a block; of a multiprocessor */
    cudaFuncAttributes own;
    int blocks;
    TRY(cuda_full_grid(context, kernel, threads, shared, &blocks));
    CUDA_TRY(cudaFuncGetAttributes(&own, kernel));
    const size_t used = blocks / state->processors * (shared + own.sharedSizeBytes + reserved);
    const size_t percent = (used * 100 + whole - 1) / whole;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  percent < 100 ? (int)percent : 100));
    return SP_OK;
}

/* How rows of so many entries are summed_rows', and whether they are. */
template <typename V> static bool is_summed(const contract_run<V> *run, int entries, summed_words *words)
{
    const size_t limit = cuda_state_of(run->context)->shared_limit - 2048; /* less what is static */
    const int64_t columns = run->job.columns, step = WORD_STEP;
    if (!run->sums || columns > MOST_COLUMNS) return false;
    const auto words_of = [&](int64_t each) { return (int)((columns + each * step - 1) / (each * step) * step); };
    if (columns <= (int64_t)FEW_WORDS * 32) *words = {words_of(32), 0, false};
    else *words = {entries, words_of(1024), columns <= 32 * 65536};
    return summed_bytes(*words, entries) <= limit;
}

/* Words of bits for all columns, at most a window's, and classes of ranked rows: what fits a block's shared
 * memory. */
template <typename V> static void size_tables(contract_run<V> *run)
{
    const bool mean = run->job.operation.combine == SP_COMBINE_MEAN;
    /* Static, and the driver's. */
    const size_t kept = sizeof(typename ranked_row<WIDE_THREADS, 0, false, V>::memory) + 1024;
    const size_t limit = cuda_state_of(run->context)->shared_limit - kept;
    const int64_t most = (run->job.columns + 31) / 32;
    const int longer = LONGER_THREADS * LONGER_ITEMS, longest = LONGER_THREADS * LONGEST_ITEMS;
    int words = LEAST_WORDS;
    while (words < LONGER_WORDS && words < most) words *= 2;
    run->ranked_words = words < RANKED_WORDS ? words : RANKED_WORDS;
    run->longer_words = words;
    while (ranked_bytes(run->ranked_words, RANKED_THREADS * RANKED_ITEMS, mean) > limit) run->ranked_words /= 2;
    while (ranked_bytes(run->longer_words, 0, mean) > limit) run->longer_words /= 2;
    summed_words few;
    run->few_words = words <= FEW_WORDS && is_summed(run, MOST_SORTED_OF_MANY, &few);
    run->limits.sorted = words > MANY_WORDS || run->few_words ? MOST_SORTED_OF_MANY : MOST_SORTED;
    run->limits.longer = ranked_bytes(run->longer_words, longer, mean) <= limit ? longer : 0;
    run->limits.longest = ranked_bytes(run->longer_words, longest, mean) <= limit ? longest : 0;
}

/* How near rows lie in shared memory; no cells where they do not. */
template <typename V> static near_table near_of(const contract_run<V> *run)
{
    const size_t whole = cuda_state_of(run->context)->shared_limit - NEAR_STATIC;
    const size_t limit = run->job.columns <= NEAR_FEW && whole > NEAR_SHARED ? (size_t)NEAR_SHARED : whole;
    const int64_t all = (run->job.columns + 32 * WORD_STEP - 1) / (32 * WORD_STEP) * WORD_STEP;
    near_table table = {all < NEAR_WINDOW ? (int)all : (int)NEAR_WINDOW, 0};
    const size_t bits = (size_t)table.words * (sizeof(uint32_t) + sizeof(uint16_t));
    if (!run->sums || bits >= limit) return table;
    const int64_t cells = (int64_t)((limit - bits) / NEAR_BYTES / 4 * 4);
    if (cells >= PART) table.cells = (int)cells;
    return table;
}

/* C's rows are made of so many entries of `nodes` rows of G. `shortens`: labels of 16 bits are made where they do. */
template <typename V>
static sp_status open_run(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t nodes, int64_t entries,
                          int64_t groups, int64_t columns, bool shortens, const sp_contract_options *options,
                          contract_run<V> *run)
{
    contract_job<V> *job = &run->job;
    run->context = context;
    run->entries = entries;
    job->g = view_of<V>(g);
    if (options->combine == SP_COMBINE_COUNT) job->g.values = NULL;
    job->labels = labels;
    job->nodes = nodes;
    job->groups = groups;
    job->columns = columns;
    /* The sum of a pattern is the number of its entries. */
    job->operation.combine = !g->values && options->combine == SP_COMBINE_SUM ? SP_COMBINE_COUNT : options->combine;
    job->operation.loops = options->loops;
    job->operation.half = options->half_loops && (job->operation.combine == SP_COMBINE_SUM ||
                                                  job->operation.combine == SP_COMBINE_COUNT);
    run->sums = std::is_same_v<V, float> && job->operation.combine == SP_COMBINE_SUM &&
                g->nnz <= UINT32_MAX && entries <= UINT32_MAX;
    size_tables(run);
    if (columns > NEAR_COLUMNS && near_of(run).cells) job->near = ROW_ENTRIES;
    if (shortens) {
        int bits = 1;
        while (nodes >> bits) bits++;
        job->count_shift = 64 - bits;
        if (entries >> job->count_shift)
            return sp_fail(context, SP_ERROR_OVERFLOW, "%lld entries of %lld nodes are more than can be counted",
                           (long long)entries, (long long)nodes);
    }
    run->letter = (count_letter *)cuda_state_of(context)->mailbox;
    run->letter->counted = run->letter->combined = 0;
    /* The first three begin as zeros. */
    array_block *arrays = &run->arrays;
    TRY(arrays->add(context, 1, &job->totals));
    TRY(arrays->add(context, groups + 1, &job->ranges));
    TRY(arrays->add(context, groups + 1, &job->lengths));
    const size_t zeros = arrays->bytes;
    if (shortens && columns < UINT16_MAX) TRY(arrays->add(context, g->rows, &job->short_labels));
    if (shortens) {
        TRY(arrays->add(context, nodes, &run->ranks));
        TRY(arrays->add(context, nodes, &run->placed));
        TRY(arrays->add(context, groups, &run->sizes));
        TRY(arrays->add(context, (nodes + 31) / 32, &job->runs));
    }
    TRY(arrays->add(context, nodes, &job->keys));
    TRY(arrays->add(context, nodes, &job->sources));
    TRY(arrays->add(context, nodes + 1, &job->starts));
    TRY(arrays->add(context, groups, &job->firsts));
    TRY(arrays->add(context, groups, &job->classes));
    TRY(arrays->add(context, groups, &job->list));
    TRY(arrays->add(context, groups, &job->inexact));
    TRY(arrays->add(context, entries / (RANKED_THREADS * RANKED_ITEMS) + 1, &job->cells_of));
    TRY(arrays->add(context, 2 * (entries / PART) + 1, &job->parts));
    TRY(arrays->add(context, entries, &job->cols));
    TRY(arrays->add(context, entries, &job->values));
    TRY(arrays->allocate(context));
    CUDA_TRY(cudaMemsetAsync(arrays->memory.data, 0, zeros, stream_of(context)));
    return SP_OK;
}

/* Puts C's rows in classes, which the host is told, and lists them by class, on a stream after the main one. */
template <typename V> static sp_status list_classes(contract_run<V> *run, cudaStream_t lists)
{
    sp_context *context = run->context;
    TRY(launch(run, classify_rows<V>, 256, 0, blocks_of(run->job.groups, 256) + 1, stream_of(context), run->limits,
               run->sizes, run->letter));
    if (lists != stream_of(context)) TRY(cuda_fork(context, 1));
    return launch(run, list_rows<V>, 256, 0, blocks_of(run->job.groups, 1024), lists);
}

/* Brings the nodes in the order of their groups and finds where each one's entries, and each group's, begin in the
 * stage. Groups have their sizes, and rows their classes, before nodes have their order, so that the host knows what
 * to launch when it ends. */
template <typename V> static sp_status group_nodes(contract_run<V> *run)
{
    sp_context *context = run->context;
    const contract_job<V> &job = run->job;
    cudaStream_t stream = stream_of(context);
    const bool few = job.nodes < job.groups * LEAST_NODES;
    size_groups<<<blocks_of(job.nodes, 256), 256, 0, stream>>>(job, run->ranks);
    CUDA_TRY(cudaGetLastError());
    TRY(list_classes(run, cuda_state_of(context)->side[0]));
    TRY(launch(run, place_nodes<V>, 256, 0, blocks_of(job.nodes, 256), stream, (const uint32_t *)run->ranks,
               run->placed));
    TRY(launch(run, order_groups<V>, NODE_THREADS, 0, blocks_of(job.groups, few ? NODE_THREADS : NODE_THREADS / 32),
               stream, few, (const int32_t *)run->sizes, (const int32_t *)run->placed));
    return cuda_join(context, 1);
}

/* Where nodes are sorted: in the stage, which has no entries yet. */
struct node_order {
    array_block arrays;
    uint32_t *keys, *sorted;
    int32_t *nodes, *order, *lengths;
    char *scratch;
};

/* Sorts the nodes by group and finds where each one's entries begin. */
template <typename V> static sp_status sort_nodes(contract_run<V> *run)
{
    sp_context *context = run->context;
    contract_job<V> &job = run->job;
    cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_of(job.nodes, 256);
    const int bits = 64 - job.count_shift;
    node_order by = {};
    size_t bytes;
    CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, by.keys, by.sorted, by.nodes, by.order, job.nodes, 0,
                                             bits, stream));
    TRY(by.arrays.add(context, job.nodes, &by.keys));
    TRY(by.arrays.add(context, job.nodes, &by.sorted));
    TRY(by.arrays.add(context, job.nodes, &by.nodes));
    TRY(by.arrays.add(context, job.nodes, &by.order));
    TRY(by.arrays.add(context, job.nodes + 1, &by.lengths));
    TRY(by.arrays.add(context, (int64_t)bytes, &by.scratch));
    char *stage = (char *)job.cols;
    if (by.arrays.bytes <= (size_t)((char *)(job.values + run->entries) - stage)) by.arrays.place(stage);
    else TRY(by.arrays.allocate(context));
    key_nodes<<<blocks, 256, 0, stream>>>(job, run->ranks, by.keys, by.nodes);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cub::DeviceRadixSort::SortPairs(by.scratch, bytes, by.keys, by.sorted, by.nodes, by.order, job.nodes, 0,
                                             bits, stream));
    measure_nodes<<<blocks, 256, 0, stream>>>(job, by.sorted, by.order, by.lengths);
    CUDA_TRY(cudaGetLastError());
    return cuda_scan_counts(context, job.nodes, by.lengths, job.starts);
}

/* Waits until what the device writes to the host's memory has arrived: some 5 µs less than for the stream. */
static sp_status await(sp_context *context, const unsigned *arrived)
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
template <typename V> static sp_status read_totals(contract_run<V> *run, contract_totals *totals)
{
    sp_context *context = run->context;
    contract_job<V> &job = run->job;
    TRY(await(context, &run->letter->counted));
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

/* ---- host: the classes' launches --------------------------------------------------------------------------- */

/* Whether (column, place) pairs of rows of 2^bits entries fit 32 bits, all ones left over. */
static bool is_narrow(int64_t columns, int bits) { return columns <= (int64_t)(UINT32_MAX >> bits); }

template <int G, typename V>
static sp_status launch_small(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const int64_t work = blocks_of(count, WARP_THREADS / G);
    auto kernel = is_narrow(run->job.columns, log2_of(G)) ? small_rows<G, uint32_t, V>
                                                         : small_rows<G, unsigned long long, V>;
    return launch(run, kernel, WARP_THREADS, 0, work, stream, c);
}

template <int K, typename V>
static sp_status launch_sorted(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const bool narrow = is_narrow(run->job.columns, log2_of(32 * K));
    const size_t entry = narrow ? sorted_bytes<uint32_t, V>() : sorted_bytes<unsigned long long, V>();
    const size_t bytes = WARP_THREADS * K * entry + WARP_THREADS / 32 * K * sizeof(uint32_t);
    auto kernel = narrow ? sorted_rows<K, uint32_t, V> : sorted_rows<K, unsigned long long, V>;
    return launch(run, kernel, WARP_THREADS, bytes, blocks_of(count, WARP_THREADS / 32), stream, c);
}

template <int THREADS, int ITEMS, typename V>
static sp_status launch_ranked(contract_run<V> *run, int c, unsigned count, int words, bool again,
                               cudaStream_t stream)
{
    const size_t bytes = ranked_bytes(words, THREADS * ITEMS, run->job.operation.combine == SP_COMBINE_MEAN);
    auto kernel = ranked_rows<THREADS, ITEMS, false, V>;
    if constexpr (ITEMS == 0 || std::is_same_v<V, double>) /* other sums have been summed_rows' */
        if (run->job.operation.combine == SP_COMBINE_SUM) kernel = ranked_rows<THREADS, ITEMS, true, V>;
    return launch(run, kernel, THREADS, bytes, count, stream, c, words, again);
}

/* Rows of up to THREADS·ITEMS entries; with RANKED·RANKED_EACH if they are not summed_rows', or have been. */
template <int THREADS, int ITEMS, int RANKED, int RANKED_EACH, typename V>
static sp_status launch_blocks(contract_run<V> *run, int c, unsigned count, int words, bool again,
                               cudaStream_t stream)
{
    if constexpr (std::is_same_v<V, float>) {
        summed_words summed;
        if (!again && is_summed(run, THREADS * ITEMS, &summed)) {
            auto kernel = summed.coarse ? summed_rows<THREADS, ITEMS, true> : summed_rows<THREADS, ITEMS, false>;
            const size_t bytes = summed_bytes(summed, THREADS * ITEMS);
            TRY(leave_cache(run, kernel, THREADS, bytes));
            return launch(run, kernel, THREADS, bytes, count, stream, c, summed);
        }
    }
    return launch_ranked<RANKED, RANKED_EACH>(run, c, count, words, again, stream);
}

/* Whether wide rows are parted, and words of a row's bits: no more than the stage takes are spent on them. */
template <typename V> static bool is_parted(const contract_run<V> *run, unsigned count, int64_t *words)
{
    *words = (run->job.columns + 32 * ROW_WORDS - 1) / (32 * ROW_WORDS) * ROW_WORDS;
    return run->sums && *words * (int64_t)count <= run->entries &&
           PART * sizeof(uint64_t) + 4096 <= cuda_state_of(run->context)->shared_limit;
}

template <typename V>
static sp_status launch_parts(contract_run<V> *run, const contract_totals *totals, cudaStream_t stream)
{
    sp_context *context = run->context;
    const unsigned count = totals->members[WIDE];
    const size_t bytes = PART * sizeof(uint64_t);
    if (run->job.near) {
        const near_table table = near_of(run);
        TRY(leave_cache(run, near_rows, PART_THREADS, near_bytes(table)));
        TRY(launch(run, near_rows, PART_THREADS, near_bytes(table), count, stream, table));
    }
    if (totals->parts == 0) return SP_OK;
    CUDA_TRY(cudaMemsetAsync(run->cells.base, 0, run->zeros, stream));
    TRY(launch(run, mark_parts, PART_THREADS, bytes, (int64_t)totals->parts, stream, run->parted));
    TRY(launch(run, rank_parts, RANK_THREADS, 0, count, stream, run->parted));
    TRY(launch(run, sum_parts, PART_THREADS, bytes, (int64_t)totals->parts, stream, run->parted));
    return launch(run, write_parts, WRITE_THREADS, 0, blocks_of(count * (run->parted.words / 32), WRITE_THREADS / 32),
                  stream, run->parted);
}

/* Wide rows, in parts, or a block each; `again` those that were inexact, a block each. */
template <typename V>
static sp_status launch_wide(contract_run<V> *run, const contract_totals *totals, bool again, cudaStream_t stream)
{
    const int64_t work = blocks_of(run->entries, GATHER_THREADS / 32 * TILE * TILES);
    sp_context *context = run->context;
    if constexpr (std::is_same_v<V, float>)
        if (run->parts && !again) return launch_parts(run, totals, stream);
    if (run->unkeyed) {
        key_sources<<<blocks_of(run->job.nodes, 256), 256, 0, stream>>>(run->job);
        CUDA_TRY(cudaGetLastError());
    }
    TRY(launch(run, gather_wide<V>, GATHER_THREADS, 0, work, stream, again));
    const unsigned count = again ? totals->inexact[WIDE] : totals->members[WIDE];
    return launch_ranked<WIDE_THREADS, 0>(run, WIDE, count, run->longer_words, again, stream);
}

/* A class other than the wide rows', of so many rows at most, or `again` those of them that were inexact. */
template <typename V>
static sp_status launch_class(contract_run<V> *run, int c, unsigned count, bool again, cudaStream_t stream)
{
    switch (c) {
    case SMALL_8: return launch_small<8>(run, c, count, stream);
    case SMALL_16: return launch_small<16>(run, c, count, stream);
    case SMALL_32: return launch_small<32>(run, c, count, stream);
    case SORTED: return launch_sorted<2>(run, c, count, stream);
    case SORTED + 1: return launch_sorted<4>(run, c, count, stream);
    case SORTED + 2: return launch_sorted<8>(run, c, count, stream);
    case SORTED + 3: return launch_sorted<16>(run, c, count, stream);
    case SORTED + 4:
        if (!run->few_words) return launch_sorted<32>(run, c, count, stream);
        return launch_blocks<128, 8, RANKED_THREADS, RANKED_ITEMS>(run, c, count, run->ranked_words, again, stream);
    case RANKED:
        return launch_blocks<256, 8, RANKED_THREADS, RANKED_ITEMS>(run, c, count, run->ranked_words, again, stream);
    case LONGER:
        return launch_blocks<512, 8, LONGER_THREADS, LONGER_ITEMS>(run, c, count, run->longer_words, again, stream);
    default:
        return launch_blocks<1024, 8, LONGER_THREADS, LONGEST_ITEMS>(run, c, count, run->longer_words, again, stream);
    }
}

/* What wide rows need beside the stage. */
template <typename V> static sp_status open_wide(contract_run<V> *run, const contract_totals *totals)
{
    sp_context *context = run->context;
    contract_job<V> *job = &run->job;
    array_block *cells = &run->cells;
    const int64_t entries = (int64_t)totals->wide_entries;
    const unsigned rows = totals->members[WIDE];
    const bool mean = job->operation.combine == SP_COMBINE_MEAN;
    int64_t words;
    TRY(cells->add(context, entries, &job->cells));
    run->parts = job->near && totals->parts == 0;
    if (!run->parts && is_parted(run, rows, &words)) {
        run->parts = true;
        run->parted.words = words;
        TRY(cells->add(context, rows * words, &run->parted.bits));
        TRY(cells->add(context, rows, &run->parted.spans));
        TRY(cells->add(context, entries, &run->parted.counts));
        run->zeros = cells->bytes;
        TRY(cells->add(context, rows * words / COUNTED_WORDS, &run->parted.before));
    }
    TRY(cells->add(context, entries, &job->cell_cols));
    if (mean) TRY(cells->add(context, entries, &job->counts));
    if (mean || job->operation.combine == SP_COMBINE_SUM) TRY(cells->add(context, entries, &job->grains));
    if (run->room && cells->bytes <= (size_t)run->entries * sizeof(V)) cells->place(run->room);
    else TRY(cells->allocate(context));
    run->parted.sums = job->cells;
    return SP_OK;
}

/* C's arrays, for so many entries. */
template <typename V> static sp_status allocate_result(sp_context *context, sp_csr *c, int64_t entries)
{
    TRY(cuda_allocate(context, (size_t)entries * sizeof(int32_t), (void **)&c->col_indices));
    return cuda_allocate(context, (size_t)entries * sizeof(V), &c->values);
}

/* Arrays for as many entries as C may have, before its rows are combined; until they are, wide rows have room there.
 * Where a call asks for sizes that no call before it had, the driver maps memory anew: 40 to 330 µs in which the
 * device has nothing to do. Where memory is short there are none yet. */
template <typename V> static sp_status reserve_result(contract_run<V> *run, sp_csr *c)
{
    size_t available;
    TRY(cuda_available(run->context, &available));
    if ((size_t)run->entries > available / 2 / (sizeof(int32_t) + sizeof(V))) return SP_OK;
    TRY(allocate_result<V>(run->context, c, run->entries));
    run->room = (char *)c->values;
    return SP_OK;
}

/* The streams of all classes start after the main one; that goes on after them. */
static sp_status fork_rows(sp_context *context, bool wide)
{
    const cuda_state *state = cuda_state_of(context);
    TRY(cuda_fork(context, CLASS_STREAMS));
    if (wide) CUDA_TRY(cudaStreamWaitEvent(state->side[WIDE_STREAM], state->forked, 0));
    return SP_OK;
}
static sp_status join_rows(sp_context *context, bool wide)
{
    const cuda_state *state = cuda_state_of(context);
    if (wide) {
        CUDA_TRY(cudaEventRecord(state->joined[WIDE_STREAM], state->side[WIDE_STREAM]));
        CUDA_TRY(cudaStreamWaitEvent(state->stream, state->joined[WIDE_STREAM], 0));
    }
    return cuda_join(context, CLASS_STREAMS);
}

/* The rows of all classes, the longest first. Meanwhile the host asks for C's arrays, before that if wide rows need
 * room there. */
template <typename V>
static sp_status combine_rows(contract_run<V> *run, const contract_totals *totals, sp_csr *result)
{
    sp_context *context = run->context;
    cudaStream_t *side = cuda_state_of(context)->side;
    if (totals->members[WIDE]) {
        TRY(reserve_result(run, result));
        TRY(open_wide(run, totals));
    }
    TRY(fork_rows(context, totals->members[WIDE] > 0));
    if (totals->members[WIDE]) TRY(launch_wide(run, totals, false, side[WIDE_STREAM]));
    for (int c = LONGEST; c > IDLE; c--)
        if (totals->members[c]) TRY(launch_class(run, c, totals->members[c], false, side[c % CLASS_STREAMS]));
    TRY(join_rows(context, totals->members[WIDE] > 0));
    return totals->members[WIDE] ? SP_OK : reserve_result(run, result);
}

/* The rows that have turned out to be inexact. */
template <typename V> static sp_status combine_again(contract_run<V> *run, const contract_totals *totals)
{
    cudaStream_t *side = cuda_state_of(run->context)->side;
    TRY(fork_rows(run->context, totals->inexact[WIDE] > 0));
    if (totals->inexact[WIDE]) TRY(launch_wide(run, totals, true, side[WIDE_STREAM]));
    for (int c = LONGEST; c > IDLE; c--)
        if (totals->inexact[c]) TRY(launch_class(run, c, totals->inexact[c], true, side[c % CLASS_STREAMS]));
    return join_rows(run->context, totals->inexact[WIDE] > 0);
}

/* After a failure waits for all streams: memory is released in the order of the main one, and letters are read. */
static sp_status settle(sp_status status)
{
    if (status != SP_OK) cudaDeviceSynchronize();
    return status;
}

static bool are_inexact(const contract_totals *totals)
{
    for (unsigned rows : totals->inexact)
        if (rows) return true;
    return false;
}

/* Moves the rows to C if it has `least` entries and, if `only_exact`, all are exact. */
template <typename V>
static sp_status move_result(contract_run<V> *run, sp_csr *c, int64_t least, bool only_exact)
{
    const int64_t work = blocks_of(run->entries, GATHER_THREADS / 32 * TILE * TILES) + (int64_t)1;
    return launch(run, move_rows<V>, GATHER_THREADS, 0, work, stream_of(run->context), c->row_offsets,
                  c->col_indices, (V *)c->values, least, only_exact, run->letter);
}

/* C's offsets; moves the rows, before the host knows how many entries there are, if C keeps the arrays that it has.
 * Where more than a quarter of them would not be used, it gets others. */
template <typename V>
static sp_status finish_rows(contract_run<V> *run, sp_csr *c, contract_totals *totals, bool only_exact)
{
    sp_context *context = run->context;
    const int64_t least = c->col_indices ? run->entries / 4 * 3 : INT64_MAX;
    run->letter->combined = 0;
    TRY(cuda_scan_counts(context, run->job.groups, run->job.lengths, c->row_offsets));
    TRY(move_result(run, c, least, only_exact));
    TRY(await(context, &run->letter->combined));
    c->nnz = run->letter->nnz;
    *totals = run->letter->totals;
    if ((only_exact && are_inexact(totals)) || c->nnz >= least) return SP_OK;
    cuda_release(context, c->col_indices);
    cuda_release(context, c->values);
    c->col_indices = NULL;
    c->values = NULL;
    TRY(allocate_result<V>(context, c, c->nnz));
    return move_result(run, c, 0, false);
}

/* Inexact rows, of which there mostly are none, are formed anew: launched ahead, kernels that find nothing to do would
 * stand between others. The run's memory is given back in the order of the stream, before the host waits for it. */
template <typename V> static sp_status write_result(contract_run<V> *run, sp_csr *c, contract_totals *totals)
{
    TRY(finish_rows(run, c, totals, true));
    if (are_inexact(totals)) {
        TRY(combine_again(run, totals));
        TRY(finish_rows(run, c, totals, false));
    }
    run->arrays.memory.free();
    run->cells.memory.free();
    return cuda_finish(run->context);
}

/* Names the classes that have rows; returns their number. */
static int name_groups(const contract_totals *totals, sp_spgemm_group *group)
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

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V>
static sp_status contract_graph(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                                const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const double start = sp_seconds();
    contract_run<V> run = {};
    contract_job<V> &job = run.job;
    contract_totals totals;
    size_t before;
    TRY(cuda_watch_peak(context, &before));
    TRY(cuda_allocate(context, ((size_t)groups + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    TRY(open_run(context, g, labels, g->rows, g->nnz, groups, groups, true, options, &run));
    TRY(group_nodes(&run));
    TRY(read_totals(&run, &totals));
    if (!totals.unsorted) { /* nodes are in order, and so are their entries */
        job.whole = true;
        job.starts = job.sources = (int64_t *)g->row_offsets;
        job.keys = (uint32_t *)labels;
    } else if (totals.most_nodes > MOST_ORDERED) {
        TRY(sort_nodes(&run));
    }
    if (totals.unsorted || totals.gaps || job.short_labels) job.runs = NULL;
    TRY(combine_rows(&run, &totals, c));
    TRY(write_result(&run, c, &totals));
    info->groups = name_groups(&totals, info->group);
    info->entries = (int64_t)totals.entries;
    info->nnz = c->nnz;
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (groups + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->group_seconds = run.grouped - start;
    info->combine_seconds = sp_seconds() - run.grouped;
    return SP_OK;
}

/* ---- products of patterns ---------------------------------------------------------------------------------- */

/* Combines the rows of a product, whose run is open and knows the entries of each; not `done` where B's rows turn out
 * to have more than one. */
template <typename V>
static sp_status finish_product(contract_run<V> *run, double start, size_t before, sp_csr *c, sp_spgemm_info *info,
                                bool *done)
{
    sp_context *context = run->context;
    const int64_t rows = run->job.groups;
    contract_totals totals;
    TRY(cuda_allocate(context, ((size_t)rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    TRY(list_classes(run, stream_of(context)));
    TRY(read_totals(run, &totals));
    *done = !totals.nameless;
    if (!*done) {
        cuda_release(context, c->row_offsets);
        c->row_offsets = NULL;
        return cuda_finish(context);
    }
    TRY(combine_rows(run, &totals, c));
    TRY(write_result(run, c, &totals));
    info->products = (int64_t)totals.entries;
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    info->groups = name_groups(&totals, info->group);
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (rows + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->analysis_seconds = run->grouped - start;
    info->numeric_seconds = sp_seconds() - run->grouped;
    return SP_OK;
}

/* The column of each row of B, which has one at most; whether a row has more. */
static __global__ void read_names(int64_t rows, const int64_t *offsets, const int32_t *cols, int32_t *names,
                                  contract_totals *totals)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const int64_t begin = offsets[i], count = offsets[i + 1] - begin;
    names[i] = count > 0 ? cols[begin] : -1;
    if (count > 1) totals->nameless = 1;
}

template <typename V>
static sp_status rename_columns(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                                sp_spgemm_info *info, bool *done)
{
    const double start = sp_seconds();
    const sp_contract_options sums = {};
    device_array<int32_t> names;
    contract_run<V> run = {};
    size_t before;
    TRY(cuda_watch_peak(context, &before));
    TRY(names.allocate(context, b->rows));
    TRY(open_run(context, a, names.data, a->rows, a->nnz, a->rows, c->cols, false, &sums, &run));
    run.job.whole = true;
    read_names<<<blocks_of(b->rows, 256), 256, 0, stream_of(context)>>>(b->rows, b->row_offsets, b->col_indices,
                                                                        names.data, run.job.totals);
    CUDA_TRY(cudaGetLastError());
    take_rows<<<blocks_of(a->rows + 1, 256), 256, 0, stream_of(context)>>>(run.job);
    CUDA_TRY(cudaGetLastError());
    return finish_product(&run, start, before, c, info, done);
}

/* How many products each entry of A makes, whether any, and their number. */
static __global__ void __launch_bounds__(256)
    count_products(int64_t entries, const int32_t *a_cols, const int64_t *b_offsets, int32_t *lengths, int32_t *used,
                   unsigned long long *products)
{
    __shared__ uint64_t scratch[256 / 32];
    unsigned long long all = 0;
    for (int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x; k < entries; k += (int64_t)gridDim.x * 256) {
        const int64_t own = b_offsets[a_cols[k] + 1] - b_offsets[a_cols[k]];
        lengths[k] = (int32_t)own;
        used[k] = own > 0;
        all += (unsigned long long)own;
    }
    all = block_reduce<256>(all, add_op(), scratch);
    if (threadIdx.x == 0) atomicAdd(products, all);
}

/* The rows of B in the order of A's entries, those without entries left out: places[k] of them come before entry k.
 * `kept`: how many entries each has. */
template <typename V>
static __global__ void list_entries(contract_job<V> job, const int32_t *a_cols, const int64_t *places,
                                    const int32_t *lengths, int32_t *kept)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= job.nodes) return;
    if (k >= places[job.nodes]) job.sources[k] = 0; /* is read ahead */
    if (lengths[k] == 0) return;
    job.sources[places[k]] = job.g.offsets[a_cols[k]];
    kept[places[k]] = lengths[k];
}

/* What each row of C is made of; of nothing where the stage was measured for names that there are not. */
template <typename V>
static __global__ void bound_sums(contract_job<V> job, const int64_t *a_offsets, const int64_t *places)
{
    const int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= job.groups || job.totals->nameless) return;
    const int64_t first = places[a_offsets[p]], end = places[a_offsets[p + 1]];
    job.firsts[p] = (int32_t)first;
    job.ranges[p] = {job.starts[first], job.starts[end]};
}

/* What the entries of a pattern A are, as rows of B. */
struct entry_lists {
    array_block arrays;
    int32_t *lengths, *used, *kept;
    int64_t *places;
    unsigned long long *products; /* their number */
};

static sp_status measure_entries(sp_context *context, const sp_csr *a, const sp_csr *b, entry_lists *lists)
{
    cudaStream_t stream = stream_of(context);
    array_block *arrays = &lists->arrays;
    const unsigned blocks = blocks_of(a->nnz, 256), most = (unsigned)cuda_state_of(context)->processors * 8;
    TRY(arrays->add(context, 1, &lists->products));
    TRY(arrays->add(context, a->nnz, &lists->kept));
    const size_t zeros = arrays->bytes;
    TRY(arrays->add(context, a->nnz, &lists->lengths));
    TRY(arrays->add(context, a->nnz, &lists->used));
    TRY(arrays->add(context, a->nnz + 1, &lists->places));
    TRY(arrays->allocate(context));
    CUDA_TRY(cudaMemsetAsync(arrays->memory.data, 0, zeros, stream));
    count_products<<<blocks < most ? blocks : most, 256, 0, stream>>>(a->nnz, a->col_indices, b->row_offsets,
                                                                      lists->lengths, lists->used, lists->products);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

/* Lists the rows of B that A's entries are, and those of each row of C. */
template <typename V>
static sp_status list_sums(contract_run<V> *run, const sp_csr *a, entry_lists *lists)
{
    sp_context *context = run->context;
    cudaStream_t stream = stream_of(context);
    run->unkeyed = true;
    TRY(cuda_scan_counts(context, a->nnz, lists->used, lists->places));
    list_entries<<<blocks_of(a->nnz, 256), 256, 0, stream>>>(run->job, a->col_indices, lists->places, lists->lengths,
                                                             lists->kept);
    CUDA_TRY(cudaGetLastError());
    TRY(cuda_scan_counts(context, a->nnz, lists->kept, run->job.starts));
    bound_sums<<<blocks_of(a->rows, 256), 256, 0, stream>>>(run->job, a->row_offsets, lists->places);
    CUDA_TRY(cudaGetLastError());
    lists->arrays.memory.free();
    return SP_OK;
}

/* Sums of rows of B, where A is a pattern; not `done` where the stage, 4 + v bytes a product, would take more than
 * twice what B does. */
template <typename V>
static sp_status add_rows(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info,
                          bool *done)
{
    const double start = sp_seconds();
    const sp_contract_options sums = {};
    entry_lists lists = {};
    contract_run<V> run = {};
    unsigned long long products;
    size_t before;
    TRY(cuda_watch_peak(context, &before));
    TRY(measure_entries(context, a, b, &lists));
    CUDA_TRY(cudaMemcpyAsync(&products, lists.products, sizeof products, cudaMemcpyDeviceToHost, stream_of(context)));
    TRY(cuda_finish(context));
    if (products > 2 * (unsigned long long)b->nnz) return SP_OK;
    TRY(open_run(context, b, (const int32_t *)NULL, a->nnz, (int64_t)products, a->rows, b->cols, false, &sums, &run));
    TRY(list_sums(&run, a, &lists));
    return finish_product(&run, start, before, c, info, done);
}

/* The row of S that has column j, its only one: what a column of G is called in G·Sᵀ. Whether another has it, too.
 * So many lanes a row, the block for one of more than 16 entries a lane. */
static __global__ void __launch_bounds__(256)
    name_columns(int64_t rows, int lanes, const int64_t *offsets, const int32_t *cols, int32_t *names,
                 contract_totals *totals)
{
    __shared__ int64_t waiting[256];
    __shared__ int waits;
    const auto name = [&](int64_t row, int lane, int step) {
        for (int64_t at = offsets[row] + lane; at < offsets[row + 1]; at += step)
            if (atomicExch(names + cols[at], (int32_t)row) != -1) totals->nameless = 1;
    };
    const int lane = (int)threadIdx.x % lanes;
    const int64_t row = ((int64_t)blockIdx.x * 256 + threadIdx.x) / lanes;
    const int64_t length = row < rows ? offsets[row + 1] - offsets[row] : 0;
    if (threadIdx.x == 0) waits = 0;
    __syncthreads();
    if (length > 16 * lanes && lane == 0) waiting[atomicAdd(&waits, 1)] = row;
    else if (length > 0 && length <= 16 * lanes) name(row, lane, lanes);
    __syncthreads();
    for (int i = 0; i < waits; i++) name(waiting[i], (int)threadIdx.x, 256);
}

/* S·G·Sᵀ: rows of G added up, under the names of their columns. Each row of G is used once, if S names columns at
 * all. */
template <typename V>
static sp_status add_named_rows(sp_context *context, const sp_csr *s, const sp_csr *g, sp_csr *c,
                                sp_spgemm_info *info, bool *done)
{
    const double start = sp_seconds();
    const sp_contract_options sums = {};
    entry_lists lists = {};
    contract_run<V> run = {};
    device_array<int32_t> names;
    size_t before;
    TRY(cuda_watch_peak(context, &before));
    TRY(names.allocate(context, s->cols));
    TRY(names.fill(0xff, s->cols));
    TRY(measure_entries(context, s, g, &lists));
    TRY(open_run(context, g, names.data, s->nnz, g->nnz, s->rows, s->rows, false, &sums, &run));
    int lanes = 1;
    while (lanes < 32 && lanes * 4 * s->rows < s->nnz) lanes *= 2;
    name_columns<<<blocks_of(s->rows * lanes, 256), 256, 0, stream_of(context)>>>(
        s->rows, lanes, s->row_offsets, s->col_indices, names.data, run.job.totals);
    CUDA_TRY(cudaGetLastError());
    TRY(list_sums(&run, s, &lists));
    return finish_product(&run, start, before, c, info, done);
}

template <typename V>
static sp_status multiply_patterns(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                                   sp_spgemm_info *info, bool *done)
{
    if (!b->values && b->nnz <= b->rows) TRY(rename_columns<V>(context, a, b, c, info, done));
    const bool adds = !a->values && a->nnz <= 2 * b->rows && a->nnz <= INT32_MAX && b->cols <= MOST_COLUMNS;
    return *done || !adds ? SP_OK : add_rows<V>(context, a, b, c, info, done);
}

/* C, zeroed but for its columns, for `make`, which may leave it to others: not `done`. */
template <typename Make>
static sp_status make_product(const sp_csr *a, int64_t cols, sp_csr *c, sp_context *context, sp_spgemm_info *info,
                              bool *done, Make make)
{
    sp_csr made = {};
    made.rows = a->rows;
    made.cols = cols;
    made.value_type = a->value_type;
    made.space = SP_DEVICE;
    *done = false;
    *info = {};
    const sp_status status = settle(make(&made));
    if (status == SP_OK && *done) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status cuda_multiply_patterns(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                                 sp_spgemm_info *info, bool *done)
{
    *done = false;
    if (a->rows == 0 || a->nnz == 0 || b->rows == 0) return SP_OK;
    return make_product(a, b->cols, c, context, info, done, [&](sp_csr *made) {
        return a->value_type == SP_F32 ? multiply_patterns<float>(context, a, b, made, info, done)
                                       : multiply_patterns<double>(context, a, b, made, info, done);
    });
}

sp_status sp_cuda_triple_product(sp_context *context, const sp_csr *s, const sp_csr *g, sp_csr *c,
                                 sp_spgemm_info *info, bool *done)
{
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    return make_product(s, s->rows, c, context, info, done, [&](sp_csr *made) {
        return s->value_type == SP_F32 ? add_named_rows<float>(context, s, g, made, info, done)
                                       : add_named_rows<double>(context, s, g, made, info, done);
    });
}

/* ---- contraction ------------------------------------------------------------------------------------------- */

sp_status sp_cuda_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                           const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    sp_csr made = {};
    sp_status status;
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    made.rows = made.cols = groups;
    made.value_type = g->value_type;
    made.space = SP_DEVICE;
    if (g->rows == 0) {
        status = sp_csr_create(context, groups, groups, 0, g->value_type, SP_DEVICE, &made);
        if (status == SP_OK)
            status = cuda_status(context,
                                 cudaMemsetAsync(made.row_offsets, 0, ((size_t)groups + 1) * sizeof(int64_t),
                                                 stream_of(context)),
                                 "cudaMemsetAsync");
        if (status == SP_OK) status = cuda_finish(context);
    } else if (g->value_type == SP_F32) {
        status = settle(contract_graph<float>(context, g, labels, groups, options, &made, info));
    } else {
        status = settle(contract_graph<double>(context, g, labels, groups, options, &made, info));
    }
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
