/* Sums over products that are made in parts. */
#ifndef BASE_INFO_H
#define BASE_INFO_H

#include "base/inline.h"
#include "sparse.h"

/* Adds the counts of a part; the peak is the largest of the parts. Times and groups are the caller's. */
INLINE void add_info(sp_spgemm_info *sum, const sp_spgemm_info *part)
{
    sum->products += part->products;
    sum->product_nnz += part->product_nnz;
    sum->nnz += part->nnz;
    sum->dense_rows += part->dense_rows;
    sum->batches += part->batches;
    if (part->peak_bytes > sum->peak_bytes) sum->peak_bytes = part->peak_bytes;
}

#endif
