/* C = A·B where B has one column: a sum a row of A, in A's order. Nothing is sorted, and C's columns are known.
 *
 * A lane adds a row of up to SHORT_ROW elements, a warp a longer one (ordered_sum.cuh), the device those of more than
 * LONG_ROW (long_sums.cuh), whose products are written out. An element whose row of B is empty stands for -0, which
 * changes no sum. Sums are formed before C's offsets are known, so that A is read once.
 *
 * Bytes: 4 + v an element, 16 + v for its row of B (v where all rows have an entry), 20 and C's a row; 24 more an
 * element of the longest rows. The host waits for nnz(C), for the end, and, where A has more than LONG_ROW elements,
 * for whether there are longest rows.
 */
#include <stdio.h>

#include "base/ablation.h"
#include "device/long_sums.cuh"

enum { COLUMN_THREADS = 128, SHORT_ROW = 64, LONG_ROW = 1 << 15 };

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

/* ---- device ---------------------------------------------------------------------------------------------- */

/* The products of A's elements, in their order. */
template <typename V> struct column_products {
    const int32_t *cols; /* of A */
    const V *values;
    const int64_t *offsets; /* of B; NULL: every row has an entry */
    const V *factors;

    __device__ __forceinline__ double load(int64_t i, unsigned *count) const
    {
        const int32_t k = __ldg(cols + i);
        const int64_t at = offsets ? __ldg(offsets + k) : k;
        const bool there = !offsets || __ldg(offsets + k + 1) > at;
        const V factor = there ? __ldg(factors + at) : V(0);
        *count += there;
        return there ? product_of(__ldg(values + i), factor, false) : -0.0;
    }
};

/* Lists a row whose products will lie with those of the others, each from a full chunk on. */
static __device__ __forceinline__ void add_longest(long_runs *list, int64_t count, int32_t row)
{
    const unsigned chunk = atomicAdd(&list->chunks, chunks_of(count));
    list->runs[atomicAdd(&list->count, 1u)] = {(int64_t)chunk * CHUNK_NUMBERS, count, chunk, row};
}

/* The sum and the length, 0 or 1, of each row of C, `each` rows a warp: 32, or 1 where rows are long. Rows of more than
 * `most` elements are listed for the device. */
template <typename V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    sum_rows(column_products<V> products, int64_t rows, const int64_t *a_offsets, int each, int64_t most,
             long_runs *longest, unsigned long long *all, int32_t *lengths, double *sums)
{
    __shared__ double tiles[COLUMN_THREADS / 32][SUM_PLACES];
    const int lane = threadIdx.x & 31;
    const int64_t warps = (int64_t)gridDim.x * (COLUMN_THREADS / 32);
    unsigned long long counted = 0;
    for (int64_t base = (blockIdx.x * (COLUMN_THREADS / 32) + threadIdx.x / 32) * (int64_t)each; base < rows;
         base += warps * each) {
        const int64_t row = lane < each ? base + lane : rows, begin = a_offsets[min(row, rows)];
        const int64_t end = a_offsets[min(row + 1, rows)];
        const bool is_longest = end - begin > most, is_short = end - begin <= (each > 1 ? (int)SHORT_ROW : 0);
        double sum = -0.0;
        unsigned count = 0;
        for (int64_t i = begin; is_short && i < end; i++) sum = __dadd_rn(sum, products.load(i, &count));
        for (unsigned longs = __ballot_sync(FULL_WARP, !is_short && !is_longest); longs; longs &= longs - 1) {
            const int of = __ffs((int)longs) - 1;
            const int64_t from = __shfl_sync(FULL_WARP, (long long)begin, of);
            const int64_t to = __shfl_sync(FULL_WARP, (long long)end, of);
            unsigned own = 0;
            const double whole = sum_loaded([&](int64_t i) { return products.load(from + i, &own); }, to - from,
                                            tiles[threadIdx.x / 32]);
            own = warp_add(own);
            if (lane == of) sum = whole, count = own;
        }
        if (row >= rows) continue;
        if (is_longest) add_longest(longest, end - begin, (int32_t)row);
        else sums[row] = sum;
        lengths[row] = count > 0; /* form_longest sets those of the longest */
        counted += count;
    }
    counted = group_sum<32>(counted);
    if (lane == 0 && counted) atomicAdd(all, counted);
}

/* The products of the longest rows, and the lengths of these, a block a chunk. */
template <typename V>
static __global__ void __launch_bounds__(LONG_SUM_THREADS)
    form_longest(column_products<V> products, const int64_t *a_offsets, const long_runs *longest,
                 unsigned long long *all, int32_t *lengths, double *numbers)
{
    enum { EACH = CHUNK_NUMBERS / LONG_SUM_THREADS };
    const long_run run = run_of_chunk(longest, blockIdx.x);
    const int64_t begin = (int64_t)(blockIdx.x - run.chunk) * CHUNK_NUMBERS, from = a_offsets[run.place] + begin;
    const int64_t last = run.count - begin - 1;
    double own[EACH];
    unsigned count = 0;
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const int i = u * LONG_SUM_THREADS + (int)threadIdx.x;
        unsigned there = 0;
        own[u] = products.load(from + min((int64_t)i, last), &there);
        if (i <= last) count += there;
    }
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const int i = u * LONG_SUM_THREADS + (int)threadIdx.x;
        if (i <= last) numbers[run.from + begin + i] = own[u];
    }
    count = warp_add(count);
    if (threadIdx.x % 32 != 0 || count == 0) return;
    lengths[run.place] = 1;
    atomicAdd(all, (unsigned long long)count);
}

