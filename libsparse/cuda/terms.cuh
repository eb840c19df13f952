/* The products of a plan, listed by entry of C (spgemm_terms.cu). */
#ifndef SPARSE_CUDA_TERMS_CUH
#define SPARSE_CUDA_TERMS_CUH

#include "common.cuh"

/* Device memory; terms is NULL where there is no list. */
struct product_terms {
    int64_t slices, total, bytes;
    uint16_t *counts;
    int64_t *bases;
    uint2 *terms;
};

/* Lists the products of A·B that fall on the pattern of C, all on the device; `products` is their number where no mask
 * forbids any. No list, and SP_OK, where it does not fit the memory beside C, an entry of C has more than 65,535
 * products or an operand 2^32 entries. O(products). */
sp_status cuda_make_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t products, product_terms *terms);
void cuda_free_terms(sp_context *context, product_terms *terms);
/* C's values. */
sp_status cuda_sum_terms(sp_context *context, const product_terms *terms, const sp_csr *a, const sp_csr *b,
                         sp_semiring semiring, sp_csr *c);

#endif
