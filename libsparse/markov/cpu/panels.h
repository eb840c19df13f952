/* Sums of blocks of rows of A·B where B is dense, by panels of 16 columns.
 *
 * A panel of B is spread into an array with a place for each of B's rows, zeros included, which stays in the
 * second-level cache while all rows of the block are summed: 16 sums of a row stay in registers over its terms. Absent
 * entries add zero, which changes no sum. A term costs 1.9 ns a panel whether B's row has one entry there or 16 (EPYC),
 * where a line of eight costs 3 ns (lines.h): nothing is looked up, and no sum is loaded or stored. Without it
 * protein networks whose second matrix is 20 % full take two to three times as long.
 *
 * Panels are cut into tiles of rows that fit the cache. Sums run over A's row in the order of its terms, as everywhere.
 */
#ifndef SPARSE_CPU_PANELS_H
#define SPARSE_CPU_PANELS_H

#include "core/internal.h"

enum { PANEL = 16 };

/* B by panels. The rows are in the order of summation: row r of a panel is B's row of original number r. */
typedef struct panel_index {
    int64_t rows, panels;
    int64_t tile;      /* rows in a tile */
    int64_t *offsets;  /* where each panel's values begin; NULL: no index */
    uint16_t *masks;   /* rows of the first panel, of the second, ...: which of its columns a row has */
    float *values;     /* in the same order */
} panel_index;

/* Rows that are summed together, as one thread sees them. */
typedef struct panel_block panel_block;

/* The number of rows in a block: more share the work of spreading B, fewer take less memory. */
int64_t sp_panel_block_rows(const sp_csr *a, const sp_csr *b, int threads);
/* Whether panels are faster than adding `line_products` lines of B's rows one by one; the same for any number of
 * threads, because with `fast` it decides the last bits. */
bool sp_panels_pay(const sp_csr *a, const sp_csr *b, int64_t line_products, bool fast);

/* `order`: the original numbers of B's rows, or NULL. O(nnz + rows · panels). */
sp_status sp_panel_index_create(sp_context *context, const sp_csr *b, const int32_t *order, panel_index *index);
void sp_panel_index_free(sp_context *context, panel_index *index);

/* Room for `rows` rows of A with `terms` entries in all. */
sp_status sp_panel_block_create(sp_context *context, const panel_index *index, int64_t rows, int64_t terms,
                                panel_block **block);
void sp_panel_block_free(sp_context *context, panel_block *block);

/* Empties the block; appends a row with its terms in the order of summation, each a row of B and its original number
 * by `order`. */
void sp_panel_block_begin(panel_block *block);
void sp_panel_block_add(panel_block *block, const int32_t *rows, const float *weights, int64_t terms,
                        const int32_t *order);
/* Sums all rows. Products are rounded to f32 and added in f64, or with `fast` in f32. */
void sp_panel_block_sum(panel_block *block, bool fast);
/* The sums of the row that was added as number `row`, rounded to f32; panels · PANEL of them. */
const float *sp_panel_block_row(const panel_block *block, int64_t row);

#endif
