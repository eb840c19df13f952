/* Giant rows of C: rows of this many products, or elements of A, that all else would wait for their one warp or block.
 *
 * All products of these rows are written out as (row, column) and value, split evenly over blocks whatever the rows of
 * A and B, and sorted by a stable radix sort. Those of one entry of C then lie side by side in A's order; they are
 * added up before C has its arrays, as the entries of a row have to be counted anyway: one after another, as the CPU
 * does, for long runs by a warp (ordered_sum.cuh), for very long ones by all (long_sums.cuh). Plain products only, and
 * Markov products, which prune the sums (markov/cuda/hubs.cu).
 *
 * Bytes: 16 a product to write, 32 a pass of the sort, of 8 bits of row and column each, 16 to sum.
 */
#include <algorithm>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "device/long_sums.cuh"
#include "device/radix.cuh"
#include "device/running_sums.cuh"
#include "spgemm/cuda/classes.cuh"

/* A block writes as many products. */
enum { GIANT_THREADS = 256, WRITTEN_PRODUCTS = 2048 };
/* Up to this many products of an entry a lane adds alone, beside lanes with other entries. */
enum { SHORT_RUN = 64 };
/* From this many products on an entry is one of the device. A warp takes 53 us for them. */
enum { LONG_RUN = 1 << 15 };
/* The scratch, three keys and values a product while they are sorted, is to be a part of the room that is left, so that
 * C still fits, and of the order of the operands. Beyond that there are enough giant rows for a block each to keep the
 * device busy. Places are 32-bit. */
enum { SCRATCH_BYTES = 48, SCRATCH_SHARE = 4, FEW_GIANT_PRODUCTS = 1 << 24, MOST_GIANT_PRODUCTS = 1 << 30 };

/* ---- device: products ------------------------------------------------------------------------------------ */

/* What the rows are made of. Elements of A are numbered from 0 through all giant rows, and products likewise. */
template <typename V> struct giant_operands {
    matrix_view<V> a, b;
    const int32_t *rows;
    int64_t count;           /* of rows */
    const int64_t *elements; /* before each row, and all */
    int column_bits;         /* of a key, below the number of the row */
    int64_t f32_from;        /* rows with this many products or more multiply in f32 */
};

/* Where an element lies in A. */
template <typename V>
static __device__ __forceinline__ int64_t entry_of_a(const giant_operands<V> &giants, int64_t row, int64_t element)
{
    return giants.a.offsets[giants.rows[row]] + element - giants.elements[row];
}

/* Elements of a row, and products of an element; 0 behind the last. */
template <typename V> struct elements_of_row {
    giant_operands<V> giants;
    __device__ __forceinline__ int64_t operator()(int64_t row) const
    {
        if (row >= giants.count) return 0;
        return giants.a.offsets[giants.rows[row] + 1] - giants.a.offsets[giants.rows[row]];
    }
};
template <typename V> struct products_of_element {
    giant_operands<V> giants;
    int64_t elements;
    __device__ __forceinline__ int64_t operator()(int64_t element) const
    {
        if (element >= elements) return 0;
        const int64_t row = row_of_entry(giants.elements, giants.count, element);
        const int32_t k = giants.a.cols[entry_of_a(giants, row, element)];
        return giants.b.offsets[k + 1] - giants.b.offsets[k];
    }
};

