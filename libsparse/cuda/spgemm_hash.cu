/* C = A·B on a CUDA device, row-wise (Gustavson 1978) in two phases with hash tables, sorted; cancelled entries stay.
 *
 * Li et al., "Accelerating SpGEMM on GPUs with Processing Near HBMs", Algorithms 1 to 4: rows are grouped by their
 * products, columns of C are counted with tables of keys (symbolic), rows are grouped again by nnz(C), and summed
 * with tables of keys and sums (numeric). Tiny rows take four lanes each (PWPR), others a block (TBPR); what shared
 * memory cannot hold uses one bit or one f64 a column in global memory. Groups run on streams of their own, largest
 * rows first. Different from the paper: all lanes of a row work on the same row of B, so that sums have the CPU's
 * order and need no atomics (common.cuh); sums are f64 for f32 values too, rounded once.
 *
 * Bytes: products · (4 + 4 + v) from B's rows over the two phases, less what the L2 cache keeps; nnz(C) · (4 + v)
 * written three times (gathered, then sorted in place).
 */
#include "common.cuh"

/* ---- constants ----------------------------------------------------------------------------------------- */

enum { TINY_PRODUCTS = 32, TINY_LANES = 4, TINY_SLOTS = 64, TINY_THREADS = 128 };
enum { TINY_ROWS = TINY_THREADS / TINY_LANES, TINY_STRIDE = TINY_SLOTS + 1 }; /* the rows of a warp in other banks */
enum { WIDE_THREADS = 512, WIDE_DEPTH = 2, WIDE_BLOCKS = 2 };

/* ---- device -------------------------------------------------------------------------------------------- */

template <typename V> struct spgemm_job {
    matrix_view<V> a, b;
    int64_t cols;
    int32_t *lengths; /* made by the symbolic phase */
    const int64_t *offsets;
    int32_t *c_cols;
    V *c_values;
};

/* Four lanes a row: counts its columns, or with NUMERIC sums and writes them, sorted by counting smaller keys. */
template <typename V, bool NUMERIC>
__global__ void __launch_bounds__(TINY_THREADS) tiny_rows(spgemm_job<V> job, const int32_t *rows, int count)
{
    __shared__ int32_t all_keys[TINY_ROWS * TINY_STRIDE];
    __shared__ double all_sums[NUMERIC ? TINY_ROWS * TINY_STRIDE : 1];
    const int group = threadIdx.x / TINY_LANES, lane = threadIdx.x % TINY_LANES;
    const int index = blockIdx.x * TINY_ROWS + group;
    const unsigned lanes = 0xfu << (threadIdx.x % 32 & ~3);
    if (index >= count) return;
    const int row = rows[index];
    int32_t *keys = all_keys + group * TINY_STRIDE;
    double *sums = all_sums + (NUMERIC ? group * TINY_STRIDE : 0);
    for (int i = lane; i < TINY_SLOTS; i += TINY_LANES) keys[i] = EMPTY;
    __syncwarp(lanes);

    int claimed = 0;
    for (int64_t at = job.a.offsets[row]; at < job.a.offsets[row + 1]; at++) {
        const int32_t k = job.a.cols[at];
        const V weight = NUMERIC && job.a.values ? job.a.values[at] : V(1);
        for (int64_t q = job.b.offsets[k] + lane; q < job.b.offsets[k + 1]; q += TINY_LANES) {
            const int32_t col = job.b.cols[q];
            int slot = (int)((uint32_t)col * 0x9e3779b1u >> 26);
            int32_t key;
            while ((key = atomicCAS(keys + slot, EMPTY, col)) != EMPTY && key != col) slot = (slot + 1) % TINY_SLOTS;
            claimed += key == EMPTY;
            if (!NUMERIC) continue;
            const double product = product_of(weight, job.b.values ? job.b.values[q] : V(1), false);
            sums[slot] = key == EMPTY ? product : __dadd_rn(sums[slot], product);
        }
        __syncwarp(lanes);
    }
    if constexpr (NUMERIC) {
        for (int i = lane; i < TINY_SLOTS; i += TINY_LANES) {
            if (keys[i] == EMPTY) continue;
            int64_t to = job.offsets[row];
            for (int other = 0; other < TINY_SLOTS; other++) to += (uint32_t)keys[other] < (uint32_t)keys[i];
            job.c_cols[to] = keys[i];
            job.c_values[to] = (V)sums[i];
        }
    } else {
        for (int step = TINY_LANES / 2; step > 0; step /= 2) claimed += __shfl_xor_sync(lanes, claimed, step);
        if (lane == 0) job.lengths[row] = claimed;
    }
}

