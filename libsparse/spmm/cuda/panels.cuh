/* Panels of rows in step: see panels.cu. */
#ifndef SPARSE_CUDA_SPMM_PANELS_CUH
#define SPARSE_CUDA_SPMM_PANELS_CUH

#include "spmm/cuda/spmm.cuh"

struct spmm_panels {
    int64_t count;
    device_array<int2> slots; /* by panel and group: {row, which of its groups << 8 | how many}, or -1 */
};

/* *panels is NULL where they do not pay: where neighbouring rows have little in common, or the matrix is small.
 * `longest`: entries of a row. `order`: of the rows, by communities of at most cuda_spmm_panel_reach(a); or NULL. */
sp_status cuda_spmm_make_panels(sp_context *context, const sp_csr *a, int64_t longest, const int32_t *order,
                                spmm_panels **panels);
/* Whether A has enough rows and enough entries a row; `ordered`: for rows in such an order. */
bool cuda_spmm_fills_panels(sp_context *context, const sp_csr *a, int64_t longest, bool ordered);
/* The rows of a community of which a panel's rows use each row of X about twice. */
int64_t cuda_spmm_panel_reach(const sp_csr *a);
int64_t cuda_spmm_panel_bytes(const spmm_panels *panels);
void cuda_spmm_free_panels(sp_context *context, spmm_panels *panels);
/* Forms sums, for X of 16 or 32 bits; rows of X and Y are aligned to 16 bytes. */
sp_status cuda_spmm_panels(sp_context *context, sp_dense_type type, const spmm_product &product,
                           const spmm_panels *panels);

#endif
