/* Rows of counts of at most SHORT_ENTRIES entries of G, made in one register of AVX-512. */
#ifndef SPARSE_CPU_CONTRACT_SHORT_H
#define SPARSE_CPU_CONTRACT_SHORT_H

#include "contract/cpu/cells.h"

enum { SHORT_ENTRIES = 16 };

/* Whether this processor can, and rows are counts. */
bool sp_may_be_short(const contraction *job);
/* A row_method's `rows`: longer rows are made by sp_make_row. */
sp_status sp_make_short_rows(void *scratch, int64_t first, int64_t end, int64_t *counts, row_buffer *out);

#endif
