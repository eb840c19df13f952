/* Rows of a contraction of up to 16 entries, 2 or 4 a warp: sorted in registers and combined by shuffles. And how short
 * rows whose nodes come in any order tell whether the order matters. */
#ifndef SPARSE_CUDA_CONTRACT_SMALL_CUH
#define SPARSE_CUDA_CONTRACT_SMALL_CUH

#include "contract/cuda/integers.cuh"

enum { WARP_THREADS = 128 };

/* What a row's numbers of f32 have in common. */
struct row_span : span_of<float> {
    /* With those of this many lanes that lie together. */
    __device__ __forceinline__ void join(int lanes)
    {
        for (int step = lanes / 2; step > 0; step /= 2) {
            lowest = min(lowest, __shfl_xor_sync(FULL_WARP, lowest, step));
            highest = max(highest, __shfl_xor_sync(FULL_WARP, highest, step));
        }
    }
    /* Whether f64 adds up this many of them without an error, in any order; `most` and `least` are those of get(). */
    __device__ __forceinline__ bool adds_up(int count) const
    {
        const int most = max((int)(highest >> 23), 1) - 126, least = max((int)((lowest + 1) >> 23), 1) - 150;
        return highest == 0 || (highest < 0x7f800000u && most - least + 32 - __clz(count) <= EXACT_BITS);
    }
};

/* A cell's sum in f64, the sum of its magnitudes, and of how many. */
struct ordered_sum {
    double sum = 0, size = 0;
    int count = 0;

    __device__ __forceinline__ void add(double number)
    {
        sum = __dadd_rn(sum, number);
        size += fabs(number);
        count++;
    }
    /* Whether in another order f64 may come to another f32: each is off by 2^-53 of the size an addition at most. */
    __device__ __forceinline__ bool is_in_doubt(bool halved) const
    {
        const double slack = size * count * 0x1p-51, factor = halved ? 0.5 : 1;
        return count > 2 && !((float)((sum - slack) * factor) == (float)((sum + slack) * factor));
    }
};

/* ---- small rows ----------------------------------------------------------------------------------------- */

/* The cell of a group's entry and those after it that have its column; `entries` are left from this one on, 0:
 * there is none to be made. *many: they are more than two. */
template <int G, typename V>
static __device__ __forceinline__ V combined(const contract_operation &operation, V value, int32_t col, int entries,
                                             bool diagonal, bool *many)
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
    *many = count > 2;
    return (V)cell_value(operation, kept, count, diagonal);
}

/* Whether the cell that begins with a lane's entry is in doubt, as `combined` has it. One row in a million has such:
 * its code is to keep out of the others' way. */
template <int G>
static __device__ __noinline__ bool doubts_small(float value, int32_t col, int entries, bool halved)
{
    ordered_sum cell;
    cell.add((double)value);
    for (int step = 1; step < G; step++) {
        const int32_t other = __shfl_down_sync(FULL_WARP, col, step, G);
        const float more = __shfl_down_sync(FULL_WARP, value, step, G);
        if (step < entries && other == col) cell.add((double)more);
    }
    return entries > 0 && cell.is_in_doubt(halved);
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
template <int G, bool PLACED, typename V>
static __device__ __forceinline__ small_entries<V> small_load(const contract_args<V> &job, const class_rows &rows,
                                                              unsigned following, next_row<PLACED, V> &next)
{
    const int lane = threadIdx.x & 31, own = lane & (G - 1);
    const stage_range range = next.p >= 0 ? next.range : stage_range{0, 0};
    small_entries<V> row = {next.p, (int)(range.end - range.begin), range.begin, EMPTY, V(1)};
    const unsigned group = G == 32 ? FULL_WARP : ((1u << (G & 31)) - 1) << (lane & ~(G - 1));
    int64_t source = range.begin + own;
    if (PLACED || !job.whole) {
        /* Each lane stands for a node, too: a bit where its entries begin. */
        const bool there = next.p >= 0 && (int64_t)next.first + own < job.nodes;
        const int64_t from = there ? (int64_t)next.node.x - range.begin : row.length;
        const unsigned begins = warp_or(from < row.length ? 1u << ((lane & ~(G - 1)) + (int)from) : 0) & group;
        const int node = __popc(begins & (lanes_below() * 2 + 1)) - 1;
        source = __shfl_sync(FULL_WARP, (long long)((int64_t)next.node.y - from), max(node, 0), G) + own;
    }
    if (own < row.length) {
        row.col = read_entry(job, job.g.cols + source);
        if (job.g.values) row.value = read_entry(job, job.g.values + source);
    }
    next.read_number(rows, following);
    return row;
}

/* Combines a row, a group of G lanes each. The group's first lane returns how many entries are not left out. */
template <int G, typename Key, bool PLACED, typename V>
static __device__ __forceinline__ int small_row(const contract_args<V> &job, const small_entries<V> &row, int c)
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
    if (all_heads != all || job.operation.half) {
        bool many;
        value = combined<G>(job.operation, value, col, head ? entries - own : 0, col == row.p, &many);
        many = PLACED && (__ballot_sync(FULL_WARP, many) & group);
        if (PLACED && __any_sync(FULL_WARP, many)) {
            row_span numbers;
            if (own < row.length) numbers.add((float)row.value);
            numbers.join(G);
            many = many && !numbers.adds_up(row.length);
            if (__any_sync(FULL_WARP, many)) {
                const float number = (float)__shfl_sync(FULL_WARP, row.value, (int)key[0] & (G - 1), G);
                const bool doubts = doubts_small<G>(number, col, head && many ? entries - own : 0,
                                                    job.operation.half && col == row.p);
                many = __ballot_sync(FULL_WARP, doubts) & group;
                if (many && own == 0) leave_row(job, c, row.p);
            }
        }
    }
    if (head) {
        const int64_t at = row.begin + __popc(heads & lanes_below());
        job.cols[at] = col;
        job.values[at] = value;
    }
    if (row.p >= 0 && own == 0) job.lengths[row.p] = __popc(heads);
    return own == 0 ? entries : 0;
}

/* While a row is combined, the entries of the next and the place of the one after it are on their way. Ten blocks a
 * multiprocessor, which 48 registers allow. */
template <int G, typename Key, bool PLACED, typename V>
static __global__ void __launch_bounds__(WARP_THREADS, 10) small_rows(contract_args<V> job, int c)
{
    const class_rows own = rows_of(job, c);
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    const unsigned group = (threadIdx.x & 31) / G, step = warps * (32 / G);
    const int lane = (int)(threadIdx.x & (G - 1));
    unsigned kept = 0;
    unsigned base = warp * (32 / G);
    next_row<PLACED, V> next;
    next.read_number(own, base + group);
    next.read_range(job);
    next.read_node(job, lane);
    small_entries<V> row = small_load<G>(job, own, base + step + group, next);
    next.read_range(job);
    next.read_node(job, lane);
    for (; base < own.count; base += step) {
        const small_entries<V> now = row;
        row = small_load<G>(job, own, base + 2 * step + group, next);
        next.read_range(job);
        kept += small_row<G, Key, PLACED>(job, now, c);
        next.read_node(job, lane);
    }
    add_entries(job.totals, kept);
}

#endif
