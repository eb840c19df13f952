/* The CUDA back end's context: the device, its streams, and the table of operations. The CUDA runtime is linked
 * statically. On a machine without a driver the device count fails, and the context stays on the CPU. */
#include <stdio.h>
#include <string.h>
#include <type_traits>

#include "device/common.cuh"
#include "spmm/cuda/maxk.cuh"

/* ---- copies ---------------------------------------------------------------------------------------------- */

static sp_status copy(sp_context *context, void *to, sp_space to_space, const void *from, sp_space from_space,
                      size_t bytes)
{
    cuda_state *state = cuda_state_of(context);
    if (to_space == SP_HOST && from_space == SP_HOST) {
        memcpy(to, from, bytes);
        return SP_OK;
    }
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, state->stream));
    if (to_space == SP_HOST || from_space == SP_HOST) CUDA_CHECK(cudaStreamSynchronize(state->stream));
    return SP_OK;
}

static sp_status copy_rows(sp_context *context, void *to, size_t to_pitch, sp_space to_space, const void *from,
                           size_t from_pitch, sp_space from_space, size_t bytes, int64_t rows)
{
    cuda_state *state = cuda_state_of(context);
    CUDA_CHECK(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, bytes, (size_t)rows, cudaMemcpyDefault,
                                 state->stream));
    if (to_space == SP_HOST || from_space == SP_HOST) CUDA_CHECK(cudaStreamSynchronize(state->stream));
    return SP_OK;
}

/* ---- streams ------------------------------------------------------------------------------------------- */

/* A stream that is being captured cannot be waited for. */
sp_status cuda_finish(sp_context *context)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture == cudaStreamCaptureStatusNone) CUDA_CHECK(cudaStreamSynchronize(stream));
    return sp_interrupted(context) ? sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted") : SP_OK;
}

sp_status cuda_fork(sp_context *context, int streams)
{
    cuda_state *state = cuda_state_of(context);
    CUDA_CHECK(cudaEventRecord(state->forked, state->stream));
    for (int i = 0; i < streams; i++) CUDA_CHECK(cudaStreamWaitEvent(state->side[i], state->forked, 0));
    return SP_OK;
}

sp_status cuda_join(sp_context *context, int streams)
{
    cuda_state *state = cuda_state_of(context);
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < streams && error == cudaSuccess; i++) {
        error = cudaEventRecord(state->joined[i], state->side[i]);
        if (error == cudaSuccess) error = cudaStreamWaitEvent(state->stream, state->joined[i], 0);
    }
    if (error != cudaSuccess) cudaDeviceSynchronize(); /* memory is released in the order of the main stream */
    return cuda_status(context, error, "cudaStreamWaitEvent");
}

static void *stream(const sp_context *context) { return ((const cuda_state *)context->device_state)->stream; }

static sp_status set_stream(sp_context *context, void *chosen)
{
    cuda_state *state = cuda_state_of(context);
    const cudaStream_t next = chosen ? (cudaStream_t)chosen : state->own;
    if (next == state->stream) return SP_OK;
    CUDA_CHECK(cudaEventRecord(state->forked, state->stream));
    CUDA_CHECK(cudaStreamWaitEvent(next, state->forked, 0));
    state->stream = next;
    return SP_OK;
}

static sp_status trim(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    cuda_drop_counts(context);
    CUDA_CHECK(cudaStreamSynchronize(state->stream));
    if (state->pool) CUDA_CHECK(cudaMemPoolTrimTo(state->pool, 0));
    return SP_OK;
}

/* ---- the current device -------------------------------------------------------------------------------- */

/* The driver keeps a stack of contexts for each thread, and the runtime works with the one on top. So a thread gets
 * back what it had, be that the context of another device, one of the caller's own, or none: cudaSetDevice would start
 * the device it returns to. */
static sp_status enter(sp_context *context)
{
    const cuda_state *state = cuda_state_of(context);
    const CUresult result = state->push(state->primary);
    if (result == CUDA_SUCCESS) return SP_OK;
    return sp_fail(context, SP_ERROR_DEVICE, "cuda:%d cannot be made current: cuCtxPushCurrent failed with error %d",
                   state->device, (int)result);
}

static void leave(sp_context *context)
{
    CUcontext popped;
    cuda_state_of(context)->pop(&popped);
}

/* The operations of the table, with the context's device current. */
template <auto OPERATION> struct there;
template <typename Result, typename... P, Result (*OPERATION)(sp_context *, P...)> struct there<OPERATION> {
    static Result run(sp_context *context, P... arguments)
    {
        const device_scope scope(context);
        if constexpr (!std::is_void_v<Result>) CHECK(scope.status);
        return OPERATION(context, arguments...);
    }
};

/* ---- life ---------------------------------------------------------------------------------------------- */

static void close_device(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    cuda_drop_counts(context);
    if (state->stream) cudaStreamSynchronize(state->stream);
    for (int i = 0; i < SIDE_STREAMS; i++) {
        if (state->side[i]) cudaStreamDestroy(state->side[i]);
        if (state->joined[i]) cudaEventDestroy(state->joined[i]);
    }
    if (state->forked) cudaEventDestroy(state->forked);
    cuda_close_memory(context);
    if (state->own) cudaStreamDestroy(state->own);
    cudaGetLastError();
}

static void destroy(sp_context *context)
{
    there<close_device>::run(context);
    sp_free(context, context->device_state);
    context->device_state = NULL;
}

