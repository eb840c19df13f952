/* What the parts of test_maxk share. */
#ifndef TESTS_MAXK_SHARED_H
#define TESTS_MAXK_SHARED_H

#include "support.h"

static const int64_t widths[] = {1, 3, 31, 32, 64, 100, 128, 188, 256, 257, 602, 1000, 1500};

enum { WIDTHS = COUNT(widths), ALGORITHMS = 4 };

/* A matrix where the context computes, its rows `stride` numbers apart and -77 between them. */
sp_dense place(sp_context *context, const double *numbers, int64_t rows, int64_t cols, int64_t stride,
               sp_dense_type type);
/* A matrix's numbers, after a look at what lies between its rows; the matrix is freed. */
double *take_back(sp_context *context, sp_dense *matrix);

/* Compressed rows on the host, in f64. */
typedef struct kept_rows {
    int64_t rows, cols, k;
    double *values;
    int32_t *columns;
} kept_rows;

kept_rows make_kept(int64_t rows, int64_t cols, int64_t k);
void free_kept(kept_rows *kept);
kept_rows read_kept(sp_context *context, const sp_cbsr *matrix);

/* The tables of the parts. */
extern const test_entry promises_tests[];

#endif
