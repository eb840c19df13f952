/* C = A·B on a CUDA device: chooses the algorithm. */
#include "common.cuh"

sp_status sp_cuda_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         sp_csr *c, sp_spgemm_info *info)
{
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    if (options->algorithm == SP_SPGEMM_DENSE)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "dense accumulators for all rows are the CPU's");
    return options->algorithm == SP_SPGEMM_HASH ? sp_cuda_spgemm_hash(context, a, b, options, c, info)
                                                : sp_cuda_spgemm_warp(context, a, b, options, c, info);
}

sp_status sp_cuda_spgemm_symbolic(sp_context *context, const sp_csr *a, const sp_csr *b,
                                  const sp_spgemm_options *options, sp_csr *pattern, void **state,
                                  sp_spgemm_info *info)
{
    *state = NULL;
    TRY(sp_cuda_spgemm(context, a, b, options, pattern, info));
    cuda_release(context, pattern->values);
    pattern->values = NULL;
    return SP_OK;
}

sp_status sp_cuda_spgemm_numeric(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, void *, sp_csr *c)
{
    sp_csr made = {};
    sp_spgemm_info info = {};
    TRY(sp_cuda_spgemm(context, a, b, options, &made, &info));
    const sp_status status = cuda_status(
        context,
        cudaMemcpyAsync(c->values, made.values, (size_t)made.nnz * sp_value_size(made.value_type),
                        cudaMemcpyDeviceToDevice, cuda_state_of(context)->stream),
        "cudaMemcpyAsync");
    sp_csr_free(context, &made);
    return status == SP_OK ? cuda_finish(context) : status;
}

void sp_cuda_spgemm_forget(sp_context *, void *) {}
