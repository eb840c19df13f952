/* Rows of a contraction of 17 to 1,024 entries, sorted in registers: (column, place in the row), so that the entries
 * of a column follow each other in order. Packed rows, up to 64 entries, are 2 or 4 a warp, which shares what a row
 * costs beside its entries; sorted ones are a warp each. */
#ifndef SPARSE_CUDA_CONTRACT_SORTED_CUH
#define SPARSE_CUDA_CONTRACT_SORTED_CUH

#include "contract/cuda/small.cuh"

/* ---- sorted rows ---------------------------------------------------------------------------------------- */

/* Bytes an entry of a sorted row: its key and value, before them its node's source. */
template <typename Key, typename V> static __host__ __device__ constexpr size_t sorted_bytes()
{
    return sizeof(Key) + sizeof(V);
}

/* An entry's column above its place in the row; EMPTY is above all columns. */
template <typename Key, int BITS> static __device__ __forceinline__ Key sort_key(int32_t col, int at)
{
    static_assert((uint32_t)EMPTY == UINT32_MAX, "all ones");
    return (Key)(uint32_t)col << BITS | (Key)at;
}

/* Whether an entry has the column of the one before it. */
template <int BITS, typename Key> static __device__ __forceinline__ bool joins_key(Key before, Key key)
{
    return (key < (Key)UINT32_MAX << BITS) & ((before ^ key) < Key(1) << BITS);
}

/* Whether some cell of a row is in doubt, for the lane `own` of `lanes` that go through its sorted keys, from place
 * `from` on; sums in column `halved` are. */
template <int BITS, int K, typename Key>
static __device__ __noinline__ bool doubts_sorted(const Key *sorted, int from, const float *values, int entries,
                                                  int32_t halved, int own, int lanes)
{
    const auto key_at = [&](int at) { return sorted[swizzled(from + at, K - 1)]; };
    for (int at = own; at < entries; at += lanes) {
        const Key col = key_at(at) >> BITS;
        ordered_sum cell;
        if (at > 0 && key_at(at - 1) >> BITS == col) continue;
        for (int i = at; i < entries && key_at(i) >> BITS == col; i++)
            cell.add((double)values[(int)key_at(i) & ((1 << BITS) - 1)]);
        if (cell.is_in_doubt((int32_t)col == halved)) return true;
    }
    return false;
}

