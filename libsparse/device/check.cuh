/* Failures in CUDA code: CHECK returns a failure from the calling function, whose destructors free its memory. It needs
 * only the public calls of sparse.h, so modules above the library use it too. */
#ifndef DEVICE_CHECK_CUH
#define DEVICE_CHECK_CUH

#include <cuda_runtime.h>

#include "sparse.h"

/* C functions have no destructors and use TRY of base/try.h. */
#define CHECK(call)                            \
    do {                                       \
        sp_status status_ = (call);            \
        if (status_ != SP_OK) return status_;  \
    } while (0)

/* In its scope the context's device is the current one of the thread. Objects that free device memory go after it. */
struct device_scope {
    sp_context *const context;
    const sp_status status;

    explicit device_scope(sp_context *owner) : context(owner), status(sp_context_enter(owner)) {}
    device_scope(const device_scope &) = delete;
    device_scope &operator=(const device_scope &) = delete;
    ~device_scope()
    {
        if (status == SP_OK) sp_context_leave(context);
    }
};

/* After a sticky error every later call fails as well. A stream that is being captured is not queried, because that
 * would end the capture. */
static inline bool cuda_is_lost(const sp_context *context)
{
    const cudaStream_t stream = (cudaStream_t)sp_context_stream(context);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (!stream) return false;
    cudaError_t next = cudaStreamIsCapturing(stream, &capture);
    if (next == cudaSuccess && capture == cudaStreamCaptureStatusNone) next = cudaStreamQuery(stream);
    cudaGetLastError();
    return next != cudaSuccess && next != cudaErrorNotReady;
}

/* The failure of a call of the CUDA runtime, with the name of the call. */
static inline sp_status cuda_status(sp_context *context, cudaError_t error, const char *call)
{
    if (error == cudaSuccess) return SP_OK;
    int length = 0;
    cudaGetLastError();
    while (call[length] && call[length] != '(') length++;
    return sp_fail(context, error == cudaErrorMemoryAllocation ? SP_ERROR_DEVICE_MEMORY : SP_ERROR_DEVICE,
                   "%s: %.*s failed: %s (%s)%s", sp_context_device(context), length, call, cudaGetErrorString(error),
                   cudaGetErrorName(error), cuda_is_lost(context) ? "; the device is lost to this process" : "");
}

#endif