/* Products in A's order; places[i]: products before element i, for elements + 1. */
template <typename V>
static __global__ void __launch_bounds__(GIANT_THREADS)
    write_products(giant_operands<V> giants, int64_t elements, const int64_t *places, int64_t products, uint64_t *keys,
                   double *values)
{
    const int64_t begin = (int64_t)blockIdx.x * WRITTEN_PRODUCTS, end = min(begin + WRITTEN_PRODUCTS, products);
    const int64_t first = row_of_entry(places, elements, begin), last = row_of_entry(places, elements, end - 1) + 1;
    for (int64_t at = begin + threadIdx.x; at < end; at += GIANT_THREADS) {
        const int64_t element = upper_bound_i64(places, first, last, at) - 1;
        const int64_t row = row_of_entry(giants.elements, giants.count, element);
        const int64_t from = entry_of_a(giants, row, element);
        const int64_t entry = giants.b.offsets[giants.a.cols[from]] + at - places[element];
        const bool in_f32 = giants.f32_from < INT64_MAX &&
                            places[giants.elements[row + 1]] - places[giants.elements[row]] >= giants.f32_from;
        keys[at] = (uint64_t)row << giants.column_bits | (uint32_t)giants.b.cols[entry];
        values[at] = product_of(giants.a.values[from], giants.b.values[entry], in_f32);
    }
}

/* ---- device: sums ---------------------------------------------------------------------------------------- */

/* Whether product i is the first of its entry of C. */
struct begins_run {
    const uint64_t *keys;
    __device__ __forceinline__ bool operator()(int32_t i) const { return i == 0 || keys[i] != keys[i - 1]; }
};

/* Columns and sums of the entries, from sorted products; heads[i]: the first product of entry i. A lane takes an
 * entry, the warp those of many products; those of more than `most` are listed for the device. */
static __global__ void __launch_bounds__(WARP_THREADS)
    sum_runs(const uint64_t *keys, const double *products, int count, const int32_t *heads, int runs, int column_bits,
             int most, long_runs *longest, int32_t *cols, double *sums)
{
    __shared__ double tiles[WARP_THREADS / 32][SUM_PLACES];
    double *tile = tiles[threadIdx.x / 32];
    const int lane = threadIdx.x & 31;
    for (int64_t base = (int64_t)first_warp() * 32; base < runs; base += (int64_t)all_warps() * 32) {
        const int64_t run = base + lane;
        const int begin = run < runs ? heads[run] : count, end = run + 1 < runs ? heads[run + 1] : count;
        const bool is_longest = end - begin > most, is_long = !is_longest && end - begin > SHORT_RUN;
        const bool is_short = end - begin <= SHORT_RUN;
        double sum = no_sum<true>();
        for (int at = begin; is_short && at < end; at++) sum = __dadd_rn(sum, products[at]);
        for (unsigned longs = __ballot_sync(FULL_WARP, is_long); longs; longs &= longs - 1) {
            const int of = __ffs((int)longs) - 1, from = __shfl_sync(FULL_WARP, begin, of);
            const double whole = sum_in_order(products + from, __shfl_sync(FULL_WARP, end, of) - from, tile);
            if (lane == of) sum = whole;
        }
        if (run >= runs) continue;
        cols[run] = (int32_t)(keys[begin] & (((uint64_t)1 << column_bits) - 1));
        if (is_longest) add_long_run(longest, begin, end - begin, (int32_t)run);
        else sums[run] = sum;
    }
}

/* ---- device: rows ---------------------------------------------------------------------------------------- */

/* The first entry whose row is `row` or one behind it. */
static __device__ __forceinline__ int64_t first_entry(const uint64_t *keys, const int32_t *heads, int64_t entries,
                                                      int64_t row, int column_bits)
{
    int64_t first = 0, last = entries;
    while (first < last) {
        const int64_t middle = (first + last) / 2;
        if ((int64_t)(keys[heads[middle]] >> column_bits) < row) first = middle + 1;
        else last = middle;
    }
    return first;
}

/* firsts[i]: entries before the i-th row, for count + 1; and the lengths of C's rows. */
static __global__ void find_rows_of_entries(const uint64_t *keys, const int32_t *heads, int64_t entries,
                                            int column_bits, const int32_t *rows, int64_t count, int64_t *firsts,
                                            int32_t *lengths)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i > count) return;
    firsts[i] = first_entry(keys, heads, entries, i, column_bits);
    if (i < count) lengths[rows[i]] = (int32_t)(first_entry(keys, heads, entries, i + 1, column_bits) - firsts[i]);
}

