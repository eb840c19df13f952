/* Y = alpha · reduce(A · X) + beta · Y where neighbouring rows have columns in common: panels of rows in step.
 *
 * If the nodes of a community have neighbouring numbers, some hundred neighbouring rows have the same columns, and rows
 * that pass over them at about the same time share rows of X in the first-level cache. A panel is a block of threads
 * that starts as many rows at once, of like lengths, so that they stay in step by themselves. Its groups of 8 lanes
 * take a row each. A row of more than n entries takes k groups, and each of them every k-th run of entries. Their
 * results are added up in shared memory in a fixed order, so every sum has the same bits in every run.
 *
 * If nodes are numbered in another way, the order of rows that order.cu finds brings communities together. Columns
 * ascend within a row, so the rows of a community are in step wherever its nodes lie.
 *
 * With 105 million entries in communities of 4,660 nodes, 80 % of a row's 450 inside, gathers run at 13.3 to 13.9
 * TB/s, of some 14 that the first-level cache gives; in a simulation 60 % of the rows of X are found there. Blocks of 8
 * groups, as in the block partition, find a tenth and run at 9, because the blocks of one multiprocessor come from
 * everywhere. Slower, in trials of an earlier form: barriers that keep rows closer in step (1.26 ms for 1.16 at width
 * 32), two blocks of half as many groups (1.17), of three quarters (1.45), tiles of two lines (9.0 for 8.5 at width
 * 256), and the common range of X staged in shared memory, window by window (1.86), where rows wait for the slowest.
 *
 * The preparation is one sort of the rows and takes 8 bytes a group, some 10 a row.
 */
#include <new>

#include "device/entries.cuh"
#include "device/radix.cuh"
#include "spmm/cuda/panels.cuh"
#include "spmm/cuda/walk.cuh"

enum { THREADS = ENTRY_THREADS };

enum {
    LANES = 8,
    GROUPS = 128,     /* of a panel: 1024 threads, alone on a multiprocessor with 64 registers each */
    FEW_GROUPS = 8,   /* of a row; rows that need more have 16, 32, 64 or 128 */
    USABLE = GROUPS - (FEW_GROUPS - 1), /* where rows of few groups may begin in a panel */
    NEAR_ROWS = 1024, /* rows are sorted by length within this many */
    LENGTH_BITS = 11  /* of the entries of a group, and more than GROUPS takes */
};
/* Rows of 43 entries are over before a panel is under way (0.089 ms for 0.072), those of 450 gain. Ordered by
 * communities, 122 million entries, 50 a row, take 1.53 ms for 1.60 at 16 columns (of f16 1.50 for 1.46), 1.91 for
 * 2.20 at 32 and 7.7 for 9.0 at 128, and 43 million, 74 a row, 418 us for 460 at 16; but 1.6 million, 33 a row, 28.9
 * us for 26.4 at 32 and, of f16, 25.6 for 22.3. */
static const int64_t LEAST_MEAN = 96, LEAST_ORDERED = 48;
/* Times that a group may have more entries than others, in the longest row. */
static const int64_t MOST_TURNS = 4;

/* ---- preparation ----------------------------------------------------------------------------------------- */

static __device__ __forceinline__ int groups_of(int64_t entries, int group_entries)
{
    if (entries <= FEW_GROUPS * group_entries) return max(1, (int)((entries + group_entries - 1) / group_entries));
    int groups = 2 * FEW_GROUPS;
    while (groups < GROUPS && (int64_t)groups * group_entries < entries) groups *= 2;
    return groups;
}

/* Rows of many groups come first, those of most before the others, so that each begins at a multiple of its groups
 * and ends in its panel. */
static __global__ void __launch_bounds__(THREADS)
    list_rows(int64_t rows, const int64_t *offsets, const int32_t *order, int group_entries, uint64_t *keys,
              int32_t *numbers)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows) return;
    const int64_t row = order ? order[at] : at;
    const int64_t entries = offsets[row + 1] - offsets[row];
    const int groups = groups_of(entries, group_entries);
    const int64_t window = at / NEAR_ROWS + 1, each = (entries + groups - 1) / groups;
    keys[at] = (uint64_t)(groups > FEW_GROUPS ? GROUPS - groups : window << LENGTH_BITS | each);
    numbers[at] = (int32_t)row;
}

