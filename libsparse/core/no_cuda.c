/* Replaces all CUDA code in a build without nvcc. */
#include "core/internal.h"

sp_status sp_cuda_open(sp_context *context, int index)
{
    (void)index;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA (make CUDA=1 builds with it)");
}

/* Never called: no context has a CUDA device. */
sp_status sp_cuda_link(sp_context *context, sp_context *other)
{
    (void)other;
    return sp_cuda_open(context, 0);
}

int sp_cuda_count(void) { return 0; }
