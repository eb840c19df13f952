/* Replaces all CUDA code in a build without nvcc. */
#include "core/internal.h"

sp_status sp_cuda_open(sp_context *context, int index)
{
    (void)index;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA (make CUDA=1 builds with it)");
}

int sp_cuda_count(void) { return 0; }