/* A row's entries, sorted, in a warp's shared memory: keys are columns above places. */
template <int K, typename Key, bool PLACED, typename V> struct sorted_row {
    static constexpr int BITS = log2_of(32 * K);
    const contract_args<V> &job;
    const Key *sorted;
    const V *values; /* by place */
    int32_t p;
    int64_t begin;
    int length, entries; /* with those that are left out, and without */
    int c;

    __device__ __forceinline__ Key key_at(int at) const { return sorted[swizzled(at, K - 1)]; }
    __device__ __forceinline__ V value_of(Key key) const
    {
        return PLACED || job.g.values ? values[(int)key & (32 * K - 1)] : V(1);
    }
    /* Entries of which no two have the same column. */
    __device__ __forceinline__ void write_entries() const
    {
        constexpr int SOME = 4; /* on their way at once; beyond the row's end they are not written */
        const int lane = threadIdx.x & 31, left = entries - lane;
        int32_t *cols_to = job.cols + begin + lane;
        V *values_to = job.values + begin + lane;
#pragma unroll(K <= 8 ? 2 : 1)
        for (int first = 0; first < K; first += SOME) {
            Key key[SOME];
            V number[SOME];
#pragma unroll
            for (int u = 0; u < SOME; u++) key[u] = key_at(32 * (first + u) + lane);
#pragma unroll
            for (int u = 0; u < SOME; u++) number[u] = value_of(key[u]);
#pragma unroll
            for (int u = 0; u < SOME; u++) {
                if (32 * (first + u) >= left) continue;
                cols_to[32 * (first + u)] = (int32_t)(key[u] >> BITS);
                values_to[32 * (first + u)] = number[u];
            }
        }
    }
    /* Whether f64 adds up the values without an error, in any order: most numbers of f32 span little. */
    __device__ __forceinline__ bool adds_up() const
    {
        if (!std::is_same_v<V, float> || (!PLACED && job.operation.combine != SP_COMBINE_SUM) || job.operation.half)
            return false;
        row_span numbers;
#pragma unroll 1
        for (int i = threadIdx.x & 31; i < length; i += 32) numbers.add((float)values[i]);
        numbers.join(32);
        return numbers.adds_up(length);
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
        bool many = false; /* more than two entries in a cell */
        for (int base = 0; base < entries; base += 32) {
            const int at = base + lane;
            const Key own = key_at(at < entries ? at : 0), col = own >> BITS;
            const bool head = at < entries && (at == 0 || key_at(at - 1) >> BITS != col);
            const unsigned heads = __ballot_sync(FULL_WARP, head);
            if (head) {
                double kept = (double)value_of(own);
                int next = at + 1;
                for (Key more; next < entries && (more = key_at(next)) >> BITS == col; next++)
                    kept = combine(PLACED ? SP_COMBINE_SUM : job.operation.combine, kept, (double)value_of(more));
                const int64_t to = begin + written + __popc(heads & lanes_below());
                job.cols[to] = (int32_t)col;
                job.values[to] = (V)cell_value(job.operation, kept, next - at, (int32_t)col == p);
                many = many || next - at > 2;
            }
            written += __popc(heads);
        }
        if constexpr (PLACED)
            if (__any_sync(FULL_WARP, many)) {
                const int32_t halved = job.operation.half ? p : EMPTY;
                many = doubts_sorted<BITS, K>(sorted, 0, values, entries, halved, lane, 32);
                if (__any_sync(FULL_WARP, many) && lane == 0) leave_row(job, c, p);
            }
        return written;
    }
};

/* A pointer that is formed once: for each access under a condition of its own the compiler would form it again. */
template <typename T> static __device__ __forceinline__ T *formed(T *pointer)
{
    asm volatile("" : "+l"(pointer));
    return pointer;
}

/* Where a row lies in the stage. */
struct row_place {
    int32_t p;
    int length;
    int64_t begin;
};

/* Reads the entries of row `next`, K a lane, by its nodes' sources and a bit where each begins, in shared memory; then
 * on in the list. */
template <int K, bool PLACED, typename V>
static __device__ __forceinline__ row_place sorted_load(const contract_args<V> &job, const class_rows &rows,
                                                        unsigned following, next_row<PLACED, V> &next,
                                                        typename node_places<PLACED>::place *sources,
                                                        uint32_t *begins, int32_t (&col)[K], V (&value)[K])
{
    using place = typename node_places<PLACED>::place;
    const int lane = threadIdx.x & 31;
    const row_place row = {next.p, next.p >= 0 ? (int)(next.range.end - next.range.begin) : 0, next.range.begin};
    if (!PLACED && K <= 8 && job.whole) { /* longer rows have no registers for it */
        const int32_t *cols = formed(job.g.cols + row.begin + lane);
        const V *numbers = formed(job.g.values + row.begin + lane);
        const int left = row.length - lane;
        next.read_number(rows, following);
#pragma unroll
        for (int u = 0; u < K; u++) {
            const bool there = 32 * u < left;
            col[u] = there ? read_entry(job, cols + 32 * u) : EMPTY;
            if (there && job.g.values) value[u] = read_entry(job, numbers + 32 * u);
        }
        next.read_range(job);
        return row;
    }
    __syncwarp();
    const bool whole = !PLACED && job.whole;
    if (lane < K) begins[lane] = lane == 0 && whole;
    if (lane == 0 && whole) sources[0] = (place)row.begin;
    __syncwarp();
    auto at = next.node;
    for (int64_t k = (int64_t)next.first + lane, node = lane; k < job.nodes && !whole && row.p >= 0; node += 32) {
        const place from = (place)at.x - (place)row.begin;
        if (from >= (place)row.length) break;
        sources[node] = (place)at.y - from;
        atomicOr(begins + from / 32, 1u << (from % 32));
        k += 32;
        at = node_at<PLACED>(job, k);
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
            const place source = sources[node + __popc(word & (lanes_below() * 2 + 1))] + (place)at;
            col[u] = read_entry(job, job.g.cols + source);
            if (PLACED || job.g.values) value[u] = read_entry(job, job.g.values + source);
        }
        node += __popc(word);
    }
    next.read_range(job);
    __syncwarp();
    return row;
}

