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

#include "core/internal.h"

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

/* Chunk i is rows first[i] to first[i + 1] - 1. */
typedef struct row_chunks {
    int64_t *first, count;
} row_chunks;

/* What the threads work on: how a row is made, and each thread's own scratch memory. */
typedef struct row_method {
    /* Appends row `row`, whose products are `products`, to `out`, columns ascending. */
    sp_status (*row)(void *worker, int64_t row, int64_t products, row_buffer *out);
    /* Or, when not NULL: appends rows first to end - 1; counts[i] holds the products of row i, and is to hold its
     * entries. */
    sp_status (*rows)(void *worker, int64_t first, int64_t end, int64_t *counts, row_buffer *out);
    void *workers; /* one element of worker_size bytes a thread */
    size_t worker_size;
    int threads;
    int64_t row_entries; /* about how many entries a row may have at most, to size C; 0: as many as columns */
    const int64_t *room; /* not NULL: row i has at most room[i + 1] - room[i] entries */
    bool pattern;        /* C gets no values */
    int64_t *bytes;      /* not NULL: what the run takes beside C is added */
    row_chunks *chunks;  /* not NULL: gets the chunks, the caller's to free; not written when the run fails */
} row_method;

/* (*products)[i + 1] = Σ over k in A's row i of nnz(B's row k); the sum and the largest. */
sp_status sp_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t **products, int64_t *total,
                          int64_t *largest);

/* Makes all rows and joins them into `c` (rows × cols). (*products)[i + 1] are the products of row i, `total` in
 * all; the array becomes the row offsets of C, so that nothing is kept beside them, and *products NULL. */
sp_status sp_row_run(sp_context *context, int64_t rows, int64_t cols, int64_t **products, int64_t total,
                     const row_method *method, sp_value_type type, sp_csr *c);

#endif