/* Sums to where C's rows have an entry; its columns too, if it has none yet. */
template <typename V>
static __global__ void place_sums(int64_t rows, const int64_t *offsets, const double *sums, int32_t *c_cols,
                                  V *c_values)
{
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || offsets[row] == offsets[row + 1]) return;
    if (c_cols) c_cols[offsets[row]] = 0;
    c_values[offsets[row]] = (V)sums[row];
}

/* ---- host ------------------------------------------------------------------------------------------------ */

struct column_sums {
    device_array<int32_t> lengths; /* of C's rows, 0 or 1 */
    device_array<double> sums;
    device_array<unsigned long long> products;
};

template <typename V>
static sp_status sum_longest(sp_context *context, const column_products<V> &products, const int64_t *a_offsets,
                             const long_runs *longest, column_sums *column)
{
    device_array<double> numbers;
    unsigned chunks;
    CUDA_CHECK(cudaMemcpyAsync(&chunks, &longest->chunks, sizeof chunks, cudaMemcpyDeviceToHost, stream_of(context)));
    CHECK(cuda_finish(context));
    if (chunks == 0) return SP_OK;
    CHECK(numbers.allocate(context, (int64_t)chunks * CHUNK_NUMBERS));
    form_longest<<<chunks, LONG_SUM_THREADS, 0, stream_of(context)>>>(
        products, a_offsets, longest, column->products.data, column->lengths.data, numbers.data);
    CUDA_CHECK(cudaGetLastError());
    return cuda_sum_long_runs(context, numbers.data, longest, (int64_t)chunks * CHUNK_NUMBERS,
                              write_sum<double>{column->sums.data});
}

template <typename V>
static sp_status sum_column(sp_context *context, const sp_csr *a, const sp_csr *b, column_sums *column)
{
    const column_products<V> products = {a->col_indices, (const V *)a->values,
                                         b->nnz < b->rows ? b->row_offsets : NULL, (const V *)b->values};
    const cudaStream_t stream = stream_of(context);
    const int64_t most = a->nnz / MOST_LONG_RUNS > LONG_ROW ? a->nnz / MOST_LONG_RUNS : (int64_t)LONG_ROW;
    const int each = a->nnz > SHORT_ROW * a->rows ? 1 : 32;
    const int64_t wanted = ceil_div(a->rows, each * (COLUMN_THREADS / 32));
    device_array<long_runs> longest;
    int blocks;
    CHECK(column->lengths.allocate(context, a->rows));
    CHECK(column->sums.allocate(context, a->rows));
    CHECK(column->products.allocate(context, 1));
    CHECK(column->products.fill(0, 1));
    CHECK(longest.allocate(context, 1));
    CHECK(longest.fill(0, 1));
    CHECK(cuda_full_grid(context, sum_rows<V>, COLUMN_THREADS, 0, &blocks));
    sum_rows<<<(unsigned)(wanted < blocks ? wanted : blocks), COLUMN_THREADS, 0, stream>>>(
        products, a->rows, a->row_offsets, each, most, longest.data, column->products.data, column->lengths.data,
        column->sums.data);
    CUDA_CHECK(cudaGetLastError());
    if (a->nnz <= most) return SP_OK; /* no row has more */
    return sum_longest(context, products, a->row_offsets, longest.data, column);
}

template <typename V>
static sp_status place_column(sp_context *context, const column_sums &column, int32_t *c_cols, sp_csr *c)
{
    place_sums<<<(unsigned)(c->rows / 256 + 1), 256, 0, stream_of(context)>>>(c->rows, c->row_offsets, column.sums.data,
                                                                             c_cols, (V *)c->values);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V>
static sp_status form_column(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    const cudaStream_t stream = stream_of(context);
    column_sums column;
    unsigned long long products;
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(cuda_allocate(context, ((size_t)a->rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    CHECK(sum_column<V>(context, a, b, &column));
    CHECK(cuda_scan_counts(context, a->rows, column.lengths.data, c->row_offsets));
    CUDA_CHECK(cudaMemcpyAsync(&products, column.products.data, sizeof products, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaMemcpyAsync(&c->nnz, c->row_offsets + a->rows, sizeof c->nnz, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    const double counted = wall_seconds();
    CHECK(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    CHECK(cuda_allocate(context, (size_t)c->nnz * sizeof(V), &c->values));
    CHECK(place_column<V>(context, column, c->col_indices, c));
    *info = {};
    info->products = (int64_t)products;
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    info->groups = 1;
    snprintf(info->group[0].name, sizeof info->group[0].name, "column");
    info->group[0].count = a->rows;
    CHECK(cuda_peak_beside(context, before, c, &info->peak_bytes));
    info->symbolic_seconds = counted - start;
    info->numeric_seconds = wall_seconds() - counted;
    return SP_OK;
}

bool cuda_is_column(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    return options->algorithm == SP_SPGEMM_AUTO && options->semiring == SP_PLUS_TIMES && !options->mask &&
           b->cols == 1 && a->rows > 0 && a->values && b->values && !left_out("spgemm-column");
}

sp_status sp_cuda_spgemm_column(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made = {};
    made.rows = a->rows;
    made.cols = 1;
    made.value_type = a->value_type;
    made.space = SP_DEVICE;
    const sp_status status = a->value_type == SP_F32 ? form_column<float>(context, a, b, &made, info)
                                                     : form_column<double>(context, a, b, &made, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status sp_cuda_spgemm_column_values(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    column_sums column;
    if (a->value_type == SP_F32) {
        CHECK(sum_column<float>(context, a, b, &column));
        return place_column<float>(context, column, NULL, c);
    }
    CHECK(sum_column<double>(context, a, b, &column));
    return place_column<double>(context, column, NULL, c);
}