static const sp_backend cuda_backend = {
    .space = SP_DEVICE,
#define ENTER(name) .name = there<sp_cuda_##name>::run,
    SP_OPERATIONS(ENTER)
    .spmm_heads = NULL,
    .transpose = there<sp_cuda_fill_transpose>::run,
    .from_coo = there<sp_cuda_from_coo>::run,
    .widen = there<sp_cuda_widen>::run,
    .is_sound = there<sp_cuda_is_sound>::run,
    .turn = there<sp_cuda_turn>::run,
    .number = there<sp_cuda_number>::run,
    .gather = there<sp_cuda_gather>::run,
    .allocate = there<cuda_allocate>::run,
    .release = there<cuda_release>::run,
    .available = there<cuda_available>::run,
    .copy = there<copy>::run,
    .copy_rows = there<copy_rows>::run,
    .stream = stream,
    .enter = enter,
    .leave = leave,
    .set_stream = there<set_stream>::run,
    .trim = there<trim>::run,
    .finish = there<cuda_finish>::run,
    .destroy = destroy,
};

/* Fails if this build has no code for the device. */
static __global__ void probe() {}

static sp_status find_in_driver(sp_context *context, const char *name, void **function)
{
#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult found;
    CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, function, 11080, cudaEnableDefault, &found));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint(name, function, cudaEnableDefault));
#endif
    return *function ? SP_OK : sp_fail(context, SP_ERROR_NO_DEVICE, "the driver has no %s", name);
}

/* What enter and leave need. The device stays started until the process ends, as with the runtime's own functions. */
static sp_status start_device(sp_context *context, int index)
{
    cuda_state *state = cuda_state_of(context);
    CUresult (CUDAAPI *retain)(CUcontext *, CUdevice);
    state->device = index;
    CHECK(find_in_driver(context, "cuCtxPushCurrent", (void **)&state->push));
    CHECK(find_in_driver(context, "cuCtxPopCurrent", (void **)&state->pop));
    CHECK(find_in_driver(context, "cuDevicePrimaryCtxRetain", (void **)&retain));
    const CUresult result = retain(&state->primary, index);
    if (result == CUDA_SUCCESS) return SP_OK;
    return sp_fail(context, result == CUDA_ERROR_OUT_OF_MEMORY ? SP_ERROR_DEVICE_MEMORY : SP_ERROR_DEVICE,
                   "cuda:%d cannot be started: cuDevicePrimaryCtxRetain failed with error %d", index, (int)result);
}

static sp_status open_device(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    const int index = state->device;
    cudaFuncAttributes attributes;
    int shared = 0, usual, first;
    CUDA_CHECK(cudaDeviceGetAttribute(&state->processors, cudaDevAttrMultiProcessorCount, index));
    CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, probe));
    state->shared_limit = (size_t)shared;

    CHECK(cuda_open_memory(context));
    CUDA_CHECK(cudaStreamCreateWithFlags(&state->own, cudaStreamNonBlocking));
    state->stream = state->own;
    CUDA_CHECK(cudaEventCreateWithFlags(&state->forked, cudaEventDisableTiming));
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&usual, &first));
    for (int i = 0; i < SIDE_STREAMS; i++) {
        const int priority = i == SIDE_STREAMS - 1 ? first : usual;
        CUDA_CHECK(cudaStreamCreateWithPriority(&state->side[i], cudaStreamNonBlocking, priority));
        CUDA_CHECK(cudaEventCreateWithFlags(&state->joined[i], cudaEventDisableTiming));
    }
    cudaDeviceProp device;
    CUDA_CHECK(cudaGetDeviceProperties(&device, index));
    snprintf(context->device_name, sizeof context->device_name, "cuda:%d %.100s", index, device.name);
    return SP_OK;
}

sp_status sp_cuda_link(sp_context *context, sp_context *other)
{
    const int own = cuda_state_of(context)->device, theirs = cuda_state_of(other)->device;
    int possible = 0;
    if (own == theirs || !cuda_state_of(context)->pool) return SP_OK;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, theirs, own));
    if (!possible) return SP_OK;
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = theirs;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CUDA_CHECK(cudaMemPoolSetAccess(cuda_state_of(context)->pool, &access, 1));
    return SP_OK;
}

int sp_cuda_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
}

sp_status sp_cuda_open(sp_context *context, int index)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        cudaGetLastError();
        return sp_fail(context, SP_ERROR_NO_DEVICE, "no CUDA device: %s", cudaGetErrorString(error));
    }
    if (index >= count)
        return sp_fail(context, SP_ERROR_NO_DEVICE, "cuda:%d does not exist: there are %d CUDA devices", index,
                       count);

    CHECK(sp_calloc(context, 1, sizeof(cuda_state), &context->device_state));
    context->backend = &cuda_backend;
    const int first = index < 0 ? 0 : index, end = index < 0 ? count : index + 1;
    for (int i = first; i < end; i++) {
        snprintf(context->device_name, sizeof context->device_name, "cuda:%d", i);
        if (start_device(context, i) == SP_OK) {
            if (there<open_device>::run(context) == SP_OK) return SP_OK;
            there<close_device>::run(context);
        }
        memset(context->device_state, 0, sizeof(cuda_state));
    }
    context->backend = &sp_backend_cpu;
    sp_free(context, context->device_state);
    context->device_state = NULL;
    strcpy(context->device_name, "cpu");
    return SP_ERROR_NO_DEVICE;
}
