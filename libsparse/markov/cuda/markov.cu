/* C = epilogue(A·B): the Markov product on a CUDA device; see sp_markov_epilogue in sparse.h for the epilogue.
 *
 * One phase, no symbolic pass: a block sums a row of A·B in its accumulator, prunes, inflates and normalises it there
 * and appends the rest to a buffer; a scan and a copy make the CSR matrix. Where memory lacks for both, all rows
 * are made twice (markov_mode in job.cuh).
 *
 * Files: job.cuh what a row becomes; epilogue.cuh pruning, inflation, writing; windows.cuh sums by windows of columns
 * and their index of B, window_rows.cuh the rows made so; hubs.cu rows of many entries in A; tables and walks are those
 * of products (spgemm/cuda/numeric.cuh); here classes, passes and the assembly of C.
 *
 * Classes, and where rows of each move on to:
 *   tables   512 to 18,432 slots in a block's shared memory. A row starts in the smallest that is sure to hold it, or
 *            in one that usually does, since rows of a clustered network have several products a column; what does
 *            not fit moves to the next class;
 *   windows  rows of many products, if the columns of B lie in clumps: a warp each, without keys, atomics or barriers.
 *            Rows of more than 512, 1,024 or 1,536 entries in A need the next larger list of cursors;
 *   last     any row: the columns that come first, which are those hit most, in a table in shared memory, the others in
 *            one f64 a column in global memory;
 *   hubs     rows of more than 4,096 entries in A: by the whole device (hubs.cu); by the last class where memory lacks.
 * Blocks stay resident and take rows from a counter, in ascending order within a class: where nodes are numbered by
 * community, rows in flight share rows of B in the second-level cache.
 *
 * The expansion has the CPU's bits (numeric.cuh says why). Sums of the epilogue (mass, the normalising sum, squares)
 * are taken in 62-bit fixed point scaled by the row's largest entry, which no order of additions can change; they are
 * exact, and so the CPU's, as long as a row's entries span less than about 2^24. Only Σ c² of a row made by windows,
 * from which chaos comes, is an f64 sum in an order of its own.
 *
 * Work: 8 bytes of B and a few shared-memory cycles a product; for the epilogue some five passes over the table
 * (one more for each digit of a selection: 8 bits a time on the bits of the f32) and a sort of kept entries, together
 * below 5 % of a row of 10^5 products.
 */
#include "markov/cuda/window_rows.cuh"
#include "markov/kept.h"

/* ---- constants ----------------------------------------------------------------------------------------- */

enum { DONE_CLASS = MAX_CLASSES - 1, MAX_PASSES = 16, COUNTERS = 256 };
/* Entries in A of a hub, at least one more. A block takes 24 ms for as many; sorting takes some 1 ms. */
#ifndef HUB_TERMS
#define HUB_TERMS 4096
#endif
enum { SEGMENT_ROWS = 1 << 17 }; /* rows a launch: tenths of a second of the heaviest; then interrupts are seen */
/* Products from which rows are made by windows. */
#ifndef WINDOW_PRODUCTS
#define WINDOW_PRODUCTS 1024
#endif
/* Products a segment from which a row that a table could hold is made by windows. */
#ifndef WINDOW_ROW_FILL
#define WINDOW_ROW_FILL 4
#endif

/* ---- device: survey and assembly ----------------------------------------------------------------------- */

/* The classes of a call in the order in which rows move on: tables, windows if there is an index, the last. Behind
 * these come the hubs. */
struct class_rules {
    int tables, last;
    int64_t limit[MAX_CLASSES];   /* tables: distinct columns that are sure to fit */
    int64_t hopeful[MAX_CLASSES]; /* products up to which a table is tried although they may be too many */
    int64_t terms[MAX_CLASSES];   /* windows: entries of A's row that fit */
};

/* Where a row starts: in a table that is sure to hold it or usually does; by windows if no table does, or if it has
 * the products and these come in long segments; or in the last class. */
