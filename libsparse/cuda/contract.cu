/* C(p, q) = the combination of all G(i, j) with labels[i] = p and labels[j] = q, on a CUDA device: S·G·Sᵀ for labels
 * (Li et al., Algorithm 7) in one pass over G, without the two products.
 *
 * A radix sort of the nodes by label lists the rows of G that make up each row of C. Rows of C are combined by class of
 * length, columns replaced by labels as they are read:
 *   - small rows, up to 32 entries: sorted in registers, 1 to 4 rows a warp;
 *   - sorted rows, up to 512 entries (1,024 where there are many groups): a warp each, (column, place) sorted in
 *     registers, so that entries of a column follow each other in order;
 *   - ranked rows: a block each, with a bit a column; the bits before a column are its place in C's row. Entries lie in
 *     registers and cells in shared memory; those of wide rows, above 8,192 entries, in global memory.
 * What comes out goes to a stage in which every row has the room of its entries, and from there, when the lengths of all
 * are known, to C.
 *
 * Order of additions. Small and sorted rows add in G's order as they are. In ranked rows the threads of a block add in
 * any order, as integers: f64 sums of numbers that are multiples of some 2^l are exact, whatever the order, while they
 * stay below 2^(l + 53). Cells that reach that are summed again in order, as are rows whose numbers span too much. The
 * largest, the smallest, the first and the number do not depend on the order. Values are therefore the CPU's.
 *
 * Bytes an entry of G, with f32 values: 8 of G and 4 of a label (from the second-level cache) read; the stage written
 * and read, C written, 8 each: 32 and the label, for wide rows 48. Some 60 a node for the sort by label, 30 a group.
 */
#include <cub/device/device_radix_sort.cuh>
#include <limits.h>
#include <stdio.h>

#include "warp.cuh"

/* ---- constants ------------------------------------------------------------------------------------------- */

/* Classes of C's rows. Rows of class SORTED + i have up to 64 << i entries. */
enum { SORTED_CLASSES = 5 };
enum { IDLE, SMALL_8, SMALL_16, SMALL_32, SORTED, RANKED = SORTED + SORTED_CLASSES, LONGER, LONGEST, WIDE,
       CLASSES };
enum { LEAST_SORTED = 64, MOST_SORTED = 512, MOST_SORTED_OF_MANY = 1024, MANY_WORDS = 4096 };

/* Ranked rows have up to 2,048, 4,096 or 8,192 entries, in the registers of their block, with as many cells in shared
 * memory: 24 KB a row in the first class, so that several blocks share a multiprocessor. Windows have so many words of
 * bits, or those of all columns where they are fewer. */
enum { RANKED_THREADS = 256, RANKED_ITEMS = 8, RANKED_WORDS = 8192 };
enum { LONGER_THREADS = 512, LONGER_ITEMS = 8, LONGEST_ITEMS = 16, LONGER_WORDS = 16384 };
enum { WIDE_THREADS = 1024, LEAST_WORDS = 256 }; /* a bit an entry of the longest row in registers */
static_assert(LEAST_WORDS * 32 >= LONGER_THREADS * LONGEST_ITEMS, "bits where nodes begin");
enum { WORD_SHIFT = 7, WORD_STEP = 1 << WORD_SHIFT }; /* words that a warp counts at once */

enum { WARP_THREADS = 128, GATHER_THREADS = 256 };
enum { TILE = 256, TILES = 4 }; /* entries that a warp assigns to their rows at once; tiles it takes in a row */

/* ---- device: what a call works on ------------------------------------------------------------------------ */

/* All that is counted on the device. */
struct contract_totals {
    unsigned long long entries, wide_entries, wide_placed;
    unsigned members[CLASSES], placed[CLASSES]; /* rows of a class; rows already listed */
    unsigned good_nodes;                        /* nodes from 0 on whose labels are below `groups`: UINT_MAX, all */
};

/* Entries [begin, end) of the stage. */
struct alignas(16) stage_range {
    int64_t begin, end;
};

struct contract_operation {
    sp_combine combine;
    sp_loops loops;
    bool half; /* sums and counts on the diagonal are halved */
};

template <typename V> struct contract_job {
    matrix_view<V> g; /* values NULL: ones, or not wanted */
    const int32_t *labels;
    int64_t nodes, groups;
    contract_operation operation;
    contract_totals *totals;
    uint32_t *keys;  /* by group: a node's label, `groups` for none */
    int32_t *order;  /* nodes by key, ascending within */
    int64_t *starts; /* where the entries of the k-th of them begin, and would in the stage */
    stage_range *ranges; /* of C's rows */
    int32_t *firsts;     /* the first of the nodes of each */
    int32_t *cols;       /* the stage */
    V *values;
    uint8_t *classes;
    int32_t *list, *lengths;
    int64_t *cells_of; /* wide rows, as listed: where their cells begin */
    unsigned long long *cells, *counts, *grains;
    int32_t *cell_cols;
};

/* ---- device: nodes by group ------------------------------------------------------------------------------ */

template <typename V> static __global__ void key_nodes(contract_job<V> job, uint32_t *keys, int32_t *nodes)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.nodes) return;
    const int32_t label = job.labels[i];
    if (label >= job.groups) atomicMin(&job.totals->good_nodes, (unsigned)i);
    const bool member = label >= 0 && label < job.groups && job.g.offsets[i + 1] > job.g.offsets[i];
    keys[i] = member ? (uint32_t)label : (uint32_t)job.groups;
    nodes[i] = (int32_t)i;
}

template <typename V> static __global__ void measure_nodes(contract_job<V> job, int32_t *lengths)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= job.nodes) return;
    const int32_t node = job.order[k];
    lengths[k] = job.keys[k] < job.groups ? (int32_t)(job.g.offsets[node + 1] - job.g.offsets[node]) : 0;
}

