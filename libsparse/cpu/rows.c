/* Chunks, batches and joining of row-wise products; see rows.h. */
#include <omp.h>
#include <string.h>

#include "rows.h"

/* A chunk must be long against the few hundred nanoseconds that taking it costs, short against the whole. */
enum { CHUNK_PRODUCTS = 1 << 18, CHUNK_ROWS = 512 };
/* A batch ends when its rows may hold this many entries: 8 MB of columns and f32 values. */
enum { BATCH_ENTRIES = 1 << 20 };

typedef struct chunk {
    int64_t first_row;
    int64_t count;  /* entries made */
    int64_t offset; /* in the buffer of the thread that made it */
    int thread;
} chunk;

sp_status row_buffer_reserve(row_buffer *buffer, int64_t more)
{
    sp_status status = SP_OK;
    if (buffer->count + more <= buffer->capacity) return SP_OK;
    int64_t capacity = buffer->capacity + buffer->capacity / 2;
    if (capacity < buffer->count + more) capacity = buffer->count + more;
#pragma omp critical(sp_row_buffer)
    {
        status = sp_grow(buffer->context, buffer->count, capacity, sizeof(int32_t), (void **)&buffer->columns);
        if (status == SP_OK)
            status = sp_grow(buffer->context, buffer->count, capacity, buffer->value_size, &buffer->values);
    }
    if (status == SP_OK) buffer->capacity = capacity;
    return status;
}

sp_status row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t **products, int64_t *total,
                       int64_t *largest)
{
    sp_status status = sp_alloc(context, a->rows, sizeof **products, (void **)products);
    if (status != SP_OK) return status;
    int64_t sum = 0, most = 0, *out = *products;
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, a->nnz)) reduction(+ : sum) \
    reduction(max : most)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t row = 0;
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            int32_t j = a->col_indices[k];
            row += b->row_offsets[j + 1] - b->row_offsets[j];
        }
        out[i] = row;
        sum += row;
        if (row > most) most = row;
    }
    *total = sum;
    *largest = most;
    return SP_OK;
}

/* Cuts rows into chunks; chunks[count].first_row is the end. */
static sp_status cut_chunks(sp_context *context, int64_t rows, const int64_t *products, chunk **chunks, int64_t *count)
{
    int64_t capacity = 0, made = 0, row = 0;
    *chunks = NULL;
    do {
        if (made == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            sp_status status = sp_grow(context, made, capacity, sizeof **chunks, (void **)chunks);
            if (status != SP_OK) return status;
        }
        (*chunks)[made++] = (chunk){.first_row = row};
        int64_t first = row;
        for (int64_t sum = 0; row < rows && row - first < CHUNK_ROWS && sum < CHUNK_PRODUCTS; row++) sum += products[row];
    } while ((*chunks)[made - 1].first_row < rows);
    *count = made - 1;
    return SP_OK;
}

/* The chunk after the last one of the batch that starts at `first`. */
static int64_t batch_end(const chunk *chunks, int64_t first, int64_t count, const int64_t *products, int64_t most)
{
    int64_t entries = 0, end = first;
    while (end < count && entries < BATCH_ENTRIES) {
        for (int64_t i = chunks[end].first_row; i < chunks[end + 1].first_row; i++)
            entries += products[i] < most ? products[i] : most;
        end++;
    }
    return end;
}

