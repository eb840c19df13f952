/* C = A·B on a CUDA device: chooses the algorithm, and cuts A into blocks of rows where C goes to host memory.
 *
 * The room, from here down:
 *   small.cu, small_rows.cuh    matrices whose time is latency: four launches, a warp's packs or a block a row
 *   column.cu                   B of one column: a sum a row of A
 *   warp.cu                     all others: two phases, a launch a class of rows
 *     classes.cuh, classes.cu   the classes, what each is for, and which class takes a row; launches
 *     merged.cu                 short rows like their neighbours: a lane each, which merges rows of B
 *     short.cu, pack.cuh        rows of few products: packs sorted in registers
 *     tables.cu                 a warp's hash table
 *     sorted.cu                 products sorted by a block: rows of nearly distinct columns
 *     ranked.cu, rank.cuh       sums at the rank of the column: rows whose columns lie close together
 *     dense.cu                  a sum a column: B of few columns
 *     wide.cu                   bits by a block, sums by parts: all other rows; the index of B
 *     giant.cu                  products sorted by the whole device: rows that others would wait for
 *     walk.cuh                  the products of a row, in A's order; what they are made of and how they are added
 *   plan/terms.cu               plans: sums of products whose places are listed
 *     list.cu, tiles.cu         the lists: products by entry of C; tiles
 *   hash.cu, hash_rows.cuh, numeric.cuh   the paper's hash product in two phases, PWPR and TBPR; Markov's kernels
 *   aia.cu, aia.cuh             the gather stage of the same paper
 *
 * A block is a matrix of its own: offsets from 0, columns and values where they lie. Its C is bounded by its products
 * and by its columns; where less room is needed than the bound says, blocks are smaller than they could be, which
 * costs some launches. Where more is needed, since algorithms have tables of their own, the block is halved. The rows
 * of a block are moved to the host before the next block begins. Plans whose C lies on the host are executed the same
 * way, with bounds that are exact.
 */
#include <cub/device/device_scan.cuh>
#include <string.h>

#include "contract/cuda/contract.cuh"
#include "spgemm/cuda/plan/terms.cuh"

/* Bytes that the algorithms need a row beside C, its offsets included. */
enum { ROW_BYTES = 48 };

/* ---- blocks of rows -------------------------------------------------------------------------------------- */

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

static __global__ void shift_offsets(int64_t count, int64_t shift, const int64_t *from, int64_t *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i] + shift;
}

static sp_status shift(sp_context *context, int64_t count, int64_t by, const int64_t *from, int64_t *to)
{
    shift_offsets<<<(unsigned)((count + 255) / 256), 256, 0, stream_of(context)>>>(count, by, from, to);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

static sp_status read_one(sp_context *context, const int64_t *from, int64_t *value)
{
    return context->backend->copy(context, value, SP_HOST, from, SP_DEVICE, sizeof *value);
}

/* Rows of a device matrix; its entries are the matrix's own. */
struct row_block {
    sp_csr matrix;
    device_array<int64_t> offsets;
};

static sp_status cut_rows(sp_context *context, const sp_csr *matrix, int64_t first, int64_t end, row_block *block)
{
    int64_t begin, past;
    block->matrix = *matrix;
    if (first == 0 && end == matrix->rows) return SP_OK;
    CHECK(read_one(context, matrix->row_offsets + first, &begin));
    CHECK(read_one(context, matrix->row_offsets + end, &past));
    CHECK(block->offsets.allocate(context, end - first + 1));
    CHECK(shift(context, end - first + 1, -begin, matrix->row_offsets + first, block->offsets.data));
    block->matrix.rows = end - first;
    block->matrix.nnz = past - begin;
    block->matrix.row_offsets = block->offsets.data;
    block->matrix.col_indices += begin;
    if (matrix->values) block->matrix.values = (char *)matrix->values + begin * sp_value_size(matrix->value_type);
    return SP_OK;
}

/* The room on the device for a block, with an eighth for what the pool wastes. */
static sp_status room_for_block(sp_context *context, int64_t *room)
{
    size_t available;
    CHECK(cuda_available(context, &available));
    *room = (int64_t)(available - available / 8);
    return SP_OK;
}

/* ---- products to the host -------------------------------------------------------------------------------- */

/* In place: from the products of each row to the bytes that its part of C may take, at most `most`. */
static __global__ void bound_bytes(int64_t rows, int64_t cols, const int64_t *mask_offsets, bool complement,
                                   int64_t entry_bytes, int64_t most, int64_t *bytes)
{
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int64_t entries = min(bytes[row], cols);
    if (mask_offsets) {
        const int64_t masked = mask_offsets[row + 1] - mask_offsets[row];
        entries = min(entries, complement ? cols - masked : masked);
    }
    bytes[row] = min(ROW_BYTES + entries * entry_bytes + entries / 16, most);
}

/* before[i] = the bytes that the first i rows of C may take, for rows + 1 places. */
static sp_status bound_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                            device_array<int64_t> *before)
{
    const int64_t most = ((int64_t)1 << 62) / (a->rows + 1); /* whatever the rows, the sum fits */
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + sp_value_size(a->value_type));
    device_array<char> scratch;
    size_t bytes = 0;
    CHECK(before->allocate(context, a->rows + 1));
    CHECK(before->fill(0, a->rows + 1));
    CHECK(cuda_row_products(context, a, b, before->data));
    bound_bytes<<<(unsigned)(a->rows / 256 + 1), 256, 0, stream_of(context)>>>(
        a->rows, b->cols, options->mask ? options->mask->row_offsets : NULL, options->complement, entry_bytes, most,
        before->data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, before->data, before->data, a->rows + 1,
                                             stream_of(context)));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(scratch.data, bytes, before->data, before->data, a->rows + 1,
                                             stream_of(context)));
    return SP_OK;
}