static __device__ int first_class(const class_rules &rules, int64_t products, int64_t segments, int64_t cols,
                                  int64_t terms)
{
    int table = 0, windows = rules.tables;
    if (terms > HUB_TERMS) return rules.last + 1;
    while (table < rules.tables && min(products, cols) > rules.limit[table] && products > rules.hopeful[table])
        table++;
    while (windows < rules.last && terms > rules.terms[windows]) windows++;
    const bool suits = products >= WINDOW_PRODUCTS && products >= WINDOW_ROW_FILL * segments;
    return table < rules.tables && !(suits && windows < rules.last) ? table : windows;
}

struct survey_result {
    unsigned long long products, kept_bound, f32_rows;
    uint32_t rows[MAX_CLASSES];
};

/* Counts and classes of the rows that are not made yet. */
static __global__ void survey_rows(markov_job job, class_rules rules, int64_t most_kept, uint8_t *classes,
                                   int32_t *run_counts, survey_result *result)
{
    __shared__ uint64_t reduce[32];
    __shared__ uint32_t histogram[MAX_CLASSES];
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < MAX_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    unsigned long long products = 0, bound = 0, f32_rows = 0;
    if (row < job.rows) {
        int start = DONE_CLASS;
        if (job.places[row] < 0) {
            const int64_t own = job.products[row];
            start = first_class(rules, own, job.segments ? job.segments[row] : own, job.cols,
                                job.ranges.a_offsets[row + 1] - job.ranges.a_offsets[row]);
            products = (unsigned long long)own;
            bound = (unsigned long long)max((long long)min(min(own, job.cols), most_kept), 1ll);
            f32_rows = job.in_f32((int)row);
        }
        classes[row] = (uint8_t)start;
        atomicAdd(&histogram[start], 1u);
    }
    products = block_reduce<ORDER_THREADS>(products, add_op(), reduce);
    bound = block_reduce<ORDER_THREADS>(bound, add_op(), reduce);
    f32_rows = block_reduce<ORDER_THREADS>(f32_rows, add_op(), reduce);
    if (threadIdx.x == 0) {
        atomicAdd(&result->products, products);
        atomicAdd(&result->kept_bound, bound);
        atomicAdd(&result->f32_rows, f32_rows);
    }
    if (threadIdx.x >= MAX_CLASSES) return;
    run_counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = (int32_t)histogram[threadIdx.x];
    if (histogram[threadIdx.x]) atomicAdd(&result->rows[threadIdx.x], histogram[threadIdx.x]);
}

struct pass_buffers {
    const int32_t *cols[MAX_PASSES];
    const float *values[MAX_PASSES];
};

/* Copies every row from the buffer of its pass to its place in C; a warp a row. */
static __global__ void assemble(int64_t rows, const int64_t *places, const int64_t *offsets, pass_buffers from,
                                int32_t *cols, float *values)
{
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const int pass = (int)(places[row] >> PLACE_BITS);
    const int64_t source = places[row] & (((int64_t)1 << PLACE_BITS) - 1), to = offsets[row];
    const int64_t length = offsets[row + 1] - to;
    for (int64_t i = threadIdx.x % 32; i < length; i += 32) {
        cols[to + i] = from.cols[pass][source + i];
        values[to + i] = from.values[pass][source + i];
    }
}

/* ---- host ---------------------------------------------------------------------------------------------- */

/* Slots as many as let some blocks share the 228 KB of a Hopper multiprocessor. `hopeful`: products up to which a row
 * is tried that may not fit: rows of a clustered network have several products a column, the more the longer. */
static const struct markov_table {
    numeric_class<markov_job> kind;
    int64_t hopeful;
} TABLES[] = {
    {table_class<markov_job, 32, 512, 4, 8>(), 0},         {table_class<markov_job, 128, 2048, 4, 8>(), 5000},
    {table_class<markov_job, 256, 4096, 4, 4>(), 20000},   {table_class<markov_job, 512, 9216, 3, 2>(), INT64_MAX},
    {table_class<markov_job, 1024, 18432, 2, 1>(), 0},
};
/* Where global memory allows the last class to fill the device, it follows the first three tables at once. */
enum { TABLE_COUNT = sizeof TABLES / sizeof *TABLES, SMALL_TABLES = 3 };

