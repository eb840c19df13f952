/* Products of small matrices, whose time is latency: few launches, and a block for a row. */
#ifndef SPARSE_CUDA_SPGEMM_SMALL_CUH
#define SPARSE_CUDA_SPGEMM_SMALL_CUH

#include "device/common.cuh"

/* Whether the function below takes the product, and is faster. */
bool cuda_is_small(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options);
sp_status sp_cuda_spgemm_small(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c,
                               sp_spgemm_info *info);

#endif