/* The end of the rows from `first` on that fit into *room bytes; a single row is tried whatever its bound. *room
 * becomes what they may take. */
static sp_status end_of_block(sp_context *context, const int64_t *before, int64_t first, int64_t rows, int64_t *room,
                              int64_t *end)
{
    int64_t low = first + 1, high = rows, start, bytes, taken = 0;
    CHECK(read_one(context, before + first, &start));
    for (int64_t middle = high; low < high; middle = (low + high + 1) / 2) {
        CHECK(read_one(context, before + middle, &bytes));
        if (bytes - start <= *room) {
            low = middle;
            taken = bytes - start;
        } else {
            high = middle - 1;
        }
    }
    *room = taken;
    *end = low;
    return SP_OK;
}

/* Appends the rows of a device matrix to C on the host, which has offsets for all its rows. */
static sp_status append_rows(sp_context *context, const sp_csr *block, int64_t first, sp_csr *c)
{
    const int64_t nnz = c->nnz + block->nnz;
    const size_t size = sp_value_size(c->value_type), added = (size_t)block->nnz, there = (size_t)c->nnz;
    int64_t *offsets = c->row_offsets + first;
    CHECK(sp_grow(context, c->nnz, nnz, sizeof(int32_t), (void **)&c->col_indices));
    if (c->values) CHECK(sp_grow(context, c->nnz, nnz, size, &c->values));
    CHECK(context->backend->copy(context, offsets, SP_HOST, block->row_offsets, SP_DEVICE,
                                 ((size_t)block->rows + 1) * sizeof(int64_t)));
    for (int64_t i = 0; i <= block->rows; i++) offsets[i] += c->nnz;
    CHECK(context->backend->copy(context, c->col_indices + c->nnz, SP_HOST, block->col_indices, SP_DEVICE,
                                 added * sizeof(int32_t)));
    if (c->values)
        CHECK(context->backend->copy(context, (char *)c->values + there * size, SP_HOST, block->values, SP_DEVICE,
                                     added * size));
    c->nnz = nnz;
    return SP_OK;
}

static void add_info(sp_spgemm_info *sum, const sp_spgemm_info *part)
{
    sum->products += part->products;
    sum->product_nnz += part->product_nnz;
    sum->nnz += part->nnz;
    sum->batches++;
    sum->analysis_seconds += part->analysis_seconds;
    sum->aia_seconds += part->aia_seconds;
    sum->symbolic_seconds += part->symbolic_seconds;
    sum->numeric_seconds += part->numeric_seconds;
    for (int i = 0; i < part->groups; i++) {
        int at = 0;
        while (at < sum->groups && strcmp(sum->group[at].name, part->group[i].name) != 0) at++;
        if (at == SP_SPGEMM_GROUPS) continue;
        if (at == sum->groups) sum->group[sum->groups++] = part->group[i];
        else sum->group[at].count += part->group[i].count;
    }
}