template <int THREADS, typename V> struct block_memory {
    walk_memory<THREADS, V> walk;
    uint64_t reduce[32];
    int row, fill, gathered;
};

/* Counts the columns of rows that fit a table; others go to the spill list. */
template <typename V, int THREADS, int SLOTS, int DEPTH>
__global__ void __launch_bounds__(THREADS) count_rows(spgemm_job<V> job, work_list work)
{
    extern __shared__ __align__(16) double table_memory[];
    __shared__ block_memory<THREADS, V> memory;
    column_table<SLOTS> table(table_memory, &memory.fill);
    for (int row; (row = take_row(work, &memory.row)) >= 0;) {
        table.template clear<THREADS>();
        const bool fits = walk_products<THREADS, DEPTH>(job.a, job.b, row, false, memory.walk, table);
        if (threadIdx.x != 0) continue;
        if (fits) job.lengths[row] = memory.fill;
        else work.spill[atomicAdd(work.spill_count, 1)] = row;
    }
}

/* Sums and writes rows whose columns are known to fit the table. */
template <typename V, int THREADS, int SLOTS, int DEPTH, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) sum_rows(spgemm_job<V> job, work_list work)
{
    extern __shared__ __align__(16) double table_memory[];
    __shared__ block_memory<THREADS, V> memory;
    sum_table<SLOTS> table(table_memory, &memory.fill);
    for (int row; (row = take_row(work, &memory.row)) >= 0;) {
        table.template clear<THREADS>();
        walk_products<THREADS, DEPTH>(job.a, job.b, row, false, memory.walk, table);
        const int32_t *keys = table.table.keys;
        int32_t *cols = job.c_cols + job.offsets[row];
        V *values = job.c_values + job.offsets[row];
        gather<THREADS>(SLOTS, &memory.gathered, [=](int i) { return keys[i] != EMPTY; }, [=](int i, int to) {
            cols[to] = keys[i];
            values[to] = (V)table.sums[i];
        });
        sort_row<THREADS>(cols, values, memory.fill, (uint32_t *)table.table.keys, (V *)table.sums);
    }
}

static __host__ __device__ int64_t rounded_cols(int64_t cols) { return (cols + 63) / 64 * 64; }

/* Rows that no table counts: a bit a column, all zero at launch, rounded_cols / 8 bytes a block. */
template <typename V>
__global__ void __launch_bounds__(WIDE_THREADS, WIDE_BLOCKS)
    count_wide_rows(spgemm_job<V> job, work_list work, char *scratch)
{
    __shared__ block_memory<WIDE_THREADS, V> memory;
    wide_columns columns = {(uint32_t *)(scratch + rounded_cols(job.cols) / 8 * blockIdx.x)};
    for (int row; (row = take_row(work, &memory.row)) >= 0;) {
        walk_products<WIDE_THREADS, WIDE_DEPTH>(job.a, job.b, row, false, memory.walk, columns);
        const int count = columns.drain<WIDE_THREADS>(job.cols);
        const int total = block_reduce<WIDE_THREADS>(count, add_op(), memory.reduce);
        if (threadIdx.x == 0) job.lengths[row] = total;
    }
}

/* Rows that no table sums: an f64 (all ones at launch) and a bit (zero) a column. */
static __host__ __device__ int64_t wide_bytes(int64_t cols)
{
    return rounded_cols(cols) * (int64_t)sizeof(double) + rounded_cols(cols) / 8;
}

template <typename V>
__global__ void __launch_bounds__(WIDE_THREADS, WIDE_BLOCKS)
    sum_wide_rows(spgemm_job<V> job, work_list work, char *scratch)
{
    __shared__ block_memory<WIDE_THREADS, V> memory;
    char *own = scratch + wide_bytes(job.cols) * blockIdx.x;
    wide_sums sums = {(unsigned long long *)own, (uint32_t *)(own + rounded_cols(job.cols) * 8)};
    for (int row; (row = take_row(work, &memory.row)) >= 0;) {
        walk_products<WIDE_THREADS, WIDE_DEPTH>(job.a, job.b, row, false, memory.walk, sums);
        int32_t *cols = job.c_cols + job.offsets[row];
        V *values = job.c_values + job.offsets[row];
        sums.drain<WIDE_THREADS>(job.cols, memory.reduce, [=](int place, int32_t col, double sum) {
            cols[place] = col;
            values[place] = (V)sum;
        });
    }
}

