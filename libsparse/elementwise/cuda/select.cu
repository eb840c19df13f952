/* Entries kept by place or by value on a CUDA device.
 *
 * By place: columns ascend, so a diagonal cuts a row in two, or in three if it has an entry there. A thread a row finds
 * the cut. The lengths of the rows of B are summed, then blocks of 2,048 entries of B look up their sources. Bytes a
 * row: 16 to find its ends, 24 for the sources of its entries and their offsets; a kept entry moves twice 4 + v.
 *
 * By value: a bit an entry says whether it is kept, and kept entries are moved up (entries.cuh). Values are compared in
 * their own type, so f32 needs no arithmetic in f64, which is slow on most devices. Bytes an entry: v to mark it, twice
 * 4 + v to move it if it is kept, a quarter for bits and their sums. */
#include "device/entries.cuh"

/* ---- by place -------------------------------------------------------------------------------------------- */

/* Entries of row i of B are those of A from starts[i] on, without A's entry gaps[i]. */
struct row_sources {
    int64_t *starts, *gaps;
};

static __global__ void __launch_bounds__(ENTRY_THREADS)
    cut_rows(int64_t rows, const int64_t *offsets, const int32_t *cols, unsigned stay, int64_t diagonal,
             row_sources sources, int32_t *lengths)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row >= rows) return;
    const int64_t begin = __ldg(offsets + row), end = __ldg(offsets + row + 1);
    const int64_t column = min(max(row + diagonal, (int64_t)INT32_MIN), (int64_t)INT32_MAX); /* which no row has */
    const int64_t at = lower_bound_i32(cols, begin, end, (int32_t)column);
    const int64_t past = at < end && __ldg(cols + at) == row + diagonal ? at + 1 : at; /* the diagonal */
    const int64_t from = stay & SP_LESS ? begin : stay & SP_EQUAL ? at : past;
    const int64_t to = stay & SP_GREATER ? end : stay & SP_EQUAL ? past : at;
    const bool gap = stay == (SP_LESS | SP_GREATER) && at < past;
    sources.starts[row] = from;
    sources.gaps[row] = gap ? at : INT64_MAX;
    lengths[row] = (int32_t)(to - from - gap);
}

template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    copy_parts(int64_t rows, int64_t nnz, matrix_view<V> a, row_sources sources, const int64_t *offsets,
               int32_t *cols, V *values)
{
    struct entry {
        int32_t col;
        V value;
    };
    const auto load = [&](int64_t row, int64_t at) {
        int64_t from = __ldg(sources.starts + row) + at - __ldg(offsets + row);
        from += from >= __ldg(sources.gaps + row);
        return entry{__ldg(a.cols + from), values ? __ldg(a.values + from) : V(0)};
    };
    for_entries(rows, nnz, offsets, load, [&](int64_t at, entry e) {
        cols[at] = e.col;
        if (values) values[at] = e.value;
    });
}

template <typename V>
static sp_status select_places(sp_context *context, const sp_csr *a, unsigned stay, int64_t diagonal, sp_csr *b)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<int32_t> lengths;
    device_array<int64_t> starts, gaps, offsets;
    int64_t nnz;
    CHECK(lengths.allocate(context, a->rows));
    CHECK(starts.allocate(context, a->rows));
    CHECK(gaps.allocate(context, a->rows));
    CHECK(offsets.allocate(context, a->rows + 1));
    const row_sources sources = {starts.data, gaps.data};
    if (a->rows > 0)
        cut_rows<<<thread_blocks(a->rows), ENTRY_THREADS, 0, stream>>>(a->rows, a->row_offsets, a->col_indices, stay,
                                                                       diagonal, sources, lengths.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, a->rows, lengths.data, offsets.data));
    CUDA_CHECK(cudaMemcpyAsync(&nnz, offsets.data + a->rows, sizeof nnz, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    CHECK(sp_csr_create_like(context, a, a->rows, a->cols, nnz, SP_DEVICE, b));
    cuda_release(context, b->row_offsets);
    b->row_offsets = offsets.data;
    offsets.data = nullptr;
    if (nnz > 0)
        copy_parts<<<entry_blocks(nnz), ENTRY_THREADS, 0, stream>>>(a->rows, nnz, view_of<V>(a), sources,
                                                                    b->row_offsets, b->col_indices, (V *)b->values);
    return cuda_status(context, cudaGetLastError(), "copy_parts");
}

/* ---- by value -------------------------------------------------------------------------------------------- */

/* What values are compared with, and for which outcomes an entry stays. */
template <typename V> struct comparison {
    V bound;
    unsigned stay;
    bool by_size;

    /* A bound that V does not have is the V beside it, where equal then means less or greater. */
    comparison(sp_select select, double number)
        : bound((V)number), stay(sp_select_outcomes(select)), by_size(select == SP_SELECT_ABS_GE)
    {
        const unsigned means = bound < number ? SP_LESS : bound > number ? SP_GREATER : SP_EQUAL;
        stay = (stay & ~(unsigned)SP_EQUAL) | (stay & means ? SP_EQUAL : 0);
    }
    __device__ __forceinline__ bool stays(V value) const
    {
        if (by_size) value = value < 0 ? -value : value;
        const unsigned outcome = value < bound    ? SP_LESS
                                 : value == bound ? SP_EQUAL
                                 : value > bound  ? SP_GREATER
                                                  : SP_UNORDERED;
        return stay & outcome;
    }
};

/* A warp has 32 entries at a time, of one word; all values are loaded before any is compared. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_values(int64_t nnz, const V *values, comparison<V> test, uint32_t *words)
{
    const int lane = threadIdx.x % 32;
    const int64_t begin = ((int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x) / 32 * 32 * ENTRIES_A_THREAD + lane;
    V value[ENTRIES_A_THREAD];
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++)
        value[i] = values && begin + i * 32 < nnz ? __ldg(values + begin + i * 32) : V(1);
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++) {
        const unsigned word = __ballot_sync(FULL_WARP, begin + i * 32 < nnz && test.stays(value[i]));
        if (lane == 0 && begin + i * 32 < nnz) words[begin / 32 + i] = word;
    }
}

template <typename V>
static sp_status select_values(sp_context *context, const sp_csr *a, const comparison<V> &test, sp_csr *b)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    marked_part kept;
    CHECK(kept.create(context, a->nnz));
    if (a->nnz > 0)
        mark_values<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->nnz, (const V *)a->values, test,
                                                                        kept.words.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(kept.count(context, a->nnz));
    return cuda_take_marked(context, a, &kept, a->cols, NULL, b);
}

template <typename V>
static sp_status select_entries(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b)
{
    return select <= SP_SELECT_OFF_DIAGONAL
               ? select_places<V>(context, a, sp_select_outcomes(select), (int64_t)bound, b)
               : select_values<V>(context, a, {select, bound}, b);
}

sp_status sp_cuda_select(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b)
{
    *b = {};
    sp_status status = a->value_type == SP_F32 ? select_entries<float>(context, a, select, bound, b)
                                               : select_entries<double>(context, a, select, bound, b);
    if (status == SP_OK) status = cuda_finish(context);
    if (status != SP_OK) sp_csr_free(context, b);
    return status;
}
