/* Similarity joins on a CUDA device: C = the entries of A·B that are large enough, and of these the k largest of each
 * row. A block sums a row and compares its sums where they are (join.cuh).
 *
 * Every row has slots for as many entries as it may keep, which its products, B's columns and k bound. Rows are joined
 * in batches whose slots fit a quarter of the free memory. Then the entries are moved together, and the whole is
 * transposed twice, which sorts them by column. Rows with up to FEW products have a table and blocks of their own,
 * small enough that many are on a multiprocessor. */
#include <float.h>

#include "similarity/cuda/join.cuh"

/* Most slots, and products, of a batch unless it is a single row: 3 GB of f64, and about a second without a look at the
 * interrupt flag. */
static const int64_t BATCH_SLOTS = (int64_t)1 << 28, BATCH_PRODUCTS = (int64_t)1 << 35;

enum { PACK_THREADS = 256, SMALL_WINDOW = 4096, LARGE_WINDOW = 8192 };

/* ---- lengths of rows ------------------------------------------------------------------------------------- */

/* A warp adds up 32 values at a time, one after another as the CPU does; those beyond the row's end are 0. */
template <typename Square> static __device__ double sum_in_order(int64_t begin, int64_t end, Square square)
{
    double sum = 0;
    for (int64_t base = begin; base < end; base += 32) {
        const int64_t at = base + threadIdx.x % 32;
        const double own = at < end ? square(at) : 0;
#pragma unroll
        for (int lane = 0; lane < 32; lane++) sum = __dadd_rn(sum, __shfl_sync(FULL_WARP, own, lane));
    }
    return sum;
}

/* As inverse_length of the CPU. */
template <typename V>
static __global__ void __launch_bounds__(PACK_THREADS) invert_lengths(int64_t rows, matrix_view<V> a, double *factors)
{
    const int64_t row = ((int64_t)blockIdx.x * PACK_THREADS + threadIdx.x) / 32;
    if (row >= rows) return;
    const int64_t begin = a.offsets[row], end = a.offsets[row + 1];
    const auto value_of = [&](int64_t at) { return a.values ? (double)a.values[at] : 1.0; };
    double largest = 0, factor = 0;
    for (int64_t at = begin + threadIdx.x % 32; at < end; at += 32) largest = fmax(largest, fabs(value_of(at)));
    for (int step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(FULL_WARP, largest, step));
    double sum = sum_in_order(begin, end, [&](int64_t at) { return __dmul_rn(value_of(at), value_of(at)); });
    if (sum > 1e-280 && sum <= DBL_MAX) factor = 1 / sqrt(sum);
    else if (largest != 0) {
        sum = sum_in_order(begin, end, [&](int64_t at) {
            const double value = value_of(at) / largest;
            return __dmul_rn(value, value);
        });
        factor = 1 / sqrt(sum) / largest;
    }
    if (threadIdx.x % 32 == 0) factors[row] = factor;
}

sp_status sp_cuda_inverse_lengths(sp_context *context, const sp_csr *a, double *factors)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const unsigned blocks = (unsigned)ceil_div(a->rows, PACK_THREADS / 32);
    if (blocks == 0) return SP_OK;
    if (a->value_type == SP_F32)
        invert_lengths<<<blocks, PACK_THREADS, 0, stream>>>(a->rows, view_of<float>(a), factors);
    else invert_lengths<<<blocks, PACK_THREADS, 0, stream>>>(a->rows, view_of<double>(a), factors);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- batches --------------------------------------------------------------------------------------------- */

/* Host memory, and pieces of a matrix, that end with their scope. */
template <typename T> struct host_array {
    sp_context *context;
    T *data = nullptr;
    ~host_array() { sp_free(context, data); }
    sp_status allocate(int64_t count) { return sp_alloc(context, count, sizeof(T), (void **)&data); }
};
struct scoped_matrix {
    sp_context *context;
    sp_csr matrix = {};
    ~scoped_matrix() { sp_csr_free(context, &matrix); }
};
struct piece_list {
    sp_context *context;
    sp_csr *data = nullptr; /* columns and values of consecutive rows */
    int64_t count = 0;
    ~piece_list()
    {
        for (int64_t i = 0; i < count; i++) sp_csr_free(context, &data[i]);
        sp_free(context, data);
    }
};

/* What all batches share. */
template <typename V> struct join_run {
    sp_context *context;
    similarity_join<V> job;
    const int64_t *products; /* of A's rows, on the host */
    int64_t *slots;          /* on the host: where rows begin among all slots */
    int32_t *list;           /* on the host: the rows of a batch, those of many products first */
    joined_rows<V> rows;
    int64_t most_slots;
};

