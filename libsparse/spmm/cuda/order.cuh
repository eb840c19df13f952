/* An order of A's rows by communities: see order.cu. */
#ifndef SPARSE_CUDA_SPMM_ORDER_CUH
#define SPARSE_CUDA_SPMM_ORDER_CUH

#include "base/search.h"
#include "device/common.cuh"

/* order[i] = the row to be taken i-th. Empty if A has no communities, or if more than an eighth of the rows are in
 * communities of more than `most` rows. *small: whether half of the rows are in communities of up to `few`. */
sp_status cuda_spmm_order(sp_context *context, const sp_csr *a, int64_t most, int64_t few,
                          device_array<int32_t> *order, bool *small);

#endif
