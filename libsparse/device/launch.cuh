/* Launches. A kernel that begins with, or somewhere has, wait_for_previous may be launched early: where the device can
 * (Hopper and later), its blocks come to the multiprocessors when those of the kernel before it have all begun and
 * leave room, and wait there, which takes some 0.5 us less than to begin when all is done. Header-only, as check.cuh.
 */
#ifndef DEVICE_LAUNCH_CUH
#define DEVICE_LAUNCH_CUH

#include "device/check.cuh"

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename... P, typename... A>
static inline cudaError_t launch_kernel(void (*kernel)(P...), dim3 grid, int threads, size_t shared,
                                        cudaStream_t stream, bool early, const A &...arguments)
{
    cudaLaunchAttribute serial = {};
    cudaLaunchConfig_t how = {};
    serial.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    serial.val.programmaticStreamSerializationAllowed = 1;
    how.gridDim = grid;
    how.blockDim = dim3((unsigned)threads);
    how.dynamicSmemBytes = shared;
    how.stream = stream;
    how.attrs = &serial;
    how.numAttrs = early;
    return cudaLaunchKernelEx(&how, kernel, P(arguments)...);
}

/* Lets the next kernel's blocks come once all of this one have got here. */
static __device__ __forceinline__ void let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Until all that was queued before this kernel is done. */
static __device__ __forceinline__ void wait_for_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
