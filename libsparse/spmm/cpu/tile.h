/* The inner loops of the sparse-dense product: a range of rows, a tile of up to 8 vector registers of columns.
 *
 * Y(i, tile) = the reduction over row i's entries (i, j) of A(i, j) · X(j, tile). The tile of the output row stays in
 * registers while the entries run past it, so that an entry costs one load and one multiplication and addition per
 * register, and X's rows several entries ahead are on their way to the caches meanwhile.
 */
#ifndef SPARSE_CPU_SPMM_TILE_H
#define SPARSE_CPU_SPMM_TILE_H

#include "core/internal.h"

enum { LINE_BYTES = 64 /* bytes, of the caches */ };
enum { TILE_VECTORS = 8, ARGUMENT_VECTORS = 4 }; /* with positions beside values, half as many fit the 16 registers */

/* One call's operands, the same for all tiles. The sum type S is f64 where X is f64, else f32. */
typedef struct tile_job {
    const int64_t *offsets;
    const int32_t *cols;
    const void *weights;  /* of type S; NULL: ones */
    const int32_t *order; /* the rows' order; NULL: as they come */
    const sp_dense *x;
    int64_t x_column;     /* the column of the product that X's first one is */
    sp_dense *y;
    int64_t y_row;        /* the row of the product that Y's first one is */
    double alpha, beta;
    bool mean;
    bool least;           /* minimum in place of maximum */
    int64_t *argument;    /* Y.rows x Y.cols or NULL */
    int64_t limit;        /* the number of A's entries, which bounds the prefetch */
    /* TILE_HEADS: the columns of a head and of a vector. For head h entry k has
     * weights[h * head_step + at * entry_step], where `at` is places[k], or k for NULL. */
    int64_t head_width, head_lanes, head_step, entry_step;
    const int64_t *places;
    bool streams;         /* Y, of the sums' type, is written in whole lines past the caches, and not added to; such
                           * stores pass others, up to a fence of the thread's */
    bool staged;          /* the same by way of a small copy of a group of rows */
    bool two;             /* even and odd entries are summed apart, where a row of sums is at most a line */
    bool near;            /* X lies in a core's own cache: its rows are not asked for ahead */
    /* Where A is cut into ranges of columns, the arrays above are those of a range, and what is reduced so far comes
     * from, or stays in, `partial` (rows x the tile's width, of type S) for the other ranges. */
    const int64_t *whole_offsets; /* A's own: a mean divides by all entries of the row */
    void *partial;
    int64_t partial_stride;
    bool resume, keep;
} tile_job;

/* Rows first to end - 1 (in `order`), columns `column` to column + width - 1. */
typedef void tile_rows(const tile_job *job, int64_t first, int64_t end, int64_t column, int64_t width);

typedef enum tile_reduction { TILE_SUM, TILE_HEADS, TILE_EXTREME, TILE_ARGUMENT, TILE_REDUCTIONS } tile_reduction;

/* The loop for tiles of this many columns (1 to tile_width), on this machine. */
tile_rows *sp_tile_find(sp_dense_type x, tile_reduction reduction, int64_t width);
/* Columns of the widest tile, and of the widest that ranges of X's rows are gone through with. */
int64_t sp_tile_width(sp_dense_type x, tile_reduction reduction);
int64_t sp_tile_range_width(sp_dense_type x, tile_reduction reduction);
/* The columns of the vectors in which heads of this width are formed, 0 if it is no multiple of a vector's. Tiles of
 * several heads have whole vectors, TILE_VECTORS at most, and this loop. */
int64_t sp_tile_lanes(sp_dense_type x, int64_t head_width);
tile_rows *sp_tile_find_heads(sp_dense_type x, int64_t lanes, int64_t width);

#endif