template <typename V> static __global__ void bound_groups(contract_job<V> job)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= job.nodes || job.keys[k] >= job.groups) return;
    const uint32_t key = job.keys[k];
    if (k == 0 || job.keys[k - 1] != key) {
        job.ranges[key].begin = job.starts[k];
        job.firsts[key] = (int32_t)k;
    }
    if (k == job.nodes - 1 || job.keys[k + 1] != key) job.ranges[key].end = job.starts[k + 1];
}

/* ---- device: classes ------------------------------------------------------------------------------------- */

/* Largest rows of the classes, by what the device's shared memory holds. */
struct class_limits {
    int sorted, longer, longest; /* 0: none */
};

template <typename V>
static __global__ void __launch_bounds__(256) classify_rows(contract_job<V> job, class_limits limits)
{
    __shared__ unsigned members[CLASSES];
    if (threadIdx.x < CLASSES) members[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x; p < job.groups; p += (int64_t)gridDim.x * 256) {
        const int64_t entries = job.ranges[p].end - job.ranges[p].begin;
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
        if (c == WIDE) atomicAdd(&job.totals->wide_entries, (unsigned long long)min(entries, job.groups));
    }
    __syncthreads();
    if (threadIdx.x < CLASSES && members[threadIdx.x])
        atomicAdd(&job.totals->members[threadIdx.x], members[threadIdx.x]);
}

/* The rows of class c. */
struct class_rows {
    const int32_t *rows;
    unsigned count;
};
static __device__ __forceinline__ unsigned first_of_class(const contract_totals *totals, int c)
{
    unsigned first = 0;
    for (int d = IDLE + 1; d < c; d++) first += totals->members[d];
    return first;
}
template <typename V> static __device__ __forceinline__ class_rows rows_of(const contract_job<V> &job, int c)
{
    return {job.list + first_of_class(job.totals, c), job.totals->members[c]};
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
            const unsigned to = place[own[u]] + at[u];
            job.list[first_of_class(job.totals, own[u]) + to] = (int32_t)p;
            if (own[u] != WIDE) continue;
            const int64_t cells = min(job.ranges[p].end - job.ranges[p].begin, job.groups);
            job.cells_of[to] = (int64_t)atomicAdd(&job.totals->wide_placed, (unsigned long long)cells);
        }
        __syncthreads();
    }
}

/* ---- device: the entries of a row ------------------------------------------------------------------------- */

/* Where the entries of the k-th node begin: in its row of C, from the row's `begin` on, and in G less that. */
template <typename V>
static __device__ __forceinline__ int64_t node_start(const contract_job<V> &job, int64_t k, int64_t begin)
{
    return __ldg(job.starts + k) - begin;
}
template <typename V>
static __device__ __forceinline__ int64_t node_source(const contract_job<V> &job, int64_t k, int64_t from)
{
    return __ldg(job.g.offsets + __ldg(job.order + k)) - from;
}

/* The column in C's row p of an entry of G in column `node`; EMPTY if it is left out. */
template <typename V>
static __device__ __forceinline__ int32_t column_of(const contract_job<V> &job, int32_t p, int32_t node)
{
    const int32_t col = __ldg(job.labels + node);
    if (col < 0 || col >= job.groups) return EMPTY;
    if (job.operation.loops == SP_LOOPS_KEEP) return col;
    return (col == p) == (job.operation.loops == SP_LOOPS_ONLY) ? col : EMPTY;
}

static __device__ __forceinline__ void add_entries(contract_totals *totals, unsigned long long entries)
{
    for (int step = 16; step > 0; step /= 2) entries += __shfl_xor_sync(FULL_WARP, entries, step);
    if ((threadIdx.x & 31) == 0 && entries) atomicAdd(&totals->entries, entries);
}

/* ---- device: dealing out entries evenly ------------------------------------------------------------------ */

/* The last of `count` items that starts at or before `place`, for a warp; 32 probes a step. */
static __device__ int64_t last_start(const int64_t *starts, int64_t count, int64_t place)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t step = (high - low + 31) / 32, at = low + (threadIdx.x & 31) * step;
        const unsigned before = __ballot_sync(FULL_WARP, at < high && __ldg(starts + min(at, count)) <= place);
        low += (__popc(before) - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

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
static __device__ __forceinline__ void copy_tiles(item_tile &tile, const int64_t *starts, int64_t items, int64_t begin,
                                                  int64_t stop, int64_t first, Take take, Copy copy)
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
template <typename V> static __global__ void __launch_bounds__(GATHER_THREADS, 5) gather_wide(contract_job<V> job)
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
    add_entries(job.totals, kept);
}

