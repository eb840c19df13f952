/* What the parts of test_spmm share. */
#ifndef TESTS_SPMM_SHARED_H
#define TESTS_SPMM_SHARED_H

#include "generate.h"
#include "support.h"

static const int64_t widths[] = {1, 3, 16, 31, 32, 33, 64, 96, 128, 200, 384, 602, 1000};

enum { WIDTHS = COUNT(widths), ALGORITHMS = 4, REDUCTIONS = 4 };

/* The value of a finite number with so many bits of exponent and of fraction, by definition. */
double small_value(uint16_t bits, int exponent_bits, int fraction_bits);
/* The nearest such number, ties to even, by trying all in order: those of one sign ascend with their bits. */
uint16_t small_bits(double value, int exponent_bits, int fraction_bits);
double get(const sp_dense *m, int64_t row, int64_t col);
size_t bytes_of(const sp_dense *m);
/* A host matrix whose memory ends with its last entry's row, so that sanitizers see reads behind it. */
sp_dense make_dense(int64_t rows, int64_t cols, int64_t stride, sp_dense_type type);
sp_dense random_dense(test_random *random, int64_t rows, int64_t cols, int64_t stride, sp_dense_type type,
                      test_values values);
void fill(sp_dense *m, double value);
sp_dense clone(const sp_dense *m);
/* What lies between the rows is as it was. */
void check_gaps(const sp_dense *m, uint64_t seed);
/* Rows of no, one, few, many and all columns, and now and then one that holds about half of all entries. */
sp_csr random_sparse(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type,
                     test_values values);

/* One product's definition. */
typedef struct problem {
    const sp_csr *a;
    const sp_dense *x;
    sp_reduce reduce;
    bool transpose;
} problem;

/* reduce(A · X) (rows x width), the sum of the terms' sizes, and the first entry that gives an extreme. */
typedef struct answer {
    double *value, *size;
    int64_t *argument, *count;
} answer;

answer reference(const problem *p);
void free_answer(answer *r);
/* The relative error allowed: 1e-5 in f32; the rounding of Y where that is coarser. */
double tolerance(sp_dense_type type);
void check_product(const sp_dense *y, const sp_dense *before, const answer *r, double alpha, double beta,
                   const char *what);
/* With its gaps. */
sp_dense place_dense(sp_context *context, const sp_dense *m, bool move);
/* Y's entries, its gaps untouched. */
void fetch_dense(sp_context *context, sp_dense *placed, sp_dense *m);

typedef struct scenario {
    sp_csr a;
    sp_dense x, y;
    double alpha, beta;
    bool a_moves, x_moves, y_moves; /* to the device before the call */
    size_t partition_bytes;
    uint64_t seed;
} scenario;

void run_scenario(sp_context *context, scenario *s, const sp_spmm_options *options, const answer *expected);
/* Beside the reference, and the operands, which lie on the host, are freed. */
void run_and_free(sp_context *context, sp_context *host, scenario *s, const sp_spmm_options *options);

/* Communities of odd sizes, of neighbouring ids or of shuffled ones, whose rows the CUDA back end takes a panel at a
 * time: rows of one to eight groups, hubs of up to 128, and rows of none. */
sp_csr random_communities(sp_context *host, int kind);
/* Up to 8 entries a row, spread over all columns, none in every fifth; half of the columns, up to 3000, in one. */
sp_csr large_sparse(sp_context *host, test_random *random, int64_t rows, int64_t cols, sp_value_type type);

/* The tables of the parts. */
extern const test_entry promises_tests[], out_of_core_tests[], edges_tests[], layouts_tests[];

#endif