/* Windows: 6 bytes a term beside 6 KB for a warp, hence 24, 19 and 15 warps a multiprocessor by shared memory. Rows
 * that mcl's defaults have pruned keep 1400 entries at most, but for ties. */
template <int TERMS> static numeric_class<markov_job> window_class()
{
    return {markov_window_rows<TERMS>, 32, 0, TERMS, window_memory::bytes(TERMS)};
}
static const numeric_class<markov_job> WINDOWS[] = {window_class<512>(), window_class<1024>(), window_class<1536>()};
enum { WINDOW_CLASSES = sizeof WINDOWS / sizeof *WINDOWS };
static_assert(TABLE_COUNT + WINDOW_CLASSES + 2 <= (int)DONE_CLASS, "tables, windows, the last class and hubs");

/* Any row; for devices with much shared memory and with little (100 KB a multiprocessor). The table is kept below
 * 3/5: to find that a column is not there takes 3.6 looks then. */
static const numeric_class<markov_job> LAST_CLASSES[2] = {global_class<markov_job, 9216, 5500, 3>(),
                                                          global_class<markov_job, 3840, 1536, 3>()};

/* Everything that one call holds on the device. */
struct markov_run {
    sp_context *context;
    const sp_csr *a, *b;
    markov_job job;
    class_rules rules;
    const numeric_class<markov_job> *classes[MAX_CLASSES];
    int64_t most_kept;
    device_array<int64_t> products, segments, places;
    device_array<int32_t> lengths, spilled[2], pass_cols[MAX_PASSES];
    device_array<float> pass_values[MAX_PASSES];
    device_array<uint8_t> row_classes;
    device_array<int32_t> run_counts;    /* for cuda_order_rows */
    device_array<int32_t> order;         /* of the rows, class by class; */
    int64_t begin[MAX_CLASSES + 1];      /* where each class starts in it */
    device_array<sp_markov_row> stats;
    device_array<survey_result> survey;
    device_array<unsigned long long> totals; /* expanded, used */
    device_array<int> counters;              /* COUNTERS takers, then a spill count a class */
    int counters_used;
    window_arrays windows;
    device_array<char> scratch, window_scratch; /* of the last class and of windows, for this many blocks: */
    int scratch_blocks, window_blocks;
};

/* Makes the index that windows need, if B suits them and the memory has room for the lists of twice as many warps as
 * there are multiprocessors: a sixteenth of it where that serves all warps that the device holds, an eighth where not
 * even the shortest lists do. */
static sp_status prepare_windows(markov_run *run, const sp_csr *a, const sp_csr *b)
{
    sp_context *context = run->context;
    size_t available;
    int full;
    for (int w = 0; w < WINDOW_CLASSES; w++)
        if (WINDOWS[w].shared + sizeof(markov_memory) + 1024 > cuda_state_of(context)->shared_limit) return SP_OK;
    CHECK(cuda_available(context, &available));
    CHECK(cuda_full_grid(context, WINDOWS[0].kernel, 32, WINDOWS[0].shared, &full));
    const int64_t share = (int64_t)(available / 16);
    int64_t list = share / full / (int64_t)(sizeof(int32_t) + sizeof(float)) - WINDOW_ABOVE;
    if (list < WINDOW_LEAST_LIST) list = WINDOW_LEAST_LIST;
    if (list > b->cols) list = b->cols;
    const int64_t blocks = 2 * share / window_bytes(list);
    if (blocks < 2 * cuda_state_of(context)->processors) return SP_OK;
    CHECK(index_windows(context, b, &run->windows, &run->job.index));
    if (!run->job.index.segments) return SP_OK;
    sp_csr segments = *b; /* what is counted is their number and an end mark a term */
    segments.row_offsets = run->windows.first.data;
    CHECK(run->segments.allocate(context, a->rows));
    CHECK(cuda_row_products(context, a, &segments, run->segments.data));
    run->job.segments = run->segments.data;
    run->window_blocks = (int)(blocks < full ? blocks : full);
    run->job.list_length = (int)list;
    return SP_OK;
}

