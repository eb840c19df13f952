/* MaxK on a CUDA device: what maxk.cu and maxk_select.cu share. */
#ifndef SPARSE_CUDA_MAXK_CUH
#define SPARSE_CUDA_MAXK_CUH

#include "device/common.cuh"

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
