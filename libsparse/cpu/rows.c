/* Chunks, batches and joining of row-wise products; see rows.h. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "rows.h"

/* A chunk must be long against the few hundred nanoseconds that taking it costs, short against its batch. */
enum { CHUNK_PRODUCTS = 1 << 16, CHUNK_ROWS = 4096 };
/* A batch is a sixteenth of C: while it is joined its rows are there twice. But threads wait for each other after each,
 * which takes a time slice where the machine is busy, and much more than the caches hold costs as well: entries a
 * thread, at least and at most. Many threads would then hold all of a small C twice, hence no more than a quarter of
 * it for the sake of the waiting, unless that is less than BATCH_SMALL entries. */
enum { BATCH_SHARE = 16, BATCH_WAITING_SHARE = 4 };
enum { BATCH_LEAST = 1 << 19, BATCH_MOST = 1 << 20, BATCH_SMALL = 1 << 20 };

typedef struct chunk {
    int64_t count;  /* entries made */
    int64_t offset; /* in the buffer of the thread that made it */
    int thread;
} chunk;

/* A product under way. */
typedef struct run {
    sp_context *context;
    const row_method *method;
    const int64_t *products;
    int64_t chunk_count, *first; /* first row of each chunk, and the end */
    chunk *chunks;
    row_buffer *buffers; /* one a thread */
    size_t value_size;
    int64_t bound, bound_done; /* Σ min(products, entries a row may have): of all rows; of those that are made */
    int64_t largest;           /* the largest of these terms */
    sp_csr made;
    int64_t capacity; /* of made's arrays */
} run;

static sp_status grow_array(sp_context *context, int64_t used, int64_t capacity, size_t size, void **array)
{
    return *array ? sp_grow(context, used, capacity, size, array) : sp_alloc(context, capacity, size, array);
}

/* Room for `capacity` entries, `used` of which are kept. The first room is in huge pages, as all that is allocated at
 * once: faulting C in by small ones costs 8 ns an entry instead of 2. Blocks of huge pages move slowly, though, so C
 * gets its room at once, by an estimate, and hardly ever grows. */
static sp_status grow_entries(sp_context *context, int64_t used, int64_t capacity, size_t value_size,
                              int32_t **columns, void **values)
{
    sp_status status = grow_array(context, used, capacity, sizeof(int32_t), (void **)columns);
    if (status == SP_OK && value_size) status = grow_array(context, used, capacity, value_size, values);
    return status;
}

sp_status row_buffer_reserve(row_buffer *buffer, int64_t more)
{
    sp_status status;
    if (buffer->count + more <= buffer->capacity) return SP_OK;
    const int64_t needed = buffer->count + more;
    int64_t capacity = buffer->expected ? buffer->expected : buffer->capacity + buffer->capacity / 2;
    if (capacity < needed) capacity = needed + needed / 8;
#pragma omp critical(sp_row_buffer)
    status = grow_entries(buffer->context, buffer->count, capacity, buffer->value_size, &buffer->columns,
                          &buffer->values);
    if (status == SP_OK) buffer->capacity = capacity;
    return status;
}

sp_status row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t **products, int64_t *total,
                       int64_t *largest)
{
    sp_status status = sp_alloc(context, a->rows, sizeof **products, (void **)products);
    if (status != SP_OK) return status;
    int64_t sum = 0, most = 0, *out = *products;
    double about = 0; /* the sum again, to see whether it fits */
    bool overflow = false;
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, a->nnz)) reduction(+ : sum, about) \
    reduction(max : most) reduction(|| : overflow)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t row = 0;
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            int32_t j = a->col_indices[k];
            overflow |= __builtin_add_overflow(row, b->row_offsets[j + 1] - b->row_offsets[j], &row);
        }
        out[i] = row;
        sum = (int64_t)((uint64_t)sum + (uint64_t)row);
        about += (double)row;
        if (row > most) most = row;
    }
    if (overflow || about > 9e18)
        return sp_fail(context, SP_ERROR_OVERFLOW, "the product has more than 9e18 multiplications");
    *total = sum;
    *largest = most;
    return SP_OK;
}

sp_status row_chunks(sp_context *context, int64_t rows, const int64_t *products, int64_t **first, int64_t *count)
{
    int64_t capacity = 0, made = 0, row = 0;
    *first = NULL;
    for (;;) {
        if (made == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            sp_status status = sp_grow(context, made, capacity, sizeof **first, (void **)first);
            if (status != SP_OK) return status;
        }
        (*first)[made++] = row;
        if (row == rows) break;
        const int64_t start = row;
        int64_t sum = 0;
        while (row < rows && row - start < CHUNK_ROWS && sum < CHUNK_PRODUCTS) sum += products[row++];
    }
    *count = made - 1;
    return SP_OK;
}

