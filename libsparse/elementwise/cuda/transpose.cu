/* B = Aᵀ on a CUDA device, with sorted rows and the same bits in every run.
 *
 * The entries are sorted by column, stably, so that those of a column keep the order of their rows: once with their
 * row numbers, which are B's columns, and once with their values. The offset of a row of B is the number of sorted
 * columns below it.
 *
 * A pattern with at most one entry a column, as of a labelling, is not sorted: each entry writes its row's number at
 * its column, 8 bytes a column and 4 an entry.
 *
 * Bytes an entry: 4 for its row number; a pass of the sort for every 8 bits of the largest column, of 2 · (4 + 4) for
 * the rows and 2 · (4 + v) for the values, all of them streams. Working memory, beyond A and B: 16 bytes an entry, 8
 * of them the sort's own at first, then 4 and the 4 + v of the sort.
 */
#include "device/entries.cuh"
#include "device/radix.cuh"

/* The row of every entry. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    number_entries(int64_t rows, int64_t nnz, const int64_t *offsets, uint32_t *numbers)
{
    for_entries(rows, nnz, offsets, [](int64_t row, int64_t) { return (uint32_t)row; },
                [&](int64_t at, uint32_t row) { numbers[at] = row; });
}

/* The row that has column j, which is -1 at first; whether a column is there twice. Four lanes a row, the block for a
 * long one. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    find_rows(int64_t rows, const int64_t *offsets, const int32_t *cols, int32_t *row_of, unsigned *repeated)
{
    enum { LANES = 4, LONG = 64 };
    __shared__ int64_t waiting[ENTRY_THREADS / LANES];
    __shared__ int waits;
    const auto find = [&](int64_t row, int lane, int lanes) {
        for (int64_t at = offsets[row] + lane; at < offsets[row + 1]; at += lanes)
            if (atomicExch(row_of + cols[at], (int32_t)row) != -1) *repeated = 1;
    };
    const int64_t row = ((int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x) / LANES;
    const int64_t length = row < rows ? offsets[row + 1] - offsets[row] : 0;
    if (threadIdx.x == 0) waits = 0;
    __syncthreads();
    if (length < LONG && length > 0) find(row, threadIdx.x % LANES, LANES);
    else if (length > 0 && threadIdx.x % LANES == 0) waiting[atomicAdd(&waits, 1)] = row;
    __syncthreads();
    for (int i = 0; i < waits; i++) find(waiting[i], (int)threadIdx.x, ENTRY_THREADS);
}

static __global__ void __launch_bounds__(ENTRY_THREADS)
    count_found(int64_t cols, const int32_t *row_of, int32_t *counts)
{
    const int64_t j = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (j < cols) counts[j] = row_of[j] >= 0;
}

static __global__ void __launch_bounds__(ENTRY_THREADS)
    write_found(int64_t cols, const int32_t *row_of, const int64_t *offsets, int32_t *to)
{
    const int64_t j = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (j < cols && row_of[j] >= 0) to[offsets[j]] = row_of[j];
}

/* B for a pattern with one entry a column at most; not `done` if there are more. */
static sp_status move_entries(sp_context *context, const sp_csr *a, const sp_csr *b, bool *done)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const unsigned columns = (unsigned)((a->cols + ENTRY_THREADS - 1) / ENTRY_THREADS);
    device_array<int32_t> row_of, counts;
    device_array<unsigned> repeated;
    unsigned found;
    CHECK(row_of.allocate(context, a->cols));
    CHECK(counts.allocate(context, a->cols));
    CHECK(repeated.allocate(context, 1));
    CHECK(row_of.fill(0xff, a->cols));
    CHECK(repeated.fill(0, 1));
    find_rows<<<(unsigned)(a->rows / (ENTRY_THREADS / 4) + 1), ENTRY_THREADS, 0, stream>>>(
        a->rows, a->row_offsets, a->col_indices, row_of.data, repeated.data);
    CUDA_CHECK(cudaGetLastError());
    count_found<<<columns, ENTRY_THREADS, 0, stream>>>(a->cols, row_of.data, counts.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, a->cols, counts.data, b->row_offsets));
    write_found<<<columns, ENTRY_THREADS, 0, stream>>>(a->cols, row_of.data, b->row_offsets, b->col_indices);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(&found, repeated.data, sizeof found, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    *done = !found;
    return SP_OK;
}

/* offsets[j] = how many of the sorted columns are below j, for cols + 1 offsets. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    find_offsets(int64_t cols, int64_t nnz, const uint32_t *sorted, int64_t *offsets)
{
    const int64_t j = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (j <= cols) offsets[j] = lower_bound_u32(sorted, 0, nnz, (uint32_t)j);
}

/* to = from in the order of A's columns, which `sorted` receives. */
template <typename T>
static sp_status sort_by_column(sp_context *context, const sp_csr *a, const T *from, T *to, uint32_t *sorted)
{
    return radix_sort_pairs(context, (const uint32_t *)a->col_indices, sorted, from, to, a->nnz, radix_bits(a->cols));
}

static sp_status sort_entries(sp_context *context, const sp_csr *a, const sp_csr *b)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<uint32_t> sorted, numbers;
    bool done = false;
    if (!a->values && a->nnz <= a->cols && a->cols / 4 <= a->nnz) CHECK(move_entries(context, a, b, &done));
    if (done) return SP_OK;
    CHECK(sorted.allocate(context, a->nnz));
    CHECK(numbers.allocate(context, a->nnz));
    number_entries<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->rows, a->nnz, a->row_offsets,
                                                                       numbers.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(sort_by_column(context, a, numbers.data, (uint32_t *)b->col_indices, sorted.data));
    numbers.free();
    find_offsets<<<(unsigned)((a->cols + ENTRY_THREADS) / ENTRY_THREADS), ENTRY_THREADS, 0, stream>>>(
        a->cols, a->nnz, sorted.data, b->row_offsets);
    CUDA_CHECK(cudaGetLastError());
    if (!a->values) return SP_OK;
    return a->value_type == SP_F32
               ? sort_by_column(context, a, (const uint32_t *)a->values, (uint32_t *)b->values, sorted.data)
               : sort_by_column(context, a, (const uint64_t *)a->values, (uint64_t *)b->values, sorted.data);
}

sp_status sp_cuda_fill_transpose(sp_context *context, const sp_csr *a, const sp_csr *b)
{
    if (a->nnz > 0) CHECK(sort_entries(context, a, b));
    else
        CUDA_CHECK(cudaMemsetAsync(b->row_offsets, 0, ((size_t)a->cols + 1) * sizeof(int64_t),
                                    cuda_state_of(context)->stream));
    return cuda_finish(context);
}

sp_status sp_cuda_transpose(sp_context *context, const sp_csr *a, sp_csr *b)
{
    sp_csr made = {};
    CHECK(sp_csr_create_like(context, a, a->cols, a->rows, a->nnz, SP_DEVICE, &made));
    const sp_status status = sp_cuda_fill_transpose(context, a, &made);
    if (status == SP_OK) *b = made;
    else sp_csr_free(context, &made);
    return status;
}