/* Blocks that a multiprocessor is to hold at least, 0 as the compiler likes: it would take registers for an eighth
 * less. */
template <typename Key, typename V> static constexpr int sorted_blocks(int k)
{
    return sizeof(Key) + sizeof(V) > 8 ? 0 : k <= 8 ? 8 : k == 16 ? 6 : 4;
}

/* Sorts the first FEW keys of each lane, where the others are none, and lays them in shared memory from place `from`
 * on; whether two that follow each other have the same column. G lanes a row. */
template <int FEW, int K, int G, typename Key>
static __device__ __forceinline__ bool lay_sorted(const Key (&all)[K], Key *sorted, int from)
{
    constexpr int BITS = log2_of(G * K);
    const int own = threadIdx.x & (G - 1);
    Key key[FEW];
#pragma unroll
    for (int u = 0; u < FEW; u++) key[u] = all[u];
    sort_keys<FEW>(key, G);
    const Key before = __shfl_up_sync(FULL_WARP, key[FEW - 1], 1, G);
    bool joins = (own > 0) & joins_key<BITS>(before, key[0]);
#pragma unroll
    for (int u = 0; u < FEW; u++) {
        sorted[swizzled(from + own * FEW + u, K - 1)] = key[u];
        if (u > 0) joins |= joins_key<BITS>(key[u - 1], key[u]);
    }
    return joins;
}

/* The same by three quarters of the network where all rows of the warp fit it: uniform graphs with 10 and 50 % groups
 * as runs take 3 to 4 % less. With longer rows R-MAT 22's 10 % groups took 2 to 3 % more. */
template <int K, int G, bool PLACED, typename Key>
static __device__ __forceinline__ bool lay_sorted(const Key (&key)[K], int length, Key *sorted, int from)
{
    constexpr int FEW = K / 4 * 3;
    if constexpr (!PLACED && K <= 8)
        if (__all_sync(FULL_WARP, length <= G * FEW)) return lay_sorted<FEW, K, G>(key, sorted, from);
    return lay_sorted<K, K, G>(key, sorted, from);
}

/* A row of at most 32·K entries, a warp each. While it is sorted, the place of the next one is on its way, and of
 * short rows, which leave registers for them, the entries. */