/* The combined ranges of the stage to C. */
template <typename V>
static __global__ void __launch_bounds__(GATHER_THREADS)
    move_rows(contract_job<V> job, const int64_t *offsets, int32_t *cols, V *values)
{
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

/* ---- device: combining in order --------------------------------------------------------------------------- */

/* One more value in a cell that has one. */
static __device__ __forceinline__ double combine(sp_combine operation, double kept, double more)
{
    if (operation == SP_COMBINE_SUM || operation == SP_COMBINE_MEAN) return __dadd_rn(kept, more);
    if (operation == SP_COMBINE_MAX) return more > kept ? more : kept;
    if (operation == SP_COMBINE_MIN) return more < kept ? more : kept;
    return kept;
}

/* C's value of a cell made of `count` entries. */
static __device__ __forceinline__ double cell_value(const contract_operation &operation, double kept, double count,
                                                    bool diagonal)
{
    if (operation.combine == SP_COMBINE_MEAN) return __ddiv_rn(kept, count);
    if (operation.combine == SP_COMBINE_COUNT) kept = count;
    return diagonal && operation.half ? __dmul_rn(kept, 0.5) : kept;
}

/* ---- device: small rows ----------------------------------------------------------------------------------- */

/* One row a group of G lanes, with at most G entries; p < 0: none. The group's first lane returns how many are not left
 * out. */
template <int G, typename Key, typename V>
static __device__ __forceinline__ int small_row(const contract_job<V> &job, int32_t p)
{
    const int lane = threadIdx.x & 31, own = lane & (G - 1);
    const stage_range range = p >= 0 ? job.ranges[p] : stage_range{0, 0};
    const int length = (int)(range.end - range.begin);
    const unsigned group = G == 32 ? FULL_WARP : ((1u << (G & 31)) - 1) << (lane & ~(G - 1));
    /* Each lane stands for a node, too: a bit where its entries begin. */
    const int64_t k = p >= 0 ? job.firsts[p] + own : job.nodes;
    const int64_t from = k < job.nodes ? node_start(job, k, range.begin) : length;
    int64_t source = from < length ? node_source(job, k, from) : 0;
    const unsigned begins = warp_or(from < length ? 1u << ((lane & ~(G - 1)) + (int)from) : 0) & group;
    const int node = __popc(begins & (lanes_below() * 2 + 1)) - 1;
    source = __shfl_sync(FULL_WARP, (long long)source, max(node, 0), G) + own;
    int32_t col = EMPTY;
    double value = 1;
    if (own < length) {
        col = __ldg(job.g.cols + source);
        if (job.g.values) value = (double)__ldg(job.g.values + source);
        col = column_of(job, p, col);
    }
    Key key[1] = {col == EMPTY ? ~Key(0) : (Key)(uint32_t)col << log2_of(G) | (Key)own};
    sort_keys<1>(key, G);
    const bool active = key[0] != ~Key(0);
    col = (int32_t)(key[0] >> log2_of(G));
    const int32_t previous = __shfl_up_sync(FULL_WARP, col, 1, G);
    const bool head = active && (own == 0 || previous != col);
    const unsigned heads = __ballot_sync(FULL_WARP, head) & group;
    const int entries = __popc(__ballot_sync(FULL_WARP, active) & group);
    value = __shfl_sync(FULL_WARP, value, (int)key[0] & (G - 1), G);
    double kept = value;
    int count = 1;
    for (int step = 1; step < G; step++) {
        const int32_t other = __shfl_down_sync(FULL_WARP, col, step, G);
        const double more = __shfl_down_sync(FULL_WARP, value, step, G);
        const bool joins = head && own + step < entries && other == col;
        if (!__any_sync(FULL_WARP, joins)) break;
        if (!joins) continue;
        kept = combine(job.operation.combine, kept, more);
        count++;
    }
    if (head) {
        const int64_t at = range.begin + __popc(heads & lanes_below());
        job.cols[at] = col;
        job.values[at] = (V)cell_value(job.operation, kept, count, col == p);
    }
    if (p >= 0 && own == 0) job.lengths[p] = __popc(heads);
    return own == 0 ? entries : 0;
}

template <int G, typename Key, typename V>
static __global__ void __launch_bounds__(WARP_THREADS) small_rows(contract_job<V> job, int c)
{
    const class_rows own = rows_of(job, c);
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    const unsigned group = (threadIdx.x & 31) / G, step = warps * (32 / G);
    unsigned long long kept = 0;
    int32_t next = warp * (32 / G) + group < own.count ? own.rows[warp * (32 / G) + group] : -1;
    for (unsigned base = warp * (32 / G); base < own.count; base += step) {
        const int32_t p = next;
        next = base + step + group < own.count ? own.rows[base + step + group] : -1;
        kept += small_row<G, Key>(job, p);
    }
    add_entries(job.totals, kept);
}

/* ---- device: sorted rows ---------------------------------------------------------------------------------- */

/* Bytes an entry of a sorted row: its key and value, before them its node's source. */
template <typename Key, typename V> static __host__ __device__ constexpr size_t sorted_bytes()
{
    return sizeof(Key) + sizeof(V);
}

/* A row of at most 32·K entries, a warp each. */
template <int K, typename Key, typename V>
static __global__ void __launch_bounds__(WARP_THREADS) sorted_rows(contract_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    constexpr int bits = log2_of(32 * K);
    const class_rows own = rows_of(job, c);
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    unsigned char *memory = row_memory + warp * 32 * K * sorted_bytes<Key, V>();
    Key *sorted = (Key *)memory;
    V *value = (V *)(sorted + 32 * K);
    int64_t *sources = (int64_t *)memory; /* first: of the row's nodes */
    uint32_t *begins = (uint32_t *)(row_memory + blockDim.x * K * sorted_bytes<Key, V>()) + warp * K;
    unsigned long long kept_entries = 0;
    const auto key_at = [&](int place) { return sorted[swizzled(place, K - 1)]; };
    for (unsigned i = blockIdx.x * (blockDim.x / 32) + warp; i < own.count; i += gridDim.x * (blockDim.x / 32)) {
        const int32_t p = own.rows[i];
        const stage_range range = job.ranges[p];
        const int length = (int)(range.end - range.begin);
        if (lane < K) begins[lane] = 0;
        __syncwarp();
        for (int64_t k = job.firsts[p] + lane, node = lane; k < job.nodes; k += 32, node += 32) {
            const int64_t from = node_start(job, k, range.begin);
            if (from >= length) break;
            sources[node] = node_source(job, k, from);
            atomicOr(begins + from / 32, 1u << (from % 32));
        }
        __syncwarp();
        Key key[K];
        V number[K];
        int32_t col[K];
        int node = -1, entries = 0;
#pragma unroll
        for (int u = 0; u < K; u++) {
            const int at = 32 * u + lane;
            const uint32_t word = begins[u];
            col[u] = EMPTY;
            if (at < length) {
                const int64_t source = sources[node + __popc(word & (lanes_below() * 2 + 1))] + at;
                col[u] = __ldg(job.g.cols + source);
                if (job.g.values) number[u] = __ldg(job.g.values + source);
            }
            node += __popc(word);
        }
        __syncwarp();
#pragma unroll
        for (int u = 0; u < K; u++) {
            const int at = 32 * u + lane;
            if (col[u] != EMPTY) col[u] = column_of(job, p, col[u]);
            if (job.g.values && at < length) value[at] = number[u];
            key[u] = col[u] == EMPTY ? ~Key(0) : (Key)(uint32_t)col[u] << bits | (Key)at;
            entries += col[u] != EMPTY;
        }
        kept_entries += entries;
        entries = (int)warp_add((unsigned)entries);
        sort_keys<K>(key, 32);
#pragma unroll
        for (int u = 0; u < K; u++) sorted[swizzled(lane * K + u, K - 1)] = key[u];
        __syncwarp();
        int written = 0;
        for (int base = 0; base < entries; base += 32) {
            const int at = base + lane;
            const Key own_key = key_at(at < entries ? at : 0);
            const Key col = own_key >> bits;
            const bool head = at < entries && (at == 0 || key_at(at - 1) >> bits != col);
            const unsigned heads = __ballot_sync(FULL_WARP, head);
            if (head) {
                const auto value_at = [&](Key of) { return job.g.values ? (double)value[(int)of & (32 * K - 1)] : 1.0; };
                double kept = value_at(own_key);
                int next = at + 1;
                for (Key more; next < entries && (more = key_at(next)) >> bits == col; next++)
                    kept = combine(job.operation.combine, kept, value_at(more));
                const int64_t to = range.begin + written + __popc(heads & lanes_below());
                job.cols[to] = (int32_t)col;
                job.values[to] = (V)cell_value(job.operation, kept, next - at, (int32_t)col == p);
            }
            written += __popc(heads);
        }
        if (lane == 0) job.lengths[p] = written;
        __syncwarp();
    }
    add_entries(job.totals, kept_entries);
}

/* ---- device: ranked rows, numbers as integers --------------------------------------------------------------- */

/* What numbers have in common: multiples of 2^least, below 2^most. */
struct number_span {
    int least, most;
    bool negative, odd; /* some are; some are -0, infinite or no number */
};

/* A thread's numbers. For f32 the smallest exponent does for `least`; f64 has the room only for what its numbers need. */
template <typename V> struct span_of {
    uint32_t lowest = UINT32_MAX, highest = 0, signs = 0; /* of the magnitudes, lowest less one: 0 does not count */
    bool minus_zero = false;

    __device__ __forceinline__ void add(float value)
    {
        const uint32_t bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
        lowest = min(lowest, magnitude - 1);
        highest = max(highest, magnitude);
        signs |= bits;
        minus_zero = minus_zero || bits == 0x80000000u;
    }
    __device__ __forceinline__ number_span get() const
    {
        return {highest ? max((int)((lowest + 1) >> 23), 1) - 150 : INT_MAX,
                highest ? max((int)(highest >> 23), 1) - 126 : INT_MIN, signs >> 31 != 0,
                minus_zero || highest >= 0x7f800000u};
    }
};
template <> struct span_of<double> {
    number_span span = {INT_MAX, INT_MIN, false, false};

    __device__ __forceinline__ void add(double value)
    {
        const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
        const unsigned long long fraction = bits & ((1ull << 52) - 1);
        const int exponent = (int)(bits >> 52 & 0x7ff);
        span.negative = span.negative || bits >> 63;
        span.odd = span.odd || exponent == 0x7ff || bits == 1ull << 63;
        if (bits << 1 == 0) return;
        const int unit = max(exponent, 1) - 1075;
        span.least = min(span.least, unit + __ffsll((long long)(fraction | (exponent ? 1ull << 52 : 0))) - 1);
        span.most = max(span.most, unit + 53);
    }
    __device__ __forceinline__ number_span get() const { return span; }
};

/* f64 adds integers below 2^53 exactly; 64 bits with their sign hold any below 2^62. */
enum { EXACT_BITS = 53, INTEGER_BITS = 62, MOST_SCALE = 1000 };

static __device__ __forceinline__ double power_of_two(int exponent)
{
    return __longlong_as_double((long long)(exponent + 1023) << 52);
}

/* A number in units of 2^least. */
static __device__ __forceinline__ unsigned long long units_of(float value, int least)
{
    const uint32_t bits = __float_as_uint(value), exponent = bits >> 23 & 0xff;
    const unsigned long long fraction = (bits & 0x7fffffu) | (exponent ? 1u << 23 : 0);
    const unsigned long long units = fraction << max((exponent ? (int)exponent : 1) - 150 - least, 0);
    return bits >> 31 ? 0 - units : units;
}
static __device__ __forceinline__ unsigned long long units_of(double value, int least)
{
    return (unsigned long long)__double2ll_rn(__dmul_rn(value, power_of_two(-least)));
}

/* f64 numbers as integers that compare like them, and back. */
static __device__ __forceinline__ unsigned long long comparable(double value)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
static __device__ __forceinline__ double compared(unsigned long long key)
{
    return __longlong_as_double((long long)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

/* Shared memory adds 32 bits at once; carries are rare, and few numbers have upper bits. */
static __device__ __forceinline__ void add_shared(unsigned long long *cell, unsigned long long more)
{
    unsigned *half = (unsigned *)cell;
    const unsigned low = (unsigned)more, old = atomicAdd(half, low);
    const unsigned high = (unsigned)(more >> 32) + (old + low < old);
    if (high) atomicAdd(half + 1, high);
}

/* ---- device: ranked rows ---------------------------------------------------------------------------------- */

/* Cells that are summed again one after another; with more of them the row is. Tags of a warp's cells. */
enum { MOST_LATE = 64, TAGS = 256 };
constexpr unsigned long long NO_STATE = ~0ull; /* combining in order: a NaN that no arithmetic makes */

/* A block's row: in registers, ITEMS entries a thread, or if that is 0 in the stage. Its cells are numbered by column:
 * those of earlier windows, then by bits. PLAIN is the sum of numbers, for which nothing else is compiled in. */
template <int THREADS, int ITEMS, bool PLAIN, typename V> struct ranked_row {
    static constexpr int WARPS = THREADS / 32;
    static constexpr bool IS_WIDE = ITEMS == 0;
    static constexpr int DEPTH = IS_WIDE ? 4 : ITEMS; /* entries that a thread loads at once */
    struct memory {
        uint32_t base[WARPS]; /* cells before a warp's words */
        int least, most, late;
        unsigned flags;
        uint8_t tags[WARPS][TAGS];
        uint32_t listed[DEPTH * WARPS], all_listed; /* entries of cells of several, by 32 */
    };
    const contract_job<V> &job;
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

    /* The row's entries from G to registers: a bit where each node's begin, and its source in the cells' place. Returns
     * how many are not left out. */
    __device__ unsigned gather()
    {
        int64_t *sources = (int64_t *)states;
        const int needed = ITEMS * WARPS < WORD_STEP ? (int)WORD_STEP : ITEMS * WARPS;
        clear_bits(needed);
        for (int64_t k = job.firsts[p] + (int64_t)threadIdx.x, node = threadIdx.x; k < job.nodes;
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
    /* Counts the bits before each of so many words, 2^log of them a warp; returns how many there are. A barrier is to
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

    /* In order, from registers: a cell of one entry has its value at once; the entries of others go to the stage in
     * order, cells for columns. Returns their number. Cells begin as 0: then the low half of each names one of its
     * entries, the high half whether there are others. */
    __device__ int list_shared(int64_t low, int done)
    {
        const int warp = threadIdx.x / 32;
        volatile uint32_t *halves = (volatile uint32_t *)states;
        int cell[DEPTH];
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            uint32_t at;
            cell[u] = col[u] != EMPTY && in_window(col[u], low, &at) ? cell_of(at, done) : EMPTY;
            if (cell[u] != EMPTY) halves[2 * cell[u]] = u * THREADS + threadIdx.x;
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < DEPTH; u++)
            if (cell[u] != EMPTY && halves[2 * cell[u]] != u * THREADS + threadIdx.x) halves[2 * cell[u] + 1] = 1;
        __syncthreads();
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            if (cell[u] != EMPTY) {
                const bool alone = halves[2 * cell[u] + 1] == 0;
                states[cell[u]] = alone ? (unsigned long long)__double_as_longlong((double)value[u]) : NO_STATE;
                cell_cols[cell[u]] = col[u];
                if (operation() == SP_COMBINE_MEAN) counts[cell[u]] = alone;
                if (alone) cell[u] = EMPTY;
            }
            const unsigned all = __ballot_sync(FULL_WARP, cell[u] != EMPTY);
            if ((threadIdx.x & 31) == 0) shared.listed[u * WARPS + warp] = (uint32_t)__popc(all);
        }
        __syncthreads();
        if (warp == 0) {
            uint32_t total = 0;
            for (int i = threadIdx.x; i - (int)threadIdx.x < DEPTH * WARPS; i += 32) {
                const uint32_t own = i < DEPTH * WARPS ? shared.listed[i] : 0;
                uint32_t inclusive = own;
                for (int step = 1; step < 32; step *= 2) {
                    const uint32_t other = __shfl_up_sync(FULL_WARP, inclusive, step);
                    if ((int)threadIdx.x >= step) inclusive += other;
                }
                if (i < DEPTH * WARPS) shared.listed[i] = total + inclusive - own;
                total += __shfl_sync(FULL_WARP, inclusive, 31);
            }
            if (threadIdx.x == 0) shared.all_listed = total;
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const unsigned all = __ballot_sync(FULL_WARP, cell[u] != EMPTY);
            if (cell[u] == EMPTY) continue;
            const int64_t to = begin + shared.listed[u * WARPS + warp] + __popc(all & lanes_below());
            job.cols[to] = cell[u];
            job.values[to] = value[u];
        }
        __syncthreads();
        return (int)shared.all_listed;
    }
    __device__ __forceinline__ void put(int cell, double more)
    {
        const unsigned long long old = states[cell];
        const double kept = old == NO_STATE ? more : combine(operation(), __longlong_as_double((long long)old), more);
        states[cell] = (unsigned long long)__double_as_longlong(kept);
        if (operation() == SP_COMBINE_MEAN) counts[cell]++;
    }
    /* In order, from the stage: each warp goes through all of it for its cells. Lanes with the same cell, or at least
     * the same tag, take turns. */
    __device__ void combine_in_order(int64_t low, int done)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
        const int64_t entries = IS_WIDE ? length : list_shared(low, done);
        volatile uint8_t *tags = shared.tags[warp];
        int32_t next = lane < entries ? job.cols[begin + lane] : EMPTY;
        for (int64_t first = 0; first < entries; first += 32) {
            const int64_t i = first + lane;
            const int32_t column = next; /* or cell */
            next = i + 32 < entries ? job.cols[begin + i + 32] : EMPTY;
            uint32_t at = 0;
            const bool inside = IS_WIDE ? in_window(column, low, &at) : column != EMPTY;
            const int cell = !inside ? 0 : IS_WIDE ? cell_of(at, done) : column;
            const bool own = inside && cell % WARPS == warp;
            const unsigned all = __ballot_sync(FULL_WARP, own);
            if (!all) continue;
            const double more = own ? (double)value_at(i) : 0;
            const int tag = cell / WARPS % TAGS;
            if (own && IS_WIDE) cell_cols[cell] = column;
            if (own) tags[tag] = (uint8_t)lane;
            __syncwarp();
            const bool clash = __any_sync(FULL_WARP, own && tags[tag] != lane);
            if (!clash) {
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
        for (int64_t low = 0; low < job.groups; low += (int64_t)words * 32) {
            const int found = rank_columns(low);
            for (int cell = done + threadIdx.x; cell < done + found; cell += THREADS) {
                states[cell] = IS_WIDE && in_order ? NO_STATE : 0;
                if (operation() == SP_COMBINE_MEAN) counts[cell] = 0;
            }
            __syncthreads();
            if (in_order) combine_in_order(low, done);
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
    /* The sum of the entries of one column, in order, by a warp. */
    __device__ double sum_of(int32_t column) const
    {
        const int lane = threadIdx.x & 31;
        double sum = -0.0; /* what any number can be added to without changing its bits */
        for (int64_t first = 0; first < length; first += 32) {
            const int64_t i = first + lane;
            const bool own = i < length && job.cols[begin + i] == column;
            if (!__any_sync(FULL_WARP, own)) continue;
            const double more = own ? (double)value_at(i) : -0.0;
#pragma unroll
            for (int source = 0; source < 32; source++) sum = __dadd_rn(sum, __shfl_sync(FULL_WARP, more, source));
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
        int cells = combine_entries();
        int late = sure || in_order ? 0 : late_cells(cells);
        if (IS_WIDE && late > 0 && (int64_t)words * 32 >= job.groups) {
            find_grains(cells);
            late = late_cells(cells);
        }
        if (late > MOST_LATE) {
            in_order = true;
            cells = combine_entries();
        }
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
        if (threadIdx.x == 0) job.lengths[p] = cells;
        __syncthreads();
        return kept;
    }
};

/* Bytes of a block's bits, and with its cells. */
static __host__ __device__ constexpr size_t ranked_bytes(int words, int cells, bool mean)
{
    return (size_t)words * (sizeof(uint32_t) + sizeof(uint16_t)) + (size_t)cells * (mean ? 20 : 12);
}

template <int THREADS, int ITEMS, bool PLAIN, typename V>
static __global__ void __launch_bounds__(THREADS, 1024 / THREADS) ranked_rows(contract_job<V> job, int c, int words)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    __shared__ typename ranked_row<THREADS, ITEMS, PLAIN, V>::memory memory;
    constexpr int capacity = THREADS * ITEMS;
    const bool mean = !PLAIN && job.operation.combine == SP_COMBINE_MEAN;
    uint32_t *bits = (uint32_t *)row_memory;
    unsigned long long *states = (unsigned long long *)(bits + words), *counts = states + capacity, *grains = NULL;
    int32_t *cell_cols = (int32_t *)(counts + (mean ? capacity : 0));
    uint16_t *before = (uint16_t *)(cell_cols + capacity);
    const int shift = 31 - __clz(max(words / (THREADS / 32), (int)WORD_STEP));
    const class_rows own = rows_of(job, c);
    unsigned long long kept = 0;
    for (unsigned i = blockIdx.x; i < own.count; i += gridDim.x) {
        const int32_t p = own.rows[i];
        const stage_range range = job.ranges[p];
        if (ITEMS == 0) {
            const int64_t first = job.cells_of[i];
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

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Streams that classes of rows are spread over. */
enum { STREAMS = 4 };

/* Everything that one call holds on the device. */
template <typename V> struct contract_run {
    sp_context *context;
    const sp_csr *g;
    contract_job<V> job;
    class_limits limits;
    int ranked_words, longer_words;
    device_array<contract_totals> totals;
    device_array<uint32_t> keys;
    device_array<int32_t> order, firsts, stage_cols, list, lengths, cell_cols;
    device_array<int64_t> starts, cells_of;
    device_array<stage_range> ranges;
    device_array<V> stage_values;
    device_array<uint8_t> classes;
    device_array<unsigned long long> cells, counts, grains;
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

/* Words of bits for all columns, at most a window's, and classes of ranked rows: what fits a block's shared memory. */
template <typename V> static void size_tables(contract_run<V> *run)
{
    const bool mean = run->job.operation.combine == SP_COMBINE_MEAN;
    /* Static, and the driver's. */
    const size_t kept = sizeof(typename ranked_row<WIDE_THREADS, 0, false, V>::memory) + 1024;
    const size_t limit = cuda_state_of(run->context)->shared_limit - kept;
    const int64_t most = (run->job.groups + 31) / 32;
    const int longer = LONGER_THREADS * LONGER_ITEMS, longest = LONGER_THREADS * LONGEST_ITEMS;
    int words = LEAST_WORDS;
    while (words < LONGER_WORDS && words < most) words *= 2;
    run->ranked_words = words < RANKED_WORDS ? words : RANKED_WORDS;
    run->longer_words = words;
    while (ranked_bytes(run->ranked_words, RANKED_THREADS * RANKED_ITEMS, mean) > limit) run->ranked_words /= 2;
    while (ranked_bytes(run->longer_words, 0, mean) > limit) run->longer_words /= 2;
    run->limits.sorted = words > MANY_WORDS ? MOST_SORTED_OF_MANY : MOST_SORTED;
    run->limits.longer = ranked_bytes(run->longer_words, longer, mean) <= limit ? longer : 0;
    run->limits.longest = ranked_bytes(run->longer_words, longest, mean) <= limit ? longest : 0;
}

template <typename V>
static sp_status open_run(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                          const sp_contract_options *options, contract_run<V> *run)
{
    contract_job<V> *job = &run->job;
    run->context = context;
    run->g = g;
    job->g = view_of<V>(g);
    if (options->combine == SP_COMBINE_COUNT) job->g.values = NULL;
    job->labels = labels;
    job->nodes = g->rows;
    job->groups = groups;
    /* The sum of a pattern is the number of its entries. */
    job->operation.combine = !g->values && options->combine == SP_COMBINE_SUM ? SP_COMBINE_COUNT : options->combine;
    job->operation.loops = options->loops;
    job->operation.half = options->half_loops && (job->operation.combine == SP_COMBINE_SUM ||
                                                  job->operation.combine == SP_COMBINE_COUNT);
    size_tables(run);
    TRY(run->totals.allocate(context, 1));
    TRY(run->totals.fill(0, 1));
    job->totals = run->totals.data;
    CUDA_TRY(cudaMemsetAsync(&job->totals->good_nodes, 0xff, sizeof job->totals->good_nodes, stream_of(context)));
    TRY(run->keys.allocate(context, g->rows));
    TRY(run->order.allocate(context, g->rows));
    TRY(run->starts.allocate(context, g->rows + 1));
    TRY(run->ranges.allocate(context, groups));
    TRY(run->firsts.allocate(context, groups));
    TRY(run->classes.allocate(context, groups));
    TRY(run->list.allocate(context, groups));
    TRY(run->lengths.allocate(context, groups + 1));
    TRY(run->cells_of.allocate(context, g->nnz / (RANKED_THREADS * RANKED_ITEMS) + 1));
    TRY(run->stage_cols.allocate(context, g->nnz));
    TRY(run->stage_values.allocate(context, g->nnz));
    job->keys = run->keys.data;
    job->order = run->order.data;
    job->starts = run->starts.data;
    job->ranges = run->ranges.data;
    job->firsts = run->firsts.data;
    job->classes = run->classes.data;
    job->list = run->list.data;
    job->lengths = run->lengths.data;
    job->cells_of = run->cells_of.data;
    job->cols = run->stage_cols.data;
    job->values = run->stage_values.data;
    return SP_OK;
}

/* Sorts the nodes by label and finds where each one's entries, and each group's, begin in the stage. */
template <typename V> static sp_status group_nodes(contract_run<V> *run)
{
    sp_context *context = run->context;
    contract_job<V> &job = run->job;
    cudaStream_t stream = stream_of(context);
    const unsigned blocks = blocks_of(job.nodes, 256);
    device_array<uint32_t> unsorted_keys;
    device_array<int32_t> nodes, lengths;
    device_array<char> scratch;
    size_t bytes = 0;
    int bits = 1;
    while (job.groups >> bits) bits++;
    TRY(unsorted_keys.allocate(context, job.nodes));
    TRY(nodes.allocate(context, job.nodes));
    TRY(lengths.allocate(context, job.nodes + 1));
    key_nodes<<<blocks, 256, 0, stream>>>(job, unsorted_keys.data, nodes.data);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, unsorted_keys.data, job.keys, nodes.data, job.order,
                                             job.nodes, 0, bits, stream));
    TRY(scratch.allocate(context, (int64_t)bytes));
    CUDA_TRY(cub::DeviceRadixSort::SortPairs(scratch.data, bytes, unsorted_keys.data, job.keys, nodes.data, job.order,
                                             job.nodes, 0, bits, stream));
    measure_nodes<<<blocks, 256, 0, stream>>>(job, lengths.data);
    CUDA_TRY(cudaGetLastError());
    TRY(cuda_scan_counts(context, job.nodes, lengths.data, job.starts));
    TRY(run->ranges.fill(0, job.groups));
    bound_groups<<<blocks, 256, 0, stream>>>(job);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

/* Lists C's rows by class, while the host reads their numbers and whether the labels are good. */
template <typename V> static sp_status list_classes(contract_run<V> *run, contract_totals *totals)
{
    sp_context *context = run->context;
    contract_job<V> &job = run->job;
    cudaStream_t stream = stream_of(context), side = cuda_state_of(context)->side[0];
    TRY(launch(run, classify_rows<V>, 256, 0, blocks_of(job.groups, 256), stream, run->limits));
    TRY(cuda_fork(context, 1));
    TRY(launch(run, list_rows<V>, 256, 0, blocks_of(job.groups, 1024), stream));
    TRY(run->lengths.fill(0, job.groups + 1));
    CUDA_TRY(cudaMemcpyAsync(totals, job.totals, sizeof *totals, cudaMemcpyDeviceToHost, side));
    CUDA_TRY(cudaStreamSynchronize(side));
    if (totals->good_nodes >= job.nodes) return SP_OK;
    int32_t label;
    CUDA_TRY(cudaMemcpyAsync(&label, job.labels + totals->good_nodes, sizeof label, cudaMemcpyDeviceToHost, side));
    CUDA_TRY(cudaStreamSynchronize(side));
    return sp_fail(context, SP_ERROR_ARGUMENT, "node %u has label %d and there are %lld groups", totals->good_nodes,
                   label, (long long)job.groups);
}

/* ---- host: the classes' launches --------------------------------------------------------------------------- */

/* Whether (column, place) pairs of rows of 2^bits entries fit 32 bits, all ones left over. */
static bool is_narrow(int64_t groups, int bits) { return groups <= (int64_t)(UINT32_MAX >> bits); }

template <int G, typename V>
static sp_status launch_small(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const int64_t work = blocks_of(count, WARP_THREADS / G);
    auto kernel = is_narrow(run->job.groups, log2_of(G)) ? small_rows<G, uint32_t, V>
                                                         : small_rows<G, unsigned long long, V>;
    return launch(run, kernel, WARP_THREADS, 0, work, stream, c);
}

template <int K, typename V>
static sp_status launch_sorted(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const bool narrow = is_narrow(run->job.groups, log2_of(32 * K));
    const size_t entry = narrow ? sorted_bytes<uint32_t, V>() : sorted_bytes<unsigned long long, V>();
    const size_t bytes = WARP_THREADS * K * entry + WARP_THREADS / 32 * K * sizeof(uint32_t);
    auto kernel = narrow ? sorted_rows<K, uint32_t, V> : sorted_rows<K, unsigned long long, V>;
    return launch(run, kernel, WARP_THREADS, bytes, blocks_of(count, WARP_THREADS / 32), stream, c);
}

template <int THREADS, int ITEMS, typename V>
static sp_status launch_ranked(contract_run<V> *run, int c, unsigned count, int words, cudaStream_t stream)
{
    const size_t bytes = ranked_bytes(words, THREADS * ITEMS, run->job.operation.combine == SP_COMBINE_MEAN);
    const bool plain = run->job.operation.combine == SP_COMBINE_SUM; /* that of a pattern is a count */
    auto kernel = plain ? ranked_rows<THREADS, ITEMS, true, V> : ranked_rows<THREADS, ITEMS, false, V>;
    return launch(run, kernel, THREADS, bytes, count, stream, c, words);
}

template <typename V> static sp_status launch_wide(contract_run<V> *run, unsigned count, cudaStream_t stream)
{
    const int64_t work = blocks_of(run->g->nnz, GATHER_THREADS / 32 * TILE * TILES);
    TRY(launch(run, gather_wide<V>, GATHER_THREADS, 0, work, stream));
    return launch_ranked<WIDE_THREADS, 0>(run, WIDE, count, run->longer_words, stream);
}

template <typename V>
static sp_status launch_class(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    switch (c) {
    case SMALL_8: return launch_small<8>(run, c, count, stream);
    case SMALL_16: return launch_small<16>(run, c, count, stream);
    case SMALL_32: return launch_small<32>(run, c, count, stream);
    case SORTED: return launch_sorted<2>(run, c, count, stream);
    case SORTED + 1: return launch_sorted<4>(run, c, count, stream);
    case SORTED + 2: return launch_sorted<8>(run, c, count, stream);
    case SORTED + 3: return launch_sorted<16>(run, c, count, stream);
    case SORTED + 4: return launch_sorted<32>(run, c, count, stream);
    case RANKED: return launch_ranked<RANKED_THREADS, RANKED_ITEMS>(run, c, count, run->ranked_words, stream);
    case LONGER: return launch_ranked<LONGER_THREADS, LONGER_ITEMS>(run, c, count, run->longer_words, stream);
    case LONGEST: return launch_ranked<LONGER_THREADS, LONGEST_ITEMS>(run, c, count, run->longer_words, stream);
    default: return launch_wide(run, count, stream);
    }
}

/* Combines the rows of all classes, the longest first; joins the streams after a failure as well, since memory is
 * released in the order of the main stream. */
template <typename V> static sp_status combine_rows(contract_run<V> *run, const contract_totals *totals)
{
    sp_context *context = run->context;
    sp_status status = SP_OK;
    int stream = 0;
    if (totals->members[WIDE]) {
        const bool mean = run->job.operation.combine == SP_COMBINE_MEAN;
        const bool sums = mean || run->job.operation.combine == SP_COMBINE_SUM;
        TRY(run->cells.allocate(context, (int64_t)totals->wide_entries));
        TRY(run->counts.allocate(context, mean ? (int64_t)totals->wide_entries : 0));
        TRY(run->grains.allocate(context, sums ? (int64_t)totals->wide_entries : 0));
        TRY(run->cell_cols.allocate(context, (int64_t)totals->wide_entries));
        run->job.cells = run->cells.data;
        run->job.counts = run->counts.data;
        run->job.grains = run->grains.data;
        run->job.cell_cols = run->cell_cols.data;
    }
    TRY(cuda_fork(context, STREAMS));
    for (int c = CLASSES - 1; c > IDLE && status == SP_OK; c--)
        if (totals->members[c])
            status = launch_class(run, c, totals->members[c], cuda_state_of(context)->side[stream++ % STREAMS]);
    if (status != SP_OK) {
        cudaDeviceSynchronize();
        return status;
    }
    return cuda_join(context, STREAMS);
}

/* Finds C's offsets and moves its rows there; `c` has its offsets' array. */
template <typename V> static sp_status write_result(contract_run<V> *run, sp_csr *c)
{
    sp_context *context = run->context;
    TRY(cuda_scan_counts(context, run->job.groups, run->job.lengths, c->row_offsets));
    CUDA_TRY(cudaMemcpyAsync(&c->nnz, c->row_offsets + run->job.groups, sizeof c->nnz, cudaMemcpyDeviceToHost,
                             stream_of(context)));
    TRY(cuda_finish(context));
    TRY(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    TRY(cuda_allocate(context, (size_t)c->nnz * sizeof(V), &c->values));
    if (c->nnz == 0) return SP_OK;
    return launch(run, move_rows<V>, GATHER_THREADS, 0, blocks_of(c->nnz, GATHER_THREADS / 32 * TILE * TILES),
                  stream_of(context), c->row_offsets, c->col_indices, (V *)c->values);
}

static void name_groups(const contract_totals *totals, sp_contract_info *info)
{
    static const char *const names[CLASSES] = {"",          "small 8",     "small 16",    "small 32",    "sort 64",
                                               "sort 128",  "sort 256",    "sort 512",    "sort 1024",   "ranked 2048",
                                               "ranked 4096", "ranked 8192", "wide"};
    info->groups = 0;
    for (int c = IDLE + 1; c < CLASSES; c++) {
        if (totals->members[c] == 0) continue;
        sp_spgemm_group *group = &info->group[info->groups++];
        snprintf(group->name, sizeof group->name, "%s", names[c]);
        group->count = totals->members[c];
    }
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V>
static sp_status contract_graph(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                                const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const double start = sp_seconds();
    contract_run<V> run = {};
    contract_totals totals;
    size_t before;
    TRY(cuda_watch_peak(context, &before));
    TRY(cuda_allocate(context, ((size_t)groups + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    TRY(open_run(context, g, labels, groups, options, &run));
    TRY(group_nodes(&run));
    TRY(list_classes(&run, &totals));
    const double grouped = sp_seconds();
    TRY(combine_rows(&run, &totals));
    TRY(write_result(&run, c));
    CUDA_TRY(cudaMemcpyAsync(&totals, run.totals.data, sizeof totals, cudaMemcpyDeviceToHost, stream_of(context)));
    TRY(cuda_finish(context));
    name_groups(&totals, info);
    info->entries = (int64_t)totals.entries;
    info->nnz = c->nnz;
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (groups + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->group_seconds = grouped - start;
    info->combine_seconds = sp_seconds() - grouped;
    return SP_OK;
}

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
        status = contract_graph<float>(context, g, labels, groups, options, &made, info);
    } else {
        status = contract_graph<double>(context, g, labels, groups, options, &made, info);
    }
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