/* C where an operand has no entries: rows by classes would take 60 us to find that out. */
static sp_status multiply_nothing(sp_context *context, const sp_csr *a, const sp_csr *b, sp_semiring semiring,
                                  sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made;
    *info = {};
    info->batches = 1;
    CHECK(sp_csr_create(context, a->rows, b->cols, 0, a->value_type, SP_DEVICE, &made));
    if (semiring == SP_OR_AND) {
        cuda_release(context, made.values);
        made.values = NULL;
    }
    sp_status status = cuda_status(
        context, cudaMemsetAsync(made.row_offsets, 0, ((size_t)a->rows + 1) * sizeof(int64_t), stream_of(context)),
        "cudaMemsetAsync");
    if (status == SP_OK) status = cuda_finish(context);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

static sp_status multiply(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          sp_csr *c, sp_spgemm_info *info)
{
    if (a->nnz == 0 || b->nnz == 0) return multiply_nothing(context, a, b, options->semiring, c, info);
    if (cuda_is_small(a, b, options)) return sp_cuda_spgemm_small(context, a, b, c, info);
    if (cuda_is_column(a, b, options)) return sp_cuda_spgemm_column(context, a, b, c, info);
    return options->algorithm == SP_SPGEMM_HASH ? sp_cuda_spgemm_hash(context, a, b, options, c, info)
                                                : sp_cuda_spgemm_warp(context, a, b, options, c, info);
}

/* The rows first..end of C, appended to it. */
static sp_status multiply_block(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, int64_t first, int64_t end, sp_csr *c,
                                sp_spgemm_info *info)
{
    row_block rows, mask;
    sp_spgemm_options own = *options;
    sp_spgemm_info part = {};
    sp_csr made = {};
    CHECK(cut_rows(context, a, first, end, &rows));
    if (options->mask) {
        CHECK(cut_rows(context, options->mask, first, end, &mask));
        own.mask = &mask.matrix;
    }
    CHECK(multiply(context, &rows.matrix, b, &own, &made, &part));
    const double start = wall_seconds();
    const sp_status status = append_rows(context, &made, first, c);
    sp_csr_free(context, &made);
    part.numeric_seconds += wall_seconds() - start;
    if (status == SP_OK) add_info(info, &part);
    return status;
}

static sp_status multiply_blocks(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    device_array<int64_t> before;
    int64_t room, end, peak;
    size_t used;
    CHECK(cuda_watch_peak(context, &used));
    CHECK(bound_rows(context, a, b, options, &before));
    CHECK(cuda_finish(context));
    info->analysis_seconds = wall_seconds() - start;
    CHECK(room_for_block(context, &room));
    for (int64_t first = 0; first < a->rows;) {
        int64_t taken = room;
        CHECK(end_of_block(context, before.data, first, a->rows, &taken, &end));
        const sp_status status = multiply_block(context, a, b, options, first, end, c, info);
        if (status == SP_OK) first = end;
        else if (status == SP_ERROR_DEVICE_MEMORY && end - first > 1) room = taken / 2;
        else return status;
        CHECK(cuda_finish(context));
        /* The algorithms watch from their own beginnings. */
        CHECK(cuda_peak(context, used, &peak));
        if (peak > info->peak_bytes) info->peak_bytes = peak;
    }
    return SP_OK;
}

static sp_status multiply_to_host(sp_context *context, const sp_csr *a, const sp_csr *b,
                                  const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made;
    *info = {};
    CHECK(sp_csr_create(context, a->rows, b->cols, 0, a->value_type, SP_HOST, &made));
    made.row_offsets[0] = 0;
    if (options->semiring == SP_OR_AND) {
        sp_free(context, made.values);
        made.values = NULL;
    }
    const sp_status status = multiply_blocks(context, a, b, options, &made, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- patterns as operands -------------------------------------------------------------------------------- */

template <typename V> static __global__ void fill_ones(int64_t count, V *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = 1;
}

/* The ones of a pattern, written out: the kernels for plain products read values, and are far ahead of those that
 * ask at each product whether there are any. Without room for them, the others serve. */
static sp_status write_ones(sp_context *context, sp_csr *matrix, device_array<char> *ones)
{
    const int64_t count = matrix->nnz;
    if (matrix->values || count == 0) return SP_OK;
    const sp_status status = ones->allocate(context, count * (int64_t)sp_value_size(matrix->value_type));
    if (status == SP_ERROR_DEVICE_MEMORY) return SP_OK;
    if (status != SP_OK) return status;
    const unsigned blocks = (unsigned)((count + 255) / 256);
    if (matrix->value_type == SP_F32)
        fill_ones<<<blocks, 256, 0, stream_of(context)>>>(count, (float *)ones->data);
    else
        fill_ones<<<blocks, 256, 0, stream_of(context)>>>(count, (double *)ones->data);
    CUDA_CHECK(cudaGetLastError());
    matrix->values = ones->data;
    return SP_OK;
}

sp_status sp_cuda_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         sp_csr *c, sp_spgemm_info *info)
{
    sp_csr a_valued = *a, b_valued = *b;
    device_array<char> a_ones, b_ones;
    if (options->algorithm == SP_SPGEMM_DENSE)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "dense accumulators for all rows are the CPU's");
    if (options->semiring == SP_PLUS_TIMES && !options->mask) {
        bool done = false;
        if (options->algorithm == SP_SPGEMM_AUTO && !options->to_host) {
            const sp_status status = cuda_multiply_patterns(context, a, b, c, info, &done);
            if (status != SP_ERROR_DEVICE_MEMORY && (done || status != SP_OK)) return status;
        }
        CHECK(write_ones(context, &a_valued, &a_ones));
        CHECK(write_ones(context, &b_valued, &b_ones));
        a = &a_valued;
        b = &b_valued;
    }
    if (!options->to_host) {
        const sp_status status = multiply(context, a, b, options, c, info);
        if (status != SP_ERROR_DEVICE_MEMORY) return status;
    }
    return multiply_to_host(context, a, b, options, c, info);
}

/* ---- plans ----------------------------------------------------------------------------------------------- */

/* What the numeric phase has to know of the options that it no longer sees. */
struct plan_state {
    bool masked; /* there are products outside the pattern */
    kept_rows *rows;
    product_terms terms; /* where no rows are kept */
};

/* Keeps what the numeric phase is faster with, as far as there is room. On failure frees pattern and state. */
static sp_status keep_products(sp_context *context, const sp_csr *a, const sp_csr *b, sp_semiring semiring,
                               sp_csr *pattern, plan_state **state, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    plan_state *kept = *state;
    sp_status status = SP_OK;
    if (semiring == SP_PLUS_TIMES && !kept->masked)
        status = cuda_keep_rows(context, a, b, pattern, &kept->rows, &info->plan_bytes);
    if (status == SP_OK && !kept->rows) {
        status = cuda_make_terms(context, a, b, kept->masked, pattern, info->products, &kept->terms);
        info->plan_bytes = kept->terms.bytes;
    }
    info->symbolic_seconds += wall_seconds() - start;
    if (status == SP_OK) return SP_OK;
    sp_cuda_spgemm_forget(context, *state);
    *state = NULL;
    sp_csr_free(context, pattern);
    return status;
}

/* C without its values. Plain products have kernels of their own, which form values and pattern in less time than the
 * others take for the pattern alone; so they go first, if there is room for values. The hash algorithm and that for
 * one column have no patterns. */
static sp_status form_pattern(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              bool column, sp_csr *pattern, sp_spgemm_info *info)
{
    sp_csr a_pattern = *a, b_pattern = *b;
    sp_spgemm_options own = *options;
    const bool valued = options->algorithm == SP_SPGEMM_HASH || column;
    const bool plain = options->semiring == SP_PLUS_TIMES && !options->mask && !options->to_host &&
                       options->algorithm != SP_SPGEMM_DENSE; /* which the other way refuses */
    if (valued || (plain && a->values && b->values)) {
        const sp_status status = valued ? sp_cuda_spgemm(context, a, b, options, pattern, info)
                                        : multiply(context, a, b, options, pattern, info);
        if (status == SP_OK) {
            sp_array_free(context, pattern->space, pattern->values);
            pattern->values = NULL;
        }
        if (valued || status != SP_ERROR_DEVICE_MEMORY) return status;
    }
    own.semiring = SP_OR_AND;
    a_pattern.values = b_pattern.values = NULL;
    return sp_cuda_spgemm(context, &a_pattern, &b_pattern, &own, pattern, info);
}

sp_status sp_cuda_spgemm_symbolic(sp_context *context, const sp_csr *a, const sp_csr *b,
                                  const sp_spgemm_options *options, sp_csr *pattern, void **state,
                                  sp_spgemm_info *info)
{
    const bool column = cuda_is_column(a, b, options); /* which needs no list of products */
    CHECK(sp_calloc(context, 1, sizeof(plan_state), state));
    ((plan_state *)*state)->masked = options->mask != NULL;
    const sp_status status = form_pattern(context, a, b, options, column, pattern, info);
    if (status != SP_OK) {
        sp_free(context, *state);
        *state = NULL;
        return status;
    }
    info->symbolic_seconds += info->numeric_seconds;
    info->numeric_seconds = 0;
    if (pattern->space == SP_DEVICE && options->semiring != SP_OR_AND && !column)
        return keep_products(context, a, b, options->semiring, pattern, (plan_state **)state, info);
    return SP_OK;
}

/* Values for the rows first..end of C on the host. */
static sp_status fill_block(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                            int64_t first, int64_t end, sp_csr *c)
{
    const int64_t begin = c->row_offsets[first], count = c->row_offsets[end] - begin, offsets = end - first + 1;
    const size_t size = sp_value_size(c->value_type);
    row_block rows;
    sp_csr part;
    CHECK(cut_rows(context, a, first, end, &rows));
    CHECK(sp_csr_create(context, end - first, c->cols, count, c->value_type, SP_DEVICE, &part));
    sp_status status = context->backend->copy(context, part.row_offsets, SP_DEVICE, c->row_offsets + first, SP_HOST,
                                              (size_t)offsets * sizeof(int64_t));
    if (status == SP_OK) status = shift(context, offsets, -begin, part.row_offsets, part.row_offsets);
    if (status == SP_OK)
        status = context->backend->copy(context, part.col_indices, SP_DEVICE, c->col_indices + begin, SP_HOST,
                                        (size_t)count * sizeof(int32_t));
    if (status == SP_OK) status = sp_cuda_spgemm_warp_values(context, &rows.matrix, b, options, &part);
    if (status == SP_OK)
        status = context->backend->copy(context, (char *)c->values + (size_t)begin * size, SP_HOST, part.values,
                                        SP_DEVICE, (size_t)count * size);
    sp_csr_free(context, &part);
    return status;
}

/* The end of the rows of C from `first` on that take at most `room` bytes; one row at least. */
static int64_t end_of_rows(const sp_csr *c, int64_t first, int64_t room)
{
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + sp_value_size(c->value_type));
    int64_t low = first + 1, high = c->rows;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2, entries = c->row_offsets[middle] - c->row_offsets[first];
        if (ROW_BYTES * (middle - first) + entries * entry_bytes + entries / 16 <= room) low = middle;
        else high = middle - 1;
    }
    return low;
}

