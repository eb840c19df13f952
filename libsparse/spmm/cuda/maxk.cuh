/* MaxK on a CUDA device: the calls of the back-end table, and what maxk.cu and maxk_select.cu share. */
#ifndef SPARSE_CUDA_MAXK_CUH
#define SPARSE_CUDA_MAXK_CUH

#include "device/common.cuh"

sp_status sp_cuda_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept);
sp_status sp_cuda_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x);
sp_status sp_cuda_maxk_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                            double alpha, const sp_cbsr *kept, double beta, sp_dense *y);
sp_status sp_cuda_maxk_spmm_backward(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                                     void *state, const sp_dense *gradient, sp_cbsr *kept);

enum { MAXK_WARPS = 8 }; /* of a block */

/* Calls launch.run<T, C>() for the types of the kept values and columns. */
template <typename Launch> static sp_status maxk_with_types(const sp_cbsr *kept, const Launch &launch)
{
    const bool bytes = kept->cols <= 256;
    if (kept->type == SP_DENSE_F32)
        return bytes ? launch.template run<float, uint8_t>() : launch.template run<float, uint16_t>();
    return bytes ? launch.template run<double, uint8_t>() : launch.template run<double, uint16_t>();
}

/* Blocks of a warp a row. */
static inline unsigned maxk_blocks(int64_t rows) { return (unsigned)((rows + MAXK_WARPS - 1) / MAXK_WARPS); }

/* What every call begins with. */
static inline sp_status maxk_begin(sp_context *context)
{
    return sp_interrupted(context) ? sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted") : SP_OK;
}

#endif
