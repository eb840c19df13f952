/* C = A·B on a CUDA device, row-wise (Gustavson 1978) in two phases with hash tables, sorted; cancelled entries stay.
 *
 * Li et al., "Accelerating SpGEMM on GPUs with Processing Near HBMs", Algorithms 1 to 5: rows are grouped by their
 * products, columns of C are counted with tables of keys (symbolic), rows are grouped again by nnz(C), and summed
 * with tables of keys and sums (numeric). Tiny rows take four lanes each (PWPR), others a block (TBPR); what shared
 * memory cannot hold uses one bit or one f64 a column in global memory. Groups run on streams of their own, largest
 * rows first. Where the ranges of A's and B's rows come from is a parameter of every kernel (aia.cuh).
 *
 *   Algorithm 1, intermediate products of a row: count_products in aia.cuh; the grouping: group_rows here
 *   Algorithm 2, PWPR: count_tiny in hash_rows.cuh; numeric phase: sum_tiny there
 *   Algorithm 3, TBPR: count_rows in hash_rows.cuh; numeric phase: sum_rows in numeric.cuh
 *   Algorithm 4, the hash table: find_slot in numeric.cuh
 *   Algorithm 5, the gather stage: aia.cu
 *
 * Different from the paper: in the numeric phase all lanes of a row work on the same row of B, so that sums have the
 * CPU's order and need no atomics (numeric.cuh); sums are f64 for f32 values too, rounded once; tables are cleared,
 * probed and gathered over the slots that the row needs, not over all that its group has; rows are sorted in shared
 * memory and written once.
 *
 * Bytes: products · (4 + 4 + v) from B's rows over the two phases, less what the L2 cache keeps; nnz(C) · (4 + v)
 * written once; 16 a row for the groups; for the ranges three times 44 an entry of A without the stage; 40 of these
 * are a scattered look into B's offsets, and three times 8, and once 52, with it. The host waits three times: for the
 * groups, for nnz(C), for the end.
 */
#include <stdio.h>
#include <string.h>

#include "spgemm/cuda/hash_rows.cuh"

/* ---- device: grouping rows ------------------------------------------------------------------------------ */

/* Class 0 holds tiny rows, class c rows of up to limit[c] columns, class classes - 1 the others. */
struct group_rules {
    int classes;
    int64_t limit[MAX_CLASSES];
};

/* What a phase's grouping finds; all zero before. */
struct phase_counts {
    unsigned long long total;       /* products, or nnz(C) */
    uint32_t rows[MAX_CLASSES];
    int spilled, next[MAX_CLASSES]; /* rows that no table held; rows taken by resident blocks */
};

/* Rows are grouped by nnz(C) where `lengths` is given, else by products. */
struct grouping {
    int64_t rows, cols;
    const int64_t *products;
    const int32_t *lengths;
    group_rules rules;
    phase_counts *counts;
    uint8_t *classes;
    int32_t *run_counts; /* for cuda_order_rows */
};

static __device__ int group_of(const grouping &g, int64_t row)
{
    const int64_t products = g.products[row], size = g.lengths ? g.lengths[row] : min(products, g.cols);
    int c = 0;
    if (products > TINY_PRODUCTS)
        for (c = 1; c + 1 < g.rules.classes && size > g.rules.limit[c];) c++;
    return c;
}