template <int K, typename Key, bool PLACED, typename V>
static __global__ void __launch_bounds__(WARP_THREADS, sorted_blocks<Key, V>(K))
    sorted_rows(contract_args<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    constexpr int bits = log2_of(32 * K);
    constexpr bool AHEAD = K <= 4;
    const class_rows own = rows_of(job, c);
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    unsigned char *memory = row_memory + warp * 32 * K * sorted_bytes<Key, V>();
    Key *sorted = (Key *)memory;
    V *value = (V *)(sorted + 32 * K);
    auto *sources = (typename node_places<PLACED>::place *)memory; /* first: of the row's nodes */
    uint32_t *begins = (uint32_t *)(row_memory + blockDim.x * K * sorted_bytes<Key, V>()) + warp * K;
    unsigned kept_entries = 0;
    const unsigned step = gridDim.x * (blockDim.x / 32);
    unsigned i = blockIdx.x * (blockDim.x / 32) + warp;
    next_row<PLACED, V> next;
    next.read_number(own, i);
    next.read_range(job);
    next.read_node(job, lane);
    row_place row = {}, coming = {};
    int32_t col[K], coming_col[K];
    V number[K], coming_number[K];
    if (AHEAD && i < own.count) {
        coming = sorted_load<K>(job, own, i + step, next, sources, begins, coming_col, coming_number);
        next.read_node(job, lane);
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
        if constexpr (K <= 8) {
            label_columns(job, row.p, col);
        } else { /* all at once take registers that longer rows do not have */
#pragma unroll
            for (int u = 0; u < K; u++)
                if (col[u] != EMPTY) col[u] = column_of(job, row.p, col[u]);
        }
        if (AHEAD)
            coming = sorted_load<K>(job, own, i + 2 * step, next, sources, begins, coming_col, coming_number);
        Key key[K];
        int entries = K;
#pragma unroll
        for (int u = 0; u < K; u++) {
            const int at = 32 * u + lane;
            key[u] = sort_key<Key, bits>(col[u], at);
            entries -= (int)((uint32_t)col[u] >> 31);
        }
        if (PLACED || job.g.values) {
#pragma unroll
            for (int u = 0; u < K; u++) value[32 * u + lane] = number[u];
        }
        kept_entries += entries;
        entries = (int)warp_add((unsigned)entries);
        next.read_node(job, lane);
        const bool joins = lay_sorted<K, 32, PLACED>(key, row.length, sorted, 0);
        __syncwarp();
        const sorted_row<K, Key, PLACED, V> made = {job, sorted, value, row.p, row.begin, row.length, entries, c};
        int written = entries;
        if (!__any_sync(FULL_WARP, joins) && !job.operation.half) made.write_entries();
        else if (made.adds_up()) written = made.write_sums();
        else written = made.write_in_order();
        if (lane == 0) job.lengths[row.p] = written;
        __syncwarp();
    }
    add_entries(job.totals, kept_entries);
}

/* ---- packed rows ------------------------------------------------------------------------------------------ */

/* Words of bits of a packed row: one where a node's entries begin. */
template <int G, int K> static __host__ __device__ constexpr int packed_words() { return (G * K + 31) / 32; }

/* Bytes of a block of packed rows: an entry's key and value, before them its node's source; bits. */
template <int G, int K, typename Key, typename V> static __host__ __device__ constexpr size_t packed_bytes()
{
    return WARP_THREADS * K * sorted_bytes<Key, V>() + WARP_THREADS / G * packed_words<G, K>() * sizeof(uint32_t);
}

/* Reads the entries of row `next` as sorted_load does, K a lane of G. */
template <int G, int K, bool PLACED, typename V>
static __device__ __forceinline__ row_place packed_load(const contract_args<V> &job, const class_rows &rows,
                                                        unsigned following, next_row<PLACED, V> &next,
                                                        typename node_places<PLACED>::place *sources,
                                                        uint32_t *begins, int32_t (&col)[K], V (&value)[K])
{
    using place = typename node_places<PLACED>::place;
    constexpr int WORDS = packed_words<G, K>();
    const int own = threadIdx.x & (G - 1);
    const row_place row = {next.p, next.p >= 0 ? (int)(next.range.end - next.range.begin) : 0, next.range.begin};
    if (!PLACED && job.whole) {
        const int32_t *cols = formed(job.g.cols + row.begin + own);
        const V *numbers = formed(job.g.values + row.begin + own);
        const int left = row.length - own;
        next.read_number(rows, following);
#pragma unroll
        for (int u = 0; u < K; u++) {
            const bool there = G * u < left;
            col[u] = there ? read_entry(job, cols + G * u) : EMPTY;
            value[u] = there && job.g.values ? read_entry(job, numbers + G * u) : V(1);
        }
        next.read_range(job);
        return row;
    }
    uint32_t words[WORDS];
    int before[WORDS];
    __syncwarp();
    for (int w = own; w < WORDS; w += G) begins[w] = 0;
    __syncwarp();
    auto at = next.node;
    for (int64_t k = (int64_t)next.first + own, node = own; k < job.nodes && row.p >= 0; node += G) {
        const place from = (place)at.x - (place)row.begin;
        if (from >= (place)row.length) break;
        sources[node] = (place)at.y - from;
        atomicOr(begins + from / 32, 1u << (from % 32));
        k += G;
        at = node_at<PLACED>(job, k);
    }
    next.read_number(rows, following);
    __syncwarp();
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        words[w] = begins[w];
        before[w] = w ? before[w - 1] + __popc(words[w - 1]) : -1;
    }
