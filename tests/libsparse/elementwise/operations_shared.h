/* What the parts of test_operations share. */
#ifndef TESTS_OPERATIONS_SHARED_H
#define TESTS_OPERATIONS_SHARED_H

#include "generate.h"
#include "support.h"

/* A matrix as numbers and whether they are there. */
typedef struct dense {
    int64_t rows, cols;
    double *number;
    bool *there;
} dense;

dense dense_create(int64_t rows, int64_t cols);
void dense_free(dense *d);
dense dense_of(const sp_csr *m);
double rounded(double value, sp_value_type type);
/* The matrix is well formed, lies where the context computes, and is just what the reference says, which ends. */
void check_matrix(sp_context *context, sp_csr *m, dense *expected, uint64_t seed);
sp_csr random_matrix(sp_context *context, test_random *random, int64_t rows, int64_t cols, sp_value_type type);
/* On a GPU every other matrix goes there. */
sp_csr send(sp_context *context, test_random *random, const sp_csr *m);
/* An array of `count` entries in a space at random. */
void *send_array(sp_context *context, test_random *random, const void *from, int64_t count, size_t size,
                 sp_space *space);
/* `count` rows of `length` entries each, the columns spread over `cols`, but that row `full` has all. */
sp_csr spread_matrix(sp_context *context, int64_t rows, int64_t cols, int64_t length, int64_t full,
                     sp_value_type type, uint64_t seed);
/* Of every kind, in either space; sums within rounding. */
void check_rows(sp_context *context, test_random *random, const sp_csr *m);

/* The tables of the parts. */
extern const test_entry select_tests[], shapes_tests[];

#endif
