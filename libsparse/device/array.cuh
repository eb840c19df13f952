/* Device memory that is released at the end of its scope. Needs only public calls, as check.cuh. */
#ifndef DEVICE_ARRAY_CUH
#define DEVICE_ARRAY_CUH

#include "device/check.cuh"

template <typename T> struct device_array {
    sp_context *context = nullptr;
    T *data = nullptr;

    device_array() = default;
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    ~device_array() { free(); }

    sp_status allocate(sp_context *owner, int64_t count)
    {
        free();
        context = owner;
        return sp_array_create(owner, count, sizeof(T), SP_DEVICE, (void **)&data);
    }
    sp_status fill(int byte, int64_t count)
    {
        const cudaStream_t stream = (cudaStream_t)sp_context_stream(context);
        return cuda_status(context, cudaMemsetAsync(data, byte, (size_t)count * sizeof(T), stream), "cudaMemsetAsync");
    }
    void free()
    {
        if (data) sp_array_free(context, SP_DEVICE, data);
        data = nullptr;
    }
};

#endif