sp_status sp_cuda_spgemm_numeric(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, void *state, sp_csr *c)
{
    sp_spgemm_options own = *options;
    int64_t room;
    const plan_state *kept = (const plan_state *)state;
    own.mask = kept->masked ? c : NULL;
    if (c->space == SP_DEVICE) {
        if (cuda_is_column(a, b, &own)) return sp_cuda_spgemm_column_values(context, a, b, c);
        if (kept->rows && a->values && b->values) return cuda_sum_rows(context, kept->rows, a, b, c);
        if (kept->terms.tile) return cuda_sum_terms(context, &kept->terms, a, b, options->semiring, c);
        return sp_cuda_spgemm_warp_values(context, a, b, &own, c);
    }
    CHECK(room_for_block(context, &room));
    for (int64_t first = 0; first < c->rows;) {
        const int64_t end = end_of_rows(c, first, room);
        const sp_status status = fill_block(context, a, b, &own, first, end, c);
        if (status == SP_OK) first = end;
        else if (status == SP_ERROR_DEVICE_MEMORY && end - first > 1) room /= 2;
        else return status;
        CHECK(cuda_finish(context));
    }
    return SP_OK;
}

void sp_cuda_spgemm_forget(sp_context *context, void *state)
{
    cuda_free_rows(context, ((plan_state *)state)->rows);
    cuda_free_terms(context, &((plan_state *)state)->terms);
    sp_free(context, state);
}
