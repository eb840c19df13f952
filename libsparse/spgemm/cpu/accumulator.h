/* Accumulators: how one thread sums rows of C = A·B.
 *
 *   copy    A's row has one entry: B's row, scaled;
 *   short   up to 16 products, sorted in a register (lanes.c); without AVX-512, and where a mask thins them out, each
 *           column's place is the number of smaller ones, counted without a branch;
 *   dense   a sum a column, a bit a touched column and a bit a touched word of these. The columns come out in order
 *           by counting trailing zeros, so nothing is sorted;
 *   block   up to four rows of A with the same columns, as finite elements have them: their sums lie side by side,
 *           and B's rows are read once for all (plus-times), up to eight with equal columns in step. Sums are kept for
 *           as many columns as such a row spans, in a ring. Without it finite elements take more than three times as
 *           long (one thread of an EPYC);
 *   shift   rows of stencils and bands that are the row before them, one column to the right;
 *   hash    a table of at least twice as many slots as products, its entries sorted afterwards (Nagasaka et al.
 *           2018).
 *
 * accumulator.c chooses; each accumulator has a file of its name, and kernels.h has what they share.
 *
 * Sums are f64, start from the identity of the semiring (-0 for +, which unlike 0 changes no addend) and run over A's
 * row in ascending order, so that every accumulator gives the same bits.
 */
#ifndef SPARSE_CPU_ACCUMULATOR_H
#define SPARSE_CPU_ACCUMULATOR_H

#include "core/rows.h"

enum { ROW_COPY, ROW_SHORT, ROW_DENSE, ROW_BLOCK, ROW_SHIFT, ROW_HASH, ROW_METHODS };

enum { SHORT_PRODUCTS = 16 };
/* Rows whose products are listed at once, before they are sorted. */
enum { LISTED_ROWS = 32 };

/* A product, as all threads see it. */
typedef struct row_product {
    sp_context *context;
    const sp_csr *a, *b, *mask;
    sp_spgemm_algorithm algorithm;
    bool complement;
    bool pattern;            /* C gets no values */
    bool dense, blocks;      /* where the choice is free: dense sums are worth their memory; rows come in blocks */
    bool local;              /* the columns of most rows of C lie together: a row's range is worth knowing first */
    int64_t ring;            /* blocks: column j has the sums j & ring. 2^k - 1, or -1: each has its own */
    bool single;             /* row j of B has one entry, j */
    bool lanes;              /* rows of few products are sorted in registers; lanes.c */
    uint64_t *a_shifted, *b_shifted; /* a bit a row; shift.c; NULL: few rows are */
    uint64_t *a_repeated, *b_repeated; /* blocks: rows with the columns of the row before; NULL: not known */
    const void *a_values, *b_values;
    int64_t a_select, b_select; /* entry k has values[k & select]: -1, or 0 for a pattern, whose one value is 1 */
    int kind;                /* semiring, value type, filter: which of the compiled kernels */
} row_product;

/* One thread's scratch memory, taken when a row first needs it. */
typedef struct accumulator {
    const row_product *job;
    double *sums;      /* dense, block: the identity between rows; on a 64-byte boundary */
    uint64_t *bits;    /* dense, block: touched columns, zero between rows */
    uint64_t *summary; /* touched words of `bits`, zero between rows */
    uint64_t *filter;  /* the mask's columns of this row, zero between rows */
    int32_t *keys;     /* hash: the column, -1: empty */
    double *slots;
    uint64_t *list[2]; /* hash: column << 32 | slot */
    int64_t room;      /* hash: entries that the arrays can take */
    int64_t listed;    /* entries of list[0], or of the short row */
    int32_t short_columns[SHORT_PRODUCTS + 8]; /* a register more, so that the last may be filled up */
    double short_values[SHORT_PRODUCTS];
    int32_t listed_columns[(LISTED_ROWS + 1) * SHORT_PRODUCTS]; /* lanes.c: SHORT_PRODUCTS a row */
    double listed_values[(LISTED_ROWS + 1) * SHORT_PRODUCTS];
    int bits_of_table;
    void *sums_block;  /* where `sums` lies */
    int64_t sums_room; /* how many there are */
    int64_t rows[ROW_METHODS]; /* how many were done how */
    int64_t bytes;
    char apart[APART]; /* from the pointers of the next thread, which it reads all the time */
} accumulator;

/* Reads options, patterns and the shape of the product into `job`. `largest` is the most products that a row has. */
void sp_row_product_begin(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          int64_t products, int64_t largest, row_product *job);

/* Takes the operands anew: other matrices of the same patterns. */
void sp_row_product_values(row_product *job, const sp_csr *a, const sp_csr *b, sp_semiring semiring);

/* Finds the shifted rows of both operands, or the repeated ones, where most are, and adds the memory that they take;
 * sp_forget_shifts frees it. */
sp_status sp_find_shifts(sp_context *context, bool masked, int64_t products, int64_t *bytes, row_product *job);
void sp_forget_shifts(sp_context *context, row_product *job);

/* Scratch of `threads` threads, with a filter or without. */
sp_status sp_accumulators_open(sp_context *context, const row_product *job, bool filter, int threads,
                               accumulator **workers);
/* Takes all that sp_accumulate_values needs for rows of C of at most `longest` entries. */
sp_status sp_accumulators_reserve(accumulator *workers, int threads, int64_t longest);
void sp_accumulators_close(sp_context *context, accumulator *workers, int threads);

/* Makes rows first to end - 1 (a row_method's `rows`; the worker is an accumulator). */
sp_status sp_accumulate_rows(void *worker, int64_t first, int64_t end, int64_t *counts, row_buffer *out);

/* Sums rows first to end - 1 of C, whose pattern is known. Where it lacks columns that the product has, because a
 * mask took them, `masked` says so. */
void sp_accumulate_values(accumulator *w, int64_t first, int64_t end, bool masked, sp_csr *c);

#endif
