/* Sorting and copying of entries: shared by coo.c, coo_blocks.c, csr.c (permutations), and extract.c, reduce.c and
 * top_k.c of elementwise/cpu. */
#ifndef SPARSE_COO_H
#define SPARSE_COO_H

#include <string.h>

#include "base/value.h"
#include "core/internal.h"

/* An entry of a row during sorting: the column in the upper bits, its source in the lower ones. One comparison of
 * integers then sorts by column and keeps duplicates in the order of their appearance. */
typedef uint64_t sp_entry;

static inline int sp_entry_shift(int64_t cols)
{
    int shift = 64;
    while (shift > 33 && (cols - 1) >> (64 - shift) > 0) shift--;
    return shift < 64 ? shift : 63;
}

static inline sp_entry sp_make_entry(int32_t col, int64_t source, int shift)
{
    return (uint64_t)col << shift | (uint64_t)source;
}

static inline int32_t sp_entry_col(sp_entry e, int shift) { return (int32_t)(e >> shift); }
static inline int64_t sp_entry_source(sp_entry e, int shift) { return (int64_t)(e & (((uint64_t)1 << shift) - 1)); }

/* Sorts integers in O(count log count). If the watch stops it, they are left in some order. */
void sp_sort_entries(sp_entry *list, int64_t count, sp_watch *watch);

/* Triples to make a matrix of, checked. */
typedef struct sp_triples {
    int64_t rows, cols, count;
    const int32_t *row_indices, *col_indices;
    const void *values; /* NULL: ones */
    sp_value_type type;
    sp_combine rule;
    bool symmetric;
    const int64_t *col_offsets; /* in place of col_indices: column j has triples col_offsets[j] to [j + 1] - 1 */
} sp_triples;

/* Copies `count` entries of A, from entry `from` on, to B from entry `to` on. B has A's value type. */
static inline void sp_copy_entries(const sp_csr *a, int64_t from, int64_t count, const sp_csr *b, int64_t to)
{
    const size_t size = sp_value_size(a->value_type);
    memcpy(b->col_indices + to, a->col_indices + from, (size_t)count * sizeof *b->col_indices);
    if (a->values)
        memcpy((char *)b->values + (size_t)to * size, (const char *)a->values + (size_t)from * size,
               (size_t)count * size);
}

static inline double sp_combine_values(double kept, double next, sp_combine rule)
{
    switch (rule) {
    case SP_COMBINE_SUM:
    case SP_COMBINE_MEAN: return kept + next;
    case SP_COMBINE_COUNT: return kept + 1;
    case SP_COMBINE_MAX: return next > kept ? next : kept;
    case SP_COMBINE_MIN: return next < kept ? next : kept;
    case SP_COMBINE_FIRST: break;
    }
    return kept;
}

/* Fills the arrays of a matrix from triples that ascend strictly by columns, then by rows: t->rows + 1 offsets and
 * t->count entries. Without values in the triples its values are not touched. */
sp_status sp_coo_by_columns(sp_context *context, const sp_triples *t, const sp_csr *matrix);

/* The radix sort of coo_blocks.c. *done is false, and nothing is made, if the entries are too few for it to pay, or so
 * unevenly distributed that it would exceed its memory. */
sp_status sp_coo_by_blocks(sp_context *context, const sp_triples *t, sp_csr *matrix, bool *done);

#endif