static __global__ void __launch_bounds__(ORDER_THREADS) group_rows(grouping g)
{
    __shared__ uint64_t reduce[32];
    __shared__ uint32_t histogram[MAX_CLASSES];
    const int64_t row = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    unsigned long long own = 0;
    if (threadIdx.x < MAX_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    if (row < g.rows) {
        own = g.lengths ? (unsigned long long)g.lengths[row] : (unsigned long long)g.products[row];
        g.classes[row] = (uint8_t)group_of(g, row);
        atomicAdd(&histogram[g.classes[row]], 1u);
    }
    own = block_reduce<ORDER_THREADS>(own, add_op(), reduce);
    if (threadIdx.x == 0) atomicAdd(&g.counts->total, own);
    if (threadIdx.x >= MAX_CLASSES) return;
    g.run_counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = (int32_t)histogram[threadIdx.x];
    if (histogram[threadIdx.x]) atomicAdd(&g.counts->rows[threadIdx.x], histogram[threadIdx.x]);
}

/* ---- host: launches ------------------------------------------------------------------------------------ */

/* One row of a table of launches; class 0, the tiny rows, has its own kernel. */
template <sp_aia WAY> struct counting_class {
    void (*kernel)(count_job, range_source<WAY>, int first);
    int threads, limit;
    size_t shared;
};
template <sp_aia WAY, int THREADS, int SLOTS> static counting_class<WAY> counting()
{
    return {count_rows<WAY, THREADS, SLOTS>, THREADS, table_limit<SLOTS>::value, SLOTS * sizeof(int32_t)};
}

/* Shared memory a block: 4 bytes a slot to count, 12 to sum; the largest fill a Hopper multiprocessor, and devices
 * with less do without. Few threads for short rows: in the numeric phase a block takes one row of B at a time. */
enum { BLOCK_CLASSES = 5 };
template <typename V, sp_aia WAY> struct launch_tables {
    using job = sum_job<V, WAY>;
    counting_class<WAY> count[BLOCK_CLASSES] = {counting<WAY, 32, 256>(), counting<WAY, 64, 1024>(),
                                                counting<WAY, 128, 4096>(), counting<WAY, 512, 22528>(),
                                                counting<WAY, 1024, 49152>()};
    numeric_class<job> sum[BLOCK_CLASSES] = {table_class<job, 32, 128, 2, 16>(), table_class<job, 32, 512, 2, 16>(),
                                             table_class<job, 128, 2048, 2, 7>(), table_class<job, 512, 9216, 2, 2>(),
                                             table_class<job, 1024, 18432, 1, 1>()};
    numeric_class<job> global = global_class<job, 0, 0, 2>();
};

/* The GPU's time for the stage, whose parts lie apart. Events are made only when there is a stage. */
struct stage_clock {
    enum { PARTS = 3 };
    cudaEvent_t begin[PARTS] = {}, end[PARTS] = {};
    int used = 0;

    ~stage_clock()
    {
        for (int i = 0; i < PARTS; i++) {
            if (begin[i]) cudaEventDestroy(begin[i]);
            if (end[i]) cudaEventDestroy(end[i]);
        }
    }
    sp_status start(sp_context *context)
    {
        CUDA_CHECK(cudaEventCreate(&begin[used]));
        CUDA_CHECK(cudaEventCreate(&end[used]));
        CUDA_CHECK(cudaEventRecord(begin[used], cuda_state_of(context)->stream));
        return SP_OK;
    }
    sp_status stop(sp_context *context)
    {
        CUDA_CHECK(cudaEventRecord(end[used], cuda_state_of(context)->stream));
        used++;
        return SP_OK;
    }
    /* The parts from `first` on, which must have ended. */
    sp_status seconds(sp_context *context, int first, double *sum) const
    {
        *sum = 0;
        for (int i = first; i < used; i++) {
            float milliseconds = 0;
            CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin[i], end[i]));
            *sum += milliseconds * 1e-3;
        }
        return SP_OK;
    }
};

/* Everything that one call holds on the device. */
template <typename V, sp_aia WAY> struct spgemm_run {
    sp_context *context;
    const sp_csr *a, *b;
    range_source<WAY> ranges;
    launch_tables<V, WAY> tables;
    stage_clock clock;
    device_array<char> workspace;
    device_array<uint64_t> stage; /* aia_1, then aia_2 */
    int64_t *products;            /* parts of the workspace, an entry a row */
    int32_t *lengths, *order;
    uint8_t *classes;
    device_array<int32_t> run_counts;
    phase_counts *device_counts; /* one a phase */
    phase_counts counts;         /* of the phase that runs, on the host */
    int usable;                  /* block classes of this phase that fit the device */
    int64_t begin[MAX_CLASSES + 1];
};