/* *many: the groups of rows of many. */
static __global__ void __launch_bounds__(THREADS)
    count_groups(int64_t rows, const int64_t *offsets, const int32_t *order, int group_entries, int32_t *groups,
                 unsigned long long *many)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows) return;
    groups[at] = groups_of(offsets[order[at] + 1] - offsets[order[at]], group_entries);
    if (groups[at] > FEW_GROUPS) atomicAdd(many, (unsigned long long)groups[at]);
}

static __global__ void __launch_bounds__(THREADS)
    fill_slots(int64_t rows, const int32_t *order, const int32_t *groups, const int64_t *first, int64_t many,
               int2 *slots)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows) return;
    const int64_t behind = first[at] - many, panel = (many + GROUPS - 1) / GROUPS + behind / USABLE;
    const int64_t slot = groups[at] > FEW_GROUPS ? first[at] : panel * GROUPS + behind % USABLE;
    for (int i = 0; i < groups[at]; i++) slots[slot + i] = {order[at], i << 8 | groups[at]};
}

/* Of one row in SAMPLED, 32 entries: how many lie where the row that follows in the order has enough others for a
 * panel's rows to use each row of X around there twice. */
enum { SAMPLED = 16, AROUND = 128, USES = 2 };

static __global__ void __launch_bounds__(THREADS)
    sample_uses(int64_t rows, const int64_t *offsets, const int32_t *cols, const int32_t *order,
                unsigned long long *counts /* {sampled, of use} */)
{
    const int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * SAMPLED;
    if (at + 1 >= rows) return;
    const int64_t begin = offsets[order[at]], entries = offsets[order[at] + 1] - begin;
    const int64_t from = offsets[order[at + 1]], to = offsets[order[at + 1] + 1];
    if (entries == 0) return;
    const int64_t column = __ldg(cols + begin + entries * (threadIdx.x % 32) / 32);
    const int64_t low = lower_bound_i32(cols, from, to, (int32_t)(column - AROUND)),
                  high = lower_bound_i32(cols, low, to, (int32_t)min(column + AROUND, (int64_t)INT32_MAX));
    const int useful = __popc(__ballot_sync(FULL_WARP, (high - low) * GROUPS >= USES * 2 * AROUND));
    if (threadIdx.x % 32) return;
    atomicAdd(counts, (unsigned long long)entries * 32);
    atomicAdd(counts + 1, (unsigned long long)entries * useful);
}

/* Most rows are a group's. */
static int group_size(const sp_csr *a)
{
    int entries = 32;
    while (2 * entries < 1 << LENGTH_BITS && entries * a->rows < a->nnz) entries *= 2;
    return entries;
}

/* sorted_rows[i] = the row of place i. */
static sp_status sort_rows(sp_context *context, const sp_csr *a, const int32_t *order, int group_entries,
                           device_array<int32_t> *sorted_rows)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<uint64_t> keys, sorted;
    device_array<int32_t> numbers;
    int bits = LENGTH_BITS;
    while ((a->rows / NEAR_ROWS + 1) >> (bits - LENGTH_BITS)) bits++;
    CHECK(keys.allocate(context, a->rows));
    CHECK(sorted.allocate(context, a->rows));
    CHECK(numbers.allocate(context, a->rows));
    CHECK(sorted_rows->allocate(context, a->rows));
    list_rows<<<thread_blocks(a->rows), THREADS, 0, stream>>>(a->rows, a->row_offsets, order, group_entries,
                                                           keys.data, numbers.data);
    CUDA_CHECK(cudaGetLastError());
    return radix_sort_pairs(context, keys.data, sorted.data, numbers.data, sorted_rows->data, a->rows, bits);
}