static sp_status add_windows(markov_run *run)
{
    sp_context *context = run->context;
    class_rules *rules = &run->rules;
    for (int w = 0; w < WINDOW_CLASSES; w++) {
        CUDA_CHECK(cudaFuncSetAttribute(WINDOWS[w].kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared));
        rules->terms[rules->last] = WINDOWS[w].limit;
        run->classes[rules->last++] = &WINDOWS[w];
    }
    return SP_OK;
}

/* The classes that fit this device, and how many blocks of the last one its memory can serve: a quarter of the free
 * memory, and half where no windows share the work and C is sure to be small. */
static sp_status set_rules(markov_run *run, const sp_csr *a, const sp_csr *b)
{
    sp_context *context = run->context;
    const size_t fixed = sizeof(markov_memory) + sizeof(walk_memory<1024, float>) + 1024; /* the driver takes 1 KB */
    class_rules *rules = &run->rules;
    size_t available;
    int full;
    CHECK(prepare_windows(run, a, b));
    CHECK(cuda_available(context, &available));
    const size_t shared_limit = cuda_state_of(context)->shared_limit - fixed;
    const numeric_class<markov_job> *last = &LAST_CLASSES[LAST_CLASSES[0].shared > shared_limit];
    CHECK(cuda_full_grid(context, last->kernel, last->threads, last->shared, &full));
    const int64_t most = run->most_kept < b->cols ? run->most_kept : b->cols;
    const bool alone = !run->job.index.segments && most <= (int64_t)available / 64 / (a->rows + 1);
    const int64_t affordable = (int64_t)available / (alone ? 2 : 4) / global_bytes<markov_job>(b->cols);
    run->scratch_blocks = affordable >= full ? full : affordable > 1 ? (int)affordable : 1;
    const int wanted = affordable >= full ? SMALL_TABLES : TABLE_COUNT;
    for (rules->tables = 0; rules->tables < wanted; rules->tables++) {
        const markov_table *table = &TABLES[rules->tables];
        if (table->kind.shared > shared_limit) break;
        rules->limit[rules->tables] = table->kind.limit;
        rules->hopeful[rules->tables] = table->hopeful;
        run->classes[rules->tables] = &table->kind;
    }
    rules->last = rules->tables;
    if (run->job.index.segments) CHECK(add_windows(run));
    run->classes[rules->last] = last;
    return SP_OK;
}

static sp_status prepare(markov_run *run, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue)
{
    sp_context *context = run->context;
    markov_job *job = &run->job;
    const int64_t rows = a->rows, factor = epilogue->dense_factor;
    run->most_kept = most_kept(epilogue);
    run->a = a;
    run->b = b;
    CHECK(set_rules(run, a, b));
    CHECK(run->products.allocate(context, rows));
    CHECK(run->places.allocate(context, rows));
    CHECK(run->lengths.allocate(context, rows + 1));
    CHECK(run->spilled[0].allocate(context, rows));
    CHECK(run->spilled[1].allocate(context, rows));
    CHECK(run->row_classes.allocate(context, rows));
    CHECK(run->run_counts.allocate(context, MAX_CLASSES * order_runs(rows)));
    CHECK(run->order.allocate(context, rows));
    CHECK(run->stats.allocate(context, rows));
    CHECK(run->survey.allocate(context, 1));
    CHECK(run->totals.allocate(context, 2));
    CHECK(run->counters.allocate(context, COUNTERS + MAX_CLASSES));
    CHECK(run->places.fill(0xff, rows));
    CHECK(run->lengths.fill(0, rows + 1));
    CHECK(run->totals.fill(0, 2));
    CHECK(cuda_row_products(context, a, b, run->products.data));

    float cutoff = (float)epilogue->cutoff;
    if ((double)cutoff < epilogue->cutoff) cutoff = nextafterf(cutoff, INFINITY);
    job->ranges.a_offsets = a->row_offsets;
    job->ranges.b_offsets = b->row_offsets;
    job->ranges.a_cols = a->col_indices;
    job->a_values = (const float *)a->values;
    job->b_values = (const float *)b->values;
    job->b_cols = b->col_indices;
    job->rows = rows;
    job->cols = b->cols;
    job->products = run->products.data;
    job->diagonal = epilogue->diagonal;
    job->f32_from = factor > 0 ? (b->cols + factor - 1) / factor : INT64_MAX;
    job->cutoff = cutoff;
    job->select = (int)(epilogue->select < INT32_MAX ? epilogue->select : INT32_MAX);
    job->recover = (int)(epilogue->recover < INT32_MAX ? epilogue->recover : INT32_MAX);
    job->recover_mass = epilogue->recover_mass;
    job->inflation = epilogue->inflation;
    job->places = run->places.data;
    job->lengths = run->lengths.data;
    job->stats = run->stats.data;
    job->expanded = run->totals.data;
    job->used = run->totals.data + 1;
    return SP_OK;
}

