/* What the parts of test_alloc share: the calls under test and what they work on. */
#ifndef TESTS_ALLOC_SHARED_H
#define TESTS_ALLOC_SHARED_H

#include "gnn.h"
#include "support.h"

/* What the functions work on: host matrices from an allocator that never fails. */
typedef struct subject {
    sp_csr square, negative, wide, mask, stochastic, graph, limit; /* negative: -square */
    sp_csr band, elements;
    int32_t rows[200], cols[200], order[200]; /* order: a permutation */
    sp_dense dense; /* a row for each of stochastic's */
    gnn_engine *engine; /* on CUDA, where each one opens cuBLAS: of the context whose allocations fail */
} subject;

/* One call under test. It writes its output to `out`, which a failed call must leave as it was and `release` frees
 * after a success. */
typedef struct trial {
    const char *name;
    sp_status (*call)(sp_context *context, subject *s, void *out);
    void (*release)(sp_context *context, void *out);
    size_t size;
} trial;

enum { TRIALS = 88 };
extern const trial trials[TRIALS];

bool is_trial(const trial *t, const char *name);
/* Matrices of `context`, for calls with `failing`. */
subject open_subject(sp_context *context, sp_context *failing);
void close_subject(sp_context *context, subject *s);

enum { MOST_BYTES = 256 }; /* of an output */
/* Whether a failed call has left the output as test_mark made it; or zeroed, if it is one of those that do. */
bool is_untouched(const trial *t, const unsigned char *out);

/* The tables of the parts. */
extern const test_entry cuda_tests[];

#endif