/* *pays: whether at least half of the entries are of use to several rows. */
static sp_status sample(sp_context *context, const sp_csr *a, const int32_t *order, bool *pays)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<unsigned long long> counts;
    unsigned long long seen[2];
    CHECK(counts.allocate(context, 2));
    CHECK(counts.fill(0, 2));
    sample_uses<<<thread_blocks((a->rows + SAMPLED - 1) / SAMPLED * 32), THREADS, 0, stream>>>(
        a->rows, a->row_offsets, a->col_indices, order, counts.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(seen, counts.data, sizeof seen, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    *pays = seen[0] > 0 && 2 * seen[1] >= seen[0];
    return SP_OK;
}

/* Leaves panels->count 0 where they do not pay. */
static sp_status make(sp_context *context, const sp_csr *a, const int32_t *given, spmm_panels *panels)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int group_entries = group_size(a);
    device_array<int32_t> order, groups;
    device_array<int64_t> first;
    device_array<unsigned long long> sum;
    int64_t all = 0, many = 0;
    bool pays = given != NULL;
    CHECK(sort_rows(context, a, given, group_entries, &order));
    if (!pays) CHECK(sample(context, a, order.data, &pays));
    if (!pays) return SP_OK;
    CHECK(groups.allocate(context, a->rows + 1));
    CHECK(first.allocate(context, a->rows + 1));
    CHECK(sum.allocate(context, 1));
    CHECK(sum.fill(0, 1));
    count_groups<<<thread_blocks(a->rows), THREADS, 0, stream>>>(a->rows, a->row_offsets, order.data, group_entries,
                                                              groups.data, sum.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, a->rows, groups.data, first.data));
    CUDA_CHECK(cudaMemcpyAsync(&all, first.data + a->rows, sizeof all, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaMemcpyAsync(&many, sum.data, sizeof many, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    const int64_t count = (many + GROUPS - 1) / GROUPS + (all - many + USABLE - 1) / USABLE;
    CHECK(panels->slots.allocate(context, count * GROUPS));
    CHECK(panels->slots.fill(-1, count * GROUPS));
    fill_slots<<<thread_blocks(a->rows), THREADS, 0, stream>>>(a->rows, order.data, groups.data, first.data, many,
                                                            panels->slots.data);
    CUDA_CHECK(cudaGetLastError());
    panels->count = count;
    return cuda_finish(context);
}

void cuda_spmm_free_panels(sp_context *context, spmm_panels *panels)
{
    if (!panels) return;
    panels->~spmm_panels();
    sp_free(context, panels);
}

int64_t cuda_spmm_panel_reach(const sp_csr *a) { return a->rows > 0 ? GROUPS * a->nnz / a->rows / USES : 0; }

bool cuda_spmm_fills_panels(sp_context *context, const sp_csr *a, int64_t longest, bool ordered)
{
    /* One panel for every multiprocessor, at least. */
    const int64_t least = (int64_t)cuda_state_of(context)->processors * GROUPS;
    return a->rows >= least && a->nnz >= (ordered ? LEAST_ORDERED : LEAST_MEAN) * a->rows &&
           longest <= MOST_TURNS * GROUPS * group_size(a);
}

sp_status cuda_spmm_make_panels(sp_context *context, const sp_csr *a, int64_t longest, const int32_t *order,
                                spmm_panels **panels)
{
    void *memory = NULL;
    *panels = NULL;
    if (!cuda_spmm_fills_panels(context, a, longest, order)) return SP_OK;
    CHECK(sp_calloc(context, 1, sizeof(spmm_panels), &memory));
    spmm_panels *made = new (memory) spmm_panels();
    const sp_status status = make(context, a, order, made);
    if (status == SP_OK && made->count > 0) *panels = made;
    else cuda_spmm_free_panels(context, made);
    return status;
}

int64_t cuda_spmm_panel_bytes(const spmm_panels *panels)
{
    return panels ? panels->count * GROUPS * (int64_t)sizeof(int2) : 0;
}

/* ---- the product ----------------------------------------------------------------------------------------- */

/* A load of the group is 128 bytes: a row of X of one entry or, where a tile's rows have a half or a quarter of that,
 * of two or four. This many PARTS, of EACH lanes, a group has. A run is what it has in flight at a time. */
template <typename T, int PARTS> struct runs {
    static constexpr int EACH = LANES / PARTS, LOADS = PARTS < 4 ? 8 : 4, ENTRIES = LOADS * PARTS;
    static constexpr int OWN = ENTRIES / LANES; /* entries of A that a lane loads */
    /* Words from a lane's first entry to its second, and from a group to the next. Where the two lie 48 apart, all
     * banks serve what is written and read at a time: 16 columns of f32, 670 -> 651 us; but 32 of f16, where
     * registers are few, 716 -> 734. */
    static constexpr int APART = OWN == 2 && sizeof(T) == 4 ? 48 : LANES;
    static constexpr int ROOM = OWN == 2 && sizeof(T) == 2 ? ENTRIES : LANES;
    using exchange = entry_exchange<PARTS < 4 ? (OWN - 1) * APART + 3 * ROOM + LANES : 4 /* add_fours needs none */>;
    static __device__ __forceinline__ int place(int group, int entry)
    {
        return entry / LANES * APART + group * ROOM + entry % LANES;
    }
};

/* Adds a group's runs of a row: the first `left` entries from `begin` on are the row's, a run begins every `step`.
 * All lanes of the warp take part. Each of the group's parts has the sum of its own entries then. */
template <typename run, typename T, int V>
static __device__ __forceinline__ void add_runs(const spmm_product &p, int64_t begin, int left, int step,
                                                const char *x, spmm_sums<T, V> *result,
                                                typename run::exchange &exchange)
{
    const int lane = threadIdx.x % LANES, group = threadIdx.x % 32 / LANES;
    const int first = run::place(group, lane / run::EACH * run::LOADS); /* of the part's entries */
    const int32_t *cols = p.cols + begin + lane;
    const int64_t away = (const char *)p.values - (const char *)p.cols;
    int32_t next_col[run::OWN]; /* -1: none */
    float next_weight[run::OWN];
    left -= lane;
    const auto fetch = [&] {
#pragma unroll
        for (int i = 0; i < run::OWN; i++) {
            const bool there = left > i * LANES;
            next_col[i] = there ? __ldg(cols + i * LANES) : -1;
            next_weight[i] = there ? p.values ? __ldg((const float *)((const char *)cols + away) + i * LANES) : 1 : 0;
        }
        cols += step;
        left -= step;
    };
    fetch();
    while (__any_sync(FULL_WARP, next_col[0] >= 0)) {
        const bool whole = __all_sync(FULL_WARP, next_col[run::OWN - 1] >= 0);
        packet<T, V> gathered[run::LOADS / 4][4];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < run::OWN; i++) {
            exchange.cols[run::place(group, lane + i * LANES)] = next_col[i];
            exchange.weights[run::place(group, lane + i * LANES)] = next_weight[i];
        }
        __syncwarp();
        fetch();
        const auto gather = [&](auto all) {
#pragma unroll
            for (int u = 0; u < run::LOADS / 4; u++) {
                const int4 four = ((const int4 *)(exchange.cols + first))[u];
                const auto take = [&](packet<T, V> &to, int32_t col) {
                    if (decltype(all)::value) to.load((const T *)row_of_x(x, col, p.x_bytes));
                    else to.load_if(col >= 0, (const T *)row_of_x(x, col, p.x_bytes));
                };
                take(gathered[u][0], four.x), take(gathered[u][1], four.y);
                take(gathered[u][2], four.z), take(gathered[u][3], four.w);
            }
        };
        if (whole) gather(std::true_type());
        else gather(std::false_type());
#pragma unroll
        for (int u = 0; u < run::LOADS / 4; u++) {
            const float4 four = ((const float4 *)(exchange.weights + first))[u];
            result->add(gathered[u][0], four.x, 0, true), result->add(gathered[u][1], four.y, 0, true);
            result->add(gathered[u][2], four.z, 0, true), result->add(gathered[u][3], four.w, 0, true);
        }
    }
#pragma unroll
    for (int away = run::EACH; away < LANES; away *= 2) result->merge(result->across(away));
}

/* As add_runs of 16 entries, four to each of the group's parts, whose lanes load columns and weights themselves, from
 * multiples of 16 bytes on: nothing is exchanged. */
template <typename T, int V>
static __device__ __forceinline__ void add_fours(const spmm_product &p, int64_t begin, int entries, int skip,
                                                 int step, const char *x, spmm_sums<T, V> *result)
{
    constexpr int EACH = runs<T, 4>::EACH;
    const int64_t first = (begin & ~(int64_t)3) + skip + threadIdx.x % LANES / EACH * 4;
    const int64_t away = (const char *)p.values - (const char *)p.cols;
    const bool aligned = (((uintptr_t)p.cols | (uintptr_t)p.values) & 15) == 0;
    const int32_t *cols = p.cols + first;
    int low = (int)(begin - first), high = low + entries; /* those of the row, from `cols` on */
    int whole = aligned ? (int)min(p.nnz - first, (int64_t)INT32_MAX) : 0; /* those that may be loaded by fours */
    uint4 next_col, next_weight;
    const auto fetch = [&](int from, int to) {
        const uint32_t *col = (const uint32_t *)cols, *weight = (const uint32_t *)((const char *)cols + away);
        const uint32_t one = 0x3f800000;
        next_weight = {one, one, one, one};
        if (to <= 0) return;
        if (whole >= 4) {
            next_col = __ldg((const uint4 *)col);
            if (p.values) next_weight = __ldg((const uint4 *)weight);
            return;
        }
        const auto load = [&](const uint32_t *word, int k) { return k >= from && k < to ? __ldg(word + k) : 0; };
        next_col = {load(col, 0), load(col, 1), load(col, 2), load(col, 3)};
        if (p.values) next_weight = {load(weight, 0), load(weight, 1), load(weight, 2), load(weight, 3)};
    };
    fetch(low, high);
    for (; __any_sync(FULL_WARP, high > 0); low -= step, high -= step) {
        packet<T, V> gathered[4];
        const auto take = [&](auto all) {
            const auto there = [&](int k) { return decltype(all)::value || (k >= low && k < high); };
            const auto gather = [&](int k, uint32_t col) {
                const T *from = (const T *)row_of_x(x, (int32_t)col, p.x_bytes);
                if (decltype(all)::value) gathered[k].load(from);
                else gathered[k].load_if(there(k), from);
            };
            const auto add = [&](int k, uint32_t weight) {
                result->add(gathered[k], there(k) ? __uint_as_float(weight) : 0.f, 0, true);
            };
            gather(0, next_col.x), gather(1, next_col.y), gather(2, next_col.z), gather(3, next_col.w);
            const uint4 weight = next_weight;
            cols += step;
            whole -= step;
            fetch(low - step, high - step);
            add(0, weight.x), add(1, weight.y), add(2, weight.z), add(3, weight.w);
        };
        if (__all_sync(FULL_WARP, low <= 0 && high >= 4)) take(std::true_type());
        else take(std::false_type());
    }
#pragma unroll
    for (int apart = EACH; apart < LANES; apart *= 2) result->merge(result->across(apart));
}

/* REPEATS 2: a tile of 12 packets a row, by pairs of entries. */
template <typename T, int V, int PARTS, int REPEATS>
static __global__ void __launch_bounds__(GROUPS *LANES)
    work_panels(const spmm_product p, const int2 *slots, int32_t missing)
{
    using Result = spmm_sums<T, V>;
    using run = std::conditional_t<REPEATS == 1, runs<T, PARTS>, runs<T, 1>>;
    __shared__ union {
        typename run::exchange exchange[GROUPS * LANES / 32];
        char results[GROUPS * run::EACH * sizeof(Result)];
    } shared;
    const auto merged = (Result(*)[run::EACH])shared.results;
    typename run::exchange &exchange = shared.exchange[threadIdx.x / 32];
    const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int2 slot = __ldg(slots + (int64_t)blockIdx.x * GROUPS + group);
    const spmm_columns<T, V, run::EACH, REPEATS> columns(p, (int)blockIdx.y, REPEATS, REPEATS > 1 ? missing : 0);
    const bool active = slot.x >= 0;
    const int32_t row = active ? slot.x : 0;
    const int part = active ? slot.y >> 8 : 0, groups = active ? slot.y & 0xff : 1;
    const int64_t start = active ? __ldg(p.offsets + row) : 0;
    const int entries = active ? (int)(__ldg(p.offsets + row + 1) - start) : 0;
    const bool writes = active && part == 0 && lane < run::EACH;
    Result result[REPEATS];
#pragma unroll
    for (int r = 0; r < REPEATS; r++) result[r].clear(p);
    if (writes) prefetch_row(p, row, columns);
    const int skip = part * run::ENTRIES, step = groups * run::ENTRIES;
    if constexpr (REPEATS == 2) add_pairs<2>(p, start + skip, entries - skip, step, columns, result, exchange);
    else if constexpr (PARTS == 4) add_fours(p, start, entries, skip, step, columns.x, result);
    else add_runs<run>(p, start + skip, entries - skip, step, columns.x, result, exchange);
    if (__syncthreads_or(groups > 1))
#pragma unroll
        for (int r = 0; r < REPEATS; r++) {
            if (r > 0) __syncthreads();
            if (part > 0 && lane < run::EACH) merged[group][lane] = result[r];
            __syncthreads();
            if (writes)
                for (int i = 1; i < groups; i++) result[r].merge(merged[group + i][lane]);
        }
    if (writes) write_row(p, row, columns, result);
}

/* `width` columns from `first` on; `missing`: see spmm_columns. */
template <typename T, int PARTS, int REPEATS = 1>
static sp_status launch_tiles(sp_context *context, const spmm_product &whole, int32_t first, int32_t width,
                              const spmm_panels *panels, int32_t missing = 0)
{
    constexpr int V = 16 / sizeof(T), COLUMNS = REPEATS * V * LANES / PARTS;
    spmm_product product = whole;
    if (width <= 0) return SP_OK;
    product.x = (const T *)whole.x + first;
    product.y = (char *)whole.y + (size_t)first * (whole.y_narrow ? sizeof(T) : sizeof(float));
    product.width = width;
    product.tiles = (width + COLUMNS - 1) / COLUMNS;
    work_panels<T, V, PARTS, REPEATS><<<dim3((unsigned)panels->count, (unsigned)product.tiles), GROUPS * LANES, 0,
                                        cuda_state_of(context)->stream>>>(product, panels->slots.data, missing);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* Tiles of 128 bytes a row; the rest in one of 32, 64, 128 or, with the last of them, 192. A part of the
 * columns is tiled as the whole is, so that its sums have the same bits: without the last whole tile too. */
template <typename T>
static sp_status launch(sp_context *context, const spmm_product &product, const spmm_panels *panels)
{
    constexpr int COLUMNS = 16 / sizeof(T) * LANES;
    const int32_t width = product.width, left = product.total % COLUMNS, whole = product.total - left;
    const int32_t here = min(max(whole - product.first, 0), width); /* columns in whole tiles */
    if (left == 0 || 2 * left > COLUMNS || here == width || left_out("spmm-panel-parts"))
        return launch_tiles<T, 1>(context, product, 0, width, panels);
    if (whole == 0)
        return 4 * left > COLUMNS ? launch_tiles<T, 2>(context, product, 0, width, panels)
                                  : launch_tiles<T, 4>(context, product, 0, width, panels);
    if (here < COLUMNS) {
        CHECK((launch_tiles<T, 1>(context, product, 0, here, panels)));
        return launch_tiles<T, 1, 2>(context, product, here, width - here, panels, COLUMNS);
    }
    CHECK((launch_tiles<T, 1>(context, product, 0, here - COLUMNS, panels)));
    return launch_tiles<T, 1, 2>(context, product, here - COLUMNS, width - here + COLUMNS, panels);
}

sp_status cuda_spmm_panels(sp_context *context, sp_dense_type type, const spmm_product &product,
                           const spmm_panels *panels)
{
    switch (type) {
    case SP_DENSE_F32: return launch<float>(context, product, panels);
    case SP_DENSE_F16: return launch<__half>(context, product, panels);
    case SP_DENSE_BF16: return launch<__nv_bfloat16>(context, product, panels);
    default: return SP_ERROR_UNSUPPORTED;
    }
}