/* Counts, classes and order of the rows that are still to be made. */
static sp_status survey(markov_run *run, survey_result *result)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = run->job.rows;
    CHECK(run->survey.fill(0, 1));
    if (rows > 0) {
        survey_rows<<<(unsigned)order_runs(rows), ORDER_THREADS, 0, stream>>>(
            run->job, run->rules, run->most_kept, run->row_classes.data, run->run_counts.data, run->survey.data);
        CUDA_CHECK(cudaGetLastError());
    }
    CUDA_CHECK(cudaMemcpyAsync(result, run->survey.data, sizeof *result, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_order_rows(context, rows, run->row_classes.data, run->run_counts.data, run->order.data));
    CHECK(cuda_finish(context));
    for (int c = 0; c < MAX_CLASSES; c++) run->begin[c + 1] = run->begin[c] + result->rows[c];
    return SP_OK;
}

/* The buffer for one pass: enough for all rows that are left, or what memory allows beside C. */
static sp_status open_buffer(markov_run *run, int pass, const survey_result *result)
{
    sp_context *context = run->context;
    const size_t entry = sizeof(int32_t) + sizeof(float);
    size_t available;
    CHECK(cuda_available(context, &available));
    const size_t affordable = available / 8 * 3 / entry;
    const size_t capacity = result->kept_bound < affordable ? (size_t)result->kept_bound : affordable;
    CHECK(run->pass_cols[pass].allocate(context, (int64_t)capacity));
    CHECK(run->pass_values[pass].allocate(context, (int64_t)capacity));
    run->job.out_cols = run->pass_cols[pass].data;
    run->job.out_values = run->pass_values[pass].data;
    run->job.capacity = capacity;
    return SP_OK;
}

static sp_status open_pass(markov_run *run, int pass, const survey_result *result)
{
    sp_context *context = run->context;
    if (run->job.mode == STAGE) CHECK(open_buffer(run, pass, result));
    run->job.pass = pass;
    CUDA_CHECK(cudaMemsetAsync(run->job.used, 0, sizeof *run->job.used, cuda_state_of(context)->stream));
    CHECK(run->counters.fill(0, COUNTERS + MAX_CLASSES));
    run->counters_used = 0;
    return SP_OK;
}

/* The rows of class c, up to place `end` of the order, and then up to extra_bound that the class before gave up on. */
static sp_status run_class(markov_run *run, int c, int64_t end, int64_t extra_bound)
{
    sp_context *context = run->context;
    const bool is_last = c == run->rules.last, by_windows = !is_last && c >= run->rules.tables;
    const numeric_class<markov_job> *kind = run->classes[c];
    int64_t first = run->begin[c], segment = run->job.rows / 16;
    if (segment < SEGMENT_ROWS) segment = SEGMENT_ROWS;
    do {
        const int64_t last = end - first < segment ? end : first + segment;
        const int64_t extra = last == end ? extra_bound : 0;
        work_list work;
        work.own = run->order.data + first;
        work.own_count = (int)(last - first);
        work.extra = extra > 0 ? run->spilled[(c + 1) % 2].data : nullptr;
        work.extra_count = run->counters.data + COUNTERS + (c > 0 ? c - 1 : 0);
        work.next = run->counters.data + run->counters_used++;
        work.spill = run->spilled[c % 2].data;
        work.spill_count = run->counters.data + COUNTERS + c;
        int blocks;
        CHECK(cuda_full_grid(context, kind->kernel, kind->threads, kind->shared, &blocks));
        if (work.own_count + extra < blocks) blocks = (int)(work.own_count + extra);
        if (is_last && blocks > run->scratch_blocks) blocks = run->scratch_blocks;
        if (by_windows && blocks > run->window_blocks) blocks = run->window_blocks;
        kind->kernel<<<blocks, kind->threads, kind->shared, cuda_state_of(context)->stream>>>(
            run->job, work, by_windows ? run->window_scratch.data : run->scratch.data);
        CUDA_CHECK(cudaGetLastError());
        if (context->interrupt || context->halt) CHECK(cuda_finish(context));
        first = last;
    } while (first < end);
    return SP_OK;
}

