/* Dense sums of a row, kept by cache lines; and sparse rows read by such lines.
 *
 * Where the columns of a row lie in clumps, as they do once communities are numbered together, eight neighbouring
 * columns hold five or six entries. A line index says for each such group of a CSR row which of its eight columns are
 * present; the entries' values, which lie together in the CSR, are spread over a register by that mask and added to
 * eight sums at once, at little more than the cost of a single entry. Absent entries add zero, which changes no sum.
 */
#ifndef SPARSE_CPU_LINES_H
#define SPARSE_CPU_LINES_H

#include "core/internal.h"

enum { LINE_COLUMNS = 8 };

/* The groups of eight columns that each row of a CSR touches. */
typedef struct line_index {
    int64_t *offsets; /* rows + 1, in lines; NULL: no index */
    uint32_t *lines;  /* group << 8 | mask of present columns */
} line_index;

/* Counts the lines of B's rows into `offsets`; leaves the index empty if this machine lacks the registers for them.
 * O(nnz). */
sp_status sp_line_index_count(sp_context *context, const sp_csr *b, line_index *index);
/* Writes the lines that sp_line_index_count counted. After a failure the caller frees the index. */
sp_status sp_line_index_fill(sp_context *context, const sp_csr *b, line_index *index);
void sp_line_index_free(sp_context *context, line_index *index);

/* The sums of a row, and which of their lines were touched. */
typedef struct line_sums {
    double *sums;     /* one a column, lines on 64-byte boundaries; all zero between rows */
    uint8_t *touched; /* one a line; zero between rows; 8 spare bytes */
    int32_t *ids;     /* the touched lines, after line_scan */
    int64_t id_count;
    int64_t lines;    /* how many there are in all */
    void *block;
} line_sums;

sp_status sp_line_sums_create(sp_context *context, int64_t cols, line_sums *sums);
void sp_line_sums_free(sp_context *context, line_sums *sums);

/* sums += weight · row of B, by lines or entry by entry. Products are rounded to f32 before they are added, or formed
 * in f64. Without `mark` all lines must count as touched already, which spares a store an entry. */
void sp_line_add(line_sums *sums, const sp_csr *b, const line_index *index, int64_t row, float weight,
                 bool f32_products);
void sp_line_add_entries(line_sums *sums, const sp_csr *b, int64_t row, float weight, bool f32_products, bool mark);
void sp_line_touch_all(line_sums *sums);

/* What a row holds. Values are sums rounded to f32; exact zeros do not count. */
typedef struct row_figures {
    int64_t count;
    float largest;
    double squares;
} row_figures;

/* Lists the touched lines and unmarks them; writes the entries >= cutoff by ascending column, returns how many. */
int64_t sp_line_scan(line_sums *sums, float cutoff, int32_t *columns, float *values, row_figures *figures);
/* Of the lines that line_scan listed: writes the entries >= bar by ascending column; the values of those below it.
 * Both return how many. */
int64_t sp_line_above(const line_sums *sums, float bar, int32_t *columns, float *values);
int64_t sp_line_below(const line_sums *sums, float bar, float *values);
/* Zeroes the listed lines. */
void sp_line_clear(line_sums *sums);

#endif