template <typename V, sp_aia WAY> static sp_status gather_rows_of_a(spgemm_run<V, WAY> *run)
{
    if constexpr (WAY == SP_AIA_ON) {
        CHECK(run->clock.start(run->context));
        CHECK(cuda_aia_rows(run->context, run->a, run->order, run->stage.data));
        CHECK(run->clock.stop(run->context));
    }
    return SP_OK;
}
template <typename V, sp_aia WAY> static sp_status gather_rows_of_b(spgemm_run<V, WAY> *run)
{
    if constexpr (WAY == SP_AIA_ON) {
        const int64_t rows = run->a->rows;
        CHECK(run->stage.allocate(run->context, rows + run->a->nnz));
        run->ranges.rows = run->stage.data;
        run->ranges.entries = run->stage.data + rows;
        CHECK(run->clock.start(run->context));
        CHECK(cuda_aia_entries(run->context, run->a, run->b, run->stage.data + rows));
        CHECK(run->clock.stop(run->context));
    }
    return SP_OK;
}

/* Puts the rows into the order of the classes of `table`, by nnz(C) if that is known, and begins to bring the counts
 * to the host: they are there after the next cuda_finish(), for use_groups(). */
template <typename V, sp_aia WAY, typename Class>
static sp_status group(spgemm_run<V, WAY> *run, const Class *table, bool by_length)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    /* The static part, and what the driver takes of a block. */
    const size_t fixed = sizeof(block_memory) + sizeof(walk_memory<1024, V>) + 1024;
    const unsigned blocks = (unsigned)order_runs(run->a->rows);
    grouping g = {run->a->rows, run->b->cols, run->products, by_length ? run->lengths : nullptr, {},
                  run->device_counts + by_length, run->classes, run->run_counts.data};
    for (run->usable = 0; run->usable < BLOCK_CLASSES; run->usable++) {
        if (table[run->usable].shared + fixed > cuda_state_of(context)->shared_limit) break;
        g.rules.limit[run->usable + 1] = table[run->usable].limit;
    }
    g.rules.classes = run->usable + 2;
    if (blocks > 0) {
        group_rows<<<blocks, ORDER_THREADS, 0, stream>>>(g);
        CUDA_CHECK(cudaGetLastError());
    }
    CHECK(cuda_order_rows(context, g.rows, g.classes, g.run_counts, run->order));
    CHECK(gather_rows_of_a(run));
    CUDA_CHECK(cudaMemcpyAsync(&run->counts, g.counts, sizeof run->counts, cudaMemcpyDeviceToHost, stream));
    return SP_OK;
}

template <typename V, sp_aia WAY> static sp_status use_groups(spgemm_run<V, WAY> *run)
{
    CHECK(cuda_finish(run->context));
    run->begin[0] = 0;
    for (int c = 0; c < MAX_CLASSES; c++) run->begin[c + 1] = run->begin[c] + run->counts.rows[c];
    return SP_OK;
}