/* The last class: its own rows up to place `end` of the order, and those that the tables gave up on. Its scratch stays
 * for later passes. */
static sp_status run_last(markov_run *run, int64_t end, int64_t may_spill)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int last = run->rules.last;
    const int64_t own = end - run->begin[last];
    if (may_spill > 0) {
        const int *spilled = run->counters.data + COUNTERS + last - 1;
        int count = 0;
        CUDA_CHECK(cudaMemcpyAsync(&count, spilled, sizeof count, cudaMemcpyDeviceToHost, stream));
        CHECK(cuda_finish(context));
        may_spill = count;
    }
    if (own + may_spill == 0) return SP_OK;
    if (!run->scratch.data) {
        CHECK(run->scratch.allocate(context, run->scratch_blocks * global_bytes<markov_job>(run->job.cols)));
        clear_global<markov_job><<<run->scratch_blocks, 1024, 0, stream>>>(run->job.cols, run->scratch.data);
        CUDA_CHECK(cudaGetLastError());
    }
    return run_class(run, last, end, may_spill);
}

/* One pass over the rows that are left, class by class. */
static sp_status run_pass(markov_run *run)
{
    const class_rules *rules = &run->rules;
    int64_t may_spill = 0;
    for (int c = 0; c < rules->last; c++) {
        const int64_t own = run->begin[c + 1] - run->begin[c];
        if (c >= rules->tables && own + may_spill > 0 && !run->window_scratch.data)
            CHECK(run->window_scratch.allocate(run->context,
                                               run->window_blocks * window_bytes(run->job.list_length)));
        if (own + may_spill > 0) CHECK(run_class(run, c, run->begin[c + 1], may_spill));
        if (rules->hopeful[c] > 0 || c >= rules->tables) may_spill += own;
    }
    const int hubs = rules->last + 1;
    const int64_t count = run->begin[hubs + 1] - run->begin[hubs];
    bool made = false;
    if (count > 0)
        CHECK(cuda_markov_hubs(run->context, run->job, run->a, run->b, run->order.data + run->begin[hubs], count,
                               &made));
    return run_last(run, run->begin[made ? hubs : hubs + 1], may_spill);
}

static sp_status make_rows(markov_run *run, sp_spgemm_info *info)
{
    sp_context *context = run->context;
    int64_t left = run->job.rows;
    for (int pass = 0; left > 0; pass++) {
        survey_result result;
        CHECK(survey(run, &result));
        if (pass == 0) {
            info->products = (int64_t)result.products;
            info->dense_rows = (int64_t)result.f32_rows;
        }
        const int64_t still = run->begin[DONE_CLASS];
        if (still == 0) break;
        if (pass == MAX_PASSES || (pass > 0 && still == left))
            return sp_fail(context, SP_ERROR_DEVICE_MEMORY,
                           "%s: %lld of %lld rows of the product do not fit the memory left", context->device_name,
                           (long long)still, (long long)run->job.rows);
        left = still;
        CHECK(open_pass(run, pass, &result));
        CHECK(run_pass(run));
        info->batches++;
    }
    return SP_OK;
}

