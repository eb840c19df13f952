/* What the kernels of a contraction share: the contraction that they work on, the entries of its rows, how they
 * combine. */
#ifndef SPARSE_CUDA_CONTRACT_CUH
#define SPARSE_CUDA_CONTRACT_CUH

#include "device/common.cuh"
#include "device/sort.cuh"

/* Classes of C's rows: rows of class TO_n have up to n entries, and more than those of the class before. Which of
 * TO_1024 to TO_8192 there are depends on the columns and on shared memory (class_limits); the next takes their rows.
 */
enum { NO_ENTRIES, TO_8, TO_16, TO_32, TO_64, TO_128, TO_256, TO_512, TO_1024, TO_2048, TO_4096, TO_8192, WIDE_ROWS,
       ROW_CLASSES };

/* Entries that one block reads at once of a wide row, and of one that is read by several. */
enum { PART = 8192 };

/* All that is counted on the device. */
struct contract_totals {
    unsigned long long entries, wide_entries, parts; /* wide ones: where their cells lie */
    unsigned long long wide_stage, inexact_stage; /* entries of wide rows, and of those that are inexact */
    unsigned long long allotted;                /* entries of the stage and nodes that groups have, as counted */
    unsigned members[ROW_CLASSES];              /* rows of a class */
    unsigned drawn[ROW_CLASSES];                /* rows of a class that blocks have drawn */
    unsigned inexact[ROW_CLASSES];              /* rows of a class that are left to be summed again in order */
    unsigned wide_long, wide_short;             /* wide rows listed backwards, forwards */
    unsigned most_nodes;                        /* of a group */
    unsigned unsorted;                          /* some node's label is below 0 or below that of the node before */
    unsigned gaps;                              /* or more than one above it */
    unsigned blocks;                            /* of classify_rows that are done */
    unsigned nameless; /* whether a row of B has more than one entry and renames no column */
    unsigned bad_node; /* UINT_MAX less the first node whose label is not below `groups`; 0: none */
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

/* How long the second-level cache is to keep what is read, as createpolicy encodes it for all addresses. */
enum : uint64_t { KEEP_USUAL = 0x1000000000000000, KEEP_LEAST = 0x12f0000000000000, KEEP_MOST = 0x14f0000000000000 };

/* Labels in no order of this many bytes and more are kept in the cache at the cost of G's entries, which are read once:
 * 5 % less time for R-MAT 22 (16 MB), 2 to 5 more where 4 MB stay there by themselves. */
enum { MANY_LABELS = 8 << 20 };

template <typename V> struct contract_args {
    matrix_view<V> g; /* values NULL: ones, or not wanted */
    const int32_t *labels; /* of G's columns, NULL: their numbers; those of its rows are in the keys */
    uint16_t *short_labels; /* the same where 16 bits do, UINT16_MAX for none: half the cache; else NULL */
    uint2 *runs; /* of labels that ascend by ones: the first of 32 nodes', bits of nodes where it rises; else NULL */
    int64_t nodes, groups, columns; /* rows of G that are listed; rows and columns of C */
    contract_operation operation;
    uint64_t keep_entries, keep_labels; /* in the cache: G's, and the labels */
    bool whole; /* rows of C are rows of G that follow each other, which begin in the stage where they do there */
    int count_shift; /* of groups that are counted, this many bits are entries, and those above are nodes; else 0 */
    int64_t near; /* entries of the longest wide rows that a block each sums; 0: none */
    contract_totals *totals, *spare; /* those of the next call, which are zeroed */
    unsigned long long *tallies; /* entries and nodes of groups until rows have classes; then zeroed */
    uint32_t *keys;   /* by group: a node's label, `groups` for none */
    int64_t *sources; /* where the entries of the k-th of them begin in G, ascending within a group */
    int64_t *starts;  /* and where they would in the stage */
    uint2 *placed;    /* instead of both, for nodes of a group in any order: rows whose sums it may change are left for
                         later; else NULL */
    stage_range *ranges; /* of C's rows */
    int32_t *firsts;     /* the first of the nodes of each */
    int32_t *cols;       /* the stage */
    V *values;
    uint8_t *classes;
    int32_t *list, *lengths;
    int64_t lists[ROW_CLASSES]; /* where those of a class begin in `list`; the longest wide rows lie before that */
    int32_t *inexact; /* of a class, listed where its rows are in `list`; of wide rows their places there */
    const int32_t *listed;   /* the rows to be combined: `list`, or of that what is inexact, */
    const unsigned *counted; /* and how many of each class */
    int64_t *cells_of; /* wide rows, as listed: where their cells begin */
    uint2 *parts;      /* of wide rows: a row's distance from where wide rows begin, and which of its parts */
    unsigned long long *cells, *counts, *grains;
    int32_t *cell_cols;
};

/* Before a node that is in no group, or has no entries. */
static const unsigned long long UNLISTED = UINT64_MAX;

/* The bits of a group's count that are entries; those above count its nodes. */
template <typename V> static __device__ __forceinline__ unsigned long long counted_entries(const contract_args<V> &job)
{
    return ((unsigned long long)1 << job.count_shift) - 1;
}

/* Reads by the cache's policy. */
template <typename T> static __device__ __forceinline__ T read_kept(const T *from, uint64_t policy)
{
#if __CUDA_ARCH__ == 900
    if constexpr (sizeof(T) == 2) {
        unsigned short bits;
        asm("ld.global.nc.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(bits) : "l"(from), "l"(policy));
        return (T)bits;
    } else if constexpr (std::is_same_v<T, float>) {
        float number;
        asm("ld.global.nc.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(number) : "l"(from), "l"(policy));
        return number;
    } else if constexpr (sizeof(T) == 4) {
        int32_t number;
        asm("ld.global.nc.L2::cache_hint.s32 %0, [%1], %2;" : "=r"(number) : "l"(from), "l"(policy));
        return number;
    }
#endif
    return __ldg(from);
}
template <typename V, typename T>
static __device__ __forceinline__ T read_entry(const contract_args<V> &job, const T *from)
{
    return read_kept(from, job.keep_entries);
}
template <typename V, typename T>
static __device__ __forceinline__ T read_label(const contract_args<V> &job, const T *from)
{
    return read_kept(from, job.keep_labels);
}

/* The rows of class c, or of those the ones that are to be combined again. */
struct class_rows {
    const int32_t *rows;
    unsigned count;
};
template <typename V> static __device__ __forceinline__ int64_t first_of_class(const contract_args<V> &job, int c)
{
    return job.lists[c] - (c == WIDE_ROWS ? job.totals->wide_long : 0);
}
template <typename V> static __device__ __forceinline__ class_rows rows_of(const contract_args<V> &job, int c)
{
    return {job.listed + first_of_class(job, c), job.counted[c]};
}

/* Leaves a row of class c, of wide ones its place in the list, to be summed again in order. */
template <typename V> static __device__ __forceinline__ void leave_row(const contract_args<V> &job, int c, int32_t p)
{
    job.inexact[first_of_class(job, c) + atomicAdd(job.totals->inexact + c, 1u)] = p;
}

/* The last of `count` items that starts at or before `place`, for a warp; 32 probes a step. */
template <typename Start> static __device__ int64_t last_item(int64_t count, int64_t place, Start start)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t step = (high - low + 31) / 32, at = low + (threadIdx.x & 31) * step;
        const unsigned before = __ballot_sync(FULL_WARP, at < high && start(min(at, count)) <= place);
        low += (__popc(before) - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

static __device__ __forceinline__ int64_t last_start(const int64_t *starts, int64_t count, int64_t place)
{
    return last_item(count, place, [=](int64_t at) { return __ldg(starts + at); });
}

/* ---- the entries of a row ------------------------------------------------------------------------- */

/* Where the entries of the k-th node begin: in its row of C, from the row's `begin` on, and in G less that. */
template <typename V>
static __device__ __forceinline__ int64_t node_start(const contract_args<V> &job, int64_t k, int64_t begin)
{
    return (job.placed ? (int64_t)__ldg(job.placed + k).x : __ldg(job.starts + k)) - begin;
}
template <typename V>
static __device__ __forceinline__ int64_t node_source(const contract_args<V> &job, int64_t k, int64_t from)
{
    return __ldg(job.sources + k) - from;
}

/* Where a node's entries begin in the stage (x) and in G (y); of nodes that are only placed 32 bits tell. */
template <bool PLACED> struct node_places {
    using place = int64_t;
    using type = longlong2;
};
template <> struct node_places<true> {
    using place = uint32_t;
    using type = uint2;
};

/* 0 without such a node. */
template <bool PLACED, typename V>
static __device__ __forceinline__ typename node_places<PLACED>::type node_at(const contract_args<V> &job, int64_t k)
{
    if constexpr (PLACED) return k < job.nodes ? __ldg(job.placed + k) : make_uint2(0, 0);
    else return k < job.nodes ? make_longlong2(__ldg(job.starts + k), __ldg(job.sources + k)) : make_longlong2(0, 0);
}

/* The parts of a wide row. */
template <typename V> static __device__ __forceinline__ unsigned parts_of(const contract_args<V> &job, int64_t entries)
{
    return entries <= job.near ? 0 : (unsigned)((entries + PART - 1) / PART);
}

/* Where the cells of a wide row lie, there is room for this many; or for its entries. */
template <typename V> static __device__ __forceinline__ int64_t cells_in(const contract_args<V> &job, int64_t entries)
{
    return entries <= job.near ? entries : min(entries, job.columns);
}

/* The row that a warp or a block will take next, read step by step while it works on another. */
template <bool PLACED, typename V> struct next_row {
    int32_t p, first;
    stage_range range;
    typename node_places<PLACED>::type node; /* the thread's first, unless rows of C are whole ones of G */

    __device__ __forceinline__ void read_number(const class_rows &own, unsigned i)
    {
        p = i < own.count ? __ldg(own.rows + i) : -1;
    }
    __device__ __forceinline__ void read_range(const contract_args<V> &job)
    {
        if (p < 0) return;
        range = job.ranges[p];
        first = __ldg(job.firsts + p);
    }
    __device__ __forceinline__ void read_node(const contract_args<V> &job, int thread)
    {
        if ((PLACED || !job.whole) && p >= 0) node = node_at<PLACED>(job, first + (int64_t)thread);
    }
};

/* The label of a node of G where labels ascend by ones: a sixteenth of the cache. */
static __device__ __forceinline__ int32_t label_in(uint2 run, int32_t node)
{
    return (int32_t)run.x + __popc(run.y << (~node & 31));
}

/* The column in C's row p of an entry of G in column `node`; EMPTY if it is left out. */
template <typename V>
static __device__ __forceinline__ int32_t column_of(const contract_args<V> &job, int32_t p, int32_t node)
{
    const int32_t col = job.runs     ? label_in(__ldg(job.runs + node / 32), node)
                        : job.labels ? read_label(job, job.labels + node)
                                     : node;
    if ((uint32_t)col >= (uint32_t)job.columns) return EMPTY;
    if (job.operation.loops == SP_LOOPS_KEEP) return col;
    return (col == p) == (job.operation.loops == SP_LOOPS_ONLY) ? col : EMPTY;
}

/* The same for several entries, EMPTY those that there are not: what all have in common is asked once. */
template <int N, typename V>
static __device__ __forceinline__ void label_columns(const contract_args<V> &job, int32_t p, int32_t (&col)[N])
{
    const uint32_t columns = (uint32_t)job.columns;
    if (job.runs) {
#pragma unroll
        for (int u = 0; u < N; u++)
            if (col[u] != EMPTY) col[u] = label_in(__ldg(job.runs + (uint32_t)col[u] / 32), col[u]);
    } else if (job.labels) {
#pragma unroll
        for (int u = 0; u < N; u++)
            if (col[u] != EMPTY) col[u] = read_label(job, job.labels + (uint32_t)col[u]);
#pragma unroll
        for (int u = 0; u < N; u++)
            if ((uint32_t)col[u] >= columns) col[u] = EMPTY;
    }
    if (job.operation.loops == SP_LOOPS_KEEP) return;
#pragma unroll
    for (int u = 0; u < N; u++)
        if ((col[u] == p) != (job.operation.loops == SP_LOOPS_ONLY)) col[u] = EMPTY;
}

static __device__ __forceinline__ void add_entries(contract_totals *totals, unsigned long long entries)
{
    for (int step = 16; step > 0; step /= 2) entries += __shfl_xor_sync(FULL_WARP, entries, step);
    if ((threadIdx.x & 31) == 0 && entries) atomicAdd(&totals->entries, entries);
}

/* ---- combining in order --------------------------------------------------------------------------- */

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

/* C = A·B, sums, where B is a pattern with at most one entry a row, or A a pattern that has not many more entries
 * than rows of B; *done is false, and nothing was done, where neither is (patterns.cu). */
sp_status cuda_multiply_patterns(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                                 sp_spgemm_info *info, bool *done);

#endif