static int64_t row_bound(const run *r, int64_t row)
{
    const int64_t most = r->method->row_entries ? r->method->row_entries : r->made.cols;
    return r->products[row] < most ? r->products[row] : most;
}

/* The chunk after the last one of the batch that starts at `first`. */
static int64_t batch_end(const run *r, int64_t first)
{
    const int64_t threads = r->method->threads;
    const double kept = r->bound_done ? (double)r->made.nnz / (double)r->bound_done : 1; /* of the bound, so far */
    const double all = kept * (double)r->bound, most = (double)BATCH_MOST * (double)threads;
    const double least = fmin((double)BATCH_LEAST * (double)threads, fmax(BATCH_SMALL, all / BATCH_WAITING_SHARE));
    const double room = fmin(fmax(all / BATCH_SHARE, least), most);
    double entries = 0;
    int64_t end = first;
    while (end < r->chunk_count && entries < (first ? room : BATCH_SMALL)) {
        for (int64_t i = r->first[end]; i < r->first[end + 1]; i++) entries += kept * (double)row_bound(r, i);
        end++;
    }
    return end;
}

/* How many entries C may come to have, if the rows to come are like those that are made; and what some rows may
 * reserve beyond what they have. */
static int64_t expected_entries(const run *r, int64_t nnz)
{
    const double estimate = (double)nnz * 1.05 * (double)r->bound / (double)(r->bound_done + 1);
    const int64_t most = nnz + r->bound - r->bound_done;
    return (estimate < (double)most ? (int64_t)estimate : most) + 4 * r->largest + 64;
}

/* Makes the rows of one chunk; lengths go into row_offsets[row + 1]. */
static sp_status make_chunk(run *r, int64_t i, int thread)
{
    const row_method *method = r->method;
    void *worker = (char *)method->workers + (size_t)thread * method->worker_size;
    row_buffer *out = &r->buffers[thread];
    int64_t *lengths = r->made.row_offsets + 1;
    sp_status status = sp_interrupted(r->context) ? SP_ERROR_INTERRUPTED : SP_OK;
    r->chunks[i] = (chunk){.offset = out->count, .thread = thread};
    if (method->rows) {
        if (status == SP_OK) status = method->rows(worker, r->first[i], r->first[i + 1], r->products, lengths, out);
    } else {
        for (int64_t row = r->first[i]; row < r->first[i + 1] && status == SP_OK; row++) {
            const int64_t before = out->count;
            status = method->row(worker, row, r->products[row], out);
            lengths[row] = out->count - before;
        }
    }
    r->chunks[i].count = out->count - r->chunks[i].offset;
    return status;
}

static sp_status make_batch(run *r, int64_t first, int64_t end)
{
    sp_status failure = SP_OK;
    for (int t = 0; t < r->method->threads; t++) r->buffers[t].count = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(r->method->threads)
    for (int64_t i = first; i < end; i++) {
        sp_status status;
#pragma omp atomic read
        status = failure;
        if (status != SP_OK) continue;
        status = make_chunk(r, i, omp_get_thread_num());
        if (status != SP_OK) {
#pragma omp atomic write
            failure = status;
        }
    }
    return failure;
}

/* Appends the chunks of a batch to C, which has room. */
static void join_batch(run *r, int64_t first, int64_t end)
{
    sp_csr *c = &r->made;
    const size_t size = r->value_size;
#pragma omp parallel for schedule(static) num_threads(r->method->threads)
    for (int64_t i = first; i < end; i++) {
        const chunk *from = &r->chunks[i];
        const row_buffer *buffer = &r->buffers[from->thread];
        const int64_t to = c->row_offsets[r->first[i]];
        if (from->count == 0) continue;
        memcpy(c->col_indices + to, buffer->columns + from->offset, (size_t)from->count * sizeof(int32_t));
        if (size)
            memcpy((char *)c->values + (size_t)to * size, (char *)buffer->values + (size_t)from->offset * size,
                   (size_t)from->count * size);
    }
}

