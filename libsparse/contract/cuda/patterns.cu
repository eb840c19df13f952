/* Products of patterns as contractions (contract.cu), which list rows of G and rename its columns.
 *
 * A·B where B is a pattern with one entry a row at most renames A's columns: every row of G is a row of C. Only rows
 * of B of one entry make a hub's row of C as dear as its parts times its length in spgemm/cuda/warp.cu. A·B where A is
 * a pattern adds up rows of B, whose columns stay: rows of C are made of the rows that A lists instead of those of a
 * label, in one pass where spgemm/cuda/warp.cu needs two. S·G·Sᵀ for a pattern S with one entry a column does both at
 * once: nothing is sorted or stored between the products. */
#include "contract/cuda/run.cuh"

/* Every row of G is a row of C. */
template <typename V> static __global__ void take_rows(contract_args<V> job)
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

/* Combines the rows of a product, whose run is open and knows the entries of each; not `done` where B's rows turn out
 * to have more than one. */
template <typename V>
static sp_status finish_product(contract_run<V> *run, double start, size_t before, sp_csr *c, sp_spgemm_info *info,
                                bool *done)
{
    sp_context *context = run->context;
    const int64_t rows = run->job.groups;
    contract_totals totals;
    CHECK(cuda_allocate(context, ((size_t)rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    CHECK(list_classes(run));
    CHECK(read_totals(run, &totals));
    *done = !totals.nameless;
    if (!*done) {
        cuda_release(context, c->row_offsets);
        c->row_offsets = NULL;
        return cuda_finish(context);
    }
    CHECK(combine_rows(run, &totals, c));
    CHECK(write_result(run, c, &totals));
    info->products = (int64_t)totals.entries;
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    info->groups = name_groups(&totals, info->group);
    CHECK(cuda_peak(context, before, &info->peak_bytes));
    keep_counts(run, &info->peak_bytes);
    info->peak_bytes -= (rows + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->analysis_seconds = run->grouped - start;
    info->numeric_seconds = wall_seconds() - run->grouped;
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
    const double start = wall_seconds();
    const sp_contract_options sums = {};
    device_array<int32_t> names;
    contract_run<V> run = {};
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(names.allocate(context, b->rows));
    CHECK(open_run(context, a, names.data, a->rows, a->nnz, a->rows, c->cols, false, &sums, &run));
    run.job.whole = true;
    read_names<<<blocks_of(b->rows, 256), 256, 0, stream_of(context)>>>(b->rows, b->row_offsets, b->col_indices,
                                                                        names.data, run.job.totals);
    CUDA_CHECK(cudaGetLastError());
    take_rows<<<blocks_of(a->rows + 1, 256), 256, 0, stream_of(context)>>>(run.job);
    CUDA_CHECK(cudaGetLastError());
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
static __global__ void list_entries(contract_args<V> job, const int32_t *a_cols, const int64_t *places,
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
static __global__ void bound_sums(contract_args<V> job, const int64_t *a_offsets, const int64_t *places)
{
    const int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= job.groups) return;
    const bool named = !job.totals->nameless;
    const int64_t first = named ? places[a_offsets[p]] : 0, end = named ? places[a_offsets[p + 1]] : 0;
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
    CHECK(arrays->add(context, 1, &lists->products));
    CHECK(arrays->add(context, a->nnz, &lists->kept));
    const size_t zeros = arrays->bytes;
    CHECK(arrays->add(context, a->nnz, &lists->lengths));
    CHECK(arrays->add(context, a->nnz, &lists->used));
    CHECK(arrays->add(context, a->nnz + 1, &lists->places));
    CHECK(arrays->allocate(context));
    CUDA_CHECK(cudaMemsetAsync(arrays->memory.data, 0, zeros, stream));
    count_products<<<blocks < most ? blocks : most, 256, 0, stream>>>(a->nnz, a->col_indices, b->row_offsets,
                                                                      lists->lengths, lists->used, lists->products);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* Lists the rows of B that A's entries are, and those of each row of C. */
template <typename V>
static sp_status list_sums(contract_run<V> *run, const sp_csr *a, entry_lists *lists)
{
    sp_context *context = run->context;
    cudaStream_t stream = stream_of(context);
    run->unkeyed = true;
    CHECK(cuda_scan_counts(context, a->nnz, lists->used, lists->places));
    list_entries<<<blocks_of(a->nnz, 256), 256, 0, stream>>>(run->job, a->col_indices, lists->places, lists->lengths,
                                                             lists->kept);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, a->nnz, lists->kept, run->job.starts));
    bound_sums<<<blocks_of(a->rows, 256), 256, 0, stream>>>(run->job, a->row_offsets, lists->places);
    CUDA_CHECK(cudaGetLastError());
    lists->arrays.memory.free();
    return SP_OK;
}

/* Sums of rows of B, where A is a pattern; not `done` where the stage, 4 + v bytes a product, would take more than
 * twice what B does. */
template <typename V>
static sp_status add_rows(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info,
                          bool *done)
{
    const double start = wall_seconds();
    const sp_contract_options sums = {};
    entry_lists lists = {};
    contract_run<V> run = {};
    unsigned long long products;
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(measure_entries(context, a, b, &lists));
    CUDA_CHECK(cudaMemcpyAsync(&products, lists.products, sizeof products, cudaMemcpyDeviceToHost, stream_of(context)));
    CHECK(cuda_finish(context));
    if (products > 2 * (unsigned long long)b->nnz) return SP_OK;
    CHECK(open_run(context, b, (const int32_t *)NULL, a->nnz, (int64_t)products, a->rows, b->cols, false, &sums, &run));
    CHECK(list_sums(&run, a, &lists));
    return finish_product(&run, start, before, c, info, done);
}

/* The row of S that has column j, its only one: what a column of G is called in G·Sᵀ. Whether another has it, too.
 * This many lanes a row, the block for one of more than 16 entries a lane. */
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
    const double start = wall_seconds();
    const sp_contract_options sums = {};
    entry_lists lists = {};
    contract_run<V> run = {};
    device_array<int32_t> names;
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(names.allocate(context, s->cols));
    CHECK(names.fill(0xff, s->cols));
    CHECK(measure_entries(context, s, g, &lists));
    CHECK(open_run(context, g, names.data, s->nnz, g->nnz, s->rows, s->rows, false, &sums, &run));
    int lanes = 1;
    while (lanes < 32 && lanes * 4 * s->rows < s->nnz) lanes *= 2;
    name_columns<<<blocks_of(s->rows * lanes, 256), 256, 0, stream_of(context)>>>(
        s->rows, lanes, s->row_offsets, s->col_indices, names.data, run.job.totals);
    CUDA_CHECK(cudaGetLastError());
    CHECK(list_sums(&run, s, &lists));
    return finish_product(&run, start, before, c, info, done);
}

template <typename V>
static sp_status multiply_patterns(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                                   sp_spgemm_info *info, bool *done)
{
    if (!b->values && b->nnz <= b->rows) CHECK(rename_columns<V>(context, a, b, c, info, done));
    const bool adds = !a->values && a->nnz <= 2 * b->rows && a->nnz <= INT32_MAX && b->cols <= MOST_COLUMNS;
    return *done || !adds ? SP_OK : add_rows<V>(context, a, b, c, info, done);
}

/* C, zeroed except its columns, for `make`, which may leave it to others: not `done`. */
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
    return make_product(s, s->rows, c, context, info, done, [&](sp_csr *made) {
        return s->value_type == SP_F32 ? add_named_rows<float>(context, s, g, made, info, done)
                                       : add_named_rows<double>(context, s, g, made, info, done);
    });
}