#pragma unroll
    for (int u = 0; u < K; u++) {
        const int at = G * u + own, w = G * u / 32;
        col[u] = EMPTY;
        if (at >= row.length) continue;
        const place source = sources[before[w] + __popc(words[w] & ((2u << (at % 32)) - 1))] + (place)at;
        col[u] = read_entry(job, job.g.cols + source);
        value[u] = PLACED || job.g.values ? read_entry(job, job.g.values + source) : V(1);
    }
    next.read_range(job);
    __syncwarp();
    return row;
}

/* Whether a lane, its row's first, must leave the row, which has cells of `many` entries, to be summed in order. */
template <int G, int K, typename Key>
static __device__ __forceinline__ bool are_in_doubt(const contract_args<float> &job, const row_place &row, bool many,
                                                    int entries, const Key *sorted, const float *value)
{
    const int own = threadIdx.x & (G - 1), group = (threadIdx.x & 31) / G;
    row_span numbers;
#pragma unroll 1
    for (int i = own; i < row.length; i += G) numbers.add(value[i]);
    numbers.join(G);
    many = many && !numbers.adds_up(row.length);
    if (!__any_sync(FULL_WARP, many)) return false;
    const int32_t halved = job.operation.half ? row.p : EMPTY;
    const bool doubts =
        doubts_sorted<log2_of(G * K), K>(sorted, group * G * K, value, many ? entries : 0, halved, own, G);
    const unsigned mask = ((1u << G) - 1) << (group * G);
    return (__ballot_sync(FULL_WARP, doubts) & mask) && own == 0;
}

/* Cells of rows in which columns repeat; returns how many the lane's row has. The lane is the `own`th of group
 * `group` of G lanes, which are those of `mask`. */
template <int G, int K, bool PLACED, typename Key, typename V>
static __device__ __forceinline__ int write_packed(const contract_args<V> &job, const row_place &row, int c, int own,
                                                   int group, unsigned mask, int entries, const Key *sorted,
                                                   const V *value)
{
    constexpr int BITS = log2_of(G * K);
    const auto key_at = [&](int at) { return sorted[swizzled(group * G * K + at, K - 1)]; };
    const auto value_of = [&](Key key) { return value[(int)key & (G * K - 1)]; };
    const int most = (int)warp_max((unsigned)entries);
    bool many = false;
    int written = 0;
    for (int from = 0; from < most; from += G) {
        const int at = from + own;
        const Key mine = key_at(at < entries ? at : 0), column = mine >> BITS;
        const bool head = at < entries && (at == 0 || key_at(at - 1) >> BITS != column);
        const unsigned heads = __ballot_sync(FULL_WARP, head) & mask;
        if (head) {
            double sum = (double)value_of(mine);
            int end = at + 1;
            for (Key more; end < entries && (more = key_at(end)) >> BITS == column; end++)
                sum = combine(PLACED ? SP_COMBINE_SUM : job.operation.combine, sum, (double)value_of(more));
            const int64_t to = row.begin + written + __popc(heads & lanes_below());
            job.cols[to] = (int32_t)column;
            job.values[to] = (V)cell_value(job.operation, sum, end - at, (int32_t)column == row.p);
            many = many || end - at > 2;
        }
        written += __popc(heads);
    }
    if constexpr (PLACED) {
        many = __ballot_sync(FULL_WARP, many) & mask;
        if (__any_sync(FULL_WARP, many) && are_in_doubt<G, K>(job, row, many, entries, sorted, value))
            leave_row(job, c, row.p);
    }
    return written;
}