template <typename V>
static __global__ void write_entries(int64_t entries, const int32_t *rows, int64_t count, const int64_t *firsts,
                                     const int32_t *cols, const double *sums, const int64_t *offsets, int32_t *c_cols,
                                     V *c_values)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= entries) return;
    const int64_t row = row_of_entry(firsts, count, i), to = offsets[rows[row]] + i - firsts[row];
    c_cols[to] = cols[i];
    c_values[to] = (V)sums[i];
}

/* ---- host ------------------------------------------------------------------------------------------------ */

static unsigned giant_blocks(int64_t work) { return (unsigned)ceil_div(work, GIANT_THREADS); }

static sp_status fits_scratch(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t products, bool *fits)
{
    const int64_t usual = 4 * (a->nnz + b->nnz) + FEW_GIANT_PRODUCTS;
    size_t available;
    CHECK(cuda_available(context, &available));
    *fits = products <= usual && products <= MOST_GIANT_PRODUCTS &&
            products <= (int64_t)available / (SCRATCH_SHARE * SCRATCH_BYTES);
    return SP_OK;
}

/* The products of an entry of C beside each other, in A's order. */
struct sorted_products {
    device_array<uint64_t> keys;
    device_array<double> values;
    device_array<int32_t> heads;
    int64_t runs;
};

template <typename V>
static sp_status sort_products(sp_context *context, const giant_operands<V> &giants, int64_t elements,
                               const int64_t *places, int64_t products, sorted_products *sorted)
{
    device_array<uint64_t> keys;
    device_array<double> values;
    CHECK(keys.allocate(context, products));
    CHECK(values.allocate(context, products));
    CHECK(sorted->keys.allocate(context, products));
    CHECK(sorted->values.allocate(context, products));
    write_products<<<(unsigned)ceil_div(products, WRITTEN_PRODUCTS), GIANT_THREADS, 0, stream_of(context)>>>(
        giants, elements, places, products, keys.data, values.data);
    CUDA_CHECK(cudaGetLastError());
    return radix_sort_pairs(context, keys.data, sorted->keys.data, values.data, sorted->values.data, products,
                            giants.column_bits + radix_bits(giants.count));
}