/* Counts rows begin <= place < end with the table of class c >= 1, on its own stream. */
template <typename V, sp_aia WAY>
static sp_status launch_count(spgemm_run<V, WAY> *run, const count_job &job, int c, int64_t begin, int64_t end)
{
    sp_context *context = run->context;
    const counting_class<WAY> *kind = &run->tables.count[c - 1];
    if (begin == end) return SP_OK;
    CHECK(cuda_allow_shared(context, kind->kernel, kind->shared));
    kind->kernel<<<(unsigned)(end - begin), kind->threads, kind->shared, cuda_state_of(context)->side[c]>>>(
        job, run->ranges, (int)begin);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

static_assert((int)BLOCK_CLASSES < (int)SIDE_STREAMS, "a stream a class");

/* Scratch for the wide rows: `bytes` a block, for as many of `blocks` blocks as memory allows. */
static sp_status open_global(sp_context *context, device_array<char> *scratch, int64_t bytes, int *blocks)
{
    size_t available;
    CHECK(cuda_available(context, &available));
    const int64_t affordable = (int64_t)(available / 2) / bytes;
    if (affordable < *blocks) *blocks = (int)(affordable > 1 ? affordable : 1);
    return scratch->allocate(context, *blocks * bytes);
}

/* ---- host: phases -------------------------------------------------------------------------------------- */

/* The workspace, ranges, products of each row, and the groups of the symbolic phase. */
template <typename V, sp_aia WAY> static sp_status analyse(spgemm_run<V, WAY> *run)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = run->a->rows, counts = 2 * (int64_t)sizeof(phase_counts);
    CHECK(run->workspace.allocate(context, counts + 8 * rows + 4 * (rows + 1) + 4 * rows + rows));
    CHECK(run->run_counts.allocate(context, MAX_CLASSES * order_runs(rows)));
    run->device_counts = (phase_counts *)run->workspace.data;
    run->products = (int64_t *)(run->workspace.data + counts);
    run->lengths = (int32_t *)(run->products + rows);
    run->order = run->lengths + rows + 1;
    run->classes = (uint8_t *)(run->order + rows);
    CUDA_CHECK(cudaMemsetAsync(run->device_counts, 0, (size_t)counts, stream));
    CUDA_CHECK(cudaMemsetAsync(run->lengths + rows, 0, sizeof(int32_t), stream)); /* the scan reads it */
    CHECK(gather_rows_of_b(run));
    if (rows > 0) {
        count_products<<<(unsigned)((rows * 8 + 255) / 256), 256, 0, stream>>>(rows, run->ranges, run->products);
        CUDA_CHECK(cudaGetLastError());
    }
    CHECK(group(run, run->tables.count, false));
    return use_groups(run);
}

/* Lanes for a row of B of mean length, from 4 to 32. */
static int lane_bits_for(int64_t products, int64_t entries)
{
    int bits = 2;
    while (bits < 5 && (entries << bits) < products) bits++;
    return bits;
}