/* Makes the rows of one batch; lengths go into row_offsets[row + 1]. */
static sp_status make_batch(sp_context *context, chunk *chunks, int64_t first, int64_t end, const int64_t *products,
                            const row_method *method, row_buffer *buffers, int64_t *row_offsets)
{
    sp_status failure = SP_OK;
    for (int t = 0; t < method->threads; t++) buffers[t].count = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(method->threads)
    for (int64_t i = first; i < end; i++) {
        sp_status status;
#pragma omp atomic read
        status = failure;
        if (status != SP_OK) continue;
        int thread = omp_get_thread_num();
        void *worker = (char *)method->workers + (size_t)thread * method->worker_size;
        row_buffer *out = &buffers[thread];
        chunks[i].thread = thread;
        chunks[i].offset = out->count;
        if (sp_interrupted(context)) status = SP_ERROR_INTERRUPTED;
        for (int64_t row = chunks[i].first_row; row < chunks[i + 1].first_row && status == SP_OK; row++) {
            int64_t before = out->count;
            status = method->row(worker, row, products[row], out);
            row_offsets[row + 1] = out->count - before;
        }
        chunks[i].count = out->count - chunks[i].offset;
        if (status != SP_OK) {
#pragma omp atomic write
            failure = status;
        }
    }
    return failure;
}

/* Appends the chunks of a batch to C, which has room. */
static void join_batch(sp_context *context, const chunk *chunks, int64_t first, int64_t end, const row_buffer *buffers,
                       size_t value_size, sp_csr *c)
{
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, c->nnz))
    for (int64_t i = first; i < end; i++) {
        if (chunks[i].count == 0) continue;
        const row_buffer *from = &buffers[chunks[i].thread];
        int64_t to = c->row_offsets[chunks[i].first_row];
        memcpy(c->col_indices + to, from->columns + chunks[i].offset, (size_t)chunks[i].count * sizeof(int32_t));
        memcpy((char *)c->values + (size_t)to * value_size, (char *)from->values + (size_t)chunks[i].offset * value_size,
               (size_t)chunks[i].count * value_size);
    }
}

sp_status row_run(sp_context *context, int64_t rows, int64_t cols, const int64_t *products, const row_method *method,
                  sp_value_type type, sp_csr *c)
{
    sp_csr made = {0};
    chunk *chunks = NULL;
    row_buffer *buffers = NULL;
    int64_t chunk_count, capacity = 0, row_entries = method->row_entries ? method->row_entries : cols;
    size_t value_size = sp_value_size(type);
    sp_status status;
    SP_TRY(cut_chunks(context, rows, products, &chunks, &chunk_count));
    SP_TRY(sp_calloc(context, method->threads, sizeof *buffers, (void **)&buffers));
    for (int t = 0; t < method->threads; t++) buffers[t] = (row_buffer){.context = context, .value_size = value_size};
    SP_TRY(sp_csr_create(context, rows, cols, 0, type, SP_HOST, &made));
    made.row_offsets[0] = 0;

    for (int64_t first = 0, end; first < chunk_count; first = end) {
        end = batch_end(chunks, first, chunk_count, products, row_entries);
        SP_TRY(make_batch(context, chunks, first, end, products, method, buffers, made.row_offsets));
        for (int64_t row = chunks[first].first_row; row < chunks[end].first_row; row++)
            made.row_offsets[row + 1] += made.row_offsets[row];
        int64_t nnz = made.row_offsets[chunks[end].first_row];
        if (nnz > capacity) {
            capacity = end == chunk_count ? nnz : nnz + nnz / 2;
            SP_TRY(sp_grow(context, made.nnz, capacity, sizeof(int32_t), (void **)&made.col_indices));
            SP_TRY(sp_grow(context, made.nnz, capacity, value_size, &made.values));
        }
        made.nnz = nnz;
        join_batch(context, chunks, first, end, buffers, value_size, &made);
    }
    if (capacity > made.nnz) {
        SP_TRY(sp_grow(context, made.nnz, made.nnz, sizeof(int32_t), (void **)&made.col_indices));
        SP_TRY(sp_grow(context, made.nnz, made.nnz, value_size, &made.values));
    }
done:
    for (int t = 0; buffers && t < method->threads; t++) {
        sp_free(context, buffers[t].columns);
        sp_free(context, buffers[t].values);
    }
    sp_free(context, buffers);
    sp_free(context, chunks);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    if (status == SP_ERROR_INTERRUPTED) sp_fail(context, status, "interrupted");
    return status;
}
