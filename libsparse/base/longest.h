/* The most entries that a row of a matrix in host memory has; 0 if there are no rows. */
#ifndef BASE_LONGEST_H
#define BASE_LONGEST_H

#include "sparse.h"

static inline int64_t longest_row(const sp_csr *matrix)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < matrix->rows; i++) {
        const int64_t length = matrix->row_offsets[i + 1] - matrix->row_offsets[i];
        if (length > longest) longest = length;
    }
    return longest;
}

#endif
