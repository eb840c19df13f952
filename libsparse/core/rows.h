/* Row-wise products on the CPU: the part that the general and the Markov product share.
 *
 * A product is formed row by row of A (Gustavson 1978). Rows are cut into chunks of about equal numbers of products.
 * Threads take chunks in order as they become free, and each thread appends its rows to its own buffer. The place of a
 * chunk in C is known as soon as all chunks before it are made. The thread that made it moves it there after its next
 * chunk. So little memory is held beside C, rows are still in the caches when they are copied, and no thread waits for
 * the others. A single thread appends to C itself.
 */
#ifndef SPARSE_CPU_ROWS_H
#define SPARSE_CPU_ROWS_H

#include "core/internal.h"

/* Bytes between what one thread writes and what the next one does: processors fetch two cache lines of 64 at once. */
enum { APART = 128 };

/* Finished rows of one thread. */
typedef struct row_buffer {
    sp_context *context;
    size_t value_size; /* 0: there are no values */
    int64_t count, capacity;
    int64_t expected; /* capacity to grow to, if not 0 */
    bool moved;       /* the arrays have been moved to blocks of that size */
    int32_t *columns;
    void *values;
} row_buffer;

/* Makes room for `more` entries after `count`. Threads may call it at the same time. */
sp_status sp_row_buffer_reserve(row_buffer *buffer, int64_t more);

/* Chunk i is rows first[i] to first[i + 1] - 1. */
typedef struct row_chunks {
    int64_t *first, count;
} row_chunks;

/* How rows are made, and each thread's own scratch memory. */
typedef struct row_method {
    /* Appends row `row`, which has `products` products, to `out`, with ascending columns. */
    sp_status (*row)(void *worker, int64_t row, int64_t products, row_buffer *out);
    /* Used instead if not NULL: appends rows first to end - 1. counts[i] holds the products of row i and receives its
     * number of entries. */
    sp_status (*rows)(void *worker, int64_t first, int64_t end, int64_t *counts, row_buffer *out);
    void *workers; /* one element of worker_size bytes a thread */
    size_t worker_size;
    int threads;
    int64_t chunk_rows;  /* not 0: the rows of a chunk, whatever their products */
    int64_t row_entries; /* an estimate of the most entries a row can have, to size C; 0: the number of columns */
    int64_t expected;    /* not 0: about the entries of C, where rows of the front say little of the others */
    const int64_t *room; /* not NULL: row i has at most room[i + 1] - room[i] entries */
    bool pattern;        /* C gets no values */
    bool entries_only;   /* nothing is made but entries: without a product, no row is looked at */
    int64_t *bytes;      /* not NULL: the memory of the run beside C is added */
    row_chunks *chunks;  /* not NULL: receives the chunks, which the caller frees; not written when the run fails */
} row_method;

/* (*products)[i + 1] = Σ over k in A's row i of nnz(B's row k). Also their sum and the largest. */
sp_status sp_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t **products, int64_t *total,
                          int64_t *largest);

/* Makes all rows and joins them into `c` (rows × cols). (*products)[i + 1] are the products of row i, `total` in all.
 * The array becomes the row offsets of C to save memory, and *products becomes NULL. */
sp_status sp_row_run(sp_context *context, int64_t rows, int64_t cols, int64_t **products, int64_t total,
                     const row_method *method, sp_value_type type, sp_csr *c);

#endif
