/* Triples become a matrix on a CUDA device. A triple's key is its row above its column. Keys are sorted stably, with
 * the numbers of the triples where values are to be combined, so those of one place stay in the order of their
 * appearance.
 * Where the key changes an entry begins: these places are marked and counted (entries.cuh), and a row begins at the
 * place of the first key that is not below its own. The values of a place are added by one lane if they are few, by a
 * warp if they are many (device/ordered_sum.cuh): the bits are those of adding one after another.
 *
 * Bytes a triple: 4 or 8 for each index, and for every 8 bits of the largest key a pass that reads and writes 8, or 12
 * with a number. Working memory: three times 8 or 12, one of them the sort's own. With mirror images twice as much. */
#include "device/entries.cuh"
#include "device/ordered_sum.cuh"
#include "device/radix.cuh"

/* LONG: values of one place that a lane combines alone. */
enum { RUN_WARPS = 4, LONG = 64 };

/* ---- keys ------------------------------------------------------------------------------------------------ */

struct coo_view {
    const void *row_indices, *col_indices;
    sp_index_type type;
    int64_t rows, cols, count;
    int col_bits;
    bool symmetric;

    __device__ int64_t index(const void *indices, int64_t at) const
    {
        return type == SP_I32 ? __ldg((const int32_t *)indices + at) : __ldg((const int64_t *)indices + at);
    }
    /* Of no triple, and above all others: in place of a diagonal triple's mirror image. */
    __host__ __device__ uint64_t no_key() const { return (uint64_t)rows << col_bits; }
};

/* The triples' keys and, unless it is NULL, their numbers. *outside: the first triple outside the matrix. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    make_keys(coo_view t, uint64_t *keys, uint32_t *numbers, unsigned long long *outside)
{
    const int64_t e = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (e >= t.count) return;
    const int64_t row = t.index(t.row_indices, e), col = t.index(t.col_indices, e), at = t.symmetric ? 2 * e : e;
    if (row < 0 || row >= t.rows || col < 0 || col >= t.cols) {
        atomicMin(outside, (unsigned long long)e);
        return;
    }
    keys[at] = (uint64_t)row << t.col_bits | (uint64_t)col;
    if (numbers) numbers[at] = (uint32_t)e;
    if (!t.symmetric) return;
    keys[at + 1] = row == col ? t.no_key() : (uint64_t)col << t.col_bits | (uint64_t)row;
    if (numbers) numbers[at + 1] = (uint32_t)e;
}

/* Fails if a triple lies outside the matrix. */
static sp_status check_outside(sp_context *context, const sp_coo *coo, const unsigned long long *outside)
{
    const size_t size = coo->index_type == SP_I32 ? sizeof(int32_t) : sizeof(int64_t);
    unsigned long long first;
    int64_t row = 0, col = 0;
    CHECK(sp_array_copy(context, 1, sizeof first, &first, SP_HOST, outside, SP_DEVICE));
    CHECK(cuda_finish(context));
    if (first == ~0ull) return SP_OK;
    CHECK(sp_array_copy(context, 1, size, &row, SP_HOST, (const char *)coo->row_indices + first * size, SP_DEVICE));
    CHECK(sp_array_copy(context, 1, size, &col, SP_HOST, (const char *)coo->col_indices + first * size, SP_DEVICE));
    if (coo->index_type == SP_I32) row = (int32_t)row, col = (int32_t)col;
    return sp_coo_outside(context, coo, (int64_t)first, row, col);
}

/* ---- the pattern ------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_changes(int64_t count, const uint64_t *keys, uint64_t no_key, uint32_t *words)
{
    const int64_t at = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    const uint64_t key = at < count ? keys[at] : no_key;
    const unsigned changes = __ballot_sync(FULL_WARP, key != no_key && (at == 0 || key != keys[at - 1]));
    if (threadIdx.x % 32 == 0 && at < count) words[at / 32] = changes;
}

/* Where rows begin; runs[] of the last entry's end. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    find_rows(int64_t rows, int64_t count, const uint64_t *keys, int col_bits, member_places places, int64_t *offsets,
              int64_t *runs)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row > rows) return;
    const uint64_t key = (uint64_t)row << col_bits;
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    offsets[row] = places.place(low);
    if (row == rows) runs[offsets[row]] = low;
}

/* Columns, and where the run of each entry begins among the sorted keys. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    write_entries(int64_t count, const uint64_t *keys, int col_bits, member_places places, int32_t *cols, int64_t *runs)
{
    const int64_t at = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (at >= count || !(places.words[at / 32] >> at % 32 & 1)) return;
    const int64_t to = places.place(at);
    cols[to] = (int32_t)(keys[at] & (((uint64_t)1 << col_bits) - 1));
    runs[to] = at;
}

/* ---- the values --------------------------------------------------------------------------------------------- */

