/* Products whose X or Y lies in host memory (stream.cu), and the parts of the others that they are made of. */
#ifndef SPARSE_CUDA_SPMM_STREAM_CUH
#define SPARSE_CUDA_SPMM_STREAM_CUH

#include "spmm/cuda/spmm.cuh"

/* X, Y or both in host memory; `argument` lies in Y's space. Returns when Y is there. On failure Y is undefined. */
sp_status cuda_spmm_stream(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *state,
                           double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument);
void cuda_spmm_free_staging(sp_context *context, struct stream_staging *staging);

#endif