/* All batches of several threads. */
static sp_status make_joined(run *r)
{
    sp_status status = SP_OK;
    int64_t *offsets = r->made.row_offsets;
    for (int64_t first = 0, end; first < r->chunk_count; first = end) {
        end = batch_end(r, first);
        SP_TRY(make_batch(r, first, end));
        for (int64_t row = r->first[first]; row < r->first[end]; row++) {
            offsets[row + 1] += offsets[row];
            r->bound_done += row_bound(r, row);
        }
        const int64_t nnz = offsets[r->first[end]];
        if (nnz > r->capacity) {
            const int64_t expected = expected_entries(r, nnz);
            r->capacity = expected > nnz ? expected : nnz;
            SP_TRY(grow_entries(r->context, r->made.nnz, r->capacity, r->value_size, &r->made.col_indices,
                                &r->made.values));
        }
        r->made.nnz = nnz;
        join_batch(r, first, end);
    }
done:
    return status;
}

/* One thread: its buffer becomes C. */
static sp_status make_alone(run *r)
{
    sp_status status = SP_OK;
    int64_t *offsets = r->made.row_offsets;
    row_buffer *buffer = r->buffers;
    for (int64_t i = 0; i < r->chunk_count; i++) {
        SP_TRY(make_chunk(r, i, 0));
        for (int64_t row = r->first[i]; row < r->first[i + 1]; row++) {
            offsets[row + 1] += offsets[row];
            r->bound_done += row_bound(r, row);
        }
        if (r->bound_done >= BATCH_MOST || r->bound_done >= r->bound / 8)
            buffer->expected = expected_entries(r, buffer->count);
    }
    if (buffer->capacity == 0) return SP_OK;
    sp_free(r->context, r->made.col_indices);
    sp_free(r->context, r->made.values);
    r->made.col_indices = buffer->columns;
    r->made.values = buffer->values;
    r->made.nnz = buffer->count;
    r->capacity = buffer->capacity;
    *buffer = (row_buffer){0};
done:
    return status;
}

static int64_t run_bytes(const run *r)
{
    int64_t bytes = r->chunk_count * (int64_t)(sizeof *r->chunks + sizeof *r->first);
    for (int t = 0; r->buffers && t < r->method->threads; t++)
        bytes += r->buffers[t].capacity * (int64_t)(sizeof(int32_t) + r->value_size);
    return bytes;
}

sp_status row_run(sp_context *context, int64_t rows, int64_t cols, const int64_t *products, const row_method *method,
                  sp_value_type type, sp_csr *c)
{
    run r = {.context = context, .method = method, .products = products,
             .value_size = method->pattern ? 0 : sp_value_size(type)};
    sp_status status;
    SP_TRY(row_chunks(context, rows, products, &r.first, &r.chunk_count));
    SP_TRY(sp_alloc(context, r.chunk_count, sizeof *r.chunks, (void **)&r.chunks));
    SP_TRY(sp_calloc(context, method->threads, sizeof *r.buffers, (void **)&r.buffers));
    for (int t = 0; t < method->threads; t++)
        r.buffers[t] = (row_buffer){.context = context, .value_size = r.value_size};
    SP_TRY(sp_csr_create(context, rows, cols, 0, type, SP_HOST, &r.made));
    memset(r.made.row_offsets, 0, ((size_t)rows + 1) * sizeof(int64_t));
    if (method->pattern) {
        sp_free(context, r.made.values);
        r.made.values = NULL;
    }
    for (int64_t i = 0; i < rows; i++) {
        r.bound += row_bound(&r, i);
        if (row_bound(&r, i) > r.largest) r.largest = row_bound(&r, i);
    }
    SP_TRY(method->threads == 1 ? make_alone(&r) : make_joined(&r));
    /* Without realloc the arrays would be there twice, for the sake of the few percent that they are too large. */
    if (r.capacity > r.made.nnz && (context->allocator.resize || r.capacity > r.made.nnz + r.made.nnz / 8))
        SP_TRY(grow_entries(context, r.made.nnz, r.made.nnz, r.value_size, &r.made.col_indices, &r.made.values));
done:
    if (method->bytes) *method->bytes += run_bytes(&r);
    for (int t = 0; r.buffers && t < method->threads; t++) {
        sp_free(context, r.buffers[t].columns);
        sp_free(context, r.buffers[t].values);
    }
    sp_free(context, r.buffers);
    sp_free(context, r.chunks);
    sp_free(context, r.first);
    if (status == SP_OK) *c = r.made;
    else sp_csr_free(context, &r.made);
    if (status == SP_ERROR_INTERRUPTED) sp_fail(context, status, "interrupted");
    return status;
}
