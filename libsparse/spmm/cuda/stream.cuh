/* Products whose X or Y lies in host memory (stream.cu), and the parts of the others that they are made of. */
#ifndef SPARSE_CUDA_SPMM_STREAM_CUH
#define SPARSE_CUDA_SPMM_STREAM_CUH

#include "spmm/cuda/spmm.cuh"

/* The shape and the operands of a product as they are where X and Y lie on the device, which they need not. */
sp_status cuda_spmm_describe(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                             const spmm_state *state, double alpha, const sp_dense *x, double beta, const sp_dense *y,
                             int64_t *argument, spmm_shape *shape, spmm_product *product);
/* By the plan's algorithm. Which lane adds what depends on the shape alone, not on the columns that are there. */
sp_status cuda_spmm_launch(sp_context *context, sp_dense_type type, bool extreme, spmm_state *state,
                           const spmm_shape &shape, const spmm_product &product);
/* The product's Y = sums + beta · Y; the sums' rows lie side by side, or `stride` apart. */
sp_status cuda_spmm_round(sp_context *context, sp_dense_type type, const spmm_product &product, const float *sums,
                          int64_t stride = 0);
/* X, Y or both in host memory; `argument` lies in Y's space. Returns when Y is there. On failure Y is undefined. */
sp_status cuda_spmm_stream(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *state,
                           double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument);
void cuda_spmm_free_staging(sp_context *context, struct stream_staging *staging);

#endif