/* The values of a run, in order. */
template <typename V> struct value_run {
    const V *values;
    const uint32_t *numbers;
    __device__ double operator()(int64_t at) const { return (double)__ldg(values + __ldg(numbers + at)); }
};

static __device__ __forceinline__ bool replaces(double value, double kept, bool largest)
{
    return largest ? value > kept : value < kept;
}

/* The largest or smallest, the first of equals; as in a loop, NaN only counts where it comes first. By a warp. */
template <typename Run> static __device__ double extreme_of(Run run, int64_t count, bool largest)
{
    double kept = largest ? -INFINITY : INFINITY;
    int64_t place = INT64_MAX;
    const double first = run(0);
    if (first != first) return first;
    for (int64_t at = threadIdx.x % 32; at < count; at += 32) {
        const double value = run(at);
        if (replaces(value, kept, largest) || (value == kept && place == INT64_MAX)) kept = value, place = at;
    }
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(FULL_WARP, kept, step);
        const int64_t other_place = __shfl_xor_sync(FULL_WARP, place, step);
        if (replaces(other, kept, largest) || (other == kept && other_place < place)) kept = other, place = other_place;
    }
    return kept;
}

/* By one lane. */
template <typename Run> static __device__ double combine_few(Run run, int64_t count, sp_combine rule)
{
    double kept = run(0);
    for (int64_t at = 1; at < count && rule != SP_COMBINE_FIRST; at++) {
        const double value = run(at);
        if (rule == SP_COMBINE_SUM || rule == SP_COMBINE_MEAN) kept = __dadd_rn(kept, value);
        else if (replaces(value, kept, rule == SP_COMBINE_MAX)) kept = value;
    }
    return kept;
}

/* A lane an entry; `values` NULL stands for ones. */
template <typename V>
static __global__ void __launch_bounds__(RUN_WARPS * 32)
    combine_runs(int64_t nnz, const int64_t *runs, const uint32_t *numbers, const V *values, sp_combine rule, V *to)
{
    __shared__ double tiles[RUN_WARPS][SUM_PLACES];
    const int64_t entry = (int64_t)blockIdx.x * RUN_WARPS * 32 + threadIdx.x;
    const int64_t begin = entry < nnz ? runs[entry] : 0, length = entry < nnz ? runs[entry + 1] - begin : 0;
    const bool read = values && rule != SP_COMBINE_COUNT;
    const bool waits = read && length > LONG && rule != SP_COMBINE_FIRST;
    double result = rule == SP_COMBINE_COUNT || rule == SP_COMBINE_SUM ? (double)length : 1;
    if (read && !waits && length > 0) result = combine_few(value_run<V>{values, numbers + begin}, length, rule);
    for (unsigned waiting = __ballot_sync(FULL_WARP, waits); waiting; waiting &= waiting - 1) {
        const int lane = __ffs((int)waiting) - 1;
        const int64_t first = __shfl_sync(FULL_WARP, begin, lane), count = __shfl_sync(FULL_WARP, length, lane);
        const value_run<V> run = {values, numbers + first};
        const double found = rule == SP_COMBINE_SUM || rule == SP_COMBINE_MEAN
                                 ? sum_loaded(run, count, tiles[threadIdx.x / 32])
                                 : extreme_of(run, count, rule == SP_COMBINE_MAX);
        if ((int)threadIdx.x % 32 == lane) result = found;
    }
    if (read && rule == SP_COMBINE_MEAN && length > 0) result = __ddiv_rn(result, (double)length);
    if (entry < nnz) to[entry] = (V)result;
}

/* ---- all ---------------------------------------------------------------------------------------------------- */

