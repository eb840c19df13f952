/* Accumulators of contractions: how one thread combines the entries of a row of C.
 *
 *   sort    up to 32 entries (64, if only those up to the diagonal are wanted): (label, place) pairs, sorted by
 *           insertion, equal labels combined by ascending place;
 *   dense   a cell a group, a bit a touched group and a bit a touched word of these, read back in order;
 *   hash    a table of at least twice as many slots as entries, its labels sorted afterwards;
 *   loop    where only C's diagonal is wanted: one cell;
 *   mark    where rows may be in any order, because they are mirrored (mirror.h): a number a group tells which entry of
 *           the row it has, and cells lie as the entries do. No sort, no bits, and numbers of earlier rows are lower.
 *
 * What they mark and look up are the bits and the tables of products (core/touched.h, core/table.h). The accumulators
 * of products themselves do not serve: they take one product at a time, in an order that a mask may cut. Here entries
 * come in batches, so that the misses of their labels overlap; a mean needs two numbers a cell, and the first of a
 * cell's values one that has no value yet; loops may be left out or halved. Cells are f64 and combine entries in G's
 * order, whatever the accumulator.
 */
#ifndef SPARSE_CPU_CELLS_H
#define SPARSE_CPU_CELLS_H

#include "base/kernel.h"
#include "core/rows.h"

enum { ROW_SORT, ROW_DENSE, ROW_HASH, ROW_LOOP, ROW_MARK, ROW_SHORT, ROW_METHODS };

/* Entries are relabelled this many at once, so that the misses of labels overlap, and the cells that they go to are
 * asked for meanwhile; the lines of these take a quarter of the first-level cache. A row that is sorted is one. */
enum { BATCH = 128 };
/* A contraction, as all threads see it. */
typedef struct contraction {
    const sp_csr *g;
    const int32_t *labels, *order; /* order: nodes by group, ascending within */
    const int64_t *starts;         /* group p has order[starts[p]] to order[starts[p + 1] - 1] */
    int64_t groups;
    int kind;   /* operation and values: which of the compiled kernels */
    int width;  /* doubles a cell */
    sp_loops loops;
    bool half;  /* sums on the diagonal are halved */
    bool lower; /* of each row only the entries up to the diagonal */
    bool dense; /* where the choice is free, cells are worth their memory */
    bool marked; /* all rows by ROW_MARK */
    bool counts; /* cells are numbers of entries */
} contraction;

/* One thread's scratch memory. Arrays are NULL where no row needs them. */
typedef struct worker {
    const contraction *job;
    double *cells;     /* dense: empty between rows */
    uint64_t *bits;    /* dense: touched groups, zero between rows */
    uint64_t *summary; /* touched words of `bits`, zero between rows */
    int32_t *keys;     /* hash: the group, -1: none */
    double *slots;
    uint64_t *list[2]; /* hash: group << 32 | slot */
    int64_t listed;    /* entries of list[0] */
    int bits_of_table;
    uint32_t *marks;   /* mark: mark_base + the place in the row; below mark_base: not in the row */
    uint32_t mark_base;
    int32_t *batch;       /* mark: entries of a batch of rows under their new columns */
    double *batch_values;
    int64_t row;       /* sort, loop: the row */
    row_buffer *out;   /* sort, mark: where it goes */
    double loop[2];    /* loop: the cell */
    int64_t count;     /* the batch: entries of G under their new columns */
    int32_t columns[BATCH];
    double values[BATCH];
    int64_t left_out; /* entries whose column has no label, or that `loops` excludes */
    int64_t rows[ROW_METHODS];
    int64_t bytes;
    char apart[APART];
} worker;

/* The rows of a group lie anywhere in G: their offsets are asked for 16 nodes ahead, their first entries 6. */
KERNEL void sp_prefetch_rows(const contraction *job, int64_t n, size_t value_size)
{
    const sp_csr *g = job->g;
    if (n + 16 >= job->starts[job->groups]) return;
    __builtin_prefetch(&g->row_offsets[job->order[n + 16]]);
    const int64_t start = g->row_offsets[job->order[n + 6]];
    __builtin_prefetch(g->col_indices + start);
    if (value_size) __builtin_prefetch((const char *)g->values + (size_t)start * value_size);
}

/* What does not depend on the grouping. */
contraction sp_contraction_begin(const sp_csr *g, const int32_t *labels, int64_t groups,
                                 const sp_contract_options *options);
/* Whether cells are worth their memory in rows of which C may have up to `entries` in all. */
void sp_contraction_choose(contraction *job, int64_t entries, int threads);
/* Scratch memory for rows of up to `largest` entries; of all threads, which ends with it. */
sp_status sp_open_worker(sp_context *context, const contraction *job, int64_t largest, worker *w);
void sp_close_workers(sp_context *context, worker *workers, int threads);
/* A row_method's `row`: `entries` of G are in the group's rows. */
sp_status sp_make_row(void *scratch, int64_t row, int64_t entries, row_buffer *out);
/* A row_method's `rows`, if the job is marked: entries up to the diagonal, in any order. */
sp_status sp_make_marked_rows(void *scratch, int64_t first, int64_t end, int64_t *counts, row_buffer *out);

#endif