/* Launches the rows of one shape. */
template <typename V, typename S>
static sp_status launch_rows(const join_run<V> &run, joined_rows<V> rows, int window)
{
    sp_context *context = run.context;
    similarity_join<V> job = run.job;
    device_array<double> spare_values;
    device_array<int32_t> spare_cols;
    size_t available;
    int blocks;
    job.window = window;
    if (rows.count == 0) return SP_OK;
    CHECK(cuda_grid(context, join_rows<V, S>, S::THREADS, join_shared<S>(window), rows.count, &blocks));
    if (job.k + S::ROUND > S::LISTED && job.k < job.cols) {
        rows.spare = job.k + (job.k > S::ROUND ? job.k : S::ROUND);
        CHECK(cuda_available(context, &available));
        const int64_t room = (int64_t)(available / 4 / 12) / rows.spare;
        if (blocks > room) blocks = room > 0 ? (int)room : 1;
        CHECK(spare_values.allocate(context, rows.spare * blocks));
        CHECK(spare_cols.allocate(context, rows.spare * blocks));
        rows.spare_values = spare_values.data;
        rows.spare_cols = spare_cols.data;
    }
    const cudaStream_t stream = cuda_state_of(context)->stream;
    join_rows<V, S><<<(unsigned)blocks, S::THREADS, join_shared<S>(window), stream>>>(job, rows);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* A warp a row. */
template <typename V>
static __global__ void __launch_bounds__(PACK_THREADS)
    pack_rows(int64_t first, int64_t count, joined_rows<V> rows, const int64_t *offsets, int32_t *cols, V *values)
{
    const int64_t i = ((int64_t)blockIdx.x * PACK_THREADS + threadIdx.x) / 32;
    if (i >= count) return;
    const int64_t from = rows.slots[first + i] - rows.base, to = offsets[i];
    for (int e = (int)threadIdx.x % 32; e < rows.counts[first + i]; e += 32) {
        cols[to + e] = rows.cols[from + e];
        values[to + e] = rows.values[from + e];
    }
}

/* The columns and values of rows first .. end - 1. */
template <typename V>
static sp_status join_batch(join_run<V> &run, int64_t first, int64_t end, sp_csr *piece)
{
    sp_context *context = run.context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const bool large = cuda_state_of(context)->shared_limit >= join_shared<many_products>(LARGE_WINDOW);
    const int64_t slots = run.slots[end] - run.slots[first];
    device_array<int32_t> cols, list;
    device_array<V> values;
    device_array<int> next;
    device_array<int64_t> offsets;
    joined_rows<V> rows = run.rows;
    int many = 0, few = 0;
    int64_t nnz = 0;
    for (int64_t i = first; i < end; i++)
        if (run.products[i] > FEW) run.list[many++] = (int32_t)i;
    for (int64_t i = first; i < end; i++)
        if (run.products[i] > 0 && run.products[i] <= FEW) run.list[many + few++] = (int32_t)i;
    CHECK(cols.allocate(context, slots));
    CHECK(values.allocate(context, slots));
    CHECK(list.allocate(context, many + few));
    CHECK(next.allocate(context, 2));
    CHECK(next.fill(0, 2));
    CHECK(offsets.allocate(context, end - first + 1));
    CHECK(sp_array_copy(context, many + few, sizeof *run.list, list.data, SP_DEVICE, run.list, SP_HOST));
    rows.base = run.slots[first], rows.cols = cols.data, rows.values = values.data;
    rows.list = list.data, rows.count = many, rows.next = next.data;
    CHECK((launch_rows<V, many_products>(run, rows, large ? LARGE_WINDOW : SMALL_WINDOW)));
    rows.list = list.data + many, rows.count = few, rows.next = next.data + 1;
    CHECK((launch_rows<V, few_products>(run, rows, few_products::SLOTS)));
    CHECK(cuda_scan_counts(context, end - first, rows.counts + first, offsets.data));
    CUDA_CHECK(cudaMemcpyAsync(&nnz, offsets.data + (end - first), sizeof nnz, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    CHECK(sp_csr_create(context, 0, run.job.cols, nnz, sizeof(V) == sizeof(float) ? SP_F32 : SP_F64, SP_DEVICE, piece));
    pack_rows<<<(unsigned)ceil_div(end - first, PACK_THREADS / 32), PACK_THREADS, 0, stream>>>(
        first, end - first, rows, offsets.data, piece->col_indices, (V *)piece->values);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* The batch that begins with `row` ends before the row that is returned. */
template <typename V> static int64_t end_of_batch(const join_run<V> &run, int64_t rows, int64_t row)
{
    int64_t end = row, products = 0;
    do products += run.products[end++];
    while (end < rows && run.slots[end + 1] - run.slots[row] <= run.most_slots &&
           products + run.products[end] <= BATCH_PRODUCTS);
    return end;
}

/* Pieces one below the other, then sorted: the columns of a row of the transpose ascend whatever order entries had. */
template <typename V>
static sp_status assemble(const join_run<V> &run, const piece_list &pieces, int64_t rows, sp_csr *c)
{
    sp_context *context = run.context;
    scoped_matrix whole{context}, turned{context};
    int64_t nnz = 0, at = 0;
    for (int64_t i = 0; i < pieces.count; i++) nnz += pieces.data[i].nnz;
    CHECK(sp_csr_create(context, rows, run.job.cols, nnz, sizeof(V) == sizeof(float) ? SP_F32 : SP_F64, SP_DEVICE,
                        &whole.matrix));
    CHECK(cuda_scan_counts(context, rows, run.rows.counts, whole.matrix.row_offsets));
    for (int64_t i = 0; i < pieces.count; i++) {
        const sp_csr *piece = &pieces.data[i];
        CHECK(sp_array_copy(context, piece->nnz, sizeof(int32_t), whole.matrix.col_indices + at, SP_DEVICE,
                            piece->col_indices, SP_DEVICE));
        CHECK(sp_array_copy(context, piece->nnz, sizeof(V), (V *)whole.matrix.values + at, SP_DEVICE, piece->values,
                            SP_DEVICE));
        at += piece->nnz;
        sp_csr_free(context, &pieces.data[i]);
    }
    CHECK(sp_cuda_transpose(context, &whole.matrix, &turned.matrix));
    sp_csr_free(context, &whole.matrix);
    return sp_cuda_transpose(context, &turned.matrix, c);
}

template <typename V>
static sp_status join_all(sp_context *context, const sp_csr *a, const double *factors, const sp_csr *b,
                          const sp_similarity_options *options, sp_csr *c, sp_spgemm_info *info)
{
    device_array<int64_t> products, slots;
    device_array<int32_t> counts;
    host_array<int64_t> host_products{context}, host_slots{context};
    host_array<int32_t> list{context};
    piece_list pieces{context};
    size_t available;
    join_run<V> run = {};
    CHECK(products.allocate(context, a->rows));
    CHECK(slots.allocate(context, a->rows + 1));
    CHECK(counts.allocate(context, a->rows));
    CHECK(counts.fill(0, a->rows));
    CHECK(host_products.allocate(a->rows));
    CHECK(host_slots.allocate(a->rows + 1));
    CHECK(list.allocate(a->rows));
    CHECK(cuda_row_products(context, a, b, products.data));
    CHECK(sp_array_copy(context, a->rows, sizeof(int64_t), host_products.data, SP_HOST, products.data, SP_DEVICE));
    host_slots.data[0] = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t most = host_products.data[i] < b->cols ? host_products.data[i] : b->cols;
        if (options->top_k > 0 && most > options->top_k) most = options->top_k;
        host_slots.data[i + 1] = host_slots.data[i] + most;
        info->products += host_products.data[i];
    }
    CHECK(sp_array_copy(context, a->rows + 1, sizeof(int64_t), slots.data, SP_DEVICE, host_slots.data, SP_HOST));
    CHECK(cuda_available(context, &available));
    run.most_slots = (int64_t)(available / 4 / (sizeof(int32_t) + sizeof(V)));
    if (run.most_slots > BATCH_SLOTS) run.most_slots = BATCH_SLOTS;
    run.context = context;
    run.job = {view_of<V>(a), view_of<V>(b), factors, b->cols, options->top_k, options->threshold, options->skip_self,
               0};
    run.products = host_products.data, run.slots = host_slots.data, run.list = list.data;
    run.rows.products = products.data, run.rows.slots = slots.data, run.rows.counts = counts.data;
    int64_t batches = 0;
    for (int64_t first = 0; first < a->rows; first = end_of_batch(run, a->rows, first)) batches++;
    CHECK(sp_calloc(context, batches, sizeof *pieces.data, (void **)&pieces.data));
    for (int64_t first = 0, end; first < a->rows; first = end) {
        end = end_of_batch(run, a->rows, first);
        CHECK(join_batch(run, first, end, &pieces.data[pieces.count++]));
    }
    info->batches = batches > 0 ? batches : 1;
    return assemble(run, pieces, a->rows, c);
}

sp_status sp_cuda_similarity(sp_context *context, const sp_csr *a, const double *factors, const sp_csr *b,
                             const sp_similarity_options *options, sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(a->value_type == SP_F32 ? join_all<float>(context, a, factors, b, options, c, info)
                                  : join_all<double>(context, a, factors, b, options, c, info));
    sp_status status = cuda_peak_beside(context, before, c, &info->peak_bytes);
    if (status == SP_OK) status = cuda_finish(context);
    if (status != SP_OK) sp_csr_free(context, c);
    info->product_nnz = info->nnz = c->nnz;
    info->numeric_seconds = wall_seconds() - start;
    return status;
}
