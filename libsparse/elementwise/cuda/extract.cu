/* B(i, j) = A(rows[i], cols[j]) on a CUDA device.
 *
 * Rows: their lengths are summed, then blocks of 2,048 entries of B, whatever their rows, look up their sources.
 * Columns, in a list that ascends: every column of A knows its place in the list, a bit an entry says whether it has
 * one, and the entries that have one are moved up. Columns in any other order, or repeated: A is transposed, its rows
 * are taken, and the result is transposed back, which sorts them. */
#include "device/entries.cuh"

static __global__ void __launch_bounds__(ENTRY_THREADS)
    find_outside(const int32_t *list, int64_t count, int64_t bound, unsigned long long *first)
{
    const int64_t i = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (i < count && (list[i] < 0 || list[i] >= bound)) atomicMin(first, (unsigned long long)i);
}

sp_status sp_cuda_find_outside(sp_context *context, const int32_t *list, int64_t count, int64_t bound, int64_t *place)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<unsigned long long> first; /* all bits set, which is -1, if there is none */
    *place = -1;
    if (count == 0) return SP_OK;
    CHECK(first.allocate(context, 1));
    CHECK(first.fill(0xff, 1));
    find_outside<<<thread_blocks(count), ENTRY_THREADS, 0, stream>>>(list, count, bound, first.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(place, first.data, sizeof *place, cudaMemcpyDeviceToHost, stream));
    return cuda_finish(context);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(ENTRY_THREADS)
    count_rows(int64_t count, const int32_t *list, const int64_t *offsets, int32_t *lengths)
{
    const int64_t i = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (i < count) lengths[i] = (int32_t)(offsets[list[i] + 1] - offsets[list[i]]);
}

template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    copy_rows(int64_t count, int64_t nnz, const int32_t *list, matrix_view<V> a, const int64_t *offsets,
              int32_t *cols, V *values)
{
    struct entry {
        int32_t col;
        V value;
    };
    const auto load = [&](int64_t i, int64_t at) {
        const int64_t from = __ldg(a.offsets + __ldg(list + i)) + at - __ldg(offsets + i);
        return entry{__ldg(a.cols + from), values ? __ldg(a.values + from) : V(0)};
    };
    for_entries(count, nnz, offsets, load, [&](int64_t at, entry e) {
        cols[at] = e.col;
        if (values) values[at] = e.value;
    });
}

static sp_status take_rows(sp_context *context, const sp_csr *a, const int32_t *list, int64_t count, sp_csr *b)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<int32_t> lengths;
    device_array<int64_t> offsets;
    int64_t nnz;
    CHECK(lengths.allocate(context, count));
    CHECK(offsets.allocate(context, count + 1));
    if (count > 0)
        count_rows<<<thread_blocks(count), ENTRY_THREADS, 0, stream>>>(count, list, a->row_offsets, lengths.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, count, lengths.data, offsets.data));
    CUDA_CHECK(cudaMemcpyAsync(&nnz, offsets.data + count, sizeof nnz, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    CHECK(sp_csr_create_like(context, a, count, a->cols, nnz, SP_DEVICE, b));
    cuda_release(context, b->row_offsets);
    b->row_offsets = offsets.data;
    offsets.data = nullptr;
    if (nnz > 0 && a->value_type == SP_F32)
        copy_rows<<<entry_blocks(nnz), ENTRY_THREADS, 0, stream>>>(count, nnz, list, view_of<float>(a),
                                                                   b->row_offsets, b->col_indices,
                                                                   (float *)b->values);
    else if (nnz > 0)
        copy_rows<<<entry_blocks(nnz), ENTRY_THREADS, 0, stream>>>(count, nnz, list, view_of<double>(a),
                                                                   b->row_offsets, b->col_indices,
                                                                   (double *)b->values);
    const sp_status status = cuda_status(context, cudaGetLastError(), "copy_rows");
    if (status != SP_OK) sp_csr_free(context, b);
    return status;
}

/* ---- columns --------------------------------------------------------------------------------------------- */

/* names[list[j]] = j; whether the list does not ascend. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    number_columns(int64_t count, const int32_t *list, int32_t *names, unsigned *descends)
{
    const int64_t j = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (j >= count) return;
    names[list[j]] = (int32_t)j;
    if (j > 0 && list[j] <= list[j - 1]) *descends = 1;
}

/* A warp has 32 entries at a time, of one word; all columns are loaded before any is looked up. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_named(int64_t nnz, const int32_t *cols, const int32_t *names, uint32_t *words)
{
    const int lane = threadIdx.x % 32;
    const int64_t begin = ((int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x) / 32 * 32 * ENTRIES_A_THREAD + lane;
    int32_t name[ENTRIES_A_THREAD];
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++) name[i] = begin + i * 32 < nnz ? __ldg(cols + begin + i * 32) : -1;
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++) name[i] = name[i] >= 0 ? __ldg(names + name[i]) : -1;
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++) {
        const unsigned named = __ballot_sync(FULL_WARP, name[i] >= 0);
        if (lane == 0 && begin + i * 32 < nnz) words[begin / 32 + i] = named;
    }
}

/* B for a list that ascends; not `done` if it does not. */
static sp_status filter_columns(sp_context *context, const sp_csr *a, const int32_t *list, int64_t count, sp_csr *b,
                                bool *done)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<int32_t> names;
    device_array<unsigned> descends;
    marked_part named;
    unsigned found;
    CHECK(names.allocate(context, a->cols));
    CHECK(names.fill(0xff, a->cols));
    CHECK(descends.allocate(context, 1));
    CHECK(descends.fill(0, 1));
    if (count > 0)
        number_columns<<<thread_blocks(count), ENTRY_THREADS, 0, stream>>>(count, list, names.data, descends.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(&found, descends.data, sizeof found, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    *done = !found;
    if (found) return SP_OK;
    CHECK(named.create(context, a->nnz));
    if (a->nnz > 0)
        mark_named<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->nnz, a->col_indices, names.data,
                                                                      named.words.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(named.count(context, a->nnz));
    return cuda_take_marked(context, a, &named, count, names.data, b);
}

/* A matrix that ends with its scope. */
struct scoped_matrix {
    sp_context *context;
    sp_csr matrix = {};
    ~scoped_matrix() { sp_csr_free(context, &matrix); }
};

static sp_status take_columns(sp_context *context, const sp_csr *a, const int32_t *list, int64_t count, sp_csr *b)
{
    scoped_matrix turned{context}, taken{context};
    bool done = false;
    CHECK(filter_columns(context, a, list, count, b, &done));
    if (done) return SP_OK;
    CHECK(sp_cuda_transpose(context, a, &turned.matrix));
    CHECK(take_rows(context, &turned.matrix, list, count, &taken.matrix));
    return sp_cuda_transpose(context, &taken.matrix, b);
}

sp_status sp_cuda_extract(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                          const int32_t *cols, int64_t col_count, sp_csr *b)
{
    scoped_matrix of_rows{context}, made{context};
    if (rows) CHECK(take_rows(context, a, rows, row_count, &of_rows.matrix));
    if (cols) CHECK(take_columns(context, rows ? &of_rows.matrix : a, cols, col_count, &made.matrix));
    else if (!rows) CHECK(sp_csr_copy(context, a, SP_DEVICE, &made.matrix));
    CHECK(cuda_finish(context));
    sp_csr *result = cols || !rows ? &made.matrix : &of_rows.matrix;
    *b = *result;
    *result = {};
    return SP_OK;
}
