/* Launches. A kernel that contains wait_for_previous may be launched early: on devices that can (Hopper and later), its
 * blocks start when all blocks of the previous kernel have started and there is room, and wait there. This takes about
 * 0.5 us less than starting when the previous kernel is done. Header-only, as check.cuh. */
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

/* Allows the next kernel's blocks to start once all blocks of this one have reached this point. */
static __device__ __forceinline__ void let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Waits until all work queued before this kernel is done. */
static __device__ __forceinline__ void wait_for_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