/* The rows that counting with tables gave up on. */
template <typename V, sp_aia WAY> static sp_status count_global(spgemm_run<V, WAY> *run, const count_job &job)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t bytes = rounded_cols(job.cols) / 8;
    device_array<char> scratch;
    int count = 0, blocks;
    CUDA_CHECK(cudaMemcpyAsync(&count, job.spill_count, sizeof count, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    if (count == 0) return SP_OK;
    CHECK(cuda_grid(context, count_global_rows<WAY>, GLOBAL_THREADS, 0, count, &blocks));
    CHECK(open_global(context, &scratch, bytes, &blocks));
    CHECK(scratch.fill(0, blocks * bytes));
    count_global_rows<WAY><<<blocks, GLOBAL_THREADS, 0, stream>>>(job, run->ranges, count, run->device_counts->next,
                                                              scratch.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* Largest rows first. What may not fit any table is tried with the largest. */
template <typename V, sp_aia WAY> static sp_status launch_counting(spgemm_run<V, WAY> *run, const count_job &job)
{
    sp_context *context = run->context;
    for (int c = run->usable; c > 0; c--)
        CHECK(launch_count(run, job, c, run->begin[c], run->begin[c == run->usable ? c + 2 : c + 1]));
    const int tiny = (int)run->begin[1];
    if (tiny == 0) return SP_OK;
    count_tiny<WAY><<<(tiny + TINY_ROWS - 1) / TINY_ROWS, TINY_THREADS, 0, cuda_state_of(context)->side[0]>>>(
        job, run->ranges, tiny);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* Joins the streams after a failure as well: memory is released in the order of the main stream. */
static sp_status join(sp_context *context, sp_status launched)
{
    if (launched == SP_OK) return cuda_join(context);
    cudaDeviceSynchronize();
    return launched;
}

/* Lengths, C's offsets, the groups of the numeric phase, C's arrays. */
template <typename V, sp_aia WAY> static sp_status symbolic(spgemm_run<V, WAY> *run, sp_csr *c)
{
    sp_context *context = run->context;
    const int64_t rows = run->a->rows, uncertain = run->counts.rows[run->usable + 1];
    device_array<int32_t> spilled;
    count_job job = {};
    job.rows = run->order;
    job.b_cols = run->b->col_indices;
    job.cols = run->b->cols;
    job.products = run->products;
    job.lengths = run->lengths;
    job.lane_bits = lane_bits_for((int64_t)run->counts.total, run->a->nnz);
    job.spill_count = &run->device_counts->spilled;
    if (uncertain > 0) CHECK(spilled.allocate(context, uncertain));
    job.spilled = spilled.data;
    CHECK(cuda_fork(context));
    CHECK(join(context, launch_counting(run, job)));
    if (uncertain > 0) CHECK(count_global(run, job));

    c->rows = rows;
    c->cols = run->b->cols;
    c->value_type = run->a->value_type;
    c->space = SP_DEVICE;
    CHECK(cuda_allocate(context, ((size_t)rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    CHECK(cuda_scan_counts(context, rows, run->lengths, c->row_offsets));
    CHECK(group(run, run->tables.sum, true));
    CHECK(use_groups(run));
    c->nnz = (int64_t)run->counts.total;
    CHECK(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    return cuda_allocate(context, (size_t)c->nnz * sizeof(V), &c->values);
}

/* Sums the rows of class c: those of the last one, which no table holds, on the main stream, with scratch. */
template <typename V, sp_aia WAY>
static sp_status launch_sum(spgemm_run<V, WAY> *run, sum_job<V, WAY> job, int c, device_array<char> *scratch)
{
    sp_context *context = run->context;
    const cuda_state *state = cuda_state_of(context);
    const bool wide = c > run->usable;
    const numeric_class<sum_job<V, WAY>> *kind = wide ? &run->tables.global : &run->tables.sum[c - 1];
    work_list work = {};
    int blocks;
    work.own = run->order + run->begin[c];
    work.own_count = (int)(run->begin[c + 1] - run->begin[c]);
    work.next = &run->device_counts[1].next[c];
    if (work.own_count == 0) return SP_OK;
    if (WAY == SP_AIA_ON) job.ranges.rows += run->begin[c];
    CHECK(cuda_full_grid(context, kind->kernel, kind->threads, kind->shared, &blocks));
    if (work.own_count < blocks) blocks = work.own_count;
    if (wide) {
        CHECK(open_global(context, scratch, global_bytes<sum_job<V, WAY>>(job.cols), &blocks));
        clear_global<sum_job<V, WAY>><<<blocks, 1024, 0, state->stream>>>(job.cols, scratch->data);
        CUDA_CHECK(cudaGetLastError());
    }
    kind->kernel<<<blocks, kind->threads, kind->shared, wide ? state->stream : state->side[c]>>>(
        job, work, scratch->data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template <typename V, sp_aia WAY>
static sp_status launch_summing(spgemm_run<V, WAY> *run, const sum_job<V, WAY> &job, device_array<char> *scratch)
{
    sp_context *context = run->context;
    for (int c = run->usable + 1; c > 0; c--) CHECK(launch_sum(run, job, c, scratch));
    const int tiny = (int)run->begin[1];
    if (tiny == 0) return SP_OK;
    sum_tiny<V, WAY><<<(tiny + TINY_ROWS - 1) / TINY_ROWS, TINY_THREADS, 0, cuda_state_of(context)->side[0]>>>(
        job, run->order, tiny);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template <typename V, sp_aia WAY> static sp_status numeric(spgemm_run<V, WAY> *run, sp_csr *c)
{
    device_array<char> scratch;
    sum_job<V, WAY> job = {};
    job.ranges = run->ranges;
    job.a_values = (const V *)run->a->values;
    job.b_values = (const V *)run->b->values;
    job.b_cols = run->b->col_indices;
    job.cols = run->b->cols;
    job.offsets = c->row_offsets;
    job.c_cols = c->col_indices;
    job.c_values = (V *)c->values;
    CHECK(cuda_fork(run->context));
    CHECK(join(run->context, launch_summing(run, job, &scratch)));
    return cuda_finish(run->context);
}

/* The numeric phase's groups that have rows. */
template <typename V, sp_aia WAY> static void name_groups(const spgemm_run<V, WAY> *run, sp_spgemm_info *info)
{
    info->groups = 0;
    for (int c = 0; c <= run->usable + 1; c++) {
        sp_spgemm_group *named = &info->group[info->groups];
        named->count = run->begin[c + 1] - run->begin[c];
        if (named->count == 0) continue;
        if (c == 0) snprintf(named->name, sizeof named->name, "PWPR %d", (int)TINY_LANES);
        else if (c > run->usable) snprintf(named->name, sizeof named->name, "TBPR %d, global", (int)GLOBAL_THREADS);
        else
            snprintf(named->name, sizeof named->name, "TBPR %d, %d slots", run->tables.sum[c - 1].threads,
                     run->tables.sum[c - 1].slots);
        info->groups++;
    }
}
static_assert(BLOCK_CLASSES + 2 <= (int)SP_SPGEMM_GROUPS && BLOCK_CLASSES + 2 <= (int)MAX_CLASSES, "few classes");

template <typename V, sp_aia WAY>
static sp_status product(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    spgemm_run<V, WAY> run = {};
    size_t before;
    double early, late;
    run.context = context;
    run.a = a;
    run.b = b;
    run.ranges.a_offsets = a->row_offsets;
    run.ranges.b_offsets = b->row_offsets;
    run.ranges.a_cols = a->col_indices;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(analyse(&run));
    info->products = (int64_t)run.counts.total;
    CHECK(run.clock.seconds(context, 0, &early));
    const int parts = run.clock.used;
    const double counted = wall_seconds();
    CHECK(symbolic(&run, c));
    CHECK(run.clock.seconds(context, parts, &late));
    const double known = wall_seconds();
    CHECK(numeric(&run, c));
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    name_groups(&run, info);
    CHECK(cuda_peak_beside(context, before, c, &info->peak_bytes));
    info->aia_seconds = early + late;
    info->analysis_seconds = counted - start - early;
    info->symbolic_seconds = known - counted - late;
    info->numeric_seconds = wall_seconds() - known;
    return SP_OK;
}

template <typename V>
static sp_status product_by(sp_context *context, const sp_csr *a, const sp_csr *b, sp_aia way, sp_csr *c,
                            sp_spgemm_info *info)
{
    if (way == SP_AIA_UNCACHED) return product<V, SP_AIA_UNCACHED>(context, a, b, c, info);
    if (way == SP_AIA_ON && cuda_aia_packs(a, b)) {
        const sp_status status = product<V, SP_AIA_ON>(context, a, b, c, info);
        if (status != SP_ERROR_DEVICE_MEMORY) return status;
        sp_csr_free(context, c); /* 8 bytes an entry of A were perhaps too many */
    }
    return product<V, SP_AIA_OFF>(context, a, b, c, info);
}

/* The stage is off unless asked for. It moves 52 bytes an entry of A to save three scattered looks of 36 bytes, all
 * but 12 of them from the L2 cache, beside products that take 8 + v bytes each, mean row length times as many. */
sp_status sp_cuda_spgemm_hash(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made = {};
    if (options->semiring != SP_PLUS_TIMES || options->mask)
        return sp_fail(context, SP_ERROR_UNSUPPORTED,
                       "the hash algorithm on CUDA forms plain products: plus-times without a mask");
    const sp_status status = a->value_type == SP_F32 ? product_by<float>(context, a, b, options->aia, &made, info)
                                                     : product_by<double>(context, a, b, options->aia, &made, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