/* C with its offsets; nothing in its rows yet. */
static sp_status create_product(markov_run *run, sp_csr *c)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = run->job.rows;
    device_array<int64_t> offsets;
    int64_t nnz = 0;
    CHECK(offsets.allocate(context, rows + 1));
    CHECK(cuda_scan_counts(context, rows, run->lengths.data, offsets.data));
    CUDA_CHECK(cudaMemcpyAsync(&nnz, offsets.data + rows, sizeof nnz, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    CHECK(sp_csr_create(context, rows, run->job.cols, nnz, SP_F32, SP_DEVICE, c));
    CUDA_CHECK(cudaMemcpyAsync(c->row_offsets, offsets.data, ((size_t)rows + 1) * sizeof(int64_t),
                               cudaMemcpyDeviceToDevice, stream));
    return SP_OK;
}

static sp_status assemble_rows(markov_run *run, sp_csr *c)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = run->job.rows;
    if (rows == 0) return SP_OK;
    pass_buffers from;
    for (int p = 0; p < MAX_PASSES; p++) {
        from.cols[p] = run->pass_cols[p].data;
        from.values[p] = run->pass_values[p].data;
    }
    assemble<<<(unsigned)((rows * 32 + 255) / 256), 256, 0, stream>>>(rows, run->places.data, c->row_offsets, from,
                                                                     c->col_indices, (float *)c->values);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* What the rows told. Waits for the stream. */
static sp_status report(markov_run *run, sp_markov_row *rows, sp_spgemm_info *info)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    unsigned long long expanded = 0;
    if (rows && run->job.rows > 0) {
        const size_t bytes = (size_t)run->job.rows * sizeof *rows;
        CUDA_CHECK(cudaMemcpyAsync(rows, run->stats.data, bytes, cudaMemcpyDeviceToHost, stream));
    }
    CUDA_CHECK(cudaMemcpyAsync(&expanded, run->totals.data, sizeof expanded, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    info->product_nnz = (int64_t)expanded;
    return SP_OK;
}

static sp_status staged_product(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                sp_spgemm_info *info)
{
    const double start = wall_seconds();
    markov_run run = {};
    run.context = context;
    run.job.mode = STAGE;
    CHECK(prepare(&run, a, b, epilogue));
    CHECK(cuda_finish(context));
    info->analysis_seconds = wall_seconds() - start;
    CHECK(make_rows(&run, info));
    CHECK(create_product(&run, c));
    CHECK(assemble_rows(&run, c));
    return report(&run, rows, info);
}

/* Makes C's offsets. What it took of the memory is free again when the rows are made for C. */
static sp_status count_rows(sp_context *context, const sp_csr *a, const sp_csr *b,
                            const sp_markov_epilogue *epilogue, sp_csr *c, sp_spgemm_info *info)
{
    markov_run run = {};
    run.context = context;
    run.job.mode = COUNT;
    CHECK(prepare(&run, a, b, epilogue));
    CHECK(make_rows(&run, info));
    run.scratch.free();
    run.window_scratch.free();
    run.windows.segments.free();
    run.windows.cols.free();
    return create_product(&run, c);
}

static sp_status product_in_place(sp_context *context, const sp_csr *a, const sp_csr *b,
                                  const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                  sp_spgemm_info *info)
{
    markov_run run = {};
    CHECK(count_rows(context, a, b, epilogue, c, info));
    run.context = context;
    run.job.mode = WRITE;
    run.job.out_cols = c->col_indices;
    run.job.out_values = (float *)c->values;
    run.job.out_offsets = c->row_offsets;
    run.job.capacity = (unsigned long long)c->nnz;
    CHECK(prepare(&run, a, b, epilogue));
    CHECK(make_rows(&run, info));
    return report(&run, rows, info);
}

static sp_status markov_product(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                sp_spgemm_info *info)
{
    const double start = wall_seconds();
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    const sp_status status = staged_product(context, a, b, epilogue, c, rows, info);
    if (status != SP_OK) {
        if (status != SP_ERROR_DEVICE_MEMORY) return status;
        sp_csr_free(context, c);
        context->error[0] = 0;
        info->batches = 0;
        CHECK(product_in_place(context, a, b, epilogue, c, rows, info));
    }
    info->nnz = c->nnz;
    CHECK(cuda_peak_beside(context, before, c, &info->peak_bytes));
    info->numeric_seconds = wall_seconds() - start - info->analysis_seconds;
    return SP_OK;
}

sp_status sp_cuda_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                sp_spgemm_info *info)
{
    sp_csr made = {};
    const sp_status status = markov_product(context, a, b, epilogue, &made, rows, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