/* Where the entries of C begin. */
static sp_status find_heads(sp_context *context, int64_t products, sorted_products *sorted)
{
    const thrust::counting_iterator<int32_t> places(0);
    const begins_run begins = {sorted->keys.data};
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> count;
    device_array<char> scratch;
    size_t bytes = 0;
    int32_t runs;
    CHECK(sorted->heads.allocate(context, products));
    CHECK(count.allocate(context, 1));
    const auto select = [&](void *memory) {
        return cub::DeviceSelect::If(memory, bytes, places, sorted->heads.data, count.data, (int)products, begins,
                                     stream);
    };
    CUDA_CHECK(select(nullptr));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(select(scratch.data));
    CUDA_CHECK(cudaMemcpyAsync(&runs, count.data, sizeof runs, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    sorted->runs = runs;
    return SP_OK;
}

static sp_status sum_products(sp_context *context, int column_bits, int64_t elements, const sorted_products &sorted,
                              giant_rows *giants, int32_t *lengths)
{
    const cudaStream_t stream = stream_of(context);
    device_array<long_runs> longest;
    int blocks;
    giants->entries = sorted.runs;
    CHECK(giants->firsts.allocate(context, giants->count + 1));
    CHECK(giants->cols.allocate(context, giants->entries));
    CHECK(giants->sums.allocate(context, giants->entries));
    find_rows_of_entries<<<giant_blocks(giants->count + 1), GIANT_THREADS, 0, stream>>>(
        sorted.keys.data, sorted.heads.data, giants->entries, column_bits, giants->rows.data, giants->count,
        giants->firsts.data, lengths);
    CUDA_CHECK(cudaGetLastError());
    if (giants->entries == 0) return SP_OK;
    const int64_t most = std::max((int64_t)LONG_RUN, giants->products / MOST_LONG_RUNS);
    CHECK(longest.allocate(context, 1));
    CHECK(longest.fill(0, 1));
    CHECK(cuda_full_grid(context, sum_runs, WARP_THREADS, 0, &blocks));
    blocks = (int)std::min((int64_t)blocks, ceil_div(giants->entries, WARP_THREADS));
    sum_runs<<<(unsigned)blocks, WARP_THREADS, 0, stream>>>(
        sorted.keys.data, sorted.values.data, (int)giants->products, sorted.heads.data, (int)giants->entries,
        column_bits, (int)most, longest.data, giants->cols.data, giants->sums.data);
    CUDA_CHECK(cudaGetLastError());
    if (elements <= most) return SP_OK; /* an entry has no more products than its row has elements */
    return cuda_sum_long_runs(context, sorted.values.data, longest.data, giants->products,
                              write_sum<double>{giants->sums.data});
}

/* The same as form_giant_rows, but an error where memory lacks. */
template <typename V>
static sp_status sort_giants(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t f32_from, int32_t *lengths,
                             giant_rows *giants, bool *formed)
{
    device_array<int64_t> elements, places;
    sorted_products sorted = {};
    int64_t all;
    CHECK(elements.allocate(context, giants->count + 1));
    const giant_operands<V> operands = {view_of<V>(a),  view_of<V>(b),       giants->rows.data, giants->count,
                                        elements.data,  radix_bits(b->cols), f32_from};
    CHECK(sum_before(context, elements_of_row<V>{operands}, giants->count, elements.data, &all));
    CHECK(places.allocate(context, all + 1));
    CHECK(sum_before(context, products_of_element<V>{operands, all}, all, places.data, &giants->products));
    CHECK(fits_scratch(context, a, b, giants->products, formed));
    if (!*formed) return SP_OK;
    if (giants->products > 0) {
        CHECK(sort_products(context, operands, all, places.data, giants->products, &sorted));
        CHECK(find_heads(context, giants->products, &sorted));
    }
    return sum_products(context, operands.column_bits, all, sorted, giants, lengths);
}

template <typename V>
sp_status form_giant_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const int32_t *rows, int64_t count,
                          int64_t f32_from, int32_t *lengths, giant_rows *giants, bool *formed)
{
    sp_status status = giants->rows.allocate(context, count);
    *formed = false;
    giants->count = count;
    if (status == SP_OK) {
        CUDA_CHECK(cudaMemcpyAsync(giants->rows.data, rows, (size_t)count * sizeof *rows, cudaMemcpyDeviceToDevice,
                                   stream_of(context)));
        status = sort_giants<V>(context, a, b, f32_from, lengths, giants, formed);
    }
    if (status == SP_ERROR_DEVICE_MEMORY) *formed = false;
    else if (status != SP_OK) return status;
    if (*formed) return SP_OK;
    giants->count = giants->products = giants->entries = 0;
    giants->rows.free();
    giants->firsts.free();
    giants->cols.free();
    giants->sums.free();
    return SP_OK;
}

template <typename V> sp_status write_giants(warp_run<V> *run)
{
    sp_context *context = run->context;
    const giant_rows &giants = run->giants;
    if (giants.entries == 0) return SP_OK;
    write_entries<<<giant_blocks(giants.entries), GIANT_THREADS, 0, stream_of(context)>>>(
        giants.entries, giants.rows.data, giants.count, giants.firsts.data, giants.cols.data, giants.sums.data,
        run->job.offsets, run->job.c_cols, run->job.c_values);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template sp_status form_giant_rows<float>(sp_context *, const sp_csr *, const sp_csr *, const int32_t *, int64_t,
                                          int64_t, int32_t *, giant_rows *, bool *);
template sp_status form_giant_rows<double>(sp_context *, const sp_csr *, const sp_csr *, const int32_t *, int64_t,
                                           int64_t, int32_t *, giant_rows *, bool *);
template sp_status write_giants(warp_run<float> *);
template sp_status write_giants(warp_run<double> *);
