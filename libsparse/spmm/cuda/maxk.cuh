/* MaxK on a CUDA device, for the back-end table. */
#ifndef SPARSE_CUDA_MAXK_CUH
#define SPARSE_CUDA_MAXK_CUH

#include "core/internal.h"

sp_status sp_cuda_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept);
sp_status sp_cuda_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x);
sp_status sp_cuda_maxk_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                            double alpha, const sp_cbsr *kept, double beta, sp_dense *y);
sp_status sp_cuda_maxk_spmm_backward(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                                     void *state, const sp_dense *gradient, sp_cbsr *kept);

#endif