/* Rows of at most G·K entries, G lanes each, 32 / G of them a warp, which shares what a row costs beside its entries:
 * with 16 lanes and 4 keys each a row of 36 entries takes three quarters of the instructions that it takes a warp.
 * While rows are sorted the entries of the next are on their way. */
template <int G, int K, typename Key, bool PLACED, typename V>
static __global__ void __launch_bounds__(WARP_THREADS, 8) packed_rows(contract_args<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char row_memory[];
    constexpr int BITS = log2_of(G * K), ROWS = 32 / G;
    const class_rows rows = rows_of(job, c);
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, own = lane & (G - 1), group = lane / G;
    const unsigned mask = ((1u << G) - 1) << (lane & ~(G - 1));
    unsigned char *memory = row_memory + warp * 32 * K * sorted_bytes<Key, V>();
    Key *sorted = (Key *)memory;
    V *value = (V *)(sorted + 32 * K) + group * G * K;
    auto *sources = (typename node_places<PLACED>::place *)memory + group * G * K;
    uint32_t *begins = (uint32_t *)(row_memory + WARP_THREADS * K * sorted_bytes<Key, V>()) +
                       (warp * ROWS + group) * packed_words<G, K>();
    const unsigned step = gridDim.x * (WARP_THREADS / 32) * ROWS;
    unsigned base = (blockIdx.x * (WARP_THREADS / 32) + warp) * ROWS, kept = 0;
    const auto key_at = [&](int at) { return sorted[swizzled(group * G * K + at, K - 1)]; };
    const auto value_of = [&](Key key) { return value[(int)key & (G * K - 1)]; };
    next_row<PLACED, V> next;
    next.read_number(rows, base + group);
    next.read_range(job);
    next.read_node(job, own);
    int32_t coming_col[K];
    V coming_number[K];
    row_place coming =
        packed_load<G, K>(job, rows, base + step + group, next, sources, begins, coming_col, coming_number);
    next.read_node(job, own);
    for (; base < rows.count; base += step) {
        const row_place row = coming;
        int32_t col[K];
        V number[K];
#pragma unroll
        for (int u = 0; u < K; u++) {
            col[u] = coming_col[u];
            number[u] = coming_number[u];
        }
        label_columns(job, row.p, col);
        coming = packed_load<G, K>(job, rows, base + 2 * step + group, next, sources, begins, coming_col,
                                   coming_number);
        Key key[K];
        bool left_out = false;
#pragma unroll
        for (int u = 0; u < K; u++) {
            const int at = G * u + own;
            value[at] = number[u];
            key[u] = sort_key<Key, BITS>(col[u], at);
            left_out |= (at < row.length) & (col[u] == EMPTY);
        }
        int entries = row.length;
        if (__any_sync(FULL_WARP, left_out)) {
            entries = 0;
#pragma unroll
            for (int u = 0; u < K; u++) entries += __popc(__ballot_sync(FULL_WARP, col[u] != EMPTY) & mask);
        }
        if (own == 0) kept += entries;
        next.read_node(job, own);
        const bool joins = lay_sorted<K, G, PLACED>(key, row.length, sorted, group * G * K);
        __syncwarp();
        int written = entries;
        if (!__any_sync(FULL_WARP, joins) && !job.operation.half) {
            int32_t *cols = job.cols + row.begin + own;
            V *values = job.values + row.begin + own;
#pragma unroll
            for (int u = 0; u < K; u++) key[u] = key_at(G * u + own);
#pragma unroll
            for (int u = 0; u < K; u++) number[u] = value_of(key[u]);
#pragma unroll
            for (int u = 0; u < K; u++) {
                if (G * u + own >= entries) continue;
                cols[G * u] = (int32_t)(key[u] >> BITS);
                values[G * u] = number[u];
            }
        } else {
            written = write_packed<G, K, PLACED>(job, row, c, own, group, mask, entries, sorted, value);
        }
        if (own == 0 && row.p >= 0) job.lengths[row.p] = written;
        __syncwarp();
    }
    add_entries(job.totals, kept);
}

#endif