/* The matrix of `count` sorted keys, with the numbers of their triples or NULL. */
static sp_status make_matrix(sp_context *context, const sp_coo *coo, const coo_view &t, sp_combine combine,
                             int64_t count, const uint64_t *keys, const uint32_t *numbers, sp_csr *made)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<int64_t> runs;
    marked_part part;
    CHECK(part.create(context, count));
    mark_changes<<<thread_blocks(count), ENTRY_THREADS, 0, stream>>>(count, keys, t.no_key(), part.words.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(part.count(context, count));
    CHECK(sp_csr_create(context, coo->rows, coo->cols, part.total, coo->value_type, SP_DEVICE, made));
    CHECK(runs.allocate(context, part.total + 1));
    find_rows<<<thread_blocks(coo->rows + 1), ENTRY_THREADS, 0, stream>>>(coo->rows, count, keys, t.col_bits,
                                                                          part.places(), made->row_offsets, runs.data);
    write_entries<<<thread_blocks(count), ENTRY_THREADS, 0, stream>>>(count, keys, t.col_bits, part.places(),
                                                                      made->col_indices, runs.data);
    CUDA_CHECK(cudaGetLastError());
    const unsigned blocks = (unsigned)ceil_div(made->nnz, RUN_WARPS * 32);
    if (coo->value_type == SP_F32)
        combine_runs<<<blocks, RUN_WARPS * 32, 0, stream>>>(made->nnz, runs.data, numbers, (const float *)coo->values,
                                                            combine, (float *)made->values);
    else
        combine_runs<<<blocks, RUN_WARPS * 32, 0, stream>>>(made->nnz, runs.data, numbers, (const double *)coo->values,
                                                            combine, (double *)made->values);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

static sp_status sort_triples(sp_context *context, const sp_coo *coo, const coo_view &t, sp_combine combine,
                              sp_csr *made)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t count = t.symmetric ? 2 * t.count : t.count;
    const int bits = t.col_bits + radix_bits(t.rows + 1);
    const bool numbered = coo->values && combine != SP_COMBINE_COUNT;
    device_array<uint64_t> keys, sorted;
    device_array<uint32_t> numbers, sorted_numbers;
    device_array<unsigned long long> outside;
    CHECK(keys.allocate(context, count));
    if (numbered) CHECK(numbers.allocate(context, count));
    CHECK(outside.allocate(context, 1));
    CHECK(outside.fill(0xff, 1));
    make_keys<<<thread_blocks(t.count), ENTRY_THREADS, 0, stream>>>(t, keys.data, numbers.data, outside.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(check_outside(context, coo, outside.data));
    CHECK(sorted.allocate(context, count));
    if (numbered) {
        CHECK(sorted_numbers.allocate(context, count));
        CHECK(radix_sort_pairs(context, keys.data, sorted.data, numbers.data, sorted_numbers.data, count, bits));
    } else {
        CHECK(radix_sort_keys(context, keys.data, sorted.data, count, bits));
    }
    keys.free();
    numbers.free();
    return make_matrix(context, coo, t, combine, count, sorted.data, sorted_numbers.data, made);
}

sp_status sp_cuda_from_coo(sp_context *context, const sp_coo *coo, sp_combine combine, bool symmetric, sp_csr *matrix)
{
    const coo_view t = {coo->row_indices, coo->col_indices, coo->index_type, coo->rows,
                        coo->cols,        coo->count,       radix_bits(coo->cols), symmetric};
    sp_csr made = {};
    sp_status status;
    if (coo->count > 0) {
        status = sort_triples(context, coo, t, combine, &made);
    } else {
        CHECK(sp_csr_create(context, coo->rows, coo->cols, 0, coo->value_type, SP_DEVICE, &made));
        status = cuda_status(context, cudaMemsetAsync(made.row_offsets, 0, ((size_t)coo->rows + 1) * sizeof(int64_t),
                                                      cuda_state_of(context)->stream), "cudaMemsetAsync");
        if (status == SP_OK) status = cuda_finish(context);
    }
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- offsets -------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(ENTRY_THREADS) widen(int64_t count, const int32_t *from, int64_t *to)
{
    const int64_t k = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (k < count) to[k] = from[k];
}

sp_status sp_cuda_widen(sp_context *context, int64_t count, const int32_t *from, int64_t *to)
{
    widen<<<thread_blocks(count), ENTRY_THREADS, 0, cuda_state_of(context)->stream>>>(count, from, to);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}