/* ---- device: grouping ---------------------------------------------------------------------------------- */

/* Class 0 holds tiny rows, class c rows of up to limit[c] columns; the last takes what is left. */
struct group_rules {
    int classes;
    int64_t limit[MAX_CLASSES];
};

/* Groups by nnz(C) where `lengths` is given, else by products. */
static __global__ void group_rows(int64_t rows, int64_t cols, const int64_t *products, const int32_t *lengths,
                                  group_rules rules, uint32_t *keys, uint32_t *class_rows, unsigned long long *total)
{
    __shared__ uint64_t reduce[32];
    __shared__ uint32_t histogram[MAX_CLASSES];
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long own = 0;
    if (threadIdx.x < MAX_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();
    if (row < rows) {
        own = (unsigned long long)products[row];
        const int64_t size = lengths ? lengths[row] : min(products[row], cols);
        int c = 0;
        if (products[row] > TINY_PRODUCTS)
            for (c = 1; c + 1 < rules.classes && size > rules.limit[c];) c++;
        keys[row] = (uint32_t)c << CLASS_SHIFT;
        atomicAdd(&histogram[c], 1u);
    }
    own = block_reduce<256>(own, add_op(), reduce);
    if (threadIdx.x == 0 && total) atomicAdd(total, own);
    if (threadIdx.x < MAX_CLASSES && histogram[threadIdx.x])
        atomicAdd(&class_rows[threadIdx.x], histogram[threadIdx.x]);
}

/* ---- host ---------------------------------------------------------------------------------------------- */

/* One row of the table of launches; class 0, the tiny rows, has its own kernel. */
template <typename V> struct block_class {
    void (*kernel)(spgemm_job<V>, work_list);
    int threads, limit;
    size_t shared;
};

template <typename V, int THREADS, int SLOTS, int DEPTH> static block_class<V> counting()
{
    return {count_rows<V, THREADS, SLOTS, DEPTH>, THREADS, key_table<SLOTS>::LIMIT, column_table<SLOTS>::BYTES};
}
template <typename V, int THREADS, int SLOTS, int DEPTH, int BLOCKS> static block_class<V> summing()
{
    return {sum_rows<V, THREADS, SLOTS, DEPTH, BLOCKS>, THREADS, key_table<SLOTS>::LIMIT, sum_table<SLOTS>::BYTES};
}

/* Shared memory a block: 4 bytes a slot to count, 12 to sum; the largest fill a Hopper multiprocessor, and devices
 * with less do without. */
enum { BLOCK_CLASSES = 4 };
template <typename V> struct launch_tables {
    block_class<V> count[BLOCK_CLASSES] = {counting<V, 32, 1024, 2>(), counting<V, 128, 8192, 2>(),
                                           counting<V, 512, 22528, 2>(), counting<V, 1024, 49152, 1>()};
    block_class<V> sum[BLOCK_CLASSES] = {summing<V, 32, 512, 2, 16>(), summing<V, 128, 2048, 2, 7>(),
                                         summing<V, 512, 9216, 2, 2>(), summing<V, 1024, 18432, 1, 1>()};
};

/* Everything that one call holds on the device. */
template <typename V> struct spgemm_run {
    sp_context *context;
    spgemm_job<V> job;
    launch_tables<V> tables;
    int64_t rows;
    device_array<int64_t> products;
    device_array<int32_t> lengths, spilled;
    device_array<uint32_t> keys, class_rows;
    device_array<int> counters; /* takers of the classes, of wide rows, then the spill count */
    device_array<unsigned long long> total;
    device_array<char> scratch;
};

/* Sorts rows into the classes of `table` by nnz(C) if it is known; *usable block classes fit this device. */
template <typename V>
static sp_status group(spgemm_run<V> *run, const block_class<V> *table, bool numeric, int *usable, row_order *order)
{
    sp_context *context = run->context;
    const size_t fixed = sizeof(block_memory<1024, V>) + 1024; /* static part, and what the driver takes of a block */
    group_rules rules = {};
    for (*usable = 0; *usable < BLOCK_CLASSES; (*usable)++) {
        if (table[*usable].shared + fixed > cuda_state_of(context)->shared_limit) break;
        rules.limit[*usable + 1] = table[*usable].limit;
    }
    /* Counting tries the largest table before it gives up on one; a known length needs no try. */
    rules.classes = numeric ? *usable + 2 : *usable + 1;
    TRY(run->class_rows.fill(0, MAX_CLASSES));
    TRY(run->counters.fill(0, MAX_CLASSES + 1));
    if (run->rows > 0) {
        group_rows<<<(unsigned)((run->rows + 255) / 256), 256, 0, cuda_state_of(context)->stream>>>(
            run->rows, run->job.cols, run->products.data, numeric ? run->lengths.data : nullptr, rules,
            run->keys.data, run->class_rows.data, numeric ? nullptr : run->total.data);
        CUDA_TRY(cudaGetLastError());
    }
    return cuda_order_rows(context, run->rows, run->keys.data, CLASS_SHIFT, run->class_rows.data, order);
}

template <typename V> static work_list work_of(spgemm_run<V> *run, const row_order *order, int c)
{
    work_list work = {};
    work.own = order->rows.data + order->begin[c];
    work.own_count = (int)(order->begin[c + 1] - order->begin[c]);
    work.next = run->counters.data + c;
    work.spill = run->spilled.data;
    work.spill_count = run->counters.data + MAX_CLASSES;
    return work;
}

/* The classes of one phase, largest rows first, each on its own stream. */
template <typename V, bool NUMERIC>
static sp_status launch_groups(spgemm_run<V> *run, const block_class<V> *table, int usable, const row_order *order)
{
    sp_context *context = run->context;
    cuda_state *state = cuda_state_of(context);
    for (int c = usable; c > 0; c--) {
        const work_list work = work_of(run, order, c);
        const block_class<V> *kind = &table[c - 1];
        int blocks;
        if (work.own_count == 0) continue;
        TRY(cuda_grid(context, kind->kernel, kind->threads, kind->shared, work.own_count, &blocks));
        kind->kernel<<<blocks, kind->threads, kind->shared, state->side[c]>>>(run->job, work);
        CUDA_TRY(cudaGetLastError());
    }
    const int tiny = (int)order->begin[1];
    if (tiny > 0) {
        tiny_rows<V, NUMERIC><<<(tiny + TINY_ROWS - 1) / TINY_ROWS, TINY_THREADS, 0, state->side[0]>>>(
            run->job, order->rows.data, tiny);
        CUDA_TRY(cudaGetLastError());
    }
    return SP_OK;
}

/* Joins the streams after a failure as well: memory is released in the order of the main stream. */
template <typename V, bool NUMERIC>
static sp_status run_groups(spgemm_run<V> *run, const block_class<V> *table, int usable, const row_order *order)
{
    TRY(cuda_fork(run->context));
    const sp_status launched = launch_groups<V, NUMERIC>(run, table, usable, order);
    if (launched != SP_OK) {
        cudaDeviceSynchronize();
        return launched;
    }
    return cuda_join(run->context);
}

/* Scratch for the wide rows: `bytes` a block, for as many of `blocks` blocks as memory allows. */
template <typename V> static sp_status open_wide(spgemm_run<V> *run, int64_t bytes, int *blocks)
{
    size_t available;
    TRY(cuda_available(run->context, &available));
    const int64_t affordable = (int64_t)available / 2 / bytes;
    if (affordable < *blocks) *blocks = (int)(affordable > 1 ? affordable : 1);
    return run->scratch.allocate(run->context, *blocks * bytes);
}

template <typename V> static sp_status count_wide(spgemm_run<V> *run)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t bytes = rounded_cols(run->job.cols) / 8;
    int count = 0, blocks;
    CUDA_TRY(cudaMemcpyAsync(&count, run->counters.data + MAX_CLASSES, sizeof count, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    if (count == 0) return SP_OK;
    TRY(cuda_grid(context, count_wide_rows<V>, WIDE_THREADS, 0, count, &blocks));
    TRY(open_wide(run, bytes, &blocks));
    TRY(run->scratch.fill(0, blocks * bytes));
    work_list work = {};
    work.own = run->spilled.data;
    work.own_count = count;
    work.next = run->counters.data + MAX_CLASSES - 1;
    count_wide_rows<V><<<blocks, WIDE_THREADS, 0, stream>>>(run->job, work, run->scratch.data);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

template <typename V> static sp_status sum_wide(spgemm_run<V> *run, const row_order *order, int c)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t bytes = wide_bytes(run->job.cols), mask = rounded_cols(run->job.cols) / 8;
    const work_list work = work_of(run, order, c);
    int blocks;
    if (work.own_count == 0) return SP_OK;
    TRY(cuda_grid(context, sum_wide_rows<V>, WIDE_THREADS, 0, work.own_count, &blocks));
    TRY(open_wide(run, bytes, &blocks));
    char *sums = run->scratch.data, *touched = sums + (bytes - mask);
    CUDA_TRY(cudaMemset2DAsync(sums, (size_t)bytes, 0xff, (size_t)(bytes - mask), (size_t)blocks, stream));
    CUDA_TRY(cudaMemset2DAsync(touched, (size_t)bytes, 0, (size_t)mask, (size_t)blocks, stream));
    sum_wide_rows<V><<<blocks, WIDE_THREADS, 0, stream>>>(run->job, work, run->scratch.data);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

/* lengths, then C's offsets and arrays. */
template <typename V> static sp_status symbolic(spgemm_run<V> *run, sp_value_type type, sp_csr *c)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const V *a_values = run->job.a.values, *b_values = run->job.b.values;
    device_array<int64_t> offsets;
    row_order order;
    int usable;
    int64_t nnz = 0;
    TRY(group(run, run->tables.count, false, &usable, &order));
    run->job.a.values = run->job.b.values = nullptr; /* counting reads no values */
    TRY((run_groups<V, false>(run, run->tables.count, usable, &order)));
    TRY(count_wide(run));
    run->job.a.values = a_values;
    run->job.b.values = b_values;

    TRY(offsets.allocate(context, run->rows + 1));
    TRY(cuda_scan_counts(context, run->rows, run->lengths.data, offsets.data));
    CUDA_TRY(cudaMemcpyAsync(&nnz, offsets.data + run->rows, sizeof nnz, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    run->scratch.free();
    TRY(sp_csr_create(context, run->rows, run->job.cols, nnz, type, SP_DEVICE, c));
    CUDA_TRY(cudaMemcpyAsync(c->row_offsets, offsets.data, ((size_t)run->rows + 1) * sizeof(int64_t),
                             cudaMemcpyDeviceToDevice, stream));
    return SP_OK;
}

template <typename V> static sp_status numeric(spgemm_run<V> *run, sp_csr *c)
{
    row_order order;
    int usable;
    run->job.offsets = c->row_offsets;
    run->job.c_cols = c->col_indices;
    run->job.c_values = (V *)c->values;
    TRY(group(run, run->tables.sum, true, &usable, &order));
    TRY((run_groups<V, true>(run, run->tables.sum, usable, &order)));
    TRY(sum_wide(run, &order, usable + 1));
    return cuda_finish(run->context);
}

template <typename V>
static sp_status product(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    const double start = sp_seconds();
    spgemm_run<V> run = {};
    unsigned long long products = 0;
    size_t before;
    run.context = context;
    run.rows = a->rows;
    TRY(cuda_watch_peak(context, &before));
    TRY(run.products.allocate(context, a->rows));
    TRY(run.lengths.allocate(context, a->rows + 1));
    TRY(run.spilled.allocate(context, a->rows));
    TRY(run.keys.allocate(context, a->rows));
    TRY(run.class_rows.allocate(context, MAX_CLASSES));
    TRY(run.counters.allocate(context, MAX_CLASSES + 1));
    TRY(run.total.allocate(context, 1));
    TRY(run.lengths.fill(0, a->rows + 1));
    TRY(run.total.fill(0, 1));
    run.job.a = view_of<V>(a);
    run.job.b = view_of<V>(b);
    run.job.cols = b->cols;
    run.job.lengths = run.lengths.data;
    TRY(cuda_row_products(context, a, b, run.products.data));
    TRY(cuda_finish(context));
    const double counted = sp_seconds();
    TRY(symbolic(&run, a->value_type, c));
    CUDA_TRY(cudaMemcpyAsync(&products, run.total.data, sizeof products, cudaMemcpyDeviceToHost,
                             cuda_state_of(context)->stream));
    TRY(cuda_finish(context));
    const double known = sp_seconds();
    TRY(numeric(&run, c));
    info->products = (int64_t)products;
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (a->rows + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->analysis_seconds = counted - start;
    info->symbolic_seconds = known - counted;
    info->numeric_seconds = sp_seconds() - known;
    return SP_OK;
}

sp_status sp_cuda_spgemm_hash(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made = {};
    if (options->semiring != SP_PLUS_TIMES || options->mask)
        return sp_fail(context, SP_ERROR_UNSUPPORTED,
                       "the hash algorithm on CUDA forms plain products: plus-times without a mask");
    const sp_status status = a->value_type == SP_F32 ? product<float>(context, a, b, &made, info)
                                                     : product<double>(context, a, b, &made, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
