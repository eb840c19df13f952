/* Row-wise products on the CPU: what the general and the Markov product share.
 *
 * A product is done row by row of A (Gustavson). Rows are cut into chunks of about equal products, threads take
 * chunks in order as they become free, and each thread appends its rows to a buffer of its own. A chunk has its place
 * in C as soon as all chunks before it are made; the thread that made it moves it there when it has made another, so
 * that beside C little is held, which still lies in the caches when it is copied, and no thread waits for the others.
 * A single thread appends to C itself.
 */
#ifndef SPARSE_CPU_ROWS_H
#define SPARSE_CPU_ROWS_H

#include "internal.h"

/* Finished rows of one thread. */
typedef struct row_buffer {
    sp_context *context;
    size_t value_size; /* 0: no values are kept */
    int64_t count, capacity;
    int64_t expected; /* what to grow to, when not 0 */
    bool moved;       /* to blocks of that size */
    int32_t *columns;
    void *values;
} row_buffer;

/* Makes room for `more` entries after `count`. Threads may call it at the same time. */
sp_status sp_row_buffer_reserve(row_buffer *buffer, int64_t more);

/* What the threads work on: how a row is made, and each thread's own scratch memory. */
typedef struct row_method {
    /* Appends row `row`, whose products are `products`, to `out`, columns ascending. */
    sp_status (*row)(void *worker, int64_t row, int64_t products, row_buffer *out);
    /* Or, when not NULL: appends rows first to end - 1 and sets lengths[i] to the entries of row i. */
    sp_status (*rows)(void *worker, int64_t first, int64_t end, const int64_t *products, int64_t *lengths,
                      row_buffer *out);
    void *workers; /* one element of worker_size bytes a thread */
    size_t worker_size;
    int threads;
    int64_t row_entries; /* about how many entries a row may have at most, to size C; 0: as many as columns */
    bool pattern;        /* C gets no values */
    int64_t *bytes;      /* not NULL: what the run takes beside C is added */
} row_method;

/* products[i] = Σ over k in A's row i of nnz(B's row k); the sum and the largest. */
sp_status sp_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t **products, int64_t *total,
                          int64_t *largest);

/* Cuts the rows into `count` chunks of about equal products for so many threads: chunk i is rows (*first)[i] to
 * (*first)[i + 1] - 1. */
sp_status sp_row_chunks(sp_context *context, int64_t rows, const int64_t *products, int threads, int64_t **first,
                        int64_t *count);

/* Makes all rows and joins them into `c` (rows × cols). */
sp_status sp_row_run(sp_context *context, int64_t rows, int64_t cols, const int64_t *products,
                     const row_method *method, sp_value_type type, sp_csr *c);

#endif
