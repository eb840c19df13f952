/* Products by copies of X and Y whose rows begin at lines of the caches: see aligned.cu. */
#ifndef SPARSE_CUDA_SPMM_ALIGNED_CUH
#define SPARSE_CUDA_SPMM_ALIGNED_CUH

#include "spmm/cuda/spmm.cuh"

/* Multiplies by copies where they pay and there is room for them; else *done is false and nothing has happened. */
sp_status cuda_spmm_aligned(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *plan,
                            double alpha, const sp_dense *x, double beta, const sp_dense *y, bool *done);

#endif
